/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CreateTopics, DeleteTopics, CreatePartitions, and topics that come into being because somebody
 * asked for their metadata.
 *
 * Making is: check against the image, one multi in the keeper for all topics of the request, logs,
 * image. Deleting is: a mark in the keeper, image without the topic, directories, then the nodes;
 * a mark that is found at start makes the broker finish the deletion.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/control.h"
#include "broker/coordinator.h"
#include "controller/controller.h"

/* ---- making ----------------------------------------------------------------------------- */

struct creation {
    struct metadata_topic *topic; /* NULL after an error */
    int32_t first_partition;      /* partitions before it are there already */
    enum err err;
    struct str message; /* in the request's arena, or static; null */
};

/* Serves all three requests: they differ in how they fill the list and in their answers. */
struct creations {
    struct task task;
    struct control *control;
    struct request *request;
    bool validate_only;
    bool is_growth;
    bool is_automatic; /* somebody asked for a topic that is not there */ /* CreatePartitions */
    void (*prepare)(struct creations *cs);
    void (*answer)(struct creations *cs);
    int pending; /* partitions being made */
    struct heard heard;
    int32_t count;
    struct creation items[];
};

static struct creations *creations_new(struct control *c, struct request *r, int32_t count)
{
    struct creations *cs = xcalloc(1, sizeof(*cs) + (size_t)count * sizeof(cs->items[0]));

    cs->control = c;
    cs->request = r;
    cs->count = count;
    for (int32_t i = 0; i < count; i++)
        cs->items[i].message = str_null();
    return cs;
}

static void creations_free(struct creations *cs)
{
    for (int32_t i = 0; i < cs->count; i++)
        metadata_topic_put(cs->items[i].topic);
    free(cs);
}

static void answer_leaves(struct heard *h)
{
    struct creations *cs = CONTAINER_OF(h, struct creations, heard);

    request_return(cs->request);
    creations_free(cs);
}

static void creations_end(struct creations *cs)
{
    struct control *c = cs->control;

    cs->answer(cs);
    answer_leaves(&cs->heard);
    control_task_end(c);
}

static void fail(struct creation *item, enum err err, struct str message)
{
    metadata_topic_put(item->topic);
    item->topic = NULL;
    item->err = err;
    item->message = str_is_null(message) ? str_of(err_text(err)) : message;
}

static void creations_published(struct control *c, void *ctx)
{
    struct creations *cs = ctx;

    control_announce(c);
    cs->answer(cs);
    /* It waits until others know of the topics; other tasks do not. */
    cs->heard.done = answer_leaves;
    control_when_heard(c, &cs->heard);
    control_task_end(c);
}

static void publish_creations(struct creations *cs)
{
    struct metadata_delta delta = {0};

    for (int32_t i = 0; i < cs->count; i++)
        if (cs->items[i].topic)
            metadata_delta_put_topic(&delta, metadata_topic_get(cs->items[i].topic));
    control_publish(cs->control, &delta, NULL, creations_published, cs);
}

struct making {
    struct creations *cs;
    struct creation *item;
};

static void partition_made(struct control *c, void *ctx, enum err err)
{
    struct making *m = ctx;
    struct creations *cs = m->cs;

    (void)c;
    /* The topic stays: what is missing is made again at the next start. */
    if (err && !m->item->err) {
        m->item->err = ERR_KAFKA_STORAGE_ERROR;
        m->item->message = str_of(err_text(err));
    }
    free(m);
    if (--cs->pending == 0)
        publish_creations(cs);
}

static void make_partition(struct creations *cs, struct creation *item, int32_t index)
{
    struct making *m = xmalloc(sizeof(*m));
    struct partition_spec spec = {
        .topic = item->topic->name.p,
        .topic_id = item->topic->id,
        .index = index,
        .state = &item->topic->partitions[index],
        .config = control_topic_config(cs->control, &item->topic->configs),
    };

    m->cs = cs;
    m->item = item;
    cs->pending++;
    control_add_partition(cs->control, &spec, partition_made, m);
}

