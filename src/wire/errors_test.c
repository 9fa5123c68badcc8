/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors of a response are found at every depth, and nothing else is taken for one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/messages.h"

static void note(void *ctx, int16_t code)
{
    char *text = ctx;
    size_t n = strlen(text);

    snprintf(text + n, 64 - n, "%d ", code);
}

static void errors_are_found_at_every_depth(void **state)
{
    struct metadata_response_partition partitions[2] = {{.leader_id = 9}, {.error_code = 5}};
    struct metadata_response_topic topics[2] = {{.error_code = 3}, {.error_code = 0}};
    struct metadata_response response;
    char text[64] = "";

    (void)state;
    wire_init(&metadata_response_schema, &response);
    topics[1].partitions.v = partitions;
    topics[1].partitions.n = 2;
    topics[0].partitions.n = -1;
    response.topics.v = topics;
    response.topics.n = 2;
    response.error_code = 129;
    wire_each_error(&metadata_response_schema, &response, note, text);
    assert_string_equal(text, "3 5 129 ");
}

static void a_response_without_errors_has_none(void **state)
{
    struct metadata_response response;
    char text[64] = "";

    (void)state;
    wire_init(&metadata_response_schema, &response);
    wire_each_error(&metadata_response_schema, &response, note, text);
    assert_string_equal(text, "");
}

static void other_numbers_are_no_errors(void **state)
{
    struct api_versions_response_api_key api = {.api_key = 3, .max_version = 12};
    struct api_versions_response response;
    char text[64] = "";

    (void)state;
    wire_init(&api_versions_response_schema, &response);
    response.api_keys.v = &api;
    response.api_keys.n = 1;
    response.error_code = 35;
    wire_each_error(&api_versions_response_schema, &response, note, text);
    assert_string_equal(text, "35 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_found_at_every_depth),
        cmocka_unit_test(a_response_without_errors_has_none),
        cmocka_unit_test(other_numbers_are_no_errors),
    };

    return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
