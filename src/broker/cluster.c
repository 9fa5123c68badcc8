/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This broker as one of a cluster: it registers (an ephemeral node, whose creation is the number of
 * this life; when its session ends a new one begins), and it stands for election as the controller
 * (another one, made together with the next controller epoch). Whoever has the node decides
 * (rule.c); the others watch it, and try again when it goes.
 *
 * A result of an election that is not known is looked up: the node names its session. A rule that
 * has ended here is not taken up again: its node makes way for that of the next one, which has an
 * epoch of its own, so that nothing of the one before can be stored any more.
 *
 * Whoever is not the controller asks the one that is whether it is there (probe.h). When its
 * process is gone, its node is removed by the one who is elected in its place, before its session
 * ends: at most one of them is, by the version of the epoch, which also ends whatever the one
 * before could still store.
 */
#include "broker/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "keeper/znodes.h"

#define RETRY_NS 1000000000
#define REGISTRATION_MARGIN_MS 2000
#define RECONNECT_MAX_MS 200

static void stand(struct cluster *k);

/* ---- peers ------------------------------------------------------------------------------ */

struct str cluster_listener(const struct control *c)
{
    struct str name = config_str(c->config, CONFIG_INTER_BROKER_LISTENER_NAME);

    return str_is_null(name) ? config_str(c->config, CONFIG_SECURITY_INTER_BROKER_PROTOCOL) : name;
}

void cluster_tell_peers(struct cluster *k)
{
    const struct control *c = k->control;

    broker_tell_client(c->broker, k->peers, c->image, c->config);
    probe_set_target(&k->probe, k->rule || c->image->controller_id == c->broker->node_id
                                    ? -1
                                    : c->image->controller_id);
}

/* ---- the election ----------------------------------------------------------------------- */

static void call_fini(struct cluster *k)
{
    k->is_called = false;
    keeper_call_release(&k->call);
    for (int i = 0; i < 2; i++) {
        free(k->texts[i]);
        k->texts[i] = NULL;
    }
}

static void retry_due(struct io_op *op)
{
    struct cluster *k = CONTAINER_OF(op, struct cluster, retry.op);

    if (!op->err && !k->control->stopping)
        stand(k);
}

static void try_later(struct cluster *k)
{
    k->retry.op.done = retry_due;
    io_timer_set(k->control->loop, &k->retry, io_loop_mono_ns(k->control->loop) + RETRY_NS);
}

/* The controller's process is gone, and its node will stay as long as its session. */
static void controller_refused(struct probe *probe, bool is_first)
{
    struct cluster *k = CONTAINER_OF(probe, struct cluster, probe);

    if (!is_first || k->rule || k->control->stopping)
        return;
    trace_warn("controller.suspect", "broker=%d note=\"it is the controller\"", probe->target);
    k->must_look = k->is_called;
    if (!k->is_called)
        stand(k);
}

static void node_changed(struct keeper_watch *w, enum keeper_event_kind kind)
{
    struct cluster *k = CONTAINER_OF(w, struct cluster, watch);

    (void)kind;
    if (k->rule || k->control->stopping)
        return;
    k->must_look = k->is_called;
    if (!k->is_called)
        stand(k);
}

static struct bytes text_bytes(const char *text)
{
    return (struct bytes){.p = (const uint8_t *)text, .n = (int32_t)strlen(text)};
}

static void elected(struct keeper_call *call)
{
    struct cluster *k = CONTAINER_OF(call, struct cluster, call);
    enum err err = call->err;

    call_fini(k);
    if (!err)
        rule_begin(k, k->epoch + 1, k->epoch_version + 1);
    else
        try_later(k);
}

static void run(struct cluster *k)
{
    struct control *c = k->control;
    int n = 0;

    k->texts[0] = znode_controller_json(c->broker->node_id, io_wall_ms(c->broker->io));
    k->texts[1] = znode_epoch_text(k->epoch + 1);
    /* The epoch first: its version says that nobody else was elected since the node was seen. */
    k->ops[n++] = (struct keeper_op){.kind = KEEPER_SET,
                                     .path = ZNODE_CONTROLLER_EPOCH,
                                     .data = text_bytes(k->texts[1]),
                                     .version = k->epoch_version};
    if (k->deposes)
        k->ops[n++] =
            (struct keeper_op){.kind = KEEPER_DELETE, .path = ZNODE_CONTROLLER, .version = -1};
    k->ops[n++] = (struct keeper_op){.kind = KEEPER_CREATE,
                                     .path = ZNODE_CONTROLLER,
                                     .data = text_bytes(k->texts[0]),
                                     .version = -1,
                                     .is_ephemeral = true};
    k->is_called = true;
    k->call.done = elected;
    keeper_multi(c->keeper, k->ops, n, &k->call);
}

