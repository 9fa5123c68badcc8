/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network part of the conformance suite. Both ends of a connection live on one loop, so that a
 * test reads as one story; a struct pair holds them. in_call is true while a submitting call is
 * under way: a callback that finds it true came from inside.
 */
#include "io/conformance_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- network: a connected pair ----------------------------------------------------------- */

/* Two ends of a connection on one loop. `then` runs when both are there. */
struct pair {
    struct fixture *f;
    const char *host;
    void (*then)(struct pair *p);
    struct io_listener *listener;
    struct io_accept accept;
    struct io_connect connect;
    struct io_conn *server;
    struct io_conn *client;
    struct io_recv recv;
    struct io_send send;
    struct io_timer timer;
    uint8_t *sent;
    uint8_t *got;
    size_t got_bytes;
    bool in_call; /* a submitting call is under way */
    bool may_send_end;
};

static void begin_pair(struct pair *p)
{
    if (p->server && p->client)
        p->then(p);
}

static void pair_accepted(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, accept.op);

    assert_false(p->in_call);
    assert_int_equal(op->err, ERR_NONE);
    p->server = p->accept.conn;
    begin_pair(p);
}

static void pair_connected(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, connect.op);

    assert_false(p->in_call);
    assert_int_equal(op->err, ERR_NONE);
    p->client = p->connect.conn;
    begin_pair(p);
}

static void start_pair(void *ctx)
{
    struct pair *p = ctx;

    p->in_call = true;
    assert_int_equal(io_listen(p->f->io, "127.0.0.1", 0, 16, &p->listener), ERR_NONE);
    assert_true(io_listener_port(p->listener) > 0);
    p->accept.op.done = pair_accepted;
    p->connect.op.done = pair_connected;
    io_accept(p->f->loop, p->listener, &p->accept);
    io_connect(p->f->loop, p->host ? p->host : "127.0.0.1", io_listener_port(p->listener),
               &p->connect);
    assert_true(io_op_is_pending(&p->accept.op));
    assert_true(io_op_is_pending(&p->connect.op));
    p->in_call = false;
}

static void run_pair(struct pair *p, void (*then)(struct pair *p))
{
    p->then = then;
    run(p->f, start_pair, p);
}

static void pair_recv(struct pair *p, struct io_conn *conn, void *to, size_t n)
{
    p->recv.p = to;
    p->recv.n = n;
    p->in_call = true;
    io_recv(conn, &p->recv);
    assert_true(io_op_is_pending(&p->recv.op));
    p->in_call = false;
}

static void pair_send(struct pair *p, struct io_conn *conn, const void *from, size_t n)
{
    p->send.iov[0] = (struct iovec){.iov_base = (void *)(uintptr_t)from, .iov_len = n};
    p->send.iov_count = 1;
    p->in_call = true;
    io_send(conn, &p->send);
    assert_true(io_op_is_pending(&p->send.op));
    p->in_call = false;
}

static void check_addresses(struct pair *p)
{
    char host[IO_ADDR_TEXT_MAX];
    char text[IO_ADDR_TEXT_MAX + 8];
    uint16_t port;

    assert_string_equal(io_conn_local(p->server), io_conn_peer(p->client));
    assert_string_equal(io_conn_peer(p->server), io_conn_local(p->client));
    io_conn_local_host(p->server, host, &port);
    assert_string_equal(host, "127.0.0.1");
    assert_int_equal(port, io_listener_port(p->listener));
    snprintf(text, sizeof(text), "%s:%u", host, port);
    assert_string_equal(io_conn_local(p->server), text);
    io_stop(p->f->io);
}

static void both_ends_agree_on_addresses(void **state)
{
    struct pair p = {.f = *state};

    run_pair(&p, check_addresses);
}

static void a_name_is_resolved(void **state)
{
    struct pair p = {.f = *state, .host = "localhost"};

    run_pair(&p, check_addresses);
}

/* ---- network: bytes ---------------------------------------------------------------------- */

