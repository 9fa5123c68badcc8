/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The administrator of a cluster: makes topics, moves leaders and replicas, deletes topics, and
 * asks for metadata. In a storm every answer may be missing; it asks again until it knows. At the
 * end it waits until every replica of every partition is in sync, and nothing is left of what was
 * deleted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster.h"

#define CLUSTER_TOPICS_MAX 6
#define PAUSE_NS (50 * MS)
#define TIMEOUT_MS 1500

struct steward {
    struct peer peer;
    struct run *run;
    struct call call;
    bool is_asking;
    bool goes_on;
    struct topic *topic; /* being made or deleted */
    int min_insync;
    bool is_made; /* it is; only its id is missing */
    bool audits;
    bool is_content;
    bool lacks_leader;
    char why_not[160];
    int64_t next_ns;
};

static uint32_t choose(const struct steward *s, uint32_t n)
{
    return run_choose_by(s->run, BY_ADMIN, n);
}

static void send(struct steward *s, int16_t api_key, int16_t version, const void *request,
                 void (*done)(struct call *call, enum err err, void *response))
{
    s->is_asking = true;
    s->call.done = done;
    peer_send(&s->peer, &s->call, api_key, version, request, TIMEOUT_MS * MS);
}

/* ---- making ------------------------------------------------------------------------------- */

static void created(struct call *call, enum err err, void *response)
{
    struct steward *s = CONTAINER_OF(call, struct steward, call);
    const struct create_topics_response *r = response;

    s->is_asking = false;
    s->goes_on = err != ERR_NONE;
    if (err || r->topics.n != 1)
        return;
    err = (enum err)r->topics.v[0].error_code;
    tell(s->run, "steward: %s is made: %s", s->topic->name, err_name(err));
    s->is_made = err == ERR_NONE || err == ERR_TOPIC_ALREADY_EXISTS;
    s->goes_on = err != ERR_NONE;
    if (!s->is_made && !is_of_leadership(err) && err != ERR_INVALID_REPLICATION_FACTOR)
        violate(s->run, "%s cannot be made: %s", s->topic->name, err_name(err));
}

static void create(struct steward *s)
{
    struct create_topics_request request;
    struct create_topics_request_topic topic;
    struct create_topics_request_config configs[2];

    wire_init(&create_topics_request_schema, &request);
    wire_init(&create_topics_request_topic_schema, &topic);
    for (int i = 0; i < 2; i++)
        wire_init(&create_topics_request_config_schema, &configs[i]);
    configs[0].name = STR_LIT("min.insync.replicas");
    configs[0].value = s->min_insync == 2 ? STR_LIT("2") : STR_LIT("1");
    configs[1].name = STR_LIT("segment.index.bytes");
    configs[1].value = STR_LIT("400");
    topic.name = str_of(s->topic->name);
    topic.num_partitions = s->topic->partitions;
    topic.replication_factor = 3;
    topic.configs.v = configs;
    topic.configs.n = 2;
    request.topics.v = &topic;
    request.topics.n = 1;
    request.timeout_ms = TIMEOUT_MS;
    send(s, API_CREATE_TOPICS, 7, &request, created);
}

/* A new one, or one that was deleted: it is another topic then. */
static void choose_name(struct steward *s, char name[24])
{
    const struct history *h = &s->run->history;
    const struct topic *last = h->topic_count > 0 ? &h->topics[h->topic_count - 1] : NULL;

    snprintf(name, 24, "topic%d", h->topic_count);
    for (int i = 0; i < h->topic_count; i++)
        if (h->topics[i].state == TOPIC_GONE && choose(s, 2) == 1)
            last = &h->topics[i];
    for (int i = 0; last && i < h->topic_count; i++)
        if (strcmp(h->topics[i].name, last->name) == 0 && h->topics[i].state != TOPIC_GONE)
            return;
    if (last)
        snprintf(name, 24, "%s", last->name);
}

static void begin_topic(struct steward *s)
{
    char name[24];

    choose_name(s, name);
    s->topic = history_add_topic(&s->run->history, name);
    if (!s->topic)
        return;
    for (const struct topic *t = s->run->history.topics; t < s->topic; t++)
        s->topic->is_namesake |= strcmp(t->name, name) == 0;
    s->min_insync = s->run->plan.has_disk_loss ? 2 : 1 + (int)choose(s, 2);
    s->topic->partitions = 1 + (int32_t)choose(s, TOPIC_PARTITIONS_MAX);
    s->topic->retention_bytes = -1;
    s->topic->retention_is_certain = true;
    s->topic->is_durable = true;
    s->is_made = false;
}

