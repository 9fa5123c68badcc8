/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLIENT_FAKE_SIMTEST_H
#define SL_CLIENT_FAKE_SIMTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "client/client.h"
#include "io/io.h"
#include "io/sim/sim.h"
#include "record/record.h"
#include "wire/header.h"
#include "wire/messages.h"

/*
 * A cluster of scripted brokers for the client's tests, in the simulated world: real frames over
 * simulated connections and virtual time, so that a timeout of a minute costs nothing.
 *
 * The brokers answer ApiVersions, Metadata, InitProducerId, Produce, Fetch and ListOffsets for one
 * topic, "t", whose partitions are lists of batches in memory, with a check of sequences. A test
 * puts a hook in front: it sees every request and may change the answer or refuse it.
 */
#define FAKE_BROKERS 2
#define FAKE_PARTITIONS 3
#define FAKE_CONNS 64
#define FAKE_BATCHES 4096

enum fake_action {
    FAKE_SERVE = 0,   /* as usual */
    FAKE_ANSWER,      /* with what the hook has put into the response */
    FAKE_SILENCE,     /* nor is anything behind it on that connection */
    FAKE_CLOSE,       /* the connection, before doing anything */
    FAKE_SERVE_CLOSE, /* does it, and closes the connection instead of answering */
};

struct fake_request {
    struct fake_broker *broker;
    struct request_header header;
    void *request;
    void *response; /* with its defaults */
    struct arena *arena;
    bool wrong_correlation; /* to be set by the hook, as the next */
    bool wrong_size;
    int16_t encode_version; /* of the response; the hook may change it */
};

struct fake_log {
    struct buf batches[FAKE_BATCHES];
    int32_t batch_count;
    int64_t start;
    int64_t end;
    int64_t producer_id;
    int16_t epoch;
    int32_t last_sequence;
    int64_t last_base;
    int32_t leader; /* broker id */
    int32_t leader_epoch;
};

struct fake_conn {
    struct fake_broker *broker;
    struct io_accept accept;
    struct io_recv recv;
    struct io_send send;
    struct io_conn *conn;
    struct buf in;
    struct buf out;
    struct buf sending;
    uint8_t chunk[8192];
    bool is_mute;
};

struct fake_broker {
    struct fake *fake;
    int32_t id;
    struct io_listener *listener;
    uint16_t port;
    struct fake_conn conns[FAKE_CONNS];
    int conn_count;
};

struct fake {
    struct sim_world *world;
    struct io *io;
    struct io_loop *loop;
    struct client *client;
    struct client_config config;
    struct fake_broker brokers[FAKE_BROKERS];
    struct fake_log logs[FAKE_PARTITIONS];
    int32_t partition_count;
    bool has_no_topic;
    bool has_no_ids; /* topics have no id */
    int16_t error;   /* of every produce; for hooks */
    int64_t next_producer_id;
    struct uuid topic_id;
    int requests[128]; /* by API key */
    enum fake_action (*hook)(struct fake *f, struct fake_request *rq);
    void (*start)(struct fake *f);
    void *test;
    int step; /* for tests, as the next */
    int64_t wall_ms;
    char bootstrap[128];
};

/* ---- Serving. */

static inline void fake_serve_versions(struct fake_request *rq)
{
    struct api_versions_response *r = rq->response;

    r->api_keys.n = API_COUNT;
    r->api_keys.v = arena_calloc(rq->arena, API_COUNT, sizeof(*r->api_keys.v));
    for (int i = 0; i < API_COUNT; i++) {
        r->api_keys.v[i].api_key = api_at(i)->key;
        r->api_keys.v[i].min_version = api_at(i)->min;
        r->api_keys.v[i].max_version = api_at(i)->max;
    }
}