static void epoch_made(struct keeper_call *call)
{
    struct cluster *k = CONTAINER_OF(call, struct cluster, call);

    call_fini(k);
    stand(k);
}

/* The first controller of all makes it. */
static void make_epoch(struct cluster *k)
{
    k->texts[0] = znode_epoch_text(0);
    k->ops[0] = (struct keeper_op){.kind = KEEPER_CREATE,
                                   .path = ZNODE_CONTROLLER_EPOCH,
                                   .data = text_bytes(k->texts[0]),
                                   .version = -1};
    k->is_called = true;
    k->call.done = epoch_made;
    keeper_multi(k->control->keeper, k->ops, 1, &k->call);
}

/* The call's answer, and the end of the call. */
static enum err take_epoch(struct cluster *k)
{
    enum err err = k->call.err;

    k->epoch_version = k->call.stat.version;
    if (!err)
        err = znode_epoch_parse(k->call.data, &k->epoch);
    call_fini(k);
    return err;
}

/* The process before this one had the node, and is gone. */
static bool is_of_past(const struct cluster *k, int64_t owner)
{
    return owner != 0 && owner == k->past_session;
}

static void suspect_read(struct keeper_call *call)
{
    struct cluster *k = CONTAINER_OF(call, struct cluster, call);
    int64_t owner = call->stat.ephemeral_owner;
    int32_t id = -1;
    enum err err = call->err ? call->err : znode_controller_parse(call->data, &id);

    call_fini(k);
    if (!err && (is_of_past(k, owner) || (id == k->probe.target && k->probe.has_refused)))
        run(k);
    else
        try_later(k);
}

static void epoch_read(struct keeper_call *call)
{
    struct cluster *k = CONTAINER_OF(call, struct cluster, call);
    enum err err = take_epoch(k);

    if (!err && k->deposes) {
        k->is_called = true;
        k->call.done = suspect_read;
        keeper_get(k->control->keeper, ZNODE_CONTROLLER, NULL, &k->call);
    } else if (!err) {
        run(k);
    } else if (err == ERR_NOT_FOUND) {
        make_epoch(k);
    } else {
        try_later(k);
    }
}

/* Ours, although we did not hear so: the answer to the election was lost. */
static void epoch_of_ours(struct keeper_call *call)
{
    struct cluster *k = CONTAINER_OF(call, struct cluster, call);
    enum err err = take_epoch(k);

    /* It may have been taken away meanwhile, and the epoch be another one's. */
    if (k->must_look) {
        stand(k);
    } else if (err) {
        try_later(k);
    } else if (k->epoch > k->ruled) {
        rule_begin(k, k->epoch, k->epoch_version);
    } else {
        k->deposes = true;
        run(k);
    }
}

static void node_seen(struct keeper_call *call)
{
    struct cluster *k = CONTAINER_OF(call, struct cluster, call);
    enum err err = call->err;
    int64_t session = keeper_session_id(k->control->keeper);
    int64_t owner = call->stat.ephemeral_owner;
    bool is_ours = !err && session != 0 && owner == session;

    call_fini(k);
    k->deposes = !err && !is_ours && (k->probe.has_refused || is_of_past(k, owner));
    if (err && err != ERR_NOT_FOUND) {
        try_later(k);
    } else if (err || is_ours || k->deposes) {
        k->is_called = true;
        k->call.done = is_ours ? epoch_of_ours : epoch_read;
        keeper_get(k->control->keeper, ZNODE_CONTROLLER_EPOCH, NULL, &k->call);
    } else if (k->must_look) {
        stand(k);
    }
}

/* The watch that a try leaves behind tells when there may be another one. */
static void stand(struct cluster *k)
{
    if (k->is_called || k->rule || k->broker_epoch < 0)
        return;
    k->is_called = true;
    k->must_look = false;
    keeper_unwatch(k->control->keeper, &k->watch);
    k->watch.fired = node_changed;
    k->call.done = node_seen;
    keeper_exists(k->control->keeper, ZNODE_CONTROLLER, &k->watch, &k->call);
}

