/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client knows of the cluster: brokers, controller, and the leaders of the topics that
 * somebody watches. One Metadata call at a time, to any broker; it is due when a topic is new, when
 * something has shown that the present knowledge is old, and after metadata.max.age.ms.
 *
 * Leader epochs decide between two answers: one that is older than what we have for a partition
 * comes from a broker that lags, and is not taken over (KIP-320).
 *
 * A bootstrap server that turns out to be a broker of the list keeps its connection and gets the
 * broker's id.
 */
#include "client/client_int.h"

#include <stdlib.h>

#include "base/assert.h"
#include "wire/messages.h"

/* ---- Topics. */

static struct cluster_topic *find_topic(const struct cluster *k, struct str name)
{
    struct cluster_topic *t;

    HASH_FIND(hh, k->topics, name.p, (unsigned)name.n, t);
    return t;
}

static void free_partitions(struct client_topic *t)
{
    free(t->partitions);
    t->partitions = NULL;
    t->partition_count = 0;
}

/* What is known of a partition, if the id of the topic is still the same. */
static const struct client_partition *known_partition(const struct client_topic *t, struct uuid id,
                                                      int32_t index)
{
    if (!uuid_eq(t->id, id) || index >= t->partition_count)
        return NULL;
    return &t->partitions[index];
}

static void take_partitions(struct client_topic *t, const struct metadata_response_topic *r)
{
    struct client_partition *v = xcalloc((size_t)MAX(r->partitions.n, 1), sizeof(*v));

    for (int32_t i = 0; i < r->partitions.n; i++)
        v[i] = (struct client_partition){
            .leader = -1, .leader_epoch = -1, .err = ERR_LEADER_NOT_AVAILABLE};
    for (int32_t i = 0; i < r->partitions.n; i++) {
        const struct metadata_response_partition *p = &r->partitions.v[i];
        const struct client_partition *old = known_partition(t, r->topic_id, p->partition_index);

        if (p->partition_index < 0 || p->partition_index >= r->partitions.n)
            continue;
        v[p->partition_index] = (struct client_partition){
            .leader = p->leader_id,
            .leader_epoch = p->leader_epoch,
            .err = err_from_wire(p->error_code),
        };
        if (old && p->leader_epoch >= 0 && p->leader_epoch < old->leader_epoch)
            v[p->partition_index] = *old;
    }
    free(t->partitions);
    t->partitions = v;
    t->partition_count = r->partitions.n;
    t->id = r->topic_id;
}

static void take_topic(struct cluster *k, const struct metadata_response_topic *r)
{
    struct cluster_topic *t = str_is_null(r->name) ? NULL : find_topic(k, r->name);

    if (!t)
        return;
    t->topic.err = err_from_wire(r->error_code);
    if (t->topic.err)
        free_partitions(&t->topic);
    else
        take_partitions(&t->topic, r);
}

/* ---- Brokers. */

static struct node *adopt_bootstrap(struct client *c, struct str host, uint16_t port)
{
    LIST_EACH (l, &c->nodes) {
        struct node *n = LIST_ENTRY(l, struct node, node);

        if (n->id < 0 && n->port == port && str_eq_c(host, n->host))
            return n;
    }
    return NULL;
}

/* The broker, if it is known at this address; one that has moved is dropped. */
static struct node *node_at(struct client *c, int32_t id, struct str host, uint16_t port)
{
    struct node *n = client__node_of(c, id);

    if (!n || (n->port == port && str_eq_c(host, n->host)))
        return n;
    node_drop(n, ERR_NETWORK_EXCEPTION);
    return NULL;
}

void client_broker_set(struct client *c, int32_t id, int64_t life, struct str host, uint16_t port)
{
    struct node *n = node_at(c, id, host, port);

    assert(c->config.is_told);
    if (!n)
        n = node_new(c, id, host, port);
    else if (n->life != life)
        node_renew(n);
    n->life = life;
    client__wake(c);
}

void client_broker_remove(struct client *c, int32_t id)
{
    struct node *n = client__node_of(c, id);

    assert(c->config.is_told);
    if (n)
        node_drop(n, ERR_NETWORK_EXCEPTION);
}

static void take_broker(struct client *c, const struct metadata_response_broker *b)
{
    uint16_t port = (uint16_t)b->port;
    struct node *n = node_at(c, b->node_id, b->host, port);

    if (!n)
        n = adopt_bootstrap(c, b->host, port);
    if (!n)
        n = node_new(c, b->node_id, b->host, port);
    if (n->id != b->node_id) {
        n->id = b->node_id;
        LIST_EACH (l, &n->queued)
            LIST_ENTRY(l, struct client_call, _node)->node_id = n->id;
        LIST_EACH (l, &n->sent) {
            struct client_sent *sent = LIST_ENTRY(l, struct client_sent, node);

            if (sent->call)
                sent->call->node_id = n->id;
        }
    }
    n->is_listed = true;
}

/* Bootstrap servers stay as long as they have something to do, for instance a call. */
static void drop_unlisted(struct client *c)
{
    LIST_EACH_SAFE (l, &c->nodes) {
        struct node *n = LIST_ENTRY(l, struct node, node);

        if (!n->is_listed && (n->id >= 0 || n->pending == 0))
            node_drop(n, ERR_NETWORK_EXCEPTION);
    }
}

