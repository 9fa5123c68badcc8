/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transcripts of SyncGroup, Heartbeat and LeaveGroup, and of members that vanish. testing.h
 * describes their language.
 */
#include "group/testing.h"

static void followers_wait_for_the_leaders_assignment_to_be_stored(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sb sync g member=m2 gen=2\n"
                  "> hold\n"
                  "> sa sync g member=m1 gen=2 m1=A\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=\n"
                  "> describe g\n"
                  "NONE state=CompletingRebalance type=consumer protocol= m1@c/127.0.0.1:="
                  " m2@c/127.0.0.1:=\n"
                  "> written\n"
                  "sa NONE assignment=A\n"
                  "sb NONE assignment=\n"
                  "> sb sync g member=m2 gen=2\n"
                  "sb NONE assignment=\n"
                  "> describe g\n"
                  "NONE state=Stable type=consumer protocol=range m1@c/127.0.0.1:t1=A"
                  " m2@c/127.0.0.1:t1=\n");
}

static void sync_checks_member_generation_and_protocol(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> s sync g member=nobody gen=1\n"
                  "s UNKNOWN_MEMBER_ID\n"
                  "> s sync g member=m1 gen=2\n"
                  "s ILLEGAL_GENERATION\n"
                  "> s sync g member=m1 gen=1 type=connect protocol=range\n"
                  "s INCONSISTENT_GROUP_PROTOCOL\n"
                  "> s sync g member=m1 gen=1 type=consumer protocol=rr\n"
                  "s INCONSISTENT_GROUP_PROTOCOL\n"
                  "> s sync g member=m1 gen=1 type=consumer protocol=range m1=A nobody=B\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "s NONE assignment=A\n");
}

static void a_rebalance_sends_parked_syncs_away(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sb sync g member=m2 gen=2\n"
                  "> c join g v=3 range=t1\n"
                  "sb REBALANCE_IN_PROGRESS\n"
                  "> sa sync g member=m1 gen=2 m1=A\n"
                  "sa REBALANCE_IN_PROGRESS\n");
}

static void a_rebalance_that_overtakes_the_write_of_the_assignment_wins(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> hold\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "> b join g v=3 range=t1\n"
                  "sa REBALANCE_IN_PROGRESS\n"
                  "> written\n"
                  "> describe g\n"
                  "NONE state=PreparingRebalance type=consumer protocol= m1@c/127.0.0.1:="
                  " m2@c/127.0.0.1:=\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "> written\n"
                  "sa NONE assignment=A\n");
}

static void an_assignment_that_cannot_be_stored_is_an_error_for_all(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sb sync g member=m2 gen=2\n"
                  "> hold\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "> failed KAFKA_STORAGE_ERROR\n"
                  "sa NOT_COORDINATOR\n"
                  "sb NOT_COORDINATOR\n"
                  "> describe g\n"
                  "NONE state=PreparingRebalance type=consumer protocol= m1@c/127.0.0.1:="
                  " m2@c/127.0.0.1:=\n");
}

static void an_assignment_that_takes_too_long_is_an_error_and_rebalances(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> hold\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "> until 5000\n"
                  "sa COORDINATOR_NOT_AVAILABLE\n"
                  "(at 6000)\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=2 m1=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=B\n"
                  "> written\n"
                  "> written\n"
                  "sa NONE assignment=B\n");
}

static void the_leaders_second_sync_does_not_store_twice(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> hold\n"
                  "> s1 sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "> s2 sync g member=m1 gen=1 m1=A\n"
                  "s1 REBALANCE_IN_PROGRESS\n"
                  "> written\n"
                  "s2 NONE assignment=A\n");
}

static void members_that_do_not_sync_in_time_are_removed(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 rebalance=9000 session=30000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 rebalance=9000 session=30000 range=t1\n"
                  "> a join g v=3 rebalance=9000 session=30000 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sb sync g member=m2 gen=2\n"
                  "> until 9000\n"
                  "sb REBALANCE_IN_PROGRESS\n"
                  "(at 10000)\n"
                  "> describe g\n"
                  "NONE state=PreparingRebalance type=consumer protocol= m2@c/127.0.0.1:=\n");
}

