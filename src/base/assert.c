/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when an assertion fails: everything a person needs is printed to standard error
 * with async-signal-safe calls only, since the heap may be what is broken, and the process aborts
 * so that a core dump or the supervisor can take over.
 */
#include "base/assert.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/trace.h"

#define BACKTRACE_FRAMES_MAX 64

_Noreturn void assert_failed(const char *expr, const char *file, int line, const char *func)
{
    void *frames[BACKTRACE_FRAMES_MAX];

    dprintf(STDERR_FILENO, "%s:%d: %s: assertion failed: %s\n", file, line, func, expr);
    backtrace_symbols_fd(frames, backtrace(frames, BACKTRACE_FRAMES_MAX), STDERR_FILENO);
    trace_dump(STDERR_FILENO);
    abort();
}
