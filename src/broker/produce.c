/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Produce: validate every batch of the request, then append them in the order of the request, then
 * wait for what acks asks.
 *
 * Validation may take a while (a large compressed batch is decompressed to look at its records) and
 * is then done by a job. Nothing of the connection starts before it is back: a batch that overtook
 * an earlier one of the same producer would be refused as out of order, or worse, accepted.
 *
 * A part is one partition of the request. It travels to the shard that owns the partition and
 * back, and it may come back after the request has been answered (timeout): the struct produce is
 * freed when all parts are home. The batch itself stays where the socket put it, in the frame;
 * offsets are stamped there and the log writes it from there.
 *
 * A producer's batches follow each other without waiting. When one is refused because this broker
 * does not lead yet, or the in-sync set is too small, the next may come a moment later, when it
 * does and is not: out of order, and not by the producer's fault. That is said by an error that
 * makes it send both again, in their order. OUT_OF_ORDER_SEQUENCE_NUMBER would make librdkafka take
 * a new epoch, under which it sends again what it has in flight to others, and may be there.
 * The batch that is missing may also have been refused by another broker, which led before: where
 * there are several replicas a gap has REFUSED_NS to be filled before it is called one.
 */
#include "broker/broker_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"

#define VALIDATE_ON_SHARD_BYTES_MAX (64 * 1024)
#define REFUSED_NS 5000000000 /* so long a client may wait before it sends a batch again */

struct produce {
    struct request *request; /* NULL once it is answered */
    struct shard *shard;
    struct arena arena; /* messages of verdicts: outlives the request */
    struct delay timeout;
    struct io_job job; /* validation of what is large */
    int64_t now_ms;
    int16_t version;
    int16_t acks;
    int part_count;
    int pending; /* parts that are not home */
    struct produce_part parts[];
};

/* ---- answering -------------------------------------------------------------------------- */

static void fill_record_errors(struct request *r, struct produce_response_partition *out,
                               const struct batch_verdict *v)
{
    int32_t n = v->record_errors ? MIN(v->record_error_count, BATCH_RECORD_ERRORS_MAX) : 0;

    if (n == 0)
        return;
    out->record_errors.n = n;
    out->record_errors.v = request_array(r, &produce_response_record_error_schema, n);
    for (int32_t i = 0; i < n; i++) {
        out->record_errors.v[i].batch_index = v->record_errors[i].index;
        out->record_errors.v[i].message = v->record_errors[i].message;
    }
}

static void fill_part(struct request *r, struct produce_response_partition *out,
                      const struct produce_part *part, int32_t index)
{
    enum err err = part->is_home ? part->err : ERR_REQUEST_TIMED_OUT;

    out->index = index;
    out->error_code = err_wire(err);
    out->base_offset = -1;
    out->error_message = err && str_is_null(part->message) ? str_of(err_text(err)) : part->message;
    if (err) {
        fill_record_errors(r, out, &part->verdict);
        return;
    }
    out->base_offset = part->append.base_offset;
    out->log_start_offset = part->log_start_offset;
    if (batch_timestamp_type(&part->verdict.header) == TIMESTAMP_LOG_APPEND)
        out->log_append_time_ms = part->append.max_timestamp;
}

static void fill_hint(struct hints *hints, const struct produce_request_topic *topic,
                      struct produce_response_partition *out)
{
    if (out->error_code == err_wire(ERR_NOT_LEADER_OR_FOLLOWER))
        hints_find(hints, topic->name, topic->topic_id, out->index, &out->current_leader.leader_id,
                   &out->current_leader.leader_epoch);
}

static void fill_nodes(const struct hints *hints, struct produce_response *out)
{
    struct request *r = hints->request;

    out->node_endpoints.n = hints->count;
    out->node_endpoints.v = request_array(r, &produce_response_node_schema, hints->count);
    for (int32_t i = 0; i < hints->count; i++) {
        struct produce_response_node *node = &out->node_endpoints.v[i];

        node->node_id = hints->brokers[i]->id;
        node->rack = hints->brokers[i]->rack;
        (void)request_broker_address(r, hints->brokers[i], &node->host, &node->port);
    }
}

