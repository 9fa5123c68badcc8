/* SPDX-License-Identifier: Apache-2.0 */
/* Elections on request, and leaderships that go back to where they belong. */
#include "controller/scene_test_int.h"

#define PREFERRED 0
#define UNCLEAN 1

/* The errors of all answers, "a-0 NONE, a-1 ELECTION_NOT_NEEDED"; carries the plan out. */
static void ask(struct scene *s, struct elect_leaders_request *in, const char *expected)
{
    struct elect_leaders_response out;
    char text[256] = "";
    size_t n = 0;

    wire_init(&elect_leaders_response_schema, &out);
    controller_elect(s->image, in, &s->arena, &out, &s->plan);
    scene_apply(s);
    if (out.error_code)
        n += (size_t)snprintf(text, sizeof(text), "%s", err_name(err_from_wire(out.error_code)));
    for (int32_t t = 0; t < out.replica_election_results.n; t++) {
        const struct elect_leaders_response_topic *topic = &out.replica_election_results.v[t];

        for (int32_t i = 0; i < topic->partition_result.n; i++) {
            const struct elect_leaders_response_partition *p = &topic->partition_result.v[i];

            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s-%d %s", n ? ", " : "",
                                  STR_ARG(topic->topic), p->partition_id,
                                  err_name(err_from_wire(p->error_code)));
            assert_int_equal(str_is_null(p->error_message), p->error_code == 0);
        }
    }
    assert_string_equal(text, expected);
}

static void ask_for_all(struct scene *s, int8_t type, const char *expected)
{
    struct elect_leaders_request in;

    wire_init(&elect_leaders_request_schema, &in);
    in.election_type = type;
    in.topic_partitions.n = -1;
    ask(s, &in, expected);
}

static void ask_for(struct scene *s, int8_t type, const char *topic, int32_t index,
                    const char *expected)
{
    struct elect_leaders_request in;
    struct elect_leaders_request_topic one;

    wire_init(&elect_leaders_request_schema, &in);
    wire_init(&elect_leaders_request_topic_schema, &one);
    one.topic = str_of(topic);
    one.partitions.v = &index;
    one.partitions.n = 1;
    in.election_type = type;
    in.topic_partitions.v = &one;
    in.topic_partitions.n = 1;
    ask(s, &in, expected);
}

static void leadership_goes_to_the_preferred_replica(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 2 (5,9) replicas 1,2,3 isr 2,3,1");
    ask_for(&s, PREFERRED, "a", 0, "a-0 NONE");
    scene_is(&s, "a-0 leader 1 (6,10) replicas 1,2,3 isr 2,3,1");
    ask_for(&s, PREFERRED, "a", 0, "a-0 ELECTION_NOT_NEEDED");
    scene_is(&s, "a-0 leader 1 (6,10) replicas 1,2,3 isr 2,3,1");
    scene_end(&s);
}

static void a_preferred_replica_has_to_be_alive_and_in_sync(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 2 (5,9) replicas 1,2 isr 2");
    scene_partition(&s, "a-1 leader 2 (5,9) replicas 3,2 isr 2,3");
    ask_for_all(&s, PREFERRED,
                "a-0 PREFERRED_LEADER_NOT_AVAILABLE, a-1 PREFERRED_LEADER_NOT_AVAILABLE");
    scene_is(&s, "a-0 leader 2 (5,9) replicas 1,2 isr 2");
    scene_is(&s, "a-1 leader 2 (5,9) replicas 3,2 isr 2,3");
    scene_end(&s);
}

static void an_unclean_election_takes_who_is_alive(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader -1 (5,9) replicas 4,3,2 isr 4");
    ask_for(&s, UNCLEAN, "a", 0, "a-0 NONE");
    scene_is(&s, "a-0 leader 3 (6,10) replicas 4,3,2 isr 3");
    ask_for(&s, UNCLEAN, "a", 0, "a-0 ELECTION_NOT_NEEDED");
    scene_end(&s);
}

static void an_unclean_election_prefers_who_is_in_sync(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader -1 (5,9) replicas 3,2,4 isr 4,2");
    ask_for(&s, UNCLEAN, "a", 0, "a-0 NONE");
    scene_is(&s, "a-0 leader 2 (6,10) replicas 3,2,4 isr 4,2");
    scene_end(&s);
}

static void an_unclean_election_needs_somebody(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1");
    scene_partition(&s, "a-0 leader -1 (5,9) replicas 2,3 isr 2");
    ask_for(&s, UNCLEAN, "a", 0, "a-0 ELIGIBLE_LEADERS_NOT_AVAILABLE");
    scene_is(&s, "a-0 leader -1 (5,9) replicas 2,3 isr 2");
    scene_end(&s);
}

