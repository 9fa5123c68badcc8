/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members: who they are, what they bring, and the choice of a protocol.
 *
 * A member is found by its id. A static member (KIP-345) also has an instance id that outlives its
 * process: when the next process joins with it, the member keeps its place, its assignment and its
 * parked timers, and gets a new id, so that the process before it is found out by its old one.
 *
 * Members stand in the order in which they joined; the first one leads. A member's protocols lie
 * in one block of memory that is replaced as a whole.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "group/group_int.h"

/* ---- Finding ---------------------------------------------------------------------------- */

struct group_member *group__find_member(const struct group *group, struct str id)
{
    struct group_member *m = NULL;

    if (id.n > 0)
        HASH_FIND(hh, group->members, id.p, (unsigned)id.n, m);
    return m;
}

struct group_member *group__find_instance(const struct group *group, struct str instance_id)
{
    if (str_is_null(instance_id))
        return NULL;
    for (struct group_member *m = group->members; m; m = m->hh.next)
        if (m->instance_id && str_eq_c(instance_id, m->instance_id))
            return m;
    return NULL;
}

enum err group__check_member(const struct group *group, struct str id, struct str instance_id,
                             struct group_member **out)
{
    struct group_member *m = group__find_member(group, id);

    *out = NULL;
    if (!str_is_null(instance_id)) {
        struct group_member *holder = m && m->instance_id && str_eq_c(instance_id, m->instance_id)
                                          ? m
                                          : group__find_instance(group, instance_id);

        if (!holder)
            return ERR_UNKNOWN_MEMBER_ID;
        if (holder != m)
            return ERR_FENCED_INSTANCE_ID;
    }
    *out = m;
    return m ? ERR_NONE : ERR_UNKNOWN_MEMBER_ID;
}

struct group_pending *group__find_pending(const struct group *group, struct str id)
{
    struct group_pending *p = NULL;

    if (id.n > 0)
        HASH_FIND(hh, group->pending, id.p, (unsigned)id.n, p);
    return p;
}

/* ---- Protocols -------------------------------------------------------------------------- */

static size_t protocol_bytes(const struct join_group_request_protocol *v, int32_t n)
{
    size_t size = (size_t)n * sizeof(struct group_protocol);

    for (int32_t i = 0; i < n; i++)
        size += (size_t)v[i].name.n + (size_t)MAX(v[i].metadata.n, 0);
    return size;
}

static const uint8_t *copy_to(uint8_t **at, const void *p, int32_t n)
{
    uint8_t *begin = *at;

    if (n > 0)
        memcpy(begin, p, (size_t)n);
    *at += MAX(n, 0);
    return begin;
}

void group__set_protocols(struct group_member *m, const struct join_group_request_protocol *v,
                          int32_t n)
{
    size_t size = protocol_bytes(v, n);
    struct group_protocol *block = xmalloc(size);
    uint8_t *at = (uint8_t *)(block + n);

    for (int32_t i = 0; i < n; i++) {
        block[i].name.p = (const char *)copy_to(&at, v[i].name.p, v[i].name.n);
        block[i].name.n = v[i].name.n;
        block[i].metadata.p = copy_to(&at, v[i].metadata.p, v[i].metadata.n);
        block[i].metadata.n = MAX(v[i].metadata.n, 0);
    }
    free(m->protocols);
    m->group->bytes += size - m->bytes;
    m->protocols = block;
    m->protocol_count = n;
    m->bytes = size;
}

static const struct group_protocol *find_protocol(const struct group_member *m, struct str name)
{
    for (int32_t i = 0; i < m->protocol_count; i++)
        if (str_eq(m->protocols[i].name, name))
            return &m->protocols[i];
    return NULL;
}

struct bytes group__metadata_of(const struct group_member *m, const char *protocol)
{
    const struct group_protocol *p = protocol ? find_protocol(m, str_of(protocol)) : NULL;

    return p ? p->metadata : (struct bytes){.p = (const uint8_t *)"", .n = 0};
}

