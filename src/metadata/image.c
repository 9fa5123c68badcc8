/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images and what they hold: references, look-up, builders.
 *
 * An image is four sorted arrays: brokers by id, topics by name and by topic id, broker
 * configurations by id. Arrays and not hash tables, because an image is built far more rarely
 * than it is read, its order is part of what clients see, and copying an array of pointers is all
 * that the next image costs.
 *
 * Reference counts are the only thing in here that changes after publication. The release of the
 * last one must see all writes of earlier holders, hence acquire-release on the way down; on the
 * way up the holder's own reference already keeps the object alive.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "metadata/metadata_int.h"

static void ref(_Atomic int32_t *refs)
{
    int32_t before = atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);

    assert(before > 0);
}

/* Whether that was the last one. */
static bool unref(_Atomic int32_t *refs)
{
    int32_t before = atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);

    assert(before > 0);
    return before == 1;
}

struct str metadata__str_copy(struct str s)
{
    return (struct str){str_dup(s), s.n};
}

void metadata__str_fini(struct str *s)
{
    free((void *)(uintptr_t)s->p);
    *s = str_null();
}

/* ---- Brokers. */

struct metadata_broker *metadata_broker_new(int32_t id, int64_t epoch, struct str rack)
{
    struct metadata_broker *b = xcalloc(1, sizeof(*b));

    assert(id >= 0);
    b->id = id;
    b->epoch = epoch;
    b->rack = metadata__str_copy(rack);
    atomic_init(&b->_refs, 1);
    return b;
}

void metadata_broker_add_endpoint(struct metadata_broker *broker, struct str listener,
                                  struct str host, int32_t port)
{
    struct metadata_endpoint *e;

    broker->endpoints = xreallocarray(broker->endpoints, (size_t)broker->endpoint_count + 1,
                                      sizeof(*broker->endpoints));
    e = &broker->endpoints[broker->endpoint_count++];
    e->listener = metadata__str_copy(listener);
    e->host = metadata__str_copy(host);
    e->port = port;
}

struct metadata_broker *metadata_broker_get(struct metadata_broker *broker)
{
    ref(&broker->_refs);
    return broker;
}

void metadata_broker_put(struct metadata_broker *broker)
{
    if (!broker || !unref(&broker->_refs))
        return;
    for (int32_t i = 0; i < broker->endpoint_count; i++) {
        metadata__str_fini(&broker->endpoints[i].listener);
        metadata__str_fini(&broker->endpoints[i].host);
    }
    free(broker->endpoints);
    metadata__str_fini(&broker->rack);
    free(broker);
}

/* ---- Partitions and topics. */

static void ids_copy(struct metadata_ids *to, const struct metadata_ids *from)
{
    *to = (struct metadata_ids){NULL, from->count};
    if (from->count > 0)
        to->ids = xmemdup(from->ids, (size_t)from->count * sizeof(*from->ids));
}

void metadata__partition_copy(struct metadata_partition *to, const struct metadata_partition *from)
{
    *to = *from;
    ids_copy(&to->replicas, &from->replicas);
    ids_copy(&to->isr, &from->isr);
    ids_copy(&to->adding, &from->adding);
    ids_copy(&to->removing, &from->removing);
    if (from->dirs)
        to->dirs = xmemdup(from->dirs, (size_t)from->replicas.count * sizeof(*from->dirs));
}

void metadata__partition_fini(struct metadata_partition *p)
{
    free(p->replicas.ids);
    free(p->isr.ids);
    free(p->adding.ids);
    free(p->removing.ids);
    free(p->dirs);
    *p = (struct metadata_partition){.leader = -1, .leader_epoch = -1};
}

static void grow(struct metadata_topic *topic, int32_t count)
{
    if (count <= topic->partition_count)
        return;
    topic->partitions = xreallocarray(topic->partitions, (size_t)count, sizeof(*topic->partitions));
    for (int32_t i = topic->partition_count; i < count; i++)
        topic->partitions[i] = (struct metadata_partition){.leader = -1, .leader_epoch = -1};
    topic->partition_count = count;
}

