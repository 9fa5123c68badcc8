/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole broker in the simulated world.
 *
 *   sim/broker                 fixed seeds, the short part (SEEDS=n: so many)
 *   SEED=n sim/broker          one seed, with its trace if it fails
 *
 * Each seed runs in a child. A violation prints the seed, the last events, and what is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "run.h"

#define SEEDS_SHORT 40
#define TRACE_LINES 40

/* Only where the address sanitizer is linked in. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

struct outcome {
    struct counts counts;
    char violation[300];
};

struct order_of_run {
    uint64_t seed;
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

static bool try_seed(uint64_t seed, bool prints_trace, struct outcome *out)
{
    struct order_of_run o = {.seed = seed, .prints_trace = prints_trace};
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
}

static int fail(uint64_t seed, const struct outcome *found)
{
    struct outcome again;

    printf("seed %llu: %s\n", (unsigned long long)seed, found->violation);
    try_seed(seed, true, &again);
    printf("seed %llu: %s\n", (unsigned long long)seed, again.violation);
    return 1;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

int main(void)
{
    uint64_t first = number_of("SEED", 1);
    uint64_t count = getenv("SEED") ? 1 : number_of("SEEDS", SEEDS_SHORT);
    struct counts sum = {0};
    struct outcome out;

    for (uint64_t seed = first; seed < first + count; seed++) {
        if (!try_seed(seed, false, &out))
            return fail(seed, &out);
        add(&sum, &out.counts);
    }
    print_counts(&sum, count);
    printf("%llu passed, 0 failed\n", (unsigned long long)count);
    return 0;
}
