/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing: levels, lines, the ring; and the assertion that prints it before it aborts. */
#include "base/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

struct sink {
    int lines;
    enum trace_level level;
    char last[TRACE_LINE_BYTES_MAX];
};

static void keep_line(void *ctx, enum trace_level level, const char *line)
{
    struct sink *sink = ctx;

    sink->lines++;
    sink->level = level;
    snprintf(sink->last, sizeof(sink->last), "%s", line);
}

static void a_line_goes_to_the_current_sink(void **state)
{
    struct sink sink = {0};
    struct trace t;

    (void)state;
    trace_init(&t, TRACE_INFO, keep_line, &sink);
    trace_info("nobody.listens", "n=%d", 1);
    assert_null(trace_set_current(&t));
    trace_warn("topic.created", "topic=%s partitions=%d", "t", 3);
    assert_string_equal(sink.last, "topic.created topic=t partitions=3");
    assert_int_equal(sink.level, TRACE_WARN);
    trace_debug("too.fine", "n=%d", 1);
    assert_int_equal(sink.lines, 1);
    trace_info("bare", "%s", "");
    assert_int_equal(sink.lines, 2);
    assert_ptr_equal(trace_set_current(NULL), &t);
    trace_error("nobody.listens", "n=%d", 2);
    assert_int_equal(sink.lines, 2);
    trace_fini(&t);
}

static void a_long_line_is_cut(void **state)
{
    struct sink sink = {0};
    struct trace t;
    char text[2 * TRACE_LINE_BYTES_MAX];

    (void)state;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    trace_init(&t, TRACE_INFO, keep_line, &sink);
    trace_set_current(&t);
    trace_info("long", "text=%s", text);
    assert_int_equal(strlen(sink.last), TRACE_LINE_BYTES_MAX - 1);
    trace_fini(&t);
    assert_null(trace_set_current(NULL));
}

/* Runs fn in a child that must abort, and returns what it wrote to standard error. */
static char *last_words(void (*fn)(void))
{
    char *text = xcalloc(1, 65536);
    size_t n = 0;
    ssize_t got;
    int status = 0;
    int fds[2];
    pid_t child;

    assert_int_equal(pipe(fds), 0);
    child = fork();
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(fds[1]);
    while (n < 65535 && (got = read(fds[0], text + n, 65535 - n)) > 0)
        n += (size_t)got;
    close(fds[0]);
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return text;
}

static void fail_with_a_ring(void)
{
    struct trace t;
    volatile int two = 2;

    trace_init(&t, TRACE_INFO, NULL, NULL);
    trace_set_current(&t);
    for (int i = 0; i <= TRACE_RING_LINES; i++)
        trace_info("line", "number=%d.", i);
    assert(two + two == 5);
}

static void a_failed_assertion_prints_place_and_recent_lines(void **state)
{
    char *text = last_words(fail_with_a_ring);
    const char *newest;

    (void)state;
    assert_non_null(strstr(text, "trace_test.c:"));
    assert_non_null(strstr(text, "fail_with_a_ring: assertion failed: two + two == 5"));
    assert_null(strstr(text, "line number=0."));
    assert_non_null(strstr(text, "line number=1.\n"));
    newest = strstr(text, "line number=64.\n");
    assert_non_null(newest);
    assert_null(strstr(newest + 1, "line number="));
    free(text);
}

static void reach_the_unreachable(void)
{
    UNREACHABLE();
}

static void the_unreachable_aborts(void **state)
{
    char *text = last_words(reach_the_unreachable);

    (void)state;
    assert_non_null(strstr(text, "reach_the_unreachable: assertion failed: unreachable"));
    free(text);
}

static void allocate_too_much(void)
{
    volatile size_t half = (size_t)1 << 32;

    free(xcalloc(half, half));
}

static void an_allocation_whose_size_overflows_aborts(void **state)
{
    (void)state;
    free(last_words(allocate_too_much));
}

static void true_assertions_pass(void **state)
{
    int evaluated = 0;

    (void)state;
    assert(++evaluated == 1);
    assert_int_equal(evaluated, 1);
    assert(IMPLIES(false, false) && IMPLIES(true, true) && !IMPLIES(true, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_goes_to_the_current_sink),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(a_failed_assertion_prints_place_and_recent_lines),
        cmocka_unit_test(the_unreachable_aborts),
        cmocka_unit_test(an_allocation_whose_size_overflows_aborts),
        cmocka_unit_test(true_assertions_pass),
    };

    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