struct metadata_topic *metadata_topic_new(struct str name, struct uuid id, int32_t partition_count)
{
    struct metadata_topic *topic = xcalloc(1, sizeof(*topic));

    assert(name.n > 0);
    assert(partition_count >= 0);
    topic->name = metadata__str_copy(name);
    topic->id = id;
    topic->is_internal = metadata_topic_name_is_internal(name);
    grow(topic, partition_count);
    atomic_init(&topic->_refs, 1);
    return topic;
}

struct metadata_topic *metadata_topic_copy(const struct metadata_topic *topic)
{
    struct metadata_topic *copy = metadata_topic_new(topic->name, topic->id, 0);

    copy->is_deleting = topic->is_deleting;
    config_overrides_copy(&copy->configs, &topic->configs);
    grow(copy, topic->partition_count);
    for (int32_t i = 0; i < topic->partition_count; i++)
        metadata__partition_copy(&copy->partitions[i], &topic->partitions[i]);
    return copy;
}

void metadata_topic_set_partition(struct metadata_topic *topic, int32_t index,
                                  const struct metadata_partition *partition)
{
    struct metadata_partition copy;

    assert(index >= 0);
    metadata__partition_copy(&copy, partition);
    grow(topic, index + 1);
    metadata__partition_fini(&topic->partitions[index]);
    topic->partitions[index] = copy;
}

void metadata_topic_set_configs(struct metadata_topic *topic, const struct config_overrides *o)
{
    struct config_overrides copy;

    config_overrides_copy(&copy, o);
    config_overrides_fini(&topic->configs);
    topic->configs = copy;
}

struct metadata_topic *metadata_topic_get(struct metadata_topic *topic)
{
    ref(&topic->_refs);
    return topic;
}

void metadata_topic_put(struct metadata_topic *topic)
{
    if (!topic || !unref(&topic->_refs))
        return;
    for (int32_t i = 0; i < topic->partition_count; i++)
        metadata__partition_fini(&topic->partitions[i]);
    free(topic->partitions);
    config_overrides_fini(&topic->configs);
    metadata__str_fini(&topic->name);
    free(topic);
}

/* ---- Images. */

struct metadata_image *metadata_image_new(void)
{
    struct metadata_image *image = xcalloc(1, sizeof(*image));

    image->cluster_id = str_null();
    image->controller_id = -1;
    image->controller_epoch = -1;
    atomic_init(&image->_refs, 1);
    return image;
}

struct metadata_image *metadata_image_get(struct metadata_image *image)
{
    ref(&image->_refs);
    return image;
}

void metadata_image_put(struct metadata_image *image)
{
    if (!image || !unref(&image->_refs))
        return;
    for (int32_t i = 0; i < image->broker_count; i++)
        metadata_broker_put(image->brokers[i]);
    for (int32_t i = 0; i < image->topic_count; i++)
        metadata_topic_put(image->topics[i]);
    for (int32_t i = 0; i < image->broker_config_count; i++)
        config_overrides_fini(&image->broker_configs[i].configs);
    free(image->brokers);
    free(image->topics);
    free(image->topics_by_id);
    free(image->broker_configs);
    metadata__str_fini(&image->cluster_id);
    free(image);
}

/* ---- Look-up. */

