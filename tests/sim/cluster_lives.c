/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of a run with a cluster: brokers die, stand still, lose power, sessions and each
 * other, one or several at a time, and a supervisor brings them back. Then all faults end. The
 * cluster has to be whole again in time, take records without errors, let every record be read, and
 * stop; and all replicas of a partition are the same bytes.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster.h"

#define SLICE_NS (2 * MS)
#define ACT_SLICES_MAX 60
#define FAILING_CALLS_MAX 30
#define SMALL_DISK_BYTES 40000
#define LARGE_DISK_BYTES ((int64_t)1 << 40)
#define WHOLE_NS (20 * SECOND)
#define SLOW_NS (20 * MS)
#define LAG_NS (2 * SECOND)
#define SETTLE_NS (30 * SECOND)
#define CALM_WORK_NS (400 * MS)
#define STOP_NS (20 * SECOND)

/* ---- common ----------------------------------------------------------------------------- */

static bool is_over(void *ctx)
{
    return run_is_over(ctx);
}

/* Until `pred` or the time has come; whether `pred` has. The brokers are looked after. */
static bool pass(struct run *run, int64_t ns, sim_pred_fn pred)
{
    int64_t end = run_now(run) + ns;

    while (!run_is_over(run) && run_now(run) < end) {
        nodes_look_after(run);
        if (pred && pred(run))
            return true;
        sim_run_until(run->world, MIN(run_now(run) + SLICE_NS, end), is_over, run);
    }
    return pred && pred(run);
}

static bool are_ready(void *ctx)
{
    return nodes_are_ready(ctx);
}

static struct node *any_node(struct run *run)
{
    return &run->cluster->nodes[run_choose(run, NODES)];
}

/* ---- what happens ------------------------------------------------------------------------- */

static void crash_at_call(struct run *run, struct node *n)
{
    if (node_lives(n))
        sim_crash_after(n->io, 1 + run_choose(run, run->plan.crash_calls_max),
                        run->plan.has_power_cuts && run_choose(run, 2) == 1 ? SIM_POWER_CUT
                                                                            : SIM_KILL);
}

static void isolate(struct run *run, struct node *n, bool hears, bool speaks)
{
    tell(run, "broker %d %s others", n->id,
         !hears && !speaks ? "is cut off from"
         : hears           ? "only hears"
                           : "only speaks to");
    run->counts.isolations++;
    for (int i = 0; i < NODES; i++) {
        struct node *other = &run->cluster->nodes[i];

        if (other == n)
            continue;
        if (!speaks)
            sim_net_cut(n->host, other->host);
        if (!hears)
            sim_net_cut(other->host, n->host);
    }
}

static void disturb_keeper(struct run *run, struct node *n)
{
    struct keeper *k = node_lives(n) ? node_keeper(n) : NULL;

    if (!k)
        return;
    switch (run_choose(run, 3)) {
    case 0:
        tell(run, "answers of the keeper to broker %d are lost", n->id);
        keeper_memory_lose_answers(k);
        break;
    case 1:
        tell(run, "the next request of broker %d to the keeper is lost", n->id);
        keeper_memory_lose_request(k);
        break;
    default:
        tell(run, "the session of broker %d is ended", n->id);
        run->counts.expired++;
        keeper_memory_expire(k);
        break;
    }
}

static void all_at_once(struct run *run)
{
    bool by_power = run->plan.has_power_cuts && run_choose(run, 2) == 1;

    for (int i = 0; i < NODES; i++) {
        if (by_power)
            node_cut_power(&run->cluster->nodes[i]);
        else
            node_kill(&run->cluster->nodes[i]);
    }
}

static void fail_disk(struct run *run, struct node *n)
{
    enum sim_call call = (enum sim_call)run_choose(run, SIM_CALLS);

    node_fail_disk(n, call, 1 + run_choose(run, FAILING_CALLS_MAX));
}

