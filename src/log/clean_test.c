/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What compaction keeps, rule by rule, on the real implementation of io.
 *
 * Logs are written and read as text. A script is a list of batches: `a=1+b=2` two records, `a=!` a
 * tombstone, `=5` a record without a key, `p7:a=1` from producer 7, `t7:a=1` in a transaction of
 * it, `t7:commit`, `t7:abort`; `/` rolls. What a log holds reads `{0 a=1 b=2}`: base offset, then
 * the records, with their offsets where a record before them is gone; `~` marks a delete horizon,
 * `{4..5}` is an emptied batch. Each run reads the log at every offset, after the run and again
 * after a restart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "log/clean_int.h"

#define T0 1700000000000
#define DAY_MS ((int64_t)86400000)
#define PRODUCERS 10

struct fixture {
    char path[64];
    struct topic_config config;
    struct log_clean_args args;
    const char *script;
    bool wants_clean;
    bool is_due; /* what log_dirt said */
    bool is_overdue;
    double ratio;
    enum err err; /* of log_clean */
    struct buf text;
    size_t segment_count;
    int64_t end;
    int64_t aborted;
    int64_t clean_offset;
    int64_t time_entries; /* of closed segments' time indexes */
    int64_t newest;       /* the offset of the record with the largest timestamp */
    int retired;          /* segments that retention took */
    int32_t sequence[PRODUCERS];
    int stage;
    void (*before_clean)(struct fixture *f);
    void (*beside_clean)(struct fixture *f);
    bool is_truncating; /* nothing is read then: it may be what is being cut */
    bool wants_dump;
    struct io *io;
    struct io_loop *loop;
    struct log_dir *dir;
    struct log_loaded *loaded;
    struct log *log;
    struct log_dir_found found;
    struct log_load_report report;
    struct io_msg poll;
    struct io_job job;
    struct log_snapshot *snapshot;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    snprintf(f->path, sizeof(f->path), "/tmp/strandline-clean-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    f->config = (struct topic_config){
        .cleanup_policy = TOPIC_CLEANUP_COMPACT,
        .retention_ms = -1,
        .retention_bytes = -1,
        .segment_bytes = 4000,
        .segment_ms = INT64_MAX,
        .segment_index_bytes = 1 << 20,
        .index_interval_bytes = 100,
        .max_message_bytes = 1 << 20,
        .delete_retention_ms = DAY_MS,
        .max_compaction_lag_ms = INT64_MAX,
        .flush_on_ack = true,
        .flush_messages = INT64_MAX,
        .flush_ms = INT64_MAX,
    };
    f->args = (struct log_clean_args){
        .now_ms = T0,
        .map_bytes = 1 << 20,
        .bytes_per_second = 1e300,
    };
    buf_init(&f->text);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char *command = xasprintf("rm -rf %s", f->path);

    assert_int_equal(system(command), 0);
    free(command);
    buf_fini(&f->text);
    free(f);
    return 0;
}

/* ---- Writing a script ------------------------------------------------------------------- */

static void append(struct fixture *f, const struct buf *b, int64_t timestamp,
                   enum log_origin origin)
{
    struct io_buf *buf = io_buf_new(NULL, b->n);
    struct log_append a = {
        .buf = buf,
        .batch = buf->data,
        .n = (int32_t)b->n,
        .max_timestamp = timestamp,
        .origin = origin,
        .leader_epoch = 0,
        .now_ms = f->args.now_ms,
    };

    memcpy(buf->data, b->p, b->n);
    assert_int_equal(log_append(f->log, &a), ERR_NONE);
    io_buf_unref(buf);
}

static void append_marker(struct fixture *f, int producer, bool is_abort)
{
    struct buf out = {.p = NULL};
    struct control_spec spec = {
        .type = is_abort ? CONTROL_ABORT : CONTROL_COMMIT,
        .producer_id = producer,
        .leader_epoch = 0,
        .timestamp_ms = f->args.now_ms,
    };

    batch_build_control(&spec, &out);
    append(f, &out, f->args.now_ms, LOG_ORIGIN_COORDINATOR);
    buf_fini(&out);
}

static struct bytes part(const char *p, size_t n)
{
    return (struct bytes){.p = (const uint8_t *)p, .n = (int32_t)n};
}

