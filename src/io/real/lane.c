/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: a mailbox and a thread that takes all of it at once. While the lane's function works the
 * next messages gather, which is group commit without a timer. The thread starts at the first
 * message and sleeps on a condition variable; only the message that finds the mailbox empty has to
 * look at the lock.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/real_int.h"

struct io_lane {
    struct io *io;
    char name[16];
    io_lane_fn fn;
    void *ctx;
    struct mailbox mailbox;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t came;
    pthread_t thread;
    bool has_thread;
    bool end;
};

struct io_lane *io_lane_new(struct io *io, const char *name, io_lane_fn fn, void *ctx)
{
    struct io_lane *lane = xcalloc(1, sizeof(*lane));

    lane->io = io;
    snprintf(lane->name, sizeof(lane->name), "%s", name);
    lane->fn = fn;
    lane->ctx = ctx;
    pthread_mutex_init(&lane->lock, NULL);
    pthread_cond_init(&lane->came, NULL);
    atomic_fetch_add(&io->lane_count, 1);
    return lane;
}

/* Waits for messages; NULL at the end. */
static struct io_msg *take_chain(struct io_lane *lane)
{
    struct io_msg *chain;

    pthread_mutex_lock(&lane->lock);
    while (!(chain = mailbox_take(&lane->mailbox)) && !lane->end)
        pthread_cond_wait(&lane->came, &lane->lock);
    pthread_mutex_unlock(&lane->lock);
    return chain;
}

static void *lane_main(void *arg)
{
    struct io_lane *lane = arg;
    struct io_msg *chain;
    struct trace trace;

    trace_init_from(&trace, lane->io);
    trace_set_current(&trace);
    while ((chain = take_chain(lane)))
        lane->fn(lane->ctx, chain);
    trace_fini(&trace);
    return NULL;
}

void io_lane_submit(struct io_lane *lane, struct io_msg *msg)
{
    if (!mailbox_put(&lane->mailbox, msg))
        return;
    pthread_mutex_lock(&lane->lock);
    /* While it ends, the lane's own function may still submit. */
    assert(!lane->end || lane->has_thread);
    if (!lane->has_thread) {
        lane->has_thread = true;
        lane->thread = thread_start(lane->name, lane_main, lane);
    }
    pthread_cond_signal(&lane->came);
    pthread_mutex_unlock(&lane->lock);
}

static void end_thread(struct io_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->end = true;
    pthread_cond_signal(&lane->came);
    pthread_mutex_unlock(&lane->lock);
    if (lane->has_thread)
        pthread_join(lane->thread, NULL);
}

void io_lane_free(struct io_lane *lane)
{
    assert(!io_loop_current());
    end_thread(lane);
    assert(mailbox_is_empty(&lane->mailbox));
    atomic_fetch_sub(&lane->io->lane_count, 1);
    pthread_cond_destroy(&lane->came);
    pthread_mutex_destroy(&lane->lock);
    free(lane);
}
