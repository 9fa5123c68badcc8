/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments and their indexes, read without the broker's help and checked against each other.
 *
 * A segment is batches one behind the other: each has its checksum, its records can be read, and
 * offsets only grow. An offset index entry names the last offset of a batch and where that batch
 * begins; a time index entry names the largest timestamp so far and the last offset of the batch
 * that has it. So an index is checked by looking up each entry in a table of the segment's batches.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "cli/dump_int.h"
#include "record/record.h"

#define INDEX_ENTRY_BYTES 8
#define TIMEINDEX_ENTRY_BYTES 12
#define TXNINDEX_ENTRY_BYTES 34
#define INDEX_BYTES_MAX (64 * 1024 * 1024)

/* ---- Walking a segment. */

struct walk {
    struct io_file *file;
    int64_t size;
    int64_t pos;      /* of the next batch */
    struct buf bytes; /* the current batch */
    struct batch_header header;
};

/* Reads n bytes at pos; false at the end of the file. */
static bool read_at(struct walk *w, size_t n, int64_t pos)
{
    size_t got;

    buf_reset(&w->bytes);
    return !io_file_read(w->file, buf_extend(&w->bytes, n), n, pos, &got) && got == n;
}

/*
 * The next batch, whole; `with_body` or only its header. ERR_EOF: the end; other errors: what lies
 * here is no batch, or not all of it.
 */
static enum err next_batch(struct walk *w, bool with_body)
{
    int32_t total;
    enum err err;

    if (w->pos == w->size)
        return ERR_EOF;
    if (!read_at(w, BATCH_HEADER_BYTES, w->pos))
        return ERR_AGAIN;
    err = batch_frame(buf_bytes(&w->bytes, 0), &total);
    if (!err)
        err = batch_header_parse(buf_bytes(&w->bytes, 0), &w->header);
    if (err)
        return err;
    if (total > w->size - w->pos || (with_body && !read_at(w, (size_t)total, w->pos)))
        return ERR_AGAIN;
    w->pos += total;
    return ERR_NONE;
}

static enum err open_walk(struct dump *d, struct walk *w, const char *path)
{
    struct io_stat st;
    enum err err;

    *w = (struct walk){0};
    err = io_file_open(d->io, path, IO_OPEN_READ, &w->file);
    if (!err)
        err = io_file_stat(w->file, &st);
    if (!err)
        w->size = st.size;
    return err;
}

static void close_walk(struct walk *w)
{
    if (w->file)
        io_file_unref(w->file);
    buf_fini(&w->bytes);
}

/* ---- Segments. */

static void show_record(struct dump *d, const struct record *r)
{
    struct bytes rest = r->headers;
    struct bytes value;
    struct str key;

    row_begin(d, "record");
    row_int(d, "offset", r->offset);
    row_int(d, "timestamp", r->timestamp);
    row_str(d, "key", (struct str){(const char *)r->key.p, r->key.n});
    row_str(d, "value", (struct str){(const char *)r->value.p, r->value.n});
    while (record_headers_next(&rest, &key, &value)) {
        row_str(d, "header", key);
        row_str(d, "header_value", (struct str){(const char *)value.p, value.n});
    }
    row_end(d);
}

/* Reads every record, though it may show none. */
static void check_records(struct dump *d, struct bytes batch, int64_t pos, struct record_iter *it)
{
    struct record r;
    enum err err = record_iter_batch(it, batch);

    while (!err && !(err = record_iter_next(it, &r))) {
        d->records++;
        if (d->shows_records)
            show_record(d, &r);
    }
    if (err != ERR_EOF)
        dump_problem(d, "position %lld: the records of the batch cannot be read: %s",
                     (long long)pos, err_text(err));
}

static void show_batch(struct dump *d, const struct batch_header *h, int64_t pos, bool crc_ok)
{
    enum codec codec = batch_codec(h);

    row_begin(d, "batch");
    row_int(d, "base_offset", h->base_offset);
    row_int(d, "last_offset", batch_last_offset(h));
    row_int(d, "position", pos);
    row_int(d, "bytes", batch_total_bytes(h));
    row_int(d, "records", h->record_count);
    row_int(d, "leader_epoch", h->leader_epoch);
    row_str(d, "codec", str_of((int)codec < CODEC_COUNT ? codec_name(codec) : "unknown"));
    row_str(d, "timestamp_type",
            str_of(batch_timestamp_type(h) == TIMESTAMP_CREATE ? "create" : "log_append"));
    row_int(d, "max_timestamp", h->max_timestamp);
    if (h->producer_id >= 0) {
        row_int(d, "producer_id", h->producer_id);
        row_int(d, "producer_epoch", h->producer_epoch);
        row_int(d, "base_sequence", h->base_sequence);
        row_int(d, "transactional", batch_is_transactional(h));
        row_int(d, "control", batch_is_control(h));
    }
    row_str(d, "crc", str_of(crc_ok ? "ok" : "wrong"));
    row_end(d);
}

