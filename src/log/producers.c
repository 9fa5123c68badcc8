/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producer state: is this batch new, a repetition, or out of order (KIP-98, KIP-360)?
 *
 * A producer's state exists twice. The owner assigns offsets long before a batch is durable, and
 * the next batch of the same producer must be checked against it at once: that is `assigned`. If
 * the disk is full, appends are taken back; what then holds is `durable`, which follows the
 * completions of the journal in order. Both advance by the same function, so they differ by the
 * batches in flight and by nothing else.
 *
 * Transactions are kept once, ordered by first offset, because they carry the offsets by which they
 * can be taken back: one that began at or above the cut is removed, one whose marker lies there is
 * open again. A finished transaction stays until the high watermark has passed its marker: readers
 * of committed records may not see past its first offset before that.
 */
#include "log/producers_int.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/planted.h"

struct producer {
    int64_t id;
    struct producer_state assigned;
    struct producer_state durable;
    UT_hash_handle hh;
};

static const struct producer_state no_state = {
    .epoch = -1,
    .coordinator_epoch = -1,
    .last_timestamp = -1,
    .txn_first_offset = -1,
};

static struct producer *find(const struct producers *ps, int64_t id)
{
    struct producer *p;

    HASH_FIND(hh, ps->by_id, &id, sizeof(id), p);
    return p;
}

static struct producer *find_or_add(struct producers *ps, int64_t id)
{
    struct producer *p = find(ps, id);

    if (p)
        return p;
    p = xcalloc(1, sizeof(*p));
    p->id = id;
    p->assigned = no_state;
    p->durable = no_state;
    HASH_ADD(hh, ps->by_id, id, sizeof(p->id), p);
    return p;
}

static void forget(struct producers *ps, struct producer *p)
{
    HASH_DEL(ps->by_id, p);
    free(p);
}

void producers_init(struct producers *ps)
{
    *ps = (struct producers){.by_id = NULL, .forgotten_id = -1};
}

void producers_reset(struct producers *ps)
{
    struct producer *p, *next;

    HASH_ITER (hh, ps->by_id, p, next)
        forget(ps, p);
    ps->txn_count = 0;
}

void producers_forget_all(struct producers *ps)
{
    producers_reset(ps);
    ps->forgotten_id = INT64_MAX;
}

void producers_fini(struct producers *ps)
{
    producers_reset(ps);
    free(ps->txns);
    *ps = (struct producers){.by_id = NULL};
}

size_t producers_count(const struct producers *ps)
{
    return HASH_COUNT(ps->by_id);
}

int64_t producers_id_max(const struct producers *ps)
{
    struct producer *p, *next;
    int64_t max = -1;

    HASH_ITER (hh, ps->by_id, p, next)
        max = MAX(max, p->id);
    return max;
}

/* ---- Checks ----------------------------------------------------------------------------- */

static int32_t last_sequence(const struct producer_state *s)
{
    return s->batch_count > 0 ? s->batches[s->batch_count - 1].last_sequence : -1;
}

static int64_t last_offset(const struct producer_state *s)
{
    return s->batch_count > 0 ? s->batches[s->batch_count - 1].last_offset : -1;
}

/* Sequences wrap from 2147483647 to 0. */
static int32_t sequence_after(int32_t sequence)
{
    return sequence == INT32_MAX ? 0 : sequence + 1;
}

static int32_t first_sequence(const struct producer_batch *b)
{
    return (int32_t)(((uint32_t)b->last_sequence - (uint32_t)b->offset_delta) & INT32_MAX);
}

static bool find_duplicate(const struct producer_state *s, const struct producer_event *e,
                           struct producer_duplicate *out)
{
    if (e->is_marker || s->epoch != e->epoch || e->base_sequence < 0)
        return false;
    for (int i = 0; i < s->batch_count; i++) {
        const struct producer_batch *b = &s->batches[i];
        if (b->last_sequence == e->last_sequence && first_sequence(b) == e->base_sequence) {
            out->found = true;
            out->base_offset = b->last_offset - b->offset_delta;
            out->last_offset = b->last_offset;
            return true;
        }
    }
    return false;
}

static enum err check_sequence(const struct producers *ps, const struct producer_state *s,
                               const struct producer_event *e)
{
    if (s->epoch < 0 && (e->producer_id <= ps->forgotten_id || PLANTED(BEGIN_ANYWHERE)))
        return ERR_NONE;
    if (s->epoch != e->epoch)
        return e->base_sequence == 0 ? ERR_NONE : ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    if (e->base_sequence != sequence_after(last_sequence(s)))
        return ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    return ERR_NONE;
}

static enum err check_data(const struct producers *ps, const struct producer_state *s,
                           const struct producer_event *e, enum log_origin origin)
{
    enum err err = ERR_NONE;

    if (origin == LOG_ORIGIN_CLIENT)
        err = check_sequence(ps, s, e);
    if (!err && s->txn_first_offset >= 0 && !e->is_transactional)
        err = ERR_INVALID_TXN_STATE;
    return err;
}

