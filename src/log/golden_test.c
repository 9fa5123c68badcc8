/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory that Apache Kafka wrote and stopped cleanly is opened: offsets, epochs and producers
 * must be Kafka's. Then a copy from which everything was taken that can be found again (indexes,
 * snapshots, recovery points, the marker): what is built must be Kafka's byte for byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "log/log_int.h"

#define GOLDEN "tests/golden/logdir"

struct fixture {
    char path[64];
    struct io *io;
    struct log_dir *dir;
    struct log_dir_found found;
};

static void shell(const char *fmt, ...) printf_like(1, 2);

static void shell(const char *fmt, ...)
{
    char command[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    snprintf(f->path, sizeof(f->path), "/tmp/strandline-golden-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    shell("cp -r " GOLDEN "/. %s", f->path);
    *state = f;
    return 0;
}

static void open_dir(struct fixture *f)
{
    struct io_options options = {.trace_level = TRACE_ERROR};
    struct log_dir_identity identity = {
        .cluster_id = str_null(), .node_id = -1, .cluster_id_new = str_null(), .node_id_new = -1};
    char *message;

    f->io = io_new(&options);
    assert_int_equal(log_dir_open(f->io, f->path, &identity, &f->dir, &f->found, &message),
                     ERR_NONE);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    log_dir_close(f->dir);
    log_dir_found_free(&f->found);
    io_free(f->io);
    shell("rm -rf %s", f->path);
    free(f);
    return 0;
}

static struct log_load_args load_args(struct fixture *f, const char *topic, int32_t partition)
{
    return (struct log_load_args){
        .io = f->io,
        .dir = f->dir,
        .topic = topic,
        .partition = partition,
        .config = {.index_interval_bytes = strcmp(topic, "plain") == 0 ? 512 : 4096,
                   .cleanup_policy = TOPIC_CLEANUP_DELETE},
        .now_ms = 1700000000000,
    };
}

static struct log_loaded *load(struct fixture *f, const char *topic, int32_t partition,
                               struct log_load_report *report)
{
    struct log_load_args args = load_args(f, topic, partition);
    struct log_loaded *l;

    assert_int_equal(log_load(&args, &l, report), ERR_NONE);
    assert_null(report->damage);
    assert_int_equal(report->bytes_cut, 0);
    return l;
}

static void check_plain(struct fixture *f, bool is_clean)
{
    struct log_load_report report;
    struct log_loaded *l = load(f, "plain", 0, &report);

    assert_int_equal(l->start, 60);
    assert_int_equal(l->end, 256);
    assert_int_equal(l->high_watermark, is_clean ? 256 : 60);
    assert_int_equal(l->segment_count, 5);
    assert_int_equal(l->segments[4].segment->base_offset, 192);
    assert_int_equal(l->epochs.n, 2);
    assert_int_equal(epochs_at(&l->epochs, 60), 0);
    assert_int_equal(epochs_at(&l->epochs, 240), 2);
    assert_int_equal(producers_count(&l->producers), 11);
    assert_int_equal(l->segments[0].index_count, 2);
    assert_false(uuid_is_zero(l->topic_id));
    assert_true(is_clean == (report.bytes_scanned == 0));
    log_loaded_free(l);
}

static void check_txn(struct fixture *f)
{
    struct log_load_report report;
    struct log_loaded *l = load(f, "txn", 0, &report);
    struct txn_entry e;
    uint8_t p[TXNINDEX_ENTRY_BYTES];

    assert_int_equal(l->end, 12);
    assert_int_equal(producers_count(&l->producers), 1);
    assert_true(producers_first_open(&l->producers) == INT64_MAX);
    assert_int_equal(l->tail.txn_count, 1);
    assert_int_equal(read_fully(l->segments[0].segment->txnindex, p, sizeof(p), 0, LOG_BLOCKING),
                     ERR_NONE);
    assert_true(txn_entry_get(p, &e));
    assert_int_equal(e.producer_id, 5);
    assert_int_equal(e.first_offset, 4);
    assert_int_equal(e.last_offset, 7);
    assert_int_equal(e.last_stable_offset, 8);
    log_loaded_free(l);
}

static void kafkas_directory_is_loaded_as_it_is(void **state)
{
    struct fixture *f = *state;
    struct log_load_report report;

    open_dir(f);
    assert_true(f->found.clean);
    assert_false(f->found.is_new);
    assert_int_equal(f->found.n, 4);
    assert_string_equal(f->found.v[1].topic, "plain");
    assert_int_equal(f->found.v[1].partition, 0);
    check_plain(f, true);
    check_txn(f);
    log_loaded_free(load(f, "plain", 1, &report));
    log_loaded_free(load(f, "__transaction_state", 0, &report));
    /* The snapshot of the stop before the last is nobody's any more. */
    shell("for p in plain-0 plain-1 txn-0; do diff -r -x '*240.snapshot' " GOLDEN
          "/$p %s/$p || exit 1; done",
          f->path);
}

static void what_was_taken_away_is_built_again(void **state)
{
    struct fixture *f = *state;
    struct log_load_report report;

    shell("cd %s && rm .kafka_cleanshutdown recovery-point* replication-* */*index */*.snapshot",
          f->path);
    open_dir(f);
    assert_false(f->found.clean);
    check_plain(f, false);
    check_txn(f);
    log_loaded_free(load(f, "plain", 1, &report));
    /* The broker was restarted before the last batch of 192, where it began to count anew: its
     * index has no entry there. An active segment gets its last time entry at a clean stop. */
    shell("diff -r -x '*.snapshot' -x '*192.*index' " GOLDEN "/plain-0 %s/plain-0", f->path);
    shell("diff -r -x '*.snapshot' " GOLDEN "/plain-1 %s/plain-1", f->path);
    shell("diff -r -x '*.snapshot' -x '*.timeindex' " GOLDEN "/txn-0 %s/txn-0", f->path);
}

static struct producers read_kafka(const char *path, struct io *io)
{
    struct producers ps;
    char *text;
    size_t n;

    producers_init(&ps);
    assert_int_equal(io_file_read_all(io, path, 1 << 20, &text, &n), ERR_NONE);
    assert_int_equal(
        snapshot_parse_kafka((struct bytes){.p = (uint8_t *)text, .n = (int32_t)n}, &ps), ERR_NONE);
    free(text);
    return ps;
}

static void replayed_producers_are_those_of_kafkas_snapshot(void **state)
{
    struct fixture *f = *state;
    struct log_load_report report;
    struct log_loaded *l;
    struct producers kafka;

    shell("cd %s && rm .kafka_cleanshutdown recovery-point* */*.snapshot", f->path);
    open_dir(f);
    l = load(f, "plain", 0, &report);
    kafka = read_kafka(GOLDEN "/plain-0/00000000000000000256.snapshot", f->io);
    assert_true(producers_agree(&l->producers, &kafka));
    producers_fini(&kafka);
    log_loaded_free(l);
    l = load(f, "txn", 0, &report);
    kafka = read_kafka(GOLDEN "/txn-0/00000000000000000012.snapshot", f->io);
    assert_true(producers_agree(&l->producers, &kafka));
    producers_fini(&kafka);
    log_loaded_free(l);
}

/* A stop waits for no recovery, and the next one finds what this one would have found. */
static void a_load_that_is_cancelled_leaves_the_log_to_the_next(void **state)
{
    struct fixture *f = *state;
    struct io_job job = {.cancel = true};
    struct log_load_report report;
    struct log_load_args args;
    struct log_loaded *l;

    shell("cd %s && rm .kafka_cleanshutdown recovery-point* replication-* */*index */*.snapshot",
          f->path);
    open_dir(f);
    args = load_args(f, "plain", 0);
    args.job = &job;
    assert_int_equal(log_load(&args, &l, &report), ERR_CANCELLED);
    assert_null(l);
    assert_int_equal(report.bytes_scanned, 0);
    assert_int_equal(report.bytes_cut, 0);
    check_plain(f, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kafkas_directory_is_loaded_as_it_is),
        TEST(what_was_taken_away_is_built_again),
        TEST(replayed_producers_are_those_of_kafkas_snapshot),
        TEST(a_load_that_is_cancelled_leaves_the_log_to_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
