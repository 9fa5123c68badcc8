/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How leaders and replicas are administered: the controller is asked, flat arguments are nested by
 * topic and answers are flat again, and what cannot be said twice is not sent twice.
 */
#include "client/admin.h"
#include "client/fake_simtest.h"

struct asked {
    struct admin_op op;
    void (*check)(struct asked *a);
};

static struct fake *the_fake;

static void done(struct admin_op *op)
{
    struct asked *a = CONTAINER_OF(op, struct asked, op);

    a->check(a);
    admin_op_fini(op);
    fake_end(the_fake);
}

static void run(void (*check)(struct asked *a), void (*start)(struct fake *f),
                enum fake_action (*hook)(struct fake *f, struct fake_request *rq))
{
    struct asked a = {.check = check, .op.done = done};

    the_fake = fake_new(&a, start);
    the_fake->hook = hook;
    fake_run(the_fake);
}

static struct admin_op *op_of(struct fake *f)
{
    struct asked *a = f->test;

    return &a->op;
}

/* ---- Elections. */

static void start_elections(struct fake *f)
{
    char topic[] = "t";
    struct admin_partition three[] = {
        {.topic = str_of(topic), .partition = 4},
        {.topic = str_of(topic), .partition = 7},
        {.topic = STR_LIT("u"), .partition = 1},
    };

    admin_elect_leaders(f->client, op_of(f), ADMIN_PREFERRED, three, 3);
    memset(topic, 0, sizeof(topic)); /* arguments are copied */
    memset(three, 0, sizeof(three));
}

static void answer_election(struct fake_request *rq, struct elect_leaders_response_topic *to,
                            const struct elect_leaders_request_topic *from, enum err err)
{
    to->topic = from->topic;
    to->partition_result.n = from->partitions.n;
    to->partition_result.v =
        arena_calloc(rq->arena, (size_t)from->partitions.n, sizeof(*to->partition_result.v));
    for (int32_t i = 0; i < from->partitions.n; i++) {
        to->partition_result.v[i].partition_id = from->partitions.v[i];
        to->partition_result.v[i].error_code = err_wire(err);
        to->partition_result.v[i].error_message = err ? STR_LIT("its words") : str_null();
    }
}

static void answer_elections(struct fake_request *rq, enum err of_first, enum err of_second)
{
    const struct elect_leaders_request *q = rq->request;
    struct elect_leaders_response *r = rq->response;

    assert_int_equal(q->election_type, 0);
    assert_int_equal(q->topic_partitions.n, 2);
    assert_true(str_eq_c(q->topic_partitions.v[0].topic, "t"));
    assert_int_equal(q->topic_partitions.v[0].partitions.n, 2);
    assert_int_equal(q->topic_partitions.v[0].partitions.v[0], 4);
    assert_int_equal(q->topic_partitions.v[0].partitions.v[1], 7);
    assert_true(str_eq_c(q->topic_partitions.v[1].topic, "u"));
    assert_int_equal(q->topic_partitions.v[1].partitions.v[0], 1);
    r->replica_election_results.n = 2;
    r->replica_election_results.v =
        arena_calloc(rq->arena, 2, sizeof(*r->replica_election_results.v));
    answer_election(rq, &r->replica_election_results.v[0], &q->topic_partitions.v[0], of_first);
    answer_election(rq, &r->replica_election_results.v[1], &q->topic_partitions.v[1], of_second);
}

/* At first the answer is lost, then another broker rules, and the controller is 2 in the end. */
static enum fake_action elects_late(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key != API_ELECT_LEADERS)
        return FAKE_SERVE;
    assert_int_equal(rq->broker->id, 2);
    switch (f->step++) {
    case 0: return FAKE_CLOSE;
    case 1: answer_elections(rq, ERR_NOT_CONTROLLER, ERR_NOT_CONTROLLER); return FAKE_ANSWER;
    default:
        answer_elections(rq, ERR_ELECTION_NOT_NEEDED, ERR_PREFERRED_LEADER_NOT_AVAILABLE);
        return FAKE_ANSWER;
    }
}

