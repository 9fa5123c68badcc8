/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mistake of this run, in a build that has any (base/planted.h). Set in the child that runs a
 * seed, before its world begins.
 */
#include "base/planted.h"

#include "planted.h"

#ifdef PLANT_CHOSEN

enum planted planted_fault;

static const char *const texts[] = {"nothing",
#define X(name, text) text,
                                    PLANTED_FAULTS(X)
#undef X
};

int planted_count(void)
{
    return PLANTED_COUNT - 1;
}

const char *planted_text(int fault)
{
    return texts[fault];
}

enum run_kind planted_kind(int fault)
{
    if (fault >= (int)PLANTED_FIRST_OF_CLUSTERS)
        return RUN_CLUSTER;
    return fault >= (int)PLANTED_FIRST_OF_GROUPS ? RUN_GROUPS : RUN_BROKER;
}

void planted_choose(int fault)
{
    planted_fault = (enum planted)fault;
}

#else

int planted_count(void)
{
    return 0;
}

const char *planted_text(int fault)
{
    (void)fault;
    return "nothing";
}

enum run_kind planted_kind(int fault)
{
    (void)fault;
    return RUN_BROKER;
}

void planted_choose(int fault)
{
    (void)fault;
}

#endif
