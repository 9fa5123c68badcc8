/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_ZOOKEEPER_CALLS_INT_H
#define SL_KEEPER_ZOOKEEPER_CALLS_INT_H

#include <pthread.h>
#include <zookeeper/zookeeper.h>

#include "keeper/keeper_int.h"
#include "keeper/watches_int.h"
#include "keeper/zookeeper_int.h"

/*
 * A session of ZooKeeper and its calls, as zookeeper.c (the session) and zookeeper_calls.c (the
 * calls) see them. On the keeper's loop, unless it says otherwise.
 */

enum notice_kind {
    NOTICE_ANSWER = 0, /* in a request */
    NOTICE_ROOT = 1,   /* likewise, of one of our own that make the chroot */
    NOTICE_EVENT = 2,
    NOTICE_STATE = 3,
};

/* Made by the client's threads, read by the loop. */
struct notice {
    struct list node;
    enum notice_kind kind;
    int code;        /* of the client: a result, an event's type or a state */
    int64_t session; /* NOTICE_STATE, connected */
    char *path;      /* NOTICE_EVENT; owned */
};

/* A call. While it is out, it and its call's results belong to the client's threads. */
struct request {
    struct notice notice;
    struct list node; /* in zookeeper.waiting or .sent */
    struct zookeeper *keeper;
    struct keeper_call *call; /* NULL: our own */
    uint64_t number;          /* in order of submission */
    bool is_done;             /* call->err is set */
    /* Of a read. */
    enum keeper_read_kind kind;
    char *path; /* the service's: with the chroot; NULL: a multi */
    struct keeper_watch *watch;
    /* Of a multi. */
    struct keeper_op *ops;
    int op_count;
    zoo_op_result_t *results;
    struct Stat *stats;
};

struct zookeeper {
    struct keeper keeper;
    struct io *io;
    struct zookeeper_place place;
    int32_t timeout_ms;
    int32_t in_flight_max;
    zhandle_t *handle; /* NULL: not yet, or no more */
    struct watch_table watches;
    struct list waiting;
    struct list sent;
    struct list root_requests; /* those that make the chroot */
    int in_flight;             /* of the sent ones, those without an answer */
    uint64_t submitted;
    bool is_open; /* there is a handle */
    bool is_connected;
    bool is_stuck; /* the client takes no more calls: the session is ending */
    bool root_is_made;
    int root_pending;  /* creations of the chroot's nodes that are out */
    enum err root_err; /* why it cannot be made */
    enum err over;     /* what calls get once the session has ended */
    int64_t lost_ns;   /* since when there is no connection */
    struct io_timer timer;
    int64_t retry_ns;
    struct io_job job;
    bool job_runs;
    void (*closed)(void *ctx); /* the owner's, while it closes */
    void *closed_ctx;
    /* Shared with the client's threads. */
    pthread_mutex_t lock;
    struct list notices;
    struct io_msg wake;
    bool is_woken; /* `wake` is posted, or its function runs */
};

static inline struct zookeeper *zookeeper_of(struct keeper *k)
{
    return CONTAINER_OF(k, struct zookeeper, keeper);
}

/* ---- zookeeper.c */

/* Leaves a notice for the loop. The client's threads. */
void zookeeper__post(struct zookeeper *k, struct notice *n);
/* Lets the session's turn come. Any thread. */
void zookeeper__wake(struct zookeeper *k);
/* What the client calls for the session and for all watches. Its threads. */
void zookeeper__told(zhandle_t *handle, int type, int state, const char *path, void *ctx);

/* ---- zookeeper_calls.c */

/* Of the vtable. */
void zookeeper__read(struct keeper *keeper, enum keeper_read_kind kind, const char *path,
                     struct keeper_watch *watch, struct keeper_call *call);
void zookeeper__multi(struct keeper *keeper, struct keeper_op *ops, int op_count,
                      struct keeper_call *call);
void zookeeper__unwatch(struct keeper *keeper, struct keeper_watch *watch);

/* Without a call: one of our own. */
struct request *zookeeper__request_new(struct zookeeper *k, struct keeper_call *call);
void zookeeper__request_free(struct request *r);
/* Its answer, or what stands for one. The client's threads. */
void zookeeper__answer(struct request *r, int code);
/* The call ends without results. */
void zookeeper__refuse(struct request *r, enum err err);
/* Moves calls from the waiting ones to the sent ones, in order. */
void zookeeper__dispatch(struct zookeeper *k);
void zookeeper__answered(struct zookeeper *k, struct request *r);
/* Tells the calls that are done, until one is met that has no answer yet. */
void zookeeper__tell_done(struct zookeeper *k);

enum err zookeeper__err_of(int code);
/*
 * The answer did not come: the connection broke, or its peer fell silent. Or the service says that
 * it has not done it and that it may be asked again.
 */
bool zookeeper__is_lost(int code);
/* A path as the service knows it, without the chroot; NULL: not one of ours. */
const char *zookeeper__path(const struct zookeeper *k, const char *path);

#endif
