/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CONTROLLER_CONTROLLER_H
#define SL_CONTROLLER_CONTROLLER_H

#include "base/arena.h"
#include "metadata/metadata.h"
#include "wire/messages.h"

/*
 * What the controller decides, and how it says so. Everything is planning on immutable images: from
 * what the cluster is and what has happened follows a delta, which the caller stores (fenced by the
 * controller's epoch, each partition's state conditional on its partition epoch), then applies, and
 * announces: what a broker has to be told is the difference between the image that it has and the
 * controller's.
 *
 * Pure; any thread. Deltas are built on what they have already: {0}, or changes that are part of
 * the same plan. Images must be those that the plan will be applied to.
 */

/* ---- elect.c ---------------------------------------------------------------------------- */

/* Whether a partition of this topic may be led by a replica that is not in sync. */
typedef bool controller_is_unclean_fn(void *ctx, const struct metadata_topic *topic);

struct controller_rules {
    controller_is_unclean_fn *is_unclean;
    void *ctx;
};

/*
 * Brokers came, went, or came back: `now` is `before` with other brokers. Who has gone, or has
 * another epoch than before (it went and came), leaves the in-sync sets in which others remain, and
 * leads nothing any more; who leads instead is the first live replica of the assignment that is in
 * sync; if there is none, and the rules allow it, the first live one; else nobody, until one
 * returns. All changes raise leader epoch and partition epoch. The plan is for `now`.
 */
void controller_plan_brokers(const struct metadata_image *before, const struct metadata_image *now,
                             const struct controller_rules *rules, struct metadata_delta *plan);
/*
 * A new controller finds the states that earlier ones left: `zxids` says, by topic and partition
 * (as in the image), when each was written. Whoever was registered after that has lost the life in
 * which it led or was in sync: broker epochs are zxids too.
 */
void controller_plan_takeover(const struct metadata_image *image, const int64_t *const *zxids,
                              const struct controller_rules *rules, struct metadata_delta *plan);
/*
 * A broker wants to stop (it is still alive): its leaderships move to other members of the in-sync
 * sets, and it leaves those in which others remain. Returns how many partitions it still leads that
 * have other replicas. The caller fences it (is_fenced) in the same plan, so that before its next
 * life nobody elects it or takes it back into a set (S13).
 */
int32_t controller_plan_shutdown(const struct metadata_image *image, int32_t broker_id,
                                 struct metadata_delta *plan);
/*
 * A broker refuses the controller's connections, but its session has not ended. It may be dead, or
 * alive and in the belief that it leads: nobody could tell it. The same change: where somebody else
 * is alive and in sync, it leads no more and is in no set. If it lives on, it is told as soon as it
 * listens again, follows, and is proposed by the leaders like any other.
 */
void controller_plan_suspect(const struct metadata_image *image, int32_t broker_id,
                             struct metadata_delta *plan);
/*
 * A broker was told to lead a partition and cannot: its log was on a disk that is gone. It leaves
 * the in-sync set if that has other members, dead or alive; whoever of them is alive leads, or
 * nobody: the one that has lost everything would have the others lose it too.
 */
void controller_plan_refusal(const struct metadata_image *image, int32_t broker_id,
                             const struct metadata_topic *topic, int32_t index,
                             struct metadata_delta *plan);
/* The first state of a partition that has replicas: leader and in-sync set from who is alive.
 * False: nobody is. */
bool controller_first_state(const struct metadata_image *image, struct metadata_partition *p);

/* ---- leaders.c: elections that are asked for ---------------------------------------------- */

/*
 * ElectLeaders, to the preferred replicas or unclean (KIP-460). The response is filled in, in the
 * arena; `out` has been through wire_init. Of a partition: ERR_UNKNOWN_TOPIC_OR_PARTITION,
 * ERR_INVALID_TOPIC_EXCEPTION (it is being deleted), ERR_ELECTION_NOT_NEEDED (the preferred replica
 * leads already; unclean: anybody does), ERR_PREFERRED_LEADER_NOT_AVAILABLE (dead, or not in sync),
 * ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE (all are dead). Who asks for all is not told where there was
 * no need. The whole request: ERR_INVALID_REQUEST, for another type of election.
 */
