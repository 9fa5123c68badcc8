/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canary of the simulated world: a log as small as a log can be, with six mistakes that can be
 * switched on one at a time. If the world cannot find them here, it will not find them in a broker.
 *
 * The log: segments of records (length, checksum, sequence, value, filler) in one directory, a
 * recovery point in another. A lane writes what has gathered, syncs once, and answers. A new
 * segment's name is synced before anything in it is answered for. A failed sync ends the process.
 * Recovery starts at the recovery point, keeps the records up to the first bad one and cuts the
 * rest. It writes what it keeps once more before it trusts it: after a failed sync the page cache
 * may show bytes that are nowhere else.
 *
 * The promise: what was acknowledged is there after every crash, at its place and unchanged; and
 * whatever recovery kept is intact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/io.h"
#include "io/sim/sim.h"

enum mistake {
    MISTAKE_NONE = 0,
    ACK_BEFORE_SYNC,
    NO_DIRECTORY_SYNC,
    TRUST_FAILED_SYNC,
    ACCEPT_TORN_TAIL,
    EARLY_RECOVERY_POINT,
    RECOVERY_TRUSTS_CACHE,
    MISTAKES,
};

static const char *const mistake_names[MISTAKES] = {
    "none",
    "ack before sync",
    "no directory sync",
    "trust a failed sync",
    "accept a torn tail",
    "early recovery point",
    "recovery trusts cache",
};

#define SEEDS 400
#define LIVES 6
#define RECORDS_MAX 4096
#define SEGMENT_RECORDS 12
#define RECORD_BYTES_MAX 1500
#define WRITERS 5
#define CHOICES_MAX 65536

/* ---- what survives crashes: the test's own memory ---------------------------------------- */

struct toy_run {
    struct sim_world *world;
    struct sim_host *host;
    enum mistake mistake;
    uint64_t value_next;
    uint64_t acked[RECORDS_MAX]; /* value by sequence; 0 = not acknowledged */
    uint64_t ack_count;
    bool is_recovered; /* this life has come so far */
    uint64_t recovered_end;
    const char *violation;
};

/* ---- records ---------------------------------------------------------------------------- */

struct record {
    uint32_t size; /* with this header */
    uint32_t checksum;
    uint64_t seq;
    uint64_t value;
};

static uint32_t checksum(const uint8_t *p, size_t n)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 16777619u;
    return h;
}

static size_t record_make(uint8_t *to, uint64_t seq, uint64_t value)
{
    struct record r = {.seq = seq, .value = value};
    size_t filler = (size_t)(value * 2654435761u % (RECORD_BYTES_MAX - sizeof(r)));

    r.size = (uint32_t)(sizeof(r) + filler);
    memset(to + sizeof(r), (int)(1 + value % 255), filler);
    memcpy(to, &r, sizeof(r));
    r.checksum = checksum(to + 8, r.size - 8);
    memcpy(to, &r, sizeof(r));
    return r.size;
}

/* Whether a record begins at p; `careless` believes every header. */
static bool record_parse(const uint8_t *p, size_t n, uint64_t seq, bool careless,
                         struct record *out)
{
    if (n < sizeof(*out))
        return false;
    memcpy(out, p, sizeof(*out));
    if (out->size < sizeof(*out) || out->size > n)
        return false;
    return careless || (out->seq == seq && out->checksum == checksum(p + 8, out->size - 8));
}

/* ---- the log ---------------------------------------------------------------------------- */

struct point {
    uint64_t segment;
    uint64_t pos;
    uint64_t seq;
};

struct toy;

struct writer {
    struct io_msg msg;
    struct toy *toy;
    uint64_t value;
    uint64_t seq;
    enum err err;
};

struct toy {
    struct toy_run *run;
    struct io *io;
    struct io_loop *loop;
    struct io_lane *lane;
    struct io_file *file;
    struct point end;
    struct point checkpoint;
    unsigned commits;
    bool has_failed;
    struct writer writers[WRITERS];
};

static void segment_path(uint64_t segment, char path[static 64])
{
    snprintf(path, 64, "/log/%06u", (unsigned)segment);
}

