/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to bytes: the mirror image of decode.c, over the same tables.
 *
 * What we encode is our own, so that an unencodable message is a mistake of the caller; it becomes
 * a sticky error of the output and not an assertion, because most strings in a response came from
 * somebody's request. A tagged field is written behind its size, which is known only afterwards:
 * its bytes are moved up by the one or two that the size takes. Tagged fields hold no records, so
 * no hole ever moves.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "wire/codec.h"
#include "wire/schema_int.h"

#define OUT_BYTES_MIN 256

struct writer {
    struct wire_out *out;
    int16_t version;
    bool flexible;
};

static void encode_struct(struct writer *w, const struct schema *schema, const void *msg);

static void fail(struct wire_out *out, enum err err)
{
    if (!out->err)
        out->err = err;
}

void wire_out_fini(struct wire_out *out)
{
    free(out->p);
    free(out->holes);
    *out = (struct wire_out){0};
}

void wire_out_reset(struct wire_out *out)
{
    out->n = 0;
    out->holes_n = 0;
    out->err = ERR_NONE;
}

uint64_t wire_out_size(const struct wire_out *out)
{
    uint64_t size = out->n;

    for (size_t i = 0; i < out->holes_n; i++)
        size += (uint64_t)out->holes[i].ext_size;
    return size;
}

uint8_t *wire_out_extend(struct wire_out *out, size_t n)
{
    uint8_t *p;

    if (n > RESPONSE_BYTES_MAX - MIN(out->n, RESPONSE_BYTES_MAX))
        fail(out, ERR_LIMIT);
    if (out->err)
        return NULL;
    if (n > out->cap - out->n) {
        out->cap = MAX(MAX(2 * out->cap, out->n + n), OUT_BYTES_MIN);
        out->p = xrealloc(out->p, out->cap);
    }
    p = out->p + out->n;
    out->n += n;
    return p;
}

void wire_out_put(struct wire_out *out, const void *p, size_t n)
{
    uint8_t *to = wire_out_extend(out, n);

    if (to && n > 0)
        memcpy(to, p, n);
}

static void put_hole(struct wire_out *out, void *ext, int64_t ext_size)
{
    if (out->err)
        return;
    if (out->holes_n == out->holes_cap) {
        out->holes_cap = MAX(2 * out->holes_cap, 8);
        out->holes = xreallocarray(out->holes, out->holes_cap, sizeof(*out->holes));
    }
    out->holes[out->holes_n++] = (struct wire_hole){.at = out->n, .ext = ext, .ext_size = ext_size};
}

static void put_uvarint(struct wire_out *out, uint32_t v)
{
    uint8_t buf[VARINT_BYTES_MAX];

    wire_out_put(out, buf, (size_t)uvarint_put(buf, v));
}

static void put_int(struct wire_out *out, enum kind kind, int64_t v)
{
    size_t size = schema__kind_size(kind, NULL);
    uint8_t *to = wire_out_extend(out, size);
    uint64_t big = __builtin_bswap64((uint64_t)v);

    if (to)
        memcpy(to, (const uint8_t *)&big + sizeof(big) - size, size);
}

/* The counterpart of take_length in decode.c; false when nothing may follow. */
static bool put_length(struct writer *w, enum kind kind, bool nullable, int64_t n)
{
    bool small = kind == KIND_STR;
    int64_t max = small && !w->flexible ? INT16_MAX : INT32_MAX - 1;

    if (n > max || n < -1 || (n == -1 && !nullable)) {
        fail(w->out, ERR_INVALID_ARG);
        return false;
    }
    if (w->flexible)
        put_uvarint(w->out, (uint32_t)(n + 1));
    else
        put_int(w->out, small ? KIND_I16 : KIND_I32, n);
    return n > 0;
}

static void encode_slice(struct writer *w, enum kind kind, bool nullable, const void *at)
{
    struct records r = {.ext = NULL};
    int64_t n = schema__length(kind, at);

    if (kind == KIND_RECORDS)
        memcpy(&r, at, sizeof(r));
    else
        memcpy(&r.b, at, sizeof(r.b)); /* struct str has the same shape */
    if (!put_length(w, kind, nullable, n))
        return;
    if (r.ext)
        put_hole(w->out, r.ext, r.ext_size);
    else
        wire_out_put(w->out, r.b.p, (size_t)n);
}

