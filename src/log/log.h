/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_LOG_LOG_H
#define SL_LOG_LOG_H

#include "base/uuid.h"
#include "config/config.h"
#include "io/io.h"
#include "journal/journal.h"
#include "record/record.h"

/*
 * One partition's log: segments, indexes, leader epochs, producers, recovery, retention. Files and
 * directories are Apache Kafka's. A log belongs to one shard (its owner): all functions that take
 * `struct log *` run there, except where stated. What other shards may read is its `struct
 * log_view`.
 *
 * Offsets of a log, always in this order:
 *   log start <= last stable <= high watermark <= acknowledgeable <= end
 * `end` (LEO) is the next offset to assign and advances when a batch is accepted; `acknowledgeable`
 * follows when the batch is durable (or written, for a topic with flush.on.ack=false).
 */

struct log;
struct log_dir;

/* ---- log directories -------------------------------------------------------------------- */

struct log_dir_identity {
    struct str cluster_id;     /* null: not known yet, the directory's is taken */
    int32_t node_id;           /* -1: likewise */
    struct str cluster_id_new; /* what a directory gets that has none */
    int32_t node_id_new;       /* likewise */
};

struct log_partition_name {
    char *topic;
    int32_t partition;
    struct uuid topic_id; /* zero when the directory has none */
};

struct log_dir_found {
    struct log_partition_name *v; /* live partition directories, sorted */
    size_t n;
    bool clean;  /* stopped cleanly last time */
    bool is_new; /* the directory was made or was empty */
    char *cluster_id;
    int32_t node_id;
};

/*
 * Opens (or makes) a log directory: lock, identity (meta.properties), clean-stop marker (removed
 * before anything else), checkpoints; finishes deletions that a crash interrupted. Blocking: before
 * io_run or in a job. On failure `message` (owned by the caller) says what, where and what to do:
 * ERR_LOCKED another process has it, ERR_ACCESS, ERR_CORRUPT, ERR_BAD_VERSION, ERR_INVALID_ARG
 * (identity differs).
 */
must_use enum err log_dir_open(struct io *io, const char *path,
                               const struct log_dir_identity *identity, struct log_dir **out,
                               struct log_dir_found *found, char **message);
void log_dir_found_free(struct log_dir_found *found);
/*
 * Writes all checkpoints and, if every log of the directory was closed cleanly (log_close), the
 * clean-stop marker; ends its lanes. Blocking, after io_run; in a job only if log_dir_start was
 * never called, because that loop may be using the directory.
 */
void log_dir_close(struct log_dir *dir);
const char *log_dir_path(const struct log_dir *dir);
struct uuid log_dir_id(const struct log_dir *dir);
/* Any thread. */
bool log_dir_has_failed(const struct log_dir *dir);
bool log_dir_has_space(const struct log_dir *dir);
/* Any thread: of its journal. */
void log_dir_stats(const struct log_dir *dir, struct journal_stats *out,
                   struct latency_figures *sync);
/*
 * Before a directory that belongs to no topic is set aside: forgets what the checkpoints say of it,
 * or it would be believed of the next partition of that name. `done` on the loop of log_dir_start,
 * when that is durable.
 */
void log_dir_forget(struct log_dir *dir, const char *topic, int32_t partition,
                    void (*done)(void *ctx, enum err err), void *ctx);
/* Renames a partition's directory to "-stray": it belongs to no topic. Blocking: a job. */
must_use enum err log_dir_set_aside(struct log_dir *dir, const char *topic, int32_t partition);
/* Starts the directory's periodic work (recovery points, high watermark and log start checkpoints,
 * free space) on its checkpoint lane, ticked from this loop. */
void log_dir_start(struct log_dir *dir, struct io_loop *loop);

/* ---- loading and making ----------------------------------------------------------------- */

struct log_loaded; /* the result of a load, before a shard owns it */

