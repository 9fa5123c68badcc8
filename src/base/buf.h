/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_BUF_H
#define SL_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * A growable run of bytes on the heap; it doubles as it fills, so a pointer into it dies with the
 * next call that may grow it. All zero is a valid empty buffer. One thread at a time.
 */
struct buf {
    uint8_t *p; /* owned */
    size_t n;   /* bytes in use */
    size_t cap; /* bytes allocated */
};

void buf_init(struct buf *b);
void buf_fini(struct buf *b);
/* Empties it and keeps its memory. */
void buf_reset(struct buf *b);
/* Makes room for `extra` more bytes and returns where they go; `n` stays. */
uint8_t *buf_reserve(struct buf *b, size_t extra);
/* buf_reserve, and the bytes count as used: the caller fills them in. */
uint8_t *buf_extend(struct buf *b, size_t extra);
void buf_append(struct buf *b, const void *p, size_t n);
/* What is in use from byte `from` on; borrows, until the buffer grows. At most INT32_MAX bytes. */
struct bytes buf_bytes(const struct buf *b, size_t from);

#endif
