/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGTERM and SIGINT as operations. They are blocked and turned into reads of a signalfd at the
 * first wait and not before: a program that never waits for them still ends when it is told to.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/assert.h"
#include "io/real/real_int.h"

/* Completes the waiter with the oldest signal, if there are both. */
static void try_signal(struct io_loop *loop)
{
    struct signalfd_siginfo info;
    struct io_signal *s = loop->signal;

    if (!s || s->op._state != OP_WAITING ||
        read(loop->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    s->signo = (int)info.ssi_signo;
    op_ready(&s->op, ERR_NONE);
}

static void on_signal(struct source *source, uint32_t events)
{
    (void)events;
    try_signal(CONTAINER_OF(source, struct io_loop, signal_source));
}

static void open_signals(struct io_loop *loop)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, &loop->signal_mask_before);
    loop->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    assert(loop->signal_fd >= 0);
    loop->signal_source.on_event = on_signal;
    loop_watch(loop, loop->signal_fd, EPOLLIN, &loop->signal_source);
}

void io_signal_wait(struct io_loop *loop, struct io_signal *s)
{
    assert(loop == loop->io->loops[0] && !loop->signal);
    op_begin(&s->op, loop, OP_SIGNAL);
    if (loop->signal_fd < 0)
        open_signals(loop);
    loop->signal = s;
    try_signal(loop);
}

/* On the thread that ran the control loop. */
void signal_fini(struct io_loop *loop)
{
    if (loop->signal_fd < 0)
        return;
    close(loop->signal_fd);
    pthread_sigmask(SIG_SETMASK, &loop->signal_mask_before, NULL);
}
