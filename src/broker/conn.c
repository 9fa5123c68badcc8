/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's input: bytes to frames to requests.
 *
 * Between frames bytes arrive in a small buffer inside the connection, so that an idle connection
 * costs no more than its struct and a small request costs one system call. Of a larger frame the
 * rest is received straight into its own buffer, which is where the record batches stay until they
 * are in the file. That buffer is not allocated in full on the word of the peer: it doubles as
 * bytes arrive, up to the largest frame that this connection has sent whole before.
 *
 * Limits: at most CONN_REQUESTS_MAX requests (fewer while those of the shard are many) or
 * CONN_REQUEST_BYTES_MAX bytes are in flight, then reading stops; and while the budget of all
 * buffers is exhausted, connections that need another buffer wait. The last quarter of it is for
 * small frames: they pass whoever hoards large ones. If what is short waits for the peers
 * themselves (frames without an end, output that nobody takes), those that hold most and have not
 * moved for a while are closed: nobody else could ever set that memory free.
 */
#include "broker/broker_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define FRAME_FIRST_BYTES (16 * 1024)
#define FRAME_SIZE_MIN 8 /* key, version and correlation id */
#define SMALL_FRAME_BYTES (128 * 1024)
#define RELIEF_EVERY_NS 100000000
#define RELIEF_PATIENCE_NS 300000000

/* ---- end -------------------------------------------------------------------------------- */

static struct listener_counts *counts_of(const struct conn *c)
{
    return &c->shard->counts->listeners[c->listener - c->shard->broker->listeners];
}

void conn_try_free(struct conn *c)
{
    struct shard *s = c->shard;

    if (!c->closing || c->request_count > 0 || c->reading)
        return;
    if (io_op_is_pending(&c->recv.op) || io_op_is_pending(&c->send.op))
        return;
    assert(list_is_empty(&c->requests) && list_is_empty(&c->sending));
    list_remove(&c->link);
    list_remove(&c->dirty);
    list_remove(&c->starved);
    io_buf_unref(c->frame);
    io_buf_unref(c->ready_chunk);
    atomic_fetch_sub_explicit(&s->broker->conn_count, 1, memory_order_relaxed);
    counter_add(&counts_of(c)->closed, 1);
    free(c->gaps);
    free(c);
    shard_conn_gone(s);
}

/* Requests that no handler holds: what was not started, and what was answered. */
static void drop_requests(struct conn *c)
{
    LIST_EACH_SAFE (node, &c->requests) {
        struct request *r = LIST_ENTRY(node, struct request, link);

        if (r->fetch)
            fetch_abandon(r->fetch);
        else if (r->state != REQUEST_STARTED)
            request_free(r);
    }
}

void conn_close(struct conn *c, const char *why)
{
    if (c->closing)
        return;
    c->closing = true;
    trace_debug("connection.closed", "peer=%s why=\"%s\"", io_conn_peer(c->io), why);
    io_conn_close(c->io);
    drop_requests(c);
    /* Not here: callers up the stack still hold it. */
    conn_mark_dirty(c);
}

void conn_drain(struct conn *c)
{
    if (c->closing)
        return;
    c->read_closed = true;
    LIST_EACH_SAFE (node, &c->requests) {
        struct request *r = LIST_ENTRY(node, struct request, link);

        if (r->fetch)
            fetch_abandon(r->fetch);
        else if (r->state == REQUEST_QUEUED)
            request_free(r);
    }
    conn_mark_dirty(c);
}

/* ---- frames ----------------------------------------------------------------------------- */

static int requests_max(const struct shard *s)
{
    return s->request_count < SHARD_REQUESTS_PLENTY ? CONN_REQUESTS_MAX : CONN_REQUESTS_FAIR;
}

static bool may_read(const struct conn *c)
{
    return !c->closing && !c->read_closed && c->request_count < requests_max(c->shard) &&
           c->request_bytes < CONN_REQUEST_BYTES_MAX;
}

