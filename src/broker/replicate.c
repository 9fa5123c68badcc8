/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replica of a partition, on its owner: what happens to it becomes events of the pure step
 * (replica.h), and the step's effects are carried out on the log and on those who wait.
 *
 * A follower appends what its leader sent, byte for byte, once the checksums are right.
 *
 * Where a partition has one replica this is all there is: it leads, and its high watermark follows
 * what its log acknowledges.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"
#include "broker/cluster.h"
#include "broker/coordinator.h"
#include "broker/fetcher.h"

#define FETCH_MARGIN_MS 250

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

/* What other shards see. Consumers that wait at a follower which serves no more are to hear so. */
static void publish(struct partition *p)
{
    const struct replica *r = &p->replica;
    bool is_leading = r->role == REPLICA_LEADER && r->epoch_start >= 0;
    bool serves = replica_serves(r);
    bool has_served = atomic_load_explicit(&p->is_serving, memory_order_relaxed);

    atomic_store_explicit(&p->leader_epoch, r->leader_epoch, memory_order_relaxed);
    atomic_store_explicit(&p->is_leading, is_leading, memory_order_relaxed);
    atomic_store_explicit(&p->is_serving, serves, memory_order_relaxed);
    if (has_served && !serves)
        fetch_wake_partition(p);
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
    /* Followers that wait in the epoch before: what they have does not count any more. */
    fetch_wake_partition(p);
}

static void commit(struct partition *p)
{
    log_set_high_watermark(p->log, p->replica.high_watermark);
    partition_answer_committed(p);
    coordinator_advanced(p);
    if (!PLANTED(FORGET_TO_WAKE))
        fetch_wake_partition(p);
}

static void tell(struct partition *p, struct replica_event *e);

static void cut_done(void *ctx, enum err err)
{
    struct replica_event e = {.kind = REPLICA_TRUNCATED, .err = err};
    struct partition *p = ctx;

    if (!p->refusing)
        tell(p, &e);
}

static void start_moved(void *ctx, enum err err)
{
    struct partition *p = ctx;

    (void)err; /* The next answer asks again. */
    p->is_moving_start = false;
}

