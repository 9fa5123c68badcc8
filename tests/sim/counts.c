/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs have exercised: sums, words, and the least without which they count for nothing. A
 * world in which nothing happens has no violations either.
 */
#include "counts.h"

#include <stdio.h>

/* Every count is an int64_t. */
void counts_add(struct counts *sum, const struct counts *c)
{
    int64_t *to = (int64_t *)sum;
    const int64_t *from = (const int64_t *)c;

    for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
        to[i] += from[i];
}

static void print_group_counts(const struct counts *c)
{
    printf("  groups: %lld joins, %lld generations, %lld heartbeats; %lld members vanished, %lld "
           "left, %lld paused; %lld answers to ghosts; %lld times agreed\n",
           (long long)c->joins, (long long)c->generations, (long long)c->beats,
           (long long)c->vanished, (long long)c->leaves, (long long)c->pauses, (long long)c->ghosts,
           (long long)c->agreed);
    printf("  offsets: %lld committed, %lld refused, %lld read, %lld expired; %lld records "
           "processed; %lld told to wait for a load, %lld clock jumps\n",
           (long long)c->commits, (long long)c->commits_refused, (long long)c->offsets_read,
           (long long)c->offsets_expired, (long long)c->records_processed,
           (long long)c->told_to_wait, (long long)c->clock_jumps);
}

void counts_print(const struct counts *c, uint64_t seeds)
{
    printf("%llu seeds, %lld events: %lld requests, %lld answers, %lld connections (%lld lost)\n",
           (unsigned long long)seeds, (long long)c->events, (long long)c->requests,
           (long long)c->answers, (long long)c->connections, (long long)c->connections_lost);
    printf("  batches: %lld acknowledged (%lld when sent again), %lld refused, %lld unknown, "
           "%lld read with %lld records\n",
           (long long)c->acks, (long long)c->duplicates, (long long)c->refused,
           (long long)c->unknown, (long long)c->batches_read, (long long)c->records_read);
    printf(
        "  topics: %lld made, %lld deleted, %lld changed, %lld grown; records deleted %lld times, "
        "%lld offsets retained; %lld fetches woken, %lld times asked for\n",
        (long long)c->topics_made, (long long)c->topics_deleted, (long long)c->configs_changed,
        (long long)c->partitions_added, (long long)c->records_deleted, (long long)c->retained,
        (long long)c->woken, (long long)c->times_asked);
    printf("  broker: %lld starts, %lld clean stops, %lld crashes, %lld power cuts, %lld failed "
           "starts; %lld bytes cut, %lld writes and names lost, %lld disk calls failed\n",
           (long long)c->starts, (long long)c->clean_stops, (long long)c->crashes,
           (long long)c->power_cuts, (long long)c->failed_starts, (long long)c->cut_bytes,
           (long long)c->lost, (long long)c->disk_errors);
    if (c->joins > 0)
        print_group_counts(c);
    if (c->rules > 0)
        printf("  clusters: %lld controllers (%lld resigned), %lld leaders, %lld sessions ended "
               "(%lld with another behind them), %lld isolated; %lld logs cut by their leaders, "
               "%lld compared; %lld disks lost, %lld times without space, %lld undecided; %lld "
               "readers sent to a follower, "
               "%lld answers with records there\n",
               (long long)c->rules, (long long)c->resigned, (long long)c->led,
               (long long)c->expired, (long long)c->renewed, (long long)c->isolations,
               (long long)c->truncations, (long long)c->logs_compared, (long long)c->disks_lost,
               (long long)c->without_space, (long long)c->undecided, (long long)c->sent_near,
               (long long)c->read_near);
}

/* Per seed, on average; a world in which nothing happens proves nothing. */
static bool has_shown_enough(const struct counts *c, int64_t seeds)
{
    return c->events > 10000 * seeds && c->acks > 200 * seeds && c->records_read > 2000 * seeds &&
           c->duplicates > seeds && c->refused > 3 * seeds && c->starts > 4 * seeds &&
           c->crashes > seeds && c->power_cuts > seeds && c->clean_stops > 2 * seeds &&
           c->topics_made > 3 * seeds && c->topics_deleted > seeds && c->retained > 50 * seeds &&
           c->partitions_added > seeds / 4 && c->records_deleted > seeds / 4 &&
           c->times_asked > 5 * seeds && c->cut_bytes > 0 && c->lost > 10 * seeds &&
           c->disk_errors > seeds / 4 && c->woken > 50 * seeds;
}

static bool groups_have_shown_enough(const struct counts *c, int64_t seeds)
{
    return c->events > 10000 * seeds && c->joins > 20 * seeds && c->generations > 5 * seeds &&
           c->commits > 100 * seeds && c->offsets_read > 1000 * seeds &&
           c->records_processed > 400 * seeds && c->vanished > seeds && c->leaves > seeds &&
           c->pauses > seeds && c->ghosts > seeds && c->commits_refused > seeds &&
           c->starts > 3 * seeds && c->crashes > seeds && c->power_cuts > seeds / 2 &&
           c->offsets_expired > seeds && c->told_to_wait > 0 && c->agreed > 10 * seeds;
}

static bool clusters_have_shown_enough(const struct counts *c, int64_t seeds)
{
    return c->events > 10000 * seeds && c->acks > 100 * seeds && c->records_read > 2000 * seeds &&
           c->duplicates > seeds && c->refused > seeds && c->starts > 5 * seeds &&
           c->crashes > seeds && c->power_cuts > seeds && c->clean_stops > 2 * seeds &&
           c->topics_made > seeds && c->topics_deleted > seeds / 20 && c->rules > 2 * seeds &&
           c->led > seeds && c->expired > seeds && c->isolations > seeds / 4 &&
           c->resigned > seeds / 40 && c->renewed > seeds / 4 && c->truncations > seeds / 8 &&
           c->logs_compared > 5 * seeds && c->sent_near > seeds && c->read_near > 10 * seeds &&
           c->disk_errors > seeds / 4 && c->without_space > seeds / 20;
}

#define SEEDS_MIN 100 /* fewer are not enough to judge by */

static const struct kind {
    int share;
    bool (*has_shown_enough)(const struct counts *c, int64_t seeds);
} kinds[RUN_KINDS] = {
    [RUN_BROKER] = {.share = 4, .has_shown_enough = has_shown_enough},
    [RUN_GROUPS] = {.share = 1, .has_shown_enough = groups_have_shown_enough},
    [RUN_CLUSTER] = {.share = 4, .has_shown_enough = clusters_have_shown_enough},
};

int counts_share(enum run_kind kind)
{
    return kinds[kind].share;
}

enum run_kind counts_kind_of(uint64_t n)
{
    int at = (int)(n % COUNTS_SHARES);
    int kind = 0;

    while (at >= kinds[kind].share)
        at -= kinds[kind++].share;
    return (enum run_kind)kind;
}

bool counts_are_enough(const struct counts *c, uint64_t first, uint64_t count)
{
    const struct kind *kind = &kinds[run_kind_of(first)];

    return count < SEEDS_MIN * (uint64_t)kind->share / (uint64_t)kinds[RUN_BROKER].share ||
           kind->has_shown_enough(c, (int64_t)count);
}
