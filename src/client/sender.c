/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How batches leave and what their answers mean.
 *
 * The pump looks at every partition that has something, expires what is too old, and puts the
 * batches that are ready into requests, one for each leader and as large as max.request.size
 * allows. A partition with a batch on its way is left alone: that is all the ordering there is.
 *
 * Answers fall into four kinds. Stored. Certainly not stored and not to be repeated: the records
 * fail. Certainly not stored and worth repeating: the batch goes back to the head of its queue with
 * the same sequence. Unknown (the connection broke, or the answer says "written, but"): repeated
 * too, and the broker recognises the sequence if it was stored; if such a batch has to be given up,
 * the epoch is bumped, because the numbers it used may or may not be taken.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "client/producer_int.h"
#include "wire/messages.h"

/* Topics have ids in newer versions and names in older ones. */
#define PRODUCE_VERSION_NAMES_MAX 12
#define REQUEST_OVERHEAD_BYTES 512

static int64_t mono_ns(const struct producer *p)
{
    return io_loop_mono_ns(client_loop(p->client));
}

static int64_t backoff_ns(const struct producer *p, int32_t attempts)
{
    const struct client_config *config = client_settings(p->client);
    int64_t ms = config->retry_backoff_ms;

    for (int32_t i = 1; i < attempts && ms < config->retry_backoff_max_ms; i++)
        ms *= 2;
    return MIN(ms, config->retry_backoff_max_ms) * NS_PER_MS;
}

/* ---- The producer's identity. */

static void id_arrived(struct client_call *call)
{
    struct producer *p = CONTAINER_OF(call, struct producer, id_call);
    const struct init_producer_id_response *r = call->response;

    p->id_err = call->err ? call->err : err_from_wire(r->error_code);
    if (!p->id_err) {
        p->producer_id = r->producer_id;
        p->producer_epoch = r->producer_epoch;
    } else {
        p->id_retry_ns = mono_ns(p) + backoff_ns(p, 1);
    }
    producer__pump(p);
}

/* True when batches may be stamped. */
static bool has_identity(struct producer *p, int64_t now_ns, int64_t *at_ns)
{
    if (!p->config.enable_idempotence || p->producer_id >= 0)
        return true;
    if (client_call_is_pending(&p->id_call) || p->records == 0)
        return false;
    if (now_ns < p->id_retry_ns) {
        *at_ns = MIN(*at_ns, p->id_retry_ns);
        return false;
    }
    if (!p->id_request)
        p->id_request = xmalloc(sizeof(*p->id_request));
    wire_init(&init_producer_id_request_schema, p->id_request);
    p->id_request->transactional_id = str_null();
    p->id_request->transaction_timeout_ms = INT32_MAX;
    p->id_call.done = id_arrived;
    p->id_call.api_key = API_INIT_PRODUCER_ID;
    p->id_call.target = CLIENT_ANY;
    p->id_call.timeout_ms = p->config.request_timeout_ms;
    p->id_call.request = p->id_request;
    client_call(p->client, &p->id_call);
    return false;
}

/* ---- Outcomes of one batch. */

static void give_up(struct partition_state *ps, struct batch *b, enum err err, struct str message)
{
    struct batch_outcome o = {
        .err = err, .base_offset = -1, .log_append_time_ms = -1, .message = message};

    if (b->is_ambiguous)
        producer__bump_epoch(ps);
    else
        producer__unstamp(ps, b);
    producer__answer(ps, b, &o);
}

/* Errors that leave open whether the batch was stored. */
static bool is_ambiguous(enum err err)
{
    return err == ERR_NETWORK_EXCEPTION || err == ERR_TIMEOUT || err == ERR_REQUEST_TIMED_OUT ||
           err == ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND || err == ERR_KAFKA_STORAGE_ERROR ||
           err == ERR_UNKNOWN_SERVER_ERROR || err == ERR_MALFORMED || err == ERR_LIMIT;
}

/* The broker does not know us as we know ourselves: it has lost what it had stored. */
static bool wants_new_epoch(enum err err)
{
    return err == ERR_OUT_OF_ORDER_SEQUENCE_NUMBER || err == ERR_UNKNOWN_PRODUCER_ID ||
           err == ERR_INVALID_PRODUCER_EPOCH;
}

static void try_again(struct partition_state *ps, struct batch *b, enum err err)
{
    struct producer *p = ps->topic->producer;

    b->attempts++;
    b->last_err = err;
    ps->retry_at_ns = mono_ns(p) + backoff_ns(p, b->attempts);
    list_push_front(&ps->queue, &b->node);
    client_metadata_expire(p->client);
}

