/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of what groups were promised, and the judge of what they are told:
 *
 *  - A committed offset is a register. A read returns a commit that was sent, with its offset, and
 *    none that was certainly replaced before the read began: by a commit that was acknowledged, and
 *    sent when the one before it could not happen any more. What has been read has happened. A
 *    commit without an answer may happen as long as that life of the broker lasts, one that was
 *    refused never. "There is none" is an answer too, and holds only before the first commit, or
 *    for a group that may have been empty when its offsets were too old.
 *  - Acknowledged commits of a group with members never go back.
 *  - In one generation of a group a partition is given to one member.
 *  - Once an assignment of a generation was told, nothing that names an older generation is
 *    accepted, whatever happens to the broker; and once the generation itself was told, in that
 *    life of the broker.
 *
 * A group that has neither members nor offsets is forgotten, and begins again with generation 1:
 * may_have_restarted says when that is possible.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "group.h"

#define METADATA "commit "

static struct group_part *part_of(struct run *run, int group, struct claim at)
{
    return &told_of(run, group)->parts[at.topic][at.partition];
}

static const char *topic_name(const struct run *run, struct claim at)
{
    return run->history.topics[at.topic].name;
}

/* ---- commits ---------------------------------------------------------------------------- */

static struct commit *add_commit(struct run *run, int group, struct claim at)
{
    struct group_world *w = run->groups;
    struct group_part *p = part_of(run, group, at);
    struct commit *c;

    if (w->commit_count == w->commit_cap) {
        w->commit_cap = w->commit_cap ? 2 * w->commit_cap : 1024;
        w->commits = xreallocarray(w->commits, (size_t)w->commit_cap, sizeof(*w->commits));
    }
    c = &w->commits[w->commit_count];
    *c = (struct commit){.at = at, .group = (int8_t)group, .before = p->last_commit};
    p->last_commit = w->commit_count++;
    return c;
}

int32_t commit_sent(struct run *run, int group, struct claim at, int64_t offset)
{
    struct commit *c = add_commit(run, group, at);

    c->offset = offset;
    c->sent_ns = run_now(run);
    c->done_ns = INT64_MAX;
    return run->groups->commit_count - 1;
}

static struct commit *before(struct run *run, const struct commit *c)
{
    return c->before >= 0 ? &run->groups->commits[c->before] : NULL;
}

static struct commit *last_commit(struct run *run, int group, struct claim at)
{
    int32_t last = part_of(run, group, at)->last_commit;

    return last >= 0 ? &run->groups->commits[last] : NULL;
}

/* It is certain that it has happened, and by now. */
static void has_happened(struct run *run, struct commit *c)
{
    struct group_told *t = told_of(run, c->group);

    c->fate = FATE_ACKED;
    c->done_ns = MIN(c->done_ns, run_now(run));
    t->committed_ns = MAX(t->committed_ns, c->sent_ns);
}

static void check_forward(struct run *run, const struct commit *c)
{
    const struct group_told *t = told_of(run, c->group);

    for (const struct commit *b = before(run, c); b; b = before(run, b))
        if (b->fate == FATE_ACKED && b->done_ns < c->sent_ns && b->offset > c->offset &&
            b->sent_ns > t->expirable_ns)
            violate(run, "%s, %s-%d: offset %lld was committed, and then %lld", t->id,
                    topic_name(run, c->at), c->at.partition, (long long)b->offset,
                    (long long)c->offset);
}

void commit_acked(struct run *run, int32_t number)
{
    struct commit *c = &run->groups->commits[number];

    if (c->group < run->groups->group_count - 1)
        check_forward(run, c);
    has_happened(run, c);
    run->counts.commits++;
}

void commit_refused(struct run *run, int32_t number)
{
    struct commit *c = &run->groups->commits[number];

    if (c->fate == FATE_ACKED)
        violate(run, "commit %d was refused, and it was seen", number);
    c->fate = FATE_REFUSED;
    run->counts.commits_refused++;
}

/* ---- reads ------------------------------------------------------------------------------ */

