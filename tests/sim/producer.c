/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer: several requests in flight on one connection, a few partitions a request, any acks,
 * any codec. Half of them are idempotent and behave as Kafka's clients do: what failed is sent
 * again with its sequence, in order, over any number of connections, until it is acknowledged. The
 * others send once, and without an answer nobody knows.
 *
 * A lane is one producer's way to one partition. Within a lane the broker owes an idempotent
 * producer exactly one copy of each batch, in order: the first unanswered batch of a lane can
 * neither be out of sequence nor too old, unless the topic lives in the page cache.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "clients.h"

#define PARTS_MAX 3
#define DEPTH_MAX 5
#define PAUSE_MS_MAX 25
#define PERIOD_NS (250 * MS)
#define BURST_NS (15 * MS)
#define TIMEOUT_MS 3000
#define GAP 1000000          /* of sequences: nobody gets that far */
#define UNANSWERED_NS SECOND /* by then a request without an answer has arrived, or never will */

struct lane {
    struct list link;
    struct topic *topic;
    int32_t partition;
    int32_t stream;
    int32_t sequence;  /* of the next record */
    int32_t order;     /* of the next batch */
    struct list items; /* unanswered, in order */
    int item_count;
    int in_flight;
    int32_t acked;
    bool resends; /* something failed: all of it again, once nothing is in flight */
};

struct item {
    struct list link; /* lane->items; a bad one is on no list */
    struct lane *lane;
    int32_t number;
    int16_t version; /* of the request: its codec is fit for it */
    struct buf bytes;
    int tries;
    bool is_bad;
};

struct producer {
    struct peer peer;
    struct run *run;
    struct list lanes;
    bool is_idempotent;
    int16_t acks;
    int depth;
    int64_t id; /* -1: to be asked for */
    struct call id_call;
    bool asks_id;
    int64_t unanswered_ns; /* the last request that will not be answered */
    bool resets;           /* begins anew, with another id, when nothing is in flight */
    int64_t next_ns;
};

struct produce_call {
    struct call call;
    struct producer *producer;
    struct item *items[PARTS_MAX];
    int count;
};

static uint32_t choose(const struct producer *p, uint32_t n)
{
    return run_choose_by(p->run, BY_PRODUCERS, n);
}

static bool once_in(const struct producer *p, uint32_t n)
{
    return choose(p, n) == n - 1;
}

/* ---- lanes ------------------------------------------------------------------------------ */

static struct lane *find_lane(struct producer *p, struct topic *t, int32_t partition)
{
    struct lane *lane;

    LIST_EACH (node, &p->lanes) {
        lane = LIST_ENTRY(node, struct lane, link);
        if (lane->topic == t && lane->partition == partition)
            return lane;
    }
    lane = xcalloc(1, sizeof(*lane));
    lane->topic = t;
    lane->partition = partition;
    lane->stream = p->run->history.stream_next++;
    list_init(&lane->items);
    list_push_back(&p->lanes, &lane->link);
    return lane;
}

static void item_free(struct item *item)
{
    if (!item->is_bad) {
        list_remove(&item->link);
        item->lane->item_count--;
    }
    buf_fini(&item->bytes);
    free(item);
}

static void give_up(struct producer *p, struct item *item)
{
    history_unknown(p->run, item->number);
    item_free(item);
}

/* Nothing of the lane is in flight: what it still holds is left to chance. */
static void lane_free(struct producer *p, struct lane *lane)
{
    LIST_EACH_SAFE (node, &lane->items)
        give_up(p, LIST_ENTRY(node, struct item, link));
    list_remove(&lane->link);
    free(lane);
}

static void drop_lanes(struct producer *p)
{
    LIST_EACH_SAFE (node, &p->lanes)
        lane_free(p, LIST_ENTRY(node, struct lane, link));
}

/* ---- answers ---------------------------------------------------------------------------- */

static bool is_calm(const struct produce_call *pc)
{
    return pc->call.sent_ns >= pc->producer->run->calm_since_ns;
}

static void refused(struct producer *p, struct item *item, enum err err)
{
    struct lane *lane = item->lane;
    bool is_first = lane->items.next == &item->link;
    bool is_sequence = err == ERR_OUT_OF_ORDER_SEQUENCE_NUMBER ||
                       err == ERR_DUPLICATE_SEQUENCE_NUMBER || err == ERR_UNKNOWN_PRODUCER_ID;

    if (!p->is_idempotent) {
        give_up(p, item);
        return;
    }
    lane->resends = true;
    if (!is_sequence || !is_first || lane->topic->state != TOPIC_THERE)
        return;
    if (lane->topic->is_durable)
        violate(p->run, "%s-%d: batch %d is the next one of its producer and was refused: %s",
                lane->topic->name, lane->partition, item->number, err_name(err));
    p->resets = true;
}

