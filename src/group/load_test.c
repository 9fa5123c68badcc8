/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading (transactions, damage, versions to come), limits of what a peer may make us keep, and
 * where a group lives.
 */
#include "base/limits.h"
#include "group/testing.h"

static struct groups *new_groups(void)
{
    return groups_new(&default_limits);
}

static void free_groups(struct groups *g)
{
    struct group_effects fx;

    groups_resign(g, ERR_NOT_COORDINATOR, &fx);
    groups_free(g);
}

/* ---- Loading ---------------------------------------------------------------------------- */

static void replay_offset_record(struct groups *g, int64_t producer_id, int32_t partition,
                                 int64_t offset)
{
    struct offset_value v = {
        .offset = offset, .leader_epoch = -1, .metadata = STR_LIT(""), .expire_ms = -1};
    struct buf key = {0};
    struct buf value = {0};

    record__put_offset_key(&key, STR_LIT("g"), STR_LIT("t"), partition);
    record__put_offset_value(&value, &v);
    assert_int_equal(groups_replay(g, producer_id, buf_bytes(&key, 0), buf_bytes(&value, 0)),
                     ERR_NONE);
    buf_fini(&key);
    buf_fini(&value);
}

static int64_t fetch_offset(struct groups *g, int32_t partition, bool require_stable,
                            int16_t *error)
{
    struct offset_fetch_request_group_topic topic = {.name = STR_LIT("t")};
    struct offset_fetch_request_group in = {.group_id = STR_LIT("g"), .topics = {&topic, 1}};
    struct offset_fetch_response_group out;
    struct arena arena;
    int64_t offset;

    topic.partition_indexes.v = &partition;
    topic.partition_indexes.n = 1;
    arena_init(&arena, 0);
    groups_fetch(g, &in, require_stable, &arena, &out);
    offset = out.topics.v[0].partitions.v[0].committed_offset;
    *error = out.topics.v[0].partitions.v[0].error_code;
    arena_fini(&arena);
    return offset;
}

static void offsets_of_a_transaction_count_when_it_is_committed(void **state)
{
    struct groups *g = new_groups();
    int16_t error;

    (void)state;
    replay_offset_record(g, -1, 0, 1);
    replay_offset_record(g, 7, 0, 2);
    replay_offset_record(g, 8, 1, 3);
    assert_int_equal(fetch_offset(g, 0, false, &error), 1);
    assert_int_equal(error, ERR_NONE);
    assert_int_equal(fetch_offset(g, 0, true, &error), -1);
    assert_int_equal(error, ERR_UNSTABLE_OFFSET_COMMIT);
    assert_int_equal(fetch_offset(g, 2, true, &error), -1);
    assert_int_equal(error, ERR_NONE);
    groups_replay_marker(g, 7, true);
    groups_replay_marker(g, 8, false);
    groups_replay_marker(g, 9, true);
    assert_int_equal(fetch_offset(g, 0, true, &error), 2);
    assert_int_equal(error, ERR_NONE);
    assert_int_equal(fetch_offset(g, 1, true, &error), -1);
    assert_int_equal(error, ERR_NONE);
    free_groups(g);
}

static void metadata_is_bytes(void **state)
{
    struct offset_value v = {.metadata = {.p = "a\0\xff", .n = 3}, .expire_ms = -1};
    struct offset_fetch_request_group in = {.group_id = STR_LIT("g"), .topics = {.n = -1}};
    struct offset_fetch_response_group out;
    struct groups *g = new_groups();
    struct buf key = {0};
    struct buf value = {0};
    struct arena arena;

    (void)state;
    arena_init(&arena, 0);
    record__put_offset_key(&key, STR_LIT("g"), STR_LIT("t"), 0);
    record__put_offset_value(&value, &v);
    assert_int_equal(groups_replay(g, -1, buf_bytes(&key, 0), buf_bytes(&value, 0)), ERR_NONE);
    groups_fetch(g, &in, false, &arena, &out);
    assert_true(str_eq(out.topics.v[0].partitions.v[0].metadata, v.metadata));
    buf_fini(&key);
    buf_fini(&value);
    arena_fini(&arena);
    free_groups(g);
}

