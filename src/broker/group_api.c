/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, OffsetFetch,
 * OffsetDelete, DescribeGroups, ListGroups, DeleteGroups.
 *
 * A request about one group travels to the group's coordinator as a visit with one item, and comes
 * home with its response complete. One about many groups is a visit with an item for each; items
 * are at several shards at once, so each has an arena of its own for what it brings home.
 */
#include "broker/coordinator.h"

/* READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS. */
#define GROUP_OPERATIONS (1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11)

/* ---- One group -------------------------------------------------------------------------- */

/* The peer's address as Java prints it: a slash, and no port. */
static struct str host_of(struct request *r)
{
    const char *peer = io_conn_peer(r->conn->io);
    const char *colon = strrchr(peer, ':');
    int n = colon ? (int)(colon - peer) : (int)strlen(peer);

    if (*peer == '[' && n > 2)
        return arena_printf(&r->arena, "/%.*s", n - 2, peer + 1);
    return arena_printf(&r->arena, "/%.*s", n, peer);
}

static void find_coordinator(struct visit_item *item, struct str group_id)
{
    struct partition *p = coordinator_find(item->visit->request->shard, group_id);

    if (p)
        item->partition = partition_ref(p);
    else
        item->err = ERR_NOT_COORDINATOR;
}

static void init_call(struct visit_item *item, enum group_op op, const void *in, void *out,
                      struct arena *arena)
{
    struct request *r = item->visit->request;
    struct group_call *call = request_alloc(r, sizeof(*call));

    call->item = item;
    call->q.op = op;
    call->q.version = r->header.api_version;
    call->q.client_id = r->header.client_id;
    call->q.client_host = host_of(r);
    call->q.in = in;
    call->q.out = out;
    call->q.arena = arena;
    item->out = call;
}

static void call_at_owner(struct visit_item *item)
{
    coordinator_request(item->partition, item->out);
}

/* The partition was gone when the item got there. */
static void refuse_lost(struct visit_item *item)
{
    struct group_call *call = item->out;

    if (item->err)
        group_refuse(&call->q, ERR_NOT_COORDINATOR);
}

static void call_answered(struct request *r, struct visit *v)
{
    refuse_lost(&v->items[0]);
    request_reply(r);
}

static void call_group(struct request *r, enum group_op op, struct str group_id)
{
    struct visit *v = visit_new(r, 1, call_at_owner, call_answered);

    init_call(&v->items[0], op, r->in, r->out, &r->arena);
    find_coordinator(&v->items[0], group_id);
    visit_start(v);
}

void handle_join_group(struct request *r)
{
    call_group(r, GROUP_JOIN, ((const struct join_group_request *)r->in)->group_id);
}

void handle_sync_group(struct request *r)
{
    call_group(r, GROUP_SYNC, ((const struct sync_group_request *)r->in)->group_id);
}

void handle_heartbeat(struct request *r)
{
    call_group(r, GROUP_HEARTBEAT, ((const struct heartbeat_request *)r->in)->group_id);
}

void handle_leave_group(struct request *r)
{
    call_group(r, GROUP_LEAVE, ((const struct leave_group_request *)r->in)->group_id);
}

/* ---- OffsetCommit and OffsetDelete ------------------------------------------------------ */

static bool has_partition(const struct request *r, struct str topic, int32_t index)
{
    const struct metadata_topic *t = metadata_find_topic(r->shard->image, topic);

    return t && !t->is_deleting && index >= 0 && index < t->partition_count;
}

void handle_offset_commit(struct request *r)
{
    const struct offset_commit_request *in = r->in;
    struct offset_commit_response *out = r->out;

    out->topics.n = in->topics.n;
    out->topics.v = request_array(r, &offset_commit_response_topic_schema, in->topics.n);
    for (int32_t t = 0; t < in->topics.n; t++) {
        const struct offset_commit_request_topic *from = &in->topics.v[t];
        struct offset_commit_response_topic *to = &out->topics.v[t];

        to->name = from->name;
        to->partitions.n = from->partitions.n;
        to->partitions.v =
            request_array(r, &offset_commit_response_partition_schema, from->partitions.n);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            int32_t index = from->partitions.v[i].partition_index;

            to->partitions.v[i].partition_index = index;
            if (!has_partition(r, from->name, index))
                to->partitions.v[i].error_code = ERR_UNKNOWN_TOPIC_OR_PARTITION;
        }
    }
    call_group(r, GROUP_COMMIT, in->group_id);
}