static bool bytes_equal(struct bytes a, struct bytes b)
{
    return MAX(a.n, 0) == MAX(b.n, 0) && (a.n <= 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

bool group__member_matches(const struct group_member *m, const struct join_group_request *in)
{
    if (in->protocols.n != m->protocol_count)
        return false;
    for (int32_t i = 0; i < m->protocol_count; i++)
        if (!str_eq(in->protocols.v[i].name, m->protocols[i].name) ||
            !bytes_equal(in->protocols.v[i].metadata, m->protocols[i].metadata))
            return false;
    return true;
}

static bool all_support(const struct group *group, struct str name)
{
    for (const struct group_member *m = group->members; m; m = m->hh.next)
        if (!find_protocol(m, name))
            return false;
    return true;
}

bool group__supports(const struct group *group, const struct join_group_request *in)
{
    if (in->protocol_type.n <= 0 || in->protocols.n <= 0)
        return false;
    if (group->state == GROUP_EMPTY)
        return true;
    if (!group->protocol_type || !str_eq_c(in->protocol_type, group->protocol_type))
        return false;
    for (int32_t i = 0; i < in->protocols.n; i++)
        if (all_support(group, in->protocols.v[i].name))
            return true;
    return false;
}

/* Each member votes for the first of its protocols that is a candidate. */
static void count_votes(const struct group *group, const struct str *candidates, int32_t n,
                        int32_t *votes)
{
    for (const struct group_member *m = group->members; m; m = m->hh.next) {
        int32_t c = n;

        for (int32_t i = 0; i < m->protocol_count && c == n; i++)
            for (c = 0; c < n && !str_eq(candidates[c], m->protocols[i].name);)
                c++;
        assert(c < n);
        votes[c]++;
    }
}

/* The candidate with most votes; among equals the one that the first member prefers. */
struct str group__choose_protocol(const struct group *group)
{
    const struct group_member *first = group->members;
    struct str candidates[GROUP_PROTOCOLS_MAX];
    int32_t votes[GROUP_PROTOCOLS_MAX] = {0};
    int32_t n = 0;
    int32_t best = 0;

    assert(first->protocol_count <= GROUP_PROTOCOLS_MAX);
    for (int32_t i = 0; i < first->protocol_count; i++)
        if (all_support(group, first->protocols[i].name))
            candidates[n++] = first->protocols[i].name;
    assert(n > 0);
    count_votes(group, candidates, n, votes);
    for (int32_t i = 1; i < n; i++)
        if (votes[i] > votes[best])
            best = i;
    return candidates[best];
}

int64_t group__rebalance_timeout_ms(const struct group *group)
{
    int64_t longest = 1;

    for (const struct group_member *m = group->members; m; m = m->hh.next)
        longest = MAX(longest, m->rebalance_timeout_ms);
    return longest;
}

/* ---- Coming and going ------------------------------------------------------------------- */

char *group__new_member_id(struct groups *g, struct str prefix)
{
    uint64_t high = (g->random[0] & ~(uint64_t)0xf000) | 0x4000;
    uint64_t low = (g->random[1] & ~((uint64_t)3 << 62)) | (uint64_t)1 << 63;

    /* A random UUID as Java prints it. */
    return xasprintf("%.*s-%08x-%04x-%04x-%04x-%012llx", STR_ARG(prefix), (unsigned)(high >> 32),
                     (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff),
                     (unsigned)(low >> 48), (unsigned long long)(low & 0xffffffffffff));
}

static void add_to_group(struct group *group, struct group_member *m)
{
    HASH_ADD_KEYPTR(hh, group->members, m->id, (unsigned)strlen(m->id), m);
    if (!group->leader)
        group->leader = m;
}

static char *copy_or_empty(struct str s)
{
    return s.n > 0 ? str_dup(s) : xstrdup("");
}

struct group_member *group__add_member(struct groups *g, struct group *group, const char *id,
                                       const struct group_request *join)
{
    const struct join_group_request *in = join->in;
    struct group_member *m = xcalloc(1, sizeof(*m));

    (void)g;
    m->group = group;
    m->id = xstrdup(id);
    m->instance_id = str_dup(in->group_instance_id);
    m->client_id = copy_or_empty(join->client_id);
    m->client_host = copy_or_empty(join->client_host);
    m->is_new = true;
    m->session.kind = GROUP_TIMER_SESSION;
    group__update_member(m, join);
    if (!group->members) {
        free(group->protocol_type);
        group->protocol_type = str_dup(in->protocol_type);
    }
    add_to_group(group, m);
    return m;
}

void group__update_member(struct group_member *m, const struct group_request *join)
{
    const struct join_group_request *in = join->in;

    m->session_timeout_ms = in->session_timeout_ms;
    m->rebalance_timeout_ms = in->rebalance_timeout_ms > 0 ? in->rebalance_timeout_ms
                                                           : in->session_timeout_ms;
    group__set_protocols(m, in->protocols.v, in->protocols.n);
}

void group__set_assignment(struct group_member *m, struct bytes assignment)
{
    free(m->assignment);
    m->assignment = assignment.n > 0 ? xmemdup(assignment.p, (size_t)assignment.n) : NULL;
    m->assignment_n = MAX(assignment.n, 0);
}

void group__rename_member(struct group_member *m, const char *id)
{
    struct group *group = m->group;

    HASH_DEL(group->members, m);
    free(m->id);
    m->id = xstrdup(id);
    add_to_group(group, m);
}

void group__remove_member(struct groups *g, struct group_member *m)
{
    struct group *group = m->group;

    if (m->join) {
        group__refuse_join(m->join, ERR_UNKNOWN_MEMBER_ID, str_of(m->id));
        groups__answer(g, m->join);
    }
    if (m->sync)
        group__refuse_sync(g, m, ERR_UNKNOWN_MEMBER_ID);
    groups__timer_cancel(g, &m->session);
    HASH_DEL(group->members, m);
    if (group->leader == m)
        group->leader = group->members;
    group->bytes -= m->bytes;
    free(m->protocols);
    free(m->assignment);
    free(m->client_host);
    free(m->client_id);
    free(m->instance_id);
    free(m->id);
    free(m);
}

void group__restart_session(struct groups *g, struct group_member *m)
{
    groups__timer_set(g, &m->session, m->session_timeout_ms);
}

void group__add_pending(struct groups *g, struct group *group, const char *id, int64_t timeout_ms)
{
    struct group_pending *p = xcalloc(1, sizeof(*p));

    p->group = group;
    p->id = xstrdup(id);
    p->timer.kind = GROUP_TIMER_PENDING;
    HASH_ADD_KEYPTR(hh, group->pending, p->id, (unsigned)strlen(p->id), p);
    groups__timer_set(g, &p->timer, timeout_ms);
}

void group__remove_pending(struct groups *g, struct group_pending *p)
{
    groups__timer_cancel(g, &p->timer);
    HASH_DEL(p->group->pending, p);
    free(p->id);
    free(p);
}