static enum err write_bytes(struct io_file *f, const void *p, size_t n, uint64_t pos)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};

    return io_file_write(f, &iov, 1, (int64_t)pos);
}

static enum err open_segment(struct toy *t, uint64_t segment, unsigned flags)
{
    char path[64];

    io_file_unref(t->file);
    segment_path(segment, path);
    return io_file_open(t->io, path, IO_OPEN_WRITE | flags, &t->file);
}

static enum err make_segment(struct toy *t, uint64_t segment)
{
    enum err err = open_segment(t, segment, IO_OPEN_CREATE);

    if (!err && t->run->mistake != NO_DIRECTORY_SYNC)
        err = io_dir_sync(t->io, "/log");
    return err;
}

static enum err sync_log(struct toy *t)
{
    enum err err = io_file_sync(t->file);

    if (err && t->run->mistake == TRUST_FAILED_SYNC)
        err = io_file_sync(t->file);
    return err;
}

static enum err write_checkpoint(struct toy *t)
{
    struct bytes content = {.p = (const uint8_t *)&t->end, .n = sizeof(t->end)};

    return io_file_replace(t->io, "/meta/recovery-point", content);
}

static enum err append(struct toy *t, struct writer *w)
{
    uint8_t bytes[RECORD_BYTES_MAX];
    enum err err = ERR_NONE;
    size_t n;

    if (t->end.seq > 0 && t->end.seq % SEGMENT_RECORDS == 0 && t->end.pos > 0) {
        err = sync_log(t);
        if (!err)
            err = make_segment(t, ++t->end.segment);
        t->end.pos = 0;
    }
    if (err)
        return err;
    w->seq = t->end.seq;
    n = record_make(bytes, w->seq, w->value);
    err = write_bytes(t->file, bytes, n, t->end.pos);
    t->end.pos += n;
    t->end.seq++;
    return err;
}

static enum err commit(struct toy *t, struct io_msg *chain)
{
    bool has_checkpoint = ++t->commits % 3 == 0;
    enum err err = ERR_NONE;

    for (struct io_msg *m = chain; m && !err; m = m->_next)
        err = append(t, CONTAINER_OF(m, struct writer, msg));
    if (!err && has_checkpoint && t->run->mistake == EARLY_RECOVERY_POINT)
        err = write_checkpoint(t);
    if (!err && t->run->mistake != ACK_BEFORE_SYNC)
        err = sync_log(t);
    if (!err && has_checkpoint && t->run->mistake != EARLY_RECOVERY_POINT)
        err = write_checkpoint(t);
    return err;
}

static void lane_run(void *ctx, struct io_msg *chain)
{
    struct toy *t = ctx;
    enum err err = t->has_failed ? ERR_FAILED_DIR : commit(t, chain);
    struct io_msg *m;

    t->has_failed = t->has_failed || err;
    while ((m = io_msg_take(&chain)) != NULL) {
        CONTAINER_OF(m, struct writer, msg)->err = err;
        io_post(t->loop, m);
    }
    if (!err && t->run->mistake == ACK_BEFORE_SYNC)
        t->has_failed = sync_log(t) != ERR_NONE;
}

/* ---- recovery --------------------------------------------------------------------------- */

static enum err prepare(struct toy *t)
{
    char *text;
    size_t n;
    enum err err = io_dir_make(t->io, "/log");

    if (!err || err == ERR_EXISTS)
        err = io_dir_make(t->io, "/meta");
    if (!err || err == ERR_EXISTS)
        err = io_dir_sync(t->io, "/");
    if (!err)
        err = io_file_read_all(t->io, "/meta/recovery-point", sizeof(t->end), &text, &n);
    if (err == ERR_NOT_FOUND)
        return ERR_NONE;
    if (err)
        return err;
    if (n == sizeof(t->end))
        memcpy(&t->end, text, n);
    free(text);
    return ERR_NONE;
}

/* Keeps the good records of the open segment behind t->end, and writes them again. */
static enum err recover_segment(struct toy *t, uint8_t *bytes, size_t max, bool *is_clean)
{
    bool careless = t->run->mistake == ACCEPT_TORN_TAIL;
    uint64_t from = t->end.pos;
    struct record r;
    size_t at = 0;
    size_t n;
    enum err err = io_file_read(t->file, bytes, max, (int64_t)from, &n);

