/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The producer against scripted brokers that lose answers, refuse and forget. What counts is what
 * the fake's logs hold in the end: record i has the value "i".
 */
#include <stdio.h>

#include "client/fake_simtest.h"
#include "client/producer.h"
#include "record/murmur2.h"

#define RECORDS 500
#define SECOND_NS 1000000000

struct made {
    struct producer_config config;
    struct producer *producer;
    int sent;
    int told;
    int stored;
    enum err last_err;
    int64_t last_offset;
    int32_t last_partition;
    int64_t start_ns;
    void (*flushed)(struct made *m);
};

static struct fake *the_fake;

static void finish(struct made *m)
{
    producer_close(m->producer);
    fake_end(the_fake);
}

static void told(void *ctx, const struct producer_result *r)
{
    struct made *m = ctx;

    m->told++;
    m->stored += r->err == ERR_NONE;
    m->last_err = r->err;
    m->last_offset = r->offset;
    m->last_partition = r->partition;
}

static enum err send_value(struct made *m, int i, int32_t partition)
{
    struct producer_record r = producer_record_default();
    char text[16];
    int n = snprintf(text, sizeof(text), "%d", i);

    r.topic = STR_LIT("t");
    r.partition = partition;
    r.value = (struct bytes){(const uint8_t *)text, n};
    return producer_send(m->producer, &r, told, m);
}

static void send_all(struct made *m, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(send_value(m, m->sent++, -1), ERR_NONE);
    }
}

static void flushed(void *ctx)
{
    struct made *m = ctx;

    m->flushed(m);
}

static void flush(struct made *m, void (*then)(struct made *m))
{
    m->flushed = then;
    producer_flush(m->producer, flushed, m);
}

static void open_producer(struct fake *f)
{
    struct made *m = f->test;

    assert_int_equal(producer_open(f->client, &m->config, &m->producer), ERR_NONE);
    m->start_ns = io_mono_ns(f->io);
    f->wall_ms = io_wall_ms(f->io);
}

static struct made made_default(void)
{
    return (struct made){.config = producer_config_default()};
}

static void run(struct made *m, void (*start)(struct fake *f),
                enum fake_action (*hook)(struct fake *f, struct fake_request *rq))
{
    the_fake = fake_new(m, start);
    the_fake->hook = hook;
    fake_run(the_fake);
}

/* The log of a partition holds the values from..from+count-1 in order and nothing else. */
static void check_log(int32_t partition, int from, int count)
{
    struct fake_log *log = &the_fake->logs[partition];
    struct record_iter it;
    struct record r;
    int at = from;

    record_iter_init(&it);
    for (int i = 0; i < log->batch_count; i++) {
        enum err err = record_iter_batch(&it, buf_bytes(&log->batches[i], 0));

        while (!err && !(err = record_iter_next(&it, &r))) {
            int64_t value;

            assert_int_equal(str_to_i64((struct str){(const char *)r.value.p, r.value.n}, &value),
                             ERR_NONE);
            assert_int_equal(value, at);
            assert_true(r.timestamp >= the_fake->wall_ms);
            at++;
        }
        assert_int_equal(err, ERR_EOF);
    }
    record_iter_fini(&it);
    assert_int_equal(at, from + count);
}

static void all_stored(struct made *m)
{
    assert_int_equal(m->told, m->sent);
    assert_int_equal(m->stored, m->sent);
    assert_int_equal(m->last_offset, m->sent - 1);
    assert_int_equal(producer_pending_records(m->producer), 0);
    assert_int_equal(producer_pending_bytes(m->producer), 0);
    check_log(0, 0, m->sent);
    finish(m);
}

static void start_all(struct fake *f)
{
    struct made *m = f->test;

    open_producer(f);
    send_all(m, RECORDS);
    flush(m, all_stored);
}

static void records_are_stored_in_order_and_answered_for(void **state)
{
    struct made m = made_default();

    (void)state;
    run(&m, start_all, NULL);
    assert_int_equal(m.stored, RECORDS);
}

static void every_codec_is_what_the_batch_says(void **state)
{
    (void)state;
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        struct made m = made_default();

        m.config.compression_type = (enum codec)codec;
        run(&m, start_all, NULL);
    }
}

static void topics_without_ids_are_written_to_by_name(void **state)
{
    struct made m = made_default();

    (void)state;
    the_fake = fake_new(&m, start_all);
    the_fake->has_no_ids = true;
    fake_run(the_fake);
    assert_int_equal(m.stored, RECORDS);
}

/* Stores and loses the answer two times out of three; sometimes loses the request. */
static enum fake_action lossy(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key != API_PRODUCE)
        return FAKE_SERVE;
    switch (f->step++ % 4) {
    case 0:
    case 1: return FAKE_SERVE_CLOSE;
    case 2: return FAKE_CLOSE;
    default: return FAKE_SERVE;
    }
}

