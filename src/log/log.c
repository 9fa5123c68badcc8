/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a log on its owner's loop.
 *
 * Whatever changes files is an operation of the journal, whatever changes a checkpoint is a request
 * to the directory's checkpoint lane. Both answer on this loop, in order. The log counts what is
 * under way; requests that need the files for themselves (truncate, close, delete) refuse new
 * appends at once and wait until the count is zero:
 *
 *   OPEN --truncate--> TRUNCATING --done--> OPEN
 *   OPEN --close, delete--> ENDING --done--> (gone)
 *   any  --error of the directory--> FAILED --close, delete--> (gone)
 *
 * Appending and rolling are in append.c, saving in save.c, the published view in view.c.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "log/log_int.h"

/* ---- Segments in memory ----------------------------------------------------------------- */

void log_push_segment(struct log *log, struct segment *s)
{
    if (log->segment_count == log->segment_cap) {
        log->segment_cap = log->segment_cap ? 2 * log->segment_cap : 4;
        log->segments = xreallocarray(log->segments, log->segment_cap, sizeof(*log->segments));
    }
    log->segments[log->segment_count++] = (struct segment_span){.segment = s, .max_timestamp = -1};
}

void log_drop_segments(struct log *log, size_t from)
{
    while (log->segment_count > from)
        segment_unref(log->segments[--log->segment_count].segment);
}

void unsaved_free(struct unsaved_segment *u)
{
    segment_unref(u->segment);
    buf_fini(&u->kafka_snapshot);
}

void log_add_unsaved(struct log *log, struct segment *s, int64_t next_base)
{
    struct unsaved_segment *u;

    if (log->unsaved_count == log->unsaved_cap) {
        log->unsaved_cap = log->unsaved_cap ? 2 * log->unsaved_cap : 4;
        log->unsaved = xreallocarray(log->unsaved, log->unsaved_cap, sizeof(*log->unsaved));
    }
    u = &log->unsaved[log->unsaved_count++];
    *u = (struct unsaved_segment){.segment = segment_ref(s), .next_base = next_base};
    snapshot_format_kafka(&log->producers, &u->kafka_snapshot);
}

/* ---- Publishing ------------------------------------------------------------------------- */

void log_publish(struct log *log)
{
    if (!log->record.list)
        log->record.list = segment_list_new(log->segments, log->acked_segments);
    view_publish(log->view, &log->record, log->loop);
}

void log_update_stable(struct log *log)
{
    struct log_bounds *b = &log->record.bounds;

    b->last_stable =
        MIN(producers_first_unstable(&log->producers, b->high_watermark), b->high_watermark);
    b->last_stable = MAX(b->last_stable, b->log_start);
}

void log_fail(struct log *log, enum err err)
{
    if (log->state == LOG_STATE_FAILED)
        return;
    trace_error("log.failed", "topic=%s partition=%d error=%s", log->topic, log->partition,
                err_name(err));
    log->state = LOG_STATE_FAILED;
    log->record.bounds.is_gone = true;
    log_publish(log);
    log->events.failed(log->ctx, err, log->record.bounds.ack);
}

/* ---- Operations ------------------------------------------------------------------------- */

static void after_operations(struct log *log)
{
    log_publish(log);
    if (log->record.bounds.ack > log->told_ack && !log->record.bounds.is_gone) {
        log->told_ack = log->record.bounds.ack;
        log->events.advanced(log->ctx);
    }
    log_run_idle(log);
}

static void operation_done(struct journal_op *j)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);
    struct log *log = op->log;
    bool more = j->more;

    assert(log->inflight > 0);
    log->inflight--;
    op->finish(op);
    if (!more)
        after_operations(log);
}

void log_submit(struct log *log, struct log_op *op)
{
    op->log = log;
    op->journal.log = &log->lane;
    op->journal.loop = log->loop;
    op->journal.done = operation_done;
    log->inflight++;
    journal_submit(log->journal, &op->journal);
}

struct epochs_op {
    struct log_op op;
    struct epochs epochs; /* a copy */
};

static enum err epochs_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);

    return epochs_write(io, op->log->path, &CONTAINER_OF(op, struct epochs_op, op)->epochs);
}

static void epochs_finish(struct log_op *op)
{
    struct epochs_op *e = CONTAINER_OF(op, struct epochs_op, op);
    struct log *log = op->log;

    if (op->journal.err == ERR_NO_SPACE) {
        log->epochs_dirty = true;
        log_take_back(log);
    } else if (op->journal.err) {
        log_fail(log, op->journal.err);
    }
    epochs_fini(&e->epochs);
    free(e);
}

