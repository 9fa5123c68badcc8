/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite over io_file_*: so that the simulator's power cuts, failing disks and full disks reach
 * the keeper like everything else that is stored, and no second path to the kernel exists.
 *
 * Two things go beyond plain forwarding. A file (the write-ahead log above all) is only as durable
 * as its name, and nobody knows whether an earlier process came to sync that, so the first sync of
 * each open file also syncs the directory. And failures stick, see sqlite_int.h: SQLite itself
 * would try a checkpoint again, and believe it.
 *
 * SQLite asks for entropy with a mutex of the whole process held. Nothing may stop there, so the
 * bytes are drawn beforehand.
 *
 * SQLite finds file systems in one list of the process, which it guards with a mutex of its own;
 * each of ours is on it under its address as name.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/planted.h"
#include "keeper/sqlite_int.h"

#define SECTOR_BYTES 4096
#define PATH_BYTES_MAX 4096
#define ENTROPY_BYTES 64               /* SQLite asks for 44, once a process */
#define JULIAN_1970_MS 210866760000000 /* SQLite counts days from noon in 4714 BC */

struct sqlite_vfs {
    sqlite3_vfs vfs;
    struct io *io;
    enum err err; /* the first failure */
    bool is_dead; /* a write failed */
    uint8_t entropy[ENTROPY_BYTES];
    char name[32];
};

struct vfs_file {
    sqlite3_file file;
    struct sqlite_vfs *v;
    struct io_file *f;
    char *dir; /* still to be synced; NULL: the name is durable */
};

static struct sqlite_vfs *vfs_of(sqlite3_vfs *vfs)
{
    return CONTAINER_OF(vfs, struct sqlite_vfs, vfs);
}

static struct vfs_file *file_of(sqlite3_file *file)
{
    return CONTAINER_OF(file, struct vfs_file, file);
}

/* The answer to a call that reads. */
static int answer(struct sqlite_vfs *v, enum err err, int code)
{
    if (!err)
        return SQLITE_OK;
    if (!v->err)
        v->err = err;
    return err == ERR_NO_SPACE ? SQLITE_FULL : code;
}

/* The answer to one that changes what is stored. */
static int answer_write(struct sqlite_vfs *v, enum err err, int code)
{
    v->is_dead |= err != ERR_NONE;
    return answer(v, err, code);
}

/* ---- One file. */

static int file_close(sqlite3_file *file)
{
    struct vfs_file *vf = file_of(file);

    io_file_unref(vf->f);
    free(vf->dir);
    return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *p, int n, sqlite3_int64 pos)
{
    struct vfs_file *vf = file_of(file);
    size_t got;
    enum err err = io_file_read(vf->f, p, (size_t)n, pos, &got);

    if (err)
        return answer(vf->v, err, SQLITE_IOERR_READ);
    if (got == (size_t)n)
        return SQLITE_OK;
    memset((char *)p + got, 0, (size_t)n - got); /* SQLite relies on it */
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *p, int n, sqlite3_int64 pos)
{
    struct vfs_file *vf = file_of(file);
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = (size_t)n};

    if (vf->v->is_dead)
        return SQLITE_IOERR_WRITE;
    return answer_write(vf->v, io_file_write(vf->f, &iov, 1, pos), SQLITE_IOERR_WRITE);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct vfs_file *vf = file_of(file);

    if (vf->v->is_dead)
        return SQLITE_IOERR_TRUNCATE;
    return answer_write(vf->v, io_file_truncate(vf->f, size), SQLITE_IOERR_TRUNCATE);
}

static int file_sync(sqlite3_file *file, int flags)
{
    struct vfs_file *vf = file_of(file);

    (void)flags;
    if (vf->v->is_dead)
        return SQLITE_IOERR_FSYNC;
    enum err err = PLANTED(KEEPER_WITHOUT_SYNC) ? ERR_NONE : io_file_sync(vf->f);

    if (!err && vf->dir) {
        err = io_dir_sync(vf->v->io, vf->dir);
        free(vf->dir);
        vf->dir = NULL;
    }
    return answer_write(vf->v, err, SQLITE_IOERR_FSYNC);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    struct vfs_file *vf = file_of(file);
    struct io_stat st;
    enum err err = io_file_stat(vf->f, &st);

    *size = err ? 0 : st.size;
    return answer(vf->v, err, SQLITE_IOERR_FSTAT);
}