static void a_record_that_is_damaged_is_named_and_changes_nothing(void **state)
{
    static const uint8_t value[] = {0, 3, 0, 0};
    struct groups *g = new_groups();
    struct buf key = {0};
    int16_t error;

    (void)state;
    replay_offset_record(g, -1, 0, 1);
    record__put_offset_key(&key, STR_LIT("g"), STR_LIT("t"), 0);
    assert_int_equal(
        groups_replay(g, -1, buf_bytes(&key, 0), (struct bytes){.p = value, .n = sizeof(value)}),
        ERR_CORRUPT);
    assert_int_equal(groups_replay(g, -1, bytes_null(), bytes_null()), ERR_CORRUPT);
    assert_int_equal(fetch_offset(g, 0, false, &error), 1);
    buf_fini(&key);
    free_groups(g);
}

static void records_of_versions_to_come_are_passed_over(void **state)
{
    static const uint8_t key[] = {0, 3, 0, 1, 'g'};
    static const uint8_t value[] = {0, 9, 1, 2, 3};
    struct groups *g = new_groups();
    struct buf offset_key = {0};

    (void)state;
    record__put_offset_key(&offset_key, STR_LIT("g"), STR_LIT("t"), 0);
    assert_int_equal(groups_replay(g, -1, (struct bytes){.p = key, .n = sizeof(key)},
                                   (struct bytes){.p = value, .n = sizeof(value)}),
                     ERR_NONE);
    assert_int_equal(groups_replay(g, -1, buf_bytes(&offset_key, 0),
                                   (struct bytes){.p = value, .n = sizeof(value)}),
                     ERR_NONE);
    assert_int_equal(groups_count(g), 0);
    buf_fini(&offset_key);
    free_groups(g);
}

/* ---- Limits ----------------------------------------------------------------------------- */

struct joiner {
    struct join_group_request in;
    struct join_group_response out;
    struct group_request q;
    struct arena arena;
};

static void joiner_init(struct joiner *j)
{
    memset(j, 0, sizeof(*j));
    arena_init(&j->arena, 0);
    wire_init(&join_group_request_schema, &j->in);
    wire_init(&join_group_response_schema, &j->out);
    j->in.group_id = STR_LIT("g");
    j->in.session_timeout_ms = 10000;
    j->in.rebalance_timeout_ms = 10000;
    j->in.protocol_type = STR_LIT("consumer");
    j->q = (struct group_request){.op = GROUP_JOIN,
                                  .version = 5,
                                  .client_id = STR_LIT("c"),
                                  .client_host = STR_LIT("/h"),
                                  .in = &j->in,
                                  .out = &j->out,
                                  .arena = &j->arena};
}

static enum err join_once(struct groups *g, struct joiner *j, uint64_t random)
{
    struct group_event e = {
        .kind = GROUP_REQUEST, .mono_ms = 1, .wall_ms = 1, .random = {random, random}};
    struct group_effects fx;

    e.request = &j->q;
    groups_step(g, &e, &fx);
    assert_false(list_is_empty(&fx.answers));
    return err_from_wire(j->out.error_code);
}

static void too_many_protocols_are_refused(void **state)
{
    struct join_group_request_protocol v[GROUP_PROTOCOLS_MAX + 1];
    struct groups *g = new_groups();
    struct joiner j;

    (void)state;
    for (int i = 0; i <= GROUP_PROTOCOLS_MAX; i++)
        v[i] = (struct join_group_request_protocol){.name = STR_LIT("p")};
    joiner_init(&j);
    j.in.protocols.v = v;
    j.in.protocols.n = GROUP_PROTOCOLS_MAX + 1;
    assert_int_equal(join_once(g, &j, 1), ERR_INVALID_REQUEST);
    j.in.protocols.n = GROUP_PROTOCOLS_MAX;
    assert_int_equal(join_once(g, &j, 1), ERR_MEMBER_ID_REQUIRED);
    arena_fini(&j.arena);
    free_groups(g);
}

