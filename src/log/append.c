/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending: from a validated batch to an operation of the journal, on the owner's loop, without a
 * system call.
 *
 * An append gives the batch its offsets and its place in the active segment at once; the files
 * follow. So there are two ends of everything: what was assigned (log->tail, the producers'
 * assigned part, the record's `end`) and what the journal has completed (the record's tail, the
 * durable part, `ack`). Operations complete in order, each carries the tail as it is after it, and
 * completing one copies that to the record.
 *
 * When the disk has no room the journal refuses an append and all that follow it. Then everything
 * assigned is taken back to what was completed: that is the other end, so nothing has to be undone
 * step by step. A truncation through the journal cleans the files up and lets the log go on.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/planted.h"
#include "base/rng.h"
#include "log/log_int.h"

/* ---- Producers' events ------------------------------------------------------------------ */

static enum err read_marker(struct bytes batch, struct producer_event *out)
{
    struct control_marker marker;
    struct record_iter it;
    struct record record;
    enum err err;

    record_iter_init(&it);
    err = record_iter_batch(&it, batch);
    if (!err)
        err = record_iter_next(&it, &record);
    if (!err)
        err = control_marker_parse(&record, &marker);
    record_iter_fini(&it);
    if (err)
        return err;
    if (marker.type != CONTROL_ABORT && marker.type != CONTROL_COMMIT) {
        out->producer_id = -1; /* A control record of another kind is no producer's. */
        return ERR_NONE;
    }
    out->is_abort = marker.type == CONTROL_ABORT;
    out->coordinator_epoch = marker.coordinator_epoch;
    return ERR_NONE;
}

enum err producer_event_of(struct bytes batch, const struct batch_header *h,
                           struct producer_event *out)
{
    *out = (struct producer_event){
        .producer_id = h->producer_id,
        .epoch = h->producer_epoch,
        .is_transactional = batch_is_transactional(h),
        .is_marker = batch_is_control(h),
        .coordinator_epoch = -1,
        .base_sequence = h->base_sequence,
        .last_sequence = batch_last_sequence(h),
        .base_offset = h->base_offset,
        .last_offset = batch_last_offset(h),
        .timestamp = h->max_timestamp,
    };
    if (h->producer_id < 0 || h->producer_epoch < 0 || !out->is_marker) {
        out->producer_id = h->producer_epoch < 0 ? -1 : h->producer_id;
        return ERR_NONE;
    }
    return h->record_count > 0 ? read_marker(batch, out) : ERR_NONE;
}

/* ---- Operations ------------------------------------------------------------------------- */

static struct append_op *append_op_new(struct log *log)
{
    struct append_op *a = log->free_appends;

    if (!a)
        return xcalloc(1, sizeof(*a));
    log->free_appends = a->next_free;
    return a;
}

static void append_op_free(struct append_op *a)
{
    struct log *log = a->op.log;

    io_buf_unref(a->buf);
    a->buf = NULL;
    a->next_free = log->free_appends;
    log->free_appends = a;
}

static void append_finish(struct log_op *op)
{
    struct append_op *a = CONTAINER_OF(op, struct append_op, op);
    struct log *log = op->log;

    if (!op->journal.err && log->state != LOG_STATE_FAILED) {
        log->record.acked_bytes += (int64_t)op->journal.data.n;
        log->record.tail = a->after;
        log->record.bounds.ack = a->next_offset;
        producers_commit(&log->producers, &a->event);
    } else if (op->journal.err == ERR_NO_SPACE) {
        log_take_back(log);
    } else {
        log_fail(log, op->journal.err);
    }
    append_op_free(a);
}

static void add_side(struct append_op *a, struct io_file *const *file, int64_t pos, const void *p,
                     size_t n)
{
    struct journal_op *j = &a->op.journal;

    assert(j->side_count < JOURNAL_SIDE_WRITES_MAX);
    j->side[j->side_count++] = (struct journal_write){.file = file, .pos = pos, .p = p, .n = n};
}

