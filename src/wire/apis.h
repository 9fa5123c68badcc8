/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_WIRE_APIS_H
#define SL_WIRE_APIS_H

#include <stdint.h>

#include "wire/codec.h"

/* The APIs that we serve, one constant each, made of apis.def. Any thread. */
enum api_key {
#define API(key, NAME, name, min, max, flexible_from, flags) API_##NAME = (key),
#include "wire/apis.def"
#undef API
};

/* Positions in the table, for arrays by API: API_INDEX_PRODUCE ... and their number. */
enum api_index {
#define API(key, NAME, name, min, max, flexible_from, flags) API_INDEX_##NAME,
#include "wire/apis.def"
#undef API
    API_COUNT
};

enum api_flag {
    /*
     * Versions below PRODUCE_VERSION_SERVED_MIN are advertised, because older librdkafka sends
     * uncompressed unless it sees version 0, and refused when they come, as Apache Kafka 4 does.
     */
    API_FLAG_OLD_REFUSED = 1,
};

#define PRODUCE_VERSION_SERVED_MIN 3

struct api {
    int16_t key;
    int16_t min; /* versions that we serve, both inclusive; the schemas may know more */
    int16_t max;
    int16_t flexible_from; /* first version with compact lengths and tagged fields */
    uint32_t flags;        /* enum api_flag */
    const char *name;      /* as in the message structs: "list_offsets" */
    const struct schema *request;
    const struct schema *response;
};

/* NULL for a key that we do not serve. */
const struct api *api_find(int16_t key);
/* index in [0, API_COUNT), ascending by key. */
const struct api *api_at(int index);

#endif
