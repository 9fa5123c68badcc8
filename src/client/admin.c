/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Administrative operations: each fills in a request, and one machine carries it out, so that
 * repeating and giving up have one place.
 *
 * The request and everything that it points to lie in the operation's arena and stay there over
 * all attempts. Most responses are a list of (name, error, message); they are turned into results
 * of one form, because callers treat them alike.
 *
 * What goes to a group's coordinator begins with a FindCoordinator, and so does the next attempt
 * after an answer that says that the coordinator is another one.
 */
#include "client/admin_int.h"

#include "base/assert.h"
#include "io/io.h"

#define NS_PER_MS 1000000

static int64_t now_ns(const struct admin_op *op)
{
    return io_mono_ns(io_loop_io(client_loop(op->_client)));
}

/* ---- Results. */

struct admin_result *admin__results_new(struct admin_op *op, int64_t count)
{
    struct admin_result *v = arena_calloc(&op->_arena, (size_t)MAX(count, 1), sizeof(*v));

    op->results = v;
    op->result_count = (int32_t)count;
    return v;
}

/* Each response has its own list; the loops differ in nothing but types. */
#define COLLECT(response, list, name_of)                                                           \
    do {                                                                                           \
        struct admin_result *v_ = admin__results_new(op, MAX((response)->list.n, 0));              \
        for (int32_t i_ = 0; i_ < (response)->list.n; i_++)                                        \
            v_[i_] = (struct admin_result){                                                        \
                .name = (response)->list.v[i_].name_of,                                            \
                .err = err_from_wire((response)->list.v[i_].error_code),                           \
                .message = (response)->list.v[i_].error_message,                                   \
            };                                                                                     \
    } while (0)

static void collect_topics(struct admin_op *op, const struct metadata_response *r)
{
    struct admin_result *v = admin__results_new(op, MAX(r->topics.n, 0));

    for (int32_t i = 0; i < r->topics.n; i++)
        v[i] = (struct admin_result){
            .name = r->topics.v[i].name,
            .err = err_from_wire(r->topics.v[i].error_code),
            .message = str_null(),
        };
    op->err = err_from_wire(r->error_code);
}

static void collect(struct admin_op *op)
{
    const void *r = op->_call.response;

    op->response = r;
    op->node_id = op->_call.node_id;
    switch (op->_call.api_key) {
    case API_CREATE_TOPICS: COLLECT((const struct create_topics_response *)r, topics, name); break;
    case API_DELETE_TOPICS:
        COLLECT((const struct delete_topics_response *)r, responses, name);
        break;
    case API_CREATE_PARTITIONS:
        COLLECT((const struct create_partitions_response *)r, results, name);
        break;
    case API_DESCRIBE_CONFIGS:
        COLLECT((const struct describe_configs_response *)r, results, resource_name);
        break;
    case API_INCREMENTAL_ALTER_CONFIGS:
        COLLECT((const struct incremental_alter_configs_response *)r, responses, resource_name);
        break;
    case API_METADATA: collect_topics(op, r); break;
    case API_DESCRIBE_CLUSTER:
        op->err = err_from_wire(((const struct describe_cluster_response *)r)->error_code);
        break;
    case API_API_VERSIONS:
        op->err = err_from_wire(((const struct api_versions_response *)r)->error_code);
        break;
    case API_ELECT_LEADERS:
    case API_ALTER_PARTITION_REASSIGNMENTS:
    case API_LIST_PARTITION_REASSIGNMENTS:
    case API_DESCRIBE_LOG_DIRS: admin__collect_moves(op); break;
    default: admin__collect_groups(op);
    }
}

/* ---- The machine. */

/* Nothing was attempted: another broker or a later moment will do. */
static bool is_passing(enum err err)
{
    return err == ERR_NOT_CONTROLLER || err == ERR_NOT_COORDINATOR ||
           err == ERR_COORDINATOR_NOT_AVAILABLE || err == ERR_COORDINATOR_LOAD_IN_PROGRESS;
}

/* The answer is no answer: the next attempt may find another. */
static bool should_repeat(const struct admin_op *op)
{
    const struct client_call *call = &op->_call;

    if (now_ns(op) >= op->_deadline_ns)
        return false;
    if (call->err)
        return call->err == ERR_NETWORK_EXCEPTION &&
               (op->_may_repeat || !call->was_sent || call->request == op->_seeking);
    if (op->err)
        return is_passing(op->err);
    for (int32_t i = 0; i < op->result_count; i++)
        if (!is_passing(op->results[i].err))
            return false;
    return op->result_count > 0;
}

static void repeat_later(struct admin_op *op)
{
    const struct client_config *config = client_settings(op->_client);
    int64_t ms = config->retry_backoff_ms;

    for (int32_t i = 0; i < op->_attempts && ms < config->retry_backoff_max_ms; i++)
        ms *= 2;
    op->_attempts++;
    op->_coordinator = -1;
    client_metadata_expire(op->_client);
    client_alarm_set(op->_client, &op->_alarm,
                     now_ns(op) + MIN(ms, config->retry_backoff_max_ms) * NS_PER_MS);
}

