/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transcripts of offsets: commit, fetch, deletion, expiry, and groups that are deleted. testing.h
 * describes their language.
 */
#include "group/testing.h"

static void a_group_without_members_keeps_offsets(void **state)
{
    (void)state;
    check_at_once("> c commit g v=8 t1/0=5:note t1/1=6 nowhere/0=1\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "  g t1/1 6\n"
                  "c committed t1/0=NONE t1/1=NONE nowhere/0=UNKNOWN_TOPIC_OR_PARTITION\n"
                  "> fetch g t1/0 t1/1 t1/2\n"
                  "offsets t1/0=5:note t1/1=6: t1/2=-1:\n"
                  "> fetch g\n"
                  "offsets t1/0=5:note t1/1=6:\n"
                  "> describe g\n"
                  "NONE state=Empty type= protocol=\n"
                  "> list\n"
                  "groups g::Empty\n"
                  "> list Stable\n"
                  "groups\n"
                  "> fetch other t1/0\n"
                  "offsets t1/0=-1:\n"
                  "> fetch other\n"
                  "offsets\n");
}

static void an_unknown_group_with_a_generation_cannot_commit(void **state)
{
    (void)state;
    check_at_once("> c commit g v=8 gen=1 member=x t1/0=5\n"
                  "c committed t1/0=ILLEGAL_GENERATION\n"
                  "> c commit g v=9 gen=1 member=x t1/0=5\n"
                  "c committed t1/0=GROUP_ID_NOT_FOUND\n"
                  "> list\n"
                  "groups\n");
}

static void only_members_of_the_generation_commit_while_there_are_any(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> c commit g member=m1 gen=1 t1/0=5\n"
                  "c committed t1/0=REBALANCE_IN_PROGRESS\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> c commit g t1/0=5\n"
                  "c committed t1/0=UNKNOWN_MEMBER_ID\n"
                  "> c commit g member=x gen=1 t1/0=5\n"
                  "c committed t1/0=UNKNOWN_MEMBER_ID\n"
                  "> c commit g member=m1 gen=2 t1/0=5\n"
                  "c committed t1/0=ILLEGAL_GENERATION\n"
                  "> c commit g member=m1 gen=1 t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> b join g v=3 range=t1\n"
                  "> c commit g member=m1 gen=1 t1/0=6\n"
                  "write:\n"
                  "  g t1/0 6\n"
                  "c committed t1/0=NONE\n"
                  "> fetch g\n"
                  "offsets t1/0=6:\n");
}

static void an_offset_is_visible_when_it_is_committed(void **state)
{
    (void)state;
    check_at_once("> hold\n"
                  "> c commit g t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "> fetch g t1/0\n"
                  "offsets t1/0=-1:\n"
                  "> d commit g t1/0=6\n"
                  "write:\n"
                  "  g t1/0 6\n"
                  "> written\n"
                  "c committed t1/0=NONE\n"
                  "> fetch g t1/0\n"
                  "offsets t1/0=5:\n"
                  "> written\n"
                  "d committed t1/0=NONE\n"
                  "> fetch g t1/0\n"
                  "offsets t1/0=6:\n");
}

static void an_offset_that_was_not_written_is_not_there(void **state)
{
    (void)state;
    check_at_once("> c commit g t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> hold\n"
                  "> d commit g t1/0=6\n"
                  "write:\n"
                  "  g t1/0 6\n"
                  "> failed NO_SPACE\n"
                  "d committed t1/0=NOT_COORDINATOR\n"
                  "> fetch g t1/0\n"
                  "offsets t1/0=5:\n");
}

static void a_commit_that_takes_too_long_is_an_error_and_may_still_count(void **state)
{
    (void)state;
    check_at_once("> hold\n"
                  "> c commit g t1/0=5 nowhere/0=1\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "> after 3000\n"
                  "> d commit g t1/0=6\n"
                  "write:\n"
                  "  g t1/0 6\n"
                  "> until 5000\n"
                  "c committed t1/0=COORDINATOR_NOT_AVAILABLE"
                  " nowhere/0=UNKNOWN_TOPIC_OR_PARTITION\n"
                  "(at 6000)\n"
                  "d committed t1/0=COORDINATOR_NOT_AVAILABLE\n"
                  "(at 9000)\n"
                  "> fetch g t1/0\n"
                  "offsets t1/0=-1:\n"
                  "> written\n"
                  "> fetch g t1/0\n"
                  "offsets t1/0=5:\n"
                  "> failed NO_SPACE\n"
                  "> fetch g t1/0\n"
                  "offsets t1/0=5:\n"
                  "> e commit g t1/0=7\n"
                  "write:\n"
                  "  g t1/0 7\n"
                  "> after 4999\n"
                  "> written\n"
                  "e committed t1/0=NONE\n");
}

