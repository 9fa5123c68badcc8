/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session of a tree in this process.
 *
 * Order is the whole point. A call has its effect on the tree when it is submitted, so a read sees
 * every multi before it and none behind it; its result is then a report at the end of one queue,
 * and so are the events that a multi fires (before the multi's own result) and changes of state.
 * The queue is told from its head, by a message to the loop, and a report waits until the commit
 * that was the last one submitted when it was made is durable. So nobody sees what could still be
 * lost, though the tree itself runs ahead, and reads never wait for anything but writes that were
 * submitted before them.
 *
 * When a commit fails, the tree holds changes that are not stored: nothing is read from it again.
 */
#include "keeper/session_int.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

#define REPORTS_PER_TURN 64 /* the loop has other work */

enum report_kind {
    REPORT_CALL = 0,
    REPORT_WRITE = 1, /* a call that has changed the tree */
    REPORT_EVENT = 2,
    REPORT_CONNECTED = 3,
    REPORT_EXPIRED = 4,
    REPORT_FAILED = 5,
    REPORT_CLOSED = 6,
    REPORT_CONNECTING = 7,
};

static struct session *session_of(struct keeper *k)
{
    return CONTAINER_OF(k, struct session, keeper);
}

/* ---- The queue. */

static struct keeper_report *first_to_tell(struct session *s)
{
    struct keeper_report *r = LIST_FIRST(&s->reports, struct keeper_report, node);

    return r && !s->is_cut_off && r->after <= s->durable ? r : NULL;
}

static void wake_up(struct session *s)
{
    if (s->is_awake || !first_to_tell(s))
        return;
    s->is_awake = true;
    io_post(s->keeper.loop, &s->wake);
}

static void queue(struct session *s, struct keeper_report *r, enum report_kind kind)
{
    r->kind = (int)kind;
    r->after = s->submitted;
    list_push_back(&s->reports, &r->node);
    wake_up(s);
}

static struct keeper_call *call_of(struct keeper_report *r)
{
    return CONTAINER_OF(r, struct keeper_call, _report);
}

static bool is_call(const struct keeper_report *r)
{
    return r->kind == REPORT_CALL || r->kind == REPORT_WRITE;
}

static void tell_state(struct session *s, enum keeper_state state)
{
    if (s->keeper.events && s->keeper.events->state_changed)
        s->keeper.events->state_changed(s->keeper.ctx, state);
}

static void tell_event(struct keeper_report *r)
{
    struct keeper_watch *w = CONTAINER_OF(r, struct keeper_watch, _report);

    w->_keeper = NULL;
    w->fired(w, w->_event);
}

/* The last report: nothing of the session may be touched behind it. */
static void tell_closed(struct session *s)
{
    void (*closed)(void *ctx) = s->closed;
    void *ctx = s->closed_ctx;

    assert(list_is_empty(&s->reports));
    tell_state(s, KEEPER_CLOSED);
    s->gone(s);
    closed(ctx);
}

static void tell(struct session *s, struct keeper_report *r)
{
    switch ((enum report_kind)r->kind) {
    case REPORT_CALL:
    case REPORT_WRITE: call_of(r)->done(call_of(r)); break;
    case REPORT_EVENT: tell_event(r); break;
    case REPORT_CONNECTED: tell_state(s, KEEPER_CONNECTED); break;
    case REPORT_EXPIRED: tell_state(s, KEEPER_EXPIRED); break;
    case REPORT_FAILED: tell_state(s, KEEPER_FAILED); break;
    case REPORT_CLOSED: tell_closed(s); break;
    case REPORT_CONNECTING: tell_state(s, KEEPER_CONNECTING); break;
    }
}

static void woken(struct io_msg *msg)
{
    struct session *s = CONTAINER_OF(msg, struct session, wake);

    for (int i = 0; i < REPORTS_PER_TURN; i++) {
        struct keeper_report *r = first_to_tell(s);

        if (!r)
            break;
        list_remove(&r->node);
        bool is_last = r->kind == REPORT_CLOSED;

        tell(s, r);
        if (is_last)
            return;
    }
    s->is_awake = false;
    wake_up(s);
}

/* ---- Reads and watches. */

static void arm(struct session *s, enum keeper_read_kind kind, struct tree_node *node,
                const char *path, struct keeper_watch *w)
{
    if (!node)
        tree_watch_absent(s->tree, path, w);
    else if (kind == KEEPER_READ_CHILDREN)
        tree_watch_children(node, w);
    else
        tree_watch(node, w);
    w->_keeper = &s->keeper;
    list_push_back(&s->watches, &w->_report.node);
}

static enum err read_node(struct session *s, enum keeper_read_kind kind, const char *path,
                          struct keeper_watch *watch, struct keeper_call *call)
{
    if (!tree_path_is_valid(path))
        return ERR_INVALID_ARG;
    struct tree_node *node = tree_find(s->tree, path);

    if (watch && (node || kind == KEEPER_READ_EXISTS))
        arm(s, kind, node, path, watch);
    if (!node)
        return ERR_NOT_FOUND;
    call->stat = tree_stat(node);
    if (kind == KEEPER_READ_CHILDREN) {
        call->children = tree_children(node);
        call->children_count = node->child_count;
    } else if (kind == KEEPER_READ_GET) {
        call->data = tree_data_copy(node->rec.data);
    }
    return ERR_NONE;
}

void session_read(struct keeper *k, enum keeper_read_kind kind, const char *path,
                  struct keeper_watch *watch, struct keeper_call *call)
{
    struct session *s = session_of(k);

    assert(!s->closed);
    call->err = s->over ? s->over : read_node(s, kind, path, watch, call);
    queue(s, &call->_report, REPORT_CALL);
}

void session_unwatch(struct keeper *k, struct keeper_watch *watch)
{
    assert(watch->_keeper == k);
    tree_unwatch(watch);
    list_remove(&watch->_report.node);
    watch->_keeper = NULL;
}

static void watches_drop(struct session *s)
{
    while (!list_is_empty(&s->watches))
        session_unwatch(&s->keeper, LIST_FIRST(&s->watches, struct keeper_watch, _report.node));
}

/* A fired watch moves from its session's armed ones to the queue. */
static void events_queue(struct list *fired)
{
    struct list *l;

    while ((l = list_pop_front(fired))) {
        struct keeper_watch *w = LIST_ENTRY(l, struct keeper_watch, _node);

        list_remove(&w->_report.node);
        queue(session_of(w->_keeper), &w->_report, REPORT_EVENT);
    }
}

/* ---- Multis. */

/* The paths outlive the operations: the call owns them. */
static void keep_created(struct keeper_op *ops, int op_count, struct keeper_call *call)
{
    for (int i = 0; i < op_count; i++)
        call->_created_count += ops[i].created_path != NULL;
    if (call->_created_count == 0)
        return;
    call->_created = xcalloc((size_t)call->_created_count, sizeof(*call->_created));
    for (int i = 0, n = 0; i < op_count; i++)
        if (ops[i].created_path)
            call->_created[n++] = ops[i].created_path;
}

static void ops_refuse(struct keeper_op *ops, int op_count, enum err err)
{
    for (int i = 0; i < op_count; i++) {
        ops[i].err = err;
        ops[i].stat = (struct keeper_stat){0};
        ops[i].created_path = NULL;
    }
}

bool session_multi(struct session *s, struct keeper_op *ops, int op_count, struct keeper_call *call,
                   struct list *fired)
{
    int64_t before = s->tree->zxid;
    bool is_lost = s->loses_next || s->is_cut_off;
    enum err err = s->over ? s->over : is_lost ? ERR_UNKNOWN : ERR_NONE;

    assert(!s->closed);
    list_init(fired);
    s->loses_next = false;
    if (err) {
        ops_refuse(ops, op_count, err);
        call->err = err;
        return false;
    }
    call->err = tree_multi(s->tree, &s->owner, ops, op_count, &call->failed_op, fired);
    keep_created(ops, op_count, call);
    return s->tree->zxid != before;
}

void session_multi_end(struct session *s, struct keeper_call *call, bool has_changed,
                       struct list *fired)
{
    events_queue(fired);
    queue(s, &call->_report, has_changed ? REPORT_WRITE : REPORT_CALL);
}

/* ---- Ends. */

/* Takes a report that will not be told as it is off the queue, or makes its call fail. */
static void report_fail(struct keeper_report *r, enum err err)
{
    if (is_call(r)) {
        struct keeper_call *call = call_of(r);

        keeper_call_release(call);
        call->err = err;
        call->stat = (struct keeper_stat){0};
        call->failed_op = -1;
        return;
    }
    list_remove(&r->node);
    if (r->kind == REPORT_EVENT)
        CONTAINER_OF(r, struct keeper_watch, _report)->_keeper = NULL;
}

static void drop_nodes(struct session *s, enum err over)
{
    struct list fired;

    assert(over);
    list_init(&fired);
    s->over = over;
    watches_drop(s);
    tree_end_session(s->tree, &s->owner, &fired);
    events_queue(&fired);
}

static void end(struct session *s, enum err over, enum report_kind state)
{
    drop_nodes(s, over);
    queue(s, &s->state_report, state);
}

void session_durable(struct session *s, uint64_t commit)
{
    assert(commit > s->durable && commit <= s->submitted);
    s->durable = commit;
    wake_up(s);
}

void session_fail(struct session *s, uint64_t commit, enum err err)
{
    LIST_EACH_SAFE (l, &s->reports) {
        struct keeper_report *r = LIST_ENTRY(l, struct keeper_report, node);

        if (r->after > s->durable && r->kind != REPORT_CLOSED)
            report_fail(r, r->kind == REPORT_WRITE && r->after <= commit ? err : ERR_IO);
    }
    s->durable = s->submitted;
    if (!s->over)
        end(s, ERR_IO, REPORT_FAILED);
    wake_up(s);
}

void session_lose_answers(struct session *s)
{
    if (s->over)
        return;
    LIST_EACH (l, &s->reports) {
        struct keeper_report *r = LIST_ENTRY(l, struct keeper_report, node);

        if (r->kind == REPORT_WRITE)
            report_fail(r, ERR_UNKNOWN);
    }
    list_remove(&s->connecting_report.node);
    list_remove(&s->connected_report.node);
    queue(s, &s->connecting_report, REPORT_CONNECTING);
    queue(s, &s->connected_report, REPORT_CONNECTED);
}

void session_cut_off(struct session *s)
{
    s->is_cut_off = true;
}

void session_reach(struct session *s)
{
    s->is_cut_off = false;
    wake_up(s);
}

void session_expire(struct session *s)
{
    if (!s->over)
        end(s, ERR_CANCELLED, REPORT_EXPIRED);
}

static void queue_cancel(struct session *s)
{
    LIST_EACH_SAFE (l, &s->reports)
        report_fail(LIST_ENTRY(l, struct keeper_report, node), ERR_CANCELLED);
}

void session_close(struct session *s, void (*done)(void *ctx), void *ctx)
{
    assert(!s->closed);
    s->closed = done;
    s->closed_ctx = ctx;
    queue_cancel(s);
    if (s->over)
        queue(s, &s->state_report, REPORT_CLOSED);
    else
        end(s, ERR_CANCELLED, REPORT_CLOSED);
}

void session_fini(struct session *s)
{
    queue_cancel(s);
    watches_drop(s);
}

void session_leave(struct session *s)
{
    if (!s->over)
        drop_nodes(s, ERR_CANCELLED);
    session_fini(s);
}

/* ---- Beginning. */

void session_init(struct session *s, const struct keeper_vtable *vtable, struct tree *tree,
                  int64_t id)
{
    *s = (struct session){
        .keeper = {.vtable = vtable, .session_id = id},
        .tree = tree,
        .owner = {.id = id},
        .wake = {.fn = woken},
    };
    assert(id > 0);
    list_init(&s->owner.nodes);
    list_init(&s->watches);
    list_init(&s->reports);
    list_init(&s->connected_report.node);
    list_init(&s->connecting_report.node);
}

void session_begin(struct session *s, struct io_loop *loop, const struct keeper_events *events,
                   void *ctx)
{
    s->keeper.loop = loop;
    s->keeper.events = events;
    s->keeper.ctx = ctx;
    queue(s, &s->connected_report, REPORT_CONNECTED);
}
