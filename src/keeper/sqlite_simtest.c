/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite keeper under power cuts, kills and failing syncs. Multi number i sets /x and /y to i,
 * creates /n/<i> and deletes /n/<i - 5>, several in flight at once. So the whole tree is a function
 * of one number, and after every crash it has to be that of some number between the last one that
 * anybody was told of and the last one submitted: reported multis are there, others whole or not
 * at all, and none without those before it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim.h"
#include "keeper/keeper.h"

#define SEEDS 150
#define LIVES 8
#define WRITERS 5
#define KEPT 5
#define DATA_BYTES_MAX 9000
#define CALLS_MAX 3000
#define PATH "/data/keeper.db"

/* ---- What survives crashes: the test's own memory. */

struct history {
    struct sim_world *world;
    struct sim_host *host;
    int64_t floor;     /* the highest number that anybody was told of; -1: none */
    int64_t submitted; /* the highest number ever */
    int64_t zxid;      /* the highest that was told */
    int64_t goal;      /* this life ends when it has reported so many */
    uint64_t reported;
    uint64_t unknown;
    uint64_t opened;
    bool has_checked; /* this life has come so far */
    const char *violation;
};

struct writer {
    struct keeper_call call;
    struct process *process;
    struct keeper_op ops[5];
    char paths[2][32];
    uint8_t data[DATA_BYTES_MAX];
    int64_t number;
};

struct process {
    struct history *history;
    struct io *io;
    struct keeper *keeper;
    struct writer writers[WRITERS];
    struct keeper_call read[4]; /* /x, /y, /n, /e */
    int64_t next;
    int64_t reported;
    int pending;
    bool is_ending;
};

/* ---- Writing. */

static int32_t data_size(int64_t number)
{
    return (int32_t)(8 + (uint64_t)number * 2654435761U % (DATA_BYTES_MAX - 8));
}

static void fill(struct writer *w)
{
    memset(w->data, (int)(w->number & 0xff), sizeof(w->data));
    put_i64(w->data, w->number);
}

static struct keeper_op op(enum keeper_op_kind kind, const char *path, struct bytes data)
{
    return (struct keeper_op){.kind = kind, .path = path, .data = data, .version = -1};
}

/* Number 0 makes the nodes. */
static int make_ops(struct writer *w)
{
    enum keeper_op_kind put = w->number == 0 ? KEEPER_CREATE : KEEPER_SET;
    struct bytes data = {.p = w->data, .n = data_size(w->number)};
    int n = 0;

    w->ops[n++] = op(put, "/x", data);
    w->ops[n++] = op(put, "/y", (struct bytes){.p = w->data, .n = 8});
    if (w->number == 0)
        w->ops[n++] = op(KEEPER_CREATE, "/n", bytes_null());
    snprintf(w->paths[0], sizeof(w->paths[0]), "/n/%lld", (long long)w->number);
    w->ops[n++] = op(KEEPER_CREATE, w->paths[0], bytes_null());
    snprintf(w->paths[1], sizeof(w->paths[1]), "/n/%lld", (long long)w->number - KEPT);
    if (w->number >= KEPT)
        w->ops[n++] = op(KEEPER_DELETE, w->paths[1], bytes_null());
    return n;
}

static void submit(struct writer *w)
{
    struct process *p = w->process;

    w->number = p->next++;
    fill(w);
    p->history->submitted = MAX(p->history->submitted, w->number);
    p->pending++;
    keeper_multi(p->keeper, w->ops, make_ops(w), &w->call);
}

static void written(struct keeper_call *call)
{
    struct writer *w = CONTAINER_OF(call, struct writer, call);
    struct process *p = w->process;
    struct history *h = p->history;
    enum err err = call->err;

    keeper_call_release(call);
    p->pending--;
    h->unknown += err == ERR_UNKNOWN;
    if (err && err != ERR_IO && err != ERR_UNKNOWN)
        h->violation = "a multi failed that could not";
    if (!err && w->ops[0].stat.modified_zxid <= h->zxid)
        h->violation = "the zxid went back";
    if (!err) {
        h->zxid = w->ops[0].stat.modified_zxid;
        h->floor = MAX(h->floor, w->number);
        h->reported++;
        p->reported++;
    }
    p->is_ending |= err != ERR_NONE || p->reported >= h->goal;
    if (!p->is_ending)
        submit(w);
    else if (p->pending == 0)
        io_stop(p->io);
}

