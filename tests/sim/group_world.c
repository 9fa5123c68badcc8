/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fleet, all groups of a run: who is in them, what the run's plan says about them, and whether
 * they are where they have to be.
 *
 * While nothing is wrong with the world and nobody comes, goes or pauses, a group has some seconds
 * to agree: then every member reads in the same generation, and together they read everything. The
 * longest way there is a session that ends, members that are waited for and a generation that some
 * do not sync, each once.
 *
 * The broker's wall clock jumps now and then, beyond the time that offsets are kept. Offsets of a
 * group with members have to outlive that.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "group.h"

#define AGREE_NS (8 * SECOND)
#define JUMP_ONCE_IN 400 /* ticks */

static bool has_groups(const struct run *run)
{
    return run->groups != NULL;
}

/* ---- the plan ----------------------------------------------------------------------------- */

void fleet_choose_plan(struct run *run)
{
    static const int32_t delays[] = {0, 30, 200};
    static const int32_t segments[] = {8000, 16000, 100000};
    static const int32_t buffers[] = {200, 1000, 65536};
    struct plan *p = &run->plan;

    p->groups = 1 + (int)run_choose(run, GROUPS_MAX - 1);
    p->members = 1 + (int)run_choose(run, MEMBERS_MAX);
    p->producers = 1 + (int)run_choose(run, 2);
    p->consumers = 0;
    p->has_page_cache_topics = false;
    p->has_small_disk = false;
    p->has_clock_jumps = run_once_in(run, 2);
    p->has_slow_syncs = run_once_in(run, 2);
    p->rebalance_delay_ms = delays[run_choose(run, 3)];
    p->offsets_segment_bytes = segments[run_choose(run, 3)];
    p->offsets_load_bytes = buffers[run_choose(run, 3)];
    p->offsets_partitions = 1 + (int)run_choose(run, 3);
}

/* ---- looking after them ------------------------------------------------------------------- */

static bool is_held(const struct group_world *w, int group, int64_t now)
{
    for (int i = 0; i < w->member_count; i++)
        if (member_group(w->members[i]) == group && member_held_until(w->members[i]) > now)
            return true;
    return false;
}

static void look_after(struct run *run, int group)
{
    struct group_told *t = told_of(run, group);
    int64_t now = run_now(run);

    if (is_held(run->groups, group, now))
        return;
    t->unheld_ns = now;
    t->expirable_ns = MAX(t->expirable_ns, run->groups->jumped_ns);
}

static void maybe_jump(struct run *run)
{
    if (!run->plan.has_clock_jumps || run->no_producing || !run_once_in(run, JUMP_ONCE_IN))
        return;
    tell(run, "the broker's clock jumps");
    sim_host_clock_jump(run->broker_host, 2 * OFFSETS_RETENTION_MINUTES * 60000LL);
    run->groups->jumped_ns = run_now(run);
    run->counts.clock_jumps++;
}

/* ---- agreement ---------------------------------------------------------------------------- */

static bool reads_all(struct run *run, int group)
{
    const struct history *h = &run->history;
    struct group_world *w = run->groups;
    struct claims claims = {.n = 0};

    for (int i = 0; i < w->member_count; i++)
        if (member_group(w->members[i]) == group)
            member_add_claims(w->members[i], &claims);
    for (int t = 0; t < h->topic_count; t++)
        for (int i = 0; h->topics[t].state == TOPIC_THERE && i < h->topics[t].partitions; i++)
            if (!claims_have(&claims, (struct claim){.topic = (int16_t)t, .partition = (int16_t)i}))
                return false;
    return true;
}

/* A member that is not where it should be; NULL. */
static const struct member *find_astray(const struct run *run, int group)
{
    struct group_world *w = run->groups;

    for (int i = 0; i < w->member_count; i++)
        if (member_group(w->members[i]) == group && !member_is_away(w->members[i]) &&
            !member_is_reading(w->members[i], w->groups[group].synced))
            return w->members[i];
    return NULL;
}

static int count_members(const struct run *run, int group)
{
    struct group_world *w = run->groups;
    int n = 0;

    for (int i = 0; i < w->member_count; i++)
        n += member_group(w->members[i]) == group && !member_is_away(w->members[i]);
    return n;
}

