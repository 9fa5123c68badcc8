/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one thread wakes another: an eventfd, written only when the other said that it sleeps. The
 * sleeper says so and then looks once more for work; who brings work does it the other way round
 * (mailbox.c tells why neither can miss the other). So a busy receiver costs its senders no system
 * call, and a sleeping one costs exactly one.
 */
#include <errno.h>
#include <sys/eventfd.h>

#include "base/assert.h"
#include "io/real/real_int.h"

void waker_init(struct waker *w, int flags)
{
    w->asleep = false;
    w->fd = eventfd(0, EFD_CLOEXEC | flags);
    assert(w->fd >= 0);
}

void waker_fini(struct waker *w)
{
    close(w->fd);
}

void waker_wake(struct waker *w)
{
    uint64_t one = 1;

    if (!atomic_load(&w->asleep) || !atomic_exchange(&w->asleep, false))
        return;
    while (write(w->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
}
