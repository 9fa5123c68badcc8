/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a segment from some batch to its end, in recovery and after a truncation.
 *
 * Two steps. tail_restore finds out where the batch at an offset starts and what the indexes know
 * up to there; it trusts nothing: index entries count only as far as they ascend, lie inside the
 * file and stay below the offset, and the last of them must point at a batch that ends where it
 * says. Whatever lies behind is cut off the index files. scan_segment then reads every batch from
 * there, checks it, and gives it to indexes, epochs and producers by the rules of the append.
 *
 * A scan does not judge what a bad batch means; it stops in front of it.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/planted.h"
#include "log/log_int.h"

#define BUFFER_BYTES ((size_t)1024 * 1024)
/* An index with a hole as wide as this is built again; a narrower one only costs some walking. */
#define INDEX_GAP_BYTES_MAX ((int64_t)4 * 1024 * 1024)

/* ---- Restoring the tail ----------------------------------------------------------------- */

static enum err file_size(struct io_file *f, int64_t *size)
{
    struct io_stat st;
    enum err err = io_file_stat(f, &st);

    *size = err ? 0 : st.size;
    return err;
}

static enum err read_whole(struct io_file *f, struct buf *out)
{
    int64_t size;
    enum err err = file_size(f, &size);

    buf_reset(out);
    if (err || size == 0)
        return err;
    return read_fully(f, buf_extend(out, (size_t)size), (size_t)size, 0, LOG_BLOCKING);
}

/* Counts the entries that make sense and lie below `offset`; *pos is where the last one points. */
static int64_t count_index(const struct buf *b, int64_t base, int64_t offset, int64_t log_size,
                           int64_t *pos, int64_t *last_offset)
{
    int64_t n = 0;
    int64_t last_relative = -1;

    *pos = 0;
    *last_offset = -1;
    for (; (n + 1) * INDEX_ENTRY_BYTES <= (int64_t)b->n; n++) {
        const uint8_t *p = b->p + n * INDEX_ENTRY_BYTES;
        int64_t relative = get_i32(p);
        int64_t at = get_i32(p + 4);
        if (relative <= last_relative || at <= *pos || relative >= offset - base ||
            at + BATCH_HEADER_BYTES > log_size)
            break;
        last_relative = relative;
        *pos = at;
        *last_offset = base + relative;
    }
    return n;
}

static int64_t count_timeindex(const struct buf *b, int64_t base, int64_t offset,
                               struct segment_tail *t)
{
    int64_t n = 0;
    int64_t last_relative = -1;

    for (; (n + 1) * TIMEINDEX_ENTRY_BYTES <= (int64_t)b->n; n++) {
        const uint8_t *p = b->p + n * TIMEINDEX_ENTRY_BYTES;
        int64_t timestamp = get_i64(p);
        int64_t relative = get_i32(p + 8);
        if (timestamp <= t->time_last || relative < last_relative || relative < 0 ||
            relative >= offset - base)
            break;
        last_relative = relative;
        t->time_last = t->max_timestamp = timestamp;
        t->max_timestamp_offset = base + relative;
    }
    return n;
}

static int64_t count_txnindex(const struct buf *b, int64_t offset)
{
    int64_t n = 0;

    for (; (n + 1) * TXNINDEX_ENTRY_BYTES <= (int64_t)b->n; n++) {
        struct txn_entry e;
        if (!txn_entry_get(b->p + n * TXNINDEX_ENTRY_BYTES, &e) || e.last_offset >= offset)
            break;
    }
    return n;
}

/* Whether the batch at `pos` is there and ends at `last_offset`. */
static bool points_at_batch(struct segment *s, int64_t pos, int64_t last_offset, int64_t log_size)
{
    struct header_walk w;

    header_walk_init(&w, s->log, pos, log_size, LOG_BLOCKING);
    return header_walk_next(&w) == ERR_NONE && batch_last_offset(&w.header) == last_offset;
}

static enum err read_indexes(struct segment *s, int64_t offset, int64_t log_size,
                             struct segment_tail *t, int64_t *pos)
{
    struct buf b;
    int64_t time_offset = offset;
    int64_t last_offset;
    enum err err;