static bool should_try_again(const struct producer *p, const struct batch *b, enum err err)
{
    if (b->attempts >= p->config.retries || mono_ns(p) >= b->deadline_ns)
        return false;
    return err_is_retriable(err) || err == ERR_NETWORK_EXCEPTION || err == ERR_MALFORMED ||
           (wants_new_epoch(err) && p->config.enable_idempotence);
}

static void failed(struct partition_state *ps, struct batch *b, enum err err, bool is_open,
                   struct str message)
{
    struct producer *p = ps->topic->producer;

    b->is_ambiguous = b->is_ambiguous || is_open;
    if (err == ERR_MESSAGE_TOO_LARGE && b->count > 1 && !b->is_ambiguous) {
        producer__split(ps, b);
        return;
    }
    if (!should_try_again(p, b, err)) {
        give_up(ps, b, err, message);
        return;
    }
    try_again(ps, b, err);
    if (wants_new_epoch(err)) {
        b->is_ambiguous = false; /* It was refused, so it is not there. */
        producer__bump_epoch(ps);
    }
}

static void answered(struct partition_state *ps, const struct produce_response_partition *r)
{
    struct batch *b = ps->in_flight;
    enum err err = err_from_wire(r->error_code);
    struct batch_outcome o = {
        .err = ERR_NONE,
        .base_offset = r->base_offset,
        .log_append_time_ms = r->log_append_time_ms,
        .message = str_null(),
    };

    ps->in_flight = NULL;
    if (err == ERR_DUPLICATE_SEQUENCE_NUMBER) {
        o.base_offset = -1;
        err = ERR_NONE;
    }
    if (err)
        failed(ps, b, err, is_ambiguous(err), r->error_message);
    else
        producer__answer(ps, b, &o);
}

/* ---- Answers to a request. */

static struct partition_state *find_partition(struct produce_call *pc, struct str name,
                                              struct uuid id, int32_t index)
{
    for (int32_t i = 0; i < pc->partition_count; i++) {
        struct partition_state *ps = pc->partitions[i];
        const struct client_topic *t;

        if (!ps->in_flight || ps->index != index)
            continue;
        if (pc->call.version <= PRODUCE_VERSION_NAMES_MAX) {
            if (str_eq_c(name, ps->topic->name))
                return ps;
            continue;
        }
        t = client_topic_find(pc->producer->client, str_of(ps->topic->name));
        if (t && uuid_eq(t->id, id))
            return ps;
    }
    return NULL;
}

static void take_response(struct produce_call *pc, const struct produce_response *r)
{
    for (int32_t i = 0; i < r->responses.n; i++) {
        const struct produce_response_topic *t = &r->responses.v[i];

        for (int32_t j = 0; j < t->partitions.n; j++) {
            struct partition_state *ps =
                find_partition(pc, t->name, t->topic_id, t->partitions.v[j].index);

            if (ps)
                answered(ps, &t->partitions.v[j]);
        }
    }
}

/* All that can go wrong with a connection is one error here, as it is worth another try. */
static enum err call_error(const struct client_call *call)
{
    if (!call->err)
        return ERR_MALFORMED;
    if (call->err == ERR_UNSUPPORTED_VERSION || call->err == ERR_INVALID_ARG ||
        err_is_retriable(call->err))
        return call->err;
    return ERR_NETWORK_EXCEPTION;
}

/* What no response spoke of: the whole request failed, or acks=0 asked for silence. */
static void take_rest(struct produce_call *pc)
{
    struct batch_outcome silent = {
        .err = ERR_NONE, .base_offset = -1, .log_append_time_ms = -1, .message = str_null()};
    enum err err = call_error(&pc->call);

    for (int32_t i = 0; i < pc->partition_count; i++) {
        struct partition_state *ps = pc->partitions[i];
        struct batch *b = ps->in_flight;

        if (!b)
            continue;
        ps->in_flight = NULL;
        if (!pc->call.err && pc->producer->config.acks == 0)
            producer__answer(ps, b, &silent);
        else
            failed(ps, b, err, pc->call.was_sent && is_ambiguous(err), str_null());
    }
}

static void produce_call_free(struct produce_call *pc)
{
    list_remove(&pc->node);
    client_call_fini(&pc->call);
    arena_fini(&pc->arena);
    free(pc);
}