/* ---- deleting ----------------------------------------------------------------------------- */

static void deleted(struct call *call, enum err err, void *response)
{
    struct steward *s = CONTAINER_OF(call, struct steward, call);
    const struct delete_topics_response *r = response;

    s->is_asking = false;
    s->goes_on = err != ERR_NONE;
    if (err || r->responses.n != 1)
        return;
    err = (enum err)r->responses.v[0].error_code;
    tell(s->run, "steward: %s is deleted: %s", s->topic->name, err_name(err));
    s->goes_on = err != ERR_NONE;
    /* One broker's not knowing it proves nothing: the audit does. */
    if (err != ERR_NONE && err != ERR_UNKNOWN_TOPIC_OR_PARTITION)
        return;
    s->topic->state = TOPIC_GONE;
    s->run->counts.topics_deleted++;
    s->topic = NULL;
}

static void delete (struct steward *s)
{
    struct delete_topics_request request;
    struct str name = str_of(s->topic->name);

    wire_init(&delete_topics_request_schema, &request);
    request.topic_names.v = &name;
    request.topic_names.n = 1;
    request.timeout_ms = TIMEOUT_MS;
    send(s, API_DELETE_TOPICS, 5, &request, deleted);
}

/* ---- looking ------------------------------------------------------------------------------ */

static const struct metadata_response_topic *find(const struct metadata_response *r,
                                                  const char *name)
{
    for (int32_t i = 0; i < r->topics.n; i++)
        if (str_eq_c(r->topics.v[i].name, name))
            return &r->topics.v[i];
    return NULL;
}

static bool doubt(struct steward *s, const struct topic *t, const char *what, int n)
{
    snprintf(s->why_not, sizeof(s->why_not), "%s %s %d (asked of %s)", t->name, what, n,
             sim_host_name(s->peer.host));
    return false;
}

static bool is_whole(struct steward *s, const struct topic *t,
                     const struct metadata_response_topic *r)
{
    if (!r || r->error_code != 0)
        return doubt(s, t, "is not there", r ? r->error_code : 0);
    if (r->partitions.n != t->partitions)
        return doubt(s, t, "has partitions", r->partitions.n);
    for (int32_t i = 0; i < r->partitions.n; i++) {
        const struct metadata_response_partition *p = &r->partitions.v[i];

        s->lacks_leader |= p->leader_id < 0;
        if (p->error_code != 0 || p->leader_id < 0)
            return doubt(s, t, "has no leader for partition", p->partition_index);
        if (p->isr_nodes.n != p->replica_nodes.n)
            return doubt(s, t, "is not whole in partition", p->partition_index);
    }
    return true;
}

static bool all_is_well(struct steward *s, const struct metadata_response *r)
{
    const struct history *h = &s->run->history;

    for (int i = 0; i < h->topic_count; i++) {
        const struct topic *t = &h->topics[i];
        const struct metadata_response_topic *found = find(r, t->name);

        if (t->state == TOPIC_THERE && !is_whole(s, t, found))
            return false;
        if (t->state == TOPIC_GONE && found && found->error_code == 0 &&
            uuid_eq(found->topic_id, t->id))
            return doubt(s, t, "was deleted and is there with partitions", found->partitions.n);
    }
    return true;
}

/* Of one with this name that was deleted: the broker has not heard of that yet. */
static bool is_of_another(const struct steward *s, struct uuid id)
{
    for (const struct topic *t = s->run->history.topics; t < s->topic; t++)
        if (uuid_eq(t->id, id))
            return true;
    return false;
}

static void take_topic(struct steward *s, const struct metadata_response *r)
{
    const struct metadata_response_topic *found = find(r, s->topic->name);

    if (!found || found->error_code != 0 || uuid_is_zero(found->topic_id) ||
        is_of_another(s, found->topic_id))
        return;
    s->topic->id = found->topic_id;
    s->topic->state = TOPIC_THERE;
    s->run->counts.topics_made++;
    s->topic = NULL;
}

static void looked(struct call *call, enum err err, void *response)
{
    struct steward *s = CONTAINER_OF(call, struct steward, call);
    const struct metadata_response *r = response;

    s->is_asking = false;
    s->goes_on = err != ERR_NONE;
    if (err)
        return;
    if (s->topic && s->is_made)
        take_topic(s, r);
    s->goes_on = s->audits || s->topic;
    s->lacks_leader = false;
    s->is_content = s->audits && all_is_well(s, r);
}

