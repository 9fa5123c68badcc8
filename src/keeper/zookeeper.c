/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree in ZooKeeper, through its C client, which has two threads for each handle: one talks to
 * the servers and keeps the session alive however busy we are, one calls back. A callback only
 * leaves a notice in a queue and wakes the loop; everything else happens there.
 *
 * A call is `waiting` until there is a connection and fewer than in_flight_max calls are out, then
 * `sent`. The service answers in order, so the first of the sent ones is always the next to be
 * told. With a connection the calls that are out are lost. A lost read is asked again, as if it had
 * been submitted when the connection came back; a lost multi may have happened: ERR_UNKNOWN. So
 * ERR_UNKNOWN is never said of a multi that still waited here.
 *
 * Watches are in our own table by path. The client knows one callback with one context, so it holds
 * at most one watch for each path and kind; it sets them again when it connects again, and the
 * service then tells what changed in between. An event is ahead of every answer that shows more.
 *
 * What the client does, and how we live with it:
 *  - its own chroot frees memory twice when a multi meets an expired session: paths get theirs
 * here;
 *  - it puts the address of its log's stream into a global, and its callback for messages has no
 *    context: it stays silent, and what happens to the session is traced here;
 *  - every attempt to connect that fails ends all calls that it holds: it holds none meanwhile;
 *  - zookeeper_close waits for the service, up to 4.5 seconds: a job calls it. It may drop calls
 *    without calling back: they are on our lists too;
 *  - a handle whose session has expired is dead: the owner opens another keeper.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <zookeeper/zookeeper.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/trace.h"
#include "keeper/keeper_int.h"
#include "keeper/tree_int.h"
#include "keeper/watches_int.h"
#include "keeper/zookeeper_int.h"

#define NOTICES_PER_TURN 64 /* the loop has other work */
#define SEQUENCE_DIGITS 10
#define RETRY_NS 200000000       /* when no server has an address; doubled up to ... */
#define COMPLAINT_NS 10000000000 /* ... this, which is also between complaints */

enum notice_kind {
    NOTICE_ANSWER = 0, /* in a request */
    NOTICE_ROOT = 1,   /* likewise, of one of our own that make the chroot */
    NOTICE_EVENT = 2,
    NOTICE_STATE = 3,
};

/* Made by the client's threads, read by the loop. */
struct notice {
    struct list node;
    enum notice_kind kind;
    int code;        /* of the client: a result, an event's type or a state */
    int64_t session; /* NOTICE_STATE, connected */
    char *path;      /* NOTICE_EVENT; owned */
};

/* A call. While it is out, it and its call's results belong to the client's threads. */
struct request {
    struct notice notice;
    struct list node; /* in zookeeper.waiting or .sent */
    struct zookeeper *keeper;
    struct keeper_call *call; /* NULL: our own */
    uint64_t number;          /* in order of submission */
    bool is_done;             /* call->err is set */
    /* Of a read. */
    enum keeper_read_kind kind;
    char *path; /* the service's: with the chroot; NULL: a multi */
    struct keeper_watch *watch;
    /* Of a multi. */
    struct keeper_op *ops;
    int op_count;
    zoo_op_result_t *results;
    struct Stat *stats;
};

struct zookeeper {
    struct keeper keeper;
    struct io *io;
    struct zookeeper_place place;
    int32_t timeout_ms;
    int32_t in_flight_max;
    zhandle_t *handle; /* NULL: not yet, or no more */
    struct watch_table watches;
    struct list waiting;
    struct list sent;
    struct list root_requests; /* those that make the chroot */
    int in_flight;             /* of the sent ones, those without an answer */
    uint64_t submitted;
    bool is_open; /* there is a handle */
    bool is_connected;
    bool is_stuck; /* the client takes no more calls: the session is ending */
    bool root_is_made;
    int root_pending;  /* creations of the chroot's nodes that are out */
    enum err root_err; /* why it cannot be made */
    enum err over;     /* what calls get once the session has ended */
    int64_t lost_ns;   /* since when there is no connection */
    struct io_timer timer;
    int64_t retry_ns;
    struct io_job job;
    bool job_runs;
    void (*closed)(void *ctx); /* the owner's, while it closes */
    void *closed_ctx;
    /* Shared with the client's threads. */
    pthread_mutex_t lock;
    struct list notices;
    struct io_msg wake;
    bool is_woken; /* `wake` is posted, or its function runs */
};

