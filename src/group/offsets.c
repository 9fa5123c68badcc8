/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Committed offsets: commit, removal, expiry. (Reading them is in queries.c.)
 *
 * A commit is checked, written, and takes its place among the offsets when the write is committed;
 * writes are reported in order, so a later commit never gives way to an earlier one. A removal
 * writes tombstones for what is visible and forgets it when they are committed. A group whose
 * writes are in flight is not expired, so that no tombstone is written for an offset behind which
 * a newer one is on its way.
 */
#include <stdlib.h>

#include "base/planted.h"
#include "group/group_int.h"

#define REMOVAL_RECORDS_MAX 1000 /* of one write; what is left over is found the next time */

/* ---- The table -------------------------------------------------------------------------- */

static uint32_t key_size(struct str topic)
{
    return (uint32_t)(sizeof(int32_t) + (size_t)topic.n);
}

struct group_offset *group__new_offset(struct str topic, int32_t partition,
                                       const struct offset_value *value)
{
    struct group_offset *o = xcalloc(1, sizeof(*o) + key_size(topic));

    o->value = *value;
    o->metadata =
        xstrndup(value->metadata.n > 0 ? value->metadata.p : "", (size_t)MAX(value->metadata.n, 0));
    o->value.metadata.p = o->metadata;
    o->value.metadata.n = MAX(value->metadata.n, 0);
    o->key_n = key_size(topic);
    put_i32(o->key, partition);
    memcpy(o->key + sizeof(int32_t), topic.p, (size_t)topic.n);
    return o;
}

void group__free_offset(struct group_offset *o)
{
    if (!o)
        return;
    free(o->metadata);
    free(o);
}

struct str group_offset__topic(const struct group_offset *o)
{
    return (struct str){.p = (const char *)o->key + sizeof(int32_t),
                        .n = (int32_t)(o->key_n - sizeof(int32_t))};
}

int32_t group_offset__partition(const struct group_offset *o)
{
    return get_i32(o->key);
}

struct group_offset *group__find_offset(const struct group *group, struct str topic,
                                        int32_t partition)
{
    uint8_t key[sizeof(int32_t) + INT16_MAX];
    struct group_offset *o = NULL;

    if (topic.n <= 0 || topic.n > INT16_MAX)
        return NULL;
    put_i32(key, partition);
    memcpy(key + sizeof(int32_t), topic.p, (size_t)topic.n);
    HASH_FIND(hh, group->offsets, key, key_size(topic), o);
    return o;
}

void group__drop_offset(struct groups *g, struct group *group, struct group_offset *o)
{
    HASH_DEL(group->offsets, o);
    g->offset_count--;
    group__free_offset(o);
}

void group__put_offset(struct groups *g, struct group *group, struct group_offset *o)
{
    struct group_offset *old =
        group__find_offset(group, group_offset__topic(o), group_offset__partition(o));

    if (old)
        group__drop_offset(g, group, old);
    HASH_ADD(hh, group->offsets, key, o->key_n, o);
    g->offset_count++;
}

/* ---- Commit ----------------------------------------------------------------------------- */

static void refuse_rest(struct group_request *q, enum err err)
{
    struct offset_commit_response *out = q->out;

    for (int32_t t = 0; t < out->topics.n; t++)
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++)
            if (out->topics.v[t].partitions.v[i].error_code == ERR_NONE)
                out->topics.v[t].partitions.v[i].error_code = err_wire(err);
}

void group__refuse_commit(struct group_request *q, enum err err)
{
    refuse_rest(q, err);
}

static enum err check_committer(struct groups *g, struct group *group,
                                const struct offset_commit_request *in)
{
    struct group_member *m = NULL;
    bool claims = in->generation_id >= 0 || in->member_id.n > 0 ||
                  !str_is_null(in->group_instance_id);
    enum err err;

    if (in->generation_id < 0 && group->state == GROUP_EMPTY)
        return ERR_NONE;
    if (!claims)
        return ERR_UNKNOWN_MEMBER_ID;
    err = group__check_member(group, in->member_id, in->group_instance_id, &m);
    if (err)
        return err;
    if (in->generation_id != group->generation && !PLANTED(COMMIT_OF_OLD_GENERATION))
        return ERR_ILLEGAL_GENERATION;
    if (group->state == GROUP_COMPLETING_REBALANCE)
        return ERR_REBALANCE_IN_PROGRESS;
    group__restart_session(g, m);
    return ERR_NONE;
}

