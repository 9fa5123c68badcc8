/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's values in layers, and how they get there.
 *
 * A key's value is the first that is set: dynamic of this broker, dynamic of all brokers, static;
 * in each layer the key itself before its synonyms (log.retention.ms before .minutes before
 * .hours). If nothing is set, the same chain is asked for a default. Topic keys stand in the same
 * chains with nothing in the layers, so that their effective value here is what a topic without
 * overrides gets.
 *
 * Numbers are parsed when a layer changes and never again: getters run on every request.
 * Invariant: every text in a layer has passed config__check and is trimmed.
 */
#include "config/config.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "config/config_int.h"

/* ---- Effective values. */

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name);
    size_t m = strlen(suffix);

    return n >= m && memcmp(name + n - m, suffix, m) == 0;
}

static int64_t unit_ms(enum config_key key)
{
    if (ends_with(config_name(key), ".hours"))
        return 3600000;
    return ends_with(config_name(key), ".minutes") ? 60000 : 1;
}

/* -1 means "no limit" in every unit; what does not fit is as good as no limit. */
static int64_t convert(int64_t value, enum config_key from, enum config_key to)
{
    int64_t factor = unit_ms(from) / unit_ms(to);

    if (value < 0 || factor <= 1)
        return value;
    return __builtin_mul_overflow(value, factor, &value) ? INT64_MAX : value;
}

enum config_source config__layer_source(enum config_layer layer)
{
    switch (layer) {
    case CONFIG_LAYER_BROKER: return CONFIG_SOURCE_DYNAMIC_BROKER;
    case CONFIG_LAYER_DEFAULT: return CONFIG_SOURCE_DYNAMIC_DEFAULT;
    case CONFIG_LAYER_STATIC: return CONFIG_SOURCE_STATIC;
    case CONFIG_LAYER_COUNT: break;
    }
    UNREACHABLE();
}

struct config_found config__effective(const struct config *c, enum config_key key)
{
    enum config_key k;

    for (enum config_layer layer = 0; layer < CONFIG_LAYER_COUNT; layer++)
        for (k = key; k != CONFIG_NONE; k = config__defs[k].synonym)
            if (c->layers[layer][k])
                return (struct config_found){c->layers[layer][k], k, config__layer_source(layer)};
    for (k = key; k != CONFIG_NONE; k = config__defs[k].synonym)
        if (config__defs[k].initial)
            return (struct config_found){config__defs[k].initial, k, CONFIG_SOURCE_DEFAULT};
    return (struct config_found){NULL, key, CONFIG_SOURCE_DEFAULT};
}

const char *config__text_in_unit(const struct config_found *found, enum config_key key,
                                 struct arena *a)
{
    int64_t value;

    if (!found->text || unit_ms(found->from) == unit_ms(key))
        return found->text;
    value = convert(config__number(found->from, found->text).i, found->from, key);
    return arena_printf(a, "%lld", (long long)value).p;
}

static void refresh(struct config *c)
{
    for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
        struct config_found found = config__effective(c, key);

        c->numbers[key] = config__number(found.from, found.text);
        c->numbers[key].i = convert(c->numbers[key].i, found.from, key);
    }
}

/* ---- Life. */

struct config *config_new(void)
{
    struct config *c = xcalloc(1, sizeof(*c));

    refresh(c);
    return c;
}

struct config *config_copy(const struct config *c)
{
    struct config *copy = xmemdup(c, sizeof(*c));

    for (int layer = 0; layer < CONFIG_LAYER_COUNT; layer++)
        for (int key = 0; key < CONFIG_KEY_COUNT; key++)
            copy->layers[layer][key] = str_dup(str_of(c->layers[layer][key]));
    config_overrides_copy(&copy->ignored, &c->ignored);
    return copy;
}

void config_free(struct config *c)
{
    if (!c)
        return;
    for (int layer = 0; layer < CONFIG_LAYER_COUNT; layer++)
        for (int key = 0; key < CONFIG_KEY_COUNT; key++)
            free(c->layers[layer][key]);
    config_overrides_fini(&c->ignored);
    free(c);
}

/* ---- Loading. */

static void put(struct config *c, enum config_layer layer, enum config_key key, struct str value)
{
    free(c->layers[layer][key]);
    c->layers[layer][key] = str_dup(config__trim(value));
}

/* Puts the place in front of the message. */
static enum err fail_at(const char *place, enum err err, char **message)
{
    char *text = xasprintf("%s: %s", place, *message);

