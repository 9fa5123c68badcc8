/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration of brokers, on the keeper in memory, or with an argument, "host:port", on ZooKeeper.
 * A test is a list of steps; each begins one thing, and the next one follows when it is done.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "keeper/registration.h"
#include "keeper/znodes.h"

#define SECOND_NS 1000000000
#define DATA "{\"version\":5}"

static const char *service; /* of the command line; NULL: in memory */

struct fixture;
typedef void (*step_fn)(struct fixture *f);

struct fixture {
    struct io *io;
    struct io_loop *loop;
    struct keeper_memory *memory;
    char place[96];
    struct keeper *a;
    struct keeper *b;
    const step_fn *steps;
    struct io_msg next;
    int pending;
    struct registration r[2];
    struct keeper_call call;
    struct keeper_op ops[4];
    struct keeper_op parents[2];
};

static void go_on(struct fixture *f)
{
    assert_true(f->pending > 0);
    if (--f->pending == 0)
        io_post(f->loop, &f->next);
}

static void next_step(struct io_msg *msg)
{
    struct fixture *f = CONTAINER_OF(msg, struct fixture, next);
    step_fn step = *f->steps++;

    f->pending = 1;
    if (step)
        step(f);
    else
        io_stop(f->io);
}

/* ---- Sessions. */

static struct keeper *open_session(struct fixture *f)
{
    struct keeper_zookeeper_args args = {
        .connect = f->place, .session_timeout_ms = 10000, .in_flight_max = 10};
    struct keeper *k;
    char *message;

    if (!service)
        return keeper_memory_open(f->memory, f->loop, NULL, NULL);
    assert_int_equal(keeper_zookeeper_open(f->io, &args, f->loop, NULL, NULL, &k, &message), 0);
    return k;
}

static void call_done(struct keeper_call *call)
{
    go_on(CONTAINER_OF(call, struct fixture, call));
}

static void make_parents(struct fixture *f)
{
    f->parents[0] = (struct keeper_op){.kind = KEEPER_CREATE, .path = "/brokers"};
    f->parents[1] = (struct keeper_op){.kind = KEEPER_CREATE, .path = ZNODE_BROKER_IDS};
    keeper_multi(f->a, f->parents, 2, &f->call);
}

/* So that b has an id of its session. */
static void let_b_connect(struct fixture *f)
{
    keeper_call_release(&f->call);
    keeper_exists(f->b, "/", NULL, &f->call);
}

static void closed(void *ctx)
{
    go_on(ctx);
}

static void close_a(struct fixture *f)
{
    keeper_close(f->a, closed, f);
    f->a = NULL;
}

static void close_b(struct fixture *f)
{
    keeper_close(f->b, closed, f);
    f->b = NULL;
}

static void close_both(struct fixture *f)
{
    f->pending = 0;
    f->pending += f->a != NULL;
    f->pending += f->b != NULL;
    if (f->a)
        close_a(f);
    if (f->b)
        close_b(f);
}

static void run(struct fixture *f, const step_fn *steps)
{
    f->steps = steps;
    f->next.fn = next_step;
    f->call.done = call_done;
    f->io = io_new(&(struct io_options){.trace_level = TRACE_ERROR});
    f->loop = io_loop_new(f->io, "control", NULL, NULL);
    f->a = open_session(f);
    f->b = open_session(f);
    io_post(f->loop, &f->next);
    io_run(f->io);
    keeper_call_release(&f->call);
    io_free(f->io);
}

#define RUN(f, ...)                                                                                \
    run(f, (const step_fn[]){make_parents, let_b_connect, __VA_ARGS__, close_both, NULL})

/* ---- Registrations. */

static void registration_done(struct registration *r)
{
    struct fixture *f = CONTAINER_OF(r, struct fixture, r[0]);

    go_on(f);
}

static void second_done(struct registration *r)
{
    struct fixture *f = CONTAINER_OF(r, struct fixture, r[1]);

    go_on(f);
}

static void begin_one(struct fixture *f, int i, struct keeper *k, int64_t previous, int64_t wait_ns)
{
    f->r[i] = (struct registration){.done = i ? second_done : registration_done, .err = -1};
    registration_begin(&f->r[i], &(struct registration_args){
                                     .keeper = k,
                                     .loop = f->loop,
                                     .broker_id = 7,
                                     .data = {.p = (const uint8_t *)DATA, .n = sizeof(DATA) - 1},
                                     .previous_session = previous,
                                     .wait_ns = wait_ns,
                                 });
}

static void register_a(struct fixture *f)
{
    begin_one(f, 0, f->a, 0, 0);
}

static void register_a_again(struct fixture *f)
{
    begin_one(f, 1, f->a, 0, 0);
}

static void register_b_without_patience(struct fixture *f)
{
    begin_one(f, 1, f->b, 0, 1000);
}

static void register_b_and_close_a(struct fixture *f)
{
    f->pending = 2;
    begin_one(f, 1, f->b, 0, 60 * (int64_t)SECOND_NS);
    close_a(f);
}

static void register_b_as_successor(struct fixture *f)
{
    begin_one(f, 1, f->b, keeper_session_id(f->a), 0);
}

static void look(struct fixture *f)
{
    keeper_call_release(&f->call);
    keeper_get(f->b, "/brokers/ids/7", NULL, &f->call);
}

