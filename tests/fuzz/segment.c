/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: a partition's directory as a crash, a disk or another broker may have left it.
 *
 * The input is a byte of options and a list of files: a byte that says which one, an offset for its
 * name, a length, and the content. They are written to a real directory (TMPDIR says where; memory
 * is best), and the log lives three times on it: loaded and left at once, as kill -9 does; loaded,
 * read whole, appended to and closed; loaded again. A fuzzer cannot guess a checksum: the high bit
 * of a file's first byte puts the right ones in. The mutator works on one file at a time, so that
 * what lies behind it keeps its place.
 *
 * What must hold: a directory is refused in words, or a log comes out of it; bounds are in order;
 * what recovery verified is served with good checksums in ascending offsets, without an end before
 * the end; only below the recovery point may a read be refused; all bytes that were cut are kept;
 * a second load finds nothing to cut and the same log; a closed log needs no scan. (A load of a
 * damaged log may build an index anew, by which the next one believes a closed segment and sees
 * the damage only when it is read.)
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "log/dir_int.h"

#define SEAL 0x80
#define FILE_HEADER_BYTES 11
#define FILES_MAX 24
#define INPUT_BYTES_MAX 16384
#define CRC_AT 17
#define ATTRIBUTES_AT 21

/* Bits of the first byte. */
#define IS_ADOPTED 1
#define IS_COMPACTED 2
#define IS_CLEAN 4
#define IS_SPARSE 8 /* large index intervals */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* libFuzzer's; it is not there when a corpus is replayed. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

/* ---- The input ---------------------------------------------------------------------------- */

/* Names that begin with a dot follow twenty digits. */
static const char *const kinds[] = {
    ".log",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    ".producers",
    ".log.swap",
    ".index.swap",
    ".log.cleaned",
    ".log.deleted",
    ".log.tmp",
    "leader-epoch-checkpoint",
    "partition.metadata",
    "../" POINTS_NAME,
    "../" MARKS_NAME,
    "../" STARTS_NAME,
    "../" META_NAME,
};

struct file {
    int kind;
    bool seal;
    int64_t base;
    uint8_t *p;
    int32_t n;
};

/* Takes the next file off the input; false at its end. */
static bool next_file(uint8_t **p, size_t *left, struct file *f)
{
    if (*left < FILE_HEADER_BYTES)
        return false;
    f->kind = (*p)[0] % SEAL % ARRAY_LEN(kinds);
    f->seal = (*p)[0] & SEAL;
    f->base = get_i64(*p + 1) & INT64_MAX;
    f->p = *p + FILE_HEADER_BYTES;
    f->n = (int32_t)MIN(get_u16(*p + 9), *left - FILE_HEADER_BYTES);
    *left -= FILE_HEADER_BYTES + (size_t)f->n;
    *p = f->p + f->n;
    return true;
}

static void seal_at(struct file *f, int32_t at)
{
    if (f->n >= at + 4)
        put_u32(f->p + at, crc32c(f->p + at + 4, (size_t)(f->n - at - 4)));
}

static void seal_batches(struct file *f)
{
    int32_t total;

    for (int32_t at = 0; at < f->n; at += total) {
        uint8_t *p = f->p + at;
        if (batch_frame((struct bytes){.p = p, .n = f->n - at}, &total) || total > f->n - at)
            return;
        put_u32(p + CRC_AT, crc32c(p + ATTRIBUTES_AT, (size_t)total - ATTRIBUTES_AT));
    }
}

static void write_file(const char *dir, struct file *f)
{
    const char *kind = kinds[f->kind];
    char *path = kind[0] == '.' && kind[1] != '.' ? offset_path(dir, f->base, kind)
                                                  : xasprintf("%s/%s", dir, kind);
    FILE *out = fopen(path, "wb");

    if (f->seal && strncmp(kind, LOG_SUFFIX, 4) == 0)
        seal_batches(f);
    if (f->seal && strcmp(kind, SNAPSHOT_SUFFIX) == 0)
        seal_at(f, 2);
    if (f->seal && strcmp(kind, PRODUCERS_SUFFIX) == 0)
        seal_at(f, 6);
    assert(out);
    assert(fwrite(f->p, 1, (size_t)f->n, out) == (size_t)f->n);
    fclose(out);
    free(path);
}

