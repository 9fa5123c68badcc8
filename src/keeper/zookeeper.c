/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree in ZooKeeper, through its C client, which has two threads for each handle: one talks to
 * the servers and keeps the session alive however busy we are, one calls back. A callback only
 * leaves a notice in a queue and wakes the loop; everything else happens there. Here is the
 * session; its calls are in zookeeper_calls.c.
 *
 * Watches are in our own table by path. The client knows one callback with one context, so it holds
 * at most one watch for each path and kind; it sets them again when it connects again, and the
 * service then tells what changed in between. An event is ahead of every answer that shows more.
 *
 * What the client does, and how we live with it:
 *  - it puts the address of its log's stream into a global, and its callback for messages has no
 *    context: it stays silent, and what happens to the session is traced here;
 *  - zookeeper_close waits for the service, up to 4.5 seconds: a job calls it. It may drop calls
 *    without calling back: they are on our lists too;
 *  - a handle whose session has expired is dead: the owner opens another keeper.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/trace.h"
#include "keeper/zookeeper_calls_int.h"

#define NOTICES_PER_TURN 64      /* the loop has other work */
#define RETRY_NS 200000000       /* when no server has an address; doubled up to ... */
#define COMPLAINT_NS 10000000000 /* ... this, which is also between complaints */

/* ---- The client's threads. */

void zookeeper__wake(struct zookeeper *k)
{
    pthread_mutex_lock(&k->lock);
    bool is_woken = k->is_woken;

    k->is_woken = true;
    pthread_mutex_unlock(&k->lock);
    if (!is_woken)
        io_post(k->keeper.loop, &k->wake);
}

void zookeeper__post(struct zookeeper *k, struct notice *n)
{
    pthread_mutex_lock(&k->lock);
    list_push_back(&k->notices, &n->node);
    pthread_mutex_unlock(&k->lock);
    zookeeper__wake(k);
}

/* Of the session and of all watches: the client tells both in the same way. */
void zookeeper__told(zhandle_t *handle, int type, int state, const char *path, void *ctx)
{
    bool is_state = type == ZOO_SESSION_EVENT;
    struct notice *n = xcalloc(1, sizeof(*n));

    n->kind = is_state ? NOTICE_STATE : NOTICE_EVENT;
    n->code = is_state ? state : type;
    n->session = is_state ? zoo_client_id(handle)->client_id : 0;
    n->path = is_state ? NULL : xstrdup(path);
    zookeeper__post(ctx, n);
}

static void be_silent(const char *message)
{
    (void)message;
}

/* ---- Events. */

static void fire(struct zookeeper *k, const struct notice *n, enum keeper_event_kind kind)
{
    const char *path = zookeeper__path(k, n->path);
    struct list fired;
    struct list *l;

    list_init(&fired);
    if (path)
        watches_fire(&k->watches, path, kind, &fired);
    while ((l = list_pop_front(&fired))) {
        struct keeper_watch *w = LIST_ENTRY(l, struct keeper_watch, _node);

        w->_keeper = NULL;
        if (!k->closed)
            w->fired(w, w->_event);
    }
}

static void event(struct zookeeper *k, const struct notice *n)
{
    if (n->code == ZOO_CREATED_EVENT)
        fire(k, n, KEEPER_NODE_CREATED);
    else if (n->code == ZOO_DELETED_EVENT)
        fire(k, n, KEEPER_NODE_DELETED);
    else if (n->code == ZOO_CHANGED_EVENT)
        fire(k, n, KEEPER_NODE_CHANGED);
    else if (n->code == ZOO_CHILD_EVENT)
        fire(k, n, KEEPER_CHILDREN_CHANGED);
}

/* ---- States. */

static void tell_state(struct zookeeper *k, enum keeper_state state)
{
    if (k->keeper.events && k->keeper.events->state_changed)
        k->keeper.events->state_changed(k->keeper.ctx, state);
}

static void watches_forget(struct zookeeper *k)
{
    LIST_EACH (l, &k->waiting)
        LIST_ENTRY(l, struct request, node)->watch = NULL;
    LIST_EACH (l, &k->sent)
        LIST_ENTRY(l, struct request, node)->watch = NULL;
    watches_drop(&k->watches);
}

static void end(struct zookeeper *k, enum err over, enum keeper_state state)
{
    k->is_connected = false;
    k->over = over;
    watches_forget(k);
    tell_state(k, state);
}

