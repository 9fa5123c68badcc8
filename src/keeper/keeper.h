/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_KEEPER_H
#define SL_KEEPER_KEEPER_H

#include "base/bytes.h"
#include "base/list.h"
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
 * most KEEPER_DATA_BYTES_MAX bytes, or null, which is not the same as empty. zxids, node versions
 * and sequence counters never go back.
 *
 * Implementations: memory.c (real session, watch and expiry semantics; for tests and simulations),
 * sqlite.c (one broker: the tree in a file of the data directory, commits on a lane of its own),
 * zookeeper.c (a cluster).
 */

#define KEEPER_DATA_BYTES_MAX (1024 * 1024)
#define KEEPER_PATH_BYTES_MAX 4096

struct keeper; /* one client session */

struct keeper_stat {
    int64_t created_zxid;
    int64_t modified_zxid;
    int32_t version; /* of the data; the first is 0 */
    int32_t children_version;
    int32_t children_count;
    int64_t ephemeral_owner; /* session id; 0 for a persistent node */
};

enum keeper_op_kind {
    KEEPER_CHECK = 0,  /* the node has this version (-1: it exists) */
    KEEPER_CREATE = 1, /* ERR_EXISTS; the parent must exist: ERR_NOT_FOUND */
    KEEPER_SET = 2,    /* ERR_NOT_FOUND, ERR_BAD_VERSION */
    KEEPER_DELETE = 3, /* ERR_NOT_FOUND, ERR_BAD_VERSION, ERR_NOT_EMPTY */
};

struct keeper_op {
    enum keeper_op_kind kind;
    const char *path;   /* borrowed until the call completes */
    struct bytes data;  /* likewise */
    int32_t version;    /* expected; -1 any */
    bool is_ephemeral;  /* CREATE: goes with the session */
    bool is_sequential; /* CREATE: a ten-digit counter of the parent is appended to the name */
    /* results: valid when the call succeeded or says which operation failed */
    enum err err; /* of this operation; ERR_CANCELLED when another one failed */
    struct keeper_stat stat;
    char *created_path; /* sequential CREATE, else NULL: freed by keeper_call_release */
};

enum keeper_event_kind {
    KEEPER_NODE_CREATED = 0,
    KEEPER_NODE_DELETED = 1,
    KEEPER_NODE_CHANGED = 2,
    KEEPER_CHILDREN_CHANGED = 3,
};

/* Private: what waits its turn to be told to the owner of a session. */
struct keeper_report {
    struct list node;
    uint64_t after; /* the commit that has to be durable first */
    int kind;
};

/*
 * A watch fires once, before the result of any later read shows what it was watching for. It
 * belongs to its owner again when it fired, when keeper_unwatch returns, when the read that should
 * have armed it fails (but see keeper_exists), and when the session has ended. Begins as all zero
 * but for `fired`.
 */
struct keeper_watch {
    void (*fired)(struct keeper_watch *w, enum keeper_event_kind kind);
    /* private */
    struct keeper *_keeper; /* whose loop is told; NULL: not armed */
    struct list _node;
    char *_path; /* while it waits for a node that is not there; owned */
    enum keeper_event_kind _event;
    struct keeper_report _report;
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
    struct keeper_report _report;
    char **_created; /* paths of sequential nodes */
    int _created_count;
};

/*
 * Calls are for the keeper's loop (reads and multis also before io_run). ERR_INVALID_ARG: not a
 * path, a node that is to be below an ephemeral one, the root deleted. ERR_LIMIT: too much data.
 * ERR_CANCELLED: the session has ended. ERR_IO: the keeper has failed.
 *
 * Reads. `watch` may be NULL. exists: ERR_NOT_FOUND still arms the watch (for creation). A read
 * sees every multi that was submitted before it. Watches of get and exists tell of the node and
 * its data, those of children of its children and its end.
 */
void keeper_get(struct keeper *k, const char *path, struct keeper_watch *watch,
                struct keeper_call *call);
void keeper_children(struct keeper *k, const char *path, struct keeper_watch *watch,
                     struct keeper_call *call);
void keeper_exists(struct keeper *k, const char *path, struct keeper_watch *watch,
                   struct keeper_call *call);
/* All operations happen or none does. `ops` are borrowed until the call completes. */
void keeper_multi(struct keeper *k, struct keeper_op *ops, int op_count, struct keeper_call *call);
void keeper_unwatch(struct keeper *k, struct keeper_watch *watch);
/* Frees the results; the call may be used again. */
void keeper_call_release(struct keeper_call *call);

enum keeper_state {
    KEEPER_CONNECTING = 0,
    KEEPER_CONNECTED = 1,
    KEEPER_EXPIRED = 2, /* final: ephemeral nodes are gone; a new keeper is needed */
    KEEPER_CLOSED = 3,
    KEEPER_FAILED = 4, /* final: a write of the store failed; every call gets ERR_IO */
};

