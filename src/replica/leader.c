/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader: what its followers have, who is in sync, and what is committed.
 *
 * A follower's position counts only if its fetch carries the leader's own epoch and agrees with the
 * leader's log (S5, S6, S9): a position in another epoch says nothing about these records. It may
 * join the in-sync set when it has everything committed *and* everything older than this epoch
 * (S7), and only in the life in which it said so (S14).
 *
 * A change of the set is a proposal, one at a time. Until its fate is known, the high watermark
 * holds for the set before it and for the set behind it (I10), and no answer (a timeout, a broken
 * connection) is taken for "no": the same proposal is sent again. Where the controller knows of a
 * newer state, the leader waits for the assignment that will tell (S11, S12).
 *
 * The watermark also waits for a follower that has caught up and is about to join: under a steady
 * load it would otherwise always be a little behind, and never get in.
 */
#include "base/attr.h"
#include "replica/replica_int.h"

#define PROPOSE_AGAIN_MS 50   /* the answer was lost */
#define PROPOSE_LATER_MS 1000 /* the controller refused */

void leader_begin(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    r->epoch_start = e->log.end;
    fx->has_led = true;
    for (int32_t i = 0; i < r->member_count; i++) {
        struct replica_member *m = &r->members[i];

        m->acked = -1;
        m->incarnation = -1;
        m->fetched_end = INT64_MAX;
        m->fetched_ms = 0;
        m->caught_up_ms = m->is_in_isr ? e->now_ms : INT64_MIN / 2;
    }
}

void leader_reassigned(struct replica *r)
{
    r->is_proposing = r->is_proposal_lost = r->is_awaiting_orders = false;
    for (int32_t i = 0; i < r->member_count; i++) {
        struct replica_member *m = &r->members[i];

        if (m->acked < 0 && m->fetched_end == 0) {
            m->fetched_end = INT64_MAX;
            m->caught_up_ms = INT64_MIN / 2;
        }
    }
}

/* ---- who is waited for ------------------------------------------------------------------ */

/* Of what it can be given: followers get nothing that the leader itself could lose. */
static bool is_behind(const struct replica_member *m, const struct replica_log *log)
{
    return m->acked < log->acked;
}

/* Its last fetch was of the life that is registered now. */
static bool is_eligible(const struct replica_member *m)
{
    return m->is_alive &&
           (m->incarnation < 0 || m->incarnation == m->registered || PLANTED(JOIN_OF_OTHER_LIFE));
}

static bool is_about_to_join(const struct replica *r, const struct replica_member *m,
                             const struct replica_event *e)
{
    return m->acked >= 0 && is_eligible(m) &&
           (!is_behind(m, &e->log) || e->now_ms - m->caught_up_ms <= r->lag_time_max_ms);
}

static bool holds_back(const struct replica *r, const struct replica_member *m,
                       const struct replica_event *e)
{
    if (PLANTED(ASSUME_SHRINK) && r->is_proposing)
        return m->is_proposed;
    if (PLANTED(IGNORE_PROPOSED) && m->is_proposed && !m->is_in_isr)
        return false;
    return m->is_in_isr || m->is_proposed || is_about_to_join(r, m, e);
}

/* ---- a follower's fetch ----------------------------------------------------------------- */

static enum err check_fetch(const struct replica *r, const struct replica_event *e,
                            const struct replica_member *m)
{
    const struct replica_fetch *f = &e->fetch;

    if (r->role != REPLICA_LEADER || r->epoch_start < 0)
        return ERR_NOT_LEADER_OR_FOLLOWER;
    if (f->leader_epoch != r->leader_epoch && f->leader_epoch >= 0 && !PLANTED(UNFENCED_FETCH))
        return replica_check_epoch(r, f->leader_epoch);
    /* The assignment that names it has not arrived here yet. */
    if (!m)
        return f->leader_epoch >= 0 ? ERR_UNKNOWN_LEADER_EPOCH : ERR_NOT_LEADER_OR_FOLLOWER;
    if (f->incarnation < m->registered || f->incarnation < m->incarnation)
        return ERR_STALE_BROKER_EPOCH;
    if (f->offset < e->log.start || (f->last_epoch < 0 && f->offset > e->log.end))
        return ERR_OFFSET_OUT_OF_RANGE;
    if (f->last_epoch >= 0 && f->found_epoch < 0)
        return ERR_OFFSET_OUT_OF_RANGE;
    return ERR_NONE;
}

