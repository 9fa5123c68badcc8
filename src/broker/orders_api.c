/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LeaderAndIsr, UpdateMetadata, StopReplica: the controller's word becomes this broker's image, and
 * the image decides which partitions are here and what they do. Each request is a task, so that
 * they are carried out in the order in which they came.
 *
 * A topic that is new here has its configuration in the keeper; it is read before anybody sees the
 * topic, since a partition that is made without it could lose what it should keep.
 *
 * StopReplica names topics without ids. It removes what the image does not give to this broker, and
 * nothing else: a topic made again under the old name is not touched (S34).
 */
#include "broker/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"
#include "keeper/znodes.h"

struct order {
    struct task task;
    struct control *control;
    struct request *request;
    struct metadata_delta plan;
    int pending;
    enum err err; /* what the topics are to be like could not be read */
};

static void order_end(struct order *o)
{
    struct control *c = o->control;

    metadata_delta_fini(&o->plan);
    request_return(o->request);
    free(o);
    control_task_end(c);
}

static void order_begin(struct control *c, struct request *r,
                        void (*run)(struct control *c, struct task *t))
{
    struct order *o = xcalloc(1, sizeof(*o));

    o->control = c;
    o->request = r;
    control_enqueue(c, &o->task, run);
}

/* Of an order that may be obeyed. One that ends the rule of this broker is heard when repeated. */
static enum err hear(struct cluster *k, int32_t controller_epoch, int64_t version)
{
    if (rule_has_ended_by(k, controller_epoch))
        return ERR_STALE_BROKER_EPOCH;
    return controller_hear(&k->heard, controller_epoch, version);
}

/* ---- configurations of new topics --------------------------------------------------------- */

struct config_reading {
    struct order *order;
    struct str topic; /* of the plan */
    char *path;
    struct keeper_call call;
    void (*then)(struct order *o);
};

static void reading_end(struct order *o, void (*then)(struct order *o))
{
    if (--o->pending == 0)
        then(o);
}

static void config_read(struct keeper_call *call)
{
    struct config_reading *g = CONTAINER_OF(call, struct config_reading, call);
    struct config_overrides overrides = {0};
    enum err err = call->err;

    if (!err)
        err = znode_config_parse(call->data, &overrides);
    if (!err)
        metadata_delta_set_topic_configs(&g->order->plan, g->topic, &overrides);
    else
        trace_error("cluster.topic_config", "topic=%.*s error=%s", STR_ARG(g->topic),
                    err_name(err));
    g->order->err = err ? err : g->order->err;
    config_overrides_fini(&overrides);
    keeper_call_release(call);
    reading_end(g->order, g->then);
    free(g->path);
    free(g);
}

static void read_configs(struct order *o, void (*then)(struct order *o))
{
    int32_t n = o->plan.count;

    o->pending = 1;
    for (int32_t i = 0; i < n; i++) {
        struct config_reading *g;

        if (o->plan.changes[i].kind != METADATA_TOPIC)
            continue;
        g = xcalloc(1, sizeof(*g));
        g->order = o;
        g->topic = o->plan.changes[i].topic->name;
        g->path = znode_config_path(ZNODE_ENTITY_TOPICS, g->topic);
        g->call.done = config_read;
        g->then = then;
        o->pending++;
        keeper_get(o->control->keeper, g->path, NULL, &g->call);
    }
    reading_end(o, then);
}

/* ---- UpdateMetadata, LeaderAndIsr --------------------------------------------------------- */

static void states_reconciled(struct control *c, void *ctx)
{
    (void)c;
    order_end(ctx);
}

static void states_published(struct control *c, void *ctx)
{
    struct order *o = ctx;
    const struct update_metadata_request *in = o->request->in;

    cluster_tell_peers(c->cluster);
    proposals_note_controller(c->cluster);
    if (in->type == CONTROLLER_ORDERS_ALL)
        lease_begin(c->cluster);
    if (in->type == CONTROLLER_ORDERS_ALL && !PLANTED(KEEP_WHAT_IS_NOT_GIVEN))
        cluster_reconcile(c, true, states_reconciled, o);
    else
        order_end(o);
}

static void publish_states(struct order *o)
{
    struct update_metadata_response *out = o->request->out;

    /* The controller asks again. */
    out->error_code = err_wire(o->err);
    if (o->err) {
        order_end(o);
        return;
    }
    control_publish(o->control, &o->plan, NULL, states_published, o);
}

static void states_run(struct control *c, struct task *t)
{
    struct order *o = CONTAINER_OF(t, struct order, task);
    const struct update_metadata_request *in = o->request->in;
    struct update_metadata_response *out = o->request->out;
    enum err err = controller_obey_states(c->image, c->cluster->broker_epoch, in, &o->plan);

    if (!err)
        err = hear(c->cluster, in->controller_epoch, in->order_version);
    out->error_code = err_wire(err);
    if (err)
        order_end(o);
    else
        read_configs(o, publish_states);
}

