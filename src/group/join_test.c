/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transcripts of JoinGroup: ids, the first rebalance, later ones, the choice of a protocol, and
 * what is refused. testing.h describes their language.
 */
#include "group/testing.h"

static void a_dynamic_member_gets_an_id_first_and_joins_with_it(void **state)
{
    (void)state;
    check_transcript("> a join g v=4 range=t1\n"
                     "a MEMBER_ID_REQUIRED member=m1\n"
                     "> a join g v=4 member=m1 range=t1\n"
                     "> until 3000\n"
                     "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                     "(at 4000)\n");
}

static void before_version_4_a_member_joins_at_once(void **state)
{
    (void)state;
    check_transcript("> a join g v=3 range=t1\n"
                     "> until 3000\n"
                     "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                     "(at 4000)\n");
}

static void an_id_that_is_not_used_is_forgotten_after_a_session_timeout(void **state)
{
    (void)state;
    check_transcript("> a join g session=7000 range=t1\n"
                     "a MEMBER_ID_REQUIRED member=m1\n"
                     "> list\n"
                     "groups g::Empty\n"
                     "> until 7000\n"
                     "(at 8000)\n"
                     "> list\n"
                     "groups\n"
                     "> a join g member=m1 range=t1\n"
                     "a UNKNOWN_MEMBER_ID member=m1\n");
}

static void the_first_rebalance_waits_and_newcomers_prolong_it(void **state)
{
    (void)state;
    check_transcript("> a join g v=3 range=t1\n"
                     "> after 2000\n"
                     "> b join g v=3 range=t1\n"
                     "> until 1000\n"
                     "(at 4000)\n"
                     "> after 2900\n"
                     "> c join g v=3 range=t1\n"
                     "> until 100\n"
                     "(at 7000)\n"
                     "> until 3000\n"
                     "a member=m1 generation=1 protocol=range leader=m1 m1:t1 m2:t1 m3:t1\n"
                     "b member=m2 generation=1 protocol=range leader=m1\n"
                     "c member=m3 generation=1 protocol=range leader=m1\n"
                     "(at 10000)\n");
}

static void the_first_rebalance_is_prolonged_up_to_the_largest_rebalance_timeout(void **state)
{
    (void)state;
    check_transcript("> a join g v=3 rebalance=4000 range=t1\n"
                     "> after 2000\n"
                     "> b join g v=3 rebalance=4000 range=t1\n"
                     "> until 1999\n"
                     "(at 4000)\n"
                     "> until 1\n"
                     "a member=m1 generation=1 protocol=range leader=m1 m1:t1 m2:t1\n"
                     "b member=m2 generation=1 protocol=range leader=m1\n"
                     "(at 5000)\n");
}

static void without_a_delay_the_first_member_begins_a_generation_at_once(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n");
}

static void bad_requests_have_kafkas_errors(void **state)
{
    (void)state;
    check_at_once("> a join - v=5 range=t1\n"
                  "a INVALID_GROUP_ID member=-\n"
                  "> a join g session=5999 range=t1\n"
                  "a INVALID_SESSION_TIMEOUT member=-\n"
                  "> a join g session=1800001 range=t1\n"
                  "a INVALID_SESSION_TIMEOUT member=-\n"
                  "> a join g member=stranger range=t1\n"
                  "a UNKNOWN_MEMBER_ID member=stranger\n"
                  "> a join g type= range=t1\n"
                  "a INCONSISTENT_GROUP_PROTOCOL member=-\n"
                  "> a join g\n"
                  "a INCONSISTENT_GROUP_PROTOCOL member=-\n"
                  "> a sync - member=x gen=1\n"
                  "a INVALID_GROUP_ID\n"
                  "> a sync g member=x gen=1\n"
                  "a UNKNOWN_MEMBER_ID\n"
                  "> a beat - member=x gen=1\n"
                  "a INVALID_GROUP_ID\n"
                  "> a beat g member=x gen=1\n"
                  "a UNKNOWN_MEMBER_ID\n"
                  "> a leave - x\n"
                  "a INVALID_GROUP_ID\n"
                  "> a leave g v=2 x\n"
                  "a UNKNOWN_MEMBER_ID\n"
                  "> a leave g v=3 x\n"
                  "a NONE x=UNKNOWN_MEMBER_ID\n"
                  "> list\n"
                  "groups\n");
}

static void another_type_or_no_protocol_in_common_is_refused(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1 rr=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 sticky=t1\n"
                  "b INCONSISTENT_GROUP_PROTOCOL member=-\n"
                  "> b join g v=3 type=connect range=t1\n"
                  "b INCONSISTENT_GROUP_PROTOCOL member=-\n"
                  "> b join g v=3 sticky=t1 rr=t1\n"
                  "> a join g v=3 member=m1 range=t1 rr=t1\n"
                  "a member=m1 generation=2 protocol=rr leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=rr leader=m1\n");
}

static void the_protocol_with_most_votes_is_chosen_among_those_that_all_share(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 x=t1 rr=t1 range=t1\n"
                  "a member=m1 generation=1 protocol=x leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1 rr=t1\n"
                  "> c join g v=3 range=t1 y=t1 rr=t1\n"
                  "> a join g v=3 member=m1 x=t1 rr=t1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1 m3:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "c member=m3 generation=2 protocol=range leader=m1\n");
}

static void a_full_group_takes_nobody_else(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> c join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "> b join g v=3 member=m2 range=t1\n"
                  "a member=m1 generation=3 protocol=range leader=m1 m1:t1 m2:t1 m3:t1\n"
                  "b member=m2 generation=3 protocol=range leader=m1\n"
                  "c member=m3 generation=3 protocol=range leader=m1\n"
                  "> d join g v=3 range=t1\n"
                  "d GROUP_MAX_SIZE_REACHED member=-\n");
}