static void disturb(struct run *run)
{
    const struct plan *p = &run->plan;
    struct node *n = any_node(run);
    uint32_t what = run_choose(run, p->has_disk_errors ? 22 : 18);

    switch (what) {
    case 1:
    case 2:
    case 3:
        if (p->has_crashes)
            node_kill(n);
        break;
    case 4:
    case 5:
        if (p->has_power_cuts)
            node_cut_power(n);
        break;
    case 6:
    case 7: node_stop(n); break;
    case 8:
    case 9: node_pause(n, (int64_t)run_choose(run, 1500) * MS); break;
    case 10:
    case 11:
        if (p->has_network_faults)
            isolate(run, n, run_choose(run, 3) == 1, run_choose(run, 3) == 1);
        break;
    case 12:
    case 17:
        if (p->has_keeper_faults)
            disturb_keeper(run, n);
        break;
    case 13:
        if (p->has_crashes)
            crash_at_call(run, n);
        break;
    case 14:
        if (p->has_crashes)
            all_at_once(run);
        break;
    case 15:
        if (p->has_disk_loss && !run->cluster->has_lost_disk) {
            run->cluster->has_lost_disk = true;
            run->counts.disks_lost++;
            node_lose_disk(n);
        }
        break;
    case 16: sim_net_heal_all(run->world); break;
    case 18:
    case 19:
    case 20:
    case 21: fail_disk(run, n); break;
    default: break;
    }
}

static void act(struct run *run)
{
    static const int64_t paces[] = {20 * MS, 4 * MS, 500000};
    int64_t ns = (1 + (int64_t)run_choose(run, ACT_SLICES_MAX)) * paces[run_choose(run, 3)];

    disturb(run);
    if (run_choose(run, 4) == 3)
        disturb(run);
    pass(run, ns, NULL);
    if (run_choose(run, 2) == 0)
        sim_net_heal_all(run->world);
}

/* ---- the end ------------------------------------------------------------------------------ */

static bool is_whole(void *ctx)
{
    const struct run *run = ctx;

    return nodes_are_ready(run) && steward_is_content(run->cluster->steward);
}

static bool is_idle(void *ctx)
{
    const struct cluster_world *w = ((const struct run *)ctx)->cluster;

    for (int i = 0; i < w->writer_count; i++)
        if (!writer_is_idle(w->writers[i]))
            return false;
    return true;
}

static bool is_verified(void *ctx)
{
    return cluster_reader_is_done(((const struct run *)ctx)->cluster->verifier);
}

static bool are_down(void *ctx)
{
    const struct run *run = ctx;

    for (int i = 0; i < NODES; i++)
        if (node_lives(&run->cluster->nodes[i]))
            return false;
    return true;
}

/* Whoever was alone in sync has lost its disk, or believes so: nobody else may lead unless an
 * operator says so. */
static void give_up_or_complain(struct run *run)
{
    struct cluster_world *w = run->cluster;

    w->is_undecided = (w->has_lost_disk || w->lacks_note) && steward_lacks_leader(w->steward);
    run->counts.undecided += w->is_undecided;
    if (!w->is_undecided)
        steward_complain(w->steward);
}

static void heal(struct run *run)
{
    struct sim_options *o = sim_world_options(run->world);

    tell(run, "all faults end");
    o->net_reset_ppm = o->net_refuse_ppm = 0;
    o->disk_bytes = LARGE_DISK_BYTES;
    sim_net_heal_all(run->world);
    for (int i = 0; i < NODES; i++) {
        if (node_lives(&run->cluster->nodes[i]))
            sim_crash_after(run->cluster->nodes[i].io, 0, SIM_KILL);
        node_mend_disk(&run->cluster->nodes[i]);
    }
    if (!pass(run, WHOLE_NS, are_ready))
        violate(run, "not all brokers have come back, and nothing is wrong");
    /* Who was cut off may still fall out of an in-sync set that nobody has looked at. */
    for (int i = 0; i < 2; i++) {
        steward_audit(run->cluster->steward);
        if (!pass(run, WHOLE_NS, is_whole))
            give_up_or_complain(run);
        if (i == 0)
            pass(run, LAG_NS, NULL);
    }
    run->calm_since_ns = run_now(run);
}

static void verify(struct run *run)
{
    struct cluster_world *w = run->cluster;

    run->no_producing = true;
    if (!pass(run, SETTLE_NS, is_idle))
        violate(run, "records are still without an answer, and nothing is wrong");
    w->verifies = true;
    cluster_reader_verify(w->verifier);
    if (!pass(run, SETTLE_NS, is_verified))
        cluster_reader_complain(w->verifier);
    if (!is_verified(run))
        violate(run, "not everything has been read, and nothing is wrong");
}

