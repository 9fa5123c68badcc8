/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following: the partitions of one shard that have the same leader are fetched together, one
 * request at a time. What a partition asks for and what the answer means is decided by its replica
 * (replica.h); this file carries requests and answers.
 *
 * A request costs both sides what there are partitions in it, and most of thousands rest. So there
 * are two at a time for each leader, on connections of their own: one for partitions that got
 * records in the last seconds, and one, which the leader mostly holds, for those that did not. A
 * resting partition that gets some is among the busy ones from its next fetch on.
 *
 * A partition wants its next fetch when it has acknowledged what it got, so an answer with records
 * is followed by a pause, until the disk has them. The next request waits for all partitions of the
 * answer, since one that comes too late would wait behind a fetch that the leader holds until there
 * is news for the others; but not for long, as one disk may be slower than another.
 *
 * Who comes later still, or begins to follow, does not wait for such a fetch, either: it is given
 * up and sent again with all of them. The leader answers the one before at once, since another one
 * is behind it.
 *
 * While replication takes too much (throttle.c), partitions that are throttled and do not keep up
 * are held apart, and the others are fetched as if these did not exist.
 */
#include "broker/fetcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/client.h"

#define GATHER_NS 5000000
#define REST_NS 10000000000 /* who got no records for so long */

/* A partition in the request that is out. */
struct fetcher_item {
    struct partition *partition; /* a reference; NULL: it has been told */
    struct uuid topic_id;
    int32_t index;
    int32_t leader_epoch;
    int64_t offset;
};

struct fetcher {
    struct list link; /* shard->fetchers */
    struct shard *shard;
    int32_t leader;
    enum fetch_pace pace;
    struct list waiting; /* struct following by link */
    int waiting_count;
    struct list held; /* likewise, until the rate allows them */
    struct delay allowed;
    int expected; /* partitions of the last answer that are not waiting yet */
    struct delay gather;
    bool has_gathered; /* the time is up */
    bool is_held;      /* the request that is out may be held until there is news */
    bool has_newcomer; /* and somebody waits who had no part in it */
    int64_t sent_ns;
    struct io_msg send_msg;
    bool send_posted;
    struct fetcher_item *items; /* by topic id and index */
    int item_count;
    struct arena arena; /* of the request */
    struct fetch_request *request;
    struct client_call call;
};

/* ---- peers ------------------------------------------------------------------------------ */

static struct client *client_of(const struct fetcher *f)
{
    return f->shard->peers[f->pace];
}

static void tell_peers(struct shard *s, struct client *peers, const struct metadata_image *before)
{
    for (int32_t i = 0; before && i < before->broker_count; i++)
        if (!metadata_find_broker(s->image, before->brokers[i]->id))
            client_broker_remove(peers, before->brokers[i]->id);
    broker_tell_client(s->broker, peers, s->image, s->config);
}

static void release_held(struct delay *d)
{
    struct fetcher *f = CONTAINER_OF(d, struct fetcher, allowed);

    LIST_EACH (node, &f->held) {
        LIST_ENTRY(node, struct following, link)->is_held = false;
        f->waiting_count++;
    }
    list_splice_back(&f->waiting, &f->held);
    f->has_newcomer = true;
    fetcher_wake(f);
}

/* The rates, or what is throttled, may be others now: those that still have to wait do so. */
static void release_all(struct shard *s)
{
    LIST_EACH (node, &s->fetchers) {
        struct fetcher *f = LIST_ENTRY(node, struct fetcher, link);

        if (!list_is_empty(&f->held))
            release_held(&f->allowed);
    }
}

void fetchers_take_image(struct shard *s, const struct metadata_image *before)
{
    if (s->stopping)
        return;
    release_all(s);
    for (int i = 0; i < FETCH_PACES; i++)
        if (s->peers[i])
            tell_peers(s, s->peers[i], before);
}

/* ---- the answer ------------------------------------------------------------------------- */