struct log_load_args {
    struct io *io;
    struct log_dir *dir;
    const char *topic;
    int32_t partition;
    struct uuid topic_id; /* log_create: written to partition.metadata before anything else */
    struct topic_config config;
    int64_t now_ms;     /* wall clock */
    struct io_job *job; /* its progress counts bytes scanned, its cancel is heeded; may be NULL */
};

struct log_load_report {
    int64_t bytes_scanned;
    int64_t bytes_cut; /* unsynced tail that was kept aside as <base>.<position>.cut */
    int64_t segments;
    int32_t latest_epoch;    /* of the log's history, -1 when it has none */
    int64_t producer_id_max; /* the largest that the log remembers, -1 when none */
    char *damage;            /* file and position of damage below the recovery point, or NULL */
};

/* Recovers an existing partition directory. Blocking: a job. ERR_CANCELLED: the job was; the next
 * load begins where this one did. */
must_use enum err log_load(const struct log_load_args *args, struct log_loaded **out,
                           struct log_load_report *report);
/* Makes a new partition directory with one empty segment, everything synced. Blocking: a job.
 * ERR_NO_SPACE, ERR_IO: nothing of it is left. ERR_EXISTS: there is one, or what was made of it
 * cannot be taken away. */
must_use enum err log_create(const struct log_load_args *args, struct log_loaded **out);
void log_loaded_free(struct log_loaded *loaded);

/* What the owner is told. Both run on the owner's loop, never inside a call into the log. */
struct log_events {
    /* The acknowledgeable offset has advanced. */
    void (*advanced)(void *ctx);
    /* Appends from `from_offset` on did not happen: ERR_NO_SPACE (the log has taken back their
     * offsets and goes on), or ERR_IO/ERR_FAILED_DIR (nothing works any more but reads of what
     * was acknowledged). */
    void (*failed)(void *ctx, enum err err, int64_t from_offset);
};

/* Makes the calling shard the owner. Takes `loaded`. */
struct log *log_own(struct log_loaded *loaded, struct io_loop *loop,
                    const struct log_events *events, void *ctx);

/*
 * Closes cleanly: waits for what was submitted, trims indexes, writes a producer snapshot, syncs;
 * then `done` on the owner's loop and the log is gone. No other call after this one.
 */
void log_close(struct log *log, void (*done)(void *ctx, enum err err), void *ctx);
/*
 * Deletes: refuses at once, and behind everything submitted renames the directory to "-delete";
 * `done` then; files go after file.delete.delay.ms in a job. The log is gone after `done`.
 */
void log_delete(struct log *log, void (*done)(void *ctx, enum err err), void *ctx);

/* ---- appending -------------------------------------------------------------------------- */

enum log_origin {
    LOG_ORIGIN_CLIENT = 0,
    LOG_ORIGIN_COORDINATOR = 1,
    LOG_ORIGIN_REPLICATION = 2,
};

struct log_append {
    struct io_buf *buf; /* holds the batch; the log takes a reference of its own until the
                           bytes are written. The batch is immutable from here on */
    uint8_t *batch;     /* one validated batch of n bytes; stamped with offset and epoch */
    int32_t n;
    int64_t max_timestamp; /* from validation */
    enum log_origin origin;
    int32_t leader_epoch;
    int64_t now_ms;
    /* results */
    int64_t base_offset;
    int64_t last_offset;
    bool is_duplicate; /* of a batch that the log has or is writing: nothing was appended */
};

/*
 * Assigns offsets, stamps the batch, checks the producer's sequence (45, 47, 48, 52), rolls if
 * needed and submits the write. ERR_NONE: wait until log_ack_offset() > last_offset. Other errors:
 * nothing has changed; ERR_RECORD_LIST_TOO_LARGE (larger than segment.bytes), ERR_NO_SPACE,
 * ERR_FAILED_DIR, ERR_KAFKA_STORAGE_ERROR (the log is damaged), ERR_AGAIN (it is being truncated),
 * ERR_UNKNOWN_TOPIC_OR_PARTITION (it is being closed or deleted). For replication the batch keeps
 * its own offsets and epoch; ERR_OFFSET_OUT_OF_RANGE when it begins below the end,
 * ERR_FENCED_LEADER_EPOCH when its epoch is older than the last record's.
 */
