/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller tells each broker the difference between the image that it has acknowledged and
 * the newest one, one round of requests at a time. A broker that cannot be reached is tried again
 * as long as it is registered. When a round ends without its last answer nobody knows what the
 * broker has: the next one tells it everything, and what that does not name goes; so does the first
 * one of each life.
 *
 * Each is also asked now and then whether it is there (probe.h): what a suspect leads moves.
 */
#include "broker/cluster.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/planted.h"

#define RETRY_NS 100000000
#define HEARD_NS 1000000000

struct announcement {
    struct list link;
    struct cluster *cluster;
    int32_t to;
    int64_t epoch;                    /* the life that is told */
    struct metadata_image *told;      /* what it has acknowledged */
    struct metadata_image *under_way; /* NULL: nothing is */
    bool was_heard;                   /* a request of this round was answered */
    struct arena arena;
    struct controller_orders orders;
    struct client_call call;
    struct io_timer retry; /* of a round that failed */
    struct probe probe;
};

static void send_next(struct announcement *a);
static void begin(struct announcement *a);

/* ---- who waits until others have heard ---------------------------------------------------- */

static bool is_heard(const struct cluster *k, uint64_t version)
{
    LIST_EACH (node, &k->announcements) {
        const struct announcement *a = LIST_ENTRY(node, struct announcement, link);

        if (a->under_way && !a->probe.has_refused && a->told->version < version)
            return false;
    }
    return true;
}

static void end_hearing(struct cluster *k, struct heard *h)
{
    client_alarm_clear(k->peers, &h->_alarm);
    list_remove(&h->_link);
    h->done(h);
}

/* What is told has changed, or nobody can be told. */
static void look_at_hearings(struct cluster *k)
{
    LIST_EACH_SAFE (node, &k->hearings) {
        struct heard *h = LIST_ENTRY(node, struct heard, _link);

        if (is_heard(k, h->_version))
            end_hearing(k, h);
    }
}

static void waited_enough(struct client_alarm *alarm)
{
    struct heard *h = CONTAINER_OF(alarm, struct heard, _alarm);

    list_remove(&h->_link);
    h->done(h);
}

void control_when_heard(struct control *c, struct heard *h)
{
    struct cluster *k = c->cluster;

    if (!k || is_heard(k, c->image->version)) {
        h->done(h);
        return;
    }
    h->_version = c->image->version;
    h->_alarm.ring = waited_enough;
    list_push_back(&k->hearings, &h->_link);
    client_alarm_set(k->peers, &h->_alarm, io_loop_mono_ns(c->loop) + HEARD_NS);
}

/* ---- a round ------------------------------------------------------------------------------ */

/* Its next life is another matter. */
static bool is_current(const struct announcement *a)
{
    const struct control *c = a->cluster->control;
    const struct metadata_broker *b = metadata_find_broker(c->image, a->to);

    return b && b->epoch == a->epoch && !c->stopping && rule_is_in_force(a->cluster);
}

static enum err answer_of(const struct announcement *a)
{
    const struct client_call *call = &a->call;

    if (call->err)
        return call->err;
    switch (call->api_key) {
    case API_UPDATE_METADATA:
        return err_from_wire(((struct update_metadata_response *)call->response)->error_code);
    case API_LEADER_AND_ISR:
        return err_from_wire(((struct leader_and_isr_response *)call->response)->error_code);
    default: return err_from_wire(((struct stop_replica_response *)call->response)->error_code);
    }
}

static void round_end(struct announcement *a)
{
    metadata_image_put(a->told);
    a->told = a->under_way;
    a->under_way = NULL;
    begin(a);
    look_at_hearings(a->cluster);
}

static void retry_due(struct io_op *op)
{
    struct announcement *a = CONTAINER_OF(op, struct announcement, retry.op);

    if (!op->err)
        begin(a);
}

static void retry_later(struct announcement *a, enum err err)
{
    struct control *c = a->cluster->control;

    /* Unless nothing has got there, nobody knows what it has. */
    if (a->was_heard || !a->call.err || a->call.was_sent) {
        metadata_image_put(a->told);
        a->told = metadata_image_new();
    }
    if (!a->probe.has_refused)
        trace_warn("controller.broker_not_told", "broker=%d error=%s", a->to, err_name(err));
    metadata_image_put(a->under_way);
    a->under_way = NULL;
    io_timer_set(c->loop, &a->retry, io_loop_mono_ns(c->loop) + RETRY_NS);
    look_at_hearings(a->cluster);
}

static void note_refused(struct announcement *a, const struct leader_and_isr_response *r)
{
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t i = 0; i < r->topics.v[t].partition_errors.n; i++) {
            const struct leader_and_isr_response_partition *p =
                &r->topics.v[t].partition_errors.v[i];

            if (err_from_wire(p->error_code) == ERR_KAFKA_STORAGE_ERROR)
                rule_refused(a->cluster, a->to, r->topics.v[t].topic_id, p->partition_index);
        }
}