    if (err)
        return err;
    while (record_parse(bytes + at, n - at, t->end.seq, careless, &r)) {
        at += r.size;
        t->end.seq++;
    }
    t->end.pos += at;
    *is_clean = at == n && t->end.pos > 0;
    if (t->run->mistake != RECOVERY_TRUSTS_CACHE)
        err = write_bytes(t->file, bytes, at, from);
    if (!err && !*is_clean)
        err = io_file_truncate(t->file, (int64_t)t->end.pos);
    return err ? err : io_file_sync(t->file);
}

static enum err remove_behind(struct toy *t)
{
    char path[64];
    enum err err = ERR_NONE;

    for (uint64_t s = t->end.segment + 1; !err; s++) {
        segment_path(s, path);
        err = io_path_unlink(t->io, path);
    }
    if (err == ERR_NOT_FOUND)
        err = io_dir_sync(t->io, "/log");
    return err;
}

static enum err recover_segments(struct toy *t, uint8_t *bytes, size_t max)
{
    bool is_clean = true;
    enum err err = make_segment(t, t->end.segment);

    while (!err && is_clean) {
        err = recover_segment(t, bytes, max, &is_clean);
        if (err || !is_clean)
            break;
        err = open_segment(t, t->end.segment + 1, 0);
        if (err == ERR_NOT_FOUND)
            break;
        t->end.segment++;
        t->end.pos = 0;
    }
    if (!err || err == ERR_NOT_FOUND)
        err = open_segment(t, t->end.segment, 0);
    return err ? err : remove_behind(t);
}

static enum err recover(struct toy *t)
{
    size_t max = SEGMENT_RECORDS * RECORD_BYTES_MAX * 2;
    uint8_t *bytes = xmalloc(max);
    enum err err = prepare(t);

    if (!err)
        err = recover_segments(t, bytes, max);
    free(bytes);
    return err;
}

/* ---- the workload ----------------------------------------------------------------------- */

static void write_next(struct writer *w)
{
    if (w->toy->run->value_next == RECORDS_MAX) {
        io_stop(w->toy->io);
        return;
    }
    w->value = ++w->toy->run->value_next;
    io_lane_submit(w->toy->lane, &w->msg);
}

static void answered(struct io_msg *msg)
{
    struct writer *w = CONTAINER_OF(msg, struct writer, msg);
    struct toy_run *run = w->toy->run;

    if (w->err) {
        io_stop(w->toy->io);
        return;
    }
    if (run->acked[w->seq] != 0 && run->acked[w->seq] != w->value)
        run->violation = "two records were acknowledged at one place";
    run->acked[w->seq] = w->value;
    run->ack_count++;
    write_next(w);
}

static void start(void *ctx)
{
    struct toy *t = ctx;

    for (int i = 0; i < WRITERS; i++)
        write_next(&t->writers[i]);
}

static void toy_main(struct io *io, void *ctx)
{
    struct toy toy = {.run = ctx, .io = io};

    for (int i = 0; i < WRITERS; i++)
        toy.writers[i] = (struct writer){.msg.fn = answered, .toy = &toy};
    if (recover(&toy) == ERR_NONE) {
        toy.run->recovered_end = toy.end.seq;
        toy.run->is_recovered = true;
        toy.lane = io_lane_new(io, "commit", lane_run, &toy);
        toy.loop = io_loop_new(io, "control", start, &toy);
        io_run(io);
        io_lane_free(toy.lane);
    }
    io_file_unref(toy.file);
}

/* ---- the check -------------------------------------------------------------------------- */

static void check_record(struct toy_run *run, const struct record *r)
{
    if (run->acked[r->seq] != 0 && run->acked[r->seq] != r->value)
        run->violation = "another record is where an acknowledged one was";
}

/* Checks the records of a segment; returns the sequence behind them. */
static uint64_t check_segment(struct toy_run *run, struct io *io, uint64_t segment, uint64_t seq)
{
    char path[64];
    char *text;
    struct record r;
    size_t n;
    size_t at = 0;

    segment_path(segment, path);
    if (io_file_read_all(io, path, 1 << 20, &text, &n) != ERR_NONE)
        return seq;
    while (record_parse((uint8_t *)text + at, n - at, seq, false, &r)) {
        check_record(run, &r);
        at += r.size;
        seq++;
    }
    free(text);
    return seq;
}

