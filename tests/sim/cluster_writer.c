/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer that writes to one partition at a time, several batches in flight. Idempotent, it
 * sends what failed again, in order and to whichever broker leads, until it is acknowledged;
 * otherwise it sends once. With acks=all what was acknowledged is there for ever; with acks=1
 * nothing is promised across a change of leaders, so such answers are not held against anybody.
 *
 * The first unanswered batch of an idempotent producer is never out of sequence: everything before
 * it was acknowledged by all, so every leader has it.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster.h"

#define DEPTH_MAX 5
#define PAUSE_NS_MAX (25 * MS)
#define PAUSES 25
#define BACKOFF_NS (15 * MS)
#define TIMEOUT_MS 1500
#define MOVE_ONCE_IN 150 /* batches */

struct writer_item {
    struct list link; /* writer->items */
    int32_t number;
    struct buf bytes;
    int tries;
};

struct writer {
    struct peer peer;
    struct run *run;
    bool is_idempotent;
    int16_t acks;
    int depth;
    int64_t pause_ns;    /* between requests, at most */
    struct topic *topic; /* NULL: to be chosen */
    int32_t partition;
    int64_t id; /* -1: to be asked for */
    int32_t stream;
    int32_t sequence;
    int32_t order;
    struct list items; /* unanswered, in order */
    int item_count;
    bool resends; /* something failed: all of it again, once nothing is in flight */
    bool goes_on; /* to the next broker, likewise */
    bool moves;   /* to another partition, once everything is answered */
    int64_t next_ns;
    struct call id_call;
    bool asks_id;
};

struct write_call {
    struct call call;
    struct writer *writer;
    struct writer_item *item;
};

static uint32_t choose(const struct writer *w, uint32_t n)
{
    return run_choose_by(w->run, BY_PRODUCERS, n);
}

static void item_free(struct writer *w, struct writer_item *item)
{
    list_remove(&item->link);
    w->item_count--;
    buf_fini(&item->bytes);
    free(item);
}

static void give_up(struct writer *w, struct writer_item *item)
{
    history_unknown(w->run, item->number);
    item_free(w, item);
}

static void drop_items(struct writer *w)
{
    LIST_EACH_SAFE (node, &w->items)
        give_up(w, LIST_ENTRY(node, struct writer_item, link));
}

/* ---- answers ---------------------------------------------------------------------------- */

static void refused(struct writer *w, struct writer_item *item, enum err err)
{
    bool is_sequence = err == ERR_OUT_OF_ORDER_SEQUENCE_NUMBER ||
                       err == ERR_DUPLICATE_SEQUENCE_NUMBER || err == ERR_UNKNOWN_PRODUCER_ID;
    bool is_there = w->topic->state == TOPIC_THERE;

    if (is_there && is_sequence && w->is_idempotent && w->items.next == &item->link)
        violate(w->run, "%s-%d: batch %d is the next one of its producer and was refused: %s",
                w->topic->name, w->partition, item->number, err_name(err));
    if (is_there && !is_sequence && !is_of_leadership(err))
        violate(w->run, "%s-%d: a good batch was refused: %s", w->topic->name, w->partition,
                err_name(err));
    w->goes_on |= err != ERR_NOT_ENOUGH_REPLICAS && err != ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND &&
                  !is_sequence;
    w->resends = true;
    if (w->is_idempotent)
        return;
    if (err == ERR_NOT_ENOUGH_REPLICAS) {
        history_refused(w->run, item->number);
        item_free(w, item);
    } else {
        give_up(w, item);
    }
}

/* Whoever asks one broker after the other is told so also when nothing is wrong. */
static bool is_of_another(enum err err)
{
    return err == ERR_NOT_LEADER_OR_FOLLOWER || err == ERR_UNKNOWN_TOPIC_OR_PARTITION ||
           err == ERR_UNKNOWN_TOPIC_ID;
}

