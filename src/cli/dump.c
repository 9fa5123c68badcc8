/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline dump`: shows and checks the files of a log directory. It works on files alone, of a
 * broker that has stopped or of a copy; those of a running broker may seem cut at their ends.
 *
 * A directory stands for all the files in it that have a meaning, and for the partitions in it.
 * What a file is follows from its name. Every file is checked as it is shown; a problem is one line
 * on standard error, and any problem makes the exit status 1.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/dump_int.h"
#include "log/inspect.h"

static const char help[] =
    "usage: strandline dump [OPTION]... PATH...\n"
    "\n"
    "Shows and checks segments, indexes, leader epochs, producer snapshots and checkpoints. PATH "
    "is\n"
    "a file, the directory of a partition, or a log directory with all its partitions.\n"
    "\n"
    "  --records   show records too, and not only batches\n"
    "  --verify    show nothing but problems and one line at the end\n"
    "  --json      one JSON object a line\n"
    "\n"
    "The exit status is 1 if anything is wrong. Stop the broker first, or use a copy.\n";

#define SMALL_FILE_BYTES_MAX (64 * 1024 * 1024)
#define PROGRESS_NS 500000000

/* ---- Lines. */

static void put(struct dump *d, const char *text)
{
    buf_append(&d->line, text, strlen(text));
}

static void put_name(struct dump *d, const char *name)
{
    put(d, d->is_json ? (d->is_first_field ? "\"" : ", \"") : " ");
    put(d, name);
    put(d, d->is_json ? "\": " : "=");
    d->is_first_field = false;
}

void row_begin(struct dump *d, const char *kind)
{
    buf_reset(&d->line);
    d->is_first_field = true;
    if (!d->is_json) {
        put(d, kind);
        return;
    }
    put(d, "{");
    put_name(d, "kind");
    put(d, "\"");
    put(d, kind);
    put(d, "\"");
}

void row_int(struct dump *d, const char *name, int64_t value)
{
    char text[24];

    put_name(d, name);
    snprintf(text, sizeof(text), "%lld", (long long)value);
    put(d, text);
}

/* Bytes that are not printable ASCII become \u00xx in both forms: nothing is lost. */
void row_str(struct dump *d, const char *name, struct str value)
{
    put_name(d, name);
    if (value.n < 0) {
        put(d, "null");
        return;
    }
    put(d, "\"");
    for (int32_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        char text[8];

        if (c < ' ' || c > '~')
            snprintf(text, sizeof(text), "\\u%04x", c);
        else
            snprintf(text, sizeof(text), "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
        put(d, text);
    }
    put(d, "\"");
}

void row_end(struct dump *d)
{
    if (d->only_verifies)
        return;
    put(d, d->is_json ? "}\n" : "\n");
    fwrite(d->line.p, 1, d->line.n, stdout);
}

void dump_problem(struct dump *d, const char *fmt, ...)
{
    va_list args;

    d->problems++;
    fflush(stdout);
    fprintf(stderr, "strandline dump: %s: ", d->path);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

/* ---- Small files. */

static void show_checkpoint(void *ctx, const char *topic, int32_t partition, int64_t offset)
{
    struct dump *d = ctx;

    row_begin(d, "checkpoint");
    row_str(d, "topic", str_of(topic));
    row_int(d, "partition", partition);
    row_int(d, "offset", offset);
    row_end(d);
}

static void show_epoch(void *ctx, int32_t epoch, int64_t start_offset)
{
    struct dump *d = ctx;

    row_begin(d, "epoch");
    row_int(d, "epoch", epoch);
    row_int(d, "start_offset", start_offset);
    row_end(d);
}

static void show_producer(void *ctx, const struct inspect_producer *p)
{
    struct dump *d = ctx;

    row_begin(d, "producer");
    row_int(d, "producer_id", p->producer_id);
    row_int(d, "epoch", p->epoch);
    row_int(d, "last_sequence", p->last_sequence);
    row_int(d, "first_offset", p->first_offset);
    row_int(d, "last_offset", p->last_offset);
    row_int(d, "last_timestamp", p->last_timestamp);
    row_int(d, "coordinator_epoch", p->coordinator_epoch);
    row_int(d, "txn_first_offset", p->txn_first_offset);
    row_end(d);
}

static void check_small(struct dump *d, enum err err)
{
    if (err)
        dump_problem(d, "is damaged: %s", err_text(err));
}

static char *read_small(struct dump *d, size_t *n)
{
    char *content = NULL;
    enum err err = io_file_read_all(d->io, d->path, SMALL_FILE_BYTES_MAX, &content, n);

    if (!err)
        return content;
    dump_problem(d, "cannot be read: %s", err_text(err));
    return NULL;
}

static void dump_checkpoint(struct dump *d, int64_t base)
{
    size_t n;
    char *text = read_small(d, &n);

    (void)base;
    if (text)
        check_small(d, inspect_checkpoint((struct str){text, (int32_t)n}, show_checkpoint, d));
    free(text);
}

static void dump_epochs(struct dump *d, int64_t base)
{
    size_t n;
    char *text = read_small(d, &n);

    (void)base;
    if (text)
        check_small(d, inspect_epochs((struct str){text, (int32_t)n}, show_epoch, d));
    free(text);
}

static void dump_producers(struct dump *d, int64_t base, bool is_ours)
{
    size_t n;
    char *text = read_small(d, &n);
    int64_t offset;

    if (!text)
        return;
    check_small(d, inspect_producers((struct bytes){(const uint8_t *)text, (int32_t)n}, is_ours,
                                     &offset, show_producer, d));
    if (offset >= 0 && offset != base)
        dump_problem(d, "says that it is of offset %lld", (long long)offset);
    free(text);
}

static void dump_snapshot(struct dump *d, int64_t base)
{
    dump_producers(d, base, false);
}

static void dump_own_producers(struct dump *d, int64_t base)
{
    dump_producers(d, base, true);
}

/* key=value or key: value, one a line. */
static void dump_properties(struct dump *d, int64_t base)
{
    size_t n;
    char *text = read_small(d, &n);

    (void)base;
    for (char *line = text; line && *line;) {
        size_t length = strcspn(line, "\n");
        size_t key = strcspn(line, "=:");
        size_t value = key + 1 + strspn(line + MIN(key + 1, length), " ");

        if (line[0] != '#' && key < length) {
            line[key] = '\0';
            row_begin(d, "property");
            row_str(d, "key", str_of(line));
            row_str(d, "value", (struct str){line + value, (int32_t)length - (int32_t)value});
            row_end(d);
        }
        line += length;
        line += *line == '\n';
    }
    free(text);
}

/* ---- What a file is. */

static const struct kind {
    const char *suffix; /* behind twenty digits, or the whole name */
    bool is_whole_name;
    void (*dump)(struct dump *d, int64_t base);
} kinds[] = {
    {".log", false, dump_segment},
    {".index", false, dump_index},
    {".timeindex", false, dump_timeindex},
    {".txnindex", false, dump_txnindex},
    {".snapshot", false, dump_snapshot},
    {".producers", false, dump_own_producers},
    {"leader-epoch-checkpoint", true, dump_epochs},
    {"recovery-point-offset-checkpoint", true, dump_checkpoint},
    {"replication-offset-checkpoint", true, dump_checkpoint},
    {"log-start-offset-checkpoint", true, dump_checkpoint},
    {"cleaner-offset-checkpoint", true, dump_checkpoint},
    {"meta.properties", true, dump_properties},
    {"partition.metadata", true, dump_properties},
};

#define OFFSET_DIGITS 20

static const struct kind *kind_of(const char *name, int64_t *base)
{
    *base = 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct kind *k = &kinds[i];

        if (k->is_whole_name && strcmp(name, k->suffix) == 0)
            return k;
        if (!k->is_whole_name && strlen(name) == OFFSET_DIGITS + strlen(k->suffix) &&
            strcmp(name + OFFSET_DIGITS, k->suffix) == 0 &&
            !str_to_i64((struct str){name, OFFSET_DIGITS}, base) && *base >= 0)
            return k;
    }
    return NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void show_progress(struct dump *d)
{
    int64_t now_ns = io_mono_ns(d->io);

    if (!isatty(STDERR_FILENO) || !d->only_verifies || now_ns < d->progress_ns)
        return;
    d->progress_ns = now_ns + PROGRESS_NS;
    fprintf(stderr, "%lld files, %lld MiB\n", (long long)d->files, (long long)(d->bytes >> 20));
}

static void dump_file(struct dump *d, const struct kind *kind, const char *path, int64_t base)
{
    d->path = path;
    d->files++;
    row_begin(d, "file");
    row_str(d, "path", str_of(path));
    row_end(d);
    kind->dump(d, base);
    show_progress(d);
}

/* Partitions in a log directory: one level, so no loop of links can lead anywhere. */
static void dump_directory(struct dump *d, const char *path, int depth)
{
    struct io_names names = {0};
    enum err err = io_dir_list(d->io, path, &names);

    d->path = path;
    if (err)
        dump_problem(d, "cannot be read: %s", err_text(err));
    for (size_t i = 0; !err && i < names.n; i++) {
        char *child = xasprintf("%s/%s", path, names.v[i]);
        struct io_stat st;
        int64_t base;
        const struct kind *kind = kind_of(names.v[i], &base);

        if (kind)
            dump_file(d, kind, child, base);
        else if (depth == 0 && !io_path_stat(d->io, child, &st) && st.is_dir)
            dump_directory(d, child, depth + 1);
        free(child);
    }
    io_names_free(&names);
}

static void dump_path(struct dump *d, const char *path)
{
    struct io_stat st;
    int64_t base;
    const struct kind *kind = kind_of(base_name(path), &base);
    enum err err = io_path_stat(d->io, path, &st);

    d->path = path;
    if (err)
        dump_problem(d, "cannot be read: %s", err_text(err));
    else if (st.is_dir)
        dump_directory(d, path, 0);
    else if (kind)
        dump_file(d, kind, path, base);
    else
        dump_problem(d, "is no file that this command knows; its name says what a file is");
}

/* ---- Arguments. */

enum { OPTION_RECORDS = 1, OPTION_VERIFY, OPTION_JSON };

static const struct option options[] = {
    {"records", no_argument, NULL, OPTION_RECORDS},
    {"verify", no_argument, NULL, OPTION_VERIFY},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int run(struct dump *d, int count, char **paths)
{
    struct io_options io_options = {.trace_level = TRACE_ERROR};

    d->io = io_new(&io_options);
    for (int i = 0; i < count; i++)
        dump_path(d, paths[i]);
    io_free(d->io);
    buf_fini(&d->line);
    if (d->only_verifies)
        printf("%lld files, %lld batches, %lld records, %lld bytes: %lld problems\n",
               (long long)d->files, (long long)d->batches, (long long)d->records,
               (long long)d->bytes, (long long)d->problems);
    return d->problems ? EXIT_FAILURE : EXIT_SUCCESS;
}

int dump_run(int argc, char **argv)
{
    struct dump d = {0};
    int o;

    while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (o == 'h') {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        if (o == '?') {
            fprintf(stderr, "'strandline dump --help' explains the options\n");
            return EXIT_USAGE;
        }
        d.shows_records = d.shows_records || o == OPTION_RECORDS;
        d.only_verifies = d.only_verifies || o == OPTION_VERIFY;
        d.is_json = d.is_json || o == OPTION_JSON;
    }
    if (optind == argc) {
        cli_fail("dump", "say which files or directories; 'strandline dump --help' explains");
        return EXIT_USAGE;
    }
    return run(&d, argc - optind, argv + optind);
}
