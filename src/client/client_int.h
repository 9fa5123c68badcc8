/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLIENT_CLIENT_INT_H
#define SL_CLIENT_CLIENT_INT_H

#include "base/alloc.h"
#include "base/hash.h"
#include "client/client.h"
#include "io/io.h"
#include "wire/codec.h"

#define NS_PER_MS 1000000

/* ---- link.c: one connection that carries frames ------------------------------------------- */

/*
 * Callbacks of a link run on the loop, from an operation of io. After link_close none comes, and
 * the link frees itself when io has let go of it; `client__link_gone` then.
 */
struct link;

struct link_events {
    void (*opened)(void *ctx);
    /* One frame without its size: n bytes, the callee's to free. */
    void (*frame)(void *ctx, uint8_t *frame, size_t n);
    /* Refused, closed, broken: the owner calls link_close. */
    void (*lost)(void *ctx, enum err err);
};

struct link *link_open(struct client *c, const char *host, uint16_t port,
                       const struct link_events *events, void *ctx);
/* Takes the bytes of `out`, which is empty afterwards. */
void link_send(struct link *l, struct wire_out *out);
/* Harmless with NULL. */
void link_close(struct link *l);

/* ---- node.c: a broker as its client sees it ----------------------------------------------- */

/*
 *   IDLE --> CONNECTING --> GREETING --> READY      a call is waiting; link; ApiVersions
 *     ^          |              |          |
 *     +-------- BACKOFF <-------+----------+        the link was lost
 */
enum node_state {
    NODE_IDLE = 0,
    NODE_CONNECTING,
    NODE_GREETING,
    NODE_READY,
    NODE_BACKOFF,
};

struct api_range {
    int16_t min;
    int16_t max; /* -1: not served */
};

/* A request on its way; the call is NULL when it was cancelled. */
struct client_sent {
    struct list node;
    struct client_call *call; /* NULL with is_greeting */
    int32_t correlation_id;
    int16_t api_key;
    int16_t version;
    bool is_greeting;
};

struct node {
    struct client *client;
    struct list node; /* in client->nodes */
    int32_t id;       /* negative: a bootstrap server, not known by its id */
    int64_t life;     /* client_broker_set's */
    char *host;
    uint16_t port;
    enum node_state state;
    struct link *link;
    struct api_range versions[API_KNOWN_COUNT];
    int16_t greeting_version;
    struct list queued; /* calls */
    struct list sent;   /* client_sent, in order */
    int pending;        /* length of both */
    int32_t next_correlation_id;
    int64_t until_ns; /* of connecting and greeting: when to give up; of backoff: its end */
    int32_t failures; /* since it was last ready */
    enum err last_err;
    bool is_listed; /* in the last metadata */
};

struct node *node_new(struct client *c, int32_t id, struct str host, uint16_t port);
/* Its calls must have gone. */
void node_free(struct node *n);
/* Fails its calls first. */
void node_drop(struct node *n, enum err err);
/* Gives up the connection, with the calls that were sent; there is no pause before the next one. */
void node_renew(struct node *n);
/* Puts a call in its queue; node_pump moves on. */
void node_add(struct node *n, struct client_call *call);
/* Connects, sends, gives up: whatever is due. */
void node_pump(struct node *n, int64_t now_ns);
/* The link breaks: calls that were sent fail, others as client__unsent says; then backoff. */
void node_fail(struct node *n, enum err err);
/* When node_pump should be called again; INT64_MAX. */
int64_t node_deadline_ns(const struct node *n);

/* ---- cluster.c ---------------------------------------------------------------------------- */

struct cluster_topic {
    struct client_topic topic;
    UT_hash_handle hh;
};

struct cluster {
    struct cluster_topic *topics; /* watched, known or not */
    int32_t controller_id;        /* -1: unknown */
    bool is_known;                /* there has been a response */
    struct client_call call;
    struct arena arena; /* of the request */
    struct list watchers;
    int64_t refreshed_ns; /* when the last refresh ended */
    int64_t refresh_ns;   /* when the next one is due; INT64_MAX: never */
    bool is_wanted_again; /* expired while a refresh was under way */
};

void cluster_init(struct client *c);
void cluster_fini(struct client *c);
/* Asks for metadata if that is due. */
void cluster_pump(struct client *c, int64_t now_ns);

/* ---- client.c ----------------------------------------------------------------------------- */

enum call_state {
    CALL_IDLE = 0,
    CALL_WAITING, /* for a node to go to */
    CALL_QUEUED,  /* at a node */
    CALL_SENT,
    CALL_FINISHED, /* done is due */
};

struct address {
    char *host;
    uint16_t port;
};

struct client {
    struct io_loop *loop;
    struct client_config config; /* strings owned */
    struct address *bootstrap;
    size_t bootstrap_count;
    struct list nodes;
    struct cluster cluster;
    struct list waiting;
    struct list finished;
    struct heap deadlines; /* of calls */
    struct heap alarms;
    struct io_timer timer;
    struct io_msg pump;
    bool is_pumping;   /* the message is posted */
    bool is_connected; /* some broker has greeted us once */
    bool is_closing;
    int links; /* not yet gone */
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* The pump runs soon. */
void client__wake(struct client *c);
/* Ends a call: done is called by the pump. */
void client__finish(struct client_call *call, enum err err);
/* A node could not be reached: calls to any broker wait for another one, others fail. */
void client__unsent(struct client_call *call, enum err err);
void client__link_gone(struct client *c);
struct node *client__node_of(struct client *c, int32_t id);

#endif