/* `a=1+b=!`, up to a blank. */
static void add_records(struct fixture *f, struct batch_builder *b, const char *p)
{
    while (*p && *p != ' ') {
        size_t key = strcspn(p, "=");
        size_t value = strcspn(p + key + 1, "+ ");
        struct record r = {
            .timestamp = f->args.now_ms,
            .key = key > 0 ? part(p, key) : bytes_null(),
            .value = p[key + 1] == '!' ? bytes_null() : part(p + key + 1, value),
        };
        assert_int_equal(batch_builder_append(b, &r), ERR_NONE);
        p += key + 1 + value;
        p += *p == '+';
    }
}

static void append_data(struct fixture *f, char kind, int producer, const char *p)
{
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    struct buf out = {.p = NULL};

    if (kind) {
        spec.producer_id = producer;
        spec.producer_epoch = 0;
        spec.base_sequence = f->sequence[producer];
        spec.is_transactional = kind == 't';
    }
    batch_builder_init(&b, &spec);
    add_records(f, &b, p);
    if (kind)
        f->sequence[producer] += b.count;
    batch_builder_finish(&b, &out);
    batch_builder_fini(&b);
    append(f, &out, f->args.now_ms, LOG_ORIGIN_CLIENT);
    buf_fini(&out);
}

static void run_word(struct fixture *f, const char *p)
{
    bool has_producer = (p[0] == 'p' || p[0] == 't') && p[1] >= '0' && p[1] <= '9' && p[2] == ':';
    int producer = has_producer ? p[1] - '0' : -1;

    if (p[0] == '/')
        log_roll(f->log, log_end_offset(f->log), f->args.now_ms);
    else if (has_producer && strncmp(p + 3, "abort", 5) == 0)
        append_marker(f, producer, true);
    else if (has_producer && strncmp(p + 3, "commit", 6) == 0)
        append_marker(f, producer, false);
    else
        append_data(f, has_producer ? p[0] : 0, producer, has_producer ? p + 3 : p);
}

static void run_script(struct fixture *f)
{
    for (const char *p = f->script; *p; p += strspn(p, " ")) {
        run_word(f, p);
        p += strcspn(p, " ");
    }
}

/* ---- Reading a log as text ---------------------------------------------------------------- */

static void say(struct fixture *f, const char *fmt, ...) printf_like(2, 3);

static void say(struct fixture *f, const char *fmt, ...)
{
    char line[4096];
    va_list ap;

    va_start(ap, fmt);
    buf_append(&f->text, line, (size_t)vsnprintf(line, sizeof(line), fmt, ap));
    va_end(ap);
}

static void say_record(struct fixture *f, const struct record *r, int64_t expected, bool is_control)
{
    struct control_marker m;

    say(f, " ");
    if (r->offset != expected)
        say(f, "%lld:", (long long)r->offset);
    if (is_control) {
        assert_int_equal(control_marker_parse(r, &m), ERR_NONE);
        say(f, "%s", m.type == CONTROL_ABORT ? "abort" : "commit");
        return;
    }
    say(f, "%.*s=%.*s", MAX(r->key.n, 0), r->key.p ? (const char *)r->key.p : "",
        r->value.n < 0 ? 1 : MIN(r->value.n, 20), r->value.n < 0 ? "!" : (const char *)r->value.p);
}

static void say_batch(struct fixture *f, struct bytes batch)
{
    struct record_iter it;
    struct record r;
    enum err err;

    record_iter_init(&it);
    assert_true(batch_crc_ok(batch));
    assert_int_equal(record_iter_batch(&it, batch), ERR_NONE);
    say(f, "{%lld", (long long)it.header.base_offset);
    if (it.header.record_count == 0)
        say(f, "..%lld", (long long)batch_last_offset(&it.header));
    int64_t expected = it.header.base_offset;
    while (!(err = record_iter_next(&it, &r))) {
        say_record(f, &r, expected, batch_is_control(&it.header));
        assert_true(r.timestamp >= T0 && r.timestamp <= T0 + 100 * DAY_MS);
        expected = r.offset + 1;
    }
    assert_int_equal(err, ERR_EOF);
    say(f, "%s}", it.header.attributes & BATCH_DELETE_HORIZON ? "~" : "");
    record_iter_fini(&it);
}

