/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_RECORD_RECORD_H
#define SL_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

/*
 * Record batches, format version 2 ("magic 2", KIP-98): the unit in which records are produced,
 * stored, replicated and fetched. A batch is a header of 61 bytes and records behind it, which may
 * be compressed as one piece. A CRC-32C covers everything from the attributes on; what stands
 * before it (base offset, length, leader epoch, magic) is the broker's to stamp.
 *
 * Plain functions on memory: no I/O, no clock, no mutable statics. Functions on slices may be
 * called from any thread; an object (decompressor, iterator, builder) by one thread at a time.
 * Slices that are returned borrow from the slice that was passed in, unless a comment says more.
 * Bytes are never trusted: every function here may be given anything a peer sent, except those
 * that say "a valid batch".
 *
 * Times are milliseconds since 1970; -1 means "no timestamp".
 */
struct arena;

/* ---- Checksums -------------------------------------------------------------------------- */

/* CRC-32C (Castagnoli) as Kafka, iSCSI and RFC 3720 write it: of "123456789" it is 0xe3069283. */
uint32_t crc32c(const void *p, size_t n);
/* The checksum of what `crc` covers with p[0..n) behind it; crc32c_extend(0, p, n) is crc32c. */
uint32_t crc32c_extend(uint32_t crc, const void *p, size_t n);

/* ---- Codecs ----------------------------------------------------------------------------- */

enum codec {
    CODEC_NONE = 0,
    CODEC_GZIP = 1,
    CODEC_SNAPPY = 2,
    CODEC_LZ4 = 3,
    CODEC_ZSTD = 4,
};
#define CODEC_COUNT 5

/* The codec's own default level (gzip 6, lz4 fast, zstd 3); snappy has no levels. */
#define CODEC_LEVEL_DEFAULT INT32_MIN

/* As compression.type spells it: "none", "gzip", ... */
const char *codec_name(enum codec codec);
/* False for a name that is none of them. */
bool codec_from_name(struct str name, enum codec *out);

/*
 * Appends the compressed form of `in` to `out`, as the Java client would frame it: gzip member,
 * snappy-java blocks, LZ4 frame of independent blocks, zstd frame. Levels outside the codec's
 * range are clamped.
 */
void codec_compress(enum codec codec, int level, struct bytes in, struct buf *out);

/*
 * Streaming decompression. One object serves any number of inputs and codecs one after another
 * and keeps the libraries' contexts between them; a shard or a job owns one. The whole compressed
 * input is there at the start (borrowed until the next start); the output is read piece by piece.
 * Memory is bounded by the codec's window and not by the output, except for a raw snappy block,
 * which expands at most 22 times.
 */
struct decompressor;

struct decompressor *decompressor_new(void);
void decompressor_free(struct decompressor *d);
/* `limit`: bytes of output allowed. CODEC_NONE is allowed and copies. */
void decompressor_start(struct decompressor *d, enum codec codec, struct bytes in, int64_t limit);
/*
 * Reads up to `cap` > 0 bytes; *n = 0 says that the output ended with the input, cleanly.
 * ERR_CORRUPT_MESSAGE: not a stream of this codec, cut off, or bytes behind its end.
 * ERR_LIMIT: more output than allowed. After an error only start may be called.
 */
must_use enum err decompressor_read(struct decompressor *d, uint8_t *out, size_t cap, size_t *n);

/* ---- The header of a batch -------------------------------------------------------------- */

#define BATCH_MAGIC 2
/* Enough bytes for batch_frame. */
#define BATCH_FRAME_BYTES 17

/* Bits of the attributes. */
#define BATCH_CODEC_MASK 0x07
#define BATCH_LOG_APPEND_TIME 0x08
#define BATCH_TRANSACTIONAL 0x10
#define BATCH_CONTROL 0x20
#define BATCH_DELETE_HORIZON 0x40

enum timestamp_type {
    TIMESTAMP_CREATE = 0,     /* each record carries its producer's time */
    TIMESTAMP_LOG_APPEND = 1, /* all records have the time of the append, the max timestamp */
};

