/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_SIM_FS_INT_H
#define SL_IO_SIM_FS_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

/*
 * A file system that knows two states of everything: `now`, what processes see, and `disk`, what a
 * power cut cannot take away. Between them lie the changes in the order in which they were made:
 * of a file's content and size with the file, of names in the journal. A sync carries changes over
 * from one state to the other; a power cut chooses among those that are left (crash.c).
 *
 * No faults and no waiting here: disk.c puts them in front.
 */

struct io;
struct sim_world;

struct sim_content {
    uint8_t *p;
    int64_t size; /* what is behind it reads as zero when the size grows */
    int64_t cap;
};

struct sim_entry {
    char *name;
    struct sim_inode *inode; /* a reference */
};

struct sim_names {
    struct sim_entry *v; /* sorted by bytes */
    size_t n;
    size_t cap;
};

struct sim_inode {
    struct sim_fs *fs;
    struct list node; /* fs->inodes, oldest first */
    int refs;         /* names in either state, journal, open files */
    bool is_dir;
    int64_t mtime_ms;
    /* file */
    struct sim_content now;
    struct sim_content disk;
    struct list changes;  /* struct sim_change: not synced */
    int64_t reserved;     /* end of the reservation */
    struct io *locked_by; /* NULL: nobody */
    /* directory */
    struct sim_names now_names;
    struct sim_names disk_names;
    uint32_t journal_count; /* places of journal entries in it: two for a rename inside it */
    uint32_t journal_keep;  /* at a power cut: how many of them survive */
};

struct sim_change {
    struct list node;
    bool is_write; /* else a truncation */
    int64_t pos;
    int64_t size_before;
    int64_t size_after;
    size_t n;
    uint8_t data[];
};

/* A change of names. A rename over directories touches two and is atomic. */
struct sim_rename {
    struct list node;
    struct sim_inode *inode; /* what gets the new name; NULL: a plain removal */
    struct sim_inode *from;  /* directory that loses a name; NULL: none does */
    struct sim_inode *to;    /* directory that gets one; NULL: none does */
    char *from_name;
    char *to_name;
};

struct sim_fs {
    struct sim_world *world;
    struct sim_inode *root;
    struct list inodes;
    struct list journal;
    int64_t used; /* bytes of all files, with reservations */
};

void sim__fs_init(struct sim_fs *fs, struct sim_world *w);
void sim__fs_fini(struct sim_fs *fs);
/* Chooses what is left of the changes; then `now` is what is on the disk. */
void sim__fs_power_cut(struct sim_fs *fs);

/* Names. Paths are split at '/', and start at the root even without one. */
struct sim_inode *sim__fs_find(struct sim_fs *fs, const char *path);
must_use enum err sim__fs_create(struct sim_fs *fs, const char *path, bool is_dir,
                                 struct sim_inode **out);
must_use enum err sim__fs_remove(struct sim_fs *fs, const char *path, bool is_dir);
must_use enum err sim__fs_rename(struct sim_fs *fs, const char *from, const char *to);
must_use enum err sim__fs_link(struct sim_fs *fs, const char *from, const char *to);
void sim__fs_sync_dir(struct sim_inode *dir);
/* Applies to one of the two states. */
void sim__rename_apply(const struct sim_rename *r, bool to_disk);
/* Takes it off the journal and frees it. */
void sim__rename_free(struct sim_rename *r);
/* The same names, with references. */
void sim__names_copy(struct sim_names *to, const struct sim_names *from);
void sim__names_clear(struct sim_names *names);

/* Contents. */
struct sim_inode *sim__inode_new(struct sim_fs *fs, bool is_dir);
struct sim_inode *sim__inode_ref(struct sim_inode *inode);
void sim__inode_unref(struct sim_inode *inode);
/* Bytes that a write of n at pos, or a reservation, would take beyond what the file has. */
int64_t sim__inode_growth(const struct sim_inode *inode, int64_t end);
void sim__inode_write(struct sim_inode *inode, const void *p, size_t n, int64_t pos);
void sim__inode_resize(struct sim_inode *inode, int64_t size);
void sim__inode_reserve(struct sim_inode *inode, int64_t end);
size_t sim__inode_read(const struct sim_inode *inode, void *p, size_t n, int64_t pos);
void sim__inode_sync(struct sim_inode *inode);
/* A failed sync: the changes are forgotten and will never reach the disk. */
void sim__inode_forget(struct sim_inode *inode);
void sim__change_free(struct sim_change *c);
/* New bytes are zero. */
void sim__content_resize(struct sim_content *c, int64_t size);
void sim__content_copy(struct sim_content *to, const struct sim_content *from);

#endif
