/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_WIRE_MESSAGES_H
#define SL_WIRE_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/uuid.h"
#include "wire/codec.h"

/*
 * The structs of all messages, made of wire/schema/<api>.def; look there for the meaning of each
 * field. `struct fetch_request` has the schema `fetch_request_schema`; nested structs are called
 * after their message (`struct fetch_request_topic`). An array is {v, n} with n = -1 for null.
 * Call wire_init before you fill in a message or an element of an array: defaults are not zero.
 */
#include "wire/schema/as_structs.h"

#include "wire/schema/all.def"

#include "wire/schema/end.h"

#endif