static void elected(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(the_fake->requests[API_ELECT_LEADERS], 3);
    assert_int_equal(a->op.result_count, 3);
    assert_true(str_eq_c(a->op.results[0].name, "t-4"));
    assert_int_equal(a->op.results[0].err, ERR_ELECTION_NOT_NEEDED);
    assert_true(str_eq_c(a->op.results[1].name, "t-7"));
    assert_true(str_eq_c(a->op.results[2].name, "u-1"));
    assert_int_equal(a->op.results[2].err, ERR_PREFERRED_LEADER_NOT_AVAILABLE);
    assert_true(str_eq_c(a->op.results[2].message, "its words"));
}

static void preferred_leaders_are_elected_by_the_controller(void **state)
{
    (void)state;
    run(elected, start_elections, elects_late);
}

static void start_all(struct fake *f)
{
    admin_elect_leaders(f->client, op_of(f), ADMIN_PREFERRED, NULL, 0);
}

static enum fake_action is_asked_for_all(struct fake *f, struct fake_request *rq)
{
    const struct elect_leaders_request *q = rq->request;

    (void)f;
    if (rq->header.api_key == API_ELECT_LEADERS)
        assert_int_equal(q->topic_partitions.n, -1);
    return FAKE_SERVE;
}

static void nobody_needed_one(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 0);
    assert_int_equal(the_fake->requests[API_ELECT_LEADERS], 1);
}

static void all_leaders_are_asked_for_with_no_list(void **state)
{
    (void)state;
    run(nobody_needed_one, start_all, is_asked_for_all);
}

static void start_unclean(struct fake *f)
{
    struct admin_partition one = {.topic = STR_LIT("t")};

    admin_elect_leaders(f->client, op_of(f), ADMIN_UNCLEAN, &one, 1);
}

static enum fake_action loses_unclean(struct fake *f, struct fake_request *rq)
{
    const struct elect_leaders_request *q = rq->request;

    (void)f;
    if (rq->header.api_key != API_ELECT_LEADERS)
        return FAKE_SERVE;
    assert_int_equal(q->election_type, 1);
    return FAKE_CLOSE;
}

static void election_in_doubt(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NETWORK_EXCEPTION);
    assert_int_equal(the_fake->requests[API_ELECT_LEADERS], 1);
}

static void an_unclean_election_is_not_asked_for_twice(void **state)
{
    (void)state;
    run(election_in_doubt, start_unclean, loses_unclean);
}

/* ---- Reassignments. */

static void start_moves(struct fake *f)
{
    int32_t ids[] = {3, 1};
    struct admin_move two[] = {
        {.topic = STR_LIT("t"), .partition = 0, .replicas = ids, .replica_count = 2},
        {.topic = STR_LIT("t"), .partition = 5, .replicas = ids, .replica_count = 1},
    };

    admin_alter_reassignments(f->client, op_of(f), two, 2);
    memset(ids, 0, sizeof(ids)); /* arguments are copied */
}

static enum fake_action moves_one(struct fake *f, struct fake_request *rq)
{
    const struct alter_partition_reassignments_request *q = rq->request;
    struct alter_partition_reassignments_response *r = rq->response;

    if (rq->header.api_key != API_ALTER_PARTITION_REASSIGNMENTS)
        return FAKE_SERVE;
    assert_int_equal(rq->broker->id, 2);
    assert_int_equal(q->topics.n, 1);
    assert_int_equal(q->topics.v[0].partitions.n, 2);
    assert_int_equal(q->topics.v[0].partitions.v[0].replicas.n, 2);
    assert_int_equal(q->topics.v[0].partitions.v[0].replicas.v[0], 3);
    assert_int_equal(q->topics.v[0].partitions.v[0].replicas.v[1], 1);
    assert_int_equal(q->topics.v[0].partitions.v[1].partition_index, 5);
    assert_int_equal(q->topics.v[0].partitions.v[1].replicas.n, 1);
    if (f->step++ == 0)
        return FAKE_CLOSE;
    r->responses.n = 1;
    r->responses.v = arena_calloc(rq->arena, 1, sizeof(*r->responses.v));
    r->responses.v[0].name = STR_LIT("t");
    r->responses.v[0].partitions.n = 2;
    r->responses.v[0].partitions.v =
        arena_calloc(rq->arena, 2, sizeof(*r->responses.v[0].partitions.v));
    r->responses.v[0].partitions.v[0].error_message = str_null();
    r->responses.v[0].partitions.v[1].partition_index = 5;
    r->responses.v[0].partitions.v[1].error_code = ERR_INVALID_REPLICA_ASSIGNMENT;
    r->responses.v[0].partitions.v[1].error_message = STR_LIT("broker 3 is not alive");
    return FAKE_ANSWER;
}