static void lost_answers_make_neither_doubles_nor_gaps(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.batch_size = 500;
    run(&m, start_all, lossy);
    assert_int_equal(m.stored, RECORDS);
}

/* ---- Refusals. */

/* No batch of more than 10 records. */
static enum fake_action small_only(struct fake *f, struct fake_request *rq)
{
    const struct produce_request *q = rq->request;
    struct batch_header h;

    f->error = 0;
    if (rq->header.api_key != API_PRODUCE)
        return FAKE_SERVE;
    assert_int_equal(batch_header_parse(q->topics.v[0].partitions.v[0].records.b, &h), ERR_NONE);
    f->error = h.record_count > 10 ? ERR_MESSAGE_TOO_LARGE : 0;
    f->step += h.record_count > 10;
    return FAKE_SERVE;
}

static void a_batch_that_is_too_large_is_split(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.compression_type = CODEC_LZ4;
    run(&m, start_all, small_only);
    assert_int_equal(m.stored, RECORDS);
}

static enum fake_action forgetful(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key == API_PRODUCE && f->step++ == 3)
        f->logs[0].last_sequence = 1000000; /* lost what it knew */
    return FAKE_SERVE;
}

static void new_epoch(struct made *m)
{
    assert_int_equal(the_fake->logs[0].epoch, 1);
    all_stored(m);
}

static void start_epoch(struct fake *f)
{
    struct made *m = f->test;

    open_producer(f);
    send_all(m, RECORDS);
    flush(m, new_epoch);
}

static void a_broker_that_has_forgotten_gets_a_new_epoch(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.batch_size = 500;
    run(&m, start_epoch, forgetful);
    assert_int_equal(m.stored, RECORDS);
}

static void after_refusal(struct made *m)
{
    assert_int_equal(m->told, 30);
    assert_int_equal(m->stored, 20);
    assert_int_equal(the_fake->logs[0].epoch, 0);
    assert_int_equal(the_fake->logs[0].last_sequence, 19);
    finish(m);
}

static void refused_second(struct made *m)
{
    assert_int_equal(m->told, 20);
    assert_int_equal(m->stored, 10);
    assert_int_equal(m->last_err, ERR_INVALID_RECORD);
    assert_int_equal(m->last_offset, -1);
    the_fake->error = 0;
    send_all(m, 10);
    flush(m, after_refusal);
}

static void stored_first(struct made *m)
{
    the_fake->error = ERR_INVALID_RECORD;
    send_all(m, 10);
    flush(m, refused_second);
}

static void start_refused(struct fake *f)
{
    struct made *m = f->test;

    open_producer(f);
    send_all(m, 10);
    flush(m, stored_first);
}

static void a_refused_batch_leaves_its_sequence_to_the_next(void **state)
{
    struct made m = made_default();

    (void)state;
    run(&m, start_refused, NULL);
}

/* ---- Time. */

static enum fake_action stores_and_says_nothing(struct fake *f, struct fake_request *rq)
{
    return rq->header.api_key == API_PRODUCE && f->step == 0 ? FAKE_SERVE_CLOSE : FAKE_SERVE;
}

static void after_doubt(struct made *m)
{
    assert_int_equal(m->stored, 10);
    assert_int_equal(the_fake->logs[0].epoch, 1);
    check_log(0, 0, 20);
    finish(m);
}

static void in_doubt(struct made *m)
{
    int64_t passed = io_mono_ns(the_fake->io) - m->start_ns;

    assert_int_equal(m->told, 10);
    assert_int_equal(m->stored, 0);
    assert_int_equal(m->last_err, ERR_NETWORK_EXCEPTION);
    assert_true(passed >= 5 * (int64_t)SECOND_NS && passed < 7 * (int64_t)SECOND_NS);
    the_fake->step = 1;
    send_all(m, 10);
    flush(m, after_doubt);
}

static void start_doubt(struct fake *f)
{
    struct made *m = f->test;

    open_producer(f);
    send_all(m, 10);
    flush(m, in_doubt);
}

static void a_batch_given_up_in_doubt_costs_an_epoch(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.request_timeout_ms = 1000;
    m.config.delivery_timeout_ms = 5000;
    run(&m, start_doubt, stores_and_says_nothing);
}

