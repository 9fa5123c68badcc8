/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SyncGroup, Heartbeat, LeaveGroup: a member's life between two rebalances.
 *
 * The leader's Sync carries the assignment; it is committed before anybody gets it. Followers that
 * sync earlier are parked. A member that owes its Sync when the rebalance timeout is over is
 * removed: it would hold partitions that it does not read.
 *
 * The session timer restarts with every sign of life. A member that is parked cannot give any and
 * is not expected to; only one that has never had an answer is removed while it is parked, because
 * nobody knows whether there still is somebody.
 */
#include "base/planted.h"
#include "group/group_int.h"

/* ---- Sync ------------------------------------------------------------------------------- */

static void answer_sync(struct groups *g, struct group_member *m, struct group_request *q)
{
    struct sync_group_response *out = q->out;
    struct str assignment = {.p = (const char *)m->assignment, .n = m->assignment_n};

    assignment = arena_str(q->arena, assignment);
    out->protocol_type = arena_str(q->arena, str_of(m->group->protocol_type));
    out->protocol_name = arena_str(q->arena, str_of(m->group->protocol));
    out->assignment = (struct bytes){.p = (const uint8_t *)assignment.p, .n = assignment.n};
    m->owes_sync = false;
    group__restart_session(g, m);
    groups__answer(g, q);
}

static void refuse(struct groups *g, struct group_request *q, enum err err)
{
    group_refuse(q, err);
    groups__answer(g, q);
}

void group__refuse_sync(struct groups *g, struct group_member *m, enum err err)
{
    struct group_request *q = m->sync;

    m->sync = NULL;
    group__restart_session(g, m); /* it may have ended while the Sync was parked */
    refuse(g, q, err);
}

static void take_assignments(struct group *group, const struct sync_group_request *in)
{
    for (struct group_member *m = group->members; m; m = m->hh.next)
        group__set_assignment(m, bytes_null());
    for (int32_t i = 0; i < in->assignments.n; i++) {
        struct group_member *m = group__find_member(group, in->assignments.v[i].member_id);

        if (m)
            group__set_assignment(m, in->assignments.v[i].assignment);
    }
}

static void sync_completing(struct groups *g, struct group_member *m, struct group_request *q)
{
    struct group *group = m->group;

    if (m->sync)
        group__refuse_sync(g, m, ERR_REBALANCE_IN_PROGRESS);
    m->sync = q;
    m->owes_sync = false;
    if (m != group->leader || group->is_storing)
        return;
    take_assignments(group, q->in);
    group->is_storing = true;
    groups__write_state(g, group, NULL);
    if (PLANTED(ASSIGNMENT_NOT_DURABLE))
        group__assignment_written(g, group, group->generation, ERR_NONE);
}

void group__assignment_written(struct groups *g, struct group *group, int32_t generation,
                               enum err err)
{
    if (group->state != GROUP_COMPLETING_REBALANCE || group->generation != generation)
        return;
    group->is_storing = false;
    if (err) {
        enum err answer = group__write_error(err);

        if (answer == ERR_INVALID_COMMIT_OFFSET_SIZE)
            answer = ERR_UNKNOWN_SERVER_ERROR;
        for (struct group_member *m = group->members; m; m = m->hh.next)
            if (m->sync)
                group__refuse_sync(g, m, answer);
        group__rebalance(g, group, "the assignment could not be stored");
        return;
    }
    group__set_state(g, group, GROUP_STABLE, "the assignment is stored");
    for (struct group_member *m = group->members; m; m = m->hh.next) {
        struct group_request *q = m->sync;

        m->sync = NULL;
        if (q)
            answer_sync(g, m, q);
    }
}

static bool differs(struct str said, const char *ours)
{
    return !str_is_null(said) && (!ours || !str_eq_c(said, ours));
}

static enum err check_sync(const struct group *group, const struct sync_group_request *in,
                           struct group_member **m)
{
    enum err err;

    if (!group)
        return ERR_UNKNOWN_MEMBER_ID;
    err = group__check_member(group, in->member_id, in->group_instance_id, m);
    if (err)
        return err;
    if (in->generation_id != group->generation)
        return ERR_ILLEGAL_GENERATION;
    if (differs(in->protocol_type, group->protocol_type) ||
        differs(in->protocol_name, group->protocol))
        return ERR_INCONSISTENT_GROUP_PROTOCOL;
    return ERR_NONE;
}

void group__sync(struct groups *g, struct group_request *q)
{
    const struct sync_group_request *in = q->in;
    struct group *group = groups__find(g, in->group_id);
    struct group_member *m = NULL;
    enum err err = check_sync(group, in, &m);

    if (err) {
        refuse(g, q, err);
        return;
    }
    switch (group->state) {
    case GROUP_EMPTY: refuse(g, q, ERR_UNKNOWN_MEMBER_ID); break;
    case GROUP_PREPARING_REBALANCE: refuse(g, q, ERR_REBALANCE_IN_PROGRESS); break;
    case GROUP_COMPLETING_REBALANCE: sync_completing(g, m, q); break;
    case GROUP_STABLE: answer_sync(g, m, q); break;
    }
}

