/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broker has to be told, as the difference of two images, in the requests of Apache Kafka
 * 3.9: UpdateMetadata (v8), LeaderAndIsr (v7), StopReplica (v4). So no order is ever lost: until a
 * broker has acknowledged an image, the difference to it is what it gets.
 *
 * Brokers' epochs travel in a tag of ours: leaders propose followers by them (KIP-903).
 */
#include <string.h>

#include "base/attr.h"
#include "controller/controller_int.h"

#define LEADER_DELETED (-2)
#define EPOCH_DELETED (-2)

struct ordering {
    const struct metadata_image *before;
    const struct metadata_image *now;
    int32_t to;
    struct arena *arena;
};

/* Each array of a message has a type of its own. */
#define LEND_IDS(field, from) ((field).v = (from).ids, (field).n = (from).count)

static bool hosts(const struct ordering *o, const struct metadata_partition *p)
{
    return p && metadata_ids_have(&p->replicas, o->to);
}

/* The topic in the other image, if it is the same one. */
static const struct metadata_topic *same_topic(const struct metadata_image *image,
                                               const struct metadata_topic *topic)
{
    const struct metadata_topic *other = metadata_find_topic(image, topic->name);

    return other && uuid_eq(other->id, topic->id) && !other->is_deleting ? other : NULL;
}

static bool has_changed(const struct metadata_partition *before,
                        const struct metadata_partition *now)
{
    return !before || before->leader_epoch != now->leader_epoch ||
           before->partition_epoch != now->partition_epoch ||
           before->replicas.count != now->replicas.count ||
           memcmp(before->replicas.ids, now->replicas.ids,
                  (size_t)now->replicas.count * sizeof(int32_t)) != 0 ||
           before->adding.count != now->adding.count ||
           before->removing.count != now->removing.count;
}

static const struct metadata_partition *partition_before(const struct metadata_topic *before,
                                                         int32_t index)
{
    return before ? metadata_find_partition(before, index) : NULL;
}

/* ---- states ----------------------------------------------------------------------------- */

static struct metadata_ids dead_replicas(const struct ordering *o,
                                         const struct metadata_partition *p)
{
    struct metadata_ids out = {
        .ids = arena_calloc(o->arena, (size_t)p->replicas.count + 1, sizeof(*out.ids))};

    for (int32_t i = 0; i < p->replicas.count; i++)
        if (!metadata_is_alive(o->now, p->replicas.ids[i]))
            out.ids[out.count++] = p->replicas.ids[i];
    return out;
}

static void add_state(const struct ordering *o, struct update_metadata_request_topic *topic,
                      int32_t index, const struct metadata_partition *p, int32_t leader)
{
    struct update_metadata_request_partition *s =
        &topic->partition_states.v[topic->partition_states.n++];
    struct metadata_ids dead = dead_replicas(o, p);

    wire_init(&update_metadata_request_partition_schema, s);
    s->partition_index = index;
    s->controller_epoch = o->now->controller_epoch;
    s->leader = leader;
    s->leader_epoch = p->leader_epoch;
    LEND_IDS(s->isr, p->isr);
    s->zk_version = p->partition_epoch;
    LEND_IDS(s->replicas, p->replicas);
    LEND_IDS(s->offline_replicas, dead);
}

static struct update_metadata_request_topic *begin_states(const struct ordering *o,
                                                          struct update_metadata_request *q,
                                                          const struct metadata_topic *topic)
{
    struct update_metadata_request_topic *t = &q->topic_states.v[q->topic_states.n];

    wire_init(&update_metadata_request_topic_schema, t);
    t->topic_name = topic->name;
    t->topic_id = topic->id;
    t->partition_states.v = arena_calloc(o->arena, (size_t)MAX(topic->partition_count, 1),
                                         sizeof(*t->partition_states.v));
    return t;
}

static void add_changed_states(const struct ordering *o, struct update_metadata_request *q,
                               const struct metadata_topic *topic)
{
    const struct metadata_topic *before = same_topic(o->before, topic);
    struct update_metadata_request_topic *t;

    if (before == topic || topic->is_deleting)
        return;
    t = begin_states(o, q, topic);
    for (int32_t i = 0; i < topic->partition_count; i++)
        if (has_changed(partition_before(before, i), &topic->partitions[i]))
            add_state(o, t, i, &topic->partitions[i], topic->partitions[i].leader);
    q->topic_states.n += t->partition_states.n > 0;
}

static void add_deleted_states(const struct ordering *o, struct update_metadata_request *q,
                               const struct metadata_topic *before)
{
    struct update_metadata_request_topic *t;

    if (before->is_deleting || same_topic(o->now, before))
        return;
    t = begin_states(o, q, before);
    for (int32_t i = 0; i < before->partition_count; i++)
        add_state(o, t, i, &before->partitions[i], LEADER_DELETED);
    q->topic_states.n++;
}

