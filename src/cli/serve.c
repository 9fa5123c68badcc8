/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline serve`: configuration from Kafka's file, Kafka's environment variables and the
 * command line, in this order; then one broker until SIGTERM. The one line on standard output that
 * contains "ready" is for programs: it says the address that clients should use and how long the
 * start took. Everything else goes to standard error.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/broker.h"
#include "cli/cli.h"
#include "cli/log.h"
#include "cli/notify.h"
#include "http/http.h"

#define CONFIG_FILE_BYTES_MAX (1024 * 1024)
#define IMPORT_FILE_BYTES_MAX (256 * 1024 * 1024)

static const char help[] =
    "usage: strandline serve [--config FILE] [--set KEY=VALUE]... [--import FILE] [--ephemeral]\n"
    "                        [--verbose] [--log-format text|json]\n"
    "\n"
    "Runs a broker. Without arguments it listens on localhost:9092 and keeps its data in\n"
    "./strandline-data.\n"
    "\n"
    "  --config FILE    settings from a file in the syntax of Kafka's server.properties\n"
    "  --set KEY=VALUE  one setting; overrides the file and the environment\n"
    "  --import FILE    adopt topics that are found in the log directories and not known, with\n"
    "                   the configurations that FILE lists: what configs describe --json, Kafka's\n"
    "                   kafka-configs.sh --describe or kafka-topics.sh --describe printed\n"
    "  --ephemeral      keep everything in a temporary directory, deleted at exit\n"
    "  --verbose        log more (connections, requests that fail)\n"
    "  --log-format F   text or json: one line an event on standard error\n"
    "\n"
    "With http.address=HOST:PORT it answers /healthz, /readyz and /metrics there; --ephemeral\n"
    "takes a free port for that.\n"
    "KAFKA_* variables count as in Apache Kafka's container image: KAFKA_LOG_DIRS is log.dirs.\n"
    "Port 0 takes a free port. The line with 'ready' on standard output says the address.\n";

struct serve {
    struct io *io;
    struct broker *broker;
    struct http *http; /* NULL: without */
    struct cli_log log;
    struct notify notify;
    struct config *config;
    char *ephemeral_dir; /* NULL: the data stays */
    char *import;        /* the text of a file; NULL: none */
    const char *import_file;
    size_t import_n;
    int status;
};

extern char **environ;

/* Says on the log why the command has failed. */
static printf_like(2, 3) int fail(struct serve *s, const char *fmt, ...)
{
    va_list args;
    char *text;

    va_start(args, fmt);
    text = xvasprintf(fmt, args);
    va_end(args);
    cli_log_say(&s->log, TRACE_ERROR, "serve.failed", "%s", text);
    free(text);
    return 1;
}

/* ---- what the broker reports ------------------------------------------------------------ */

static void ready(void *ctx, const struct broker_ready *r)
{
    struct serve *s = ctx;
    double ms = (double)(io_mono_ns(s->io) - r->start_ns) / 1e6;

    printf("strandline %s ready on %s in %.1f ms: %d topics, %d partitions, %s", STRANDLINE_VERSION,
           r->address, ms, r->topics, r->partitions,
           r->was_clean ? "clean start" : "recovered after an unclean stop");
    if (!r->was_clean)
        printf(" (%lld bytes scanned, %lld cut)", (long long)r->bytes_scanned,
               (long long)r->bytes_cut);
    if (r->damaged > 0)
        printf(", %d damaged partitions", r->damaged);
    if (s->http)
        printf(", %s", http_url(s->http));
    printf("\n");
    fflush(stdout);
    notify_ready(&s->notify, r->address);
}

static void progress(void *ctx, int64_t bytes, int32_t loaded, int32_t total)
{
    struct serve *s = ctx;

    trace_info("broker.recovering", "loaded=%d partitions=%d scanned_bytes=%lld", loaded, total,
               (long long)bytes);
    notify_progress(&s->notify, bytes, loaded, total);
}

static void stopping(void *ctx, const char *why)
{
    struct serve *s = ctx;

    notify_stopping(&s->notify, why);
}

static void stopped(void *ctx, enum err err, const char *why)
{
    struct serve *s = ctx;

    if (err)
        s->status = fail(s, "stopped: %s: %s", why, err_text(err));
}

/* ---- settings --------------------------------------------------------------------------- */

static int load_file(struct serve *s, const char *path)
{
    char *text = NULL;
    size_t n = 0;
    char *message = NULL;
    enum err err = io_file_read_all(s->io, path, CONFIG_FILE_BYTES_MAX, &text, &n);

    if (err)
        return fail(s, "cannot read %s: %s", path, err_text(err));
    err =
        config_load_properties(s->config, (struct str){.p = text, .n = (int32_t)n}, path, &message);
    free(text);
    if (err) {
        fail(s, "%s", message);
        free(message);
    }
    return err ? 1 : 0;
}

static int load_environment(struct serve *s)
{
    char *message = NULL;

    if (!config_load_environment(s->config, (const char *const *)environ, &message))
        return 0;
    fail(s, "%s", message);
    free(message);
    return 1;
}

static int load_setting(struct serve *s, const char *setting)
{
    char *message = NULL;

    if (!config_load_setting(s->config, str_of(setting), &message))
        return 0;
    fail(s, "%s", message);
    free(message);
    return 1;
}

static int load_import(struct serve *s, const char *path)
{
    enum err err;

    free(s->import);
    s->import = NULL;
    s->import_file = path;
    err = io_file_read_all(s->io, path, IMPORT_FILE_BYTES_MAX, &s->import, &s->import_n);
    return err ? fail(s, "cannot read %s: %s", path, err_text(err)) : 0;
}

static int make_ephemeral(struct serve *s)
{
    const char *tmp = getenv("TMPDIR");
    char *setting;
    uint64_t random;
    int status;
    enum err err;

    io_random(s->io, &random, sizeof(random));
    s->ephemeral_dir =
        xasprintf("%s/strandline-%016llx", tmp ? tmp : "/tmp", (unsigned long long)random);
    err = io_dir_make(s->io, s->ephemeral_dir);
    if (err)
        return fail(s, "cannot make the directory %s: %s", s->ephemeral_dir, err_text(err));
    setting = xasprintf("log.dirs=%s", s->ephemeral_dir);
    status = load_setting(s, setting);
    free(setting);
    if (!status && config_source_of(s->config, CONFIG_HTTP_ADDRESS) == CONFIG_SOURCE_DEFAULT)
        status = load_setting(s, "http.address=127.0.0.1:0");
    return status;
}

static int finish_settings(struct serve *s)
{
    char *message = NULL;
    char *warning;

    if (config_validate(s->config, &message)) {
        fail(s, "%s", message);
        free(message);
        return 1;
    }
    warning = config_warning(s->config);
    if (warning)
        cli_log_say(&s->log, TRACE_WARN, "config.without_effect", "%s", warning);
    free(warning);
    return 0;
}

static int check_log_format(struct serve *s, const char *format)
{
    if (strcmp(format, "text") == 0 || strcmp(format, "json") == 0)
        return 0;
    fail(s, "there is no log format '%s': text or json", format);
    return EXIT_USAGE;
}

/* Files, then environment, then --set: the last one wins, wherever it stands. */
static int parse(struct serve *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"set", required_argument, NULL, 's'},
        {"ephemeral", no_argument, NULL, 'e'},
        {"verbose", no_argument, NULL, 'v'},
        {"log-format", required_argument, NULL, 'l'},
        {"import", required_argument, NULL, 'i'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    const char **settings = xcalloc((size_t)argc, sizeof(*settings));
    bool ephemeral = false;
    int count = 0;
    int status = 0;
    int o;

    while (!status && (o = getopt_long(argc, argv, "c:s:i:evh", options, NULL)) != -1) {
        if (o == 'c')
            status = load_file(s, optarg);
        else if (o == 's')
            settings[count++] = optarg;
        else if (o == 'i')
            status = load_import(s, optarg);
        else if (o == 'e')
            ephemeral = true;
        else if (o == 'v')
            continue; /* As --log-format: see look_ahead. */
        else if (o == 'l')
            status = check_log_format(s, optarg);
        else
            status = o == 'h' ? -1 : EXIT_USAGE;
    }
    if (!status && optind < argc) {
        fail(s, "unexpected argument '%s'; see 'strandline serve --help'", argv[optind]);
        status = EXIT_USAGE;
    }
    if (!status)
        status = load_environment(s);
    for (int i = 0; i < count && !status; i++)
        status = load_setting(s, settings[i]);
    if (!status && ephemeral)
        status = make_ephemeral(s);
    free(settings);
    return status ? status : finish_settings(s);
}

/* ---- running ---------------------------------------------------------------------------- */

static void remove_tree(struct serve *s, const char *path)
{
    struct io *io = s->io;
    struct io_names names = {0};
    struct io_stat st;

    if (io_path_stat(io, path, &st))
        return;
    if (!st.is_dir) {
        if (io_path_unlink(io, path))
            fail(s, "cannot remove %s", path);
        return;
    }
    if (!io_dir_list(io, path, &names)) {
        for (size_t i = 0; i < names.n; i++) {
            char *child = xasprintf("%s/%s", path, names.v[i]);

            remove_tree(s, child);
            free(child);
        }
        io_names_free(&names);
    }
    if (io_dir_remove(io, path))
        fail(s, "cannot remove %s", path);
}

/* The port for probes, before anything is recovered: they can tell slow from broken. */
static enum err open_http(struct serve *s, char **message)
{
    struct http_args args = {
        .io = s->io,
        .broker = s->broker,
        .version = STRANDLINE_VERSION,
        .partitions_max = config_i32(s->config, CONFIG_HTTP_PARTITION_METRICS_MAX),
    };

    if (!config_http_address(s->config, &args.host, &args.port))
        return ERR_NONE;
    return http_open(&args, &s->http, message);
}

static int run(struct serve *s)
{
    struct broker_args args = {
        .io = s->io,
        .config = s->config,
        .software = "strandline " STRANDLINE_VERSION,
        .import = s->import ? (struct str){.p = s->import, .n = (int32_t)s->import_n} : str_null(),
        .import_file = s->import_file,
        .ready = ready,
        .progress = progress,
        .stopping = stopping,
        .stopped = stopped,
        .ctx = s,
    };
    char *message = NULL;

    if (broker_open(&args, &s->broker, &message)) {
        fail(s, "%s", message ? message : "cannot start");
        free(message);
        return 1;
    }
    if (open_http(s, &message)) {
        s->status = fail(s, "%s", message);
        free(message);
    } else {
        io_run(s->io);
    }
    http_close(s->http);
    broker_close(s->broker);
    return s->status;
}

/* What the log looks like has to be known before anything can be said on it. */
static void look_ahead(int argc, char **argv, enum trace_level *level, bool *is_json)
{
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--verbose") == 0 || strcmp(argv[i], "-v") == 0)
            *level = TRACE_DEBUG;
        if (strcmp(argv[i], "--log-format=json") == 0 ||
            (strcmp(argv[i], "--log-format") == 0 && strcmp(next, "json") == 0))
            *is_json = true;
    }
}

int serve_run(int argc, char **argv)
{
    struct serve s = {0};
    struct io_options options = {
        .trace_level = TRACE_INFO,
        .trace_sink = cli_log_line,
        .trace_ctx = &s.log,
    };
    bool is_json = false;
    int status;

    look_ahead(argc, argv, &options.trace_level, &is_json);
    s.io = io_new(&options);
    cli_log_init(&s.log, s.io, is_json, getenv("JOURNAL_STREAM"));
    notify_init(&s.notify, s.io, getenv("NOTIFY_SOCKET"));
    s.config = config_new();
    status = parse(&s, argc, argv);
    if (status == -1) {
        fputs(help, stdout);
        status = 0;
    } else if (status) {
        if (status == EXIT_USAGE)
            fputs("see 'strandline serve --help'\n", stderr);
    } else {
        status = run(&s);
        s.config = NULL;
    }
    config_free(s.config);
    if (s.ephemeral_dir)
        remove_tree(&s, s.ephemeral_dir);
    free(s.ephemeral_dir);
    free(s.import);
    io_free(s.io);
    return status;
}
