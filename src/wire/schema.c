/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What decoder, encoder and printer share: how a value of each kind lies in memory, and what its
 * default is. Message structs are reached through offsets; numbers, slices and array headers are
 * copied with memcpy, because the same bytes have another type at the other end.
 */
#include "wire/schema_int.h"

#include <string.h>

#include "base/assert.h"

int16_t schema_first(const struct schema *schema)
{
    return schema->first;
}

int16_t schema_last(const struct schema *schema)
{
    return schema->last;
}

int16_t schema_flexible_from(const struct schema *schema)
{
    return schema->flexible_from;
}

const char *schema_name(const struct schema *schema)
{
    return schema->name;
}

size_t schema_size(const struct schema *schema)
{
    return schema->size;
}

size_t schema__kind_size(enum kind kind, const struct schema *child)
{
    static const size_t sizes[] = {
        [KIND_BOOL] = sizeof(bool),
        [KIND_I8] = sizeof(int8_t),
        [KIND_I16] = sizeof(int16_t),
        [KIND_U16] = sizeof(uint16_t),
        [KIND_I32] = sizeof(int32_t),
        [KIND_I64] = sizeof(int64_t),
        [KIND_F64] = sizeof(double),
        [KIND_UUID] = sizeof(struct uuid),
        [KIND_STR] = sizeof(struct str),
        [KIND_BYTES] = sizeof(struct bytes),
        [KIND_RECORDS] = sizeof(struct records),
        [KIND_MAYBE] = sizeof(void *),
        [KIND_ARRAY] = sizeof(struct wire_array),
    };

    return kind == KIND_ONE ? child->size : sizes[kind];
}

bool schema__kind_is_int(enum kind kind)
{
    return kind >= KIND_BOOL && kind <= KIND_I64;
}

#define LOAD(type, at)                                                                             \
    ({                                                                                             \
        type load_v;                                                                               \
        memcpy(&load_v, (at), sizeof(load_v));                                                     \
        load_v;                                                                                    \
    })

int64_t schema__int_get(enum kind kind, const void *at)
{
    switch (kind) {
    case KIND_BOOL:
    case KIND_I8: return LOAD(int8_t, at);
    case KIND_I16: return LOAD(int16_t, at);
    case KIND_U16: return LOAD(uint16_t, at);
    case KIND_I32: return LOAD(int32_t, at);
    default: assert(kind == KIND_I64); return LOAD(int64_t, at);
    }
}

/* One case for each width: copies of a constant size are single instructions. */
void schema__int_put(enum kind kind, void *at, int64_t v)
{
    switch (kind) {
    case KIND_BOOL:
    case KIND_I8: memcpy(at, &(int8_t){(int8_t)v}, 1); break;
    case KIND_I16:
    case KIND_U16: memcpy(at, &(int16_t){(int16_t)v}, 2); break;
    case KIND_I32: memcpy(at, &(int32_t){(int32_t)v}, 4); break;
    default: assert(kind == KIND_I64); memcpy(at, &v, 8);
    }
}

int64_t schema__length(enum kind kind, const void *at)
{
    switch (kind) {
    case KIND_STR: return LOAD(struct str, at).n;
    case KIND_BYTES: return LOAD(struct bytes, at).n;
    case KIND_RECORDS: {
        struct records r = LOAD(struct records, at);

        return r.ext ? r.ext_size : r.b.n;
    }
    case KIND_ARRAY: return LOAD(struct wire_array, at).n;
    default: UNREACHABLE();
    }
}

static bool child_is_default(const struct schema *child, const void *msg)
{
    for (const struct field *f = child->fields(); f->kind; f++)
        if (!schema__field_is_default(f, msg))
            return false;
    return true;
}

bool schema__field_is_default(const struct field *f, const void *msg)
{
    const char *at = (const char *)msg + f->offset;

    switch ((enum kind)f->kind) {
    case KIND_F64: {
        double v = LOAD(double, at);
        double def = (double)f->def;

        /* By bits: a negative zero is not the default, and a NaN equals itself. */
        return memcmp(&v, &def, sizeof(v)) == 0;
    }
    case KIND_UUID: return uuid_is_zero(LOAD(struct uuid, at));
    case KIND_ONE: return child_is_default(f->child, at);
    case KIND_MAYBE: return LOAD(void *, at) == NULL;
    case KIND_STR:
    case KIND_BYTES:
    case KIND_RECORDS:
    case KIND_ARRAY: return schema__length(f->kind, at) == f->def;
    default: return schema__int_get(f->kind, at) == f->def;
    }
}

void schema__field_init(const struct field *f, void *msg)
{
    char *at = (char *)msg + f->offset;
    int32_t n = (int32_t)f->def;

    switch ((enum kind)f->kind) {
    case KIND_F64: {
        double v = (double)f->def;

        memcpy(at, &v, sizeof(v));
        break;
    }
    case KIND_STR: memcpy(at, &(struct str){.n = n}, sizeof(struct str)); break;
    case KIND_BYTES: memcpy(at, &(struct bytes){.n = n}, sizeof(struct bytes)); break;
    case KIND_RECORDS: memcpy(at, &(struct records){.b.n = n}, sizeof(struct records)); break;
    case KIND_ARRAY: memcpy(at, &(struct wire_array){.n = n}, sizeof(struct wire_array)); break;
    case KIND_ONE: wire_init(f->child, at); break;
    case KIND_UUID:
    case KIND_MAYBE: break;
    default: schema__int_put(f->kind, at, f->def);
    }
}

void wire_init(const struct schema *schema, void *msg)
{
    memset(msg, 0, schema->size);
    for (const struct field *f = schema->fields(); f->kind; f++)
        schema__field_init(f, msg);
}
