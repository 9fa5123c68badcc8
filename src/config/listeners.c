/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners, and the rules between keys.
 *
 * `listeners` and `advertised.listeners` are lists of name://host:port. A name stands for a
 * security protocol by listener.security.protocol.map; a listener that asks for a protocol which
 * is not served is an error and never opened in plain text instead. Names of
 * controller.listener.names are for a role that this program does not have: they are left out, so
 * that the file of a combined Kafka node works.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "config/config_int.h"

static const char *const protocol_names[] = {
    [CONFIG_PROTOCOL_PLAINTEXT] = "PLAINTEXT",
    [CONFIG_PROTOCOL_SSL] = "SSL",
    [CONFIG_PROTOCOL_SASL_PLAINTEXT] = "SASL_PLAINTEXT",
    [CONFIG_PROTOCOL_SASL_SSL] = "SASL_SSL",
};

static enum err invalid(char **message, char *text)
{
    *message = text;
    return ERR_INVALID_CONFIG;
}

static int32_t list_count(struct str list)
{
    struct str item;
    int32_t n = 0;

    while (config_list_next(&list, &item))
        n++;
    return n;
}

static bool list_has(struct str list, struct str word)
{
    struct str item;

    while (config_list_next(&list, &item))
        if (str_eq(item, word))
            return true;
    return false;
}

/* Listener names are compared without regard to case, as Kafka normalises them. */
static bool same_name(struct str a, struct str b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, (size_t)a.n) == 0;
}

static bool list_has_name(struct str list, struct str name)
{
    struct str item;

    while (config_list_next(&list, &item))
        if (same_name(item, name))
            return true;
    return false;
}

static bool parse_port(struct str text, int32_t *port)
{
    int64_t value;

    if (str_to_i64(text, &value) || value < 0 || value > 65535)
        return false;
    *port = (int32_t)value;
    return true;
}

static struct str strip_brackets(struct str host)
{
    if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        return (struct str){host.p + 1, host.n - 2};
    return host;
}

/* host:port; the last colon ends the host, so that IPv6 works in brackets. */
static bool parse_address(struct str text, struct str *host, int32_t *port)
{
    const char *colon = memrchr(text.p, ':', (size_t)text.n);

    if (!colon)
        return false;
    *host = strip_brackets((struct str){text.p, (int32_t)(colon - text.p)});
    return parse_port((struct str){colon + 1, text.n - (int32_t)(colon - text.p) - 1}, port);
}

/* name://host:port. */
static bool parse_entry(struct str text, struct config_listener *out)
{
    const char *scheme = memmem(text.p, (size_t)text.n, "://", 3);
    struct str rest;

    *out = (struct config_listener){0};
    if (!scheme || scheme == text.p)
        return false;
    out->name = (struct str){text.p, (int32_t)(scheme - text.p)};
    rest = (struct str){scheme + 3, text.n - out->name.n - 3};
    return parse_address(rest, &out->host, &out->port);
}

static bool protocol_by_name(struct str name, enum config_protocol *out)
{
    for (size_t i = 0; i < ARRAY_LEN(protocol_names); i++) {
        if (same_name(name, str_of(protocol_names[i]))) {
            *out = (enum config_protocol)i;
            return true;
        }
    }
    return false;
}

/* By the map, which holds name:PROTOCOL. */
static bool protocol_of(const struct config *c, struct str name, enum config_protocol *out)
{
    struct str rest = config_str(c, CONFIG_LISTENER_SECURITY_PROTOCOL_MAP);
    struct str item;

    while (config_list_next(&rest, &item)) {
        const char *colon = memrchr(item.p, ':', (size_t)item.n);
        int32_t n = colon ? (int32_t)(colon - item.p) : 0;

        if (colon && same_name((struct str){item.p, n}, name))
            return protocol_by_name((struct str){colon + 1, item.n - n - 1}, out);
    }
    return false;
}

static bool is_for_controller(const struct config *c, struct str name)
{
    return list_has_name(config_str(c, CONFIG_CONTROLLER_LISTENER_NAMES), name);
}

int32_t config_listeners(const struct config *c, enum config_key key, struct arena *a,
                         struct config_listener **out)
{
    struct str rest = config_str(c, key);
    struct str item;
    int32_t n = 0;

    *out = arena_calloc(a, (size_t)list_count(rest) + 1, sizeof(**out));
    assert(*out);
    while (config_list_next(&rest, &item)) {
        struct config_listener *l = &(*out)[n];
        bool is_good = parse_entry(item, l);

        assert(is_good);
        if (is_for_controller(c, l->name))
            continue;
        is_good = protocol_of(c, l->name, &l->protocol);
        assert(is_good);
        n++;
    }
    return n;
}

