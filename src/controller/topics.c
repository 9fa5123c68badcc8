/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New partitions: who gets their replicas, and their first states. Either the rule of placement
 * says who, or the request does; then each list is checked, and all have to be of one length.
 *
 * Partitions that a topic gets later have as many replicas as its first one, and continue its
 * pattern. Racks count when every live broker has one: with some of them it could not be said what
 * "spread" means, and to create nothing at all would be worse.
 */
#include "base/assert.h"
#include "base/attr.h"
#include "controller/controller_int.h"

/* ---- lists of a request ------------------------------------------------------------------ */

enum err controller_sort_assignments(const struct create_topics_request_topic *in,
                                     struct arena *arena, struct metadata_ids **out,
                                     struct str *message)
{
    int32_t n = in->assignments.n;
    bool *is_named = arena_calloc(arena, (size_t)MAX(n, 1), sizeof(*is_named));

    *out = arena_calloc(arena, (size_t)MAX(n, 1), sizeof(**out));
    for (int32_t i = 0; i < n; i++) {
        const struct create_topics_request_assignment *a = &in->assignments.v[i];

        if (a->partition_index < 0 || a->partition_index >= n || is_named[a->partition_index]) {
            *message = STR_LIT("partitions must be numbered from 0 without gaps, each once");
            return ERR_INVALID_REPLICA_ASSIGNMENT;
        }
        is_named[a->partition_index] = true;
        (*out)[a->partition_index] =
            (struct metadata_ids){.ids = a->broker_ids.v, .count = MAX(a->broker_ids.n, 0)};
    }
    return ERR_NONE;
}

/* What is wrong with the list, of partition `index`; null: nothing. */
static struct str fault_of(const struct metadata_image *image, const struct metadata_ids *ids,
                           int32_t index, int32_t replication_factor, struct arena *arena)
{
    if (ids->count == 0)
        return arena_printf(arena, "partition %d has no replicas", index);
    if (ids->count != replication_factor)
        return arena_printf(arena, "partition %d has %d replicas, others have %d", index,
                            ids->count, replication_factor);
    for (int32_t i = 0; i < ids->count; i++) {
        struct metadata_ids those_before = {.ids = ids->ids, .count = i};

        if (!metadata_is_alive(image, ids->ids[i]))
            return arena_printf(arena, "broker %d, for partition %d, is not known or not alive",
                                ids->ids[i], index);
        if (metadata_ids_have(&those_before, ids->ids[i]))
            return arena_printf(arena, "broker %d has partition %d twice", ids->ids[i], index);
    }
    return str_null();
}

static enum err check_manual(const struct metadata_image *image,
                             const struct controller_new_partitions *how, struct arena *arena,
                             const struct metadata_topic *topic, struct str *message)
{
    int32_t replication_factor;

    assert(how->count > 0);
    replication_factor = topic->partition_count > 0 ? topic->partitions[0].replicas.count
                                                    : how->manual[0].count;
    for (int32_t i = 0; i < how->count; i++) {
        *message =
            fault_of(image, &how->manual[i], topic->partition_count + i, replication_factor, arena);
        if (!str_is_null(*message))
            return ERR_INVALID_REPLICA_ASSIGNMENT;
    }
    return ERR_NONE;
}

/* ---- placement --------------------------------------------------------------------------- */

/* Of the live brokers; NULL where one has none. */
static const struct str *racks_of(const struct metadata_image *image, int32_t count,
                                  struct arena *arena)
{
    struct str *racks = arena_calloc(arena, (size_t)count + 1, sizeof(*racks));
    int32_t n = 0;

    for (int32_t i = 0; i < image->broker_count; i++) {
        if (image->brokers[i]->is_fenced)
            continue;
        if (str_is_null(image->brokers[i]->rack))
            return NULL;
        racks[n++] = image->brokers[i]->rack;
    }
    return racks;
}

/* Where the pattern of a topic began: at the first broker that is not before its first one. */
static int32_t start_of(const struct metadata_topic *topic, const struct metadata_placement *p)
{
    for (int32_t i = 0; i < p->broker_count; i++)
        if (p->brokers[i] >= topic->partitions[0].replicas.ids[0])
            return i;
    return 0;
}