static void go_on(struct partition *p, const struct replica_effects *fx)
{
    switch (fx->next) {
    case REPLICA_NEXT_FETCH: fetcher_want(p, fx->offset); break;
    case REPLICA_NEXT_TRUNCATE:
        trace_info("partition.truncating", "topic=%s partition=%d from=%lld to=%lld epoch=%d",
                   p->topic, p->index, (long long)log_end_offset(p->log), (long long)fx->offset,
                   p->replica.leader_epoch);
        log_truncate(p->log, fx->offset, cut_done, p);
        break;
    case REPLICA_NEXT_RESTART:
        trace_info("partition.starting_over", "topic=%s partition=%d end=%lld at=%lld", p->topic,
                   p->index, (long long)log_end_offset(p->log), (long long)fx->offset);
        log_start_over(p->log, fx->offset, cut_done, p);
        break;
    case REPLICA_NEXT_APPEND: /* replicate_fetched has the records. */
    case REPLICA_NEXT_NOTHING: break;
    }
    if (fx->log_start > log_start_offset(p->log) && !p->is_moving_start) {
        p->is_moving_start = true;
        log_advance_start(p->log, fx->log_start, start_moved, p);
    }
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
    if (fx->must_propose)
        propose_isr(p);
    if (fx->lacks_isr)
        partition_fail_commits(p, ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    if (fx->wake_ms >= 0)
        shard_delay_set(p->owner, &p->replica_delay, fx->wake_ms * 1000000);
    else
        shard_delay_cancel(p->owner, &p->replica_delay);
    go_on(p, fx);
}

static void step(struct partition *p, struct replica_event *e, struct replica_effects *fx)
{
    e->now_ms = now_ms(p);
    e->log = log_facts(p);
    replica_step(&p->replica, e, fx);
    carry_out(p, fx);
}

static void tell(struct partition *p, struct replica_event *e)
{
    struct replica_effects fx;

    step(p, e, &fx);
}

static void time_has_come(struct delay *d)
{
    struct replica_event e = {.kind = REPLICA_TICK};

    tell(CONTAINER_OF(d, struct partition, replica_delay), &e);
}

void replicate_begin(struct partition *p, const struct metadata_partition *state)
{
    struct replica_event e = {.kind = REPLICA_ASSIGN, .assign = state};
    struct replica_config config = configuration(p);

    p->replica_delay.expired = time_has_come;
    replica_init(&p->replica, p->broker->node_id, &config, log_high_watermark(p->log));
    tell(p, &e);
}

void replicate_end(struct partition *p)
{
    shard_delay_cancel(p->owner, &p->replica_delay);
    fetcher_forget(p);
    replica_fini(&p->replica);
    atomic_store_explicit(&p->is_leading, false, memory_order_relaxed);
    atomic_store_explicit(&p->is_serving, false, memory_order_relaxed);
}

void replicate_follow_image(struct partition *p, const struct metadata_image *image,
                            const struct metadata_partition *state)
{
    struct replica_event e = {.kind = REPLICA_ASSIGN, .assign = state};

    if (!p->log || p->refusing)
        return;
    tell(p, &e);
    replicate_note_brokers(p, image);
}

void replicate_note_brokers(struct partition *p, const struct metadata_image *image)
{
    struct replica_event e = {.kind = REPLICA_BROKERS, .image = image};

    if (p->log && !p->refusing && p->replica.member_count > 1)
        tell(p, &e);
}

void replicate_configure(struct partition *p)
{
    struct replica_config config = configuration(p);
    struct replica_event e = {.kind = REPLICA_CONFIG, .config = &config};

    if (!p->refusing)
        tell(p, &e);
}

void replicate_advanced(struct partition *p)
{
    struct replica_event e = {.kind = REPLICA_ADVANCED};

    if (!p->refusing)
        tell(p, &e);
}

enum err replicate_fetch(struct partition *p, struct replica_fetch *fetch,
                         struct replica_effects *fx)
{
    struct replica_event e = {.kind = REPLICA_FETCH};

    log_epoch_end(p->log, fetch->last_epoch, &fetch->found_epoch, &fetch->found_end);
    e.fetch = *fetch;
    step(p, &e, fx);
    return fx->err;
}

int32_t replicate_last_epoch(const struct partition *p)
{
    return log_facts(p).last_epoch;
}

/* ---- what a leader sent ----------------------------------------------------------------- */

bool partition_is_sure(const struct partition *p)
{
    int64_t within_ms = config_i32(p->owner->config, CONFIG_REPLICA_FETCH_WAIT_MAX_MS) +
                        FETCH_MARGIN_MS;

    return broker_is_sure(p->owner) || replica_is_heard(&p->replica, now_ms(p), within_ms);
}

static enum err append_batch(struct partition *p, struct io_buf *buf, size_t at,
                             const struct batch_header *h)
{
    struct bytes batch = {.p = buf->data + at, .n = batch_total_bytes(h)};
    struct log_append a = {
        .buf = buf,
        .batch = buf->data + at,
        .n = batch.n,
        .max_timestamp = h->max_timestamp,
        .origin = LOG_ORIGIN_REPLICATION,
        .now_ms = shard_now_ms(p->owner),
    };

    if (!batch_crc_ok(batch))
        return ERR_CORRUPT_MESSAGE;
    /* What we have: a leader sends whole batches. */
    return batch_last_offset(h) < log_end_offset(p->log) ? ERR_NONE : log_append(p->log, &a);
}

/* The last batch may be cut: the next answer has it whole. */
static enum err append_records(struct partition *p, struct bytes records)
{
    struct io_buf *buf = io_buf_new(&p->broker->budget, (size_t)records.n);
    struct batch_header h;
    enum err err = ERR_NONE;
    int32_t at = 0;

    memcpy(buf->data, records.p, (size_t)records.n);
    while (!err && at < records.n) {
        struct bytes rest = {.p = buf->data + at, .n = records.n - at};

        if (batch_header_parse(rest, &h) || batch_total_bytes(&h) > rest.n)
            break;
        err = append_batch(p, buf, (size_t)at, &h);
        at += batch_total_bytes(&h);
    }
    io_buf_unref(buf);
    return !err && at == 0 ? ERR_CORRUPT_MESSAGE : err;
}

void replicate_fetched(struct partition *p, struct replica_fetched *fetched, struct bytes records)
{
    struct replica_event e = {.kind = REPLICA_FETCHED};
    struct replica_effects fx;

    if (!p->log || p->refusing)
        return;
    log_epoch_end(p->log, fetched->diverging_epoch, &fetched->found_epoch, &fetched->found_end);
    e.fetched = *fetched;
    step(p, &e, &fx);
    if (fx.next != REPLICA_NEXT_APPEND)
        return;
    e = (struct replica_event){.kind = REPLICA_APPENDED, .err = append_records(p, records)};
    if (e.err)
        trace_error("partition.replication_failed", "topic=%s partition=%d offset=%lld error=%s",
                    p->topic, p->index, (long long)fetched->offset, err_name(e.err));
    tell(p, &e);
}

void replicate_try_again(struct partition *p)
{
    if (!p->refusing)
        shard_delay_set(p->owner, &p->replica_delay,
                        shard_now_ns(p->owner) + p->replica.backoff_max_ms * 1000000);
}

static void say_isr(const struct partition *p)
{
    int32_t *isr = xcalloc((size_t)p->replica.member_count, sizeof(*isr));
    int32_t count = replica_isr(&p->replica, isr);
    char text[160] = "";
    size_t n = 0;

    for (int32_t i = 0; i < count && n < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d", i > 0 ? "," : "", isr[i]);
    trace_info("partition.isr", "topic=%s partition=%d isr=%s replicas=%d end=%lld hw=%lld",
               p->topic, p->index, text, p->replica.member_count, (long long)log_end_offset(p->log),
               (long long)p->replica.high_watermark);
    free(isr);
}

void replicate_altered(struct partition *p, const struct replica_altered *answer)
{
    struct replica_event e = {.kind = REPLICA_ALTERED, .altered = *answer};
    int32_t before = p->replica.partition_epoch;

    if (!p->log || p->refusing)
        return;
    tell(p, &e);
    if (p->replica.partition_epoch != before)
        say_isr(p);
}