/* ---- Checking. */

static void check_children(struct history *h, const struct keeper_call *call, int64_t number)
{
    int64_t first = MAX(0, number - KEPT + 1);
    bool is_there[KEPT] = {false};

    if (call->children_count != number - first + 1)
        h->violation = "a multi is there in part: number of children";
    for (int i = 0; i < call->children_count; i++) {
        int64_t child;

        if (str_to_i64(str_of(call->children[i]), &child) || child < first || child > number)
            h->violation = "a multi is there in part: children";
        else
            is_there[child - first] = true;
    }
    for (int64_t i = first; i <= number; i++)
        if (!is_there[i - first])
            h->violation = "a multi is there in part: a child is missing";
}

static int64_t check_state(struct process *p)
{
    struct history *h = p->history;
    struct keeper_call *x = &p->read[0], *y = &p->read[1], *n = &p->read[2];

    if (p->read[3].err != ERR_NOT_FOUND)
        h->violation = "an ephemeral node has survived";
    if (x->err == ERR_NOT_FOUND && y->err == ERR_NOT_FOUND && n->err == ERR_NOT_FOUND)
        return -1;
    if (x->err || y->err || n->err) {
        h->violation = "a multi is there in part: nodes";
        return -1;
    }
    int64_t number = get_i64(x->data.p);

    if (number != get_i64(y->data.p) || x->data.n != data_size(number))
        h->violation = "a multi is there in part: data";
    for (int32_t i = 8; i < x->data.n; i++)
        if (x->data.p[i] != (number & 0xff))
            h->violation = "data has changed";
    check_children(h, n, number);
    return number;
}

static void checked(struct keeper_call *call)
{
    struct process *p = CONTAINER_OF(call, struct process, read[3]);
    struct history *h = p->history;
    int64_t number = check_state(p);

    if (number < h->floor)
        h->violation = "what was told is lost";
    if (number > h->submitted)
        h->violation = "something is there that nobody has written";
    h->floor = MAX(h->floor, number);
    h->has_checked = true;
    for (int i = 0; i < 4; i++)
        keeper_call_release(&p->read[i]);
    p->next = number + 1;
    for (int i = 0; i < WRITERS; i++)
        submit(&p->writers[i]);
}

static void ignored(struct keeper_call *call)
{
    (void)call;
}

static void created_ephemeral(struct keeper_call *call)
{
    free(CONTAINER_OF(call, struct writer, call));
}

static void create_ephemeral(struct process *p)
{
    struct writer *w = xcalloc(1, sizeof(*w));

    w->call.done = created_ephemeral;
    w->ops[0] = op(KEEPER_CREATE, "/e", bytes_null());
    w->ops[0].is_ephemeral = true;
    keeper_multi(p->keeper, w->ops, 1, &w->call);
}

static void started(void *ctx)
{
    struct process *p = ctx;
    static const char *const paths[] = {"/x", "/y", "/n", "/e"};

    for (int i = 0; i < 4; i++)
        p->read[i].done = i < 3 ? ignored : checked;
    for (int i = 0; i < WRITERS; i++) {
        p->writers[i].process = p;
        p->writers[i].call.done = written;
    }
    for (int i = 0; i < 4; i++)
        if (i == 2)
            keeper_children(p->keeper, paths[i], NULL, &p->read[i]);
        else
            keeper_get(p->keeper, paths[i], NULL, &p->read[i]);
    create_ephemeral(p);
}

static void process_main(struct io *io, void *ctx)
{
    struct process *p = xcalloc(1, sizeof(*p));
    struct io_loop *loop = io_loop_new(io, "control", started, p);
    char *message = NULL;
    enum err err = io_dir_make(io, "/data");

    p->history = ctx;
    p->io = io;
    if (!err || err == ERR_EXISTS)
        err = io_dir_sync(io, "/");
    if (!err)
        err = keeper_sqlite_open(io, PATH, loop, NULL, NULL, &p->keeper, &message);
    if (err == ERR_CORRUPT)
        p->history->violation = "the file is damaged";
    if (!err) {
        p->history->opened++;
        io_run(io);
        keeper_free(p->keeper);
    }
    free(message);
    free(p);
}

/* ---- Lives. */

static bool is_dead(void *ctx)
{
    return !sim_process_is_alive(ctx);
}