/* ---- Rolling ---------------------------------------------------------------------------- */

struct roll_op {
    struct log_op op;
    struct segment *closed; /* references */
    struct segment *opened;
    int64_t closed_size;
    bool has_time_entry;
    int64_t time_pos;
    uint8_t time_entry[TIMEINDEX_ENTRY_BYTES];
};

/*
 * On the lane: the last time index entry of the old segment, and the files of the new one. The old
 * one gives back the space that the journal has reserved behind its end. The entry is synced: the
 * recovery point may already stand behind the segment, whose indexes a load then believes, and
 * zeros in the place of its newest record's time would be older than any retention.
 */
static enum err roll_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);
    struct roll_op *r = CONTAINER_OF(op, struct roll_op, op);
    struct iovec iov = {.iov_base = r->time_entry, .iov_len = sizeof(r->time_entry)};
    enum err err = ERR_NONE;

    if (r->has_time_entry)
        err = io_file_write(r->closed->timeindex, &iov, 1, r->time_pos);
    if (!err && r->has_time_entry)
        err = io_file_sync(r->closed->timeindex);
    if (!err)
        err = io_file_truncate(r->closed->log, r->closed_size);
    if (!err)
        err = segment_create_files(r->opened, io, op->log->path);
    return err || PLANTED(SKIP_DIRECTORY_SYNC) ? err : io_dir_sync(io, op->log->path);
}

static void roll_finish(struct log_op *op)
{
    struct roll_op *r = CONTAINER_OF(op, struct roll_op, op);
    struct log *log = op->log;

    if (!op->journal.err && log->state != LOG_STATE_FAILED) {
        log->acked_segments++;
        assert(log->acked_segments <= log->segment_count);
        segment_tail_init(&log->record.tail);
        log_add_unsaved(log, r->closed, r->opened->base_offset);
        log->record.list = NULL; /* log_publish makes a new one */
    } else if (op->journal.err == ERR_NO_SPACE) {
        log_take_back(log);
    } else {
        log_fail(log, op->journal.err);
    }
    segment_unref(r->closed);
    segment_unref(r->opened);
    free(r);
}

/* Segments that were filled at the same pace should not roll at the same moment. */
static int64_t new_jitter(struct log *log)
{
    int64_t range = MIN(log->config.segment_jitter_ms, log->config.segment_ms);
    uint64_t random;

    if (range <= 0)
        return 0;
    io_random(log->io, &random, sizeof(random));
    struct rng rng = rng_seeded(random);
    return (int64_t)rng_below(&rng, (uint64_t)range);
}

void log_roll(struct log *log, int64_t base_offset, int64_t now_ms)
{
    struct roll_op *r = xcalloc(1, sizeof(*r));
    struct segment_span *active = &log->segments[log->segment_count - 1];

    r->op.finish = roll_finish;
    r->op.journal.kind = JOURNAL_ROLL;
    r->op.journal.apply = roll_apply;
    r->time_pos = log->tail.time_count * TIMEINDEX_ENTRY_BYTES;
    r->has_time_entry =
        segment_tail_finish(&log->tail, active->segment->base_offset, r->time_entry);
    active->size = r->closed_size = log->tail.size;
    active->index_count = log->tail.index_count;
    active->time_count = log->tail.time_count;
    active->txn_count = log->tail.txn_count;
    active->max_timestamp = log->tail.max_timestamp;
    active->first_timestamp = log->tail.first_timestamp;
    r->closed = segment_ref(active->segment);
    r->opened = segment_new(base_offset);
    log_push_segment(log, segment_ref(r->opened));
    segment_tail_init(&log->tail);
    log->segment_opened_ms = now_ms;
    log->roll_jitter_ms = new_jitter(log);
    if (PLANTED(FORGET_PRODUCERS_AT_ROLL))
        producers_reset(&log->producers);
    log_submit(log, &r->op);
}

