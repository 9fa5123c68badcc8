/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where records gather: topics, their partitions, and a queue of batches for each.
 *
 * A batch is built in memory as it will be sent, so a record costs one copy. It is open until it is
 * first sent; then it is compressed, gets its producer id and its place in the sequence (KIP-98),
 * and keeps both over all attempts, because that is how the broker knows a repetition.
 *
 * Sequence numbers belong to a partition. Since one batch of it is on its way at a time, there are
 * two simple ways out when one fails for good: if it was certainly not stored, its numbers are used
 * again; if that is not known, the partition goes on with the next epoch and a sequence from 0,
 * which the broker accepts from the same producer (KIP-360).
 *
 * Records whose topic is not known yet wait with a copy of their own: which partition they belong
 * to depends on how many there are.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "client/producer_int.h"
#include "record/murmur2.h"

#define RECORD_OVERHEAD_BYTES 64
#define CRC_AT 17
#define ATTRIBUTES_AT 21

int64_t producer__memory_of(const struct producer_record *record)
{
    int64_t n = RECORD_OVERHEAD_BYTES + MAX(record->key.n, 0) + MAX(record->value.n, 0);

    for (int32_t i = 0; i < record->header_count; i++)
        n += MAX(record->headers[i].key.n, 0) + MAX(record->headers[i].value.n, 0) + 8;
    return n;
}

void producer__release(struct producer *p, int64_t memory, int32_t records)
{
    p->memory -= memory;
    p->records -= records;
    assert(p->memory >= 0 && p->records >= 0);
}

/* ---- Topics and partitions. */

struct topic_state *producer__topic(struct producer *p, struct str name)
{
    struct topic_state *t;

    HASH_FIND(hh, p->topics, name.p, (unsigned)name.n, t);
    if (t)
        return t;
    t = xcalloc(1, sizeof(*t));
    t->name = str_dup(name);
    t->producer = p;
    t->sticky = -1;
    list_init(&t->homeless);
    HASH_ADD_KEYPTR(hh, p->topics, t->name, (unsigned)name.n, t);
    client_topic_watch(p->client, name);
    return t;
}

int32_t producer__partition_count(const struct topic_state *t, enum err *err)
{
    const struct client_topic *known = client_topic_find(t->producer->client, str_of(t->name));

    *err = known ? known->err : ERR_NONE;
    return known ? known->partition_count : 0;
}

static struct partition_state *partition_of(struct topic_state *t, int32_t index)
{
    struct partition_state *ps;

    if (index >= t->partition_count) {
        t->partitions =
            xreallocarray(t->partitions, (size_t)index + 1, sizeof(struct partition_state *));
        for (int32_t i = t->partition_count; i <= index; i++)
            t->partitions[i] = NULL;
        t->partition_count = index + 1;
    }
    if (t->partitions[index])
        return t->partitions[index];
    ps = xcalloc(1, sizeof(*ps));
    ps->topic = t;
    ps->index = index;
    ps->producer_id = -1;
    list_init(&ps->queue);
    return t->partitions[index] = ps;
}

/* Stays with one partition until it has had a batch's worth of bytes (KIP-794). */
static int32_t sticky_partition(struct topic_state *t, int64_t bytes, int32_t partitions)
{
    struct producer *p = t->producer;

    if (t->sticky < 0 || t->sticky >= partitions || t->sticky_bytes >= p->config.batch_size) {
        t->sticky = (int32_t)rng_below(&p->rng, (uint64_t)partitions);
        t->sticky_bytes = 0;
    }
    t->sticky_bytes += (int32_t)bytes;
    return t->sticky;
}

static int32_t choose_partition(struct topic_state *t, const struct producer_record *record)
{
    const struct producer_config *config = &t->producer->config;
    enum err err;
    int32_t partitions = producer__partition_count(t, &err);
    int32_t chosen;

    if (record->partition >= 0)
        return record->partition;
    assert(partitions > 0);
    if (config->partitioner) {
        chosen = config->partitioner(config->partitioner_ctx, record, partitions);
        assert(chosen >= 0 && chosen < partitions);
        return chosen;
    }
    if (record->key.n >= 0)
        return murmur2_partition(record->key, partitions);
    return sticky_partition(t, producer__memory_of(record), partitions);
}

/* ---- Batches. */

static struct batch *batch_new(const struct producer *p, int64_t now_ns, int64_t deadline_ns)
{
    struct batch *b = xcalloc(1, sizeof(*b));
    struct batch_spec spec = batch_spec_default();

    spec.codec = p->config.compression_type;
    spec.level = p->config.compression_level;
    spec.bytes_max = (size_t)MAX(p->config.batch_size, 1);
    batch_builder_init(&b->builder, &spec);
    buf_init(&b->bytes);
    list_init(&b->node);
    b->created_ns = now_ns;
    b->deadline_ns = deadline_ns;
    return b;
}