/*
 * Told on the loop at each change of state, in order with results and events. `state_changed` may
 * be NULL.
 */
struct keeper_events {
    void (*state_changed)(void *ctx, enum keeper_state state);
};

/* Of ZooKeeper: 0 before the first KEEPER_CONNECTED. */
int64_t keeper_session_id(const struct keeper *k);

/*
 * Ends the session, with its ephemeral nodes and watches: calls whose results were not told yet
 * complete with ERR_CANCELLED (a multi among them may have happened), then the state is
 * KEEPER_CLOSED, then `done`, and it is gone (an SQLite keeper: ready for keeper_free).
 * No call may follow, not even from the callbacks of cancelled ones.
 */
void keeper_close(struct keeper *k, void (*done)(void *ctx), void *ctx);

/*
 * Blocking, after io_run: the orderly end of a keeper in SQLite, with or without keeper_close
 * before, and of another one whose keeper_close was not called or has not told its end. Nobody
 * is told anything: calls that have not completed never will, watches are idle; their memory lives
 * until here.
 */
void keeper_free(struct keeper *k);

/* ---- implementations -------------------------------------------------------------------- */

/* A tree in memory that many sessions share; their loops all run on one thread. */
struct keeper_memory;

struct keeper_memory *keeper_memory_new(void);
/* Sessions that were not closed (their process was killed) are freed with it. */
void keeper_memory_free(struct keeper_memory *m);
/* A new session. Its owner falling silent is the test's to notice: keeper_memory_expire. */
struct keeper *keeper_memory_open(struct keeper_memory *m, struct io_loop *loop,
                                  const struct keeper_events *events, void *ctx);
/* NULL: it has been closed or freed. */
struct keeper *keeper_memory_find(struct keeper_memory *m, int64_t session_id);
/*
 * Tests: ends a session as a timeout would: ephemeral nodes go at once; results and events until
 * then are still told, then the state is KEEPER_EXPIRED. It still wants keeper_close, unless its
 * process is dead. On the thread of the loops.
 */
void keeper_memory_expire(struct keeper *k);
/*
 * Tests: the connection breaks and comes back at once, which the states tell. Multis whose results
 * were not told yet and that have changed something end with ERR_UNKNOWN: they have happened.
 */
void keeper_memory_lose_answers(struct keeper *k);
/* Likewise, but at the next multi, which ends with ERR_UNKNOWN and has not happened. */
void keeper_memory_lose_request(struct keeper *k);
/*
 * Tests: from now on nothing gets there or back: multis do not happen and end with ERR_UNKNOWN,
 * what was read, events and states are told when it is reached again. It may be expired meanwhile.
 */
void keeper_memory_cut_off(struct keeper *k);
void keeper_memory_reach(struct keeper *k);

/*
 * The tree in an SQLite file. Opens or makes it before io_run (blocking; on failure `*message`,
 * owned by the caller, says what is wrong; ERR_CORRUPT, ERR_IO, ERR_NOT_FOUND: the directory).
 * Whoever calls holds the directory's lock. Commits are durable (synchronous=FULL). Ephemeral
 * nodes of earlier processes are gone.
 */
must_use enum err keeper_sqlite_open(struct io *io, const char *path, struct io_loop *loop,
                                     const struct keeper_events *events, void *ctx,
                                     struct keeper **out, char **message);

/*
 * The tree in ZooKeeper, under the chroot of the connect string, which is made if it is not there.
 * Nothing is waited for: calls wait until there is a connection (reads also when one is lost), and
 * connecting is tried for ever. The states tell: CONNECTED, CONNECTING when the connection is lost,
 * CONNECTED again with the same session and its watches, or EXPIRED; then the owner opens another
 * keeper. While there is no connection nobody knows whether the session still lives.
 *
 * Multis: of a node that was created together with others, or checked, the stat has what is known
 * without asking: the version, the owner, and the zxid if the same multi sets a node (else 0).
 * Servers refuse multis above their jute.maxbuffer (1 MiB by default) by closing the connection,
 * which looks like any other loss.
 */
struct keeper_zookeeper_args {
    const char *connect;        /* "host:port,host:port/chroot", as in zookeeper.connect */
    int32_t session_timeout_ms; /* the servers may choose another one near it */
    int32_t in_flight_max;      /* calls that are out at a time; the others wait in order */
};

/* Before io_run or on the loop. ERR_INVALID_ARG: the connect string, with a message as above. */
must_use enum err keeper_zookeeper_open(struct io *io, const struct keeper_zookeeper_args *args,
                                        struct io_loop *loop, const struct keeper_events *events,
                                        void *ctx, struct keeper **out, char **message);

#endif
