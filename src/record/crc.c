/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C by ISA-L, which picks the fastest code for the processor at run time (carry-less
 * multiplication: well over 10 GB/s, so that checking every batch costs less than copying it).
 *
 * The library's function works on the bare shift register: it neither starts from all ones nor
 * inverts the result. Both are done here, so that a checksum that is passed in or out is always in
 * the form that stands in the file.
 */
#include <isa-l/crc.h>

#include "record/record.h"

/* The library takes an int for the length. */
#define CRC_STEP_BYTES ((size_t)1 << 30)

uint32_t crc32c_extend(uint32_t crc, const void *p, size_t n)
{
    const uint8_t *bytes = p;
    uint32_t state = ~crc;

    while (n > 0) {
        size_t step = MIN(n, CRC_STEP_BYTES);

        /* The parameter lacks its const; the library only reads. */
        state = crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)step, state);
        bytes += step;
        n -= step;
    }
    return ~state;
}

uint32_t crc32c(const void *p, size_t n)
{
    return crc32c_extend(0, p, n);
}
