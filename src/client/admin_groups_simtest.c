/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How groups are administered: the coordinator is found first and again when it has moved, flat
 * arguments are nested and answers are flat again, and what changes something is not sent twice.
 */
#include "client/admin.h"
#include "client/fake_simtest.h"

struct asked {
    struct admin_op op;
    void (*check)(struct asked *a);
    int64_t start_ns;
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

static enum fake_action coordinator_is(struct fake_request *rq, int32_t id, enum err err)
{
    const struct find_coordinator_request *q = rq->request;
    struct find_coordinator_response *r = rq->response;

    assert_true(str_eq_c(q->key, "g"));
    assert_int_equal(q->key_type, 0);
    r->node_id = id;
    r->error_code = (int16_t)err;
    return FAKE_ANSWER;
}

static struct admin_op *op_of(struct fake *f)
{
    struct asked *a = f->test;

    return &a->op;
}

/* ---- Finding the coordinator. */

static void start_describe(struct fake *f)
{
    struct asked *a = f->test;
    char group[] = "g";

    a->start_ns = io_mono_ns(f->io);
    admin_describe_group(f->client, op_of(f), str_of(group));
    memset(group, 0, sizeof(group)); /* arguments are copied */
}

static enum fake_action has_moved(struct fake *f, struct fake_request *rq)
{
    const struct describe_groups_request *q = rq->request;
    struct describe_groups_response *r = rq->response;

    if (rq->header.api_key == API_FIND_COORDINATOR)
        return coordinator_is(rq, f->step++ == 0 ? 1 : 2, ERR_NONE);
    if (rq->header.api_key != API_DESCRIBE_GROUPS)
        return FAKE_SERVE;
    assert_int_equal(q->groups.n, 1);
    r->groups.n = 1;
    r->groups.v = arena_calloc(rq->arena, 1, sizeof(*r->groups.v));
    r->groups.v[0].group_id = q->groups.v[0];
    r->groups.v[0].group_state = STR_LIT("Empty");
    r->groups.v[0].error_code = rq->broker->id == 1 ? ERR_NOT_COORDINATOR : ERR_NONE;
    return FAKE_ANSWER;
}

static void found_again(struct asked *a)
{
    const struct describe_groups_response *r = a->op.response;

    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 1);
    assert_true(str_eq_c(a->op.results[0].name, "g"));
    assert_int_equal(a->op.results[0].err, ERR_NONE);
    assert_int_equal(a->op.node_id, 2);
    assert_true(str_eq_c(r->groups.v[0].group_state, "Empty"));
    assert_int_equal(the_fake->requests[API_FIND_COORDINATOR], 2);
    assert_int_equal(the_fake->requests[API_DESCRIBE_GROUPS], 2);
}

static void a_coordinator_that_has_moved_is_found_again(void **state)
{
    (void)state;
    run(found_again, start_describe, has_moved);
}

/* Not available three ways, then lost, then there. */
static enum fake_action comes_late(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key != API_FIND_COORDINATOR)
        return has_moved(f, rq);
    switch (f->step++) {
    case 0: return coordinator_is(rq, -1, ERR_COORDINATOR_NOT_AVAILABLE);
    case 1: return coordinator_is(rq, -1, ERR_COORDINATOR_LOAD_IN_PROGRESS);
    case 2: return coordinator_is(rq, -1, ERR_NONE);
    case 3: return FAKE_CLOSE;
    default: return coordinator_is(rq, 2, ERR_NONE);
    }
}

static void found_late(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 1);
    assert_int_equal(the_fake->requests[API_FIND_COORDINATOR], 5);
    /* Each time later: 100, 200, 400 and 800 ms. */
    assert_true(io_mono_ns(the_fake->io) - a->start_ns >= 1500 * (int64_t)1000000);
    assert_int_equal(the_fake->requests[API_DESCRIBE_GROUPS], 1);
}

static void a_coordinator_is_waited_for(void **state)
{
    (void)state;
    run(found_late, start_describe, comes_late);
}

static enum fake_action forbids(struct fake *f, struct fake_request *rq)
{
    (void)f;
    if (rq->header.api_key == API_FIND_COORDINATOR)
        return coordinator_is(rq, -1, ERR_GROUP_AUTHORIZATION_FAILED);
    return FAKE_SERVE;
}

