/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long this broker may be sure that it leads what it was told to lead.
 *
 * One that was cut off or stood still goes on as the leader until it hears that another one was
 * elected. Nothing that it says about records is wrong: they are committed, and it commits no more
 * of them without its followers. But that an offset lies behind its end says nothing when another
 * leader has gone on; a consumer that is told so begins anew somewhere else. Consumers that know
 * the leader's epoch say so (KIP-320); others have read at the new leader, and were sent back here
 * by metadata that is as old.
 *
 * Nobody else leads before this broker's session has ended, and a client of ZooKeeper notices that
 * it is not heard when two thirds of the session's time are over. So while the session is connected
 * it is sure for a quarter of that time. The clock goes on while the process stands still.
 */
#include "broker/cluster.h"

#define SURE_NS_MAX 1000000000

static int64_t sure_ns(const struct control *c)
{
    int64_t timeout_ms = config_i32(c->config, CONFIG_ZOOKEEPER_SESSION_TIMEOUT_MS);

    return MIN(timeout_ms * 1000000 / 4, SURE_NS_MAX);
}

static void renew(struct cluster *k)
{
    struct control *c = k->control;
    int64_t now_ns = io_loop_mono_ns(c->loop);

    if (k->is_connected && k->is_told)
        atomic_store_explicit(&c->broker->sure_until_ns, now_ns + sure_ns(c), memory_order_relaxed);
    io_timer_set(c->loop, &k->lease, now_ns + sure_ns(c) / 2);
}

static void due(struct io_op *op)
{
    struct cluster *k = CONTAINER_OF(op, struct cluster, lease.op);

    if (!op->err && !k->control->stopping)
        renew(k);
}

void lease_begin(struct cluster *k)
{
    k->is_told = true;
    k->lease.op.done = due;
    if (!k->control->stopping)
        renew(k);
}

void lease_end(struct cluster *k)
{
    k->is_told = false;
    atomic_store_explicit(&k->control->broker->sure_until_ns, 0, memory_order_relaxed);
}

bool broker_is_sure(const struct shard *s)
{
    const struct broker *b = s->broker;

    return !b->is_in_cluster ||
           shard_now_ns(s) < atomic_load_explicit(&b->sure_until_ns, memory_order_relaxed);
}
