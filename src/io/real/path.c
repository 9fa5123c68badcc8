/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: what concerns paths and directories rather than open files. A name is durable only after
 * io_dir_sync of its directory; nothing here does that on its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/file_int.h"

static enum err result(int failed, const char *call, const char *path)
{
    return failed ? file_failed(call, path) : ERR_NONE;
}

enum err io_path_stat(struct io *io, const char *path, struct io_stat *out)
{
    struct stat st;

    (void)io;
    assert_off_loop();
    *out = (struct io_stat){0};
    if (stat(path, &st) < 0)
        return file_failed("stat", path);
    stat_convert(&st, out);
    return ERR_NONE;
}

enum err io_path_rename(struct io *io, const char *from, const char *to)
{
    (void)io;
    assert_off_loop();
    return result(rename(from, to), "rename", from);
}

enum err io_path_unlink(struct io *io, const char *path)
{
    (void)io;
    assert_off_loop();
    return result(unlink(path), "unlink", path);
}

enum err io_path_link(struct io *io, const char *from, const char *to)
{
    (void)io;
    assert_off_loop();
    return result(link(from, to), "link", to);
}

enum err io_dir_make(struct io *io, const char *path)
{
    (void)io;
    assert_off_loop();
    return result(mkdir(path, 0755), "mkdir", path);
}

enum err io_dir_remove(struct io *io, const char *path)
{
    (void)io;
    assert_off_loop();
    return result(rmdir(path), "rmdir", path);
}

enum err io_dir_sync(struct io *io, const char *path)
{
    enum err err = ERR_NONE;
    int fd;

    (void)io;
    assert_off_loop();
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return file_failed("open", path);
    if (fsync(fd) < 0)
        err = file_failed("fsync", path);
    close(fd);
    return err;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void append_name(struct io_names *names, const char *name)
{
    /* Room doubles at each power of two. */
    if ((names->n & (names->n - 1)) == 0)
        names->v = xreallocarray(names->v, MAX(2 * names->n, 1), sizeof(*names->v));
    names->v[names->n++] = xstrdup(name);
}

static enum err read_names(DIR *dir, const char *path, struct io_names *names)
{
    struct dirent *entry;

    for (;;) {
        errno = 0;
        entry = readdir(dir);
        if (!entry)
            return errno ? file_failed("readdir", path) : ERR_NONE;
        if (!is_dots(entry->d_name))
            append_name(names, entry->d_name);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

enum err io_dir_list(struct io *io, const char *path, struct io_names *out)
{
    enum err err;
    DIR *dir;

    (void)io;
    assert_off_loop();
    *out = (struct io_names){0};
    dir = opendir(path);
    if (!dir)
        return file_failed("opendir", path);
    err = read_names(dir, path, out);
    closedir(dir);
    if (err)
        io_names_free(out);
    else if (out->n > 0)
        qsort(out->v, out->n, sizeof(*out->v), compare_names);
    return err;
}

enum err io_fs_space(struct io *io, const char *path, struct io_space *out)
{
    struct statvfs fs;

    (void)io;
    assert_off_loop();
    *out = (struct io_space){0};
    if (statvfs(path, &fs) < 0)
        return file_failed("statvfs", path);
    out->total = (int64_t)fs.f_blocks * (int64_t)fs.f_frsize;
    out->available = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    return ERR_NONE;
}