    free(*message);
    *message = text;
    return err;
}

/* Keys of single listeners only speak of protocols that config_validate does not let through. */
static bool is_listener_key(struct str name)
{
    return str_starts_with(name, STR_LIT("listener.name."));
}

static enum err set_static(struct config *c, struct str name, struct str value, const char *place,
                           char **message)
{
    enum config_key key = config_find_broker(name);
    enum err err;

    *message = NULL;
    if (key == CONFIG_NONE && is_listener_key(name)) {
        config_overrides_put(&c->ignored, name, STR_LIT(""));
        return ERR_NONE;
    }
    if (key == CONFIG_NONE)
        return fail_at(place, config__unknown(name, false, message), message);
    err = config__check(key, value, NULL, message);
    if (err)
        return fail_at(place, err, message);
    put(c, CONFIG_LAYER_STATIC, key, value);
    return ERR_NONE;
}

static enum err load_entries(struct config *c, struct config_properties *p, const char *file,
                             char **message)
{
    struct str name;
    struct str value;
    enum err err;

    while ((err = config__properties_next(p, &name, &value)) == ERR_NONE) {
        char *place = xasprintf("%s:%d", file, p->entry_line);

        err = set_static(c, name, value, place, message);
        free(place);
        if (err)
            return err;
    }
    if (err == ERR_EOF)
        return ERR_NONE;
    *message = xasprintf("%s:%d: NUL byte, or \\u without the four hexadecimal digits of a "
                         "character; correct or remove it",
                         file, p->entry_line);
    return ERR_INVALID_CONFIG;
}

enum err config_load_properties(struct config *c, struct str text, const char *file, char **message)
{
    struct config_properties p;
    enum err err;

    *message = NULL;
    config__properties_init(&p, text);
    err = load_entries(c, &p, file, message);
    config__properties_fini(&p);
    refresh(c);
    return err;
}

