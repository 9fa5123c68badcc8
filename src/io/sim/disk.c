/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file calls of io.h: faults and waiting in front of the file system of fs_int.h.
 *
 * Each blocking call gives the baton back once, before it does anything: other threads, loops and
 * crashes come in between, then the call happens at one moment. So a crash finds the call either
 * not begun or completely done; that it was half done is what the crash model of the disk is for.
 * Failed writes may have been done in part. A failed sync throws away what it should have written
 * and the next one succeeds: the caller must not have trusted it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim_int.h"

struct io_file {
    struct io *io;
    struct list node; /* io->files */
    struct sim_inode *inode;
    int refs;
    bool can_write;
};

struct io_lock {
    struct io *io;
    struct sim_inode *inode;
    char *path;
};

/* ---- waiting and faults ----------------------------------------------------------------- */

static int64_t latency(struct sim_host *h, enum sim_call call)
{
    struct sim_world *w = h->world;
    int64_t ns = 0;

    if (call == SIM_CALL_SYNC) {
        int64_t k = sim_choose(w, SIM_LATENCY, 8);

        ns = w->opt.disk_sync_ns_max * k * k / 49;
    }
    if (sim_chance(w, SIM_STALL, w->opt.disk_stall_ppm)) {
        sim__event(w, SIM_EV_STALL, h, "disk", w->opt.disk_stall_ns);
        ns += w->opt.disk_stall_ns;
    }
    return ns;
}

static uint32_t rate_of(const struct sim_options *o, enum sim_call call)
{
    switch (call) {
    case SIM_CALL_READ: return o->eio_read_ppm;
    case SIM_CALL_WRITE: return o->eio_write_ppm;
    case SIM_CALL_SYNC: return o->eio_sync_ppm;
    case SIM_CALL_META: return o->eio_meta_ppm;
    case SIM_CALLS: break;
    }
    UNREACHABLE();
}

static bool fails(struct sim_host *h, enum sim_call call)
{
    struct sim_world *w = h->world;

    if (h->fail_in[call] > 0 && --h->fail_in[call] == 0)
        return true;
    return sim__on_thread() && sim_chance(w, SIM_EIO, rate_of(&w->opt, call));
}

/* The beginning of every blocking call. */
static enum err enter(struct io *io, enum sim_call call, const char *what)
{
    assert(!io_loop_current());
    if (!sim__call(io))
        return ERR_IO;
    if (sim__on_thread())
        sim__thread_pause(latency(io->host, call));
    if (!fails(io->host, call))
        return ERR_NONE;
    sim__event(io->host->world, SIM_EV_EIO, io->host, what, 0);
    return ERR_IO;
}

static int64_t space_left(const struct sim_fs *fs)
{
    return MAX(fs->world->opt.disk_bytes - fs->used, 0);
}

static enum err no_space(struct sim_host *h)
{
    sim__event(h->world, SIM_EV_NO_SPACE, h, "no_space", 0);
    return ERR_NO_SPACE;
}

void sim_disk_fail_nth(struct sim_host *h, enum sim_call call, uint32_t n)
{
    assert(call < SIM_CALLS);
    h->fail_in[call] = n;
}

enum err sim_disk_damage(struct sim_host *h, const char *path, int64_t pos, uint8_t mask)
{
    struct sim_inode *inode = sim__fs_find(&h->fs, path);

    if (!inode || inode->is_dir)
        return ERR_NOT_FOUND;
    if (pos < 0 || pos >= inode->now.size)
        return ERR_LIMIT;
    inode->now.p[pos] ^= mask;
    if (pos < inode->disk.size)
        inode->disk.p[pos] ^= mask;
    return ERR_NONE;
}

/* ---- handles ---------------------------------------------------------------------------- */

static struct io_file *file_new(struct io *io, struct sim_inode *inode, bool can_write)
{
    struct io_file *f = xcalloc(1, sizeof(*f));

    f->io = io;
    f->inode = sim__inode_ref(inode);
    f->refs = 1;
    f->can_write = can_write;
    list_push_back(&io->files, &f->node);
    return f;
}

static enum err open_inode(struct io *io, const char *path, unsigned flags, struct sim_inode **out)
{
    enum err err = ERR_NOT_FOUND;

    *out = sim__fs_find(&io->host->fs, path);
    if (*out && (flags & IO_OPEN_EXCL))
        return ERR_EXISTS;
    if (!*out && (flags & IO_OPEN_CREATE)) {
        err = sim__fs_create(&io->host->fs, path, false, out);
        if (*out)
            (*out)->mtime_ms = io_wall_ms(io);
    }
    if (!*out)
        return err;
    return (*out)->is_dir ? ERR_IO : ERR_NONE;
}

enum err io_file_open(struct io *io, const char *path, unsigned flags, struct io_file **out)
{
    struct sim_inode *inode;
    enum err err = enter(io, SIM_CALL_META, "open");

