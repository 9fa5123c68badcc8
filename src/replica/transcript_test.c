/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a leader and a follower do, one event after the other, under the names of the scenarios
 * that each rule is for. Broker 1 is this one; 2 and 3 are the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replica/replica.h"

#define LAG_MS 1000

static int32_t all_ids[] = {1, 2, 3};

struct fixture {
    struct replica r;
    struct replica_effects fx;
    struct replica_log log;
    int64_t now_ms;
    int32_t partition_epoch;
};

static void say(struct fixture *f, struct replica_event e)
{
    e.now_ms = f->now_ms;
    e.log = f->log;
    replica_step(&f->r, &e, &f->fx);
}

/* Broker 3 is not there, or is about to stop, or neither. */
static void brokers_with(struct fixture *f, int64_t epoch_of_3, bool is_fenced)
{
    struct metadata_delta d = {0};
    struct metadata_broker *third = metadata_broker_new(3, epoch_of_3, str_null());
    struct metadata_image *none = metadata_image_new();
    struct metadata_image *image;

    metadata_delta_put_broker(&d, metadata_broker_new(1, 11, str_null()));
    metadata_delta_put_broker(&d, metadata_broker_new(2, 12, str_null()));
    third->is_fenced = is_fenced;
    if (epoch_of_3 >= 0)
        metadata_delta_put_broker(&d, third);
    else
        metadata_broker_put(third);
    image = metadata_apply(none, &d);
    say(f, (struct replica_event){.kind = REPLICA_BROKERS, .image = image});
    metadata_delta_fini(&d);
    metadata_image_put(image);
    metadata_image_put(none);
}

static void brokers(struct fixture *f, int64_t epoch_of_3)
{
    brokers_with(f, epoch_of_3, false);
}

static void assigned(struct fixture *f, int32_t leader, int32_t epoch, int32_t in_sync)
{
    struct metadata_partition p = {
        .leader = leader,
        .leader_epoch = epoch,
        .partition_epoch = ++f->partition_epoch,
        .replicas = {all_ids, 3},
        .isr = {all_ids, in_sync},
    };

    say(f, (struct replica_event){.kind = REPLICA_ASSIGN, .assign = &p});
}

static void setup(struct fixture *f, int32_t min_insync)
{
    struct replica_config config = {.lag_time_max_ms = LAG_MS,
                                    .lag_messages_max = -1,
                                    .min_insync = min_insync,
                                    .backoff_max_ms = 1000};

    *f = (struct fixture){.log = {.last_epoch = -1, .latest_epoch = -1}, .now_ms = 1000000};
    replica_init(&f->r, 1, &config, 0);
}

/* A log that ends, and is acknowledged, at this offset. */
static void log_is(struct fixture *f, int64_t end, int32_t last_epoch)
{
    f->log.end = f->log.acked = end;
    f->log.last_epoch = f->log.latest_epoch = last_epoch;
}

static void grown(struct fixture *f, int64_t end)
{
    log_is(f, end, f->r.leader_epoch);
    say(f, (struct replica_event){.kind = REPLICA_ADVANCED});
}

/* Follower `id` has everything below `offset`, and this leader's log agrees with it. */
static void fetched_by(struct fixture *f, int32_t id, int64_t offset)
{
    say(f, (struct replica_event){
               .kind = REPLICA_FETCH,
               .fetch = {.from = id,
                         .incarnation = 10 + id,
                         .leader_epoch = f->r.leader_epoch,
                         .offset = offset,
                         .acked = offset,
                         .last_epoch = offset > 0 ? f->r.leader_epoch : -1,
                         .found_epoch = f->r.leader_epoch,
                         .found_end = f->log.end},
           });
}

static void altered(struct fixture *f, enum err err, int32_t in_sync)
{
    say(f, (struct replica_event){
               .kind = REPLICA_ALTERED,
               .altered = {.asked_leader_epoch = f->r.leader_epoch,
                           .asked_partition_epoch = f->r.partition_epoch,
                           .err = err,
                           .leader_epoch = f->r.leader_epoch,
                           .partition_epoch = err ? 0 : ++f->partition_epoch,
                           .isr = {all_ids, in_sync}},
           });
}

static void lead(struct fixture *f, int32_t min_insync, int32_t in_sync)
{
    setup(f, min_insync);
    assigned(f, 1, 5, in_sync);
    assert_true(f->fx.has_led);
    brokers(f, 13);
}

/* ---- leading ---------------------------------------------------------------------------- */