static void fill_topic(struct hints *hints, const struct produce_request_topic *from,
                       struct produce_response_topic *to, const struct produce_part *part)
{
    struct request *r = hints->request;

    to->name = from->name;
    to->topic_id = from->topic_id;
    to->partitions.n = MAX(from->partitions.n, 0);
    to->partitions.v = request_array(r, &produce_response_partition_schema, to->partitions.n);
    for (int32_t i = 0; i < to->partitions.n; i++) {
        fill_part(r, &to->partitions.v[i], &part[i], from->partitions.v[i].index);
        fill_hint(hints, from, &to->partitions.v[i]);
    }
}

static void fill_response(struct produce *p)
{
    struct request *r = p->request;
    const struct produce_request *in = r->in;
    struct produce_response *out = r->out;
    const struct produce_part *part = p->parts;
    struct hints hints = {.request = r};

    out->responses.n = MAX(in->topics.n, 0);
    out->responses.v = request_array(r, &produce_response_topic_schema, out->responses.n);
    for (int32_t t = 0; t < out->responses.n; t++) {
        fill_topic(&hints, &in->topics.v[t], &out->responses.v[t], part);
        part += MAX(in->topics.v[t].partitions.n, 0);
    }
    fill_nodes(&hints, out);
}

static bool count_errors(const struct produce *p)
{
    struct shard_counts *counts = p->shard->counts;
    int n = 0;

    for (int i = 0; i < p->part_count; i++) {
        enum err err = p->parts[i].is_home ? p->parts[i].err : ERR_REQUEST_TIMED_OUT;

        if (!err)
            continue;
        count_error(p->request, err);
        n++;
    }
    counter_add(&counts->produce_parts, p->part_count);
    counter_add(&counts->produce_parts_failed, n);
    return n > 0;
}

static void answer(struct produce *p)
{
    struct request *r = p->request;
    bool any_error = count_errors(p);

    shard_delay_cancel(p->shard, &p->timeout);
    if (p->acks != 0) {
        fill_response(p);
        request_reply(r);
    } else if (any_error) {
        /* The only way to tell a client that wants no answers. */
        request_abort(r, "a produce without acknowledgement failed");
    } else {
        request_finish_silently(r);
    }
    p->request = NULL;
}

static void free_if_home(struct produce *p)
{
    if (p->pending > 0)
        return;
    for (int i = 0; i < p->part_count; i++) {
        io_buf_unref(p->parts[i].append.buf);
        partition_unref(p->parts[i].partition);
    }
    arena_fini(&p->arena);
    free(p);
}

static int64_t producer_of(const struct produce_part *part)
{
    struct bytes batch = {.p = part->append.batch, .n = part->append.n};
    struct batch_header h;

    return batch_header_parse(batch, &h) ? -1 : h.producer_id;
}

/* What the broker is not ready for, and may be in a moment. */
static bool is_for_now(enum err err)
{
    return err == ERR_NOT_LEADER_OR_FOLLOWER || err == ERR_UNKNOWN_TOPIC_OR_PARTITION ||
           err == ERR_UNKNOWN_TOPIC_ID || err == ERR_NOT_ENOUGH_REPLICAS ||
           err == ERR_KAFKA_STORAGE_ERROR;
}

/* ---- gaps ------------------------------------------------------------------------------- */

#define GAPS_MAX 64 /* that a connection remembers */

/* What is missing before a batch that was refused, and may be on its way. */
struct gap {
    int64_t producer;
    const struct partition *partition; /* only to compare */
    int64_t since_ns;                  /* 0: none */
};

static struct gap *find_gap(struct conn *c, const struct produce_part *part)
{
    int64_t producer = c->gaps ? producer_of(part) : -1;

    for (int i = 0; c->gaps && i < GAPS_MAX; i++)
        if (c->gaps[i].since_ns > 0 && c->gaps[i].producer == producer &&
            c->gaps[i].partition == part->partition)
            return &c->gaps[i];
    return NULL;
}