/* The batch that a fetch at this offset begins with. */
static void read_at(struct fixture *f, int64_t offset, struct buf *out)
{
    struct log_range range;

    assert_int_equal(log_view_read(log_snapshot_view(f->snapshot), offset, f->end, 1 << 20, true,
                                   LOG_BLOCKING, &range),
                     ERR_NONE);
    assert_non_null(range.file);
    buf_reset(out);
    assert_int_equal(read_fully(range.file, buf_extend(out, (size_t)range.n), (size_t)range.n,
                                range.pos, LOG_BLOCKING),
                     ERR_NONE);
    io_file_unref(range.file);
}

/* Every fetch makes progress, and what follows from it is all there is. */
static void dump_run(struct io_job *job)
{
    struct fixture *f = CONTAINER_OF(job, struct fixture, job);
    struct log_bounds bounds;
    struct batch_header h;
    struct buf b = {.p = NULL};
    int64_t next;

    log_view_bounds(log_snapshot_view(f->snapshot), &bounds);
    next = bounds.log_start;
    f->end = bounds.ack;
    buf_reset(&f->text);
    for (int64_t offset = bounds.log_start; offset < bounds.ack; offset++) {
        read_at(f, offset, &b);
        assert_int_equal(batch_header_parse(buf_bytes(&b, 0), &h), ERR_NONE);
        assert_true(batch_last_offset(&h) >= offset);
        if (h.base_offset < next)
            continue;
        say_batch(f, (struct bytes){.p = b.p, .n = batch_total_bytes(&h)});
        next = batch_last_offset(&h) + 1;
    }
    assert_int_equal(next, bounds.ack);
    int64_t timestamp;
    int32_t epoch;
    assert_int_equal(log_find_max_timestamp(f->snapshot, f->end, &f->newest, &timestamp, &epoch),
                     ERR_NONE);
    buf_append(&f->text, "", 1);
    buf_fini(&b);
}

/* ---- A life ----------------------------------------------------------------------------- */

static void ignore(void *ctx)
{
    (void)ctx;
}

static void on_failed(void *ctx, enum err err, int64_t from_offset)
{
    (void)ctx;
    (void)from_offset;
    fail_msg("the log failed: %s", err_name(err));
}

static void closed(void *ctx, enum err err)
{
    struct fixture *f = ctx;

    assert_int_equal(err, ERR_NONE);
    io_stop(f->io);
}

static void dump_done(struct io_job *job)
{
    struct fixture *f = CONTAINER_OF(job, struct fixture, job);

    log_snapshot_free(f->snapshot);
    f->segment_count = f->log->segment_count;
    f->clean_offset = f->log->clean_offset;
    f->aborted = f->log->tail.txn_count;
    f->time_entries = 0;
    for (size_t i = 0; i + 1 < f->segment_count; i++) {
        f->aborted += f->log->segments[i].txn_count;
        f->time_entries += f->log->segments[i].time_count;
    }
    log_close(f->log, closed, f);
}

static void dump(struct fixture *f)
{
    f->wants_dump = f->is_truncating;
    if (f->is_truncating)
        return;
    f->snapshot = log_snapshot_take(log_view(f->log));
    f->job.run = dump_run;
    f->job.done = dump_done;
    io_job_submit(f->loop, &f->job);
}

static void cleaned(void *ctx, enum err err)
{
    struct fixture *f = ctx;

    f->err = err;
    dump(f);
}

static void look(struct fixture *f)
{
    struct log_dirt dirt;

    if (f->before_clean)
        f->before_clean(f);
    log_dirt(f->log, f->args.now_ms, &dirt);
    f->is_due = dirt.is_due;
    f->is_overdue = dirt.is_overdue;
    f->ratio = dirt.ratio;
    if (!f->is_due || !f->wants_clean) {
        dump(f);
        return;
    }
    log_clean(f->log, &f->args, cleaned, f);
    if (f->beside_clean)
        f->beside_clean(f);
}

/* Until everything is acknowledged, then until the recovery point has followed. */
static void polled(struct io_msg *msg)
{
    struct fixture *f = CONTAINER_OF(msg, struct fixture, poll);
    bool acked = log_ack_offset(f->log) == log_end_offset(f->log) && f->log->inflight == 0;

    if (f->stage == 0 && acked) {
        log_set_high_watermark(f->log, log_ack_offset(f->log));
        if (f->log->recovery_point < log_end_offset(f->log))
            log_save(f->log);
        f->stage = 1;
    }
    if (f->stage == 1 && f->log->saves == 0) {
        assert_int_equal(f->log->recovery_point, log_end_offset(f->log));
        look(f);
        return;
    }
    io_post(f->loop, &f->poll);
}