static void registration_writes_the_node_and_tells_the_epoch(void **state)
{
    struct fixture *f = *state;

    RUN(f, register_a, look);
    assert_int_equal(f->r[0].err, ERR_NONE);
    assert_true(f->r[0].broker_epoch > 0);
    assert_int_equal(f->call.stat.created_zxid, f->r[0].broker_epoch);
    assert_int_equal(f->call.stat.version, 1);
    assert_true(f->call.stat.ephemeral_owner != 0);
}

static void an_attempt_that_has_succeeded_is_recognized(void **state)
{
    struct fixture *f = *state;

    RUN(f, register_a, register_a_again);
    assert_int_equal(f->r[1].err, ERR_NONE);
    assert_int_equal(f->r[1].broker_epoch, f->r[0].broker_epoch);
}

static void register_a_and_lose_the_answer(struct fixture *f)
{
    register_a(f);
    keeper_memory_lose_answers(f->a);
}

static void register_a_and_lose_the_request(struct fixture *f)
{
    keeper_memory_lose_request(f->a);
    register_a(f);
}

static void an_unknown_outcome_is_found_out(void **state)
{
    struct fixture *f = *state;

    RUN(f, register_a_and_lose_the_answer, look);
    assert_int_equal(f->r[0].err, ERR_NONE);
    assert_int_equal(f->call.stat.created_zxid, f->r[0].broker_epoch);
    RUN(f, register_a_and_lose_the_request, look);
    assert_int_equal(f->r[0].err, ERR_NONE);
    assert_int_equal(f->call.stat.created_zxid, f->r[0].broker_epoch);
}

static void a_broker_that_lives_is_not_robbed(void **state)
{
    struct fixture *f = *state;

    RUN(f, register_a, register_b_without_patience, look);
    assert_int_equal(f->r[1].err, ERR_EXISTS);
    assert_int_equal(f->r[1].other_session, f->call.stat.ephemeral_owner);
    assert_int_equal(f->call.stat.created_zxid, f->r[0].broker_epoch);
}

static void the_end_of_another_session_is_waited_for(void **state)
{
    struct fixture *f = *state;

    RUN(f, register_a, register_b_and_close_a, look);
    assert_int_equal(f->r[1].err, ERR_NONE);
    assert_true(f->r[1].broker_epoch > f->r[0].broker_epoch);
    assert_int_equal(f->call.stat.created_zxid, f->r[1].broker_epoch);
}

static void the_node_of_ones_own_ended_session_is_replaced(void **state)
{
    struct fixture *f = *state;

    RUN(f, register_a, register_b_as_successor, look);
    assert_int_equal(f->r[1].err, ERR_NONE);
    assert_true(f->r[1].broker_epoch > f->r[0].broker_epoch);
    assert_int_equal(f->call.stat.created_zxid, f->r[1].broker_epoch);
}

static void begin_b_and_cancel(struct fixture *f)
{
    begin_one(f, 1, f->b, 0, 60 * (int64_t)SECOND_NS);
    registration_cancel(&f->r[1]);
    registration_cancel(&f->r[1]);
}

static void begin_b(struct fixture *f)
{
    begin_one(f, 1, f->b, 0, 60 * (int64_t)SECOND_NS);
    f->pending = 2;
    look(f); /* behind its first multi, so the next step finds it further on */
}

static void go_on_without_it(struct fixture *f)
{
    keeper_call_release(&f->call);
    keeper_exists(f->b, "/", NULL, &f->call);
}

static void cancel_b(struct fixture *f)
{
    registration_cancel(&f->r[1]);
}

static void begin_b_in_the_background(struct fixture *f)
{
    begin_b(f);
    f->pending = 1;
}

static void a_cancelled_registration_tells_so_once(void **state)
{
    struct fixture *f = *state;

    RUN(f, register_a, begin_b_and_cancel);
    assert_int_equal(f->r[1].err, ERR_CANCELLED);
    RUN(f, register_a, begin_b_in_the_background, go_on_without_it, go_on_without_it, cancel_b);
    assert_int_equal(f->r[1].err, ERR_CANCELLED);
}

static void without_parents_it_fails(void **state)
{
    struct fixture *f = *state;
    static const step_fn steps[] = {let_b_connect, register_a, close_both, NULL};

    run(f, steps);
    assert_int_equal(f->r[0].err, ERR_NOT_FOUND);
}

static int begin(void **state)
{
    static int number;
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->memory = keeper_memory_new();
    snprintf(f->place, sizeof(f->place), "%s/registration-%d-%d", service ? service : "",
             (int)getpid(), number++);
    *state = f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    keeper_memory_free(f->memory);
    free(f);
    return 0;
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(registration_writes_the_node_and_tells_the_epoch),
        TEST(an_attempt_that_has_succeeded_is_recognized),
        TEST(a_broker_that_lives_is_not_robbed),
        TEST(the_end_of_another_session_is_waited_for),
        TEST(the_node_of_ones_own_ended_session_is_replaced),
        TEST(a_cancelled_registration_tells_so_once),
        TEST(without_parents_it_fails),
    };

    const struct CMUnitTest of_memory[] = {
        TEST(an_unknown_outcome_is_found_out), /* ZooKeeper's are lost in zookeeper_test.c */
    };

    service = argc > 1 ? argv[1] : NULL;
    int failed = cmocka_run_group_tests_name("registration", tests, NULL, NULL);

    if (!service)
        failed += cmocka_run_group_tests_name("lost answers", of_memory, NULL, NULL);
    return failed;
}