static void complain(struct run *run, int group)
{
    const struct member *m = find_astray(run, group);
    char text[200] = "not all partitions are read";

    if (m)
        member_describe(m, text, sizeof(text));
    violate(run, "%s, generation %d, is not agreed, and nothing is wrong: %s",
            told_of(run, group)->id, told_of(run, group)->synced, text);
}

static bool is_agreed(struct run *run, int group)
{
    return count_members(run, group) == 0 || (!find_astray(run, group) && reads_all(run, group));
}

static void check_agreement(struct run *run, int group)
{
    const struct group_told *t = told_of(run, group);

    if (run->calm_since_ns == INT64_MAX || !run->is_ready || !node_is_alive(run) ||
        run_now(run) < MAX(run->calm_since_ns, t->disturbed_ns) + AGREE_NS)
        return;
    if (!is_agreed(run, group))
        complain(run, group);
    run->counts.agreed++;
}

/* A topic that came is a disturbance of everybody. */
static void look_at_topics(struct run *run)
{
    struct group_world *w = run->groups;
    uint64_t topics = topics_there(run);

    for (int g = 0; g < w->group_count && topics != w->topics; g++)
        w->groups[g].disturbed_ns = run_now(run);
    w->topics = topics;
}

/* ---- life --------------------------------------------------------------------------------- */

void fleet_tick(struct run *run)
{
    struct group_world *w = run->groups;

    if (!has_groups(run))
        return;
    maybe_jump(run);
    look_at_topics(run);
    auditor_tick(w->auditor);
    for (int i = 0; i < w->member_count && !run_is_over(run); i++)
        member_tick(w->members[i]);
    for (int g = 0; g < w->group_count && !run_is_over(run); g++) {
        look_after(run, g);
        if (g < w->group_count - 1)
            check_agreement(run, g);
    }
}

static void init_group(struct run *run, int group)
{
    struct group_told *t = told_of(run, group);

    snprintf(t->id, sizeof(t->id), "group-%d", group);
    t->is_cooperative = run_once_in(run, 2);
    t->has_choice = run_once_in(run, 2);
    t->expirable_ns = t->committed_ns = t->disturbed_ns = -1;
    for (int k = 0; k < TOPICS_MAX; k++)
        for (int i = 0; i < TOPIC_PARTITIONS_MAX; i++)
            t->parts[k][i].last_commit = -1;
}

void fleet_start(struct run *run)
{
    struct group_world *w;

    if (run->plan.groups == 0)
        return;
    w = xcalloc(1, sizeof(*w));
    run->groups = w;
    w->group_count = run->plan.groups + 1;
    w->jumped_ns = -1;
    for (int g = 0; g < w->group_count; g++)
        init_group(run, g);
    w->auditor = auditor_new(run);
    w->member_count = run->plan.members;
    for (int i = 0; i < w->member_count; i++)
        w->members[i] = member_new(run, i % run->plan.groups, i);
}

void fleet_new_life(struct run *run)
{
    struct group_world *w = run->groups;

    for (int32_t i = 0; w && i < w->commit_count; i++)
        w->commits[i].done_ns = MIN(w->commits[i].done_ns, run_now(run));
}

/* A group without any member reads nothing. */
static bool is_settled(struct run *run, int group)
{
    if (count_members(run, group) == 0)
        return group >= run->plan.members;
    return is_agreed(run, group) && group_is_through(run, group, false);
}

bool fleet_is_settled(struct run *run)
{
    for (int g = 0; g < run->plan.groups && has_groups(run); g++)
        if (!is_settled(run, g))
            return false;
    return true;
}

void fleet_complain(struct run *run)
{
    for (int g = 0; g < run->plan.groups && has_groups(run); g++) {
        if (is_settled(run, g))
            continue;
        group_is_through(run, g, true);
        complain(run, g);
    }
}

static void free_parts(struct group_told *t)
{
    for (int k = 0; k < TOPICS_MAX; k++)
        for (int i = 0; i < TOPIC_PARTITIONS_MAX; i++)
            free(t->parts[k][i].processed);
}

void fleet_free(struct run *run)
{
    struct group_world *w = run->groups;

    if (!w)
        return;
    for (int i = 0; i < w->member_count; i++)
        member_free(w->members[i]);
    auditor_free(w->auditor);
    for (int g = 0; g < w->group_count; g++)
        free_parts(&w->groups[g]);
    free(w->commits);
    free(w);
    run->groups = NULL;
}
