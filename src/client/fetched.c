/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fetch brings for one partition: whole batches as they are stored, the first of which may
 * begin before the offset that was asked for, and the last of which may be cut.
 *
 * Aborted transactions (KIP-98): the broker names those that overlap, with producer and first
 * offset. Going through the batches in order, a producer is in an aborted transaction from that
 * offset on until its abort marker. The position moves over everything that is left out, so that it
 * always says what has been dealt with.
 */
#include "base/assert.h"
#include "client/consumer_int.h"

/* ---- Producers in an aborted transaction. */

static void add_aborted(struct consumer *c, int64_t producer_id)
{
    if (c->aborted_n == c->aborted_cap) {
        c->aborted_cap = MAX(8, c->aborted_cap * 2);
        c->aborted = xreallocarray(c->aborted, (size_t)c->aborted_cap, sizeof(*c->aborted));
    }
    c->aborted[c->aborted_n++] = producer_id;
}

static bool is_aborted(const struct consumer *c, int64_t producer_id)
{
    for (int32_t i = 0; i < c->aborted_n; i++)
        if (c->aborted[i] == producer_id)
            return true;
    return false;
}

static void end_aborted(struct consumer *c, int64_t producer_id)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < c->aborted_n; i++)
        if (c->aborted[i] != producer_id)
            c->aborted[kept++] = c->aborted[i];
    c->aborted_n = kept;
}

/* Transactions that begin at or before `offset`; each is taken off the response once. */
static void begin_aborted(struct consumer *c, struct fetch_response_partition *r, int64_t offset)
{
    for (int32_t i = 0; i < r->aborted_transactions.n; i++) {
        struct fetch_response_aborted_transaction *t = &r->aborted_transactions.v[i];

        if (t->first_offset > offset)
            continue;
        add_aborted(c, t->producer_id);
        t->first_offset = INT64_MAX;
    }
}

static bool is_abort_marker(struct consumer *c, struct bytes batch)
{
    struct control_marker marker;
    struct record r;

    return !record_iter_batch(&c->iter, batch) && !record_iter_next(&c->iter, &r) &&
           !control_marker_parse(&r, &marker) && marker.type == CONTROL_ABORT;
}

/* Whether the reader gets this batch. */
static bool is_wanted(struct consumer *c, struct fetch_response_partition *r, struct bytes batch,
                      const struct batch_header *h)
{
    if (c->config.isolation_level == READ_COMMITTED && h->producer_id >= 0) {
        begin_aborted(c, r, batch_last_offset(h));
        if (batch_is_control(h) && is_abort_marker(c, batch))
            end_aborted(c, h->producer_id);
        else if (batch_is_transactional(h) && is_aborted(c, h->producer_id))
            return false;
    }
    return !batch_is_control(h) && h->record_count > 0;
}

/* ---- Batches. */

static void hand_out(struct assignment *a, struct consumer *c, struct bytes batch,
                     const struct batch_header *h, const struct fetch_response_partition *r)
{
    struct consumer_batch b = {
        .topic = str_of(a->topic),
        .partition = a->partition,
        .from_offset = a->position,
        .batch = batch,
        .header = *h,
        .high_watermark = r->high_watermark,
        .log_start = r->log_start_offset,
    };

    c->events.batch(c->ctx, &b);
}

/* One batch at the start of `in`; *used = 0: it is cut, or there is none. */
static enum err take_batch(struct assignment *a, struct consumer *c,
                           struct fetch_response_partition *r, struct bytes in, int32_t *used)
{
    struct batch_header h;
    struct bytes batch = in;
    int32_t total;
    enum err err = batch_frame(in, &total);

    *used = 0;
    if (err == ERR_AGAIN || (!err && total > in.n))
        return ERR_NONE;
    if (err)
        return err;
    batch.n = total;
    err = batch_header_parse(batch, &h);
    if (!err && c->config.check_crcs && !batch_crc_ok(batch))
        err = ERR_CORRUPT_MESSAGE;
    if (err)
        return err;
    *used = total;
    if (batch_last_offset(&h) < a->position)
        return ERR_NONE;
    if (is_wanted(c, r, batch, &h))
        hand_out(a, c, batch, &h, r);
    if (!a->is_moved)
        a->position = batch_last_offset(&h) + 1;
    return ERR_NONE;
}

static int64_t end_of(const struct consumer *c, const struct fetch_response_partition *r)
{
    return c->config.isolation_level == READ_COMMITTED && r->last_stable_offset >= 0
               ? r->last_stable_offset
               : r->high_watermark;
}

enum err consumer__deliver(struct assignment *a, struct consumer *c,
                           struct fetch_response_partition *r)
{
    struct bytes left = r->records.b;
    int32_t used = 0;
    enum err err = ERR_NONE;

    c->aborted_n = 0;
    while (left.n > 0 && !err && !a->is_moved && !a->is_paused) {
        err = take_batch(a, c, r, left, &used);
        left.p += used;
        left.n -= used;
        if (!used)
            break;
    }
    if (!err && !a->is_moved && a->position >= end_of(c, r))
        c->events.caught_up(c->ctx, str_of(a->topic), a->partition, a->position);
    return err;
}
