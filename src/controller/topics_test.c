/* SPDX-License-Identifier: Apache-2.0 */
/* New partitions, by the rule of placement and by lists of a request. */
#include "controller/scene_test_int.h"

#define MANUAL_MAX 4

static struct metadata_topic *new_topic(const char *name)
{
    return metadata_topic_new(str_of(name), uuid_from_random((uint64_t)name[0], 1), 0);
}

/* The topic's partitions go into the scene, where scene_is finds them. Takes the topic. */
static void put(struct scene *s, struct metadata_topic *topic)
{
    metadata_delta_put_topic(&s->plan, topic);
    scene_apply(s);
}

static void make(struct scene *s, struct metadata_topic *topic,
                 struct controller_new_partitions how, enum err expected)
{
    struct str message;
    int32_t before = topic->partition_count;

    assert_int_equal(controller_make_partitions(s->image, &how, &s->arena, topic, &message),
                     expected);
    assert_int_equal(topic->partition_count, expected ? before : before + how.count);
    assert_int_equal(str_is_null(message), expected == ERR_NONE);
    put(s, topic);
}

/* "1,2 2,3": two partitions. */
static void make_as(struct scene *s, struct metadata_topic *topic, const char *lists,
                    enum err expected)
{
    int32_t ids[MANUAL_MAX][SCENE_IDS_MAX];
    struct metadata_ids manual[MANUAL_MAX];
    struct controller_new_partitions how = {.manual = manual};

    for (const char *at = lists; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
        manual[how.count] = scene_ids(ids[how.count], at);
        how.count++;
    }
    make(s, topic, how, expected);
}

static struct metadata_topic *copy_of(struct scene *s, const char *name)
{
    return metadata_topic_copy(metadata_find_topic(s->image, str_of(name)));
}

/* ---- by the rule ------------------------------------------------------------------------- */

static void replicas_go_round_the_brokers(void **state)
{
    struct scene s;
    struct controller_new_partitions how = {.count = 4, .replication_factor = 2};

    (void)state;
    scene_begin(&s, "1,2,3");
    make(&s, new_topic("a"), how, ERR_NONE);
    scene_is(&s, "a-0 leader 1 (0,0) replicas 1,2 isr 1,2");
    scene_is(&s, "a-1 leader 2 (0,0) replicas 2,3 isr 2,3");
    scene_is(&s, "a-2 leader 3 (0,0) replicas 3,1 isr 3,1");
    scene_is(&s, "a-3 leader 1 (0,0) replicas 1,3 isr 1,3");
    how.random = (uint64_t)1 << 32 | 5;
    make(&s, new_topic("b"), how, ERR_NONE);
    scene_is(&s, "b-0 leader 3 (0,0) replicas 3,2 isr 3,2");
    scene_end(&s);
}

static void set_racks(struct scene *s, const char *const *racks)
{
    for (int32_t i = 0; i < 4; i++)
        metadata_delta_put_broker(&s->plan, metadata_broker_new(i + 1, 20 + i, str_of(racks[i])));
    scene_apply(s);
}

static void replicas_go_to_different_racks(void **state)
{
    struct scene s;
    struct controller_new_partitions how = {.count = 2, .replication_factor = 2};

    (void)state;
    scene_begin(&s, "1");
    set_racks(&s, (const char *const[]){"a", "a", "b", "b"});
    make(&s, new_topic("a"), how, ERR_NONE);
    scene_is(&s, "a-0 leader 1 (0,0) replicas 1,3 isr 1,3");
    scene_is(&s, "a-1 leader 3 (0,0) replicas 3,2 isr 3,2");
    /* One broker without a rack, and racks do not count. */
    set_racks(&s, (const char *const[]){"a", "a", "b", NULL});
    make(&s, new_topic("b"), how, ERR_NONE);
    scene_is(&s, "b-0 leader 1 (0,0) replicas 1,2 isr 1,2");
    scene_end(&s);
}

static void later_partitions_continue_the_pattern(void **state)
{
    struct scene s;
    struct controller_new_partitions how = {
        .count = 2, .replication_factor = 7, .random = UINT64_MAX};

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 2 (5,9) replicas 2,3 isr 2,3");
    make(&s, copy_of(&s, "a"), how, ERR_NONE);
    scene_is(&s, "a-0 leader 2 (5,9) replicas 2,3 isr 2,3");
    scene_is(&s, "a-1 leader 3 (0,0) replicas 3,2 isr 3,2");
    scene_is(&s, "a-2 leader 1 (0,0) replicas 1,3 isr 1,3");
    scene_end(&s);
}

