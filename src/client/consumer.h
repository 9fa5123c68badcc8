/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLIENT_CONSUMER_H
#define SL_CLIENT_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "record/record.h"

/*
 * A consumer by assignment: it reads the partitions that it is told to read, from where it is told,
 * and hands out whole batches in order. It follows leaders, and decides about damaged batches and
 * lost offsets as its settings say. Settings have the names, units and defaults of Apache Kafka's
 * Java client.
 *
 * A consumer belongs to its client's loop: all functions are called there and all callbacks run
 * there. The next records of a broker are asked for when the callbacks of the last ones have
 * returned, so a slow reader slows the fetching down and nothing piles up; consumer_pause holds a
 * partition for longer: in its batch callback it also holds back what came with that batch.
 */
struct client;
struct consumer;

enum isolation_level {
    READ_UNCOMMITTED = 0, /* up to the high watermark */
    READ_COMMITTED = 1,   /* up to the last stable offset, without aborted transactions */
};

/* Where to go when an offset is not in the log (any more). */
enum auto_offset_reset {
    RESET_LATEST = 0,
    RESET_EARLIEST,
    RESET_NONE, /* the partition fails with ERR_OFFSET_OUT_OF_RANGE */
};

enum consumer_start {
    START_OFFSET = 0, /* value: an offset */
    START_EARLIEST,
    START_LATEST,
    START_TIMESTAMP, /* value: ms since 1970; the first record that is not older, else the end */
    START_TAIL,      /* value: so many offsets before the end */
};

struct consumer_batch {
    struct str topic;
    int32_t partition;
    int64_t from_offset; /* records below it are not wanted: the batch began earlier */
    struct bytes batch;  /* as stored, the checksum is right; for record_iter_batch */
    struct batch_header header;
    int64_t high_watermark;
    int64_t log_start; /* -1: not said */
};

struct consumer_events {
    /* Records, valid during the callback. Control batches, and aborted transactions of a
     * READ_COMMITTED consumer, are left out. */
    void (*batch)(void *ctx, const struct consumer_batch *b);
    /* All that there is has been handed out: `next` is the offset of the next record. Comes after
     * each answer that leaves nothing to read. */
    void (*caught_up)(void *ctx, struct str topic, int32_t partition, int64_t next);
    /*
     * The partition is read no further: ERR_OFFSET_OUT_OF_RANGE (RESET_NONE), ERR_CORRUPT_MESSAGE,
     * authorization, an unknown partition of a known topic. `offset` is where it stopped.
     */
    void (*failed)(void *ctx, struct str topic, int32_t partition, int64_t offset, enum err err);
};

struct consumer_config {
    int32_t fetch_min_bytes;
    int32_t fetch_max_bytes;
    int32_t fetch_max_wait_ms;
    int32_t max_partition_fetch_bytes;
    int32_t request_timeout_ms;
    enum isolation_level isolation_level;
    enum auto_offset_reset auto_offset_reset;
    bool check_crcs;
    /* An unknown topic is an error after this long; 0: it is waited for. */
    int32_t unknown_topic_timeout_ms;
};

struct consumer_config consumer_config_default(void);

/* ERR_LIMIT: a setting is out of range. `events` is copied. */
must_use enum err consumer_open(struct client *client, const struct consumer_config *config,
                                const struct consumer_events *events, void *ctx,
                                struct consumer **out);
/* Reads a partition from now on; one that is assigned already goes to the new start. */
void consumer_assign(struct consumer *c, struct str topic, int32_t partition,
                     enum consumer_start start, int64_t value);
/* Harmless when it is not assigned. Not inside a callback, as consumer_close. */
void consumer_unassign(struct consumer *c, struct str topic, int32_t partition);
void consumer_pause(struct consumer *c, struct str topic, int32_t partition, bool is_paused);
/* The offset of the next record; -1: not assigned, or not known yet. */
int64_t consumer_position(const struct consumer *c, struct str topic, int32_t partition);
/* NULL is allowed. */
void consumer_close(struct consumer *c);

#endif