static void no_topic(struct made *m)
{
    assert_int_equal(m->told, 10);
    assert_int_equal(m->last_err, ERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(m->last_partition, -1);
    finish(m);
}

static void start_no_topic(struct fake *f)
{
    struct made *m = f->test;

    f->has_no_topic = true;
    open_producer(f);
    send_all(m, 10);
    flush(m, no_topic);
}

static void an_unknown_topic_is_named_as_the_cause(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.request_timeout_ms = 1000;
    m.config.delivery_timeout_ms = 5000;
    run(&m, start_no_topic, NULL);
}

static void lingered(void *ctx, const struct producer_result *r)
{
    struct made *m = ctx;
    int64_t passed = io_mono_ns(the_fake->io) - m->start_ns;

    told(ctx, r);
    assert_true(passed >= 2 * (int64_t)SECOND_NS && passed < 3 * (int64_t)SECOND_NS);
}

static void start_linger(struct fake *f)
{
    struct made *m = f->test;
    struct producer_record r = producer_record_default();

    open_producer(f);
    r.topic = STR_LIT("t");
    r.value = (struct bytes){(const uint8_t *)"0", 1};
    m->sent = 1;
    assert_int_equal(producer_send(m->producer, &r, lingered, m), ERR_NONE);
}

static enum fake_action flush_after_produce(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key == API_PRODUCE)
        flush(f->test, all_stored);
    return FAKE_SERVE;
}

static void a_batch_that_is_not_full_lingers(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.linger_ms = 2000;
    run(&m, start_linger, flush_after_produce);
}

/* ---- Memory. */

static void stored_without_lingering(struct made *m)
{
    assert_true(io_mono_ns(the_fake->io) - m->start_ns < 10 * (int64_t)SECOND_NS);
    all_stored(m);
}

static void send_until_full(void *ctx)
{
    struct made *m = ctx;
    enum err err = ERR_NONE;

    while (m->sent < RECORDS && !(err = send_value(m, m->sent, -1)))
        m->sent++;
    assert_true(producer_pending_bytes(m->producer) <= m->config.buffer_memory);
    if (err)
        the_fake->step++;
    else
        flush(m, stored_without_lingering);
}

static void start_full(struct fake *f)
{
    struct made *m = f->test;

    open_producer(f);
    producer_on_room(m->producer, send_until_full, m);
    send_until_full(m);
    assert_int_equal(f->step, 1);
}

static void a_full_producer_refuses_and_tells_when_there_is_room(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.buffer_memory = 2000;
    m.config.linger_ms = 60000; /* being full has to be reason enough to send */
    run(&m, start_full, NULL);
    assert_int_equal(m.stored, RECORDS);
}

/* ---- Partitions. */

static void keyed_stored(struct made *m)
{
    for (int p = 0; p < 3; p++) {
        struct fake_log *log = &the_fake->logs[p];
        struct record_iter it;
        struct record r;

        record_iter_init(&it);
        for (int i = 0; i < log->batch_count; i++) {
            enum err err = record_iter_batch(&it, buf_bytes(&log->batches[i], 0));

            while (!err && !(err = record_iter_next(&it, &r)))
                assert_int_equal(murmur2_partition(r.key, 3), p);
        }
        record_iter_fini(&it);
        assert_true(log->end > 0);
    }
    assert_int_equal(m->stored, m->sent);
    finish(m);
}

static void start_keyed(struct fake *f)
{
    struct made *m = f->test;
    struct producer_record r = producer_record_default();

    f->partition_count = 3;
    f->logs[2].leader = 2;
    open_producer(f);
    r.topic = STR_LIT("t");
    for (; m->sent < 60; m->sent++) {
        r.key = (struct bytes){(const uint8_t *)&m->sent, 4};
        assert_int_equal(producer_send(m->producer, &r, told, m), ERR_NONE);
    }
    flush(m, keyed_stored);
}

static void keys_go_where_the_java_client_sends_them(void **state)
{
    struct made m = made_default();

    (void)state;
    run(&m, start_keyed, NULL);
}

/* How often a record of the partition is not the next after the one before it. */
static int count_breaks(const struct fake_log *log)
{
    struct record_iter it;
    struct record r;
    int64_t before = -2;
    int breaks = 0;

    record_iter_init(&it);
    for (int i = 0; i < log->batch_count; i++) {
        enum err err = record_iter_batch(&it, buf_bytes(&log->batches[i], 0));

        while (!err && !(err = record_iter_next(&it, &r))) {
            int64_t value;

            assert_int_equal(str_to_i64((struct str){(const char *)r.value.p, r.value.n}, &value),
                             ERR_NONE);
            breaks += value != before + 1;
            before = value;
        }
    }
    record_iter_fini(&it);
    return breaks;
}

static void spread(struct made *m)
{
    assert_int_equal(m->stored, m->sent);
    for (int p = 0; p < 3; p++) {
        assert_true(the_fake->logs[p].end > 0);
        assert_true(the_fake->logs[p].end >= 10 * count_breaks(&the_fake->logs[p]));
    }
    finish(m);
}

