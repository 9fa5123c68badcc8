/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: from an offset to a range of a file, on any shard.
 *
 * A range begins at the batch that contains the offset (or the next one there is: compaction leaves
 * gaps), ends at the bound or after max_bytes, and lies in one segment. Bounds are offsets, ranges
 * are positions; the end of what is acknowledgeable is published with its position, since that is
 * where almost every reader's bound lies, any other bound is looked up. A bound in a later segment
 * means the whole of this one.
 *
 * Where max_bytes ends a range inside a batch, that batch is left out if it takes no wait for the
 * disk to find its beginning: a reader has no use for a part of it, and with batches of most of
 * max_bytes a sixth of all bytes would be such parts.
 *
 * Nothing above the acknowledgeable offset is read here: those bytes may not be in the file yet.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/assert.h"
#include "log/log_int.h"

/* The position in segment i where the batches below `upto` end. */
static enum err end_position(const struct view_record *r, size_t i, int64_t upto,
                             enum log_wait wait, int64_t *pos)
{
    struct segment_extent extent = view_extent(r, i);
    bool is_last = i + 1 == r->list->n;
    int64_t next = is_last ? r->bounds.ack : r->list->v[i + 1].segment->base_offset;
    struct header_walk w;
    enum err err;

    *pos = extent.size;
    if (upto >= next)
        return ERR_NONE;
    err = segment_find(&extent, upto, wait, &w);
    if (!err)
        *pos = w.pos;
    return err == ERR_EOF ? ERR_NONE : err;
}

/* Finds the first batch that ends at or above `offset`, in its segment or a later one. */
static enum err find_start(const struct view_record *r, int64_t offset, int64_t upto,
                           enum log_wait wait, size_t *segment, struct header_walk *w)
{
    enum err err = ERR_EOF;

    for (size_t i = view_segment_of(r, offset); i < r->list->n; i++) {
        struct segment_extent extent = view_extent(r, i);
        if (extent.segment->base_offset >= upto)
            return ERR_EOF;
        err = segment_find(&extent, offset, wait, w);
        *segment = i;
        if (err != ERR_EOF)
            return err;
    }
    return err;
}

/* Where reading goes on when all of a segment has been returned; -1: nowhere below `upto`. */
static int64_t next_base(const struct view_record *r, size_t segment, int64_t upto)
{
    int64_t base;

    if (segment + 1 >= r->list->n)
        return -1;
    base = r->list->v[segment + 1].segment->base_offset;
    return base < upto ? base : -1;
}

/* Errors of our own files as a client sees them. */
static enum err wire_error(enum err err)
{
    switch (err) {
    case ERR_NONE:
    case ERR_AGAIN:
    case ERR_CORRUPT_MESSAGE: return err;
    case ERR_CORRUPT: return ERR_CORRUPT_MESSAGE;
    default: return ERR_KAFKA_STORAGE_ERROR;
    }
}

static int64_t range_bytes(int64_t there, int32_t first_batch, int32_t max_bytes, bool whole_first)
{
    int64_t n = MIN(there, (int64_t)MAX(max_bytes, 0));

    if (n >= first_batch)
        return n;
    return whole_first ? first_batch : 0;
}

/* The end of the last whole batch at or below `end`; `end` when that is not known at once. */
static int64_t whole_batches(const struct view_record *r, size_t segment, int64_t first_end,
                             int64_t end)
{
    struct segment_extent s = view_extent(r, segment);
    struct header_walk w;
    int64_t pos;
    enum err err = index_floor_position(&s, end, LOG_CACHED, &pos);

    if (err)
        return end;
    pos = MAX(pos, first_end);
    header_walk_init(&w, s.segment->log, pos, s.size, LOG_CACHED);
    while (!(err = header_walk_next(&w)) && w.pos + w.total <= end)
        pos = w.pos + w.total;
    return err ? end : pos;
}

static enum err check_bounds(const struct view_record *r, int64_t offset)
{
    if (r->bounds.is_gone)
        return ERR_KAFKA_STORAGE_ERROR;
    if (r->is_damaged && offset >= r->bounds.end)
        return ERR_CORRUPT_MESSAGE;
    if (offset < r->bounds.log_start || offset > r->bounds.end)
        return ERR_OFFSET_OUT_OF_RANGE;
    return ERR_NONE;
}

