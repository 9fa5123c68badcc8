/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_LIST_H
#define SL_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

/*
 * Intrusive doubly linked list with a dummy head. A node belongs to at most one list; a node that
 * is on none points to itself (list_init), so removal is harmless twice and list_is_linked tells.
 */
struct list {
    struct list *next;
    struct list *prev;
};

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_is_empty(const struct list *l)
{
    return l->next == l;
}

static inline bool list_is_linked(const struct list *node)
{
    return node->next != node;
}

static inline void list_insert_before(struct list *at, struct list *node)
{
    node->next = at;
    node->prev = at->prev;
    at->prev->next = node;
    at->prev = node;
}

static inline void list_push_back(struct list *l, struct list *node)
{
    list_insert_before(l, node);
}

static inline void list_push_front(struct list *l, struct list *node)
{
    list_insert_before(l->next, node);
}

static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* The first node, removed; NULL when the list is empty. */
static inline struct list *list_pop_front(struct list *l)
{
    struct list *node = l->next;

    if (node == l)
        return NULL;
    list_remove(node);
    return node;
}

/* Moves all of `from` behind the last node of `to`. */
static inline void list_splice_back(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)

#define LIST_FIRST(l, type, member) (list_is_empty(l) ? NULL : LIST_ENTRY((l)->next, type, member))

#define LIST_EACH(node, l) for (struct list *node = (l)->next; node != (l); node = node->next)

/* The node may be removed from the list in the body. */
#define LIST_EACH_SAFE(node, l)                                                                    \
    for (struct list *node = (l)->next, *node##_next = node->next; node != (l);                    \
         node = node##_next, node##_next = node->next)

#endif