static inline void fake_serve_metadata(struct fake *f, struct fake_request *rq)
{
    const struct metadata_request *q = rq->request;
    struct metadata_response *r = rq->response;

    r->brokers.n = FAKE_BROKERS;
    r->brokers.v = arena_calloc(rq->arena, FAKE_BROKERS, sizeof(*r->brokers.v));
    for (int i = 0; i < FAKE_BROKERS; i++) {
        r->brokers.v[i].node_id = f->brokers[i].id;
        r->brokers.v[i].host = STR_LIT("127.0.0.1");
        r->brokers.v[i].port = f->brokers[i].port;
        r->brokers.v[i].rack = str_null();
    }
    r->controller_id = 2;
    r->topics.n = q->topics.n > 0 ? q->topics.n : 0;
    r->topics.v = arena_calloc(rq->arena, (size_t)r->topics.n + 1, sizeof(*r->topics.v));
    for (int i = 0; i < r->topics.n; i++) {
        struct metadata_response_topic *t = &r->topics.v[i];

        t->name = q->topics.v[i].name;
        if (!str_eq_c(t->name, "t") || f->has_no_topic) {
            t->error_code = ERR_UNKNOWN_TOPIC_OR_PARTITION;
            continue;
        }
        t->topic_id = f->has_no_ids ? uuid_zero() : f->topic_id;
        t->partitions.n = f->partition_count;
        t->partitions.v =
            arena_calloc(rq->arena, (size_t)f->partition_count, sizeof(*t->partitions.v));
        for (int p = 0; p < f->partition_count; p++) {
            t->partitions.v[p].partition_index = p;
            t->partitions.v[p].leader_id = f->logs[p].leader;
            t->partitions.v[p].leader_epoch = f->logs[p].leader_epoch;
            t->partitions.v[p].error_code = f->logs[p].leader < 0 ? ERR_LEADER_NOT_AVAILABLE : 0;
        }
    }
}

/* The broker's rules of sequences, as far as one batch in flight needs them. */
static inline enum err fake_append(struct fake_log *log, struct bytes batch, int64_t *base)
{
    struct batch_header h;
    enum err err = batch_header_parse(batch, &h);
    struct buf *b = &log->batches[log->batch_count];

    assert_int_equal(err, ERR_NONE);
    assert_true(batch_crc_ok(batch));
    assert_true(log->batch_count < FAKE_BATCHES);
    if (h.producer_id >= 0 && h.producer_id == log->producer_id) {
        if (h.producer_epoch < log->epoch)
            return ERR_INVALID_PRODUCER_EPOCH;
        if (h.producer_epoch == log->epoch && batch_last_sequence(&h) == log->last_sequence) {
            *base = log->last_base;
            return ERR_NONE;
        }
        if (h.base_sequence != (h.producer_epoch == log->epoch ? log->last_sequence + 1 : 0))
            return ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    }
    log->producer_id = h.producer_id;
    log->epoch = h.producer_epoch;
    log->last_sequence = batch_last_sequence(&h);
    log->last_base = *base = log->end;
    buf_append(b, batch.p, (size_t)batch.n);
    batch_stamp(b->p, log->end, log->leader_epoch);
    log->end += h.last_offset_delta + 1;
    log->batch_count++;
    return ERR_NONE;
}

static inline bool fake_leads(const struct fake_request *rq, int32_t partition)
{
    const struct fake *f = rq->broker->fake;

    return partition < f->partition_count && f->logs[partition].leader == rq->broker->id;
}

static inline void fake_serve_produce(struct fake *f, struct fake_request *rq)
{
    const struct produce_request *q = rq->request;
    struct produce_response *r = rq->response;

    r->responses.n = q->topics.n;
    r->responses.v = arena_calloc(rq->arena, (size_t)q->topics.n, sizeof(*r->responses.v));
    for (int i = 0; i < q->topics.n; i++) {
        const struct produce_request_topic *qt = &q->topics.v[i];
        struct produce_response_topic *rt = &r->responses.v[i];

        if (rq->header.api_version > 12)
            assert_true(uuid_eq(qt->topic_id, f->topic_id));
        else
            assert_true(str_eq_c(qt->name, "t"));
        rt->name = qt->name;
        rt->topic_id = qt->topic_id;
        rt->partitions.n = qt->partitions.n;
        rt->partitions.v =
            arena_calloc(rq->arena, (size_t)qt->partitions.n, sizeof(*rt->partitions.v));
        for (int j = 0; j < qt->partitions.n; j++) {
            struct produce_response_partition *rp = &rt->partitions.v[j];
            int32_t p = qt->partitions.v[j].index;

            wire_init(&produce_response_schema, r);
            rp->index = p;
            rp->base_offset = rp->log_append_time_ms = rp->log_start_offset = -1;
            rp->error_message = str_null();
            rp->current_leader.leader_id = rp->current_leader.leader_epoch = -1;
            if (!fake_leads(rq, p))
                rp->error_code = ERR_NOT_LEADER_OR_FOLLOWER;
            else if (f->error)
                rp->error_code = f->error;
            else
                rp->error_code = (int16_t)fake_append(&f->logs[p], qt->partitions.v[j].records.b,
                                                      &rp->base_offset);
        }
        r->responses.n = q->topics.n;
        r->responses.v = rt - i;
    }
}

