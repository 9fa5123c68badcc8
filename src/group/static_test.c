/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transcripts of static members (KIP-345). testing.h describes their language.
 */
#include "group/testing.h"

static void a_static_member_joins_without_an_extra_round(void **state)
{
    (void)state;
    check_at_once("> a join g v=5 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> describe g\n"
                  "NONE state=Stable type=consumer protocol=range m1(i)@c/127.0.0.1:t1=A\n");
}

static void a_static_member_takes_its_place_again_without_a_rebalance(void **state)
{
    (void)state;
    check_at_once("> a join g v=5 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> b join g v=5 instance=k range=t1\n"
                  "> a join g v=5 instance=i member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1(i):t1 m2(k):t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g instance=i member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1(i)=A m2(k)=B\n"
                  "sa NONE assignment=A\n"
                  "> sb sync g instance=k member=m2 gen=2\n"
                  "sb NONE assignment=B\n"
                  "> b join g v=5 instance=k range=t1\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1(i)=A m3(k)=B\n"
                  "b member=m3 generation=2 protocol=range leader=m1\n"
                  "> sb sync g instance=k member=m3 gen=2\n"
                  "sb NONE assignment=B\n"
                  "> h beat g instance=k member=m2 gen=2\n"
                  "h FENCED_INSTANCE_ID\n"
                  "> h beat g instance=k member=m3 gen=2\n"
                  "h NONE\n"
                  "> h beat g instance=z member=m3 gen=2\n"
                  "h UNKNOWN_MEMBER_ID\n"
                  "> h beat g member=m2 gen=2\n"
                  "h UNKNOWN_MEMBER_ID\n");
}

static void the_static_leader_is_told_to_skip_the_assignment_from_version_9(void **state)
{
    (void)state;
    check_at_once("> a join g v=9 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> a join g v=9 instance=i range=t1\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m2 m2(i)=A\n"
                  "a member=m2 generation=1 protocol=range leader=m2 skip m2(i):t1\n"
                  "> sa sync g instance=i member=m2 gen=1\n"
                  "sa NONE assignment=A\n");
}

static void before_version_9_the_static_leader_is_told_its_old_id(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> a join g v=8 instance=i range=t1\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m2 m2(i)=A\n"
                  "a member=m2 generation=1 protocol=range leader=m1\n"
                  "> sa sync g instance=i member=m2 gen=1\n"
                  "sa NONE assignment=A\n");
}

static void a_takeover_is_stored_before_it_is_told(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> hold\n"
                  "> a join g v=8 instance=i range=t1\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m2 m2(i)=A\n"
                  "> written\n"
                  "a member=m2 generation=1 protocol=range leader=m1\n"
                  "> restart\n"
                  "> h beat g instance=i member=m2 gen=1\n"
                  "h NONE\n"
                  "> h beat g instance=i member=m1 gen=1\n"
                  "h FENCED_INSTANCE_ID\n");
}

static void a_takeover_that_takes_too_long_is_an_error(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> hold\n"
                  "> a join g v=8 instance=i range=t1\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m2 m2(i)=A\n"
                  "> until 5000\n"
                  "a COORDINATOR_NOT_AVAILABLE member=m2\n"
                  "(at 6000)\n"
                  "> written\n"
                  "> h beat g instance=i member=m2 gen=1\n"
                  "h NONE\n");
}

static void a_static_member_that_chooses_another_protocol_starts_a_rebalance(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> a join g v=8 instance=i rr=t1 range=t1\n"
                  "a member=m2 generation=2 protocol=rr leader=m2 m2(i):t1\n");
}

static void a_takeover_while_the_group_completes_starts_it_over(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=\n"
                  "sa NONE assignment=\n"
                  "> b join g v=8 instance=k range=t1\n"
                  "> a join g v=8 instance=i member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1(i):t1 m2(k):t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sb sync g instance=k member=m2 gen=2\n"
                  "> b join g v=8 instance=k range=t1\n"
                  "sb FENCED_INSTANCE_ID\n"
                  "> a join g v=8 instance=i member=m1 range=t1\n"
                  "a member=m1 generation=3 protocol=range leader=m1 m1(i):t1 m3(k):t1\n"
                  "b member=m3 generation=3 protocol=range leader=m1\n");
}

static void a_parked_join_of_the_process_before_is_fenced(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g v=8 instance=k range=t1\n"
                  "> b2 join g v=8 instance=k range=t1\n"
                  "b FENCED_INSTANCE_ID member=m2\n"
                  "> a join g v=8 instance=i member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1(i):t1 m3(k):t1\n"
                  "b2 member=m3 generation=2 protocol=range leader=m1\n");
}

static void static_members_stay_when_they_miss_a_rebalance(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i session=60000 rebalance=7000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g v=3 session=60000 rebalance=7000 range=t1\n"
                  "> until 7000\n"
                  "b member=m2 generation=2 protocol=range leader=m2 m1(i):t1 m2:t1\n"
                  "(at 8000)\n"
                  "> describe g\n"
                  "NONE state=CompletingRebalance type=consumer protocol= m1(i)@c/127.0.0.1:="
                  " m2@c/127.0.0.1:=\n");
}