static void members_that_have_synced_stay_when_the_time_is_over(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 rebalance=9000 session=30000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> until 9000\n"
                  "(at 10000)\n"
                  "> describe g\n"
                  "NONE state=Stable type=consumer protocol=range m1@c/127.0.0.1:t1=A\n");
}

static void heartbeats_tell_the_state(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 session=6000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> h beat g member=m1 gen=1\n"
                  "h NONE\n"
                  "> h beat g member=m1 gen=2\n"
                  "h ILLEGAL_GENERATION\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> h beat g member=m1 gen=1\n"
                  "h NONE\n"
                  "> b join g v=3 range=t1\n"
                  "> h beat g member=m1 gen=1\n"
                  "h REBALANCE_IN_PROGRESS\n");
}

static void a_session_ends_without_signs_of_life(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 session=6000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> after 5000\n"
                  "> h beat g member=m1 gen=1\n"
                  "h NONE\n"
                  "> after 5000\n"
                  "> c commit g member=m1 gen=1 t1/0=1\n"
                  "write:\n"
                  "  g t1/0 1\n"
                  "c committed t1/0=NONE\n"
                  "> until 5999\n"
                  "> h beat g member=m1 gen=1\n"
                  "h NONE\n"
                  "> until 6000\n"
                  "write:\n"
                  "  g generation=2 type=consumer\n"
                  "(at 22999)\n"
                  "> h beat g member=m1 gen=1\n"
                  "h UNKNOWN_MEMBER_ID\n");
}

static void a_member_that_vanishes_costs_the_others_one_session_timeout(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 session=6000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 session=30000 range=t1\n"
                  "> a join g v=3 session=6000 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "> sb sync g member=m2 gen=2\n"
                  "sb NONE assignment=B\n"
                  "> until 6000\n"
                  "(at 7000)\n"
                  "> h beat g member=m2 gen=2\n"
                  "h REBALANCE_IN_PROGRESS\n"
                  "> b join g v=3 member=m2 range=t1\n"
                  "b member=m2 generation=3 protocol=range leader=m2 m2:t1\n"
                  "> sb sync g member=m2 gen=3 m2=AB\n"
                  "write:\n"
                  "  g generation=3 type=consumer protocol=range leader=m2 m2=AB\n"
                  "sb NONE assignment=AB\n");
}

static void a_parked_member_has_no_session(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 session=30000 rebalance=30000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 session=6000 rebalance=30000 range=t1\n"
                  "> a join g v=3 session=30000 rebalance=30000 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sb sync g member=m2 gen=2\n"
                  "> until 10000\n"
                  "(at 7000)\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "sb NONE assignment=B\n");
}

static void members_leave_one_or_many(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "> l leave g v=2 m2\n"
                  "l NONE\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=3 protocol=range leader=m1 m1:t1\n"
                  "> l leave g v=3 m1 m2 nobody\n"
                  "l NONE m1=NONE m2=UNKNOWN_MEMBER_ID nobody=UNKNOWN_MEMBER_ID\n"
                  "write:\n"
                  "  g generation=4 type=consumer\n"
                  "> describe g\n"
                  "NONE state=Empty type=consumer protocol=\n"
                  "> h beat g member=m1 gen=3\n"
                  "h UNKNOWN_MEMBER_ID\n");
}

static void a_member_that_leaves_while_it_is_parked_is_answered(void **state)
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
                  "> b join g member=m2 range=t1\n"
                  "> l leave g v=3 m2\n"
                  "b UNKNOWN_MEMBER_ID member=m2\n"
                  "l NONE m2=NONE\n"
                  "> describe g\n"
                  "NONE state=PreparingRebalance type=consumer protocol= m1@c/127.0.0.1:=\n");
}