static void trace_connected(struct zookeeper *k)
{
    struct sockaddr_storage sa = {0};
    const struct sockaddr_in *v4 = (const void *)&sa;
    const struct sockaddr_in6 *v6 = (const void *)&sa;
    socklen_t size = sizeof(sa);
    bool is_v6;
    char host[INET6_ADDRSTRLEN] = "?";

    if (!zookeeper_get_connected_host(k->handle, (struct sockaddr *)&sa, &size))
        sa.ss_family = AF_UNSPEC;
    is_v6 = sa.ss_family == AF_INET6;
    if (sa.ss_family != AF_UNSPEC)
        inet_ntop(sa.ss_family, is_v6 ? (const void *)&v6->sin6_addr : &v4->sin_addr, host,
                  sizeof(host));
    trace_info("keeper.connected", "server=%s:%u session=0x%llx timeout_ms=%d", host,
               ntohs(is_v6 ? v6->sin6_port : v4->sin_port),
               (unsigned long long)k->keeper.session_id, zoo_recv_timeout(k->handle));
}

static void become_connected(struct zookeeper *k)
{
    k->is_connected = k->root_is_made = true;
    k->is_stuck = false;
    trace_connected(k);
    tell_state(k, KEEPER_CONNECTED);
}

static void root_made(int code, const char *path, const void *data)
{
    (void)path;
    zookeeper__answer((struct request *)(uintptr_t)data, code);
}

/* The nodes of the chroot from the top down, all at once: those that exist are no failure. */
static void make_root(struct zookeeper *k)
{
    k->root_err = ERR_NONE;
    for (const char *p = k->place.chroot; *p;) {
        struct request *r = zookeeper__request_new(k, NULL);

        p += 1 + strcspn(p + 1, "/");
        r->notice.kind = NOTICE_ROOT;
        r->path = xstrndup(k->place.chroot, (size_t)(p - k->place.chroot));
        k->root_pending++;
        list_push_back(&k->root_requests, &r->node);
        if (zoo_acreate(k->handle, r->path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT,
                        root_made, r) != ZOK)
            zookeeper__answer(r, ZCONNECTIONLOSS);
    }
    if (k->root_pending == 0)
        become_connected(k);
}

static void root_answered(struct zookeeper *k, struct request *r)
{
    enum err err = zookeeper__is_lost(r->notice.code) ? ERR_AGAIN
                                                      : zookeeper__err_of(r->notice.code);

    /* Who may not create may still use what others have created. */
    if (err && err != ERR_EXISTS && err != ERR_ACCESS)
        k->root_err = err;
    if (k->root_err && k->root_err != ERR_AGAIN)
        trace_error("keeper.chroot_failed", "path=%s error=%s", r->path, err_name(err));
    list_remove(&r->node);
    zookeeper__request_free(r);
    if (--k->root_pending > 0 || k->over || k->closed)
        return;
    if (!k->root_err)
        become_connected(k);
    else if (k->root_err != ERR_AGAIN) /* else the next connection tries again */
        end(k, ERR_IO, KEEPER_FAILED);
}

static void disconnected(struct zookeeper *k)
{
    if (!k->is_connected)
        return;
    k->is_connected = false;
    k->lost_ns = io_loop_mono_ns(k->keeper.loop);
    trace_warn("keeper.disconnected", "session=0x%llx", (unsigned long long)k->keeper.session_id);
    io_timer_set(k->keeper.loop, &k->timer, k->lost_ns + COMPLAINT_NS);
    tell_state(k, KEEPER_CONNECTING);
}

static void state(struct zookeeper *k, const struct notice *n)
{
    if (k->over)
        return;
    if (n->code == ZOO_CONNECTED_STATE) {
        k->keeper.session_id = n->session;
        if (k->root_is_made)
            become_connected(k);
        else if (k->root_pending == 0)
            make_root(k);
    } else if (n->code == ZOO_EXPIRED_SESSION_STATE) {
        trace_warn("keeper.expired", "session=0x%llx", (unsigned long long)k->keeper.session_id);
        end(k, ERR_CANCELLED, KEEPER_EXPIRED);
    } else if (n->code == ZOO_AUTH_FAILED_STATE) {
        trace_error("keeper.refused", "servers=%s", k->place.servers);
        end(k, ERR_IO, KEEPER_FAILED);
    } else {
        disconnected(k);
    }
}

/* ---- Notices. */

static struct notice *take_notice(struct zookeeper *k)
{
    pthread_mutex_lock(&k->lock);
    struct list *l = list_pop_front(&k->notices);

    pthread_mutex_unlock(&k->lock);
    return l ? LIST_ENTRY(l, struct notice, node) : NULL;
}

static void notice_handle(struct zookeeper *k, struct notice *n)
{
    switch (n->kind) {
    case NOTICE_ANSWER: zookeeper__answered(k, CONTAINER_OF(n, struct request, notice)); return;
    case NOTICE_ROOT: root_answered(k, CONTAINER_OF(n, struct request, notice)); return;
    case NOTICE_EVENT: event(k, n); break;
    case NOTICE_STATE:
        if (!k->closed)
            state(k, n);
        break;
    }
    free(n->path);
    free(n);
}

