/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producer snapshots: the state of all producers as of one offset, so that recovery need not read
 * the log from its beginning.
 *
 * There are two files. Kafka's `<offset>.snapshot` holds the last batch of each producer; it is
 * written at a roll and at a clean stop, for the day a Kafka broker takes over the directory. Ours,
 * `<offset>.producers` (a name that Kafka passes over), holds all five, so that a producer that
 * repeats an older batch after a restart is still recognised. Layout, big-endian:
 *
 *   u32 "SLPR", u16 version 2, u32 CRC-32C of what follows, i64 offset, i32 count, i64 id up to
 *   which producers may have been forgotten (not in version 1), then for each producer: i64 id,
 *   i16 epoch, i32 coordinator epoch, i64 last timestamp, i64 first offset of the open transaction
 *   or -1, i32 batches, and for each i32 last sequence, i32 offset delta, i64 last offset, i64
 *   timestamp.
 *
 * A file that does not check is no error of the disk's: an older one is taken and more is read.
 */
#include "base/assert.h"
#include "base/buf.h"
#include "log/producers_int.h"
#include "record/record.h"

#define KAFKA_VERSION 1
#define KAFKA_HEADER_BYTES 10
#define KAFKA_ENTRY_BYTES 46
#define OWN_MAGIC 0x534c5052u /* "SLPR" */
#define OWN_VERSION_FIRST 1   /* its header ends before the id */
#define OWN_VERSION 2
#define OWN_HEADER_BYTES 30
#define OWN_FORGOTTEN_AT 22
#define OWN_CRC_AT 6
#define OWN_CRC_FROM 10
#define OWN_ENTRY_BYTES 34
#define OWN_BATCH_BYTES 24

struct writer {
    struct buf *out;
    int32_t count;
};

/* A right checksum proves that the bytes are those that were written, and no more. */
static bool is_sane(int64_t id, const struct producer_state *s)
{
    for (int32_t i = 0; i < s->batch_count; i++) {
        const struct producer_batch *b = &s->batches[i];
        if (b->last_sequence < 0 || b->offset_delta < 0 || b->last_offset < b->offset_delta)
            return false;
    }
    return id >= 0 && s->epoch >= 0 && s->txn_first_offset >= -1;
}

/* ---- Kafka's ---------------------------------------------------------------------------- */

static void put_kafka(void *ctx, int64_t id, const struct producer_state *s)
{
    static const struct producer_batch none = {.last_sequence = -1, .last_offset = -1};
    struct writer *w = ctx;
    uint8_t *p = buf_extend(w->out, KAFKA_ENTRY_BYTES);
    const struct producer_batch *b = s->batch_count > 0 ? &s->batches[s->batch_count - 1] : &none;

    put_i64(p, id);
    put_i16(p + 8, s->epoch);
    put_i32(p + 10, b->last_sequence);
    put_i64(p + 14, b->last_offset);
    put_i32(p + 22, b->offset_delta);
    put_i64(p + 26, s->last_timestamp);
    put_i32(p + 34, s->coordinator_epoch);
    put_i64(p + 38, s->txn_first_offset);
    w->count++;
}

void snapshot_format_kafka(const struct producers *ps, struct buf *out)
{
    struct writer w = {.out = out};

    buf_reset(out);
    buf_extend(out, KAFKA_HEADER_BYTES);
    producers_each_durable(ps, put_kafka, &w);
    put_i16(out->p, KAFKA_VERSION);
    put_i32(out->p + 6, w.count);
    put_u32(out->p + 2, crc32c(out->p + 6, out->n - 6));
}

static bool get_kafka(const uint8_t *p, struct producers *ps)
{
    struct producer_state s = {
        .epoch = get_i16(p + 8),
        .last_timestamp = get_i64(p + 26),
        .coordinator_epoch = get_i32(p + 34),
        .txn_first_offset = get_i64(p + 38),
    };

    if (get_i32(p + 10) >= 0) {
        s.batch_count = 1;
        s.batches[0] = (struct producer_batch){
            .last_sequence = get_i32(p + 10),
            .last_offset = get_i64(p + 14),
            .offset_delta = get_i32(p + 22),
            .timestamp = s.last_timestamp,
        };
    }
    return is_sane(get_i64(p), &s) && producers_restore(ps, get_i64(p), &s);
}

enum err snapshot_parse_kafka(struct bytes text, struct producers *ps)
{
    int32_t count;

    producers_reset(ps);
    if (text.n < KAFKA_HEADER_BYTES)
        return ERR_CORRUPT;
    if (get_i16(text.p) != KAFKA_VERSION)
        return ERR_BAD_VERSION;
    if (get_u32(text.p + 2) != crc32c(text.p + 6, (size_t)text.n - 6))
        return ERR_CORRUPT;
    count = get_i32(text.p + 6);
    if (count < 0 || (int64_t)count * KAFKA_ENTRY_BYTES != text.n - KAFKA_HEADER_BYTES)
        return ERR_CORRUPT;
    for (int32_t i = 0; i < count; i++) {
        const uint8_t *p = text.p + KAFKA_HEADER_BYTES + (size_t)i * KAFKA_ENTRY_BYTES;
        if (!get_kafka(p, ps)) {
            producers_reset(ps);
            return ERR_CORRUPT;
        }
    }
    return ERR_NONE;
}

