/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four stories that every replicated log has to tell, from the beginning to the end.
 */
#include "scenarios.h"

void a_follower_fails_and_returns(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_kill(s, B);
    script_write(s, A, ALL, "m2", ERR_NONE); /* as soon as B is out of the in-sync set */
    script_await(s, A, "isr 1,3 leader 1");
    script_write(s, A, ALL, "m3", ERR_NONE);
    script_holds(s, B, "m1");
    script_start(s, B);
    script_await(s, A, "isr 1,2,3 leader 1");
    script_holds(s, B, "m1 m2 m3");
    script_write(s, A, ALL, "m4", ERR_NONE);
    script_kill(s, A);
    script_kill(s, C);
    script_await(s, B, "isr 2 leader 2"); /* it counts again, for everything */
    script_reads(s, B, "m1 m2 m3 m4");
    script_ends(s, "m1 m2 m3 m4");
}

/* What A wrote alone is longer than what B has committed meanwhile, and of an older epoch. */
void the_leader_fails_and_returns_with_a_longer_log(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_isolate(s, A);
    script_write(s, A, ONE, "z1", ERR_NONE);
    script_write(s, A, ONE, "z2", ERR_NONE);
    script_write(s, A, ONE, "z3", ERR_NONE);
    script_kill(s, A);
    script_await(s, B, "isr 2,3 leader 2");
    script_write(s, B, ALL, "m2", ERR_NONE);
    script_holds(s, A, "m1 z1 z2 z3");
    script_heal(s);
    script_start(s, A);
    script_await(s, B, "isr 1,2,3 leader 2");
    script_holds(s, A, "m1 m2");
    script_write(s, B, ALL, "m3", ERR_NONE);
    script_ends(s, "m1 m2 m3");
}

/* B goes first, then C, then A; each has a record more than the one before. */
static void die_one_after_the_other(struct script *s, const char *settings)
{
    script_topic(s, "1,2,3", settings);
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_kill(s, B);
    script_await(s, A, "isr 1,3 leader 1");
    script_write(s, A, ALL, "m2", ERR_NONE);
    script_kill(s, C);
    script_await(s, A, "isr 1 leader 1");
    script_write(s, A, ALL, "m3", ERR_NONE);
    script_kill(s, A);
}

static void the_last_one_is_waited_for(struct script *s)
{
    die_one_after_the_other(s, "min.insync.replicas=1");
    script_start(s, B);
    script_start(s, C);
    script_await(s, B, "isr 1 leader -1");
    script_pass(s, 2000);
    script_await(s, C, "isr 1 leader -1");
    script_start(s, A);
    script_await(s, C, "isr 1,2,3 leader 1");
    script_reads(s, A, "m1 m2 m3");
}

static void the_first_one_leads(struct script *s)
{
    die_one_after_the_other(s, "min.insync.replicas=1 unclean.leader.election.enable=true");
    script_start(s, B);
    script_forget(s, 1);
    s->may_cut_committed = true;
    script_await(s, B, "isr 2 leader 2");
    script_reads(s, B, "m1");
    script_write(s, B, ALL, "m4", ERR_NONE);
    script_ends(s, "m1 m4");
}

void all_replicas_die_and_the_first_or_the_last_to_return_leads(struct script *s)
{
    the_last_one_is_waited_for(s);
    script_delete_topic(s);
    script_pass(s, 500);
    the_first_one_leads(s);
}

/* Once the record is on the leader alone, once everywhere, and its producer does not know. */
void an_uncommitted_record_is_retried_and_kept_once(struct script *s)
{
    struct ask *lost;

    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_be_idempotent(s, A);
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_isolate(s, A);
    script_write(s, A, ALL, "m2", ERR_REQUEST_TIMED_OUT);
    script_holds(s, A, "m1 m2");
    script_await(s, B, "isr 2,3 leader 2");
    script_write_again(s, B, "m2", ERR_NONE);
    script_heal(s);
    script_await(s, B, "isr 1,2,3 leader 2");
    script_holds(s, A, "m1 m2");

    script_kill(s, A);
    script_await(s, B, "isr 2,3 leader 2");
    script_cut(s, C, B); /* the fetch that is there already brings m3; no other one commits it */
    lost = script_begin_write(s, B, ALL, "m3");
    script_pass(s, 100);
    script_holds(s, C, "m1 m2 m3");
    script_kill(s, B);
    script_end_write(s, lost, ERR_RESET);
    script_start(s, A);
    script_await(s, C, "isr 1,3 leader 3");
    script_write_again(s, C, "m3", ERR_NONE);
    script_ends(s, "m1 m2 m3");
}
