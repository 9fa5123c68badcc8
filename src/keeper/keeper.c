/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of keeper.h, handed to the implementation that made the keeper. Here is only what is
 * the same for all: a call begins without results, and gives them back in one place.
 */
#include "keeper/keeper.h"

#include <stdlib.h>

#include "base/assert.h"
#include "keeper/keeper_int.h"

static void call_begin(struct keeper_call *call)
{
    assert(call->done);
    call->err = ERR_NONE;
    call->data = bytes_null();
    call->children = NULL;
    call->children_count = 0;
    call->stat = (struct keeper_stat){0};
    call->failed_op = -1;
    call->_created = NULL;
    call->_created_count = 0;
}

static void read_begin(struct keeper *k, enum keeper_read_kind kind, const char *path,
                       struct keeper_watch *watch, struct keeper_call *call)
{
    assert(IMPLIES(watch, !watch->_keeper));
    assert(IMPLIES(watch, watch->fired));
    call_begin(call);
    k->vtable->read(k, kind, path, watch, call);
}

void keeper_get(struct keeper *k, const char *path, struct keeper_watch *watch,
                struct keeper_call *call)
{
    read_begin(k, KEEPER_READ_GET, path, watch, call);
}

void keeper_children(struct keeper *k, const char *path, struct keeper_watch *watch,
                     struct keeper_call *call)
{
    read_begin(k, KEEPER_READ_CHILDREN, path, watch, call);
}

void keeper_exists(struct keeper *k, const char *path, struct keeper_watch *watch,
                   struct keeper_call *call)
{
    read_begin(k, KEEPER_READ_EXISTS, path, watch, call);
}

void keeper_multi(struct keeper *k, struct keeper_op *ops, int op_count, struct keeper_call *call)
{
    assert(op_count > 0);
    call_begin(call);
    k->vtable->multi(k, ops, op_count, call);
}

void keeper_unwatch(struct keeper *k, struct keeper_watch *watch)
{
    if (!watch->_keeper)
        return;
    assert(watch->_keeper == k);
    k->vtable->unwatch(k, watch);
}

void keeper_call_release(struct keeper_call *call)
{
    free((void *)(uintptr_t)call->data.p);
    call->data = bytes_null();
    for (int i = 0; i < call->children_count; i++)
        free(call->children[i]);
    free(call->children);
    call->children = NULL;
    call->children_count = 0;
    for (int i = 0; i < call->_created_count; i++)
        free(call->_created[i]);
    free(call->_created);
    call->_created = NULL;
    call->_created_count = 0;
}

int64_t keeper_session_id(const struct keeper *k)
{
    return k->session_id;
}

void keeper_close(struct keeper *k, void (*done)(void *ctx), void *ctx)
{
    k->vtable->close(k, done, ctx);
}

void keeper_free(struct keeper *k)
{
    assert(k->vtable->release);
    k->vtable->release(k);
}
