/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_PLANTED_H
#define SL_BASE_PLANTED_H

/*
 * Mistakes that are planted on purpose, so that the simulator can be seen to find them. In the
 * program PLANTED(x) is the constant 0 and leaves nothing behind; in the simulator's own build
 * (make sim-planted, which sets PLANT_CHOSEN) tests/sim chooses one of them at run time, before
 * anything of a broker runs.
 */
#define PLANTED_FAULTS(X)                                                                          \
    X(ACK_BEFORE_SYNC, "acknowledge before the sync")                                              \
    X(TRUST_FAILED_SYNC, "trust a failed sync")                                                    \
    X(SKIP_DIRECTORY_SYNC, "make a segment without syncing its directory")                         \
    X(ACCEPT_TORN_TAIL, "recover batches without looking at their checksums")                      \
    X(CUT_ONE_TOO_MANY, "recover one batch too few behind a torn tail")                            \
    X(EARLY_RECOVERY_POINT, "move the recovery point before the segments are synced")              \
    X(INDEX_ONE_TOO_FAR, "let an index entry name the batch behind its own")                       \
    X(FORGET_PRODUCERS_AT_ROLL, "forget the producers when a segment is full")                     \
    X(KEEP_ONE_BATCH, "remember one batch of a producer instead of five")                          \
    X(NO_DUPLICATE_CHECK, "take a batch that was sent again for a new one")                        \
    X(DELETE_NOT_STORED, "delete a topic in memory alone")                                         \
    X(LOST_WAKE_UP, "register a waiting fetch without looking again")                              \
    X(FORGET_TO_WAKE, "append without waking the fetches that wait")                               \
    X(FETCH_WITHOUT_DEADLINE, "let a fetch wait for ever")                                         \
    X(SESSION_FORGETS_PARTITION, "let a fetch session forget a partition")                         \
    X(NO_ORDER_OF_VALIDATION, "append past an unfinished validation")                              \
    X(REPEAT_PRODUCER_IDS, "hand out producer ids again after a restart")                          \
    X(CONFIG_NOT_STORED, "answer a change of configuration without storing it")                    \
    X(KEEPER_WITHOUT_SYNC, "commit to the keeper without a sync")                                  \
    X(ANSWER_OUT_OF_TURN, "answer a request before those that came earlier")                       \
    X(START_NOT_STORED, "answer a deletion of records without storing it")                         \
    PLANTED_GROUP_FAULTS(X)                                                                        \
    PLANTED_REPLICA_FAULTS(X)                                                                      \
    PLANTED_CLUSTER_FAULTS(X)

/* Found by runs with consumer groups. */
#define PLANTED_GROUP_FAULTS(X)                                                                    \
    X(COMMIT_NOT_DURABLE, "answer a commit of offsets before it is stored")                        \
    X(ASSIGNMENT_NOT_DURABLE, "answer a Sync before the assignment is stored")                     \
    X(COMMIT_SEEN_EARLY, "show an offset before its commit is stored")                             \
    X(COMMIT_OF_OLD_GENERATION, "take a commit of an older generation")                            \
    X(BEAT_OF_OLD_GENERATION, "take a heartbeat of an older generation")                           \
    X(BEAT_OF_NOBODY, "take a heartbeat of a member that is gone")                                 \
    X(LOAD_HALF, "serve groups when the first part of their log is read")                          \
    X(SESSION_NOT_EXTENDED, "let a heartbeat not extend the session")                              \
    X(SAME_GENERATION, "give a generation's number again after a lost sync")                       \
    X(EXPIRE_OFFSETS_IN_USE, "expire offsets of a group that reads their topic")                   \
    X(FORGET_STATIC_MEMBER, "remove a static member that is late for a rebalance")                 \
    X(TWO_OF_AN_INSTANCE, "let a static member that comes back join beside itself")                \
    X(VANISHED_WITHOUT_REBALANCE, "remove a member without a rebalance")                           \
    X(CLEAN_THE_NEWEST, "compact the newest offset away with the older ones")

/* Rules of replication, switched off one at a time: src/replica/storm_test.c finds them, and runs
 * with a cluster. */
#define PLANTED_REPLICA_FAULTS(X)                                                                  \
    X(TRUNCATE_TO_WATERMARK, "cut a diverging log to the high watermark")                          \
    X(UNFENCED_FETCH, "answer and count fetches of other epochs")                                  \
    X(COUNT_DIVERGING_FETCH, "count the position of a log that diverges")                          \
    X(JOIN_BEFORE_EPOCH, "let a follower join that lacks what is older than the epoch")            \
    X(WATERMARK_OF_DIVERGED, "take the watermark of an answer that says diverged")                 \
    X(IGNORE_PROPOSED, "commit without those who may have joined")                                 \
    X(ASSUME_SHRINK, "take a proposal for accepted at once")                                       \
    X(TIMEOUT_IS_NO, "take a lost answer for a refusal")                                           \
    X(COMMIT_BELOW_MIN_ISR, "commit with fewer in sync than min.insync.replicas")                  \
    X(FETCH_ABOVE_ACKED, "fetch, and so acknowledge, above what is on the disk")                   \
    X(LEAD_AGAIN, "lead again in an epoch of an earlier life")                                     \
    X(OBEY_OLD_ORDERS, "obey an assignment that is older than what is known")                      \
    X(TAKE_ANY_ANSWER, "take an answer to a fetch of an earlier epoch")                            \
    X(JOIN_OF_OTHER_LIFE, "propose a follower for what its earlier life had")                      \
    X(MOVE_IN_SAME_EPOCH, "give a suspect's leadership to another one without a new epoch")

/* Found by runs with a cluster. */
#define PLANTED_CLUSTER_FAULTS(X)                                                                  \
    X(UNFENCED_DECISIONS, "store decisions of a controller that is none any more")                 \
    X(OBEY_OLD_CONTROLLER, "obey a controller of an earlier epoch")                                \
    X(OBEY_LATE_ORDERS, "obey an order that a later one has overtaken")                            \
    X(ELECT_ANYBODY, "elect a replica that is not in sync")                                        \
    X(EMPTY_THE_ISR, "take the last ones out of an in-sync set")                                   \
    X(SAME_EPOCH_FOR_NEXT_LIFE, "let a leader that comes back lead on in its epoch")               \
    X(ALTER_WITHOUT_EPOCH, "take a proposal that was made of an older state")                      \
    X(ORDERS_FORGOTTEN, "take an order for heard when its answer is lost")                         \
    X(DECIDE_UNSTORED, "tell a decision that could not be stored")                                 \
    X(LEAD_WHAT_IS_LOST, "lead with an empty log after the disk was replaced")                     \
    X(BEGIN_ANYWHERE, "let a new producer begin with any sequence")                                \
    X(KEEP_WHAT_IS_NOT_GIVEN, "keep a replica that was taken away meanwhile")                      \
    X(READ_AHEAD_AT_FOLLOWER, "let a consumer read at a follower what is not committed")

#ifdef PLANT_CHOSEN

enum planted {
    PLANTED_NOTHING = 0,
#define X(name, text) PLANTED_##name,
    PLANTED_FAULTS(X) PLANTED_COUNT,
#undef X
};

#define PLANTED_FIRST_OF_GROUPS PLANTED_COMMIT_NOT_DURABLE
#define PLANTED_FIRST_OF_CLUSTERS PLANTED_TRUNCATE_TO_WATERMARK

/* tests/sim/planted.c */
extern enum planted planted_fault;

#define PLANTED(name) (planted_fault == PLANTED_##name)

#else
#define PLANTED(name) 0
#endif

#endif
