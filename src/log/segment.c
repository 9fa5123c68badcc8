/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One segment: the files, how their ends move when a batch is added, and how headers are walked.
 *
 * A segment is `<base offset>.log`, batches one behind the other, with a sparse index from offsets
 * to positions and one from timestamps to offsets. The rule for index entries is Kafka's (per batch
 * since KAFKA-806): when more than index.interval.bytes lie behind the last entry, the batch that
 * is being added gets one, with its last offset and its position; a time index entry goes along
 * when the largest timestamp so far has grown. The same function serves appends and recovery, so
 * that a rebuilt index is the one that was lost.
 *
 * Index files are written at their logical end and never mapped: no preallocated zeros, no
 * trimming, and no signal when the disk is full.
 */
#include "log/segment_int.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/planted.h"
#include "log/files_int.h"

struct segment *segment_new(int64_t base_offset)
{
    struct segment *s = xcalloc(1, sizeof(*s));

    atomic_init(&s->refs, 1);
    s->base_offset = base_offset;
    return s;
}

struct segment *segment_ref(struct segment *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

static void unref_file(struct io_file *f)
{
    if (f)
        io_file_unref(f);
}

void segment_unref(struct segment *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    unref_file(s->log);
    unref_file(s->index);
    unref_file(s->timeindex);
    unref_file(s->txnindex);
    free(s);
}

/* ---- Files ------------------------------------------------------------------------------ */

static enum err open_one(struct segment *s, struct io *io, const char *dir, const char *suffix,
                         unsigned flags, struct io_file **out)
{
    char *path = offset_path(dir, s->base_offset, suffix);
    enum err err = io_file_open(io, path, IO_OPEN_READ | IO_OPEN_WRITE | flags, out);

    if (err && err != ERR_NOT_FOUND)
        trace_error("segment.open", "path=%s error=%s", path, err_name(err));
    free(path);
    return err;
}

enum err segment_create_files(struct segment *s, struct io *io, const char *dir)
{
    unsigned flags = IO_OPEN_CREATE | IO_OPEN_TRUNC;
    char *stale = offset_path(dir, s->base_offset, TXNINDEX_SUFFIX);
    enum err err = io_path_unlink(io, stale);

    free(stale);
    if (err == ERR_NOT_FOUND)
        err = ERR_NONE;
    if (!err)
        err = open_one(s, io, dir, LOG_SUFFIX, flags, &s->log);
    if (!err)
        err = open_one(s, io, dir, INDEX_SUFFIX, flags, &s->index);
    if (!err)
        err = open_one(s, io, dir, TIMEINDEX_SUFFIX, flags, &s->timeindex);
    return err;
}

enum err segment_open_files(struct segment *s, struct io *io, const char *dir, bool *index_missing)
{
    enum err err = open_one(s, io, dir, LOG_SUFFIX, 0, &s->log);

    *index_missing = false;
    if (err)
        return err;
    err = open_one(s, io, dir, INDEX_SUFFIX, 0, &s->index);
    if (err == ERR_NOT_FOUND) {
        *index_missing = true;
        err = open_one(s, io, dir, INDEX_SUFFIX, IO_OPEN_CREATE, &s->index);
    }
    if (!err)
        err = open_one(s, io, dir, TIMEINDEX_SUFFIX, IO_OPEN_CREATE, &s->timeindex);
    if (err)
        return err;
    err = open_one(s, io, dir, TXNINDEX_SUFFIX, 0, &s->txnindex);
    s->shared_txnindex = err ? NULL : s->txnindex;
    return err == ERR_NOT_FOUND ? ERR_NONE : err;
}

enum err segment_create_txnindex(struct segment *s, struct io *io, const char *dir)
{
    return open_one(s, io, dir, TXNINDEX_SUFFIX, IO_OPEN_CREATE | IO_OPEN_TRUNC, &s->txnindex);
}

enum err segment_sync(struct segment *s)
{
    enum err err = io_file_sync(s->log);

    if (!err)
        err = io_file_sync(s->index);
    if (!err)
        err = io_file_sync(s->timeindex);
    if (!err && s->shared_txnindex)
        err = io_file_sync(s->shared_txnindex);
    return err;
}

/* ---- The tail --------------------------------------------------------------------------- */

void segment_tail_init(struct segment_tail *t)
{
    *t = (struct segment_tail){
        .time_last = -1,
        .max_timestamp = -1,
        .max_timestamp_offset = -1,
        .first_timestamp = -1,
    };
}

static bool put_time_entry(struct segment_tail *t, int64_t base_offset, uint8_t *entry)
{
    if (t->max_timestamp <= t->time_last)
        return false;
    put_i64(entry, t->max_timestamp);
    put_i32(entry + 8, (int32_t)(t->max_timestamp_offset - base_offset));
    t->time_last = t->max_timestamp;
    t->time_count++;
    return true;
}

void segment_tail_add(struct segment_tail *t, int64_t base_offset, const struct batch_extent *b,
                      int32_t index_interval_bytes, struct index_entries *out)
{
    out->has_index = out->has_time = false;
    assert(b->last_offset >= base_offset && b->last_offset - base_offset <= INT32_MAX);
    if (t->size == 0)
        t->first_timestamp = b->max_timestamp;
    if (b->max_timestamp > t->max_timestamp) {
        t->max_timestamp = b->max_timestamp;
        t->max_timestamp_offset = b->last_offset;
    }
    if (t->unindexed_bytes > index_interval_bytes) {
        put_i32(out->index, (int32_t)(b->last_offset - base_offset));
        put_i32(out->index + 4, (int32_t)(t->size + (PLANTED(INDEX_ONE_TOO_FAR) ? b->bytes : 0)));
        out->has_index = true;
        out->has_time = put_time_entry(t, base_offset, out->time);
        t->index_count++;
        t->unindexed_bytes = 0;
    }
    t->unindexed_bytes += b->bytes;
    t->size += b->bytes;
}

bool segment_tail_finish(struct segment_tail *t, int64_t base_offset,
                         uint8_t entry[static TIMEINDEX_ENTRY_BYTES])
{
    return put_time_entry(t, base_offset, entry);
}

/* ---- Reading ---------------------------------------------------------------------------- */

enum err read_fully(struct io_file *f, void *p, size_t n, int64_t pos, enum log_wait wait)
{
    size_t done = 0;

    while (done < n) {
        size_t got = 0;
        char *to = (char *)p + done;
        enum err err = wait == LOG_BLOCKING
                           ? io_file_read(f, to, n - done, pos + (int64_t)done, &got)
                           : io_read_cached(f, to, n - done, pos + (int64_t)done, &got);
        if (err)
            return err;
        if (got == 0)
            return ERR_EOF;
        done += got;
    }
    return ERR_NONE;
}

void header_walk_init(struct header_walk *w, struct io_file *f, int64_t pos, int64_t end,
                      enum log_wait wait)
{
    w->_file = f;
    w->_next = pos;
    w->_end = end;
    w->_wait = wait;
    w->_window_pos = 0;
    w->_window_n = 0;
    w->pos = pos;
    w->total = 0;
}

/* The header at `pos`: from the window, which is read again where it does not hold it. */
static enum err load_header(struct header_walk *w, int64_t pos, const uint8_t **out)
{
    if (pos < w->_window_pos || pos + BATCH_HEADER_BYTES > w->_window_pos + w->_window_n) {
        int64_t n = MIN((int64_t)sizeof(w->_window), w->_end - pos);
        enum err err = read_fully(w->_file, w->_window, (size_t)n, pos, w->_wait);
        if (err)
            return err == ERR_EOF ? ERR_CORRUPT_MESSAGE : err;
        w->_window_pos = pos;
        w->_window_n = n;
    }
    *out = w->_window + (pos - w->_window_pos);
    return ERR_NONE;
}

enum err header_walk_next(struct header_walk *w)
{
    const uint8_t *p;
    struct bytes header;
    enum err err;

    if (w->_next + BATCH_HEADER_BYTES > w->_end)
        return ERR_EOF;
    err = load_header(w, w->_next, &p);
    if (err)
        return err;
    header = (struct bytes){.p = p, .n = BATCH_HEADER_BYTES};
    err = batch_frame(header, &w->total);
    if (!err)
        err = batch_header_parse(header, &w->header);
    if (err)
        return ERR_CORRUPT_MESSAGE;
    if (w->_next + w->total > w->_end)
        return ERR_EOF;
    w->pos = w->_next;
    w->_next += w->total;
    return ERR_NONE;
}

enum err segment_find(const struct segment_extent *s, int64_t offset, enum log_wait wait,
                      struct header_walk *w)
{
    int64_t pos;
    enum err err = index_floor(s, offset, wait, &pos);

    if (err)
        return err;
    header_walk_init(w, s->segment->log, pos, s->size, wait);
    do {
        err = header_walk_next(w);
    } while (!err && batch_last_offset(&w->header) < offset);
    return err;
}
