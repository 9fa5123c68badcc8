/* SPDX-License-Identifier: Apache-2.0 */
/* Choices: from a seed, from a list, beyond its end. */
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

static void a_list_with_kinds_is_taken_apart(void **state)
{
    const uint32_t list[] = {3, 1, 4, 5};
    const uint8_t kinds[] = {SIM_USER, SIM_DELAY, SIM_USER, SIM_RESET};
    struct sim_options options = {
        .choices = list, .choice_kinds = kinds, .choice_count = 4, .is_replay = true};
    struct sim_world *w = sim_world_new(1, &options);
    size_t n;

    (void)state;
    assert_int_equal(sim_choose(w, SIM_DELAY, 10), 1);
    assert_int_equal(sim_choose(w, SIM_DELAY, 10), 0);
    assert_int_equal(sim_choose(w, SIM_USER, 10), 3);
    assert_int_equal(sim_choose(w, SIM_NEXT, 10), 0);
    assert_int_equal(sim_choose(w, SIM_USER, 10), 4);
    assert_int_equal(sim_choose(w, SIM_USER, 10), 0);
    assert_int_equal(sim_choose(w, SIM_RESET, 10), 5);
    sim_choices(w, &n);
    assert_int_equal(n, 7);
    assert_int_equal(sim_choice_kinds(w)[3], SIM_NEXT);
    sim_world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_repeats_its_choices),
        cmocka_unit_test(only_real_choices_are_recorded),
        cmocka_unit_test(a_list_is_taken_and_then_zeros),
        cmocka_unit_test(a_list_with_kinds_is_taken_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
