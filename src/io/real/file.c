/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files. Every call goes on after a signal and after a partial result, so that callers see
 * all or an error. An error that nobody expects is traced here, where the path and the kernel's
 * number are known; the caller gets one of a few codes to react to.
 *
 * A failed sync is reported and never tried again: the kernel may have dropped the dirty pages,
 * and a second call would then say that all is well.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/file_int.h"
#include "io/real/real_int.h"

struct io_file {
    _Atomic int32_t refs;
    int fd;
    char path[]; /* for messages */
};

void assert_off_loop(void)
{
    assert(!io_loop_current());
}

enum err file_failed(const char *call, const char *path)
{
    int number = errno;
    enum err err = err_of_errno(number);

    if (err == ERR_IO || err == ERR_NO_SPACE || err == ERR_LIMIT)
        trace_error("io.failed", "call=%s path=%s error=\"%s\"", call, path,
                    strerrordesc_np(number));
    return err;
}

void stat_convert(const struct stat *st, struct io_stat *out)
{
    out->size = st->st_size;
    out->mtime_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
    out->is_dir = S_ISDIR(st->st_mode);
}

static int open_flags(unsigned flags)
{
    int os = O_CLOEXEC | (flags & IO_OPEN_WRITE ? O_RDWR : O_RDONLY);

    if (flags & IO_OPEN_CREATE)
        os |= O_CREAT;
    if (flags & IO_OPEN_EXCL)
        os |= O_EXCL;
    if (flags & IO_OPEN_TRUNC)
        os |= O_TRUNC;
    return os;
}

enum err io_file_open(struct io *io, const char *path, unsigned flags, struct io_file **out)
{
    size_t size = strlen(path) + 1;
    struct io_file *f;
    int fd;

    (void)io;
    assert_off_loop();
    *out = NULL;
    do {
        fd = open(path, open_flags(flags), 0644);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return file_failed("open", path);
    f = xmalloc(sizeof(*f) + size);
    f->refs = 1;
    f->fd = fd;
    memcpy(f->path, path, size);
    *out = f;
    return ERR_NONE;
}

struct io_file *io_file_ref(struct io_file *f)
{
    int32_t before = atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);

    assert(before > 0);
    return f;
}

void io_file_unref(struct io_file *f)
{
    int32_t before;

    if (!f)
        return;
    before = atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    /* An error here means nothing: what had to be durable was synced, and the sync said so. */
    close(f->fd);
    free(f);
}

enum err io_file_read(struct io_file *f, void *p, size_t n, int64_t pos, size_t *got)
{
    assert_off_loop();
    *got = 0;
    while (*got < n) {
        ssize_t part = pread(f->fd, (char *)p + *got, n - *got, pos + (int64_t)*got);

        if (part == 0)
            break;
        if (part > 0)
            *got += (size_t)part;
        else if (errno != EINTR)
            return file_failed("pread", f->path);
    }
    return ERR_NONE;
}

/* Steps over n bytes that are written. */
static void consume(struct iovec **iov, int *iov_count, size_t n)
{
    while (*iov_count > 0 && n >= (*iov)->iov_len) {
        n -= (*iov)->iov_len;
        (*iov)++;
        (*iov_count)--;
    }
    if (*iov_count > 0) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + n;
        (*iov)->iov_len -= n;
    }
}

enum err io_file_write(struct io_file *f, struct iovec *iov, int iov_count, int64_t pos)
{
    assert_off_loop();
    consume(&iov, &iov_count, 0);
    while (iov_count > 0) {
        ssize_t part = pwritev(f->fd, iov, MIN(iov_count, IOV_MAX), pos);

        if (part > 0) {
            pos += part;
            consume(&iov, &iov_count, (size_t)part);
        } else if (part == 0 || errno != EINTR) {
            return file_failed("pwritev", f->path);
        }
    }
    return ERR_NONE;
}

enum err io_file_sync(struct io_file *f)
{
    assert_off_loop();
    return fdatasync(f->fd) < 0 ? file_failed("fdatasync", f->path) : ERR_NONE;
}

enum err io_file_truncate(struct io_file *f, int64_t size)
{
    int failed;

    assert_off_loop();
    do {
        failed = ftruncate(f->fd, size);
    } while (failed && errno == EINTR);
    return failed ? file_failed("ftruncate", f->path) : ERR_NONE;
}

enum err io_file_reserve(struct io_file *f, int64_t pos, int64_t n)
{
    int failed;

    assert_off_loop();
    do {
        failed = fallocate(f->fd, FALLOC_FL_KEEP_SIZE, pos, n);
    } while (failed && errno == EINTR);
    return failed ? file_failed("fallocate", f->path) : ERR_NONE;
}

enum err io_file_set_mtime(struct io_file *f, int64_t wall_ms)
{
    struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = wall_ms / 1000, .tv_nsec = wall_ms % 1000 * 1000000},
    };

    assert_off_loop();
    assert(wall_ms >= 0);
    return futimens(f->fd, times) < 0 ? file_failed("futimens", f->path) : ERR_NONE;
}

enum err io_file_stat(struct io_file *f, struct io_stat *out)
{
    struct stat st;

    assert_off_loop();
    *out = (struct io_stat){0};
    if (fstat(f->fd, &st) < 0)
        return file_failed("fstat", f->path);
    stat_convert(&st, out);
    return ERR_NONE;
}

enum err io_read_cached(struct io_file *f, void *p, size_t n, int64_t pos, size_t *got)
{
    struct iovec iov = {.iov_base = p, .iov_len = n};
    ssize_t part;

    *got = 0;
    do {
        part = preadv2(f->fd, &iov, 1, pos, RWF_NOWAIT);
    } while (part < 0 && errno == EINTR);
    /* Some file systems cannot tell: then everything may have to wait. */
    if (part < 0)
        return errno == EOPNOTSUPP ? ERR_AGAIN : file_failed("preadv2", f->path);
    *got = (size_t)part;
    return ERR_NONE;
}
