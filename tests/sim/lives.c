/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of a run: the broker lives, is cut off, and lives again on the same disks, while the
 * clients go on. Each life has its own mix of faults, drawn from those that the run's plan allows;
 * one life in three has none, so that the broker can also be held to its time limits.
 *
 * At the end all faults stop. The broker has to start, answer everything, let every reader read
 * everything there is, and stop cleanly in time. Then power goes, and all of it has to be there
 * once more: after a clean stop even what lived in the page cache.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster.h"
#include "run.h"

#define SLICE_NS (40 * MS)
#define LIFE_SLICES_MAX 40
#define SPARSE_SLICES 250
#define START_NS (20 * SECOND)
#define STOP_NS (20 * SECOND)
#define SETTLE_NS (30 * SECOND)
#define CALM_WORK_NS (400 * MS)
#define SLOW_SYNC_NS (20 * MS)
#define ARRIVAL_NS (300 * MS)

/* ---- common ----------------------------------------------------------------------------- */

void violate(struct run *run, const char *fmt, ...)
{
    va_list ap;

    if (run_is_over(run))
        return;
    va_start(ap, fmt);
    vsnprintf(run->violation, sizeof(run->violation), fmt, ap);
    va_end(ap);
}

int64_t run_now(const struct run *run)
{
    return sim_now_ns(run->world);
}

uint32_t run_choose_by(struct run *run, enum chooser who, uint32_t n)
{
    return sim_choose(run->world, (enum sim_choice)(SIM_USER + who), n);
}

uint32_t run_choose(struct run *run, uint32_t n)
{
    return run_choose_by(run, BY_FATE, n);
}

bool run_once_in(struct run *run, uint32_t n)
{
    return run_choose(run, n) == n - 1;
}

/* ---- faults ----------------------------------------------------------------------------- */

static uint32_t rate(struct run *run, uint32_t ppm_max)
{
    return run_choose(run, 3) == 0 ? 0 : 1 + run_choose(run, ppm_max);
}

static void make_calm(struct run *run)
{
    struct sim_options *o = sim_world_options(run->world);

    o->net_reset_ppm = o->net_refuse_ppm = 0;
    o->disk_stall_ppm = o->eio_read_ppm = o->eio_write_ppm = o->eio_sync_ppm = o->eio_meta_ppm = 0;
    o->disk_bytes = (int64_t)1 << 40;
    sim_net_heal_all(run->world);
    run->calm_since_ns = run_now(run);
}

static void make_storm(struct run *run)
{
    struct sim_options *o = sim_world_options(run->world);
    const struct plan *p = &run->plan;

    run->calm_since_ns = INT64_MAX;
    o->net_reset_ppm = p->has_network_faults ? rate(run, 3000) : 0;
    o->net_refuse_ppm = p->has_network_faults ? rate(run, 200000) : 0;
    o->disk_stall_ppm = p->has_disk_errors ? rate(run, 500) : 0;
    o->eio_sync_ppm = p->has_disk_errors ? rate(run, 20000) : 0;
    o->eio_write_ppm = p->has_disk_errors ? rate(run, 1000) : 0;
    o->eio_read_ppm = p->has_disk_errors ? rate(run, 300) : 0;
    o->eio_meta_ppm = p->has_disk_errors ? rate(run, 1000) : 0;
    o->disk_bytes = p->has_small_disk ? 1500000 + (int64_t)run_choose(run, 3000000)
                                      : (int64_t)1 << 40;
}

static void disturb_network(struct run *run)
{
    if (!run->plan.has_network_faults)
        return;
    switch (run_choose(run, 12)) {
    case 8: sim_net_cut(run->client_host, run->broker_host); break;
    case 9: sim_net_cut(run->broker_host, run->client_host); break;
    case 10:
        sim_net_cut(run->client_host, run->broker_host);
        sim_net_cut(run->broker_host, run->client_host);
        break;
    case 11: sim_host_pause(run->broker_host, (int64_t)run_choose(run, 500) * MS); break;
    default: sim_net_heal_all(run->world); break;
    }
}

/* ---- lives ------------------------------------------------------------------------------ */

static bool is_dead(void *ctx)
{
    const struct run *run = ctx;

    return run_is_over(run) || !node_is_alive(run);
}

static bool is_ready_or_dead(void *ctx)
{
    const struct run *run = ctx;

    return run->is_ready || is_dead(ctx);
}

static void wait_for(struct run *run, int64_t ns, sim_pred_fn pred)
{
    sim_run_until(run->world, run_now(run) + ns, pred, run);
}

static void lose_power(struct run *run)
{
    run->counts.power_cuts++;
    tell(run, "power is cut");
    run->power_cut_ns = run_now(run);
    history_power_cut(run);
}

