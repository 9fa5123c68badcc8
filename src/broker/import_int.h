/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_IMPORT_INT_H
#define SL_BROKER_IMPORT_INT_H

#include "config/config.h"

/*
 * Configurations of topics as another broker's tools printed them, for topics whose directories are
 * adopted. Plain data; any thread.
 */
struct import_topic {
    char *name;
    struct config_overrides configs; /* what was not a default there; not checked yet */
};

struct import {
    struct import_topic *v; /* each topic once */
    int32_t count;
};

/*
 * Reads any of: the JSON of `strandline configs describe --json`, what kafka-configs.sh --describe
 * prints for topics (with --all or without), what kafka-topics.sh --describe prints. Other lines
 * between them are passed over. ERR_INVALID_CONFIG: nothing of that is in it; `message` (owned by
 * the caller) then says so with the file's name.
 */
must_use enum err import_parse(struct str text, const char *file, struct import *out,
                               char **message);
void import_fini(struct import *im);
/* NULL: the file says nothing of this topic. */
const struct config_overrides *import_find(const struct import *im, struct str topic);

#endif
