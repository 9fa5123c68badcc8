/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading a partition's directory after whatever happened, and making a new one.
 *
 * The recovery point is an offset below which segment, indexes, epochs and producers are durable.
 * Segments that end below it are opened and believed; the one that holds it, and all behind it, are
 * read batch by batch from there on. What is found at the first bad batch depends on where it is:
 *
 *   at or above the recovery point it is the torn end of the last life, which nobody was told of:
 *   the log is cut there. The bytes are kept aside as `<base>.<position>.cut`, later segments as
 *   `<base>.0.cut`, and counted;
 *
 *   below it something that was durable is gone: damage. Nothing is cut; the log opens up to that
 *   place and refuses reads at it and appends. A log that ends below its recovery point without a
 *   bad batch is damaged in the same way.
 *
 * A clean stop needs no path of its own: its recovery point is the end, and the scan finds nothing.
 *
 * Before the log is handed out what was scanned is written again and synced: a batch that survived
 * a kill in the page cache is part of the log from now on, and must not disappear later. A thousand
 * logs are recovered in the time that their syncs take, so there are no others than these:
 *
 *   each segment that was scanned. Of the last one only the batches: its indexes were cut and
 *   written above the recovery point, which stays where it is until a save has synced them;
 *
 *   the directory, once, for all the names in it. Small files need no more than that: their content
 *   is synced before it gets its name. The partition's own name was synced by log_dir_open.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/dir_int.h"
#include "log/log_int.h"

struct loading {
    struct log_loaded *l;
    struct log_load_report *report;
    struct dir_known known;
    struct scan scan;
    struct io_names names; /* what the directory held at first */
    int64_t *bases;        /* of the segments that are there, ascending */
    size_t base_count;
    size_t at; /* the segment in hand */
    bool is_cut;
    bool stopped; /* at damage */
};

/* ---- Life cycle ------------------------------------------------------------------------- */

static struct log_loaded *loaded_new(const struct log_load_args *args)
{
    struct log_loaded *l = xcalloc(1, sizeof(*l));
    char *name = partition_dir_name(args->topic, args->partition);

    l->io = args->io;
    l->dir = args->dir;
    l->topic = xstrdup(args->topic);
    l->partition = args->partition;
    l->topic_id = args->topic_id;
    l->path = xasprintf("%s/%s", log_dir_path(args->dir), name);
    l->config = args->config;
    l->now_ms = args->now_ms;
    l->closed_at = -1;
    producers_init(&l->producers);
    free(name);
    return l;
}

void log_loaded_free(struct log_loaded *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->segment_count; i++)
        segment_unref(l->segments[i].segment);
    free(l->segments);
    epochs_fini(&l->epochs);
    producers_fini(&l->producers);
    free(l->topic);
    free(l->path);
    free(l);
}

static struct segment_span *push_segment(struct log_loaded *l, struct segment *s)
{
    if (l->segment_count == l->segment_cap) {
        l->segment_cap = l->segment_cap ? 2 * l->segment_cap : 4;
        l->segments = xreallocarray(l->segments, l->segment_cap, sizeof(*l->segments));
    }
    l->segments[l->segment_count] = (struct segment_span){.segment = s, .max_timestamp = -1};
    return &l->segments[l->segment_count++];
}

static void span_from_tail(struct segment_span *span, const struct segment_tail *t)
{
    span->size = t->size;
    span->index_count = t->index_count;
    span->time_count = t->time_count;
    span->txn_count = t->txn_count;
    span->max_timestamp = t->max_timestamp;
}

static void pop_segment(struct log_loaded *l)
{
    segment_unref(l->segments[--l->segment_count].segment);
}

/* ---- What is there ---------------------------------------------------------------------- */

static void list_segments(struct loading *g)
{
    g->bases = xcalloc(g->names.n + 1, sizeof(*g->bases));
    for (size_t i = 0; i < g->names.n; i++) {
        if (offset_name_parse(g->names.v[i], LOG_SUFFIX, &g->bases[g->base_count]))
            g->base_count++; /* Names are sorted, and twenty digits sort as numbers. */
    }
}

