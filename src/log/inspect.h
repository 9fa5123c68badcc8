/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_LOG_INSPECT_H
#define SL_LOG_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * What the small files of a log directory say, for people: each function checks a whole file and
 * calls `fn` for each entry. Plain functions on bytes; any thread. On an error (ERR_CORRUPT,
 * ERR_BAD_VERSION) nothing has been called.
 */

/* One of Kafka's offset checkpoints. */
typedef void (*inspect_checkpoint_fn)(void *ctx, const char *topic, int32_t partition,
                                      int64_t offset);
must_use enum err inspect_checkpoint(struct str text, inspect_checkpoint_fn fn, void *ctx);

/* leader-epoch-checkpoint. */
typedef void (*inspect_epoch_fn)(void *ctx, int32_t epoch, int64_t start_offset);
must_use enum err inspect_epochs(struct str text, inspect_epoch_fn fn, void *ctx);

/* One remembered batch of a producer; a producer without batches has one call with -1. */
struct inspect_producer {
    int64_t producer_id;
    int16_t epoch;
    int32_t coordinator_epoch;
    int64_t last_timestamp;
    int64_t txn_first_offset; /* -1: no open transaction */
    int32_t last_sequence;    /* -1: no batch */
    int64_t first_offset;
    int64_t last_offset;
};
typedef void (*inspect_producer_fn)(void *ctx, const struct inspect_producer *p);
/* Kafka's <offset>.snapshot, or our <offset>.producers; *offset is what the latter says, else -1.
 */
must_use enum err inspect_producers(struct bytes content, bool is_ours, int64_t *offset,
                                    inspect_producer_fn fn, void *ctx);

#endif