static void check_batch(struct dump *d, struct walk *w, int64_t pos, struct record_iter *it)
{
    struct bytes batch = buf_bytes(&w->bytes, 0);
    bool crc_ok = batch_crc_ok(batch);

    show_batch(d, &w->header, pos, crc_ok);
    d->batches++;
    if (!crc_ok)
        dump_problem(d, "position %lld: the checksum is wrong: the batch at offset %lld is damaged",
                     (long long)pos, (long long)w->header.base_offset);
    else
        check_records(d, batch, pos, it);
}

void dump_segment(struct dump *d, int64_t base)
{
    struct record_iter it;
    struct walk w;
    int64_t next_offset = base;
    int64_t pos = 0;
    enum err err = open_walk(d, &w, d->path);

    record_iter_init(&it);
    if (err)
        dump_problem(d, "cannot be read: %s", err_text(err));
    while (!err && !(err = next_batch(&w, true))) {
        if (w.header.base_offset < next_offset)
            dump_problem(d, "position %lld: offset %lld, but at least %lld has to come",
                         (long long)pos, (long long)w.header.base_offset, (long long)next_offset);
        next_offset = batch_last_offset(&w.header) + 1;
        check_batch(d, &w, pos, &it);
        pos = w.pos;
    }
    if (w.file && err != ERR_EOF)
        dump_problem(d, "position %lld: %s; %lld bytes from there on are no whole batches",
                     (long long)pos, err == ERR_AGAIN ? "a batch is cut" : err_text(err),
                     (long long)(w.size - pos));
    d->bytes += pos;
    record_iter_fini(&it);
    close_walk(&w);
}

/* ---- Indexes. */

struct place {
    int64_t pos;
    int64_t last_offset;
    int64_t max_timestamp;
};

/* The batches of the segment that an index belongs to, in order. */
struct places {
    struct place *v;
    size_t n;
    size_t cap;
};

static bool find_places(struct dump *d, struct places *p)
{
    size_t stem = strlen(d->path) - strlen(strrchr(d->path, '.'));
    char *path = xasprintf("%.*s.log", (int)stem, d->path);
    struct walk w;
    int64_t pos = 0;
    enum err err = open_walk(d, &w, path);
    bool is_there = !err;

    for (; !err && !(err = next_batch(&w, false)); pos = w.pos) {
        if (p->n == p->cap) {
            p->cap = MAX(256, p->cap * 2);
            p->v = xreallocarray(p->v, p->cap, sizeof(*p->v));
        }
        p->v[p->n++] = (struct place){pos, batch_last_offset(&w.header), w.header.max_timestamp};
    }
    close_walk(&w);
    if (!is_there)
        dump_problem(d, "its segment %s cannot be read, so that it cannot be checked", path);
    free(path);
    return is_there;
}

