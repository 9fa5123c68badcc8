/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumer against scripted brokers. The log of partition p holds the records of offsets 0 to
 * 99 in batches of ten; the value of each is its offset.
 */
#include <stdio.h>

#include "client/consumer.h"
#include "client/fake_simtest.h"

#define BATCH_RECORDS 10
#define LOG_END 100

struct taken {
    struct consumer_config config;
    struct consumer *consumer;
    struct record_iter iter;
    int64_t next[FAKE_PARTITIONS]; /* offset that is expected; -1: whatever comes */
    int64_t first[FAKE_PARTITIONS];
    int count[FAKE_PARTITIONS];
    int failed;
    enum err err;
    int64_t failed_at;
    int32_t caught_up; /* bits by partition */
    int32_t wanted;    /* end when these are caught up */
    bool may_skip;
    bool ends_at_failure;
};

static struct fake *the_fake;

static void finish(struct taken *t)
{
    consumer_close(t->consumer);
    record_iter_fini(&t->iter);
    fake_end(the_fake);
}

static void finish_soon(struct client_alarm *alarm)
{
    (void)alarm;
    finish(the_fake->test);
}

/* Not inside the consumer's callback. */
static struct client_alarm ending;

static void end(void)
{
    ending.ring = finish_soon;
    client_alarm_set(the_fake->client, &ending, 0);
}

static void take(void *ctx, const struct consumer_batch *b)
{
    struct taken *t = ctx;
    int32_t p = b->partition;
    struct record r;
    enum err err = record_iter_batch(&t->iter, b->batch);

    assert_true(str_eq_c(b->topic, "t"));
    assert_true(batch_last_offset(&b->header) >= b->from_offset);
    while (!err && !(err = record_iter_next(&t->iter, &r))) {
        int64_t value;

        if (r.offset < b->from_offset)
            continue;
        assert_int_equal(str_to_i64((struct str){(const char *)r.value.p, r.value.n}, &value),
                         ERR_NONE);
        assert_int_equal(value, r.offset);
        if (t->next[p] < 0)
            t->first[p] = r.offset;
        else if (!t->may_skip)
            assert_int_equal(r.offset, t->next[p]);
        t->next[p] = r.offset + 1;
        t->count[p]++;
    }
    assert_int_equal(err, ERR_EOF);
}

static void caught_up(void *ctx, struct str topic, int32_t partition, int64_t next)
{
    struct taken *t = ctx;

    (void)topic;
    assert_int_equal(next, the_fake->logs[partition].end);
    t->caught_up |= 1 << partition;
    if (t->wanted && (t->caught_up & t->wanted) == t->wanted) {
        t->wanted = 0;
        end();
    }
}

static void failed(void *ctx, struct str topic, int32_t partition, int64_t offset, enum err err)
{
    struct taken *t = ctx;

    (void)topic;
    (void)partition;
    t->failed++;
    t->err = err;
    t->failed_at = offset;
    if (t->ends_at_failure)
        end();
}

static const struct consumer_events events = {
    .batch = take,
    .caught_up = caught_up,
    .failed = failed,
};

/* A batch of ten records; producer id -1: none. */
static void add_batch(struct fake_log *log, int64_t producer_id, bool is_transactional)
{
    struct batch_spec spec = batch_spec_default();
    struct batch_builder builder;

    spec.base_offset = log->end;
    spec.leader_epoch = log->leader_epoch;
    spec.producer_id = producer_id;
    spec.producer_epoch = producer_id < 0 ? -1 : 0;
    spec.base_sequence = producer_id < 0 ? -1 : 0;
    spec.is_transactional = is_transactional;
    batch_builder_init(&builder, &spec);
    for (int i = 0; i < BATCH_RECORDS; i++) {
        char text[24];
        struct record r = {
            .timestamp = log->end * 10, .key = bytes_null(), .value = {(const uint8_t *)text, 0}};

        r.value.n = snprintf(text, sizeof(text), "%lld", (long long)log->end);
        assert_int_equal(batch_builder_append(&builder, &r), ERR_NONE);
        log->end++;
    }
    batch_builder_finish(&builder, &log->batches[log->batch_count++]);
    batch_builder_fini(&builder);
}

static void add_marker(struct fake_log *log, int64_t producer_id, enum control_type type)
{
    struct control_spec spec = {
        .type = type,
        .producer_id = producer_id,
        .base_offset = log->end++,
        .leader_epoch = log->leader_epoch,
    };

    batch_build_control(&spec, &log->batches[log->batch_count++]);
}

static struct taken taken_default(void)
{
    struct taken t = {.config = consumer_config_default()};

    record_iter_init(&t.iter);
    for (int p = 0; p < FAKE_PARTITIONS; p++)
        t.next[p] = t.first[p] = -1;
    t.wanted = 1;
    return t;
}

static void open_consumer(struct fake *f)
{
    struct taken *t = f->test;

    assert_int_equal(consumer_open(f->client, &t->config, &events, t, &t->consumer), ERR_NONE);
}

