/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_PEER_H
#define SL_TESTS_SIM_PEER_H

#include "base/arena.h"
#include "base/buf.h"
#include "io/io.h"
#include "wire/apis.h"
#include "wire/header.h"
#include "wire/messages.h"

/*
 * A client's connection to the broker: requests out, responses in their order, a new connection
 * whenever the old one has ended. It checks what any client relies on: a response belongs to the
 * oldest request that waits, and can be decoded. Everything on the client's loop.
 */
struct run;
struct peer;

/* One request. Embedded in its owner's struct, which stays until `done` has run, exactly once. */
struct call {
    struct list link;
    struct peer *peer;
    const struct api *api;
    int16_t version;
    int32_t correlation_id;
    bool has_no_answer; /* acks=0: done when it has been handed to the network */
    int64_t sent_ns;
    int64_t due_ns; /* an answer is wanted by then */
    /* err: the connection ended (whether the broker has seen the request is not known), and
     * response is NULL. The response dies when this returns. */
    void (*done)(struct call *c, enum err err, void *response);
};

enum peer_state {
    PEER_IDLE = 0, /* waits to connect again */
    PEER_CONNECTING = 1,
    PEER_OPEN = 2,
    PEER_CLOSING = 3, /* operations of the old connection are still under way */
};

struct peer {
    struct list link; /* run->peers */
    struct run *run;
    struct sim_host *host; /* of the broker that it talks to; may be changed at any time */
    enum peer_state state;
    void (*opened)(struct peer *p);
    void (*closed)(struct peer *p); /* behind the calls; it connects again by itself */
    void (*unreachable)(
        struct peer *p); /* it could not connect, and tries again; NULL: no matter */
    struct io_connect connect;
    struct io_conn *conn;
    struct io_timer retry;
    struct io_recv recv;
    struct io_send send;
    struct buf in;
    struct buf out;     /* not yet given to io */
    struct buf sending; /* with io */
    struct list calls;  /* struct call, oldest first */
    int call_count;
    int32_t correlation_id;
};

void peer_init(struct peer *p, struct run *run, void (*opened)(struct peer *),
               void (*closed)(struct peer *));
/* The end of a run: requests without an answer complete with ERR_CANCELLED. */
void peer_cancel(struct peer *p);
void peer_fini(struct peer *p);
/* Connects, and again whenever it was cut off. */
void peer_start(struct peer *p);
/* Sends; the peer must be open. `wait_ns`: how long the broker may take of its own accord. */
void peer_send(struct peer *p, struct call *c, int16_t api_key, int16_t version,
               const void *request, int64_t wait_ns);
/* Asks for one offset: of a time, or -1, -2. `call` has its `done`. */
void peer_ask_offset(struct peer *p, struct call *c, int16_t version, const char *topic,
                     int32_t partition, int64_t timestamp, int64_t wait_ns);
/* Asks for a producer's id. */
void peer_ask_id(struct peer *p, struct call *c);
/* Ends the connection, as a client that has lost its patience. */
void peer_close(struct peer *p);
/* Looks whether the oldest request has waited too long. */
void peer_check(struct peer *p);

#endif