enum err producers_check(const struct producers *ps, const struct producer_event *e,
                         enum log_origin origin, struct producer_duplicate *duplicate)
{
    const struct producer *p = e->producer_id >= 0 ? find(ps, e->producer_id) : NULL;
    const struct producer_state *s = p ? &p->assigned : &no_state;

    *duplicate = (struct producer_duplicate){.found = false};
    if (e->producer_id < 0 || origin == LOG_ORIGIN_REPLICATION)
        return ERR_NONE; /* A follower copies what the leader has checked. */
    if (origin == LOG_ORIGIN_CLIENT && !PLANTED(NO_DUPLICATE_CHECK) &&
        find_duplicate(s, e, duplicate))
        return ERR_NONE;
    if (e->epoch < s->epoch)
        return ERR_INVALID_PRODUCER_EPOCH;
    if (!e->is_marker)
        return check_data(ps, s, e, origin);
    if (e->coordinator_epoch < s->coordinator_epoch)
        return ERR_TRANSACTION_COORDINATOR_FENCED;
    return ERR_NONE;
}

/* ---- Changes ---------------------------------------------------------------------------- */

static void add_batch(struct producer_state *s, const struct producer_event *e)
{
    if (s->batch_count == (PLANTED(KEEP_ONE_BATCH) ? 1 : PRODUCER_BATCHES_KEPT)) {
        memmove(&s->batches[0], &s->batches[1], sizeof(s->batches) - sizeof(s->batches[0]));
        s->batch_count--;
    }
    s->batches[s->batch_count++] = (struct producer_batch){
        .last_sequence = e->last_sequence,
        .offset_delta = (int32_t)(e->last_offset - e->base_offset),
        .last_offset = e->last_offset,
        .timestamp = e->timestamp,
    };
}

static void advance(struct producer_state *s, const struct producer_event *e)
{
    if (e->epoch > s->epoch) {
        s->epoch = e->epoch;
        s->batch_count = 0;
    }
    s->last_timestamp = e->timestamp;
    if (e->is_marker) {
        s->coordinator_epoch = e->coordinator_epoch;
        s->txn_first_offset = -1;
        return;
    }
    if (e->base_sequence >= 0)
        add_batch(s, e);
    if (e->is_transactional && s->txn_first_offset < 0)
        s->txn_first_offset = e->base_offset;
}

static void txn_push(struct producers *ps, int64_t id, int64_t first_offset)
{
    size_t at = ps->txn_count;

    if (ps->txn_count == ps->txn_cap) {
        ps->txn_cap = ps->txn_cap ? 2 * ps->txn_cap : 8;
        ps->txns = xreallocarray(ps->txns, ps->txn_cap, sizeof(*ps->txns));
    }
    while (at > 0 && ps->txns[at - 1].first_offset > first_offset)
        at--;
    memmove(&ps->txns[at + 1], &ps->txns[at], (ps->txn_count - at) * sizeof(*ps->txns));
    ps->txns[at] = (struct txn_span){
        .producer_id = id,
        .first_offset = first_offset,
        .marker_offset = -1,
    };
    ps->txn_count++;
}

static void txn_finish(struct producers *ps, int64_t first_offset, int64_t marker_offset)
{
    for (size_t i = 0; i < ps->txn_count; i++) {
        if (ps->txns[i].first_offset == first_offset)
            ps->txns[i].marker_offset = marker_offset;
    }
}

static int64_t assign(struct producers *ps, struct producer *p, const struct producer_event *e)
{
    int64_t first = p->assigned.txn_first_offset;

    advance(&p->assigned, e);
    if (e->is_marker && first >= 0) {
        txn_finish(ps, first, e->last_offset);
        return first;
    }
    if (first < 0 && p->assigned.txn_first_offset >= 0)
        txn_push(ps, p->id, p->assigned.txn_first_offset);
    return -1;
}

int64_t producers_assign(struct producers *ps, const struct producer_event *e)
{
    return e->producer_id < 0 ? -1 : assign(ps, find_or_add(ps, e->producer_id), e);
}

void producers_commit(struct producers *ps, const struct producer_event *e)
{
    if (e->producer_id >= 0)
        advance(&find_or_add(ps, e->producer_id)->durable, e);
}

int64_t producers_replay(struct producers *ps, const struct producer_event *e)
{
    int64_t first = producers_assign(ps, e);

    producers_commit(ps, e);
    return first;
}

static void txns_take_back(struct producers *ps, int64_t offset)
{
    while (ps->txn_count > 0 && ps->txns[ps->txn_count - 1].first_offset >= offset)
        ps->txn_count--;
    for (size_t i = 0; i < ps->txn_count; i++) {
        if (ps->txns[i].marker_offset >= offset)
            ps->txns[i].marker_offset = -1;
    }
}

void producers_take_back(struct producers *ps, int64_t offset)
{
    struct producer *p, *next;

    HASH_ITER (hh, ps->by_id, p, next) {
        p->assigned = p->durable;
        if (p->durable.epoch < 0)
            forget(ps, p);
    }
    txns_take_back(ps, offset);
}