static void counts_are_checked(void **state)
{
    struct scene s;
    struct controller_new_partitions how = {.count = 0, .replication_factor = 1};

    (void)state;
    scene_begin(&s, "1,2");
    make(&s, new_topic("a"), how, ERR_INVALID_PARTITIONS);
    how.count = 1;
    how.replication_factor = 3;
    make(&s, new_topic("b"), how, ERR_INVALID_REPLICATION_FACTOR);
    how.replication_factor = 0;
    make(&s, new_topic("c"), how, ERR_INVALID_REPLICATION_FACTOR);
    how.replication_factor = 1;
    scene_goes(&s, 1);
    scene_goes(&s, 2);
    make(&s, new_topic("d"), how, ERR_INVALID_REPLICATION_FACTOR);
    scene_end(&s);
}

/* ---- by the request ---------------------------------------------------------------------- */

static void a_request_may_say_where_replicas_go(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    make_as(&s, new_topic("a"), "3,1 1,2", ERR_NONE);
    scene_is(&s, "a-0 leader 3 (0,0) replicas 3,1 isr 3,1");
    scene_is(&s, "a-1 leader 1 (0,0) replicas 1,2 isr 1,2");
    make_as(&s, copy_of(&s, "a"), "2,3", ERR_NONE);
    scene_is(&s, "a-2 leader 2 (0,0) replicas 2,3 isr 2,3");
    scene_end(&s);
}

static void lists_are_checked(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    make_as(&s, new_topic("a"), "1,4", ERR_INVALID_REPLICA_ASSIGNMENT);
    make_as(&s, new_topic("b"), "1,1", ERR_INVALID_REPLICA_ASSIGNMENT);
    make_as(&s, new_topic("c"), "1,2 3", ERR_INVALID_REPLICA_ASSIGNMENT);
    make_as(&s, new_topic("d"), "", ERR_INVALID_REPLICA_ASSIGNMENT);
    make_as(&s, new_topic("e"), "1", ERR_NONE);
    make_as(&s, copy_of(&s, "e"), "1,2", ERR_INVALID_REPLICA_ASSIGNMENT);
    scene_end(&s);
}

static void a_topic_on_the_move_does_not_grow(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 2,1 isr 1 adding 2 removing 1");
    make_as(&s, copy_of(&s, "a"), "1", ERR_REASSIGNMENT_IN_PROGRESS);
    make_as(&s, copy_of(&s, "a"), "1,2", ERR_REASSIGNMENT_IN_PROGRESS);
    scene_end(&s);
}

/* ---- numbers of partitions --------------------------------------------------------------- */

static enum err sort(int32_t first, int32_t second, int32_t *first_broker)
{
    int32_t brokers[] = {1, 2};
    struct create_topics_request_assignment v[2];
    struct create_topics_request_topic in;
    struct metadata_ids *sorted;
    struct arena arena;
    struct str message;
    enum err err;

    wire_init(&create_topics_request_topic_schema, &in);
    arena_init(&arena, 0);
    for (int i = 0; i < 2; i++) {
        v[i].partition_index = i == 0 ? first : second;
        v[i].broker_ids.v = &brokers[i];
        v[i].broker_ids.n = 1;
    }
    in.assignments.v = v;
    in.assignments.n = 2;
    err = controller_sort_assignments(&in, &arena, &sorted, &message);
    *first_broker = err ? -1 : sorted[0].ids[0];
    arena_fini(&arena);
    return err;
}

static void partitions_are_numbered_without_gaps(void **state)
{
    int32_t broker;

    (void)state;
    assert_int_equal(sort(0, 1, &broker), ERR_NONE);
    assert_int_equal(broker, 1);
    assert_int_equal(sort(1, 0, &broker), ERR_NONE);
    assert_int_equal(broker, 2);
    assert_int_equal(sort(0, 2, &broker), ERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(sort(0, 0, &broker), ERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(sort(-1, 0, &broker), ERR_INVALID_REPLICA_ASSIGNMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_go_round_the_brokers),
        cmocka_unit_test(replicas_go_to_different_racks),
        cmocka_unit_test(later_partitions_continue_the_pattern),
        cmocka_unit_test(counts_are_checked),
        cmocka_unit_test(a_request_may_say_where_replicas_go),
        cmocka_unit_test(lists_are_checked),
        cmocka_unit_test(a_topic_on_the_move_does_not_grow),
        cmocka_unit_test(partitions_are_numbered_without_gaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
