/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_HISTORY_H
#define SL_TESTS_SIM_HISTORY_H

#include "base/buf.h"
#include "base/uuid.h"
#include "record/record.h"

/*
 * What clients have done and were told. The unit is the batch: it has a number, each of its
 * records says that number and its place, and everything else in a record follows from these two.
 * A batch is *known* at an offset when its producer was told so or a reader has seen it there: from
 * then on it has to stay there, in a durable topic over every crash, in one of the page cache over
 * every kill.
 */
struct run;

#define TOPICS_MAX 96 /* incarnations in one run */
#define TOPIC_PARTITIONS_MAX 3
#define BATCH_RECORDS_MAX 6

enum topic_state {
    TOPIC_MAKING = 0,
    TOPIC_THERE = 1,
    TOPIC_GOING = 2,
    TOPIC_GONE = 3,
    TOPIC_DOUBTFUL = 4, /* an answer is missing: nothing is expected of it any more */
};

struct part {
    int32_t *at; /* batch number + 1 by offset; 0: nothing is known */
    int64_t at_cap;
    int64_t end;        /* behind the last offset that is known */
    int64_t start;      /* the highest log start that was told */
    int64_t acked_end;  /* behind the last acknowledged offset: readers may see all below it */
    int64_t acked_ns;   /* since when */
    int64_t deleted_to; /* DeleteRecords has said that it begins no lower */
    int64_t deleted_ns; /* when */
};

/* One incarnation of a name. */
struct topic {
    char name[24];
    struct uuid id;
    enum topic_state state;
    bool is_durable;
    bool is_namesake; /* of an earlier one: brokers that are behind may mean that one by the name */
    bool has_lost;    /* a power cut may have taken batches, and with them their producers */
    int32_t partitions;
    int64_t retention_bytes;   /* -1: none */
    bool retention_is_certain; /* no change of it was left without an answer */
    bool has_ever_had_retention;
    struct part parts[TOPIC_PARTITIONS_MAX];
};

enum fate {
    FATE_SENT = 0,
    FATE_ACKED = 1,
    FATE_REFUSED = 2, /* definitely: it must not be there */
    FATE_UNKNOWN = 3,
};

struct sent_batch {
    int16_t topic; /* index of the incarnation it was meant for */
    int8_t partition;
    int8_t count;
    int32_t bytes; /* as they are stored */
    enum fate fate;
    int64_t ms;      /* timestamp of its records */
    int64_t base;    /* where it is known to be; -1 */
    int32_t stream;  /* batches of a stream keep their order */
    int32_t order;   /* in the stream, from 0 */
    bool is_gapless; /* and leave none out (idempotence) */
};

struct history {
    struct topic topics[TOPICS_MAX];
    int topic_count;
    struct sent_batch *batches;
    int32_t batch_count;
    int32_t batch_cap;
    int32_t stream_next;
};

void history_fini(struct history *h);
/* A new incarnation, being made; NULL when the run has had enough of them. */
struct topic *history_add_topic(struct history *h, const char *name);
/* A topic that is there, any; NULL. */
struct topic *history_pick_topic(struct run *run);
int history_topic_index(const struct history *h, const struct topic *t);

/* A new batch: `spec` says codec, producer and sequence. Appends it to `out`, returns its number.
 */
int32_t history_make_batch(struct run *run, struct topic *t, int32_t partition,
                           const struct batch_spec *spec, int count, struct buf *out);
/* The producer was told. */
void history_acked(struct run *run, int32_t number, int64_t base);
void history_refused(struct run *run, int32_t number);
void history_unknown(struct run *run, int32_t number);

/* What a reader has in mind while it walks one partition in the order of offsets. */
struct order {
    int32_t *last; /* by stream: order + 1 of the last batch; 0: none */
    int32_t cap;
    bool from_zero; /* it began at offset 0: streams begin with their first batch */
};

void order_fini(struct order *o);
void order_reset(struct order *o, bool from_zero);

/*
 * A reader got stored bytes for its fetch at `offset`: checks every whole batch, returns the next
 * offset to read.
 */
int64_t history_read(struct run *run, struct topic *t, int32_t partition, int64_t offset,
                     struct bytes records, struct order *order);
/* A reader was told the bounds of a partition. */
void history_bounds(struct run *run, struct topic *t, int32_t partition, int64_t log_start,
                    int64_t end);
/* What a reader asked about a time, and was told: the first record at or behind it. */
struct time_question {
    int64_t ms;
    int64_t acked_end; /* when it was asked: of what comes behind that nothing is expected */
    int64_t offset;    /* -1: there is none */
    int64_t found_ms;
};

void history_time(struct run *run, const struct topic *t, int32_t partition,
                  const struct time_question *q);
/* The log of a partition begins here and all of it has been read up to `end`. */
void history_verified(struct run *run, struct topic *t, int32_t partition, int64_t log_start,
                      int64_t end);
/* A power cut: topics that live in the page cache may have lost any tail. */
void history_power_cut(struct run *run);

#endif
