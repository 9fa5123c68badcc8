/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of what we serve, and behind it of what we only know. There are few APIs and their
 * keys are small, so a key finds its entry through an array that has a slot for every key up to
 * the largest.
 */
#include "wire/apis.h"

#include <stddef.h>

#include "base/assert.h"
#include "wire/messages.h"

static const struct api apis[] = {
#define API(key_, NAME, name_, min_, max_, flexible_from_, flags_)                                 \
    {.key = (key_),                                                                                \
     .min = (min_),                                                                                \
     .max = (max_),                                                                                \
     .flexible_from = (flexible_from_),                                                            \
     .flags = (flags_),                                                                            \
     .name = #name_,                                                                               \
     .request = &name_##_request_schema,                                                           \
     .response = &name_##_response_schema},
#include "wire/apis.def"
#undef API
#define API(key_, NAME, name_, flexible_from_)                                                     \
    {.key = (key_),                                                                                \
     .max = -1,                                                                                    \
     .flexible_from = (flexible_from_),                                                            \
     .name = #name_,                                                                               \
     .request = &name_##_request_schema,                                                           \
     .response = &name_##_response_schema},
#include "wire/unserved.def"
#undef API
};

/* One more than the position, so that 0 says "not known". */
static const uint8_t index_plus1[] = {
#define API(key, NAME, ...) [key] = API_INDEX_##NAME + 1,
#include "wire/apis.def"
#include "wire/unserved.def"
#undef API
};

static_assert(ARRAY_LEN(apis) == API_KNOWN_COUNT, "one entry per line of the two lists");
static_assert(API_KNOWN_COUNT < UINT8_MAX, "positions fit their type");

const struct api *api_find(int16_t key)
{
    if (key < 0 || (size_t)key >= ARRAY_LEN(index_plus1) || index_plus1[key] == 0)
        return NULL;
    return &apis[index_plus1[key] - 1];
}

const struct api *api_at(int index)
{
    assert(index >= 0 && index < API_KNOWN_COUNT);
    return &apis[index];
}
