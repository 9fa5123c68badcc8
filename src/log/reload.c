/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading state back: producers from a snapshot and the batches behind it, epochs from their file,
 * and the end of a log that was truncated.
 *
 * Snapshots lie about with their offsets in their names. The newest at or below the wanted offset
 * that checks is taken; ours before Kafka's of the same offset, if the two agree: a Kafka broker
 * that has run in between knows nothing of our files. From there on the headers of batches are
 * walked; records are read for markers only.
 *
 * A truncation removes later segments from the last one backwards, so that a crash leaves a prefix
 * of the log at any moment, then cuts the file, and is durable when it returns. It cuts between
 * batches, so the end may come out below the offset; but never below the log start, which has been
 * promised: a log that began in the middle of the batch that goes is empty then and begins there.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/log_int.h"

#define SNAPSHOT_BYTES_MAX ((size_t)1 << 30)
#define EPOCHS_NAME "leader-epoch-checkpoint"

/* ---- Epochs ----------------------------------------------------------------------------- */

enum err epochs_write(struct io *io, const char *path, const struct epochs *e)
{
    char *file = xasprintf("%s/" EPOCHS_NAME, path);
    struct buf text;
    enum err err;

    buf_init(&text);
    epochs_format(e, &text);
    err = io_file_replace(io, file, buf_bytes(&text, 0));
    buf_fini(&text);
    free(file);
    return err;
}

enum err epochs_read(struct io *io, const char *path, struct epochs *e)
{
    char *file = xasprintf("%s/" EPOCHS_NAME, path);
    char *text;
    size_t n;
    enum err err = io_file_read_all(io, file, (size_t)1 << 26, &text, &n);

    *e = (struct epochs){.v = NULL};
    if (!err) {
        err = epochs_parse((struct str){.p = text, .n = (int32_t)n}, e);
        free(text);
    } else if (err == ERR_NOT_FOUND) {
        err = ERR_NONE;
    }
    if (err)
        trace_error("epochs.read", "path=%s error=%s", file, err_name(err));
    free(file);
    return err;
}

/* ---- Producers -------------------------------------------------------------------------- */

static enum err read_snapshot(struct io *io, const char *dir, int64_t offset, const char *suffix,
                              struct producers *ps)
{
    char *path = offset_path(dir, offset, suffix);
    bool is_own = strcmp(suffix, PRODUCERS_SUFFIX) == 0;
    int64_t inside = offset;
    char *text;
    size_t n;
    enum err err = io_file_read_all(io, path, SNAPSHOT_BYTES_MAX, &text, &n);

    if (!err) {
        struct bytes b = {.p = (const uint8_t *)text, .n = (int32_t)n};
        err = is_own ? snapshot_parse(b, &inside, ps) : snapshot_parse_kafka(b, ps);
        free(text);
        if (!err && inside != offset) {
            producers_reset(ps);
            err = ERR_CORRUPT;
        }
        if (err)
            trace_warn("snapshot.unusable", "path=%s error=%s", path, err_name(err));
    }
    free(path);
    return err;
}

/* Both files of one offset; false when neither is good. */
static bool read_snapshots_at(struct replay *r, int64_t offset)
{
    struct producers kafka;
    bool has_kafka, has_own;

    producers_init(&kafka);
    has_kafka = !read_snapshot(r->io, r->path, offset, SNAPSHOT_SUFFIX, &kafka);
    has_own = !read_snapshot(r->io, r->path, offset, PRODUCERS_SUFFIX, r->producers);
    if (has_kafka && !(has_own && producers_agree(r->producers, &kafka))) {
        producers_fini(r->producers);
        *r->producers = kafka;
        r->producers->forgotten_id = offset > 0 ? INT64_MAX : -1;
        return true;
    }
    producers_fini(&kafka);
    r->is_own = has_own;
    r->is_both = has_own && has_kafka;
    return has_own;
}