struct batch_header {
    int64_t base_offset;
    int32_t length;       /* bytes behind this field: the total less 12 */
    int32_t leader_epoch; /* -1 from a client */
    int8_t magic;
    uint32_t crc;
    int16_t attributes;        /* BATCH_ bits; the rest is unused */
    int32_t last_offset_delta; /* stays when compaction removes the last record */
    int64_t base_timestamp;    /* with BATCH_DELETE_HORIZON the horizon; -1 when emptied */
    int64_t max_timestamp;
    int64_t producer_id;    /* -1 none */
    int16_t producer_epoch; /* -1 none */
    int32_t base_sequence;  /* -1 none, as in control batches */
    int32_t record_count;   /* 0 when compaction removed them all */
};

/*
 * How many bytes the batch at the start of `in` takes, for walking a log or a message set; the
 * batch itself need not be there: the caller compares *total with what it has.
 * ERR_AGAIN: fewer than BATCH_FRAME_BYTES. ERR_CORRUPT_MESSAGE: no batch starts here (length out
 * of range, unknown magic, as in zeros). ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT: a message of the
 * old formats 0 and 1, which nobody has written since 2017; *total is set.
 */
must_use enum err batch_frame(struct bytes in, int32_t *total);
/*
 * Decodes the header; at least BATCH_HEADER_BYTES of the batch must be there, the rest need not.
 * ERR_CORRUPT_MESSAGE: too short, length below a header's, another magic, count, delta or offsets
 * out of range.
 */
must_use enum err batch_header_parse(struct bytes batch, struct batch_header *out);
/* Writes all 61 bytes, the CRC as it stands in `h`. */
void batch_header_put(uint8_t *batch, const struct batch_header *h);

/* Bytes of the batch with its header. */
static inline int32_t batch_total_bytes(const struct batch_header *h)
{
    return h->length + 12;
}

static inline int64_t batch_last_offset(const struct batch_header *h)
{
    return h->base_offset + h->last_offset_delta;
}

/* The sequence of the last record: sequences wrap from 2147483647 to 0. -1 without sequences. */
static inline int32_t batch_last_sequence(const struct batch_header *h)
{
    if (h->base_sequence < 0)
        return -1;
    return (int32_t)(((uint32_t)h->base_sequence + (uint32_t)h->last_offset_delta) & INT32_MAX);
}

/* 5 to 7 are no codecs: compare with CODEC_COUNT before use. */
static inline enum codec batch_codec(const struct batch_header *h)
{
    return (enum codec)(h->attributes & BATCH_CODEC_MASK);
}

static inline enum timestamp_type batch_timestamp_type(const struct batch_header *h)
{
    return h->attributes & BATCH_LOG_APPEND_TIME ? TIMESTAMP_LOG_APPEND : TIMESTAMP_CREATE;
}

static inline bool batch_is_transactional(const struct batch_header *h)
{
    return h->attributes & BATCH_TRANSACTIONAL;
}

static inline bool batch_is_control(const struct batch_header *h)
{
    return h->attributes & BATCH_CONTROL;
}

/* `batch` is one whole batch and nothing else; false also when it is shorter than a header. */
bool batch_crc_ok(struct bytes batch);

/* Both lie outside the CRC. `batch` holds at least a header, writable. */
void batch_stamp(uint8_t *batch, int64_t base_offset, int32_t leader_epoch);
/* Sets timestamp type and max timestamp and computes the CRC again. `n`: the whole batch. */
void batch_set_max_timestamp(uint8_t *batch, size_t n, enum timestamp_type type, int64_t ms);

/* ---- Records ---------------------------------------------------------------------------- */

struct record {
    int64_t offset;
    int64_t timestamp;  /* ms; the batch's max timestamp under log append time */
    struct bytes key;   /* null or bytes */
    struct bytes value; /* null (a tombstone) or bytes */
    int32_t header_count;
    struct bytes headers; /* encoded: record_headers_next reads, record_header_put writes */
};

/* The bytes of records under an iterator: private to this module. */
struct record_stream {
    const uint8_t *p; /* unread bytes that are in memory */
    const uint8_t *end;
    struct decompressor *d; /* NULL: all there is lies in p..end */
    struct buf window;      /* what p and end point into when decompressing */
    int64_t filled;         /* bytes that have entered memory, including the unread ones */
    bool ended;             /* the decompressor has given its last byte */
    enum err err;           /* sticky: the first error */
    const char *why;        /* what is wrong, a literal; NULL without error */
};

