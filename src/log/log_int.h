/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_LOG_LOG_INT_H
#define SL_LOG_LOG_INT_H

#include "log/files_int.h"
#include "log/log.h"
#include "log/producers_int.h"
#include "log/segment_int.h"

/* What the files of this module share: the published view, the log, the log directory. */

/* ---- view.c ------------------------------------------------------------------------------ */

/* One segment as its readers see it; of the last one, the view's record knows the extent. */
struct segment_span {
    struct segment *segment; /* a reference */
    int64_t size;
    int64_t index_count;
    int64_t time_count;
    int64_t txn_count;
    int64_t max_timestamp; /* -1: none */
};

/* Immutable once published. */
struct segment_list {
    _Atomic int32_t refs;
    struct io_retired retired;
    size_t n; /* at least 1 */
    struct segment_span v[];
};

/* Copies the spans and takes references to their segments. */
struct segment_list *segment_list_new(const struct segment_span *v, size_t n);
struct segment_list *segment_list_ref(struct segment_list *l);
void segment_list_unref(struct segment_list *l);

/* All that a reader needs, copied as one. */
struct view_record {
    struct log_bounds bounds;
    bool is_damaged;           /* recovery stopped at bounds.end: reads there are refused */
    int64_t acked_bytes;       /* of all segments and ever, for pacing */
    struct segment_tail tail;  /* of the last segment, up to the acknowledgeable offset */
    struct segment_list *list; /* good until the end of the reader's turn */
};

struct log_view *view_new(void);
/* Owner only; the list before it is retired on this loop when it is another one. */
void view_publish(struct log_view *v, const struct view_record *r, struct io_loop *loop);
void view_load(const struct log_view *v, struct view_record *out);
/* The owner is done: freed when every loop has finished its turn. */
void view_retire(struct log_view *v, struct io_loop *loop);

/* The extent of segment i of the record's list. */
struct segment_extent view_extent(const struct view_record *r, size_t i);
/* The last segment whose base is <= offset; 0 when there is none. */
size_t view_segment_of(const struct view_record *r, int64_t offset);

/* ---- ops.c: changes of a log on their way through the journal ------------------------------ */

struct log_op {
    struct journal_op journal;
    struct log *log;
    void (*finish)(struct log_op *op); /* on the owner's loop, in order; frees op */
};

struct append_op {
    struct log_op op;
    struct io_buf *buf;
    struct producer_event event;
    int64_t next_offset;
    struct segment_tail after; /* of the segment, with this batch */
    struct index_entries entries;
    uint8_t txn_entry[TXNINDEX_ENTRY_BYTES];
    struct append_op *next_free;
};

/* ---- log.c ------------------------------------------------------------------------------- */

enum log_state {
    LOG_STATE_OPEN = 0,
    LOG_STATE_TAKING_BACK = 1, /* out of space: until the cut has gone through the journal */
    LOG_STATE_TRUNCATING = 2,
    LOG_STATE_ENDING = 3, /* close or delete */
    LOG_STATE_FAILED = 4,
};

/* A segment that is closed and not yet covered by the recovery point. */
struct unsaved_segment {
    struct segment *segment; /* a reference */
    int64_t next_base;
    struct buf kafka_snapshot; /* as of next_base */
};

struct log {
    struct io *io;
    struct io_loop *loop;
    struct log_dir *dir;
    struct journal *journal;
    char *topic;
    int32_t partition;
    struct uuid topic_id;
    char *path;
    struct topic_config config;
    struct log_events events;
    void *ctx;
    enum log_state state;

    struct journal_log lane; /* the journal's part */
    struct log_view *view;
    struct view_record record; /* what was published last, or is about to be */
    struct epochs epochs;
    struct producers producers;
    struct segment_span *segments; /* the last one is active */
    size_t segment_count;
    size_t segment_cap;
    struct segment_tail tail;       /* of the active segment, with all that was assigned */
    int64_t segment_opened_ms;
    int64_t roll_jitter_ms;
    size_t acked_segments;          /* segments of which the view knows */
    int64_t inflight;               /* operations in the journal */
    struct append_op *free_appends;

    int64_t recovery_point;
    int64_t producers_file; /* offset of the newest file of ours; -1 */
    struct unsaved_segment *unsaved;
    size_t unsaved_count;
    size_t unsaved_cap;
    bool is_saving;
    struct log_card *card; /* the directory's record of this log; owned */

    /* A request that waits until nothing is in flight. */
    void (*when_idle)(struct log *log);
    void (*request_done)(void *ctx, enum err err);
    void *request_ctx;
    int64_t request_offset;
};

struct journal *log_journal(struct log_dir *dir);

/* A batch's effect on its producer; `marker` is filled from the control record. ERR_INVALID_RECORD,
 * ERR_CORRUPT_MESSAGE: a control batch that is none. */
must_use enum err producer_event_of(struct bytes batch, const struct batch_header *h,
                                    struct producer_event *out);

