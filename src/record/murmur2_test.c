/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kafka's hash on keys whose values every compatible client agrees on, one for each length of the
 * tail, and the partition that follows from it.
 */
#include "record/murmur2.h"
#include "record/testing.h"

static void test_known_values(void **state)
{
    static const struct {
        const char *key;
        int32_t hash;
    } known[] = {
        {"21", -973932308},
        {"foobar", -790332482},
        {"a-little-bit-long-string", -985981536},
        {"a-little-bit-longer-string", -1486304829},
        {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
        {"abc", 479470107},
        {"", 275646681},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        assert_int_equal((int32_t)murmur2(bytes_of(known[i].key)), known[i].hash);
}

static void test_partition_is_never_negative(void **state)
{
    (void)state;
    assert_int_equal(murmur2_partition(bytes_of("21"), 1), 0);
    /* -973932308 without its sign bit is 1173551340. */
    assert_int_equal(murmur2_partition(bytes_of("21"), 1000), 340);
    assert_int_equal(murmur2_partition(bytes_of(""), 1000), 681);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_partition_is_never_negative),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
