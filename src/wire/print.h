/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_WIRE_PRINT_H
#define SL_WIRE_PRINT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/codec.h"

/*
 * A message as one line of text, for traces and tests, from the same tables as the codec:
 *
 *   {acks=-1 timeout_ms=1000 topics=[{name="t" partitions=[{index=0 records=<68 bytes>}]}]}
 *
 * Only the fields that the version has are shown; tagged fields only when they are not at their
 * default, as on the wire. Strings are quoted, with \xHH for what is not printable ASCII; record
 * batches and bytes are shown as their size.
 *
 * Writes at most size bytes, the last one NUL, and returns the length of the whole text like
 * snprintf. Any thread.
 */
size_t wire_print(const struct schema *schema, int16_t version, const void *msg, char *out,
                  size_t size);

#endif
