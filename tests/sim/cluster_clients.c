/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients of a cluster: one loop with all actors. They know no metadata: whoever is told that
 * it has asked the wrong broker asks the next one, which finds every leader sooner or later and
 * meets brokers in every state that they can be in.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cluster.h"

#define TICK_NS (2 * MS)

void peer_go_on(struct peer *p)
{
    const struct cluster_world *w = p->run->cluster;
    int at = 0;

    for (int i = 0; i < NODES; i++)
        if (w->nodes[i].host == p->host)
            at = i;
    p->host = w->nodes[(at + 1) % NODES].host;
    peer_close(p);
}

void peer_go_to(struct peer *p, int32_t broker)
{
    p->host = p->run->cluster->nodes[broker - 1].host;
    peer_close(p);
}

bool is_of_leadership(enum err err)
{
    switch (err) {
    case ERR_NOT_LEADER_OR_FOLLOWER:
    case ERR_LEADER_NOT_AVAILABLE:
    case ERR_NOT_CONTROLLER:
    case ERR_UNKNOWN_TOPIC_OR_PARTITION: /* it has not heard of it yet, or has no part of it */
    case ERR_UNKNOWN_TOPIC_ID:
    case ERR_KAFKA_STORAGE_ERROR:
    case ERR_REQUEST_TIMED_OUT:
    case ERR_NOT_ENOUGH_REPLICAS:
    case ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    case ERR_OFFSET_NOT_AVAILABLE:
    case ERR_COORDINATOR_NOT_AVAILABLE:
    case ERR_BROKER_NOT_AVAILABLE:
    case ERR_FENCED_LEADER_EPOCH:
    case ERR_UNKNOWN_LEADER_EPOCH: return true;
    default: return false;
    }
}

static void tick(struct io_op *op)
{
    struct cluster_world *w = CONTAINER_OF(op, struct cluster_world, tick.op);
    struct run *run = w->run;

    if (op->err)
        return;
    if (run->ends || run_is_over(run)) {
        io_stop(run->client_io);
        return;
    }
    LIST_EACH (node, &run->peers)
        peer_check(LIST_ENTRY(node, struct peer, link));
    steward_tick(w->steward);
    for (int i = 0; i < w->writer_count; i++)
        writer_tick(w->writers[i]);
    for (int i = 0; i < w->reader_count; i++)
        cluster_reader_tick(w->readers[i]);
    if (w->verifies)
        cluster_reader_tick(w->verifier);
    io_timer_set(run->client_loop, &w->tick, run_now(run) + TICK_NS);
}

static void started(void *ctx)
{
    struct cluster_world *w = ctx;
    struct run *run = w->run;

    w->tick.op.done = tick;
    w->steward = steward_new(run);
    for (int i = 0; i < w->writer_count; i++)
        w->writers[i] = writer_new(run, i);
    for (int i = 0; i < w->reader_count; i++)
        w->readers[i] = cluster_reader_new(run, false);
    w->verifier = cluster_reader_new(run, true);
    io_timer_set(run->client_loop, &w->tick, run_now(run));
}

static void clients_main(struct io *io, void *ctx)
{
    struct cluster_world *w = ctx;

    w->run->client_io = io;
    w->run->client_loop = io_loop_new(io, "clients", started, w);
    io_run(io);
}

void cluster_clients_start(struct run *run)
{
    struct cluster_world *w = run->cluster;

    w->writer_count = run->plan.producers;
    w->reader_count = run->plan.consumers;
    list_init(&run->peers);
    run->client_io = sim_process_start(run->client_host, NULL, clients_main, w);
}

void cluster_clients_free(struct run *run)
{
    struct cluster_world *w = run->cluster;

    steward_free(w->steward);
    for (int i = 0; i < w->writer_count; i++)
        writer_free(w->writers[i]);
    for (int i = 0; i < w->reader_count; i++)
        cluster_reader_free(w->readers[i]);
    cluster_reader_free(w->verifier);
}