void log_submit_epochs(struct log *log)
{
    struct epochs_op *e = xcalloc(1, sizeof(*e));

    e->op.finish = epochs_finish;
    e->op.journal.kind = JOURNAL_EPOCH;
    e->op.journal.apply = epochs_apply;
    e->epochs.n = e->epochs.cap = log->epochs.n;
    e->epochs.v = xmemdup(log->epochs.v, log->epochs.n * sizeof(*log->epochs.v));
    log->epochs_dirty = false;
    log_submit(log, &e->op);
}

/* ---- Requests to the checkpoint lane ----------------------------------------------------- */

struct save *log_new_save(struct log *log, enum save_kind kind, void (*done)(struct save *s))
{
    struct save *s = xcalloc(1, sizeof(*s));

    s->kind = kind;
    s->card = log->card;
    s->loop = log->loop;
    s->done = done;
    log->saves++;
    return s;
}

void log_save_answered(struct save *s)
{
    struct log *log = s->card->log;

    assert(log->saves > 0);
    log->saves--;
    if (s->err && s->err != ERR_NO_SPACE)
        log_fail(log, s->err);
    save_free(s);
    log_run_idle(log);
}

/* ---- Life cycle ------------------------------------------------------------------------- */

static struct log_card *card_new(struct log *log, bool was_found)
{
    struct log_card *c = xcalloc(1, sizeof(*c));

    c->topic = log->topic;
    c->partition = log->partition;
    c->view = log->view;
    c->loop = log->loop;
    c->log = log;
    c->was_found = was_found;
    list_init(&c->node);
    return c;
}

static void take_loaded(struct log *log, struct log_loaded *l)
{
    log->io = l->io;
    log->dir = l->dir;
    log->topic = l->topic;
    log->partition = l->partition;
    log->topic_id = l->topic_id;
    log->path = l->path;
    log->config = l->config;
    log->epochs = l->epochs;
    log->producers = l->producers;
    log->segments = l->segments;
    log->segment_count = l->segment_count;
    log->segment_cap = l->segment_cap;
    log->acked_segments = l->segment_count;
    log->tail = l->tail;
    log->segment_opened_ms = l->now_ms;
    log->recovery_point = l->recovery_point;
    log->closed_at = l->closed_at;
    log->clean_offset = l->clean_offset;
    log->told_ack = l->end;
    log->record = (struct view_record){
        .bounds = {.log_start = l->start,
                   .high_watermark = l->high_watermark,
                   .last_stable = l->high_watermark,
                   .ack = l->end,
                   .end = l->end},
        .is_damaged = l->is_damaged,
        .tail = l->tail,
        /* What this start had to scan is saved before the next. */
        .acked_bytes = l->end > l->recovery_point ? l->tail.size : 0,
    };
}

struct log *log_own(struct log_loaded *loaded, struct io_loop *loop,
                    const struct log_events *events, void *ctx)
{
    struct log *log = xcalloc(1, sizeof(*log));
    struct save *s;

    assert(io_loop_current() == loop);
    take_loaded(log, loaded);
    log->loop = loop;
    log->journal = dir_journal(log->dir);
    log->events = *events;
    log->ctx = ctx;
    io_random(log->io, &log->lane.log_id, sizeof(log->lane.log_id));
    log->view = view_new();
    log_update_stable(log);
    log_publish(log);
    log->card = card_new(log, !loaded->is_new);
    log->card->recovery_point = log->recovery_point;
    s = log_new_save(log, SAVE_REGISTER, log_save_answered);
    s->offset = log->recovery_point;
    dir_submit(log->dir, s);
    free(loaded);
    return log;
}

void log_free(struct log *log)
{
    assert(log->inflight == 0 && log->saves == 0 && !log->cleaning);
    log_drop_segments(log, 0);
    free(log->segments);
    for (size_t i = 0; i < log->unsaved_count; i++)
        unsaved_free(&log->unsaved[i]);
    free(log->unsaved);
    while (log->free_appends) {
        struct append_op *a = log->free_appends;
        log->free_appends = a->next_free;
        free(a);
    }
    view_retire(log->view, log->loop);
    epochs_fini(&log->epochs);
    producers_fini(&log->producers);
    free(log->card);
    free(log->topic);
    free(log->path);
    free(log);
}

/* ---- Requests --------------------------------------------------------------------------- */

