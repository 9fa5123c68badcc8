/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting. A numeric address is tried at once; a name is looked up on a worker first, because
 * the resolver waits for the network. A name may have several addresses: they are tried in the
 * resolver's order until one accepts, so that "localhost" works whichever family the peer serves.
 *
 * While a name is being looked up the struct resolve belongs to the job. Cancelling cannot stop
 * the resolver, so it only takes away the connection, and the job's end finds nobody to tell.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/real_int.h"

struct resolve {
    struct io_job job;
    struct list node;     /* on its loop's list, so that a stop finds it */
    struct io_conn *conn; /* NULL: cancelled */
    char *host;
    uint16_t port;
    enum err err;
    struct addrs found;
};

static void finish(struct io_conn *conn, enum err err)
{
    struct io_connect *c = conn->connect;

    conn->connect = NULL;
    free(conn->to);
    conn->to = NULL;
    c->_conn = NULL;
    c->conn = err ? NULL : conn;
    if (err)
        conn_free(conn);
    op_ready(&c->op, err);
}

/* Whether the attempt has begun; the edge tells how it ended. */
static enum err try_address(struct io_conn *conn, const struct addr *a)
{
    int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    enum err err;

    if (fd < 0)
        return err_of_errno(errno);
    if (connect(fd, (const struct sockaddr *)&a->sa, a->size) < 0 && errno != EINPROGRESS) {
        err = err_of_errno(errno);
        close(fd);
        return err;
    }
    conn->fd = fd;
    /* Not before connect: an unconnected socket would report a hang-up. */
    loop_watch(conn->loop, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, &conn->source);
    return ERR_NONE;
}

static void try_next(struct io_conn *conn, enum err err)
{
    while (conn->to_next < conn->to->n) {
        err = try_address(conn, &conn->to->v[conn->to_next++]);
        if (!err)
            return;
    }
    finish(conn, err);
}

void connect_on_event(struct io_conn *conn, uint32_t events)
{
    int number = 0;
    socklen_t size = sizeof(number);

    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        return;
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &number, &size) < 0)
        number = errno;
    if (number) {
        close(conn->fd);
        conn->fd = -1;
        try_next(conn, err_of_errno(number));
        return;
    }
    conn->ended = (events & (EPOLLRDHUP | EPOLLHUP)) != 0;
    conn_use(conn, conn->fd, &conn->to->v[conn->to_next - 1].sa);
    finish(conn, ERR_NONE);
}

/* ---- names ------------------------------------------------------------------------------- */

static void resolve_free(struct resolve *r)
{
    list_remove(&r->node);
    free(r->host);
    free(r);
}

static void run_resolve(struct io_job *job)
{
    struct resolve *r = CONTAINER_OF(job, struct resolve, job);

    r->err = addrs_resolve(&r->found, r->host, r->port);
}

static void resolve_done(struct io_job *job)
{
    struct resolve *r = CONTAINER_OF(job, struct resolve, job);

    if (r->conn) {
        *r->conn->to = r->found;
        try_next(r->conn, r->err);
    }
    resolve_free(r);
}

static void start_resolve(struct io_conn *conn, const char *host, uint16_t port)
{
    struct resolve *r = xcalloc(1, sizeof(*r));

    r->job.run = run_resolve;
    r->job.done = resolve_done;
    r->conn = conn;
    r->host = xstrdup(host);
    r->port = port;
    list_push_back(&conn->loop->resolves, &r->node);
    io_job_submit(conn->loop, &r->job);
}

void connect_drop_resolves(struct io_loop *loop)
{
    LIST_EACH_SAFE (node, &loop->resolves)
        resolve_free(LIST_ENTRY(node, struct resolve, node));
}

/* ---- the operation ----------------------------------------------------------------------- */

static struct io_conn *begin(struct io_loop *loop, struct io_connect *c)
{
    struct io_conn *conn;

    op_begin(&c->op, loop, OP_CONNECT);
    conn = conn_new(loop);
    conn->connect = c;
    conn->to = xcalloc(1, sizeof(*conn->to));
    c->_conn = conn;
    c->conn = NULL;
    return conn;
}

void connect_addrs(struct io_loop *loop, const struct addrs *to, struct io_connect *c)
{
    struct io_conn *conn = begin(loop, c);

    *conn->to = *to;
    try_next(conn, ERR_NOT_FOUND);
}

void io_connect(struct io_loop *loop, const char *host, uint16_t port, struct io_connect *c)
{
    struct addrs to;

    if (addrs_parse(&to, host, port) == ERR_NONE)
        connect_addrs(loop, &to, c);
    else
        start_resolve(begin(loop, c), host, port);
}

void connect_abandon(struct io_connect *c)
{
    LIST_EACH (node, &c->_conn->loop->resolves) {
        struct resolve *r = LIST_ENTRY(node, struct resolve, node);

        if (r->conn == c->_conn)
            r->conn = NULL;
    }
    conn_free(c->_conn);
    c->_conn = NULL;
}
