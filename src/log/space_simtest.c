/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full disk: a producer that never stops, on a small simulated disk. When there is no room
 * appends are refused or taken back; retention makes room, and the log goes on. Whatever was
 * acknowledged and not deleted must be there, and offsets that were taken back are given out again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim.h"
#include "log/log_int.h"

#define INFLIGHT 16
#define BATCH_BYTES 3000
#define OFFSETS_MAX 4096

struct fixture {
    struct io *io;
    struct io_loop *loop;
    struct log_dir *dir;
    struct log_loaded *loaded;
    struct log *log;
    struct topic_config config;
    struct io_timer timer;
    int32_t sequence;
    int32_t acked_sequence[OFFSETS_MAX]; /* by offset; -1 */
    int32_t given_sequence[OFFSETS_MAX];
    int64_t told_ack;
    int64_t goal;
    int refused;    /* by log_append */
    int taken_back; /* after it */
    int32_t epoch;
    bool is_waiting;
};

static void go_on(struct fixture *f);

static struct io_buf *make(struct fixture *f)
{
    static const uint8_t value[BATCH_BYTES];
    struct batch_spec spec = batch_spec_default();
    struct record r = {.timestamp = 1, .value = {.p = value, .n = BATCH_BYTES}, .key = {.n = -1}};
    struct batch_builder b;
    struct buf out = {.p = NULL};
    struct io_buf *buf;

    spec.producer_id = 1;
    spec.producer_epoch = 0;
    spec.base_sequence = f->sequence;
    batch_builder_init(&b, &spec);
    assert_int_equal(batch_builder_append(&b, &r), ERR_NONE);
    batch_builder_finish(&b, &out);
    batch_builder_fini(&b);
    buf = io_buf_new(NULL, out.n);
    memcpy(buf->data, out.p, out.n);
    buf_fini(&out);
    return buf;
}

static enum err append(struct fixture *f)
{
    struct io_buf *buf = make(f);
    struct log_append a = {
        .buf = buf,
        .batch = buf->data,
        .n = (int32_t)buf->size,
        .max_timestamp = 1,
        .leader_epoch = f->epoch,
        .now_ms = 1,
    };
    enum err err = log_append(f->log, &a);

    io_buf_unref(buf);
    if (!err) {
        assert_false(a.is_duplicate);
        assert_true(a.base_offset < OFFSETS_MAX);
        f->given_sequence[a.base_offset] = f->sequence++;
    }
    return err;
}

static void timer_done(struct io_op *op)
{
    struct fixture *f = CONTAINER_OF(CONTAINER_OF(op, struct io_timer, op), struct fixture, timer);

    f->is_waiting = false;
    go_on(f);
}

static void closed(void *ctx, enum err err)
{
    struct fixture *f = ctx;

    assert_int_equal(err, ERR_NONE);
    io_stop(f->io);
}

/* Half of the log may go; the files do within a tick or two. */
static void make_room(struct fixture *f)
{
    if (f->is_waiting)
        return;
    f->is_waiting = true;
    f->config.retention_bytes = log_size_bytes(f->log) / 2;
    log_set_config(f->log, &f->config);
    (void)log_apply_retention(f->log, 1, 1000);
    f->timer.op.done = timer_done;
    io_timer_set(f->loop, &f->timer, io_loop_mono_ns(f->loop) + (int64_t)4000000000);
}

static void go_on(struct fixture *f)
{
    if (log_ack_offset(f->log) >= f->goal) {
        log_close(f->log, closed, f);
        f->goal = INT64_MAX;
    }
    if (f->goal == INT64_MAX)
        return;
    while (!f->is_waiting && log_end_offset(f->log) - log_ack_offset(f->log) < INFLIGHT) {
        if (f->sequence % 7 == 0)
            log_begin_epoch(f->log, ++f->epoch); /* Some begin in what is taken back. */
        enum err err = append(f);
        if (!err)
            continue;
        assert_int_equal(err, ERR_NO_SPACE);
        f->refused++;
        make_room(f);
    }
}

static void advanced(void *ctx)
{
    struct fixture *f = ctx;

    for (; f->told_ack < log_ack_offset(f->log); f->told_ack++)
        f->acked_sequence[f->told_ack] = f->given_sequence[f->told_ack];
    log_set_high_watermark(f->log, log_ack_offset(f->log));
    go_on(f);
}

