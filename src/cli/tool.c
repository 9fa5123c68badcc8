/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the commands that talk to a cluster.
 *
 * A tool is impatient: while no broker has answered yet, one refused connection to each bootstrap
 * server ends it, because a person is waiting and the cause is known. Later it is as patient as any
 * client.
 *
 * The end is orderly even after an error: the client closes its connections, and then the loop
 * stops. So a leak is a mistake, and the sanitizers see it.
 */
#include "cli/tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "client/admin.h"
#include "io/io.h"

/* ---- Errors. */

/* What a user can do about it; NULL: nothing that we know. */
static const char *cure_of(enum err err)
{
    switch ((int)err) {
    case ERR_REFUSED:
    case ERR_NOT_FOUND:
    case ERR_RESET:
    case ERR_EOF: return "is a broker running there? --bootstrap-server HOST:PORT says where";
    case ERR_TIMEOUT:
    case ERR_REQUEST_TIMED_OUT:
        return "the broker is slow or cannot be reached; --timeout-ms gives it more time";
    case ERR_NETWORK_EXCEPTION:
        return "if the address that the broker advertises cannot be reached from here, set its "
               "advertised.listeners";
    case ERR_UNKNOWN_TOPIC_OR_PARTITION: return "'strandline topics list' shows what there is";
    case ERR_OFFSET_OUT_OF_RANGE: return "'--offset earliest' begins where the log does";
    case ERR_GROUP_ID_NOT_FOUND: return "'strandline groups list' shows what there is";
    case ERR_NON_EMPTY_GROUP:
    case ERR_GROUP_SUBSCRIBED_TO_TOPIC: return "stop its members first";
    case ERR_PREFERRED_LEADER_NOT_AVAILABLE:
        return "its broker is down, or its replica not in sync: 'strandline cluster --partitions "
               "--unhealthy' shows that";
    case ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE: return "start one of the brokers with a replica";
    case ERR_NO_REASSIGNMENT_IN_PROGRESS: return "'strandline reassign list' shows what is moving";
    case ERR_INVALID_REPLICA_ASSIGNMENT: return "'strandline cluster' shows the brokers";
    case ERR_TOPIC_ALREADY_EXISTS: return "'strandline topics describe' shows it";
    case ERR_UNSUPPORTED_VERSION: return "the broker is too old or too new for this command";
    case ERR_MALFORMED: return "is that a broker, and without TLS?";
    default: return NULL;
    }
}

printf_like(4, 0) static void print_failure(const struct tool *t, enum err err, struct str message,
                                            const char *fmt, va_list args)
{
    const char *cure = cure_of(err);
    bool is_told = message.n > 0;
    char what[512];

    vsnprintf(what, sizeof(what), fmt, args);
    fprintf(stderr, "strandline %s: %s: %.*s (%s)%s%s\n", t->command, what,
            is_told ? (int)message.n : (int)strlen(err_text(err)),
            is_told ? message.p : err_text(err), err_name(err), cure ? "; " : "", cure ? cure : "");
}

void tool_warn_err(const struct tool *t, enum err err, struct str message, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_failure(t, err, message, fmt, args);
    va_end(args);
}

void tool_fail_err(struct tool *t, enum err err, struct str message, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_failure(t, err, message, fmt, args);
    va_end(args);
    tool_end(t, EXIT_FAILURE);
}

void tool_fail(struct tool *t, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "strandline %s: ", t->command);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    tool_end(t, EXIT_FAILURE);
}

bool tool_check(struct tool *t, const struct admin_op *op, const char *verb)
{
    bool is_good = true;

    if (op->err) {
        tool_fail_err(t, op->err, str_null(), "cannot %s at %s", verb, t->bootstrap_server);
        return false;
    }
    for (int32_t i = 0; i < op->result_count; i++) {
        const struct admin_result *r = &op->results[i];

        if (!r->err)
            continue;
        is_good = false;
        tool_warn_err(t, r->err, r->message, "cannot %s %.*s", verb, STR_ARG(r->name));
    }
    if (!is_good)
        tool_end(t, EXIT_FAILURE);
    return is_good;
}

/* ---- Arguments. */

