/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetch: the shard of the connection serves it alone. It walks the partitions in the order of the
 * request under the byte budget, finds ranges of stored batches (log_view_read: any shard may),
 * and answers when there is enough, when there is an error, or when the time is up; else it parks
 * once and looks again when an owner says that something has moved.
 *
 * Where the page cache does not hold what is needed to find a range, a job finds it and the walk
 * goes on from there.
 *
 * A consumer that says in which rack it stands may have been sent here to read at a follower
 * (KIP-392). Anybody else who comes to a follower has old metadata and had better ask again, so
 * that it does not stay where news come late.
 *
 * The life of a waiter: at a partition of the own shard it is simply on the partition's list. At
 * another shard's it travels: registered by a message, it comes back when it is woken; to cancel
 * it, a second message is sent after it, and the owner sends both back. It is freed at home when
 * nothing of it is under way any more, so that no shard ever touches another's memory.
 *
 * What a follower is not given because replication takes too much (throttle.c) is passed over as if
 * there were nothing. When the rate allows it again, the fetch goes on as if it had just come: the
 * leaders hear once more where it stands, since its position has to be of the time of its answer.
 */
#include "broker/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"

#define HURRY_NS 1000000

struct fetch {
    struct request *request;
    struct shard *shard;
    struct fetch_session *session;
    bool is_incremental;
    enum fetch_upto upto;
    bool at_follower; /* one will do */
    int32_t min_bytes;
    int32_t max_bytes;
    int64_t deadline_ns;
    struct delay deadline;
    struct delay allowed; /* while it is parked: what is held back may go */
    struct list waiters;  /* by of_fetch */
    struct io_msg look;   /* "look again" */
    bool look_posted;
    bool is_answered;
    int64_t parked_ns; /* 0: it is not */
    /* the walk */
    struct list *at; /* next part */
    int64_t bytes;   /* found so far */
    bool any_error;
    bool is_full; /* more is there than may be answered at once: waiting brings nothing */
    /* the part that a job reads for us */
    struct io_job job;
    struct log_snapshot *snapshot;
    struct fetch_part *job_part;
    bool is_reading;
};

static void walk(struct fetch *f);

/* ---- waiters ---------------------------------------------------------------------------- */

static void waiter_free_if_home(struct fetch_waiter *w)
{
    if (w->pending > 0)
        return;
    partition_unref(w->partition);
    free(w);
}

static void look_again(struct fetch *f)
{
    if (f->look_posted || f->is_answered)
        return;
    f->look_posted = true;
    io_post(f->shard->loop, &f->look);
}

static void waiter_home(struct io_msg *msg)
{
    struct fetch_waiter *w = CONTAINER_OF(msg, struct fetch_waiter, msg);

    w->pending--;
    if (w->fetch) {
        /* It goes now: the fetch must not find it any more. */
        list_remove(&w->of_fetch);
        look_again(w->fetch);
    }
    waiter_free_if_home(w);
}

static void cancel_home(struct io_msg *msg)
{
    struct fetch_waiter *w = CONTAINER_OF(msg, struct fetch_waiter, cancel);

    w->pending--;
    waiter_free_if_home(w);
}

/* On the owner: a waiter of another shard goes home. */
static void send_home(struct fetch_waiter *w)
{
    list_remove(&w->link);
    w->msg.fn = waiter_home;
    io_post(w->home->loop, &w->msg);
}

void fetch_wake_partition(struct partition *p)
{
    LIST_EACH_SAFE (node, &p->fetch_waiters) {
        struct fetch_waiter *w = LIST_ENTRY(node, struct fetch_waiter, link);

        if (w->home == p->owner)
            look_again(w->fetch);
        else
            send_home(w);
    }
}

static int64_t read_bound(const struct log_bounds *b, enum fetch_upto upto)
{
    switch (upto) {
    case FETCH_UPTO_STABLE: return b->last_stable;
    case FETCH_UPTO_ACKED: return b->ack;
    case FETCH_UPTO_WATERMARK: break;
    }
    return b->high_watermark;
}

/* Since the walk looked at it; nobody was told, as there was no waiter yet. On the owner. */
static bool has_moved(const struct fetch_waiter *w)
{
    const struct partition *p = w->partition;
    struct log_bounds now = {.is_gone = true};

    if (p->log && !p->refusing)
        log_view_bounds(p->view, &now);
    if (PLANTED(LOST_WAKE_UP))
        return now.is_gone;
    return now.is_gone || read_bound(&now, w->upto) != w->end_seen ||
           now.high_watermark > w->watermark;
}