must_use enum err log_append(struct log *log, struct log_append *a);

int64_t log_start_offset(const struct log *log);
int64_t log_end_offset(const struct log *log);
/* Everything below is durable, or written where the topic does not flush on acknowledgement. */
int64_t log_ack_offset(const struct log *log);
int64_t log_high_watermark(const struct log *log);
int64_t log_last_stable_offset(const struct log *log);
int64_t log_size_bytes(const struct log *log);
const struct topic_config *log_config(const struct log *log);
struct log_dir *log_directory(const struct log *log);
struct uuid log_topic_id(const struct log *log);
/* The latest epoch in the log's history, -1 when it has none. */
int32_t log_latest_epoch(const struct log *log);

/* Publishes: never goes back, never above log_ack_offset. */
void log_set_high_watermark(struct log *log, int64_t hw);
/* A new leader epoch begins at the log's end (durable before the first batch of it is). */
void log_begin_epoch(struct log *log, int32_t epoch);
/* KIP-320: the largest epoch <= `epoch` and where it ends; -1, -1 when unknown. */
void log_epoch_end(const struct log *log, int32_t epoch, int32_t *found_epoch, int64_t *end_offset);
/* The epoch that the record at `offset` was written in; -1 unknown. */
int32_t log_epoch_at(const struct log *log, int64_t offset);
/* New values; a topic that becomes durable is synced first (its acknowledgeable offset stalls). */
void log_set_config(struct log *log, const struct topic_config *config);

/*
 * Removes everything from `offset` on (followers); `done` when it is durable. A batch that holds
 * the offset goes as a whole, so the end may come out lower, though not below the log start: then
 * the log is empty and begins there. Only an offset below the log start moves that back.
 */
void log_truncate(struct log *log, int64_t offset, void (*done)(void *ctx, enum err err),
                  void *ctx);
/* A follower that is too far behind: everything goes, and the log begins at `offset`, which is not
 * below its end; `done` when that is durable. */
void log_start_over(struct log *log, int64_t offset, void (*done)(void *ctx, enum err err),
                    void *ctx);
/*
 * DeleteRecords: moves the log start up to `offset` (<= high watermark); `done` when durable.
 * Whole segments below it go at the next retention pass.
 */
void log_advance_start(struct log *log, int64_t offset, void (*done)(void *ctx, enum err err),
                       void *ctx);
/* Removes old segments by log start, size and time, at most `segments_max`, and only what the
 * recovery point has passed; returns their number.
 * Files are renamed to .deleted behind the queue and unlinked after file.delete.delay.ms. */
int log_apply_retention(struct log *log, int64_t now_ms, int segments_max);
/* ---- compaction ---- */

/* Whether a log with cleanup.policy=compact is worth a run of the cleaner. */
struct log_dirt {
    bool is_due;
    bool is_overdue; /* by max.compaction.lag.ms: before all that are not */
    double ratio;    /* of its closed segments' bytes, what no run has seen: 0..1 */
};

void log_dirt(const struct log *log, int64_t now_ms, struct log_dirt *out);

struct log_clean_args {
    int64_t now_ms;          /* wall clock */
    int64_t map_bytes;       /* memory for the keys of one run */
    double bytes_per_second; /* read and written; > 0 */
};

/*
 * Runs the cleaner over the log: of each key in its closed segments the last record stays, at its
 * offset. Only when log_dirt has just said that it is due. Reads and appends go on; retention does
 * not. `done`, later: ERR_NONE; ERR_CANCELLED, a truncation, the end of the log or another policy
 * came in between; ERR_NO_SPACE, try again; ERR_CORRUPT_MESSAGE, damage: no more runs in this life;
 * ERR_IO, ERR_FAILED_DIR. What was swapped in before an error stays. One run per directory at a
 * time keeps memory and disk in bounds.
 */
void log_clean(struct log *log, const struct log_clean_args *args,
               void (*done)(void *ctx, enum err err), void *ctx);
