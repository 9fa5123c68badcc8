/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a power cut leaves of a disk.
 *
 * Everything synced is there. Of the rest, by choice:
 *  - names: each directory keeps its changes up to some moment, in order; a rename between two
 *    directories happened in both or in neither;
 *  - sizes: each file keeps its changes of size up to some moment, in order;
 *  - data: each write is kept, dropped, or torn at sectors of 512 bytes, in any combination and
 *    independently of the size: a kept write behind the end is cut off, a lost one inside reads as
 *    zero (or as what was there before).
 * Real disks and file systems do less harm than that, each in its own way; the log has to survive
 * all of them. One choice in front makes the two likely cases frequent: all of it, none of it.
 */
#include <string.h>

#include "base/assert.h"
#include "io/sim/sim_int.h"

#define SECTOR_BYTES 512

enum harm { HARM_NONE = 0, HARM_TOTAL, HARM_MIXED, HARM_MIXED_TOO, HARMS };

static uint32_t lost_of(struct sim_fs *fs, enum harm harm, enum sim_choice kind, uint32_t n)
{
    if (harm == HARM_NONE)
        return 0;
    return harm == HARM_TOTAL ? n : sim_choose(fs->world, kind, n + 1);
}

/* ---- names ------------------------------------------------------------------------------ */

static void choose_names(struct sim_fs *fs, enum harm harm)
{
    LIST_EACH (node, &fs->inodes) {
        struct sim_inode *dir = LIST_ENTRY(node, struct sim_inode, node);
        uint32_t n = dir->journal_count;

        dir->journal_keep = n - (n > 0 ? lost_of(fs, harm, SIM_LOST_NAMES, n) : 0);
    }
}

/* Counts one change of the directory; whether it is among those that are kept. */
static bool keeps(struct sim_inode *dir)
{
    if (!dir)
        return true;
    if (dir->journal_keep == 0)
        return false;
    dir->journal_keep--;
    return true;
}

static void crash_names(struct sim_fs *fs)
{
    LIST_EACH_SAFE (node, &fs->journal) {
        struct sim_rename *r = LIST_ENTRY(node, struct sim_rename, node);
        bool from = keeps(r->from);
        bool to = keeps(r->to);

        if (from && to) {
            sim__rename_apply(r, true);
        } else {
            sim__event(fs->world, SIM_EV_LOST, NULL, r->to_name ? r->to_name : r->from_name, 0);
            if (r->from)
                r->from->journal_keep = 0;
            if (r->to)
                r->to->journal_keep = 0;
        }
        sim__rename_free(r);
    }
}

/* ---- contents --------------------------------------------------------------------------- */

static uint32_t count_resizes(const struct sim_inode *inode)
{
    uint32_t n = 0;

    LIST_EACH (node, &inode->changes) {
        const struct sim_change *c = LIST_ENTRY(node, struct sim_change, node);

        n += c->size_after != c->size_before;
    }
    return n;
}

static void keep_bytes(struct sim_content *to, const struct sim_change *c, int64_t from,
                       int64_t end)
{
    if (to->size < end)
        sim__content_resize(to, end);
    memcpy(to->p + from, c->data + (from - c->pos), (size_t)(end - from));
}

static void tear(struct sim_world *w, struct sim_content *to, const struct sim_change *c)
{
    int64_t end = c->pos + (int64_t)c->n;
    int64_t next;

    sim__event(w, SIM_EV_TORN, NULL, "write", c->pos);
    for (int64_t at = c->pos; at < end; at = next) {
        next = MIN(end, (at / SECTOR_BYTES + 1) * SECTOR_BYTES);
        if (sim_choose(w, SIM_LOST_SECTOR, 2) == 0)
            keep_bytes(to, c, at, next);
    }
}

static void crash_write(struct sim_inode *inode, const struct sim_change *c, enum harm harm)
{
    struct sim_world *w = inode->fs->world;

    switch (lost_of(inode->fs, harm, SIM_LOST_DATA, 2)) {
    case 0: keep_bytes(&inode->disk, c, c->pos, c->pos + (int64_t)c->n); break;
    case 1: tear(w, &inode->disk, c); break;
    default: sim__event(w, SIM_EV_LOST, NULL, "write", c->pos); break;
    }
}

/*
 * `disk` grows beyond the file's size while writes are kept there, and is cut to the size that
 * survived at the end. A truncation that survived takes what was behind it.
 */
static void crash_content(struct sim_inode *inode, enum harm harm)
{
    uint32_t n = count_resizes(inode);
    uint32_t keep = n - (n > 0 ? lost_of(inode->fs, harm, SIM_LOST_SIZES, n) : 0);
    int64_t size = inode->disk.size;

    while (!list_is_empty(&inode->changes)) {
        struct sim_change *c = LIST_FIRST(&inode->changes, struct sim_change, node);

        if (c->size_after != c->size_before && keep > 0) {
            keep--;
            size = c->size_after;
            if (size < inode->disk.size && !c->is_write)
                sim__content_resize(&inode->disk, size);
        }
        if (c->is_write)
            crash_write(inode, c, harm);
        sim__change_free(c);
    }
    sim__content_resize(&inode->disk, size);
}

/* ---- all of it -------------------------------------------------------------------------- */

static void reload(struct sim_inode *inode)
{
    inode->reserved = 0;
    inode->locked_by = NULL;
    sim__content_copy(&inode->now, &inode->disk);
    inode->fs->used += inode->now.size;
}

void sim__fs_power_cut(struct sim_fs *fs)
{
    enum harm harm = sim_choose(fs->world, SIM_LOST_DATA, HARMS);

    choose_names(fs, harm);
    crash_names(fs);
    LIST_EACH (node, &fs->inodes)
        crash_content(LIST_ENTRY(node, struct sim_inode, node), harm);
    LIST_EACH_SAFE (node, &fs->inodes) {
        /* Losing its last name may free an inode: hold those that are looked at. */
        sim__inode_ref(LIST_ENTRY(node, struct sim_inode, node));
    }
    LIST_EACH (node, &fs->inodes) {
        struct sim_inode *inode = LIST_ENTRY(node, struct sim_inode, node);

        sim__names_copy(&inode->now_names, &inode->disk_names);
    }
    fs->used = 0;
    LIST_EACH (node, &fs->inodes)
        reload(LIST_ENTRY(node, struct sim_inode, node));
    LIST_EACH_SAFE (node, &fs->inodes)
        sim__inode_unref(LIST_ENTRY(node, struct sim_inode, node));
}