static void attempt(struct client_alarm *alarm);

static void take_coordinator(struct admin_op *op)
{
    const struct find_coordinator_response *r = op->_call.response;

    op->err = err_from_wire(r->error_code);
    if (!op->err && r->node_id < 0)
        op->err = ERR_COORDINATOR_NOT_AVAILABLE;
    if (!op->err)
        op->_coordinator = r->node_id;
}

static void answered(struct client_call *call)
{
    struct admin_op *op = CONTAINER_OF(call, struct admin_op, _call);
    bool is_seeking = call->request == op->_seeking;

    op->err = call->err;
    op->result_count = 0;
    if (!call->err && is_seeking)
        take_coordinator(op);
    else if (!call->err)
        collect(op);
    if (!op->err && is_seeking) {
        attempt(&op->_alarm);
        return;
    }
    if (should_repeat(op))
        repeat_later(op);
    else
        op->done(op);
}

static void attempt(struct client_alarm *alarm)
{
    struct admin_op *op = CONTAINER_OF(alarm, struct admin_op, _alarm);
    int64_t left_ms = (op->_deadline_ns - now_ns(op)) / NS_PER_MS;
    bool is_seeking = op->_seeking && op->_coordinator < 0;
    struct client_call *call = &op->_call;

    call->api_key = is_seeking ? (int16_t)API_FIND_COORDINATOR : op->_api_key;
    call->request = is_seeking ? op->_seeking : op->_request;
    call->version_max = is_seeking ? FIND_COORDINATOR_VERSION_ONE_MAX : op->_version_max;
    call->target = is_seeking ? CLIENT_ANY : op->_seeking ? op->_coordinator : op->_target;
    call->timeout_ms = (int32_t)MAX(left_ms, 1);
    client_call(op->_client, call);
}

void *admin__begin(struct client *c, struct admin_op *op, const struct schema *schema)
{
    void *request;

    assert(!client_call_is_pending(&op->_call));
    op->_client = c;
    op->_deadline_ns = now_ns(op) +
                       (int64_t)(op->timeout_ms ? op->timeout_ms : ADMIN_TIMEOUT_MS) * NS_PER_MS;
    op->_attempts = 0;
    op->response = NULL;
    op->results = NULL;
    op->result_count = 0;
    arena_reset(&op->_arena);
    request = arena_alloc(&op->_arena, schema_size(schema));
    wire_init(schema, request);
    op->_request = request;
    op->_seeking = NULL;
    op->_coordinator = -1;
    op->_version_max = 0;
    return request;
}

void admin__submit(struct admin_op *op, enum api_key key, int32_t target, bool may_repeat)
{
    op->_call.done = answered;
    op->_api_key = (int16_t)key;
    op->_target = target;
    op->_may_repeat = may_repeat;
    op->_alarm.ring = attempt;
    attempt(&op->_alarm);
}

int32_t admin__time_left_ms(const struct admin_op *op)
{
    return (int32_t)((op->_deadline_ns - now_ns(op)) / NS_PER_MS);
}

void admin_op_fini(struct admin_op *op)
{
    if (op->_client)
        client_alarm_clear(op->_client, &op->_alarm);
    client_call_fini(&op->_call);
    arena_fini(&op->_arena);
}

/* ---- Topics. */

/* One zeroed element in the arena. */
#define ONE_ELEMENT(op, array)                                                                     \
    ((array).n = 1, (array).v = arena_calloc(&(op)->_arena, 1, sizeof(*(array).v)), (array).v)

void admin_create_topic(struct client *c, struct admin_op *op, const struct admin_new_topic *topic)
{
    struct create_topics_request *r = admin__begin(c, op, &create_topics_request_schema);
    struct create_topics_request_topic *t = ONE_ELEMENT(op, r->topics);

    t->name = arena_str(&op->_arena, topic->name);
    t->num_partitions = topic->partitions;
    t->replication_factor = topic->replication_factor;
    t->configs.n = topic->config_count;
    t->configs.v =
        arena_calloc(&op->_arena, (size_t)MAX(topic->config_count, 1), sizeof(*t->configs.v));
    for (int32_t i = 0; i < topic->config_count; i++) {
        t->configs.v[i].name = arena_str(&op->_arena, topic->configs[i].name);
        t->configs.v[i].value = arena_str(&op->_arena, topic->configs[i].value);
    }
    r->timeout_ms = admin__time_left_ms(op);
    admin__submit(op, API_CREATE_TOPICS, CLIENT_CONTROLLER, false);
}

void admin_delete_topics(struct client *c, struct admin_op *op, const struct str *names,
                         int32_t count)
{
    struct delete_topics_request *r = admin__begin(c, op, &delete_topics_request_schema);

    r->topics.n = r->topic_names.n = count;
    r->topics.v = arena_calloc(&op->_arena, (size_t)count, sizeof(*r->topics.v));
    r->topic_names.v = arena_calloc(&op->_arena, (size_t)count, sizeof(*r->topic_names.v));
    for (int32_t i = 0; i < count; i++) {
        r->topic_names.v[i] = arena_str(&op->_arena, names[i]);
        r->topics.v[i].name = r->topic_names.v[i];
    }
    r->timeout_ms = admin__time_left_ms(op);
    admin__submit(op, API_DELETE_TOPICS, CLIENT_CONTROLLER, false);
}

