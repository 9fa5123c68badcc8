/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shards share: one published record per log, written by its owner, read by anybody. All
 * atomics of this module stand here (and in the counts of segments).
 *
 * The record is a sequence lock. The writer makes the sequence odd, stores the words, and makes it
 * even; a reader that saw an odd sequence, or another one after than before, reads again. The words
 * are stored with release and loaded with acquire order, which makes fences unnecessary: if a
 * reader loads any word of a later record, it also sees that record's odd sequence in its second
 * look.
 *
 * One of the words is the pointer to the immutable list of segments, so a reader has offsets and
 * segments that fit. A list that is replaced is retired: it is freed when every loop has finished
 * the turn in which it may have found the list. A job outlives turns, so it holds a reference
 * (log_snapshot), taken on a loop.
 */
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "log/log_int.h"

#define RECORD_WORDS ((sizeof(struct view_record) + 7) / 8)

struct log_view {
    _Alignas(CACHE_LINE_BYTES) _Atomic uint32_t sequence;
    _Atomic uint64_t words[RECORD_WORDS];
    struct segment_list *list; /* the owner's copy of the pointer in the record */
    struct io_retired retired;
};

struct log_snapshot {
    struct log_view view; /* never changes */
};

/* ---- Lists of segments ------------------------------------------------------------------ */

struct segment_list *segment_list_new(const struct segment_span *v, size_t n)
{
    struct segment_list *l = xmalloc(sizeof(*l) + n * sizeof(*v));

    assert(n > 0);
    atomic_init(&l->refs, 1);
    l->n = n;
    memcpy(l->v, v, n * sizeof(*v));
    for (size_t i = 0; i < n; i++)
        segment_ref(l->v[i].segment);
    return l;
}

struct segment_list *segment_list_ref(struct segment_list *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void segment_list_unref(struct segment_list *l)
{
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < l->n; i++)
        segment_unref(l->v[i].segment);
    free(l);
}

static void free_retired_list(struct io_retired *r)
{
    segment_list_unref(CONTAINER_OF(r, struct segment_list, retired));
}

/* ---- The record ------------------------------------------------------------------------- */

static void store(struct log_view *v, const struct view_record *r)
{
    uint64_t words[RECORD_WORDS] = {0};
    uint32_t sequence = atomic_load_explicit(&v->sequence, memory_order_relaxed);

    memcpy(words, r, sizeof(*r));
    atomic_store_explicit(&v->sequence, sequence + 1, memory_order_relaxed);
    for (size_t i = 0; i < RECORD_WORDS; i++)
        atomic_store_explicit(&v->words[i], words[i], memory_order_release);
    atomic_store_explicit(&v->sequence, sequence + 2, memory_order_release);
}

void view_load(const struct log_view *v, struct view_record *out)
{
    uint64_t words[RECORD_WORDS];
    uint32_t before, after;

    do {
        before = atomic_load_explicit(&v->sequence, memory_order_acquire);
        for (size_t i = 0; i < RECORD_WORDS; i++)
            words[i] = atomic_load_explicit(&v->words[i], memory_order_acquire);
        after = atomic_load_explicit(&v->sequence, memory_order_relaxed);
    } while (before != after || before % 2 != 0);
    memcpy(out, words, sizeof(*out));
}

struct log_view *view_new(void)
{
    struct log_view *v = NULL;
    size_t size = (sizeof(*v) + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;

    v = aligned_alloc(CACHE_LINE_BYTES, size);
    assert(v);
    memset(v, 0, size);
    return v;
}

void view_publish(struct log_view *v, const struct view_record *r, struct io_loop *loop)
{
    struct segment_list *old = v->list;

    store(v, r);
    v->list = r->list;
    if (old && old != r->list) {
        old->retired.free_fn = free_retired_list;
        io_retire(loop, &old->retired);
    }
}

static void free_retired_view(struct io_retired *r)
{
    struct log_view *v = CONTAINER_OF(r, struct log_view, retired);

    segment_list_unref(v->list);
    free(v);
}

void view_retire(struct log_view *v, struct io_loop *loop)
{
    v->retired.free_fn = free_retired_view;
    io_retire(loop, &v->retired);
}

void log_view_bounds(const struct log_view *v, struct log_bounds *out)
{
    struct view_record r;

    view_load(v, &r);
    *out = r.bounds;
}

struct segment_extent view_extent(const struct view_record *r, size_t i)
{
    const struct segment_span *s = &r->list->v[i];

    if (i + 1 == r->list->n)
        return (struct segment_extent){
            .segment = s->segment,
            .size = r->tail.size,
            .index_count = r->tail.index_count,
            .time_count = r->tail.time_count,
        };
    return (struct segment_extent){
        .segment = s->segment,
        .size = s->size,
        .index_count = s->index_count,
        .time_count = s->time_count,
    };
}

void log_view_size(const struct log_view *v, int64_t *bytes, int64_t *segments)
{
    struct view_record r;

    view_load(v, &r);
    *bytes = 0;
    *segments = (int64_t)r.list->n;
    for (size_t i = 0; i < r.list->n; i++)
        *bytes += view_extent(&r, i).size;
}

size_t view_segment_of(const struct view_record *r, int64_t offset)
{
    size_t low = 0;
    size_t high = r->list->n;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (r->list->v[middle].segment->base_offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- Snapshots -------------------------------------------------------------------------- */

struct log_snapshot *log_snapshot_take(const struct log_view *v)
{
    struct log_view *copy = view_new();
    struct view_record r;

    static_assert(sizeof(struct log_snapshot) == sizeof(struct log_view), "one is the other");
    assert(io_loop_current());
    view_load(v, &r);
    store(copy, &r);
    copy->list = segment_list_ref(r.list);
    return CONTAINER_OF(copy, struct log_snapshot, view);
}

void log_snapshot_free(struct log_snapshot *s)
{
    if (!s)
        return;
    segment_list_unref(s->view.list);
    free(s);
}

const struct log_view *log_snapshot_view(const struct log_snapshot *s)
{
    return &s->view;
}