    buf_init(&b);
    err = read_whole(s->index, &b);
    if (!err) {
        t->index_count = count_index(&b, s->base_offset, offset, log_size, pos, &last_offset);
        if (t->index_count > 0 && !points_at_batch(s, *pos, last_offset, log_size)) {
            /* All or nothing: both are built again from the first batch. The aborts are not: they
             * are learned from the offset on. */
            t->index_count = 0;
            *pos = 0;
            time_offset = s->base_offset;
        }
        err = read_whole(s->timeindex, &b);
    }
    if (!err) {
        t->time_count = count_timeindex(&b, s->base_offset, time_offset, t);
        err = s->txnindex ? read_whole(s->txnindex, &b) : ERR_NONE;
    }
    if (!err && s->txnindex)
        t->txn_count = count_txnindex(&b, offset);
    buf_fini(&b);
    return err;
}

/* Cuts a file that is longer; a truncation to the same size would change its time. */
static enum err cut_to(struct io_file *f, int64_t size)
{
    int64_t now;
    enum err err = file_size(f, &now);

    if (err || now == size)
        return err;
    return io_file_truncate(f, size);
}

enum err segment_cut_indexes(struct segment *s, const struct segment_tail *t)
{
    enum err err = cut_to(s->index, t->index_count * INDEX_ENTRY_BYTES);

    if (!err)
        err = cut_to(s->timeindex, t->time_count * TIMEINDEX_ENTRY_BYTES);
    if (!err && s->txnindex)
        err = cut_to(s->txnindex, t->txn_count * TXNINDEX_ENTRY_BYTES);
    return err;
}

static void note_timestamp(struct segment_tail *t, const struct batch_header *h)
{
    if (h->max_timestamp > t->max_timestamp) {
        t->max_timestamp = h->max_timestamp;
        t->max_timestamp_offset = batch_last_offset(h);
    }
}

static enum err first_timestamp(struct segment *s, int64_t log_size, struct segment_tail *t)
{
    struct header_walk w;
    enum err err;

    header_walk_init(&w, s->log, 0, log_size, LOG_BLOCKING);
    err = header_walk_next(&w);
    if (!err)
        t->first_timestamp = w.header.max_timestamp;
    return err == ERR_IO ? err : ERR_NONE;
}

/* Walks from the last index entry to the batch that does not end below `offset`. */
static enum err walk_to(struct segment *s, int64_t offset, int64_t log_size, struct segment_tail *t,
                        struct restored *out)
{
    struct header_walk w;
    enum err err;

    header_walk_init(&w, s->log, t->size, log_size, LOG_BLOCKING);
    while (!(err = header_walk_next(&w)) && batch_last_offset(&w.header) < offset) {
        if (w.header.base_offset < out->next_offset)
            return ERR_NONE; /* Offsets go back: the scan will say what is wrong here. */
        if (t->unindexed_bytes > INDEX_GAP_BYTES_MAX)
            out->has_gap = true;
        note_timestamp(t, &w.header);
        t->unindexed_bytes += w.total;
        t->size = w.pos + w.total;
        out->next_offset = batch_last_offset(&w.header) + 1;
    }
    return err == ERR_EOF || err == ERR_CORRUPT_MESSAGE ? ERR_NONE : err;
}

enum err tail_restore(struct segment *s, int64_t offset, struct restored *out)
{
    struct segment_tail *t = &out->tail;
    int64_t log_size;
    enum err err = file_size(s->log, &log_size);

    segment_tail_init(t);
    out->next_offset = s->base_offset;
    out->has_gap = false;
    if (!err)
        err = read_indexes(s, offset, log_size, t, &t->size);
    if (!err)
        err = first_timestamp(s, log_size, t);
    if (!err)
        err = walk_to(s, offset, log_size, t, out);
    if (!err)
        err = segment_cut_indexes(s, t);
    return err;
}

/* Of a segment without a time index: its batches are emptied, or have no timestamps. */
static bool first_header_timestamp(struct segment *s, int64_t log_size, int64_t *timestamp)
{
    struct segment_tail t;

    segment_tail_init(&t);
    if (first_timestamp(s, log_size, &t))
        return false;
    *timestamp = t.first_timestamp;
    return true;
}