    *out = NULL;
    if (!err)
        err = open_inode(io, path, flags, &inode);
    if (err)
        return err;
    if (flags & IO_OPEN_TRUNC)
        sim__inode_resize(inode, 0);
    *out = file_new(io, inode, flags & IO_OPEN_WRITE);
    return ERR_NONE;
}

struct io_file *io_file_ref(struct io_file *f)
{
    f->refs++;
    return f;
}

void io_file_unref(struct io_file *f)
{
    if (!f)
        return;
    assert(f->refs > 0);
    if (--f->refs > 0 || f->io->is_dead)
        return;
    list_remove(&f->node);
    sim__inode_unref(f->inode);
    free(f);
}

void sim__disk_drop(struct io *io)
{
    LIST_EACH (node, &io->host->fs.inodes) {
        struct sim_inode *inode = LIST_ENTRY(node, struct sim_inode, node);

        if (inode->locked_by == io)
            inode->locked_by = NULL;
    }
    LIST_EACH_SAFE (node, &io->files) {
        list_remove(node);
        sim__inode_unref(LIST_ENTRY(node, struct io_file, node)->inode);
    }
}

/* ---- reading and writing ---------------------------------------------------------------- */

enum err io_file_read(struct io_file *f, void *p, size_t n, int64_t pos, size_t *got)
{
    enum err err = enter(f->io, SIM_CALL_READ, "read");

    assert(pos >= 0);
    *got = err ? 0 : sim__inode_read(f->inode, p, n, pos);
    return err;
}

enum err io_read_cached(struct io_file *f, void *p, size_t n, int64_t pos, size_t *got)
{
    struct sim_world *w = f->io->host->world;

    assert(pos >= 0);
    *got = 0;
    if (!sim__call(f->io) || sim_chance(w, SIM_CACHE, w->opt.disk_uncached_ppm))
        return ERR_AGAIN;
    if (n > 1 && sim_chance(w, SIM_CACHE, w->opt.disk_short_ppm))
        n = 1 + sim_choose(w, SIM_CACHE, (uint32_t)MIN(n, UINT32_MAX));
    *got = sim__inode_read(f->inode, p, n, pos);
    return ERR_NONE;
}

/* One write of all elements, at most `max` bytes of it. */
static void write_up_to(struct io_file *f, const struct iovec *iov, int iov_count, int64_t pos,
                        size_t max)
{
    uint8_t *all = xmalloc(max + 1);
    size_t n = 0;

    for (int i = 0; i < iov_count && n < max; i++) {
        size_t part = MIN(iov[i].iov_len, max - n);

        if (part > 0)
            memcpy(all + n, iov[i].iov_base, part);
        n += part;
    }
    sim__inode_write(f->inode, all, n, pos);
    f->inode->mtime_ms = io_wall_ms(f->io);
    free(all);
}

static size_t total_bytes(const struct iovec *iov, int iov_count)
{
    size_t n = 0;

    for (int i = 0; i < iov_count; i++)
        n += iov[i].iov_len;
    return n;
}

enum err io_file_write(struct io_file *f, struct iovec *iov, int iov_count, int64_t pos)
{
    struct sim_host *h = f->io->host;
    enum err err = enter(f->io, SIM_CALL_WRITE, "write");
    size_t n = total_bytes(iov, iov_count);
    int64_t missing;

    assert(f->can_write && pos >= 0);
    if (f->io->is_dead)
        return ERR_IO;
    missing = sim__inode_growth(f->inode, pos + (int64_t)n) - space_left(&h->fs);
    if (err) {
        n = n * sim_choose(h->world, SIM_PARTIAL, 3) / 2;
    } else if (missing > 0) {
        n -= MIN(n, (size_t)missing);
        err = no_space(h);
    }
    write_up_to(f, iov, iov_count, pos, n);
    return err;
}

enum err io_file_sync(struct io_file *f)
{
    enum err err = enter(f->io, SIM_CALL_SYNC, "sync");

    if (err)
        sim__inode_forget(f->inode);
    else
        sim__inode_sync(f->inode);
    return err;
}

enum err io_file_truncate(struct io_file *f, int64_t size)
{
    enum err err = enter(f->io, SIM_CALL_META, "truncate");

    assert(f->can_write && size >= 0);
    if (!err)
        sim__inode_resize(f->inode, size);
    return err;
}

enum err io_file_reserve(struct io_file *f, int64_t pos, int64_t n)
{
    enum err err = enter(f->io, SIM_CALL_META, "reserve");

    if (err)
        return err;
    if (sim__inode_growth(f->inode, pos + n) > space_left(&f->io->host->fs))
        return no_space(f->io->host);
    sim__inode_reserve(f->inode, pos + n);
    return ERR_NONE;
}

/* ---- attributes ------------------------------------------------------------------------- */