static void creations_stored(struct control *c, void *ctx, enum err err)
{
    struct creations *cs = ctx;

    if (err)
        control_commit_failed(c);
    cs->pending = 1;
    for (int32_t i = 0; i < cs->count; i++) {
        struct creation *item = &cs->items[i];

        if (err && item->topic)
            fail(item, control_commit_error(c), STR_LIT("the metadata store refused the change"));
        if (!item->topic)
            continue;
        trace_info("topic.created", "topic=%.*s partitions=%d", STR_ARG(item->topic->name),
                   item->topic->partition_count);
        for (int32_t p = item->first_partition; p < item->topic->partition_count; p++)
            if (metadata_ids_have(&item->topic->partitions[p].replicas, c->broker->node_id))
                make_partition(cs, item, p);
    }
    if (--cs->pending == 0)
        publish_creations(cs);
}

/* Another broker is the controller: it is asked for what would have been made here. */
static void creations_forward(struct creations *cs)
{
    struct control *c = cs->control;
    const struct metadata_topic **v = xcalloc((size_t)cs->count + 1, sizeof(*v));
    int32_t n = 0;

    cs->prepare(cs);
    for (int32_t i = 0; i < cs->count; i++)
        if (cs->items[i].topic)
            v[n++] = cs->items[i].topic;
    if (n > 0)
        forward_creation(c, cs->request, v, n);
    else
        request_return(cs->request);
    free(v);
    creations_free(cs);
    control_task_end(c);
}

static void creations_run(struct control *c, struct task *t)
{
    struct creations *cs = CONTAINER_OF(t, struct creations, task);
    struct store_ops *ops = store_ops_new();

    if (control_decides(c)) {
        cs->prepare(cs);
        control_fence(c, ops);
    } else if (cs->is_automatic && c->image->controller_id >= 0) {
        store_ops_free(ops);
        creations_forward(cs);
        return;
    } else {
        for (int32_t i = 0; i < cs->count; i++)
            fail(&cs->items[i], ERR_NOT_CONTROLLER, str_null());
    }
    for (int32_t i = 0; i < cs->count && !cs->validate_only; i++) {
        struct creation *item = &cs->items[i];

        if (item->topic && cs->is_growth)
            store_grow_topic(ops, item->topic, item->first_partition);
        else if (item->topic)
            store_add_topic(ops, item->topic);
    }
    if (ops->n > control_fence_ops(c)) {
        store_commit(c, ops, creations_stored, cs);
        return;
    }
    store_ops_free(ops);
    creations_end(cs);
}

/* ---- new topics ------------------------------------------------------------------------- */

/* Of one request. Kafka's bound is 10,000 metadata records, which is nearly the same. */
#define NEW_PARTITIONS_MAX 10000
#define TOO_MANY_TEXT STR_LIT("the request makes too many partitions at once")

static struct uuid new_topic_id(struct control *c)
{
    uint64_t r[2];

    io_random(c->broker->io, r, sizeof(r));
    return uuid_from_random(r[0], r[1]);
}

/* Behind those that the topic has. `manual`: their assignments; NULL: the rule of placement. */
static void add_partitions(struct creations *cs, struct creation *item, int32_t n, int32_t rf,
                           const struct metadata_ids *manual)
{
    struct control *c = cs->control;
    struct controller_new_partitions how = {.count = n, .replication_factor = rf, .manual = manual};
    struct str message;
    enum err err;

    io_random(c->broker->io, &how.random, sizeof(how.random));
    err = controller_make_partitions(c->image, &how, &cs->request->arena, item->topic, &message);
    if (err)
        fail(item, err, message);
}

static bool is_named_twice(const struct creations *cs, int32_t at, struct str name)
{
    const struct create_topics_request *in = cs->request->in;

    for (int32_t i = 0; i < cs->count; i++)
        if (i != at && str_eq(in->topics.v[i].name, name))
            return true;
    return false;
}

static void check_name(struct creations *cs, struct creation *item, struct str name)
{
    struct control *c = cs->control;
    struct arena *arena = &cs->request->arena;
    const char *reason = NULL;
    const struct metadata_topic *other;

    if (metadata_topic_name_check(name, &reason)) {
        fail(item, ERR_INVALID_TOPIC_EXCEPTION, str_of(reason));
        return;
    }
    if (metadata_find_topic(c->image, name)) {
        fail(item, ERR_TOPIC_ALREADY_EXISTS,
             arena_printf(arena, "topic '%.*s' already exists", STR_ARG(name)));
        return;
    }
    other = metadata_find_collision(c->image, name);
    if (other)
        fail(item, ERR_INVALID_TOPIC_EXCEPTION,
             arena_printf(arena, "topic '%.*s' collides with '%.*s': '.' and '_' count as equal",
                          STR_ARG(name), STR_ARG(other->name)));
}

