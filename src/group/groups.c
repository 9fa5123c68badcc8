/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of groups: look-up, timers, writes, and the step that hands an event to whoever deals
 * with it.
 *
 * Everything that waits for time hangs in one heap; at the end of each step what is due is dealt
 * with, so a delay of 0 costs no extra turn, and the caller needs one timer for all groups.
 *
 * A write holds its group: a group is freed only when it has no members, no offsets, no pending
 * ids and no write in flight. That is looked at once, at the end of the event that touched it, so
 * that no handler has to think about its group going away.
 *
 * State changes twice: when it is decided and when it is committed. What is decided and not
 * committed is in the write alone; readers see what is committed. That is how a coordinator that
 * crashes, or loses its partition, never has shown something that its successor does not know.
 */
#include <stdlib.h>

#include "group/group_int.h"

struct group_write_span {
    size_t key_at;
    size_t key_n;
    size_t value_n;
    bool is_null;
};

/* ---- The set ---------------------------------------------------------------------------- */

struct group *groups__find(const struct groups *g, struct str id)
{
    struct group *group = NULL;

    if (id.n >= 0)
        HASH_FIND(hh, g->by_id, id.p, (unsigned)id.n, group);
    return group;
}

struct group *groups__get(struct groups *g, struct str id)
{
    struct group *group = groups__find(g, id);

    if (group)
        return group;
    group = xcalloc(1, sizeof(*group));
    group->id = xstrndup(id.n > 0 ? id.p : "", (size_t)id.n);
    group->state_since_ms = -1;
    group->join_timer.kind = GROUP_TIMER_JOIN;
    group->sync_timer.kind = GROUP_TIMER_SYNC;
    HASH_ADD_KEYPTR(hh, g->by_id, group->id, (unsigned)id.n, group);
    return group;
}

static void free_group(struct groups *g, struct group *group)
{
    struct group_offset *o;
    struct group_offset *next;

    assert(!group->members && !group->pending && group->writes == 0);
    HASH_ITER (hh, group->offsets, o, next)
        group__drop_offset(g, group, o);
    groups__timer_cancel(g, &group->join_timer);
    groups__timer_cancel(g, &group->sync_timer);
    HASH_DEL(g->by_id, group);
    free(group->protocol_type);
    free(group->protocol);
    free(group->id);
    free(group);
}

/* A group that has a generation stays until its tombstone is written (groups__expire). */
void groups__free_if_unused(struct groups *g, struct group *group)
{
    if (group->members || group->pending || group->offsets || group->writes > 0)
        return;
    if (group->state == GROUP_EMPTY && group->generation == 0)
        free_group(g, group);
}

static void end_touched(struct groups *g)
{
    struct group *group = g->touched;

    g->touched = NULL;
    if (group)
        groups__free_if_unused(g, group);
}

void groups__answer(struct groups *g, struct group_request *q)
{
    list_push_back(&g->fx->answers, &q->link);
}

int32_t groups_count(const struct groups *g)
{
    return (int32_t)HASH_COUNT(g->by_id);
}

int64_t groups_offset_count(const struct groups *g)
{
    return g->offset_count;
}

/* ---- States ----------------------------------------------------------------------------- */

const char *group__state_name(const struct group *group)
{
    switch (group->state) {
    case GROUP_EMPTY: return "Empty";
    case GROUP_PREPARING_REBALANCE: return "PreparingRebalance";
    case GROUP_COMPLETING_REBALANCE: return "CompletingRebalance";
    case GROUP_STABLE: return "Stable";
    }
    UNREACHABLE();
}

/* Rows: from; columns: to. */
static const bool allowed[4][4] = {
    [GROUP_EMPTY] = {[GROUP_PREPARING_REBALANCE] = true},
    [GROUP_PREPARING_REBALANCE] = {[GROUP_EMPTY] = true, [GROUP_COMPLETING_REBALANCE] = true},
    [GROUP_COMPLETING_REBALANCE] = {[GROUP_PREPARING_REBALANCE] = true, [GROUP_STABLE] = true},
    [GROUP_STABLE] = {[GROUP_PREPARING_REBALANCE] = true},
};

