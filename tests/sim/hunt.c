/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hunt for new seeds. What counts is how much was tried: events are summed up for each commit
 * in a small file of text, which is replaced as a whole every few seeds, so that a hunt may be
 * stopped at any moment and loses a few seeds at most.
 *
 * The seeds are of all kinds, in the shares of counts.h, and none of those that `make sim` runs.
 * Failing ones are written down and shrunk at once, and the hunt goes on.
 */
#include "hunt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "counts.h"
#include "shrink.h"

#define FIRST_SEED 10001
#define COMMITS_MAX 1000
#define SAVE_SEEDS 20
#define LINE_SECONDS 10

struct commit_sum {
    char commit[48];
    uint64_t seeds;
    int64_t events;
    double cpu_seconds;
    int64_t violations;
};

struct hunt {
    const char *prefix;
    unsigned tries;
    uint64_t next_seed[RUN_KINDS];
    struct commit_sum commits[COMMITS_MAX];
    int commit_count;
    struct commit_sum *now;
    struct counts counts; /* of this hunt */
    uint64_t seeds;
};

/* ---- the state -------------------------------------------------------------------------- */

static void path_of(const struct hunt *h, const char *suffix, char path[512])
{
    snprintf(path, 512, "%s%s", h->prefix, suffix);
}

static void read_state(struct hunt *h)
{
    char path[512];
    FILE *f;

    for (int kind = 0; kind < RUN_KINDS; kind++)
        h->next_seed[kind] = (uint64_t)kind * RUN_KIND_SEEDS + FIRST_SEED;
    path_of(h, ".state", path);
    f = fopen(path, "r");
    if (!f)
        return;
    if (fscanf(f, "next %" SCNu64 " %" SCNu64 " %" SCNu64 "\n", &h->next_seed[0], &h->next_seed[1],
               &h->next_seed[2]) == RUN_KINDS)
        while (h->commit_count < COMMITS_MAX - 1) {
            struct commit_sum *c = &h->commits[h->commit_count];

            if (fscanf(f,
                       "commit %47s seeds %" SCNu64 " events %" SCNd64
                       " cpu_seconds %lf violations %" SCNd64 "\n",
                       c->commit, &c->seeds, &c->events, &c->cpu_seconds, &c->violations) != 5)
                break;
            h->commit_count++;
        }
    fclose(f);
}

static void find_commit(struct hunt *h, const char *commit)
{
    int i = 0;

    while (i < h->commit_count && strcmp(h->commits[i].commit, commit) != 0)
        i++;
    h->now = &h->commits[i];
    if (i < h->commit_count)
        return;
    *h->now = (struct commit_sum){.seeds = 0};
    snprintf(h->now->commit, sizeof(h->now->commit), "%s", commit);
    h->commit_count++;
}

static void write_state(const struct hunt *h)
{
    char path[512];
    char new_path[512];
    FILE *f;

    path_of(h, ".state", path);
    path_of(h, ".state.new", new_path);
    f = fopen(new_path, "w");
    if (!f)
        return;
    fprintf(f, "next %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", h->next_seed[0], h->next_seed[1],
            h->next_seed[2]);
    for (int i = 0; i < h->commit_count; i++) {
        const struct commit_sum *c = &h->commits[i];

        fprintf(f,
                "commit %s seeds %" PRIu64 " events %" PRId64
                " cpu_seconds %.1f violations %" PRId64 "\n",
                c->commit, c->seeds, c->events, c->cpu_seconds, c->violations);
    }
    if (fclose(f) != 0 || rename(new_path, path) != 0)
        printf("%s cannot be written\n", path);
}

/* ---- the hunt --------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void found(struct hunt *h, const struct trial *o, const struct outcome *out)
{
    char path[512];
    char suffix[64];
    FILE *f;

    h->now->violations++;
    printf("seed %" PRIu64 ": %s\n", o->seed, out->violation);
    path_of(h, ".failures", path);
    f = fopen(path, "a");
    if (f) {
        fprintf(f, "seed %" PRIu64 " commit %s: %s\n", o->seed, h->now->commit, out->violation);
        fclose(f);
    }
    snprintf(suffix, sizeof(suffix), "-%" PRIu64 ".choices", o->seed);
    path_of(h, suffix, path);
    shrink_and_tell(o, h->tries, path);
}

static void try_next(struct hunt *h)
{
    struct trial o = {.seed = h->next_seed[counts_kind_of(h->seeds)]++};
    double before = cpu_seconds();
    struct outcome out;
    bool ok = attempt(&o, &out);

    counts_add(&h->counts, &out.counts);
    h->seeds++;
    h->now->seeds++;
    h->now->events += out.counts.events;
    h->now->cpu_seconds += cpu_seconds() - before;
    if (!ok)
        found(h, &o, &out);
}

static void print_line(const struct hunt *h)
{
    const struct commit_sum *now = h->now;
    const struct counts *c = &h->counts;
    int64_t events = 0;

    for (int i = 0; i < h->commit_count; i++)
        events += h->commits[i].events;
    printf("%" PRIu64 " seeds, %.3g events, %.3g a core-minute, %" PRId64 " violations; %" PRId64
           " acks, %" PRId64 " crashes, %" PRId64 " power cuts, %" PRId64
           " commits; %.3g events of all commits\n",
           now->seeds, (double)now->events,
           now->cpu_seconds > 0 ? 60 * (double)now->events / now->cpu_seconds : 0, now->violations,
           c->acks, c->crashes, c->power_cuts, c->commits, (double)events);
}

int hunt(const char *prefix, const char *commit, unsigned minutes, unsigned tries)
{
    struct hunt *h = xcalloc(1, sizeof(*h));
    time_t began = time(NULL);
    time_t told = began;
    int64_t before;
    int status;

    h->prefix = prefix;
    h->tries = tries;
    read_state(h);
    find_commit(h, commit);
    before = h->now->violations;
    while (minutes == 0 || time(NULL) < began + 60 * (time_t)minutes) {
        try_next(h);
        if (h->seeds % SAVE_SEEDS == 0)
            write_state(h);
        if (time(NULL) < told + LINE_SECONDS)
            continue;
        told = time(NULL);
        print_line(h);
    }
    write_state(h);
    print_line(h);
    counts_print(&h->counts, h->seeds);
    status = h->now->violations > before;
    free(h);
    return status;
}
