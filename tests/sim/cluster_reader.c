/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of a cluster: reads one partition from its first offset on, then chooses another one.
 * It asks whichever broker answers. What it has seen may not disappear (history.h), it lies below
 * the high watermark it is told, and no offset that it has reached is ever out of range: whoever
 * is elected has everything that was committed.
 *
 * In a run with racks it stands in one of them, another one for each partition, and goes where it
 * is sent to; by chance it comes to followers, too, which nobody has sent it to.
 *
 * The end of a log that it is told does not go back: of two answers the one that was asked for
 * later, and in no older epoch, is no smaller (KIP-207).
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cluster.h"

#define BACKOFF_NS (15 * MS)
#define WAIT_MS 40
#define MOVE_ONCE_IN 40 /* answers */
#define END_ONCE_IN 8

struct cluster_reader {
    struct peer peer;
    struct run *run;
    bool is_verifier;
    bool is_done;
    int at;              /* of all partitions of all topics, in their order */
    struct topic *topic; /* NULL: to be chosen */
    int32_t partition;
    int64_t next;
    int64_t target;    /* of a verifier; -1: to be asked for */
    int64_t known_end; /* when it asked */
    bool is_near;      /* it was sent where it is */
    struct order order;
    struct call call;
    bool is_asking;
    bool goes_on;
    int64_t next_ns;
};

static uint32_t choose(const struct cluster_reader *r, uint32_t n)
{
    return run_choose_by(r->run, BY_CONSUMERS, n);
}

static void begin(struct cluster_reader *r, struct topic *t, int32_t partition)
{
    r->topic = t;
    r->partition = partition;
    r->next = 0;
    r->is_near = false;
    r->target = -1;
    order_reset(&r->order, true);
}

/* The next partition of those that are there; NULL behind the last one. */
static void step(struct cluster_reader *r)
{
    struct history *h = &r->run->history;
    int n = 0;

    r->topic = NULL;
    for (int i = 0; i < h->topic_count; i++)
        for (int32_t k = 0; k < h->topics[i].partitions; k++)
            if (h->topics[i].state == TOPIC_THERE && n++ == r->at) {
                begin(r, &h->topics[i], k);
                r->at++;
                return;
            }
    r->is_done = r->is_verifier;
}

static void choose_place(struct cluster_reader *r)
{
    struct topic *t;

    if (r->is_verifier) {
        step(r);
        return;
    }
    t = history_pick_topic(r->run);
    r->topic = NULL;
    if (t)
        begin(r, t, (int32_t)choose(r, (uint32_t)t->partitions));
}

/* False when the answer says nothing about the partition. */
static bool take_error(struct cluster_reader *r, enum err err)
{
    if (err == ERR_NONE)
        return r->topic->state == TOPIC_THERE;
    r->goes_on = true;
    if (r->topic->state != TOPIC_THERE)
        return false;
    if (err == ERR_OFFSET_OUT_OF_RANGE)
        violate(r->run, "%s-%d: offset %lld is out of range, and all below it was read",
                r->topic->name, r->partition, (long long)r->next);
    else if (!is_of_leadership(err))
        violate(r->run, "%s-%d: reading failed with %s", r->topic->name, r->partition,
                err_name(err));
    return false;
}

/* ---- the end of a log --------------------------------------------------------------------- */

static void take_end(struct cluster_reader *r, const struct list_offsets_response_partition *p)
{
    struct run *run = r->run;
    struct told_end *told =
        &run->cluster->ends[history_topic_index(&run->history, r->topic)][r->partition];

    /* All is well, and what comes behind the question (acks=1) is another matter. */
    if (r->is_verifier && p->offset < r->known_end)
        violate(run, "%s-%d ends at %lld, but offset %lld was known to be there", r->topic->name,
                r->partition, (long long)p->offset, (long long)r->known_end - 1);
    if (told->told_ns < r->call.sent_ns && p->leader_epoch >= told->epoch && p->offset < told->end)
        violate(run, "%s-%d: the end went back from %lld in epoch %d to %lld in epoch %d",
                r->topic->name, r->partition, (long long)told->end, told->epoch,
                (long long)p->offset, p->leader_epoch);
    if (p->leader_epoch > told->epoch)
        run->counts.led++;
    if (p->leader_epoch >= told->epoch && p->offset >= told->end)
        *told =
            (struct told_end){.end = p->offset, .epoch = p->leader_epoch, .told_ns = run_now(run)};
    r->target = p->offset;
}

static void listed(struct call *call, enum err err, void *response)
{
    struct cluster_reader *r = CONTAINER_OF(call, struct cluster_reader, call);
    const struct list_offsets_response *in = response;

    r->is_asking = false;
    if (err) {
        r->goes_on = true;
    } else if (in->topics.n != 1 || in->topics.v[0].partitions.n != 1) {
        violate(r->run, "a list offsets response without its partition");
    } else if (take_error(r, (enum err)in->topics.v[0].partitions.v[0].error_code)) {
        take_end(r, &in->topics.v[0].partitions.v[0]);
    }
}

static void ask_end(struct cluster_reader *r)
{
    r->is_asking = true;
    r->known_end = r->topic->parts[r->partition].end;
    r->call.done = listed;
    peer_ask_offset(&r->peer, &r->call, 7, r->topic->name, r->partition, -1, 0);
}

/* ---- records ------------------------------------------------------------------------------ */

/* The broker that has its rack. */
static int32_t near_one(const struct cluster_reader *r)
{
    return 1 + r->partition % NODES;
}

