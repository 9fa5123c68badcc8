/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_ARENA_H
#define SL_BASE_ARENA_H

#include <stddef.h>

#include "base/bytes.h"

/*
 * Memory of one lifetime, for instance one request: allocate at will, reset once. Blocks grow by
 * doubling from a small first one; reset keeps the first block for reuse and frees the others.
 * Memory is aligned for any type. One thread at a time; an arena may move between threads.
 *
 * `limit` bounds the bytes handed out between resets (0 = no limit): arena_alloc returns NULL
 * beyond it, which is how a peer's message is kept from costing more than its budget.
 */
struct arena {
    struct arena_block *blocks; /* newest first */
    char *next;
    char *end;
    size_t used;  /* bytes handed out since the last reset */
    size_t limit; /* bytes; 0 = none */
};

void arena_init(struct arena *a, size_t limit);
void arena_fini(struct arena *a);
void arena_reset(struct arena *a);

/* NULL only beyond the limit. */
void *arena_alloc(struct arena *a, size_t size);
/* Zeroed; NULL only beyond the limit, or when count * size overflows. */
void *arena_calloc(struct arena *a, size_t count, size_t size);

/* Copies into the arena. They are for our own strings: the arena must have room (asserted). */
struct str arena_str(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *fmt, ...) printf_like(2, 3);

#endif
