/* SPDX-License-Identifier: Apache-2.0 */
/* Headers by hand-written bytes, above all the irregular ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/header.h"
#include "wire/messages.h"

#define BYTES_OF(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static enum err decode_request(const uint8_t *p, size_t n, struct request_header *out,
                               size_t *body_at)
{
    static uint8_t *copy; /* kept until the next call: the client id is a slice of it */
    enum err err;

    free(copy);
    copy = xmemdup(p, n);
    err = wire_request_header_decode((struct bytes){.p = copy, .n = (int32_t)n}, out, body_at);
    if (err == ERR_MALFORMED) {
        free(copy);
        copy = NULL;
    }
    return err;
}

static void expect_request(const uint8_t *p, size_t n, size_t body_at_expected,
                           const char *client_id)
{
    struct wire_out out = {0};
    struct request_header header;
    size_t body_at;

    assert_int_equal(decode_request(p, n, &header, &body_at), ERR_NONE);
    assert_int_equal(body_at, body_at_expected);
    assert_true(str_eq(header.client_id, str_of(client_id)));
    assert_int_equal(header.correlation_id, 0x01020304);
    wire_request_header_encode(&header, &out);
    assert_int_equal(out.n, body_at);
    assert_memory_equal(out.p, p, body_at);
    wire_out_fini(&out);
}

static void requests_carry_the_client_id_with_a_short_length_in_all_versions(void **state)
{
    (void)state;
    expect_request(BYTES_OF(0, 3, 0, 1, 1, 2, 3, 4, 0, 2, 'm', 'e', 9), 12, "me");
    expect_request(BYTES_OF(0, 3, 0, 1, 1, 2, 3, 4, 255, 255), 10, NULL);
    /* Flexible: the same, and tagged fields behind it. */
    expect_request(BYTES_OF(0, 3, 0, 9, 1, 2, 3, 4, 0, 2, 'm', 'e', 0, 9), 13, "me");
    expect_request(BYTES_OF(0, 18, 0, 3, 1, 2, 3, 4, 0, 0, 0), 11, "");
}

static void tags_of_a_request_header_are_skipped(void **state)
{
    struct request_header header;
    size_t body_at;

    (void)state;
    assert_int_equal(decode_request(BYTES_OF(0, 3, 0, 9, 1, 2, 3, 4, 0, 0, 2, 0, 1, 7, 5, 0, 9),
                                    &header, &body_at),
                     ERR_NONE);
    assert_int_equal(body_at, 16);
    assert_int_equal(
        decode_request(BYTES_OF(0, 3, 0, 9, 1, 2, 3, 4, 0, 0, 2, 5, 0, 5, 0), &header, &body_at),
        ERR_MALFORMED);
    assert_int_equal(
        decode_request(BYTES_OF(0, 3, 0, 9, 1, 2, 3, 4, 0, 0, 1, 5, 2, 0), &header, &body_at),
        ERR_MALFORMED);
}

static void unknown_keys_and_versions_leave_enough_for_an_answer(void **state)
{
    struct request_header header;
    size_t body_at;

    (void)state;
    assert_int_equal(decode_request(BYTES_OF(0, 18, 0, 99, 1, 2, 3, 4), &header, &body_at),
                     ERR_UNSUPPORTED_VERSION);
    assert_int_equal(header.api_key, API_API_VERSIONS);
    assert_int_equal(header.api_version, 99);
    assert_int_equal(header.correlation_id, 0x01020304);
    assert_ptr_equal(header.api, api_find(API_API_VERSIONS));
    assert_int_equal(body_at, 0);
    assert_int_equal(decode_request(BYTES_OF(3, 0xe7, 0, 0, 1, 2, 3, 4), &header, &body_at),
                     ERR_UNSUPPORTED_VERSION);
    assert_null(header.api);
    assert_int_equal(header.api_key, 999);
}

static void versions_that_only_the_schema_knows_are_refused_but_readable(void **state)
{
    struct request_header header;
    size_t body_at;

    (void)state;
    assert_int_equal(decode_request(BYTES_OF(0, 1, 0, 3, 1, 2, 3, 4, 0, 1, 'c'), &header, &body_at),
                     ERR_UNSUPPORTED_VERSION);
    assert_int_equal(body_at, 11);
    assert_true(str_eq_c(header.client_id, "c"));
    assert_int_equal(decode_request(BYTES_OF(0, 22, 0, 6, 1, 2, 3, 4, 0, 0, 0), &header, &body_at),
                     ERR_UNSUPPORTED_VERSION);
}

static void what_we_do_not_serve_is_refused_but_readable(void **state)
{
    struct request_header header;
    size_t body_at;

    (void)state;
    assert_int_equal(
        decode_request(BYTES_OF(0, 67, 0, 0, 1, 2, 3, 4, 0, 1, '1', 0), &header, &body_at),
        ERR_UNSUPPORTED_VERSION);
    assert_int_equal(body_at, 12);
    assert_ptr_equal(header.api, api_find(API_ALLOCATE_PRODUCER_IDS));
    assert_int_equal(
        decode_request(BYTES_OF(0, 67, 0, 1, 1, 2, 3, 4, 0, 1, '1', 0), &header, &body_at),
        ERR_UNSUPPORTED_VERSION);
    assert_int_equal(body_at, 0);
}

