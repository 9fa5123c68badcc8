/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every choice of a run is made here. With a seed it is drawn from a generator; in a replay it is
 * taken from a list, and beyond the end of the list it is 0, which always means the dull thing:
 * first come, no delay, no fault. A run is therefore a function of (seed, list), a list may be cut
 * or zeroed anywhere and still describes a run, and shortening a failure is nothing but trying
 * smaller lists. (The seed still gives entropy and nothing else in a replay.)
 *
 * Rare things are drawn with a probability but recorded as plain 0 or 1, so that a list does not
 * depend on rates.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim_int.h"

static void record(struct sim_world *w, uint32_t value)
{
    if (w->choice_count == w->choice_cap) {
        w->choice_cap = w->choice_cap ? 2 * w->choice_cap : 1024;
        w->choices = xreallocarray(w->choices, w->choice_cap, sizeof(*w->choices));
    }
    w->choices[w->choice_count++] = value;
}

/* The list may come from another version of the code, or from the shrinker. */
static uint32_t replayed(const struct sim_world *w, uint32_t n)
{
    uint32_t value = w->choice_count < w->opt.choice_count ? w->replay[w->choice_count] : 0;

    return value < n ? value : 0;
}

uint32_t sim_choose(struct sim_world *w, enum sim_choice kind, uint32_t n)
{
    uint32_t value;

    assert(n > 0);
    assert(kind < SIM_CHOICES);
    if (n == 1)
        return 0;
    value = w->opt.is_replay ? replayed(w, n) : (uint32_t)rng_below(&w->rng, n);
    record(w, value);
    return value;
}

bool sim_chance(struct sim_world *w, enum sim_choice kind, uint32_t ppm)
{
    bool value;

    assert(kind < SIM_CHOICES);
    if (ppm == 0)
        return false;
    value = w->opt.is_replay ? replayed(w, 2) == 1 : rng_below(&w->rng, 1000000) < ppm;
    record(w, value);
    return value;
}

const uint32_t *sim_choices(const struct sim_world *w, size_t *count)
{
    *count = w->choice_count;
    return w->choices;
}

/* ---- the shrinker ----------------------------------------------------------------------- */

struct shrink {
    uint32_t *choices;
    size_t count;
    unsigned tries;
    sim_fails_fn fails;
    void *ctx;
};

static bool still_fails(struct shrink *s, const uint32_t *choices, size_t count)
{
    if (s->tries == 0)
        return false;
    s->tries--;
    return s->fails(s->ctx, choices, count);
}

static void cut_tail(struct shrink *s)
{
    for (size_t step = s->count / 2; step > 0; step /= 2)
        while (s->count >= step && still_fails(s, s->choices, s->count - step))
            s->count -= step;
}

static bool is_zero(const uint32_t *v, size_t n)
{
    while (n > 0 && v[n - 1] == 0)
        n--;
    return n == 0;
}

static void zero_block(struct shrink *s, size_t at, size_t n)
{
    uint32_t *saved;

    if (is_zero(s->choices + at, n))
        return;
    saved = xmemdup(s->choices + at, n * sizeof(*saved));
    memset(s->choices + at, 0, n * sizeof(*saved));
    if (!still_fails(s, s->choices, s->count))
        memcpy(s->choices + at, saved, n * sizeof(*saved));
    free(saved);
}

size_t sim_shrink(uint32_t *choices, size_t count, unsigned tries_max, sim_fails_fn fails,
                  void *ctx)
{
    struct shrink s = {choices, count, tries_max, fails, ctx};

    cut_tail(&s);
    for (size_t block = s.count / 2; block > 0 && s.tries > 0; block /= 2)
        for (size_t at = 0; at < s.count; at += block)
            zero_block(&s, at, MIN(block, s.count - at));
    while (s.count > 0 && choices[s.count - 1] == 0)
        s.count--;
    return s.count;
}
