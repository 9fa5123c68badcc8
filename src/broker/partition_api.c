/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests about partitions that their owners answer: OffsetForLeaderEpoch (KIP-101, KIP-320),
 * DeleteRecords (KIP-107) and DescribeProducers (KIP-664).
 */
#include "broker/broker_int.h"

/* ---- OffsetForLeaderEpoch --------------------------------------------------------------- */

static void epoch_at_owner(struct visit_item *item)
{
    const struct offset_for_leader_epoch_request_partition *in = item->in;
    struct offset_for_leader_epoch_response_partition *out = item->out;
    enum err err = partition_check_leader(item->partition, in->current_leader_epoch);

    if (!err)
        log_epoch_end(item->partition->log, in->leader_epoch, &out->leader_epoch, &out->end_offset);
    visit_item_done(item, err);
}

static void epochs_answered(struct request *r, struct visit *v)
{
    for (int i = 0; i < v->count; i++) {
        struct offset_for_leader_epoch_response_partition *out = v->items[i].out;

        out->error_code = err_wire(v->items[i].err);
    }
    request_reply(r);
}

void handle_offset_for_leader_epoch(struct request *r)
{
    const struct offset_for_leader_epoch_request *in = r->in;
    struct offset_for_leader_epoch_response *out = r->out;
    struct visit *v;
    int64_t n = 0;
    int at = 0;

    for (int32_t t = 0; t < in->topics.n; t++)
        n += MAX(in->topics.v[t].partitions.n, 0);
    if (!request_allows_partitions(r, n))
        return;
    v = visit_new(r, (int)n, epoch_at_owner, epochs_answered);
    out->topics.n = in->topics.n;
    out->topics.v = request_array(r, &offset_for_leader_epoch_response_topic_schema, in->topics.n);
    for (int32_t t = 0; t < in->topics.n; t++) {
        const struct offset_for_leader_epoch_request_topic *from = &in->topics.v[t];
        struct offset_for_leader_epoch_response_topic *to = &out->topics.v[t];

        to->topic = from->topic;
        to->partitions.n = from->partitions.n;
        to->partitions.v = request_array(r, &offset_for_leader_epoch_response_partition_schema,
                                         from->partitions.n);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            struct visit_item *item = &v->items[at++];

            to->partitions.v[i].partition = from->partitions.v[i].partition;
            item->in = &from->partitions.v[i];
            item->out = &to->partitions.v[i];
            visit_find(item, from->topic, from->partitions.v[i].partition);
        }
    }
    visit_start(v);
}

/* ---- DeleteRecords ---------------------------------------------------------------------- */

static void start_advanced(void *ctx, enum err err)
{
    struct visit_item *item = ctx;
    struct delete_records_response_partition *out = item->out;

    if (!err && item->partition->log)
        out->low_watermark = log_start_offset(item->partition->log);
    visit_item_done(item, err);
}

static void delete_at_owner(struct visit_item *item)
{
    const struct delete_records_request_partition *in = item->in;
    struct partition *p = item->partition;
    int64_t hw = log_high_watermark(p->log);
    int64_t offset = in->offset == -1 ? hw : in->offset;
    enum err err = ERR_NONE;

    if (metadata_topic_name_is_internal(str_of(p->topic)))
        err = ERR_INVALID_TOPIC_EXCEPTION;
    else if (!(log_config(p->log)->cleanup_policy & TOPIC_CLEANUP_DELETE))
        err = ERR_POLICY_VIOLATION;
    else if (offset < 0 || offset > hw)
        err = ERR_OFFSET_OUT_OF_RANGE;
    if (err)
        visit_item_done(item, err);
    else
        log_advance_start(p->log, offset, start_advanced, item);
}

static void records_deleted(struct request *r, struct visit *v)
{
    for (int i = 0; i < v->count; i++) {
        struct delete_records_response_partition *out = v->items[i].out;

        out->error_code = err_wire(v->items[i].err);
        if (v->items[i].err)
            out->low_watermark = -1;
    }
    request_reply(r);
}