/* False: it has so many that it is not to be believed. */
static bool note_gap(struct conn *c, const struct produce_part *part, int64_t now_ns)
{
    struct gap *oldest;

    if (!c->gaps)
        c->gaps = xcalloc(GAPS_MAX, sizeof(*c->gaps));
    oldest = &c->gaps[0];
    for (int i = 1; i < GAPS_MAX; i++)
        if (c->gaps[i].since_ns < oldest->since_ns)
            oldest = &c->gaps[i];
    if (oldest->since_ns > 0 && now_ns - oldest->since_ns < 2 * REFUSED_NS)
        return false;
    *oldest = (struct gap){
        .producer = producer_of(part), .partition = part->partition, .since_ns = now_ns};
    return true;
}

/* Another leader may have refused what is missing. */
static bool may_be_filled(struct conn *c, const struct produce_part *part, int64_t now_ns)
{
    struct gap *gap = find_gap(c, part);

    if (!gap)
        return part->is_replicated && note_gap(c, part, now_ns);
    if (now_ns - gap->since_ns < REFUSED_NS)
        return true;
    gap->since_ns = 0;
    return false;
}

/* A batch of its producer was refused for now, over this connection. */
static bool is_behind_refused(const struct conn *c, const struct produce_part *part, int64_t now_ns)
{
    return c->refused_ns > 0 && now_ns - c->refused_ns < REFUSED_NS &&
           c->refused_producer == producer_of(part);
}

static void judge_gap(struct conn *c, struct produce_part *part, int64_t now_ns)
{
    struct gap *gap;

    if (!part->err && (gap = find_gap(c, part)))
        gap->since_ns = 0;
    if (is_for_now(part->err)) {
        c->refused_producer = producer_of(part);
        c->refused_ns = now_ns;
    }
    if (part->err != ERR_OUT_OF_ORDER_SEQUENCE_NUMBER ||
        (!is_behind_refused(c, part, now_ns) && !may_be_filled(c, part, now_ns)))
        return;
    part->err = ERR_NOT_LEADER_OR_FOLLOWER;
    part->message = STR_LIT("a batch before it is missing, and may be on its way: send both again");
}

/* ---- home ------------------------------------------------------------------------------- */

static void part_home(struct produce_part *part)
{
    struct produce *p = part->produce;

    part->is_home = true;
    if (p->request)
        judge_gap(p->request->conn, part, shard_now_ns(p->shard));
    if (--p->pending == 0 && p->request)
        answer(p);
    free_if_home(p);
}

static void part_arrived(struct io_msg *msg)
{
    part_home(CONTAINER_OF(msg, struct produce_part, msg));
}

void produce_part_done(struct produce_part *part, enum err err)
{
    struct shard *home = part->produce->shard;

    part->err = err;
    part->msg.fn = part_arrived;
    /* Always as a message: the caller may be walking the partition's waiters. */
    io_post(home->loop, &part->msg);
}

static void timed_out(struct delay *d)
{
    struct produce *p = CONTAINER_OF(d, struct produce, timeout);

    answer(p);
}

/* ---- appending -------------------------------------------------------------------------- */

static void at_owner(struct io_msg *msg)
{
    struct produce_part *part = CONTAINER_OF(msg, struct produce_part, msg);

    partition_append(part->partition, part);
}

static void append_part(struct produce *p, struct produce_part *part)
{
    if (part->err) {
        part_home(part);
        return;
    }
    if (part->partition->owner == p->shard) {
        partition_append(part->partition, part);
        return;
    }
    part->msg.fn = at_owner;
    io_post(part->partition->owner->loop, &part->msg);
}

static void append_all(struct produce *p)
{
    const struct produce_request *in = p->request->in;

    /* One replica's own write has no time limit, as in Kafka. */
    if (p->acks == -1) {
        p->timeout.expired = timed_out;
        shard_delay_set(p->shard, &p->timeout,
                        shard_now_ns(p->shard) + (int64_t)MAX(in->timeout_ms, 0) * 1000000);
    }
    /* One more than the parts: an early answer must not free what the loop walks over. */
    p->pending = p->part_count + 1;
    for (int i = 0; i < p->part_count; i++)
        append_part(p, &p->parts[i]);
    if (--p->pending == 0 && p->request)
        answer(p);
    free_if_home(p);
}

/* ---- validating ------------------------------------------------------------------------- */