static void a_record_is_committed_when_all_in_sync_have_it(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 2, 3);
    grown(&f, 10);
    assert_int_equal(f.r.high_watermark, 0);
    fetched_by(&f, 2, 10);
    assert_false(f.fx.has_moved);
    fetched_by(&f, 3, 4);
    assert_int_equal(f.r.high_watermark, 4);
    fetched_by(&f, 3, 10);
    assert_true(f.fx.has_moved);
    assert_int_equal(f.r.high_watermark, 10);
    replica_fini(&f.r);
}

static void what_the_leader_has_not_synced_is_not_committed(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    f.log.end = 10;
    f.log.acked = 3;
    fetched_by(&f, 2, 10);
    assert_int_equal(f.r.high_watermark, 3);
    replica_fini(&f.r);
}

static void s5_a_fetch_of_another_epoch_is_refused_and_not_counted(void **state)
{
    struct fixture f;
    struct replica_event e = {.kind = REPLICA_FETCH,
                              .fetch = {.from = 2,
                                        .offset = 10,
                                        .acked = 10,
                                        .last_epoch = 5,
                                        .found_epoch = 5,
                                        .found_end = 10,
                                        .incarnation = 12}};

    (void)state;
    lead(&f, 1, 2);
    grown(&f, 10);
    e.fetch.leader_epoch = 4;
    say(&f, e);
    assert_int_equal(f.fx.err, ERR_FENCED_LEADER_EPOCH);
    e.fetch.leader_epoch = 6;
    say(&f, e);
    assert_int_equal(f.fx.err, ERR_UNKNOWN_LEADER_EPOCH);
    e.fetch.leader_epoch = -1; /* an old follower that does not say: answered, not counted */
    say(&f, e);
    assert_int_equal(f.fx.err, ERR_NONE);
    assert_int_equal(f.r.high_watermark, 0);
    replica_fini(&f.r);
}

/* In 5 it had everything and 3 held the watermark back; in 7 it may have less. */
static void s6_positions_of_an_earlier_epoch_are_forgotten(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 3);
    grown(&f, 10);
    fetched_by(&f, 3, 4);
    fetched_by(&f, 2, 10);
    assigned(&f, 1, 7, 2);
    assert_int_equal(f.r.high_watermark, 4);
    grown(&f, 12);
    assert_int_equal(f.r.high_watermark, 4);
    fetched_by(&f, 2, 12);
    assert_int_equal(f.r.high_watermark, 12);
    replica_fini(&f.r);
}

static void s7_a_follower_joins_with_all_that_is_older_than_the_epoch(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f, 1);
    log_is(&f, 6, 4);
    assigned(&f, 1, 5, 2);
    brokers(&f, 13);
    fetched_by(&f, 3, 0);
    assert_false(f.fx.must_propose); /* although the watermark is 0 too */
    fetched_by(&f, 3, 5);
    assert_false(f.fx.must_propose);
    fetched_by(&f, 3, 6);
    assert_true(f.fx.must_propose);
    replica_fini(&f.r);
}

static void s8_s9_a_log_that_diverges_is_told_where_and_not_counted(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    grown(&f, 10);
    say(&f, (struct replica_event){
                .kind = REPLICA_FETCH,
                .fetch = {.from = 2,
                          .incarnation = 12,
                          .leader_epoch = 5,
                          .offset = 10,
                          .acked = 10,
                          .last_epoch = 4,
                          .found_epoch = 3,
                          .found_end = 8},
            });
    assert_int_equal(f.fx.err, ERR_NONE);
    assert_int_equal(f.fx.diverging_epoch, 3);
    assert_int_equal(f.fx.diverging_end, 8);
    assert_int_equal(f.r.high_watermark, 0);
    replica_fini(&f.r);
}

/* A (this one) led 0, and what it wrote last nobody copied. B led 1 from offset 1 on and wrote
 * alone. A leads 2 and has written nothing yet. */
static void s3_a_leader_names_the_last_epoch_that_it_can_share(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f, 1);
    log_is(&f, 3, 0);
    assigned(&f, 1, 2, 2);
    f.log.latest_epoch = 2;
    say(&f, (struct replica_event){
                .kind = REPLICA_FETCH,
                .fetch = {.from = 2,
                          .incarnation = 12,
                          .leader_epoch = 2,
                          .offset = 2,
                          .acked = 2,
                          .last_epoch = 1,
                          .found_epoch = 0,
                          .found_end = 3},
            });
    assert_int_equal(f.fx.err, ERR_NONE);
    assert_int_equal(f.fx.diverging_epoch, 0);
    assert_int_equal(f.fx.diverging_end, 3);
    replica_fini(&f.r);
}