/* Submits; `finish` runs on the owner's loop. */
void log_submit(struct log *log, struct log_op *op);
/* Publishes the record; tells the owner when the acknowledgeable offset has moved. */
void log_publish(struct log *log);
/* Runs what waits for idleness, if the log is idle. */
void log_run_idle(struct log *log);
/* The first error of the directory, or damage: nothing is accepted any more. */
void log_fail(struct log *log, enum err err);
/* Frees everything; nothing may be in flight. */
void log_free(struct log *log);
/* Replaces leader-epoch-checkpoint with the present epochs, behind what was submitted. */
void log_submit_epochs(struct log *log);
/* Takes back what the disk had no room for (append.c). */
void log_take_back(struct log *log);
void append_op_free(struct append_op *a);
/* A new active segment with this base (append.c). */
void log_roll(struct log *log, int64_t base_offset, int64_t now_ms);
void log_push_segment(struct log *log, struct segment *s);
/* Drops the owner's spans from `from` on. */
void log_drop_segments(struct log *log, size_t from);
/* The durable part of the producers becomes the Kafka snapshot of a closed segment. */
void log_add_unsaved(struct log *log, struct segment *s, int64_t next_base);
void unsaved_free(struct unsaved_segment *u);

/* ---- recover.c: what a load finds --------------------------------------------------------- */

struct log_loaded {
    struct io *io;
    struct log_dir *dir;
    char *topic;
    int32_t partition;
    struct uuid topic_id;
    char *path;
    struct topic_config config;
    int64_t now_ms;
    struct epochs epochs;
    struct producers producers;
    struct segment_span *segments;
    size_t segment_count;
    size_t segment_cap;
    struct segment_tail tail; /* of the last segment */
    int64_t start;
    int64_t end;
    int64_t high_watermark;
    int64_t recovery_point;
    int64_t producers_file;
    bool is_damaged;
    bool is_new; /* made, not loaded */
};

/* What a scan of batches finds and builds. */
struct scan {
    struct io *io;
    struct io_job *job;      /* progress; may be NULL */
    int32_t index_interval_bytes;
    int64_t verify_from;     /* checksums are checked from this position on */
    int64_t replay_from;     /* producers and epochs learn from this offset on */
    struct epochs *epochs;
    struct producers *producers;
    struct segment *segment;
    struct segment_tail tail; /* in: where to start; out: where the good batches end */
    int64_t next_offset;      /* in and out */
    int64_t bytes_scanned;
    bool found_bad;           /* the batch at tail.size is bad or cut */
    bool writes_indexes;
};

/* Reads batches from scan->tail.size to the end of the file. Blocking. */
must_use enum err scan_segment(struct scan *scan, const char *dir);

/* Truncates a log's files to `offset` and reloads its end, producers and epochs: the lane's part of
 * log_truncate. Blocking. */
struct reload {
    struct io *io;
    const char *path;
    int64_t offset;
    int32_t index_interval_bytes;
    int64_t log_start;
    struct segment_span *segments; /* in: the log's; owned by the caller */
    size_t segment_count;          /* out: those that are left */
    struct segment_tail tail;      /* out */
    int64_t end;                   /* out: <= offset */
    struct epochs epochs;          /* in and out; owned by the caller */
    struct producers producers;    /* out */
};

must_use enum err log_reload_truncated(struct reload *r);

/* ---- dir.c, save.c ------------------------------------------------------------------------ */

/* The directory's record of one log; touched by its checkpoint lane after registration. */
struct log_card {
    const char *topic; /* the log's */
    int32_t partition;
    struct log_view *view;
    struct io_loop *loop;
    struct log *log;
    bool was_found; /* a directory that log_dir_open found */
    /* the lane's */
    int64_t recovery_point;
    int64_t saved_bytes;    /* of view_record.acked_bytes */
    bool is_asked;          /* the owner was asked to save and has not answered */
    struct save *leaving;   /* an unregistration that waits for that answer */
    struct io_msg ask;
    struct list node;
};

enum save_kind {
    SAVE_REGISTER = 0,
    SAVE_POINT = 1,    /* a recovery point, or nothing when segment_count is 0 */
    SAVE_LOWER = 2,    /* the recovery point goes back, before a truncation */
    SAVE_START = 3,    /* the log start has moved */
    SAVE_LEAVE = 4,    /* the log is closed: `offset` is its recovery point, -1 unclean */
    SAVE_FORGET = 5,   /* the log is deleted */
};

/* A request to the checkpoint lane; answered on the owner's loop when its result is durable. */
struct save {
    struct io_msg msg;
    enum save_kind kind;
    struct log_card *card;
    struct io_loop *loop;
    void (*done)(struct save *s); /* frees s */
    void *ctx;
    int64_t offset;
    int64_t acked_bytes;
    enum err err;
    /* SAVE_POINT */
    char *path;                      /* the partition's directory */
    struct unsaved_segment *segments; /* the last is the active one, without a snapshot */
    size_t segment_count;
    struct buf producers;
    int64_t old_producers_file;      /* to be removed; -1 */
    struct save *next_answer;
};

void dir_submit(struct log_dir *dir, struct save *s);
/* On the owner's loop: answers card->ask with a SAVE_POINT. */
void log_save(struct log *log);
void save_free(struct save *s);
/* The lane's part of SAVE_POINT. Blocking. */
must_use enum err save_write(struct save *s, struct io *io);
/* Removes files later: a partition's directory (is_dir) or one file. Takes `path`. Any loop. */
void dir_bury(struct log_dir *dir, struct io_loop *from, char *path, bool is_dir,
              int64_t delay_ms);
/* What the directory's checkpoints said when it was opened. */
struct dir_known {
    int64_t recovery_point;
    int64_t high_watermark;
    int64_t log_start; /* -1: not there */
    bool clean;
};

struct dir_known dir_known(const struct log_dir *dir, const char *topic, int32_t partition);
struct io *dir_io(const struct log_dir *dir);

#endif
