/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference-counted memory. Bytes of a socket live in one such piece from the moment they arrive
 * until the last response that quotes them has been sent, and several threads may hold it. The
 * budget is charged for the whole life, so that "too much is held" is one comparison anywhere.
 *
 * Large buffers are used again: fresh memory of a megabyte costs a page fault for each page, as
 * much CPU as receiving it. A few wait in the budget, in slots that a thread empties or fills by
 * one atomic exchange, so that whoever has taken a buffer out of a slot has it alone. The slots
 * are given back by io_budget_trim. Under the address sanitizer what waits is poisoned, and so is
 * what a buffer has beyond its size.
 *
 * Invariant: refs > 0 while anybody may look at the buffer; who holds a reference may make more.
 */
#include <sanitizer/asan_interface.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/io.h"

#define STEP_BYTES (64 * 1024) /* large buffers are multiples of it */
#define LARGE_BYTES_MIN (64 * 1024)
#define LARGE_BYTES_MAX                                                                            \
    (1024 * 1024 + STEP_BYTES) /* a batch of a megabyte and what is around it                      \
                                */

/* ---- buffers that wait ------------------------------------------------------------------- */

static bool is_large(size_t size)
{
    return size >= LARGE_BYTES_MIN && size <= LARGE_BYTES_MAX;
}

/* False when all slots are taken. */
static bool keep(struct io_budget *budget, struct io_buf *b)
{
    for (int i = 0; i < IO_SPARE_BUFS; i++) {
        struct io_buf *empty = NULL;

        if (atomic_compare_exchange_strong(&budget->_spare[i], &empty, b))
            return true;
    }
    return false;
}

/* One that has room for the size and is not much too large; NULL when there is none. */
static struct io_buf *take_spare(struct io_budget *budget, size_t size)
{
    for (int i = 0; i < IO_SPARE_BUFS; i++) {
        struct io_buf *b = NULL;

        if (atomic_load_explicit(&budget->_spare[i], memory_order_relaxed))
            b = atomic_exchange(&budget->_spare[i], NULL);
        if (b && b->_capacity >= size && b->_capacity / 4 <= size)
            return b;
        if (b && !keep(budget, b))
            free(b);
    }
    return NULL;
}

void io_budget_trim(struct io_budget *budget)
{
    for (int i = 0; i < IO_SPARE_BUFS; i++)
        free(atomic_exchange(&budget->_spare[i], NULL));
}

/* ---- buffers ----------------------------------------------------------------------------- */

static struct io_buf *allocate(struct io_budget *budget, size_t size)
{
    bool reusable = budget && is_large(size);
    size_t capacity = reusable ? (size + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES : size;
    struct io_buf *b = reusable ? take_spare(budget, size) : NULL;

    assert(size <= PTRDIFF_MAX - sizeof(*b));
    if (!b) {
        b = xmalloc(sizeof(*b) + capacity);
        b->_capacity = capacity;
    }
    ASAN_POISON_MEMORY_REGION(b->data, b->_capacity);
    ASAN_UNPOISON_MEMORY_REGION(b->data, size);
    return b;
}

static void release(struct io_buf *b)
{
    ASAN_POISON_MEMORY_REGION(b->data, b->_capacity);
    if (!b->budget || !is_large(b->_capacity) || !keep(b->budget, b))
        free(b);
}

struct io_buf *io_buf_new(struct io_budget *budget, size_t size)
{
    struct io_buf *b = allocate(budget, size);

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
    release(b);
}
