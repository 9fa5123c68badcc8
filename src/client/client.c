/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client: where calls go, how long they may take, and when they are told.
 *
 * Everything moves in the pump, which runs as a message to our own loop whenever something has
 * changed, and by one timer for whatever is due next. So no callback is made inside a call of the
 * user, and requests that are submitted together go out together.
 *
 * A call to any broker goes to one that is connected, with the least to do; else to one that can be
 * connected to now. If connecting fails, it tries the next. The bootstrap servers are where it
 * begins, and where it begins again when no broker of the metadata can be reached.
 *
 * A call that was sent and is not answered in time takes its connection with it: answers come in
 * order, so nothing behind it would arrive either.
 */
#include "client/client_int.h"

#include <stdlib.h>

#include "base/assert.h"

#define PORT_DEFAULT 9092

/* ---- The end of a call. */

void client__wake(struct client *c)
{
    if (c->is_pumping)
        return;
    c->is_pumping = true;
    io_post(c->loop, &c->pump);
}

void client__finish(struct client_call *call, enum err err)
{
    struct client *c = call->_client;

    assert(call->_state != CALL_IDLE && call->_state != CALL_FINISHED);
    list_remove(&call->_node);
    heap_remove(&c->deadlines, &call->_deadline);
    call->_sent = NULL;
    call->_state = CALL_FINISHED;
    call->err = err;
    list_push_back(&c->finished, &call->_node);
    client__wake(c);
}

void client__unsent(struct client_call *call, enum err err)
{
    struct client *c = call->_client;

    if (call->target != CLIENT_ANY) {
        client__finish(call, err);
        return;
    }
    call->err = err;
    call->_state = CALL_WAITING;
    list_push_back(&c->waiting, &call->_node);
    client__wake(c);
}

static void run_finished(struct client *c)
{
    /* A callback may cancel other calls, or close the client: what is left is on the list. */
    for (struct list *l; (l = list_pop_front(&c->finished)) != NULL;) {
        struct client_call *call = LIST_ENTRY(l, struct client_call, _node);

        call->_state = CALL_IDLE;
        call->done(call);
    }
}

static void ring_alarms(struct client *c, int64_t now_ns)
{
    struct heap_node *h;

    while (!c->is_closing && (h = heap_min(&c->alarms)) != NULL && h->key <= now_ns) {
        struct client_alarm *alarm = CONTAINER_OF(h, struct client_alarm, _node);

        heap_remove(&c->alarms, h);
        alarm->ring(alarm);
    }
}

static void expire_calls(struct client *c, int64_t now_ns)
{
    struct heap_node *h;

    while ((h = heap_min(&c->deadlines)) != NULL && h->key <= now_ns) {
        struct client_call *call = CONTAINER_OF(h, struct client_call, _deadline);
        struct node *n = call->_state == CALL_SENT ? client__node_of(c, call->node_id) : NULL;
        struct client_sent *sent = call->_sent;

        if (call->_state == CALL_QUEUED)
            client__node_of(c, call->node_id)->pending--;
        if (sent)
            sent->call = NULL;
        /* What kept it waiting says more than that it waited. */
        client__finish(call, call->err ? call->err : ERR_TIMEOUT);
        if (n)
            node_fail(n, ERR_TIMEOUT);
    }
}

/* ---- Where a call goes. */

struct node *client__node_of(struct client *c, int32_t id)
{
    LIST_EACH (l, &c->nodes) {
        struct node *n = LIST_ENTRY(l, struct node, node);

        if (n->id == id)
            return n;
    }
    return NULL;
}

/* How welcome a call is: connected before connecting before idle; -1: not now. */
static int welcome(const struct node *n)
{
    switch (n->state) {
    case NODE_READY: return 3;
    case NODE_GREETING:
    case NODE_CONNECTING: return 2;
    case NODE_IDLE: return 1;
    case NODE_BACKOFF: return -1;
    }
    return -1;
}

static struct node *choose_node(struct client *c)
{
    struct node *best = NULL;

