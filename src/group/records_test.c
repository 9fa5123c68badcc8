/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of __consumer_offsets: bytes that Apache Kafka 4.4.0 and 3.9.2 have written, and our
 * own; and bytes that are cut off or wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/alloc.h"
#include "group/records_int.h"

#define OFFSET_KEY "0001000c676f6c64656e2d67726f75700006676f6c64656e00000001"
/* Kafka 3.9: offset 2, metadata of a blank and an accented letter. */
#define OFFSET_VALUE_3 "00030000000000000002ffffffff00086e6f74656420c3a9000001a229a48aa6"
/* Kafka 4.4: the same in flexible encoding, with the topic's id in a tagged field. */
#define OFFSET_VALUE_4                                                                             \
    "00040000000000000002ffffffff096e6f74656420c3a9000001a229a44c2d01001032e52e0a9db54ded89ddd286" \
    "eabb6615"
#define GROUP_KEY "0002000e676f6c64656e2d67726f75702d30"
#define GROUP_VALUE_EMPTY "00030008636f6e73756d657200000002ffffffff000001a229a44ccf00000000"
#define GROUP_VALUE                                                                                \
    "00030008636f6e73756d657200000001000572616e67650031676f6c64656e2d70726f62652d3637336333653264" \
    "2d656632352d346533382d626263302d356664386139306430663065000001a229a44bae000000010031676f6c64" \
    "656e2d70726f62652d36373363336532642d656632352d346533382d626263302d35666438613930643066306"    \
    "5ffff000c676f6c64656e2d70726f6265000a2f3132372e302e302e310000753000007530000000120000000000"  \
    "010006676f6c64656effffffff000000120000000000010006676f6c64656effffffff"

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static struct bytes from_hex(const char *hex)
{
    int32_t n = (int32_t)strlen(hex) / 2;
    uint8_t *p = xmalloc((size_t)n);

    for (int32_t i = 0; i < n; i++)
        p[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
    return (struct bytes){.p = p, .n = n};
}

static void release(struct bytes b)
{
    free((void *)(uintptr_t)b.p);
}

static void assert_bytes(const struct buf *out, const char *hex)
{
    struct bytes want = from_hex(hex);

    assert_int_equal(out->n, want.n);
    assert_memory_equal(out->p, want.p, out->n);
    release(want);
}

static void an_offset_is_written_as_kafka_writes_it(void **state)
{
    struct buf out = {0};
    struct offset_value v = {.offset = 2,
                             .leader_epoch = -1,
                             .metadata = STR_LIT("noted \xc3\xa9"),
                             .commit_ms = 0x1a229a48aa6,
                             .expire_ms = -1};

    (void)state;
    record__put_offset_key(&out, STR_LIT("golden-group"), STR_LIT("golden"), 1);
    assert_bytes(&out, OFFSET_KEY);
    buf_reset(&out);
    record__put_offset_value(&out, &v);
    assert_bytes(&out, OFFSET_VALUE_3);
    buf_fini(&out);
}

static void check_offset(const char *hex)
{
    struct bytes b = from_hex(hex);
    struct offset_value v;

    assert_int_equal(record__parse_offset(b, &v), ERR_NONE);
    assert_int_equal(v.offset, 2);
    assert_int_equal(v.leader_epoch, -1);
    assert_true(str_eq_c(v.metadata, "noted \xc3\xa9"));
    assert_true(v.commit_ms > 0x1a229a40000 && v.commit_ms < 0x1a229a50000);
    assert_int_equal(v.expire_ms, -1);
    for (int32_t n = 0; n < b.n; n++)
        assert_int_equal(record__parse_offset((struct bytes){.p = b.p, .n = n}, &v), ERR_CORRUPT);
    release(b);
}

static void offsets_of_both_kafkas_are_understood_and_none_that_is_cut(void **state)
{
    (void)state;
    check_offset(OFFSET_VALUE_3);
    check_offset(OFFSET_VALUE_4);
}

static void an_expiry_of_its_own_is_kept_in_the_version_that_has_room_for_it(void **state)
{
    struct buf out = {0};
    struct offset_value v = {
        .offset = 7, .leader_epoch = 3, .metadata = STR_LIT(""), .commit_ms = 5, .expire_ms = 9};
    struct offset_value back;

    (void)state;
    record__put_offset_value(&out, &v);
    assert_int_equal(get_i16(out.p), 1);
    assert_int_equal(record__parse_offset(buf_bytes(&out, 0), &back), ERR_NONE);
    assert_int_equal(back.offset, 7);
    assert_int_equal(back.expire_ms, 9);
    assert_int_equal(back.leader_epoch, -1);
    buf_fini(&out);
}

static void keys_say_what_they_are_about(void **state)
{
    struct bytes offset = from_hex(OFFSET_KEY);
    struct bytes group = from_hex(GROUP_KEY);
    struct bytes later = from_hex("0003000161");
    struct bytes old = from_hex("000000016100016200000003");
    struct group_record_key k;

    (void)state;
    assert_int_equal(record__parse_key(offset, &k), ERR_NONE);
    assert_int_equal(k.type, GROUP_RECORD_OFFSET);
    assert_true(str_eq_c(k.group, "golden-group") && str_eq_c(k.topic, "golden"));
    assert_int_equal(k.partition, 1);
    assert_int_equal(record__parse_key(group, &k), ERR_NONE);
    assert_int_equal(k.type, GROUP_RECORD_GROUP);
    assert_true(str_eq_c(k.group, "golden-group-0"));
    assert_int_equal(record__parse_key(later, &k), ERR_NONE);
    assert_int_equal(k.type, GROUP_RECORD_OTHER);
    assert_int_equal(record__parse_key(old, &k), ERR_NONE);
    assert_int_equal(k.partition, 3);
    for (int32_t n = 0; n < offset.n; n++)
        assert_int_equal(record__parse_key((struct bytes){.p = offset.p, .n = n}, &k), ERR_CORRUPT);
    assert_int_equal(record__parse_key(bytes_null(), &k), ERR_CORRUPT);
    release(offset);
    release(group);
    release(later);
    release(old);
}

static void put_group(struct buf *out, const struct group_value *v)
{
    record__put_group_value(out, v);
    for (int32_t i = 0; i < v->member_count; i++)
        record__put_member(out, &v->members[i]);
}

static void a_group_of_kafka_is_understood_and_written_the_same(void **state)
{
    struct bytes b = from_hex(GROUP_VALUE);
    struct group_value v;
    struct buf out = {0};
    struct arena arena;

    (void)state;
    arena_init(&arena, 0);
    assert_int_equal(record__parse_group(b, &arena, &v), ERR_NONE);
    assert_true(str_eq_c(v.protocol_type, "consumer") && str_eq_c(v.protocol, "range"));
    assert_int_equal(v.generation, 1);
    assert_int_equal(v.member_count, 1);
    assert_true(str_eq(v.leader, v.members[0].id));
    assert_true(str_is_null(v.members[0].instance_id));
    assert_true(str_eq_c(v.members[0].client_host, "/127.0.0.1"));
    assert_int_equal(v.members[0].rebalance_timeout_ms, 30000);
    assert_int_equal(v.members[0].subscription.n, 18);
    put_group(&out, &v);
    assert_bytes(&out, GROUP_VALUE);
    for (int32_t n = 0; n < b.n; n++)
        assert_int_equal(record__parse_group((struct bytes){.p = b.p, .n = n}, &arena, &v),
                         ERR_CORRUPT);
    buf_fini(&out);
    arena_fini(&arena);
    release(b);
}

/* Generation 7, protocol "y", leader and only member "m" with its times, a byte of each kind. */
#define OLD_GROUP_HEAD "0001780000000700017900016d"
static void check_old_group(const char *hex, int64_t state_ms, int32_t rebalance_ms)
{
    struct bytes b = from_hex(hex);
    struct group_value v;
    struct arena arena;

    arena_init(&arena, 0);
    assert_int_equal(record__parse_group(b, &arena, &v), ERR_NONE);
    assert_int_equal(v.generation, 7);
    assert_int_equal(v.state_ms, state_ms);
    assert_int_equal(v.member_count, 1);
    assert_true(str_eq_c(v.members[0].id, "m") && str_is_null(v.members[0].instance_id));
    assert_int_equal(v.members[0].rebalance_timeout_ms, rebalance_ms);
    assert_int_equal(v.members[0].session_timeout_ms, 9);
    assert_int_equal(v.members[0].subscription.p[0], 0xaa);
    assert_int_equal(v.members[0].assignment.p[0], 0xbb);
    arena_fini(&arena);
    release(b);
}

static void groups_of_older_versions_are_understood(void **state)
{
    (void)state;
    check_old_group("0000" OLD_GROUP_HEAD "0000000100016d000163000168"
                    "0000000900000001aa00000001bb",
                    -1, 9);
    check_old_group("0001" OLD_GROUP_HEAD "0000000100016d000163000168"
                    "000000080000000900000001aa00000001bb",
                    -1, 8);
    check_old_group("0002" OLD_GROUP_HEAD "0000000000000005"
                    "0000000100016d000163000168"
                    "000000080000000900000001aa00000001bb",
                    5, 8);
}

static void an_empty_group_has_neither_protocol_nor_leader(void **state)
{
    struct bytes b = from_hex(GROUP_VALUE_EMPTY);
    struct group_value v;
    struct buf out = {0};
    struct arena arena;

    (void)state;
    arena_init(&arena, 0);
    assert_int_equal(record__parse_group(b, &arena, &v), ERR_NONE);
    assert_int_equal(v.generation, 2);
    assert_true(str_is_null(v.protocol) && str_is_null(v.leader));
    assert_int_equal(v.member_count, 0);
    put_group(&out, &v);
    assert_bytes(&out, GROUP_VALUE_EMPTY);
    buf_fini(&out);
    arena_fini(&arena);
    release(b);
}

static void a_count_of_members_that_cannot_be_there_takes_no_memory(void **state)
{
    struct bytes b = from_hex("00030001780000000000017800017900000000000000017fffffff");
    struct group_value v;
    struct arena arena;

    (void)state;
    arena_init(&arena, 4096);
    assert_int_equal(record__parse_group(b, &arena, &v), ERR_CORRUPT);
    arena_fini(&arena);
    release(b);
}

static void values_of_versions_to_come_are_named_so(void **state)
{
    struct bytes b = from_hex("0005");
    struct offset_value o;
    struct group_value g;
    struct arena arena;

    (void)state;
    arena_init(&arena, 0);
    assert_int_equal(record__parse_offset(b, &o), ERR_BAD_VERSION);
    assert_int_equal(record__parse_group(b, &arena, &g), ERR_BAD_VERSION);
    arena_fini(&arena);
    release(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offset_is_written_as_kafka_writes_it),
        cmocka_unit_test(offsets_of_both_kafkas_are_understood_and_none_that_is_cut),
        cmocka_unit_test(an_expiry_of_its_own_is_kept_in_the_version_that_has_room_for_it),
        cmocka_unit_test(keys_say_what_they_are_about),
        cmocka_unit_test(a_group_of_kafka_is_understood_and_written_the_same),
        cmocka_unit_test(groups_of_older_versions_are_understood),
        cmocka_unit_test(an_empty_group_has_neither_protocol_nor_leader),
        cmocka_unit_test(a_count_of_members_that_cannot_be_there_takes_no_memory),
        cmocka_unit_test(values_of_versions_to_come_are_named_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