/* The largest offset up to `most` that a snapshot of either kind carries; -1. */
static int64_t newest_up_to(const struct io_names *names, int64_t most)
{
    int64_t best = -1;

    for (size_t i = 0; i < names->n; i++) {
        int64_t offset;
        bool is_snapshot = offset_name_parse(names->v[i], SNAPSHOT_SUFFIX, &offset) ||
                           offset_name_parse(names->v[i], PRODUCERS_SUFFIX, &offset);
        if (is_snapshot && offset <= most)
            best = MAX(best, offset);
    }
    return best;
}

static int64_t oldest_base(const struct io_names *names)
{
    int64_t oldest = INT64_MAX;
    int64_t base;

    for (size_t i = 0; i < names->n; i++)
        if (offset_name_parse(names->v[i], LOG_SUFFIX, &base))
            oldest = MIN(oldest, base);
    return oldest;
}

static enum err replay_batch(struct replay *r, struct segment *s, const struct header_walk *w)
{
    struct producer_event event;
    struct buf control = {.p = NULL};
    struct bytes batch = {.n = -1};
    enum err err = ERR_NONE;

    if (w->header.producer_id < 0)
        return ERR_NONE;
    if (batch_is_control(&w->header)) {
        err = read_fully(s->log, buf_extend(&control, (size_t)w->total), (size_t)w->total, w->pos,
                         LOG_BLOCKING);
        batch = buf_bytes(&control, 0);
    }
    if (!err && producer_event_of(batch, &w->header, &event))
        err = ERR_CORRUPT_MESSAGE;
    if (!err)
        producers_replay(r->producers, &event);
    buf_fini(&control);
    return err;
}

static enum err replay_from(struct replay *r, int64_t offset)
{
    int64_t last = -1; /* what goes back is not of this log: the scan cuts it off */

    for (size_t i = 0; i < r->segment_count; i++) {
        const struct segment_span *span = &r->segments[i];
        struct segment_extent extent = {
            .segment = span->segment, .size = span->size, .index_count = span->index_count};
        struct header_walk w;
        enum err err;
        if (i + 1 < r->segment_count && r->segments[i + 1].segment->base_offset <= offset)
            continue;
        if (span->segment->base_offset >= r->upto)
            break;
        err = segment_find(&extent, offset, LOG_BLOCKING, &w);
        while (!err) {
            if (w.header.base_offset >= r->upto || w.header.base_offset <= last)
                return ERR_NONE;
            last = batch_last_offset(&w.header);
            err = replay_batch(r, span->segment, &w);
            if (!err)
                err = header_walk_next(&w);
        }
        /* Bad bytes are not judged here: behind `upto` they are usual, below it the scan finds
         * them. */
        if (err == ERR_CORRUPT_MESSAGE)
            return ERR_NONE;
        if (err && err != ERR_EOF)
            return err;
    }
    return ERR_NONE;
}

void producers_from_snapshot(struct replay *r)
{
    int64_t oldest = oldest_base(r->names);

    producers_init(r->producers);
    r->is_own = r->is_both = false;
    r->from = newest_up_to(r->names, r->upto);
    while (r->from >= 0 && !read_snapshots_at(r, r->from))
        r->from = newest_up_to(r->names, r->from - 1);
    r->from = MAX(r->from, 0);
    /* What is replayed tells of all producers only if nothing is missing before it. */
    if (oldest != INT64_MAX && oldest > r->from)
        r->producers->forgotten_id = INT64_MAX;
}

/* The smallest offset above `least` of a snapshot of ours; INT64_MAX. */
static int64_t next_own(const struct io_names *names, int64_t least)
{
    int64_t best = INT64_MAX;
    int64_t at;

    for (size_t i = 0; i < names->n; i++)
        if (offset_name_parse(names->v[i], PRODUCERS_SUFFIX, &at) && at > least)
            best = MIN(best, at);
    return best;
}

/* After a truncation a snapshot of Kafka's at the base of a segment may be all there is below the
 * recovery point, and one of ours above it. */