static void answered(struct write_call *wc, const struct produce_response_partition *r)
{
    struct writer *w = wc->writer;
    struct writer_item *item = wc->item;
    enum err err = (enum err)r->error_code;

    tell(w->run, "producer %lld, %s-%d batch %d, %s: %s at %lld", (long long)w->id, w->topic->name,
         w->partition, item->number, item->tries > 1 ? "again" : "first", err_name(err),
         (long long)r->base_offset);
    if (err && !is_of_another(err) && wc->call.sent_ns >= w->run->calm_since_ns &&
        w->topic->state == TOPIC_THERE)
        violate(w->run, "%s-%d: produce failed with %s, and nothing is wrong", w->topic->name,
                w->partition, err_name(err));
    if (err) {
        refused(w, item, err);
    } else if (w->acks != -1) {
        give_up(w, item);
    } else {
        w->run->counts.duplicates += item->tries > 1;
        history_acked(w->run, item->number, r->base_offset);
        item_free(w, item);
    }
}

static void produced(struct call *call, enum err err, void *response)
{
    struct write_call *wc = CONTAINER_OF(call, struct write_call, call);
    struct writer *w = wc->writer;
    const struct produce_response *r = response;

    if (!err && (r->responses.n != 1 || r->responses.v[0].partitions.n != 1)) {
        violate(w->run, "a produce response without its partition");
        err = ERR_MALFORMED;
    }
    if (!err) {
        answered(wc, &r->responses.v[0].partitions.v[0]);
    } else {
        w->resends = w->goes_on = true;
        if (!w->is_idempotent)
            give_up(w, wc->item);
    }
    free(wc);
}

/* ---- sending ---------------------------------------------------------------------------- */

static void send_item(struct writer *w, struct writer_item *item)
{
    int16_t version = choose(w, 2) == 0 || w->topic->is_namesake ? 13 : 9;
    struct write_call *wc = xcalloc(1, sizeof(*wc));
    struct produce_request_partition partition;
    struct produce_request_topic topic;
    struct produce_request request;

    wire_init(&produce_request_schema, &request);
    wire_init(&produce_request_topic_schema, &topic);
    wire_init(&produce_request_partition_schema, &partition);
    partition.index = w->partition;
    partition.records.b = buf_bytes(&item->bytes, 0);
    topic.name = str_of(w->topic->name);
    topic.topic_id = w->topic->id;
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    request.acks = w->acks;
    /* As long as clients say it: a broker that stops must not wait for it. */
    request.timeout_ms = 20 * TIMEOUT_MS;
    request.topics.v = &topic;
    request.topics.n = 1;
    item->tries++;
    wc->writer = w;
    wc->item = item;
    wc->call.done = produced;
    peer_send(&w->peer, &wc->call, API_PRODUCE, version, &request, TIMEOUT_MS * MS);
}

static void send_new(struct writer *w)
{
    struct writer_item *item = xcalloc(1, sizeof(*item));
    int count = 1 + (int)choose(w, BATCH_RECORDS_MAX);
    struct batch_spec spec = batch_spec_default();
    struct sent_batch *b;

    if (w->is_idempotent) {
        spec.producer_id = w->id;
        spec.producer_epoch = 0;
        spec.base_sequence = w->sequence;
    }
    item->number = history_make_batch(w->run, w->topic, w->partition, &spec, count, &item->bytes);
    b = &w->run->history.batches[item->number];
    b->stream = w->stream;
    b->order = w->order++;
    b->is_gapless = w->is_idempotent;
    w->sequence += count;
    w->item_count++;
    list_push_back(&w->items, &item->link);
    send_item(w, item);
}

static void send_again(struct writer *w)
{
    LIST_EACH (node, &w->items)
        send_item(w, LIST_ENTRY(node, struct writer_item, link));
    w->resends = false;
}

/* ---- identity and place ------------------------------------------------------------------- */

/* Nobody is given the id of another one, whichever broker gives it. */
static void note_id(struct run *run, int64_t id)
{
    struct cluster_world *c = run->cluster;

    for (int i = 0; i < c->id_count; i++)
        if (c->ids[i] == id)
            violate(run, "producer id %lld was given twice", (long long)id);
    c->ids = xreallocarray(c->ids, (size_t)c->id_count + 1, sizeof(*c->ids));
    c->ids[c->id_count++] = id;
}

