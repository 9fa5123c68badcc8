/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network when it is not well. A server and a client on two machines: the client sends a stream
 * of bytes, the server counts and checks them; both note how their connection ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "io/io.h"
#include "io/sim/sim.h"

#define SECOND INT64_C(1000000000)
#define PORT 9000

struct node {
    struct io *io;
    struct io_loop *loop;
    struct io_listener *listener;
    struct io_accept accept;
    struct io_connect connect;
    struct io_conn *conn;
    struct io_recv recv;
    struct io_send send;
    uint8_t in[1000];
    uint8_t out[1000];
    const char *target;
    uint64_t to_send; /* bytes */
    uint64_t sent;
    uint64_t received;
    uint64_t recv_calls;
    bool never_reads;
    bool never_accepts;
    int backlog;
    bool is_connected;
    enum err connect_err;
    enum err end; /* how the connection ended */
};

struct net {
    struct sim_world *world;
    struct sim_host *server_host;
    struct sim_host *client_host;
    struct node server;
    struct node client;
};

static uint8_t byte_at(uint64_t pos)
{
    return (uint8_t)(pos * 2654435761u >> 13);
}

static void recv_next(struct node *n)
{
    n->recv.p = n->in;
    n->recv.n = sizeof(n->in);
    io_recv(n->conn, &n->recv);
}

static void received(struct io_op *op)
{
    struct node *n = CONTAINER_OF(op, struct node, recv.op);

    if (op->err) {
        n->end = op->err;
        return;
    }
    n->recv_calls++;
    for (size_t i = 0; i < n->recv.n; i++)
        assert_int_equal(n->in[i], byte_at(n->received++));
    recv_next(n);
}

static void send_next(struct node *n)
{
    if (n->sent >= n->to_send)
        return;
    for (size_t i = 0; i < sizeof(n->out); i++)
        n->out[i] = byte_at(n->sent + i);
    n->send.iov[0] = (struct iovec){.iov_base = n->out, .iov_len = sizeof(n->out)};
    n->send.iov_count = 1;
    io_send(n->conn, &n->send);
}

static void was_sent(struct io_op *op)
{
    struct node *n = CONTAINER_OF(op, struct node, send.op);

    if (op->err) {
        n->end = op->err;
        return;
    }
    n->sent += sizeof(n->out);
    send_next(n);
}

static void accepted(struct io_op *op)
{
    struct node *n = CONTAINER_OF(op, struct node, accept.op);

    assert_int_equal(op->err, ERR_NONE);
    n->conn = n->accept.conn;
    n->is_connected = true;
    if (!n->never_reads)
        recv_next(n);
    io_accept(n->loop, n->listener, &n->accept);
}

static void connected(struct io_op *op)
{
    struct node *n = CONTAINER_OF(op, struct node, connect.op);

    n->connect_err = op->err;
    n->conn = n->connect.conn;
    n->is_connected = !op->err;
    if (op->err)
        return;
    recv_next(n);
    send_next(n);
}

static void start_server(void *ctx)
{
    struct node *n = ctx;

    assert_int_equal(io_listen(n->io, "0.0.0.0", PORT, n->backlog, &n->listener), ERR_NONE);
    if (!n->never_accepts)
        io_accept(n->loop, n->listener, &n->accept);
}

static void start_client(void *ctx)
{
    struct node *n = ctx;

    io_connect(n->loop, n->target, PORT, &n->connect);
}

static void node_main(struct io *io, void *ctx)
{
    struct node *n = ctx;

    n->io = io;
    n->accept.op.done = accepted;
    n->connect.op.done = connected;
    n->recv.op.done = received;
    n->send.op.done = was_sent;
    n->loop = io_loop_new(io, "node", n->target ? start_client : start_server, n);
    io_run(io);
}

static struct net *net_new(uint64_t seed, const struct sim_options *options)
{
    struct net *net = calloc(1, sizeof(*net));

    net->world = sim_world_new(seed, options);
    net->server_host = sim_host_new(net->world, "server");
    net->client_host = sim_host_new(net->world, "client");
    net->server.backlog = 10;
    net->client.target = "server";
    net->client.connect_err = ERR_AGAIN;
    return net;
}

static void net_start(struct net *net)
{
    net->server.io = sim_process_start(net->server_host, NULL, node_main, &net->server);
    while (!net->server.listener)
        assert_true(sim_step(net->world));
    net->client.io = sim_process_start(net->client_host, NULL, node_main, &net->client);
}