static void continue_pattern(struct metadata_placement *p, const struct metadata_topic *topic)
{
    p->replication_factor = topic->partitions[0].replicas.count;
    p->first_partition = topic->partition_count;
    p->start = p->shift = start_of(topic, p);
}

static struct metadata_placement placement_of(const struct metadata_image *image,
                                              const struct controller_new_partitions *how,
                                              struct arena *arena,
                                              const struct metadata_topic *topic)
{
    int32_t *brokers = arena_calloc(arena, (size_t)image->broker_count + 1, sizeof(*brokers));
    struct metadata_placement p = {.brokers = brokers,
                                   .broker_count = metadata_live_brokers(image, brokers),
                                   .partitions = how->count,
                                   .replication_factor = how->replication_factor};

    p.racks = racks_of(image, p.broker_count, arena);
    if (p.broker_count > 0) {
        p.start = (int32_t)((how->random & UINT32_MAX) % (uint32_t)p.broker_count);
        p.shift = (int32_t)((how->random >> 32) % (uint32_t)p.broker_count);
    }
    if (topic->partition_count > 0 && topic->partitions[0].replicas.count > 0)
        continue_pattern(&p, topic);
    return p;
}

static struct str why_not_placed(enum err err, const struct metadata_placement *p,
                                 struct arena *arena)
{
    if (err == ERR_INVALID_PARTITIONS)
        return arena_printf(arena, "number of partitions must be at least 1, not %d",
                            p->partitions);
    if (p->replication_factor <= 0)
        return STR_LIT("replication factor must be larger than 0");
    return arena_printf(arena, "replication factor %d is larger than the number of brokers, %d",
                        p->replication_factor, p->broker_count);
}

/* An assignment for each new partition. */
static enum err place(const struct metadata_image *image,
                      const struct controller_new_partitions *how, struct arena *arena,
                      const struct metadata_topic *topic, struct metadata_ids *out,
                      struct str *message)
{
    struct metadata_placement p = placement_of(image, how, arena, topic);
    bool fits = p.replication_factor > 0 && p.replication_factor <= p.broker_count;
    size_t width = fits ? (size_t)p.replication_factor : 0;
    int32_t *ids = arena_calloc(arena, width * (size_t)how->count + 1, sizeof(*ids));
    enum err err = metadata_place_replicas(&p, ids);

    if (err) {
        *message = why_not_placed(err, &p, arena);
        return err;
    }
    for (int32_t i = 0; i < how->count; i++)
        out[i] = (struct metadata_ids){.ids = ids + (size_t)i * width, .count = (int32_t)width};
    return ERR_NONE;
}

/* ---- both -------------------------------------------------------------------------------- */

static bool is_on_the_move(const struct metadata_topic *topic)
{
    for (int32_t i = 0; i < topic->partition_count; i++)
        if (topic->partitions[i].adding.count + topic->partitions[i].removing.count > 0)
            return true;
    return false;
}

static void make_partition(const struct metadata_image *image, const struct metadata_ids *replicas,
                           struct arena *arena, struct metadata_topic *topic)
{
    struct metadata_partition p = {.replicas = *replicas};
    bool has_leader;

    p.isr.ids = arena_calloc(arena, (size_t)replicas->count, sizeof(*p.isr.ids));
    has_leader = controller_first_state(image, &p);
    assert(has_leader);
    metadata_topic_set_partition(topic, topic->partition_count, &p);
}

enum err controller_make_partitions(const struct metadata_image *image,
                                    const struct controller_new_partitions *how,
                                    struct arena *arena, struct metadata_topic *topic,
                                    struct str *message)
{
    struct metadata_ids *lists = arena_calloc(arena, (size_t)how->count + 1, sizeof(*lists));
    enum err err;

    assert(how->count >= 0);
    *message = str_null();
    if (is_on_the_move(topic)) {
        *message = STR_LIT("the topic's partitions are being moved to other brokers");
        return ERR_REASSIGNMENT_IN_PROGRESS;
    }
    err = how->manual ? check_manual(image, how, arena, topic, message)
                      : place(image, how, arena, topic, lists, message);
    if (err)
        return err;
    for (int32_t i = 0; i < how->count; i++)
        make_partition(image, how->manual ? &how->manual[i] : &lists[i], arena, topic);
    return ERR_NONE;
}
