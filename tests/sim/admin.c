/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The administrator: makes and deletes topics, changes configurations, and compares what the broker
 * says there is with what it has been told. One request at a time, and only this actor changes
 * anything, so that what is true is known, except after a request without an answer: it may still
 * be on its way. A name that such a request was about is never used again, and nothing is expected
 * of its topic any more.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "clients.h"

#define NAMES 4
#define PAUSE_MS_MAX 120
#define TOPIC_RESOURCE 2
#define RETENTION_UNIT 12000

struct name {
    struct topic *topic; /* NULL: there is none */
    int generation;      /* of the name itself */
};

struct admin {
    struct peer peer;
    struct run *run;
    struct name names[NAMES];
    struct call call;
    bool is_busy;
    bool must_compare; /* the connection is new: the broker may be another one */
    int compares;
    struct name *at; /* what the request under way is about */
    int32_t partition;
    int64_t value; /* ... and its new value */
    int64_t next_ns;
};

static uint32_t choose(const struct admin *a, uint32_t n)
{
    return run_choose_by(a->run, BY_ADMIN, n);
}

static void doubt(struct name *n)
{
    if (n->topic)
        n->topic->state = TOPIC_DOUBTFUL;
    n->topic = NULL;
    n->generation++;
}

/* True when the answer is there and says success. */
static bool check(struct admin *a, enum err err, int16_t code)
{
    if (!err && code == 0)
        return true;
    if (!err && a->call.sent_ns >= a->run->calm_since_ns)
        violate(a->run, "%s of %s failed with %s, and nothing is wrong", a->call.api->name,
                a->at->topic->name, err_name((enum err)code));
    return false;
}

static void send(struct admin *a, int16_t key, int16_t version, const void *request,
                 void (*done)(struct call *c, enum err err, void *response))
{
    a->is_busy = true;
    a->call.done = done;
    peer_send(&a->peer, &a->call, key, version, request, 0);
}

/* ---- making ----------------------------------------------------------------------------- */

static void created(struct call *call, enum err err, void *response)
{
    struct admin *a = CONTAINER_OF(call, struct admin, call);
    const struct create_topics_response *r = response;
    int16_t code = !err && r->topics.n == 1 ? r->topics.v[0].error_code : -1;

    a->is_busy = false;
    if (!check(a, err, code)) {
        doubt(a->at);
        return;
    }
    a->at->topic->id = r->topics.v[0].topic_id;
    a->at->topic->state = TOPIC_THERE;
    a->run->counts.topics_made++;
}

static void add_config(struct create_topics_request_topic *t, const char *name, char *text,
                       int64_t value)
{
    struct create_topics_request_config *c = &t->configs.v[t->configs.n++];

    wire_init(&create_topics_request_config_schema, c);
    c->name = str_of(name);
    snprintf(text, 24, "%lld", (long long)value);
    c->value = str_of(text);
}

static void choose_topic(struct admin *a, struct topic *t)
{
    t->partitions = 1 + (int32_t)choose(a, TOPIC_PARTITIONS_MAX);
    t->retention_bytes = choose(a, 3) == 0 ? RETENTION_UNIT : -1;
    t->has_ever_had_retention = t->retention_bytes >= 0;
    t->retention_is_certain = true;
    t->is_durable = !a->run->plan.has_page_cache_topics || choose(a, 2) == 0;
    if (a->run->plan.groups > 0) {
        t->retention_bytes = -1;
        t->has_ever_had_retention = false;
    }
}

/* Segments that are full after a few batches, or after a moment, or hardly ever. */
static void add_configs(struct admin *a, const struct topic *t,
                        struct create_topics_request_topic *topic, char text[][24])
{
    static const int32_t index_bytes[] = {120, 400, 100000};
    static const int32_t intervals[] = {0, 0, 500};
    static const int32_t ms[] = {100, 2000, 1000000};

    add_config(topic, "flush.on.ack", text[0], 0);
    topic->configs.v[0].value = str_of(t->is_durable ? "true" : "false");
    add_config(topic, "retention.bytes", text[1], t->retention_bytes);
    add_config(topic, "segment.index.bytes", text[2], index_bytes[choose(a, 3)]);
    add_config(topic, "index.interval.bytes", text[3], intervals[choose(a, 3)]);
    add_config(topic, "segment.ms", text[4], ms[choose(a, 3)]);
}