static void a_removal_that_takes_too_long_is_an_error_and_may_still_count(void **state)
{
    (void)state;
    check_at_once("> c commit g t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> hold\n"
                  "> d delete g\n"
                  "write:\n"
                  "  g t1/0 gone\n"
                  "  g gone\n"
                  "> until 5000\n"
                  "d COORDINATOR_NOT_AVAILABLE\n"
                  "(at 6000)\n"
                  "> fetch g t1/0\n"
                  "offsets t1/0=5:\n"
                  "> written\n"
                  "> list\n"
                  "groups\n");
}

static void too_much_metadata_is_refused_for_that_partition(void **state)
{
    (void)state;
    check_at_once("> c commit g t1/0=5:seventeen-letters t1/1=6:sixteen-letters!\n"
                  "write:\n"
                  "  g t1/1 6\n"
                  "c committed t1/0=OFFSET_METADATA_TOO_LARGE t1/1=NONE\n");
}

static void a_new_coordinator_knows_what_was_committed(void **state)
{
    (void)state;
    check_at_once("> c commit g t1/0=5:note\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> hold\n"
                  "> d commit g t1/0=6\n"
                  "write:\n"
                  "  g t1/0 6\n"
                  "> restart\n"
                  "d committed t1/0=NOT_COORDINATOR\n"
                  "> fetch g\n"
                  "offsets t1/0=5:note\n"
                  "> describe g\n"
                  "NONE state=Empty type= protocol=\n");
}

static void groups_are_deleted_with_their_offsets(void **state)
{
    (void)state;
    check_at_once("> c commit g t1/0=5 t1/1=6\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "  g t1/1 6\n"
                  "c committed t1/0=NONE t1/1=NONE\n"
                  "> d delete g\n"
                  "write:\n"
                  "  g t1/0 gone\n"
                  "  g t1/1 gone\n"
                  "  g gone\n"
                  "d NONE\n"
                  "> fetch g\n"
                  "offsets\n"
                  "> d delete g\n"
                  "d GROUP_ID_NOT_FOUND\n"
                  "> restart\n"
                  "> list\n"
                  "groups\n");
}

static void a_group_with_members_is_not_deleted(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> d delete g\n"
                  "d NON_EMPTY_GROUP\n");
}

static void a_group_is_not_deleted_over_a_write_in_flight(void **state)
{
    (void)state;
    check_at_once("> c commit g t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> hold\n"
                  "> c commit g t1/0=6\n"
                  "write:\n"
                  "  g t1/0 6\n"
                  "> d delete g\n"
                  "d COORDINATOR_LOAD_IN_PROGRESS\n"
                  "> written\n"
                  "c committed t1/0=NONE\n"
                  "> d delete g\n"
                  "write:\n"
                  "  g t1/0 gone\n"
                  "  g gone\n"
                  "> written\n"
                  "d NONE\n"
                  "> list\n"
                  "groups\n");
}

static void somebody_who_joins_while_a_group_is_deleted_has_a_new_group(void **state)
{
    (void)state;
    check_at_once("> c commit g t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> hold\n"
                  "> d delete g\n"
                  "write:\n"
                  "  g t1/0 gone\n"
                  "  g gone\n"
                  "> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> written\n"
                  "d NONE\n"
                  "> fetch g\n"
                  "offsets\n"
                  "> describe g\n"
                  "NONE state=CompletingRebalance type=consumer protocol= m1@c/127.0.0.1:=\n");
}

static void offsets_of_subscribed_topics_are_not_deleted(void **state)
{
    (void)state;
    check_at_once("> o offset-delete g t1/0\n"
                  "o GROUP_ID_NOT_FOUND\n"
                  "> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> c commit g member=m1 gen=1 t1/0=5 t2/0=6\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "  g t2/0 6\n"
                  "c committed t1/0=NONE t2/0=NONE\n"
                  "> o offset-delete g t1/0 t2/0 t2/1\n"
                  "write:\n"
                  "  g t2/0 gone\n"
                  "o NONE t1/0=GROUP_SUBSCRIBED_TO_TOPIC t2/0=NONE t2/1=NONE\n"
                  "> fetch g\n"
                  "offsets t1/0=5:\n");
}

