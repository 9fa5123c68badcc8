/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traced lines as text and as JSON, and values that try to break out of them.
 */
#include "base/logline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define WHEN INT64_C(1700000000007)

static void check(void (*print)(struct buf *, enum trace_level, int64_t, const char *),
                  int64_t wall_ms, const char *line, const char *expected)
{
    struct buf b = {0};

    print(&b, TRACE_INFO, wall_ms, line);
    buf_append(&b, "", 1);
    assert_string_equal((const char *)b.p, expected);
    buf_fini(&b);
}

static void text_has_time_level_and_event(void **state)
{
    (void)state;
    check(logline_text, WHEN, "topic.created topic=t n=3",
          "time=2023-11-14T22:13:20.007Z level=info event=topic.created topic=t n=3\n");
    check(logline_text, -1, "a", "level=info event=a\n");
    check(logline_text, 0, "a", "time=1970-01-01T00:00:00.000Z level=info event=a\n");
}

static void text_stays_on_one_line(void **state)
{
    (void)state;
    check(logline_text, -1, "a client=x\nlevel=error\x1b[2J\x7f\xc3\xa4",
          "level=info event=a client=x\\x0alevel=error\\x1b[2J\\x7f\xc3\xa4\n");
}

#define HEAD "{\"level\":\"info\",\"module\":\"a\",\"event\":\"a.b\""

static void json_has_a_pair_for_each(void **state)
{
    (void)state;
    check(logline_json, WHEN, "topic.created topic=t partitions=3",
          "{\"time\":\"2023-11-14T22:13:20.007Z\",\"level\":\"info\",\"module\":\"topic\","
          "\"event\":\"topic.created\",\"topic\":\"t\",\"partitions\":3}\n");
    check(logline_json, -1, "a.b", HEAD "}\n");
    check(logline_json, -1, "a.b x= y=\"\" z=-5", HEAD ",\"x\":\"\",\"y\":\"\",\"z\":-5}\n");
    check(logline_json, -1, "alone",
          "{\"level\":\"info\",\"module\":\"alone\",\"event\":\"alone\"}\n");
}

static void json_numbers_are_whole_and_not_too_long(void **state)
{
    (void)state;
    check(logline_json, -1, "a.b x=0 y=007 z=-", HEAD ",\"x\":0,\"y\":\"007\",\"z\":\"-\"}\n");
    check(logline_json, -1, "a.b x=123456789012345 y=1234567890123456 z=1.5",
          HEAD ",\"x\":123456789012345,\"y\":\"1234567890123456\",\"z\":\"1.5\"}\n");
    check(logline_json, -1, "a.b x=-0 y=12a", HEAD ",\"x\":\"-0\",\"y\":\"12a\"}\n");
}

static void json_values_keep_their_blanks_and_quotes(void **state)
{
    (void)state;
    check(logline_json, -1, "a.b why=\"two words\" n=1", HEAD ",\"why\":\"two words\",\"n\":1}\n");
    check(logline_json, -1, "a.b client=my own app peer=x",
          HEAD ",\"client\":\"my own app\",\"peer\":\"x\"}\n");
    check(logline_json, -1, "a.b why=\"a \"b\"c\" d=1",
          HEAD ",\"why\":\"a \\\"b\\\"c\",\"d\":1}\n");
    check(logline_json, -1, "a.b why=\"cut off", HEAD ",\"why\":\"cut off\"}\n");
    check(logline_json, -1, "a.b no key here x=1", HEAD ",\"message\":\"no key here\",\"x\":1}\n");
}

static void json_cannot_be_broken_by_a_value(void **state)
{
    (void)state;
    check(logline_json, -1, "a.b client=x\",\"level\":\"error",
          HEAD ",\"client\":\"x\\\",\\\"level\\\":\\\"error\"}\n");
    check(logline_json, -1, "a.b client=\\\n\t\x01",
          HEAD ",\"client\":\"\\\\\\u000a\\u0009\\u0001\"}\n");
    check(logline_json, -1, "a.b c=\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8a",
          HEAD ",\"c\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8a\"}\n");
    check(logline_json, -1, "a.b c=\xff\xc3(\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82",
          HEAD ",\"c\":\"\\ufffd\\ufffd(\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"
               "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"}\n");
}

static void a_sentence_is_a_message(void **state)
{
    struct buf b = {0};

    (void)state;
    logline_json_message(&b, TRACE_ERROR, -1, "serve.failed", "no \"x\" here");
    buf_append(&b, "", 1);
    assert_string_equal((const char *)b.p,
                        "{\"level\":\"error\",\"module\":\"serve\",\"event\":\"serve.failed\","
                        "\"message\":\"no \\\"x\\\" here\"}\n");
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_time_level_and_event),
        cmocka_unit_test(text_stays_on_one_line),
        cmocka_unit_test(json_has_a_pair_for_each),
        cmocka_unit_test(json_numbers_are_whole_and_not_too_long),
        cmocka_unit_test(json_values_keep_their_blanks_and_quotes),
        cmocka_unit_test(json_cannot_be_broken_by_a_value),
        cmocka_unit_test(a_sentence_is_a_message),
    };

    return cmocka_run_group_tests_name("logline", tests, NULL, NULL);
}
