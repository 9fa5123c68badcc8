/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes' JSON. jansson builds and reads it: json_pack and json_unpack check types by a format,
 * so a function shows the layout of its node in one line. Integers are read as 64 bits and then
 * checked, because a narrower read would cut them silently.
 *
 * Kafka writes some numbers as strings (timestamps, bounds of producer ids, even one version);
 * that is kept. Arrays and strings that a parser returns are copied to the arena before the JSON
 * value is released.
 */
#include "keeper/znodes.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

#define NUMBER_TEXT_BYTES 24

/* ---- Both ways. */

/* Takes the value; NULL stays NULL. */
static char *to_text(json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

    json_decref(value);
    return text;
}

/* NULL unless it is an object. */
static json_t *object_of(struct bytes data)
{
    if (data.n <= 0)
        return NULL;
    json_t *value = json_loadb((const char *)data.p, (size_t)data.n, 0, NULL);

    if (json_is_object(value))
        return value;
    json_decref(value);
    return NULL;
}

static struct str str_copy(struct arena *a, json_t *string)
{
    return arena_str(
        a, (struct str){.p = json_string_value(string), .n = (int32_t)json_string_length(string)});
}

static enum err int32_of(int64_t v, int32_t *out)
{
    *out = (int32_t)v;
    return v < INT32_MIN || v > INT32_MAX ? ERR_MALFORMED : ERR_NONE;
}

static enum err int32_field(json_t *object, const char *key, int32_t *out)
{
    json_t *v = json_object_get(object, key);

    *out = 0;
    return json_is_integer(v) ? int32_of(json_integer_value(v), out) : ERR_MALFORMED;
}

/* An integer that is written as a string. */
static enum err text_field(json_t *object, const char *key, int64_t *out)
{
    const char *text = json_string_value(json_object_get(object, key));

    *out = 0;
    return text && !str_to_i64(str_of(text), out) ? ERR_NONE : ERR_MALFORMED;
}

static void number_text(int64_t v, char text[static NUMBER_TEXT_BYTES])
{
    snprintf(text, NUMBER_TEXT_BYTES, "%lld", (long long)v);
}

static json_t *ids_json(const struct metadata_ids *ids)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < ids->count; i++)
        json_array_append_new(array, json_integer(ids->ids[i]));
    return array;
}

static enum err ids_parse(json_t *array, struct arena *a, struct metadata_ids *out)
{
    size_t n = json_array_size(array);

    *out = (struct metadata_ids){.count = 0};
    if (!json_is_array(array))
        return ERR_MALFORMED;
    out->ids = arena_alloc(a, MAX(n, 1) * sizeof(*out->ids));
    for (size_t i = 0; i < n; i++) {
        json_t *id = json_array_get(array, i);

        if (!json_is_integer(id) || int32_of(json_integer_value(id), &out->ids[i]))
            return ERR_MALFORMED;
        out->count++;
    }
    return ERR_NONE;
}

/* ---- Small nodes. */

char *znode_controller_json(int32_t broker_id, int64_t now_ms)
{
    char time[NUMBER_TEXT_BYTES];

    number_text(now_ms, time);
    return to_text(json_pack("{s:i, s:i, s:s, s:i}", "version", 2, "brokerid", broker_id,
                             "timestamp", time, "kraftControllerEpoch", -1));
}

enum err znode_controller_parse(struct bytes data, int32_t *broker_id)
{
    json_t *o = object_of(data);
    enum err err = int32_field(o, "brokerid", broker_id);

    json_decref(o);
    return err;
}

char *znode_epoch_text(int32_t epoch)
{
    return xasprintf("%d", epoch);
}

enum err znode_epoch_parse(struct bytes data, int32_t *epoch)
{
    int64_t v;
    enum err err = str_to_i64((struct str){.p = (const char *)data.p, .n = data.n}, &v);

    *epoch = 0;
    return err ? ERR_MALFORMED : int32_of(v, epoch);
}

char *znode_cluster_id_json(struct str id)
{
    return to_text(
        json_pack("{s:s, s:s%}", "version", "1", "id", id.n > 0 ? id.p : "", MAX(id.n, 0)));
}

