/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections. An operation is tried when it is submitted, unless the last try said that the
 * kernel's buffer is empty (or full); then it waits for an edge. A recv that fills less than it
 * was given has emptied the buffer, and a send that is cut short has filled it: both save the
 * system call that would only say so. That holds because any byte that comes later makes a new
 * edge; once the peer has closed there are no more edges, so from then on every recv is tried.
 *
 * A successful try does not call back: it puts the operation on the loop's ready list.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/real_int.h"

#define UNSENT_BYTES_MAX (256 * 1024) /* of a connection, in the kernel */

static void finish_recv(struct io_conn *conn, ssize_t got)
{
    struct io_recv *r = conn->recv;

    conn->readable = conn->ended || (got > 0 && (size_t)got == r->n);
    r->n = got > 0 ? (size_t)got : 0;
    if (got > 0)
        op_ready(&r->op, ERR_NONE);
    else
        op_ready(&r->op, got == 0 ? ERR_EOF : err_of_errno(errno));
}

static void try_recv(struct io_conn *conn)
{
    struct io_recv *r = conn->recv;
    ssize_t got;

    if (!r || r->op._state != OP_WAITING || !conn->readable)
        return;
    do {
        got = recv(conn->fd, r->p, r->n, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        conn->readable = false;
    else
        finish_recv(conn, got);
}

/* Steps over n bytes; true when nothing is left. */
static bool consume(struct io_send *s, size_t n)
{
    while (s->_at < s->iov_count && n >= s->iov[s->_at].iov_len)
        n -= s->iov[s->_at++].iov_len;
    if (s->_at == s->iov_count)
        return true;
    s->iov[s->_at].iov_base = (char *)s->iov[s->_at].iov_base + n;
    s->iov[s->_at].iov_len -= n;
    return false;
}

static void try_send(struct io_conn *conn)
{
    struct io_send *s = conn->send;
    struct msghdr msg = {0};
    ssize_t sent;

    if (!s || s->op._state != OP_WAITING || !conn->writable)
        return;
    msg.msg_iov = s->iov + s->_at;
    msg.msg_iovlen = (size_t)(s->iov_count - s->_at);
    do {
        sent = sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN)
        op_ready(&s->op, err_of_errno(errno));
    else if (sent >= 0 && consume(s, (size_t)sent))
        op_ready(&s->op, ERR_NONE);
    else
        conn->writable = false;
}

static void on_conn_event(struct source *source, uint32_t events)
{
    struct io_conn *conn = CONTAINER_OF(source, struct io_conn, source);

    if (conn->connect) {
        connect_on_event(conn, events);
        return;
    }
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        conn->ended = true;
    if (conn->ended || (events & EPOLLIN))
        conn->readable = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        conn->writable = true;
    try_recv(conn);
    try_send(conn);
}

struct io_conn *conn_new(struct io_loop *loop)
{
    struct io_conn *conn = xcalloc(1, sizeof(*conn));

    conn->source.on_event = on_conn_event;
    conn->loop = loop;
    conn->fd = -1;
    list_push_back(&loop->conns, &conn->node);
    return conn;
}

void conn_use(struct io_conn *conn, int fd, const struct sockaddr_storage *peer)
{
    socklen_t size = sizeof(conn->local);
    int on = 1;
    int unsent = UNSENT_BYTES_MAX;

    conn->fd = fd;
    conn->readable = true;
    conn->writable = true;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    /* A peer that does not read would else hold megabytes of kernel memory, which nobody counts. */
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    /* Cannot fail on a socket that is ours; if it did, the address would be all zeros. */
    if (getsockname(fd, (struct sockaddr *)&conn->local, &size) < 0)
        conn->local.ss_family = AF_INET;
    addr_text(&conn->local, conn->local_text);
    addr_text(peer, conn->peer_text);
}

void conn_free(struct io_conn *conn)
{
    list_remove(&conn->node);
    if (conn->fd >= 0)
        close(conn->fd);
    free(conn->to);
    free(conn);
}

void conn_forget(struct io_op *op)
{
    if (op->_kind == OP_RECV)
        CONTAINER_OF(op, struct io_recv, op)->_conn->recv = NULL;
    else
        CONTAINER_OF(op, struct io_send, op)->_conn->send = NULL;
}

void io_recv(struct io_conn *conn, struct io_recv *r)
{
    assert(!conn->recv && conn->fd >= 0 && r->n > 0);
    op_begin(&r->op, conn->loop, OP_RECV);
    r->_conn = conn;
    conn->recv = r;
    try_recv(conn);
}

void io_send(struct io_conn *conn, struct io_send *s)
{
    assert(!conn->send && conn->fd >= 0);
    assert(s->iov_count >= 0 && s->iov_count <= IO_IOV_MAX);
    op_begin(&s->op, conn->loop, OP_SEND);
    s->_conn = conn;
    s->_at = 0;
    conn->send = s;
    try_send(conn);
}

const char *io_conn_local(const struct io_conn *conn)
{
    return conn->local_text;
}

const char *io_conn_peer(const struct io_conn *conn)
{
    return conn->peer_text;
}

void io_conn_local_host(const struct io_conn *conn, char host[static IO_ADDR_TEXT_MAX],
                        uint16_t *port)
{
    addr_host(&conn->local, host);
    *port = addr_port(&conn->local);
}

/* An operation that is ready has not been called back, so to its owner it is pending too. */
static void cancel_pending(struct io_op *op)
{
    if (op->_state == OP_WAITING)
        op_ready(op, ERR_CANCELLED);
    else
        op->err = ERR_CANCELLED;
}

static void free_closed(struct io_op *op)
{
    conn_free(CONTAINER_OF(op, struct io_conn, free_op));
}

void io_conn_close(struct io_conn *conn)
{
    assert(conn->fd >= 0 && !conn->connect);
    if (conn->recv)
        cancel_pending(&conn->recv->op);
    if (conn->send)
        cancel_pending(&conn->send->op);
    close(conn->fd);
    conn->fd = -1;
    conn->free_op.done = free_closed;
    op_begin(&conn->free_op, conn->loop, OP_CONN_FREE);
    op_ready(&conn->free_op, ERR_NONE);
}