static int32_t factor_of(const struct control *c, const struct create_topics_request_topic *in)
{
    return in->replication_factor == -1 ? config_i32(c->config, CONFIG_DEFAULT_REPLICATION_FACTOR)
                                        : in->replication_factor;
}

/* Partitions to make; 0 after an error. */
static int32_t check_counts(struct creations *cs, struct creation *item,
                            const struct create_topics_request_topic *in)
{
    const struct config *config = cs->control->config;
    struct arena *arena = &cs->request->arena;
    int32_t n = in->num_partitions == -1 ? config_i32(config, CONFIG_NUM_PARTITIONS)
                                         : in->num_partitions;
    int32_t rf = factor_of(cs->control, in);

    if (in->assignments.n > 0) {
        if (in->num_partitions != -1 || in->replication_factor != -1) {
            fail(item, ERR_INVALID_REQUEST,
                 STR_LIT("with a manual assignment, partitions and replication factor must be -1"));
            return 0;
        }
        return in->assignments.n;
    }
    if (n < 1)
        fail(item, ERR_INVALID_PARTITIONS,
             arena_printf(arena, "number of partitions must be at least 1, not %d", n));
    else if (rf < 1)
        fail(item, ERR_INVALID_REPLICATION_FACTOR,
             STR_LIT("replication factor must be larger than 0"));
    else if (rf > cs->control->image->broker_count)
        fail(item, ERR_INVALID_REPLICATION_FACTOR,
             arena_printf(arena, "replication factor %d is larger than the number of brokers, %d",
                          rf, cs->control->image->broker_count));
    else if (n > NEW_PARTITIONS_MAX)
        fail(item, ERR_POLICY_VIOLATION, TOO_MANY_TEXT);
    return item->err ? 0 : n;
}

static bool assignment_is_here(const struct creations *cs,
                               const struct create_topics_request_assignment *a)
{
    return a->broker_ids.n == 1 && a->broker_ids.v[0] == cs->control->broker->node_id;
}

/* Of a broker alone: every replica is here. */
static void check_here(const struct creations *cs, struct creation *item,
                       const struct create_topics_request_topic *in)
{
    for (int32_t i = 0; i < in->assignments.n && !cs->control->cluster && !item->err; i++)
        if (!assignment_is_here(cs, &in->assignments.v[i]))
            fail(item, ERR_INVALID_REPLICA_ASSIGNMENT,
                 arena_printf(&cs->request->arena,
                              "replicas of partition %d must be broker %d alone",
                              in->assignments.v[i].partition_index, cs->control->broker->node_id));
}

/* Every partition once; NULL without any, or after an error. */
static const struct metadata_ids *take_assignments(struct creations *cs, struct creation *item,
                                                   const struct create_topics_request_topic *in)
{
    struct metadata_ids *manual = NULL;
    struct str message = str_null();
    enum err err;

    if (in->assignments.n <= 0)
        return NULL;
    err = controller_sort_assignments(in, &cs->request->arena, &manual, &message);
    if (err)
        fail(item, err, message);
    else
        check_here(cs, item, in);
    return item->err ? NULL : manual;
}

static void take_configs(struct creations *cs, struct creation *item,
                         const struct create_topics_request_topic *in,
                         struct config_overrides *overrides)
{
    char *message = NULL;
    enum err err = ERR_NONE;

    for (int32_t i = 0; i < in->configs.n && !err; i++) {
        if (str_is_null(in->configs.v[i].value)) {
            message = xasprintf("value of '%.*s' must not be null", STR_ARG(in->configs.v[i].name));
            err = ERR_INVALID_CONFIG;
            break;
        }
        err = topic_config_check(in->configs.v[i].name, in->configs.v[i].value, &message);
        if (!err)
            config_overrides_put(overrides, in->configs.v[i].name, in->configs.v[i].value);
    }
    if (!err)
        err = topic_config_check_all(cs->control->config, overrides, &message);
    if (err)
        fail(item, err, arena_str(&cs->request->arena, str_of(message)));
    free(message);
}

