/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading what another broker's tools print about the configurations of topics.
 *
 * Three texts are understood, told apart by how they begin, line by line, because people put the
 * output of several commands into one file:
 *
 *   {"orders": {"retention.ms": {"value": "-1", "source": "topic"}}}       our own, as JSON
 *   Dynamic configs for topic orders are:                                  kafka-configs.sh
 *     retention.ms=-1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=-1, ...}
 *   Topic: orders <tab> ... <tab> Configs: retention.ms=-1,segment.bytes=1048576   kafka-topics.sh
 *
 * What counts is every value that was in force there and was not a default: a retention that came
 * from that broker's own file must not be lost with it. Whether a value is one that this broker
 * takes is not asked here.
 */
#include "broker/import_int.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void import_fini(struct import *im)
{
    for (int32_t i = 0; i < im->count; i++) {
        free(im->v[i].name);
        config_overrides_fini(&im->v[i].configs);
    }
    free(im->v);
    *im = (struct import){NULL, 0};
}

static struct import_topic *find(const struct import *im, struct str topic)
{
    for (int32_t i = 0; i < im->count; i++)
        if (str_eq_c(topic, im->v[i].name))
            return &im->v[i];
    return NULL;
}

const struct config_overrides *import_find(const struct import *im, struct str topic)
{
    struct import_topic *t = find(im, topic);

    return t ? &t->configs : NULL;
}

static struct import_topic *find_or_add(struct import *im, struct str topic)
{
    struct import_topic *t = find(im, topic);

    if (t)
        return t;
    im->v = xreallocarray(im->v, (size_t)im->count + 1, sizeof(*im->v));
    t = &im->v[im->count++];
    *t = (struct import_topic){.name = str_dup(topic)};
    return t;
}

/* ---- Text ------------------------------------------------------------------------------- */

static struct str slice(const char *from, const char *to)
{
    return (struct str){.p = from, .n = (int32_t)(to - from)};
}

static const char *find_text(struct str s, const char *needle)
{
    return memmem(s.p, (size_t)s.n, needle, strlen(needle));
}

static bool starts_with(struct str s, const char *prefix)
{
    int32_t n = (int32_t)strlen(prefix);

    return s.n >= n && memcmp(s.p, prefix, (size_t)n) == 0;
}

static struct str next_line(struct str *rest)
{
    const char *end = memchr(rest->p, '\n', (size_t)rest->n);
    struct str line = slice(rest->p, end ? end : rest->p + rest->n);

    rest->n -= line.n + (end != NULL);
    rest->p += line.n + (end != NULL);
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    return line;
}

static void put_pair(struct import_topic *t, struct str pair)
{
    const char *equals = memchr(pair.p, '=', (size_t)pair.n);

    if (equals && equals > pair.p)
        config_overrides_put(&t->configs, slice(pair.p, equals),
                             slice(equals + 1, pair.p + pair.n));
}

/* "Dynamic configs for topic NAME are:", "All configs for topic NAME are:". */
static bool heading_of_configs(struct str line, struct str *topic)
{
    const char *name = find_text(line, "onfigs for topic ");
    const char *end = find_text(line, " are:");

    if (!name || !end || line.n == 0 || *line.p == ' ')
        return false;
    name += strlen("onfigs for topic ");
    *topic = slice(name, end);
    return name < end;
}

/* "  key=value sensitive=false synonyms={WHERE_FROM:...}", of which defaults say nothing. */
static void line_of_configs(struct import_topic *t, struct str line)
{
    const char *sensitive = find_text(line, " sensitive=");
    const char *synonyms = find_text(line, " synonyms={");

    if (!sensitive || !synonyms || sensitive > synonyms)
        return;
    synonyms += strlen(" synonyms={");
    if (starts_with(slice(synonyms, line.p + line.n), "DEFAULT_CONFIG:") || *synonyms == '}')
        return;
    line = slice(line.p, sensitive);
    while (line.n > 0 && *line.p == ' ') {
        line.p++;
        line.n--;
    }
    put_pair(t, line);
}

