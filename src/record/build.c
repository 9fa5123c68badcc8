/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches are built record by record into a buffer that is compressed and sealed at the end; the
 * producer, the markers of transactions, compaction and every rewrite of a batch come through here.
 *
 * Deltas are written while records arrive, so the base of timestamps has to be known at the first
 * record: it is that record's own timestamp, or the delete horizon (KIP-534), which takes the
 * field's place in a batch that compaction has been through. All else is settled at the end.
 */
#include "base/assert.h"
#include "base/limits.h"
#include "record/record_int.h"

/* However generous the caller: lengths on the wire are int32. */
#define BATCH_BYTES_LIMIT ((size_t)1 << 30)
/* Length, attributes, timestamp and offset delta, three more lengths. */
#define RECORD_OVERHEAD_MAX (5 * VARINT_BYTES_MAX + VARLONG_BYTES_MAX + 1)

struct batch_spec batch_spec_default(void)
{
    return (struct batch_spec){
        .level = CODEC_LEVEL_DEFAULT,
        .max_timestamp = -1,
        .leader_epoch = -1,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
        .last_offset_delta = -1,
        .delete_horizon_ms = -1,
    };
}

struct batch_spec batch_spec_of(const struct batch_header *h)
{
    bool has_horizon = h->attributes & BATCH_DELETE_HORIZON;

    return (struct batch_spec){
        .codec = batch_codec(h),
        .level = CODEC_LEVEL_DEFAULT,
        .timestamp_type = batch_timestamp_type(h),
        .max_timestamp = h->max_timestamp,
        .base_offset = h->base_offset,
        .leader_epoch = h->leader_epoch,
        .producer_id = h->producer_id,
        .producer_epoch = h->producer_epoch,
        .base_sequence = h->base_sequence,
        .is_transactional = batch_is_transactional(h),
        .is_control = batch_is_control(h),
        .last_offset_delta = h->last_offset_delta,
        .delete_horizon_ms = has_horizon ? h->base_timestamp : -1,
    };
}

static void make_empty(struct batch_builder *b)
{
    buf_reset(&b->bytes);
    b->count = 0;
    b->next_delta = 0;
    b->base_timestamp = b->spec.delete_horizon_ms;
    b->max_timestamp = -1;
}

void batch_builder_init(struct batch_builder *b, const struct batch_spec *spec)
{
    *b = (struct batch_builder){.spec = *spec};
    make_empty(b);
}

void batch_builder_fini(struct batch_builder *b)
{
    buf_fini(&b->bytes);
}

size_t batch_builder_bytes(const struct batch_builder *b)
{
    return AT_RECORDS + b->bytes.n;
}

/* ---- One record. ------------------------------------------------------------------------ */

static size_t present(struct bytes b)
{
    return b.n > 0 ? (size_t)b.n : 0;
}

/* Bytes of the record behind its length. */
static size_t body_size(const struct record *r, int64_t timestamp_delta, int32_t offset_delta)
{
    return 1 + (size_t)varlong_size(timestamp_delta) + (size_t)varint_size(offset_delta) +
           (size_t)varint_size(r->key.n) + present(r->key) + (size_t)varint_size(r->value.n) +
           present(r->value) + (size_t)varint_size(r->header_count) + present(r->headers);
}

static void put_varint(struct buf *out, int32_t v)
{
    out->n += (size_t)varint_put(buf_reserve(out, VARINT_BYTES_MAX), v);
}

static void put_bytes(struct buf *out, struct bytes b)
{
    put_varint(out, b.n);
    buf_append(out, b.p, present(b));
}

static void put_record(struct buf *out, const struct record *r, size_t body,
                       int64_t timestamp_delta, int32_t offset_delta)
{
    buf_reserve(out, body + VARINT_BYTES_MAX);
    put_varint(out, (int32_t)body);
    *buf_extend(out, 1) = 0;
    out->n += (size_t)varlong_put(buf_reserve(out, VARLONG_BYTES_MAX), timestamp_delta);
    put_varint(out, offset_delta);
    put_bytes(out, r->key);
    put_bytes(out, r->value);
    put_varint(out, r->header_count);
    buf_append(out, r->headers.p, present(r->headers));
}

static bool fits(const struct batch_builder *b, size_t more)
{
    size_t total = batch_builder_bytes(b) + more;

    if (total > BATCH_BYTES_LIMIT)
        return false;
    return b->count == 0 || b->spec.bytes_max == 0 || total <= b->spec.bytes_max;
}

static enum err append(struct batch_builder *b, const struct record *r, int32_t offset_delta)
{
    bool is_base = b->count == 0 && b->spec.delete_horizon_ms < 0;
    int64_t base = is_base ? r->timestamp : b->base_timestamp;
    int64_t delta = (int64_t)((uint64_t)r->timestamp - (uint64_t)base);
    size_t body = body_size(r, delta, offset_delta);

