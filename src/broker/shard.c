/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard: one loop with its connections, the partitions it owns, and its own map of all
 * partitions there are. Nothing here is locked: what another loop wants from a shard comes as a
 * message, and what a shard knows of topics is what the control loop has told it so far.
 *
 * Deadlines of requests are kept in a heap behind one timer, because most of them are cancelled
 * long before they are due: that costs no operation, and a timer that was armed for a deadline
 * that no longer exists just fires early once.
 */
#include "broker/coordinator.h"
#include "broker/fetcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/client.h"

/* How long a stop waits for answers to be taken. */
#define DRAIN_NS 2000000000
#define CLOSE_NS 100000000
#define ACCEPT_RETRY_NS 100000000
#define FLUSHES_A_TURN 16 /* of half a megabyte each at the most */

/* ---- time ------------------------------------------------------------------------------- */

int64_t shard_now_ns(const struct shard *s)
{
    return io_loop_mono_ns(s->loop);
}

int64_t shard_now_ms(const struct shard *s)
{
    return io_loop_wall_ms(s->loop);
}

static void arm_delays(struct shard *s)
{
    struct heap_node *first = heap_min(&s->delays);

    if (!first)
        return;
    if (io_op_is_pending(&s->delay_timer.op) && s->delay_timer._node.key <= first->key)
        return;
    io_timer_set(s->loop, &s->delay_timer, first->key);
}

void shard_delay_set(struct shard *s, struct delay *d, int64_t deadline_ns)
{
    heap_remove(&s->delays, &d->node);
    heap_push(&s->delays, &d->node, deadline_ns);
    arm_delays(s);
}

void shard_delay_cancel(struct shard *s, struct delay *d)
{
    heap_remove(&s->delays, &d->node);
}

static void delays_due(struct io_op *op)
{
    struct shard *s = CONTAINER_OF(op, struct shard, delay_timer.op);
    int64_t now = shard_now_ns(s);

    if (op->err)
        return;
    for (;;) {
        struct heap_node *first = heap_min(&s->delays);
        struct delay *d;

        if (!first || first->key > now)
            break;
        heap_remove(&s->delays, first);
        d = CONTAINER_OF(first, struct delay, node);
        d->expired(d);
    }
    arm_delays(s);
}

/* ---- sending at the end of a turn ------------------------------------------------------- */

static void post_flush(struct shard *s)
{
    if (s->flush_posted)
        return;
    s->flush_posted = true;
    io_post(s->loop, &s->flush_msg);
}

/* What does not fit in a turn goes on in the next, behind what has arrived meanwhile. */
static void flush_dirty(struct io_msg *msg)
{
    struct shard *s = CONTAINER_OF(msg, struct shard, flush_msg);
    struct list batch;
    struct list *node;

    s->flush_posted = false;
    list_init(&batch);
    list_splice_back(&batch, &s->dirty);
    for (int i = 0; i < FLUSHES_A_TURN && (node = list_pop_front(&batch)); i++)
        conn_flush(LIST_ENTRY(node, struct conn, dirty));
    if (!list_is_empty(&batch)) {
        list_splice_back(&s->dirty, &batch);
        post_flush(s);
    }
}

/* Responses that become ready in one turn leave in one system call. */
void conn_mark_dirty(struct conn *c)
{
    struct shard *s = c->shard;

    if (!list_is_linked(&c->dirty))
        list_push_back(&s->dirty, &c->dirty);
    post_flush(s);
}

/* ---- connections ------------------------------------------------------------------------ */

static void accept_next(struct shard_accept *a)
{
    io_accept(a->shard->loop, a->io, &a->accept);
}

static void accept_again(struct delay *d)
{
    struct shard_accept *a = CONTAINER_OF(d, struct shard_accept, retry);

    if (!a->shard->is_deaf)
        accept_next(a);
}