static int by_partition(const void *a, const void *b)
{
    const struct fetcher_item *x = a;
    const struct fetcher_item *y = b;
    int order = memcmp(x->topic_id.b, y->topic_id.b, sizeof(x->topic_id.b));

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static struct fetcher_item *find_item(const struct fetcher *f, struct uuid topic_id, int32_t index)
{
    struct fetcher_item wanted = {.topic_id = topic_id, .index = index};

    return bsearch(&wanted, f->items, (size_t)f->item_count, sizeof(wanted), by_partition);
}

static void tell_item(struct fetcher *f, struct fetcher_item *item,
                      const struct fetch_response_partition *r, enum err err)
{
    struct partition *p = item->partition;
    struct following *w = &p->following;
    struct replica_fetched fetched = {
        .err = err,
        .leader_epoch = item->leader_epoch,
        .offset = item->offset,
        .diverging_epoch = -1,
    };

    item->partition = NULL;
    if (r) {
        fetched.err = err_from_wire(r->error_code);
        fetched.has_records = r->records.b.n > 0;
        fetched.high_watermark = r->high_watermark;
        fetched.log_start = r->log_start_offset;
        fetched.diverging_epoch = r->diverging_epoch.epoch;
        fetched.diverging_end = r->diverging_epoch.end_offset;
    }
    /* Before it is told: it may want its next fetch at once. */
    if (w->out == f)
        w->out = NULL;
    if (p->throttle.of_follower && fetched.has_records)
        throttle_count(f->shard, THROTTLE_FOLLOWER, r->records.b.n);
    if (fetched.has_records)
        w->records_ns = shard_now_ns(f->shard);
    /* Where it rested it does not come back. */
    w->is_expected = fetched.has_records && f->pace == FETCH_BUSY;
    f->expected += w->is_expected;
    replicate_fetched(p, &fetched, r ? r->records.b : bytes_null());
    partition_unref(p);
}

static void tell_answered(struct fetcher *f, const struct fetch_response *r)
{
    for (int32_t t = 0; t < r->responses.n; t++) {
        const struct fetch_response_topic *topic = &r->responses.v[t];

        for (int32_t i = 0; i < topic->partitions.n; i++) {
            struct fetcher_item *item =
                find_item(f, topic->topic_id, topic->partitions.v[i].partition_index);

            if (item && item->partition)
                tell_item(f, item, &topic->partitions.v[i], ERR_NONE);
        }
    }
}

static void answered(struct client_call *call)
{
    struct fetcher *f = CONTAINER_OF(call, struct fetcher, call);
    const struct fetch_response *r = call->response;
    enum err err = call->err ? call->err : err_from_wire(r->error_code);
    struct fetcher_item *items = f->items;

    f->expected = 0;
    if (!err)
        tell_answered(f, r);
    /* What was asked and not answered. */
    for (int i = 0; i < f->item_count; i++)
        if (items[i].partition)
            tell_item(f, &items[i], NULL, err ? err : ERR_UNKNOWN_SERVER_ERROR);
    free(items);
    f->items = NULL;
    f->item_count = 0;
    f->has_gathered = f->expected == 0;
    if (f->expected > 0)
        shard_delay_set(f->shard, &f->gather, shard_now_ns(f->shard) + GATHER_NS);
    fetcher_wake(f);
}

/* ---- the request ------------------------------------------------------------------------ */

static void take_waiting(struct fetcher *f)
{
    struct list *node;

    f->items = xcalloc((size_t)f->waiting_count, sizeof(*f->items));
    while ((node = list_pop_front(&f->waiting))) {
        struct following *w = LIST_ENTRY(node, struct following, link);
        struct partition *p = CONTAINER_OF(w, struct partition, following);

        w->fetcher = NULL;
        w->out = f;
        f->items[f->item_count++] = (struct fetcher_item){.partition = partition_ref(p),
                                                          .topic_id = p->topic_id,
                                                          .index = p->index,
                                                          .leader_epoch = w->leader_epoch,
                                                          .offset = w->offset};
    }
    f->waiting_count = 0;
    qsort(f->items, (size_t)f->item_count, sizeof(*f->items), by_partition);
}

static void fill_partition(const struct fetcher *f, const struct fetcher_item *item,
                           struct fetch_request_partition *out)
{
    wire_init(&fetch_request_partition_schema, out);
    out->partition = item->index;
    out->current_leader_epoch = item->leader_epoch;
    out->fetch_offset = item->offset;
    out->last_fetched_epoch = replicate_last_epoch(item->partition);
    out->log_start_offset = log_start_offset(item->partition->log);
    out->partition_max_bytes = config_i32(f->shard->config, CONFIG_REPLICA_FETCH_MAX_BYTES);
    /* Consumers may wait here for what is committed: the leader is not to keep it to itself. */
    if (fetch_goes_by_racks(f->shard->config))
        out->high_watermark = item->partition->replica.leader_watermark;
}

static void fill_topics(struct fetcher *f, struct fetch_request *q)
{
    struct fetch_request_topic *topic = NULL;
    size_t n = (size_t)f->item_count;

    q->topics.v = arena_calloc(&f->arena, n, sizeof(*q->topics.v));
    for (int i = 0; i < f->item_count; i++) {
        const struct fetcher_item *item = &f->items[i];

        if (!topic || !uuid_eq(topic->topic_id, item->topic_id)) {
            topic = &q->topics.v[q->topics.n++];
            topic->topic_id = item->topic_id;
            topic->partitions.v =
                arena_calloc(&f->arena, n - (size_t)i, sizeof(*topic->partitions.v));
        }
        fill_partition(f, item, &topic->partitions.v[topic->partitions.n++]);
    }
}

static void send_request(struct fetcher *f)
{
    const struct config *config = f->shard->config;
    struct fetch_request *q;

    take_waiting(f);
    arena_reset(&f->arena);
    q = arena_alloc(&f->arena, sizeof(*q));
    wire_init(&fetch_request_schema, q);
    q->replica_state.replica_id = f->shard->broker->node_id;
    q->replica_state.replica_epoch = broker_own_epoch(f->shard);
    q->max_wait_ms = config_i32(config, CONFIG_REPLICA_FETCH_WAIT_MAX_MS);
    /* Who comes late must not wait behind news that do not come. */
    f->is_held = f->expected == 0;
    if (!f->is_held)
        q->max_wait_ms = MIN(q->max_wait_ms, GATHER_NS / 1000000);
    q->min_bytes = config_i32(config, CONFIG_REPLICA_FETCH_MIN_BYTES);
    q->max_bytes = config_i32(config, CONFIG_REPLICA_FETCH_RESPONSE_MAX_BYTES);
    fill_topics(f, q);
    f->call.request = q;
    f->has_newcomer = false;
    f->sent_ns = shard_now_ns(f->shard);
    client_call(client_of(f), &f->call);
}

/* Who is in the request that is out, and wants its answer still, waits again. */
static void give_up_request(struct fetcher *f)
{
    client_cancel(&f->call);
    for (int i = 0; i < f->item_count; i++) {
        struct partition *p = f->items[i].partition;
        struct following *w = &p->following;

        if (w->out == f) {
            w->out = NULL;
            w->fetcher = f;
            list_push_back(&f->waiting, &w->link);
            f->waiting_count++;
        }
        partition_unref(p);
    }
    free(f->items);
    f->items = NULL;
    f->item_count = 0;
}

/* False: the request that is out has to come back first. */
static bool makes_room(struct fetcher *f)
{
    int64_t due_ns = f->sent_ns + GATHER_NS;

    if (!client_call_is_pending(&f->call))
        return true;
    if (!f->has_newcomer || !f->is_held)
        return false;
    if (shard_now_ns(f->shard) < due_ns) {
        shard_delay_set(f->shard, &f->gather, due_ns);
        return false;
    }
    give_up_request(f);
    return true;
}

static bool must_hold(const struct fetcher *f, const struct partition *p)
{
    return p->throttle.of_follower && !replica_keeps_up(&p->replica, log_end_offset(p->log)) &&
           throttle_is_exceeded(f->shard, THROTTLE_FOLLOWER);
}

static void hold_throttled(struct fetcher *f)
{
    LIST_EACH_SAFE (node, &f->waiting) {
        struct following *w = LIST_ENTRY(node, struct following, link);

        if (!must_hold(f, CONTAINER_OF(w, struct partition, following)))
            continue;
        list_remove(node);
        list_push_back(&f->held, node);
        w->is_held = true;
        f->waiting_count--;
        shard_delay_set(f->shard, &f->allowed, throttle_allows_ns(f->shard, THROTTLE_FOLLOWER));
    }
}

static void send_if_ready(struct io_msg *msg)
{
    struct fetcher *f = CONTAINER_OF(msg, struct fetcher, send_msg);

    f->send_posted = false;
    if (f->shard->stopping)
        return;
    hold_throttled(f);
    if (f->waiting_count == 0 || !makes_room(f))
        return;
    if (f->expected > 0 && !f->has_gathered)
        return;
    shard_delay_cancel(f->shard, &f->gather);
    send_request(f);
}

/* As a message: whoever else wants to fetch in this turn comes along. */
void fetcher_wake(struct fetcher *f)
{
    if (f->send_posted)
        return;
    f->send_posted = true;
    io_post(f->shard->loop, &f->send_msg);
}

static void gathered(struct delay *d)
{
    struct fetcher *f = CONTAINER_OF(d, struct fetcher, gather);

    f->has_gathered = true;
    fetcher_wake(f);
}

/* ---- who wants to fetch ----------------------------------------------------------------- */

static struct fetcher *fetcher_new(struct shard *s, int32_t leader, enum fetch_pace pace)
{
    struct fetcher *f = xcalloc(1, sizeof(*f));

    f->shard = s;
    f->leader = leader;
    f->pace = pace;
    list_init(&f->waiting);
    list_init(&f->held);
    arena_init(&f->arena, 0);
    f->gather.expired = gathered;
    f->allowed.expired = release_held;
    f->send_msg.fn = send_if_ready;
    f->call.done = answered;
    f->call.api_key = API_FETCH;
    f->call.target = leader;
    list_push_back(&s->fetchers, &f->link);
    if (!s->peers[pace]) {
        s->peers[pace] = broker_client(s->loop, s->broker,
                                       config_i32(s->config, CONFIG_REPLICA_SOCKET_TIMEOUT_MS),
                                       config_i32(s->config, CONFIG_REPLICA_FETCH_BACKOFF_MS));
        s->peers_open++;
        tell_peers(s, s->peers[pace], NULL);
    }
    return f;
}

static struct fetcher *fetcher_of(const struct partition *p)
{
    const struct following *w = &p->following;
    struct shard *s = p->owner;
    bool rests = w->records_ns == 0 || shard_now_ns(s) - w->records_ns > REST_NS;
    enum fetch_pace pace = rests ? FETCH_RESTING : FETCH_BUSY;

    LIST_EACH (node, &s->fetchers) {
        struct fetcher *f = LIST_ENTRY(node, struct fetcher, link);

        if (f->leader == p->replica.leader && f->pace == pace)
            return f;
    }
    return fetcher_new(s, p->replica.leader, pace);
}

void fetcher_forget(struct partition *p)
{
    struct following *w = &p->following;

    w->out = NULL;
    if (!w->fetcher)
        return;
    list_remove(&w->link);
    w->fetcher->waiting_count -= !w->is_held;
    w->fetcher = NULL;
}

void fetcher_want(struct partition *p, int64_t offset)
{
    struct following *w = &p->following;
    bool was_expected = w->is_expected;
    struct fetcher *f;

    if (p->owner->stopping)
        return;
    fetcher_forget(p);
    f = fetcher_of(p);
    *w = (struct following){
        .fetcher = f,
        .leader_epoch = p->replica.leader_epoch,
        .offset = offset,
        .records_ns = w->records_ns,
    };
    list_push_back(&f->waiting, &w->link);
    f->waiting_count++;
    if (was_expected && f->expected > 0)
        f->expected--;
    f->has_newcomer = true;
    fetcher_wake(f);
}

/* ---- the end ---------------------------------------------------------------------------- */

static void drop_items(struct fetcher *f)
{
    for (int i = 0; i < f->item_count; i++)
        partition_unref(f->items[i].partition);
    free(f->items);
    f->items = NULL;
    f->item_count = 0;
}

static void peers_gone(void *ctx)
{
    struct shard *s = ctx;

    s->peers_open--;
    shard_conn_gone(s);
}

void fetchers_stop(struct shard *s)
{
    LIST_EACH (node, &s->fetchers) {
        struct fetcher *f = LIST_ENTRY(node, struct fetcher, link);

        shard_delay_cancel(s, &f->gather);
        shard_delay_cancel(s, &f->allowed);
        client_call_fini(&f->call);
        drop_items(f);
    }
    for (int i = 0; i < FETCH_PACES; i++)
        if (s->peers[i])
            client_close(s->peers[i], peers_gone, s);
}

void fetchers_free(struct shard *s)
{
    LIST_EACH_SAFE (node, &s->fetchers) {
        struct fetcher *f = LIST_ENTRY(node, struct fetcher, link);

        list_remove(node);
        arena_fini(&f->arena);
        free(f);
    }
}
