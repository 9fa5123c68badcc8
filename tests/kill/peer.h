/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_KILL_PEER_H
#define TESTS_KILL_PEER_H

#include <librdkafka/rdkafka.h>

#include <stdint.h>

#include "base/attr.h"

/* What the programs of this folder share: librdkafka behind three calls, and a way to give up. */

struct setting {
    const char *key; /* NULL ends a list */
    const char *value;
};

/* A topic of the workload, written NAME:PARTITIONS:MODE. */
struct topic {
    char *name;
    int partitions;
    /* MODE is `all` (idempotent, acks=all) or `one` (acks=1, one request in flight: a batch may be
     * there twice, and nothing else may happen). */
    int is_idempotent;
};

/* Prints one line and ends the program with status 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Likewise, behind the last of what the clients have logged of this partition: for those whose
 * settings say what to log ("debug"). */
_Noreturn void fail_of(const char *topic, int32_t partition, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void check(rd_kafka_resp_err_t err, const char *what);

/* A client with these settings; `conf` may be NULL, and is taken. */
rd_kafka_t *connect_as(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *bootstrap,
                       const struct setting *settings);

/* Parses `count` words into a new array. */
struct topic *topics_parse(char **words, int count);

/* A number of at least `min`, or the end of the program. */
int64_t number(const char *text, int64_t min);

#endif