static void accepted(struct io_op *op)
{
    struct shard_accept *a = CONTAINER_OF(op, struct shard_accept, accept.op);
    struct shard *s = a->shard;

    if (op->err == ERR_CANCELLED)
        return;
    if (op->err) {
        /* Out of descriptors: what is connected goes on, newcomers wait in the kernel's queue. */
        trace_warn("listener.accept_failed", "error=%s", err_name(op->err));
        shard_delay_set(s, &a->retry, shard_now_ns(s) + ACCEPT_RETRY_NS);
        return;
    }
    if (s->is_deaf) {
        io_conn_close(a->accept.conn);
        return;
    }
    conn_accepted(s, a->listener, a->accept.conn);
    accept_next(a);
}

static void accept_from(struct shard *s, struct listener *l, struct io_listener *io)
{
    struct shard_accept *a = &s->accepts[s->accept_count++];

    a->accept.op.done = accepted;
    a->retry.expired = accept_again;
    a->shard = s;
    a->listener = l;
    a->io = io;
    accept_next(a);
}

void shard_start_listening(struct shard *s)
{
    struct broker *b = s->broker;
    int n = 0;

    for (int i = 0; i < b->listener_count; i++)
        n += b->listeners[i].io_count;
    s->accepts = xcalloc((size_t)n, sizeof(*s->accepts));
    for (int i = 0; i < b->listener_count; i++)
        for (int k = 0; k < b->listeners[i].io_count; k++)
            accept_from(s, &b->listeners[i], b->listeners[i].io[k]);
}

static void starved_again(struct delay *d)
{
    struct shard *s = CONTAINER_OF(d, struct shard, starved_delay);
    struct list waiting;
    struct list *node;

    conn_relieve(s);
    list_init(&waiting);
    list_splice_back(&waiting, &s->starved);
    while ((node = list_pop_front(&waiting)))
        conn_resume(LIST_ENTRY(node, struct conn, starved));
    if (!list_is_empty(&s->starved))
        shard_delay_set(s, d, shard_now_ns(s) + STARVED_RETRY_NS);
}

static void idle_due(struct delay *d)
{
    conn_close_idle(CONTAINER_OF(d, struct shard, idle_delay));
}

/* ---- topics ----------------------------------------------------------------------------- */

struct topic_slot *shard_find_topic(struct shard *s, struct str name)
{
    struct topic_slot *slot = NULL;

    if (name.n > 0)
        HASH_FIND(by_name, s->topics_by_name, name.p, (unsigned)name.n, slot);
    return slot;
}

struct topic_slot *shard_find_topic_id(struct shard *s, struct uuid id)
{
    struct topic_slot *slot = NULL;

    HASH_FIND(by_id, s->topics_by_id, &id, sizeof(id), slot);
    return slot;
}

struct topic_slot *shard_find_topic_either(struct shard *s, struct str name, struct uuid id)
{
    return name.n > 0 ? shard_find_topic(s, name) : shard_find_topic_id(s, id);
}

struct partition *slot_partition(const struct topic_slot *slot, int32_t index)
{
    if (!slot || !slot->topic || index < 0 || index >= slot->partition_count)
        return NULL;
    return slot->partitions[index];
}

enum err shard_absent_error(const struct metadata_topic *topic, int32_t index)
{
    return topic && !topic->is_deleting && metadata_find_partition(topic, index)
               ? ERR_NOT_LEADER_OR_FOLLOWER
               : ERR_UNKNOWN_TOPIC_OR_PARTITION;
}

static void slot_free(struct shard *s, struct topic_slot *slot)
{
    HASH_DELETE(by_name, s->topics_by_name, slot);
    HASH_DELETE(by_id, s->topics_by_id, slot);
    free(slot->name);
    free(slot->partitions);
    free(slot);
}

static struct topic_slot *slot_new(struct shard *s, const struct partition *p)
{
    struct topic_slot *slot = xcalloc(1, sizeof(*slot));