static int64_t segment_ms(const struct topic_config *c)
{
    if (c->cleanup_policy & TOPIC_CLEANUP_COMPACT)
        return MIN(c->segment_ms, c->max_compaction_lag_ms);
    return c->segment_ms;
}

/* By record time, as Kafka does: an idle partition never rolls. */
static bool has_waited(const struct log *log, const struct log_append *a)
{
    int64_t first = log->tail.first_timestamp;
    int64_t waited = first >= 0 ? a->max_timestamp - first : a->now_ms - log->segment_opened_ms;

    return log->tail.size > 0 && waited > segment_ms(&log->config) - log->roll_jitter_ms;
}

static bool wants_roll(const struct log *log, const struct log_append *a, int64_t last_offset)
{
    const struct topic_config *c = &log->config;
    int64_t base = log->segments[log->segment_count - 1].segment->base_offset;

    if (last_offset - base > INT32_MAX)
        return true;
    if (log->tail.size == 0)
        return false;
    return log->tail.size > (int64_t)c->segment_bytes - a->n || has_waited(log, a) ||
           log->tail.index_count >= c->segment_index_bytes / INDEX_ENTRY_BYTES ||
           log->tail.time_count >= c->segment_index_bytes / TIMEINDEX_ENTRY_BYTES - 1;
}

/* ---- Transaction index ------------------------------------------------------------------ */

static enum err txnindex_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);
    struct roll_op *r = CONTAINER_OF(op, struct roll_op, op);

    return segment_create_txnindex(r->opened, io, op->log->path);
}

static void txnindex_finish(struct log_op *op)
{
    struct roll_op *r = CONTAINER_OF(op, struct roll_op, op);

    if (op->journal.err == ERR_NO_SPACE)
        log_take_back(op->log);
    else if (op->journal.err)
        log_fail(op->log, op->journal.err);
    else
        r->opened->shared_txnindex = r->opened->txnindex;
    segment_unref(r->opened);
    free(r);
}

/* The first abort of a segment makes its file, ahead of the append with the entry. */
static void submit_txnindex(struct log *log, struct segment *s)
{
    struct roll_op *r = xcalloc(1, sizeof(*r));

    r->op.finish = txnindex_finish;
    r->op.journal.kind = JOURNAL_ROLL;
    r->op.journal.apply = txnindex_apply;
    r->opened = segment_ref(s);
    log_submit(log, &r->op);
}

/* ---- Append ----------------------------------------------------------------------------- */

static enum err check_state(const struct log *log, const struct log_append *a)
{
    if (log->state == LOG_STATE_FAILED || journal_has_failed(log->journal))
        return ERR_FAILED_DIR;
    if (log->state == LOG_STATE_ENDING)
        return ERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (log->state == LOG_STATE_TRUNCATING)
        return ERR_AGAIN;
    if (log->is_taking_back || !journal_has_space(log->journal))
        return ERR_NO_SPACE;
    if (log->record.is_damaged)
        return ERR_KAFKA_STORAGE_ERROR;
    if (a->origin != LOG_ORIGIN_REPLICATION && a->n > log->config.segment_bytes)
        return ERR_RECORD_LIST_TOO_LARGE;
    return ERR_NONE;
}

/* Sets the offsets of the batch in header and event; a follower's are the leader's. */
static enum err assign_offsets(struct log *log, struct log_append *a, struct batch_header *h)
{
    int64_t end = log->record.bounds.end;

    if (a->origin == LOG_ORIGIN_REPLICATION) {
        if (h->leader_epoch < epochs_at(&log->epochs, end - 1))
            return ERR_FENCED_LEADER_EPOCH;
        return h->base_offset >= end ? ERR_NONE : ERR_OFFSET_OUT_OF_RANGE;
    }
    if (end > INT64_MAX - 1 - h->last_offset_delta)
        return ERR_KAFKA_STORAGE_ERROR; /* Only damage takes a log to the end of all offsets. */
    h->base_offset = end;
    h->leader_epoch = a->leader_epoch;
    return ERR_NONE;
}