static void forbidden(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_GROUP_AUTHORIZATION_FAILED);
    assert_int_equal(the_fake->requests[API_FIND_COORDINATOR], 1);
    assert_int_equal(the_fake->requests[API_DESCRIBE_GROUPS], 0);
}

static void what_finding_is_refused_for_is_the_result(void **state)
{
    (void)state;
    run(forbidden, start_describe, forbids);
}

/* ---- Deleting. */

static void start_delete(struct fake *f)
{
    admin_delete_group(f->client, op_of(f), STR_LIT("g"));
}

static enum fake_action loses_delete(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key == API_FIND_COORDINATOR)
        return f->step++ == 0 ? FAKE_CLOSE : coordinator_is(rq, 2, ERR_NONE);
    return rq->header.api_key == API_DELETE_GROUPS ? FAKE_CLOSE : FAKE_SERVE;
}

static void in_doubt(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NETWORK_EXCEPTION);
    assert_int_equal(the_fake->requests[API_FIND_COORDINATOR], 2);
    assert_int_equal(the_fake->requests[API_DELETE_GROUPS], 1);
}

static void a_group_is_not_deleted_twice(void **state)
{
    (void)state;
    run(in_doubt, start_delete, loses_delete);
}

/* ---- Offsets. */

static const struct admin_offset three[] = {
    {.topic = {"t", 1}, .partition = 0, .offset = 10, .leader_epoch = -1},
    {.topic = {"t", 1}, .partition = 1, .offset = 11, .leader_epoch = 4},
    {.topic = {"u", 1}, .partition = 3, .offset = 12, .leader_epoch = -1},
};

static void start_commit(struct fake *f)
{
    admin_commit_offsets(f->client, op_of(f), STR_LIT("g"), three, 3);
}

static enum fake_action takes_commits(struct fake *f, struct fake_request *rq)
{
    const struct offset_commit_request *q = rq->request;
    struct offset_commit_response *r = rq->response;

    (void)f;
    if (rq->header.api_key == API_FIND_COORDINATOR)
        return coordinator_is(rq, 2, ERR_NONE);
    if (rq->header.api_key != API_OFFSET_COMMIT)
        return FAKE_SERVE;
    assert_true(str_eq_c(q->group_id, "g"));
    assert_int_equal(q->generation_id, -1);
    assert_int_equal(q->topics.n, 2);
    assert_int_equal(q->topics.v[0].partitions.n, 2);
    assert_int_equal(q->topics.v[0].partitions.v[1].committed_offset, 11);
    assert_int_equal(q->topics.v[0].partitions.v[1].committed_leader_epoch, 4);
    assert_true(str_eq_c(q->topics.v[1].name, "u"));
    assert_int_equal(q->topics.v[1].partitions.v[0].partition_index, 3);
    r->topics.n = 2;
    r->topics.v = arena_calloc(rq->arena, 2, sizeof(*r->topics.v));
    for (int i = 0; i < 2; i++) {
        r->topics.v[i].name = q->topics.v[i].name;
        r->topics.v[i].partitions.n = q->topics.v[i].partitions.n;
        r->topics.v[i].partitions.v =
            arena_calloc(rq->arena, 2, sizeof(*r->topics.v->partitions.v));
        for (int k = 0; k < r->topics.v[i].partitions.n; k++)
            r->topics.v[i].partitions.v[k].partition_index =
                q->topics.v[i].partitions.v[k].partition_index;
    }
    r->topics.v[1].partitions.v[0].error_code = ERR_UNKNOWN_MEMBER_ID;
    return FAKE_ANSWER;
}

static void committed(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 3);
    assert_true(str_eq_c(a->op.results[0].name, "t-0"));
    assert_true(str_eq_c(a->op.results[1].name, "t-1"));
    assert_int_equal(a->op.results[1].err, ERR_NONE);
    assert_true(str_eq_c(a->op.results[2].name, "u-3"));
    assert_int_equal(a->op.results[2].err, ERR_UNKNOWN_MEMBER_ID);
}

static void offsets_are_committed_by_topic_and_answered_by_partition(void **state)
{
    (void)state;
    run(committed, start_commit, takes_commits);
}

