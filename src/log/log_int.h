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
    int64_t max_timestamp;   /* -1: none */
    int64_t first_timestamp; /* max timestamp of the first batch; 0: not known */
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
    LOG_STATE_TRUNCATING = 1,
    LOG_STATE_ENDING = 2, /* close or delete */
    LOG_STATE_FAILED = 3,
};

/* A segment that is closed and not yet covered by the recovery point. */
struct unsaved_segment {
    struct segment *segment; /* a reference */
    int64_t next_base;
    struct buf kafka_snapshot; /* as of next_base */
};

struct log_request {
    void (*start)(struct log *log); /* when nothing is in flight */
    void (*done)(void *ctx, enum err err);
    void *ctx;
    int64_t offset; /* log_truncate's */
    enum err err;
    struct log_request *next;
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
    struct view_record record; /* what was published last, or is about to be; list NULL: make one */
    int64_t told_ack;          /* what `advanced` was called for last */
    bool is_taking_back;       /* out of space: until the cut has gone through the journal */
    int64_t unflushed_messages;  /* since the last append that asked for a sync, or flush.ms */
    struct io_timer flush_timer; /* from the first append that asked for none */
    struct epochs epochs;
    bool epochs_dirty; /* the file is to be written before the next batch */
    struct producers producers;
    struct segment_span *segments; /* the last one is active */
    size_t segment_count;
    size_t segment_cap;
    size_t acked_segments;    /* those that exist on disk: the view's */
    struct segment_tail tail; /* of the active segment, with all that was assigned */
    int64_t segment_opened_ms;
    int64_t roll_jitter_ms;
    int64_t inflight; /* operations in the journal */
    struct append_op *free_appends;

    int64_t recovery_point;
    int64_t closed_at; /* an end at which the files are as a clean close leaves them; -1 */
    struct unsaved_segment *unsaved;
    size_t unsaved_count;
    size_t unsaved_cap;
    int saves;             /* requests to the checkpoint lane that are not answered */
    struct log_card *card; /* the directory's record of this log; owned */

    int64_t clean_offset;      /* compacted below */
    struct cleaning *cleaning; /* the run that is under way; NULL */
    bool is_uncleanable;       /* a run has failed: no more of them in this life */

    /* Requests that want the files for themselves, one after the other. */
    struct log_request *requests; /* the first one may be running */
    bool is_running;
};

struct save;
enum save_kind {
    SAVE_REGISTER = 0,
    SAVE_POINT = 1,  /* a recovery point, or nothing when segment_count is 0 */
    SAVE_LOWER = 2,  /* the recovery point goes back, before a truncation */
    SAVE_START = 3,  /* the log start has moved */
    SAVE_LEAVE = 4,  /* the log is closed: `offset` is its recovery point, -1 unclean */
    SAVE_FORGET = 5, /* the log is deleted */
    SAVE_CLEAN = 6,  /* the log is compacted below `offset` */
    SAVE_STRAY = 7,  /* there is no log, and its directory will go: the card is no dir's */
};

/* A batch's effect on its producer; `marker` is filled from the control record. ERR_INVALID_RECORD,
 * ERR_CORRUPT_MESSAGE: a control batch that is none. */
must_use enum err producer_event_of(struct bytes batch, const struct batch_header *h,
                                    struct producer_event *out);

/* Submits; `finish` runs on the owner's loop. */
void log_submit(struct log *log, struct log_op *op);
/* Publishes the record. */
/* An append was submitted that asks for no sync: flush.ms begins. */
void log_arm_flush(struct log *log);
void log_publish(struct log *log);
/* Adds a request; its start runs later, when the log is idle and earlier ones are done. */
void log_request(struct log *log, void (*start)(struct log *log),
                 void (*done)(void *ctx, enum err err), void *ctx, int64_t offset);