static void more_metadata_than_a_record_holds_is_refused(void **state)
{
    struct join_group_request_protocol v = {.name = STR_LIT("p")};
    struct groups *g = new_groups();
    struct joiner j;

    (void)state;
    v.metadata.n = GROUP_MEMBER_BYTES_MAX;
    v.metadata.p = xcalloc(1, GROUP_MEMBER_BYTES_MAX);
    joiner_init(&j);
    j.in.protocols.v = &v;
    j.in.protocols.n = 1;
    assert_int_equal(join_once(g, &j, 1), ERR_INVALID_REQUEST);
    v.metadata.n--;
    assert_int_equal(join_once(g, &j, 1), ERR_MEMBER_ID_REQUIRED);
    free((void *)(uintptr_t)v.metadata.p);
    arena_fini(&j.arena);
    free_groups(g);
}

static void ids_that_nobody_uses_have_a_bound_and_go_after_a_session_timeout(void **state)
{
    struct join_group_request_protocol v = {.name = STR_LIT("p")};
    struct group_event e = {.kind = GROUP_TICK, .mono_ms = 10001};
    struct groups *g = new_groups();
    struct group_effects fx;
    struct joiner j;

    (void)state;
    joiner_init(&j);
    j.in.protocols.v = &v;
    j.in.protocols.n = 1;
    for (uint64_t i = 0; i < GROUP_PENDING_MAX; i++)
        assert_int_equal(join_once(g, &j, i << 16), ERR_MEMBER_ID_REQUIRED);
    assert_int_equal(join_once(g, &j, 1), ERR_GROUP_MAX_SIZE_REACHED);
    groups_step(g, &e, &fx);
    assert_int_equal(groups_count(g), 0);
    arena_fini(&j.arena);
    free_groups(g);
}

static void ids_that_cannot_be_kept_are_refused(void **state)
{
    static char long_id[INT16_MAX + 1];
    struct join_group_request_protocol v = {.name = STR_LIT("p")};
    struct groups *g = new_groups();
    struct joiner j;

    (void)state;
    joiner_init(&j);
    j.in.protocols.v = &v;
    j.in.protocols.n = 1;
    j.in.group_instance_id = (struct str){.p = long_id, .n = GROUP_INSTANCE_ID_BYTES_MAX + 1};
    assert_int_equal(join_once(g, &j, 1), ERR_INVALID_REQUEST);
    j.in.group_instance_id = str_null();
    j.in.group_id = (struct str){.p = long_id, .n = sizeof(long_id)};
    assert_int_equal(join_once(g, &j, 1), ERR_INVALID_GROUP_ID);
    j.in.group_id = (struct str){.p = "a\0b", .n = 3};
    assert_int_equal(join_once(g, &j, 1), ERR_INVALID_GROUP_ID);
    j.in.group_id = STR_LIT("g");
    j.in.group_instance_id = (struct str){.p = "a\0b", .n = 3};
    assert_int_equal(join_once(g, &j, 1), ERR_INVALID_REQUEST);
    j.in.group_instance_id = str_null();
    v.name = (struct str){.p = "a\0b", .n = 3};
    assert_int_equal(join_once(g, &j, 1), ERR_INVALID_REQUEST);
    arena_fini(&j.arena);
    free_groups(g);
}

/* ---- Answers and writes ------------------------------------------------------------------ */

