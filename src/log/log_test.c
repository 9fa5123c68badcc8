/* SPDX-License-Identifier: Apache-2.0 */
/* The log on the real implementation of io: appends, reads, truncation, recovery, and what another
 * loop sees. How it ends is in close_test.c. */
#include "log/life_test.h"

#include <glob.h>
#include <sys/stat.h>

#include "base/arena.h"

/* ---- Reading ---------------------------------------------------------------------------- */

/* Reads everything from `offset` as a consumer would; returns the offset behind the last batch. */
static int64_t consume(struct fixture *f, int64_t offset, int32_t max_bytes)
{
    int64_t upto = log_high_watermark(f->log);
    struct log_range r;

    while (offset < upto) {
        struct header_walk w;
        assert_int_equal(
            log_view_read(log_view(f->log), offset, upto, max_bytes, true, LOG_CACHED, &r),
            ERR_NONE);
        assert_non_null(r.file);
        header_walk_init(&w, r.file, r.pos, r.pos + r.n, LOG_CACHED);
        assert_int_equal(header_walk_next(&w), ERR_NONE);
        do {
            assert_true(w.header.base_offset <= offset);
            assert_true(batch_last_offset(&w.header) >= offset);
            offset = batch_last_offset(&w.header) + 1;
        } while (header_walk_next(&w) == ERR_NONE);
        assert_true(w.pos + w.total == r.pos + r.n); /* Nothing is sent in vain. */
        io_file_unref(r.file);
    }
    return offset;
}

static void check_index(const struct segment_extent *s)
{
    for (int64_t i = 0; i < s->index_count; i++) {
        uint8_t p[INDEX_ENTRY_BYTES];
        struct header_walk w;
        assert_int_equal(read_fully(s->segment->index, p, sizeof(p), i * 8, LOG_CACHED), ERR_NONE);
        header_walk_init(&w, s->segment->log, get_i32(p + 4), s->size, LOG_CACHED);
        assert_int_equal(header_walk_next(&w), ERR_NONE);
        assert_int_equal(batch_last_offset(&w.header), s->segment->base_offset + get_i32(p));
    }
}

/* The rules by which kafka-dump-log judges a time index. */
static void check_timeindex(const struct segment_extent *s)
{
    int64_t last = -1;

    for (int64_t i = 0; i < s->time_count; i++) {
        uint8_t p[TIMEINDEX_ENTRY_BYTES];
        struct header_walk w;
        int64_t offset;
        assert_int_equal(read_fully(s->segment->timeindex, p, sizeof(p), i * 12, LOG_CACHED),
                         ERR_NONE);
        offset = s->segment->base_offset + get_i32(p + 8);
        assert_true(get_i64(p) > last);
        last = get_i64(p);
        assert_int_equal(segment_find(s, offset, LOG_CACHED, &w), ERR_NONE);
        assert_int_equal(batch_last_offset(&w.header), offset);
        assert_int_equal(w.header.max_timestamp, last);
    }
}

static void check_indexes(struct fixture *f, size_t least_entries)
{
    struct view_record r;
    size_t entries = 0;

    view_load(log_view(f->log), &r);
    for (size_t i = 0; i < r.list->n; i++) {
        struct segment_extent s = view_extent(&r, i);
        check_index(&s);
        check_timeindex(&s);
        entries += (size_t)s.index_count;
    }
    assert_true(entries >= least_entries);
}

/* ---- Tests ------------------------------------------------------------------------------ */

/* Where the last batch stands, and its first offset. */
static void note_last_batch(struct fixture *f)
{
    struct view_record r;
    struct segment_extent s;
    struct header_walk w;

    view_load(log_view(f->log), &r);
    s = view_extent(&r, r.list->n - 1);
    assert_int_equal(segment_find(&s, r.bounds.end - 1, LOG_CACHED, &w), ERR_NONE);
    f->answer[0] = w.pos;
    f->answer[1] = w.header.base_offset;
}

/* The view says what the owner knows, of the segments too that have not been written to lately. */
static int64_t check_size(struct fixture *f, int64_t segments_min)
{
    int64_t bytes;
    int64_t segments;

    log_view_size(log_view(f->log), &bytes, &segments);
    assert_int_equal(bytes, log_size_bytes(f->log));
    assert_true(segments >= segments_min);
    return segments;
}

static void fill(struct fixture *f)
{
    if (f->stage++ == 0) {
        log_begin_epoch(f->log, 0);
        append_many(f, 200);
        assert_int_equal(log_end_offset(f->log), 399);
    }
    if (!all_acked(f))
        return;
    check_size(f, f->config.segment_bytes < 1 << 20 ? 3 : 1);
    assert_int_equal(consume(f, 0, 1), 399);
    assert_int_equal(consume(f, 0, 700), 399);
    assert_int_equal(consume(f, 123, 1 << 20), 399);
    check_indexes(f, 20);
    note_last_batch(f);
    close_log(f);
}

