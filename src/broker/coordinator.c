/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator of groups, where it meets the log.
 *
 * Groups live on the shard that owns their partition of __consumer_offsets. When the log has been
 * opened a job reads all of it and makes the groups; until they are here every request is told to
 * come again, never that there is no offset. From then on a step of the groups gives answers and
 * writes. A write becomes one batch (a large removal several), is appended like any other, and is
 * reported to the groups when the high watermark has passed it: in the order of the log, which is
 * the order in which the groups made them.
 *
 * If the log cannot be read the coordinator stays unavailable: wrong offsets would be worse.
 */
#include "broker/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"

struct coordinator {
    struct list link; /* shard->coordinators */
    struct partition *partition;
    struct groups *groups; /* NULL while they are loaded, and when that has failed */
    struct load_groups *load;
    enum err refusing;  /* what requests get; ERR_NONE: they are served */
    struct list writes; /* struct pending_write by link, in the order of the log */
    struct delay delay;
};

struct pending_write {
    struct list link;
    struct group_write *write;
    int64_t last_offset;
};

static void take_effects(struct coordinator *c, struct group_effects *fx);

/* ---- Answers and steps ------------------------------------------------------------------ */

static void answer(struct group_request *q)
{
    struct group_call *call = CONTAINER_OF(q, struct group_call, q);

    visit_item_done(call->item, ERR_NONE);
}

static void answer_all(struct group_effects *fx)
{
    struct list *node;

    while ((node = list_pop_front(&fx->answers)))
        answer(LIST_ENTRY(node, struct group_request, link));
}

static void step(struct coordinator *c, struct group_event *event)
{
    struct shard *s = c->partition->owner;
    struct group_effects fx;

    event->mono_ms = shard_now_ns(s) / 1000000;
    event->wall_ms = shard_now_ms(s);
    groups_step(c->groups, event, &fx);
    take_effects(c, &fx);
}

static void report(struct coordinator *c, struct pending_write *p, enum err err)
{
    struct group_event event = {.kind = GROUP_WRITTEN, .write = p->write, .err = err};

    free(p);
    step(c, &event);
}

static void woken(struct delay *d)
{
    struct group_event event = {.kind = GROUP_TICK};

    step(CONTAINER_OF(d, struct coordinator, delay), &event);
}

/* ---- Writing ---------------------------------------------------------------------------- */

static enum err append(struct coordinator *c, struct batch_builder *b, int64_t *last_offset)
{
    struct partition *p = c->partition;
    struct log_append a = {.origin = LOG_ORIGIN_COORDINATOR,
                           .max_timestamp = b->max_timestamp,
                           .leader_epoch = atomic_load(&p->leader_epoch),
                           .now_ms = shard_now_ms(p->owner)};
    struct buf out = {0};
    enum err err;

    batch_builder_finish(b, &out);
    if (out.n > (size_t)log_config(p->log)->max_message_bytes) {
        buf_fini(&out);
        return ERR_MESSAGE_TOO_LARGE;
    }
    a.buf = io_buf_new(&p->broker->budget, out.n);
    memcpy(a.buf->data, out.p, out.n);
    buf_fini(&out);
    a.batch = a.buf->data;
    a.n = (int32_t)a.buf->size;
    err = log_append(p->log, &a);
    if (!err)
        partition_count_append(p, &a);
    io_buf_unref(a.buf);
    *last_offset = a.last_offset;
    return err;
}

/* One batch, unless it is a removal: those may be large, and half of one does no harm. */
static enum err append_records(struct coordinator *c, const struct group_write *w,
                               int64_t *last_offset)
{
    struct partition *p = c->partition;
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    enum err err = ERR_NONE;

    spec.codec = (enum codec)config_i32(p->owner->config, CONFIG_OFFSETS_TOPIC_COMPRESSION_CODEC);
    if (w->kind == GROUP_WRITE_REMOVAL)
        spec.bytes_max = (size_t)log_config(p->log)->max_message_bytes;
    batch_builder_init(&b, &spec);
    for (int32_t i = 0; i < w->count && !err; i++) {
        struct record r = {.timestamp = w->timestamp_ms};

        group_write_record(w, i, &r.key, &r.value);
        if (batch_builder_append(&b, &r) == ERR_NONE)
            continue;
        err = append(c, &b, last_offset);
        if (!err)
            err = batch_builder_append(&b, &r);
    }
    if (!err)
        err = append(c, &b, last_offset);
    batch_builder_fini(&b);
    return err;
}

