/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ControlledShutdown, both ends. A broker that is told to stop asks the controller first to move
 * what it leads, so that clients find another leader before this one is gone; and it waits until it
 * has heard that it leads nothing, because what waits for its followers is answered then, and only
 * then. Where the controller does not answer the broker stops all the same: its session's end says
 * the same a little later.
 */
#include "broker/cluster.h"

#include <stdlib.h>

#include "base/alloc.h"

#define ASK_MS 3000
#define LOOK_NS 10000000
#define LOOKS_MAX 200

struct leave {
    struct control *control;
    void (*done)(struct control *c);
    struct client_call call;
    struct controlled_shutdown_request request;
    struct io_timer look;
    int looks;
};

static void leave_end(struct leave *l)
{
    l->done(l->control);
}

/* ---- until it is known --------------------------------------------------------------------- */

static bool leads(const struct control *c)
{
    for (int32_t t = 0; t < c->image->topic_count; t++) {
        const struct metadata_topic *topic = c->image->topics[t];

        for (int32_t i = 0; i < topic->partition_count; i++)
            if (topic->partitions[i].leader == c->broker->node_id)
                return true;
    }
    return false;
}

/* The controller has told others by then, and any other broker has been told. */
static void look(struct leave *l)
{
    struct control *c = l->control;
    bool is_known = c->cluster->rule ? announcements_are_done(c->cluster) : !leads(c);

    if (is_known || ++l->looks > LOOKS_MAX)
        leave_end(l);
    else
        io_timer_set(c->loop, &l->look, io_loop_mono_ns(c->loop) + LOOK_NS);
}

static void look_due(struct io_op *op)
{
    if (!op->err)
        look(CONTAINER_OF(op, struct leave, look.op));
}

/* ---- the controller itself ---------------------------------------------------------------- */

static void let_go(struct control *c, void *ctx, enum err err)
{
    (void)c;
    (void)err;
    look(ctx);
}

/* ---- others -------------------------------------------------------------------------------- */

static void answered(struct client_call *call)
{
    struct leave *l = CONTAINER_OF(call, struct leave, call);
    const struct controlled_shutdown_response *r = call->response;
    enum err err = call->err ? call->err : err_from_wire(r->error_code);

    if (err) {
        trace_warn("cluster.leave_unannounced", "error=%s", err_name(err));
        leave_end(l);
    } else {
        look(l);
    }
}

static void ask(struct leave *l)
{
    struct cluster *k = l->control->cluster;

    wire_init(&controlled_shutdown_request_schema, &l->request);
    l->request.broker_id = l->control->broker->node_id;
    l->request.broker_epoch = k->broker_epoch;
    l->call.done = answered;
    l->call.api_key = API_CONTROLLED_SHUTDOWN;
    l->call.target = l->control->image->controller_id;
    l->call.timeout_ms = ASK_MS;
    l->call.request = &l->request;
    client_call(k->peers, &l->call);
}

void cluster_leave(struct control *c, void (*done)(struct control *c))
{
    struct cluster *k = c->cluster;
    struct leave *l = xcalloc(1, sizeof(*l));

    l->control = c;
    l->done = done;
    l->look.op.done = look_due;
    k->leave = l;
    if (k->rule)
        rule_let_go(k, c->broker->node_id, let_go, l);
    else if (c->image->controller_id >= 0 && k->broker_epoch >= 0)
        ask(l);
    else
        leave_end(l);
}

/* ---- the request --------------------------------------------------------------------------- */

static void went(struct control *c, void *ctx, enum err err)
{
    struct request *r = ctx;
    struct controlled_shutdown_response *out = r->out;

    (void)c;
    out->error_code = err_wire(err);
    request_return(r);
}

static void controlled_shutdown(struct control *c, struct request *r)
{
    const struct controlled_shutdown_request *in = r->in;
    const struct metadata_broker *b = metadata_find_broker(c->image, in->broker_id);
    struct controlled_shutdown_response *out = r->out;

    if (!c->cluster->rule)
        out->error_code = ERR_NOT_CONTROLLER;
    else if (!b || (in->broker_epoch >= 0 && in->broker_epoch != b->epoch))
        out->error_code = ERR_STALE_BROKER_EPOCH;
    if (out->error_code)
        request_return(r);
    else
        rule_let_go(c->cluster, in->broker_id, went, r);
}

void handle_controlled_shutdown(struct request *r)
{
    request_to_control(r, controlled_shutdown, request_reply);
}

/* ---- the end ------------------------------------------------------------------------------- */

void cluster_part_closed(struct cluster *k)
{
    if (--k->closing == 0)
        k->closed(k->closed_ctx);
}

static void peers_closed(void *ctx)
{
    cluster_part_closed(ctx);
}

void cluster_close(struct control *c, void (*done)(void *ctx), void *ctx)
{
    struct cluster *k = c->cluster;

    k->closed = done;
    k->closed_ctx = ctx;
    k->closing = 1 + k->is_noting;
    io_cancel(&k->retry.op);
    io_cancel(&k->lease.op);
    registration_cancel(&k->registration);
    probe_stop(&k->probe);
    announcements_stop(k);
    if (k->leave) {
        client_call_fini(&k->leave->call);
        io_cancel(&k->leave->look.op);
    }
    client_close(k->peers, peers_closed, k);
    k->peers = NULL;
}
