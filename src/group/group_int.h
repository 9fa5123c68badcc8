/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_GROUP_GROUP_INT_H
#define SL_GROUP_GROUP_INT_H

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/trace.h"
#include "group/group.h"
#include "group/records_int.h"

/*
 * What the files of this module share: the state of groups, and the few operations on it that
 * belong to one file and are used by others.
 */

/* ---- State ------------------------------------------------------------------------------ */

/*
 *              join                    all joined, or timeout
 *   EMPTY ---------------> PREPARING -------------------------> COMPLETING
 *     ^                     |  ^  ^                               |     |
 *     |   nobody is left    |  |  |  join, leave, expiry          |     | leader's assignment
 *     +---------------------+  |  +-------------------------------+     | is committed
 *                              |                                        v
 *                              +------------------------------------- STABLE
 *                                  join, leave, expiry
 *
 * A group waits: in PREPARING for its members to join again (join_timer), in COMPLETING for the
 * leader's Sync and the write of it (sync_timer), in STABLE for something to happen.
 */
enum group_state {
    GROUP_EMPTY = 0,
    GROUP_PREPARING_REBALANCE = 1,
    GROUP_COMPLETING_REBALANCE = 2,
    GROUP_STABLE = 3,
};

enum group_timer_kind {
    GROUP_TIMER_SESSION = 0, /* of a member: silence for too long */
    GROUP_TIMER_PENDING = 1, /* of a member id that was given out and not used */
    GROUP_TIMER_JOIN = 2,    /* of a group: the join phase ends */
    GROUP_TIMER_SYNC = 3,    /* of a group: members that did not sync are removed */
    GROUP_TIMER_EXPIRY = 4,  /* of all: look for offsets that are too old */
    GROUP_TIMER_WRITE = 5,   /* of all: the oldest write takes too long */
};

struct group_timer {
    struct heap_node node; /* key: monotonic ms */
    enum group_timer_kind kind;
};

struct group_protocol {
    struct str name;
    struct bytes metadata;
};

struct group_member {
    UT_hash_handle hh; /* group->members by id, iterated in order of joining */
    struct group *group;
    char *id;
    char *instance_id; /* NULL: a dynamic member */
    char *client_id;
    char *client_host;
    int32_t session_timeout_ms;
    int32_t rebalance_timeout_ms;
    struct group_protocol *protocols; /* one block of memory with what they point to */
    int32_t protocol_count;
    size_t bytes; /* of that block */
    uint8_t *assignment;
    int32_t assignment_n;
    struct group_request *join; /* parked until the generation begins */
    struct group_request *sync; /* parked until the assignment is committed */
    bool is_new;                /* its first Join has not been answered */
    bool owes_sync;             /* it has joined the generation and not synced */
    struct group_timer session;
};

/* A member id that was given out (KIP-394). */
struct group_pending {
    UT_hash_handle hh;
    struct group *group;
    char *id;
    struct group_timer timer;
};

struct group_offset {
    UT_hash_handle hh; /* group->offsets by key */
    struct offset_value value;
    char *metadata; /* what value.metadata points to */
    uint32_t key_n; /* bytes of key */
    uint8_t key[];  /* partition, big-endian, and the name of the topic */
};

struct group {
    UT_hash_handle hh; /* groups->by_id */
    char *id;
    enum group_state state;
    int32_t generation;          /* 0: there was none yet */
    char *protocol_type;         /* NULL: offsets without members ("simple") */
    char *protocol;              /* of the generation; NULL */
    struct group_member *leader; /* NULL while there are no members */
    int64_t state_since_ms;      /* wall clock; -1: not known */
    struct group_member *members;
    struct group_pending *pending;
    struct group_offset *offsets;
    struct group_timer join_timer;
    struct group_timer sync_timer;
    bool is_initial;         /* the join phase began empty: it waits for more members */
    bool has_newcomer;       /* a member came while it waited */
    int64_t initial_left_ms; /* that it may still be prolonged */
    size_t bytes;            /* of all members' protocols */
    int32_t writes;          /* in flight */
    bool is_storing;         /* the generation's assignment is among them */
};

