/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The brokers of a cluster: their settings, their lives, and their sessions with the keeper. A
 * session ends when its broker has been silent for longer than the timeout, dead or paused; only
 * then do others learn of it, as from a real service. A supervisor starts what has died.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster.h"

#define DOWN_NS_MAX (2 * SECOND)
#define STOP_NS_MAX (10 * SECOND)

/* Rare things are frequent, and what takes seconds takes a moment. */
static struct config *settings(const struct node *n)
{
    struct config *c = config_new();
    char *message = NULL;
    enum err err;

    node_set(c, "node.id=%d", n->id);
    node_set(c, "listeners=PLAINTEXT://%s:%d", sim_host_address(n->host), BROKER_PORT);
    node_set(c, "log.dirs=%s", n->has_two_dirs ? "/data,/more" : "/data");
    node_set(c, "num.shards=%d", n->run->plan.shards);
    node_set(c, "auto.create.topics.enable=false");
    node_set(c, "zookeeper.session.timeout.ms=%d", NODE_SESSION_MS);
    node_set(c, "replica.lag.time.max.ms=%d", 500);
    node_set(c, "replica.fetch.wait.max.ms=%d", 50);
    node_set(c, "replica.fetch.backoff.ms=%d", 50);
    node_set(c, "replica.socket.timeout.ms=%d", 1000);
    node_set(c, "controller.socket.timeout.ms=%d", 1000);
    node_set(c, "log.retention.check.interval.ms=%d", 30000);
    node_set(c, "log.flush.offset.checkpoint.interval.ms=%d", 300);
    node_set(c, "log.flush.start.offset.checkpoint.interval.ms=%d", 400);
    node_set(c, "replica.high.watermark.checkpoint.interval.ms=%d", 250);
    node_set(c, "log.segment.delete.delay.ms=%d", 100);
    node_set(c, "log.index.interval.bytes=%d", 400);
    if (n->run->plan.has_racks) {
        node_set(c, "broker.rack=%d", n->id);
        node_set(c, "replica.selector.class=%s",
                 "org.apache.kafka.common.replica.RackAwareReplicaSelector");
    }
    err = config_validate(c, &message);
    assert(!err);
    return c;
}

/* ---- a life ------------------------------------------------------------------------------- */

static void ready(void *ctx, const struct broker_ready *r)
{
    struct node *n = ctx;

    n->is_ready = true;
    tell(n->run, "broker %d is ready, %lld bytes were cut", n->id, (long long)r->bytes_cut);
    n->run->counts.starts++;
    n->run->counts.cut_bytes += r->bytes_cut;
    if (r->damaged > 0 && !n->is_harmed)
        violate(n->run, "%d partitions are damaged at broker %d, and no disk has changed its bytes",
                r->damaged, n->id);
}

static void stopped(void *ctx, enum err err, const char *why)
{
    struct node *n = ctx;

    n->is_stopped = true;
    n->stop_err = err;
    if (err && !n->is_harmed && !n->has_bad_disk)
        violate(n->run, "broker %d stops: %s", n->id, why ? why : err_name(err));
    tell(n->run, "broker %d stops: %s", n->id, why ? why : "");
}

static struct keeper *open_keeper(void *ctx, struct io_loop *loop,
                                  const struct keeper_events *events, void *events_ctx)
{
    struct node *n = ctx;
    struct keeper *k = keeper_memory_open(n->run->cluster->keeper, loop, events, events_ctx);

    n->session = keeper_session_id(k);
    return k;
}

static void node_main(struct io *io, void *ctx)
{
    struct node *n = ctx;
    struct broker_args args = {
        .io = io,
        .config = settings(n),
        .ready = ready,
        .stopped = stopped,
        .open_keeper = open_keeper,
        .ctx = n,
    };

    node_live(n->run, &args);
}

