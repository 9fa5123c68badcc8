/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world as a whole: a small cluster in which clients append to a server's file through a lane
 * and get their bytes back. The same seed must give the same run to the last byte of its trace, and
 * a process must be able to die at any of its calls without anybody else being disturbed.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/io.h"
#include "io/sim/sim.h"

#define SECOND INT64_C(1000000000)
#define PORT 9000
#define PEERS_MAX 16
#define FRAME_BYTES 64

/* ---- the server: echoes a frame when it is in the file ------------------------------------ */

struct server;

struct peer {
    struct server *server;
    struct io_conn *conn;
    struct io_recv recv;
    struct io_send send;
    struct io_msg append;
    enum err append_err;
    uint8_t frame[FRAME_BYTES];
    size_t have;
};

struct server {
    struct io *io;
    struct io_loop *loop;
    struct io_lane *lane;
    struct io_file *file;
    int64_t file_bytes;
    struct io_listener *listener;
    struct io_accept accept;
    struct io_signal signal;
    struct peer peers[PEERS_MAX];
    int peer_count;
    bool with_sync;
};

static void peer_recv(struct peer *p)
{
    p->recv.p = p->frame + p->have;
    p->recv.n = FRAME_BYTES - p->have;
    io_recv(p->conn, &p->recv);
}

static void peer_received(struct io_op *op)
{
    struct peer *p = CONTAINER_OF(op, struct peer, recv.op);

    if (op->err) {
        io_conn_close(p->conn);
        return;
    }
    p->have += p->recv.n;
    if (p->have < FRAME_BYTES) {
        peer_recv(p);
        return;
    }
    p->have = 0;
    io_lane_submit(p->server->lane, &p->append);
}

static void append_frames(void *ctx, struct io_msg *chain)
{
    struct server *s = ctx;
    struct io_msg *m;
    enum err err = ERR_NONE;

    for (m = chain; m && !err; m = m->_next) {
        struct peer *p = CONTAINER_OF(m, struct peer, append);
        struct iovec iov = {.iov_base = p->frame, .iov_len = FRAME_BYTES};

        err = io_file_write(s->file, &iov, 1, s->file_bytes);
        s->file_bytes += FRAME_BYTES;
    }
    if (!err && s->with_sync)
        err = io_file_sync(s->file);
    while ((m = io_msg_take(&chain)) != NULL) {
        CONTAINER_OF(m, struct peer, append)->append_err = err;
        io_post(s->loop, m);
    }
}

static void peer_appended(struct io_msg *m)
{
    struct peer *p = CONTAINER_OF(m, struct peer, append);

    assert_int_equal(p->append_err, ERR_NONE);
    p->send.iov[0] = (struct iovec){.iov_base = p->frame, .iov_len = FRAME_BYTES};
    p->send.iov_count = 1;
    io_send(p->conn, &p->send);
}

static void peer_answered(struct io_op *op)
{
    struct peer *p = CONTAINER_OF(op, struct peer, send.op);

    if (op->err)
        io_conn_close(p->conn);
    else
        peer_recv(p);
}

static void server_accepted(struct io_op *op)
{
    struct server *s = CONTAINER_OF(op, struct server, accept.op);
    struct peer *p = &s->peers[s->peer_count++];

    assert_int_equal(op->err, ERR_NONE);
    trace_info("accepted", "peer=%s", io_conn_peer(s->accept.conn));
    *p = (struct peer){.server = s, .conn = s->accept.conn};
    p->recv.op.done = peer_received;
    p->send.op.done = peer_answered;
    p->append.fn = peer_appended;
    peer_recv(p);
    if (s->peer_count < PEERS_MAX)
        io_accept(s->loop, s->listener, &s->accept);
}

static void server_told_to_end(struct io_op *op)
{
    struct server *s = CONTAINER_OF(op, struct server, signal.op);

    assert_int_equal(s->signal.signo, SIGTERM);
    io_stop(s->io);
}

static void server_start(void *ctx)
{
    struct server *s = ctx;

    s->accept.op.done = server_accepted;
    s->signal.op.done = server_told_to_end;
    io_signal_wait(s->loop, &s->signal);
    io_accept(s->loop, s->listener, &s->accept);
}

