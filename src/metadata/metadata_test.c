/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images and deltas: what changes, what is shared, and that what was published never changes.
 * Under the address sanitizer the tests also show that every reference is given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metadata/metadata.h"

static struct uuid id_of(uint8_t n)
{
    return (struct uuid){{[0] = n, [15] = 1}};
}

static int begin(void **state)
{
    *state = metadata_image_new();
    return 0;
}

static int end(void **state)
{
    metadata_image_put(*state);
    return 0;
}

/* Replaces the image by the next one and empties the delta. */
static struct metadata_image *apply(void **state, struct metadata_delta *d)
{
    struct metadata_image *image = *state;
    struct metadata_image *next = metadata_apply(image, d);

    assert_int_equal(next->version, image->version + 1);
    metadata_image_put(image);
    metadata_delta_fini(d);
    *state = next;
    return next;
}

static void add_topic(void **state, const char *name, uint8_t id, int32_t partitions)
{
    struct metadata_delta d = {0};

    metadata_delta_put_topic(&d, metadata_topic_new(str_of(name), id_of(id), partitions));
    apply(state, &d);
}

static void set_leader(struct metadata_delta *d, const char *topic, int32_t index, int32_t leader)
{
    int32_t ids[] = {leader, 9};
    struct uuid dirs[] = {id_of(1), id_of(2)};
    struct metadata_partition p = {
        .leader = leader,
        .leader_epoch = 1,
        .partition_epoch = 2,
        .replicas = {ids, 2},
        .isr = {ids, 1},
        .dirs = dirs,
    };

    metadata_delta_set_partition(d, str_of(topic), index, &p);
}

static void an_empty_image_has_nothing(void **state)
{
    struct metadata_image *image = *state;

    assert_true(str_is_null(image->cluster_id));
    assert_int_equal(image->controller_id, -1);
    assert_int_equal(image->controller_epoch, -1);
    assert_null(metadata_find_topic(image, STR_LIT("a")));
    assert_null(metadata_find_topic_id(image, id_of(1)));
    assert_null(metadata_find_topic_id(image, uuid_zero()));
    assert_null(metadata_find_broker(image, 0));
    assert_int_equal(metadata_broker_overrides(image, METADATA_ALL_BROKERS)->count, 0);
    assert_int_equal(metadata_partition_total(image), 0);
}

static void cluster_and_controller_are_set(void **state)
{
    struct metadata_delta d = {0};
    struct metadata_image *image;

    metadata_delta_set_cluster(&d, STR_LIT("old"));
    metadata_delta_set_cluster(&d, STR_LIT("abc"));
    metadata_delta_set_controller(&d, 3, 17);
    apply(state, &d);
    image = apply(state, &d); /* an empty delta keeps all */
    assert_true(str_eq_c(image->cluster_id, "abc"));
    assert_int_equal(image->controller_id, 3);
    assert_int_equal(image->controller_epoch, 17);
}

static void topics_are_found_by_name_and_id_and_sorted(void **state)
{
    static const char *const names[] = {"m", "a", "z", "m.x", "b"};
    struct metadata_image *image;

    for (uint8_t i = 0; i < ARRAY_LEN(names); i++)
        add_topic(state, names[i], (uint8_t)(50 - i), i + 1);
    image = *state;
    assert_int_equal(image->topic_count, 5);
    for (int i = 1; i < 5; i++)
        assert_true(str_cmp(image->topics[i - 1]->name, image->topics[i]->name) < 0);
    for (uint8_t i = 0; i < ARRAY_LEN(names); i++) {
        struct metadata_topic *topic = metadata_find_topic(image, str_of(names[i]));

        assert_non_null(topic);
        assert_int_equal(topic->partition_count, i + 1);
        assert_ptr_equal(topic, metadata_find_topic_id(image, topic->id));
    }
    assert_null(metadata_find_topic(image, STR_LIT("m.")));
    assert_null(metadata_find_topic_id(image, id_of(51)));
    assert_int_equal(metadata_partition_total(image), 15);
}

static void a_new_topic_has_no_leaders(void **state)
{
    struct metadata_partition *p;

    add_topic(state, "__consumer_offsets", 1, 2);
    assert_true((*(struct metadata_image **)state)->topics[0]->is_internal);
    p = metadata_find_partition((*(struct metadata_image **)state)->topics[0], 1);
    assert_int_equal(p->leader, -1);
    assert_int_equal(p->leader_epoch, -1);
    assert_int_equal(p->partition_epoch, 0);
    assert_int_equal(p->replicas.count, 0);
    assert_null(metadata_find_partition((*(struct metadata_image **)state)->topics[0], 2));
    assert_null(metadata_find_partition((*(struct metadata_image **)state)->topics[0], -1));
}