    slot->name = xstrdup(p->topic);
    slot->name_n = (int32_t)strlen(p->topic);
    slot->id = p->topic_id;
    HASH_ADD_KEYPTR(by_name, s->topics_by_name, slot->name, (unsigned)slot->name_n, slot);
    HASH_ADD(by_id, s->topics_by_id, id, sizeof(slot->id), slot);
    return slot;
}

/* What the image says of one of its partitions, on the owner. */
static void take_topic(struct shard *s, struct partition *p, const struct metadata_topic *topic)
{
    p->throttle = topic_throttle_of(&topic->configs, p->index, s->broker->node_id);
    if (p->index < topic->partition_count)
        replicate_follow_image(p, s->image, &topic->partitions[p->index]);
}

/*
 * What is in force for the topic now, told to its partitions when it has changed. A topic that the
 * image does not have comes or goes: nobody finds its partitions, and they keep the configuration
 * that they have.
 */
static void slot_configure(struct shard *s, struct topic_slot *slot)
{
    struct metadata_topic *topic = metadata_find_topic_id(s->image, slot->id);

    if (slot->topic == topic && slot->resolved_with == s->config)
        return;
    if (slot->topic && !topic)
        coordinators_forget_topic(s, (struct str){.p = slot->name, .n = slot->name_n});
    slot->topic = topic;
    slot->resolved_with = s->config;
    if (!topic)
        return;
    topic_config_resolve(s->config, &topic->configs, &slot->config);
    for (int32_t i = 0; i < slot->partition_count; i++) {
        struct partition *p = slot->partitions[i];

        if (!p || p->owner != s)
            continue;
        partition_set_config(p, &slot->config);
        take_topic(s, p, topic);
    }
}

/* Who is alive matters to leaders of more than one replica. */
static void slot_note_brokers(struct shard *s, struct topic_slot *slot,
                              const struct metadata_image *before)
{
    if (!slot->topic || (before && metadata_same_brokers(before, s->image)))
        return;
    for (int32_t i = 0; i < slot->partition_count; i++)
        if (slot->partitions[i] && slot->partitions[i]->owner == s)
            replicate_note_brokers(slot->partitions[i], s->image);
}

static void add_partition(struct shard *s, struct partition *p)
{
    struct topic_slot *slot = shard_find_topic_id(s, p->topic_id);

    if (!slot)
        slot = slot_new(s, p);
    if (p->index >= slot->partition_count) {
        int32_t n = p->index + 1;

        slot->partitions = xreallocarray(slot->partitions, (size_t)n, sizeof(struct partition *));
        for (int32_t i = slot->partition_count; i < n; i++)
            slot->partitions[i] = NULL;
        slot->partition_count = n;
    }
    slot->partitions[p->index] = p;
    slot_configure(s, slot);
    if (p->owner == s && slot->topic)
        take_topic(s, p, slot->topic);
}

static void remove_partition(struct shard *s, struct partition *p)
{
    struct topic_slot *slot = shard_find_topic_id(s, p->topic_id);

    assert(slot && slot->partitions[p->index] == p);
    slot->partitions[p->index] = NULL;
    for (int32_t i = 0; i < slot->partition_count; i++)
        if (slot->partitions[i])
            return;
    slot_free(s, slot);
}

static void take_image(struct shard *s, struct metadata_image *image, const struct config *config)
{
    struct topic_slot *slot;
    struct topic_slot *next;

    struct metadata_image *before = s->image;

    s->image = image;
    s->config = config;
    fetchers_take_image(s, before);
    HASH_ITER (by_name, s->topics_by_name, slot, next) {
        slot_configure(s, slot);
        slot_note_brokers(s, slot, before);
    }
    metadata_image_put(before);
}

int64_t broker_own_epoch(const struct shard *s)
{
    const struct metadata_broker *self = metadata_find_broker(s->image, s->broker->node_id);

    return self ? self->epoch : -1;
}

