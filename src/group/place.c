/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a group lives. Every client tool and every broker that shares a cluster must agree, so this
 * is Java's String.hashCode: over UTF-16 code units, of which a code point above 0xffff has two.
 * Bytes that are not UTF-8 count as the replacement character, as Java would read them.
 */
#include "base/assert.h"
#include "group/group.h"

#define REPLACEMENT 0xfffd

/* The continuation bytes that a first byte announces; -1: it cannot be a first byte. */
static int tail_bytes(uint8_t b)
{
    if (b < 0x80)
        return 0;
    if (b >= 0xc2 && b < 0xe0)
        return 1;
    if (b >= 0xe0 && b < 0xf0)
        return 2;
    return b >= 0xf0 && b < 0xf5 ? 3 : -1;
}

/* One code point; *at moves behind it. */
static uint32_t next_point(struct str s, int32_t *at)
{
    const uint8_t *p = (const uint8_t *)s.p + *at;
    int tail = tail_bytes(*p);
    uint32_t point = tail > 0 ? *p & (0x3fu >> tail) : *p;

    (*at)++;
    if (tail < 0)
        return REPLACEMENT;
    for (int i = 1; i <= tail; i++) {
        if (*at >= s.n || (p[i] & 0xc0) != 0x80)
            return REPLACEMENT;
        point = point << 6 | (p[i] & 0x3fu);
        (*at)++;
    }
    return point;
}

int32_t group_partition(struct str group_id, int32_t partitions)
{
    uint32_t hash = 0;
    int32_t at = 0;

    assert(partitions > 0);
    while (at < group_id.n) {
        uint32_t point = next_point(group_id, &at);

        if (point > 0xffff) {
            hash = 31 * hash + (0xd7c0 + (point >> 10));
            point = 0xdc00 + (point & 0x3ff);
        }
        hash = 31 * hash + point;
    }
    /* abs() of the smallest integer is 0 here, as in Kafka. */
    if (hash == 0x80000000)
        return 0;
    return (int32_t)((hash & 0x80000000 ? 0u - hash : hash) % (uint32_t)partitions);
}