/* -1: nothing was asked for. */
static int64_t expire_ms_of(const struct groups *g, int64_t retention_ms)
{
    if (retention_ms < 0)
        return -1;
    return retention_ms > INT64_MAX - g->wall_ms ? INT64_MAX : g->wall_ms + retention_ms;
}

static void add_offset(struct groups *g, struct group_write *w,
                       const struct offset_commit_request *in, struct str topic,
                       const struct offset_commit_request_partition *p)
{
    struct offset_value v = {
        .offset = p->committed_offset,
        .leader_epoch = p->committed_leader_epoch,
        .metadata = str_is_null(p->committed_metadata) ? STR_LIT("") : p->committed_metadata,
        .commit_ms = p->commit_timestamp >= 0 ? p->commit_timestamp : g->wall_ms,
        .expire_ms = expire_ms_of(g, in->retention_time_ms),
    };
    struct buf *out = group_write__bytes(w);

    record__put_offset_key(out, str_of(w->_group->id), topic, p->partition_index);
    group_write__end_key(w);
    record__put_offset_value(out, &v);
    group_write__end_value(w, false);
    w->_offsets =
        xreallocarray(w->_offsets, (size_t)w->_offset_count + 1, sizeof(struct group_offset *));
    w->_offsets[w->_offset_count++] = group__new_offset(topic, p->partition_index, &v);
}

/* NULL when there is nothing to write: every partition has an error. */
static struct group_write *write_commit(struct groups *g, struct group *group,
                                        struct group_request *q)
{
    const struct offset_commit_request *in = q->in;
    struct offset_commit_response *out = q->out;
    struct group_write *w = NULL;

    for (int32_t t = 0; t < out->topics.n; t++)
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++) {
            const struct offset_commit_request_partition *p = &in->topics.v[t].partitions.v[i];
            int16_t *error = &out->topics.v[t].partitions.v[i].error_code;

            if (*error == ERR_NONE &&
                p->committed_metadata.n > MIN(g->limits.offset_metadata_bytes_max, INT16_MAX))
                *error = ERR_OFFSET_METADATA_TOO_LARGE;
            if (*error != ERR_NONE)
                continue;
            if (!w)
                w = groups__write_new(g, group, GROUP_WRITE_OFFSETS, q);
            add_offset(g, w, in, in->topics.v[t].name, p);
        }
    return w;
}

/* What readers see from now on. */
static void show_offsets(struct groups *g, struct group_write *w)
{
    for (int32_t i = 0; i < w->_offset_count; i++)
        group__put_offset(g, w->_group, w->_offsets[i]);
    w->_offset_count = 0;
}

void group__commit(struct groups *g, struct group_request *q)
{
    const struct offset_commit_request *in = q->in;
    struct group *group = groups__find(g, in->group_id);
    struct group_write *w = NULL;
    enum err err;

    if (!group && in->generation_id >= 0)
        err = q->version >= 9 ? ERR_GROUP_ID_NOT_FOUND : ERR_ILLEGAL_GENERATION;
    else
        err = check_committer(g, group ? group : (group = groups__get(g, in->group_id)), in);
    if (err)
        refuse_rest(q, err);
    else
        w = write_commit(g, group, q);
    if (w)
        groups__write_submit(g, w);
    if (w && PLANTED(COMMIT_NOT_DURABLE))
        w->_request = NULL;
    if (w && PLANTED(COMMIT_SEEN_EARLY))
        show_offsets(g, w);
    if (!w || !w->_request)
        groups__answer(g, q);
}

void group__offsets_written(struct groups *g, struct group_write *w, enum err err)
{
    if (err) {
        trace_warn("group.commit_failed", "group=%s error=%s", w->_group->id, err_name(err));
        if (w->_request)
            refuse_rest(w->_request, group__write_error(err));
    }
    if (!err)
        show_offsets(g, w);
    if (w->_request)
        groups__answer(g, w->_request);
}

