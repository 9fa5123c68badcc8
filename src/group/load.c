/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading: the records of a partition, in order, make the groups that were there when the last of
 * them was written. A later record replaces an earlier one and a tombstone removes what it names,
 * so the result is the same whether the log was compacted or not.
 *
 * Offsets that a transaction has written count when its marker says so. Members get a session from
 * the end of the load on, whatever they had left: they could not reach a coordinator meanwhile.
 */
#include <stdlib.h>

#include "group/cursor_int.h"
#include "group/group_int.h"

/* ---- Offsets ---------------------------------------------------------------------------- */

static enum err replay_offset(struct groups *g, const struct group_record_key *key,
                              struct bytes value)
{
    struct group *group;
    struct offset_value v;
    enum err err;

    if (value.n < 0) {
        struct group_offset *o;

        group = groups__find(g, key->group);
        o = group ? group__find_offset(group, key->topic, key->partition) : NULL;
        if (o)
            group__drop_offset(g, group, o);
        return ERR_NONE;
    }
    err = record__parse_offset(value, &v);
    if (err)
        return err == ERR_BAD_VERSION ? ERR_NONE : err;
    group = groups__get(g, key->group);
    group__put_offset(g, group, group__new_offset(key->topic, key->partition, &v));
    return ERR_NONE;
}

/* ---- Groups ----------------------------------------------------------------------------- */

static void forget_generation(struct groups *g, struct group *group)
{
    while (group->members)
        group__remove_member(g, group->members);
    free(group->protocol);
    free(group->protocol_type);
    group->protocol = NULL;
    group->protocol_type = NULL;
    group->generation = 0;
    group->state = GROUP_EMPTY;
    group->state_since_ms = -1;
}

static void restore_member(struct groups *g, struct group *group, const struct group_value *v,
                           const struct group_value_member *from)
{
    struct join_group_request_protocol protocol = {.name = v->protocol,
                                                   .metadata = from->subscription};
    struct join_group_request in = {
        .session_timeout_ms = from->session_timeout_ms,
        .rebalance_timeout_ms = from->rebalance_timeout_ms,
        .group_instance_id = from->instance_id,
        .protocol_type = v->protocol_type,
        .protocols = {.v = &protocol, .n = str_is_null(v->protocol) ? 0 : 1},
    };
    struct group_request join = {
        .in = &in, .client_id = from->client_id, .client_host = from->client_host};
    char *id = str_dup(from->id);
    struct group_member *m = group__add_member(g, group, id, &join);

    m->is_new = false;
    group__set_assignment(m, from->assignment);
    if (str_eq(from->id, v->leader))
        group->leader = m;
    free(id);
}

static void restore_group(struct groups *g, struct group *group, const struct group_value *v)
{
    group->generation = MAX(v->generation, 0);
    group->state_since_ms = v->state_ms;
    group->protocol = str_dup(v->protocol);
    for (int32_t i = 0; i < v->member_count; i++)
        if (!group__find_member(group, v->members[i].id))
            restore_member(g, group, v, &v->members[i]);
    if (!group->protocol_type && v->protocol_type.n > 0)
        group->protocol_type = str_dup(v->protocol_type);
    group->state = group->members ? GROUP_STABLE : GROUP_EMPTY;
}

/* What no coordinator of ours has written, and what we could not keep. */
static bool is_sound(const struct group_value *v)
{
    if (v->member_count > 0 && str_is_null(v->protocol))
        return false;
    if (str_has_nul(v->protocol_type) || str_has_nul(v->protocol))
        return false;
    for (int32_t i = 0; i < v->member_count; i++)
        if (v->members[i].id.n == 0 || str_has_nul(v->members[i].id) ||
            str_has_nul(v->members[i].instance_id))
            return false;
    return true;
}

static enum err replay_group(struct groups *g, const struct group_record_key *key,
                             struct bytes value)
{
    struct group *group = groups__find(g, key->group);
    struct group_value v;
    struct arena arena;
    enum err err = ERR_NONE;

