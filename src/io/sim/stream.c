/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections as the network sees them: two pipes of segments.
 *
 * io_send cuts its bytes into segments as far as the window allows (bytes that the peer's code has
 * not received yet count, so a slow reader stops the sender); each segment gets a delay, and none
 * overtakes another. io_recv takes what has arrived, or a part of it. A cut link does not lose
 * anything: segments wait until it is healed, as TCP would send them again. A connection ends by
 * a FIN behind the data, or by a reset, which overtakes what is in flight. A machine without power
 * is silent; when the machine is back, the first segment that reaches it is answered
 * with a reset.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/net_int.h"

enum segment_kind { SEGMENT_DATA = 0, SEGMENT_FIN, SEGMENT_RESET };

struct segment {
    struct list node;
    int64_t at_ns;
    enum segment_kind kind;
    size_t size;
    size_t taken; /* bytes received */
    uint8_t data[];
};

/* ---- segments in flight ----------------------------------------------------------------- */

static struct segment *segment_new(enum segment_kind kind, size_t size)
{
    struct segment *s = xmalloc(sizeof(*s) + size);

    s->kind = kind;
    s->size = size;
    s->taken = 0;
    list_init(&s->node);
    return s;
}

static void segments_free(struct list *l)
{
    struct list *node;

    while ((node = list_pop_front(l)) != NULL)
        free(LIST_ENTRY(node, struct segment, node));
}

static struct sim_end *sender(struct sim_pipe *p)
{
    return &p->tcp->ends[p->from];
}

static struct sim_end *receiver(struct sim_pipe *p)
{
    return &p->tcp->ends[1 - p->from];
}

bool sim__net_is_cut(const struct sim_host *from, const struct sim_host *to)
{
    return from->cut_to >> to->index & 1;
}

/* Most delays are short, some long. */
int64_t sim__net_delay(const struct sim_host *from, const struct sim_host *to)
{
    int64_t max_ns = from->world->opt.net_delay_ns_max / (from == to ? 10 : 1);
    int64_t k = sim_choose(from->world, SIM_DELAY, 8);

    return max_ns * k * k / 49;
}

static void fly(struct sim_pipe *p, struct segment *s)
{
    struct sim_world *w = p->tcp->world;

    s->at_ns = w->now_ns + sim__net_delay(sender(p)->host, receiver(p)->host);
    list_push_back(&p->flight, &s->node);
    if (p->flight.next == &s->node)
        sim__task_at(w, &p->task, s->at_ns);
}

static void drop_flight(struct sim_pipe *p)
{
    LIST_EACH (node, &p->flight)
        p->used -= LIST_ENTRY(node, struct segment, node)->size;
    segments_free(&p->flight);
    sim__task_drop(p->tcp->world, &p->task);
}

static void fly_reset(struct sim_pipe *p)
{
    drop_flight(p);
    fly(p, segment_new(SEGMENT_RESET, 0));
}

/* ---- what has arrived ------------------------------------------------------------------- */

static size_t take_arrived(struct sim_pipe *p, uint8_t *to, size_t n)
{
    size_t got = 0;

    while (got < n && !list_is_empty(&p->arrived)) {
        struct segment *s = LIST_FIRST(&p->arrived, struct segment, node);
        size_t part = MIN(n - got, s->size - s->taken);

        memcpy(to + got, s->data + s->taken, part);
        s->taken += part;
        got += part;
        if (s->taken == s->size) {
            list_remove(&s->node);
            free(s);
        }
    }
    p->used -= got;
    return got;
}

static size_t some_of(struct sim_world *w, size_t n)
{
    if (n < 2 || !sim_chance(w, SIM_CHUNK, w->opt.net_chunk_ppm))
        return n;
    return 1 + sim_choose(w, SIM_CHUNK, (uint32_t)MIN(n, UINT32_MAX));
}

static void pump(struct sim_pipe *p);

static bool is_receiving(const struct io_conn *conn)
{
    return conn->recv && conn->recv->op._state == OP_PENDING;
}

static bool is_sending(const struct io_conn *conn)
{
    return conn->send && conn->send->op._state == OP_PENDING;
}

