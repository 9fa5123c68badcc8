/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as text: every kind, what is left out, what is escaped, and how a line is cut. */
#include "wire/kinds_test_int.h"

#include <string.h>

#include "wire/messages.h"
#include "wire/print.h"

static void expect_text(const struct schema *schema, int16_t version, const void *msg,
                        const char *expected)
{
    char text[1024];
    size_t n = wire_print(schema, version, msg, text, sizeof(text));

    assert_string_equal(text, expected);
    assert_int_equal(n, strlen(expected));
}

static void a_request_is_one_line(void **state)
{
    struct produce_request_partition partition;
    struct produce_request_topic topic;
    struct produce_request msg;

    (void)state;
    wire_init(&produce_request_partition_schema, &partition);
    partition.records.b.n = 68;
    wire_init(&produce_request_topic_schema, &topic);
    topic.name = STR_LIT("t");
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    wire_init(&produce_request_schema, &msg);
    msg.acks = -1;
    msg.topics.v = &topic;
    msg.topics.n = 1;
    expect_text(&produce_request_schema, 3, &msg,
                "{transactional_id=null acks=-1 timeout_ms=0 "
                "topics=[{name=\"t\" partitions=[{index=0 records=<68 bytes>}]}]}");
    expect_text(&produce_request_schema, 13, &msg,
                "{transactional_id=null acks=-1 timeout_ms=0 "
                "topics=[{topic_id=AAAAAAAAAAAAAAAAAAAAAA "
                "partitions=[{index=0 records=<68 bytes>}]}]}");
}

static void every_kind_has_a_form(void **state)
{
    struct kinds_child child = {.id = 3, .label = STR_LIT("l")};
    int32_t i32s[] = {1, -2};
    struct str strs[] = {STR_LIT("a"), STR_LIT("")};
    struct kinds msg;

    (void)state;
    wire_init(&kinds_schema, &msg);
    msg.yes = true;
    msg.f64 = 1.5;
    msg.maybe = &child;
    msg.children.n = -1;
    msg.i32s.v = i32s;
    msg.i32s.n = 2;
    msg.strs.v = strs;
    msg.strs.n = 2;
    msg.tag_i64 = 4;
    expect_text(&kinds_schema, 2, &msg,
                "{yes=true i8=-8 i16=0 u16=65535 i32=0 i64=-9223372036854775808 f64=1.5 "
                "uuid=AAAAAAAAAAAAAAAAAAAAAA str=\"\" str_null=null bytes=<0 bytes> "
                "bytes_null=<0 bytes> records=<0 bytes> one={id=-1} maybe={id=3 label=\"l\"} "
                "children=null i8s=[] i32s=[1 -2] i64s=[] strs=[\"a\" \"\"] uuids=[] new=9 "
                "tag_i64=4}");
    msg.maybe = NULL;
    assert_true(wire_print(&kinds_schema, 2, &msg, NULL, 0) > 100);
}

static void bytes_of_peers_cannot_break_the_line(void **state)
{
    struct kinds_child msg = {.id = 1, .label = STR_LIT("a\"\\\n\x7f\xc3\xa9\0z")};

    (void)state;
    expect_text(&kinds_child_schema, 1, &msg,
                "{id=1 label=\"a\\\"\\\\\\x0a\\x7f\\xc3\\xa9\\x00z\"}");
}

static void a_line_is_cut_where_the_room_ends(void **state)
{
    struct kinds_child msg = {.id = 123456};
    char text[9] = "........";

    (void)state;
    assert_int_equal(wire_print(&kinds_child_schema, 1, &msg, text, 8), 11);
    assert_string_equal(text, "{id=123");
    assert_int_equal(wire_print(&kinds_child_schema, 1, &msg, text, 1), 11);
    assert_string_equal(text, "");
    assert_int_equal(wire_print(&kinds_child_schema, 1, &msg, NULL, 0), 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_one_line),
        cmocka_unit_test(every_kind_has_a_form),
        cmocka_unit_test(bytes_of_peers_cannot_break_the_line),
        cmocka_unit_test(a_line_is_cut_where_the_room_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