static void add_broker(const struct ordering *o, struct update_metadata_request *q,
                       const struct metadata_broker *b)
{
    struct update_metadata_request_broker *out = &q->live_brokers.v[q->live_brokers.n++];

    wire_init(&update_metadata_request_broker_schema, out);
    out->id = b->id;
    out->rack = b->rack;
    out->epoch = b->epoch;
    out->endpoints.n = b->endpoint_count;
    out->endpoints.v =
        arena_calloc(o->arena, (size_t)MAX(b->endpoint_count, 1), sizeof(*out->endpoints.v));
    for (int32_t i = 0; i < b->endpoint_count; i++) {
        wire_init(&update_metadata_request_endpoint_schema, &out->endpoints.v[i]);
        out->endpoints.v[i].host = b->endpoints[i].host;
        out->endpoints.v[i].port = b->endpoints[i].port;
        out->endpoints.v[i].listener = b->endpoints[i].listener;
    }
}

static int64_t epoch_of(const struct ordering *o)
{
    const struct metadata_broker *b = metadata_find_broker(o->now, o->to);

    return b ? b->epoch : -1;
}

static struct update_metadata_request *order_states(const struct ordering *o)
{
    struct update_metadata_request *q = arena_alloc(o->arena, sizeof(*q));
    size_t topics = (size_t)o->now->topic_count + (size_t)o->before->topic_count + 1;

    wire_init(&update_metadata_request_schema, q);
    q->controller_id = o->now->controller_id;
    q->controller_epoch = o->now->controller_epoch;
    q->broker_epoch = epoch_of(o);
    q->order_version = (int64_t)o->now->version;
    q->type = o->before->version == 0 ? CONTROLLER_ORDERS_ALL : CONTROLLER_ORDERS_SOME;
    q->topic_states.v = arena_calloc(o->arena, topics, sizeof(*q->topic_states.v));
    /* First those that go: one of the same name may have come instead. */
    for (int32_t i = 0; i < o->before->topic_count; i++)
        add_deleted_states(o, q, o->before->topics[i]);
    for (int32_t i = 0; i < o->now->topic_count; i++)
        add_changed_states(o, q, o->now->topics[i]);
    q->live_brokers.v =
        arena_calloc(o->arena, (size_t)MAX(o->now->broker_count, 1), sizeof(*q->live_brokers.v));
    /* Who is about to stop is no broker for the others any more. */
    for (int32_t i = 0; i < o->now->broker_count; i++)
        if (!o->now->brokers[i]->is_fenced || o->now->brokers[i]->id == o->to)
            add_broker(o, q, o->now->brokers[i]);
    return q;
}

static bool is_news(const struct ordering *o, const struct update_metadata_request *q)
{
    return q->topic_states.n > 0 || !metadata_same_brokers(o->before, o->now) ||
           o->before->controller_epoch != o->now->controller_epoch;
}

/* ---- roles ------------------------------------------------------------------------------ */

static void add_role(const struct ordering *o, struct leader_and_isr_request_topic *topic,
                     int32_t index, const struct metadata_partition *p, bool is_new)
{
    struct leader_and_isr_request_partition *s =
        &topic->partition_states.v[topic->partition_states.n++];

    wire_init(&leader_and_isr_request_partition_schema, s);
    s->partition_index = index;
    s->controller_epoch = o->now->controller_epoch;
    s->leader = p->leader;
    s->leader_epoch = p->leader_epoch;
    LEND_IDS(s->isr, p->isr);
    s->partition_epoch = p->partition_epoch;
    LEND_IDS(s->replicas, p->replicas);
    LEND_IDS(s->adding_replicas, p->adding);
    LEND_IDS(s->removing_replicas, p->removing);
    s->is_new = is_new;
}

/* Nobody has a log of it yet, or the receiver is to get one. */
static bool is_new_here(const struct ordering *o, const struct metadata_partition *then,
                        const struct metadata_partition *p)
{
    return (p->leader_epoch == 0 && p->partition_epoch == 0) ||
           (then && !hosts(o, then) && metadata_ids_have(&p->adding, o->to));
}

static void add_roles(const struct ordering *o, struct leader_and_isr_request *q,
                      const struct metadata_topic *topic)
{
    const struct metadata_topic *before = same_topic(o->before, topic);
    struct leader_and_isr_request_topic *t = &q->topic_states.v[q->topic_states.n];

    if (before == topic || topic->is_deleting)
        return;
    wire_init(&leader_and_isr_request_topic_schema, t);
    t->topic_name = topic->name;
    t->topic_id = topic->id;
    t->partition_states.v = arena_calloc(o->arena, (size_t)MAX(topic->partition_count, 1),
                                         sizeof(*t->partition_states.v));
    for (int32_t i = 0; i < topic->partition_count; i++) {
        const struct metadata_partition *p = &topic->partitions[i];
        const struct metadata_partition *then = partition_before(before, i);

        if (hosts(o, p) && has_changed(then, p))
            add_role(o, t, i, p, is_new_here(o, then, p));
    }
    q->topic_states.n += t->partition_states.n > 0;
}

