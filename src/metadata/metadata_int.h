/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_METADATA_METADATA_INT_H
#define SL_METADATA_METADATA_INT_H

#include "metadata/metadata.h"

/* Shared by the files of this module. */

/* A copy that owns its bytes; null stays null. */
struct str metadata__str_copy(struct str s);
void metadata__str_fini(struct str *s);

void metadata__partition_copy(struct metadata_partition *to, const struct metadata_partition *from);
void metadata__partition_fini(struct metadata_partition *p);

/*
 * The first place in a sorted array whose element is not smaller, and whether it is equal: how
 * every look-up and every insertion finds its place.
 */
int32_t metadata__place_of_topic(const struct metadata_image *image, struct str name, bool *found);
int32_t metadata__place_of_id(const struct metadata_image *image, struct uuid id, bool *found);
int32_t metadata__place_of_broker(const struct metadata_image *image, int32_t id, bool *found);
int32_t metadata__place_of_config(const struct metadata_image *image, int32_t broker_id,
                                  bool *found);

#endif