/* Nobody else has the file: whoever opens it holds the directory. */
static int file_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int file_check_lock(sqlite3_file *file, int *is_locked)
{
    (void)file;
    *is_locked = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int file_sector_size(sqlite3_file *file)
{
    (void)file;
    return SECTOR_BYTES;
}

/* A write harms no bytes beside it, even when power fails: true of sectors that are replaced. */
static int file_traits(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 1, /* no shared memory, no mapping */
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_lock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_traits,
};

/* ---- The file system. */

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return xstrdup(".");
    return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
    struct sqlite_vfs *v = vfs_of(vfs);
    struct vfs_file *vf = file_of(file);
    unsigned how = (flags & SQLITE_OPEN_READWRITE) ? IO_OPEN_WRITE : IO_OPEN_READ;

    *vf = (struct vfs_file){.v = v};
    if (!path) /* a temporary file: they are kept in memory */
        return SQLITE_CANTOPEN;
    if (flags & SQLITE_OPEN_CREATE)
        how |= IO_OPEN_CREATE;
    enum err err = io_file_open(v->io, path, how, &vf->f);

    if (err)
        return answer(v, err, SQLITE_CANTOPEN);
    vf->dir = directory_of(path);
    file->pMethods = &file_methods;
    if (out)
        *out = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    struct sqlite_vfs *v = vfs_of(vfs);

    if (v->is_dead)
        return SQLITE_IOERR_DELETE;
    enum err err = io_path_unlink(v->io, path);

    if (err == ERR_NOT_FOUND)
        return SQLITE_IOERR_DELETE_NOENT;
    if (!err && sync_dir) {
        char *dir = directory_of(path);

        err = io_dir_sync(v->io, dir);
        free(dir);
    }
    return answer_write(v, err, SQLITE_IOERR_DELETE);
}

/* SQLite takes an empty journal for none. */
static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    struct io_stat st;
    enum err err = io_path_stat(vfs_of(vfs)->io, path, &st);

    *out = !err && (flags != SQLITE_ACCESS_EXISTS || st.size > 0);
    return err == ERR_NOT_FOUND ? SQLITE_OK : answer(vfs_of(vfs), err, SQLITE_IOERR_ACCESS);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int n, char *out)
{
    (void)vfs;
    return snprintf(out, (size_t)n, "%s", path) < n ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_random(sqlite3_vfs *vfs, int n, char *out)
{
    int given = MIN(n, ENTROPY_BYTES);

    memcpy(out, vfs_of(vfs)->entropy, (size_t)given);
    return given;
}

/* For a database that somebody else has locked, which does not happen. */
static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    (void)us;
    return 0;
}

static int vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ms)
{
    *ms = JULIAN_1970_MS + io_wall_ms(vfs_of(vfs)->io);
    return SQLITE_OK;
}

static int vfs_time_days(sqlite3_vfs *vfs, double *days)
{
    sqlite3_int64 ms;
    int code = vfs_time_ms(vfs, &ms);

    *days = (double)ms / 86400000.0;
    return code;
}

static int vfs_last_error(sqlite3_vfs *vfs, int n, char *text)
{
    (void)vfs;
    if (n > 0)
        text[0] = '\0';
    return 0;
}

struct sqlite_vfs *sqlite_vfs_new(struct io *io)
{
    struct sqlite_vfs *v = xcalloc(1, sizeof(*v));

    v->io = io;
    io_random(io, v->entropy, sizeof(v->entropy));
    snprintf(v->name, sizeof(v->name), "strandline-%p", (void *)v);
    v->vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(struct vfs_file),
        .mxPathname = PATH_BYTES_MAX,
        .zName = v->name,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_random,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time_days,
        .xGetLastError = vfs_last_error,
        .xCurrentTimeInt64 = vfs_time_ms,
    };
    int code = sqlite3_vfs_register(&v->vfs, 1);

    assert(code == SQLITE_OK);
    return v;
}

void sqlite_vfs_free(struct sqlite_vfs *v)
{
    sqlite3_vfs_unregister(&v->vfs);
    free(v);
}

const char *sqlite_vfs_name(const struct sqlite_vfs *v)
{
    return v->name;
}

enum err sqlite_vfs_err(const struct sqlite_vfs *v)
{
    return v->err;
}
