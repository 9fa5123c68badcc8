/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_REPLICA_REPLICA_H
#define SL_REPLICA_REPLICA_H

#include "metadata/metadata.h"

/*
 * What one replica of a partition does next: as leader, which followers are in sync, how far the
 * high watermark goes and what a follower's fetch is answered; as follower, from where it fetches,
 * when it truncates. KIP-101, KIP-279, KIP-320 (epochs decide about truncation, and every question
 * is fenced by them), KIP-497 (the in-sync set changes by AlterPartition, one proposal at a time),
 * KIP-595 (a fetch finds the divergence), KIP-841, KIP-903 (whom a leader may propose), KIP-392
 * (consumers may read at a follower).
 *
 * Pure: replica_step(state, event) fills in effects, which the caller carries out; completions
 * come back as events. The event carries the time and what the log is at this moment. One thread.
 *
 * Words. *Assignment*: leader, epochs, replicas and in-sync set as the controller decided. *In-sync
 * set* (ISR): the last one that is known to be committed. *Maximal ISR*: that one and everybody in
 * a proposal whose fate is not known; a high watermark holds whichever of the two is true.
 * *Acknowledged*: what a replica would still have after its next life began: durable, or written
 * where the topic does not flush on acknowledgement.
 *
 * Throttles (KIP-73) are the caller's. Here it is said who must not be throttled: those that the
 * high watermark waits for, in sync or about to be.
 */

enum replica_role {
    REPLICA_IDLE = 0, /* no leader is known, or this broker is not one of the replicas */
    REPLICA_LEADER = 1,
    REPLICA_FOLLOWER = 2,
};

/* One of the assigned replicas, as a leader sees it. */
struct replica_member {
    int32_t id;
    bool is_in_isr;
    bool is_proposed;     /* a member of the proposal in flight */
    bool is_alive;        /* registered and not fenced, as far as the image knows */
    int64_t registered;   /* its broker epoch in the image; -1: not there */
    int64_t incarnation;  /* its broker epoch at its last fetch; -1: it did not say */
    int64_t proposed_as;  /* its broker epoch when it was proposed */
    int64_t acked;        /* it has acknowledged everything below; -1: not heard of in this epoch */
    int64_t log_start;    /* its log begins there, as of its last fetch */
    int64_t fetched_ms;   /* of its last fetch */
    int64_t fetched_end;  /* what the leader had acknowledged then */
    int64_t caught_up_ms; /* it had everything that it could be given at this time */
};

struct replica {
    int32_t self;
    int64_t lag_time_max_ms;  /* replica.lag.time.max.ms */
    int64_t lag_messages_max; /* replica.lag.max.messages; -1: does not matter */
    int32_t min_insync;       /* min.insync.replicas */
    int64_t backoff_max_ms;   /* replica.fetch.backoff.ms */

    enum replica_role role;
    int32_t leader; /* -1: none */
    int32_t leader_epoch;
    int32_t partition_epoch;
    int64_t high_watermark;
    int32_t member_count;
    struct replica_member *members; /* in the order of the assignment; owned */

    bool is_cutting; /* a truncation is under way: whoever leads next waits for its end */

    /* leader */
    int64_t epoch_start;     /* where its epoch begins in its log; -1: it has not begun yet */
    bool is_proposing;       /* a proposal is in flight, or its fate is not known */
    bool is_proposal_lost;   /* nobody answered: it is to be sent again */
    bool is_awaiting_orders; /* the controller knows better: no proposal before an assignment */
    int64_t propose_at_ms;   /* not before */

    /* follower */
    bool is_fetch_out; /* a fetch of this epoch is under way */
    bool is_appending; /* its records are being appended */
    int64_t fetch_offset;
    int64_t leader_watermark; /* the leader's, as of the last answer that agreed; -1: none yet */
    int64_t pause_end_ms;     /* after an error: no fetch before */
    int32_t failures;         /* in a row */
};

struct replica_config {
    int64_t lag_time_max_ms;
    int64_t lag_messages_max;
    int32_t min_insync;
    int64_t backoff_max_ms;
};

/* The log at the moment of an event. */
struct replica_log {
    int64_t start;
    int64_t end; /* log end offset (LEO) */
    int64_t acked;
    int32_t last_epoch;   /* of the last record; -1: there is none */
    int32_t latest_epoch; /* of its history, which may be later than its last record's; -1 */
};

enum replica_event_kind {
    REPLICA_ASSIGN = 1,     /* the controller has decided: `assign` */
    REPLICA_BROKERS = 2,    /* registrations have changed: `image` */
    REPLICA_CONFIG = 3,     /* `config` */
    REPLICA_ADVANCED = 4,   /* the log has grown, or acknowledges more */
    REPLICA_FETCH = 5,      /* leader: a follower asks: `fetch` */
    REPLICA_ALTERED = 6,    /* leader: the proposal was answered: `altered` */
    REPLICA_TICK = 7,       /* the time that `wake_ms` asked for */
    REPLICA_FETCHED = 8,    /* follower: the leader has answered: `fetched` */
    REPLICA_APPENDED = 9,   /* follower: the records of the answer were appended, or not: `err` */
    REPLICA_TRUNCATED = 10, /* the log has been cut as asked, or not: `err` */
};

struct replica_fetch {
    int32_t from;         /* broker id */
    int64_t incarnation;  /* its broker epoch; -1: it did not say */
    int32_t leader_epoch; /* whom it believes to ask; -1: it did not say */
    int64_t offset;       /* it has every record below */
    int64_t acked;        /* and has acknowledged those below this one; at most offset */
    int64_t log_start;    /* its log begins there; -1: it did not say */
    int32_t last_epoch;   /* of its last record; -1: it has none */
    int32_t found_epoch;  /* log_epoch_end(last_epoch) in our log: the epoch, */
    int64_t found_end;    /* and where it ends */
};

