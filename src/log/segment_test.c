/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "log/log_int.h"

#define TS 1700000000000

struct fixture {
    char path[64];
    struct io *io;
    struct segment *s;
    struct segment_tail tail;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct io_options options = {.trace_level = TRACE_ERROR};

    snprintf(f->path, sizeof(f->path), "/tmp/strandline-segment-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    f->io = io_new(&options);
    f->s = segment_new(50);
    segment_tail_init(&f->tail);
    assert_int_equal(segment_create_files(f->s, f->io, f->path), ERR_NONE);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char *command = xasprintf("rm -rf %s", f->path);

    segment_unref(f->s);
    io_free(f->io);
    assert_int_equal(system(command), 0);
    free(command);
    free(f);
    return 0;
}

/* ---- The rule for index entries --------------------------------------------------------- */

static void add(struct segment_tail *t, int64_t last_offset, int64_t timestamp, int32_t bytes,
                struct index_entries *out)
{
    struct batch_extent b = {
        .last_offset = last_offset, .max_timestamp = timestamp, .bytes = bytes};

    segment_tail_add(t, 50, &b, 4096, out);
}

static void entries_have_kafkas_bytes(void **state)
{
    static const uint8_t index[] = {0, 0, 0, 5, 0, 0, 0x10, 0x68};
    static const uint8_t time[] = {0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0, 0, 0, 0, 5};
    struct segment_tail t;
    struct index_entries e;

    (void)state;
    segment_tail_init(&t);
    add(&t, 52, TS - 1, 4200, &e);
    assert_false(e.has_index); /* The first batch never has an entry. */
    add(&t, 55, TS, 100, &e);
    assert_true(e.has_index && e.has_time);
    assert_memory_equal(e.index, index, sizeof(index));
    assert_memory_equal(e.time, time, sizeof(time));
}

static void an_entry_comes_after_more_than_the_interval(void **state)
{
    struct segment_tail t;
    struct index_entries e;

    (void)state;
    segment_tail_init(&t);
    add(&t, 50, TS, 4096, &e);
    add(&t, 51, TS, 1, &e);
    assert_false(e.has_index); /* 4096 is not more than 4096. */
    add(&t, 52, TS, 1, &e);
    assert_true(e.has_index);
    add(&t, 53, TS + 1, 1, &e);
    assert_false(e.has_index);
    assert_int_equal(t.index_count, 1);
}

static void the_time_index_only_grows(void **state)
{
    struct segment_tail t;
    struct index_entries e;
    uint8_t last[TIMEINDEX_ENTRY_BYTES];

    (void)state;
    segment_tail_init(&t);
    add(&t, 50, TS + 5, 5000, &e);
    add(&t, 51, TS, 5000, &e);
    assert_true(e.has_time);
    assert_int_equal(get_i64(e.time), TS + 5);
    assert_int_equal(get_i32(e.time + 8), 0); /* the batch that reached it first */
    add(&t, 52, TS + 5, 10, &e);
    assert_true(e.has_index && !e.has_time); /* equal is not more */
    assert_false(segment_tail_finish(&t, 50, last));
    add(&t, 53, TS + 9, 10, &e);
    add(&t, 54, TS + 7, 10, &e);
    assert_true(segment_tail_finish(&t, 50, last));
    assert_int_equal(get_i64(last), TS + 9);
    assert_int_equal(get_i32(last + 8), 3);
    assert_false(segment_tail_finish(&t, 50, last));
}

static void no_timestamps_make_no_time_index(void **state)
{
    struct segment_tail t;
    struct index_entries e;
    uint8_t last[TIMEINDEX_ENTRY_BYTES];

    (void)state;
    segment_tail_init(&t);
    add(&t, 50, -1, 5000, &e);
    add(&t, 51, -1, 5000, &e);
    assert_true(e.has_index && !e.has_time);
    assert_false(segment_tail_finish(&t, 50, last));
}

static void a_txn_entry_has_kafkas_bytes(void **state)
{
    static const uint8_t golden[] = {0,  0, 0, 0, 0, 0, 0, 0, 3,  0xe8, 0, 0, 0, 0, 0, 0, 0,
                                     10, 0, 0, 0, 0, 0, 0, 0, 15, 0,    0, 0, 0, 0, 0, 0, 16};
    struct txn_entry e = {
        .producer_id = 1000, .first_offset = 10, .last_offset = 15, .last_stable_offset = 16};
    uint8_t p[TXNINDEX_ENTRY_BYTES];

    (void)state;
    txn_entry_put(p, &e);
    assert_memory_equal(p, golden, sizeof(golden));
}

/* ---- Look-ups --------------------------------------------------------------------------- */

static void write_at(struct io_file *file, const void *p, size_t n, int64_t pos)
{
    uint8_t copy[4096];
    struct iovec iov = {.iov_base = copy, .iov_len = n};

    assert_true(n <= sizeof(copy));
    memcpy(copy, p, n);
    assert_int_equal(io_file_write(file, &iov, 1, pos), ERR_NONE);
}

/* Appends a batch of `count` offsets with the files' index entries. */
static void put_batch(struct fixture *f, int64_t base, int count, int32_t interval)
{
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    struct buf out = {.p = NULL};
    struct index_entries e;
    struct record r = {.timestamp = TS + base, .key = {.n = -1}, .value = {.n = -1}};
    struct batch_extent extent = {.last_offset = base + count - 1, .max_timestamp = TS + base};
    int64_t pos = f->tail.size;

    spec.base_offset = base;
    spec.leader_epoch = 0;
    batch_builder_init(&b, &spec);
    for (int i = 0; i < count; i++)
        assert_int_equal(batch_builder_append(&b, &r), ERR_NONE);
    batch_builder_finish(&b, &out);
    batch_builder_fini(&b);
    extent.bytes = (int32_t)out.n;
    segment_tail_add(&f->tail, 50, &extent, interval, &e);
    write_at(f->s->log, out.p, out.n, pos);
    if (e.has_index)
        write_at(f->s->index, e.index, 8, (f->tail.index_count - 1) * 8);
    if (e.has_time)
        write_at(f->s->timeindex, e.time, 12, (f->tail.time_count - 1) * 12);
    buf_fini(&out);
}

static void put_batches(struct fixture *f, int n, int32_t interval)
{
    for (int i = 0; i < n; i++)
        put_batch(f, 50 + 4 * i, 3, interval); /* a hole of one offset behind each */
}

static struct segment_extent extent_of(const struct fixture *f)
{
    return (struct segment_extent){
        .segment = f->s,
        .size = f->tail.size,
        .index_count = f->tail.index_count,
        .time_count = f->tail.time_count,
    };
}

static void every_offset_leads_to_its_batch_or_the_next(void **state)
{
    struct fixture *f = *state;
    struct segment_extent s;
    struct header_walk w;

    put_batches(f, 2000, 100); /* an index of more than one tail */
    s = extent_of(f);
    assert_true(s.index_count > 600);
    for (int64_t o = 40; o < 50 + 4 * 2000 - 1; o += 7) {
        int64_t base = o < 50 ? 50 : 50 + (o - 50 + 1) / 4 * 4;
        assert_int_equal(segment_find(&s, o, LOG_BLOCKING, &w), ERR_NONE);
        assert_int_equal(w.header.base_offset, base);
    }
    assert_int_equal(segment_find(&s, 50 + 4 * 2000 - 1, LOG_BLOCKING, &w), ERR_EOF);
}

static void timestamps_lead_below_their_record(void **state)
{
    struct fixture *f = *state;
    struct segment_extent s;

    put_batches(f, 2000, 100);
    s = extent_of(f);
    for (int64_t t = TS; t < TS + 8000; t += 501) {
        int64_t offset;
        assert_int_equal(timeindex_floor(&s, t, LOG_BLOCKING, &offset), ERR_NONE);
        assert_true(TS + offset - 2 <= t || offset == 50);
        assert_true(TS + offset + 40 >= t);
    }
}

/* ---- Restoring and scanning ------------------------------------------------------------- */

static void check_restored(struct fixture *f, int64_t offset, int64_t next)
{
    struct restored r;

    assert_int_equal(tail_restore(f->s, offset, &r), ERR_NONE);
    assert_int_equal(r.next_offset, next);
    assert_false(r.has_gap);
}

static void a_restored_tail_is_the_tail_that_was(void **state)
{
    struct fixture *f = *state;
    struct restored r;

    put_batches(f, 100, 100);
    assert_int_equal(tail_restore(f->s, INT64_MAX, &r), ERR_NONE);
    assert_memory_equal(&r.tail, &f->tail, sizeof(r.tail));
    assert_int_equal(r.next_offset, 50 + 4 * 99 + 3);
}

static void entries_at_and_above_the_offset_are_cut(void **state)
{
    struct fixture *f = *state;
    struct io_stat st;

    put_batches(f, 100, 100);
    check_restored(f, 50 + 4 * 50, 50 + 4 * 49 + 3);
    assert_int_equal(io_file_stat(f->s->index, &st), ERR_NONE);
    assert_in_range(st.size / 8, 10, f->tail.index_count / 2 + 1);
    check_restored(f, 50, 50);
    assert_int_equal(io_file_stat(f->s->index, &st), ERR_NONE);
    assert_int_equal(st.size, 0);
}

static void garbage_in_an_index_is_not_believed(void **state)
{
    struct fixture *f = *state;
    static const uint8_t zeros[80];
    struct restored r;

    put_batches(f, 100, 100);
    write_at(f->s->index, zeros, sizeof(zeros), f->tail.index_count * 8);
    write_at(f->s->timeindex, zeros, sizeof(zeros), f->tail.time_count * 12);
    assert_int_equal(tail_restore(f->s, INT64_MAX, &r), ERR_NONE);
    assert_int_equal(r.tail.index_count, f->tail.index_count);
    write_at(f->s->index, "\0\0\0\3", 4, (f->tail.index_count - 1) * 8 + 4);
    assert_int_equal(tail_restore(f->s, INT64_MAX, &r), ERR_NONE);
    assert_int_equal(r.tail.index_count, f->tail.index_count - 1);
    assert_int_equal(r.tail.size, f->tail.size);
}

/* An older Kafka's follower wrote entries that name the last batch of several. */
static void an_index_that_is_built_again_loses_no_abort(void **state)
{
    struct fixture *f = *state;
    struct txn_entry abort = {.producer_id = 1, .first_offset = 50, .last_offset = 60};
    uint8_t entry[TXNINDEX_ENTRY_BYTES];
    struct restored r;

    put_batches(f, 100, 100);
    txn_entry_put(entry, &abort);
    assert_int_equal(segment_create_txnindex(f->s, f->io, f->path), ERR_NONE);
    write_at(f->s->txnindex, entry, sizeof(entry), 0);
    put_i32(entry, (50 + 4 * 99 + 3) - 50);
    write_at(f->s->index, entry, 4, (f->tail.index_count - 1) * 8);
    assert_int_equal(tail_restore(f->s, INT64_MAX, &r), ERR_NONE);
    assert_int_equal(r.tail.index_count, 0);
    assert_int_equal(r.tail.time_count, 0);
    assert_int_equal(r.tail.txn_count, 1);
}

static void a_scan_builds_the_index_that_was(void **state)
{
    struct fixture *f = *state;
    struct producers producers;
    struct epochs epochs = {.v = NULL};
    struct scan scan = {.io = f->io,
                        .index_interval_bytes = 100,
                        .epochs = &epochs,
                        .producers = &producers,
                        .segment = f->s,
                        .next_offset = 50};
    uint8_t before[4096], after[4096];
    size_t n = (size_t)f->tail.index_count;

    producers_init(&producers);
    put_batches(f, 100, 100);
    n = (size_t)f->tail.index_count * 8;
    assert_int_equal(read_fully(f->s->index, before, n, 0, LOG_BLOCKING), ERR_NONE);
    assert_int_equal(io_file_truncate(f->s->index, 0), ERR_NONE);
    assert_int_equal(io_file_truncate(f->s->timeindex, 0), ERR_NONE);
    segment_tail_init(&scan.tail);
    assert_int_equal(scan_segment(&scan, f->path), ERR_NONE);
    assert_false(scan.found_bad);
    assert_memory_equal(&scan.tail, &f->tail, sizeof(f->tail));
    assert_int_equal(read_fully(f->s->index, after, n, 0, LOG_BLOCKING), ERR_NONE);
    assert_memory_equal(before, after, n);
    assert_int_equal(epochs_latest(&epochs), 0);
    epochs_fini(&epochs);
    producers_fini(&producers);
}

static void a_scan_stops_before_every_damaged_batch(void **state)
{
    struct fixture *f = *state;
    struct producers producers;
    struct epochs epochs = {.v = NULL};
    int64_t clean;

    producers_init(&producers);
    put_batches(f, 3, 4096);
    clean = f->tail.size / 3 * 2;
    for (int64_t pos = clean; pos < f->tail.size; pos++) {
        struct scan scan = {.io = f->io,
                            .index_interval_bytes = 4096,
                            .epochs = &epochs,
                            .producers = &producers,
                            .segment = f->s,
                            .next_offset = 50};
        uint8_t byte;
        if (pos >= clean + 12 && pos < clean + 16)
            continue; /* The leader epoch is outside the checksum. */
        assert_int_equal(read_fully(f->s->log, &byte, 1, pos, LOG_BLOCKING), ERR_NONE);
        byte ^= 0x81;
        write_at(f->s->log, &byte, 1, pos);
        segment_tail_init(&scan.tail);
        assert_int_equal(scan_segment(&scan, f->path), ERR_NONE);
        byte ^= 0x81;
        write_at(f->s->log, &byte, 1, pos);
        if (pos < clean + 8 && !scan.found_bad)
            continue; /* A larger base offset is none the less an offset. */
        assert_true(scan.found_bad);
        assert_int_equal(scan.tail.size, clean);
    }
    epochs_fini(&epochs);
    producers_fini(&producers);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_have_kafkas_bytes),
        TEST(an_entry_comes_after_more_than_the_interval),
        TEST(the_time_index_only_grows),
        TEST(no_timestamps_make_no_time_index),
        TEST(a_txn_entry_has_kafkas_bytes),
        TEST(every_offset_leads_to_its_batch_or_the_next),
        TEST(timestamps_lead_below_their_record),
        TEST(a_restored_tail_is_the_tail_that_was),
        TEST(entries_at_and_above_the_offset_are_cut),
        TEST(garbage_in_an_index_is_not_believed),
        TEST(an_index_that_is_built_again_loses_no_abort),
        TEST(a_scan_builds_the_index_that_was),
        TEST(a_scan_stops_before_every_damaged_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
