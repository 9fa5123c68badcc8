/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replication throttles (KIP-73): what this broker sends to followers, and what it fetches from
 * leaders, for partitions whose topics list it, against the two rates of its configuration. Who
 * must not wait is not throttled (replica.h), but its bytes count, as in Kafka.
 *
 * A rate is the broker's, and its shards share it: each counts its own bytes, and looks at the sum
 * of all with a quota of its own, so that no memory has two writers. What another shard counts is
 * seen with the next look, which comes before every decision.
 */
#include "broker/broker_int.h"

#define SECOND_NS INT64_C(1000000000)
#define WINDOW_SECONDS_MAX 3600

void throttle_init(struct shard *s)
{
    int32_t samples = config_i32(s->config, CONFIG_REPLICATION_QUOTA_WINDOW_NUM);
    int32_t seconds = config_i32(s->config, CONFIG_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS);

    for (int i = 0; i < THROTTLE_SIDES; i++)
        quota_init(&s->quotas[i], samples, MIN(seconds, WINDOW_SECONDS_MAX) * SECOND_NS);
}

void throttle_count(struct shard *s, enum throttle_side side, int64_t bytes)
{
    counter_add(&s->counts->throttled_bytes[side], bytes);
}

static int64_t limit_of(const struct shard *s, enum throttle_side side)
{
    return config_i64(s->config, side == THROTTLE_LEADER
                                     ? CONFIG_LEADER_REPLICATION_THROTTLED_RATE
                                     : CONFIG_FOLLOWER_REPLICATION_THROTTLED_RATE);
}

static struct quota *look(struct shard *s, enum throttle_side side)
{
    const struct broker *b = s->broker;
    int64_t total = 0;

    for (int i = 0; i < b->shard_count; i++)
        total += counter_read(&b->shards[i].counts->throttled_bytes[side]);
    quota_look(&s->quotas[side], total, shard_now_ns(s));
    return &s->quotas[side];
}

bool throttle_is_exceeded(struct shard *s, enum throttle_side side)
{
    int64_t limit = limit_of(s, side);

    return limit != QUOTA_UNLIMITED && quota_is_exceeded(look(s, side), limit);
}

int64_t throttle_allows_ns(struct shard *s, enum throttle_side side)
{
    return quota_allows_at(look(s, side), limit_of(s, side));
}
