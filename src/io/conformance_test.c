/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of io.h that both implementations keep. The program is linked twice: with io/real
 * and with io/sim. A test makes a process, gives it loops whose start callbacks submit the first
 * operations, and runs until a callback calls io_stop; checks stand in the callbacks, where the
 * promise is kept or broken. A promise that is never kept shows as a test that does not end, so
 * the runner's timeout is the last check.
 */
#include "io/conformance_test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

int begin(void **state)
{
    static struct fixture f;

    f = (struct fixture){.io = conformance_begin()};
    *state = &f;
    return 0;
}

int end(void **state)
{
    struct fixture *f = *state;

    conformance_end(f->io);
    return 0;
}

void run(struct fixture *f, void (*start)(void *ctx), void *ctx)
{
    f->loop = io_loop_new(f->io, "control", start, ctx);
    conformance_run(f->io);
}

/* ---- loops ------------------------------------------------------------------------------- */

struct loops_test {
    struct fixture *f;
    struct io_loop *other;
    struct io_loop *late;
    struct io_msg from_other;
    struct io_msg from_late;
    int starts;
};

static void got_from_late(struct io_msg *msg)
{
    struct loops_test *test = CONTAINER_OF(msg, struct loops_test, from_late);

    assert_ptr_equal(io_loop_current(), test->f->loop);
    io_stop(test->f->io);
}

static void start_late(void *ctx)
{
    struct loops_test *test = ctx;

    assert_string_equal(io_loop_name(io_loop_current()), "late");
    io_post(test->f->loop, &test->from_late);
}

static void got_from_other(struct io_msg *msg)
{
    struct loops_test *test = CONTAINER_OF(msg, struct loops_test, from_other);

    assert_ptr_equal(io_loop_current(), test->f->loop);
    test->late = io_loop_new(test->f->io, "late", start_late, test);
    assert_non_null(test->late);
}

static void start_other(void *ctx)
{
    struct loops_test *test = ctx;

    assert_ptr_equal(io_loop_current(), test->other);
    assert_ptr_equal(io_loop_io(test->other), test->f->io);
    io_post(test->f->loop, &test->from_other);
}

static void start_first(void *ctx)
{
    struct loops_test *test = ctx;

    assert_ptr_equal(io_loop_current(), test->f->loop);
    assert_string_equal(io_loop_name(test->f->loop), "control");
    test->starts++;
}

static void every_loop_starts_once_also_when_made_late(void **state)
{
    struct loops_test test = {
        .f = *state,
        .from_other = {.fn = got_from_other},
        .from_late = {.fn = got_from_late},
    };

    assert_null(io_loop_current());
    test.f->loop = io_loop_new(test.f->io, "control", start_first, &test);
    test.other = io_loop_new(test.f->io, "other", start_other, &test);
    conformance_run(test.f->io);
    assert_null(io_loop_current());
    assert_int_equal(test.starts, 1);
}

/* ---- time and entropy -------------------------------------------------------------------- */

static void start_clocks(void *ctx)
{
    struct fixture *f = ctx;
    int64_t mono = io_mono_ns(f->io);

    assert_true(io_loop_mono_ns(f->loop) > 0);
    assert_true(io_loop_mono_ns(f->loop) <= mono);
    assert_true(io_mono_ns(f->io) >= mono);
    assert_true(io_loop_wall_ms(f->loop) > 0);
    assert_true(io_loop_wall_ms(f->loop) <= io_wall_ms(f->io));
    assert_true(io_cpu_ns(f->io) >= 0);
    io_stop(f->io);
}

static void clocks_do_not_go_back_and_a_turn_has_one_time(void **state)
{
    run(*state, start_clocks, *state);
}

