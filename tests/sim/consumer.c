/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer: reads every partition that is there from its first offset on, with or without a
 * fetch session, by names or by ids, in small bites or large ones; now and then it jumps back. It
 * expects what any reader expects: what comes follows what came before, the high watermark does
 * not go back, and once something was acknowledged a waiting fetch is woken by it.
 *
 *   WANTS_START -> (WANTS_END ->) READING -> WANTS_START when it is out of range or told to
 *
 * Before the end of a run every consumer reads everything once more (WANTS_END finds out how much
 * that is), the verifier among them with nothing but plain fetches.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "clients.h"

#define WAKE_NS (120 * MS)
#define STUCK_NS (8 * SECOND)
#define POSITIONS_MAX 64
#define ROOM_MIN_BYTES 3000
#define ASKED_MS_MAX 3000

enum position_state {
    WANTS_START = 0,
    WANTS_END = 1,
    READING = 2,
};

struct position {
    struct list link;
    struct topic *topic;
    int32_t partition;
    enum position_state state;
    int64_t next;
    int64_t refused_at; /* offset that was out of range; -1 */
    int64_t refused_ns; /* when */
    int64_t target;     /* it has to read up to here; -1: for ever */
    int64_t log_start;
    int64_t high_watermark; /* the last one told; -1 */
    int64_t in_session;     /* offset that the session has; -1: not in it */
    int64_t behind_ns;      /* since when something acknowledged waits to be read; 0: nothing */
    int64_t behind_fetches; /* the consumer's, by then */
    bool leaves;            /* out of the session with the next request */
    struct order order;
};

struct consumer {
    struct peer peer;
    struct run *run;
    bool is_verifier;
    bool verifies; /* to the targets, and no further */
    struct list positions;
    int16_t version;
    bool uses_session;
    bool is_eager; /* the next fetch follows the answer at once */
    int32_t session_id;
    int32_t session_epoch;
    /* one fetch at a time */
    struct call fetch_call;
    bool fetches;
    int64_t fetch_count;
    int32_t min_bytes;
    int32_t wait_ms;
    bool has_room; /* no limit keeps it from min_bytes */
    struct call list_call;
    bool lists;
    bool lists_start; /* else the end */
    struct position *listed;
    struct time_question asked;
    int64_t next_ns;
};

static uint32_t choose(const struct consumer *c, uint32_t n)
{
    return run_choose_by(c->run, BY_CONSUMERS, n);
}

static bool once_in(const struct consumer *c, uint32_t n)
{
    return choose(c, n) == n - 1;
}

/* ---- positions -------------------------------------------------------------------------- */

static struct position *find_position(struct consumer *c, const struct topic *t, int32_t partition)
{
    LIST_EACH (node, &c->positions) {
        struct position *pos = LIST_ENTRY(node, struct position, link);

        if (pos->topic == t && pos->partition == partition)
            return pos;
    }
    return NULL;
}

static void add_position(struct consumer *c, struct topic *t, int32_t partition)
{
    struct position *pos = xcalloc(1, sizeof(*pos));

    pos->topic = t;
    pos->partition = partition;
    pos->refused_at = pos->target = pos->in_session = pos->high_watermark = -1;
    list_push_back(&c->positions, &pos->link);
}

static void position_free(struct position *pos)
{
    list_remove(&pos->link);
    order_fini(&pos->order);
    free(pos);
}

static void forget_session(struct consumer *c)
{
    c->session_epoch = 0;
    LIST_EACH (node, &c->positions) {
        struct position *pos = LIST_ENTRY(node, struct position, link);

        pos->in_session = -1;
        pos->leaves = false;
    }
}