static void write_all(const char *path, const char *dir, uint8_t *p, size_t left, bool is_clean)
{
    struct file f;

    assert(mkdir(dir, 0700) == 0);
    for (int i = 0; i < FILES_MAX && next_file(&p, &left, &f); i++)
        write_file(dir, &f);
    if (is_clean) {
        char *marker = xasprintf("%s/" CLEAN_NAME, path);
        fclose(fopen(marker, "wb"));
        free(marker);
    }
}

/* ---- Files -------------------------------------------------------------------------------- */

static void remove_all(const char *path)
{
    struct dirent **names;
    int count = scandir(path, &names, NULL, NULL);

    for (int i = 0; i < count; i++) {
        char *file = xasprintf("%s/%s", path, names[i]->d_name);
        if (names[i]->d_type == DT_DIR && names[i]->d_name[0] != '.')
            remove_all(file);
        else
            unlink(file);
        free(file);
        free(names[i]);
    }
    free(names);
    rmdir(path);
}

static int64_t kept_bytes(const char *dir)
{
    struct dirent **names;
    int count = scandir(dir, &names, NULL, NULL);
    int64_t sum = 0;

    for (int i = 0; i < count; i++) {
        char *file = xasprintf("%s/%s", dir, names[i]->d_name);
        struct stat st;
        if (name_ends_with(file, CUT_SUFFIX) && stat(file, &st) == 0)
            sum += st.st_size;
        free(file);
        free(names[i]);
    }
    free(names);
    return sum;
}

/* ---- A life ------------------------------------------------------------------------------- */

struct life {
    struct io *io;
    struct log_dir *dir;
    struct log_dir_found found;
    struct log_loaded *loaded;
    struct log_load_report report;
    int64_t verified_from; /* batches from here on were checked */
    int64_t tail_size;     /* of the last segment, which a hole may precede when it is empty */
    /* of the one that reads */
    struct io_loop *loop;
    struct log *log;
    struct log_snapshot *snapshot;
    struct io_job job;
    int64_t end; /* behind what it has appended */
};

/* What must be the same in the next life. */
struct facts {
    int64_t start;
    int64_t end;
    int64_t recovery_point;
    int64_t tail_size;
    size_t segment_count;
    size_t producer_count;
    int32_t epoch;
    bool is_damaged;
};

static void drop_line(void *ctx, enum trace_level level, const char *line)
{
    (void)ctx, (void)level, (void)line;
}

static enum err life_begin(struct life *l, const char *path, const struct topic_config *config)
{
    struct io_options options = {.trace_level = TRACE_ERROR, .trace_sink = drop_line};
    struct log_dir_identity identity = {
        .cluster_id = str_null(), .node_id = -1, .cluster_id_new = STR_LIT("c"), .node_id_new = 1};
    struct log_load_args args = {.topic = "t", .config = *config, .now_ms = 1700000000000};
    char *message = NULL;
    enum err err;

    *l = (struct life){.io = io_new(&options)};
    err = log_dir_open(l->io, path, &identity, &l->dir, &l->found, &message);
    assert((err != ERR_NONE) == (message != NULL));
    free(message);
    if (!err) {
        args.io = l->io;
        args.dir = l->dir;
        l->verified_from = dir_known(l->dir, "t", 0).recovery_point;
        err = log_load(&args, &l->loaded, &l->report);
    }
    return err;
}

static void life_end(struct life *l)
{
    log_loaded_free(l->loaded);
    free(l->report.damage);
    if (l->dir)
        log_dir_close(l->dir);
    log_dir_found_free(&l->found);
    io_free(l->io);
}

static struct facts facts_of(const struct life *l)
{
    const struct log_loaded *d = l->loaded;