static void server_main(struct io *io, void *ctx)
{
    struct server *s = ctx;
    struct io_stat st;

    *s = (struct server){.io = io, .with_sync = s->with_sync};
    if (io_file_open(io, "/data", IO_OPEN_WRITE | IO_OPEN_CREATE, &s->file) ||
        io_file_stat(s->file, &st) || io_listen(io, NULL, PORT, 10, &s->listener))
        return;
    s->file_bytes = st.size;
    s->loop = io_loop_new(io, "control", server_start, s);
    s->lane = io_lane_new(io, "append", append_frames, s);
    io_run(io);
    io_lane_free(s->lane);
    io_file_unref(s->file);
}

/* ---- the client: one frame after the other, and a timer ----------------------------------- */

struct client {
    struct io *io;
    struct io_loop *loop;
    struct io_connect connect;
    struct io_conn *conn;
    struct io_recv recv;
    struct io_send send;
    struct io_timer timer;
    uint8_t out[FRAME_BYTES];
    uint8_t in[FRAME_BYTES];
    size_t have;
    uint32_t answers;
    uint32_t ticks;
    uint32_t resets;
    int64_t last_ns;
    int64_t asked_ns;
};

static void client_connect(struct client *c)
{
    io_connect(c->loop, "server", PORT, &c->connect);
}

static void client_recv(struct client *c)
{
    c->recv.p = c->in + c->have;
    c->recv.n = FRAME_BYTES - c->have;
    io_recv(c->conn, &c->recv);
}

static void client_request(struct client *c)
{
    memset(c->out, (int)c->answers, FRAME_BYTES);
    c->asked_ns = io_loop_mono_ns(c->loop);
    c->have = 0;
    c->send.iov[0] = (struct iovec){.iov_base = c->out, .iov_len = FRAME_BYTES};
    c->send.iov_count = 1;
    io_send(c->conn, &c->send);
}

static void client_lost(struct client *c)
{
    c->resets++;
    io_conn_close(c->conn);
    c->conn = NULL;
}

static void client_sent(struct io_op *op)
{
    struct client *c = CONTAINER_OF(op, struct client, send.op);

    if (op->err)
        client_lost(c);
    else
        client_recv(c);
}

static void client_received(struct io_op *op)
{
    struct client *c = CONTAINER_OF(op, struct client, recv.op);

    if (op->err) {
        client_lost(c);
        return;
    }
    c->have += c->recv.n;
    if (c->have < FRAME_BYTES) {
        client_recv(c);
        return;
    }
    assert_memory_equal(c->in, c->out, FRAME_BYTES);
    c->answers++;
    client_request(c);
}

static void client_connected(struct io_op *op)
{
    struct client *c = CONTAINER_OF(op, struct client, connect.op);

    c->conn = c->connect.conn;
    if (!op->err)
        client_request(c);
}

static void client_ticks(struct io_op *op)
{
    struct client *c = CONTAINER_OF(op, struct client, timer.op);

    c->ticks++;
    c->last_ns = io_loop_mono_ns(c->loop);
    io_timer_set(c->loop, &c->timer, c->last_ns + SECOND / 1000);
    if (!c->conn && !io_op_is_pending(&c->connect.op))
        client_connect(c);
    if (c->conn && c->last_ns > c->asked_ns + 4 * SECOND) /* A peer without power is silent. */
        io_cancel(&c->recv.op);
}

static void client_start(void *ctx)
{
    struct client *c = ctx;

    c->connect.op.done = client_connected;
    c->recv.op.done = client_received;
    c->send.op.done = client_sent;
    c->timer.op.done = client_ticks;
    io_timer_set(c->loop, &c->timer, io_loop_mono_ns(c->loop));
}

static void client_main(struct io *io, void *ctx)
{
    struct client *c = ctx;

    c->io = io;
    c->loop = io_loop_new(io, "client", client_start, c);
    io_run(io);
}

/* ---- the cluster ------------------------------------------------------------------------ */

#define CLIENTS 3

struct cluster {
    struct sim_world *world;
    struct sim_host *server_host;
    struct sim_host *client_hosts[CLIENTS];
    struct io *server_io;
    struct server server;
    struct client clients[CLIENTS];
};

static struct cluster *cluster_new(uint64_t seed, const struct sim_options *options)
{
    struct cluster *c = xcalloc(1, sizeof(*c));