static struct replica_event fetch_of_another_log(int64_t offset, int64_t found_end)
{
    return (struct replica_event){
        .kind = REPLICA_FETCH,
        .fetch = {.from = 2,
                  .incarnation = 12,
                  .leader_epoch = 5,
                  .offset = offset,
                  .acked = offset,
                  .last_epoch = 4,
                  .found_epoch = 4,
                  .found_end = found_end},
    };
}

static void s22_who_is_above_the_leaders_end_is_told_where_its_epoch_ends(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    log_is(&f, 300, 4);
    say(&f, fetch_of_another_log(500, 300));
    assert_int_equal(f.fx.err, ERR_NONE);
    assert_int_equal(f.fx.diverging_epoch, 4);
    assert_int_equal(f.fx.diverging_end, 300);
    assert_int_equal(f.r.high_watermark, 0);
    replica_fini(&f.r);
}

/* KAFKA-12996: where its log is gone altogether, the question where it parts has no use. */
static void s22_below_the_leaders_start_is_out_of_range_even_if_it_diverges(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    log_is(&f, 2000, 5);
    f.log.start = 1000;
    say(&f, fetch_of_another_log(200, 100));
    assert_int_equal(f.fx.err, ERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(f.fx.diverging_epoch, -1);
    replica_fini(&f.r);
}

static void s11_no_answer_is_not_a_refusal(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 3);
    grown(&f, 10);
    fetched_by(&f, 2, 10);
    f.now_ms += LAG_MS + 1;
    fetched_by(&f, 2, 10);
    assert_true(f.fx.must_propose); /* without 3 */
    assert_int_equal(f.r.high_watermark, 0);
    altered(&f, ERR_REQUEST_TIMED_OUT, 0);
    assert_false(f.fx.must_propose);
    f.now_ms = f.fx.wake_ms;
    say(&f, (struct replica_event){.kind = REPLICA_TICK});
    assert_true(f.fx.must_propose); /* the same again */
    assert_int_equal(f.r.high_watermark, 0);
    altered(&f, ERR_NONE, 2);
    assert_int_equal(f.r.high_watermark, 10);
    replica_fini(&f.r);
}

/* Nor does it matter what the leader itself thinks of 3 by then. */
static void s11_who_was_proposed_without_an_answer_is_waited_for(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    grown(&f, 10);
    fetched_by(&f, 2, 10);
    fetched_by(&f, 3, 10);
    assert_true(f.fx.must_propose);
    altered(&f, ERR_NETWORK_EXCEPTION, 0);
    grown(&f, 20);
    f.now_ms += 10 * LAG_MS;
    fetched_by(&f, 2, 20);
    assert_true(f.fx.must_propose); /* the same again, with 3 */
    assert_int_equal(f.r.high_watermark, 10);
    replica_fini(&f.r);
}

static void s11_the_watermark_holds_for_who_may_have_joined(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    grown(&f, 10);
    fetched_by(&f, 2, 10);
    fetched_by(&f, 3, 10);
    assert_true(f.fx.must_propose);
    grown(&f, 20);
    fetched_by(&f, 2, 20);
    f.now_ms += 10 * LAG_MS; /* 3 is far behind by now, but it may be a member */
    fetched_by(&f, 2, 20);
    assert_int_equal(f.r.high_watermark, 10);
    altered(&f, ERR_INVALID_UPDATE_VERSION, 0);
    assert_int_equal(f.r.high_watermark, 10);
    assigned(&f, 1, 6, 2); /* the controller's word ends it */
    fetched_by(&f, 2, 20);
    assert_int_equal(f.r.high_watermark, 20);
    replica_fini(&f.r);
}

static void s13_who_is_not_alive_is_not_proposed(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    brokers(&f, -1);
    grown(&f, 10);
    fetched_by(&f, 3, 10);
    assert_false(f.fx.must_propose);
    fetched_by(&f, 2, 10);
    assert_int_equal(f.r.high_watermark, 10); /* nor does it hold anything back */
    brokers_with(&f, 13, true);               /* it is about to stop, and fetches to the end */
    assert_false(f.fx.must_propose);
    fetched_by(&f, 3, 10);
    assert_false(f.fx.must_propose);
    brokers(&f, 13);
    assert_true(f.fx.must_propose);
    replica_fini(&f.r);
}

static void s14_a_fetch_of_an_earlier_life_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    brokers(&f, 99);
    grown(&f, 10);
    fetched_by(&f, 3, 10);
    assert_int_equal(f.fx.err, ERR_STALE_BROKER_EPOCH);
    assert_false(f.fx.must_propose);
    replica_fini(&f.r);
}

