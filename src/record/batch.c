/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a batch: where its fields stand, what makes one believable, and the changes that a
 * broker makes in place.
 *
 * The CRC covers everything from the attributes on. Base offset, length, leader epoch and magic
 * stand before it, so the common append stamps 12 bytes and leaves the client's checksum as the
 * proof of what the client sent, all the way to the consumer. Only a changed timestamp type or max
 * timestamp costs a new checksum.
 */
#include "base/assert.h"
#include "base/limits.h"
#include "record/record_int.h"

/* The smallest message of any format, for bytes behind the length field (Kafka's own bound). */
#define LENGTH_MIN 14
#define LENGTH_MIN_MAGIC_2 (BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES)

static_assert(AT_RECORDS == BATCH_HEADER_BYTES, "the header ends where the records start");
static_assert(AT_LENGTH == BATCH_LENGTH_AT, "one position, two names");
static_assert(AT_CRC == BATCH_FRAME_BYTES, "a frame is recognised by what is before the CRC");

enum err batch_frame(struct bytes in, int32_t *total)
{
    int32_t length;
    int8_t magic;

    *total = 0;
    if (in.n < BATCH_FRAME_BYTES)
        return ERR_AGAIN;
    length = get_i32(in.p + AT_LENGTH);
    magic = (int8_t)in.p[AT_MAGIC];
    if (length < LENGTH_MIN || length > INT32_MAX - BATCH_OVERHEAD_BYTES)
        return ERR_CORRUPT_MESSAGE;
    if (magic < 0 || magic > BATCH_MAGIC)
        return ERR_CORRUPT_MESSAGE;
    if (magic == BATCH_MAGIC && length < LENGTH_MIN_MAGIC_2)
        return ERR_CORRUPT_MESSAGE;
    *total = length + BATCH_OVERHEAD_BYTES;
    return magic == BATCH_MAGIC ? ERR_NONE : ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT;
}

void record__header_decode(const uint8_t *batch, struct batch_header *out)
{
    *out = (struct batch_header){
        .base_offset = get_i64(batch + AT_BASE_OFFSET),
        .length = get_i32(batch + AT_LENGTH),
        .leader_epoch = get_i32(batch + AT_LEADER_EPOCH),
        .magic = (int8_t)batch[AT_MAGIC],
        .crc = get_u32(batch + AT_CRC),
        .attributes = get_i16(batch + AT_ATTRIBUTES),
        .last_offset_delta = get_i32(batch + AT_LAST_OFFSET_DELTA),
        .base_timestamp = get_i64(batch + AT_BASE_TIMESTAMP),
        .max_timestamp = get_i64(batch + AT_MAX_TIMESTAMP),
        .producer_id = get_i64(batch + AT_PRODUCER_ID),
        .producer_epoch = get_i16(batch + AT_PRODUCER_EPOCH),
        .base_sequence = get_i32(batch + AT_BASE_SEQUENCE),
        .record_count = get_i32(batch + AT_RECORD_COUNT),
    };
}

enum err batch_header_parse(struct bytes batch, struct batch_header *out)
{
    int32_t total;

    *out = (struct batch_header){0};
    if (batch.n < BATCH_HEADER_BYTES || batch_frame(batch, &total) != ERR_NONE)
        return ERR_CORRUPT_MESSAGE;
    record__header_decode(batch.p, out);
    if (out->base_offset < 0 || out->last_offset_delta < 0 || out->record_count < 0)
        return ERR_CORRUPT_MESSAGE;
    if (out->base_offset > INT64_MAX - 1 - out->last_offset_delta)
        return ERR_CORRUPT_MESSAGE;
    return ERR_NONE;
}

void batch_header_put(uint8_t *batch, const struct batch_header *h)
{
    put_i64(batch + AT_BASE_OFFSET, h->base_offset);
    put_i32(batch + AT_LENGTH, h->length);
    put_i32(batch + AT_LEADER_EPOCH, h->leader_epoch);
    batch[AT_MAGIC] = (uint8_t)h->magic;
    put_u32(batch + AT_CRC, h->crc);
    put_i16(batch + AT_ATTRIBUTES, h->attributes);
    put_i32(batch + AT_LAST_OFFSET_DELTA, h->last_offset_delta);
    put_i64(batch + AT_BASE_TIMESTAMP, h->base_timestamp);
    put_i64(batch + AT_MAX_TIMESTAMP, h->max_timestamp);
    put_i64(batch + AT_PRODUCER_ID, h->producer_id);
    put_i16(batch + AT_PRODUCER_EPOCH, h->producer_epoch);
    put_i32(batch + AT_BASE_SEQUENCE, h->base_sequence);
    put_i32(batch + AT_RECORD_COUNT, h->record_count);
}

static uint32_t crc_of(const uint8_t *batch, size_t n)
{
    return crc32c(batch + AT_ATTRIBUTES, n - AT_ATTRIBUTES);
}

bool batch_crc_ok(struct bytes batch)
{
    return batch.n >= BATCH_HEADER_BYTES &&
           get_u32(batch.p + AT_CRC) == crc_of(batch.p, (size_t)batch.n);
}

void record__batch_seal(uint8_t *batch, size_t n)
{
    assert(n >= BATCH_HEADER_BYTES);
    put_u32(batch + AT_CRC, crc_of(batch, n));
}

void batch_stamp(uint8_t *batch, int64_t base_offset, int32_t leader_epoch)
{
    put_i64(batch + AT_BASE_OFFSET, base_offset);
    put_i32(batch + AT_LEADER_EPOCH, leader_epoch);
}

void batch_set_max_timestamp(uint8_t *batch, size_t n, enum timestamp_type type, int64_t ms)
{
    uint16_t attributes = get_u16(batch + AT_ATTRIBUTES);

    attributes &= (uint16_t)~BATCH_LOG_APPEND_TIME;
    if (type == TIMESTAMP_LOG_APPEND)
        attributes |= BATCH_LOG_APPEND_TIME;
    put_u16(batch + AT_ATTRIBUTES, attributes);
    put_i64(batch + AT_MAX_TIMESTAMP, ms);
    record__batch_seal(batch, n);
}
