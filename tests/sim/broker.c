/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole broker in the simulated world.
 *
 *   sim/broker             fixed seeds, the short part (SEEDS=n: so many)
 *   SEED=n sim/broker      one seed, or with SEEDS from there on; above a million: with groups
 *   HUNT=1                 goes on behind a violation, and tells of each in one line
 *
 * Each seed runs in a child. A violation prints the story of the seed, its last events, and in
 * words what is wrong.
 *
 * In the build with planted mistakes it looks for each of them instead, and prints a table of how
 * much it took to find it; FAULT=n SEED=m shows one of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "planted.h"
#include "run.h"

#define SEEDS_SHORT 100
#define SEEDS_PLANTED 400
#define GROUP_SHARE 4 /* one seed with groups for so many without */
#define TRACE_LINES 40

/* Only where the address sanitizer is linked in. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

struct outcome {
    struct counts counts;
    char violation[300];
};

struct order_of_run {
    uint64_t seed;
    int fault; /* planted */
    bool prints_trace;
};

static void print_trace(struct run *run)
{
    const char *text = sim_trace(run->world);
    const char *at = text + strlen(text);
    int lines = 0;

    while (at > text && lines <= TRACE_LINES)
        if (*--at == '\n')
            lines++;
    printf("%s\n", at);
}

static int run_one(void *arg, void *result)
{
    const struct order_of_run *o = arg;
    struct sim_options options = {.keep_text = o->prints_trace,
                                  .trace_level = o->prints_trace ? TRACE_INFO : TRACE_ERROR};
    struct run *run = xcalloc(1, sizeof(*run));
    struct outcome *out = result;

    planted_choose(o->fault);
    run->seed = o->seed;
    run->tells = o->prints_trace;
    run_seed(run, &options);
    if (run_is_over(run) && o->prints_trace)
        print_trace(run);
    out->counts = run->counts;
    memcpy(out->violation, run->violation, sizeof(out->violation));
    if (!run_is_over(run) && !run->plan.has_crashes) {
        free(run);
        if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
            snprintf(out->violation, sizeof(out->violation), "memory is leaked");
    }
    return 0;
}

static bool try_seed(const struct order_of_run *order, struct outcome *out)
{
    struct order_of_run o = *order;
    int status;

    memset(out, 0, sizeof(*out));
    status = sim_in_child(run_one, &o, out, sizeof(*out));
    if (status != 0 && out->violation[0] == '\0')
        snprintf(out->violation, sizeof(out->violation), "the run ended with status %d", status);
    return out->violation[0] == '\0';
}

/* Every count is an int64_t. */
static void add(struct counts *sum, const struct counts *c)
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

static void print_counts(const struct counts *c, uint64_t seeds)
{
    printf("%llu seeds, %lld events: %lld requests, %lld answers, %lld connections (%lld lost)\n",
           (unsigned long long)seeds, (long long)c->events, (long long)c->requests,
           (long long)c->answers, (long long)c->connections, (long long)c->connections_lost);
    printf("  batches: %lld acknowledged (%lld when sent again), %lld refused, %lld unknown, "
           "%lld read with %lld records\n",
           (long long)c->acks, (long long)c->duplicates, (long long)c->refused,
           (long long)c->unknown, (long long)c->batches_read, (long long)c->records_read);
    printf("  topics: %lld made, %lld deleted, %lld changed; %lld offsets retained, %lld woken\n",
           (long long)c->topics_made, (long long)c->topics_deleted, (long long)c->configs_changed,
           (long long)c->retained, (long long)c->woken);
    printf("  broker: %lld starts, %lld clean stops, %lld crashes, %lld power cuts, %lld failed "
           "starts; %lld bytes cut, %lld writes and names lost\n",
           (long long)c->starts, (long long)c->clean_stops, (long long)c->crashes,
           (long long)c->power_cuts, (long long)c->failed_starts, (long long)c->cut_bytes,
           (long long)c->lost);
    if (c->joins > 0)
        print_group_counts(c);
}