static void a_refused_join_has_kafkas_placeholders(void **state)
{
    struct groups *g = new_groups();
    struct joiner j;

    (void)state;
    joiner_init(&j);
    j.in.member_id = STR_LIT("m");
    assert_int_equal(join_once(g, &j, 1), ERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(j.out.generation_id, -1);
    assert_true(str_eq_c(j.out.protocol_name, "") && str_eq_c(j.out.leader, ""));
    assert_true(str_eq_c(j.out.member_id, "m"));
    j.q.version = 7;
    assert_int_equal(join_once(g, &j, 1), ERR_UNKNOWN_MEMBER_ID);
    assert_true(str_is_null(j.out.protocol_name));
    arena_fini(&j.arena);
    free_groups(g);
}

static void a_write_carries_the_time_of_its_records(void **state)
{
    struct join_group_request_protocol v = {.name = STR_LIT("p")};
    struct group_event e = {.kind = GROUP_TICK, .mono_ms = 20001, .wall_ms = 77};
    struct groups *g = new_groups();
    struct group_effects fx;
    struct group_write *w;
    struct joiner j;

    (void)state;
    joiner_init(&j);
    j.in.protocols.v = &v;
    j.in.protocols.n = 1;
    j.q.version = 3;
    e.kind = GROUP_REQUEST;
    e.request = &j.q;
    groups_step(g, &e, &fx);
    e.kind = GROUP_TICK;
    for (e.mono_ms += 3000; list_is_empty(&fx.writes); e.mono_ms += 10000)
        groups_step(g, &e, &fx);
    w = LIST_FIRST(&fx.writes, struct group_write, link);
    assert_int_equal(w->kind, GROUP_WRITE_STATE);
    assert_int_equal(w->timestamp_ms, 77);
    list_init(&fx.answers);
    group_write_drop(g, w, ERR_NOT_COORDINATOR, &fx);
    arena_fini(&j.arena);
    free_groups(g);
}

/* ---- Places ----------------------------------------------------------------------------- */

/* Java's hashes: "polygenelubricants" has the smallest integer, whose absolute value is 0 here. */
static void groups_live_where_java_says(void **state)
{
    (void)state;
    assert_int_equal(group_partition(STR_LIT(""), 50), 0);
    assert_int_equal(group_partition(STR_LIT("g1"), 50), 42);
    assert_int_equal(group_partition(STR_LIT("golden-group"), 50), 49);
    assert_int_equal(group_partition(STR_LIT("gruppe-\xc3\xbc"), 50), 22);
    assert_int_equal(group_partition(STR_LIT("\xf0\x9f\x8c\x8astrand"), 50), 2);
    assert_int_equal(group_partition(STR_LIT("polygenelubricants"), 50), 0);
    assert_int_equal(group_partition(STR_LIT("a long enough name to overflow"), 50), 17);
}

static void bytes_that_are_not_utf8_count_as_the_replacement_character(void **state)
{
    (void)state;
    assert_int_equal(group_partition(STR_LIT("\xff"), 1000), 0xfffd % 1000);
    assert_int_equal(group_partition(STR_LIT("\xf8"), 1000), 0xfffd % 1000);
    assert_int_equal(group_partition(STR_LIT("\x80"), 1000), 0xfffd % 1000);
    assert_int_equal(group_partition(STR_LIT("\xc3"), 1000), 0xfffd % 1000);
    assert_int_equal(group_partition(STR_LIT("\xe2\x82"), 1000), 0xfffd % 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_of_a_transaction_count_when_it_is_committed),
        cmocka_unit_test(metadata_is_bytes),
        cmocka_unit_test(a_record_that_is_damaged_is_named_and_changes_nothing),
        cmocka_unit_test(records_of_versions_to_come_are_passed_over),
        cmocka_unit_test(too_many_protocols_are_refused),
        cmocka_unit_test(more_metadata_than_a_record_holds_is_refused),
        cmocka_unit_test(ids_that_nobody_uses_have_a_bound_and_go_after_a_session_timeout),
        cmocka_unit_test(ids_that_cannot_be_kept_are_refused),
        cmocka_unit_test(a_refused_join_has_kafkas_placeholders),
        cmocka_unit_test(a_write_carries_the_time_of_its_records),
        cmocka_unit_test(groups_live_where_java_says),
        cmocka_unit_test(bytes_that_are_not_utf8_count_as_the_replacement_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