struct new_topic {
    struct str name;
    int32_t partitions;
    int32_t replication_factor;
    const struct metadata_ids *manual; /* or NULL */
    const struct config_overrides *configs;
};

static void build_topic(struct creations *cs, struct creation *item, const struct new_topic *t)
{
    item->topic = metadata_topic_new(t->name, new_topic_id(cs->control), 0);
    metadata_topic_set_configs(item->topic, t->configs);
    add_partitions(cs, item, t->partitions, t->replication_factor, t->manual);
}

static void prepare_topic(struct creations *cs, int32_t at)
{
    const struct create_topics_request *in = cs->request->in;
    const struct create_topics_request_topic *from = &in->topics.v[at];
    struct creation *item = &cs->items[at];
    struct config_overrides overrides = {0};
    struct new_topic t = {.name = from->name,
                          .replication_factor = factor_of(cs->control, from),
                          .configs = &overrides};

    if (is_named_twice(cs, at, from->name)) {
        fail(item, ERR_INVALID_REQUEST, STR_LIT("topic is named twice in the request"));
        return;
    }
    check_name(cs, item, from->name);
    if (!item->err)
        t.partitions = check_counts(cs, item, from);
    if (!item->err)
        t.manual = take_assignments(cs, item, from);
    if (!item->err)
        take_configs(cs, item, from, &overrides);
    if (!item->err)
        build_topic(cs, item, &t);
    config_overrides_fini(&overrides);
}

/* Each topic is compared with each other one, so their number has a bound first. */
static bool are_too_many(struct creations *cs)
{
    if (cs->count <= NEW_PARTITIONS_MAX)
        return false;
    for (int32_t i = 0; i < cs->count; i++)
        fail(&cs->items[i], ERR_POLICY_VIOLATION, TOO_MANY_TEXT);
    return true;
}

/* A request is one change of the keeper and opens every log at once, so it has a bound. */
static void bound_partitions(struct creations *cs)
{
    int64_t room = descriptors_partition_room(cs->control->broker);
    int64_t total = 0;

    for (int32_t i = 0; i < cs->count; i++) {
        struct creation *item = &cs->items[i];

        if (item->topic)
            total += item->topic->partition_count - item->first_partition;
        if (item->topic && total > NEW_PARTITIONS_MAX)
            fail(item, ERR_POLICY_VIOLATION, TOO_MANY_TEXT);
        if (item->topic && total > room)
            fail(item, ERR_POLICY_VIOLATION,
                 arena_printf(&cs->request->arena,
                              "the broker has open files for %lld more partitions: raise its limit "
                              "(ulimit -n, LimitNOFILE)",
                              (long long)room));
    }
}

static void prepare_topics(struct creations *cs)
{
    if (are_too_many(cs))
        return;
    for (int32_t i = 0; i < cs->count; i++)
        prepare_topic(cs, i);
    bound_partitions(cs);
}

static void fill_configs(struct creations *cs, struct create_topics_response_topic *out,
                         const struct metadata_topic *topic)
{
    struct request *r = cs->request;
    struct config_entry *entries;
    int32_t n = config_describe_topic(cs->control->config, &topic->configs, &r->arena, &entries);

    out->configs.n = n;
    out->configs.v = request_array(r, &create_topics_response_config_schema, n);
    for (int32_t i = 0; i < n; i++) {
        out->configs.v[i].name = str_of(entries[i].name);
        out->configs.v[i].value = arena_str(&r->arena, str_of(entries[i].value));
        out->configs.v[i].read_only = entries[i].is_read_only;
        out->configs.v[i].config_source = (int8_t)entries[i].source;
        out->configs.v[i].is_sensitive = entries[i].is_sensitive;
    }
}

static void answer_create(struct creations *cs)
{
    struct request *r = cs->request;
    const struct create_topics_request *in = r->in;
    struct create_topics_response *out = r->out;

    out->topics.n = cs->count;
    out->topics.v = request_array(r, &create_topics_response_topic_schema, cs->count);
    for (int32_t i = 0; i < cs->count; i++) {
        const struct creation *item = &cs->items[i];
        struct create_topics_response_topic *to = &out->topics.v[i];

        to->name = in->topics.v[i].name;
        to->error_code = err_wire(item->err);
        to->error_message = item->message;
        to->configs.n = 0;
        if (!item->topic)
            continue;
        to->topic_id = item->topic->id;
        to->num_partitions = item->topic->partition_count;
        to->replication_factor = (int16_t)item->topic->partitions[0].replicas.count;
        if (r->header.api_version >= 5)
            fill_configs(cs, to, item->topic);
    }
}

