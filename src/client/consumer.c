/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumer: which partitions are read, from where, and who is asked for them.
 *
 * The pump goes through the assignments that are part of no call, finds the leader of each, and
 * makes one ListOffsets and one Fetch a broker out of them. One fetch a broker is out at a time;
 * its answer goes to the callbacks, and then the pump runs again. Fetch sessions are not used: a
 * request names every partition, in turn, so that one busy partition does not starve the others.
 *
 * A fetch says which leader epoch the reader believes in (KIP-320), so a broker that is not the
 * leader any more, or not yet, refuses instead of serving a wrong log.
 */
#include "client/consumer_int.h"

#include <stdlib.h>

#include "base/assert.h"

/* Topics have ids in newer versions and names in older ones. */
#define FETCH_VERSION_NAMES_MAX 12

#define TIMESTAMP_LATEST (-1)
#define TIMESTAMP_EARLIEST (-2)

static void pump(struct consumer *c);

static int64_t mono_ns(const struct consumer *c)
{
    return io_loop_mono_ns(client_loop(c->client));
}

/* The pump runs soon, but never inside a call of the user. */
static void wake(struct consumer *c)
{
    c->is_woken = true;
    client_alarm_set(c->client, &c->alarm, 0);
}

/* ---- Assignments. */

static struct assignment *find(const struct consumer *c, struct str topic, int32_t partition)
{
    LIST_EACH (l, &c->assignments) {
        struct assignment *a = LIST_ENTRY(l, struct assignment, node);

        if (a->partition == partition && str_eq_c(topic, a->topic))
            return a;
    }
    return NULL;
}

static void assignment_free(struct assignment *a)
{
    list_remove(&a->node);
    for (int32_t i = 0; a->call && i < a->call->count; i++)
        if (a->call->assignments[i] == a)
            a->call->assignments[i] = NULL;
    free(a->topic);
    free(a);
}

static void fail(struct consumer *c, struct assignment *a, enum err err)
{
    a->state = ASSIGNMENT_FAILED;
    c->events.failed(c->ctx, str_of(a->topic), a->partition, a->position, err);
}

static void seek(struct assignment *a, enum consumer_start start, int64_t value)
{
    a->start = start;
    a->start_value = value;
    a->state = start == START_OFFSET ? ASSIGNMENT_READY : ASSIGNMENT_SEEKING;
    a->position = start == START_OFFSET ? value : -1;
    a->retry_at_ns = 0;
    a->attempts = 0;
}

static void retry_later(struct consumer *c, struct assignment *a)
{
    const struct client_config *config = client_settings(c->client);
    int64_t ms = config->retry_backoff_ms;

    for (int32_t i = 0; i < a->attempts && ms < config->retry_backoff_max_ms; i++)
        ms *= 2;
    a->attempts++;
    a->retry_at_ns = mono_ns(c) + MIN(ms, config->retry_backoff_max_ms) * NS_PER_MS;
    client_metadata_expire(c->client);
}

static void reset_offset(struct consumer *c, struct assignment *a)
{
    switch (c->config.auto_offset_reset) {
    case RESET_EARLIEST: seek(a, START_EARLIEST, 0); return;
    case RESET_LATEST: seek(a, START_LATEST, 0); return;
    case RESET_NONE: fail(c, a, ERR_OFFSET_OUT_OF_RANGE); return;
    }
}

/* What an error in an answer means for its partition. */
static void take_error(struct consumer *c, struct assignment *a, enum err err)
{
    if (err == ERR_OFFSET_OUT_OF_RANGE)
        reset_offset(c, a);
    else if (err_is_retriable(err) && err != ERR_CORRUPT_MESSAGE)
        retry_later(c, a);
    else
        fail(c, a, err);
}

/* ---- Calls. */

static void call_free(struct consumer_call *cc)
{
    for (int32_t i = 0; i < cc->count; i++)
        if (cc->assignments[i])
            cc->assignments[i]->call = NULL;
    list_remove(&cc->node);
    client_call_fini(&cc->call);
    arena_fini(&cc->arena);
    free(cc);
}

