/* SPDX-License-Identifier: Apache-2.0 */
/* Connections, versions, routing, timeouts and metadata, against scripted brokers. */
#include "client/fake_simtest.h"

#define SECOND_NS 1000000000

struct calls {
    struct client_call call[4];
    struct describe_cluster_request request;
    struct client_watcher watcher;
    struct client_alarm alarm;
    int done;
    int64_t start_ns;
};

static struct fake *the_fake;

static void prepare(struct calls *t, int i, int32_t target, void (*done)(struct client_call *))
{
    wire_init(&describe_cluster_request_schema, &t->request);
    t->call[i].done = done;
    t->call[i].api_key = API_DESCRIBE_CLUSTER;
    t->call[i].target = target;
    t->call[i].request = &t->request;
}

static void finish(struct calls *t)
{
    for (int i = 0; i < 4; i++)
        client_call_fini(&t->call[i]);
    client_watcher_remove(&t->watcher);
    fake_end(the_fake);
}

static void set_up(struct calls *t, void (*start)(struct fake *f),
                   enum fake_action (*hook)(struct fake *f, struct fake_request *rq))
{
    list_init(&t->watcher.node);
    the_fake = fake_new(t, start);
    the_fake->hook = hook;
}

static void run(struct calls *t, void (*start)(struct fake *f),
                enum fake_action (*hook)(struct fake *f, struct fake_request *rq))
{
    set_up(t, start, hook);
    fake_run(the_fake);
}

/* ---- Greeting. */

static void greeted(struct client_call *call)
{
    assert_int_equal(call->err, ERR_NONE);
    assert_non_null(call->response);
    assert_int_equal(call->version, 2);
    finish(the_fake->test);
}

static void start_one(struct fake *f)
{
    struct calls *t = f->test;

    prepare(t, 0, CLIENT_ANY, greeted);
    client_call(f->client, &t->call[0]);
}

static enum fake_action check_greeting(struct fake *f, struct fake_request *rq)
{
    const struct api_versions_request *q = rq->request;

    (void)f;
    if (rq->header.api_key != API_API_VERSIONS)
        return FAKE_SERVE;
    assert_int_equal(rq->header.api_version, 4);
    assert_true(str_eq_c(q->client_software_name, "fake-test"));
    assert_true(str_eq_c(q->client_software_version, "1.2"));
    assert_true(str_eq_c(rq->header.client_id, "strandline"));
    return FAKE_SERVE;
}

static void a_connection_begins_with_our_names_and_takes_the_highest_version(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_one, check_greeting);
}

/* Knows ApiVersions up to 2, and says so in version 0. */
static enum fake_action old_broker(struct fake *f, struct fake_request *rq)
{
    struct api_versions_response *r = rq->response;

    if (rq->header.api_key != API_API_VERSIONS || rq->header.api_version <= 2)
        return FAKE_SERVE;
    f->step++;
    r->error_code = ERR_UNSUPPORTED_VERSION;
    r->api_keys.n = 1;
    r->api_keys.v = arena_calloc(rq->arena, 1, sizeof(*r->api_keys.v));
    r->api_keys.v[0].api_key = API_API_VERSIONS;
    r->api_keys.v[0].max_version = 2;
    rq->encode_version = 0;
    return FAKE_ANSWER;
}

static void checked_old(struct client_call *call)
{
    assert_int_equal(the_fake->step, 1);
    assert_int_equal(the_fake->requests[API_API_VERSIONS], 2);
    greeted(call);
}

static void start_old(struct fake *f)
{
    struct calls *t = f->test;

    prepare(t, 0, CLIENT_ANY, checked_old);
    client_call(f->client, &t->call[0]);
}

static void an_older_broker_is_greeted_again_in_its_version(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_old, old_broker);
}

static enum fake_action without_describe_cluster(struct fake *f, struct fake_request *rq)
{
    struct api_versions_response *r = rq->response;