static void cut_off(struct run *run, enum sim_crash how)
{
    if (how == SIM_POWER_CUT) {
        sim_host_power_cut(run->broker_host);
        lose_power(run);
    } else if (node_is_alive(run)) {
        tell(run, "the broker is killed");
        sim_process_kill(run->broker_io);
        run->counts.crashes++;
    }
    run->unclean_ns = run_now(run);
}

/* How this life is to be cut off at a call of the broker's, if it is. */
struct ending {
    bool is_planned;
    enum sim_crash how;
};

/* It has ended, and nobody outside has done it. */
static void ended(struct run *run, const struct ending *e)
{
    tell(run, "the broker has ended, %s", run->is_stopped ? "by itself" : "at a call");
    if (!run->is_stopped || run->stop_err)
        run->unclean_ns = run_now(run);
    if (run->is_stopped)
        run->counts.clean_stops += run->stop_err == ERR_NONE;
    else if (e->is_planned && e->how == SIM_POWER_CUT)
        lose_power(run);
    else if (e->is_planned)
        run->counts.crashes++;
}

/* SIGTERM in whatever weather: it may take its time, and then it is killed. */
static void stop(struct run *run, const struct ending *e)
{
    tell(run, "the broker is asked to stop");
    sim_process_signal(run->broker_io, SIGTERM);
    wait_for(run, STOP_NS, is_dead);
    if (run_is_over(run))
        return;
    if (!node_is_alive(run)) {
        ended(run, e);
        return;
    }
    if (run->calm_since_ns < run_now(run) - STOP_NS)
        violate(run, "the broker does not stop, and nothing is wrong");
    cut_off(run, SIM_KILL);
}

static void die(struct run *run, const struct ending *e)
{
    if (run_is_over(run))
        return;
    if (!node_is_alive(run)) {
        if (!e->is_planned && run->calm_since_ns < INT64_MAX)
            violate(run, "the broker has ended by itself, and nothing is wrong");
        ended(run, e);
    } else if (!run->plan.has_crashes || run_choose(run, 4) == 0) {
        stop(run, e);
    } else {
        cut_off(run, e->how);
    }
}

static struct ending choose_ending(struct run *run)
{
    const struct plan *p = &run->plan;

    return (struct ending){
        .is_planned = p->has_crashes && run_choose(run, 3) != 0,
        .how = p->has_power_cuts && run_choose(run, 2) == 1 ? SIM_POWER_CUT : SIM_KILL,
    };
}

static void start(struct run *run, const struct ending *e)
{
    tell(run, "the broker starts%s%s", run->calm_since_ns < INT64_MAX ? ", calmly" : "",
         !e->is_planned       ? ""
         : e->how == SIM_KILL ? ", to be killed"
                              : ", to lose power");
    node_start(run);
    if (e->is_planned)
        sim_crash_after(run->broker_io, 1 + run_choose(run, run->plan.crash_calls_max), e->how);
    wait_for(run, START_NS, is_ready_or_dead);
    if (run->calm_since_ns < INT64_MAX && !e->is_planned && !run->is_ready)
        violate(run, "the broker does not start, and nothing is wrong");
}

static void live(struct run *run)
{
    bool is_calm = run_choose(run, 3) == 0;
    struct ending ending = choose_ending(run);
    uint32_t slices = 1 + run_choose(run, LIFE_SLICES_MAX);

    /* Long, and nothing disturbs it. */
    run->is_sparse = run_choose(run, 4) == 3;
    if (run->is_sparse) {
        is_calm = true;
        ending.is_planned = false;
        slices = SPARSE_SLICES;
    }

    if (is_calm)
        make_calm(run);
    else
        make_storm(run);
    start(run, &ending);
    for (uint32_t i = 0; i < slices && !is_dead(run); i++) {
        wait_for(run, SLICE_NS, is_dead);
        if (!is_calm)
            disturb_network(run);
    }
    sim_net_heal_all(run->world);
    die(run, &ending);
}

/* ---- the end ---------------------------------------------------------------------------- */

static bool is_idle(void *ctx)
{
    return run_is_over(ctx) || clients_are_idle(ctx);
}

static bool is_verified(void *ctx)
{
    return run_is_over(ctx) || clients_have_verified(ctx);
}

static bool is_over(void *ctx)
{
    return run_is_over(ctx);
}

static void start_calmly(struct run *run)
{
    make_calm(run);
    run->is_sparse = false;
    tell(run, "all faults end, the broker starts");
    node_start(run);
    wait_for(run, START_NS, is_ready_or_dead);
    if (!run->is_ready)
        violate(run, "the broker does not start, and nothing is wrong");
}

