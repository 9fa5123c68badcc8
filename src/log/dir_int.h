/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_LOG_DIR_INT_H
#define SL_LOG_DIR_INT_H

#include "log/log_int.h"

#define POINTS_NAME "recovery-point-offset-checkpoint"
#define STARTS_NAME "log-start-offset-checkpoint"
#define MARKS_NAME "replication-offset-checkpoint"
#define CLEANED_NAME "cleaner-offset-checkpoint"
#define CLEAN_NAME ".kafka_cleanshutdown"
#define LOCK_NAME ".lock"
#define META_NAME "meta.properties"

/* The four checkpoint files of a directory. */
struct checkpoints {
    struct checkpoint points;  /* recovery points */
    struct checkpoint marks;   /* high watermarks */
    struct checkpoint starts;  /* log starts */
    struct checkpoint cleaned; /* where the clean part of compacted logs ends */
};

struct log_dir {
    struct io *io;
    char *path;
    struct io_lock *lock;
    struct uuid id;
    struct journal *journal;
    struct io_lane *lane;
    /* As the directory was opened; immutable. */
    struct checkpoints known;
    bool was_clean;
    size_t found_count;
    /* The checkpoint lane's. */
    struct checkpoints now;
    bool points_dirty;
    bool marks_dirty;
    bool starts_dirty;
    bool cleaned_dirty;
    struct list cards;
    int64_t ticks;
    bool is_quiet;     /* the last tick found nothing to do; the loop reads it behind the answer */
    size_t open_count; /* logs that are registered */
    size_t loaded_count;  /* found ones that have ever been */
    bool is_unclean;      /* a log left without a clean close */
    struct save *answers; /* of this round, until the files are written */
    /* The loop's that ticks. */
    struct io_loop *loop;
    struct io_timer timer;
    struct io_msg tick;
    struct list graves;
};

/* Runs on the checkpoint lane. */
void checkpoints_run(void *ctx, struct io_msg *chain);
/* Writes what has changed; an error fails the directory. Blocking. */
void checkpoints_write(struct log_dir *dir);
/* High watermarks and log starts of the logs that are there. */
void checkpoints_collect(struct log_dir *dir);
void checkpoints_fini(struct checkpoints *c);
void dir_graves_free(struct log_dir *dir);
/* Removes a partition's directory with its files. Blocking. */
must_use enum err remove_partition_dir(struct io *io, const char *path);

#endif