static void what_does_not_change_is_shared(void **state)
{
    struct metadata_delta d = {0};
    struct metadata_image *old;
    struct metadata_image *next;

    add_topic(state, "a", 1, 1);
    add_topic(state, "b", 2, 1);
    metadata_delta_put_broker(&d, metadata_broker_new(1, 5, str_null()));
    old = apply(state, &d);
    set_leader(&d, "b", 0, 4);
    next = metadata_apply(old, &d);
    assert_ptr_equal(next->topics[0], old->topics[0]);
    assert_ptr_equal(next->brokers[0], old->brokers[0]);
    assert_ptr_not_equal(next->topics[1], old->topics[1]);
    assert_int_equal(old->topics[1]->partitions[0].leader, -1);
    assert_int_equal(next->topics[1]->partitions[0].leader, 4);
    assert_ptr_equal(metadata_find_topic_id(next, id_of(2)), next->topics[1]);
    metadata_delta_fini(&d);
    metadata_image_put(next);
}

static void a_partition_change_copies_all_of_it_and_keeps_the_rest(void **state)
{
    struct metadata_delta d = {0};
    struct metadata_partition *p;
    struct config_overrides o = {0};
    struct metadata_topic *topic;

    add_topic(state, "a", 1, 2);
    config_overrides_put(&o, STR_LIT("retention.ms"), STR_LIT("1"));
    metadata_delta_set_topic_configs(&d, STR_LIT("a"), &o);
    apply(state, &d);
    set_leader(&d, "a", 1, 7);
    set_leader(&d, "a", 0, 8);
    topic = apply(state, &d)->topics[0];
    assert_int_equal(topic->configs.count, 1);
    p = topic->partitions;
    assert_int_equal(p[0].leader, 8);
    assert_int_equal(p[1].leader, 7);
    assert_int_equal(p[1].leader_epoch, 1);
    assert_int_equal(p[1].partition_epoch, 2);
    assert_int_equal(p[1].replicas.count, 2);
    assert_true(metadata_ids_have(&p[1].replicas, 9));
    assert_true(metadata_ids_have(&p[1].isr, 7));
    assert_false(metadata_ids_have(&p[1].isr, 9));
    assert_true(uuid_eq(p[1].dirs[1], id_of(2)));
    config_overrides_fini(&o);
}

static void what_a_reader_holds_never_changes(void **state)
{
    struct metadata_delta d = {0};
    struct metadata_image *image;
    struct metadata_topic *before;

    add_topic(state, "a", 1, 2);
    image = *state;
    before = image->topics[0];
    set_leader(&d, "a", 0, 1);
    apply(state, &d);
    image = *state;
    assert_ptr_not_equal(image->topics[0], before);
    metadata_image_get(image);
    before = image->topics[0];
    set_leader(&d, "a", 0, 2);
    set_leader(&d, "a", 1, 3);
    apply(state, &d);
    assert_int_equal(before->partitions[0].leader, 1);
    assert_int_equal(before->partitions[1].leader, -1);
    metadata_image_put(image);
    image = *state;
    assert_int_equal(image->topics[0]->partitions[0].leader, 2);
    assert_int_equal(image->topics[0]->partitions[1].leader, 3);
}

static void a_partition_past_the_end_makes_the_topic_longer(void **state)
{
    struct metadata_delta d = {0};
    struct metadata_topic *topic;

    add_topic(state, "a", 1, 1);
    set_leader(&d, "a", 3, 5);
    topic = apply(state, &d)->topics[0];
    assert_int_equal(topic->partition_count, 4);
    assert_int_equal(topic->partitions[2].leader, -1);
    assert_int_equal(topic->partitions[3].leader, 5);
}

static void a_topic_is_removed_and_comes_back_with_another_id(void **state)
{
    struct metadata_delta d = {0};
    struct metadata_image *image;

    add_topic(state, "a", 1, 1);
    add_topic(state, "b", 2, 1);
    metadata_delta_remove_topic(&d, STR_LIT("a"));
    image = apply(state, &d);
    assert_int_equal(image->topic_count, 1);
    assert_null(metadata_find_topic(image, STR_LIT("a")));
    assert_null(metadata_find_topic_id(image, id_of(1)));
    assert_non_null(metadata_find_topic_id(image, id_of(2)));
    add_topic(state, "b", 3, 4);
    image = *state;
    assert_int_equal(image->topic_count, 1);
    assert_null(metadata_find_topic_id(image, id_of(2)));
    assert_int_equal(metadata_find_topic_id(image, id_of(3))->partition_count, 4);
}