/* ---- Ours ------------------------------------------------------------------------------- */

static void put_own(void *ctx, int64_t id, const struct producer_state *s)
{
    struct writer *w = ctx;
    uint8_t *p = buf_extend(w->out, OWN_ENTRY_BYTES + (size_t)s->batch_count * OWN_BATCH_BYTES);

    put_i64(p, id);
    put_i16(p + 8, s->epoch);
    put_i32(p + 10, s->coordinator_epoch);
    put_i64(p + 14, s->last_timestamp);
    put_i64(p + 22, s->txn_first_offset);
    put_i32(p + 30, s->batch_count);
    p += OWN_ENTRY_BYTES;
    for (int i = 0; i < s->batch_count; i++, p += OWN_BATCH_BYTES) {
        put_i32(p, s->batches[i].last_sequence);
        put_i32(p + 4, s->batches[i].offset_delta);
        put_i64(p + 8, s->batches[i].last_offset);
        put_i64(p + 16, s->batches[i].timestamp);
    }
    w->count++;
}

void snapshot_format(const struct producers *ps, int64_t offset, struct buf *out)
{
    struct writer w = {.out = out};

    buf_reset(out);
    buf_extend(out, OWN_HEADER_BYTES);
    producers_each_durable(ps, put_own, &w);
    put_u32(out->p, OWN_MAGIC);
    put_i16(out->p + 4, OWN_VERSION);
    put_i64(out->p + 10, offset);
    put_i32(out->p + 18, w.count);
    put_i64(out->p + OWN_FORGOTTEN_AT, ps->forgotten_id);
    put_u32(out->p + OWN_CRC_AT, crc32c(out->p + OWN_CRC_FROM, out->n - OWN_CRC_FROM));
}

/* Reads one producer; returns the bytes used, 0 when they make no sense. */
static int32_t get_own(const uint8_t *p, int32_t n, struct producers *ps)
{
    struct producer_state s;
    int32_t used = OWN_ENTRY_BYTES;

    if (n < OWN_ENTRY_BYTES)
        return 0;
    s = (struct producer_state){
        .epoch = get_i16(p + 8),
        .coordinator_epoch = get_i32(p + 10),
        .last_timestamp = get_i64(p + 14),
        .txn_first_offset = get_i64(p + 22),
        .batch_count = get_i32(p + 30),
    };
    if (s.batch_count < 0 || s.batch_count > PRODUCER_BATCHES_KEPT ||
        (n - used) / OWN_BATCH_BYTES < s.batch_count)
        return 0;
    for (int i = 0; i < s.batch_count; i++, used += OWN_BATCH_BYTES) {
        s.batches[i] = (struct producer_batch){
            .last_sequence = get_i32(p + used),
            .offset_delta = get_i32(p + used + 4),
            .last_offset = get_i64(p + used + 8),
            .timestamp = get_i64(p + used + 16),
        };
    }
    return is_sane(get_i64(p), &s) && producers_restore(ps, get_i64(p), &s) ? used : 0;
}

enum err snapshot_parse(struct bytes text, int64_t *offset, struct producers *ps)
{
    int32_t at = OWN_HEADER_BYTES;
    int32_t count;
    int32_t i;
    bool is_first;

    *offset = -1;
    producers_reset(ps);
    if (text.n < OWN_FORGOTTEN_AT || get_u32(text.p) != OWN_MAGIC)
        return ERR_CORRUPT;
    is_first = get_i16(text.p + 4) == OWN_VERSION_FIRST;
    if (!is_first && get_i16(text.p + 4) != OWN_VERSION)
        return ERR_BAD_VERSION;
    if (is_first)
        at = OWN_FORGOTTEN_AT;
    else if (text.n < OWN_HEADER_BYTES)
        return ERR_CORRUPT;
    if (get_u32(text.p + OWN_CRC_AT) !=
        crc32c(text.p + OWN_CRC_FROM, (size_t)text.n - OWN_CRC_FROM))
        return ERR_CORRUPT;
    count = get_i32(text.p + 18);
    for (i = 0; i < count; i++) {
        int32_t used = get_own(text.p + at, text.n - at, ps);
        if (used == 0)
            break;
        at += used;
    }
    if (i != count || at != text.n) {
        producers_reset(ps);
        return ERR_CORRUPT;
    }
    *offset = get_i64(text.p + 10);
    if (is_first)
        ps->forgotten_id = *offset > 0 ? INT64_MAX : -1;
    else
        ps->forgotten_id = get_i64(text.p + OWN_FORGOTTEN_AT);
    return ERR_NONE;
}
