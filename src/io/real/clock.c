/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks. The kernel answers all but the last from memory that it shares with us, so that asking
 * costs some 20 ns; a loop still asks only once a turn, because its callbacks should agree on what
 * time it is.
 */
#include "base/assert.h"
#include "io/real/real_int.h"

static struct timespec now(clockid_t clock)
{
    struct timespec ts;
    int failed = clock_gettime(clock, &ts);

    assert(!failed);
    return ts;
}

static int64_t nanoseconds(struct timespec ts)
{
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t clock_mono_ns(void)
{
    return nanoseconds(now(CLOCK_MONOTONIC));
}

int64_t clock_wall_ms(void)
{
    return nanoseconds(now(CLOCK_REALTIME)) / 1000000;
}

int64_t io_mono_ns(struct io *io)
{
    (void)io;
    return clock_mono_ns();
}

int64_t io_wall_ms(struct io *io)
{
    (void)io;
    return clock_wall_ms();
}

int64_t io_cpu_ns(struct io *io)
{
    (void)io;
    return nanoseconds(now(CLOCK_PROCESS_CPUTIME_ID));
}

int64_t io_loop_mono_ns(struct io_loop *loop)
{
    return loop->mono_ns;
}

int64_t io_loop_wall_ms(struct io_loop *loop)
{
    return loop->wall_ms;
}
