/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups in the two sparse indexes: binary search over fixed-size entries in a file.
 *
 * Most readers stand near the end of the log, so the last piece of an index is read at once and
 * searched in memory; only a target before it is looked for entry by entry. Entries are never
 * trusted to hit: what they give is a place to start walking batches from.
 */
#include "base/assert.h"
#include "log/segment_int.h"

#define TAIL_BYTES 4096

struct search {
    struct io_file *file;
    int64_t count;
    int entry_bytes;
    enum log_wait wait;
    int64_t target;
    int64_t (*key)(const uint8_t *entry);
    uint8_t entry[TIMEINDEX_ENTRY_BYTES]; /* result: the last entry with key <= target */
    bool found;
};

static void take(struct search *s, const uint8_t *entry)
{
    memcpy(s->entry, entry, (size_t)s->entry_bytes);
    s->found = true;
}

/* Searches the last entries; *before says how many lie in front of them. */
static enum err search_tail(struct search *s, int64_t *before)
{
    uint8_t tail[TAIL_BYTES];
    int64_t n = MIN(s->count, TAIL_BYTES / s->entry_bytes);
    enum err err = read_fully(s->file, tail, (size_t)(n * s->entry_bytes),
                              (s->count - n) * s->entry_bytes, s->wait);

    *before = s->count - n;
    if (err)
        return err;
    for (int64_t i = n - 1; i >= 0; i--) {
        if (s->key(tail + i * s->entry_bytes) <= s->target) {
            take(s, tail + i * s->entry_bytes);
            return ERR_NONE;
        }
    }
    return ERR_NONE;
}

static enum err search_front(struct search *s, int64_t count)
{
    int64_t low = 0; /* entries before it have key <= target */
    int64_t high = count;

    while (low < high) {
        uint8_t entry[TIMEINDEX_ENTRY_BYTES];
        int64_t middle = low + (high - low) / 2;
        enum err err =
            read_fully(s->file, entry, (size_t)s->entry_bytes, middle * s->entry_bytes, s->wait);
        if (err)
            return err;
        if (s->key(entry) <= s->target) {
            take(s, entry);
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return ERR_NONE;
}

static enum err search_run(struct search *s)
{
    int64_t before = 0;
    enum err err = ERR_NONE;

    s->found = false;
    if (s->count > 0)
        err = search_tail(s, &before);
    if (!err && !s->found)
        err = search_front(s, before);
    /* An index that is shorter than it should be is damage of ours, not the end of the log. */
    return err == ERR_EOF ? ERR_CORRUPT : err;
}

static int64_t index_key(const uint8_t *entry)
{
    return get_i32(entry);
}

static int64_t position_key(const uint8_t *entry)
{
    return get_i32(entry + 4);
}

static int64_t timeindex_key(const uint8_t *entry)
{
    return get_i64(entry);
}

static enum err index_search(const struct segment_extent *s, int64_t target,
                             int64_t (*key)(const uint8_t *entry), enum log_wait wait, int64_t *pos)
{
    struct search search = {
        .file = s->segment->index,
        .count = s->index_count,
        .entry_bytes = INDEX_ENTRY_BYTES,
        .wait = wait,
        .target = target,
        .key = key,
    };
    enum err err = search_run(&search);

    *pos = 0;
    if (!err && search.found)
        *pos = position_key(search.entry);
    if (*pos < 0 || *pos > s->size)
        return ERR_CORRUPT;
    return err;
}

enum err index_floor(const struct segment_extent *s, int64_t offset, enum log_wait wait,
                     int64_t *pos)
{
    return index_search(s, offset - s->segment->base_offset, index_key, wait, pos);
}

enum err index_floor_position(const struct segment_extent *s, int64_t most, enum log_wait wait,
                              int64_t *pos)
{
    return index_search(s, most, position_key, wait, pos);
}

enum err timeindex_floor(const struct segment_extent *s, int64_t t, enum log_wait wait,
                         int64_t *offset)
{
    struct search search = {
        .file = s->segment->timeindex,
        .count = s->time_count,
        .entry_bytes = TIMEINDEX_ENTRY_BYTES,
        .wait = wait,
        .target = t,
        .key = timeindex_key,
    };
    enum err err = search_run(&search);

    *offset = s->segment->base_offset;
    if (!err && search.found)
        /* Damage may name what lies beyond all offsets. */
        *offset += MIN(get_i32(search.entry + 8), INT64_MAX - *offset);
    return err;
}
