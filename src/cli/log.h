/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_LOG_H
#define SL_CLI_LOG_H

#include "base/attr.h"
#include "io/io.h"

/*
 * The log of `serve`, on standard error: events of the broker as text or JSON (base/logline.h), and
 * sentences about the start and the end. Where standard error is systemd's journal, each line has
 * its priority in front (sd-daemon(3)), and text leaves the time to the journal.
 */
struct cli_log {
    struct io *io; /* NULL: no time is known yet */
    bool is_json;
    bool is_journal;
};

/* `journal_stream` is the environment's JOURNAL_STREAM; may be NULL. */
void cli_log_init(struct cli_log *log, struct io *io, bool is_json, const char *journal_stream);
/* A trace_sink_fn; ctx is the log. Any thread. */
void cli_log_line(void *ctx, enum trace_level level, const char *line);
/* A sentence for people: "strandline serve: ..." as text, an event in JSON. */
void cli_log_say(struct cli_log *log, enum trace_level level, const char *event, const char *fmt,
                 ...) printf_like(4, 5);

#endif
