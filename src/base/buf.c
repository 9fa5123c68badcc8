/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable run of bytes. Growth doubles, so that appending n bytes one by one costs O(n) copies;
 * the size is checked for overflow before any arithmetic on it, like every size in this program.
 */
#include "base/buf.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

#define BUF_FIRST_BYTES 64

void buf_init(struct buf *b)
{
    *b = (struct buf){0};
}

void buf_fini(struct buf *b)
{
    free(b->p);
    *b = (struct buf){0};
}

void buf_reset(struct buf *b)
{
    b->n = 0;
}

uint8_t *buf_reserve(struct buf *b, size_t extra)
{
    size_t need;

    assert(extra <= SIZE_MAX / 4 && b->n <= SIZE_MAX / 4);
    need = b->n + extra;
    if (need > b->cap || b->p == NULL) {
        b->cap = MAX(MAX(need, 2 * b->cap), (size_t)BUF_FIRST_BYTES);
        b->p = xrealloc(b->p, b->cap);
    }
    return b->p + b->n;
}

uint8_t *buf_extend(struct buf *b, size_t extra)
{
    uint8_t *p = buf_reserve(b, extra);

    b->n += extra;
    return p;
}

void buf_append(struct buf *b, const void *p, size_t n)
{
    if (n > 0)
        memcpy(buf_extend(b, n), p, n);
}

struct bytes buf_bytes(const struct buf *b, size_t from)
{
    assert(from <= b->n && b->n - from <= INT32_MAX);
    return (struct bytes){.p = b->p + from, .n = (int32_t)(b->n - from)};
}