/* NUM_PARTITIONS is num.partitions; __ stands for _ and ___ for -. Returns the bytes written. */
static int32_t name_of_variable(struct str variable, char *name)
{
    int32_t n = 0;

    for (int32_t i = 0; i < variable.n; i++) {
        struct str rest = {variable.p + i, variable.n - i};
        char c = rest.p[0];

        if (str_starts_with(rest, STR_LIT("___"))) {
            c = '-';
            i += 2;
        } else if (str_starts_with(rest, STR_LIT("__"))) {
            c = '_';
            i += 1;
        } else if (c == '_') {
            c = '.';
        } else if (c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        name[n++] = c;
    }
    return n;
}

/* Variables of the container image and of container platforms that are no keys. */
static bool is_foreign_variable(struct str name)
{
    static const char *const prefixes[] = {
        "KAFKA_HEAP_OPTS", "KAFKA_OPTS",   "KAFKA_JVM_",    "KAFKA_GC_",        "KAFKA_JMX_",
        "KAFKA_LOG4J_",    "KAFKA_TOOLS_", "KAFKA_VERSION", "KAFKA_CLUSTER_ID", "KAFKA_PORT",
        "KAFKA_SERVICE_",  "KAFKA_HOME",   "KAFKA_DEBUG",   "KAFKA_CLASSPATH",
    };

    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (str_starts_with(name, str_of(prefixes[i])))
            return true;
    return false;
}

static enum err load_variable(struct config *c, struct str variable, struct str value,
                              char **message)
{
    char *buffer = xmalloc((size_t)variable.n);
    struct str rest = {variable.p + 6, variable.n - 6};
    struct str name = {buffer, name_of_variable(rest, buffer)};
    enum err err = ERR_NONE;

    if (config_find_broker(name) != CONFIG_NONE || is_listener_key(name)) {
        char *place = xasprintf("environment variable %.*s", STR_ARG(variable));

        err = set_static(c, name, value, place, message);
        free(place);
    } else if (!is_foreign_variable(variable)) {
        config_overrides_put(&c->ignored, variable, STR_LIT(""));
    }
    free(buffer);
    return err;
}

enum err config_load_environment(struct config *c, const char *const *env, char **message)
{
    enum err err = ERR_NONE;

    *message = NULL;
    for (; *env && !err; env++) {
        const char *equals = strchr(*env, '=');
        struct str name = {*env, equals ? (int32_t)(equals - *env) : 0};

        if (name.n > 6 && str_starts_with(name, STR_LIT("KAFKA_")))
            err = load_variable(c, name, str_of(equals + 1), message);
    }
    refresh(c);
    return err;
}

enum err config_load_setting(struct config *c, struct str setting, char **message)
{
    const char *equals = setting.n > 0 ? memchr(setting.p, '=', (size_t)setting.n) : NULL;
    int32_t name_n = equals ? (int32_t)(equals - setting.p) : 0;
    enum err err;

    if (!equals) {
        *message = xasprintf("--set %.*s: no '='; write --set key=value", STR_ARG(setting));
        return ERR_INVALID_CONFIG;
    }
    err = set_static(c, config__trim((struct str){setting.p, name_n}),
                     (struct str){equals + 1, setting.n - name_n - 1}, "--set", message);
    refresh(c);
    return err;
}

/* ---- What has no effect. */

static bool has_no_effect(const struct config *c, enum config_key key)
{
    enum config_honour honour = config__defs[key].honour;

    return (honour == CONFIG_HONOUR_NO || honour == CONFIG_HONOUR_GONE) &&
           c->layers[CONFIG_LAYER_STATIC][key];
}

static void append(char **list, const char *name)
{
    char *longer = *list ? xasprintf("%s, %s", *list, name) : xstrdup(name);

    free(*list);
    *list = longer;
}

char *config_warning(const struct config *c)
{
    char *names = NULL;
    char *line;

    for (int key = 0; key < CONFIG_KEY_COUNT; key++)
        if (has_no_effect(c, key))
            append(&names, config_name(key));
    for (int32_t i = 0; i < c->ignored.count; i++)
        append(&names, c->ignored.pairs[i].name);
    if (!names)
        return NULL;
    line = xasprintf("set, but without an effect here: %s", names);
    free(names);
    return line;
}

/* ---- Dynamic layers. */

/* CONFIG_NONE unless the pair may stand in the layer. */
static enum config_key dynamic_key(enum config_source layer, const struct config_pair *pair)
{
    enum config_key key = config_find_broker(str_of(pair->name));
    char *message;
    enum err err;

    if (key == CONFIG_NONE || config__defs[key].scope == CONFIG_SCOPE_STATIC ||
        (layer == CONFIG_SOURCE_DYNAMIC_DEFAULT && config__defs[key].scope == CONFIG_SCOPE_BROKER))
        return CONFIG_NONE;
    err = config__check(key, str_of(pair->value), NULL, &message);
    free(message);
    return err ? CONFIG_NONE : key;
}

void config_set_dynamic(struct config *c, enum config_source layer,
                        const struct config_overrides *o)
{
    bool is_broker = layer == CONFIG_SOURCE_DYNAMIC_BROKER;
    enum config_layer to = is_broker ? CONFIG_LAYER_BROKER : CONFIG_LAYER_DEFAULT;

    assert(is_broker || layer == CONFIG_SOURCE_DYNAMIC_DEFAULT);
    for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
        free(c->layers[to][key]);
        c->layers[to][key] = NULL;
    }
    for (int32_t i = 0; i < o->count; i++) {
        enum config_key key = dynamic_key(layer, &o->pairs[i]);

        if (key != CONFIG_NONE)
            put(c, to, key, str_of(o->pairs[i].value));
    }
    refresh(c);
}

/* ---- Getters. */

static enum config_type type_of(enum config_key key)
{
    assert(key >= 0 && key < CONFIG_KEY_COUNT);
    return config__defs[key].type;
}

bool config_bool(const struct config *c, enum config_key key)
{
    assert(type_of(key) == CONFIG_TYPE_BOOLEAN);
    return c->numbers[key].i != 0;
}

int64_t config_i64(const struct config *c, enum config_key key)
{
    enum config_type type = type_of(key);

    assert(type == CONFIG_TYPE_INT || type == CONFIG_TYPE_SHORT || type == CONFIG_TYPE_LONG);
    return c->numbers[key].i;
}

int32_t config_i32(const struct config *c, enum config_key key)
{
    assert(type_of(key) == CONFIG_TYPE_INT || type_of(key) == CONFIG_TYPE_SHORT);
    return (int32_t)c->numbers[key].i;
}

double config_f64(const struct config *c, enum config_key key)
{
    assert(type_of(key) == CONFIG_TYPE_DOUBLE);
    return c->numbers[key].f;
}

struct str config_str(const struct config *c, enum config_key key)
{
    return str_of(config__effective(c, key).text);
}

enum config_source config_source_of(const struct config *c, enum config_key key)
{
    return config__effective(c, key).source;
}