static enum err write_topic_id(struct log_loaded *l)
{
    char *path;
    struct buf text;
    enum err err;

    if (uuid_is_zero(l->topic_id))
        return ERR_NONE;
    path = xasprintf("%s/partition.metadata", l->path);
    buf_init(&text);
    partition_metadata_format(l->topic_id, &text);
    err = io_file_replace(l->io, path, buf_bytes(&text, 0));
    buf_fini(&text);
    free(path);
    return err;
}

static enum err read_topic_id(struct log_loaded *l)
{
    char *path = xasprintf("%s/partition.metadata", l->path);
    struct uuid found;
    char *text;
    size_t n;
    enum err err = io_file_read_all(l->io, path, 4096, &text, &n);

    free(path);
    if (err == ERR_NOT_FOUND)
        return write_topic_id(l); /* Its making was interrupted. */
    if (err)
        return err;
    err = partition_metadata_parse((struct str){.p = text, .n = (int32_t)n}, &found);
    free(text);
    if (err)
        return err;
    if (!uuid_is_zero(l->topic_id) && !uuid_eq(l->topic_id, found))
        return ERR_INCONSISTENT_TOPIC_ID;
    l->topic_id = found;
    return ERR_NONE;
}

/* ---- Bad batches ------------------------------------------------------------------------ */

static enum err copy_bytes(struct io_file *from, struct io_file *to, int64_t pos, int64_t end)
{
    size_t cap = (size_t)MIN(end - pos, (int64_t)1024 * 1024);
    uint8_t *p = xmalloc(cap + 1);
    int64_t at = 0;
    enum err err = ERR_NONE;

    while (!err && pos < end) {
        size_t n = (size_t)MIN(end - pos, (int64_t)cap);
        struct iovec iov = {.iov_base = p, .iov_len = n};
        err = read_fully(from, p, n, pos, LOG_BLOCKING);
        if (!err)
            err = io_file_write(to, &iov, 1, at);
        pos += (int64_t)n;
        at += (int64_t)n;
    }
    free(p);
    return err ? err : io_file_sync(to);
}

/* Copies what lies behind the good batches of a segment to a file of its own, then cuts it off. */
static enum err cut_tail(struct loading *g, struct segment *s, int64_t pos, int64_t end)
{
    char *suffix = xasprintf(".%lld" CUT_SUFFIX, (long long)pos);
    char *path = offset_path(g->l->path, s->base_offset, suffix);
    struct io_file *kept;
    enum err err =
        io_file_open(g->l->io, path, IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNC, &kept);

    if (!err) {
        err = copy_bytes(s->log, kept, pos, end);
        io_file_unref(kept);
    }
    if (!err)
        err = io_dir_sync(g->l->io, g->l->path);
    if (!err)
        err = io_file_truncate(s->log, pos);
    if (!err)
        trace_warn("log.cut", "path=%s bytes=%lld", path, (long long)(end - pos));
    g->report->bytes_cut += end - pos;
    free(path);
    free(suffix);
    return err;
}

static enum err unlink_one(struct loading *g, int64_t base, const char *suffix)
{
    char *path = offset_path(g->l->path, base, suffix);
    enum err err = io_path_unlink(g->l->io, path);

    free(path);
    return err == ERR_NOT_FOUND ? ERR_NONE : err;
}

/* Keeps a whole segment aside. */
static enum err put_aside(struct loading *g, int64_t base)
{
    char *from = offset_path(g->l->path, base, LOG_SUFFIX);
    char *to = offset_path(g->l->path, base, ".0" CUT_SUFFIX);
    struct io_stat st = {.size = 0};
    enum err err = io_path_stat(g->l->io, from, &st);

