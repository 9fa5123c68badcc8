/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saving: making everything of a log durable up to an offset, so that the recovery point may move
 * there.
 *
 * The owner collects what is needed while it holds still: references to the segments that are not
 * covered yet and the producers as of the acknowledgeable offset. The checkpoint lane syncs and
 * writes them, in no hurry, beside the commits. Only when all of it is durable does the directory's
 * checkpoint name the new offset (dir.c), and only after that does the older producers file go.
 *
 * While a save is under way the log is neither truncated nor closed.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/planted.h"
#include "log/log_int.h"

static void free_segments(struct save *s)
{
    for (size_t i = 0; i < s->segment_count; i++)
        unsaved_free(&s->segments[i]);
    free(s->segments);
}

void save_free(struct save *s)
{
    free_segments(s);
    buf_fini(&s->producers);
    free(s->path);
    free(s);
}

/* ---- On the owner's loop ------------------------------------------------------------------ */

/* Nothing was saved: the closed segments wait for the next time, in front of newer ones. */
static void give_back(struct log *log, struct save *s)
{
    struct unsaved_segment *newer = log->unsaved;
    size_t newer_count = log->unsaved_count;

    unsaved_free(&s->segments[--s->segment_count]); /* The active one. */
    log->unsaved = s->segments;
    log->unsaved_count = s->segment_count;
    log->unsaved_cap = log->unsaved_count + newer_count + 1;
    log->unsaved = xreallocarray(log->unsaved, log->unsaved_cap, sizeof(*log->unsaved));
    for (size_t i = 0; i < newer_count; i++)
        log->unsaved[log->unsaved_count++] = newer[i];
    free(newer);
    s->segments = NULL;
    s->segment_count = 0;
}

static void point_saved(struct save *s)
{
    struct log *log = s->card->log;

    if (s->err && s->segment_count > 0)
        give_back(log, s);
    else if (s->segment_count > 0)
        log->recovery_point = s->offset;
    log_save_answered(s);
}

/* Moves the closed segments into the save, and adds the active one. */
static void take_unsaved(struct log *log, struct save *s)
{
    struct segment *active = log->segments[log->acked_segments - 1].segment;

    s->segments = log->unsaved;
    s->segment_count = log->unsaved_count;
    s->segments = xreallocarray(s->segments, s->segment_count + 1, sizeof(*s->segments));
    s->segments[s->segment_count++] = (struct unsaved_segment){
        .segment = segment_ref(active),
        .next_base = -1,
    };
    log->unsaved = NULL;
    log->unsaved_count = log->unsaved_cap = 0;
}

void log_save(struct log *log)
{
    struct save *s = log_new_save(log, SAVE_POINT, point_saved);

    s->offset = log->record.bounds.ack;
    s->acked_bytes = log->record.acked_bytes;
    if (log->state == LOG_STATE_OPEN && s->offset > log->recovery_point &&
        !log->record.is_damaged) {
        s->path = xstrdup(log->path);
        take_unsaved(log, s);
        snapshot_format(&log->producers, s->offset, &s->producers);
    }
    dir_submit(log->dir, s);
}

/* ---- On the checkpoint lane ---------------------------------------------------------------- */

enum err snapshot_write(struct io *io, const char *dir, int64_t offset, const char *suffix,
                        const struct buf *text)
{
    char *path = offset_path(dir, offset, suffix);
    enum err err = io_file_replace(io, path, buf_bytes(text, 0));

    free(path);
    return err;
}

enum err save_write(struct save *s, struct io *io)
{
    enum err err = ERR_NONE;

    for (size_t i = 0; !err && i < s->segment_count; i++) {
        struct unsaved_segment *u = &s->segments[i];
        err = PLANTED(EARLY_RECOVERY_POINT) ? ERR_NONE : segment_sync(u->segment);
        if (!err && u->next_base >= 0)
            err = snapshot_write(io, s->path, u->next_base, SNAPSHOT_SUFFIX, &u->kafka_snapshot);
    }
    if (!err && s->segment_count > 0)
        err = snapshot_write(io, s->path, s->offset, PRODUCERS_SUFFIX, &s->producers);
    return err;
}

void save_remove_old(struct save *s, struct io *io)
{
    struct io_names names;

    if (s->segment_count == 0 || io_dir_list(io, s->path, &names))
        return; /* What is left over is found the next time. */
    for (size_t i = 0; i < names.n; i++) {
        int64_t offset;
        if (!offset_name_parse(names.v[i], PRODUCERS_SUFFIX, &offset) || offset >= s->offset)
            continue;
        char *path = xasprintf("%s/%s", s->path, names.v[i]);
        enum err err = io_path_unlink(io, path);
        if (err)
            trace_warn("save.unlink", "path=%s error=%s", path, err_name(err));
        free(path);
    }
    io_names_free(&names);
}
