/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power cuts: one log in a simulated machine that loses power, or its process, at any call of io.
 *
 * A life loads the log, checks it against everything the lives before were told, and then appends
 * batches of idempotent producers with small segments, new epochs, retention and log starts going
 * on beside it, until it is cut off. The test remembers, outside of the machine, each batch that
 * was acknowledged, and each that a load has handed out: from then on readers may have seen it. The
 * promise is checked after each cut: all of these batches are there, at their offsets, with the
 * same bytes; offsets are dense; epochs and producers' sequences are what the batches say.
 *
 * A world that finds nothing proves little, so the same test must find a journal that acknowledges
 * before it syncs: this file includes the journal with that mistake behind a switch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/sim/sim.h"

static bool planted_early_ack;

#define JOURNAL_ACKS_EARLY planted_early_ack
#include "journal/journal.c"

#include "base/arena.h"
#include "base/rng.h"
#include "log/log_int.h"

#define SEEDS 40 /* POWERCUT_SEEDS=1000 make test-log: more than 10,000 crashes */
#define LIVES 8
#define OFFSETS_MAX 65536
#define PRODUCERS 3
#define INFLIGHT_MAX 12
#define DIR_PATH "/data"

struct known_batch {
    bool is_there;
    uint32_t crc;
    int32_t count;
};

struct pending {
    int64_t base;
    int64_t last;
    uint32_t crc;
};

/* What survives crashes: the test's own memory. */
struct world_run {
    struct sim_world *world;
    struct sim_host *host;
    struct known_batch known[OFFSETS_MAX]; /* by base offset */
    int64_t acks;
    int64_t loads;
    int64_t truncations;
    int64_t cut_bytes;
    int64_t start_known; /* log start that was acknowledged */
    bool has_loaded;     /* this life has come so far */
    bool has_faults;
    bool is_unsynced;   /* flush.on.ack=false: a power cut may take the end of the log */
    bool was_power_cut; /* since the last load */
    char violation[160];
};

struct life {
    struct world_run *run;
    struct io *io;
    struct io_loop *loop;
    struct log_dir *dir;
    struct log_loaded *loaded;
    struct log *log;
    struct rng rng;
    struct pending pending[INFLIGHT_MAX];
    int pending_count;
    int32_t next_sequence[PRODUCERS];
    int32_t epoch;
    int64_t appends;
    int64_t appends_max;
    int64_t truncate_at; /* where a truncation was asked for and not answered; INT64_MAX */
    int64_t start_asked; /* log start that was asked for and not answered; -1 */
    bool is_closing;
};

static void violate(struct world_run *run, const char *fmt, ...) printf_like(2, 3);

static void violate(struct world_run *run, const char *fmt, ...)
{
    va_list ap;

    if (run->violation[0])
        return;
    va_start(ap, fmt);
    vsnprintf(run->violation, sizeof(run->violation), fmt, ap);
    va_end(ap);
}

static struct topic_config test_config(const struct world_run *run)
{
    return (struct topic_config){
        .cleanup_policy = TOPIC_CLEANUP_DELETE,
        .retention_ms = -1,
        .retention_bytes = 24000,
        .segment_bytes = 6000,
        .segment_ms = INT64_MAX,
        .segment_index_bytes = 10 * 1024 * 1024,
        .index_interval_bytes = 500,
        .max_message_bytes = 1048588,
        .max_compaction_lag_ms = INT64_MAX,
        .flush_on_ack = !run->is_unsynced,
        .flush_messages = INT64_MAX,
        .flush_ms = INT64_MAX,
        .file_delete_delay_ms = 10,
    };
}

/* ---- What the log holds ----------------------------------------------------------------- */

struct walk {
    struct life *life;
    int64_t next;
    int32_t sequences[PRODUCERS]; /* the last one of each, -1 */
};

static void check_epoch(struct life *l, const struct batch_header *h)
{
    int32_t epoch = epochs_at(&l->loaded->epochs, h->base_offset);

    if (h->base_offset >= l->loaded->start && epoch != h->leader_epoch)
        violate(l->run, "batch %lld is of epoch %d, the history says %d", (long long)h->base_offset,
                h->leader_epoch, epoch);
}