static void read_nothing(struct run *run, int group, struct claim at, int64_t sent_ns)
{
    const struct group_told *t = told_of(run, group);
    struct commit *expiry;
    bool is_known = true;

    for (const struct commit *c = last_commit(run, group, at); c; c = before(run, c)) {
        if (c->offset < 0 && c->sent_ns == t->expirable_ns)
            return; /* seen before */
        if (c->fate != FATE_ACKED || c->done_ns >= sent_ns || c->offset < 0)
            continue;
        is_known = false;
        if (c->sent_ns <= t->expirable_ns)
            continue;
        violate(run, "%s, %s-%d: there is no offset, and %lld was committed (commit %d)", t->id,
                topic_name(run, at), at.partition, (long long)c->offset,
                (int)(c - run->groups->commits));
        return;
    }
    if (is_known)
        return;
    run->counts.offsets_expired++;
    expiry = add_commit(run, group, at);
    expiry->offset = -1;
    expiry->sent_ns = t->expirable_ns;
    expiry->done_ns = run_now(run);
    expiry->fate = FATE_ACKED;
}

/* The commit that an offset came from; NULL after a violation. */
static struct commit *source_of(struct run *run, int group, struct claim at, int64_t offset,
                                struct str metadata)
{
    struct str prefix = STR_LIT(METADATA);
    struct group_world *w = run->groups;
    struct commit *c = NULL;
    int64_t number = -1;

    if (metadata.n > prefix.n && memcmp(metadata.p, prefix.p, (size_t)prefix.n) == 0 &&
        str_to_i64((struct str){.p = metadata.p + prefix.n, .n = metadata.n - prefix.n}, &number))
        number = -1;
    if (number >= 0 && number < w->commit_count)
        c = &w->commits[number];
    if (c && c->group == group && c->at.topic == at.topic && c->at.partition == at.partition &&
        c->offset == offset)
        return c;
    violate(run, "%s, %s-%d: offset %lld with \"%.*s\" was never committed",
            told_of(run, group)->id, topic_name(run, at), at.partition, (long long)offset,
            STR_ARG(metadata));
    return NULL;
}

void offset_read(struct run *run, int group, struct claim at, int64_t offset, struct str metadata,
                 int64_t sent_ns)
{
    const char *id = told_of(run, group)->id;
    struct commit *from;

    run->counts.offsets_read++;
    if (offset < 0) {
        read_nothing(run, group, at, sent_ns);
        return;
    }
    from = source_of(run, group, at, offset, metadata);
    if (!from)
        return;
    if (from->fate == FATE_REFUSED)
        violate(run, "%s, %s-%d: offset %lld is there, and commit %d was refused", id,
                topic_name(run, at), at.partition, (long long)offset,
                (int)(from - run->groups->commits));
    for (const struct commit *c = last_commit(run, group, at); c; c = before(run, c))
        if (c->fate == FATE_ACKED && c->sent_ns > from->done_ns && c->done_ns < sent_ns)
            violate(run, "%s, %s-%d: offset %lld is read (commit %d), and %lld was committed after",
                    id, topic_name(run, at), at.partition, (long long)offset,
                    (int)(from - run->groups->commits), (long long)c->offset);
    has_happened(run, from);
}

/* ---- generations ------------------------------------------------------------------------ */

static bool may_have_restarted(const struct group_told *t)
{
    return t->unheld_ns >= t->synced_ns && t->committed_ns <= t->expirable_ns;
}

static void restart(struct group_told *t)
{
    t->synced = t->joined = 0;
    memset(t->told, 0, sizeof(t->told));
}

/* False when it is older than something that was told before the request was sent. */
static bool is_current(const struct group_told *t, int32_t generation, int64_t sent_ns, int life)
{
    if (generation < t->synced && t->synced_ns < sent_ns)
        return false;
    return generation >= t->joined || life != t->joined_life || t->joined_ns >= sent_ns;
}

