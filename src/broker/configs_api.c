/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DescribeConfigs, and the two ways to alter: AlterConfigs replaces all overrides of a resource,
 * IncrementalAlterConfigs (KIP-339) edits them. Each resource is altered whole or not at all; all
 * resources of a request go to the keeper in one multi. A change is in force everywhere when it is
 * answered.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/planted.h"
#include "broker/control.h"

enum resource_type {
    RESOURCE_TOPIC = 2,
    RESOURCE_BROKER = 4,
};

/* ---- describe --------------------------------------------------------------------------- */

static bool is_wanted(const struct describe_configs_request_resource *in, const char *name)
{
    if (in->configuration_keys.n <= 0) /* Null means all, and in Kafka an empty list does too. */
        return true;
    for (int32_t i = 0; i < in->configuration_keys.n; i++)
        if (str_eq_c(in->configuration_keys.v[i], name))
            return true;
    return false;
}

static struct str copy(struct request *r, const char *s)
{
    return arena_str(&r->arena, str_of(s));
}

static void fill_synonyms(struct request *r, struct describe_configs_response_config *to,
                          const struct config_entry *e)
{
    to->synonyms.n = e->synonym_count;
    to->synonyms.v = request_array(r, &describe_configs_response_synonym_schema, e->synonym_count);
    for (int32_t i = 0; i < e->synonym_count; i++) {
        to->synonyms.v[i].name = copy(r, e->synonyms[i].name);
        to->synonyms.v[i].value = copy(r, e->synonyms[i].value);
        to->synonyms.v[i].source = (int8_t)e->synonyms[i].source;
    }
}

static void fill_entries(struct request *r, const struct describe_configs_request_resource *in,
                         struct describe_configs_response_result *out,
                         const struct config_entry *entries, int32_t n)
{
    const struct describe_configs_request *request = r->in;

    out->configs.v = request_array(r, &describe_configs_response_config_schema, n);
    for (int32_t i = 0; i < n; i++) {
        const struct config_entry *e = &entries[i];
        struct describe_configs_response_config *to = &out->configs.v[out->configs.n];

        if (!is_wanted(in, e->name))
            continue;
        out->configs.n++;
        to->name = copy(r, e->name);
        to->value = copy(r, e->value);
        to->read_only = e->is_read_only;
        to->is_default = e->source == CONFIG_SOURCE_DEFAULT;
        to->config_source = (int8_t)e->source;
        to->is_sensitive = e->is_sensitive;
        to->config_type = (int8_t)e->type;
        to->documentation = request->include_documentation ? copy(r, e->documentation) : str_null();
        if (request->include_synonyms)
            fill_synonyms(r, to, e);
    }
}

/* Which broker a resource of brokers names: METADATA_ALL_BROKERS for the empty name. */
static enum err broker_of(const struct broker *b, struct str name, int32_t *id)
{
    int64_t v = 0;

    *id = METADATA_ALL_BROKERS;
    if (name.n <= 0)
        return ERR_NONE;
    if (str_to_i64(name, &v) || v != b->node_id)
        return ERR_INVALID_REQUEST;
    *id = (int32_t)v;
    return ERR_NONE;
}

static void describe_resource(struct control *c, struct request *r,
                              const struct describe_configs_request_resource *in,
                              struct describe_configs_response_result *out)
{
    struct config_entry *entries = NULL;
    int32_t n = 0;
    int32_t id;
    enum err err = ERR_NONE;

    if (in->resource_type == RESOURCE_TOPIC) {
        const struct metadata_topic *topic = metadata_find_topic(c->image, in->resource_name);
        const char *reason;

        if (topic)
            n = config_describe_topic(c->config, &topic->configs, &r->arena, &entries);
        else
            err = metadata_topic_name_check(in->resource_name, &reason)
                      ? ERR_INVALID_TOPIC_EXCEPTION
                      : ERR_UNKNOWN_TOPIC_OR_PARTITION;
    } else if (in->resource_type == RESOURCE_BROKER) {
        err = broker_of(c->broker, in->resource_name, &id);
        if (!err && id == METADATA_ALL_BROKERS)
            n = config_describe_defaults(c->config, &r->arena, &entries);
        else if (!err)
            n = config_describe_broker(c->config, &r->arena, &entries);
    } else {
        err = ERR_INVALID_REQUEST;
    }
    out->error_code = err_wire(err);
    out->error_message = err ? str_of(err_text(err)) : str_null();
    fill_entries(r, in, out, entries, n);
}

