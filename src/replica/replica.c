/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step: which role the replica has, and which of its files knows the event. What both roles
 * share is here: the assignment and its members.
 *
 * An assignment counts only if it is newer than what is known: by leader epoch, and within one by
 * partition epoch. Orders arrive late, twice and in any order; an epoch has one leader, so whatever
 * is older can be ignored.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/attr.h"
#include "replica/replica_int.h"

struct replica_member *replica_member(const struct replica *r, int32_t id)
{
    for (int32_t i = 0; i < r->member_count; i++)
        if (r->members[i].id == id)
            return &r->members[i];
    return NULL;
}

static void configure(struct replica *r, const struct replica_config *c)
{
    r->lag_time_max_ms = c->lag_time_max_ms;
    r->lag_messages_max = c->lag_messages_max;
    r->min_insync = c->min_insync;
    r->backoff_max_ms = c->backoff_max_ms;
}

void replica_init(struct replica *r, int32_t self, const struct replica_config *config,
                  int64_t high_watermark)
{
    *r = (struct replica){
        .self = self,
        .leader = -1,
        .leader_epoch = -1,
        .partition_epoch = -1,
        .high_watermark = high_watermark,
        .epoch_start = -1,
        .leader_watermark = -1,
    };
    configure(r, config);
}

void replica_fini(struct replica *r)
{
    free(r->members);
    r->members = NULL;
    r->member_count = 0;
}

/* ---- assignment ------------------------------------------------------------------------- */

static void set_members(struct replica *r, const struct metadata_partition *p)
{
    struct replica old = *r;

    r->member_count = p->replicas.count;
    r->members = xcalloc((size_t)p->replicas.count, sizeof(*r->members));
    for (int32_t i = 0; i < p->replicas.count; i++) {
        struct replica_member *m = &r->members[i];
        const struct replica_member *before = replica_member(&old, p->replicas.ids[i]);

        *m = before ? *before
                    : (struct replica_member){.registered = -1, .incarnation = -1, .acked = -1};
        m->id = p->replicas.ids[i];
        m->is_in_isr = metadata_ids_have(&p->isr, m->id);
        m->is_proposed = false;
    }
    free(old.members);
}

/* An epoch that the log knows has been led already, maybe by an earlier life of this broker that
 * wrote what this one has lost. Where there are no other replicas, nobody can tell. */
static bool may_lead(const struct replica *r, const struct replica_event *e)
{
    return r->member_count == 1 || e->log.latest_epoch < e->assign->leader_epoch ||
           PLANTED(LEAD_AGAIN);
}

static void take_role(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    enum replica_role before = r->role;

    r->is_proposing = r->is_proposal_lost = r->is_awaiting_orders = false;
    r->is_fetch_out = r->is_appending = false;
    r->epoch_start = r->leader_watermark = -1;
    r->failures = 0;
    r->pause_end_ms = r->propose_at_ms = 0;
    r->role = REPLICA_IDLE;
    if (r->leader == r->self) {
        fx->must_refuse = !may_lead(r, e);
        if (!fx->must_refuse)
            r->role = REPLICA_LEADER;
    } else if (r->leader >= 0 && replica_member(r, r->self)) {
        r->role = REPLICA_FOLLOWER;
    }
    fx->has_resigned = before == REPLICA_LEADER && r->role != REPLICA_LEADER;
    if (r->role == REPLICA_LEADER && !r->is_cutting)
        leader_begin(r, e, fx);
}

static void assign(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    const struct metadata_partition *p = e->assign;
    bool is_new_epoch = p->leader_epoch > r->leader_epoch;
    bool is_new_version = p->leader_epoch == r->leader_epoch &&
                          p->partition_epoch > r->partition_epoch && p->leader == r->leader;

    if (!is_new_epoch && !is_new_version && !PLANTED(OBEY_OLD_ORDERS)) {
        fx->is_stale = true;
        return;
    }
    set_members(r, p);
    r->partition_epoch = p->partition_epoch;
    r->leader = p->leader;
    r->leader_epoch = p->leader_epoch;
    if (!is_new_version)
        take_role(r, e, fx);
    else if (r->role == REPLICA_LEADER)
        leader_reassigned(r);
}