static void register_at_owner(struct io_msg *msg)
{
    struct fetch_waiter *w = CONTAINER_OF(msg, struct fetch_waiter, msg);

    list_push_back(&w->partition->fetch_waiters, &w->link);
    if (has_moved(w))
        send_home(w);
}

static void cancel_at_owner(struct io_msg *msg)
{
    struct fetch_waiter *w = CONTAINER_OF(msg, struct fetch_waiter, cancel);

    if (list_is_linked(&w->link))
        send_home(w);
    w->cancel.fn = cancel_home;
    io_post(w->home->loop, &w->cancel);
}

static void wait_at(struct fetch *f, struct partition *p, const struct fetch_part *part)
{
    struct fetch_waiter *w = xcalloc(1, sizeof(*w));

    w->partition = partition_ref(p);
    w->home = f->shard;
    w->fetch = f;
    w->end_seen = read_bound(&part->bounds, f->upto);
    w->watermark = f->upto == FETCH_UPTO_ACKED ? part->watermark : INT64_MAX;
    w->upto = f->upto;
    list_init(&w->link);
    list_push_back(&f->waiters, &w->of_fetch);
    if (p->owner == f->shard) {
        list_push_back(&p->fetch_waiters, &w->link);
        if (has_moved(w))
            look_again(f);
        return;
    }
    w->pending = 1;
    w->msg.fn = register_at_owner;
    io_post(p->owner->loop, &w->msg);
}

static void stop_waiting(struct fetch *f)
{
    struct list *node;

    while ((node = list_pop_front(&f->waiters))) {
        struct fetch_waiter *w = LIST_ENTRY(node, struct fetch_waiter, of_fetch);

        w->fetch = NULL;
        if (w->home == w->partition->owner) {
            list_remove(&w->link);
        } else if (w->pending > 0) {
            w->pending++;
            w->cancel.fn = cancel_at_owner;
            io_post(w->partition->owner->loop, &w->cancel);
        }
        waiter_free_if_home(w);
    }
}

/* ---- answering -------------------------------------------------------------------------- */

static void fetch_free(struct fetch *f)
{
    if (f->look_posted || f->is_reading)
        return;
    free(f);
}

static bool has_news(const struct fetch_part *part)
{
    return part->err || part->range.file || part->diverging_epoch >= 0 || part->near >= 0 ||
           part->bounds.high_watermark != part->sent_high_watermark ||
           part->bounds.log_start != part->sent_log_start;
}

static struct str name_of(const struct fetch_part *part)
{
    return part->name ? str_of(part->name) : str_null();
}

static enum err absent_error(const struct shard *s, const struct topic_slot *slot,
                             const struct fetch_part *part)
{
    const struct metadata_topic *topic =
        metadata_find_topic_either(s->image, name_of(part), part->key.topic_id);

    return slot || topic || part->name ? shard_absent_error(topic, part->index)
                                       : ERR_UNKNOWN_TOPIC_ID;
}

struct partition *fetch_find_partition(struct shard *s, const struct fetch_part *part,
                                       bool at_follower, enum err *err)
{
    struct topic_slot *slot = part->name ? shard_find_topic(s, str_of(part->name))
                                         : shard_find_topic_id(s, part->key.topic_id);
    struct partition *p = slot_partition(slot, part->index);

    if (!p)
        *err = absent_error(s, slot, part);
    else
        *err = at_follower ? partition_check_replica(p, part->leader_epoch)
                           : partition_check_leader(p, part->leader_epoch);
    return *err ? NULL : p;
}

struct visit *fetch_visit(struct request *r, struct fetch_session *session,
                          void (*at_owner)(struct visit_item *item),
                          void (*all_home)(struct request *r, struct visit *v), void *in)
{
    struct visit *v = visit_new(r, session->part_count, at_owner, all_home);
    int n = 0;

    LIST_EACH (node, &session->parts) {
        struct fetch_part *part = LIST_ENTRY(node, struct fetch_part, link);
        struct visit_item *item = &v->items[n++];
        struct partition *p = fetch_find_partition(r->shard, part, false, &item->err);

        item->in = in;
        item->out = part;
        item->partition = p ? partition_ref(p) : NULL;
    }
    return v;
}