/* ---- Removal ---------------------------------------------------------------------------- */

static void add_offset_tombstone(struct group_write *w, const struct group_offset *o)
{
    record__put_offset_key(group_write__bytes(w), str_of(w->_group->id), group_offset__topic(o),
                           group_offset__partition(o));
    group_write__end_key(w);
    group_write__end_value(w, true);
}

static void add_group_tombstone(struct group_write *w)
{
    record__put_group_key(group_write__bytes(w), str_of(w->_group->id));
    group_write__end_key(w);
    group_write__end_value(w, true);
    w->_removes_group = true;
}

static void forget_removed(struct groups *g, const struct group_write *w)
{
    for (int32_t i = 0; i < w->count; i++) {
        struct group_record_key key;
        struct bytes bytes;
        struct bytes none;
        struct group_offset *o = NULL;

        group_write_record(w, i, &bytes, &none);
        if (record__parse_key(bytes, &key))
            UNREACHABLE();
        if (key.type == GROUP_RECORD_OFFSET)
            o = group__find_offset(w->_group, key.topic, key.partition);
        if (o)
            group__drop_offset(g, w->_group, o);
    }
}

static void answer_removal(struct groups *g, struct group_request *q, enum err err)
{
    if (!q)
        return;
    if (err)
        group_refuse(q, group__write_error(err));
    groups__answer(g, q);
}

void group__removal_written(struct groups *g, struct group_write *w, enum err err)
{
    struct group *group = w->_group;

    if (err)
        trace_warn("group.write_failed", "group=%s error=%s", group->id, err_name(err));
    else
        forget_removed(g, w);
    /* Without a generation it goes once nothing else holds it; somebody may have joined. */
    if (!err && w->_removes_group && group->state == GROUP_EMPTY && !group->members)
        group->generation = 0;
    answer_removal(g, w->_request, err);
}

static void delete_group(struct groups *g, struct group *group, struct group_request *q)
{
    struct group_write *w = groups__write_new(g, group, GROUP_WRITE_REMOVAL, q);

    for (struct group_offset *o = group->offsets; o; o = o->hh.next)
        add_offset_tombstone(w, o);
    add_group_tombstone(w);
    groups__write_submit(g, w);
}

void group__delete(struct groups *g, struct group_request *q)
{
    struct group *group = groups__find(g, *(const struct str *)q->in);
    enum err err = ERR_NONE;

    if (!group)
        err = ERR_GROUP_ID_NOT_FOUND;
    else if (group->state != GROUP_EMPTY)
        err = ERR_NON_EMPTY_GROUP;
    else if (group->writes > 0)
        err = ERR_COORDINATOR_LOAD_IN_PROGRESS; /* what is being written would outlive it */
    if (!err) {
        delete_group(g, group, q);
        return;
    }
    group_refuse(q, err);
    groups__answer(g, q);
}

/* ---- OffsetDelete ----------------------------------------------------------------------- */

static bool is_consumer_type(const struct group *group)
{
    return group->protocol_type && str_eq_c(STR_LIT("consumer"), group->protocol_type);
}

static enum err check_offset_delete(const struct group *group)
{
    if (!group)
        return ERR_GROUP_ID_NOT_FOUND;
    if (group->state != GROUP_EMPTY && !is_consumer_type(group))
        return ERR_NON_EMPTY_GROUP;
    return ERR_NONE;
}

/* Whether a member still reads the topic, or may. */
static bool is_in_use(const struct group *group, struct arena *arena, struct str topic)
{
    struct group_topics topics;

    if (group->state == GROUP_EMPTY)
        return false;
    return !group__subscriptions(group, arena, &topics) || group_topics__have(&topics, topic);
}

static void delete_in_topic(struct group *group, struct group_write *w,
                            const struct offset_delete_request_topic *in,
                            struct offset_delete_response_topic *out, bool in_use)
{
    for (int32_t i = 0; i < out->partitions.n; i++) {
        const struct group_offset *o =
            group__find_offset(group, in->name, in->partitions.v[i].partition_index);

        if (out->partitions.v[i].error_code != ERR_NONE)
            continue;
        if (in_use)
            out->partitions.v[i].error_code = ERR_GROUP_SUBSCRIBED_TO_TOPIC;
        else if (o)
            add_offset_tombstone(w, o);
    }
}