static void a_rebalance_waits_for_known_members_and_drops_those_that_stay_away(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 rebalance=20000 session=30000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g v=3 member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g v=3 rebalance=20000 session=30000 range=t1\n"
                  "> beat beat g member=m1 gen=1\n"
                  "beat REBALANCE_IN_PROGRESS\n"
                  "> until 19999\n"
                  "> until 1\n"
                  "b member=m2 generation=2 protocol=range leader=m2 m2:t1\n"
                  "(at 21000)\n"
                  "> sb sync g member=m2 gen=2 m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m2 m2=B\n"
                  "sb NONE assignment=B\n"
                  "> beat beat g member=m1 gen=1\n"
                  "beat UNKNOWN_MEMBER_ID\n");
}

static void a_member_that_comes_back_ends_the_wait(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n");
}

static void if_nobody_came_back_the_group_waits_again(void **state)
{
    (void)state;
    check_at_once("> a join g v=5 instance=i rebalance=8000 session=60000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1(i):t1\n"
                  "> sa sync g member=m1 instance=i gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1(i)=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g rebalance=8000 session=30000 range=t1\n"
                  "b MEMBER_ID_REQUIRED member=m2\n"
                  "> b join g member=m2 rebalance=8000 session=30000 range=t1\n"
                  "> l leave g m2\n"
                  "b UNKNOWN_MEMBER_ID member=m2\n"
                  "l NONE m2=NONE\n"
                  "> until 30000\n"
                  "(at 9000)\n"
                  "(at 17000)\n"
                  "(at 25000)\n"
                  "> describe g\n"
                  "NONE state=PreparingRebalance type=consumer protocol= m1(i)@c/127.0.0.1:=\n"
                  "> b join g v=3 rebalance=8000 session=30000 range=t1\n"
                  "> until 8000\n"
                  "b member=m3 generation=2 protocol=range leader=m3 m1(i):t1 m3:t1\n"
                  "(at 33000)\n"
                  "> describe g\n"
                  "NONE state=CompletingRebalance type=consumer protocol= m1(i)@c/127.0.0.1:="
                  " m3@c/127.0.0.1:=\n");
}

static void the_leader_that_stays_away_is_replaced(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 rebalance=7000 session=30000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 rebalance=7000 session=30000 range=t1\n"
                  "> until 7000\n"
                  "b member=m2 generation=2 protocol=range leader=m2 m2:t1\n"
                  "(at 8000)\n");
}

static void a_member_that_joins_again_unchanged_gets_the_current_generation(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> b join g v=3 member=m2 range=t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "> b join g v=3 member=m2 range=t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> b join g v=3 member=m2 range=t1,t2\n");
}

static void the_leader_that_joins_again_in_a_stable_group_starts_a_rebalance(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1\n");
}

static void other_metadata_while_the_group_completes_start_it_over(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sb sync g member=m2 gen=2\n"
                  "> a join g v=3 member=m1 range=t1,t2\n"
                  "sb REBALANCE_IN_PROGRESS\n"
                  "> b join g v=3 member=m2 range=t1\n"
                  "a member=m1 generation=3 protocol=range leader=m1 m1:t1,t2 m2:t1\n"
                  "b member=m2 generation=3 protocol=range leader=m1\n");
}

