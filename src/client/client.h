/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLIENT_CLIENT_H
#define SL_CLIENT_CLIENT_H

#include "base/arena.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/uuid.h"
#include "wire/apis.h"

/*
 * A client of a cluster: connections, the cluster's metadata, and calls of any API to any broker.
 * It works with every broker that speaks the protocol. Consumer, producer and admin calls stand on
 * it and have headers of their own.
 *
 * A client belongs to one loop: everything here is called on that loop, and every callback runs
 * there, never inside the function that asked for it. It has no thread.
 *
 * Settings have the names, units and defaults of Apache Kafka's Java client.
 */
struct io_loop;
struct client;

struct client_config {
    const char *bootstrap_servers; /* "host:port,..."; port 9092 if left out; [v6]:port */
    const char *client_id;
    const char *software_name; /* KIP-511: what brokers count their clients by */
    const char *software_version;
    int32_t request_timeout_ms; /* of a call that does not say more */
    int32_t socket_connection_setup_timeout_ms;
    int32_t reconnect_backoff_ms; /* doubles up to the maximum */
    int32_t reconnect_backoff_max_ms;
    int32_t retry_backoff_ms;
    int32_t retry_backoff_max_ms;
    int32_t metadata_max_age_ms;
    bool allow_auto_create_topics; /* metadata requests may create the topics they ask for */
    /* Before the first connection: calls fail once every bootstrap server has failed, instead of
     * waiting for one to come up. For tools. */
    bool is_impatient;
    /* For brokers, who know the cluster: there are no bootstrap servers, nobody is asked for
     * metadata, and calls go to the brokers of client_broker_set alone. */
    bool is_told;
};

struct client_config client_config_default(void);

/*
 * Copies the configuration. Nothing is sent before the first call. ERR_INVALID_ARG: no usable
 * bootstrap server; ERR_LIMIT: a setting out of range.
 */
must_use enum err client_open(struct io_loop *loop, const struct client_config *config,
                              struct client **out);
/*
 * Pending calls are forgotten; consumers and producers must have been closed. `done` when the last
 * connection is closed and the client is gone.
 */
void client_close(struct client *c, void (*done)(void *ctx), void *ctx);
struct io_loop *client_loop(const struct client *c);
const struct client_config *client_settings(const struct client *c);

/*
 * With is_told: a broker, its address, and a number of the life in which it is spoken to. At
 * another address than before its calls end with ERR_NETWORK_EXCEPTION. In another life those end
 * that were sent, and the others go over a new connection, which begins at once: a network that was
 * cut may take seconds to try again what it could not deliver, and who connects anew does not wait
 * for that.
 */
void client_broker_set(struct client *c, int32_t id, int64_t life, struct str host, uint16_t port);
/* Its calls end with ERR_NETWORK_EXCEPTION; later ones with ERR_BROKER_NOT_AVAILABLE. */
void client_broker_remove(struct client *c, int32_t id);

/* ---- calls ------------------------------------------------------------------------------ */

/* Targets of a call that are no broker ids. */
#define CLIENT_ANY (-1)        /* any broker that answers */
#define CLIENT_CONTROLLER (-2) /* the broker that takes administrative requests */

/*
 * One request and its response, embedded in the caller's struct, zero-initialised, and used for
 * any number of calls one after another.
 */
struct client_call {
    void (*done)(struct client_call *call);
    int16_t api_key;
    int16_t version_max;  /* 0: the highest that both sides know */
    int32_t target;       /* broker id, or CLIENT_ANY, CLIENT_CONTROLLER */
    int32_t timeout_ms;   /* from now to the response; 0: request_timeout_ms */
    bool has_no_response; /* Produce with acks=0: done when it was handed to the connection */
    const void *request;  /* struct <api>_request; borrowed until done */
    /* result */
    /*
     * ERR_NETWORK_EXCEPTION: the connection broke: a request that was sent may or may not have
     * been served; ERR_REFUSED, ERR_NOT_FOUND and other errors of connecting: it was not sent.
     * ERR_BROKER_NOT_AVAILABLE: the cluster has no broker of that id. ERR_TIMEOUT.
     * ERR_UNSUPPORTED_VERSION: the broker has no version that we have. ERR_MALFORMED, ERR_LIMIT:
     * the response does not decode. ERR_INVALID_ARG: the request has what its version cannot say.
     * Errors inside the response are the caller's business.
     */
    enum err err;
    bool was_sent;   /* on errors: the broker may have seen it */
    int16_t version; /* that was spoken */
    int32_t node_id; /* who answered; negative: not known yet by its id */
    void *response;  /* struct <api>_response, in the call's memory until its next use or fini */
    /* private */
    struct arena _arena;
    uint8_t *_frame;
    struct list _node;
    struct heap_node _deadline;
    struct client_sent *_sent;
    struct client *_client;
    uint8_t _state;
};

/* Submits; the call must be idle. */
void client_call(struct client *c, struct client_call *call);
/* Forgets the call: done will not run, its memory is the caller's again. Harmless when idle. */
void client_cancel(struct client_call *call);
bool client_call_is_pending(const struct client_call *call);
/* Cancels, and frees the response. */
void client_call_fini(struct client_call *call);

/* ---- what the client knows of the cluster ------------------------------------------------ */

struct client_partition {
    int32_t leader;       /* broker id; -1: none */
    int32_t leader_epoch; /* -1: unknown */
    enum err err;
};

struct client_topic {
    char *name;
    struct uuid id;          /* zero: the cluster has none */
    enum err err;            /* of the topic: its partitions mean nothing then */
    int32_t partition_count; /* 0 with an error */
    struct client_partition *partitions;
};

/* Keeps the topic's metadata from now on, asking for it soon if it is not there. */
void client_topic_watch(struct client *c, struct str name);
/* NULL: not known (yet). Valid until the next callback. */
const struct client_topic *client_topic_find(const struct client *c, struct str name);
/* Broker id of the leader, -1 when it is not known or there is none. */
int32_t client_leader(const struct client *c, struct str topic, int32_t partition);
/* Something has shown that the metadata is old: it is fetched again, retry_backoff_ms after the
 * last time at the earliest. */
void client_metadata_expire(struct client *c);

/* Is told each time that metadata has arrived, or could not be had (err). */
struct client_watcher {
    void (*refreshed)(struct client_watcher *w, enum err err);
    struct list node;
};

void client_watcher_add(struct client *c, struct client_watcher *w);
/* Harmless twice. */
void client_watcher_remove(struct client_watcher *w);

/* ---- alarms ----------------------------------------------------------------------------- */

/* A timer that can be taken back at once; zero-initialised. Consumer and producer live by them. */
struct client_alarm {
    void (*ring)(struct client_alarm *alarm);
    struct heap_node _node;
};

/* Rings once, at `deadline_ns` of io_mono_ns or soon after; set again, it moves. */
void client_alarm_set(struct client *c, struct client_alarm *alarm, int64_t deadline_ns);
/* Harmless when it is not set. */
void client_alarm_clear(struct client *c, struct client_alarm *alarm);

#endif
