/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions by name, lists of broker ids, and Metadata as the tools read it: sorted once, so that
 * output is in an order that a person expects and a partition is found by halving.
 */
#include "cli/partitions.h"

#include <stdlib.h>

#include <jansson.h>

/* ---- Partitions. */

int partition_compare(const void *a, const void *b)
{
    const struct admin_partition *x = a;
    const struct admin_partition *y = b;
    int c = str_cmp(x->topic, y->topic);

    return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}

bool partition_parse(struct tool *t, const char *text, struct admin_partition *out)
{
    const char *colon = strrchr(text, ':');
    int64_t n = -1;

    *out = (struct admin_partition){
        .topic = {text, colon ? (int32_t)(colon - text) : (int32_t)strlen(text)},
        .partition = -1,
    };
    if (out->topic.n > 0 && !colon)
        return true;
    if (out->topic.n > 0 && !str_to_i64(str_of(colon + 1), &n) && n >= 0 && n <= INT32_MAX) {
        out->partition = (int32_t)n;
        return true;
    }
    t->status = tool_usage(t, "'%s' is not of the form TOPIC or TOPIC:0", text);
    return false;
}

static int by_str(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

int32_t partition_topics(const void *structs, int32_t count, size_t size, struct str *names)
{
    int32_t n = 0;

    for (int32_t i = 0; i < count; i++) {
        const void *one = (const char *)structs + (size_t)i * size;

        names[i] = ((const struct admin_partition *)one)->topic;
    }
    if (count > 0)
        qsort(names, (size_t)count, sizeof(*names), by_str);
    for (int32_t i = 0; i < count; i++)
        if (n == 0 || !str_eq(names[n - 1], names[i]))
            names[n++] = names[i];
    return n;
}

/* ---- Metadata. */

static int by_name(const void *a, const void *b)
{
    const struct metadata_response_topic *x = a;
    const struct metadata_response_topic *y = b;

    return str_cmp(x->name, y->name);
}

static int by_index(const void *a, const void *b)
{
    const struct metadata_response_partition *x = a;
    const struct metadata_response_partition *y = b;

    return (x->partition_index > y->partition_index) - (x->partition_index < y->partition_index);
}

struct metadata_response *topics_sort(struct admin_op *op)
{
    struct metadata_response *r = (struct metadata_response *)op->response;

    if (r->topics.n > 0)
        qsort(r->topics.v, (size_t)r->topics.n, sizeof(*r->topics.v), by_name);
    for (int32_t i = 0; i < r->topics.n; i++)
        if (r->topics.v[i].partitions.n > 0)
            qsort(r->topics.v[i].partitions.v, (size_t)r->topics.v[i].partitions.n,
                  sizeof(*r->topics.v[i].partitions.v), by_index);
    return r;
}

const struct metadata_response_topic *topics_find(const struct metadata_response *sorted,
                                                  struct str name)
{
    struct metadata_response_topic key = {.name = name};

    return sorted->topics.n > 0
               ? bsearch(&key, sorted->topics.v, (size_t)sorted->topics.n, sizeof(key), by_name)
               : NULL;
}

const struct metadata_response_partition *topics_find_partition(
    const struct metadata_response *sorted, struct str name, int32_t partition)
{
    struct metadata_response_partition key = {.partition_index = partition};
    const struct metadata_response_topic *topic = topics_find(sorted, name);

    return topic && topic->partitions.n > 0
               ? bsearch(&key, topic->partitions.v, (size_t)topic->partitions.n, sizeof(key),
                         by_index)
               : NULL;
}

bool topics_check_partition(struct tool *t, const struct metadata_response *sorted,
                            const struct admin_partition *p, const char *where)
{
    const struct metadata_response_topic *topic = topics_find(sorted, p->topic);

    if (topics_find_partition(sorted, p->topic, p->partition))
        return true;
    tool_fail(t, "%sthere is no partition %d of topic %.*s, which has %d, numbered from 0 on",
              where, p->partition, STR_ARG(p->topic), topic ? MAX(topic->partitions.n, 0) : 0);
    return false;
}

bool moves_check(struct tool *t, const struct admin_op *op, const char *verb)
{
    if (op->err == ERR_UNSUPPORTED_VERSION)
        tool_fail(
            t,
            "cannot %s at %s: the broker does not serve that (%s); a Strandline broker without "
            "zookeeper.connect is alone and has nowhere to go, any other is too old",
            verb, t->bootstrap_server, err_name(op->err));
    else if (op->err)
        tool_fail_err(t, op->err, str_null(), "cannot %s at %s", verb, t->bootstrap_server);
    return !op->err;
}

/* ---- As text and JSON. */

const char *ids_text(struct arena *arena, const int32_t *ids, int32_t count)
{
    size_t size = (size_t)MAX(count, 1) * sizeof("-2147483648");
    char *text = arena_alloc(arena, size);
    int n = 0;

    for (int32_t i = 0; i < count; i++)
        n += snprintf(text + n, size - (size_t)n, "%s%d", i ? "," : "", ids[i]);
    return n > 0 ? text : "-";
}

json_t *ids_json(const int32_t *ids, int32_t count)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(ids[i]));
    return array;
}

bool ids_have(const int32_t *ids, int32_t count, int32_t id)
{
    for (int32_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

const char *bytes_text(struct arena *arena, int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t size = 32;
    char *text = arena_alloc(arena, size);
    double n = (double)bytes;
    size_t unit = 0;

    while (n >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        n /= 1024;
        unit++;
    }
    snprintf(text, size, unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
    return text;
}
