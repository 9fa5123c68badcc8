/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a session of ZooKeeper: handed to its C client, and what comes back.
 *
 * A call is `waiting` until there is a connection and fewer than in_flight_max calls are out, then
 * `sent`. The service answers in order, so the first of the sent ones is always the next to be
 * told. With a connection the calls that are out are lost. A lost read is asked again, as if it had
 * been submitted when the connection came back; a lost multi may have happened: ERR_UNKNOWN. So
 * ERR_UNKNOWN is never said of a multi that still waited here.
 *
 * What the client does, and how we live with it:
 *  - its own chroot frees memory twice when a multi meets an expired session: paths get theirs
 * here;
 *  - it tells the state of a node that a multi has created only when it is asked to create that one
 *    alone: so a multi of one creation is such a request;
 *  - every attempt to connect that fails ends all calls that it holds: it is given none meanwhile.
 */
#include "keeper/zookeeper_calls_int.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "keeper/tree_int.h"

#define SEQUENCE_DIGITS 10

/* ---- What the client's threads call back. */

static struct request *request_of(const void *data)
{
    return (struct request *)(uintptr_t)data;
}

void zookeeper__answer(struct request *r, int code)
{
    r->notice.code = code;
    zookeeper__post(r->keeper, &r->notice);
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
    zookeeper__answer(r, code);
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
    zookeeper__answer(r, code);
}

static void got_stat(int code, const struct Stat *stat, const void *data)
{
    struct request *r = request_of(data);

    r->call->stat = stat_of(stat);
    zookeeper__answer(r, code);
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
    zookeeper__answer(r, code);
}

static void finished(int code, const void *data)
{
    zookeeper__answer(request_of(data), code);
}

/* ---- Paths. */

static char *path_to_service(const struct zookeeper *k, const char *path)
{
    bool is_root = strcmp(path, "/") == 0;

    return xasprintf("%s%s", k->place.chroot, is_root && *k->place.chroot ? "" : path);
}

const char *zookeeper__path(const struct zookeeper *k, const char *path)
{
    size_t n = strlen(k->place.chroot);

    if (strncmp(path, k->place.chroot, n) != 0 || (n > 0 && path[n] && path[n] != '/'))
        return NULL;
    return path[n] ? path + n : "/";
}

/* ---- Errors. */

enum err zookeeper__err_of(int code)
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

bool zookeeper__is_lost(int code)
{
    return code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT || code == ZRUNTIMEINCONSISTENCY ||
           code == ZSYSTEMERROR || code == ZSESSIONMOVED || code == ZTHROTTLEDOP;
}

/* ---- Requests. */

void zookeeper__request_free(struct request *r)
{
    free(r->path);
    free(r->results);
    free(r->stats);
    free(r);
}

struct request *zookeeper__request_new(struct zookeeper *k, struct keeper_call *call)
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

void zookeeper__refuse(struct request *r, enum err err)
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
    watcher_fn fn = r->watch ? zookeeper__told : NULL;

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
        zookeeper__refuse(r, ERR_INVALID_ARG);
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

void zookeeper__dispatch(struct zookeeper *k)
{
    struct request *r;

    while ((r = LIST_FIRST(&k->waiting, struct request, node))) {
        if (k->over && !r->is_done)
            zookeeper__refuse(r, k->over);
        if (!r->is_done && (!may_send(k) || !hand_over(k, r)))
            return;
        list_remove(&r->node);
        list_push_back(&k->sent, &r->node);
        if (r->is_done)
            zookeeper__wake(k); /* it is told from there */
    }
}

static void submit(struct zookeeper *k, struct request *r)
{
    list_push_back(&k->waiting, &r->node);
    zookeeper__dispatch(k);
}

void zookeeper__read(struct keeper *keeper, enum keeper_read_kind kind, const char *path,
                     struct keeper_watch *watch, struct keeper_call *call)
{
    struct zookeeper *k = zookeeper_of(keeper);
    struct request *r = zookeeper__request_new(k, call);

    r->kind = kind;
    r->path = path_to_service(k, path);
    if (!tree_path_is_valid(path)) {
        zookeeper__refuse(r, ERR_INVALID_ARG);
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

void zookeeper__multi(struct keeper *keeper, struct keeper_op *ops, int op_count,
                      struct keeper_call *call)
{
    struct zookeeper *k = zookeeper_of(keeper);
    struct request *r = zookeeper__request_new(k, call);

    r->ops = ops;
    r->op_count = op_count;
    for (int i = 0; i < op_count; i++)
        ops[i].created_path = NULL;
    for (int i = 0; i < op_count && !r->is_done; i++) {
        enum err err = check_op(&ops[i]);

        if (!err)
            continue;
        zookeeper__refuse(r, err);
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

void zookeeper__unwatch(struct keeper *keeper, struct keeper_watch *watch)
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
        zookeeper__refuse(r, ERR_UNKNOWN);
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
    const char *path = op->is_sequential ? zookeeper__path(k, from_service) : NULL;

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

void zookeeper__answered(struct zookeeper *k, struct request *r)
{
    enum err err = zookeeper__err_of(r->notice.code);

    assert(k->in_flight > 0);
    k->in_flight--;
    if (k->closed)
        return; /* it is cancelled with all the others */
    if (zookeeper__is_lost(r->notice.code)) {
        lost(k, r);
        return;
    }
    r->is_done = true;
    if (r->path)
        settle_read(r, err);
    else if (err == ERR_CANCELLED)
        zookeeper__refuse(r, err);
    else if (err)
        settle_failure(r, err);
    else
        settle_success(k, r);
}

void zookeeper__tell_done(struct zookeeper *k)
{
    struct request *r;

    while (!k->closed && (r = LIST_FIRST(&k->sent, struct request, node)) && r->is_done) {
        struct keeper_call *call = r->call;

        list_remove(&r->node);
        zookeeper__request_free(r);
        call->done(call);
    }
}
