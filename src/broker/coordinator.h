/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_COORDINATOR_H
#define SL_BROKER_COORDINATOR_H

#include "broker/broker_int.h"
#include "group/group.h"

/*
 * The coordinator of one partition of __consumer_offsets, on the partition's owner shard: it loads
 * the groups from the log, hands them what happens, appends what they want written, and answers.
 * All functions run on the owner, unless they say otherwise.
 */

/* A request for a group that travels to its coordinator. Lies in the arena of the request. */
struct group_call {
    struct group_request q;
    struct visit_item *item;
};

/* The log has been opened: loads. */
void coordinator_open(struct partition *p);
/* The high watermark has moved; appends from an offset on did not happen. */
void coordinator_advanced(struct partition *p);
void coordinator_failed(struct partition *p, enum err err, int64_t from_offset);
/* Answers every request with this error and refuses those that come. */
void coordinator_resign(struct partition *p, enum err err);
/* The partition goes: resigns and frees. */
void coordinator_close(struct partition *p, enum err err);

/* Ends with visit_item_done of the call's item, now or later. */
void coordinator_request(struct partition *p, struct group_call *call);
/*
 * The groups, for queries. ERR_COORDINATOR_LOAD_IN_PROGRESS while they are loaded,
 * ERR_COORDINATOR_NOT_AVAILABLE when that failed or the broker stops.
 */
must_use enum err coordinator_groups(struct partition *p, const struct groups **out);
/* A topic was deleted: the groups of all partitions of this shard forget its offsets. */
void coordinators_forget_topic(struct shard *s, struct str topic);
/* The broker stops: all partitions of this shard resign; who waits for what is written goes on, */
void coordinators_resign(struct shard *s);
/* and waits no longer. */
void coordinators_give_up(struct shard *s);

/* Any shard: where a group lives, as far as this shard knows; NULL when that is not known. */
struct partition *coordinator_find(struct shard *s, struct str group_id);

/* Any shard: who leads that partition; NULL when nobody does, or it is here and not open yet. */
const struct metadata_broker *coordinator_broker(struct shard *s, struct str group_id);

/* topics.c, control loop: makes the topic of groups if it is not there. */
void topics_create_group_topic(struct control *c, struct request *r);

#endif
