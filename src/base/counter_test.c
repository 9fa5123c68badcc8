/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters, and that each latency is in the one class that it belongs to.
 */
#include "base/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_counter_adds_up(void **state)
{
    struct counter c = {0};

    (void)state;
    counter_add(&c, 3);
    counter_add(&c, -1);
    assert_int_equal(counter_read(&c), 2);
    counter_set(&c, 7);
    assert_int_equal(counter_read(&c), 7);
}

static void bounds_of_latencies_rise_and_end_with_none(void **state)
{
    (void)state;
    for (int i = 1; i < LATENCY_CLASSES; i++)
        assert_true(latency_bound_ns(i) > latency_bound_ns(i - 1));
    assert_true(latency_bound_ns(LATENCY_CLASSES - 1) == INT64_MAX);
}

static void check_class(int64_t ns, int expected)
{
    struct latency l = {0};
    struct latency_figures f = {0};

    latency_note(&l, ns);
    latency_add_to(&l, &f);
    assert_int_equal(f.count, 1);
    assert_int_equal(f.sum_ns, ns < 0 ? 0 : ns);
    for (int i = 0; i < LATENCY_CLASSES; i++)
        assert_int_equal(f.classes[i], i == expected);
}

static void a_latency_is_in_the_class_whose_bound_it_does_not_pass(void **state)
{
    (void)state;
    check_class(-5, 0);
    check_class(0, 0);
    for (int i = 0; i < LATENCY_CLASSES - 1; i++) {
        check_class(latency_bound_ns(i), i);
        check_class(latency_bound_ns(i) + 1, i + 1);
    }
    check_class(INT64_MAX, LATENCY_CLASSES - 1);
}

static void figures_of_several_latencies_add_up(void **state)
{
    struct latency a = {0};
    struct latency b = {0};
    struct latency_figures f = {0};

    (void)state;
    latency_note(&a, 1);
    latency_note(&b, 2);
    latency_note(&b, 20000000000);
    latency_add_to(&a, &f);
    latency_add_to(&b, &f);
    assert_int_equal(f.count, 3);
    assert_int_equal(f.classes[0], 2);
    assert_int_equal(f.classes[LATENCY_CLASSES - 1], 1);
    assert_int_equal(f.sum_ns, 20000000003);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_counter_adds_up),
        cmocka_unit_test(bounds_of_latencies_rise_and_end_with_none),
        cmocka_unit_test(a_latency_is_in_the_class_whose_bound_it_does_not_pass),
        cmocka_unit_test(figures_of_several_latencies_add_up),
    };

    return cmocka_run_group_tests_name("counter", tests, NULL, NULL);
}
