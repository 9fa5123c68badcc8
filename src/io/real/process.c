/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process: its loops and their threads, from io_new to io_free.
 *
 * The control loop runs on the thread that calls io_run, every other loop on a thread of its own.
 * io_run returns when all loops have ended and no job runs any more; what they still hold
 * (connections, listeners, retired memory) is freed in io_free, when nobody else is there.
 * Loops are only ever added, so that a reader of the array needs no lock.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/real_int.h"

/* A log holds three descriptors a segment: the soft limit's 1,024 are few. Failing is no error: the
 * limit is then noticed where it is met. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

struct io *io_new(const struct io_options *options)
{
    struct io *io = xcalloc(1, sizeof(*io));

    if (options)
        io->options = *options;
    io->epoch = 1;
    pthread_mutex_init(&io->lock, NULL);
    pthread_cond_init(&io->job_came, NULL);
    list_init(&io->listeners);
    list_init(&io->jobs);
    /* A peer that goes away is an error of that connection and not of the process. */
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    return io;
}

void io_free(struct io *io)
{
    assert(!io->running || atomic_load(&io->stop));
    assert(atomic_load(&io->lane_count) == 0);
    jobs_end(io);
    for (int i = 0; i < io->loop_count; i++)
        loop_free(io->loops[i]);
    listen_drop_all(io);
    pthread_cond_destroy(&io->job_came);
    pthread_mutex_destroy(&io->lock);
    free(io);
}

void trace_init_from(struct trace *t, const struct io *io)
{
    trace_init(t, io->options.trace_level, io->options.trace_sink, io->options.trace_ctx);
}

pthread_t thread_start(const char *name, void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    int failed;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, IO_STACK_BYTES);
    /* Signals are for the thread that called io_run: a new thread inherits the mask. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    assert(!failed);
    pthread_setname_np(thread, name);
    return thread;
}

static void *loop_main(void *arg)
{
    loop_run(arg);
    return NULL;
}

static void start_thread(struct io_loop *loop)
{
    loop->thread = thread_start(loop->name, loop_main, loop);
}

struct io_loop *io_loop_new(struct io *io, const char *name, void (*start)(void *ctx), void *ctx)
{
    struct io_loop *loop = loop_new(io, name, start, ctx);

    pthread_mutex_lock(&io->lock);
    assert(io->loop_count < IO_LOOPS_MAX);
    io->loops[io->loop_count] = loop;
    atomic_fetch_add(&io->loop_count, 1);
    if (io->running)
        start_thread(loop);
    pthread_mutex_unlock(&io->lock);
    return loop;
}

static void start_threads(struct io *io)
{
    pthread_mutex_lock(&io->lock);
    assert(!io->running && io->loop_count > 0);
    io->running = true;
    for (int i = 1; i < io->loop_count; i++)
        start_thread(io->loops[i]);
    pthread_mutex_unlock(&io->lock);
}

static void join_thread(struct io *io, struct io_loop *loop)
{
    pthread_t thread;

    pthread_mutex_lock(&io->lock);
    thread = loop->thread;
    pthread_mutex_unlock(&io->lock);
    pthread_join(thread, NULL);
}

void io_run(struct io *io)
{
    start_threads(io);
    loop_run(io->loops[0]);
    /* The count may still grow while we wait: a loop that ends may have made another. */
    for (int i = 1; i < atomic_load(&io->loop_count); i++)
        join_thread(io, io->loops[i]);
    jobs_end(io);
}

void io_stop(struct io *io)
{
    atomic_store(&io->stop, true);
    for (int i = 0; i < atomic_load(&io->loop_count); i++)
        waker_wake(&io->loops[i]->waker);
}

struct io *io_loop_io(struct io_loop *loop)
{
    return loop->io;
}

const char *io_loop_name(const struct io_loop *loop)
{
    return loop->name;
}

void io_random(struct io *io, void *p, size_t n)
{
    uint8_t *at = p;

    (void)io;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);

        assert(got > 0 || errno == EINTR);
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        }
    }
}
