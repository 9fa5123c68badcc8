/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions that move to other brokers, from the request to the last order. */
#include "controller/scene_test_int.h"

#define CANCEL NULL

struct wish {
    const char *topic;
    int32_t index;
    const char *target; /* "4,5"; CANCEL */
};

/* Answers as "a-0 NONE"; carries the plan out. */
static void ask(struct scene *s, const struct wish *wishes, int32_t n, bool may_change_count,
                const char *expected)
{
    struct alter_partition_reassignments_request in;
    struct alter_partition_reassignments_request_topic topics[2];
    struct alter_partition_reassignments_request_partition partitions[2];
    struct alter_partition_reassignments_response out;
    int32_t ids[2][SCENE_IDS_MAX];
    char text[128] = "";
    size_t used = 0;

    wire_init(&alter_partition_reassignments_request_schema, &in);
    wire_init(&alter_partition_reassignments_response_schema, &out);
    in.allow_replication_factor_change = may_change_count;
    in.topics.v = topics;
    in.topics.n = n;
    for (int32_t i = 0; i < n; i++) {
        struct metadata_ids target = {.count = -1};

        if (wishes[i].target)
            target = scene_ids(ids[i], wishes[i].target);
        partitions[i].partition_index = wishes[i].index;
        partitions[i].replicas.v = target.ids;
        partitions[i].replicas.n = target.count;
        topics[i].name = str_of(wishes[i].topic);
        topics[i].partitions.v = &partitions[i];
        topics[i].partitions.n = 1;
    }
    controller_reassign(s->image, &in, &s->arena, &out, &s->plan);
    for (int32_t i = 0; i < n; i++) {
        const struct alter_partition_reassignments_response_topic *topic = &out.responses.v[i];
        const struct alter_partition_reassignments_response_partition *p = &topic->partitions.v[0];

        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s-%d %s", i ? ", " : "",
                                 STR_ARG(topic->name), p->partition_index,
                                 err_name(err_from_wire(p->error_code)));
        assert_int_equal(str_is_null(p->error_message), p->error_code == 0);
    }
    assert_string_equal(text, expected);
    scene_apply(s);
}

/* Partition a-0. */
static void move(struct scene *s, const char *target, const char *error)
{
    struct wish wish = {"a", 0, target};
    char expected[64];

    snprintf(expected, sizeof(expected), "a-0 %s", error);
    ask(s, &wish, 1, true, expected);
}

/* The in-sync set of a-0, in the order in which AlterPartition leaves it. */
static void in_sync(struct scene *s, const char *isr)
{
    struct metadata_topic *topic = metadata_find_topic(s->image, STR_LIT("a"));
    struct metadata_partition p = topic->partitions[0];
    int32_t ids[SCENE_IDS_MAX];

    p.isr = scene_ids(ids, isr);
    p.partition_epoch++;
    scene_set(s, "a", 0, &p);
}

static void go_on(struct scene *s, int32_t expected)
{
    controller_plan_reassignments(s->image, &s->plan);
    assert_int_equal(s->plan.count, expected);
    scene_apply(s);
}

static void listed(struct scene *s, const char *topic, int32_t index, const char *expected)
{
    struct list_partition_reassignments_request in;
    struct list_partition_reassignments_request_topic one;
    struct list_partition_reassignments_response out;
    char text[128] = "";
    size_t n = 0;

    wire_init(&list_partition_reassignments_request_schema, &in);
    wire_init(&list_partition_reassignments_response_schema, &out);
    in.topics.n = topic ? 1 : -1;
    in.topics.v = &one;
    one.name = str_of(topic);
    one.partition_indexes.v = &index;
    one.partition_indexes.n = 1;
    controller_list_reassignments(s->image, &in, &s->arena, &out);
    for (int32_t t = 0; t < out.topics.n; t++)
        for (int32_t i = 0; i < out.topics.v[t].partitions.n; i++) {
            const struct list_partition_reassignments_response_partition *p =
                &out.topics.v[t].partitions.v[i];

            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s-%d %d+%d-%d", n ? ", " : "",
                                  STR_ARG(out.topics.v[t].name), p->partition_index, p->replicas.n,
                                  p->adding_replicas.n, p->removing_replicas.n);
        }
    assert_string_equal(text, expected);
}

