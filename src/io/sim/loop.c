/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event loops without an event queue: a loop is a task that is ready while it has something to do,
 * and each time the world chooses it, it runs one callback to its end. One callback is one turn.
 *
 * A loop has three queues: completed operations, messages, retired memory. Each is first in, first
 * out (so the messages of a sender stay in order); which queue is served is a choice. Timers wait
 * in a heap of the loop, and one alarm task stands for the earliest of them.
 *
 * Retired memory needs no counters here: all loops of a world run on one thread, so when the next
 * turn of any loop begins, every turn that could have seen the memory is over.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim_int.h"

static _Thread_local struct io_loop *current;

struct io_loop *io_loop_current(void)
{
    return current;
}

struct io *io_loop_io(struct io_loop *loop)
{
    return loop->io;
}

const char *io_loop_name(const struct io_loop *loop)
{
    return loop->name;
}

static bool can_run(const struct io_loop *loop)
{
    return loop->io->is_running && !loop->io->is_dead && !loop->has_ended;
}

void sim__loop_kick(struct io_loop *loop)
{
    if (can_run(loop) && (!list_is_empty(&loop->ready) || loop->head || loop->retired))
        sim__task_ready(loop->io->host->world, &loop->task);
}

/* ---- operations ------------------------------------------------------------------------- */

void sim__op_begin(struct io_loop *loop, struct io_op *op, enum sim_op_kind kind)
{
    assert(op->done);
    assert(!io_op_is_pending(op));
    assert(current == loop);
    op->err = ERR_NONE;
    op->_loop = loop;
    op->_kind = (uint8_t)kind;
    op->_state = OP_PENDING;
    list_init(&op->_ready);
}

void sim__op_done(struct io_op *op, enum err err)
{
    assert(op->_state == OP_PENDING);
    op->err = err;
    op->_state = OP_READY;
    list_push_back(&op->_loop->ready, &op->_ready);
    sim__loop_kick(op->_loop);
}

bool io_op_is_pending(const struct io_op *op)
{
    return op->_state != OP_IDLE;
}

static void stop_waiting(struct io_op *op)
{
    switch ((enum sim_op_kind)op->_kind) {
    case OP_TIMER: {
        struct io_timer *t = CONTAINER_OF(op, struct io_timer, op);
        heap_remove(&op->_loop->timers, &t->_node);
        break;
    }
    case OP_SIGNAL: op->_loop->io->signal = NULL; break;
    case OP_ACCEPT: sim__accept_cancel(CONTAINER_OF(op, struct io_accept, op)); break;
    case OP_CONNECT: sim__connect_cancel(CONTAINER_OF(op, struct io_connect, op)); break;
    case OP_WATCH: sim__watch_forget(CONTAINER_OF(op, struct io_watch, op)); break;
    case OP_RECV:
    case OP_SEND: break; /* They wait in their connection, which looks at their state. */
    }
}

void io_cancel(struct io_op *op)
{
    if (op->_state != OP_PENDING || !sim__call(op->_loop->io))
        return;
    stop_waiting(op);
    sim__op_done(op, ERR_CANCELLED);
}

/* ---- timers ----------------------------------------------------------------------------- */

static void alarm_set(struct io_loop *loop)
{
    struct sim_world *w = loop->io->host->world;
    struct heap_node *first = heap_min(&loop->timers);

    if (!first)
        sim__task_drop(w, &loop->alarm);
    else if (loop->alarm.at.pos == 0 || loop->alarm.at.key != first->key)
        sim__task_at(w, &loop->alarm, first->key);
}

static void alarm_run(struct sim_task *task)
{
    struct io_loop *loop = CONTAINER_OF(task, struct io_loop, alarm);
    struct heap_node *node;

    while ((node = heap_min(&loop->timers)) != NULL && node->key <= loop->io->host->world->now_ns) {
        heap_remove(&loop->timers, node);
        sim__op_done(&CONTAINER_OF(node, struct io_timer, _node)->op, ERR_NONE);
    }
    alarm_set(loop);
}

void io_timer_set(struct io_loop *loop, struct io_timer *t, int64_t deadline_ns)
{
    if (!sim__call(loop->io))
        return;
    if (io_op_is_pending(&t->op)) {
        assert(t->op._loop == loop);
        heap_remove(&loop->timers, &t->_node);
        list_remove(&t->op._ready);
        t->op._state = OP_IDLE;
    } else {
        t->_node = (struct heap_node){0};
    }
    sim__op_begin(loop, &t->op, OP_TIMER);
    heap_push(&loop->timers, &t->_node, deadline_ns);
    alarm_set(loop);
}

/* ---- messages and retired memory -------------------------------------------------------- */

void io_post(struct io_loop *to, struct io_msg *msg)
{
    if (!sim__call(to->io))
        return;
    msg->_next = NULL;
    *to->tail = msg;
    to->tail = &msg->_next;
    sim__loop_kick(to);
}

