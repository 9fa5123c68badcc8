/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLIENT_CONSUMER_INT_H
#define SL_CLIENT_CONSUMER_INT_H

#include "client/client_int.h"
#include "client/consumer.h"
#include "wire/messages.h"

/* What the files of the consumer share: assignments and calls (consumer.c), what a fetch brings
 * (fetched.c). */

/*
 *   SEEKING --> READY <--> (a fetch is out)      ListOffsets says where to start
 *      ^          |
 *      +----------+--> FAILED                    out of range; final errors
 */
enum assignment_state {
    ASSIGNMENT_SEEKING = 0,
    ASSIGNMENT_READY,
    ASSIGNMENT_FAILED,
};

struct assignment {
    struct list node;
    char *topic;
    int32_t partition;
    enum assignment_state state;
    enum consumer_start start;
    int64_t start_value;
    int64_t position;    /* -1: not known */
    int64_t retry_at_ns; /* not before: the last answer was an error */
    int32_t attempts;
    int64_t missing_since_ns;   /* the topic is unknown since then; 0: it is not */
    struct consumer_call *call; /* that it is part of; NULL */
    bool is_paused;
    bool is_moved; /* assigned anew while a call was out: its answer is void */
};

/* A Fetch or a ListOffsets to one broker. */
struct consumer_call {
    struct client_call call;
    struct list node;
    struct consumer *consumer;
    int32_t target;
    bool is_seek;
    struct arena arena;
    struct assignment **assignments; /* in the arena; NULL: unassigned since */
    int32_t count;
};

struct consumer {
    struct client *client;
    struct consumer_config config;
    struct consumer_events events;
    void *ctx;
    struct list assignments; /* in turn: what was served goes to the end */
    struct list calls;
    struct client_watcher watcher;
    struct client_alarm alarm;
    bool is_woken;
    /* scratch of fetched.c */
    int64_t *aborted; /* producer ids whose transaction was aborted, while it lasts */
    int32_t aborted_n;
    int32_t aborted_cap;
    struct record_iter iter;
};

/* ---- fetched.c ---------------------------------------------------------------------------- */

/* Hands out what came for one partition and moves its position; the error that ends it. */
must_use enum err consumer__deliver(struct assignment *a, struct consumer *c,
                                    struct fetch_response_partition *r);

#endif