/* ---- the course of a move --------------------------------------------------------------- */

static void a_move_ends_when_its_target_is_in_sync(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3,4,5");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2,3 isr 1,2,3");
    move(&s, "4,5,3", "NONE");
    scene_is(&s, "a-0 leader 1 (6,10) replicas 4,5,3,1,2 isr 1,2,3 adding 4,5 removing 1,2");
    go_on(&s, 0);
    in_sync(&s, "1,2,3,4");
    go_on(&s, 0);
    in_sync(&s, "1,2,3,4,5");
    go_on(&s, 1);
    scene_is(&s, "a-0 leader 4 (7,13) replicas 4,5,3 isr 3,4,5");
    go_on(&s, 0);
    scene_end(&s);
}

/* It has another assignment, so it leads in another epoch all the same. */
static void a_leader_that_stays_leads_on(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3,4");
    scene_partition(&s, "a-0 leader 2 (5,9) replicas 1,2,3 isr 2,1,3");
    move(&s, "4,2", "NONE");
    scene_is(&s, "a-0 leader 2 (6,10) replicas 4,2,1,3 isr 2,1,3 adding 4 removing 1,3");
    in_sync(&s, "2,1,3,4");
    go_on(&s, 1);
    scene_is(&s, "a-0 leader 2 (7,12) replicas 4,2 isr 2,4");
    scene_end(&s);
}

static void what_needs_nobody_new_is_done_at_once(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2,3 isr 1,2,3");
    move(&s, "3,1,2", "NONE");
    scene_is(&s, "a-0 leader 1 (6,10) replicas 3,1,2 isr 1,2,3");
    move(&s, "3,2", "NONE");
    scene_is(&s, "a-0 leader 3 (7,11) replicas 3,2 isr 2,3");
    move(&s, "3,2", "NONE");
    scene_is(&s, "a-0 leader 3 (7,11) replicas 3,2 isr 2,3");
    scene_end(&s);
}

static void more_replicas_are_a_move_too(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1 isr 1");
    move(&s, "1,2,3", "NONE");
    scene_is(&s, "a-0 leader 1 (6,10) replicas 1,2,3 isr 1 adding 2,3");
    in_sync(&s, "1,2,3");
    go_on(&s, 1);
    scene_is(&s, "a-0 leader 1 (7,12) replicas 1,2,3 isr 1,2,3");
    scene_end(&s);
}

/* Nobody could lead: the partition stays where it is until one of them returns. */
static void a_move_does_not_end_with_the_dead(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 2,1 isr 1,2 adding 2 removing 1");
    scene_goes(&s, 2);
    go_on(&s, 0);
    scene_brokers(&s, "2");
    go_on(&s, 1);
    scene_is(&s, "a-0 leader 2 (6,10) replicas 2 isr 2");
    scene_end(&s);
}

/* ---- other wishes on the way ------------------------------------------------------------- */

static void a_move_that_is_cancelled_leaves_what_was_there(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3,4,5");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2,3 isr 1,2,3");
    move(&s, "4,5", "NONE");
    in_sync(&s, "1,2,3,4");
    move(&s, CANCEL, "NONE");
    scene_is(&s, "a-0 leader 1 (7,12) replicas 1,2,3 isr 1,2,3");
    move(&s, CANCEL, "NO_REASSIGNMENT_IN_PROGRESS");
    scene_end(&s);
}

static void a_leader_that_came_with_a_cancelled_move_is_followed(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3,4");
    scene_partition(&s, "a-0 leader 4 (5,9) replicas 4,3,1,2 isr 4,2 adding 4 removing 1,2");
    move(&s, CANCEL, "NONE");
    scene_is(&s, "a-0 leader 2 (6,10) replicas 3,1,2 isr 2");
    scene_end(&s);
}

static void another_target_counts_from_what_was_there_first(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3,4,5");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    move(&s, "3,4", "NONE");
    in_sync(&s, "1,2,3");
    move(&s, "4,5", "NONE");
    scene_is(&s, "a-0 leader 1 (7,12) replicas 4,5,1,2 isr 1,2 adding 4,5 removing 1,2");
    move(&s, "4,5", "NONE");
    scene_is(&s, "a-0 leader 1 (7,12) replicas 4,5,1,2 isr 1,2 adding 4,5 removing 1,2");
    scene_end(&s);
}