/*
 * Walks the records of a batch, decompressing as it goes: it holds one window, or one record if
 * that is larger. The struct may be embedded and reused: init once, batch for each, fini once.
 *
 *     struct record_iter it;
 *     record_iter_init(&it);
 *     err = record_iter_batch(&it, batch);
 *     while (!err && !(err = record_iter_next(&it, &record)))
 *         use(&record);
 *     record_iter_fini(&it);      // err is ERR_EOF when all was read
 */
struct record_iter {
    struct batch_header header; /* of the current batch; readable */
    /* private */
    struct record_stream _stream;
    struct decompressor *_d; /* owned, made at the first compressed batch */
    int32_t _index;
};

void record_iter_init(struct record_iter *it);
void record_iter_fini(struct record_iter *it);
/*
 * Starts with a batch, borrowed until the next batch or fini. Its CRC is not checked here.
 * ERR_CORRUPT_MESSAGE (framing, a size other than its header says),
 * ERR_UNSUPPORTED_COMPRESSION_TYPE.
 */
must_use enum err record_iter_batch(struct record_iter *it, struct bytes batch);
/*
 * The next record; its slices are valid until the next call on `it`. ERR_EOF behind the last one.
 * ERR_INVALID_RECORD: the structure is wrong, or count and bytes disagree. ERR_CORRUPT_MESSAGE:
 * does not decompress. ERR_LIMIT: expands to more than DECOMPRESSED_BYTES_MAX.
 */
must_use enum err record_iter_next(struct record_iter *it, struct record *out);

/*
 * Takes the first header off `headers` (record.headers, or what the call before left). False at
 * the end, and for bytes that are no headers: those of an iterated record have been checked.
 */
bool record_headers_next(struct bytes *headers, struct str *key, struct bytes *value);
/* Appends one encoded header; the caller counts them. The key must not be null. */
void record_header_put(struct buf *out, struct str key, struct bytes value);

/* ---- Building --------------------------------------------------------------------------- */

struct batch_spec {
    enum codec codec;
    int level; /* CODEC_LEVEL_DEFAULT, or the codec's own scale */
    enum timestamp_type timestamp_type;
    int64_t max_timestamp; /* under log append time, and without records; else computed */
    int64_t base_offset;
    int32_t leader_epoch;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    bool is_transactional;
    bool is_control;
    int32_t last_offset_delta; /* -1: that of the last record; compaction keeps the old one */
    int64_t delete_horizon_ms; /* -1: none */
    size_t bytes_max;          /* of the batch before compression; 0: no limit */
};

/* What a plain producer sends: no codec, no producer id, offset 0, epoch -1. */
struct batch_spec batch_spec_default(void);
/* What a rewritten batch keeps of the old one: all but its size limit and codec level. */
struct batch_spec batch_spec_of(const struct batch_header *h);

/*
 * Collects records and writes them as one batch. `spec` may be changed until finish (a producer
 * knows its sequence late), except delete_horizon_ms, which is the base of timestamps.
 */
struct batch_builder {
    struct batch_spec spec;
    struct buf bytes; /* room for the header, then the records, uncompressed */
    int32_t count;
    int32_t next_delta; /* offset delta of the next record */
    int64_t base_timestamp;
    int64_t max_timestamp;
};

void batch_builder_init(struct batch_builder *b, const struct batch_spec *spec);
void batch_builder_fini(struct batch_builder *b);
/*
 * Adds a copy of the record behind the others; its offset is ignored. ERR_LIMIT: it does not fit
 * in bytes_max (the first record always fits) and nothing has changed.
 */
must_use enum err batch_builder_append(struct batch_builder *b, const struct record *r);
/*
 * The same at the record's own offset, for compaction; also ERR_INVALID_RECORD: the offset is below
 * spec.base_offset, not above the one before, or 2^31 and more above the base.
 */
must_use enum err batch_builder_append_at(struct batch_builder *b, const struct record *r);
/* Bytes of the batch so far, before compression. */
size_t batch_builder_bytes(const struct batch_builder *b);
/*
 * Appends the batch to `out` and leaves the builder empty, with the same spec. No records give an
 * empty batch, which only a compacted log holds (its last_offset_delta must be set).
 */
void batch_builder_finish(struct batch_builder *b, struct buf *out);

/* ---- Control records -------------------------------------------------------------------- */

enum control_type {
    CONTROL_ABORT = 0,
    CONTROL_COMMIT = 1,
    CONTROL_LEADER_CHANGE = 2, /* this and higher ones: metadata logs only */
};