static enum err submit(struct coordinator *c, struct pending_write *p)
{
    if (c->partition->refusing || !c->partition->log)
        return ERR_NOT_LEADER_OR_FOLLOWER;
    enum err err = replica_check_isr(&c->partition->replica);

    return err ? err : append_records(c, p->write, &p->last_offset);
}

static void count_groups(struct coordinator *c)
{
    counter_set(&c->partition->group_count, groups_count(c->groups));
    counter_set(&c->partition->offset_count, groups_offset_count(c->groups));
}

static void take_effects(struct coordinator *c, struct group_effects *fx)
{
    struct shard *s = c->partition->owner;
    struct list failed;
    struct list *node;
    enum err err = ERR_NONE;

    count_groups(c);
    list_init(&failed);
    answer_all(fx);
    if (fx->wake_ms == INT64_MAX)
        shard_delay_cancel(s, &c->delay);
    else
        shard_delay_set(s, &c->delay, fx->wake_ms * 1000000);
    while ((node = list_pop_front(&fx->writes))) {
        struct pending_write *p = xcalloc(1, sizeof(*p));

        p->write = LIST_ENTRY(node, struct group_write, link);
        if (!err)
            err = submit(c, p);
        list_push_back(err ? &failed : &c->writes, &p->link);
    }
    while ((node = list_pop_front(&failed)))
        report(c, LIST_ENTRY(node, struct pending_write, link), err);
}

void coordinator_advanced(struct partition *p)
{
    struct coordinator *c = p->coordinator;
    struct pending_write *w;

    while (c && (w = LIST_FIRST(&c->writes, struct pending_write, link))) {
        if (w->last_offset >= log_high_watermark(p->log))
            break;
        list_remove(&w->link);
        report(c, w, ERR_NONE);
    }
}

void coordinator_failed(struct partition *p, enum err err, int64_t from_offset)
{
    struct coordinator *c = p->coordinator;
    struct list failed;
    struct list *node;

    if (!c)
        return;
    list_init(&failed);
    LIST_EACH_SAFE (at, &c->writes) {
        if (LIST_ENTRY(at, struct pending_write, link)->last_offset < from_offset)
            continue;
        list_remove(at);
        list_push_back(&failed, at);
    }
    while ((node = list_pop_front(&failed)))
        report(c, LIST_ENTRY(node, struct pending_write, link), err);
}

/* ---- Loading ---------------------------------------------------------------------------- */

struct load_groups {
    struct io_job job;
    struct coordinator *coordinator; /* NULL: it has gone meanwhile */
    struct log_snapshot *snapshot;
    int32_t index; /* of the partition, for traces */
    size_t read_bytes;
    int64_t begun_ns;
    int64_t records;
    struct groups *groups;
    enum err err;
};

static void replay_record(struct load_groups *l, const struct batch_header *h,
                          const struct record *r)
{
    struct control_marker marker;
    int64_t producer_id = batch_is_transactional(h) ? h->producer_id : -1;
    enum err err = ERR_NONE;

    l->records++;
    if (!batch_is_control(h))
        err = groups_replay(l->groups, producer_id, r->key, r->value);
    else if (!control_marker_parse(r, &marker) && marker.type <= CONTROL_COMMIT)
        groups_replay_marker(l->groups, h->producer_id, marker.type == CONTROL_COMMIT);
    if (err)
        trace_error("group.record_damaged", "partition=%d offset=%lld error=%s", l->index,
                    (long long)r->offset, err_name(err));
}

static enum err replay_batch(struct load_groups *l, struct record_iter *it, struct bytes batch)
{
    struct record r;
    enum err err = batch_crc_ok(batch) ? record_iter_batch(it, batch) : ERR_CORRUPT_MESSAGE;

    while (!err && !(err = record_iter_next(it, &r)))
        replay_record(l, &it->header, &r);
    return err == ERR_EOF ? ERR_NONE : err;
}

/* All whole batches in `in`; *offset moves behind the last of them. */
static enum err replay_batches(struct load_groups *l, struct record_iter *it, struct bytes in,
                               int64_t *offset)
{
    int32_t total;
    enum err err;

    while (in.n >= BATCH_FRAME_BYTES) {
        err = batch_frame(in, &total);
        if (err)
            return err;
        if (total > in.n)
            break;
        err = replay_batch(l, it, (struct bytes){.p = in.p, .n = total});
        if (err)
            return err;
        *offset = batch_last_offset(&it->header) + 1;
        in.p += total;
        in.n -= total;
    }
    return ERR_NONE;
}

