/* SPDX-License-Identifier: Apache-2.0 */
/* What administrative operations ask, what they make of answers, and when they ask again. */
#include "client/admin.h"
#include "client/fake_simtest.h"

struct asked {
    struct admin_op op;
    void (*check)(struct asked *a);
    int32_t timeout_ms;
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

static void run(struct asked *a, void (*start)(struct fake *f),
                enum fake_action (*hook)(struct fake *f, struct fake_request *rq))
{
    a->op.done = done;
    a->op.timeout_ms = a->timeout_ms;
    the_fake = fake_new(a, start);
    the_fake->hook = hook;
    fake_run(the_fake);
}

/* ---- Creating. */

static void start_create(struct fake *f)
{
    struct asked *a = f->test;
    struct admin_config config = {.name = STR_LIT("retention.ms"), .value = STR_LIT("7")};
    struct admin_new_topic topic = {
        .name = STR_LIT("new"),
        .partitions = 6,
        .replication_factor = -1,
        .configs = &config,
        .config_count = 1,
    };

    a->start_ns = io_mono_ns(f->io);
    admin_create_topic(f->client, &a->op, &topic);
    memset(&topic, 0, sizeof(topic)); /* arguments are copied */
    memset(&config, 0, sizeof(config));
}

static void answer_create(struct fake_request *rq, enum err err, const char *message)
{
    const struct create_topics_request *q = rq->request;
    struct create_topics_response *r = rq->response;

    assert_int_equal(q->topics.n, 1);
    assert_true(str_eq_c(q->topics.v[0].name, "new"));
    assert_int_equal(q->topics.v[0].num_partitions, 6);
    assert_int_equal(q->topics.v[0].replication_factor, -1);
    assert_int_equal(q->topics.v[0].configs.n, 1);
    assert_true(str_eq_c(q->topics.v[0].configs.v[0].name, "retention.ms"));
    assert_true(str_eq_c(q->topics.v[0].configs.v[0].value, "7"));
    r->topics.n = 1;
    r->topics.v = arena_calloc(rq->arena, 1, sizeof(*r->topics.v));
    r->topics.v[0].name = STR_LIT("new");
    r->topics.v[0].error_code = (int16_t)err;
    r->topics.v[0].error_message = str_of(message);
}

static enum fake_action not_controller_at_first(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key != API_CREATE_TOPICS)
        return FAKE_SERVE;
    assert_int_equal(rq->broker->id, 2);
    answer_create(rq, f->step++ < 3 ? ERR_NOT_CONTROLLER : ERR_NONE, NULL);
    return FAKE_ANSWER;
}

static void created(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 1);
    assert_int_equal(a->op.results[0].err, ERR_NONE);
    assert_int_equal(the_fake->requests[API_CREATE_TOPICS], 4);
    /* Backoffs of 100, 200 and 400 ms. */
    assert_true(io_mono_ns(the_fake->io) - a->start_ns >= 700 * (int64_t)1000000);
}

static void who_is_not_the_controller_is_asked_again_later(void **state)
{
    struct asked a = {.check = created};

    (void)state;
    run(&a, start_create, not_controller_at_first);
}

static enum fake_action lost(struct fake *f, struct fake_request *rq)
{
    (void)f;
    return rq->header.api_key == API_CREATE_TOPICS ? FAKE_CLOSE : FAKE_SERVE;
}

static void in_doubt(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NETWORK_EXCEPTION);
    assert_int_equal(the_fake->requests[API_CREATE_TOPICS], 1);
}

static void what_changes_something_is_not_sent_twice(void **state)
{
    struct asked a = {.check = in_doubt};

    (void)state;
    run(&a, start_create, lost);
}

static enum fake_action refuses(struct fake *f, struct fake_request *rq)
{
    (void)f;
    if (rq->header.api_key != API_CREATE_TOPICS)
        return FAKE_SERVE;
    answer_create(rq, ERR_INVALID_CONFIG, "seven is too few");
    return FAKE_ANSWER;
}

