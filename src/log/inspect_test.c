/* SPDX-License-Identifier: Apache-2.0 */
/* The small files of a log directory, entry by entry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "log/inspect.h"
#include "log/producers_int.h"

struct seen {
    int count;
    char topic[16];
    int32_t partition;
    int64_t offset;
    int32_t epoch;
    struct inspect_producer producers[8];
};

static void see_checkpoint(void *ctx, const char *topic, int32_t partition, int64_t offset)
{
    struct seen *s = ctx;

    snprintf(s->topic, sizeof(s->topic), "%s", topic);
    s->partition = partition;
    s->offset = offset;
    s->count++;
}

static void see_epoch(void *ctx, int32_t epoch, int64_t start_offset)
{
    struct seen *s = ctx;

    s->epoch = epoch;
    s->offset = start_offset;
    s->count++;
}

static void see_producer(void *ctx, const struct inspect_producer *p)
{
    struct seen *s = ctx;

    s->producers[s->count++] = *p;
}

static void checkpoints_are_told_or_refused_as_a_whole(void **state)
{
    struct seen s = {0};
    struct str good = STR_LIT("0\n2\na 0 5\nb 3 17\n");
    struct str bad = STR_LIT("0\n2\na 0 5\nb 3\n");

    (void)state;
    assert_int_equal(inspect_checkpoint(good, see_checkpoint, &s), ERR_NONE);
    assert_int_equal(s.count, 2);
    assert_string_equal(s.topic, "b");
    assert_int_equal(s.partition, 3);
    assert_int_equal(s.offset, 17);
    assert_int_equal(inspect_checkpoint(bad, see_checkpoint, &s), ERR_CORRUPT);
    assert_int_equal(s.count, 2);
}

static void epochs_are_told_or_refused_as_a_whole(void **state)
{
    struct seen s = {0};

    (void)state;
    assert_int_equal(inspect_epochs(STR_LIT("0\n2\n0 0\n4 90\n"), see_epoch, &s), ERR_NONE);
    assert_int_equal(s.count, 2);
    assert_int_equal(s.epoch, 4);
    assert_int_equal(s.offset, 90);
    assert_int_equal(inspect_epochs(STR_LIT("0\n2\n0 0\nx 90\n"), see_epoch, &s), ERR_CORRUPT);
    assert_int_equal(s.count, 2);
}

/* One producer with two batches, 0 to 9 and 10 to 14. */
static void make_snapshots(struct buf *kafka, struct buf *own)
{
    struct producer_state state = {
        .epoch = 2,
        .coordinator_epoch = -1,
        .last_timestamp = 1234,
        .txn_first_offset = -1,
        .batch_count = 2,
        .batches = {{.last_sequence = 9, .offset_delta = 9, .last_offset = 9, .timestamp = 1000},
                    {.last_sequence = 14, .offset_delta = 4, .last_offset = 14, .timestamp = 1234}},
    };
    struct producers ps;

    producers_init(&ps);
    assert_true(producers_restore(&ps, 77, &state));
    snapshot_format_kafka(&ps, kafka);
    snapshot_format(&ps, 15, own);
    producers_fini(&ps);
}

static void snapshots_of_both_kinds_are_told(void **state)
{
    struct seen s = {0};
    struct buf kafka = {0};
    struct buf own = {0};
    int64_t offset;

    (void)state;
    make_snapshots(&kafka, &own);
    assert_int_equal(inspect_producers(buf_bytes(&kafka, 0), false, &offset, see_producer, &s),
                     ERR_NONE);
    assert_int_equal(offset, -1);
    assert_int_equal(s.count, 1); /* Kafka's file keeps the last batch alone. */
    assert_int_equal(s.producers[0].last_sequence, 14);
    s.count = 0;
    assert_int_equal(inspect_producers(buf_bytes(&own, 0), true, &offset, see_producer, &s),
                     ERR_NONE);
    assert_int_equal(offset, 15);
    assert_int_equal(s.count, 2);
    assert_int_equal(s.producers[0].producer_id, 77);
    assert_int_equal(s.producers[0].epoch, 2);
    assert_int_equal(s.producers[0].first_offset, 0);
    assert_int_equal(s.producers[1].first_offset, 10);
    assert_int_equal(s.producers[1].last_offset, 14);
    own.p[own.n - 1] ^= 1;
    assert_int_equal(inspect_producers(buf_bytes(&own, 0), true, &offset, see_producer, &s),
                     ERR_CORRUPT);
    assert_int_equal(s.count, 2);
    buf_fini(&kafka);
    buf_fini(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_are_told_or_refused_as_a_whole),
        cmocka_unit_test(epochs_are_told_or_refused_as_a_whole),
        cmocka_unit_test(snapshots_of_both_kinds_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