static void answered(struct client_call *call)
{
    struct announcement *a = CONTAINER_OF(call, struct announcement, call);
    enum err err = answer_of(a);

    probe_note(&a->probe, err);
    if (err && !(PLANTED(ORDERS_FORGOTTEN) && a->call.err)) {
        retry_later(a, err);
        return;
    }
    a->was_heard = true;
    if (!err && call->api_key == API_LEADER_AND_ISR)
        note_refused(a, call->response);
    send_next(a);
}

static void send(struct announcement *a, int16_t api_key, const void *request)
{
    a->call.done = answered;
    a->call.api_key = api_key;
    a->call.target = a->to;
    a->call.request = request;
    client_call(a->cluster->peers, &a->call);
}

static void send_next(struct announcement *a)
{
    struct controller_orders *o = &a->orders;
    const void *request;

    if ((request = o->states)) {
        o->states = NULL;
        send(a, API_UPDATE_METADATA, request);
    } else if ((request = o->stops)) {
        o->stops = NULL;
        send(a, API_STOP_REPLICA, request);
    } else if ((request = o->roles)) {
        o->roles = NULL;
        send(a, API_LEADER_AND_ISR, request);
    } else {
        round_end(a);
    }
}

static void begin(struct announcement *a)
{
    struct control *c = a->cluster->control;

    if (a->under_way || !is_current(a) || a->told == c->image)
        return;
    io_cancel(&a->retry.op);
    a->under_way = metadata_image_get(c->image);
    a->was_heard = false;
    arena_reset(&a->arena);
    controller_orders(a->told, a->under_way, a->to, cluster_listener(c), &a->arena, &a->orders);
    send_next(a);
}

static struct announcement *find(struct cluster *k, int32_t id)
{
    LIST_EACH (node, &k->announcements)
        if (LIST_ENTRY(node, struct announcement, link)->to == id)
            return LIST_ENTRY(node, struct announcement, link);
    return NULL;
}

/* Each time: it may have been given something since, by a topic that was made or a broker that
 * left. */
static void refused(struct probe *probe, bool is_first)
{
    struct announcement *a = CONTAINER_OF(probe, struct announcement, probe);

    if (is_first)
        trace_warn("controller.suspect", "broker=%d", a->to);
    rule_suspect(a->cluster, a->to);
}

static struct announcement *announcement_new(struct cluster *k, int32_t to)
{
    struct announcement *a = xcalloc(1, sizeof(*a));

    a->cluster = k;
    a->to = to;
    a->epoch = -1;
    a->retry.op.done = retry_due;
    arena_init(&a->arena, 0);
    probe_init(&a->probe, k->peers, refused);
    list_push_back(&k->announcements, &a->link);
    return a;
}

static void forget_told(struct announcement *a)
{
    client_cancel(&a->call);
    metadata_image_put(a->under_way);
    metadata_image_put(a->told);
    a->under_way = NULL;
    a->told = metadata_image_new();
    a->epoch = -1;
    probe_set_target(&a->probe, -1);
}

/* Whoever comes back does so in another life. */
static void leave_alone(struct cluster *k)
{
    LIST_EACH (node, &k->announcements) {
        struct announcement *a = LIST_ENTRY(node, struct announcement, link);

        if (!metadata_find_broker(k->control->image, a->to))
            probe_set_target(&a->probe, -1);
    }
}

void announce(struct cluster *k)
{
    struct control *c = k->control;

    if (!rule_is_in_force(k))
        return;
    leave_alone(k);
    for (int32_t i = 0; i < c->image->broker_count; i++) {
        const struct metadata_broker *b = c->image->brokers[i];
        struct announcement *a;

        if (b->id == c->broker->node_id)
            continue;
        a = find(k, b->id);
        if (!a)
            a = announcement_new(k, b->id);
        if (a->epoch != b->epoch) {
            forget_told(a);
            a->epoch = b->epoch;
            probe_set_target(&a->probe, a->to);
        }
        begin(a);
    }
}

void announce_again(struct cluster *k, int32_t broker_id)
{
    struct announcement *a = find(k, broker_id);

    if (broker_id == k->control->broker->node_id)
        rule_refuse_own(k);
    if (a)
        a->epoch = -1; /* as if it had come in another life */
    announce(k);
}

bool announcements_are_done(struct cluster *k)
{
    LIST_EACH (node, &k->announcements) {
        const struct announcement *a = LIST_ENTRY(node, struct announcement, link);

        if (a->under_way)
            return false;
    }
    return true;
}

void announcements_rest(struct cluster *k)
{
    LIST_EACH (node, &k->announcements)
        forget_told(LIST_ENTRY(node, struct announcement, link));
    look_at_hearings(k);
}

void announcements_stop(struct cluster *k)
{
    LIST_EACH (node, &k->announcements) {
        struct announcement *a = LIST_ENTRY(node, struct announcement, link);

        client_call_fini(&a->call);
        io_cancel(&a->retry.op);
        probe_stop(&a->probe);
    }
}

void announcements_free(struct cluster *k)
{
    LIST_EACH_SAFE (node, &k->announcements) {
        struct announcement *a = LIST_ENTRY(node, struct announcement, link);

        list_remove(node);
        metadata_image_put(a->under_way);
        metadata_image_put(a->told);
        arena_fini(&a->arena);
        free(a);
    }
}