static void finish_frame(struct conn *c)
{
    struct request *r = xcalloc(1, sizeof(*r));

    r->conn = c;
    r->shard = c->shard;
    r->frame = c->frame;
    r->frame_n = c->frame_size;
    r->arrived_ns = shard_now_ns(c->shard);
    arena_init(&r->arena, 0);
    list_init(&r->ranges);
    list_push_back(&c->requests, &r->link);
    c->request_count++;
    c->shard->request_count++;
    c->request_bytes += c->frame_size;
    c->frame_trust = MAX(c->frame_trust, c->frame_size);
    c->frame = NULL;
}

static void grow_frame(struct conn *c)
{
    size_t cap = c->frame->size;
    struct io_buf *bigger;

    if (c->frame_n < cap || cap == c->frame_size)
        return;
    bigger = io_buf_new(&c->shard->broker->budget, MIN(2 * cap, c->frame_size));
    memcpy(bigger->data, c->frame->data, c->frame_n);
    io_buf_unref(c->frame);
    c->frame = bigger;
}

static void begin_frame(struct conn *c, size_t size)
{
    size_t first = MAX(FRAME_FIRST_BYTES, c->frame_trust);

    c->frame = io_buf_new(&c->shard->broker->budget, MIN(size, first));
    c->frame_size = size;
    c->frame_n = 0;
}

static bool has_room(const struct conn *c, size_t frame_size)
{
    const struct io_budget *b = &c->shard->broker->budget;
    int64_t limit = frame_size > SMALL_FRAME_BYTES ? b->limit - b->limit / 4 : b->limit;

    return atomic_load_explicit(&b->used, memory_order_relaxed) <= limit;
}

/* False when the size makes the connection useless. */
static bool check_size(struct conn *c, int32_t size)
{
    int32_t max = config_i32(c->shard->config, CONFIG_SOCKET_REQUEST_MAX_BYTES);

    if (size >= FRAME_SIZE_MIN && size <= max)
        return true;
    trace_warn("connection.bad_frame", "peer=%s size=%d max=%d", io_conn_peer(c->io), size, max);
    return false;
}

/*
 * Takes frames off the inline buffer. Returns false when the connection is to end; stops when a
 * frame needs more bytes or a limit is reached.
 */
static bool take_frames(struct conn *c)
{
    size_t at = 0;
    bool ok = true;

    while (may_read(c) && c->in_n - at >= FRAME_SIZE_BYTES && !c->frame) {
        int32_t size = get_i32(c->in + at);
        size_t n;

        if (!check_size(c, size)) {
            ok = false;
            break;
        }
        if (!has_room(c, (size_t)size))
            break;
        at += FRAME_SIZE_BYTES;
        begin_frame(c, (size_t)size);
        n = MIN(c->in_n - at, c->frame_size);
        memcpy(c->frame->data, c->in + at, n);
        c->frame_n = n;
        at += n;
        if (c->frame_n == c->frame_size)
            finish_frame(c);
    }
    memmove(c->in, c->in + at, c->in_n - at);
    c->in_n -= at;
    return ok;
}

/* ---- receiving -------------------------------------------------------------------------- */

static void starve(struct conn *c)
{
    struct shard *s = c->shard;

    list_push_back(&s->starved, &c->starved);
    if (s->starved_delay.node.pos == 0)
        shard_delay_set(s, &s->starved_delay, shard_now_ns(s) + STARVED_RETRY_NS);
}

/* Memory that only the peer can set free. */
static size_t held_bytes(const struct conn *c)
{
    size_t n = c->frame ? c->frame->size : 0;

    for (int i = 0; i < c->chunk_count; i++)
        n += c->chunks[i]->size;
    return c->ready_chunk ? n + c->ready_chunk->size : n;
}