/* Where the next "key=" begins behind a comma: a value may hold commas too. */
static const char *end_of_pair(struct str pairs)
{
    const char *end = pairs.p + pairs.n;
    const char *comma = memchr(pairs.p, ',', (size_t)pairs.n);

    while (comma) {
        const char *next = memchr(comma + 1, ',', (size_t)(end - comma - 1));

        if (memchr(comma + 1, '=', (size_t)((next ? next : end) - comma - 1)))
            return comma;
        comma = next;
    }
    return end;
}

/* "Topic: NAME<tab>...<tab>Configs: key=value,key=value"; lines of partitions begin with a tab. */
static void line_of_topics(struct import *im, struct str line)
{
    struct str name = slice(line.p + strlen("Topic: "), line.p + line.n);
    const char *tab = memchr(name.p, '\t', (size_t)name.n);
    const char *configs = find_text(line, "Configs: ");
    struct import_topic *t;
    struct str rest;

    if (!tab || !configs)
        return;
    t = find_or_add(im, slice(name.p, tab));
    rest = slice(configs + strlen("Configs: "), line.p + line.n);
    while (rest.n > 0) {
        const char *end = end_of_pair(rest);
        bool is_last = end == rest.p + rest.n;

        put_pair(t, slice(rest.p, end));
        rest = slice(end + !is_last, rest.p + rest.n);
    }
}

static void parse_lines(struct str text, struct import *im)
{
    int32_t current = -1; /* an index: adding moves them */
    struct str topic;

    while (text.n > 0) {
        struct str line = next_line(&text);

        if (starts_with(line, "Topic: ")) {
            line_of_topics(im, line);
            current = -1;
        } else if (heading_of_configs(line, &topic)) {
            current = (int32_t)(find_or_add(im, topic) - im->v);
        } else if (starts_with(line, "  ") && current >= 0) {
            line_of_configs(&im->v[current], line);
        }
    }
}

/* ---- JSON ------------------------------------------------------------------------------- */

/* A key's value: text, or an object that says where it is from. */
static const char *value_of(json_t *v)
{
    const char *source = json_string_value(json_object_get(v, "source"));

    if (json_is_string(v))
        return json_string_value(v);
    if (source && strcmp(source, "default") == 0)
        return NULL;
    return json_string_value(json_object_get(v, "value"));
}

static void parse_json(json_t *topics, struct import *im)
{
    const char *name, *key;
    json_t *configs, *v;

    json_object_foreach(topics, name, configs)
    {
        struct import_topic *t;

        if (!json_is_object(configs))
            continue;
        t = find_or_add(im, str_of(name));
        json_object_foreach(configs, key, v)
        {
            const char *value = value_of(v);

            if (value)
                config_overrides_put(&t->configs, str_of(key), str_of(value));
        }
    }
}

/* ---- Both ------------------------------------------------------------------------------- */

/* One object behind the other, as several commands print them. False: it is not JSON. */
static bool parse_objects(struct str text, struct import *im)
{
    bool any = false;

    for (;;) {
        json_error_t at;
        json_t *json;

        while (text.n > 0 && strchr(" \t\r\n", *text.p)) {
            text.p++;
            text.n--;
        }
        if (text.n == 0)
            return any;
        json = json_loadb(text.p, (size_t)text.n, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK,
                          &at);
        if (!json)
            return false;
        parse_json(json, im);
        json_decref(json);
        text.p += at.position;
        text.n -= at.position;
        any = true;
    }
}

enum err import_parse(struct str text, const char *file, struct import *out, char **message)
{
    *out = (struct import){NULL, 0};
    *message = NULL;
    if (!parse_objects(text, out)) {
        import_fini(out);
        parse_lines(text, out);
    }
    if (out->count > 0)
        return ERR_NONE;
    *message =
        xasprintf("%s says nothing of any topic: import what `strandline configs describe "
                  "--json`, kafka-configs.sh --describe or kafka-topics.sh --describe prints",
                  file);
    return ERR_INVALID_CONFIG;
}