static void learn_from_next(struct replay *r)
{
    struct producers later;
    int64_t at = next_own(r->names, r->upto);
    enum err err = ERR_NOT_FOUND;

    producers_init(&later);
    while (err && at != INT64_MAX) {
        err = read_snapshot(r->io, r->path, at, PRODUCERS_SUFFIX, &later);
        at = next_own(r->names, at);
    }
    if (!err)
        producers_learn(r->producers, &later, r->upto);
    producers_fini(&later);
}

enum err producers_replay_rest(struct replay *r)
{
    enum err err = r->from == r->upto ? ERR_NONE : replay_from(r, r->from);

    if (!err && !r->is_own)
        learn_from_next(r);
    return err;
}

/* ---- Which snapshots stay ----------------------------------------------------------------- */

static enum err unlink_name(struct io *io, const char *dir, const char *name)
{
    char *file = xasprintf("%s/%s", dir, name);
    enum err err = io_path_unlink(io, file);

    free(file);
    return err == ERR_NOT_FOUND ? ERR_NONE : err;
}

static bool is_base(const struct segment_span *segments, size_t count, int64_t offset)
{
    for (size_t i = 0; i < count; i++) {
        if (segments[i].segment->base_offset == offset)
            return true;
    }
    return false;
}

enum err snapshots_tidy(struct io *io, const char *path, const struct io_names *names,
                        const struct segment_span *segments, size_t count, int64_t point)
{
    int64_t newest = newest_up_to(names, point);
    int64_t newest_own = -1; /* likewise */
    int64_t at;
    enum err err = ERR_NONE;

    for (size_t i = 0; i < names->n; i++) {
        if (offset_name_parse(names->v[i], PRODUCERS_SUFFIX, &at) && at <= point)
            newest_own = MAX(newest_own, at);
    }
    for (size_t i = 0; !err && i < names->n; i++) {
        bool is_old = (offset_name_parse(names->v[i], PRODUCERS_SUFFIX, &at) && at < newest_own) ||
                      (offset_name_parse(names->v[i], SNAPSHOT_SUFFIX, &at) && at < newest &&
                       !is_base(segments, count, at));
        if (is_old)
            err = unlink_name(io, path, names->v[i]);
    }
    return err;
}

enum err snapshots_remove_above(struct io *io, const char *path, const struct io_names *names,
                                int64_t offset)
{
    enum err err = ERR_NONE;

    for (size_t i = 0; !err && i < names->n; i++) {
        int64_t at;
        bool is_snapshot = offset_name_parse(names->v[i], SNAPSHOT_SUFFIX, &at) ||
                           offset_name_parse(names->v[i], PRODUCERS_SUFFIX, &at);
        if (is_snapshot && at > offset)
            err = unlink_name(io, path, names->v[i]);
    }
    return err;
}

/* ---- Truncation ------------------------------------------------------------------------- */

static enum err remove_segment(struct reload *r, struct segment *s)
{
    static const char *const suffixes[] = {INDEX_SUFFIX, TIMEINDEX_SUFFIX, TXNINDEX_SUFFIX,
                                           LOG_SUFFIX};
    enum err err = ERR_NONE;

    for (size_t i = 0; !err && i < ARRAY_LEN(suffixes); i++) {
        char *path = offset_path(r->path, s->base_offset, suffixes[i]);
        err = io_path_unlink(r->io, path);
        free(path);
        if (err == ERR_NOT_FOUND)
            err = ERR_NONE;
    }
    return err;
}

static enum err remove_last_segment(struct reload *r)
{
    struct segment *s = r->segments[r->segment_count - 1].segment;
    enum err err = remove_segment(r, s);

    if (!err) {
        segment_unref(s);
        r->segment_count--;
    }
    return err;
}

/* Nothing is left, neither batches nor the producers' history: an empty segment begins at `base`.
 * All others have gone when it appears, or a crash could leave a hole between them and it. */
static enum err start_over(struct reload *r, const struct io_names *names, int64_t base)
{
    enum err err = snapshots_remove_above(r->io, r->path, names, -1);
    struct segment *s;

