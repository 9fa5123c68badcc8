/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DescribeConfigs: what each key is, where its value comes from and what else could have given it.
 *
 * Synonyms are listed as Kafka does: the strongest source first, and within a source the key
 * before its fallbacks (log.retention.ms, .minutes, .hours). Kafka cuts what stands in front of
 * the key's own name, and so shows a retention that comes from log.retention.hours of the file as
 * a default; we list what was set wherever it was, and keep Kafka's answer where nothing was: the
 * default of a fallback appears only behind an entry of the key itself.
 *
 * A broker's own key shows its own value and not that of its fallbacks, as Kafka does; a topic's
 * shows what is in force.
 */
#include "base/arena.h"
#include "base/assert.h"
#include "config/config_int.h"

/* A key has at most three names (itself and two fallbacks) in each source, and one override. */
#define SYNONYMS_MAX ((CONFIG_LAYER_COUNT + 1) * 3 + 1)

struct synonyms {
    struct config_synonym items[SYNONYMS_MAX];
    int32_t count;
};

static bool is_sensitive(enum config_key key)
{
    return config__defs[key].type == CONFIG_TYPE_PASSWORD;
}

static void add(struct synonyms *s, enum config_key key, const char *value,
                enum config_source source)
{
    assert(s->count < SYNONYMS_MAX);
    s->items[s->count++] =
        (struct config_synonym){config_name(key), is_sensitive(key) ? NULL : value, source};
}

/* `first` is the broker key that the list is about. */
static void add_layers(struct synonyms *s, const struct config *c, enum config_key first)
{
    for (enum config_layer layer = 0; layer < CONFIG_LAYER_COUNT; layer++)
        for (enum config_key k = first; k != CONFIG_NONE; k = config__defs[k].synonym)
            if (c->layers[layer][k])
                add(s, k, c->layers[layer][k], config__layer_source(layer));
}

static bool names_itself(const struct synonyms *s, enum config_key key)
{
    for (int32_t i = 0; i < s->count; i++)
        if (s->items[i].name == config_name(key))
            return true;
    return false;
}

static void add_defaults(struct synonyms *s, enum config_key first)
{
    for (enum config_key k = first; k != CONFIG_NONE; k = config__defs[k].synonym)
        if (config__defs[k].initial && (k == first || names_itself(s, first)))
            add(s, k, config__defs[k].initial, CONFIG_SOURCE_DEFAULT);
}

static void finish(struct config_entry *e, const struct synonyms *s, struct arena *a)
{
    struct config_synonym *copy = arena_calloc(a, (size_t)s->count + 1, sizeof(*copy));

    assert(copy);
    memcpy(copy, s->items, (size_t)s->count * sizeof(*copy));
    e->synonyms = copy;
    e->synonym_count = s->count;
    e->source = s->count > 0 ? s->items[0].source : CONFIG_SOURCE_DEFAULT;
}

static struct config_entry entry_of(enum config_key key)
{
    const struct config_def *def = &config__defs[key];

    return (struct config_entry){
        .key = key,
        .name = def->name,
        .type = def->type,
        .is_read_only = def->scope == CONFIG_SCOPE_STATIC,
        .is_sensitive = is_sensitive(key),
        .documentation = def->help,
    };
}

static void describe_topic_key(const struct config *c, const struct config_overrides *o,
                               enum config_key key, struct arena *a, struct config_entry *out)
{
    const char *override = config_overrides_get(o, str_of(config_name(key)));
    enum config_key broker_key = config__defs[key].synonym;
    struct config_found found = config__effective(c, key);
    struct synonyms s = {.count = 0};

    *out = entry_of(key);
    out->value = override ? override : config__text_in_unit(&found, key, a);
    if (override)
        add(&s, key, override, CONFIG_SOURCE_TOPIC);
    add_layers(&s, c, broker_key);
    add_defaults(&s, broker_key);
    finish(out, &s, a);
}

static void describe_broker_key(const struct config *c, enum config_key key, struct arena *a,
                                struct config_entry *out)
{
    const char *value = config__defs[key].initial;
    struct synonyms s = {.count = 0};

    *out = entry_of(key);
    for (int layer = CONFIG_LAYER_COUNT - 1; layer >= 0; layer--)
        if (c->layers[layer][key])
            value = c->layers[layer][key];
    out->value = is_sensitive(key) ? NULL : value;
    add_layers(&s, c, key);
    add_defaults(&s, key);
    finish(out, &s, a);
}

static bool is_set(const struct config *c, enum config_key key)
{
    for (int layer = 0; layer < CONFIG_LAYER_COUNT; layer++)
        if (c->layers[layer][key])
            return true;
    return false;
}

/* Hidden keys are shown to those who set them; keys that Kafka 4 removed are never shown. */
static bool is_shown(enum config_key key, bool is_used)
{
    enum config_honour honour = config__defs[key].honour;

    return honour != CONFIG_HONOUR_GONE && (honour != CONFIG_HONOUR_HIDDEN || is_used);
}

static struct config_entry *entries_new(struct arena *a)
{
    struct config_entry *entries = arena_calloc(a, CONFIG_KEY_COUNT, sizeof(*entries));

    assert(entries);
    return entries;
}

int32_t config_describe_topic(const struct config *c, const struct config_overrides *o,
                              struct arena *a, struct config_entry **out)
{
    int32_t n = 0;

    *out = entries_new(a);
    for (int key = 0; key < CONFIG_KEY_COUNT; key++)
        if (config__defs[key].scope == CONFIG_SCOPE_TOPIC &&
            is_shown(key, config_overrides_get(o, str_of(config_name(key))) != NULL))
            describe_topic_key(c, o, key, a, &(*out)[n++]);
    return n;
}

int32_t config_describe_broker(const struct config *c, struct arena *a, struct config_entry **out)
{
    int32_t n = 0;

    *out = entries_new(a);
    for (int key = 0; key < CONFIG_KEY_COUNT; key++)
        if (config__defs[key].scope != CONFIG_SCOPE_TOPIC && is_shown(key, is_set(c, key)))
            describe_broker_key(c, key, a, &(*out)[n++]);
    return n;
}

int32_t config_describe_defaults(const struct config *c, struct arena *a, struct config_entry **out)
{
    int32_t n = 0;

    *out = entries_new(a);
    for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
        struct config_entry *e = &(*out)[n];
        const char *value = c->layers[CONFIG_LAYER_DEFAULT][key];
        struct synonyms s = {.count = 0};

        if (!value)
            continue;
        *e = entry_of(key);
        e->value = is_sensitive(key) ? NULL : value;
        add(&s, key, value, CONFIG_SOURCE_DYNAMIC_DEFAULT);
        finish(e, &s, a);
        n++;
    }
    return n;
}
