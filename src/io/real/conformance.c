/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the conformance suite needs, for the real implementation: a directory below $TMPDIR, and
 * io_run as it is. Only the suite links this file.
 */
#include "io/conformance.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>

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
