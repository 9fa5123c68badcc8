/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_KEEPER_H
#define SL_KEEPER_KEEPER_H

#include "base/bytes.h"
#include "io/io.h"

/*
 * The seam to the coordination service: a small tree of versioned nodes with ephemeral nodes,
 * watches and atomic `multi`, as ZooKeeper has it. It is the controller's store and nobody else's.
 *
 * Everything is asynchronous: a call is a struct of the caller's that completes exactly once on
 * the loop that the keeper was made for (the control loop), never inside the submitting call;
 * results and watch events arrive in order. ERR_UNKNOWN means "it may have happened": the
 * connection was lost with the request under way.
 *
 * Paths are absolute, without a trailing slash ("/brokers/topics"); the root is "/". Data is at
 * most KEEPER_DATA_BYTES_MAX. zxids, node versions and sequence counters never go back.
 *
 * Implementations: memory.c (real session, watch and expiry semantics; for tests and simulations),
 * sqlite.c (one broker: the tree in a file of the data directory, commits on a lane of its own),
 * zookeeper.c (a cluster).
 */

#define KEEPER_DATA_BYTES_MAX (1024 * 1024)

struct keeper; /* one client session */

struct keeper_stat {
    int64_t created_zxid;
    int64_t modified_zxid;
    int32_t version;          /* of the data; the first is 0 */
    int32_t children_version;
    int32_t children_count;
    int64_t ephemeral_owner;  /* session id; 0 for a persistent node */
};

enum keeper_op_kind {
    KEEPER_CHECK = 0,  /* the node has this version (-1: it exists) */
    KEEPER_CREATE = 1, /* ERR_EXISTS; the parent must exist: ERR_NOT_FOUND */
    KEEPER_SET = 2,    /* ERR_NOT_FOUND, ERR_BAD_VERSION */
    KEEPER_DELETE = 3, /* ERR_NOT_FOUND, ERR_BAD_VERSION, ERR_NOT_EMPTY */
};

struct keeper_op {
    enum keeper_op_kind kind;
    const char *path;    /* borrowed until the call completes */
    struct bytes data;   /* likewise */
    int32_t version;     /* expected; -1 any */
    bool is_ephemeral;   /* CREATE: goes with the session */
    bool is_sequential;  /* CREATE: a ten-digit counter of the parent is appended to the name */
    /* results */
    enum err err;        /* of this operation; ERR_CANCELLED when another one failed */
    struct keeper_stat stat;
    char *created_path;  /* sequential CREATE: owned by the call, freed by keeper_call_release */
};

enum keeper_event_kind {
    KEEPER_NODE_CREATED = 0,
    KEEPER_NODE_DELETED = 1,
    KEEPER_NODE_CHANGED = 2,
    KEEPER_CHILDREN_CHANGED = 3,
};

/*
 * A watch fires once, before the result of any later read shows what it was watching for. It
 * belongs to its owner again when it fired or when keeper_unwatch returns.
 */
struct keeper_watch {
    void (*fired)(struct keeper_watch *w, enum keeper_event_kind kind);
    struct list _node;
    char *_path;
};

struct keeper_call {
    void (*done)(struct keeper_call *call);
    enum err err;
    /* results of reads: owned by the call, freed by keeper_call_release */
    struct bytes data;
    char **children; /* names, sorted by bytes */
    int children_count;
    struct keeper_stat stat;
    int failed_op; /* multi: index of the first operation that failed; -1 none */
    /* private */
    struct io_msg _msg;
    struct keeper *_keeper;
    struct keeper_watch *_watch;
    char *_path;
    struct keeper_op *_ops;
    int _op_count;
    int _kind;
};

/* Reads. `watch` may be NULL. exists: ERR_NOT_FOUND still arms the watch (for creation). */
void keeper_get(struct keeper *k, const char *path, struct keeper_watch *watch,
                struct keeper_call *call);
void keeper_children(struct keeper *k, const char *path, struct keeper_watch *watch,
                     struct keeper_call *call);
void keeper_exists(struct keeper *k, const char *path, struct keeper_watch *watch,
                   struct keeper_call *call);
/* All operations happen or none does. `ops` are borrowed until the call completes. */
void keeper_multi(struct keeper *k, struct keeper_op *ops, int op_count,
                  struct keeper_call *call);
void keeper_unwatch(struct keeper *k, struct keeper_watch *watch);
/* Frees the results; the call may be used again. */
void keeper_call_release(struct keeper_call *call);

enum keeper_state {
    KEEPER_CONNECTING = 0,
    KEEPER_CONNECTED = 1,
    KEEPER_EXPIRED = 2, /* final: ephemeral nodes are gone; a new keeper is needed */
    KEEPER_CLOSED = 3,
};

/* Told on the loop at each change of state. */
struct keeper_events {
    void (*state_changed)(void *ctx, enum keeper_state state);
};

int64_t keeper_session_id(const struct keeper *k);

/* Ends the session: pending calls complete with ERR_CANCELLED, then `done` and it is gone. */
void keeper_close(struct keeper *k, void (*done)(void *ctx), void *ctx);

/* ---- implementations -------------------------------------------------------------------- */

/* A tree in memory that many sessions share (in one process). */
struct keeper_memory;

struct keeper_memory *keeper_memory_new(void);
void keeper_memory_free(struct keeper_memory *m);
/* `session_timeout_ms` of silence (see keeper_memory_expire) ends the session. */
struct keeper *keeper_memory_open(struct keeper_memory *m, struct io_loop *loop,
                                  const struct keeper_events *events, void *ctx);
/* Tests: ends a session as a timeout would. On the session's loop. */
void keeper_memory_expire(struct keeper *k);

/*
 * The tree in an SQLite file. Opens or makes it before io_run (blocking; `message`, owned by the
 * caller, says what is wrong): commits are durable (synchronous=FULL). Ephemeral nodes of earlier
 * processes are gone.
 */
must_use enum err keeper_sqlite_open(struct io *io, const char *path, struct io_loop *loop,
                                     const struct keeper_events *events, void *ctx,
                                     struct keeper **out, char **message);
/* Blocking, after io_run: ends the lane and closes the file. */
void keeper_sqlite_close(struct keeper *k);

#endif