/* From outside, right after recovery: nothing runs meanwhile, and nothing fails. */
static void check(struct toy_run *run, struct io *io)
{
    uint64_t seq = 0;
    uint64_t segment = 0;
    uint64_t before;

    do {
        before = seq;
        seq = check_segment(run, io, segment++, seq);
    } while (seq > before);
    if (seq < run->recovered_end)
        run->violation = "what recovery kept is not intact";
    for (uint64_t i = seq; i < RECORDS_MAX; i++)
        if (run->acked[i] != 0)
            run->violation = "an acknowledged record is lost";
}

/* ---- runs ------------------------------------------------------------------------------- */

struct toy_case {
    enum mistake mistake;
    uint64_t seed;
    const uint32_t *choices; /* NULL: the seed's own */
    size_t choice_count;
};

struct toy_result {
    bool is_found;
    char violation[64];
    uint64_t hash;
    uint64_t events;
    uint64_t acks;
    uint64_t lost;
    size_t choice_count;
    uint32_t choices[CHOICES_MAX];
};

struct life {
    struct toy_run *run;
    struct io *io;
};

static bool is_recovered_or_dead(void *ctx)
{
    struct life *life = ctx;

    return life->run->is_recovered || !sim_process_is_alive(life->io);
}

static bool is_dead(void *ctx)
{
    struct life *life = ctx;

    return !sim_process_is_alive(life->io);
}

static bool has_died_of_power(struct toy_run *run)
{
    return sim_choose(run->world, SIM_USER, 2) == 1;
}

static void live(struct toy_run *run, bool is_last)
{
    struct life life = {.run = run};
    struct sim_world *w = run->world;
    uint32_t calls = 1 + sim_choose(w, SIM_USER, 400);

    run->is_recovered = false;
    life.io = sim_process_start(run->host, NULL, toy_main, run);
    if (!is_last)
        sim_crash_after(life.io, calls, has_died_of_power(run) ? SIM_POWER_CUT : SIM_KILL);
    sim_run_until(w, INT64_MAX, is_recovered_or_dead, &life);
    if (run->is_recovered && sim_process_is_alive(life.io))
        check(run, life.io);
    else if (is_last)
        run->violation = "recovery failed without a fault";
    if (!run->violation && !is_last)
        sim_run_until(w, sim_now_ns(w) + 1000000000, is_dead, &life);
    if (has_died_of_power(run) || is_last)
        sim_host_power_cut(run->host);
    else
        sim_process_kill(life.io);
}

static void lives(struct toy_run *run)
{
    struct sim_options *options = sim_world_options(run->world);
    bool has_eio = sim_choose(run->world, SIM_USER, 2) == 1;

    options->eio_sync_ppm = has_eio ? 20000 : 0;
    options->disk_stall_ppm = 1000;
    for (int i = 0; i < LIVES && !run->violation; i++)
        live(run, false);
    options->eio_sync_ppm = 0;
    for (int i = 0; i < 2 && !run->violation; i++)
        live(run, true);
}

static int run_case(void *arg, void *result)
{
    const struct toy_case *c = arg;
    struct toy_result *out = result;
    struct sim_options options = {
        .choices = c->choices, .choice_count = c->choice_count, .is_replay = c->choices != NULL};
    struct toy_run *run = xcalloc(1, sizeof(*run));
    const uint32_t *choices;

    run->world = sim_world_new(c->seed, &options);
    run->host = sim_host_new(run->world, "toy");
    run->mistake = c->mistake;
    lives(run);
    out->is_found = run->violation != NULL;
    snprintf(out->violation, sizeof(out->violation), "%s", run->violation ? run->violation : "");
    out->hash = sim_trace_hash(run->world);
    out->events = sim_event_total(run->world);
    out->acks = run->ack_count;
    out->lost = sim_event_count(run->world, SIM_EV_LOST);
    choices = sim_choices(run->world, &out->choice_count);
    if (out->choice_count <= CHOICES_MAX)
        memcpy(out->choices, choices, out->choice_count * sizeof(*choices));
    return 0;
}