static void an_id_belongs_to_one_topic(void **state)
{
    struct metadata_image *image;

    add_topic(state, "a", 1, 1);
    add_topic(state, "b", 1, 2);
    image = *state;
    assert_int_equal(image->topic_count, 1);
    assert_true(str_eq_c(metadata_find_topic_id(image, id_of(1))->name, "b"));
}

static void topics_without_ids_live_side_by_side(void **state)
{
    struct metadata_delta d = {0};
    struct metadata_image *image;

    metadata_delta_put_topic(&d, metadata_topic_new(STR_LIT("a"), uuid_zero(), 1));
    metadata_delta_put_topic(&d, metadata_topic_new(STR_LIT("b"), uuid_zero(), 1));
    metadata_delta_put_topic(&d, metadata_topic_new(STR_LIT("c"), uuid_zero(), 1));
    apply(state, &d);
    set_leader(&d, "a", 0, 1);
    metadata_delta_remove_topic(&d, STR_LIT("b"));
    image = apply(state, &d);
    assert_int_equal(image->topic_count, 2);
    assert_int_equal(metadata_find_topic(image, STR_LIT("a"))->partitions[0].leader, 1);
    assert_non_null(metadata_find_topic(image, STR_LIT("c")));
    assert_null(metadata_find_topic_id(image, uuid_zero()));
    assert_ptr_not_equal(image->topics_by_id[0], image->topics_by_id[1]);
    for (int i = 0; i < 2; i++)
        assert_ptr_equal(metadata_find_topic(image, image->topics_by_id[i]->name),
                         image->topics_by_id[i]);
}

static void changes_of_what_does_not_exist_have_no_effect(void **state)
{
    struct metadata_delta d = {0};
    struct config_overrides o = {0};
    struct metadata_image *image;

    set_leader(&d, "gone", 0, 1);
    metadata_delta_set_topic_configs(&d, STR_LIT("gone"), &o);
    metadata_delta_remove_topic(&d, STR_LIT("gone"));
    metadata_delta_remove_broker(&d, 7);
    image = apply(state, &d);
    assert_int_equal(image->topic_count, 0);
    assert_int_equal(image->broker_count, 0);
}

static void topic_configs_are_replaced_as_a_whole(void **state)
{
    struct metadata_delta d = {0};
    struct config_overrides o = {0};
    struct config_overrides *held;
    struct metadata_image *old;

    add_topic(state, "a", 1, 1);
    config_overrides_put(&o, STR_LIT("retention.ms"), STR_LIT("1"));
    metadata_delta_set_topic_configs(&d, STR_LIT("a"), &o);
    old = metadata_image_get(apply(state, &d));
    config_overrides_fini(&o);
    config_overrides_put(&o, STR_LIT("segment.ms"), STR_LIT("2"));
    metadata_delta_set_topic_configs(&d, STR_LIT("a"), &o);
    held = &apply(state, &d)->topics[0]->configs;
    assert_int_equal(held->count, 1);
    assert_string_equal(config_overrides_get(held, STR_LIT("segment.ms")), "2");
    assert_string_equal(config_overrides_get(&old->topics[0]->configs, STR_LIT("retention.ms")),
                        "1");
    metadata_image_put(old);
    config_overrides_fini(&o);
}

static void brokers_come_go_and_are_fenced(void **state)
{
    struct metadata_delta d = {0};
    struct metadata_broker *broker = metadata_broker_new(2, 5, STR_LIT("r1"));
    struct metadata_image *image;
    int32_t live[3];

    metadata_broker_add_endpoint(broker, STR_LIT("PLAINTEXT"), STR_LIT("h"), 9092);
    metadata_broker_add_endpoint(broker, STR_LIT("IN"), STR_LIT("::1"), 1);
    metadata_delta_put_broker(&d, broker);
    metadata_delta_put_broker(&d, metadata_broker_new(0, 6, str_null()));
    broker = metadata_broker_new(1, 7, str_null());
    broker->is_fenced = true;
    metadata_delta_put_broker(&d, broker);
    image = apply(state, &d);
    assert_int_equal(image->broker_count, 3);
    assert_int_equal(image->brokers[0]->id, 0);
    assert_int_equal(image->brokers[2]->id, 2);
    assert_int_equal(metadata_live_brokers(image, live), 2);
    assert_int_equal(live[0], 0);
    assert_int_equal(live[1], 2);
    broker = metadata_find_broker(image, 2);
    assert_true(str_eq_c(broker->rack, "r1"));
    assert_true(str_is_null(image->brokers[0]->rack));
    assert_int_equal(metadata_find_endpoint(broker, STR_LIT("IN"))->port, 1);
    assert_null(metadata_find_endpoint(broker, STR_LIT("OUT")));
    metadata_delta_remove_broker(&d, 1);
    metadata_delta_put_broker(&d, metadata_broker_new(0, 8, str_null()));
    image = apply(state, &d);
    assert_int_equal(image->broker_count, 2);
    assert_int_equal(image->brokers[0]->epoch, 8);
    assert_null(metadata_find_broker(image, 1));
}

