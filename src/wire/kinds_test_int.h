/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_WIRE_KINDS_TEST_INT_H
#define SL_WIRE_KINDS_TEST_INT_H

#include "wire/schema_int.h"

/* kinds_test.def in all three readings, and cmocka with what it needs; for tests of this module. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "wire/schema/as_structs.h"

#include "wire/kinds_test.def"

#include "wire/schema/end.h"

#include "wire/schema/as_fields.h"

#include "wire/kinds_test.def"

#include "wire/schema/end.h"

#include "wire/schema/as_schemas.h"

#include "wire/kinds_test.def"

#include "wire/schema/end.h"

#endif