struct control_marker {
    int16_t type;              /* enum control_type; unknown ones are passed over by readers */
    int32_t coordinator_epoch; /* of commit and abort, else -1 */
};

/* Reads the record of a control batch. ERR_INVALID_RECORD: too short, or a negative version. */
must_use enum err control_marker_parse(const struct record *r, struct control_marker *out);

struct control_spec {
    enum control_type type; /* abort or commit */
    int32_t coordinator_epoch;
    int64_t producer_id;
    int16_t producer_epoch;
    int64_t base_offset;
    int32_t leader_epoch;
    int64_t timestamp_ms;
};

/* Appends the batch of one transaction marker: 78 bytes. */
#define BATCH_CONTROL_BYTES 78
void batch_build_control(const struct control_spec *spec, struct buf *out);

/* ---- Validation of what clients send ---------------------------------------------------- */

/* What a topic and a request demand of a batch. */
struct batch_rules {
    bool from_client;        /* false: our own coordinators, which may send control batches */
    int16_t produce_version; /* of the request: zstd needs 7 */
    bool is_compacted;       /* cleanup.policy has compact: every record needs a key */
    int32_t max_message_bytes;
    int32_t segment_bytes;
    enum timestamp_type timestamp_type;
    int64_t before_max_ms; /* message.timestamp.before.max.ms */
    int64_t after_max_ms;  /* message.timestamp.after.max.ms */
    int64_t now_ms;
    int target_codec; /* compression.type: enum codec, or -1 for "producer" */
};

#define BATCH_RECORD_ERRORS_MAX 64

struct batch_record_error {
    int32_t index; /* place in the batch, from 0 */
    struct str message;
};

struct batch_verdict {
    enum err err;                    /* the code for the client; the same as the return value */
    struct str message;              /* what is wrong, for people; null when all is well */
    struct bytes batch;              /* the one batch: an incomplete one behind it is ignored */
    struct batch_header header;      /* valid when err is ERR_NONE */
    int64_t max_timestamp;           /* what the header must say; now_ms under log append time */
    int64_t offset_of_max_timestamp; /* first record that has it, from the batch's base */
    bool needs_max_timestamp;        /* batch_set_max_timestamp before the append */
    bool needs_rebuild;              /* batch_rebuild instead of the batch as it is */
    int32_t record_error_count;      /* all of them; at most BATCH_RECORD_ERRORS_MAX are listed */
    struct batch_record_error *record_errors; /* in the arena; NULL when there are none */
};

/*
 * Decides whether the records of one partition of a produce request may be appended, in Kafka's
 * order and with Kafka's codes. A compressed batch is decompressed as a stream, its keys and values
 * skipped. `d` is scratch. Messages are in `arena`; errors of single records are left out (their
 * count is not) when its limit is reached.
 *
 *   INVALID_RECORD 87                 no batch or more than one; another magic; base offset not 0;
 *                                     counts and offsets disagree; a control batch; a producer id
 *                                     without sequence; a structure error; a missing key
 *   CORRUPT_MESSAGE 2                 framing or checksum
 *   UNSUPPORTED_COMPRESSION_TYPE 76   zstd before version 7; no codec
 *   MESSAGE_TOO_LARGE 10              max_message_bytes; decompression limit
 *   INVALID_TIMESTAMP 32              out of range; the client claims log append time
 *   RECORD_LIST_TOO_LARGE 18          segment_bytes
 *   UNKNOWN_SERVER_ERROR -1           does not decompress
 *
 * With needs_rebuild the sizes of the new batch are to be checked again: batch_check_size.
 */
must_use enum err batch_validate(struct bytes records, const struct batch_rules *rules,
                                 struct decompressor *d, struct arena *arena,
                                 struct batch_verdict *out);
/* MESSAGE_TOO_LARGE or RECORD_LIST_TOO_LARGE. */
must_use enum err batch_check_size(int64_t total, const struct batch_rules *rules);

/*
 * Appends to `out` the same records in another form: codec `target`, offsets without gaps from the
 * batch's base on, timestamps and max timestamp as the type demands. The batch must have passed
 * batch_validate; errors are those of record_iter_next.
 */
must_use enum err batch_rebuild(struct bytes batch, enum codec target, int level,
                                enum timestamp_type type, int64_t now_ms, struct buf *out);

#endif
