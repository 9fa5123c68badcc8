/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker as its client sees it: the connection, the versions that it speaks, and the calls that
 * wait for it or for its responses.
 *
 * A broker is connected to when a call is waiting. The first request is ApiVersions, which names
 * our software (KIP-511) and whose answer decides the version of every later call: the highest that
 * both schemas know. A broker too old for our ApiVersions says so with error 35 in the form of
 * version 0, and is asked again in a version that it has.
 *
 * Requests are pipelined; a broker answers in order, so the head of `sent` is what a response
 * belongs to, and a correlation id that says otherwise means that the stream cannot be trusted.
 * A connection that is lost is tried again after a growing pause.
 */
#include "client/client_int.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/header.h"
#include "wire/messages.h"

/* Version 5 only adds a check of the cluster's id, which we do not know beforehand. */
#define GREETING_VERSION_MAX 4

static void set_state(struct node *n, enum node_state state)
{
    n->state = state;
    trace_debug("client.node", "id=%d host=%s port=%u state=%d", n->id, n->host, n->port, state);
}

/* ---- Versions. */

/* Both sides' highest; ERR_UNSUPPORTED_VERSION. */
static enum err choose_version(const struct node *n, const struct client_call *call,
                               int16_t *version)
{
    for (int i = 0; i < API_KNOWN_COUNT; i++) {
        const struct api *api = api_at(i);
        int16_t max = MIN(schema_last(api->request), n->versions[i].max);

        if (api->key != call->api_key)
            continue;
        *version = call->version_max ? MIN(max, call->version_max) : max;
        if (*version < MAX(schema_first(api->request), n->versions[i].min))
            return ERR_UNSUPPORTED_VERSION;
        return ERR_NONE;
    }
    UNREACHABLE();
}

static void learn_versions(struct node *n, const struct api_versions_response *r)
{
    for (int i = 0; i < API_KNOWN_COUNT; i++)
        n->versions[i].max = -1;
    for (int i = 0; i < API_KNOWN_COUNT; i++) {
        for (int32_t j = 0; j < r->api_keys.n; j++) {
            const struct api_versions_response_api_key *k = &r->api_keys.v[j];

            if (k->api_key == api_at(i)->key)
                n->versions[i] = (struct api_range){k->min_version, k->max_version};
        }
    }
}

/* ---- Sending. */

static void send_request(struct node *n, struct client_sent *sent, const struct schema *schema,
                         const void *request)
{
    struct request_header header = {
        .api_key = sent->api_key,
        .api_version = sent->version,
        .correlation_id = n->next_correlation_id,
        .client_id = str_of(n->client->config.client_id),
    };
    struct wire_out out = {0};
    enum err err;

    sent->correlation_id = n->next_correlation_id;
    n->next_correlation_id = n->next_correlation_id == INT32_MAX ? 0 : n->next_correlation_id + 1;
    wire_frame_begin(&out);
    wire_request_header_encode(&header, &out);
    wire_encode(schema, sent->version, request, &out);
    wire_frame_end(&out);
    err = out.err;
    if (err) {
        assert(sent->call);
        client__finish(sent->call, err);
        free(sent);
    } else {
        list_push_back(&n->sent, &sent->node);
        link_send(n->link, &out);
    }
    wire_out_fini(&out);
}

static void send_greeting(struct node *n)
{
    struct client_sent *sent = xcalloc(1, sizeof(*sent));
    struct api_versions_request request;

    wire_init(&api_versions_request_schema, &request);
    request.client_software_name = str_of(n->client->config.software_name);
    request.client_software_version = str_of(n->client->config.software_version);
    sent->is_greeting = true;
    sent->api_key = API_API_VERSIONS;
    sent->version = n->greeting_version;
    send_request(n, sent, &api_versions_request_schema, &request);
}

/* The queue's first call; it leaves the queue whatever happens. */
static void send_call(struct node *n, struct client_call *call)
{
    struct client_sent *sent = xcalloc(1, sizeof(*sent));
    enum err err = choose_version(n, call, &call->version);

    list_remove(&call->_node);
    if (err) {
        n->pending--;
        free(sent);
        client__finish(call, err);
        return;
    }
    sent->call = call;
    sent->api_key = call->api_key;
    sent->version = call->version;
    call->_state = CALL_SENT;
    call->_sent = sent;
    call->node_id = n->id;
    call->was_sent = true;
    call->err = ERR_NONE;
    send_request(n, sent, api_find(call->api_key)->request, call->request);
    if (call->_state != CALL_SENT) {
        n->pending--;
    } else if (call->has_no_response) {
        /* Nothing will come back: it must not stand in the way of what does. */
        list_remove(&sent->node);
        free(sent);
        n->pending--;
        client__finish(call, ERR_NONE);
    }
}

