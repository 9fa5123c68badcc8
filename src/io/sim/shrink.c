/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shrinker: from the list of choices of a failing run to one that a person can follow.
 *
 * Every list describes a run, because 0 is always an answer and always the dull one. So shrinking
 * is nothing but trying duller lists and keeping those that still fail. A list is changed in four
 * ways, from the coarse to the fine, over and over until nothing helps any more:
 *
 *   1. all choices of one kind become 0: mostly the scheduler and the network do not matter;
 *   2. the tail goes: what comes behind it is dull by itself;
 *   3. blocks of one kind are taken out, so that what follows happens earlier, or become 0, in ever
 *      smaller blocks, down to single choices;
 *   4. what is left is halved as long as that does no harm.
 *
 * A change stays if the run still fails and costs no more than before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/sim/sim.h"

/* Blocks that are taken out of a long list do not become smaller than this part of it. */
#define FINEST 128

struct shrinking {
    struct sim_list *list;
    struct sim_list trial; /* with room for as many */
    int64_t cost;          /* of the list */
    unsigned tries;
    unsigned tries_max;
    sim_cost_fn run;
    void *ctx;
};

static bool is_of(const struct sim_list *list, size_t at, enum sim_choice kind)
{
    return kind == SIM_CHOICES || (list->kinds ? list->kinds[at] : SIM_NEXT) == kind;
}

size_t sim_list_interesting(const struct sim_list *list, enum sim_choice kind)
{
    size_t n = 0;

    for (size_t i = 0; i < list->count; i++)
        n += list->values[i] != 0 && is_of(list, i, kind);
    return n;
}

/* ---- trials ----------------------------------------------------------------------------- */

static void copy_list(struct sim_list *to, const struct sim_list *from)
{
    memcpy(to->values, from->values, from->count * sizeof(*to->values));
    if (from->kinds)
        memcpy(to->kinds, from->kinds, from->count);
    to->count = from->count;
}

static void begin_trial(struct shrinking *s)
{
    copy_list(&s->trial, s->list);
}

/* Whether the trial is as good as the list, which it then becomes. */
static bool end_trial(struct shrinking *s)
{
    int64_t cost;

    if (s->tries >= s->tries_max)
        return false;
    s->tries++;
    cost = s->run(s->ctx, &s->trial);
    if (cost < 0 || cost > s->cost)
        return false;
    s->cost = cost;
    copy_list(s->list, &s->trial);
    return true;
}

/* ---- ways to change a list -------------------------------------------------------------- */

/* The places of all choices of a kind, or only of those that are not dull. Owned by the caller. */
static size_t *places(const struct sim_list *list, enum sim_choice kind, bool with_dull, size_t *n)
{
    size_t *at = xcalloc(list->count + 1, sizeof(*at));

    *n = 0;
    for (size_t i = 0; i < list->count; i++)
        if (is_of(list, i, kind) && (with_dull || list->values[i] != 0))
            at[(*n)++] = i;
    return at;
}

static bool try_zeros(struct shrinking *s, const size_t *at, size_t n)
{
    begin_trial(s);
    for (size_t i = 0; i < n; i++)
        s->trial.values[at[i]] = 0;
    return end_trial(s);
}

/* The places ascend. */
static bool try_without(struct shrinking *s, const size_t *at, size_t n)
{
    size_t to = 0;

    begin_trial(s);
    for (size_t i = 0, k = 0; i < s->trial.count; i++) {
        if (k < n && at[k] == i) {
            k++;
            continue;
        }
        s->trial.values[to] = s->trial.values[i];
        if (s->trial.kinds)
            s->trial.kinds[to] = s->trial.kinds[i];
        to++;
    }
    s->trial.count = to;
    return end_trial(s);
}

static void zero_kind(struct shrinking *s, enum sim_choice kind)
{
    size_t n;
    size_t *at = places(s->list, kind, false, &n);

    if (n > 0)
        try_zeros(s, at, n);
    free(at);
}

static void cut_tail(struct shrinking *s)
{
    for (size_t step = s->list->count / 2; step > 0; step /= 2) {
        bool is_better = true;

        while (is_better && s->list->count >= step) {
            begin_trial(s);
            s->trial.count -= step;
            is_better = end_trial(s);
        }
    }
}

/* From the end: what is behind a block that goes keeps its place in `at`. */
static void take_out(struct shrinking *s, enum sim_choice kind)
{
    size_t n;
    size_t *at = places(s->list, kind, true, &n);
    size_t finest = MAX(n / FINEST, 1);

    for (size_t block = n / 2; block >= finest && s->tries < s->tries_max; block /= 2) {
        for (size_t end = n; end >= block; end -= block)
            try_without(s, at + end - block, block);
        free(at);
        at = places(s->list, kind, true, &n);
    }
    free(at);
}

static void zero_blocks(struct shrinking *s)
{
    size_t n;
    size_t *at = places(s->list, SIM_CHOICES, false, &n);

    for (size_t block = n / 2; block > 0 && s->tries < s->tries_max; block /= 2) {
        for (size_t i = 0; i < n; i += block)
            try_zeros(s, at + i, MIN(block, n - i));
        free(at);
        at = places(s->list, SIM_CHOICES, false, &n);
    }
    free(at);
}

static void halve_values(struct shrinking *s)
{
    for (size_t i = 0; i < s->list->count && s->tries < s->tries_max; i++) {
        bool is_better = true;

        while (is_better && s->list->values[i] > 1) {
            begin_trial(s);
            s->trial.values[i] /= 2;
            is_better = end_trial(s);
        }
    }
}

static void pass(struct shrinking *s)
{
    for (int kind = 0; kind < SIM_CHOICES; kind++)
        zero_kind(s, (enum sim_choice)kind);
    cut_tail(s);
    for (int kind = SIM_CHOICES - 1; kind >= 0; kind--)
        if (sim_list_interesting(s->list, (enum sim_choice)kind) > 0)
            take_out(s, (enum sim_choice)kind);
    zero_blocks(s);
    halve_values(s);
}

unsigned sim_shrink(struct sim_list *list, unsigned tries_max, sim_cost_fn cost, void *ctx)
{
    struct shrinking s = {.list = list, .tries_max = tries_max, .run = cost, .ctx = ctx};
    int64_t before;

    s.trial.values = xcalloc(list->count + 1, sizeof(*list->values));
    s.trial.kinds = list->kinds ? xcalloc(list->count + 1, 1) : NULL;
    s.cost = INT64_MAX;
    begin_trial(&s);
    if (end_trial(&s)) {
        do {
            before = s.cost;
            pass(&s);
        } while (s.cost < before && s.tries < tries_max);
    }
    while (list->count > 0 && list->values[list->count - 1] == 0)
        list->count--;
    free(s.trial.values);
    free(s.trial.kinds);
    return s.tries;
}
