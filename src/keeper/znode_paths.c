/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things lie in the tree. Names of topics are safe as they are; other names of configured
 * entities (client ids, users, addresses) may hold anything, a slash too, so they are URL-encoded
 * as Java does it, except that a space is %20 and an asterisk %2A. The encoded form of a name that
 * happens to be "<default>" begins with %3C, so the default's node cannot be meant by it.
 */
#include "keeper/znodes.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"

#define DEFAULT_NAME "<default>"
#define SEQUENCE_DIGITS 10

const char *const znode_persistent_paths[] = {
    "/consumers",
    "/brokers",
    ZNODE_BROKER_IDS,
    ZNODE_TOPICS,
    "/config",
    ZNODE_CONFIG_CHANGES,
    "/admin",
    ZNODE_DELETE_TOPICS,
    ZNODE_BROKER_SEQID,
    ZNODE_ISR_CHANGES,
    ZNODE_PRODUCER_ID_BLOCK,
    ZNODE_LOG_DIR_EVENTS,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
};
const int znode_persistent_path_count = ARRAY_LEN(znode_persistent_paths);

static const char *const entity_names[] = {
    [ZNODE_ENTITY_TOPICS] = "topics", [ZNODE_ENTITY_CLIENTS] = "clients",
    [ZNODE_ENTITY_USERS] = "users",   [ZNODE_ENTITY_BROKERS] = "brokers",
    [ZNODE_ENTITY_IPS] = "ips",
};

char *znode_broker_path(int32_t id)
{
    return xasprintf(ZNODE_BROKER_IDS "/%d", id);
}

char *znode_topic_path(struct str topic)
{
    return xasprintf(ZNODE_TOPICS "/%.*s", STR_ARG(topic));
}

char *znode_partitions_path(struct str topic)
{
    return xasprintf(ZNODE_TOPICS "/%.*s/partitions", STR_ARG(topic));
}

char *znode_partition_path(struct str topic, int32_t partition)
{
    return xasprintf(ZNODE_TOPICS "/%.*s/partitions/%d", STR_ARG(topic), partition);
}

char *znode_state_path(struct str topic, int32_t partition)
{
    return xasprintf(ZNODE_TOPICS "/%.*s/partitions/%d/state", STR_ARG(topic), partition);
}

char *znode_delete_topic_path(struct str topic)
{
    return xasprintf(ZNODE_DELETE_TOPICS "/%.*s", STR_ARG(topic));
}

/* ---- Names of entities. */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

static void encode(struct buf *b, struct str name)
{
    static const char hex[] = "0123456789ABCDEF";

    for (int32_t i = 0; i < name.n; i++) {
        uint8_t c = (uint8_t)name.p[i];
        const char escape[3] = {'%', hex[c >> 4], hex[c & 15]};

        if (is_plain(name.p[i]))
            buf_append(b, &c, 1);
        else
            buf_append(b, escape, sizeof(escape));
    }
}

static char *entity_with_prefix(const char *prefix, enum znode_entity entity, struct str name)
{
    struct buf b = {0};
    char *text;

    if (str_is_null(name))
        buf_append(&b, DEFAULT_NAME, strlen(DEFAULT_NAME));
    else
        encode(&b, name);
    text = xasprintf("%s%s/%.*s", prefix, entity_names[entity], (int)b.n, (const char *)b.p);
    buf_fini(&b);
    return text;
}

char *znode_config_path(enum znode_entity entity, struct str name)
{
    return entity_with_prefix("/config/", entity, name);
}

char *znode_config_entity(enum znode_entity entity, struct str name)
{
    return entity_with_prefix("", entity, name);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character of an encoded name, of which the first `left` bytes are there; 0: malformed. */
static int32_t decode(const char *p, int32_t left, char *out)
{
    *out = *p == '+' ? ' ' : *p;
    if (*p != '%')
        return 1;
    if (left < 3 || hex_value(p[1]) < 0 || hex_value(p[2]) < 0)
        return 0;
    *out = (char)(hex_value(p[1]) << 4 | hex_value(p[2]));
    return 3;
}

enum err znode_entity_name(struct str child, struct arena *a, struct str *out)
{
    *out = str_null();
    if (str_eq_c(child, DEFAULT_NAME))
        return ERR_NONE;
    char *p = arena_alloc(a, (size_t)MAX(child.n, 1));
    int32_t n = 0;

    for (int32_t i = 0; i < child.n;) {
        int32_t used = decode(&child.p[i], child.n - i, &p[n++]);

        if (used == 0)
            return ERR_MALFORMED;
        i += used;
    }
    *out = (struct str){.p = p, .n = n};
    return ERR_NONE;
}

enum err znode_sequence(struct str child, int32_t *out)
{
    int64_t v = 0;
    int32_t from = child.n - SEQUENCE_DIGITS;

    *out = 0;
    if (from < 0)
        return ERR_MALFORMED;
    for (int32_t i = from; i < child.n; i++) {
        if (child.p[i] < '0' || child.p[i] > '9')
            return ERR_MALFORMED;
        v = v * 10 + (child.p[i] - '0');
    }
    if (v > INT32_MAX)
        return ERR_MALFORMED;
    *out = (int32_t)v;
    return ERR_NONE;
}