static void look(struct steward *s)
{
    struct metadata_request request;

    wire_init(&metadata_request_schema, &request);
    request.topics.n = -1;
    request.allow_auto_topic_creation = false;
    send(s, API_METADATA, 12, &request, looked);
}

/* ---- moving ------------------------------------------------------------------------------- */

static void moved(struct call *call, enum err err, void *response)
{
    struct steward *s = CONTAINER_OF(call, struct steward, call);

    (void)response; /* It is allowed to fail. */
    s->is_asking = false;
    s->goes_on = err != ERR_NONE || choose(s, 2) == 1;
}

/* The first replica leads where it can. */
static void elect_preferred(struct steward *s)
{
    struct elect_leaders_request request;

    wire_init(&elect_leaders_request_schema, &request);
    request.election_type = 0;
    request.topic_partitions.n = -1;
    request.timeout_ms = TIMEOUT_MS;
    send(s, API_ELECT_LEADERS, 2, &request, moved);
}

/* Any order of any replicas: those that are not named leave, when the others are in sync. */
static void reassign(struct steward *s, struct topic *t)
{
    struct alter_partition_reassignments_request request;
    struct alter_partition_reassignments_request_topic topic;
    struct alter_partition_reassignments_request_partition partition;
    int32_t first = 1 + (int32_t)choose(s, NODES);
    int32_t ids[NODES];

    for (int i = 0; i < NODES; i++)
        ids[i] = (first - 1 + i) % NODES + 1;
    wire_init(&alter_partition_reassignments_request_schema, &request);
    wire_init(&alter_partition_reassignments_request_topic_schema, &topic);
    wire_init(&alter_partition_reassignments_request_partition_schema, &partition);
    partition.partition_index = (int32_t)choose(s, (uint32_t)t->partitions);
    partition.replicas.v = ids;
    partition.replicas.n = 2 + (int32_t)choose(s, 2);
    topic.name = str_of(t->name);
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    request.topics.v = &topic;
    request.topics.n = 1;
    request.timeout_ms = TIMEOUT_MS;
    send(s, API_ALTER_PARTITION_REASSIGNMENTS, 0, &request, moved);
}

/* ---- life --------------------------------------------------------------------------------- */

static void begin_something(struct steward *s)
{
    struct topic *t;

    if (s->run->history.topic_count == 0 ||
        (s->run->history.topic_count < CLUSTER_TOPICS_MAX && choose(s, 20) == 19)) {
        begin_topic(s);
        return;
    }
    t = history_pick_topic(s->run);
    if (!t)
        return;
    switch (choose(s, 30) + 10) {
    case 39:
        if (s->run->history.topic_count >= 2) {
            s->topic = t;
            t->state = TOPIC_GOING;
        }
        break;
    case 38:
    case 37: elect_preferred(s); break;
    case 36:
    case 35:
    case 34: reassign(s, t); break;
    default: break;
    }
}

void steward_tick(struct steward *s)
{
    int64_t now = run_now(s->run);

    if (s->peer.state != PEER_OPEN || s->is_asking || now < s->next_ns)
        return;
    s->next_ns = now + PAUSE_NS;
    if (s->goes_on) {
        s->goes_on = false;
        peer_go_on(&s->peer);
    } else if (s->topic && s->topic->state == TOPIC_GOING) {
        delete (s);
    } else if (s->topic && !s->is_made) {
        create(s);
    } else if (s->topic || s->audits) {
        look(s);
    } else {
        begin_something(s);
    }
}

static void nothing(struct peer *peer)
{
    (void)peer;
}

struct steward *steward_new(struct run *run)
{
    struct steward *s = xcalloc(1, sizeof(*s));

    s->run = run;
    peer_init(&s->peer, run, nothing, nothing);
    s->peer.host = run->cluster->nodes[0].host;
    s->peer.unreachable = peer_go_on;
    peer_start(&s->peer);
    return s;
}

void steward_audit(struct steward *s)
{
    s->audits = true;
    s->is_content = false;
}

bool steward_is_content(const struct steward *s)
{
    return s->is_content && !s->topic;
}

bool steward_lacks_leader(const struct steward *s)
{
    return s->lacks_leader;
}

void steward_complain(const struct steward *s)
{
    violate(s->run, "%s, and nothing is wrong",
            s->topic        ? s->topic->name
            : s->why_not[0] ? s->why_not
                            : "nobody answers the steward");
}

void steward_free(struct steward *s)
{
    peer_cancel(&s->peer);
    peer_fini(&s->peer);
    free(s);
}
