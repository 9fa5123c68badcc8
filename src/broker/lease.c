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
 * it is sure for a quarter of that time. One that stops is not sure of anything any more: it has
 * asked that others lead, or refuses connections, and may be the last to hear what came of it. The
 * clock goes on while the process stands still: a timer that comes late says that it did, and that
 * what the session seems to be is from before.
 *
 * Metadata of one that has just come back is as old, and others have told its clients better. A
 * client that forgets the newer leader for it (librdkafka before 2.1) and is told of that one again
 * a moment later may go on asking the old one for ever. So it is answered when this broker is sure
 * again, which takes some milliseconds where the store can be reached. Where it cannot, what is
 * known has to do: for longer than DOUBT_NS nobody waits.
 */
#include "broker/cluster.h"

#define SURE_NS_MAX 1000000000
#define DOUBT_NS 2000000000
#define LOOK_AGAIN_NS 50000000 /* behind a late timer: the session's own have come by then */

/* A request that waits until what this broker knows can be told. */
struct doubtful {
    struct list link; /* cluster->doubtful */
    struct request *request;
};

static int64_t sure_ns(const struct control *c)
{
    int64_t timeout_ms = config_i32(c->config, CONFIG_ZOOKEEPER_SESSION_TIMEOUT_MS);

    return MIN(timeout_ms * 1000000 / 4, SURE_NS_MAX);
}

static bool is_in_doubt(const struct cluster *k)
{
    int64_t now_ns = io_loop_mono_ns(k->control->loop);
    const struct broker *b = k->control->broker;

    return !k->control->stopping && k->lease_due_ns > 0 &&
           now_ns >= atomic_load_explicit(&b->sure_until_ns, memory_order_relaxed) &&
           (k->doubts_since_ns == 0 || now_ns < k->doubts_since_ns + DOUBT_NS);
}

static void release(struct cluster *k)
{
    struct list *node;

    while (!is_in_doubt(k) && (node = list_pop_front(&k->doubtful)))
        request_return(LIST_ENTRY(node, struct doubtful, link)->request);
}

static void renew(struct cluster *k)
{
    struct control *c = k->control;
    _Atomic int64_t *sure_until_ns = &c->broker->sure_until_ns;
    int64_t now_ns = io_loop_mono_ns(c->loop);
    bool is_late = k->lease_due_ns > 0 && now_ns > k->lease_due_ns + sure_ns(c) / 2;

    if (k->is_connected && k->is_told && !is_late) {
        atomic_store_explicit(sure_until_ns, now_ns + sure_ns(c), memory_order_relaxed);
        k->doubts_since_ns = 0;
    } else if (k->doubts_since_ns == 0 &&
               now_ns >= atomic_load_explicit(sure_until_ns, memory_order_relaxed)) {
        k->doubts_since_ns = now_ns;
    }
    k->lease_due_ns = now_ns + (is_late ? LOOK_AGAIN_NS : sure_ns(c) / 2);
    io_timer_set(c->loop, &k->lease, k->lease_due_ns);
    release(k);
}

static void due(struct io_op *op)
{
    if (!op->err)
        renew(CONTAINER_OF(op, struct cluster, lease.op));
}

void lease_begin(struct cluster *k)
{
    if (k->control->stopping)
        return;
    k->is_told = true;
    k->lease.op.done = due;
    renew(k);
}

void lease_end(struct cluster *k)
{
    k->is_told = false;
    k->doubts_since_ns = 0;
    atomic_store_explicit(&k->control->broker->sure_until_ns, 0, memory_order_relaxed);
}

void lease_connected(struct cluster *k)
{
    if (k->lease_due_ns > 0 && !k->control->stopping)
        renew(k);
}

void lease_await(struct control *c, struct request *r)
{
    struct doubtful *d = request_alloc(r, sizeof(*d));

    d->request = r;
    list_push_back(&c->cluster->doubtful, &d->link);
    release(c->cluster);
}

bool broker_is_sure(const struct shard *s)
{
    const struct broker *b = s->broker;

    return !b->is_in_cluster ||
           shard_now_ns(s) < atomic_load_explicit(&b->sure_until_ns, memory_order_relaxed);
}
