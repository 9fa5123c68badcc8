/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_ZNODES_H
#define SL_KEEPER_ZNODES_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/uuid.h"
#include "config/config.h"
#include "metadata/metadata.h"

/*
 * Paths and contents of the keeper's nodes, as Apache Kafka 3.9 writes them in ZooKeeper: whatever
 * keeper we have, the tree is the same, so that a broker of ours can join such a cluster.
 *
 * Paths and texts are NUL-terminated strings owned by the caller. A text is NULL when a string in
 * it is not UTF-8, which JSON cannot say. Parsers take any bytes: unknown keys are ignored, the
 * key "version" is not checked (Kafka does not either), anything else that does not fit is
 * ERR_MALFORMED. What they find lives in the arena, which has no limit. Any thread.
 */

/* ---- Paths. */

#define ZNODE_CONTROLLER "/controller"
#define ZNODE_CONTROLLER_EPOCH "/controller_epoch"
#define ZNODE_CLUSTER_ID "/cluster/id"
#define ZNODE_BROKER_IDS "/brokers/ids"
#define ZNODE_BROKER_SEQID "/brokers/seqid"
#define ZNODE_TOPICS "/brokers/topics"
#define ZNODE_CONFIG_CHANGES "/config/changes"
#define ZNODE_CONFIG_CHANGE_PREFIX "/config/changes/config_change_"
#define ZNODE_DELETE_TOPICS "/admin/delete_topics"
#define ZNODE_REASSIGN_PARTITIONS "/admin/reassign_partitions"
#define ZNODE_PREFERRED_ELECTION "/admin/preferred_replica_election"
#define ZNODE_ISR_CHANGES "/isr_change_notification"
#define ZNODE_ISR_CHANGE_PREFIX "/isr_change_notification/isr_change_"
#define ZNODE_LOG_DIR_EVENTS "/log_dir_event_notification"
#define ZNODE_LOG_DIR_EVENT_PREFIX "/log_dir_event_notification/log_dir_event_"
#define ZNODE_PRODUCER_ID_BLOCK "/latest_producer_id_block"
#define ZNODE_FEATURE "/feature"

/* What every broker makes at its start if it is not there: null data, parents first. */
extern const char *const znode_persistent_paths[];
extern const int znode_persistent_path_count;

/* The first value of /entity in /config. */
enum znode_entity {
    ZNODE_ENTITY_TOPICS = 0,
    ZNODE_ENTITY_CLIENTS = 1,
    ZNODE_ENTITY_USERS = 2,
    ZNODE_ENTITY_BROKERS = 3,
    ZNODE_ENTITY_IPS = 4,
};

char *znode_broker_path(int32_t id);
char *znode_topic_path(struct str topic);
char *znode_partitions_path(struct str topic);
char *znode_partition_path(struct str topic, int32_t partition);
char *znode_state_path(struct str topic, int32_t partition);
char *znode_delete_topic_path(struct str topic);
/* A null name is the default of all entities, "<default>"; others are URL-encoded. */
char *znode_config_path(enum znode_entity entity, struct str name);
/* The same behind /config/: what a config change names. */
char *znode_config_entity(enum znode_entity entity, struct str name);
/* A child's name as the entity's; null for "<default>". ERR_MALFORMED. */
must_use enum err znode_entity_name(struct str child, struct arena *a, struct str *out);
/* The ten digits at the end of a sequential node's name. */
must_use enum err znode_sequence(struct str child, int32_t *out);

/* ---- /controller, /controller_epoch, /cluster/id, /latest_producer_id_block. */

char *znode_controller_json(int32_t broker_id, int64_t now_ms);
must_use enum err znode_controller_parse(struct bytes data, int32_t *broker_id);

/* Plain decimal. */
char *znode_epoch_text(int32_t epoch);
must_use enum err znode_epoch_parse(struct bytes data, int32_t *epoch);

/* The id is any text: Kafka's is a Uuid, but clusters have been given others. */
char *znode_cluster_id_json(struct str id);
must_use enum err znode_cluster_id_parse(struct bytes data, struct arena *a, struct str *id);

struct znode_producer_ids {
    int32_t broker_id;
    int64_t first;
    int64_t last; /* inclusive */
};

char *znode_producer_ids_json(const struct znode_producer_ids *ids);
/* Null or empty data, as the node begins: broker -1, first 0, last -1. */
must_use enum err znode_producer_ids_parse(struct bytes data, struct znode_producer_ids *out);

/* ---- /brokers/ids/N. */

struct znode_endpoint {
    struct str listener;
    struct str protocol; /* PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL */
    struct str host;     /* without brackets; empty: all addresses */
    int32_t port;
};

struct znode_broker {
    int32_t endpoint_count;
    struct znode_endpoint *endpoints;
    struct str rack;      /* null: none */
    int32_t jmx_port;     /* -1: none */
    int64_t timestamp_ms; /* of the registration; 0 when parsed from a node without */
};

char *znode_broker_json(const struct znode_broker *b);
must_use enum err znode_broker_parse(struct bytes data, struct arena *a, struct znode_broker *out);

/* ---- /brokers/topics/T and /brokers/topics/T/partitions/P/state. */

struct znode_topic {
    struct uuid id; /* zero: none, the topic is older than ids */
    int32_t partition_count;
    struct metadata_ids *replicas; /* by partition: of all of them, ... */
    struct metadata_ids *adding;   /* ... and of a reassignment under way; NULL: none at all */
    struct metadata_ids *removing;
};

char *znode_topic_json(const struct znode_topic *t);
/* The partitions are 0, 1, ... without a gap. When parsed, no array is NULL. */
must_use enum err znode_topic_parse(struct bytes data, struct arena *a, struct znode_topic *out);

struct znode_state {
    int32_t leader; /* -1: none */
    int32_t leader_epoch;
    int32_t controller_epoch;
    struct metadata_ids isr;
    bool is_recovering; /* from an unclean election */
};

char *znode_state_json(const struct znode_state *s);
must_use enum err znode_state_parse(struct bytes data, struct arena *a, struct znode_state *out);

/* ---- /config/... */

char *znode_config_json(const struct config_overrides *o);
/* Null data is an empty configuration. `out` is finished by the caller with config_overrides_fini.
 */
must_use enum err znode_config_parse(struct bytes data, struct config_overrides *out);

/* `entity` as of znode_config_entity. */
char *znode_config_change_json(const char *entity);
must_use enum err znode_config_change_parse(struct bytes data, struct arena *a, struct str *entity);

/* ---- Notifications and requests: lists of partitions. */

struct znode_partition {
    struct str topic;
    int32_t partition;
    struct metadata_ids replicas; /* /admin/reassign_partitions alone; else empty */
};

struct znode_partitions {
    int32_t count;
    struct znode_partition *v;
};

/* ISR changes, /admin/reassign_partitions (is_reassignment), /admin/preferred_replica_election. */
char *znode_partitions_json(const struct znode_partitions *list, bool is_reassignment);
must_use enum err znode_partitions_parse(struct bytes data, bool is_reassignment, struct arena *a,
                                         struct znode_partitions *out);

char *znode_log_dir_event_json(int32_t broker_id);
must_use enum err znode_log_dir_event_parse(struct bytes data, int32_t *broker_id);

/* /feature as it always is: enabled, and no feature finalized. */
char *znode_feature_json(void);

#endif