static void start_delete_offsets(struct fake *f)
{
    admin_delete_offsets(f->client, op_of(f), STR_LIT("g"), three, 3);
}

static enum fake_action is_loading(struct fake *f, struct fake_request *rq)
{
    const struct offset_delete_request *q = rq->request;
    struct offset_delete_response *r = rq->response;

    if (rq->header.api_key == API_FIND_COORDINATOR)
        return coordinator_is(rq, 2, ERR_NONE);
    if (rq->header.api_key != API_OFFSET_DELETE)
        return FAKE_SERVE;
    assert_int_equal(q->topics.n, 2);
    r->error_code = f->step++ < 2 ? ERR_COORDINATOR_LOAD_IN_PROGRESS : ERR_GROUP_ID_NOT_FOUND;
    return FAKE_ANSWER;
}

static void not_there(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_GROUP_ID_NOT_FOUND);
    assert_int_equal(a->op.result_count, 0);
    assert_int_equal(the_fake->requests[API_OFFSET_DELETE], 3);
}

static void a_coordinator_that_loads_is_asked_again(void **state)
{
    (void)state;
    run(not_there, start_delete_offsets, is_loading);
}

static void start_fetch(struct fake *f)
{
    admin_fetch_offsets(f->client, op_of(f), STR_LIT("g"));
}

static enum fake_action has_one_offset(struct fake *f, struct fake_request *rq)
{
    const struct offset_fetch_request *q = rq->request;
    struct offset_fetch_response *r = rq->response;

    (void)f;
    if (rq->header.api_key == API_FIND_COORDINATOR)
        return coordinator_is(rq, 2, ERR_NONE);
    if (rq->header.api_key != API_OFFSET_FETCH)
        return FAKE_SERVE;
    assert_true(str_eq_c(q->group_id, "g"));
    assert_int_equal(q->topics.n, -1);
    r->topics.n = 1;
    r->topics.v = arena_calloc(rq->arena, 1, sizeof(*r->topics.v));
    r->topics.v[0].name = STR_LIT("t");
    r->topics.v[0].partitions.n = 1;
    r->topics.v[0].partitions.v = arena_calloc(rq->arena, 1, sizeof(*r->topics.v->partitions.v));
    r->topics.v[0].partitions.v[0].committed_offset = 77;
    return FAKE_ANSWER;
}

static void fetched(struct asked *a)
{
    const struct offset_fetch_response *r = a->op.response;

    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(r->topics.n, 1);
    assert_int_equal(r->topics.v[0].partitions.v[0].committed_offset, 77);
}

static void all_offsets_of_a_group_are_fetched(void **state)
{
    (void)state;
    run(fetched, start_fetch, has_one_offset);
}

static void start_ends(struct fake *f)
{
    struct admin_offset ends[] = {{.topic = STR_LIT("t"), .offset = ADMIN_LATEST}};

    f->logs[0].end = 50;
    admin_list_offsets(f->client, op_of(f), 1, ends, 1);
}

static enum fake_action lists_at_the_leader(struct fake *f, struct fake_request *rq)
{
    (void)f;
    if (rq->header.api_key == API_LIST_OFFSETS)
        assert_int_equal(rq->broker->id, 1);
    return FAKE_SERVE;
}

static void listed(struct asked *a)
{
    const struct list_offsets_response *r = a->op.response;

    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 1);
    assert_true(str_eq_c(a->op.results[0].name, "t-0"));
    assert_int_equal(r->topics.v[0].partitions.v[0].offset, 50);
    assert_int_equal(the_fake->requests[API_FIND_COORDINATOR], 0);
}

static void the_ends_of_logs_are_asked_of_their_leader(void **state)
{
    (void)state;
    run(listed, start_ends, lists_at_the_leader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coordinator_that_has_moved_is_found_again),
        cmocka_unit_test(a_coordinator_is_waited_for),
        cmocka_unit_test(what_finding_is_refused_for_is_the_result),
        cmocka_unit_test(a_group_is_not_deleted_twice),
        cmocka_unit_test(offsets_are_committed_by_topic_and_answered_by_partition),
        cmocka_unit_test(a_coordinator_that_loads_is_asked_again),
        cmocka_unit_test(all_offsets_of_a_group_are_fetched),
        cmocka_unit_test(the_ends_of_logs_are_asked_of_their_leader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
