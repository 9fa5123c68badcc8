/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_JOURNAL_JOURNAL_H
#define SL_JOURNAL_JOURNAL_H

#include "base/counter.h"
#include "io/io.h"

/*
 * Group commit for one log directory. Shards hand over operations; a lane runs them in the order
 * of submission, one commit at a time (everything that is queued, at most
 * JOURNAL_COMMIT_BYTES_MAX), and while one commit is in flight the next one gathers: there is no
 * timer and no window to tune. The journal knows bytes and files, not Kafka. It is the only writer
 * of segments and of what belongs to them: every change to a log is an operation in this one
 * queue, so that a delete runs behind the appends that came before it.
 *
 * This is the first stage: segments are written through the page cache and one fdatasync is paid
 * per dirty file and commit. A journal file can take its place behind this header.
 *
 * Rules:
 *  - nothing is reported before it is true: an operation with `sync` completes when its bytes are
 *    on the device, one without when they can be read through the file;
 *  - a failed write or sync fails the directory: that operation and every later one completes with
 *    ERR_FAILED_DIR (the first with its own error), nothing is retried;
 *  - lack of space is not such a failure: it is noticed before anything is written. The append and
 *    all later appends of the same log complete with ERR_NO_SPACE until the owner has taken note
 *    and submitted JOURNAL_TRUNCATE for that log.
 */

struct journal;

enum journal_kind {
    JOURNAL_APPEND = 0,
    JOURNAL_ROLL = 1,
    JOURNAL_TRUNCATE = 2,
    JOURNAL_LOG_START = 3,
    JOURNAL_EPOCH = 4,
    JOURNAL_DROP = 5,
};

/* The lane's side of one log: embedded in the log, zero-initialised, touched by the lane only. */
struct journal_log {
    uint64_t log_id; /* new for each incarnation of a log */
    bool refusing;   /* after ERR_NO_SPACE, until JOURNAL_TRUNCATE */
    /* private: how far the file has blocks, and the log's appends in the commit that is made */
    int64_t _reserved;
    struct journal_op *_first;
    struct journal_op *_last;
    struct journal_log *_next;
};

/* Bytes for one place of one file. */
struct journal_write {
    /* Where the handle is: read by the lane when it runs, since a roll that stands before may open
     * it. Borrowed: the owner's reference outlives the operation. */
    struct io_file *const *file;
    int64_t pos; /* bytes from the start of the file */
    const void *p;
    size_t n;
};

#define JOURNAL_SIDE_WRITES_MAX 3 /* offset index, time index, transaction index */

/*
 * One change. Owned by the caller, who keeps it and all it points to until `done`, which runs
 * exactly once on `loop`.
 */
struct journal_op {
    enum journal_kind kind;
    struct journal_log *log;
    bool sync; /* complete when durable instead of when written */

    /* JOURNAL_APPEND: one batch, written before its index entries. All appends of a log between
     * two operations of other kinds go to the same files. Only the data is ever synced. */
    struct journal_write data; /* behind it the file may get space, see io_file_reserve */
    struct journal_write side[JOURNAL_SIDE_WRITES_MAX];
    int side_count;
    int64_t base_offset;
    int32_t leader_epoch;

    /* The other kinds: the change itself, blocking, on the lane, in order with the appends: those
     * before it have been written (and synced, where they asked for it) when it runs. It syncs what
     * has to be durable. ERR_NO_SPACE from a roll or an epoch, which then must have undone itself,
     * makes the log refuse as an append would; from a log start it is the answer and no more. Any
     * other error fails the directory. A roll of a refusing log does not run. */
    enum err (*apply)(struct journal_op *op, struct io *io);

    /* Completion. */
    struct io_loop *loop;
    void (*done)(struct journal_op *op);
    enum err err;
    bool more; /* another operation of this log completes right behind this one */

    struct io_msg _msg;
    struct journal_op *_next;
};

/* Any thread before the loops run, or a job. The path is the log directory's. */
struct journal *journal_new(struct io *io, const char *dir_path);
/* Finishes what was submitted. Not on a loop. */
void journal_free(struct journal *j);

/* Any loop. */
void journal_submit(struct journal *j, struct journal_op *op);

/* Any thread: whether the directory has failed. */
bool journal_has_failed(const struct journal *j);
/* Any thread: fails the directory, after an error in files that the journal does not write. */
void journal_fail(struct journal *j, enum err err);
/* Any thread: false while free space is below the reserve, max(2 %, 256 MiB) but at most 10 % of
 * the volume. Appends are refused up front then; fetch, deletion and administration go on. */
bool journal_has_space(const struct journal *j);
/* Looks at the free space again, and returns how much of it appends may take, or less than none.
 * Blocking: a lane or a job, called each second or so where that is little. */
int64_t journal_check_space(struct journal *j);

struct journal_stats {
    int64_t commits;
    int64_t ops;
    int64_t bytes;
    int64_t syncs;
};

/* Any thread. */
void journal_stats_read(const struct journal *j, struct journal_stats *out);
/* Any thread: adds how long each of the syncs took. */
void journal_sync_figures(const struct journal *j, struct latency_figures *to);

#endif
