/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_LOG_PRODUCERS_INT_H
#define SL_LOG_PRODUCERS_INT_H

#include "base/limits.h"
#include "log/log.h"

/*
 * What one partition knows of its producers: sequences for idempotence (KIP-98) and transactions.
 * Each producer has its state twice. `assigned` holds every batch that was given offsets, `durable`
 * those that the journal has completed: snapshots are made of it, and taking back appends copies it
 * over the other. One thread at a time.
 */

/* What one batch does to its producer. */
struct producer_event {
    int64_t producer_id; /* -1: none, the event is void */
    int16_t epoch;
    bool is_transactional;
    bool is_marker; /* a control batch: commit or abort */
    bool is_abort;
    int32_t coordinator_epoch; /* of a marker */
    int32_t base_sequence;
    int32_t last_sequence;
    int64_t base_offset;
    int64_t last_offset;
    int64_t timestamp; /* the batch's max timestamp */
};

struct producer_batch {
    int32_t last_sequence;
    int32_t offset_delta; /* last offset less first */
    int64_t last_offset;
    int64_t timestamp;
};

struct producer_state {
    int16_t epoch;             /* -1: no state */
    int32_t coordinator_epoch; /* -1: no marker seen */
    int64_t last_timestamp;
    int64_t txn_first_offset; /* -1: no open transaction */
    int32_t batch_count;
    struct producer_batch batches[PRODUCER_BATCHES_KEPT]; /* the newest last */
};

/* A transaction whose records may not be read yet under read_committed. */
struct txn_span {
    int64_t producer_id;
    int64_t first_offset;
    int64_t marker_offset; /* -1 while it is open */
};

struct producer;

struct producers {
    struct producer *by_id; /* hash, iterated in order of insertion */
    /*
     * Up to this id a producer without state may have had one that was forgotten, and any sequence
     * of its may be the next. Above it, it is new and begins at 0: what comes first with another
     * sequence has overtaken what it follows (ids are given in ascending order).
     */
    int64_t forgotten_id;
    struct txn_span *txns; /* by first offset */
    size_t txn_count;
    size_t txn_cap;
};

void producers_init(struct producers *ps);
void producers_fini(struct producers *ps);
void producers_reset(struct producers *ps);
size_t producers_count(const struct producers *ps);
/* What was known of any producer is gone. */
void producers_forget_all(struct producers *ps);
/* The largest id, -1 when there is none. */
int64_t producers_id_max(const struct producers *ps);

/*
 * Whether a batch may be appended now, by the rules of KIP-98 and KIP-360: 45, 47, 48, 52. If it is
 * one of the last five batches of its producer, *duplicate says where that stands.
 */
struct producer_duplicate {
    bool found;
    int64_t base_offset;
    int64_t last_offset;
};

must_use enum err producers_check(const struct producers *ps, const struct producer_event *e,
                                  enum log_origin origin, struct producer_duplicate *duplicate);

/* The batch has offsets. Returns the first offset of the transaction that it ends; else -1. */
int64_t producers_assign(struct producers *ps, const struct producer_event *e);
/* The journal has completed the batch. */
void producers_commit(struct producers *ps, const struct producer_event *e);
/* Both: the batch was read from disk. Returns as producers_assign. */
int64_t producers_replay(struct producers *ps, const struct producer_event *e);
/* What was assigned at `offset` and above did not happen: the durable part is all there is. */
void producers_take_back(struct producers *ps, int64_t offset);

/* The first offset of a transaction that is open, or whose marker is not below the high watermark;
 * INT64_MAX when there is none. Forgets what has become stable. */
int64_t producers_first_unstable(struct producers *ps, int64_t high_watermark);
/* The first offset of the earliest open transaction, INT64_MAX when there is none. */
int64_t producers_first_open(const struct producers *ps);
/* Forgets producers without open transactions that have been silent for so long. */
void producers_expire(struct producers *ps, int64_t now_ms, int64_t expiration_ms);

/* For snapshots: the n-th of the durable part is passed to fn. */
void producers_each_durable(const struct producers *ps,
                            void (*fn)(void *ctx, int64_t id, const struct producer_state *s),
                            void *ctx);
/* Sets both parts; false when the id is there already. */
bool producers_restore(struct producers *ps, int64_t id, const struct producer_state *s);
/* For DescribeProducers: the assigned part, unsorted. */
void producers_each_assigned(const struct producers *ps,
                             void (*fn)(void *ctx, int64_t id, const struct producer_state *s),
                             void *ctx);

/*
 * After a truncation to `end`: `ps` was read from disk, where an older snapshot may hold the last
 * batch of a producer alone; `past` is what was known in memory before. Puts back the batches below
 * `end` that only `past` remembers: they may be sent again.
 */
void producers_remember(struct producers *ps, const struct producers *past, int64_t end);
/*
 * At a load up to `end`: `ps` began with a snapshot that does not tell who was forgotten, or with
 * none; `later` is one of ours from behind `end`. Likewise, and whom only `later` knows may have
 * been there before `end`.
 */
void producers_learn(struct producers *ps, const struct producers *later, int64_t end);

/* Whether both know the same producers with the same epochs and last batches. */
bool producers_agree(const struct producers *a, const struct producers *b);

/* ---- Snapshots: snapshot.c --------------------------------------------------------------- */

/* Kafka's file (version 1): one batch per producer. Of the durable part. */
void snapshot_format_kafka(const struct producers *ps, struct buf *out);
/* Our own: all five batches, versioned and checksummed. */
void snapshot_format(const struct producers *ps, int64_t offset, struct buf *out);
/* Into an empty `ps`. ERR_CORRUPT, ERR_BAD_VERSION: `ps` is empty. */
must_use enum err snapshot_parse_kafka(struct bytes text, struct producers *ps);
must_use enum err snapshot_parse(struct bytes text, int64_t *offset, struct producers *ps);

#endif
