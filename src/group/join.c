/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JoinGroup: members come (back) until all are there or the time is up; then the next generation
 * begins with whoever came.
 *
 * The first rebalance of an empty group waits for `group.initial.rebalance.delay.ms`, and as long
 * again when somebody came meanwhile, so that a fleet that starts together is assigned once. A
 * later one waits for the members it knows: at most the longest of their rebalance timeouts.
 *
 * Dynamic members first get an id (MEMBER_ID_REQUIRED, KIP-394) and join with it: a client whose
 * answers are lost does not leave a trail of dead members. A static member that comes back while
 * the group is stable and would choose the same protocol takes its old place without a rebalance
 * (KIP-345); the new id is committed before it is told.
 *
 * Invariant: a parked Join belongs to a member of a group in PREPARING, and there alone.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/planted.h"
#include "group/group_int.h"

/* ---- Answers ---------------------------------------------------------------------------- */

void group__refuse_join(struct group_request *q, enum err err, struct str member_id)
{
    struct join_group_response *out = q->out;

    out->error_code = err_wire(err);
    out->generation_id = -1;
    out->protocol_name = q->version >= 7 ? str_null() : STR_LIT("");
    out->member_id = arena_str(q->arena, member_id);
    out->leader = STR_LIT("");
}

static void refuse(struct groups *g, struct group_request *q, enum err err, struct str member_id)
{
    group__refuse_join(q, err, member_id);
    groups__answer(g, q);
}

static struct bytes arena_bytes(struct arena *a, struct bytes b)
{
    struct str s = arena_str(a, (struct str){.p = (const char *)b.p, .n = b.n});

    return (struct bytes){.p = (const uint8_t *)s.p, .n = s.n};
}

/* What the leader makes an assignment from. */
static void fill_members(const struct group *group, struct group_request *q)
{
    struct join_group_response *out = q->out;

    out->members.v = arena_calloc(q->arena, HASH_COUNT(group->members), sizeof(*out->members.v));
    for (const struct group_member *m = group->members; m; m = m->hh.next) {
        struct join_group_response_member *to = &out->members.v[out->members.n++];

        wire_init(&join_group_response_member_schema, to);
        to->member_id = arena_str(q->arena, str_of(m->id));
        to->group_instance_id = m->instance_id ? arena_str(q->arena, str_of(m->instance_id))
                                               : str_null();
        to->metadata = arena_bytes(q->arena, group__metadata_of(m, group->protocol));
    }
}

static void answer_generation(struct groups *g, struct group_member *m, struct group_request *q,
                              struct str leader, bool with_members)
{
    const struct group *group = m->group;
    struct join_group_response *out = q->out;

    out->error_code = ERR_NONE;
    out->generation_id = group->generation;
    out->protocol_type = arena_str(q->arena, str_of(group->protocol_type));
    out->protocol_name = arena_str(q->arena, str_of(group->protocol));
    out->leader = arena_str(q->arena, leader);
    out->member_id = arena_str(q->arena, str_of(m->id));
    if (with_members)
        fill_members(group, q);
    group__restart_session(g, m);
    groups__answer(g, q);
}

/* The generation there is, for a member that joins without a reason for another one. */
static void answer_current(struct groups *g, struct group_member *m, struct group_request *q)
{
    answer_generation(g, m, q, str_of(m->group->leader->id), m == m->group->leader);
}

/* ---- The end of the join phase ---------------------------------------------------------- */

static bool all_joined(const struct group *group)
{
    if (group->pending)
        return false;
    for (const struct group_member *m = group->members; m; m = m->hh.next)
        if (!m->join)
            return false;
    return true;
}

/* Dynamic members that did not come back are gone; static ones have until their session ends. */
static void remove_absent(struct groups *g, struct group *group)
{
    struct group_member *m;
    struct group_member *next;

    HASH_ITER (hh, group->members, m, next)
        if (!m->join && (!m->instance_id || PLANTED(FORGET_STATIC_MEMBER)))
            group__remove_member(g, m);
}

/* False when members are left and none of them has joined. */
static bool elect_leader(struct group *group)
{
    if (!group->members || group->leader->join)
        return true;
    for (struct group_member *m = group->members; m; m = m->hh.next)
        if (m->join) {
            group->leader = m;
            return true;
        }
    return false;
}

static void become_empty(struct groups *g, struct group *group)
{
    free(group->protocol);
    group->protocol = NULL;
    group__set_state(g, group, GROUP_EMPTY, "nobody is left");
    groups__write_state(g, group, NULL);
}