static void s16_below_min_insync_nothing_is_committed(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 2, 2);
    grown(&f, 10);
    fetched_by(&f, 2, 10);
    assert_int_equal(f.r.high_watermark, 10);
    grown(&f, 20);
    f.now_ms += LAG_MS + 1;
    say(&f, (struct replica_event){.kind = REPLICA_TICK});
    assert_true(f.fx.must_propose);
    altered(&f, ERR_NONE, 1);
    assert_true(f.fx.lacks_isr);
    assert_int_equal(replica_check_isr(&f.r), ERR_NOT_ENOUGH_REPLICAS);
    assert_int_equal(f.r.high_watermark, 10);
    replica_fini(&f.r);
}

static void s24_an_epoch_is_not_led_twice(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f, 1);
    log_is(&f, 10, 5);
    assigned(&f, 1, 5, 3);
    assert_true(f.fx.must_refuse);
    assert_int_equal(f.r.role, REPLICA_IDLE);
    assigned(&f, 1, 6, 3);
    assert_true(f.fx.has_led);
    replica_fini(&f.r);
}

static void lag_messages_count_when_they_are_set(void **state)
{
    struct fixture f;
    struct replica_config config = {
        .lag_time_max_ms = LAG_MS, .lag_messages_max = 100, .min_insync = 1};

    (void)state;
    lead(&f, 1, 2);
    say(&f, (struct replica_event){.kind = REPLICA_CONFIG, .config = &config});
    grown(&f, 100);
    fetched_by(&f, 2, 0);
    assert_false(f.fx.must_propose);
    grown(&f, 101);
    assert_true(f.fx.must_propose);
    replica_fini(&f.r);
}

/* A busy leader always has a tail that its disk does not have yet; nobody can have that. */
static void who_has_all_that_the_leader_has_synced_is_in_sync(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    for (int i = 1; i < 100; i++) {
        f.now_ms += LAG_MS / 4;
        f.log.end = 10 * i;
        f.log.acked = f.log.end - 5;
        fetched_by(&f, 2, f.log.acked - 10);
        assert_false(f.fx.must_propose);
    }
    replica_fini(&f.r);
}

static void who_would_leave_at_once_does_not_join(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    grown(&f, 10);
    fetched_by(&f, 3, 0);
    grown(&f, 20);
    fetched_by(&f, 3, 5); /* the watermark is below, but it has never caught up */
    assert_false(f.fx.must_propose);
    grown(&f, 30);
    fetched_by(&f, 3, 20); /* it has what there was when it fetched last */
    assert_true(f.fx.must_propose);
    replica_fini(&f.r);
}

static void who_is_waited_for_is_not_to_be_throttled(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    grown(&f, 10);
    fetched_by(&f, 2, 0);
    assert_true(f.fx.is_awaited); /* in sync, however far behind */
    fetched_by(&f, 3, 0);
    assert_false(f.fx.is_awaited);
    grown(&f, 20);
    fetched_by(&f, 2, 20);
    fetched_by(&f, 3, 9);
    assert_false(f.fx.is_awaited); /* which it had not when it fetched before */
    grown(&f, 30);
    fetched_by(&f, 3, 20);
    assert_true(f.fx.is_awaited); /* the watermark, which is no higher, stays for it */
    fetched_by(&f, 2, 30);
    assert_int_equal(f.r.high_watermark, 20);
    replica_fini(&f.r);
}

/* It asks from the same place, and gets nothing: however often, that does not make it in sync. */
static void who_is_throttled_does_not_catch_up_by_asking(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    for (int i = 1; i < 100; i++) {
        f.now_ms += LAG_MS / 4;
        grown(&f, 10 * i);
        fetched_by(&f, 2, 10 * i);
        fetched_by(&f, 3, 5);
        assert_false(f.fx.is_awaited || f.fx.must_propose);
        assert_int_equal(f.r.high_watermark, 10 * i);
    }
    replica_fini(&f.r);
}

static void a_new_leader_does_not_tell_its_end_before_it_is_committed(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f, 1);
    log_is(&f, 10, 4);
    assigned(&f, 1, 5, 2);
    assert_false(replica_knows_end(&f.r)); /* KIP-207 */
    fetched_by(&f, 2, 10);
    assert_true(replica_knows_end(&f.r));
    replica_fini(&f.r);
}

/* ---- following -------------------------------------------------------------------------- */

