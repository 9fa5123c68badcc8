/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: a mailbox and a thread that takes all of it at once. While the lane's function works the
 * next messages gather, which is group commit without a timer. The thread starts at the first
 * message; only the message that finds the mailbox empty has to look whether to start or to wake.
 */
#include <errno.h>
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
    struct waker waker;
    atomic_bool has_thread;
    atomic_bool end;
    pthread_t thread;
};

struct io_lane *io_lane_new(struct io *io, const char *name, io_lane_fn fn, void *ctx)
{
    struct io_lane *lane = xcalloc(1, sizeof(*lane));

    lane->io = io;
    snprintf(lane->name, sizeof(lane->name), "%s", name);
    lane->fn = fn;
    lane->ctx = ctx;
    waker_init(&lane->waker, 0);
    atomic_fetch_add(&io->lane_count, 1);
    return lane;
}

static void sleep_until_woken(struct io_lane *lane)
{
    uint64_t woken;

    atomic_store(&lane->waker.asleep, true);
    if (mailbox_is_empty(&lane->mailbox) && !atomic_load(&lane->end))
        while (read(lane->waker.fd, &woken, sizeof(woken)) < 0)
            assert(errno == EINTR);
    atomic_store(&lane->waker.asleep, false);
}

/* Waits for messages; NULL at the end. */
static struct io_msg *take_chain(struct io_lane *lane)
{
    for (;;) {
        /* Before the mailbox: what was submitted before the end must be seen. */
        bool end = atomic_load(&lane->end);
        struct io_msg *chain = mailbox_take(&lane->mailbox);

        if (chain || end)
            return chain;
        sleep_until_woken(lane);
    }
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
    if (atomic_exchange(&lane->has_thread, true))
        waker_wake(&lane->waker);
    else
        lane->thread = thread_start(lane->name, lane_main, lane);
}

void io_lane_free(struct io_lane *lane)
{
    assert(!io_loop_current());
    atomic_store(&lane->end, true);
    waker_wake(&lane->waker);
    if (lane->has_thread)
        pthread_join(lane->thread, NULL);
    assert(mailbox_is_empty(&lane->mailbox));
    atomic_fetch_sub(&lane->io->lane_count, 1);
    waker_fini(&lane->waker);
    free(lane);
}
