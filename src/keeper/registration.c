/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker's registration: try, and if the node is there, find out whose it is.
 *
 *   try ──────────────► done
 *    │ ▲ exists           ▲ ours
 *    ▼ │ gone             │
 *   look ─────────────────┤
 *    │    ▲ changed       │ too late
 *    ▼    │               │
 *   wait ─────────────────┘
 *
 * Every step looks at the service again, so a result that is unknown needs no thought: what has
 * happened shows. One call or one watch is out at a time; the timer runs from the first look at
 * another session's node to the end.
 */
#include "keeper/registration.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/trace.h"
#include "keeper/znodes.h"

static void try_to_create(struct registration *r);
static void look(struct registration *r);

/* The timer's completion is the last thing: until then the memory is io's. */
static void tell_if_idle(struct registration *r)
{
    if (r->_is_called || io_op_is_pending(&r->_timer.op))
        return;
    free(r->_path);
    r->_path = NULL;
    r->done(r);
}

static void finish(struct registration *r, enum err err)
{
    r->err = err;
    r->_is_cancelled = true; /* nothing more is begun */
    r->_is_waiting = false;
    keeper_unwatch(r->_args.keeper, &r->_watch);
    io_cancel(&r->_timer.op);
    tell_if_idle(r);
}

static void timed_out(struct io_op *op)
{
    struct registration *r = CONTAINER_OF(op, struct registration, _timer.op);

    r->_is_late = true;
    if (r->_is_cancelled)
        tell_if_idle(r);
    else if (r->_is_waiting)
        finish(r, ERR_EXISTS);
}

/* Whether the answer is still wanted; ends the registration if it is not, or an error that stays.
 */
static bool goes_on(struct registration *r, enum err err)
{
    r->_is_called = false;
    if (r->_is_cancelled) {
        tell_if_idle(r);
        return false;
    }
    if (err && err != ERR_UNKNOWN && err != ERR_EXISTS && err != ERR_NOT_FOUND &&
        err != ERR_BAD_VERSION) {
        finish(r, err);
        return false;
    }
    return true;
}

static void registered(struct registration *r, int64_t epoch)
{
    r->broker_epoch = epoch;
    trace_info("broker.registered", "id=%d epoch=%lld", r->_args.broker_id, (long long)epoch);
    finish(r, ERR_NONE);
}

static void tried(struct keeper_call *call)
{
    struct registration *r = CONTAINER_OF(call, struct registration, _call);
    enum err err = call->err;

    keeper_call_release(call);
    if (!goes_on(r, err))
        return;
    if (!err)
        registered(r, r->_ops[1].stat.created_zxid);
    else if (err == ERR_NOT_FOUND)
        finish(r, err);
    else
        look(r);
}

static void try_to_create(struct registration *r)
{
    r->_ops[0] = (struct keeper_op){
        .kind = KEEPER_CREATE, .path = r->_path, .data = bytes_null(), .is_ephemeral = true};
    r->_ops[1] = (struct keeper_op){.kind = KEEPER_SET, .path = r->_path, .data = r->_args.data};
    r->_call.done = tried;
    r->_is_called = true;
    keeper_multi(r->_args.keeper, r->_ops, 2, &r->_call);
}

static void deleted(struct keeper_call *call)
{
    struct registration *r = CONTAINER_OF(call, struct registration, _call);
    enum err err = call->err;

    keeper_call_release(call);
    if (goes_on(r, err))
        try_to_create(r);
}

static void delete_previous(struct registration *r, int32_t version)
{
    keeper_unwatch(r->_args.keeper, &r->_watch);
    r->_ops[0] = (struct keeper_op){.kind = KEEPER_DELETE, .path = r->_path, .version = version};
    r->_call.done = deleted;
    r->_is_called = true;
    keeper_multi(r->_args.keeper, r->_ops, 1, &r->_call);
}

static void changed(struct keeper_watch *w, enum keeper_event_kind kind)
{
    struct registration *r = CONTAINER_OF(w, struct registration, _watch);

    (void)kind;
    if (!r->_is_waiting)
        return;
    r->_is_waiting = false;
    try_to_create(r);
}

static void wait_for(struct registration *r, int64_t session)
{
    r->other_session = session;
    if (r->_is_late) {
        finish(r, ERR_EXISTS);
        return;
    }
    r->_is_waiting = true;
    if (io_op_is_pending(&r->_timer.op))
        return;
    trace_warn("broker.id_taken", "id=%d session=0x%llx wait_ms=%lld", r->_args.broker_id,
               (unsigned long long)session, (long long)(r->_args.wait_ns / 1000000));
    io_timer_set(r->_args.loop, &r->_timer, io_loop_mono_ns(r->_args.loop) + r->_args.wait_ns);
}

static void looked(struct keeper_call *call)
{
    struct registration *r = CONTAINER_OF(call, struct registration, _call);
    struct keeper_stat stat = call->stat;
    enum err err = call->err;

    keeper_call_release(call);
    if (!goes_on(r, err))
        return;
    if (err) {
        keeper_unwatch(r->_args.keeper, &r->_watch);
        try_to_create(r);
    } else if (stat.ephemeral_owner == keeper_session_id(r->_args.keeper)) {
        registered(r, stat.created_zxid);
    } else if (stat.ephemeral_owner && stat.ephemeral_owner == r->_args.previous_session) {
        delete_previous(r, stat.version);
    } else {
        wait_for(r, stat.ephemeral_owner);
    }
}

static void look(struct registration *r)
{
    r->_call.done = looked;
    r->_is_called = true;
    keeper_exists(r->_args.keeper, r->_path, &r->_watch, &r->_call);
}

void registration_begin(struct registration *r, const struct registration_args *args)
{
    assert(r->done);
    assert(args->wait_ns >= 0);
    r->_args = *args;
    r->_path = znode_broker_path(args->broker_id);
    r->_watch.fired = changed;
    r->_timer.op.done = timed_out;
    try_to_create(r);
}

void registration_cancel(struct registration *r)
{
    if (!r->_path || r->_is_cancelled)
        return;
    finish(r, ERR_CANCELLED);
}
