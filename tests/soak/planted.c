/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which planted mistake (base/planted.h) a broker of the build with all of them has: the one that
 * the environment's STRANDLINE_PLANTED names. For `make soak-planted`; a usual build has none.
 */
#include "base/planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PLANT_CHOSEN

enum planted planted_fault;

static const char *const names[] = {[PLANTED_NOTHING] = "NOTHING",
#define X(name, text) [PLANTED_##name] = #name,
                                    PLANTED_FAULTS(X)
#undef X
};

__attribute__((constructor)) static void choose(void)
{
    const char *wanted = getenv("STRANDLINE_PLANTED");

    if (!wanted)
        return;
    for (int i = 0; i < PLANTED_COUNT; i++)
        if (strcmp(names[i], wanted) == 0) {
            planted_fault = (enum planted)i;
            return;
        }
    fprintf(stderr, "there is no planted mistake %s\n", wanted);
    abort();
}

#endif
