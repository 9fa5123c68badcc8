/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines and the processes on them: how they start, stop and die.
 *
 * A process is a struct io. It dies in one of three ways: it ends by itself; it is killed, and all
 * that it had written stays; or its machine loses power (crash.c says what is left). C code cannot
 * be taken apart in the middle of a function, so death is a flag: from then on its loops and
 * threads are not chosen any more, and what a callback that was just running still asks for is
 * dropped at the door (sim__call). Every call of io is a possible place to die, also between a
 * completed sync and the message that would have told of it. The memory of the dead is abandoned:
 * nobody knows which of their objects is in which state.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim_int.h"

#define WALL_START_MS 1700000000000

/* ---- death ------------------------------------------------------------------------------ */

static void die(struct io *io, enum sim_crash how)
{
    io->is_dead = true;
    io->is_running = false;
    sim__net_drop(io, how);
    sim__disk_drop(io);
}

void sim_process_kill(struct io *io)
{
    if (!sim_process_is_alive(io))
        return;
    sim__event(io->host->world, SIM_EV_KILL, io->host, "kill", io->life);
    die(io, SIM_KILL);
}

void sim_host_power_cut(struct sim_host *h)
{
    sim__event(h->world, SIM_EV_POWER_CUT, h, "power", h->boots);
    h->is_down = true;
    h->boots++;
    LIST_EACH (node, &h->processes) {
        struct io *io = LIST_ENTRY(node, struct io, node);

        if (sim_process_is_alive(io))
            die(io, SIM_POWER_CUT);
    }
    sim__fs_power_cut(&h->fs);
}

void sim_crash_after(struct io *io, uint32_t calls, enum sim_crash how)
{
    io->crash_in = calls;
    io->crash_how = how;
}

/* Whether the running code belongs to the process, and not to the test. */
static bool is_inside(const struct io *io)
{
    const struct sim_thread *thread = sim__thread_self();
    struct io_loop *loop = io_loop_current();

    return (thread && thread->io == io) || (loop && io_loop_io(loop) == io);
}

bool sim__call(struct io *io)
{
    if (io->crash_in > 0 && !io->is_dead && is_inside(io) && --io->crash_in == 0) {
        if (io->crash_how == SIM_KILL)
            sim_process_kill(io);
        else
            sim_host_power_cut(io->host);
    }
    /* Not a thread of another process, which may tell a loop of this one something. */
    while (io->is_dead && sim__on_thread() && is_inside(io))
        sim__thread_sleep();
    return !io->is_dead;
}

bool sim_process_is_alive(const struct io *io)
{
    return !io->is_dead && !io->has_ended;
}

/* ---- machines --------------------------------------------------------------------------- */

struct sim_host *sim_host_new(struct sim_world *w, const char *name)
{
    struct sim_host *h = xcalloc(1, sizeof(*h));

    assert(w->host_count < SIM_HOSTS_MAX);
    h->world = w;
    h->name = xstrdup(name);
    h->index = w->host_count++;
    h->port_next = 20000;
    h->port_client = 40000;
    snprintf(h->address, sizeof(h->address), "10.0.0.%" PRIu32, h->index + 1);
    list_init(&h->processes);
    list_init(&h->listeners);
    sim__fs_init(&h->fs, w);
    list_push_back(&w->hosts, &h->node);
    return h;
}

const char *sim_host_name(const struct sim_host *h)
{
    return h->name;
}

const char *sim_host_address(const struct sim_host *h)
{
    return h->address;
}

void sim_host_pause(struct sim_host *h, int64_t ns)
{
    h->paused_until_ns = h->world->now_ns + ns;
    sim__event(h->world, SIM_EV_PAUSE, h, "pause", ns);
}

void sim_host_clock_jump(struct sim_host *h, int64_t ms)
{
    h->wall_skew_ms += ms;
}

/* ---- processes -------------------------------------------------------------------------- */

static void trace_to_world(void *ctx, enum trace_level level, const char *line)
{
    struct io *io = ctx;

    if (level <= io->host->world->opt.trace_level)
        sim__trace_line(io->host->world, io->host, line);
    if (io->options.trace_sink)
        io->options.trace_sink(io->options.trace_ctx, level, line);
}

static struct io *process_new(struct sim_host *h, const struct io_options *options)
{
    struct io *io = xcalloc(1, sizeof(*io));

    io->host = h;
    io->life = h->lives++;
    io->options.trace_level = h->world->opt.trace_level;
    if (options)
        io->options = *options;
    trace_init(&io->trace, io->options.trace_level, trace_to_world, io);
    io->entropy = rng_seeded(h->world->seed ^ (uint64_t)h->index << 56 ^ (uint64_t)io->life << 32);
    list_init(&io->loops);
    list_init(&io->conns);
    list_init(&io->files);
    list_init(&io->foreign);
    list_init(&io->jobs);
    list_init(&io->workers);
    list_push_back(&h->processes, &io->node);
    return io;
}

