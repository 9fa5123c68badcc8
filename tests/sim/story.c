/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The story of a run in words, for a person who looks for a mistake: what was planned, what the
 * clients asked and were told, and between these, in their order, the faults of the world and what
 * the broker said. Only a run that tells keeps the world's text; lines are counted in every run.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "run.h"

struct world_line {
    int64_t ns;
    char kind[16];
    char host[16];
    char what[64];
    int64_t n;
};

/* A kind of fault, and the words around the machine or the name that it met. */
static const struct fault_words {
    const char *kind;
    const char *before;
    const char *behind;
} faults[] = {
    {"reset", "a connection of ", " breaks"},  {"cut", "nothing gets away any more from ", ""},
    {"eio", "a disk call fails of ", ""},      {"stall", "the disk stalls of ", ""},
    {"no_space", "the disk is full of ", ""},  {"pause", "paused is ", ""},
    {"kill", "killed is the process of ", ""}, {"power_cut", "the power is gone of ", ""},
    {"lost", "lost with the power: ", ""},     {"torn", "torn by the power cut: ", ""},
};

static const struct fault_words *words_of(const char *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        if (strcmp(faults[i].kind, kind) == 0)
            return &faults[i];
    return NULL;
}

static void print_time(int64_t ns)
{
    printf("%lld.%06lld ms: ", (long long)(ns / MS), (long long)(ns % MS));
}

/* Faults of one kind that follow each other are one line. */
struct repeated {
    struct world_line line;
    int count;
};

static void print_fault(struct repeated *r)
{
    const struct world_line *l = &r->line;
    const struct fault_words *words = words_of(l->kind);
    bool has_host = strcmp(l->host, "-") != 0;

    if (r->count == 0)
        return;
    print_time(l->ns);
    printf("%s%s%s", words->before, has_host ? l->host : l->what, words->behind);
    if (has_host && strcmp(l->kind, "eio") == 0)
        printf(" (%s)", l->what);
    if (r->count > 1)
        printf(", %d times", r->count);
    printf("\n");
    r->count = 0;
}

static void take_fault(struct repeated *r, const struct world_line *l)
{
    if (r->count > 0 && (strcmp(r->line.kind, l->kind) != 0 || strcmp(r->line.what, l->what) != 0))
        print_fault(r);
    if (r->count++ == 0)
        r->line = *l;
}

/* Tells what the world has done since the last line. */
static void tell_world(struct run *run)
{
    struct repeated r = {.count = 0};
    const char *text = sim_trace(run->world) + run->told_bytes;
    const char *end;

    for (; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        struct world_line l;
        int at = 0;

        run->told_bytes += (size_t)(end + 1 - text);
        if (sscanf(text, "t=%" SCNd64 " trace host=%15s %n", &l.ns, l.host, &at) == 2 && at > 0) {
            print_fault(&r);
            print_time(l.ns);
            printf("%s says: %.*s\n", l.host, (int)(end - text) - at, text + at);
        } else if (sscanf(text, "t=%" SCNd64 " %15s host=%15s what=%63s n=%" SCNd64, &l.ns, l.kind,
                          l.host, l.what, &l.n) == 5 &&
                   words_of(l.kind)) {
            take_fault(&r, &l);
        }
    }
    print_fault(&r);
}

void tell(struct run *run, const char *fmt, ...)
{
    va_list ap;

    run->story_lines++;
    if (!run->tells)
        return;
    tell_world(run);
    print_time(run_now(run));
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

static void tell_if(struct run *run, bool is_so, const char *what)
{
    if (is_so)
        tell(run, "  with %s", what);
}

static void tell_broker_plan(struct run *run)
{
    const struct plan *p = &run->plan;

    tell(run, "seed %" PRIu64 ": %d lives of a broker with %d %s and %d %s, %d %s and %d %s",
         run->seed, p->lives, p->shards, p->shards == 1 ? "shard" : "shards", p->dirs,
         p->dirs == 1 ? "directory" : "directories", p->producers,
         p->producers == 1 ? "producer" : "producers", p->consumers,
         p->consumers == 1 ? "consumer" : "consumers");
}

static void tell_cluster_plan(struct run *run)
{
    const struct plan *p = &run->plan;

    tell(run, "seed %" PRIu64 ": three brokers with %d %s, %d misfortunes, %d %s and %d %s",
         run->seed, p->shards, p->shards == 1 ? "shard" : "shards", p->lives, p->producers,
         p->producers == 1 ? "producer" : "producers", p->consumers,
         p->consumers == 1 ? "consumer" : "consumers");
}

void tell_plan(struct run *run)
{
    const struct plan *p = &run->plan;

    if (run->cluster)
        tell_cluster_plan(run);
    else
        tell_broker_plan(run);
    tell_if(run, p->has_crashes, "crashes");
    tell_if(run, p->has_power_cuts, "power cuts");
    tell_if(run, p->has_network_faults, "a bad network");
    tell_if(run, p->has_slow_network, "a slow network");
    tell_if(run, p->has_slow_syncs, "slow disks");
    tell_if(run, p->has_keeper_faults, "a bad keeper");
    tell_if(run, p->has_disk_loss, "a disk that is replaced");
    tell_if(run, p->has_racks, "a rack for each broker");
    tell_if(run, p->has_disk_errors, "disk errors");
    tell_if(run, p->has_small_disk, "a small disk");
    tell_if(run, p->has_weather, "short reads and cold caches");
    tell_if(run, p->has_page_cache_topics, "topics that live in the page cache");
}
