/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_GROUP_GROUP_H
#define SL_GROUP_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "wire/messages.h"

/*
 * The coordinator of the groups of one __consumer_offsets partition: members and their rebalances
 * (the classic protocol, KIP-345 and KIP-394 included), committed offsets, and the records that
 * both are kept in. Pure: no I/O, no clock, no entropy. One thread at a time.
 *
 *     g = groups_new(&limits);
 *     groups_replay(g, ...) for every record of the partition, then groups_loaded(g, ...);
 *     groups_step(g, &event, &effects) for whatever happens from then on.
 *
 * A step fills in `effects`: requests that are answered (their `out` is complete), records to be
 * written in this order, and when to call again with GROUP_TICK. What a write makes true (an
 * offset, a generation's assignment) becomes visible, and is answered, when the event
 * GROUP_WRITTEN says that it is committed; the caller reports writes in the order in which it got
 * them. A request whose write takes longer than write_timeout_ms is answered with
 * COORDINATOR_NOT_AVAILABLE, and nobody knows yet: when the write is reported after all it counts.
 */
struct groups;

/* Configuration, under the names of Kafka's keys. Times in ms. */
struct group_limits {
    int32_t session_timeout_min_ms;
    int32_t session_timeout_max_ms;
    int32_t size_max;                   /* members of a group */
    int32_t initial_rebalance_delay_ms; /* 0: the first member does not wait for others */
    int32_t offset_metadata_bytes_max;
    int32_t write_timeout_ms; /* that a request waits for what it writes */
    int64_t offset_retention_ms;
    int64_t offset_check_interval_ms;
};

/* ---- Requests --------------------------------------------------------------------------- */

enum group_op {
    GROUP_JOIN = 0,
    GROUP_SYNC = 1,
    GROUP_HEARTBEAT = 2,
    GROUP_LEAVE = 3,
    GROUP_COMMIT = 4,
    GROUP_OFFSET_DELETE = 5,
    GROUP_DELETE = 6, /* in: struct str, out: struct delete_groups_response_result */
};

/*
 * A request, embedded in the caller's. It belongs to the groups from its event until it is among
 * the answers, which may be much later. `in` and `out` are the wire structs of its API; `out` has
 * its defaults. For GROUP_COMMIT and GROUP_OFFSET_DELETE the caller has filled in the topics and
 * partitions of `out`, and the error of those that do not exist.
 */
struct group_request {
    enum group_op op;
    int16_t version;
    struct str client_id;   /* borrowed, like everything that `in` points to */
    struct str client_host; /* "/10.0.0.1" */
    const void *in;
    void *out;
    struct arena *arena; /* for what `out` points to */
    struct list link;    /* of an answer; private before */
};

/* Fills `out` of a request that is not given to the groups at all with this error. */
void group_refuse(struct group_request *q, enum err err);

/* ---- Records to write ------------------------------------------------------------------- */

struct group;
struct group_offset;

enum group_write_kind {
    GROUP_WRITE_OFFSETS = 0, /* commits */
    GROUP_WRITE_STATE = 1,   /* a generation and its assignment, or that the group is empty */
    GROUP_WRITE_REMOVAL = 2, /* tombstones: may be cut into several batches */
};

struct group_write {
    struct list link; /* the caller's, until the write is reported */
    enum group_write_kind kind;
    int64_t timestamp_ms; /* of its records */
    int32_t count;
    /* private */
    struct buf _bytes;
    struct group_write_span *_spans;
    struct group *_group;
    struct group_request *_request; /* answered when it is committed; NULL: nobody waits */
    struct list _unreported;        /* groups->unreported, until it is reported or has timed out */
    int64_t _deadline_ms;
    struct group_offset **_offsets;
    int32_t _offset_count;
    int32_t _generation;
    bool _removes_group;
};

/* Key and value (null: a tombstone) of the index-th record; borrowed from the write. */
void group_write_record(const struct group_write *w, int32_t index, struct bytes *key,
                        struct bytes *value);

/* ---- Steps ------------------------------------------------------------------------------ */

enum group_event_kind {
    GROUP_REQUEST = 0,    /* request */
    GROUP_WRITTEN = 1,    /* write, with err when it did not happen; the write is freed */
    GROUP_TICK = 2,       /* time has passed */
    GROUP_TOPIC_GONE = 3, /* topic: its offsets are forgotten */
};

struct group_event {
    enum group_event_kind kind;
    int64_t mono_ms;    /* monotonic, for timeouts */
    int64_t wall_ms;    /* since 1970, for what is stored */
    uint64_t random[2]; /* for a member id */
    struct group_request *request;
    struct group_write *write;
    enum err err;
    struct str topic;
};

struct group_effects {
    struct list answers; /* struct group_request by link */
    struct list writes;  /* struct group_write by link */
    int64_t wake_ms;     /* monotonic; INT64_MAX: not before something happens */
};

struct groups *groups_new(const struct group_limits *limits);
/* Nothing may be parked or in flight: groups_resign. */
void groups_free(struct groups *g);

/* Empties the effects of the step before (the caller has taken what was in the lists). */
void groups_step(struct groups *g, const struct group_event *event, struct group_effects *fx);
/* This broker does not coordinate these groups any more: every parked request is among the
 * answers, with this error. The writes in flight are freed by the caller with group_write_drop. */
void groups_resign(struct groups *g, enum err err, struct group_effects *fx);
/* Frees a write that will never be reported, after groups_resign; answers its request. */
void group_write_drop(struct groups *g, struct group_write *w, enum err err,
                      struct group_effects *fx);

/* ---- Loading ---------------------------------------------------------------------------- */

/*
 * One record of the partition, in order. `producer_id` is -1, or that of a transaction, whose
 * offsets count when it is committed. Records that are not understood are passed over, as are
 * types that do not exist yet; ERR_CORRUPT says that one was damaged.
 */
must_use enum err groups_replay(struct groups *g, int64_t producer_id, struct bytes key,
                                struct bytes value);
/* A transaction marker. */
void groups_replay_marker(struct groups *g, int64_t producer_id, bool is_commit);
/* The end of the log: members get a session timeout from now. */
void groups_loaded(struct groups *g, int64_t mono_ms, int64_t wall_ms, struct group_effects *fx);

/* ---- Queries: what is committed, at once ------------------------------------------------- */

/* Elements of responses, filled in completely; what they point to is in the arena. */
void groups_describe(const struct groups *g, struct str id, int16_t version, struct arena *arena,
                     struct describe_groups_response_group *out);
/* Appends those that pass the filters: names of states and types, any case; n <= 0: all. */
struct group_filter {
    const struct str *states;
    int32_t state_count;
    const struct str *types;
    int32_t type_count;
};

void groups_list(const struct groups *g, const struct group_filter *filter, struct arena *arena,
                 struct list_groups_response_group **out, int32_t *n);
/* As in version 8 and later. ERR_NONE or an error of the group, which is also in `out`. */
void groups_fetch(const struct groups *g, const struct offset_fetch_request_group *in,
                  bool require_stable, struct arena *arena,
                  struct offset_fetch_response_group *out);

int32_t groups_count(const struct groups *g);
int64_t groups_offset_count(const struct groups *g);

/* ---- Where a group lives ----------------------------------------------------------------- */

#define GROUP_TOPIC "__consumer_offsets"

/* The partition of a group's records: Java's String.hashCode over UTF-16, as Kafka computes it. */
int32_t group_partition(struct str group_id, int32_t partitions);

#endif