static struct assignment *assignment_of(struct consumer_call *cc, struct str topic, struct uuid id,
                                        int32_t partition)
{
    bool by_id = !cc->is_seek && cc->call.version > FETCH_VERSION_NAMES_MAX;

    for (int32_t i = 0; i < cc->count; i++) {
        struct assignment *a = cc->assignments[i];
        const struct client_topic *t;

        if (!a || a->partition != partition)
            continue;
        if (!by_id && str_eq_c(topic, a->topic))
            return a;
        t = by_id ? client_topic_find(cc->consumer->client, str_of(a->topic)) : NULL;
        if (t && uuid_eq(t->id, id))
            return a;
    }
    return NULL;
}

static void take_fetched(struct consumer_call *cc, struct fetch_response_topic *t,
                         struct fetch_response_partition *r)
{
    struct consumer *c = cc->consumer;
    struct assignment *a = assignment_of(cc, t->topic, t->topic_id, r->partition_index);
    enum err err = err_from_wire(r->error_code);

    if (!a || a->is_moved)
        return;
    if (!err) {
        a->attempts = 0;
        err = consumer__deliver(a, c, r);
    }
    if (err && !a->is_moved)
        take_error(c, a, err);
    /* Whoever was served stands behind the others next time. */
    if (r->records.b.n > 0) {
        list_remove(&a->node);
        list_push_back(&c->assignments, &a->node);
    }
}

static void take_offset(struct consumer_call *cc, const struct list_offsets_response_topic *t,
                        const struct list_offsets_response_partition *r)
{
    struct consumer *c = cc->consumer;
    struct assignment *a = assignment_of(cc, t->name, uuid_zero(), r->partition_index);
    enum err err = err_from_wire(r->error_code);

    if (!a || a->is_moved)
        return;
    if (err) {
        take_error(c, a, err);
    } else if (a->start == START_TIMESTAMP && r->offset < 0) {
        seek(a, START_LATEST, 0); /* No record is that young. */
    } else if (a->start == START_TAIL) {
        seek(a, START_OFFSET, MAX(0, r->offset - a->start_value));
    } else {
        a->position = r->offset;
        a->state = ASSIGNMENT_READY;
        a->attempts = 0;
    }
}

static void take_response(struct consumer_call *cc)
{
    struct fetch_response *f = cc->call.response;
    const struct list_offsets_response *o = cc->call.response;

    if (cc->is_seek) {
        for (int32_t i = 0; i < o->topics.n; i++)
            for (int32_t j = 0; j < o->topics.v[i].partitions.n; j++)
                take_offset(cc, &o->topics.v[i], &o->topics.v[i].partitions.v[j]);
        return;
    }
    for (int32_t i = 0; i < f->responses.n; i++)
        for (int32_t j = 0; j < f->responses.v[i].partitions.n; j++)
            take_fetched(cc, &f->responses.v[i], &f->responses.v[i].partitions.v[j]);
}

static enum err response_error(const struct consumer_call *cc)
{
    const struct fetch_response *f = cc->call.response;

    if (cc->call.err || cc->is_seek)
        return cc->call.err;
    return err_from_wire(f->error_code);
}

/* The call as a whole has failed: connections come and go, other errors last. */
static void take_failure(struct consumer_call *cc, enum err err)
{
    bool is_final = err == ERR_UNSUPPORTED_VERSION || err == ERR_INVALID_ARG;

    for (int32_t i = 0; i < cc->count; i++) {
        struct assignment *a = cc->assignments[i];

        if (a && !a->is_moved && is_final)
            fail(cc->consumer, a, err);
        else if (a && !a->is_moved)
            retry_later(cc->consumer, a);
    }
}

static void call_done(struct client_call *call)
{
    struct consumer_call *cc = CONTAINER_OF(call, struct consumer_call, call);
    struct consumer *c = cc->consumer;
    enum err err = response_error(cc);

    if (err)
        take_failure(cc, err);
    else
        take_response(cc);
    call_free(cc);
    pump(c);
}