static void stop_all(struct run *run)
{
    struct cluster_world *w = run->cluster;

    if (run_is_over(run))
        return;
    tell(run, "all brokers are asked to stop");
    w->keeps_down = true;
    for (int i = 0; i < NODES; i++)
        node_stop(&w->nodes[i]);
    if (!pass(run, STOP_NS, are_down))
        violate(run, "not all brokers stop, and nothing is wrong");
    for (int i = 0; i < NODES; i++)
        if (!w->nodes[i].is_stopped || w->nodes[i].stop_err)
            violate(run, "broker %d did not stop cleanly, and nothing is wrong", w->nodes[i].id);
    if (!run_is_over(run))
        logs_compare(run);
}

static void finish(struct run *run)
{
    if (run_is_over(run))
        return;
    heal(run);
    if (run->cluster->is_undecided) {
        run->cluster->keeps_down = true;
        for (int i = 0; i < NODES; i++)
            node_kill(&run->cluster->nodes[i]);
        return;
    }
    pass(run, CALM_WORK_NS, NULL);
    verify(run);
    stop_all(run);
}

/* ---- the run ------------------------------------------------------------------------------ */

static uint32_t rate(struct run *run, uint32_t ppm_max)
{
    return run_choose(run, 3) == 0 ? 0 : 1 + run_choose(run, ppm_max);
}

static void choose_plan(struct run *run)
{
    static const uint32_t calls[] = {300, 3000, 30000};
    struct plan *p = &run->plan;

    p->shards = run_choose(run, 4) == 3 ? 2 : 1;
    p->lives = 2 + (int)run_choose(run, 30);
    p->producers = 1 + (int)run_choose(run, WRITERS_MAX);
    p->consumers = 1 + (int)run_choose(run, READERS_MAX);
    p->has_crashes = run_choose(run, 6) != 0;
    p->has_power_cuts = run_choose(run, 2) == 1;
    p->has_network_faults = run_choose(run, 2) == 1;
    p->has_keeper_faults = run_choose(run, 2) == 1;
    p->has_slow_network = run_choose(run, 2) == 1;
    p->has_slow_syncs = run_choose(run, 2) == 1;
    p->crash_calls_max = calls[run_choose(run, 3)];
    p->has_disk_loss = p->has_crashes && run_choose(run, 3) == 2;
    /* No choices: lists of choices keep their meaning. */
    p->has_racks = run->seed % 3 == 0;
    p->has_disk_errors = run->seed % 4 == 1;
    p->dirs = run->seed % 8 == 1 ? 2 : 1;
    p->has_small_disk = run->seed % 8 == 3;
}

static void make_weather(struct run *run)
{
    struct sim_options *o = sim_world_options(run->world);

    if (run->plan.has_slow_network)
        o->net_delay_ns_max = SLOW_NS;
    if (run->plan.has_slow_syncs)
        o->disk_sync_ns_max = SLOW_NS;
    if (run->plan.has_small_disk)
        o->disk_bytes = SMALL_DISK_BYTES + (int64_t)run_choose(run, SMALL_DISK_BYTES);
    if (!run->plan.has_network_faults)
        return;
    o->net_reset_ppm = rate(run, 1000);
    o->net_refuse_ppm = rate(run, 50000);
}

void cluster_run_free(struct run *run)
{
    cluster_clients_free(run);
    nodes_free(run);
}

void cluster_run(struct run *run)
{
    nodes_make(run);
    choose_plan(run);
    tell_plan(run);
    for (int i = 0; i < NODES; i++)
        run->cluster->nodes[i].has_two_dirs = run->plan.dirs == 2;
    run->calm_since_ns = INT64_MAX;
    cluster_clients_start(run);
    for (int i = 0; i < NODES; i++)
        node_begin(&run->cluster->nodes[i]);
    if (!pass(run, WHOLE_NS, are_ready))
        violate(run, "the brokers do not start, and nothing is wrong");
    make_weather(run);
    for (int i = 0; i < run->plan.lives && !run_is_over(run); i++)
        act(run);
    finish(run);
}
