/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of the simulated client. Nothing is retried here: a request whose connection ends
 * completes with an error, and its owner decides. While the world is calm the broker has to answer
 * in time, and a late answer is a violation; in a storm the client gives up and connects again.
 */
#include "peer.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "run.h"

#define RECV_BYTES 65536
#define RETRY_MS_MAX 100LL
#define ANSWER_NS (4 * SECOND)

static void open_again(struct peer *p)
{
    int64_t delay = RETRY_MS_MAX - run_choose_by(p->run, BY_PEERS, RETRY_MS_MAX);

    p->state = PEER_IDLE;
    io_timer_set(p->run->client_loop, &p->retry, run_now(p->run) + delay * MS);
}

static void drop_calls(struct peer *p)
{
    struct list *node;

    while ((node = list_pop_front(&p->calls))) {
        struct call *c = LIST_ENTRY(node, struct call, link);

        p->call_count--;
        c->done(c, ERR_RESET, NULL);
    }
}

static void ended(struct peer *p)
{
    if (io_op_is_pending(&p->recv.op) || io_op_is_pending(&p->send.op))
        return;
    p->conn = NULL;
    buf_reset(&p->in);
    buf_reset(&p->out);
    open_again(p);
}

void peer_close(struct peer *p)
{
    if (p->state != PEER_OPEN)
        return;
    p->state = PEER_CLOSING;
    p->run->counts.connections_lost++;
    io_conn_close(p->conn);
    drop_calls(p);
    p->closed(p);
    ended(p);
}

/* ---- receiving -------------------------------------------------------------------------- */

static void complete(struct peer *p, struct call *c, struct bytes frame)
{
    void *response = xcalloc(1, schema_size(c->api->response));
    struct arena arena; /* not the call's: that may go in done */
    int32_t correlation_id;
    size_t body_at;
    size_t used;
    enum err err =
        wire_response_header_decode(frame, c->api->key, c->version, &correlation_id, &body_at);

    if (!err && correlation_id != c->correlation_id)
        violate(p->run, "answer %d came where %d was due (%s)", correlation_id, c->correlation_id,
                c->api->name);
    arena_init(&arena, 0);
    frame.p += body_at;
    frame.n -= (int32_t)body_at;
    if (!err)
        err = wire_decode(c->api->response, c->version, frame, &arena, response, &used);
    if (err || used != (size_t)frame.n)
        violate(p->run, "an answer to %s version %d cannot be decoded", c->api->name, c->version);
    else
        c->done(c, ERR_NONE, response);
    arena_fini(&arena);
    free(response);
}

/* One response; false when there is no whole one. */
static bool take_frame(struct peer *p, size_t *at)
{
    struct call *c = LIST_FIRST(&p->calls, struct call, link);
    size_t left = p->in.n - *at;
    int32_t size;

    if (left < FRAME_SIZE_BYTES)
        return false;
    size = get_i32(p->in.p + *at);
    if (size < 0 || !c) {
        violate(p->run, "a response that nobody has asked for (%d bytes)", size);
        return false;
    }
    if (left - FRAME_SIZE_BYTES < (size_t)size)
        return false;
    list_remove(&c->link);
    p->call_count--;
    p->run->counts.answers++;
    complete(p, c, (struct bytes){.p = p->in.p + *at + FRAME_SIZE_BYTES, .n = size});
    *at += FRAME_SIZE_BYTES + (size_t)size;
    return true;
}

static void receive(struct peer *p)
{
    p->recv.p = buf_reserve(&p->in, RECV_BYTES);
    p->recv.n = RECV_BYTES;
    io_recv(p->conn, &p->recv);
}

static void received(struct io_op *op)
{
    struct peer *p = CONTAINER_OF(op, struct peer, recv.op);
    size_t at = 0;

    if (p->state != PEER_OPEN) {
        ended(p);
        return;
    }
    if (op->err) {
        peer_close(p);
        return;
    }
    p->in.n += p->recv.n;
    while (p->state == PEER_OPEN && !run_is_over(p->run) && take_frame(p, &at))
        ;
    if (p->state != PEER_OPEN || run_is_over(p->run))
        return;
    memmove(p->in.p, p->in.p + at, p->in.n - at);
    p->in.n -= at;
    receive(p);
}

/* ---- sending ---------------------------------------------------------------------------- */

static void flush(struct peer *p)
{
    struct buf swap = p->sending;

    if (p->out.n == 0 || io_op_is_pending(&p->send.op))
        return;
    p->sending = p->out;
    p->out = swap;
    buf_reset(&p->out);
    p->send.iov[0] = (struct iovec){.iov_base = p->sending.p, .iov_len = p->sending.n};
    p->send.iov_count = 1;
    io_send(p->conn, &p->send);
}

