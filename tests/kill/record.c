/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record: checksum, length, identity, then bytes that follow from the identity and compress by
 * about a half, so that codecs have something to do.
 */
#include "record.h"

#include <string.h>

#include "base/rng.h"

struct header {
    uint64_t checksum; /* of everything behind it */
    uint64_t size;
    struct record_id id;
};
_Static_assert(sizeof(struct header) == RECORD_BYTES_MIN, "no padding");

static uint64_t checksum(const uint8_t *p, size_t n)
{
    uint64_t sum = 0xcbf29ce484222325u;
    uint64_t word;

    for (; n >= sizeof(word); p += sizeof(word), n -= sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 32;
    }
    for (; n > 0; p++, n--)
        sum = (sum ^ *p) * 0x100000001b3u;
    return sum;
}

static void fill(uint8_t *p, size_t n, struct rng rng)
{
    while (n > 0) {
        uint64_t word = rng_u64(&rng) & 0x0f0f0f0f0f0f0f0fu;
        size_t part = n < sizeof(word) ? n : sizeof(word);

        memcpy(p, &word, part);
        p += part;
        n -= part;
    }
}

void record_make(uint8_t *p, size_t n, const struct record_id *id)
{
    struct header h = {.size = n, .id = *id};

    fill(p + sizeof(h), n - sizeof(h), rng_seeded(id->seq << 20 ^ id->producer));
    memcpy(p, &h, sizeof(h));
    h.checksum = checksum(p + sizeof(h.checksum), n - sizeof(h.checksum));
    memcpy(p, &h.checksum, sizeof(h.checksum));
}

bool record_parse(const void *p, size_t n, struct record_id *id)
{
    struct header h;

    if (n < sizeof(h))
        return false;
    memcpy(&h, p, sizeof(h));
    *id = h.id;
    return h.size == n &&
           h.checksum == checksum((const uint8_t *)p + sizeof(h.checksum), n - sizeof(h.checksum));
}