static void run_for(struct net *net, int64_t ns)
{
    sim_run_until(net->world, sim_now_ns(net->world) + ns, NULL, NULL);
}

/* In worlds without crashes everything is given back. */
static void net_free(struct net *net)
{
    struct node *both[] = {&net->server, &net->client};

    for (int i = 0; i < 2; i++)
        if (both[i]->io && sim_process_is_alive(both[i]->io))
            io_stop(both[i]->io);
    run_for(net, SECOND);
    sim_world_free(net->world);
    free(net);
}

/* ---- connecting ------------------------------------------------------------------------- */

static enum err connect_to(const char *target, bool cut, bool back_cut)
{
    struct net *net = net_new(3, NULL);
    enum err err;

    net->client.target = target;
    net->client.io = sim_process_start(net->client_host, NULL, node_main, &net->client);
    if (cut)
        sim_net_cut(net->client_host, net->server_host);
    if (back_cut)
        sim_net_cut(net->server_host, net->client_host);
    run_for(net, 100 * SECOND);
    err = net->client.connect_err;
    net_free(net);
    return err;
}

static void connecting_fails_as_in_a_real_network(void **state)
{
    (void)state;
    assert_int_equal(connect_to("10.0.0.1", false, false), ERR_REFUSED);
    assert_int_equal(connect_to("localhost", false, false), ERR_REFUSED);
    assert_int_equal(connect_to("nobody", false, false), ERR_NOT_FOUND);
    assert_int_equal(connect_to("10.0.0.1", true, false), ERR_TIMEOUT);
    assert_int_equal(connect_to("10.0.0.1", false, true), ERR_TIMEOUT);
}

static void a_machine_without_power_does_not_answer(void **state)
{
    struct net *net = net_new(3, NULL);

    (void)state;
    sim_host_power_cut(net->server_host);
    net->client.io = sim_process_start(net->client_host, NULL, node_main, &net->client);
    run_for(net, 10 * SECOND);
    assert_int_equal(net->client.connect_err, ERR_AGAIN);
    run_for(net, 100 * SECOND);
    assert_int_equal(net->client.connect_err, ERR_TIMEOUT);
    net_free(net);
}

static void a_connection_may_be_refused_by_chance(void **state)
{
    struct sim_options options = {.net_refuse_ppm = 1000000};
    struct net *net = net_new(3, &options);

    (void)state;
    net_start(net);
    run_for(net, SECOND);
    assert_int_equal(net->client.connect_err, ERR_REFUSED);
    net_free(net);
}

static void a_full_backlog_lets_nobody_in(void **state)
{
    struct net *net = net_new(3, NULL);
    struct node second = {.target = "server", .connect_err = ERR_AGAIN};

    (void)state;
    net->server.never_accepts = true;
    net->server.backlog = 1;
    net_start(net);
    run_for(net, SECOND);
    assert_int_equal(net->client.connect_err, ERR_NONE);
    sim_process_start(net->client_host, NULL, node_main, &second);
    run_for(net, 100 * SECOND);
    assert_int_equal(second.connect_err, ERR_TIMEOUT);
    io_stop(second.io);
    net_free(net);
}

/* ---- bytes ------------------------------------------------------------------------------ */

static void bytes_arrive_in_order_however_they_are_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct sim_options options = {.net_chunk_ppm = seed % 2 ? 300000 : 0};
        struct net *net = net_new(seed, &options);

        net->client.to_send = 100000;
        net_start(net);
        run_for(net, 10 * SECOND);
        assert_int_equal(net->server.received, 100000);
        if (seed % 2)
            assert_true(net->server.recv_calls > 110);
        net_free(net);
    }
}

static void a_reader_that_does_not_read_stops_the_sender(void **state)
{
    struct sim_options options = {.net_window_bytes = 8192};
    struct net *net = net_new(1, &options);

    (void)state;
    net->client.to_send = 100000;
    net->server.never_reads = true;
    net_start(net);
    run_for(net, 10 * SECOND);
    assert_true(net->client.is_connected && net->server.is_connected);
    assert_int_equal(net->client.sent, 8000);
    net_free(net);
}