void handle_delete_records(struct request *r)
{
    const struct delete_records_request *in = r->in;
    struct delete_records_response *out = r->out;
    struct visit *v;
    int64_t n = 0;
    int at = 0;

    for (int32_t t = 0; t < in->topics.n; t++)
        n += MAX(in->topics.v[t].partitions.n, 0);
    if (!request_allows_partitions(r, n))
        return;
    v = visit_new(r, (int)n, delete_at_owner, records_deleted);
    out->topics.n = in->topics.n;
    out->topics.v = request_array(r, &delete_records_response_topic_schema, in->topics.n);
    for (int32_t t = 0; t < in->topics.n; t++) {
        const struct delete_records_request_topic *from = &in->topics.v[t];
        struct delete_records_response_topic *to = &out->topics.v[t];

        to->name = from->name;
        to->partitions.n = from->partitions.n;
        to->partitions.v =
            request_array(r, &delete_records_response_partition_schema, from->partitions.n);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            struct visit_item *item = &v->items[at++];

            to->partitions.v[i].partition_index = from->partitions.v[i].partition_index;
            item->in = &from->partitions.v[i];
            item->out = &to->partitions.v[i];
            visit_find(item, from->name, from->partitions.v[i].partition_index);
        }
    }
    visit_start(v);
}

/* ---- DescribeProducers ------------------------------------------------------------------ */

struct producers_found {
    struct arena arena; /* of the owner's visit; freed at home */
    struct log_producer *v;
    int n;
};

static void producers_at_owner(struct visit_item *item)
{
    struct producers_found *found = (void *)(uintptr_t)item->in;

    log_producers(item->partition->log, &found->arena, &found->v, &found->n);
    visit_item_done(item, ERR_NONE);
}

static void fill_producers(struct request *r, struct describe_producers_response_partition *out,
                           const struct producers_found *found)
{
    out->active_producers.n = found->n;
    out->active_producers.v =
        request_array(r, &describe_producers_response_producer_schema, found->n);
    for (int i = 0; i < found->n; i++) {
        struct describe_producers_response_producer *to = &out->active_producers.v[i];

        to->producer_id = found->v[i].producer_id;
        to->producer_epoch = found->v[i].epoch;
        to->last_sequence = found->v[i].last_sequence;
        to->last_timestamp = found->v[i].last_timestamp;
        to->coordinator_epoch = found->v[i].coordinator_epoch;
        to->current_txn_start_offset = found->v[i].txn_start_offset;
    }
}

static void producers_described(struct request *r, struct visit *v)
{
    for (int i = 0; i < v->count; i++) {
        struct describe_producers_response_partition *out = v->items[i].out;
        struct producers_found *found = (void *)(uintptr_t)v->items[i].in;

        out->error_code = err_wire(v->items[i].err);
        if (v->items[i].err)
            out->error_message = str_of(err_text(v->items[i].err));
        else
            fill_producers(r, out, found);
        arena_fini(&found->arena);
    }
    request_reply(r);
}

void handle_describe_producers(struct request *r)
{
    const struct describe_producers_request *in = r->in;
    struct describe_producers_response *out = r->out;
    struct visit *v;
    int64_t n = 0;
    int at = 0;

    for (int32_t t = 0; t < in->topics.n; t++)
        n += MAX(in->topics.v[t].partition_indexes.n, 0);
    if (!request_allows_partitions(r, n))
        return;
    v = visit_new(r, (int)n, producers_at_owner, producers_described);
    out->topics.n = in->topics.n;
    out->topics.v = request_array(r, &describe_producers_response_topic_schema, in->topics.n);
    for (int32_t t = 0; t < in->topics.n; t++) {
        const struct describe_producers_request_topic *from = &in->topics.v[t];
        struct describe_producers_response_topic *to = &out->topics.v[t];

        to->name = from->name;
        to->partitions.n = from->partition_indexes.n;
        to->partitions.v = request_array(r, &describe_producers_response_partition_schema,
                                         from->partition_indexes.n);
        for (int32_t i = 0; i < from->partition_indexes.n; i++) {
            struct visit_item *item = &v->items[at++];

            to->partitions.v[i].partition_index = from->partition_indexes.v[i];
            item->in = request_alloc(r, sizeof(struct producers_found));
            item->out = &to->partitions.v[i];
            visit_find(item, from->name, from->partition_indexes.v[i]);
        }
    }
    visit_start(v);
}