static void random_bytes_differ(void **state)
{
    struct fixture *f = *state;
    uint8_t a[16] = {0};
    uint8_t b[16] = {0};

    io_random(f->io, a, sizeof(a));
    io_random(f->io, b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
}

/* ---- timers ------------------------------------------------------------------------------ */

#define TIMERS 5

struct timers_test {
    struct fixture *f;
    struct timer_row {
        struct io_timer t;
        struct timers_test *test;
        int64_t deadline;
    } row[TIMERS];
    int fired[TIMERS]; /* rows in the order of their callbacks */
    enum err err[TIMERS];
    bool submitting;
};

static void timer_done(struct io_op *op)
{
    struct timer_row *row = CONTAINER_OF(op, struct timer_row, t.op);
    struct timers_test *test = row->test;

    assert_false(test->submitting);
    assert_false(io_op_is_pending(op));
    assert_true(test->f->count < TIMERS);
    if (!op->err)
        assert_true(io_mono_ns(test->f->io) >= row->deadline);
    test->err[test->f->count] = op->err;
    test->fired[test->f->count++] = (int)(row - test->row);
    if (test->f->count == TIMERS)
        io_stop(test->f->io);
}

static void set_timer(struct timers_test *test, int i, int64_t delay_ns)
{
    struct timer_row *row = &test->row[i];

    row->test = test;
    row->t.op.done = timer_done;
    row->deadline = io_loop_mono_ns(test->f->loop) + delay_ns;
    io_timer_set(test->f->loop, &row->t, row->deadline);
    assert_true(io_op_is_pending(&row->t.op));
}

static void start_timers(void *ctx)
{
    struct timers_test *test = ctx;
    const int64_t delay_ns[TIMERS] = {4 * MS, 2 * MS, 3 * MS, 2 * MS, -5 * MS};

    test->submitting = true;
    for (int i = 0; i < TIMERS; i++)
        set_timer(test, i, delay_ns[i]);
    test->submitting = false;
}

static void check_order(const struct timers_test *test, const int expected[TIMERS])
{
    for (int i = 0; i < TIMERS; i++)
        assert_int_equal(test->fired[i], expected[i]);
}

static void timers_fire_in_order_of_deadline_and_not_early(void **state)
{
    struct timers_test test = {.f = *state};

    run(test.f, start_timers, &test);
    check_order(&test, (const int[]){4, 1, 3, 2, 0});
}

static void start_moved_timers(void *ctx)
{
    struct timers_test *test = ctx;

    for (int i = 0; i < TIMERS; i++)
        set_timer(test, i, (i + 1) * MS);
    set_timer(test, 0, 7 * MS);
    set_timer(test, 4, 0);
}

static void a_timer_set_again_moves_and_fires_once(void **state)
{
    struct timers_test test = {.f = *state};

    run(test.f, start_moved_timers, &test);
    check_order(&test, (const int[]){4, 1, 2, 3, 0});
}

static void start_cancelled_timers(void *ctx)
{
    struct timers_test *test = ctx;

    test->submitting = true;
    for (int i = 0; i < TIMERS; i++)
        set_timer(test, i, (i + 1) * MS);
    /* Due at once, so that cancelling and expiring meet. */
    set_timer(test, 3, 0);
    io_cancel(&test->row[3].t.op);
    io_cancel(&test->row[3].t.op);
    assert_true(io_op_is_pending(&test->row[3].t.op));
    test->submitting = false;
}

static void a_cancelled_timer_completes_once_and_later(void **state)
{
    struct timers_test test = {.f = *state};
    struct io_timer idle = {.op = {.done = timer_done}};

    io_cancel(&idle.op);
    run(test.f, start_cancelled_timers, &test);
    check_order(&test, (const int[]){3, 0, 1, 2, 4});
    assert_int_equal(test.err[0], ERR_CANCELLED);
    for (int i = 1; i < TIMERS; i++)
        assert_int_equal(test.err[i], ERR_NONE);
}

struct again_test {
    struct fixture *f;
    struct io_timer *t;
};

static struct again_test again;

static void again_done(struct io_op *op)
{
    if (++again.f->count < 3) {
        io_timer_set(again.f->loop, again.t, 0);
        return;
    }
    free(CONTAINER_OF(op, struct io_timer, op));
    io_stop(again.f->io);
}

static void start_again(void *ctx)
{
    (void)ctx;
    again.t = xcalloc(1, sizeof(*again.t));
    again.t->op.done = again_done;
    io_timer_set(again.f->loop, again.t, 0);
}

static void a_callback_may_submit_again_and_free(void **state)
{
    again = (struct again_test){.f = *state};
    run(again.f, start_again, NULL);
    assert_int_equal(again.f->count, 3);
}

/* ---- messages ---------------------------------------------------------------------------- */

#define MESSAGES 1000

struct numbered {
    struct io_msg msg;
    struct messages_test *test;
    int number;
};

struct messages_test {
    struct fixture *f;
    struct io_loop *other;
    struct numbered v[MESSAGES];
    int next; /* number expected */
    bool posting;
};

/* Every message goes to the other loop and comes back. */
static void came_back(struct io_msg *msg)
{
    struct numbered *m = CONTAINER_OF(msg, struct numbered, msg);

    assert_ptr_equal(io_loop_current(), m->test->f->loop);
    assert_false(m->test->posting);
    assert_int_equal(m->number, m->test->next);
    if (++m->test->next == MESSAGES)
        io_stop(m->test->f->io);
}

static void arrived(struct io_msg *msg)
{
    struct numbered *m = CONTAINER_OF(msg, struct numbered, msg);

    assert_ptr_equal(io_loop_current(), m->test->other);
    msg->fn = came_back;
    io_post(m->test->f->loop, msg);
}

static void post_all(struct messages_test *test, struct io_loop *to, void (*fn)(struct io_msg *))
{
    test->posting = true;
    for (int i = 0; i < MESSAGES; i++) {
        test->v[i] = (struct numbered){.msg.fn = fn, .test = test, .number = i};
        io_post(to, &test->v[i].msg);
    }
    test->posting = false;
}

static void start_messages(void *ctx)
{
    struct messages_test *test = ctx;

    post_all(test, test->other, arrived);
}

static void start_messages_to_itself(void *ctx)
{
    struct messages_test *test = ctx;

    post_all(test, test->f->loop, came_back);
}

static void messages_of_a_sender_arrive_in_order(void **state)
{
    struct messages_test *test = xcalloc(1, sizeof(*test));

    test->f = *state;
    test->f->loop = io_loop_new(test->f->io, "control", start_messages, test);
    test->other = io_loop_new(test->f->io, "other", NULL, NULL);
    conformance_run(test->f->io);
    assert_int_equal(test->next, MESSAGES);
    free(test);
}

static void a_message_to_oneself_runs_later(void **state)
{
    struct messages_test *test = xcalloc(1, sizeof(*test));

    test->f = *state;
    run(test->f, start_messages_to_itself, test);
    assert_int_equal(test->next, MESSAGES);
    free(test);
}

/* ---- lanes ------------------------------------------------------------------------------- */

struct lane_test {
    struct fixture *f;
    struct io_lane *lane;
    struct numbered v[MESSAGES];
    struct messages_test *answers;
    int next;
    int calls;
    int submit_in_call; /* messages that the first call submits */
    int largest;
};

static void lane_counts(void *ctx, struct io_msg *chain)
{
    struct lane_test *test = ctx;
    struct io_msg *msg;
    int n = 0;

    assert_null(io_loop_current());
    assert_non_null(chain);
    test->calls++;
    while ((msg = io_msg_take(&chain))) {
        struct numbered *m = CONTAINER_OF(msg, struct numbered, msg);

        assert_int_equal(m->number, test->next++);
        n++;
        if (m->test)
            io_post(m->test->f->loop, msg);
    }
    test->largest = MAX(test->largest, n);
    if (test->calls > 1)
        return;
    for (int i = 0; i < test->submit_in_call; i++)
        io_lane_submit(test->lane, &test->v[1 + i].msg);
}

static struct lane_test *lane_test_new(struct fixture *f)
{
    struct lane_test *test = xcalloc(1, sizeof(*test));

    test->f = f;
    test->lane = io_lane_new(f->io, "lane", lane_counts, test);
    for (int i = 0; i < MESSAGES; i++)
        test->v[i].number = i;
    return test;
}

static void what_comes_during_a_call_is_gathered_for_the_next(void **state)
{
    struct lane_test *test = lane_test_new(*state);

    test->submit_in_call = MESSAGES - 1;
    io_lane_submit(test->lane, &test->v[0].msg);
    io_lane_free(test->lane);
    assert_int_equal(test->next, MESSAGES);
    assert_int_equal(test->calls, 2);
    assert_int_equal(test->largest, MESSAGES - 1);
    free(test);
}

static void freeing_a_lane_finishes_what_was_submitted(void **state)
{
    struct lane_test *test = lane_test_new(*state);

    for (int i = 0; i < MESSAGES; i++)
        io_lane_submit(test->lane, &test->v[i].msg);
    io_lane_free(test->lane);
    assert_int_equal(test->next, MESSAGES);
    free(test);
}

static void a_lane_that_was_never_used_can_be_freed(void **state)
{
    struct lane_test *test = lane_test_new(*state);

    io_lane_free(test->lane);
    assert_int_equal(test->calls, 0);
    free(test);
}

static void start_lane(void *ctx)
{
    struct lane_test *test = ctx;

    for (int i = 0; i < MESSAGES; i++) {
        test->v[i].test = test->answers;
        test->v[i].msg.fn = came_back;
        io_lane_submit(test->lane, &test->v[i].msg);
    }
}

static void a_lane_keeps_order_and_answers_to_a_loop(void **state)
{
    struct lane_test *test = lane_test_new(*state);

    test->answers = xcalloc(1, sizeof(*test->answers));
    test->answers->f = test->f;
    run(test->f, start_lane, test);
    io_lane_free(test->lane);
    assert_int_equal(test->answers->next, MESSAGES);
    free(test->answers);
    free(test);
}

/* ---- jobs -------------------------------------------------------------------------------- */

#define JOBS 10

struct jobs_test {
    struct fixture *f;
    struct job_row {
        struct io_job job;
        struct jobs_test *test;
        int ran;
    } row[JOBS];
    struct io_timer timer;
    bool submitting;
};

static void job_run(struct io_job *job)
{
    struct job_row *row = CONTAINER_OF(job, struct job_row, job);

    assert_null(io_loop_current());
    row->ran++;
}

static void job_done(struct io_job *job)
{
    struct job_row *row = CONTAINER_OF(job, struct job_row, job);

    assert_ptr_equal(io_loop_current(), row->test->f->loop);
    assert_false(row->test->submitting);
    assert_int_equal(row->ran, 1);
    if (++row->test->f->count == JOBS)
        io_stop(row->test->f->io);
}

static void start_jobs(void *ctx)
{
    struct jobs_test *test = ctx;

    test->submitting = true;
    for (int i = 0; i < JOBS; i++) {
        test->row[i].test = test;
        test->row[i].job.run = job_run;
        test->row[i].job.done = job_done;
        io_job_submit(test->f->loop, &test->row[i].job);
    }
    test->submitting = false;
}

static void jobs_run_off_loop_and_complete_on_the_loop(void **state)
{
    struct jobs_test test = {.f = *state};

    run(test.f, start_jobs, &test);
    assert_int_equal(test.f->count, JOBS);
}

/* Looks at its flag between blocking calls, as a scan does. */
static void run_until_cancelled(struct io_job *job)
{
    struct job_row *row = CONTAINER_OF(job, struct job_row, job);
    struct io_stat st;

    while (!atomic_load(&job->cancel)) {
        assert_int_equal(io_path_stat(row->test->f->io, conformance_dir(), &st), ERR_NONE);
        atomic_fetch_add(&job->progress, 1);
    }
}

static void cancelled_job_done(struct io_job *job)
{
    struct job_row *row = CONTAINER_OF(job, struct job_row, job);

    assert_true(job->progress > 0);
    io_stop(row->test->f->io);
}

/* Cancels when the job has got somewhere. */
static void look_at_progress(struct io_op *op)
{
    struct jobs_test *test = CONTAINER_OF(op, struct jobs_test, timer.op);

    if (atomic_load(&test->row[0].job.progress) > 0)
        atomic_store(&test->row[0].job.cancel, true);
    else
        io_timer_set(test->f->loop, &test->timer, io_loop_mono_ns(test->f->loop) + MS);
}

static void start_long_job(void *ctx)
{
    struct jobs_test *test = ctx;

    test->row[0].test = test;
    test->row[0].job.run = run_until_cancelled;
    test->row[0].job.done = cancelled_job_done;
    test->timer.op.done = look_at_progress;
    io_job_submit(test->f->loop, &test->row[0].job);
    io_timer_set(test->f->loop, &test->timer, 0);
}

static void a_job_shows_progress_and_sees_that_it_is_cancelled(void **state)
{
    struct jobs_test test = {.f = *state};

    run(test.f, start_long_job, &test);
}

static void free_lane_in_job(struct io_job *job)
{
    struct jobs_test *test = CONTAINER_OF(job, struct job_row, job)->test;
    struct lane_test *lane = lane_test_new(test->f);

    io_lane_submit(lane->lane, &lane->v[0].msg);
    io_lane_free(lane->lane);
    assert_int_equal(lane->next, 1);
    free(lane);
}

static void stop_after_job(struct io_job *job)
{
    io_stop(CONTAINER_OF(job, struct job_row, job)->test->f->io);
}

static void start_lane_job(void *ctx)
{
    struct jobs_test *test = ctx;

    test->row[0].test = test;
    test->row[0].job.run = free_lane_in_job;
    test->row[0].job.done = stop_after_job;
    io_job_submit(test->f->loop, &test->row[0].job);
}

static void a_job_may_free_a_lane(void **state)
{
    struct jobs_test test = {.f = *state};

    run(test.f, start_lane_job, &test);
}

/* ---- shared memory ----------------------------------------------------------------------- */

#define THINGS 200
#define THING_ALIVE 0x5eed

struct thing {
    struct io_retired retired;
    struct retire_test *test;
    int alive;
};

/* One loop replaces and retires what another reads; each step of either is a message. */
struct retire_test {
    struct fixture *f;
    struct io_loop *reader;
    _Atomic(struct thing *) published;
    struct io_msg write;
    struct io_msg read;
    struct io_timer timer;
    atomic_bool ended;
    int made;
    int freed;
    bool retiring;
};

static void free_thing(struct io_retired *r)
{
    struct thing *thing = CONTAINER_OF(r, struct thing, retired);
    struct retire_test *test = thing->test;

    assert_ptr_equal(io_loop_current(), test->f->loop);
    assert_false(test->retiring);
    test->freed++;
    thing->alive = 0;
    free(thing);
}

static void replace_thing(struct io_msg *msg)
{
    struct retire_test *test = CONTAINER_OF(msg, struct retire_test, write);
    struct thing *thing = xcalloc(1, sizeof(*thing));
    struct thing *before;

    thing->retired.free_fn = free_thing;
    thing->test = test;
    thing->alive = THING_ALIVE;
    before = atomic_exchange(&test->published, thing);
    test->retiring = true;
    if (before)
        io_retire(test->f->loop, &before->retired);
    test->retiring = false;
    if (++test->made < THINGS)
        io_post(test->f->loop, &test->write);
}

static void read_thing(struct io_msg *msg)
{
    struct retire_test *test = CONTAINER_OF(msg, struct retire_test, read);
    struct thing *thing = atomic_load_explicit(&test->published, memory_order_acquire);

    for (int i = 0; thing && i < 100; i++)
        assert_int_equal(thing->alive, THING_ALIVE);
    if (!atomic_load(&test->ended))
        io_post(test->reader, &test->read);
}

static void look_for_freed(struct io_op *op)
{
    struct retire_test *test = CONTAINER_OF(op, struct retire_test, timer.op);

    if (test->made == THINGS && test->freed == THINGS - 1) {
        atomic_store(&test->ended, true);
        io_stop(test->f->io);
    } else {
        io_timer_set(test->f->loop, &test->timer, io_loop_mono_ns(test->f->loop) + MS);
    }
}

static void start_retire(void *ctx)
{
    struct retire_test *test = ctx;

    test->timer.op.done = look_for_freed;
    io_post(test->f->loop, &test->write);
    io_post(test->reader, &test->read);
    io_timer_set(test->f->loop, &test->timer, 0);
}

static void what_is_retired_outlives_its_readers_and_is_freed(void **state)
{
    struct retire_test test = {
        .f = *state, .write = {.fn = replace_thing}, .read = {.fn = read_thing}};

    test.f->loop = io_loop_new(test.f->io, "control", start_retire, &test);
    test.reader = io_loop_new(test.f->io, "reader", NULL, NULL);
    conformance_run(test.f->io);
    assert_int_equal(test.freed, THINGS - 1);
    free(test.published);
}

/* ---- descriptors of others --------------------------------------------------------------- */

struct watch_test {
    struct fixture *f;
    struct io_watch watch;
    struct io_timer timer;
    int fd;
    int step;
    bool calling; /* inside io_watch or io_cancel */
};

static void watch_for(struct watch_test *test, unsigned events)
{
    test->calling = true;
    io_watch(test->f->loop, test->fd, events, &test->watch);
    test->calling = false;
    assert_true(io_op_is_pending(&test->watch.op));
}

static void wait_a_little(struct watch_test *test)
{
    io_timer_set(test->f->loop, &test->timer, io_loop_mono_ns(test->f->loop) + 5 * MS);
}

/* What has completed, by the step of the story. */
static void watched(struct io_op *op)
{
    struct watch_test *test = CONTAINER_OF(op, struct watch_test, watch.op);

    assert_ptr_equal(io_loop_current(), test->f->loop);
    assert_false(test->calling);
    assert_false(io_op_is_pending(op));
    switch (test->step++) {
    case 0: /* It was writable already. */
        assert_int_equal(op->err, ERR_NONE);
        assert_int_equal(test->watch.ready, IO_WRITABLE);
        watch_for(test, IO_READABLE);
        wait_a_little(test);
        return;
    case 2: /* It has become readable. */
        assert_int_equal(op->err, ERR_NONE);
        assert_int_equal(test->watch.ready, IO_READABLE);
        watch_for(test, IO_READABLE | IO_WRITABLE);
        return;
    case 3: /* It is so still. */
        assert_int_equal(test->watch.ready, IO_READABLE);
        conformance_foreign_set(test->f->io, test->fd, IO_WRITABLE);
        watch_for(test, IO_READABLE);
        test->calling = true;
        io_cancel(&test->watch.op);
        test->calling = false;
        return;
    case 4: /* Nobody looks when it becomes readable now. */
        assert_int_equal(op->err, ERR_CANCELLED);
        conformance_foreign_set(test->f->io, test->fd, IO_READABLE);
        wait_a_little(test);
        return;
    default: fail();
    }
}

static void a_little_later(struct io_op *op)
{
    struct watch_test *test = CONTAINER_OF(op, struct watch_test, timer.op);

    if (test->step == 1) {
        assert_true(io_op_is_pending(&test->watch.op));
        test->step++;
        conformance_foreign_set(test->f->io, test->fd, IO_READABLE);
        return;
    }
    assert_int_equal(test->step, 5);
    conformance_foreign_close(test->f->io, test->fd);
    io_stop(test->f->io);
}

static void start_watch(void *ctx)
{
    struct watch_test *test = ctx;

    test->watch.op.done = watched;
    test->timer.op.done = a_little_later;
    watch_for(test, IO_WRITABLE);
}

static void a_watch_completes_once_when_its_descriptor_is_ready(void **state)
{
    struct watch_test test = {.f = *state};

    test.fd = conformance_foreign_new(test.f->io);
    run(test.f, start_watch, &test);
}

static void stop_while_watching(void *ctx)
{
    struct watch_test *test = ctx;

    test->watch.op.done = watched;
    watch_for(test, IO_READABLE);
    io_stop(test->f->io);
}

static void a_watch_that_never_completed_goes_with_its_loop(void **state)
{
    struct watch_test test = {.f = *state};

    test.fd = conformance_foreign_new(test.f->io);
    run(test.f, stop_while_watching, &test);
    assert_int_equal(test.step, 0);
}

/* ---- buffers ----------------------------------------------------------------------------- */

static void a_buffer_is_charged_while_it_lives(void **state)
{
    struct io_budget budget = {.limit = 100};
    struct io_buf *b = io_buf_new(&budget, 100);

    (void)state;
    assert_int_equal(b->size, 100);
    assert_int_equal((uintptr_t)b->data % 16, 0);
    assert_int_equal(budget.used, 100);
    assert_false(io_budget_is_over(&budget));
    assert_ptr_equal(io_buf_ref(b), b);
    io_buf_unref(b);
    assert_int_equal(budget.used, 100);
    b->data[99] = 1;
    io_buf_unref(b);
    assert_int_equal(budget.used, 0);
    io_buf_unref(NULL);
    b = io_buf_new(&budget, 101);
    assert_true(io_budget_is_over(&budget));
    io_buf_unref(b);
    io_buf_unref(io_buf_new(NULL, 0));
}

static void a_large_buffer_is_used_again(void **state)
{
    struct io_budget budget = {.limit = 1};
    struct io_buf *first = io_buf_new(&budget, 1000000);
    struct io_buf *b;

    (void)state;
    io_buf_unref(first);
    assert_int_equal(budget.used, 0);
    b = io_buf_new(&budget, 1048576);
    assert_ptr_equal(b, first);
    assert_int_equal(b->size, 1048576);
    memset(b->data, 1, b->size);
    io_buf_unref(b);
    /* Not for what is much smaller. */
    b = io_buf_new(&budget, 100000);
    assert_ptr_not_equal(b, first);
    io_buf_unref(b);
    io_budget_trim(&budget);
    for (int i = 0; i < IO_SPARE_BUFS; i++)
        assert_null(budget._spare[i]);
}

static void no_more_large_buffers_wait_than_there_are_slots(void **state)
{
    struct io_budget budget = {.limit = 1};
    struct io_buf *v[IO_SPARE_BUFS + 1];

    (void)state;
    for (int i = 0; i <= IO_SPARE_BUFS; i++)
        v[i] = io_buf_new(&budget, 65536 + (size_t)i);
    for (int i = 0; i <= IO_SPARE_BUFS; i++)
        io_buf_unref(v[i]);
    for (int i = 0; i < IO_SPARE_BUFS; i++)
        assert_non_null(budget._spare[i]);
    assert_int_equal(budget.used, 0);
    io_budget_trim(&budget);
}

/* ---- what must abort --------------------------------------------------------------------- */

/* True when fn ends the process by abort(). */
static bool dies(void (*fn)(struct fixture *f), struct fixture *f)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        fn(f);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void start_blocking_call(void *ctx)
{
    struct fixture *f = ctx;
    struct io_stat st;

    if (io_path_stat(f->io, conformance_dir(), &st) == ERR_NONE)
        io_stop(f->io);
}

static void block_on_a_loop(struct fixture *f)
{
    run(f, start_blocking_call, f);
}

static void a_blocking_call_on_a_loop_aborts(void **state)
{
    assert_true(dies(block_on_a_loop, *state));
}

static void submit_off_loop(struct fixture *f)
{
    struct io_timer t = {.op = {.done = timer_done}};

    f->loop = io_loop_new(f->io, "control", NULL, NULL);
    io_timer_set(f->loop, &t, 0);
}

static void an_operation_submitted_off_loop_aborts(void **state)
{
    assert_true(dies(submit_off_loop, *state));
}

static int conformance_core(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_loop_starts_once_also_when_made_late),
        TEST(clocks_do_not_go_back_and_a_turn_has_one_time),
        TEST(random_bytes_differ),
        TEST(timers_fire_in_order_of_deadline_and_not_early),
        TEST(a_timer_set_again_moves_and_fires_once),
        TEST(a_cancelled_timer_completes_once_and_later),
        TEST(a_callback_may_submit_again_and_free),
        TEST(messages_of_a_sender_arrive_in_order),
        TEST(a_message_to_oneself_runs_later),
        TEST(what_comes_during_a_call_is_gathered_for_the_next),
        TEST(freeing_a_lane_finishes_what_was_submitted),
        TEST(a_lane_that_was_never_used_can_be_freed),
        TEST(a_lane_keeps_order_and_answers_to_a_loop),
        TEST(jobs_run_off_loop_and_complete_on_the_loop),
        TEST(a_job_shows_progress_and_sees_that_it_is_cancelled),
        TEST(a_job_may_free_a_lane),
        TEST(what_is_retired_outlives_its_readers_and_is_freed),
        TEST(a_watch_completes_once_when_its_descriptor_is_ready),
        TEST(a_watch_that_never_completed_goes_with_its_loop),
        TEST(a_buffer_is_charged_while_it_lives),
        TEST(a_large_buffer_is_used_again),
        TEST(no_more_large_buffers_wait_than_there_are_slots),
        TEST(a_blocking_call_on_a_loop_aborts),
        TEST(an_operation_submitted_off_loop_aborts),
    };

    return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}

int main(void)
{
    return conformance_core() + conformance_net() + conformance_files();
}