static void try_recv(struct io_conn *conn)
{
    struct sim_tcp *tcp = conn->tcp;
    struct sim_pipe *p = &tcp->pipes[1 - conn->side];
    const struct sim_end *end = &tcp->ends[conn->side];

    if (!is_receiving(conn))
        return;
    if (!list_is_empty(&p->arrived)) {
        struct io_recv *r = conn->recv;

        r->n = take_arrived(p, r->p, some_of(tcp->world, r->n));
        sim__op_done(&conn->recv->op, ERR_NONE);
        pump(p);
    } else if (end->is_reset) {
        sim__op_done(&conn->recv->op, ERR_RESET);
    } else if (end->has_eof) {
        sim__op_done(&conn->recv->op, ERR_EOF);
    }
}

/* ---- sending ---------------------------------------------------------------------------- */

/* Drops empty elements; false when nothing is left. */
static bool has_bytes(struct io_send *s)
{
    while (s->_at < s->iov_count && s->iov[s->_at].iov_len == 0)
        s->_at++;
    return s->_at < s->iov_count;
}

static size_t bytes_left(const struct io_send *s, size_t max)
{
    size_t n = 0;

    for (int i = s->_at; i < s->iov_count && n < max; i++)
        n += s->iov[i].iov_len;
    return MIN(n, max);
}

static struct segment *cut_segment(struct io_send *s, size_t n)
{
    struct segment *seg = segment_new(SEGMENT_DATA, n);
    size_t done = 0;

    while (done < n && has_bytes(s)) {
        struct iovec *v = &s->iov[s->_at];
        size_t part = MIN(n - done, v->iov_len);

        memcpy(seg->data + done, v->iov_base, part);
        v->iov_base = (uint8_t *)v->iov_base + part;
        v->iov_len -= part;
        done += part;
    }
    assert(done == n);
    return seg;
}

/* Sends as much as the window allows. */
static void pump(struct sim_pipe *p)
{
    struct sim_world *w = p->tcp->world;
    struct io_conn *conn = sender(p)->conn;

    if (!conn || !is_sending(conn))
        return;
    while (has_bytes(conn->send) && p->used < w->opt.net_window_bytes) {
        size_t n = bytes_left(conn->send, w->opt.net_window_bytes - p->used);

        n = some_of(w, n);
        p->used += n;
        fly(p, cut_segment(conn->send, n));
    }
    if (!has_bytes(conn->send))
        sim__op_done(&conn->send->op, ERR_NONE);
}

/* ---- arrival ---------------------------------------------------------------------------- */

static void maybe_free(struct sim_tcp *tcp)
{
    if (tcp->ends[0].conn || tcp->ends[1].conn || !list_is_empty(&tcp->pipes[0].flight) ||
        !list_is_empty(&tcp->pipes[1].flight))
        return;
    for (int i = 0; i < 2; i++) {
        sim__task_drop(tcp->world, &tcp->pipes[i].task);
        segments_free(&tcp->pipes[i].arrived);
    }
    list_remove(&tcp->node);
    free(tcp);
}

static void end_reset(struct sim_tcp *tcp, unsigned side)
{
    struct sim_end *end = &tcp->ends[side];

    drop_flight(&tcp->pipes[side]);
    end->is_reset = true;
    if (!end->conn)
        return;
    try_recv(end->conn);
    if (is_sending(end->conn))
        sim__op_done(&end->conn->send->op, ERR_RESET);
}

static void arrive(struct sim_pipe *p, struct segment *s)
{
    struct sim_end *to = receiver(p);

    if (s->kind == SEGMENT_DATA && to->conn && !to->is_reset) {
        list_push_back(&p->arrived, &s->node);
        try_recv(to->conn);
        return;
    }
    p->used -= s->size;
    if (s->kind == SEGMENT_RESET) {
        end_reset(p->tcp, 1 - p->from);
    } else if (s->kind == SEGMENT_FIN) {
        to->has_eof = true;
        if (to->conn)
            try_recv(to->conn);
    } else { /* Closed, or the machine had no power for a while and knows nothing of it. */
        fly_reset(&p->tcp->pipes[1 - p->from]);
    }
    free(s);
}

