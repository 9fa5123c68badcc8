/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLIENT_PRODUCER_H
#define SL_CLIENT_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "record/record.h"

/*
 * The producer: takes records one by one, gathers them into batches, and tells for each where it
 * was stored or why it was not. Settings have the names, units and defaults of Apache Kafka's Java
 * client.
 *
 * Order: the records of one partition are stored in the order in which they were sent, without gaps
 * and without doubles as long as enable_idempotence is on, whatever is repeated. At most one batch
 * of a partition is on its way at any time.
 *
 * A producer belongs to its client's loop: all functions are called there and all callbacks run
 * there, never inside producer_send.
 */
struct client;
struct producer;

#define PRODUCER_ACKS_ALL (-1)

/* Chooses the partition of a record that names none, in [0, partitions). */
struct producer_record;
typedef int32_t (*producer_partitioner_fn)(void *ctx, const struct producer_record *record,
                                           int32_t partitions);

struct producer_config {
    int16_t acks;            /* PRODUCER_ACKS_ALL, 1, or 0: nothing is known of the records */
    bool enable_idempotence; /* needs acks=all and retries */
    enum codec compression_type;
    int compression_level;    /* CODEC_LEVEL_DEFAULT or the codec's own scale */
    int32_t batch_size;       /* bytes before compression; one larger record goes alone */
    int32_t linger_ms;        /* how long a batch waits for more records */
    int64_t buffer_memory;    /* bytes of records that are not yet answered for */
    int32_t max_request_size; /* bytes; a record larger than this is refused */
    int32_t max_in_flight_requests_per_connection;
    int32_t retries;
    int32_t request_timeout_ms;
    int32_t delivery_timeout_ms;         /* from producer_send to the callback */
    producer_partitioner_fn partitioner; /* NULL: murmur2 of the key, or sticky without a key */
    void *partitioner_ctx;
};

struct producer_config producer_config_default(void);

struct producer_header {
    struct str key;     /* not null */
    struct bytes value; /* may be null */
};

struct producer_record {
    struct str topic;
    int32_t partition;  /* -1: the partitioner chooses */
    struct bytes key;   /* may be null */
    struct bytes value; /* may be null: a tombstone */
    const struct producer_header *headers;
    int32_t header_count;
    int64_t timestamp; /* ms since 1970; -1: now */
};

/* partition -1, timestamp -1, key and value null. */
struct producer_record producer_record_default(void);

struct producer_result {
    enum err err; /* the error of the last attempt; ERR_NONE: stored, as acks says */
    struct str topic;
    int32_t partition;  /* -1: none was chosen */
    int64_t offset;     /* -1: unknown, with acks=0 or an error */
    int64_t timestamp;  /* that the record has in the log */
    struct str message; /* the broker's own words about an error; null: none */
};

/* The result is valid during the callback. */
typedef void (*producer_done_fn)(void *ctx, const struct producer_result *result);

/*
 * ERR_INVALID_ARG: settings contradict each other (idempotence without acks=all or retries;
 * delivery_timeout_ms below linger_ms + request_timeout_ms). ERR_LIMIT: one is out of range.
 */
must_use enum err producer_open(struct client *client, const struct producer_config *config,
                                struct producer **out);
/*
 * Copies the record; `done` (may be NULL) runs once for each record that was taken, in order for
 * one partition. ERR_AGAIN: buffer_memory is full; `room` (producer_on_room) says when it is not.
 * ERR_MESSAGE_TOO_LARGE: larger than max_request_size. ERR_INVALID_ARG: no topic, bad partition.
 */
must_use enum err producer_send(struct producer *p, const struct producer_record *record,
                                producer_done_fn done, void *ctx);
/* Calls `room` each time that half of the buffer is free again after a refusal. */
void producer_on_room(struct producer *p, void (*room)(void *ctx), void *ctx);
/* Sends what has gathered without lingering; `flushed` (may be NULL) when all records that were
 * taken so far are answered for. One at a time. */
void producer_flush(struct producer *p, void (*flushed)(void *ctx), void *ctx);
/* Records that are not answered for, and their bytes. */
int64_t producer_pending_records(const struct producer *p);
int64_t producer_pending_bytes(const struct producer *p);
/*
 * At once: records that are pending get ERR_CANCELLED, though the broker may have or may yet store
 * them; producer_flush first. Not inside a producer_done_fn. NULL is allowed.
 */
void producer_close(struct producer *p);

#endif