/* ---- Receiving. */

static enum err decode_greeting(struct node *n, struct bytes frame, size_t body_at, int16_t version)
{
    struct bytes body = {frame.p + body_at, frame.n - (int32_t)body_at};
    struct api_versions_response response;
    struct arena arena;
    size_t used;
    enum err err;

    if (body.n >= 2 && get_i16(body.p) == ERR_UNSUPPORTED_VERSION)
        version = 0;
    arena_init(&arena, 0);
    err = wire_decode(&api_versions_response_schema, version, body, &arena, &response, &used);
    if (!err)
        learn_versions(n, &response);
    if (!err)
        err = err_from_wire(response.error_code);
    arena_fini(&arena);
    return err;
}

static void greeted(struct node *n, struct bytes frame, size_t body_at, int16_t version)
{
    enum err err = decode_greeting(n, frame, body_at, version);
    struct api_range range = {0, 0};

    if (err == ERR_UNSUPPORTED_VERSION && version > 0) {
        for (int i = 0; i < API_COUNT; i++)
            if (api_at(i)->key == API_API_VERSIONS)
                range = n->versions[i];
        n->greeting_version = MAX(0, MIN(range.max, (int16_t)(version - 1)));
        send_greeting(n);
    } else if (err) {
        node_fail(n, err);
    } else {
        set_state(n, NODE_READY);
        n->failures = 0;
        n->last_err = ERR_NONE;
        n->client->is_connected = true;
    }
}

static enum err decode_response(struct client_call *call, struct bytes frame, size_t body_at)
{
    const struct schema *schema = api_find(call->api_key)->response;
    struct bytes body = {frame.p + body_at, frame.n - (int32_t)body_at};
    size_t used;

    call->response = arena_alloc(&call->_arena, schema_size(schema));
    return wire_decode(schema, call->version, body, &call->_arena, call->response, &used);
}

static void answer_call(struct node *n, struct client_call *call, struct bytes frame,
                        size_t body_at)
{
    enum err err;

    n->pending--;
    if (!call)
        return;
    call->_sent = NULL;
    err = decode_response(call, frame, body_at);
    if (err)
        call->response = NULL;
    client__finish(call, err);
}

/* Returns the frame's new owner: the call, or nobody. */
static enum err take_response(struct node *n, struct bytes frame, bool *is_kept)
{
    struct client_sent *sent = LIST_FIRST(&n->sent, struct client_sent, node);
    struct client_call *call;
    int32_t correlation_id;
    size_t body_at;
    enum err err;

    if (!sent)
        return ERR_MALFORMED;
    err =
        wire_response_header_decode(frame, sent->api_key, sent->version, &correlation_id, &body_at);
    if (err || correlation_id != sent->correlation_id)
        return ERR_MALFORMED;
    list_remove(&sent->node);
    call = sent->call;
    if (sent->is_greeting) {
        greeted(n, frame, body_at, sent->version);
    } else {
        *is_kept = call != NULL;
        answer_call(n, call, frame, body_at);
        if (call)
            call->_frame = (uint8_t *)frame.p;
    }
    free(sent);
    return ERR_NONE;
}

/* ---- The link's events. */

static void link_opened(void *ctx)
{
    struct node *n = ctx;

    set_state(n, NODE_GREETING);
    n->greeting_version = GREETING_VERSION_MAX;
    send_greeting(n);
    client__wake(n->client);
}

static void link_frame(void *ctx, uint8_t *frame, size_t size)
{
    struct node *n = ctx;
    struct client *c = n->client;
    bool is_kept = false;
    enum err err = take_response(n, (struct bytes){frame, (int32_t)size}, &is_kept);

    if (!is_kept)
        free(frame);
    if (err)
        node_fail(n, err);
    client__wake(c);
}

static void link_lost(void *ctx, enum err err)
{
    struct node *n = ctx;

    node_fail(n, err);
    client__wake(n->client);
}

static const struct link_events events = {
    .opened = link_opened,
    .frame = link_frame,
    .lost = link_lost,
};

