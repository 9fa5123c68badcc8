/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_GROUP_CURSOR_INT_H
#define SL_GROUP_CURSOR_INT_H

#include "base/bytes.h"

/*
 * Reading of bytes that may be cut off or wrong: the first mistake sticks, and everything that is
 * read after it is zero or empty. `compact` is the encoding of flexible versions (KIP-482).
 */
struct cursor {
    const uint8_t *p;
    const uint8_t *end;
    bool compact;
    bool bad;
};

static inline struct cursor cursor_of(struct bytes b)
{
    return (struct cursor){.p = b.p, .end = b.n > 0 ? b.p + b.n : b.p};
}

/* The next n bytes; NULL when there are fewer. */
static inline const uint8_t *cursor_take(struct cursor *c, int64_t n)
{
    const uint8_t *at = c->p;

    if (c->bad || n < 0 || n > c->end - c->p) {
        c->bad = true;
        return NULL;
    }
    c->p += n;
    return at;
}

static inline int16_t cursor_i16(struct cursor *c)
{
    const uint8_t *p = cursor_take(c, 2);

    return (int16_t)(p ? get_i16(p) : 0);
}

static inline int32_t cursor_i32(struct cursor *c)
{
    const uint8_t *p = cursor_take(c, 4);

    return p ? get_i32(p) : 0;
}

static inline int64_t cursor_i64(struct cursor *c)
{
    const uint8_t *p = cursor_take(c, 8);

    return p ? get_i64(p) : 0;
}

static inline uint32_t cursor_uvarint(struct cursor *c)
{
    uint32_t v = 0;
    int n = c->bad ? 0 : uvarint_get(c->p, c->end, &v);

    if (n == 0)
        c->bad = true;
    c->p += n;
    return n ? v : 0;
}

/* A length or count in front of something; -1 is null. */
static inline int64_t cursor_length(struct cursor *c, bool is_short)
{
    if (c->compact)
        return (int64_t)cursor_uvarint(c) - 1;
    return is_short ? cursor_i16(c) : cursor_i32(c);
}

/* Null where the bytes say so. */
static inline struct str cursor_str(struct cursor *c)
{
    int64_t n = cursor_length(c, true);
    const uint8_t *p;

    if (n < 0)
        return str_null();
    p = cursor_take(c, n);
    return (struct str){.p = (const char *)p, .n = p ? (int32_t)n : 0};
}

static inline struct bytes cursor_bytes(struct cursor *c)
{
    int64_t n = cursor_length(c, false);
    const uint8_t *p;

    if (n < 0)
        return bytes_null();
    p = cursor_take(c, n);
    return (struct bytes){.p = p, .n = p ? (int32_t)n : 0};
}

/* Passes over the tagged fields at the end of a struct. */
static inline void cursor_skip_tags(struct cursor *c)
{
    if (!c->compact)
        return;
    for (uint32_t n = cursor_uvarint(c); n > 0 && !c->bad; n--) {
        (void)cursor_uvarint(c);
        (void)cursor_take(c, cursor_uvarint(c));
    }
}

#endif