/* What one of those who hold such memory holds in the mean; 0 while it is not what is short. */
static size_t held_mean(const struct shard *s)
{
    const struct broker *b = s->broker;
    size_t total = 0;
    size_t holders = 0;

    LIST_EACH (node, &s->conns) {
        size_t n = held_bytes(LIST_ENTRY(node, struct conn, link));

        total += n;
        holders += n > 0;
    }
    return total < (size_t)b->budget.limit / (2 * (size_t)b->shard_count) ? 0 : total / holders;
}

void conn_relieve(struct shard *s)
{
    int64_t now = shard_now_ns(s);
    size_t mean;

    if (now < s->relief_ns)
        return;
    s->relief_ns = now + RELIEF_EVERY_NS;
    mean = held_mean(s);
    if (mean == 0)
        return;
    LIST_EACH_SAFE (node, &s->conns) {
        struct conn *c = LIST_ENTRY(node, struct conn, link);

        if (held_bytes(c) >= mean && now - c->active_ns >= RELIEF_PATIENCE_NS)
            conn_close(c, "holds memory that others wait for");
    }
}

static void receive(struct conn *c)
{
    if (!may_read(c) || io_op_is_pending(&c->recv.op) || list_is_linked(&c->starved))
        return;
    /* A size that has come without its frame had no room a moment ago. All of the frame may be here
     * already: nobody would wake the connection if there is room now. */
    if (!has_room(c, c->frame ? c->frame_size : 0) || c->in_n >= FRAME_SIZE_BYTES) {
        starve(c);
        return;
    }
    if (c->frame) {
        grow_frame(c);
        c->recv.p = c->frame->data + c->frame_n;
        c->recv.n = c->frame->size - c->frame_n;
    } else {
        c->recv.p = c->in + c->in_n;
        c->recv.n = sizeof(c->in) - c->in_n;
    }
    io_recv(c->io, &c->recv);
}

void conn_resume(struct conn *c)
{
    if (c->closing)
        return;
    if (!c->frame && !take_frames(c)) {
        conn_close(c, "bad frame");
        return;
    }
    conn_start_requests(c);
    receive(c);
}

/* The peer sends no more; what it has asked for is still answered. */
static void received_end(struct conn *c, enum err err)
{
    c->read_closed = true;
    /* Nobody waits for more data any longer, whatever the request's max_wait_ms says. */
    LIST_EACH (node, &c->requests) {
        struct request *r = LIST_ENTRY(node, struct request, link);

        if (r->fetch)
            fetch_hurry(r->fetch);
    }
    if (err != ERR_EOF || c->request_count == 0)
        conn_close(c, err_text(err));
}

static void received(struct io_op *op)
{
    struct conn *c = CONTAINER_OF(op, struct conn, recv.op);

    if (c->closing) {
        conn_try_free(c);
        return;
    }
    if (op->err) {
        received_end(c, op->err);
        return;
    }
    if (c->read_closed)
        return;
    c->active_ns = shard_now_ns(c->shard);
    if (c->frame) {
        c->frame_n += c->recv.n;
        if (c->frame_n == c->frame_size)
            finish_frame(c);
    } else {
        c->in_n += c->recv.n;
    }
    conn_resume(c);
}

/*
 * A client that commits and asks for the offset in one breath expects what it has just committed:
 * elsewhere a connection's requests are served one by one. So an OffsetFetch is not started while a
 * commit before it is on its way to the disk.
 */
static bool waits_for_commit(const struct conn *c, const struct request *r)
{
    if (get_i16(r->frame->data) != API_OFFSET_FETCH)
        return false;
    LIST_EACH (node, &c->requests) {
        const struct request *before = LIST_ENTRY(node, const struct request, link);

        if (before == r)
            break;
        if (before->state == REQUEST_STARTED && before->header.api_key == API_OFFSET_COMMIT)
            return true;
    }
    return false;
}

/*
 * Metadata is as of when it is sent: made at once, it would wait behind produces that wait for
 * followers, and tell a client that has heard better meanwhile who led before (lease.c).
 */