static void start_connecting(struct node *n, int64_t now_ns)
{
    set_state(n, NODE_CONNECTING);
    n->until_ns = now_ns +
                  (int64_t)n->client->config.socket_connection_setup_timeout_ms * NS_PER_MS;
    n->link = link_open(n->client, n->host, n->port, &events, n);
}

/* ---- Losing. */

static int64_t backoff_ns(const struct node *n)
{
    const struct client_config *config = &n->client->config;
    int64_t ms = config->reconnect_backoff_ms;

    for (int32_t i = 1; i < n->failures && ms < config->reconnect_backoff_max_ms; i++)
        ms *= 2;
    return MIN(ms, config->reconnect_backoff_max_ms) * NS_PER_MS;
}

static void fail_sent(struct node *n)
{
    struct list lost;

    list_init(&lost);
    list_splice_back(&lost, &n->sent);
    for (struct list *l; (l = list_pop_front(&lost)) != NULL;) {
        struct client_sent *sent = LIST_ENTRY(l, struct client_sent, node);

        if (!sent->is_greeting)
            n->pending--;
        if (sent->call) {
            sent->call->_sent = NULL;
            client__finish(sent->call, ERR_NETWORK_EXCEPTION);
        }
        free(sent);
    }
}

static void fail_queued(struct node *n, enum err err)
{
    for (struct list *l; (l = list_pop_front(&n->queued)) != NULL;) {
        n->pending--;
        client__unsent(LIST_ENTRY(l, struct client_call, _node), err);
    }
}

void node_fail(struct node *n, enum err err)
{
    bool was_ready = n->state == NODE_READY;
    bool was_idle = was_ready && n->pending == 0;

    if (n->state == NODE_IDLE || n->state == NODE_BACKOFF)
        return;
    trace_debug("client.lost", "id=%d host=%s port=%u error=%s", n->id, n->host, n->port,
                err_name(err));
    link_close(n->link);
    n->link = NULL;
    n->last_err = err;
    n->failures++;
    n->until_ns = io_loop_mono_ns(n->client->loop) + backoff_ns(n);
    set_state(n, NODE_BACKOFF);
    fail_sent(n);
    if (!was_ready)
        fail_queued(n, err);
    if (!was_idle)
        client_metadata_expire(n->client);
}

/* ---- Life. */

struct node *node_new(struct client *c, int32_t id, struct str host, uint16_t port)
{
    struct node *n = xcalloc(1, sizeof(*n));

    n->client = c;
    n->id = id;
    n->host = str_dup(host);
    n->port = port;
    list_init(&n->queued);
    list_init(&n->sent);
    list_push_back(&c->nodes, &n->node);
    return n;
}

void node_free(struct node *n)
{
    link_close(n->link);
    for (struct list *l; (l = list_pop_front(&n->sent)) != NULL;)
        free(LIST_ENTRY(l, struct client_sent, node));
    assert(list_is_empty(&n->queued));
    list_remove(&n->node);
    free(n->host);
    free(n);
}

void node_drop(struct node *n, enum err err)
{
    node_fail(n, err);
    fail_queued(n, err);
    node_free(n);
}

void node_renew(struct node *n)
{
    link_close(n->link);
    n->link = NULL;
    n->failures = 0;
    set_state(n, NODE_IDLE);
    fail_sent(n);
}

void node_add(struct node *n, struct client_call *call)
{
    call->_state = CALL_QUEUED;
    call->node_id = n->id;
    list_push_back(&n->queued, &call->_node);
    n->pending++;
}

void node_pump(struct node *n, int64_t now_ns)
{
    switch (n->state) {
    case NODE_BACKOFF:
        if (now_ns < n->until_ns)
            return;
        set_state(n, NODE_IDLE);
        if (!list_is_empty(&n->queued))
            start_connecting(n, now_ns);
        return;
    case NODE_IDLE:
        if (!list_is_empty(&n->queued))
            start_connecting(n, now_ns);
        return;
    case NODE_CONNECTING:
    case NODE_GREETING:
        if (now_ns >= n->until_ns)
            node_fail(n, ERR_TIMEOUT);
        return;
    case NODE_READY:
        while (!list_is_empty(&n->queued))
            send_call(n, LIST_FIRST(&n->queued, struct client_call, _node));
        return;
    }
}

int64_t node_deadline_ns(const struct node *n)
{
    switch (n->state) {
    case NODE_IDLE:
    case NODE_READY: return INT64_MAX;
    case NODE_BACKOFF:
    case NODE_CONNECTING:
    case NODE_GREETING: return n->until_ns;
    }
    return INT64_MAX;
}