    assert(0 <= d->start && d->start <= d->high_watermark && d->high_watermark <= d->end);
    assert(d->is_damaged || (d->start <= d->recovery_point && d->recovery_point <= d->end));
    assert(d->is_damaged == (l->report.damage != NULL));
    /* Records may have been deleted above the recovery point: then there is nothing in it. */
    assert(IMPLIES(d->is_damaged, d->end <= MAX(d->recovery_point, d->start)));
    assert(d->segment_count >= 1 && d->segments[0].segment->base_offset <= d->start);
    for (size_t i = 1; i < d->segment_count; i++)
        assert(d->segments[i - 1].segment->base_offset < d->segments[i].segment->base_offset);
    return (struct facts){
        .start = d->start,
        .end = d->end,
        .recovery_point = d->recovery_point,
        .tail_size = d->tail.size,
        .segment_count = d->segment_count,
        .producer_count = producers_count(&d->producers),
        .epoch = epochs_latest(&d->epochs),
        .is_damaged = d->is_damaged,
    };
}

static void check_same(const struct facts *a, const struct facts *b)
{
    assert(a->start == b->start && a->end == b->end);
    assert(a->recovery_point == b->recovery_point);
    assert(a->is_damaged == b->is_damaged);
    assert(a->segment_count == b->segment_count && a->tail_size == b->tail_size);
    /* A file that lacked an epoch, and had later ones that were cut, is completed by the next. */
    assert(a->epoch <= b->epoch && a->producer_count == b->producer_count);
}

/* ---- Reading ------------------------------------------------------------------------------ */

static void check_batch(const struct header_walk *w, struct io_file *file)
{
    uint8_t *p = xmalloc((size_t)w->total);
    enum err err = read_fully(file, p, (size_t)w->total, w->pos, LOG_BLOCKING);

    assert(!err);
    assert(batch_crc_ok((struct bytes){.p = p, .n = w->total}));
    free(p);
}

/* Returns the offset behind the last batch of a range. */
static int64_t check_range(const struct life *l, const struct log_range *r, int64_t offset)
{
    bool is_verified = offset >= l->verified_from;
    struct header_walk w;
    enum err err;

    header_walk_init(&w, r->file, r->pos, r->pos + r->n, LOG_BLOCKING);
    err = header_walk_next(&w);
    assert(!err && batch_last_offset(&w.header) >= offset);
    while (!err) {
        if (is_verified) {
            check_batch(&w, r->file);
            assert(batch_last_offset(&w.header) >= offset);
        }
        offset = MAX(offset, batch_last_offset(&w.header) + 1);
        err = header_walk_next(&w);
    }
    assert(err == ERR_EOF || !is_verified);
    return offset;
}

static void read_batches(const struct life *l, const struct log_view *v, const struct log_bounds *b)
{
    int64_t offset = b->log_start;

    while (offset < b->high_watermark) {
        struct log_range r;
        enum err err = log_view_read(v, offset, b->high_watermark, 1000, true, LOG_BLOCKING, &r);

        assert(IMPLIES(err, err == ERR_CORRUPT_MESSAGE && offset < l->verified_from));
        assert(err || r.file || offset < l->verified_from || l->tail_size == 0);
        if (err || !r.file)
            return;
        assert(log_view_bytes_between(v, offset, b->high_watermark) > 0);
        offset = check_range(l, &r, offset);
        io_file_unref(r.file);
    }
}

static void find_times(const struct log_snapshot *s, const struct log_bounds *b)
{
    static const int64_t times[] = {0, 1, 1600000000000, 1700000000005, INT64_MAX};
    int64_t offset, timestamp;
    int32_t epoch;
    enum err err = log_find_max_timestamp(s, b->high_watermark, &offset, &timestamp, &epoch);

    for (size_t i = 0; i <= ARRAY_LEN(times); i++) {
        assert(err == ERR_NONE || err == ERR_CORRUPT_MESSAGE);
        assert(offset == -1 || (offset >= b->log_start && offset < b->high_watermark));
        if (i == ARRAY_LEN(times))
            break;
        err = log_find_timestamp(s, times[i], b->high_watermark, &offset, &timestamp, &epoch);
        assert(offset == -1 || timestamp >= times[i]);
    }
}