static void follow(struct fixture *f, int64_t end, int32_t last_epoch)
{
    setup(f, 1);
    log_is(f, end, last_epoch);
    assigned(f, 2, 5, 2);
    assert_int_equal(f->fx.next, REPLICA_NEXT_FETCH);
    assert_int_equal(f->fx.offset, end);
}

static struct replica_event answer(const struct fixture *f)
{
    return (struct replica_event){
        .kind = REPLICA_FETCHED,
        .fetched = {.leader_epoch = f->r.leader_epoch,
                    .offset = f->r.fetch_offset,
                    .diverging_epoch = -1,
                    .found_epoch = -1,
                    .found_end = -1},
    };
}

static void the_next_fetch_waits_for_the_disk(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    e = answer(&f);
    e.fetched.has_records = true;
    e.fetched.high_watermark = 12;
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_APPEND);
    f.log.end = 15;
    say(&f, (struct replica_event){.kind = REPLICA_APPENDED});
    assert_int_equal(f.fx.next, REPLICA_NEXT_NOTHING);
    assert_int_equal(f.r.high_watermark, 10); /* of what it would keep */
    f.log.acked = 15;
    say(&f, (struct replica_event){.kind = REPLICA_ADVANCED});
    assert_int_equal(f.r.high_watermark, 12);
    assert_int_equal(f.fx.next, REPLICA_NEXT_FETCH);
    assert_int_equal(f.fx.offset, 15);
    replica_fini(&f.r);
}

static void a_follower_keeps_up_in_the_set_or_with_the_watermark(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    assert_true(replica_keeps_up(&f.r, 0)); /* in the set */
    assigned(&f, 2, 5, 0);
    assert_false(replica_keeps_up(&f.r, 10)); /* nothing is known of the watermark */
    e = answer(&f);
    e.fetched.high_watermark = 12;
    say(&f, e);
    assert_false(replica_keeps_up(&f.r, 11));
    assert_true(replica_keeps_up(&f.r, 12));
    replica_fini(&f.r);
}

/* As with a log that is damaged: the leader answers well, and there is no place for the records. */
static void who_cannot_append_asks_more_and_more_rarely(void **state)
{
    struct fixture f;
    struct replica_event e;
    int64_t pause_ms = 10;

    (void)state;
    follow(&f, 10, 4);
    for (int i = 0; i < 3; i++) {
        e = answer(&f);
        e.fetched.has_records = true;
        say(&f, e);
        assert_int_equal(f.fx.next, REPLICA_NEXT_APPEND);
        say(&f, (struct replica_event){.kind = REPLICA_APPENDED, .err = ERR_KAFKA_STORAGE_ERROR});
        assert_int_equal(f.fx.wake_ms, f.now_ms + pause_ms);
        f.now_ms = f.fx.wake_ms;
        pause_ms *= 2;
        say(&f, (struct replica_event){.kind = REPLICA_TICK});
        assert_int_equal(f.fx.next, REPLICA_NEXT_FETCH);
    }
    replica_fini(&f.r);
}

static void s3_it_truncates_step_by_step_to_a_common_epoch(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    e = answer(&f);
    e.fetched.diverging_epoch = 3; /* the leader's 3 ends at 8; ours at 9 */
    e.fetched.diverging_end = 8;
    e.fetched.high_watermark = 10;
    e.fetched.found_epoch = 3;
    e.fetched.found_end = 9;
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_TRUNCATE);
    assert_int_equal(f.fx.offset, 8);
    assert_int_equal(f.r.high_watermark, 0); /* S8: nothing of this answer */
    log_is(&f, 8, 3);
    say(&f, (struct replica_event){.kind = REPLICA_TRUNCATED});
    assert_int_equal(f.fx.next, REPLICA_NEXT_FETCH);
    e = answer(&f);
    e.fetched.diverging_epoch = 1; /* it never had 3, and we never had 1 but 0 up to 5 */
    e.fetched.diverging_end = 7;
    e.fetched.found_epoch = 0;
    e.fetched.found_end = 5;
    say(&f, e);
    assert_int_equal(f.fx.offset, 5);
    replica_fini(&f.r);
}

/* B has m0 of epoch 0 and m1 of epoch 1, which nobody copied; its watermark is still 0. */
static void s3_two_elections_in_a_row_cost_nothing_that_was_committed(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 2, 1);
    e = answer(&f);
    e.fetched.diverging_epoch = 0; /* the leader has never seen 1 */
    e.fetched.diverging_end = 1;
    e.fetched.found_epoch = 0;
    e.fetched.found_end = 1;
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_TRUNCATE);
    assert_int_equal(f.fx.offset, 1); /* m0 stays */
    assert_false(f.fx.is_below_watermark);
    replica_fini(&f.r);
}

