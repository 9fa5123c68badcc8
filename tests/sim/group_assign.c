/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the members of a group tell each other through the broker: subscriptions, assignments, and
 * how the leader makes one from the other. The bytes are those of Kafka's consumers (versions 0 to
 * 2 of both), because the coordinator reads the topics in them.
 *
 * The cooperative assignor is Kafka's idea without its refinements: everybody keeps what they have,
 * what is free goes to whoever has least, and what has to move is taken away in this generation and
 * given in the next one.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "group.h"

#define SUBSCRIPTION_VERSION 2
#define ASSIGNMENT_VERSION 0

bool claims_have(const struct claims *c, struct claim at)
{
    for (int i = 0; i < c->n; i++)
        if (c->v[i].topic == at.topic && c->v[i].partition == at.partition)
            return true;
    return false;
}

void claims_add(struct claims *c, struct claim at)
{
    assert(c->n < CLAIMS_MAX);
    c->v[c->n++] = at;
}

uint64_t topics_there(const struct run *run)
{
    const struct history *h = &run->history;
    uint64_t bits = 0;

    for (int i = 0; i < h->topic_count && i < 64; i++)
        if (h->topics[i].state == TOPIC_THERE)
            bits |= (uint64_t)1 << i;
    return bits;
}

/* ---- bytes: writing ---------------------------------------------------------------------- */

static void put_short(struct buf *out, int16_t v)
{
    put_i16(buf_extend(out, 2), v);
}

static void put_int(struct buf *out, int32_t v)
{
    put_i32(buf_extend(out, 4), v);
}

static void put_name(struct buf *out, const char *s)
{
    put_short(out, (int16_t)strlen(s));
    buf_append(out, s, strlen(s));
}

/* Topic by topic, as Kafka groups them. */
static void put_claims(const struct run *run, const struct claims *claims, struct buf *out)
{
    size_t count_at = out->n;
    int32_t topics = 0;

    put_int(out, 0);
    for (int t = 0; t < run->history.topic_count; t++) {
        size_t n_at = 0;
        int32_t n = 0;

        for (int i = 0; i < claims->n; i++) {
            if (claims->v[i].topic != t)
                continue;
            if (n++ == 0) {
                put_name(out, run->history.topics[t].name);
                n_at = out->n;
                put_int(out, 0);
                topics++;
            }
            put_int(out, claims->v[i].partition);
        }
        if (n > 0)
            put_i32(out->p + n_at, n);
    }
    put_i32(out->p + count_at, topics);
}

void subscription_put(const struct run *run, uint64_t topics, const struct claims *owned,
                      int32_t generation, struct buf *out)
{
    put_short(out, SUBSCRIPTION_VERSION);
    put_int(out, __builtin_popcountll(topics));
    for (int i = 0; i < 64; i++)
        if (topics >> i & 1)
            put_name(out, run->history.topics[i].name);
    put_int(out, -1); /* no user data */
    put_claims(run, owned, out);
    put_int(out, generation);
}

void assignment_put(const struct run *run, const struct claims *claims, struct buf *out)
{
    put_short(out, ASSIGNMENT_VERSION);
    put_claims(run, claims, out);
    put_int(out, -1);
}

/* ---- bytes: reading ---------------------------------------------------------------------- */

struct reader {
    const uint8_t *p;
    int32_t left;
    bool is_bad;
};

static const uint8_t *take(struct reader *r, int32_t n)
{
    const uint8_t *p = r->p;

    r->is_bad = r->is_bad || n < 0 || n > r->left;
    if (r->is_bad)
        return NULL;
    r->p += n;
    r->left -= n;
    return p;
}

static int16_t take_short(struct reader *r)
{
    const uint8_t *p = take(r, 2);

    return (int16_t)(p ? get_i16(p) : 0);
}

static int32_t take_int(struct reader *r)
{
    const uint8_t *p = take(r, 4);

    return p ? get_i32(p) : 0;
}

/* Index of the topic. */
static int take_topic(const struct run *run, struct reader *r)
{
    int16_t n = take_short(r);
    const uint8_t *p = take(r, n);

    for (int i = 0; p && i < run->history.topic_count && i < 64; i++) {
        const char *name = run->history.topics[i].name;

        if (strlen(name) == (size_t)n && memcmp(name, p, (size_t)n) == 0)
            return i;
    }
    r->is_bad = true;
    return 0;
}

static void take_claims(const struct run *run, struct reader *r, struct claims *out)
{
    int32_t topics = take_int(r);

    for (int32_t t = 0; t < topics && !r->is_bad; t++) {
        int topic = take_topic(run, r);
        int32_t n = take_int(r);

        for (int32_t i = 0; i < n && !r->is_bad; i++) {
            struct claim at = {.topic = (int16_t)topic, .partition = (int16_t)take_int(r)};

            if (out->n == CLAIMS_MAX || at.partition < 0 || at.partition >= TOPIC_PARTITIONS_MAX)
                r->is_bad = true;
            else
                claims_add(out, at);
        }
    }
}