    (void)f;
    if (rq->header.api_key != API_API_VERSIONS)
        return FAKE_SERVE;
    fake_serve_versions(rq);
    for (int i = 0; i < r->api_keys.n; i++)
        if (r->api_keys.v[i].api_key == API_DESCRIBE_CLUSTER)
            r->api_keys.v[i].min_version = r->api_keys.v[i].max_version = 9;
    return FAKE_ANSWER;
}

static void unsupported(struct client_call *call)
{
    assert_int_equal(call->err, ERR_UNSUPPORTED_VERSION);
    assert_false(call->was_sent);
    assert_int_equal(the_fake->requests[API_DESCRIBE_CLUSTER], 0);
    finish(the_fake->test);
}

static void start_unsupported(struct fake *f)
{
    struct calls *t = f->test;

    prepare(t, 0, CLIENT_ANY, unsupported);
    client_call(f->client, &t->call[0]);
}

static void without_a_common_version_nothing_is_sent(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_unsupported, without_describe_cluster);
}

/* A broker of another make: it gives out producer ids. */
static enum fake_action with_producer_ids(struct fake *f, struct fake_request *rq)
{
    struct api_versions_response *r = rq->response;

    if (rq->header.api_key == API_ALLOCATE_PRODUCER_IDS) {
        const struct allocate_producer_ids_request *q = rq->request;

        assert_int_equal(rq->header.api_version, 0);
        assert_int_equal(q->broker_id, 1234);
        f->step++;
        return FAKE_ANSWER;
    }
    if (rq->header.api_key != API_API_VERSIONS)
        return FAKE_SERVE;
    fake_serve_versions(rq);
    r->api_keys.v[0].api_key = API_ALLOCATE_PRODUCER_IDS;
    r->api_keys.v[0].min_version = 0;
    r->api_keys.v[0].max_version = 0;
    return FAKE_ANSWER;
}

static void allocated(struct client_call *call)
{
    assert_int_equal(call->err, ERR_NONE);
    assert_int_equal(call->version, 0);
    assert_int_equal(the_fake->step, 1);
    finish(the_fake->test);
}

static void start_allocation(struct fake *f)
{
    static struct allocate_producer_ids_request request;
    struct calls *t = f->test;

    wire_init(&allocate_producer_ids_request_schema, &request);
    request.broker_id = 1234;
    prepare(t, 0, CLIENT_ANY, allocated);
    t->call[0].api_key = API_ALLOCATE_PRODUCER_IDS;
    t->call[0].request = &request;
    client_call(f->client, &t->call[0]);
}

static void others_can_be_asked_for_what_we_do_not_serve(void **state)
{
    struct calls t = {0};

    (void)state;
    assert_int_equal(api_find(API_ALLOCATE_PRODUCER_IDS)->max,
                     -1); /* else choose another API here */
    run(&t, start_allocation, with_producer_ids);
}

/* ---- Order and trust. */

static void in_order(struct client_call *call)
{
    struct calls *t = the_fake->test;

    assert_int_equal(call->err, ERR_NONE);
    assert_ptr_equal(call, &t->call[t->done]);
    if (++t->done == 4)
        finish(t);
}

static void start_four(struct fake *f)
{
    struct calls *t = f->test;

    for (int i = 0; i < 4; i++) {
        prepare(t, i, CLIENT_CONTROLLER, in_order);
        client_call(f->client, &t->call[i]);
    }
}

static enum fake_action controller_only(struct fake *f, struct fake_request *rq)
{
    (void)f;
    if (rq->header.api_key == API_DESCRIBE_CLUSTER)
        assert_int_equal(rq->broker->id, 2);
    return FAKE_SERVE;
}

static void calls_to_the_controller_go_there_and_are_answered_in_order(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_four, controller_only);
    assert_int_equal(t.done, 4);
}

static enum fake_action wrong_id(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key == API_DESCRIBE_CLUSTER && f->step++ == 0)
        rq->wrong_correlation = true;
    return FAKE_SERVE;
}

