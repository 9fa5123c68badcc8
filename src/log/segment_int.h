/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_LOG_SEGMENT_INT_H
#define SL_LOG_SEGMENT_INT_H

#include "io/io.h"
#include "log/log.h"
#include "record/record.h"

/*
 * Segment files and their indexes: how they grow, and how a batch is found in them. The functions
 * that read work on a loop (LOG_CACHED) and in a job (LOG_BLOCKING) alike.
 */

#define LOG_SUFFIX ".log"
#define INDEX_SUFFIX ".index"
#define TIMEINDEX_SUFFIX ".timeindex"
#define TXNINDEX_SUFFIX ".txnindex"
#define SNAPSHOT_SUFFIX ".snapshot"
#define PRODUCERS_SUFFIX ".producers" /* ours: Kafka passes over it */
#define CUT_SUFFIX ".cut"             /* ours: bytes that recovery cut off */

#define INDEX_ENTRY_BYTES 8
#define TIMEINDEX_ENTRY_BYTES 12
#define TXNINDEX_ENTRY_BYTES 34

/* The open files of one segment. Reference-counted: lists of segments, readers in jobs. */
struct segment {
    _Atomic int32_t refs;
    int64_t base_offset;
    struct io_file *log;
    struct io_file *index;
    struct io_file *timeindex;
    struct io_file *txnindex;        /* NULL before the first abort; made and written by the lane */
    struct io_file *shared_txnindex; /* the same, once the owner knows: for all others */
};

/* One reference, no files yet. Any thread, as all of these. */
struct segment *segment_new(int64_t base_offset);
struct segment *segment_ref(struct segment *s);
void segment_unref(struct segment *s);
/* Makes empty files, in the place of any left over; the directory is not synced. Blocking. */
must_use enum err segment_create_files(struct segment *s, struct io *io, const char *dir);
/* Opens what is there; *index_missing: the offset index was not and is empty now. Blocking. */
must_use enum err segment_open_files(struct segment *s, struct io *io, const char *dir,
                                     bool *index_missing);
/* Not shared yet. Blocking. */
must_use enum err segment_create_txnindex(struct segment *s, struct io *io, const char *dir);
/* All files on the device. Blocking. */
must_use enum err segment_sync(struct segment *s);

/* How far the files of a segment reach, and what decides about its next index entry. */
struct segment_tail {
    int64_t size;        /* bytes of batches */
    int64_t index_count; /* entries */
    int64_t time_count;
    int64_t txn_count;
    int64_t unindexed_bytes;      /* since the last index entry */
    int64_t time_last;            /* timestamp of the last time index entry; -1 */
    int64_t max_timestamp;        /* of all batches; -1 */
    int64_t max_timestamp_offset; /* last offset of the earliest batch that has it */
    int64_t first_timestamp;      /* max timestamp of the first batch; -1 */
};

void segment_tail_init(struct segment_tail *t);

/* The index entries that go with one batch. */
struct index_entries {
    bool has_index;
    bool has_time;
    uint8_t index[INDEX_ENTRY_BYTES];
    uint8_t time[TIMEINDEX_ENTRY_BYTES];
};

/* Adds a batch of `bytes` bytes to the tail of the segment with this base. */
struct batch_extent {
    int64_t last_offset;
    int64_t max_timestamp;
    int32_t bytes;
};

void segment_tail_add(struct segment_tail *t, int64_t base_offset, const struct batch_extent *b,
                      int32_t index_interval_bytes, struct index_entries *out);
/* The last entry of the time index when no more batches come; false when there is none to add. */
bool segment_tail_finish(struct segment_tail *t, int64_t base_offset,
                         uint8_t entry[static TIMEINDEX_ENTRY_BYTES]);

/* ---- Reading ----------------------------------------------------------------------------- */

/* Reads exactly n bytes: ERR_EOF when the file ends before, ERR_AGAIN on a loop. */
must_use enum err read_fully(struct io_file *f, void *p, size_t n, int64_t pos, enum log_wait wait);

/* Walks batch headers in [pos, end) of a file. */
struct header_walk {
    struct batch_header header; /* the current batch */
    int64_t pos;                /* where it starts */
    int32_t total;              /* its bytes */
    /* private */
    struct io_file *_file;
    int64_t _next;
    int64_t _end;
    enum log_wait _wait;
    int64_t _window_pos;
    int64_t _window_n;
    uint8_t _window[4096];
};

void header_walk_init(struct header_walk *w, struct io_file *f, int64_t pos, int64_t end,
                      enum log_wait wait);
/* ERR_EOF at the end or before a batch that crosses it; ERR_CORRUPT_MESSAGE; ERR_AGAIN. */
must_use enum err header_walk_next(struct header_walk *w);

/* Where a part of a segment ends for its readers. */
struct segment_extent {
    struct segment *segment;
    int64_t size;
    int64_t index_count;
    int64_t time_count;
};

/* The position of the batch with the largest last offset <= `offset` that the index knows; 0. */
must_use enum err index_floor(const struct segment_extent *s, int64_t offset, enum log_wait wait,
                              int64_t *pos);
/* The largest position <= `most` that the index knows, of some batch; 0. */
must_use enum err index_floor_position(const struct segment_extent *s, int64_t most,
                                       enum log_wait wait, int64_t *pos);
/* The last offset of the index entry with the largest timestamp <= t; the base offset if none. */
must_use enum err timeindex_floor(const struct segment_extent *s, int64_t t, enum log_wait wait,
                                  int64_t *offset);
/* Stands w on the first batch whose last offset is >= `offset`; ERR_EOF when there is none. */
must_use enum err segment_find(const struct segment_extent *s, int64_t offset, enum log_wait wait,
                               struct header_walk *w);

/* ---- Transaction index: txnindex.c ------------------------------------------------------- */

struct txn_entry {
    int64_t producer_id;
    int64_t first_offset;
    int64_t last_offset;        /* of the abort marker */
    int64_t last_stable_offset; /* after the abort */
};

void txn_entry_put(uint8_t p[static TXNINDEX_ENTRY_BYTES], const struct txn_entry *e);
bool txn_entry_get(const uint8_t p[static TXNINDEX_ENTRY_BYTES], struct txn_entry *e);

#endif
