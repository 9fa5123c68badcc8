/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a batch one after another, with offset and timestamp made absolute, and the
 * headers of a record.
 *
 * A decompressor is made at the first compressed batch and kept until fini, so that one iterator
 * may walk a whole log without making a codec's context again for each batch.
 */
#include "base/assert.h"
#include "base/limits.h"
#include "record/record_int.h"

void record_iter_init(struct record_iter *it)
{
    *it = (struct record_iter){0};
}

void record_iter_fini(struct record_iter *it)
{
    record__stream_fini(&it->_stream);
    decompressor_free(it->_d);
    it->_d = NULL;
}

enum err record_iter_batch(struct record_iter *it, struct bytes batch)
{
    struct bytes records;
    enum codec codec;
    enum err err = batch_header_parse(batch, &it->header);

    if (err)
        return err;
    if (batch_total_bytes(&it->header) != batch.n)
        return ERR_CORRUPT_MESSAGE;
    codec = batch_codec(&it->header);
    if ((int)codec >= CODEC_COUNT)
        return ERR_UNSUPPORTED_COMPRESSION_TYPE;
    /* A batch that compaction emptied has no stream behind its header, whatever its codec says. */
    if (it->header.record_count == 0)
        codec = CODEC_NONE;
    if (codec != CODEC_NONE && !it->_d)
        it->_d = decompressor_new();
    records = (struct bytes){.p = batch.p + AT_RECORDS, .n = batch.n - AT_RECORDS};
    record__stream_start(&it->_stream, records, codec, it->_d, DECOMPRESSED_BYTES_MAX);
    it->_index = 0;
    return ERR_NONE;
}

/* Sums wrap, as in every other implementation: the bytes come from anybody. */
static int64_t wrapping_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void make_absolute(const struct batch_header *h, const struct record_fields *f,
                          struct record *out)
{
    *out = (struct record){
        .offset = wrapping_add(h->base_offset, f->offset_delta),
        .timestamp = batch_timestamp_type(h) == TIMESTAMP_LOG_APPEND
                         ? h->max_timestamp
                         : wrapping_add(h->base_timestamp, f->timestamp_delta),
        .key = f->key,
        .value = f->value,
        .header_count = f->header_count,
        .headers = f->headers,
    };
}

enum err record_iter_next(struct record_iter *it, struct record *out)
{
    struct record_fields fields;
    enum err err;

    *out = (struct record){.key = bytes_null(), .value = bytes_null()};
    if (it->_index == it->header.record_count) {
        err = record__stream_end(&it->_stream);
        return err ? err : ERR_EOF;
    }
    err = record__stream_next(&it->_stream, true, &fields);
    if (err)
        return err;
    it->_index++;
    make_absolute(&it->header, &fields, out);
    return ERR_NONE;
}

/* A length and so many bytes off the front of `in`. */
static bool cut_bytes(struct bytes *in, struct bytes *out)
{
    int32_t n;
    int used = varint_get(in->p, in->p + in->n, &n);

    if (used == 0 || n > in->n - used)
        return false;
    *out = n < 0 ? bytes_null() : (struct bytes){.p = in->p + used, .n = n};
    in->p += used + MAX(n, 0);
    in->n -= used + MAX(n, 0);
    return true;
}

bool record_headers_next(struct bytes *headers, struct str *key, struct bytes *value)
{
    struct bytes name = bytes_null();

    *key = str_null();
    *value = bytes_null();
    if (headers->n <= 0 || !cut_bytes(headers, &name) || name.n < 0)
        return false;
    *key = (struct str){.p = (const char *)name.p, .n = name.n};
    return cut_bytes(headers, value);
}

void record_header_put(struct buf *out, struct str key, struct bytes value)
{
    assert(key.n >= 0);
    out->n += (size_t)varint_put(buf_reserve(out, VARINT_BYTES_MAX), key.n);
    buf_append(out, key.p, (size_t)key.n);
    out->n += (size_t)varint_put(buf_reserve(out, VARINT_BYTES_MAX), value.n);
    if (value.n > 0)
        buf_append(out, value.p, (size_t)value.n);
}
