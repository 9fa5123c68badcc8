/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The power goes: what is left of a disk whose broker ran over the disk layer (disk.c).
 *
 *   powercut DIR SEED      DIR/data becomes what was synced, and some of the rest
 *
 * The broker's process must be dead. Names that were not synced are gone, or old ones are back. Of
 * the bytes that were not synced each file keeps, by the seed, none, those up to some place, or
 * some of its blocks. Prints how many bytes and names were lost; the shadow begins anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "shadow.h"

#define BLOCK 4096

static struct rng rng;
static const char *place;
static int64_t lost_bytes;
static int64_t lost_names;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "powercut: %s: %s\n", what, strerror(errno));
    exit(1);
}

struct content {
    uint8_t *p;
    size_t n;
};

static struct content read_whole(const char *path)
{
    struct content c = {0};
    FILE *f = fopen(path, "r");
    struct stat st;

    if (!f)
        return c;
    if (fstat(fileno(f), &st))
        die(path);
    c.n = (size_t)st.st_size;
    c.p = xmalloc(c.n + 1);
    if (fread(c.p, 1, c.n, f) != c.n)
        die(path);
    c.p[c.n] = 0;
    fclose(f);
    return c;
}

static void write_whole(const char *path, const struct content *c)
{
    FILE *f = fopen(path, "w");

    if (!f || fwrite(c->p, 1, c->n, f) != c->n || fclose(f))
        die(path);
}

/* Of what was written and not synced, a part. */
static struct content keep_some(const struct content *synced, const struct content *written)
{
    struct content c = {.n = synced->n};
    uint64_t how = rng_below(&rng, 3);

    if (how > 0 && written->n > synced->n)
        c.n += rng_below(&rng, written->n - synced->n + 1);
    c.p = xcalloc(c.n + 1, 1);
    memcpy(c.p, synced->p, c.n < synced->n ? c.n : synced->n);
    for (size_t at = 0; how > 0 && at < c.n && at < written->n; at += BLOCK) {
        size_t n = c.n - at < BLOCK ? c.n - at : BLOCK;

        n = written->n - at < n ? written->n - at : n;
        if (how == 1 ? at + n > synced->n : rng_below(&rng, 2) == 1)
            memcpy(c.p + at, written->p + at, n);
    }
    return c;
}

static void count_lost(const struct content *written, const struct content *left)
{
    size_t n = written->n < left->n ? written->n : left->n;

    for (size_t i = 0; i < n; i++)
        lost_bytes += written->p[i] != left->p[i];
    lost_bytes += (int64_t)(written->n - n);
}

/* `path` is the file below DIR/data. */
static void restore_file(const char *key, const char *path)
{
    char name[2 * PATH_MAX];
    char now[SHADOW_KEY_BYTES];
    struct content synced;
    struct content written = {0};
    struct content left;
    mode_t mode;

    snprintf(name, sizeof(name), "%s/shadow/f-%s", place, key);
    synced = read_whole(name);
    if (!synced.p)
        synced.p = xcalloc(1, 1);
    snprintf(name, sizeof(name), "%s/data/%s", place, path);
    /* Another file of the name is not this one. */
    if (shadow_key(AT_FDCWD, name, now, &mode) && strcmp(now, key) == 0)
        written = read_whole(name);
    if (written.p) {
        left = keep_some(&synced, &written);
        count_lost(&written, &left);
    } else {
        lost_names++;
        left = (struct content){.p = xmemdup(synced.p, synced.n + 1), .n = synced.n};
    }
    snprintf(name, sizeof(name), "%s/left/%s", place, path);
    write_whole(name, &left);
    free(synced.p);
    free(written.p);
    free(left.p);
}

static void restore_dir(const char *key, const char *path);

static void restore_line(const char *line, const char *path)
{
    char below[PATH_MAX];
    char key[SHADOW_KEY_BYTES];
    int name_at = 0;
    char kind;

    if (sscanf(line, "%c %47s %n", &kind, key, &name_at) != 2 || name_at == 0)
        die("a line of the shadow");
    snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "", line + name_at);
    if (kind == 'd')
        restore_dir(key, below);
    else
        restore_file(key, below);
}

static void restore_dir(const char *key, const char *path)
{
    char name[2 * PATH_MAX];
    struct content names;
    char *rest;

    snprintf(name, sizeof(name), "%s/left/%s", place, path);
    if (mkdir(name, 0755))
        die(name);
    snprintf(name, sizeof(name), "%s/shadow/d-%s", place, key);
    names = read_whole(name); /* none: it was never synced, and is empty */
    for (char *line = names.p ? strtok_r((char *)names.p, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        restore_line(line, path);
    free(names.p);
}

/* Takes the command. */
static void run(char *command)
{
    if (system(command) != 0) /* NOLINT: the test's own directory */
        die(command);
    free(command);
}

int main(int argc, char **argv)
{
    struct content root;
    char *name;

    if (argc != 3)
        die("usage: powercut DIR SEED");
    place = argv[1];
    rng = rng_seeded(strtoull(argv[2], NULL, 10));
    name = xasprintf("%s/shadow/root", place);
    root = read_whole(name);
    if (root.p) {
        root.p[strcspn((char *)root.p, "\n")] = 0;
        run(xasprintf("rm -rf '%s/left'", place));
        restore_dir((char *)root.p, "");
        run(xasprintf("cd '%s' && rm -rf data shadow && mv left data", place));
    } /* Else its broker had not begun: all that is there counts as synced (disk.c). */
    printf("%lld bytes, %lld names\n", (long long)lost_bytes, (long long)lost_names);
    free(root.p);
    free(name);
    return 0;
}
