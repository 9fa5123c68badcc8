/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to messages: one interpreter for every schema and version.
 *
 * The input is a peer's and may say anything. A reader holds the bytes that are left and a sticky
 * error: after the first failure nothing is left, reads give zeros, loops end, and the error is
 * looked at once at the end. Three rules bound what a frame can cost: a count may not exceed the
 * bytes that are left; arrays are paid from a budget that is a multiple of the frame; and the
 * depth of the recursion is that of the schema, which contains no cycle.
 */
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/codec.h"
#include "wire/schema_int.h"

struct reader {
    const uint8_t *p;
    const uint8_t *end;
    struct arena *arena;
    size_t budget; /* bytes that may still be taken from the arena */
    enum err err;  /* the first one */
    int16_t version;
    bool flexible;
};

static void decode_struct(struct reader *r, const struct schema *schema, void *out);

static void fail(struct reader *r, enum err err)
{
    if (!r->err)
        r->err = err;
    r->p = r->end;
}

static size_t left(const struct reader *r)
{
    return (size_t)(r->end - r->p);
}

/* The next n bytes, at most 16; zeros after an error. */
static const uint8_t *take_fixed(struct reader *r, size_t n)
{
    static const uint8_t zeros[16];
    const uint8_t *p = r->p;

    assert(n <= sizeof(zeros));
    if (n > left(r)) {
        fail(r, ERR_MALFORMED);
        return zeros;
    }
    r->p += n;
    return p;
}

static uint32_t take_uvarint(struct reader *r)
{
    uint32_t v = 0;
    int n = uvarint_get(r->p, r->end, &v);

    if (n == 0) {
        fail(r, ERR_MALFORMED);
        return 0;
    }
    r->p += n;
    return v;
}

static int64_t take_int(struct reader *r, enum kind kind)
{
    switch (kind) {
    case KIND_BOOL: return *take_fixed(r, 1) != 0;
    case KIND_I8: return (int8_t)*take_fixed(r, 1);
    case KIND_I16: return get_i16(take_fixed(r, 2));
    case KIND_U16: return get_u16(take_fixed(r, 2));
    case KIND_I32: return get_i32(take_fixed(r, 4));
    default: return get_i64(take_fixed(r, 8)); /* KIND_I64 */
    }
}

/*
 * A length or count: -1 for null. Every element takes a byte at least, so that one bound, the
 * bytes that are left, holds for lengths and counts alike.
 */
static int32_t take_length(struct reader *r, enum kind kind, bool nullable)
{
    int64_t n;

    if (r->flexible)
        n = (int64_t)take_uvarint(r) - 1;
    else
        n = take_int(r, kind == KIND_STR ? KIND_I16 : KIND_I32);
    if (n == -1 && nullable)
        return -1;
    if (n < 0 || (uint64_t)n > left(r)) {
        fail(r, ERR_MALFORMED);
        return 0;
    }
    return (int32_t)n;
}

static struct bytes take_slice(struct reader *r, enum kind kind, bool nullable)
{
    struct bytes b = {.n = take_length(r, kind, nullable)};

    if (b.n >= 0) {
        b.p = r->p;
        r->p += b.n;
    }
    return b;
}

static void *take_memory(struct reader *r, size_t count, size_t size)
{
    /* Both are bounded, by the frame and by the schema; the arena rounds up, so the budget does. */
    size_t align = _Alignof(max_align_t);
    size_t total = (count * size + align - 1) / align * align;
    void *p;

    if (total > r->budget || !(p = arena_calloc(r->arena, count, size))) {
        fail(r, ERR_LIMIT);
        return NULL;
    }
    r->budget -= total;
    return p;
}

static void decode_slice(struct reader *r, enum kind kind, bool nullable, void *at)
{
    struct bytes b = take_slice(r, kind, nullable);

    if (kind == KIND_STR)
        memcpy(at, &(struct str){.p = (const char *)b.p, .n = b.n}, sizeof(struct str));
    else if (kind == KIND_BYTES)
        memcpy(at, &b, sizeof(b));
    else
        memcpy(at, &(struct records){.b = b}, sizeof(struct records));
}

static void decode_scalar(struct reader *r, enum kind kind, void *at)
{
    if (schema__kind_is_int(kind)) {
        schema__int_put(kind, at, take_int(r, kind));
    } else if (kind == KIND_F64) {
        uint64_t bits = get_u64(take_fixed(r, sizeof(bits)));

        memcpy(at, &bits, sizeof(bits));
    } else {
        assert(kind == KIND_UUID);
        memcpy(at, take_fixed(r, sizeof(struct uuid)), sizeof(struct uuid));
    }
}

