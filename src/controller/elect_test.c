/* SPDX-License-Identifier: Apache-2.0 */
/* Brokers that die, that want to stop, and of which nobody knows whether they are dead. */
#include "controller/scene_test_int.h"

static bool never(void *ctx, const struct metadata_topic *topic)
{
    (void)ctx;
    (void)topic;
    return false;
}

static void dies(struct scene *s, int32_t broker)
{
    const struct controller_rules rules = {.is_unclean = never};
    struct metadata_image *before = metadata_image_get(s->image);

    scene_goes(s, broker);
    controller_plan_brokers(before, s->image, &rules, &s->plan);
    metadata_image_put(before);
    scene_apply(s);
}

static void is_suspect(struct scene *s, int32_t broker)
{
    controller_plan_suspect(s->image, broker, &s->plan);
    scene_apply(s);
}

static void wants_to_stop(struct scene *s, int32_t broker, int32_t left)
{
    assert_int_equal(controller_plan_shutdown(s->image, broker, &s->plan), left);
    scene_apply(s);
}

static void who_dies_is_followed_by_the_next_in_sync(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2,3 isr 3,1");
    scene_partition(&s, "a-1 leader 3 (5,9) replicas 1,3 isr 1,3");
    dies(&s, 1);
    scene_is(&s, "a-0 leader 3 (6,10) replicas 1,2,3 isr 3");
    scene_is(&s, "a-1 leader 3 (6,10) replicas 1,3 isr 3");
    dies(&s, 3);
    scene_is(&s, "a-0 leader -1 (7,11) replicas 1,2,3 isr 3");
    scene_end(&s);
}

static void refuses(struct scene *s, const char *topic, int32_t broker)
{
    controller_plan_refusal(s->image, broker, metadata_find_topic(s->image, str_of(topic)), 0,
                            &s->plan);
    scene_apply(s);
}

static void who_has_lost_its_log_does_not_lead(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2,3 isr 1,2");
    scene_partition(&s, "b-0 leader 1 (5,9) replicas 1,2,3 isr 1,3");
    scene_partition(&s, "c-0 leader 1 (5,9) replicas 1,2,3 isr 1");
    scene_partition(&s, "d-0 leader 2 (5,9) replicas 1,2,3 isr 1,2");
    refuses(&s, "a", 1);
    refuses(&s, "b", 1);
    refuses(&s, "c", 1);
    refuses(&s, "d", 1);
    scene_is(&s, "a-0 leader 2 (6,10) replicas 1,2,3 isr 2");
    scene_is(&s, "b-0 leader -1 (6,10) replicas 1,2,3 isr 3"); /* who is dead has it all */
    scene_is(&s, "c-0 leader -1 (6,10) replicas 1,2,3 isr 1");
    scene_is(&s, "d-0 leader 2 (5,9) replicas 1,2,3 isr 1,2"); /* it does not lead any more */
    scene_end(&s);
}

/* Its successor does not wait for it, and its session is still there. */
static void who_is_suspect_loses_its_places(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2,3 isr 1,2,3");
    scene_partition(&s, "a-1 leader 3 (5,9) replicas 2,1,3 isr 2,1,3");
    scene_partition(&s, "a-2 leader 2 (5,9) replicas 2,3,1 isr 2,3");
    is_suspect(&s, 1);
    scene_is(&s, "a-0 leader 2 (6,10) replicas 1,2,3 isr 2,3");
    scene_is(&s, "a-1 leader 3 (6,10) replicas 2,1,3 isr 2,3");
    scene_is(&s, "a-2 leader 2 (5,9) replicas 2,3,1 isr 2,3");
    is_suspect(&s, 1);
    scene_is(&s, "a-0 leader 2 (6,10) replicas 1,2,3 isr 2,3");
    /* Then its session ends: nothing is left to be done. */
    dies(&s, 1);
    scene_is(&s, "a-0 leader 2 (6,10) replicas 1,2,3 isr 2,3");
    scene_end(&s);
}

/* It may be alive, and if it is not, nobody else has what was acknowledged. */
static void who_is_suspect_keeps_what_nobody_else_can_have(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1");
    scene_partition(&s, "a-1 leader 1 (5,9) replicas 1,3 isr 1,3");
    scene_partition(&s, "a-2 leader 1 (5,9) replicas 1 isr 1");
    is_suspect(&s, 1);
    scene_is(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1");
    scene_is(&s, "a-1 leader 1 (5,9) replicas 1,3 isr 1,3");
    scene_is(&s, "a-2 leader 1 (5,9) replicas 1 isr 1");
    scene_end(&s);
}

/* One after the other, until somebody is found who listens. */
static void several_suspects_end_with_who_is_none(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2,3");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2,3 isr 1,2,3");
    is_suspect(&s, 1);
    is_suspect(&s, 2);
    scene_is(&s, "a-0 leader 3 (7,11) replicas 1,2,3 isr 3");
    scene_end(&s);
}

static void who_wants_to_stop_waits_for_what_others_could_lead(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s, "1,2");
    scene_partition(&s, "a-0 leader 1 (5,9) replicas 1,2 isr 1,2");
    scene_partition(&s, "a-1 leader 1 (5,9) replicas 1,2 isr 1");
    scene_partition(&s, "a-2 leader 1 (5,9) replicas 1 isr 1");
    scene_partition(&s, "a-3 leader -1 (5,9) replicas 1,3 isr 3,1");
    wants_to_stop(&s, 1, 1);
    scene_is(&s, "a-0 leader 2 (6,10) replicas 1,2 isr 2");
    scene_is(&s, "a-1 leader 1 (5,9) replicas 1,2 isr 1");
    scene_is(&s, "a-2 leader 1 (5,9) replicas 1 isr 1");
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_dies_is_followed_by_the_next_in_sync),
        cmocka_unit_test(who_has_lost_its_log_does_not_lead),
        cmocka_unit_test(who_is_suspect_loses_its_places),
        cmocka_unit_test(who_is_suspect_keeps_what_nobody_else_can_have),
        cmocka_unit_test(several_suspects_end_with_who_is_none),
        cmocka_unit_test(who_wants_to_stop_waits_for_what_others_could_lead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