static inline void fake_fetch_partition(struct fake *f, struct fake_request *rq,
                                        const struct fetch_request_partition *q,
                                        struct fetch_response_partition *r)
{
    struct fake_log *log = &f->logs[q->partition];
    struct buf found = {0};

    assert_int_equal(q->durable_offset, -1); /* only followers say it */
    r->partition_index = q->partition;
    r->high_watermark = r->last_stable_offset = log->end;
    r->log_start_offset = log->start;
    r->preferred_read_replica = -1;
    r->diverging_epoch.epoch = r->current_leader.leader_id = r->current_leader.leader_epoch = -1;
    r->diverging_epoch.end_offset = r->snapshot_id.end_offset = r->snapshot_id.epoch = -1;
    r->aborted_transactions.n = -1;
    if (!fake_leads(rq, q->partition)) {
        r->error_code = ERR_NOT_LEADER_OR_FOLLOWER;
    } else if (q->current_leader_epoch >= 0 && q->current_leader_epoch < log->leader_epoch) {
        r->error_code = ERR_FENCED_LEADER_EPOCH;
    } else if (q->fetch_offset < log->start || q->fetch_offset > log->end) {
        r->error_code = ERR_OFFSET_OUT_OF_RANGE;
    } else {
        for (int i = 0; i < log->batch_count; i++) {
            struct bytes b = buf_bytes(&log->batches[i], 0);
            struct batch_header h;

            assert_int_equal(batch_header_parse(b, &h), ERR_NONE);
            if (batch_last_offset(&h) >= q->fetch_offset &&
                found.n + (size_t)b.n <= (size_t)MAX(q->partition_max_bytes, b.n))
                buf_append(&found, b.p, (size_t)b.n);
        }
    }
    r->records.b.p = arena_alloc(rq->arena, found.n + 1);
    r->records.b.n = (int32_t)found.n;
    if (found.n)
        memcpy((uint8_t *)r->records.b.p, found.p, found.n);
    buf_fini(&found);
}

static inline void fake_serve_fetch(struct fake *f, struct fake_request *rq)
{
    const struct fetch_request *q = rq->request;
    struct fetch_response *r = rq->response;

    r->responses.n = q->topics.n;
    r->responses.v = arena_calloc(rq->arena, (size_t)q->topics.n, sizeof(*r->responses.v));
    for (int i = 0; i < q->topics.n; i++) {
        struct fetch_response_topic *rt = &r->responses.v[i];

        rt->topic = q->topics.v[i].topic;
        rt->topic_id = q->topics.v[i].topic_id;
        if (rq->header.api_version > 12)
            assert_true(uuid_eq(rt->topic_id, f->topic_id));
        else
            assert_true(str_eq_c(rt->topic, "t"));
        assert_true(rq->header.api_version <= 12 || !f->has_no_ids);
        rt->partitions.n = q->topics.v[i].partitions.n;
        rt->partitions.v =
            arena_calloc(rq->arena, (size_t)rt->partitions.n, sizeof(*rt->partitions.v));
        for (int j = 0; j < rt->partitions.n; j++)
            fake_fetch_partition(f, rq, &q->topics.v[i].partitions.v[j], &rt->partitions.v[j]);
    }
}

static inline void fake_serve_list_offsets(struct fake *f, struct fake_request *rq)
{
    const struct list_offsets_request *q = rq->request;
    struct list_offsets_response *r = rq->response;

    r->topics.n = q->topics.n;
    r->topics.v = arena_calloc(rq->arena, (size_t)q->topics.n, sizeof(*r->topics.v));
    for (int i = 0; i < q->topics.n; i++) {
        struct list_offsets_response_topic *rt = &r->topics.v[i];

        rt->name = q->topics.v[i].name;
        rt->partitions.n = q->topics.v[i].partitions.n;
        rt->partitions.v =
            arena_calloc(rq->arena, (size_t)rt->partitions.n, sizeof(*rt->partitions.v));
        for (int j = 0; j < rt->partitions.n; j++) {
            const struct list_offsets_request_partition *qp = &q->topics.v[i].partitions.v[j];
            struct list_offsets_response_partition *rp = &rt->partitions.v[j];
            const struct fake_log *log = &f->logs[qp->partition_index];

            rp->partition_index = qp->partition_index;
            rp->timestamp = rp->leader_epoch = -1;
            if (!fake_leads(rq, qp->partition_index))
                rp->error_code = ERR_NOT_LEADER_OR_FOLLOWER;
            /* A record's timestamp is its offset times 10 here. */
            rp->offset = qp->timestamp == -1                   ? log->end
                         : qp->timestamp == -2                 ? log->start
                         : qp->timestamp > (log->end - 1) * 10 ? -1
                                                               : (qp->timestamp + 9) / 10;
        }
    }
}

