/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, listeners, and how a connection comes to be.
 *
 * A dial is a task of the connecting handle. Its first run is the arrival at the other machine:
 * no listener refuses it; a machine without power, a cut link or a full backlog is tried again
 * every second until the deadline. Otherwise the connection exists and its far end waits in the
 * backlog; the second run tells the caller. Both directions must be open for both runs, since a
 * handshake needs answers.
 *
 * Every machine knows 10.0.0.N and the names of all machines; localhost and 127.0.0.1 are itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/net_int.h"

#define RETRY_NS 1000000000

enum reach { REACH_ANY = 0, REACH_LOOPBACK, REACH_ADDRESS };

struct io_listener {
    struct io *io;
    struct list node; /* host->listeners */
    enum reach reach; /* who can come in: by any, the local or the machine's own address */
    uint16_t port;
    int backlog_max;
    int backlog_count;
    struct list backlog; /* struct io_conn, by waiting */
    struct list accepts; /* struct io_accept, by op._ready */
};

/* ---- names ------------------------------------------------------------------------------ */

static bool is_any(const char *host)
{
    return !host || !*host || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

static struct sim_host *find_host(struct sim_world *w, const char *name)
{
    LIST_EACH (node, &w->hosts) {
        struct sim_host *h = LIST_ENTRY(node, struct sim_host, node);

        if (strcmp(h->address, name) == 0 || strcmp(h->name, name) == 0)
            return h;
    }
    return NULL;
}

/* ---- listeners -------------------------------------------------------------------------- */

static struct io_listener *find_listener(struct sim_host *h, enum reach by, uint16_t port)
{
    LIST_EACH (node, &h->listeners) {
        struct io_listener *l = LIST_ENTRY(node, struct io_listener, node);

        if (l->port == port && (l->reach == by || l->reach == REACH_ANY || by == REACH_ANY))
            return l;
    }
    return NULL;
}

static enum err find_reach(struct io *io, const char *host, enum reach *reach)
{
    const struct sim_host *h;

    *reach = REACH_ANY;
    if (is_any(host))
        return ERR_NONE;
    *reach = REACH_LOOPBACK;
    if (is_loopback(host))
        return ERR_NONE;
    *reach = REACH_ADDRESS;
    h = find_host(io->host->world, host);
    if (!h)
        return ERR_NOT_FOUND;
    return h == io->host ? ERR_NONE : ERR_NOT_FOUND;
}

enum err io_listen(struct io *io, const char *host, uint16_t port, int backlog,
                   struct io_listener **out)
{
    struct io_listener *l;
    enum reach reach;
    enum err err;

    *out = NULL;
    if (!sim__call(io))
        return ERR_IO;
    err = find_reach(io, host, &reach);
    if (err)
        return err;
    if (port == 0)
        port = io->host->port_next++;
    if (find_listener(io->host, reach, port))
        return ERR_ADDR_IN_USE;
    l = xcalloc(1, sizeof(*l));
    *l = (struct io_listener){.io = io, .reach = reach, .port = port, .backlog_max = backlog};
    list_init(&l->backlog);
    list_init(&l->accepts);
    list_push_back(&io->host->listeners, &l->node);
    *out = l;
    return ERR_NONE;
}

uint16_t io_listener_port(const struct io_listener *l)
{
    return l->port;
}

static struct io_accept *take_accept(struct io_listener *l)
{
    uint32_t n = 0;
    uint32_t at;

    LIST_EACH (node, &l->accepts)
        n++;
    at = sim_choose(l->io->host->world, SIM_ACCEPT, n);
    LIST_EACH (node, &l->accepts) {
        if (at-- > 0)
            continue;
        list_remove(node);
        return CONTAINER_OF(LIST_ENTRY(node, struct io_op, _ready), struct io_accept, op);
    }
    UNREACHABLE();
}

static void match(struct io_listener *l)
{
    while (!list_is_empty(&l->backlog) && !list_is_empty(&l->accepts)) {
        struct io_conn *conn = LIST_FIRST(&l->backlog, struct io_conn, waiting);
        struct io_accept *a = take_accept(l);

        list_remove(&conn->waiting);
        l->backlog_count--;
        conn->loop = a->op._loop;
        a->conn = conn;
        sim__op_done(&a->op, ERR_NONE);
    }
}

void io_accept(struct io_loop *loop, struct io_listener *l, struct io_accept *a)
{
    if (!sim__call(loop->io))
        return;
    sim__op_begin(loop, &a->op, OP_ACCEPT);
    a->conn = NULL;
    a->_listener = l;
    list_push_back(&l->accepts, &a->op._ready);
    match(l);
}

void sim__accept_cancel(struct io_accept *a)
{
    list_remove(&a->op._ready);
}

static void refuse_backlog(struct io_listener *l)
{
    LIST_EACH_SAFE (node, &l->backlog) {
        struct io_conn *conn = LIST_ENTRY(node, struct io_conn, waiting);

        list_remove(&conn->waiting);
        sim__end_close(conn->tcp, conn->side, true);
        sim__conn_free(conn);
    }
}

void io_listener_close(struct io_listener *l)
{
    struct list *node;

    if (!sim__call(l->io))
        return;
    while ((node = list_pop_front(&l->accepts)) != NULL)
        sim__op_done(LIST_ENTRY(node, struct io_op, _ready), ERR_CANCELLED);
    refuse_backlog(l);
    list_remove(&l->node);
    free(l);
}

static void listeners_drop(struct io *io)
{
    LIST_EACH_SAFE (node, &io->host->listeners) {
        struct io_listener *l = LIST_ENTRY(node, struct io_listener, node);

        if (l->io != io)
            continue;
        list_remove(&l->node);
        if (!io->is_dead)
            free(l);
    }
}

void sim__net_drop(struct io *io, enum sim_crash how)
{
    listeners_drop(io);
    sim__conns_drop(io, how);
}

/* ---- dials ------------------------------------------------------------------------------ */

static void set_addresses(struct io_conn *conn, const char *local, uint16_t local_port,
                          const char *peer, uint16_t peer_port)
{
    conn->local_port = local_port;
    snprintf(conn->local_host, sizeof(conn->local_host), "%s", local);
    snprintf(conn->local, sizeof(conn->local), "%s:%u", local, local_port);
    snprintf(conn->peer, sizeof(conn->peer), "%s:%u", peer, peer_port);
}

static void name_ends(struct io_conn *client, struct io_conn *server)
{
    struct sim_host *h = client->io->host;
    const char *here = client->is_loopback ? "127.0.0.1" : h->address;
    const char *there = client->is_loopback ? "127.0.0.1" : client->target->address;
    uint16_t port = h->port_client;

    h->port_client = port == UINT16_MAX ? 40000 : (uint16_t)(port + 1);
    set_addresses(client, here, port, there, client->target_port);
    set_addresses(server, there, client->target_port, here, port);
}

static void dial_end(struct io_conn *conn, enum err err)
{
    struct io_connect *c = conn->connect;

    conn->connect = NULL;
    if (err && conn->tcp)
        sim__end_close(conn->tcp, conn->side, true);
    if (err)
        sim__conn_free(conn);
    c->conn = err ? NULL : conn;
    c->_conn = NULL;
    sim__op_done(&c->op, err);
}

static void dial_retry(struct io_conn *conn)
{
    struct sim_world *w = conn->io->host->world;

    if (w->now_ns >= conn->deadline_ns)
        dial_end(conn, ERR_TIMEOUT);
    else
        sim__task_at(w, &conn->dial, MIN(w->now_ns + RETRY_NS, conn->deadline_ns));
}

static void dial_arrive(struct io_conn *conn)
{
    struct sim_host *h = conn->io->host;
    struct io_listener *l = find_listener(
        conn->target, conn->is_loopback ? REACH_LOOPBACK : REACH_ADDRESS, conn->target_port);
    struct io_conn *server;

    if (!l || sim_chance(h->world, SIM_REFUSE, h->world->opt.net_refuse_ppm)) {
        dial_end(conn, ERR_REFUSED);
        return;
    }
    if (l->backlog_count >= MAX(l->backlog_max, 1)) {
        dial_retry(conn);
        return;
    }
    server = sim__conn_new(l->io, NULL);
    name_ends(conn, server);
    sim__tcp_new(conn, server);
    list_push_back(&l->backlog, &server->waiting);
    l->backlog_count++;
    match(l);
    sim__task_at(h->world, &conn->dial, h->world->now_ns + sim__net_delay(conn->target, h));
}

static void dial_run(struct sim_task *task)
{
    struct io_conn *conn = CONTAINER_OF(task, struct io_conn, dial);
    struct sim_host *h = conn->io->host;

    sim__event(h->world, SIM_EV_DIAL, h, "dial", conn->target_port);
    if (sim__net_is_cut(h, conn->target) || sim__net_is_cut(conn->target, h) ||
        conn->target->is_down)
        dial_retry(conn);
    else if (!conn->tcp)
        dial_arrive(conn);
    else
        dial_end(conn, ERR_NONE);
}

void io_connect(struct io_loop *loop, const char *host, uint16_t port, struct io_connect *c)
{
    struct sim_host *h = loop->io->host;
    struct io_conn *conn;

    if (!sim__call(loop->io))
        return;
    sim__op_begin(loop, &c->op, OP_CONNECT);
    conn = sim__conn_new(loop->io, loop);
    conn->connect = c;
    conn->is_loopback = is_loopback(host) || is_any(host);
    conn->target = conn->is_loopback ? h : find_host(h->world, host);
    conn->target_port = port;
    conn->deadline_ns = h->world->now_ns + h->world->opt.net_connect_timeout_ns;
    conn->dial = (struct sim_task){.run = dial_run};
    c->conn = NULL;
    c->_conn = conn;
    if (conn->target)
        sim__task_at(h->world, &conn->dial, h->world->now_ns + sim__net_delay(h, conn->target));
    else
        dial_end(conn, ERR_NOT_FOUND);
}

void sim__connect_cancel(struct io_connect *c)
{
    struct io_conn *conn = c->_conn;

    sim__task_drop(conn->io->host->world, &conn->dial);
    if (conn->tcp)
        sim__end_close(conn->tcp, conn->side, true);
    sim__conn_free(conn);
    c->_conn = NULL;
}
