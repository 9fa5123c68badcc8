/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 32-bit MurmurHash2 as Kafka's Java client computes it: words are read little-endian, and the
 * bytes behind the last whole word are mixed in from the highest down. Clients that are to put
 * equal keys into equal partitions have to agree on every bit, so the tests hold known values.
 */
#include "record/murmur2.h"

#include "base/assert.h"

#define MURMUR2_SEED 0x9747b28cu
#define MURMUR2_M 0x5bd1e995u
#define MURMUR2_R 24

static uint32_t word_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t mix_tail(uint32_t h, const uint8_t *p, int32_t n)
{
    if (n == 0)
        return h;
    for (int32_t i = n; i-- > 0;)
        h ^= (uint32_t)p[i] << (8 * i);
    return h * MURMUR2_M;
}

uint32_t murmur2(struct bytes key)
{
    uint32_t h = MURMUR2_SEED ^ (uint32_t)key.n;
    int32_t whole = key.n & ~3;

    assert(key.n >= 0);
    for (int32_t i = 0; i < whole; i += 4) {
        uint32_t k = word_at(key.p + i) * MURMUR2_M;

        k ^= k >> MURMUR2_R;
        h = (h * MURMUR2_M) ^ (k * MURMUR2_M);
    }
    h = mix_tail(h, key.p + whole, key.n - whole);
    h = (h ^ h >> 13) * MURMUR2_M;
    return h ^ h >> 15;
}

int32_t murmur2_partition(struct bytes key, int32_t partitions)
{
    assert(partitions > 0);
    return (int32_t)(murmur2(key) & INT32_MAX) % partitions;
}