static void fill_again(struct fixture *f)
{
    assert_int_equal(log_start_offset(f->log), 0);
    assert_int_equal(log_end_offset(f->log), 399);
    assert_int_equal(log_ack_offset(f->log), 399);
    assert_int_equal(log_high_watermark(f->log), 399);
    assert_int_equal(log_latest_epoch(f->log), 0);
    assert_int_equal(f->report.bytes_scanned, 0);
    assert_int_equal(f->report.bytes_cut, 0);
    assert_int_equal(f->report.latest_epoch, 0);
    assert_int_equal(f->report.producer_id_max, -1);
    assert_int_equal(consume(f, 0, 900), 399);
    check_indexes(f, 20);
    close_log(f);
}

static void every_offset_is_read_across_segments_and_after_a_restart(void **state)
{
    struct fixture *f = *state;

    live(f, fill);
    assert_true(f->err == ERR_NONE);
    live(f, fill_again);
}

static void fill_and_drop(struct fixture *f)
{
    if (f->stage++ == 0)
        append_many(f, 200);
    if (all_acked(f))
        die(); /* No close: the next life recovers. */
}

static void found_after_kill(struct fixture *f)
{
    assert_false(f->found.clean);
    assert_int_equal(log_end_offset(f->log), 399);
    assert_true(f->report.bytes_scanned > 10000);
    assert_int_equal(f->report.bytes_cut, 0);
    log_set_high_watermark(f->log, 399);
    assert_int_equal(consume(f, 0, 900), 399);
    check_indexes(f, 20);
    close_log(f);
}

static void an_unclean_stop_rebuilds_the_same_indexes(void **state)
{
    struct fixture *f = *state;

    live_and_die(f, fill_and_drop);
    live(f, found_after_kill);
}