static void obey_states(struct control *c, struct request *r)
{
    order_begin(c, r, states_run);
}

void handle_update_metadata(struct request *r)
{
    request_to_control(r, obey_states, request_reply);
}

static bool is_unusable(const struct cluster *k, struct uuid topic_id, int32_t index)
{
    return lost_has(k, topic_id, index) || dir_failures_have(k, topic_id, index);
}

/* What this broker cannot do: the controller elects again. */
static void refuse_lost(struct cluster *k, const struct leader_and_isr_request *in,
                        struct leader_and_isr_response *out)
{
    for (int32_t t = 0; t < in->topic_states.n; t++) {
        const struct leader_and_isr_request_topic *topic = &in->topic_states.v[t];

        for (int32_t i = 0; i < topic->partition_states.n; i++)
            if (topic->partition_states.v[i].leader == k->control->broker->node_id &&
                is_unusable(k, topic->topic_id, topic->partition_states.v[i].partition_index))
                out->topics.v[t].partition_errors.v[i].error_code =
                    err_wire(ERR_KAFKA_STORAGE_ERROR);
    }
}

static void roles_reconciled(struct control *c, void *ctx)
{
    struct order *o = ctx;

    refuse_lost(c->cluster, o->request->in, o->request->out);
    order_end(o);
}

static void roles_published(struct control *c, void *ctx)
{
    cluster_reconcile(c, false, roles_reconciled, ctx);
}

static void publish_roles(struct order *o)
{
    struct leader_and_isr_response *out = o->request->out;

    out->error_code = err_wire(o->err);
    if (o->err) {
        order_end(o);
        return;
    }
    control_publish(o->control, &o->plan, NULL, roles_published, o);
}

static void roles_run(struct control *c, struct task *t)
{
    struct order *o = CONTAINER_OF(t, struct order, task);
    struct request *r = o->request;
    const struct leader_and_isr_request *in = r->in;
    struct leader_and_isr_response *out = r->out;
    enum err err =
        controller_obey_roles(c->image, c->cluster->broker_epoch, in, &r->arena, out, &o->plan);

    if (!err)
        err = hear(c->cluster, in->controller_epoch, in->order_version);
    out->error_code = err_wire(err);
    if (err)
        order_end(o);
    else
        read_configs(o, publish_roles);
}

static void obey_roles(struct control *c, struct request *r)
{
    order_begin(c, r, roles_run);
}

void handle_leader_and_isr(struct request *r)
{
    request_to_control(r, obey_roles, request_reply);
}

/* ---- StopReplica -------------------------------------------------------------------------- */

static bool is_given(const struct control *c, const struct partition *p)
{
    const struct metadata_topic *topic = metadata_find_topic_id(c->image, p->topic_id);
    const struct metadata_partition *state =
        topic && !topic->is_deleting ? metadata_find_partition(topic, p->index) : NULL;

    return state && metadata_ids_have(&state->replicas, c->broker->node_id);
}

static bool is_named(const struct stop_replica_request *in, const struct partition *p)
{
    for (int32_t t = 0; t < in->topic_states.n; t++) {
        const struct stop_replica_request_topic_state *topic = &in->topic_states.v[t];

        if (!str_eq_c(topic->topic_name, p->topic))
            continue;
        for (int32_t i = 0; i < topic->partition_states.n; i++)
            if (topic->partition_states.v[i].partition_index == p->index)
                return true;
    }
    return false;
}

static void stop_removed(struct control *c, void *ctx, enum err err)
{
    struct order *o = ctx;

    (void)c;
    if (err)
        trace_error("partition.delete_failed", "error=%s", err_name(err));
    if (--o->pending == 0)
        order_end(o);
}

static void stops_run(struct control *c, struct task *t)
{
    struct order *o = CONTAINER_OF(t, struct order, task);
    const struct stop_replica_request *in = o->request->in;
    struct stop_replica_response *out = o->request->out;
    enum err err = controller_obey_stops(c->image, c->cluster->broker_epoch, in);
    struct partition *p;
    struct partition *next;

    if (!err)
        err = hear(c->cluster, in->controller_epoch, in->order_version);
    out->error_code = err_wire(err);
    o->pending = 1;
    HASH_ITER (of_control, c->partitions, p, next) {
        if (err || p->is_leaving || is_given(c, p) || !is_named(in, p))
            continue;
        o->pending++;
        control_remove_partition(c, p, true, stop_removed, o);
    }
    stop_removed(c, o, ERR_NONE);
}

static void obey_stops(struct control *c, struct request *r)
{
    order_begin(c, r, stops_run);
}