static void what_is_not_there_is_not_elected(void **state)
{
    struct scene s;
    struct metadata_topic *gone;

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 2 (5,9) replicas 1,2 isr 2,1");
    ask_for(&s, PREFERRED, "b", 0, "b-0 UNKNOWN_TOPIC_OR_PARTITION");
    ask_for(&s, PREFERRED, "a", 1, "a-1 UNKNOWN_TOPIC_OR_PARTITION");
    ask_for(&s, 2, "a", 0, "INVALID_REQUEST");
    gone = metadata_topic_copy(metadata_find_topic(s.image, STR_LIT("a")));
    gone->is_deleting = true;
    metadata_delta_put_topic(&s.plan, gone);
    scene_apply(&s);
    ask_for(&s, PREFERRED, "a", 0, "a-0 INVALID_TOPIC_EXCEPTION");
    ask_for_all(&s, PREFERRED, "");
    scene_end(&s);
}

static void who_asks_for_all_hears_only_of_what_was_needed(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    scene_partition(&s, "b-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    scene_partition(&s, "b-1 leader 1 (5,9) replicas 2,1 isr 1,2");
    ask_for_all(&s, PREFERRED, "b-1 NONE");
    scene_is(&s, "b-1 leader 2 (6,10) replicas 2,1 isr 1,2");
    scene_end(&s);
}

/* Both changes would be planned from the same state, and the second could not be stored. */
static void a_partition_that_is_named_twice_is_elected_once(void **state)
{
    struct scene s;
    struct elect_leaders_request in;
    struct elect_leaders_request_topic twice[2];
    int32_t indexes[] = {1, 0, 1};

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    scene_partition(&s, "a-1 leader 1 (5,9) replicas 2,1 isr 1,2");
    wire_init(&elect_leaders_request_schema, &in);
    for (int i = 0; i < 2; i++) {
        wire_init(&elect_leaders_request_topic_schema, &twice[i]);
        twice[i].topic = STR_LIT("a");
        twice[i].partitions.v = indexes;
        twice[i].partitions.n = i == 0 ? 3 : 1;
    }
    in.topic_partitions.v = twice;
    in.topic_partitions.n = 2;
    ask(&s, &in,
        "a-1 NONE, a-0 ELECTION_NOT_NEEDED, a-1 ELECTION_NOT_NEEDED, a-1 ELECTION_NOT_NEEDED");
    scene_is(&s, "a-1 leader 2 (6,10) replicas 2,1 isr 1,2");
    scene_end(&s);
}

/* ---- balance ---------------------------------------------------------------------------- */

static void rebalance(struct scene *s, int32_t percentage, int32_t expected)
{
    controller_plan_rebalance(s->image, percentage, &s->plan);
    assert_int_equal(s->plan.count, expected);
    scene_apply(s);
}

/* Broker 1 leads two of the three partitions that prefer it, broker 2 none of its two. */
static void set_out_of_balance(struct scene *s)
{
    scene_begin(s, "1,2,3");
    scene_partition(s, "a-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    scene_partition(s, "a-1 leader 1 (5,9) replicas 1,2 isr 1,2");
    scene_partition(s, "a-2 leader 2 (5,9) replicas 1,2 isr 1,2");
    scene_partition(s, "b-0 leader 3 (5,9) replicas 2,3 isr 3,2");
    scene_partition(s, "b-1 leader 3 (5,9) replicas 2,3 isr 3,2");
}

static void leaderships_go_back_to_brokers_that_lead_too_few(void **state)
{
    struct scene s;

    (void)state;
    set_out_of_balance(&s);
    rebalance(&s, 100, 0);
    rebalance(&s, 34, 2);
    scene_is(&s, "a-2 leader 2 (5,9) replicas 1,2 isr 1,2");
    scene_is(&s, "b-0 leader 2 (6,10) replicas 2,3 isr 3,2");
    scene_is(&s, "b-1 leader 2 (6,10) replicas 2,3 isr 3,2");
    rebalance(&s, 33, 1);
    scene_is(&s, "a-2 leader 1 (6,10) replicas 1,2 isr 1,2");
    rebalance(&s, 0, 0);
    scene_end(&s);
}

static void what_cannot_or_should_not_go_back_stays(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 2 (5,9) replicas 1,2 isr 2");
    scene_partition(&s, "a-1 leader 2 (5,9) replicas 4,2 isr 2,4");
    scene_partition(&s, "a-2 leader 2 (5,9) replicas 1,2,3 isr 1,2 adding 3");
    scene_partition(&s, "a-3 leader 2 (5,9) replicas 1,2,3 isr 1,2 adding - removing 3");
    rebalance(&s, 10, 0);
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leadership_goes_to_the_preferred_replica),
        cmocka_unit_test(a_preferred_replica_has_to_be_alive_and_in_sync),
        cmocka_unit_test(an_unclean_election_takes_who_is_alive),
        cmocka_unit_test(an_unclean_election_prefers_who_is_in_sync),
        cmocka_unit_test(an_unclean_election_needs_somebody),
        cmocka_unit_test(what_is_not_there_is_not_elected),
        cmocka_unit_test(who_asks_for_all_hears_only_of_what_was_needed),
        cmocka_unit_test(a_partition_that_is_named_twice_is_elected_once),
        cmocka_unit_test(leaderships_go_back_to_brokers_that_lead_too_few),
        cmocka_unit_test(what_cannot_or_should_not_go_back_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
