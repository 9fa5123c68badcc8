/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata, DescribeCluster and DescribeTopicPartitions: the image, as a client of this listener
 * sees it. Our own address is the one that the client came in by, unless advertised.listeners says
 * otherwise: what has just worked for the bootstrap works for every later connection, through
 * tunnels and port mappings that keep the port.
 *
 * A topic that does not exist is made where the client and the configuration allow it. The answer
 * waits until the topic is there, so that clients do not have to ask twice.
 */
#include <stdlib.h>
#include <string.h>

#include "broker/broker_int.h"

/* ---- brokers ---------------------------------------------------------------------------- */

/* False when this broker cannot be reached by the client's listener. */
bool request_broker_address(struct request *r, const struct metadata_broker *b, struct str *host,
                            int32_t *port)
{
    const struct metadata_endpoint *e;

    if (b->id == r->shard->broker->node_id) {
        conn_advertised(r->conn, &r->arena, host, port);
        return true;
    }
    e = metadata_find_endpoint(b, str_of(r->conn->listener->name));
    if (!e)
        return false;
    *host = e->host;
    *port = e->port;
    return true;
}

static void fill_brokers(struct request *r, struct metadata_response *out)
{
    const struct metadata_image *image = r->shard->image;

    out->brokers.v = request_array(r, &metadata_response_broker_schema, image->broker_count);
    for (int32_t i = 0; i < image->broker_count; i++) {
        const struct metadata_broker *b = image->brokers[i];
        struct metadata_response_broker *to = &out->brokers.v[out->brokers.n];

        if (b->is_fenced || !request_broker_address(r, b, &to->host, &to->port))
            continue;
        to->node_id = b->id;
        to->rack = b->rack;
        out->brokers.n++;
    }
}

/* ---- topics ----------------------------------------------------------------------------- */

#define IDS(field, from)                                                                           \
    do {                                                                                           \
        (field).v = (from).ids;                                                                    \
        (field).n = (from).count;                                                                  \
    } while (0)

/* Those whose broker is not there. */
static void fill_offline(struct request *r, struct metadata_response_partition *to,
                         const struct metadata_ids *replicas)
{
    for (int32_t i = 0; i < replicas->count; i++) {
        if (metadata_is_alive(r->shard->image, replicas->ids[i]))
            continue;
        if (to->offline_replicas.n == 0)
            to->offline_replicas.v =
                request_alloc(r, (size_t)replicas->count * sizeof(*to->offline_replicas.v));
        to->offline_replicas.v[to->offline_replicas.n++] = replicas->ids[i];
    }
}

static void fill_partitions(struct request *r, struct metadata_response_topic *to,
                            const struct metadata_topic *topic)
{
    to->partitions.n = topic->partition_count;
    to->partitions.v =
        request_array(r, &metadata_response_partition_schema, topic->partition_count);
    for (int32_t i = 0; i < topic->partition_count; i++) {
        const struct metadata_partition *from = &topic->partitions[i];
        struct metadata_response_partition *p = &to->partitions.v[i];

        p->error_code = from->leader < 0 ? ERR_LEADER_NOT_AVAILABLE : ERR_NONE;
        p->partition_index = i;
        p->leader_id = from->leader;
        p->leader_epoch = from->leader_epoch;
        IDS(p->replica_nodes, from->replicas);
        IDS(p->isr_nodes, from->isr);
        fill_offline(r, p, &from->replicas);
    }
}

/* Operations that there are on a resource, as bits; all are allowed while there are no ACLs. */
#define TOPIC_OPERATIONS 0x0df8
#define CLUSTER_OPERATIONS 0x1fa0

static void fill_topic(struct request *r, struct metadata_response_topic *to,
                       const struct metadata_topic *topic)
{
    const struct metadata_request *in = r->in;

    to->name = topic->name;
    to->topic_id = topic->id;
    to->is_internal = topic->is_internal;
    if (in->include_topic_authorized_operations)
        to->topic_authorized_operations = TOPIC_OPERATIONS;
    fill_partitions(r, to, topic);
}