/* The call to `target` that is being put together or NULL if one is out already. */
static struct consumer_call *find_call(struct consumer *c, struct list *drafts, int32_t target,
                                       bool is_seek)
{
    struct consumer_call *cc;

    LIST_EACH (l, drafts) {
        cc = LIST_ENTRY(l, struct consumer_call, node);
        if (cc->target == target && cc->is_seek == is_seek)
            return cc;
    }
    LIST_EACH (l, &c->calls) {
        cc = LIST_ENTRY(l, struct consumer_call, node);
        if (cc->target == target && cc->is_seek == is_seek)
            return NULL;
    }
    cc = xcalloc(1, sizeof(*cc));
    cc->consumer = c;
    cc->target = target;
    cc->is_seek = is_seek;
    arena_init(&cc->arena, 0);
    list_push_back(drafts, &cc->node);
    return cc;
}

static void add_to_call(struct consumer_call *cc, struct assignment *a)
{
    /* Grows by doubling: a power of two that is full has no room. */
    if ((cc->count & (cc->count - 1)) == 0) {
        size_t cap = (size_t)MAX(1, cc->count * 2);
        struct assignment **v = arena_alloc(&cc->arena, cap * sizeof(struct assignment *));

        if (cc->count)
            memcpy(v, cc->assignments, (size_t)cc->count * sizeof(*v));
        cc->assignments = v;
    }
    cc->assignments[cc->count++] = a;
    a->call = cc;
    a->is_moved = false;
}

/* ---- Requests. */

static const struct client_topic *topic_of(const struct consumer *c, const struct assignment *a)
{
    return client_topic_find(c->client, str_of(a->topic));
}

/* Whether assignment i of the call begins a topic. One that stands in two places is named twice. */
static bool begins_topic(const struct consumer_call *cc, int32_t i)
{
    return i == 0 || strcmp(cc->assignments[i - 1]->topic, cc->assignments[i]->topic) != 0;
}

static void *fill_fetch(struct consumer_call *cc)
{
    const struct consumer *c = cc->consumer;
    struct fetch_request *r = arena_alloc(&cc->arena, sizeof(*r));
    struct fetch_request_topic *topic = NULL;

    wire_init(&fetch_request_schema, r);
    r->max_wait_ms = c->config.fetch_max_wait_ms;
    r->min_bytes = c->config.fetch_min_bytes;
    r->max_bytes = c->config.fetch_max_bytes;
    r->isolation_level = (int8_t)c->config.isolation_level;
    r->topics.v = arena_calloc(&cc->arena, (size_t)cc->count, sizeof(*r->topics.v));
    for (int32_t i = 0; i < cc->count; i++) {
        struct assignment *a = cc->assignments[i];
        const struct client_topic *known = topic_of(c, a);

        if (begins_topic(cc, i)) {
            topic = &r->topics.v[r->topics.n++];
            topic->topic = str_of(a->topic);
            topic->topic_id = known->id;
            if (uuid_is_zero(known->id))
                cc->call.version_max = FETCH_VERSION_NAMES_MAX;
            topic->partitions.v =
                arena_calloc(&cc->arena, (size_t)(cc->count - i), sizeof(*topic->partitions.v));
        }
        topic->partitions.v[topic->partitions.n++] = (struct fetch_request_partition){
            .partition = a->partition,
            .current_leader_epoch = known->partitions[a->partition].leader_epoch,
            .fetch_offset = a->position,
            .last_fetched_epoch = -1,
            .log_start_offset = -1,
            .partition_max_bytes = c->config.max_partition_fetch_bytes,
            .high_watermark = INT64_MAX,
            .durable_offset = -1,
        };
    }
    return r;
}

static int64_t timestamp_of(const struct assignment *a)
{
    switch (a->start) {
    case START_EARLIEST: return TIMESTAMP_EARLIEST;
    case START_TIMESTAMP: return a->start_value;
    case START_OFFSET:
    case START_TAIL:
    case START_LATEST: return TIMESTAMP_LATEST;
    }
    UNREACHABLE();
}

