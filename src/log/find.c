/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets for timestamps (ListOffsets), in a job.
 *
 * Timestamps need not ascend along a log. The time index knows for some places the largest
 * timestamp so far, which is enough to begin walking not far before the answer: the first record,
 * in the order of offsets, whose timestamp is at least the wanted one. It is a record that is
 * wanted and not a batch, so the batch in question is read, checked and unpacked.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/log_int.h"

struct answer {
    int64_t offset; /* -1: none */
    int64_t timestamp;
    int32_t epoch;
};

/* What record of a batch is wanted: the first at or above `t`, from `from` on. */
struct wanted {
    int64_t t;
    int64_t from;
};

static enum err search_batch(const struct segment_extent *s, const struct header_walk *w,
                             const struct wanted *want, struct answer *out)
{
    struct buf bytes = {.p = NULL};
    struct record_iter it;
    struct record r;
    enum err err = read_fully(s->segment->log, buf_extend(&bytes, (size_t)w->total),
                              (size_t)w->total, w->pos, LOG_BLOCKING);

    record_iter_init(&it);
    if (!err && !batch_crc_ok(buf_bytes(&bytes, 0)))
        err = ERR_CORRUPT_MESSAGE;
    if (!err)
        err = record_iter_batch(&it, buf_bytes(&bytes, 0));
    while (!err && !(err = record_iter_next(&it, &r))) {
        if (r.timestamp < want->t || r.offset < want->from)
            continue;
        *out = (struct answer){
            .offset = r.offset,
            .timestamp = r.timestamp,
            .epoch = w->header.leader_epoch,
        };
        break;
    }
    record_iter_fini(&it);
    buf_fini(&bytes);
    return err == ERR_EOF ? ERR_NONE : err;
}

static enum err search_segment(const struct segment_extent *s, const struct wanted *want,
                               struct answer *out)
{
    struct header_walk w;
    int64_t start;
    enum err err = timeindex_floor(s, want->t - 1, LOG_BLOCKING, &start);

    if (!err)
        err = segment_find(s, MAX(start, want->from), LOG_BLOCKING, &w);
    while (!err) {
        if (w.header.max_timestamp >= want->t)
            err = search_batch(s, &w, want, out);
        if (!err && out->offset >= 0)
            return ERR_NONE;
        if (!err)
            err = header_walk_next(&w);
    }
    return err == ERR_EOF ? ERR_NONE : err;
}

static int64_t span_max_timestamp(const struct view_record *r, size_t i)
{
    return i + 1 == r->list->n ? r->tail.max_timestamp : r->list->v[i].max_timestamp;
}

static enum err as_client_sees(enum err err)
{
    if (!err || err == ERR_CORRUPT_MESSAGE)
        return err;
    if (err == ERR_CORRUPT || err == ERR_INVALID_RECORD || err == ERR_LIMIT ||
        err == ERR_UNSUPPORTED_COMPRESSION_TYPE)
        return ERR_CORRUPT_MESSAGE;
    return ERR_KAFKA_STORAGE_ERROR;
}

static enum err find(const struct view_record *r, const struct wanted *want, int64_t upto,
                     struct answer *out)
{
    *out = (struct answer){.offset = -1, .timestamp = -1, .epoch = -1};
    for (size_t i = 0; i < r->list->n && out->offset < 0; i++) {
        struct segment_extent s = view_extent(r, i);
        enum err err = ERR_NONE;
        if (span_max_timestamp(r, i) >= want->t)
            err = search_segment(&s, want, out);
        if (err)
            return as_client_sees(err);
    }
    if (out->offset >= upto)
        *out = (struct answer){.offset = -1, .timestamp = -1, .epoch = -1};
    return ERR_NONE;
}

static enum err give(enum err err, const struct answer *a, int64_t *offset, int64_t *timestamp,
                     int32_t *epoch)
{
    *offset = err ? -1 : a->offset;
    *timestamp = err ? -1 : a->timestamp;
    *epoch = err ? -1 : a->epoch;
    return err;
}

enum err log_find_timestamp(const struct log_snapshot *s, int64_t t, int64_t upto, int64_t *offset,
                            int64_t *timestamp, int32_t *epoch)
{
    struct view_record r;
    struct wanted want = {.t = t};
    struct answer a;

    view_load(log_snapshot_view(s), &r);
    want.from = r.bounds.log_start;
    return give(find(&r, &want, upto, &a), &a, offset, timestamp, epoch);
}

/* The largest max timestamp of the batches in [log start, upto): from all headers of the segments
 * that may hold it. */
static enum err largest_timestamp(const struct view_record *r, int64_t upto, int64_t *largest)
{
    *largest = -1;
    for (size_t i = 0; i < r->list->n; i++) {
        struct segment_extent s = view_extent(r, i);
        struct header_walk w;
        enum err err;
        if (span_max_timestamp(r, i) <= *largest)
            continue;
        err = segment_find(&s, r->bounds.log_start, LOG_BLOCKING, &w);
        while (!err && w.header.base_offset < upto) {
            if (w.header.record_count > 0) /* Not one that compaction emptied. */
                *largest = MAX(*largest, w.header.max_timestamp);
            err = header_walk_next(&w);
        }
        if (err && err != ERR_EOF)
            return err;
    }
    return ERR_NONE;
}

enum err log_find_max_timestamp(const struct log_snapshot *s, int64_t upto, int64_t *offset,
                                int64_t *timestamp, int32_t *epoch)
{
    struct answer a = {.offset = -1, .timestamp = -1, .epoch = -1};
    struct view_record r;
    struct wanted want;
    enum err err;

    view_load(log_snapshot_view(s), &r);
    want.from = r.bounds.log_start;
    err = as_client_sees(largest_timestamp(&r, upto, &want.t));
    if (!err && want.t >= 0)
        err = find(&r, &want, upto, &a);
    return give(err, &a, offset, timestamp, epoch);
}