    if (!err)
        err = st.size > 0 ? io_path_rename(g->l->io, from, to) : io_path_unlink(g->l->io, from);
    if (!err)
        err = unlink_one(g, base, INDEX_SUFFIX);
    if (!err)
        err = unlink_one(g, base, TIMEINDEX_SUFFIX);
    if (!err)
        err = unlink_one(g, base, TXNINDEX_SUFFIX);
    if (!err)
        trace_warn("log.cut", "path=%s bytes=%lld", to, (long long)st.size);
    g->report->bytes_cut += st.size;
    free(from);
    free(to);
    return err;
}

static enum err put_rest_aside(struct loading *g, size_t from)
{
    enum err err = ERR_NONE;

    for (size_t i = g->base_count; !err && i > from; i--)
        err = put_aside(g, g->bases[i - 1]);
    g->base_count = from;
    g->is_cut = true;
    return err ? err : io_dir_sync(g->l->io, g->l->path);
}

static void report_damage(struct loading *g, const char *what, int64_t base, int64_t pos)
{
    char *path = offset_path(g->l->path, base, LOG_SUFFIX);

    free(g->report->damage);
    g->report->damage = xasprintf("%s at position %lld: %s", path, (long long)pos, what);
    trace_error("log.damage", "path=%s position=%lld offset=%lld recovery_point=%lld", path,
                (long long)pos, (long long)g->scan.next_offset, (long long)g->known.recovery_point);
    g->l->is_damaged = true;
    g->stopped = true;
    free(path);
}

/* The scan of segment `at` stopped before its end. */
static enum err judge_bad_batch(struct loading *g, struct segment *s)
{
    struct io_stat st;
    enum err err;

    if (g->scan.next_offset < g->known.recovery_point) {
        report_damage(g, "a bad batch below the recovery point", s->base_offset, g->scan.tail.size);
        return ERR_NONE;
    }
    err = io_file_stat(s->log, &st);
    if (!err)
        err = put_rest_aside(g, g->at + 1);
    return err ? err : cut_tail(g, s, g->scan.tail.size, st.size);
}

/* ---- Segments --------------------------------------------------------------------------- */

static bool is_last(const struct loading *g)
{
    return g->at + 1 == g->base_count;
}

/* Everything in the segment lies below the recovery point, and its indexes look right. */
static bool may_be_believed(struct loading *g, bool index_missing, struct segment_span *span)
{
    if (is_last(g) || index_missing || g->bases[g->at + 1] > g->known.recovery_point)
        return false;
    return index_looks_whole(span->segment, span->size, span);
}

/* A segment that is closed gets its last time index entry, if that was lost. */
static enum err finish_time_index(struct scan *scan)
{
    uint8_t entry[TIMEINDEX_ENTRY_BYTES];
    struct iovec iov = {.iov_base = entry, .iov_len = sizeof(entry)};
    int64_t pos = scan->tail.time_count * TIMEINDEX_ENTRY_BYTES;

    if (!segment_tail_finish(&scan->tail, scan->segment->base_offset, entry))
        return ERR_NONE;
    return io_file_write(scan->segment->timeindex, &iov, 1, pos);
}

/* Makes bytes dirty again, so that the sync behind it writes them. */
static enum err write_again(struct loading *g, struct io_file *f, int64_t pos)
{
    int64_t end = g->scan.tail.size;
    size_t cap = (size_t)1024 * 1024;
    uint8_t *p = xmalloc(cap);
    enum err err = ERR_NONE;

    while (!err && pos < end) {
        size_t n = (size_t)MIN(end - pos, (int64_t)cap);
        struct iovec iov = {.iov_base = p, .iov_len = n};
        err = scan_is_cancelled(&g->scan) ? ERR_CANCELLED : ERR_NONE;
        if (!err)
            err = read_fully(f, p, n, pos, LOG_BLOCKING);
        if (!err)
            err = io_file_write(f, &iov, 1, pos);
        pos += (int64_t)n;
    }
    free(p);
    return err;
}

static enum err make_durable(struct loading *g, struct segment *s, int64_t from)
{
    enum err err = ERR_NONE;

    if (g->l->is_damaged)
        return ERR_NONE;
    if (g->scan.tail.size > from)
        err = write_again(g, s->log, from);
    if (err)
        return err;
    return is_last(g) ? io_file_sync(s->log) : segment_sync(s);
}