static void echo_received(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, recv.op);

    assert_false(p->in_call);
    assert_int_equal(op->err, ERR_NONE);
    assert_int_equal(p->recv.n, 4);
    assert_memory_equal(p->got, "ping", 4);
    if (++p->f->count == 100)
        io_stop(p->f->io);
    else
        pair_send(p, p->f->count % 2 ? p->server : p->client, "ping", 4);
}

static void echo_sent(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, send.op);

    assert_false(p->in_call);
    assert_int_equal(op->err, ERR_NONE);
    pair_recv(p, p->f->count % 2 ? p->client : p->server, p->got, 16);
}

static void start_echo(struct pair *p)
{
    p->recv.op.done = echo_received;
    p->send.op.done = echo_sent;
    pair_send(p, p->client, "ping", 4);
}

static void bytes_go_both_ways(void **state)
{
    uint8_t got[16];
    struct pair p = {.f = *state, .got = got};

    run_pair(&p, start_echo);
}

static void waiting_recv_done(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, recv.op);

    assert_int_equal(op->err, ERR_NONE);
    assert_true(p->recv.n > 0);
    p->got_bytes += p->recv.n;
    if (p->got_bytes < 6) {
        pair_recv(p, p->server, p->got + p->got_bytes, 6 - p->got_bytes);
        return;
    }
    assert_memory_equal(p->got, "abcdef", 6);
    io_stop(p->f->io);
}

static void done_without_error(struct io_op *op)
{
    assert_int_equal(op->err, ERR_NONE);
}

static void start_waiting_recv(struct pair *p)
{
    p->recv.op.done = waiting_recv_done;
    p->send.op.done = done_without_error;
    pair_recv(p, p->server, p->got, 6);
    p->send.iov[0] = (struct iovec){.iov_base = (void *)"ab", .iov_len = 2};
    p->send.iov[1] = (struct iovec){.iov_base = (void *)"", .iov_len = 0};
    p->send.iov[2] = (struct iovec){.iov_base = (void *)"cdef", .iov_len = 4};
    p->send.iov_count = 3;
    io_send(p->client, &p->send);
}

static void a_recv_waits_for_bytes_and_a_send_gathers(void **state)
{
    uint8_t got[16];
    struct pair p = {.f = *state, .got = got};

    run_pair(&p, start_waiting_recv);
}

#define BIG_BYTES ((size_t)48 << 20)

static void big_received(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, recv.op);

    assert_int_equal(op->err, ERR_NONE);
    p->got_bytes += p->recv.n;
    if (p->got_bytes < BIG_BYTES)
        pair_recv(p, p->server, p->got + p->got_bytes, MIN(BIG_BYTES - p->got_bytes, 1 << 20));
    else if (!io_op_is_pending(&p->send.op))
        io_stop(p->f->io);
}

static void big_sent(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, send.op);

    assert_int_equal(op->err, ERR_NONE);
    assert_true(p->may_send_end);
    if (p->got_bytes == BIG_BYTES)
        io_stop(p->f->io);
}

/* The reader begins late: until then the buffers are full and the send cannot have ended. */
static void big_reader_wakes(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, timer.op);

    assert_true(io_op_is_pending(&p->send.op));
    p->may_send_end = true;
    pair_recv(p, p->server, p->got, 1 << 20);
}

static void start_big(struct pair *p)
{
    const size_t part = BIG_BYTES / 3;

    p->recv.op.done = big_received;
    p->send.op.done = big_sent;
    p->timer.op.done = big_reader_wakes;
    for (int i = 0; i < 3; i++)
        p->send.iov[i] = (struct iovec){.iov_base = p->sent + (size_t)i * part, .iov_len = part};
    p->send.iov_count = 3;
    io_send(p->client, &p->send);
    io_timer_set(p->f->loop, &p->timer, io_loop_mono_ns(p->f->loop) + 50 * MS);
}