static void begin_generation(struct groups *g, struct group *group)
{
    char *protocol = str_dup(group__choose_protocol(group));

    free(group->protocol);
    group->protocol = protocol;
    group__set_state(g, group, GROUP_COMPLETING_REBALANCE, "all members joined");
    groups__timer_set(g, &group->sync_timer, group__rebalance_timeout_ms(group));
    for (struct group_member *m = group->members; m; m = m->hh.next) {
        struct group_request *q = m->join;

        m->join = NULL;
        m->is_new = false;
        m->owes_sync = true;
        if (q)
            answer_current(g, m, q);
        else
            group__restart_session(g, m);
    }
}

static void complete_join(struct groups *g, struct group *group)
{
    remove_absent(g, group);
    if (!elect_leader(group)) {
        groups__timer_set(g, &group->join_timer, group__rebalance_timeout_ms(group));
        return;
    }
    groups__timer_cancel(g, &group->join_timer);
    group->is_initial = false;
    group->generation = group->generation == INT32_MAX ? 1 : group->generation + 1;
    if (group->members)
        begin_generation(g, group);
    else
        become_empty(g, group);
}

void group__join_due(struct groups *g, struct group *group)
{
    int64_t delay = MIN(group->initial_left_ms, g->limits.initial_rebalance_delay_ms);

    assert(group->state == GROUP_PREPARING_REBALANCE);
    if (!group->is_initial || !group->has_newcomer || delay <= 0) {
        complete_join(g, group);
        return;
    }
    group->has_newcomer = false;
    group->initial_left_ms -= delay;
    groups__timer_set(g, &group->join_timer, delay);
}

/* ---- The beginning ---------------------------------------------------------------------- */

static void forget_assignments(struct groups *g, struct group *group)
{
    for (struct group_member *m = group->members; m; m = m->hh.next) {
        group__set_assignment(m, bytes_null());
        if (m->sync)
            group__refuse_sync(g, m, ERR_REBALANCE_IN_PROGRESS);
    }
}

static void prepare(struct groups *g, struct group *group, const char *why)
{
    int64_t timeout = group__rebalance_timeout_ms(group);

    if (group->state == GROUP_COMPLETING_REBALANCE)
        forget_assignments(g, group);
    if (group->state == GROUP_COMPLETING_REBALANCE && PLANTED(SAME_GENERATION))
        group->generation--;
    for (struct group_member *m = group->members; m; m = m->hh.next)
        m->owes_sync = false;
    groups__timer_cancel(g, &group->sync_timer);
    group->is_storing = false;
    group->is_initial = group->state == GROUP_EMPTY;
    group->has_newcomer = false;
    if (group->is_initial) {
        int64_t delay = MIN(timeout, g->limits.initial_rebalance_delay_ms);

        group->initial_left_ms = timeout - delay;
        timeout = delay;
    }
    group__set_state(g, group, GROUP_PREPARING_REBALANCE, why);
    groups__timer_set(g, &group->join_timer, timeout);
}

void group__rebalance(struct groups *g, struct group *group, const char *why)
{
    if (group->state != GROUP_PREPARING_REBALANCE)
        prepare(g, group, why);
    if (!group->members || (!group->is_initial && all_joined(group)))
        complete_join(g, group);
}

/* ---- Members ---------------------------------------------------------------------------- */

/* The answer to the Join is the next generation. An older Join of the same member is a lost one. */
static void park(struct groups *g, struct group_member *m, struct group_request *q, const char *why)
{
    if (m->join)
        refuse(g, m->join, ERR_REBALANCE_IN_PROGRESS, str_of(m->id));
    m->join = q;
    group__rebalance(g, m->group, why);
}

static void add_member(struct groups *g, struct group *group, const char *id,
                       struct group_request *q)
{
    struct group_member *m = group__add_member(g, group, id, q);

    if (group->state == GROUP_PREPARING_REBALANCE && group->is_initial)
        group->has_newcomer = true;
    groups__timer_set(g, &m->session, GROUP_NEW_MEMBER_JOIN_MS);
    park(g, m, q, "a member joined");
}

static void rejoin(struct groups *g, struct group_member *m, struct group_request *q,
                   const char *why)
{
    group__update_member(m, q);
    park(g, m, q, why);
}

/* ---- Static members that come back ------------------------------------------------------ */

