/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND 1000000000ll
#define START (1000 * SECOND)
#define SAMPLES 11

/* A quota and who is bound by it. */
struct fixture {
    struct quota q;
    int64_t now;
    int64_t total;
};

static struct fixture begin(void)
{
    struct fixture f = {.now = START};

    quota_init(&f.q, SAMPLES, SECOND);
    quota_look(&f.q, 0, f.now);
    return f;
}

static void look(struct fixture *f)
{
    quota_look(&f->q, f->total, f->now);
}

static void send(struct fixture *f, int64_t bytes)
{
    f->total += bytes;
    look(f);
}

static void sleep_ns(struct fixture *f, int64_t ns)
{
    f->now += ns;
    look(f);
}

/* Sends pieces as soon as the quota allows; returns when all had gone, in ns. */
static int64_t send_all(struct fixture *f, int64_t bytes, int64_t piece, int64_t limit)
{
    int64_t begun = f->now;

    for (; bytes > 0; bytes -= piece) {
        int64_t at = quota_allows_at(&f->q, limit);

        if (at > f->now) {
            assert_true(quota_is_exceeded(&f->q, limit));
            /* No moment before that is early enough, and that one is. */
            sleep_ns(f, at - f->now - 2);
            assert_true(quota_is_exceeded(&f->q, limit));
            sleep_ns(f, 2);
        }
        assert_false(quota_is_exceeded(&f->q, limit));
        send(f, piece);
    }
    return f->now - begun;
}

static void nothing_sent_is_no_rate(void **state)
{
    struct fixture f = begin();

    (void)state;
    assert_true(quota_rate(&f.q) == 0);
    assert_false(quota_is_exceeded(&f.q, 0));
    assert_int_equal(quota_allows_at(&f.q, 0), f.now);
}

static void the_first_bytes_count_as_those_of_a_window(void **state)
{
    struct fixture f = begin();

    (void)state;
    send(&f, 3000);
    assert_true(quota_rate(&f.q) == 3000);
    sleep_ns(&f, SECOND / 2);
    assert_true(quota_rate(&f.q) == 3000);
    sleep_ns(&f, SECOND / 2 + SECOND);
    assert_true(quota_rate(&f.q) == 1500);
    assert_false(quota_is_exceeded(&f.q, 1500));
    assert_true(quota_is_exceeded(&f.q, 1499));
    assert_int_equal(quota_allows_at(&f.q, 1000), START + 3 * SECOND + 1);
}

static void without_a_limit_nothing_is_exceeded(void **state)
{
    struct fixture f = begin();

    (void)state;
    send(&f, INT64_MAX / 2);
    assert_false(quota_is_exceeded(&f.q, QUOTA_UNLIMITED));
    assert_int_equal(quota_allows_at(&f.q, QUOTA_UNLIMITED), f.now);
}

static void what_is_old_is_forgotten(void **state)
{
    struct fixture f = begin();

    (void)state;
    send(&f, 1000);
    sleep_ns(&f, 5 * SECOND);
    send(&f, 600);
    sleep_ns(&f, 6 * SECOND - 1);
    assert_true(quota_rate(&f.q) > 145);
    sleep_ns(&f, 1);
    assert_true(quota_rate(&f.q) == 100);
    sleep_ns(&f, 5 * SECOND);
    assert_true(quota_rate(&f.q) == 0);
}

static void a_quota_of_nothing_allows_when_all_is_forgotten(void **state)
{
    struct fixture f = begin();

    (void)state;
    send(&f, 1);
    sleep_ns(&f, 3 * SECOND);
    send(&f, 1);
    assert_int_equal(quota_allows_at(&f.q, 0), START + (3 + SAMPLES) * SECOND);
}

static void the_mean_is_kept(void **state)
{
    static const int64_t pieces[] = {1000, 10000, 100000, 1000000};

    (void)state;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct fixture f = begin();
        int64_t ns = send_all(&f, 40000000, pieces[i], 200000);
        int64_t due = (40000000 - pieces[i]) / 200000 * SECOND;

        /* The last piece goes when those before it are paid for. A second's worth may go at
         * once at the beginning. */
        assert_true(ns >= due - SECOND);
        assert_true(ns <= due + SECOND);
    }
}

static void who_was_silent_may_send_a_burst_and_no_more(void **state)
{
    struct fixture f = begin();

    (void)state;
    send_all(&f, 2000000, 10000, 100000);
    sleep_ns(&f, 3600 * SECOND);
    assert_true(send_all(&f, 1000000, 10000, 100000) >= 8 * SECOND);
}

static void a_total_that_nobody_looked_at_is_not_held_against_it(void **state)
{
    struct fixture f = begin();

    (void)state;
    f.total += 1000000;
    sleep_ns(&f, SAMPLES * SECOND - 1);
    assert_true(quota_is_exceeded(&f.q, 1000));
    f.total += 1000000000;
    sleep_ns(&f, SAMPLES * SECOND);
    assert_false(quota_is_exceeded(&f.q, 1000));
    send(&f, 1001);
    assert_true(quota_is_exceeded(&f.q, 1000));
}

static void a_higher_limit_allows_earlier(void **state)
{
    struct fixture f = begin();
    int64_t before = INT64_MAX;

    (void)state;
    for (int i = 0; i < 8; i++, sleep_ns(&f, SECOND / 3))
        send(&f, 100000);
    for (int64_t limit = 1; limit < 1000000; limit *= 3) {
        int64_t at = quota_allows_at(&f.q, limit);

        assert_true(at <= before && at >= f.now);
        before = at;
    }
    assert_int_equal(before, f.now);
}

static void more_samples_than_are_kept_are_less(void **state)
{
    struct fixture f = begin();

    (void)state;
    quota_init(&f.q, 1000000, SECOND);
    f.total = 0;
    quota_look(&f.q, 0, f.now);
    for (int i = 0; i < 3 * QUOTA_SAMPLES_MAX; i++, sleep_ns(&f, SECOND))
        send(&f, 5);
    assert_true(quota_rate(&f.q) > 4.9 && quota_rate(&f.q) < 5.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_sent_is_no_rate),
        cmocka_unit_test(the_first_bytes_count_as_those_of_a_window),
        cmocka_unit_test(without_a_limit_nothing_is_exceeded),
        cmocka_unit_test(what_is_old_is_forgotten),
        cmocka_unit_test(a_quota_of_nothing_allows_when_all_is_forgotten),
        cmocka_unit_test(the_mean_is_kept),
        cmocka_unit_test(who_was_silent_may_send_a_burst_and_no_more),
        cmocka_unit_test(a_total_that_nobody_looked_at_is_not_held_against_it),
        cmocka_unit_test(a_higher_limit_allows_earlier),
        cmocka_unit_test(more_samples_than_are_kept_are_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
