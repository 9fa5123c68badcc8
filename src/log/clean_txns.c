/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cleaner knows of transactions.
 *
 * Only what lies below the last stable offset is cleaned, so each transaction met there is decided,
 * but its marker may lie in any later segment. All aborts are therefore read beforehand, from every
 * transaction index of the log: no state has to be carried from one group of segments to the next,
 * and the part of a segment that is copied without being cleaned is judged by the same list.
 *
 * A marker may go only when no data of its transaction is left in front of it. What was met since
 * the producer's last marker counts, even if this run drops it: the run that removes the last data
 * leaves the marker, a later one finds it alone and gives it its delete horizon (KIP-534).
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "log/clean_int.h"

struct txn_seen {
    int64_t producer_id;
    UT_hash_handle hh;
};

static enum err load_segment(struct clean_txns *t, struct segment *s, int64_t count)
{
    uint8_t p[TXNINDEX_ENTRY_BYTES];

    for (int64_t i = 0; i < count; i++) {
        enum err err =
            read_fully(s->shared_txnindex, p, sizeof(p), i * TXNINDEX_ENTRY_BYTES, LOG_BLOCKING);
        if (err)
            return err == ERR_EOF ? ERR_CORRUPT_MESSAGE : err;
        if (t->aborted_count == t->aborted_cap) {
            t->aborted_cap = t->aborted_cap ? 2 * t->aborted_cap : 16;
            t->aborted = xreallocarray(t->aborted, t->aborted_cap, sizeof(*t->aborted));
        }
        if (!txn_entry_get(p, &t->aborted[t->aborted_count++]))
            return ERR_CORRUPT_MESSAGE;
    }
    return ERR_NONE;
}

static int compare(const void *a, const void *b)
{
    const struct txn_entry *x = a;
    const struct txn_entry *y = b;

    if (x->producer_id != y->producer_id)
        return x->producer_id < y->producer_id ? -1 : 1;
    return (x->first_offset > y->first_offset) - (x->first_offset < y->first_offset);
}

enum err clean_txns_load(struct clean_txns *t, const struct view_record *r)
{
    enum err err = ERR_NONE;

    for (size_t i = 0; !err && i < r->list->n; i++) {
        bool is_last = i + 1 == r->list->n;
        int64_t count = is_last ? r->tail.txn_count : r->list->v[i].txn_count;
        err = load_segment(t, r->list->v[i].segment, count);
    }
    if (t->aborted_count > 1)
        qsort(t->aborted, t->aborted_count, sizeof(*t->aborted), compare);
    return err;
}

void clean_txns_fini(struct clean_txns *t)
{
    struct txn_seen *s, *next;

    HASH_ITER (hh, t->seen, s, next) {
        HASH_DEL(t->seen, s);
        free(s);
    }
    free(t->aborted);
    *t = (struct clean_txns){.aborted = NULL};
}

const struct txn_entry *clean_txns_abort_of(const struct clean_txns *t, int64_t producer_id,
                                            int64_t offset)
{
    struct txn_entry key = {.producer_id = producer_id, .first_offset = offset};
    size_t low = 0; /* entries before it are not above the key */
    size_t high = t->aborted_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&t->aborted[middle], &key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || t->aborted[low - 1].producer_id != producer_id ||
        t->aborted[low - 1].last_offset < offset)
        return NULL;
    return &t->aborted[low - 1];
}

static struct txn_seen *find(const struct clean_txns *t, int64_t producer_id)
{
    struct txn_seen *s;

    HASH_FIND(hh, t->seen, &producer_id, sizeof(producer_id), s);
    return s;
}

void clean_txns_see_data(struct clean_txns *t, int64_t producer_id)
{
    struct txn_seen *s = find(t, producer_id);

    if (s)
        return;
    s = xcalloc(1, sizeof(*s));
    s->producer_id = producer_id;
    HASH_ADD(hh, t->seen, producer_id, sizeof(s->producer_id), s);
}

bool clean_txns_see_marker(struct clean_txns *t, int64_t producer_id)
{
    struct txn_seen *s = find(t, producer_id);

    if (!s)
        return false;
    HASH_DEL(t->seen, s);
    free(s);
    return true;
}