enum err znode_cluster_id_parse(struct bytes data, struct arena *a, struct str *id)
{
    json_t *o = object_of(data);
    json_t *v = json_object_get(o, "id");
    bool is_there = json_is_string(v);

    *id = is_there ? str_copy(a, v) : str_null();
    json_decref(o);
    return is_there ? ERR_NONE : ERR_MALFORMED;
}

char *znode_producer_ids_json(const struct znode_producer_ids *ids)
{
    char first[NUMBER_TEXT_BYTES], last[NUMBER_TEXT_BYTES];

    number_text(ids->first, first);
    number_text(ids->last, last);
    return to_text(json_pack("{s:i, s:i, s:s, s:s}", "version", 1, "broker", ids->broker_id,
                             "block_start", first, "block_end", last));
}

enum err znode_producer_ids_parse(struct bytes data, struct znode_producer_ids *out)
{
    *out = (struct znode_producer_ids){.broker_id = -1, .last = -1};
    if (data.n <= 0)
        return ERR_NONE;
    json_t *o = object_of(data);
    enum err err = int32_field(o, "broker", &out->broker_id);

    if (!err)
        err = text_field(o, "block_start", &out->first);
    if (!err)
        err = text_field(o, "block_end", &out->last);
    json_decref(o);
    return err;
}

char *znode_log_dir_event_json(int32_t broker_id)
{
    return to_text(json_pack("{s:i, s:i, s:i}", "version", 1, "broker", broker_id, "event", 1));
}

enum err znode_log_dir_event_parse(struct bytes data, int32_t *broker_id)
{
    json_t *o = object_of(data);
    enum err err = int32_field(o, "broker", broker_id);

    json_decref(o);
    return err;
}

char *znode_feature_json(void)
{
    return to_text(json_pack("{s:{}, s:i, s:i}", "features", "version", 2, "status", 1));
}

/* ---- Brokers. */

static char *endpoint_text(const struct znode_endpoint *e)
{
    bool is_v6 = e->host.n > 0 && memchr(e->host.p, ':', (size_t)e->host.n);

    return xasprintf("%.*s://%s%.*s%s:%d", STR_ARG(e->listener), is_v6 ? "[" : "", STR_ARG(e->host),
                     is_v6 ? "]" : "", e->port);
}

static json_t *endpoints_json(const struct znode_broker *b)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < b->endpoint_count; i++) {
        char *text = endpoint_text(&b->endpoints[i]);

        json_array_append_new(array, json_string(text));
        free(text);
    }
    return array;
}

static json_t *str_json(struct str s)
{
    return json_stringn(s.n > 0 ? s.p : "", (size_t)MAX(s.n, 0));
}

static json_t *protocols_json(const struct znode_broker *b)
{
    json_t *map = json_object();

    for (int32_t i = 0; i < b->endpoint_count; i++) {
        char *listener = str_dup(b->endpoints[i].listener);

        json_object_set_new(map, listener, str_json(b->endpoints[i].protocol));
        free(listener);
    }
    return map;
}

/* For readers from before there were listeners. */
static const struct znode_endpoint *first_plaintext(const struct znode_broker *b)
{
    for (int32_t i = 0; i < b->endpoint_count; i++)
        if (str_eq_c(b->endpoints[i].protocol, "PLAINTEXT"))
            return &b->endpoints[i];
    return NULL;
}

char *znode_broker_json(const struct znode_broker *b)
{
    const struct znode_endpoint *plain = first_plaintext(b);
    char time[NUMBER_TEXT_BYTES];

    number_text(b->timestamp_ms, time);
    json_t *o = json_pack(
        "{s:{}, s:o, s:o, s:i, s:i, s:o, s:i, s:s}", "features", "listener_security_protocol_map",
        protocols_json(b), "endpoints", endpoints_json(b), "jmx_port", b->jmx_port, "port",
        plain ? plain->port : -1, "host", plain ? str_json(plain->host) : json_null(), "version", 5,
        "timestamp", time);

    if (o && !str_is_null(b->rack) && json_object_set_new(o, "rack", str_json(b->rack)) != 0) {
        json_decref(o);
        return NULL;
    }
    return to_text(o);
}