static void run(struct taken *t, void (*start)(struct fake *f),
                enum fake_action (*hook)(struct fake *f, struct fake_request *rq))
{
    the_fake = fake_new(t, start);
    the_fake->hook = hook;
    ending = (struct client_alarm){0};
    for (int p = 0; p < FAKE_PARTITIONS; p++)
        while (the_fake->logs[p].end < LOG_END)
            add_batch(&the_fake->logs[p], -1, false);
    fake_run(the_fake);
}

static void assign(struct fake *f, enum consumer_start start, int64_t value)
{
    struct taken *t = f->test;

    open_consumer(f);
    consumer_assign(t->consumer, STR_LIT("t"), 0, start, value);
}

/* ---- Where it starts. */

static void start_earliest(struct fake *f)
{
    f->logs[0].start = 20;
    assign(f, START_EARLIEST, 0);
}

static void start_latest(struct fake *f)
{
    assign(f, START_LATEST, 0);
}

static void start_offset(struct fake *f)
{
    assign(f, START_OFFSET, 37);
}

static void start_timestamp(struct fake *f)
{
    assign(f, START_TIMESTAMP, 555);
}

static void start_young(struct fake *f)
{
    assign(f, START_TIMESTAMP, 1000000);
}

static void start_tail(struct fake *f)
{
    assign(f, START_TAIL, 7);
}

static void a_partition_is_read_from_where_it_is_said(void **state)
{
    static const struct {
        void (*start)(struct fake *f);
        int64_t first;
    } cases[] = {
        {start_earliest, 20},  {start_latest, -1}, {start_offset, 37},
        {start_timestamp, 56}, {start_young, -1},  {start_tail, 93},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct taken t = taken_default();

        run(&t, cases[i].start, NULL);
        assert_int_equal(t.first[0], cases[i].first);
        assert_int_equal(t.count[0], cases[i].first < 0 ? 0 : LOG_END - cases[i].first);
        assert_int_equal(t.failed, 0);
    }
}

static void start_three(struct fake *f)
{
    struct taken *t = f->test;

    f->partition_count = 3;
    f->logs[1].leader = 2;
    open_consumer(f);
    for (int p = 0; p < 3; p++)
        consumer_assign(t->consumer, STR_LIT("t"), p, START_OFFSET, 0);
}

static void partitions_of_several_brokers_are_read_in_small_pieces(void **state)
{
    struct taken t = taken_default();

    (void)state;
    t.wanted = 7;
    t.config.max_partition_fetch_bytes = 400;
    run(&t, start_three, NULL);
    for (int p = 0; p < 3; p++)
        assert_int_equal(t.count[p], LOG_END);
}

static void topics_without_ids_are_read_by_name(void **state)
{
    struct taken t = taken_default();

    (void)state;
    the_fake = fake_new(&t, start_offset);
    the_fake->has_no_ids = true;
    ending = (struct client_alarm){0};
    while (the_fake->logs[0].end < LOG_END)
        add_batch(&the_fake->logs[0], -1, false);
    fake_run(the_fake);
    assert_int_equal(t.first[0], 37);
}

/* ---- Trouble. */

static enum fake_action troubled(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key != API_FETCH)
        return FAKE_SERVE;
    f->step++;
    if (f->step % 3 == 0) {
        f->logs[0].leader = 3 - f->logs[0].leader;
        f->logs[0].leader_epoch++;
    }
    return f->step % 4 == 0 ? FAKE_SERVE_CLOSE : FAKE_SERVE;
}

static void start_zero(struct fake *f)
{
    assign(f, START_OFFSET, 0);
}

static void the_leader_is_followed_and_nothing_is_read_twice(void **state)
{
    struct taken t = taken_default();

    (void)state;
    t.config.max_partition_fetch_bytes = 400;
    run(&t, start_zero, troubled);
    assert_int_equal(t.count[0], LOG_END);
    assert_int_equal(t.first[0], 0);
}

static void start_lost(struct fake *f)
{
    f->logs[0].start = 50;
    assign(f, START_OFFSET, 10);
}