static void batch_free(struct batch *b)
{
    batch_builder_fini(&b->builder);
    buf_fini(&b->bytes);
    free(b->receipts);
    free(b);
}

static void add_receipt(struct batch *b, const struct receipt *receipt, int64_t memory)
{
    if (b->count == b->cap) {
        b->cap = MAX(8, b->cap * 2);
        b->receipts = xreallocarray(b->receipts, (size_t)b->cap, sizeof(*b->receipts));
    }
    b->receipts[b->count++] = *receipt;
    b->memory += memory;
}

static struct batch *open_batch(struct partition_state *ps)
{
    struct batch *last;

    if (list_is_empty(&ps->queue))
        return NULL;
    last = LIST_ENTRY(ps->queue.prev, struct batch, node);
    return last->is_sealed ? NULL : last;
}

static void append(struct partition_state *ps, const struct record *r,
                   const struct receipt *receipt, int64_t memory, int64_t deadline_ns)
{
    struct producer *p = ps->topic->producer;
    struct batch *b = open_batch(ps);
    enum err err = b ? batch_builder_append(&b->builder, r) : ERR_LIMIT;

    if (err) {
        b = batch_new(p, io_mono_ns(io_loop_io(client_loop(p->client))), deadline_ns);
        list_push_back(&ps->queue, &b->node);
        err = batch_builder_append(&b->builder, r);
        assert(!err);
    }
    add_receipt(b, receipt, memory);
}

void producer__place(struct topic_state *t, const struct producer_record *record,
                     const struct receipt *receipt, int64_t deadline_ns)
{
    struct partition_state *ps = partition_of(t, choose_partition(t, record));
    struct record r = {
        .timestamp = receipt->timestamp,
        .key = record->key,
        .value = record->value,
        .header_count = record->header_count,
    };
    struct buf headers = {0};

    for (int32_t i = 0; i < record->header_count; i++)
        record_header_put(&headers, record->headers[i].key, record->headers[i].value);
    r.headers = buf_bytes(&headers, 0);
    append(ps, &r, receipt, producer__memory_of(record), deadline_ns);
    buf_fini(&headers);
}

struct batch *producer__ready(struct partition_state *ps, int64_t now_ns, int64_t *at_ns)
{
    const struct producer *p = ps->topic->producer;
    struct batch *b = LIST_FIRST(&ps->queue, struct batch, node);
    int64_t linger_ns;

    if (ps->in_flight || !b)
        return NULL;
    *at_ns = MIN(*at_ns, b->deadline_ns);
    if (now_ns < ps->retry_at_ns) {
        *at_ns = MIN(*at_ns, ps->retry_at_ns);
        return NULL;
    }
    linger_ns = b->created_ns + (int64_t)p->config.linger_ms * NS_PER_MS;
    if (b->is_sealed || b->node.next != &ps->queue || p->is_flushing || p->was_refused ||
        batch_builder_bytes(&b->builder) >= (size_t)p->config.batch_size || now_ns >= linger_ns)
        return b;
    *at_ns = MIN(*at_ns, linger_ns);
    return NULL;
}

/* ---- Sequences. */

static void write_stamp(struct partition_state *ps, struct batch *b)
{
    struct batch_header h;
    enum err err = batch_header_parse(buf_bytes(&b->bytes, 0), &h);

    assert(!err);
    h.producer_id = ps->producer_id;
    h.producer_epoch = ps->producer_epoch;
    h.base_sequence = b->base_sequence;
    batch_header_put(b->bytes.p, &h);
    put_u32(b->bytes.p + CRC_AT, crc32c(b->bytes.p + ATTRIBUTES_AT, b->bytes.n - ATTRIBUTES_AT));
}

static void seal(struct partition_state *ps, struct batch *b)
{
    b->builder.spec.producer_id = ps->producer_id;
    b->builder.spec.producer_epoch = ps->producer_epoch;
    b->builder.spec.base_sequence = b->base_sequence;
    batch_builder_finish(&b->builder, &b->bytes);
    b->is_sealed = true;
}

void producer__stamp(struct partition_state *ps, struct batch *b)
{
    const struct producer *p = ps->topic->producer;

    if (b->is_stamped)
        return;
    if (!p->config.enable_idempotence) {
        b->base_sequence = -1;
    } else {
        if (ps->producer_id < 0 || ps->producer_id != p->producer_id) {
            ps->producer_id = p->producer_id;
            ps->producer_epoch = p->producer_epoch;
            ps->next_sequence = 0;
        }
        b->base_sequence = ps->next_sequence;
        ps->next_sequence =
            (int32_t)(((uint32_t)ps->next_sequence + (uint32_t)b->count) & INT32_MAX);
    }
    if (b->is_sealed)
        write_stamp(ps, b);
    else
        seal(ps, b);
    b->is_stamped = true;
}

void producer__unstamp(struct partition_state *ps, struct batch *b)
{
    if (!b->is_stamped)
        return;
    if (b->base_sequence >= 0)
        ps->next_sequence = b->base_sequence;
    b->is_stamped = false;
}