static bool has_bracket(struct str s)
{
    return s.n > 0 && (memchr(s.p, '[', (size_t)s.n) || memchr(s.p, ']', (size_t)s.n));
}

/* "LISTENER://host:port", where the host may be in brackets. */
static enum err endpoint_parse(const char *text, struct arena *a, struct znode_endpoint *e)
{
    const char *host = strstr(text, "://");
    const char *colon = strrchr(text, ':');
    int64_t port;

    if (!host || host == text || colon == host)
        return ERR_MALFORMED;
    e->listener = arena_str(a, (struct str){.p = text, .n = (int32_t)(host - text)});
    host += 3;
    if (str_to_i64(str_of(colon + 1), &port) || int32_of(port, &e->port))
        return ERR_MALFORMED;
    struct str name = {.p = host, .n = (int32_t)(colon - host)};

    if (name.n >= 2 && name.p[0] == '[' && name.p[name.n - 1] == ']')
        name = (struct str){.p = name.p + 1, .n = name.n - 2};
    if (has_bracket(name))
        return ERR_MALFORMED;
    e->host = arena_str(a, name);
    return ERR_NONE;
}

/* Without a map, listeners are named after their protocols. */
static enum err protocol_parse(json_t *map, struct arena *a, struct znode_endpoint *e)
{
    e->protocol = e->listener;
    if (!map)
        return ERR_NONE;
    char *listener = str_dup(e->listener);
    json_t *protocol = json_object_get(map, listener);

    free(listener);
    if (!json_is_string(protocol))
        return ERR_MALFORMED;
    e->protocol = str_copy(a, protocol);
    return ERR_NONE;
}

static enum err endpoints_parse(json_t *o, struct arena *a, struct znode_broker *out)
{
    json_t *list = json_object_get(o, "endpoints");
    json_t *map = json_object_get(o, "listener_security_protocol_map");
    size_t n = json_array_size(list);
    enum err err = json_is_array(list) ? ERR_NONE : ERR_MALFORMED;

    out->endpoints = arena_calloc(a, MAX(n, 1), sizeof(*out->endpoints));
    for (size_t i = 0; i < n && !err; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        struct znode_endpoint *e = &out->endpoints[out->endpoint_count++];

        err = text ? endpoint_parse(text, a, e) : ERR_MALFORMED;
        if (!err)
            err = protocol_parse(map, a, e);
    }
    return err;
}

/* Version 1 knew one address. */
static enum err old_endpoint_parse(json_t *o, struct arena *a, struct znode_broker *out)
{
    json_t *host = json_object_get(o, "host");

    out->endpoints = arena_calloc(a, 1, sizeof(*out->endpoints));
    out->endpoint_count = 1;
    out->endpoints[0].listener = out->endpoints[0].protocol = STR_LIT("PLAINTEXT");
    if (!json_is_string(host))
        return ERR_MALFORMED;
    out->endpoints[0].host = str_copy(a, host);
    if (has_bracket(out->endpoints[0].host))
        return ERR_MALFORMED;
    return int32_field(o, "port", &out->endpoints[0].port);
}

enum err znode_broker_parse(struct bytes data, struct arena *a, struct znode_broker *out)
{
    json_t *o = object_of(data);
    json_t *rack = json_object_get(o, "rack");
    int32_t version;
    enum err err = int32_field(o, "version", &version);

    *out = (struct znode_broker){.rack = str_null()};
    if (!err)
        err = int32_field(o, "jmx_port", &out->jmx_port);
    if (!err)
        err = version < 2 ? old_endpoint_parse(o, a, out) : endpoints_parse(o, a, out);
    if (json_is_string(rack))
        out->rack = str_copy(a, rack);
    if (text_field(o, "timestamp", &out->timestamp_ms))
        out->timestamp_ms = 0; /* nobody needs it */
    json_decref(o);
    return err;
}

