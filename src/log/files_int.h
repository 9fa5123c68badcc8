/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_LOG_FILES_INT_H
#define SL_LOG_FILES_INT_H

#include "base/buf.h"
#include "base/uuid.h"
#include "io/io.h"

/*
 * The small files of a log directory, as text and back: names, checkpoints, leader epochs,
 * meta.properties, partition.metadata. Pure functions; reading and replacing the files themselves
 * is their callers' (a job, a lane, or before io_run).
 */

/* ---- names.c ----------------------------------------------------------------------------- */

#define OFFSET_NAME_DIGITS 20
#define PARTITION_DIR_BYTES_MAX 255

/* Kafka's rule for the names of topics. */
bool is_topic_name(struct str s);
/* "<topic>-<partition>"; owned by the caller. */
char *partition_dir_name(const char *topic, int32_t partition);
/* False for what is no live partition: other suffixes, foreign directories. *topic is owned. */
bool partition_dir_parse(const char *name, char **topic, int32_t *partition);
/* "<topic>-<partition>.<32 hex>-delete", cut to 255 bytes; owned by the caller. */
char *partition_dir_doomed_name(const char *topic, int32_t partition, struct uuid random);
/* The same with "-stray". */
char *partition_dir_stray_name(const char *topic, int32_t partition, struct uuid random);
bool partition_dir_is_doomed(const char *name);
/* "<dir>/<20 digits><suffix>"; owned by the caller. */
char *offset_path(const char *dir, int64_t offset, const char *suffix);
/* The number before the first dot, when what follows is exactly `suffix`. */
bool offset_name_parse(const char *name, const char *suffix, int64_t *offset);
bool name_ends_with(const char *name, const char *suffix);

/* The next line of a text, without its end; false when there is none. */
bool text_next_line(struct str *rest, struct str *line);
/* The next word; false when there is none. */
bool text_next_word(struct str *rest, struct str *word);

#define TEXT_ENTRIES_VERSION 0

/*
 * What Kafka's checkpoint files have in common: a line with the version, one with the number of
 * entries, one for each entry. Nothing, or a version alone, is an empty file. ERR_BAD_VERSION,
 * ERR_CORRUPT, or what `entry` says of a line.
 */
must_use enum err text_parse_entries(struct str text, enum err (*entry)(void *ctx, struct str line),
                                     void *ctx);

/* ---- checkpoint.c ------------------------------------------------------------------------ */

struct checkpoint_entry {
    char *topic; /* owned */
    int32_t partition;
    int64_t offset;
};

/* One of Kafka's offset checkpoint files; sorted by topic and partition. {0} is empty. */
struct checkpoint {
    struct checkpoint_entry *v;
    size_t n;
    size_t cap;
};

void checkpoint_fini(struct checkpoint *c);
/* The offset, or `fallback`. */
int64_t checkpoint_get(const struct checkpoint *c, const char *topic, int32_t partition,
                       int64_t fallback);
/* True when that changed anything. */
bool checkpoint_put(struct checkpoint *c, const char *topic, int32_t partition, int64_t offset);
bool checkpoint_remove(struct checkpoint *c, const char *topic, int32_t partition);
/* Empty text is an empty checkpoint. ERR_BAD_VERSION, ERR_CORRUPT; then `c` is empty. */
must_use enum err checkpoint_parse(struct str text, struct checkpoint *c);
void checkpoint_format(const struct checkpoint *c, struct buf *out);

/* ---- epochs.c ---------------------------------------------------------------------------- */

struct epoch_entry {
    int32_t epoch;
    int64_t start; /* the first offset written under it */
};

/* The leader epochs of one log: strictly ascending in both fields. {0} is empty. */
struct epochs {
    struct epoch_entry *v;
    size_t n;
    size_t cap;
};

void epochs_fini(struct epochs *e);
/* -1 when there is none. */
int32_t epochs_latest(const struct epochs *e);
/* An epoch begins at `start`; entries at the end with as high an epoch or start go. False when
 * nothing changed. */
bool epochs_assign(struct epochs *e, int32_t epoch, int64_t start);
/* The largest epoch <= `epoch` and where it ends, by the rules of KIP-101 and KIP-320; -1, -1. */
void epochs_end(const struct epochs *e, int32_t epoch, int64_t log_end, int32_t *found,
                int64_t *end);
/* The epoch that holds `offset`; -1. */
int32_t epochs_at(const struct epochs *e, int64_t offset);
/* The log ends at `offset` now: epochs that begin there or later go. */
bool epochs_truncate_end(struct epochs *e, int64_t offset);
/* The log starts at `offset` now: the epoch that holds it begins there, earlier ones go. */
bool epochs_truncate_start(struct epochs *e, int64_t offset);
must_use enum err epochs_parse(struct str text, struct epochs *e);
void epochs_format(const struct epochs *e, struct buf *out);

/* ---- meta.c ------------------------------------------------------------------------------ */

/* meta.properties, version 0 and 1. Strings are owned. */
struct meta_properties {
    char *cluster_id;         /* NULL: not there */
    int32_t node_id;          /* -1: not there */
    struct uuid directory_id; /* zero: not there */
    bool is_version_0;        /* it was read from such a file, and is written as one */
};

void meta_properties_fini(struct meta_properties *m);
must_use enum err meta_properties_parse(struct str text, struct meta_properties *m);
void meta_properties_format(const struct meta_properties *m, struct buf *out);

must_use enum err partition_metadata_parse(struct str text, struct uuid *topic_id);
void partition_metadata_format(struct uuid topic_id, struct buf *out);
/* The content of .kafka_cleanshutdown; only its existence counts. */
#define CLEAN_MARKER_TEXT "{\"version\":0,\"brokerEpoch\":-1}"

#endif
