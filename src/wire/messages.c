/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of all messages. This file has no text of its own: the .def files are read twice
 * more, once for the fields of each struct and once for the constants that name them. What the
 * tables must obey (ranges, tags, defaults) is checked by schema_test.c.
 */
#include "wire/messages.h"

#include "wire/schema_int.h"

#include "wire/schema/as_fields.h"

#include "wire/schema/all.def"

#include "wire/schema/end.h"

#include "wire/schema/as_schemas.h"

#include "wire/schema/all.def"

#include "wire/schema/end.h"
