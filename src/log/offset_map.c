/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest offset of each key of the dirty part of a log, in a fixed amount of memory.
 *
 * Keys are as long as their producers like, so the map holds a hash of 128 bits in their place. Two
 * keys with one hash would cost a record its life. Chance does not find such a pair, and nobody
 * else can look for one, because the hash (SipHash-2-4, Aumasson and Bernstein, 2012) is keyed with
 * a secret that is drawn for each run of the cleaner.
 *
 * Open addressing with linear steps; at most nine tenths of the slots are used, so that a search
 * for what is not there ends soon. A map that is full says so, and the cleaner cleans less.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/clean_int.h"

#define SLOTS_MIN 16

struct offset_slot {
    uint64_t hash[2];
    int64_t next_offset; /* the offset, plus one; 0: free */
};

/* ---- The hash --------------------------------------------------------------------------- */

struct sip {
    uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_rounds(struct sip *s, int n)
{
    for (int i = 0; i < n; i++) {
        s->a += s->b;
        s->b = rotate(s->b, 13) ^ s->a;
        s->a = rotate(s->a, 32);
        s->c += s->d;
        s->d = rotate(s->d, 16) ^ s->c;
        s->a += s->d;
        s->d = rotate(s->d, 21) ^ s->a;
        s->c += s->b;
        s->b = rotate(s->b, 17) ^ s->c;
        s->c = rotate(s->c, 32);
    }
}

static void sip_word(struct sip *s, uint64_t word)
{
    s->d ^= word;
    sip_rounds(s, 2);
    s->a ^= word;
}

static uint64_t little_endian(const uint8_t *p, int n)
{
    uint64_t word = 0;

    for (int i = 0; i < n; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

void keyed_hash(const uint64_t secret[static 2], struct bytes in, uint64_t out[static 2])
{
    struct sip s = {
        .a = secret[0] ^ 0x736f6d6570736575,
        .b = secret[1] ^ 0x646f72616e646f6d ^ 0xee,
        .c = secret[0] ^ 0x6c7967656e657261,
        .d = secret[1] ^ 0x7465646279746573,
    };
    int32_t at = 0;

    for (; in.n - at >= 8; at += 8)
        sip_word(&s, little_endian(in.p + at, 8));
    sip_word(&s, little_endian(in.p + at, in.n - at) | (uint64_t)in.n << 56);
    s.c ^= 0xee;
    sip_rounds(&s, 4);
    out[0] = s.a ^ s.b ^ s.c ^ s.d;
    s.b ^= 0xdd;
    sip_rounds(&s, 4);
    out[1] = s.a ^ s.b ^ s.c ^ s.d;
}

/* ---- The map ---------------------------------------------------------------------------- */

void offset_map_init(struct offset_map *m, int64_t bytes_max, int64_t keys_max,
                     const uint64_t secret[static 2])
{
    int64_t slots = MIN(bytes_max / (int64_t)sizeof(struct offset_slot), keys_max + keys_max / 8);

    *m = (struct offset_map){.slot_count = (size_t)MAX(slots, SLOTS_MIN)};
    m->slots = xcalloc(m->slot_count, sizeof(*m->slots));
    m->used_max = m->slot_count / 10 * 9;
    memcpy(m->secret, secret, sizeof(m->secret));
}

void offset_map_fini(struct offset_map *m)
{
    free(m->slots);
    *m = (struct offset_map){.slots = NULL};
}

/* The slot of the key, or the free one where it would go. */
static struct offset_slot *find(const struct offset_map *m, const uint64_t hash[static 2])
{
    size_t at = (size_t)(hash[0] % m->slot_count);

    while (m->slots[at].next_offset > 0 &&
           (m->slots[at].hash[0] != hash[0] || m->slots[at].hash[1] != hash[1]))
        at = at + 1 == m->slot_count ? 0 : at + 1;
    return &m->slots[at];
}

bool offset_map_put(struct offset_map *m, struct bytes key, int64_t offset)
{
    struct offset_slot *slot;
    uint64_t hash[2];

    keyed_hash(m->secret, key, hash);
    slot = find(m, hash);
    if (slot->next_offset == 0) {
        if (m->used >= m->used_max)
            return false;
        m->used++;
        memcpy(slot->hash, hash, sizeof(hash));
    }
    slot->next_offset = offset + 1;
    return true;
}

int64_t offset_map_get(const struct offset_map *m, struct bytes key)
{
    uint64_t hash[2];

    keyed_hash(m->secret, key, hash);
    return find(m, hash)->next_offset - 1;
}
