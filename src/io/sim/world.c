/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of the simulated world.
 *
 * Whatever may happen is a task: a loop's next callback, a thread that could go on, a segment that
 * could arrive. Tasks whose moment is in the future wait in a heap; the others wait in `ready`, in
 * the order in which they got there. A step moves the clock on (a little for every event, to the
 * next moment when nothing is ready), chooses one ready task and runs it. With choice 0 the list is
 * a fair queue, so a replay that has come to the end of its list still makes progress.
 *
 * Determinism rests on three things: one task runs at a time, the order of `ready` depends on
 * earlier events alone, and nothing is ever ordered by the value of a pointer.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim_int.h"

/* ---- tasks ------------------------------------------------------------------------------ */

void sim__task_ready(struct sim_world *w, struct sim_task *t)
{
    if (t->is_ready)
        return;
    heap_remove(&w->timed, &t->at);
    if (w->ready_count == w->ready_cap) {
        w->ready_cap = w->ready_cap ? 2 * w->ready_cap : 64;
        w->ready = xreallocarray(w->ready, w->ready_cap, sizeof(struct sim_task *));
    }
    t->is_ready = true;
    w->ready[w->ready_count++] = t;
}

static void take_ready(struct sim_world *w, size_t at)
{
    w->ready[at]->is_ready = false;
    w->ready_count--;
    memmove(w->ready + at, w->ready + at + 1, (w->ready_count - at) * sizeof(struct sim_task *));
}

void sim__task_drop(struct sim_world *w, struct sim_task *t)
{
    heap_remove(&w->timed, &t->at);
    for (size_t i = 0; t->is_ready; i++)
        if (w->ready[i] == t)
            take_ready(w, i);
}

void sim__task_at(struct sim_world *w, struct sim_task *t, int64_t when_ns)
{
    sim__task_drop(w, t);
    heap_push(&w->timed, &t->at, when_ns);
}

/* ---- steps ------------------------------------------------------------------------------ */

static void collect_due(struct sim_world *w)
{
    struct heap_node *node;

    while ((node = heap_min(&w->timed)) != NULL && node->key <= w->now_ns) {
        struct sim_task *t = CONTAINER_OF(node, struct sim_task, at);

        heap_remove(&w->timed, node);
        if (t->is_instant)
            t->run(t);
        else
            sim__task_ready(w, t);
    }
}

/* Brings the clock to where something is ready, at most to the deadline; false if nothing is. */
static bool advance(struct sim_world *w, int64_t deadline_ns)
{
    collect_due(w);
    while (w->ready_count == 0) {
        struct heap_node *next = heap_min(&w->timed);

        if (!next || next->key > deadline_ns)
            return false;
        w->now_ns = next->key;
        collect_due(w);
    }
    return true;
}

static bool step_before(struct sim_world *w, int64_t deadline_ns)
{
    struct sim_task *t;
    size_t at;

    assert(!io_loop_current() && !sim__on_thread());
    if (!advance(w, deadline_ns))
        return false;
    at = sim_choose(w, SIM_NEXT, (uint32_t)w->ready_count);
    t = w->ready[at];
    take_ready(w, at);
    w->now_ns += w->opt.step_ns;
    if (t->io && t->io->is_dead)
        return true;
    if (t->io && t->io->host->paused_until_ns > w->now_ns)
        sim__task_at(w, t, t->io->host->paused_until_ns);
    else
        t->run(t);
    return true;
}

bool sim_step(struct sim_world *w)
{
    return step_before(w, INT64_MAX);
}

bool sim_run_until(struct sim_world *w, int64_t deadline_ns, sim_pred_fn pred, void *ctx)
{
    bool is_true = pred && pred(ctx);

    while (!is_true && w->now_ns < deadline_ns && step_before(w, deadline_ns))
        is_true = pred && pred(ctx);
    if (!is_true && w->now_ns < deadline_ns)
        w->now_ns = deadline_ns;
    return is_true;
}

int64_t sim_now_ns(const struct sim_world *w)
{
    return w->now_ns;
}

/* ---- birth and death -------------------------------------------------------------------- */

static void default_i64(int64_t *v, int64_t value)
{
    if (*v == 0)
        *v = value;
}

static void set_options(struct sim_world *w, const struct sim_options *options)
{
    struct sim_options *o = &w->opt;

    if (options)
        *o = *options;
    default_i64(&o->step_ns, 1000);
    default_i64(&o->net_delay_ns_max, 500000);
    default_i64(&o->net_connect_timeout_ns, 30000000000);
    default_i64(&o->disk_bytes, (int64_t)1 << 40);
    default_i64(&o->disk_sync_ns_max, 400000);
    default_i64(&o->disk_stall_ns, 2000000000);
    if (o->net_window_bytes == 0)
        o->net_window_bytes = 131072;
    w->replay = o->choice_count ? xmemdup(o->choices, o->choice_count * sizeof(uint32_t)) : NULL;
    o->choices = w->replay;
    if (o->choice_count > 0 && o->choice_kinds)
        w->replay_kinds = xmemdup(o->choice_kinds, o->choice_count);
    o->choice_kinds = w->replay_kinds;
}

/* Threads of the world hand over to each other all the time: on two CPUs that is ten times slower.
 */
static void pin_to_one_cpu(struct sim_world *w)
{
    cpu_set_t one;
    int cpu = sched_getcpu();

    if (cpu < 0 || sched_getaffinity(0, sizeof(w->cpus_before), &w->cpus_before) != 0)
        return;
    CPU_ZERO(&one);
    CPU_SET((unsigned)cpu, &one);
    w->is_pinned = sched_setaffinity(0, sizeof(one), &one) == 0;
}

struct sim_world *sim_world_new(uint64_t seed, const struct sim_options *options)
{
    struct sim_world *w = xcalloc(1, sizeof(*w));

    set_options(w, options);
    w->seed = seed;
    w->rng = rng_seeded(seed);
    heap_init(&w->timed);
    list_init(&w->hosts);
    list_init(&w->sockets);
    if (sem_init(&w->baton, 0, 0) != 0)
        UNREACHABLE();
    pin_to_one_cpu(w);
    return w;
}

struct sim_options *sim_world_options(struct sim_world *w)
{
    return &w->opt;
}

static void host_free(struct sim_host *h)
{
    LIST_EACH_SAFE (node, &h->processes) {
        struct io *io = LIST_ENTRY(node, struct io, node);

        assert(io->has_ended || io->is_dead);
        list_remove(&io->node);
        trace_fini(&io->trace);
        free(io);
    }
    sim__fs_fini(&h->fs);
    free(h->name);
    free(h);
}

void sim_world_free(struct sim_world *w)
{
    sim__net_fini(w);
    LIST_EACH_SAFE (node, &w->hosts)
        host_free(LIST_ENTRY(node, struct sim_host, node));
    if (w->is_pinned)
        (void)sched_setaffinity(0, sizeof(w->cpus_before), &w->cpus_before);
    sem_destroy(&w->baton);
    heap_fini(&w->timed);
    free(w->ready);
    free(w->choices);
    free(w->kinds);
    free(w->replay);
    free(w->replay_kinds);
    free(w->text);
    free(w);
}