/* The end of a turn: whether there is more to do in the next one. */
static void sleep_or_go_on(struct zookeeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->is_woken = !k->closed && !list_is_empty(&k->notices);
    bool has_more = k->is_woken;

    pthread_mutex_unlock(&k->lock);
    if (has_more)
        io_post(k->keeper.loop, &k->wake);
}

static void work(struct zookeeper *k)
{
    struct notice *n;

    for (int i = 0; i < NOTICES_PER_TURN && !k->closed && (n = take_notice(k)); i++) {
        notice_handle(k, n);
        zookeeper__tell_done(k);
    }
    if (k->closed)
        return;
    zookeeper__dispatch(k);
    zookeeper__tell_done(k);
}

/* ---- Jobs: what blocks. */

static void job_submit(struct zookeeper *k, void (*run)(struct io_job *),
                       void (*done)(struct io_job *))
{
    assert(!k->job_runs);
    k->job_runs = true;
    k->job.run = run;
    k->job.done = done;
    io_job_submit(k->keeper.loop, &k->job);
}

static struct zookeeper *zookeeper_of_job(struct io_job *job)
{
    return CONTAINER_OF(job, struct zookeeper, job);
}

static void open_run(struct io_job *job)
{
    struct zookeeper *k = zookeeper_of_job(job);
    char *servers = zookeeper__resolve(k->place.servers);

    if (!servers)
        return;
    k->handle = zookeeper_init2(servers, zookeeper__told, k->timeout_ms, NULL, k,
                                ZOO_NO_LOG_CLIENTENV, be_silent);
    if (k->handle) /* it keeps to the addresses that it was given */
        zoo_set_servers_resolution_delay(k->handle, -1);
    free(servers);
}

static void refresh_run(struct io_job *job)
{
    struct zookeeper *k = zookeeper_of_job(job);
    char *servers = zookeeper__resolve(k->place.servers);

    if (servers)
        zoo_set_servers(k->handle, servers);
    free(servers);
}

static void close_run(struct io_job *job)
{
    struct zookeeper *k = zookeeper_of_job(job);

    if (k->handle)
        zookeeper_close(k->handle);
    k->handle = NULL;
}

/* ---- Closing. */

/* What the client has still said, and what it has kept to itself: then it does not call back. */
static void answers_drop(struct zookeeper *k)
{
    struct notice *n;
    struct list *l;

    while ((n = take_notice(k)))
        notice_handle(k, n);
    while ((l = list_pop_front(&k->root_requests)))
        zookeeper__request_free(LIST_ENTRY(l, struct request, node));
}

static void zookeeper_free(struct zookeeper *k)
{
    pthread_mutex_destroy(&k->lock);
    zookeeper__place_free(&k->place);
    free(k);
}

static void cancel_all(struct list *requests)
{
    struct list *l;

    while ((l = list_pop_front(requests))) {
        struct request *r = LIST_ENTRY(l, struct request, node);
        struct keeper_call *call = r->call;

        zookeeper__refuse(r, ERR_CANCELLED);
        call->failed_op = -1;
        zookeeper__request_free(r);
        call->done(call);
    }
}

/* The client's threads have ended: all that they had is ours again. */
static void finish(struct zookeeper *k)
{
    void (*closed)(void *ctx) = k->closed;
    void *ctx = k->closed_ctx;

    answers_drop(k);
    cancel_all(&k->sent);
    cancel_all(&k->waiting);
    tell_state(k, KEEPER_CLOSED);
    zookeeper_free(k);
    closed(ctx);
}

static void finish_if_idle(struct zookeeper *k)
{
    if (!k->job_runs && !k->handle && !io_op_is_pending(&k->timer.op))
        finish(k);
}

static void close_done(struct io_job *job)
{
    struct zookeeper *k = zookeeper_of_job(job);

    k->job_runs = false;
    finish_if_idle(k);
}

static void zookeeper_begin_close(struct keeper *keeper, void (*done)(void *ctx), void *ctx)
{
    struct zookeeper *k = zookeeper_of(keeper);

    assert(!k->closed);
    k->closed = done;
    k->closed_ctx = ctx;
    watches_forget(k);
    io_cancel(&k->timer.op);
    zookeeper__wake(k);
}

/* ---- Opening, and trying for ever. */

static void complain(struct zookeeper *k)
{
    trace_warn("keeper.unreachable", "servers=%s for_ms=%lld", k->place.servers,
               (long long)((io_loop_mono_ns(k->keeper.loop) - k->lost_ns) / 1000000));
}