static enum err recover_segment(struct loading *g, struct segment_span *span)
{
    struct scan *scan = &g->scan;
    struct restored restored;
    int64_t txn_count;
    enum err err = tail_restore(span->segment, g->known.recovery_point, &restored);

    if (err)
        return err;
    if (restored.has_gap) {
        txn_count = restored.tail.txn_count;
        segment_tail_init(&restored.tail);
        restored.tail.txn_count = txn_count;
        restored.next_offset = span->segment->base_offset;
        err = segment_cut_indexes(span->segment, &restored.tail);
    }
    scan->segment = span->segment;
    scan->tail = restored.tail;
    scan->next_offset = MAX(restored.next_offset, scan->next_offset);
    if (!err)
        err = scan_segment(scan, g->l->path);
    if (!err && scan->found_bad)
        err = judge_bad_batch(g, span->segment);
    if (!err && !is_last(g) && !g->stopped)
        err = finish_time_index(scan);
    if (!err)
        err = make_durable(g, span->segment, restored.tail.size);
    span_from_tail(span, &scan->tail);
    return err;
}

static enum err load_segment(struct loading *g)
{
    struct segment *s = segment_new(g->bases[g->at]);
    struct segment_span *span = push_segment(g->l, s);
    struct io_stat st;
    bool index_missing;
    enum err err = segment_open_files(s, g->l->io, g->l->path, &index_missing);

    if (!err)
        err = io_file_stat(s->log, &st);
    if (err)
        return err;
    span->size = st.size;
    if (may_be_believed(g, index_missing, span)) {
        segment_tail_init(&g->scan.tail);
        g->scan.next_offset = g->bases[g->at + 1];
        return ERR_NONE;
    }
    return recover_segment(g, span);
}

/*
 * What is wrong between the segment before and the one in hand; NULL if nothing. A hole is what
 * remains when unsynced bytes at the end of a closed segment were lost. Compaction makes holes too,
 * and there they are right; so a log of which no recovery point is known may have them anywhere,
 * and so may one that another broker wrote, whatever its topic's policy is now.
 */
static const char *wrong_join(const struct loading *g)
{
    int64_t base = g->bases[g->at];

    if (g->at == 0 || base == g->scan.next_offset)
        return NULL;
    if (base < g->scan.next_offset)
        return "segments overlap";
    if (!g->known.has_point || g->l->config.cleanup_policy != TOPIC_CLEANUP_DELETE ||
        g->l->config.is_adopted)
        return NULL;
    return "offsets are missing between segments";
}

static enum err load_segments(struct loading *g)
{
    enum err err = ERR_NONE;

    for (g->at = 0; !err && g->at < g->base_count && !g->stopped; g->at++) {
        const char *wrong = wrong_join(g);
        if (!wrong) {
            err = load_segment(g);
            continue;
        }
        if (MIN(g->bases[g->at], g->scan.next_offset) < g->known.recovery_point)
            report_damage(g, wrong, g->bases[g->at], 0);
        else
            err = put_rest_aside(g, g->at);
        break;
    }
    return err;
}

/* An empty segment at `base`, as the only or next one. */
static enum err add_empty_segment(struct log_loaded *l, int64_t base)
{
    struct segment *s = segment_new(base);
    enum err err;

    push_segment(l, s);
    segment_tail_init(&l->tail);
    err = segment_create_files(s, l->io, l->path);
    return err ? err : io_dir_sync(l->io, l->path); /* Of empty files only the names count. */
}

/* All that is there lies below the log start: it goes, with the producers' history, and an empty
 * segment begins there. */
static enum err start_over(struct loading *g)
{
    struct log_loaded *l = g->l;
    enum err err = snapshots_remove_above(l->io, l->path, &g->names, -1);

