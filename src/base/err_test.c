/* SPDX-License-Identifier: Apache-2.0 */
/* The table of errors: what must hold of every row, and a few rows by name. */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
    int number;
    int wire;
    bool retriable;
} rows[] = {
#define ERR(name, number, retriable, wire, text) {number, wire, retriable},
#include "base/err.def"
#undef ERR
};

static void numbers_are_unique_and_names_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum err err = (enum err)rows[i].number;

        assert_string_not_equal(err_name(err), "?");
        assert_true(err_text(err)[0] != '\0');
        assert_int_equal(err_is_retriable(err), rows[i].retriable);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(rows[j].number, rows[i].number);
            assert_string_not_equal(err_name(err), err_name((enum err)rows[j].number));
        }
    }
}

static void every_error_has_a_code_that_clients_know(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum err err = (enum err)rows[i].number;
        int16_t wire = err_wire(err);

        assert_true(wire < 1000);
        assert_int_equal(err_from_wire(wire), wire);
        if (rows[i].number < 1000)
            assert_int_equal(wire, rows[i].number);
    }
}

/* The protocol has no gap from -1 to its newest code. */
static void kafkas_codes_are_complete(void **state)
{
    (void)state;
    for (int code = -1; code <= 129; code++)
        assert_string_not_equal(err_name((enum err)code), "?");
}

static void known_errors_are_what_the_protocol_says(void **state)
{
    (void)state;
    assert_int_equal(ERR_NONE, 0);
    assert_int_equal(ERR_NOT_LEADER_OR_FOLLOWER, 6);
    assert_true(err_is_retriable(ERR_NOT_LEADER_OR_FOLLOWER));
    assert_false(err_is_retriable(ERR_MESSAGE_TOO_LARGE));
    assert_string_equal(err_name(ERR_UNKNOWN_TOPIC_OR_PARTITION), "UNKNOWN_TOPIC_OR_PARTITION");
    assert_int_equal(err_wire(ERR_IO), ERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(err_wire(ERR_NO_SPACE), ERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(err_wire(ERR_CORRUPT), ERR_CORRUPT_MESSAGE);
}

static void unknown_numbers_are_an_unknown_error(void **state)
{
    (void)state;
    assert_int_equal(err_from_wire(999), ERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(err_from_wire(1000), ERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(err_wire((enum err)5000), ERR_UNKNOWN_SERVER_ERROR);
    assert_string_equal(err_name((enum err)5000), "?");
    assert_false(err_is_retriable((enum err)5000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_unique_and_names_are_found),
        cmocka_unit_test(every_error_has_a_code_that_clients_know),
        cmocka_unit_test(kafkas_codes_are_complete),
        cmocka_unit_test(known_errors_are_what_the_protocol_says),
        cmocka_unit_test(unknown_numbers_are_an_unknown_error),
    };

    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