static bool leads_one_of(const struct leader_and_isr_request *q, int32_t id)
{
    for (int32_t t = 0; t < q->topic_states.n; t++)
        for (int32_t i = 0; i < q->topic_states.v[t].partition_states.n; i++)
            if (q->topic_states.v[t].partition_states.v[i].leader == id)
                return true;
    return false;
}

static void add_leaders(const struct ordering *o, struct leader_and_isr_request *q,
                        struct str listener)
{
    q->live_leaders.v =
        arena_calloc(o->arena, (size_t)MAX(o->now->broker_count, 1), sizeof(*q->live_leaders.v));
    for (int32_t i = 0; i < o->now->broker_count; i++) {
        const struct metadata_broker *b = o->now->brokers[i];
        const struct metadata_endpoint *e = metadata_find_endpoint(b, listener);
        struct leader_and_isr_request_live_leader *out;

        if (!e || !leads_one_of(q, b->id))
            continue;
        out = &q->live_leaders.v[q->live_leaders.n++];
        wire_init(&leader_and_isr_request_live_leader_schema, out);
        out->broker_id = b->id;
        out->host_name = e->host;
        out->port = e->port;
    }
}

static struct leader_and_isr_request *order_roles(const struct ordering *o, struct str listener)
{
    struct leader_and_isr_request *q = arena_alloc(o->arena, sizeof(*q));

    wire_init(&leader_and_isr_request_schema, q);
    q->controller_id = o->now->controller_id;
    q->controller_epoch = o->now->controller_epoch;
    q->broker_epoch = epoch_of(o);
    q->order_version = (int64_t)o->now->version;
    q->type = o->before->version == 0 ? CONTROLLER_ORDERS_ALL : CONTROLLER_ORDERS_SOME;
    q->topic_states.v =
        arena_calloc(o->arena, (size_t)o->now->topic_count + 1, sizeof(*q->topic_states.v));
    for (int32_t i = 0; i < o->now->topic_count; i++)
        add_roles(o, q, o->now->topics[i]);
    add_leaders(o, q, listener);
    return q;
}

/* ---- stops ------------------------------------------------------------------------------ */

static void add_stop(struct stop_replica_request_topic_state *topic, int32_t index,
                     int32_t leader_epoch)
{
    struct stop_replica_request_partition *s =
        &topic->partition_states.v[topic->partition_states.n++];

    wire_init(&stop_replica_request_partition_schema, s);
    s->partition_index = index;
    s->leader_epoch = leader_epoch;
    s->delete_partition = true;
}

static void add_stops(const struct ordering *o, struct stop_replica_request *q,
                      const struct metadata_topic *before)
{
    const struct metadata_topic *now = same_topic(o->now, before);
    struct stop_replica_request_topic_state *t = &q->topic_states.v[q->topic_states.n];

    if (now == before || before->is_deleting)
        return;
    wire_init(&stop_replica_request_topic_state_schema, t);
    t->topic_name = before->name;
    t->partition_states.v = arena_calloc(o->arena, (size_t)MAX(before->partition_count, 1),
                                         sizeof(*t->partition_states.v));
    for (int32_t i = 0; i < before->partition_count; i++) {
        const struct metadata_partition *p = now ? metadata_find_partition(now, i) : NULL;

        if (hosts(o, &before->partitions[i]) && !hosts(o, p))
            add_stop(t, i, p ? p->leader_epoch : EPOCH_DELETED);
    }
    q->topic_states.n += t->partition_states.n > 0;
}

static struct stop_replica_request *order_stops(const struct ordering *o)
{
    struct stop_replica_request *q = arena_alloc(o->arena, sizeof(*q));

    wire_init(&stop_replica_request_schema, q);
    q->controller_id = o->now->controller_id;
    q->controller_epoch = o->now->controller_epoch;
    q->broker_epoch = epoch_of(o);
    q->order_version = (int64_t)o->now->version;
    q->topic_states.v =
        arena_calloc(o->arena, (size_t)o->before->topic_count + 1, sizeof(*q->topic_states.v));
    for (int32_t i = 0; i < o->before->topic_count; i++)
        add_stops(o, q, o->before->topics[i]);
    return q;
}

void controller_orders(const struct metadata_image *before, const struct metadata_image *now,
                       int32_t to, struct str listener, struct arena *arena,
                       struct controller_orders *out)
{
    struct ordering o = {.before = before, .now = now, .to = to, .arena = arena};

    out->states = order_states(&o);
    out->roles = order_roles(&o, listener);
    out->stops = order_stops(&o);
    if (!is_news(&o, out->states))
        out->states = NULL;
    if (out->roles->topic_states.n == 0)
        out->roles = NULL;
    if (out->stops->topic_states.n == 0)
        out->stops = NULL;
}