static bool is_expected(enum err err, const struct topic *t)
{
    switch (err) {
    case ERR_REQUEST_TIMED_OUT:
    case ERR_KAFKA_STORAGE_ERROR:
    case ERR_NOT_LEADER_OR_FOLLOWER: return true;
    case ERR_UNKNOWN_TOPIC_OR_PARTITION:
    case ERR_UNKNOWN_TOPIC_ID: return true;
    case ERR_OUT_OF_ORDER_SEQUENCE_NUMBER:
    case ERR_DUPLICATE_SEQUENCE_NUMBER:
    case ERR_UNKNOWN_PRODUCER_ID: return true;
    default: return t->state != TOPIC_THERE;
    }
}

static void bad_answered(struct producer *p, struct item *item, enum err err)
{
    if (!err && item->lane->topic->state == TOPIC_THERE)
        violate(p->run, "batch %d is bad, and it was acknowledged", item->number);
    else if (err == ERR_CORRUPT_MESSAGE || err == ERR_OUT_OF_ORDER_SEQUENCE_NUMBER)
        history_refused(p->run, item->number);
    else
        history_unknown(p->run, item->number);
    item_free(item);
}

static void answered(struct produce_call *pc, struct item *item,
                     const struct produce_response_partition *r)
{
    struct producer *p = pc->producer;
    struct lane *lane = item->lane;
    enum err err = (enum err)r->error_code;
    bool is_transient = err == ERR_REQUEST_TIMED_OUT || err == ERR_KAFKA_STORAGE_ERROR ||
                        err == ERR_NOT_LEADER_OR_FOLLOWER ||
                        err == ERR_UNKNOWN_TOPIC_OR_PARTITION || err == ERR_UNKNOWN_TOPIC_ID;

    tell(p->run, "producer %lld, %s-%d batch %d, %s%s: %s at %lld", (long long)p->id,
         lane->topic->name, lane->partition, item->number, item->is_bad ? "bad, " : "",
         item->tries > 1 ? "again" : "first", err_name(err), (long long)r->base_offset);
    if (r->index != lane->partition)
        violate(p->run, "an answer for partition %d came where %d was due", r->index,
                lane->partition);
    if (!is_expected(err, lane->topic) && err && !item->is_bad)
        violate(p->run, "%s-%d: a good batch was refused: %s", lane->topic->name, lane->partition,
                err_name(err));
    if (is_transient && is_calm(pc) && lane->topic->state == TOPIC_THERE)
        violate(p->run, "%s-%d: produce failed with %s, and nothing is wrong", lane->topic->name,
                lane->partition, err_name(err));
    if (item->is_bad) {
        bad_answered(p, item, err);
    } else if (err) {
        refused(p, item, err);
    } else if (!lane->topic->is_durable && pc->call.sent_ns <= p->run->power_cut_ns) {
        /* It was in a page cache that is gone. */
        p->resets = true;
        give_up(p, item);
    } else {
        p->run->counts.duplicates += item->tries > 1;
        history_acked(p->run, item->number, r->base_offset);
        lane->acked++;
        item_free(item);
    }
}

static void lost(struct producer *p, struct item *item)
{
    item->lane->resends = p->acks != 0;
    if (item->is_bad || !p->is_idempotent)
        give_up(p, item);
}

static void produced(struct call *call, enum err err, void *response)
{
    struct produce_call *pc = CONTAINER_OF(call, struct produce_call, call);
    struct producer *p = pc->producer;
    const struct produce_response *r = response;

    if (!err && (r->responses.n != 1 || r->responses.v[0].partitions.n != pc->count)) {
        violate(p->run, "a produce response without all its partitions");
        err = ERR_MALFORMED;
    }
    for (int i = 0; i < pc->count; i++) {
        pc->items[i]->lane->in_flight--;
        if (err)
            lost(p, pc->items[i]);
        else
            answered(pc, pc->items[i], &r->responses.v[0].partitions.v[i]);
    }
    free(pc);
}

/* ---- sending ---------------------------------------------------------------------------- */

