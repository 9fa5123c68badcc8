/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_KEEPER_INT_H
#define SL_KEEPER_KEEPER_INT_H

#include "keeper/keeper.h"

/* What every implementation has in common; each embeds struct keeper in its own session. */

enum keeper_read_kind {
    KEEPER_READ_GET = 0,
    KEEPER_READ_CHILDREN = 1,
    KEEPER_READ_EXISTS = 2,
};

struct keeper_vtable {
    void (*read)(struct keeper *k, enum keeper_read_kind kind, const char *path,
                 struct keeper_watch *watch, struct keeper_call *call);
    void (*multi)(struct keeper *k, struct keeper_op *ops, int op_count, struct keeper_call *call);
    void (*unwatch)(struct keeper *k, struct keeper_watch *watch); /* one that is armed */
    void (*close)(struct keeper *k, void (*done)(void *ctx), void *ctx);
    void (*release)(struct keeper *k); /* keeper_free; NULL: not needed */
};

struct keeper {
    const struct keeper_vtable *vtable;
    struct io_loop *loop;
    const struct keeper_events *events;
    void *ctx;
    int64_t session_id;
};

#endif
