/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can happen between us and ZooKeeper: no service, a connection that breaks at a chosen point,
 * changes behind our back, the end of a session. With an argument, "address:port" of a ZooKeeper,
 * the tests that need one run (and with a second argument only a counter, for an ensemble whose
 * servers are killed meanwhile); a proxy of our own stands in front of it, which passes bytes,
 * breaks the connection when a request comes or when its answer does, or lets nobody through.
 *
 * A test is a list of steps. A step acts; the next one begins when the log has the step's last
 * lines. Every result, event and state leaves a line there.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "keeper/zookeeper_int.h"

#define PROBES_MAX 256
#define STEP_NS 20000000000 /* far more than any step needs */
#define LOG_BYTES 16384
#define LINKS_MAX 8

static const char *service; /* of the command line */

/* ---- The proxy: a thread of its own. */

enum proxy_mode {
    PROXY_PASS = 0,
    PROXY_CUT_AT_REQUEST = 1, /* once; then it passes */
    PROXY_CUT_AT_ANSWER = 2,  /* likewise */
    PROXY_DOWN = 3,
};

struct proxy {
    pthread_t thread;
    _Atomic int mode;
    _Atomic bool ends;
    int listener;
    uint16_t port;
    int client[LINKS_MAX]; /* -1: free */
    int server[LINKS_MAX];
};

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)port)};
}

static void link_cut(struct proxy *p, int i)
{
    close(p->client[i]);
    close(p->server[i]);
    p->client[i] = p->server[i] = -1;
}

static void link_new(struct proxy *p)
{
    struct sockaddr_in to = loopback(strtol(strchr(service, ':') + 1, NULL, 10));
    int client = accept(p->listener, NULL, NULL);
    int i = 0;

    while (p->client[i] >= 0)
        i++;
    assert(i < LINKS_MAX);
    p->client[i] = client;
    p->server[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->mode == PROXY_DOWN || connect(p->server[i], (struct sockaddr *)&to, sizeof(to)))
        link_cut(p, i);
}

/* Moves what is there; false: the link has to be cut. */
static bool pump(struct proxy *p, int from, int to, enum proxy_mode cut_at)
{
    char bytes[65536];
    int mode = cut_at;
    ssize_t n = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    if (atomic_compare_exchange_strong(&p->mode, &mode, PROXY_PASS))
        return false;
    return send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void *proxy_main(void *arg)
{
    struct proxy *p = arg;
    struct pollfd fds[1 + 2 * LINKS_MAX];

    while (!p->ends) {
        fds[0] = (struct pollfd){.fd = p->listener, .events = POLLIN};
        for (int i = 0; i < LINKS_MAX; i++) {
            fds[1 + 2 * i] = (struct pollfd){.fd = p->client[i], .events = POLLIN};
            fds[2 + 2 * i] = (struct pollfd){.fd = p->server[i], .events = POLLIN};
        }
        poll(fds, ARRAY_LEN(fds), 5);
        for (int i = 0; i < LINKS_MAX; i++)
            if (p->client[i] >= 0 && (p->mode == PROXY_DOWN ||
                                      !pump(p, p->client[i], p->server[i], PROXY_CUT_AT_REQUEST) ||
                                      !pump(p, p->server[i], p->client[i], PROXY_CUT_AT_ANSWER)))
                link_cut(p, i);
        if (fds[0].revents)
            link_new(p);
    }
    for (int i = 0; i < LINKS_MAX; i++)
        if (p->client[i] >= 0)
            link_cut(p, i);
    close(p->listener);
    return NULL;
}

static void proxy_start(struct proxy *p)
{
    struct sockaddr_in at = loopback(0);
    socklen_t size = sizeof(at);

    memset(p, 0, sizeof(*p));
    for (int i = 0; i < LINKS_MAX; i++)
        p->client[i] = p->server[i] = -1;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(p->listener, 8), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&at, &size), 0);
    p->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&p->thread, NULL, proxy_main, p), 0);
}

static void proxy_stop(struct proxy *p)
{
    p->ends = true;
    pthread_join(p->thread, NULL);
}

/* ---- The fixture. */

struct fixture;

struct step {
    void (*fn)(struct fixture *f);
    const char *until; /* the log ends with it; NULL: goes on at once */
};

