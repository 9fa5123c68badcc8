/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of networks that are cut in part, of topics that are made again, and of many sessions.
 */
#include "scenarios.h"

/* A leads, C is the controller; A and B hear C and the keeper, and not each other. */
void s20_two_that_do_not_hear_each_other_cost_no_leader(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_cut(s, A, B);
    script_cut(s, B, A);
    script_write(s, A, ALL, "m2", ERR_NONE);
    script_await(s, C, "isr 1,3 leader 1");
    script_pass(s, 2000);
    script_await(s, C, "isr 1,3 leader 1");
    script_await(s, B, "isr 1,3 leader 1");
    script_write(s, A, ALL, "m3", ERR_NONE);
    script_heal(s);
    script_await(s, C, "isr 1,2,3 leader 1");
    if (s->epoch > 2)
        script_fail(s, "the epoch has gone up to %d", s->epoch);
    script_ends(s, "m1 m2 m3");
}

/* m2 is not acknowledged before B is out of the in-sync set, which takes its time. */
static void write_without(struct script *s, const char *isr)
{
    struct ask *write = script_begin_write(s, A, ALL, "m2");

    script_pass(s, 300);
    script_reads(s, A, "m1");
    if (script_is_answered(write))
        script_fail(s, "m2 is acknowledged, and B does not have it");
    script_end_write(s, write, ERR_NONE);
    script_await(s, A, isr);
    script_reads(s, A, "m1 m2");
}

/* B hears A. */
void s21_whose_fetches_do_not_arrive_is_not_counted(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_pass(s, 100);
    script_cut(s, B, A);
    write_without(s, "isr 1,3 leader 1");
    script_ends(s, "m1 m2");
}

/* A hears B: the fetch that has arrived says what B had, and there is no other one. */
void s21_whose_answers_do_not_arrive_is_not_counted(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_pass(s, 100);
    script_cut(s, A, B);
    write_without(s, "isr 1,3 leader 1");
    script_holds(s, B, "m1");
    script_ends(s, "m1 m2");
}

/* B does not hear that the topic is deleted and made again, dies, and finds its old files. */
void s34_a_topic_made_again_has_nothing_of_the_one_before(struct script *s)
{
    struct uuid before;

    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_write(s, A, ALL, "m2", ERR_NONE);
    before = s->topic_id;
    for (int id = A; id <= C; id += C - A) {
        script_cut(s, id, B);
        script_cut(s, B, id);
    }
    script_delete_topic(s);
    script_make_topic(s, "1,2,3", "min.insync.replicas=1");
    script_await(s, A, "isr 1,3 leader 1");
    script_write(s, A, ALL, "n1", ERR_NONE);
    script_kill(s, B);
    script_holds(s, B, "m1 m2");
    script_heal(s);
    script_start(s, B);
    script_await(s, B, s->whole);
    script_holds(s, B, "n1");
    script_fetch(s, A, 2, -1, ERR_OFFSET_OUT_OF_RANGE);
    script_fetch_id(s, A, before, ERR_UNKNOWN_TOPIC_ID);
    script_fetch_id(s, A, s->topic_id, ERR_NONE);
    script_ends(s, "n1");
}

#define SLOTS 1000 /* max.incremental.fetch.session.cache.slots */
#define SILENCE_MS 121000

/* KIP-227: who gets no session gets everything, and who has lost its session is told. */
void s35_a_full_cache_of_sessions_leaves_no_answer_out(struct script *s)
{
    int32_t first;
    int32_t oldest;

    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    first = script_open_session(s, A, "m1");
    oldest = script_open_session(s, A, "m1");
    for (int i = 2; i < SLOTS; i++)
        if (script_open_session(s, A, "m1") == 0)
            script_fail(s, "the cache is full with %d sessions", i);
    if (script_open_session(s, A, "m1") != 0)
        script_fail(s, "a session has gone too early");
    script_go_on_in_session(s, A, first, ERR_NONE);
    script_reads(s, A, "m1");
    script_pass(s, SILENCE_MS);
    if (script_open_session(s, A, "m1") == 0)
        script_fail(s, "no session goes");
    script_go_on_in_session(s, A, oldest, ERR_FETCH_SESSION_ID_NOT_FOUND);
    script_reads(s, A, "m1");
    script_ends(s, "m1");
}