static void a_pending_id_can_leave(void **state)
{
    (void)state;
    check_at_once("> a join g range=t1\n"
                  "a MEMBER_ID_REQUIRED member=m1\n"
                  "> l leave g v=3 m1\n"
                  "l NONE m1=NONE\n"
                  "> a join g member=m1 range=t1\n"
                  "a UNKNOWN_MEMBER_ID member=m1\n");
}

static void a_sync_restarts_the_session(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 session=6000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> after 5000\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> until 5999\n"
                  "> h beat g member=m1 gen=1\n"
                  "h NONE\n");
}

static void a_follower_that_syncs_late_restarts_its_session_too(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 session=30000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 session=6000 range=t1\n"
                  "> a join g v=3 session=30000 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "> after 5000\n"
                  "> sb sync g member=m2 gen=2\n"
                  "sb NONE assignment=B\n"
                  "> until 5999\n"
                  "> h beat g member=m2 gen=2\n"
                  "h NONE\n");
}

static void when_the_leader_leaves_another_member_leads(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "> l leave g v=3 m1\n"
                  "l NONE m1=NONE\n"
                  "> b join g v=3 member=m2 range=t1\n"
                  "b member=m2 generation=3 protocol=range leader=m2 m2:t1\n");
}

static void a_new_coordinator_gives_members_a_session_timeout(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 session=6000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 session=60000 range=t1\n"
                  "> a join g v=3 session=6000 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "> sb sync g member=m2 gen=2\n"
                  "sb NONE assignment=B\n"
                  "> after 5000\n"
                  "> restart\n"
                  "> describe g\n"
                  "NONE state=Stable type=consumer protocol=range m1@c/127.0.0.1:t1=A"
                  " m2@c/127.0.0.1:t1=B\n"
                  "> until 5999\n"
                  "> h beat g member=m1 gen=2\n"
                  "h NONE\n"
                  "> until 6000\n"
                  "(at 17999)\n"
                  "> h beat g member=m1 gen=2\n"
                  "h UNKNOWN_MEMBER_ID\n"
                  "> h beat g member=m2 gen=2\n"
                  "h REBALANCE_IN_PROGRESS\n"
                  "> b join g v=3 session=60000 member=m2 range=t1\n"
                  "b member=m2 generation=3 protocol=range leader=m2 m2:t1\n");
}

static void a_new_coordinator_does_not_know_a_generation_that_was_not_stored(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> restart\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "sa UNKNOWN_MEMBER_ID\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a UNKNOWN_MEMBER_ID member=m1\n"
                  "> a join g v=3 range=t1\n"
                  "a member=m2 generation=1 protocol=range leader=m2 m2:t1\n");
}

static void a_new_coordinator_knows_that_a_group_is_empty(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> sa sync g member=m1 gen=1 m1=A\n"
                  "write:\n"
                  "  g generation=1 type=consumer protocol=range leader=m1 m1=A\n"
                  "sa NONE assignment=A\n"
                  "> l leave g v=3 m1\n"
                  "l NONE m1=NONE\n"
                  "write:\n"
                  "  g generation=2 type=consumer\n"
                  "> restart\n"
                  "> describe g\n"
                  "NONE state=Empty type=consumer protocol=\n"
                  "> list empty\n"
                  "groups g:consumer:Empty\n"
                  "> list Stable\n"
                  "groups\n"
                  "> list Stale\n"
                  "groups\n"
                  "> a join g v=3 range=t1\n"
                  "a member=m2 generation=3 protocol=range leader=m2 m2:t1\n");
}

static void a_follower_that_syncs_late_is_not_removed_for_it(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 rebalance=9000 session=30000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 rebalance=9000 session=30000 range=t1\n"
                  "> a join g v=3 rebalance=9000 session=30000 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "> after 8000\n"
                  "> sb sync g member=m2 gen=2\n"
                  "sb NONE assignment=B\n"
                  "> until 2000\n"
                  "(at 10000)\n"
                  "> h beat g member=m2 gen=2\n"
                  "h NONE\n");
}

