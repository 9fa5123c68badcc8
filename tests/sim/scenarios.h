/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_SCENARIOS_H
#define SL_TESTS_SIM_SCENARIOS_H

#include "script.h"

/*
 * All scripted runs, with the planted mistake (base/planted.h) that each has to find; NOTHING: it
 * was seen to fail with a change that is not planted.
 */
#define SCENARIOS(X)                                                                               \
    X(s1_an_acked_record_survives_the_restart_of_who_is_elected_next, NOTHING)                     \
    X(s2_another_record_at_an_offset_displaces_the_one_that_only_the_old_leader_has, NOTHING)      \
    X(s10_a_former_lifes_orders_neither_make_a_leader_nor_delete_a_log, NOTHING)                   \
    X(s11_who_may_have_joined_is_waited_for, IGNORE_PROPOSED)                                      \
    X(s14_who_comes_back_with_an_empty_disk_does_not_lead, LEAD_WHAT_IS_LOST)                      \
    X(s15_the_last_one_in_sync_has_kept_all_when_its_power_is_back, NOTHING)                       \
    X(s16_what_is_written_below_min_insync_is_not_read, COMMIT_BELOW_MIN_ISR)                      \
    X(s17_a_leader_that_is_cut_off_commits_nothing, ASSUME_SHRINK)                                 \
    X(s18_an_unclean_election_is_asked_for_and_the_old_leader_follows, ELECT_ANYBODY)              \
    X(s19_a_record_that_the_isr_shrank_away_from_is_not_acknowledged, COMMIT_BELOW_MIN_ISR)        \
    X(s20_two_that_do_not_hear_each_other_cost_no_leader, NOTHING)                                 \
    X(s21_whose_fetches_do_not_arrive_is_not_counted, NOTHING)                                     \
    X(s21_whose_answers_do_not_arrive_is_not_counted, NOTHING)                                     \
    X(s24_a_leader_that_lost_records_leads_on_in_another_epoch, SAME_EPOCH_FOR_NEXT_LIFE)          \
    X(s25_a_follower_that_lost_records_is_not_elected, NOTHING)                                    \
    X(s26_all_lose_power_and_nothing_that_was_synced, NOTHING)                                     \
    X(s26_all_lose_power_and_the_page_cache, NOTHING)                                              \
    X(s27_who_lost_records_and_who_missed_them_wait_for_the_third, ELECT_ANYBODY)                  \
    X(s28_a_write_that_failed_is_the_last_one, NOTHING)                                            \
    X(s28_a_sync_that_failed_acknowledges_nothing, TRUST_FAILED_SYNC)                              \
    X(s28_a_log_directory_fails_and_others_lead_what_is_there, NOTHING)                            \
    X(s28_the_controllers_log_directory_fails_and_others_lead_what_is_there, NOTHING)              \
    X(s28_a_log_that_cannot_be_read_is_not_begun_in_another_directory, NOTHING)                    \
    X(s28_a_log_that_could_not_be_made_is_made_once, NOTHING)                                      \
    X(s29_a_consumer_of_another_epoch_is_told_so, NOTHING)                                         \
    X(s29_a_consumer_reads_at_a_follower_what_is_committed, READ_AHEAD_AT_FOLLOWER)                \
    X(s29_who_waits_at_a_follower_hears_that_the_topic_is_deleted, NOTHING)                        \
    X(s31_a_start_that_is_killed_anywhere_is_followed_by_another, CUT_ONE_TOO_MANY)                \
    X(s32_a_segment_is_there_when_its_records_are_acknowledged, SKIP_DIRECTORY_SYNC)               \
    X(s32_who_cannot_read_its_history_of_epochs_does_not_lead, NOTHING)                            \
    X(s34_a_topic_made_again_has_nothing_of_the_one_before, NOTHING)                               \
    X(s35_a_full_cache_of_sessions_leaves_no_answer_out, NOTHING)                                  \
    X(s36_damage_is_cut_off_at_an_unclean_start_and_fetched_again, ACCEPT_TORN_TAIL)               \
    X(s36_who_has_lost_synced_records_is_not_in_sync_any_more, NOTHING)                            \
    X(a_follower_fails_and_returns, NOTHING)                                                       \
    X(a_topic_is_made_while_a_dead_broker_counts_as_alive, NOTHING)                                \
    X(the_leader_fails_and_returns_with_a_longer_log, NOTHING)                                     \
    X(all_replicas_die_and_the_first_or_the_last_to_return_leads, ELECT_ANYBODY)                   \
    X(an_uncommitted_record_is_retried_and_kept_once, NO_DUPLICATE_CHECK)

#define X(name, mistake) void name(struct script *s);
SCENARIOS(X)
#undef X

#endif
