/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_RNG_H
#define SL_BASE_RNG_H

#include <stdint.h>

/*
 * A small seeded generator (splitmix64) for tests, jitter and the simulator: the same seed gives
 * the same numbers everywhere. Not for secrets: entropy comes from io.
 */
struct rng {
    uint64_t state;
};

static inline struct rng rng_seeded(uint64_t seed)
{
    return (struct rng){.state = seed};
}

static inline uint64_t rng_u64(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in [0, n), n > 0. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
    return (uint64_t)((__uint128_t)rng_u64(r) * n >> 64);
}

#endif