static struct zookeeper *zookeeper_of(struct keeper *k)
{
    return CONTAINER_OF(k, struct zookeeper, keeper);
}

/* ---- The client's threads. */

static void post_wake(struct zookeeper *k)
{
    pthread_mutex_lock(&k->lock);
    bool is_woken = k->is_woken;

    k->is_woken = true;
    pthread_mutex_unlock(&k->lock);
    if (!is_woken)
        io_post(k->keeper.loop, &k->wake);
}

static void post(struct zookeeper *k, struct notice *n)
{
    pthread_mutex_lock(&k->lock);
    list_push_back(&k->notices, &n->node);
    pthread_mutex_unlock(&k->lock);
    post_wake(k);
}

/* Of the session and of all watches: the client tells both in the same way. */
static void told(zhandle_t *handle, int type, int state, const char *path, void *ctx)
{
    bool is_state = type == ZOO_SESSION_EVENT;
    struct notice *n = xcalloc(1, sizeof(*n));

    n->kind = is_state ? NOTICE_STATE : NOTICE_EVENT;
    n->code = is_state ? state : type;
    n->session = is_state ? zoo_client_id(handle)->client_id : 0;
    n->path = is_state ? NULL : xstrdup(path);
    post(ctx, n);
}

static void be_silent(const char *message)
{
    (void)message;
}

static struct request *request_of(const void *data)
{
    return (struct request *)(uintptr_t)data;
}

static void answer(struct request *r, int code)
{
    r->notice.code = code;
    post(r->keeper, &r->notice);
}

static struct keeper_stat stat_of(const struct Stat *stat)
{
    if (!stat)
        return (struct keeper_stat){0};
    return (struct keeper_stat){
        .created_zxid = stat->czxid,
        .modified_zxid = stat->mzxid,
        .version = stat->version,
        .children_version = stat->cversion,
        .children_count = stat->numChildren,
        .ephemeral_owner = stat->ephemeralOwner,
    };
}