static void count_part_sent(const struct fetch *f, const struct fetch_part *part)
{
    struct shard *s = f->shard;
    struct partition *p;
    enum err gone;

    counter_add(&s->counts->fetch_parts, 1);
    if (part->err) {
        counter_add(&s->counts->fetch_parts_failed, 1);
        count_error(f->request, part->err);
    }
    if (!part->range.file)
        return;
    if (part->is_throttled)
        throttle_count(s, THROTTLE_LEADER, part->range.n);
    counter_add(&s->counts->traffic.bytes_out, part->range.n);
    p = fetch_find_partition(f->shard, part, f->at_follower, &gone);
    if (p)
        counter_add(&p->traffic[s->index].bytes_out, part->range.n);
}

static void fill_part(struct fetch *f, struct fetch_response_partition *out,
                      struct fetch_part *part)
{
    struct request *r = f->request;
    int32_t near = part->near;

    count_part_sent(f, part);
    part->near = -1; /* The next fetch of the session asks again. */
    out->partition_index = part->index;
    out->error_code = err_wire(part->err);
    out->records.b = (struct bytes){.p = (const uint8_t *)"", .n = 0};
    out->aborted_transactions.n = -1;
    out->high_watermark = -1;
    part->sent_high_watermark = -1;
    if (part->err) {
        /* A follower that is too far behind starts over there. */
        out->log_start_offset = part->err == ERR_OFFSET_OUT_OF_RANGE && f->upto == FETCH_UPTO_ACKED
                                    ? part->bounds.log_start
                                    : -1;
        return;
    }
    out->high_watermark = part->bounds.high_watermark;
    out->last_stable_offset = part->bounds.last_stable;
    out->log_start_offset = part->bounds.log_start;
    part->sent_high_watermark = part->bounds.high_watermark;
    part->sent_log_start = part->bounds.log_start;
    out->diverging_epoch.epoch = part->diverging_epoch;
    out->diverging_epoch.end_offset = part->diverging_end;
    out->preferred_read_replica = near;
    if (f->upto == FETCH_UPTO_STABLE) {
        out->aborted_transactions.n = part->aborted_n;
        out->aborted_transactions.v =
            request_array(r, &fetch_response_aborted_transaction_schema, part->aborted_n);
        for (int i = 0; i < part->aborted_n; i++) {
            out->aborted_transactions.v[i].producer_id = part->aborted[i].producer_id;
            out->aborted_transactions.v[i].first_offset = part->aborted[i].first_offset;
        }
    }
    if (part->range.file) {
        request_add_range(r, &out->records, &part->range);
        part->range.file = NULL;
    }
}

/* Parts of one topic that follow each other share its entry. */
static bool same_topic(const struct fetch_part *a, const struct fetch_part *b)
{
    return a && uuid_eq(a->key.topic_id, b->key.topic_id) && a->key.name_hash == b->key.name_hash &&
           (a->name == b->name || (a->name && b->name && strcmp(a->name, b->name) == 0));
}

/* Parts of one topic in a row, from this one on. Each topic gets room for no more than these:
 * room for all would be the square of what was asked. */
static int32_t count_same_topic(const struct fetch_session *session, const struct fetch_part *first)
{
    int32_t n = 0;

    for (const struct list *at = &first->link; at != &session->parts; at = at->next, n++)
        if (!same_topic(first, LIST_ENTRY(at, struct fetch_part, link)))
            break;
    return n;
}

/* With version 16 come the addresses. */
static void fill_hint(struct hints *hints, const struct fetch_part *part,
                      struct fetch_response_partition *out)
{
    if (hints->request->header.api_version >= 16 &&
        (part->err == ERR_NOT_LEADER_OR_FOLLOWER || part->err == ERR_FENCED_LEADER_EPOCH))
        hints_find(hints, name_of(part), part->key.topic_id, part->index,
                   &out->current_leader.leader_id, &out->current_leader.leader_epoch);
}

static void fill_nodes(const struct hints *hints, struct fetch_response *out)
{
    struct request *r = hints->request;

    out->node_endpoints.n = hints->count;
    out->node_endpoints.v = request_array(r, &fetch_response_node_schema, hints->count);
    for (int32_t i = 0; i < hints->count; i++) {
        struct fetch_response_node *node = &out->node_endpoints.v[i];

        node->node_id = hints->brokers[i]->id;
        node->rack = hints->brokers[i]->rack;
        (void)request_broker_address(r, hints->brokers[i], &node->host, &node->port);
    }
}