struct probe {
    struct keeper_call call;
    struct fixture *f;
    char label[64];
    struct keeper_op op;
};

struct watcher {
    struct keeper_watch watch;
    struct fixture *f;
    const char *label;
};

struct fixture {
    struct io *io;
    struct io_loop *loop;
    struct proxy proxy;
    struct keeper *keeper; /* through the proxy */
    struct keeper *direct; /* past it */
    const struct step *step;
    struct io_timer deadline;
    struct io_msg next;
    bool is_next_posted;
    char chroot[32];
    char log[LOG_BYTES];
    size_t log_size;
    struct probe probes[PROBES_MAX];
    int probe_count;
    struct watcher watchers[4];
    int watcher_count;
    struct probe *p[4];
    int closing;
};

static void go_on_if_over(struct fixture *f)
{
    const char *until = f->step->until ? f->step->until : "";
    size_t n = strlen(until);

    if (f->is_next_posted || n > f->log_size || memcmp(f->log + f->log_size - n, until, n) != 0)
        return;
    f->is_next_posted = true;
    io_post(f->loop, &f->next);
}

static void note(struct fixture *f, const char *fmt, ...) printf_like(2, 3);

static void note(struct fixture *f, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(f->log + f->log_size, LOG_BYTES - f->log_size, fmt, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < LOG_BYTES - f->log_size);
    f->log_size += (size_t)n;
    go_on_if_over(f);
}

#define assert_log(f, text)                                                                        \
    do {                                                                                           \
        assert_string_equal((f)->log, text);                                                       \
        (f)->log_size = 0;                                                                         \
        (f)->log[0] = '\0';                                                                        \
    } while (0)

static void state_changed(void *ctx, enum keeper_state state)
{
    static const char *const names[] = {"connecting", "connected", "expired", "closed", "failed"};

    note(ctx, "%s\n", names[state]);
}

static void direct_changed(void *ctx, enum keeper_state state)
{
    if (state == KEEPER_CONNECTED)
        note(ctx, "direct\n");
}

static const struct keeper_events events = {.state_changed = state_changed};
static const struct keeper_events direct_events = {.state_changed = direct_changed};

static struct keeper *open_at(struct fixture *f, const char *server, const struct keeper_events *e)
{
    char connect[96], *message;
    struct keeper_zookeeper_args args = {
        .connect = connect, .session_timeout_ms = 10000, .in_flight_max = 10};
    struct keeper *k;

    snprintf(connect, sizeof(connect), "%s%s", server, f->chroot);
    assert_int_equal(keeper_zookeeper_open(f->io, &args, f->loop, e, f, &k, &message), 0);
    return k;
}

static void open_direct(struct fixture *f)
{
    f->direct = open_at(f, service, &direct_events);
}

/* ---- Calls. */

static void probe_done(struct keeper_call *call)
{
    struct probe *p = CONTAINER_OF(call, struct probe, call);

    note(p->f, "%s %s\n", p->label, err_name(call->err));
}

static struct probe *probe_new(struct fixture *f, const char *verb, const char *path)
{
    struct probe *p = &f->probes[f->probe_count++];

    assert_true(f->probe_count <= PROBES_MAX);
    *p = (struct probe){.call.done = probe_done, .f = f};
    snprintf(p->label, sizeof(p->label), "%s %s", verb, path);
    return p;
}

static struct probe *write_to(struct fixture *f, struct keeper *k, enum keeper_op_kind kind,
                              const char *path, int32_t version)
{
    static const char *const verbs[] = {"check", "create", "set", "delete"};
    struct probe *p = probe_new(f, verbs[kind], path);

    p->op = (struct keeper_op){.kind = kind,
                               .path = path,
                               .data = {.p = (const uint8_t *)"x", .n = 1},
                               .version = version};
    keeper_multi(k, &p->op, 1, &p->call);
    return p;
}

static struct probe *create(struct fixture *f, const char *path)
{
    return write_to(f, f->keeper, KEEPER_CREATE, path, -1);
}

static struct probe *set(struct fixture *f, const char *path)
{
    return write_to(f, f->keeper, KEEPER_SET, path, -1);
}

static struct probe *ephemeral(struct fixture *f, const char *path)
{
    struct probe *p = probe_new(f, "ephemeral", path);

