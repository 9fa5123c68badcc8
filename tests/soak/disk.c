/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer between a broker and its disk (LD_PRELOAD), for tests of real processes. It keeps a
 * shadow of what has been synced (shadow.h), from which the program powercut makes the disk that
 * would be left; and it fails, shortens and delays calls as the control file says.
 *
 *   SOAK_DISK=DIR   the data is in DIR/data; DIR/shadow and DIR/control are ours
 *
 * The broker's whole traffic with its files is pwritev, ftruncate, fdatasync and fsync (src/io).
 * A write counts as synced when a sync that began behind it has returned. A sync that fails takes
 * the writes before it along: the kernel calls their pages clean, and a later sync does not write
 * them.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shadow.h"

#define FILES_MAX 262144 /* slots of the table, which forgets none; a power of two */
#define COPY_BYTES 65536

/* A write, or a change of the size (n = -1). */
struct change {
    int64_t at;
    int64_t n;
};

/* What is not synced of a file. */
struct dirty {
    char key[SHADOW_KEY_BYTES];
    struct change *v;
    size_t count;
    size_t cap;
    bool is_known; /* this process has synced it: what is not in `v` is in the shadow */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dirty *files;
static struct disk_control *control;
static char shadow[PATH_MAX - 2 * SHADOW_KEY_BYTES];

static ssize_t (*real_pwritev)(int, const struct iovec *, int, off_t);
static int (*real_fdatasync)(int);
static int (*real_fsync)(int);
static int (*real_ftruncate)(int, off_t);
static int (*real_fallocate)(int, int, off_t, off_t);

static void die(const char *what)
{
    fprintf(stderr, "disk layer: %s: %s\n", what, strerror(errno));
    abort();
}

/* ---- what is not synced ------------------------------------------------------------------ */

/* Within the lock. */
static struct dirty *dirty_of(const char *key)
{
    uint64_t h = 1469598103934665603u;

    for (const char *c = key; *c; c++)
        h = (h ^ (uint8_t)*c) * 1099511628211u;
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct dirty *d = &files[(h + i) & (FILES_MAX - 1)];

        if (!d->key[0])
            memcpy(d->key, key, SHADOW_KEY_BYTES);
        if (strcmp(d->key, key) == 0)
            return d;
    }
    errno = ENOSPC;
    die("too many files");
    return NULL;
}

static void note(int fd, int64_t at, int64_t n)
{
    char key[SHADOW_KEY_BYTES] = {0};
    struct dirty *d;
    mode_t mode;

    if (!shadow_key(fd, "", key, &mode))
        die("statx");
    pthread_mutex_lock(&lock);
    d = dirty_of(key);
    if (d->count == d->cap) {
        d->cap = d->cap * 2 + 16;
        d->v = realloc(d->v, d->cap * sizeof(*d->v));
        if (!d->v)
            die("memory");
    }
    d->v[d->count++] = (struct change){.at = at, .n = n};
    pthread_mutex_unlock(&lock);
}

/* ---- the shadow -------------------------------------------------------------------------- */

static void path_of(char *path, char kind, const char *key)
{
    snprintf(path, PATH_MAX, "%s/%c-%s", shadow, kind, key);
}

static void copy_range(int from, int to, int64_t at, int64_t n)
{
    char bytes[COPY_BYTES];

    while (n > 0) {
        size_t part = n < COPY_BYTES ? (size_t)n : COPY_BYTES;
        ssize_t got = pread(from, bytes, part, at);

        if (got <= 0)
            return; /* it has been cut since */
        if (pwrite(to, bytes, (size_t)got, at) != got)
            die("shadow");
        at += got;
        n -= got;
    }
}

static void copy_whole(int from, int to)
{
    struct stat st;

    if (fstat(from, &st) || ftruncate(to, st.st_size))
        die("shadow");
    copy_range(from, to, 0, st.st_size);
}

static void copy_changes(int from, int to, const struct change *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].n >= 0)
            copy_range(from, to, v[i].at, v[i].n);
        else if (real_ftruncate(to, v[i].at))
            die("shadow");
}

/* Takes what is not synced of a file; false: nothing is known of it, so all of it counts. */
static bool take(const char *key, struct change **v, size_t *n)
{
    bool was_known;
    struct dirty *d;

    pthread_mutex_lock(&lock);
    d = dirty_of(key);
    *v = d->v;
    *n = d->count;
    d->v = NULL;
    d->count = d->cap = 0;
    was_known = d->is_known;
    d->is_known = true;
    pthread_mutex_unlock(&lock);
    return was_known;
}

static void file_synced(int fd, const char *key, const struct change *v, size_t n, bool was_known)
{
    char path[PATH_MAX];
    char self[64];
    int from;
    int to;

    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    path_of(path, 'f', key);
    from = open(self, O_RDONLY | O_CLOEXEC);
    to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (from < 0 || to < 0)
        die("shadow");
    if (was_known)
        copy_changes(from, to, v, n);
    else
        copy_whole(from, to);
    close(from);
    close(to);
}

