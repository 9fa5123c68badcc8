/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_RECORD_TESTING_H
#define SL_RECORD_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "record/record_int.h"

/*
 * What the tests of this module share: bytes from hex text, small records, and copies of the exact
 * size on the heap, so that the address sanitizer sees a read of one byte too many.
 */

#define TS 1700000000000

static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Appends the bytes of hex text; blanks are allowed. */
static inline void put_hex(struct buf *out, const char *hex)
{
    int high = -1;

    for (; *hex; hex++) {
        int digit = hex_digit(*hex);

        if (digit < 0)
            continue;
        if (high >= 0)
            *buf_extend(out, 1) = (uint8_t)(high << 4 | digit);
        high = high >= 0 ? -1 : digit;
    }
    assert_int_equal(high, -1);
}

static inline struct bytes bytes_of(const char *s)
{
    return (struct bytes){.p = (const uint8_t *)s, .n = (int32_t)strlen(s)};
}

/* A copy on the heap of exactly n bytes; free() its p. */
static inline struct bytes heap_copy(struct bytes b)
{
    return (struct bytes){.p = xmemdup(b.p, (size_t)b.n), .n = b.n};
}

static inline void assert_bytes_equal(struct bytes a, struct bytes b)
{
    assert_int_equal(a.n, b.n);
    if (a.n > 0)
        assert_memory_equal(a.p, b.p, (size_t)a.n);
}

static inline struct record record_of(const char *key, const char *value, int64_t timestamp)
{
    return (struct record){
        .timestamp = timestamp,
        .key = key ? bytes_of(key) : bytes_null(),
        .value = value ? bytes_of(value) : bytes_null(),
    };
}

/* A batch of `count` records key-<i>, with values of `value_bytes` bytes that compress somewhat. */
static inline void put_batch(struct buf *out, const struct batch_spec *spec, int count,
                             int value_bytes, uint64_t seed)
{
    struct batch_builder b;
    struct rng rng = rng_seeded(seed);
    uint8_t *value = xmalloc((size_t)value_bytes + 1);

    batch_builder_init(&b, spec);
    for (int i = 0; i < count; i++) {
        char key[24];
        struct record r;

        snprintf(key, sizeof(key), "key-%d", i);
        for (int j = 0; j < value_bytes; j++)
            value[j] = (uint8_t)('a' + rng_below(&rng, 8));
        r = record_of(key, NULL, TS + i);
        r.value = (struct bytes){.p = value, .n = value_bytes};
        assert_int_equal(batch_builder_append(&b, &r), ERR_NONE);
    }
    batch_builder_finish(&b, out);
    batch_builder_fini(&b);
    free(value);
}

#endif