static struct batch_rules rules_for(const struct produce *p, const struct topic_config *config)
{
    return (struct batch_rules){
        .from_client = true,
        .produce_version = p->version,
        .is_compacted = (config->cleanup_policy & TOPIC_CLEANUP_COMPACT) != 0,
        .max_message_bytes = config->max_message_bytes,
        .segment_bytes = config->segment_bytes,
        .timestamp_type = config->timestamp_type == TOPIC_TIMESTAMP_LOG_APPEND
                              ? TIMESTAMP_LOG_APPEND
                              : TIMESTAMP_CREATE,
        .before_max_ms = config->timestamp_before_max_ms,
        .after_max_ms = config->timestamp_after_max_ms,
        .now_ms = p->now_ms,
        .target_codec = config->compression,
    };
}

static int level_for(enum codec codec, const struct topic_config *config)
{
    switch (codec) {
    case CODEC_GZIP: return config->gzip_level;
    case CODEC_LZ4: return config->lz4_level;
    case CODEC_ZSTD: return config->zstd_level;
    case CODEC_NONE:
    case CODEC_SNAPPY: break;
    }
    return CODEC_LEVEL_DEFAULT;
}

/* compression.type, or offsets with gaps: the batch is written anew into a buffer of its own. */
static enum err rebuild(struct produce *p, struct produce_part *part,
                        const struct topic_config *config, const struct batch_rules *rules)
{
    struct batch_verdict *v = &part->verdict;
    enum codec target = rules->target_codec < 0 ? batch_codec(&v->header)
                                                : (enum codec)rules->target_codec;
    struct buf out = {0};
    enum err err = batch_rebuild(v->batch, target, level_for(target, config), rules->timestamp_type,
                                 p->now_ms, &out);

    if (!err)
        err = batch_check_size((int64_t)out.n, rules);
    if (!err)
        err = batch_header_parse(buf_bytes(&out, 0), &v->header);
    if (!err) {
        io_buf_unref(part->append.buf);
        part->append.buf = io_buf_new(&p->shard->broker->budget, out.n);
        memcpy(part->append.buf->data, out.p, out.n);
        part->append.batch = part->append.buf->data;
        part->append.n = (int32_t)out.n;
    }
    buf_fini(&out);
    return err;
}

static void validate(struct produce *p, struct produce_part *part, struct decompressor *d)
{
    struct topic_config config = part->config;
    struct batch_rules rules = rules_for(p, &config);
    struct bytes records = {.p = part->append.batch, .n = part->append.n};
    struct batch_verdict *v = &part->verdict;

    part->err = batch_validate(records, &rules, d, &p->arena, v);
    part->message = v->message;
    if (!part->err && batch_is_transactional(&v->header)) {
        /* It would hold the last stable offset for ever: nothing ends a transaction here. */
        part->err = ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
        part->message = STR_LIT("a transactional batch needs a transactional id");
    }
    if (part->err)
        return;
    part->append.n = v->batch.n;
    part->append.max_timestamp = v->max_timestamp;
    if (v->needs_rebuild)
        part->err = rebuild(p, part, &config, &rules);
    else if (v->needs_max_timestamp)
        batch_set_max_timestamp(part->append.batch, (size_t)part->append.n, rules.timestamp_type,
                                v->max_timestamp);
    if (rules.timestamp_type == TIMESTAMP_LOG_APPEND)
        v->header.attributes |= BATCH_LOG_APPEND_TIME;
}

static bool needs_decompression(const struct produce_part *part)
{
    struct batch_header h;
    struct bytes batch = {.p = part->append.batch, .n = part->append.n};

    if (part->err || batch_header_parse(batch, &h))
        return false;
    return batch_codec(&h) != CODEC_NONE || part->config.compression > TOPIC_COMPRESSION_NONE;
}

/* Marks what a job validates: all that is compressed, when it is much together. */
static bool mark_large(struct produce *p)
{
    int64_t total = 0;

    for (int i = 0; i < p->part_count; i++) {
        p->parts[i].is_large = needs_decompression(&p->parts[i]);
        total += p->parts[i].is_large ? p->parts[i].append.n : 0;
    }
    if (total > VALIDATE_ON_SHARD_BYTES_MAX)
        return true;
    for (int i = 0; i < p->part_count; i++)
        p->parts[i].is_large = false;
    return false;
}