void handle_offset_delete(struct request *r)
{
    const struct offset_delete_request *in = r->in;
    struct offset_delete_response *out = r->out;

    out->topics.n = in->topics.n;
    out->topics.v = request_array(r, &offset_delete_response_topic_schema, in->topics.n);
    for (int32_t t = 0; t < in->topics.n; t++) {
        const struct offset_delete_request_topic *from = &in->topics.v[t];
        struct offset_delete_response_topic *to = &out->topics.v[t];

        to->name = from->name;
        to->partitions.n = from->partitions.n;
        to->partitions.v =
            request_array(r, &offset_delete_response_partition_schema, from->partitions.n);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            int32_t index = from->partitions.v[i].partition_index;

            to->partitions.v[i].partition_index = index;
            if (!has_partition(r, from->name, index))
                to->partitions.v[i].error_code = ERR_UNKNOWN_TOPIC_OR_PARTITION;
        }
    }
    call_group(r, GROUP_OFFSET_DELETE, in->group_id);
}

/* ---- DeleteGroups ----------------------------------------------------------------------- */

static void groups_deleted(struct request *r, struct visit *v)
{
    for (int i = 0; i < v->count; i++)
        refuse_lost(&v->items[i]);
    request_reply(r);
}

/* Nothing is allocated while the items are away: their results lie ready. */
void handle_delete_groups(struct request *r)
{
    const struct delete_groups_request *in = r->in;
    struct delete_groups_response *out = r->out;
    struct visit *v = visit_new(r, in->groups_names.n, call_at_owner, groups_deleted);

    out->results.n = in->groups_names.n;
    out->results.v = request_array(r, &delete_groups_response_result_schema, out->results.n);
    for (int32_t i = 0; i < out->results.n; i++) {
        out->results.v[i].group_id = in->groups_names.v[i];
        init_call(&v->items[i], GROUP_DELETE, &in->groups_names.v[i], &out->results.v[i], NULL);
        find_coordinator(&v->items[i], in->groups_names.v[i]);
    }
    visit_start(v);
}

/* ---- Queries: many groups, nothing changes ---------------------------------------------- */

/* What an item brings home. */
struct found {
    struct arena arena;
    struct describe_groups_response_group described;
    struct list_groups_response_group *listed;
    int32_t listed_count;
    struct offset_fetch_response_group fetched;
};

static struct found *found_of(const struct visit_item *item)
{
    return item->out;
}

static void init_query(struct visit_item *item, const void *in)
{
    struct request *r = item->visit->request;

    item->in = in;
    item->out = request_alloc(r, sizeof(struct found));
    arena_init(&found_of(item)->arena, 0);
}

/* When the response is encoded: request_reply has copied everything. */
static void free_found(struct visit *v)
{
    for (int i = 0; i < v->count; i++)
        arena_fini(&found_of(&v->items[i])->arena);
}

static enum err error_of(const struct visit_item *item)
{
    bool is_elsewhere = item->err == ERR_UNKNOWN_TOPIC_OR_PARTITION ||
                        item->err == ERR_NOT_LEADER_OR_FOLLOWER;

    return is_elsewhere ? ERR_NOT_COORDINATOR : item->err;
}

/* ---- DescribeGroups --------------------------------------------------------------------- */

static void describe_at_owner(struct visit_item *item)
{
    struct request *r = item->visit->request;
    struct found *f = found_of(item);
    const struct groups *groups;
    enum err err = coordinator_groups(item->partition, &groups);

    if (!err)
        groups_describe(groups, *(const struct str *)item->in, r->header.api_version, &f->arena,
                        &f->described);
    visit_item_done(item, err);
}

