/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_SQLITE_INT_H
#define SL_KEEPER_SQLITE_INT_H

#include <sqlite3.h>

#include "io/io.h"

/*
 * SQLite's way to files, by io_file_*: calls block. One for each database; threads may take turns.
 * The database is in exclusive locking mode, so there are no locks and no shared memory.
 *
 * The first write, sync or truncation that fails is remembered, and every later one fails too:
 * what the kernel says after a failed sync is not to be believed.
 */
struct sqlite_vfs;

/* Registers it with SQLite, as the default: SQLite's own entropy then comes from io as well. */
struct sqlite_vfs *sqlite_vfs_new(struct io *io);
/* Every database must have been closed. */
void sqlite_vfs_free(struct sqlite_vfs *v);
/* For sqlite3_open_v2. */
const char *sqlite_vfs_name(const struct sqlite_vfs *v);
/* The first failure of any call; ERR_NONE: there was none. */
enum err sqlite_vfs_err(const struct sqlite_vfs *v);

#endif
