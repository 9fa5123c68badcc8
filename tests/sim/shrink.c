/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a failing run short (sim_shrink), and tells it. What counts is that it fails in the same
 * way, the same message whatever numbers stand in it, and that less happens on the way there.
 *
 * The list of the seed is long because of the choices that are asked for and do not matter; what
 * is written down at the end is what the short run itself has chosen.
 */
#include "shrink.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE_COST 40 /* in events: a choice that is not dull has to be understood */

struct shrinking {
    struct trial trial;
    struct sim_list list;
    char pattern[sizeof(((struct outcome *)0)->violation)];
};

/* A message without its numbers. */
static void pattern_of(const char *violation, char *out)
{
    for (; *violation; violation++)
        if (!isdigit((unsigned char)*violation))
            *out++ = *violation;
    *out = '\0';
}

static int64_t cost(void *ctx, const struct sim_list *list)
{
    struct shrinking *s = ctx;
    char pattern[sizeof(s->pattern)];
    struct outcome out;

    s->trial.list = list;
    attempt(&s->trial, &out);
    pattern_of(out.violation, pattern);
    if (strcmp(pattern, s->pattern) != 0)
        return -1;
    return out.counts.events + CHOICE_COST * (int64_t)sim_list_interesting(list, SIM_CHOICES);
}

/* The list as the short run makes it. */
static bool record_again(struct shrinking *s, struct outcome *out)
{
    struct sim_list list = {.values = NULL};
    bool ok;

    s->trial.list = &s->list;
    ok = attempt_record(&s->trial, out, &list);
    if (ok) {
        list_fini(&s->list);
        s->list = list;
    } else {
        list_fini(&list);
    }
    return ok;
}

bool shrink(const struct trial *o, unsigned tries, struct shrunk *out)
{
    struct shrinking s = {.trial = *o};

    *out = (struct shrunk){.tries = 0};
    s.trial.tells = s.trial.traces = false;
    if (!attempt_record(&s.trial, &out->before, &s.list))
        return false;
    pattern_of(out->before.violation, s.pattern);
    out->count_before = s.list.count;
    out->interesting_before = sim_list_interesting(&s.list, SIM_CHOICES);
    out->tries = sim_shrink(&s.list, tries, cost, &s);
    record_again(&s, &out->after);
    out->list = s.list;
    return true;
}

void shrunk_fini(struct shrunk *s)
{
    list_fini(&s->list);
}

/* ---- telling ---------------------------------------------------------------------------- */

static void print_kinds(const struct sim_list *list)
{
    const char *comma = "";

    for (int kind = 0; kind < SIM_CHOICES; kind++) {
        size_t n = sim_list_interesting(list, (enum sim_choice)kind);

        if (n == 0)
            continue;
        printf("%s%zu of %s", comma, n, choice_kind_name(kind));
        comma = ", ";
    }
    printf("\n");
}

static void print_shrunk(const struct shrunk *s)
{
    printf("shrunk in %u runs: %zu choices that are not dull of %zu, was %zu of %zu; "
           "%" PRId64 " events, was %" PRId64 "; a story of %" PRId64 " lines, was %" PRId64 "\n",
           s->tries, sim_list_interesting(&s->list, SIM_CHOICES), s->list.count,
           s->interesting_before, s->count_before, s->after.counts.events, s->before.counts.events,
           s->after.lines, s->before.lines);
    print_kinds(&s->list);
}

bool shrink_and_tell(const struct trial *o, unsigned tries, const char *path)
{
    struct trial short_trial = *o;
    struct outcome out;
    struct shrunk s;

    if (!shrink(o, tries, &s)) {
        shrunk_fini(&s);
        return false;
    }
    print_shrunk(&s);
    short_trial.list = &s.list;
    short_trial.tells = true;
    attempt(&short_trial, &out);
    printf("%s\n", out.violation);
    if (list_write(&s.list, o, path))
        printf("again: make sim CHOICES=%s\n", path);
    shrunk_fini(&s);
    return true;
}
