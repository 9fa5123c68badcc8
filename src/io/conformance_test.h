/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_CONFORMANCE_TEST_H
#define SL_IO_CONFORMANCE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/conformance.h"

/* What the three files of the conformance suite share. */

#define MS INT64_C(1000000) /* nanoseconds */

/* What most tests hold: one process, its control loop, and how often something happened. */
struct fixture {
    struct io *io;
    struct io_loop *loop;
    int count;
};

int begin(void **state);
int end(void **state);
/* Makes the control loop and runs until somebody stops the process. */
void run(struct fixture *f, void (*start)(void *ctx), void *ctx);

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* Each runs its group and returns the number of failures. */
int conformance_net(void);
int conformance_files(void);

#endif
