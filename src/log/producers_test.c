/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "log/producers_int.h"

static struct producer_event batch(int64_t id, int16_t epoch, int32_t sequence, int32_t count,
                                   int64_t offset)
{
    return (struct producer_event){
        .producer_id = id,
        .epoch = epoch,
        .base_sequence = sequence,
        .last_sequence = (int32_t)(((uint32_t)sequence + (uint32_t)count - 1) & INT32_MAX),
        .base_offset = offset,
        .last_offset = offset + count - 1,
        .timestamp = 1000 + offset,
    };
}

static struct producer_event in_txn(struct producer_event e)
{
    e.is_transactional = true;
    return e;
}

static struct producer_event marker(int64_t id, int16_t epoch, int64_t offset, bool is_abort,
                                    int32_t coordinator_epoch)
{
    struct producer_event e = batch(id, epoch, -1, 1, offset);

    e.base_sequence = e.last_sequence = -1;
    e.is_marker = true;
    e.is_transactional = true;
    e.is_abort = is_abort;
    e.coordinator_epoch = coordinator_epoch;
    return e;
}

static enum err check(const struct producers *ps, struct producer_event e)
{
    struct producer_duplicate d;
    enum err err = producers_check(ps, &e, LOG_ORIGIN_CLIENT, &d);

    assert_false(d.found);
    return err;
}

static int64_t duplicate_of(const struct producers *ps, struct producer_event e)
{
    struct producer_duplicate d;

    assert_int_equal(producers_check(ps, &e, LOG_ORIGIN_CLIENT, &d), ERR_NONE);
    return d.found ? d.base_offset : -1;
}

static void assign(struct producers *ps, struct producer_event e)
{
    producers_assign(ps, &e);
}

static void replay(struct producers *ps, struct producer_event e)
{
    producers_replay(ps, &e);
}

static int setup(void **state)
{
    static struct producers ps;

    producers_init(&ps);
    *state = &ps;
    return 0;
}

static int teardown(void **state)
{
    producers_fini(*state);
    return 0;
}