/* What only the broker's own words tell. */
static void take_line(void *ctx, enum trace_level level, const char *line)
{
    struct node *n = ctx;
    struct counts *counts = &n->run->counts;
    const char *epoch = strstr(line, "cluster.registered") ? strstr(line, "epoch=") : NULL;

    (void)level;
    if (epoch)
        n->broker_epoch = strtoll(epoch + strlen("epoch="), NULL, 10);
    counts->rules += strstr(line, "controller.took_over") != NULL;
    counts->resigned += strstr(line, "controller.resigned") != NULL;
    counts->renewed += strstr(line, "cluster.session_ended") != NULL;
    counts->truncations += strstr(line, "partition.truncating") != NULL;
    counts->without_space += strstr(line, "log.no_space") != NULL;
    counts->cut_committed += strstr(line, "log.truncated_below_hw") != NULL;
}

/* What a broker notes as soon as it has registered (src/broker/notes.c). */
static bool has_note(const struct node *n)
{
    struct io *io = sim_process_start(n->host, NULL, NULL, NULL);
    struct io_stat st;
    enum err err = io_path_stat(io, "/data/cluster-since", &st);

    if (!err && n->has_two_dirs)
        err = io_path_stat(io, "/more/cluster-since", &st);
    io_free(io);
    return !err;
}

void node_begin(struct node *n)
{
    struct io_options options = {
        .trace_level = TRACE_INFO, .trace_sink = take_line, .trace_ctx = n};

    if (n->io && !has_note(n))
        n->run->cluster->lacks_note = true;
    n->is_ready = n->is_stopped = false;
    n->stops_ns = 0;
    n->starts_ns = INT64_MAX;
    tell(n->run, "broker %d starts", n->id);
    n->io = sim_process_start(n->host, &options, node_main, n);
}

bool node_lives(const struct node *n)
{
    return n->io && sim_process_is_alive(n->io);
}

struct keeper *node_keeper(const struct node *n)
{
    return n->session ? keeper_memory_find(n->run->cluster->keeper, n->session) : NULL;
}

/* ---- what happens to it ------------------------------------------------------------------- */

/* Others find out when the session ends, however soon the next life begins. */
static void fall_silent(struct node *n)
{
    struct cluster_world *w = n->run->cluster;

    if (!node_keeper(n))
        return;
    assert(w->doomed_count < DOOMED_MAX);
    w->doomed[w->doomed_count++] =
        (struct doomed){.session = n->session, .ends_ns = run_now(n->run) + NODE_SESSION_MS * MS};
}

void node_lose_keeper(struct node *n)
{
    tell(n->run, "broker %d does not reach the keeper any more", n->id);
    if (node_keeper(n))
        keeper_memory_cut_off(node_keeper(n));
    fall_silent(n);
}

static void forget_silence(struct cluster_world *w, int64_t session)
{
    int kept = 0;

    for (int i = 0; i < w->doomed_count; i++)
        if (w->doomed[i].session != session)
            w->doomed[kept++] = w->doomed[i];
    w->doomed_count = kept;
}

void node_find_keeper(struct node *n)
{
    if (!node_lives(n) || !node_keeper(n))
        return;
    forget_silence(n->run->cluster, n->session);
    keeper_memory_reach(node_keeper(n));
}

static void note_death(struct node *n)
{
    fall_silent(n);
    n->starts_ns = run_now(n->run) + (int64_t)run_choose(n->run, 20) * DOWN_NS_MAX / 20;
}

void node_kill(struct node *n)
{
    if (!node_lives(n))
        return;
    tell(n->run, "broker %d is killed", n->id);
    sim_process_kill(n->io);
    n->run->counts.crashes++;
    note_death(n);
}

void node_cut_power(struct node *n)
{
    tell(n->run, "power is cut of broker %d", n->id);
    sim_host_power_cut(n->host);
    n->run->counts.power_cuts++;
    if (n->starts_ns == INT64_MAX)
        note_death(n);
}

static void remove_tree(struct io *io, const char *path)
{
    struct io_names names;
    enum err err = io_dir_list(io, path, &names);

    for (size_t i = 0; !err && i < names.n; i++) {
        char *at = xasprintf("%s/%s", path, names.v[i]);

        if (io_path_unlink(io, at))
            remove_tree(io, at);
        free(at);
    }
    if (!err) {
        io_names_free(&names);
        err = io_dir_sync(io, path); /* A power cut would bring them back. */
    }
    if (!err)
        err = io_dir_remove(io, path);
    (void)err; /* A broker that never started has none. */
}