/* What is there and what is gone; a fetch under way may still be answered for what is gone. */
static void subscribe(struct consumer *c)
{
    struct history *h = &c->run->history;

    LIST_EACH_SAFE (node, &c->positions) {
        struct position *pos = LIST_ENTRY(node, struct position, link);

        if (pos->topic->state == TOPIC_THERE || pos == c->listed || c->fetches)
            continue;
        if (pos->in_session >= 0)
            forget_session(c);
        position_free(pos);
    }
    for (int i = 0; i < h->topic_count; i++)
        for (int32_t k = 0; h->topics[i].state == TOPIC_THERE && k < h->topics[i].partitions; k++)
            if (!find_position(c, &h->topics[i], k))
                add_position(c, &h->topics[i], k);
}

/* Answers to older requests speak of a page cache that is gone. */
static bool is_worthless(const struct consumer *c, const struct call *call, const struct topic *t)
{
    return t->state != TOPIC_THERE || (!t->is_durable && call->sent_ns <= c->run->power_cut_ns);
}

/* ---- ends of logs ----------------------------------------------------------------------- */

static void start_known(struct consumer *c, struct position *pos, int64_t offset)
{
    int64_t was = pos->refused_at;
    const struct part *p = &pos->topic->parts[pos->partition];

    if (offset < p->deleted_to && c->list_call.sent_ns > p->deleted_ns)
        violate(c->run, "%s-%d begins at %lld, and the records below %lld were deleted",
                pos->topic->name, pos->partition, (long long)offset, (long long)p->deleted_to);
    /* What was about to be deleted may be back: nobody was promised that it is gone. */
    if (was >= offset && was <= p->end && pos->topic->is_durable &&
        pos->refused_ns > c->run->unclean_ns)
        violate(c->run, "%s-%d: offset %lld is out of range, and the log begins at %lld",
                pos->topic->name, pos->partition, (long long)was, (long long)offset);
    pos->refused_at = -1;
    pos->next = pos->log_start = offset;
    order_reset(&pos->order, offset == 0);
    history_bounds(c->run, pos->topic, pos->partition, offset, offset);
    pos->state = c->verifies ? WANTS_END : READING;
}

static void end_known(struct consumer *c, struct position *pos, int64_t offset)
{
    pos->target = offset;
    pos->state = READING;
    history_bounds(c->run, pos->topic, pos->partition, pos->log_start, offset);
}

static void listed(struct call *call, enum err err, void *response)
{
    struct consumer *c = CONTAINER_OF(call, struct consumer, list_call);
    const struct list_offsets_response *r = response;
    struct position *pos = c->listed;

    c->lists = false;
    c->listed = NULL;
    if (err || is_worthless(c, call, pos->topic))
        return;
    if (r->topics.n != 1 || r->topics.v[0].partitions.n != 1) {
        violate(c->run, "a list offsets response without its partition");
        return;
    }
    err = (enum err)r->topics.v[0].partitions.v[0].error_code;
    if (err && call->sent_ns >= c->run->calm_since_ns)
        violate(c->run, "%s-%d: list offsets failed with %s, and nothing is wrong",
                pos->topic->name, pos->partition, err_name(err));
    if (err)
        return;
    if (pos->state == WANTS_START && c->lists_start)
        start_known(c, pos, r->topics.v[0].partitions.v[0].offset);
    else if (pos->state == WANTS_END && !c->lists_start)
        end_known(c, pos, r->topics.v[0].partitions.v[0].offset);
}

static void time_listed(struct call *call, enum err err, void *response)
{
    struct consumer *c = CONTAINER_OF(call, struct consumer, list_call);
    const struct list_offsets_response *r = response;
    struct position *pos = c->listed;

    c->lists = false;
    c->listed = NULL;
    if (err || is_worthless(c, call, pos->topic) || r->topics.n != 1 ||
        r->topics.v[0].partitions.n != 1 || r->topics.v[0].partitions.v[0].error_code != 0)
        return;
    c->asked.offset = r->topics.v[0].partitions.v[0].offset;
    c->asked.found_ms = r->topics.v[0].partitions.v[0].timestamp;
    history_time(c->run, pos->topic, pos->partition, &c->asked);
}

