/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_LOG_LIFE_TEST_H
#define SL_LOG_LIFE_TEST_H

/*
 * Lives of a log on the real implementation of io: a life opens a directory, owns one log on the
 * only loop, and calls the test's step at the beginning and whenever the log has something to say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "log/log_int.h"

#define T0 1700000000000

struct fixture {
    char path[64];
    struct topic_config config;
    struct io *io;
    struct io_loop *loop;
    struct log_dir *dir;
    struct log_loaded *loaded;
    struct log *log;
    struct log_load_report report;
    struct log_dir_found found;
    void (*step)(struct fixture *f);
    int stage;
    enum err err; /* of the last done or failed */
    int32_t sequence;
    int64_t producer_id;
    struct io_job job;
    struct log_snapshot *snapshot;
    int64_t answer[3];
    void (*begin_reader)(struct io *io); /* on a second loop, if any */
    bool is_cutting, wants_clean;
};

static inline int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    snprintf(f->path, sizeof(f->path), "/tmp/strandline-log-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    f->producer_id = -1;
    f->config = (struct topic_config){
        .cleanup_policy = TOPIC_CLEANUP_DELETE,
        .retention_ms = -1,
        .retention_bytes = -1,
        .segment_bytes = 4000,
        .segment_ms = INT64_MAX,
        .segment_index_bytes = 1 << 20,
        .index_interval_bytes = 300,
        .max_message_bytes = 1 << 20,
        .max_compaction_lag_ms = INT64_MAX,
        .flush_on_ack = true,
        .flush_messages = INT64_MAX,
        .flush_ms = INT64_MAX,
    };
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    char *command = xasprintf("rm -rf %s", f->path);

    assert_int_equal(system(command), 0);
    free(command);
    free(f);
    return 0;
}

/* ---- A life ----------------------------------------------------------------------------- */

static inline void on_advanced(void *ctx)
{
    struct fixture *f = ctx;

    f->step(f);
}

static inline void on_failed(void *ctx, enum err err, int64_t from_offset)
{
    struct fixture *f = ctx;

    (void)from_offset;
    f->err = err;
    f->step(f);
}

static inline void on_done(void *ctx, enum err err)
{
    struct fixture *f = ctx;

    f->err = err;
    f->step(f);
}

static inline void on_closed(void *ctx, enum err err)
{
    struct fixture *f = ctx;

    f->log = NULL;
    f->err = err;
    io_stop(f->io);
}

static inline void close_log(struct fixture *f)
{
    log_close(f->log, on_closed, f);
}

static inline void begin(void *ctx)
{
    static const struct log_events events = {.advanced = on_advanced, .failed = on_failed};
    struct fixture *f = ctx;

    f->log = log_own(f->loaded, f->loop, &events, f);
    log_dir_start(f->dir, f->loop);
    f->step(f);
}

static inline void load(struct fixture *f)
{
    struct log_load_args args = {
        .io = f->io,
        .dir = f->dir,
        .topic = "t",
        .partition = 3,
        .topic_id = uuid_from_random(1, 2),
        .config = f->config,
        .now_ms = T0,
    };

    if (f->found.n == 0)
        assert_int_equal(log_create(&args, &f->loaded), ERR_NONE);
    else
        assert_int_equal(log_load(&args, &f->loaded, &f->report), ERR_NONE);
}

static inline void live(struct fixture *f, void (*step)(struct fixture *f))
{
    struct log_dir_identity identity = {
        .cluster_id = STR_LIT("c"),
        .node_id = 1,
        .cluster_id_new = STR_LIT("c"),
        .node_id_new = 1,
    };
    struct io_options options = {.trace_level = TRACE_ERROR};
    char *message;

    f->io = io_new(&options);
    f->step = step;
    f->stage = 0;
    free(f->report.damage);
    memset(&f->report, 0, sizeof(f->report));
    assert_int_equal(log_dir_open(f->io, f->path, &identity, &f->dir, &f->found, &message),
                     ERR_NONE);
    load(f);
    f->loop = io_loop_new(f->io, "control", begin, f);
    if (f->begin_reader)
        f->begin_reader(f->io);
    io_run(f->io);
    log_dir_close(f->dir);
    io_free(f->io);
    log_dir_found_free(&f->found);
    free(f->report.damage);
    f->report.damage = NULL;
}

