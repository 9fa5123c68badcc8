/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input. It is nobody's file: a terminal, a pipe or a file that the shell has opened, and
 * shared with other processes, so it is not made non-blocking. A reader waits in poll for a bounded
 * time instead, because a read that has begun on a terminal can not be taken back.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "io/real/real_int.h"

enum err io_stdin_read(struct io *io, void *p, size_t n, int wait_ms, size_t *got)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t r;

    (void)io;
    *got = 0;
    r = poll(&fd, 1, wait_ms);
    if (r == 0 || (r < 0 && errno == EINTR))
        return ERR_AGAIN;
    r = read(STDIN_FILENO, p, n);
    if (r < 0)
        return errno == EINTR || errno == EAGAIN ? ERR_AGAIN : ERR_IO;
    *got = (size_t)r;
    return r == 0 ? ERR_EOF : ERR_NONE;
}
