/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First of the three readings of a .def file: plain structs. No include guard: it is included
 * before the .def files, and schema/end.h after them. README.md explains the words of a .def file.
 */
#define MESSAGE(name, first, last, flexible_from) STRUCT(name)
#define STRUCT(name)                                                                               \
    extern const struct schema name##_schema;                                                      \
    struct name {
/* The formatter takes the brace for the end of a block. */
/* clang-format off */
#define END };
/* clang-format on */

#define BOOL(field, first, last, ...) bool field;
#define I8(field, first, last, ...) int8_t field;
#define I16(field, first, last, ...) int16_t field;
#define U16(field, first, last, ...) uint16_t field;
#define I32(field, first, last, ...) int32_t field;
#define I64(field, first, last, ...) int64_t field;
#define F64(field, first, last, ...) double field;
#define UUID(field, first, last, ...) struct uuid field;
#define STR(field, first, last, ...) struct str field;
#define BYTES(field, first, last, ...) struct bytes field;
#define RECORDS(field, first, last, ...) struct records field;
#define ONE(child, field, first, last, ...) struct child field;
#define MAYBE(child, field, first, last, ...) struct child *field;
#define ARRAY(child, field, first, last, ...) WIRE_ARRAY(struct child, field)
#define ARRAY_I8(field, first, last, ...) WIRE_ARRAY(int8_t, field)
#define ARRAY_I32(field, first, last, ...) WIRE_ARRAY(int32_t, field)
#define ARRAY_I64(field, first, last, ...) WIRE_ARRAY(int64_t, field)
#define ARRAY_STR(field, first, last, ...) WIRE_ARRAY(struct str, field)
#define ARRAY_UUID(field, first, last, ...) WIRE_ARRAY(struct uuid, field)
#define WIRE_ARRAY(type, field)                                                                    \
    struct {                                                                                       \
        type *v;                                                                                   \
        int32_t n; /* elements; -1 is null */                                                      \
    } field;
