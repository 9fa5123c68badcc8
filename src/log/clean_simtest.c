/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compaction cut off anywhere: the machine loses power, or the process its life, at each single
 * call that a life with a run of the cleaner makes, and each call may fail.
 *
 * One life writes a log of several small segments and closes it. The next one cleans it and is cut
 * off at call n. The one after that must find every key's last record, each record that is there
 * with its bytes at its offset, the same end, and no damage; it cleans again, to the end, and now
 * nothing but the last records is left below the active segment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "io/sim/sim.h"
#include "log/clean_int.h"

#define RECORDS_MAX 512
#define KEYS 7
#define BATCHES 60
#define ROLL_EVERY 9
#define CALLS_MAX 2000
#define T0 1700000000000
#define SEEDS 2
#define LIFE_NS ((int64_t)100 * 1000 * 1000 * 1000)

enum mode {
    MODE_WRITE = 0,
    MODE_CLEAN = 1,
};

struct run {
    struct sim_world *world;
    struct sim_host *host;
    enum mode mode;
    uint8_t keys[RECORDS_MAX]; /* by offset */
    int64_t end;
    int64_t active_base;
    bool is_done;    /* the life came to its end */
    bool has_fault;  /* an error is no surprise */
    bool is_cleaned; /* a run has ended well */
    int64_t dropped; /* records that were gone in the last check */
    char violation[160];
};

struct life {
    struct run *run;
    struct io *io;
    struct io_loop *loop;
    struct log_dir *dir;
    struct log_loaded *loaded;
    struct log *log;
    struct rng rng;
    struct io_msg poll;
    bool is_saving;
};

static void violate(struct run *run, const char *fmt, ...) printf_like(2, 3);

static void violate(struct run *run, const char *fmt, ...)
{
    va_list ap;

    if (run->violation[0])
        return;
    va_start(ap, fmt);
    vsnprintf(run->violation, sizeof(run->violation), fmt, ap);
    va_end(ap);
}

static struct topic_config test_config(void)
{
    return (struct topic_config){
        .cleanup_policy = TOPIC_CLEANUP_COMPACT,
        .retention_ms = -1,
        .retention_bytes = -1,
        .segment_bytes = 4000,
        .segment_ms = INT64_MAX,
        .segment_index_bytes = 1 << 20,
        .index_interval_bytes = 200,
        .max_message_bytes = 1 << 20,
        .delete_retention_ms = 1000,
        .max_compaction_lag_ms = INT64_MAX,
        .flush_on_ack = true,
        .flush_messages = INT64_MAX,
        .flush_ms = INT64_MAX,
        .file_delete_delay_ms = 10,
    };
}

/* ---- Checking --------------------------------------------------------------------------- */

struct check {
    struct run *run;
    bool seen[RECORDS_MAX];
    int64_t next;
};

static void check_record(struct check *c, const struct record *r)
{
    int64_t value;

    if (r->offset < c->next || r->offset >= c->run->end || r->key.n != 1 || r->value.n < 8) {
        violate(c->run, "a strange record at %lld", (long long)r->offset);
        return;
    }
    memcpy(&value, r->value.p, sizeof(value));
    if (r->key.p[0] != c->run->keys[r->offset] || value != r->offset)
        violate(c->run, "record %lld is another one", (long long)r->offset);
    c->seen[r->offset] = true;
    c->next = r->offset + 1;
}

static enum err check_batch(struct check *c, struct segment *s, const struct header_walk *w)
{
    struct record_iter it;
    struct record r;
    uint8_t *p = xmalloc((size_t)w->total);
    struct bytes batch = {.p = p, .n = w->total};
    enum err err = read_fully(s->log, p, (size_t)w->total, w->pos, LOG_BLOCKING);

    record_iter_init(&it);
    if (!err && !batch_crc_ok(batch))
        violate(c->run, "batch %lld is damaged", (long long)w->header.base_offset);
    if (!err)
        err = record_iter_batch(&it, batch);
    while (!err && !(err = record_iter_next(&it, &r)))
        check_record(c, &r);
    record_iter_fini(&it);
    free(p);
    return err == ERR_EOF ? ERR_NONE : err;
}