    while (!err && r->segment_count > 0)
        err = remove_last_segment(r);
    if (!err)
        err = io_dir_sync(r->io, r->path);
    if (err)
        return err;
    s = segment_new(base);
    err = segment_create_files(s, r->io, r->path);
    if (err) {
        segment_unref(s);
        return err;
    }
    r->segments[0] = (struct segment_span){.segment = s, .max_timestamp = -1};
    r->segment_count = 1;
    return io_dir_sync(r->io, r->path);
}

static enum err cut_last_segment(struct reload *r)
{
    struct segment_span *span = &r->segments[r->segment_count - 1];
    struct restored restored;
    enum err err = tail_restore(span->segment, r->offset, &restored);

    if (err)
        return err;
    r->tail = restored.tail;
    r->end = MAX(restored.next_offset, span->segment->base_offset);
    span->size = r->tail.size;
    span->index_count = r->tail.index_count;
    span->time_count = r->tail.time_count;
    span->txn_count = r->tail.txn_count;
    span->max_timestamp = r->tail.max_timestamp;
    err = io_file_truncate(span->segment->log, r->tail.size);
    return err ? err : segment_sync(span->segment);
}

static enum err cut_segments(struct reload *r, const struct io_names *names)
{
    enum err err = ERR_NONE;

    while (!err && r->segment_count > 0 &&
           r->segments[r->segment_count - 1].segment->base_offset > r->offset)
        err = remove_last_segment(r);
    if (!err && r->segment_count == 0)
        err = start_over(r, names, r->offset);
    if (!err)
        err = io_dir_sync(r->io, r->path);
    if (!err)
        err = cut_last_segment(r);
    if (err || r->end >= r->start || r->offset < r->start)
        return err;
    err = start_over(r, names, r->start);
    return err ? err : cut_last_segment(r);
}

static enum err begin_anew(struct reload *r, const struct io_names *names)
{
    enum err err = start_over(r, names, r->offset);

    return err ? err : cut_last_segment(r);
}

static enum err cut_files(struct reload *r, const struct io_names *names)
{
    enum err err = r->is_anew ? begin_anew(r, names) : cut_segments(r, names);

    if (!err)
        err = snapshots_remove_above(r->io, r->path, names, r->end);
    if (!err && epochs_truncate_end(&r->epochs, r->is_anew ? 0 : r->end))
        err = epochs_write(r->io, r->path, &r->epochs);
    return err;
}

/* For the next start too: below the cut there may be none of our snapshots left. */
static enum err remember_producers(struct reload *r)
{
    struct producers past;
    struct buf text;
    int64_t offset;
    char *path;
    enum err err;

    producers_init(&past);
    err = snapshot_parse(buf_bytes(&r->past, 0), &offset, &past);
    if (!err)
        producers_remember(&r->producers, &past, r->end);
    producers_fini(&past);
    if (err)
        return err;
    buf_init(&text);
    snapshot_format(&r->producers, r->end, &text);
    path = offset_path(r->path, r->end, PRODUCERS_SUFFIX);
    err = io_file_replace(r->io, path, buf_bytes(&text, 0));
    free(path);
    buf_fini(&text);
    return err;
}

enum err log_reload_truncated(struct reload *r)
{
    struct replay replay = {.io = r->io, .path = r->path, .producers = &r->producers};
    struct io_names names;
    enum err err = io_dir_list(r->io, r->path, &names);

    if (!err)
        err = cut_files(r, &names);
    if (!err) {
        replay.names = &names;
        replay.segments = r->segments;
        replay.segment_count = r->segment_count;
        replay.upto = r->end;
        producers_from_snapshot(&replay);
        err = producers_replay_rest(&replay);
    }
    io_names_free(&names);
    if (!err && r->is_anew)
        r->producers.forgotten_id = r->end > 0 ? INT64_MAX : -1;
    else if (!err)
        err = remember_producers(r);
    return err;
}