void controller_elect(const struct metadata_image *image, const struct elect_leaders_request *in,
                      struct arena *arena, struct elect_leaders_response *out,
                      struct metadata_delta *plan);
/*
 * Brokers that lead too few of the partitions that prefer them (more than `percentage` of these are
 * led by others, or by nobody) lead again those for which they are in sync and which are not on the
 * move: leader.imbalance.per.broker.percentage.
 */
void controller_plan_rebalance(const struct metadata_image *image, int32_t percentage,
                               struct metadata_delta *plan);

/* ---- isr.c ------------------------------------------------------------------------------ */

/* What a leader proposes for one partition. */
struct controller_proposal {
    int32_t from; /* the broker */
    int32_t leader_epoch;
    int32_t partition_epoch;
    int32_t count;
    const struct alter_partition_request_broker *isr;
};

/*
 * AlterPartition (KIP-497, KIP-841, KIP-903). ERR_NONE: *next is the state to be stored, its isr in
 * the arena; equal to the present one when there is nothing to change (same partition epoch).
 * ERR_NOT_CONTROLLER: the leader knows more than we do, so somebody else is the controller.
 * ERR_FENCED_LEADER_EPOCH, ERR_INVALID_UPDATE_VERSION, ERR_INVALID_REQUEST, ERR_INELIGIBLE_REPLICA
 * (a new member is not alive, is fenced, or lives another life: KIP-841, KIP-903).
 */
must_use enum err controller_alter(const struct metadata_image *image,
                                   const struct metadata_partition *p,
                                   const struct controller_proposal *proposal, struct arena *arena,
                                   struct metadata_partition *next);

/* ---- reassign.c: partitions that move to other brokers ------------------------------------ */

/*
 * AlterPartitionReassignments (KIP-455, KIP-860): a target for each partition, or the end of its
 * move. From then on its `replicas` are the target and, behind it, the others that it had; `adding`
 * and `removing` tell them apart. Another target for one on the move counts from what it had at
 * first; so does the end. What needs nobody new is carried out at once.
 *
 * The response is filled in, in the arena; `out` has been through wire_init. Of a partition:
 * ERR_UNKNOWN_TOPIC_OR_PARTITION, ERR_NO_REASSIGNMENT_IN_PROGRESS, ERR_INVALID_REPLICATION_FACTOR
 * (the request forbids to change it), ERR_INVALID_REQUEST (named twice), and
 * ERR_INVALID_REPLICA_ASSIGNMENT: none, negative ids or one twice, a new replica on a broker that
 * is not alive, or nobody in sync who would remain.
 */
void controller_reassign(const struct metadata_image *image,
                         const struct alter_partition_reassignments_request *in,
                         struct arena *arena, struct alter_partition_reassignments_response *out,
                         struct metadata_delta *plan);
void controller_list_reassignments(const struct metadata_image *image,
                                   const struct list_partition_reassignments_request *in,
                                   struct arena *arena,
                                   struct list_partition_reassignments_response *out);
/*
 * Moves whose whole target is in sync end: the replicas are the target, one of which leads. To be
 * asked whenever in-sync sets or brokers have changed; without moves it costs a look at each
 * partition. Who has lost its replica is told so by the difference of the images (StopReplica).
 */
void controller_plan_reassignments(const struct metadata_image *image, struct metadata_delta *plan);
/*
 * What has to be stored of a change (of a plan for `before`): if this is true, not the partition's
 * state alone but also the node of its topic, with the replicas, `adding` and `removing` that the
 * topic has after the whole plan. In the multi of the last of its states, or in one after it: a
 * state whose replicas are not known yet only names brokers that have one already.
 */
bool controller_changes_assignment(const struct metadata_image *before,
                                   const struct metadata_change *change);

/* ---- topics.c: new partitions ------------------------------------------------------------ */

