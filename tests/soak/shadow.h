/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SOAK_SHADOW_H
#define TESTS_SOAK_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * A shadow is what a disk would still have after a power cut: of a tree of files the bytes that
 * were synced, and of its directories the names that were. It is a flat directory of its own:
 *
 *   root      the key of the tree's root directory
 *   f-KEY     the synced bytes of a file
 *   d-KEY     the synced names of a directory, a line each: "f KEY NAME" or "d KEY NAME"
 *
 * A KEY is the inode number and the time of its birth, since numbers are used again.
 */

#define SHADOW_KEY_BYTES 48

/* What the test asks of the disk; a file that both map. Zero: nothing. */
struct disk_control {
    int32_t write_errno;   /* what pwritev and fallocate fail with */
    int32_t sync_errno;    /* what fsync and fdatasync fail with */
    int32_t short_every;   /* each so many'th pwritev writes a part only */
    int32_t sync_delay_us; /* a sync takes so much longer */
    int64_t bitten;        /* calls that any of the first three has met */
};

/* Of the file at `path` below the descriptor `dir` (of `dir` itself with ""). False: it is gone. */
bool shadow_key(int dir, const char *path, char key[SHADOW_KEY_BYTES], mode_t *mode);

#endif