/* Forgets producers that have been silent for `expiration_ms`. */
void log_expire_producers(struct log *log, int64_t now_ms, int64_t expiration_ms);

struct log_producer {
    int64_t producer_id;
    int32_t epoch;
    int32_t last_sequence;
    int64_t last_timestamp;
    int32_t coordinator_epoch;
    int64_t txn_start_offset; /* -1: none open */
};

/* Active producers, sorted by id, in the arena. */
void log_producers(const struct log *log, struct arena *arena, struct log_producer **v, int *n);

/* ---- reading: any shard ----------------------------------------------------------------- */

struct log_view; /* shared between shards; freed by io_retire after the log */

struct log_view *log_view(struct log *log);

struct log_bounds {
    int64_t log_start;
    int64_t high_watermark;
    int64_t last_stable;
    int64_t ack;
    int64_t end;
    bool is_gone; /* deleted, closed or failed: nothing else counts */
};

/* A consistent copy. */
void log_view_bounds(const struct log_view *v, struct log_bounds *out);
/* Bytes and number of the segments. On a loop. */
void log_view_size(const struct log_view *v, int64_t *bytes, int64_t *segments);

struct log_range {
    struct io_file *file; /* a reference for the caller; NULL when there is nothing */
    int64_t pos;
    int64_t n;                /* bytes */
    int64_t next_offset_hint; /* more is there, in the segment that begins here; -1: it is not */
    bool is_full;             /* max_bytes ended it: more is there, in the same segment */
};

enum log_wait {
    LOG_CACHED = 0,   /* on a loop: ERR_AGAIN when the disk would be waited for */
    LOG_BLOCKING = 1, /* in a job */
};

/*
 * Finds stored batches from the one that contains `offset` (or the next one there is) up to
 * `upto` (exclusive, a bound from log_view_bounds), at most max_bytes, from one segment; the last
 * batch may be cut, if its beginning is not in the page cache. If `whole_first`, the first batch is
 * returned whole even when it is larger, else an oversized first batch gives an empty range.
 * ERR_OFFSET_OUT_OF_RANGE, ERR_AGAIN, ERR_CORRUPT_MESSAGE (known damage), ERR_KAFKA_STORAGE_ERROR.
 * On a loop the view's segments may be used until the end of the turn; in a job the caller holds a
 * log_snapshot.
 */
must_use enum err log_view_read(const struct log_view *v, int64_t offset, int64_t upto,
                                int32_t max_bytes, bool whole_first, enum log_wait wait,
                                struct log_range *out);
/* Bytes readable between two offsets, approximately (for min_bytes): never waits. */
int64_t log_view_bytes_between(const struct log_view *v, int64_t offset, int64_t upto);

struct log_snapshot; /* a reference to the view and its current segments, for a job */

struct log_snapshot *log_snapshot_take(const struct log_view *v);
void log_snapshot_free(struct log_snapshot *s); /* any thread */
const struct log_view *log_snapshot_view(const struct log_snapshot *s);

/* The first record with timestamp >= t and offset in [log start, upto): blocking, in a job.
 * offset -1 when there is none. Damage is ERR_CORRUPT_MESSAGE. */
must_use enum err log_find_timestamp(const struct log_snapshot *s, int64_t t, int64_t upto,
                                     int64_t *offset, int64_t *timestamp, int32_t *epoch);
/* The record with the largest timestamp. Blocking, in a job. */
must_use enum err log_find_max_timestamp(const struct log_snapshot *s, int64_t upto,
                                         int64_t *offset, int64_t *timestamp, int32_t *epoch);

struct log_aborted_txn {
    int64_t producer_id;
    int64_t first_offset;
};

/* Aborted transactions that overlap [from, upto), in the arena, sorted by first offset. */
must_use enum err log_view_aborted(const struct log_view *v, int64_t from, int64_t upto,
                                   enum log_wait wait, struct arena *arena,
                                   struct log_aborted_txn **out, int *n);

#endif
