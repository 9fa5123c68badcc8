/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Administration of groups and of what they have committed.
 *
 * One group at a time, because two groups may have two coordinators. So where an API has learnt to
 * carry several groups, its last version for one group is spoken: one form, and older brokers know
 * it too.
 *
 * Lists of partitions are nested by topic on the wire. Arguments are flat; neighbours of one topic
 * share an element. Results are flat again.
 */
#include "client/admin_int.h"

#include "base/assert.h"
#include "base/attr.h"

/* The last version of OffsetFetch that asks for one group. */
#define OFFSET_FETCH_VERSION_ONE_MAX 7
/* The last version of OffsetCommit that names topics; later ones have only their ids. */
#define OFFSET_COMMIT_VERSION_NAMES_MAX 9

/* Who asks for offsets: a client, or one that looks at replicas (Kafka's DEBUGGING_REPLICA_ID). */
#define REPLICA_NONE (-1)
#define REPLICA_DEBUGGING (-2)

/* ---- Results. */

/* Each response has its own lists; the loops differ in nothing but types. */
#define COLLECT_GROUPS(list, name_of)                                                              \
    do {                                                                                           \
        struct admin_result *v_ = admin__results_new(op, MAX((list).n, 0));                        \
        for (int32_t i_ = 0; i_ < (list).n; i_++)                                                  \
            v_[i_] = (struct admin_result){                                                        \
                .name = (list).v[i_].name_of,                                                      \
                .err = err_from_wire((list).v[i_].error_code),                                     \
                .message = (list).v[i_].error_message,                                             \
            };                                                                                     \
    } while (0)

#define COLLECT_PARTITIONS(list)                                                                   \
    do {                                                                                           \
        int64_t count_ = 0;                                                                        \
        struct admin_result *v_;                                                                   \
        for (int32_t t_ = 0; t_ < (list).n; t_++)                                                  \
            count_ += MAX((list).v[t_].partitions.n, 0);                                           \
        v_ = admin__results_new(op, count_);                                                       \
        for (int32_t t_ = 0; t_ < (list).n; t_++)                                                  \
            for (int32_t p_ = 0; p_ < (list).v[t_].partitions.n; p_++)                             \
                *v_++ = (struct admin_result){                                                     \
                    .name = arena_printf(&op->_arena, "%.*s-%d", STR_ARG((list).v[t_].name),       \
                                         (list).v[t_].partitions.v[p_].partition_index),           \
                    .err = err_from_wire((list).v[t_].partitions.v[p_].error_code),                \
                    .message = str_null(),                                                         \
                };                                                                                 \
    } while (0)

void admin__collect_groups(struct admin_op *op)
{
    const void *r = op->_call.response;

    switch (op->_call.api_key) {
    case API_LIST_GROUPS:
        op->err = err_from_wire(((const struct list_groups_response *)r)->error_code);
        break;
    case API_DESCRIBE_GROUPS:
        COLLECT_GROUPS(((const struct describe_groups_response *)r)->groups, group_id);
        break;
    case API_DELETE_GROUPS:
        COLLECT_GROUPS(((const struct delete_groups_response *)r)->results, group_id);
        break;
    case API_OFFSET_FETCH:
        op->err = err_from_wire(((const struct offset_fetch_response *)r)->error_code);
        break;
    case API_OFFSET_COMMIT:
        COLLECT_PARTITIONS(((const struct offset_commit_response *)r)->topics);
        break;
    case API_OFFSET_DELETE:
        op->err = err_from_wire(((const struct offset_delete_response *)r)->error_code);
        COLLECT_PARTITIONS(((const struct offset_delete_response *)r)->topics);
        break;
    case API_LIST_OFFSETS:
        COLLECT_PARTITIONS(((const struct list_offsets_response *)r)->topics);
        break;
    default: UNREACHABLE();
    }
}

/* ---- Groups. */

static struct str *one_name(struct admin_op *op, struct str name)
{
    struct str *v = arena_alloc(&op->_arena, sizeof(*v));

    *v = arena_str(&op->_arena, name);
    return v;
}

static void submit_to_coordinator(struct admin_op *op, enum api_key key, struct str group,
                                  bool may_repeat)
{
    struct find_coordinator_request *r =
        arena_alloc(&op->_arena, schema_size(&find_coordinator_request_schema));

    wire_init(&find_coordinator_request_schema, r);
    r->key = group;
    op->_seeking = r;
    admin__submit(op, key, CLIENT_ANY, may_repeat);
}

void admin_list_groups(struct client *c, struct admin_op *op, int32_t broker)
{
    admin__begin(c, op, &list_groups_request_schema);
    admin__submit(op, API_LIST_GROUPS, broker, true);
}

