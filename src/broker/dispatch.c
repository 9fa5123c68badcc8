/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a frame to its handler, and from the handler's answer to bytes.
 *
 * The table of handlers is wire/apis.def, the same list that ApiVersions advertises. What cannot
 * be understood ends the connection without a response, as every client expects (old ones probe
 * that way); ApiVersions alone answers in version 0 when its version is unknown.
 */
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/alloc.h"

/* Indexed by enum api_index. */
static void (*const handlers[API_COUNT])(struct request *r) = {
#define API(key, NAME, name, ...) [API_INDEX_##NAME] = handle_##name,
#include "wire/apis.def"
#undef API
};

static void (*handler_of(const struct api *api))(struct request *r)
{
    return handlers[api - api_at(0)];
}

/* ---- life of a request ------------------------------------------------------------------ */

void request_free(struct request *r)
{
    struct conn *c = r->conn;
    struct list *node;

    assert(!r->fetch);
    list_remove(&r->link);
    c->request_count--;
    c->shard->request_count--;
    c->request_bytes -= r->frame_n;
    while ((node = list_pop_front(&r->ranges)))
        io_file_unref(LIST_ENTRY(node, struct file_range, link)->file);
    io_buf_unref(r->frame);
    wire_out_fini(&r->encoded);
    arena_fini(&r->arena);
    free(r);
}

void *request_alloc(struct request *r, size_t size)
{
    return arena_calloc(&r->arena, 1, size);
}

void *request_array(struct request *r, const struct schema *element, int32_t n)
{
    size_t size = schema_size(element);
    char *v = arena_calloc(&r->arena, (size_t)n, size);

    for (int32_t i = 0; i < n; i++)
        wire_init(element, v + (size_t)i * size);
    return v;
}

void request_add_range(struct request *r, struct records *field, const struct log_range *range)
{
    struct file_range *f = request_alloc(r, sizeof(*f));

    f->file = range->file;
    f->pos = range->pos;
    f->n = range->n;
    list_push_back(&r->ranges, &f->link);
    *field = (struct records){.ext = f, .ext_size = range->n};
}

/* ---- replies ---------------------------------------------------------------------------- */

static void replied(struct request *r)
{
    struct conn *c = r->conn;

    r->state = REQUEST_REPLIED;
    if (c->closing) {
        request_free(r);
        conn_mark_dirty(c);
        return;
    }
    /* A response that waits behind a parked fetch should not wait for long. */
    fetch_hurry_before(r);
    conn_mark_dirty(c);
}

void request_reply(struct request *r)
{
    struct wire_out *out = &r->encoded;

    assert(r->state == REQUEST_STARTED);
    wire_frame_begin(out);
    wire_response_header_encode(r->header.api_key, r->header.api_version, r->header.correlation_id,
                                out);
    wire_encode(r->api->response, r->header.api_version, r->out, out);
    if (out->err) {
        trace_error("request.encode_failed", "api=%s version=%d error=%s", r->api->name,
                    r->header.api_version, err_name(out->err));
        request_abort(r, "response could not be encoded");
        return;
    }
    wire_frame_end(out);
    count_reply(r);
    replied(r);
}

void request_finish_silently(struct request *r)
{
    count_reply(r);
    replied(r);
}

void request_abort(struct request *r, const char *why)
{
    trace_info("request.aborted", "peer=%s client=%.*s api=%d version=%d why=\"%s\"",
               io_conn_peer(r->conn->io), STR_ARG(r->header.client_id), r->header.api_key,
               r->header.api_version, why);
    wire_out_fini(&r->encoded);
    r->close_after = true;
    r->conn->read_closed = true;
    replied(r);
}

bool request_allows_partitions(struct request *r, int64_t count)
{
    if (count <= REQUEST_PARTITIONS_MAX)
        return true;
    request_abort(r, "it names too many partitions");
    return false;
}

/* ---- the control loop and back ---------------------------------------------------------- */

static void at_control(struct io_msg *msg)
{
    struct request *r = CONTAINER_OF(msg, struct request, msg);

    r->on_control(r->shard->broker->control, r);
}

static void at_home(struct io_msg *msg)
{
    struct request *r = CONTAINER_OF(msg, struct request, msg);

    r->on_home(r);
}

void request_to_control(struct request *r, void (*fn)(struct control *c, struct request *r),
                        void (*on_home)(struct request *r))
{
    r->on_control = fn;
    r->on_home = on_home;
    r->msg.fn = at_control;
    io_post(control_loop(r->shard->broker), &r->msg);
}

void request_return(struct request *r)
{
    r->msg.fn = at_home;
    io_post(r->shard->loop, &r->msg);
}

/* ---- starting --------------------------------------------------------------------------- */

/* Once for each client and API: what somebody would like us to serve. */
static void log_unserved(struct request *r)
{
    struct conn *c = r->conn;
    int16_t key = r->header.api_key;
    uint64_t bit = key >= 0 && key < 64 ? (uint64_t)1 << key : (uint64_t)1 << 63;

    if (c->unserved_logged & bit)
        return;
    c->unserved_logged |= bit;
    trace_warn("request.not_served",
               "api=%d name=%s version=%d client=%.*s software=\"%s\" peer=%s", key,
               r->header.api ? r->header.api->name : "unknown", r->header.api_version,
               STR_ARG(r->header.client_id), c->client_software, io_conn_peer(c->io));
}

static bool is_old_and_refused(const struct request *r)
{
    return (r->api->flags & API_FLAG_OLD_REFUSED) &&
           r->header.api_version < PRODUCE_VERSION_SERVED_MIN;
}

bool request_is_served(const struct request *r, const struct api *api)
{
    return !(api->flags & API_FLAG_CLUSTER) || r->shard->broker->is_in_cluster;
}

static void start_unsupported(struct request *r, enum err err)
{
    if (err == ERR_UNSUPPORTED_VERSION && r->header.api_key == API_API_VERSIONS) {
        api_versions_unsupported(r);
        return;
    }
    if (err == ERR_UNSUPPORTED_VERSION)
        log_unserved(r);
    request_abort(r, err_text(err));
}

void request_start(struct request *r)
{
    struct bytes frame = {.p = r->frame->data, .n = (int32_t)r->frame_n};
    size_t body_at = 0;
    size_t used = 0;
    enum err err;

    r->state = REQUEST_STARTED;
    r->started_ns = shard_now_ns(r->shard);
    err = wire_request_header_decode(frame, &r->header, &body_at);
    r->api = r->header.api;
    if (!err && !request_is_served(r, r->api))
        err = ERR_UNSUPPORTED_VERSION;
    if (err) {
        start_unsupported(r, err);
        return;
    }
    if (is_old_and_refused(r)) {
        log_unserved(r);
        request_abort(r, "version is advertised for old clients only");
        return;
    }
    r->in = request_alloc(r, schema_size(r->api->request));
    r->out = request_alloc(r, schema_size(r->api->response));
    frame.p += body_at;
    frame.n -= (int32_t)body_at;
    err = wire_decode(r->api->request, r->header.api_version, frame, &r->arena, r->in, &used);
    if (err) {
        request_abort(r, "body is malformed");
        return;
    }
    wire_init(r->api->response, r->out);
    handler_of(r->api)(r);
}