static void list_at(struct consumer *c, struct position *pos, int64_t timestamp,
                    void (*done)(struct call *call, enum err err, void *response))
{
    c->listed = pos;
    c->lists = true;
    c->list_call.done = done;
    /* Behind a parked fetch it has to wait for that one's turn. */
    peer_ask_offset(&c->peer, &c->list_call, (int16_t)(1 + choose(c, 8)), pos->topic->name,
                    pos->partition, timestamp, c->fetches ? (int64_t)c->wait_ms * MS : 0);
}

static void list_one(struct consumer *c, struct position *pos)
{
    c->lists_start = pos->state == WANTS_START;
    list_at(c, pos, c->lists_start ? -2 : -1, listed);
}

/* Of one that is read, and whose offsets are what they were. */
static void ask_for_time(struct consumer *c)
{
    struct position *pos;

    if (list_is_empty(&c->positions) || !once_in(c, 20))
        return;
    pos = LIST_ENTRY(c->positions.next, struct position, link);
    if (pos->state != READING || pos->topic->state != TOPIC_THERE || !pos->topic->is_durable)
        return;
    c->asked = (struct time_question){
        .ms = io_wall_ms(c->run->client_io) - (int64_t)choose(c, ASKED_MS_MAX),
        .acked_end = pos->topic->parts[pos->partition].acked_end,
    };
    list_at(c, pos, c->asked.ms, time_listed);
}

static void list_next(struct consumer *c)
{
    LIST_EACH (node, &c->positions) {
        struct position *pos = LIST_ENTRY(node, struct position, link);

        if (pos->state != READING && pos->topic->state == TOPIC_THERE) {
            list_one(c, pos);
            return;
        }
    }
}

/* ---- fetch responses -------------------------------------------------------------------- */

static struct topic *find_topic(struct consumer *c, const struct fetch_response_topic *r)
{
    LIST_EACH (node, &c->positions) {
        struct topic *t = LIST_ENTRY(node, struct position, link)->topic;

        if (c->version >= 13 ? uuid_eq(t->id, r->topic_id) : str_eq_c(r->topic, t->name))
            return t;
    }
    return NULL;
}

static void fetch_failed(struct consumer *c, struct position *pos, enum err err)
{
    if (err == ERR_OFFSET_OUT_OF_RANGE) {
        pos->refused_at = pos->next;
        pos->refused_ns = run_now(c->run);
        pos->state = WANTS_START;
    } else if (c->fetch_call.sent_ns >= c->run->calm_since_ns) {
        violate(c->run, "%s-%d: fetch at %lld failed with %s, and nothing is wrong",
                pos->topic->name, pos->partition, (long long)pos->next, err_name(err));
    }
}

static void check_watermark(struct consumer *c, struct position *pos, int64_t hw)
{
    if (hw < pos->high_watermark && pos->topic->is_durable)
        violate(c->run, "%s-%d: the high watermark went back from %lld to %lld", pos->topic->name,
                pos->partition, (long long)pos->high_watermark, (long long)hw);
    if (pos->next > hw && pos->topic->is_durable)
        violate(c->run, "%s-%d: read up to %lld, and the high watermark is %lld", pos->topic->name,
                pos->partition, (long long)pos->next, (long long)hw);
    pos->high_watermark = hw;
}

static void take_partition(struct consumer *c, struct position *pos,
                           const struct fetch_response_partition *r)
{
    int64_t before = pos->next;

    if (pos->state != READING || is_worthless(c, &c->fetch_call, pos->topic))
        return;
    if (pos->in_session != before)
        return; /* it went elsewhere meanwhile */
    if (r->error_code != 0) {
        fetch_failed(c, pos, (enum err)r->error_code);
        return;
    }
    pos->next = history_read(c->run, pos->topic, pos->partition, before, r->records.b, &pos->order);
    if (run_is_over(c->run))
        return;
    check_watermark(c, pos, r->high_watermark);
    if (pos->next > before) {
        pos->behind_ns = 0;
        c->run->counts.woken += c->wait_ms > 100 && c->min_bytes > 0;
        list_remove(&pos->link); /* the others have their turn first */
        list_push_back(&c->positions, &pos->link);
    }
}