static void fence(struct groups *g, struct group_member *m)
{
    if (m->join) {
        refuse(g, m->join, ERR_FENCED_INSTANCE_ID, str_of(m->id));
        m->join = NULL;
    }
    if (m->sync)
        group__refuse_sync(g, m, ERR_FENCED_INSTANCE_ID);
}

/*
 * Version 9 tells a leader to keep the assignment. Before it a leader would assign again, for
 * members that do not listen; so it is told the id that it had before, which no member has.
 */
static void answer_takeover(struct groups *g, struct group_member *m, struct group_request *q)
{
    struct join_group_response *out = q->out;
    bool is_leader = m == m->group->leader;
    struct str leader = str_of(m->group->leader->id);

    if (is_leader && q->version < 9)
        leader = out->leader; /* the id before, kept there by take_over */
    out->skip_assignment = is_leader && q->version >= 9;
    answer_generation(g, m, q, leader, is_leader && q->version >= 9);
}

void group__takeover_written(struct groups *g, struct group *group, struct group_request *q,
                             enum err err)
{
    struct join_group_response *out = q->out;
    struct group_member *m = group__find_member(group, out->member_id);

    if (err) {
        refuse(g, q, group__write_error(err), out->member_id);
        return;
    }
    if (!m || group->state != GROUP_STABLE) {
        refuse(g, q, m ? ERR_REBALANCE_IN_PROGRESS : ERR_UNKNOWN_MEMBER_ID, out->member_id);
        return;
    }
    answer_takeover(g, m, q);
}

static bool chooses_the_same(const struct group *group)
{
    return group->protocol && str_eq_c(group__choose_protocol(group), group->protocol);
}

static void take_over(struct groups *g, struct group_member *m, struct group_request *q)
{
    struct group *group = m->group;
    struct join_group_response *out = q->out;
    const struct join_group_request *in = q->in;
    char *id = group__new_member_id(g, in->group_instance_id);
    struct str before = arena_str(q->arena, str_of(m->id));

    fence(g, m);
    trace_info("group.member_replaced", "group=%s instance=%s before=%s now=%s", group->id,
               m->instance_id, m->id, id);
    group__rename_member(m, id);
    free(id);
    if (group->state != GROUP_STABLE) {
        rejoin(g, m, q, "a static member came back");
        return;
    }
    group__update_member(m, q);
    /* The process before had until the end of the rebalance to sync; this one has its session. */
    m->owes_sync = false;
    group__restart_session(g, m);
    if (!chooses_the_same(group)) {
        park(g, m, q, "a static member came back with other protocols");
        return;
    }
    out->member_id = arena_str(q->arena, str_of(m->id));
    out->leader = before;
    groups__write_state(g, group, q);
}

/* ---- The request ------------------------------------------------------------------------ */

static void require_member_id(struct groups *g, struct group *group, struct group_request *q)
{
    const struct join_group_request *in = q->in;
    char *id = group__new_member_id(g, q->client_id);

    group__add_pending(g, group, id, in->session_timeout_ms);
    refuse(g, q, ERR_MEMBER_ID_REQUIRED, str_of(id));
    free(id);
}

static void join_unknown(struct groups *g, struct group *group, struct group_request *q)
{
    const struct join_group_request *in = q->in;
    bool is_static = !str_is_null(in->group_instance_id);
    struct group_member *holder = group__find_instance(group, in->group_instance_id);
    char *id;

    if (!group__supports(group, in)) {
        refuse(g, q, ERR_INCONSISTENT_GROUP_PROTOCOL, in->member_id);
        return;
    }
    if (holder && !PLANTED(TWO_OF_AN_INSTANCE)) {
        take_over(g, holder, q);
        return;
    }
    if (!is_static && q->version >= 4) {
        require_member_id(g, group, q);
        return;
    }
    id = group__new_member_id(g, is_static ? in->group_instance_id : q->client_id);
    add_member(g, group, id, q);
    free(id);
}

static void join_pending(struct groups *g, struct group_pending *p, struct group_request *q)
{
    struct group *group = p->group;
    char *id = xstrdup(p->id);

    group__remove_pending(g, p);
    add_member(g, group, id, q);
    free(id);
}

static void join_member(struct groups *g, struct group_member *m, struct group_request *q)
{
    const struct join_group_request *in = q->in;
    bool matches = group__member_matches(m, in);

    switch (m->group->state) {
    case GROUP_PREPARING_REBALANCE: rejoin(g, m, q, "a member joined again"); break;
    case GROUP_COMPLETING_REBALANCE:
        if (matches)
            answer_current(g, m, q);
        else
            rejoin(g, m, q, "a member joined again with other metadata");
        break;
    case GROUP_STABLE:
        if (m == m->group->leader)
            rejoin(g, m, q, "the leader joined again");
        else if (!matches)
            rejoin(g, m, q, "a member joined again with other metadata");
        else
            answer_current(g, m, q);
        break;
    case GROUP_EMPTY: UNREACHABLE();
    }
}