static void begin(void *ctx)
{
    static const struct log_events events = {.advanced = ignore, .failed = on_failed};
    struct fixture *f = ctx;

    f->log = log_own(f->loaded, f->loop, &events, f);
    run_script(f);
    f->stage = 0;
    f->poll.fn = polled;
    io_post(f->loop, &f->poll);
}

static void live(struct fixture *f)
{
    struct log_dir_identity identity = {
        .cluster_id = STR_LIT("c"),
        .node_id = 1,
        .cluster_id_new = STR_LIT("c"),
        .node_id_new = 1,
    };
    struct log_load_args args = {
        .topic = "t",
        .partition = 0,
        .topic_id = uuid_from_random(1, 2),
        .config = f->config,
        .now_ms = T0,
    };
    struct io_options options = {.trace_level = TRACE_ERROR};
    char *message;

    args.io = f->io = io_new(&options);
    assert_int_equal(log_dir_open(f->io, f->path, &identity, &f->dir, &f->found, &message),
                     ERR_NONE);
    args.dir = f->dir;
    if (f->found.n == 0)
        assert_int_equal(log_create(&args, &f->loaded), ERR_NONE);
    else
        assert_int_equal(log_load(&args, &f->loaded, &f->report), ERR_NONE);
    assert_null(f->report.damage);
    f->loop = io_loop_new(f->io, "control", begin, f);
    io_run(f->io);
    log_dir_close(f->dir);
    io_free(f->io);
    log_dir_found_free(&f->found);
}

static const char *text(const struct fixture *f)
{
    return (const char *)f->text.p;
}

/* Writes, cleans, and looks again after a restart. */
static void clean(struct fixture *f, const char *script)
{
    char *before;

    f->script = script;
    f->wants_clean = true;
    live(f);
    before = xstrdup(text(f));
    f->script = "";
    f->wants_clean = false;
    f->before_clean = f->beside_clean = NULL;
    int64_t end = f->end;
    live(f);
    assert_string_equal(text(f), before);
    assert_int_equal(f->end, end);
    free(before);
}

static void write_only(struct fixture *f, const char *script)
{
    f->script = script;
    f->wants_clean = false;
    live(f);
}

/* ---- Keys and values -------------------------------------------------------------------- */

static void the_last_value_of_each_key_stays_at_its_offset(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 b=2 a=3 / c=4 b=5 / d=6 / e=7");
    assert_int_equal(f->err, ERR_NONE);
    assert_string_equal(text(f), "{2 a=3}{3 c=4}{4 b=5}{5 d=6}{6 e=7}");
    assert_int_equal(f->clean_offset, 6);
    assert_int_equal(f->segment_count, 2);
}

static void a_batch_loses_records_and_keeps_its_offsets(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1+b=2+c=3 b=4 / a=5+a=6 / x=1");
    assert_string_equal(text(f), "{0 2:c=3}{3 b=4}{4 5:a=6}{6 x=1}");
}

static void the_active_segment_is_left_alone(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 a=2 / a=3 a=4");
    assert_string_equal(text(f), "{1 a=2}{2 a=3}{3 a=4}");
    clean(f, "/");
    assert_string_equal(text(f), "{3 a=4}");
}

static void records_without_a_key_go(void **state)
{
    struct fixture *f = *state;

    clean(f, "=1 a=2 =3+b=4 / x=1");
    assert_string_equal(text(f), "{1 a=2}{2 3:b=4}{4 x=1}");
}

static void an_old_value_goes_when_the_new_one_comes_in_a_later_run(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 b=1 / x=1 /");
    assert_string_equal(text(f), "{0 a=1}{1 b=1}{2 x=1}");
    clean(f, "a=2 / y=1");
    assert_string_equal(text(f), "{1 b=1}{2 x=1}{3 a=2}{4 y=1}");
}

/* KAFKA-17076. */
static void the_end_of_the_log_stays_where_all_of_it_is_gone(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 / =2 =3 /");
    assert_string_equal(text(f), "{0 a=1}{2..2}");
    assert_int_equal(f->end, 3);
    clean(f, "a=9 /");
    assert_string_equal(text(f), "{3 a=9}");
}

