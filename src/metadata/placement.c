/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the replicas of new partitions go, by the rules of Kafka.
 *
 * Leaders go round the brokers from a start that the caller draws. The other replicas of a
 * partition follow at a distance, and the distance grows by one each time the leaders have gone
 * round, so that two brokers which share one partition do not share all of them: when one dies,
 * its load spreads. With the same start and shift the outcome is the same, and partitions that
 * are added later continue the pattern.
 *
 * With racks the brokers stand in another order: the first of each rack, then the second of each,
 * and so on; and a broker whose rack has a replica already is passed over as long as there is a
 * rack that has none. A turn then moves the distance by a whole round of the racks.
 */
#include <stdlib.h>

#include "base/alloc.h"
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

/* ---- racks ------------------------------------------------------------------------------ */

/* The brokers in turn from each rack. */
struct line {
    int32_t count;
    int32_t rack_count;
    int32_t *brokers;
    int32_t *racks;  /* of the broker at the same place: numbers in the order of their names */
    int32_t *chosen; /* racks of one partition's replicas */
};

/* How many racks have a name before this one. */
static int32_t number_of_rack(const struct metadata_placement *p, struct str rack)
{
    int32_t n = 0;

    for (int32_t i = 0; i < p->broker_count; i++) {
        bool is_new = str_cmp(p->racks[i], rack) < 0;

        for (int32_t k = 0; k < i && is_new; k++)
            is_new = !str_eq(p->racks[k], p->racks[i]);
        n += is_new;
    }
    return n;
}

/* How many brokers of its rack stand before it. */
static int32_t place_in_rack(const struct metadata_placement *p, int32_t at)
{
    int32_t n = 0;

    for (int32_t i = 0; i < at; i++)
        n += str_eq(p->racks[i], p->racks[at]);
    return n;
}

static void line_up(struct line *line, int32_t broker, int32_t rack)
{
    line->racks[line->count] = rack;
    line->brokers[line->count++] = broker;
}

/* One round after the other, each in the order of the racks. */
static void line_begin(struct line *line, const struct metadata_placement *p)
{
    size_t n = (size_t)p->broker_count;
    int32_t *racks = xcalloc(n, sizeof(*racks));
    int32_t *rounds = xcalloc(n, sizeof(*rounds));

    *line = (struct line){.brokers = xcalloc(n, sizeof(int32_t)),
                          .racks = xcalloc(n, sizeof(int32_t)),
                          .chosen = xcalloc(n, sizeof(int32_t))};
    for (int32_t i = 0; i < p->broker_count; i++) {
        racks[i] = number_of_rack(p, p->racks[i]);
        rounds[i] = place_in_rack(p, i);
        line->rack_count = racks[i] >= line->rack_count ? racks[i] + 1 : line->rack_count;
    }
    for (int32_t turn = 0; line->count < p->broker_count; turn++)
        for (int32_t i = 0; i < p->broker_count; i++)
            if (rounds[i] == turn / line->rack_count && racks[i] == turn % line->rack_count)
                line_up(line, p->brokers[i], racks[i]);
    free(racks);
    free(rounds);
}

static void line_end(struct line *line)
{
    free(line->brokers);
    free(line->racks);
    free(line->chosen);
}

/* As long as a rack has no replica, no rack has two: there are as many racks as replicas. */
static bool is_passed_over(const struct line *line, const struct metadata_ids *racks,
                           const struct metadata_ids *replicas, int32_t place)
{
    return metadata_ids_have(replicas, line->brokers[place]) ||
           (metadata_ids_have(racks, line->racks[place]) && racks->count < line->rack_count);
}

static void place_over_racks(struct line *line, int32_t leader, int64_t shift, int32_t *out,
                             int32_t replication_factor)
{
    struct metadata_ids replicas = {.ids = out, .count = 1};
    struct metadata_ids racks = {.ids = line->chosen, .count = 1};

    out[0] = line->brokers[leader];
    racks.ids[0] = line->racks[leader];
    for (int32_t i = 0; replicas.count < replication_factor; i++) {
        int32_t place = follower_place(leader, shift * line->rack_count, i, line->count);

        assert(i < 2 * line->count);
        if (is_passed_over(line, &racks, &replicas, place))
            continue;
        replicas.ids[replicas.count++] = line->brokers[place];
        racks.ids[racks.count++] = line->racks[place];
    }
}

/* ---- both ------------------------------------------------------------------------------- */

static void place(const struct metadata_placement *p, int32_t leader, int64_t shift, int32_t *out)
{
    out[0] = p->brokers[leader];
    for (int32_t i = 0; i < p->replication_factor - 1; i++)
        out[1 + i] = p->brokers[follower_place(leader, shift, i, p->broker_count)];
}

enum err metadata_place_replicas(const struct metadata_placement *p, int32_t *out)
{
    enum err err = check(p);
    int64_t shift = p->shift;
    struct line line = {0};

    if (err)
        return err;
    if (p->racks)
        line_begin(&line, p);
    for (int32_t n = 0; n < p->partitions; n++, out += p->replication_factor) {
        int64_t partition = (int64_t)p->first_partition + n;
        int32_t leader = (int32_t)((partition + p->start) % p->broker_count);

        if (partition > 0 && partition % p->broker_count == 0)
            shift++;
        if (p->racks)
            place_over_racks(&line, leader, shift, out, p->replication_factor);
        else
            place(p, leader, shift, out);
    }
    line_end(&line);
    return ERR_NONE;
}