static void got_data(int code, const char *value, int size, const struct Stat *stat,
                     const void *data)
{
    struct request *r = request_of(data);

    r->call->stat = stat_of(stat);
    if (code == ZOK)
        r->call->data =
            tree_data_copy((struct bytes){.p = (const uint8_t *)value, .n = MAX(size, -1)});
    answer(r, code);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void got_children(int code, const struct String_vector *names, const struct Stat *stat,
                         const void *data)
{
    struct request *r = request_of(data);
    struct keeper_call *call = r->call;

    call->stat = stat_of(stat);
    call->children_count = names ? names->count : 0;
    if (call->children_count > 0) {
        call->children = xcalloc((size_t)call->children_count, sizeof(*call->children));
        for (int i = 0; i < call->children_count; i++)
            call->children[i] = xstrdup(names->data[i]);
        qsort(call->children, (size_t)call->children_count, sizeof(char *), compare_names);
    }
    answer(r, code);
}

static void got_stat(int code, const struct Stat *stat, const void *data)
{
    struct request *r = request_of(data);

    r->call->stat = stat_of(stat);
    answer(r, code);
}

/* A creation alone: the one that is told the node's whole state. */
static void created(int code, const char *path, const struct Stat *stat, const void *data)
{
    struct request *r = request_of(data);

    r->results[0].err = code;
    if (code == ZOK) {
        r->stats[0] = *stat;
        snprintf(r->results[0].value, (size_t)r->results[0].valuelen, "%s", path);
    }
    answer(r, code);
}

static void finished(int code, const void *data)
{
    answer(request_of(data), code);
}

static void root_made(int code, const char *path, const void *data)
{
    (void)path;
    answer(request_of(data), code);
}

/* ---- Paths. */

static char *path_to_service(const struct zookeeper *k, const char *path)
{
    bool is_root = strcmp(path, "/") == 0;

    return xasprintf("%s%s", k->place.chroot, is_root && *k->place.chroot ? "" : path);
}

/* NULL: not one of ours. */
static const char *path_from_service(const struct zookeeper *k, const char *path)
{
    size_t n = strlen(k->place.chroot);

    if (strncmp(path, k->place.chroot, n) != 0)
        return NULL;
    return path[n] ? path + n : "/";
}

/* ---- Errors. */

static enum err err_of(int code)
{
    switch (code) {
    case ZOK: return ERR_NONE;
    case ZNONODE: return ERR_NOT_FOUND;
    case ZNODEEXISTS: return ERR_EXISTS;
    case ZBADVERSION: return ERR_BAD_VERSION;
    case ZNOTEMPTY: return ERR_NOT_EMPTY;
    case ZNOCHILDRENFOREPHEMERALS:
    case ZBADARGUMENTS: return ERR_INVALID_ARG;
    case ZNOAUTH:
    case ZINVALIDACL:
    case ZAUTHFAILED: return ERR_ACCESS;
    case ZSESSIONEXPIRED:
    case ZCLOSING:
    case ZINVALIDSTATE: return ERR_CANCELLED;
    default: return ERR_IO;
    }
}

/*
 * The answer did not come: the connection broke, or its peer fell silent. Or the service says that
 * it has not done it and that it may be asked again.
 */
static bool is_lost(int code)
{
    return code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT || code == ZRUNTIMEINCONSISTENCY ||
           code == ZSYSTEMERROR || code == ZSESSIONMOVED || code == ZTHROTTLEDOP;
}

/* ---- Requests. */

static void request_free(struct request *r)
{
    free(r->path);
    free(r->results);
    free(r->stats);
    free(r);
}

static struct request *request_new(struct zookeeper *k, struct keeper_call *call)
{
    struct request *r = xcalloc(1, sizeof(*r));

    assert(!k->closed);
    r->keeper = k;
    r->call = call;
    r->number = ++k->submitted;
    return r;
}

/* What a multi has reserved for the paths that the service chooses. */
static void ops_reset(struct request *r, enum err err)
{
    for (int i = 0; i < r->op_count; i++) {
        free(r->ops[i].created_path);
        r->ops[i].created_path = NULL;
        r->ops[i].stat = (struct keeper_stat){0};
        r->ops[i].err = err;
    }
    free(r->results);
    free(r->stats);
    r->results = NULL;
    r->stats = NULL;
}

static void watch_give_back(struct request *r)
{
    if (r->watch)
        watches_remove(&r->keeper->watches, r->watch);
    r->watch = NULL;
}

/* The call ends without results. */
static void refuse(struct request *r, enum err err)
{
    assert(err);
    keeper_call_release(r->call);
    r->call->stat = (struct keeper_stat){0};
    r->call->err = err;
    watch_give_back(r);
    ops_reset(r, err);
    r->is_done = true;
}

/* ---- Sending. */

static int send_read(struct zookeeper *k, struct request *r)
{
    watcher_fn fn = r->watch ? told : NULL;

    switch (r->kind) {
    case KEEPER_READ_GET: return zoo_awget(k->handle, r->path, fn, k, got_data, r);
    case KEEPER_READ_CHILDREN:
        return zoo_awget_children2(k->handle, r->path, fn, k, got_children, r);
    case KEEPER_READ_EXISTS: return zoo_awexists(k->handle, r->path, fn, k, got_stat, r);
    }
    UNREACHABLE();
}

static int create_mode(const struct keeper_op *op)
{
    if (op->is_sequential)
        return op->is_ephemeral ? ZOO_EPHEMERAL_SEQUENTIAL : ZOO_PERSISTENT_SEQUENTIAL;
    return op->is_ephemeral ? ZOO_EPHEMERAL : ZOO_PERSISTENT;
}

static void reserve_path(zoo_op_result_t *result, struct keeper_op *op, const char *path)
{
    size_t n = strlen(path) + SEQUENCE_DIGITS + 2;

    op->created_path = xcalloc(1, n);
    result->value = op->created_path;
    result->valuelen = (int)n;
}

static void op_to_client(zoo_op_t *to, const struct keeper_op *op, const char *path,
                         const zoo_op_result_t *result, struct Stat *stat)
{
    const char *data = (const char *)op->data.p;

    switch (op->kind) {
    case KEEPER_CHECK: zoo_check_op_init(to, path, op->version); return;
    case KEEPER_CREATE:
        zoo_create_op_init(to, path, data, op->data.n, &ZOO_OPEN_ACL_UNSAFE, create_mode(op),
                           result->value, result->valuelen);
        return;
    case KEEPER_SET: zoo_set_op_init(to, path, data, op->data.n, op->version, stat); return;
    case KEEPER_DELETE: zoo_delete_op_init(to, path, op->version); return;
    }
}

static int send_many(struct zookeeper *k, struct request *r, char **paths)
{
    zoo_op_t *ops = xcalloc((size_t)r->op_count, sizeof(*ops));

    for (int i = 0; i < r->op_count; i++)
        op_to_client(&ops[i], &r->ops[i], paths[i], &r->results[i], &r->stats[i]);
    int code = zoo_amulti(k->handle, r->op_count, ops, r->results, finished, r);

    free(ops);
    return code;
}

static int send_multi(struct zookeeper *k, struct request *r)
{
    size_t n = (size_t)r->op_count;
    char **paths = xcalloc(n, sizeof(*paths));
    struct keeper_op *op = r->ops;
    int code;

    r->results = xcalloc(n, sizeof(*r->results));
    r->stats = xcalloc(n, sizeof(*r->stats));
    for (size_t i = 0; i < n; i++) {
        paths[i] = path_to_service(k, r->ops[i].path);
        if (r->ops[i].kind == KEEPER_CREATE)
            reserve_path(&r->results[i], &r->ops[i], paths[i]);
    }
    if (n == 1 && op->kind == KEEPER_CREATE)
        code = zoo_acreate2(k->handle, paths[0], (const char *)op->data.p, op->data.n,
                            &ZOO_OPEN_ACL_UNSAFE, create_mode(op), created, r);
    else
        code = send_many(k, r, paths);
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
    if (code != ZOK)
        ops_reset(r, ERR_NONE);
    return code;
}

/* Hands a call to the client; false: it takes none until the state changes. */
static bool hand_over(struct zookeeper *k, struct request *r)
{
    if (is_unrecoverable(k->handle)) {
        k->is_stuck = true;
        return false;
    }
    int code = r->path ? send_read(k, r) : send_multi(k, r);

    if (code == ZBADARGUMENTS) {
        refuse(r, ERR_INVALID_ARG);
        return true;
    }
    k->is_stuck = code != ZOK;
    k->in_flight += code == ZOK;
    return code == ZOK;
}

static bool may_send(const struct zookeeper *k)
{
    return k->is_connected && !k->is_stuck && k->in_flight < k->in_flight_max;
}

/* Moves calls from the waiting ones to the sent ones, in order. */
static void dispatch(struct zookeeper *k)
{
    struct request *r;

    while ((r = LIST_FIRST(&k->waiting, struct request, node))) {
        if (k->over && !r->is_done)
            refuse(r, k->over);
        if (!r->is_done && (!may_send(k) || !hand_over(k, r)))
            return;
        list_remove(&r->node);
        list_push_back(&k->sent, &r->node);
        if (r->is_done)
            post_wake(k); /* it is told from there */
    }
}

static void submit(struct zookeeper *k, struct request *r)
{
    list_push_back(&k->waiting, &r->node);
    dispatch(k);
}

static void zookeeper_read(struct keeper *keeper, enum keeper_read_kind kind, const char *path,
                           struct keeper_watch *watch, struct keeper_call *call)
{
    struct zookeeper *k = zookeeper_of(keeper);
    struct request *r = request_new(k, call);

    r->kind = kind;
    r->path = path_to_service(k, path);
    if (!tree_path_is_valid(path)) {
        refuse(r, ERR_INVALID_ARG);
    } else if (watch) {
        r->watch = watch;
        watch->_keeper = keeper;
        watches_add(&k->watches, watch, path);
    }
    submit(k, r);
}

/* What the service would not answer as keeper.h says. */
static enum err check_op(const struct keeper_op *op)
{
    if (!tree_path_is_valid(op->path))
        return ERR_INVALID_ARG;
    if (op->data.n > KEEPER_DATA_BYTES_MAX)
        return ERR_LIMIT;
    if (strcmp(op->path, "/") != 0)
        return ERR_NONE;
    if (op->kind == KEEPER_CREATE)
        return ERR_EXISTS;
    return op->kind == KEEPER_DELETE ? ERR_INVALID_ARG : ERR_NONE;
}

static void zookeeper_multi(struct keeper *keeper, struct keeper_op *ops, int op_count,
                            struct keeper_call *call)
{
    struct zookeeper *k = zookeeper_of(keeper);
    struct request *r = request_new(k, call);

    r->ops = ops;
    r->op_count = op_count;
    for (int i = 0; i < op_count; i++)
        ops[i].created_path = NULL;
    for (int i = 0; i < op_count && !r->is_done; i++) {
        enum err err = check_op(&ops[i]);

        if (!err)
            continue;
        refuse(r, err);
        ops_reset(r, ERR_CANCELLED);
        ops[i].err = err;
        call->failed_op = i;
    }
    submit(k, r);
}

static void forget_watch(struct list *requests, const struct keeper_watch *w)
{
    LIST_EACH (l, requests) {
        struct request *r = LIST_ENTRY(l, struct request, node);

        if (r->watch == w)
            r->watch = NULL;
    }
}

static void zookeeper_unwatch(struct keeper *keeper, struct keeper_watch *watch)
{
    struct zookeeper *k = zookeeper_of(keeper);

    forget_watch(&k->waiting, watch);
    forget_watch(&k->sent, watch);
    watches_remove(&k->watches, watch);
}

/* ---- Answers. */

/* Behind all that was submitted before it and still waits. */
static void wait_again(struct zookeeper *k, struct request *r)
{
    list_remove(&r->node);
    LIST_EACH (l, &k->waiting)
        if (LIST_ENTRY(l, struct request, node)->number > r->number) {
            list_insert_before(l, &r->node);
            return;
        }
    list_push_back(&k->waiting, &r->node);
}

static void lost(struct zookeeper *k, struct request *r)
{
    if (r->path)
        wait_again(k, r);
    else
        refuse(r, ERR_UNKNOWN);
}

static void settle_read(struct request *r, enum err err)
{
    r->call->err = err;
    if (!r->watch)
        return;
    if (err && !(err == ERR_NOT_FOUND && r->kind == KEEPER_READ_EXISTS)) {
        watch_give_back(r);
        return;
    }
    watches_arm(r->watch, r->kind == KEEPER_READ_CHILDREN);
}

/* The operations of a multi that failed: what is behind the one that did was not looked at. */
static void settle_failure(struct request *r, enum err err)
{
    int failed = 0;

    while (failed < r->op_count - 1 &&
           (r->results[failed].err == ZOK || r->results[failed].err == ZRUNTIMEINCONSISTENCY))
        failed++;
    ops_reset(r, ERR_CANCELLED);
    r->ops[failed].err = err;
    r->call->failed_op = failed;
    r->call->err = err;
}

/* The calls of a multi share one zxid, which the client tells only of nodes that were set. */
static int64_t zxid_of(const struct request *r)
{
    int i = 0;

    while (i < r->op_count - 1 && r->stats[i].mzxid == 0)
        i++;
    return r->stats[i].mzxid;
}

static struct keeper_stat op_stat(const struct request *r, int i, int64_t zxid)
{
    const struct keeper_op *op = &r->ops[i];

    if (op->kind == KEEPER_CHECK)
        return (struct keeper_stat){.version = op->version};
    if (op->kind != KEEPER_CREATE || r->stats[i].mzxid)
        return stat_of(&r->stats[i]);
    return (struct keeper_stat){
        .created_zxid = zxid,
        .modified_zxid = zxid,
        .ephemeral_owner = op->is_ephemeral ? r->keeper->keeper.session_id : 0,
    };
}

/* The path of a sequential node becomes ours, without the chroot. */
static void keep_path(struct zookeeper *k, struct keeper_op *op, struct keeper_call *call)
{
    char *from_service = op->created_path;
    const char *path = op->is_sequential ? path_from_service(k, from_service) : NULL;

    op->created_path = path ? xstrdup(path) : NULL;
    free(from_service);
    if (op->created_path)
        call->_created[call->_created_count++] = op->created_path;
}

static void settle_success(struct zookeeper *k, struct request *r)
{
    int64_t zxid = zxid_of(r);

    r->call->_created = xcalloc((size_t)r->op_count, sizeof(*r->call->_created));
    for (int i = 0; i < r->op_count; i++) {
        r->ops[i].err = ERR_NONE;
        r->ops[i].stat = op_stat(r, i, zxid);
        keep_path(k, &r->ops[i], r->call);
    }
}

static void answered(struct zookeeper *k, struct request *r)
{
    enum err err = err_of(r->notice.code);

    assert(k->in_flight > 0);
    k->in_flight--;
    if (k->closed)
        return; /* it is cancelled with all the others */
    if (is_lost(r->notice.code)) {
        lost(k, r);
        return;
    }
    r->is_done = true;
    if (r->path)
        settle_read(r, err);
    else if (err == ERR_CANCELLED)
        refuse(r, err);
    else if (err)
        settle_failure(r, err);
    else
        settle_success(k, r);
}

/* Until one is met that has no answer yet. */
static void tell_done(struct zookeeper *k)
{
    struct request *r;

    while (!k->closed && (r = LIST_FIRST(&k->sent, struct request, node)) && r->is_done) {
        struct keeper_call *call = r->call;

        list_remove(&r->node);
        request_free(r);
        call->done(call);
    }
}

/* ---- Events. */

static void fire(struct zookeeper *k, const struct notice *n, enum keeper_event_kind kind)
{
    const char *path = path_from_service(k, n->path);
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

/* The nodes of the chroot from the top down, all at once: those that exist are no failure. */
static void make_root(struct zookeeper *k)
{
    k->root_err = ERR_NONE;
    for (const char *p = k->place.chroot; *p;) {
        struct request *r = request_new(k, NULL);

        p += 1 + strcspn(p + 1, "/");
        r->notice.kind = NOTICE_ROOT;
        r->path = xstrndup(k->place.chroot, (size_t)(p - k->place.chroot));
        k->root_pending++;
        list_push_back(&k->root_requests, &r->node);
        if (zoo_acreate(k->handle, r->path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT,
                        root_made, r) != ZOK)
            answer(r, ZCONNECTIONLOSS);
    }
    if (k->root_pending == 0)
        become_connected(k);
}

static void root_answered(struct zookeeper *k, struct request *r)
{
    enum err err = is_lost(r->notice.code) ? ERR_AGAIN : err_of(r->notice.code);

    /* Who may not create may still use what others have created. */
    if (err && err != ERR_EXISTS && err != ERR_ACCESS)
        k->root_err = err;
    if (k->root_err && k->root_err != ERR_AGAIN)
        trace_error("keeper.chroot_failed", "path=%s error=%s", r->path, err_name(err));
    list_remove(&r->node);
    request_free(r);
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
    case NOTICE_ANSWER: answered(k, CONTAINER_OF(n, struct request, notice)); return;
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
        tell_done(k);
    }
    if (k->closed)
        return;
    dispatch(k);
    tell_done(k);
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
    k->handle =
        zookeeper_init2(servers, told, k->timeout_ms, NULL, k, ZOO_NO_LOG_CLIENTENV, be_silent);
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
        request_free(LIST_ENTRY(l, struct request, node));
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

        refuse(r, ERR_CANCELLED);
        call->failed_op = -1;
        request_free(r);
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
    post_wake(k);
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
    post_wake(k);
}

static void refresh_done(struct io_job *job)
{
    struct zookeeper *k = zookeeper_of_job(job);

    k->job_runs = false;
    post_wake(k);
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
        tell_done(k); /* refused ones */
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

        refuse(r, ERR_CANCELLED);
        request_free(r);
    }
    zookeeper_free(k);
}

static const struct keeper_vtable zookeeper_vtable = {
    .read = zookeeper_read,
    .multi = zookeeper_multi,
    .unwatch = zookeeper_unwatch,
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
    post_wake(k);
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