static void submit_or_drop(struct groups *g, struct group_write *w)
{
    struct group_request *q = w->_request;

    if (w->count > 0) {
        groups__write_submit(g, w);
        return;
    }
    group_write__free(w);
    if (q)
        groups__answer(g, q);
}

void group__offset_delete(struct groups *g, struct group_request *q)
{
    const struct offset_delete_request *in = q->in;
    struct offset_delete_response *out = q->out;
    struct group *group = groups__find(g, in->group_id);
    struct group_write *w;
    enum err err = check_offset_delete(group);

    if (err) {
        out->error_code = err_wire(err);
        out->topics.n = 0;
        groups__answer(g, q);
        return;
    }
    w = groups__write_new(g, group, GROUP_WRITE_REMOVAL, q);
    for (int32_t t = 0; t < out->topics.n; t++)
        delete_in_topic(group, w, &in->topics.v[t], &out->topics.v[t],
                        is_in_use(group, q->arena, in->topics.v[t].name));
    submit_or_drop(g, w);
}

/* ---- Expiry ----------------------------------------------------------------------------- */

/* What decides about the offsets of one group. */
struct expiry {
    bool by_commit; /* count from the commit, else from when the group became empty */
    bool never;     /* only those whose client gave them an end */
    struct group_topics in_use;
};

static struct expiry expiry_of(const struct group *group, struct arena *arena)
{
    struct expiry e = {.by_commit = !group->protocol_type || group->state_since_ms < 0};

    if (group->protocol_type && group->state != GROUP_EMPTY && !PLANTED(EXPIRE_OFFSETS_IN_USE)) {
        e.by_commit = true;
        e.never = group->state != GROUP_STABLE || !group__subscriptions(group, arena, &e.in_use);
    }
    return e;
}

static bool is_expired(const struct groups *g, const struct group *group, const struct expiry *e,
                       const struct group_offset *o)
{
    int64_t since = e->by_commit ? o->value.commit_ms : group->state_since_ms;

    if (group_topics__have(&e->in_use, group_offset__topic(o)))
        return false;
    if (o->value.expire_ms >= 0)
        return g->wall_ms >= o->value.expire_ms;
    if (e->never)
        return false;
    since = MAX(MAX(since, o->value.commit_ms), 0);
    return g->wall_ms - since >= g->limits.offset_retention_ms;
}

static void expire_group(struct groups *g, struct group *group)
{
    struct group_write *w;
    struct arena arena;
    struct expiry e;
    uint32_t left = HASH_COUNT(group->offsets);

    if (group->writes > 0)
        return;
    arena_init(&arena, 0);
    e = expiry_of(group, &arena);
    w = groups__write_new(g, group, GROUP_WRITE_REMOVAL, NULL);
    for (struct group_offset *o = group->offsets; o && w->count < REMOVAL_RECORDS_MAX;
         o = o->hh.next) {
        if (!is_expired(g, group, &e, o))
            continue;
        add_offset_tombstone(w, o);
        left--;
    }
    if (group->state == GROUP_EMPTY && group->generation > 0 && !group->pending && left == 0)
        add_group_tombstone(w);
    if (w->count > 0)
        trace_info("group.expired", "group=%s offsets=%d removed=%d", group->id,
                   w->count - w->_removes_group, w->_removes_group);
    submit_or_drop(g, w);
    arena_fini(&arena);
}

void groups__expire(struct groups *g)
{
    for (struct group *group = g->by_id; group; group = group->hh.next)
        expire_group(g, group);
}

/* ---- Topics that are gone --------------------------------------------------------------- */

void groups__topic_gone(struct groups *g, struct str topic)
{
    for (struct group *group = g->by_id; group; group = group->hh.next) {
        struct group_write *w = groups__write_new(g, group, GROUP_WRITE_REMOVAL, NULL);

        for (struct group_offset *o = group->offsets; o; o = o->hh.next)
            if (str_eq(group_offset__topic(o), topic))
                add_offset_tombstone(w, o);
        submit_or_drop(g, w);
    }
}