static struct io_stat stat_of(const struct sim_inode *inode)
{
    return (struct io_stat){
        .size = inode->now.size, .mtime_ms = inode->mtime_ms, .is_dir = inode->is_dir};
}

enum err io_file_set_mtime(struct io_file *f, int64_t wall_ms)
{
    enum err err = enter(f->io, SIM_CALL_META, "mtime");

    if (!err)
        f->inode->mtime_ms = wall_ms;
    return err;
}

enum err io_file_stat(struct io_file *f, struct io_stat *out)
{
    enum err err = enter(f->io, SIM_CALL_META, "stat");

    *out = stat_of(f->inode);
    return err;
}

enum err io_path_stat(struct io *io, const char *path, struct io_stat *out)
{
    enum err err = enter(io, SIM_CALL_META, "stat");
    const struct sim_inode *inode = sim__fs_find(&io->host->fs, path);

    *out = (struct io_stat){0};
    if (!err && !inode)
        err = ERR_NOT_FOUND;
    if (!err)
        *out = stat_of(inode);
    return err;
}

enum err io_fs_space(struct io *io, const char *path, struct io_space *out)
{
    enum err err = enter(io, SIM_CALL_META, "space");

    *out = (struct io_space){0};
    if (!err && !sim__fs_find(&io->host->fs, path))
        err = ERR_NOT_FOUND;
    if (!err)
        *out = (struct io_space){.total = io->host->world->opt.disk_bytes,
                                 .available = space_left(&io->host->fs)};
    return err;
}

/* ---- names ------------------------------------------------------------------------------ */

enum err io_path_rename(struct io *io, const char *from, const char *to)
{
    enum err err = enter(io, SIM_CALL_META, "rename");

    return err ? err : sim__fs_rename(&io->host->fs, from, to);
}

enum err io_path_unlink(struct io *io, const char *path)
{
    enum err err = enter(io, SIM_CALL_META, "unlink");

    return err ? err : sim__fs_remove(&io->host->fs, path, false);
}

enum err io_path_link(struct io *io, const char *from, const char *to)
{
    enum err err = enter(io, SIM_CALL_META, "link");

    return err ? err : sim__fs_link(&io->host->fs, from, to);
}

enum err io_dir_make(struct io *io, const char *path)
{
    struct sim_inode *dir;
    enum err err = enter(io, SIM_CALL_META, "mkdir");

    return err ? err : sim__fs_create(&io->host->fs, path, true, &dir);
}

enum err io_dir_remove(struct io *io, const char *path)
{
    enum err err = enter(io, SIM_CALL_META, "rmdir");

    return err ? err : sim__fs_remove(&io->host->fs, path, true);
}

static enum err find_dir(struct io *io, const char *path, struct sim_inode **out)
{
    *out = sim__fs_find(&io->host->fs, path);
    return *out && (*out)->is_dir ? ERR_NONE : ERR_NOT_FOUND;
}

enum err io_dir_sync(struct io *io, const char *path)
{
    struct sim_inode *dir;
    enum err err = enter(io, SIM_CALL_SYNC, "dir_sync");

    if (!err)
        err = find_dir(io, path, &dir);
    if (!err)
        sim__fs_sync_dir(dir);
    return err;
}

enum err io_dir_list(struct io *io, const char *path, struct io_names *out)
{
    struct sim_inode *dir;
    enum err err = enter(io, SIM_CALL_META, "list");

    *out = (struct io_names){0};
    if (!err)
        err = find_dir(io, path, &dir);
    if (err || dir->now_names.n == 0)
        return err;
    out->v = xcalloc(dir->now_names.n, sizeof(*out->v));
    for (out->n = 0; out->n < dir->now_names.n; out->n++)
        out->v[out->n] = xstrdup(dir->now_names.v[out->n].name);
    return ERR_NONE;
}

/* ---- locks ------------------------------------------------------------------------------ */

enum err io_lock_take(struct io *io, const char *path, struct io_lock **out)
{
    struct sim_inode *inode;
    enum err err = enter(io, SIM_CALL_META, "lock");

    *out = NULL;
    if (!err)
        err = open_inode(io, path, IO_OPEN_CREATE, &inode);
    if (err)
        return err;
    if (inode->locked_by)
        return ERR_LOCKED;
    inode->locked_by = io;
    *out = xcalloc(1, sizeof(**out));
    **out = (struct io_lock){.io = io, .inode = sim__inode_ref(inode), .path = xstrdup(path)};
    return ERR_NONE;
}

void io_lock_release(struct io_lock *lock)
{
    if (!sim__call(lock->io))
        return;
    if (sim__fs_find(&lock->io->host->fs, lock->path) == lock->inode &&
        sim__fs_remove(&lock->io->host->fs, lock->path, false))
        UNREACHABLE();
    lock->inode->locked_by = NULL;
    sim__inode_unref(lock->inode);
    free(lock->path);
    free(lock);
}
