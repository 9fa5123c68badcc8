/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_SCRIPT_H
#define SL_TESTS_SIM_SCRIPT_H

#include "cluster.h"

/*
 * A scenario: three brokers, one keeper and one client in a world where everything else is dull and
 * nothing is left to chance; a power cut takes all that was not synced. There is one topic, "t",
 * with one partition; its records have short texts without blanks for values. Each function returns
 * when what it says has happened. What does not happen in time, or must not happen, ends the
 * process: scenarios run in children.
 *
 * Whatever is read is remembered: no offset may ever have another value, at any broker, unless the
 * script says that it may (script_forget). No log may be cut below its high watermark either.
 */

/* Brokers. C is the first one there, and so the controller. */
enum {
    A = 1,
    B = 2,
    C = 3,
};

/* acks */
enum {
    ALL = -1,
    NONE = 0,
    ONE = 1,
};

#define SCRIPT_OFFSETS_MAX 256
#define SCRIPT_VALUE_MAX 16
#define SCRIPT_TEXT_MAX 1024

struct ask;

struct script {
    struct run run;
    /* The client's, to each broker: answers come in order, and a write may wait for long. */
    struct peer peers[NODES];
    struct peer writers[NODES];
    bool has_restarted[NODES]; /* connections to a former life are given up */
    struct list asks;          /* struct ask, not sent yet */
    struct io_timer tick;
    int64_t producer_id; /* -1: it is not idempotent */
    int32_t sequence;
    enum err err;       /* the broker's, in the answer that is being taken */
    int32_t epoch;      /* of the leader, as script_await has found it */
    int32_t leader;     /* likewise */
    int32_t controller; /* likewise */
    int64_t next;       /* of a reader */
    int32_t session;    /* that it was given */
    char whole[16];     /* "isr 1,2,3": all replicas */
    struct uuid topic_id;
    char text[SCRIPT_TEXT_MAX]; /* what was found */
    char seen[SCRIPT_OFFSETS_MAX][SCRIPT_VALUE_MAX];
    bool may_cut_committed;
};

/* Makes the world, and runs the scenario in it. */
void script_run(struct script *s, void (*scenario)(struct script *s));
_Noreturn void script_fail(struct script *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- script.c: what happens to brokers */
void script_pass(struct script *s, int64_t ms);
void script_start(struct script *s, int id);
void script_start_unready(struct script *s, int id);
void script_kill(struct script *s, int id);
void script_cut_power(struct script *s, int id);
void script_stop(struct script *s, int id);
/* It ends by itself. */
void script_await_end(struct script *s, int id);
/* Nothing gets from one to the other. */
void script_cut(struct script *s, int from, int to);
/* It and the other brokers do not hear each other any more, nor does the keeper hear it. Clients
 * do. */
void script_isolate(struct script *s, int id);
/* Of all cuts. */
void script_heal(struct script *s);
struct node *script_node(struct script *s, int id);
void script_expect(struct script *s, enum err err, enum err expected, const char *what);

/* ---- script_logs.c: what is on the disks */
/* Every record from an offset on, of whole batches that stand behind each other. */
void script_each_record(struct bytes batches, int64_t offset,
                        void (*see)(struct script *s, const struct record *r), struct script *s);
/* All values of the log, above the high watermark too. */
void script_holds(struct script *s, int id, const char *values);
/* Flips a bit of a record with this value. */
void script_damage(struct script *s, int id, const char *value);
/* Cuts a file of the log in the middle. */
void script_tear(struct script *s, int id, const char *name);
/* Everybody is healed, started and in sync, reads this, and stops: it is all that the logs have. */
void script_ends(struct script *s, const char *values);

/* ---- script_client.c: what clients do */
void script_client_start(struct script *s);
/* Replicas "1,2,3", the first one leads; settings "a=b c=d". */
void script_make_topic(struct script *s, const char *replicas, const char *settings);
/* Likewise, and all its replicas know that all are in sync. */
void script_topic(struct script *s, const char *replicas, const char *settings);
void script_delete_topic(struct script *s);
/*
 * Until broker `id` says of the partition "isr 1,2 leader 1 epoch 0", or what this begins with.
 * Leaves the epoch in s->epoch. No leader: -1.
 */
void script_await(struct script *s, int id, const char *state);
/* From now on batches are numbered. */
void script_be_idempotent(struct script *s, int id);
void script_write(struct script *s, int id, int16_t acks, const char *value, enum err expected);
/* To whoever takes it, as clients do: the same again until it is acknowledged by all. */
void script_write_anywhere(struct script *s, const char *value);
/* The batch before once more, with its sequence. */
void script_write_again(struct script *s, int id, const char *value, enum err expected);
struct ask *script_begin_write(struct script *s, int id, int16_t acks, const char *value);
void script_end_write(struct script *s, struct ask *ask, enum err expected);
bool script_is_answered(const struct ask *ask);
/* A consumer reads this and nothing else: it waits for what is missing. */
void script_reads(struct script *s, int id, const char *values);
/* One fetch of a consumer: its error, the epoch it believes in or -1. */
void script_fetch(struct script *s, int id, int64_t offset, int32_t epoch, enum err expected);
void script_fetch_id(struct script *s, int id, struct uuid topic_id, enum err expected);
/* Likewise, by a consumer that says in which rack it stands: any replica may answer. */
void script_fetch_near(struct script *s, int id, int64_t offset, int32_t epoch, enum err expected);
/* Such a fetch waits for more than the script has patience: it has to be woken. */
struct ask *script_begin_fetch_near(struct script *s, int id, int64_t offset);
void script_end_fetch(struct script *s, struct ask *ask, const char *values, enum err expected);
/* A fetch that asks for a session and reads all there is; 0: it got none. */
int32_t script_open_session(struct script *s, int id, const char *values);
void script_go_on_in_session(struct script *s, int id, int32_t session, enum err expected);
/* Where an epoch ends, as a consumer asks: "epoch 0 ends at 1". */
void script_epoch_end(struct script *s, int id, int32_t epoch, const char *expected);
void script_elect_unclean(struct script *s);
/* What was read from here on may be lost or change. */
void script_forget(struct script *s, int64_t offset);
/*
 * Any request. `take` gets the response, and says in s->err what is wrong. Returns that, or how the
 * connection has ended.
 */
enum err script_ask(struct script *s, int id, int16_t api_key, int16_t version, const void *request,
                    void (*take)(struct script *s, const void *response));

#endif
