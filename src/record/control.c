/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control batches: the markers that end a transaction in each partition it wrote to (KIP-98).
 *
 * One record in a batch of its own, never compressed, with the producer's id and epoch but without
 * a sequence. Both halves of the record start with a version, 0 until now; a reader takes what it
 * knows from the front of a newer one.
 */
#include "base/assert.h"
#include "record/record_int.h"

#define CONTROL_VERSION 0
#define CONTROL_KEY_BYTES 4
#define CONTROL_VALUE_BYTES 6

enum err control_marker_parse(const struct record *r, struct control_marker *out)
{
    *out = (struct control_marker){.type = -1, .coordinator_epoch = -1};
    if (r->key.n < CONTROL_KEY_BYTES || get_i16(r->key.p) < 0)
        return ERR_INVALID_RECORD;
    out->type = get_i16(r->key.p + 2);
    if (out->type != CONTROL_ABORT && out->type != CONTROL_COMMIT)
        return ERR_NONE;
    if (r->value.n < CONTROL_VALUE_BYTES || get_i16(r->value.p) < 0)
        return ERR_INVALID_RECORD;
    out->coordinator_epoch = get_i32(r->value.p + 2);
    return ERR_NONE;
}

static void put_marker(const struct control_spec *spec, struct batch_builder *b)
{
    uint8_t key[CONTROL_KEY_BYTES];
    uint8_t value[CONTROL_VALUE_BYTES];
    struct record r = {
        .timestamp = spec->timestamp_ms,
        .key = {.p = key, .n = sizeof(key)},
        .value = {.p = value, .n = sizeof(value)},
    };
    enum err err;

    put_i16(key, CONTROL_VERSION);
    put_i16(key + 2, (int16_t)spec->type);
    put_i16(value, CONTROL_VERSION);
    put_i32(value + 2, spec->coordinator_epoch);
    err = batch_builder_append(b, &r);
    assert(!err);
}

void batch_build_control(const struct control_spec *spec, struct buf *out)
{
    struct batch_spec batch = batch_spec_default();
    struct batch_builder b;
    size_t at = out->n;

    assert(spec->type == CONTROL_ABORT || spec->type == CONTROL_COMMIT);
    batch.base_offset = spec->base_offset;
    batch.leader_epoch = spec->leader_epoch;
    batch.producer_id = spec->producer_id;
    batch.producer_epoch = spec->producer_epoch;
    batch.is_transactional = true;
    batch.is_control = true;
    batch_builder_init(&b, &batch);
    put_marker(spec, &b);
    batch_builder_finish(&b, out);
    batch_builder_fini(&b);
    assert(out->n - at == BATCH_CONTROL_BYTES);
}