/* ---- Topics. */

/* With is_sparse only partitions with replicas. */
static json_t *assignment_json(const struct metadata_ids *by_partition, int32_t count,
                               bool is_sparse)
{
    json_t *map = json_object();
    char key[NUMBER_TEXT_BYTES];

    for (int32_t i = 0; i < count && by_partition; i++) {
        if (is_sparse && by_partition[i].count == 0)
            continue;
        number_text(i, key);
        json_object_set_new(map, key, ids_json(&by_partition[i]));
    }
    return map;
}

char *znode_topic_json(const struct znode_topic *t)
{
    int32_t n = t->partition_count;
    char id[UUID_TEXT_BYTES];
    json_t *id_json;

    uuid_to_text(t->id, id);
    id_json = uuid_is_zero(t->id) ? NULL : json_string(id);
    return to_text(json_pack(
        "{s:o, s:o*, s:o, s:o, s:i}", "partitions", assignment_json(t->replicas, n, false),
        "topic_id", id_json, "adding_replicas", assignment_json(t->adding, n, true),
        "removing_replicas", assignment_json(t->removing, n, true), "version", 3));
}

/* Fills `out`, by partition, of which there are `count`. */
static enum err assignment_parse(json_t *map, struct arena *a, int32_t count,
                                 struct metadata_ids **out)
{
    const char *key;
    json_t *ids;

    *out = arena_calloc(a, (size_t)MAX(count, 1), sizeof(**out));
    if (map && !json_is_object(map))
        return ERR_MALFORMED;
    json_object_foreach(map, key, ids)
    {
        int64_t i;

        if (str_to_i64(str_of(key), &i) || i < 0 || i >= count || (*out)[i].ids)
            return ERR_MALFORMED;
        if (ids_parse(ids, a, &(*out)[i]))
            return ERR_MALFORMED;
    }
    return ERR_NONE;
}

static enum err topic_id_parse(json_t *id, struct uuid *out)
{
    if (!id)
        return ERR_NONE;
    return json_is_string(id) ? uuid_from_text(str_of(json_string_value(id)), out) : ERR_MALFORMED;
}

/* As many keys as the highest possible index, each once: no gap. */
enum err znode_topic_parse(struct bytes data, struct arena *a, struct znode_topic *out)
{
    json_t *o = object_of(data);
    json_t *partitions = json_object_get(o, "partitions");
    int32_t n = (int32_t)json_object_size(partitions);
    enum err err = partitions ? ERR_NONE : ERR_MALFORMED;

    *out = (struct znode_topic){.partition_count = n};
    if (!err)
        err = assignment_parse(partitions, a, n, &out->replicas);
    if (!err)
        err = assignment_parse(json_object_get(o, "adding_replicas"), a, n, &out->adding);
    if (!err)
        err = assignment_parse(json_object_get(o, "removing_replicas"), a, n, &out->removing);
    if (!err)
        err = topic_id_parse(json_object_get(o, "topic_id"), &out->id);
    json_decref(o);
    return err;
}

char *znode_state_json(const struct znode_state *s)
{
    json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:o}", "controller_epoch", s->controller_epoch,
                          "leader", s->leader, "version", 1, "leader_epoch", s->leader_epoch, "isr",
                          ids_json(&s->isr));

    if (s->is_recovering)
        json_object_set_new(o, "leader_recovery_state", json_integer(1));
    return to_text(o);
}

enum err znode_state_parse(struct bytes data, struct arena *a, struct znode_state *out)
{
    json_t *o = object_of(data);
    json_t *recovery = json_object_get(o, "leader_recovery_state");
    enum err err = int32_field(o, "leader", &out->leader);

    *out = (struct znode_state){.leader = out->leader};
    if (!err)
        err = int32_field(o, "leader_epoch", &out->leader_epoch);
    if (!err)
        err = int32_field(o, "controller_epoch", &out->controller_epoch);
    if (!err)
        err = ids_parse(json_object_get(o, "isr"), a, &out->isr);
    if (!err && recovery && !json_is_integer(recovery))
        err = ERR_MALFORMED;
    out->is_recovering = json_integer_value(recovery) == 1;
    json_decref(o);
    return err;
}