static void groups_described(struct request *r, struct visit *v)
{
    const struct describe_groups_request *in = r->in;
    struct describe_groups_response *out = r->out;

    for (int i = 0; i < v->count; i++) {
        struct describe_groups_response_group *to = &out->groups.v[i];

        if (v->items[i].err) {
            to->group_id = in->groups.v[i];
            to->error_code = err_wire(error_of(&v->items[i]));
            continue;
        }
        *to = found_of(&v->items[i])->described;
        if (in->include_authorized_operations && to->error_code == ERR_NONE)
            to->authorized_operations = GROUP_OPERATIONS;
    }
    request_reply(r);
    free_found(v);
}

void handle_describe_groups(struct request *r)
{
    const struct describe_groups_request *in = r->in;
    struct describe_groups_response *out = r->out;
    struct visit *v = visit_new(r, in->groups.n, describe_at_owner, groups_described);

    out->groups.n = in->groups.n;
    out->groups.v = request_array(r, &describe_groups_response_group_schema, in->groups.n);
    for (int32_t i = 0; i < in->groups.n; i++) {
        init_query(&v->items[i], &in->groups.v[i]);
        find_coordinator(&v->items[i], in->groups.v[i]);
    }
    visit_start(v);
}

/* ---- ListGroups ------------------------------------------------------------------------- */

static void list_at_owner(struct visit_item *item)
{
    const struct list_groups_request *in = item->in;
    struct found *f = found_of(item);
    struct group_filter filter = {.states = in->states_filter.v,
                                  .state_count = in->states_filter.n,
                                  .types = in->types_filter.v,
                                  .type_count = in->types_filter.n};
    const struct groups *groups;
    enum err err = coordinator_groups(item->partition, &groups);

    if (!err)
        groups_list(groups, &filter, &f->arena, &f->listed, &f->listed_count);
    visit_item_done(item, err);
}

static void groups_listed(struct request *r, struct visit *v)
{
    struct list_groups_response *out = r->out;
    int32_t n = 0;

    for (int i = 0; i < v->count; i++)
        n += found_of(&v->items[i])->listed_count;
    out->groups.v = request_array(r, &list_groups_response_group_schema, n);
    for (int i = 0; i < v->count; i++) {
        const struct found *f = found_of(&v->items[i]);

        /* What is there is shown, with the error that says that there is more. */
        if (v->items[i].err)
            out->error_code = err_wire(error_of(&v->items[i]));
        for (int32_t k = 0; k < f->listed_count; k++)
            out->groups.v[out->groups.n++] = f->listed[k];
    }
    request_reply(r);
    free_found(v);
}

/* The groups of this broker: those of others are asked for there. */
void handle_list_groups(struct request *r)
{
    const struct metadata_topic *topic = metadata_find_topic(r->shard->image, str_of(GROUP_TOPIC));
    struct visit *v =
        visit_new(r, topic ? topic->partition_count : 0, list_at_owner, groups_listed);

    v->count = 0;
    for (int32_t i = 0; topic && i < topic->partition_count; i++) {
        struct visit_item *item = &v->items[v->count];

        if (topic->partitions[i].leader != r->shard->broker->node_id)
            continue;
        v->count++;
        init_query(item, r->in);
        visit_find(item, str_of(GROUP_TOPIC), i);
    }
    visit_start(v);
}

/* ---- OffsetFetch ------------------------------------------------------------------------ */

static void fetch_at_owner(struct visit_item *item)
{
    const struct offset_fetch_request *in = item->visit->request->in;
    struct found *f = found_of(item);
    const struct groups *groups;
    enum err err = coordinator_groups(item->partition, &groups);

    if (!err)
        groups_fetch(groups, item->in, in->require_stable, &f->arena, &f->fetched);
    visit_item_done(item, err);
}

/* Versions before 2 have no place for an error but with each partition. */
static void refuse_each(struct request *r, enum err err)
{
    const struct offset_fetch_request *in = r->in;
    struct offset_fetch_response *out = r->out;

    out->error_code = err_wire(err);
    if (r->header.api_version >= 2)
        return;
    out->topics.n = MAX(in->topics.n, 0);
    out->topics.v = request_array(r, &offset_fetch_response_topic_schema, out->topics.n);
    for (int32_t t = 0; t < out->topics.n; t++) {
        struct offset_fetch_response_topic *to = &out->topics.v[t];

        to->name = in->topics.v[t].name;
        to->partitions.n = in->topics.v[t].partition_indexes.n;
        to->partitions.v =
            request_array(r, &offset_fetch_response_partition_schema, to->partitions.n);
        for (int32_t i = 0; i < to->partitions.n; i++) {
            to->partitions.v[i].partition_index = in->topics.v[t].partition_indexes.v[i];
            to->partitions.v[i].committed_offset = -1;
            to->partitions.v[i].error_code = err_wire(err);
        }
    }
}

