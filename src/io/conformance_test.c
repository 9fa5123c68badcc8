/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of io.h that both implementations keep. The program is linked twice: with io/real
 * and with io/sim. A test makes a process, gives it loops whose start callbacks submit the first
 * operations, and runs until a callback calls io_stop; checks stand in the callbacks, where the
 * promise is kept or broken. A promise that is never kept shows as a test that does not end, so
 * the runner's timeout is the last check.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "io/conformance.h"

/* What most tests hold: one process, its control loop, and how often something happened. */
struct fixture {
    struct io *io;
    struct io_loop *loop;
    int count;
};

static int begin(void **state)
{
    static struct fixture f;

    f = (struct fixture){.io = conformance_begin()};
    *state = &f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    conformance_end(f->io);
    return 0;
}

static void run(struct fixture *f, void (*start)(void *ctx), void *ctx)
{
    f->loop = io_loop_new(f->io, "control", start, ctx);
    conformance_run(f->io);
}

/* ---- timers ------------------------------------------------------------------------------ */

struct timers_test {
    struct fixture *f;
    struct io_timer t[3];
    int64_t deadline[3];
    int fired[3];
    bool submitting;
};

static void timer_fired(struct timers_test *test, int which)
{
    assert_false(test->submitting);
    assert_false(io_op_is_pending(&test->t[which].op));
    assert_int_equal(test->t[which].op.err, ERR_NONE);
    assert_true(io_mono_ns(test->f->io) >= test->deadline[which]);
    test->fired[test->f->count++] = which;
    if (test->f->count == 3)
        io_stop(test->f->io);
}

static void timer_0_fired(struct io_op *op)
{
    timer_fired(CONTAINER_OF(op, struct timers_test, t[0].op), 0);
}

static void timer_1_fired(struct io_op *op)
{
    timer_fired(CONTAINER_OF(op, struct timers_test, t[1].op), 1);
}

static void timer_2_fired(struct io_op *op)
{
    timer_fired(CONTAINER_OF(op, struct timers_test, t[2].op), 2);
}

static void start_timers(void *ctx)
{
    struct timers_test *test = ctx;
    void (*const done[])(struct io_op *) = {timer_0_fired, timer_1_fired, timer_2_fired};
    const int64_t delay_ms[] = {3, 1, 2};

    test->submitting = true;
    for (int i = 0; i < 3; i++) {
        test->t[i].op.done = done[i];
        test->deadline[i] = io_loop_mono_ns(test->f->loop) + delay_ms[i] * 1000000;
        io_timer_set(test->f->loop, &test->t[i], test->deadline[i]);
        assert_true(io_op_is_pending(&test->t[i].op));
    }
    test->submitting = false;
}

static void timers_fire_in_order_of_deadline_and_not_early(void **state)
{
    struct timers_test test = {.f = *state};

    run(test.f, start_timers, &test);
    assert_int_equal(test.fired[0], 1);
    assert_int_equal(test.fired[1], 2);
    assert_int_equal(test.fired[2], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_fire_in_order_of_deadline_and_not_early, begin, end),
    };

    return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