static void moved(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(the_fake->requests[API_ALTER_PARTITION_REASSIGNMENTS], 2);
    assert_int_equal(a->op.result_count, 2);
    assert_true(str_eq_c(a->op.results[0].name, "t-0"));
    assert_int_equal(a->op.results[0].err, ERR_NONE);
    assert_true(str_eq_c(a->op.results[1].name, "t-5"));
    assert_int_equal(a->op.results[1].err, ERR_INVALID_REPLICA_ASSIGNMENT);
    assert_true(str_eq_c(a->op.results[1].message, "broker 3 is not alive"));
}

static void a_move_to_the_same_place_may_be_asked_for_twice(void **state)
{
    (void)state;
    run(moved, start_moves, moves_one);
}

static void start_cancel(struct fake *f)
{
    struct admin_move one = {.topic = STR_LIT("t")};

    admin_alter_reassignments(f->client, op_of(f), &one, 1);
}

static enum fake_action loses_cancel(struct fake *f, struct fake_request *rq)
{
    const struct alter_partition_reassignments_request *q = rq->request;

    (void)f;
    if (rq->header.api_key != API_ALTER_PARTITION_REASSIGNMENTS)
        return FAKE_SERVE;
    assert_int_equal(q->topics.v[0].partitions.v[0].replicas.n, -1);
    return FAKE_CLOSE;
}

static void cancel_in_doubt(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NETWORK_EXCEPTION);
    assert_int_equal(the_fake->requests[API_ALTER_PARTITION_REASSIGNMENTS], 1);
}

static void a_move_is_not_cancelled_twice(void **state)
{
    (void)state;
    run(cancel_in_doubt, start_cancel, loses_cancel);
}

static void start_list(struct fake *f)
{
    admin_list_reassignments(f->client, op_of(f));
}

static enum fake_action lists_one(struct fake *f, struct fake_request *rq)
{
    const struct list_partition_reassignments_request *q = rq->request;
    struct list_partition_reassignments_response *r = rq->response;

    if (rq->header.api_key != API_LIST_PARTITION_REASSIGNMENTS)
        return FAKE_SERVE;
    assert_int_equal(rq->broker->id, 2);
    assert_int_equal(q->topics.n, -1);
    if (f->step++ == 0) {
        r->error_code = ERR_NOT_CONTROLLER;
        return FAKE_ANSWER;
    }
    r->topics.n = 1;
    r->topics.v = arena_calloc(rq->arena, 1, sizeof(*r->topics.v));
    r->topics.v[0].name = STR_LIT("t");
    return FAKE_ANSWER;
}

static void listed(struct asked *a)
{
    const struct list_partition_reassignments_response *r = a->op.response;

    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(the_fake->requests[API_LIST_PARTITION_REASSIGNMENTS], 2);
    assert_int_equal(r->topics.n, 1);
    assert_true(str_eq_c(r->topics.v[0].name, "t"));
}

static void all_moves_are_listed_by_the_controller(void **state)
{
    (void)state;
    run(listed, start_list, lists_one);
}

/* ---- What a broker holds. */

static void start_dirs(struct fake *f)
{
    struct admin_partition two[] = {{.topic = STR_LIT("t"), .partition = 2},
                                    {.topic = STR_LIT("u"), .partition = 0}};

    admin_describe_log_dirs(f->client, op_of(f), 1, two, 2);
}

static enum fake_action has_two_dirs(struct fake *f, struct fake_request *rq)
{
    const struct describe_log_dirs_request *q = rq->request;
    struct describe_log_dirs_response *r = rq->response;

    (void)f;
    if (rq->header.api_key != API_DESCRIBE_LOG_DIRS)
        return FAKE_SERVE;
    assert_int_equal(rq->broker->id, 1);
    assert_int_equal(q->topics.n, 2);
    assert_true(str_eq_c(q->topics.v[0].topic, "t"));
    assert_int_equal(q->topics.v[0].partitions.v[0], 2);
    r->results.n = 2;
    r->results.v = arena_calloc(rq->arena, 2, sizeof(*r->results.v));
    r->results.v[0].log_dir = STR_LIT("/a");
    r->results.v[1].log_dir = STR_LIT("/b");
    r->results.v[1].error_code = ERR_KAFKA_STORAGE_ERROR;
    return FAKE_ANSWER;
}