/* Offsets of a transaction that is not decided: records by producer id. */
struct group_txn {
    UT_hash_handle hh;
    int64_t producer_id;
    struct buf records; /* keys and values in turn, each with its length in front; -1: null */
};

struct groups {
    struct group_limits limits;
    struct group *by_id;
    struct heap timers;
    struct group_timer expiry_timer;
    struct group_timer write_timer;
    struct list unreported; /* struct group_write by _unreported, in the order of their deadlines */
    struct group_txn *txns;
    int64_t offset_count;
    /* of the running step */
    int64_t mono_ms;
    int64_t wall_ms;
    const uint64_t *random;
    struct group_effects *fx;
    struct group *touched; /* looked at when the event has been dealt with: is it still needed? */
};

/* ---- groups.c: the set, timers, writes --------------------------------------------------- */

struct group *groups__find(const struct groups *g, struct str id);
/* Finds it or makes an empty one. */
struct group *groups__get(struct groups *g, struct str id);
/* Frees it if nothing is left of it that anybody could want. */
void groups__free_if_unused(struct groups *g, struct group *group);
void groups__answer(struct groups *g, struct group_request *q);
void groups__timer_set(struct groups *g, struct group_timer *t, int64_t after_ms);
void groups__timer_cancel(struct groups *g, struct group_timer *t);

struct group_write *groups__write_new(struct groups *g, struct group *group,
                                      enum group_write_kind kind, struct group_request *q);
/* The record that is being added: write to the buffer, then end key and value. */
struct buf *group_write__bytes(struct group_write *w);
void group_write__end_key(struct group_write *w);
void group_write__end_value(struct group_write *w, bool is_null);
/* Among the effects, at last. */
void groups__write_submit(struct groups *g, struct group_write *w);
/* It is reported, or was never submitted. */
void group_write__free(struct group_write *w);
/* A record of what the group is now. */
void groups__write_state(struct groups *g, struct group *group, struct group_request *q);
const char *group__state_name(const struct group *group);
void group__set_state(struct groups *g, struct group *group, enum group_state state,
                      const char *why);
/* What a client gets when a write of its group failed. */
enum err group__write_error(enum err err);

/* ---- member.c ---------------------------------------------------------------------------- */

struct group_member *group__find_member(const struct group *group, struct str id);
struct group_member *group__find_instance(const struct group *group, struct str instance_id);
/*
 * Whether a request may speak for a member: ERR_FENCED_INSTANCE_ID, ERR_UNKNOWN_MEMBER_ID; else
 * *out is the member.
 */
must_use enum err group__check_member(const struct group *group, struct str id,
                                      struct str instance_id, struct group_member **out);
struct group_member *group__add_member(struct groups *g, struct group *group, const char *id,
                                       const struct group_request *join);
/* Takes over timeouts and protocols of a Join. */
void group__update_member(struct group_member *m, const struct group_request *join);
void group__set_protocols(struct group_member *m, const struct join_group_request_protocol *v,
                          int32_t n);
void group__set_assignment(struct group_member *m, struct bytes assignment);
/* Another process has taken over a static member. */
void group__rename_member(struct group_member *m, const char *id);
/* Answers what it has parked with ERR_UNKNOWN_MEMBER_ID and frees it. */
void group__remove_member(struct groups *g, struct group_member *m);
void group__restart_session(struct groups *g, struct group_member *m);
int64_t group__rebalance_timeout_ms(const struct group *group);
struct bytes group__metadata_of(const struct group_member *m, const char *protocol);
bool group__member_matches(const struct group_member *m, const struct join_group_request *in);
/* Whether a member with these protocols fits in. */
bool group__supports(const struct group *group, const struct join_group_request *in);
/* The protocol that the members choose, borrowed; every member supports at least one. */
struct str group__choose_protocol(const struct group *group);
char *group__new_member_id(struct groups *g, struct str prefix);