bool subscription_parse(const struct run *run, struct bytes in, struct subscriber *out)
{
    struct reader r = {.p = in.p, .left = in.n};
    int32_t n;

    r.is_bad = take_short(&r) != SUBSCRIPTION_VERSION;
    n = take_int(&r);
    for (int32_t i = 0; i < n && !r.is_bad; i++)
        out->topics |= (uint64_t)1 << take_topic(run, &r);
    (void)take_int(&r);
    take_claims(run, &r, &out->owned);
    out->generation = take_int(&r);
    return !r.is_bad && r.left == 0;
}

bool assignment_parse(const struct run *run, struct bytes in, struct claims *out)
{
    struct reader r = {.p = in.p, .left = in.n};

    out->n = 0;
    if (in.n == 0)
        return true; /* nobody has assigned anything */
    r.is_bad = take_short(&r) != ASSIGNMENT_VERSION;
    take_claims(run, &r, out);
    (void)take_int(&r);
    return !r.is_bad && r.left == 0;
}

/* ---- assignors --------------------------------------------------------------------------- */

const char *assignor_name(enum assignor a)
{
    static const char *const names[] = {"range", "roundrobin", "cooperative-sticky"};

    return names[a];
}

static int by_id(const void *a, const void *b)
{
    return str_cmp(((const struct subscriber *)a)->id, ((const struct subscriber *)b)->id);
}

static bool wants(const struct subscriber *s, int topic)
{
    return s->topics >> topic & 1;
}

/* Of those who want the topic, the one with this place among them. */
static struct subscriber *nth_of(struct subscriber *v, int n, int topic, int place)
{
    for (int i = 0; i < n; i++)
        if (wants(&v[i], topic) && place-- == 0)
            return &v[i];
    return NULL;
}

static int count_of(const struct subscriber *v, int n, int topic)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += wants(&v[i], topic);
    return count;
}

static void give(struct subscriber *s, int topic, int partition)
{
    claims_add(&s->assigned,
               (struct claim){.topic = (int16_t)topic, .partition = (int16_t)partition});
}

static void assign_in_turn(const struct run *run, enum assignor how, struct subscriber *v, int n)
{
    int turn = 0;

    for (int t = 0; t < run->history.topic_count && t < 64; t++) {
        int members = count_of(v, n, t);
        int partitions = run->history.topics[t].partitions;

        for (int p = 0; members > 0 && p < partitions; p++)
            give(nth_of(v, n, t,
                        (how == ASSIGN_RANGE ? p * members / partitions : turn++) % members),
                 t, p);
    }
}

static struct subscriber *with_least(struct subscriber *v, int n, int topic)
{
    struct subscriber *least = NULL;

    for (int i = 0; i < n; i++)
        if (wants(&v[i], topic) && (!least || v[i].assigned.n < least->assigned.n))
            least = &v[i];
    return least;
}

/* Who has missed a generation may believe that it still has what another one was given (KIP-792).
 */
static struct subscriber *owner_of(struct subscriber *v, int n, struct claim at)
{
    struct subscriber *owner = NULL;

    for (int i = 0; i < n; i++)
        if (wants(&v[i], at.topic) && claims_have(&v[i].owned, at) &&
            (!owner || v[i].generation > owner->generation))
            owner = &v[i];
    return owner;
}

/* To whoever has had it, or else to who has least; those of the other kind are left out. */
static void give_if(struct subscriber *v, int n, struct claim at, bool is_owned)
{
    struct subscriber *owner = owner_of(v, n, at);

    if (is_owned == (owner != NULL))
        give(owner ? owner : with_least(v, n, at.topic), at.topic, at.partition);
}

static void give_all(const struct run *run, struct subscriber *v, int n, bool is_owned)
{
    for (int t = 0; t < run->history.topic_count && t < 64; t++)
        for (int p = 0; count_of(v, n, t) > 0 && p < run->history.topics[t].partitions; p++)
            give_if(v, n, (struct claim){.topic = (int16_t)t, .partition = (int16_t)p}, is_owned);
}

static int load_of(const struct subscriber *s)
{
    return s->assigned.n + s->promised;
}

/* The last one of what it has had before; whoever loses one joins again, and so it is found. */
static bool take_owned(struct subscriber *s)
{
    for (int i = s->assigned.n - 1; i >= 0; i--)
        if (claims_have(&s->owned, s->assigned.v[i])) {
            s->assigned.v[i] = s->assigned.v[--s->assigned.n];
            return true;
        }
    return false;
}

/* Takes one away from who has two more than another one, who gets it in the next generation. */
static bool move_one(struct subscriber *v, int n)
{
    struct subscriber *most = &v[0];
    struct subscriber *least = &v[0];

    for (int i = 1; i < n; i++) {
        if (load_of(&v[i]) > load_of(most))
            most = &v[i];
        if (load_of(&v[i]) < load_of(least))
            least = &v[i];
    }
    if (load_of(most) < load_of(least) + 2 || !take_owned(most))
        return false;
    least->promised++;
    return true;
}

static void assign_sticky(const struct run *run, struct subscriber *v, int n)
{
    give_all(run, v, n, true);
    give_all(run, v, n, false);
    while (move_one(v, n))
        ;
}

void assign(const struct run *run, enum assignor how, struct subscriber *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), by_id);
    if (how == ASSIGN_COOPERATIVE)
        assign_sticky(run, v, n);
    else
        assign_in_turn(run, how, v, n);
}
