/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline produce`: each line of a file or of standard input becomes a record.
 *
 * Standard input may be a terminal or a slow pipe, and the loop must not wait for it: a job reads a
 * piece at a time, the loop cuts it into lines. When the producer is full, the rest of the piece
 * waits for room, and nothing more is read meanwhile. At the end of the input everything is
 * flushed; the exit status is 0 only if every record was acknowledged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "cli/tool.h"
#include "client/admin.h"
#include "client/producer.h"

static const char help[] =
    "usage: strandline produce TOPIC [OPTION]...\n"
    "\n"
    "Sends each line of standard input as a record.\n"
    "\n"
    "  --file FILE             read from a file instead\n"
    "  --whole                 the whole input is one record\n"
    "  --key-separator TEXT    the line is key, separator, value; \\t is a tab\n"
    "  --key TEXT              the key of every record\n"
    "  --null-value TEXT       a value that is equal to this is null (a tombstone)\n"
    "  --header KEY=VALUE      a header of every record; may be repeated\n"
    "  --partition N           all into one partition [murmur2 of the key, else sticky]\n"
    "  --timestamp MS          of every record, in ms since 1970 [now]\n"
    "  --acks all|1|0          who has to have a record before it counts [all]\n"
    "  --compression CODEC     none, gzip, snappy, lz4 or zstd [none]\n"
    "  --no-idempotence        without protection against doubles (implied by acks 1 and 0)\n"
    "  --batch-size BYTES      [131072]     --linger-ms MS      [5]\n"
    "  --json                  print partition and offset of every record, one object a "
    "line\n" TOOL_OPTIONS_HELP;

#define CHUNK_BYTES 65536
#define BATCH_BYTES                                                                                \
    131072 /* whole files are the rule here: 16384 would be eight times the syncs                  \
            */
#define HEADERS_MAX 64
#define INPUT_WAIT_MS 50
#define PROGRESS_NS 1000000000

struct produce {
    struct tool tool;
    struct admin_op greeting;
    struct producer *producer;
    struct producer_config config;
    struct producer_record record; /* what all records have in common */
    struct producer_header headers[HEADERS_MAX];
    const char *file;
    struct str separator; /* null: lines have no keys */
    struct str null_value;
    bool is_whole;
    /* input */
    struct io_job job;
    int64_t file_pos;
    uint8_t chunk[CHUNK_BYTES];
    size_t chunk_n; /* results of the job */
    enum err chunk_err;
    struct buf text; /* read and not yet sent; a record starts at `at` */
    size_t at;
    bool is_at_end;
    /* results */
    int64_t sent;
    int64_t stored;
    int64_t line;
    int64_t progress_ns;
    int64_t start_ns;
};

static struct produce *produce_of(struct tool *t)
{
    return CONTAINER_OF(t, struct produce, tool);
}

/* ---- Progress and the end. */

static int64_t now_ns(const struct produce *s)
{
    return io_mono_ns(s->tool.io);
}

static void show_progress(struct produce *s)
{
    if (now_ns(s) < s->progress_ns || !isatty(STDERR_FILENO) || isatty(STDIN_FILENO))
        return;
    s->progress_ns = now_ns(s) + PROGRESS_NS;
    fprintf(stderr, "\r%lld records sent, %lld acknowledged", (long long)s->sent,
            (long long)s->stored);
}

static void stored(void *ctx, const struct producer_result *r)
{
    struct produce *s = ctx;

    if (s->tool.has_ended)
        return;
    if (r->err) {
        tool_fail_err(&s->tool, r->err, r->message, "a record for %.*s was not stored (%lld were)",
                      STR_ARG(r->topic), (long long)s->stored);
        return;
    }
    s->stored++;
    if (s->tool.is_json)
        printf("{\"partition\": %d, \"offset\": %lld, \"timestamp\": %lld}\n", r->partition,
               (long long)r->offset, (long long)r->timestamp);
    show_progress(s);
}

static void flushed(void *ctx)
{
    struct produce *s = ctx;
    double seconds = (double)(now_ns(s) - s->start_ns) / 1e9;

    if (isatty(STDERR_FILENO))
        fprintf(stderr, "%s%lld records in %.1f s\n", s->progress_ns ? "\r" : "",
                (long long)s->stored, seconds);
    tool_end(&s->tool, EXIT_SUCCESS);
}

/* ---- From text to records. */

/* False: the key and value cannot be told apart. */
static bool split_line(const struct produce *s, struct str line, struct producer_record *r)
{
    const char *found;

    r->value = (struct bytes){(const uint8_t *)line.p, line.n};
    if (s->separator.n > 0) {
        found = memmem(line.p, (size_t)line.n, s->separator.p, (size_t)s->separator.n);
        if (!found)
            return false;
        r->key = (struct bytes){(const uint8_t *)line.p, (int32_t)(found - line.p)};
        r->value.p = (const uint8_t *)found + s->separator.n;
        r->value.n = line.n - r->key.n - s->separator.n;
    }
    if (s->null_value.n >= 0 &&
        str_eq((struct str){(const char *)r->value.p, r->value.n}, s->null_value))
        r->value = bytes_null();
    return true;
}

/* False: wait for room, or everything has ended. */
static bool send_line(struct produce *s, struct str line)
{
    struct producer_record r = s->record;
    enum err err;

    if (!split_line(s, line, &r)) {
        tool_fail(&s->tool, "line %lld has no key separator '%.*s'", (long long)s->line + 1,
                  STR_ARG(s->separator));
        return false;
    }
    err = producer_send(s->producer, &r, stored, s);
    if (err == ERR_AGAIN)
        return false;
    if (err) {
        tool_fail_err(&s->tool, err, str_null(), "line %lld of %d bytes cannot be sent",
                      (long long)s->line + 1, line.n);
        return false;
    }
    s->line++;
    s->sent++;
    return true;
}

/* The next record of the text; false when there is none yet. */
static bool next_line(struct produce *s, struct str *line, size_t *end)
{
    const uint8_t *p = s->text.p + s->at;
    size_t left = s->text.n - s->at;
    const uint8_t *newline = left && !s->is_whole ? memchr(p, '\n', left) : NULL;

    if (!newline && (!s->is_at_end || left == 0))
        return false;
    *end = newline ? s->at + (size_t)(newline - p) + 1 : s->text.n;
    *line = (struct str){(const char *)p, (int32_t)(newline ? newline - p : (int64_t)left)};
    return true;
}

static void read_more(struct produce *s);

static void send_lines(void *ctx)
{
    struct produce *s = ctx;
    struct str line;
    size_t end;

    while (!s->tool.has_ended && next_line(s, &line, &end)) {
        if (!send_line(s, line))
            return;
        s->at = end;
    }
    if (s->tool.has_ended)
        return;
    if (s->is_at_end)
        producer_flush(s->producer, flushed, s);
    else
        read_more(s);
}

/* ---- Reading. */

/* Opened for each piece, so that no handle has an owner between jobs. */
static enum err read_file(struct produce *s)
{
    struct io_file *file;
    enum err err = io_file_open(s->tool.io, s->file, IO_OPEN_READ, &file);

    if (err)
        return err;
    err = io_file_read(file, s->chunk, sizeof(s->chunk), s->file_pos, &s->chunk_n);
    io_file_unref(file);
    s->file_pos += (int64_t)s->chunk_n;
    return err || s->chunk_n > 0 ? err : ERR_EOF;
}

/* A job, so that it may wait; not longer than it is wanted. */
static void read_chunk(struct io_job *job)
{
    struct produce *s = CONTAINER_OF(job, struct produce, job);

    s->chunk_n = 0;
    do
        s->chunk_err = s->file ? read_file(s)
                               : io_stdin_read(s->tool.io, s->chunk, sizeof(s->chunk),
                                               INPUT_WAIT_MS, &s->chunk_n);
    while (s->chunk_err == ERR_AGAIN && !atomic_load(&job->cancel));
}

static void chunk_read(struct io_job *job)
{
    struct produce *s = CONTAINER_OF(job, struct produce, job);

    if (s->tool.has_ended)
        return;
    if (s->chunk_err && s->chunk_err != ERR_EOF) {
        tool_fail(&s->tool, "cannot read %s: %s", s->file ? s->file : "standard input",
                  err_text(s->chunk_err));
        return;
    }
    s->is_at_end = s->chunk_err == ERR_EOF;
    buf_append(&s->text, s->chunk, s->chunk_n);
    send_lines(s);
}

static void read_more(struct produce *s)
{
    if (s->at > 0)
        memmove(s->text.p, s->text.p + s->at, s->text.n - s->at);
    s->text.n -= s->at;
    s->at = 0;
    if (s->text.n > (size_t)s->config.max_request_size) {
        tool_fail(&s->tool, "line %lld is longer than %d bytes", (long long)s->line + 1,
                  s->config.max_request_size);
        return;
    }
    s->job.run = read_chunk;
    s->job.done = chunk_read;
    io_job_submit(s->tool.loop, &s->job);
}

/* Somebody answers; whether the topic is there is the producer's business, as it may be made. */
static void greeted(struct admin_op *op)
{
    struct produce *s = CONTAINER_OF(op, struct produce, greeting);
    struct tool *t = &s->tool;
    enum err err;

    if (op->err) {
        tool_fail_err(t, op->err, str_null(), "cannot write at %s", t->bootstrap_server);
        return;
    }
    s->config.request_timeout_ms = t->timeout_ms;
    s->config.delivery_timeout_ms = t->timeout_ms + s->config.linger_ms;
    err = producer_open(t->client, &s->config, &s->producer);
    if (err) {
        tool_fail(t, "the settings contradict each other or are out of range");
        return;
    }
    producer_on_room(s->producer, send_lines, s);
    s->start_ns = now_ns(s);
    read_more(s);
}

static void start(struct tool *t)
{
    struct produce *s = produce_of(t);

    s->greeting.done = greeted;
    s->greeting.timeout_ms = t->timeout_ms;
    admin_describe_topics(t->client, &s->greeting, &s->record.topic, 1);
}

static void stopping(struct tool *t)
{
    struct produce *s = produce_of(t);

    atomic_store(&s->job.cancel, true);
    admin_op_fini(&s->greeting);
    producer_close(s->producer);
    s->producer = NULL;
}

/* ---- Arguments. */

enum {
    OPTION_FILE = 1,
    OPTION_WHOLE,
    OPTION_SEPARATOR,
    OPTION_KEY,
    OPTION_NULL,
    OPTION_HEADER,
    OPTION_PARTITION,
    OPTION_TIMESTAMP,
    OPTION_ACKS,
    OPTION_COMPRESSION,
    OPTION_NO_IDEMPOTENCE,
    OPTION_BATCH,
    OPTION_LINGER,
};

static const struct option options[] = {
    {"file", required_argument, NULL, OPTION_FILE},
    {"whole", no_argument, NULL, OPTION_WHOLE},
    {"key-separator", required_argument, NULL, OPTION_SEPARATOR},
    {"key", required_argument, NULL, OPTION_KEY},
    {"null-value", required_argument, NULL, OPTION_NULL},
    {"header", required_argument, NULL, OPTION_HEADER},
    {"partition", required_argument, NULL, OPTION_PARTITION},
    {"timestamp", required_argument, NULL, OPTION_TIMESTAMP},
    {"acks", required_argument, NULL, OPTION_ACKS},
    {"compression", required_argument, NULL, OPTION_COMPRESSION},
    {"no-idempotence", no_argument, NULL, OPTION_NO_IDEMPOTENCE},
    {"batch-size", required_argument, NULL, OPTION_BATCH},
    {"linger-ms", required_argument, NULL, OPTION_LINGER},
    TOOL_OPTIONS,
};

static bool take_acks(struct produce *s, const char *text)
{
    if (strcmp(text, "all") == 0 || strcmp(text, "-1") == 0) {
        s->config.acks = PRODUCER_ACKS_ALL;
        return true;
    }
    s->config.enable_idempotence = false;
    s->config.acks = strcmp(text, "1") == 0 ? 1 : 0;
    if (s->config.acks == 1 || strcmp(text, "0") == 0)
        return true;
    s->tool.status = tool_usage(&s->tool, "--acks is '%s', but has to be all, 1 or 0", text);
    return false;
}

static bool take_header(struct produce *s, const char *text)
{
    struct producer_header *h = &s->headers[s->record.header_count];
    struct str value;

    if (s->record.header_count == HEADERS_MAX) {
        s->tool.status = tool_usage(&s->tool, "more than %d headers", HEADERS_MAX);
        return false;
    }
    if (!tool_key_value(&s->tool, text, &h->key, &value))
        return false;
    h->value = (struct bytes){(const uint8_t *)value.p, value.n};
    s->record.headers = s->headers;
    s->record.header_count++;
    return true;
}

static bool take_number(struct produce *s, int o, const char *text)
{
    int64_t n;

    switch (o) {
    case OPTION_PARTITION:
        if (!tool_number(&s->tool, "--partition", text, 0, INT32_MAX, &n))
            return false;
        s->record.partition = (int32_t)n;
        return true;
    case OPTION_TIMESTAMP:
        return tool_number(&s->tool, "--timestamp", text, 0, INT64_MAX, &s->record.timestamp);
    case OPTION_BATCH:
        if (!tool_number(&s->tool, "--batch-size", text, 0, s->config.max_request_size, &n))
            return false;
        s->config.batch_size = (int32_t)n;
        return true;
    default:
        if (!tool_number(&s->tool, "--linger-ms", text, 0, INT32_MAX / 2, &n))
            return false;
        s->config.linger_ms = (int32_t)n;
        return true;
    }
}

static bool take_option(struct produce *s, int o)
{
    switch (o) {
    case OPTION_FILE: s->file = optarg; return true;
    case OPTION_WHOLE: s->is_whole = true; return true;
    case OPTION_SEPARATOR:
        s->separator = strcmp(optarg, "\\t") == 0 ? STR_LIT("\t") : str_of(optarg);
        return true;
    case OPTION_KEY:
        s->record.key = (struct bytes){(const uint8_t *)optarg, (int32_t)strlen(optarg)};
        return true;
    case OPTION_NULL: s->null_value = str_of(optarg); return true;
    case OPTION_HEADER: return take_header(s, optarg);
    case OPTION_ACKS: return take_acks(s, optarg);
    case OPTION_NO_IDEMPOTENCE: s->config.enable_idempotence = false; return true;
    case OPTION_COMPRESSION:
        if (codec_from_name(str_of(optarg), &s->config.compression_type))
            return true;
        s->tool.status = tool_usage(
            &s->tool, "--compression is '%s', but has to be none, gzip, snappy, lz4 or zstd",
            optarg);
        return false;
    default: return take_number(s, o, optarg);
    }
}

static int run(struct produce *s, int argc, char **argv)
{
    if (argc - optind != 1)
        return tool_usage(&s->tool, "say the name of one topic");
    s->record.topic = str_of(argv[optind]);
    return tool_run(&s->tool);
}

int produce_run(int argc, char **argv)
{
    struct produce *s = xcalloc(1, sizeof(*s));
    int status;
    int o;

    s->tool = tool_default("produce", help, start);
    s->tool.auto_create = true;
    s->tool.stopping = stopping;
    s->config = producer_config_default();
    s->config.batch_size = BATCH_BYTES;
    s->record = producer_record_default();
    s->separator = s->null_value = str_null();
    while ((o = tool_getopt(&s->tool, argc, argv, options)) >= 0 && take_option(s, o))
        continue;
    status = o == -1 ? run(s, argc, argv) : s->tool.status;
    buf_fini(&s->text);
    free(s);
    return status;
}