static const struct metadata_topic *find_visible(const struct metadata_image *image,
                                                 struct str name, struct uuid id)
{
    const struct metadata_topic *topic = str_is_null(name) ? metadata_find_topic_id(image, id)
                                                           : metadata_find_topic(image, name);

    return topic && !topic->is_deleting ? topic : NULL;
}

/* Null: asked by id. Java's admin client sends an empty name beside it, and librdkafka none. */
static struct str asked_name(const struct metadata_request_topic *t)
{
    return uuid_is_zero(t->topic_id) ? t->name : str_null();
}

static enum err missing_error(struct str name)
{
    const char *reason;
    enum err err;

    if (str_is_null(name))
        return ERR_UNKNOWN_TOPIC_ID;
    err = metadata_topic_name_check(name, &reason);
    return err ? err : ERR_UNKNOWN_TOPIC_OR_PARTITION;
}

static int by_asked(const void *a, const void *b)
{
    const struct metadata_request_topic *x = *(struct metadata_request_topic *const *)a;
    const struct metadata_request_topic *y = *(struct metadata_request_topic *const *)b;
    int order = str_cmp(asked_name(x), asked_name(y));

    if (!order)
        order = memcmp(x->topic_id.b, y->topic_id.b, sizeof(x->topic_id.b));
    return order ? order : (x > y) - (x < y);
}

/* By position: asked for before in this request. */
static bool *find_repeated(struct request *r)
{
    const struct metadata_request *in = r->in;
    size_t n = (size_t)in->topics.n;
    bool *repeated = request_alloc(r, n * sizeof(*repeated) + 1);
    struct metadata_request_topic **v =
        request_alloc(r, (n + 1) * sizeof(struct metadata_request_topic *));

    for (size_t i = 0; i < n; i++)
        v[i] = &in->topics.v[i];
    qsort(v, n, sizeof(struct metadata_request_topic *), by_asked);
    for (size_t i = 1; i < n; i++)
        repeated[v[i] - in->topics.v] = str_eq(asked_name(v[i]), asked_name(v[i - 1])) &&
                                        uuid_eq(v[i]->topic_id, v[i - 1]->topic_id);
    return repeated;
}

/* Each topic once, as in Kafka: an answer is much larger than what it takes to ask again. */
static void fill_named_topics(struct request *r, struct metadata_response *out)
{
    const struct metadata_request *in = r->in;
    const bool *repeated = find_repeated(r);

    out->topics.v = request_array(r, &metadata_response_topic_schema, in->topics.n);
    for (int32_t i = 0; i < in->topics.n; i++) {
        const struct metadata_request_topic *from = &in->topics.v[i];
        struct str name = asked_name(from);
        const struct metadata_topic *topic = find_visible(r->shard->image, name, from->topic_id);
        struct metadata_response_topic *to;

        if (repeated[i])
            continue;
        to = &out->topics.v[out->topics.n++];
        if (topic) {
            fill_topic(r, to, topic);
            continue;
        }
        to->error_code = err_wire(missing_error(name));
        to->name = name;
        to->topic_id = from->topic_id;
        /* Only version 12 and later have a null for it. */
        if (str_is_null(to->name) && r->header.api_version < 12)
            to->name = STR_LIT("");
    }
}

static void fill_all_topics(struct request *r, struct metadata_response *out)
{
    const struct metadata_image *image = r->shard->image;

    out->topics.v = request_array(r, &metadata_response_topic_schema, image->topic_count);
    for (int32_t i = 0; i < image->topic_count; i++)
        if (!image->topics[i]->is_deleting)
            fill_topic(r, &out->topics.v[out->topics.n++], image->topics[i]);
}

static bool wants_all(const struct request *r)
{
    const struct metadata_request *in = r->in;

    return in->topics.n < 0 || (r->header.api_version == 0 && in->topics.n == 0);
}

