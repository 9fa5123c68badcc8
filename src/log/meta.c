/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a log directory belongs to (meta.properties) and which topic a partition directory holds
 * (partition.metadata).
 *
 * meta.properties is in the syntax of Java's properties, of which three things matter: comments,
 * separators (`=`, `:` or a blank), and backslashes, with which Java writes a cluster id that ends
 * in `==`. Version 0 (with `broker.id`) was ZooKeeper's time, version 1 (with `node.id`) is
 * KRaft's. A file keeps its version, because each kind of Kafka reads its own; a new one has
 * version 1 when node and cluster are known.
 */
#include "base/alloc.h"
#include "log/files_int.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static void skip_blanks(struct str *s)
{
    while (s->n > 0 && is_blank(*s->p)) {
        s->p++;
        s->n--;
    }
}

/* Splits a line into key and value, backslashes taken out of both; false for a comment. */
static bool split(struct str line, struct buf *key, struct buf *value)
{
    struct buf *to = key;

    buf_reset(key);
    buf_reset(value);
    skip_blanks(&line);
    if (line.n == 0 || *line.p == '#' || *line.p == '!')
        return false;
    while (line.n > 0) {
        char c = *line.p++;
        line.n--;
        bool is_separator = c == '=' || c == ':' || is_blank(c);
        if (to == key && is_separator) {
            skip_blanks(&line);
            if (is_blank(c) && line.n > 0 && (*line.p == '=' || *line.p == ':')) {
                line.p++;
                line.n--;
                skip_blanks(&line);
            }
            to = value;
            continue;
        }
        if (c == '\\' && line.n > 0) {
            c = *line.p++;
            line.n--;
        }
        buf_append(to, &c, 1);
    }
    return true;
}

static struct str text_of(const struct buf *b)
{
    return (struct str){.p = b->n > 0 ? (const char *)b->p : "", .n = (int32_t)b->n};
}

/* No blanks and no control characters: those would be read back as something else. */
static bool is_plain(struct str s)
{
    for (int32_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
            return false;
    }
    return true;
}

static enum err take_property(struct str key, struct str value, struct meta_properties *m)
{
    int64_t number;

    if (str_eq_c(key, "version")) {
        if (str_to_i64(value, &number))
            return ERR_CORRUPT;
        m->is_version_0 = number == 0;
        return number == 0 || number == 1 ? ERR_NONE : ERR_BAD_VERSION;
    }
    if (str_eq_c(key, "broker.id") || str_eq_c(key, "node.id")) {
        if (str_to_i64(value, &number) || number < 0 || number > INT32_MAX)
            return ERR_CORRUPT;
        m->node_id = (int32_t)number;
    } else if (str_eq_c(key, "cluster.id")) {
        if (!is_plain(value))
            return ERR_CORRUPT;
        free(m->cluster_id);
        m->cluster_id = str_dup(value);
    } else if (str_eq_c(key, "directory.id")) {
        return uuid_from_text(value, &m->directory_id) ? ERR_CORRUPT : ERR_NONE;
    }
    return ERR_NONE;
}

void meta_properties_fini(struct meta_properties *m)
{
    free(m->cluster_id);
    *m = (struct meta_properties){.node_id = -1};
}

enum err meta_properties_parse(struct str text, struct meta_properties *m)
{
    struct buf key, value;
    struct str line;
    enum err err = ERR_NONE;

    *m = (struct meta_properties){.node_id = -1, .is_version_0 = true};
    buf_init(&key);
    buf_init(&value);
    while (!err && text_next_line(&text, &line)) {
        if (split(line, &key, &value))
            err = take_property(text_of(&key), text_of(&value), m);
    }
    buf_fini(&key);
    buf_fini(&value);
    if (err)
        meta_properties_fini(m);
    return err;
}

static void put_text(struct buf *out, const char *s)
{
    buf_append(out, s, strlen(s));
}

static void put_escaped(struct buf *out, const char *s)
{
    for (; *s; s++) {
        if (strchr(":=#!\\", *s))
            buf_append(out, "\\", 1);
        buf_append(out, s, 1);
    }
}

void meta_properties_format(const struct meta_properties *m, struct buf *out)
{
    bool is_v1 = !m->is_version_0 && m->cluster_id && m->node_id >= 0;
    char line[64];

    buf_reset(out);
    put_text(out, "#\n#Strandline\n");
    put_text(out, is_v1 ? "version=1\n" : "version=0\n");
    if (m->node_id >= 0) {
        snprintf(line, sizeof(line), "%s=%d\n", is_v1 ? "node.id" : "broker.id", m->node_id);
        put_text(out, line);
    }
    if (m->cluster_id) {
        put_text(out, "cluster.id=");
        put_escaped(out, m->cluster_id);
        put_text(out, "\n");
    }
    if (!uuid_is_zero(m->directory_id)) {
        char id[UUID_TEXT_BYTES];
        uuid_to_text(m->directory_id, id);
        snprintf(line, sizeof(line), "directory.id=%s\n", id);
        put_text(out, line);
    }
}

/* "key: value", Kafka's line in partition.metadata. */
static bool colon_value(struct str line, const char *key, struct str *value)
{
    struct str name;

    if (!text_next_word(&line, &name) || !text_next_word(&line, value))
        return false;
    return name.n > 0 && name.p[name.n - 1] == ':' &&
           str_eq_c((struct str){.p = name.p, .n = name.n - 1}, key);
}

enum err partition_metadata_parse(struct str text, struct uuid *topic_id)
{
    struct str line, value;
    int64_t version;

    *topic_id = uuid_zero();
    if (!text_next_line(&text, &line) || !colon_value(line, "version", &value) ||
        str_to_i64(value, &version) || version < 0)
        return ERR_CORRUPT;
    if (!text_next_line(&text, &line) || !colon_value(line, "topic_id", &value))
        return ERR_CORRUPT;
    if (uuid_from_text(value, topic_id) || uuid_is_zero(*topic_id))
        return ERR_CORRUPT;
    return ERR_NONE;
}

void partition_metadata_format(struct uuid topic_id, struct buf *out)
{
    char id[UUID_TEXT_BYTES];

    buf_reset(out);
    uuid_to_text(topic_id, id);
    put_text(out, "version: 0\ntopic_id: ");
    put_text(out, id);
}