static void the_first_controlled_shutdown_has_no_client_id(void **state)
{
    const struct request_header header = {.api_key = API_CONTROLLED_SHUTDOWN,
                                          .correlation_id = 0x01020304};
    struct request_header read;
    struct wire_out out = {0};
    size_t body_at;

    (void)state;
    wire_request_header_encode(&header, &out);
    assert_int_equal(out.n, 8);
    assert_memory_equal(out.p, "\0\7\0\0\1\2\3\4", 8);
    assert_int_equal(decode_request(out.p, out.n, &read, &body_at), ERR_UNSUPPORTED_VERSION);
    assert_int_equal(body_at, 8);
    assert_true(str_is_null(read.client_id));
    /* The next version is like all others. */
    assert_int_equal(decode_request(BYTES_OF(0, 7, 0, 1, 1, 2, 3, 4, 0, 1, '1'), &read, &body_at),
                     ERR_UNSUPPORTED_VERSION);
    assert_int_equal(body_at, 11);
    wire_out_fini(&out);
}

static void short_frames_are_malformed(void **state)
{
    const uint8_t frame[] = {0, 3, 0, 9, 1, 2, 3, 4, 0, 2, 'm', 'e', 1, 0, 1, 7};
    struct request_header header;
    size_t body_at;

    (void)state;
    for (size_t n = 0; n < sizeof(frame); n++) {
        assert_int_equal(decode_request(frame, n, &header, &body_at), ERR_MALFORMED);
        assert_int_equal(body_at, 0);
    }
    assert_int_equal(decode_request(frame, sizeof(frame), &header, &body_at), ERR_NONE);
    assert_int_equal(decode_request(BYTES_OF(0, 3, 0, 1, 1, 2, 3, 4, 255, 254), &header, &body_at),
                     ERR_MALFORMED);
}

static void expect_response(int16_t key, int16_t version, const uint8_t *p, size_t n)
{
    struct wire_out out = {0};
    int32_t correlation_id;
    size_t body_at;
    uint8_t *copy = xmemdup(p, n);

    wire_response_header_encode(key, version, 7, &out);
    assert_int_equal(out.n, n);
    assert_memory_equal(out.p, p, n);
    assert_int_equal(wire_response_header_decode((struct bytes){.p = copy, .n = (int32_t)n}, key,
                                                 version, &correlation_id, &body_at),
                     ERR_NONE);
    assert_int_equal(correlation_id, 7);
    assert_int_equal(body_at, n);
    /* One byte less is malformed. */
    assert_int_equal(wire_response_header_decode((struct bytes){.p = copy, .n = (int32_t)n - 1},
                                                 key, version, &correlation_id, &body_at),
                     ERR_MALFORMED);
    free(copy);
    wire_out_fini(&out);
}

static void responses_have_tags_from_the_flexible_versions_on(void **state)
{
    (void)state;
    expect_response(API_METADATA, 8, BYTES_OF(0, 0, 0, 7));
    expect_response(API_METADATA, 9, BYTES_OF(0, 0, 0, 7, 0));
    expect_response(API_DESCRIBE_CLUSTER, 0, BYTES_OF(0, 0, 0, 7, 0));
}

static void api_versions_is_always_answered_with_the_oldest_header(void **state)
{
    (void)state;
    for (int16_t version = 0; version <= 5; version++)
        expect_response(API_API_VERSIONS, version, BYTES_OF(0, 0, 0, 7));
}

static void the_size_of_a_frame_counts_its_holes(void **state)
{
    struct wire_out out = {0};
    struct produce_request_partition msg;
    uint64_t size;

    (void)state;
    wire_init(&produce_request_partition_schema, &msg);
    msg.records.ext = &msg;
    msg.records.ext_size = 70000;
    wire_frame_begin(&out);
    wire_response_header_encode(API_PRODUCE, 3, 7, &out);
    wire_encode(&produce_request_partition_schema, 3, &msg, &out);
    wire_frame_end(&out);
    assert_int_equal(out.err, ERR_NONE);
    size = wire_out_size(&out);
    assert_int_equal(get_u32(out.p), size - FRAME_SIZE_BYTES);
    assert_int_equal(size, out.n + 70000);
    wire_out_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_carry_the_client_id_with_a_short_length_in_all_versions),
        cmocka_unit_test(tags_of_a_request_header_are_skipped),
        cmocka_unit_test(unknown_keys_and_versions_leave_enough_for_an_answer),
        cmocka_unit_test(versions_that_only_the_schema_knows_are_refused_but_readable),
        cmocka_unit_test(what_we_do_not_serve_is_refused_but_readable),
        cmocka_unit_test(the_first_controlled_shutdown_has_no_client_id),
        cmocka_unit_test(short_frames_are_malformed),
        cmocka_unit_test(responses_have_tags_from_the_flexible_versions_on),
        cmocka_unit_test(api_versions_is_always_answered_with_the_oldest_header),
        cmocka_unit_test(the_size_of_a_frame_counts_its_holes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