static void an_offset_that_is_gone_is_dealt_with_as_said(void **state)
{
    struct taken earliest = taken_default();
    struct taken latest = taken_default();
    struct taken none = taken_default();

    (void)state;
    earliest.config.auto_offset_reset = RESET_EARLIEST;
    run(&earliest, start_lost, NULL);
    assert_int_equal(earliest.first[0], 50);
    latest.config.auto_offset_reset = RESET_LATEST;
    run(&latest, start_lost, NULL);
    assert_int_equal(latest.count[0], 0);
    none.config.auto_offset_reset = RESET_NONE;
    none.ends_at_failure = true;
    run(&none, start_lost, NULL);
    assert_int_equal(none.failed, 1);
    assert_int_equal(none.err, ERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(none.failed_at, 10);
}

static void start_damaged(struct fake *f)
{
    struct buf *b = &f->logs[0].batches[3];

    b->p[b->n - 1] ^= 1;
    assign(f, START_OFFSET, 0);
}

static void a_damaged_batch_is_not_handed_out(void **state)
{
    struct taken t = taken_default();

    (void)state;
    t.ends_at_failure = true;
    run(&t, start_damaged, NULL);
    assert_int_equal(t.err, ERR_CORRUPT_MESSAGE);
    assert_int_equal(t.failed_at, 30);
    assert_int_equal(t.count[0], 30);
}

static void start_unknown(struct fake *f)
{
    f->has_no_topic = true;
    assign(f, START_EARLIEST, 0);
}

static void an_unknown_topic_fails_when_patience_ends(void **state)
{
    struct taken t = taken_default();

    (void)state;
    t.config.unknown_topic_timeout_ms = 5000;
    t.ends_at_failure = true;
    run(&t, start_unknown, NULL);
    assert_int_equal(t.err, ERR_UNKNOWN_TOPIC_OR_PARTITION);
}

/* ---- Transactions. */

/* Producer 1 commits 100-109; producer 2 aborts 111-120 and commits 122-131. */
static void start_transactions(struct fake *f)
{
    struct fake_log *log = &f->logs[0];

    add_batch(log, 1, true);
    add_marker(log, 1, CONTROL_COMMIT);
    add_batch(log, 2, true);
    add_marker(log, 2, CONTROL_ABORT);
    add_batch(log, 2, true);
    add_marker(log, 2, CONTROL_COMMIT);
    assign(f, START_OFFSET, 95);
}

static enum fake_action names_aborted(struct fake *f, struct fake_request *rq)
{
    const struct fetch_request *q = rq->request;
    struct fetch_response *r = rq->response;
    struct fetch_response_partition *p;

    if (rq->header.api_key != API_FETCH || q->isolation_level != READ_COMMITTED)
        return FAKE_SERVE;
    fake_serve_fetch(f, rq);
    p = &r->responses.v[0].partitions.v[0];
    p->aborted_transactions.n = 1;
    p->aborted_transactions.v = arena_calloc(rq->arena, 1, sizeof(*p->aborted_transactions.v));
    p->aborted_transactions.v[0].producer_id = 2;
    p->aborted_transactions.v[0].first_offset = 111;
    return FAKE_ANSWER;
}

static void aborted_transactions_are_left_out_of_committed_reading(void **state)
{
    struct taken committed = taken_default();
    struct taken uncommitted = taken_default();

    (void)state;
    committed.may_skip = uncommitted.may_skip = true;
    committed.config.isolation_level = READ_COMMITTED;
    run(&committed, start_transactions, names_aborted);
    assert_int_equal(committed.count[0], 5 + 20);
    assert_int_equal(committed.next[0], 132);
    run(&uncommitted, start_transactions, names_aborted);
    assert_int_equal(uncommitted.count[0], 5 + 30);
}

/* ---- Control by the reader. */

static void go_on(struct client_alarm *alarm)
{
    struct taken *t = the_fake->test;

    (void)alarm;
    assert_int_equal(t->count[0], BATCH_RECORDS);
    t->may_skip = true;
    consumer_assign(t->consumer, STR_LIT("t"), 0, START_OFFSET, 90);
    consumer_pause(t->consumer, STR_LIT("t"), 0, false);
}

static struct client_alarm pausing;

static void take_and_pause(void *ctx, const struct consumer_batch *b)
{
    struct taken *t = ctx;

    take(ctx, b);
    if (t->count[0] != BATCH_RECORDS)
        return;
    consumer_pause(t->consumer, STR_LIT("t"), 0, true);
    pausing = (struct client_alarm){.ring = go_on};
    client_alarm_set(the_fake->client, &pausing, io_mono_ns(the_fake->io) + 5000000000);
}

static void start_pause(struct fake *f)
{
    static const struct consumer_events pausing_events = {
        .batch = take_and_pause,
        .caught_up = caught_up,
        .failed = failed,
    };
    struct taken *t = f->test;

    assert_int_equal(consumer_open(f->client, &t->config, &pausing_events, t, &t->consumer),
                     ERR_NONE);
    consumer_assign(t->consumer, STR_LIT("t"), 0, START_OFFSET, 0);
}

static void a_paused_partition_rests_and_may_go_on_elsewhere(void **state)
{
    struct taken t = taken_default();

    (void)state;
    run(&t, start_pause, NULL);
    assert_int_equal(t.count[0], 2 * BATCH_RECORDS);
    assert_int_equal(t.next[0], LOG_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_is_read_from_where_it_is_said),
        cmocka_unit_test(partitions_of_several_brokers_are_read_in_small_pieces),
        cmocka_unit_test(topics_without_ids_are_read_by_name),
        cmocka_unit_test(the_leader_is_followed_and_nothing_is_read_twice),
        cmocka_unit_test(an_offset_that_is_gone_is_dealt_with_as_said),
        cmocka_unit_test(a_damaged_batch_is_not_handed_out),
        cmocka_unit_test(an_unknown_topic_fails_when_patience_ends),
        cmocka_unit_test(aborted_transactions_are_left_out_of_committed_reading),
        cmocka_unit_test(a_paused_partition_rests_and_may_go_on_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
