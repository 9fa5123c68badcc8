/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_COUNTS_H
#define SL_TESTS_SIM_COUNTS_H

#include "run.h"

/* Of so many seeds, how many are of a kind. */
#define COUNTS_SHARES 9
int counts_share(enum run_kind kind);
/* Of which kind the n-th one is. */
enum run_kind counts_kind_of(uint64_t n);

/* What was exercised, over many runs. */
void counts_add(struct counts *sum, const struct counts *c);
void counts_print(const struct counts *c, uint64_t seeds);
/* Whether so many seeds from the first one on have shown something, or are too few to judge. */
bool counts_are_enough(const struct counts *c, uint64_t first, uint64_t count);

#endif
