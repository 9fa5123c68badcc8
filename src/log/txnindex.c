/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transaction index: for each aborted transaction whose marker lies in the segment one entry of
 * 34 bytes, in the order of the markers. A reader of committed records gets the list of aborts with
 * its data and leaves their records out.
 *
 * An entry carries the last stable offset at its abort, so a search may stop early: once an entry's
 * is not below the end of what is read, no later abort can begin before that end.
 */
#include "base/assert.h"
#include "log/log_int.h"

#define VERSION 0

void txn_entry_put(uint8_t p[static TXNINDEX_ENTRY_BYTES], const struct txn_entry *e)
{
    put_i16(p, VERSION);
    put_i64(p + 2, e->producer_id);
    put_i64(p + 10, e->first_offset);
    put_i64(p + 18, e->last_offset);
    put_i64(p + 26, e->last_stable_offset);
}

bool txn_entry_get(const uint8_t p[static TXNINDEX_ENTRY_BYTES], struct txn_entry *e)
{
    e->producer_id = get_i64(p + 2);
    e->first_offset = get_i64(p + 10);
    e->last_offset = get_i64(p + 18);
    e->last_stable_offset = get_i64(p + 26);
    return get_i16(p) == VERSION;
}