static enum err read_range(struct log_range *range, struct buf *out)
{
    size_t got = 0;
    enum err err;

    buf_reset(out);
    err = io_file_read(range->file, buf_extend(out, (size_t)range->n), (size_t)range->n, range->pos,
                       &got);
    io_file_unref(range->file);
    return !err && got < (size_t)range->n ? ERR_CORRUPT : err;
}

static enum err replay_log(struct load_groups *l, struct record_iter *it, struct buf *bytes)
{
    const struct log_view *view = log_snapshot_view(l->snapshot);
    struct log_bounds bounds;
    int64_t offset;

    log_view_bounds(view, &bounds);
    offset = bounds.log_start;
    while (offset < bounds.end && !atomic_load(&l->job.cancel)) {
        struct log_range range;
        int64_t before = offset;
        enum err err = log_view_read(view, offset, bounds.end, (int32_t)l->read_bytes, true,
                                     LOG_BLOCKING, &range);

        if (err || !range.file)
            return err; /* Nothing behind here: compacted to the end. */
        err = read_range(&range, bytes);
        if (!err)
            err = replay_batches(l, it, buf_bytes(bytes, 0), &offset);
        if (err)
            return err;
        if (offset == before)
            return ERR_CORRUPT;
        if (PLANTED(LOAD_HALF))
            break;
    }
    return ERR_NONE;
}

static void load_run(struct io_job *job)
{
    struct load_groups *l = CONTAINER_OF(job, struct load_groups, job);
    struct record_iter it;
    struct buf bytes = {0};

    record_iter_init(&it);
    l->err = replay_log(l, &it, &bytes);
    record_iter_fini(&it);
    buf_fini(&bytes);
}

static void serve(struct coordinator *c, struct load_groups *l)
{
    struct shard *s = c->partition->owner;
    struct group_effects fx;

    c->groups = l->groups;
    l->groups = NULL;
    c->refusing = ERR_NONE;
    if (l->records > 0)
        trace_info("group.loaded", "partition=%d groups=%d offsets=%lld records=%lld ms=%lld",
                   l->index, groups_count(c->groups), (long long)groups_offset_count(c->groups),
                   (long long)l->records, (long long)(shard_now_ns(s) - l->begun_ns) / 1000000);
    groups_loaded(c->groups, shard_now_ns(s) / 1000000, shard_now_ms(s), &fx);
    take_effects(c, &fx);
}

static void load_done(struct io_job *job)
{
    struct load_groups *l = CONTAINER_OF(job, struct load_groups, job);
    struct coordinator *c = l->coordinator;

    log_snapshot_free(l->snapshot);
    if (c) {
        c->load = NULL;
        if (!l->err && c->refusing == ERR_COORDINATOR_LOAD_IN_PROGRESS) {
            serve(c, l);
        } else {
            c->refusing = ERR_COORDINATOR_NOT_AVAILABLE;
            trace_error("group.load_failed", "partition=%d error=%s", l->index, err_name(l->err));
        }
    }
    groups_free(l->groups);
    free(l);
}

static struct group_limits limits_of(const struct config *c)
{
    return (struct group_limits){
        .session_timeout_min_ms = config_i32(c, CONFIG_GROUP_MIN_SESSION_TIMEOUT_MS),
        .session_timeout_max_ms = config_i32(c, CONFIG_GROUP_MAX_SESSION_TIMEOUT_MS),
        .size_max = config_i32(c, CONFIG_GROUP_MAX_SIZE),
        .initial_rebalance_delay_ms = config_i32(c, CONFIG_GROUP_INITIAL_REBALANCE_DELAY_MS),
        .offset_metadata_bytes_max = config_i32(c, CONFIG_OFFSET_METADATA_MAX_BYTES),
        .write_timeout_ms = config_i32(c, CONFIG_OFFSETS_COMMIT_TIMEOUT_MS),
        .offset_retention_ms = config_i64(c, CONFIG_OFFSETS_RETENTION_MINUTES) * 60000,
        .offset_check_interval_ms = config_i64(c, CONFIG_OFFSETS_RETENTION_CHECK_INTERVAL_MS),
    };
}