static void offsets_of_another_kind_of_group_are_deleted_when_it_is_empty(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 type=connect range=x\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:x\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=connect protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> c commit g member=m1 gen=1 t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> o offset-delete g t1/0\n"
                  "o NON_EMPTY_GROUP\n"
                  "> l leave g v=3 m1\n"
                  "l NONE m1=NONE\n"
                  "write:\n"
                  "  g generation=2 type=connect\n"
                  "> o offset-delete g t1/0\n"
                  "write:\n"
                  "  g t1/0 gone\n"
                  "o NONE t1/0=NONE\n"
                  "> fetch g\n"
                  "offsets\n");
}

static void offsets_of_a_topic_that_is_gone_are_forgotten(void **state)
{
    (void)state;
    check_at_once("> c commit g t1/0=5 t2/0=6\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "  g t2/0 6\n"
                  "c committed t1/0=NONE t2/0=NONE\n"
                  "> c commit h t2/1=7\n"
                  "write:\n"
                  "  h t2/1 7\n"
                  "c committed t2/1=NONE\n"
                  "> topic-gone t2\n"
                  "write:\n"
                  "  g t2/0 gone\n"
                  "write:\n"
                  "  h t2/1 gone\n"
                  "> fetch g\n"
                  "offsets t1/0=5:\n"
                  "> list\n"
                  "groups g::Empty\n"
                  "> restart\n"
                  "> fetch g\n"
                  "offsets t1/0=5:\n");
}

static void offsets_expire_a_retention_after_the_group_became_empty(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> c commit g member=m1 gen=1 t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> after 5000\n"
                  "> l leave g v=3 m1\n"
                  "l NONE m1=NONE\n"
                  "write:\n"
                  "  g generation=2 type=consumer\n"
                  "> after 604000000\n"
                  "> fetch g\n"
                  "offsets t1/0=5:\n"
                  "> after 800000\n"
                  "write:\n"
                  "  g t1/0 gone\n"
                  "  g gone\n"
                  "> fetch g\n"
                  "offsets\n"
                  "> list\n"
                  "groups\n"
                  "> restart\n"
                  "> list\n"
                  "groups\n");
}

static void offsets_without_members_expire_a_retention_after_their_commit(void **state)
{
    (void)state;
    check_at_once("> c commit g t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> after 604200000\n"
                  "> c commit g t1/1=6\n"
                  "write:\n"
                  "  g t1/1 6\n"
                  "c committed t1/1=NONE\n"
                  "> after 1200000\n"
                  "write:\n"
                  "  g t1/0 gone\n"
                  "> fetch g\n"
                  "offsets t1/1=6:\n"
                  "> after 604800000\n"
                  "write:\n"
                  "  g t1/1 gone\n"
                  "> list\n"
                  "groups\n");
}

static void offsets_of_topics_in_use_do_not_expire(void **state)
{
    (void)state;
    check_soon_expired("> a join g v=3 session=1800000 range=t1\n"
                       "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                       "> sa sync g member=m1 gen=1 m1=A\n"
                       "write:\n"
                       "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                       "sa NONE assignment=A\n"
                       "> c commit g member=m1 gen=1 t1/0=5 t2/0=6\n"
                       "write:\n"
                       "  g t1/0 5\n"
                       "  g t2/0 6\n"
                       "c committed t1/0=NONE t2/0=NONE\n"
                       "> after 1200000\n"
                       "write:\n"
                       "  g t2/0 gone\n"
                       "> fetch g\n"
                       "offsets t1/0=5:\n");
}

static void offsets_of_members_that_are_not_consumers_do_not_expire(void **state)
{
    (void)state;
    check_soon_expired("> a join g v=3 session=1800000 type=connect range=x\n"
                       "a member=m1 generation=1 protocol=range leader=m1 m1:x\n"
                       "> sa sync g member=m1 gen=1 m1=A\n"
                       "write:\n"
                       "  g generation=1 type=connect protocol=range leader=m1 m1=A\n"
                       "sa NONE assignment=A\n"
                       "> c commit g member=m1 gen=1 t1/0=5\n"
                       "write:\n"
                       "  g t1/0 5\n"
                       "c committed t1/0=NONE\n"
                       "> after 1200000\n"
                       "> fetch g\n"
                       "offsets t1/0=5:\n");
}