bool config_http_address(const struct config *c, struct str *host, uint16_t *port)
{
    struct str text = config_str(c, CONFIG_HTTP_ADDRESS);
    int32_t number = 0;

    *port = 0;
    if (text.n <= 0 || !parse_address(text, host, &number))
        return false;
    *port = (uint16_t)number;
    return true;
}

/* ---- Validation. */

static enum err check_entry(const struct config *c, const char *key, struct str item,
                            char **message)
{
    struct config_listener l;

    if (!parse_entry(item, &l))
        return invalid(message, xasprintf("%s: %.*s is not name://host:port; for example "
                                          "PLAINTEXT://localhost:9092",
                                          key, STR_ARG(item)));
    if (is_for_controller(c, l.name))
        return ERR_NONE;
    if (!protocol_of(c, l.name, &l.protocol))
        return invalid(message, xasprintf("%s: listener %.*s has no security protocol; add "
                                          "%.*s:PLAINTEXT to listener.security.protocol.map",
                                          key, STR_ARG(l.name), STR_ARG(l.name)));
    if (l.protocol != CONFIG_PROTOCOL_PLAINTEXT)
        return invalid(message, xasprintf("%s: listener %.*s asks for %s, which is not supported "
                                          "yet; remove it or use PLAINTEXT on a trusted network",
                                          key, STR_ARG(l.name), protocol_names[l.protocol]));
    return ERR_NONE;
}

static struct str name_of_entry(struct str item)
{
    struct config_listener l;
    bool is_good = parse_entry(item, &l);

    assert(is_good);
    return l.name;
}

/* Whether an entry of this name stands before `end` in the list. */
static bool is_named_before(struct str list, const char *end, struct str name)
{
    struct str item;

    while (config_list_next(&list, &item) && (!end || item.p < end))
        if (same_name(name_of_entry(item), name))
            return true;
    return false;
}

static enum err check_entries(const struct config *c, enum config_key key, char **message)
{
    struct str list = config_str(c, key);
    struct str rest = list;
    struct str item;

    while (config_list_next(&rest, &item)) {
        enum err err = check_entry(c, config_name(key), item, message);
        struct str name;

        if (err)
            return err;
        name = name_of_entry(item);
        if (is_named_before(list, item.p, name))
            return invalid(message, xasprintf("%s: two listeners are named %.*s; give one "
                                              "another name in listener.security.protocol.map",
                                              config_name(key), STR_ARG(name)));
    }
    return ERR_NONE;
}

static enum err check_listeners(const struct config *c, char **message)
{
    struct str rest = config_str(c, CONFIG_LISTENERS);
    struct str item;
    enum err err = check_entries(c, CONFIG_LISTENERS, message);

    if (err)
        return err;
    while (config_list_next(&rest, &item))
        if (!is_for_controller(c, name_of_entry(item)))
            return ERR_NONE;
    return invalid(message, xasprintf("listeners: there is none for clients; add "
                                      "PLAINTEXT://localhost:9092"));
}

static bool is_any_address(struct str host)
{
    return host.n == 0 || str_eq_c(host, "0.0.0.0") || str_eq_c(host, "::");
}

static enum err check_advertised(const struct config *c, char **message)
{
    struct str rest = config_str(c, CONFIG_ADVERTISED_LISTENERS);
    struct str item;
    enum err err = check_entries(c, CONFIG_ADVERTISED_LISTENERS, message);

    if (err)
        return err;
    while (config_list_next(&rest, &item)) {
        struct config_listener l;

        if (!parse_entry(item, &l) || is_for_controller(c, l.name))
            continue;
        if (is_any_address(l.host))
            return invalid(message, xasprintf("advertised.listeners: %.*s is no address that "
                                              "clients could reach; give the name or address of "
                                              "this host",
                                              STR_ARG(item)));
        if (!is_named_before(config_str(c, CONFIG_LISTENERS), NULL, l.name))
            return invalid(message, xasprintf("advertised.listeners: %.*s is not among listeners; "
                                              "add it there or remove it here",
                                              STR_ARG(l.name)));
    }
    return ERR_NONE;
}

static enum err check_inter_broker(const struct config *c, char **message)
{
    struct str name = config_str(c, CONFIG_INTER_BROKER_LISTENER_NAME);