static void encode_scalar(struct writer *w, enum kind kind, const void *at)
{
    if (schema__kind_is_int(kind)) {
        put_int(w->out, kind, schema__int_get(kind, at));
    } else if (kind == KIND_F64) {
        put_int(w->out, KIND_I64, schema__int_get(KIND_I64, at));
    } else {
        assert(kind == KIND_UUID);
        wire_out_put(w->out, at, sizeof(struct uuid));
    }
}

static void encode_maybe(struct writer *w, const struct schema *child, const void *at)
{
    const void *p;

    memcpy(&p, at, sizeof(p));
    put_int(w->out, KIND_I8, p ? 1 : -1);
    if (p)
        encode_struct(w, child, p);
}

static void encode_element(struct writer *w, const struct field *f, const void *at)
{
    if (f->element == KIND_ONE)
        encode_struct(w, f->child, at);
    else if (f->element == KIND_STR)
        encode_slice(w, KIND_STR, false, at);
    else
        encode_scalar(w, f->element, at);
}

static void encode_array(struct writer *w, const struct field *f, bool nullable, const void *at)
{
    size_t size = schema__kind_size(f->element, f->child);
    struct wire_array a;

    memcpy(&a, at, sizeof(a));
    if (!put_length(w, KIND_ARRAY, nullable, a.n))
        return;
    for (int32_t i = 0; i < a.n && !w->out->err; i++)
        encode_element(w, f, (const char *)a.v + (size_t)i * size);
}

static void encode_field(struct writer *w, const struct field *f, const void *msg)
{
    const char *at = (const char *)msg + f->offset;
    bool nullable = field__is_nullable(f, w->version);

    switch ((enum kind)f->kind) {
    case KIND_STR:
    case KIND_BYTES:
    case KIND_RECORDS: encode_slice(w, f->kind, nullable, at); break;
    case KIND_ARRAY: encode_array(w, f, nullable, at); break;
    case KIND_ONE: encode_struct(w, f->child, at); break;
    case KIND_MAYBE: encode_maybe(w, f->child, at); break;
    default: encode_scalar(w, f->kind, at);
    }
}

static void encode_tag(struct writer *w, const struct field *f, const void *msg)
{
    struct wire_out *out = w->out;
    uint8_t size[VARINT_BYTES_MAX];
    size_t start, size_n;

    put_uvarint(out, (uint32_t)(f->tag_plus1 - 1));
    start = out->n;
    encode_field(w, f, msg);
    size_n = (size_t)uvarint_put(size, (uint32_t)(out->n - start));
    if (!wire_out_extend(out, size_n))
        return;
    memmove(out->p + start + size_n, out->p + start, out->n - size_n - start);
    memcpy(out->p + start, size, size_n);
}

static bool tag_is_written(const struct writer *w, const struct field *f, const void *msg)
{
    return field__is_tagged(f) && field__is_in(f, w->version) && !schema__field_is_default(f, msg);
}

static void encode_tags(struct writer *w, const struct schema *schema, const void *msg)
{
    const struct field *fields = schema->fields();
    uint32_t count = 0;

    for (const struct field *f = fields; f->kind; f++)
        count += tag_is_written(w, f, msg);
    put_uvarint(w->out, count);
    /* The tables list tags in ascending order, which is the order on the wire. */
    for (const struct field *f = fields; f->kind && count; f++)
        if (tag_is_written(w, f, msg))
            encode_tag(w, f, msg);
}

static void encode_struct(struct writer *w, const struct schema *schema, const void *msg)
{
    for (const struct field *f = schema->fields(); f->kind; f++)
        if (field__is_in(f, w->version) && !field__is_tagged(f))
            encode_field(w, f, msg);
    if (w->flexible)
        encode_tags(w, schema, msg);
}

void wire_encode(const struct schema *schema, int16_t version, const void *msg,
                 struct wire_out *out)
{
    struct writer w = {
        .out = out,
        .version = version,
        .flexible = schema__is_flexible(schema, version),
    };

    if (version < schema->first || version > schema->last)
        fail(out, ERR_UNSUPPORTED_VERSION);
    if (!out->err)
        encode_struct(&w, schema, msg);
    if (wire_out_size(out) > RESPONSE_BYTES_MAX)
        fail(out, ERR_LIMIT);
}