static void run_in_child(struct toy_case *c, struct toy_result *result)
{
    assert_int_equal(sim_in_child(run_case, c, result, sizeof(*result)), 0);
}

/* ---- tests ------------------------------------------------------------------------------ */

static void the_log_without_a_mistake_survives_every_seed(void **state)
{
    struct toy_result *r = xmalloc(sizeof(*r));
    uint64_t events = 0;
    uint64_t acks = 0;
    uint64_t lost = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct toy_case c = {.seed = seed};

        run_in_child(&c, r);
        if (r->is_found)
            fail_msg("seed %u: %s", (unsigned)seed, r->violation);
        events += r->events;
        acks += r->acks;
        lost += r->lost;
    }
    printf("%-22s %4d seeds, %7u events, %u acks, %u lost\n", mistake_names[MISTAKE_NONE], SEEDS,
           (unsigned)events, (unsigned)acks, (unsigned)lost);
    /* A world in which nothing is acknowledged or lost shows nothing. */
    assert_true(acks > 100 * SEEDS);
    assert_true(lost > SEEDS);
    free(r);
}

static void find(enum mistake mistake, struct toy_case *c, struct toy_result *r)
{
    uint64_t events = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        *c = (struct toy_case){.mistake = mistake, .seed = seed};
        run_in_child(c, r);
        events += r->events;
        if (r->is_found)
            break;
    }
    if (!r->is_found)
        fail_msg("no seed finds the mistake: %s", mistake_names[mistake]);
    printf("%-22s seed %3u, %7u events: %s\n", mistake_names[mistake], (unsigned)c->seed,
           (unsigned)events, r->violation);
}

static void each_mistake_is_found(void **state)
{
    struct toy_result *r = xmalloc(sizeof(*r));
    struct toy_case c;

    (void)state;
    for (int i = MISTAKE_NONE + 1; i < MISTAKES; i++)
        find((enum mistake)i, &c, r);
    free(r);
}

static void a_list_of_choices_repeats_the_run_of_its_seed(void **state)
{
    struct toy_result *first = xmalloc(sizeof(*first));
    struct toy_result *again = xmalloc(sizeof(*again));
    struct toy_case c;

    (void)state;
    find(ACK_BEFORE_SYNC, &c, first);
    assert_true(first->choice_count <= CHOICES_MAX);
    c.choices = first->choices;
    c.choice_count = first->choice_count;
    run_in_child(&c, again);
    assert_true(again->is_found);
    assert_string_equal(again->violation, first->violation);
    assert_true(again->hash == first->hash);
    free(first);
    free(again);
}

static int64_t cost(void *ctx, const struct sim_list *list)
{
    struct toy_result *r = ctx;
    struct toy_case c = {.mistake = ACK_BEFORE_SYNC,
                         .seed = 1,
                         .choices = list->values,
                         .choice_count = list->count};

    run_in_child(&c, r);
    return r->is_found ? (int64_t)sim_list_interesting(list, SIM_CHOICES) : -1;
}

static void a_failure_is_shrunk(void **state)
{
    struct toy_result *first = xmalloc(sizeof(*first));
    struct toy_result *again = xmalloc(sizeof(*again));
    struct toy_case c;
    struct sim_list list = {.values = first->choices};
    size_t before;
    size_t after;

    (void)state;
    find(ACK_BEFORE_SYNC, &c, first);
    list.count = first->choice_count;
    before = sim_list_interesting(&list, SIM_CHOICES);
    sim_shrink(&list, 200, cost, again);
    after = sim_list_interesting(&list, SIM_CHOICES);
    assert_true(cost(again, &list) >= 0);
    printf("%u choices that are not dull shrunk to %u\n", (unsigned)before, (unsigned)after);
    assert_true(after < before / 2);
    free(first);
    free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_log_without_a_mistake_survives_every_seed),
        cmocka_unit_test(each_mistake_is_found),
        cmocka_unit_test(a_list_of_choices_repeats_the_run_of_its_seed),
        cmocka_unit_test(a_failure_is_shrunk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
