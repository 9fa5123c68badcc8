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
    /* private */
    struct client *_client;
    struct client_call _call;
    struct client_alarm _alarm;
    struct arena _arena;
    int64_t _deadline_ns;
    int32_t _attempts;
    bool _may_repeat;
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
void admin_alter_configs(struct client *c, struct admin_op *op, enum admin_resource type,
                         struct str name, const struct admin_config *configs, int32_t count);
/* The response is a struct describe_cluster_response. */
void admin_describe_cluster(struct client *c, struct admin_op *op);

#endif
