/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of a scenario, and what happens to its brokers. All choices of the world are the dull
 * ones, but for those of power cuts: each of them takes everything. A session with the keeper ends
 * as in any run with a cluster, some time after its broker has fallen silent (cluster_nodes.c); who
 * has ended starts again when the script says so.
 */
#include "script.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

#define SLICE_NS MS
#define PATIENCE_MS 20000
#define POWER_CUTS_MAX 64
#define TAKE_EVERYTHING 1

void script_fail(struct script *s, const char *fmt, ...)
{
    va_list ap;

    tell(&s->run, "here it fails");
    printf("  at %lld ms: ", (long long)(run_now(&s->run) / MS));
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    _exit(1);
}

struct node *script_node(struct script *s, int id)
{
    return &s->run.cluster->nodes[id - 1];
}

/* ---- time --------------------------------------------------------------------------------- */

static bool is_over(void *ctx)
{
    return run_is_over(ctx);
}

static void pass_slice(struct script *s)
{
    struct run *run = &s->run;

    nodes_look_after(run);
    sim_run_until(run->world, run_now(run) + SLICE_NS, is_over, run);
    if (run_is_over(run))
        script_fail(s, "%s", run->violation);
    if (run->counts.cut_committed > 0 && !s->may_cut_committed)
        script_fail(s, "a log was cut below its high watermark");
}

void script_pass(struct script *s, int64_t ms)
{
    for (int64_t i = 0; i < ms; i++)
        pass_slice(s);
}

/* ---- lives -------------------------------------------------------------------------------- */

void script_start_unready(struct script *s, int id)
{
    assert(!node_lives(script_node(s, id)));
    s->has_restarted[id - 1] = true;
    node_begin(script_node(s, id));
}

void script_start(struct script *s, int id)
{
    script_start_unready(s, id);
    for (int i = 0; i < PATIENCE_MS && !script_node(s, id)->is_ready; i++)
        pass_slice(s);
    if (!script_node(s, id)->is_ready)
        script_fail(s, "broker %d does not start", id);
}

void script_kill(struct script *s, int id)
{
    node_kill(script_node(s, id));
}

void script_cut_power(struct script *s, int id)
{
    node_cut_power(script_node(s, id));
}

void script_await_end(struct script *s, int id)
{
    struct node *n = script_node(s, id);

    for (int i = 0; i < PATIENCE_MS && node_lives(n); i++)
        pass_slice(s);
    if (node_lives(n))
        script_fail(s, "broker %d does not stop", id);
}

void script_stop(struct script *s, int id)
{
    tell(&s->run, "broker %d is asked to stop", id);
    sim_process_signal(script_node(s, id)->io, SIGTERM);
    script_await_end(s, id);
}

/* ---- the network -------------------------------------------------------------------------- */

void script_cut(struct script *s, int from, int to)
{
    tell(&s->run, "broker %d is not heard by broker %d any more", from, to);
    sim_net_cut(script_node(s, from)->host, script_node(s, to)->host);
}

void script_isolate(struct script *s, int id)
{
    for (int other = 1; other <= NODES; other++) {
        if (other == id)
            continue;
        script_cut(s, id, other);
        script_cut(s, other, id);
    }
    node_lose_keeper(script_node(s, id));
}

void script_heal(struct script *s)
{
    tell(&s->run, "all hear each other again");
    sim_net_heal_all(s->run.world);
    for (int id = 1; id <= NODES; id++)
        node_find_keeper(script_node(s, id));
}

/* ---- the world ---------------------------------------------------------------------------- */

static void make_world(struct run *run)
{
    static uint32_t values[POWER_CUTS_MAX];
    static uint8_t kinds[POWER_CUTS_MAX];
    struct sim_options o = {
        .choices = values,
        .choice_kinds = kinds,
        .choice_count = POWER_CUTS_MAX,
        .is_replay = true,
        .keep_text = run->tells,
        .trace_level = run->tells ? TRACE_INFO : TRACE_ERROR,
        .net_connect_timeout_ns = SECOND,
    };

    for (int i = 0; i < POWER_CUTS_MAX; i++) {
        values[i] = TAKE_EVERYTHING;
        kinds[i] = SIM_LOST_DATA;
    }
    run->world = sim_world_new(1, &o);
    run->client_host = sim_host_new(run->world, "client");
    run->plan.shards = 1;
    run->calm_since_ns = INT64_MAX;
}

void script_run(struct script *s, void (*scenario)(struct script *s))
{
    make_world(&s->run);
    nodes_make(&s->run);
    s->run.cluster->keeps_down = true;
    script_client_start(s);
    for (int id = NODES; id > 0; id--)
        script_start(s, id);
    scenario(s);
}
