/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of a directory. It is a POSIX record lock of the whole file, which is what a JVM takes,
 * in the form that belongs to the open file and not to the process: a plain one would neither keep
 * out a second broker in this process nor survive that broker's closing of the same file. Both
 * forms conflict with each other.
 *
 * Releasing removes the file. So who gets the lock must look whether the name still leads to what
 * it has locked: another may have released between our open and our lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/file_int.h"

struct io_lock {
    int fd;
    char path[];
};

static enum err lock_file(int fd, const char *path)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
        return ERR_NONE;
    if (errno == EAGAIN || errno == EACCES)
        return ERR_LOCKED;
    return file_failed("fcntl", path);
}

static bool is_named(int fd, const char *path)
{
    struct stat locked;
    struct stat named;

    return fstat(fd, &locked) == 0 && stat(path, &named) == 0 && locked.st_ino == named.st_ino &&
           locked.st_dev == named.st_dev;
}

/* ERR_AGAIN when the file was removed under us. */
static enum err open_locked(const char *path, int *out)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    enum err err;

    if (fd < 0)
        return file_failed("open", path);
    err = lock_file(fd, path);
    if (!err && !is_named(fd, path))
        err = ERR_AGAIN;
    if (err)
        close(fd);
    else
        *out = fd;
    return err;
}

enum err io_lock_take(struct io *io, const char *path, struct io_lock **out)
{
    size_t size = strlen(path) + 1;
    int fd = -1;
    enum err err;

    (void)io;
    assert_off_loop();
    *out = NULL;
    do {
        err = open_locked(path, &fd);
    } while (err == ERR_AGAIN);
    if (err)
        return err;
    *out = xmalloc(sizeof(**out) + size);
    (*out)->fd = fd;
    memcpy((*out)->path, path, size);
    return ERR_NONE;
}

void io_lock_release(struct io_lock *lock)
{
    assert_off_loop();
    if (!lock)
        return;
    /* While it is still locked: the next holder must not lose its own file. */
    unlink(lock->path);
    close(lock->fd);
    free(lock);
}
