/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_REPLICA_REPLICA_INT_H
#define SL_REPLICA_REPLICA_INT_H

#include "base/planted.h"
#include "replica/replica.h"

/* What the files of the module share. Steps of a role are called in that role only. */

struct replica_member *replica_member(const struct replica *r, int32_t id);

/* leader.c */
void leader_begin(struct replica *r, const struct replica_event *e, struct replica_effects *fx);
/* Another in-sync set, or other replicas, in the same epoch. */
void leader_reassigned(struct replica *r);
void leader_fetch(struct replica *r, const struct replica_event *e, struct replica_effects *fx);
void leader_altered(struct replica *r, const struct replica_event *e);
/* Whatever else may have changed: the in-sync set, the high watermark, the next time to look. */
void leader_review(struct replica *r, const struct replica_event *e, struct replica_effects *fx);

/* follower.c */
void follower_fetched(struct replica *r, const struct replica_event *e, struct replica_effects *fx);
void follower_appended(struct replica *r, const struct replica_event *e);
void follower_truncated(struct replica *r, const struct replica_event *e);
/* The watermark, and the next fetch if one may be sent. */
void follower_go_on(struct replica *r, const struct replica_event *e, struct replica_effects *fx);

#endif