    while (!err && l->segment_count > 0) {
        int64_t base = l->segments[l->segment_count - 1].segment->base_offset;
        pop_segment(l);
        err = unlink_one(g, base, INDEX_SUFFIX);
        if (!err)
            err = unlink_one(g, base, TIMEINDEX_SUFFIX);
        if (!err)
            err = unlink_one(g, base, TXNINDEX_SUFFIX);
        if (!err)
            err = unlink_one(g, base, LOG_SUFFIX);
    }
    l->end = l->start;
    l->closed_at = -1;
    if (l->start > 0)
        producers_forget_all(&l->producers);
    else
        producers_reset(&l->producers); /* Nothing is missing before the first record. */
    return err ? err : add_empty_segment(l, l->start);
}

/* ---- Offsets ---------------------------------------------------------------------------- */

static enum err settle_offsets(struct loading *g)
{
    struct log_loaded *l = g->l;
    int64_t first = l->segment_count > 0 ? l->segments[0].segment->base_offset : 0;
    enum err err = ERR_NONE;

    l->tail = g->scan.tail;
    l->end = g->scan.next_offset;
    l->start = MAX(g->known.log_start, first);
    if (l->segment_count == 0 || (l->end < l->start && !l->is_damaged))
        err = start_over(g);
    l->end = MAX(l->end, l->start);
    if (!err && !l->is_damaged && l->end < g->known.recovery_point)
        report_damage(g, "the log ends below its recovery point",
                      l->segments[l->segment_count - 1].segment->base_offset, l->tail.size);
    l->high_watermark = MIN(MAX(g->known.high_watermark, l->start), l->end);
    l->recovery_point = MIN(MAX(g->known.recovery_point, l->start), l->end);
    l->clean_offset = g->known.clean_offset > l->end ? -1 : g->known.clean_offset;
    if (l->is_damaged)
        l->recovery_point = g->known.recovery_point; /* Or the next load would see a torn end. */
    return err;
}

/* Epochs may say more than the log holds, at both ends. One that begins at the end stays: its
 * leader has written nothing yet, and nobody else remembers it. */
static enum err settle_epochs(struct loading *g)
{
    struct log_loaded *l = g->l;
    bool changed = g->scan.epochs_changed;

    if (l->end < INT64_MAX)
        changed |= epochs_truncate_end(&l->epochs, l->end + 1);
    changed |= epochs_truncate_start(&l->epochs, l->start);
    if (l->is_damaged || !changed)
        return ERR_NONE; /* Of a damaged log nothing is changed. */
    return epochs_write(l->io, l->path, &l->epochs);
}

/* Spans of all segments with the sizes of their files, for the replay below the recovery point. */
static enum err peek_segments(struct loading *g)
{
    for (size_t i = 0; i < g->base_count; i++) {
        struct segment *s = segment_new(g->bases[i]);
        struct segment_span *span = push_segment(g->l, s);
        struct io_stat st;
        bool index_missing;
        enum err err = segment_open_files(s, g->l->io, g->l->path, &index_missing);
        if (!err)
            err = io_file_stat(s->log, &st);
        if (err)
            return err;
        span->size = st.size; /* No index is believed yet: index_count stays 0. */
    }
    return ERR_NONE;
}

/* Producers as of the recovery point, into which the scan goes on replaying. Usually there is a
 * snapshot of just that offset. */
static enum err load_producers(struct loading *g)
{
    struct log_loaded *l = g->l;
    struct replay replay = {
        .io = l->io,
        .path = l->path,
        .names = &g->names,
        .upto = g->known.recovery_point,
        .producers = &l->producers,
    };
    enum err err;

    producers_from_snapshot(&replay);
    /* A log that was cut off before its first recovery point: a snapshot of ours says that it was
     * made here, and at 0. */
    g->known.has_point |= replay.is_own;
    /* Before the first record there is nothing to say to Kafka. */
    if (replay.is_both || (replay.is_own && replay.upto == 0))
        l->closed_at = replay.from;
    err = replay.from == replay.upto ? ERR_NONE : peek_segments(g);
    replay.segments = l->segments;
    replay.segment_count = l->segment_count;
    if (!err)
        err = producers_replay_rest(&replay);
    while (l->segment_count > 0)
        pop_segment(l);
    return err;
}

