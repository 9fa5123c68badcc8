/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cleaner's work on files: first the newest offset of each key is taken from the dirty part,
 * then all segments from the log start up to where the map reaches are copied in groups, less what
 * is not needed any more. What is kept keeps its offset and its place.
 *
 * A record goes when the map knows a newer one of its key, or when it is a tombstone whose batch's
 * delete horizon has passed (KIP-534: set by the run that first keeps the tombstone, as the base of
 * the batch's timestamps). Records without a key go, as in Kafka: a compacted topic takes none. Of
 * transactions, aborted data goes whole and markers are never opened (clean_txns.c).
 *
 * A batch stays, emptied if need be, when it holds the last data of a producer that the log knows,
 * or the last epoch of one without data: whoever rebuilds producers from the log has to find them.
 * So does the last batch of each new segment: the next segment begins where it ends, a compacted
 * log has no holes between segments and never ends earlier than it did (KAFKA-17076).
 *
 * Sources that fit together become one segment. The new one may hold larger batches than the old
 * ones, by their horizons; a batch is left as it was when the rest would not fit any more in 2^31
 * bytes, so a group is always one segment.
 *
 * The work is done in slices: the two loops over batches keep their place in the cleaner.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/planted.h"
#include "log/clean_int.h"

#define READ_BYTES ((int64_t)512 * 1024)

/* ---- Sources ---------------------------------------------------------------------------- */

static const struct segment_span *source(const struct cleaner *c, size_t i)
{
    return &c->_view.list->v[i];
}

int64_t cleaner_base_of(const struct cleaner *c, size_t i)
{
    return source(c, i)->segment->base_offset;
}

static void go_to(struct cleaner *c, size_t i)
{
    c->_at = i;
    c->_pos = 0;
    buf_reset(&c->_batch);
}

/* The n bytes at _pos of the present source. */
static enum err load(struct cleaner *c, int64_t n)
{
    const struct segment_span *s = source(c, c->_at);
    int64_t have = c->_batch_pos + (int64_t)c->_batch.n - c->_pos;
    int64_t want = MIN(MAX(n, READ_BYTES), s->size - c->_pos);

    if (c->_pos + n > s->size)
        return ERR_CORRUPT_MESSAGE;
    if (c->_batch.n > 0 && have >= n)
        return ERR_NONE;
    buf_reset(&c->_batch);
    c->_batch_pos = c->_pos;
    c->bytes_moved += want;
    return read_fully(s->segment->log, buf_extend(&c->_batch, (size_t)want), (size_t)want, c->_pos,
                      LOG_BLOCKING);
}

/* The batch at _pos, which moves behind it. However large, it is read whole (KAFKA-6834). */
static enum err next_batch(struct cleaner *c, struct bytes *batch, struct batch_header *h)
{
    enum err err = load(c, BATCH_HEADER_BYTES);

    if (err)
        return err;
    batch->p = c->_batch.p + (c->_pos - c->_batch_pos);
    batch->n = BATCH_HEADER_BYTES;
    if (batch_header_parse(*batch, h))
        return ERR_CORRUPT_MESSAGE;
    err = load(c, batch_total_bytes(h));
    if (err)
        return err;
    batch->p = c->_batch.p + (c->_pos - c->_batch_pos);
    batch->n = batch_total_bytes(h);
    if (!batch_crc_ok(*batch) || h->base_offset < c->_next_offset)
        return ERR_CORRUPT_MESSAGE;
    c->_next_offset = batch_last_offset(h) + 1;
    c->_pos += batch->n;
    c->_remaining -= batch->n;
    return ERR_NONE;
}

static const struct txn_entry *abort_of(const struct cleaner *c, const struct batch_header *h)
{
    return batch_is_transactional(h)
               ? clean_txns_abort_of(&c->_txns, h->producer_id, h->base_offset)
               : NULL;
}

/* ---- The map ---------------------------------------------------------------------------- */

/* *full: the map had no room for the record at map_upto. */
static enum err map_batch(struct cleaner *c, struct bytes batch, bool *full)
{
    struct record r;
    enum err err = record_iter_batch(&c->_iter, batch);

    while (!err && !(err = record_iter_next(&c->_iter, &r))) {
        if (r.key.n < 0 || r.offset < c->dirty_from)
            continue;
        if (!offset_map_put(&c->_map, r.key, r.offset)) {
            c->map_upto = r.offset;
            *full = true;
            return ERR_NONE;
        }
    }
    return err == ERR_EOF ? ERR_NONE : err;
}

static void begin_group(struct cleaner *c, size_t first);

static void end_map(struct cleaner *c)
{
    c->_next_offset = -1;
    while (c->_copy_count < c->source_count && cleaner_base_of(c, c->_copy_count) < c->map_upto)
        c->_copy_count++;
    begin_group(c, 0);
}

static enum err map_one(struct cleaner *c)
{
    struct batch_header h;
    struct bytes batch;
    bool full = false;
    enum err err;

    if (c->_at == c->source_count) {
        c->map_upto = c->upto; /* Whatever the last batch ends with (KAFKA-8764). */
        end_map(c);
        return ERR_NONE;
    }
    if (c->_pos == source(c, c->_at)->size) {
        go_to(c, c->_at + 1);
        return ERR_NONE;
    }
    err = next_batch(c, &batch, &h);
    if (err || batch_is_control(&h) || batch_last_offset(&h) < c->dirty_from || abort_of(c, &h))
        return err;
    err = map_batch(c, batch, &full);
    if (!err && full)
        end_map(c);
    return err;
}

/* ---- One record, one batch -------------------------------------------------------------- */

static int64_t horizon_of(const struct batch_header *h)
{
    return h->attributes & BATCH_DELETE_HORIZON ? h->base_timestamp : -1;
}

static int64_t new_horizon(const struct cleaner *c)
{
    int64_t sum;

    return __builtin_add_overflow(c->now_ms, c->config.delete_retention_ms, &sum) ? INT64_MAX : sum;
}

static bool is_kept(const struct cleaner *c, const struct record *r, int64_t horizon)
{
    if (r->offset >= c->map_upto)
        return true;
    if (r->key.n < 0 || r->offset < offset_map_get(&c->_map, r->key) + PLANTED(CLEAN_THE_NEWEST))
        return false;
    return r->value.n >= 0 || horizon < 0 || c->now_ms < horizon;
}

static int compare_id(const void *key, const void *p)
{
    int64_t id = *(const int64_t *)key;
    int64_t other = ((const struct clean_producer *)p)->producer_id;

    return (id > other) - (id < other);
}

static bool is_last_of_producer(const struct cleaner *c, const struct batch_header *h)
{
    const struct clean_producer *p = NULL;

    if (h->producer_id >= 0 && c->producer_count > 0)
        p = bsearch(&h->producer_id, c->producers, c->producer_count, sizeof(*p), compare_id);
    if (!p)
        return false;
    if (batch_is_control(h))
        return p->last_offset < 0 && p->epoch == h->producer_epoch;
    return h->base_offset <= p->last_offset && p->last_offset <= batch_last_offset(h);
}

static bool is_last_of_group(const struct cleaner *c)
{
    return c->_remaining == 0;
}

static bool must_stay(const struct cleaner *c, const struct batch_header *h)
{
    return is_last_of_group(c) || is_last_of_producer(c, h);
}

static enum err keep_as_is(struct cleaner *c, struct bytes batch, const struct batch_header *h)
{
    c->bytes_moved += batch.n;
    return clean_output_add(&c->_out, batch, h, c->config.index_interval_bytes);
}

/* The records that are kept, under the header that was. */
static enum err rewrite(struct cleaner *c, struct bytes batch, const struct batch_header *h,
                        int64_t horizon, bool keeps_all, struct buf *out)
{
    struct batch_spec spec = batch_spec_of(h);
    struct batch_builder b;
    struct record r;
    enum err err = record_iter_batch(&c->_iter, batch);

    spec.delete_horizon_ms = horizon;
    batch_builder_init(&b, &spec);
    while (!err && !(err = record_iter_next(&c->_iter, &r))) {
        if (keeps_all || is_kept(c, &r, horizon_of(h)))
            err = batch_builder_append_at(&b, &r);
    }
    if (err == ERR_EOF) {
        batch_builder_finish(&b, out);
        err = ERR_NONE;
    }
    batch_builder_fini(&b);
    return err;
}

static void empty(const struct batch_header *h, struct buf *out)
{
    struct batch_spec spec = batch_spec_of(h);
    struct batch_builder b;

    spec.delete_horizon_ms = -1;
    batch_builder_init(&b, &spec);
    batch_builder_finish(&b, out);
    batch_builder_fini(&b);
}

/* Adds what was made of a batch, or the batch itself if that would make the segment too large. */
static enum err add_changed(struct cleaner *c, struct bytes batch, const struct batch_header *h,
                            const struct buf *made)
{
    struct batch_header header;
    enum err err;

    if (c->_out.tail.size + (int64_t)made->n + c->_remaining > INT32_MAX)
        return keep_as_is(c, batch, h);
    err = batch_header_parse(buf_bytes(made, 0), &header);
    if (err)
        return err;
    c->_group_changed = true;
    return keep_as_is(c, buf_bytes(made, 0), &header);
}

/* No record is left of it. */
static enum err drop(struct cleaner *c, struct bytes batch, const struct batch_header *h)
{
    struct buf made;
    enum err err;

    c->records_dropped += h->record_count;
    if (!must_stay(c, h)) {
        c->_group_changed = true;
        return ERR_NONE;
    }
    if (h->record_count == 0)
        return keep_as_is(c, batch, h);
    buf_init(&made);
    empty(h, &made);
    err = add_changed(c, batch, h, &made);
    buf_fini(&made);
    return err;
}

/* ---- Data ------------------------------------------------------------------------------- */

struct tally {
    int32_t kept;
    bool has_tombstone; /* among those */
};

static enum err count_kept(struct cleaner *c, struct bytes batch, const struct batch_header *h,
                           struct tally *t)
{
    struct record r;
    enum err err = record_iter_batch(&c->_iter, batch);

    while (!err && !(err = record_iter_next(&c->_iter, &r))) {
        bool kept = is_kept(c, &r, horizon_of(h));
        t->kept += kept;
        t->has_tombstone |= kept && r.value.n < 0;
        c->keyless_dropped += !kept && r.key.n < 0;
    }
    return err == ERR_EOF ? ERR_NONE : err;
}

static enum err copy_data(struct cleaner *c, struct bytes batch, const struct batch_header *h)
{
    struct tally t = {.kept = 0};
    int64_t horizon = horizon_of(h);
    struct buf made;
    enum err err;

    if (batch_is_transactional(h))
        clean_txns_see_data(&c->_txns, h->producer_id);
    if (abort_of(c, h))
        return drop(c, batch, h);
    err = count_kept(c, batch, h, &t);
    if (err)
        return err;
    if (t.kept == 0)
        return drop(c, batch, h);
    if (t.has_tombstone && horizon < 0 && batch_last_offset(h) < c->map_upto)
        horizon = new_horizon(c);
    if (t.kept == h->record_count && horizon == horizon_of(h))
        return keep_as_is(c, batch, h);
    c->records_dropped += h->record_count - t.kept;
    buf_init(&made);
    err = rewrite(c, batch, h, horizon, false, &made);
    if (!err)
        err = add_changed(c, batch, h, &made);
    buf_fini(&made);
    return err;
}

/* ---- Markers ---------------------------------------------------------------------------- */

/* No data is left in front of the marker. */
static enum err copy_lone_marker(struct cleaner *c, struct bytes batch,
                                 const struct batch_header *h)
{
    struct buf made;
    enum err err;

    if (must_stay(c, h) || batch_last_offset(h) >= c->map_upto)
        return keep_as_is(c, batch, h);
    if (horizon_of(h) >= 0 || h->record_count == 0)
        return c->now_ms < horizon_of(h) ? keep_as_is(c, batch, h) : drop(c, batch, h);
    buf_init(&made);
    err = rewrite(c, batch, h, new_horizon(c), true, &made);
    if (!err)
        err = add_changed(c, batch, h, &made);
    buf_fini(&made);
    return err;
}

static enum err copy_control(struct cleaner *c, struct bytes batch, const struct batch_header *h)
{
    struct producer_event event;
    const struct txn_entry *abort;
    enum err err = producer_event_of(batch, h, &event);

    if (err)
        return err;
    if (event.producer_id < 0)
        return keep_as_is(c, batch, h); /* Not of a transaction: never ours to judge. */
    if (!clean_txns_see_marker(&c->_txns, h->producer_id))
        return copy_lone_marker(c, batch, h);
    abort = abort_of(c, h);
    if (event.is_abort && abort)
        clean_output_add_abort(&c->_out, abort);
    return keep_as_is(c, batch, h);
}

/* ---- Groups ----------------------------------------------------------------------------- */

static int64_t index_bytes(const struct segment_span *s)
{
    return MAX(s->index_count * INDEX_ENTRY_BYTES, s->time_count * TIMEINDEX_ENTRY_BYTES);
}

/* How many sources from `first` on fit in one segment; empty ones always do (KAFKA-12889). */
static size_t choose_group(const struct cleaner *c, size_t first)
{
    int64_t bytes = source(c, first)->size;
    int64_t indexes = index_bytes(source(c, first));
    size_t i = first + 1;

    for (; i < c->_copy_count; i++) {
        const struct segment_span *s = source(c, i);
        bytes += s->size;
        indexes += index_bytes(s);
        if (bytes > c->config.segment_bytes || indexes > c->config.segment_index_bytes ||
            (s->size > 0 && cleaner_base_of(c, i + 1) - 1 - cleaner_base_of(c, first) > INT32_MAX))
            break;
    }
    return i;
}

static void begin_group(struct cleaner *c, size_t first)
{
    c->group_first = c->group_end = first;
    if (first == c->_copy_count) {
        c->phase = CLEAN_END;
        return;
    }
    c->phase = CLEAN_COPY;
    c->group_end = choose_group(c, first);
    c->_group_changed = c->group_end > first + 1;
    c->_remaining = 0;
    for (size_t i = first; i < c->group_end; i++)
        c->_remaining += source(c, i)->size;
    go_to(c, first);
}

static enum err end_group(struct cleaner *c)
{
    struct io_stat st;
    enum err err;

    if (!c->_group_changed) {
        cleaner_discard(c);
        begin_group(c, c->group_end);
        return ERR_NONE;
    }
    err = io_file_stat(source(c, c->group_end - 1)->segment->log, &st);
    if (!err)
        err = clean_output_finish(&c->_out, c->io, c->path, st.mtime_ms, &c->span);
    if (!err)
        c->phase = CLEAN_GROUP;
    return err;
}

static enum err copy_one(struct cleaner *c)
{
    struct batch_header h;
    struct bytes batch;
    enum err err;

    if (!c->_out.segment)
        return clean_output_open(&c->_out, c->io, c->path, cleaner_base_of(c, c->group_first));
    if (c->_at == c->group_end)
        return end_group(c);
    if (c->_pos == source(c, c->_at)->size) {
        go_to(c, c->_at + 1);
        return ERR_NONE;
    }
    err = next_batch(c, &batch, &h);
    if (err)
        return err;
    return batch_is_control(&h) ? copy_control(c, batch, &h) : copy_data(c, batch, &h);
}

/* ---- Public ----------------------------------------------------------------------------- */

void cleaner_init(struct cleaner *c)
{
    view_load(log_snapshot_view(c->snapshot), &c->_view);
    assert(c->source_count < c->_view.list->n);
    record_iter_init(&c->_iter);
    c->_next_offset = -1;
    while (c->_at + 1 < c->source_count && cleaner_base_of(c, c->_at + 1) <= c->dirty_from)
        c->_at++;
}

static enum err start(struct cleaner *c)
{
    c->_is_started = true;
    offset_map_init(&c->_map, c->map_bytes, c->upto - c->dirty_from, c->secret);
    return clean_txns_load(&c->_txns, &c->_view);
}

enum err cleaner_step(struct cleaner *c, int64_t bytes)
{
    int64_t limit = c->bytes_moved + bytes;
    enum err err = c->_is_started ? ERR_NONE : start(c);

    while (!err && c->phase <= CLEAN_COPY && c->bytes_moved < limit)
        err = c->phase == CLEAN_MAP ? map_one(c) : copy_one(c);
    return err;
}

void cleaner_next_group(struct cleaner *c)
{
    begin_group(c, c->group_end);
}

void cleaner_discard(struct cleaner *c)
{
    segment_unref(c->_out.segment);
    segment_unref(c->span.segment);
    c->_out.segment = c->span.segment = NULL;
    if (c->phase == CLEAN_COPY || c->phase == CLEAN_GROUP)
        clean_discard(c->io, c->path, cleaner_base_of(c, c->group_first));
}

void cleaner_fini(struct cleaner *c)
{
    offset_map_fini(&c->_map);
    clean_txns_fini(&c->_txns);
    clean_output_fini(&c->_out);
    segment_unref(c->span.segment);
    record_iter_fini(&c->_iter);
    buf_fini(&c->_batch);
    free(c->producers);
    log_snapshot_free(c->snapshot);
}
