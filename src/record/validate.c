/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broker asks of a batch before it takes it: the rules of Kafka's produce path, in its order
 * and with its error codes, so that every client reacts as it does there.
 *
 *   1  the request: one whole batch of the current format, in a codec that its version may use
 *   2  the bytes: base offset, size, checksum
 *   3  the header: count and offsets agree, nothing that only a broker may write
 *   4  the records: structure, keys, timestamps; for this a compressed batch is decompressed, as a
 *      stream and without materialising anything
 *   5  the size against the segment's, unless the batch is to be rebuilt anyway
 *
 * Structure errors end the check at once. Missing keys and bad timestamps belong to single records:
 * they are collected, and one bad record rejects the batch.
 *
 * We are stricter than Kafka in three places where a client has no business: a batch that claims
 * log append time is refused on every topic, a delete horizon too, and uncompressed batches with
 * gaps in their offsets are rebuilt like compressed ones.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/limits.h"
#include "record/record_int.h"

#define ZSTD_PRODUCE_VERSION_MIN 7
#define MESSAGE_BYTES_MAX 160

struct check {
    const struct batch_rules *rules;
    struct arena *arena;
    struct batch_verdict *v;
    bool has_bad_timestamp;
};

/* Empty when the arena's limit is reached: the code alone has to do then. */
static printf_like(2, 3) struct str format(struct arena *arena, const char *fmt, ...)
{
    char text[MESSAGE_BYTES_MAX];
    va_list args;
    char *copy;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    assert(n >= 0);
    n = MIN(n, (int)sizeof(text) - 1);
    copy = arena_alloc(arena, (size_t)n);
    if (!copy)
        return STR_LIT("");
    memcpy(copy, text, (size_t)n);
    return (struct str){.p = copy, .n = n};
}

static enum err reject(struct check *c, enum err err, const char *why)
{
    c->v->err = err;
    c->v->message = str_of(why);
    return err;
}

/* ---- 1 and 2: request and bytes. -------------------------------------------------------- */

/* Whether another batch follows; the beginning of one is dropped silently, as in Kafka. */
static enum err check_rest(struct check *c, struct bytes rest)
{
    int32_t total;
    enum err err = batch_frame(rest, &total);

    if (err == ERR_CORRUPT_MESSAGE)
        return reject(c, err, "bytes behind the batch are no batch");
    if (err != ERR_AGAIN && total <= rest.n)
        return reject(c, ERR_INVALID_RECORD, "more than one record batch for a partition");
    return ERR_NONE;
}

static enum err check_request(struct check *c, struct bytes records)
{
    int32_t total;
    enum err err = batch_frame(records, &total);

    if (err == ERR_CORRUPT_MESSAGE)
        return reject(c, err, "length or magic of the batch is out of range");
    if (err == ERR_AGAIN || total > records.n)
        return reject(c, ERR_INVALID_RECORD, "no complete record batch for the partition");
    if (err)
        return reject(c, ERR_INVALID_RECORD, "record batch is not of format version 2");
    c->v->batch = (struct bytes){.p = records.p, .n = total};
    record__header_decode(records.p, &c->v->header);
    if (c->rules->from_client && c->rules->produce_version < ZSTD_PRODUCE_VERSION_MIN &&
        batch_codec(&c->v->header) == CODEC_ZSTD)
        return reject(c, ERR_UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7");
    return check_rest(c, (struct bytes){.p = records.p + total, .n = records.n - total});
}

static enum err check_bytes(struct check *c)
{
    const struct batch_header *h = &c->v->header;

    if (c->rules->from_client && h->base_offset != 0)
        return reject(c, ERR_INVALID_RECORD, "base offset of a produced batch must be 0");
    if (c->v->batch.n > c->rules->max_message_bytes)
        return reject(c, ERR_MESSAGE_TOO_LARGE, "record batch is larger than max.message.bytes");
    if (!batch_crc_ok(c->v->batch))
        return reject(c, ERR_CORRUPT_MESSAGE, "checksum of the batch does not match its bytes");
    return ERR_NONE;
}

/* ---- 3: header. ------------------------------------------------------------------------- */

static enum err check_client_header(struct check *c)
{
    const struct batch_header *h = &c->v->header;