struct tool tool_default(const char *command, const char *help, void (*start)(struct tool *t))
{
    return (struct tool){
        .command = command,
        .help = help,
        .start = start,
        .bootstrap_server = "localhost:9092",
        .timeout_ms = 30000,
    };
}

int tool_usage(const struct tool *t, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "strandline %s: ", t->command);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "; 'strandline %s --help' explains\n", t->command);
    return EXIT_USAGE;
}

bool tool_number(struct tool *t, const char *option, const char *text, int64_t min, int64_t max,
                 int64_t *out)
{
    if (!str_to_i64(str_of(text), out) && *out >= min && *out <= max)
        return true;
    t->status = tool_usage(t, "%s is '%s', but has to be a number from %lld to %lld", option, text,
                           (long long)min, (long long)max);
    return false;
}

bool tool_key_value(struct tool *t, const char *text, struct str *key, struct str *value)
{
    const char *equals = strchr(text, '=');

    if (equals && equals != text) {
        *key = (struct str){text, (int32_t)(equals - text)};
        *value = str_of(equals + 1);
        return true;
    }
    t->status = tool_usage(t, "'%s' is not of the form key=value", text);
    return false;
}

int tool_getopt(struct tool *t, int argc, char **argv, const struct option *options)
{
    int64_t n;
    int o;

    for (;;) {
        o = getopt_long(argc, argv, "h", options, NULL);
        if (o == TOOL_BOOTSTRAP) {
            t->bootstrap_server = optarg;
        } else if (o == TOOL_JSON) {
            t->is_json = true;
        } else if (o == TOOL_TIMEOUT) {
            if (!tool_number(t, "--timeout-ms", optarg, 1, INT32_MAX, &n))
                return TOOL_STOP;
            t->timeout_ms = (int32_t)n;
        } else if (o == 'h') {
            fputs(t->help, stdout);
            t->status = EXIT_SUCCESS;
            return TOOL_STOP;
        } else if (o == '?') {
            fprintf(stderr, "'strandline %s --help' explains the options\n", t->command);
            t->status = EXIT_USAGE;
            return TOOL_STOP;
        } else {
            return o;
        }
    }
}

/* ---- Running. */

static void closed(void *ctx)
{
    struct tool *t = ctx;

    t->client = NULL;
    io_stop(t->io);
}

/* A message of its own: whoever called tool_end may stand inside what is closed here. */
static void close_all(struct io_msg *msg)
{
    struct tool *t = CONTAINER_OF(msg, struct tool, ending);

    if (t->stopping)
        t->stopping(t);
    if (t->client)
        client_close(t->client, closed, t);
    else
        io_stop(t->io);
}

void tool_end(struct tool *t, int status)
{
    if (t->has_ended)
        return;
    t->has_ended = true;
    t->status = status;
    t->ending.fn = close_all;
    io_post(t->loop, &t->ending);
}

static void started(void *ctx)
{
    struct tool *t = ctx;
    struct client_config config = client_config_default();

    config.bootstrap_servers = t->bootstrap_server;
    config.software_version = STRANDLINE_VERSION;
    config.is_impatient = true;
    config.allow_auto_create_topics = t->auto_create;
    config.request_timeout_ms = t->timeout_ms;
    if (client_open(t->loop, &config, &t->client)) {
        tool_fail(t, "'%s' is not a list of addresses; write host:port,host:port",
                  t->bootstrap_server);
        return;
    }
    t->start(t);
}

static void print_trace(void *ctx, enum trace_level level, const char *line)
{
    (void)ctx;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

int tool_run(struct tool *t)
{
    struct io_options options = {
        .trace_level = getenv("STRANDLINE_TRACE") ? TRACE_DEBUG : TRACE_ERROR,
        .trace_sink = print_trace,
    };

    t->io = io_new(&options);
    t->loop = io_loop_new(t->io, t->command, started, t);
    io_run(t->io);
    io_free(t->io);
    if (fflush(stdout) != 0 && t->status == EXIT_SUCCESS)
        t->status = cli_fail(t->command, "cannot write to standard output");
    return t->status;
}

void tool_print_json(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(value);
}

json_t *tool_json_of(struct str s)
{
    return str_is_null(s) ? json_null() : json_stringn(s.p, (size_t)s.n);
}
