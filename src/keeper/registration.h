/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_REGISTRATION_H
#define SL_KEEPER_REGISTRATION_H

#include "keeper/keeper.h"

/*
 * A broker's ephemeral node, /brokers/ids/<id>, on any keeper. It is there as long as the broker's
 * session; the zxid of its creation is the broker epoch (KIP-380), by which the controller tells
 * one life of a broker from the next. Made as Apache Kafka 3.9 makes it: created without data and
 * set in one multi, so its first version is 1.
 *
 * If the node exists:
 *  - it is our session's: an earlier attempt whose answer was lost has succeeded;
 *  - it is our previous session's, which was told that it has ended: the service has not noticed
 *    yet, so the node is deleted first;
 *  - it is another session's: most often this broker's own last life, killed and started again
 *    within the session's timeout. Its end is waited for; a broker that is alive is never robbed.
 *
 * On the keeper's loop. The parents exist (znodes.h: znode_persistent_paths).
 */
struct registration_args {
    struct keeper *keeper;
    struct io_loop *loop;
    int32_t broker_id;
    struct bytes data;        /* znode_broker_json; borrowed until done */
    int64_t previous_session; /* whose owner is gone, however alive it seems; 0: none */
    int64_t wait_ns;          /* for another session's end: its timeout and a margin */
};

struct registration {
    void (*done)(struct registration *r); /* set by the owner; told once */
    /*
     * The result. ERR_EXISTS: another broker has this id. ERR_CANCELLED: the session has ended, or
     * registration_cancel. ERR_NOT_FOUND: the parents are missing.
     */
    enum err err;
    int64_t broker_epoch;
    int64_t other_session; /* ERR_EXISTS: whose node it is */
    /* private */
    struct registration_args _args;
    char *_path;
    struct keeper_call _call;
    bool _is_called; /* the call is out */
    struct keeper_op _ops[2];
    struct keeper_watch _watch;
    struct io_timer _timer;
    bool _is_waiting; /* for another session's end */
    bool _is_late;
    bool _is_cancelled;
};

/* `r` is all zero but for `done`. */
void registration_begin(struct registration *r, const struct registration_args *args);
/*
 * Ends it with ERR_CANCELLED, later: the session has ended (nothing else would tell one that waits
 * for a watch), or nobody wants it any more. Harmless when it is done.
 */
void registration_cancel(struct registration *r);

#endif
