/* SPDX-License-Identifier: Apache-2.0 */
/* Which topic names are legal, which collide, which are internal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metadata/metadata.h"

static void check(struct str name, const char *expected)
{
    const char *reason = "not set";
    enum err err = metadata_topic_name_check(name, &reason);

    assert_int_equal(err, expected ? ERR_INVALID_TOPIC_EXCEPTION : ERR_NONE);
    if (expected)
        assert_string_equal(reason, expected);
    else
        assert_null(reason);
}

static void legal_names_have_few_characters_and_a_length(void **state)
{
    static const char many[] = "a topic name may hold ASCII letters, digits, '.', '_' and '-' only";
    char longest[250];

    (void)state;
    memset(longest, 'a', sizeof(longest));
    check(STR_LIT("a"), NULL);
    check(STR_LIT("Az09._-"), NULL);
    check(STR_LIT("..."), NULL);
    check((struct str){longest, 249}, NULL);
    check((struct str){longest, 250}, "a topic name has at most 249 characters");
    check(STR_LIT(""), "a topic name must not be empty");
    check(str_null(), "a topic name must not be empty");
    check(STR_LIT("."), "a topic name must not be '.' or '..'");
    check(STR_LIT(".."), "a topic name must not be '.' or '..'");
    check(STR_LIT("a/b"), many);
    check(STR_LIT("a b"), many);
    check(STR_LIT("a\0b"), many);
    check(STR_LIT("\xc3\xa9"), many);
}

static void a_dot_and_an_underscore_collide(void **state)
{
    struct metadata_image *empty = metadata_image_new();
    struct metadata_delta d = {0};
    struct metadata_image *image;
    struct metadata_topic *topic;

    (void)state;
    metadata_delta_put_topic(&d, metadata_topic_new(STR_LIT("a.b_c"), uuid_zero(), 1));
    image = metadata_apply(empty, &d);
    topic = image->topics[0];
    assert_ptr_equal(metadata_find_collision(image, STR_LIT("a_b_c")), topic);
    assert_ptr_equal(metadata_find_collision(image, STR_LIT("a.b.c")), topic);
    assert_null(metadata_find_collision(image, STR_LIT("a.b_c")));
    assert_null(metadata_find_collision(image, STR_LIT("a-b_c")));
    assert_null(metadata_find_collision(image, STR_LIT("a_b_")));
    metadata_delta_fini(&d);
    metadata_image_put(image);
    metadata_image_put(empty);
}

static void three_names_are_internal(void **state)
{
    (void)state;
    assert_true(metadata_topic_name_is_internal(STR_LIT("__consumer_offsets")));
    assert_true(metadata_topic_name_is_internal(STR_LIT("__transaction_state")));
    assert_true(metadata_topic_name_is_internal(STR_LIT("__share_group_state")));
    assert_false(metadata_topic_name_is_internal(STR_LIT("__consumer_offset")));
    assert_false(metadata_topic_name_is_internal(STR_LIT("__mine")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legal_names_have_few_characters_and_a_length),
        cmocka_unit_test(a_dot_and_an_underscore_collide),
        cmocka_unit_test(three_names_are_internal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
