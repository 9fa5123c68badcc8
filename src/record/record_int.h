/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_RECORD_RECORD_INT_H
#define SL_RECORD_RECORD_INT_H

#include "record/record.h"

/*
 * What the files of this module share: the table entry that each codec's file exports, the
 * positions of the header's fields, and the stream of records under iterator and validator.
 */

/* ---- One codec -------------------------------------------------------------------------- */

struct codec_ops {
    const char *name; /* as compression.type spells it */
    /* A decoder's state: made once, started for each input, freed. */
    void *(*decoder_new)(void);
    void (*decoder_free)(void *state);
    void (*decoder_start)(void *state, struct bytes in);
    /* The contract of decompressor_read, without the limit. */
    enum err (*decoder_read)(void *state, uint8_t *out, size_t cap, size_t *n);
    void (*compress)(int level, struct bytes in, struct buf *out);
};

extern const struct codec_ops codec_none;
extern const struct codec_ops codec_gzip;
extern const struct codec_ops codec_snappy;
extern const struct codec_ops codec_lz4;
extern const struct codec_ops codec_zstd;

/* ---- Header fields ---------------------------------------------------------------------- */

enum batch_at {
    AT_BASE_OFFSET = 0,
    AT_LENGTH = 8,
    AT_LEADER_EPOCH = 12,
    AT_MAGIC = 16,
    AT_CRC = 17,
    AT_ATTRIBUTES = 21, /* the CRC covers everything from here on */
    AT_LAST_OFFSET_DELTA = 23,
    AT_BASE_TIMESTAMP = 27,
    AT_MAX_TIMESTAMP = 35,
    AT_PRODUCER_ID = 43,
    AT_PRODUCER_EPOCH = 51,
    AT_BASE_SEQUENCE = 53,
    AT_RECORD_COUNT = 57,
    AT_RECORDS = 61,
};

/* All fields as they stand: nothing is checked. */
void record__header_decode(const uint8_t *batch, struct batch_header *out);
/* Computes the CRC over the n bytes of a batch and stores it. */
void record__batch_seal(uint8_t *batch, size_t n);

/* ---- A stream of records ---------------------------------------------------------------- */

/* What stands in a record, before offset and timestamp are made absolute. */
struct record_fields {
    int64_t timestamp_delta;
    int32_t offset_delta;
    struct bytes key; /* p is NULL when the stream does not keep bytes; n tells in any case */
    struct bytes value;
    int32_t header_count;
    struct bytes headers;
};

/*
 * Starts on the records part of a batch. With a codec, `d` decompresses it and `limit` bounds the
 * output; both are ignored without. The stream may be reused; record__stream_fini frees its window.
 */
void record__stream_start(struct record_stream *s, struct bytes records, enum codec codec,
                          struct decompressor *d, int64_t limit);
void record__stream_fini(struct record_stream *s);
/*
 * Reads the next record. `keep`: key, value and headers come as slices that hold until the next
 * call, and the window grows to the size of the record; otherwise they are passed over.
 * Errors are those of record_iter_next.
 */
must_use enum err record__stream_next(struct record_stream *s, bool keep,
                                      struct record_fields *out);
/* ERR_INVALID_RECORD when bytes are left. */
must_use enum err record__stream_end(struct record_stream *s);

#endif
