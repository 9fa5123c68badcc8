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
    X(ANSWER_OUT_OF_TURN, "answer a request before those that came earlier")

#ifdef PLANT_CHOSEN

enum planted {
    PLANTED_NOTHING = 0,
#define X(name, text) PLANTED_##name,
    PLANTED_FAULTS(X)
#undef X
        PLANTED_COUNT,
};

/* tests/sim/planted.c */
extern enum planted planted_fault;

#define PLANTED(name) (planted_fault == PLANTED_##name)

#else
#define PLANTED(name) 0
#endif

#endif
