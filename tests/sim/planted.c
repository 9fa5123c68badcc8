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

bool planted_is_of_groups(int fault)
{
    return fault >= (int)PLANTED_FIRST_OF_GROUPS;
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

bool planted_is_of_groups(int fault)
{
    (void)fault;
    return false;
}

void planted_choose(int fault)
{
    (void)fault;
}

#endif