/*
 * The assignments of a CreateTopics request in the order of their partitions, in the arena;
 * borrows the ids. ERR_INVALID_REPLICA_ASSIGNMENT: they are not numbered from 0 without gaps.
 */
must_use enum err controller_sort_assignments(const struct create_topics_request_topic *in,
                                              struct arena *arena, struct metadata_ids **out,
                                              struct str *message);

struct controller_new_partitions {
    int32_t count;              /* 0 or more, with assignments 1 or more; the caller bounds it */
    int32_t replication_factor; /* of a topic that has no partitions yet; not with assignments */
    const struct metadata_ids *manual; /* `count` assignments; NULL: the rule of placement */
    uint64_t random;                   /* where the rule begins */
};

/*
 * Adds partitions with their first states to a topic that is not in an image yet, new or a copy.
 * Racks count if all live brokers have one. On an error it stays as it is, and *message (in the
 * arena) says why: ERR_INVALID_PARTITIONS (none), ERR_INVALID_REPLICATION_FACTOR,
 * ERR_INVALID_REPLICA_ASSIGNMENT (a broker that is not alive or is named twice; lists of different
 * lengths), ERR_REASSIGNMENT_IN_PROGRESS.
 */
must_use enum err controller_make_partitions(const struct metadata_image *image,
                                             const struct controller_new_partitions *how,
                                             struct arena *arena, struct metadata_topic *topic,
                                             struct str *message);

/* ---- orders.c: what a broker is told ----------------------------------------------------- */

/* The type of a request: some of what the controller knows, or all of it. */
#define CONTROLLER_ORDERS_SOME 1
#define CONTROLLER_ORDERS_ALL 2

struct controller_orders {
    /* NULL: nothing of the kind. In the order in which they are sent. */
    struct update_metadata_request *states; /* live brokers, and all partitions that have changed */
    struct leader_and_isr_request *roles;   /* of the changed partitions that it hosts */
    struct stop_replica_request *stops;     /* of partitions that it hosts no more */
};

/*
 * From the image that broker `to` has (`before`; the empty image for a new life of it, or of the
 * controller's) to ours (`now`). In the arena, which borrows from both images. `listener`: the one
 * that brokers use among each other.
 */
void controller_orders(const struct metadata_image *before, const struct metadata_image *now,
                       int32_t to, struct str listener, struct arena *arena,
                       struct controller_orders *out);

/* ---- obey.c: the same, received ---------------------------------------------------------- */

/* Whose order a broker has obeyed last, and of which version. Begins as all zero. */
struct controller_heard {
    int32_t controller_epoch;
    int64_t version;
};

/*
 * An order of a controller that may be obeyed is heard, unless it is late: a request of a
 * connection that was given up may arrive behind a later one, and would bring back what has gone.
 * ERR_STALE_CONTROLLER_EPOCH. `version` is -1 where the controller does not say.
 */
must_use enum err controller_hear(struct controller_heard *h, int32_t controller_epoch,
                                  int64_t version);

/*
 * A request to a broker against its image; `life` is the epoch of its registration, -1 before it
 * has one (then it obeys nobody). The whole request: ERR_STALE_CONTROLLER_EPOCH,
 * ERR_STALE_BROKER_EPOCH, and nothing is changed. Else the plan leads to the image that has been
 * told; of each partition the newest state wins, and a topic that all states do not name is gone.
 * The response is filled in, in the arena.
 */
must_use enum err controller_obey_roles(const struct metadata_image *image, int64_t life,
                                        const struct leader_and_isr_request *in,
                                        struct arena *arena, struct leader_and_isr_response *out,
                                        struct metadata_delta *plan);
must_use enum err controller_obey_states(const struct metadata_image *image, int64_t life,
                                         const struct update_metadata_request *in,
                                         struct metadata_delta *plan);
/* Epochs alone; which replicas go is in the request. */
must_use enum err controller_obey_stops(const struct metadata_image *image, int64_t life,
                                        const struct stop_replica_request *in);

#endif