void group__set_state(struct groups *g, struct group *group, enum group_state state,
                      const char *why)
{
    const char *before = group__state_name(group);

    assert(allowed[group->state][state]);
    group->state = state;
    group->state_since_ms = g->wall_ms;
    assert(IMPLIES(state == GROUP_EMPTY, !group->members));
    assert(IMPLIES(state == GROUP_STABLE, group->leader));
    trace_debug("group.state", "group=%s generation=%d from=%s to=%s why=\"%s\"", group->id,
                group->generation, before, group__state_name(group), why);
}

/* ---- Timers ----------------------------------------------------------------------------- */

void groups__timer_set(struct groups *g, struct group_timer *t, int64_t after_ms)
{
    heap_remove(&g->timers, &t->node);
    heap_push(&g->timers, &t->node, g->mono_ms + after_ms);
}

void groups__timer_cancel(struct groups *g, struct group_timer *t)
{
    heap_remove(&g->timers, &t->node);
}

static void pending_due(struct groups *g, struct group_pending *p)
{
    struct group *group = p->group;

    group__remove_pending(g, p);
    if (group->state == GROUP_PREPARING_REBALANCE)
        group__rebalance(g, group, "an id that was given out was not used");
}

static void expiry_due(struct groups *g)
{
    groups__expire(g);
    if (g->by_id)
        groups__timer_set(g, &g->expiry_timer, g->limits.offset_check_interval_ms);
}

/* Those who wait hear that it takes too long; the write itself is still to be reported. */
static void write_due(struct groups *g, struct group_write *w)
{
    struct group_request *q = w->_request;

    trace_warn("group.write_slow", "group=%s ms=%d", w->_group->id, g->limits.write_timeout_ms);
    w->_request = NULL;
    if (w->kind == GROUP_WRITE_STATE && q)
        group__takeover_written(g, w->_group, q, ERR_REQUEST_TIMED_OUT);
    else if (w->kind == GROUP_WRITE_STATE)
        group__assignment_written(g, w->_group, w->_generation, ERR_REQUEST_TIMED_OUT);
    else if (q) {
        group_refuse(q, group__write_error(ERR_REQUEST_TIMED_OUT));
        groups__answer(g, q);
    }
}

static void writes_due(struct groups *g)
{
    struct group_write *w;

    while ((w = LIST_FIRST(&g->unreported, struct group_write, _unreported))) {
        if (w->_deadline_ms > g->mono_ms) {
            groups__timer_set(g, &g->write_timer, w->_deadline_ms - g->mono_ms);
            return;
        }
        list_remove(&w->_unreported);
        write_due(g, w);
    }
}

static void timer_due(struct groups *g, struct group_timer *t)
{
    switch (t->kind) {
    case GROUP_TIMER_SESSION: {
        struct group_member *m = CONTAINER_OF(t, struct group_member, session);

        g->touched = m->group;
        group__session_due(g, m);
        break;
    }
    case GROUP_TIMER_PENDING: {
        struct group_pending *p = CONTAINER_OF(t, struct group_pending, timer);

        g->touched = p->group;
        pending_due(g, p);
        break;
    }
    case GROUP_TIMER_JOIN:
        g->touched = CONTAINER_OF(t, struct group, join_timer);
        group__join_due(g, g->touched);
        break;
    case GROUP_TIMER_SYNC:
        g->touched = CONTAINER_OF(t, struct group, sync_timer);
        group__sync_due(g, g->touched);
        break;
    case GROUP_TIMER_EXPIRY: expiry_due(g); break;
    case GROUP_TIMER_WRITE: writes_due(g); break;
    }
    end_touched(g);
}

static void fire_timers(struct groups *g)
{
    struct heap_node *first;

    while ((first = heap_min(&g->timers)) && first->key <= g->mono_ms) {
        heap_remove(&g->timers, first);
        timer_due(g, CONTAINER_OF(first, struct group_timer, node));
    }
    g->fx->wake_ms = first ? first->key : INT64_MAX;
}