bool index_looks_whole(struct segment *s, int64_t log_size, struct segment_span *span)
{
    uint8_t entry[TIMEINDEX_ENTRY_BYTES];
    int64_t index_size, time_size, txn_size = 0;

    if (file_size(s->index, &index_size) || file_size(s->timeindex, &time_size) ||
        (s->txnindex && file_size(s->txnindex, &txn_size)))
        return false;
    if (index_size % INDEX_ENTRY_BYTES != 0 || time_size % TIMEINDEX_ENTRY_BYTES != 0 ||
        (index_size == 0 && log_size > INDEX_GAP_BYTES_MAX))
        return false;
    span->index_count = index_size / INDEX_ENTRY_BYTES;
    span->time_count = time_size / TIMEINDEX_ENTRY_BYTES;
    span->txn_count = txn_size / TXNINDEX_ENTRY_BYTES;
    span->max_timestamp = -1;
    if (index_size > 0 &&
        (read_fully(s->index, entry, INDEX_ENTRY_BYTES, index_size - INDEX_ENTRY_BYTES,
                    LOG_BLOCKING) ||
         get_i32(entry) <= 0 || get_i32(entry + 4) <= 0 || get_i32(entry + 4) >= log_size))
        return false;
    if (time_size > 0 && read_fully(s->timeindex, entry, TIMEINDEX_ENTRY_BYTES,
                                    time_size - TIMEINDEX_ENTRY_BYTES, LOG_BLOCKING))
        return false;
    if (time_size > 0)
        span->max_timestamp = get_i64(entry);
    else if (log_size > 0)
        return first_header_timestamp(s, log_size, &span->max_timestamp);
    return true;
}

/* ---- Scanning --------------------------------------------------------------------------- */

struct window {
    struct io_file *file;
    int64_t size; /* of the file */
    int64_t pos;  /* of the first byte in memory */
    size_t n;     /* bytes in memory */
    struct buf bytes;
};

/* The bytes [pos, pos + n) in memory; n <= size - pos. */
static enum err window_get(struct window *w, int64_t pos, size_t n, const uint8_t **out)
{
    if (pos < w->pos || pos + (int64_t)n > w->pos + (int64_t)w->n) {
        size_t want = MAX(n, MIN(BUFFER_BYTES, (size_t)(w->size - pos)));
        buf_reset(&w->bytes);
        enum err err = read_fully(w->file, buf_extend(&w->bytes, want), want, pos, LOG_BLOCKING);
        w->pos = pos;
        w->n = err ? 0 : want;
        if (err)
            return err;
    }
    *out = w->bytes.p + (pos - w->pos);
    return ERR_NONE;
}

/* Index entries of a scan, written together at its end. */
struct built {
    struct buf index;
    struct buf time;
    struct buf txn;
};

static void add_abort(struct scan *s, struct built *b, const struct producer_event *e,
                      int64_t first_offset)
{
    int64_t open = producers_first_open(s->producers);
    struct txn_entry entry = {
        .producer_id = e->producer_id,
        .first_offset = first_offset,
        .last_offset = e->last_offset,
        .last_stable_offset = MIN(open, e->last_offset + 1),
    };

    txn_entry_put(buf_extend(&b->txn, TXNINDEX_ENTRY_BYTES), &entry);
    s->tail.txn_count++;
}

static void learn(struct scan *s, struct built *b, const struct producer_event *e)
{
    int64_t first;

    if (e->base_offset < s->replay_from)
        return;
    first = producers_replay(s->producers, e);
    if (e->is_abort && first >= 0)
        add_abort(s, b, e, first);
}

static void accept_batch(struct scan *s, struct built *b, const struct batch_header *h,
                         const struct producer_event *e)
{
    struct index_entries entries;
    struct batch_extent extent = {
        .last_offset = batch_last_offset(h),
        .max_timestamp = h->max_timestamp,
        .bytes = batch_total_bytes(h),
    };

    segment_tail_add(&s->tail, s->segment->base_offset, &extent, s->index_interval_bytes, &entries);
    if (entries.has_index)
        buf_append(&b->index, entries.index, sizeof(entries.index));
    if (entries.has_time)
        buf_append(&b->time, entries.time, sizeof(entries.time));
    if (h->leader_epoch > epochs_latest(s->epochs))
        s->epochs_changed |= epochs_assign(s->epochs, h->leader_epoch, h->base_offset);
    learn(s, b, e);
    s->next_offset = batch_last_offset(h) + 1;
    s->bytes_scanned += extent.bytes;
    if (s->job)
        atomic_fetch_add_explicit(&s->job->progress, extent.bytes, memory_order_relaxed);
}