void group__sync_due(struct groups *g, struct group *group)
{
    struct group_member *m;
    struct group_member *next;
    bool any = false;

    if (group->state != GROUP_COMPLETING_REBALANCE && group->state != GROUP_STABLE)
        return;
    HASH_ITER (hh, group->members, m, next) {
        if (!m->owes_sync)
            continue;
        trace_info("group.member_removed", "group=%s member=%s why=\"no sync in time\"", group->id,
                   m->id);
        group__remove_member(g, m);
        any = true;
    }
    if (any)
        group__rebalance(g, group, "members did not sync in time");
}

/* ---- Heartbeat -------------------------------------------------------------------------- */

static enum err beat(struct groups *g, const struct heartbeat_request *in)
{
    struct group *group = groups__find(g, in->group_id);
    struct group_member *m;
    enum err err;

    if (!group)
        return ERR_UNKNOWN_MEMBER_ID;
    err = group__check_member(group, in->member_id, in->group_instance_id, &m);
    if (err == ERR_UNKNOWN_MEMBER_ID && PLANTED(BEAT_OF_NOBODY))
        return ERR_NONE;
    if (err)
        return err;
    if (in->generation_id != group->generation && !PLANTED(BEAT_OF_OLD_GENERATION))
        return ERR_ILLEGAL_GENERATION;
    if (!PLANTED(SESSION_NOT_EXTENDED))
        group__restart_session(g, m);
    return group->state == GROUP_PREPARING_REBALANCE ? ERR_REBALANCE_IN_PROGRESS : ERR_NONE;
}

void group__heartbeat(struct groups *g, struct group_request *q)
{
    refuse(g, q, beat(g, q->in));
}

void group__session_due(struct groups *g, struct group_member *m)
{
    struct group *group = m->group;

    if ((m->join && !m->is_new) || m->sync)
        return;
    trace_info("group.member_removed", "group=%s member=%s why=\"session timeout\"", group->id,
               m->id);
    group__remove_member(g, m);
    if (group->members && PLANTED(VANISHED_WITHOUT_REBALANCE))
        return;
    group__rebalance(g, group, "a member's session timed out");
}

/* ---- Leave ------------------------------------------------------------------------------ */

/* One that goes; *removed is set when a member has gone. */
static enum err leave_one(struct groups *g, struct group *group, struct str id, struct str instance,
                          bool *removed)
{
    struct group_pending *p = group__find_pending(group, id);
    struct group_member *m = NULL;
    enum err err = ERR_NONE;

    if (p) {
        group__remove_pending(g, p);
        *removed = true;
        return ERR_NONE;
    }
    if (id.n == 0 && !str_is_null(instance))
        m = group__find_instance(group, instance);
    else
        err = group__check_member(group, id, instance, &m);
    if (err || !m)
        return err ? err : ERR_UNKNOWN_MEMBER_ID;
    group__remove_member(g, m);
    *removed = true;
    return ERR_NONE;
}

static enum err leave(struct groups *g, struct str group_id, struct str id, struct str instance,
                      bool *removed)
{
    struct group *group = groups__find(g, group_id);

    return group ? leave_one(g, group, id, instance, removed) : ERR_UNKNOWN_MEMBER_ID;
}

static void leave_many(struct groups *g, struct group_request *q, bool *removed)
{
    const struct leave_group_request *in = q->in;
    struct leave_group_response *out = q->out;

    out->members.n = MAX(in->members.n, 0);
    out->members.v = arena_calloc(q->arena, (size_t)out->members.n, sizeof(*out->members.v));
    for (int32_t i = 0; i < out->members.n; i++) {
        const struct leave_group_request_member *from = &in->members.v[i];
        struct leave_group_response_member *to = &out->members.v[i];
        enum err err = leave(g, in->group_id, from->member_id, from->group_instance_id, removed);

        to->member_id = from->member_id;
        to->group_instance_id = from->group_instance_id;
        to->error_code = err_wire(err);
    }
}

void group__leave(struct groups *g, struct group_request *q)
{
    const struct leave_group_request *in = q->in;
    struct leave_group_response *out = q->out;
    struct group *group = groups__find(g, in->group_id);
    bool removed = false;

    if (q->version >= 3)
        leave_many(g, q, &removed);
    else
        out->error_code = err_wire(leave(g, in->group_id, in->member_id, str_null(), &removed));
    if (removed && group->state != GROUP_EMPTY)
        group__rebalance(g, group, "a member left");
    groups__answer(g, q);
}
