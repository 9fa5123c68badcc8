/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who watches what of a tree that is elsewhere.
 *
 * The service, and the client in front of it, know only that a path is watched. Who watches it is
 * here, so that a watch can be taken back without asking anybody, and so that several watches of a
 * path are one for the service. An event for which nobody waits any more finds nothing.
 *
 * A watch is in the table from the call on which it was given, but no event is for it before the
 * call's answer: what the service said earlier concerned watches that were set earlier.
 */
#include "keeper/watches_int.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

enum watch_kind { /* in keeper_watch._report.kind */
                  WATCH_UNARMED = 0,
                  WATCH_OF_NODE = 1,
                  WATCH_OF_CHILDREN = 2,
};

struct watch_place {
    char *path;          /* owned; the watches' _path is this one */
    struct list watches; /* by keeper_watch._node */
    UT_hash_handle hh;
};

static struct watch_place *find(struct watch_table *t, const char *path)
{
    struct watch_place *p;

    HASH_FIND_STR(t->by_path, path, p);
    return p;
}

static struct watch_place *find_or_add(struct watch_table *t, const char *path)
{
    struct watch_place *p = find(t, path);

    if (p)
        return p;
    p = xcalloc(1, sizeof(*p));
    p->path = xstrdup(path);
    list_init(&p->watches);
    HASH_ADD_KEYPTR(hh, t->by_path, p->path, strlen(p->path), p);
    return p;
}

static void free_if_empty(struct watch_table *t, struct watch_place *p)
{
    if (!list_is_empty(&p->watches))
        return;
    HASH_DEL(t->by_path, p);
    free(p->path);
    free(p);
}

void watches_add(struct watch_table *t, struct keeper_watch *w, const char *path)
{
    struct watch_place *p = find_or_add(t, path);

    w->_path = p->path;
    w->_report.kind = WATCH_UNARMED;
    list_push_back(&p->watches, &w->_node);
}

void watches_arm(struct keeper_watch *w, bool of_children)
{
    assert(w->_path);
    w->_report.kind = of_children ? WATCH_OF_CHILDREN : WATCH_OF_NODE;
}

static void give_back(struct keeper_watch *w)
{
    w->_path = NULL;
    w->_keeper = NULL;
}

void watches_remove(struct watch_table *t, struct keeper_watch *w)
{
    struct watch_place *p = w->_path ? find(t, w->_path) : NULL;

    list_remove(&w->_node);
    give_back(w);
    if (p)
        free_if_empty(t, p);
}

static void fire_kind(struct watch_place *p, enum watch_kind which, enum keeper_event_kind kind,
                      struct list *fired)
{
    LIST_EACH_SAFE (l, &p->watches) {
        struct keeper_watch *w = LIST_ENTRY(l, struct keeper_watch, _node);

        if (w->_report.kind != (int)which)
            continue;
        list_remove(&w->_node);
        list_push_back(fired, &w->_node);
        w->_path = NULL;
        w->_event = kind;
    }
}

void watches_fire(struct watch_table *t, const char *path, enum keeper_event_kind kind,
                  struct list *fired)
{
    struct watch_place *p = find(t, path);

    if (!p)
        return;
    if (kind != KEEPER_CHILDREN_CHANGED)
        fire_kind(p, WATCH_OF_NODE, kind, fired);
    if (kind == KEEPER_CHILDREN_CHANGED || kind == KEEPER_NODE_DELETED)
        fire_kind(p, WATCH_OF_CHILDREN, kind, fired);
    free_if_empty(t, p);
}

void watches_drop(struct watch_table *t)
{
    struct watch_place *p, *next;
    struct list *l;

    HASH_ITER (hh, t->by_path, p, next) {
        while ((l = list_pop_front(&p->watches)))
            give_back(LIST_ENTRY(l, struct keeper_watch, _node));
        free_if_empty(t, p);
    }
}