static bool diverges(const struct replica_fetch *f)
{
    return f->last_epoch >= 0 && (f->found_epoch < f->last_epoch || f->found_end < f->offset);
}

static void note_position(struct replica_member *m, const struct replica_event *e)
{
    const struct replica_fetch *f = &e->fetch;

    m->incarnation = f->incarnation;
    m->acked = MIN(f->acked, f->offset);
    m->log_start = MAX(f->log_start, 0);
    if (!is_behind(m, &e->log))
        m->caught_up_ms = e->now_ms;
    else if (m->acked >= m->fetched_end)
        m->caught_up_ms = MAX(m->caught_up_ms, m->fetched_ms);
    m->fetched_end = e->log.acked;
    m->fetched_ms = e->now_ms;
}

void leader_fetch(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    const struct replica_fetch *f = &e->fetch;
    struct replica_member *m = f->from == r->self ? NULL : replica_member(r, f->from);

    fx->err = check_fetch(r, e, m);
    if (fx->err)
        return;
    if (diverges(f)) {
        fx->diverging_epoch = f->found_epoch;
        fx->diverging_end = f->found_end;
        if (!PLANTED(COUNT_DIVERGING_FETCH))
            return;
    }
    if (f->leader_epoch == r->leader_epoch || PLANTED(UNFENCED_FETCH))
        note_position(m, e);
    fx->is_awaited = holds_back(r, m, e);
}

/* ---- the in-sync set -------------------------------------------------------------------- */

static bool must_leave(const struct replica *r, const struct replica_member *m,
                       const struct replica_event *e)
{
    if (!is_behind(m, &e->log))
        return false;
    if (r->lag_messages_max >= 0 && e->log.acked - MAX(m->acked, 0) > r->lag_messages_max)
        return true;
    return e->now_ms - m->caught_up_ms > r->lag_time_max_ms;
}

/* Who would have to leave at once stays outside: or a slow follower comes and goes all the time. */
static bool may_join(const struct replica *r, const struct replica_member *m,
                     const struct replica_event *e)
{
    if (m->acked < 0 || m->acked < r->high_watermark || !is_eligible(m))
        return false;
    return (m->acked >= r->epoch_start && !must_leave(r, m, e)) || PLANTED(JOIN_BEFORE_EPOCH);
}

static bool belongs(const struct replica *r, const struct replica_member *m,
                    const struct replica_event *e)
{
    if (m->id == r->self)
        return true;
    return m->is_in_isr ? !must_leave(r, m, e) : may_join(r, m, e);
}

static void propose(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    bool has_changed = false;

    for (int32_t i = 0; i < r->member_count; i++)
        has_changed |= belongs(r, &r->members[i], e) != r->members[i].is_in_isr;
    if (!has_changed)
        return;
    for (int32_t i = 0; i < r->member_count; i++) {
        struct replica_member *m = &r->members[i];

        m->is_proposed = belongs(r, m, e);
        m->proposed_as = m->id == r->self ? m->registered : m->incarnation;
    }
    r->is_proposing = fx->must_propose = true;
}

static void review_isr(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    if (r->is_awaiting_orders || e->now_ms < r->propose_at_ms)
        return;
    if (!r->is_proposing) {
        propose(r, e, fx);
    } else if (r->is_proposal_lost) {
        r->is_proposal_lost = false;
        fx->must_propose = true;
    }
}

/* ---- the answer to a proposal ----------------------------------------------------------- */

static void withdraw(struct replica *r)
{
    r->is_proposing = r->is_proposal_lost = false;
    for (int32_t i = 0; i < r->member_count; i++)
        r->members[i].is_proposed = false;
}

static void commit(struct replica *r, const struct replica_altered *a)
{
    withdraw(r);
    r->partition_epoch = a->partition_epoch;
    for (int32_t i = 0; i < r->member_count; i++)
        r->members[i].is_in_isr = metadata_ids_have(&a->isr, r->members[i].id);
}