static void join_known(struct groups *g, struct group *group, struct group_request *q)
{
    const struct join_group_request *in = q->in;
    struct group_pending *p = group__find_pending(group, in->member_id);
    struct group_member *m;
    enum err err = ERR_NONE;

    if (!group__supports(group, in))
        err = ERR_INCONSISTENT_GROUP_PROTOCOL;
    else if (!p)
        err = group__check_member(group, in->member_id, in->group_instance_id, &m);
    if (err)
        refuse(g, q, err, in->member_id);
    else if (p)
        join_pending(g, p, q);
    else
        join_member(g, m, q);
}

/* Bounds of what one member may make us keep: Kafka's are the size of a frame and of a record. */
static enum err check_sizes(const struct join_group_request *in)
{
    int64_t bytes = 0;

    if (in->group_instance_id.n > GROUP_INSTANCE_ID_BYTES_MAX || in->protocol_type.n > INT16_MAX)
        return ERR_INVALID_REQUEST;
    if (str_has_nul(in->group_instance_id) || str_has_nul(in->protocol_type))
        return ERR_INVALID_REQUEST;
    if (in->protocols.n > GROUP_PROTOCOLS_MAX)
        return ERR_INVALID_REQUEST;
    for (int32_t i = 0; i < in->protocols.n; i++) {
        if (in->protocols.v[i].name.n > INT16_MAX || str_has_nul(in->protocols.v[i].name))
            return ERR_INVALID_REQUEST;
        bytes += in->protocols.v[i].name.n + MAX(in->protocols.v[i].metadata.n, 0);
    }
    return bytes > GROUP_MEMBER_BYTES_MAX ? ERR_INVALID_REQUEST : ERR_NONE;
}

static enum err check_request(const struct groups *g, const struct join_group_request *in)
{
    if (in->session_timeout_ms < g->limits.session_timeout_min_ms ||
        in->session_timeout_ms > g->limits.session_timeout_max_ms)
        return ERR_INVALID_SESSION_TIMEOUT;
    return check_sizes(in);
}

static int32_t count_joined(const struct group *group)
{
    int32_t n = 0;

    for (const struct group_member *m = group->members; m; m = m->hh.next)
        n += m->join != NULL;
    return n;
}

static bool has_room(const struct groups *g, const struct group *group, struct str member_id)
{
    const struct group_member *m = group__find_member(group, member_id);

    if (HASH_COUNT(group->pending) >= GROUP_PENDING_MAX || group->bytes > GROUP_BYTES_MAX)
        return m != NULL;
    if (group->state == GROUP_EMPTY)
        return true;
    /* While the group rebalances, whoever comes first has the place. */
    if (group->state == GROUP_PREPARING_REBALANCE)
        return (m && m->join) || count_joined(group) < g->limits.size_max;
    return m || (int64_t)HASH_COUNT(group->members) < g->limits.size_max;
}

/* A member that comes back too late has lost its place; the others need not wait for it. */
static void refuse_for_size(struct groups *g, struct group *group, struct group_request *q)
{
    const struct join_group_request *in = q->in;
    struct group_member *m = group__find_member(group, in->member_id);

    refuse(g, q, ERR_GROUP_MAX_SIZE_REACHED, STR_LIT(""));
    if (!m)
        return;
    assert(group->state == GROUP_PREPARING_REBALANCE);
    group__remove_member(g, m);
    group__rebalance(g, group, "the group is full");
}

void group__join(struct groups *g, struct group_request *q)
{
    const struct join_group_request *in = q->in;
    bool is_unknown = in->member_id.n <= 0;
    enum err err = check_request(g, in);
    struct group *group = is_unknown && !err ? groups__get(g, in->group_id)
                                             : groups__find(g, in->group_id);

    if (!err && !group)
        err = ERR_UNKNOWN_MEMBER_ID;
    if (err) {
        refuse(g, q, err, in->member_id);
        return;
    }
    if (!has_room(g, group, in->member_id)) {
        refuse_for_size(g, group, q);
        return;
    }
    if (is_unknown)
        join_unknown(g, group, q);
    else
        join_known(g, group, q);
}