    LIST_EACH (l, &c->nodes) {
        struct node *n = LIST_ENTRY(l, struct node, node);

        if (welcome(n) < 0)
            continue;
        if (!best || welcome(n) > welcome(best) ||
            (welcome(n) == welcome(best) && n->pending < best->pending))
            best = n;
    }
    return best;
}

static bool has_address(struct client *c, const struct address *a)
{
    LIST_EACH (l, &c->nodes) {
        struct node *n = LIST_ENTRY(l, struct node, node);

        if (n->port == a->port && strcmp(n->host, a->host) == 0)
            return true;
    }
    return false;
}

static void add_bootstrap_nodes(struct client *c)
{
    for (size_t i = 0; i < c->bootstrap_count; i++)
        if (!has_address(c, &c->bootstrap[i]))
            node_new(c, -1 - (int32_t)i, str_of(c->bootstrap[i].host), c->bootstrap[i].port);
}

/* Every server has been tried and failed, and none has ever answered. */
static bool is_hopeless(struct client *c)
{
    if (!c->config.is_impatient || c->is_connected)
        return false;
    LIST_EACH (l, &c->nodes)
        if (LIST_ENTRY(l, struct node, node)->failures == 0)
            return false;
    return true;
}

/* False: it has to wait. */
static bool route(struct client *c, struct client_call *call)
{
    int32_t target = call->target;
    struct node *n;

    if (target == CLIENT_ANY) {
        n = choose_node(c);
        if (!n)
            add_bootstrap_nodes(c);
        if (!n)
            n = choose_node(c);
    } else {
        if (target == CLIENT_CONTROLLER)
            target = c->cluster.controller_id;
        n = target < 0 ? NULL : client__node_of(c, target);
        if (!n && c->cluster.is_known && call->target >= 0) {
            client_metadata_expire(c);
            client__finish(call, ERR_BROKER_NOT_AVAILABLE);
            return true;
        }
        if (!n)
            client_metadata_expire(c);
    }
    if (!n)
        return false;
    list_remove(&call->_node);
    node_add(n, call);
    return true;
}

static void route_waiting(struct client *c)
{
    bool hopeless = is_hopeless(c);

    LIST_EACH_SAFE (l, &c->waiting) {
        struct client_call *call = LIST_ENTRY(l, struct client_call, _node);

        if (hopeless && (call->target != CLIENT_ANY || call->err)) {
            struct node *n = LIST_FIRST(&c->nodes, struct node, node);

            client__finish(call, call->err ? call->err : n->last_err);
        } else {
            route(c, call);
        }
    }
}

/* ---- The pump. */

static void set_timer(struct client *c)
{
    struct heap_node *h = heap_min(&c->deadlines);
    struct heap_node *alarm = heap_min(&c->alarms);
    int64_t at = MIN(h ? h->key : INT64_MAX, c->cluster.refresh_ns);

    at = MIN(at, alarm ? alarm->key : INT64_MAX);
    LIST_EACH (l, &c->nodes)
        at = MIN(at, node_deadline_ns(LIST_ENTRY(l, struct node, node)));
    if (at != INT64_MAX)
        io_timer_set(c->loop, &c->timer, at);
    else
        io_cancel(&c->timer.op);
}

static void pump(struct client *c)
{
    int64_t now_ns = io_loop_mono_ns(c->loop);

    expire_calls(c, now_ns);
    cluster_pump(c, now_ns);
    route_waiting(c);
    LIST_EACH (l, &c->nodes)
        node_pump(LIST_ENTRY(l, struct node, node), now_ns);
    run_finished(c);
    ring_alarms(c, now_ns);
    if (!c->is_closing)
        set_timer(c);
}

static void finish_close(struct client *c);

static void pump_message(struct io_msg *msg)
{
    struct client *c = CONTAINER_OF(msg, struct client, pump);

    c->is_pumping = false;
    if (c->is_closing)
        finish_close(c);
    else
        pump(c);
}

static void timer_done(struct io_op *op)
{
    struct client *c = CONTAINER_OF(op, struct client, timer.op);

    client__wake(c);
}

