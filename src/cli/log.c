/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines on standard error. Each is made whole first and written by one call, because several
 * threads have something to say.
 */
#include "cli/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/logline.h"

/* Priorities of syslog(3), which the journal takes from the start of a line. */
static const char *priority(enum trace_level level)
{
    switch (level) {
    case TRACE_ERROR: return "<3>";
    case TRACE_WARN: return "<4>";
    case TRACE_INFO: return "<6>";
    case TRACE_DEBUG: return "<7>";
    }
    return "";
}

void cli_log_init(struct cli_log *log, struct io *io, bool is_json, const char *journal_stream)
{
    *log = (struct cli_log){
        .io = io,
        .is_json = is_json,
        .is_journal = journal_stream && io_stderr_is(io, journal_stream),
    };
}

static void put(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

static void begin(const struct cli_log *log, struct buf *b, enum trace_level level)
{
    if (log->is_journal)
        put(b, priority(level));
}

static void end(struct buf *b)
{
    fwrite(b->p, 1, b->n, stderr);
    buf_fini(b);
}

void cli_log_line(void *ctx, enum trace_level level, const char *line)
{
    const struct cli_log *log = ctx;
    int64_t wall_ms = log->io ? io_wall_ms(log->io) : -1;
    struct buf b = {0};

    begin(log, &b, level);
    if (log->is_json)
        logline_json(&b, level, wall_ms, line);
    else
        logline_text(&b, level, log->is_journal ? -1 : wall_ms, line);
    end(&b);
}

void cli_log_say(struct cli_log *log, enum trace_level level, const char *event, const char *fmt,
                 ...)
{
    struct buf b = {0};
    char *text;
    va_list args;

    va_start(args, fmt);
    text = xvasprintf(fmt, args);
    va_end(args);
    begin(log, &b, level);
    if (log->is_json) {
        logline_json_message(&b, level, log->io ? io_wall_ms(log->io) : -1, event, text);
    } else {
        put(&b, level == TRACE_WARN ? "strandline serve: warning: " : "strandline serve: ");
        put(&b, text);
        put(&b, "\n");
    }
    free(text);
    end(&b);
}
