/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_WIRE_CONTROL_TEST_INT_H
#define SL_WIRE_CONTROL_TEST_INT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "wire/apis.h"
#include "wire/messages.h"

/*
 * What is known about the cluster of tests/golden/control (see
 * tests/tools/capture/capture-control): a table with two numbers in the wrong order decodes its
 * frames to something else. For tests.
 */
#define CONTROLLER_ID 3
#define BROKERS 3
#define PROXY_PORT 25100 /* plus the broker's id */

static inline bool is_broker(int32_t id)
{
    return id >= 1 && id <= BROKERS;
}

static inline bool is_among(int32_t id, const int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static inline void check_replicas(int32_t leader, const int32_t *isr, int32_t isr_n,
                                  const int32_t *replicas, int32_t replicas_n)
{
    assert_true(replicas_n >= 1 && replicas_n <= BROKERS);
    assert_true(isr_n >= 1 && isr_n <= replicas_n);
    assert_true(leader == -1 || leader == -2 || is_among(leader, replicas, replicas_n));
    for (int32_t i = 0; i < replicas_n; i++)
        assert_true(is_broker(replicas[i]));
    for (int32_t i = 0; i < isr_n; i++)
        assert_true(is_among(isr[i], replicas, replicas_n));
}

static inline void check_led(const struct leader_and_isr_request_partition *p)
{
    check_replicas(p->leader, p->isr.v, p->isr.n, p->replicas.v, p->replicas.n);
    assert_in_range(p->partition_index, 0, 2);
    assert_int_equal(p->controller_epoch, 1);
    /* Each change makes a new version of the state; a new epoch is one, a new ISR is not both. */
    assert_in_range(p->leader_epoch, 0, p->partition_epoch);
    assert_true(!p->is_new || p->partition_epoch == 0 || p->adding_replicas.n > 0);
}

static inline void check_leader_and_isr(const struct leader_and_isr_request *r, int16_t version)
{
    assert_int_equal(r->controller_id, CONTROLLER_ID);
    assert_int_equal(r->controller_epoch, 1);
    assert_int_equal(r->type, 0);
    assert_true(version < 2 || r->broker_epoch > 0);
    for (int32_t i = 0; i < r->ungrouped_partition_states.n; i++)
        check_led(&r->ungrouped_partition_states.v[i]);
    for (int32_t i = 0; i < r->topic_states.n; i++)
        for (int32_t j = 0; j < r->topic_states.v[i].partition_states.n; j++)
            check_led(&r->topic_states.v[i].partition_states.v[j]);
    for (int32_t i = 0; i < r->live_leaders.n; i++)
        assert_int_equal(r->live_leaders.v[i].port, PROXY_PORT + r->live_leaders.v[i].broker_id);
}

static inline void check_told(const struct update_metadata_request_partition *p)
{
    check_replicas(p->leader, p->isr.v, p->isr.n, p->replicas.v, p->replicas.n);
    assert_in_range(p->partition_index, 0, 2);
    assert_int_equal(p->controller_epoch, 1);
    assert_true(p->leader == -2 || p->leader_epoch <= p->zk_version);
}

static inline void check_live_broker(const struct update_metadata_request_broker *b,
                                     int16_t version)
{
    char rack[16];

    assert_true(is_broker(b->id));
    if (version == 0) {
        assert_int_equal(b->v0_port, PROXY_PORT + b->id);
        return;
    }
    assert_int_equal(b->endpoints.n, 1);
    assert_int_equal(b->endpoints.v[0].port, PROXY_PORT + b->id);
    assert_true(str_eq_c(b->endpoints.v[0].host, "127.0.0.1"));
    assert_true(version < 3 || str_eq_c(b->endpoints.v[0].listener, "PLAINTEXT"));
    snprintf(rack, sizeof(rack), "rack-%d", b->id);
    assert_true(version < 2 || str_eq_c(b->rack, rack));
}

static inline void check_update_metadata(const struct update_metadata_request *r, int16_t version)
{
    assert_int_equal(r->controller_id, CONTROLLER_ID);
    assert_int_equal(r->controller_epoch, 1);
    assert_true(version < 5 || r->broker_epoch > 0);
    for (int32_t i = 0; i < r->ungrouped_partition_states.n; i++)
        check_told(&r->ungrouped_partition_states.v[i]);
    for (int32_t i = 0; i < r->topic_states.n; i++)
        for (int32_t j = 0; j < r->topic_states.v[i].partition_states.n; j++)
            check_told(&r->topic_states.v[i].partition_states.v[j]);
    for (int32_t i = 0; i < r->live_brokers.n; i++)
        check_live_broker(&r->live_brokers.v[i], version);
}

static inline void check_stop_replica(const struct stop_replica_request *r, int16_t version)
{
    assert_int_equal(r->controller_id, CONTROLLER_ID);
    assert_int_equal(r->controller_epoch, 1);
    assert_true(version < 1 || r->broker_epoch > 0);
    for (int32_t i = 0; i < r->topic_states.n; i++)
        for (int32_t j = 0; j < r->topic_states.v[i].partition_states.n; j++)
            assert_in_range(r->topic_states.v[i].partition_states.v[j].partition_index, 0, 2);
}

/* The probe also asks with partition epoch 0, to be refused. */
static inline void check_isr_wanted(const struct alter_partition_request_partition *p)
{
    assert_in_range(p->partition_index, 0, 2);
    assert_true(p->partition_epoch == 0 || p->leader_epoch <= p->partition_epoch);
    assert_int_not_equal(p->new_isr.n > 0, p->new_isr_with_epochs.n > 0);
    for (int32_t i = 0; i < p->new_isr.n; i++)
        assert_true(is_broker(p->new_isr.v[i]));
    for (int32_t i = 0; i < p->new_isr_with_epochs.n; i++) {
        assert_true(is_broker(p->new_isr_with_epochs.v[i].broker_id));
        assert_int_equal(p->new_isr_with_epochs.v[i].broker_epoch, -1);
    }
}

static inline void check_alter_partition(const struct alter_partition_request *r)
{
    assert_true(is_broker(r->broker_id));
    assert_true(r->broker_epoch > 0);
    for (int32_t i = 0; i < r->topics.n; i++)
        for (int32_t j = 0; j < r->topics.v[i].partitions.n; j++)
            check_isr_wanted(&r->topics.v[i].partitions.v[j]);
}

static inline void check_altered(const struct alter_partition_response_partition *p)
{
    if (p->error_code != 0)
        return;
    assert_in_range(p->partition_index, 0, 2);
    assert_true(is_among(p->leader_id, p->isr.v, p->isr.n));
    assert_in_range(p->leader_epoch, 0, p->partition_epoch);
}

static inline void check_altered_partitions(const struct alter_partition_response *r)
{
    assert_int_equal(r->throttle_time_ms, 0);
    for (int32_t i = 0; i < r->topics.n; i++)
        for (int32_t j = 0; j < r->topics.v[i].partitions.n; j++)
            check_altered(&r->topics.v[i].partitions.v[j]);
}

static inline void check_control(const struct api *api, int16_t version, bool is_request,
                                 const void *msg)
{
    if (api->key == API_ALTER_PARTITION && !is_request)
        check_altered_partitions(msg);
    if (!is_request)
        return;
    if (api->key == API_LEADER_AND_ISR)
        check_leader_and_isr(msg, version);
    if (api->key == API_STOP_REPLICA)
        check_stop_replica(msg, version);
    if (api->key == API_UPDATE_METADATA)
        check_update_metadata(msg, version);
    if (api->key == API_ALTER_PARTITION)
        check_alter_partition(msg);
}

#endif
