/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_KILL_RECORD_H
#define TESTS_KILL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the workload writes and the verifier expects: a record says who wrote it, where, and which
 * of that writer's records for that partition it is; a checksum covers all of it. An
 * acknowledgement says at which offset the broker put it.
 */

#define RECORD_BYTES_MIN 32

/* A record's place in the workload. Topics are numbered by their order on the command line. */
struct record_id {
    uint64_t seq; /* 0, 1, 2, ... for each producer and partition */
    uint32_t producer;
    uint16_t topic;
    uint16_t partition;
};

/* One line of the file of acknowledgements, as it lies there. */
struct ack {
    struct record_id id;
    int64_t offset; /* -1: acknowledged as a duplicate, the client was not told where */
};

/* Fills n bytes (at least RECORD_BYTES_MIN). */
void record_make(uint8_t *p, size_t n, const struct record_id *id);
/* Whether these bytes are as record_make left them; says whose they are. */
bool record_parse(const void *p, size_t n, struct record_id *id);

#endif
