/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_BROKER_H
#define SL_BROKER_BROKER_H

#include "base/err.h"
#include "config/config.h"
#include "io/io.h"

/*
 * One broker: log directories, the keeper, shards with their connections and partitions, and the
 * control loop that administers them. Many may live in one process, each with an io of its own.
 *
 *     broker_open(&args, &b, &message);   // blocking: directories, keeper, listeners
 *     io_run(io);                         // recovers, serves; broker_stop ends it
 *     broker_close(b);                    // blocking: the clean-stop marker, lanes
 */
struct broker;

struct broker_ready {
    const char *address; /* what clients should use: "127.0.0.1:9092" */
    int64_t start_ns;    /* io_mono_ns at broker_open */
    int32_t topics;
    int32_t partitions;
    int32_t damaged;       /* partitions with damage below their recovery point */
    int64_t bytes_scanned; /* by recovery */
    int64_t bytes_cut;     /* unsynced tails kept aside as .cut */
    bool was_clean;        /* every directory was stopped cleanly, or is new */
};

struct keeper;
struct keeper_events;

struct broker_args {
    struct io *io;
    struct config *config; /* validated; taken */
    const char *software;  /* name and version, for logs */
    /* What another broker's tools said of its topics: directories that the keeper does not know are
     * adopted with it. Null: none; borrowed until broker_open returns. */
    struct str import;
    const char *import_file; /* where it is from, for messages */
    /* On the control loop. */
    void (*ready)(void *ctx, const struct broker_ready *ready);
    /* Recovery goes on: bytes scanned so far, partitions loaded of all. At most once a second. */
    void (*progress)(void *ctx, int64_t bytes, int32_t loaded, int32_t total);
    /* The end has begun, for this reason; NULL: nobody need know. */
    void (*stopping)(void *ctx, const char *why);
    /* The broker has ended by itself or by broker_stop; io_stop was called. ERR_NONE: cleanly. */
    void (*stopped)(void *ctx, enum err err, const char *why);
    /* Simulations: the keeper of a cluster, as keeper_zookeeper_open; NULL: as configured. */
    struct keeper *(*open_keeper)(void *ctx, struct io_loop *loop,
                                  const struct keeper_events *events, void *events_ctx);
    void *ctx;
};

/* On failure `message` (owned by the caller) says what, where and what to do. */
must_use enum err broker_open(const struct broker_args *args, struct broker **out, char **message);
/* Stops serving, closes every log cleanly, then io_stop. Control loop; harmless twice. */
void broker_stop(struct broker *b);
/* The loop that administers: the first of its io. Messages to it may be posted before io_run. */
struct io_loop *broker_control_loop(struct broker *b);
/* After io_run. */
void broker_close(struct broker *b);

#endif