static void answer_metadata(struct request *r)
{
    const struct metadata_request *in = r->in;
    struct metadata_response *out = r->out;

    out->cluster_id = r->shard->image->cluster_id;
    out->controller_id = r->shard->image->controller_id;
    if (in->include_cluster_authorized_operations)
        out->cluster_authorized_operations = CLUSTER_OPERATIONS;
    fill_brokers(r, out);
    if (wants_all(r))
        fill_all_topics(r, out);
    else
        fill_named_topics(r, out);
    request_reply(r);
}

/* Versions 10 and 11 have room for an id that they do not serve. */
static bool has_early_ids(const struct request *r)
{
    const struct metadata_request *in = r->in;

    if (r->header.api_version < 10 || r->header.api_version > 11)
        return false;
    for (int32_t i = 0; i < in->topics.n; i++)
        if (str_is_null(in->topics.v[i].name) || !uuid_is_zero(in->topics.v[i].topic_id))
            return true;
    return false;
}

static void refuse_early_ids(struct request *r)
{
    const struct metadata_request *in = r->in;
    struct metadata_response *out = r->out;

    out->topics.n = in->topics.n;
    out->topics.v = request_array(r, &metadata_response_topic_schema, in->topics.n);
    for (int32_t i = 0; i < in->topics.n; i++) {
        out->topics.v[i].error_code = ERR_INVALID_REQUEST;
        out->topics.v[i].name = STR_LIT("");
        out->topics.v[i].topic_id = in->topics.v[i].topic_id;
    }
    request_reply(r);
}

static bool wants_creation(const struct request *r)
{
    const struct metadata_request *in = r->in;
    bool allowed = r->header.api_version < 4 || in->allow_auto_topic_creation;

    if (!allowed || !config_bool(r->shard->config, CONFIG_AUTO_CREATE_TOPICS_ENABLE))
        return false;
    for (int32_t i = 0; i < in->topics.n; i++) {
        struct str name = asked_name(&in->topics.v[i]);

        if (!str_is_null(name) && !metadata_find_topic(r->shard->image, name) &&
            missing_error(name) == ERR_UNKNOWN_TOPIC_OR_PARTITION)
            return true;
    }
    return false;
}

static void tell_metadata(struct request *r)
{
    if (has_early_ids(r))
        refuse_early_ids(r);
    else if (wants_creation(r))
        request_to_control(r, topics_auto_create, answer_metadata);
    else
        answer_metadata(r);
}

void handle_metadata(struct request *r)
{
    if (broker_is_sure(r->shard))
        tell_metadata(r);
    else
        request_to_control(r, lease_await, tell_metadata);
}

/* ---- DescribeCluster -------------------------------------------------------------------- */

void handle_describe_cluster(struct request *r)
{
    const struct describe_cluster_request *in = r->in;
    struct describe_cluster_response *out = r->out;
    const struct metadata_image *image = r->shard->image;

    if (in->endpoint_type != 1) {
        out->error_code = in->endpoint_type == 2 ? ERR_MISMATCHED_ENDPOINT_TYPE
                                                 : ERR_UNSUPPORTED_ENDPOINT_TYPE;
        out->error_message = STR_LIT("only brokers (1) can be asked for here");
        out->cluster_id = STR_LIT("");
        request_reply(r);
        return;
    }
    out->cluster_id = image->cluster_id;
    out->controller_id = image->controller_id;
    if (in->include_cluster_authorized_operations)
        out->cluster_authorized_operations = CLUSTER_OPERATIONS;
    out->brokers.v =
        request_array(r, &describe_cluster_response_broker_schema, image->broker_count);
    for (int32_t i = 0; i < image->broker_count; i++) {
        const struct metadata_broker *b = image->brokers[i];
        struct describe_cluster_response_broker *to = &out->brokers.v[out->brokers.n];

        if (b->is_fenced && !in->include_fenced_brokers)
            continue;
        if (!request_broker_address(r, b, &to->host, &to->port))
            continue;
        to->broker_id = b->id;
        to->rack = b->rack;
        to->is_fenced = b->is_fenced;
        out->brokers.n++;
    }
    request_reply(r);
}

