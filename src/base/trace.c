/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracing: format once into a fixed buffer, hand the line to the sink, remember it in a ring. The
 * one thread-local pointer of the program lives here: passing a trace to every function that might
 * want to say something would put it into every signature.
 */
#include "base/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

static _Thread_local struct trace *current;

void trace_init(struct trace *t, enum trace_level level, trace_sink_fn sink, void *sink_ctx)
{
    *t = (struct trace){.level = level, .sink = sink, .sink_ctx = sink_ctx};
}

void trace_fini(struct trace *t)
{
    if (current == t)
        current = NULL;
    free(t->ring);
    t->ring = NULL;
}

struct trace *trace_set_current(struct trace *t)
{
    struct trace *before = current;

    current = t;
    return before;
}

void trace_dump(int fd)
{
    struct trace *t = current;
    uint64_t first;

    if (!t || !t->ring)
        return;
    first = t->count > TRACE_RING_LINES ? t->count - TRACE_RING_LINES : 0;
    for (uint64_t i = first; i < t->count; i++) {
        const char *line = t->ring[i % TRACE_RING_LINES];

        if (write(fd, line, strlen(line)) < 0 || write(fd, "\n", 1) < 0)
            return;
    }
}

void trace_event(enum trace_level level, const char *event, const char *fmt, ...)
{
    struct trace *t = current;
    char *line;
    va_list args;
    int n;

    if (!t || level > t->level)
        return;
    if (!t->ring)
        t->ring = xcalloc(TRACE_RING_LINES, sizeof(*t->ring));
    line = t->ring[t->count++ % TRACE_RING_LINES];
    n = snprintf(line, TRACE_LINE_BYTES_MAX, "%s%s", event, *fmt ? " " : "");
    if (n < 0 || n >= TRACE_LINE_BYTES_MAX)
        n = 0;
    va_start(args, fmt);
    vsnprintf(line + n, (size_t)(TRACE_LINE_BYTES_MAX - n), fmt, args);
    va_end(args);
    if (t->sink)
        t->sink(t->sink_ctx, level, line);
}
