/* SPDX-License-Identifier: Apache-2.0 */
/* A growable run of bytes: what was put in stays, room is where it is said to be. */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_growth_keeps_what_is_there(void **state)
{
    struct buf b = {0};
    int growths = 0;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        size_t cap = b.cap;

        *buf_extend(&b, 1) = (uint8_t)i;
        growths += b.cap != cap;
    }
    assert_true(growths < 10);
    assert_int_equal(b.n, 10000);
    assert_true(b.cap >= b.n && b.cap < 4 * b.n);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(b.p[i], (uint8_t)i);
    buf_fini(&b);
    assert_null(b.p);
}

static void test_reserve_leaves_the_length(void **state)
{
    struct buf b;
    uint8_t *room;

    (void)state;
    buf_init(&b);
    assert_non_null(buf_reserve(&b, 0));
    buf_append(&b, "abc", 3);
    room = buf_reserve(&b, 100000);
    assert_int_equal(b.n, 3);
    assert_ptr_equal(room, b.p + 3);
    room[99999] = 1;
    buf_fini(&b);
}

static void test_reset_keeps_the_memory(void **state)
{
    struct buf b = {0};
    size_t cap;

    (void)state;
    buf_append(&b, "abc", 3);
    cap = b.cap;
    buf_reset(&b);
    assert_int_equal(b.n, 0);
    assert_int_equal(b.cap, cap);
    buf_append(&b, NULL, 0);
    buf_append(&b, "xyz", 3);
    assert_memory_equal(buf_bytes(&b, 1).p, "yz", 2);
    assert_int_equal(buf_bytes(&b, 1).n, 2);
    assert_int_equal(buf_bytes(&b, 3).n, 0);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth_keeps_what_is_there),
        cmocka_unit_test(test_reserve_leaves_the_length),
        cmocka_unit_test(test_reset_keeps_the_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
