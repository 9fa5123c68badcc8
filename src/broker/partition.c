/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition on its owner shard: a log, and who waits for it. Producers wait for an offset to be
 * acknowledgeable (acks=1) or committed (acks=all), fetches for more to read; the lists are looked
 * at when the log has advanced or its replica (replicate.c) says that the high watermark has.
 */
#include "broker/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct partition *partition_new(struct broker *b, const char *topic, struct uuid topic_id,
                                int32_t index)
{
    struct partition *p = xcalloc(1, sizeof(*p));

    atomic_init(&p->refs, 1);
    p->broker = b;
    p->owner = &b->shards[shard_for_partition(b, topic_id, index)];
    p->traffic = xcalloc((size_t)b->shard_count, sizeof(*p->traffic));
    p->topic = xstrdup(topic);
    p->topic_id = topic_id;
    p->index = index;
    atomic_init(&p->leader_epoch, -1);
    atomic_init(&p->is_leading, false);
    atomic_init(&p->is_serving, false);
    list_init(&p->commit_waiters);
    list_init(&p->ack_waiters);
    list_init(&p->fetch_waiters);
    return p;
}

struct partition *partition_ref(struct partition *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void partition_unref(struct partition *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1)
        return;
    assert(list_is_empty(&p->commit_waiters) && list_is_empty(&p->ack_waiters));
    assert(list_is_empty(&p->fetch_waiters));
    free(p->topic);
    free(p->traffic);
    free(p);
}

static enum err check_epoch(const struct partition *p, int32_t epoch)
{
    int32_t ours = atomic_load_explicit(&p->leader_epoch, memory_order_relaxed);

    if (epoch < 0 || epoch == ours)
        return ERR_NONE;
    return epoch < ours ? ERR_FENCED_LEADER_EPOCH : ERR_UNKNOWN_LEADER_EPOCH;
}

bool partition_is_led_here(const struct partition *p)
{
    return atomic_load_explicit(&p->is_leading, memory_order_relaxed);
}

enum err partition_check_leader(const struct partition *p, int32_t epoch)
{
    enum err err = check_epoch(p, epoch);

    return err || partition_is_led_here(p) ? err : ERR_NOT_LEADER_OR_FOLLOWER;
}

enum err partition_check_replica(const struct partition *p, int32_t epoch)
{
    enum err err = check_epoch(p, epoch);

    return err || atomic_load_explicit(&p->is_serving, memory_order_relaxed)
               ? err
               : partition_check_leader(p, epoch);
}

void partition_count_append(struct partition *p, const struct log_append *a)
{
    struct traffic_counts *of_topic = &p->traffic[p->owner->index];
    struct traffic_counts *of_all = &p->owner->counts->traffic;
    int64_t messages = a->last_offset - a->base_offset + 1;

    counter_add(&of_topic->messages_in, messages);
    counter_add(&of_topic->bytes_in, a->n);
    counter_add(&of_all->messages_in, messages);
    counter_add(&of_all->bytes_in, a->n);
}

/* Waiters stand in the order of their offsets, because the log assigns them in order. */
static void answer_below(struct list *waiters, int64_t offset)
{
    struct produce_part *part;

    while ((part = LIST_FIRST(waiters, struct produce_part, link))) {
        if (part->append.last_offset >= offset)
            break;
        list_remove(&part->link);
        produce_part_done(part, ERR_NONE);
    }
}

void partition_answer_committed(struct partition *p)
{
    int64_t hw = log_high_watermark(p->log);

#ifdef PLANT_ACK_BEFORE_WRITE /* A mistake that tests/check/40-kill.sh has to find. */
    hw = log_end_offset(p->log);
#endif
    answer_below(&p->commit_waiters, hw);
}

void partition_answer_acked(struct partition *p)
{
    answer_below(&p->ack_waiters, log_ack_offset(p->log));
}

static void fail_from(struct list *waiters, int64_t offset, enum err err)
{
    LIST_EACH_SAFE (node, waiters) {
        struct produce_part *part = LIST_ENTRY(node, struct produce_part, link);

        if (part->append.last_offset < offset)
            continue;
        list_remove(&part->link);
        produce_part_done(part, err);
    }
}