static void start_sticky(struct fake *f)
{
    struct made *m = f->test;

    f->partition_count = 3;
    open_producer(f);
    send_all(m, RECORDS);
    flush(m, spread);
}

static void records_without_a_key_fill_one_partition_after_the_other(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.batch_size = 1000;
    run(&m, start_sticky, NULL);
}

static void nowhere(struct made *m)
{
    assert_int_equal(m->told, 1);
    assert_int_equal(m->last_err, ERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(m->last_partition, 9);
    assert_true(io_mono_ns(the_fake->io) - m->start_ns < SECOND_NS);
    finish(m);
}

static void start_nowhere(struct fake *f)
{
    struct made *m = f->test;

    open_producer(f);
    assert_int_equal(send_value(m, 0, 9), ERR_NONE);
    flush(m, nowhere);
}

static void a_partition_that_does_not_exist_is_an_error_soon(void **state)
{
    struct made m = made_default();

    (void)state;
    run(&m, start_nowhere, NULL);
}

/* The leader moves while records are on their way. */
static enum fake_action moving(struct fake *f, struct fake_request *rq)
{
    if (rq->header.api_key == API_PRODUCE && ++f->step % 5 == 0) {
        f->logs[0].leader = 3 - f->logs[0].leader;
        f->logs[0].leader_epoch++;
    }
    return FAKE_SERVE;
}

static void the_leader_is_followed(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.batch_size = 500;
    run(&m, start_all, moving);
    assert_int_equal(m.stored, RECORDS);
}

/* ---- acks=0, and settings. */

static void unheard(struct made *m)
{
    assert_int_equal(m->stored, m->sent);
    assert_int_equal(m->last_offset, -1);
    finish(m);
}

static void start_unheard(struct fake *f)
{
    struct made *m = f->test;

    open_producer(f);
    send_all(m, RECORDS);
    flush(m, unheard);
}

static void with_acks_0_nothing_is_waited_for(void **state)
{
    struct made m = made_default();

    (void)state;
    m.config.acks = 0;
    m.config.enable_idempotence = false;
    run(&m, start_unheard, NULL);
}

static void check_settings(struct fake *f)
{
    struct made *m = f->test;
    struct producer_config c = producer_config_default();
    struct producer *p;

    c.acks = 1;
    assert_int_equal(producer_open(f->client, &c, &p), ERR_INVALID_ARG);
    c = producer_config_default();
    c.retries = 0;
    assert_int_equal(producer_open(f->client, &c, &p), ERR_INVALID_ARG);
    c = producer_config_default();
    c.delivery_timeout_ms = c.request_timeout_ms;
    assert_int_equal(producer_open(f->client, &c, &p), ERR_INVALID_ARG);
    c = producer_config_default();
    c.acks = 2;
    assert_int_equal(producer_open(f->client, &c, &p), ERR_LIMIT);
    open_producer(f);
    finish(m);
}

static void settings_that_contradict_each_other_are_refused(void **state)
{
    struct made m = made_default();

    (void)state;
    run(&m, check_settings, NULL);
}

static void start_close(struct fake *f)
{
    struct made *m = f->test;

    open_producer(f);
    send_all(m, 10);
    finish(m);
}

static void closing_answers_for_what_is_left(void **state)
{
    struct made m = made_default();

    (void)state;
    run(&m, start_close, NULL);
    assert_int_equal(m.told, 10);
    assert_int_equal(m.last_err, ERR_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_stored_in_order_and_answered_for),
        cmocka_unit_test(every_codec_is_what_the_batch_says),
        cmocka_unit_test(topics_without_ids_are_written_to_by_name),
        cmocka_unit_test(lost_answers_make_neither_doubles_nor_gaps),
        cmocka_unit_test(a_batch_that_is_too_large_is_split),
        cmocka_unit_test(a_broker_that_has_forgotten_gets_a_new_epoch),
        cmocka_unit_test(a_refused_batch_leaves_its_sequence_to_the_next),
        cmocka_unit_test(a_batch_given_up_in_doubt_costs_an_epoch),
        cmocka_unit_test(an_unknown_topic_is_named_as_the_cause),
        cmocka_unit_test(a_batch_that_is_not_full_lingers),
        cmocka_unit_test(a_full_producer_refuses_and_tells_when_there_is_room),
        cmocka_unit_test(keys_go_where_the_java_client_sends_them),
        cmocka_unit_test(records_without_a_key_fill_one_partition_after_the_other),
        cmocka_unit_test(a_partition_that_does_not_exist_is_an_error_soon),
        cmocka_unit_test(the_leader_is_followed),
        cmocka_unit_test(with_acks_0_nothing_is_waited_for),
        cmocka_unit_test(settings_that_contradict_each_other_are_refused),
        cmocka_unit_test(closing_answers_for_what_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