/* Whether the bytes are a batch that may stand here. */
static bool is_good(const struct scan *s, struct bytes batch, const struct batch_header *h)
{
    if (h->base_offset < s->next_offset || h->base_offset < s->segment->base_offset)
        return false;
    if (batch_last_offset(h) - s->segment->base_offset > INT32_MAX)
        return false;
    /* One that reaches over the recovery point is none that was there when it was saved. */
    return batch_last_offset(h) < s->verify_from || PLANTED(ACCEPT_TORN_TAIL) ||
           batch_crc_ok(batch);
}

/* Takes the batch at the tail; *bad when there is none. */
static enum err scan_batch(struct scan *s, struct window *w, struct built *b, bool *bad)
{
    struct producer_event event;
    struct batch_header h;
    const uint8_t *p;
    int32_t total;
    int64_t left = w->size - s->tail.size;
    enum err err;

    *bad = true;
    if (left < BATCH_HEADER_BYTES)
        return ERR_NONE;
    err = window_get(w, s->tail.size, BATCH_HEADER_BYTES, &p);
    if (err)
        return err;
    if (batch_frame((struct bytes){.p = p, .n = BATCH_HEADER_BYTES}, &total) || total > left ||
        (PLANTED(CUT_ONE_TOO_MANY) && total == left))
        return ERR_NONE;
    err = window_get(w, s->tail.size, (size_t)total, &p);
    if (err)
        return err;
    struct bytes batch = {.p = p, .n = total};
    if (batch_header_parse(batch, &h) || !is_good(s, batch, &h) ||
        producer_event_of(batch, &h, &event))
        return ERR_NONE;
    *bad = false;
    accept_batch(s, b, &h, &event);
    return ERR_NONE;
}

static enum err write_at(struct io_file *f, const struct buf *b, int64_t pos)
{
    struct iovec iov = {.iov_base = b->p, .iov_len = b->n};

    return b->n > 0 ? io_file_write(f, &iov, 1, pos) : ERR_NONE;
}

static enum err write_built(struct scan *s, const char *dir, const struct built *b)
{
    const struct segment_tail *t = &s->tail;
    enum err err = write_at(s->segment->index, &b->index,
                            t->index_count * INDEX_ENTRY_BYTES - (int64_t)b->index.n);

    if (!err)
        err = write_at(s->segment->timeindex, &b->time,
                       t->time_count * TIMEINDEX_ENTRY_BYTES - (int64_t)b->time.n);
    if (!err && b->txn.n > 0 && !s->segment->txnindex)
        err = segment_create_txnindex(s->segment, s->io, dir);
    s->segment->shared_txnindex = s->segment->txnindex;
    if (!err && b->txn.n > 0)
        err = write_at(s->segment->txnindex, &b->txn,
                       t->txn_count * TXNINDEX_ENTRY_BYTES - (int64_t)b->txn.n);
    return err;
}

bool scan_is_cancelled(const struct scan *s)
{
    return s->job && atomic_load_explicit(&s->job->cancel, memory_order_relaxed);
}

enum err scan_segment(struct scan *s, const char *dir)
{
    struct window w = {.file = s->segment->log};
    struct built b = {.index = {.p = NULL}};
    bool bad = false;
    enum err err = file_size(w.file, &w.size);

    while (!err && !bad && s->tail.size < w.size)
        err = scan_is_cancelled(s) ? ERR_CANCELLED : scan_batch(s, &w, &b, &bad);
    s->found_bad = bad;
    if (!err)
        err = write_built(s, dir, &b);
    buf_fini(&w.bytes);
    buf_fini(&b.index);
    buf_fini(&b.time);
    buf_fini(&b.txn);
    return err;
}
