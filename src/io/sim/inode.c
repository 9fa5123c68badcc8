/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: two contents and the list of changes that lead from one to the other.
 *
 * Invariant: applying `changes` in order to `disk` gives `now`, until a sync has failed. After a
 * failed sync the changes are gone but `now` still shows them, as a page cache does that marks
 * failed pages clean: the next sync succeeds and the bytes are nowhere.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/fs_int.h"

/* ---- contents --------------------------------------------------------------------------- */

void sim__content_resize(struct sim_content *c, int64_t size)
{
    assert(size >= 0);
    if (size > c->cap) {
        c->cap = MAX(size, MAX(2 * c->cap, (int64_t)256));
        c->p = xrealloc(c->p, (size_t)c->cap);
    }
    if (size > c->size)
        memset(c->p + c->size, 0, (size_t)(size - c->size));
    c->size = size;
}

void sim__content_copy(struct sim_content *to, const struct sim_content *from)
{
    to->size = 0;
    sim__content_resize(to, from->size);
    if (from->size > 0)
        memcpy(to->p, from->p, (size_t)from->size);
}

static void apply(struct sim_content *to, const struct sim_change *c)
{
    sim__content_resize(to, c->size_after);
    if (c->n > 0)
        memcpy(to->p + c->pos, c->data, c->n);
}

/* ---- life ------------------------------------------------------------------------------- */

struct sim_inode *sim__inode_new(struct sim_fs *fs, bool is_dir)
{
    struct sim_inode *inode = xcalloc(1, sizeof(*inode));

    inode->fs = fs;
    inode->refs = 1;
    inode->is_dir = is_dir;
    list_init(&inode->changes);
    list_push_back(&fs->inodes, &inode->node);
    return inode;
}

struct sim_inode *sim__inode_ref(struct sim_inode *inode)
{
    inode->refs++;
    return inode;
}

static int64_t blocks(const struct sim_inode *inode)
{
    return MAX(inode->now.size, inode->reserved);
}

static void changes_clear(struct sim_inode *inode)
{
    while (!list_is_empty(&inode->changes))
        sim__change_free(LIST_FIRST(&inode->changes, struct sim_change, node));
}

/* Freeing a directory frees what only it holds: as deep as the tree, which is shallow. */
void sim__inode_unref(struct sim_inode *inode)
{
    assert(inode->refs > 0);
    if (--inode->refs > 0)
        return;
    list_remove(&inode->node);
    sim__names_clear(&inode->now_names);
    sim__names_clear(&inode->disk_names);
    changes_clear(inode);
    inode->fs->used -= blocks(inode);
    free(inode->now.p);
    free(inode->disk.p);
    free(inode);
}

void sim__change_free(struct sim_change *c)
{
    list_remove(&c->node);
    free(c);
}

/* ---- changes ---------------------------------------------------------------------------- */

static void change(struct sim_inode *inode, struct sim_change *c)
{
    int64_t before = blocks(inode);

    c->size_before = inode->now.size;
    list_push_back(&inode->changes, &c->node);
    apply(&inode->now, c);
    inode->fs->used += blocks(inode) - before;
}

void sim__inode_write(struct sim_inode *inode, const void *p, size_t n, int64_t pos)
{
    struct sim_change *c;

    if (n == 0)
        return;
    c = xmalloc(sizeof(*c) + n);
    *c = (struct sim_change){.is_write = true, .pos = pos, .n = n};
    c->size_after = MAX(inode->now.size, pos + (int64_t)n);
    memcpy(c->data, p, n);
    change(inode, c);
}

void sim__inode_resize(struct sim_inode *inode, int64_t size)
{
    struct sim_change *c;
    int64_t before = blocks(inode);

    inode->reserved = MIN(inode->reserved, size);
    inode->fs->used += blocks(inode) - before;
    if (size == inode->now.size)
        return;
    c = xcalloc(1, sizeof(*c));
    c->size_after = size;
    change(inode, c);
}

int64_t sim__inode_growth(const struct sim_inode *inode, int64_t end)
{
    return MAX(end - blocks(inode), 0);
}

void sim__inode_reserve(struct sim_inode *inode, int64_t end)
{
    inode->fs->used += sim__inode_growth(inode, end);
    inode->reserved = MAX(inode->reserved, end);
}

size_t sim__inode_read(const struct sim_inode *inode, void *p, size_t n, int64_t pos)
{
    int64_t left = inode->now.size - pos;

    if (left <= 0)
        return 0;
    n = MIN(n, (size_t)left);
    memcpy(p, inode->now.p + pos, n);
    return n;
}

void sim__inode_sync(struct sim_inode *inode)
{
    LIST_EACH (node, &inode->changes)
        apply(&inode->disk, LIST_ENTRY(node, struct sim_change, node));
    changes_clear(inode);
}

void sim__inode_forget(struct sim_inode *inode)
{
    changes_clear(inode);
}
