/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compaction on the owner's loop: when a log is worth it, and one run from its start to its end.
 *
 * What may be cleaned are closed segments below the last stable offset, the recovery point and the
 * first one with a record that is too young. Such segments never change and nothing waits to be
 * saved of them, so a job may copy them while the log goes on:
 *
 *   slice of a job -> (pause, for the pace) -> slice ... -> a group is written
 *     -> operation of the journal: swap it in -> publish the new list -> next slice ...
 *   -> request to the checkpoint lane: what is clean now -> done
 *
 * Retention waits while a run is under way; requests that want the files for themselves (truncate,
 * close, delete) end the run at its next step and start after it. Indices of the segments that are
 * being cleaned therefore hold: only the end of the list moves.
 *
 * The swap, in the order that makes any cut of it one or the other (leftovers.c finishes it): the
 * new files are durable under `.cleaned`; they become `.swap`, the log file first; sync; the old
 * ones become `.deleted`; sync; the new ones get their names; sync. Up to the first sync there is
 * the old log, from then on the new one. Readers that found the old segments keep them open.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "log/clean_int.h"

/* What a slice moves at most, and at least however slow the pace. */
#define SLICE_BYTES ((int64_t)8 * 1024 * 1024)
#define SLICE_BYTES_MIN ((int64_t)64 * 1024)
/* A slice is about this part of a second's bytes. */
#define SLICES_A_SECOND 4

struct cleaning {
    struct log *log;
    struct cleaner cleaner;
    struct log_clean_args args;
    struct io_job job;
    struct io_timer timer;
    struct log_op swap;
    size_t merged; /* segments that the log has fewer than the cleaner's snapshot */
    int64_t slice_bytes;
    int64_t slice_began_ns;
    int64_t moved_before; /* the slice */
    void (*done)(void *ctx, enum err err);
    void *ctx;
    enum err err;
};

/* ---- Whether ---------------------------------------------------------------------------- */

struct range {
    size_t first_dirty; /* of the log's segments */
    size_t end;         /* behind the last that may be cleaned */
    int64_t from;
    int64_t upto;
};

static bool is_young(const struct log *log, const struct segment_span *s, int64_t now_ms)
{
    int64_t lag = log->config.min_compaction_lag_ms;

    return lag > 0 && s->max_timestamp > now_ms - lag;
}

static struct range find_range(const struct log *log, int64_t now_ms)
{
    const struct log_bounds *b = &log->record.bounds;
    int64_t bound = MIN(b->last_stable, log->recovery_point);
    struct range r = {.from = MAX(log->clean_offset, b->log_start)};

    r.upto = r.from;
    while (r.end + 1 < log->acked_segments) {
        int64_t end = log->segments[r.end + 1].segment->base_offset;
        bool is_dirty = end > r.from;
        if (end > bound || (is_dirty && is_young(log, &log->segments[r.end], now_ms)))
            break;
        r.first_dirty += !is_dirty;
        r.upto = MAX(r.upto, end);
        r.end++;
    }
    return r;
}

static int64_t bytes_of(const struct log *log, size_t from, size_t end)
{
    int64_t n = 0;

    for (size_t i = from; i < end; i++)
        n += log->segments[i].size;
    return n;
}

/* Of a segment from before a restart the first timestamp is not known: it counts as old. */
static bool is_overdue(const struct log *log, const struct range *r, int64_t now_ms)
{
    int64_t lag = log->config.max_compaction_lag_ms;

    for (size_t i = r->first_dirty; i < r->end && lag < INT64_MAX; i++) {
        if (log->segments[i].size > 0 && log->segments[i].first_timestamp < now_ms - lag)
            return true;
    }
    return false;
}