    p->op = (struct keeper_op){.kind = KEEPER_CREATE, .path = path, .is_ephemeral = true};
    keeper_multi(f->keeper, &p->op, 1, &p->call);
    return p;
}

static void watch_fired(struct keeper_watch *w, enum keeper_event_kind kind)
{
    static const char *const names[] = {"created", "deleted", "changed", "children"};
    struct watcher *watcher = CONTAINER_OF(w, struct watcher, watch);

    note(watcher->f, "event %s %s\n", watcher->label, names[kind]);
}

static struct keeper_watch *watcher_new(struct fixture *f, const char *label)
{
    struct watcher *w = &f->watchers[f->watcher_count++];

    *w = (struct watcher){.watch.fired = watch_fired, .f = f, .label = label};
    return &w->watch;
}

static struct probe *get(struct fixture *f, const char *path, struct keeper_watch *w)
{
    struct probe *p = probe_new(f, "get", path);

    keeper_get(f->keeper, path, w, &p->call);
    return p;
}

static struct probe *exists_on(struct fixture *f, struct keeper *k, const char *path,
                               struct keeper_watch *w)
{
    struct probe *p = probe_new(f, "exists", path);

    keeper_exists(k, path, w, &p->call);
    return p;
}

static struct probe *children(struct fixture *f, const char *path, struct keeper_watch *w)
{
    struct probe *p = probe_new(f, "children", path);

    keeper_children(f->keeper, path, w, &p->call);
    return p;
}

/* ---- Running. */

static void one_closed(void *ctx)
{
    struct fixture *f = ctx;

    if (--f->closing == 0)
        io_stop(f->io);
}

static void close_all(struct fixture *f)
{
    f->closing = 1 + (f->direct != NULL);
    if (f->direct)
        keeper_close(f->direct, one_closed, f);
    keeper_close(f->keeper, one_closed, f);
    f->direct = f->keeper = NULL;
}

static void next_step(struct io_msg *msg)
{
    struct fixture *f = CONTAINER_OF(msg, struct fixture, next);

    f->is_next_posted = false;
    f->step++;
    if (!f->step->fn)
        return; /* closing */
    f->step->fn(f);
    go_on_if_over(f);
}

static void too_late(struct io_op *op)
{
    struct fixture *f = CONTAINER_OF(op, struct fixture, deadline.op);

    fail_msg("waits for '%s', log:\n%s", f->step->until, f->log);
}

static void started(void *ctx)
{
    struct fixture *f = ctx;

    io_timer_set(f->loop, &f->deadline, io_mono_ns(f->io) + STEP_NS);
    go_on_if_over(f);
}

/* The first step's function is not called: it is what happens by itself. */
static void run(struct fixture *f, const struct step *steps)
{
    char at[32];

    f->step = steps;
    f->next = (struct io_msg){.fn = next_step};
    f->deadline = (struct io_timer){.op.done = too_late};
    f->is_next_posted = false;
    f->io = io_new(&(struct io_options){.trace_level = TRACE_WARN});
    f->loop = io_loop_new(f->io, "control", started, f);
    f->probe_count = f->watcher_count = 0;
    snprintf(at, sizeof(at), "127.0.0.1:%u", f->proxy.port);
    f->keeper = open_at(f, at, &events);
    io_run(f->io);
    if (f->keeper)
        keeper_free(f->keeper);
    for (int i = 0; i < f->watcher_count; i++)
        assert_null(f->watchers[i].watch._keeper);
    for (int i = 0; i < f->probe_count; i++)
        keeper_call_release(&f->probes[i].call);
    io_free(f->io);
}

#define RUN(f, ...) run(f, (const struct step[]){__VA_ARGS__, {close_all, "never"}, {NULL, NULL}})
#define BY_ITSELF(text)                                                                            \
    {                                                                                              \
        NULL, text                                                                                 \
    }

static int begin(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    static int number;

    snprintf(f->chroot, sizeof(f->chroot), "/test-%d-%d", (int)getpid(), number++);
    proxy_start(&f->proxy);
    *state = f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    proxy_stop(&f->proxy);
    free(f);
    return 0;
}

/* ---- Without a service. */