static void check_batch(struct walk *w, const struct batch_header *h)
{
    struct world_run *run = w->life->run;
    struct known_batch *k = &run->known[h->base_offset];

    if (h->base_offset != w->next)
        violate(run, "offset %lld follows %lld", (long long)h->base_offset, (long long)w->next);
    if (k->is_there && k->crc != h->crc)
        violate(run, "batch %lld has other bytes", (long long)h->base_offset);
    for (int64_t o = h->base_offset + 1; o <= batch_last_offset(h); o++) {
        if (run->known[o].is_there)
            violate(run, "batch %lld covers known %lld", (long long)h->base_offset, (long long)o);
    }
    check_epoch(w->life, h);
    *k = (struct known_batch){.is_there = true, .crc = h->crc, .count = h->record_count};
    w->next = batch_last_offset(h) + 1;
    if (h->producer_id >= 0)
        w->sequences[h->producer_id] = batch_last_sequence(h);
}

/* The check itself may meet the fault that was planned for the log: once. */
static enum err next_header(struct header_walk *h)
{
    enum err err = header_walk_next(h);

    return err == ERR_IO ? header_walk_next(h) : err;
}

static enum err read_batch(struct segment *s, uint8_t *p, const struct header_walk *h)
{
    enum err err = read_fully(s->log, p, (size_t)h->total, h->pos, LOG_BLOCKING);

    return err ? read_fully(s->log, p, (size_t)h->total, h->pos, LOG_BLOCKING) : err;
}

/* What a closed segment is said to hold decides about its retention. */
static void check_segment(struct walk *w, const struct segment_span *span, bool is_closed)
{
    struct segment *s = span->segment;
    struct header_walk h;
    uint8_t *p = xmalloc(1 << 20);
    int64_t newest = -1;
    enum err err;

    header_walk_init(&h, s->log, 0, span->size, LOG_BLOCKING);
    while (!(err = next_header(&h))) {
        struct bytes batch = {.p = p, .n = h.total};
        if (read_batch(s, p, &h))
            break;
        if (!batch_crc_ok(batch))
            violate(w->life->run, "batch %lld is damaged", (long long)h.header.base_offset);
        check_batch(w, &h.header);
        newest = MAX(newest, h.header.max_timestamp);
    }
    if (err != ERR_EOF)
        violate(w->life->run, "segment %lld cannot be walked: %s", (long long)s->base_offset,
                err_name(err));
    if (is_closed && span->max_timestamp != newest)
        violate(w->life->run,
                "segment %lld: its newest record is of %lld, and is said to be of %lld",
                (long long)s->base_offset, (long long)newest, (long long)span->max_timestamp);
    free(p);
}

static void check_sequence(void *ctx, int64_t id, const struct producer_state *s)
{
    struct walk *w = ctx;
    int32_t last = s->batch_count > 0 ? s->batches[s->batch_count - 1].last_sequence : -1;

    if (w->sequences[id] >= 0 && last != w->sequences[id])
        violate(w->life->run, "producer %lld: last sequence %d, batches say %d", (long long)id,
                last, w->sequences[id]);
    w->life->next_sequence[id] = last + 1;
    w->sequences[id] = -1;
}

static void check_loaded(struct life *l)
{
    struct log_loaded *loaded = l->loaded;
    struct walk w = {.life = l, .sequences = {-1, -1, -1}};

    w.next = loaded->segments[0].segment->base_offset;
    if (w.next > loaded->start)
        violate(l->run, "first segment %lld is above the log start", (long long)w.next);
    if (loaded->start < l->run->start_known)
        violate(l->run, "log start went back to %lld from %lld (first segment %lld, end %lld)",
                (long long)loaded->start, (long long)l->run->start_known, (long long)w.next,
                (long long)loaded->end);
    for (size_t i = 0; i < loaded->segment_count; i++)
        check_segment(&w, &loaded->segments[i], i + 1 < loaded->segment_count);
    if (w.next != loaded->end)
        violate(l->run, "end %lld, batches end at %lld", (long long)loaded->end, (long long)w.next);
    for (int64_t o = loaded->end; o < OFFSETS_MAX; o++) {
        if (l->run->is_unsynced && l->run->was_power_cut)
            l->run->known[o].is_there = false;
        if (l->run->known[o].is_there)
            violate(l->run, "batch %lld is lost, the log ends at %lld", (long long)o,
                    (long long)loaded->end);
    }
    producers_each_assigned(&loaded->producers, check_sequence, &w);
    for (int i = 0; i < PRODUCERS; i++) {
        if (w.sequences[i] >= 0)
            violate(l->run, "producer %d is forgotten", i);
    }
}

