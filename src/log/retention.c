/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention: which old segments may go, and how they go.
 *
 * A segment is judged from the oldest on, and the first that stays ends the walk. It may go when
 * all of it is below the high watermark and (1) all of it is below the log start, or, if the topic
 * deletes, (2) what would remain is not below retention.bytes, or (3) its newest record is older
 * than retention.ms. The active segment may go too; then a new one is rolled first, in front of
 * which the old one becomes an ordinary segment.
 *
 * The log start is raised before the files vanish. They are renamed to `.deleted` behind everything
 * that is queued in the journal, and unlinked after file.delete.delay.ms; readers that found them
 * keep them open.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/log_int.h"

struct retire_op {
    struct log_op op;
    int64_t *bases;
    size_t count;
    int64_t delay_ms;
};

static const char *const suffixes[] = {LOG_SUFFIX, INDEX_SUFFIX, TIMEINDEX_SUFFIX, TXNINDEX_SUFFIX,
                                       SNAPSHOT_SUFFIX};

static enum err doom_file(struct log *log, struct io *io, int64_t base, const char *suffix)
{
    char *from = offset_path(log->path, base, suffix);
    char *to = xasprintf("%s.deleted", from);
    enum err err = io_path_rename(io, from, to);

    free(from);
    free(to);
    return err == ERR_NOT_FOUND ? ERR_NONE : err;
}

static enum err retire_apply(struct journal_op *j, struct io *io)
{
    struct log_op *op = CONTAINER_OF(j, struct log_op, journal);
    struct retire_op *r = CONTAINER_OF(op, struct retire_op, op);
    enum err err = ERR_NONE;

    for (size_t i = 0; !err && i < r->count; i++) {
        for (size_t k = 0; !err && k < ARRAY_LEN(suffixes); k++)
            err = doom_file(op->log, io, r->bases[i], suffixes[k]);
    }
    return err;
}

static void retire_finish(struct log_op *op)
{
    struct retire_op *r = CONTAINER_OF(op, struct retire_op, op);
    struct log *log = op->log;

    if (op->journal.err && op->journal.err != ERR_NO_SPACE)
        log_fail(log, op->journal.err);
    for (size_t i = 0; i < r->count; i++) {
        for (size_t k = 0; k < ARRAY_LEN(suffixes); k++) {
            char *path = offset_path(log->path, r->bases[i], suffixes[k]);
            dir_bury(log->dir, xasprintf("%s.deleted", path), false, r->delay_ms);
            free(path);
        }
    }
    free(r->bases);
    free(r);
}

/* ---- Which ------------------------------------------------------------------------------ */

struct segment_facts {
    int64_t size;
    int64_t end; /* the next segment's base, or the log's end */
    int64_t max_timestamp;
    bool is_active;
};

static struct segment_facts facts_of(const struct log *log, size_t i)
{
    const struct segment_span *s = &log->segments[i];

    if (i + 1 == log->segment_count)
        return (struct segment_facts){
            .size = log->tail.size,
            .end = log->record.bounds.end,
            .max_timestamp = log->tail.max_timestamp,
            .is_active = true,
        };
    return (struct segment_facts){
        .size = s->size,
        .end = log->segments[i + 1].segment->base_offset,
        .max_timestamp = s->max_timestamp,
    };
}

static bool may_go(const struct log *log, const struct segment_facts *f, int64_t now_ms,
                   int64_t excess)
{
    const struct topic_config *c = &log->config;
    bool deletes = c->cleanup_policy & TOPIC_CLEANUP_DELETE;

    if (f->end > log->record.bounds.high_watermark || f->size == 0)
        return false;
    /* What its batches say of their producers has to be in a snapshot first. */
    if (f->end > log->recovery_point)
        return false;
    if (!f->is_active && f->end <= log->record.bounds.log_start)
        return true;
    if (deletes && c->retention_bytes >= 0 && excess >= f->size)
        return true;
    return deletes && c->retention_ms >= 0 && f->max_timestamp >= 0 &&
           now_ms - f->max_timestamp > c->retention_ms;
}

static size_t count_to_go(const struct log *log, int64_t now_ms, size_t most)
{
    int64_t excess = log_size_bytes(log) - log->config.retention_bytes;
    size_t n = 0;

    while (n < most && n < log->acked_segments) {
        struct segment_facts f = facts_of(log, n);
        if (!may_go(log, &f, now_ms, excess))
            break;
        excess -= f.size;
        n++;
    }
    return n;
}

/* ---- How -------------------------------------------------------------------------------- */

/* A closed segment that goes needs no saving. */
static void drop_unsaved_below(struct log *log, int64_t offset)
{
    size_t gone = 0;

    while (gone < log->unsaved_count && log->unsaved[gone].next_base <= offset)
        unsaved_free(&log->unsaved[gone++]);
    if (gone == 0)
        return;
    log->unsaved_count -= gone;
    memmove(log->unsaved, log->unsaved + gone, log->unsaved_count * sizeof(*log->unsaved));
}

static void retire(struct log *log, size_t n)
{
    struct retire_op *r = xcalloc(1, sizeof(*r));
    int64_t start = log->segments[n].segment->base_offset;

    r->op.finish = retire_finish;
    r->op.journal.kind = JOURNAL_LOG_START;
    r->op.journal.apply = retire_apply;
    r->bases = xcalloc(n, sizeof(*r->bases));
    r->count = n;
    r->delay_ms = log->config.file_delete_delay_ms;
    for (size_t i = 0; i < n; i++) {
        r->bases[i] = log->segments[i].segment->base_offset;
        segment_unref(log->segments[i].segment);
    }
    log->segment_count -= n;
    log->acked_segments -= n;
    memmove(log->segments, log->segments + n, log->segment_count * sizeof(*log->segments));
    drop_unsaved_below(log, start);
    log->record.bounds.log_start = MAX(log->record.bounds.log_start, start);
    log->epochs_dirty |= epochs_truncate_start(&log->epochs, start);
    log_update_stable(log);
    log->record.list = NULL;
    log_publish(log);
    log_submit(log, &r->op);
}

int log_apply_retention(struct log *log, int64_t now_ms, int segments_max)
{
    size_t n;

    if (log->state != LOG_STATE_OPEN || log->record.is_damaged || log->cleaning)
        return 0;
    n = count_to_go(log, now_ms, (size_t)MAX(segments_max, 0));
    if (n > 0 && n == log->segment_count) {
        /* The active one too, but not before its successor is there: the next pass takes it. */
        log_roll(log, log->record.bounds.end, now_ms);
        n--;
    } else if (n > 0 && n == log->acked_segments) {
        /* Readers need one, and the file of the next one is not there yet. */
        n--;
    }
    if (n > 0)
        retire(log, n);
    return (int)n;
}