static inline void fake_serve(struct fake *f, struct fake_request *rq)
{
    switch (rq->header.api_key) {
    case API_API_VERSIONS: fake_serve_versions(rq); return;
    case API_METADATA: fake_serve_metadata(f, rq); return;
    case API_PRODUCE: fake_serve_produce(f, rq); return;
    case API_FETCH: fake_serve_fetch(f, rq); return;
    case API_LIST_OFFSETS: fake_serve_list_offsets(f, rq); return;
    case API_INIT_PRODUCER_ID: {
        struct init_producer_id_response *r = rq->response;

        r->producer_id = f->next_producer_id++;
        r->producer_epoch = 0;
        return;
    }
    default: return; /* the defaults of the response */
    }
}

/* ---- Connections. */

static inline void fake_send(struct fake_conn *k)
{
    if (io_op_is_pending(&k->send.op) || !k->out.n || !k->conn)
        return;
    buf_reset(&k->sending);
    buf_append(&k->sending, k->out.p, k->out.n);
    buf_reset(&k->out);
    k->send.iov[0] = (struct iovec){k->sending.p, k->sending.n};
    k->send.iov_count = 1;
    io_send(k->conn, &k->send);
}

static inline void fake_sent(struct io_op *op)
{
    struct fake_conn *k = CONTAINER_OF(op, struct fake_conn, send.op);

    if (!op->err)
        fake_send(k);
}

static inline void fake_close(struct fake_conn *k)
{
    if (k->conn)
        io_conn_close(k->conn);
    k->conn = NULL;
}

static inline void fake_answer(struct fake_conn *k, struct fake_request *rq)
{
    struct wire_out out = {0};

    wire_frame_begin(&out);
    wire_response_header_encode(rq->header.api_key, rq->header.api_version,
                                rq->header.correlation_id + rq->wrong_correlation, &out);
    wire_encode(rq->header.api->response, rq->encode_version, rq->response, &out);
    wire_frame_end(&out);
    assert_int_equal(out.err, ERR_NONE);
    if (rq->wrong_size)
        put_u32(out.p, UINT32_MAX);
    buf_append(&k->out, out.p, out.n);
    wire_out_fini(&out);
    fake_send(k);
}

static inline bool fake_is_silent(const struct fake_request *rq)
{
    const struct produce_request *q = rq->request;

    return rq->header.api_key == API_PRODUCE && q->acks == 0;
}

static inline void fake_frame(struct fake_conn *k, struct bytes frame)
{
    struct fake *f = k->broker->fake;
    struct fake_request rq = {.broker = k->broker};
    struct arena arena;
    size_t body_at;
    size_t used;
    enum fake_action action;
    enum err err = wire_request_header_decode(frame, &rq.header, &body_at);

    /* Another broker may serve what ours does not. */
    assert_true(err == ERR_NONE || (err == ERR_UNSUPPORTED_VERSION && body_at > 0));
    arena_init(&arena, 0);
    rq.arena = &arena;
    rq.encode_version = rq.header.api_version;
    rq.request = arena_alloc(&arena, schema_size(rq.header.api->request));
    rq.response = arena_alloc(&arena, schema_size(rq.header.api->response));
    wire_init(rq.header.api->response, rq.response);
    assert_int_equal(wire_decode(rq.header.api->request, rq.header.api_version,
                                 (struct bytes){frame.p + body_at, frame.n - (int32_t)body_at},
                                 &arena, rq.request, &used),
                     ERR_NONE);
    f->requests[rq.header.api_key]++;
    action = f->hook ? f->hook(f, &rq) : FAKE_SERVE;
    if (action == FAKE_SERVE || action == FAKE_SERVE_CLOSE)
        fake_serve(f, &rq);
    if (action == FAKE_CLOSE || action == FAKE_SERVE_CLOSE)
        fake_close(k);
    else if (action == FAKE_SILENCE)
        k->is_mute = true;
    else if (!fake_is_silent(&rq))
        fake_answer(k, &rq);
    arena_fini(&arena);
}

static inline void fake_received(struct io_op *op)
{
    struct fake_conn *k = CONTAINER_OF(op, struct fake_conn, recv.op);
    size_t at = 0;

    if (op->err) {
        fake_close(k);
        return;
    }
    buf_append(&k->in, k->chunk, k->recv.n);
    while (k->conn && !k->is_mute && k->in.n - at >= 4 &&
           k->in.n - at >= 4 + get_u32(k->in.p + at)) {
        struct bytes frame = {k->in.p + at + 4, get_i32(k->in.p + at)};

        at += 4 + (size_t)frame.n;
        fake_frame(k, frame);
    }
    memmove(k->in.p, k->in.p + at, k->in.n - at);
    k->in.n -= at;
    k->recv.n = sizeof(k->chunk);
    if (k->conn)
        io_recv(k->conn, &k->recv);
}