static void distrusted(struct client_call *call)
{
    struct calls *t = the_fake->test;

    assert_int_equal(call->err, ERR_NETWORK_EXCEPTION);
    assert_true(call->was_sent);
    if (++t->done < 2)
        return;
    prepare(t, 0, CLIENT_ANY, greeted);
    client_call(the_fake->client, &t->call[0]);
}

static void start_distrust(struct fake *f)
{
    struct calls *t = f->test;

    for (int i = 0; i < 2; i++) {
        prepare(t, i, CLIENT_CONTROLLER, distrusted);
        client_call(f->client, &t->call[i]);
    }
}

static void a_wrong_correlation_id_ends_the_connection_and_the_next_one_works(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_distrust, wrong_id);
}

static enum fake_action wrong_size(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key == API_DESCRIBE_CLUSTER && f->step++ == 0)
        rq->wrong_size = true;
    return FAKE_SERVE;
}

static void a_frame_of_4_gib_ends_the_connection_and_the_next_one_works(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_distrust, wrong_size);
}

/* ---- Time. */

static enum fake_action silent_once(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key == API_DESCRIBE_CLUSTER && f->step++ == 0)
        return FAKE_SILENCE;
    return FAKE_SERVE;
}

static void timed_out(struct client_call *call)
{
    struct calls *t = the_fake->test;
    int64_t passed = io_mono_ns(the_fake->io) - t->start_ns;

    assert_int_equal(call->err, call == &t->call[0] ? ERR_TIMEOUT : ERR_NETWORK_EXCEPTION);
    assert_true(passed >= 3 * (int64_t)SECOND_NS);
    assert_true(passed < 4 * (int64_t)SECOND_NS);
    if (++t->done < 2)
        return;
    prepare(t, 0, CLIENT_ANY, greeted);
    client_call(the_fake->client, &t->call[0]);
}

static void start_timeout(struct fake *f)
{
    struct calls *t = f->test;

    t->start_ns = io_mono_ns(f->io);
    for (int i = 0; i < 2; i++) {
        prepare(t, i, CLIENT_CONTROLLER, timed_out);
        t->call[i].timeout_ms = i == 0 ? 3000 : 9000;
        client_call(f->client, &t->call[i]);
    }
}

static void a_call_that_is_not_answered_in_time_takes_its_connection_with_it(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_timeout, silent_once);
}

static void never(struct client_call *call)
{
    (void)call;
    fail_msg("a cancelled call was told");
}

static void after_cancel(struct client_call *call)
{
    assert_int_equal(call->err, ERR_NONE);
    finish(the_fake->test);
}

static enum fake_action cancel_when_seen(struct fake *f, struct fake_request *rq)
{
    struct calls *t = f->test;

    if (rq->header.api_key == API_DESCRIBE_CLUSTER && f->step++ == 0) {
        client_cancel(&t->call[0]);
        assert_false(client_call_is_pending(&t->call[0]));
    }
    return FAKE_SERVE;
}

static void start_cancel(struct fake *f)
{
    struct calls *t = f->test;

    prepare(t, 0, CLIENT_CONTROLLER, never);
    client_call(f->client, &t->call[0]);
    prepare(t, 1, CLIENT_CONTROLLER, after_cancel);
    client_call(f->client, &t->call[1]);
    prepare(t, 2, CLIENT_ANY, never);
    client_call(f->client, &t->call[2]);
    client_cancel(&t->call[2]);
}

static void a_cancelled_call_is_never_told_and_its_answer_is_passed_over(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_cancel, cancel_when_seen);
}

/* ---- Lives: who is told of brokers says in which of them it speaks to one. */

static void tell_life(struct fake *f, int64_t life)
{
    client_broker_set(f->client, 1, life, STR_LIT("127.0.0.1"), f->brokers[0].port);
}