static void a_cut_stalls_and_healing_delivers_everything(void **state)
{
    struct net *net = net_new(1, NULL);
    uint64_t before;

    (void)state;
    net->client.to_send = 100000000;
    net_start(net);
    run_for(net, SECOND / 10);
    before = net->server.received;
    assert_true(before > 0);
    sim_net_cut(net->client_host, net->server_host);
    run_for(net, SECOND); /* What had arrived is read. */
    assert_true(net->server.received < before + 140000);
    before = net->server.received;
    run_for(net, 100 * SECOND);
    assert_int_equal(net->server.received, before);
    assert_int_equal(net->server.end, ERR_NONE);
    sim_net_heal(net->client_host, net->server_host);
    run_for(net, SECOND / 10);
    assert_true(net->server.received > before + 100000);
    net_free(net);
}

static void a_cut_of_one_direction_leaves_the_other(void **state)
{
    struct net *net = net_new(1, NULL);

    (void)state;
    net->client.to_send = 100000;
    net_start(net);
    while (!net->client.is_connected)
        assert_true(sim_step(net->world));
    sim_net_cut(net->server_host, net->client_host);
    run_for(net, 10 * SECOND);
    assert_int_equal(net->server.received, 100000);
    net_free(net);
}

/* ---- ends ------------------------------------------------------------------------------- */

static void a_broken_connection_is_reset_at_both_ends(void **state)
{
    struct sim_options options = {.net_reset_ppm = 20000};
    int resets = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct net *net = net_new(seed, &options);

        net->client.to_send = 1000000;
        net_start(net);
        run_for(net, 10 * SECOND);
        if (sim_event_count(net->world, SIM_EV_RESET) > 0) {
            assert_int_equal(net->server.end, ERR_RESET);
            assert_int_equal(net->client.end, ERR_RESET);
            resets++;
        }
        net_free(net);
    }
    assert_true(resets > 15);
}

static int kill_the_client(void *arg, void *result)
{
    uint64_t seed = *(uint64_t *)arg;
    enum err *end = result;
    struct net *net = net_new(seed, NULL);

    net->client.to_send = 100000000;
    net_start(net);
    run_for(net, SECOND / 10);
    sim_process_kill(net->client.io);
    run_for(net, SECOND);
    *end = net->server.end;
    return net->server.received > 1000 ? 0 : 1;
}

static void a_killed_peer_is_seen_as_an_end_or_a_reset(void **state)
{
    int ends = 0;
    int resets = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        enum err end;

        assert_int_equal(sim_in_child(kill_the_client, &seed, &end, sizeof(end)), 0);
        ends += end == ERR_EOF;
        resets += end == ERR_RESET;
    }
    assert_int_equal(ends + resets, 20);
    assert_true(ends > 2 && resets > 2);
}

static int cut_the_power_of_the_server(void *arg, void *result)
{
    struct net *net = net_new(*(uint64_t *)arg, NULL);
    enum err *ends = result;

    net->client.to_send = 100000000;
    net_start(net);
    run_for(net, SECOND / 10);
    sim_host_power_cut(net->server_host);
    run_for(net, 100 * SECOND);
    ends[0] = net->client.end; /* Nobody said anything. */
    net->server = (struct node){.backlog = 10};
    sim_process_start(net->server_host, NULL, node_main, &net->server);
    run_for(net, SECOND);
    ends[1] = net->client.end;
    return 0;
}

static void a_peer_without_power_is_silent_until_it_is_back(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        enum err ends[2];

        assert_int_equal(sim_in_child(cut_the_power_of_the_server, &seed, ends, sizeof(ends)), 0);
        assert_int_equal(ends[0], ERR_NONE);
        assert_int_equal(ends[1], ERR_RESET);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connecting_fails_as_in_a_real_network),
        cmocka_unit_test(a_machine_without_power_does_not_answer),
        cmocka_unit_test(a_connection_may_be_refused_by_chance),
        cmocka_unit_test(a_full_backlog_lets_nobody_in),
        cmocka_unit_test(bytes_arrive_in_order_however_they_are_cut),
        cmocka_unit_test(a_reader_that_does_not_read_stops_the_sender),
        cmocka_unit_test(a_cut_stalls_and_healing_delivers_everything),
        cmocka_unit_test(a_cut_of_one_direction_leaves_the_other),
        cmocka_unit_test(a_broken_connection_is_reset_at_both_ends),
        cmocka_unit_test(a_killed_peer_is_seen_as_an_end_or_a_reset),
        cmocka_unit_test(a_peer_without_power_is_silent_until_it_is_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