static void create_topics(struct control *c, struct request *r)
{
    const struct create_topics_request *in = r->in;
    struct creations *cs = creations_new(c, r, MAX(in->topics.n, 0));

    cs->validate_only = in->validate_only;
    cs->prepare = prepare_topics;
    cs->answer = answer_create;
    control_enqueue(c, &cs->task, creations_run);
}

void handle_create_topics(struct request *r)
{
    request_to_control(r, create_topics, request_reply);
}

/* ---- topics that metadata asked for ----------------------------------------------------- */

static void prepare_auto(struct creations *cs)
{
    const struct metadata_request *in = cs->request->in;
    struct config_overrides none = {0};
    struct new_topic t = {
        .partitions = config_i32(cs->control->config, CONFIG_NUM_PARTITIONS),
        .replication_factor = config_i32(cs->control->config, CONFIG_DEFAULT_REPLICATION_FACTOR),
        .configs = &none};

    for (int32_t i = 0; i < cs->count; i++) {
        struct str name = in->topics.v[i].name;
        bool again = false;

        for (int32_t k = 0; k < i && !again; k++)
            again = str_eq(in->topics.v[k].name, name);
        if (again || str_is_null(name) || !uuid_is_zero(in->topics.v[i].topic_id))
            continue;
        check_name(cs, &cs->items[i], name);
        t.name = name;
        if (!cs->items[i].err)
            build_topic(cs, &cs->items[i], &t);
    }
    bound_partitions(cs);
}

static void answer_auto(struct creations *cs)
{
    (void)cs; /* The shard answers from its image. */
}

void topics_auto_create(struct control *c, struct request *r)
{
    const struct metadata_request *in = r->in;
    struct creations *cs = creations_new(c, r, MIN(MAX(in->topics.n, 0), NEW_PARTITIONS_MAX));

    cs->is_automatic = true;
    cs->prepare = prepare_auto;
    cs->answer = answer_auto;
    control_enqueue(c, &cs->task, creations_run);
}

/* ---- the topic of groups ---------------------------------------------------------------- */

static void put_number(struct config_overrides *o, const char *name, int64_t v)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)v);
    config_overrides_put(o, str_of(name), str_of(text));
}

/* A topic's segment.bytes has a lower limit, offsets.topic.segment.bytes has none. */
#define SEGMENT_BYTES_MIN (1 << 20)

static void prepare_group_topic(struct creations *cs)
{
    const struct config *config = cs->control->config;
    int64_t segment_bytes = config_i64(config, CONFIG_OFFSETS_TOPIC_SEGMENT_BYTES);
    struct config_overrides o = {0};
    struct new_topic t = {
        .name = str_of(GROUP_TOPIC),
        .partitions = config_i32(config, CONFIG_OFFSETS_TOPIC_NUM_PARTITIONS),
        .replication_factor =
            cs->control->cluster ? config_i32(config, CONFIG_OFFSETS_TOPIC_REPLICATION_FACTOR) : 1,
        .configs = &o,
    };

    if (metadata_find_topic(cs->control->image, str_of(GROUP_TOPIC)))
        return;
    config_overrides_put(&o, STR_LIT("cleanup.policy"), STR_LIT("compact"));
    config_overrides_put(&o, STR_LIT("compression.type"), STR_LIT("producer"));
    put_number(&o, segment_bytes < SEGMENT_BYTES_MIN ? "internal.segment.bytes" : "segment.bytes",
               segment_bytes);
    build_topic(cs, &cs->items[0], &t);
    config_overrides_fini(&o);
}

void topics_create_group_topic(struct control *c, struct request *r)
{
    struct creations *cs = creations_new(c, r, 1);

    cs->is_automatic = true;
    cs->prepare = prepare_group_topic;
    cs->answer = answer_auto;
    control_enqueue(c, &cs->task, creations_run);
}