static bool waits_for_its_turn(struct conn *c, struct request *r)
{
    if (get_i16(r->frame->data) != API_METADATA)
        return false;
    LIST_EACH (node, &c->requests) {
        const struct request *before = LIST_ENTRY(node, const struct request, link);

        if (before == r)
            break;
        if (before->state != REQUEST_REPLIED) {
            fetch_hurry_before(r);
            return true;
        }
    }
    return false;
}

void conn_start_requests(struct conn *c)
{
    /* A handler may answer at once and bring us here again. */
    if (c->starting)
        return;
    c->starting = true;
    LIST_EACH_SAFE (node, &c->requests) {
        struct request *r = LIST_ENTRY(node, struct request, link);

        if (c->closing || c->start_blocked)
            break;
        if (r->state != REQUEST_QUEUED)
            continue;
        if (waits_for_commit(c, r))
            break;
        if (waits_for_its_turn(c, r))
            continue;
        request_start(r);
    }
    c->starting = false;
}

/* ---- beginning -------------------------------------------------------------------------- */

static void sent_callback(struct io_op *op);

void conn_accepted(struct shard *s, struct listener *l, struct io_conn *io)
{
    struct broker *b = s->broker;
    int32_t max = config_i32(s->config, CONFIG_MAX_CONNECTIONS);
    struct conn *c;

    if (atomic_load_explicit(&b->conn_count, memory_order_relaxed) >= max) {
        trace_warn("connection.refused", "peer=%s why=\"max.connections=%d\"", io_conn_peer(io),
                   max);
        io_conn_close(io);
        return;
    }
    if (!descriptors_take_conn(s)) {
        trace_warn("connection.refused",
                   "peer=%s why=\"too few open files are left: raise the "
                   "limit (ulimit -n, LimitNOFILE)\"",
                   io_conn_peer(io));
        io_conn_close(io);
        return;
    }
    c = xcalloc(1, sizeof(*c));
    c->shard = s;
    c->listener = l;
    c->io = io;
    c->recv.op.done = received;
    c->send.op.done = sent_callback;
    c->active_ns = shard_now_ns(s);
    list_init(&c->dirty);
    list_init(&c->starved);
    list_init(&c->requests);
    list_init(&c->sending);
    list_push_back(&s->conns, &c->link);
    atomic_fetch_add_explicit(&b->conn_count, 1, memory_order_relaxed);
    counter_add(&counts_of(c)->opened, 1);
    if (s->idle_delay.node.pos == 0)
        conn_close_idle(s);
    trace_debug("connection.accepted", "peer=%s local=%s", io_conn_peer(io), io_conn_local(io));
    receive(c);
}

static void sent_callback(struct io_op *op)
{
    struct conn *c = CONTAINER_OF(op, struct conn, send.op);

    conn_sent(c, op->err);
}

void conn_close_idle(struct shard *s)
{
    int64_t idle_ns = config_i64(s->config, CONFIG_CONNECTIONS_MAX_IDLE_MS) * 1000000;
    int64_t now = shard_now_ns(s);

    io_budget_trim(&s->broker->budget);
    if (idle_ns <= 0)
        return;
    LIST_EACH_SAFE (node, &s->conns) {
        struct conn *c = LIST_ENTRY(node, struct conn, link);

        /* A parked request is not silence: the answer is ours to give. */
        if (now - c->active_ns >= idle_ns && c->request_count == 0)
            conn_close(c, "idle for connections.max.idle.ms");
    }
    if (!list_is_empty(&s->conns))
        shard_delay_set(s, &s->idle_delay, now + MAX(idle_ns / 8, 1000000000));
}

void conn_advertised(const struct conn *c, struct arena *arena, struct str *host, int32_t *port)
{
    const struct listener *l = c->listener;
    char local[IO_ADDR_TEXT_MAX];
    uint16_t local_port = 0;

    io_conn_local_host(c->io, local, &local_port);
    *host = arena_str(arena, str_of(l->advertised_host ? l->advertised_host : local));
    *port = l->advertised_port ? l->advertised_port : local_port;
}