static void note_brokers(struct replica *r, const struct metadata_image *image)
{
    for (int32_t i = 0; i < r->member_count; i++) {
        struct replica_member *m = &r->members[i];
        const struct metadata_broker *b = metadata_find_broker(image, m->id);

        m->registered = b ? b->epoch : -1;
        m->is_alive = b && !b->is_fenced;
    }
}

/* ---- the step --------------------------------------------------------------------------- */

static void truncated(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    r->is_cutting = false;
    /* The cut may be lower: between batches. */
    r->high_watermark = MIN(r->high_watermark, e->log.end);
    if (r->role == REPLICA_LEADER && r->epoch_start < 0)
        leader_begin(r, e, fx);
    else if (r->role == REPLICA_FOLLOWER)
        follower_truncated(r, e);
}

static void handle(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    switch (e->kind) {
    case REPLICA_ASSIGN: assign(r, e, fx); break;
    case REPLICA_BROKERS: note_brokers(r, e->image); break;
    case REPLICA_CONFIG: configure(r, e->config); break;
    case REPLICA_FETCH: leader_fetch(r, e, fx); break;
    case REPLICA_ALTERED: leader_altered(r, e); break;
    case REPLICA_FETCHED: follower_fetched(r, e, fx); break;
    case REPLICA_APPENDED: follower_appended(r, e); break;
    case REPLICA_TRUNCATED: truncated(r, e, fx); break;
    case REPLICA_ADVANCED:
    case REPLICA_TICK: break;
    }
}

void replica_step(struct replica *r, const struct replica_event *e, struct replica_effects *fx)
{
    *fx = (struct replica_effects){
        .diverging_epoch = -1, .diverging_end = -1, .log_start = -1, .wake_ms = -1};
    assert(e->log.start <= e->log.acked && e->log.acked <= e->log.end);
    handle(r, e, fx);
    if (r->role == REPLICA_LEADER && r->epoch_start >= 0)
        leader_review(r, e, fx);
    else if (r->role == REPLICA_FOLLOWER)
        follower_go_on(r, e, fx);
}

/* ---- queries ---------------------------------------------------------------------------- */

int32_t replica_proposal(const struct replica *r, const struct replica_member **out)
{
    int32_t n = 0;

    for (int32_t i = 0; i < r->member_count; i++)
        if (r->is_proposing ? r->members[i].is_proposed : r->members[i].is_in_isr)
            out[n++] = &r->members[i];
    return n;
}

int32_t replica_isr(const struct replica *r, int32_t *out)
{
    int32_t n = 0;

    for (int32_t i = 0; i < r->member_count; i++)
        if (r->members[i].is_in_isr)
            out[n++] = r->members[i].id;
    return n;
}

enum err replica_check_isr(const struct replica *r)
{
    int32_t n = 0;

    for (int32_t i = 0; i < r->member_count; i++)
        n += r->members[i].is_in_isr;
    return n < MIN(r->min_insync, r->member_count) ? ERR_NOT_ENOUGH_REPLICAS : ERR_NONE;
}

bool replica_knows_end(const struct replica *r)
{
    return r->role == REPLICA_LEADER && r->epoch_start >= 0 && r->high_watermark >= r->epoch_start;
}

bool replica_is_heard(const struct replica *r, int64_t now_ms, int64_t within_ms)
{
    for (int32_t i = 0; i < r->member_count; i++) {
        const struct replica_member *m = &r->members[i];

        if (m->is_in_isr && m->id != r->self && now_ms - m->fetched_ms > within_ms)
            return false;
    }
    return true;
}

bool replica_serves(const struct replica *r)
{
    return r->role == REPLICA_FOLLOWER && r->leader_watermark >= 0 && r->failures == 0 &&
           !r->is_cutting;
}

bool replica_keeps_up(const struct replica *r, int64_t end)
{
    const struct replica_member *self = replica_member(r, r->self);

    return (self && self->is_in_isr) || (r->leader_watermark >= 0 && end >= r->leader_watermark);
}

enum err replica_check_epoch(const struct replica *r, int32_t epoch)
{
    if (epoch < 0 || epoch == r->leader_epoch)
        return ERR_NONE;
    return epoch < r->leader_epoch ? ERR_FENCED_LEADER_EPOCH : ERR_UNKNOWN_LEADER_EPOCH;
}