static void dirs_described(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 2);
    assert_true(str_eq_c(a->op.results[0].name, "/a"));
    assert_int_equal(a->op.results[0].err, ERR_NONE);
    assert_true(str_eq_c(a->op.results[1].name, "/b"));
    assert_int_equal(a->op.results[1].err, ERR_KAFKA_STORAGE_ERROR);
}

static void each_directory_of_a_broker_has_a_result(void **state)
{
    (void)state;
    run(dirs_described, start_dirs, has_two_dirs);
}

/* The leader is broker 1; where a replica's own log ends, 2 has to say. */
static void start_ends(struct fake *f)
{
    struct admin_offset ends[] = {{.topic = STR_LIT("t"), .offset = ADMIN_LATEST}};

    admin_list_replica_offsets(f->client, op_of(f), 2, ends, 1);
}

static enum fake_action ends_at_nine(struct fake *f, struct fake_request *rq)
{
    const struct list_offsets_request *q = rq->request;
    struct list_offsets_response *r = rq->response;

    (void)f;
    if (rq->header.api_key != API_LIST_OFFSETS)
        return FAKE_SERVE;
    assert_int_equal(rq->broker->id, 2);
    assert_int_equal(q->replica_id, -2);
    assert_int_equal(q->topics.v[0].partitions.v[0].timestamp, -1);
    r->topics.n = 1;
    r->topics.v = arena_calloc(rq->arena, 1, sizeof(*r->topics.v));
    r->topics.v[0].name = STR_LIT("t");
    r->topics.v[0].partitions.n = 1;
    r->topics.v[0].partitions.v = arena_calloc(rq->arena, 1, sizeof(*r->topics.v->partitions.v));
    r->topics.v[0].partitions.v[0].offset = 9;
    return FAKE_ANSWER;
}

static void ended(struct asked *a)
{
    const struct list_offsets_response *r = a->op.response;

    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 1);
    assert_int_equal(a->op.results[0].err, ERR_NONE);
    assert_int_equal(r->topics.v[0].partitions.v[0].offset, 9);
}

static void where_a_replica_ends_is_asked_of_its_broker(void **state)
{
    (void)state;
    run(ended, start_ends, ends_at_nine);
}

/* ---- One key of many topics. */

static void start_configs(struct fake *f)
{
    struct str names[] = {STR_LIT("t"), STR_LIT("u")};

    admin_describe_topics_config(f->client, op_of(f), names, 2, STR_LIT("min.insync.replicas"));
}

static enum fake_action has_configs(struct fake *f, struct fake_request *rq)
{
    const struct describe_configs_request *q = rq->request;
    struct describe_configs_response *r = rq->response;

    (void)f;
    if (rq->header.api_key != API_DESCRIBE_CONFIGS)
        return FAKE_SERVE;
    assert_int_equal(q->resources.n, 2);
    r->results.n = 2;
    r->results.v = arena_calloc(rq->arena, 2, sizeof(*r->results.v));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(q->resources.v[i].resource_type, ADMIN_TOPIC);
        assert_int_equal(q->resources.v[i].configuration_keys.n, 1);
        assert_true(str_eq_c(q->resources.v[i].configuration_keys.v[0], "min.insync.replicas"));
        r->results.v[i].resource_name = q->resources.v[i].resource_name;
    }
    return FAKE_ANSWER;
}

static void configs_described(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 2);
    assert_true(str_eq_c(a->op.results[1].name, "u"));
}

static void one_key_of_many_topics_is_one_request(void **state)
{
    (void)state;
    run(configs_described, start_configs, has_configs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preferred_leaders_are_elected_by_the_controller),
        cmocka_unit_test(all_leaders_are_asked_for_with_no_list),
        cmocka_unit_test(an_unclean_election_is_not_asked_for_twice),
        cmocka_unit_test(a_move_to_the_same_place_may_be_asked_for_twice),
        cmocka_unit_test(a_move_is_not_cancelled_twice),
        cmocka_unit_test(all_moves_are_listed_by_the_controller),
        cmocka_unit_test(each_directory_of_a_broker_has_a_result),
        cmocka_unit_test(where_a_replica_ends_is_asked_of_its_broker),
        cmocka_unit_test(one_key_of_many_topics_is_one_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
