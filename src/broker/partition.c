/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition on its owner shard: a log, and who waits for it. Producers wait for an offset to be
 * acknowledgeable or committed, fetches for more to read; both lists are looked at when the log
 * has advanced. A single replica is its whole in-sync set, so the high watermark follows the
 * acknowledgeable offset.
 */
#include "broker/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"

struct partition *partition_new(struct broker *b, const char *topic, struct uuid topic_id,
                                int32_t index, int32_t leader_epoch)
{
    struct partition *p = xcalloc(1, sizeof(*p));

    atomic_init(&p->refs, 1);
    p->broker = b;
    p->owner = &b->shards[shard_for_partition(b, topic_id, index)];
    p->traffic = xcalloc((size_t)b->shard_count, sizeof(*p->traffic));
    p->topic = xstrdup(topic);
    p->topic_id = topic_id;
    p->index = index;
    atomic_init(&p->leader_epoch, leader_epoch);
    list_init(&p->of_control);
    list_init(&p->produce_waiters);
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
    assert(list_is_empty(&p->produce_waiters) && list_is_empty(&p->fetch_waiters));
    free(p->topic);
    free(p->traffic);
    free(p);
}

enum err partition_check_epoch(const struct partition *p, int32_t epoch)
{
    int32_t ours = atomic_load_explicit(&p->leader_epoch, memory_order_relaxed);

    if (epoch < 0 || epoch == ours)
        return ERR_NONE;
    return epoch < ours ? ERR_FENCED_LEADER_EPOCH : ERR_UNKNOWN_LEADER_EPOCH;
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
static void answer_producers(struct partition *p)
{
    int64_t hw = log_high_watermark(p->log);
    struct produce_part *part;

#ifdef PLANT_ACK_BEFORE_WRITE /* A mistake that tests/check/40-kill.sh has to find. */
    hw = log_end_offset(p->log);
#endif

    while ((part = LIST_FIRST(&p->produce_waiters, struct produce_part, link))) {
        if (part->append.last_offset >= hw)
            break;
        list_remove(&part->link);
        produce_part_done(part, ERR_NONE);
    }
}

static void log_advanced(void *ctx)
{
    struct partition *p = ctx;

    log_set_high_watermark(p->log, log_ack_offset(p->log));
    answer_producers(p);
    coordinator_advanced(p);
    if (!PLANTED(FORGET_TO_WAKE))
        fetch_wake_partition(p);
}

static void log_failed(void *ctx, enum err err, int64_t from_offset)
{
    struct partition *p = ctx;

    trace_error("partition.append_failed", "topic=%s partition=%d from_offset=%lld error=%s",
                p->topic, p->index, (long long)from_offset, err_name(err));
    LIST_EACH_SAFE (node, &p->produce_waiters) {
        struct produce_part *part = LIST_ENTRY(node, struct produce_part, link);

        if (part->append.last_offset < from_offset)
            continue;
        list_remove(&part->link);
        produce_part_done(part, ERR_KAFKA_STORAGE_ERROR);
    }
    coordinator_failed(p, err, from_offset);
    fetch_wake_partition(p);
    if (log_dir_has_failed(log_directory(p->log)))
        control_dir_failed(p->broker);
}

static void note_policy(struct partition *p)
{
    bool compacts = log_config(p->log)->cleanup_policy & TOPIC_CLEANUP_COMPACT;

    atomic_store_explicit(&p->is_compacted, compacts, memory_order_relaxed);
}

void partition_open(struct partition *p, struct log_loaded *loaded)
{
    static const struct log_events events = {.advanced = log_advanced, .failed = log_failed};

    p->log = log_own(loaded, p->owner->loop, &events, p);
    p->view = log_view(p->log);
    note_policy(p);
    if (log_latest_epoch(p->log) < atomic_load(&p->leader_epoch))
        log_begin_epoch(p->log, atomic_load(&p->leader_epoch));
    log_set_high_watermark(p->log, log_ack_offset(p->log));
    if (strcmp(p->topic, GROUP_TOPIC) == 0)
        coordinator_open(p);
}

void partition_set_config(struct partition *p, const struct topic_config *config)
{
    if (!p->log)
        return;
    log_set_config(p->log, config);
    note_policy(p);
}

static void log_gone(void *ctx, enum err err)
{
    struct partition *p = ctx;

    p->log = NULL;
    p->closed(p, err);
}

void partition_shut(struct partition *p, bool delete_files)
{
    struct produce_part *part;
    enum err err = delete_files ? ERR_UNKNOWN_TOPIC_OR_PARTITION : ERR_NOT_LEADER_OR_FOLLOWER;

    p->refusing = true;
    while ((part = LIST_FIRST(&p->produce_waiters, struct produce_part, link))) {
        list_remove(&part->link);
        produce_part_done(part, err);
    }
    coordinator_close(p, ERR_NOT_COORDINATOR);
    if (delete_files)
        log_delete(p->log, log_gone, p);
    else
        log_close(p->log, log_gone, p);
    fetch_wake_partition(p);
}

void partition_append(struct partition *p, struct produce_part *part)
{
    enum err err;

    if (p->refusing || !p->log) {
        produce_part_done(part, ERR_UNKNOWN_TOPIC_OR_PARTITION);
        return;
    }
    if (part->acks == -1 && log_config(p->log)->min_insync_replicas > 1) {
        produce_part_done(part, ERR_NOT_ENOUGH_REPLICAS);
        return;
    }
    part->append.leader_epoch = atomic_load_explicit(&p->leader_epoch, memory_order_relaxed);
    err = log_append(p->log, &part->append);
    part->log_start_offset = log_start_offset(p->log);
    if (!err && !part->append.is_duplicate)
        partition_count_append(p, &part->append);
    if (err || part->acks == 0) {
        produce_part_done(part, err);
        return;
    }
    /* A duplicate waits for the batch that it repeats, which may still be on its way. */
    if (part->append.is_duplicate) {
        struct list *at = p->produce_waiters.next;

        while (at != &p->produce_waiters &&
               LIST_ENTRY(at, struct produce_part, link)->append.last_offset <=
                   part->append.last_offset)
            at = at->next;
        list_insert_before(at, &part->link);
    } else {
        list_push_back(&p->produce_waiters, &part->link);
    }
    answer_producers(p);
}