    if (h->last_offset_delta < 0 || h->last_offset_delta == INT32_MAX)
        return reject(c, ERR_INVALID_RECORD, "last offset delta is out of range");
    if (h->record_count <= 0)
        return reject(c, ERR_INVALID_RECORD, "record count must be positive");
    if (h->record_count != h->last_offset_delta + 1)
        return reject(c, ERR_INVALID_RECORD, "record count and last offset delta disagree");
    if (batch_is_control(h))
        return reject(c, ERR_INVALID_RECORD, "clients must not write control records");
    if (h->producer_id >= 0 && h->base_sequence < 0)
        return reject(c, ERR_INVALID_RECORD, "producer id without a sequence");
    if (h->producer_id >= 0 && h->producer_epoch < 0)
        return reject(c, ERR_INVALID_PRODUCER_EPOCH, "producer id without an epoch");
    if (h->attributes & BATCH_DELETE_HORIZON)
        return reject(c, ERR_INVALID_RECORD, "clients must not set a delete horizon");
    return ERR_NONE;
}

static enum err check_header(struct check *c)
{
    const struct batch_header *h = &c->v->header;
    int target = c->rules->target_codec;

    if ((int)batch_codec(h) >= CODEC_COUNT)
        return reject(c, ERR_UNSUPPORTED_COMPRESSION_TYPE, "unknown codec");
    /* A control batch stays uncompressed whatever the topic wants. */
    c->v->needs_rebuild = target >= 0 && target != (int)batch_codec(h) && !batch_is_control(h);
    if (c->rules->from_client)
        return check_client_header(c);
    if (h->last_offset_delta < 0 || h->record_count < 0)
        return reject(c, ERR_INVALID_RECORD, "count or last offset delta is negative");
    return ERR_NONE;
}

/* ---- 4: records. ------------------------------------------------------------------------ */

static void add_record_error(struct check *c, int32_t index, struct str message)
{
    struct batch_verdict *v = c->v;
    int32_t at = v->record_error_count++;

    if (at == 0)
        v->record_errors =
            arena_calloc(c->arena, BATCH_RECORD_ERRORS_MAX, sizeof(*v->record_errors));
    if (v->record_errors && at < BATCH_RECORD_ERRORS_MAX)
        v->record_errors[at] = (struct batch_record_error){.index = index, .message = message};
}

static int64_t saturating_sub(int64_t a, int64_t b)
{
    int64_t d;

    if (!__builtin_sub_overflow(a, b, &d))
        return d;
    return b > 0 ? INT64_MIN : INT64_MAX;
}

static bool is_out_of_range(const struct batch_rules *rules, int64_t timestamp)
{
    return saturating_sub(rules->now_ms, timestamp) > rules->before_max_ms ||
           saturating_sub(timestamp, rules->now_ms) > rules->after_max_ms;
}

/* What is wrong with a timestamp; null when nothing is. */
static struct str timestamp_error(struct check *c, int64_t timestamp)
{
    const struct batch_rules *rules = c->rules;

    if (batch_timestamp_type(&c->v->header) == TIMESTAMP_LOG_APPEND)
        return STR_LIT("producers must not set log append time");
    if (rules->timestamp_type == TIMESTAMP_LOG_APPEND || timestamp == -1)
        return str_null();
    if (!is_out_of_range(rules, timestamp))
        return str_null();
    if (c->v->record_error_count >= BATCH_RECORD_ERRORS_MAX)
        return STR_LIT("timestamp out of range");
    return format(c->arena,
                  "timestamp %" PRId64 " is not within %" PRId64 " ms before and %" PRId64
                  " ms after the broker's time, %" PRId64,
                  timestamp, rules->before_max_ms, rules->after_max_ms, rules->now_ms);
}

static void check_record(struct check *c, int32_t index, const struct record_fields *f)
{
    struct batch_verdict *v = c->v;
    int64_t timestamp =
        (int64_t)((uint64_t)v->header.base_timestamp + (uint64_t)f->timestamp_delta);
    struct str message;

    if (c->rules->is_compacted && f->key.n < 0) {
        add_record_error(c, index, STR_LIT("a compacted topic needs a key in every record"));
        return;
    }
    message = timestamp_error(c, timestamp);
    if (!str_is_null(message)) {
        c->has_bad_timestamp = true;
        add_record_error(c, index, message);
        return;
    }
    if (timestamp > v->max_timestamp) {
        v->max_timestamp = timestamp;
        v->offset_of_max_timestamp = index;
    }
    /* Readers rely on offsets without gaps in a fresh batch: the rebuild makes them so. */
    if (f->offset_delta != index)
        v->needs_rebuild = true;
}

/* A structure error of the stream as a verdict. */
static enum err reject_stream(struct check *c, const struct record_stream *s, int32_t index)
{
    enum err err = s->err;

