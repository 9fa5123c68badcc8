/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: directories in two states, and one journal of the changes between them.
 *
 * A change is applied to `now` at once and appended to the journal. Syncing a directory carries its
 * entries over to `disk`, in order; if one of them also touches another directory, the whole
 * journal goes, so that a rename between directories stays atomic. The model gives no more than
 * POSIX promises: syncing a file does not sync its name, and syncing a directory syncs no other.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/fs_int.h"

#define NAME_BYTES_MAX 255

/* ---- sorted names ----------------------------------------------------------------------- */

/* The place of the name, or where it would be. */
static size_t names_place(const struct sim_names *names, const char *name, bool *found)
{
    size_t low = 0;
    size_t high = names->n;

    *found = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(names->v[mid].name, name);

        if (order == 0) {
            *found = true;
            return mid;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct sim_inode *names_get(const struct sim_names *names, const char *name)
{
    bool found;
    size_t at = names_place(names, name, &found);

    return found ? names->v[at].inode : NULL;
}

static void names_put(struct sim_names *names, const char *name, struct sim_inode *inode)
{
    bool found;
    size_t at = names_place(names, name, &found);

    sim__inode_ref(inode);
    if (found) {
        sim__inode_unref(names->v[at].inode);
        names->v[at].inode = inode;
        return;
    }
    if (names->n == names->cap) {
        names->cap = names->cap ? 2 * names->cap : 8;
        names->v = xreallocarray(names->v, names->cap, sizeof(*names->v));
    }
    memmove(names->v + at + 1, names->v + at, (names->n - at) * sizeof(*names->v));
    names->v[at] = (struct sim_entry){.name = xstrdup(name), .inode = inode};
    names->n++;
}

static void names_remove(struct sim_names *names, const char *name)
{
    bool found;
    size_t at = names_place(names, name, &found);

    if (!found) /* On the disk it may never have been. */
        return;
    free(names->v[at].name);
    sim__inode_unref(names->v[at].inode);
    names->n--;
    memmove(names->v + at, names->v + at + 1, (names->n - at) * sizeof(*names->v));
}

void sim__names_clear(struct sim_names *names)
{
    struct sim_names old = *names;

    *names = (struct sim_names){0};
    for (size_t i = 0; i < old.n; i++) {
        free(old.v[i].name);
        sim__inode_unref(old.v[i].inode);
    }
    free(old.v);
}

void sim__names_copy(struct sim_names *to, const struct sim_names *from)
{
    struct sim_names old = *to;

    *to = (struct sim_names){0};
    for (size_t i = 0; i < from->n; i++)
        names_put(to, from->v[i].name, from->v[i].inode);
    sim__names_clear(&old);
}

/* ---- the journal ------------------------------------------------------------------------ */

void sim__rename_apply(const struct sim_rename *r, bool to_disk)
{
    if (r->from)
        names_remove(to_disk ? &r->from->disk_names : &r->from->now_names, r->from_name);
    if (r->to)
        names_put(to_disk ? &r->to->disk_names : &r->to->now_names, r->to_name, r->inode);
}

void sim__rename_free(struct sim_rename *r)
{
    list_remove(&r->node);
    if (r->from) {
        r->from->journal_count--;
        sim__inode_unref(r->from);
    }
    if (r->to) {
        r->to->journal_count--;
        sim__inode_unref(r->to);
    }
    if (r->inode)
        sim__inode_unref(r->inode);
    free(r->from_name);
    free(r->to_name);
    free(r);
}

/* Either place may be missing (dir NULL): then it is a creation or a removal. */
static void change_names(struct sim_fs *fs, struct sim_inode *from, const char *from_name,
                         struct sim_inode *to, const char *to_name, struct sim_inode *inode)
{
    struct sim_rename *r = xcalloc(1, sizeof(*r));

    if (from) {
        r->from = sim__inode_ref(from);
        r->from_name = xstrdup(from_name);
        from->journal_count++;
    }
    if (to) {
        r->to = sim__inode_ref(to);
        r->to_name = xstrdup(to_name);
        r->inode = sim__inode_ref(inode);
        to->journal_count++;
    }
    list_push_back(&fs->journal, &r->node);
    sim__rename_apply(r, false);
}

static bool touches(const struct sim_rename *r, const struct sim_inode *dir)
{
    return r->from == dir || r->to == dir;
}

void sim__fs_sync_dir(struct sim_inode *dir)
{
    bool everything = false;

    LIST_EACH (node, &dir->fs->journal) {
        const struct sim_rename *r = LIST_ENTRY(node, struct sim_rename, node);

        if (touches(r, dir) && r->from && r->to && r->from != r->to)
            everything = true;
    }
    LIST_EACH_SAFE (node, &dir->fs->journal) {
        struct sim_rename *r = LIST_ENTRY(node, struct sim_rename, node);

        if (!everything && !touches(r, dir))
            continue;
        sim__rename_apply(r, true);
        sim__rename_free(r);
    }
}

/* ---- paths ------------------------------------------------------------------------------ */

/* The next component; false at the end of the path. */
static bool next_name(const char **path, char name[static NAME_BYTES_MAX + 1])
{
    size_t n;

    *path += strspn(*path, "/");
    n = strcspn(*path, "/");
    if (n == 0)
        return false;
    assert(n <= NAME_BYTES_MAX);
    memcpy(name, *path, n);
    name[n] = '\0';
    *path += n;
    return true;
}

/* Where a name is or would be. */
struct place {
    struct sim_inode *dir;
    struct sim_inode *inode; /* NULL: not there */
    char name[NAME_BYTES_MAX + 1];
};

static enum err find_place(struct sim_fs *fs, const char *path, struct place *out)
{
    char name[NAME_BYTES_MAX + 1];

    *out = (struct place){.inode = fs->root};
    while (next_name(&path, name)) {
        if (strcmp(name, ".") == 0)
            continue;
        if (!out->inode || !out->inode->is_dir)
            return ERR_NOT_FOUND;
        out->dir = out->inode;
        out->inode = names_get(&out->dir->now_names, name);
        memcpy(out->name, name, sizeof(name));
    }
    return ERR_NONE;
}

struct sim_inode *sim__fs_find(struct sim_fs *fs, const char *path)
{
    struct place at;

    return find_place(fs, path, &at) == ERR_NONE ? at.inode : NULL;
}

enum err sim__fs_create(struct sim_fs *fs, const char *path, bool is_dir, struct sim_inode **out)
{
    struct place at;
    enum err err = find_place(fs, path, &at);

    *out = NULL;
    if (err)
        return err;
    if (at.inode)
        return ERR_EXISTS;
    *out = sim__inode_new(fs, is_dir);
    change_names(fs, NULL, NULL, at.dir, at.name, *out);
    sim__inode_unref(*out);
    return ERR_NONE;
}

enum err sim__fs_remove(struct sim_fs *fs, const char *path, bool is_dir)
{
    struct place at;
    enum err err = find_place(fs, path, &at);

    if (err)
        return err;
    if (!at.inode)
        return ERR_NOT_FOUND;
    if (at.inode->is_dir != is_dir || !at.dir)
        return ERR_IO;
    if (is_dir && at.inode->now_names.n > 0)
        return ERR_NOT_EMPTY;
    change_names(fs, at.dir, at.name, NULL, NULL, NULL);
    return ERR_NONE;
}

enum err sim__fs_rename(struct sim_fs *fs, const char *from, const char *to)
{
    struct place old;
    struct place new;
    enum err err = find_place(fs, from, &old);

    if (!err)
        err = find_place(fs, to, &new);
    if (err)
        return err;
    if (!old.inode)
        return ERR_NOT_FOUND;
    if (!old.dir || (new.inode &&new.inode->is_dir != old.inode->is_dir))
        return ERR_IO;
    if (new.inode &&new.inode->is_dir &&new.inode->now_names.n > 0)
        return ERR_NOT_EMPTY;
    if (new.inode != old.inode)
        change_names(fs, old.dir, old.name, new.dir, new.name, old.inode);
    return ERR_NONE;
}

enum err sim__fs_link(struct sim_fs *fs, const char *from, const char *to)
{
    struct sim_inode *inode = sim__fs_find(fs, from);
    struct place at;
    enum err err = find_place(fs, to, &at);

    if (!inode)
        return ERR_NOT_FOUND;
    if (err)
        return err;
    if (at.inode)
        return ERR_EXISTS;
    if (inode->is_dir)
        return ERR_ACCESS;
    change_names(fs, NULL, NULL, at.dir, at.name, inode);
    return ERR_NONE;
}

/* ---- birth and death -------------------------------------------------------------------- */

void sim__fs_init(struct sim_fs *fs, struct sim_world *w)
{
    *fs = (struct sim_fs){.world = w};
    list_init(&fs->inodes);
    list_init(&fs->journal);
    fs->root = sim__inode_new(fs, true);
}

void sim__fs_fini(struct sim_fs *fs)
{
    while (!list_is_empty(&fs->journal))
        sim__rename_free(LIST_FIRST(&fs->journal, struct sim_rename, node));
    sim__inode_unref(fs->root);
}
