/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_WIRE_APIS_H
#define SL_WIRE_APIS_H

#include <stdint.h>

#include "wire/codec.h"

/*
 * The APIs that we know, one constant each. Those of apis.def are served; those of unserved.def we
 * can send to others and read, and no more. Any thread.
 */
enum api_key {
#define API(key, NAME, ...) API_##NAME = (key),
#include "wire/apis.def"
#include "wire/unserved.def"
#undef API
};

/*
 * Positions in the table, for arrays by API: API_INDEX_PRODUCE ... The API_COUNT that are served
 * come first, so that a loop over them ends there; API_KNOWN_COUNT counts all.
 */
enum api_index {
#define API(key, NAME, ...) API_INDEX_##NAME,
#include "wire/apis.def"
    API_COUNT,
    API_INDEX_BEFORE_UNSERVED = API_COUNT - 1,
#include "wire/unserved.def"
#undef API
    API_KNOWN_COUNT
};

enum api_flag {
    /*
     * Versions below PRODUCE_VERSION_SERVED_MIN are advertised, because older librdkafka sends
     * uncompressed unless it sees version 0, and refused when they come, as Apache Kafka 4 does.
     */
    API_FLAG_OLD_REFUSED = 1,
    /* Between the brokers of a cluster: a broker alone neither advertises nor serves it. */
    API_FLAG_CLUSTER = 2,
};

#define PRODUCE_VERSION_SERVED_MIN 3

struct api {
    int16_t key;
    int16_t min;           /* versions that we serve, both inclusive; the schemas may know more */
    int16_t max;           /* -1: none is served */
    int16_t flexible_from; /* first version with compact lengths and tagged fields */
    uint32_t flags;        /* enum api_flag */
    const char *name;      /* as in the message structs: "list_offsets" */
    const struct schema *request;
    const struct schema *response;
};

/* NULL for a key that we do not know. */
const struct api *api_find(int16_t key);
/* index in [0, API_KNOWN_COUNT), ascending by key among those served and among the others. */
const struct api *api_at(int index);

#endif