void generation_told(struct run *run, int group, int32_t generation, int64_t sent_ns, int life)
{
    struct group_told *t = told_of(run, group);

    run->counts.joins++;
    if (!is_current(t, generation, sent_ns, life)) {
        if (!may_have_restarted(t))
            violate(run, "%s: generation %d was joined, and %d was told before", t->id, generation,
                    MAX(t->synced, t->joined));
        restart(t);
    }
    if (generation > t->joined || life != t->joined_life) {
        t->joined = generation;
        t->joined_life = life;
        t->joined_ns = run_now(run);
    }
}

static void check_owner(struct run *run, struct group_told *t, struct told *told, struct claim at,
                        const char *owner)
{
    for (int i = 0; i < told->n; i++) {
        if (told->at[i].topic != at.topic || told->at[i].partition != at.partition)
            continue;
        if (strcmp(told->owner[i], owner) != 0)
            violate(run, "%s, generation %d: %s-%d was given to %s and to %s", t->id,
                    told->generation, topic_name(run, at), at.partition, told->owner[i], owner);
        return;
    }
    assert(told->n < CLAIMS_MAX);
    told->at[told->n] = at;
    snprintf(told->owner[told->n++], ID_BYTES, "%s", owner);
}

void assignment_told(struct run *run, int group, int32_t generation, const char *owner,
                     const struct claims *claims)
{
    struct group_told *t = told_of(run, group);
    struct told *told = &t->told[generation % GENERATIONS_KEPT];

    if (generation <= t->synced && may_have_restarted(t))
        restart(t);
    if (told->generation > generation)
        return;
    if (told->generation < generation)
        *told = (struct told){.generation = generation};
    for (int i = 0; i < claims->n; i++)
        check_owner(run, t, told, claims->v[i], owner);
    if (generation <= t->synced)
        return;
    t->synced = generation;
    t->synced_ns = run_now(run);
    run->counts.generations++;
}

void generation_accepted(struct run *run, int group, int32_t generation, int64_t sent_ns, int life,
                         const char *what)
{
    struct group_told *t = told_of(run, group);

    if (is_current(t, generation, sent_ns, life))
        return;
    if (may_have_restarted(t))
        restart(t);
    else
        violate(run, "%s: a %s of generation %d was accepted, and %d was told before", t->id, what,
                generation, MAX(t->synced, t->joined));
}

/* ---- processing ------------------------------------------------------------------------- */

void group_processed(struct run *run, int group, struct claim at, int64_t from, int64_t to)
{
    struct group_part *p = part_of(run, group, at);

    if (to > p->cap) {
        int64_t cap = MAX(2 * p->cap, to + 256);

        p->processed = xreallocarray(p->processed, (size_t)cap, 1);
        memset(p->processed + p->cap, 0, (size_t)(cap - p->cap));
        p->cap = cap;
    }
    memset(p->processed + from, 1, (size_t)(to - from));
    run->counts.records_processed += to - from;
}

static int64_t committed(struct run *run, int group, struct claim at)
{
    for (const struct commit *c = last_commit(run, group, at); c; c = before(run, c))
        if (c->fate == FATE_ACKED)
            return c->offset;
    return 0;
}

static bool part_is_through(struct run *run, int group, struct claim at, bool complains)
{
    const struct group_part *p = part_of(run, group, at);
    int64_t end = run->history.topics[at.topic].parts[at.partition].end;
    int64_t first = 0;

    while (first < end && first < p->cap && p->processed[first])
        first++;
    if (first == end && committed(run, group, at) >= end)
        return true;
    if (complains)
        violate(run, "%s, %s-%d ends at %lld: processed below %lld, committed %lld",
                told_of(run, group)->id, topic_name(run, at), at.partition, (long long)end,
                (long long)first, (long long)committed(run, group, at));
    return false;
}

bool group_is_through(struct run *run, int group, bool complains)
{
    const struct history *h = &run->history;
    bool is_through = true;

    for (int t = 0; t < h->topic_count; t++)
        for (int i = 0; h->topics[t].state == TOPIC_THERE && i < h->topics[t].partitions; i++) {
            struct claim at = {.topic = (int16_t)t, .partition = (int16_t)i};

            is_through = part_is_through(run, group, at, complains) && is_through;
        }
    return is_through;
}