static void a_coordinator_that_resigns_answers_what_is_parked(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 range=t1\n"
                  "> a join g v=3 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sb sync g member=m2 gen=2\n"
                  "> x join x v=3 type=connect r=1\n"
                  "x member=m3 generation=1 protocol=r leader=m3 m3:1\n"
                  "> y join x v=3 type=connect r=1\n"
                  "> restart\n"
                  "sb NOT_COORDINATOR\n"
                  "y NOT_COORDINATOR member=m4\n");
}

static void a_member_that_was_loaded_has_no_session_while_it_is_parked(void **state)
{
    (void)state;
    check_at_once("> a join g v=3 session=6000 rebalance=60000 range=t1\n"
                  "a member=m1 generation=1 protocol=range leader=m1 m1:t1\n"
                  "> b join g v=3 session=60000 rebalance=60000 range=t1\n"
                  "> a join g v=3 session=6000 rebalance=60000 member=m1 range=t1\n"
                  "a member=m1 generation=2 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=2 protocol=range leader=m1\n"
                  "> sa sync g member=m1 gen=2 m1=A m2=B\n"
                  "write:\n"
                  "  g generation=2 type=consumer protocol=range leader=m1 m1=A m2=B\n"
                  "sa NONE assignment=A\n"
                  "> sb sync g member=m2 gen=2\n"
                  "sb NONE assignment=B\n"
                  "> restart\n"
                  "> a join g v=3 session=6000 rebalance=60000 member=m1 range=t1\n"
                  "> until 20000\n"
                  "(at 7000)\n"
                  "> b join g v=3 session=60000 rebalance=60000 member=m2 range=t1\n"
                  "a member=m1 generation=3 protocol=range leader=m1 m1:t1 m2:t1\n"
                  "b member=m2 generation=3 protocol=range leader=m1\n");
}

static void a_group_that_nobody_knows_is_dead(void **state)
{
    (void)state;
    check_at_once("> describe g\n"
                  "NONE state=Dead type= protocol=\n"
                  "> describe g v=6\n"
                  "GROUP_ID_NOT_FOUND state=Dead type= protocol=\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(followers_wait_for_the_leaders_assignment_to_be_stored),
        cmocka_unit_test(sync_checks_member_generation_and_protocol),
        cmocka_unit_test(a_rebalance_sends_parked_syncs_away),
        cmocka_unit_test(a_rebalance_that_overtakes_the_write_of_the_assignment_wins),
        cmocka_unit_test(an_assignment_that_cannot_be_stored_is_an_error_for_all),
        cmocka_unit_test(an_assignment_that_takes_too_long_is_an_error_and_rebalances),
        cmocka_unit_test(the_leaders_second_sync_does_not_store_twice),
        cmocka_unit_test(members_that_do_not_sync_in_time_are_removed),
        cmocka_unit_test(members_that_have_synced_stay_when_the_time_is_over),
        cmocka_unit_test(heartbeats_tell_the_state),
        cmocka_unit_test(a_session_ends_without_signs_of_life),
        cmocka_unit_test(a_member_that_vanishes_costs_the_others_one_session_timeout),
        cmocka_unit_test(a_parked_member_has_no_session),
        cmocka_unit_test(members_leave_one_or_many),
        cmocka_unit_test(a_member_that_leaves_while_it_is_parked_is_answered),
        cmocka_unit_test(a_pending_id_can_leave),
        cmocka_unit_test(a_sync_restarts_the_session),
        cmocka_unit_test(a_follower_that_syncs_late_restarts_its_session_too),
        cmocka_unit_test(when_the_leader_leaves_another_member_leads),
        cmocka_unit_test(a_new_coordinator_gives_members_a_session_timeout),
        cmocka_unit_test(a_new_coordinator_does_not_know_a_generation_that_was_not_stored),
        cmocka_unit_test(a_new_coordinator_knows_that_a_group_is_empty),
        cmocka_unit_test(a_follower_that_syncs_late_is_not_removed_for_it),
        cmocka_unit_test(a_coordinator_that_resigns_answers_what_is_parked),
        cmocka_unit_test(a_member_that_was_loaded_has_no_session_while_it_is_parked),
        cmocka_unit_test(a_group_that_nobody_knows_is_dead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
