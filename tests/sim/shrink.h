/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_SHRINK_H
#define SL_TESTS_SIM_SHRINK_H

#include "attempt.h"

/* What is left of a failing run. */
struct shrunk {
    struct sim_list list; /* owned: the choices of the short run */
    struct outcome before;
    struct outcome after;
    size_t interesting_before; /* choices that were not 0 */
    size_t count_before;
    unsigned tries;
};

/*
 * Runs the trial (which fails), then ever duller ones that fail in the same way: the same message,
 * whatever numbers stand in it. At most `tries` runs. False when it does not fail, or not again by
 * its choices alone (a run that ended with a signal has left none).
 */
bool shrink(const struct trial *o, unsigned tries, struct shrunk *s);
void shrunk_fini(struct shrunk *s);
/* Shrinks, prints what is left and its story, and writes its list to `path`. */
bool shrink_and_tell(const struct trial *o, unsigned tries, const char *path);

#endif