static void a_client_may_ask_for_an_expiry_of_its_own(void **state)
{
    (void)state;
    check_at_once("> c commit g v=3 retention=1000000 t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> c commit g v=3 t1/1=6\n"
                  "write:\n"
                  "  g t1/1 6\n"
                  "c committed t1/1=NONE\n"
                  "> restart\n"
                  "> after 600000\n"
                  "> fetch g\n"
                  "offsets t1/0=5: t1/1=6:\n"
                  "> after 600000\n"
                  "write:\n"
                  "  g t1/0 gone\n"
                  "> fetch g\n"
                  "offsets t1/1=6:\n");
}

static void offsets_are_in_use_before_the_first_generation_too(void **state)
{
    (void)state;
    check_transcript("> c commit g t1/0=5 t2/0=6\n"
                     "write:\n"
                     "  g t1/0 5\n"
                     "  g t2/0 6\n"
                     "c committed t1/0=NONE t2/0=NONE\n"
                     "> a join g v=3 range=t1\n"
                     "> o offset-delete g t1/0 t2/0\n"
                     "write:\n"
                     "  g t2/0 gone\n"
                     "o NONE t1/0=GROUP_SUBSCRIBED_TO_TOPIC t2/0=NONE\n");
}

static void a_commit_while_the_group_prepares_restarts_the_session(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 session=6000 rebalance=30000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g v=3 session=60000 rebalance=30000 range=t1\n"
                  "> after 5000\n"
                  "> c commit g member=m1 gen=1 t1/0=5\n"
                  "write:\n"
                  "  g t1/0 5\n"
                  "c committed t1/0=NONE\n"
                  "> until 5999\n"
                  "> h beat g member=m1 gen=1\n"
                  "h REBALANCE_IN_PROGRESS\n");
}

static void topics_of_all_members_are_in_use(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t3,t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t3,t1\n"
                  "> b join g v=3 range=t2,t1\n"
                  "> a join g v=3 member=m1 range=t3,t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t3,t1 m2:t2,t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "> c commit g member=m1 gen=2 t1/0=1 t2/0=2 t3/0=3 t4/0=4\n"
                  "write:\n"
                  "  g t1/0 1\n"
                  "  g t2/0 2\n"
                  "  g t3/0 3\n"
                  "  g t4/0 4\n"
                  "c committed t1/0=NONE t2/0=NONE t3/0=NONE t4/0=NONE\n"
                  "> o offset-delete g t1/0 t2/0 t3/0 t4/0\n"
                  "write:\n"
                  "  g t4/0 gone\n"
                  "o NONE t1/0=GROUP_SUBSCRIBED_TO_TOPIC t2/0=GROUP_SUBSCRIBED_TO_TOPIC"
                  " t3/0=GROUP_SUBSCRIBED_TO_TOPIC t4/0=NONE\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_without_members_keeps_offsets),
        cmocka_unit_test(an_unknown_group_with_a_generation_cannot_commit),
        cmocka_unit_test(only_members_of_the_generation_commit_while_there_are_any),
        cmocka_unit_test(an_offset_is_visible_when_it_is_committed),
        cmocka_unit_test(an_offset_that_was_not_written_is_not_there),
        cmocka_unit_test(a_commit_that_takes_too_long_is_an_error_and_may_still_count),
        cmocka_unit_test(a_removal_that_takes_too_long_is_an_error_and_may_still_count),
        cmocka_unit_test(too_much_metadata_is_refused_for_that_partition),
        cmocka_unit_test(a_new_coordinator_knows_what_was_committed),
        cmocka_unit_test(groups_are_deleted_with_their_offsets),
        cmocka_unit_test(a_group_with_members_is_not_deleted),
        cmocka_unit_test(a_group_is_not_deleted_over_a_write_in_flight),
        cmocka_unit_test(somebody_who_joins_while_a_group_is_deleted_has_a_new_group),
        cmocka_unit_test(offsets_of_subscribed_topics_are_not_deleted),
        cmocka_unit_test(offsets_of_another_kind_of_group_are_deleted_when_it_is_empty),
        cmocka_unit_test(offsets_of_a_topic_that_is_gone_are_forgotten),
        cmocka_unit_test(offsets_expire_a_retention_after_the_group_became_empty),
        cmocka_unit_test(offsets_without_members_expire_a_retention_after_their_commit),
        cmocka_unit_test(offsets_of_topics_in_use_do_not_expire),
        cmocka_unit_test(offsets_of_members_that_are_not_consumers_do_not_expire),
        cmocka_unit_test(a_client_may_ask_for_an_expiry_of_its_own),
        cmocka_unit_test(offsets_are_in_use_before_the_first_generation_too),
        cmocka_unit_test(a_commit_while_the_group_prepares_restarts_the_session),
        cmocka_unit_test(topics_of_all_members_are_in_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