static void refused(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 1);
    assert_true(str_eq_c(a->op.results[0].name, "new"));
    assert_int_equal(a->op.results[0].err, ERR_INVALID_CONFIG);
    assert_true(str_eq_c(a->op.results[0].message, "seven is too few"));
}

static void a_refusal_comes_with_the_brokers_words(void **state)
{
    struct asked a = {.check = refused};

    (void)state;
    run(&a, start_create, refuses);
}

/* ---- Describing. */

static void start_describe(struct fake *f)
{
    struct asked *a = f->test;

    admin_describe_topics(f->client, &a->op, &STR_LIT("t"), 1);
}

static enum fake_action loses_three(struct fake *f, struct fake_request *rq)
{
    const struct metadata_request *q = rq->request;

    if (rq->header.api_key != API_METADATA || q->topics.n != 1)
        return FAKE_SERVE;
    assert_false(q->allow_auto_topic_creation);
    return f->step++ < 3 ? FAKE_CLOSE : FAKE_SERVE;
}

static void described(struct asked *a)
{
    const struct metadata_response *r = a->op.response;

    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(the_fake->step, 4);
    assert_int_equal(r->topics.n, 1);
    assert_int_equal(r->topics.v[0].partitions.n, 1);
}

static void what_only_reads_is_asked_again(void **state)
{
    struct asked a = {.check = described};

    (void)state;
    run(&a, start_describe, loses_three);
}

static enum fake_action loses_all(struct fake *f, struct fake_request *rq)
{
    (void)f;
    return rq->header.api_key == API_API_VERSIONS ? FAKE_SERVE : FAKE_CLOSE;
}

static void given_up(struct asked *a)
{
    assert_int_not_equal(a->op.err, ERR_NONE);
    assert_int_equal(a->op.result_count, 0);
}

static void nothing_is_asked_for_ever(void **state)
{
    struct asked a = {.check = given_up, .timeout_ms = 3000};

    (void)state;
    run(&a, start_describe, loses_all);
}

/* ---- Configurations. */

static void start_broker_config(struct fake *f)
{
    struct asked *a = f->test;
    struct admin_config changes[] = {
        {.name = STR_LIT("a"), .value = STR_LIT("1"), .operation = 0},
        {.name = STR_LIT("b"), .value = str_null(), .operation = 1},
    };

    admin_alter_configs(f->client, &a->op, ADMIN_BROKER, STR_LIT("1"), changes, 2);
}

static enum fake_action takes_changes(struct fake *f, struct fake_request *rq)
{
    const struct incremental_alter_configs_request *q = rq->request;

    (void)f;
    if (rq->header.api_key != API_INCREMENTAL_ALTER_CONFIGS)
        return FAKE_SERVE;
    assert_int_equal(rq->broker->id, 1);
    assert_int_equal(q->resources.v[0].resource_type, 4);
    assert_true(str_eq_c(q->resources.v[0].resource_name, "1"));
    assert_int_equal(q->resources.v[0].configs.n, 2);
    assert_true(str_eq_c(q->resources.v[0].configs.v[0].value, "1"));
    assert_true(str_is_null(q->resources.v[0].configs.v[1].value));
    assert_int_equal(q->resources.v[0].configs.v[1].config_operation, 1);
    return FAKE_SERVE;
}

static void changed(struct asked *a)
{
    assert_int_equal(a->op.err, ERR_NONE);
    assert_int_equal(the_fake->requests[API_INCREMENTAL_ALTER_CONFIGS], 1);
}

static void a_brokers_configuration_is_changed_at_that_broker(void **state)
{
    struct asked a = {.check = changed};

    (void)state;
    run(&a, start_broker_config, takes_changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_not_the_controller_is_asked_again_later),
        cmocka_unit_test(what_changes_something_is_not_sent_twice),
        cmocka_unit_test(a_refusal_comes_with_the_brokers_words),
        cmocka_unit_test(what_only_reads_is_asked_again),
        cmocka_unit_test(nothing_is_asked_for_ever),
        cmocka_unit_test(a_brokers_configuration_is_changed_at_that_broker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