static void take_response(struct consumer *c, const struct fetch_response *r)
{
    for (int32_t t = 0; t < r->responses.n; t++) {
        const struct fetch_response_topic *from = &r->responses.v[t];
        struct topic *topic = find_topic(c, from);

        for (int32_t i = 0; i < from->partitions.n && !run_is_over(c->run); i++) {
            struct position *pos =
                topic ? find_position(c, topic, from->partitions.v[i].partition_index) : NULL;

            if (pos)
                take_partition(c, pos, &from->partitions.v[i]);
            else
                violate(c->run, "a fetch was answered for a partition that nobody asked for");
        }
    }
}

static bool is_session_error(enum err err)
{
    return err == ERR_FETCH_SESSION_ID_NOT_FOUND || err == ERR_INVALID_FETCH_SESSION_EPOCH ||
           err == ERR_FETCH_SESSION_TOPIC_ID_ERROR;
}

static void read_on(struct consumer *c);

static void fetched(struct call *call, enum err err, void *response)
{
    struct consumer *c = CONTAINER_OF(call, struct consumer, fetch_call);
    const struct fetch_response *r = response;

    c->fetches = false;
    if (err) {
        forget_session(c);
        return;
    }
    err = (enum err)r->error_code;
    if (is_session_error(err)) {
        if (call->sent_ns >= c->run->calm_since_ns && c->session_epoch > 0)
            violate(c->run, "the broker has lost a fetch session, and nothing is wrong");
        forget_session(c);
        return;
    }
    if (err)
        violate(c->run, "a fetch failed with %s", err_name(err));
    if (c->uses_session) {
        c->session_id = r->session_id;
        c->session_epoch = r->session_id == 0 ? 0 : c->session_epoch + 1;
    }
    take_response(c, r);
    if (c->session_epoch == 0)
        forget_session(c);
    if (c->is_eager && !run_is_over(c->run))
        read_on(c);
}

/* ---- fetch requests --------------------------------------------------------------------- */

struct fetch_builder {
    struct fetch_request request;
    struct fetch_request_topic topics[POSITIONS_MAX];
    struct fetch_request_partition partitions[POSITIONS_MAX];
    struct fetch_request_forgotten_topic forgotten[POSITIONS_MAX];
    int32_t indexes[POSITIONS_MAX];
    int32_t partition_bytes;
};

static void put_position(struct fetch_builder *b, const struct position *pos)
{
    int32_t i = b->request.topics.n++;

    assert(i < POSITIONS_MAX);
    wire_init(&fetch_request_topic_schema, &b->topics[i]);
    wire_init(&fetch_request_partition_schema, &b->partitions[i]);
    b->topics[i].topic = str_of(pos->topic->name);
    b->topics[i].topic_id = pos->topic->id;
    b->topics[i].partitions.v = &b->partitions[i];
    b->topics[i].partitions.n = 1;
    b->partitions[i].partition = pos->partition;
    b->partitions[i].fetch_offset = pos->next;
    b->partitions[i].partition_max_bytes = b->partition_bytes;
}

static void put_forgotten(struct fetch_builder *b, const struct position *pos)
{
    int32_t i = b->request.forgotten_topics_data.n++;

    wire_init(&fetch_request_forgotten_topic_schema, &b->forgotten[i]);
    b->indexes[i] = pos->partition;
    b->forgotten[i].topic = str_of(pos->topic->name);
    b->forgotten[i].topic_id = pos->topic->id;
    b->forgotten[i].partitions.v = &b->indexes[i];
    b->forgotten[i].partitions.n = 1;
}