void io_retire(struct io_loop *loop, struct io_retired *r)
{
    if (!sim__call(loop->io))
        return;
    r->_next = NULL;
    *loop->retired_tail = r;
    loop->retired_tail = &r->_next;
    sim__loop_kick(loop);
}

static void run_message(struct io_loop *loop)
{
    struct io_msg *msg = loop->head;

    loop->head = msg->_next;
    if (!loop->head)
        loop->tail = &loop->head;
    msg->_next = NULL;
    sim__event(loop->io->host->world, SIM_EV_MESSAGE, loop->io->host, loop->name, 0);
    msg->fn(msg);
}

static void run_retired(struct io_loop *loop)
{
    struct io_retired *r = loop->retired;

    loop->retired = r->_next;
    if (!loop->retired)
        loop->retired_tail = &loop->retired;
    sim__event(loop->io->host->world, SIM_EV_RETIRE, loop->io->host, loop->name, 0);
    r->free_fn(r);
}

/* ---- turns ------------------------------------------------------------------------------ */

static enum sim_event event_of(const struct io_op *op)
{
    switch ((enum sim_op_kind)op->_kind) {
    case OP_TIMER: return SIM_EV_TIMER;
    case OP_SIGNAL: return SIM_EV_SIGNAL;
    case OP_ACCEPT: return SIM_EV_ACCEPT;
    case OP_CONNECT: return SIM_EV_CONNECT;
    case OP_RECV: return SIM_EV_RECV;
    case OP_SEND: return SIM_EV_SEND;
    case OP_WATCH: return SIM_EV_WATCH;
    }
    UNREACHABLE();
}

static void run_operation(struct io_loop *loop)
{
    struct list *node = list_pop_front(&loop->ready);
    struct io_op *op = LIST_ENTRY(node, struct io_op, _ready);
    struct io_conn *conn = sim__op_detach(op);

    op->_state = OP_IDLE;
    sim__event(loop->io->host->world, event_of(op), loop->io->host, loop->name, op->err);
    op->done(op);
    if (conn)
        sim__conn_unref(conn);
}

static void loop_turn(struct sim_task *task)
{
    struct io_loop *loop = CONTAINER_OF(task, struct io_loop, task);
    struct sim_world *w = loop->io->host->world;
    void (*full[3])(struct io_loop *);
    uint32_t n = 0;

    if (!list_is_empty(&loop->ready))
        full[n++] = run_operation;
    if (loop->head)
        full[n++] = run_message;
    if (loop->retired)
        full[n++] = run_retired;
    if (n == 0 || !can_run(loop)) /* What was ready has been moved; or the process stops. */
        return;
    loop->turn_ns = w->now_ns;
    current = loop;
    trace_set_current(&loop->io->trace);
    full[sim_choose(w, SIM_QUEUE, n)](loop);
    trace_set_current(NULL);
    current = NULL;
    sim__loop_kick(loop);
}

int64_t io_loop_mono_ns(struct io_loop *loop)
{
    return loop->turn_ns;
}

int64_t io_loop_wall_ms(struct io_loop *loop)
{
    int64_t behind_ns = loop->io->host->world->now_ns - loop->turn_ns;

    return io_wall_ms(loop->io) - behind_ns / 1000000;
}

/* ---- birth and death -------------------------------------------------------------------- */

static void run_start(struct io_msg *msg)
{
    struct io_loop *loop = CONTAINER_OF(msg, struct io_loop, start_msg);

    if (loop->start)
        loop->start(loop->start_ctx);
}

struct io_loop *io_loop_new(struct io *io, const char *name, void (*start)(void *ctx), void *ctx)
{
    struct io_loop *loop = xcalloc(1, sizeof(*loop));

    loop->io = io;
    loop->name = xstrdup(name);
    loop->task = (struct sim_task){.run = loop_turn, .io = io};
    loop->alarm = (struct sim_task){.run = alarm_run, .io = io, .is_instant = true};
    loop->tail = &loop->head;
    loop->retired_tail = &loop->retired;
    list_init(&loop->ready);
    heap_init(&loop->timers);
    loop->turn_ns = io->host->world->now_ns;
    loop->start_msg.fn = run_start;
    loop->start = start;
    loop->start_ctx = ctx;
    list_push_back(&io->loops, &loop->node);
    io_post(loop, &loop->start_msg);
    return loop;
}

void sim__loop_freeze(struct io_loop *loop)
{
    struct sim_world *w = loop->io->host->world;

    loop->has_ended = true;
    sim__task_drop(w, &loop->task);
    sim__task_drop(w, &loop->alarm);
}

void sim__loop_end(struct io_loop *loop)
{
    sim__loop_freeze(loop);
    current = loop;
    while (loop->retired)
        run_retired(loop);
    current = NULL;
}

void sim__loop_free(struct io_loop *loop)
{
    list_remove(&loop->node);
    heap_fini(&loop->timers);
    free(loop->name);
    free(loop);
}
