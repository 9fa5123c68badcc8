/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kafka's offset checkpoints: one text file per log directory that gives an offset for each of its
 * partitions (recovery points, high watermarks, log starts). The first line is the version, 0, the
 * second the number of entries, then come lines of topic, partition and offset. A file of no bytes
 * is an empty checkpoint: Kafka makes them so.
 *
 * In memory the entries are sorted, so that a run writes the same bytes every time and look-ups
 * need no table.
 */
#include "base/alloc.h"
#include "log/files_int.h"

static int compare(const struct checkpoint_entry *e, const char *topic, int32_t partition)
{
    int order = strcmp(e->topic, topic);

    if (order != 0)
        return order;
    return e->partition < partition ? -1 : e->partition > partition;
}

/* Where the entry is or would be. */
static size_t place(const struct checkpoint *c, const char *topic, int32_t partition)
{
    size_t low = 0;
    size_t high = c->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&c->v[middle], topic, partition) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct checkpoint *c, size_t at, const char *topic, int32_t partition)
{
    return at < c->n && compare(&c->v[at], topic, partition) == 0;
}

void checkpoint_fini(struct checkpoint *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i].topic);
    free(c->v);
    *c = (struct checkpoint){.v = NULL};
}

int64_t checkpoint_get(const struct checkpoint *c, const char *topic, int32_t partition,
                       int64_t fallback)
{
    size_t at = place(c, topic, partition);

    return is_at(c, at, topic, partition) ? c->v[at].offset : fallback;
}

bool checkpoint_put(struct checkpoint *c, const char *topic, int32_t partition, int64_t offset)
{
    size_t at = place(c, topic, partition);

    if (is_at(c, at, topic, partition)) {
        bool changed = c->v[at].offset != offset;
        c->v[at].offset = offset;
        return changed;
    }
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 16;
        c->v = xreallocarray(c->v, c->cap, sizeof(*c->v));
    }
    memmove(&c->v[at + 1], &c->v[at], (c->n - at) * sizeof(*c->v));
    c->v[at] = (struct checkpoint_entry){
        .topic = xstrdup(topic),
        .partition = partition,
        .offset = offset,
    };
    c->n++;
    return true;
}

bool checkpoint_remove(struct checkpoint *c, const char *topic, int32_t partition)
{
    size_t at = place(c, topic, partition);

    if (!is_at(c, at, topic, partition))
        return false;
    free(c->v[at].topic);
    c->n--;
    memmove(&c->v[at], &c->v[at + 1], (c->n - at) * sizeof(*c->v));
    return true;
}

static enum err parse_entry(void *ctx, struct str line)
{
    struct checkpoint *c = ctx;
    struct str topic, partition, offset, more;
    int64_t p, o;

    if (!text_next_word(&line, &topic) || !text_next_word(&line, &partition) ||
        !text_next_word(&line, &offset) || text_next_word(&line, &more) || !is_topic_name(topic))
        return ERR_CORRUPT;
    if (str_to_i64(partition, &p) || str_to_i64(offset, &o) || p < 0 || p > INT32_MAX || o < 0)
        return ERR_CORRUPT;
    char *name = str_dup(topic);
    checkpoint_put(c, name, (int32_t)p, o);
    free(name);
    return ERR_NONE;
}

enum err checkpoint_parse(struct str text, struct checkpoint *c)
{
    enum err err;

    *c = (struct checkpoint){.v = NULL};
    err = text_parse_entries(text, parse_entry, c);
    if (err)
        checkpoint_fini(c);
    return err;
}

void checkpoint_format(const struct checkpoint *c, struct buf *out)
{
    char line[320];
    int n = snprintf(line, sizeof(line), "%d\n%zu\n", TEXT_ENTRIES_VERSION, c->n);

    buf_reset(out);
    buf_append(out, line, (size_t)n);
    for (size_t i = 0; i < c->n; i++) {
        n = snprintf(line, sizeof(line), "%s %d %lld\n", c->v[i].topic, c->v[i].partition,
                     (long long)c->v[i].offset);
        buf_append(out, line, (size_t)n);
    }
}
