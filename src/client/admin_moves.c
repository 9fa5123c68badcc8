/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elections of leaders, reassignments of replicas, and what lies in the log directories.
 *
 * Arguments are flat lists of partitions, which the wire nests by topic: neighbours of one topic
 * share an element, so who sorts them sends each topic once. Results are flat again.
 *
 * An election of preferred leaders and a move to the same target may be asked for twice: the second
 * time finds it done. An unclean election gives up records, and of a move that was cancelled twice
 * the second answer is an error; neither is sent again when its answer was lost.
 */
#include "client/admin_int.h"

#include "base/assert.h"
#include "base/attr.h"

/* ---- Results. */

/* The loops differ in nothing but types. */
#define COLLECT_PARTITIONS(list, inner, name_of, index_of)                                         \
    do {                                                                                           \
        int64_t count_ = 0;                                                                        \
        struct admin_result *v_;                                                                   \
        for (int32_t t_ = 0; t_ < (list).n; t_++)                                                  \
            count_ += MAX((list).v[t_].inner.n, 0);                                                \
        v_ = admin__results_new(op, count_);                                                       \
        for (int32_t t_ = 0; t_ < (list).n; t_++)                                                  \
            for (int32_t p_ = 0; p_ < (list).v[t_].inner.n; p_++)                                  \
                *v_++ = (struct admin_result){                                                     \
                    .name = arena_printf(&op->_arena, "%.*s-%d", STR_ARG((list).v[t_].name_of),    \
                                         (list).v[t_].inner.v[p_].index_of),                       \
                    .err = err_from_wire((list).v[t_].inner.v[p_].error_code),                     \
                    .message = (list).v[t_].inner.v[p_].error_message,                             \
                };                                                                                 \
    } while (0)

static void collect_elections(struct admin_op *op, const struct elect_leaders_response *r)
{
    op->err = err_from_wire(r->error_code);
    COLLECT_PARTITIONS(r->replica_election_results, partition_result, topic, partition_id);
}

static void collect_moves(struct admin_op *op,
                          const struct alter_partition_reassignments_response *r)
{
    op->err = err_from_wire(r->error_code);
    COLLECT_PARTITIONS(r->responses, partitions, name, partition_index);
}

static void collect_log_dirs(struct admin_op *op, const struct describe_log_dirs_response *r)
{
    struct admin_result *v = admin__results_new(op, MAX(r->results.n, 0));

    op->err = err_from_wire(r->error_code);
    for (int32_t i = 0; i < r->results.n; i++)
        v[i] = (struct admin_result){
            .name = r->results.v[i].log_dir,
            .err = err_from_wire(r->results.v[i].error_code),
            .message = str_null(),
        };
}

void admin__collect_moves(struct admin_op *op)
{
    const void *r = op->_call.response;

    switch (op->_call.api_key) {
    case API_ELECT_LEADERS: collect_elections(op, r); break;
    case API_ALTER_PARTITION_REASSIGNMENTS: collect_moves(op, r); break;
    case API_LIST_PARTITION_REASSIGNMENTS:
        op->err =
            err_from_wire(((const struct list_partition_reassignments_response *)r)->error_code);
        break;
    case API_DESCRIBE_LOG_DIRS: collect_log_dirs(op, r); break;
    default: UNREACHABLE();
    }
}

/* ---- Requests. */

/* How many, from `at` on, are of the same topic. */
#define RUN_LENGTH(v, at, count)                                                                   \
    ({                                                                                             \
        int32_t n_ = 1;                                                                            \
        while ((at) + n_ < (count) && str_eq((v)[(at) + n_].topic, (v)[at].topic))                 \
            n_++;                                                                                  \
        n_;                                                                                        \
    })

