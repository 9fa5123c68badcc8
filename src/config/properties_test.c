/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The properties parser. A text is parsed to its end and printed as "line key|value;" for each
 * entry, which is then compared: one line for each rule of the syntax.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "config/config_int.h"

static enum err parse(struct str text, struct arena *a, struct str *out)
{
    struct config_properties p;
    struct str key;
    struct str value;
    enum err err;

    *out = STR_LIT("");
    config__properties_init(&p, text);
    while ((err = config__properties_next(&p, &key, &value)) == ERR_NONE)
        *out = arena_printf(a, "%.*s%d %.*s|%.*s;", STR_ARG(*out), p.entry_line, STR_ARG(key),
                            STR_ARG(value));
    config__properties_fini(&p);
    return err;
}

static void check(const char *text, const char *expected)
{
    struct arena a;
    struct str out;

    arena_init(&a, 0);
    assert_int_equal(parse(str_of(text), &a, &out), ERR_EOF);
    assert_string_equal(out.n ? out.p : "", expected);
    arena_fini(&a);
}

static void check_malformed(struct str text)
{
    struct arena a;
    struct str out;

    arena_init(&a, 0);
    assert_int_equal(parse(text, &a, &out), ERR_MALFORMED);
    arena_fini(&a);
}

static void separators_are_equals_colon_or_blank(void **state)
{
    (void)state;
    check("a=1\nb:2\nc 3\nd\t4\n", "1 a|1;2 b|2;3 c|3;4 d|4;");
    check("  a  =  1  ", "1 a|1  ;");
    check("a==1", "1 a|=1;");
    check("a = : 1", "1 a|: 1;");
    check("a  b=c", "1 a|b=c;");
}

static void an_entry_may_lack_its_value_or_key(void **state)
{
    (void)state;
    check("a", "1 a|;");
    check("a\nb=1", "1 a|;2 b|1;");
    check("a=", "1 a|;");
    check("=b", "1 |b;");
    check("", "");
}

static void comments_and_blank_lines_are_skipped(void **state)
{
    (void)state;
    check("# a=1\n  ! b=2\n\n \t\f\nc=3#4\n", "5 c|3#4;");
    check("# no continuation \\\na=1", "2 a|1;");
}

static void every_line_end_counts(void **state)
{
    (void)state;
    check("a=1\r\nb=2\rc=3\n\rd=4", "1 a|1;2 b|2;3 c|3;5 d|4;");
}

static void a_backslash_joins_lines(void **state)
{
    (void)state;
    check("a=1,\\\n   2,\\\r\n\t3\nb=4", "1 a|1,2,3;4 b|4;");
    check("a=1\\\\\nb=2", "1 a|1\\;2 b|2;");
    check("a=1\\\\\\\n2", "1 a|1\\2;");
    check("a=\\\n# no comment", "1 a|# no comment;");
    check("a=\\\n\nb=2", "1 a|;3 b|2;");
    check("\\\n\nb=2", "3 b|2;");
    check("a=1\\", "1 a|1;");
}

static void escapes_stand_for_characters(void **state)
{
    (void)state;
    check("a\\=b\\:c\\ d=1", "1 a=b:c d|1;");
    check("a=\\t\\n\\r\\f\\z\\#", "1 a|\t\n\r\fz#;");
    check("a=\\u0041\\u00e9\\u20AC", "1 a|A\xc3\xa9\xe2\x82\xac;");
    check("a=\\ud83d\\ude00", "1 a|\xf0\x9f\x98\x80;");
    check("a=caf\xc3\xa9", "1 a|caf\xc3\xa9;");
}

static void a_bad_escape_or_a_nul_is_malformed(void **state)
{
    (void)state;
    check_malformed(STR_LIT("a=\\u12"));
    check_malformed(STR_LIT("a=\\u12g4"));
    check_malformed(STR_LIT("\\u=1"));
    check_malformed(STR_LIT("a=\\u0000"));
    check_malformed(STR_LIT("a=\\ud83d"));
    check_malformed(STR_LIT("a=\\ud83d\\u0041"));
    check_malformed(STR_LIT("a=\\ude00"));
    check_malformed(STR_LIT("a=b\0c"));
    check_malformed(STR_LIT("a=b\\\0c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separators_are_equals_colon_or_blank),
        cmocka_unit_test(an_entry_may_lack_its_value_or_key),
        cmocka_unit_test(comments_and_blank_lines_are_skipped),
        cmocka_unit_test(every_line_end_counts),
        cmocka_unit_test(a_backslash_joins_lines),
        cmocka_unit_test(escapes_stand_for_characters),
        cmocka_unit_test(a_bad_escape_or_a_nul_is_malformed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
