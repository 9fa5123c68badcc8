/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run in a child, because a crash leaves threads and memory behind. What it found comes back
 * through memory that both share, and so do the choices that it made, when somebody wants them.
 *
 * As text a list names only what is not dull, each choice by its number among those of its kind.
 * That is enough: all others are 0, and a replay takes choices kind by kind.
 */
#include "attempt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "planted.h"

#define CHOICES_MAX ((size_t)1 << 20)
#define TRACE_LINES 40

/* Only where the address sanitizer is linked in. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

struct shared {
    struct outcome outcome;
    size_t count; /* of choices; 0 also when there were too many */
    uint32_t values[CHOICES_MAX];
    uint8_t kinds[CHOICES_MAX];
};

struct child {
    const struct trial *trial;
    bool records; /* the result is a struct shared, and not its first member alone */
};

static const char *const kind_names[SIM_CHOICES] = {
    [SIM_NEXT] = "next",
    [SIM_QUEUE] = "queue",
    [SIM_ACCEPT] = "accept",
    [SIM_DELAY] = "delay",
    [SIM_CHUNK] = "chunk",
    [SIM_RESET] = "reset",
    [SIM_REFUSE] = "refuse",
    [SIM_LATENCY] = "latency",
    [SIM_STALL] = "stall",
    [SIM_CACHE] = "cache",
    [SIM_EIO] = "eio",
    [SIM_PARTIAL] = "partial",
    [SIM_LOST_NAMES] = "lost_names",
    [SIM_LOST_SIZES] = "lost_sizes",
    [SIM_LOST_DATA] = "lost_data",
    [SIM_LOST_SECTOR] = "lost_sector",
    [SIM_LOST_SOCKET] = "lost_socket",
    [SIM_USER + BY_FATE] = "fate",
    [SIM_USER + BY_ADMIN] = "admin",
    [SIM_USER + BY_PRODUCERS] = "producers",
    [SIM_USER + BY_CONSUMERS] = "consumers",
    [SIM_USER + BY_PEERS] = "peers",
};

const char *choice_kind_name(int kind)
{
    return kind >= 0 && kind < SIM_CHOICES && kind_names[kind] ? kind_names[kind] : "other";
}

/* ---- the child -------------------------------------------------------------------------- */

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

static void record(struct run *run, struct shared *shared)
{
    size_t n;
    const uint32_t *values = sim_choices(run->world, &n);

    if (n > CHOICES_MAX)
        return;
    memcpy(shared->values, values, n * sizeof(*values));
    memcpy(shared->kinds, sim_choice_kinds(run->world), n);
    shared->count = n;
}

static int run_one(void *arg, void *result)
{
    const struct child *c = arg;
    const struct trial *o = c->trial;
    struct sim_options options = {
        .keep_text = o->tells,
        .trace_level = o->tells ? TRACE_INFO : TRACE_ERROR,
    };
    struct run *run = xcalloc(1, sizeof(*run));
    struct outcome *out = result;

    if (o->list) {
        options.is_replay = true;
        options.choices = o->list->values;
        options.choice_kinds = o->list->kinds;
        options.choice_count = o->list->count;
    }
    planted_choose(o->fault);
    run->seed = o->seed;
    run->tells = o->tells;
    run_seed(run, &options);
    if (run_is_over(run) && o->traces)
        print_trace(run);
    if (run_is_over(run) && c->records)
        record(run, result);
    out->counts = run->counts;
    out->lines = run->story_lines;
    memcpy(out->violation, run->violation, sizeof(out->violation));
    if (!run_is_over(run) && !run->plan.has_crashes) {
        free(run);
        if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
            snprintf(out->violation, sizeof(out->violation), "memory is leaked");
    }
    return 0;
}

static bool run_child(struct child *c, void *result, size_t n)
{
    struct outcome *out = result;
    int status = sim_in_child(run_one, c, result, n);

    if (status != 0 && out->violation[0] == '\0')
        snprintf(out->violation, sizeof(out->violation), "the run ended with status %d", status);
    return out->violation[0] == '\0';
}

bool attempt(const struct trial *o, struct outcome *out)
{
    struct child c = {.trial = o};

    memset(out, 0, sizeof(*out));
    return run_child(&c, out, sizeof(*out));
}

bool attempt_record(const struct trial *o, struct outcome *out, struct sim_list *list)
{
    struct shared *shared = xcalloc(1, sizeof(*shared));
    struct child c = {.trial = o, .records = true};

    run_child(&c, shared, sizeof(*shared));
    *out = shared->outcome;
    list->count = shared->count;
    list->values = xmemdup(shared->values, (list->count + 1) * sizeof(*list->values));
    list->kinds = xmemdup(shared->kinds, list->count + 1);
    free(shared);
    return list->count > 0;
}

/* ---- lists ------------------------------------------------------------------------------ */

void list_fini(struct sim_list *list)
{
    free(list->values);
    free(list->kinds);
    *list = (struct sim_list){.values = NULL};
}

bool list_write(const struct sim_list *list, const struct trial *o, const char *path)
{
    FILE *f = fopen(path, "w");
    size_t of_kind[SIM_CHOICES] = {0};

    if (!f)
        return false;
    fprintf(f, "seed %" PRIu64 " fault %d\n", o->seed, o->fault);
    for (size_t i = 0; i < list->count; i++) {
        int kind = list->kinds[i];

        of_kind[kind]++;
        if (list->values[i] != 0)
            fprintf(f, "%s %zu %" PRIu32 "\n", choice_kind_name(kind), of_kind[kind],
                    list->values[i]);
    }
    return fclose(f) == 0;
}

static int kind_of(const char *name)
{
    for (int kind = 0; kind < SIM_CHOICES; kind++)
        if (kind_names[kind] && strcmp(kind_names[kind], name) == 0)
            return kind;
    return -1;
}

static bool push(struct sim_list *list, int kind, uint32_t value)
{
    if (list->count == CHOICES_MAX)
        return false;
    list->kinds[list->count] = (uint8_t)kind;
    list->values[list->count++] = value;
    return true;
}

static bool read_choices(struct sim_list *list, FILE *f)
{
    size_t of_kind[SIM_CHOICES] = {0};
    char name[24];
    size_t number;
    uint32_t value;

    while (fscanf(f, "%23s %zu %" SCNu32 "\n", name, &number, &value) == 3) {
        int kind = kind_of(name);

        if (kind < 0 || number <= of_kind[kind])
            return false;
        while (++of_kind[kind] < number)
            if (!push(list, kind, 0))
                return false;
        if (!push(list, kind, value))
            return false;
    }
    return feof(f) != 0;
}

bool list_read(struct sim_list *list, struct trial *o, const char *path)
{
    FILE *f = fopen(path, "r");
    bool ok;

    if (!f)
        return false;
    list->values = xcalloc(CHOICES_MAX, sizeof(*list->values));
    list->kinds = xcalloc(CHOICES_MAX, sizeof(*list->kinds));
    ok = fscanf(f, "seed %" SCNu64 " fault %d\n", &o->seed, &o->fault) == 2 &&
         read_choices(list, f);
    fclose(f);
    return ok;
}
