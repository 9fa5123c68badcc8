/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_GROUP_MEMBER_H
#define SL_TESTS_SIM_GROUP_MEMBER_H

#include "group.h"

/*
 * A simulated consumer in a group, in two files: group_member.c deals with the group,
 * group_reader.c with records and offsets. One connection to the coordinator and one for records,
 * as Kafka's consumers have.
 */

/* Versions that belong together: clients of one time. */
struct edition {
    int16_t find;
    int16_t join;
    int16_t sync;
    int16_t beat;
    int16_t leave;
    int16_t commit;
    int16_t offsets;
    int16_t fetch;
};

enum member_state {
    MEMBER_AWAY = 0, /* no process; the next one starts later */
    MEMBER_FINDING = 1,
    MEMBER_JOINING = 2,
    MEMBER_SYNCING = 3,
    MEMBER_ASKING = 4, /* for the offsets of what it was given */
    MEMBER_READING = 5,
};

/* A partition that it was given. */
struct holding {
    struct claim at;
    bool is_known; /* next is */
    int64_t next;
    int64_t committed; /* acknowledged or read */
    struct order order;
};

/* What the process before has left behind: it may still be there, paused, and say something. */
struct ghost {
    bool is_there;
    char id[ID_BYTES];
    int32_t generation;
    struct claims claims; /* one, or none */
    int64_t next;
    int64_t since_ns;
    bool has_left; /* and was told so, then and in this life of the broker */
    int64_t left_ns;
    int left_life;
};

/* What a leader has decided and its Sync says. */
struct plan_of_leader {
    int n;
    char ids[MEMBERS_MAX * 2][ID_BYTES];
    struct claims claims[MEMBERS_MAX * 2];
};

struct member {
    struct run *run;
    struct peer coord;
    struct peer data;
    int group;
    int index;
    const struct edition *edition;
    int32_t session_ms;
    int32_t rebalance_ms;
    char instance[INSTANCE_BYTES]; /* "": a dynamic member */
    enum member_state state;
    int process; /* which one: answers to an older one are not heard */
    int64_t wake_ns;
    int64_t paused_until_ns;
    bool owed_sync; /* when it was paused */
    int64_t fate_ns;
    /* who it is */
    char id[ID_BYTES]; /* "": not known */
    int32_t generation;
    enum assignor assignor;
    uint64_t topics;           /* of its last Join */
    uint64_t topics_before;    /* of the last Join of the process before */
    bool has_claimed_too_much; /* in the last Join: what it has dropped since */
    int64_t member_ns;
    int member_life;
    int64_t alive_ns; /* the coordinator has had a sign of life at that time */
    int64_t held_until_ns;
    int64_t rejoined_ns; /* as an instance: its ghost is found out from then on */
    int rejoined_life;
    bool is_haunted; /* its ghost is about to say something */
    int heard_life;  /* of the last heartbeat that was fine */
    /* talking */
    struct call step_call;
    bool is_stepping;
    int step_process;
    int step_life;   /* of the broker that it was sent to */
    int64_t step_ns; /* not before */
    struct call beat_call;
    bool is_beating;
    int beat_process;
    int beat_life;
    int32_t beat_generation;
    int64_t beat_ns;
    struct call ghost_call;
    bool is_haunting;
    int haunt_life;
    int32_t haunt_generation;
    struct call leave_call;
    bool is_leaving;
    int leave_life;
    struct ghost ghost;
    struct plan_of_leader plan;
    /* reading */
    struct holding holdings[CLAIMS_MAX];
    int holding_count;
    struct claims asked;
    int stamp; /* of the holdings: answers to an older one are not used */
    struct call fetch_call;
    bool is_fetching;
    int fetch_stamp;
    int64_t fetch_ns;
    int64_t commit_ns;
    int commits; /* in flight */
};

/* How long a request may stay behind one that is parked. */
#define PARKED_NS (4 * SECOND)

/* ---- group_reader.c */

void reader_init(struct member *m);
void reader_fini(struct member *m);
/* Fetches and commits what is due. */
void reader_tick(struct member *m);
void reader_drop(struct member *m);
/* The assignment of a generation; true when something was taken away. */
bool reader_take(struct member *m, const struct claims *claims);
bool reader_has_unknown(const struct member *m);
/* Asks for the offsets of what is new; the step under way. */
void reader_ask(struct member *m);
/* Commits what was read since the last time, as a member of this generation. */
void reader_commit(struct member *m, int32_t generation);
void reader_claims(const struct member *m, struct claims *out);

/* ---- group_member.c */

/* The coordinator does not take it for a member of this generation: joins again. */
void member_refused(struct member *m, const struct call *c, enum err err);
/* The step under way has failed: tries again, a little later. */
void member_retry(struct member *m);

#endif