/* ---- Opening and closing. */

struct client_config client_config_default(void)
{
    return (struct client_config){
        .bootstrap_servers = "localhost:9092",
        .client_id = "strandline",
        .software_name = "strandline",
        .software_version = "0",
        .request_timeout_ms = 30000,
        .socket_connection_setup_timeout_ms = 10000,
        .reconnect_backoff_ms = 50,
        .reconnect_backoff_max_ms = 1000,
        .retry_backoff_ms = 100,
        .retry_backoff_max_ms = 1000,
        .metadata_max_age_ms = 300000,
    };
}

/* One "host", "host:port" or "[v6]:port". */
static bool parse_address(struct str text, struct address *out)
{
    const char *colon = memrchr(text.p, ':', (size_t)text.n);
    struct str host = text;
    int64_t port = PORT_DEFAULT;

    if (text.n > 0 && text.p[0] == '[') {
        const char *end = memchr(text.p, ']', (size_t)text.n);

        if (!end)
            return false;
        host = (struct str){text.p + 1, (int32_t)(end - text.p) - 1};
        if (colon && colon < end)
            colon = NULL;
    } else if (colon) {
        host.n = (int32_t)(colon - text.p);
    }
    if (colon) {
        struct str number = {colon + 1, text.n - (int32_t)(colon + 1 - text.p)};

        if (str_to_i64(number, &port))
            return false;
    }
    if (host.n <= 0 || port <= 0 || port > UINT16_MAX)
        return false;
    *out = (struct address){.host = str_dup(host), .port = (uint16_t)port};
    return true;
}

static enum err parse_bootstrap(struct client *c, const char *list)
{
    const char *p = list;

    while (p && *p) {
        size_t n = strcspn(p, ",");
        size_t skip = strspn(p, " ");
        struct str item = {p + skip, (int32_t)n - (int32_t)skip};
        struct address a;

        if (skip > n || !parse_address(item, &a))
            return ERR_INVALID_ARG;
        c->bootstrap = xreallocarray(c->bootstrap, c->bootstrap_count + 1, sizeof(a));
        c->bootstrap[c->bootstrap_count++] = a;
        p += n + (p[n] == ',');
    }
    return c->bootstrap_count ? ERR_NONE : ERR_INVALID_ARG;
}

static void free_client(struct client *c)
{
    cluster_fini(c);
    for (size_t i = 0; i < c->bootstrap_count; i++)
        free(c->bootstrap[i].host);
    free(c->bootstrap);
    heap_fini(&c->deadlines);
    heap_fini(&c->alarms);
    free((char *)c->config.client_id);
    free((char *)c->config.software_name);
    free((char *)c->config.software_version);
    free(c);
}

static bool is_in_range(const struct client_config *config)
{
    return config->request_timeout_ms > 0 && config->socket_connection_setup_timeout_ms > 0 &&
           config->reconnect_backoff_ms >= 0 && config->reconnect_backoff_max_ms >= 0 &&
           config->retry_backoff_ms > 0 && config->retry_backoff_max_ms > 0 &&
           config->metadata_max_age_ms > 0 && strlen(config->client_id) <= INT16_MAX;
}

enum err client_open(struct io_loop *loop, const struct client_config *config, struct client **out)
{
    struct client *c;

    *out = NULL;
    if (!is_in_range(config))
        return ERR_LIMIT;
    c = xcalloc(1, sizeof(*c));
    c->loop = loop;
    c->config = *config;
    c->config.client_id = xstrdup(config->client_id);
    c->config.software_name = xstrdup(config->software_name);
    c->config.software_version = xstrdup(config->software_version);
    c->config.bootstrap_servers = NULL;
    list_init(&c->nodes);
    list_init(&c->waiting);
    list_init(&c->finished);
    heap_init(&c->deadlines);
    heap_init(&c->alarms);
    c->timer.op.done = timer_done;
    c->pump.fn = pump_message;
    cluster_init(c);
    if (!config->is_told && parse_bootstrap(c, config->bootstrap_servers)) {
        free_client(c);
        return ERR_INVALID_ARG;
    }
    add_bootstrap_nodes(c);
    *out = c;
    return ERR_NONE;
}