static void pipe_run(struct sim_task *task)
{
    struct sim_pipe *p = CONTAINER_OF(task, struct sim_pipe, task);
    struct sim_tcp *tcp = p->tcp;
    struct sim_world *w = tcp->world;
    struct segment *s = LIST_FIRST(&p->flight, struct segment, node);
    const struct sim_host *to = receiver(p)->host;

    if (sim__net_is_cut(sender(p)->host, to) || to->is_down)
        return; /* resume() comes back to it. */
    sim__event(w, SIM_EV_SEGMENT, to, "segment", (int64_t)s->size);
    if (s->kind == SEGMENT_DATA && sim_chance(w, SIM_RESET, w->opt.net_reset_ppm)) {
        sim__event(w, SIM_EV_RESET, to, "reset", 0);
        end_reset(tcp, 0);
        end_reset(tcp, 1);
    } else {
        list_remove(&s->node);
        arrive(p, s);
        if (!list_is_empty(&p->flight))
            sim__task_at(w, task, LIST_FIRST(&p->flight, struct segment, node)->at_ns);
    }
    maybe_free(tcp);
}

/* ---- cuts and boots --------------------------------------------------------------------- */

static void resume(struct sim_pipe *p)
{
    if (!list_is_empty(&p->flight) && !p->task.is_ready && p->task.at.pos == 0)
        sim__task_at(p->tcp->world, &p->task,
                     p->tcp->world->now_ns + sim__net_delay(sender(p)->host, receiver(p)->host));
}

static void resume_all(struct sim_world *w)
{
    LIST_EACH (node, &w->sockets) {
        struct sim_tcp *tcp = LIST_ENTRY(node, struct sim_tcp, node);

        resume(&tcp->pipes[0]);
        resume(&tcp->pipes[1]);
    }
}

void sim_net_cut(struct sim_host *from, struct sim_host *to)
{
    from->cut_to |= (uint64_t)1 << to->index;
    sim__event(from->world, SIM_EV_CUT, from, "cut", to->index);
}

void sim_net_heal(struct sim_host *from, struct sim_host *to)
{
    from->cut_to &= ~((uint64_t)1 << to->index);
    resume_all(from->world);
}

void sim_net_heal_all(struct sim_world *w)
{
    LIST_EACH (node, &w->hosts)
        LIST_ENTRY(node, struct sim_host, node)->cut_to = 0;
    resume_all(w);
}

void sim__net_boot(struct sim_host *h)
{
    resume_all(h->world);
}

/* ---- ends ------------------------------------------------------------------------------- */

struct sim_tcp *sim__tcp_new(struct io_conn *client, struct io_conn *server)
{
    struct sim_tcp *tcp = xcalloc(1, sizeof(*tcp));
    struct io_conn *conns[2] = {client, server};

    tcp->world = client->io->host->world;
    for (unsigned i = 0; i < 2; i++) {
        assert(!conns[i]->tcp);
        conns[i]->tcp = tcp;
        conns[i]->side = i;
        tcp->ends[i] = (struct sim_end){.host = conns[i]->io->host, .conn = conns[i]};
        tcp->pipes[i] = (struct sim_pipe){.tcp = tcp, .from = i, .task.run = pipe_run};
        list_init(&tcp->pipes[i].flight);
        list_init(&tcp->pipes[i].arrived);
    }
    list_push_back(&tcp->world->sockets, &tcp->node);
    return tcp;
}

void sim__end_close(struct sim_tcp *tcp, unsigned side, bool with_reset)
{
    struct sim_pipe *in = &tcp->pipes[1 - side];
    bool is_unread = !list_is_empty(&in->arrived);
    struct sim_end *end = &tcp->ends[side];

    end->conn->tcp = NULL;
    end->conn = NULL;
    segments_free(&in->arrived);
    if (with_reset || is_unread)
        fly_reset(&tcp->pipes[side]);
    else if (!end->is_reset)
        fly(&tcp->pipes[side], segment_new(SEGMENT_FIN, 0));
    maybe_free(tcp);
}

/* Without power an end says nothing, not even goodbye. */
static void end_silence(struct io_conn *conn)
{
    conn->tcp->ends[conn->side].conn = NULL;
    segments_free(&conn->tcp->pipes[1 - conn->side].arrived);
    maybe_free(conn->tcp);
    conn->tcp = NULL;
}