static void a_pending_id_holds_a_rebalance_until_it_is_used_or_expires(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g session=6000 range=t1\n"
                  "b MEMBER_ID_REQUIRED member=m2\n"
                  "> a join g v=3 member=m1 range=t2\n"
                  "> until 6000\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t2\n"
                  "(at 7000)\n");
}

static void a_new_member_that_is_parked_has_no_session_but_five_minutes(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 rebalance=900000 session=1000000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g v=3 rebalance=900000 session=6000 range=t1\n"
                  "> until 299999\n"
                  "> until 1\n"
                  "b UNKNOWN_MEMBER_ID member=m2\n"
                  "(at 301000)\n");
}

static void two_joins_of_a_member_the_older_one_is_told_to_come_again(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g range=t1\n"
                  "b MEMBER_ID_REQUIRED member=m2\n"
                  "> b1 join g member=m2 range=t1\n"
                  "> b2 join g member=m2 range=t1\n"
                  "b1 REBALANCE_IN_PROGRESS member=m2\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b2 member=m2 generation=2 protocol=range leader=m1\n");
}

static void version_0_has_its_session_timeout_for_a_rebalance_timeout(void **state)
{
    (void)state;
    check_at_once("> a join g v=0 session=9000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g v=0 member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> b join g v=0 session=9000 range=t1\n"
                  "> beat beat g member=m1 gen=1\n"
                  "beat REBALANCE_IN_PROGRESS\n"
                  "> until 8999\n"
                  "> until 1\n"
                  "b member=m2 generation=2 protocol=range leader=m2 m2:t1\n"
                  "(at 10000)\n");
}

static void while_a_full_group_prepares_whoever_joins_first_has_the_place(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> c join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "> b join g v=3 member=m2 range=t1\n"
                  "a member=m1 generation=3 protocol=range leader=m1 m1:t1 m2:t1 m3:t1\n"
                  "b member=m2 generation=3 protocol=range leader=m1\n"
                  "c member=m3 generation=3 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=3 m1=A m2=B m3=C\n"
                  "write:\n"
                  "  g generation=3 type=consumer protocol=range leader=m1 m1=A m2=B m3=C\n"
                  "sa NONE assignment=A\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "> d join g v=3 range=t1\n"
                  "> b join g v=3 member=m2 range=t1\n"
                  "> c join g v=3 member=m3 range=t1\n"
                  "c GROUP_MAX_SIZE_REACHED member=-\n"
                  "a member=m1 generation=4 protocol=range leader=m1 m1:t1 m2:t1 m4:t1\n"
                  "b member=m2 generation=4 protocol=range leader=m1\n"
                  "d member=m4 generation=4 protocol=range leader=m1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dynamic_member_gets_an_id_first_and_joins_with_it),
        cmocka_unit_test(before_version_4_a_member_joins_at_once),
        cmocka_unit_test(an_id_that_is_not_used_is_forgotten_after_a_session_timeout),
        cmocka_unit_test(the_first_rebalance_waits_and_newcomers_prolong_it),
        cmocka_unit_test(the_first_rebalance_is_prolonged_up_to_the_largest_rebalance_timeout),
        cmocka_unit_test(without_a_delay_the_first_member_begins_a_generation_at_once),
        cmocka_unit_test(bad_requests_have_kafkas_errors),
        cmocka_unit_test(another_type_or_no_protocol_in_common_is_refused),
        cmocka_unit_test(the_protocol_with_most_votes_is_chosen_among_those_that_all_share),
        cmocka_unit_test(a_full_group_takes_nobody_else),
        cmocka_unit_test(a_rebalance_waits_for_known_members_and_drops_those_that_stay_away),
        cmocka_unit_test(a_member_that_comes_back_ends_the_wait),
        cmocka_unit_test(if_nobody_came_back_the_group_waits_again),
        cmocka_unit_test(the_leader_that_stays_away_is_replaced),
        cmocka_unit_test(a_member_that_joins_again_unchanged_gets_the_current_generation),
        cmocka_unit_test(the_leader_that_joins_again_in_a_stable_group_starts_a_rebalance),
        cmocka_unit_test(other_metadata_while_the_group_completes_start_it_over),
        cmocka_unit_test(a_pending_id_holds_a_rebalance_until_it_is_used_or_expires),
        cmocka_unit_test(a_new_member_that_is_parked_has_no_session_but_five_minutes),
        cmocka_unit_test(two_joins_of_a_member_the_older_one_is_told_to_come_again),
        cmocka_unit_test(version_0_has_its_session_timeout_for_a_rebalance_timeout),
        cmocka_unit_test(while_a_full_group_prepares_whoever_joins_first_has_the_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