static void *fill_seek(struct consumer_call *cc)
{
    const struct consumer *c = cc->consumer;
    struct list_offsets_request *r = arena_alloc(&cc->arena, sizeof(*r));
    struct list_offsets_request_topic *topic = NULL;

    wire_init(&list_offsets_request_schema, r);
    r->replica_id = -1;
    r->isolation_level = (int8_t)c->config.isolation_level;
    r->timeout_ms = c->config.request_timeout_ms;
    r->topics.v = arena_calloc(&cc->arena, (size_t)cc->count, sizeof(*r->topics.v));
    for (int32_t i = 0; i < cc->count; i++) {
        struct assignment *a = cc->assignments[i];

        if (begins_topic(cc, i)) {
            topic = &r->topics.v[r->topics.n++];
            topic->name = str_of(a->topic);
            topic->partitions.v =
                arena_calloc(&cc->arena, (size_t)(cc->count - i), sizeof(*topic->partitions.v));
        }
        topic->partitions.v[topic->partitions.n++] = (struct list_offsets_request_partition){
            .partition_index = a->partition,
            .current_leader_epoch = topic_of(c, a)->partitions[a->partition].leader_epoch,
            .timestamp = timestamp_of(a),
            .max_num_offsets = 1,
        };
    }
    return r;
}

static void send_call(struct consumer_call *cc)
{
    struct consumer *c = cc->consumer;

    cc->call.done = call_done;
    cc->call.api_key = cc->is_seek ? API_LIST_OFFSETS : API_FETCH;
    cc->call.target = cc->target;
    cc->call.timeout_ms = c->config.request_timeout_ms;
    cc->call.request = cc->is_seek ? fill_seek(cc) : fill_fetch(cc);
    list_remove(&cc->node);
    list_push_back(&c->calls, &cc->node);
    client_call(c->client, &cc->call);
}

/* ---- The pump. */

/* The error of a topic or partition that metadata does not have. */
static enum err missing_error(const struct client_topic *t)
{
    return t && t->err ? t->err : ERR_UNKNOWN_TOPIC_OR_PARTITION;
}

/* True if there is nobody to ask yet: metadata is on its way, or the wait is over. */
static bool is_missing(struct consumer *c, struct assignment *a, int64_t now_ns, int64_t *at_ns)
{
    const struct client_topic *t = topic_of(c, a);
    int64_t patience_ns = (int64_t)c->config.unknown_topic_timeout_ms * NS_PER_MS;

    if (t && !t->err && a->partition < t->partition_count) {
        a->missing_since_ns = 0;
        return false;
    }
    if (t && !err_is_retriable(missing_error(t))) {
        fail(c, a, t->err);
        return true;
    }
    if (!a->missing_since_ns)
        a->missing_since_ns = now_ns;
    if (patience_ns && now_ns >= a->missing_since_ns + patience_ns) {
        fail(c, a, t ? missing_error(t) : ERR_TIMEOUT);
        return true;
    }
    if (patience_ns)
        *at_ns = MIN(*at_ns, a->missing_since_ns + patience_ns);
    client_metadata_expire(c->client);
    return true;
}

static void pump_assignment(struct consumer *c, struct assignment *a, struct list *drafts,
                            int64_t *at_ns)
{
    int64_t now_ns = mono_ns(c);
    struct consumer_call *cc;
    int32_t leader;

    if (a->call || a->is_paused || a->state == ASSIGNMENT_FAILED)
        return;
    if (now_ns < a->retry_at_ns) {
        *at_ns = MIN(*at_ns, a->retry_at_ns);
        return;
    }
    if (is_missing(c, a, now_ns, at_ns))
        return;
    leader = client_leader(c->client, str_of(a->topic), a->partition);
    if (leader < 0) {
        client_metadata_expire(c->client);
        return;
    }
    cc = find_call(c, drafts, leader, a->state == ASSIGNMENT_SEEKING);
    if (cc)
        add_to_call(cc, a);
}