static void assert_place(const char *text, const char *servers, const char *chroot)
{
    struct zookeeper_place place;
    char *message;

    assert_int_equal(zookeeper__place_parse(text, &place, &message), ERR_NONE);
    assert_string_equal(place.servers, servers);
    assert_string_equal(place.chroot, chroot);
    zookeeper__place_free(&place);
}

static void a_connect_string_is_servers_and_a_path(void **state)
{
    (void)state;
    assert_place("a:1", "a:1", "");
    assert_place("a", "a:2181", "");
    assert_place("a:1/", "a:1", "");
    assert_place("a:1, b ,[::1]:3/c/d", "a:1,b:2181,[::1]:3", "/c/d");
}

static void a_bad_connect_string_says_why(void **state)
{
    static const char *const bad[] = {
        "",       "/a",     "a:",     "a:x",   "a:0", "a:65536", "a,,b", "[::1",    "[]:1",
        "[::1]1", "a:1//b", "a:1/b/", "a:1/.", ":1",  "a:1:2",   " ",    "a:1/b\n",
    };
    struct zookeeper_place place;
    char *message;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(zookeeper__place_parse(bad[i], &place, &message), ERR_INVALID_ARG);
        assert_non_null(strchr(message, '\''));
        free(message);
    }
}

static void names_become_addresses(void **state)
{
    char *addresses = zookeeper__resolve("127.0.0.1:21,[::1]:22");

    (void)state;
    assert_string_equal(addresses, "127.0.0.1:21,::1:22");
    free(addresses);
}

static void submit_into_the_void(struct fixture *f)
{
    get(f, "not a path", NULL);
    create(f, "/a");
    get(f, "/a", watcher_new(f, "a"));
}

static void calls_wait_for_a_service_and_close_cancels_them(void **state)
{
    struct fixture *f = *state;

    f->proxy.mode = PROXY_DOWN;
    RUN(f, BY_ITSELF(NULL), {submit_into_the_void, "get not a path INVALID_ARG\n"});
    assert_log(f, "get not a path INVALID_ARG\ncreate /a CANCELLED\nget /a CANCELLED\nclosed\n");
}

/* ---- Connections that break. */

static void submit_and_lose_the_answer(struct fixture *f)
{
    f->proxy.mode = PROXY_CUT_AT_ANSWER;
    set(f, "/a");
    f->p[0] = get(f, "/a", watcher_new(f, "a"));
}

static void create_a(struct fixture *f)
{
    create(f, "/a");
}

static void change_it(struct fixture *f)
{
    assert_log(f, "connected\ncreate /a NONE\nconnecting\nset /a UNKNOWN\nconnected\n"
                  "get /a NONE\n");
    assert_int_equal(f->p[0]->call.stat.version, 1); /* it has happened */
    set(f, "/a");
}

static void a_lost_answer_is_unknown_and_a_lost_read_is_asked_again(void **state)
{
    struct fixture *f = *state;

    RUN(f, BY_ITSELF("connected\n"), {create_a, "create /a NONE\n"},
        {submit_and_lose_the_answer, "get /a NONE\n"}, {change_it, "set /a NONE\n"});
    assert_log(f, "event a changed\nset /a NONE\nclosed\n");
}

static void submit_and_lose_the_request(struct fixture *f)
{
    f->proxy.mode = PROXY_CUT_AT_REQUEST;
    set(f, "/a");
    f->p[0] = get(f, "/a", NULL);
}

static void check_that_it_has_not_happened(struct fixture *f)
{
    assert_log(f, "connected\ncreate /a NONE\nconnecting\nset /a UNKNOWN\nconnected\n"
                  "get /a NONE\n");
    assert_int_equal(f->p[0]->call.stat.version, 0);
}

static void a_lost_request_is_unknown_too(void **state)
{
    struct fixture *f = *state;

    RUN(f, BY_ITSELF("connected\n"), {create_a, "create /a NONE\n"},
        {submit_and_lose_the_request, "get /a NONE\n"}, {check_that_it_has_not_happened, NULL});
}

static void lose_the_service(struct fixture *f)
{
    f->proxy.mode = PROXY_DOWN;
}

static void submit_and_let_it_come_back(struct fixture *f)
{
    set(f, "/a");
    get(f, "/a", NULL);
    f->proxy.mode = PROXY_PASS;
}