static void create(struct admin *a, struct name *n)
{
    struct create_topics_request request;
    struct create_topics_request_topic topic;
    struct create_topics_request_config configs[5];
    char name[24];
    char text[5][24];
    struct topic *t;

    snprintf(name, sizeof(name), "topic%d-%d", (int)(n - a->names), n->generation);
    t = history_add_topic(&a->run->history, name);
    if (!t)
        return;
    a->at = n;
    n->topic = t;
    choose_topic(a, t);
    wire_init(&create_topics_request_schema, &request);
    wire_init(&create_topics_request_topic_schema, &topic);
    topic.name = str_of(name);
    topic.num_partitions = t->partitions;
    topic.replication_factor = 1;
    topic.configs.v = configs;
    add_configs(a, t, &topic, text);
    request.topics.v = &topic;
    request.topics.n = 1;
    send(a, API_CREATE_TOPICS, 7, &request, created);
}

/* ---- deleting --------------------------------------------------------------------------- */

static void deleted(struct call *call, enum err err, void *response)
{
    struct admin *a = CONTAINER_OF(call, struct admin, call);
    const struct delete_topics_response *r = response;
    int16_t code = !err && r->responses.n == 1 ? r->responses.v[0].error_code : -1;

    a->is_busy = false;
    if (!check(a, err, code)) {
        doubt(a->at);
        return;
    }
    a->at->topic->state = TOPIC_GONE;
    a->at->topic = NULL;
    a->run->counts.topics_deleted++;
}

static void delete_topic(struct admin *a, struct name *n)
{
    struct delete_topics_request request;
    struct delete_topics_request_topic topic;
    struct str name = str_of(n->topic->name);
    bool by_id = choose(a, 2) == 1;

    wire_init(&delete_topics_request_schema, &request);
    wire_init(&delete_topics_request_topic_schema, &topic);
    if (by_id)
        topic.topic_id = n->topic->id;
    else
        topic.name = name;
    request.topics.v = &topic;
    request.topics.n = 1;
    request.topic_names.v = &name;
    request.topic_names.n = 1;
    request.timeout_ms = 3000;
    a->at = n;
    n->topic->state = TOPIC_GOING;
    send(a, API_DELETE_TOPICS, by_id ? 6 : 4, &request, deleted);
}

/* ---- configurations --------------------------------------------------------------------- */

static void altered(struct call *call, enum err err, void *response)
{
    struct admin *a = CONTAINER_OF(call, struct admin, call);
    const struct incremental_alter_configs_response *r = response;
    int16_t code = !err && r->responses.n == 1 ? r->responses.v[0].error_code : -1;
    struct topic *t = a->at->topic;

    a->is_busy = false;
    if (!check(a, err, code)) {
        t->retention_is_certain = false;
        return;
    }
    t->retention_bytes = a->value;
    a->run->counts.configs_changed++;
}

static void alter(struct admin *a, struct name *n)
{
    struct incremental_alter_configs_request request;
    struct incremental_alter_configs_request_resource resource;
    struct incremental_alter_configs_request_config config;
    char text[24];

    a->at = n;
    a->value = (2 + (int64_t)choose(a, 6)) * RETENTION_UNIT;
    n->topic->has_ever_had_retention = true;
    snprintf(text, sizeof(text), "%lld", (long long)a->value);
    wire_init(&incremental_alter_configs_request_schema, &request);
    wire_init(&incremental_alter_configs_request_resource_schema, &resource);
    wire_init(&incremental_alter_configs_request_config_schema, &config);
    config.name = STR_LIT("retention.bytes");
    config.value = str_of(text);
    resource.resource_type = TOPIC_RESOURCE;
    resource.resource_name = str_of(n->topic->name);
    resource.configs.v = &config;
    resource.configs.n = 1;
    request.resources.v = &resource;
    request.resources.n = 1;
    send(a, API_INCREMENTAL_ALTER_CONFIGS, 1, &request, altered);
}