/* ---- Tombstones ------------------------------------------------------------------------- */

/* KAFKA-8522: the time counts from the run that keeps it, not from the segment's age. */
static void a_tombstone_stays_until_its_horizon(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 b=2 / a=! / x=1 /");
    assert_string_equal(text(f), "{1 b=2}{2 a=!~}{3 x=1}");
    f->args.now_ms += DAY_MS - 1;
    clean(f, "y=1 z=1 w=1 v=1 /");
    assert_string_equal(text(f), "{1 b=2}{2 a=!~}{3 x=1}{4 y=1}{5 z=1}{6 w=1}{7 v=1}");
    f->args.now_ms += 1;
    f->config.min_cleanable_dirty_ratio = 0;
    clean(f, "u=1 /");
    assert_string_equal(text(f), "{1 b=2}{3 x=1}{4 y=1}{5 z=1}{6 w=1}{7 v=1}{8 u=1}");
}

static void a_tombstone_that_is_overtaken_goes_at_once(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 a=! a=2 / x=1");
    assert_string_equal(text(f), "{2 a=2}{3 x=1}");
}

/* ---- Producers -------------------------------------------------------------------------- */

/* KAFKA-5490, KAFKA-8335. */
static void the_last_batch_of_a_producer_stays_empty(void **state)
{
    struct fixture *f = *state;

    clean(f, "p1:a=1 p1:a=2 p2:b=1 a=3 b=3 / x=1");
    assert_string_equal(text(f), "{1..1}{2..2}{3 a=3}{4 b=3}{5 x=1}");
    clean(f, "p1:a=4 p2:b=4 /");
    assert_string_equal(text(f), "{5 x=1}{6 a=4}{7 b=4}");
}

/* ---- Transactions ----------------------------------------------------------------------- */

static void aborted_data_goes_and_its_marker_stays_a_while(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 t1:a=2 t1:b=2 t1:abort / t1:c=1 t1:commit x=1 /");
    assert_string_equal(text(f), "{0 a=1}{3 abort}{4 c=1}{5 commit}{6 x=1}");
    assert_int_equal(f->aborted, 1);
    clean(f, "t1:d=1 t1:commit /");
    assert_string_equal(text(f), "{0 a=1}{3 abort~}{4 c=1}{5 commit}{6 x=1}{7 d=1}{8 commit}");
    assert_int_equal(f->aborted, 0);
    f->args.now_ms += DAY_MS;
    f->config.min_cleanable_dirty_ratio = 0;
    clean(f, "y=1 /");
    assert_string_equal(text(f), "{0 a=1}{4 c=1}{5 commit}{6 x=1}{7 d=1}{8 commit}{9 y=1}");
}

static void aborted_data_is_found_when_the_marker_lies_in_another_segment(void **state)
{
    struct fixture *f = *state;

    f->config.segment_bytes = 300; /* Each is a group. */
    clean(f, "t1:a=1 x=1 / t1:a=2 y=1 / t1:abort / z=1");
    assert_string_equal(text(f), "{1 x=1}{2..2}{3 y=1}{4 abort}{5 z=1}");
}

static void an_abort_does_not_overtake_the_value_before_it(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 t1:a=2 t1:abort / x=1");
    assert_string_equal(text(f), "{0 a=1}{1..1}{2 abort}{3 x=1}");
}

/* KAFKA-13194. */
static void an_open_transaction_stops_the_cleaner(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 a=2 / b=1 b=2 t1:a=3 / x=1");
    assert_string_equal(text(f), "{1 a=2}{2 b=1}{3 b=2}{4 a=3}{5 x=1}");
    clean(f, "t1:commit /");
    assert_string_equal(text(f), "{3 b=2}{4 a=3}{5 x=1}{6 commit}");
}

static void the_marker_of_a_transaction_goes_after_its_data(void **state)
{
    struct fixture *f = *state;

    clean(f, "t1:a=1 t1:commit t2:b=1 t2:commit / t1:a=2 t1:commit /");
    assert_string_equal(text(f), "{1 commit}{2 b=1}{3 commit}{4 a=2}{5 commit}");
    clean(f, "x=1 y=1 z=1 w=1 v=1 /");
    assert_string_equal(text(f), "{1 commit~}{2 b=1}{3 commit}{4 a=2}{5 commit}"
                                 "{6 x=1}{7 y=1}{8 z=1}{9 w=1}{10 v=1}");
}

