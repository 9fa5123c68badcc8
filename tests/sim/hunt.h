/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_HUNT_H
#define SL_TESTS_SIM_HUNT_H

/*
 * Looks for seeds that fail, for ever or for so many minutes, and goes on where the hunt before
 * has stopped. `prefix` names its files: <prefix>.state, a line for each commit and the next
 * seeds; <prefix>.failures, a line for each seed that failed; and <prefix>-<seed>.choices, what
 * shrinking has left of it. Returns an exit status: 0 if nothing was found this time.
 */
int hunt(const char *prefix, const char *commit, unsigned minutes, unsigned tries);

#endif