void log_run_idle(struct log *log)
{
    if (!log->requests || log->is_running || log->inflight > 0 || log->saves > 0 ||
        log->is_taking_back || log->cleaning)
        return;
    if (io_op_is_pending(&log->flush_timer.op)) {
        io_cancel(&log->flush_timer.op); /* Its callback brings us here again. */
        return;
    }
    log->is_running = true;
    log->requests->start(log);
}

void log_finish_request(struct log *log, enum err err)
{
    struct log_request *r = log->requests;

    assert(log->is_running);
    log->requests = r->next;
    log->is_running = false;
    r->done(r->ctx, err);
    free(r);
    log_run_idle(log);
}

/* Perhaps nothing is in flight and nobody would call: a message of our own does. */
struct kick {
    struct io_msg msg;
    struct log *log;
};

static void kicked(struct io_msg *msg)
{
    struct kick *k = CONTAINER_OF(msg, struct kick, msg);
    struct log *log = k->log;

    free(k);
    log->inflight--;
    log_run_idle(log);
}

void log_request(struct log *log, void (*start)(struct log *log),
                 void (*done)(void *ctx, enum err err), void *ctx, int64_t offset)
{
    struct log_request *r = xcalloc(1, sizeof(*r));
    struct kick *k = xcalloc(1, sizeof(*k));
    struct log_request **at = &log->requests;

    r->start = start;
    r->done = done;
    r->ctx = ctx;
    r->offset = offset;
    while (*at)
        at = &(*at)->next;
    *at = r;
    log_stop_cleaning(log);
    log->inflight++; /* Nothing happens inside this call, and the log is there until the message. */
    k->msg.fn = kicked;
    k->log = log;
    io_post(log->loop, &k->msg);
}

/* ---- Plain questions -------------------------------------------------------------------- */

struct log_view *log_view(struct log *log)
{
    return log->view;
}

int64_t log_start_offset(const struct log *log)
{
    return log->record.bounds.log_start;
}

int64_t log_end_offset(const struct log *log)
{
    return log->record.bounds.end;
}

int64_t log_ack_offset(const struct log *log)
{
    return log->record.bounds.ack;
}

int64_t log_high_watermark(const struct log *log)
{
    return log->record.bounds.high_watermark;
}

int64_t log_last_stable_offset(const struct log *log)
{
    return log->record.bounds.last_stable;
}

int64_t log_size_bytes(const struct log *log)
{
    int64_t n = log->tail.size;

    for (size_t i = 0; i + 1 < log->segment_count; i++)
        n += log->segments[i].size;
    return n;
}

const struct topic_config *log_config(const struct log *log)
{
    return &log->config;
}

struct log_dir *log_directory(const struct log *log)
{
    return log->dir;
}

struct uuid log_topic_id(const struct log *log)
{
    return log->topic_id;
}

int32_t log_latest_epoch(const struct log *log)
{
    return epochs_latest(&log->epochs);
}

void log_epoch_end(const struct log *log, int32_t epoch, int32_t *found_epoch, int64_t *end_offset)
{
    epochs_end(&log->epochs, epoch, log->record.bounds.end, found_epoch, end_offset);
}

int32_t log_epoch_at(const struct log *log, int64_t offset)
{
    return epochs_at(&log->epochs, offset);
}

/* ---- Changes of offsets and configuration ------------------------------------------------ */

void log_set_high_watermark(struct log *log, int64_t hw)
{
    struct log_bounds *b = &log->record.bounds;

    assert(hw <= b->ack);
    if (hw <= b->high_watermark)
        return;
    b->high_watermark = hw;
    log_update_stable(log);
    log_publish(log);
}

void log_begin_epoch(struct log *log, int32_t epoch)
{
    if (epoch <= epochs_latest(&log->epochs) || log->state == LOG_STATE_FAILED)
        return;
    if (!epochs_assign(&log->epochs, epoch, log->record.bounds.end))
        return;
    /* A log that may lose what it has acknowledged must know afterwards that it has led. One that
     * may not can wait for its first record: who comes to lead a thousand has other things to do.
     */
    if (log->config.flush_on_ack)
        log->epochs_dirty = true;
    else
        log_submit_epochs(log);
}

struct sync_op {
    struct log_op op;
    struct segment **segments; /* references */
    size_t count;
};

static enum err sync_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);
    struct sync_op *s = CONTAINER_OF(op, struct sync_op, op);
    enum err err = ERR_NONE;

    (void)io;
    for (size_t i = 0; !err && i < s->count; i++)
        err = io_file_sync(s->segments[i]->log);
    return err;
}

static void sync_finish(struct log_op *op)
{
    struct sync_op *s = CONTAINER_OF(op, struct sync_op, op);

    if (op->journal.err)
        log_fail(op->log, op->journal.err);
    for (size_t i = 0; i < s->count; i++)
        segment_unref(s->segments[i]);
    free(s->segments);
    free(s);
}