static void describe(struct control *c, struct request *r)
{
    const struct describe_configs_request *in = r->in;
    struct describe_configs_response *out = r->out;

    out->results.n = MAX(in->resources.n, 0);
    out->results.v = request_array(r, &describe_configs_response_result_schema, out->results.n);
    for (int32_t i = 0; i < out->results.n; i++) {
        out->results.v[i].resource_type = in->resources.v[i].resource_type;
        out->results.v[i].resource_name = in->resources.v[i].resource_name;
        describe_resource(c, r, &in->resources.v[i], &out->results.v[i]);
    }
    request_return(r);
}

void handle_describe_configs(struct request *r)
{
    request_to_control(r, describe, request_reply);
}

/* ---- alter ------------------------------------------------------------------------------ */

/* One change of one resource, of either request. */
struct alter_pair {
    enum config_op op;
    struct str name;
    struct str value;
};

struct alteration {
    int8_t type;
    struct str name;
    int32_t broker_id;
    struct alter_pair *pairs; /* in the request's arena */
    int32_t pair_count;
    struct config_overrides result;
    enum err err;
    struct str message;
};

struct alterations {
    struct task task;
    struct control *control;
    struct request *request;
    bool replaces; /* AlterConfigs: what is not named is removed */
    bool validate_only;
    void (*answer)(struct alterations *as);
    int32_t count;
    struct alteration items[];
};

static void alterations_end(struct alterations *as)
{
    struct control *c = as->control;

    as->answer(as);
    request_return(as->request);
    for (int32_t i = 0; i < as->count; i++)
        config_overrides_fini(&as->items[i].result);
    free(as);
    control_task_end(c);
}

static void alterations_published(struct control *c, void *ctx)
{
    (void)c;
    alterations_end(ctx);
}

/* The configuration with the broker alterations of the request; NULL when there are none. */
static struct config *altered_config(struct alterations *as)
{
    struct config *next = NULL;

    for (int32_t i = 0; i < as->count; i++) {
        struct alteration *a = &as->items[i];

        if (a->err || a->type != RESOURCE_BROKER)
            continue;
        if (!next)
            next = config_copy(as->control->config);
        config_set_dynamic(next,
                           a->broker_id == METADATA_ALL_BROKERS ? CONFIG_SOURCE_DYNAMIC_DEFAULT
                                                                : CONFIG_SOURCE_DYNAMIC_BROKER,
                           &a->result);
    }
    return next;
}

static void alterations_stored(struct control *c, void *ctx, enum err err)
{
    struct alterations *as = ctx;
    struct metadata_delta delta = {0};

    for (int32_t i = 0; i < as->count; i++) {
        struct alteration *a = &as->items[i];

        if (err && !a->err) {
            a->err = control_commit_error(c);
            a->message = STR_LIT("the metadata store refused the change");
        }
        if (a->err)
            continue;
        trace_info("config.altered", "type=%s name=%.*s",
                   a->type == RESOURCE_TOPIC ? "topic" : "broker", STR_ARG(a->name));
        if (a->type == RESOURCE_TOPIC)
            metadata_delta_set_topic_configs(&delta, a->name, &a->result);
        else
            metadata_delta_set_broker_configs(&delta, a->broker_id, &a->result);
    }
    control_publish(c, &delta, altered_config(as), alterations_published, as);
}

static void apply_pairs(struct alterations *as, struct alteration *a)
{
    enum config_source layer = a->broker_id == METADATA_ALL_BROKERS ? CONFIG_SOURCE_DYNAMIC_DEFAULT
                                                                    : CONFIG_SOURCE_DYNAMIC_BROKER;
    char *message = NULL;

    for (int32_t i = 0; i < a->pair_count && !a->err; i++) {
        const struct alter_pair *p = &a->pairs[i];

        a->err = a->type == RESOURCE_TOPIC
                     ? config_alter_topic(&a->result, p->op, p->name, p->value, &message)
                     : config_alter_broker(&a->result, layer, p->op, p->name, p->value, &message);
    }
    if (!a->err && a->type == RESOURCE_TOPIC)
        a->err = topic_config_check_all(as->control->config, &a->result, &message);
    if (a->err)
        a->message = arena_str(&as->request->arena, str_of(message ? message : err_text(a->err)));
    free(message);
}

