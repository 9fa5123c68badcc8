/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replica of a partition, on its owner: what happens to it becomes events of the pure step
 * (replica.h), and the step's effects are carried out on the log and on those who wait.
 *
 * Where a partition has one replica this is all there is: it leads, and its high watermark follows
 * what its log acknowledges.
 */
#include <string.h>

#include "base/planted.h"
#include "broker/coordinator.h"

static int64_t now_ms(const struct partition *p)
{
    return shard_now_ns(p->owner) / 1000000;
}

static struct replica_log log_facts(const struct partition *p)
{
    int64_t end = log_end_offset(p->log);
    int64_t start = log_start_offset(p->log);

    return (struct replica_log){
        .start = start,
        .end = end,
        .acked = log_ack_offset(p->log),
        .last_epoch = end > start ? log_epoch_at(p->log, end - 1) : -1,
        .latest_epoch = log_latest_epoch(p->log),
    };
}

static struct replica_config configuration(const struct partition *p)
{
    const struct config *config = p->owner->config;

    return (struct replica_config){
        .lag_time_max_ms = config_i64(config, CONFIG_REPLICA_LAG_TIME_MAX_MS),
        .lag_messages_max = -1,
        .min_insync = log_config(p->log)->min_insync_replicas,
        .backoff_max_ms = config_i32(config, CONFIG_REPLICA_FETCH_BACKOFF_MS),
    };
}

static bool is_of_groups(const struct partition *p)
{
    return strcmp(p->topic, GROUP_TOPIC) == 0;
}

/* What other shards see. */
static void publish(struct partition *p)
{
    const struct replica *r = &p->replica;
    bool is_leading = r->role == REPLICA_LEADER && r->epoch_start >= 0;

    atomic_store_explicit(&p->leader_epoch, r->leader_epoch, memory_order_relaxed);
    atomic_store_explicit(&p->is_leading, is_leading, memory_order_relaxed);
}

static void resign(struct partition *p)
{
    partition_fail_producers(p, ERR_NOT_LEADER_OR_FOLLOWER);
    coordinator_close(p, ERR_NOT_COORDINATOR);
    fetch_wake_partition(p);
}

static void lead(struct partition *p)
{
    log_begin_epoch(p->log, p->replica.leader_epoch);
    if (is_of_groups(p) && !p->coordinator)
        coordinator_open(p);
}

static void commit(struct partition *p)
{
    log_set_high_watermark(p->log, p->replica.high_watermark);
    partition_answer_committed(p);
    coordinator_advanced(p);
    if (!PLANTED(FORGET_TO_WAKE))
        fetch_wake_partition(p);
}

static void carry_out(struct partition *p, const struct replica_effects *fx)
{
    publish(p);
    if (fx->must_refuse)
        trace_error("partition.epoch_led_before", "topic=%s partition=%d epoch=%d", p->topic,
                    p->index, p->replica.leader_epoch);
    if (fx->has_resigned)
        resign(p);
    if (fx->has_led)
        lead(p);
    if (fx->has_moved)
        commit(p);
    if (fx->lacks_isr)
        partition_fail_commits(p, ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    if (fx->wake_ms >= 0)
        shard_delay_set(p->owner, &p->replica_delay, fx->wake_ms * 1000000);
    else
        shard_delay_cancel(p->owner, &p->replica_delay);
}

static void step(struct partition *p, struct replica_event *e)
{
    struct replica_effects fx;

    e->now_ms = now_ms(p);
    e->log = log_facts(p);
    replica_step(&p->replica, e, &fx);
    carry_out(p, &fx);
}

static void time_has_come(struct delay *d)
{
    struct replica_event e = {.kind = REPLICA_TICK};

    step(CONTAINER_OF(d, struct partition, replica_delay), &e);
}

void replicate_begin(struct partition *p, const struct metadata_partition *state)
{
    struct replica_event e = {.kind = REPLICA_ASSIGN, .assign = state};
    struct replica_config config = configuration(p);

    p->replica_delay.expired = time_has_come;
    replica_init(&p->replica, p->broker->node_id, &config, log_high_watermark(p->log));
    step(p, &e);
}

void replicate_end(struct partition *p)
{
    shard_delay_cancel(p->owner, &p->replica_delay);
    replica_fini(&p->replica);
    atomic_store_explicit(&p->is_leading, false, memory_order_relaxed);
}

void replicate_follow_image(struct partition *p, const struct metadata_image *image,
                            const struct metadata_partition *state)
{
    struct replica_event assign = {.kind = REPLICA_ASSIGN, .assign = state};
    struct replica_event brokers = {.kind = REPLICA_BROKERS, .image = image};

    if (!p->log || p->refusing)
        return;
    step(p, &assign);
    if (state->replicas.count > 1)
        step(p, &brokers);
}

void replicate_configure(struct partition *p)
{
    struct replica_config config = configuration(p);
    struct replica_event e = {.kind = REPLICA_CONFIG, .config = &config};

    if (!p->refusing)
        step(p, &e);
}

void replicate_advanced(struct partition *p)
{
    struct replica_event e = {.kind = REPLICA_ADVANCED};

    if (!p->refusing)
        step(p, &e);
}
