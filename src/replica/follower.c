/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The follower: one fetch at a time, at the end of what it has acknowledged, because a fetch at an
 * offset acknowledges everything below it.
 *
 * It never truncates on its own account, neither at a start nor at a change of leader: every fetch
 * carries the epoch of its last record, and a leader whose log parts from this one says where
 * (KIP-595). Cutting may have to be repeated, once for each epoch that only this log has (S3); each
 * time the log gets shorter. An answer that says so is good for nothing else: its watermark is of a
 * log that this one does not agree with (S8).
 *
 * An answer counts if it belongs to the fetch that is out and to the epoch that is in force (S23);
 * an error never ends the following, it only delays it.
 */
#include "base/attr.h"
#include "replica/replica_int.h"

#define PAUSE_MIN_MS 10

static void pause_after_error(struct replica *r, const struct replica_event *e)
{
    int64_t ms = PAUSE_MIN_MS << MIN(r->failures, 10);

    r->failures++;
    r->pause_end_ms = e->now_ms + MIN(ms, r->backoff_max_ms);
}

static void cut(struct replica *r, enum replica_next how, int64_t offset,
                struct replica_effects *fx)
{
    r->is_cutting = true;
    fx->next = how;
    fx->offset = offset;
    fx->is_below_watermark = how == REPLICA_NEXT_TRUNCATE && offset < r->high_watermark;
    r->high_watermark = how == REPLICA_NEXT_RESTART ? offset : MIN(r->high_watermark, offset);
}

/* Where this log and the leader's part, as far as both can tell from their histories. */
static int64_t parting(const struct replica_fetched *f, const struct replica_log *log)
{
    if (f->found_epoch < 0)
        return log->start;
    if (f->found_epoch == f->diverging_epoch)
        return MIN(f->found_end, f->diverging_end);
    return f->found_end;
}

static void diverged(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    int64_t offset = MAX(parting(&e->fetched, &e->log), e->log.start);

    if (PLANTED(TRUNCATE_TO_WATERMARK))
        offset = r->high_watermark;
    /* Neither history explains it: asking again may. */
    if (offset >= e->log.end) {
        pause_after_error(r, e);
        return;
    }
    if (PLANTED(WATERMARK_OF_DIVERGED))
        r->high_watermark = MAX(r->high_watermark, MIN(e->fetched.high_watermark, e->log.acked));
    cut(r, REPLICA_NEXT_TRUNCATE, offset, fx);
}

static void agreed(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    if (!e->fetched.has_records)
        r->failures = 0;
    r->leader_watermark = e->fetched.high_watermark;
    if (e->fetched.log_start > e->log.start)
        fx->log_start = MIN(e->fetched.log_start, e->log.acked);
    if (e->fetched.has_records) {
        r->is_appending = true;
        fx->next = REPLICA_NEXT_APPEND;
        fx->offset = e->fetched.offset;
    }
}

void follower_fetched(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    const struct replica_fetched *f = &e->fetched;

    if (r->role != REPLICA_FOLLOWER || !r->is_fetch_out || f->offset != r->fetch_offset)
        return;
    if (f->leader_epoch != r->leader_epoch && !PLANTED(TAKE_ANY_ANSWER))
        return;
    r->is_fetch_out = false;
    if (f->err == ERR_OFFSET_OUT_OF_RANGE && f->log_start > e->log.end)
        cut(r, REPLICA_NEXT_RESTART, f->log_start, fx);
    else if (f->err)
        pause_after_error(r, e);
    else if (f->diverging_epoch >= 0)
        diverged(r, e, fx);
    else
        agreed(r, e, fx);
}

void follower_appended(struct replica *r, const struct replica_event *e)
{
    r->is_appending = false;
    if (r->role != REPLICA_FOLLOWER)
        return;
    if (e->err)
        pause_after_error(r, e);
    else
        r->failures = 0;
}

void follower_truncated(struct replica *r, const struct replica_event *e)
{
    if (e->err)
        pause_after_error(r, e);
}

static void follow_watermark(struct replica *r, const struct replica_event *e,
                             struct replica_effects *fx)
{
    int64_t hw = MIN(r->leader_watermark, e->log.acked);

    if (hw <= r->high_watermark)
        return;
    r->high_watermark = hw;
    fx->has_moved = true;
}

void follower_go_on(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    if (!r->is_cutting)
        follow_watermark(r, e, fx);
    if (fx->log_start > r->high_watermark)
        fx->log_start = r->high_watermark;
    if (fx->next || r->is_fetch_out || r->is_appending || r->is_cutting)
        return;
    if (e->now_ms < r->pause_end_ms) {
        fx->wake_ms = r->pause_end_ms;
        return;
    }
    if (e->log.acked < e->log.end && !PLANTED(FETCH_ABOVE_ACKED))
        return;
    r->is_fetch_out = true;
    r->fetch_offset = e->log.end;
    fx->next = REPLICA_NEXT_FETCH;
    fx->offset = e->log.end;
}
