/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_LOGLINE_H
#define SL_BASE_LOGLINE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/trace.h"

/*
 * A traced line ("topic.created topic=t partitions=3") as a line of a log. Pure: any thread.
 *
 *   text  time=2026-01-02T03:04:05.678Z level=info event=topic.created topic=t partitions=3
 *   JSON  {"time":"2026-01-02T03:04:05.678Z","level":"info","module":"topic",
 *          "event":"topic.created","topic":"t","partitions":3}
 *
 * The module is the first word of the event. What peers have put into a value cannot break the
 * line: control characters are escaped, and bytes that are not UTF-8 are replaced in JSON.
 */

const char *trace_level_name(enum trace_level level);

/* `wall_ms`: since 1970; negative: no time is printed. Appends, with the newline. */
void logline_text(struct buf *to, enum trace_level level, int64_t wall_ms, const char *line);
void logline_json(struct buf *to, enum trace_level level, int64_t wall_ms, const char *line);
/* The same for a sentence that is for people; in JSON its key is "message". */
void logline_json_message(struct buf *to, enum trace_level level, int64_t wall_ms,
                          const char *event, const char *message);

#endif