/* Its own 8 and 9 were never committed; the leader has others there, and they are. */
static void s8_the_watermark_of_an_answer_that_says_diverged_is_not_taken(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    e = answer(&f);
    e.fetched.diverging_epoch = 4;
    e.fetched.diverging_end = 8;
    e.fetched.found_epoch = 4;
    e.fetched.found_end = 10;
    e.fetched.high_watermark = 11;
    e.fetched.log_start = 5;
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_TRUNCATE);
    assert_int_equal(f.fx.offset, 8);
    assert_false(f.fx.has_moved);
    assert_false(f.fx.is_below_watermark);
    assert_int_equal(f.fx.log_start, -1);
    assert_int_equal(f.r.high_watermark, 0);
    replica_fini(&f.r);
}

static void s22_it_starts_over_where_the_leaders_log_begins(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    e = answer(&f);
    e.fetched.err = ERR_OFFSET_OUT_OF_RANGE;
    e.fetched.log_start = 1000;
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_RESTART);
    assert_int_equal(f.fx.offset, 1000);
    replica_fini(&f.r);
}

static void s22_an_error_without_a_reason_truncates_nothing(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    e = answer(&f);
    e.fetched.err = ERR_OFFSET_OUT_OF_RANGE; /* and a log start that explains nothing */
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_NOTHING);
    f.now_ms = f.fx.wake_ms;
    say(&f, (struct replica_event){.kind = REPLICA_TICK});
    assert_int_equal(f.fx.next, REPLICA_NEXT_FETCH); /* L3: it goes on */
    replica_fini(&f.r);
}

static void s23_an_answer_of_another_epoch_is_dropped(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    e = answer(&f);
    e.fetched.has_records = true;
    assigned(&f, 3, 6, 2);
    assert_int_equal(f.fx.next, REPLICA_NEXT_FETCH);
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_NOTHING);
    replica_fini(&f.r);
}

static void s23_a_refusal_of_another_epoch_does_not_stop_it(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    e = answer(&f);
    e.fetched.err = ERR_FENCED_LEADER_EPOCH;
    assigned(&f, 3, 6, 2);
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_NOTHING);
    e = answer(&f); /* the fetch in the epoch in force is still out, and is answered */
    e.fetched.has_records = true;
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_APPEND);
    replica_fini(&f.r);
}

static void who_is_elected_while_it_truncates_leads_when_that_is_done(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    e = answer(&f);
    e.fetched.diverging_epoch = 3;
    e.fetched.diverging_end = e.fetched.found_end = 8;
    e.fetched.found_epoch = 3;
    say(&f, e);
    assigned(&f, 1, 6, 2);
    assert_false(f.fx.has_led);
    fetched_by(&f, 2, 8);
    assert_int_equal(f.fx.err, ERR_NOT_LEADER_OR_FOLLOWER);
    log_is(&f, 8, 3);
    say(&f, (struct replica_event){.kind = REPLICA_TRUNCATED});
    assert_true(f.fx.has_led);
    assert_int_equal(f.r.epoch_start, 8);
    replica_fini(&f.r);
}

static void who_does_not_lead_any_more_says_so(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    assigned(&f, 2, 6, 2);
    assert_true(f.fx.has_resigned);
    assigned(&f, -1, 7, 2);
    assert_false(f.fx.has_resigned);
    assert_int_equal(f.fx.next, REPLICA_NEXT_NOTHING);
    assigned(&f, 1, 6, 2); /* late */
    assert_true(f.fx.is_stale);
    replica_fini(&f.r);
}

static void a_leader_is_heard_while_all_in_sync_fetch(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 3);
    fetched_by(&f, 2, 0);
    assert_false(replica_is_heard(&f.r, f.now_ms, 100));
    fetched_by(&f, 3, 0);
    assert_true(replica_is_heard(&f.r, f.now_ms, 100));
    f.now_ms += 101;
    fetched_by(&f, 3, 0);
    assert_false(replica_is_heard(&f.r, f.now_ms, 100));
    fetched_by(&f, 2, 0);
    assert_true(replica_is_heard(&f.r, f.now_ms, 100));
    replica_fini(&f.r);
}

static void a_leader_that_is_in_sync_alone_needs_nobody(void **state)
{
    struct fixture f;

    (void)state;
    lead(&f, 1, 1);
    assert_true(replica_is_heard(&f.r, f.now_ms + 10000, 100));
    replica_fini(&f.r);
}