static void main_thread(void *arg)
{
    struct io *io = arg;

    io->main(io, io->main_ctx);
    sim__process_end(io);
}

struct io *sim_process_start(struct sim_host *h, const struct io_options *options, sim_main_fn main,
                             void *ctx)
{
    struct io *io = process_new(h, options);

    if (h->is_down) {
        h->is_down = false;
        sim__net_boot(h);
    }
    if (main) {
        io->main = main;
        io->main_ctx = ctx;
        sim__thread_new(io, "main", main_thread, io);
    }
    return io;
}

struct io *io_new(const struct io_options *options)
{
    (void)options;
    UNREACHABLE(); /* Only a world makes processes: sim_process_start. */
}

static void end_loops(struct io *io)
{
    LIST_EACH (node, &io->loops)
        sim__loop_end(LIST_ENTRY(node, struct io_loop, node));
}

void sim__process_end(struct io *io)
{
    assert(io->lane_count == 0);
    io->is_stopping = true;
    io->is_running = false;
    sim__workers_end(io);
    end_loops(io);
    sim__net_drop(io, SIM_KILL);
    LIST_EACH_SAFE (node, &io->loops)
        sim__loop_free(LIST_ENTRY(node, struct io_loop, node));
    sim__disk_drop(io);
    io->has_ended = true;
}

void io_free(struct io *io)
{
    if (!sim__call(io))
        return;
    assert(!io->main);
    sim__process_end(io);
    list_remove(&io->node);
    trace_fini(&io->trace);
    sim__foreign_fini(io);
    free(io);
}

void io_run(struct io *io)
{
    assert(!io_loop_current() && !io->is_running);
    if (!sim__call(io))
        return;
    io->is_running = !io->is_stopping;
    LIST_EACH (node, &io->loops)
        sim__loop_kick(LIST_ENTRY(node, struct io_loop, node));
    io->runner = sim__thread_self();
    while (io->runner && !io->is_stopping)
        sim__thread_sleep();
    while (!io->runner && !io->is_stopping && !io->is_dead)
        if (!sim_step(io->host->world))
            UNREACHABLE(); /* The process waits for something that can never happen. */
    io->runner = NULL;
    if (!io->is_dead)
        end_loops(io);
}

void io_stop(struct io *io)
{
    if (!sim__call(io))
        return;
    io->is_stopping = true;
    io->is_running = false;
    if (io->runner)
        sim__task_ready(io->host->world, &io->runner->task);
}

/* ---- time, entropy, signals ------------------------------------------------------------- */

int64_t io_mono_ns(struct io *io)
{
    return io->host->world->now_ns;
}

int64_t io_wall_ms(struct io *io)
{
    return WALL_START_MS + io->host->world->now_ns / 1000000 + io->host->wall_skew_ms;
}

void io_random(struct io *io, void *p, size_t n)
{
    uint8_t *to = p;

    while (n > 0) {
        uint64_t v = rng_u64(&io->entropy);
        size_t part = MIN(n, sizeof(v));

        memcpy(to, &v, part);
        to += part;
        n -= part;
    }
}

int64_t io_cpu_ns(struct io *io)
{
    (void)io;
    return 0;
}

void io_usage_read(struct io *io, struct io_usage *out)
{
    (void)io;
    *out = (struct io_usage){0};
}

bool io_stderr_is(struct io *io, const char *device_inode)
{
    (void)io;
    (void)device_inode;
    return false;
}

enum err io_notify(struct io *io, const char *path, struct str text)
{
    (void)io;
    (void)path;
    (void)text;
    return ERR_NOT_FOUND;
}

enum err io_stdin_read(struct io *io, void *p, size_t n, int wait_ms, size_t *got)
{
    (void)io;
    (void)p;
    (void)n;
    (void)wait_ms;
    *got = 0;
    return ERR_EOF;
}

static void signal_deliver(struct io *io)
{
    io->signal->signo = io->signal_pending;
    io->signal_pending = 0;
    sim__op_done(&io->signal->op, ERR_NONE);
    io->signal = NULL;
}

void io_signal_wait(struct io_loop *loop, struct io_signal *s)
{
    if (!sim__call(loop->io))
        return;
    assert(!loop->io->signal);
    sim__op_begin(loop, &s->op, OP_SIGNAL);
    loop->io->signal = s;
    if (loop->io->signal_pending)
        signal_deliver(loop->io);
}

void sim_process_signal(struct io *io, int signo)
{
    if (!sim_process_is_alive(io))
        return;
    io->signal_pending = signo;
    if (io->signal)
        signal_deliver(io);
}