static struct batch_spec spec_for(struct producer *p, const struct lane *lane, int16_t version)
{
    struct batch_spec spec = batch_spec_default();
    uint32_t codec = choose(p, 10);

    if (codec < CODEC_COUNT && (codec != CODEC_ZSTD || version >= 7))
        spec.codec = (enum codec)codec;
    spec.level = CODEC_LEVEL_DEFAULT;
    if (p->is_idempotent) {
        spec.producer_id = p->id;
        spec.producer_epoch = 0;
        spec.base_sequence = lane->sequence;
    }
    return spec;
}

/* A checksum that is wrong, or a sequence far ahead of its turn. */
static void spoil(struct producer *p, struct item *item, struct batch_spec *spec)
{
    item->is_bad = true;
    if (p->is_idempotent && item->lane->acked > 0 && item->lane->topic->is_durable && once_in(p, 2))
        spec->base_sequence += GAP;
}

static struct item *make_item(struct producer *p, struct lane *lane, int16_t version, bool is_bad)
{
    struct batch_spec spec = spec_for(p, lane, version);
    struct item *item = xcalloc(1, sizeof(*item));
    int count = 1 + (int)choose(p, BATCH_RECORDS_MAX);
    struct sent_batch *b;

    item->lane = lane;
    item->version = version;
    list_init(&item->link);
    if (is_bad)
        spoil(p, item, &spec);
    item->number =
        history_make_batch(p->run, lane->topic, lane->partition, &spec, count, &item->bytes);
    b = &p->run->history.batches[item->number];
    b->stream = lane->stream;
    if (is_bad) {
        if (spec.base_sequence < GAP)
            item->bytes.p[item->bytes.n - 1] ^= 0x40;
        return item;
    }
    b->order = lane->order++;
    b->is_gapless = p->is_idempotent;
    lane->sequence += count;
    lane->item_count++;
    list_push_back(&lane->items, &item->link);
    return item;
}

/* All items are of one topic. */
static void send_items(struct producer *p, struct item **items, int count, int16_t version)
{
    struct topic *t = items[0]->lane->topic;
    struct produce_call *pc = xcalloc(1, sizeof(*pc));
    struct produce_request_partition parts[PARTS_MAX];
    struct produce_request_topic topic;
    struct produce_request request;

    wire_init(&produce_request_schema, &request);
    wire_init(&produce_request_topic_schema, &topic);
    topic.name = str_of(t->name);
    topic.topic_id = t->id;
    topic.partitions.v = parts;
    topic.partitions.n = pc->count = count;
    for (int i = 0; i < count; i++) {
        wire_init(&produce_request_partition_schema, &parts[i]);
        parts[i].index = items[i]->lane->partition;
        parts[i].records.b = buf_bytes(&items[i]->bytes, 0);
        pc->items[i] = items[i];
        items[i]->lane->in_flight++;
        items[i]->tries++;
    }
    request.acks = p->acks;
    request.timeout_ms = TIMEOUT_MS;
    request.topics.v = &topic;
    request.topics.n = 1;
    pc->producer = p;
    pc->call.done = produced;
    pc->call.has_no_answer = p->acks == 0;
    peer_send(&p->peer, &pc->call, API_PRODUCE, version, &request, 0);
    if (p->acks != 0)
        return;
    p->unanswered_ns = run_now(p->run);
    produced(&pc->call, ERR_UNKNOWN, NULL);
}

static int16_t choose_version(struct producer *p)
{
    static const int16_t versions[] = {3, 7, 8, 9, 12, 13};

    return versions[choose(p, 6)];
}

static void send_new(struct producer *p)
{
    struct topic *t = history_pick_topic(p->run);
    int16_t version = choose_version(p);
    struct item *items[PARTS_MAX];
    int32_t first;
    int wanted;
    int n = 0;

    if (!t)
        return;
    wanted = 1 + (int)choose(p, (uint32_t)t->partitions);
    first = (int32_t)choose(p, (uint32_t)t->partitions);
    for (int i = 0; i < wanted; i++) {
        struct lane *lane = find_lane(p, t, (first + i) % t->partitions);

        if (!lane->resends && lane->item_count < p->depth)
            items[n++] = make_item(p, lane, version, once_in(p, 40));
    }
    if (n > 0)
        send_items(p, items, n, version);
}

/* Mostly one request, now and then several that arrive together. */
static void send_some(struct producer *p)
{
    do
        send_new(p);
    while (p->peer.call_count < p->depth && choose(p, 4) == 3);
}