static void pump(struct consumer *c)
{
    int64_t at_ns = INT64_MAX;
    struct list drafts;

    c->is_woken = false;
    list_init(&drafts);
    LIST_EACH_SAFE (l, &c->assignments)
        pump_assignment(c, LIST_ENTRY(l, struct assignment, node), &drafts, &at_ns);
    for (struct list *l; (l = drafts.next) != &drafts;)
        send_call(LIST_ENTRY(l, struct consumer_call, node));
    if (at_ns != INT64_MAX || c->is_woken)
        client_alarm_set(c->client, &c->alarm, c->is_woken ? 0 : at_ns);
}

static void refreshed(struct client_watcher *w, enum err err)
{
    (void)err;
    pump(CONTAINER_OF(w, struct consumer, watcher));
}

static void rang(struct client_alarm *alarm)
{
    pump(CONTAINER_OF(alarm, struct consumer, alarm));
}

/* ---- What users call. */

struct consumer_config consumer_config_default(void)
{
    return (struct consumer_config){
        .fetch_min_bytes = 1,
        .fetch_max_bytes = 52428800,
        .fetch_max_wait_ms = 500,
        .max_partition_fetch_bytes = 1048576,
        .request_timeout_ms = 30000,
        .isolation_level = READ_UNCOMMITTED,
        .auto_offset_reset = RESET_LATEST,
        .check_crcs = true,
    };
}

enum err consumer_open(struct client *client, const struct consumer_config *config,
                       const struct consumer_events *events, void *ctx, struct consumer **out)
{
    struct consumer *c;

    *out = NULL;
    if (config->fetch_min_bytes < 0 || config->fetch_max_bytes < 0 ||
        config->fetch_max_wait_ms < 0 || config->max_partition_fetch_bytes < 0 ||
        config->request_timeout_ms <= config->fetch_max_wait_ms)
        return ERR_LIMIT;
    c = xcalloc(1, sizeof(*c));
    c->client = client;
    c->config = *config;
    c->events = *events;
    c->ctx = ctx;
    list_init(&c->assignments);
    list_init(&c->calls);
    record_iter_init(&c->iter);
    c->watcher.refreshed = refreshed;
    c->alarm.ring = rang;
    client_watcher_add(client, &c->watcher);
    *out = c;
    return ERR_NONE;
}

void consumer_assign(struct consumer *c, struct str topic, int32_t partition,
                     enum consumer_start start, int64_t value)
{
    struct assignment *a = find(c, topic, partition);

    assert(partition >= 0);
    if (!a) {
        a = xcalloc(1, sizeof(*a));
        a->topic = str_dup(topic);
        a->partition = partition;
        list_push_back(&c->assignments, &a->node);
        client_topic_watch(c->client, topic);
    }
    a->is_moved = true;
    seek(a, start, value);
    wake(c);
}

void consumer_unassign(struct consumer *c, struct str topic, int32_t partition)
{
    struct assignment *a = find(c, topic, partition);

    if (a)
        assignment_free(a);
}

void consumer_pause(struct consumer *c, struct str topic, int32_t partition, bool is_paused)
{
    struct assignment *a = find(c, topic, partition);

    if (!a)
        return;
    a->is_paused = is_paused;
    wake(c);
}

int64_t consumer_position(const struct consumer *c, struct str topic, int32_t partition)
{
    const struct assignment *a = find(c, topic, partition);

    return a ? a->position : -1;
}

void consumer_close(struct consumer *c)
{
    if (!c)
        return;
    client_watcher_remove(&c->watcher);
    client_alarm_clear(c->client, &c->alarm);
    for (struct list *l; (l = c->calls.next) != &c->calls;)
        call_free(LIST_ENTRY(l, struct consumer_call, node));
    for (struct list *l; (l = c->assignments.next) != &c->assignments;)
        assignment_free(LIST_ENTRY(l, struct assignment, node));
    record_iter_fini(&c->iter);
    free(c->aborted);
    free(c);
}
