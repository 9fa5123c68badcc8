/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_LOG_CLEAN_INT_H
#define SL_LOG_CLEAN_INT_H

#include "log/log_int.h"

/*
 * Compaction, from its parts to the job that copies. The owner's side is in clean.c; all else here
 * runs in a job, in slices, on files and memory of its own.
 */

/* ---- offset_map.c: the newest offset of each key ------------------------------------------- */

/* Keys by a keyed 128-bit hash, 24 bytes each; one thread at a time. */
struct offset_map {
    struct offset_slot *slots;
    size_t slot_count;
    size_t used;
    size_t used_max;
    uint64_t secret[2];
};

/* Room for `keys_max` keys, or for as many as `bytes_max` allows (at least a few). */
void offset_map_init(struct offset_map *m, int64_t bytes_max, int64_t keys_max,
                     const uint64_t secret[static 2]);
void offset_map_fini(struct offset_map *m);
/* False when the key is new and the map is full. */
must_use bool offset_map_put(struct offset_map *m, struct bytes key, int64_t offset);
/* -1: not there. */
int64_t offset_map_get(const struct offset_map *m, struct bytes key);
/* SipHash-2-4 with 128 bits of output. */
void keyed_hash(const uint64_t secret[static 2], struct bytes in, uint64_t out[static 2]);

/* ---- clean_txns.c: which transactions have what left ---------------------------------------- */

/* Batches are shown to it in the order of the log, from its start. {0} is empty. */
struct clean_txns {
    struct txn_entry *aborted; /* by producer, then first offset */
    size_t aborted_count;
    size_t aborted_cap;
    struct txn_seen *seen; /* producers of whose present transaction data was met */
};

/* Takes all aborts of the snapshot's segments. Blocking. */
must_use enum err clean_txns_load(struct clean_txns *t, const struct view_record *r);
void clean_txns_fini(struct clean_txns *t);
/* The aborted transaction that a batch of this producer at `offset` belongs to; NULL. */
const struct txn_entry *clean_txns_abort_of(const struct clean_txns *t, int64_t producer_id,
                                            int64_t offset);
/* A transactional batch of data, kept or not. */
void clean_txns_see_data(struct clean_txns *t, int64_t producer_id);
/* A marker: whether data of its transaction was met. */
bool clean_txns_see_marker(struct clean_txns *t, int64_t producer_id);

/* ---- clean_output.c: the segment that is written --------------------------------------------- */

#define CLEANED_SUFFIX ".cleaned"
#define SWAP_SUFFIX ".swap"
#define DELETED_SUFFIX ".deleted"

/* The file suffixes of a segment, the log first. */
#define SEGMENT_FILES 4
extern const char *const segment_suffixes[SEGMENT_FILES];

/* "<dir>/<base><suffix><more>"; owned by the caller. */
char *segment_file_path(const char *dir, int64_t base, const char *suffix, const char *more);

struct clean_output {
    struct segment *segment; /* NULL: none is being written */
    struct segment_tail tail;
    int64_t batch_timestamp; /* the largest of all batches, emptied ones too; -1 */
    struct buf pending;      /* batches that are not in the file yet */
    struct buf index;
    struct buf time;
    struct buf txn;
};

/* All blocking. After an error only discard. */
must_use enum err clean_output_open(struct clean_output *o, struct io *io, const char *dir,
                                    int64_t base);
must_use enum err clean_output_add(struct clean_output *o, struct bytes batch,
                                   const struct batch_header *h, int32_t index_interval_bytes);
void clean_output_add_abort(struct clean_output *o, const struct txn_entry *e);
/* Everything on the device; the span takes the segment. */
must_use enum err clean_output_finish(struct clean_output *o, struct io *io, const char *dir,
                                      int64_t mtime_ms, struct segment_span *span);
/* Removes the files, if any are there. */
void clean_discard(struct io *io, const char *dir, int64_t base);
void clean_output_fini(struct clean_output *o);

/* ---- clean_copy.c: reading, mapping, copying --------------------------------------------------
 */

/* What a producer's state says of its last batch. */
struct clean_producer {
    int64_t producer_id;
    int16_t epoch;
    int64_t last_offset; /* of data; -1 none */
};

enum clean_phase {
    CLEAN_MAP = 0,   /* reads keys of what is dirty */
    CLEAN_COPY = 1,  /* writes a group anew */
    CLEAN_GROUP = 2, /* a group is written: the owner swaps it in, then calls clean_next_group */
    CLEAN_END = 3,   /* all is done up to map_upto */
};

struct cleaner {
    /* Set by the owner. */
    struct io *io;
    const char *path;
    struct topic_config config;
    int64_t now_ms;
    int64_t map_bytes;
    uint64_t secret[2];
    struct log_snapshot *snapshot; /* owned */
    size_t source_count;           /* segments from the snapshot's first that may be cleaned */
    int64_t dirty_from;
    int64_t upto;                     /* where they end */
    struct clean_producer *producers; /* by id; owned */
    size_t producer_count;

    /* Results. */
    enum clean_phase phase;
    int64_t map_upto;   /* what was cleaned ends here */
    size_t group_first; /* of the snapshot's segments */
    size_t group_end;
    struct segment_span span; /* the group's new segment; its reference is the owner's to take */
    int64_t records_dropped;
    int64_t keyless_dropped;
    int64_t bytes_moved; /* read and written, ever */

    /* private */
    struct view_record _view;
    struct offset_map _map;
    struct clean_txns _txns;
    struct clean_output _out;
    struct record_iter _iter;
    struct buf _batch; /* bytes of the source around _pos */
    int64_t _batch_pos;
    size_t _at;           /* the source being read */
    int64_t _pos;         /* the next batch in it */
    int64_t _next_offset; /* no batch may begin below */
    int64_t _remaining;   /* bytes of the group's sources behind _pos */
    size_t _copy_count;   /* sources that begin below map_upto */
    bool _group_changed;
    bool _is_started;
};

void cleaner_init(struct cleaner *c);
/* Works until about so many bytes are moved or the phase is GROUP or END. Blocking: a job.
 * ERR_CORRUPT_MESSAGE: a source is damaged. After an error: cleaner_fini. */
must_use enum err cleaner_step(struct cleaner *c, int64_t bytes);
/* Where source i begins. */
int64_t cleaner_base_of(const struct cleaner *c, size_t i);
/* After CLEAN_GROUP. */
void cleaner_next_group(struct cleaner *c);
/* Removes what was written and not taken. Blocking: a job. */
void cleaner_discard(struct cleaner *c);
void cleaner_fini(struct cleaner *c);

#endif
