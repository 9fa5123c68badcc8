/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Second reading of a .def file: the table of each struct's fields, as a function that returns it.
 * A function because it has a scope of its own: the typedef `self` names the struct for offsetof,
 * so that the lines of a .def file need not repeat it.
 */
#define MESSAGE(name, first, last, flexible_from) STRUCT(name)
#define STRUCT(name)                                                                               \
    static const struct field *name##_fields(void)                                                 \
    {                                                                                              \
        typedef struct name self;                                                                  \
        static const struct field fields[] = {
/* The formatter takes the brace for the end of a block. */
/* clang-format off */
#define END                                                                                        \
    {.kind = KIND_END},                                                                            \
    };                                                                                             \
    return fields;                                                                                 \
    }
/* clang-format on */

#define BOOL(...) WIRE_FIELD(KIND_BOOL, __VA_ARGS__)
#define I8(...) WIRE_FIELD(KIND_I8, __VA_ARGS__)
#define I16(...) WIRE_FIELD(KIND_I16, __VA_ARGS__)
#define U16(...) WIRE_FIELD(KIND_U16, __VA_ARGS__)
#define I32(...) WIRE_FIELD(KIND_I32, __VA_ARGS__)
#define I64(...) WIRE_FIELD(KIND_I64, __VA_ARGS__)
#define F64(...) WIRE_FIELD(KIND_F64, __VA_ARGS__)
#define UUID(...) WIRE_FIELD(KIND_UUID, __VA_ARGS__)
#define STR(...) WIRE_FIELD(KIND_STR, __VA_ARGS__)
#define BYTES(...) WIRE_FIELD(KIND_BYTES, __VA_ARGS__)
#define RECORDS(...) WIRE_FIELD(KIND_RECORDS, __VA_ARGS__)
#define ONE(child_, ...) WIRE_FIELD(KIND_ONE, __VA_ARGS__, .child = &child_##_schema)
#define MAYBE(child_, ...)                                                                         \
    WIRE_FIELD(KIND_MAYBE, __VA_ARGS__, .child = &child_##_schema, NULLABLE(0), DEF_NULL)
#define ARRAY(child_, ...)                                                                         \
    WIRE_FIELD(KIND_ARRAY, __VA_ARGS__, .element = KIND_ONE, .child = &child_##_schema)
#define ARRAY_I8(...) WIRE_FIELD(KIND_ARRAY, __VA_ARGS__, .element = KIND_I8)
#define ARRAY_I32(...) WIRE_FIELD(KIND_ARRAY, __VA_ARGS__, .element = KIND_I32)
#define ARRAY_I64(...) WIRE_FIELD(KIND_ARRAY, __VA_ARGS__, .element = KIND_I64)
#define ARRAY_STR(...) WIRE_FIELD(KIND_ARRAY, __VA_ARGS__, .element = KIND_STR)
#define ARRAY_UUID(...) WIRE_FIELD(KIND_ARRAY, __VA_ARGS__, .element = KIND_UUID)
#define WIRE_FIELD(kind_, field_, first_, last_, ...)                                              \
    {.name = #field_,                                                                              \
     .kind = (kind_),                                                                              \
     .offset = offsetof(self, field_),                                                             \
     .first = (first_),                                                                            \
     .last = (last_),                                                                              \
     ##__VA_ARGS__},
