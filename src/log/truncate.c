/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Truncation (a follower's log parts from its leader's): three steps, one after the other.
 *
 *   1. wait until nothing is in flight; appends are refused meanwhile;
 *   2. if the recovery point may lie above the cut, lower it durably. A recovery point above bytes
 *   that
 *      will be written again, not yet synced, would promise what is not true;
 *   3. on the journal's lane: cut the files, reload the end, producers and epochs (reload.c).
 *
 * Then the owner takes over what was reloaded.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/log_int.h"

struct truncate_op {
    struct log_op op;
    struct reload reload;
};

static void finish(struct log *log, enum err err)
{
    if (log->state == LOG_STATE_TRUNCATING)
        log->state = LOG_STATE_OPEN;
    log_finish_request(log, err);
}

static enum err truncate_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);

    (void)io;
    return log_reload_truncated(&CONTAINER_OF(op, struct truncate_op, op)->reload);
}

/* Closed segments above the cut have nothing to save any more; none has, when nothing is left. */
static void drop_unsaved(struct log *log, int64_t end)
{
    while (log->unsaved_count > 0 && log->unsaved[log->unsaved_count - 1].next_base > end)
        unsaved_free(&log->unsaved[--log->unsaved_count]);
}

static void install(struct log *log, struct reload *r)
{
    struct log_bounds *b = &log->record.bounds;

    log_drop_segments(log, 0);
    free(log->segments);
    log->segments = r->segments;
    log->segment_count = log->segment_cap = log->acked_segments = r->segment_count;
    log->tail = log->record.tail = r->tail;
    epochs_fini(&log->epochs);
    log->epochs = r->epochs;
    producers_fini(&log->producers);
    log->producers = r->producers;
    drop_unsaved(log, r->segments[0].segment->base_offset < r->end ? r->end : -1);
    if (r->end < b->high_watermark)
        trace_warn("log.truncated_below_hw", "topic=%s partition=%d end=%lld hw=%lld", log->topic,
                   log->partition, (long long)r->end, (long long)b->high_watermark);
    b->end = b->ack = log->told_ack = r->end;
    log->closed_at = -1;
    b->high_watermark = r->is_anew ? r->end : MIN(b->high_watermark, r->end);
    b->log_start = r->is_anew ? r->end : MIN(b->log_start, r->end);
    log_update_stable(log);
    log->record.list = NULL;
    log_publish(log);
}

static void truncate_finish(struct log_op *op)
{
    struct truncate_op *t = CONTAINER_OF(op, struct truncate_op, op);
    struct reload *r = &t->reload;
    struct log *log = op->log;
    enum err err = op->journal.err;

    if (!err) {
        install(log, r);
    } else {
        for (size_t i = 0; i < r->segment_count; i++)
            segment_unref(r->segments[i].segment);
        free(r->segments);
        epochs_fini(&r->epochs);
        producers_fini(&r->producers);
        log_fail(log, err);
    }
    buf_fini(&r->past);
    free(t);
    finish(log, err);
}

static void submit_reload(struct log *log, bool is_anew)
{
    struct truncate_op *t = xcalloc(1, sizeof(*t));
    struct reload *r = &t->reload;

    t->op.finish = truncate_finish;
    t->op.journal.kind = JOURNAL_TRUNCATE;
    t->op.journal.apply = truncate_apply;
    r->io = log->io;
    r->path = log->path;
    r->offset = log->requests->offset;
    r->start = log->record.bounds.log_start;
    r->is_anew = is_anew;
    r->segments = xmemdup(log->segments, log->segment_count * sizeof(*log->segments));
    r->segment_count = log->segment_count;
    for (size_t i = 0; i < r->segment_count; i++)
        segment_ref(r->segments[i].segment);
    r->segments[r->segment_count - 1].size = log->tail.size;
    r->segments[r->segment_count - 1].index_count = log->tail.index_count;
    r->epochs.n = r->epochs.cap = log->epochs.n;
    r->epochs.v = xmemdup(log->epochs.v, log->epochs.n * sizeof(*log->epochs.v));
    producers_init(&r->producers);
    snapshot_format(&log->producers, log->record.bounds.end, &r->past);
    log_submit(log, &t->op);
}

static void point_lowered(struct save *s)
{
    struct log *log = s->card->log;

    if (!s->err) {
        log->recovery_point = s->offset;
        log->clean_offset = MIN(log->clean_offset, s->offset);
        submit_reload(log, false);
    }
    enum err err = s->err;
    log_save_answered(s);
    if (err)
        finish(log, err);
}

/* The cut may fall below the offset, to the start of the batch that holds it, which is not known
 * yet; the base of its segment is low enough. */
static int64_t lower_point(const struct log *log)
{
    size_t i = log->segment_count;

    while (i > 0 && log->segments[i - 1].segment->base_offset > log->requests->offset)
        i--;
    return i > 0 ? log->segments[i - 1].segment->base_offset : log->requests->offset;
}

static void start(struct log *log)
{
    struct save *s;

    if (log->state == LOG_STATE_FAILED) {
        finish(log, ERR_FAILED_DIR);
        return;
    }
    if (log->requests->offset >= log->recovery_point) {
        submit_reload(log, false);
        return;
    }
    s = log_new_save(log, SAVE_LOWER, point_lowered);
    s->offset = lower_point(log);
    dir_submit(log->dir, s);
}

void log_truncate(struct log *log, int64_t offset, void (*done)(void *ctx, enum err err), void *ctx)
{
    if (log->state == LOG_STATE_OPEN)
        log->state = LOG_STATE_TRUNCATING;
    log_request(log, start, done, ctx, offset);
}

static void start_anew(struct log *log)
{
    if (log->state == LOG_STATE_FAILED)
        finish(log, ERR_FAILED_DIR);
    else
        submit_reload(log, true);
}

void log_start_over(struct log *log, int64_t offset, void (*done)(void *ctx, enum err err),
                    void *ctx)
{
    assert(offset >= log->record.bounds.end);
    if (log->state == LOG_STATE_OPEN)
        log->state = LOG_STATE_TRUNCATING;
    log_request(log, start_anew, done, ctx, offset);
}