void log_dirt(const struct log *log, int64_t now_ms, struct log_dirt *out)
{
    struct range r;
    int64_t dirty, clean;

    *out = (struct log_dirt){.is_due = false};
    if (log->state != LOG_STATE_OPEN || log->requests || log->record.is_damaged || log->cleaning ||
        log->is_uncleanable || !(log->config.cleanup_policy & TOPIC_CLEANUP_COMPACT))
        return;
    r = find_range(log, now_ms);
    dirty = bytes_of(log, r.first_dirty, r.end);
    clean = bytes_of(log, 0, r.first_dirty);
    if (r.from >= r.upto || dirty == 0)
        return;
    out->ratio = (double)dirty / (double)(dirty + clean);
    out->is_overdue = is_overdue(log, &r, now_ms);
    out->is_due = out->is_overdue || out->ratio > log->config.min_cleanable_dirty_ratio;
}

/* ---- The end of a run ------------------------------------------------------------------- */

static void end(struct cleaning *c)
{
    struct log *log = c->log;
    void (*done)(void *ctx, enum err err) = c->done;
    void *ctx = c->ctx;
    enum err err = c->err;

    cleaner_fini(&c->cleaner);
    free(c);
    log->cleaning = NULL;
    done(ctx, err);
    log_run_idle(log);
}

static void discard_run(struct io_job *job)
{
    cleaner_discard(&CONTAINER_OF(job, struct cleaning, job)->cleaner);
}

static void discard_done(struct io_job *job)
{
    end(CONTAINER_OF(job, struct cleaning, job));
}

/* Ends a run early. Damage and a full disk are this log's; other errors are the directory's. */
static void give_up(struct cleaning *c, enum err err)
{
    struct log *log = c->log;

    c->err = err;
    if (err != ERR_CANCELLED && err != ERR_FAILED_DIR)
        trace_error("log.clean_failed", "topic=%s partition=%d error=%s", log->topic,
                    log->partition, err_name(err));
    if (err == ERR_IO) {
        journal_fail(log->journal, err);
        log_fail(log, err);
    }
    log->is_uncleanable = err != ERR_CANCELLED && err != ERR_NO_SPACE;
    c->job.run = discard_run;
    c->job.done = discard_done;
    io_job_submit(log->loop, &c->job);
}

static void clean_saved(struct save *s)
{
    struct log *log = s->card->log;
    struct cleaning *c = log->cleaning;

    c->err = s->err;
    if (!s->err)
        log->clean_offset = s->offset;
    trace_info("log.cleaned", "topic=%s partition=%d upto=%lld dropped=%lld keyless=%lld",
               log->topic, log->partition, (long long)s->offset,
               (long long)c->cleaner.records_dropped, (long long)c->cleaner.keyless_dropped);
    log_save_answered(s);
    end(c);
}

static void save_clean_offset(struct cleaning *c)
{
    struct save *s = log_new_save(c->log, SAVE_CLEAN, clean_saved);

    s->offset = c->cleaner.map_upto;
    dir_submit(c->log->dir, s);
}

/* ---- The swap --------------------------------------------------------------------------- */

static enum err rename_one(struct log *log, struct io *io, int64_t base, const char *suffix,
                           const char *from, const char *to)
{
    char *old = segment_file_path(log->path, base, suffix, from);
    char *new = segment_file_path(log->path, base, suffix, to);
    enum err err = io_path_rename(io, old, new);

    free(old);
    free(new);
    return err == ERR_NOT_FOUND ? ERR_NONE : err; /* Not every segment has every file. */
}

static enum err rename_files(struct log *log, struct io *io, int64_t base, const char *from,
                             const char *to)
{
    enum err err = ERR_NONE;

    for (size_t i = 0; !err && i < SEGMENT_FILES; i++)
        err = rename_one(log, io, base, segment_suffixes[i], from, to);
    return err;
}

/* The sources' files; of all but the first also the snapshot at their base. */
static enum err doom_sources(struct cleaning *c, struct io *io)
{
    enum err err = ERR_NONE;

    for (size_t i = c->cleaner.group_first; !err && i < c->cleaner.group_end; i++) {
        int64_t base = cleaner_base_of(&c->cleaner, i);
        err = rename_files(c->log, io, base, "", DELETED_SUFFIX);
        if (!err && i > c->cleaner.group_first)
            err = rename_one(c->log, io, base, SNAPSHOT_SUFFIX, "", DELETED_SUFFIX);
    }
    return err;
}

