/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the replicas of new partitions go, by the rule of Kafka for brokers without racks.
 *
 * Leaders go round the brokers from a start that the caller draws. The other replicas of a
 * partition follow at a distance, and the distance grows by one each time the leaders have gone
 * round, so that two brokers which share one partition do not share all of them: when one dies,
 * its load spreads. With the same start and shift the outcome is the same, and partitions that
 * are added later continue the pattern.
 */
#include "base/assert.h"
#include "metadata/metadata.h"

static enum err check(const struct metadata_placement *p)
{
    if (p->partitions <= 0 || p->first_partition < 0 ||
        p->partitions > INT32_MAX - p->first_partition)
        return ERR_INVALID_PARTITIONS;
    if (p->replication_factor <= 0 || p->replication_factor > p->broker_count)
        return ERR_INVALID_REPLICATION_FACTOR;
    if (p->start < 0 || p->shift < 0)
        return ERR_INVALID_ARG;
    return ERR_NONE;
}

/* Place of the i-th follower: never the leader's, and never that of another follower. */
static int32_t follower_place(int32_t leader, int64_t shift, int32_t i, int32_t brokers)
{
    int64_t distance = 1 + (shift + i) % (brokers - 1);

    return (int32_t)((leader + distance) % brokers);
}

enum err metadata_place_replicas(const struct metadata_placement *p, int32_t *out)
{
    enum err err = check(p);
    int64_t shift = p->shift;

    if (err)
        return err;
    for (int32_t n = 0; n < p->partitions; n++) {
        int64_t partition = (int64_t)p->first_partition + n;
        int32_t leader = (int32_t)((partition + p->start) % p->broker_count);

        if (partition > 0 && partition % p->broker_count == 0)
            shift++;
        *out++ = p->brokers[leader];
        for (int32_t i = 0; i < p->replication_factor - 1; i++)
            *out++ = p->brokers[follower_place(leader, shift, i, p->broker_count)];
    }
    return ERR_NONE;
}