/* Starts the first request if the log is idle. */
void log_run_idle(struct log *log);
/* Ends the running request and tells its maker. */
void log_finish_request(struct log *log, enum err err);
/* The first error of the directory: nothing is accepted any more. */
void log_fail(struct log *log, enum err err);
/* Frees everything; nothing may be in flight. */
void log_free(struct log *log);
/* Replaces leader-epoch-checkpoint with the present epochs, behind what was submitted. */
void log_submit_epochs(struct log *log);
void log_push_segment(struct log *log, struct segment *s);
/* Drops the owner's spans from `from` on. */
void log_drop_segments(struct log *log, size_t from);
/* Remembers a closed segment, with the durable producers as its Kafka snapshot. */
void log_add_unsaved(struct log *log, struct segment *s, int64_t next_base);
void unsaved_free(struct unsaved_segment *u);
/* A request to the checkpoint lane; log->saves counts it until log_save_answered. */
struct save *log_new_save(struct log *log, enum save_kind kind, void (*done)(struct save *s));
void log_save_answered(struct save *s);

/* append.c: takes back what the disk had no room for; a new active segment. */
void log_take_back(struct log *log);
void log_roll(struct log *log, int64_t base_offset, int64_t now_ms);
/* clean.c: a run that pauses ends now, any other at its next step. */
void log_stop_cleaning(struct log *log);
/* Offsets of the last stable record, after the high watermark or the producers have changed. */
void log_update_stable(struct log *log);

/* ---- What a load finds --------------------------------------------------------------------- */

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
    int64_t clean_offset;
    int64_t closed_at; /* as log->closed_at */
    bool is_damaged;
    bool is_new; /* made, not loaded */
};

/* ---- scan.c ------------------------------------------------------------------------------ */

/* Where the first batch that does not end below an offset starts, and what is known up to it. */
struct restored {
    struct segment_tail tail;
    int64_t next_offset;
    bool has_gap; /* the offset index lacks entries: better built again */
};

/* The index files are cut to what the tail says. Blocking. */
must_use enum err tail_restore(struct segment *s, int64_t offset, struct restored *out);
/* A closed segment's indexes at a glance: their sizes and last entries; fills the span's counts.
 * False: they have to be built again. Blocking. */
bool index_looks_whole(struct segment *s, int64_t log_size, struct segment_span *span);
/* Index files as long as the tail says. Blocking. */
must_use enum err segment_cut_indexes(struct segment *s, const struct segment_tail *t);

/* What a scan of batches needs, finds and builds. */
struct scan {
    struct io *io;
    struct io_job *job; /* progress, cancel; may be NULL */
    int32_t index_interval_bytes;
    int64_t verify_from; /* batches from this offset on must have a good checksum */
    int64_t replay_from; /* producers learn from this offset on */
    struct epochs *epochs;
    bool epochs_changed;
    struct producers *producers;
    struct segment *segment;
    struct segment_tail tail; /* in: where to start; out: where the good batches end */
    int64_t next_offset;      /* in and out */
    int64_t bytes_scanned;    /* added to */
    bool found_bad;           /* what lies at the tail's end is no good batch */
};

/* Somebody has lost interest. */
bool scan_is_cancelled(const struct scan *scan);
/* Reads batches from the tail to the end of the file, or to the first that is bad. ERR_CANCELLED:
 * nothing was written. Blocking. */
must_use enum err scan_segment(struct scan *scan, const char *dir);

/* ---- recover.c, leftovers.c ---------------------------------------------------------------- */

/* Finishes or undoes what a crash interrupted in a partition directory: .deleted, .cleaned, .swap
 * and index files without a log. *names (the caller's) is what the directory then holds, and what
 * was removed of the last kind. Blocking. */
must_use enum err leftovers_clear(struct io *io, const char *dir, struct io_names *names);

/* ---- reload.c ------------------------------------------------------------------------------ */

/*
 * Producers as of `upto`: first the newest good snapshot at or below it, then, if that is older,
 * the batches from there on. Blocking.
 */
struct replay {
    struct io *io;
    const char *path;
    const struct io_names *names;        /* what the directory holds */
    const struct segment_span *segments; /* with sizes that cover `upto`; for the second step */
    size_t segment_count;
    int64_t upto;
    int64_t from;                /* out of the first step: the snapshot's offset, 0 without */
    bool is_own;                 /* likewise: the snapshot is one of ours, */
    bool is_both;                /* and Kafka's beside it says the same */
    struct producers *producers; /* out */
};