static void produce_done(struct client_call *call)
{
    struct produce_call *pc = CONTAINER_OF(call, struct produce_call, call);
    struct producer *p = pc->producer;

    if (!call->err && call->response)
        take_response(pc, call->response);
    take_rest(pc);
    produce_call_free(pc);
    producer__pump(p);
}

void producer__drop_calls(struct producer *p)
{
    for (struct list *l; (l = p->calls.next) != &p->calls;)
        produce_call_free(LIST_ENTRY(l, struct produce_call, node));
}

/* ---- Requests. */

/* A request that is being put together. */
struct draft {
    struct produce_call pc;
    int64_t bytes;
    int32_t cap;
};

static int32_t calls_to(const struct producer *p, int32_t target)
{
    int32_t n = 0;

    LIST_EACH (l, &p->calls)
        n += LIST_ENTRY(l, struct produce_call, node)->target == target;
    return n;
}

static struct draft *draft_of(struct list *l)
{
    return CONTAINER_OF(LIST_ENTRY(l, struct produce_call, node), struct draft, pc);
}

/* A request to `target` that has room, or a new one; NULL: enough are on their way. */
static struct draft *find_draft(struct producer *p, struct list *drafts, int32_t target,
                                int64_t bytes)
{
    int32_t open = calls_to(p, target);
    struct draft *d;

    LIST_EACH (l, drafts) {
        d = draft_of(l);
        if (d->pc.target != target)
            continue;
        open++;
        if (d->bytes + bytes <= p->config.max_request_size)
            return d;
    }
    if (open >= p->config.max_in_flight_requests_per_connection)
        return NULL;
    d = xcalloc(1, sizeof(*d));
    d->pc.producer = p;
    d->pc.target = target;
    d->bytes = REQUEST_OVERHEAD_BYTES;
    arena_init(&d->pc.arena, 0);
    list_push_back(drafts, &d->pc.node);
    return d;
}

static void add_to_draft(struct draft *d, struct partition_state *ps, struct batch *b)
{
    struct produce_call *pc = &d->pc;

    if (pc->partition_count == d->cap) {
        struct partition_state **v;

        d->cap = MAX(8, d->cap * 2);
        v = arena_alloc(&pc->arena, (size_t)d->cap * sizeof(struct partition_state *));
        if (pc->partition_count)
            memcpy(v, pc->partitions, (size_t)pc->partition_count * sizeof(*v));
        pc->partitions = v;
    }
    pc->partitions[pc->partition_count++] = ps;
    d->bytes += (int64_t)b->bytes.n;
    list_remove(&b->node);
    ps->in_flight = b;
}

/* Partitions of one topic stand together, because the pump goes topic by topic. */
static void fill_request(struct produce_call *pc, struct produce_request *r)
{
    struct produce_request_topic *topic = NULL;
    struct topic_state *current = NULL;
    size_t n = (size_t)pc->partition_count;

    r->topics.v = arena_calloc(&pc->arena, n, sizeof(*r->topics.v));
    for (int32_t i = 0; i < pc->partition_count; i++) {
        struct partition_state *ps = pc->partitions[i];
        const struct client_topic *known;

        if (ps->topic != current) {
            current = ps->topic;
            known = client_topic_find(pc->producer->client, str_of(current->name));
            topic = &r->topics.v[r->topics.n++];
            topic->name = str_of(current->name);
            topic->topic_id = known->id;
            if (uuid_is_zero(known->id))
                pc->call.version_max = PRODUCE_VERSION_NAMES_MAX;
            topic->partitions.v =
                arena_calloc(&pc->arena, n - (size_t)i, sizeof(*topic->partitions.v));
        }
        topic->partitions.v[topic->partitions.n++] = (struct produce_request_partition){
            .index = ps->index,
            .records = {.b = buf_bytes(&ps->in_flight->bytes, 0)},
        };
    }
}

static int32_t call_timeout_ms(const struct produce_call *pc, int64_t now_ns)
{
    int64_t ms = pc->producer->config.request_timeout_ms;

    for (int32_t i = 0; i < pc->partition_count; i++)
        ms = MIN(ms, (pc->partitions[i]->in_flight->deadline_ns - now_ns) / NS_PER_MS);
    return (int32_t)MAX(ms, 1);
}

