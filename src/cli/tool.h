/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_TOOL_H
#define SL_CLI_TOOL_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "cli/cli.h"
#include "client/client.h"
#include "io/io.h"

/*
 * What the commands that talk to a cluster have in common: options, one loop, one client, errors in
 * one line, and the end. A command embeds struct tool, parses its arguments, and calls tool_run,
 * which calls `start` on the loop; whoever finds that all is done, or that nothing more can be
 * done, calls tool_end or tool_fail, once.
 */
struct admin_op;

struct tool {
    const char *command; /* "topics" */
    const char *help;    /* text of --help */
    void (*start)(struct tool *t);
    const char *bootstrap_server;
    int32_t timeout_ms; /* for the whole of a small operation */
    bool is_json;
    bool auto_create; /* metadata requests may create topics */
    int status;
    bool has_ended;
    struct io *io;
    struct io_loop *loop;
    struct client *client;
    struct io_msg ending;
    void (*stopping)(struct tool *t); /* closes what stands on the client; may be NULL */
};

/* Options of every tool: add TOOL_OPTIONS to the table; tool_option handles what is not below
 * TOOL_OPTION_BASE. */
enum tool_option {
    TOOL_OPTION_BASE = 1000,
    TOOL_BOOTSTRAP,
    TOOL_TIMEOUT,
    TOOL_JSON,
};

#define TOOL_OPTIONS                                                                               \
    {"bootstrap-server", required_argument, NULL, TOOL_BOOTSTRAP},                                 \
        {"timeout-ms", required_argument, NULL, TOOL_TIMEOUT},                                     \
        {"json", no_argument, NULL, TOOL_JSON}, {"help", no_argument, NULL, 'h'},                  \
    {                                                                                              \
        0                                                                                          \
    }

#define TOOL_OPTIONS_HELP                                                                          \
    "  --bootstrap-server HOST:PORT,...   where to begin [localhost:9092]\n"                       \
    "  --timeout-ms MS                    give up after this long [30000]\n"

struct tool tool_default(const char *command, const char *help, void (*start)(struct tool *t));
/*
 * The next option of its own (getopt_long's result), -1 at the end; common ones are taken care of.
 * TOOL_STOP: t->status is the exit status: help was printed, or the usage was wrong.
 */
#define TOOL_STOP (-2)
int tool_getopt(struct tool *t, int argc, char **argv, const struct option *options);
/* Prints what is wrong with the arguments; returns EXIT_USAGE. */
int tool_usage(const struct tool *t, const char *fmt, ...) printf_like(2, 3);
/* A number of an option within [min, max]; false after having said what is wrong. */
bool tool_number(struct tool *t, const char *option, const char *text, int64_t min, int64_t max,
                 int64_t *out);
/* "key=value" cut at the first '='; false after having said what is wrong. */
bool tool_key_value(struct tool *t, const char *text, struct str *key, struct str *value);

/* Runs the loop until the tool has ended; returns the exit status. */
int tool_run(struct tool *t);
void tool_end(struct tool *t, int status);
/* Prints one line to standard error and ends with status 1. */
void tool_fail(struct tool *t, const char *fmt, ...) printf_like(2, 3);
/* The same with what an error means and what to do about it. `what`: "cannot create topic x". */
void tool_fail_err(struct tool *t, enum err err, struct str message, const char *fmt, ...)
    printf_like(4, 5);
/* The line alone: there is more to be done. Who calls it ends with status 1 later. */
void tool_warn_err(const struct tool *t, enum err err, struct str message, const char *fmt, ...)
    printf_like(4, 5);
/*
 * Ends the tool if the operation, or any of its results, has failed: one line for each. `verb`:
 * "create topic". False then.
 */
bool tool_check(struct tool *t, const struct admin_op *op, const char *verb);

/* Standard output as JSON: takes the reference. */
struct json_t; /* jansson's */
void tool_print_json(struct json_t *value);
/* A string or null. */
struct json_t *tool_json_of(struct str s);

#endif