static void answered_in_the_next_life(struct client_call *call)
{
    assert_int_equal(call->err, ERR_NONE);
    assert_int_equal(the_fake->requests[API_API_VERSIONS], 2);
    assert_int_equal(the_fake->requests[API_DESCRIBE_CLUSTER], 2);
    assert_true(sim_now_ns(the_fake->world) - ((struct calls *)the_fake->test)->start_ns <
                SECOND_NS);
    finish(the_fake->test);
}

static void lost_with_its_life(struct client_call *call)
{
    struct calls *t = the_fake->test;

    assert_int_equal(call->err, ERR_NETWORK_EXCEPTION);
    assert_true(call->was_sent);
    prepare(t, 1, 1, answered_in_the_next_life);
    client_call(the_fake->client, &t->call[1]);
}

static enum fake_action silent_until_another_life(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key != API_DESCRIBE_CLUSTER || f->step++ > 0)
        return FAKE_SERVE;
    tell_life(f, 8); /* as it is */
    assert_true(client_call_is_pending(&((struct calls *)f->test)->call[0]));
    tell_life(f, 9);
    return FAKE_SILENCE;
}

static void start_lives(struct fake *f)
{
    struct calls *t = f->test;

    t->start_ns = sim_now_ns(f->world);
    tell_life(f, 7);
    prepare(t, 0, 1, lost_with_its_life);
    client_call(f->client, &t->call[0]);
    tell_life(f, 8); /* it is not sent yet, and goes along */
}

static void another_life_is_spoken_to_over_another_connection_at_once(void **state)
{
    struct calls t = {0};

    (void)state;
    set_up(&t, start_lives, silent_until_another_life);
    the_fake->config.is_told = true;
    the_fake->config.reconnect_backoff_ms = the_fake->config.reconnect_backoff_max_ms = 5000;
    fake_run(the_fake);
}

/* ---- Brokers that are not there. */

static void start_half_down(struct fake *f)
{
    fake_down(&f->brokers[0]);
    start_one(f);
}

static void a_bootstrap_server_that_refuses_is_passed_over(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_half_down, NULL);
}

static void refused(struct client_call *call)
{
    struct calls *t = the_fake->test;

    assert_int_equal(call->err, ERR_REFUSED);
    assert_false(call->was_sent);
    assert_true(io_mono_ns(the_fake->io) - t->start_ns < SECOND_NS);
    finish(t);
}

static void start_all_down(struct fake *f)
{
    struct calls *t = f->test;

    fake_down(&f->brokers[0]);
    fake_down(&f->brokers[1]);
    t->start_ns = io_mono_ns(f->io);
    prepare(t, 0, CLIENT_CONTROLLER, refused);
    client_call(f->client, &t->call[0]);
}

static void an_impatient_client_says_at_once_that_nobody_is_there(void **state)
{
    struct calls t = {0};

    (void)state;
    set_up(&t, start_all_down, NULL);
    the_fake->config.is_impatient = true;
    fake_run(the_fake);
}

static void come_back(struct client_alarm *alarm)
{
    (void)alarm;
    fake_listen(&the_fake->brokers[1]);
}

static void start_patience(struct fake *f)
{
    struct calls *t = f->test;

    fake_down(&f->brokers[0]);
    fake_down(&f->brokers[1]);
    t->alarm.ring = come_back;
    client_alarm_set(f->client, &t->alarm, io_mono_ns(f->io) + 10 * (int64_t)SECOND_NS);
    prepare(t, 0, CLIENT_ANY, greeted);
    client_call(f->client, &t->call[0]);
}

static void a_patient_client_waits_for_a_broker_to_come(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_patience, NULL);
}

static void no_such_broker(struct client_call *call)
{
    struct calls *t = the_fake->test;

    assert_int_equal(call->err, ERR_BROKER_NOT_AVAILABLE);
    finish(t);
}

static void start_no_such(struct fake *f)
{
    struct calls *t = f->test;

    prepare(t, 0, 77, no_such_broker);
    client_call(f->client, &t->call[0]);
}

static void a_broker_that_the_cluster_does_not_have_is_not_waited_for(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_no_such, NULL);
}