/* The first place at or behind the key, NULL if there is none; both fields only grow. */
static const struct place *place_at(const struct places *p, int64_t key, bool by_pos)
{
    size_t low = 0;
    size_t high = p->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if ((by_pos ? p->v[mid].pos : p->v[mid].last_offset) < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < p->n ? &p->v[low] : NULL;
}

static void check_index_entry(struct dump *d, const struct places *p, int64_t offset, int64_t pos)
{
    const struct place *at = place_at(p, pos, true);

    if (!at || at->pos != pos)
        dump_problem(d, "offset %lld points to position %lld, where no batch begins",
                     (long long)offset, (long long)pos);
    else if (at->last_offset != offset)
        dump_problem(d, "position %lld is said to end with offset %lld, but that is %lld",
                     (long long)pos, (long long)offset, (long long)at->last_offset);
}

static void check_time_entry(struct dump *d, const struct places *p, int64_t timestamp,
                             int64_t offset)
{
    const struct place *at = place_at(p, offset, false);

    if (!at)
        dump_problem(d, "timestamp %lld points to offset %lld, behind the end of the segment",
                     (long long)timestamp, (long long)offset);
    else if (at->max_timestamp != timestamp)
        dump_problem(d, "offset %lld is said to have timestamp %lld, but its batch has %lld",
                     (long long)offset, (long long)timestamp, (long long)at->max_timestamp);
}

/* Reads the file; NULL after having said why. Entries of `bytes` each. */
static uint8_t *read_entries(struct dump *d, size_t bytes, size_t *count)
{
    char *content;
    size_t n;
    enum err err = io_file_read_all(d->io, d->path, INDEX_BYTES_MAX, &content, &n);

    *count = 0;
    if (err) {
        dump_problem(d, "cannot be read: %s", err_text(err));
        return NULL;
    }
    if (n % bytes)
        dump_problem(d, "%zu bytes are not a whole number of entries of %zu", n, bytes);
    *count = n / bytes;
    return (uint8_t *)content;
}

/* A running broker keeps its newest index longer than it is filled, with zeros at the end. */
static size_t without_zeros(const uint8_t *p, size_t bytes, size_t count)
{
    while (count > 0) {
        bool is_zero = true;

        for (size_t i = 0; i < bytes && is_zero; i++)
            is_zero = p[(count - 1) * bytes + i] == 0;
        if (!is_zero)
            return count;
        count--;
    }
    return count;
}

void dump_index(struct dump *d, int64_t base)
{
    struct places places = {0};
    size_t count;
    uint8_t *p = read_entries(d, INDEX_ENTRY_BYTES, &count);
    bool can_check = p && find_places(d, &places);
    int64_t before = -1;

    count = without_zeros(p, INDEX_ENTRY_BYTES, count);
    for (size_t i = 0; i < count; i++) {
        int64_t offset = base + get_u32(p + i * INDEX_ENTRY_BYTES);
        int64_t pos = get_u32(p + i * INDEX_ENTRY_BYTES + 4);

        row_begin(d, "index");
        row_int(d, "offset", offset);
        row_int(d, "position", pos);
        row_end(d);
        if (offset <= before)
            dump_problem(d, "offset %lld stands behind %lld", (long long)offset, (long long)before);
        before = offset;
        if (can_check)
            check_index_entry(d, &places, offset, pos);
    }
    free(places.v);
    free(p);
}

void dump_timeindex(struct dump *d, int64_t base)
{
    struct places places = {0};
    size_t count;
    uint8_t *p = read_entries(d, TIMEINDEX_ENTRY_BYTES, &count);
    bool can_check = p && find_places(d, &places);
    int64_t before = INT64_MIN;

    count = without_zeros(p, TIMEINDEX_ENTRY_BYTES, count);
    for (size_t i = 0; i < count; i++) {
        int64_t timestamp = get_i64(p + i * TIMEINDEX_ENTRY_BYTES);
        int64_t offset = base + get_u32(p + i * TIMEINDEX_ENTRY_BYTES + 8);

        row_begin(d, "timeindex");
        row_int(d, "timestamp", timestamp);
        row_int(d, "offset", offset);
        row_end(d);
        if (timestamp < before)
            dump_problem(d, "timestamp %lld stands behind %lld", (long long)timestamp,
                         (long long)before);
        before = timestamp;
        if (can_check)
            check_time_entry(d, &places, timestamp, offset);
    }
    free(places.v);
    free(p);
}

void dump_txnindex(struct dump *d, int64_t base)
{
    size_t count;
    uint8_t *p = read_entries(d, TXNINDEX_ENTRY_BYTES, &count);

    for (size_t i = 0; i < count; i++) {
        const uint8_t *e = p + i * TXNINDEX_ENTRY_BYTES;
        int64_t last_offset = get_i64(e + 18);

        row_begin(d, "aborted");
        row_int(d, "producer_id", get_i64(e + 2));
        row_int(d, "first_offset", get_i64(e + 10));
        row_int(d, "last_offset", last_offset);
        row_int(d, "last_stable_offset", get_i64(e + 26));
        row_end(d);
        if (get_i16(e) != 0)
            dump_problem(d, "entry %zu has version %d, which nobody knows", i, get_i16(e));
        if (last_offset < base || get_i64(e + 10) > last_offset)
            dump_problem(d, "entry %zu: its offsets cannot be", i);
    }
    free(p);
}