void cluster_stand_again(struct cluster *k, bool at_once)
{
    if (k->control->stopping)
        return;
    if (at_once)
        stand(k);
    else
        try_later(k);
}

/* ---- registration ----------------------------------------------------------------------- */

static void registered(struct registration *r)
{
    struct cluster *k = CONTAINER_OF(r, struct cluster, registration);
    struct control *c = k->control;

    k->is_registering = false;
    if (r->err == ERR_CANCELLED && !c->stopping) { /* with its session */
        cluster_start(c);
        return;
    }
    if (r->err == ERR_EXISTS) {
        control_stop(c, ERR_INVALID_ARG, "another broker of the cluster has this broker's id");
        return;
    }
    if (r->err) {
        control_stop(c, r->err, "the broker could not be registered with ZooKeeper");
        return;
    }
    k->broker_epoch = r->broker_epoch;
    k->last_note = -1; /* what was being read went with the session before */
    notes_write(k);
    trace_info("cluster.registered", "broker=%d epoch=%lld", c->broker->node_id,
               (long long)r->broker_epoch);
    config_changes_watch(k);
    stand(k);
}

static char *registration_json(const struct broker *b)
{
    struct znode_endpoint endpoints[LISTENERS_MAX];
    struct znode_broker z = {.endpoints = endpoints,
                             .endpoint_count = b->listener_count,
                             .rack = config_str(b->control->config, CONFIG_BROKER_RACK),
                             .jmx_port = -1,
                             .timestamp_ms = io_wall_ms(b->io)};

    for (int i = 0; i < b->listener_count; i++) {
        const struct listener *l = &b->listeners[i];

        endpoints[i] = (struct znode_endpoint){
            .listener = str_of(l->name),
            .protocol = STR_LIT("PLAINTEXT"),
            .host = str_of(l->advertised_host ? l->advertised_host : l->host),
            .port = l->advertised_port ? l->advertised_port : l->port,
        };
    }
    return znode_broker_json(&z);
}

void cluster_start(struct control *c)
{
    struct cluster *k = c->cluster;
    int64_t timeout_ms = config_i32(c->config, CONFIG_ZOOKEEPER_SESSION_TIMEOUT_MS);
    struct registration_args args = {
        .keeper = c->keeper,
        .loop = c->loop,
        .broker_id = c->broker->node_id,
        .previous_session = k->past_session,
        .wait_ns = (timeout_ms + REGISTRATION_MARGIN_MS) * 1000000,
    };

    free(k->registration_json);
    k->registration_json = registration_json(c->broker);
    k->is_registering = true;
    k->registration = (struct registration){.done = registered};
    args.data = text_bytes(k->registration_json);
    registration_begin(&k->registration, &args);
}

void cluster_session_ended(struct cluster *k, int64_t session)
{
    trace_warn("cluster.session_ended", "session=0x%llx broker=%d note=\"it registers again\"",
               (unsigned long long)session, k->control->broker->node_id);
    lease_end(k);
    k->broker_epoch = -1;
    k->past_session = session;
    rule_has_lost_session(k);
    if (k->is_registering)
        registration_cancel(&k->registration);
    else
        cluster_start(k->control);
}

/* ---- life ------------------------------------------------------------------------------- */

struct cluster *cluster_new(struct control *c)
{
    struct cluster *k = xcalloc(1, sizeof(*k));

    k->control = c;
    k->broker_epoch = -1;
    k->last_note = -1;
    k->ruled = -1;
    list_init(&k->announcements);
    list_init(&k->hearings);
    list_init(&k->doubtful);
    list_init(&k->proposals);
    k->peers = broker_client(c->loop, c->broker,
                             config_i32(c->config, CONFIG_CONTROLLER_SOCKET_TIMEOUT_MS),
                             RECONNECT_MAX_MS);
    probe_init(&k->probe, k->peers, controller_refused);
    return k;
}

void cluster_free(struct cluster *k)
{
    if (!k)
        return;
    rule_free(k);
    announcements_free(k);
    proposals_free(k);
    free(k->leave);
    call_fini(k);
    free(k->registration_json);
    free(k->lost);
    free(k);
}