static void a_sync_that_is_refused_starts_the_session_again(void **state)
{
    (void)state;
    check_at_once("> a join g v=5 instance=i session=60000 rebalance=60000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> b join g v=5 instance=k session=6000 rebalance=60000 range=t1\n"
                  "> a join g v=5 instance=i session=60000 rebalance=60000 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1(i):t1 m2(k):t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sb sync g v=3 instance=k member=m2 gen=2\n"
                  "> until 8000\n"
                  "(at 7000)\n"
                  "> a join g v=5 instance=i session=60000 rebalance=60000 member=m1 range=t2\n"
                  "sb REBALANCE_IN_PROGRESS\n"
                  "> until 6000\n"
                  "a member=m1 generation=3 protocol=range leader=m1 m1(i):t2\n"
                  "(at 15000)\n");
}

static void static_members_are_removed_by_their_instance_id(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> l leave g v=3 instance=z\n"
                  "l NONE -(z)=UNKNOWN_MEMBER_ID\n"
                  "> l leave g v=3 instance=i\n"
                  "l NONE -(i)=NONE\n"
                  "write:\n"
                  "  g generation=2 type=consumer\n"
                  "> describe g\n"
                  "NONE state=Empty type=consumer protocol=\n");
}

static void a_commit_of_the_process_before_is_fenced(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> a join g v=8 instance=i range=t1\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m2 m2(i)=A\n"
                  "a member=m2 generation=1 protocol=range leader=m1\n"
                  "> c commit g instance=i member=m1 gen=1 t1/0=1\n"
                  "c committed t1/0=FENCED_INSTANCE_ID\n"
                  "> c commit g instance=i member=m2 gen=1 t1/0=2\n"
                  "write:\n"
                  "  g t1/0 2\n"
                  "c committed t1/0=NONE\n"
                  "> c commit g instance=z member=m2 gen=1 t1/0=2\n"
                  "c committed t1/0=UNKNOWN_MEMBER_ID\n");
}

static void a_takeover_that_a_rebalance_overtakes_is_told_to_come_again(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> hold\n"
                  "> a join g v=8 instance=i range=t1\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m2 m2(i)=A\n"
                  "> b join g v=3 range=t1\n"
                  "> written\n"
                  "a REBALANCE_IN_PROGRESS member=m2\n"
                  "> a join g v=8 instance=i member=m2 range=t1\n"
                  "a member=m2 generation=2 protocol=range leader=m2 m2(i):t1 m3:t1\n"
                  "b member=m3 generation=2 protocol=range leader=m2\n");
}

static void who_comes_back_does_not_owe_what_the_process_before_did(void **state)
{
    (void)state;
    check_at_once("> a join g v=5 rebalance=9000 session=30000 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> b join g v=5 rebalance=9000 session=30000 instance=k range=t1\n"
                  "> a join g v=5 rebalance=9000 session=30000 instance=i member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1(i):t1 m2(k):t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g instance=i member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1(i)=A m2(k)=B\n"
                  "sa NONE assignment=A\n"
                  "> until 8999\n"
                  "> b join g v=5 rebalance=9000 session=30000 instance=k range=t1\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1(i)=A m3(k)=B\n"
                  "b member=m3 generation=2 protocol=range leader=m1\n"
                  "> until 9000\n"
                  "(at 10000)\n"
                  "> sb sync g instance=k member=m3 gen=2\n"
                  "sb NONE assignment=B\n");
}

static void a_takeover_that_cannot_be_stored_is_an_error(void **state)
{
    (void)state;
    check_at_once("> a join g v=8 instance=i range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g instance=i member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> hold\n"
                  "> a join g v=8 instance=i range=t1\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m2 m2(i)=A\n"
                  "> failed NOT_ENOUGH_REPLICAS\n"
                  "a COORDINATOR_NOT_AVAILABLE member=m2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_static_member_joins_without_an_extra_round),
        cmocka_unit_test(a_static_member_takes_its_place_again_without_a_rebalance),
        cmocka_unit_test(the_static_leader_is_told_to_skip_the_assignment_from_version_9),
        cmocka_unit_test(before_version_9_the_static_leader_is_told_its_old_id),
        cmocka_unit_test(a_takeover_is_stored_before_it_is_told),
        cmocka_unit_test(a_takeover_that_takes_too_long_is_an_error),
        cmocka_unit_test(a_static_member_that_chooses_another_protocol_starts_a_rebalance),
        cmocka_unit_test(a_takeover_while_the_group_completes_starts_it_over),
        cmocka_unit_test(a_parked_join_of_the_process_before_is_fenced),
        cmocka_unit_test(static_members_stay_when_they_miss_a_rebalance),
        cmocka_unit_test(a_sync_that_is_refused_starts_the_session_again),
        cmocka_unit_test(static_members_are_removed_by_their_instance_id),
        cmocka_unit_test(a_commit_of_the_process_before_is_fenced),
        cmocka_unit_test(a_takeover_that_a_rebalance_overtakes_is_told_to_come_again),
        cmocka_unit_test(who_comes_back_does_not_owe_what_the_process_before_did),
        cmocka_unit_test(a_takeover_that_cannot_be_stored_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