static void verify(struct run *run)
{
    wait_for(run, SETTLE_NS, is_idle);
    if (!is_idle(run))
        violate(run, "requests are still under way, and nothing is wrong");
    /* Members read what nobody waits for (acks=0) when it comes, so it has to be there first. */
    if (run->plan.groups > 0)
        wait_for(run, ARRIVAL_NS, is_over);
    clients_verify(run);
    wait_for(run, SETTLE_NS, is_verified);
    if (!is_verified(run))
        clients_complain(run);
    if (!is_verified(run))
        violate(run, "not everything has been read, and nothing is wrong");
}

static void stop_cleanly(struct run *run)
{
    static const struct ending none = {.is_planned = false};
    int64_t before = run->counts.clean_stops;

    if (run_is_over(run))
        return;
    stop(run, &none);
    if (run->counts.clean_stops == before)
        violate(run, "the broker did not stop cleanly, and nothing is wrong");
}

static void finish(struct run *run)
{
    start_calmly(run);
    wait_for(run, CALM_WORK_NS, is_over);
    run->no_producing = true;
    verify(run);
    stop_cleanly(run);
    if (run->plan.has_crashes && !run_is_over(run)) {
        tell(run, "power is cut");
        sim_host_power_cut(run->broker_host);
        run->counts.power_cuts++;
    }
    start_calmly(run);
    verify(run);
    stop_cleanly(run);
}

/* ---- the run ---------------------------------------------------------------------------- */

static bool maybe(struct run *run)
{
    return run_choose(run, 2) == 1;
}

static void choose_plan(struct run *run)
{
    static const uint32_t calls[] = {300, 3000, 30000};
    struct plan *p = &run->plan;

    p->shards = maybe(run) ? 3 : 1;
    p->dirs = run_choose(run, 4) == 3 ? 2 : 1;
    p->lives = 2 + (int)run_choose(run, 5);
    p->producers = 1 + (int)run_choose(run, PRODUCERS_MAX);
    p->consumers = 1 + (int)run_choose(run, CONSUMERS_MAX);
    p->has_crashes = run_choose(run, 6) != 0;
    p->has_power_cuts = maybe(run);
    p->has_network_faults = maybe(run);
    p->has_disk_errors = run_choose(run, 3) == 0;
    p->has_small_disk = run_choose(run, 6) == 5;
    p->has_weather = maybe(run);
    p->has_page_cache_topics = maybe(run);
    p->crash_calls_max = calls[run_choose(run, 3)];
    p->retention_check_ms = maybe(run) ? 200 : 30000;
    if (run_kind_of(run->seed) == RUN_GROUPS)
        fleet_choose_plan(run);
}

static void make_weather(struct run *run)
{
    struct sim_options *o = sim_world_options(run->world);

    if (run->plan.has_slow_syncs)
        o->disk_sync_ns_max = SLOW_SYNC_NS;
    if (!run->plan.has_weather)
        return;
    o->net_chunk_ppm = run_choose(run, 100000);
    o->disk_uncached_ppm = run_choose(run, 200000);
    o->disk_short_ppm = run_choose(run, 200000);
}

static bool clients_are_gone(void *ctx)
{
    const struct run *run = ctx;

    return !sim_process_is_alive(run->client_io);
}

static void count_events(struct run *run)
{
    run->counts.events = (int64_t)sim_event_total(run->world);
    run->counts.lost = (int64_t)sim_event_count(run->world, SIM_EV_LOST);
    run->counts.disk_errors = (int64_t)sim_event_count(run->world, SIM_EV_EIO);
}

static void run_broker(struct run *run)
{
    run->broker_host = sim_host_new(run->world, "broker");
    choose_plan(run);
    tell_plan(run);
    make_weather(run);
    make_calm(run);
    clients_start(run);
    for (int i = 0; i < run->plan.lives && !run_is_over(run); i++)
        live(run);
    if (!run_is_over(run))
        finish(run);
}

void run_seed(struct run *run, const struct sim_options *options)
{
    bool has_cluster = run_kind_of(run->seed) == RUN_CLUSTER;
    struct sim_options o = *options;

    o.net_connect_timeout_ns = SECOND;
    run->world = sim_world_new(run->seed, &o);
    run->client_host = sim_host_new(run->world, "clients");
    if (has_cluster)
        cluster_run(run);
    else
        run_broker(run);
    count_events(run);
    if (run_is_over(run))
        return;
    run->ends = true;
    sim_run_until(run->world, run_now(run) + SECOND, clients_are_gone, run);
    assert(clients_are_gone(run));
    if (has_cluster)
        cluster_run_free(run);
    else
        clients_free(run);
    history_fini(&run->history);
    sim_world_free(run->world);
}