static void id_known(struct call *call, enum err err, void *response)
{
    struct writer *w = CONTAINER_OF(call, struct writer, id_call);
    const struct init_producer_id_response *r = response;

    w->asks_id = false;
    if (!err && r->error_code == 0) {
        w->id = r->producer_id;
        note_id(w->run, w->id);
    } else {
        w->goes_on = true;
    }
}

static void ask_id(struct writer *w)
{
    w->id_call.done = id_known;
    w->asks_id = true;
    peer_ask_id(&w->peer, &w->id_call);
}

/* With a new id, so that sequences begin at 0. */
static void choose_place(struct writer *w)
{
    w->topic = history_pick_topic(w->run);
    if (!w->topic)
        return;
    w->partition = (int32_t)choose(w, (uint32_t)w->topic->partitions);
    w->stream = w->run->history.stream_next++;
    w->sequence = w->order = 0;
    w->id = -1;
    w->moves = w->resends = false;
}

/* ---- life ------------------------------------------------------------------------------- */

/* Nothing is in flight: what has to be done before more is sent. True when more can be. */
static bool settle(struct writer *w)
{
    if (w->topic && w->topic->state != TOPIC_THERE) {
        drop_items(w);
        w->topic = NULL;
    }
    if (w->goes_on) {
        w->goes_on = false;
        w->next_ns = run_now(w->run) + BACKOFF_NS;
        peer_go_on(&w->peer);
        return false;
    }
    if (!w->topic || (w->moves && w->item_count == 0))
        choose_place(w);
    if (!w->topic)
        return false;
    if (w->is_idempotent && w->id < 0) {
        ask_id(w);
        return false;
    }
    if (w->resends)
        send_again(w);
    return true;
}

/* From the oldest one without an answer on: no client goes further ahead of that (KIP-98). */
static int32_t batches_ahead(const struct writer *w)
{
    const struct writer_item *first = LIST_FIRST(&w->items, struct writer_item, link);

    return first ? w->order - w->run->history.batches[first->number].order : 0;
}

void writer_tick(struct writer *w)
{
    int64_t now = run_now(w->run);

    if (w->peer.state != PEER_OPEN || now < w->next_ns || w->asks_id)
        return;
    w->next_ns = now + (int64_t)(PAUSES - choose(w, PAUSES)) * w->pause_ns / PAUSES;
    if (w->peer.call_count == 0 && !settle(w))
        return;
    if (w->resends || w->goes_on || w->moves || !w->topic || w->topic->state != TOPIC_THERE ||
        w->run->no_producing || batches_ahead(w) >= w->depth)
        return;
    if (choose(w, MOVE_ONCE_IN) == MOVE_ONCE_IN - 1)
        w->moves = true;
    else if (choose(w, 8) != 0) /* silence is dull */
        send_new(w);
}

static void nothing(struct peer *peer)
{
    (void)peer;
}

struct writer *writer_new(struct run *run, int index)
{
    struct writer *w = xcalloc(1, sizeof(*w));

    w->run = run;
    w->is_idempotent = index % 2 == 0;
    w->acks = w->is_idempotent || choose(w, 2) == 0 ? -1 : 1;
    w->depth = 1 + (int)choose(w, DEPTH_MAX);
    w->pause_ns = choose(w, 2) == 0 ? PAUSE_NS_MAX : PAUSE_NS_MAX / 5;
    w->id = -1;
    list_init(&w->items);
    peer_init(&w->peer, run, nothing, nothing);
    w->peer.host = run->cluster->nodes[index % NODES].host;
    w->peer.unreachable = peer_go_on;
    peer_start(&w->peer);
    return w;
}

bool writer_is_idle(const struct writer *w)
{
    return w->peer.call_count == 0 && w->item_count == 0;
}

void writer_free(struct writer *w)
{
    peer_cancel(&w->peer);
    drop_items(w);
    peer_fini(&w->peer);
    free(w);
}
