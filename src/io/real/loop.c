/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event loop. A turn collects events, calls back what is ready, runs the messages that had
 * arrived, and does so a few times over with what these have set off: most operations succeed at
 * once, a loop posts to itself what is to follow, and asking the kernel for news in between would
 * cost as much as the operation.
 * The number of rounds is fixed and each is bounded by what there was at its beginning, so a turn
 * ends and nobody starves.
 *
 * Descriptors are registered once, edge-triggered: arming and disarming would be a system call for
 * each operation. So an event handler only notes what became possible, and tries what waits for it.
 *
 * Idle, a loop sleeps until its next timer, or until somebody posts (waker.c).
 *
 * Retiring: a global epoch counts retirements. A loop notes the epoch when it begins a turn, and
 * "asleep" between turns. What was retired as number e may go once no loop is in a turn that it
 * began before e. The loop reads the epoch by a read-modify-write, for this reason: of the two
 * increments one is first. If it is the retirer's, the loop has seen the pointer unpublished; if
 * it is the loop's, the retirer sees that the loop is in a turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/real_int.h"

#define EVENTS_A_TURN 64
#define ROUNDS 5
#define RETIRE_POLL_NS 1000000

static _Thread_local struct io_loop *current;

struct io_loop *io_loop_current(void)
{
    return current;
}

/* ---- operations -------------------------------------------------------------------------- */

void op_begin(struct io_op *op, struct io_loop *loop, enum op_kind kind)
{
    assert(loop == current);
    assert(op->_state == OP_IDLE && op->done);
    op->err = ERR_NONE;
    op->_loop = loop;
    op->_kind = (uint8_t)kind;
    op->_state = OP_WAITING;
    list_init(&op->_ready);
}

void op_ready(struct io_op *op, enum err err)
{
    assert(op->_state == OP_WAITING);
    op->err = err;
    op->_state = OP_READY;
    list_push_back(&op->_loop->ready, &op->_ready);
}

bool io_op_is_pending(const struct io_op *op)
{
    return op->_state != OP_IDLE;
}

/* Takes the operation from where it waits; harmless when it waits no more. */
static void forget(struct io_op *op)
{
    switch ((enum op_kind)op->_kind) {
    case OP_TIMER:
        heap_remove(&op->_loop->timers, &CONTAINER_OF(op, struct io_timer, op)->_node);
        break;
    case OP_SIGNAL: op->_loop->signal = NULL; break;
    case OP_ACCEPT: accept_forget(CONTAINER_OF(op, struct io_accept, op)); break;
    case OP_RECV: /* as OP_SEND */
    case OP_SEND: conn_forget(op); break;
    case OP_WATCH: watch_forget(CONTAINER_OF(op, struct io_watch, op)); break;
    case OP_CONNECT: /* as OP_CONN_FREE: nothing points at it */
    case OP_CONN_FREE: break;
    }
}

void io_cancel(struct io_op *op)
{
    if (op->_state != OP_WAITING)
        return;
    assert(op->_loop == current);
    if (op->_kind == OP_CONNECT)
        connect_abandon(CONTAINER_OF(op, struct io_connect, op));
    else
        forget(op);
    op_ready(op, ERR_CANCELLED);
}

/* The last act of io on an operation: its owner may free it or submit it again. */
static void call_back(struct io_op *op)
{
    forget(op);
    op->_state = OP_IDLE;
    op->done(op);
}

static void call_back_ready(struct io_loop *loop)
{
    struct list batch;
    struct list *node;

    list_init(&batch);
    list_splice_back(&batch, &loop->ready);
    while ((node = list_pop_front(&batch)))
        call_back(LIST_ENTRY(node, struct io_op, _ready));
}

/* ---- timers ------------------------------------------------------------------------------ */

void io_timer_set(struct io_loop *loop, struct io_timer *t, int64_t deadline_ns)
{
    if (t->op._state == OP_IDLE) {
        op_begin(&t->op, loop, OP_TIMER);
    } else {
        assert(loop == current && t->op._loop == loop);
        list_remove(&t->op._ready);
        heap_remove(&loop->timers, &t->_node);
        t->op._state = OP_WAITING;
    }
    heap_push(&loop->timers, &t->_node, deadline_ns);
}

static void expire_timers(struct io_loop *loop)
{
    struct heap_node *node;

    while ((node = heap_min(&loop->timers)) && node->key <= loop->mono_ns) {
        heap_remove(&loop->timers, node);
        op_ready(&LIST_ENTRY(node, struct io_timer, _node)->op, ERR_NONE);
    }
}

/* ---- messages ---------------------------------------------------------------------------- */

void io_post(struct io_loop *to, struct io_msg *msg)
{
    assert(msg->fn);
    if (mailbox_put(&to->mailbox, msg))
        waker_wake(&to->waker);
}

static void run_messages(struct io_loop *loop)
{
    struct io_msg *chain = mailbox_take(&loop->mailbox);
    struct io_msg *msg;

    while ((msg = io_msg_take(&chain)))
        msg->fn(msg);
}

/* ---- retired memory ---------------------------------------------------------------------- */

void io_retire(struct io_loop *loop, struct io_retired *r)
{
    assert(loop == current);
    r->_next = NULL;
    r->_after = atomic_fetch_add(&loop->io->epoch, 1) + 1;
    if (loop->retired)
        loop->retired_last->_next = r;
    else
        loop->retired = r;
    loop->retired_last = r;
}

static void enter_turn(struct io_loop *loop)
{
    uint64_t epoch;

    atomic_store(&loop->seen, SEEN_ENTERING);
    epoch = atomic_fetch_add(&loop->io->epoch, 0);
    atomic_store(&loop->seen, epoch);
}