/* The partitions as topics with their indexes, in the arena; NULL: the list is null, for all. */
#define NEST(op, list, from, count)                                                                \
    do {                                                                                           \
        (list).n = (from) ? 0 : -1;                                                                \
        (list).v = arena_calloc(&(op)->_arena, (size_t)MAX(count, 1), sizeof(*(list).v));          \
        for (int32_t at_ = 0, run_; (from) && at_ < (count); at_ += run_) {                        \
            __auto_type topic_ = &(list).v[(list).n++];                                            \
            run_ = RUN_LENGTH(from, at_, count);                                                   \
            topic_->topic = arena_str(&(op)->_arena, (from)[at_].topic);                           \
            topic_->partitions.n = run_;                                                           \
            topic_->partitions.v =                                                                 \
                arena_calloc(&(op)->_arena, (size_t)run_, sizeof(*topic_->partitions.v));          \
            for (int32_t i_ = 0; i_ < run_; i_++)                                                  \
                topic_->partitions.v[i_] = (from)[at_ + i_].partition;                             \
        }                                                                                          \
    } while (0)

void admin_elect_leaders(struct client *c, struct admin_op *op, enum admin_election type,
                         const struct admin_partition *partitions, int32_t count)
{
    struct elect_leaders_request *r = admin__begin(c, op, &elect_leaders_request_schema);

    assert(partitions || type == ADMIN_PREFERRED);
    r->election_type = (int8_t)type;
    NEST(op, r->topic_partitions, partitions, count);
    r->timeout_ms = admin__time_left_ms(op);
    admin__submit(op, API_ELECT_LEADERS, CLIENT_CONTROLLER, type == ADMIN_PREFERRED);
}

static void set_move(struct admin_op *op, struct alter_partition_reassignments_request_partition *p,
                     const struct admin_move *move)
{
    p->partition_index = move->partition;
    p->replicas.n = move->replicas ? move->replica_count : -1;
    p->replicas.v =
        arena_calloc(&op->_arena, (size_t)MAX(p->replicas.n, 1), sizeof(*p->replicas.v));
    for (int32_t i = 0; i < p->replicas.n; i++)
        p->replicas.v[i] = move->replicas[i];
}

void admin_alter_reassignments(struct client *c, struct admin_op *op,
                               const struct admin_move *moves, int32_t count)
{
    struct alter_partition_reassignments_request *r =
        admin__begin(c, op, &alter_partition_reassignments_request_schema);
    bool may_repeat = true;

    r->topics.n = 0;
    r->topics.v = arena_calloc(&op->_arena, (size_t)MAX(count, 1), sizeof(*r->topics.v));
    for (int32_t at = 0, n; at < count; at += n) {
        struct alter_partition_reassignments_request_topic *topic = &r->topics.v[r->topics.n++];

        n = RUN_LENGTH(moves, at, count);
        topic->name = arena_str(&op->_arena, moves[at].topic);
        topic->partitions.n = n;
        topic->partitions.v = arena_calloc(&op->_arena, (size_t)n, sizeof(*topic->partitions.v));
        for (int32_t i = 0; i < n; i++) {
            set_move(op, &topic->partitions.v[i], &moves[at + i]);
            may_repeat = may_repeat && moves[at + i].replicas;
        }
    }
    r->timeout_ms = admin__time_left_ms(op);
    admin__submit(op, API_ALTER_PARTITION_REASSIGNMENTS, CLIENT_CONTROLLER, may_repeat);
}

void admin_list_reassignments(struct client *c, struct admin_op *op)
{
    struct list_partition_reassignments_request *r =
        admin__begin(c, op, &list_partition_reassignments_request_schema);

    r->timeout_ms = admin__time_left_ms(op);
    admin__submit(op, API_LIST_PARTITION_REASSIGNMENTS, CLIENT_CONTROLLER, true);
}

void admin_describe_log_dirs(struct client *c, struct admin_op *op, int32_t broker,
                             const struct admin_partition *partitions, int32_t count)
{
    struct describe_log_dirs_request *r = admin__begin(c, op, &describe_log_dirs_request_schema);

    NEST(op, r->topics, partitions, count);
    admin__submit(op, API_DESCRIBE_LOG_DIRS, broker, true);
}