static void bounds(struct fixture *f)
{
    struct log_view *v = log_view(f->log);
    struct header_walk w;
    struct log_range r;

    if (f->stage++ == 0)
        append_many(f, 30);
    if (!all_acked(f))
        return;
    int64_t end = log_end_offset(f->log);
    assert_int_equal(log_view_read(v, end + 1, end, 100, true, LOG_CACHED, &r),
                     ERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(log_view_read(v, -1, end, 100, true, LOG_CACHED, &r), ERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(log_view_read(v, end, end, 100, true, LOG_CACHED, &r), ERR_NONE);
    assert_null(r.file);
    assert_int_equal(log_view_read(v, 0, end, 20, false, LOG_CACHED, &r), ERR_NONE);
    assert_null(r.file);
    assert_int_equal(log_view_read(v, 0, 1, 1 << 20, false, LOG_CACHED, &r), ERR_NONE);
    assert_int_equal(r.pos, 0);
    header_walk_init(&w, r.file, 0, r.n, LOG_CACHED);
    assert_int_equal(header_walk_next(&w), ERR_NONE);
    assert_int_equal(r.n, w.total); /* The batch at 1 is not below the bound. */
    assert_in_range(log_view_bytes_between(v, 0, 1), 1, 2 * r.n);
    io_file_unref(r.file);
    close_log(f);
}

static void a_read_keeps_to_its_bounds(void **state)
{
    live(*state, bounds);
}

static void repeat(struct fixture *f)
{
    struct io_buf *buf;
    struct log_append first, second;

    if (f->stage++ > 0) {
        if (all_acked(f))
            close_log(f);
        return;
    }
    buf = make(f, (struct wanted_batch){.count = 3, .timestamp = T0});
    assert_int_equal(append_buf(f, buf, LOG_ORIGIN_CLIENT, 0, &first), ERR_NONE);
    io_buf_unref(buf);
    buf = make(f, (struct wanted_batch){.count = 3, .timestamp = T0});
    assert_int_equal(append_buf(f, buf, LOG_ORIGIN_CLIENT, 0, &second), ERR_NONE);
    io_buf_unref(buf);
    assert_true(second.is_duplicate);
    assert_int_equal(second.base_offset, first.base_offset);
    assert_int_equal(log_end_offset(f->log), 3);
}

static void repeat_later(struct fixture *f)
{
    struct io_buf *buf = make(f, (struct wanted_batch){.count = 3, .timestamp = T0});
    struct log_append a;

    assert_int_equal(append_buf(f, buf, LOG_ORIGIN_CLIENT, 0, &a), ERR_NONE);
    io_buf_unref(buf);
    assert_true(a.is_duplicate);
    assert_int_equal(a.last_offset, 2);
    close_log(f);
}

static void a_repeated_batch_is_recognised_in_flight_and_after_a_restart(void **state)
{
    struct fixture *f = *state;

    f->producer_id = 7;
    live(f, repeat);
    live(f, repeat_later);
}

static void transact(struct fixture *f)
{
    struct log_aborted_txn *v;
    struct arena arena;
    int n;

    if (f->stage++ == 0) {
        append(f, (struct wanted_batch){.count = 2, .timestamp = T0, .is_transactional = true});
        append(f, (struct wanted_batch){.count = 1, .timestamp = T0, .is_transactional = true});
        append_marker(f, CONTROL_ABORT);
        append(f, (struct wanted_batch){.count = 1, .timestamp = T0, .is_transactional = true});
    }
    if (log_ack_offset(f->log) < 5)
        return;
    log_set_high_watermark(f->log, 3);
    assert_int_equal(log_last_stable_offset(f->log), 0);
    log_set_high_watermark(f->log, 5);
    assert_int_equal(log_last_stable_offset(f->log), 4);
    arena_init(&arena, 0);
    assert_int_equal(log_view_aborted(log_view(f->log), 0, 5, LOG_CACHED, &arena, &v, &n),
                     ERR_NONE);
    assert_int_equal(n, 1);
    assert_int_equal(v[0].producer_id, 7);
    assert_int_equal(v[0].first_offset, 0);
    assert_int_equal(log_view_aborted(log_view(f->log), 4, 5, LOG_CACHED, &arena, &v, &n),
                     ERR_NONE);
    assert_int_equal(n, 0);
    arena_fini(&arena);
    die();
}

static void transact_again(struct fixture *f)
{
    struct log_aborted_txn *v;
    struct log_producer *p;
    struct arena arena;
    int n;

    arena_init(&arena, 0);
    assert_int_equal(log_view_aborted(log_view(f->log), 0, 5, LOG_CACHED, &arena, &v, &n),
                     ERR_NONE);
    assert_int_equal(n, 1);
    assert_int_equal(v[0].first_offset, 0);
    log_producers(f->log, &arena, &p, &n);
    assert_int_equal(n, 1);
    assert_int_equal(p[0].txn_start_offset, 4);
    assert_int_equal(p[0].last_sequence, 3);
    assert_int_equal(f->report.producer_id_max, 7);
    log_set_high_watermark(f->log, 5);
    assert_int_equal(log_last_stable_offset(f->log), 4);
    arena_fini(&arena);
    close_log(f);
}

static void aborted_transactions_are_listed_before_and_after_recovery(void **state)
{
    struct fixture *f = *state;

    f->producer_id = 7;
    live_and_die(f, transact);
    live(f, transact_again);
    live(f, transact_again);
}

static void find_run(struct io_job *job)
{
    struct fixture *f = CONTAINER_OF(job, struct fixture, job);
    int32_t epoch;
    int64_t t;

    assert_int_equal(log_find_timestamp(f->snapshot, T0 + 50001, 399, &f->answer[0], &t, &epoch),
                     ERR_NONE);
    assert_int_equal(t, T0 + 50001);
    assert_int_equal(epoch, 0);
    assert_int_equal(log_find_timestamp(f->snapshot, T0 + 900000, 399, &f->answer[1], &t, &epoch),
                     ERR_NONE);
    assert_int_equal(log_find_max_timestamp(f->snapshot, 399, &f->answer[2], &t, &epoch), ERR_NONE);
    assert_int_equal(t, T0 + 199 * 1000 + 1);
}

static void find_done(struct io_job *job)
{
    struct fixture *f = CONTAINER_OF(job, struct fixture, job);

    log_snapshot_free(f->snapshot);
    /* Batch i has 1 + i % 3 records from T0 + 1000 i on; batch 50 is 99..101. */
    assert_int_equal(f->answer[0], 100);
    assert_int_equal(f->answer[1], -1);
    assert_int_equal(f->answer[2], 398);
    close_log(f);
}

static void find(struct fixture *f)
{
    if (f->stage++ == 0)
        append_many(f, 200);
    if (!all_acked(f))
        return;
    f->snapshot = log_snapshot_take(log_view(f->log));
    f->job.run = find_run;
    f->job.done = find_done;
    io_job_submit(f->loop, &f->job);
}

static void timestamps_lead_to_records(void **state)
{
    live(*state, find);
}

/* Old or not: what no recovery point covers stays, since its producers are in no snapshot yet. */
static void retain_too_early(struct fixture *f)
{
    if (f->stage++ == 0)
        append_many(f, 200);
    if (!all_acked(f))
        return;
    f->config.retention_bytes = 0;
    log_set_config(f->log, &f->config);
    assert_int_equal(log_apply_retention(f->log, T0, 100), 0);
    close_log(f);
}

static void retain(struct fixture *f)
{
    int64_t size = log_size_bytes(f->log);
    int64_t segments = check_size(f, 3);
    int gone;

    f->config.retention_bytes = -1;
    log_set_config(f->log, &f->config);
    assert_int_equal(log_apply_retention(f->log, T0, 100), 0);
    f->config.retention_bytes = size - 5000;
    log_set_config(f->log, &f->config);
    gone = log_apply_retention(f->log, T0, 100);
    assert_int_equal(gone, 1);
    assert_true(log_start_offset(f->log) > 0);
    assert_int_equal(check_size(f, 2), segments - 1);
    f->config.retention_bytes = -1;
    f->config.retention_ms = 1000;
    log_set_config(f->log, &f->config);
    assert_int_equal(log_apply_retention(f->log, T0 + 90000, 2), 2);
    log_set_high_watermark(f->log, log_ack_offset(f->log));
    assert_int_equal(consume(f, log_start_offset(f->log), 900), 399);
    close_log(f);
}

static void retain_again(struct fixture *f)
{
    assert_true(log_start_offset(f->log) > 30);
    assert_int_equal(consume(f, log_start_offset(f->log), 900), 399);
    /* Everything is old now, the active segment too. */
    if (f->stage++ == 0) {
        assert_true(log_apply_retention(f->log, T0 + 100000000, 100) > 0);
        close_log(f);
    }
}

static void old_segments_go_by_size_and_time(void **state)
{
    struct fixture *f = *state;

    live(f, retain_too_early);
    live(f, retain);
    live(f, retain_again);
}

static void dies_as_found(struct fixture *f)
{
    _exit(f->found.clean != f->wants_clean);
}

static void is_as_found(struct fixture *f)
{
    assert_int_equal(f->found.clean, f->wants_clean);
    close_log(f);
}

/* Whatever ends a life: until its logs are closed nothing says that they were. */
static void s31_a_clean_stop_is_believed_once(void **state)
{
    struct fixture *f = *state;

    live(f, fill);
    f->wants_clean = true;
    live_and_die(f, dies_as_found);
    f->wants_clean = false;
    live_and_die(f, dies_as_found);
    live(f, is_as_found);
}

static void truncate_it(struct fixture *f)
{
    switch (f->stage) {
    case 0:
        f->stage = 1;
        log_begin_epoch(f->log, 0);
        append_many(f, 100);
        log_begin_epoch(f->log, 5);
        append(f, (struct wanted_batch){.count = 2, .timestamp = T0, .epoch = 5});
        return;
    case 1:
        if (!all_acked(f))
            return;
        f->stage = 2;
        log_truncate(f->log, 150, on_done, f);
        return;
    case 2: {
        int32_t epoch;
        int64_t end;
        f->stage = 3;
        assert_int_equal(f->err, ERR_NONE);
        assert_in_range(log_end_offset(f->log), 148, 150);
        assert_int_equal(log_latest_epoch(f->log), 0);
        log_epoch_end(f->log, 0, &epoch, &end);
        assert_int_equal(end, log_end_offset(f->log));
        append(f, (struct wanted_batch){.count = 1, .timestamp = T0, .epoch = 6});
        return;
    }
    default:
        if (!all_acked(f))
            return;
        assert_int_equal(consume(f, 0, 900), log_end_offset(f->log));
        check_indexes(f, 10);
        close_log(f);
    }
}

static void a_truncated_log_goes_on_from_there(void **state)
{
    live(*state, truncate_it);
}

/* Batches of 1, 2 and 3 records in turn: one of them holds the offsets 183 to 185. */
static void truncate_inside_the_first_batch(struct fixture *f)
{
    switch (f->stage++) {
    case 0:
        f->producer_id = 7;
        append_many(f, 100);
        return;
    case 1:
        if (!all_acked(f)) {
            f->stage = 1;
            return;
        }
        log_advance_start(f->log, 184, on_done, f);
        return;
    case 2:
        assert_int_equal(f->err, ERR_NONE);
        log_truncate(f->log, 185, on_done, f);
        return;
    default:
        assert_int_equal(f->err, ERR_NONE);
        assert_int_equal(log_start_offset(f->log), 184);
        assert_int_equal(log_end_offset(f->log), 184);
        assert_int_equal(log_size_bytes(f->log), 0);
        close_log(f);
    }
}

static void begins_where_it_did(struct fixture *f)
{
    if (f->stage++ == 0) {
        assert_true(f->found.clean);
        assert_int_equal(log_start_offset(f->log), 184);
        assert_int_equal(log_end_offset(f->log), 184);
        f->sequence = 0; /* The producer went with its batches. */
        append(f, (struct wanted_batch){.count = 2, .timestamp = T0});
        return;
    }
    if (!all_acked(f))
        return;
    assert_int_equal(consume(f, 184, 900), 186);
    close_log(f);
}

static void a_truncation_does_not_move_the_log_start_back(void **state)
{
    live(*state, truncate_inside_the_first_batch);
    live(*state, begins_where_it_did);
}

static void append_before_it_is_stray(struct fixture *f)
{
    if (f->stage++ == 0)
        append_many(f, 30);
    else if (all_acked(f))
        close_log(f);
}

static void on_forgotten(void *ctx, enum err err)
{
    struct fixture *f = ctx;

    f->err = err;
    io_stop(f->io);
}

static void forget_it(void *ctx)
{
    struct fixture *f = ctx;

    log_dir_start(f->dir, f->loop);
    log_dir_forget(f->dir, "t", 3, on_forgotten, f);
}

/* The partition's line in a checkpoint of the directory. */
static bool is_in_checkpoint(const struct fixture *f, const char *name)
{
    char *command = xasprintf("grep -q '^t 3 ' %s/%s", f->path, name);
    int status = system(command);

    free(command);
    return status == 0;
}

static void what_is_known_of_a_stray_directory_is_forgotten(void **state)
{
    struct log_dir_identity identity = {
        .cluster_id = STR_LIT("c"),
        .node_id = 1,
        .cluster_id_new = STR_LIT("c"),
        .node_id_new = 1,
    };
    struct fixture *f = *state;
    char *message;

    live(f, append_before_it_is_stray);
    assert_true(is_in_checkpoint(f, "recovery-point-offset-checkpoint"));
    assert_true(is_in_checkpoint(f, "replication-offset-checkpoint"));
    f->err = ERR_UNKNOWN;
    f->io = io_new(NULL);
    assert_int_equal(log_dir_open(f->io, f->path, &identity, &f->dir, &f->found, &message),
                     ERR_NONE);
    f->loop = io_loop_new(f->io, "control", forget_it, f);
    io_run(f->io);
    assert_int_equal(f->err, ERR_NONE);
    assert_false(is_in_checkpoint(f, "recovery-point-offset-checkpoint"));
    assert_false(is_in_checkpoint(f, "replication-offset-checkpoint"));
    assert_int_equal(log_dir_set_aside(f->dir, "t", 3), ERR_NONE);
    log_dir_close(f->dir);
    io_free(f->io);
    log_dir_found_free(&f->found);
}

/* As a follower: the batch as its leader wrote it. */
static enum err replicate(struct fixture *f, int64_t offset, int32_t epoch)
{
    struct io_buf *buf = make(f, (struct wanted_batch){.count = 1, .timestamp = T0});
    struct log_append a;
    enum err err;

    batch_stamp(buf->data, offset, epoch);
    err = append_buf(f, buf, LOG_ORIGIN_REPLICATION, -1, &a);
    io_buf_unref(buf);
    return err;
}

static void follow_and_lead(struct fixture *f)
{
    int32_t epoch;
    int64_t end;

    if (f->stage++ == 0) {
        assert_int_equal(replicate(f, 0, 1), ERR_NONE);
        assert_int_equal(replicate(f, 0, 1), ERR_OFFSET_OUT_OF_RANGE);
        log_begin_epoch(f->log, 4);
        log_begin_epoch(f->log, 6);
        /* Nothing was written in 4 and 6, and the leader of 7 has more of 1. */
        assert_int_equal(replicate(f, 1, 1), ERR_NONE);
        assert_int_equal(replicate(f, 2, 5), ERR_NONE);
        assert_int_equal(replicate(f, 3, 4), ERR_FENCED_LEADER_EPOCH);
    }
    if (!all_acked(f))
        return;
    assert_int_equal(log_epoch_at(f->log, 1), 1);
    assert_int_equal(log_epoch_at(f->log, 2), 5);
    log_epoch_end(f->log, 4, &epoch, &end);
    assert_int_equal(epoch, 1);
    assert_int_equal(end, 2);
    assert_int_equal(log_latest_epoch(f->log), 5);
    close_log(f);
}

static void a_followers_epochs_are_those_of_its_records(void **state)
{
    live(*state, follow_and_lead);
}

/* Whoever comes with records of 6, which this log has never seen, is told where to cut. */
static void check_epoch_without_records(struct fixture *f)
{
    int32_t epoch;
    int64_t end;

    assert_int_equal(log_latest_epoch(f->log), 7);
    log_epoch_end(f->log, 6, &epoch, &end);
    assert_int_equal(epoch, 5);
    assert_int_equal(end, 3);
    log_epoch_end(f->log, 7, &epoch, &end);
    assert_int_equal(epoch, 7);
    assert_int_equal(end, 3);
}

static void lead_without_writing(struct fixture *f)
{
    if (f->stage++ == 0) {
        log_begin_epoch(f->log, 5);
        append(f, (struct wanted_batch){.count = 3, .timestamp = T0, .epoch = 5});
    } else if (all_acked(f)) {
        log_begin_epoch(f->log, 7);
        check_epoch_without_records(f);
        close_log(f);
    }
}

static void lead_again_and_die(struct fixture *f)
{
    if (f->stage++ == 0) {
        log_begin_epoch(f->log, 8);
        append(f, (struct wanted_batch){.count = 1, .timestamp = T0, .epoch = 8});
    } else if (all_acked(f)) {
        die();
    }
}

static void still_knows(struct fixture *f)
{
    check_epoch_without_records(f);
    close_log(f);
}

static void knows_the_later_one(struct fixture *f)
{
    int32_t epoch;
    int64_t end;

    assert_int_equal(log_latest_epoch(f->log), 8);
    log_epoch_end(f->log, 7, &epoch, &end);
    assert_int_equal(epoch, 5); /* nothing was ever written in 7 */
    assert_int_equal(end, 3);
    close_log(f);
}

static void s4_a_leader_that_has_written_nothing_knows_where_its_epoch_begins(void **state)
{
    struct fixture *f = *state;

    live(f, lead_without_writing);
    live(f, still_knows);
    live_and_die(f, lead_again_and_die);
    live(f, knows_the_later_one);
}

static void start_over(struct fixture *f)
{
    switch (f->stage++) {
    case 0: append_many(f, 100); return;
    case 1:
        if (all_acked(f))
            log_start_over(f->log, 1000, on_done, f);
        else
            f->stage = 1;
        return;
    case 2:
        assert_int_equal(f->err, ERR_NONE);
        assert_int_equal(log_start_offset(f->log), 1000);
        assert_int_equal(log_end_offset(f->log), 1000);
        assert_int_equal(log_high_watermark(f->log), 1000);
        assert_int_equal(log_latest_epoch(f->log), -1);
        assert_int_equal(replicate(f, 1000, 3), ERR_NONE);
        return;
    default:
        if (all_acked(f))
            die(); /* The next life recovers. */
    }
}

static void begins_anew(struct fixture *f)
{
    assert_int_equal(log_start_offset(f->log), 1000);
    assert_int_equal(log_end_offset(f->log), 1001);
    assert_int_equal(log_epoch_at(f->log, 1000), 3);
    log_set_high_watermark(f->log, 1001);
    assert_int_equal(consume(f, 1000, 900), 1001);
    close_log(f);
}

static void a_log_starts_over_where_its_leaders_begins(void **state)
{
    struct fixture *f = *state;

    live_and_die(f, start_over);
    live(f, begins_anew);
}

static void flip(struct fixture *f, const char *name, int64_t pos)
{
    char *path = xasprintf("%s/t-3/%s", f->path, name);
    FILE *file = fopen(path, "r+b");
    int c;

    assert_non_null(file);
    fseek(file, pos, SEEK_SET);
    c = fgetc(file);
    fseek(file, pos, SEEK_SET);
    fputc(c ^ 0x55, file);
    fclose(file);
    free(path);
}

static void damaged(struct fixture *f)
{
    struct log_range r;
    struct io_buf *buf = make(f, (struct wanted_batch){.count = 1, .timestamp = T0});
    struct log_append a;

    assert_non_null(f->report.damage);
    assert_int_equal(log_end_offset(f->log), f->answer[1]);
    assert_int_equal(log_view_read(log_view(f->log), f->answer[1], 399, 100, true, LOG_CACHED, &r),
                     ERR_CORRUPT_MESSAGE);
    assert_int_equal(consume(f, 0, 900), f->answer[1]);
    assert_int_equal(append_buf(f, buf, LOG_ORIGIN_CLIENT, 0, &a), ERR_KAFKA_STORAGE_ERROR);
    io_buf_unref(buf);
    close_log(f);
}

static void damage_below_the_recovery_point_is_reported_and_kept(void **state)
{
    struct fixture *f = *state;

    f->config.segment_bytes = 1 << 20;
    live(f, fill);
    flip(f, "00000000000000000000.log", f->answer[0] + 16); /* the last batch's magic */
    live(f, damaged);
    live(f, damaged);
}

static void torn(struct fixture *f)
{
    assert_null(f->report.damage);
    assert_true(f->report.bytes_cut > 0);
    assert_true(log_end_offset(f->log) < 399);
    log_set_high_watermark(f->log, log_ack_offset(f->log));
    assert_int_equal(consume(f, 0, 900), log_end_offset(f->log));
    close_log(f);
}

static void a_torn_tail_is_cut_and_kept_aside(void **state)
{
    struct fixture *f = *state;
    char *path;
    struct io_names names;
    struct io *io;
    bool found = false;

    live_and_die(f, fill_and_drop);
    flip(f, "00000000000000000000.log", 2000);
    live(f, torn);
    path = xasprintf("%s/t-3", f->path);
    io = io_new(&(struct io_options){.trace_level = TRACE_ERROR});
    assert_int_equal(io_dir_list(io, path, &names), ERR_NONE);
    for (size_t i = 0; i < names.n; i++)
        found |= name_ends_with(names.v[i], ".cut");
    assert_true(found);
    io_names_free(&names);
    io_free(io);
    free(path);
}

static void whole_but_for_a_hole(struct fixture *f)
{
    assert_null(f->report.damage);
    assert_int_equal(f->report.bytes_cut, 0);
    assert_int_equal(log_end_offset(f->log), 399);
    close_log(f);
}

static void what_another_broker_compacted_is_kept_across_holes(void **state)
{
    struct fixture *f = *state;
    char *command = xasprintf("cd %s/t-3 && rm $(ls | grep '[.]log$' | sed -n 3p)", f->path);

    live_and_die(f, fill_and_drop);
    assert_int_equal(system(command), 0);
    f->config.is_adopted = true;
    live(f, whole_but_for_a_hole);
    free(command);
}

/* ---- A reader on another loop ------------------------------------------------------------- */

struct reader {
    struct io_msg msg;
    struct fixture *f;
    struct io_loop *loop;
    _Atomic(struct log_view *) view;
    atomic_bool stop;
    int64_t high_watermark;
    int64_t reads;
};

static struct reader reader;

/* Nothing that was below the high watermark when it was looked up is ever cut. */
static void check_committed(const struct log_range *r, int64_t offset)
{
    struct header_walk w;

    header_walk_init(&w, r->file, r->pos, r->pos + r->n, LOG_CACHED);
    assert_int_equal(header_walk_next(&w), ERR_NONE);
    assert_true(w.header.base_offset <= offset);
    do {
        assert_true(batch_last_offset(&w.header) >= offset);
        offset = batch_last_offset(&w.header) + 1;
    } while (header_walk_next(&w) == ERR_NONE);
}

static void read_once(struct reader *r, struct log_view *view)
{
    struct log_bounds b;
    struct log_range range;
    enum err err;

    log_view_bounds(view, &b);
    assert_true(b.log_start <= b.last_stable && b.last_stable <= b.high_watermark);
    assert_true(b.high_watermark <= b.ack && b.ack <= b.end);
    assert_true(b.high_watermark >= r->high_watermark);
    r->high_watermark = b.high_watermark;
    err =
        log_view_read(view, b.high_watermark / 2, b.high_watermark, 500, true, LOG_CACHED, &range);
    if (err)
        assert_int_equal(err, ERR_OFFSET_OUT_OF_RANGE); /* Retention was faster. */
    if (!err && range.file) {
        check_committed(&range, b.high_watermark / 2);
        io_file_unref(range.file);
        r->reads++;
    }
}

static void reader_turn(struct io_msg *msg)
{
    struct reader *r = CONTAINER_OF(msg, struct reader, msg);
    struct log_view *view = atomic_load(&r->view);

    if (atomic_load(&r->stop))
        return;
    if (view)
        read_once(r, view);
    io_post(r->loop, &r->msg);
}

static void reader_start(void *ctx)
{
    struct reader *r = ctx;

    r->msg.fn = reader_turn;
    io_post(r->loop, &r->msg);
}

static void begin_reader(struct io *io)
{
    reader.loop = io_loop_new(io, "reader", reader_start, &reader);
}

static void write_beside(struct fixture *f);

static void cut_beside(void *ctx, enum err err)
{
    struct fixture *f = ctx;

    assert_int_equal(err, ERR_NONE);
    f->is_cutting = false;
    write_beside(f);
}

/* What is committed and then goes by retention; then what is not committed, and cut off again. */
static void write_beside(struct fixture *f)
{
    if (f->is_cutting || (f->stage > 0 && log_ack_offset(f->log) < log_end_offset(f->log)))
        return;
    atomic_store(&reader.view, log_view(f->log));
    if (f->stage % 3 == 0) {
        f->config.retention_bytes = 20000;
        log_set_config(f->log, &f->config);
        (void)log_apply_retention(f->log, T0, 2);
    } else if (f->stage % 3 == 1) {
        log_set_high_watermark(f->log, log_ack_offset(f->log));
    }
    if (f->stage++ % 3 < 2) {
        append_many(f, 40);
    } else if (f->stage < 30) {
        f->is_cutting = true;
        log_truncate(f->log, log_high_watermark(f->log), cut_beside, f);
    } else {
        atomic_store(&reader.stop, true);
        close_log(f);
    }
}

static void s30_another_loop_reads_while_the_owner_appends_rolls_and_cuts(void **state)
{
    struct fixture *f = *state;

    memset(&reader, 0, sizeof(reader));
    reader.f = f;
    f->begin_reader = begin_reader;
    live(f, write_beside);
    assert_true(reader.reads > 0);
}

static void too_large(struct fixture *f)
{
    struct io_buf *buf = make(f, (struct wanted_batch){.count = 60, .timestamp = T0});
    struct log_append a;

    assert_int_equal(append_buf(f, buf, LOG_ORIGIN_CLIENT, 0, &a), ERR_RECORD_LIST_TOO_LARGE);
    assert_int_equal(log_end_offset(f->log), 0);
    io_buf_unref(buf);
    close_log(f);
}

static void a_batch_larger_than_a_segment_is_refused(void **state)
{
    live(*state, too_large);
}

static void fill_two_segments(struct fixture *f)
{
    if (log_end_offset(f->log) == 0)
        append_many(f, 16000);
    if (all_acked(f))
        close_log(f);
}

static void a_segment_keeps_no_space_that_it_does_not_use(void **state)
{
    struct fixture *f = *state;
    char *pattern = xasprintf("%s/t-3/*.log", f->path);
    struct stat st;
    glob_t found;

    f->config.segment_bytes = 2560 * 1024;
    live(f, fill_two_segments);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 2);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        assert_int_equal(stat(found.gl_pathv[i], &st), 0);
        assert_true(st.st_size > 1536 * 1024);
        assert_in_range(st.st_blocks * 512, st.st_size, st.st_size + 65536);
    }
    globfree(&found);
    free(pattern);
}