/* Positions that are new or have moved, and those that are not read any more. */
static void put_changes(struct consumer *c, struct fetch_builder *b)
{
    LIST_EACH (node, &c->positions) {
        struct position *pos = LIST_ENTRY(node, struct position, link);

        if (pos->in_session >= 0 && (pos->leaves || pos->state != READING)) {
            put_forgotten(b, pos);
            pos->in_session = -1;
        } else if (pos->state == READING && !pos->leaves && pos->in_session != pos->next) {
            put_position(b, pos);
            pos->in_session = pos->next;
        }
        pos->leaves = false;
    }
}

static void put_all(struct consumer *c, struct fetch_builder *b)
{
    LIST_EACH (node, &c->positions) {
        struct position *pos = LIST_ENTRY(node, struct position, link);

        if (pos->state != READING)
            continue;
        put_position(b, pos);
        pos->in_session = pos->next;
    }
}

static int32_t choose_of(struct consumer *c, const int32_t *v, uint32_t n)
{
    return v[choose(c, n)];
}

static void choose_limits(struct consumer *c, struct fetch_builder *b)
{
    static const int32_t waits[] = {500, 20, 0, 20000};
    static const int32_t mins[] = {1, 0, 1, 200};
    static const int32_t bytes[] = {1048576, 300, 2000, 16384};

    bool lies_in_wait = c->run->is_sparse && choose(c, 4) != 0;

    c->wait_ms = c->verifies ? 20 : choose_of(c, waits, 4);
    c->min_bytes = choose_of(c, mins, 4);
    /* A session keeps the limits that each partition came with. */
    c->has_room = lies_in_wait && !c->uses_session && choose(c, 4) != 0;
    if (lies_in_wait) {
        c->wait_ms = waits[3];
        c->min_bytes = choose_of(c, mins + 2, 2);
    }
    /* Woken by one partition it looks again, and waits on: meanwhile the others are filled. */
    if (c->has_room)
        c->min_bytes = 1 + (int32_t)choose(c, ROOM_MIN_BYTES);
    b->request.max_wait_ms = c->wait_ms;
    b->request.min_bytes = c->min_bytes;
    b->request.max_bytes = c->verifies ? bytes[0] : choose_of(c, bytes, 4);
    b->request.isolation_level = (int8_t)choose(c, 2);
    b->partition_bytes = c->verifies ? bytes[3] : choose_of(c, bytes, 4);
    if (c->has_room)
        b->request.max_bytes = b->partition_bytes = bytes[0];
}

static void send_fetch(struct consumer *c)
{
    struct fetch_builder *b = xcalloc(1, sizeof(*b));
    struct fetch_request *request = &b->request;

    wire_init(&fetch_request_schema, request);
    request->replica_id = -1;
    request->topics.v = b->topics;
    request->forgotten_topics_data.v = b->forgotten;
    choose_limits(c, b);
    if (c->uses_session) {
        request->session_id = c->session_id;
        request->session_epoch = c->session_epoch;
    }
    if (c->session_epoch > 0)
        put_changes(c, b);
    else
        put_all(c, b);
    tell(c->run,
         "fetch version %d session %d/%d: %d partitions, wait %d ms for %d bytes, max %d/%d",
         c->version, c->session_id, c->session_epoch, request->topics.n, c->wait_ms, c->min_bytes,
         request->max_bytes, b->partition_bytes);
    for (int32_t i = 0; i < request->topics.n; i++)
        tell(c->run, "  %.*s-%d from %lld", STR_ARG(b->topics[i].topic), b->partitions[i].partition,
             (long long)b->partitions[i].fetch_offset);
    if (request->topics.n > 0 || c->session_epoch > 0) {
        c->fetches = true;
        c->fetch_count++;
        c->fetch_call.done = fetched;
        peer_send(&c->peer, &c->fetch_call, API_FETCH, c->version, request,
                  (int64_t)c->wait_ms * MS);
    }
    free(b);
}

/* ---- liveness --------------------------------------------------------------------------- */