void leader_altered(struct replica *r, const struct replica_event *e)
{
    const struct replica_altered *a = &e->altered;

    if (r->role != REPLICA_LEADER || !r->is_proposing || a->asked_leader_epoch != r->leader_epoch ||
        a->asked_partition_epoch != r->partition_epoch)
        return;
    switch (a->err) {
    case ERR_NONE:
        if (a->leader_epoch == r->leader_epoch && a->partition_epoch >= r->partition_epoch)
            commit(r, a);
        else
            r->is_awaiting_orders = true;
        break;
    case ERR_OPERATION_NOT_ATTEMPTED:
    case ERR_INELIGIBLE_REPLICA:
        withdraw(r);
        r->propose_at_ms = e->now_ms + PROPOSE_LATER_MS;
        break;
    case ERR_FENCED_LEADER_EPOCH:
    case ERR_INVALID_UPDATE_VERSION:
    case ERR_UNKNOWN_TOPIC_OR_PARTITION:
    case ERR_UNKNOWN_TOPIC_ID:
    case ERR_INVALID_REQUEST:
    case ERR_NEW_LEADER_ELECTED: r->is_awaiting_orders = true; break;
    default:
        if (PLANTED(TIMEOUT_IS_NO))
            withdraw(r);
        r->is_proposal_lost = true;
        r->propose_at_ms = e->now_ms + PROPOSE_AGAIN_MS;
    }
}

/* ---- the high watermark ----------------------------------------------------------------- */

static void review_watermark(struct replica *r, const struct replica_event *e,
                             struct replica_effects *fx)
{
    int64_t hw = e->log.acked;

    fx->lacks_isr = replica_check_isr(r) != ERR_NONE;
    if (fx->lacks_isr && !PLANTED(COMMIT_BELOW_MIN_ISR))
        return;
    for (int32_t i = 0; i < r->member_count; i++) {
        const struct replica_member *m = &r->members[i];

        if (m->id != r->self && holds_back(r, m, e))
            hw = MIN(hw, m->acked);
    }
    if (hw <= r->high_watermark)
        return;
    r->high_watermark = hw;
    fx->has_moved = true;
}

/* Nobody who has everything needs watching. */
static int64_t next_look(const struct replica *r, const struct replica_event *e)
{
    int64_t at = INT64_MAX;

    if (!r->is_awaiting_orders && r->propose_at_ms > e->now_ms)
        at = r->propose_at_ms;
    for (int32_t i = 0; i < r->member_count; i++) {
        const struct replica_member *m = &r->members[i];
        int64_t late_ms = m->caught_up_ms + r->lag_time_max_ms + 1;

        if (m->id != r->self && is_behind(m, &e->log) && late_ms > e->now_ms)
            at = MIN(at, late_ms);
    }
    return at == INT64_MAX ? -1 : at;
}

void leader_review(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    review_isr(r, e, fx);
    review_watermark(r, e, fx);
    fx->wake_ms = next_look(r, e);
}

/* ---- who is near a consumer ------------------------------------------------------------- */

static bool stands_in(const struct metadata_image *image, int32_t id, struct str rack)
{
    const struct metadata_broker *b = metadata_find_broker(image, id);

    return b && str_eq(b->rack, rack);
}

static bool is_nearer(const struct replica_member *m, const struct replica_member *than)
{
    if (m->acked != than->acked)
        return m->acked > than->acked;
    if (m->caught_up_ms != than->caught_up_ms)
        return m->caught_up_ms > than->caught_up_ms;
    return m->id > than->id;
}

int32_t replica_near(const struct replica *r, const struct metadata_image *image, struct str rack,
                     int64_t offset)
{
    const struct replica_member *best = NULL;

    if (r->role != REPLICA_LEADER || stands_in(image, r->self, rack))
        return -1;
    for (int32_t i = 0; i < r->member_count; i++) {
        const struct replica_member *m = &r->members[i];

        /* Who is not in sync may stay behind, and would be named again and again. */
        if (!m->is_in_isr || !is_eligible(m) || m->acked < offset || m->log_start > offset)
            continue;
        if (m->id != r->self && stands_in(image, m->id, rack) && (!best || is_nearer(m, best)))
            best = m;
    }
    return best ? best->id : -1;
}