struct flush_wait {
    struct io_timer timer;
    struct fixture *f;
    int looks;
};

static void look_for_flush(struct io_op *op)
{
    struct flush_wait *w = CONTAINER_OF(op, struct flush_wait, timer.op);
    struct fixture *f = w->f;

    if (f->log->unflushed_messages == 0 || ++w->looks > 2000) {
        f->answer[0] = f->log->unflushed_messages;
        free(w);
        close_log(f);
        return;
    }
    io_timer_set(f->loop, &w->timer, io_loop_mono_ns(f->loop) + 1000000);
}

static void append_and_wait_for_flush(struct fixture *f)
{
    struct flush_wait *w;

    if (f->stage++ > 0)
        return;
    append_many(f, 3);
    assert_true(f->log->unflushed_messages > 0);
    w = xcalloc(1, sizeof(*w));
    w->f = f;
    w->timer.op.done = look_for_flush;
    io_timer_set(f->loop, &w->timer, io_loop_mono_ns(f->loop) + 1000000);
}

static void what_was_only_written_is_synced_after_flush_ms(void **state)
{
    struct fixture *f = *state;

    f->config.flush_on_ack = false;
    f->config.flush_ms = 3;
    live(f, append_and_wait_for_flush);
    assert_int_equal(f->answer[0], 0);
}