static void check_segment(struct check *c, const struct segment_span *span)
{
    struct header_walk w;
    enum err err;

    header_walk_init(&w, span->segment->log, 0, span->size, LOG_BLOCKING);
    while (!(err = header_walk_next(&w))) {
        if (check_batch(c, span->segment, &w))
            violate(c->run, "batch %lld cannot be read", (long long)w.header.base_offset);
    }
    if (err != ERR_EOF)
        violate(c->run, "segment %lld cannot be walked: %s", (long long)span->segment->base_offset,
                err_name(err));
}

static bool is_newest(const struct run *run, int64_t offset)
{
    for (int64_t o = offset + 1; o < run->end; o++) {
        if (run->keys[o] == run->keys[offset])
            return false;
    }
    return true;
}

static bool is_newest_closed(const struct run *run, int64_t offset)
{
    for (int64_t o = offset + 1; o < run->active_base; o++) {
        if (run->keys[o] == run->keys[offset])
            return false;
    }
    return true;
}

static void check_loaded(struct run *run, const struct log_loaded *l)
{
    struct check c = {.run = run};

    if (l->end != run->end)
        violate(run, "end %lld, not %lld", (long long)l->end, (long long)run->end);
    for (size_t i = 0; i < l->segment_count; i++)
        check_segment(&c, &l->segments[i]);
    run->dropped = 0;
    for (int64_t o = 0; o < run->end; o++) {
        run->dropped += !c.seen[o];
        if (!c.seen[o] && is_newest(run, o))
            violate(run, "record %lld is lost", (long long)o);
        if (c.seen[o] && run->is_cleaned && o < run->active_base && !is_newest_closed(run, o))
            violate(run, "record %lld is still there", (long long)o);
    }
}

/* ---- Lives ------------------------------------------------------------------------------ */

static void append_one(struct life *l)
{
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    struct buf out = {.p = NULL};
    struct run *run = l->run;
    int count = 1 + (int)rng_below(&l->rng, 3);

    batch_builder_init(&b, &spec);
    for (int i = 0; i < count; i++) {
        int64_t value[20] = {run->end};
        uint8_t key = (uint8_t)rng_below(&l->rng, KEYS);
        struct record r = {
            .timestamp = T0,
            .key = {.p = &key, .n = 1},
            .value = {.p = (const uint8_t *)value, .n = sizeof(value)},
        };
        run->keys[run->end++] = key;
        assert_int_equal(batch_builder_append(&b, &r), ERR_NONE);
    }
    batch_builder_finish(&b, &out);
    batch_builder_fini(&b);
    struct io_buf *buf = io_buf_new(NULL, out.n);
    memcpy(buf->data, out.p, out.n);
    struct log_append a = {
        .buf = buf, .batch = buf->data, .n = (int32_t)out.n, .max_timestamp = T0, .now_ms = T0};
    assert_int_equal(log_append(l->log, &a), ERR_NONE);
    io_buf_unref(buf);
    buf_fini(&out);
}

static void closed(void *ctx, enum err err)
{
    struct life *l = ctx;

    if (err && !l->run->has_fault)
        violate(l->run, "close: %s", err_name(err));
    l->run->is_done = !err;
    io_stop(l->io);
}

static void advanced(void *ctx)
{
    struct life *l = ctx;

    log_set_high_watermark(l->log, log_ack_offset(l->log));
    if (log_ack_offset(l->log) == l->run->end && l->run->mode == MODE_WRITE)
        log_close(l->log, closed, l);
}

static void failed(void *ctx, enum err err, int64_t from_offset)
{
    struct life *l = ctx;

    (void)from_offset;
    if (!l->run->has_fault)
        violate(l->run, "the log failed: %s", err_name(err));
    io_stop(l->io);
}