struct client *broker_client(struct io_loop *loop, const struct broker *b, int32_t timeout_ms,
                             int32_t backoff_max_ms)
{
    struct client_config config = client_config_default();
    char *id = xasprintf("broker-%d", b->node_id);
    const char *version = strrchr(b->args.software, ' ');
    struct client *c = NULL;
    enum err err;

    config.client_id = id;
    config.software_version = version ? version + 1 : b->args.software;
    config.is_told = true;
    config.request_timeout_ms = timeout_ms;
    config.reconnect_backoff_ms = 10;
    config.reconnect_backoff_max_ms = backoff_max_ms;
    err = client_open(loop, &config, &c);
    assert(!err);
    free(id);
    return c;
}

/*
 * A connection is of the later one of two lives. So when either end has been away, both begin anew,
 * and do not wait until the kernel tries again what it could not deliver: a broker that is back
 * is told within a round trip what it leads, instead of seconds later.
 */
void broker_tell_client(const struct broker *self, struct client *peers,
                        const struct metadata_image *image, const struct config *config)
{
    const struct metadata_broker *own = metadata_find_broker(image, self->node_id);

    for (int32_t i = 0; i < image->broker_count; i++) {
        const struct metadata_broker *b = image->brokers[i];
        const struct metadata_endpoint *e = broker_peer_endpoint(config, b);

        if (e && b != own)
            client_broker_set(peers, b->id, own ? MAX(own->epoch, b->epoch) : b->epoch, e->host,
                              (uint16_t)e->port);
    }
}

const struct metadata_endpoint *broker_peer_endpoint(const struct config *config,
                                                     const struct metadata_broker *b)
{
    struct str listener = config_str(config, CONFIG_INTER_BROKER_LISTENER_NAME);

    if (str_is_null(listener))
        listener = config_str(config, CONFIG_SECURITY_INTER_BROKER_PROTOCOL);
    return metadata_find_endpoint(b, listener);
}

int shard_for_partition(const struct broker *b, struct uuid topic_id, int32_t index)
{
    uint64_t h = get_u64(topic_id.b) ^ get_u64(topic_id.b + 8);

    return (int)((h + (uint64_t)index) % (uint64_t)b->shard_count);
}

/* ---- updates from the control loop ------------------------------------------------------ */

static void update_done(struct io_msg *msg)
{
    struct shard_update *u = CONTAINER_OF(msg, struct shard_update, msg);
    struct shard_broadcast *b = u->broadcast;

    if (--b->pending > 0)
        return;
    b->done(b);
    free(b->updates);
    free(b);
}

static void update_applied(struct shard *s, struct shard_update *u)
{
    u->msg.fn = update_done;
    io_post(control_loop(s->broker), &u->msg);
}

/* Requests that are with a handler end first: what they have asked for is under way. */
void shard_conn_gone(struct shard *s)
{
    if (!list_is_empty(&s->conns))
        return;
    io_budget_trim(&s->broker->budget);
    if (!s->stop || s->peers_open > 0)
        return;
    /* The delay goes on: what waits here may be of another shard's connections. */
    update_applied(s, s->stop);
    s->stop = NULL;
}

static void fail_producers(struct shard *s)
{
    struct topic_slot *slot;
    struct topic_slot *next;

    HASH_ITER (by_name, s->topics_by_name, slot, next)
        for (int32_t i = 0; i < slot->partition_count; i++)
            if (slot->partitions[i] && slot->partitions[i]->owner == s)
                partition_fail_producers(slot->partitions[i], ERR_NOT_LEADER_OR_FOLLOWER);
}

static void drained_enough(struct delay *d)
{
    struct shard *s = CONTAINER_OF(d, struct shard, drain_delay);

    LIST_EACH_SAFE (node, &s->conns)
        conn_close(LIST_ENTRY(node, struct conn, link), "broker stops");
}

