/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CONTROLLER_CONTROLLER_INT_H
#define SL_CONTROLLER_CONTROLLER_INT_H

#include "controller/controller.h"

/* Shared by the files of this module. */

/* The first live broker of `order` that is in `among` (NULL: everybody is); -1: none. */
int32_t controller__first_alive(const struct metadata_image *image,
                                const struct metadata_ids *order, const struct metadata_ids *among);

/* Partitions that have been named in a request; in an arena, which outlives it. */
struct controller__named {
    const struct metadata_image *image;
    int32_t *first; /* by topic: where its partitions are in is_named */
    bool *is_named;
};

void controller__named_init(struct controller__named *n, const struct metadata_image *image,
                            struct arena *arena);
/* Whether this partition, of a topic of the image, is named for the first time. */
bool controller__name_it(struct controller__named *n, const struct metadata_topic *topic,
                         int32_t index);

#endif
