/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Region memory: a chain of blocks of doubling size, newest first. Nothing is freed one by one;
 * the first block survives a reset, so that a connection that handles small requests never calls
 * the allocator again.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

#define ARENA_BLOCK_BYTES_MIN 1024
#define ARENA_BLOCK_BYTES_MAX (1024 * 1024)
#define ARENA_ALIGN _Alignof(max_align_t)

struct arena_block {
    struct arena_block *older;
    size_t size; /* of data */
    _Alignas(max_align_t) char data[];
};

void arena_init(struct arena *a, size_t limit)
{
    *a = (struct arena){.limit = limit};
}

static void use_block(struct arena *a, struct arena_block *b)
{
    a->blocks = b;
    a->next = b->data;
    a->end = b->data + b->size;
}

static void add_block(struct arena *a, size_t size_min)
{
    size_t size = a->blocks ? MIN(2 * a->blocks->size, ARENA_BLOCK_BYTES_MAX)
                            : ARENA_BLOCK_BYTES_MIN;
    struct arena_block *b;

    size = MAX(size, size_min);
    b = xmalloc(sizeof(*b) + size);
    b->older = a->blocks;
    b->size = size;
    use_block(a, b);
}

void arena_reset(struct arena *a)
{
    a->used = 0;
    if (!a->blocks)
        return;
    while (a->blocks->older) {
        struct arena_block *b = a->blocks;

        a->blocks = b->older;
        free(b);
    }
    use_block(a, a->blocks);
}

void arena_fini(struct arena *a)
{
    arena_reset(a);
    free(a->blocks);
    arena_init(a, a->limit);
}

void *arena_alloc(struct arena *a, size_t size)
{
    void *p;

    if (size > PTRDIFF_MAX || (a->limit && size > a->limit - MIN(a->limit, a->used)))
        return NULL;
    size = (size + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
    if (!a->blocks || (size_t)(a->end - a->next) < size)
        add_block(a, size);
    p = a->next;
    a->next += size;
    a->used += size;
    return p;
}

void *arena_calloc(struct arena *a, size_t count, size_t size)
{
    size_t total;
    void *p;

    if (__builtin_mul_overflow(count, size, &total))
        return NULL;
    p = arena_alloc(a, total);
    if (p)
        memset(p, 0, total);
    return p;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *p;

    if (s.n < 0)
        return s;
    p = arena_alloc(a, (size_t)s.n + 1);
    assert(p != NULL);
    if (s.n > 0)
        memcpy(p, s.p, (size_t)s.n);
    p[s.n] = '\0';
    return (struct str){.p = p, .n = s.n};
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args;
    int n;
    char *p;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(n >= 0);
    p = arena_alloc(a, (size_t)n + 1);
    assert(p != NULL);
    va_start(args, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, args);
    va_end(args);
    return (struct str){.p = p, .n = n};
}