/* A life in a process of its own, which the step ends by die: as kill -9 does. */
static inline void live_and_die(struct fixture *f, void (*step)(struct fixture *f))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        live(f, step);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static inline void die(void)
{
    _exit(0);
}

/* ---- Appending -------------------------------------------------------------------------- */

struct wanted_batch {
    int count;
    int64_t timestamp;
    bool is_transactional;
    int32_t epoch;
};

static inline struct io_buf *make(struct fixture *f, struct wanted_batch want)
{
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    struct buf out;
    struct io_buf *buf;

    spec.producer_id = f->producer_id;
    spec.producer_epoch = f->producer_id < 0 ? -1 : 0;
    spec.base_sequence = f->producer_id < 0 ? -1 : f->sequence;
    spec.is_transactional = want.is_transactional;
    batch_builder_init(&b, &spec);
    buf_init(&out);
    for (int i = 0; i < want.count; i++) {
        static const char value[100];
        struct record r = {
            .timestamp = want.timestamp + i,
            .key = {.p = (const uint8_t *)"key", .n = 3},
            .value = {.p = (const uint8_t *)value, .n = 100},
        };
        assert_int_equal(batch_builder_append(&b, &r), ERR_NONE);
    }
    batch_builder_finish(&b, &out);
    batch_builder_fini(&b);
    buf = io_buf_new(NULL, out.n);
    memcpy(buf->data, out.p, out.n);
    buf_fini(&out);
    return buf;
}

static inline enum err append_buf(struct fixture *f, struct io_buf *buf, enum log_origin origin,
                                  int32_t epoch, struct log_append *a)
{
    struct batch_header h;

    assert_int_equal(
        batch_header_parse((struct bytes){.p = buf->data, .n = (int32_t)buf->size}, &h), ERR_NONE);
    *a = (struct log_append){
        .buf = buf,
        .batch = buf->data,
        .n = (int32_t)buf->size,
        .max_timestamp = h.max_timestamp,
        .origin = origin,
        .leader_epoch = epoch,
        .now_ms = T0,
    };
    return log_append(f->log, a);
}

static inline void append(struct fixture *f, struct wanted_batch want)
{
    struct io_buf *buf = make(f, want);
    struct log_append a;

    assert_int_equal(append_buf(f, buf, LOG_ORIGIN_CLIENT, want.epoch, &a), ERR_NONE);
    assert_false(a.is_duplicate);
    f->sequence += want.count;
    io_buf_unref(buf);
}

static inline void append_marker(struct fixture *f, enum control_type type)
{
    struct control_spec spec = {
        .type = type,
        .producer_id = f->producer_id,
        .timestamp_ms = T0,
    };
    struct buf out = {.p = NULL};
    struct log_append a;
    struct io_buf *buf;

    batch_build_control(&spec, &out);
    buf = io_buf_new(NULL, out.n);
    memcpy(buf->data, out.p, out.n);
    assert_int_equal(append_buf(f, buf, LOG_ORIGIN_COORDINATOR, 0, &a), ERR_NONE);
    io_buf_unref(buf);
    buf_fini(&out);
}

static inline bool all_acked(struct fixture *f)
{
    if (log_ack_offset(f->log) < log_end_offset(f->log))
        return false;
    log_set_high_watermark(f->log, log_ack_offset(f->log));
    return true;
}

static inline void append_many(struct fixture *f, int n)
{
    for (int i = 0; i < n; i++)
        append(f, (struct wanted_batch){.count = 1 + i % 3, .timestamp = T0 + 1000 * i});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