void partition_fail_commits(struct partition *p, enum err err)
{
    fail_from(&p->commit_waiters, 0, err);
}

void partition_fail_producers(struct partition *p, enum err err)
{
    fail_from(&p->commit_waiters, 0, err);
    fail_from(&p->ack_waiters, 0, err);
}

static void log_advanced(void *ctx)
{
    struct partition *p = ctx;

    partition_answer_acked(p);
    replicate_advanced(p);
    /* Followers read above the high watermark. */
    if (p->replica.member_count > 1)
        fetch_wake_partition(p);
}

static void log_failed(void *ctx, enum err err, int64_t from_offset)
{
    struct partition *p = ctx;

    trace_error("partition.append_failed", "topic=%s partition=%d from_offset=%lld error=%s",
                p->topic, p->index, (long long)from_offset, err_name(err));
    fail_from(&p->commit_waiters, from_offset, ERR_KAFKA_STORAGE_ERROR);
    fail_from(&p->ack_waiters, from_offset, ERR_KAFKA_STORAGE_ERROR);
    coordinator_failed(p, err, from_offset);
    fetch_wake_partition(p);
    if (log_dir_has_failed(log_directory(p->log)))
        control_dir_failed(p->broker);
    else
        replicate_try_again(p);
}

static void note_policy(struct partition *p)
{
    bool compacts = log_config(p->log)->cleanup_policy & TOPIC_CLEANUP_COMPACT;

    atomic_store_explicit(&p->is_compacted, compacts, memory_order_relaxed);
}

void partition_open(struct partition *p, struct log_loaded *loaded,
                    const struct metadata_partition *state)
{
    static const struct log_events events = {.advanced = log_advanced, .failed = log_failed};

    p->log = log_own(loaded, p->owner->loop, &events, p);
    p->view = log_view(p->log);
    note_policy(p);
    replicate_begin(p, state);
}

void partition_set_config(struct partition *p, const struct topic_config *config)
{
    if (!p->log)
        return;
    log_set_config(p->log, config);
    note_policy(p);
    replicate_configure(p);
}

static void log_gone(void *ctx, enum err err)
{
    struct partition *p = ctx;

    p->log = NULL;
    p->closed(p, err);
}

void partition_shut(struct partition *p, bool delete_files)
{
    enum err err = delete_files ? ERR_UNKNOWN_TOPIC_OR_PARTITION : ERR_NOT_LEADER_OR_FOLLOWER;

    p->refusing = true;
    partition_fail_producers(p, err);
    replicate_end(p);
    coordinator_close(p, ERR_NOT_COORDINATOR);
    if (delete_files)
        log_delete(p->log, log_gone, p);
    else
        log_close(p->log, log_gone, p);
    fetch_wake_partition(p);
}

/* A duplicate waits for the batch that it repeats, which may still be on its way. */
static void wait_in_order(struct list *waiters, struct produce_part *part)
{
    struct list *at = part->append.is_duplicate ? waiters->next : waiters;

    while (at != waiters && LIST_ENTRY(at, struct produce_part, link)->append.last_offset <=
                                part->append.last_offset)
        at = at->next;
    list_insert_before(at, &part->link);
}

static enum err check_append(const struct partition *p, const struct produce_part *part)
{
    if (p->refusing || !p->log)
        return ERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (!partition_is_led_here(p))
        return ERR_NOT_LEADER_OR_FOLLOWER;
    return part->acks == -1 ? replica_check_isr(&p->replica) : ERR_NONE;
}

void partition_append(struct partition *p, struct produce_part *part)
{
    enum err err = check_append(p, part);

    if (err) {
        produce_part_done(part, err);
        return;
    }
    part->append.leader_epoch = p->replica.leader_epoch;
    part->is_replicated = p->replica.member_count > 1;
    err = log_append(p->log, &part->append);
    part->log_start_offset = log_start_offset(p->log);
    if (!err && !part->append.is_duplicate)
        partition_count_append(p, &part->append);
    if (err || part->acks == 0) {
        produce_part_done(part, err);
        return;
    }
    wait_in_order(part->acks == -1 ? &p->commit_waiters : &p->ack_waiters, part);
    partition_answer_committed(p);
    partition_answer_acked(p);
}
