/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Third reading of a .def file: one constant per struct that ties its name, size, versions and
 * fields together. The fields themselves were handled by schema/as_fields.h and vanish here.
 */
#define MESSAGE(name_, first_, last_, flexible_from_)                                              \
    const struct schema name_##_schema = {                                                         \
        .name = #name_,                                                                            \
        .fields = name_##_fields,                                                                  \
        .size = sizeof(struct name_),                                                              \
        .first = (first_),                                                                         \
        .last = (last_),                                                                           \
        .flexible_from = (flexible_from_),                                                         \
    };
#define STRUCT(name_) MESSAGE(name_, 0, LATEST, 0)
#define END

#define BOOL(...)
#define I8(...)
#define I16(...)
#define U16(...)
#define I32(...)
#define I64(...)
#define F64(...)
#define UUID(...)
#define STR(...)
#define BYTES(...)
#define RECORDS(...)
#define ONE(...)
#define MAYBE(...)
#define ARRAY(...)
#define ARRAY_I8(...)
#define ARRAY_I32(...)
#define ARRAY_I64(...)
#define ARRAY_STR(...)
#define ARRAY_UUID(...)
#define WIRE_ARRAY(...)
#define WIRE_FIELD(...)
