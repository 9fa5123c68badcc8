/* SPDX-License-Identifier: Apache-2.0 */
/* The shrinker on failures that are conditions on the list itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/attr.h"
#include "io/sim/sim.h"

struct needle {
    unsigned tries;
};

/* Fails while a 5 comes anywhere before a 9; what stands between costs. */
static int64_t has_5_then_9(void *ctx, const struct sim_list *list)
{
    struct needle *needle = ctx;
    int64_t five_at = -1;

    needle->tries++;
    for (size_t i = 0; i < list->count; i++) {
        if (list->values[i] == 5)
            five_at = (int64_t)i;
        if (five_at >= 0 && list->values[i] == 9)
            return (int64_t)i - five_at + (int64_t)sim_list_interesting(list, SIM_CHOICES);
    }
    return -1;
}

static void shrinking_leaves_what_matters(void **state)
{
    uint32_t values[200];
    struct sim_list list = {.values = values, .count = ARRAY_LEN(values)};
    struct needle needle = {0};
    unsigned tries;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        values[i] = 1 + i % 4;
    values[20] = 5;
    values[90] = 9;
    tries = sim_shrink(&list, 1000, has_5_then_9, &needle);
    assert_int_equal(tries, needle.tries);
    assert_int_equal(list.count, 2);
    assert_int_equal(values[0], 5);
    assert_int_equal(values[1], 9);
}

static void shrinking_stops_after_its_tries(void **state)
{
    uint32_t values[] = {1, 2, 5, 4, 9, 6, 7, 8};
    struct sim_list list = {.values = values, .count = ARRAY_LEN(values)};
    struct needle needle = {0};

    (void)state;
    assert_int_equal(sim_shrink(&list, 3, has_5_then_9, &needle), 3);
    assert_int_equal(needle.tries, 3);
    assert_true(has_5_then_9(&needle, &list) >= 0);
}

/* Fails while delay 7 is the second of the delays, and a user chooses at least 4. */
static int64_t has_both_kinds(void *ctx, const struct sim_list *list)
{
    int delays = 0;
    bool has_seven = false;
    bool has_user = false;

    (void)ctx;
    for (size_t i = 0; i < list->count; i++) {
        delays += list->kinds[i] == SIM_DELAY;
        has_seven |= list->kinds[i] == SIM_DELAY && delays == 2 && list->values[i] == 7;
        has_user |= list->kinds[i] == SIM_USER && list->values[i] >= 4;
    }
    return has_seven && has_user ? (int64_t)sim_list_interesting(list, SIM_CHOICES) : -1;
}

static void kinds_are_shrunk_apart(void **state)
{
    uint32_t values[] = {1, 3, 9, 2, 7, 1, 100, 6, 5, 1};
    uint8_t kinds[] = {SIM_NEXT, SIM_DELAY, SIM_USER, SIM_NEXT,  SIM_DELAY,
                       SIM_NEXT, SIM_USER,  SIM_NEXT, SIM_DELAY, SIM_NEXT};
    struct sim_list list = {.values = values, .kinds = kinds, .count = ARRAY_LEN(values)};

    (void)state;
    sim_shrink(&list, 1000, has_both_kinds, NULL);
    assert_int_equal(sim_list_interesting(&list, SIM_NEXT), 0);
    assert_int_equal(sim_list_interesting(&list, SIM_DELAY), 1);
    assert_int_equal(sim_list_interesting(&list, SIM_USER), 1);
    for (size_t i = 0; i < list.count; i++)
        if (kinds[i] == SIM_USER)
            assert_in_range(values[i], 4, 7); /* halved as far as it goes */
}

static int64_t never_fails(void *ctx, const struct sim_list *list)
{
    (void)ctx;
    (void)list;
    return -1;
}

static void what_does_not_fail_is_left_alone(void **state)
{
    uint32_t values[] = {1, 2, 3};
    struct sim_list list = {.values = values, .count = ARRAY_LEN(values)};

    (void)state;
    assert_int_equal(sim_shrink(&list, 1000, never_fails, NULL), 1);
    assert_int_equal(list.count, 3);
    assert_int_equal(sim_list_interesting(&list, SIM_CHOICES), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shrinking_leaves_what_matters),
        cmocka_unit_test(shrinking_stops_after_its_tries),
        cmocka_unit_test(kinds_are_shrunk_apart),
        cmocka_unit_test(what_does_not_fail_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