/* All that was acknowledged is on broker 3 alone (I1). */
static void who_alone_is_in_sync_is_not_sent_away(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3,4");
    scene_partition(&s, "a-0 leader 3 (5,9) replicas 3,1,2 isr 3 adding 3 removing 1,2");
    move(&s, CANCEL, "INVALID_REPLICA_ASSIGNMENT");
    move(&s, "4", "INVALID_REPLICA_ASSIGNMENT");
    scene_is(&s, "a-0 leader 3 (5,9) replicas 3,1,2 isr 3 adding 3 removing 1,2");
    move(&s, "3,4", "NONE");
    scene_is(&s, "a-0 leader 3 (6,10) replicas 3,4,1,2 isr 3 adding 3,4 removing 1,2");
    scene_end(&s);
}

/* ---- wishes that are refused ------------------------------------------------------------- */

static void targets_are_checked(void **state)
{
    struct scene s;
    struct wish wish = {"a", 0, "1,3"};

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2,9 isr 1,2");
    move(&s, "", "INVALID_REPLICA_ASSIGNMENT");
    move(&s, "1,1", "INVALID_REPLICA_ASSIGNMENT");
    move(&s, "1,4", "INVALID_REPLICA_ASSIGNMENT");
    move(&s, "1,2,3,1,2,3,1", "INVALID_REPLICA_ASSIGNMENT");
    ask(&s, &wish, 1, false, "a-0 INVALID_REPLICATION_FACTOR");
    scene_is(&s, "a-0 leader 1 (5,9) replicas 1,2,9 isr 1,2");
    wish.target = "1,3,2";
    ask(&s, &wish, 1, false, "a-0 NONE");
    scene_is(&s, "a-0 leader 1 (6,10) replicas 1,3,2,9 isr 1,2 adding 3 removing 9");
    wish.target = "1,2";
    ask(&s, &wish, 1, false, "a-0 INVALID_REPLICATION_FACTOR");
    wish.target = "3,2,1";
    ask(&s, &wish, 1, false, "a-0 NONE");
    move(&s, "9,1", "NONE"); /* who is dead may keep what it has */
    scene_end(&s);
}

static void a_negative_broker_is_none(void **state)
{
    struct scene s;
    struct alter_partition_reassignments_request in;
    struct alter_partition_reassignments_request_topic topic;
    struct alter_partition_reassignments_request_partition p;
    struct alter_partition_reassignments_response out;
    int32_t ids[] = {1, -1};

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    wire_init(&alter_partition_reassignments_request_schema, &in);
    wire_init(&alter_partition_reassignments_response_schema, &out);
    p.partition_index = 0;
    p.replicas.v = ids;
    p.replicas.n = 2;
    topic.name = STR_LIT("a");
    topic.partitions.v = &p;
    topic.partitions.n = 1;
    in.topics.v = &topic;
    in.topics.n = 1;
    controller_reassign(s.image, &in, &s.arena, &out, &s.plan);
    assert_true(str_eq(out.responses.v[0].partitions.v[0].error_message,
                       STR_LIT("-1 is not the id of a broker")));
    assert_int_equal(s.plan.count, 0);
    scene_end(&s);
}

static void what_is_not_there_does_not_move(void **state)
{
    struct scene s;
    struct wish unknown[] = {{"b", 0, "1"}, {"a", 7, "1"}};
    struct wish twice[] = {{"a", 0, "3,1"}, {"a", 0, "1,3"}};
    struct metadata_topic *gone;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    ask(&s, unknown, 2, true, "b-0 UNKNOWN_TOPIC_OR_PARTITION, a-7 UNKNOWN_TOPIC_OR_PARTITION");
    move(&s, CANCEL, "NO_REASSIGNMENT_IN_PROGRESS");
    ask(&s, twice, 2, true, "a-0 NONE, a-0 INVALID_REQUEST");
    scene_is(&s, "a-0 leader 1 (6,10) replicas 3,1,2 isr 1,2 adding 3 removing 2");
    gone = metadata_topic_copy(metadata_find_topic(s.image, STR_LIT("a")));
    gone->is_deleting = true;
    metadata_delta_put_topic(&s.plan, gone);
    scene_apply(&s);
    move(&s, "1", "UNKNOWN_TOPIC_OR_PARTITION");
    listed(&s, NULL, 0, "");
    scene_end(&s);
}

