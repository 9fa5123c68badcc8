/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segment that the cleaner writes: `.cleaned` files that nothing else looks at until they are
 * complete and on the device. Batches gather in memory and go out in large writes; index entries
 * follow the rules of the append (segment_tail_add) and are written at the end. A start removes
 * whatever of these files it finds.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/clean_int.h"

#define WRITE_BYTES ((size_t)512 * 1024)

const char *const segment_suffixes[SEGMENT_FILES] = {LOG_SUFFIX, INDEX_SUFFIX, TIMEINDEX_SUFFIX,
                                                     TXNINDEX_SUFFIX};

char *segment_file_path(const char *dir, int64_t base, const char *suffix, const char *more)
{
    char *plain = offset_path(dir, base, suffix);
    char *path = xasprintf("%s%s", plain, more);

    free(plain);
    return path;
}

static enum err make(struct io *io, const char *dir, int64_t base, const char *suffix,
                     struct io_file **out)
{
    char *path = segment_file_path(dir, base, suffix, CLEANED_SUFFIX);
    enum err err =
        io_file_open(io, path, IO_OPEN_READ | IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNC, out);

    free(path);
    return err;
}

enum err clean_output_open(struct clean_output *o, struct io *io, const char *dir, int64_t base)
{
    enum err err;

    assert(!o->segment);
    o->segment = segment_new(base);
    segment_tail_init(&o->tail);
    o->batch_timestamp = -1;
    buf_reset(&o->pending);
    buf_reset(&o->index);
    buf_reset(&o->time);
    buf_reset(&o->txn);
    err = make(io, dir, base, LOG_SUFFIX, &o->segment->log);
    if (!err)
        err = make(io, dir, base, INDEX_SUFFIX, &o->segment->index);
    if (!err)
        err = make(io, dir, base, TIMEINDEX_SUFFIX, &o->segment->timeindex);
    return err;
}

static enum err write_at(struct io_file *f, struct buf *b, int64_t pos)
{
    struct iovec iov = {.iov_base = b->p, .iov_len = b->n};
    enum err err = b->n > 0 ? io_file_write(f, &iov, 1, pos) : ERR_NONE;

    buf_reset(b);
    return err;
}

static enum err write_pending(struct clean_output *o)
{
    return write_at(o->segment->log, &o->pending, o->tail.size - (int64_t)o->pending.n);
}

enum err clean_output_add(struct clean_output *o, struct bytes batch, const struct batch_header *h,
                          int32_t index_interval_bytes)
{
    struct index_entries entries;
    struct batch_extent extent = {
        .last_offset = batch_last_offset(h),
        .max_timestamp = h->record_count > 0 ? h->max_timestamp : -1,
        .bytes = batch.n,
    };

    /* The time index leads to records; what an emptied batch had counts if there are none. */
    o->batch_timestamp = MAX(o->batch_timestamp, h->max_timestamp);
    segment_tail_add(&o->tail, o->segment->base_offset, &extent, index_interval_bytes, &entries);
    if (entries.has_index)
        buf_append(&o->index, entries.index, sizeof(entries.index));
    if (entries.has_time)
        buf_append(&o->time, entries.time, sizeof(entries.time));
    buf_append(&o->pending, batch.p, (size_t)batch.n);
    return o->pending.n < WRITE_BYTES ? ERR_NONE : write_pending(o);
}

void clean_output_add_abort(struct clean_output *o, const struct txn_entry *e)
{
    txn_entry_put(buf_extend(&o->txn, TXNINDEX_ENTRY_BYTES), e);
    o->tail.txn_count++;
}

static enum err write_indexes(struct clean_output *o, struct io *io, const char *dir)
{
    struct segment *s = o->segment;
    uint8_t entry[TIMEINDEX_ENTRY_BYTES];
    enum err err;

    if (segment_tail_finish(&o->tail, s->base_offset, entry))
        buf_append(&o->time, entry, sizeof(entry));
    err = write_at(s->index, &o->index, 0);
    if (!err)
        err = write_at(s->timeindex, &o->time, 0);
    if (!err && o->txn.n > 0)
        err = make(io, dir, s->base_offset, TXNINDEX_SUFFIX, &s->txnindex);
    s->shared_txnindex = s->txnindex;
    if (!err && o->txn.n > 0)
        err = write_at(s->txnindex, &o->txn, 0);
    return err;
}

enum err clean_output_finish(struct clean_output *o, struct io *io, const char *dir,
                             int64_t mtime_ms, struct segment_span *span)
{
    struct segment *s = o->segment;
    enum err err = write_pending(o);

    if (!err)
        err = write_indexes(o, io, dir);
    if (!err)
        err = io_file_set_mtime(s->log, mtime_ms);
    if (!err)
        err = segment_sync(s);
    if (err)
        return err;
    *span = (struct segment_span){
        .segment = s,
        .size = o->tail.size,
        .index_count = o->tail.index_count,
        .time_count = o->tail.time_count,
        .txn_count = o->tail.txn_count,
        .max_timestamp = o->tail.max_timestamp >= 0 ? o->tail.max_timestamp : o->batch_timestamp,
        .first_timestamp = o->tail.first_timestamp,
    };
    o->segment = NULL;
    return ERR_NONE;
}

void clean_discard(struct io *io, const char *dir, int64_t base)
{
    for (size_t i = 0; i < SEGMENT_FILES; i++) {
        char *path = segment_file_path(dir, base, segment_suffixes[i], CLEANED_SUFFIX);
        enum err err = io_path_unlink(io, path);
        if (err && err != ERR_NOT_FOUND)
            trace_warn("clean.unlink", "path=%s error=%s", path, err_name(err));
        free(path);
    }
}

void clean_output_fini(struct clean_output *o)
{
    segment_unref(o->segment);
    buf_fini(&o->pending);
    buf_fini(&o->index);
    buf_fini(&o->time);
    buf_fini(&o->txn);
    *o = (struct clean_output){.segment = NULL};
}