/* Per seed, on average; a world in which nothing happens proves nothing. */
static bool has_shown_enough(const struct counts *c, int64_t seeds)
{
    return c->events > 10000 * seeds && c->acks > 200 * seeds && c->records_read > 2000 * seeds &&
           c->duplicates > seeds && c->refused > 3 * seeds && c->starts > 4 * seeds &&
           c->crashes > seeds && c->power_cuts > seeds && c->clean_stops > 2 * seeds &&
           c->topics_made > 3 * seeds && c->topics_deleted > seeds && c->retained > 50 * seeds &&
           c->cut_bytes > 0 && c->lost > 10 * seeds && c->woken > 50 * seeds;
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

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- seeds ------------------------------------------------------------------------------ */

static int fail(const struct order_of_run *order, const struct outcome *found)
{
    struct order_of_run o = *order;
    struct outcome again;

    printf("seed %llu: %s\n", (unsigned long long)o.seed, found->violation);
    o.prints_trace = true;
    try_seed(&o, &again);
    printf("seed %llu: %s\n", (unsigned long long)o.seed, again.violation);
    return 1;
}

static bool is_enough(const struct counts *c, uint64_t first, uint64_t count)
{
    if (first > GROUP_SEEDS)
        return count < SEEDS_SHORT / GROUP_SHARE || groups_have_shown_enough(c, (int64_t)count);
    return count < SEEDS_SHORT || has_shown_enough(c, (int64_t)count);
}

/* Returns how many have failed. */
static int run_seeds(uint64_t first, uint64_t count)
{
    struct order_of_run o = {.fault = (int)number_of("FAULT", 0)};
    struct counts sum = {0};
    struct outcome out;
    int failed = 0;

    for (o.seed = first; o.seed < first + count; o.seed++) {
        bool ok = try_seed(&o, &out);

        add(&sum, &out.counts);
        if (!ok && !getenv("HUNT"))
            return fail(&o, &out);
        if (!ok)
            printf("seed %llu: %s\n", (unsigned long long)o.seed, out.violation);
        failed += !ok;
    }
    print_counts(&sum, count);
    if (failed > 0 || is_enough(&sum, first, count))
        return failed;
    printf("the seeds have not exercised what they should: this shows nothing\n");
    return 1;
}

/* Those that were asked for, or both kinds of run. */
static int run_all(void)
{
    uint64_t count = number_of("SEEDS", getenv("SEED") ? 1 : SEEDS_SHORT);
    uint64_t with_groups = getenv("SEED") ? 0 : MAX(count / GROUP_SHARE, 1);
    int failed = run_seeds(number_of("SEED", 1), count);

    if (with_groups > 0 && (failed == 0 || getenv("HUNT")))
        failed += run_seeds(GROUP_SEEDS + 1, with_groups);
    printf("%llu passed, %d failed\n", (unsigned long long)(count + with_groups) - (uint64_t)failed,
           failed);
    return failed > 0;
}

/* ---- planted mistakes ------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool find_fault(int fault)
{
    struct order_of_run o = {.fault = fault};
    double before = seconds();
    int64_t events = 0;
    struct outcome out;

    for (int i = 1; i <= SEEDS_PLANTED; i++) {
        bool ok;

        o.seed = (uint64_t)i + (planted_is_of_groups(fault) ? GROUP_SEEDS : 0);
        ok = try_seed(&o, &out);
        events += out.counts.events;
        if (ok)
            continue;
        printf("%-66s %7llu %9lld %7.1f  %s\n", planted_text(fault), (unsigned long long)o.seed,
               (long long)events, seconds() - before, out.violation);
        return true;
    }
    printf("%-66s     not found in %d seeds, %lld events\n", planted_text(fault), SEEDS_PLANTED,
           (long long)events);
    return false;
}

static int find_faults(void)
{
    int found = 0;

    printf("%-66s %7s %9s %7s\n", "planted mistake", "seed", "events", "seconds");
    for (int fault = 1; fault <= planted_count(); fault++)
        found += find_fault(fault);
    printf("%d passed, %d failed\n", found, planted_count() - found);
    return found == planted_count() ? 0 : 1;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (planted_count() > 0 && !getenv("SEED") && !getenv("SEEDS"))
        return find_faults();
    return run_all();
}
