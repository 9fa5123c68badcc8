/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of leaders: who is elected, who commits what, and what becomes of the one before.
 */
#include "scenarios.h"

#include "base/assert.h"

/* B has m2 and has not heard that it is committed, when both die and it is the first to return. */
void s1_an_acked_record_survives_the_restart_of_who_is_elected_next(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_kill(s, C);
    script_await(s, A, "isr 1,2 leader 1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_write(s, A, ALL, "m2", ERR_NONE);
    script_kill(s, B);
    script_kill(s, A);
    script_pass(s, 1000); /* their sessions end, and nobody is there to notice */
    script_start(s, B);
    script_holds(s, B, "m1 m2");
    script_await(s, B, "isr 2 leader 2");
    script_reads(s, B, "m1 m2");
    script_start(s, A);
    script_ends(s, "m1 m2");
}

static void take_roles(struct script *s, const void *response)
{
    s->err = (enum err)((const struct leader_and_isr_response *)response)->error_code;
}

static void take_stops(struct script *s, const void *response)
{
    s->err = (enum err)((const struct stop_replica_response *)response)->error_code;
}

/* As the controller told A when the topic was made: it leads in epoch 0, and all are in sync. */
static enum err tell_role_of(struct script *s, int64_t broker_epoch)
{
    struct leader_and_isr_request request;
    struct leader_and_isr_request_topic topic;
    struct leader_and_isr_request_partition p;
    int32_t ids[] = {A, B, C};

    wire_init(&leader_and_isr_request_schema, &request);
    wire_init(&leader_and_isr_request_topic_schema, &topic);
    wire_init(&leader_and_isr_request_partition_schema, &p);
    p.controller_epoch = request.controller_epoch = 1;
    p.leader = A;
    p.isr.v = p.replicas.v = ids;
    p.isr.n = p.replicas.n = 3;
    topic.topic_name = STR_LIT("t");
    topic.topic_id = s->topic_id;
    topic.partition_states.v = &p;
    topic.partition_states.n = 1;
    request.controller_id = C;
    request.broker_epoch = broker_epoch;
    request.type = 1;
    request.topic_states.v = &topic;
    request.topic_states.n = 1;
    return script_ask(s, A, API_LEADER_AND_ISR, 7, &request, take_roles);
}

static enum err tell_deletion_of(struct script *s, int64_t broker_epoch)
{
    struct stop_replica_request request;
    struct stop_replica_request_topic_state topic;
    struct stop_replica_request_partition p;

    wire_init(&stop_replica_request_schema, &request);
    wire_init(&stop_replica_request_topic_state_schema, &topic);
    wire_init(&stop_replica_request_partition_schema, &p);
    p.delete_partition = true;
    topic.topic_name = STR_LIT("t");
    topic.partition_states.v = &p;
    topic.partition_states.n = 1;
    request.controller_id = C;
    request.controller_epoch = 1;
    request.broker_epoch = broker_epoch;
    request.topic_states.v = &topic;
    request.topic_states.n = 1;
    return script_ask(s, A, API_STOP_REPLICA, 4, &request, take_stops);
}

void s10_a_former_lifes_orders_neither_make_a_leader_nor_delete_a_log(struct script *s)
{
    int64_t life;

    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    life = script_node(s, A)->broker_epoch;
    script_kill(s, A);
    script_start(s, A);
    script_await(s, A, "isr 1,2,3 leader 2");
    assert(script_node(s, A)->broker_epoch != life);
    script_expect(s, tell_role_of(s, life), ERR_STALE_BROKER_EPOCH, "an order");
    script_expect(s, tell_deletion_of(s, life), ERR_STALE_BROKER_EPOCH, "a deletion");
    script_pass(s, 500);
    script_await(s, A, "isr 1,2,3 leader 2");
    script_holds(s, A, "m1");
    script_ends(s, "m1");
}

/*
 * A has proposed B, and does not hear that B is in sync: the controller's answer is lost, and so
 * are its orders. B may lead next, so what B lacks is not committed.
 */
void s11_who_may_have_joined_is_waited_for(struct script *s)
{
    script_topic(s, "1,2", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_kill(s, B);
    script_await(s, A, "isr 1 leader 1");
    script_cut(s, B, A);
    script_start(s, B);
    script_pass(s, 500); /* A hears of the new life, and nothing of it */
    script_heal(s);
    script_cut(s, C, A);
    script_await(s, C, "isr 1,2 leader 1");
    script_cut(s, A, B);
    script_cut(s, B, A);
    script_write(s, A, ALL, "z1", ERR_REQUEST_TIMED_OUT);
    script_reads(s, A, "m1");
    script_kill(s, A);
    script_await(s, C, "isr 2 leader 2");
    script_ends(s, "m1");
}

/* Below min.insync.replicas A takes records for itself; whoever leads next need not have them. */
void s16_what_is_written_below_min_insync_is_not_read(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_kill(s, B);
    script_kill(s, C);
    script_await(s, A, "isr 1 leader 1");
    script_write(s, A, ALL, "m2", ERR_NOT_ENOUGH_REPLICAS);
    script_write(s, A, ONE, "m5", ERR_NONE);
    script_pass(s, 1000);
    script_reads(s, A, "m1");
    script_kill(s, A);
    script_start(s, B);
    script_await(s, B, "isr 1 leader -1");
    script_elect_unclean(s);
    script_start(s, C); /* alone B does not know what is committed */
    script_await(s, B, "isr 2,3 leader 2");
    script_reads(s, B, "m1");
    script_ends(s, "m1");
}

/* Clients still reach A, and nobody else does. */
void s17_a_leader_that_is_cut_off_commits_nothing(struct script *s)
{
    struct ask *first;

    script_topic(s, "1,2", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_isolate(s, A);
    first = script_begin_write(s, A, ALL, "z1");
    script_write(s, A, ONE, "z2", ERR_NONE);
    script_write(s, A, NONE, "z3", ERR_NONE);
    script_await(s, B, "isr 2 leader 2");
    script_end_write(s, first, ERR_REQUEST_TIMED_OUT);
    script_write(s, A, ALL, "z4", ERR_REQUEST_TIMED_OUT);
    script_write(s, B, ALL, "m2", ERR_NONE);
    script_reads(s, A, "m1");
    script_holds(s, A, "m1 z1 z2 z3 z4");
    script_ends(s, "m1 m2");
}

/* A alone was in sync and is gone; an operator prefers B, which lacks m2 and m3, to nobody. */
void s18_an_unclean_election_is_asked_for_and_the_old_leader_follows(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_kill(s, B);
    script_kill(s, C);
    script_await(s, A, "isr 1 leader 1");
    script_write(s, A, ALL, "m2", ERR_NONE);
    script_write(s, A, ALL, "m3", ERR_NONE);
    script_reads(s, A, "m1 m2 m3");
    script_kill(s, A);
    script_start(s, B);
    script_start(s, C);
    script_await(s, B, "isr 1 leader -1");
    script_pass(s, 1000);
    script_write(s, B, ALL, "m4", ERR_NOT_LEADER_OR_FOLLOWER);
    script_elect_unclean(s);
    script_forget(s, 1);
    s->may_cut_committed = true;
    script_await(s, B, "isr 2,3 leader 2");
    script_write(s, B, ALL, "m4", ERR_NONE);
    script_epoch_end(s, B, 1, "epoch 0 ends at 1"); /* a consumer that has read m2 is told */
    script_fetch(s, B, 3, -1, ERR_OFFSET_OUT_OF_RANGE);
    script_ends(s, "m1 m4");
}

/* B and C die before they fetch m1; the in-sync set shrinks while its producer waits. */
void s19_a_record_that_the_isr_shrank_away_from_is_not_acknowledged(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=2");
    script_be_idempotent(s, A);
    script_kill(s, B);
    script_kill(s, C);
    script_write(s, A, ALL, "m1", ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    script_await(s, A, "isr 1 leader 1");
    script_reads(s, A, "");
    script_write_again(s, A, "m1", ERR_NOT_ENOUGH_REPLICAS);
    script_start(s, B);
    script_await(s, A, "isr 1,2 leader 1");
    script_write_again(s, A, "m1", ERR_NONE);
    script_ends(s, "m1");
}

/* What a consumer believes about the epoch is compared, and only the leader answers it. */
void s29_a_consumer_of_another_epoch_is_told_so(struct script *s)
{
    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_fetch(s, A, 0, 0, ERR_NONE);
    script_fetch(s, A, 0, 1, ERR_UNKNOWN_LEADER_EPOCH);
    script_fetch(s, B, 0, 0, ERR_NOT_LEADER_OR_FOLLOWER);
    script_kill(s, A);
    script_await(s, B, "isr 2,3 leader 2");
    script_fetch(s, B, 0, 0, ERR_FENCED_LEADER_EPOCH);
    script_fetch(s, B, 0, s->epoch, ERR_NONE);
    script_fetch(s, B, 0, s->epoch + 1, ERR_UNKNOWN_LEADER_EPOCH);
    script_epoch_end(s, B, 0, "epoch 0 ends at 1");
    script_ends(s, "m1");
}

#define HEARD_MS 100 /* every follower has had an answer of its leader */

/* KIP-392: a follower serves who stands in a rack, and what is committed only. */
void s29_a_consumer_reads_at_a_follower_what_is_committed(struct script *s)
{
    struct ask *waiting;

    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_pass(s, HEARD_MS);
    script_fetch_near(s, C, 0, 1, ERR_UNKNOWN_LEADER_EPOCH);
    script_fetch_near(s, C, 1, -1, ERR_OFFSET_NOT_AVAILABLE);
    waiting = script_begin_fetch_near(s, C, 0);
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_end_fetch(s, waiting, "m1", ERR_NONE);
    script_fetch_near(s, C, 1, 0, ERR_NONE);
    script_fetch(s, C, 0, 0, ERR_NOT_LEADER_OR_FOLLOWER);
    script_cut(s, B, A);
    script_write(s, A, ONE, "m2", ERR_NONE);
    script_pass(s, HEARD_MS);
    script_holds(s, C, "m1 m2");
    script_fetch_near(s, C, 2, -1, ERR_OFFSET_NOT_AVAILABLE);
    waiting = script_begin_fetch_near(s, C, 1); /* until B is in sync no more */
    script_end_fetch(s, waiting, "m2", ERR_NONE);
    waiting = script_begin_fetch_near(s, C, 2);
    script_kill(s, A);
    script_end_fetch(s, waiting, "", ERR_NOT_LEADER_OR_FOLLOWER);
    script_await(s, C, "isr 2,3 leader 3");
    script_fetch_near(s, C, 2, 0, ERR_FENCED_LEADER_EPOCH);
    script_fetch_near(s, C, 2, s->epoch, ERR_NONE);
    script_ends(s, "m1 m2");
}

void s29_who_waits_at_a_follower_hears_that_the_topic_is_deleted(struct script *s)
{
    struct ask *waiting;

    script_topic(s, "1,2,3", "min.insync.replicas=1");
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_pass(s, HEARD_MS);
    waiting = script_begin_fetch_near(s, B, 0);
    script_end_fetch(s, waiting, "m1", ERR_NONE);
    waiting = script_begin_fetch_near(s, B, 1);
    script_delete_topic(s);
    script_end_fetch(s, waiting, "", ERR_UNKNOWN_TOPIC_OR_PARTITION);
    script_forget(s, 0);
    script_make_topic(s, "1,2,3", "min.insync.replicas=1");
    script_ends(s, "");
}

/* B has refused a connection already, and its session goes on: it is given a topic to lead. */
void a_topic_is_made_while_a_dead_broker_counts_as_alive(struct script *s)
{
    int64_t killed_ns = run_now(&s->run);

    script_kill(s, B);
    script_pass(s, 200);
    script_make_topic(s, "2,1,3", "min.insync.replicas=2");
    script_await(s, A, "isr 1,3 leader 1");
    if (run_now(&s->run) - killed_ns >= NODE_SESSION_MS * MS)
        script_fail(s, "only the end of its session has told that broker %d is gone", B);
    script_write(s, A, ALL, "m1", ERR_NONE);
    script_ends(s, "m1");
}
