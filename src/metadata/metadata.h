/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_METADATA_METADATA_H
#define SL_METADATA_METADATA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/uuid.h"
#include "config/config.h"

/*
 * What the cluster is: an immutable image that every request reads, and deltas that lead from one
 * image to the next. Whoever knows the truth (the embedded controller, UpdateMetadata) builds a
 * delta; metadata_apply makes the next image, which shares all that did not change.
 *
 * Images, topics and brokers are counted references. Whoever holds one may read it on any thread
 * without a lock; get and put are safe on any thread. Builders (…_new, …_set_…) belong to one
 * thread, until the object is handed to a delta.
 *
 * No I/O, no clock, and everything iterates in a fixed order: topics by the bytes of their names,
 * brokers by id.
 */

struct metadata_endpoint {
    struct str listener; /* PLAINTEXT, or the listener's own name */
    struct str host;
    int32_t port;
};

struct metadata_broker {
    int32_t id;      /* 0 or more */
    int64_t epoch;   /* of the registration; -1: none */
    struct str rack; /* null: none */
    bool is_fenced;  /* registered but not alive for clients */
    int32_t endpoint_count;
    struct metadata_endpoint *endpoints;
    /* private */
    _Atomic int32_t _refs;
};

/* An array of broker ids. */
struct metadata_ids {
    int32_t *ids;
    int32_t count;
};

struct metadata_partition {
    int32_t leader;               /* -1: none */
    int32_t leader_epoch;         /* goes up with every change of leader; -1: never had one */
    int32_t partition_epoch;      /* version of this state, for compare-and-set */
    struct metadata_ids replicas; /* the preferred leader first */
    struct metadata_ids isr;
    struct metadata_ids adding; /* of a reassignment under way; usually empty */
    struct metadata_ids removing;
    struct uuid *dirs; /* the log directory of each replica; NULL: not known */
};

struct metadata_topic {
    struct str name;
    struct uuid id;
    bool is_internal; /* by its name */
    bool is_deleting; /* marked for deletion: no client sees it any more */
    struct config_overrides configs;
    int32_t partition_count;
    struct metadata_partition *partitions; /* by index */
    /* private */
    _Atomic int32_t _refs;
};

/* Dynamic configuration of one broker, or of all. */
#define METADATA_ALL_BROKERS (-1)
struct metadata_broker_config {
    int32_t broker_id; /* METADATA_ALL_BROKERS: the default of all */
    struct config_overrides configs;
};

struct metadata_image {
    struct str cluster_id;    /* null until it is known */
    int32_t controller_id;    /* -1: none */
    int32_t controller_epoch; /* -1: none */
    uint64_t version;         /* deltas applied since the empty image */
    int32_t broker_count;
    struct metadata_broker **brokers; /* by id */
    int32_t topic_count;
    struct metadata_topic **topics; /* by name */
    struct metadata_topic **topics_by_id;
    int32_t broker_config_count;
    struct metadata_broker_config *broker_configs; /* by broker id */
    /* private */
    _Atomic int32_t _refs;
};

/* ---- References. put of NULL does nothing; the last put frees. */

struct metadata_image *metadata_image_new(void); /* empty, version 0 */
struct metadata_image *metadata_image_get(struct metadata_image *image);
void metadata_image_put(struct metadata_image *image);
struct metadata_topic *metadata_topic_get(struct metadata_topic *topic);
void metadata_topic_put(struct metadata_topic *topic);
struct metadata_broker *metadata_broker_get(struct metadata_broker *broker);
void metadata_broker_put(struct metadata_broker *broker);

/* ---- Look-up: borrowed from the image, NULL when it is not there. */

struct metadata_topic *metadata_find_topic(const struct metadata_image *image, struct str name);
struct metadata_topic *metadata_find_topic_id(const struct metadata_image *image, struct uuid id);
/* By name where it is not empty, else by id. */
struct metadata_topic *metadata_find_topic_either(const struct metadata_image *image,
                                                  struct str name, struct uuid id);
struct metadata_partition *metadata_find_partition(const struct metadata_topic *topic,
                                                   int32_t index);
struct metadata_broker *metadata_find_broker(const struct metadata_image *image, int32_t id);
/* Registered and not fenced. */
bool metadata_is_alive(const struct metadata_image *image, int32_t id);
const struct metadata_endpoint *metadata_find_endpoint(const struct metadata_broker *broker,
                                                       struct str listener);
/* Whether two images have the very same brokers (none was registered, changed or lost). */
bool metadata_same_brokers(const struct metadata_image *a, const struct metadata_image *b);
/* Never NULL: empty overrides for a broker without any. */
const struct config_overrides *metadata_broker_overrides(const struct metadata_image *image,
                                                         int32_t broker_id);
bool metadata_ids_have(const struct metadata_ids *ids, int32_t id);
/* Fills `brokers` (room for broker_count) with the ids that are not fenced; returns how many. */
int32_t metadata_live_brokers(const struct metadata_image *image, int32_t *brokers);
/* Partitions of all topics. */
int64_t metadata_partition_total(const struct metadata_image *image);

