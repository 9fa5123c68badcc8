/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several plans ask: who is alive, and whether a request has named a partition before. Two
 * changes of one partition in one plan would both be planned from the state before, and the second
 * could not be stored.
 */
#include "base/assert.h"
#include "base/attr.h"
#include "controller/controller_int.h"

int32_t controller__first_alive(const struct metadata_image *image,
                                const struct metadata_ids *order, const struct metadata_ids *among)
{
    for (int32_t i = 0; i < order->count; i++)
        if ((!among || metadata_ids_have(among, order->ids[i])) &&
            metadata_is_alive(image, order->ids[i]))
            return order->ids[i];
    return -1;
}

void controller__named_init(struct controller__named *n, const struct metadata_image *image,
                            struct arena *arena)
{
    int32_t total = 0;

    n->image = image;
    n->first = arena_calloc(arena, (size_t)image->topic_count + 1, sizeof(*n->first));
    for (int32_t t = 0; t < image->topic_count; t++) {
        n->first[t] = total;
        total += image->topics[t]->partition_count;
    }
    n->is_named = arena_calloc(arena, (size_t)total + 1, sizeof(*n->is_named));
}

/* The image's topics are in the order of their names. */
static int32_t place_of(const struct metadata_image *image, const struct metadata_topic *topic)
{
    int32_t low = 0;
    int32_t high = image->topic_count - 1;

    while (low < high) {
        int32_t middle = low + (high - low) / 2;

        if (str_cmp(image->topics[middle]->name, topic->name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    assert(image->topics[low] == topic);
    return low;
}

bool controller__name_it(struct controller__named *n, const struct metadata_topic *topic,
                         int32_t index)
{
    bool *is_named = &n->is_named[n->first[place_of(n->image, topic)] + index];
    bool was_named = *is_named;

    *is_named = true;
    return !was_named;
}