static void failed(void *ctx, enum err err, int64_t from_offset)
{
    struct fixture *f = ctx;

    assert_int_equal(err, ERR_NO_SPACE);
    assert_int_equal(from_offset, log_end_offset(f->log));
    assert_int_equal(from_offset, log_ack_offset(f->log));
    assert_int_equal(log_latest_epoch(f->log), f->epoch);
    f->sequence = f->given_sequence[from_offset];
    f->taken_back++;
    if (f->goal == INT64_MAX)
        return; /* Closing. */
    assert_int_equal(append(f), ERR_NO_SPACE);
    f->refused++;
    make_room(f);
}

static void begin(void *ctx)
{
    static const struct log_events events = {.advanced = advanced, .failed = failed};
    struct fixture *f = ctx;

    f->log = log_own(f->loaded, f->loop, &events, f);
    log_dir_start(f->dir, f->loop);
    f->told_ack = log_ack_offset(f->log);
    log_set_high_watermark(f->log, f->told_ack);
    log_begin_epoch(f->log, ++f->epoch);
    go_on(f);
}

static void check(struct fixture *f)
{
    struct log_loaded *l = f->loaded;
    int64_t next = l->segments[0].segment->base_offset;

    for (size_t i = 0; i < l->segment_count; i++) {
        struct header_walk w;
        header_walk_init(&w, l->segments[i].segment->log, 0, l->segments[i].size, LOG_BLOCKING);
        while (header_walk_next(&w) == ERR_NONE) {
            assert_int_equal(w.header.base_offset, next);
            assert_int_equal(w.header.base_sequence, f->acked_sequence[next]);
            next++;
        }
    }
    assert_int_equal(next, l->end);
    assert_int_equal(next, f->told_ack);
}

static void live(struct fixture *f, struct sim_host *host, bool is_first, int64_t goal)
{
    struct log_dir_identity identity = {
        .cluster_id = STR_LIT("c"), .node_id = 1, .cluster_id_new = STR_LIT("c"), .node_id_new = 1};
    struct log_load_report report = {.damage = NULL};
    struct log_dir_found found;
    struct log_load_args args = {.topic = "t", .config = f->config, .now_ms = 1};
    char *message;

    f->io = sim_process_start(host, NULL, NULL, NULL);
    assert_int_equal(log_dir_open(f->io, "/data", &identity, &f->dir, &found, &message), ERR_NONE);
    args.io = f->io;
    args.dir = f->dir;
    if (is_first)
        assert_int_equal(log_create(&args, &f->loaded), ERR_NONE);
    else
        assert_int_equal(log_load(&args, &f->loaded, &report), ERR_NONE);
    assert_null(report.damage);
    log_dir_found_free(&found);
    check(f);
    f->goal = goal;
    f->loop = io_loop_new(f->io, "control", begin, f);
    io_run(f->io);
    log_dir_close(f->dir);
    io_free(f->io);
}

static void a_full_disk_takes_back_and_goes_on(void **state)
{
    struct sim_options options = {.disk_bytes = 400 * 1024};
    struct fixture *f = xcalloc(1, sizeof(*f));

    (void)state;
    f->config = (struct topic_config){
        .cleanup_policy = TOPIC_CLEANUP_DELETE,
        .retention_ms = -1,
        .retention_bytes = -1,
        .segment_bytes = 30000,
        .segment_ms = INT64_MAX,
        .segment_index_bytes = 1 << 20,
        .index_interval_bytes = 4096,
        .max_compaction_lag_ms = INT64_MAX,
        .flush_on_ack = true,
        .flush_messages = INT64_MAX,
    };
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct sim_world *w = sim_world_new(seed, &options);
        struct sim_host *host = sim_host_new(w, "a");
        f->epoch = -1;
        f->sequence = 0;
        f->told_ack = 0;
        live(f, host, true, 500);
        live(f, host, false, 1000);
        live(f, host, false, 1001);
        sim_world_free(w);
    }
    printf("%d refused, %d taken back\n", f->refused, f->taken_back);
    assert_true(f->refused > 8 && f->taken_back > 8);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_takes_back_and_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