/* What still waits for followers is told to wait elsewhere; then the connections end. */
static void waited_enough(struct delay *d)
{
    struct shard *s = CONTAINER_OF(d, struct shard, drain_delay);

    fail_producers(s);
    coordinators_give_up(s);
    s->drain_delay.expired = drained_enough;
    shard_delay_set(s, &s->drain_delay, shard_now_ns(s) + CLOSE_NS);
}

static void stop_accepting(struct shard *s)
{
    s->is_deaf = true;
    for (int i = 0; i < s->accept_count; i++) {
        shard_delay_cancel(s, &s->accepts[i].retry);
        io_cancel(&s->accepts[i].accept.op);
    }
}

static void shard_stop(struct shard *s, struct shard_update *u)
{
    s->stopping = true;
    s->stop = u;
    coordinators_resign(s);
    /* What was appended is answered: a producer that has to ask again may find somebody who knows
     * less about it. */
    LIST_EACH_SAFE (node, &s->conns)
        conn_drain(LIST_ENTRY(node, struct conn, link));
    shard_delay_set(s, &s->drain_delay, shard_now_ns(s) + DRAIN_NS);
    fetchers_stop(s);
    shard_conn_gone(s);
}

static void update_apply(struct io_msg *msg)
{
    struct shard_update *u = CONTAINER_OF(msg, struct shard_update, msg);
    struct shard *s = u->shard;

    switch (u->kind) {
    case SHARD_IMAGE: take_image(s, u->image, u->config); break;
    case SHARD_ADD_PARTITION: add_partition(s, u->partition); break;
    case SHARD_REMOVE_PARTITION: remove_partition(s, u->partition); break;
    case SHARD_LISTEN: shard_start_listening(s); break;
    case SHARD_DEAF: stop_accepting(s); break;
    case SHARD_STOP: shard_stop(s, u); return;
    }
    update_applied(s, u);
}

void shard_broadcast(struct control *c, enum shard_update_kind kind, struct partition *p,
                     void (*done)(struct shard_broadcast *b), void *ctx)
{
    struct broker *b = control_broker(c);
    struct shard_broadcast *bc = xcalloc(1, sizeof(*bc));

    bc->done = done;
    bc->ctx = ctx;
    bc->pending = b->shard_count;
    bc->updates = xcalloc((size_t)b->shard_count, sizeof(*bc->updates));
    for (int i = 0; i < b->shard_count; i++) {
        struct shard_update *u = &bc->updates[i];

        u->msg.fn = update_apply;
        u->shard = &b->shards[i];
        u->kind = kind;
        u->partition = p;
        u->broadcast = bc;
        if (kind == SHARD_IMAGE) {
            u->image = metadata_image_get(control_image(c));
            u->config = control_config(c);
        }
        io_post(u->shard->loop, &u->msg);
    }
}

/* ---- life ------------------------------------------------------------------------------- */

void shard_init(struct shard *s, struct broker *b, int index)
{
    *s = (struct shard){.broker = b, .index = index};
    s->counts = xcalloc(1, sizeof(*s->counts));
    list_init(&s->conns);
    list_init(&s->dirty);
    list_init(&s->starved);
    list_init(&s->coordinators);
    list_init(&s->fetchers);
    heap_init(&s->delays);
    s->delay_timer.op.done = delays_due;
    s->flush_msg.fn = flush_dirty;
    s->starved_delay.expired = starved_again;
    s->idle_delay.expired = idle_due;
    s->drain_delay.expired = waited_enough;
    s->decompressor = decompressor_new();
}

void shard_fini(struct shard *s)
{
    struct topic_slot *slot;
    struct topic_slot *next;

    assert(list_is_empty(&s->conns));
    HASH_ITER (by_name, s->topics_by_name, slot, next)
        slot_free(s, slot);
    fetchers_free(s);
    metadata_image_put(s->image);
    decompressor_free(s->decompressor);
    fetch_cache_free(s->fetch_cache);
    heap_fini(&s->delays);
    free(s->accepts);
    free(s->counts);
}
