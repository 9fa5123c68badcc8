/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of a log: close and delete. Both refuse new work at once, wait until nothing is in
 * flight, change the files by one last operation of the journal, leave the directory's checkpoints,
 * and only then tell the owner; after that the log is gone.
 *
 * A clean close makes the recovery point the end: last time index entry, everything synced, both
 * producer snapshots. What was durable before is not synced again, and a log that nothing was
 * written to since it was opened is left as it is: a stop takes as long as its syncs, and most of
 * many thousand logs are idle. A deletion renames the partition's directory, which makes it
 * invisible at once and at the next start; the files go later, because readers may still hold them.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/log_int.h"

/* ---- The end, common to both -------------------------------------------------------------- */

static void left(struct save *s)
{
    struct log *log = s->card->log;
    struct log_request *r = log->requests;
    enum err err = r->err ? r->err : s->err;

    assert(!r->next);
    log->requests = NULL;
    log->saves--;
    save_free(s);
    log_free(log);
    r->done(r->ctx, err);
    free(r);
}

static void leave(struct log *log, enum save_kind kind, int64_t offset, enum err err)
{
    struct save *s = log_new_save(log, kind, left);

    log->record.bounds.is_gone = true;
    log_publish(log);
    log->requests->err = err;
    s->offset = offset;
    dir_submit(log->dir, s);
}

/* ---- Close ------------------------------------------------------------------------------ */

struct close_op {
    struct log_op op;
    struct segment_tail tail;
    int64_t end;
    bool is_saved; /* the recovery point is the end already */
    struct buf snapshot;
    struct buf kafka_snapshot;
};

/* Everything that no recovery point covers yet. */
static enum err sync_unsaved(struct log *log, struct io *io)
{
    enum err err = ERR_NONE;

    for (size_t i = 0; !err && i < log->unsaved_count; i++) {
        struct unsaved_segment *u = &log->unsaved[i];
        err = segment_sync(u->segment);
        if (!err)
            err = snapshot_write(io, log->path, u->next_base, SNAPSHOT_SUFFIX, &u->kafka_snapshot);
    }
    return err ? err : segment_sync(log->segments[log->segment_count - 1].segment);
}

/* On the lane; the owner does nothing to the log meanwhile. */
static enum err close_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);
    struct close_op *c = CONTAINER_OF(op, struct close_op, op);
    struct log *log = op->log;
    struct segment *active = log->segments[log->segment_count - 1].segment;
    uint8_t entry[TIMEINDEX_ENTRY_BYTES];
    struct iovec iov = {.iov_base = entry, .iov_len = sizeof(entry)};
    int64_t pos = c->tail.time_count * TIMEINDEX_ENTRY_BYTES;
    enum err err = ERR_NONE;

    if (log->epochs_dirty)
        err = epochs_write(io, log->path, &log->epochs);
    if (err || c->end == log->closed_at)
        return err;
    if (segment_tail_finish(&c->tail, active->base_offset, entry)) {
        c->is_saved = false;
        err = io_file_write(active->timeindex, &iov, 1, pos);
    }
    if (!err)
        err = io_file_truncate(active->log, c->tail.size); /* What was reserved behind it. */
    if (!err && !c->is_saved)
        err = sync_unsaved(log, io);
    if (!err)
        err = snapshot_write(io, log->path, c->end, SNAPSHOT_SUFFIX, &c->kafka_snapshot);
    if (!err)
        err = snapshot_write(io, log->path, c->end, PRODUCERS_SUFFIX, &c->snapshot);
    return err;
}

static void close_finish(struct log_op *op)
{
    struct close_op *c = CONTAINER_OF(op, struct close_op, op);
    struct log *log = op->log;
    enum err err = op->journal.err;

    leave(log, SAVE_LEAVE, err ? -1 : c->end, err);
    buf_fini(&c->snapshot);
    buf_fini(&c->kafka_snapshot);
    free(c);
}

static void start_close(struct log *log)
{
    struct close_op *c;

    if (log->state == LOG_STATE_FAILED || log->record.is_damaged) {
        leave(log, SAVE_LEAVE, -1, log->record.is_damaged ? ERR_NONE : ERR_FAILED_DIR);
        return;
    }
    c = xcalloc(1, sizeof(*c));
    c->op.finish = close_finish;
    c->op.journal.kind = JOURNAL_DROP;
    c->op.journal.apply = close_apply;
    c->tail = log->tail;
    c->end = log->record.bounds.end;
    c->is_saved = log->recovery_point == c->end && log->unsaved_count == 0;
    assert(c->end == log->record.bounds.ack);
    if (c->end != log->closed_at) {
        snapshot_format(&log->producers, c->end, &c->snapshot);
        snapshot_format_kafka(&log->producers, &c->kafka_snapshot);
    }
    log_submit(log, &c->op);
}

void log_close(struct log *log, void (*done)(void *ctx, enum err err), void *ctx)
{
    if (log->state != LOG_STATE_FAILED)
        log->state = LOG_STATE_ENDING;
    log_request(log, start_close, done, ctx, -1);
}

/* ---- Delete ----------------------------------------------------------------------------- */

struct delete_op {
    struct log_op op;
    char *doomed; /* the directory's new path */
};

static enum err delete_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);
    struct delete_op *d = CONTAINER_OF(op, struct delete_op, op);
    enum err err = io_path_rename(io, op->log->path, d->doomed);

    return err ? err : io_dir_sync(io, log_dir_path(op->log->dir));
}

static void delete_finish(struct log_op *op)
{
    struct delete_op *d = CONTAINER_OF(op, struct delete_op, op);
    struct log *log = op->log;
    enum err err = op->journal.err;

    if (err)
        free(d->doomed);
    else
        dir_bury(log->dir, d->doomed, true, log->config.file_delete_delay_ms);
    free(d);
    leave(log, err ? SAVE_LEAVE : SAVE_FORGET, -1, err);
}

static void start_delete(struct log *log)
{
    struct delete_op *d;
    struct uuid random;
    char *name;

    if (log->state == LOG_STATE_FAILED) {
        leave(log, SAVE_LEAVE, -1, ERR_FAILED_DIR);
        return;
    }
    io_random(log->io, &random, sizeof(random));
    name = partition_dir_doomed_name(log->topic, log->partition, random);
    d = xcalloc(1, sizeof(*d));
    d->op.finish = delete_finish;
    d->op.journal.kind = JOURNAL_DROP;
    d->op.journal.apply = delete_apply;
    d->doomed = xasprintf("%s/%s", log_dir_path(log->dir), name);
    free(name);
    log_submit(log, &d->op);
}

void log_delete(struct log *log, void (*done)(void *ctx, enum err err), void *ctx)
{
    if (log->state != LOG_STATE_FAILED)
        log->state = LOG_STATE_ENDING;
    log->record.bounds.is_gone = true;
    log_publish(log);
    log_request(log, start_delete, done, ctx, -1);
}
