/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_RECORD_MURMUR2_H
#define SL_RECORD_MURMUR2_H

#include <stdint.h>

#include "base/bytes.h"

/*
 * The hash of Kafka's default partitioner: 32-bit MurmurHash2 with the seed 0x9747b28c. The key
 * must not be null; an empty key is a key. Any thread.
 */
uint32_t murmur2(struct bytes key);

/* The partition of a key: the hash without its sign bit, modulo `partitions` > 0. */
int32_t murmur2_partition(struct bytes key, int32_t partitions);

#endif
