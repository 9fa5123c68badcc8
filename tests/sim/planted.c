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

/*
 * Two failovers within a round trip, or one fault more than a run has: src/replica finds those by
 * storms and transcripts, scenarios.c some of them by scripts. A decision that is not fenced, a
 * proposal of an older state, and an epoch that is led again meet the version of a partition's
 * state, or the next epoch, as well. Since a controller that was replaced says nothing more as soon
 * as it hears so, obeying it does harm in one seed of four thousand (2001229).
 */
static const enum planted unsought[] = {
    PLANTED_UNFENCED_FETCH,      PLANTED_COUNT_DIVERGING_FETCH, PLANTED_WATERMARK_OF_DIVERGED,
    PLANTED_TIMEOUT_IS_NO,       PLANTED_COMMIT_BELOW_MIN_ISR,  PLANTED_LEAD_AGAIN,
    PLANTED_TAKE_ANY_ANSWER,     PLANTED_JOIN_OF_OTHER_LIFE,    PLANTED_UNFENCED_DECISIONS,
    PLANTED_ALTER_WITHOUT_EPOCH, PLANTED_OBEY_LATE_ORDERS,      PLANTED_OBEY_OLD_CONTROLLER,
    PLANTED_JOIN_BEFORE_EPOCH,   PLANTED_IGNORE_PROPOSED,
};

bool planted_is_sought(int fault)
{
    for (size_t i = 0; i < ARRAY_LEN(unsought); i++)
        if ((int)unsought[i] == fault)
            return false;
    return true;
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

bool planted_is_sought(int fault)
{
    (void)fault;
    return false;
}

void planted_choose(int fault)
{
    (void)fault;
}

#endif