static void a_big_send_waits_for_a_slow_reader(void **state)
{
    struct pair p = {.f = *state, .sent = xmalloc(BIG_BYTES), .got = xcalloc(1, BIG_BYTES)};

    for (size_t i = 0; i < BIG_BYTES; i++)
        p.sent[i] = (uint8_t)(i * 2654435761u >> 24);
    run_pair(&p, start_big);
    assert_memory_equal(p.sent, p.got, BIG_BYTES);
    free(p.sent);
    free(p.got);
}

/* ---- network: ends ----------------------------------------------------------------------- */

static void eof_received(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, recv.op);

    if (p->got_bytes < 3) {
        assert_int_equal(op->err, ERR_NONE);
        p->got_bytes += p->recv.n;
    } else {
        assert_int_equal(op->err, ERR_EOF);
        if (++p->f->count == 2)
            io_stop(p->f->io);
    }
    pair_recv(p, p->server, p->got, 16);
}

static void eof_sent(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, send.op);

    assert_int_equal(op->err, ERR_NONE);
    io_conn_close(p->client);
}

static void start_eof(struct pair *p)
{
    p->recv.op.done = eof_received;
    p->send.op.done = eof_sent;
    pair_send(p, p->client, "end", 3);
    pair_recv(p, p->server, p->got, 16);
}

static void after_the_last_byte_comes_eof_and_stays(void **state)
{
    uint8_t got[16];
    struct pair p = {.f = *state, .got = got};

    run_pair(&p, start_eof);
    assert_int_equal(p.got_bytes, 3);
}

static void reset_received(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, recv.op);

    assert_true(op->err == ERR_RESET || op->err == ERR_EOF);
    pair_send(p, p->server, "more", 4);
}

/* The first send may still reach the kernel's buffer; one of the next cannot. */
static void reset_sent(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, send.op);

    if (op->err == ERR_RESET) {
        io_stop(p->f->io);
        return;
    }
    assert_int_equal(op->err, ERR_NONE);
    io_timer_set(p->f->loop, &p->timer, io_loop_mono_ns(p->f->loop) + MS);
}

static void reset_send_again(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, timer.op);

    pair_send(p, p->server, "more", 4);
}

static void start_reset(struct pair *p)
{
    p->recv.op.done = reset_received;
    p->send.op.done = reset_sent;
    p->timer.op.done = reset_send_again;
    io_conn_close(p->client);
    pair_recv(p, p->server, p->got, 16);
}

static void sending_to_a_closed_peer_ends_in_reset(void **state)
{
    uint8_t got[16];
    struct pair p = {.f = *state, .got = got};

    run_pair(&p, start_reset);
}

static void closed_op_done(struct pair *p, struct io_op *op)
{
    assert_false(p->in_call);
    assert_int_equal(op->err, ERR_CANCELLED);
    p->f->count++;
}

static void closed_recv_done(struct io_op *op)
{
    closed_op_done(CONTAINER_OF(op, struct pair, recv.op), op);
}

static void closed_send_done(struct io_op *op)
{
    closed_op_done(CONTAINER_OF(op, struct pair, send.op), op);
}

static void close_settled(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, timer.op);

    assert_int_equal(p->f->count, 2);
    io_stop(p->f->io);
}

static void start_close(struct pair *p)
{
    p->recv.op.done = closed_recv_done;
    p->send.op.done = closed_send_done;
    p->timer.op.done = close_settled;
    pair_recv(p, p->server, p->got, 16);
    pair_send(p, p->server, p->sent, BIG_BYTES);
    p->in_call = true;
    io_conn_close(p->server);
    p->in_call = false;
    assert_true(io_op_is_pending(&p->recv.op));
    io_timer_set(p->f->loop, &p->timer, io_loop_mono_ns(p->f->loop) + 5 * MS);
}

static void closing_cancels_what_is_pending_once(void **state)
{
    uint8_t got[16];
    struct pair p = {.f = *state, .got = got, .sent = xcalloc(1, BIG_BYTES)};

    run_pair(&p, start_close);
    free(p.sent);
}