/* Runs as a message once nothing of ours is in io's hands. */
static void finish_close(struct client *c)
{
    void (*closed)(void *ctx) = c->closed;
    void *ctx = c->closed_ctx;

    if (c->links > 0)
        return;
    if (io_op_is_pending(&c->timer.op))
        return;
    free_client(c);
    closed(ctx);
}

void client__link_gone(struct client *c)
{
    c->links--;
    if (c->is_closing)
        client__wake(c);
}

static void forget_calls(struct client *c)
{
    struct heap_node *h;

    while ((h = heap_min(&c->alarms)) != NULL)
        heap_remove(&c->alarms, h);
    while ((h = heap_min(&c->deadlines)) != NULL)
        client_cancel(CONTAINER_OF(h, struct client_call, _deadline));
    for (struct list *l; (l = list_pop_front(&c->finished)) != NULL;)
        LIST_ENTRY(l, struct client_call, _node)->_state = CALL_IDLE;
}

void client_close(struct client *c, void (*done)(void *ctx), void *ctx)
{
    assert(!c->is_closing);
    c->is_closing = true;
    c->closed = done;
    c->closed_ctx = ctx;
    forget_calls(c);
    for (struct node *n; (n = LIST_FIRST(&c->nodes, struct node, node)) != NULL;)
        node_free(n);
    io_cancel(&c->timer.op);
    client__wake(c);
}

struct io_loop *client_loop(const struct client *c)
{
    return c->loop;
}

const struct client_config *client_settings(const struct client *c)
{
    return &c->config;
}

/* ---- Calls. */

static void reset_result(struct client_call *call)
{
    arena_reset(&call->_arena);
    free(call->_frame);
    call->_frame = NULL;
    call->response = NULL;
    call->err = ERR_NONE;
    call->was_sent = false;
    call->version = -1;
    call->node_id = -1;
}

void client_call(struct client *c, struct client_call *call)
{
    int32_t timeout_ms = call->timeout_ms ? call->timeout_ms : c->config.request_timeout_ms;

    assert(!c->is_closing);
    assert(call->_state == CALL_IDLE);
    assert(api_find(call->api_key));
    assert(call->done && call->request);
    reset_result(call);
    call->_client = c;
    call->_state = CALL_WAITING;
    list_push_back(&c->waiting, &call->_node);
    heap_push(&c->deadlines, &call->_deadline,
              io_mono_ns(io_loop_io(c->loop)) + (int64_t)timeout_ms * NS_PER_MS);
    client__wake(c);
}

void client_cancel(struct client_call *call)
{
    struct client *c = call->_client;

    if (call->_state == CALL_IDLE)
        return;
    if (call->_state == CALL_QUEUED)
        client__node_of(c, call->node_id)->pending--;
    if (call->_state == CALL_SENT)
        call->_sent->call = NULL;
    else
        list_remove(&call->_node);
    heap_remove(&c->deadlines, &call->_deadline);
    call->_sent = NULL;
    call->_state = CALL_IDLE;
}

bool client_call_is_pending(const struct client_call *call)
{
    return call->_state != CALL_IDLE;
}

void client_call_fini(struct client_call *call)
{
    client_cancel(call);
    free(call->_frame);
    call->_frame = NULL;
    call->response = NULL;
    arena_fini(&call->_arena);
}

/* ---- Alarms. */

void client_alarm_set(struct client *c, struct client_alarm *alarm, int64_t deadline_ns)
{
    heap_remove(&c->alarms, &alarm->_node);
    heap_push(&c->alarms, &alarm->_node, deadline_ns);
    if (heap_min(&c->alarms) == &alarm->_node)
        client__wake(c);
}

void client_alarm_clear(struct client *c, struct client_alarm *alarm)
{
    heap_remove(&c->alarms, &alarm->_node);
}