static void open_done(struct io_job *job)
{
    struct zookeeper *k = zookeeper_of_job(job);
    int64_t delay_ns = k->handle ? COMPLAINT_NS : k->retry_ns;

    k->job_runs = false;
    k->is_open = k->handle != NULL;
    if (!k->closed)
        io_timer_set(k->keeper.loop, &k->timer, io_loop_mono_ns(k->keeper.loop) + delay_ns);
    if (!k->is_open && !k->closed)
        trace_warn("keeper.unresolved", "servers=%s retry_ms=%lld", k->place.servers,
                   (long long)(delay_ns / 1000000));
    k->retry_ns = MIN(2 * k->retry_ns, COMPLAINT_NS);
    zookeeper__wake(k);
}

static void refresh_done(struct io_job *job)
{
    struct zookeeper *k = zookeeper_of_job(job);

    k->job_runs = false;
    zookeeper__wake(k);
}

/* There may be a connection by now: the timer is not taken back when one is made. */
static void timed_out(struct io_op *op)
{
    struct zookeeper *k = CONTAINER_OF(op, struct zookeeper, timer.op);

    if (k->closed) {
        finish_if_idle(k);
        return;
    }
    if (k->is_connected || k->over)
        return;
    if (!k->is_open) {
        job_submit(k, open_run, open_done);
        return;
    }
    complain(k);
    if (!k->job_runs)
        job_submit(k, refresh_run, refresh_done);
    io_timer_set(k->keeper.loop, &k->timer, io_loop_mono_ns(k->keeper.loop) + COMPLAINT_NS);
}

static void woken(struct io_msg *msg)
{
    struct zookeeper *k = CONTAINER_OF(msg, struct zookeeper, wake);
    bool is_new = !k->job_runs && !k->is_open && !k->closed;

    if (is_new && !io_op_is_pending(&k->timer.op))
        job_submit(k, open_run, open_done);
    if (k->is_open)
        work(k);
    else
        zookeeper__tell_done(k); /* refused ones */
    sleep_or_go_on(k);
    if (k->closed && !k->job_runs)
        job_submit(k, close_run, close_done);
}

/* ---- The module's functions. */

static void ignore(void *ctx)
{
    (void)ctx;
}

static void zookeeper_release(struct keeper *keeper)
{
    struct zookeeper *k = zookeeper_of(keeper);
    struct list *l;

    if (k->handle)
        zookeeper_close(k->handle);
    k->closed = k->closed ? k->closed : ignore;
    answers_drop(k);
    watches_forget(k);
    while ((l = list_pop_front(&k->sent)) || (l = list_pop_front(&k->waiting))) {
        struct request *r = LIST_ENTRY(l, struct request, node);

        zookeeper__refuse(r, ERR_CANCELLED);
        zookeeper__request_free(r);
    }
    zookeeper_free(k);
}

static const struct keeper_vtable zookeeper_vtable = {
    .read = zookeeper__read,
    .multi = zookeeper__multi,
    .unwatch = zookeeper__unwatch,
    .close = zookeeper_begin_close,
    .release = zookeeper_release,
};

static struct zookeeper *zookeeper_new(struct io *io, const struct keeper_zookeeper_args *args)
{
    struct zookeeper *k = xcalloc(1, sizeof(*k));

    k->keeper.vtable = &zookeeper_vtable;
    k->io = io;
    k->timeout_ms = args->session_timeout_ms;
    k->in_flight_max = args->in_flight_max;
    k->retry_ns = RETRY_NS;
    k->lost_ns = io_mono_ns(io);
    k->timer.op.done = timed_out;
    k->wake.fn = woken;
    list_init(&k->waiting);
    list_init(&k->sent);
    list_init(&k->root_requests);
    list_init(&k->notices);
    pthread_mutex_init(&k->lock, NULL);
    return k;
}

enum err keeper_zookeeper_open(struct io *io, const struct keeper_zookeeper_args *args,
                               struct io_loop *loop, const struct keeper_events *events, void *ctx,
                               struct keeper **out, char **message)
{
    struct zookeeper *k = zookeeper_new(io, args);
    enum err err = zookeeper__place_parse(args->connect, &k->place, message);

    assert(args->session_timeout_ms > 0);
    assert(args->in_flight_max > 0);
    *out = NULL;
    if (err) {
        zookeeper_free(k);
        return err;
    }
    zoo_set_debug_level(0);
    k->keeper.loop = loop;
    k->keeper.events = events;
    k->keeper.ctx = ctx;
    *out = &k->keeper;
    zookeeper__wake(k);
    return ERR_NONE;
}

void zookeeper__session(const struct keeper *keeper, int64_t *id, char password[static 16])
{
    const struct zookeeper *k = CONTAINER_OF(keeper, const struct zookeeper, keeper);
    const clientid_t *client = zoo_client_id(k->handle);

    static_assert(sizeof(client->passwd) == 16, "of ZooKeeper's protocol");
    *id = client->client_id;
    memcpy(password, client->passwd, 16);
}