static bool is_repeated(const struct alterations *as, int32_t at)
{
    for (int32_t i = 0; i < as->count; i++)
        if (i != at && as->items[i].type == as->items[at].type &&
            str_eq(as->items[i].name, as->items[at].name))
            return true;
    return false;
}

/* Where a log comes from is no setting that a replacement of all settings could mean. */
static void keep_adopted(struct config_overrides *next, const struct config_overrides *now)
{
    struct str name = str_of(config_name(CONFIG_TOPIC_ADOPTED));
    const char *value = config_overrides_get(now, name);

    if (value)
        config_overrides_put(next, name, str_of(value));
}

static enum err topic_missing(struct str name)
{
    const char *reason;

    if (name.n <= 0)
        return ERR_INVALID_REQUEST; /* As Kafka, which has no default for all topics. */
    return metadata_topic_name_check(name, &reason) ? ERR_INVALID_TOPIC_EXCEPTION
                                                    : ERR_UNKNOWN_TOPIC_OR_PARTITION;
}

/* Which of two values would hold is nobody's guess. */
static bool has_repeated_key(const struct alteration *a)
{
    for (int32_t i = 1; i < a->pair_count; i++)
        for (int32_t k = 0; k < i; k++)
            if (str_eq(a->pairs[i].name, a->pairs[k].name))
                return true;
    return false;
}

static void prepare_alteration(struct alterations *as, int32_t at)
{
    struct alteration *a = &as->items[at];
    struct control *c = as->control;
    const struct config_overrides *now = NULL;

    a->message = str_null();
    if (is_repeated(as, at)) {
        a->err = ERR_INVALID_REQUEST;
    } else if (a->type == RESOURCE_TOPIC) {
        const struct metadata_topic *topic = metadata_find_topic(c->image, a->name);

        a->err = topic ? ERR_NONE : topic_missing(a->name);
        now = topic ? &topic->configs : NULL;
    } else if (a->type == RESOURCE_BROKER) {
        a->err = broker_of(c->broker, a->name, &a->broker_id);
        now = metadata_broker_overrides(c->image, a->broker_id);
    } else {
        a->err = ERR_INVALID_REQUEST;
    }
    if (!a->err && has_repeated_key(a))
        a->err = ERR_INVALID_REQUEST;
    if (a->err) {
        a->message = str_of(err_text(a->err));
        return;
    }
    if (!as->replaces)
        config_overrides_copy(&a->result, now);
    else if (a->type == RESOURCE_TOPIC)
        keep_adopted(&a->result, now);
    apply_pairs(as, a);
}

static bool has_broker_node(const struct control *c, int32_t broker_id)
{
    for (int32_t i = 0; i < c->image->broker_config_count; i++)
        if (c->image->broker_configs[i].broker_id == broker_id)
            return true;
    return false;
}

static void note_for_others(struct store_ops *ops, const struct alteration *a)
{
    char id[16];

    snprintf(id, sizeof(id), "%d", a->broker_id);
    if (a->type == RESOURCE_TOPIC)
        store_note_config_change(ops, ZNODE_ENTITY_TOPICS, a->name);
    else
        store_note_config_change(ops, ZNODE_ENTITY_BROKERS,
                                 a->broker_id == METADATA_ALL_BROKERS ? str_null() : str_of(id));
}

static void alterations_run(struct control *c, struct task *t)
{
    struct alterations *as = CONTAINER_OF(t, struct alterations, task);
    struct store_ops *ops = store_ops_new();

    for (int32_t i = 0; i < as->count; i++) {
        struct alteration *a = &as->items[i];

        prepare_alteration(as, i);
        if (a->err || as->validate_only)
            continue;
        if (a->type == RESOURCE_TOPIC)
            store_set_topic_configs(ops, a->name, &a->result);
        else
            store_set_broker_configs(ops, a->broker_id, has_broker_node(c, a->broker_id),
                                     &a->result);
        if (c->cluster)
            note_for_others(ops, a);
    }
    if (PLANTED(CONFIG_NOT_STORED) && ops->n > 0) {
        store_ops_free(ops);
        alterations_stored(c, as, ERR_NONE);
        return;
    }
    if (ops->n > 0) {
        store_commit(c, ops, alterations_stored, as);
        return;
    }
    store_ops_free(ops);
    alterations_end(as);
}