static void described(struct call *call, enum err err, void *response)
{
    struct admin *a = CONTAINER_OF(call, struct admin, call);
    const struct describe_configs_response *r = response;
    const struct topic *t = a->at->topic;
    int64_t value;

    a->is_busy = false;
    if (err || !check(a, err, r->results.n == 1 ? r->results.v[0].error_code : (int16_t)-1))
        return;
    if (r->results.v[0].configs.n != 1 || str_to_i64(r->results.v[0].configs.v[0].value, &value)) {
        violate(a->run, "%s has no retention.bytes", t->name);
        return;
    }
    if (t->retention_is_certain && value != t->retention_bytes)
        violate(a->run, "%s: retention.bytes is %lld, and %lld was set", t->name, (long long)value,
                (long long)t->retention_bytes);
}

static void describe(struct admin *a, struct name *n)
{
    struct describe_configs_request request;
    struct describe_configs_request_resource resource;
    struct str key = STR_LIT("retention.bytes");

    a->at = n;
    wire_init(&describe_configs_request_schema, &request);
    wire_init(&describe_configs_request_resource_schema, &resource);
    resource.resource_type = TOPIC_RESOURCE;
    resource.resource_name = str_of(n->topic->name);
    resource.configuration_keys.v = &key;
    resource.configuration_keys.n = 1;
    request.resources.v = &resource;
    request.resources.n = 1;
    send(a, API_DESCRIBE_CONFIGS, 4, &request, described);
}

/* ---- partitions and records ------------------------------------------------------------- */

static void grown(struct call *call, enum err err, void *response)
{
    struct admin *a = CONTAINER_OF(call, struct admin, call);
    const struct create_partitions_response *r = response;
    int16_t code = !err && r->results.n == 1 ? r->results.v[0].error_code : -1;

    a->is_busy = false;
    if (!check(a, err, code)) {
        doubt(a->at);
        return;
    }
    a->at->topic->partitions++;
    a->run->counts.partitions_added++;
}

static void grow(struct admin *a, struct name *n)
{
    struct create_partitions_request request;
    struct create_partitions_request_topic topic;

    if (n->topic->partitions == TOPIC_PARTITIONS_MAX)
        return;
    a->at = n;
    wire_init(&create_partitions_request_schema, &request);
    wire_init(&create_partitions_request_topic_schema, &topic);
    topic.name = str_of(n->topic->name);
    topic.count = n->topic->partitions + 1;
    topic.assignments.n = -1;
    request.topics.v = &topic;
    request.topics.n = 1;
    request.timeout_ms = 3000;
    send(a, API_CREATE_PARTITIONS, 3, &request, grown);
}

static void records_deleted(struct call *call, enum err err, void *response)
{
    struct admin *a = CONTAINER_OF(call, struct admin, call);
    const struct delete_records_response *r = response;
    bool is_whole = !err && r->topics.n == 1 && r->topics.v[0].partitions.n == 1;
    struct part *p = &a->at->topic->parts[a->partition];

    a->is_busy = false;
    if (!check(a, err, is_whole ? r->topics.v[0].partitions.v[0].error_code : (int16_t)-1))
        return;
    if (r->topics.v[0].partitions.v[0].low_watermark < a->value)
        violate(a->run, "%s-%d: records below %lld were deleted, and it begins at %lld",
                a->at->topic->name, a->partition, (long long)a->value,
                (long long)r->topics.v[0].partitions.v[0].low_watermark);
    p->deleted_to = MAX(p->deleted_to, a->value);
    p->deleted_ns = run_now(a->run);
    a->run->counts.records_deleted++;
}

static void delete_records(struct admin *a, struct name *n)
{
    struct delete_records_request request;
    struct delete_records_request_topic topic;
    struct delete_records_request_partition partition;

    a->at = n;
    a->partition = (int32_t)choose(a, (uint32_t)n->topic->partitions);
    a->value = choose(a, (uint32_t)n->topic->parts[a->partition].acked_end + 1);
    n->topic->has_ever_had_retention = true;
    wire_init(&delete_records_request_schema, &request);
    wire_init(&delete_records_request_topic_schema, &topic);
    wire_init(&delete_records_request_partition_schema, &partition);
    partition.partition_index = a->partition;
    partition.offset = a->value;
    topic.name = str_of(n->topic->name);
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    request.topics.v = &topic;
    request.topics.n = 1;
    request.timeout_ms = 3000;
    send(a, API_DELETE_RECORDS, 2, &request, records_deleted);
}