static void send_draft(struct draft *d, int64_t now_ns)
{
    struct produce_call *pc = &d->pc;
    struct producer *p = pc->producer;
    struct produce_request *r = arena_alloc(&pc->arena, sizeof(*r));

    wire_init(&produce_request_schema, r);
    r->acks = p->config.acks;
    r->timeout_ms = p->config.request_timeout_ms;
    fill_request(pc, r);
    pc->call.done = produce_done;
    pc->call.api_key = API_PRODUCE;
    pc->call.target = pc->target;
    pc->call.timeout_ms = call_timeout_ms(pc, now_ns);
    pc->call.has_no_response = p->config.acks == 0;
    pc->call.request = r;
    list_remove(&pc->node);
    list_push_back(&p->calls, &pc->node);
    client_call(p->client, &pc->call);
}

/* ---- The pump. */

/* Whether metadata that is newer than the batch says that its partition does not exist. */
static bool is_nowhere(const struct partition_state *ps, const struct batch *b)
{
    const struct producer *p = ps->topic->producer;
    enum err err;
    int32_t count = producer__partition_count(ps->topic, &err);

    return count > 0 && ps->index >= count && p->client->cluster.refreshed_ns > b->created_ns;
}

static void expire(struct partition_state *ps, int64_t now_ns)
{
    struct producer *p = ps->topic->producer;
    enum err topic_err;
    struct batch *b;

    producer__partition_count(ps->topic, &topic_err);
    while (!ps->in_flight && (b = LIST_FIRST(&ps->queue, struct batch, node)) != NULL) {
        if (now_ns >= b->deadline_ns)
            give_up(ps, b,
                    b->last_err ? b->last_err
                    : p->id_err ? p->id_err
                                : ERR_TIMEOUT,
                    str_null());
        else if (topic_err && !err_is_retriable(topic_err))
            give_up(ps, b, topic_err, str_null());
        else if (p->id_err && !err_is_retriable(p->id_err) && p->producer_id < 0)
            give_up(ps, b, p->id_err, str_null());
        else if (is_nowhere(ps, b))
            give_up(ps, b, ERR_UNKNOWN_TOPIC_OR_PARTITION, str_null());
        else
            return;
    }
}

static void pump_partition(struct partition_state *ps, struct list *drafts, int64_t now_ns,
                           int64_t *at_ns)
{
    struct producer *p = ps->topic->producer;
    struct batch *b = producer__ready(ps, now_ns, at_ns);
    int32_t leader;
    struct draft *d;

    if (!b || !has_identity(p, now_ns, at_ns))
        return;
    leader = client_leader(p->client, str_of(ps->topic->name), ps->index);
    if (leader < 0) {
        client_metadata_expire(p->client);
        return;
    }
    d = find_draft(p, drafts, leader,
                   (int64_t)(b->is_sealed ? b->bytes.n : batch_builder_bytes(&b->builder)));
    if (!d)
        return;
    producer__stamp(ps, b);
    add_to_draft(d, ps, b);
}

static void pump_topic(struct topic_state *t, struct list *drafts, int64_t now_ns, int64_t *at_ns)
{
    producer__settle(t, now_ns);
    if (!list_is_empty(&t->homeless))
        *at_ns = MIN(*at_ns, LIST_FIRST(&t->homeless, struct homeless, node)->deadline_ns);
    for (int32_t i = 0; i < t->partition_count; i++) {
        if (!t->partitions[i])
            continue;
        expire(t->partitions[i], now_ns);
        pump_partition(t->partitions[i], drafts, now_ns, at_ns);
    }
}

static void tell_owner(struct producer *p)
{
    void (*flushed)(void *ctx) = p->flushed;

    if (p->was_refused && p->memory <= p->config.buffer_memory / 2) {
        p->was_refused = false;
        if (p->room)
            p->room(p->room_ctx);
    }
    if (p->is_flushing && p->records == 0) {
        p->is_flushing = false;
        p->flushed = NULL;
        if (flushed)
            flushed(p->flushed_ctx);
    }
}

void producer__pump(struct producer *p)
{
    int64_t now_ns = mono_ns(p);
    int64_t at_ns = INT64_MAX;
    struct list drafts;

    p->is_woken = false;
    list_init(&drafts);
    for (struct topic_state *t = p->topics; t; t = t->hh.next)
        pump_topic(t, &drafts, now_ns, &at_ns);
    for (struct list *l; (l = drafts.next) != &drafts;)
        send_draft(draft_of(l), now_ns);
    if (at_ns != INT64_MAX || p->is_woken)
        client_alarm_set(p->client, &p->alarm, p->is_woken ? 0 : at_ns);
    tell_owner(p);
}
