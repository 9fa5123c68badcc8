/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLIENT_ADMIN_H
#define SL_CLIENT_ADMIN_H

#include "client/client.h"
#include "wire/messages.h"

/*
 * Administration: one function for each thing that can be asked. An operation is embedded in the
 * caller's struct, zero-initialised, and may be used again when it is done. Arguments are copied.
 *
 * What may be asked twice is asked again after an error that says so, until the time is up. What
 * changes something is asked again only if the request did not leave, or nothing was attempted.
 */
#define ADMIN_TIMEOUT_MS 60000 /* default.api.timeout.ms */

/* What became of one topic or resource. */
struct admin_result {
    struct str name;
    enum err err;
    struct str message; /* the broker's own words; null or empty: none */
};

struct admin_op {
    void (*done)(struct admin_op *op);
    int32_t timeout_ms; /* 0: ADMIN_TIMEOUT_MS */
    /* results, valid until the next use or fini */
    enum err err; /* of the request as a whole; ERR_NONE: look at the results */
    const struct admin_result *results;
    int32_t result_count;
    const void *response; /* the broker's answer */
    int32_t node_id;      /* who answered */
    /* private */
    struct client *_client;
    struct client_call _call;
    struct client_alarm _alarm;
    struct arena _arena;
    int64_t _deadline_ns;
    int32_t _attempts;
    bool _may_repeat;
    int16_t _api_key;
    int16_t _version_max;
    int32_t _target;
    int32_t _coordinator; /* broker id; -1: to be found, if the target is the coordinator */
    const void *_request;
    const void *_seeking; /* the request that finds the coordinator */
};

/* Cancels, and frees the results. */
void admin_op_fini(struct admin_op *op);

struct admin_config {
    struct str name;
    struct str value; /* null: delete */
    int8_t operation; /* of altering: 0 set, 1 delete, 2 append to a list, 3 take from a list */
};

struct admin_new_topic {
    struct str name;
    int32_t partitions;         /* -1: the broker's default */
    int16_t replication_factor; /* -1: the broker's default */
    const struct admin_config *configs;
    int32_t config_count;
};

void admin_create_topic(struct client *c, struct admin_op *op, const struct admin_new_topic *topic);
void admin_delete_topics(struct client *c, struct admin_op *op, const struct str *names,
                         int32_t count);
/* `total` partitions afterwards. */
void admin_create_partitions(struct client *c, struct admin_op *op, struct str topic,
                             int32_t total);
/* All topics with names = NULL. The response is a struct metadata_response. */
void admin_describe_topics(struct client *c, struct admin_op *op, const struct str *names,
                           int32_t count);

enum admin_resource {
    ADMIN_TOPIC = 2,
    ADMIN_BROKER = 4, /* named by its id, which is who is asked; empty: the default of all */
};

/* The response is a struct describe_configs_response, with synonyms. */
void admin_describe_configs(struct client *c, struct admin_op *op, enum admin_resource type,
                            struct str name);
/* One key of many topics. The response is the same, without synonyms. */
void admin_describe_topics_config(struct client *c, struct admin_op *op, const struct str *names,
                                  int32_t count, struct str key);
void admin_alter_configs(struct client *c, struct admin_op *op, enum admin_resource type,
                         struct str name, const struct admin_config *configs, int32_t count);
/* The response is a struct describe_cluster_response. */
void admin_describe_cluster(struct client *c, struct admin_op *op);
/* Of the broker of that id. The response is a struct api_versions_response. */
void admin_describe_versions(struct client *c, struct admin_op *op, int32_t broker);

/* ---- Groups. All but the first ask the group's coordinator, which is looked up on the way. */

/* The groups that one broker coordinates. The response is a struct list_groups_response. */
void admin_list_groups(struct client *c, struct admin_op *op, int32_t broker);
/* The response is a struct describe_groups_response with one group. */
void admin_describe_group(struct client *c, struct admin_op *op, struct str group);
/* Of a group without members. */
void admin_delete_group(struct client *c, struct admin_op *op, struct str group);
/* All that a group has committed: `topics` of a struct offset_fetch_response. No results. */
void admin_fetch_offsets(struct client *c, struct admin_op *op, struct str group);

struct admin_offset {
    struct str topic;
    int32_t partition;
    int64_t offset;       /* of listing: a time in ms since 1970, or one of the two below */
    int32_t leader_epoch; /* of the record at the offset; -1: unknown. Only for committing. */
};

#define ADMIN_LATEST (-1)
#define ADMIN_EARLIEST (-2)

/* The following have one result for each partition, named as "topic-0". */

/* For a group that has no members (UNKNOWN_MEMBER_ID otherwise). */
void admin_commit_offsets(struct client *c, struct admin_op *op, struct str group,
                          const struct admin_offset *offsets, int32_t count);
void admin_delete_offsets(struct client *c, struct admin_op *op, struct str group,
                          const struct admin_offset *offsets, int32_t count);
/* Asks the leader of all these partitions. The response is a struct list_offsets_response. */
void admin_list_offsets(struct client *c, struct admin_op *op, int32_t leader,
                        const struct admin_offset *offsets, int32_t count);
/*
 * The same of any broker with replicas of these partitions, leader or not, in sync or not: of its
 * own log, so that "latest" is where that ends and not how far it is committed.
 */
void admin_list_replica_offsets(struct client *c, struct admin_op *op, int32_t broker,
                                const struct admin_offset *offsets, int32_t count);

/* ---- Leaders and replicas. All but the last ask the controller. */

struct admin_partition {
    struct str topic;
    int32_t partition;
};

enum admin_election {
    ADMIN_PREFERRED = 0, /* the first replica, if it is in sync */
    ADMIN_UNCLEAN = 1,   /* any replica, of partitions without a leader; may lose records */
};

/*
 * Of all partitions with NULL; then who needs no election has no result. One result for each
 * partition, named as "topic-0"; ERR_ELECTION_NOT_NEEDED: it leads already. The response is a
 * struct elect_leaders_response.
 */
void admin_elect_leaders(struct client *c, struct admin_op *op, enum admin_election type,
                         const struct admin_partition *partitions, int32_t count);

struct admin_move {
    struct str topic;
    int32_t partition;
    const int32_t *replicas; /* broker ids, the preferred leader first; NULL: cancel its move */
    int32_t replica_count;
};

/*
 * Begins or cancels moves; one result for each partition, named as "topic-0". What has begun is
 * listed until it has ended (KIP-455).
 */
void admin_alter_reassignments(struct client *c, struct admin_op *op,
                               const struct admin_move *moves, int32_t count);
/* All of them. The response is a struct list_partition_reassignments_response. No results. */
void admin_list_reassignments(struct client *c, struct admin_op *op);
/*
 * What a broker holds of these partitions, or of all with NULL: what it has nothing of is left
 * out. One result for each log directory. The response is a struct describe_log_dirs_response,
 * whose offset_lag is the distance to the high watermark as that broker knows it: 0 for a follower
 * however far behind it is.
 */
void admin_describe_log_dirs(struct client *c, struct admin_op *op, int32_t broker,
                             const struct admin_partition *partitions, int32_t count);

#endif