/* Stored bytes that an acknowledgement has made readable, at the least. */
static int32_t bytes_ready(const struct position *pos)
{
    const struct part *p = &pos->topic->parts[pos->partition];
    int32_t bytes = 0;

    for (int64_t o = pos->next; o < p->acked_end; o++)
        if (o == pos->next || p->at[o] != p->at[o - 1])
            bytes += BATCH_HEADER_BYTES;
    return bytes;
}

/* As above, and all of what is known: a fetch with small limits cannot be given that much. */
static int64_t bytes_known(const struct history *h, const struct position *pos)
{
    const struct part *p = &pos->topic->parts[pos->partition];
    int64_t bytes = 0;

    for (int64_t o = pos->next; o < p->acked_end; o++)
        if (p->at[o] > 0 && (o == pos->next || p->at[o] != p->at[o - 1]))
            bytes += h->batches[p->at[o] - 1].bytes;
    return bytes;
}

static void check_wake(struct consumer *c, const struct position *pos)
{
    const struct part *p = &pos->topic->parts[pos->partition];
    int64_t since = MAX(p->acked_ns, c->fetch_call.sent_ns);

    if (!c->fetches || c->fetch_call.sent_ns < c->run->calm_since_ns ||
        run_now(c->run) <= since + WAKE_NS)
        return;
    if (pos->in_session == pos->next && bytes_ready(pos) >= c->min_bytes)
        violate(c->run,
                "%s-%d: a fetch at %lld has slept for %lld ms since offset %lld was acknowledged",
                pos->topic->name, pos->partition, (long long)pos->next,
                (long long)((run_now(c->run) - since) / MS), (long long)p->acked_end - 1);
}

/* What is ready in all of its partitions together has to wake a fetch. */
static void check_wake_by_all(struct consumer *c)
{
    int64_t since = c->fetch_call.sent_ns;
    int64_t bytes = 0;

    if (!c->fetches || !c->has_room || since < c->run->calm_since_ns)
        return;
    LIST_EACH (node, &c->positions) {
        const struct position *pos = LIST_ENTRY(node, struct position, link);
        bool is_asked_for = pos->state == READING && pos->in_session == pos->next;
        int64_t known = is_asked_for && pos->topic->state == TOPIC_THERE
                            ? bytes_known(&c->run->history, pos)
                            : 0;

        if (known == 0)
            continue;
        bytes += known;
        since = MAX(since, pos->topic->parts[pos->partition].acked_ns);
    }
    if (bytes >= c->min_bytes && run_now(c->run) > since + WAKE_NS)
        violate(c->run, "a fetch for %d bytes has slept for %lld ms since they were acknowledged",
                c->min_bytes, (long long)((run_now(c->run) - since) / MS));
}

/* Something acknowledged waits to be read: it has to come, by this fetch or by a later one. */
static void check_progress(struct consumer *c, struct position *pos)
{
    int64_t now = run_now(c->run);

    /* A fetch that was sent to a machine without power sleeps until its time is up. */
    bool is_older = c->fetches && c->fetch_call.sent_ns < c->run->calm_since_ns;

    if (is_older || pos->topic->state != TOPIC_THERE || pos->state != READING ||
        bytes_ready(pos) < MAX(c->min_bytes, 1)) {
        pos->behind_ns = 0;
        return;
    }
    check_wake(c, pos);
    if (pos->behind_ns == 0) {
        pos->behind_ns = now;
        pos->behind_fetches = c->fetch_count;
    }
    if (!c->fetches && c->fetch_count == pos->behind_fetches)
        return; /* It rests, and has not asked. */
    if (MAX(pos->behind_ns, c->run->calm_since_ns) < now - STUCK_NS)
        violate(c->run, "%s-%d: a consumer is stuck at %lld, acknowledged up to %lld",
                pos->topic->name, pos->partition, (long long)pos->next,
                (long long)pos->topic->parts[pos->partition].acked_end);
}

/* ---- life ------------------------------------------------------------------------------- */