/* All segments that may hold unsynced bytes: those that begin above the recovery point, and the one
 * that holds it. */
static void submit_sync(struct log *log)
{
    struct sync_op *s = xcalloc(1, sizeof(*s));

    s->op.finish = sync_finish;
    s->op.journal.kind = JOURNAL_LOG_START;
    s->op.journal.apply = sync_apply;
    s->segments = xcalloc(log->segment_count, sizeof(struct segment *));
    for (size_t i = 0; i < log->segment_count; i++) {
        bool is_last = i + 1 == log->segment_count;
        if (is_last || log->segments[i + 1].segment->base_offset > log->recovery_point)
            s->segments[s->count++] = segment_ref(log->segments[i].segment);
    }
    log_submit(log, &s->op);
}

/* ---- flush.ms --------------------------------------------------------------------------- */

/* Longer ones do not fit a timer, and nobody would notice. */
#define FLUSH_MS_MAX (INT64_MAX / 4000000)

static void flush_due(struct io_op *op)
{
    struct log *log = CONTAINER_OF(op, struct log, flush_timer.op);

    if (!op->err && log->state == LOG_STATE_OPEN) {
        log->unflushed_messages = 0;
        submit_sync(log);
    } else {
        log_run_idle(log);
    }
}

void log_arm_flush(struct log *log)
{
    int64_t ms = log->config.flush_ms;

    if (ms > FLUSH_MS_MAX || io_op_is_pending(&log->flush_timer.op))
        return;
    log->flush_timer.op.done = flush_due;
    io_timer_set(log->loop, &log->flush_timer, io_loop_mono_ns(log->loop) + ms * 1000000);
}

void log_set_config(struct log *log, const struct topic_config *config)
{
    bool becomes_durable = config->flush_on_ack && !log->config.flush_on_ack;

    log->config = *config;
    if (becomes_durable && log->state == LOG_STATE_OPEN)
        submit_sync(log);
}

/* Only now the epochs below it may go: they must cover the log from wherever it starts again. */
static void start_saved(struct save *s)
{
    void (*done)(void *ctx, enum err err) = s->request_done;
    struct log *log = s->card->log;

    if (!s->err)
        log->epochs_dirty |= epochs_truncate_start(&log->epochs, s->offset);
    done(s->ctx, s->err);
    log_save_answered(s);
}

void log_advance_start(struct log *log, int64_t offset, void (*done)(void *ctx, enum err err),
                       void *ctx)
{
    struct log_bounds *b = &log->record.bounds;
    struct save *s = log_new_save(log, SAVE_START, start_saved);

    assert(offset <= b->high_watermark);
    b->log_start = MAX(b->log_start, offset);
    log_update_stable(log);
    log_publish(log);
    s->offset = b->log_start;
    s->request_done = done;
    s->ctx = ctx;
    dir_submit(log->dir, s);
}

void log_expire_producers(struct log *log, int64_t now_ms, int64_t expiration_ms)
{
    producers_expire(&log->producers, now_ms, expiration_ms);
}

/* ---- Producers -------------------------------------------------------------------------- */

struct listing {
    struct log_producer *v;
    int n;
};

static void list_producer(void *ctx, int64_t id, const struct producer_state *s)
{
    struct listing *l = ctx;

    l->v[l->n++] = (struct log_producer){
        .producer_id = id,
        .epoch = s->epoch,
        .last_sequence = s->batch_count > 0 ? s->batches[s->batch_count - 1].last_sequence : -1,
        .last_timestamp = s->last_timestamp,
        .coordinator_epoch = s->coordinator_epoch,
        .txn_start_offset = s->txn_first_offset,
    };
}

static int compare_producers(const void *a, const void *b)
{
    int64_t x = ((const struct log_producer *)a)->producer_id;
    int64_t y = ((const struct log_producer *)b)->producer_id;

    return x < y ? -1 : x > y;
}

void log_producers(const struct log *log, struct arena *arena, struct log_producer **v, int *n)
{
    size_t count = producers_count(&log->producers);
    struct listing l = {.v = arena_calloc(arena, count + 1, sizeof(*l.v))};

    *v = NULL;
    *n = 0;
    if (!l.v)
        return; /* Beyond the arena's limit. */
    producers_each_assigned(&log->producers, list_producer, &l);
    qsort(l.v, (size_t)l.n, sizeof(*l.v), compare_producers);
    *v = l.v;
    *n = l.n;
}
