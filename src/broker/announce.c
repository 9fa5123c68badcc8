/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller tells each broker the difference between the image that it has acknowledged and
 * the newest one, one round of requests at a time. A broker that cannot be reached is tried again
 * as long as it is registered; in its next life it begins with nothing.
 *
 * Between rounds it is asked now and then whether it is there. One that refuses the connection is
 * suspect: its process is gone, and its session will say so seconds later. A machine that is silent
 * is not: nobody knows what it does.
 */
#include "broker/cluster.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/planted.h"

#define RETRY_NS 100000000
#define ASK_NS 150000000

struct announcement {
    struct list link;
    struct cluster *cluster;
    int32_t to;
    int64_t epoch;                    /* the life that is told */
    struct metadata_image *told;      /* what it has acknowledged */
    struct metadata_image *under_way; /* NULL: nothing is */
    struct arena arena;
    struct controller_orders orders;
    struct client_call call;
    struct api_versions_request question;
    struct io_timer retry; /* of a round that failed, or to ask again */
    bool is_asking;
    bool has_refused; /* it is suspect */
};

static void send_next(struct announcement *a);
static void begin(struct announcement *a);
static void ask(struct announcement *a);

/* Its next life is another matter. */
static bool is_current(const struct announcement *a)
{
    const struct control *c = a->cluster->control;
    const struct metadata_broker *b = metadata_find_broker(c->image, a->to);

    return b && b->epoch == a->epoch && !c->stopping;
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
}

static void retry_due(struct io_op *op)
{
    struct announcement *a = CONTAINER_OF(op, struct announcement, retry.op);

    if (op->err)
        return;
    if (a->told != a->cluster->control->image)
        begin(a);
    else if (is_current(a) && !a->is_asking)
        ask(a);
}

static void look_again(struct announcement *a, int64_t in_ns)
{
    struct control *c = a->cluster->control;

    a->retry.op.done = retry_due;
    io_timer_set(c->loop, &a->retry, io_loop_mono_ns(c->loop) + in_ns);
}

static void note_refusal(struct announcement *a, enum err err)
{
    if (!err)
        a->has_refused = false;
    if (err != ERR_REFUSED || a->has_refused)
        return;
    a->has_refused = true;
    rule_suspect(a->cluster, a->to);
}

/* The whole difference again: it may be another one by now. */
static void retry_later(struct announcement *a, enum err err)
{
    if (!a->has_refused)
        trace_warn("controller.broker_not_told", "broker=%d error=%s", a->to, err_name(err));
    metadata_image_put(a->under_way);
    a->under_way = NULL;
    look_again(a, RETRY_NS);
}

static void answered(struct client_call *call)
{
    struct announcement *a = CONTAINER_OF(call, struct announcement, call);
    enum err err = answer_of(a);

    note_refusal(a, err);
    if (err && !(PLANTED(ORDERS_FORGOTTEN) && a->call.err))
        retry_later(a, err);
    else
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

static void asked(struct client_call *call)
{
    struct announcement *a = CONTAINER_OF(call, struct announcement, call);

    a->is_asking = false;
    note_refusal(a, call->err);
    /* A connection that broke is tried again at once: who is gone refuses it. */
    if (a->told != a->cluster->control->image)
        begin(a);
    else
        look_again(a, call->err == ERR_NETWORK_EXCEPTION ? 0 : ASK_NS);
}

static void ask(struct announcement *a)
{
    wire_init(&api_versions_request_schema, &a->question);
    a->question.client_software_name = STR_LIT("strandline");
    a->question.client_software_version = STR_LIT("0");
    a->is_asking = true;
    a->call.done = asked;
    a->call.api_key = API_API_VERSIONS;
    a->call.target = a->to;
    a->call.request = &a->question;
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

    if (a->under_way || a->is_asking || !is_current(a))
        return;
    if (a->told == c->image) {
        look_again(a, ASK_NS);
        return;
    }
    io_cancel(&a->retry.op);
    a->under_way = metadata_image_get(c->image);
    arena_reset(&a->arena);
    controller_orders(a->told, a->under_way, a->to, cluster_listener(c), &a->arena, &a->orders);
    send_next(a);
}

static struct announcement *find(struct list *all, int32_t id)
{
    LIST_EACH (node, all)
        if (LIST_ENTRY(node, struct announcement, link)->to == id)
            return LIST_ENTRY(node, struct announcement, link);
    return NULL;
}

static struct announcement *announcement_new(struct cluster *k, int32_t to)
{
    struct announcement *a = xcalloc(1, sizeof(*a));

    a->cluster = k;
    a->to = to;
    a->epoch = -1;
    arena_init(&a->arena, 0);
    list_push_back(rule_announcements(k->rule), &a->link);
    return a;
}

static void forget_told(struct announcement *a, int64_t epoch)
{
    client_cancel(&a->call);
    metadata_image_put(a->under_way);
    metadata_image_put(a->told);
    a->under_way = NULL;
    a->is_asking = a->has_refused = false;
    a->told = metadata_image_new();
    a->epoch = epoch;
}

void announce(struct cluster *k)
{
    struct control *c = k->control;

    if (!k->rule)
        return;
    for (int32_t i = 0; i < c->image->broker_count; i++) {
        const struct metadata_broker *b = c->image->brokers[i];
        struct announcement *a;

        if (b->id == c->broker->node_id)
            continue;
        a = find(rule_announcements(k->rule), b->id);
        if (!a)
            a = announcement_new(k, b->id);
        if (a->epoch != b->epoch)
            forget_told(a, b->epoch);
        begin(a);
    }
}

bool announcements_are_done(struct cluster *k)
{
    LIST_EACH (node, rule_announcements(k->rule)) {
        const struct announcement *a = LIST_ENTRY(node, struct announcement, link);

        if (a->under_way)
            return false;
    }
    return true;
}

void announcements_stop(struct list *announcements)
{
    LIST_EACH (node, announcements) {
        struct announcement *a = LIST_ENTRY(node, struct announcement, link);

        client_call_fini(&a->call);
        io_cancel(&a->retry.op);
    }
}

void announcements_free(struct list *announcements)
{
    LIST_EACH_SAFE (node, announcements) {
        struct announcement *a = LIST_ENTRY(node, struct announcement, link);

        list_remove(node);
        metadata_image_put(a->under_way);
        metadata_image_put(a->told);
        arena_fini(&a->arena);
        free(a);
    }
}