void admin_describe_group(struct client *c, struct admin_op *op, struct str group)
{
    struct describe_groups_request *r = admin__begin(c, op, &describe_groups_request_schema);

    r->groups.v = one_name(op, group);
    r->groups.n = 1;
    submit_to_coordinator(op, API_DESCRIBE_GROUPS, r->groups.v[0], true);
}

void admin_delete_group(struct client *c, struct admin_op *op, struct str group)
{
    struct delete_groups_request *r = admin__begin(c, op, &delete_groups_request_schema);

    r->groups_names.v = one_name(op, group);
    r->groups_names.n = 1;
    submit_to_coordinator(op, API_DELETE_GROUPS, r->groups_names.v[0], false);
}

/* ---- Offsets. */

void admin_fetch_offsets(struct client *c, struct admin_op *op, struct str group)
{
    struct offset_fetch_request *r = admin__begin(c, op, &offset_fetch_request_schema);

    r->group_id = arena_str(&op->_arena, group);
    r->topics.n = -1;
    op->_version_max = OFFSET_FETCH_VERSION_ONE_MAX;
    submit_to_coordinator(op, API_OFFSET_FETCH, r->group_id, true);
}

/* How many, from `at` on, are of the same topic. */
static int32_t run_length(const struct admin_offset *v, int32_t at, int32_t count)
{
    int32_t n = 1;

    while (at + n < count && str_eq(v[at + n].topic, v[at].topic))
        n++;
    return n;
}

/* The arguments as topics and partitions in the arena; SET fills in the partition `p` from `o`. */
#define NEST(op, list, offsets, count, SET)                                                        \
    do {                                                                                           \
        (list).n = 0;                                                                              \
        (list).v = arena_calloc(&(op)->_arena, (size_t)MAX(count, 1), sizeof(*(list).v));          \
        for (int32_t at_ = 0, n_; at_ < (count); at_ += n_) {                                      \
            __auto_type topic_ = &(list).v[(list).n++];                                            \
            n_ = run_length(offsets, at_, count);                                                  \
            topic_->name = arena_str(&(op)->_arena, (offsets)[at_].topic);                         \
            topic_->partitions.n = n_;                                                             \
            topic_->partitions.v =                                                                 \
                arena_calloc(&(op)->_arena, (size_t)n_, sizeof(*topic_->partitions.v));            \
            for (int32_t i_ = 0; i_ < n_; i_++)                                                    \
                SET(&topic_->partitions.v[i_], &(offsets)[at_ + i_]);                              \
        }                                                                                          \
    } while (0)

static void set_commit(struct offset_commit_request_partition *p, const struct admin_offset *o)
{
    p->partition_index = o->partition;
    p->committed_offset = o->offset;
    p->committed_leader_epoch = o->leader_epoch;
    p->commit_timestamp = -1;
}

void admin_commit_offsets(struct client *c, struct admin_op *op, struct str group,
                          const struct admin_offset *offsets, int32_t count)
{
    struct offset_commit_request *r = admin__begin(c, op, &offset_commit_request_schema);

    r->group_id = arena_str(&op->_arena, group);
    NEST(op, r->topics, offsets, count, set_commit);
    op->_version_max = OFFSET_COMMIT_VERSION_NAMES_MAX;
    submit_to_coordinator(op, API_OFFSET_COMMIT, r->group_id, true);
}

static void set_delete(struct offset_delete_request_partition *p, const struct admin_offset *o)
{
    p->partition_index = o->partition;
}

void admin_delete_offsets(struct client *c, struct admin_op *op, struct str group,
                          const struct admin_offset *offsets, int32_t count)
{
    struct offset_delete_request *r = admin__begin(c, op, &offset_delete_request_schema);

    r->group_id = arena_str(&op->_arena, group);
    NEST(op, r->topics, offsets, count, set_delete);
    submit_to_coordinator(op, API_OFFSET_DELETE, r->group_id, true);
}

static void set_list(struct list_offsets_request_partition *p, const struct admin_offset *o)
{
    p->partition_index = o->partition;
    p->current_leader_epoch = -1;
    p->timestamp = o->offset;
    p->max_num_offsets = 1;
}

void admin_list_offsets(struct client *c, struct admin_op *op, int32_t leader,
                        const struct admin_offset *offsets, int32_t count)
{
    struct list_offsets_request *r = admin__begin(c, op, &list_offsets_request_schema);

    r->replica_id = REPLICA_NONE;
    NEST(op, r->topics, offsets, count, set_list);
    admin__submit(op, API_LIST_OFFSETS, leader, true);
}

void admin_list_replica_offsets(struct client *c, struct admin_op *op, int32_t broker,
                                const struct admin_offset *offsets, int32_t count)
{
    struct list_offsets_request *r = admin__begin(c, op, &list_offsets_request_schema);

    r->replica_id = REPLICA_DEBUGGING;
    NEST(op, r->topics, offsets, count, set_list);
    admin__submit(op, API_LIST_OFFSETS, broker, true);
}