static void conn_drop(struct io_conn *conn, enum sim_crash how)
{
    struct sim_world *w = conn->io->host->world;

    sim__task_drop(w, &conn->dial);
    list_remove(&conn->node);
    if (conn->tcp && how == SIM_POWER_CUT)
        end_silence(conn);
    else if (conn->tcp)
        sim__end_close(conn->tcp, conn->side, sim_choose(w, SIM_LOST_SOCKET, 2));
}

/* Handles of the dead are abandoned like the rest of their memory. */
void sim__conns_drop(struct io *io, enum sim_crash how)
{
    LIST_EACH_SAFE (node, &io->conns) {
        struct io_conn *conn = LIST_ENTRY(node, struct io_conn, node);

        conn_drop(conn, how);
        if (!io->is_dead)
            sim__conn_free(conn);
    }
}

void sim__net_fini(struct sim_world *w)
{
    LIST_EACH_SAFE (node, &w->sockets) {
        struct sim_tcp *tcp = LIST_ENTRY(node, struct sim_tcp, node);

        drop_flight(&tcp->pipes[0]);
        drop_flight(&tcp->pipes[1]);
        maybe_free(tcp);
    }
}

/* ---- io.h ------------------------------------------------------------------------------- */

struct io_conn *sim__conn_new(struct io *io, struct io_loop *loop)
{
    struct io_conn *conn = xcalloc(1, sizeof(*conn));

    conn->io = io;
    conn->loop = loop;
    conn->refs = 1;
    list_init(&conn->waiting);
    list_push_back(&io->conns, &conn->node);
    return conn;
}

void sim__conn_free(struct io_conn *conn)
{
    list_remove(&conn->node);
    free(conn);
}

void sim__conn_unref(struct io_conn *conn)
{
    assert(conn->refs > 0);
    if (--conn->refs == 0)
        sim__conn_free(conn);
}

/* The handle keeps its operations until they are called back: closing it cancels these too. */
struct io_conn *sim__op_detach(struct io_op *op)
{
    struct io_conn *conn = NULL;

    if (op->_kind == OP_RECV) {
        conn = CONTAINER_OF(op, struct io_recv, op)->_conn;
        conn->recv = NULL;
    } else if (op->_kind == OP_SEND) {
        conn = CONTAINER_OF(op, struct io_send, op)->_conn;
        conn->send = NULL;
    }
    return conn;
}

static void close_op(struct io_op *op)
{
    if (op->_state == OP_PENDING)
        sim__op_done(op, ERR_CANCELLED);
    op->err = ERR_CANCELLED;
}

void io_recv(struct io_conn *conn, struct io_recv *r)
{
    if (!sim__call(conn->io))
        return;
    assert(!conn->recv && conn->tcp && r->n > 0);
    sim__op_begin(conn->loop, &r->op, OP_RECV);
    r->_conn = conn;
    conn->recv = r;
    conn->refs++;
    try_recv(conn);
}

void io_send(struct io_conn *conn, struct io_send *s)
{
    if (!sim__call(conn->io))
        return;
    assert(!conn->send && conn->tcp);
    assert(s->iov_count >= 0 && s->iov_count <= IO_IOV_MAX);
    sim__op_begin(conn->loop, &s->op, OP_SEND);
    s->_conn = conn;
    s->_at = 0;
    conn->send = s;
    conn->refs++;
    if (conn->tcp->ends[conn->side].is_reset)
        sim__op_done(&conn->send->op, ERR_RESET);
    else
        pump(&conn->tcp->pipes[conn->side]);
}

void io_conn_close(struct io_conn *conn)
{
    if (!sim__call(conn->io))
        return;
    assert(conn->tcp);
    if (conn->recv)
        close_op(&conn->recv->op);
    if (conn->send)
        close_op(&conn->send->op);
    sim__end_close(conn->tcp, conn->side, false);
    sim__conn_unref(conn);
}

const char *io_conn_local(const struct io_conn *conn)
{
    return conn->local;
}

const char *io_conn_peer(const struct io_conn *conn)
{
    return conn->peer;
}

void io_conn_local_host(const struct io_conn *conn, char host[static IO_ADDR_TEXT_MAX],
                        uint16_t *port)
{
    memcpy(host, conn->local_host, IO_ADDR_TEXT_MAX);
    *port = conn->local_port;
}