static void what_is_submitted_without_a_connection_waits_for_one(void **state)
{
    struct fixture *f = *state;

    RUN(f, BY_ITSELF("connected\n"), {create_a, "create /a NONE\n"},
        {lose_the_service, "connecting\n"}, {submit_and_let_it_come_back, "get /a NONE\n"});
    assert_log(f, "connected\ncreate /a NONE\nconnecting\nconnected\nset /a NONE\nget /a NONE\n"
                  "closed\n");
}

static void submit_and_let_it_come(struct fixture *f)
{
    create(f, "/a");
    f->proxy.mode = PROXY_PASS;
}

static void a_service_that_comes_late_is_found(void **state)
{
    struct fixture *f = *state;

    f->proxy.mode = PROXY_DOWN;
    RUN(f, BY_ITSELF(NULL), {submit_and_let_it_come, "create /a NONE\n"});
    assert_log(f, "connected\ncreate /a NONE\nclosed\n");
}

static void submit_many(struct fixture *f)
{
    for (int i = 0; i < 100; i++)
        set(f, "/a");
    get(f, "/a", NULL);
    f->proxy.mode = PROXY_CUT_AT_ANSWER;
}

/* Nothing may have happened but what was out, and nothing is done twice. */
static void check_many(struct fixture *f)
{
    int32_t unknown = 0, done = 0;

    for (int i = 1; i < f->probe_count - 1; i++) {
        unknown += f->probes[i].call.err == ERR_UNKNOWN;
        done += f->probes[i].call.err == ERR_NONE;
    }
    assert_int_equal(unknown + done, 100);
    assert_in_range(unknown, 1, 10);
    assert_in_range(f->probes[f->probe_count - 1].call.stat.version, done, 100);
}

static void only_calls_that_were_out_are_unknown(void **state)
{
    struct fixture *f = *state;

    RUN(f, BY_ITSELF("connected\n"), {create_a, "create /a NONE\n"}, {submit_many, "get /a NONE\n"},
        {check_many, NULL});
}

/* ---- Changes behind our back. */

static void make_nodes(struct fixture *f)
{
    create(f, "/a");
    create(f, "/p");
    create(f, "/p/old");
}

static void arm(struct fixture *f)
{
    get(f, "/a", watcher_new(f, "a"));
    children(f, "/p", watcher_new(f, "children of p"));
    exists_on(f, f->keeper, "/x", watcher_new(f, "x"));
    get(f, "/p/old", watcher_new(f, "old"));
}

static void change_behind_its_back(struct fixture *f)
{
    write_to(f, f->direct, KEEPER_SET, "/a", -1);
    write_to(f, f->direct, KEEPER_CREATE, "/x", -1);
    write_to(f, f->direct, KEEPER_DELETE, "/p/old", -1);
}

static void come_back(struct fixture *f)
{
    f->log_size = 0;
    get(f, "/a", NULL);
    f->proxy.mode = PROXY_PASS;
}

static bool has_line(const struct fixture *f, const char *line)
{
    return strstr(f->log, line) != NULL;
}

static void changes_during_a_lost_connection_are_told_before_any_read(void **state)
{
    struct fixture *f = *state;

    RUN(f, BY_ITSELF("connected\n"), {open_direct, "direct\n"},
        {make_nodes, "create /p/old NONE\n"}, {arm, "get /p/old NONE\n"},
        {lose_the_service, "connecting\n"}, {change_behind_its_back, "delete /p/old NONE\n"},
        {come_back, "get /a NONE\n"});
    assert_true(has_line(f, "connected\nevent "));
    assert_true(has_line(f, "event a changed\n"));
    assert_true(has_line(f, "event children of p children\n"));
    assert_true(has_line(f, "event x created\n"));
    assert_true(has_line(f, "event old deleted\n"));
    assert_int_equal(strlen(f->log), strlen("connected\nevent a changed\n"
                                            "event children of p children\nevent x created\n"
                                            "event old deleted\nget /a NONE\nclosed\n"));
    assert_true(has_line(f, "\nget /a NONE\nclosed\n"));
}