void node_fail_disk(struct node *n, enum sim_call call, uint32_t nth)
{
    static const char *const calls[SIM_CALLS] = {"read", "write", "sync", "call for a name"};

    tell(n->run, "the disk of broker %d is to fail: its %s number %u from now", n->id, calls[call],
         nth);
    sim_disk_fail_nth(n->host, call, nth);
    n->has_bad_disk = true;
}

void node_mend_disk(struct node *n)
{
    if (!n->has_bad_disk)
        return;
    for (int call = 0; call < SIM_CALLS; call++)
        sim_disk_fail_nth(n->host, (enum sim_call)call, 0);
    node_kill(n);
    n->has_bad_disk = false;
}

void node_lose_disk(struct node *n)
{
    struct io *io;

    node_mend_disk(n);
    node_kill(n);
    tell(n->run, "the disk of broker %d is replaced", n->id);
    io = sim_process_start(n->host, NULL, NULL, NULL);
    remove_tree(io, "/data");
    if (n->has_two_dirs)
        remove_tree(io, "/more");
    assert(io_dir_sync(io, "/") == ERR_NONE);
    io_free(io);
}

void node_pause(struct node *n, int64_t ns)
{
    tell(n->run, "broker %d stands still for %lld ms", n->id, (long long)(ns / MS));
    sim_host_pause(n->host, ns);
    n->paused_ns = run_now(n->run) + ns;
    if (ns >= NODE_SESSION_MS * MS)
        fall_silent(n);
}

void node_stop(struct node *n)
{
    if (!node_lives(n))
        return;
    tell(n->run, "broker %d is asked to stop", n->id);
    if (n->stops_ns == 0)
        n->stops_ns = run_now(n->run);
    sim_process_signal(n->io, SIGTERM);
}

static void check_stop(struct node *n)
{
    int64_t since_ns = MAX(n->stops_ns, n->paused_ns);

    if (n->stops_ns > 0 && node_lives(n) && run_now(n->run) > since_ns + STOP_NS_MAX)
        violate(n->run, "broker %d was asked to stop and goes on", n->id);
}

static void look_after(struct node *n)
{
    check_stop(n);
    if (n->io && !node_lives(n) && n->starts_ns == INT64_MAX) {
        tell(n->run, "broker %d has ended%s", n->id, n->is_stopped ? "" : " at a call");
        n->run->counts.clean_stops += n->is_stopped && !n->stop_err;
        note_death(n);
    }
    if (run_now(n->run) >= n->starts_ns && !n->run->cluster->keeps_down)
        node_begin(n);
}

static void end_sessions(struct cluster_world *w)
{
    int kept = 0;

    for (int i = 0; i < w->doomed_count; i++) {
        struct doomed d = w->doomed[i];
        struct keeper *k = keeper_memory_find(w->keeper, d.session);

        if (run_now(w->run) < d.ends_ns) {
            w->doomed[kept++] = d;
        } else if (k) {
            tell(w->run, "session %lld ends", (long long)d.session);
            w->run->counts.expired++;
            keeper_memory_expire(k);
        }
    }
    w->doomed_count = kept;
}

void nodes_look_after(struct run *run)
{
    end_sessions(run->cluster);
    for (int i = 0; i < NODES; i++)
        look_after(&run->cluster->nodes[i]);
}

bool nodes_are_ready(const struct run *run)
{
    for (int i = 0; i < NODES; i++) {
        const struct node *n = &run->cluster->nodes[i];

        if (!node_lives(n) || !n->is_ready || run_now(run) < n->paused_ns)
            return false;
    }
    return run->cluster->doomed_count == 0;
}

void nodes_make(struct run *run)
{
    struct cluster_world *w = xcalloc(1, sizeof(*w));

    w->run = run;
    w->keeper = keeper_memory_new();
    run->cluster = w;
    for (int i = 0; i < NODES; i++) {
        char name[16];

        snprintf(name, sizeof(name), "broker%d", i + 1);
        w->nodes[i] = (struct node){
            .run = run,
            .id = i + 1,
            .host = sim_host_new(run->world, name),
            .starts_ns = INT64_MAX,
        };
    }
}

void nodes_free(struct run *run)
{
    keeper_memory_free(run->cluster->keeper);
    free(run->cluster->ids);
    free(run->cluster);
}
