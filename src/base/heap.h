/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_HEAP_H
#define SL_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

/*
 * Intrusive binary heap of 64-bit keys: the timers. Equal keys leave in the order in which they
 * were pushed, so that a run is repeatable. One thread.
 */
struct heap_node {
    int64_t key;
    uint64_t seq; /* set by heap_push: ties break in order of insertion */
    size_t pos;   /* 1-based place in the heap; 0 = on no heap. Zero-initialise the node */
};

struct heap {
    struct heap_node **v;
    size_t n;
    size_t cap;
    uint64_t seq_next;
};

void heap_init(struct heap *h);
void heap_fini(struct heap *h);
/* The node must be on no heap. */
void heap_push(struct heap *h, struct heap_node *node, int64_t key);
/* Harmless when the node is on no heap. */
void heap_remove(struct heap *h, struct heap_node *node);
/* The node with the smallest key; NULL when empty. */
struct heap_node *heap_min(const struct heap *h);

#endif
