/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_WIRE_SCHEMA_INT_H
#define SL_WIRE_SCHEMA_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/uuid.h"
#include "wire/codec.h"

/*
 * What a .def file becomes: constant tables that decoder, encoder and printer walk. Private to
 * this module and its tests.
 */
enum kind {
    KIND_END = 0, /* behind the last field of a table */
    KIND_BOOL,
    KIND_I8,
    KIND_I16,
    KIND_U16,
    KIND_I32,
    KIND_I64,
    KIND_F64,
    KIND_UUID,
    KIND_STR,
    KIND_BYTES,
    KIND_RECORDS,
    KIND_ONE,   /* a struct inside the struct */
    KIND_MAYBE, /* a pointer to a struct, NULL when absent; a presence byte on the wire */
    KIND_ARRAY,
};

struct field {
    const char *name;
    const struct schema *child; /* of KIND_ONE, KIND_MAYBE and arrays of structs */
    int64_t def;                /* default: the number, or the length (0 empty, -1 null) */
    uint16_t offset;            /* in the struct */
    int16_t first;              /* versions that have the field, both inclusive */
    int16_t last;
    int16_t nullable_from_plus1; /* 0 = never null */
    int16_t tag_plus1;           /* 0 = not tagged */
    uint8_t kind;
    uint8_t element; /* kind of the elements of an array */
};

struct schema {
    const char *name;
    const struct field *(*fields)(void); /* in wire order, KIND_END last */
    size_t size;                         /* bytes of the struct */
    int16_t first;                       /* versions of a message; a nested struct has them all */
    int16_t last;
    int16_t flexible_from; /* compact lengths and tags from here; meaningless for nested structs */
};

/* The modifiers of a .def file. Stored plus one, so that zero means "none". */
#define LATEST INT16_MAX
#define NEVER INT16_MAX
#define DEF(value) .def = (value)
#define DEF_NULL .def = -1
#define TAG(tag) .tag_plus1 = (tag) + 1
#define NULLABLE(from) .nullable_from_plus1 = (from) + 1

/* The common shape of every array member of the message structs. */
struct wire_array {
    void *v;
    int32_t n;
};

static inline bool field__is_in(const struct field *f, int16_t version)
{
    return version >= f->first && version <= f->last;
}

static inline bool field__is_tagged(const struct field *f)
{
    return f->tag_plus1 != 0;
}

static inline bool field__is_nullable(const struct field *f, int16_t version)
{
    return f->nullable_from_plus1 != 0 && version >= f->nullable_from_plus1 - 1;
}

static inline bool schema__is_flexible(const struct schema *s, int16_t version)
{
    return version >= s->flexible_from;
}

/* Bytes that a value takes in memory; child is needed for KIND_ONE only. */
size_t schema__kind_size(enum kind kind, const struct schema *child);
/* Whether the kind is BOOL, a whole number of any width. */
bool schema__kind_is_int(enum kind kind);
/* The value of any whole number or bool, and its counterpart. */
int64_t schema__int_get(enum kind kind, const void *at);
void schema__int_put(enum kind kind, void *at, int64_t v);
/* Length or count of a STR, BYTES, RECORDS or ARRAY member; -1 is null. */
int64_t schema__length(enum kind kind, const void *at);
/* Gives a field of msg its default value; msg was zeroed before. */
void schema__field_init(const struct field *f, void *msg);
/* Whether a field of msg has its default value. */
bool schema__field_is_default(const struct field *f, const void *msg);

#endif
