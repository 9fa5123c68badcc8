/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients' process: one loop with all actors, which outlives every broker of the run. A tick
 * of a few virtual milliseconds lets each do what is due and looks after requests that wait too
 * long.
 */
#include "clients.h"

#include <stdlib.h>

#include "base/alloc.h"

#define TICK_NS (5 * MS)

static void tick(struct io_op *op)
{
    struct clients *c = CONTAINER_OF(op, struct clients, tick.op);
    struct run *run = c->run;

    if (op->err)
        return;
    if (run->ends || run_is_over(run)) {
        io_stop(run->client_io);
        return;
    }
    LIST_EACH (node, &run->peers)
        peer_check(LIST_ENTRY(node, struct peer, link));
    admin_tick(c->admin);
    for (int i = 0; i < run->plan.producers; i++)
        producer_tick(c->producers[i]);
    for (int i = 0; i < run->plan.consumers; i++)
        consumer_tick(c->consumers[i]);
    if (c->verifies)
        consumer_tick(c->verifier);
    fleet_tick(run);
    io_timer_set(run->client_loop, &c->tick, run_now(run) + TICK_NS);
}

static void started(void *ctx)
{
    struct clients *c = ctx;
    struct run *run = c->run;

    c->tick.op.done = tick;
    c->admin = admin_new(run);
    for (int i = 0; i < run->plan.producers; i++)
        c->producers[i] = producer_new(run, i);
    for (int i = 0; i < run->plan.consumers; i++)
        c->consumers[i] = consumer_new(run, i, false);
    c->verifier = consumer_new(run, CONSUMERS_MAX, true);
    fleet_start(run);
    io_timer_set(run->client_loop, &c->tick, run_now(run));
}

static void clients_main(struct io *io, void *ctx)
{
    struct clients *c = ctx;

    c->run->client_io = io;
    c->run->client_loop = io_loop_new(io, "clients", started, c);
    io_run(io);
}

void clients_start(struct run *run)
{
    run->clients = xcalloc(1, sizeof(*run->clients));
    run->clients->run = run;
    list_init(&run->peers);
    run->client_io = sim_process_start(run->client_host, NULL, clients_main, run->clients);
}

bool clients_are_idle(const struct run *run)
{
    const struct clients *c = run->clients;

    for (int i = 0; i < run->plan.producers; i++)
        if (!producer_is_idle(c->producers[i]))
            return false;
    return admin_is_settled(c->admin);
}

void clients_verify(struct run *run)
{
    struct clients *c = run->clients;

    c->verifies = true;
    consumer_restart(c->verifier);
    for (int i = 0; i < run->plan.consumers; i++)
        consumer_restart(c->consumers[i]);
}

bool clients_have_verified(const struct run *run)
{
    const struct clients *c = run->clients;

    for (int i = 0; i < run->plan.consumers; i++)
        if (!consumer_is_done(c->consumers[i]))
            return false;
    return c->verifies && consumer_is_done(c->verifier) && admin_is_settled(c->admin) &&
           fleet_is_settled(c->run);
}

void clients_complain(const struct run *run)
{
    const struct clients *c = run->clients;

    for (int i = 0; i < run->plan.consumers; i++)
        consumer_complain(c->consumers[i]);
    consumer_complain(c->verifier);
    fleet_complain(c->run);
}

void clients_free(struct run *run)
{
    struct clients *c = run->clients;

    admin_free(c->admin);
    for (int i = 0; i < run->plan.producers; i++)
        producer_free(c->producers[i]);
    for (int i = 0; i < run->plan.consumers; i++)
        consumer_free(c->consumers[i]);
    consumer_free(c->verifier);
    fleet_free(c->run);
    free(c);
}
