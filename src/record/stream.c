/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of records under the iterator and the validator: one parser for both.
 *
 * Uncompressed records are parsed where they lie. Compressed ones pass through a window that is
 * filled from the decompressor; the unread rest moves to its front each time. A record whose bytes
 * are wanted (`keep`) is brought into the window whole, which grows as the bytes really arrive and
 * never because a length claims it. A record that is only looked at may be larger than the window:
 * its key and value are passed over piece by piece.
 *
 * While a record that lies in memory is parsed, the stream is narrowed to it: the end of the
 * record becomes the end of all input, so that no field can reach into the next one and the window
 * cannot move under slices that were handed out.
 *
 * Errors are sticky: after the first one every field reads as 0 and costs nothing, so the sequence
 * of fields needs no checks between the steps; loops check.
 */
#include "base/assert.h"
#include "record/record_int.h"

#define WINDOW_BYTES ((size_t)32 * 1024)
/* A window that one large record made bigger than this is given back at the next batch. */
#define WINDOW_KEPT_BYTES ((size_t)1024 * 1024)

static void fail(struct record_stream *s, enum err err, const char *why)
{
    if (!s->err) {
        s->err = err;
        s->why = why;
    }
    s->p = s->end;
    s->ended = true;
}

static size_t in_memory(const struct record_stream *s)
{
    return (size_t)(s->end - s->p);
}

/* How many bytes of the stream have been read so far. */
static int64_t position(const struct record_stream *s)
{
    return s->filled - (s->end - s->p);
}

/* Reads once from the decompressor to the end of the window, which has room. */
static void fill_once(struct record_stream *s)
{
    size_t got;
    enum err err =
        decompressor_read(s->d, s->window.p + s->window.n, s->window.cap - s->window.n, &got);

    if (err) {
        s->err = err;
        s->why = err == ERR_LIMIT ? "expands to more than a batch may hold"
                                  : "compressed records are damaged";
    }
    s->ended = err || got == 0;
    s->window.n += got;
    s->filled += (int64_t)got;
}

/* Brings at least `need` unread bytes into memory, or all that there are. */
static __attribute__((noinline)) void fill(struct record_stream *s, size_t need)
{
    size_t left = in_memory(s);

    if (!s->d || s->ended)
        return;
    if (left > 0)
        memmove(s->window.p, s->p, left);
    s->window.n = left;
    while (s->window.n < need && !s->ended) {
        if (s->window.n == s->window.cap)
            buf_reserve(&s->window, 1);
        fill_once(s);
    }
    s->p = s->window.p;
    s->end = s->window.p + s->window.n;
}

/* ---- Fields. ---------------------------------------------------------------------------- */

static inline void take_byte(struct record_stream *s)
{
    if (s->p == s->end)
        fill(s, 1);
    if (s->p == s->end)
        fail(s, ERR_INVALID_RECORD, "record ends before its fields");
    else
        s->p++;
}

static __attribute__((noinline)) int64_t take_long_varlong(struct record_stream *s, int bytes_max)
{
    int64_t v = 0;
    int32_t v32 = 0;
    int n;

    if (in_memory(s) < (size_t)bytes_max)
        fill(s, (size_t)bytes_max);
    if (bytes_max == VARLONG_BYTES_MAX)
        n = varlong_get(s->p, s->end, &v);
    else
        n = varint_get(s->p, s->end, &v32);
    if (n == 0)
        fail(s, ERR_INVALID_RECORD, "record ends before its fields, or a number is too long");
    s->p += n;
    return n == 0 ? 0 : v | v32;
}

/* Nearly all numbers of a record take one byte or two: those are decoded here. */
static inline int64_t take_number(struct record_stream *s, int bytes_max)
{
    const uint8_t *p = s->p;
    uint32_t v;

    if (p < s->end && p[0] < 0x80) {
        v = p[0];
        s->p = p + 1;
    } else if (s->end - p >= 2 && p[1] < 0x80) {
        v = (p[0] & 0x7f) | (uint32_t)p[1] << 7;
        s->p = p + 2;
    } else {
        return take_long_varlong(s, bytes_max);
    }
    return (int32_t)(v >> 1) ^ -(int32_t)(v & 1);
}

static inline int32_t take_varint(struct record_stream *s)
{
    return (int32_t)take_number(s, VARINT_BYTES_MAX);
}

static inline int64_t take_varlong(struct record_stream *s)
{
    return take_number(s, VARLONG_BYTES_MAX);
}

