/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the records of a produce request, or of a segment, as anybody may have made them.
 *
 * The first byte chooses rules; the rest are the records. A fuzzer cannot guess a checksum, so the
 * input counts as having the right one: it is put in before the batch is looked at.
 *
 * What must hold: nothing is read outside the input (ASan). What the validator lets pass the
 * iterator reads to its end, with as many records and, unless a rebuild is asked for, offsets
 * without gaps. What was read can be built again, and passes untouched, with the same records.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/limits.h"
#include "record/record.h"

#define CRC_AT 17
#define ATTRIBUTES_AT 21
/* Of the input: what is interesting fits, and bombs of zeros stay cheap. */
#define INPUT_BYTES_MAX 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A hash over everything a record says; also looks at its headers. */
static uint32_t digest(uint32_t crc, const struct record *r)
{
    struct bytes headers = r->headers;
    struct bytes value;
    struct str key;
    int32_t count = 0;

    while (record_headers_next(&headers, &key, &value))
        count++;
    assert(headers.n == 0);
    assert(count == r->header_count);
    crc = crc32c_extend(crc, &r->timestamp, sizeof(r->timestamp));
    crc = crc32c_extend(crc, &r->key.n, sizeof(r->key.n));
    crc = crc32c_extend(crc, r->key.p, (size_t)MAX(r->key.n, 0));
    crc = crc32c_extend(crc, &r->value.n, sizeof(r->value.n));
    crc = crc32c_extend(crc, r->value.p, (size_t)MAX(r->value.n, 0));
    return crc32c_extend(crc, r->headers.p, (size_t)MAX(r->headers.n, 0));
}

/* Reads all records. *is_dense: their offsets have no gaps. */
static enum err read_all(struct bytes batch, int32_t *count, bool *is_dense, uint32_t *crc)
{
    struct record_iter it;
    struct control_marker marker;
    struct record r;
    enum err err;

    *count = 0;
    *is_dense = true;
    *crc = 0;
    record_iter_init(&it);
    err = record_iter_batch(&it, batch);
    while (!err) {
        err = record_iter_next(&it, &r);
        if (err)
            break;
        *crc = digest(*crc, &r);
        *is_dense = *is_dense && r.offset == it.header.base_offset + *count;
        ++*count;
        if (control_marker_parse(&r, &marker))
            assert(marker.coordinator_epoch == -1);
    }
    record_iter_fini(&it);
    return err;
}

static void check_rebuilt(struct bytes batch, enum codec codec, struct batch_rules rules,
                          int32_t count, uint32_t crc)
{
    struct decompressor *d = decompressor_new();
    struct batch_verdict verdict;
    struct buf out = {0};
    struct arena arena;
    int32_t count_again;
    uint32_t crc_again;
    bool is_dense;
    enum err err;

    arena_init(&arena, 0);
    err = batch_rebuild(batch, codec, CODEC_LEVEL_DEFAULT, TIMESTAMP_CREATE, 0, &out);
    assert(!err);
    rules.target_codec = (int)codec;
    err = batch_validate(buf_bytes(&out, 0), &rules, d, &arena, &verdict);
    assert(!err);
    assert(!verdict.needs_rebuild);
    assert(!verdict.needs_max_timestamp);
    err = read_all(buf_bytes(&out, 0), &count_again, &is_dense, &crc_again);
    assert(err == ERR_EOF);
    assert(is_dense);
    assert(count_again == count);
    assert(crc_again == crc);
    arena_fini(&arena);
    decompressor_free(d);
    buf_fini(&out);
}

/* Gives the first batch, if there is one, its right checksum. */
static void seal(uint8_t *p, int32_t n)
{
    int32_t total;

    if (batch_frame((struct bytes){.p = p, .n = n}, &total) || total > n)
        return;
    put_u32(p + CRC_AT, crc32c(p + ATTRIBUTES_AT, (size_t)total - ATTRIBUTES_AT));
}

static void check(struct bytes records, const struct batch_rules *rules, enum codec target)
{
    struct decompressor *d = decompressor_new();
    struct batch_verdict verdict;
    struct arena arena;
    int32_t count;
    uint32_t crc;
    bool is_dense;
    enum err read;

    arena_init(&arena, 1 << 20);
    read = read_all(records, &count, &is_dense, &crc);
    assert(read != ERR_NONE);
    if (batch_validate(records, rules, d, &arena, &verdict) == ERR_NONE) {
        read = read_all(verdict.batch, &count, &is_dense, &crc);
        assert(read == ERR_EOF);
        assert(count == verdict.header.record_count);
        assert(verdict.needs_rebuild || is_dense);
        check_rebuilt(verdict.batch, target, *rules, count, crc);
    } else {
        assert(verdict.err != ERR_NONE);
        assert(!str_is_null(verdict.message));
    }
    arena_fini(&arena);
    decompressor_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch_rules rules = {
        .from_client = true,
        .produce_version = 12,
        .max_message_bytes = INT32_MAX,
        .segment_bytes = INT32_MAX,
        .before_max_ms = INT64_MAX,
        .after_max_ms = INT64_MAX,
        .target_codec = -1,
    };
    uint8_t *copy;

    if (size < 1 || size > INPUT_BYTES_MAX)
        return 0;
    rules.is_compacted = data[0] & 0x80;
    rules.after_max_ms = data[0] & 0x40 ? 0 : INT64_MAX;
    copy = xmemdup(data + 1, size - 1);
    seal(copy, (int32_t)size - 1);
    check((struct bytes){.p = copy, .n = (int32_t)size - 1}, &rules,
          (enum codec)(data[0] % CODEC_COUNT));
    free(copy);
    return 0;
}
