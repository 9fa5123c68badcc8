/* SPDX-License-Identifier: Apache-2.0 */
/* Slices, and variable-length integers at their edges. */
#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void null_and_empty_are_different(void **state)
{
    (void)state;
    assert_false(str_eq(str_null(), str_of("")));
    assert_true(str_eq(str_null(), str_of(NULL)));
    assert_true(str_is_null(str_of(NULL)));
    assert_true(str_cmp(str_null(), str_of("")) < 0);
    assert_null(str_dup(str_null()));
    assert_int_equal(bytes_null().n, -1);
}

static void slices_compare_by_bytes(void **state)
{
    char *copy = str_dup(STR_LIT("abc"));

    (void)state;
    assert_true(str_eq_c(STR_LIT("abc"), copy));
    assert_false(str_eq_c(STR_LIT("abc"), "abd"));
    assert_false(str_eq_c(STR_LIT("abc"), "ab"));
    assert_true(str_cmp(STR_LIT("ab"), STR_LIT("abc")) < 0);
    assert_true(str_cmp(STR_LIT("b"), STR_LIT("abc")) > 0);
    assert_true(str_cmp(STR_LIT("\xff"), STR_LIT("a")) > 0);
    assert_int_equal(str_cmp(STR_LIT("abc"), str_of(copy)), 0);
    assert_true(str_starts_with(STR_LIT("abc"), STR_LIT("ab")));
    assert_true(str_starts_with(STR_LIT("abc"), STR_LIT("")));
    assert_false(str_starts_with(STR_LIT("ab"), STR_LIT("abc")));
    assert_false(str_starts_with(str_null(), STR_LIT("")));
    free(copy);
}

static void decimals_are_parsed_whole_or_refused(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
        enum err err;
    } rows[] = {
        {"0", 0, ERR_NONE},
        {"-1", -1, ERR_NONE},
        {"+17", 17, ERR_NONE},
        {"9223372036854775807", INT64_MAX, ERR_NONE},
        {"-9223372036854775808", INT64_MIN, ERR_NONE},
        {"9223372036854775808", 0, ERR_LIMIT},
        {"-9223372036854775809", 0, ERR_LIMIT},
        {"99999999999999999999", 0, ERR_LIMIT},
        {"", 0, ERR_MALFORMED},
        {"-", 0, ERR_MALFORMED},
        {"1 ", 0, ERR_MALFORMED},
        {" 1", 0, ERR_MALFORMED},
        {"--1", 0, ERR_MALFORMED},
        {"0x1", 0, ERR_MALFORMED},
        {NULL, 0, ERR_MALFORMED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t value = 99;

        assert_int_equal(str_to_i64(str_of(rows[i].text), &value), rows[i].err);
        assert_int_equal(value, rows[i].value);
    }
}

static void integers_are_big_endian_at_any_alignment(void **state)
{
    uint8_t b[16] = {0};

    (void)state;
    put_u16(b + 1, 0x0102);
    put_u32(b + 3, 0x03040506);
    put_u64(b + 7, 0x0708090a0b0c0d0e);
    for (uint8_t i = 1; i < 15; i++)
        assert_int_equal(b[i], i);
    assert_int_equal(get_u16(b + 1), 0x0102);
    assert_int_equal(get_u32(b + 3), 0x03040506);
    assert_int_equal(get_u64(b + 7), 0x0708090a0b0c0d0e);
    put_i16(b, -2);
    assert_int_equal(get_i16(b), -2);
    put_i32(b, INT32_MIN);
    assert_int_equal(get_i32(b), INT32_MIN);
    put_i64(b, -3);
    assert_int_equal(get_i64(b), -3);
}

static const int64_t edges[] = {
    0,         1,         -1,   63,    64,    -64,       -65,       127,
    128,       8191,      8192, 16383, 16384, INT32_MAX, INT32_MIN, (int64_t)INT32_MAX + 1,
    INT64_MAX, INT64_MIN,
};

static void varlongs_survive_the_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        uint8_t b[VARLONG_BYTES_MAX];
        int n = varlong_put(b, edges[i]);
        int64_t out;

        assert_in_range(n, 1, VARLONG_BYTES_MAX);
        assert_int_equal(n, varlong_size(edges[i]));
        assert_int_equal(varlong_get(b, b + n, &out), n);
        assert_int_equal(out, edges[i]);
        for (int cut = 0; cut < n; cut++)
            assert_int_equal(varlong_get(b, b + cut, &out), 0);
    }
}

static void varints_survive_the_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        int32_t value = (int32_t)edges[i];
        uint8_t b[VARINT_BYTES_MAX];
        int n = varint_put(b, value);
        uint32_t u;
        int32_t v;

        assert_in_range(n, 1, VARINT_BYTES_MAX);
        assert_int_equal(n, varint_size(value));
        assert_int_equal(varint_get(b, b + n, &v), n);
        assert_int_equal(v, value);
        n = uvarint_put(b, (uint32_t)value);
        assert_int_equal(n, uvarint_size((uint32_t)value));
        assert_int_equal(uvarint_get(b, b + n, &u), n);
        assert_int_equal(u, (uint32_t)value);
    }
}

static void varints_look_as_the_protocol_says(void **state)
{
    uint8_t b[VARINT_BYTES_MAX];

    (void)state;
    /* Zig-zag: 0, -1, 1, -2 are 0, 1, 2, 3. */
    assert_int_equal(varint_put(b, -2), 1);
    assert_int_equal(b[0], 3);
    assert_int_equal(uvarint_put(b, 300), 2);
    assert_int_equal(b[0], 0xac);
    assert_int_equal(b[1], 0x02);
}

static void a_varint_that_does_not_fit_is_refused(void **state)
{
    const uint8_t max32[] = {0xff, 0xff, 0xff, 0xff, 0x0f};
    const uint8_t over32[] = {0xff, 0xff, 0xff, 0xff, 0x1f};
    const uint8_t six[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    const uint8_t over64[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    uint32_t u;
    int32_t v;
    int64_t w;

    (void)state;
    assert_int_equal(uvarint_get(max32, max32 + 5, &u), 5);
    assert_int_equal(u, UINT32_MAX);
    assert_int_equal(uvarint_get(over32, over32 + 5, &u), 0);
    assert_int_equal(varint_get(over32, over32 + 5, &v), 0);
    assert_int_equal(uvarint_get(six, six + 6, &u), 0);
    assert_int_equal(varlong_get(over64, over64 + 10, &w), 0);
    assert_int_equal(uvarint_get(max32, max32, &u), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_and_empty_are_different),
        cmocka_unit_test(slices_compare_by_bytes),
        cmocka_unit_test(decimals_are_parsed_whole_or_refused),
        cmocka_unit_test(integers_are_big_endian_at_any_alignment),
        cmocka_unit_test(varlongs_survive_the_round_trip),
        cmocka_unit_test(varints_survive_the_round_trip),
        cmocka_unit_test(varints_look_as_the_protocol_says),
        cmocka_unit_test(a_varint_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
