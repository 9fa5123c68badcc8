/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_CLUSTER_H
#define SL_TESTS_SIM_CLUSTER_H

#include "keeper/keeper.h"
#include "peer.h"
#include "run.h"

/*
 * A run with a cluster: three brokers on machines of their own, one keeper in memory that all have
 * sessions with, and clients that look for leaders by asking one broker after the other. What was
 * promised and how it is judged is history.h's, as for one broker: all topics are durable, so no
 * fault within the model may take, change or move what was acknowledged by all or seen by a reader.
 */

#define NODES 3
#define NODE_SESSION_MS 800 /* a broker's, with the keeper */
#define WRITERS_MAX 4
#define READERS_MAX 3

struct node {
    struct run *run;
    int32_t id; /* 1, 2, 3 */
    struct sim_host *host;
    struct io *io;        /* of the present life, or the last one */
    int64_t session;      /* with the keeper; 0: none yet */
    int64_t paused_ns;    /* until then */
    int64_t stops_ns;     /* it was asked to stop, then; 0: it was not */
    int64_t starts_ns;    /* a supervisor starts it again, then; INT64_MAX: it is not down */
    int64_t broker_epoch; /* of its last registration, as it says */
    bool is_harmed;       /* its disk, on purpose: it may find damage, and stop for it */
    bool has_bad_disk;    /* a call of it fails: it may stop for that, or go on without it */
    bool has_two_dirs;    /* from its next life on */
    bool is_ready;
    bool is_stopped; /* by itself or as it was asked */
    enum err stop_err;
};

/* A session that has not been heard of: it ends then. */
struct doomed {
    int64_t session;
    int64_t ends_ns;
};

#define DOOMED_MAX 64

/* The last end of a log that a client was told. */
struct told_end {
    int64_t end;
    int32_t epoch;
    int64_t told_ns;
};

struct cluster_world {
    struct run *run;
    struct keeper_memory *keeper;
    struct doomed doomed[DOOMED_MAX];
    int doomed_count;
    struct node nodes[NODES];
    bool keeps_down;    /* no supervisor: the end */
    bool has_lost_disk; /* once in a run */
    bool lacks_note;    /* a disk counts as another one: it is not noted since when it is there */
    bool is_undecided;  /* and nobody who is left may lead */
    /* clients */
    struct io_timer tick;
    struct steward *steward;
    struct writer *writers[WRITERS_MAX];
    struct cluster_reader *readers[READERS_MAX];
    struct cluster_reader *verifier;
    int writer_count;
    int reader_count;
    bool verifies;
    struct told_end ends[TOPICS_MAX][TOPIC_PARTITIONS_MAX];
    int64_t *ids; /* of producers */
    int id_count;
};

/* ---- cluster_lives.c: the course of a run */
void cluster_run(struct run *run);
/* When its processes have ended. */
void cluster_run_free(struct run *run);

/* ---- cluster_nodes.c: processes, and what the keeper knows of them */
void nodes_make(struct run *run);
void node_begin(struct node *n);
bool node_lives(const struct node *n);
/* Starts what has been down for long enough, ends sessions of those that were silent for too long.
 * To be called all the time. */
/* SIGTERM: it has to end within seconds. */
void node_stop(struct node *n);
void nodes_look_after(struct run *run);
/* Its machine hears and says nothing for a while. */
void node_pause(struct node *n, int64_t ns);
void node_kill(struct node *n);
void node_cut_power(struct node *n);
/* All of it: the next life begins with an empty one. */
void node_lose_disk(struct node *n);
/* The nth call of the kind from now on fails, in this life or a later one. */
void node_fail_disk(struct node *n, enum sim_call call, uint32_t nth);
/* No call fails any more. Who may have seen one fail is killed: another life finds all again. */
void node_mend_disk(struct node *n);
/* Nothing gets from it to the keeper or back; its session ends after a while. */
void node_lose_keeper(struct node *n);
/* If that is not too late the session goes on. */
void node_find_keeper(struct node *n);
/* NULL: it has no session. */
struct keeper *node_keeper(const struct node *n);
/* All, and no session of an earlier life is left. */
bool nodes_are_ready(const struct run *run);
void nodes_free(struct run *run);

/* ---- cluster_clients.c: their process, and asking one broker after the other */
void cluster_clients_start(struct run *run);
void cluster_clients_free(struct run *run);
/* The next one. Its calls end. */
void peer_go_on(struct peer *p);
void peer_go_to(struct peer *p, int32_t broker);
/* This error says that another broker should be asked, or the same a little later. */
bool is_of_leadership(enum err err);

/* ---- cluster_steward.c: makes topics, and knows whether all is well */
struct steward *steward_new(struct run *run);
void steward_free(struct steward *s);
void steward_tick(struct steward *s);
/* From now on it asks whether every replica of every topic is in sync. */
void steward_audit(struct steward *s);
bool steward_is_content(const struct steward *s);
/* It would be, but for a partition without a leader. */
bool steward_lacks_leader(const struct steward *s);
/* Makes a violation of what is not well. */
void steward_complain(const struct steward *s);

/* ---- cluster_writer.c: a producer of one partition at a time */
struct writer *writer_new(struct run *run, int index);
void writer_free(struct writer *w);
void writer_tick(struct writer *w);
bool writer_is_idle(const struct writer *w);

/* ---- cluster_reader.c: reads a partition from its first offset on, then another one */
struct cluster_reader *cluster_reader_new(struct run *run, bool is_verifier);
void cluster_reader_free(struct cluster_reader *r);
void cluster_reader_tick(struct cluster_reader *r);
/* Reads everything there is, once. */
void cluster_reader_verify(struct cluster_reader *r);
bool cluster_reader_is_done(const struct cluster_reader *r);
void cluster_reader_complain(const struct cluster_reader *r);

/* ---- cluster_logs.c: when all brokers have stopped, all replicas have the same bytes */
void logs_compare(struct run *run);
/* All segments of a log behind each other, whichever directory it is in; false: there is none. */
bool log_read_whole(struct io *io, const char *topic, int32_t partition, struct buf *out);

#endif