static void add_index_entries(struct log *log, struct append_op *op, struct segment *s,
                              const struct batch_extent *extent)
{
    int64_t index_pos = log->tail.index_count * INDEX_ENTRY_BYTES;
    int64_t time_pos = log->tail.time_count * TIMEINDEX_ENTRY_BYTES;

    segment_tail_add(&log->tail, s->base_offset, extent, log->config.index_interval_bytes,
                     &op->entries);
    if (op->entries.has_index)
        add_side(op, &s->index, index_pos, op->entries.index, INDEX_ENTRY_BYTES);
    if (op->entries.has_time)
        add_side(op, &s->timeindex, time_pos, op->entries.time, TIMEINDEX_ENTRY_BYTES);
}

static void add_txn_entry(struct log *log, struct append_op *op, struct segment *s,
                          int64_t first_offset)
{
    int64_t open = producers_first_open(&log->producers);
    struct txn_entry entry = {
        .producer_id = op->event.producer_id,
        .first_offset = first_offset,
        .last_offset = op->event.last_offset,
        .last_stable_offset = MIN(open, op->event.last_offset + 1),
    };

    txn_entry_put(op->txn_entry, &entry);
    add_side(op, &s->txnindex, log->tail.txn_count * TXNINDEX_ENTRY_BYTES, op->txn_entry,
             TXNINDEX_ENTRY_BYTES);
    log->tail.txn_count++;
}

static bool aborts_open_txn(const struct log *log, const struct producer_event *e)
{
    if (!e->is_abort || e->producer_id < 0)
        return false;
    for (size_t i = 0; i < log->producers.txn_count; i++) {
        const struct txn_span *t = &log->producers.txns[i];
        if (t->producer_id == e->producer_id && t->marker_offset < 0)
            return true;
    }
    return false;
}

/* By default every append; without flush.on.ack when flush.messages have gathered. */
static bool wants_sync(struct log *log, const struct batch_extent *extent, int64_t base_offset)
{
    log->unflushed_messages += extent->last_offset - base_offset + 1;
    if (!log->config.flush_on_ack && log->unflushed_messages < log->config.flush_messages) {
        log_arm_flush(log);
        return false;
    }
    log->unflushed_messages = 0;
    return true;
}

/* Everything is checked: the batch gets its place. */
static void place_batch(struct log *log, const struct log_append *a, const struct batch_header *h,
                        const struct producer_event *event)
{
    struct segment *s = log->segments[log->segment_count - 1].segment;
    bool is_abort = aborts_open_txn(log, event);
    struct append_op *op;
    struct batch_extent extent = {
        .last_offset = batch_last_offset(h),
        .max_timestamp = a->max_timestamp,
        .bytes = a->n,
    };

    if (is_abort && log->tail.txn_count == 0 && !s->shared_txnindex)
        submit_txnindex(log, s);
    op = append_op_new(log);
    op->op.finish = append_finish;
    op->buf = io_buf_ref(a->buf);
    op->event = *event;
    op->next_offset = batch_last_offset(h) + 1;
    op->op.journal = (struct journal_op){
        .kind = JOURNAL_APPEND,
        .sync = wants_sync(log, &extent, h->base_offset),
        .data = {.file = &s->log, .pos = log->tail.size, .p = a->batch, .n = (size_t)a->n},
        .base_offset = h->base_offset,
        .leader_epoch = h->leader_epoch,
    };
    add_index_entries(log, op, s, &extent);
    int64_t txn_first = producers_assign(&log->producers, event);
    if (is_abort)
        add_txn_entry(log, op, s, txn_first);
    op->after = log->tail;
    log->record.bounds.end = op->next_offset;
    log_submit(log, &op->op);
}

static void set_result(struct log_append *a, int64_t base, int64_t last, bool is_duplicate)
{
    a->base_offset = base;
    a->last_offset = last;
    a->is_duplicate = is_duplicate;
}

/* A follower may have led epochs in which nothing was written: its leader's records may be older
 * than these, and the history says under which epoch each record was written. */