static void wander(struct consumer *c)
{
    struct list *node = c->positions.next;
    struct position *pos;

    if (c->verifies || list_is_empty(&c->positions) || !once_in(c, 30))
        return;
    pos = LIST_ENTRY(node, struct position, link);
    if (pos->state != READING)
        return;
    if (once_in(c, 3)) {
        pos->leaves = true;
    } else if (pos->next > pos->log_start) {
        pos->next = pos->log_start + choose(c, (uint32_t)(pos->next - pos->log_start));
        order_reset(&pos->order, pos->next == 0);
    }
}

static void read_on(struct consumer *c)
{
    subscribe(c);
    wander(c);
    send_fetch(c);
}

void consumer_tick(struct consumer *c)
{
    int64_t now = run_now(c->run);
    int64_t pause_ms_max;

    LIST_EACH (node, &c->positions)
        check_progress(c, LIST_ENTRY(node, struct position, link));
    check_wake_by_all(c);
    if (c->peer.state != PEER_OPEN || now < c->next_ns)
        return;
    pause_ms_max = c->verifies ? 1 : 14;
    c->next_ns = now + (pause_ms_max - (int64_t)choose(c, (uint32_t)pause_ms_max + 1)) * MS;
    if (!c->lists)
        list_next(c);
    if (!c->lists && !c->verifies)
        ask_for_time(c);
    if (!c->fetches && (c->verifies || choose(c, 8) != 0)) /* a rest is dull */
        read_on(c);
}

void consumer_restart(struct consumer *c)
{
    c->verifies = true;
    subscribe(c);
    LIST_EACH (node, &c->positions) {
        struct position *pos = LIST_ENTRY(node, struct position, link);

        pos->state = WANTS_START;
        pos->target = -1;
    }
}

static bool is_unread(const struct position *pos)
{
    return pos->topic->state == TOPIC_THERE &&
           (pos->state != READING || pos->target < 0 || pos->next < pos->target);
}

bool consumer_is_done(const struct consumer *c)
{
    LIST_EACH (node, &c->positions) {
        const struct position *pos = LIST_ENTRY(node, struct position, link);

        if (is_unread(pos))
            return false;
        if (pos->topic->state == TOPIC_THERE)
            history_verified(c->run, pos->topic, pos->partition, pos->log_start, pos->next);
    }
    return true;
}

void consumer_complain(const struct consumer *c)
{
    LIST_EACH (node, &c->positions) {
        const struct position *pos = LIST_ENTRY(node, struct position, link);

        if (is_unread(pos))
            violate(c->run, "%s-%d has been read to %lld of %lld (%s), and nothing is wrong",
                    pos->topic->name, pos->partition, (long long)pos->next, (long long)pos->target,
                    pos->state == READING ? "fetching" : "asking for its ends");
    }
}

static void opened(struct peer *peer)
{
    static const int16_t versions[] = {4, 7, 11, 12, 13, 16, 18};
    struct consumer *c = CONTAINER_OF(peer, struct consumer, peer);

    c->version = versions[choose(c, 7)];
    c->uses_session = c->version >= 7 && !c->is_verifier && choose(c, 2) == 1;
    c->is_eager = choose(c, 2) == 1;
    c->session_id = 0;
    forget_session(c);
}

static void closed(struct peer *peer)
{
    (void)peer;
}

struct consumer *consumer_new(struct run *run, int index, bool is_verifier)
{
    struct consumer *c = xcalloc(1, sizeof(*c));

    (void)index;
    c->run = run;
    c->is_verifier = is_verifier;
    list_init(&c->positions);
    peer_init(&c->peer, run, opened, closed);
    peer_start(&c->peer);
    return c;
}

void consumer_free(struct consumer *c)
{
    LIST_EACH_SAFE (node, &c->positions)
        position_free(LIST_ENTRY(node, struct position, link));
    peer_fini(&c->peer);
    free(c);
}
