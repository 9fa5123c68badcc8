/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the conformance suite needs, for the real implementation: a directory below $TMPDIR, and
 * io_run as it is. Only the suite links this file.
 */
#include "io/conformance.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

static char dir[256];

struct io *conformance_begin(void)
{
    const char *tmp = getenv("TMPDIR");
    char *made;

    snprintf(dir, sizeof(dir), "%s/io-conformance-XXXXXX", tmp ? tmp : "/tmp");
    made = mkdtemp(dir);
    assert(made);
    return io_new(NULL);
}

const char *conformance_dir(void)
{
    return dir;
}

void conformance_run(struct io *io)
{
    io_run(io);
}

/* An eventfd is readable while its count is not 0, and writable while one can be added. */
int conformance_foreign_new(struct io *io)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    (void)io;
    assert(fd >= 0);
    return fd;
}

void conformance_foreign_set(struct io *io, int fd, unsigned ready)
{
    eventfd_t count = ready == IO_READABLE ? UINT64_MAX - 1 : ready & IO_READABLE;
    eventfd_t before;
    int failed;

    (void)io;
    if (eventfd_read(fd, &before) != 0)
        assert(errno == EAGAIN);
    failed = eventfd_write(fd, count);
    assert(!failed);
}

void conformance_foreign_close(struct io *io, int fd)
{
    (void)io;
    close(fd);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void conformance_end(struct io *io)
{
    int failed;

    io_free(io);
    failed = nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    assert(!failed);
}
