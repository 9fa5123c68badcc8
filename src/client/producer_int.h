/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLIENT_PRODUCER_INT_H
#define SL_CLIENT_PRODUCER_INT_H

#include "base/rng.h"
#include "client/client_int.h"
#include "client/producer.h"

/* What the files of the producer share: records, batches, partitions (accumulator.c), requests
 * (sender.c), and the producer itself (producer.c). */

/* What is kept of a record in a batch to answer for it. */
struct receipt {
    producer_done_fn done;
    void *ctx;
    int64_t timestamp;
};

/* Records of one partition that go together. */
struct batch {
    struct list node;             /* in the partition's queue, or alone while in flight */
    struct batch_builder builder; /* until it is sealed */
    struct buf bytes;             /* once it is sealed */
    struct receipt *receipts;
    int32_t count;
    int32_t cap;
    int64_t memory; /* charged to the producer */
    int64_t created_ns;
    int64_t deadline_ns; /* of its first record */
    int32_t attempts;
    enum err last_err; /* of an attempt */
    bool is_sealed;
    bool is_stamped;   /* has its producer id and sequence */
    bool is_ambiguous; /* an attempt may have been stored, and its answer was lost */
    int32_t base_sequence;
};

struct topic_state;

struct partition_state {
    struct topic_state *topic;
    int32_t index;
    struct list queue; /* batches; all but the last are full */
    struct batch *in_flight;
    int64_t retry_at_ns; /* not before: the last attempt failed */
    int64_t producer_id; /* whose sequence is counted here; -1: none yet */
    int16_t producer_epoch;
    int32_t next_sequence;
};

/* A record that waits for the number of its topic's partitions. */
struct homeless {
    struct list node;
    struct producer_record record; /* slices into the same piece of memory */
    struct receipt receipt;
    int64_t memory;
    int64_t deadline_ns;
};

struct topic_state {
    char *name;
    struct producer *producer;
    struct partition_state **partitions; /* those of the metadata, and those that were named */
    int32_t partition_count;
    int32_t sticky; /* partition of records without a key; -1: choose */
    int32_t sticky_bytes;
    struct list homeless;
    UT_hash_handle hh;
};

/* One Produce request on its way. */
struct produce_call {
    struct client_call call;
    struct list node;
    struct producer *producer;
    struct arena arena;
    int32_t target;
    struct partition_state **partitions; /* whose in_flight it carries; in the arena */
    int32_t partition_count;
};

struct producer {
    struct client *client;
    struct producer_config config;
    struct topic_state *topics;
    struct client_watcher watcher;
    struct client_alarm alarm;
    struct list calls; /* produce_call */
    struct client_call id_call;
    struct init_producer_id_request *id_request; /* owned */
    int64_t id_retry_ns;
    enum err id_err;     /* of the last attempt */
    int64_t producer_id; /* -1: asked for, or not needed */
    int16_t producer_epoch;
    int64_t memory;
    int64_t records;
    struct rng rng;
    bool is_woken;    /* something came in since the pump began */
    bool was_refused; /* room is due */
    bool is_flushing;
    void (*room)(void *ctx);
    void *room_ctx;
    void (*flushed)(void *ctx);
    void *flushed_ctx;
};

/* ---- accumulator.c ------------------------------------------------------------------------ */

struct topic_state *producer__topic(struct producer *p, struct str name);
/* Puts a record where it belongs; the topic's partitions are known, or the record names one. */
void producer__place(struct topic_state *t, const struct producer_record *record,
                     const struct receipt *receipt, int64_t deadline_ns);
/* Number of partitions by metadata; 0: not known yet. *err: the topic cannot be had now. */
int32_t producer__partition_count(const struct topic_state *t, enum err *err);
/* Records that waited are placed, or given up on. */
void producer__settle(struct topic_state *t, int64_t now_ns);
/* The head of the queue if it should be sent now; NULL. *at_ns: when to look again. */
struct batch *producer__ready(struct partition_state *ps, int64_t now_ns, int64_t *at_ns);
/* Compresses the batch and gives it its place in the producer's sequence. */
void producer__stamp(struct partition_state *ps, struct batch *b);
/* The batch was certainly not stored: its sequence is free again. */
void producer__unstamp(struct partition_state *ps, struct batch *b);
/* A new epoch with a sequence from 0: nobody knows what of the old one was stored. */
void producer__bump_epoch(struct partition_state *ps);
/* Replaces a sealed batch of two records or more by two halves at the head of the queue. */
void producer__split(struct partition_state *ps, struct batch *b);
/* Answers for all records of a batch, and frees it. */
struct batch_outcome {
    enum err err;
    int64_t base_offset;
    int64_t log_append_time_ms;
    struct str message;
};
void producer__answer(struct partition_state *ps, struct batch *b, const struct batch_outcome *o);
/* Everything that is left gets ERR_CANCELLED. */
void producer__drop_topic(struct topic_state *t);
int64_t producer__memory_of(const struct producer_record *record);
/* The record is answered for. */
void producer__release(struct producer *p, int64_t memory, int32_t records);

/* ---- sender.c ----------------------------------------------------------------------------- */

/* Sends what is ready, expires what is late, sets the alarm. */
void producer__pump(struct producer *p);
void producer__drop_calls(struct producer *p);

#endif