void handle_stop_replica(struct request *r)
{
    request_to_control(r, obey_stops, request_reply);
}

/* ---- what the image gives ----------------------------------------------------------------- */

struct reconciling {
    struct control *control;
    struct metadata_image *image; /* a reference: lends names and states */
    int leaving;                  /* partitions, and one */
    int pending;                  /* those that come, and one */
    void (*done)(struct control *c, void *ctx);
    void *ctx;
};

static void reconciling_end(struct reconciling *g)
{
    if (--g->pending > 0)
        return;
    g->done(g->control, g->ctx);
    metadata_image_put(g->image);
    free(g);
}

/* A partition that is to be served here. */
struct coming {
    struct reconciling *reconciling;
    struct uuid topic_id;
    int32_t index;
};

/* A log that is there and could not be loaded is as good as lost: somebody else has to lead. */
static void partition_came(struct control *c, void *ctx, enum err err)
{
    struct coming *p = ctx;

    if (err)
        trace_error("partition.unavailable", "error=%s", err_name(err));
    if (err == ERR_EXISTS)
        lost_note(c->cluster, p->topic_id, p->index);
    reconciling_end(p->reconciling);
    free(p);
}

static void add_partition(struct reconciling *g, const struct metadata_topic *topic, int32_t index)
{
    struct partition_spec spec = {
        .topic = topic->name.p,
        .topic_id = topic->id,
        .index = index,
        .state = &topic->partitions[index],
        .config = control_topic_config(g->control, &topic->configs),
    };
    struct coming *p = xcalloc(1, sizeof(*p));

    *p = (struct coming){.reconciling = g, .topic_id = topic->id, .index = index};
    g->pending++;
    control_add_partition(g->control, &spec, partition_came, p);
}

/* The log of a member of an in-sync set, which is not there. */
struct absent {
    struct reconciling *reconciling;
    const struct metadata_topic *topic; /* of the image */
    int32_t index;
};

static void absent_known(void *ctx, bool is_lost)
{
    struct absent *a = ctx;

    if (!is_lost)
        add_partition(a->reconciling, a->topic, a->index);
    reconciling_end(a->reconciling);
    free(a);
}

static void add_unless_lost(struct reconciling *g, const struct metadata_topic *topic,
                            int32_t index)
{
    struct absent *a = xcalloc(1, sizeof(*a));

    *a = (struct absent){.reconciling = g, .topic = topic, .index = index};
    g->pending++;
    lost_check(g->control->cluster, topic, index, absent_known, a);
}

static void add_if_missing(struct reconciling *g, const struct metadata_topic *topic, int32_t index)
{
    const struct metadata_partition *p = &topic->partitions[index];
    int32_t self = g->control->broker->node_id;
    bool is_first = p->leader_epoch == 0 && p->partition_epoch == 0;

    if (p->leader_epoch < 0 || !metadata_ids_have(&p->replicas, self) ||
        control_find_partition(g->control, topic->id, index) ||
        lost_is_there(g->control->cluster, topic->id, index))
        return;
    if (metadata_ids_have(&p->isr, self) && lost_has(g->control->cluster, topic->id, index))
        return;
    if (metadata_ids_have(&p->isr, self) && !is_first && !PLANTED(LEAD_WHAT_IS_LOST))
        add_unless_lost(g, topic, index);
    else
        add_partition(g, topic, index);
}

static void add_missing(struct reconciling *g)
{
    for (int32_t t = 0; t < g->image->topic_count; t++) {
        const struct metadata_topic *topic = g->image->topics[t];

        for (int32_t i = 0; !topic->is_deleting && i < topic->partition_count; i++)
            add_if_missing(g, topic, i);
    }
}

/* What comes, comes behind what goes: it may be of the same name. */
static void partition_went(struct control *c, void *ctx, enum err err)
{
    struct reconciling *g = ctx;

    (void)c;
    if (err)
        trace_error("partition.delete_failed", "error=%s", err_name(err));
    if (--g->leaving > 0)
        return;
    add_missing(g);
    reconciling_end(g);
}

void cluster_reconcile(struct control *c, bool knows_all,
                       void (*done)(struct control *c, void *ctx), void *ctx)
{
    struct reconciling *g = xcalloc(1, sizeof(*g));
    struct partition *p;
    struct partition *next;

    g->control = c;
    g->image = metadata_image_get(c->image);
    g->done = done;
    g->ctx = ctx;
    g->pending = g->leaving = 1;
    HASH_ITER (of_control, c->partitions, p, next) {
        if (!knows_all || p->is_leaving || is_given(c, p))
            continue;
        trace_info("partition.not_given", "topic=%s partition=%d", p->topic, p->index);
        g->leaving++;
        control_remove_partition(c, p, true, partition_went, g);
    }
    partition_went(c, g, ERR_NONE);
}