    c->world = sim_world_new(seed, options);
    c->server_host = sim_host_new(c->world, "server");
    c->server_io = sim_process_start(c->server_host, NULL, server_main, &c->server);
    for (int i = 0; i < CLIENTS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "client%d", i);
        c->client_hosts[i] = sim_host_new(c->world, name);
        c->clients[i].io = sim_process_start(c->client_hosts[i], NULL, client_main, &c->clients[i]);
    }
    return c;
}

static void run_for(struct cluster *c, int64_t ns)
{
    sim_run_until(c->world, sim_now_ns(c->world) + ns, NULL, NULL);
}

static uint32_t answers(const struct cluster *c)
{
    uint32_t n = 0;

    for (int i = 0; i < CLIENTS; i++)
        n += c->clients[i].answers;
    return n;
}

static void cluster_free(struct cluster *c)
{
    sim_process_signal(c->server_io, SIGTERM);
    for (int i = 0; i < CLIENTS; i++)
        if (sim_process_is_alive(c->clients[i].io))
            io_stop(c->clients[i].io);
    run_for(c, 20 * SECOND);
    assert_false(sim_process_is_alive(c->server_io));
    sim_world_free(c->world);
    free(c);
}

/* ---- the same again --------------------------------------------------------------------- */

static const struct sim_options noisy = {.keep_text = true,
                                         .trace_level = TRACE_INFO,
                                         .net_chunk_ppm = 100000,
                                         .net_reset_ppm = 1000,
                                         .disk_stall_ppm = 1000,
                                         .disk_stall_ns = SECOND / 100};

static char *trace_of(uint64_t seed, uint64_t *hash)
{
    struct cluster *c = cluster_new(seed, &noisy);
    char *text;

    c->server.with_sync = true;
    run_for(c, SECOND / 10);
    assert_true(answers(c) > 100);
    text = xstrdup(sim_trace(c->world));
    *hash = sim_trace_hash(c->world);
    cluster_free(c);
    return text;
}

static void the_same_seed_gives_the_same_run_and_another_another(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint64_t hash[3];
        char *a = trace_of(seed, &hash[0]);
        char *b = trace_of(seed, &hash[1]);
        char *c = trace_of(seed + 100, &hash[2]);

        assert_true(strlen(a) > 10000);
        assert_true(strstr(a, "trace host=server accepted peer=10.0.0."));
        assert_string_equal(a, b);
        assert_string_not_equal(a, c);
        assert_true(hash[0] == hash[1] && hash[0] != hash[2]);
        free(a);
        free(b);
        free(c);
    }
}

static void recorded_choices_give_the_same_run(void **state)
{
    struct cluster *first = cluster_new(9, &noisy);
    struct sim_options options = noisy;
    struct cluster *again;

    (void)state;
    run_for(first, SECOND / 10);
    options.is_replay = true;
    options.choices = sim_choices(first->world, &options.choice_count);
    again = cluster_new(9, &options);
    run_for(again, SECOND / 10);
    assert_string_equal(sim_trace(first->world), sim_trace(again->world));
    cluster_free(first);
    cluster_free(again);
}

static void an_empty_list_is_a_dull_run_that_works(void **state)
{
    struct sim_options options = noisy;
    struct cluster *c;

    (void)state;
    options.is_replay = true;
    c = cluster_new(1, &options);
    run_for(c, SECOND / 10);
    for (int i = 0; i < CLIENTS; i++)
        assert_true(c->clients[i].answers > 100);
    assert_int_equal(sim_event_count(c->world, SIM_EV_RESET), 0);
    assert_int_equal(sim_event_count(c->world, SIM_EV_STALL), 0);
    cluster_free(c);
}

/* ---- time ------------------------------------------------------------------------------- */

static void a_paused_machine_stands_still_and_goes_on(void **state)
{
    struct cluster *c = cluster_new(1, NULL);
    uint32_t ticks;

    (void)state;
    run_for(c, SECOND / 10);
    sim_host_pause(c->client_hosts[0], 5 * SECOND);
    ticks = c->clients[0].ticks;
    run_for(c, 4 * SECOND);
    assert_int_equal(c->clients[0].ticks, ticks);
    assert_true(c->clients[1].ticks > 3900);
    run_for(c, 2 * SECOND);
    assert_true(c->clients[0].ticks > ticks + 900);
    cluster_free(c);
}