/* ---- DescribeTopicPartitions ------------------------------------------------------------ */

#define DESCRIBE_PARTITIONS_MAX 2000

struct describe_page {
    struct request *request;
    int32_t left;       /* partitions that still fit */
    struct str from;    /* topics before it are passed over */
    int32_t from_index; /* likewise partitions of it */
};

static void page_partition(struct describe_topic_partitions_response_partition *to,
                           const struct metadata_partition *from, int32_t index)
{
    to->error_code = from->leader < 0 ? ERR_LEADER_NOT_AVAILABLE : ERR_NONE;
    to->partition_index = index;
    to->leader_id = from->leader;
    to->leader_epoch = from->leader_epoch;
    IDS(to->replica_nodes, from->replicas);
    IDS(to->isr_nodes, from->isr);
    to->eligible_leader_replicas.n = 0;
    to->last_known_elr.n = 0;
}

static void page_cursor(struct describe_page *page, struct str topic, int32_t index)
{
    struct describe_topic_partitions_response *out = page->request->out;

    out->next_cursor =
        request_array(page->request, &describe_topic_partitions_response_cursor_schema, 1);
    out->next_cursor->topic_name = topic;
    out->next_cursor->partition_index = index;
}

/* False when the page is full. */
static bool page_topic(struct describe_page *page, struct str name)
{
    struct request *r = page->request;
    struct describe_topic_partitions_response *out = r->out;
    const struct metadata_topic *topic = find_visible(r->shard->image, name, uuid_zero());
    struct describe_topic_partitions_response_topic *to;
    int32_t first = str_eq(name, page->from) ? page->from_index : 0;

    if (page->left == 0) {
        page_cursor(page, name, first);
        return false;
    }
    to = &out->topics.v[out->topics.n++];
    to->name = name;
    if (!topic) {
        to->error_code = err_wire(missing_error(name));
        return true;
    }
    to->topic_id = topic->id;
    to->is_internal = topic->is_internal;
    to->topic_authorized_operations = TOPIC_OPERATIONS;
    to->partitions.v = request_array(r, &describe_topic_partitions_response_partition_schema,
                                     topic->partition_count);
    for (int32_t i = first; i < topic->partition_count; i++) {
        if (page->left == 0) {
            page_cursor(page, name, i);
            return false;
        }
        page->left--;
        page_partition(&to->partitions.v[to->partitions.n++], &topic->partitions[i], i);
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* The names to describe, sorted, each once. */
static struct str *page_names(struct request *r, int32_t *n)
{
    const struct describe_topic_partitions_request *in = r->in;
    const struct metadata_image *image = r->shard->image;
    int32_t count = in->topics.n > 0 ? in->topics.n : image->topic_count;
    struct str *names = request_alloc(r, (size_t)count * sizeof(*names));

    *n = 0;
    for (int32_t i = 0; i < count; i++)
        names[i] = in->topics.n > 0 ? in->topics.v[i].name : image->topics[i]->name;
    qsort(names, (size_t)count, sizeof(*names), by_name);
    for (int32_t i = 0; i < count; i++)
        if (*n == 0 || !str_eq(names[*n - 1], names[i]))
            names[(*n)++] = names[i];
    return names;
}

void handle_describe_topic_partitions(struct request *r)
{
    const struct describe_topic_partitions_request *in = r->in;
    struct describe_topic_partitions_response *out = r->out;
    int32_t n = 0;
    struct str *names = page_names(r, &n);
    struct describe_page page = {.request = r, .from = str_null()};

    page.left = MIN(MAX(in->response_partition_limit, 1), DESCRIBE_PARTITIONS_MAX);
    if (in->cursor) {
        page.from = in->cursor->topic_name;
        page.from_index = MAX(in->cursor->partition_index, 0);
    }
    out->topics.v = request_array(r, &describe_topic_partitions_response_topic_schema, n);
    for (int32_t i = 0; i < n; i++)
        if (str_cmp(names[i], page.from) >= 0 && !page_topic(&page, names[i]))
            break;
    request_reply(r);
}