static void live(struct history *h, bool is_last)
{
    struct sim_world *w = h->world;
    uint32_t calls = 1 + sim_choose(w, SIM_USER, CALLS_MAX);
    uint32_t power = sim_choose(w, SIM_USER, 2);

    h->goal = 1 + sim_choose(w, SIM_USER, is_last ? 100 : 3000);
    h->has_checked = false;
    struct io *io = sim_process_start(h->host, NULL, process_main, h);

    if (!is_last)
        sim_crash_after(io, calls, power ? SIM_POWER_CUT : SIM_KILL);
    sim_run_until(w, sim_now_ns(w) + 600000000000, is_dead, io);
    if (is_last && !h->has_checked && !h->violation)
        h->violation = "it cannot be opened, and nothing was wrong";
    if (sim_process_is_alive(io))
        h->violation = "it does not end";
    if (sim_choose(w, SIM_USER, 2))
        sim_host_power_cut(h->host);
}

static void lives(struct history *h)
{
    struct sim_options *options = sim_world_options(h->world);
    bool has_eio = sim_choose(h->world, SIM_USER, 2) == 1;

    options->eio_sync_ppm = has_eio ? 5000 : 0;
    options->eio_write_ppm = has_eio ? 200 : 0;
    options->disk_stall_ppm = 100;
    for (int i = 0; i < LIVES && !h->violation; i++)
        live(h, false);
    options->eio_sync_ppm = options->eio_write_ppm = 0;
    for (int i = 0; i < 2 && !h->violation; i++)
        live(h, true);
}

struct outcome {
    char violation[64];
    uint64_t reported;
    uint64_t unknown;
    uint64_t opened;
    uint64_t lost;
    uint64_t events;
    uint64_t hash;
};

static int run_seed(void *arg, void *result)
{
    struct history *h = xcalloc(1, sizeof(*h));
    struct outcome *out = result;

    h->floor = h->submitted = -1;
    h->world = sim_world_new(*(const uint64_t *)arg, NULL);
    h->host = sim_host_new(h->world, "broker");
    lives(h);
    snprintf(out->violation, sizeof(out->violation), "%s", h->violation ? h->violation : "");
    out->reported = h->reported;
    out->unknown = h->unknown;
    out->opened = h->opened;
    out->lost = sim_event_count(h->world, SIM_EV_LOST);
    out->events = sim_event_total(h->world);
    out->hash = sim_trace_hash(h->world);
    return 0;
}

static void reported_multis_survive_and_others_are_whole_or_absent(void **state)
{
    struct outcome sum = {.reported = 0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct outcome out = {.reported = 0};

        assert_int_equal(sim_in_child(run_seed, &seed, &out, sizeof(out)), 0);
        if (out.violation[0])
            fail_msg("seed %u: %s", (unsigned)seed, out.violation);
        sum.reported += out.reported;
        sum.unknown += out.unknown;
        sum.opened += out.opened;
        sum.lost += out.lost;
        sum.events += out.events;
    }
    printf("%d seeds: %u opened, %u multis reported, %u unknown, %u writes lost, %u events\n",
           SEEDS, (unsigned)sum.opened, (unsigned)sum.reported, (unsigned)sum.unknown,
           (unsigned)sum.lost, (unsigned)sum.events);
    /* A world in which nothing happens shows nothing. */
    assert_true(sum.opened > 6 * SEEDS);
    assert_true(sum.reported > 200 * SEEDS);
    assert_true(sum.unknown > 20);
    assert_true(sum.lost > 5 * SEEDS);
}

static void a_seed_repeats_its_run(void **state)
{
    uint64_t seed = 7;
    struct outcome first, again;

    (void)state;
    assert_int_equal(sim_in_child(run_seed, &seed, &first, sizeof(first)), 0);
    assert_int_equal(sim_in_child(run_seed, &seed, &again, sizeof(again)), 0);
    assert_true(first.hash == again.hash);
    assert_true(first.reported == again.reported);
}

/* ---- One failure at a time. */

struct failure;

struct failing_call {
    struct keeper_call call;
    struct failure *failure;
    struct keeper_op op;
};

struct failure {
    struct sim_host *host;
    struct io *io;
    struct keeper *keeper;
    struct failing_call calls[4];
    char log[256];
    enum sim_call what; /* fails while it opens */
    uint32_t nth;
    enum err open_err;
};

static void failure_note(struct failure *f, const char *what)
{
    size_t n = strlen(f->log);

    snprintf(f->log + n, sizeof(f->log) - n, "%s ", what);
}