void coordinator_open(struct partition *p)
{
    struct shard *s = p->owner;
    struct coordinator *c = xcalloc(1, sizeof(*c));
    struct load_groups *l = xcalloc(1, sizeof(*l));
    struct group_limits limits = limits_of(s->config);

    c->partition = p;
    c->load = l;
    c->refusing = ERR_COORDINATOR_LOAD_IN_PROGRESS;
    c->delay.expired = woken;
    list_init(&c->writes);
    list_push_back(&s->coordinators, &c->link);
    p->coordinator = c;
    l->coordinator = c;
    l->snapshot = log_snapshot_take(p->view);
    l->index = p->index;
    l->read_bytes = (size_t)config_i32(s->config, CONFIG_OFFSETS_LOAD_BUFFER_SIZE);
    l->begun_ns = shard_now_ns(s);
    l->groups = groups_new(&limits);
    l->job.run = load_run;
    l->job.done = load_done;
    io_job_submit(s->loop, &l->job);
}

/* ---- The end ---------------------------------------------------------------------------- */

static void resign(struct coordinator *c, enum err err)
{
    struct group_effects fx;

    c->refusing = err;
    shard_delay_cancel(c->partition->owner, &c->delay);
    if (!c->groups)
        return;
    groups_resign(c->groups, err, &fx);
    answer_all(&fx);
}

static void drop_writes(struct coordinator *c, enum err err)
{
    struct list *node;

    while ((node = list_pop_front(&c->writes))) {
        struct pending_write *p = LIST_ENTRY(node, struct pending_write, link);
        struct group_effects fx;

        list_init(&fx.answers);
        group_write_drop(c->groups, p->write, err, &fx);
        answer_all(&fx);
        free(p);
    }
}

void coordinator_resign(struct partition *p, enum err err)
{
    if (p->coordinator)
        resign(p->coordinator, err);
}

void coordinator_close(struct partition *p, enum err err)
{
    struct coordinator *c = p->coordinator;

    if (!c)
        return;
    resign(c, err);
    drop_writes(c, err);
    if (c->load) {
        atomic_store(&c->load->job.cancel, true);
        c->load->coordinator = NULL;
    }
    list_remove(&c->link);
    groups_free(c->groups);
    free(c);
    p->coordinator = NULL;
}

void coordinators_resign(struct shard *s)
{
    LIST_EACH (node, &s->coordinators)
        resign(LIST_ENTRY(node, struct coordinator, link), ERR_COORDINATOR_NOT_AVAILABLE);
}

void coordinators_give_up(struct shard *s)
{
    LIST_EACH (node, &s->coordinators)
        drop_writes(LIST_ENTRY(node, struct coordinator, link), ERR_COORDINATOR_NOT_AVAILABLE);
}

/* ---- Requests --------------------------------------------------------------------------- */

enum err coordinator_groups(struct partition *p, const struct groups **out)
{
    struct coordinator *c = p->coordinator;

    *out = c ? c->groups : NULL;
    if (!c)
        return ERR_NOT_COORDINATOR;
    /* Another one may have taken later offsets, and given this one's members to others. */
    return c->refusing || partition_is_sure(p) ? c->refusing : ERR_NOT_COORDINATOR;
}

void coordinator_request(struct partition *p, struct group_call *call)
{
    struct coordinator *c = p->coordinator;
    struct group_event event = {.kind = GROUP_REQUEST, .request = &call->q};
    const struct groups *groups;
    enum err err = coordinator_groups(p, &groups);

    if (err) {
        group_refuse(&call->q, err);
        answer(&call->q);
        return;
    }
    io_random(p->broker->io, event.random, sizeof(event.random));
    step(c, &event);
}

void coordinators_forget_topic(struct shard *s, struct str topic)
{
    struct group_event event = {.kind = GROUP_TOPIC_GONE, .topic = topic};

    LIST_EACH (node, &s->coordinators) {
        struct coordinator *c = LIST_ENTRY(node, struct coordinator, link);

        if (c->groups && !c->refusing)
            step(c, &event);
    }
}

struct partition *coordinator_find(struct shard *s, struct str group_id)
{
    const struct metadata_topic *topic = metadata_find_topic(s->image, str_of(GROUP_TOPIC));

    if (!topic || topic->is_deleting || topic->partition_count == 0)
        return NULL;
    return slot_partition(shard_find_topic_id(s, topic->id),
                          group_partition(group_id, topic->partition_count));
}

const struct metadata_broker *coordinator_broker(struct shard *s, struct str group_id)
{
    const struct metadata_topic *topic = metadata_find_topic(s->image, str_of(GROUP_TOPIC));
    const struct metadata_partition *p;

    if (!topic || topic->is_deleting || topic->partition_count == 0)
        return NULL;
    p = &topic->partitions[group_partition(group_id, topic->partition_count)];
    if (p->leader == s->broker->node_id && !coordinator_find(s, group_id))
        return NULL;
    return metadata_find_broker(s->image, p->leader);
}
