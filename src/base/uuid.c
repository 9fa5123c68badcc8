/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kafka's Uuid: 128 bits in URL-safe base64. 22 characters carry 132 bits, so the last character
 * has four bits that must be zero: two texts for one id would break comparisons by text.
 */
#include "base/uuid.h"

#include "base/assert.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#define TEXT_CHARS (UUID_TEXT_BYTES - 1)

bool uuid_is_zero(struct uuid u)
{
    return uuid_eq(u, uuid_zero());
}

bool uuid_eq(struct uuid a, struct uuid b)
{
    return memcmp(a.b, b.b, sizeof(a.b)) == 0;
}

void uuid_to_text(struct uuid u, char text[static UUID_TEXT_BYTES])
{
    for (int i = 0; i < TEXT_CHARS; i++) {
        int bit = 6 * i;
        uint32_t pair = (uint32_t)u.b[bit / 8] << 8;

        if (bit / 8 + 1 < 16)
            pair |= u.b[bit / 8 + 1];
        text[i] = alphabet[pair >> (10 - bit % 8) & 0x3f];
    }
    text[TEXT_CHARS] = '\0';
}

enum err uuid_from_text(struct str text, struct uuid *out)
{
    struct uuid u = {{0}};

    *out = u;
    if (text.n != TEXT_CHARS)
        return ERR_MALFORMED;
    for (int i = 0; i < TEXT_CHARS; i++) {
        const char *at = text.p[i] ? strchr(alphabet, text.p[i]) : NULL;
        int bit = 6 * i;
        uint32_t pair;

        if (!at)
            return ERR_MALFORMED;
        pair = (uint32_t)(at - alphabet) << (10 - bit % 8);
        u.b[bit / 8] |= (uint8_t)(pair >> 8);
        if (bit / 8 + 1 < 16)
            u.b[bit / 8 + 1] |= (uint8_t)pair;
        else if (pair & 0xff)
            return ERR_MALFORMED;
    }
    *out = u;
    return ERR_NONE;
}

struct uuid uuid_from_random(uint64_t high, uint64_t low)
{
    struct uuid u;

    put_u64(u.b, high);
    put_u64(u.b + 8, low);
    u.b[6] = (uint8_t)((u.b[6] & 0x0f) | 0x40);
    u.b[8] = (uint8_t)((u.b[8] & 0x3f) | 0x80);
    /* A text that starts with '-' would look like an option on a command line. */
    u.b[0] &= 0x7f;
    assert(!uuid_is_zero(u));
    return u;
}