static inline void fake_accepted(struct io_op *op);

static inline void fake_accept(struct fake_broker *b)
{
    struct fake_conn *k = &b->conns[b->conn_count++];

    assert_true(b->conn_count <= FAKE_CONNS);
    k->broker = b;
    k->accept.op.done = fake_accepted;
    k->recv.op.done = fake_received;
    k->send.op.done = fake_sent;
    io_accept(b->fake->loop, b->listener, &k->accept);
}

static inline void fake_accepted(struct io_op *op)
{
    struct fake_conn *k = CONTAINER_OF(op, struct fake_conn, accept.op);

    if (op->err)
        return;
    k->conn = k->accept.conn;
    k->recv.p = k->chunk;
    k->recv.n = sizeof(k->chunk);
    io_recv(k->conn, &k->recv);
    fake_accept(k->broker);
}

/* ---- The test's frame. */

static inline void fake_listen(struct fake_broker *b)
{
    enum err err = io_listen(b->fake->io, "127.0.0.1", b->port, 16, &b->listener);

    assert_int_equal(err, ERR_NONE);
    b->port = io_listener_port(b->listener);
    fake_accept(b);
}

/* The broker goes away; fake_listen brings it back at the same port. */
static inline void fake_down(struct fake_broker *b)
{
    if (b->listener)
        io_listener_close(b->listener);
    b->listener = NULL;
    for (int i = 0; i < b->conn_count; i++)
        fake_close(&b->conns[i]);
}

static inline void fake_started(void *ctx)
{
    struct fake *f = ctx;
    enum err err;

    for (int i = 0; i < FAKE_BROKERS; i++)
        fake_listen(&f->brokers[i]);
    snprintf(f->bootstrap, sizeof(f->bootstrap), "127.0.0.1:%u,127.0.0.1:%u", f->brokers[0].port,
             f->brokers[1].port);
    f->config.bootstrap_servers = f->bootstrap;
    err = client_open(f->loop, &f->config, &f->client);
    assert_int_equal(err, ERR_NONE);
    f->start(f);
}

static inline struct fake *fake_new(void *test, void (*start)(struct fake *f))
{
    struct fake *f = xcalloc(1, sizeof(*f));

    f->test = test;
    f->start = start;
    f->config = client_config_default();
    f->config.software_name = "fake-test";
    f->config.software_version = "1.2";
    f->partition_count = 1;
    f->next_producer_id = 4000;
    f->topic_id = uuid_from_random(7, 8);
    for (int i = 0; i < FAKE_BROKERS; i++) {
        f->brokers[i].fake = f;
        f->brokers[i].id = i + 1;
    }
    for (int i = 0; i < FAKE_PARTITIONS; i++) {
        f->logs[i].producer_id = -1;
        f->logs[i].leader = 1;
        f->logs[i].leader_epoch = 5;
    }
    return f;
}

/* Runs until fake_end; everything must have been closed. Frees f. */
static inline void fake_run(struct fake *f)
{
    struct sim_options options = {.net_chunk_ppm = 100000};

    f->world = sim_world_new(1, &options);
    f->io = sim_process_start(sim_host_new(f->world, "host"), NULL, NULL, NULL);
    f->loop = io_loop_new(f->io, "test", fake_started, f);
    io_run(f->io);
    io_free(f->io);
    sim_world_free(f->world);
    for (int i = 0; i < FAKE_BROKERS; i++) {
        for (int k = 0; k < FAKE_CONNS; k++) {
            buf_fini(&f->brokers[i].conns[k].in);
            buf_fini(&f->brokers[i].conns[k].out);
            buf_fini(&f->brokers[i].conns[k].sending);
        }
    }
    for (int p = 0; p < FAKE_PARTITIONS; p++)
        for (int i = 0; i < f->logs[p].batch_count; i++)
            buf_fini(&f->logs[p].batches[i]);
    free(f);
}

static inline void fake_client_closed(void *ctx)
{
    struct fake *f = ctx;

    f->client = NULL;
    for (int i = 0; i < FAKE_BROKERS; i++)
        fake_down(&f->brokers[i]);
    io_stop(f->io);
}

static inline void fake_end(struct fake *f)
{
    client_close(f->client, fake_client_closed, f);
}

#endif