static void take_brokers(struct client *c, const struct metadata_response *r)
{
    LIST_EACH (l, &c->nodes)
        LIST_ENTRY(l, struct node, node)->is_listed = false;
    for (int32_t i = 0; i < r->brokers.n; i++)
        if (r->brokers.v[i].node_id >= 0)
            take_broker(c, &r->brokers.v[i]);
    if (r->brokers.n > 0)
        drop_unlisted(c);
}

/* ---- The call. */

static void fill_request(struct client *c, struct metadata_request *request)
{
    struct cluster *k = &c->cluster;
    int32_t count = (int32_t)HASH_COUNT(k->topics);
    int32_t i = 0;

    wire_init(&metadata_request_schema, request);
    request->topics.v = arena_calloc(&k->arena, (size_t)MAX(count, 1), sizeof(*request->topics.v));
    request->topics.n = count;
    request->allow_auto_topic_creation = c->config.allow_auto_create_topics;
    for (struct cluster_topic *t = k->topics; t; t = t->hh.next, i++)
        request->topics.v[i].name = str_of(t->topic.name);
}

static void notify(struct cluster *k, enum err err)
{
    LIST_EACH_SAFE (l, &k->watchers) {
        struct client_watcher *w = LIST_ENTRY(l, struct client_watcher, node);

        w->refreshed(w, err);
    }
}

static void metadata_arrived(struct client_call *call)
{
    struct cluster *k = CONTAINER_OF(call, struct cluster, call);
    struct client *c = CONTAINER_OF(k, struct client, cluster);
    const struct metadata_response *r = call->response;
    enum err err = call->err ? call->err : err_from_wire(r->error_code);

    k->refreshed_ns = io_loop_mono_ns(c->loop);
    k->refresh_ns = k->refreshed_ns + (int64_t)c->config.metadata_max_age_ms * NS_PER_MS;
    if (!err) {
        k->is_known = true;
        k->controller_id = r->controller_id;
        take_brokers(c, r);
        for (int32_t i = 0; i < r->topics.n; i++)
            take_topic(k, &r->topics.v[i]);
    }
    if (err || k->is_wanted_again)
        client_metadata_expire(c);
    k->is_wanted_again = false;
    notify(k, err);
    client__wake(c);
}

void cluster_pump(struct client *c, int64_t now_ns)
{
    struct cluster *k = &c->cluster;
    struct metadata_request *request;

    if (now_ns < k->refresh_ns || client_call_is_pending(&k->call))
        return;
    k->refresh_ns = INT64_MAX;
    arena_reset(&k->arena);
    request = arena_alloc(&k->arena, sizeof(*request));
    fill_request(c, request);
    k->call.request = request;
    client_call(c, &k->call);
}

void cluster_init(struct client *c)
{
    struct cluster *k = &c->cluster;

    k->controller_id = -1;
    k->is_known = c->config.is_told;
    k->refresh_ns = INT64_MAX;
    k->refreshed_ns = INT64_MIN / 2;
    arena_init(&k->arena, 0);
    list_init(&k->watchers);
    k->call.done = metadata_arrived;
    k->call.api_key = API_METADATA;
    k->call.target = CLIENT_ANY;
}

void cluster_fini(struct client *c)
{
    struct cluster *k = &c->cluster;
    struct cluster_topic *t = k->topics;

    assert(list_is_empty(&k->watchers));
    HASH_CLEAR(hh, k->topics);
    while (t) {
        struct cluster_topic *next = t->hh.next;

        free(t->topic.name);
        free(t->topic.partitions);
        free(t);
        t = next;
    }
    client_call_fini(&k->call);
    arena_fini(&k->arena);
}

/* ---- What users ask. */

void client_topic_watch(struct client *c, struct str name)
{
    struct cluster *k = &c->cluster;
    struct cluster_topic *t = find_topic(k, name);

    if (t)
        return;
    t = xcalloc(1, sizeof(*t));
    t->topic.name = str_dup(name);
    t->topic.err = ERR_AGAIN;
    HASH_ADD_KEYPTR(hh, k->topics, t->topic.name, (unsigned)name.n, t);
    /* Nothing is old, something is new: no need to hold back. */
    if (client_call_is_pending(&k->call))
        k->is_wanted_again = true;
    else
        k->refresh_ns = 0;
    client__wake(c);
}

const struct client_topic *client_topic_find(const struct client *c, struct str name)
{
    struct cluster_topic *t = find_topic(&c->cluster, name);

    return !t || t->topic.err == ERR_AGAIN ? NULL : &t->topic;
}

int32_t client_leader(const struct client *c, struct str topic, int32_t partition)
{
    const struct client_topic *t = client_topic_find(c, topic);

    if (!t || partition < 0 || partition >= t->partition_count)
        return -1;
    return t->partitions[partition].leader;
}

void client_metadata_expire(struct client *c)
{
    struct cluster *k = &c->cluster;
    int64_t earliest = k->refreshed_ns + (int64_t)c->config.retry_backoff_ms * NS_PER_MS;

    if (c->config.is_told)
        return;
    if (client_call_is_pending(&k->call)) {
        k->is_wanted_again = true;
        return;
    }
    if (earliest < k->refresh_ns) {
        k->refresh_ns = earliest;
        client__wake(c);
    }
}

void client_watcher_add(struct client *c, struct client_watcher *w)
{
    list_push_back(&c->cluster.watchers, &w->node);
}

void client_watcher_remove(struct client_watcher *w)
{
    list_remove(&w->node);
}