static void leave_entry(struct fixture *f, const char *name)
{
    char *path = xasprintf("%s/%s", f->path, name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs("0\n1\nt 3 100000\n", file);
    fclose(file);
    free(path);
}

static void has_its_own_start(struct fixture *f)
{
    assert_null(f->report.damage);
    assert_int_equal(log_start_offset(f->log), 0);
    log_set_high_watermark(f->log, log_ack_offset(f->log));
    assert_int_equal(consume(f, 0, 900), log_end_offset(f->log));
    assert_true(log_end_offset(f->log) > 0);
    close_log(f);
}

/* A crash in the middle of a deletion leaves them; the topic may be made again. */
static void entries_of_a_log_that_is_gone_do_not_count_for_the_next_one(void **state)
{
    struct fixture *f = *state;

    leave_entry(f, "recovery-point-offset-checkpoint");
    leave_entry(f, "log-start-offset-checkpoint");
    leave_entry(f, "replication-offset-checkpoint");
    live(f, fill);
    live(f, has_its_own_start);
}

static void entries_of_a_log_that_is_gone_do_not_outlive_a_crash_either(void **state)
{
    struct fixture *f = *state;

    leave_entry(f, "recovery-point-offset-checkpoint");
    leave_entry(f, "log-start-offset-checkpoint");
    live_and_die(f, fill_and_drop);
    live(f, has_its_own_start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_offset_is_read_across_segments_and_after_a_restart),
        TEST(an_unclean_stop_rebuilds_the_same_indexes),
        TEST(a_read_keeps_to_its_bounds),
        TEST(a_repeated_batch_is_recognised_in_flight_and_after_a_restart),
        TEST(aborted_transactions_are_listed_before_and_after_recovery),
        TEST(timestamps_lead_to_records),
        TEST(old_segments_go_by_size_and_time),
        TEST(s31_a_clean_stop_is_believed_once),
        TEST(a_truncated_log_goes_on_from_there),
        TEST(a_truncation_does_not_move_the_log_start_back),
        TEST(what_is_known_of_a_stray_directory_is_forgotten),
        TEST(a_followers_epochs_are_those_of_its_records),
        TEST(s4_a_leader_that_has_written_nothing_knows_where_its_epoch_begins),
        TEST(a_log_starts_over_where_its_leaders_begins),
        TEST(damage_below_the_recovery_point_is_reported_and_kept),
        TEST(a_torn_tail_is_cut_and_kept_aside),
        TEST(what_another_broker_compacted_is_kept_across_holes),
        TEST(s30_another_loop_reads_while_the_owner_appends_rolls_and_cuts),
        TEST(a_batch_larger_than_a_segment_is_refused),
        TEST(a_segment_keeps_no_space_that_it_does_not_use),
        TEST(what_was_only_written_is_synced_after_flush_ms),
        TEST(entries_of_a_log_that_is_gone_do_not_count_for_the_next_one),
        TEST(entries_of_a_log_that_is_gone_do_not_outlive_a_crash_either),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
