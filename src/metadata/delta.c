/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deltas, and how an image becomes the next one.
 *
 * A delta is a list of changes that owns what it carries. Applying it starts from a copy of the
 * image that shares every topic and broker by reference: a thousand topics that are created one
 * by one copy arrays of pointers, never topics. A change inside a topic copies that topic first;
 * what only the new image refers to (one reference, and nobody else has seen it) is changed in
 * place, so that many changes of one topic in one delta copy it once.
 *
 * Changes that name what does not exist are skipped: UpdateMetadata of a real controller may well
 * speak of a topic that was just removed.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "metadata/metadata_int.h"

/* ---- Building. */

static struct metadata_change *add(struct metadata_delta *d, enum metadata_change_kind kind)
{
    if (d->count == d->capacity) {
        d->capacity = MAX(4, d->capacity * 2);
        d->changes = xreallocarray(d->changes, (size_t)d->capacity, sizeof(*d->changes));
    }
    d->changes[d->count] = (struct metadata_change){.kind = kind, .name = str_null()};
    return &d->changes[d->count++];
}

void metadata_delta_fini(struct metadata_delta *d)
{
    for (int32_t i = 0; i < d->count; i++) {
        struct metadata_change *change = &d->changes[i];

        metadata__str_fini(&change->name);
        metadata_broker_put(change->broker);
        metadata_topic_put(change->topic);
        metadata__partition_fini(&change->partition);
        config_overrides_fini(&change->configs);
    }
    free(d->changes);
    *d = (struct metadata_delta){NULL, 0, 0};
}

void metadata_delta_set_cluster(struct metadata_delta *d, struct str cluster_id)
{
    add(d, METADATA_CLUSTER)->name = metadata__str_copy(cluster_id);
}

void metadata_delta_set_controller(struct metadata_delta *d, int32_t id, int32_t epoch)
{
    struct metadata_change *change = add(d, METADATA_CONTROLLER);

    change->id = id;
    change->epoch = epoch;
}

void metadata_delta_put_broker(struct metadata_delta *d, struct metadata_broker *takes)
{
    struct metadata_change *change = add(d, METADATA_BROKER);

    change->id = takes->id;
    change->broker = takes;
}

void metadata_delta_remove_broker(struct metadata_delta *d, int32_t id)
{
    add(d, METADATA_BROKER_REMOVED)->id = id;
}

void metadata_delta_put_topic(struct metadata_delta *d, struct metadata_topic *takes)
{
    struct metadata_change *change = add(d, METADATA_TOPIC);

    change->name = metadata__str_copy(takes->name);
    change->topic = takes;
}

void metadata_delta_remove_topic(struct metadata_delta *d, struct str name)
{
    add(d, METADATA_TOPIC_REMOVED)->name = metadata__str_copy(name);
}

void metadata_delta_set_partition(struct metadata_delta *d, struct str topic, int32_t index,
                                  const struct metadata_partition *copies)
{
    struct metadata_change *change = add(d, METADATA_PARTITION);

    assert(index >= 0);
    change->name = metadata__str_copy(topic);
    change->index = index;
    metadata__partition_copy(&change->partition, copies);
}

void metadata_delta_set_topic_configs(struct metadata_delta *d, struct str topic,
                                      const struct config_overrides *copies)
{
    struct metadata_change *change = add(d, METADATA_TOPIC_CONFIG);

    change->name = metadata__str_copy(topic);
    config_overrides_copy(&change->configs, copies);
}

void metadata_delta_set_broker_configs(struct metadata_delta *d, int32_t broker_id,
                                       const struct config_overrides *copies)
{
    struct metadata_change *change = add(d, METADATA_BROKER_CONFIG);

    assert(broker_id >= METADATA_ALL_BROKERS);
    change->id = broker_id;
    config_overrides_copy(&change->configs, copies);
}

/* ---- Arrays. */

/* The array with room for one element at place i. */
static void *open_gap(void *array, int32_t i, int32_t count, size_t size)
{
    char *p = xreallocarray(array, (size_t)count + 1, size);

    memmove(p + ((size_t)i + 1) * size, p + (size_t)i * size, (size_t)(count - i) * size);
    return p;
}

static void close_gap(void *array, int32_t i, int32_t count, size_t size)
{
    char *p = array;

    memmove(p + (size_t)i * size, p + ((size_t)i + 1) * size, (size_t)(count - i - 1) * size);
}

/* ---- Topics. */

/* Where topics_by_id holds this very topic: topics of an old cluster may all have the id zero. */
static int32_t place_by_id(const struct metadata_image *image, const struct metadata_topic *topic)
{
    bool found;
    int32_t i = metadata__place_of_id(image, topic->id, &found);

    while (i < image->topic_count && image->topics_by_id[i] != topic)
        i++;
    assert(i < image->topic_count);
    return i;
}

static void remove_topic(struct metadata_image *image, struct str name)
{
    bool found;
    int32_t i = metadata__place_of_topic(image, name, &found);
    struct metadata_topic *topic;

    if (!found)
        return;
    topic = image->topics[i];
    close_gap(image->topics, i, image->topic_count, sizeof(*image->topics));
    close_gap(image->topics_by_id, place_by_id(image, topic), image->topic_count,
              sizeof(*image->topics_by_id));
    image->topic_count--;
    metadata_topic_put(topic);
}

/* Takes the reference. The name must not be there. */
static void insert_topic(struct metadata_image *image, struct metadata_topic *topic)
{
    bool name_found;
    bool id_found;
    int32_t i = metadata__place_of_topic(image, topic->name, &name_found);
    int32_t j = metadata__place_of_id(image, topic->id, &id_found);

    assert(!name_found);
    assert(IMPLIES(id_found, uuid_is_zero(topic->id)));
    image->topics = open_gap(image->topics, i, image->topic_count, sizeof(*image->topics));
    image->topics[i] = topic;
    image->topics_by_id =
        open_gap(image->topics_by_id, j, image->topic_count, sizeof(*image->topics_by_id));
    image->topics_by_id[j] = topic;
    image->topic_count++;
}