static enum err load_all(struct loading *g)
{
    struct log_loaded *l = g->l;
    enum err err = leftovers_clear(l->io, l->path, &g->names);

    if (!err)
        err = read_topic_id(l);
    if (err)
        return err;
    list_segments(g);
    if (!err)
        err = epochs_read(l->io, l->path, &l->epochs);
    if (!err)
        err = load_producers(g);
    if (!err)
        err = load_segments(g);
    if (!err)
        err = settle_offsets(g);
    if (!err)
        err = settle_epochs(g);
    if (!err && !l->is_damaged)
        err = snapshots_remove_above(l->io, l->path, &g->names, l->end);
    if (!err && !l->is_damaged)
        err = snapshots_tidy(l->io, l->path, &g->names, l->segments, l->segment_count,
                             MIN(l->recovery_point, g->known.recovery_point));
    if (!err && !g->known.clean)
        err = io_dir_sync(l->io, l->path);
    return err;
}

enum err log_load(const struct log_load_args *args, struct log_loaded **out,
                  struct log_load_report *report)
{
    struct loading g = {.l = loaded_new(args), .report = report};
    enum err err;

    *out = NULL;
    *report = (struct log_load_report){.latest_epoch = -1, .producer_id_max = -1};
    g.known = dir_known(args->dir, args->topic, args->partition);
    g.scan = (struct scan){
        .io = args->io,
        .job = args->job,
        .index_interval_bytes = args->config.index_interval_bytes,
        .verify_from = g.known.recovery_point,
        .replay_from = g.known.recovery_point,
        .epochs = &g.l->epochs,
        .producers = &g.l->producers,
    };
    segment_tail_init(&g.scan.tail);
    err = load_all(&g);
    report->bytes_scanned = g.scan.bytes_scanned;
    report->segments = (int64_t)g.l->segment_count;
    io_names_free(&g.names);
    free(g.bases);
    if (err) {
        if (err != ERR_CANCELLED)
            trace_error("log.load", "path=%s error=%s", g.l->path, err_name(err));
        log_loaded_free(g.l);
        return err;
    }
    report->latest_epoch = epochs_latest(&g.l->epochs);
    report->producer_id_max = producers_id_max(&g.l->producers);
    *out = g.l;
    return ERR_NONE;
}

/* ---- Making ----------------------------------------------------------------------------- */

/* The empty state at 0: a load after the first moments of a log knows by it whose the log is. */
static enum err write_first_snapshot(struct log_loaded *l)
{
    struct buf text;
    enum err err;

    buf_init(&text);
    snapshot_format(&l->producers, 0, &text);
    err = snapshot_write(l->io, l->path, 0, PRODUCERS_SUFFIX, &text);
    buf_fini(&text);
    return err;
}

static enum err fill_new(struct log_loaded *l)
{
    enum err err = write_topic_id(l);

    if (!err)
        err = write_first_snapshot(l);
    if (!err)
        err = add_empty_segment(l, 0);
    return err ? err : io_dir_sync(l->io, log_dir_path(l->dir));
}

/* What stays would be found beside the log that is made in another directory meanwhile. */
static enum err take_back(struct log_loaded *l, enum err why)
{
    enum err err = remove_partition_dir(l->io, l->path);

    if (!err)
        err = io_dir_sync(l->io, log_dir_path(l->dir));
    trace_error("log.create", "path=%s error=%s left=%s", l->path, err_name(why),
                err ? "something" : "nothing");
    return err ? ERR_EXISTS : why;
}

enum err log_create(const struct log_load_args *args, struct log_loaded **out)
{
    struct log_loaded *l = loaded_new(args);
    enum err err;

    *out = NULL;
    l->is_new = true;
    err = io_dir_make(l->io, l->path);
    if (!err) {
        err = fill_new(l);
        if (err)
            err = take_back(l, err);
    }
    l->closed_at = 0;
    if (err) {
        log_loaded_free(l);
        return err;
    }
    *out = l;
    return ERR_NONE;
}