/* ---- Stability -------------------------------------------------------------------------- */

int64_t producers_first_unstable(struct producers *ps, int64_t high_watermark)
{
    size_t kept = 0;

    for (size_t i = 0; i < ps->txn_count; i++) {
        const struct txn_span *t = &ps->txns[i];
        if (t->marker_offset < 0 || t->marker_offset >= high_watermark)
            ps->txns[kept++] = *t;
    }
    ps->txn_count = kept;
    return kept > 0 ? ps->txns[0].first_offset : INT64_MAX;
}

int64_t producers_first_open(const struct producers *ps)
{
    for (size_t i = 0; i < ps->txn_count; i++) {
        if (ps->txns[i].marker_offset < 0)
            return ps->txns[i].first_offset;
    }
    return INT64_MAX;
}

static bool is_in_flight(const struct producer *p)
{
    const struct producer_state *a = &p->assigned;
    const struct producer_state *d = &p->durable;

    if (a->epoch != d->epoch || a->batch_count != d->batch_count ||
        a->coordinator_epoch != d->coordinator_epoch || a->last_timestamp != d->last_timestamp)
        return true;
    return last_offset(a) != last_offset(d);
}

void producers_expire(struct producers *ps, int64_t now_ms, int64_t expiration_ms)
{
    struct producer *p, *next;

    HASH_ITER (hh, ps->by_id, p, next) {
        const struct producer_state *s = &p->assigned;
        if (s->txn_first_offset < 0 && !is_in_flight(p) &&
            now_ms - s->last_timestamp >= expiration_ms) {
            ps->forgotten_id = MAX(ps->forgotten_id, p->id);
            forget(ps, p);
        }
    }
}

/* ---- Snapshots -------------------------------------------------------------------------- */

void producers_each_durable(const struct producers *ps,
                            void (*fn)(void *ctx, int64_t id, const struct producer_state *s),
                            void *ctx)
{
    struct producer *p, *next;

    HASH_ITER (hh, ps->by_id, p, next) {
        if (p->durable.epoch >= 0)
            fn(ctx, p->id, &p->durable);
    }
}

void producers_each_assigned(const struct producers *ps,
                             void (*fn)(void *ctx, int64_t id, const struct producer_state *s),
                             void *ctx)
{
    struct producer *p, *next;

    HASH_ITER (hh, ps->by_id, p, next)
        fn(ctx, p->id, &p->assigned);
}

bool producers_restore(struct producers *ps, int64_t id, const struct producer_state *s)
{
    struct producer *p;

    if (find(ps, id))
        return false;
    p = find_or_add(ps, id);
    p->assigned = *s;
    p->durable = *s;
    if (s->txn_first_offset >= 0)
        txn_push(ps, id, s->txn_first_offset);
    return true;
}

/* Batches of `past` that lie before those of `s` go in front of them, as many as are kept. */
static void remember(struct producer_state *s, const struct producer_state *past, int64_t end)
{
    struct producer_batch v[2 * PRODUCER_BATCHES_KEPT];
    int64_t first = s->batch_count > 0 ? s->batches[0].last_offset : end;
    int32_t n = 0;

    for (int32_t i = 0; i < past->batch_count; i++)
        if (past->batches[i].last_offset < first)
            v[n++] = past->batches[i];
    for (int32_t i = 0; i < s->batch_count; i++)
        v[n++] = s->batches[i];
    s->batch_count = MIN(n, PRODUCER_BATCHES_KEPT);
    memcpy(s->batches, &v[n - s->batch_count], (size_t)s->batch_count * sizeof(v[0]));
}

void producers_remember(struct producers *ps, const struct producers *past, int64_t end)
{
    struct producer *p, *next;

    HASH_ITER (hh, ps->by_id, p, next) {
        const struct producer *q = find(past, p->id);

        if (!q || q->durable.epoch != p->durable.epoch)
            continue;
        remember(&p->durable, &q->durable, end);
        p->assigned = p->durable;
    }
    ps->forgotten_id = past->forgotten_id;
    HASH_ITER (hh, past->by_id, p, next)
        if (!find(ps, p->id) && last_offset(&p->durable) < end)
            ps->forgotten_id = MAX(ps->forgotten_id, p->id);
}

void producers_learn(struct producers *ps, const struct producers *later, int64_t end)
{
    struct producer *p, *next;

    producers_remember(ps, later, end);
    HASH_ITER (hh, later->by_id, p, next)
        if (!find(ps, p->id))
            ps->forgotten_id = MAX(ps->forgotten_id, p->id);
}

bool producers_agree(const struct producers *a, const struct producers *b)
{
    struct producer *p, *next;

    if (producers_count(a) != producers_count(b))
        return false;
    HASH_ITER (hh, a->by_id, p, next) {
        const struct producer *q = find(b, p->id);
        if (!q || q->durable.epoch != p->durable.epoch ||
            last_sequence(&q->durable) != last_sequence(&p->durable) ||
            last_offset(&q->durable) != last_offset(&p->durable))
            return false;
    }
    return true;
}