static void failing_told(struct keeper_call *call)
{
    struct failing_call *c = CONTAINER_OF(call, struct failing_call, call);
    struct failure *f = c->failure;

    failure_note(f, err_name(call->err));
    keeper_call_release(call);
    if (c == &f->calls[3])
        io_stop(f->io);
}

static void failing_create(struct failure *f, int i, const char *path)
{
    f->calls[i].op = op(KEEPER_CREATE, path, bytes_null());
    keeper_multi(f->keeper, &f->calls[i].op, 1, &f->calls[i].call);
}

static void failing_state(void *ctx, enum keeper_state state)
{
    struct failure *f = ctx;

    failure_note(f, state == KEEPER_FAILED ? "failed" : "connected");
    if (state == KEEPER_FAILED)
        failing_create(f, 3, "/late");
}

static const struct keeper_events failing_events = {.state_changed = failing_state};

/* The second commit follows the first into the lane's hands at once or when it has failed. */
static void failing_started(void *ctx)
{
    struct failure *f = ctx;

    for (int i = 0; i < 4; i++) {
        f->calls[i].call.done = failing_told;
        f->calls[i].failure = f;
    }
    sim_disk_fail_nth(f->host, SIM_CALL_SYNC, 1);
    failing_create(f, 0, "/a");
    keeper_get(f->keeper, "/a", NULL, &f->calls[1].call);
    keeper_get(f->keeper, "/", NULL, &f->calls[2].call);
}

static void failing_main(struct io *io, void *ctx)
{
    struct failure *f = ctx;
    struct io_loop *loop = io_loop_new(io, "control", failing_started, f);
    char *message;
    enum err err =
        keeper_sqlite_open(io, "/keeper.db", loop, &failing_events, f, &f->keeper, &message);

    f->io = io;
    if (err)
        return;
    io_run(io);
    keeper_free(f->keeper);
}

static void a_failed_commit_ends_the_keeper(void **state)
{
    struct sim_world *w = sim_world_new(1, NULL);
    struct failure f = {.host = sim_host_new(w, "broker")};
    struct io *io = sim_process_start(f.host, NULL, failing_main, &f);

    (void)state;
    assert_true(sim_run_until(w, INT64_MAX, is_dead, io));
    assert_string_equal(f.log, "connected UNKNOWN IO IO failed IO ");
    sim_world_free(w);
}

static void opening_main(struct io *io, void *ctx)
{
    struct failure *f = ctx;
    struct io_loop *loop = io_loop_new(io, "control", NULL, NULL);
    char *message;

    sim_disk_fail_nth(f->host, f->what, f->nth);
    f->open_err = keeper_sqlite_open(io, "/keeper.db", loop, NULL, NULL, &f->keeper, &message);
    sim_disk_fail_nth(f->host, f->what, 0);
    assert_true(IMPLIES(f->open_err, message));
    free(message);
    if (!f->open_err)
        keeper_free(f->keeper);
}

static enum err open_once(struct sim_world *w, struct failure *f)
{
    struct io *io = sim_process_start(f->host, NULL, opening_main, f);

    assert_true(sim_run_until(w, INT64_MAX, is_dead, io));
    return f->open_err;
}

/* Whatever fails, the next start finds nothing in its way. */
static void a_start_that_fails_at_any_call_says_so_and_the_next_one_succeeds(void **state)
{
    int failures = 0;

    (void)state;
    for (int what = SIM_CALL_WRITE; what < SIM_CALLS; what++) {
        enum err err = ERR_IO;

        for (uint32_t nth = 1; err; nth++) {
            struct sim_world *w = sim_world_new(1, NULL);
            struct failure f = {.host = sim_host_new(w, "broker"), .what = what, .nth = nth};

            err = open_once(w, &f);
            assert_true(!err || err == ERR_IO);
            failures += err != ERR_NONE;
            f.nth = 0;
            assert_int_equal(open_once(w, &f), ERR_NONE);
            sim_world_free(w);
        }
    }
    printf("%d failures\n", failures);
    assert_true(failures > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_commit_ends_the_keeper),
        cmocka_unit_test(a_start_that_fails_at_any_call_says_so_and_the_next_one_succeeds),
        cmocka_unit_test(a_seed_repeats_its_run),
        cmocka_unit_test(reported_multis_survive_and_others_are_whole_or_absent),
    };

    return cmocka_run_group_tests_name("keeper under power cuts", tests, NULL, NULL);
}