    if (value.n < 0) {
        if (group)
            forget_generation(g, group);
        return ERR_NONE;
    }
    arena_init(&arena, 0);
    err = record__parse_group(value, &arena, &v);
    if (!err && !is_sound(&v))
        err = ERR_CORRUPT;
    if (!err) {
        group = groups__get(g, key->group);
        forget_generation(g, group);
        restore_group(g, group, &v);
    }
    arena_fini(&arena);
    return err == ERR_BAD_VERSION ? ERR_NONE : err;
}

static enum err replay(struct groups *g, struct bytes key, struct bytes value)
{
    struct group_record_key k;
    enum err err = record__parse_key(key, &k);

    if (err)
        return err;
    if (k.type != GROUP_RECORD_OTHER && str_has_nul(k.group))
        return ERR_CORRUPT;
    switch (k.type) {
    case GROUP_RECORD_OFFSET: return replay_offset(g, &k, value);
    case GROUP_RECORD_GROUP: return replay_group(g, &k, value);
    case GROUP_RECORD_OTHER: break;
    }
    return ERR_NONE;
}

/* ---- Transactions ----------------------------------------------------------------------- */

static struct group_txn *find_txn(const struct groups *g, int64_t producer_id)
{
    struct group_txn *t = NULL;

    HASH_FIND(hh, g->txns, &producer_id, sizeof(producer_id), t);
    return t;
}

void group_txn__free(struct groups *g, struct group_txn *t)
{
    HASH_DEL(g->txns, t);
    buf_fini(&t->records);
    free(t);
}

static void keep_bytes(struct buf *out, struct bytes b)
{
    put_i32(buf_extend(out, 4), b.n);
    if (b.n > 0)
        buf_append(out, b.p, (size_t)b.n);
}

static void keep_for_later(struct groups *g, int64_t producer_id, struct bytes key,
                           struct bytes value)
{
    struct group_txn *t = find_txn(g, producer_id);

    if (!t) {
        t = xcalloc(1, sizeof(*t));
        t->producer_id = producer_id;
        HASH_ADD(hh, g->txns, producer_id, sizeof(t->producer_id), t);
    }
    keep_bytes(&t->records, key);
    keep_bytes(&t->records, value);
}

bool groups__is_unstable(const struct groups *g, struct str group, struct str topic,
                         int32_t partition)
{
    for (const struct group_txn *t = g->txns; t; t = t->hh.next) {
        struct cursor c = cursor_of(buf_bytes(&t->records, 0));

        while (c.p < c.end && !c.bad) {
            struct group_record_key k;
            struct bytes key = cursor_bytes(&c);

            (void)cursor_bytes(&c);
            if (!record__parse_key(key, &k) && k.partition == partition && str_eq(k.group, group) &&
                str_eq(k.topic, topic))
                return true;
        }
    }
    return false;
}

enum err groups_replay(struct groups *g, int64_t producer_id, struct bytes key, struct bytes value)
{
    if (producer_id < 0)
        return replay(g, key, value);
    keep_for_later(g, producer_id, key, value);
    return ERR_NONE;
}

void groups_replay_marker(struct groups *g, int64_t producer_id, bool is_commit)
{
    struct group_txn *t = find_txn(g, producer_id);
    struct cursor c;

    if (!t)
        return;
    c = cursor_of(buf_bytes(&t->records, 0));
    while (is_commit && c.p < c.end) {
        struct bytes key = cursor_bytes(&c);
        struct bytes value = cursor_bytes(&c);
        enum err err = replay(g, key, value);

        if (err)
            trace_warn("group.record_damaged", "producer=%lld error=%s", (long long)producer_id,
                       err_name(err));
    }
    group_txn__free(g, t);
}

/* ---- The end ---------------------------------------------------------------------------- */

void groups_loaded(struct groups *g, int64_t mono_ms, int64_t wall_ms, struct group_effects *fx)
{
    struct group_event tick = {.kind = GROUP_TICK, .mono_ms = mono_ms, .wall_ms = wall_ms};
    struct group *group;
    struct group *next;

    g->mono_ms = mono_ms;
    g->wall_ms = wall_ms;
    HASH_ITER (hh, g->by_id, group, next) {
        for (struct group_member *m = group->members; m; m = m->hh.next)
            group__restart_session(g, m);
        groups__free_if_unused(g, group);
    }
    if (g->by_id)
        groups__timer_set(g, &g->expiry_timer, g->limits.offset_check_interval_ms);
    groups_step(g, &tick, fx);
}
