/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_UUID_H
#define SL_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * Topic, cluster and directory ids: 16 bytes, as text 22 characters of URL-safe base64 without
 * padding (Kafka's Uuid). All zero means "none".
 */
struct uuid {
    uint8_t b[16];
};

#define UUID_TEXT_BYTES 23 /* with the terminating NUL */

static inline struct uuid uuid_zero(void)
{
    return (struct uuid){{0}};
}

bool uuid_is_zero(struct uuid u);
bool uuid_eq(struct uuid a, struct uuid b);
void uuid_to_text(struct uuid u, char text[static UUID_TEXT_BYTES]);
/* ERR_MALFORMED unless the slice is exactly 22 characters of the alphabet. */
must_use enum err uuid_from_text(struct str text, struct uuid *out);
/* A version 4 UUID from 128 random bits: never reserved, and its text never starts with '-'. */
struct uuid uuid_from_random(uint64_t high, uint64_t low);

#endif
