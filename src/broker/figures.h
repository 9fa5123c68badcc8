/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_FIGURES_H
#define SL_BROKER_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/counter.h"
#include "base/err.h"
#include "journal/journal.h"

struct broker;

/*
 * What a broker has done and has, in plain data: for metrics and health, see http/. Counts begin
 * with the process. They are read without disturbing who counts, so figures that belong together
 * may be from different moments.
 */

enum figures_phase {
    FIGURES_STARTING = 0, /* recovery is under way */
    FIGURES_SERVING = 1,
    FIGURES_STOPPING = 2,
};

#define FIGURES_ERRORS 160 /* errors[i] counts Kafka's error number i - 1 */

/* Requests of one API. A request counts when its answer has left, or would have with acks=0. */
struct figures_api {
    const char *name;             /* as in apis.def: "list_offsets" */
    struct latency_figures total; /* from the last byte of the request to that of the answer */
    struct latency_figures local; /* from its start to its answer, without a fetch's waiting */
    int64_t errors[FIGURES_ERRORS];
};

struct figures_listener {
    const char *name;
    int64_t opened; /* connections, all that there were */
    int64_t closed;
};

struct figures_dir {
    const char *path;
    bool has_failed;
    bool has_space;
    struct journal_stats journal;
    struct latency_figures sync; /* each sync of a file by the journal */
};

/* Records and their bytes, as they are stored. */
struct figures_traffic {
    int64_t messages_in;
    int64_t bytes_in;
    int64_t bytes_out;
};

struct figures_topic {
    const char *name;
    int32_t partition_count;
    struct figures_traffic traffic;
};

struct figures_partition {
    const char *topic;
    int32_t index;
    int64_t log_start;
    int64_t high_watermark;
    int64_t end;
    int64_t bytes;
    int64_t segments;
};

struct figures_cleaner {
    int64_t runs;
    int64_t failed;  /* of them */
    int64_t last_ms; /* wall clock at the end of the last run; 0: none yet */
};

struct figures {
    enum figures_phase phase;
    enum err stop_err; /* why it stops; ERR_NONE: it was asked to */
    int32_t node_id;
    const char *cluster_id;
    struct figures_api *apis;
    int api_count;
    struct figures_listener *listeners;
    int listener_count;
    struct figures_dir *dirs;
    int dir_count;
    struct figures_traffic traffic; /* of all topics, also of those that are gone */
    int64_t produce_parts;          /* partitions in produce requests */
    int64_t produce_parts_failed;
    int64_t fetch_parts; /* partitions in answers to fetches */
    int64_t fetch_parts_failed;
    int64_t throttled_out; /* bytes to followers, of partitions whose sending is throttled */
    int64_t throttled_in;  /* and from leaders, of those whose fetching is */
    int32_t topic_count;
    int32_t partition_count;
    int32_t partitions_offline;           /* whose log directory has failed */
    struct figures_topic *topics;         /* by name, as are the partitions */
    struct figures_partition *partitions; /* of working directories, up to the limit asked for */
    int32_t partitions_given;
    bool is_controller;     /* this broker, alone or elected */
    int32_t cluster_topics; /* as the controller knows them; 0 elsewhere */
    int32_t cluster_partitions;
    int32_t cluster_leaderless;   /* partitions that nobody leads, or whose directory has failed */
    int32_t partitions_led;       /* by this broker, in directories that work */
    int32_t partitions_lagging;   /* of those: a replica is not in sync */
    int32_t partitions_below_min; /* of those: fewer in sync than min.insync.replicas */
    int64_t group_count;
    int64_t offset_count;  /* committed */
    int64_t request_bytes; /* in buffers of requests and responses now */
    struct figures_cleaner cleaner;
};

/*
 * Copies them into the arena, which has no limit; names are borrowed from the broker until the end
 * of the turn. At most `partitions_max` single partitions; -1: nothing at all about topics and
 * partitions. Control loop.
 */
void broker_figures_read(struct broker *b, int32_t partitions_max, struct arena *arena,
                         struct figures *out);

#endif