static void the_wall_clock_jumps_and_the_other_does_not(void **state)
{
    struct cluster *c = cluster_new(1, NULL);
    int64_t wall = io_wall_ms(c->server_io);
    int64_t mono = io_mono_ns(c->server_io);

    (void)state;
    sim_host_clock_jump(c->server_host, -3600000);
    assert_int_equal(io_wall_ms(c->server_io), wall - 3600000);
    assert_int_equal(io_mono_ns(c->server_io), mono);
    cluster_free(c);
}

static void time_goes_on_in_an_empty_world(void **state)
{
    struct sim_world *w = sim_world_new(1, NULL);

    (void)state;
    assert_false(sim_step(w));
    assert_false(sim_run_until(w, 10 * SECOND, NULL, NULL));
    assert_int_equal(sim_now_ns(w), 10 * SECOND);
    sim_world_free(w);
}

static uint64_t random_of(struct sim_host *h)
{
    struct io *io = sim_process_start(h, NULL, NULL, NULL);
    uint64_t v;

    io_random(io, &v, sizeof(v));
    io_free(io);
    return v;
}

static void entropy_differs_by_life_and_machine_and_repeats_by_seed(void **state)
{
    uint64_t v[2][3];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct sim_world *w = sim_world_new(1, NULL);
        struct sim_host *h = sim_host_new(w, "a");

        v[i][0] = random_of(h);
        v[i][1] = random_of(h);
        v[i][2] = random_of(sim_host_new(w, "b"));
        sim_world_free(w);
    }
    assert_memory_equal(v[0], v[1], sizeof(v[0]));
    assert_true(v[0][0] != v[0][1] && v[0][0] != v[0][2] && v[0][1] != v[0][2]);
}

static void a_stall_of_the_disk_takes_its_time(void **state)
{
    struct sim_options options = {.disk_stall_ppm = 1000000, .disk_stall_ns = SECOND};
    struct cluster *c = cluster_new(1, &options);

    (void)state;
    run_for(c, 2 * SECOND);
    assert_int_equal(answers(c), 0); /* Opening the file and looking at it took as long. */
    run_for(c, 20 * SECOND);
    assert_in_range(answers(c), 5, 60);
    cluster_free(c);
}

/* ---- order ------------------------------------------------------------------------------ */

struct order {
    struct io *io;
    struct io_loop *loop;
    struct io_timer timer;
    struct io_msg msg;
    char seen[3];
    int count;
};

static void order_saw(struct order *o, char what)
{
    o->seen[o->count++] = what;
    if (o->count == 2)
        io_stop(o->io);
}

static void order_timer(struct io_op *op)
{
    order_saw(CONTAINER_OF(op, struct order, timer.op), 't');
}

static void order_message(struct io_msg *msg)
{
    order_saw(CONTAINER_OF(msg, struct order, msg), 'm');
}

static void order_start(void *ctx)
{
    struct order *o = ctx;

    o->timer.op.done = order_timer;
    o->msg.fn = order_message;
    io_timer_set(o->loop, &o->timer, io_loop_mono_ns(o->loop));
    io_post(o->loop, &o->msg);
}

static void what_is_not_ordered_comes_in_any_order(void **state)
{
    int timer_first = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct sim_world *w = sim_world_new(seed, NULL);
        struct order o = {0};

        o.io = sim_process_start(sim_host_new(w, "order"), NULL, NULL, NULL);
        o.loop = io_loop_new(o.io, "control", order_start, &o);
        io_run(o.io);
        timer_first += o.seen[0] == 't';
        io_free(o.io);
        sim_world_free(w);
    }
    assert_in_range(timer_first, 5, 35);
}

/* ---- death ------------------------------------------------------------------------------ */

struct death {
    uint64_t seed;
    uint32_t calls;
    enum sim_crash how;
};