static struct alterations *alterations_new(struct control *c, struct request *r, int32_t count)
{
    struct alterations *as = xcalloc(1, sizeof(*as) + (size_t)count * sizeof(as->items[0]));

    as->control = c;
    as->request = r;
    as->count = count;
    return as;
}

static struct alter_pair *pairs_new(struct request *r, struct alteration *a, int32_t n)
{
    a->pair_count = MAX(n, 0);
    a->pairs = arena_calloc(&r->arena, (size_t)MAX(n, 1), sizeof(*a->pairs));
    return a->pairs;
}

/* ---- AlterConfigs ----------------------------------------------------------------------- */

static void answer_alter(struct alterations *as)
{
    struct request *r = as->request;
    struct alter_configs_response *out = r->out;

    out->responses.n = as->count;
    out->responses.v = request_array(r, &alter_configs_response_resource_schema, as->count);
    for (int32_t i = 0; i < as->count; i++) {
        out->responses.v[i].error_code = err_wire(as->items[i].err);
        out->responses.v[i].error_message = as->items[i].message;
        out->responses.v[i].resource_type = as->items[i].type;
        out->responses.v[i].resource_name = as->items[i].name;
    }
}

static void alter(struct control *c, struct request *r)
{
    const struct alter_configs_request *in = r->in;
    struct alterations *as = alterations_new(c, r, MAX(in->resources.n, 0));

    as->replaces = true;
    as->validate_only = in->validate_only;
    as->answer = answer_alter;
    for (int32_t i = 0; i < as->count; i++) {
        const struct alter_configs_request_resource *from = &in->resources.v[i];
        struct alter_pair *pairs = pairs_new(r, &as->items[i], from->configs.n);

        as->items[i].type = from->resource_type;
        as->items[i].name = from->resource_name;
        for (int32_t k = 0; k < as->items[i].pair_count; k++)
            pairs[k] = (struct alter_pair){CONFIG_OP_SET, from->configs.v[k].name,
                                           from->configs.v[k].value};
    }
    control_enqueue(c, &as->task, alterations_run);
}

void handle_alter_configs(struct request *r)
{
    request_to_control(r, alter, request_reply);
}

/* ---- IncrementalAlterConfigs ------------------------------------------------------------ */

static void answer_incremental(struct alterations *as)
{
    struct request *r = as->request;
    struct incremental_alter_configs_response *out = r->out;

    out->responses.n = as->count;
    out->responses.v =
        request_array(r, &incremental_alter_configs_response_resource_schema, as->count);
    for (int32_t i = 0; i < as->count; i++) {
        out->responses.v[i].error_code = err_wire(as->items[i].err);
        out->responses.v[i].error_message = as->items[i].message;
        out->responses.v[i].resource_type = as->items[i].type;
        out->responses.v[i].resource_name = as->items[i].name;
    }
}

static void alter_incrementally(struct control *c, struct request *r)
{
    const struct incremental_alter_configs_request *in = r->in;
    struct alterations *as = alterations_new(c, r, MAX(in->resources.n, 0));

    as->validate_only = in->validate_only;
    as->answer = answer_incremental;
    for (int32_t i = 0; i < as->count; i++) {
        const struct incremental_alter_configs_request_resource *from = &in->resources.v[i];
        struct alter_pair *pairs = pairs_new(r, &as->items[i], from->configs.n);

        as->items[i].type = from->resource_type;
        as->items[i].name = from->resource_name;
        for (int32_t k = 0; k < as->items[i].pair_count; k++)
            pairs[k] = (struct alter_pair){(enum config_op)from->configs.v[k].config_operation,
                                           from->configs.v[k].name, from->configs.v[k].value};
    }
    control_enqueue(c, &as->task, alterations_run);
}

void handle_incremental_alter_configs(struct request *r)
{
    request_to_control(r, alter_incrementally, request_reply);
}