static void broker_configs_are_kept_by_id(void **state)
{
    struct metadata_delta d = {0};
    struct config_overrides o = {0};
    struct metadata_image *image;

    config_overrides_put(&o, STR_LIT("message.max.bytes"), STR_LIT("1"));
    metadata_delta_set_broker_configs(&d, 4, &o);
    config_overrides_put(&o, STR_LIT("message.max.bytes"), STR_LIT("2"));
    metadata_delta_set_broker_configs(&d, METADATA_ALL_BROKERS, &o);
    apply(state, &d);
    config_overrides_put(&o, STR_LIT("message.max.bytes"), STR_LIT("3"));
    metadata_delta_set_broker_configs(&d, 4, &o);
    image = apply(state, &d);
    assert_int_equal(image->broker_config_count, 2);
    assert_int_equal(image->broker_configs[0].broker_id, METADATA_ALL_BROKERS);
    assert_string_equal(metadata_broker_overrides(image, 4)->pairs[0].value, "3");
    assert_string_equal(metadata_broker_overrides(image, METADATA_ALL_BROKERS)->pairs[0].value,
                        "2");
    config_overrides_fini(&o);
}

static void an_image_outlives_its_successors(void **state)
{
    struct metadata_image *held;
    struct metadata_topic *topic;

    add_topic(state, "a", 1, 3);
    held = metadata_image_get(*state);
    add_topic(state, "b", 2, 1);
    topic = metadata_topic_get((*(struct metadata_image **)state)->topics[1]);
    metadata_image_put(*state);
    *state = metadata_image_new();
    assert_int_equal(held->topic_count, 1);
    assert_int_equal(held->topics[0]->partition_count, 3);
    metadata_image_put(held);
    assert_true(str_eq_c(topic->name, "b"));
    metadata_topic_put(topic);
    metadata_topic_put(NULL);
    metadata_broker_put(NULL);
    metadata_image_put(NULL);
}

static void a_thousand_topics_one_by_one_keep_their_places(void **state)
{
    struct metadata_topic *first = NULL;

    for (int i = 0; i < 1000; i++) {
        struct metadata_delta d = {0};
        char name[16];
        struct uuid id = {{(uint8_t)(i * 7), (uint8_t)(i >> 3), (uint8_t)i, (uint8_t)(i >> 8), 1}};

        snprintf(name, sizeof(name), "t%d", i * 37 % 1000);
        metadata_delta_put_topic(&d, metadata_topic_new(str_of(name), id, 1));
        apply(state, &d);
        if (!first)
            first = (*(struct metadata_image **)state)->topics[0];
    }
    assert_int_equal((*(struct metadata_image **)state)->topic_count, 1000);
    assert_ptr_equal(metadata_find_topic(*state, STR_LIT("t0")), first);
    for (int i = 0; i < 1000; i++) {
        struct metadata_topic *topic = (*(struct metadata_image **)state)->topics[i];

        assert_ptr_equal(metadata_find_topic_id(*state, topic->id), topic);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_image_has_nothing),
        TEST(cluster_and_controller_are_set),
        TEST(topics_are_found_by_name_and_id_and_sorted),
        TEST(a_new_topic_has_no_leaders),
        TEST(what_does_not_change_is_shared),
        TEST(a_partition_change_copies_all_of_it_and_keeps_the_rest),
        TEST(what_a_reader_holds_never_changes),
        TEST(a_partition_past_the_end_makes_the_topic_longer),
        TEST(a_topic_is_removed_and_comes_back_with_another_id),
        TEST(an_id_belongs_to_one_topic),
        TEST(topics_without_ids_live_side_by_side),
        TEST(changes_of_what_does_not_exist_have_no_effect),
        TEST(topic_configs_are_replaced_as_a_whole),
        TEST(brokers_come_go_and_are_fenced),
        TEST(broker_configs_are_kept_by_id),
        TEST(an_image_outlives_its_successors),
        TEST(a_thousand_topics_one_by_one_keep_their_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