static void sent(struct io_op *op)
{
    struct peer *p = CONTAINER_OF(op, struct peer, send.op);

    if (p->state != PEER_OPEN)
        ended(p);
    else if (op->err)
        peer_close(p);
    else
        flush(p);
}

void peer_send(struct peer *p, struct call *c, int16_t api_key, int16_t version,
               const void *request, int64_t wait_ns)
{
    struct wire_out out = {0};
    struct request_header header = {
        .api_key = api_key,
        .api_version = version,
        .correlation_id = ++p->correlation_id,
        .client_id = STR_LIT("sim"),
    };

    assert(p->state == PEER_OPEN);
    c->peer = p;
    c->api = header.api = api_find(api_key);
    c->version = version;
    c->correlation_id = header.correlation_id;
    c->sent_ns = run_now(p->run);
    c->due_ns = c->sent_ns + wait_ns + ANSWER_NS;
    wire_frame_begin(&out);
    wire_request_header_encode(&header, &out);
    wire_encode(c->api->request, version, request, &out);
    wire_frame_end(&out);
    assert(!out.err);
    buf_append(&p->out, out.p, out.n);
    wire_out_fini(&out);
    p->run->counts.requests++;
    flush(p);
    if (!c->has_no_answer) {
        list_push_back(&p->calls, &c->link);
        p->call_count++;
    }
}

void peer_ask_offset(struct peer *p, struct call *c, int16_t version, const char *topic,
                     int32_t partition, int64_t timestamp, int64_t wait_ns)
{
    struct list_offsets_request request;
    struct list_offsets_request_topic in_topic;
    struct list_offsets_request_partition in_partition;

    wire_init(&list_offsets_request_schema, &request);
    wire_init(&list_offsets_request_topic_schema, &in_topic);
    wire_init(&list_offsets_request_partition_schema, &in_partition);
    in_partition.partition_index = partition;
    in_partition.timestamp = timestamp;
    in_topic.name = str_of(topic);
    in_topic.partitions.v = &in_partition;
    in_topic.partitions.n = 1;
    request.replica_id = -1;
    request.topics.v = &in_topic;
    request.topics.n = 1;
    peer_send(p, c, API_LIST_OFFSETS, version, &request, wait_ns);
}

void peer_ask_id(struct peer *p, struct call *c)
{
    struct init_producer_id_request request;

    wire_init(&init_producer_id_request_schema, &request);
    request.transactional_id = str_null();
    request.transaction_timeout_ms = 60000;
    peer_send(p, c, API_INIT_PRODUCER_ID, 4, &request, 0);
}

/* ---- connecting ------------------------------------------------------------------------- */

static void connected(struct io_op *op)
{
    struct peer *p = CONTAINER_OF(op, struct peer, connect.op);

    if (op->err) {
        if (p->unreachable)
            p->unreachable(p);
        open_again(p);
        return;
    }
    p->conn = p->connect.conn;
    p->state = PEER_OPEN;
    p->run->counts.connections++;
    receive(p);
    p->opened(p);
}

static void retry(struct io_op *op)
{
    struct peer *p = CONTAINER_OF(op, struct peer, retry.op);

    if (op->err)
        return;
    p->state = PEER_CONNECTING;
    io_connect(p->run->client_loop, sim_host_address(p->host), BROKER_PORT, &p->connect);
}

void peer_check(struct peer *p)
{
    struct call *c = LIST_FIRST(&p->calls, struct call, link);
    int64_t now = run_now(p->run);

    if (p->state != PEER_OPEN || !c || now < c->due_ns)
        return;
    if (c->sent_ns >= p->run->calm_since_ns)
        violate(p->run, "%s has had no answer for %lld ms, and nothing is wrong", c->api->name,
                (long long)((now - c->sent_ns) / MS));
    peer_close(p);
}

void peer_start(struct peer *p)
{
    list_push_back(&p->run->peers, &p->link);
    open_again(p);
}

void peer_init(struct peer *p, struct run *run, void (*opened)(struct peer *),
               void (*closed)(struct peer *))
{
    *p = (struct peer){.run = run, .host = run->broker_host, .opened = opened, .closed = closed};
    p->connect.op.done = connected;
    p->retry.op.done = retry;
    p->recv.op.done = received;
    p->send.op.done = sent;
    list_init(&p->calls);
    list_init(&p->link);
}

void peer_cancel(struct peer *p)
{
    struct list *node;

    while ((node = list_pop_front(&p->calls))) {
        struct call *c = LIST_ENTRY(node, struct call, link);

        c->done(c, ERR_CANCELLED, NULL);
    }
}

void peer_fini(struct peer *p)
{
    list_remove(&p->link);
    buf_fini(&p->in);
    buf_fini(&p->out);
    buf_fini(&p->sending);
}