void producer__bump_epoch(struct partition_state *ps)
{
    struct producer *p = ps->topic->producer;

    if (!p->config.enable_idempotence)
        return;
    LIST_EACH (l, &ps->queue)
        LIST_ENTRY(l, struct batch, node)->is_stamped = false;
    ps->next_sequence = 0;
    if (ps->producer_epoch < INT16_MAX) {
        ps->producer_epoch++;
        return;
    }
    ps->producer_id = -1;
    p->producer_id = -1;
}

/* ---- Splitting. */

/* A half shares age, deadline and attempts with the batch that it comes from. */
static struct batch *half_new(const struct partition_state *ps, const struct batch *b)
{
    struct batch *half = batch_new(ps->topic->producer, b->created_ns, b->deadline_ns);

    half->builder.spec.bytes_max = 0;
    half->attempts = b->attempts;
    half->last_err = b->last_err;
    return half;
}

void producer__split(struct partition_state *ps, struct batch *b)
{
    struct batch *halves[2] = {half_new(ps, b), half_new(ps, b)};
    struct record_iter it;
    struct record r;
    enum err err;
    int32_t i = 0;

    assert(b->is_sealed && b->count > 1);
    producer__unstamp(ps, b);
    record_iter_init(&it);
    err = record_iter_batch(&it, buf_bytes(&b->bytes, 0));
    for (; !err && !(err = record_iter_next(&it, &r)); i++) {
        struct batch *half = halves[i >= b->count / 2];

        err = batch_builder_append(&half->builder, &r);
        add_receipt(half, &b->receipts[i], i == 0 ? b->memory : 0);
    }
    assert(err == ERR_EOF && i == b->count);
    record_iter_fini(&it);
    list_push_front(&ps->queue, &halves[1]->node);
    list_push_front(&ps->queue, &halves[0]->node);
    batch_free(b);
}

/* ---- Answers. */

static void tell(struct partition_state *ps, const struct receipt *receipt, int64_t offset,
                 const struct batch_outcome *o)
{
    struct producer_result result = {
        .err = o->err,
        .topic = str_of(ps->topic->name),
        .partition = ps->index,
        .offset = offset,
        .timestamp = o->log_append_time_ms >= 0 ? o->log_append_time_ms : receipt->timestamp,
        .message = o->message,
    };

    if (receipt->done)
        receipt->done(receipt->ctx, &result);
}

void producer__answer(struct partition_state *ps, struct batch *b, const struct batch_outcome *o)
{
    list_remove(&b->node);
    producer__release(ps->topic->producer, b->memory, b->count);
    for (int32_t i = 0; i < b->count; i++)
        tell(ps, &b->receipts[i], o->base_offset < 0 ? -1 : o->base_offset + i, o);
    batch_free(b);
}

static void answer_homeless(struct topic_state *t, struct homeless *h, enum err err)
{
    struct producer_result result = {
        .err = err,
        .topic = str_of(t->name),
        .partition = h->record.partition,
        .offset = -1,
        .timestamp = h->receipt.timestamp,
        .message = str_null(),
    };

    list_remove(&h->node);
    producer__release(t->producer, h->memory, 1);
    if (h->receipt.done)
        h->receipt.done(h->receipt.ctx, &result);
    free(h);
}

void producer__settle(struct topic_state *t, int64_t now_ns)
{
    enum err err;
    int32_t partitions = producer__partition_count(t, &err);

    LIST_EACH_SAFE (l, &t->homeless) {
        struct homeless *h = LIST_ENTRY(l, struct homeless, node);

        if (err && !err_is_retriable(err)) {
            answer_homeless(t, h, err);
        } else if (partitions > 0) {
            producer__place(t, &h->record, &h->receipt, h->deadline_ns);
            list_remove(&h->node);
            free(h);
        } else if (now_ns >= h->deadline_ns) {
            answer_homeless(t, h, err ? err : ERR_TIMEOUT);
        }
    }
    if (!list_is_empty(&t->homeless))
        client_metadata_expire(t->producer->client);
}

void producer__drop_topic(struct topic_state *t)
{
    struct batch_outcome cancelled = {
        .err = ERR_CANCELLED, .base_offset = -1, .log_append_time_ms = -1, .message = str_null()};

    for (int32_t i = 0; i < t->partition_count; i++) {
        struct partition_state *ps = t->partitions[i];

        if (!ps)
            continue;
        if (ps->in_flight)
            producer__answer(ps, ps->in_flight, &cancelled);
        for (struct list *l; (l = ps->queue.next) != &ps->queue;)
            producer__answer(ps, LIST_ENTRY(l, struct batch, node), &cancelled);
        free(ps);
    }
    for (struct list *l; (l = t->homeless.next) != &t->homeless;)
        answer_homeless(t, LIST_ENTRY(l, struct homeless, node), ERR_CANCELLED);
    free(t->partitions);
    free(t->name);
    free(t);
}
