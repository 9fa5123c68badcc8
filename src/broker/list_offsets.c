/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListOffsets (KIP-79, KIP-734, KIP-207): the ends of a log, or the first record not older than a
 * timestamp. The ends are known to the owner; a timestamp is looked for by a job, in the time
 * index first and then in the records themselves, since a batch is in no order of time.
 * Nothing at or above what the client may read is ever found. A replica that asks is told where the
 * log itself ends, and one that only looks (Kafka's DEBUGGING_REPLICA_ID) by any broker with a
 * copy.
 */
#include "broker/broker_int.h"

enum special_timestamp {
    TIMESTAMP_LATEST = -1,
    TIMESTAMP_EARLIEST = -2,
    TIMESTAMP_MAX = -3,
    TIMESTAMP_EARLIEST_LOCAL = -4,
    TIMESTAMP_LATEST_TIERED = -5,
    TIMESTAMP_EARLIEST_PENDING_UPLOAD = -6,
};

enum asking_replica {
    REPLICA_DEBUGGING = -2,
    REPLICA_NONE = -1,
};

/* The first version of the request that knows a special timestamp. */
static int16_t version_needed(int64_t timestamp)
{
    switch (timestamp) {
    case TIMESTAMP_MAX: return 7;
    case TIMESTAMP_EARLIEST_LOCAL: return 8;
    case TIMESTAMP_LATEST_TIERED: return 9;
    case TIMESTAMP_EARLIEST_PENDING_UPLOAD: return 11;
    default: return timestamp < TIMESTAMP_EARLIEST_PENDING_UPLOAD ? INT16_MAX : 0;
    }
}

static int64_t readable_end(const struct visit_item *item)
{
    const struct list_offsets_request *in = item->visit->request->in;
    const struct log *log = item->partition->log;

    return in->isolation_level == 1 ? log_last_stable_offset(log) : log_high_watermark(log);
}

static void search(struct io_job *job)
{
    struct visit_item *item = CONTAINER_OF(job, struct visit_item, job);
    const struct list_offsets_request_partition *in = item->in;
    int64_t upto = item->offset;

    if (in->timestamp == TIMESTAMP_MAX)
        item->err = log_find_max_timestamp(item->snapshot, upto, &item->offset, &item->timestamp,
                                           &item->epoch);
    else
        item->err = log_find_timestamp(item->snapshot, in->timestamp, upto, &item->offset,
                                       &item->timestamp, &item->epoch);
}

static void searched(struct io_job *job)
{
    struct visit_item *item = CONTAINER_OF(job, struct visit_item, job);
    struct list_offsets_response_partition *out = item->out;

    log_snapshot_free(item->snapshot);
    if (!item->err && item->offset >= 0) {
        out->offset = item->offset;
        out->timestamp = item->timestamp;
        out->leader_epoch = item->epoch;
    }
    visit_item_done(item, item->err);
}

static void submit_search(struct visit_item *item)
{
    item->offset = readable_end(item);
    item->snapshot = log_snapshot_take(item->partition->view);
    item->job.run = search;
    item->job.done = searched;
    io_job_submit(item->partition->owner->loop, &item->job);
}

static int32_t replica_of(const struct visit_item *item)
{
    return ((const struct list_offsets_request *)item->visit->request->in)->replica_id;
}

/* The answer depends on what is committed. */
static bool wants_end(const struct visit_item *item, int64_t timestamp)
{
    return timestamp >= 0 || timestamp == TIMESTAMP_MAX ||
           (timestamp == TIMESTAMP_LATEST && replica_of(item) == REPLICA_NONE);
}

static enum err check_leader(const struct visit_item *item, int32_t epoch)
{
    enum err err = partition_check_leader(item->partition, epoch);

    return err == ERR_NOT_LEADER_OR_FOLLOWER && replica_of(item) == REPLICA_DEBUGGING ? ERR_NONE
                                                                                      : err;
}

static void list_at_owner(struct visit_item *item)
{
    const struct list_offsets_request_partition *in = item->in;
    struct list_offsets_response_partition *out = item->out;
    struct partition *p = item->partition;
    enum err err = check_leader(item, in->current_leader_epoch);

    /* KIP-207: a new leader's end could still go back. */
    if (!err && wants_end(item, in->timestamp) && !replica_knows_end(&p->replica))
        err = item->visit->request->header.api_version < 5 ? ERR_LEADER_NOT_AVAILABLE
                                                           : ERR_OFFSET_NOT_AVAILABLE;
    if (err) {
        visit_item_done(item, err);
        return;
    }
    switch (in->timestamp) {
    case TIMESTAMP_LATEST:
        out->offset = replica_of(item) == REPLICA_NONE ? readable_end(item)
                                                       : log_end_offset(p->log);
        out->leader_epoch = atomic_load_explicit(&p->leader_epoch, memory_order_relaxed);
        break;
    case TIMESTAMP_EARLIEST:
    case TIMESTAMP_EARLIEST_LOCAL:
        out->offset = log_start_offset(p->log);
        out->leader_epoch = log_epoch_at(p->log, out->offset);
        break;
    case TIMESTAMP_LATEST_TIERED:
    case TIMESTAMP_EARLIEST_PENDING_UPLOAD:
        /* Without tiered storage there is no such offset. */
        break;
    default: submit_search(item); return;
    }
    visit_item_done(item, ERR_NONE);
}

static void listed(struct request *r, struct visit *v)
{
    for (int i = 0; i < v->count; i++) {
        struct list_offsets_response_partition *out = v->items[i].out;

        if (v->items[i].err) {
            out->error_code = err_wire(v->items[i].err);
            out->offset = -1;
            out->timestamp = -1;
            out->leader_epoch = -1;
        }
    }
    request_reply(r);
}

static bool is_repeated(const struct list_offsets_request_topic *topic, int32_t at)
{
    for (int32_t i = 0; i < at; i++)
        if (topic->partitions.v[i].partition_index == topic->partitions.v[at].partition_index)
            return true;
    return false;
}

static void prepare(struct request *r, struct visit_item *item,
                    const struct list_offsets_request_topic *topic, int32_t at,
                    struct list_offsets_response_partition *out)
{
    const struct list_offsets_request_partition *in = &topic->partitions.v[at];

    out->partition_index = in->partition_index;
    item->in = in;
    item->out = out;
    if (version_needed(in->timestamp) > r->header.api_version)
        item->err = ERR_UNSUPPORTED_VERSION;
    else if (at < 100 && is_repeated(topic, at))
        item->err = ERR_INVALID_REQUEST;
    else
        visit_find(item, topic->name, in->partition_index);
}

void handle_list_offsets(struct request *r)
{
    const struct list_offsets_request *in = r->in;
    struct list_offsets_response *out = r->out;
    struct visit *v;
    int64_t n = 0;
    int at = 0;

    for (int32_t t = 0; t < in->topics.n; t++)
        n += MAX(in->topics.v[t].partitions.n, 0);
    if (!request_allows_partitions(r, n))
        return;
    v = visit_new(r, (int)n, list_at_owner, listed);
    out->topics.n = in->topics.n;
    out->topics.v = request_array(r, &list_offsets_response_topic_schema, in->topics.n);
    for (int32_t t = 0; t < in->topics.n; t++) {
        const struct list_offsets_request_topic *from = &in->topics.v[t];
        struct list_offsets_response_topic *to = &out->topics.v[t];

        to->name = from->name;
        to->partitions.n = from->partitions.n;
        to->partitions.v =
            request_array(r, &list_offsets_response_partition_schema, from->partitions.n);
        for (int32_t i = 0; i < from->partitions.n; i++)
            prepare(r, &v->items[at++], from, i, &to->partitions.v[i]);
    }
    visit_start(v);
}
