/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C against the values of RFC 3720 (B.4) and the usual check string, and against a bitwise
 * implementation for every length and alignment that the fast code treats differently.
 */
#include "record/testing.h"

static uint32_t bitwise(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void test_known_values(void **state)
{
    uint8_t bytes[32] = {0};

    (void)state;
    assert_int_equal(crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(crc32c("", 0), 0);
    assert_int_equal(crc32c(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, 32);
    assert_int_equal(crc32c(bytes, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(crc32c(bytes, 32), 0x46dd794eu);
}

static void test_any_length_and_alignment(void **state)
{
    uint8_t bytes[600];
    struct rng rng = rng_seeded(1);

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)rng_u64(&rng);
    for (size_t n = 0; n <= 560; n++)
        assert_int_equal(crc32c(bytes + n % 17, n), bitwise(bytes + n % 17, n));
}

static void test_extend_equals_the_whole(void **state)
{
    uint8_t bytes[300];
    struct rng rng = rng_seeded(2);

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)rng_u64(&rng);
    for (size_t cut = 0; cut <= sizeof(bytes); cut++)
        assert_int_equal(crc32c_extend(crc32c(bytes, cut), bytes + cut, sizeof(bytes) - cut),
                         crc32c(bytes, sizeof(bytes)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_any_length_and_alignment),
        cmocka_unit_test(test_extend_equals_the_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
