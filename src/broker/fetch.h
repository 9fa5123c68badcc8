/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_FETCH_H
#define SL_BROKER_FETCH_H

#include "broker/broker_int.h"

/*
 * What fetch.c (reading, parking, answering) and fetch_session.c (KIP-227) share. A fetch walks
 * the parts of a session; a request without one gets a private session that ends with it.
 */

#define FETCH_SESSION_EPOCH_FINAL (-1)
#define FETCH_SESSION_EPOCH_FIRST 0

/* One partition that a client wants to read. */
struct fetch_part {
    struct list link;  /* session->parts, in the order of service */
    UT_hash_handle hh; /* by key */
    struct {
        struct uuid topic_id; /* zero when the session goes by names */
        uint64_t name_hash;   /* 0 when it goes by ids */
        int32_t index;
        int32_t pad;
    } key;
    char *name; /* owned; NULL when it goes by ids */
    int32_t index;
    int32_t leader_epoch; /* that the client believes in; -1 */
    int64_t offset;
    int32_t max_bytes;
    int32_t last_epoch;     /* a follower: of its last record; -1 */
    int64_t durable_offset; /* a follower: -1: its offset */
    int64_t log_start;      /* a follower: of its log; -1 */
    int64_t watermark;      /* a follower: that it was told of (KIP-1166); INT64_MAX: no matter */
    /* what the last answer of the session said */
    int64_t sent_high_watermark;
    int64_t sent_log_start;
    /* result of this round */
    enum err err;
    enum err follower_err;   /* what the leader says to this follower; ERR_NONE: it may read, */
    int32_t diverging_epoch; /* unless this is not -1 */
    int64_t diverging_end;
    int32_t near;      /* the consumer should read it at this follower; -1: here */
    bool is_throttled; /* a follower: its bytes count, */
    bool may_wait;     /* and it gets none while there were too many, */
    bool is_held;      /* as now */
    struct log_bounds bounds;
    struct log_range range;          /* file is NULL: nothing to read */
    struct log_aborted_txn *aborted; /* in the request's arena */
    int aborted_n;
};

struct fetch_session {
    struct list link;  /* cache->used, least recently used first */
    UT_hash_handle hh; /* by id */
    int32_t id;        /* 0: private to one request */
    int32_t epoch;     /* of the next request */
    bool goes_by_ids;
    bool is_busy; /* a fetch of it is under way */
    int64_t used_ns;
    struct list parts;
    struct fetch_part *by_key;
    int32_t part_count;
};

/*
 * The session of a request, with its parts brought up to date; *is_incremental tells whether only
 * news are answered. An error is the answer to the whole request.
 */
must_use enum err fetch_session_resolve(struct request *r, struct fetch_session **out,
                                        bool *is_incremental);
/* The fetch has been answered: forgets a private session, frees what was closed meanwhile. */
void fetch_session_done(struct shard *s, struct fetch_session *session);
void fetch_session_free(struct fetch_session *session);

/* The broker that fetches as a follower, -1: a consumer. */
int32_t fetch_follower(const struct request *r);
/*
 * fetch_follower.c: tells the leader of each part where the follower stands, and fills in what it
 * says; `done` then, on the request's shard.
 */
void fetch_tell_leaders(struct request *r, struct fetch_session *session,
                        void (*done)(struct request *r));
/* fetch_near.c: whether the consumer may have to be told of a follower that is nearer to it, */
bool fetch_may_be_sent_near(const struct request *r);
/* and which one for each part; `done` then, on the request's shard. */
void fetch_ask_near(struct request *r, struct fetch_session *session,
                    void (*done)(struct request *r));
/* The part's partition, if this broker leads it (or serves it as a follower, if that will do), else
 * why it does not. */
struct partition *fetch_find_partition(struct shard *s, const struct fetch_part *part,
                                       bool at_follower, enum err *err);
/* A visit to the owners of all parts that are led here; `in` and the part are each item's. */
struct visit *fetch_visit(struct request *r, struct fetch_session *session,
                          void (*at_owner)(struct visit_item *item),
                          void (*all_home)(struct request *r, struct visit *v), void *in);

#endif