/* On the lane. */
static enum err swap_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);
    struct cleaning *c = CONTAINER_OF(op, struct cleaning, swap);
    struct log *log = c->log;
    int64_t base = c->cleaner.span.segment->base_offset;
    enum err err = rename_files(log, io, base, CLEANED_SUFFIX, SWAP_SUFFIX);

    if (!err)
        err = io_dir_sync(io, log->path);
    if (!err)
        err = doom_sources(c, io);
    if (!err)
        err = io_dir_sync(io, log->path);
    if (!err)
        err = rename_files(log, io, base, SWAP_SUFFIX, "");
    if (!err)
        err = io_dir_sync(io, log->path);
    /* Half a swap is for the next start to finish: the directory takes no more until then. */
    return err == ERR_NO_SPACE ? ERR_IO : err;
}

static void bury_sources(struct cleaning *c)
{
    struct log *log = c->log;

    for (size_t i = c->cleaner.group_first; i < c->cleaner.group_end; i++) {
        int64_t base = cleaner_base_of(&c->cleaner, i);
        for (size_t k = 0; k < SEGMENT_FILES; k++)
            dir_bury(log->dir,
                     segment_file_path(log->path, base, segment_suffixes[k], DELETED_SUFFIX), false,
                     log->config.file_delete_delay_ms);
        if (i > c->cleaner.group_first)
            dir_bury(log->dir, segment_file_path(log->path, base, SNAPSHOT_SUFFIX, DELETED_SUFFIX),
                     false, log->config.file_delete_delay_ms);
    }
}

/* The new segment takes the place of its sources in the owner's list and in the readers'. */
static void install(struct cleaning *c)
{
    struct log *log = c->log;
    size_t first = c->cleaner.group_first - c->merged;
    size_t count = c->cleaner.group_end - c->cleaner.group_first;

    assert(first + count < log->acked_segments);
    for (size_t i = first; i < first + count; i++)
        segment_unref(log->segments[i].segment);
    log->segments[first] = c->cleaner.span;
    c->cleaner.span.segment = NULL;
    memmove(log->segments + first + 1, log->segments + first + count,
            (log->segment_count - first - count) * sizeof(*log->segments));
    log->segment_count -= count - 1;
    log->acked_segments -= count - 1;
    c->merged += count - 1;
    log->record.list = NULL;
    log_publish(log);
}

static void next_slice(struct cleaning *c);

static void swap_finish(struct log_op *op)
{
    struct cleaning *c = CONTAINER_OF(op, struct cleaning, swap);
    enum err err = op->journal.err;

    if (err) {
        log_fail(c->log, err);
        c->cleaner.phase = CLEAN_END; /* What lies there is the next start's to judge. */
        give_up(c, err);
        return;
    }
    bury_sources(c);
    install(c);
    cleaner_next_group(&c->cleaner);
    next_slice(c);
}

static void submit_swap(struct cleaning *c)
{
    c->swap = (struct log_op){
        .finish = swap_finish,
        .journal = {.kind = JOURNAL_LOG_START, .apply = swap_apply},
    };
    log_submit(c->log, &c->swap);
}

/* ---- Slices ----------------------------------------------------------------------------- */

static void slice_run(struct io_job *job)
{
    struct cleaning *c = CONTAINER_OF(job, struct cleaning, job);

    c->err = cleaner_step(&c->cleaner, c->slice_bytes);
}

static bool is_unwanted(const struct cleaning *c)
{
    const struct log *log = c->log;

    return log->requests || log->state != LOG_STATE_OPEN ||
           !(log->config.cleanup_policy & TOPIC_CLEANUP_COMPACT);
}

static void slice_due(struct cleaning *c)
{
    c->slice_began_ns = io_loop_mono_ns(c->log->loop);
    c->moved_before = c->cleaner.bytes_moved;
    io_job_submit(c->log->loop, &c->job);
}

