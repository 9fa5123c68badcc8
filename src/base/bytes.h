/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_BYTES_H
#define SL_BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

/*
 * Slices and the integers of the Kafka protocol. A slice never owns its bytes and is never
 * NUL-terminated: print it with "%.*s" and STR_ARG. n = -1 is the protocol's null, which is
 * different from empty (n = 0). Any thread.
 */
struct str {
    const char *p;
    int32_t n; /* bytes; -1 is null */
};

struct bytes {
    const uint8_t *p;
    int32_t n; /* bytes; -1 is null */
};

#define STR_ARG(s) (int)((s).n < 0 ? 0 : (s).n), (s).p
#define STR_LIT(lit) ((struct str){.p = (lit), .n = (int32_t)sizeof(lit) - 1})

static inline struct str str_null(void)
{
    return (struct str){.p = NULL, .n = -1};
}

static inline struct bytes bytes_null(void)
{
    return (struct bytes){.p = NULL, .n = -1};
}

/* A slice of a NUL-terminated string; NULL gives null. */
static inline struct str str_of(const char *s)
{
    return s ? (struct str){.p = s, .n = (int32_t)strlen(s)} : str_null();
}

static inline bool str_is_null(struct str s)
{
    return s.n < 0;
}

bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
/* Order by bytes, shorter first on a common prefix; null sorts before empty. */
int str_cmp(struct str a, struct str b);
bool str_starts_with(struct str s, struct str prefix);
/* A NUL-terminated copy owned by the caller; NULL for null. */
char *str_dup(struct str s);
/* Decimal with optional sign, the whole slice; ERR_MALFORMED or ERR_LIMIT (does not fit). */
must_use enum err str_to_i64(struct str s, int64_t *out);

/* Big-endian integers at any alignment. */
static inline uint16_t get_u16(const void *p)
{
    const uint8_t *b = p;
    return (uint16_t)(b[0] << 8 | b[1]);
}

static inline uint32_t get_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return __builtin_bswap32(v);
}

static inline uint64_t get_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return __builtin_bswap64(v);
}

static inline int16_t get_i16(const void *p)
{
    return (int16_t)get_u16(p);
}

static inline int32_t get_i32(const void *p)
{
    return (int32_t)get_u32(p);
}

static inline int64_t get_i64(const void *p)
{
    return (int64_t)get_u64(p);
}

static inline void put_u16(void *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, sizeof(v));
}

static inline void put_u32(void *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof(v));
}

static inline void put_u64(void *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof(v));
}

static inline void put_i16(void *p, int16_t v)
{
    put_u16(p, (uint16_t)v);
}

static inline void put_i32(void *p, int32_t v)
{
    put_u32(p, (uint32_t)v);
}

static inline void put_i64(void *p, int64_t v)
{
    put_u64(p, (uint64_t)v);
}

/*
 * Variable-length integers: unsigned LEB128, and zig-zag over it for signed ones. Decoding reads
 * from [p, end) and returns the bytes used, 0 when the bytes end too early or the value does not
 * fit. Encoding returns the bytes written: at most VARINT_BYTES_MAX or VARLONG_BYTES_MAX.
 */
#define VARINT_BYTES_MAX 5
#define VARLONG_BYTES_MAX 10

int uvarint_get(const uint8_t *p, const uint8_t *end, uint32_t *out);
int varint_get(const uint8_t *p, const uint8_t *end, int32_t *out);
int varlong_get(const uint8_t *p, const uint8_t *end, int64_t *out);
int uvarint_put(uint8_t *p, uint32_t v);
int varint_put(uint8_t *p, int32_t v);
int varlong_put(uint8_t *p, int64_t v);
int uvarint_size(uint32_t v);
int varint_size(int32_t v);
int varlong_size(int64_t v);

#endif