/* ---- Metadata. */

static void learned(struct client_watcher *w, enum err err)
{
    struct fake *f = the_fake;
    const struct client_topic *t = client_topic_find(f->client, STR_LIT("t"));

    (void)w;
    assert_int_equal(err, ERR_NONE);
    assert_non_null(t);
    assert_int_equal(t->partition_count, 3);
    assert_true(uuid_eq(t->id, f->topic_id));
    switch (f->step++) {
    case 0:
        assert_int_equal(client_leader(f->client, STR_LIT("t"), 1), 1);
        assert_int_equal(client_leader(f->client, STR_LIT("t"), 3), -1);
        assert_null(client_topic_find(f->client, STR_LIT("other")));
        f->logs[1].leader = 2; /* an answer from the past */
        f->logs[1].leader_epoch = 4;
        break;
    case 1:
        assert_int_equal(client_leader(f->client, STR_LIT("t"), 1), 1);
        f->logs[1].leader_epoch = 6;
        break;
    default:
        assert_int_equal(client_leader(f->client, STR_LIT("t"), 1), 2);
        finish(f->test);
        return;
    }
    client_metadata_expire(f->client);
}

static void start_metadata(struct fake *f)
{
    struct calls *t = f->test;

    f->partition_count = 3;
    t->watcher.refreshed = learned;
    client_watcher_add(f->client, &t->watcher);
    client_topic_watch(f->client, STR_LIT("t"));
}

static void leaders_are_learned_and_an_older_epoch_is_not_believed(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, start_metadata, NULL);
}

/* ---- Settings. */

static void check_addresses(struct fake *f)
{
    static const char *const bad[] = {"",           ",",      "host:", "host:0",
                                      "host:65536", "host:x", ":9092", "[::1"};
    static const char *const good[] = {"host",   "host:1",     "a:1,b:2",
                                       "a, b:3", "[::1]:9092", "[::1]"};
    struct client_config config = client_config_default();
    struct client *c;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        config.bootstrap_servers = bad[i];
        assert_int_equal(client_open(f->loop, &config, &c), ERR_INVALID_ARG);
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        config.bootstrap_servers = good[i];
        assert_int_equal(client_open(f->loop, &config, &c), ERR_NONE);
        client_close(c, (void (*)(void *))free, NULL);
    }
    config.retry_backoff_ms = 0;
    assert_int_equal(client_open(f->loop, &config, &c), ERR_LIMIT);
    finish(f->test);
}

static void addresses_are_checked(void **state)
{
    struct calls t = {0};

    (void)state;
    run(&t, check_addresses, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_begins_with_our_names_and_takes_the_highest_version),
        cmocka_unit_test(an_older_broker_is_greeted_again_in_its_version),
        cmocka_unit_test(without_a_common_version_nothing_is_sent),
        cmocka_unit_test(others_can_be_asked_for_what_we_do_not_serve),
        cmocka_unit_test(calls_to_the_controller_go_there_and_are_answered_in_order),
        cmocka_unit_test(a_wrong_correlation_id_ends_the_connection_and_the_next_one_works),
        cmocka_unit_test(a_frame_of_4_gib_ends_the_connection_and_the_next_one_works),
        cmocka_unit_test(a_call_that_is_not_answered_in_time_takes_its_connection_with_it),
        cmocka_unit_test(a_cancelled_call_is_never_told_and_its_answer_is_passed_over),
        cmocka_unit_test(another_life_is_spoken_to_over_another_connection_at_once),
        cmocka_unit_test(a_bootstrap_server_that_refuses_is_passed_over),
        cmocka_unit_test(an_impatient_client_says_at_once_that_nobody_is_there),
        cmocka_unit_test(a_patient_client_waits_for_a_broker_to_come),
        cmocka_unit_test(a_broker_that_the_cluster_does_not_have_is_not_waited_for),
        cmocka_unit_test(leaders_are_learned_and_an_older_epoch_is_not_believed),
        cmocka_unit_test(addresses_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
