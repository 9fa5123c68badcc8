/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partition directories that the keeper does not know: topics that another broker made.
 *
 * They are adopted when the keeper is new, which is how a directory of Apache Kafka arrives, or
 * when an import was asked for; else load.c sets them aside. With an import the directories are
 * believed in everything: a topic that was deleted and made again meanwhile takes the place of the
 * old one, and one that has grown gets its new partitions.
 *
 * A directory carries no configuration, and what is not known must not delete anything: an adopted
 * topic begins with retention.ms=-1, retention.bytes=-1 and cleanup.policy=delete.
 * These are ordinary overrides, so the rule is short: they hold until somebody alters them, or
 * until the topic's own configuration is imported, at its adoption or at any later start. A
 * configuration that cannot be taken whole in what it says of deletion leaves them in place. The
 * override "adopted" stays: it says that offsets may be missing, and whose configuration an import
 * is for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/control.h"

#define NAMES_SAID 8

static const char retention_ms[] = "retention.ms";
static const char retention_bytes[] = "retention.bytes";

struct adoption {
    struct control *control;
    const struct store_contents *contents;
    struct store_ops *ops;
    struct metadata_delta *delta;
};

/* What the directories say of one topic. */
struct found_topic {
    const char *name;
    struct uuid id; /* zero: from before there were ids */
    int32_t partitions;
};

/* ---- configuration ---------------------------------------------------------------------- */

static bool says_what_is_deleted(const char *key)
{
    return strcmp(key, retention_ms) == 0 || strcmp(key, retention_bytes) == 0 ||
           strcmp(key, "cleanup.policy") == 0;
}

static void keep_whole(struct config_overrides *o)
{
    config_overrides_put(o, str_of(retention_ms), STR_LIT("-1"));
    config_overrides_put(o, str_of(retention_bytes), STR_LIT("-1"));
    config_overrides_put(o, STR_LIT("cleanup.policy"), STR_LIT("delete"));
}

/* Takes over what this broker understands; false when that leaves open what may be deleted. */
static bool take_imported(struct control *c, const char *topic, const struct config_overrides *from,
                          struct config_overrides *to)
{
    bool is_known = true;
    char *message = NULL;

    for (int32_t i = 0; i < from->count; i++) {
        const struct config_pair *p = &from->pairs[i];

        if (strcmp(p->name, config_name(CONFIG_TOPIC_ADOPTED)) == 0)
            continue;
        if (!topic_config_check(str_of(p->name), str_of(p->value), &message)) {
            config_overrides_put(to, str_of(p->name), str_of(p->value));
            continue;
        }
        trace_warn("import.skipped", "topic=%s why=\"%s\"", topic, message);
        free(message);
        is_known = is_known && !says_what_is_deleted(p->name);
    }
    if (topic_config_check_all(c->config, to, &message)) {
        trace_warn("import.skipped", "topic=%s why=\"%s\"", topic, message);
        config_overrides_fini(to);
        is_known = false;
    }
    free(message);
    return is_known;
}

/* False: the import says nothing of this topic. */
static bool imported_configs(struct control *c, const char *topic, struct config_overrides *out)
{
    const struct config_overrides *from = import_find(&c->broker->import, str_of(topic));

    *out = (struct config_overrides){0};
    if (!from)
        return false;
    if (!take_imported(c, topic, from, out))
        keep_whole(out);
    config_overrides_put(out, str_of(config_name(CONFIG_TOPIC_ADOPTED)), STR_LIT("true"));
    return true;
}

static void import_known(struct adoption *a, const struct metadata_topic *topic)
{
    struct config_overrides configs;

    if (!config_overrides_get(&topic->configs, str_of(config_name(CONFIG_TOPIC_ADOPTED))) ||
        !imported_configs(a->control, topic->name.p, &configs))
        return;
    store_set_topic_configs(a->ops, topic->name, &configs);
    metadata_delta_set_topic_configs(a->delta, topic->name, &configs);
    config_overrides_fini(&configs);
}

/* ---- topics ----------------------------------------------------------------------------- */

/* The epoch is below any that a log may know: load.c raises it to the next one. */
static void place_here(struct control *c, struct metadata_topic *topic, int32_t from, int32_t to)
{
    int32_t self = c->broker->node_id;
    struct metadata_ids ids = {.ids = &self, .count = 1};
    struct metadata_partition p = {.leader = self, .leader_epoch = -1, .replicas = ids, .isr = ids};

    for (int32_t i = from; i < to; i++)
        metadata_topic_set_partition(topic, i, &p);
}

static struct uuid id_or_new(struct control *c, struct uuid id)
{
    uint64_t r[2];

    if (!uuid_is_zero(id))
        return id;
    io_random(c->broker->io, r, sizeof(r));
    return uuid_from_random(r[0], r[1]);
}

static void adopt(struct adoption *a, const struct found_topic *found)
{
    struct control *c = a->control;
    struct metadata_topic *topic =
        metadata_topic_new(str_of(found->name), id_or_new(c, found->id), found->partitions);
    struct config_overrides configs;

    if (!imported_configs(c, found->name, &configs)) {
        keep_whole(&configs);
        config_overrides_put(&configs, str_of(config_name(CONFIG_TOPIC_ADOPTED)), STR_LIT("true"));
    }
    metadata_topic_set_configs(topic, &configs);
    config_overrides_fini(&configs);
    place_here(c, topic, 0, found->partitions);
    trace_info("topic.adopted", "topic=%s partitions=%d", found->name, found->partitions);
    store_add_topic(a->ops, topic);
    metadata_delta_put_topic(a->delta, topic);
}

