/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_CLUSTER_H
#define SL_BROKER_CLUSTER_H

#include "broker/control.h"
#include "broker/probe.h"
#include "client/client.h"
#include "controller/controller.h"
#include "keeper/registration.h"

/*
 * A broker among others, on the control loop: cluster.c (its registration, the election of a
 * controller, its own part of the image), rule.c (this broker as the controller), announce.c (what
 * the controller tells the others), orders_api.c (being told).
 */

struct rule;

struct lost_replica {
    struct uuid topic_id;
    int32_t index;
    bool is_there; /* its log is, and cannot be used */
};

struct cluster {
    struct control *control;
    struct client *peers; /* other brokers, by the listener that brokers use */
    struct registration registration;
    char *registration_json;
    bool is_registering;
    int64_t broker_epoch; /* -1: not registered */
    /* notes.c: for the next life, and of the one before */
    int64_t past_session; /* of the process before, or the last that has ended; 0: not known */
    int64_t session;      /* as it is noted for the next one */
    int64_t since;        /* the registration with which these directories came; -1: unknown yet */
    bool has_changed_dirs;
    struct io_job notes_job;
    bool is_noting; /* the job is out */
    bool must_note; /* once more */
    struct controller_heard heard;
    /* lease.c */
    bool is_connected; /* to the keeper */
    bool is_told;      /* the controller has told this life everything */
    struct io_timer lease;
    int64_t lease_due_ns;      /* 0: it was never begun */
    int64_t doubts_since_ns;   /* not sure; 0: it is, or has not noticed */
    struct list doubtful;      /* struct doubtful: requests that wait until it is sure */
    struct lost_replica *lost; /* partitions that this broker may not lead */
    int32_t lost_count;
    /* the election */
    struct keeper_watch watch; /* of the controller's node */
    struct keeper_call call;
    struct keeper_op ops[3];
    char *texts[2];
    int32_t epoch; /* as it was read, with the version of its node */
    int32_t epoch_version;
    bool deposes;       /* the controller of now is suspect */
    struct probe probe; /* of the controller, where it is another broker */
    struct io_timer retry;
    struct rule *rule;         /* NULL: another broker is the controller */
    int32_t ruled;             /* the epoch of the last rule here; -1: none */
    struct list announcements; /* what this broker, as the controller, tells each other one */
    struct list hearings;      /* struct heard: who waits until others have been told */
    /* changes of configurations by others: config_changes.c */
    struct keeper_watch notes_watch;
    struct keeper_call notes_call;
    bool is_listing;
    bool must_list;
    int32_t last_note;
    /* log directories that have failed: dir_failures.c */
    int dirs_failed; /* here, as it was noted */
    struct keeper_watch dirs_watch;
    struct keeper_call dirs_call;
    bool is_listing_dirs;
    bool must_list_dirs;
    /* changes of in-sync sets that leaders here propose */
    struct list proposals; /* struct isr_change */
    struct leave *leave;
    void (*closed)(void *ctx); /* the broker stops, and waits for `closing` parts */
    void *closed_ctx;
    int closing;
    bool is_called; /* `call` is out */
    bool must_look; /* the controller's node has changed meanwhile */
    struct isr_batch *batch;
};

/* The listener by which brokers reach each other. */
struct str cluster_listener(const struct control *c);
/* The addresses of the image's brokers, for calls, and who is asked whether it is there. */
void cluster_tell_peers(struct cluster *k);

/* This session has ended while the broker lives; the control has another keeper by now. */
void cluster_session_ended(struct cluster *k, int64_t session);
/* The rule of this broker has ended: it stands for election again, at once or a little later. */
void cluster_stand_again(struct cluster *k, bool at_once);

/* ---- rule.c ----------------------------------------------------------------------------- */

/* This broker has been elected: takes over. `epoch` is stored in a node of this version. */
void rule_begin(struct cluster *k, int32_t epoch, int32_t epoch_version);
void rule_free(struct cluster *k);
/* What the image says is this rule's word: nobody who was elected later has told it anything. */
bool rule_is_in_force(const struct cluster *k);
/* The session that it was elected with has ended. */
void rule_has_lost_session(struct cluster *k);
/* An order of another controller has come. True: that one was elected later, this rule has ended.
 */
bool rule_has_ended_by(struct cluster *k, int32_t controller_epoch);

/*
 * Stores what a plan changes of partitions, fenced by our election and conditional on what it was
 * planned from; then the plan is the image, here and, by and by, everywhere. Within a task. On an
 * error nothing has changed here; what cannot be explained ends the rule.
 */
void rule_carry_out(struct cluster *k, struct metadata_delta *takes,
                    void (*done)(struct control *c, void *ctx, enum err err), void *ctx);

/* A broker is about to stop: its leaderships move, it leaves the in-sync sets, and gets into none
 * any more. A task. */