static void dir_synced(int fd, const char *key)
{
    char path[PATH_MAX];
    char new_path[PATH_MAX + 8];
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    struct dirent *e;
    FILE *out;

    path_of(path, 'd', key);
    snprintf(new_path, sizeof(new_path), "%s.%d", path, (int)gettid());
    out = fopen(new_path, "w");
    if (!dir || !out)
        die("shadow of a directory");
    while ((e = readdir(dir))) {
        char of_entry[SHADOW_KEY_BYTES];
        mode_t mode;

        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            shadow_key(again, e->d_name, of_entry, &mode))
            fprintf(out, "%c %s %s\n", S_ISDIR(mode) ? 'd' : 'f', of_entry, e->d_name);
    }
    if (fclose(out) || rename(new_path, path))
        die("shadow of a directory");
    closedir(dir);
}

/* ---- the calls --------------------------------------------------------------------------- */

static int fails_with(int number)
{
    if (number == 0)
        return 0;
    __atomic_add_fetch(&control->bitten, 1, __ATOMIC_RELAXED);
    errno = number;
    return -1;
}

static int sync_with(int fd, int (*real)(int))
{
    char key[SHADOW_KEY_BYTES] = {0};
    struct change *v = NULL;
    bool was_known = true;
    size_t n = 0;
    mode_t mode;
    int failed;

    if (!shadow_key(fd, "", key, &mode))
        die("statx");
    if (!S_ISDIR(mode))
        was_known = take(key, &v, &n);
    if (control->sync_delay_us > 0)
        nanosleep(&(struct timespec){.tv_sec = control->sync_delay_us / 1000000,
                                     .tv_nsec = control->sync_delay_us % 1000000 * 1000L},
                  NULL);
    failed = fails_with(control->sync_errno);
    if (!failed)
        failed = real(fd);
    if (!failed && S_ISDIR(mode))
        dir_synced(fd, key);
    else if (!failed)
        file_synced(fd, key, v, n, was_known);
    free(v);
    return failed;
}

int fdatasync(int fd)
{
    return sync_with(fd, real_fdatasync);
}

int fsync(int fd)
{
    return sync_with(fd, real_fsync);
}

ssize_t pwritev(int fd, const struct iovec *v, int count, off_t at)
{
    static int32_t calls;
    int32_t every = control->short_every;
    struct iovec part = v[0];
    ssize_t n;

    if (fails_with(control->write_errno))
        return -1;
    if (every > 0 && part.iov_len > 1 &&
        __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % every == 0) {
        __atomic_add_fetch(&control->bitten, 1, __ATOMIC_RELAXED);
        part.iov_len /= 2;
        n = real_pwritev(fd, &part, 1, at);
    } else {
        n = real_pwritev(fd, v, count, at);
    }
    if (n > 0)
        note(fd, at, n);
    return n;
}

int ftruncate(int fd, off_t size)
{
    int failed = real_ftruncate(fd, size);

    if (!failed)
        note(fd, size, -1);
    return failed;
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
    return fails_with(control->write_errno) ? -1 : real_fallocate(fd, mode, at, n);
}

/* ---- beginning --------------------------------------------------------------------------- */

/* Everything that is there at the first start counts as synced. */
static void take_in(int dir)
{
    char key[SHADOW_KEY_BYTES] = {0};
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = again < 0 ? NULL : fdopendir(again);
    struct dirent *e;
    mode_t mode;

    if (!names || !shadow_key(dir, "", key, &mode))
        die("the data directory");
    dir_synced(dir, key);
    while ((e = readdir(names))) {
        int fd;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        fd = openat(dir, e->d_name, O_RDONLY | O_CLOEXEC);
        memset(key, 0, sizeof(key));
        if (fd < 0 || !shadow_key(fd, "", key, &mode))
            die(e->d_name);
        if (S_ISDIR(mode))
            take_in(fd);
        else
            file_synced(fd, key, NULL, 0, false);
        close(fd);
    }
    closedir(names);
}

static void begin_shadow(const char *place)
{
    char key[SHADOW_KEY_BYTES] = {0};
    char path[PATH_MAX];
    mode_t mode;
    FILE *root;
    int dir;

    snprintf(path, sizeof(path), "%s/root", shadow);
    if (access(path, F_OK) == 0)
        return;
    mkdir(shadow, 0755);
    snprintf(path, sizeof(path), "%s/data", place);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !shadow_key(dir, "", key, &mode))
        die(path);
    take_in(dir);
    close(dir);
    snprintf(path, sizeof(path), "%s/root", shadow);
    root = fopen(path, "w");
    if (!root || fprintf(root, "%s\n", key) < 0 || fclose(root))
        die(path);
}

static void map_control(const char *place)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "%s/control", place);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || real_ftruncate(fd, sizeof(*control)))
        die(path);
    control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED)
        die(path);
    close(fd);
}

static void find(const char *name, void *pointer)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found)
        die(name);
    memcpy(pointer, &found, sizeof(found));
}

__attribute__((constructor)) static void begin(void)
{
    const char *place = getenv("SOAK_DISK");

    if (!place) {
        fprintf(stderr, "disk layer: SOAK_DISK is not set\n");
        abort();
    }
    find("pwritev", &real_pwritev);
    find("fdatasync", &real_fdatasync);
    find("fsync", &real_fsync);
    find("ftruncate", &real_ftruncate);
    find("fallocate", &real_fallocate);
    files = calloc(FILES_MAX, sizeof(*files));
    if (!files)
        die("memory");
    snprintf(shadow, sizeof(shadow), "%s/shadow", place);
    map_control(place);
    begin_shadow(place);
}