static void what_moves_is_listed(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    scene_partition(&s, "b-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    scene_partition(&s, "b-1 leader 1 (5,9) replicas 1,3,2 isr 1,2 adding 3 removing 2");
    listed(&s, NULL, 0, "b-1 3+1-1");
    listed(&s, "b", 1, "b-1 3+1-1");
    listed(&s, "b", 0, "");
    listed(&s, "b", 2, "");
    listed(&s, "c", 0, "");
    scene_end(&s);
}

/* ---- what follows from a move ------------------------------------------------------------ */

/* What a change needs besides the partition's state. */
static void a_plan_says_when_the_assignment_is_another(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,3,2 isr 1,2,3 adding 3 removing 2");
    controller_plan_reassignments(s.image, &s.plan);
    assert_true(controller_changes_assignment(s.image, &s.plan.changes[0]));
    metadata_delta_fini(&s.plan);
    assert_int_equal(controller_plan_shutdown(s.image, 1, &s.plan), 0);
    assert_int_equal(s.plan.count, 1);
    assert_false(controller_changes_assignment(s.image, &s.plan.changes[0]));
    metadata_delta_remove_topic(&s.plan, STR_LIT("a"));
    assert_false(controller_changes_assignment(s.image, &s.plan.changes[1]));
    scene_end(&s);
}

static void orders_to(struct scene *s, const struct metadata_image *before, int32_t id,
                      struct controller_orders *out)
{
    controller_orders(before, s->image, id, STR_LIT("PLAINTEXT"), &s->arena, out);
}

static void who_gains_a_replica_makes_it_and_who_loses_one_deletes_it(void **state)
{
    struct scene s;
    struct metadata_image *before;
    struct controller_orders o;
    const struct leader_and_isr_request_partition *role;
    const struct stop_replica_request_partition *stop;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    before = metadata_image_get(s.image);
    move(&s, "3,2", "NONE");
    orders_to(&s, before, 3, &o);
    role = &o.roles->topic_states.v[0].partition_states.v[0];
    assert_true(role->is_new);
    assert_int_equal(role->adding_replicas.n, 1);
    orders_to(&s, before, 1, &o);
    assert_false(o.roles->topic_states.v[0].partition_states.v[0].is_new);
    assert_null(o.stops);
    metadata_image_put(before);

    in_sync(&s, "1,2,3");
    before = metadata_image_get(s.image);
    go_on(&s, 1);
    orders_to(&s, before, 1, &o);
    assert_null(o.roles);
    assert_int_equal(o.stops->topic_states.n, 1);
    stop = &o.stops->topic_states.v[0].partition_states.v[0];
    assert_true(stop->delete_partition);
    assert_int_equal(stop->leader_epoch, 7);
    orders_to(&s, before, 2, &o);
    assert_non_null(o.roles);
    assert_null(o.stops);
    metadata_image_put(before);
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_move_ends_when_its_target_is_in_sync),
        cmocka_unit_test(a_leader_that_stays_leads_on),
        cmocka_unit_test(what_needs_nobody_new_is_done_at_once),
        cmocka_unit_test(more_replicas_are_a_move_too),
        cmocka_unit_test(a_move_does_not_end_with_the_dead),
        cmocka_unit_test(a_move_that_is_cancelled_leaves_what_was_there),
        cmocka_unit_test(a_leader_that_came_with_a_cancelled_move_is_followed),
        cmocka_unit_test(another_target_counts_from_what_was_there_first),
        cmocka_unit_test(who_alone_is_in_sync_is_not_sent_away),
        cmocka_unit_test(targets_are_checked),
        cmocka_unit_test(a_negative_broker_is_none),
        cmocka_unit_test(what_is_not_there_does_not_move),
        cmocka_unit_test(what_moves_is_listed),
        cmocka_unit_test(a_plan_says_when_the_assignment_is_another),
        cmocka_unit_test(who_gains_a_replica_makes_it_and_who_loses_one_deletes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