static void validate_large(struct io_job *job)
{
    struct produce *p = CONTAINER_OF(job, struct produce, job);
    struct decompressor *d = decompressor_new();

    for (int i = 0; i < p->part_count; i++)
        if (p->parts[i].is_large)
            validate(p, &p->parts[i], d);
    decompressor_free(d);
}

static void validated_large(struct io_job *job)
{
    struct produce *p = CONTAINER_OF(job, struct produce, job);
    struct conn *c = p->request->conn;

    c->start_blocked = false;
    append_all(p);
    conn_start_requests(c);
}

static void validate_all(struct produce *p)
{
    bool wait = mark_large(p);

    for (int i = 0; i < p->part_count; i++)
        if (!p->parts[i].err && !p->parts[i].is_large)
            validate(p, &p->parts[i], p->shard->decompressor);
    if (!wait) {
        append_all(p);
        return;
    }
    p->request->conn->start_blocked = !PLANTED(NO_ORDER_OF_VALIDATION);
    p->job.run = validate_large;
    p->job.done = validated_large;
    io_job_submit(p->shard->loop, &p->job);
}

/* ---- the request ------------------------------------------------------------------------ */

static enum err refuse(const struct produce *p, const struct topic_slot *slot,
                       const struct produce_request *in, struct str *message)
{
    if (in->acks < -1 || in->acks > 1)
        return ERR_INVALID_REQUIRED_ACKS;
    if (!str_is_null(in->transactional_id)) {
        *message = str_of("transactions are not served by this broker");
        return ERR_INVALID_TXN_STATE;
    }
    if (metadata_topic_name_is_internal(str_of(slot->name)) &&
        !str_eq_c(p->request->header.client_id, "__admin_client"))
        return ERR_INVALID_TOPIC_EXCEPTION;
    return ERR_NONE;
}

static void init_part(struct produce *p, struct produce_part *part,
                      const struct produce_request_topic *topic,
                      const struct produce_request_partition *from)
{
    struct topic_slot *slot = shard_find_topic_either(p->shard, topic->name, topic->topic_id);

    part->produce = p;
    part->acks = p->acks;
    part->message = str_null();
    part->log_start_offset = -1;
    part->partition = slot_partition(slot, from->index);
    part->append.batch = (uint8_t *)(uintptr_t)from->records.b.p;
    part->append.n = MAX(from->records.b.n, 0);
    if (!part->partition) {
        const struct metadata_topic *known =
            metadata_find_topic_either(p->shard->image, topic->name, topic->topic_id);

        part->err = !slot && !known && p->version >= 13 ? ERR_UNKNOWN_TOPIC_ID
                                                        : shard_absent_error(known, from->index);
        return;
    }
    partition_ref(part->partition);
    part->err = refuse(p, slot, p->request->in, &part->message);
    part->config = slot->config;
    part->append.buf = io_buf_ref(p->request->frame);
    part->append.origin = LOG_ORIGIN_CLIENT;
    part->append.now_ms = p->now_ms;
}

static int64_t count_parts(const struct produce_request *in)
{
    int64_t n = 0;

    for (int32_t t = 0; t < in->topics.n; t++)
        n += MAX(in->topics.v[t].partitions.n, 0);
    return n;
}

void handle_produce(struct request *r)
{
    const struct produce_request *in = r->in;
    int64_t n = count_parts(in);
    struct produce *p;
    struct produce_part *part;

    if (!request_allows_partitions(r, n))
        return;
    p = xcalloc(1, sizeof(*p) + (size_t)n * sizeof(p->parts[0]));
    part = p->parts;
    p->request = r;
    p->shard = r->shard;
    p->now_ms = shard_now_ms(r->shard);
    p->version = r->header.api_version;
    p->acks = in->acks;
    p->part_count = (int)n;
    arena_init(&p->arena, 0);
    for (int32_t t = 0; t < in->topics.n; t++)
        for (int32_t i = 0; i < in->topics.v[t].partitions.n; i++)
            init_part(p, part++, &in->topics.v[t], &in->topics.v[t].partitions.v[i]);
    validate_all(p);
}