static void note_epoch(struct log *log, enum log_origin origin, const struct batch_header *h)
{
    if (origin == LOG_ORIGIN_REPLICATION)
        log->epochs_dirty |= epochs_truncate_end(&log->epochs, h->base_offset);
    if (h->leader_epoch > epochs_latest(&log->epochs))
        log->epochs_dirty |= epochs_assign(&log->epochs, h->leader_epoch, h->base_offset);
}

enum err log_append(struct log *log, struct log_append *a)
{
    struct bytes batch = {.p = a->batch, .n = a->n};
    struct producer_duplicate duplicate;
    struct producer_event event;
    struct batch_header h;
    enum err err = check_state(log, a);

    set_result(a, -1, -1, false);
    if (!err)
        err = batch_header_parse(batch, &h);
    if (!err)
        err = assign_offsets(log, a, &h);
    if (!err)
        err = producer_event_of(batch, &h, &event);
    if (!err)
        err = producers_check(&log->producers, &event, a->origin, &duplicate);
    if (err)
        return err;
    if (duplicate.found) {
        set_result(a, duplicate.base_offset, duplicate.last_offset, true);
        return ERR_NONE;
    }
    if (wants_roll(log, a, batch_last_offset(&h)))
        log_roll(log, h.base_offset, a->now_ms);
    note_epoch(log, a->origin, &h);
    if (log->epochs_dirty)
        log_submit_epochs(log);
    if (a->origin != LOG_ORIGIN_REPLICATION)
        batch_stamp(a->batch, h.base_offset, h.leader_epoch);
    place_batch(log, a, &h, &event);
    set_result(a, h.base_offset, batch_last_offset(&h), false);
    log_publish(log);
    return ERR_NONE;
}

/* ---- No space --------------------------------------------------------------------------- */

struct cut_op {
    struct log_op op;
    struct segment *segment; /* a reference */
    struct segment_tail tail;
};

static enum err cut_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);
    struct cut_op *c = CONTAINER_OF(op, struct cut_op, op);
    enum err err = io_file_truncate(c->segment->log, c->tail.size);

    (void)io;
    return err ? err : segment_cut_indexes(c->segment, &c->tail);
}

static void cut_finish(struct log_op *op)
{
    struct cut_op *c = CONTAINER_OF(op, struct cut_op, op);
    struct log *log = op->log;

    log->is_taking_back = false;
    if (op->journal.err)
        log_fail(log, op->journal.err);
    segment_unref(c->segment);
    free(c);
}

/* An epoch that began among what was taken back begins at the end now. The file is written before
 * the next batch and not at once: it may be the file that finds no room. */
static void take_back_epochs(struct log *log, int64_t end)
{
    int32_t latest = epochs_latest(&log->epochs);

    if (!epochs_truncate_end(&log->epochs, end))
        return;
    epochs_assign(&log->epochs, latest, end);
    log->epochs_dirty = true;
}

void log_take_back(struct log *log)
{
    int64_t end = log->record.bounds.ack;
    struct cut_op *c;

    if (log->is_taking_back || log->state == LOG_STATE_FAILED)
        return; /* Already under way, or nobody minds any more. */
    log->is_taking_back = true;
    trace_warn("log.no_space", "topic=%s partition=%d from=%lld to=%lld", log->topic,
               log->partition, (long long)log->record.bounds.end, (long long)end);
    log_drop_segments(log, log->acked_segments);
    log->tail = log->record.tail;
    log->record.bounds.end = end;
    producers_take_back(&log->producers, end);
    c = xcalloc(1, sizeof(*c));
    c->op.finish = cut_finish;
    c->op.journal.kind = JOURNAL_TRUNCATE;
    c->op.journal.apply = cut_apply;
    c->segment = segment_ref(log->segments[log->segment_count - 1].segment);
    c->tail = log->tail;
    log_submit(log, &c->op);
    take_back_epochs(log, end);
    log_publish(log);
    log->events.failed(log->ctx, ERR_NO_SPACE, end);
}