struct replica_altered {
    int32_t asked_leader_epoch; /* what the request carried */
    int32_t asked_partition_epoch;
    enum err err; /* of the partition, or of the whole call */
    int32_t leader_epoch;
    int32_t partition_epoch;
    struct metadata_ids isr;
};

struct replica_fetched {
    enum err err;
    int32_t leader_epoch; /* that the request carried */
    int64_t offset;       /* likewise */
    bool has_records;
    int64_t high_watermark;
    int64_t log_start;
    int32_t diverging_epoch; /* -1: the logs agree */
    int64_t diverging_end;
    int32_t found_epoch; /* log_epoch_end(diverging_epoch) in our log */
    int64_t found_end;
};

struct replica_event {
    enum replica_event_kind kind;
    int64_t now_ms; /* monotonic */
    struct replica_log log;
    union {
        const struct metadata_partition *assign;
        const struct metadata_image *image;
        const struct replica_config *config;
        struct replica_fetch fetch;
        struct replica_altered altered;
        struct replica_fetched fetched;
        enum err err;
    };
};

/* What a follower does next. */
enum replica_next {
    REPLICA_NEXT_NOTHING = 0,
    REPLICA_NEXT_FETCH = 1,    /* ask `leader` in `leader_epoch` for records from `offset` on */
    REPLICA_NEXT_APPEND = 2,   /* append the answer's records, then say REPLICA_APPENDED */
    REPLICA_NEXT_TRUNCATE = 3, /* cut the log to `offset`, then say REPLICA_TRUNCATED */
    REPLICA_NEXT_RESTART = 4,  /* drop all of the log, which begins at `offset`; likewise */
};

/* All false and zero where nothing is to be done. In the order in which they are carried out. */
struct replica_effects {
    bool is_stale;     /* ASSIGN: older than what is known; nothing has changed */
    bool has_resigned; /* leads no more: waiting producers get NOT_LEADER_OR_FOLLOWER */
    bool has_led;      /* leads from now on: the history has `leader_epoch` from the log's end on */
    bool must_refuse;  /* ASSIGN: may not lead in an epoch that the log knows already (S24) */
    bool has_moved;    /* the high watermark is replica.high_watermark now */
    bool lacks_isr;    /* fewer in sync than min.insync.replicas: who waits for acks=all is told */
    bool must_propose; /* AlterPartition with replica_proposal() */
    /* FETCH: the answer */
    enum err err;
    int32_t diverging_epoch; /* -1: records are to be read from the offset on */
    int64_t diverging_end;
    bool is_awaited; /* the high watermark waits for this follower: what it gets is not delayed */
    /* follower */
    enum replica_next next;
    int64_t offset;
    int64_t log_start;       /* the log may begin here; -1: nothing to do */
    bool is_below_watermark; /* what is cut was committed once: never without an unclean election */
    int64_t wake_ms;         /* REPLICA_TICK is wanted then; -1: not */
};

/* `high_watermark` as it was found at the start: a hint, and never a point to truncate to. */
void replica_init(struct replica *r, int32_t self, const struct replica_config *config,
                  int64_t high_watermark);
void replica_fini(struct replica *r);

void replica_step(struct replica *r, const struct replica_event *e, struct replica_effects *fx);

/* ---- queries ---------------------------------------------------------------------------- */

/* The members of the proposal in flight, else of the ISR; returns their number. `out` has room for
 * member_count. */
int32_t replica_proposal(const struct replica *r, const struct replica_member **out);
int32_t replica_isr(const struct replica *r, int32_t *out);
/* Before an append with acks=all: ERR_NOT_ENOUGH_REPLICAS. */
must_use enum err replica_check_isr(const struct replica *r);
/*
 * Whether a leader may tell its end to clients (KIP-207): before its high watermark has reached its
 * epoch, that end could go back.
 */
bool replica_knows_end(const struct replica *r);
/*
 * Leader: whether all others of its in-sync set have fetched in the last `within_ms`: nobody of
 * them knew a later leader then. True, too, for who is alone in it: nobody else is elected.
 */
bool replica_is_heard(const struct replica *r, int64_t now_ms, int64_t within_ms);
/*
 * Whether a follower may serve consumers what lies below its high watermark. The watermark is true
 * at any time, as nothing below it is ever cut without an unclean election; but only while the
 * leader in force answers, and has agreed with this log, is there any news here, and is it known
 * that an offset above the watermark is not one that this log has lost.
 */
bool replica_serves(const struct replica *r);
/*
 * Leader: the follower in `rack` that a consumer there should read `offset` from: in sync, alive,
 * with that offset in its log or at its end; of several the one that has acknowledged most, then
 * that was caught up last, then with the largest id. -1: none, or the leader stands there itself.
 */
int32_t replica_near(const struct replica *r, const struct metadata_image *image, struct str rack,
                     int64_t offset);
/*
 * Whether a follower whose log ends there may be waited for: it is in sync, or had everything that
 * was committed as of the last answer.
 */
bool replica_keeps_up(const struct replica *r, int64_t end);
/* A client's or follower's idea of the leader epoch; negative: it has none.
 * ERR_FENCED_LEADER_EPOCH, ERR_UNKNOWN_LEADER_EPOCH. */
must_use enum err replica_check_epoch(const struct replica *r, int32_t epoch);

#endif