static void fill_response(struct fetch *f)
{
    struct request *r = f->request;
    struct fetch_response *out = r->out;
    struct fetch_response_topic *topic = NULL;
    struct fetch_part *before = NULL;
    struct hints hints = {.request = r};

    out->session_id = f->session->id;
    out->responses.v = request_array(r, &fetch_response_topic_schema, f->session->part_count);
    LIST_EACH_SAFE (node, &f->session->parts) {
        struct fetch_part *part = LIST_ENTRY(node, struct fetch_part, link);

        if (!same_topic(before, part))
            topic = NULL;
        before = part;
        if (f->is_incremental && !has_news(part))
            continue;
        if (!topic) {
            topic = &out->responses.v[out->responses.n++];
            topic->topic = str_of(part->name ? part->name : "");
            topic->topic_id = part->key.topic_id;
            topic->partitions.v = request_array(r, &fetch_response_partition_schema,
                                                count_same_topic(f->session, part));
        }
        fill_part(f, &topic->partitions.v[topic->partitions.n], part);
        fill_hint(&hints, part, &topic->partitions.v[topic->partitions.n++]);
    }
    fill_nodes(&hints, out);
}

/* Partitions that had data go to the end, so that a small budget serves all of them in turn. */
static void rotate_served(struct fetch_session *session)
{
    struct list served;

    if (session->id == 0)
        return;
    list_init(&served);
    LIST_EACH_SAFE (node, &session->parts) {
        struct fetch_part *part = LIST_ENTRY(node, struct fetch_part, link);

        if (part->range.file) {
            list_remove(node);
            list_push_back(&served, node);
        }
    }
    list_splice_back(&session->parts, &served);
}

static void answer(struct fetch *f)
{
    struct request *r = f->request;

    assert(!f->is_answered && !f->is_reading);
    stop_waiting(f);
    shard_delay_cancel(f->shard, &f->deadline);
    shard_delay_cancel(f->shard, &f->allowed);
    f->is_answered = true;
    r->fetch = NULL;
    if (f->parked_ns > 0)
        r->waited_ns = shard_now_ns(f->shard) - f->parked_ns;
    rotate_served(f->session);
    fill_response(f);
    request_reply(r);
    fetch_session_done(f->shard, f->session);
    f->session = NULL;
    fetch_free(f);
}

/* ---- one partition ---------------------------------------------------------------------- */

/* Reads from a view into the part's result, within the budget that is left. */
static enum err read_part(struct fetch *f, struct fetch_part *part, const struct log_view *view,
                          enum log_wait wait)
{
    int64_t upto = read_bound(&part->bounds, f->upto);
    int64_t left = MAX(f->max_bytes - f->bytes, 0);
    int32_t max = (int32_t)MIN(left, MAX(part->max_bytes, 0));
    enum err err = log_view_read(view, part->offset, upto, max, f->bytes == 0, wait, &part->range);

    part->aborted_n = 0;
    if (!err && part->range.file && f->upto == FETCH_UPTO_STABLE)
        err = log_view_aborted(view, part->offset, upto, wait, &f->request->arena, &part->aborted,
                               &part->aborted_n);
    if (err) {
        io_file_unref(part->range.file);
        part->range.file = NULL;
    }
    return err;
}

static void drop_range(struct fetch_part *part)
{
    if (part->range.file)
        io_file_unref(part->range.file);
    part->range = (struct log_range){0};
}

static void count_part(struct fetch *f, struct fetch_part *part, enum err err)
{
    part->err = err;
    f->any_error = f->any_error || err;
    if (!err && part->range.file) {
        f->bytes += part->range.n;
        /* One answer holds bytes of one segment, and whole batches: min_bytes may have to wait for
         * the next answer. */
        f->is_full = f->is_full || part->range.is_full || part->range.next_offset_hint >= 0;
    } else if (!err && f->bytes > 0 && part->offset < read_bound(&part->bounds, f->upto)) {
        f->is_full = true;
    }
}

/*
 * A follower in sync has everything that a consumer may have read, and at most has not heard that
 * it is committed: that is worth waiting for. Where there is more to be had, the leader knows.
 */
static enum err check_at_follower(const struct fetch *f, struct fetch_part *part)
{
    struct log_bounds *b = &part->bounds;
    bool may_wait = part->offset <= b->end && shard_now_ns(f->shard) < f->deadline_ns;

    if (PLANTED(READ_AHEAD_AT_FOLLOWER))
        b->high_watermark = b->ack;
    return part->offset <= b->high_watermark || may_wait ? ERR_NONE : ERR_OFFSET_NOT_AVAILABLE;
}

