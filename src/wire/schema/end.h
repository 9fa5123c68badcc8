/* SPDX-License-Identifier: Apache-2.0 */
/* Forgets the words of a .def file, so that they may be defined for another reading. */
#undef MESSAGE
#undef STRUCT
#undef END
#undef BOOL
#undef I8
#undef I16
#undef U16
#undef I32
#undef I64
#undef F64
#undef UUID
#undef STR
#undef BYTES
#undef RECORDS
#undef ONE
#undef MAYBE
#undef ARRAY
#undef ARRAY_I8
#undef ARRAY_I32
#undef ARRAY_I64
#undef ARRAY_STR
#undef ARRAY_UUID
#undef WIRE_ARRAY
#undef WIRE_FIELD