static void decode_maybe(struct reader *r, const struct schema *child, void *at)
{
    void *p = NULL;

    if (take_int(r, KIND_I8) >= 0 && !r->err)
        p = take_memory(r, 1, child->size);
    if (p)
        decode_struct(r, child, p);
    memcpy(at, &p, sizeof(p));
}

static void decode_element(struct reader *r, const struct field *f, void *at)
{
    if (f->element == KIND_ONE)
        decode_struct(r, f->child, at);
    else if (f->element == KIND_STR)
        decode_slice(r, KIND_STR, false, at);
    else
        decode_scalar(r, f->element, at);
}

static void decode_array(struct reader *r, const struct field *f, bool nullable, void *at)
{
    size_t size = schema__kind_size(f->element, f->child);
    struct wire_array a = {.n = take_length(r, KIND_ARRAY, nullable)};

    if (a.n > 0) {
        a.v = take_memory(r, (size_t)a.n, size);
        a.n = a.v ? a.n : 0;
    }
    for (int32_t i = 0; i < a.n && !r->err; i++)
        decode_element(r, f, (char *)a.v + (size_t)i * size);
    memcpy(at, &a, sizeof(a));
}

static void decode_field(struct reader *r, const struct field *f, void *msg)
{
    char *at = (char *)msg + f->offset;
    bool nullable = field__is_nullable(f, r->version);

    switch ((enum kind)f->kind) {
    case KIND_STR:
    case KIND_BYTES:
    case KIND_RECORDS: decode_slice(r, f->kind, nullable, at); break;
    case KIND_ARRAY: decode_array(r, f, nullable, at); break;
    case KIND_ONE: decode_struct(r, f->child, at); break;
    case KIND_MAYBE: decode_maybe(r, f->child, at); break;
    default: decode_scalar(r, f->kind, at);
    }
}

static const struct field *find_tag(const struct schema *schema, uint32_t tag, int16_t version)
{
    for (const struct field *f = schema->fields(); f->kind; f++)
        if (field__is_tagged(f) && (uint32_t)(f->tag_plus1 - 1) == tag && field__is_in(f, version))
            return f;
    return NULL;
}

/* One tagged field: it must fill exactly the size that precedes it. */
static void decode_tag(struct reader *r, const struct schema *schema, uint32_t tag, void *out)
{
    const struct field *f = find_tag(schema, tag, r->version);
    uint32_t size = take_uvarint(r);
    const uint8_t *end = r->end;

    if (size > left(r)) {
        fail(r, ERR_MALFORMED);
        return;
    }
    r->end = r->p + size;
    if (f)
        decode_field(r, f, out);
    else
        r->p = r->end;
    if (r->p != r->end)
        fail(r, ERR_MALFORMED);
    /* After an error nothing is left, so the outer end must not come back. */
    if (!r->err)
        r->end = end;
}

static void decode_tags(struct reader *r, const struct schema *schema, void *out)
{
    uint32_t count = take_uvarint(r);
    int64_t before = -1;

    for (uint32_t i = 0; i < count && !r->err; i++) {
        uint32_t tag = take_uvarint(r);

        if (tag <= before) {
            fail(r, ERR_MALFORMED);
            return;
        }
        before = tag;
        decode_tag(r, schema, tag, out);
    }
}

/* The struct is zeroed memory. Every field is set, after an error as well. */
static void decode_struct(struct reader *r, const struct schema *schema, void *out)
{
    for (const struct field *f = schema->fields(); f->kind; f++)
        if (field__is_in(f, r->version) && !field__is_tagged(f))
            decode_field(r, f, out);
        else
            schema__field_init(f, out);
    if (r->flexible)
        decode_tags(r, schema, out);
}

enum err wire_decode(const struct schema *schema, int16_t version, struct bytes in,
                     struct arena *arena, void *out, size_t *used)
{
    static const uint8_t nothing[1]; /* an empty slice may have no address to count from */
    const uint8_t *start = in.n > 0 ? in.p : nothing;
    struct reader r = {
        .p = start,
        .end = start + in.n,
        .arena = arena,
        .budget = (size_t)in.n * DECODE_AMPLIFICATION_MAX,
        .version = version,
        .flexible = schema__is_flexible(schema, version),
    };

    assert(in.n >= 0);
    *used = 0;
    wire_init(schema, out);
    if (version < schema->first || version > schema->last)
        return ERR_UNSUPPORTED_VERSION;
    decode_struct(&r, schema, out);
    if (!r.err)
        *used = (size_t)(r.p - start);
    return r.err;
}
