/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_CLUSTER_INT_H
#define SL_CLI_CLUSTER_INT_H

#include <jansson.h>

#include "cli/partitions.h"

/* What the files of `strandline cluster` share: the answers, and each partition as they tell it. */

/* A partition's log at one of its brokers. */
struct cluster_log {
    int32_t broker;
    int64_t end;  /* where it ends; -1: nobody said */
    int64_t size; /* bytes; -1: nobody said */
    struct str dir;
    enum err err; /* why the end is not known */
};

struct cluster_partition {
    struct admin_partition at; /* first, for sorting */
    const struct metadata_response_partition *p;
    const int32_t *adding; /* replicas that it is to get, by a move */
    int32_t adding_count;
    int32_t min_isr; /* min.insync.replicas; 0: not asked for, or not known */
    bool is_moving;
    struct cluster_log *logs; /* in the order of the replicas; NULL: not asked for */
};

/* What one broker is asked about its logs. */
struct cluster_question {
    struct cluster_tool *tool;
    int32_t broker;
    struct admin_op ends;
    struct admin_op dirs;
};

struct cluster_tool {
    struct tool tool;
    struct admin_op cluster;
    struct admin_op topics;
    struct admin_op moves;
    struct admin_op configs;
    struct admin_op versions;
    struct arena arena;
    bool shows_versions;
    bool shows_partitions;
    bool only_unhealthy;
    struct cluster_partition *partitions; /* sorted */
    int32_t partition_count;
    bool knows_moves;
    bool knows_min_isr;
    void (*judged)(struct cluster_tool *s);
    struct cluster_question *questions;
    int32_t question_count;
    int32_t pending;
    void (*listed)(struct cluster_tool *s);
    bool has_failed;
    int32_t at; /* the broker that is asked for its versions */
    json_t *json;
};

struct cluster_partition *cluster__partition(const struct cluster_tool *s, struct str topic,
                                             int32_t partition);
bool cluster__is_offline(const struct cluster_partition *x);
/* A replica that is there for good is not in sync. */
bool cluster__is_under_replicated(const struct cluster_partition *x);
/* Fewer in sync than acks=all needs. */
bool cluster__is_under_min_isr(const struct cluster_partition *x);
bool cluster__is_in_sync(const struct cluster_partition *x, int32_t broker);

/*
 * cluster_health.c: makes s->partitions from Metadata. If all replicas are in sync that is all;
 * otherwise it is also asked what is moving, and for min.insync.replicas. Then s->judged.
 */
void cluster__judge(struct cluster_tool *s);

/* cluster_partitions.c: asks all brokers for the logs, prints, adds to s->json; then s->listed. */
void cluster__list_partitions(struct cluster_tool *s);
void cluster__free_questions(struct cluster_tool *s);

#endif