static void arm_twice(struct fixture *f)
{
    struct keeper_watch *taken_back = watcher_new(f, "taken back");

    get(f, "/a", watcher_new(f, "first"));
    get(f, "/a", watcher_new(f, "second"));
    get(f, "/a", taken_back);
    keeper_unwatch(f->keeper, taken_back);
    set(f, "/a");
}

static void two_watches_of_a_path_both_fire(void **state)
{
    struct fixture *f = *state;

    RUN(f, BY_ITSELF("connected\n"), {create_a, "create /a NONE\n"}, {arm_twice, "set /a NONE\n"});
    assert_log(f, "connected\ncreate /a NONE\nget /a NONE\nget /a NONE\nget /a NONE\n"
                  "event first changed\nevent second changed\nset /a NONE\nclosed\n");
}

/* ---- Ends of sessions. */

static void thief_connected(zhandle_t *handle, int type, int state, const char *path, void *ctx)
{
    (void)handle;
    (void)path;
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE)
        sem_post(ctx);
}

/* Another handle takes the session over and closes it: for us it has expired. */
static void end_session(struct fixture *f)
{
    clientid_t id;
    sem_t connected;

    f->proxy.mode = PROXY_DOWN; /* or it would take it back */
    sem_init(&connected, 0, 0);
    zookeeper__session(f->keeper, &id.client_id, id.passwd);
    zhandle_t *thief = zookeeper_init2(service, thief_connected, 10000, &id, &connected,
                                       ZOO_NO_LOG_CLIENTENV, NULL);
    sem_wait(&connected);
    zookeeper_close(thief);
    sem_destroy(&connected);
    f->proxy.mode = PROXY_PASS;
}

static void make_ephemeral(struct fixture *f)
{
    ephemeral(f, "/e");
    get(f, "/e", watcher_new(f, "mine"));
}

static void watch_from_outside(struct fixture *f)
{
    exists_on(f, f->direct, "/e", watcher_new(f, "e"));
}

static void submit_after_the_end(struct fixture *f)
{
    set(f, "/e");
    get(f, "/e", watcher_new(f, "late"));
}

static void look_from_outside(struct fixture *f)
{
    exists_on(f, f->direct, "/e", NULL);
}

static void an_expired_session_takes_its_nodes_and_cancels_calls(void **state)
{
    struct fixture *f = *state;

    RUN(f, BY_ITSELF("connected\n"), {open_direct, "direct\n"}, {make_ephemeral, "get /e NONE\n"},
        {watch_from_outside, "exists /e NONE\n"}, {end_session, "expired\n"},
        {submit_after_the_end, "get /e CANCELLED\n"}, {look_from_outside, "exists /e NOT_FOUND\n"});
    assert_true(has_line(f, "event e deleted\n"));
    assert_false(has_line(f, "event mine"));
    assert_true(has_line(f, "expired\nset /e CANCELLED\nget /e CANCELLED\n"));
}

static void stop(struct fixture *f)
{
    get(f, "/e", watcher_new(f, "e"));
    set(f, "/e");
    io_stop(f->io);
}

static void look(struct fixture *f)
{
    exists_on(f, f->keeper, "/e", NULL);
}

static void create_e(struct fixture *f)
{
    ephemeral(f, "/e");
}

/* keeper_free closes the session, so that nobody has to wait for its timeout. */
static void a_stop_without_close_still_ends_the_session(void **state)
{
    struct fixture *f = *state;

    RUN(f, BY_ITSELF("connected\n"), {create_e, "ephemeral /e NONE\n"}, {stop, "never"});
    f->log_size = 0;
    RUN(f, BY_ITSELF("connected\n"), {look, "exists /e NOT_FOUND\n"});
}

/* ---- An ensemble: counts until SIGTERM, while somebody kills its servers. */

struct counter {
    struct io *io;
    struct io_loop *loop;
    struct keeper *keeper;
    struct keeper_call call;
    struct keeper_op op;
    int32_t version; /* of the node, as far as we know */
    struct io_signal signal;
    bool is_told_to_stop;
    int32_t unknown;
    bool has_expired;
};

static void count_on(struct counter *c);

static void counter_closed(void *ctx)
{
    io_stop(((struct counter *)ctx)->io);
}