/* ---- consumers that read here ----------------------------------------------------------- */

static void answered_with(struct fixture *f, enum err err)
{
    struct replica_event e = answer(f);

    e.fetched.err = err;
    e.fetched.high_watermark = err ? -1 : 7;
    say(f, e);
}

static void a_follower_serves_while_the_leader_in_force_answers(void **state)
{
    struct fixture f;

    (void)state;
    follow(&f, 10, 4);
    f.r.high_watermark = 5; /* of an earlier life */
    assert_false(replica_serves(&f.r));
    answered_with(&f, ERR_NONE);
    assert_true(replica_serves(&f.r));
    assert_int_equal(f.r.high_watermark, 7);
    assigned(&f, 3, 6, 2);
    assert_false(replica_serves(&f.r)); /* the next one has not agreed yet */
    answered_with(&f, ERR_NONE);
    assert_true(replica_serves(&f.r));
    answered_with(&f, ERR_NETWORK_EXCEPTION);
    assert_false(replica_serves(&f.r));
    f.now_ms = f.fx.wake_ms;
    say(&f, (struct replica_event){.kind = REPLICA_TICK});
    answered_with(&f, ERR_NONE);
    assert_true(replica_serves(&f.r));
    assigned(&f, -1, 7, 2);
    assert_false(replica_serves(&f.r));
    replica_fini(&f.r);
}

static void who_truncates_does_not_serve(void **state)
{
    struct fixture f;
    struct replica_event e;

    (void)state;
    follow(&f, 10, 4);
    answered_with(&f, ERR_NONE);
    e = answer(&f);
    e.fetched.diverging_epoch = e.fetched.found_epoch = 4;
    e.fetched.diverging_end = e.fetched.found_end = 8;
    say(&f, e);
    assert_int_equal(f.fx.next, REPLICA_NEXT_TRUNCATE);
    assert_false(replica_serves(&f.r));
    log_is(&f, 8, 4);
    say(&f, (struct replica_event){.kind = REPLICA_TRUNCATED});
    assert_true(replica_serves(&f.r));
    replica_fini(&f.r);
}

static struct metadata_image *image_with_racks(const char *first, const char *second,
                                               const char *third)
{
    const char *racks[] = {first, second, third};
    struct metadata_delta d = {0};
    struct metadata_image *none = metadata_image_new();
    struct metadata_image *image;

    for (int32_t i = 0; i < 3; i++)
        metadata_delta_put_broker(
            &d, metadata_broker_new(i + 1, 11 + i, racks[i] ? str_of(racks[i]) : str_null()));
    image = metadata_apply(none, &d);
    metadata_delta_fini(&d);
    metadata_image_put(none);
    return image;
}

static int32_t near(const struct fixture *f, const struct metadata_image *image, int64_t offset)
{
    return replica_near(&f->r, image, STR_LIT("b"), offset);
}

static void a_consumer_is_sent_to_who_is_in_sync_in_its_rack_and_has_its_offset(void **state)
{
    struct metadata_image *image = image_with_racks("a", "b", "c");
    struct fixture f;

    (void)state;
    lead(&f, 1, 2);
    assert_int_equal(near(&f, image, 0), -1); /* not heard of in this epoch */
    grown(&f, 10);
    fetched_by(&f, 2, 6);
    assert_int_equal(near(&f, image, 6), 2);
    assert_int_equal(near(&f, image, 7), -1);
    f.r.members[1].log_start = 3; /* its own retention */
    assert_int_equal(near(&f, image, 2), -1);
    assert_int_equal(near(&f, image, 3), 2);
    assert_int_equal(replica_near(&f.r, image, STR_LIT("a"), 3), -1); /* this one */
    fetched_by(&f, 3, 6);
    assert_int_equal(replica_near(&f.r, image, STR_LIT("c"), 3), -1); /* not in sync */
    assert_int_equal(replica_near(&f.r, image, STR_LIT("d"), 3), -1);
    assigned(&f, 2, 6, 2);
    assert_int_equal(near(&f, image, 3), -1);
    metadata_image_put(image);
    replica_fini(&f.r);
}