/* A result that has not been called back is pending: the owner must not see it after the close. */
static void start_close_when_ready(struct pair *p)
{
    p->recv.op.done = closed_recv_done;
    p->send.op.done = closed_send_done;
    p->timer.op.done = close_settled;
    pair_send(p, p->server, "x", 1);
    pair_recv(p, p->server, p->got, 16);
    io_conn_close(p->server);
    io_timer_set(p->f->loop, &p->timer, io_loop_mono_ns(p->f->loop) + 5 * MS);
}

static void closing_cancels_also_what_was_about_to_complete(void **state)
{
    uint8_t got[16];
    struct pair p = {.f = *state, .got = got};

    run_pair(&p, start_close_when_ready);
}

static void cancelled_recv_done(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, recv.op);

    assert_false(p->in_call);
    if (p->f->count++ == 0) {
        assert_int_equal(op->err, ERR_CANCELLED);
        pair_recv(p, p->server, p->got, 16);
        pair_send(p, p->client, "x", 1);
        return;
    }
    assert_int_equal(op->err, ERR_NONE);
    assert_int_equal(p->recv.n, 1);
    io_stop(p->f->io);
}

static void start_cancelled_recv(struct pair *p)
{
    p->recv.op.done = cancelled_recv_done;
    p->send.op.done = done_without_error;
    pair_recv(p, p->server, p->got, 16);
    p->in_call = true;
    io_cancel(&p->recv.op);
    p->in_call = false;
}

static void a_connection_survives_a_cancelled_recv(void **state)
{
    uint8_t got[16];
    struct pair p = {.f = *state, .got = got};

    run_pair(&p, start_cancelled_recv);
}

static void cancelled_send_done(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, send.op);

    assert_false(p->in_call);
    assert_int_equal(op->err, ERR_CANCELLED);
    assert_int_equal(p->f->count++, 0);
    io_conn_close(p->client);
    io_timer_set(p->f->loop, &p->timer, 0);
}

static void cancelled_send_over(struct io_op *op)
{
    io_stop(CONTAINER_OF(op, struct pair, timer.op)->f->io);
}

static void start_cancelled_send(struct pair *p)
{
    p->send.op.done = cancelled_send_done;
    p->timer.op.done = cancelled_send_over;
    pair_send(p, p->client, p->sent, BIG_BYTES);
    p->in_call = true;
    io_cancel(&p->send.op);
    p->in_call = false;
}

static void a_send_that_waits_can_be_cancelled(void **state)
{
    struct pair p = {.f = *state, .sent = xcalloc(1, BIG_BYTES)};

    run_pair(&p, start_cancelled_send);
    free(p.sent);
    assert_int_equal(p.f->count, 1);
}

static void never_called(struct io_op *op)
{
    (void)op;
    fail();
}

static void stop_with_pending(struct pair *p)
{
    p->recv.op.done = never_called;
    p->timer.op.done = never_called;
    io_timer_set(p->f->loop, &p->timer, io_loop_mono_ns(p->f->loop) + 1000000 * MS);
    pair_recv(p, p->server, p->got, 16);
    p->accept.op.done = never_called;
    io_accept(p->f->loop, p->listener, &p->accept);
    io_stop(p->f->io);
}

static void stopping_drops_what_is_pending(void **state)
{
    uint8_t got[16];
    struct pair p = {.f = *state, .got = got};

    run_pair(&p, stop_with_pending);
}

/* ---- network: connecting and listening that fails ---------------------------------------- */

struct connects_test {
    struct fixture *f;
    struct io_listener *listener;
    struct io_connect c;
    const char *host;
    uint16_t port;
    enum err expected;
    struct io_timer timer;
};

static void connect_failed(struct io_op *op)
{
    struct connects_test *test = CONTAINER_OF(op, struct connects_test, c.op);

    assert_int_equal(op->err, test->expected);
    assert_null(test->c.conn);
    test->f->count++;
    io_stop(test->f->io);
}

static void start_connect(void *ctx)
{
    struct connects_test *test = ctx;

    test->c.op.done = connect_failed;
    io_connect(test->f->loop, test->host, test->port, &test->c);
    assert_true(io_op_is_pending(&test->c.op));
    assert_int_equal(test->f->count, 0);
}