/* ---- When ------------------------------------------------------------------------------- */

static void the_dirty_ratio_decides(void **state)
{
    struct fixture *f = *state;

    f->config.min_cleanable_dirty_ratio = 0.5;
    clean(f, "a=1 b=1 c=1 d=1 / x=1");
    assert_int_equal(f->clean_offset, 4);
    write_only(f, "/");
    assert_false(f->is_due);
    assert_true(f->ratio > 0.15 && f->ratio < 0.25);
    write_only(f, "y=1 z=1 v=1 w=1 /");
    assert_true(f->is_due && !f->is_overdue);
}

static void a_long_wait_decides_as_well(void **state)
{
    struct fixture *f = *state;

    f->config.min_cleanable_dirty_ratio = 1;
    f->config.max_compaction_lag_ms = DAY_MS;
    clean(f, "a=1 / x=1");
    assert_true(f->clean_offset == -1);
    f->args.now_ms += DAY_MS + 1;
    write_only(f, "y=1 /");
    assert_true(f->is_due && f->is_overdue);
}

static void what_is_young_waits(void **state)
{
    struct fixture *f = *state;

    f->config.min_compaction_lag_ms = DAY_MS;
    write_only(f, "a=1 a=2 /");
    assert_false(f->is_due);
    f->args.now_ms += DAY_MS;
    clean(f, "a=3 a=4 / x=1");
    assert_string_equal(text(f), "{1 a=2}{2 a=3}{3 a=4}{4 x=1}");
}

static void without_compaction_nothing_is_due(void **state)
{
    struct fixture *f = *state;

    f->config.cleanup_policy = TOPIC_CLEANUP_DELETE;
    write_only(f, "a=1 a=2 / x=1");
    assert_false(f->is_due);
}

static void compaction_and_deletion_go_together(void **state)
{
    struct fixture *f = *state;

    f->config.cleanup_policy = TOPIC_CLEANUP_COMPACT | TOPIC_CLEANUP_DELETE;
    f->config.segment_bytes = 200;
    clean(f, "a=1 a=2 / b=1 / x=1");
    assert_string_equal(text(f), "{1 a=2}{2 b=1}{3 x=1}");
}

static void retain(struct fixture *f)
{
    f->retired = log_apply_retention(f->log, f->args.now_ms, 10);
}

/* A segment of emptied batches has no time index, and yet an age. */
static void emptied_segments_grow_old(void **state)
{
    struct fixture *f = *state;

    f->config.cleanup_policy = TOPIC_CLEANUP_COMPACT | TOPIC_CLEANUP_DELETE;
    f->config.retention_ms = DAY_MS;
    clean(f, "=1 =2 / x=1");
    assert_string_equal(text(f), "{1..1}{2 x=1}");
    assert_int_equal(f->time_entries, 0);
    f->before_clean = retain;
    write_only(f, "");
    assert_int_equal(f->retired, 0);
    f->args.now_ms += DAY_MS + 1;
    write_only(f, "");
    assert_int_equal(f->retired, 1);
    assert_string_equal(text(f), "{2 x=1}");
}

static void an_emptied_batch_is_not_the_newest_record(void **state)
{
    struct fixture *f = *state;

    write_only(f, "a=1 b=1");
    f->args.now_ms += 5;
    clean(f, "=2 / ");
    assert_string_equal(text(f), "{0 a=1}{1 b=1}{2..2}");
    assert_int_equal(f->newest, 0);
}

/* ---- Bounds of memory and of segments ------------------------------------------------------ */

/* KAFKA-3894. */
static void a_small_map_cleans_part_by_part(void **state)
{
    struct fixture *f = *state;

    f->args.map_bytes = 1; /* The least that there is: nine keys. */
    clean(f, "k=0 a=0 b=0 c=0 d=0 e=0 f=0 g=0 h=0 i=0 j=0 k=1 =9 a=1 / x=1");
    assert_int_equal(f->clean_offset, 9);
    assert_string_equal(text(f), "{0 k=0}{1 a=0}{2 b=0}{3 c=0}{4 d=0}{5 e=0}{6 f=0}{7 g=0}{8 h=0}"
                                 "{9 i=0}{10 j=0}{11 k=1}{12 =9}{13 a=1}{14 x=1}");
    f->config.min_cleanable_dirty_ratio = 0;
    clean(f, "");
    assert_int_equal(f->clean_offset, 14);
    assert_string_equal(text(f), "{2 b=0}{3 c=0}{4 d=0}{5 e=0}{6 f=0}{7 g=0}{8 h=0}"
                                 "{9 i=0}{10 j=0}{11 k=1}{13 a=1}{14 x=1}");
}