/* ---- comparing -------------------------------------------------------------------------- */

static const struct metadata_response_topic *find(const struct metadata_response *r,
                                                  const struct topic *t)
{
    for (int32_t i = 0; i < r->topics.n; i++)
        if (uuid_eq(r->topics.v[i].topic_id, t->id))
            return &r->topics.v[i];
    return NULL;
}

static void compare_topic(struct admin *a, const struct metadata_response *r, const struct topic *t)
{
    const struct metadata_response_topic *found = find(r, t);

    if (t->state == TOPIC_THERE && !found)
        violate(a->run, "topic %s was made and is not there", t->name);
    else if (t->state == TOPIC_THERE && found->partitions.n != t->partitions)
        violate(a->run, "topic %s has %d partitions and was made with %d", t->name,
                found->partitions.n, t->partitions);
    else if (t->state == TOPIC_GONE && found)
        violate(a->run, "topic %s was deleted and is there", t->name);
}

static void compared(struct call *call, enum err err, void *response)
{
    struct admin *a = CONTAINER_OF(call, struct admin, call);
    const struct metadata_response *r = response;
    const struct history *h = &a->run->history;

    a->is_busy = false;
    if (err)
        return;
    a->must_compare = false;
    a->compares++;
    for (int i = 0; i < h->topic_count; i++)
        compare_topic(a, r, &h->topics[i]);
}

static void compare(struct admin *a)
{
    struct metadata_request request;

    wire_init(&metadata_request_schema, &request);
    request.topics.n = -1;
    request.allow_auto_topic_creation = false;
    send(a, API_METADATA, 12, &request, compared);
}

/* ---- life ------------------------------------------------------------------------------- */

static void change(struct admin *a)
{
    struct name *n;

    if (choose(a, 8) == 0)
        return; /* Nothing at all is dull. */
    n = &a->names[choose(a, NAMES)];
    if (!n->topic) {
        create(a, n);
        return;
    }
    /* A topic that is deleted wakes all who read it, and so hides a wake-up that was lost. Groups
     * have to read everything. */
    if (a->run->is_sparse || a->run->plan.groups > 0)
        return;
    switch (choose(a, 12)) {
    case 5: delete_topic(a, n); break;
    case 6: grow(a, n); break;
    case 7:
        if (n->topic->is_durable) /* A page cache that was lost takes its offsets with it. */
            delete_records(a, n);
        break;
    case 1:
    case 2: alter(a, n); break;
    case 3:
    case 4: compare(a); break;
    default: describe(a, n); break;
    }
}

void admin_tick(struct admin *a)
{
    int64_t now = run_now(a->run);

    if (a->peer.state != PEER_OPEN || a->is_busy || now < a->next_ns)
        return;
    a->next_ns = now + (int64_t)(PAUSE_MS_MAX - 1 - choose(a, PAUSE_MS_MAX)) * MS;
    if (a->must_compare)
        compare(a);
    else if (!a->run->no_producing)
        change(a);
}

bool admin_is_settled(const struct admin *a)
{
    return a->peer.state == PEER_OPEN && !a->is_busy && !a->must_compare;
}

static void opened(struct peer *peer)
{
    CONTAINER_OF(peer, struct admin, peer)->must_compare = true;
}

static void closed(struct peer *peer)
{
    CONTAINER_OF(peer, struct admin, peer)->must_compare = true;
}

struct admin *admin_new(struct run *run)
{
    struct admin *a = xcalloc(1, sizeof(*a));

    a->run = run;
    a->must_compare = true;
    peer_init(&a->peer, run, opened, closed);
    peer_start(&a->peer);
    return a;
}

void admin_free(struct admin *a)
{
    peer_fini(&a->peer);
    free(a);
}