static void put_topic(struct metadata_image *image, struct metadata_topic *topic)
{
    struct metadata_topic *same_id;

    metadata_topic_get(topic);
    remove_topic(image, topic->name);
    same_id = metadata_find_topic_id(image, topic->id);
    if (same_id)
        remove_topic(image, same_id->name);
    insert_topic(image, topic);
}

/* The topic, as one that may be changed; NULL when it does not exist. */
static struct metadata_topic *own_topic(struct metadata_image *image, struct str name)
{
    bool found;
    int32_t i = metadata__place_of_topic(image, name, &found);
    struct metadata_topic *shared;

    if (!found)
        return NULL;
    shared = image->topics[i];
    if (atomic_load_explicit(&shared->_refs, memory_order_acquire) == 1)
        return shared;
    image->topics[i] = metadata_topic_copy(shared);
    image->topics_by_id[place_by_id(image, shared)] = image->topics[i];
    metadata_topic_put(shared);
    return image->topics[i];
}

/* ---- Brokers. */

static void remove_broker(struct metadata_image *image, int32_t id)
{
    bool found;
    int32_t i = metadata__place_of_broker(image, id, &found);

    if (!found)
        return;
    metadata_broker_put(image->brokers[i]);
    close_gap(image->brokers, i, image->broker_count, sizeof(*image->brokers));
    image->broker_count--;
}

static void put_broker(struct metadata_image *image, struct metadata_broker *broker)
{
    bool found;
    int32_t i;

    metadata_broker_get(broker);
    remove_broker(image, broker->id);
    i = metadata__place_of_broker(image, broker->id, &found);
    assert(!found);
    image->brokers = open_gap(image->brokers, i, image->broker_count, sizeof(*image->brokers));
    image->brokers[i] = broker;
    image->broker_count++;
}

/* Empty overrides stay as an entry: nothing is simpler, and nobody can tell. */
static void set_broker_configs(struct metadata_image *image, int32_t id,
                               const struct config_overrides *o)
{
    bool found;
    int32_t i = metadata__place_of_config(image, id, &found);

    if (found) {
        config_overrides_fini(&image->broker_configs[i].configs);
    } else {
        image->broker_configs = open_gap(image->broker_configs, i, image->broker_config_count,
                                         sizeof(*image->broker_configs));
        image->broker_config_count++;
    }
    image->broker_configs[i].broker_id = id;
    config_overrides_copy(&image->broker_configs[i].configs, o);
}

/* ---- Applying. */

static struct metadata_image *image_copy(const struct metadata_image *from)
{
    struct metadata_image *to = metadata_image_new();
    size_t topic_bytes = (size_t)from->topic_count * sizeof(*from->topics);

    to->cluster_id = metadata__str_copy(from->cluster_id);
    to->controller_id = from->controller_id;
    to->controller_epoch = from->controller_epoch;
    to->broker_count = from->broker_count;
    to->brokers = xmemdup(from->brokers, (size_t)from->broker_count * sizeof(*from->brokers));
    for (int32_t i = 0; i < to->broker_count; i++)
        metadata_broker_get(to->brokers[i]);
    to->topic_count = from->topic_count;
    to->topics = xmemdup(from->topics, topic_bytes);
    to->topics_by_id = xmemdup(from->topics_by_id, topic_bytes);
    for (int32_t i = 0; i < to->topic_count; i++)
        metadata_topic_get(to->topics[i]);
    for (int32_t i = 0; i < from->broker_config_count; i++)
        set_broker_configs(to, from->broker_configs[i].broker_id, &from->broker_configs[i].configs);
    return to;
}

static void set_cluster(struct metadata_image *image, struct str cluster_id)
{
    metadata__str_fini(&image->cluster_id);
    image->cluster_id = metadata__str_copy(cluster_id);
}

static void change_topic(struct metadata_image *image, const struct metadata_change *change)
{
    struct metadata_topic *topic = own_topic(image, change->name);

    if (topic && change->kind == METADATA_PARTITION)
        metadata_topic_set_partition(topic, change->index, &change->partition);
    if (topic && change->kind == METADATA_TOPIC_CONFIG)
        metadata_topic_set_configs(topic, &change->configs);
}

static void apply_change(struct metadata_image *image, const struct metadata_change *change)
{
    switch (change->kind) {
    case METADATA_CLUSTER: set_cluster(image, change->name); return;
    case METADATA_CONTROLLER:
        image->controller_id = change->id;
        image->controller_epoch = change->epoch;
        return;
    case METADATA_BROKER: put_broker(image, change->broker); return;
    case METADATA_BROKER_REMOVED: remove_broker(image, change->id); return;
    case METADATA_TOPIC: put_topic(image, change->topic); return;
    case METADATA_TOPIC_REMOVED: remove_topic(image, change->name); return;
    case METADATA_PARTITION:
    case METADATA_TOPIC_CONFIG: change_topic(image, change); return;
    case METADATA_BROKER_CONFIG: set_broker_configs(image, change->id, &change->configs); return;
    }
    UNREACHABLE();
}

struct metadata_image *metadata_apply(const struct metadata_image *image,
                                      const struct metadata_delta *d)
{
    struct metadata_image *next = image_copy(image);

    for (int32_t i = 0; i < d->count; i++)
        apply_change(next, &d->changes[i]);
    next->version = image->version + 1;
    return next;
}