static void find_aborted(const struct log_view *v, const struct log_bounds *b)
{
    struct log_aborted_txn *txns;
    struct arena arena;
    enum err err;
    int n;

    arena_init(&arena, 0);
    err = log_view_aborted(v, b->log_start, b->high_watermark, LOG_BLOCKING, &arena, &txns, &n);
    assert(err == ERR_NONE || err == ERR_CORRUPT_MESSAGE);
    for (int i = 1; i < n; i++)
        assert(txns[i - 1].first_offset <= txns[i].first_offset);
    arena_fini(&arena);
}

static void run_reader(struct io_job *job)
{
    struct life *l = CONTAINER_OF(job, struct life, job);
    const struct log_view *v = log_snapshot_view(l->snapshot);
    struct log_bounds b;

    log_view_bounds(v, &b);
    assert(b.log_start <= b.last_stable && b.last_stable <= b.high_watermark);
    assert(b.high_watermark == b.ack && b.ack == b.end && !b.is_gone);
    read_batches(l, v, &b);
    find_times(l->snapshot, &b);
    find_aborted(v, &b);
}

/* ---- The life that uses its log ----------------------------------------------------------- */

static struct io_buf *make_batch(struct log_append *a)
{
    struct batch_spec spec = batch_spec_default();
    struct record r = {.timestamp = 1700000000005, .value = {.p = (const uint8_t *)"v", .n = 1}};
    struct batch_builder b;
    struct buf out = {0};
    struct io_buf *buf;
    enum err err;

    batch_builder_init(&b, &spec);
    err = batch_builder_append(&b, &r);
    assert(!err);
    batch_builder_finish(&b, &out);
    batch_builder_fini(&b);
    buf = io_buf_new(NULL, out.n);
    memcpy(buf->data, out.p, out.n);
    buf_fini(&out);
    *a = (struct log_append){.buf = buf,
                             .batch = buf->data,
                             .n = (int32_t)buf->size,
                             .max_timestamp = r.timestamp,
                             .now_ms = r.timestamp};
    return buf;
}

static void append_one(struct life *l, bool is_damaged)
{
    struct log_append a;
    struct io_buf *buf = make_batch(&a);
    int64_t end = log_end_offset(l->log);
    enum err err;

    a.leader_epoch = MAX(log_latest_epoch(l->log), 0);
    err = log_append(l->log, &a);
    assert(err == (is_damaged || end == INT64_MAX ? ERR_KAFKA_STORAGE_ERROR : ERR_NONE));
    assert(IMPLIES(!err, a.base_offset == end));
    l->end = log_end_offset(l->log);
    assert(l->end == end + !err);
    io_buf_unref(buf);
}

static void on_advanced(void *ctx)
{
    (void)ctx;
}

static void on_failed(void *ctx, enum err err, int64_t from_offset)
{
    (void)ctx, (void)from_offset;
    assert(err == ERR_NONE);
}

static void on_closed(void *ctx, enum err err)
{
    struct life *l = ctx;

    assert(!err);
    io_stop(l->io);
}

static void reader_done(struct io_job *job)
{
    struct life *l = CONTAINER_OF(job, struct life, job);

    log_snapshot_free(l->snapshot);
    append_one(l, l->report.damage != NULL);
    log_close(l->log, on_closed, l);
}

static void begin(void *ctx)
{
    static const struct log_events events = {.advanced = on_advanced, .failed = on_failed};
    struct life *l = ctx;

    l->tail_size = l->loaded->tail.size;
    l->log = log_own(l->loaded, l->loop, &events, l);
    l->loaded = NULL;
    log_set_high_watermark(l->log, log_ack_offset(l->log));
    l->snapshot = log_snapshot_take(log_view(l->log));
    l->job.run = run_reader;
    l->job.done = reader_done;
    io_job_submit(l->loop, &l->job);
}

static int64_t use(struct life *l)
{
    l->loop = io_loop_new(l->io, "control", begin, l);
    io_run(l->io);
    return l->end;
}

/* ---- Three lives -------------------------------------------------------------------------- */

/* Opens and checks; false when the directory is refused. */
static bool live(struct life *l, const char *path, const struct topic_config *config,
                 struct facts *facts)
{
    enum err err = life_begin(l, path, config);

