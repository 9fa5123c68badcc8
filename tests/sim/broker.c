/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole broker, or three of them, in the simulated world.
 *
 *   sim/broker             fixed seeds, the short part (SEEDS=n: so many)
 *   SEED=n sim/broker      one seed, or with SEEDS from there on; above a million: with groups,
 *                          above two: a cluster
 *   SEED=n SHRINK=1        the least that still goes wrong; TRIES=n: in so many runs
 *   CHOICES=file           what shrinking has left, once more
 *   HUNT=1                 goes on behind a violation, and tells of each in one line
 *   sim/broker prefix id   hunts for new seeds (hunt.h), MINUTES=n
 *
 * Each seed runs in a child. A violation is shrunk and its story told, with what is wrong in words;
 * a seed that was asked for by itself tells all of its story, and its last events.
 *
 * In the build with planted mistakes it looks for each of them instead, and prints a table of how
 * much it took to find it; FAULT=n SEED=m shows one of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"
#include "counts.h"
#include "hunt.h"
#include "planted.h"
#include "shrink.h"

#define SEEDS_SHORT 100
#define SEEDS_PLANTED 1000
#define SHRINK_TRIES 1000

/* They have found something once, and are above the seeds of `make sim`. What they meet has changed
 * since, but not what they are: how much there is of everything, and which faults. */
static const uint64_t once_failed[] = {818,     961,     7758,    10440,   11891,   17100,
                                       1000799, 1010118, 1010589, 1011685, 2001177, 2012495,
                                       2013364, 2015677, 2018990, 2021889, 2060601, 2169089};

static const char *program;

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- seeds ------------------------------------------------------------------------------ */

/* By seed and program: two of them beside each other do not overwrite what the other has found. */
static void tell_short(const struct trial *o)
{
    char path[512];

    snprintf(path, sizeof(path), "%s-%llu.choices", program, (unsigned long long)o->seed);
    if (!shrink_and_tell(o, (unsigned)number_of("TRIES", SHRINK_TRIES), path))
        printf("the run left no choices to shrink\n");
}

static void tell_all(const struct trial *trial)
{
    struct trial o = *trial;
    struct outcome again;

    o.tells = o.traces = true;
    attempt(&o, &again);
    printf("seed %llu: %s\n", (unsigned long long)o.seed, again.violation);
}

static int fail(const struct trial *o, const struct outcome *found)
{
    printf("seed %llu: %s\n", (unsigned long long)o->seed, found->violation);
    if (getenv("SEED") && !getenv("SHRINK")) {
        tell_all(o);
        printf("the same, shrunk: make sim SEED=%llu SHRINK=1\n", (unsigned long long)o->seed);
    } else {
        tell_short(o);
        printf("all of it: make sim SEED=%llu\n", (unsigned long long)o->seed);
    }
    return 1;
}

/* A list of choices that shrinking has left. */
static int replay(const char *path)
{
    struct sim_list list = {.values = NULL};
    struct trial o = {.tells = true, .list = &list};
    struct outcome out;
    bool ok = list_read(&list, &o, path);

    if (!ok) {
        printf("%s is no list of choices\n", path);
    } else {
        ok = attempt(&o, &out);
        printf("seed %llu by %s: %s\n", (unsigned long long)o.seed, path,
               ok ? "nothing is wrong" : out.violation);
    }
    list_fini(&list);
    return ok ? 0 : 1;
}

/* Returns how many have failed. */
static int run_seeds(uint64_t first, uint64_t count)
{
    struct trial o = {.fault = (int)number_of("FAULT", 0)};
    struct counts sum = {0};
    struct outcome out;
    int failed = 0;

    for (o.seed = first; o.seed < first + count; o.seed++) {
        bool ok = attempt(&o, &out);

        counts_add(&sum, &out.counts);
        if (!ok && !getenv("HUNT"))
            return fail(&o, &out);
        if (!ok)
            printf("seed %llu: %s\n", (unsigned long long)o.seed, out.violation);
        failed += !ok;
    }
    counts_print(&sum, count);
    if (failed > 0 || counts_are_enough(&sum, first, count))
        return failed;
    printf("the seeds have not exercised what they should: this shows nothing\n");
    return 1;
}

static int run_once_failed(void)
{
    struct trial o = {.fault = 0};
    struct outcome out;

    for (size_t i = 0; i < ARRAY_LEN(once_failed); i++) {
        o.seed = once_failed[i];
        if (!attempt(&o, &out))
            return fail(&o, &out);
    }
    return 0;
}

/* Those that were asked for, or some of every kind and what has failed before. */
static int run_all(void)
{
    uint64_t count = number_of("SEEDS", getenv("SEED") ? 1 : SEEDS_SHORT);
    uint64_t total = 0;
    int failed = 0;

    for (int kind = 0; kind < RUN_KINDS && (failed == 0 || getenv("HUNT")); kind++) {
        uint64_t first = number_of("SEED", (uint64_t)kind * RUN_KIND_SEEDS + 1);
        uint64_t n = count * (uint64_t)counts_share((enum run_kind)kind);

        n = getenv("SEED") ? count : MAX(n / (uint64_t)counts_share(RUN_BROKER), 1);
        failed += run_seeds(first, n);
        total += n;
        if (getenv("SEED"))
            break;
    }
    if (failed == 0 && !getenv("SEED")) {
        failed = run_once_failed();
        total += ARRAY_LEN(once_failed);
    }
    printf("%llu passed, %d failed\n", (unsigned long long)total - (uint64_t)failed, failed);
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
    struct trial o = {.fault = fault};
    double before = seconds();
    int64_t events = 0;
    struct outcome out;

    for (int i = 1; i <= SEEDS_PLANTED; i++) {
        bool ok;

        o.seed = (uint64_t)i + (uint64_t)planted_kind(fault) * RUN_KIND_SEEDS;
        ok = attempt(&o, &out);
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
    int sought = 0;

    printf("%-66s %7s %9s %7s\n", "planted mistake", "seed", "events", "seconds");
    for (int fault = 1; fault <= planted_count(); fault++) {
        if (!planted_is_sought(fault))
            continue;
        sought++;
        found += find_fault(fault);
    }
    printf("%d passed, %d failed\n", found, sought - found);
    return found == sought ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *choices = getenv("CHOICES");

    program = argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3)
        return hunt(argv[1], argv[2], (unsigned)number_of("MINUTES", 0),
                    (unsigned)number_of("TRIES", SHRINK_TRIES));
    if (choices && *choices)
        return replay(choices);
    if (planted_count() > 0 && !getenv("SEED") && !getenv("SEEDS"))
        return find_faults();
    return run_all();
}