void producers_from_snapshot(struct replay *r);
/* Then, unless the snapshot was one of ours, learns from the next of those who was forgotten. */
must_use enum err producers_replay_rest(struct replay *r);
/* Removes snapshots that no load will want: of ours all below the newest that is not above the
 * recovery point, of Kafka's those below the newest of either kind up to that point but at no
 * segment's base. `names` may hold more than the directory does. Blocking. */
must_use enum err snapshots_tidy(struct io *io, const char *path, const struct io_names *names,
                                 const struct segment_span *segments, size_t count, int64_t point);
/* Removes snapshots of both kinds above `offset`. Blocking. */
must_use enum err snapshots_remove_above(struct io *io, const char *path,
                                         const struct io_names *names, int64_t offset);
must_use enum err epochs_write(struct io *io, const char *path, const struct epochs *e);
must_use enum err epochs_read(struct io *io, const char *path, struct epochs *e);

/* Cuts a log's files at an offset, reloads its end: the lane's part of log_truncate. Blocking. */
struct reload {
    struct io *io;
    const char *path;
    int64_t offset;
    int64_t start;                 /* in: the log start */
    bool is_anew;                  /* in: nothing is left, and the log begins at the offset */
    struct segment_span *segments; /* in: the log's, a copy; out: those that are left. Owned */
    size_t segment_count;
    struct segment_tail tail;   /* out: of the last one */
    int64_t end;                /* out: <= offset; >= start unless the offset is below that */
    struct epochs epochs;       /* in and out; owned */
    struct buf past;            /* in: snapshot_format of the producers before; owned */
    struct producers producers; /* out; owned */
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
    int64_t saved_bytes;  /* of view_record.acked_bytes */
    bool is_asked;        /* the owner was asked to save and has not answered */
    struct save *leaving; /* an unregistration that waits for that answer */
    struct io_msg ask;
    struct list node;
};

/* A request to the checkpoint lane; answered on the owner's loop when its result is durable. */
struct save {
    struct io_msg msg;
    enum save_kind kind;
    struct log_card *card;
    struct io_loop *loop;
    void (*done)(struct save *s);                  /* frees s */
    void (*request_done)(void *ctx, enum err err); /* for `done`: whom to tell */
    void *ctx;
    int64_t offset;
    int64_t acked_bytes;
    enum err err;
    /* SAVE_POINT */
    char *path;                       /* the partition's directory */
    struct unsaved_segment *segments; /* the last is the active one, without a snapshot */
    size_t segment_count;
    struct buf producers;
    struct save *next_answer;
};

void dir_submit(struct log_dir *dir, struct save *s);
/* On the owner's loop: answers card->ask with a SAVE_POINT. */
void log_save(struct log *log);
void save_free(struct save *s);
/* The lane's part of SAVE_POINT. Blocking. */
must_use enum err save_write(struct save *s, struct io *io);
/* A formatted snapshot of either kind under its name. Blocking. */
must_use enum err snapshot_write(struct io *io, const char *dir, int64_t offset, const char *suffix,
                                 const struct buf *text);
/* After the recovery point is durable: the producers file before goes. Blocking. */
void save_remove_old(struct save *s, struct io *io);
/* Removes a partition's directory (is_dir) or one file later. Takes `path`. Any loop. */
void dir_bury(struct log_dir *dir, char *path, bool is_dir, int64_t delay_ms);
/* What the directory's checkpoints said when it was opened. */
struct dir_known {
    bool has_point;
    int64_t recovery_point; /* 0 without one */
    int64_t high_watermark;
    int64_t log_start;    /* -1: not there */
    int64_t clean_offset; /* -1: not there */
    bool clean;
};

struct journal *dir_journal(struct log_dir *dir);
struct dir_known dir_known(const struct log_dir *dir, const char *topic, int32_t partition);

#endif