static void small_segments_become_one(void **state)
{
    struct fixture *f = *state;

    f->config.segment_bytes = 300;
    clean(f, "a=1 / b=1 / c=1 / d=1 / e=1 / f=1 / g=1");
    assert_string_equal(text(f), "{0 a=1}{1 b=1}{2 c=1}{3 d=1}{4 e=1}{5 f=1}{6 g=1}");
    assert_int_equal(f->segment_count, 3);
}

/* KAFKA-6834: larger than what is read at once. */
static void a_batch_larger_than_the_buffer_is_read_whole(void **state)
{
    struct fixture *f = *state;
    size_t n = 700000;
    char *script = xmalloc(n + 20);

    f->config.segment_bytes = 4000000;
    memcpy(script, "a=1 a=2 b=", 10);
    memset(script + 10, 'v', n);
    snprintf(script + 10 + n, 10, " / x=1");
    clean(f, script);
    assert_string_equal(text(f), "{1 a=2}{2 b=vvvvvvvvvvvvvvvvvvvv}{3 x=1}");
    free(script);
}

/* KAFKA-7385: a whole segment of emptied batches, and one where nothing at all stays. */
static void emptied_batches_are_cleaned_too(void **state)
{
    struct fixture *f = *state;

    f->config.min_cleanable_dirty_ratio = 0;
    f->config.segment_bytes = 150;
    clean(f, "=1 =1 / =2 =2 / x=1 /");
    assert_string_equal(text(f), "{1..1}{3..3}{4 x=1}");
    f->config.segment_bytes = 4000;
    clean(f, "y=1 /");
    assert_string_equal(text(f), "{4 x=1}{5 y=1}");
}

/* ---- Beside other work -------------------------------------------------------------------- */

static void write_beside(struct fixture *f)
{
    f->script = "a=7 / a=8 / a=9";
    run_script(f);
}

static void appends_and_rolls_go_on(void **state)
{
    struct fixture *f = *state;

    f->beside_clean = write_beside;
    clean(f, "a=1 a=2 / a=3 / b=1");
    assert_int_equal(f->end, 7);
    assert_int_equal(f->err, ERR_NONE);
    assert_non_null(strstr(text(f), "{2 a=3}{3 b=1}{4 a=7}"));
}

static void retain_beside(struct fixture *f)
{
    f->config.cleanup_policy |= TOPIC_CLEANUP_DELETE;
    f->config.retention_bytes = 0;
    log_set_config(f->log, &f->config);
    assert_int_equal(log_apply_retention(f->log, f->args.now_ms, 10), 0);
}

static void retention_waits_for_the_cleaner(void **state)
{
    struct fixture *f = *state;

    f->beside_clean = retain_beside;
    clean(f, "a=1 a=2 / a=3 / b=1");
    assert_string_equal(text(f), "{2 a=3}{3 b=1}");
}

static void change_policy(struct fixture *f)
{
    f->config.cleanup_policy = TOPIC_CLEANUP_DELETE;
    log_set_config(f->log, &f->config);
}

static void another_policy_ends_a_run(void **state)
{
    struct fixture *f = *state;

    f->beside_clean = change_policy;
    clean(f, "a=1 a=2 / b=1");
    assert_int_equal(f->err, ERR_CANCELLED);
    assert_string_equal(text(f), "{0 a=1}{1 a=2}{2 b=1}");
}

static void truncated(void *ctx, enum err err)
{
    struct fixture *f = ctx;

    assert_int_equal(err, ERR_NONE);
    f->is_truncating = false;
    if (f->wants_dump)
        dump(f);
}

static void truncate_beside(struct fixture *f)
{
    f->is_truncating = true;
    log_truncate(f->log, 3, truncated, f);
}