/* A port where nobody listens: one that a listener had a moment ago. */
static uint16_t free_port(struct io *io)
{
    struct io_listener *l;
    uint16_t port;

    assert_int_equal(io_listen(io, "127.0.0.1", 0, 1, &l), ERR_NONE);
    port = io_listener_port(l);
    io_listener_close(l);
    return port;
}

static void connecting_to_nobody_is_refused(void **state)
{
    struct connects_test test = {.f = *state, .host = "127.0.0.1", .expected = ERR_REFUSED};

    test.port = free_port(test.f->io);
    run(test.f, start_connect, &test);
}

static void an_unknown_name_is_not_found(void **state)
{
    struct connects_test test = {
        .f = *state, .host = "no-such-host.invalid", .port = 1, .expected = ERR_NOT_FOUND};

    run(test.f, start_connect, &test);
}

static void connect_over(struct io_op *op)
{
    io_stop(CONTAINER_OF(op, struct connects_test, timer.op)->f->io);
}

/* The process lives on for a while, so that a late answer of the resolver finds nothing. */
static void connect_cancelled(struct io_op *op)
{
    struct connects_test *test = CONTAINER_OF(op, struct connects_test, c.op);

    assert_int_equal(op->err, ERR_CANCELLED);
    assert_null(test->c.conn);
    assert_int_equal(test->f->count++, 0);
    test->timer.op.done = connect_over;
    io_timer_set(test->f->loop, &test->timer, io_loop_mono_ns(test->f->loop) + 20 * MS);
}

static void start_cancelled_connect(void *ctx)
{
    struct connects_test *test = ctx;

    test->c.op.done = connect_cancelled;
    io_connect(test->f->loop, test->host, test->port, &test->c);
    io_cancel(&test->c.op);
    assert_int_equal(test->f->count, 0);
}

static void a_connect_to_a_name_can_be_cancelled(void **state)
{
    struct connects_test test = {.f = *state, .host = "localhost"};

    test.port = free_port(test.f->io);
    run(test.f, start_cancelled_connect, &test);
    assert_int_equal(test.f->count, 1);
}

static void start_listener_and_cancelled_connect(void *ctx)
{
    struct connects_test *test = ctx;

    assert_int_equal(io_listen(test->f->io, "127.0.0.1", 0, 16, &test->listener), ERR_NONE);
    test->port = io_listener_port(test->listener);
    start_cancelled_connect(test);
}

static void a_connect_to_an_address_can_be_cancelled(void **state)
{
    struct connects_test test = {.f = *state, .host = "127.0.0.1"};

    run(test.f, start_listener_and_cancelled_connect, &test);
    assert_int_equal(test.f->count, 1);
}

static void a_port_in_use_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct io_listener *first;
    struct io_listener *second;
    uint16_t port;

    assert_int_equal(io_listen(f->io, "127.0.0.1", 0, 16, &first), ERR_NONE);
    port = io_listener_port(first);
    assert_int_equal(io_listen(f->io, "127.0.0.1", port, 16, &second), ERR_ADDR_IN_USE);
    assert_null(second);
    io_listener_close(first);
    assert_int_equal(io_listen(f->io, "127.0.0.1", port, 16, &second), ERR_NONE);
    assert_int_equal(io_listener_port(second), port);
    io_listener_close(second);
    assert_int_equal(io_listen(f->io, "no-such-host.invalid", 0, 16, &second), ERR_NOT_FOUND);
}

static void accepted_after_all(struct io_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, accept.op);

    assert_false(p->in_call);
    if (p->f->count++ == 0) {
        assert_int_equal(op->err, ERR_CANCELLED);
        assert_null(p->accept.conn);
        io_accept(p->f->loop, p->listener, &p->accept);
        io_connect(p->f->loop, "127.0.0.1", io_listener_port(p->listener), &p->connect);
        return;
    }
    assert_int_equal(op->err, ERR_NONE);
    assert_non_null(p->accept.conn);
    io_stop(p->f->io);
}

