/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline consume`: reads partitions of one topic and prints their records.
 *
 * The topic is described first, which tells a wrong name at once and how many partitions there are;
 * then a consumer by assignment does the rest. Records are printed as they come, partition by
 * partition; nothing is sorted across partitions, because there is no order across them.
 */
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "cli/tool.h"
#include "client/admin.h"
#include "client/consumer.h"

static const char help[] =
    "usage: strandline consume TOPIC [OPTION]...\n"
    "\n"
    "Prints the records of a topic, one a line. Without a consumer group: nothing is committed.\n"
    "\n"
    "  --partition N            only this one; may be repeated [all]\n"
    "  --offset WHERE           earliest, latest, an offset, or -N: N before the end [latest]\n"
    "  --timestamp MS           from the first record that is not older (ms since 1970)\n"
    "  --count N                stop after N records\n"
    "  --exit-at-end            stop when everything has been read\n"
    "  --isolation LEVEL        read_uncommitted or read_committed [read_uncommitted]\n"
    "  --print FIELD,...        in front of the value: timestamp, partition, offset, headers, key\n"
    "  --separator TEXT         between the fields [tab]\n"
    "  --json                   one object a line, with everything; bytes that are no UTF-8 text\n"
    "                           become {\"base64\": ...}\n" TOOL_OPTIONS_HELP;

#define PARTITIONS_MAX 1024
#define UNKNOWN_PARTITION_MS 5000 /* one that has just been made */

enum field {
    FIELD_TIMESTAMP = 1,
    FIELD_PARTITION = 2,
    FIELD_OFFSET = 4,
    FIELD_HEADERS = 8,
    FIELD_KEY = 16,
};

struct consume {
    struct tool tool;
    struct admin_op describe;
    struct consumer_config config;
    struct consumer *consumer;
    struct record_iter iter;
    struct str topic;
    int32_t partitions[PARTITIONS_MAX];
    int32_t partition_count; /* 0: all */
    bool *is_at_end;         /* by position in partitions */
    enum consumer_start start;
    int64_t start_value;
    int64_t count; /* -1: no limit */
    bool exits_at_end;
    unsigned fields; /* enum field */
    struct str separator;
};

static struct consume *consume_of(struct tool *t)
{
    return CONTAINER_OF(t, struct consume, tool);
}

/* ---- As text. */

static void print_bytes(struct bytes b)
{
    if (b.n < 0)
        fputs("null", stdout);
    else
        fwrite(b.p, 1, (size_t)b.n, stdout);
}

static void print_separator(const struct consume *s)
{
    fwrite(s->separator.p, 1, (size_t)s->separator.n, stdout);
}

static void print_headers(const struct record *r)
{
    struct bytes rest = r->headers;
    struct bytes value;
    struct str key;
    const char *comma = "";

    while (record_headers_next(&rest, &key, &value)) {
        printf("%s%.*s=", comma, STR_ARG(key));
        print_bytes(value);
        comma = ",";
    }
}

static void print_text(const struct consume *s, int32_t partition, const struct record *r)
{
    if (s->fields & FIELD_TIMESTAMP) {
        printf("%lld", (long long)r->timestamp);
        print_separator(s);
    }
    if (s->fields & FIELD_PARTITION) {
        printf("%d", partition);
        print_separator(s);
    }
    if (s->fields & FIELD_OFFSET) {
        printf("%lld", (long long)r->offset);
        print_separator(s);
    }
    if (s->fields & FIELD_HEADERS) {
        print_headers(r);
        print_separator(s);
    }
    if (s->fields & FIELD_KEY) {
        print_bytes(r->key);
        print_separator(s);
    }
    print_bytes(r->value);
    putchar('\n');
}

/* ---- As JSON. */

static json_t *json_base64(struct bytes b)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buf text = {0};
    json_t *json;

    for (int32_t i = 0; i < b.n; i += 3) {
        uint8_t *out = buf_extend(&text, 4);
        int32_t left = b.n - i;
        uint32_t v = (uint32_t)b.p[i] << 16;

        v |= left > 1 ? (uint32_t)b.p[i + 1] << 8 : 0;
        v |= left > 2 ? b.p[i + 2] : 0;
        for (int j = 0; j < 4; j++)
            out[j] = j <= left ? (uint8_t)digits[v >> (18 - 6 * j) & 63] : '=';
    }
    json = json_stringn((const char *)text.p, text.n);
    buf_fini(&text);
    return json_pack("{s:o}", "base64", json);
}

static json_t *json_of_bytes(struct bytes b)
{
    json_t *text;

    if (b.n < 0)
        return json_null();
    text = json_stringn(b.n ? (const char *)b.p : "", (size_t)b.n);
    return text ? text : json_base64(b);
}

static json_t *json_of_headers(const struct record *r)
{
    json_t *array = json_array();
    struct bytes rest = r->headers;
    struct bytes value;
    struct str key;

    /* An array, because a key may come twice and the order counts. */
    while (record_headers_next(&rest, &key, &value))
        json_array_append_new(
            array, json_pack("{s:o, s:o}", "key",
                             json_of_bytes((struct bytes){(const uint8_t *)key.p, key.n}), "value",
                             json_of_bytes(value)));
    return array;
}

static void print_json(const struct consume *s, int32_t partition, const struct record *r)
{
    json_t *object = json_pack("{s:o, s:i, s:I, s:I, s:o, s:o, s:o}", "topic",
                               json_stringn(s->topic.p, (size_t)s->topic.n), "partition",
                               (int)partition, "offset", (json_int_t)r->offset, "timestamp",
                               (json_int_t)r->timestamp, "headers", json_of_headers(r), "key",
                               json_of_bytes(r->key), "value", json_of_bytes(r->value));

    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

/* ---- What the consumer tells. */

static void print_batch(void *ctx, const struct consumer_batch *b)
{
    struct consume *s = ctx;
    struct record r;
    enum err err = record_iter_batch(&s->iter, b->batch);

    while (!err && s->count != 0 && !s->tool.has_ended) {
        err = record_iter_next(&s->iter, &r);
        if (err || r.offset < b->from_offset)
            continue;
        if (s->tool.is_json)
            print_json(s, b->partition, &r);
        else
            print_text(s, b->partition, &r);
        if (s->count > 0)
            s->count--;
    }
    if (err && err != ERR_EOF)
        tool_fail_err(&s->tool, err, str_null(), "cannot read partition %d at offset %lld",
                      b->partition, (long long)b->header.base_offset);
    /* A reader at the other end of a pipe wants them now, and may have gone. */
    if (fflush(stdout) != 0)
        tool_end(&s->tool, EXIT_FAILURE);
    if (s->count == 0)
        tool_end(&s->tool, EXIT_SUCCESS);
}

static void caught_up(void *ctx, struct str topic, int32_t partition, int64_t next)
{
    struct consume *s = ctx;

    (void)topic;
    (void)next;
    if (!s->exits_at_end)
        return;
    for (int32_t i = 0; i < s->partition_count; i++)
        if (s->partitions[i] == partition)
            s->is_at_end[i] = true;
    for (int32_t i = 0; i < s->partition_count; i++)
        if (!s->is_at_end[i])
            return;
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void failed(void *ctx, struct str topic, int32_t partition, int64_t offset, enum err err)
{
    struct consume *s = ctx;

    if (s->tool.has_ended)
        return;
    if (offset < 0)
        tool_fail_err(&s->tool, err, str_null(), "cannot read %.*s partition %d", STR_ARG(topic),
                      partition);
    else
        tool_fail_err(&s->tool, err, str_null(), "cannot read %.*s partition %d at offset %lld",
                      STR_ARG(topic), partition, (long long)offset);
}

/* ---- Start and end. */

static const struct consumer_events events = {
    .batch = print_batch,
    .caught_up = caught_up,
    .failed = failed,
};

static void described(struct admin_op *op)
{
    struct consume *s = CONTAINER_OF(op, struct consume, describe);
    const struct metadata_response *r = op->response;
    bool is_all = s->partition_count == 0;
    enum err err;

    if (!tool_check(&s->tool, op, "read topic"))
        return;
    for (int32_t i = 0; is_all && i < MIN(r->topics.v[0].partitions.n, PARTITIONS_MAX); i++)
        s->partitions[s->partition_count++] = i;
    s->is_at_end = xcalloc((size_t)s->partition_count + 1, sizeof(*s->is_at_end));
    err = consumer_open(s->tool.client, &s->config, &events, s, &s->consumer);
    assert(!err);
    for (int32_t i = 0; i < s->partition_count; i++)
        consumer_assign(s->consumer, s->topic, s->partitions[i], s->start, s->start_value);
}

static void start(struct tool *t)
{
    struct consume *s = consume_of(t);

    if (s->count == 0) {
        tool_end(t, EXIT_SUCCESS);
        return;
    }
    s->describe.done = described;
    s->describe.timeout_ms = t->timeout_ms;
    admin_describe_topics(t->client, &s->describe, &s->topic, 1);
}

static void stopping(struct tool *t)
{
    struct consume *s = consume_of(t);

    consumer_close(s->consumer);
    admin_op_fini(&s->describe);
}

/* ---- Arguments. */

enum {
    OPTION_PARTITION = 1,
    OPTION_OFFSET,
    OPTION_TIMESTAMP,
    OPTION_COUNT,
    OPTION_EXIT,
    OPTION_ISOLATION,
    OPTION_PRINT,
    OPTION_SEPARATOR,
};

static const struct option options[] = {
    {"partition", required_argument, NULL, OPTION_PARTITION},
    {"offset", required_argument, NULL, OPTION_OFFSET},
    {"timestamp", required_argument, NULL, OPTION_TIMESTAMP},
    {"count", required_argument, NULL, OPTION_COUNT},
    {"exit-at-end", no_argument, NULL, OPTION_EXIT},
    {"isolation", required_argument, NULL, OPTION_ISOLATION},
    {"print", required_argument, NULL, OPTION_PRINT},
    {"separator", required_argument, NULL, OPTION_SEPARATOR},
    TOOL_OPTIONS,
};

static bool take_offset(struct consume *s, const char *text)
{
    int64_t n;

    if (strcmp(text, "earliest") == 0) {
        s->start = START_EARLIEST;
    } else if (strcmp(text, "latest") == 0) {
        s->start = START_LATEST;
    } else if (!str_to_i64(str_of(text), &n)) {
        s->start = n < 0 ? START_TAIL : START_OFFSET;
        s->start_value = n < 0 ? -n : n;
    } else {
        s->tool.status = tool_usage(
            &s->tool, "--offset is '%s', but has to be earliest, latest or a number", text);
        return false;
    }
    return true;
}

static bool take_partition(struct consume *s, const char *text)
{
    int64_t n;

    if (!tool_number(&s->tool, "--partition", text, 0, INT32_MAX - 1, &n))
        return false;
    if (s->partition_count == PARTITIONS_MAX) {
        s->tool.status = tool_usage(&s->tool, "more than %d partitions", PARTITIONS_MAX);
        return false;
    }
    s->partitions[s->partition_count++] = (int32_t)n;
    return true;
}

static bool take_isolation(struct consume *s, const char *text)
{
    s->config.isolation_level = strcmp(text, "read_committed") == 0 ? READ_COMMITTED
                                                                    : READ_UNCOMMITTED;
    if (s->config.isolation_level == READ_COMMITTED || strcmp(text, "read_uncommitted") == 0)
        return true;
    s->tool.status = tool_usage(
        &s->tool, "--isolation is '%s', but has to be read_uncommitted or read_committed", text);
    return false;
}

static bool take_fields(struct consume *s, const char *text)
{
    static const struct {
        const char *name;
        enum field field;
    } fields[] = {
        {"timestamp", FIELD_TIMESTAMP},
        {"partition", FIELD_PARTITION},
        {"offset", FIELD_OFFSET},
        {"headers", FIELD_HEADERS},
        {"key", FIELD_KEY},
    };

    for (const char *p = text; *p;) {
        struct str word = {p, (int32_t)strcspn(p, ",")};
        size_t i = 0;

        while (i < ARRAY_LEN(fields) && !str_eq_c(word, fields[i].name))
            i++;
        if (i == ARRAY_LEN(fields)) {
            s->tool.status = tool_usage(&s->tool, "--print does not know '%.*s'", STR_ARG(word));
            return false;
        }
        s->fields |= fields[i].field;
        p += word.n + (p[word.n] == ',');
    }
    return true;
}

static bool take_option(struct consume *s, int o)
{
    switch (o) {
    case OPTION_PARTITION: return take_partition(s, optarg);
    case OPTION_OFFSET: return take_offset(s, optarg);
    case OPTION_TIMESTAMP:
        s->start = START_TIMESTAMP;
        return tool_number(&s->tool, "--timestamp", optarg, 0, INT64_MAX, &s->start_value);
    case OPTION_COUNT: return tool_number(&s->tool, "--count", optarg, 0, INT64_MAX, &s->count);
    case OPTION_EXIT: s->exits_at_end = true; return true;
    case OPTION_ISOLATION: return take_isolation(s, optarg);
    case OPTION_PRINT: return take_fields(s, optarg);
    default: s->separator = str_of(optarg); return true;
    }
}

static int run(struct consume *s, int argc, char **argv)
{
    if (argc - optind != 1)
        return tool_usage(&s->tool, "say the name of one topic");
    s->topic = str_of(argv[optind]);
    s->config.request_timeout_ms = s->config.fetch_max_wait_ms + s->tool.timeout_ms;
    return tool_run(&s->tool);
}

int consume_run(int argc, char **argv)
{
    struct consume *s = xcalloc(1, sizeof(*s));
    int status;
    int o;

    s->tool = tool_default("consume", help, start);
    s->tool.stopping = stopping;
    s->config = consumer_config_default();
    s->config.auto_offset_reset = RESET_NONE;
    s->config.unknown_topic_timeout_ms = UNKNOWN_PARTITION_MS;
    s->start = START_LATEST;
    s->count = -1;
    s->separator = STR_LIT("\t");
    record_iter_init(&s->iter);
    while ((o = tool_getopt(&s->tool, argc, argv, options)) >= 0 && take_option(s, o))
        continue;
    status = o == -1 ? run(s, argc, argv) : s->tool.status;
    record_iter_fini(&s->iter);
    free(s->is_at_end);
    free(s);
    return status;
}