static void version_known(struct keeper_call *call)
{
    struct counter *c = CONTAINER_OF(call, struct counter, call);

    assert_in_range(call->stat.version, c->version, c->version + 1);
    c->version = call->stat.version;
    keeper_call_release(call);
    count_on(c);
}

/* A set of a version happens once or not: the version says which. */
static void counted(struct keeper_call *call)
{
    struct counter *c = CONTAINER_OF(call, struct counter, call);
    enum err err = call->err;

    keeper_call_release(call);
    if (err == ERR_UNKNOWN) {
        c->unknown++;
        c->call.done = version_known;
        keeper_get(c->keeper, "/count", NULL, call);
        return;
    }
    assert_int_equal(err, ERR_NONE);
    c->version++;
    assert_int_equal(c->op.stat.version, c->version);
    count_on(c);
}

static void count_on(struct counter *c)
{
    if (c->version % 100 == 0) {
        printf("%d\n", c->version);
        fflush(stdout);
    }
    if (c->is_told_to_stop) {
        keeper_close(c->keeper, counter_closed, c);
        return;
    }
    c->call.done = counted;
    c->op = (struct keeper_op){.kind = KEEPER_SET, .path = "/count", .version = c->version};
    keeper_multi(c->keeper, &c->op, 1, &c->call);
}

static void counter_made(struct keeper_call *call)
{
    struct counter *c = CONTAINER_OF(call, struct counter, call);

    assert_int_equal(call->err, ERR_NONE);
    keeper_call_release(call);
    count_on(c);
}

static void told_to_stop(struct io_op *op)
{
    CONTAINER_OF(op, struct counter, signal.op)->is_told_to_stop = true;
}

static void counter_begins(void *ctx)
{
    struct counter *c = ctx;

    c->signal.op.done = told_to_stop;
    io_signal_wait(c->loop, &c->signal);
    c->call.done = counter_made;
    c->op = (struct keeper_op){.kind = KEEPER_CREATE, .path = "/count"};
    keeper_multi(c->keeper, &c->op, 1, &c->call);
}

static void counter_state(void *ctx, enum keeper_state state)
{
    ((struct counter *)ctx)->has_expired |= state == KEEPER_EXPIRED;
}

static int count(void)
{
    static const struct keeper_events count_events = {.state_changed = counter_state};
    struct counter c = {0};
    struct keeper_zookeeper_args args = {
        .connect = service, .session_timeout_ms = 10000, .in_flight_max = 10};
    char *message;

    c.io = io_new(&(struct io_options){.trace_level = TRACE_WARN});
    c.loop = io_loop_new(c.io, "control", counter_begins, &c);
    assert(!keeper_zookeeper_open(c.io, &args, c.loop, &count_events, &c, &c.keeper, &message));
    io_run(c.io);
    io_free(c.io);
    printf("counted to %d, %d answers lost\n", c.version, c.unknown);
    return c.has_expired;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(a_connect_string_is_servers_and_a_path),
        cmocka_unit_test(a_bad_connect_string_says_why),
        cmocka_unit_test(names_become_addresses),
        cmocka_unit_test_setup_teardown(calls_wait_for_a_service_and_close_cancels_them, begin,
                                        end),
    };
#define WITH_SERVICE(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
    const struct CMUnitTest with_service[] = {
        WITH_SERVICE(a_lost_answer_is_unknown_and_a_lost_read_is_asked_again),
        WITH_SERVICE(a_lost_request_is_unknown_too),
        WITH_SERVICE(what_is_submitted_without_a_connection_waits_for_one),
        WITH_SERVICE(a_service_that_comes_late_is_found),
        WITH_SERVICE(only_calls_that_were_out_are_unknown),
        WITH_SERVICE(changes_during_a_lost_connection_are_told_before_any_read),
        WITH_SERVICE(two_watches_of_a_path_both_fire),
        WITH_SERVICE(an_expired_session_takes_its_nodes_and_cancels_calls),
        WITH_SERVICE(a_stop_without_close_still_ends_the_session),
    };

    service = argc > 1 ? argv[1] : "127.0.0.1:9";
    if (argc > 2)
        return count();
    if (argc > 1)
        return cmocka_run_group_tests_name("ZooKeeper", with_service, NULL, NULL);
    return cmocka_run_group_tests_name("ZooKeeper, without one", alone, NULL, NULL);
}