    assert(r->header_count >= 0);
    if (!fits(b, body + (size_t)varint_size((int32_t)MIN(body, BATCH_BYTES_LIMIT))))
        return ERR_LIMIT;
    put_record(&b->bytes, r, body, delta, offset_delta);
    b->base_timestamp = base;
    b->max_timestamp = MAX(b->max_timestamp, r->timestamp);
    b->next_delta = offset_delta + 1;
    b->count++;
    return ERR_NONE;
}

enum err batch_builder_append(struct batch_builder *b, const struct record *r)
{
    if (b->next_delta == INT32_MAX)
        return ERR_LIMIT;
    return append(b, r, b->next_delta);
}

enum err batch_builder_append_at(struct batch_builder *b, const struct record *r)
{
    int64_t delta;

    if (__builtin_sub_overflow(r->offset, b->spec.base_offset, &delta))
        return ERR_INVALID_RECORD;
    if (delta < b->next_delta || delta >= INT32_MAX)
        return ERR_INVALID_RECORD;
    return append(b, r, (int32_t)delta);
}

/* ---- The batch. ------------------------------------------------------------------------- */

static int16_t attributes_of(const struct batch_spec *spec, enum codec codec)
{
    int bits = (int)codec;

    if (spec->timestamp_type == TIMESTAMP_LOG_APPEND)
        bits |= BATCH_LOG_APPEND_TIME;
    if (spec->is_transactional)
        bits |= BATCH_TRANSACTIONAL;
    if (spec->is_control)
        bits |= BATCH_CONTROL;
    if (spec->delete_horizon_ms >= 0)
        bits |= BATCH_DELETE_HORIZON;
    return (int16_t)bits;
}

static struct batch_header header_of(const struct batch_builder *b, enum codec codec, size_t total)
{
    const struct batch_spec *spec = &b->spec;
    bool is_given = spec->timestamp_type == TIMESTAMP_LOG_APPEND || b->count == 0;
    bool keeps_delta = spec->last_offset_delta >= 0;

    return (struct batch_header){
        .base_offset = spec->base_offset,
        .length = (int32_t)(total - BATCH_OVERHEAD_BYTES),
        .leader_epoch = spec->leader_epoch,
        .magic = BATCH_MAGIC,
        .attributes = attributes_of(spec, codec),
        .last_offset_delta = keeps_delta ? spec->last_offset_delta : b->next_delta - 1,
        .base_timestamp = b->base_timestamp,
        .max_timestamp = is_given ? spec->max_timestamp : b->max_timestamp,
        .producer_id = spec->producer_id,
        .producer_epoch = spec->producer_epoch,
        .base_sequence = spec->base_sequence,
        .record_count = b->count,
    };
}

void batch_builder_finish(struct batch_builder *b, struct buf *out)
{
    size_t at = out->n;
    /* Kafka writes emptied batches without a codec. */
    enum codec codec = b->count == 0 ? CODEC_NONE : b->spec.codec;
    struct batch_header header;

    assert(b->count > 0 || b->spec.last_offset_delta >= 0);
    assert(b->spec.last_offset_delta < 0 || b->spec.last_offset_delta >= b->next_delta - 1);
    buf_extend(out, AT_RECORDS);
    codec_compress(codec, b->spec.level, buf_bytes(&b->bytes, 0), out);
    header = header_of(b, codec, out->n - at);
    batch_header_put(out->p + at, &header);
    record__batch_seal(out->p + at, out->n - at);
    make_empty(b);
}

/* The first error of the records, or of the builder; ERR_NONE when all were taken over. */
static enum err take_over(struct batch_builder *b, struct record_iter *it)
{
    struct record r;
    enum err err;

    while (!(err = record_iter_next(it, &r))) {
        err = batch_builder_append(b, &r);
        if (err)
            return err;
    }
    return err == ERR_EOF ? ERR_NONE : err;
}

enum err batch_rebuild(struct bytes batch, enum codec target, int level, enum timestamp_type type,
                       int64_t now_ms, struct buf *out)
{
    struct record_iter it;
    struct batch_builder b = {0};
    struct batch_spec spec;
    enum err err;

    record_iter_init(&it);
    err = record_iter_batch(&it, batch);
    if (err)
        goto out;
    spec = batch_spec_of(&it.header);
    spec.codec = target;
    spec.level = level;
    spec.timestamp_type = type;
    spec.max_timestamp = now_ms;
    spec.last_offset_delta = -1;
    batch_builder_init(&b, &spec);
    err = take_over(&b, &it);
    if (!err && b.count == 0)
        err = ERR_INVALID_RECORD;
    if (!err)
        batch_builder_finish(&b, out);
out:
    batch_builder_fini(&b);
    record_iter_fini(&it);
    return err;
}
