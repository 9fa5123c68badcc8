/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be said about files in terms of the other calls of io.h, once for both implementations:
 * reading a small file whole, and replacing one atomically. The replacement is the only way in
 * which checkpoints and other small files are written: a crash at any point leaves the old content
 * or the new, and perhaps a "<path>.tmp" that the next replacement truncates.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/io.h"

void io_names_free(struct io_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->v[i]);
    free(names->v);
    *names = (struct io_names){0};
}

static enum err read_whole(struct io_file *f, size_t max, char **out, size_t *n)
{
    struct io_stat st;
    enum err err = io_file_stat(f, &st);
    char *text;

    if (err)
        return err;
    if (st.size > (int64_t)max)
        return ERR_LIMIT;
    text = xmalloc((size_t)st.size + 1);
    err = io_file_read(f, text, (size_t)st.size, 0, n);
    if (err) {
        free(text);
        return err;
    }
    text[*n] = '\0';
    *out = text;
    return ERR_NONE;
}

enum err io_file_read_all(struct io *io, const char *path, size_t max, char **out, size_t *n)
{
    struct io_file *f;
    enum err err;

    *out = NULL;
    *n = 0;
    err = io_file_open(io, path, IO_OPEN_READ, &f);
    if (err)
        return err;
    err = read_whole(f, max, out, n);
    io_file_unref(f);
    return err;
}

static enum err write_synced(struct io *io, const char *path, struct bytes content)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)content.p, .iov_len = (size_t)content.n};
    struct io_file *f;
    enum err err = io_file_open(io, path, IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNC, &f);

    if (err)
        return err;
    err = io_file_write(f, &iov, 1, 0);
    if (!err)
        err = io_file_sync(f);
    io_file_unref(f);
    return err;
}

/* The directory part of a path, "." when it has none; owned by the caller. */
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return xstrdup(".");
    return xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

enum err io_file_replace(struct io *io, const char *path, struct bytes content)
{
    char *tmp = xasprintf("%s.tmp", path);
    char *parent = parent_of(path);
    enum err err;

    assert(content.n >= 0);
    err = write_synced(io, tmp, content);
    if (!err)
        err = io_path_rename(io, tmp, path);
    if (!err)
        err = io_dir_sync(io, parent);
    free(parent);
    free(tmp);
    return err;
}
