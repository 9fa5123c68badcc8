/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_COUNTS_H
#define SL_TESTS_SIM_COUNTS_H

#include "run.h"

#define COUNTS_SEEDS_MIN 100 /* fewer are not enough to judge by */
#define GROUP_SHARE 4        /* one seed with groups for so many without */

/* What was exercised, over many runs. */
void counts_add(struct counts *sum, const struct counts *c);
void counts_print(const struct counts *c, uint64_t seeds);
/* Whether so many seeds from the first one on have shown something, or are too few to judge. */
bool counts_are_enough(const struct counts *c, uint64_t first, uint64_t count);

#endif
