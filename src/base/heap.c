/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary heap that knows the place of every node, so that a timer can be cancelled without a
 * search. Places are 1-based: the parent of i is i / 2, and 0 can mean "not here".
 */
#include "base/heap.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

void heap_init(struct heap *h)
{
    *h = (struct heap){0};
}

void heap_fini(struct heap *h)
{
    free(h->v);
    heap_init(h);
}

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

static void place(struct heap *h, struct heap_node *node, size_t pos)
{
    h->v[pos - 1] = node;
    node->pos = pos;
}

static void sift_up(struct heap *h, struct heap_node *node, size_t pos)
{
    while (pos > 1 && before(node, h->v[pos / 2 - 1])) {
        place(h, h->v[pos / 2 - 1], pos);
        pos /= 2;
    }
    place(h, node, pos);
}

static void sift_down(struct heap *h, struct heap_node *node, size_t pos)
{
    for (;;) {
        size_t child = 2 * pos;

        if (child < h->n && before(h->v[child], h->v[child - 1]))
            child++;
        if (child > h->n || !before(h->v[child - 1], node))
            break;
        place(h, h->v[child - 1], pos);
        pos = child;
    }
    place(h, node, pos);
}

void heap_push(struct heap *h, struct heap_node *node, int64_t key)
{
    assert(node->pos == 0);
    if (h->n == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 16;
        h->v = xreallocarray(h->v, h->cap, sizeof(*h->v));
    }
    node->key = key;
    node->seq = h->seq_next++;
    h->n++;
    sift_up(h, node, h->n);
}

void heap_remove(struct heap *h, struct heap_node *node)
{
    size_t pos = node->pos;
    struct heap_node *last;

    if (pos == 0)
        return;
    assert(pos <= h->n && h->v[pos - 1] == node);
    node->pos = 0;
    last = h->v[--h->n];
    if (last == node)
        return;
    if (pos > 1 && before(last, h->v[pos / 2 - 1]))
        sift_up(h, last, pos);
    else
        sift_down(h, last, pos);
}

struct heap_node *heap_min(const struct heap *h)
{
    return h->n ? h->v[0] : NULL;
}
