/* SPDX-License-Identifier: Apache-2.0 */
/* Choices: from a seed, from a list, beyond its end; and the shrinker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/attr.h"
#include "io/sim/sim.h"

static void a_seed_repeats_its_choices(void **state)
{
    struct sim_world *a = sim_world_new(7, NULL);
    struct sim_world *b = sim_world_new(7, NULL);
    struct sim_world *c = sim_world_new(8, NULL);
    int different = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        uint32_t x = sim_choose(a, SIM_USER, 1000);

        assert_in_range(x, 0, 999);
        assert_int_equal(x, sim_choose(b, SIM_USER, 1000));
        different += x != sim_choose(c, SIM_USER, 1000);
    }
    assert_true(different > 90);
    sim_world_free(a);
    sim_world_free(b);
    sim_world_free(c);
}

static void only_real_choices_are_recorded(void **state)
{
    struct sim_world *w = sim_world_new(1, NULL);
    size_t n;

    (void)state;
    assert_int_equal(sim_choose(w, SIM_USER, 1), 0);
    assert_false(sim_chance(w, SIM_USER, 0));
    sim_choices(w, &n);
    assert_int_equal(n, 0);
    assert_true(sim_chance(w, SIM_USER, 1000000));
    assert_int_equal(sim_choices(w, &n)[0], 1);
    assert_int_equal(n, 1);
    sim_world_free(w);
}

static void a_list_is_taken_and_then_zeros(void **state)
{
    const uint32_t list[] = {3, 1, 99};
    struct sim_options options = {.choices = list, .choice_count = 3, .is_replay = true};
    struct sim_world *w = sim_world_new(1, &options);

    (void)state;
    assert_int_equal(sim_choose(w, SIM_USER, 10), 3);
    assert_true(sim_chance(w, SIM_USER, 5));
    assert_int_equal(sim_choose(w, SIM_USER, 10), 0); /* 99 is not one of ten. */
    for (int i = 0; i < 10; i++)
        assert_int_equal(sim_choose(w, SIM_USER, 10), 0);
    sim_world_free(w);
}

struct needle {
    unsigned tries;
};

/* Fails while a 5 comes anywhere before a 9. */
static bool has_5_then_9(void *ctx, const uint32_t *choices, size_t count)
{
    struct needle *needle = ctx;
    bool five = false;

    needle->tries++;
    for (size_t i = 0; i < count; i++) {
        five = five || choices[i] == 5;
        if (five && choices[i] == 9)
            return true;
    }
    return false;
}

static void shrinking_leaves_what_matters(void **state)
{
    uint32_t list[200];
    struct needle needle = {0};
    size_t n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        list[i] = 1 + i % 4;
    list[20] = 5;
    list[90] = 9;
    n = sim_shrink(list, ARRAY_LEN(list), 1000, has_5_then_9, &needle);
    assert_int_equal(n, 91);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(list[i], i == 20 ? 5 : i == 90 ? 9 : 0);
}

static void shrinking_stops_after_its_tries(void **state)
{
    uint32_t list[] = {1, 2, 5, 4, 9, 6, 7, 8};
    struct needle needle = {0};
    size_t n = sim_shrink(list, ARRAY_LEN(list), 3, has_5_then_9, &needle);

    (void)state;
    assert_int_equal(needle.tries, 3);
    assert_true(has_5_then_9(&needle, list, n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_repeats_its_choices),
        cmocka_unit_test(only_real_choices_are_recorded),
        cmocka_unit_test(a_list_is_taken_and_then_zeros),
        cmocka_unit_test(shrinking_leaves_what_matters),
        cmocka_unit_test(shrinking_stops_after_its_tries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
