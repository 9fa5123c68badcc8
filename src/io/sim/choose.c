/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every choice of a run is made here. With a seed it is drawn from a generator; in a replay it is
 * taken from a list, and beyond the end of the list it is 0, which always means the dull thing:
 * first come, no delay, no fault. A run is therefore a function of (seed, list), a list may be cut
 * or zeroed anywhere and still describes a run, and shortening a failure is nothing but trying
 * smaller lists. (The seed still gives entropy and nothing else in a replay.)
 *
 * A list that says of each value what it was about is taken apart by kind: the next delay is the
 * next one of the list, whatever was chosen in between. So when a part of it is made dull, what
 * the rest says still goes to the choices that it was made for, and mostly means the same.
 *
 * Rare things are drawn with a probability but recorded as plain 0 or 1, so that a list does not
 * depend on rates.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim_int.h"

static void record(struct sim_world *w, enum sim_choice kind, uint32_t value)
{
    if (w->choice_count == w->choice_cap) {
        w->choice_cap = w->choice_cap ? 2 * w->choice_cap : 1024;
        w->choices = xreallocarray(w->choices, w->choice_cap, sizeof(*w->choices));
        w->kinds = xreallocarray(w->kinds, w->choice_cap, sizeof(*w->kinds));
    }
    w->choices[w->choice_count] = value;
    w->kinds[w->choice_count++] = (uint8_t)kind;
}

/* Where the list has the answer; behind its end when it has none. */
static size_t replay_at(struct sim_world *w, enum sim_choice kind)
{
    size_t *next = &w->replay_next[kind];

    if (!w->replay_kinds)
        return w->choice_count;
    while (*next < w->opt.choice_count && w->replay_kinds[*next] != kind)
        ++*next;
    return (*next)++;
}

/* The list may come from another version of the code, or from the shrinker. */
static uint32_t replayed(struct sim_world *w, enum sim_choice kind, uint32_t n)
{
    size_t at = replay_at(w, kind);
    uint32_t value = at < w->opt.choice_count ? w->replay[at] : 0;

    return value < n ? value : 0;
}

uint32_t sim_choose(struct sim_world *w, enum sim_choice kind, uint32_t n)
{
    uint32_t value;

    assert(n > 0);
    assert(kind < SIM_CHOICES);
    if (n == 1)
        return 0;
    value = w->opt.is_replay ? replayed(w, kind, n) : (uint32_t)rng_below(&w->rng, n);
    record(w, kind, value);
    return value;
}

bool sim_chance(struct sim_world *w, enum sim_choice kind, uint32_t ppm)
{
    bool value;

    assert(kind < SIM_CHOICES);
    if (ppm == 0)
        return false;
    value = w->opt.is_replay ? replayed(w, kind, 2) == 1 : rng_below(&w->rng, 1000000) < ppm;
    record(w, kind, value);
    return value;
}

const uint32_t *sim_choices(const struct sim_world *w, size_t *count)
{
    *count = w->choice_count;
    return w->choices;
}

const uint8_t *sim_choice_kinds(const struct sim_world *w)
{
    return w->kinds;
}
