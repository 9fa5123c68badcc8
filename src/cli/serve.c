/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline serve`: configuration from Kafka's file, Kafka's environment variables and the
 * command line, in this order; then one broker until SIGTERM. The one line on standard output that
 * contains "ready" is for programs: it says the address that clients should use and how long the
 * start took. Everything else goes to standard error.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/broker.h"
#include "cli/cli.h"
#include "http/http.h"

#define CONFIG_FILE_BYTES_MAX (1024 * 1024)
#define IMPORT_FILE_BYTES_MAX (256 * 1024 * 1024)

static const char help[] =
    "usage: strandline serve [--config FILE] [--set KEY=VALUE]... [--import FILE] [--ephemeral]\n"
    "                        [--verbose]\n"
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
    "\n"
    "With http.address=HOST:PORT it answers /healthz, /readyz and /metrics there; --ephemeral\n"
    "takes a free port for that.\n"
    "KAFKA_* variables count as in Apache Kafka's container image: KAFKA_LOG_DIRS is log.dirs.\n"
    "Port 0 takes a free port. The line with 'ready' on standard output says the address.\n";

struct serve {
    struct io *io;
    struct broker *broker;
    struct http *http; /* NULL: without */
    struct config *config;
    char *ephemeral_dir; /* NULL: the data stays */
    char *import;        /* the text of a file; NULL: none */
    const char *import_file;
    size_t import_n;
    bool is_verbose;
    int status;
};

extern char **environ;

/* ---- what the broker reports ------------------------------------------------------------ */

static void print_trace(void *ctx, enum trace_level level, const char *line)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    struct serve *s = ctx;

    fprintf(stderr, "time=%lld level=%s event=%s\n", (long long)(s->io ? io_wall_ms(s->io) : 0),
            names[level], line);
}

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
}

static void progress(void *ctx, int64_t bytes, int32_t loaded, int32_t total)
{
    (void)ctx;
    fprintf(stderr, "recovering: %d of %d partitions, %lld MiB scanned\n", loaded, total,
            (long long)(bytes >> 20));
}

static void stopped(void *ctx, enum err err, const char *why)
{
    struct serve *s = ctx;

    if (err)
        s->status = cli_fail("serve", "stopped: %s: %s", why, err_text(err));
}

/* ---- settings --------------------------------------------------------------------------- */

static int load_file(struct serve *s, const char *path)
{
    char *text = NULL;
    size_t n = 0;
    char *message = NULL;
    enum err err = io_file_read_all(s->io, path, CONFIG_FILE_BYTES_MAX, &text, &n);

    if (err)
        return cli_fail("serve", "cannot read %s: %s", path, err_text(err));
    err =
        config_load_properties(s->config, (struct str){.p = text, .n = (int32_t)n}, path, &message);
    free(text);
    if (err) {
        cli_fail("serve", "%s", message);
        free(message);
    }
    return err ? 1 : 0;
}

static int load_environment(struct serve *s)
{
    char *message = NULL;

    if (!config_load_environment(s->config, (const char *const *)environ, &message))
        return 0;
    cli_fail("serve", "%s", message);
    free(message);
    return 1;
}

static int load_setting(struct serve *s, const char *setting)
{
    char *message = NULL;

    if (!config_load_setting(s->config, str_of(setting), &message))
        return 0;
    cli_fail("serve", "%s", message);
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
    return err ? cli_fail("serve", "cannot read %s: %s", path, err_text(err)) : 0;
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
        return cli_fail("serve", "cannot make the directory %s: %s", s->ephemeral_dir,
                        err_text(err));
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
        cli_fail("serve", "%s", message);
        free(message);
        return 1;
    }
    warning = config_warning(s->config);
    if (warning)
        fprintf(stderr, "strandline serve: warning: %s\n", warning);
    free(warning);
    return 0;
}

/* Files, then environment, then --set: the last one wins, wherever it stands. */
static int parse(struct serve *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"set", required_argument, NULL, 's'},
        {"ephemeral", no_argument, NULL, 'e'},
        {"verbose", no_argument, NULL, 'v'},
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
            s->is_verbose = true;
        else
            status = o == 'h' ? -1 : EXIT_USAGE;
    }
    if (!status && optind < argc) {
        cli_fail("serve", "unexpected argument '%s'; see 'strandline serve --help'", argv[optind]);
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

static void remove_tree(struct io *io, const char *path)
{
    struct io_names names = {0};
    struct io_stat st;

    if (io_path_stat(io, path, &st))
        return;
    if (!st.is_dir) {
        if (io_path_unlink(io, path))
            cli_fail("serve", "cannot remove %s", path);
        return;
    }
    if (!io_dir_list(io, path, &names)) {
        for (size_t i = 0; i < names.n; i++) {
            char *child = xasprintf("%s/%s", path, names.v[i]);

            remove_tree(io, child);
            free(child);
        }
        io_names_free(&names);
    }
    if (io_dir_remove(io, path))
        cli_fail("serve", "cannot remove %s", path);
}

static void fail(char *message)
{
    cli_fail("serve", "%s", message ? message : "cannot start");
    free(message);
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
        .stopped = stopped,
        .ctx = s,
    };
    char *message = NULL;

    if (broker_open(&args, &s->broker, &message)) {
        fail(message);
        return 1;
    }
    if (open_http(s, &message)) {
        fail(message);
        s->status = 1;
    } else {
        io_run(s->io);
    }
    http_close(s->http);
    broker_close(s->broker);
    return s->status;
}

int serve_run(int argc, char **argv)
{
    struct serve s = {0};
    struct io_options options = {.trace_level = TRACE_INFO, .trace_sink = print_trace};
    int status;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--verbose") == 0 || strcmp(argv[i], "-v") == 0)
            options.trace_level = TRACE_DEBUG;
    options.trace_ctx = &s;
    s.io = io_new(&options);
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
        remove_tree(s.io, s.ephemeral_dir);
    free(s.ephemeral_dir);
    free(s.import);
    io_free(s.io);
    return status;
}