/* ---- The workload ----------------------------------------------------------------------- */

static void work(struct life *l);

static struct io_buf *make_batch(struct life *l, int producer)
{
    static const char filler[900];
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    struct buf out;
    struct io_buf *buf;
    int count = 1 + (int)rng_below(&l->rng, 3);

    spec.producer_id = producer;
    spec.producer_epoch = 0;
    spec.base_sequence = l->next_sequence[producer];
    batch_builder_init(&b, &spec);
    buf_init(&out);
    for (int i = 0; i < count; i++) {
        uint64_t id = rng_u64(&l->rng);
        struct record r = {
            .timestamp = 1700000000000 + (int64_t)rng_below(&l->rng, 100000),
            .key = {.p = (const uint8_t *)&id, .n = 8},
            .value = {.p = (const uint8_t *)filler, .n = (int32_t)rng_below(&l->rng, 900)},
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

static bool append_one(struct life *l)
{
    int producer = (int)rng_below(&l->rng, PRODUCERS);
    struct io_buf *buf = make_batch(l, producer);
    struct batch_header h;
    struct log_append a = {
        .buf = buf,
        .batch = buf->data,
        .n = (int32_t)buf->size,
        .origin = LOG_ORIGIN_CLIENT,
        .leader_epoch = l->epoch,
        .now_ms = 1700000000000,
    };
    enum err err;

    assert_int_equal(batch_header_parse((struct bytes){.p = a.batch, .n = a.n}, &h), ERR_NONE);
    a.max_timestamp = h.max_timestamp;
    err = log_append(l->log, &a);
    io_buf_unref(buf);
    if (err) {
        if (err != ERR_FAILED_DIR && !(err == ERR_AGAIN && l->truncate_at != INT64_MAX))
            violate(l->run, "append refused: %s", err_name(err));
        return false;
    }
    if (a.is_duplicate)
        violate(l->run, "a new batch is called a duplicate");
    l->next_sequence[producer] = batch_last_sequence(&h) + 1;
    l->pending[l->pending_count++] =
        (struct pending){.base = a.base_offset, .last = a.last_offset, .crc = h.crc};
    l->appends++;
    return true;
}

static void started(void *ctx, enum err err)
{
    struct life *l = ctx;

    if (!err)
        l->run->start_known = MAX(l->run->start_known, l->start_asked);
    l->start_asked = -1;
}

static void truncated(void *ctx, enum err err)
{
    struct life *l = ctx;
    struct log_producer *v;
    struct arena arena;
    int n;

    if (err)
        return;
    if (log_end_offset(l->log) > l->truncate_at)
        violate(l->run, "truncated to %lld, the end is %lld", (long long)l->truncate_at,
                (long long)log_end_offset(l->log));
    arena_init(&arena, 0);
    log_producers(l->log, &arena, &v, &n);
    memset(l->next_sequence, 0, sizeof(l->next_sequence));
    for (int i = 0; i < n; i++)
        l->next_sequence[v[i].producer_id] = v[i].last_sequence + 1;
    arena_fini(&arena);
    l->run->truncations++;
    l->truncate_at = INT64_MAX;
    l->epoch = MAX(l->epoch, log_latest_epoch(l->log));
    work(l);
}

/* As a follower: some batches from the end on go, acknowledged or not. */
static void truncate_some(struct life *l)
{
    int64_t offset = log_end_offset(l->log) - (int64_t)rng_below(&l->rng, 40);

    offset = MAX(offset, log_start_offset(l->log));
    l->truncate_at = offset;
    for (int64_t o = 0; o < OFFSETS_MAX; o++) {
        struct known_batch *k = &l->run->known[o];
        if (k->is_there && o + k->count > offset)
            k->is_there = false;
    }
    log_truncate(l->log, offset, truncated, l);
}

static void disturb(struct life *l)
{
    switch (rng_below(&l->rng, 40)) {
    case 0: log_begin_epoch(l->log, ++l->epoch); break;
    case 1: (void)log_apply_retention(l->log, 1700000000000, 3); break;
    case 2:
        if (log_high_watermark(l->log) > 60 && l->start_asked < 0) {
            l->start_asked = log_high_watermark(l->log) - 60;
            log_advance_start(l->log, l->start_asked, started, l);
        }
        break;
    case 3:
        if (l->start_asked < 0 && rng_below(&l->rng, 3) == 0)
            truncate_some(l);
        break;
    default: break;
    }
}

static void closed(void *ctx, enum err err)
{
    struct life *l = ctx;

    if (err && err != ERR_FAILED_DIR && !l->run->has_faults)
        violate(l->run, "close failed: %s", err_name(err));
    io_stop(l->io);
}

static void work(struct life *l)
{
    if (l->is_closing)
        return;
    while (l->pending_count < INFLIGHT_MAX && l->appends < l->appends_max) {
        if (l->truncate_at == INT64_MAX)
            disturb(l);
        if (!append_one(l))
            return;
        if (rng_below(&l->rng, 3) == 0)
            break;
    }
    if (l->appends >= l->appends_max && l->pending_count == 0 && l->truncate_at == INT64_MAX) {
        l->is_closing = true;
        log_close(l->log, closed, l);
    }
}

static void advanced(void *ctx)
{
    struct life *l = ctx;
    int64_t ack = log_ack_offset(l->log);
    int n = 0;

    while (n < l->pending_count && l->pending[n].last < ack) {
        struct known_batch *k = &l->run->known[l->pending[n].base];
        if (k->is_there)
            violate(l->run, "offset %lld was given twice", (long long)l->pending[n].base);
        *k = (struct known_batch){
            .is_there = l->pending[n].last < l->truncate_at,
            .crc = l->pending[n].crc,
            .count = (int32_t)(l->pending[n].last - l->pending[n].base + 1),
        };
        l->run->acks++;
        n++;
    }
    l->pending_count -= n;
    memmove(l->pending, l->pending + n, (size_t)l->pending_count * sizeof(l->pending[0]));
    log_set_high_watermark(l->log, ack);
    work(l);
}

static void failed(void *ctx, enum err err, int64_t from_offset)
{
    struct life *l = ctx;

    (void)from_offset;
    if (!l->run->has_faults)
        violate(l->run, "the log failed without a fault: %s", err_name(err));
    io_stop(l->io);
}

static void begin(void *ctx)
{
    static const struct log_events events = {.advanced = advanced, .failed = failed};
    struct life *l = ctx;

    l->log = log_own(l->loaded, l->loop, &events, l);
    log_dir_start(l->dir, l->loop);
    l->epoch = log_latest_epoch(l->log) + 1;
    log_begin_epoch(l->log, l->epoch);
    log_set_high_watermark(l->log, log_ack_offset(l->log));
    work(l);
}

/* ---- A life ----------------------------------------------------------------------------- */

static enum err load(struct life *l, const struct log_dir_found *found)
{
    struct log_load_report report = {.damage = NULL};
    struct log_load_args args = {
        .io = l->io,
        .dir = l->dir,
        .topic = "t",
        .partition = 0,
        .config = test_config(l->run),
        .now_ms = 1700000000000,
    };
    enum err err;

    if (found->n == 0)
        return log_create(&args, &l->loaded);
    err = log_load(&args, &l->loaded, &report);
    if (report.damage)
        violate(l->run, "%s", report.damage);
    free(report.damage);
    l->run->cut_bytes += report.bytes_cut;
    return err;
}

static void life_main(struct io *io, void *ctx)
{
    struct world_run *run = ctx;
    struct life l = {.run = run, .io = io};
    struct log_dir_identity identity = {
        .cluster_id = STR_LIT("c"),
        .node_id = 1,
        .cluster_id_new = STR_LIT("c"),
        .node_id_new = 1,
    };
    struct log_dir_found found;
    char *message;
    enum err err = log_dir_open(io, DIR_PATH, &identity, &l.dir, &found, &message);

    if (!err)
        err = load(&l, &found);
    if (err && !run->has_faults)
        violate(run, "cannot load: %s", message ? message : err_name(err));
    free(message);
    if (err && l.dir)
        log_dir_close(l.dir);
    if (err)
        return; /* A fault; the next life tries again. */
    l.start_asked = -1;
    l.truncate_at = INT64_MAX;
    l.rng = rng_seeded(((uint64_t)sim_choose(run->world, SIM_USER, 1 << 30)));
    l.appends_max = 20 + (int64_t)rng_below(&l.rng, 300);
    check_loaded(&l);
    run->loads++;
    run->has_loaded = true;
    run->was_power_cut = false;
    log_dir_found_free(&found);
    l.loop = io_loop_new(io, "control", begin, &l);
    io_run(io);
    log_dir_close(l.dir);
}

struct life_ref {
    struct world_run *run;
    struct io *io;
};

static bool is_dead(void *ctx)
{
    struct life_ref *ref = ctx;

    return !sim_process_is_alive(ref->io) || ref->run->violation[0];
}

static void live(struct world_run *run, bool is_last)
{
    struct life_ref ref = {.run = run};
    struct sim_world *w = run->world;
    uint32_t calls = 1 + sim_choose(w, SIM_USER, 1500);
    bool is_power = sim_choose(w, SIM_USER, 4) > (run->has_faults ? 2 : 0);

    run->has_loaded = false;
    ref.io = sim_process_start(run->host, NULL, life_main, run);
    if (!is_last)
        sim_crash_after(ref.io, calls, is_power ? SIM_POWER_CUT : SIM_KILL);
    sim_run_until(w, sim_now_ns(w) + (int64_t)100 * 1000 * 1000 * 1000, is_dead, &ref);
    run->was_power_cut |= is_power;
    if (is_last && !run->has_loaded)
        violate(run, "the last load failed without a fault");
    if (is_power)
        sim_host_power_cut(run->host);
    else if (sim_process_is_alive(ref.io))
        sim_process_kill(ref.io);
}

/* One life in which the n-th disk call of a kind fails, however it ends. */
static void live_with_fault(struct world_run *run, enum sim_call call, uint32_t n)
{
    struct life_ref ref = {.run = run};
    struct sim_world *w = run->world;

    run->has_faults = true;
    sim_disk_fail_nth(run->host, call, n);
    ref.io = sim_process_start(run->host, NULL, life_main, run);
    sim_run_until(w, sim_now_ns(w) + (int64_t)100 * 1000 * 1000 * 1000, is_dead, &ref);
    sim_disk_fail_nth(run->host, call, 0);
    if (n % 2 == 0 || !sim_process_is_alive(ref.io))
        sim_host_power_cut(run->host);
    else
        sim_process_kill(ref.io);
    run->has_faults = false;
}

struct test_case {
    uint64_t seed;
    bool early_ack;
    enum sim_call fail_call;
    uint32_t fail_nth; /* 0: crashes instead */
};

struct result {
    char violation[160];
    int64_t acks;
    int64_t loads;
    int64_t truncations;
    int64_t cut_bytes;
    uint64_t cuts;
    uint64_t lost;
    uint64_t events;
};

static int run_case(void *arg, void *out)
{
    const struct test_case *c = arg;
    struct result *r = out;
    struct world_run *run = xcalloc(1, sizeof(*run));
    struct sim_options *options;

    planted_early_ack = c->early_ack;
    run->world = sim_world_new(c->seed, NULL);
    run->host = sim_host_new(run->world, "a");
    options = sim_world_options(run->world);
    if (c->fail_nth > 0) {
        live_with_fault(run, c->fail_call, c->fail_nth);
        if (!run->violation[0])
            live_with_fault(run, c->fail_call, c->fail_nth);
        goto last;
    }
    run->has_faults = sim_choose(run->world, SIM_USER, 3) == 0;
    run->is_unsynced = sim_choose(run->world, SIM_USER, 4) == 0;
    options->eio_sync_ppm = run->has_faults ? 20000 : 0;
    for (int i = 0; i < LIVES && !run->violation[0]; i++)
        live(run, false);
    run->has_faults = false;
    options->eio_sync_ppm = 0;
last:
    if (!run->violation[0])
        live(run, true);
    if (!run->violation[0])
        live(run, true);
    memcpy(r->violation, run->violation, sizeof(r->violation));
    r->acks = run->acks;
    r->loads = run->loads;
    r->cut_bytes = run->cut_bytes;
    r->truncations = run->truncations;
    r->cuts = sim_event_count(run->world, SIM_EV_POWER_CUT) +
              sim_event_count(run->world, SIM_EV_KILL);
    r->lost = sim_event_count(run->world, SIM_EV_LOST);
    r->events = sim_event_total(run->world);
    return 0;
}

/* ---- Tests ------------------------------------------------------------------------------ */

static uint64_t seeds(void)
{
    const char *more = getenv("POWERCUT_SEEDS");

    return more ? strtoull(more, NULL, 10) : SEEDS;
}

static void run_seed(uint64_t seed, struct result *r)
{
    struct test_case c = {.seed = seed};
    int status = sim_in_child(run_case, &c, r, sizeof(*r));

    if (status != 0 || r->violation[0])
        fail_msg("seed %d: status %d: %s", (int)seed, status, r->violation);
}

/*
 * 961: a truncation into the batch in whose middle the log begins moved the log start back.
 * 53: there a new segment was made before the old ones had gone.
 */
static void seeds_that_have_failed_are_mended(void **state)
{
    static const uint64_t failed[] = {53, 961};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(failed); i++) {
        struct result r = {.acks = 0};
        run_seed(failed[i], &r);
    }
}

static void nothing_acknowledged_is_lost(void **state)
{
    struct result sum = {.acks = 0};

    (void)state;
    for (uint64_t seed = 1; seed <= seeds(); seed++) {
        struct result r = {.acks = 0};
        run_seed(seed, &r);
        sum.acks += r.acks;
        sum.loads += r.loads;
        sum.cut_bytes += r.cut_bytes;
        sum.truncations += r.truncations;
        sum.cuts += r.cuts;
        sum.lost += r.lost;
        sum.events += r.events;
    }
    printf("%d seeds, %d crashes, %d loads, %d truncations, %lld acks, %lld writes and names "
           "lost, %lld bytes cut, %lld events\n",
           (int)seeds(), (int)sum.cuts, (int)sum.loads, (int)sum.truncations, (long long)sum.acks,
           (long long)sum.lost, (long long)sum.cut_bytes, (long long)sum.events);
    /* A run in which nothing was acknowledged or lost shows nothing. */
    assert_true(sum.cuts >= 5 * seeds());
    assert_true(sum.acks > 100 * (int64_t)seeds());
    assert_true(sum.lost > seeds() && sum.cut_bytes > 0 && sum.truncations > 0);
}

static void an_early_acknowledgement_is_found(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct test_case c = {.seed = seed, .early_ack = true};
        struct result r = {.acks = 0};
        if (sim_in_child(run_case, &c, &r, sizeof(r)) == 0 && r.violation[0]) {
            printf("seed %d: %s\n", (int)seed, r.violation);
            return;
        }
    }
    fail_msg("twenty seeds have not found it");
}

static void any_failing_call_is_survived(void **state)
{
    static const uint32_t counts[SIM_CALLS] = {40, 120, 120, 120};
    int64_t acks = 0;

    (void)state;
    for (int call = 0; call < SIM_CALLS; call++) {
        for (uint32_t n = 1; n <= counts[call]; n++) {
            struct test_case c = {.seed = n, .fail_call = (enum sim_call)call, .fail_nth = n};
            struct result r = {.acks = 0};
            int status = sim_in_child(run_case, &c, &r, sizeof(r));
            if (status != 0 || r.violation[0])
                fail_msg("call %d, n = %d: status %d: %s", call, (int)n, status, r.violation);
            acks += r.acks;
        }
    }
    printf("%lld acks\n", (long long)acks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_that_have_failed_are_mended),
        cmocka_unit_test(nothing_acknowledged_is_lost),
        cmocka_unit_test(an_early_acknowledgement_is_found),
        cmocka_unit_test(any_failing_call_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