int32_t metadata__place_of_topic(const struct metadata_image *image, struct str name, bool *found)
{
    int32_t low = 0;
    int32_t high = image->topic_count;

    while (low < high) {
        int32_t middle = low + (high - low) / 2;

        if (str_cmp(image->topics[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < image->topic_count && str_eq(image->topics[low]->name, name);
    return low;
}

int32_t metadata__place_of_id(const struct metadata_image *image, struct uuid id, bool *found)
{
    int32_t low = 0;
    int32_t high = image->topic_count;

    while (low < high) {
        int32_t middle = low + (high - low) / 2;

        if (memcmp(&image->topics_by_id[middle]->id, &id, sizeof(id)) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < image->topic_count && uuid_eq(image->topics_by_id[low]->id, id);
    return low;
}

/* Brokers are few; their arrays are searched from the start. */
int32_t metadata__place_of_broker(const struct metadata_image *image, int32_t id, bool *found)
{
    int32_t i = 0;

    while (i < image->broker_count && image->brokers[i]->id < id)
        i++;
    *found = i < image->broker_count && image->brokers[i]->id == id;
    return i;
}

int32_t metadata__place_of_config(const struct metadata_image *image, int32_t broker_id,
                                  bool *found)
{
    int32_t i = 0;

    while (i < image->broker_config_count && image->broker_configs[i].broker_id < broker_id)
        i++;
    *found = i < image->broker_config_count && image->broker_configs[i].broker_id == broker_id;
    return i;
}

struct metadata_topic *metadata_find_topic(const struct metadata_image *image, struct str name)
{
    bool found;
    int32_t i = metadata__place_of_topic(image, name, &found);

    return found ? image->topics[i] : NULL;
}

struct metadata_topic *metadata_find_topic_id(const struct metadata_image *image, struct uuid id)
{
    bool found;
    int32_t i = metadata__place_of_id(image, id, &found);

    return found && !uuid_is_zero(id) ? image->topics_by_id[i] : NULL;
}

struct metadata_topic *metadata_find_topic_either(const struct metadata_image *image,
                                                  struct str name, struct uuid id)
{
    return name.n > 0 ? metadata_find_topic(image, name) : metadata_find_topic_id(image, id);
}

struct metadata_partition *metadata_find_partition(const struct metadata_topic *topic,
                                                   int32_t index)
{
    return index >= 0 && index < topic->partition_count ? &topic->partitions[index] : NULL;
}

struct metadata_broker *metadata_find_broker(const struct metadata_image *image, int32_t id)
{
    bool found;
    int32_t i = metadata__place_of_broker(image, id, &found);

    return found ? image->brokers[i] : NULL;
}

bool metadata_is_alive(const struct metadata_image *image, int32_t id)
{
    const struct metadata_broker *b = metadata_find_broker(image, id);

    return b && !b->is_fenced;
}

const struct metadata_endpoint *metadata_find_endpoint(const struct metadata_broker *broker,
                                                       struct str listener)
{
    for (int32_t i = 0; i < broker->endpoint_count; i++)
        if (str_eq(broker->endpoints[i].listener, listener))
            return &broker->endpoints[i];
    return NULL;
}

bool metadata_same_brokers(const struct metadata_image *a, const struct metadata_image *b)
{
    if (a->broker_count != b->broker_count)
        return false;
    for (int32_t i = 0; i < a->broker_count; i++)
        if (a->brokers[i] != b->brokers[i])
            return false;
    return true;
}

const struct config_overrides *metadata_broker_overrides(const struct metadata_image *image,
                                                         int32_t broker_id)
{
    static const struct config_overrides none = {NULL, 0};
    bool found;
    int32_t i = metadata__place_of_config(image, broker_id, &found);

    return found ? &image->broker_configs[i].configs : &none;
}

bool metadata_ids_have(const struct metadata_ids *ids, int32_t id)
{
    for (int32_t i = 0; i < ids->count; i++)
        if (ids->ids[i] == id)
            return true;
    return false;
}

int32_t metadata_live_brokers(const struct metadata_image *image, int32_t *brokers)
{
    int32_t n = 0;

    for (int32_t i = 0; i < image->broker_count; i++)
        if (!image->brokers[i]->is_fenced)
            brokers[n++] = image->brokers[i]->id;
    return n;
}

int64_t metadata_partition_total(const struct metadata_image *image)
{
    int64_t total = 0;

    for (int32_t i = 0; i < image->topic_count; i++)
        total += image->topics[i]->partition_count;
    return total;
}
