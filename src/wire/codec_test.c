/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoder and decoder by hand-written bytes: what each rule of the encoding looks like, and what
 * is refused. Random messages over all tables are in roundtrip_test.c, other people's bytes in
 * golden_test.c.
 */
#include "wire/kinds_test_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "wire/messages.h"

#define BYTES_OF(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

struct fixture {
    struct arena arena;
    struct wire_out out;
    uint8_t *copy; /* what is being decoded, at its exact size so that ASan sees an overrun */
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    arena_init(&f->arena, 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    arena_fini(&f->arena);
    wire_out_fini(&f->out);
    free(f->copy);
    free(f);
    return 0;
}

static enum err decode(struct fixture *f, const struct schema *schema, int16_t version,
                       const uint8_t *p, size_t n, void *out, size_t *used)
{
    free(f->copy);
    f->copy = xmemdup(p, n);
    return wire_decode(schema, version, (struct bytes){.p = f->copy, .n = (int32_t)n}, &f->arena,
                       out, used);
}

static void expect_decode(struct fixture *f, const struct schema *schema, int16_t version,
                          const uint8_t *p, size_t n, void *out)
{
    size_t used;

    assert_int_equal(decode(f, schema, version, p, n, out, &used), ERR_NONE);
    assert_int_equal(used, n);
}

static void expect_refusal(struct fixture *f, const struct schema *schema, int16_t version,
                           const uint8_t *p, size_t n, enum err expected)
{
    max_align_t msg[32];
    size_t used = 1;

    assert_true(schema_size(schema) <= sizeof(msg));
    assert_int_equal(decode(f, schema, version, p, n, msg, &used), expected);
    assert_int_equal(used, 0);
}

static void expect_encode(struct fixture *f, const struct schema *schema, int16_t version,
                          const void *msg, const uint8_t *p, size_t n)
{
    wire_out_reset(&f->out);
    wire_encode(schema, version, msg, &f->out);
    assert_int_equal(f->out.err, ERR_NONE);
    assert_int_equal(f->out.n, n);
    assert_memory_equal(f->out.p, p, n);
}

static void lengths_are_fixed_before_flexible_versions_and_compact_from_then_on(void **state)
{
    struct fixture *f = *state;
    struct find_coordinator_request classic, compact;

    expect_decode(f, &find_coordinator_request_schema, 1, BYTES_OF(0, 2, 'a', 'b', 1), &classic);
    assert_true(str_eq_c(classic.key, "ab"));
    assert_int_equal(classic.key_type, 1);
    expect_encode(f, &find_coordinator_request_schema, 1, &classic, BYTES_OF(0, 2, 'a', 'b', 1));
    expect_decode(f, &find_coordinator_request_schema, 4, BYTES_OF(1, 3, 3, 'a', 'b', 1, 0),
                  &compact);
    assert_int_equal(compact.coordinator_keys.n, 2);
    assert_true(str_eq_c(compact.coordinator_keys.v[0], "ab"));
    assert_int_equal(compact.coordinator_keys.v[1].n, 0);
    expect_encode(f, &find_coordinator_request_schema, 4, &compact,
                  BYTES_OF(1, 3, 3, 'a', 'b', 1, 0));
}

static void null_differs_from_empty(void **state)
{
    struct fixture *f = *state;
    struct metadata_request msg;

    expect_decode(f, &metadata_request_schema, 1, BYTES_OF(255, 255, 255, 255), &msg);
    assert_int_equal(msg.topics.n, -1);
    expect_decode(f, &metadata_request_schema, 1, BYTES_OF(0, 0, 0, 0), &msg);
    assert_int_equal(msg.topics.n, 0);
    expect_decode(f, &metadata_request_schema, 12, BYTES_OF(0, 1, 0, 0), &msg);
    assert_int_equal(msg.topics.n, -1);
    expect_decode(f, &metadata_request_schema, 12, BYTES_OF(1, 1, 0, 0), &msg);
    assert_int_equal(msg.topics.n, 0);
}

static void null_is_refused_where_the_version_has_none(void **state)
{
    struct fixture *f = *state;
    struct metadata_request metadata;
    struct find_coordinator_request find;

    expect_refusal(f, &metadata_request_schema, 0, BYTES_OF(255, 255, 255, 255), ERR_MALFORMED);
    expect_refusal(f, &find_coordinator_request_schema, 0, BYTES_OF(255, 255), ERR_MALFORMED);
    expect_refusal(f, &find_coordinator_request_schema, 3, BYTES_OF(0, 0, 0), ERR_MALFORMED);
    wire_init(&metadata_request_schema, &metadata);
    metadata.topics.n = -1;
    wire_encode(&metadata_request_schema, 0, &metadata, &f->out);
    assert_int_equal(f->out.err, ERR_INVALID_ARG);
    wire_init(&find_coordinator_request_schema, &find);
    find.key = str_null();
    wire_out_reset(&f->out);
    wire_encode(&find_coordinator_request_schema, 3, &find, &f->out);
    assert_int_equal(f->out.err, ERR_INVALID_ARG);
}

static void lengths_below_minus_one_are_refused(void **state)
{
    struct fixture *f = *state;

    expect_refusal(f, &metadata_request_schema, 1, BYTES_OF(255, 255, 255, 254), ERR_MALFORMED);
    expect_refusal(f, &init_producer_id_request_schema, 0, BYTES_OF(255, 254, 0, 0, 0, 0),
                   ERR_MALFORMED);
}

static void fields_that_a_version_lacks_have_their_default(void **state)
{
    struct fixture *f = *state;
    struct init_producer_id_request msg;

    memset(&msg, 0xee, sizeof(msg));
    expect_decode(f, &init_producer_id_request_schema, 1, BYTES_OF(255, 255, 0, 0, 0, 5), &msg);
    assert_int_equal(msg.transactional_id.n, -1);
    assert_int_equal(msg.transaction_timeout_ms, 5);
    assert_int_equal(msg.producer_id, -1);
    assert_int_equal(msg.producer_epoch, -1);
    /* And they are left out, whatever they hold. */
    msg.producer_id = 77;
    expect_encode(f, &init_producer_id_request_schema, 1, &msg, BYTES_OF(255, 255, 0, 0, 0, 5));
}

static void bytes_behind_the_message_are_left_alone(void **state)
{
    struct fixture *f = *state;
    struct describe_cluster_request msg;
    size_t used;

    assert_int_equal(
        decode(f, &describe_cluster_request_schema, 0, BYTES_OF(1, 0, 9, 9), &msg, &used),
        ERR_NONE);
    assert_int_equal(used, 2);
    assert_true(msg.include_cluster_authorized_operations);
}

static void an_empty_input_may_have_no_address(void **state)
{
    struct fixture *f = *state;
    struct api_versions_request msg;
    struct bytes none = {.p = NULL, .n = 0};
    size_t used = 1;

    assert_int_equal(wire_decode(&api_versions_request_schema, 0, none, &f->arena, &msg, &used),
                     ERR_NONE);
    assert_int_equal(used, 0);
    assert_int_equal(wire_decode(&api_versions_request_schema, 3, none, &f->arena, &msg, &used),
                     ERR_MALFORMED);
}

static void tags_at_their_default_are_not_written(void **state)
{
    struct fixture *f = *state;
    struct api_versions_response msg;

    wire_init(&api_versions_response_schema, &msg);
    expect_encode(f, &api_versions_response_schema, 3, &msg, BYTES_OF(0, 0, 1, 0, 0, 0, 0, 0));
    msg.finalized_features_epoch = 2;
    msg.zk_migration_ready = true;
    expect_encode(f, &api_versions_response_schema, 3, &msg,
                  BYTES_OF(0, 0, 1, 0, 0, 0, 0, 2, 1, 8, 0, 0, 0, 0, 0, 0, 0, 2, 3, 1, 1));
    /* Versions without tags leave them out. */
    expect_encode(f, &api_versions_response_schema, 2, &msg,
                  BYTES_OF(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

static void tagged_structs_are_compared_field_by_field(void **state)
{
    struct fixture *f = *state;
    struct produce_response_partition msg;
    const uint8_t plain[] = {0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
                             0,   0,   0,   255, 255, 255, 255, 255, 255, 255, 255,
                             255, 255, 255, 255, 255, 255, 255, 255, 1,   0};
    uint8_t expected[sizeof(plain) + 12];
    const uint8_t tags[] = {1, 0, 9, 0, 0, 0, 7, 255, 255, 255, 255, 0};

    wire_init(&produce_response_partition_schema, &msg);
    msg.current_leader.leader_id = 7;
    memcpy(expected, plain, sizeof(plain));
    memcpy(expected + sizeof(plain), tags, sizeof(tags));
    expect_encode(f, &produce_response_partition_schema, 10, &msg, expected, sizeof(expected));
    expect_decode(f, &produce_response_partition_schema, 10, expected, sizeof(expected), &msg);
    assert_int_equal(msg.current_leader.leader_id, 7);
    assert_int_equal(msg.current_leader.leader_epoch, -1);
}

static void a_long_tag_has_a_long_size(void **state)
{
    struct fixture *f = *state;
    struct kinds_child msg, back;
    char label[300];

    memset(label, 'x', sizeof(label));
    wire_init(&kinds_child_schema, &msg);
    msg.label = (struct str){.p = label, .n = sizeof(label)};
    wire_encode(&kinds_child_schema, 1, &msg, &f->out);
    /* id, one tag, tag 0, its size of 302 in two bytes, length 301 in two bytes, text. */
    assert_int_equal(f->out.n, 4 + 1 + 1 + 2 + 2 + 300);
    assert_memory_equal(f->out.p + 4, ((uint8_t[]){1, 0, 0xae, 2, 0xad, 2, 'x'}), 7);
    expect_decode(f, &kinds_child_schema, 1, f->out.p, f->out.n, &back);
    assert_true(str_eq(back.label, msg.label));
}

static void unknown_tags_are_skipped(void **state)
{
    struct fixture *f = *state;
    struct describe_cluster_request msg;

    expect_decode(f, &describe_cluster_request_schema, 0,
                  BYTES_OF(1, 2, 4, 3, 'a', 'b', 'c', 0x80, 1, 0), &msg);
    assert_true(msg.include_cluster_authorized_operations);
}

static void a_tag_that_the_version_lacks_is_an_unknown_tag(void **state)
{
    struct fixture *f = *state;
    struct fetch_request_partition msg;
    uint8_t frame[4 + 4 + 8 + 4 + 8 + 4 + 11] = {0};

    /* Tag 1 is the high watermark, but only from version 18 on. */
    memcpy(frame + 32, (uint8_t[]){1, 1, 8, 0, 0, 0, 0, 0, 0, 0, 9}, 11);
    expect_decode(f, &fetch_request_partition_schema, 17, frame, sizeof(frame), &msg);
    assert_true(msg.high_watermark == INT64_MAX);
    expect_decode(f, &fetch_request_partition_schema, 18, frame, sizeof(frame), &msg);
    assert_int_equal(msg.high_watermark, 9);
}

static void a_followers_durable_offset_is_a_far_tag(void **state)
{
    struct fixture *f = *state;
    struct fetch_request_partition msg, back;
    const uint8_t tags[] = {1, 0x84, 0x47, 8, 0, 0, 0, 0, 0, 0, 0, 0}; /* 9092, 8 bytes */

    wire_init(&fetch_request_partition_schema, &msg);
    assert_int_equal(msg.durable_offset, -1);
    wire_encode(&fetch_request_partition_schema, 16, &msg, &f->out);
    assert_int_equal(f->out.n, 32 + 1);
    wire_out_reset(&f->out);
    msg.durable_offset = 0;
    wire_encode(&fetch_request_partition_schema, 16, &msg, &f->out);
    assert_int_equal(f->out.n, 32 + sizeof(tags));
    assert_memory_equal(f->out.p + 32, tags, sizeof(tags));
    expect_decode(f, &fetch_request_partition_schema, 16, f->out.p, f->out.n, &back);
    assert_int_equal(back.durable_offset, 0);
}

static void tags_out_of_order_or_of_the_wrong_size_are_refused(void **state)
{
    struct fixture *f = *state;
    const struct schema *s = &describe_cluster_request_schema;
    const struct schema *child = &kinds_child_schema;

    expect_refusal(f, s, 0, BYTES_OF(1, 2, 4, 0, 3, 0), ERR_MALFORMED);
    expect_refusal(f, s, 0, BYTES_OF(1, 2, 4, 0, 4, 0), ERR_MALFORMED);
    expect_refusal(f, s, 0, BYTES_OF(1, 1, 4, 2, 0), ERR_MALFORMED);
    expect_refusal(f, s, 0, BYTES_OF(1, 0xff, 0xff, 0xff, 0xff, 0xf), ERR_MALFORMED);
    expect_refusal(f, s, 0, BYTES_OF(1, 0xff, 0xff, 0xff, 0xff, 0x1f), ERR_MALFORMED);
    /* The label is one byte shorter, then one longer, than the size of its tag. */
    expect_refusal(f, child, 1, BYTES_OF(0, 0, 0, 0, 1, 0, 3, 2, 'a', 'b'), ERR_MALFORMED);
    expect_refusal(f, child, 1, BYTES_OF(0, 0, 0, 0, 1, 0, 2, 3, 'a', 'b'), ERR_MALFORMED);
}

static void optional_structs_have_a_presence_byte(void **state)
{
    struct fixture *f = *state;
    const struct schema *s = &describe_topic_partitions_request_schema;
    struct describe_topic_partitions_request msg;

    expect_decode(f, s, 0, BYTES_OF(1, 0, 0, 0, 5, 255, 0), &msg);
    assert_null(msg.cursor);
    expect_encode(f, s, 0, &msg, BYTES_OF(1, 0, 0, 0, 5, 255, 0));
    expect_decode(f, s, 0, BYTES_OF(1, 0, 0, 0, 5, 1, 2, 't', 0, 0, 0, 3, 0, 0), &msg);
    assert_non_null(msg.cursor);
    assert_true(str_eq_c(msg.cursor->topic_name, "t"));
    assert_int_equal(msg.cursor->partition_index, 3);
    expect_encode(f, s, 0, &msg, BYTES_OF(1, 0, 0, 0, 5, 1, 2, 't', 0, 0, 0, 3, 0, 0));
}

static void versions_outside_the_schema_are_refused(void **state)
{
    struct fixture *f = *state;
    struct kinds msg;

    expect_refusal(f, &kinds_child_schema, -1, BYTES_OF(0), ERR_UNSUPPORTED_VERSION);
    expect_refusal(f, &find_coordinator_request_schema, 7, BYTES_OF(0, 1, 0),
                   ERR_UNSUPPORTED_VERSION);
    wire_init(&kinds_schema, &msg);
    wire_encode(&kinds_schema, 3, &msg, &f->out);
    assert_int_equal(f->out.err, ERR_UNSUPPORTED_VERSION);
}

static void counts_beyond_the_input_take_no_memory(void **state)
{
    struct fixture *f = *state;

    expect_refusal(f, &metadata_request_schema, 1, BYTES_OF(127, 255, 255, 255), ERR_MALFORMED);
    expect_refusal(f, &metadata_request_schema, 12, BYTES_OF(0xff, 0xff, 0xff, 0xff, 0xf, 0, 0, 0),
                   ERR_MALFORMED);
    expect_refusal(f, &metadata_request_schema, 1, BYTES_OF(0, 0, 0, 4, 0, 1, 'a'), ERR_MALFORMED);
    assert_int_equal(f->arena.used, 0);
}

static void memory_stays_in_proportion_to_the_input(void **state)
{
    struct fixture *f = *state;
    uint8_t frame[1000] = {0};

    /* A null id, acks, timeout, and topics: as many as bytes follow, at 48 bytes each. */
    frame[7] = 0xe0;
    frame[8] = 7;
    memset(frame + 9, 1, sizeof(frame) - 9);
    expect_refusal(f, &produce_request_schema, 9, frame, sizeof(frame), ERR_LIMIT);
    assert_int_equal(f->arena.used, 0);
}

static void a_full_arena_is_a_limit(void **state)
{
    struct fixture *f = *state;

    f->arena.limit = 8;
    expect_refusal(f, &metadata_request_schema, 1, BYTES_OF(0, 0, 0, 1, 0, 1, 'a'), ERR_LIMIT);
}

static void strings_and_bytes_are_slices_of_the_input(void **state)
{
    struct fixture *f = *state;
    struct produce_request msg;
    uint8_t frame[] = {255, 255, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0,   1,  't',
                       0,   0,   0, 1, 0, 0, 0, 5, 0, 0, 0, 2, 'x', 'y'};
    struct produce_request_partition *p;

    expect_decode(f, &produce_request_schema, 3, frame, sizeof(frame), &msg);
    assert_ptr_equal(msg.topics.v[0].name.p, f->copy + 14);
    p = &msg.topics.v[0].partitions.v[0];
    assert_int_equal(p->index, 5);
    assert_ptr_equal(p->records.b.p, f->copy + 27);
    assert_int_equal(p->records.b.n, 2);
    assert_null(p->records.ext);
    expect_encode(f, &produce_request_schema, 3, &msg, frame, sizeof(frame));
}

static void records_kept_elsewhere_leave_a_hole(void **state)
{
    struct fixture *f = *state;
    struct fetch_response_partition partitions[3];
    struct fetch_response_topic topic;
    struct fetch_response msg;
    int first, second;
    size_t at;

    for (int i = 0; i < 3; i++)
        wire_init(&fetch_response_partition_schema, &partitions[i]);
    partitions[0].records.ext = &first;
    partitions[0].records.ext_size = 1000;
    partitions[1].records.b = (struct bytes){.p = (const uint8_t *)"abc", .n = 3};
    partitions[2].records.ext = &second;
    partitions[2].records.ext_size = 5;
    wire_init(&fetch_response_topic_schema, &topic);
    topic.partitions.v = partitions;
    topic.partitions.n = 3;
    wire_init(&fetch_response_schema, &msg);
    msg.responses.v = &topic;
    msg.responses.n = 1;
    wire_encode(&fetch_response_schema, 12, &msg, &f->out);
    assert_int_equal(f->out.err, ERR_NONE);
    assert_int_equal(f->out.holes_n, 2);
    assert_ptr_equal(f->out.holes[0].ext, &first);
    assert_ptr_equal(f->out.holes[1].ext, &second);
    assert_int_equal(wire_out_size(&f->out), f->out.n + 1005);
    /* Length 1001 as a varint stands in front of the hole, the partition's tags behind it. */
    at = f->out.holes[0].at;
    assert_memory_equal(f->out.p + at - 2, ((uint8_t[]){0xe9, 7, 0}), 3);
    /* Before flexible versions the length is fixed. */
    wire_out_reset(&f->out);
    wire_encode(&fetch_response_schema, 11, &msg, &f->out);
    at = f->out.holes[0].at;
    assert_memory_equal(f->out.p + at - 4, ((uint8_t[]){0, 0, 3, 0xe8}), 4);
}

static void a_hole_of_no_bytes_is_no_hole(void **state)
{
    struct fixture *f = *state;
    struct fetch_response_partition msg;

    wire_init(&fetch_response_partition_schema, &msg);
    msg.records.ext = &msg;
    wire_encode(&fetch_response_partition_schema, 11, &msg, &f->out);
    assert_int_equal(f->out.err, ERR_NONE);
    assert_int_equal(f->out.holes_n, 0);
}

static void too_large_a_response_is_a_sticky_error(void **state)
{
    struct fixture *f = *state;
    struct fetch_response_partition msg;

    wire_init(&fetch_response_partition_schema, &msg);
    msg.records.ext = &msg;
    msg.records.ext_size = RESPONSE_BYTES_MAX;
    wire_encode(&fetch_response_partition_schema, 11, &msg, &f->out);
    assert_int_equal(f->out.err, ERR_LIMIT);
    wire_out_put(&f->out, "x", 1);
    assert_null(wire_out_extend(&f->out, 1));
    assert_int_equal(f->out.err, ERR_LIMIT);
    wire_out_reset(&f->out);
    assert_non_null(wire_out_extend(&f->out, RESPONSE_BYTES_MAX));
    assert_null(wire_out_extend(&f->out, 1));
    assert_int_equal(f->out.err, ERR_LIMIT);
}

static void a_string_that_does_not_fit_its_length_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct find_coordinator_request msg;
    char *text = xmalloc(INT16_MAX + 1);

    memset(text, 'x', INT16_MAX + 1);
    wire_init(&find_coordinator_request_schema, &msg);
    msg.key = (struct str){.p = text, .n = INT16_MAX + 1};
    wire_encode(&find_coordinator_request_schema, 3, &msg, &f->out);
    assert_int_equal(f->out.err, ERR_NONE);
    wire_encode(&find_coordinator_request_schema, 2, &msg, &f->out);
    assert_int_equal(f->out.err, ERR_INVALID_ARG);
    wire_out_reset(&f->out);
    msg.key.n--;
    wire_encode(&find_coordinator_request_schema, 2, &msg, &f->out);
    assert_int_equal(f->out.err, ERR_NONE);
    free(text);
}

static void any_byte_but_zero_is_true(void **state)
{
    struct fixture *f = *state;
    struct describe_cluster_request msg;

    expect_decode(f, &describe_cluster_request_schema, 0, BYTES_OF(200, 0), &msg);
    assert_true(msg.include_cluster_authorized_operations == true);
    expect_encode(f, &describe_cluster_request_schema, 0, &msg, BYTES_OF(1, 0));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(lengths_are_fixed_before_flexible_versions_and_compact_from_then_on),
        T(null_differs_from_empty),
        T(null_is_refused_where_the_version_has_none),
        T(lengths_below_minus_one_are_refused),
        T(fields_that_a_version_lacks_have_their_default),
        T(bytes_behind_the_message_are_left_alone),
        T(an_empty_input_may_have_no_address),
        T(tags_at_their_default_are_not_written),
        T(tagged_structs_are_compared_field_by_field),
        T(a_long_tag_has_a_long_size),
        T(unknown_tags_are_skipped),
        T(a_tag_that_the_version_lacks_is_an_unknown_tag),
        T(a_followers_durable_offset_is_a_far_tag),
        T(tags_out_of_order_or_of_the_wrong_size_are_refused),
        T(optional_structs_have_a_presence_byte),
        T(versions_outside_the_schema_are_refused),
        T(counts_beyond_the_input_take_no_memory),
        T(memory_stays_in_proportion_to_the_input),
        T(a_full_arena_is_a_limit),
        T(strings_and_bytes_are_slices_of_the_input),
        T(records_kept_elsewhere_leave_a_hole),
        T(a_hole_of_no_bytes_is_no_hole),
        T(too_large_a_response_is_a_sticky_error),
        T(a_string_that_does_not_fit_its_length_is_an_error),
        T(any_byte_but_zero_is_true),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
