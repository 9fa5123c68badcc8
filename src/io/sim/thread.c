/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes, workers and main functions: real threads, of which one at most runs, and only while the
 * world's thread waits for it.
 *
 * There is one baton. The world gives it to a thread by posting the thread's semaphore and waits
 * for its own; the thread gives it back when it pauses in a blocking call, sleeps, or ends. So the
 * code between two blocking calls is one event, and everything in the world may be touched without
 * locks by whoever has the baton. A thread of a dead process is never given the baton again: it
 * waits on its semaphore until the process (a forked child) is gone.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim_int.h"

#define STACK_BYTES (1024 * 1024)

static _Thread_local struct sim_thread *self;

bool sim__on_thread(void)
{
    return self != NULL;
}

struct sim_thread *sim__thread_self(void)
{
    return self;
}

static void sem_wait_always(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        assert(errno == EINTR);
}

static void give_back(struct sim_thread *t)
{
    sem_post(&t->io->host->world->baton);
}

static void *thread_main(void *arg)
{
    struct sim_thread *t = arg;

    sem_wait_always(&t->go);
    self = t;
    trace_set_current(&t->io->trace);
    t->fn(t->arg);
    t->is_over = true;
    give_back(t);
    return NULL;
}

static void thread_end(struct sim_thread *t)
{
    pthread_join(t->id, NULL);
    if (t->has_ended)
        *t->has_ended = true;
    if (t->waiter)
        sim__task_ready(t->io->host->world, &t->waiter->task);
    sem_destroy(&t->go);
    free(t->name);
    free(t);
}

static void thread_resume(struct sim_task *task)
{
    struct sim_thread *t = CONTAINER_OF(task, struct sim_thread, task);
    struct sim_world *w = t->io->host->world;

    sim__event(w, SIM_EV_THREAD, t->io->host, t->name, 0);
    sem_post(&t->go);
    sem_wait_always(&w->baton);
    if (t->is_over)
        thread_end(t);
}

struct sim_thread *sim__thread_new(struct io *io, const char *name, void (*fn)(void *), void *arg)
{
    struct sim_thread *t = xcalloc(1, sizeof(*t));
    pthread_attr_t attr;

    t->task = (struct sim_task){.run = thread_resume, .io = io};
    t->io = io;
    t->name = xstrdup(name);
    t->fn = fn;
    t->arg = arg;
    if (sem_init(&t->go, 0, 0) != 0 || pthread_attr_init(&attr) != 0 ||
        pthread_attr_setstacksize(&attr, STACK_BYTES) != 0 ||
        pthread_create(&t->id, &attr, thread_main, t) != 0)
        UNREACHABLE();
    pthread_attr_destroy(&attr);
    sim__task_ready(io->host->world, &t->task);
    return t;
}

void sim__thread_sleep(void)
{
    assert(self);
    give_back(self);
    sem_wait_always(&self->go);
}

void sim__thread_pause(int64_t ns)
{
    struct sim_world *w = self->io->host->world;

    if (ns > 0)
        sim__task_at(w, &self->task, w->now_ns + ns);
    else
        sim__task_ready(w, &self->task);
    sim__thread_sleep();
}

void sim__wait_for(struct io *io, struct sim_thread *t, const bool *flag)
{
    assert(!io_loop_current());
    if (self && !*flag) {
        t->waiter = self;
        sim__thread_sleep();
    }
    while (!*flag)
        if (!sim_step(io->host->world))
            UNREACHABLE();
}

/* ---- lanes ------------------------------------------------------------------------------ */

struct io_lane {
    struct io *io;
    io_lane_fn fn;
    void *ctx;
    struct io_msg *head;
    struct io_msg **tail;
    struct sim_thread *thread;
    bool is_idle;
    bool is_closing;
    bool has_ended;
};

static void lane_main(void *arg)
{
    struct io_lane *lane = arg;

    for (;;) {
        struct io_msg *chain = lane->head;

        if (chain) {
            lane->head = NULL;
            lane->tail = &lane->head;
            lane->fn(lane->ctx, chain);
        } else if (lane->is_closing) {
            return;
        } else {
            lane->is_idle = true;
            sim__thread_sleep();
        }
    }
}

static void lane_wake(struct io_lane *lane)
{
    if (!lane->is_idle)
        return;
    lane->is_idle = false;
    sim__task_ready(lane->io->host->world, &lane->thread->task);
}

struct io_lane *io_lane_new(struct io *io, const char *name, io_lane_fn fn, void *ctx)
{
    struct io_lane *lane = xcalloc(1, sizeof(*lane));

    lane->io = io;
    lane->fn = fn;
    lane->ctx = ctx;
    lane->tail = &lane->head;
    lane->thread = sim__thread_new(io, name, lane_main, lane);
    lane->thread->has_ended = &lane->has_ended;
    io->lane_count++;
    return lane;
}

void io_lane_submit(struct io_lane *lane, struct io_msg *msg)
{
    if (!sim__call(lane->io))
        return;
    msg->_next = NULL;
    *lane->tail = msg;
    lane->tail = &msg->_next;
    lane_wake(lane);
}

void io_lane_free(struct io_lane *lane)
{
    assert(!io_loop_current());
    if (!sim__call(lane->io))
        return;
    lane->is_closing = true;
    lane_wake(lane);
    sim__wait_for(lane->io, lane->thread, &lane->has_ended);
    lane->io->lane_count--;
    free(lane);
}

/* ---- jobs ------------------------------------------------------------------------------- */

struct worker {
    struct io *io;
    struct list node;
    struct sim_thread *thread;
    bool is_idle;
    bool has_ended;
};

static void job_done(struct io_msg *msg)
{
    struct io_job *job = CONTAINER_OF(msg, struct io_job, _msg);

    job->done(job);
}

static void worker_main(void *arg)
{
    struct worker *worker = arg;
    struct io *io = worker->io;

    for (;;) {
        struct io_job *job = LIST_FIRST(&io->jobs, struct io_job, _node);

        if (job) {
            list_remove(&job->_node);
            job->run(job);
            io_post(job->_loop, &job->_msg);
        } else if (io->is_quitting) {
            return;
        } else {
            worker->is_idle = true;
            sim__thread_sleep();
        }
    }
}

static void worker_new(struct io *io)
{
    struct worker *worker = xcalloc(1, sizeof(*worker));

    worker->io = io;
    worker->thread = sim__thread_new(io, "worker", worker_main, worker);
    worker->thread->has_ended = &worker->has_ended;
    list_push_back(&io->workers, &worker->node);
    io->worker_count++;
}

static bool worker_wake(struct worker *worker)
{
    if (!worker->is_idle)
        return false;
    worker->is_idle = false;
    sim__task_ready(worker->io->host->world, &worker->thread->task);
    return true;
}

void io_job_submit(struct io_loop *loop, struct io_job *job)
{
    struct io *io = loop->io;

    if (!sim__call(io))
        return;
    job->_msg.fn = job_done;
    job->_loop = loop;
    list_push_back(&io->jobs, &job->_node);
    LIST_EACH (node, &io->workers)
        if (worker_wake(LIST_ENTRY(node, struct worker, node)))
            return;
    if (io->worker_count < IO_WORKERS_MAX)
        worker_new(io);
}

void sim__workers_end(struct io *io)
{
    io->is_quitting = true;
    list_init(&io->jobs);
    LIST_EACH_SAFE (node, &io->workers) {
        struct worker *worker = LIST_ENTRY(node, struct worker, node);

        worker_wake(worker);
        sim__wait_for(io, worker->thread, &worker->has_ended);
        list_remove(&worker->node);
        free(worker);
    }
}