static void cleaned(void *ctx, enum err err)
{
    struct life *l = ctx;

    if (err && !l->run->has_fault)
        violate(l->run, "clean: %s", err_name(err));
    l->run->is_cleaned |= !err;
    if (!err || err == ERR_NO_SPACE)
        log_close(l->log, closed, l);
    else
        io_stop(l->io);
}

static void write_all(struct life *l)
{
    for (int i = 0; i < BATCHES; i++) {
        if (i > 0 && i % ROLL_EVERY == 0) {
            l->run->active_base = log_end_offset(l->log);
            log_roll(l->log, l->run->active_base, T0);
        }
        append_one(l);
    }
}

static void clean_all(struct life *l)
{
    struct log_clean_args args = {.now_ms = T0, .map_bytes = 1 << 16, .bytes_per_second = 1e300};
    struct log_dirt dirt;

    log_set_high_watermark(l->log, log_ack_offset(l->log));
    log_dirt(l->log, T0, &dirt);
    if (dirt.is_due) {
        log_clean(l->log, &args, cleaned, l);
        return;
    }
    l->run->is_cleaned = true; /* The life before came that far: let it be checked. */
    log_close(l->log, closed, l);
}

static void begin(void *ctx)
{
    static const struct log_events events = {.advanced = advanced, .failed = failed};
    struct life *l = ctx;

    l->log = log_own(l->loaded, l->loop, &events, l);
    log_dir_start(l->dir, l->loop);
    if (l->run->mode == MODE_WRITE)
        write_all(l);
    else
        clean_all(l);
}

static enum err load(struct life *l, const struct log_dir_found *found)
{
    struct log_load_report report = {.damage = NULL};
    struct log_load_args args = {
        .io = l->io,
        .dir = l->dir,
        .topic = "t",
        .config = test_config(),
        .now_ms = T0,
    };
    enum err err;

    if (found->n == 0)
        return log_create(&args, &l->loaded);
    err = log_load(&args, &l->loaded, &report);
    if (report.damage || report.bytes_cut > 0)
        violate(l->run, "%s", report.damage ? report.damage : "bytes were cut");
    free(report.damage);
    if (!err && !l->run->has_fault) /* The check would meet it. */
        check_loaded(l->run, l->loaded);
    return err;
}

static void life_main(struct io *io, void *ctx)
{
    struct run *run = ctx;
    struct life l = {.run = run, .io = io, .rng = rng_seeded(7)};
    struct log_dir_identity identity = {
        .cluster_id = STR_LIT("c"),
        .node_id = 1,
        .cluster_id_new = STR_LIT("c"),
        .node_id_new = 1,
    };
    struct log_dir_found found;
    char *message;
    enum err err = log_dir_open(io, "/data", &identity, &l.dir, &found, &message);

    if (!err)
        err = load(&l, &found);
    if (err && !run->has_fault)
        violate(run, "cannot load: %s", message ? message : err_name(err));
    free(message);
    if (err) {
        if (l.dir)
            log_dir_close(l.dir);
        return;
    }
    log_dir_found_free(&found);
    l.loop = io_loop_new(io, "control", begin, &l);
    io_run(io);
    log_dir_close(l.dir);
}

struct life_ref {
    struct run *run;
    struct io *io;
};

static bool is_over(void *ctx)
{
    struct life_ref *ref = ctx;

    return !sim_process_is_alive(ref->io) || ref->run->violation[0];
}

/* crash_at 0: to its end. */
static void live(struct run *run, enum mode mode, uint32_t crash_at, enum sim_crash how)
{
    struct life_ref ref = {.run = run};
    struct sim_world *w = run->world;

    run->mode = mode;
    run->is_done = false;
    ref.io = sim_process_start(run->host, NULL, life_main, run);
    if (crash_at > 0)
        sim_crash_after(ref.io, crash_at, how);
    sim_run_until(w, sim_now_ns(w) + LIFE_NS, is_over, &ref);
    if (how == SIM_POWER_CUT)
        sim_host_power_cut(run->host);
    else if (sim_process_is_alive(ref.io))
        sim_process_kill(ref.io);
}