struct group_pending *group__find_pending(const struct group *group, struct str id);
void group__add_pending(struct groups *g, struct group *group, const char *id, int64_t timeout_ms);
void group__remove_pending(struct groups *g, struct group_pending *p);

/* ---- join.c ------------------------------------------------------------------------------- */

void group__join(struct groups *g, struct group_request *q);
void group__refuse_join(struct group_request *q, enum err err, struct str member_id);
/* A rebalance begins, unless one is under way: then it may have become complete. */
void group__rebalance(struct groups *g, struct group *group, const char *why);
void group__join_due(struct groups *g, struct group *group);
/* A static member's takeover is committed, or is not. */
void group__takeover_written(struct groups *g, struct group *group, struct group_request *q,
                             enum err err);

/* ---- sync.c: Sync, Heartbeat, Leave ------------------------------------------------------- */

void group__sync(struct groups *g, struct group_request *q);
void group__heartbeat(struct groups *g, struct group_request *q);
void group__leave(struct groups *g, struct group_request *q);
void group__refuse_sync(struct groups *g, struct group_member *m, enum err err);
void group__assignment_written(struct groups *g, struct group *group, int32_t generation,
                               enum err err);
void group__sync_due(struct groups *g, struct group *group);
void group__session_due(struct groups *g, struct group_member *m);

/* ---- offsets.c ----------------------------------------------------------------------------- */

void group__commit(struct groups *g, struct group_request *q);
void group__offset_delete(struct groups *g, struct group_request *q);
void group__delete(struct groups *g, struct group_request *q);
void group__refuse_commit(struct group_request *q, enum err err);
void group__offsets_written(struct groups *g, struct group_write *w, enum err err);
void group__removal_written(struct groups *g, struct group_write *w, enum err err);
/* Replaces what there was; takes o. */
void group__put_offset(struct groups *g, struct group *group, struct group_offset *o);
void group__drop_offset(struct groups *g, struct group *group, struct group_offset *o);
struct group_offset *group__new_offset(struct str topic, int32_t partition,
                                       const struct offset_value *value);
void group__free_offset(struct group_offset *o);
struct group_offset *group__find_offset(const struct group *group, struct str topic,
                                        int32_t partition);
struct str group_offset__topic(const struct group_offset *o);
int32_t group_offset__partition(const struct group_offset *o);
/* Tombstones for what is too old, and for groups that nothing is left of. */
void groups__expire(struct groups *g);
void groups__topic_gone(struct groups *g, struct str topic);

/* ---- load.c --------------------------------------------------------------------------------- */

/* Whether an undecided transaction has an offset for it. */
bool groups__is_unstable(const struct groups *g, struct str group, struct str topic,
                         int32_t partition);
void group_txn__free(struct groups *g, struct group_txn *t);

/* ---- subscription.c ------------------------------------------------------------------------ */

/* The topics that the members of a consumer group have subscribed to. */
struct group_topics {
    struct str *v; /* sorted, each once; in the arena */
    int32_t n;
};

/* False when that cannot be known: another protocol type, or bytes that are not understood. */
bool group__subscriptions(const struct group *group, struct arena *arena, struct group_topics *out);
bool group_topics__have(const struct group_topics *topics, struct str topic);

/* ---- Small things --------------------------------------------------------------------------- */

/* Ids and names are kept as C strings: bytes of 0 in them are refused at the door. */
static inline bool str_has_nul(struct str s)
{
    return s.n > 0 && memchr(s.p, '\0', (size_t)s.n) != NULL;
}

/* A slice of a NUL-terminated string that may be NULL, which gives "". */
static inline struct str str_or_empty(const char *s)
{
    return s ? str_of(s) : STR_LIT("");
}

#endif
