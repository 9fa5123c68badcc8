/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_PLANTED_H
#define SL_TESTS_SIM_PLANTED_H

#include "run.h"

/* Planted mistakes of this build, 1 to planted_count() (0 in the ordinary build); 0 is none. */
int planted_count(void);
const char *planted_text(int fault);
/* By which runs it is found. */
enum run_kind planted_kind(int fault);
/* Whether runs are expected to find it: some rules are guarded by others as well, and some need
 * what these runs hardly ever do. */
bool planted_is_sought(int fault);
/* For all that runs from now on in this process. */
void planted_choose(int fault);

#endif