/* ---- Writes ----------------------------------------------------------------------------- */

struct group_write *groups__write_new(struct groups *g, struct group *group,
                                      enum group_write_kind kind, struct group_request *q)
{
    struct group_write *w = xcalloc(1, sizeof(*w));

    list_init(&w->link);
    list_init(&w->_unreported);
    w->kind = kind;
    w->timestamp_ms = g->wall_ms;
    w->_group = group;
    w->_request = q;
    w->_generation = group->generation;
    group->writes++;
    return w;
}

struct buf *group_write__bytes(struct group_write *w)
{
    return &w->_bytes;
}

void group_write__end_key(struct group_write *w)
{
    struct group_write_span *last = w->count > 0 ? &w->_spans[w->count - 1] : NULL;
    size_t at = last ? last->key_at + last->key_n + last->value_n : 0;

    w->_spans = xreallocarray(w->_spans, (size_t)w->count + 1, sizeof(*w->_spans));
    w->_spans[w->count++] =
        (struct group_write_span){.key_at = at, .key_n = w->_bytes.n - at, .is_null = true};
}

void group_write__end_value(struct group_write *w, bool is_null)
{
    struct group_write_span *last = &w->_spans[w->count - 1];

    last->value_n = w->_bytes.n - last->key_at - last->key_n;
    last->is_null = is_null;
    assert(IMPLIES(is_null, last->value_n == 0));
}

void group_write_record(const struct group_write *w, int32_t index, struct bytes *key,
                        struct bytes *value)
{
    const struct group_write_span *s = &w->_spans[index];
    const uint8_t *p = w->_bytes.p + s->key_at;

    assert(index >= 0 && index < w->count);
    *key = (struct bytes){.p = p, .n = (int32_t)s->key_n};
    *value = s->is_null ? bytes_null()
                        : (struct bytes){.p = p + s->key_n, .n = (int32_t)s->value_n};
}

void groups__write_submit(struct groups *g, struct group_write *w)
{
    assert(w->count > 0);
    list_push_back(&g->fx->writes, &w->link);
    list_push_back(&g->unreported, &w->_unreported);
    w->_deadline_ms = g->mono_ms + g->limits.write_timeout_ms;
    if (g->write_timer.node.pos == 0)
        groups__timer_set(g, &g->write_timer, g->limits.write_timeout_ms);
}

void group_write__free(struct group_write *w)
{
    w->_group->writes--;
    assert(w->_group->writes >= 0);
    list_remove(&w->_unreported);
    for (int32_t i = 0; i < w->_offset_count; i++)
        group__free_offset(w->_offsets[i]);
    free(w->_offsets);
    free(w->_spans);
    buf_fini(&w->_bytes);
    free(w);
}

static void put_member(struct buf *out, const struct group *group, const struct group_member *m)
{
    struct group_value_member v = {
        .id = str_of(m->id),
        .instance_id = str_of(m->instance_id),
        .client_id = str_of(m->client_id),
        .client_host = str_of(m->client_host),
        .rebalance_timeout_ms = m->rebalance_timeout_ms,
        .session_timeout_ms = m->session_timeout_ms,
        .subscription = group__metadata_of(m, group->protocol),
        .assignment = {.p = m->assignment, .n = m->assignment_n},
    };

    record__put_member(out, &v);
}

void groups__write_state(struct groups *g, struct group *group, struct group_request *q)
{
    struct group_write *w = groups__write_new(g, group, GROUP_WRITE_STATE, q);
    struct buf *out = group_write__bytes(w);
    struct group_value v = {
        .protocol_type = str_or_empty(group->protocol_type),
        .generation = group->generation,
        .protocol = str_of(group->protocol),
        .leader = group->leader ? str_of(group->leader->id) : str_null(),
        .state_ms = group->state_since_ms,
        .member_count = (int32_t)HASH_COUNT(group->members),
    };

    record__put_group_key(out, str_of(group->id));
    group_write__end_key(w);
    record__put_group_value(out, &v);
    for (struct group_member *m = group->members; m; m = m->hh.next)
        put_member(out, group, m);
    group_write__end_value(w, false);
    groups__write_submit(g, w);
}