enum err log_view_read(const struct log_view *v, int64_t offset, int64_t upto, int32_t max_bytes,
                       bool whole_first, enum log_wait wait, struct log_range *out)
{
    struct view_record r;
    struct header_walk w;
    size_t segment = 0;
    int64_t end;
    enum err err;

    *out = (struct log_range){.next_offset_hint = -1};
    view_load(v, &r);
    err = check_bounds(&r, offset);
    upto = MIN(upto, r.bounds.ack);
    if (err || offset >= upto)
        return err;
    err = find_start(&r, offset, upto, wait, &segment, &w);
    if (err == ERR_EOF)
        return ERR_NONE;
    if (!err)
        err = end_position(&r, segment, upto, wait, &end);
    if (err)
        return wire_error(err);
    if (w.pos >= end)
        return ERR_NONE;
    out->n = range_bytes(end - w.pos, w.total, max_bytes, whole_first);
    if (out->n == 0)
        return ERR_NONE;
    out->pos = w.pos;
    out->is_full = out->n < end - w.pos;
    if (!out->is_full)
        out->next_offset_hint = next_base(&r, segment, upto);
    else if (wait == LOG_CACHED && out->n > w.total)
        out->n = whole_batches(&r, segment, w.pos + w.total, w.pos + out->n) - w.pos;
    out->file = io_file_ref(r.list->v[segment].segment->log);
    return ERR_NONE;
}

/* Where an offset lies among all bytes of the log, taking batches as evenly spread. */
static int64_t estimated_position(const struct view_record *r, int64_t offset)
{
    size_t at = view_segment_of(r, offset);
    int64_t before = 0;
    struct segment_extent extent = view_extent(r, at);
    int64_t base = extent.segment->base_offset;
    int64_t next = at + 1 == r->list->n ? r->bounds.ack : r->list->v[at + 1].segment->base_offset;

    for (size_t i = 0; i < at; i++)
        before += r->list->v[i].size;
    if (offset >= next)
        return before + extent.size;
    if (offset <= base)
        return before;
    return before +
           (int64_t)((double)extent.size * (double)(offset - base) / (double)(next - base));
}

int64_t log_view_bytes_between(const struct log_view *v, int64_t offset, int64_t upto)
{
    struct view_record r;

    view_load(v, &r);
    upto = MIN(upto, r.bounds.ack);
    if (r.bounds.is_gone || offset >= upto)
        return 0;
    return MAX(estimated_position(&r, upto) - estimated_position(&r, offset), 1);
}

/* ---- Aborted transactions --------------------------------------------------------------- */

struct aborted {
    struct arena *arena;
    struct log_aborted_txn *v;
    int n;
    int cap;
};

static void add_aborted(struct aborted *a, const struct txn_entry *e)
{
    if (a->n == a->cap) {
        int cap = a->cap ? 2 * a->cap : 16;
        struct log_aborted_txn *v = arena_alloc(a->arena, (size_t)cap * sizeof(*v));
        assert(v);
        if (a->n > 0)
            memcpy(v, a->v, (size_t)a->n * sizeof(*v));
        a->v = v;
        a->cap = cap;
    }
    a->v[a->n++] = (struct log_aborted_txn){
        .producer_id = e->producer_id,
        .first_offset = e->first_offset,
    };
}

static int compare_aborted(const void *a, const void *b)
{
    const struct log_aborted_txn *x = a;
    const struct log_aborted_txn *y = b;

    if (x->first_offset != y->first_offset)
        return x->first_offset < y->first_offset ? -1 : 1;
    return x->producer_id < y->producer_id ? -1 : x->producer_id > y->producer_id;
}

/* Adds what overlaps from one segment's index; *done when no later entry can. */
static enum err scan_txnindex(struct segment *s, int64_t count, int64_t from, int64_t upto,
                              enum log_wait wait, struct aborted *a, bool *done)
{
    uint8_t p[TXNINDEX_ENTRY_BYTES];

    for (int64_t i = 0; i < count && !*done; i++) {
        struct txn_entry e;
        enum err err = read_fully(s->shared_txnindex, p, sizeof(p), i * TXNINDEX_ENTRY_BYTES, wait);
        if (err)
            return err == ERR_EOF ? ERR_CORRUPT : err;
        if (!txn_entry_get(p, &e))
            return ERR_CORRUPT;
        if (e.last_offset >= from && e.first_offset < upto)
            add_aborted(a, &e);
        *done = e.last_stable_offset >= upto;
    }
    return ERR_NONE;
}

enum err log_view_aborted(const struct log_view *v, int64_t from, int64_t upto, enum log_wait wait,
                          struct arena *arena, struct log_aborted_txn **out, int *n)
{
    struct aborted a = {.arena = arena};
    struct view_record r;
    bool done = false;

    *out = NULL;
    *n = 0;
    view_load(v, &r);
    if (r.bounds.is_gone)
        return ERR_KAFKA_STORAGE_ERROR;
    for (size_t i = view_segment_of(&r, from); i < r.list->n && !done; i++) {
        bool is_last = i + 1 == r.list->n;
        int64_t count = is_last ? r.tail.txn_count : r.list->v[i].txn_count;
        enum err err = scan_txnindex(r.list->v[i].segment, count, from, upto, wait, &a, &done);
        if (err)
            return wire_error(err);
    }
    if (a.n > 1)
        qsort(a.v, (size_t)a.n, sizeof(*a.v), compare_aborted);
    *out = a.v;
    *n = a.n;
    return ERR_NONE;
}