void admin_create_partitions(struct client *c, struct admin_op *op, struct str topic, int32_t total)
{
    struct create_partitions_request *r = admin__begin(c, op, &create_partitions_request_schema);
    struct create_partitions_request_topic *t = ONE_ELEMENT(op, r->topics);

    t->name = arena_str(&op->_arena, topic);
    t->count = total;
    t->assignments.n = -1;
    r->timeout_ms = admin__time_left_ms(op);
    admin__submit(op, API_CREATE_PARTITIONS, CLIENT_CONTROLLER, false);
}

void admin_describe_topics(struct client *c, struct admin_op *op, const struct str *names,
                           int32_t count)
{
    struct metadata_request *r = admin__begin(c, op, &metadata_request_schema);

    r->topics.n = names ? count : -1;
    r->topics.v = arena_calloc(&op->_arena, (size_t)MAX(count, 1), sizeof(*r->topics.v));
    for (int32_t i = 0; names && i < count; i++)
        r->topics.v[i].name = arena_str(&op->_arena, names[i]);
    r->allow_auto_topic_creation = false;
    admin__submit(op, API_METADATA, CLIENT_ANY, true);
}

/* ---- Configurations. */

/* Only the broker itself knows its own; what is dynamic is the controller's business. */
static int32_t config_target(enum admin_resource type, struct str name)
{
    int64_t id;

    if (type != ADMIN_BROKER || name.n == 0 || str_to_i64(name, &id))
        return CLIENT_ANY;
    return (int32_t)id;
}

void admin_describe_configs(struct client *c, struct admin_op *op, enum admin_resource type,
                            struct str name)
{
    struct describe_configs_request *r = admin__begin(c, op, &describe_configs_request_schema);
    struct describe_configs_request_resource *resource = ONE_ELEMENT(op, r->resources);

    resource->resource_type = (int8_t)type;
    resource->resource_name = arena_str(&op->_arena, name);
    resource->configuration_keys.n = -1;
    r->include_synonyms = true;
    admin__submit(op, API_DESCRIBE_CONFIGS, config_target(type, name), true);
}

void admin_describe_topics_config(struct client *c, struct admin_op *op, const struct str *names,
                                  int32_t count, struct str key)
{
    struct describe_configs_request *r = admin__begin(c, op, &describe_configs_request_schema);
    struct str *keys = arena_alloc(&op->_arena, sizeof(*keys));

    *keys = arena_str(&op->_arena, key);
    r->resources.n = count;
    r->resources.v = arena_calloc(&op->_arena, (size_t)MAX(count, 1), sizeof(*r->resources.v));
    for (int32_t i = 0; i < count; i++) {
        r->resources.v[i].resource_type = ADMIN_TOPIC;
        r->resources.v[i].resource_name = arena_str(&op->_arena, names[i]);
        r->resources.v[i].configuration_keys.n = 1;
        r->resources.v[i].configuration_keys.v = keys;
    }
    admin__submit(op, API_DESCRIBE_CONFIGS, CLIENT_ANY, true);
}

void admin_alter_configs(struct client *c, struct admin_op *op, enum admin_resource type,
                         struct str name, const struct admin_config *configs, int32_t count)
{
    struct incremental_alter_configs_request *r =
        admin__begin(c, op, &incremental_alter_configs_request_schema);
    struct incremental_alter_configs_request_resource *resource = ONE_ELEMENT(op, r->resources);
    bool may_repeat = true;

    resource->resource_type = (int8_t)type;
    resource->resource_name = arena_str(&op->_arena, name);
    resource->configs.n = count;
    resource->configs.v =
        arena_calloc(&op->_arena, (size_t)MAX(count, 1), sizeof(*resource->configs.v));
    for (int32_t i = 0; i < count; i++) {
        resource->configs.v[i].name = arena_str(&op->_arena, configs[i].name);
        resource->configs.v[i].value = arena_str(&op->_arena, configs[i].value);
        resource->configs.v[i].config_operation = configs[i].operation;
        may_repeat = may_repeat && configs[i].operation <= 1; /* set and delete */
    }
    admin__submit(op, API_INCREMENTAL_ALTER_CONFIGS, config_target(type, name), may_repeat);
}

void admin_describe_cluster(struct client *c, struct admin_op *op)
{
    admin__begin(c, op, &describe_cluster_request_schema);
    admin__submit(op, API_DESCRIBE_CLUSTER, CLIENT_ANY, true);
}

void admin_describe_versions(struct client *c, struct admin_op *op, int32_t broker)
{
    const struct client_config *config = client_settings(c);
    struct api_versions_request *r = admin__begin(c, op, &api_versions_request_schema);

    r->client_software_name = arena_str(&op->_arena, str_of(config->software_name));
    r->client_software_version = arena_str(&op->_arena, str_of(config->software_version));
    admin__submit(op, API_API_VERSIONS, broker, true);
}