static void a_new_producer_begins_at_zero(void **state)
{
    assert_int_equal(check(*state, batch(1, 0, 17, 2, 0)), ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(check(*state, batch(1, 0, 0, 2, 0)), ERR_NONE);
}

static void who_may_have_been_forgotten_begins_anywhere(void **state)
{
    struct producers *ps = *state;

    replay(ps, batch(7, 0, 0, 3, 0));
    producers_expire(ps, INT64_MAX, 1);
    assert_int_equal(producers_count(ps), 0);
    assert_int_equal(check(ps, batch(7, 0, 3, 1, 3)), ERR_NONE);
    assert_int_equal(check(ps, batch(6, 0, 17, 1, 3)), ERR_NONE);
    assert_int_equal(check(ps, batch(8, 0, 17, 1, 3)), ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    producers_forget_all(ps);
    assert_int_equal(check(ps, batch(8, 0, 17, 1, 3)), ERR_NONE);
}

static void sequences_must_follow_one_another(void **state)
{
    struct producers *ps = *state;

    replay(ps, batch(1, 0, 0, 3, 0));
    assert_int_equal(check(ps, batch(1, 0, 3, 1, 3)), ERR_NONE);
    assert_int_equal(check(ps, batch(1, 0, 4, 1, 3)), ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(check(ps, batch(1, 0, 1, 1, 3)), ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
}

static void sequences_wrap_to_zero(void **state)
{
    struct producers *ps = *state;

    replay(ps, batch(1, 0, INT32_MAX - 1, 2, 0));
    assert_int_equal(check(ps, batch(1, 0, 0, 1, 2)), ERR_NONE);
    /* A batch across the wrap, and its repetition. */
    producers_reset(ps);
    replay(ps, batch(1, 0, INT32_MAX, 3, 0));
    assert_int_equal(duplicate_of(ps, batch(1, 0, INT32_MAX, 3, 9)), 0);
    assert_int_equal(check(ps, batch(1, 0, 2, 1, 3)), ERR_NONE);
}

static void the_last_five_batches_are_recognised(void **state)
{
    struct producers *ps = *state;

    for (int i = 0; i < 6; i++)
        replay(ps, batch(1, 0, i, 1, 10 + i));
    for (int i = 1; i < 6; i++)
        assert_int_equal(duplicate_of(ps, batch(1, 0, i, 1, 99)), 10 + i);
    assert_int_equal(check(ps, batch(1, 0, 0, 1, 99)), ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
}

static void a_batch_in_flight_is_a_duplicate_too(void **state)
{
    struct producers *ps = *state;

    assign(ps, batch(1, 0, 0, 2, 5));
    assert_int_equal(duplicate_of(ps, batch(1, 0, 0, 2, 7)), 5);
}

static void a_new_epoch_begins_at_zero(void **state)
{
    struct producers *ps = *state;

    replay(ps, batch(1, 3, 0, 3, 0));
    assert_int_equal(check(ps, batch(1, 4, 3, 1, 3)), ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(check(ps, batch(1, 4, 0, 1, 3)), ERR_NONE);
    assert_int_equal(check(ps, batch(1, 2, 0, 1, 3)), ERR_INVALID_PRODUCER_EPOCH);
}

static void a_transaction_takes_no_plain_batch(void **state)
{
    struct producers *ps = *state;

    replay(ps, in_txn(batch(1, 0, 0, 1, 0)));
    assert_int_equal(check(ps, batch(1, 0, 1, 1, 1)), ERR_INVALID_TXN_STATE);
    assert_int_equal(check(ps, in_txn(batch(1, 0, 1, 1, 1))), ERR_NONE);
}

static void an_old_coordinator_is_fenced(void **state)
{
    struct producers *ps = *state;
    struct producer_duplicate d;
    struct producer_event e = marker(1, 0, 1, true, 6);

    replay(ps, in_txn(batch(1, 0, 0, 1, 0)));
    replay(ps, marker(1, 0, 1, false, 7));
    assert_int_equal(producers_check(ps, &e, LOG_ORIGIN_COORDINATOR, &d),
                     ERR_TRANSACTION_COORDINATOR_FENCED);
    assert_int_equal(producers_check(ps, &e, LOG_ORIGIN_REPLICATION, &d), ERR_NONE);
}

static void the_first_unstable_offset_waits_for_the_high_watermark(void **state)
{
    struct producers *ps = *state;

    assert_true(producers_first_unstable(ps, 0) == INT64_MAX);
    replay(ps, in_txn(batch(1, 0, 0, 2, 10)));
    replay(ps, in_txn(batch(2, 0, 0, 2, 12)));
    assert_int_equal(producers_first_unstable(ps, 14), 10);
    replay(ps, marker(1, 0, 14, false, 0));
    assert_int_equal(producers_first_unstable(ps, 14), 10);
    assert_int_equal(producers_first_unstable(ps, 15), 12);
    assert_int_equal(producers_first_open(ps), 12);
    replay(ps, marker(2, 0, 15, true, 0));
    assert_true(producers_first_unstable(ps, 16) == INT64_MAX);
}

static void taking_back_leaves_the_durable_part(void **state)
{
    struct producers *ps = *state;

    replay(ps, batch(1, 0, 0, 1, 0));
    replay(ps, in_txn(batch(2, 0, 0, 1, 1)));
    assign(ps, batch(1, 0, 1, 1, 2));
    assign(ps, marker(2, 0, 3, false, 0));
    assign(ps, in_txn(batch(2, 0, 1, 1, 4)));
    assign(ps, batch(3, 0, 0, 1, 5));
    producers_take_back(ps, 2);
    assert_int_equal(check(ps, batch(1, 0, 1, 1, 2)), ERR_NONE);
    assert_int_equal(producers_count(ps), 2);
    assert_int_equal(producers_first_open(ps), 1);
    assert_int_equal(ps->txn_count, 1);
}

static void only_silent_producers_without_transactions_expire(void **state)
{
    struct producers *ps = *state;

    replay(ps, batch(1, 0, 0, 1, 0));         /* timestamp 1000 */
    replay(ps, in_txn(batch(2, 0, 0, 1, 1))); /* open */
    replay(ps, batch(3, 0, 0, 1, 500));       /* timestamp 1500 */
    replay(ps, batch(4, 0, 0, 1, 2));
    assign(ps, batch(4, 0, 1, 1, 3)); /* in flight */
    producers_expire(ps, 2100, 1000);
    assert_int_equal(producers_count(ps), 3);
    assert_int_equal(producers_id_max(ps), 4);
    assert_int_equal(check(ps, batch(1, 0, 9, 1, 9)), ERR_NONE);
    assert_int_equal(check(ps, batch(3, 0, 9, 1, 9)), ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
}

/* ---- Snapshots -------------------------------------------------------------------------- */

static void kafkas_snapshot_is_kafkas(void **state)
{
    static const uint8_t golden[] = {
        0,    1,    0x89, 0x24, 0x5c, 0xf9, 0,    0,    0, 1, /* version, CRC, count */
        0,    0,    0,    0,    0,    0,    3,    0xe8, 0, 3, 0, 0,
        0,    0x0b,                                                 /* id, epoch, sequence */
        0,    0,    0,    0,    0,    0,    0,    0x0e, 0, 0, 0, 4, /* offset, delta */
        0,    0,    1,    0x8b, 0xcf, 0xe5, 0x68, 0,    0, 0, 0, 9, /* time, coordinator */
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    };
    struct producers *ps = *state;
    struct producers again;
    struct buf out;
    struct producer_event e = batch(1000, 3, 7, 5, 10);

    producers_init(&again);
    buf_init(&out);
    e.timestamp = 1700000000000;
    replay(ps, e);
    e = marker(1000, 3, 15, false, 9);
    e.timestamp = 1700000000000;
    replay(ps, e);
    snapshot_format_kafka(ps, &out);
    assert_int_equal(out.n, sizeof(golden));
    assert_memory_equal(out.p, golden, sizeof(golden));
    assert_int_equal(snapshot_parse_kafka(buf_bytes(&out, 0), &again), ERR_NONE);
    assert_true(producers_agree(ps, &again));
    assert_int_equal(duplicate_of(&again, batch(1000, 3, 7, 5, 99)), 10);
    producers_fini(&again);
    buf_fini(&out);
}

static void our_snapshot_keeps_five_batches(void **state)
{
    struct producers *ps = *state;
    struct producers again;
    struct buf out;
    int64_t offset;

    producers_init(&again);
    buf_init(&out);
    for (int i = 0; i < 7; i++)
        replay(ps, batch(1, 0, i, 1, 10 + i));
    replay(ps, in_txn(batch(2, 5, 0, 1, 17)));
    assign(ps, batch(1, 0, 7, 1, 18)); /* not durable: not in the file */
    ps->forgotten_id = 5;
    snapshot_format(ps, 18, &out);
    assert_int_equal(snapshot_parse(buf_bytes(&out, 0), &offset, &again), ERR_NONE);
    assert_int_equal(offset, 18);
    assert_int_equal(again.forgotten_id, 5);
    for (int i = 2; i < 7; i++)
        assert_int_equal(duplicate_of(&again, batch(1, 0, i, 1, 99)), 10 + i);
    assert_int_equal(check(&again, batch(1, 0, 7, 1, 18)), ERR_NONE);
    assert_int_equal(producers_first_open(&again), 17);
    producers_fini(&again);
    buf_fini(&out);
}

static void a_truncation_forgets_no_batch_below_it(void **state)
{
    struct producers *past = *state;
    struct producers ps;

    producers_init(&ps);
    for (int i = 0; i < 5; i++)
        replay(past, batch(1, 0, i, 1, 10 + i));
    past->forgotten_id = 3;
    ps.forgotten_id = INT64_MAX;
    replay(&ps, batch(1, 0, 2, 1, 12)); /* what a snapshot of Kafka's has */
    producers_remember(&ps, past, 13);
    for (int i = 0; i < 3; i++)
        assert_int_equal(duplicate_of(&ps, batch(1, 0, i, 1, 99)), 10 + i);
    assert_int_equal(check(&ps, batch(1, 0, 3, 1, 13)), ERR_NONE);
    assert_int_equal(check(&ps, batch(2, 0, 3, 1, 13)), ERR_NONE);
    assert_int_equal(check(&ps, batch(4, 0, 3, 1, 13)), ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    producers_fini(&ps);
}

static void a_later_snapshot_tells_who_was_forgotten_before_it(void **state)
{
    struct producers *later = *state;
    struct producers ps;

    producers_init(&ps);
    for (int i = 0; i < 4; i++)
        replay(later, batch(1, 0, i, 1, 10 + i));
    replay(later, batch(4, 0, 0, 1, 14));
    later->forgotten_id = 2;
    ps.forgotten_id = INT64_MAX;
    replay(&ps, batch(1, 0, 2, 1, 12)); /* what a snapshot of Kafka's has */
    producers_learn(&ps, later, 13);
    for (int i = 0; i < 3; i++)
        assert_int_equal(duplicate_of(&ps, batch(1, 0, i, 1, 99)), 10 + i);
    assert_int_equal(check(&ps, batch(2, 0, 3, 1, 13)), ERR_NONE);
    assert_int_equal(check(&ps, batch(4, 0, 3, 1, 13)), ERR_NONE); /* it may be older than 13 */
    assert_int_equal(check(&ps, batch(5, 0, 3, 1, 13)), ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    producers_fini(&ps);
}

static void no_damaged_snapshot_is_believed(void **state)
{
    struct producers *ps = *state;
    struct producers again;
    struct buf own, kafka;
    int64_t offset;

    producers_init(&again);
    buf_init(&own);
    buf_init(&kafka);
    replay(ps, batch(1, 0, 0, 1, 0));
    snapshot_format(ps, 1, &own);
    snapshot_format_kafka(ps, &kafka);
    for (size_t i = 0; i < own.n; i++) {
        own.p[i] ^= 1;
        assert_int_not_equal(snapshot_parse(buf_bytes(&own, 0), &offset, &again), ERR_NONE);
        own.p[i] ^= 1;
        own.n--;
        assert_int_not_equal(snapshot_parse(buf_bytes(&own, 0), &offset, &again), ERR_NONE);
        own.n++;
    }
    for (size_t i = 0; i < kafka.n; i++) {
        kafka.p[i] ^= 1;
        assert_int_not_equal(snapshot_parse_kafka(buf_bytes(&kafka, 0), &again), ERR_NONE);
        kafka.p[i] ^= 1;
    }
    assert_int_equal(producers_count(&again), 0);
    assert_int_equal(producers_id_max(&again), -1);
    producers_fini(&again);
    buf_fini(&own);
    buf_fini(&kafka);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_producer_begins_at_zero),
        TEST(who_may_have_been_forgotten_begins_anywhere),
        TEST(sequences_must_follow_one_another),
        TEST(sequences_wrap_to_zero),
        TEST(the_last_five_batches_are_recognised),
        TEST(a_batch_in_flight_is_a_duplicate_too),
        TEST(a_new_epoch_begins_at_zero),
        TEST(a_transaction_takes_no_plain_batch),
        TEST(an_old_coordinator_is_fenced),
        TEST(the_first_unstable_offset_waits_for_the_high_watermark),
        TEST(taking_back_leaves_the_durable_part),
        TEST(only_silent_producers_without_transactions_expire),
        TEST(kafkas_snapshot_is_kafkas),
        TEST(our_snapshot_keeps_five_batches),
        TEST(a_truncation_forgets_no_batch_below_it),
        TEST(a_later_snapshot_tells_who_was_forgotten_before_it),
        TEST(no_damaged_snapshot_is_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