static void start_cancelled_accept(void *ctx)
{
    struct pair *p = ctx;

    assert_int_equal(io_listen(p->f->io, "127.0.0.1", 0, 16, &p->listener), ERR_NONE);
    p->accept.op.done = accepted_after_all;
    p->connect.op.done = done_without_error;
    p->in_call = true;
    io_accept(p->f->loop, p->listener, &p->accept);
    io_cancel(&p->accept.op);
    p->in_call = false;
}

static void a_listener_survives_a_cancelled_accept(void **state)
{
    struct pair p = {.f = *state};

    run(p.f, start_cancelled_accept, &p);
    assert_int_equal(p.f->count, 2);
}

#define ACCEPTERS 2

/* Two loops accept from one listener; closing it ends both. */
struct accepts_test {
    struct fixture *f;
    struct io_listener *listener;
    struct accepter {
        struct accepts_test *test;
        struct io_loop *loop;
        struct io_accept a;
        struct io_msg waiting;
        struct io_msg ended;
    } v[ACCEPTERS];
    int waiting;
    int ended;
};

static void accepter_ended(struct io_msg *msg)
{
    struct accepts_test *test = CONTAINER_OF(msg, struct accepter, ended)->test;

    if (++test->ended == ACCEPTERS)
        io_stop(test->f->io);
}

static void accepter_waits(struct io_msg *msg)
{
    struct accepts_test *test = CONTAINER_OF(msg, struct accepter, waiting)->test;

    if (++test->waiting == ACCEPTERS)
        io_listener_close(test->listener);
}

static void accept_ended(struct io_op *op)
{
    struct accepter *me = CONTAINER_OF(op, struct accepter, a.op);

    assert_int_equal(op->err, ERR_CANCELLED);
    assert_null(me->a.conn);
    assert_ptr_equal(io_loop_current(), me->loop);
    io_post(me->test->f->loop, &me->ended);
}

static void start_accepter(void *ctx)
{
    struct accepter *me = ctx;

    me->loop = io_loop_current();
    me->a.op.done = accept_ended;
    me->waiting.fn = accepter_waits;
    me->ended.fn = accepter_ended;
    io_accept(me->loop, me->test->listener, &me->a);
    io_post(me->test->f->loop, &me->waiting);
}

static void closing_a_listener_cancels_accepts_on_every_loop(void **state)
{
    struct accepts_test test = {.f = *state};

    assert_int_equal(io_listen(test.f->io, "127.0.0.1", 0, 16, &test.listener), ERR_NONE);
    for (int i = 0; i < ACCEPTERS; i++)
        test.v[i].test = &test;
    test.f->loop = io_loop_new(test.f->io, "control", start_accepter, &test.v[0]);
    io_loop_new(test.f->io, "other", start_accepter, &test.v[1]);
    conformance_run(test.f->io);
    assert_int_equal(test.ended, ACCEPTERS);
}

int conformance_net(void)
{
    const struct CMUnitTest tests[] = {
        TEST(both_ends_agree_on_addresses),
        TEST(a_name_is_resolved),
        TEST(bytes_go_both_ways),
        TEST(a_recv_waits_for_bytes_and_a_send_gathers),
        TEST(a_big_send_waits_for_a_slow_reader),
        TEST(after_the_last_byte_comes_eof_and_stays),
        TEST(sending_to_a_closed_peer_ends_in_reset),
        TEST(closing_cancels_what_is_pending_once),
        TEST(closing_cancels_also_what_was_about_to_complete),
        TEST(a_connection_survives_a_cancelled_recv),
        TEST(a_send_that_waits_can_be_cancelled),
        TEST(stopping_drops_what_is_pending),
        TEST(connecting_to_nobody_is_refused),
        TEST(an_unknown_name_is_not_found),
        TEST(a_connect_to_a_name_can_be_cancelled),
        TEST(a_connect_to_an_address_can_be_cancelled),
        TEST(a_port_in_use_is_an_error),
        TEST(a_listener_survives_a_cancelled_accept),
        TEST(closing_a_listener_cancels_accepts_on_every_loop),
    };

    return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