static bool hold_back(struct fetch *f, struct fetch_part *part)
{
    part->is_held = f->upto == FETCH_UPTO_ACKED && part->may_wait &&
                    throttle_is_exceeded(f->shard, THROTTLE_LEADER);
    return part->is_held;
}

/* Bounds and offset; true when there is something to read. */
static bool check_part(struct fetch *f, struct fetch_part *part, struct partition *p)
{
    log_view_bounds(p->view, &part->bounds);
    f->is_full = f->is_full || part->diverging_epoch >= 0 || part->near >= 0;
    if (f->upto == FETCH_UPTO_ACKED && part->bounds.high_watermark > part->watermark)
        f->is_full = true;
    if (f->upto == FETCH_UPTO_ACKED && (part->follower_err || part->diverging_epoch >= 0)) {
        part->err = part->follower_err;
        return false;
    }
    if (part->bounds.is_gone)
        part->err = log_dir_has_failed(p->broker->dirs[p->dir]) ? ERR_KAFKA_STORAGE_ERROR
                                                                : ERR_UNKNOWN_TOPIC_OR_PARTITION;
    else if (part->offset < part->bounds.log_start)
        part->err = ERR_OFFSET_OUT_OF_RANGE;
    else if (f->at_follower && !partition_is_led_here(p))
        part->err = check_at_follower(f, part);
    else if (part->offset > part->bounds.end)
        part->err = f->upto == FETCH_UPTO_ACKED || broker_is_sure(f->shard)
                        ? ERR_OFFSET_OUT_OF_RANGE
                        : ERR_NOT_LEADER_OR_FOLLOWER;
    return !part->err && part->near < 0 && part->offset < read_bound(&part->bounds, f->upto) &&
           !hold_back(f, part);
}

/* ---- cold reads ------------------------------------------------------------------------- */

static void find_cold(struct io_job *job)
{
    struct fetch *f = CONTAINER_OF(job, struct fetch, job);

    f->job_part->err = read_part(f, f->job_part, log_snapshot_view(f->snapshot), LOG_BLOCKING);
}

static void found_cold(struct io_job *job)
{
    struct fetch *f = CONTAINER_OF(job, struct fetch, job);

    log_snapshot_free(f->snapshot);
    f->is_reading = false;
    count_part(f, f->job_part, f->job_part->err);
    walk(f);
}

static void submit_cold(struct fetch *f, struct fetch_part *part, struct partition *p)
{
    f->is_reading = true;
    f->job_part = part;
    f->snapshot = log_snapshot_take(p->view);
    f->job.run = find_cold;
    f->job.done = found_cold;
    io_job_submit(f->shard->loop, &f->job);
}

/* ---- the walk --------------------------------------------------------------------------- */

static void park(struct fetch *f)
{
    if (f->parked_ns == 0)
        f->parked_ns = shard_now_ns(f->shard);
    if (!list_is_empty(&f->waiters))
        return;
    LIST_EACH (node, &f->session->parts) {
        struct fetch_part *part = LIST_ENTRY(node, struct fetch_part, link);
        enum err err;
        struct partition *p = fetch_find_partition(f->shard, part, f->at_follower, &err);

        /* More of what is held back is no news. */
        if (part->is_held)
            shard_delay_set(f->shard, &f->allowed, throttle_allows_ns(f->shard, THROTTLE_LEADER));
        else if (p)
            wait_at(f, p, part);
    }
}

static bool is_enough(const struct fetch *f)
{
    return f->any_error || f->is_full || f->bytes >= f->min_bytes || f->session->part_count == 0 ||
           shard_now_ns(f->shard) >= f->deadline_ns || f->request->conn->closing;
}

static void walk(struct fetch *f)
{
    while (f->at != &f->session->parts) {
        struct fetch_part *part = LIST_ENTRY(f->at, struct fetch_part, link);
        struct partition *p = fetch_find_partition(f->shard, part, f->at_follower, &part->err);
        enum err err = part->err;

        f->at = f->at->next;
        if (p && check_part(f, part, p)) {
            err = read_part(f, part, p->view, LOG_CACHED);
            if (err == ERR_AGAIN) {
                submit_cold(f, part, p);
                return;
            }
        } else {
            err = part->err;
        }
        count_part(f, part, err);
    }
    if (is_enough(f))
        answer(f);
    else
        park(f);
}

