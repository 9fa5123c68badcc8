/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference-counted memory. Bytes of a socket live in one such piece from the moment they arrive
 * until the last response that quotes them has been sent, and several threads may hold it. The
 * budget is charged for the whole life, so that "too much is held" is one comparison anywhere.
 *
 * Invariant: refs > 0 while anybody may look at the buffer; who holds a reference may make more.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/io.h"

struct io_buf *io_buf_new(struct io_budget *budget, size_t size)
{
    struct io_buf *b;

    assert(size <= PTRDIFF_MAX - sizeof(*b));
    b = xmalloc(sizeof(*b) + size);
    b->refs = 1;
    b->size = size;
    b->budget = budget;
    if (budget)
        atomic_fetch_add_explicit(&budget->used, (int64_t)size, memory_order_relaxed);
    return b;
}

struct io_buf *io_buf_ref(struct io_buf *b)
{
    int32_t before = atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);

    assert(before > 0);
    return b;
}

void io_buf_unref(struct io_buf *b)
{
    int32_t before;

    if (!b)
        return;
    /* Release: our last look at the bytes is over. Acquire: so is everyone's, if we free. */
    before = atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    if (b->budget)
        atomic_fetch_sub_explicit(&b->budget->used, (int64_t)b->size, memory_order_relaxed);
    free(b);
}