/* ---- Cases ------------------------------------------------------------------------------ */

struct test_case {
    uint64_t seed;
    uint32_t n; /* the call */
    enum sim_crash how;
    bool fails; /* it fails instead */
    enum sim_call call;
};

struct result {
    char violation[160];
    bool was_cut;     /* the life had not come to its end */
    bool was_changed; /* and the log was not what it had been */
    bool was_cleaned;
};

static int run_case(void *arg, void *out)
{
    const struct test_case *c = arg;
    struct result *r = out;
    struct run *run = xcalloc(1, sizeof(*run));

    run->world = sim_world_new(c->seed, NULL);
    run->host = sim_host_new(run->world, "a");
    live(run, MODE_WRITE, 0, SIM_KILL);
    if (!run->is_done)
        violate(run, "the log was not written");
    run->has_fault = c->fails;
    if (c->fails)
        sim_disk_fail_nth(run->host, c->call, c->n);
    if (!run->violation[0])
        live(run, MODE_CLEAN, c->fails ? 0 : c->n, c->how);
    r->was_cut = !run->is_done;
    if (c->fails)
        sim_disk_fail_nth(run->host, c->call, 0);
    run->has_fault = false;
    if (!run->violation[0])
        live(run, MODE_CLEAN, 0, SIM_KILL);
    r->was_changed = run->dropped > 0;
    if (!run->violation[0] && !run->is_cleaned)
        violate(run, "no run came to its end");
    if (!run->violation[0])
        live(run, MODE_CLEAN, 0, SIM_KILL);
    r->was_cleaned = run->dropped > RECORDS_MAX / 8;
    memcpy(r->violation, run->violation, sizeof(r->violation));
    return 0;
}

static bool try_case(const struct test_case *c, struct result *r)
{
    int status;

    *r = (struct result){.was_cut = false};
    status = sim_in_child(run_case, (void *)c, r, sizeof(*r));
    if (status != 0 || r->violation[0])
        fail_msg("seed %d, call %d, %s: status %d: %s", (int)c->seed, (int)c->n,
                 c->fails ? "fails" : "crash", status, r->violation);
    assert_true(r->was_cleaned);
    return r->was_cut;
}

static void cut_at_every_call(enum sim_crash how, uint64_t seeds)
{
    int cuts = 0;
    int halves = 0;

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        bool was_cut = true;
        for (uint32_t n = 1; was_cut && n < CALLS_MAX; n++) {
            struct test_case c = {.seed = seed, .n = n, .how = how};
            struct result r;
            was_cut = try_case(&c, &r);
            cuts += was_cut;
            halves += was_cut && r.was_changed;
        }
    }
    printf("%d cuts, %d after the first swap\n", cuts, halves);
    assert_true(cuts > 60 && halves > 10);
}

static void a_power_cut_at_every_call_leaves_the_old_or_the_new(void **state)
{
    const char *more = getenv("POWERCUT_SEEDS");

    (void)state;
    cut_at_every_call(SIM_POWER_CUT, more ? strtoull(more, NULL, 10) : SEEDS);
}

static void so_does_a_kill(void **state)
{
    (void)state;
    cut_at_every_call(SIM_KILL, 1);
}

static void any_failing_call_is_survived(void **state)
{
    int cuts = 0;

    (void)state;
    for (int call = 0; call < SIM_CALLS; call++) {
        for (uint32_t n = 1; n <= 70; n++) {
            struct test_case c = {
                .seed = n,
                .n = n,
                .how = n % 2 ? SIM_POWER_CUT : SIM_KILL,
                .fails = true,
                .call = (enum sim_call)call,
            };
            struct result r;
            cuts += try_case(&c, &r);
        }
    }
    assert_true(cuts > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_power_cut_at_every_call_leaves_the_old_or_the_new),
        cmocka_unit_test(so_does_a_kill),
        cmocka_unit_test(any_failing_call_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