static void begin_walk(struct fetch *f)
{
    LIST_EACH (node, &f->session->parts) {
        struct fetch_part *part = LIST_ENTRY(node, struct fetch_part, link);

        drop_range(part);
        part->err = ERR_NONE;
        part->is_held = false;
    }
    shard_delay_cancel(f->shard, &f->allowed);
    f->at = f->session->parts.next;
    f->bytes = 0;
    f->any_error = false;
    f->is_full = false;
    walk(f);
}

static void look(struct io_msg *msg)
{
    struct fetch *f = CONTAINER_OF(msg, struct fetch, look);

    f->look_posted = false;
    if (f->is_answered) {
        fetch_free(f);
        return;
    }
    if (f->is_reading)
        return;
    /* Remote waiters that came home have to register again. */
    stop_waiting(f);
    begin_walk(f);
}

static void time_is_up(struct delay *d)
{
    look_again(CONTAINER_OF(d, struct fetch, deadline));
}

void fetch_hurry(struct fetch *f)
{
    int64_t soon = shard_now_ns(f->shard) + HURRY_NS;

    if (f->deadline_ns <= soon)
        return;
    f->deadline_ns = soon;
    shard_delay_set(f->shard, &f->deadline, soon);
}

void fetch_hurry_before(const struct request *r)
{
    struct request *head = LIST_FIRST(&r->conn->requests, struct request, link);

    if (head != r && head->fetch)
        fetch_hurry(head->fetch);
}

void fetch_abandon(struct fetch *f)
{
    /* A read under way ends first; the walk sees that the connection is closing. */
    f->deadline_ns = 0;
    look_again(f);
}

/* ---- the request ------------------------------------------------------------------------ */

/* All owners: of a follower's position, or what is near. */
static void owners_asked(struct request *r)
{
    r->fetch->is_reading = false;
    begin_walk(r->fetch);
}

static void allowed_again(struct delay *d)
{
    struct fetch *f = CONTAINER_OF(d, struct fetch, allowed);

    stop_waiting(f);
    f->is_reading = true;
    fetch_tell_leaders(f->request, f->session, owners_asked);
}

static int64_t count_parts(const struct fetch_request *in)
{
    int64_t n = 0;

    for (int32_t t = 0; t < in->topics.n; t++)
        n += MAX(in->topics.v[t].partitions.n, 0);
    return n;
}

void handle_fetch(struct request *r)
{
    const struct fetch_request *in = r->in;
    struct fetch_response *out = r->out;
    struct shard *s = r->shard;
    int64_t wait_ms = MIN(MAX(in->max_wait_ms, 0), INT32_MAX);
    struct fetch *f;
    enum err err;

    if (!request_allows_partitions(r, count_parts(in)))
        return;
    f = xcalloc(1, sizeof(*f));
    err = fetch_session_resolve(r, &f->session, &f->is_incremental);
    if (err) {
        free(f);
        out->error_code = err_wire(err);
        request_reply(r);
        return;
    }
    f->request = r;
    f->shard = s;
    f->upto = in->isolation_level == 1 ? FETCH_UPTO_STABLE : FETCH_UPTO_WATERMARK;
    if (fetch_follower(r) >= 0)
        f->upto = FETCH_UPTO_ACKED;
    else
        f->at_follower = in->rack_id.n > 0;
    f->max_bytes = MIN(MAX(in->max_bytes, 0), config_i32(s->config, CONFIG_FETCH_MAX_BYTES));
    f->min_bytes = MIN(in->min_bytes, f->max_bytes);
    f->deadline_ns = shard_now_ns(s) + wait_ms * 1000000;
    f->deadline.expired = time_is_up;
    f->allowed.expired = allowed_again;
    f->look.fn = look;
    list_init(&f->waiters);
    r->fetch = f;
    if (wait_ms > 0 && !PLANTED(FETCH_WITHOUT_DEADLINE))
        shard_delay_set(s, &f->deadline, f->deadline_ns);
    f->is_reading = f->upto == FETCH_UPTO_ACKED || fetch_may_be_sent_near(r);
    if (!f->is_reading) {
        begin_walk(f);
    } else if (f->upto == FETCH_UPTO_ACKED) {
        /* A follower that asks again, before it is answered, has somebody new to ask for. */
        fetch_hurry_before(r);
        fetch_tell_leaders(r, f->session, owners_asked);
    } else {
        fetch_ask_near(r, f->session, owners_asked);
    }
}
