/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that carries frames: a 32-bit size and that many bytes, both ways.
 *
 * Received: first the four bytes of the size, then the frame into memory of just that size, which
 * the owner takes. Sent: frames queue up, and as many as fit in one vector go out together.
 *
 * A link outlives its owner's interest in it: io may still hold its operations after link_close.
 * It is freed by the last of them. Invariant: once is_closed is set, no callback is made.
 */
#include "client/client_int.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/header.h"

struct link {
    struct client *client;
    const struct link_events *events;
    void *ctx;
    struct io_connect connect;
    struct io_recv recv;
    struct io_send send;
    struct io_conn *conn;
    bool is_closed;
    bool in_callback; /* of io: the link must not go before it ends */
    uint8_t head[FRAME_SIZE_BYTES];
    size_t head_n;
    uint8_t *frame; /* NULL while the size is incomplete */
    size_t frame_n; /* bytes that are there */
    size_t frame_size;
    struct iovec *queue; /* frames to send; the first `sending` are in io's hands */
    size_t queue_n;
    size_t queue_cap;
    size_t sending;
};

static void free_frames(struct link *l, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(l->queue[i].iov_base);
    l->queue_n -= n;
    if (l->queue_n)
        memmove(l->queue, l->queue + n, l->queue_n * sizeof(*l->queue));
}

/* The end of each callback of io. */
static void release(struct link *l)
{
    struct client *c = l->client;

    l->in_callback = false;
    if (!l->is_closed || io_op_is_pending(&l->connect.op) || io_op_is_pending(&l->recv.op) ||
        io_op_is_pending(&l->send.op))
        return;
    free_frames(l, l->queue_n);
    free(l->queue);
    free(l->frame);
    free(l);
    client__link_gone(c);
}

/* ---- Receiving. */

static void receive(struct link *l)
{
    if (l->frame) {
        l->recv.p = l->frame + l->frame_n;
        l->recv.n = l->frame_size - l->frame_n;
    } else {
        l->recv.p = l->head + l->head_n;
        l->recv.n = sizeof(l->head) - l->head_n;
    }
    io_recv(l->conn, &l->recv);
}

static void take_frame(struct link *l)
{
    uint8_t *frame = l->frame;

    l->frame = NULL;
    l->head_n = 0;
    l->events->frame(l->ctx, frame, l->frame_size);
}

static enum err take_bytes(struct link *l, size_t n)
{
    if (l->frame) {
        l->frame_n += n;
    } else {
        l->head_n += n;
        if (l->head_n < sizeof(l->head))
            return ERR_NONE;
        l->frame_size = get_u32(l->head);
        l->frame_n = 0;
        if (l->frame_size == 0 || l->frame_size > FRAME_BYTES_MAX)
            return ERR_MALFORMED;
        l->frame = xmalloc(l->frame_size);
    }
    if (l->frame_n == l->frame_size)
        take_frame(l);
    return ERR_NONE;
}

static void received(struct io_op *op)
{
    struct link *l = CONTAINER_OF(op, struct link, recv.op);
    enum err err = op->err;

    l->in_callback = true;
    if (!l->is_closed && !err)
        err = take_bytes(l, l->recv.n);
    if (!l->is_closed && err)
        l->events->lost(l->ctx, err);
    if (!l->is_closed)
        receive(l);
    release(l);
}

/* ---- Sending. */

static void send_queued(struct link *l)
{
    if (l->sending || !l->queue_n || !l->conn)
        return;
    l->sending = MIN(l->queue_n, (size_t)IO_IOV_MAX);
    memcpy(l->send.iov, l->queue, l->sending * sizeof(*l->queue));
    l->send.iov_count = (int)l->sending;
    io_send(l->conn, &l->send);
}

static void sent(struct io_op *op)
{
    struct link *l = CONTAINER_OF(op, struct link, send.op);

    l->in_callback = true;
    if (!l->is_closed && op->err)
        l->events->lost(l->ctx, op->err);
    if (!l->is_closed) {
        free_frames(l, l->sending);
        l->sending = 0;
        send_queued(l);
    }
    release(l);
}

/* ---- Opening and closing. */

static void connected(struct io_op *op)
{
    struct link *l = CONTAINER_OF(op, struct link, connect.op);

    l->in_callback = true;
    if (l->is_closed && !op->err)
        io_conn_close(l->connect.conn);
    if (!l->is_closed && op->err)
        l->events->lost(l->ctx, op->err);
    if (!l->is_closed) {
        l->conn = l->connect.conn;
        receive(l);
        l->events->opened(l->ctx);
    }
    release(l);
}

struct link *link_open(struct client *c, const char *host, uint16_t port,
                       const struct link_events *events, void *ctx)
{
    struct link *l = xcalloc(1, sizeof(*l));

    l->client = c;
    l->events = events;
    l->ctx = ctx;
    l->connect.op.done = connected;
    l->recv.op.done = received;
    l->send.op.done = sent;
    c->links++;
    io_connect(c->loop, host, port, &l->connect);
    return l;
}

void link_send(struct link *l, struct wire_out *out)
{
    assert(!out->err);
    assert(out->holes_n == 0);
    if (l->queue_n == l->queue_cap) {
        l->queue_cap = MAX(16, l->queue_cap * 2);
        l->queue = xreallocarray(l->queue, l->queue_cap, sizeof(*l->queue));
    }
    l->queue[l->queue_n++] = (struct iovec){.iov_base = out->p, .iov_len = out->n};
    out->p = NULL;
    out->n = 0;
    out->cap = 0;
    send_queued(l);
}

void link_close(struct link *l)
{
    if (!l)
        return;
    assert(!l->is_closed);
    l->is_closed = true;
    io_cancel(&l->connect.op);
    if (l->conn)
        io_conn_close(l->conn);
    l->conn = NULL;
    if (!l->in_callback)
        release(l);
}