enum err group__write_error(enum err err)
{
    switch (err_wire(err)) {
    case ERR_NONE: return ERR_NONE;
    case ERR_UNKNOWN_TOPIC_OR_PARTITION:
    case ERR_NOT_ENOUGH_REPLICAS:
    case ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    case ERR_REQUEST_TIMED_OUT: return ERR_COORDINATOR_NOT_AVAILABLE;
    case ERR_NOT_LEADER_OR_FOLLOWER:
    case ERR_NOT_COORDINATOR:
    case ERR_KAFKA_STORAGE_ERROR: return ERR_NOT_COORDINATOR;
    case ERR_MESSAGE_TOO_LARGE:
    case ERR_RECORD_LIST_TOO_LARGE: return ERR_INVALID_COMMIT_OFFSET_SIZE;
    default: return ERR_UNKNOWN_SERVER_ERROR;
    }
}

static void state_written(struct groups *g, struct group_write *w, enum err err)
{
    if (err)
        trace_warn("group.write_failed", "group=%s generation=%d error=%s", w->_group->id,
                   w->_generation, err_name(err));
    if (w->_request)
        group__takeover_written(g, w->_group, w->_request, err);
    else
        group__assignment_written(g, w->_group, w->_generation, err);
}

static void written(struct groups *g, struct group_write *w, enum err err)
{
    struct group *group = w->_group;

    g->touched = group;
    switch (w->kind) {
    case GROUP_WRITE_OFFSETS: group__offsets_written(g, w, err); break;
    case GROUP_WRITE_STATE: state_written(g, w, err); break;
    case GROUP_WRITE_REMOVAL: group__removal_written(g, w, err); break;
    }
    group_write__free(w);
    if (list_is_empty(&g->unreported))
        groups__timer_cancel(g, &g->write_timer);
}

/* ---- Requests --------------------------------------------------------------------------- */

static enum err check_group_id(const struct group_request *q, struct str id)
{
    if (id.n < 0 || id.n > INT16_MAX || str_has_nul(id))
        return ERR_INVALID_GROUP_ID;
    if (id.n == 0 && q->op <= GROUP_LEAVE)
        return ERR_INVALID_GROUP_ID;
    return ERR_NONE;
}

static struct str group_id_of(const struct group_request *q)
{
    switch (q->op) {
    case GROUP_JOIN: return ((const struct join_group_request *)q->in)->group_id;
    case GROUP_SYNC: return ((const struct sync_group_request *)q->in)->group_id;
    case GROUP_HEARTBEAT: return ((const struct heartbeat_request *)q->in)->group_id;
    case GROUP_LEAVE: return ((const struct leave_group_request *)q->in)->group_id;
    case GROUP_COMMIT: return ((const struct offset_commit_request *)q->in)->group_id;
    case GROUP_OFFSET_DELETE: return ((const struct offset_delete_request *)q->in)->group_id;
    case GROUP_DELETE: return *(const struct str *)q->in;
    }
    UNREACHABLE();
}

void group_refuse(struct group_request *q, enum err err)
{
    int16_t code = err_wire(err);

    switch (q->op) {
    case GROUP_JOIN:
        group__refuse_join(q, err, ((const struct join_group_request *)q->in)->member_id);
        break;
    case GROUP_SYNC: ((struct sync_group_response *)q->out)->error_code = code; break;
    case GROUP_HEARTBEAT: ((struct heartbeat_response *)q->out)->error_code = code; break;
    case GROUP_LEAVE: ((struct leave_group_response *)q->out)->error_code = code; break;
    case GROUP_COMMIT: group__refuse_commit(q, err); break;
    case GROUP_OFFSET_DELETE: ((struct offset_delete_response *)q->out)->error_code = code; break;
    case GROUP_DELETE: ((struct delete_groups_response_result *)q->out)->error_code = code; break;
    }
}