static void pause_over(struct io_op *op)
{
    struct io_timer *t = CONTAINER_OF(op, struct io_timer, op);
    struct cleaning *c = CONTAINER_OF(t, struct cleaning, timer);

    if (is_unwanted(c))
        give_up(c, ERR_CANCELLED);
    else
        slice_due(c);
}

static void next_slice(struct cleaning *c)
{
    double moved = (double)(c->cleaner.bytes_moved - c->moved_before);
    double pause_ns = moved / c->args.bytes_per_second * 1e9;
    int64_t due_ns = c->slice_began_ns + (int64_t)MIN(pause_ns, 1e12);

    if (is_unwanted(c))
        give_up(c, ERR_CANCELLED);
    else if (due_ns <= io_loop_mono_ns(c->log->loop))
        slice_due(c);
    else
        io_timer_set(c->log->loop, &c->timer, due_ns);
}

static void slice_done(struct io_job *job)
{
    struct cleaning *c = CONTAINER_OF(job, struct cleaning, job);

    if (c->err) {
        give_up(c, c->err);
        return;
    }
    switch (c->cleaner.phase) {
    case CLEAN_MAP:
    case CLEAN_COPY: next_slice(c); break;
    case CLEAN_GROUP:
        if (is_unwanted(c))
            give_up(c, ERR_CANCELLED);
        else
            submit_swap(c);
        break;
    case CLEAN_END: save_clean_offset(c); break;
    }
}

/* ---- The start of a run ------------------------------------------------------------------ */

struct listing {
    struct clean_producer *v;
    size_t n;
};

static void list_producer(void *ctx, int64_t id, const struct producer_state *s)
{
    struct listing *l = ctx;

    l->v[l->n++] = (struct clean_producer){
        .producer_id = id,
        .epoch = s->epoch,
        .last_offset = s->batch_count > 0 ? s->batches[s->batch_count - 1].last_offset : -1,
    };
}

static int compare_producers(const void *a, const void *b)
{
    int64_t x = ((const struct clean_producer *)a)->producer_id;
    int64_t y = ((const struct clean_producer *)b)->producer_id;

    return (x > y) - (x < y);
}

static void take_producers(struct log *log, struct cleaner *c)
{
    struct listing l = {.v = xcalloc(producers_count(&log->producers) + 1, sizeof(*l.v))};

    producers_each_durable(&log->producers, list_producer, &l);
    if (l.n > 1)
        qsort(l.v, l.n, sizeof(*l.v), compare_producers);
    c->producers = l.v;
    c->producer_count = l.n;
}

static int64_t slice_bytes(double bytes_per_second)
{
    double n = bytes_per_second / SLICES_A_SECOND;

    if (n >= (double)SLICE_BYTES)
        return SLICE_BYTES;
    return MAX((int64_t)n, SLICE_BYTES_MIN);
}

void log_clean(struct log *log, const struct log_clean_args *args,
               void (*done)(void *ctx, enum err err), void *ctx)
{
    struct cleaning *c = xcalloc(1, sizeof(*c));
    struct range r = find_range(log, args->now_ms);

    assert(!log->cleaning && log->state == LOG_STATE_OPEN && r.end > r.first_dirty);
    log->cleaning = c;
    c->log = log;
    c->args = *args;
    c->done = done;
    c->ctx = ctx;
    c->slice_bytes = slice_bytes(args->bytes_per_second);
    c->job.run = slice_run;
    c->job.done = slice_done;
    c->timer.op.done = pause_over;
    c->cleaner = (struct cleaner){
        .io = log->io,
        .path = log->path,
        .config = log->config,
        .now_ms = args->now_ms,
        .map_bytes = args->map_bytes,
        .snapshot = log_snapshot_take(log->view),
        .source_count = r.end,
        .dirty_from = r.from,
        .upto = r.upto,
    };
    io_random(log->io, c->cleaner.secret, sizeof(c->cleaner.secret));
    take_producers(log, &c->cleaner);
    cleaner_init(&c->cleaner);
    slice_due(c);
}

void log_stop_cleaning(struct log *log)
{
    if (log->cleaning)
        io_cancel(&log->cleaning->timer.op);
}