/* The pace makes a slice wait for hours. */
static void a_truncation_ends_a_run(void **state)
{
    struct fixture *f = *state;

    f->args.bytes_per_second = 0.001;
    f->beside_clean = truncate_beside;
    f->script = "a=1 a=2 / a=3 / b=1";
    f->wants_clean = true;
    live(f);
    assert_int_equal(f->err, ERR_CANCELLED);
    f->args.bytes_per_second = 1e300;
    f->beside_clean = NULL;
    clean(f, "c=1 / x=1");
    assert_string_equal(text(f), "{2 a=3}{3 c=1}{4 x=1}");
}

/* KAFKA-3330: what is written again above the cut is dirty. */
static void a_truncation_lowers_what_counts_as_clean(void **state)
{
    struct fixture *f = *state;

    clean(f, "a=1 a=2 b=1 / c=1 / x=1");
    assert_int_equal(f->clean_offset, 4);
    f->before_clean = truncate_beside;
    f->script = "";
    f->wants_clean = false;
    live(f);
    f->before_clean = NULL;
    write_only(f, "");
    assert_true(f->clean_offset <= 3);
}

/* ---- Parts ------------------------------------------------------------------------------ */

static void the_hash_is_the_published_one(void **state)
{
    const uint64_t secret[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    uint8_t in[16];
    uint64_t out[2];

    (void)state;
    for (int i = 0; i < 16; i++)
        in[i] = (uint8_t)i;
    keyed_hash(secret, (struct bytes){.p = in, .n = 0}, out);
    assert_true(out[0] == 0xe6a825ba047f81a3 && out[1] == 0x930255c71472f66d);
    keyed_hash(secret, (struct bytes){.p = in, .n = 1}, out);
    assert_true(out[0] == 0x44af996bd8c187da && out[1] == 0x45fc229b11597634);
}

static void the_map_counts_keys_and_says_when_it_is_full(void **state)
{
    const uint64_t secret[2] = {1, 2};
    struct offset_map m;
    int stored = 0;

    (void)state;
    offset_map_init(&m, 24 * 100, 1000000, secret);
    for (int64_t i = 0; i < 200; i++)
        stored += offset_map_put(&m, part((const char *)&i, 8), i);
    assert_int_equal(stored, 90);
    for (int64_t i = 0; i < 90; i++)
        assert_true(offset_map_put(&m, part((const char *)&i, 8), 1000 + i));
    for (int64_t i = 0; i < 200; i++)
        assert_int_equal(offset_map_get(&m, part((const char *)&i, 8)), i < 90 ? 1000 + i : -1);
    offset_map_fini(&m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_last_value_of_each_key_stays_at_its_offset),
        TEST(a_batch_loses_records_and_keeps_its_offsets),
        TEST(the_active_segment_is_left_alone),
        TEST(records_without_a_key_go),
        TEST(an_old_value_goes_when_the_new_one_comes_in_a_later_run),
        TEST(the_end_of_the_log_stays_where_all_of_it_is_gone),
        TEST(a_tombstone_stays_until_its_horizon),
        TEST(a_tombstone_that_is_overtaken_goes_at_once),
        TEST(the_last_batch_of_a_producer_stays_empty),
        TEST(aborted_data_goes_and_its_marker_stays_a_while),
        TEST(aborted_data_is_found_when_the_marker_lies_in_another_segment),
        TEST(an_abort_does_not_overtake_the_value_before_it),
        TEST(an_open_transaction_stops_the_cleaner),
        TEST(the_marker_of_a_transaction_goes_after_its_data),
        TEST(the_dirty_ratio_decides),
        TEST(a_long_wait_decides_as_well),
        TEST(what_is_young_waits),
        TEST(without_compaction_nothing_is_due),
        TEST(compaction_and_deletion_go_together),
        TEST(emptied_segments_grow_old),
        TEST(an_emptied_batch_is_not_the_newest_record),
        TEST(a_small_map_cleans_part_by_part),
        TEST(small_segments_become_one),
        TEST(a_batch_larger_than_the_buffer_is_read_whole),
        TEST(emptied_batches_are_cleaned_too),
        TEST(appends_and_rolls_go_on),
        TEST(retention_waits_for_the_cleaner),
        TEST(another_policy_ends_a_run),
        TEST(a_truncation_ends_a_run),
        TEST(a_truncation_lowers_what_counts_as_clean),
        TEST(the_hash_is_the_published_one),
        TEST(the_map_counts_keys_and_says_when_it_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