/* ---- Configuration. */

char *znode_config_json(const struct config_overrides *o)
{
    json_t *config = json_object();
    int failed = 0;

    for (int32_t i = 0; i < o->count; i++)
        failed |= json_object_set_new(config, o->pairs[i].name, json_string(o->pairs[i].value));
    if (failed) {
        json_decref(config);
        return NULL;
    }
    return to_text(json_pack("{s:i, s:o}", "version", 1, "config", config));
}

enum err znode_config_parse(struct bytes data, struct config_overrides *out)
{
    *out = (struct config_overrides){.count = 0};
    if (data.n < 0)
        return ERR_NONE;
    json_t *o = object_of(data);
    json_t *config = json_object_get(o, "config");
    enum err err = json_is_object(config) ? ERR_NONE : ERR_MALFORMED;
    const char *key;
    json_t *value;

    json_object_foreach(config, key, value)
    {
        if (json_is_string(value))
            config_overrides_put(out, str_of(key), str_of(json_string_value(value)));
        else
            err = ERR_MALFORMED;
    }
    json_decref(o);
    return err;
}

char *znode_config_change_json(const char *entity)
{
    return to_text(json_pack("{s:i, s:s}", "version", 2, "entity_path", entity));
}

enum err znode_config_change_parse(struct bytes data, struct arena *a, struct str *entity)
{
    json_t *o = object_of(data);
    json_t *path = json_object_get(o, "entity_path");
    json_t *type = json_object_get(o, "entity_type"); /* version 1 */
    json_t *name = json_object_get(o, "entity_name");
    enum err err = ERR_NONE;

    *entity = str_null();
    if (json_is_string(path))
        *entity = str_copy(a, path);
    else if (json_is_string(type) && json_is_string(name))
        *entity = arena_printf(a, "%s/%s", json_string_value(type), json_string_value(name));
    else
        err = ERR_MALFORMED;
    json_decref(o);
    return err;
}

/* ---- Lists of partitions. */

static json_t *partition_json(const struct znode_partition *p, bool is_reassignment)
{
    json_t *o = json_pack("{s:o, s:i}", "topic", str_json(p->topic), "partition", p->partition);

    if (o && is_reassignment)
        json_object_set_new(o, "replicas", ids_json(&p->replicas));
    return o;
}

char *znode_partitions_json(const struct znode_partitions *list, bool is_reassignment)
{
    json_t *array = json_array();
    int failed = 0;

    for (int32_t i = 0; i < list->count; i++)
        failed |= json_array_append_new(array, partition_json(&list->v[i], is_reassignment));
    if (failed) {
        json_decref(array);
        return NULL;
    }
    return to_text(json_pack("{s:i, s:o}", "version", 1, "partitions", array));
}

static enum err partition_parse(json_t *o, bool is_reassignment, struct arena *a,
                                struct znode_partition *out)
{
    json_t *topic = json_object_get(o, "topic");
    enum err err = int32_field(o, "partition", &out->partition);

    if (err || !json_is_string(topic))
        return ERR_MALFORMED;
    out->topic = str_copy(a, topic);
    return is_reassignment ? ids_parse(json_object_get(o, "replicas"), a, &out->replicas)
                           : ERR_NONE;
}

enum err znode_partitions_parse(struct bytes data, bool is_reassignment, struct arena *a,
                                struct znode_partitions *out)
{
    json_t *o = object_of(data);
    json_t *list = json_object_get(o, "partitions");
    size_t n = json_array_size(list);
    enum err err = json_is_array(list) ? ERR_NONE : ERR_MALFORMED;

    *out = (struct znode_partitions){.v = arena_calloc(a, MAX(n, 1), sizeof(*out->v))};
    for (size_t i = 0; i < n && !err; i++)
        err = partition_parse(json_array_get(list, i), is_reassignment, a, &out->v[out->count++]);
    json_decref(o);
    return err;
}
