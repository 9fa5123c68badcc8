/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenarios of replication that need whole brokers (SCENARIOS.md), each in a child.
 *
 *   sim/scenarios               all of them
 *   SCENARIO=s17 sim/scenarios  those whose names begin so, with their stories
 *
 * One that fails tells its story. In the build with planted mistakes each has to find the mistake
 * that it is for.
 */
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"
#include "planted.h"

#ifdef PLANT_CHOSEN
#define MISTAKE(name) (int)PLANTED_##name
#else
#define MISTAKE(name) 0
#endif

static const struct scenario {
    const char *name;
    void (*run)(struct script *s);
    int mistake; /* planted, that it has to find */
} scenarios[] = {
#define X(name, mistake) {#name, name, MISTAKE(mistake)},
    SCENARIOS(X)
#undef X
};

struct trial_of {
    const struct scenario *scenario;
    bool tells;
};

static int run_one(void *arg, void *result)
{
    const struct trial_of *t = arg;
    struct script *s = xcalloc(1, sizeof(*s));

    (void)result;
    planted_choose(t->scenario->mistake);
    s->run.tells = t->tells;
    script_run(s, t->scenario->run);
    return 0;
}

static bool passes(const struct scenario *scenario, bool tells)
{
    struct trial_of t = {.scenario = scenario, .tells = tells};

    printf("%s\n", scenario->name);
    return sim_in_child(run_one, &t, NULL, 0) == 0;
}

static bool is_right(const struct scenario *scenario, bool tells)
{
    if (planted_count() > 0) {
        if (!passes(scenario, tells))
            return true;
        printf("  has not found the planted mistake: %s\n", planted_text(scenario->mistake));
        return false;
    }
    if (passes(scenario, tells))
        return true;
    if (!tells)
        passes(scenario, true);
    printf("  its story again: make sim SCENARIO=%s\n", scenario->name);
    return false;
}

int main(void)
{
    const char *prefix = getenv("SCENARIO");
    int right = 0;
    int wrong = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
        const struct scenario *scenario = &scenarios[i];

        if (prefix && strncmp(scenario->name, prefix, strlen(prefix)) != 0)
            continue;
        if (planted_count() > 0 && scenario->mistake == 0)
            continue;
        if (is_right(scenario, prefix != NULL))
            right++;
        else
            wrong++;
    }
    printf("%d passed, %d failed\n", right, wrong);
    return wrong > 0;
}