static void go_near(struct cluster_reader *r, const struct fetch_response_partition *p)
{
    if (!r->run->plan.has_racks || r->is_near || p->preferred_read_replica != near_one(r) ||
        p->records.b.n > 0)
        violate(r->run, "%s-%d: a reader near broker %d is sent to broker %d with %d bytes",
                r->topic->name, r->partition, near_one(r), p->preferred_read_replica,
                p->records.b.n);
    r->run->counts.sent_near++;
    r->is_near = true;
    peer_go_to(&r->peer, near_one(r));
}

static void take_records(struct cluster_reader *r, const struct fetch_response_partition *p)
{
    int64_t before = r->next;

    r->run->counts.read_near += r->is_near && p->records.b.n > 0;

    r->next = history_read(r->run, r->topic, r->partition, before, p->records.b, &r->order);
    if (r->next > before && r->next > p->high_watermark)
        violate(r->run, "%s-%d: read up to %lld, and the high watermark is %lld", r->topic->name,
                r->partition, (long long)r->next, (long long)p->high_watermark);
    if (r->is_verifier && r->target >= 0 && r->next >= r->target) {
        r->topic = NULL;
    } else if (!r->is_verifier && choose(r, MOVE_ONCE_IN) == MOVE_ONCE_IN - 1) {
        r->topic = NULL;
    }
}

static void fetched(struct call *call, enum err err, void *response)
{
    struct cluster_reader *r = CONTAINER_OF(call, struct cluster_reader, call);
    const struct fetch_response *in = response;

    r->is_asking = false;
    if (err || in->error_code != 0)
        r->goes_on = true;
    else if (in->responses.n != 1 || in->responses.v[0].partitions.n != 1)
        violate(r->run, "a fetch response without its partition");
    else if (!take_error(r, (enum err)in->responses.v[0].partitions.v[0].error_code))
        return;
    else if (in->responses.v[0].partitions.v[0].preferred_read_replica >= 0)
        go_near(r, &in->responses.v[0].partitions.v[0]);
    else
        take_records(r, &in->responses.v[0].partitions.v[0]);
}

static void fetch(struct cluster_reader *r)
{
    struct fetch_request request;
    struct fetch_request_topic topic;
    struct fetch_request_partition partition;
    char rack[] = {(char)('0' + near_one(r)), '\0'};

    wire_init(&fetch_request_schema, &request);
    wire_init(&fetch_request_topic_schema, &topic);
    wire_init(&fetch_request_partition_schema, &partition);
    partition.partition = r->partition;
    partition.fetch_offset = r->next;
    partition.partition_max_bytes = 1 + (int32_t)choose(r, 30000);
    topic.topic = str_of(r->topic->name);
    topic.topic_id = r->topic->id;
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    request.max_wait_ms = WAIT_MS;
    request.min_bytes = 1;
    request.max_bytes = 1 << 20;
    request.topics.v = &topic;
    request.topics.n = 1;
    if (r->run->plan.has_racks)
        request.rack_id = str_of(rack);
    r->is_asking = true;
    r->call.done = fetched;
    peer_send(&r->peer, &r->call, API_FETCH, choose(r, 2) == 0 || r->topic->is_namesake ? 13 : 12,
              &request, WAIT_MS * MS);
}

/* ---- life --------------------------------------------------------------------------------- */

/* There is no asking for ends by topic ids. */
static bool wants_end(const struct cluster_reader *r)
{
    if (r->is_verifier)
        return r->target < 0;
    return !r->topic->is_namesake && choose(r, END_ONCE_IN) == END_ONCE_IN - 1;
}

void cluster_reader_tick(struct cluster_reader *r)
{
    int64_t now = run_now(r->run);

    if (r->peer.state != PEER_OPEN || r->is_asking || r->is_done || now < r->next_ns)
        return;
    if (r->topic && r->topic->state != TOPIC_THERE)
        r->topic = NULL;
    if (r->goes_on) {
        r->goes_on = r->is_near = false;
        r->next_ns = now + BACKOFF_NS;
        peer_go_on(&r->peer);
        return;
    }
    if (!r->topic)
        choose_place(r);
    if (!r->topic)
        return;
    if (wants_end(r))
        ask_end(r);
    else
        fetch(r);
}

static void nothing(struct peer *peer)
{
    (void)peer;
}

static void unreachable(struct peer *peer)
{
    CONTAINER_OF(peer, struct cluster_reader, peer)->is_near = false;
    peer_go_on(peer);
}

struct cluster_reader *cluster_reader_new(struct run *run, bool is_verifier)
{
    struct cluster_reader *r = xcalloc(1, sizeof(*r));

    r->run = run;
    r->is_verifier = is_verifier;
    peer_init(&r->peer, run, nothing, nothing);
    r->peer.host = run->cluster->nodes[0].host;
    r->peer.unreachable = unreachable;
    peer_start(&r->peer);
    return r;
}

void cluster_reader_verify(struct cluster_reader *r)
{
    r->at = 0;
    r->is_done = false;
    r->topic = NULL;
}

bool cluster_reader_is_done(const struct cluster_reader *r)
{
    return r->is_done;
}

void cluster_reader_complain(const struct cluster_reader *r)
{
    if (!r->is_done && r->topic)
        violate(r->run,
                "%s-%d: a reader does not get beyond offset %lld of %lld, and nothing is "
                "wrong",
                r->topic->name, r->partition, (long long)r->next, (long long)r->target);
}

void cluster_reader_free(struct cluster_reader *r)
{
    peer_cancel(&r->peer);
    order_fini(&r->order);
    peer_fini(&r->peer);
    free(r);
}