    if (err == ERR_CORRUPT_MESSAGE)
        err = ERR_UNKNOWN_SERVER_ERROR; /* The checksum was right, so sending it again is no use. */
    else if (err == ERR_LIMIT)
        err = ERR_MESSAGE_TOO_LARGE; /* The Java client splits the batch and sends the halves. */
    c->v->record_errors = NULL;
    c->v->record_error_count = 0;
    c->v->err = err;
    c->v->message = format(c->arena, "record %" PRId32 ": %s", index, s->why);
    return err;
}

static enum err check_stream(struct check *c, struct record_stream *s)
{
    int32_t count = c->v->header.record_count;
    struct record_fields fields;

    for (int32_t i = 0; i < count; i++) {
        if (record__stream_next(s, false, &fields))
            return reject_stream(c, s, i);
        check_record(c, i, &fields);
    }
    if (record__stream_end(s))
        return reject_stream(c, s, count);
    return ERR_NONE;
}

static enum err check_records(struct check *c, struct decompressor *d)
{
    struct batch_verdict *v = c->v;
    struct record_stream s = {0};
    struct bytes records = {.p = v->batch.p + AT_RECORDS, .n = v->batch.n - AT_RECORDS};
    enum err err;

    v->max_timestamp = -1;
    v->offset_of_max_timestamp = -1;
    record__stream_start(&s, records, batch_codec(&v->header), d, DECOMPRESSED_BYTES_MAX);
    err = check_stream(c, &s);
    record__stream_fini(&s);
    if (err || v->record_error_count == 0)
        return err;
    if (c->has_bad_timestamp)
        return reject(c, ERR_INVALID_TIMESTAMP, "timestamps of one or more records are invalid");
    return reject(c, ERR_INVALID_RECORD, "one or more records have no key");
}

/* ---- The whole. ------------------------------------------------------------------------- */

static void settle_timestamps(struct check *c)
{
    struct batch_verdict *v = c->v;

    if (c->rules->timestamp_type == TIMESTAMP_LOG_APPEND) {
        v->max_timestamp = c->rules->now_ms;
        v->offset_of_max_timestamp = 0;
    }
    v->needs_max_timestamp = v->header.max_timestamp != v->max_timestamp ||
                             batch_timestamp_type(&v->header) != c->rules->timestamp_type;
}

enum err batch_check_size(int64_t total, const struct batch_rules *rules)
{
    if (total > rules->max_message_bytes)
        return ERR_MESSAGE_TOO_LARGE;
    return total > rules->segment_bytes ? ERR_RECORD_LIST_TOO_LARGE : ERR_NONE;
}

enum err batch_validate(struct bytes records, const struct batch_rules *rules,
                        struct decompressor *d, struct arena *arena, struct batch_verdict *out)
{
    struct check c = {.rules = rules, .arena = arena, .v = out};
    enum err err;

    *out = (struct batch_verdict){.message = str_null()};
    err = check_request(&c, records);
    if (!err)
        err = check_bytes(&c);
    if (!err)
        err = check_header(&c);
    if (!err)
        err = check_records(&c, d);
    if (err)
        return err;
    settle_timestamps(&c);
    if (!out->needs_rebuild && out->batch.n > rules->segment_bytes)
        return reject(&c, ERR_RECORD_LIST_TOO_LARGE, "record batch is larger than segment.bytes");
    return ERR_NONE;
}
