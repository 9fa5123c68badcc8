/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of disks: what power cuts, errors and damage take, and who may still lead. A topic with
 * flush.on.ack=false lives in the page cache: a power cut takes what no clean stop has synced.
 */
#include "scenarios.h"

#include "base/attr.h"

#define CACHED "min.insync.replicas=1 flush.on.ack=false"

/* A clean stop of it syncs what it has. */
static void settle(struct script *s, int id, const char *state)
{
    script_stop(s, id);
    script_start(s, id);
    script_await(s, id, state);
}

/* B loses m2 with its power, comes back first and leads; A still has it. */
void s2_another_record_at_an_offset_displaces_the_one_that_only_the_old_leader_has(struct script *s)
{
    script_topic(s, "1,2,3", CACHED);
    script_kill(s, C);
    script_await(s, A, "isr 1,2 leader 1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    settle(s, B, "isr 1,2 leader 1");
    script_write(s, A, ALL, "m2", ERR_NONE);
    script_cut_power(s, B);
    script_kill(s, A);
    script_start(s, B);
    script_await(s, B, "isr 2 leader 2");
    script_write(s, B, ALL, "m3", ERR_NONE);
    script_holds(s, A, "m1 m2");
    s->may_cut_committed = true; /* the page cache was trusted with m2 */
    script_ends(s, "m1 m3");
}

void s14_who_comes_back_with_an_empty_disk_does_not_lead(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    for (int id = 1; id <= NODES; id++)
        script_kill(s, id);
    node_lose_disk(script_node(s, B));
    script_start(s, B);
    script_pass(s, 2000);
    script_fetch(s, B, 0, -1, ERR_NOT_LEADER_OR_FOLLOWER);
    script_ends(s, "m1");
}

/* C is cut off, then B stops; m2 is on A and B. A loses its power and alone is in sync. */
void s15_the_last_one_in_sync_has_kept_all_when_its_power_is_back(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_isolate(s, C);
    script_await(s, A, "isr 1,2 leader 1");
    script_write(s, A, ALL, "m2", ERR_NONE);
    script_stop(s, B);
    script_await(s, A, "isr 1 leader 1");
    script_write(s, A, ALL, "m3", ERR_NOT_ENOUGH_REPLICAS);
    script_cut_power(s, A);
    script_heal(s);
    script_start(s, B);
    script_await(s, B, "isr 1 leader -1");
    script_pass(s, 1000);
    script_await(s, C, "isr 1 leader -1");
    script_start(s, A);
    script_ends(s, "m1 m2");
}

/*
 * A takes B out of the in-sync set, which is no change of the epoch, and loses all that B has too.
 * What it writes then stands at the offsets of what B has; only the epoch tells them apart.
 */
void s24_a_leader_that_lost_records_leads_on_in_another_epoch(struct script *s)
{
    int32_t epoch;

    script_topic(s, "1,2", CACHED);
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_cut(s, A, B);
    script_cut(s, B, A);
    script_write(s, A, ALL, "m2", ERR_NONE);
    script_await(s, C, "isr 1 leader 1");
    epoch = s->epoch;
    script_cut_power(s, A);
    script_start(s, A);
    script_forget(s, 0);
    script_write_anywhere(s, "m3");
    script_await(s, C, "isr 1 leader 1");
    if (s->epoch <= epoch)
        script_fail(s, "A leads again in epoch %d", s->epoch);
    script_holds(s, A, "m3");
    script_holds(s, B, "m1");
    s->may_cut_committed = true;
    script_ends(s, "m3");
}

/* B is back before anybody has missed it, cannot fetch, and stands before C in the assignment. */
void s25_a_follower_that_lost_records_is_not_elected(struct script *s)
{
    script_topic(s, "1,2,3", CACHED);
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_cut_power(s, B);
    script_start_unready(s, B);
    script_cut(s, A, B);
    script_cut(s, B, A);
    script_pass(s, 300);
    script_await(s, C, "isr 1,3 leader 1");
    script_kill(s, A);
    script_await(s, C, "isr 2,3 leader 3"); /* B fetches from it at once */
    script_reads(s, C, "m1");
    script_ends(s, "m1");
}

static void cut_all_power(struct script *s)
{
    for (int id = 1; id <= NODES; id++)
        script_cut_power(s, id);
    for (int id = 1; id <= NODES; id++)
        script_start(s, id);
    script_await(s, A, "isr 1,2,3");
}

void s26_all_lose_power_and_nothing_that_was_synced(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_write(s, A, ALL, "m2", ERR_NONE);
    cut_all_power(s);
    script_write_anywhere(s, "m3");
    script_ends(s, "m1 m2 m3");
}

/* A loss, and no confusion: a later epoch, the same log everywhere, and readers are told. */
void s26_all_lose_power_and_the_page_cache(struct script *s)
{
    script_topic(s, "1,2,3", CACHED);
    script_write(s, A, ALL, "m1", ERR_NONE);
    settle(s, B, "isr 1,2,3");
    settle(s, C, "isr 1,2,3");
    settle(s, A, "isr 1,2,3 leader 2");
    script_write(s, B, ALL, "m2", ERR_NONE);
    script_write(s, B, ALL, "m3", ERR_NONE);
    script_reads(s, B, "m1 m2 m3");
    script_forget(s, 1);
    s->may_cut_committed = true;
    cut_all_power(s);
    script_fetch(s, s->leader, 3, -1, ERR_OFFSET_OUT_OF_RANGE);
    script_fetch(s, s->leader, 1, 1, ERR_FENCED_LEADER_EPOCH);
    script_write_anywhere(s, "m4");
    script_ends(s, "m1 m4");
}

/* C misses the records, B loses them, and A is gone: there are two, and nobody may lead. */
void s27_who_lost_records_and_who_missed_them_wait_for_the_third(struct script *s)
{
    script_topic(s, "1,2,3", CACHED);
    script_isolate(s, C);
    script_await(s, A, "isr 1,2 leader 1");
    for (int i = 0; i < 5; i++)
        script_write(s, A, ALL, (const char *[]){"m1", "m2", "m3", "m4", "m5"}[i], ERR_NONE);
    script_cut_power(s, B);
    script_await(s, A, "isr 1 leader 1");
    script_kill(s, A);
    script_heal(s);
    script_start(s, B);
    script_await(s, C, "isr 1 leader -1");
    script_pass(s, 2000);
    script_await(s, C, "isr 1 leader -1");
    script_start(s, A);
    script_ends(s, "m1 m2 m3 m4 m5");
}

/* A's only disk: A ends. What came into the file of m2 is cut or kept, and read by nobody before.
 */
void s28_a_write_that_failed_is_the_last_one(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_node(s, A)->is_harmed = true;
    sim_disk_fail_nth(script_node(s, A)->host, SIM_CALL_WRITE, 1);
    script_end_write(s, script_begin_write(s, A, ALL, "m2"), ERR_KAFKA_STORAGE_ERROR);
    script_await_end(s, A);
    script_await(s, B, "isr 2,3 leader 2");
    script_reads(s, B, "m1");
    script_write(s, B, ALL, "m4", ERR_NONE);
    script_node(s, A)->is_harmed = false;
    script_ends(s, "m1 m4");
}

void s28_a_sync_that_failed_acknowledges_nothing(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_kill(s, B);
    script_kill(s, C);
    script_await(s, A, "isr 1 leader 1");
    script_write(s, A, ALL, "m2", ERR_NONE); /* the epoch is on the disk */
    script_node(s, A)->is_harmed = true;
    sim_disk_fail_nth(script_node(s, A)->host, SIM_CALL_SYNC, 1);
    script_end_write(s, script_begin_write(s, A, ALL, "m3"), ERR_KAFKA_STORAGE_ERROR);
    script_cut_power(s, A);
    script_node(s, A)->is_harmed = false;
    script_ends(s, "m1 m2");
}

static void give_two_dirs(struct script *s, int id)
{
    script_stop(s, id);
    script_node(s, id)->has_two_dirs = true;
    script_start(s, id);
}

/* The leader goes on without what is in the one that fails. */
static void lose_dir(struct script *s, int id, int next, const char *replicas, const char *state)
{
    struct node *n = script_node(s, id);

    script_topic(s, replicas, "min.insync.replicas=2");
    script_write(s, id, ALL, "m1", ERR_NONE);
    n->is_harmed = true;
    sim_disk_fail_nth(n->host, SIM_CALL_SYNC, 1);
    script_end_write(s, script_begin_write(s, id, ALL, "m2"), ERR_KAFKA_STORAGE_ERROR);
    script_await(s, next, state);
    script_write(s, next, ALL, "m3", ERR_NONE);
    if (!node_lives(n))
        script_fail(s, "broker %d has ended for one of two directories", id);
    script_kill(s, id);
    n->is_harmed = false;
    script_start(s, id);
    script_ends(s, "m1 m3");
}

void s28_a_log_directory_fails_and_others_lead_what_is_there(struct script *s)
{
    give_two_dirs(s, A);
    lose_dir(s, A, B, "1,2,3", "isr 2,3 leader 2");
}

/* Nobody has to tell it, nor can anybody. */
void s28_the_controllers_log_directory_fails_and_others_lead_what_is_there(struct script *s)
{
    give_two_dirs(s, C);
    script_stop(s, A);
    script_stop(s, B);
    script_start(s, B);
    script_start(s, A);
    lose_dir(s, C, A, "3,1,2", "isr 1,2 leader 1");
}

#define START_READS_MAX 30

/* A has everything alone, and another directory. Any read of its start fails. */
void s28_a_log_that_cannot_be_read_is_not_begun_in_another_directory(struct script *s)
{
    give_two_dirs(s, A);
    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_kill(s, B);
    script_kill(s, C);
    script_await(s, A, "isr 1 leader 1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_write(s, A, ALL, "m2", ERR_NONE);
    script_kill(s, A);
    for (uint32_t nth = START_READS_MAX; nth > 0; nth--) {
        node_fail_disk(script_node(s, A), SIM_CALL_READ, nth);
        script_start_unready(s, A);
        script_pass(s, 50);
        node_mend_disk(script_node(s, A));
    }
    script_start(s, A);
    script_reads(s, A, "m1 m2");
    script_ends(s, "m1 m2");
}

#define MAKING_SYNCS_MAX 4

/* B is told to have the partition again when it has left the in-sync set. */
void s28_a_log_that_could_not_be_made_is_made_once(struct script *s)
{
    give_two_dirs(s, B);
    for (uint32_t nth = 1; nth <= MAKING_SYNCS_MAX; nth++) {
        node_fail_disk(script_node(s, B), SIM_CALL_SYNC, nth);
        script_make_topic(s, "1,2,3", "min.insync.replicas=2");
        script_write(s, A, ALL, "m1", ERR_NONE); /* when B is out of the in-sync set */
        script_await(s, A, "isr 1,2,3 leader 1");
        node_mend_disk(script_node(s, B));
        script_start(s, B);
        script_await(s, A, "isr 1,2,3 leader 1");
        if (nth < MAKING_SYNCS_MAX)
            script_delete_topic(s);
    }
    script_ends(s, "m1");
}

#define START_CALLS_MAX 200

/* At every call of a start, by a kill and by a power cut in turn. */
void s31_a_start_that_is_killed_anywhere_is_followed_by_another(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_kill(s, B);
    script_kill(s, C);
    script_await(s, A, "isr 1 leader 1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_write(s, A, ALL, "m2", ERR_NONE);
    script_kill(s, A);
    for (uint32_t calls = 1; calls < START_CALLS_MAX; calls++) {
        script_start_unready(s, A);
        sim_crash_after(script_node(s, A)->io, calls, calls % 2 ? SIM_KILL : SIM_POWER_CUT);
        script_pass(s, 20);
        if (node_lives(script_node(s, A)))
            script_kill(s, A);
        script_holds(s, A, "m1 m2");
    }
    script_start(s, A);
    script_reads(s, A, "m1 m2");
    script_ends(s, "m1 m2");
}

static const char *const many[] = {"m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"};
static const char many_text[] = "m1 m2 m3 m4 m5 m6 m7 m8";

/* Each record has a segment of its own. A alone has them, and a power cut takes unsynced names. */
void s32_a_segment_is_there_when_its_records_are_acknowledged(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=1 internal.segment.bytes=80");
    script_kill(s, B);
    script_kill(s, C);
    script_await(s, A, "isr 1 leader 1");
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        script_write(s, A, ALL, many[i], ERR_NONE);
    script_cut_power(s, A);
    script_start(s, A);
    script_await(s, A, "isr 1 leader 1");
    script_reads(s, A, many_text);
    script_ends(s, many_text);
}

/* What nobody wrote in cannot be found in the batches: A does not guess, and others have it all. */
void s32_who_cannot_read_its_history_of_epochs_does_not_lead(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    for (int id = 1; id <= NODES; id++)
        script_kill(s, id);
    script_tear(s, A, "leader-epoch-checkpoint");
    script_pass(s, 1000);
    for (int id = 1; id <= NODES; id++)
        script_start(s, id);
    script_await(s, C, "isr 2,3 leader 2");
    script_reads(s, B, "m1");
    script_write(s, B, ALL, "m2", ERR_NONE);
    script_holds(s, A, "m1");                              /* for a person to look at */
    script_fetch(s, A, 0, -1, ERR_NOT_LEADER_OR_FOLLOWER); /* B leads */
}

/* B has records behind its recovery point when it dies, and one of them rots. */
void s36_damage_is_cut_off_at_an_unclean_start_and_fetched_again(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    for (int i = 0; i < 4; i++)
        script_write(s, A, ALL, many[i], ERR_NONE);
    script_kill(s, B);
    script_damage(s, B, "m2");
    script_start(s, B);
    script_await(s, B, "isr 1,2,3");
    script_kill(s, B);
    script_tear(s, B, ".log");
    script_start(s, B);
    script_await(s, B, "isr 1,2,3");
    script_kill(s, A);
    script_await(s, B, "isr 2,3 leader 2");
    script_reads(s, B, "m1 m2 m3 m4");
    script_ends(s, "m1 m2 m3 m4");
}

/* After a clean stop the log is shorter than what was synced: that is no torn end. */
void s36_who_has_lost_synced_records_is_not_in_sync_any_more(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    for (int i = 0; i < 4; i++)
        script_write(s, A, ALL, many[i], ERR_NONE);
    script_stop(s, B);
    script_tear(s, B, ".log");
    script_node(s, B)->is_harmed = true;
    script_start(s, B);
    script_pass(s, 1000);
    script_await(s, C, "isr 1,3 leader 1");
    script_kill(s, A);
    script_await(s, C, "isr 3 leader 3");
    script_reads(s, C, "m1 m2 m3 m4");
    script_holds(s, B, "m1 m2");
}