/* ---- more partitions -------------------------------------------------------------------- */

static void check_growth(struct creations *cs, struct creation *item,
                         const struct create_partitions_request_topic *in,
                         const struct metadata_topic *topic)
{
    struct arena *arena = &cs->request->arena;

    if (in->count <= topic->partition_count) {
        fail(item, ERR_INVALID_PARTITIONS,
             arena_printf(arena, "topic has %d partitions, the new count must be larger (%d asked)",
                          topic->partition_count, in->count));
        return;
    }
    if (in->count - topic->partition_count > NEW_PARTITIONS_MAX) {
        fail(item, ERR_POLICY_VIOLATION, TOO_MANY_TEXT);
        return;
    }
    if (in->assignments.n >= 0 && in->assignments.n != in->count - topic->partition_count) {
        fail(item, ERR_INVALID_REPLICA_ASSIGNMENT,
             arena_printf(arena, "%d partitions are new but %d assignments are given",
                          in->count - topic->partition_count, in->assignments.n));
        return;
    }
    for (int32_t i = 0; i < in->assignments.n && !cs->control->cluster; i++)
        if (in->assignments.v[i].broker_ids.n != 1 ||
            in->assignments.v[i].broker_ids.v[0] != cs->control->broker->node_id) {
            fail(item, ERR_INVALID_REPLICA_ASSIGNMENT,
                 arena_printf(arena, "replicas must be broker %d alone",
                              cs->control->broker->node_id));
            return;
        }
}

static void grow_topic(struct creations *cs, struct creation *item,
                       const struct create_partitions_request_topic *in,
                       const struct metadata_topic *topic)
{
    int32_t n = in->count - topic->partition_count;
    struct metadata_ids *manual = NULL;

    check_growth(cs, item, in, topic);
    if (item->err)
        return;
    if (in->assignments.n >= 0)
        manual = arena_calloc(&cs->request->arena, (size_t)n, sizeof(*manual));
    for (int32_t i = 0; i < in->assignments.n; i++)
        manual[i] = (struct metadata_ids){.ids = in->assignments.v[i].broker_ids.v,
                                          .count = MAX(in->assignments.v[i].broker_ids.n, 0)};
    item->first_partition = topic->partition_count;
    item->topic = metadata_topic_copy(topic);
    add_partitions(cs, item, n, topic->partitions[0].replicas.count, manual);
}

static void prepare_growth(struct creations *cs)
{
    const struct create_partitions_request *in = cs->request->in;

    if (are_too_many(cs))
        return;
    for (int32_t i = 0; i < cs->count; i++) {
        const struct create_partitions_request_topic *from = &in->topics.v[i];
        struct creation *item = &cs->items[i];
        const struct metadata_topic *topic = metadata_find_topic(cs->control->image, from->name);

        for (int32_t k = 0; k < cs->count; k++)
            if (k != i && str_eq(in->topics.v[k].name, from->name))
                fail(item, ERR_INVALID_REQUEST, STR_LIT("topic is named twice in the request"));
        if (item->err)
            continue;
        if (topic)
            grow_topic(cs, item, from, topic);
        else
            fail(item, ERR_UNKNOWN_TOPIC_OR_PARTITION, str_null());
    }
    bound_partitions(cs);
}

static void answer_growth(struct creations *cs)
{
    struct request *r = cs->request;
    const struct create_partitions_request *in = r->in;
    struct create_partitions_response *out = r->out;

    out->results.n = cs->count;
    out->results.v = request_array(r, &create_partitions_response_result_schema, cs->count);
    for (int32_t i = 0; i < cs->count; i++) {
        out->results.v[i].name = in->topics.v[i].name;
        out->results.v[i].error_code = err_wire(cs->items[i].err);
        out->results.v[i].error_message = cs->items[i].message;
    }
}

static void create_partitions(struct control *c, struct request *r)
{
    const struct create_partitions_request *in = r->in;
    struct creations *cs = creations_new(c, r, MAX(in->topics.n, 0));

    cs->validate_only = in->validate_only;
    cs->is_growth = true;
    cs->prepare = prepare_growth;
    cs->answer = answer_growth;
    control_enqueue(c, &cs->task, creations_run);
}

void handle_create_partitions(struct request *r)
{
    request_to_control(r, create_partitions, request_reply);
}