static int die_at_a_call(void *arg, void *result)
{
    const struct death *death = arg;
    struct cluster *c = cluster_new(death->seed, NULL);
    uint64_t thread_events;
    uint32_t before;

    c->server.with_sync = true;
    sim_crash_after(c->server_io, death->calls, death->how);
    run_for(c, SECOND / 200);
    *(bool *)result = !sim_process_is_alive(c->server_io);
    thread_events = sim_event_count(c->world, SIM_EV_THREAD);
    run_for(c, SECOND / 200);
    if (sim_event_count(c->world, SIM_EV_THREAD) != thread_events)
        return 2; /* The dead went on: nobody else has threads with anything to do. */
    before = answers(c);
    c->server_io = sim_process_start(c->server_host, NULL, server_main, &c->server);
    for (int i = 0; i < 1000 && answers(c) < before + 20; i++)
        run_for(c, SECOND / 100);
    return answers(c) < before + 20;
}

/* The anomaly loop: death at the first call, the second ... far into the steady state. */
static void a_server_may_die_at_any_call_and_come_back(void **state)
{
    (void)state;
    for (uint32_t calls = 1; calls <= 120; calls++) {
        struct death death = {.seed = calls, .calls = calls, .how = calls % 2};
        bool is_dead;

        assert_int_equal(sim_in_child(die_at_a_call, &death, &is_dead, sizeof(is_dead)), 0);
        assert_true(is_dead);
    }
}

/* The lane is in the middle of a call that takes a second when its process dies. */
static int kill_in_a_blocking_call(void *arg, void *result)
{
    struct sim_options options = {.disk_stall_ppm = 1000000, .disk_stall_ns = SECOND};
    struct cluster *c = cluster_new(1, &options);
    uint64_t thread_events;

    (void)arg;
    (void)result;
    run_for(c, 3 * SECOND + SECOND / 2);
    if (answers(c) == 0)
        return 1;
    sim_process_kill(c->server_io);
    thread_events = sim_event_count(c->world, SIM_EV_THREAD);
    run_for(c, 10 * SECOND);
    return sim_event_count(c->world, SIM_EV_THREAD) == thread_events ? 0 : 2;
}

static void a_dead_thread_never_comes_back_from_its_call(void **state)
{
    (void)state;
    assert_int_equal(sim_in_child(kill_in_a_blocking_call, NULL, NULL, 0), 0);
}

/* ---- children --------------------------------------------------------------------------- */

static int child(void *arg, void *result)
{
    if (!arg)
        abort();
    *(int *)result = *(int *)arg + 1;
    return 7;
}

static void a_child_hands_back_its_result_and_how_it_ended(void **state)
{
    int arg = 41;
    int result = 0;

    (void)state;
    assert_int_equal(sim_in_child(child, &arg, &result, sizeof(result)), 7);
    assert_int_equal(result, 42);
    assert_int_equal(sim_in_child(child, NULL, NULL, 0), 128 + SIGABRT);
}

/* ---- speed: printed, not judged ---------------------------------------------------------- */

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void print_speed(bool with_sync)
{
    struct cluster *c = cluster_new(1, NULL);
    double before = cpu_seconds();
    double seconds;

    c->server.with_sync = with_sync;
    while (sim_event_total(c->world) < 200000)
        run_for(c, SECOND / 10);
    seconds = cpu_seconds() - before;
    printf("%.1f million events a core-minute, %u answers: ",
           (double)sim_event_total(c->world) / seconds * 60e-6, answers(c));
    sim_print_counts(c->world, stdout);
    cluster_free(c);
}

static void events_are_cheap(void **state)
{
    (void)state;
    print_speed(false);
    print_speed(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_run_and_another_another),
        cmocka_unit_test(recorded_choices_give_the_same_run),
        cmocka_unit_test(an_empty_list_is_a_dull_run_that_works),
        cmocka_unit_test(a_paused_machine_stands_still_and_goes_on),
        cmocka_unit_test(the_wall_clock_jumps_and_the_other_does_not),
        cmocka_unit_test(time_goes_on_in_an_empty_world),
        cmocka_unit_test(entropy_differs_by_life_and_machine_and_repeats_by_seed),
        cmocka_unit_test(a_stall_of_the_disk_takes_its_time),
        cmocka_unit_test(what_is_not_ordered_comes_in_any_order),
        cmocka_unit_test(a_server_may_die_at_any_call_and_come_back),
        cmocka_unit_test(a_dead_thread_never_comes_back_from_its_call),
        cmocka_unit_test(a_child_hands_back_its_result_and_how_it_ended),
        cmocka_unit_test(events_are_cheap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