static void grow(struct adoption *a, const struct metadata_topic *known, int32_t partitions)
{
    struct metadata_topic *topic = metadata_topic_copy(known);

    place_here(a->control, topic, known->partition_count, partitions);
    trace_info("topic.grown", "topic=%s partitions=%d", known->name.p, partitions);
    store_grow_topic(a->ops, topic, known->partition_count);
    metadata_delta_put_topic(a->delta, topic);
}

static const struct metadata_topic *find_known(const struct adoption *a, const char *name)
{
    for (int32_t i = 0; i < a->contents->topic_count; i++)
        if (str_eq_c(a->contents->topics[i]->name, name))
            return a->contents->topics[i];
    return NULL;
}

static void adopt_or_grow(struct adoption *a, const struct found_topic *found)
{
    const struct metadata_topic *known = find_known(a, found->name);

    if (!known) {
        adopt(a, found);
    } else if (!uuid_is_zero(found->id) && !uuid_eq(found->id, known->id)) {
        trace_info("topic.replaced", "topic=%s", found->name);
        store_drop_topic(a->ops, known);
        metadata_delta_remove_topic(a->delta, known->name);
        adopt(a, found);
    } else {
        if (found->partitions > known->partition_count)
            grow(a, known, found->partitions);
        import_known(a, known);
    }
}

/* ---- directories ------------------------------------------------------------------------ */

struct every_partition {
    const struct log_partition_name **v;
    size_t n;
};

static int by_topic(const void *a, const void *b)
{
    const struct log_partition_name *x = *(const struct log_partition_name *const *)a;
    const struct log_partition_name *y = *(const struct log_partition_name *const *)b;

    return strcmp(x->topic, y->topic);
}

static struct every_partition sorted_partitions(const struct broker *b)
{
    struct every_partition all = {NULL, 0};

    for (int d = 0; d < b->dir_count; d++)
        all.n += b->found[d].n;
    all.v = xcalloc(all.n + 1, sizeof(struct log_partition_name *));
    all.n = 0;
    for (int d = 0; d < b->dir_count; d++)
        for (size_t i = 0; i < b->found[d].n; i++)
            all.v[all.n++] = &b->found[d].v[i];
    qsort(all.v, all.n, sizeof(struct log_partition_name *), by_topic);
    return all;
}

/* The topic at *at, which is moved behind it. An id that the keeper knows counts before others. */
static struct found_topic next_topic(const struct adoption *a, const struct every_partition *all,
                                     size_t *at)
{
    struct found_topic found = {.name = all->v[*at]->topic};
    const struct metadata_topic *known = find_known(a, found.name);

    for (; *at < all->n && strcmp(all->v[*at]->topic, found.name) == 0; (*at)++) {
        const struct log_partition_name *p = all->v[*at];

        found.partitions = MAX(found.partitions, p->partition + 1);
        if (uuid_is_zero(found.id) || (known && uuid_eq(p->topic_id, known->id)))
            found.id = p->topic_id;
    }
    return found;
}

void adopt_directories(struct control *c, const struct store_contents *contents,
                       struct store_ops *ops, struct metadata_delta *delta)
{
    struct adoption a = {.control = c, .contents = contents, .ops = ops, .delta = delta};
    struct every_partition all;
    size_t at = 0;

    if (!contents->is_new && c->broker->import.count == 0)
        return;
    all = sorted_partitions(c->broker);
    while (at < all.n) {
        struct found_topic found = next_topic(&a, &all, &at);
        const struct metadata_topic *known = find_known(&a, found.name);

        if (!known || !known->is_deleting)
            adopt_or_grow(&a, &found);
    }
    free(all.v);
}

/* ---- saying so -------------------------------------------------------------------------- */

static bool is_minus_one(const struct metadata_topic *topic, const char *key)
{
    const char *value = config_overrides_get(&topic->configs, str_of(key));

    return value && strcmp(value, "-1") == 0;
}

static bool is_kept_whole(const struct metadata_topic *topic)
{
    return config_overrides_get(&topic->configs, str_of(config_name(CONFIG_TOPIC_ADOPTED))) &&
           is_minus_one(topic, retention_ms) && is_minus_one(topic, retention_bytes);
}

void adopt_say(const struct metadata_image *image)
{
    struct buf names;
    int32_t n = 0;

    buf_init(&names);
    for (int32_t i = 0; i < image->topic_count; i++) {
        const struct metadata_topic *topic = image->topics[i];

        if (!is_kept_whole(topic) || n++ >= NAMES_SAID)
            continue;
        buf_append(&names, " ", n > 1);
        buf_append(&names, topic->name.p, (size_t)MIN(topic->name.n, 40));
    }
    buf_append(&names, "", 1);
    if (n > 0)
        trace_warn("topics.adopted",
                   "count=%d topics=\"%s%s\" note=\"kept whole until their configuration is "
                   "imported (--import) or their retention.ms and retention.bytes are altered\"",
                   n, (const char *)names.p, n > NAMES_SAID ? " ..." : "");
    buf_fini(&names);
}