    if (!err)
        *facts = facts_of(l);
    else
        assert(err == ERR_CORRUPT || err == ERR_CORRUPT_MESSAGE || err == ERR_BAD_VERSION ||
               err == ERR_LIMIT);
    return !err;
}

static void check_lives(const char *path, const char *dir, const struct topic_config *config)
{
    struct facts first, second, third;
    struct life l;
    int64_t end;
    bool is_there = live(&l, path, config, &first);

    if (is_there)
        assert(kept_bytes(dir) == l.report.bytes_cut);
    life_end(&l);
    assert(live(&l, path, config, &second) == is_there);
    if (!is_there) {
        life_end(&l);
        return;
    }
    if (!first.is_damaged)
        check_same(&first, &second);
    assert(first.is_damaged || l.report.bytes_cut == 0);
    end = use(&l);
    life_end(&l);
    is_there = live(&l, path, config, &third);
    assert(is_there && third.start == second.start);
    if (!second.is_damaged) {
        assert(!third.is_damaged && third.end == end);
        assert(l.report.bytes_cut == 0 && l.report.bytes_scanned == 0);
        assert(third.producer_count == second.producer_count);
    }
    life_end(&l);
}

static void check_input(uint8_t options, uint8_t *p, size_t n)
{
    const char *tmp = getenv("TMPDIR");
    char *path = xasprintf("%s/strandline-segment-XXXXXX", tmp ? tmp : "/tmp");
    char *dir;
    struct topic_config config = {
        .cleanup_policy = options & IS_COMPACTED ? TOPIC_CLEANUP_COMPACT : TOPIC_CLEANUP_DELETE,
        .is_adopted = options & IS_ADOPTED,
        .retention_ms = -1,
        .retention_bytes = -1,
        .segment_bytes = 1 << 20,
        .segment_ms = INT64_MAX,
        .segment_index_bytes = 1 << 20,
        .index_interval_bytes = options & IS_SPARSE ? 4096 : 100,
        .max_message_bytes = 1 << 20,
        .max_compaction_lag_ms = INT64_MAX,
        .flush_on_ack = true,
        .flush_messages = INT64_MAX,
        .flush_ms = INT64_MAX,
    };

    assert(mkdtemp(path));
    dir = xasprintf("%s/t-0", path);
    write_all(path, dir, p, n, options & IS_CLEAN);
    check_lives(path, dir, &config);
    remove_all(path);
    free(dir);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    if (size < 1 || size > INPUT_BYTES_MAX)
        return 0;
    copy = xmemdup(data, size);
    check_input(copy[0], copy + 1, size - 1);
    free(copy);
    return 0;
}

/* ---- The mutator -------------------------------------------------------------------------- */

/* One of the files; false when there is none. */
static bool choose_file(uint8_t *p, size_t left, unsigned seed, struct file *out)
{
    struct file files[FILES_MAX];
    unsigned n = 0;

    while (n < FILES_MAX && next_file(&p, &left, &files[n]))
        n++;
    if (n > 0)
        *out = files[seed % n];
    return n > 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint8_t *end = data + size;
    uint8_t *changed;
    struct file f;
    size_t room, n;

    if (seed % 8 == 0 || size < 1 || !choose_file(data + 1, size - 1, seed / 64, &f))
        return LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 == 1) {
        LLVMFuzzerMutate(f.p - FILE_HEADER_BYTES, 9, 9);
        return size;
    }
    room = MIN((size_t)f.n + max_size - size, UINT16_MAX);
    if (room == 0) /* it takes no room for one byte */
        return LLVMFuzzerMutate(data, size, max_size);
    changed = xmalloc(room + 1);
    memcpy(changed, f.p, (size_t)f.n);
    n = LLVMFuzzerMutate(changed, (size_t)f.n, room);
    memmove(f.p + n, f.p + f.n, (size_t)(end - f.p) - (size_t)f.n);
    memcpy(f.p, changed, n);
    put_u16(f.p - 2, (uint16_t)n);
    free(changed);
    return size + n - (size_t)f.n;
}
