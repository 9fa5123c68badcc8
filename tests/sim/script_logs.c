/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is on the brokers' disks at some moment of a scenario, looked at by another process of the
 * machine, and the end that all scenarios have: whatever has happened, the replicas get in sync
 * again without help and have the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "script.h"

#define LOG_BYTES_MAX ((size_t)1 << 20)
#define LOG_DIR "/data/t-0"

void script_each_record(struct bytes batches, int64_t offset,
                        void (*see)(struct script *s, const struct record *r), struct script *s)
{
    struct record_iter it;
    struct batch_header h;
    int32_t at = 0;

    record_iter_init(&it);
    while (at < batches.n) {
        struct bytes rest = {.p = batches.p + at, .n = batches.n - at};
        struct record r;
        enum err err;

        if (batch_header_parse(rest, &h) || batch_total_bytes(&h) > rest.n)
            break;
        rest.n = batch_total_bytes(&h);
        at += rest.n;
        if (!batch_crc_ok(rest))
            script_fail(s, "the batch at %lld is damaged", (long long)h.base_offset);
        err = record_iter_batch(&it, rest);
        while (!err && !(err = record_iter_next(&it, &r)))
            if (r.offset >= offset)
                see(s, &r);
        assert(err == ERR_EOF);
    }
    record_iter_fini(&it);
}

static void add_value(struct script *s, const struct record *r)
{
    size_t used = strlen(s->text);

    snprintf(s->text + used, sizeof(s->text) - used, used ? " %.*s" : "%.*s", r->value.n,
             (const char *)r->value.p);
}

static bool read_log(struct script *s, int id, struct buf *out)
{
    struct io *io = sim_process_start(script_node(s, id)->host, NULL, NULL, NULL);
    bool is_there = log_read_whole(io, "t", 0, out);

    io_free(io);
    return is_there;
}

void script_holds(struct script *s, int id, const char *values)
{
    struct buf log = {0};
    char found[SCRIPT_TEXT_MAX];

    read_log(s, id, &log);
    s->text[0] = '\0';
    script_each_record(buf_bytes(&log, 0), 0, add_value, s);
    snprintf(found, sizeof(found), "%s", s->text);
    if (strcmp(found, values) != 0)
        script_fail(s, "broker %d has \"%s\" on its disk, and not \"%s\"", id, found, values);
    buf_fini(&log);
}

static char *path_of(struct io *io, const char *suffix)
{
    struct io_names names;
    char *path = NULL;
    enum err err = io_dir_list(io, LOG_DIR, &names);

    assert(!err);
    for (size_t i = 0; i < names.n && !path; i++)
        if (strstr(names.v[i], suffix))
            path = xasprintf(LOG_DIR "/%s", names.v[i]);
    io_names_free(&names);
    assert(path);
    return path;
}

void script_damage(struct script *s, int id, const char *value)
{
    struct sim_host *host = script_node(s, id)->host;
    struct io *io = sim_process_start(host, NULL, NULL, NULL);
    char *path = path_of(io, ".log");
    char *text;
    char *at;
    size_t size;
    enum err err = io_file_read_all(io, path, LOG_BYTES_MAX, &text, &size);

    assert(!err);
    at = memmem(text, size, value, strlen(value));
    assert(at);
    tell(&s->run, "a bit flips on the disk of broker %d, in %s", id, value);
    err = sim_disk_damage(host, path, at - text, 1);
    assert(!err);
    free(text);
    free(path);
    io_free(io);
}

void script_tear(struct script *s, int id, const char *name)
{
    struct io *io = sim_process_start(script_node(s, id)->host, NULL, NULL, NULL);
    char *path = path_of(io, name);
    char *text;
    size_t size;
    enum err err = io_file_read_all(io, path, LOG_BYTES_MAX, &text, &size);

    assert(!err);
    tell(&s->run, "%s of broker %d is cut in the middle", name, id);
    err = io_file_replace(io, path, (struct bytes){(const uint8_t *)text, (int32_t)(size / 2)});
    assert(!err);
    free(text);
    free(path);
    io_free(io);
}

void script_ends(struct script *s, const char *values)
{
    script_heal(s);
    for (int id = 1; id <= NODES; id++)
        if (!node_lives(script_node(s, id)))
            script_start(s, id);
    for (int id = 1; id <= NODES; id++)
        script_await(s, id, s->whole);
    script_reads(s, s->leader, values);
    for (int id = 1; id <= NODES; id++)
        script_stop(s, id);
    for (int id = 1; id <= NODES; id++)
        if (strchr(s->whole, '0' + id))
            script_holds(s, id, values);
    logs_compare(&s->run);
    if (run_is_over(&s->run))
        script_fail(s, "%s", s->run.violation);
}
