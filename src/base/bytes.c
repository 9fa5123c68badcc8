/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices and variable-length integers. Everything here takes untrusted bytes: nothing is read at
 * or after `end`, an over-long encoding is refused rather than wrapped.
 */
#include "base/bytes.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n <= 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

bool str_eq_c(struct str a, const char *b)
{
    return str_eq(a, str_of(b));
}

int str_cmp(struct str a, struct str b)
{
    int32_t common = MIN(a.n, b.n);
    int order = common > 0 ? memcmp(a.p, b.p, (size_t)common) : 0;

    return order ? order : (a.n > b.n) - (a.n < b.n);
}

bool str_starts_with(struct str s, struct str prefix)
{
    assert(prefix.n >= 0);
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, (size_t)prefix.n) == 0);
}

char *str_dup(struct str s)
{
    return s.n < 0 ? NULL : xstrndup(s.p, (size_t)s.n);
}

enum err str_to_i64(struct str s, int64_t *out)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    int32_t i = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+');
    int64_t v = 0;

    *out = 0;
    if (s.n <= i)
        return ERR_MALFORMED;
    for (; i < s.n; i++) {
        int digit = s.p[i] - '0';

        if (digit < 0 || digit > 9)
            return ERR_MALFORMED;
        /* Downwards, because the most negative value has no positive twin. */
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, digit, &v))
            return ERR_LIMIT;
    }
    if (!negative && v == INT64_MIN)
        return ERR_LIMIT;
    *out = negative ? v : -v;
    return ERR_NONE;
}

/* LEB128 of at most `bits` bits. */
static int leb128_get(const uint8_t *p, const uint8_t *end, int bits, uint64_t *out)
{
    uint64_t v = 0;
    int n = 0;

    for (int shift = 0; shift < bits; shift += 7) {
        uint8_t byte;
        int room = bits - shift;

        if (p + n >= end)
            return 0;
        byte = p[n++];
        if (room < 7 && (byte & 0x7f) >> room)
            return 0;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = v;
            return n;
        }
    }
    return 0;
}

static int leb128_put(uint8_t *p, uint64_t v)
{
    int n = 0;

    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}

static int leb128_size(uint64_t v)
{
    int bits = 64 - __builtin_clzll(v | 1);

    return (bits + 6) / 7;
}

static uint32_t zigzag32(int32_t v)
{
    return ((uint32_t)v << 1) ^ (uint32_t)(v >> 31);
}

static uint64_t zigzag64(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

int uvarint_get(const uint8_t *p, const uint8_t *end, uint32_t *out)
{
    uint64_t v = 0;
    int n = leb128_get(p, end, 32, &v);

    *out = (uint32_t)v;
    return n;
}

int varint_get(const uint8_t *p, const uint8_t *end, int32_t *out)
{
    uint64_t v = 0;
    int n = leb128_get(p, end, 32, &v);

    *out = (int32_t)((uint32_t)v >> 1) ^ -(int32_t)(v & 1);
    return n;
}

int varlong_get(const uint8_t *p, const uint8_t *end, int64_t *out)
{
    uint64_t v = 0;
    int n = leb128_get(p, end, 64, &v);

    *out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
    return n;
}

int uvarint_put(uint8_t *p, uint32_t v)
{
    return leb128_put(p, v);
}

int varint_put(uint8_t *p, int32_t v)
{
    return leb128_put(p, zigzag32(v));
}

int varlong_put(uint8_t *p, int64_t v)
{
    return leb128_put(p, zigzag64(v));
}

int uvarint_size(uint32_t v)
{
    return leb128_size(v);
}

int varint_size(int32_t v)
{
    return leb128_size(zigzag32(v));
}

int varlong_size(int64_t v)
{
    return leb128_size(zigzag64(v));
}
