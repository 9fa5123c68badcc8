/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_TRACE_H
#define SL_BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

/*
 * What happened, one logfmt line per event: trace_info("topic.created", "topic=%s partitions=%d").
 * Each loop, lane and worker has a struct trace that io makes current while it runs; a line goes
 * to its sink when the level allows, and into a ring of recent lines that a failed assertion
 * prints. Lines hold no pointers and no wall time of their own (the sink adds it), so a simulated
 * run prints the same text every time. With no current trace an event is dropped.
 */
enum trace_level {
    TRACE_ERROR = 0,
    TRACE_WARN = 1,
    TRACE_INFO = 2,
    TRACE_DEBUG = 3,
};

#define TRACE_LINE_BYTES_MAX 512
#define TRACE_RING_LINES 64

/* Prints one finished line (no newline). Runs on the thread that traced. */
typedef void (*trace_sink_fn)(void *ctx, enum trace_level level, const char *line);

struct trace {
    enum trace_level level; /* lines above it are dropped */
    trace_sink_fn sink;     /* NULL: ring only */
    void *sink_ctx;
    uint64_t count;                     /* lines recorded */
    char (*ring)[TRACE_LINE_BYTES_MAX]; /* TRACE_RING_LINES lines, made at the first event */
};

void trace_init(struct trace *t, enum trace_level level, trace_sink_fn sink, void *sink_ctx);
void trace_fini(struct trace *t);
/* Makes t (or none, with NULL) the calling thread's trace and returns the one before. */
struct trace *trace_set_current(struct trace *t);
/* Writes the current thread's recent lines to a descriptor; async-signal-safe. */
void trace_dump(int fd);

void trace_event(enum trace_level level, const char *event, const char *fmt, ...) printf_like(3, 4);

#define trace_error(event, ...) trace_event(TRACE_ERROR, event, __VA_ARGS__)
#define trace_warn(event, ...) trace_event(TRACE_WARN, event, __VA_ARGS__)
#define trace_info(event, ...) trace_event(TRACE_INFO, event, __VA_ARGS__)
#define trace_debug(event, ...) trace_event(TRACE_DEBUG, event, __VA_ARGS__)

#endif