void rule_let_go(struct cluster *k, int32_t broker_id,
                 void (*done)(struct control *c, void *ctx, enum err err), void *ctx);

/* A broker's process is gone, although its session has not ended: what it leads moves. */
void rule_suspect(struct cluster *k, int32_t broker_id);
/* This broker may have been told to lead what it cannot lead. */
void rule_refuse_own(struct cluster *k);
/* A broker does not lead a partition that it was told to lead: another one does, or nobody. */
void rule_refused(struct cluster *k, int32_t broker_id, struct uuid topic_id, int32_t index);

/* ---- notes.c ----------------------------------------------------------------------------- */

/* Blocking, before io_run. ERR_IO, ERR_ACCESS: `*message`, owned by the caller, says of what. */
must_use enum err notes_read(struct cluster *k, char **message);
/* This broker has registered. */
void notes_write(struct cluster *k);

/* ---- lease.c ---------------------------------------------------------------------------- */

/* This life has been told everything: from now on it is sure while its session is. */
void lease_begin(struct cluster *k);
/* The session has ended, or the broker stops. */
void lease_end(struct cluster *k);
/* The session is connected, again perhaps. */
void lease_connected(struct cluster *k);

/* ---- lost.c ------------------------------------------------------------------------------ */

/*
 * This broker is in the in-sync set of a partition, old enough to have records, of which it has no
 * log: whether that log was on another disk. `topic` is borrowed until `then`.
 */
void lost_check(struct cluster *k, const struct metadata_topic *topic, int32_t index,
                void (*then)(void *ctx, bool is_lost), void *ctx);
/* Its log is here and cannot be used: likewise, and no log is made for it in this life. */
void lost_note(struct cluster *k, struct uuid topic_id, int32_t index);
/* It is lost, and not served here yet. */
bool lost_has(const struct cluster *k, struct uuid topic_id, int32_t index);
/* It was noted: no log may be made for it. */
bool lost_is_there(const struct cluster *k, struct uuid topic_id, int32_t index);

/* ---- dir_failures.c --------------------------------------------------------------------- */

/* A log directory of this broker has failed, and others work. */
void dir_failures_note(struct cluster *k);
/* The replica of this broker is in a directory that has failed. */
bool dir_failures_have(const struct cluster *k, struct uuid topic_id, int32_t index);
/* As the controller: directories that fail from now on, or have failed and nobody has heard. */
void dir_failures_watch(struct cluster *k);

/* ---- leave.c ---------------------------------------------------------------------------- */

/* This broker stops: first the controller moves what it leads, if it can be asked. */
void cluster_leave(struct control *c, void (*done)(struct control *c));
/* Ends what goes to other brokers; `done` when nothing is open any more. */
void cluster_close(struct control *c, void (*done)(void *ctx), void *ctx);
/* One of those that it waits for has ended. */
void cluster_part_closed(struct cluster *k);

/* ---- announce.c ------------------------------------------------------------------------- */

struct announcement;

/* Each live broker is told what it does not know yet. */
void announce(struct cluster *k);
/* This one forgets what it was told, and hears it once more; this broker itself may be meant. */
void announce_again(struct cluster *k, int32_t broker_id);
/* All that can be reached know all. */
bool announcements_are_done(struct cluster *k);
/* The rule has ended: nobody is told anything. The next rule knows of nobody what it was told. */
void announcements_rest(struct cluster *k);
/* No more calls and timers; their memory stays until io has let go of it. */
void announcements_stop(struct cluster *k);
/* When the loops have ended. */
void announcements_free(struct cluster *k);

/* ---- config_changes.c ------------------------------------------------------------------- */

/* Begins to watch what others change; then goes on by itself. */
void config_changes_watch(struct cluster *k);

/* ---- orders_api.c ----------------------------------------------------------------------- */

/*
 * Within a task: makes the partitions that the image gives to this broker and that are not here.
 * With `knows_all` the image has all that the controller knows, and what it does not give to this
 * broker is taken away; otherwise StopReplica says so.
 */
void cluster_reconcile(struct control *c, bool knows_all,
                       void (*done)(struct control *c, void *ctx), void *ctx);

/* ---- propose.c: in-sync sets ------------------------------------------------------------- */

/* A leader's proposal, on its way from its shard to the controller and back. */
struct isr_change {
    struct list link; /* cluster->proposals */
    struct io_msg msg;
    struct partition *partition; /* a reference */
    int32_t leader_epoch;
    int32_t partition_epoch;
    struct alter_partition_request_broker *isr; /* owned */
    int32_t count;
    struct replica_altered answer; /* its isr is owned */
};

/* On the partition's shard; the answer goes to replicate_altered there. */
void propose_isr(struct partition *p);
/* There may be another controller: what the one before was asked is asked again. */
void proposals_note_controller(struct cluster *k);
void proposals_free(struct cluster *k);

#endif