static void request(struct groups *g, struct group_request *q)
{
    struct str id = group_id_of(q);
    enum err err = check_group_id(q, id);

    list_init(&q->link);
    if (err) {
        group_refuse(q, err);
        groups__answer(g, q);
        return;
    }
    switch (q->op) {
    case GROUP_JOIN: group__join(g, q); break;
    case GROUP_SYNC: group__sync(g, q); break;
    case GROUP_HEARTBEAT: group__heartbeat(g, q); break;
    case GROUP_LEAVE: group__leave(g, q); break;
    case GROUP_COMMIT: group__commit(g, q); break;
    case GROUP_OFFSET_DELETE: group__offset_delete(g, q); break;
    case GROUP_DELETE: group__delete(g, q); break;
    }
    g->touched = groups__find(g, id);
    if (g->expiry_timer.node.pos == 0)
        groups__timer_set(g, &g->expiry_timer, g->limits.offset_check_interval_ms);
}

/* ---- Steps ------------------------------------------------------------------------------ */

static void begin(struct groups *g, struct group_effects *fx, int64_t mono_ms, int64_t wall_ms)
{
    g->fx = fx;
    g->mono_ms = MAX(g->mono_ms, mono_ms);
    g->wall_ms = wall_ms;
    list_init(&fx->answers);
    list_init(&fx->writes);
    fx->wake_ms = INT64_MAX;
}

void groups_step(struct groups *g, const struct group_event *event, struct group_effects *fx)
{
    begin(g, fx, event->mono_ms, event->wall_ms);
    g->random = event->random;
    switch (event->kind) {
    case GROUP_REQUEST: request(g, event->request); break;
    case GROUP_WRITTEN: written(g, event->write, event->err); break;
    case GROUP_TICK: break;
    case GROUP_TOPIC_GONE: groups__topic_gone(g, event->topic); break;
    }
    end_touched(g);
    fire_timers(g);
    g->fx = NULL;
    g->random = NULL;
}

static void answer_parked(struct groups *g, struct group_member *m, enum err err)
{
    if (m->join) {
        group__refuse_join(m->join, err, str_of(m->id));
        groups__answer(g, m->join);
        m->join = NULL;
    }
    if (m->sync)
        group__refuse_sync(g, m, err);
}

void groups_resign(struct groups *g, enum err err, struct group_effects *fx)
{
    struct group *group;
    struct group *next;

    begin(g, fx, g->mono_ms, g->wall_ms);
    HASH_ITER (hh, g->by_id, group, next)
        for (struct group_member *m = group->members; m; m = m->hh.next)
            answer_parked(g, m, err);
    g->fx = NULL;
}

void group_write_drop(struct groups *g, struct group_write *w, enum err err,
                      struct group_effects *fx)
{
    g->fx = fx;
    if (w->_request) {
        group_refuse(w->_request, err);
        groups__answer(g, w->_request);
    }
    group_write__free(w);
    g->fx = NULL;
}

/* ---- Life ------------------------------------------------------------------------------- */

struct groups *groups_new(const struct group_limits *limits)
{
    struct groups *g = xcalloc(1, sizeof(*g));

    g->limits = *limits;
    heap_init(&g->timers);
    g->expiry_timer.kind = GROUP_TIMER_EXPIRY;
    g->write_timer.kind = GROUP_TIMER_WRITE;
    list_init(&g->unreported);
    return g;
}

static void free_members(struct groups *g, struct group *group)
{
    struct group_member *m;
    struct group_pending *p;

    while ((m = group->members)) {
        assert(!m->join && !m->sync);
        group__remove_member(g, m);
    }
    while ((p = group->pending))
        group__remove_pending(g, p);
}

void groups_free(struct groups *g)
{
    struct group *group;
    struct group *next;
    struct group_txn *t;
    struct group_txn *next_txn;

    if (!g)
        return;
    HASH_ITER (hh, g->by_id, group, next) {
        free_members(g, group);
        free_group(g, group);
    }
    HASH_ITER (hh, g->txns, t, next_txn)
        group_txn__free(g, t);
    heap_fini(&g->timers);
    free(g);
}