/* The answer about one group in the form of versions up to 7. */
static void fill_single(struct request *r, const struct offset_fetch_response_group *from)
{
    struct offset_fetch_response *out = r->out;

    out->topics.n = from->topics.n;
    out->topics.v = request_array(r, &offset_fetch_response_topic_schema, from->topics.n);
    for (int32_t t = 0; t < from->topics.n; t++) {
        struct offset_fetch_response_topic *to = &out->topics.v[t];
        int32_t n = from->topics.v[t].partitions.n;

        to->name = from->topics.v[t].name;
        to->partitions.n = n;
        to->partitions.v = request_array(r, &offset_fetch_response_partition_schema, n);
        for (int32_t i = 0; i < n; i++) {
            const struct offset_fetch_response_group_partition *p =
                &from->topics.v[t].partitions.v[i];

            to->partitions.v[i].partition_index = p->partition_index;
            to->partitions.v[i].committed_offset = p->committed_offset;
            to->partitions.v[i].committed_leader_epoch = p->committed_leader_epoch;
            to->partitions.v[i].metadata = p->metadata;
            to->partitions.v[i].error_code = p->error_code;
        }
    }
}

static void single_fetched(struct request *r, struct visit *v)
{
    if (v->items[0].err)
        refuse_each(r, error_of(&v->items[0]));
    else
        fill_single(r, &found_of(&v->items[0])->fetched);
    request_reply(r);
    free_found(v);
}

static void groups_fetched(struct request *r, struct visit *v)
{
    const struct offset_fetch_request *in = r->in;
    struct offset_fetch_response *out = r->out;

    for (int i = 0; i < v->count; i++) {
        if (!v->items[i].err) {
            out->groups.v[i] = found_of(&v->items[i])->fetched;
            continue;
        }
        out->groups.v[i].group_id = in->groups.v[i].group_id;
        out->groups.v[i].error_code = err_wire(error_of(&v->items[i]));
    }
    request_reply(r);
    free_found(v);
}

/* The request of versions up to 7 in the form of later ones. */
static struct offset_fetch_request_group *single_group(struct request *r)
{
    const struct offset_fetch_request *in = r->in;
    struct offset_fetch_request_group *group =
        request_array(r, &offset_fetch_request_group_schema, 1);

    group->group_id = in->group_id;
    group->topics.n = in->topics.n;
    if (in->topics.n < 0)
        return group;
    group->topics.v = request_array(r, &offset_fetch_request_group_topic_schema, in->topics.n);
    for (int32_t t = 0; t < in->topics.n; t++) {
        group->topics.v[t].name = in->topics.v[t].name;
        group->topics.v[t].partition_indexes.v = in->topics.v[t].partition_indexes.v;
        group->topics.v[t].partition_indexes.n = in->topics.v[t].partition_indexes.n;
    }
    return group;
}

void handle_offset_fetch(struct request *r)
{
    const struct offset_fetch_request *in = r->in;
    struct offset_fetch_response *out = r->out;
    bool is_single = r->header.api_version < 8;
    const struct offset_fetch_request_group *groups = is_single ? single_group(r) : in->groups.v;
    int32_t n = is_single ? 1 : in->groups.n;
    struct visit *v = visit_new(r, n, fetch_at_owner, is_single ? single_fetched : groups_fetched);

    out->groups.n = is_single ? 0 : n;
    out->groups.v = request_array(r, &offset_fetch_response_group_schema, out->groups.n);
    for (int32_t i = 0; i < n; i++) {
        init_query(&v->items[i], &groups[i]);
        find_coordinator(&v->items[i], groups[i].group_id);
    }
    visit_start(v);
}
