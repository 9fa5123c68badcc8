/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: alignment, limits, reuse. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void memory_is_aligned_and_its_own(void **state)
{
    struct arena a;
    char *p[200];

    (void)state;
    arena_init(&a, 0);
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        p[i] = arena_alloc(&a, i);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % _Alignof(max_align_t), 0);
        memset(p[i], (int)i, i);
    }
    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        for (size_t j = 0; j < i; j++)
            assert_int_equal((unsigned char)p[i][j], i);
    arena_fini(&a);
}

/* An empty array is not a failure, whatever the arena held before. */
static void nothing_can_be_allocated(void **state)
{
    struct arena a;

    (void)state;
    arena_init(&a, 0);
    assert_non_null(arena_alloc(&a, 0));
    arena_fini(&a);
    arena_init(&a, 1);
    assert_non_null(arena_calloc(&a, 0, 8));
    arena_fini(&a);
}

static void a_limit_holds_until_the_reset(void **state)
{
    struct arena a;

    (void)state;
    arena_init(&a, 4096);
    assert_null(arena_alloc(&a, 4097));
    assert_non_null(arena_alloc(&a, 4096));
    assert_null(arena_alloc(&a, 1));
    arena_reset(&a);
    assert_non_null(arena_alloc(&a, 4096));
    arena_reset(&a);
    assert_null(arena_alloc(&a, SIZE_MAX));
    /* The product wraps to eight. */
    assert_null(arena_calloc(&a, SIZE_MAX / 8 + 2, 8));
    arena_fini(&a);
}

static void a_reset_keeps_the_first_block(void **state)
{
    struct arena a;
    void *first;

    (void)state;
    arena_init(&a, 0);
    first = arena_alloc(&a, 8);
    for (int i = 0; i < 10; i++)
        assert_non_null(arena_alloc(&a, 100000));
    assert_true(a.used >= 1000000);
    arena_reset(&a);
    assert_int_equal(a.used, 0);
    assert_ptr_equal(arena_alloc(&a, 8), first);
    arena_fini(&a);
}

static void zeroed_memory_is_zero_also_after_a_reset(void **state)
{
    struct arena a;
    char *p;

    (void)state;
    arena_init(&a, 0);
    memset(arena_alloc(&a, 64), 0xff, 64);
    arena_reset(&a);
    p = arena_calloc(&a, 8, 8);
    for (int i = 0; i < 64; i++)
        assert_int_equal(p[i], 0);
    arena_fini(&a);
}

static void strings_are_copied(void **state)
{
    struct arena a;
    struct str s;

    (void)state;
    arena_init(&a, 0);
    s = arena_str(&a, STR_LIT("text"));
    assert_true(str_eq_c(s, "text"));
    assert_int_equal(s.p[s.n], '\0');
    assert_true(str_is_null(arena_str(&a, str_null())));
    s = arena_printf(&a, "%s-%d", "n", 7);
    assert_true(str_eq_c(s, "n-7"));
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_its_own),
        cmocka_unit_test(nothing_can_be_allocated),
        cmocka_unit_test(a_limit_holds_until_the_reset),
        cmocka_unit_test(a_reset_keeps_the_first_block),
        cmocka_unit_test(zeroed_memory_is_zero_also_after_a_reset),
        cmocka_unit_test(strings_are_copied),
    };

    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