/* ---- Builders. All copy what they are given; one reference belongs to the caller. */

struct metadata_broker *metadata_broker_new(int32_t id, int64_t epoch, struct str rack);
void metadata_broker_add_endpoint(struct metadata_broker *broker, struct str listener,
                                  struct str host, int32_t port);
/* Partitions without leader or replicas, epochs -1 and 0. */
struct metadata_topic *metadata_topic_new(struct str name, struct uuid id, int32_t partition_count);
struct metadata_topic *metadata_topic_copy(const struct metadata_topic *topic);
/* An index past the end makes the topic longer. */
void metadata_topic_set_partition(struct metadata_topic *topic, int32_t index,
                                  const struct metadata_partition *partition);
void metadata_topic_set_configs(struct metadata_topic *topic, const struct config_overrides *o);

/* ---- Deltas: changes in order. Readable, so that a broker acts on what changed. */

enum metadata_change_kind {
    METADATA_CLUSTER = 0,        /* name: the cluster id */
    METADATA_CONTROLLER = 1,     /* id and epoch */
    METADATA_BROKER = 2,         /* broker: new or replaced */
    METADATA_BROKER_REMOVED = 3, /* id */
    METADATA_TOPIC = 4,          /* topic: new or replaced */
    METADATA_TOPIC_REMOVED = 5,  /* name */
    METADATA_PARTITION = 6,      /* name, index, partition: replaced, or new at the end */
    METADATA_TOPIC_CONFIG = 7,   /* name, configs: all overrides of the topic */
    METADATA_BROKER_CONFIG = 8,  /* id (or METADATA_ALL_BROKERS), configs */
};

struct metadata_change {
    enum metadata_change_kind kind;
    int32_t id;
    int32_t epoch;
    int32_t index;
    struct str name; /* owned by the delta, as all that follows */
    struct metadata_broker *broker;
    struct metadata_topic *topic;
    struct metadata_partition partition;
    struct config_overrides configs;
};

struct metadata_delta {
    struct metadata_change *changes;
    int32_t count;
    int32_t capacity;
};

/* {0} is an empty delta. fini leaves it empty for the next use. */
void metadata_delta_fini(struct metadata_delta *d);
void metadata_delta_set_cluster(struct metadata_delta *d, struct str cluster_id);
void metadata_delta_set_controller(struct metadata_delta *d, int32_t id, int32_t epoch);
void metadata_delta_put_broker(struct metadata_delta *d, struct metadata_broker *takes);
void metadata_delta_remove_broker(struct metadata_delta *d, int32_t id);
void metadata_delta_put_topic(struct metadata_delta *d, struct metadata_topic *takes);
void metadata_delta_remove_topic(struct metadata_delta *d, struct str name);
void metadata_delta_set_partition(struct metadata_delta *d, struct str topic, int32_t index,
                                  const struct metadata_partition *copies);
void metadata_delta_set_topic_configs(struct metadata_delta *d, struct str topic,
                                      const struct config_overrides *copies);
void metadata_delta_set_broker_configs(struct metadata_delta *d, int32_t broker_id,
                                       const struct config_overrides *copies);

/*
 * The next image, owned by the caller; `image` stays as it is. A change of a topic that does not
 * exist, or a removal of what is not there, has no effect. A topic that was created again is
 * remove and put in one delta, or put alone (its id tells).
 */
struct metadata_image *metadata_apply(const struct metadata_image *image,
                                      const struct metadata_delta *d);

/* ---- Names. */

/*
 * 1 to 249 letters, digits, '.', '_' and '-'; neither "." nor "..": else
 * ERR_INVALID_TOPIC_EXCEPTION, and *reason is a phrase (static text).
 */
must_use enum err metadata_topic_name_check(struct str name, const char **reason);
/* A topic of another name that would have the same metric names ('.' as '_'); NULL: none. */
struct metadata_topic *metadata_find_collision(const struct metadata_image *image, struct str name);
bool metadata_topic_name_is_internal(struct str name);

/* ---- Placement. */

struct metadata_placement {
    const int32_t *brokers; /* live ones, ascending */
    int32_t broker_count;
    const struct str *racks;    /* of each broker; NULL: not to be looked at */
    int32_t partitions;         /* to place */
    int32_t replication_factor; /* 1 to broker_count, else ERR_INVALID_REPLICATION_FACTOR */
    int32_t first_partition;    /* index of the first one: 0, or the count so far */
    int32_t start;              /* 0 or more: broker of partition 0, usually random */
    int32_t shift;              /* 0 or more: distance of the second replica, usually random */
};

/*
 * Spreads replicas as Kafka does: leaders round robin from `start`, followers at a distance that
 * grows with every turn; with racks also a partition's replicas over as many of them as there are
 * (KIP-36). Fills out[partitions * replication_factor], one partition after the other, the
 * preferred leader first. ERR_INVALID_PARTITIONS, ERR_INVALID_ARG (a negative start or shift).
 */
must_use enum err metadata_place_replicas(const struct metadata_placement *p, int32_t *out);

#endif
