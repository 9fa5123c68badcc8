/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_GROUP_H
#define SL_TESTS_SIM_GROUP_H

#include "peer.h"
#include "run.h"

/*
 * Consumer groups of a run: members that come, read, commit, leave and vanish, an auditor who asks
 * for offsets all the time, and the memory of what all of them were told. Everything on the
 * clients' loop.
 */

#define GROUPS_MAX 4 /* the last one has no members: offsets are committed by hand */
#define MEMBERS_MAX 12
#define CLAIMS_MAX 16 /* partitions of all topics together */
#define ID_BYTES 96
#define INSTANCE_BYTES 24

/* A partition of a topic, by the index of its incarnation in the history. */
struct claim {
    int16_t topic;
    int16_t partition;
};

struct claims {
    int n;
    struct claim v[CLAIMS_MAX];
};

bool claims_have(const struct claims *c, struct claim at);
void claims_add(struct claims *c, struct claim at);

/* ---- group_history.c: what was promised -------------------------------------------------- */

#define GENERATIONS_KEPT 4

/* One partition's offset in one commit. Its number is its metadata, so that a reader knows it. */
struct commit {
    struct claim at;
    int8_t group;
    enum fate fate;
    int32_t before; /* the one before it of this group and partition; -1 */
    int64_t offset; /* -1: the expiry of what there was */
    int64_t sent_ns;
    int64_t done_ns; /* it has happened by then if at all; INT64_MAX: it may still happen */
};

/* Who was told what in one generation. */
struct told {
    int32_t generation;
    int n;
    struct claim at[CLAIMS_MAX];
    char owner[CLAIMS_MAX][ID_BYTES]; /* member, or instance of a static one */
};

struct group_part {
    int32_t last_commit; /* -1 */
    uint8_t *processed;  /* by offset */
    int64_t cap;
};

enum assignor {
    ASSIGN_RANGE = 0,
    ASSIGN_ROUND_ROBIN = 1,
    ASSIGN_COOPERATIVE = 2,
};

struct group_told {
    char id[20];
    bool is_cooperative;
    bool has_choice; /* members offer two assignors, in any order */
    struct told told[GENERATIONS_KEPT];
    int32_t synced;       /* the highest generation of which an assignment was told */
    int64_t synced_ns;    /* since when */
    int32_t joined;       /* the highest that was told in a Join, and the life it was told in */
    int joined_life;      /* an assignment that was not stored dies with the broker */
    int64_t joined_ns;    /* since when */
    int64_t unheld_ns;    /* the last time that it may have been without members */
    int64_t expirable_ns; /* offsets sent up to then may have expired; -1 */
    int64_t committed_ns; /* when the last acknowledged commit was sent; -1 */
    int64_t disturbed_ns; /* the last time that somebody came, went, paused or lost a connection */
    struct group_part parts[TOPICS_MAX][TOPIC_PARTITIONS_MAX];
};

int32_t commit_sent(struct run *run, int group, struct claim at, int64_t offset);
void commit_acked(struct run *run, int32_t number);
void commit_refused(struct run *run, int32_t number);
/* An offset was read, by a request sent then; -1: there is none. */
void offset_read(struct run *run, int group, struct claim at, int64_t offset, struct str metadata,
                 int64_t sent_ns);
/* A Join was answered with this generation, a Sync with this assignment. */
void generation_told(struct run *run, int group, int32_t generation, int64_t sent_ns, int life);
void assignment_told(struct run *run, int group, int32_t generation, const char *owner,
                     const struct claims *claims);
/* A heartbeat or commit of this generation was answered without an error. */
void generation_accepted(struct run *run, int group, int32_t generation, int64_t sent_ns, int life,
                         const char *what);
void group_processed(struct run *run, int group, struct claim at, int64_t from, int64_t to);
/* Every record that is known was processed and committed; says what is missing if it complains. */
bool group_is_through(struct run *run, int group, bool complains);

/* ---- group_assign.c: what members tell each other ---------------------------------------- */

struct subscriber {
    struct str id; /* borrowed */
    uint64_t topics;
    struct claims owned;
    int32_t generation; /* that it owns them in */
    struct claims assigned;
    int promised; /* how many it is to have in the next generation */
};

const char *assignor_name(enum assignor a);
/* The topics that are there, as bits by index. */
uint64_t topics_there(const struct run *run);
void subscription_put(const struct run *run, uint64_t topics, const struct claims *owned,
                      int32_t generation, struct buf *out);
/* False when the bytes are not what a member of ours has sent. */
bool subscription_parse(const struct run *run, struct bytes in, struct subscriber *out);
void assignment_put(const struct run *run, const struct claims *claims, struct buf *out);
bool assignment_parse(const struct run *run, struct bytes in, struct claims *out);
/* Fills in what each is assigned; the order of v changes. */
void assign(const struct run *run, enum assignor how, struct subscriber *v, int n);

/* ---- group_offsets.c: reading offsets ----------------------------------------------------- */

/* Asks for these, or for all that there are (NULL); `c` is the caller's. */
void offsets_ask(struct run *run, struct peer *peer, struct call *c, int16_t version, int group,
                 const struct claims *claims);
/* Judges an answer. Offsets of `claims` go to `out`; an error of any of them is returned. */
enum err offsets_take(struct run *run, const struct call *c, int group, const void *response,
                      const struct claims *claims, int64_t *out);

struct commit_spec {
    int group;
    int32_t generation; /* -1: nobody's */
    const char *member;
    const char *instance; /* "": none */
    const struct claims *claims;
    const int64_t *offsets;
};

struct commit_call {
    struct call call;
    struct run *run;
    void *owner;
    int group;
    int32_t generation;
    int life;
    struct claims claims;
    int64_t offsets[CLAIMS_MAX];
    int32_t numbers[CLAIMS_MAX];
    /* ERR_NONE when all were committed, ERR_RESET without an answer. */
    void (*answered)(struct commit_call *c, enum err err);
};

/* Sends; the answer is judged, and told to the owner. */
void offsets_commit(struct run *run, struct peer *peer, int16_t version,
                    const struct commit_spec *spec, void *owner,
                    void (*answered)(struct commit_call *c, enum err err), int64_t wait_ns);

/* ---- group_member.c, group_audit.c, group_world.c ----------------------------------------- */

struct member;
struct member *member_new(struct run *run, int group, int index);
void member_free(struct member *m);
void member_tick(struct member *m);
bool member_is_away(const struct member *m);
/* It reads, in this life of the broker and in this generation. */
bool member_is_reading(const struct member *m, int32_t generation);
/* Until when the group certainly has this member, if it does nothing more. */
int64_t member_held_until(const struct member *m);
/* Adds what it reads and is not there yet. */
void member_add_claims(const struct member *m, struct claims *out);
void member_describe(const struct member *m, char *text, size_t n);
int member_group(const struct member *m);

struct auditor;
struct auditor *auditor_new(struct run *run);
void auditor_free(struct auditor *a);
void auditor_tick(struct auditor *a);

struct group_world {
    struct group_told groups[GROUPS_MAX];
    int group_count; /* with the one that has no members, the last */
    struct commit *commits;
    int32_t commit_count;
    int32_t commit_cap;
    struct member *members[MEMBERS_MAX];
    int member_count;
    struct auditor *auditor;
    int64_t jumped_ns; /* when the broker's wall clock last jumped; -1 */
    uint64_t topics;
};

static inline struct group_told *told_of(struct run *run, int group)
{
    return &run->groups->groups[group];
}

#endif
