/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening and accepting. A listener is one socket; each loop that accepts from it has a *point*:
 * its registration, which wakes one loop and not all (EPOLLEXCLUSIVE), and its waiting accepts.
 *
 * Closing crosses threads: the socket stops listening at once, then each loop is told to cancel
 * its accepts, and the last one closes the descriptor, which until then must not be reused. The
 * struct itself stays until io_free: a loop that was just waiting out a lack of descriptors may
 * still come with an accept, which is then cancelled.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/real_int.h"

struct io_listener {
    struct io *io;
    struct list node;
    uint16_t port;
    /* Guarded by io->lock: */
    int fd; /* -1: closed */
    bool is_closing;
    int point_count;
    struct list points; /* point.in_listener */
};

struct point {
    struct source source;
    struct io_loop *loop;
    struct io_listener *listener;
    struct list in_loop;
    struct list in_listener;
    struct list waiting; /* io_accept.op._ready */
    bool acceptable;     /* an accept may succeed */
    bool is_closed;      /* every accept is cancelled */
    struct io_msg close_msg;
};

/* ---- listening --------------------------------------------------------------------------- */

/* A listening socket, or -1 with errno. */
static int bind_socket(const struct addr *a, int backlog)
{
    int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    int off = 0;
    int number;

    if (fd < 0)
        return -1;
    /* A restart must not wait for the old connections' TIME_WAIT; a live listener still wins. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (a->sa.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, (const struct sockaddr *)&a->sa, a->size) == 0 && listen(fd, backlog) == 0)
        return fd;
    number = errno;
    close(fd);
    errno = number;
    return -1;
}

/* IPv4 first: of a name that has both, it is the one that every client tries. */
static const struct addr *choose(const struct addrs *addrs)
{
    for (int i = 0; i < addrs->n; i++)
        if (addrs->v[i].sa.ss_family == AF_INET)
            return &addrs->v[i];
    return addrs->n > 0 ? &addrs->v[0] : NULL;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage sa = {0};
    socklen_t size = sizeof(sa);
    int failed = getsockname(fd, (struct sockaddr *)&sa, &size);

    assert(!failed);
    return addr_port(&sa);
}

static struct io_listener *listener_new(struct io *io, int fd)
{
    struct io_listener *l = xcalloc(1, sizeof(*l));

    l->io = io;
    l->fd = fd;
    l->port = bound_port(fd);
    list_init(&l->points);
    pthread_mutex_lock(&io->lock);
    list_push_back(&io->listeners, &l->node);
    pthread_mutex_unlock(&io->lock);
    return l;
}

enum err io_listen(struct io *io, const char *host, uint16_t port, int backlog,
                   struct io_listener **out)
{
    struct addrs addrs;
    enum err err;
    int fd;

    *out = NULL;
    err = addrs_resolve(&addrs, host, port);
    if (err)
        return err;
    fd = bind_socket(choose(&addrs), backlog);
    if (fd < 0)
        return err_of_errno(errno);
    *out = listener_new(io, fd);
    return ERR_NONE;
}

uint16_t io_listener_port(const struct io_listener *l)
{
    return l->port;
}

/* ---- accepting --------------------------------------------------------------------------- */

static enum err err_of_accept(int number)
{
    enum err err = err_of_errno(number);

    /* Shut down by another loop, whose message is under way. */
    if (number == EINVAL)
        return ERR_CANCELLED;
    return err == ERR_LIMIT || err == ERR_AGAIN ? err : ERR_IO;
}

static enum err accept_one(struct point *p, struct io_conn **out)
{
    struct sockaddr_storage peer = {0};
    socklen_t size = sizeof(peer);
    int fd;

    /* A connection that died in the queue is no news. */
    do {
        fd =
            accept4(p->listener->fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO));
    if (fd < 0)
        return err_of_accept(errno);
    *out = conn_new(p->loop);
    conn_use(*out, fd, &peer);
    loop_watch(p->loop, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, &(*out)->source);
    return ERR_NONE;
}

static void try_accepts(struct point *p)
{
    while (p->acceptable && !list_is_empty(&p->waiting)) {
        struct io_accept *a = LIST_ENTRY(p->waiting.next, struct io_accept, op._ready);
        enum err err = accept_one(p, &a->conn);

        if (err == ERR_AGAIN) {
            p->acceptable = false;
            return;
        }
        list_remove(&a->op._ready);
        op_ready(&a->op, err);
    }
}

static void on_listener_event(struct source *source, uint32_t events)
{
    struct point *p = CONTAINER_OF(source, struct point, source);

    (void)events;
    if (p->is_closed)
        return;
    p->acceptable = true;
    try_accepts(p);
}

static void close_point(struct point *p)
{
    struct io_listener *l = p->listener;
    struct list *node;

    if (p->is_closed)
        return;
    p->is_closed = true;
    while ((node = list_pop_front(&p->waiting)))
        op_ready(&LIST_ENTRY(node, struct io_accept, op._ready)->op, ERR_CANCELLED);
    pthread_mutex_lock(&l->io->lock);
    epoll_ctl(p->loop->epoll_fd, EPOLL_CTL_DEL, l->fd, NULL);
    if (--l->point_count == 0) {
        close(l->fd);
        l->fd = -1;
    }
    pthread_mutex_unlock(&l->io->lock);
}

static void on_close_msg(struct io_msg *msg)
{
    close_point(CONTAINER_OF(msg, struct point, close_msg));
}

static void watch_listener(struct point *p)
{
    struct io_listener *l = p->listener;

    pthread_mutex_lock(&l->io->lock);
    list_push_back(&l->points, &p->in_listener);
    p->is_closed = l->is_closing;
    if (!l->is_closing) {
        l->point_count++;
        loop_watch(p->loop, l->fd, EPOLLIN | EPOLLEXCLUSIVE, &p->source);
    }
    pthread_mutex_unlock(&l->io->lock);
}

static struct point *point_of(struct io_loop *loop, struct io_listener *l)
{
    struct point *p;

    LIST_EACH (node, &loop->points)
        if (LIST_ENTRY(node, struct point, in_loop)->listener == l)
            return LIST_ENTRY(node, struct point, in_loop);
    p = xcalloc(1, sizeof(*p));
    p->source.on_event = on_listener_event;
    p->close_msg.fn = on_close_msg;
    p->loop = loop;
    p->listener = l;
    p->acceptable = true;
    list_init(&p->waiting);
    list_push_back(&loop->points, &p->in_loop);
    watch_listener(p);
    return p;
}

void io_accept(struct io_loop *loop, struct io_listener *l, struct io_accept *a)
{
    struct point *p = point_of(loop, l);

    op_begin(&a->op, loop, OP_ACCEPT);
    a->_listener = l;
    a->conn = NULL;
    if (p->is_closed) {
        op_ready(&a->op, ERR_CANCELLED);
        return;
    }
    list_push_back(&p->waiting, &a->op._ready);
    try_accepts(p);
}

/* A connection that nobody has heard of when the listener is closed goes with it. */
void accept_forget(struct io_accept *a)
{
    list_remove(&a->op._ready);
    if (!a->conn || !point_of(a->op._loop, a->_listener)->is_closed)
        return;
    conn_free(a->conn);
    a->conn = NULL;
    a->op.err = ERR_CANCELLED;
}

/* ---- closing ----------------------------------------------------------------------------- */

void io_listener_close(struct io_listener *l)
{
    struct io_loop *here = io_loop_current();
    struct point *mine = NULL;

    pthread_mutex_lock(&l->io->lock);
    assert(!l->is_closing);
    l->is_closing = true;
    /* New connections are refused from now on. */
    shutdown(l->fd, SHUT_RDWR);
    LIST_EACH (node, &l->points) {
        struct point *p = LIST_ENTRY(node, struct point, in_listener);

        if (p->loop == here)
            mine = p;
        else
            io_post(p->loop, &p->close_msg);
    }
    if (l->point_count == 0) {
        close(l->fd);
        l->fd = -1;
    }
    pthread_mutex_unlock(&l->io->lock);
    if (mine)
        close_point(mine);
}

void listen_drop_points(struct io_loop *loop)
{
    LIST_EACH_SAFE (node, &loop->points) {
        struct point *p = LIST_ENTRY(node, struct point, in_loop);

        list_remove(&p->in_listener);
        free(p);
    }
}

void listen_drop_all(struct io *io)
{
    LIST_EACH_SAFE (node, &io->listeners) {
        struct io_listener *l = LIST_ENTRY(node, struct io_listener, node);

        if (l->fd >= 0)
            close(l->fd);
        free(l);
    }
}