static void a_consumer_is_sent_to_who_has_most_and_is_alive(void **state)
{
    struct metadata_image *image = image_with_racks(NULL, "b", "b");
    struct fixture f;

    (void)state;
    lead(&f, 1, 3);
    grown(&f, 10);
    fetched_by(&f, 3, 6);
    fetched_by(&f, 2, 7);
    assert_int_equal(near(&f, image, 5), 2);
    fetched_by(&f, 3, 10);
    f.now_ms++;
    fetched_by(&f, 2, 10);
    assert_int_equal(near(&f, image, 5), 2);
    fetched_by(&f, 3, 10);
    assert_int_equal(near(&f, image, 5), 3); /* both at the same time */
    brokers(&f, -1);
    assert_int_equal(near(&f, image, 5), 2);
    brokers_with(&f, 13, true);
    assert_int_equal(near(&f, image, 5), 2); /* about to stop */
    metadata_image_put(image);
    replica_fini(&f.r);
}

static void a_consumer_is_not_sent_away_from_a_leader_in_its_rack(void **state)
{
    struct metadata_image *image = image_with_racks("b", "b", "b");
    struct fixture f;

    (void)state;
    lead(&f, 1, 3);
    fetched_by(&f, 2, 0);
    assert_int_equal(near(&f, image, 0), -1);
    metadata_image_put(image);
    replica_fini(&f.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_committed_when_all_in_sync_have_it),
        cmocka_unit_test(what_the_leader_has_not_synced_is_not_committed),
        cmocka_unit_test(s5_a_fetch_of_another_epoch_is_refused_and_not_counted),
        cmocka_unit_test(s6_positions_of_an_earlier_epoch_are_forgotten),
        cmocka_unit_test(s7_a_follower_joins_with_all_that_is_older_than_the_epoch),
        cmocka_unit_test(s8_s9_a_log_that_diverges_is_told_where_and_not_counted),
        cmocka_unit_test(s3_a_leader_names_the_last_epoch_that_it_can_share),
        cmocka_unit_test(s22_who_is_above_the_leaders_end_is_told_where_its_epoch_ends),
        cmocka_unit_test(s22_below_the_leaders_start_is_out_of_range_even_if_it_diverges),
        cmocka_unit_test(s11_no_answer_is_not_a_refusal),
        cmocka_unit_test(s11_who_was_proposed_without_an_answer_is_waited_for),
        cmocka_unit_test(s11_the_watermark_holds_for_who_may_have_joined),
        cmocka_unit_test(s13_who_is_not_alive_is_not_proposed),
        cmocka_unit_test(s14_a_fetch_of_an_earlier_life_is_refused),
        cmocka_unit_test(s16_below_min_insync_nothing_is_committed),
        cmocka_unit_test(s24_an_epoch_is_not_led_twice),
        cmocka_unit_test(lag_messages_count_when_they_are_set),
        cmocka_unit_test(who_has_all_that_the_leader_has_synced_is_in_sync),
        cmocka_unit_test(who_would_leave_at_once_does_not_join),
        cmocka_unit_test(who_is_waited_for_is_not_to_be_throttled),
        cmocka_unit_test(who_is_throttled_does_not_catch_up_by_asking),
        cmocka_unit_test(a_new_leader_does_not_tell_its_end_before_it_is_committed),
        cmocka_unit_test(the_next_fetch_waits_for_the_disk),
        cmocka_unit_test(a_follower_keeps_up_in_the_set_or_with_the_watermark),
        cmocka_unit_test(who_cannot_append_asks_more_and_more_rarely),
        cmocka_unit_test(s3_it_truncates_step_by_step_to_a_common_epoch),
        cmocka_unit_test(s3_two_elections_in_a_row_cost_nothing_that_was_committed),
        cmocka_unit_test(s8_the_watermark_of_an_answer_that_says_diverged_is_not_taken),
        cmocka_unit_test(s22_it_starts_over_where_the_leaders_log_begins),
        cmocka_unit_test(s22_an_error_without_a_reason_truncates_nothing),
        cmocka_unit_test(s23_an_answer_of_another_epoch_is_dropped),
        cmocka_unit_test(s23_a_refusal_of_another_epoch_does_not_stop_it),
        cmocka_unit_test(who_is_elected_while_it_truncates_leads_when_that_is_done),
        cmocka_unit_test(who_does_not_lead_any_more_says_so),
        cmocka_unit_test(a_leader_is_heard_while_all_in_sync_fetch),
        cmocka_unit_test(a_leader_that_is_in_sync_alone_needs_nobody),
        cmocka_unit_test(a_follower_serves_while_the_leader_in_force_answers),
        cmocka_unit_test(who_truncates_does_not_serve),
        cmocka_unit_test(a_consumer_is_sent_to_who_is_in_sync_in_its_rack_and_has_its_offset),
        cmocka_unit_test(a_consumer_is_sent_to_who_has_most_and_is_alive),
        cmocka_unit_test(a_consumer_is_not_sent_away_from_a_leader_in_its_rack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
