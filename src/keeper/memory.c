/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree in memory, shared by the sessions of one test or one simulated world. Nothing has to be
 * durable, so every report may be told at once; what is left of an implementation is who owns the
 * tree and which sessions there are. All loops run on one thread, so a multi of one session may
 * fire the watches of another directly.
 *
 * A session whose process was killed stays, with its ephemeral nodes, until the test expires it:
 * that is what a real service does until the session times out.
 */
#include "keeper/keeper.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "keeper/session_int.h"

struct keeper_memory {
    struct tree tree;
    struct list sessions;
    int64_t last_session_id;
};

struct memory_session {
    struct session session;
    struct list node; /* in keeper_memory.sessions */
};

static struct memory_session *memory_session_of(struct keeper *k)
{
    return CONTAINER_OF(k, struct memory_session, session.keeper);
}

static void memory_multi(struct keeper *k, struct keeper_op *ops, int op_count,
                         struct keeper_call *call)
{
    struct session *s = &memory_session_of(k)->session;
    struct list fired;
    bool is_lost = s->loses_next && !s->over;
    bool has_changed = session_multi(s, ops, op_count, call, &fired);

    session_multi_end(s, call, has_changed, &fired);
    if (is_lost)
        session_lose_answers(s);
}

static void memory_close(struct keeper *k, void (*done)(void *ctx), void *ctx)
{
    session_close(&memory_session_of(k)->session, done, ctx);
}

static void memory_gone(struct session *s)
{
    struct memory_session *m = CONTAINER_OF(s, struct memory_session, session);

    list_remove(&m->node);
    free(m);
}

static void memory_release(struct keeper *k)
{
    struct session *s = &memory_session_of(k)->session;

    session_leave(s);
    memory_gone(s);
}

static const struct keeper_vtable memory_vtable = {
    .read = session_read,
    .multi = memory_multi,
    .unwatch = session_unwatch,
    .close = memory_close,
    .release = memory_release,
};

struct keeper_memory *keeper_memory_new(void)
{
    struct keeper_memory *m = xcalloc(1, sizeof(*m));

    tree_init(&m->tree);
    list_init(&m->sessions);
    return m;
}

void keeper_memory_free(struct keeper_memory *m)
{
    struct list *l;

    tree_fini(&m->tree); /* Its nodes stand in lists of their sessions. */
    while ((l = list_pop_front(&m->sessions)))
        free(LIST_ENTRY(l, struct memory_session, node));
    free(m);
}

struct keeper *keeper_memory_open(struct keeper_memory *m, struct io_loop *loop,
                                  const struct keeper_events *events, void *ctx)
{
    struct memory_session *s = xcalloc(1, sizeof(*s));

    session_init(&s->session, &memory_vtable, &m->tree, ++m->last_session_id);
    s->session.gone = memory_gone;
    list_push_back(&m->sessions, &s->node);
    session_begin(&s->session, loop, events, ctx);
    return &s->session.keeper;
}

struct keeper *keeper_memory_find(struct keeper_memory *m, int64_t session_id)
{
    LIST_EACH (node, &m->sessions) {
        struct memory_session *s = LIST_ENTRY(node, struct memory_session, node);

        if (s->session.keeper.session_id == session_id)
            return &s->session.keeper;
    }
    return NULL;
}

void keeper_memory_lose_answers(struct keeper *k)
{
    assert(k->vtable == &memory_vtable);
    session_lose_answers(&memory_session_of(k)->session);
}

void keeper_memory_lose_request(struct keeper *k)
{
    assert(k->vtable == &memory_vtable);
    memory_session_of(k)->session.loses_next = true;
}

void keeper_memory_cut_off(struct keeper *k)
{
    assert(k->vtable == &memory_vtable);
    session_cut_off(&memory_session_of(k)->session);
}

void keeper_memory_reach(struct keeper *k)
{
    assert(k->vtable == &memory_vtable);
    session_reach(&memory_session_of(k)->session);
}

void keeper_memory_expire(struct keeper *k)
{
    assert(k->vtable == &memory_vtable);
    session_expire(&memory_session_of(k)->session);
}