    if (name.n <= 0 || (!is_for_controller(c, name) &&
                        is_named_before(config_str(c, CONFIG_LISTENERS), NULL, name)))
        return ERR_NONE;
    return invalid(message, xasprintf("inter.broker.listener.name=%.*s is not among listeners; "
                                      "add it there or remove it here",
                                      STR_ARG(name)));
}

static enum err check_http(const struct config *c, char **message)
{
    struct str text = config_str(c, CONFIG_HTTP_ADDRESS);
    struct str host;
    uint16_t port;

    if (text.n <= 0 || config_http_address(c, &host, &port))
        return ERR_NONE;
    return invalid(message, xasprintf("http.address=%.*s is not host:port; for example "
                                      "127.0.0.1:9464",
                                      STR_ARG(text)));
}

/* A single broker must not be taken for a member of the cluster that the file speaks of. */
static enum err check_quorum(const struct config *c, enum config_key key, char **message)
{
    if (list_count(config_str(c, key)) <= 1)
        return ERR_NONE;
    return invalid(message, xasprintf("%s names several controllers, but there is no controller "
                                      "quorum here; remove it to run a broker of its own",
                                      config_name(key)));
}

static enum err check_roles(const struct config *c, char **message)
{
    struct str roles = config_str(c, CONFIG_PROCESS_ROLES);

    if (list_count(roles) == 0 || list_has(roles, STR_LIT("broker")))
        return ERR_NONE;
    return invalid(message, xasprintf("process.roles=%.*s is not supported here: this program is "
                                      "always a broker; remove it or add broker",
                                      STR_ARG(roles)));
}

static enum err check_ids(const struct config *c, char **message)
{
    const char *node_id = c->layers[CONFIG_LAYER_STATIC][CONFIG_NODE_ID];
    const char *broker_id = c->layers[CONFIG_LAYER_STATIC][CONFIG_BROKER_ID];

    if (node_id && broker_id &&
        config__number(CONFIG_NODE_ID, node_id).i != config__number(CONFIG_BROKER_ID, broker_id).i)
        return invalid(message, xasprintf("node.id=%s and broker.id=%s differ; remove broker.id",
                                          node_id, broker_id));
    return ERR_NONE;
}

static enum err check_dirs(const struct config *c, char **message)
{
    struct str list = config_str(c, CONFIG_LOG_DIRS);
    struct str rest = list;
    struct str item;

    if (list_count(list) == 0)
        return invalid(message, xasprintf("log.dirs is empty; name a directory or remove it"));
    while (config_list_next(&rest, &item))
        if (list_has(rest, item))
            return invalid(message,
                           xasprintf("log.dirs names %.*s twice; remove one", STR_ARG(item)));
    return ERR_NONE;
}

static enum err check_budget(const struct config *c, char **message)
{
    int64_t budget = config_i64(c, CONFIG_QUEUED_MAX_REQUEST_BYTES);
    int64_t request = config_i64(c, CONFIG_SOCKET_REQUEST_MAX_BYTES);

    if (budget >= request)
        return ERR_NONE;
    return invalid(message, xasprintf("queued.max.request.bytes=%lld holds less than one request "
                                      "of socket.request.max.bytes=%lld; raise the first",
                                      (long long)budget, (long long)request));
}

/* To ignore it would keep one copy of what was to have several. */
static enum err check_replicas(const struct config *c, char **message)
{
    int32_t n = config_i32(c, CONFIG_DEFAULT_REPLICATION_FACTOR);

    if (n == 1 || config_str(c, CONFIG_ZOOKEEPER_CONNECT).n > 0)
        return ERR_NONE;
    return invalid(message, xasprintf("default.replication.factor=%d needs other brokers; set "
                                      "zookeeper.connect, or remove it",
                                      n));
}

enum err config_validate(const struct config *c, char **message)
{
    enum err err;

    *message = NULL;
    err = check_listeners(c, message);
    if (!err)
        err = check_advertised(c, message);
    if (!err)
        err = check_inter_broker(c, message);
    if (!err)
        err = check_http(c, message);
    if (!err)
        err = check_roles(c, message);
    if (!err)
        err = check_quorum(c, CONFIG_CONTROLLER_QUORUM_VOTERS, message);
    if (!err)
        err = check_quorum(c, CONFIG_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS, message);
    if (!err)
        err = check_ids(c, message);
    if (!err)
        err = check_dirs(c, message);
    if (!err)
        err = check_replicas(c, message);
    return err ? err : check_budget(c, message);
}
