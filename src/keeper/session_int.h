/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_SESSION_INT_H
#define SL_KEEPER_SESSION_INT_H

#include "keeper/keeper_int.h"
#include "keeper/tree_int.h"

/*
 * A session of a tree in this process: the part that keepers in memory and in SQLite share. It
 * answers reads, applies multis to the tree at once, and tells results, events and states in
 * order, each when the commit that it depends on is durable. On the session's loop, or before
 * io_run.
 */
struct session {
    struct keeper keeper;
    struct tree *tree;
    struct tree_session owner;
    struct list watches; /* armed, of this session */
    struct list reports; /* to be told, in order */
    struct io_msg wake;  /* tells the first of them */
    bool is_awake;       /* `wake` is posted */
    uint64_t submitted;  /* commits so far */
    uint64_t durable;    /* of them; equal where nothing has to be durable */
    enum err over;       /* what calls get once the session has ended; ERR_NONE before */
    struct keeper_report state_report; /* the state that ended it */
    struct keeper_report connected_report;
    struct keeper_report connecting_report;
    bool loses_next;           /* the next multi does not arrive */
    bool is_cut_off;           /* none does, and nothing is told */
    void (*closed)(void *ctx); /* the owner's, while the session closes */
    void *closed_ctx;
    void (*gone)(struct session *s); /* everything is told: the implementation takes it back */
};

void session_init(struct session *s, const struct keeper_vtable *vtable, struct tree *tree,
                  int64_t id);
/* Tells that it is connected. */
void session_begin(struct session *s, struct io_loop *loop, const struct keeper_events *events,
                   void *ctx);

/* The read of the vtable. */
void session_read(struct keeper *k, enum keeper_read_kind kind, const char *path,
                  struct keeper_watch *watch, struct keeper_call *call);
/*
 * Applies a multi to the tree, and says whether it has changed. A caller that makes changes
 * durable then raises `submitted`; in any case session_multi_end follows with the list that this
 * one filled: it puts the events (of every session that they concern) and the result on queues.
 */
bool session_multi(struct session *s, struct keeper_op *ops, int op_count, struct keeper_call *call,
                   struct list *fired);
void session_multi_end(struct session *s, struct keeper_call *call, bool has_changed,
                       struct list *fired);
void session_unwatch(struct keeper *k, struct keeper_watch *watch);

/* Commits up to this one are durable: tells what waited for them. In a callback of the loop. */
void session_durable(struct session *s, uint64_t commit);
/*
 * The commits behind the durable ones failed, and nothing later will be durable. Writes up to
 * `commit` complete with `err`, whatever is queued behind with ERR_IO; events are dropped.
 */
void session_fail(struct session *s, uint64_t commit, enum err err);
/* The connection breaks and comes back: writes that were not told are ERR_UNKNOWN. */
void session_lose_answers(struct session *s);
/* Nothing gets there or back until it is reached again; then all that was queued is told. */
void session_cut_off(struct session *s);
void session_reach(struct session *s);
/* Ephemeral nodes go at once; what is queued is told, then the state. */
void session_expire(struct session *s);
/* As keeper_close says; `gone` is called behind `done`. */
void session_close(struct session *s, void (*done)(void *ctx), void *ctx);

/* Without telling anybody: the loop has ended. */
void session_fini(struct session *s);
/* Likewise, and the session ends for others: its ephemeral nodes go. */
void session_leave(struct session *s);

#endif
