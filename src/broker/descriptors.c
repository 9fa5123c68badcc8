/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may open more files. A process that has no descriptor left cannot roll a segment or write a
 * checkpoint, and then a log directory has failed for no fault of the disk. So what asks for
 * descriptors from outside stops early, each at its own distance from the limit:
 *
 *   new partitions leave a quarter of all descriptors, for connections and for the segments that
 *   logs will have;
 *   connections leave an eighth, for the files of the logs that are there;
 *   a start needs room for the logs that it has found, and says so before it opens any.
 *
 * Looking is a system call or two, so a shard takes several connections at one look. In the
 * simulated world there is no limit.
 */
#include "base/alloc.h"
#include "broker/broker_int.h"

#define FILES_A_PARTITION 3
#define FILES_OF_OTHERS 64 /* loops, listeners, the keeper, jobs, what is replaced */
#define CONNS_A_LOOK 64

/* What is left when `share` of the limit is kept. */
static int64_t left(struct broker *b, int64_t keep_one_in, struct io_usage *u)
{
    io_usage_read(b->io, u);
    if (u->open_files_max == 0)
        return INT64_MAX;
    return MAX(u->open_files_max - u->open_files - u->open_files_max / keep_one_in, 0);
}

int64_t descriptors_partition_room(struct broker *b)
{
    struct io_usage usage;

    return left(b, 4, &usage) / FILES_A_PARTITION;
}

char *descriptors_lack(struct broker *b, int64_t partitions)
{
    int64_t need = FILES_A_PARTITION * partitions + FILES_OF_OTHERS;
    struct io_usage usage;

    if (left(b, INT64_MAX, &usage) >= need)
        return NULL;
    return xasprintf("%lld partitions with their segments need more open files than the limit of "
                     "%lld: raise it (ulimit -n, LimitNOFILE)",
                     (long long)partitions, (long long)usage.open_files_max);
}

bool descriptors_take_conn(struct shard *s)
{
    struct io_usage usage;

    if (s->conns_at_hand == 0)
        s->conns_at_hand = MIN(left(s->broker, 8, &usage) / s->broker->shard_count, CONNS_A_LOOK);
    if (s->conns_at_hand == 0)
        return false;
    s->conns_at_hand--;
    return true;
}