/* Passes over n bytes, more than are in memory. */
static __attribute__((noinline)) void skip_far(struct record_stream *s, size_t n)
{
    while (n > in_memory(s)) {
        n -= in_memory(s);
        s->p = s->end;
        fill(s, 1);
        if (in_memory(s) == 0) {
            fail(s, ERR_INVALID_RECORD, "record ends before its fields");
            return;
        }
    }
    s->p += n;
}

/* A length and so many bytes; a negative length is null. */
static inline struct bytes take_bytes(struct record_stream *s, bool keep)
{
    struct bytes b = {.n = take_varint(s)};

    if (b.n < 0)
        return bytes_null();
    if (keep)
        b.p = s->p;
    if ((size_t)b.n > in_memory(s))
        skip_far(s, (size_t)b.n);
    else
        s->p += b.n;
    return b;
}

static void take_headers(struct record_stream *s, bool keep, struct record_fields *out)
{
    const uint8_t *start = s->p;

    for (int32_t i = 0; i < out->header_count && !s->err; i++) {
        if (take_bytes(s, keep).n < 0)
            fail(s, ERR_INVALID_RECORD, "record header without a key");
        take_bytes(s, keep);
    }
    if (keep && !s->err)
        out->headers = (struct bytes){.p = start, .n = (int32_t)(s->p - start)};
}

static inline void take_fields(struct record_stream *s, bool keep, struct record_fields *out)
{
    take_byte(s); /* Attributes: no bit has a meaning. */
    out->timestamp_delta = take_varlong(s);
    out->offset_delta = take_varint(s);
    out->key = take_bytes(s, keep);
    out->value = take_bytes(s, keep);
    out->header_count = take_varint(s);
    out->headers = (struct bytes){0};
    if (out->header_count < 0)
        fail(s, ERR_INVALID_RECORD, "negative count of record headers");
    if (out->header_count > 0)
        take_headers(s, keep, out);
}

/* A record that lies in memory. */
static inline void take_near(struct record_stream *s, size_t n, bool keep,
                             struct record_fields *out)
{
    const uint8_t *end = s->end;
    struct decompressor *d = s->d;

    s->end = s->p + n;
    s->d = NULL;
    take_fields(s, keep, out);
    if (s->p != s->end)
        fail(s, ERR_INVALID_RECORD, "record is longer than its fields");
    s->end = end;
    s->d = d;
}

/* A record that is larger than what is in memory, only to be looked at. */
static void take_far(struct record_stream *s, int32_t n, struct record_fields *out)
{
    int64_t end = position(s) + n;

    take_fields(s, false, out);
    if (!s->err && position(s) != end)
        fail(s, ERR_INVALID_RECORD, "record's length does not match its fields");
}

/* ---- What the module uses. -------------------------------------------------------------- */

void record__stream_start(struct record_stream *s, struct bytes records, enum codec codec,
                          struct decompressor *d, int64_t limit)
{
    s->filled = 0;
    s->err = ERR_NONE;
    s->why = NULL;
    s->d = codec == CODEC_NONE ? NULL : d;
    s->ended = codec == CODEC_NONE;
    s->p = records.p;
    s->end = records.p + records.n;
    if (codec == CODEC_NONE)
        return;
    decompressor_start(d, codec, records, limit);
    if (s->window.cap > WINDOW_KEPT_BYTES)
        buf_fini(&s->window);
    buf_reset(&s->window);
    s->p = s->end = buf_reserve(&s->window, WINDOW_BYTES);
}

void record__stream_fini(struct record_stream *s)
{
    buf_fini(&s->window);
    s->p = s->end = NULL;
}

enum err record__stream_next(struct record_stream *s, bool keep, struct record_fields *out)
{
    int32_t n;

    *out = (struct record_fields){0};
    if (s->err)
        return s->err;
    n = take_varint(s);
    if (n < 0)
        fail(s, ERR_INVALID_RECORD, "negative record length");
    if (s->err)
        return s->err;
    if (keep && (size_t)n > in_memory(s))
        fill(s, (size_t)n);
    if ((size_t)n <= in_memory(s))
        take_near(s, (size_t)n, keep, out);
    else if (!keep && s->d)
        take_far(s, n, out);
    else
        fail(s, ERR_INVALID_RECORD, "records end before their count");
    return s->err;
}

enum err record__stream_end(struct record_stream *s)
{
    if (!s->err && in_memory(s) == 0)
        fill(s, 1);
    if (!s->err && in_memory(s) > 0)
        fail(s, ERR_INVALID_RECORD, "bytes are left behind the last record");
    return s->err;
}