/* One request for each batch, in order. */
static void send_again(struct producer *p, struct lane *lane)
{
    LIST_EACH (node, &lane->items) {
        struct item *item = LIST_ENTRY(node, struct item, link);

        send_items(p, &item, 1, item->version);
    }
}

static void repair_lanes(struct producer *p)
{
    LIST_EACH_SAFE (node, &p->lanes) {
        struct lane *lane = LIST_ENTRY(node, struct lane, link);

        if (lane->in_flight > 0)
            continue;
        if (lane->topic->state != TOPIC_THERE || !p->is_idempotent) {
            if (lane->resends || lane->topic->state != TOPIC_THERE)
                lane_free(p, lane);
        } else if (lane->resends && lane->item_count == 0) {
            lane->resends = false;
        } else if (lane->resends && p->peer.call_count < p->depth) {
            send_again(p, lane);
            lane->resends = false;
        }
    }
}

/* ---- identity --------------------------------------------------------------------------- */

static void id_known(struct call *call, enum err err, void *response)
{
    struct producer *p = CONTAINER_OF(call, struct producer, id_call);
    const struct init_producer_id_response *r = response;

    p->asks_id = false;
    if (!err && r->error_code == 0)
        p->id = r->producer_id;
}

static void ask_id(struct producer *p)
{
    p->id_call.done = id_known;
    p->asks_id = true;
    peer_ask_id(&p->peer, &p->id_call);
}

/* ---- life ------------------------------------------------------------------------------- */

static bool is_producing(struct producer *p)
{
    if (p->peer.state != PEER_OPEN)
        return false;
    if (p->resets && p->peer.call_count == 0) {
        drop_lanes(p);
        p->id = -1;
        p->resets = false;
    }
    if (p->is_idempotent && p->id < 0 && !p->asks_id)
        ask_id(p);
    return !p->resets && !(p->is_idempotent && p->id < 0);
}

/* The dull choice is the longest pause. */
static int64_t choose_pause(const struct producer *p)
{
    const struct run *run = p->run;

    if (!run->is_sparse)
        return (int64_t)(PAUSE_MS_MAX - 1 - choose(p, PAUSE_MS_MAX)) * MS;
    /* All are silent at the same time. Three bursts in four are volleys: nothing follows them. */
    if (run_now(run) / PERIOD_NS % 4 == 0 && run_now(run) % PERIOD_NS < BURST_NS)
        return (int64_t)(9 - choose(p, 10)) * MS;
    return PERIOD_NS - run_now(run) % PERIOD_NS;
}

void producer_tick(struct producer *p)
{
    int64_t now = run_now(p->run);

    if (!is_producing(p) || now < p->next_ns)
        return;
    p->next_ns = now + choose_pause(p);
    repair_lanes(p);
    if (p->run->no_producing || p->peer.call_count >= p->depth)
        return;
    if (once_in(p, 400))
        p->resets = true;
    else if (choose(p, 16) != 0) /* silence is dull */
        send_some(p);
}

static void opened(struct peer *peer)
{
    (void)peer;
}

static void closed(struct peer *peer)
{
    struct producer *p = CONTAINER_OF(peer, struct producer, peer);

    /* Without sequences the order of what comes behind is another one. */
    if (!p->is_idempotent)
        drop_lanes(p);
}

struct producer *producer_new(struct run *run, int index)
{
    struct producer *p = xcalloc(1, sizeof(*p));

    p->run = run;
    p->is_idempotent = index % 2 == 0;
    p->acks = p->is_idempotent ? -1 : (int16_t)(1 - (int)choose(p, 3));
    p->depth = 1 + (int)choose(p, DEPTH_MAX);
    p->id = -1;
    list_init(&p->lanes);
    peer_init(&p->peer, run, opened, closed);
    peer_start(&p->peer);
    return p;
}

bool producer_is_idle(const struct producer *p)
{
    if (p->peer.state != PEER_OPEN || p->peer.call_count > 0)
        return false;
    if (p->unanswered_ns > 0 && run_now(p->run) < p->unanswered_ns + UNANSWERED_NS)
        return false;
    LIST_EACH (node, &p->lanes)
        if (LIST_ENTRY(node, struct lane, link)->item_count > 0)
            return false;
    return true;
}

void producer_free(struct producer *p)
{
    peer_cancel(&p->peer);
    drop_lanes(p);
    peer_fini(&p->peer);
    free(p);
}