/* Whether every other loop has finished the turn in which it may have seen the oldest. */
static bool oldest_may_go(const struct io_loop *loop)
{
    const struct io *io = loop->io;

    for (int i = 0; i < atomic_load(&io->loop_count); i++)
        if (io->loops[i] != loop && atomic_load(&io->loops[i]->seen) < loop->retired->_after)
            return false;
    return true;
}

static struct io_retired *take_retired(struct io_loop *loop)
{
    struct io_retired *r = loop->retired;

    if (r)
        loop->retired = r->_next;
    return r;
}

/* Before the first callback of a turn, when we hold nothing ourselves. */
static void free_retired(struct io_loop *loop)
{
    while (loop->retired && oldest_may_go(loop)) {
        struct io_retired *r = take_retired(loop);

        r->free_fn(r);
    }
}

/* ---- turns ------------------------------------------------------------------------------- */

static bool has_work(struct io_loop *loop)
{
    return !list_is_empty(&loop->ready) || !mailbox_is_empty(&loop->mailbox) ||
           atomic_load(&loop->io->stop) || (loop->retired && oldest_may_go(loop));
}

/* How long nothing is due; -1 means for ever. */
static int64_t idle_ns(const struct io_loop *loop)
{
    const struct heap_node *timer = heap_min(&loop->timers);
    int64_t now = clock_mono_ns();
    int64_t wait = -1;

    if (timer)
        wait = timer->key > now ? timer->key - now : 0;
    /* Others are in a turn, which is short. They do not know that we wait for its end. */
    if (loop->retired && (wait < 0 || wait > RETIRE_POLL_NS))
        wait = RETIRE_POLL_NS;
    return wait;
}

static int wait_for_events(struct io_loop *loop, struct epoll_event *events)
{
    struct timespec timeout = {0};
    int64_t wait = 0;
    int n;

    atomic_store(&loop->seen, SEEN_ASLEEP);
    atomic_store(&loop->waker.asleep, true);
    if (has_work(loop))
        atomic_store(&loop->waker.asleep, false);
    else
        wait = idle_ns(loop);
    timeout.tv_sec = wait / 1000000000;
    timeout.tv_nsec = wait % 1000000000;
    n = epoll_pwait2(loop->epoll_fd, events, EVENTS_A_TURN, wait < 0 ? NULL : &timeout, NULL);
    assert(n >= 0 || errno == EINTR);
    atomic_store(&loop->waker.asleep, false);
    enter_turn(loop);
    return MAX(n, 0);
}

static void read_clocks(struct io_loop *loop)
{
    loop->mono_ns = clock_mono_ns();
    loop->wall_ms = clock_wall_ms();
}

static void take_turn(struct io_loop *loop)
{
    struct epoll_event events[EVENTS_A_TURN];
    int n = wait_for_events(loop, events);

    read_clocks(loop);
    for (int i = 0; i < n; i++) {
        struct source *source = events[i].data.ptr;

        source->on_event(source, events[i].events);
    }
    /* From here on users run, and may free what an event above points at. */
    free_retired(loop);
    expire_timers(loop);
    for (int i = 0; i < ROUNDS; i++) {
        call_back_ready(loop);
        run_messages(loop);
        if (list_is_empty(&loop->ready) && mailbox_is_empty(&loop->mailbox))
            break;
    }
}

void loop_run(struct io_loop *loop)
{
    struct trace *trace_before = trace_set_current(&loop->trace);

    assert(!current);
    current = loop;
    enter_turn(loop);
    read_clocks(loop);
    if (loop->start)
        loop->start(loop->ctx);
    while (!atomic_load(&loop->io->stop))
        take_turn(loop);
    atomic_store(&loop->seen, SEEN_ASLEEP);
    current = NULL;
    trace_set_current(trace_before);
}

/* ---- life -------------------------------------------------------------------------------- */

void loop_watch(struct io_loop *loop, int fd, uint32_t events, struct source *source)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = source};
    int failed = epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event);

    assert(!failed);
}

/* Being awake is all that the wake-up is for. */
static void on_wakeup(struct source *source, uint32_t events)
{
    (void)source;
    (void)events;
}

struct io_loop *loop_new(struct io *io, const char *name, void (*start)(void *ctx), void *ctx)
{
    struct io_loop *loop = xcalloc(1, sizeof(*loop));

    loop->io = io;
    snprintf(loop->name, sizeof(loop->name), "%s", name);
    loop->start = start;
    loop->ctx = ctx;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    assert(loop->epoll_fd >= 0);
    waker_init(&loop->waker, EFD_NONBLOCK);
    loop->wakeup.on_event = on_wakeup;
    loop_watch(loop, loop->waker.fd, EPOLLIN, &loop->wakeup);
    heap_init(&loop->timers);
    list_init(&loop->ready);
    list_init(&loop->conns);
    list_init(&loop->resolves);
    list_init(&loop->watches);
    list_init(&loop->points);
    loop->signal_fd = -1;
    loop->seen = SEEN_ASLEEP;
    trace_init_from(&loop->trace, io);
    return loop;
}

static void free_conns(struct io_loop *loop)
{
    LIST_EACH_SAFE (node, &loop->conns)
        conn_free(LIST_ENTRY(node, struct io_conn, node));
}

void loop_free(struct io_loop *loop)
{
    struct io_retired *r;

    while ((r = take_retired(loop)))
        r->free_fn(r);
    connect_drop_resolves(loop);
    free_conns(loop);
    watch_drop_all(loop);
    listen_drop_points(loop);
    signal_fini(loop);
    heap_fini(&loop->timers);
    trace_fini(&loop->trace);
    waker_fini(&loop->waker);
    close(loop->epoll_fd);
    free(loop);
}
