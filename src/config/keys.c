/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of keys, and what a text has to be to become the value of one.
 *
 * A text is checked in three steps: does it have the key's type, does it lie in the key's values,
 * and may it be ignored. All three speak in one message of one line, so that a user sees the
 * value, the reason and the choice. A name that does not exist gets the nearest one that does.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "config/config_int.h"

#define NAME_BYTES_MAX 100

const struct config_def config__defs[CONFIG_KEY_COUNT] = {
#define KEY(id, name, type, initial, values, synonym, scope, honour, help)                         \
    [CONFIG_##id] = {name,                                                                         \
                     initial,                                                                      \
                     values,                                                                       \
                     help,                                                                         \
                     CONFIG_##synonym,                                                             \
                     CONFIG_TYPE_##type,                                                           \
                     CONFIG_SCOPE_##scope,                                                         \
                     CONFIG_HONOUR_##honour},
#include "config/keys.def"
#undef KEY
};

static const char *const type_phrases[] = {
    [CONFIG_TYPE_BOOLEAN] = "true or false",
    [CONFIG_TYPE_STRING] = "text",
    [CONFIG_TYPE_INT] = "a whole number of 32 bits",
    [CONFIG_TYPE_SHORT] = "a whole number of 16 bits",
    [CONFIG_TYPE_LONG] = "a whole number of 64 bits",
    [CONFIG_TYPE_DOUBLE] = "a number",
    [CONFIG_TYPE_LIST] = "a list",
    [CONFIG_TYPE_CLASS] = "a class name",
    [CONFIG_TYPE_PASSWORD] = "a password",
};

static enum config_key find(struct str name, bool is_topic)
{
    for (int key = 0; key < CONFIG_KEY_COUNT; key++)
        if ((config__defs[key].scope == CONFIG_SCOPE_TOPIC) == is_topic &&
            str_eq_c(name, config__defs[key].name))
            return key;
    return CONFIG_NONE;
}

/* ---- Suggestions. */

/*
 * Levenshtein's distance, one row at a time; `limit` or more once it cannot be less. The least
 * of a row never falls from one row to the next, so the search can stop early: names come from
 * clients, and a request may hold many that are wrong.
 */
static int distance(struct str a, struct str b, int limit)
{
    int row[NAME_BYTES_MAX + 1];

    assert(b.n <= NAME_BYTES_MAX);
    if (a.n - b.n >= limit || b.n - a.n >= limit)
        return limit;
    for (int j = 0; j <= b.n; j++)
        row[j] = j;
    for (int i = 1; i <= a.n; i++) {
        int diagonal = row[0];
        int least = row[0] = i;

        for (int j = 1; j <= b.n; j++) {
            int replaced = diagonal + (a.p[i - 1] != b.p[j - 1]);

            diagonal = row[j];
            row[j] = MIN(replaced, MIN(row[j], row[j - 1]) + 1);
            least = MIN(least, row[j]);
        }
        if (least >= limit)
            return limit;
    }
    return row[b.n];
}

/* The nearest key, at most four edits away, fewer for short names; CONFIG_NONE: none is near. */
static enum config_key nearest(struct str name, bool is_topic)
{
    enum config_key best = CONFIG_NONE;
    int limit = MIN(MAX(name.n / 3, 2), 4) + 1;

    if (name.n > NAME_BYTES_MAX)
        return CONFIG_NONE;
    for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
        const struct config_def *def = &config__defs[key];
        int d;

        if ((def->scope == CONFIG_SCOPE_TOPIC) != is_topic || def->honour > CONFIG_HONOUR_ONLY)
            continue;
        d = distance(name, str_of(def->name), limit);
        if (d < limit) {
            best = key;
            limit = d;
        }
    }
    return best;
}

/* ---- Values. */

/* Calls for each alternative of `values`: cuts the next one off *rest. */
static bool next_alternative(struct str *rest, struct str *item)
{
    int32_t n = 0;

    if (rest->n <= 0)
        return false;
    while (n < rest->n && rest->p[n] != '|')
        n++;
    *item = (struct str){rest->p, n};
    n = MIN(n + 1, rest->n);
    *rest = (struct str){rest->p + n, rest->n - n};
    return true;
}

/* One end of a range of keys.def; `missing` if it is empty. */
static double range_end(struct str s, double missing)
{
    int64_t v;
    enum err err;

    if (s.n == 0)
        return missing;
    err = str_to_i64(s, &v);
    assert(!err);
    return (double)v;
}

static bool in_range(struct str range, double value)
{
    const char *dots = memmem(range.p, (size_t)range.n, "..", 2);
    int32_t low_n = dots ? (int32_t)(dots - range.p) : range.n;
    struct str low = {range.p, low_n};
    struct str high = dots ? (struct str){dots + 2, range.n - low_n - 2} : low;

    return value >= range_end(low, -1.0 / 0.0) && value <= range_end(high, 1.0 / 0.0);
}

static bool number_is_allowed(const struct config_def *def, double value)
{
    struct str rest = str_of(def->values);
    struct str item;

    while (next_alternative(&rest, &item))
        if (in_range(item, value))
            return true;
    return false;
}

/* Digits alone: no sign, no blank. */
static bool is_id(struct str word, int64_t *id)
{
    for (int32_t i = 0; i < word.n; i++)
        if (word.p[i] < '0' || word.p[i] > '9')
            return false;
    return str_to_i64(word, id) == ERR_NONE && *id <= INT32_MAX;
}

/* partition:broker, as lists of throttled replicas have them. */
static bool is_replica(struct str word, int64_t *partition, int64_t *broker)
{
    const char *colon = word.n > 0 ? memchr(word.p, ':', (size_t)word.n) : NULL;
    int32_t n = colon ? (int32_t)(colon - word.p) : 0;

    return colon && is_id((struct str){word.p, n}, partition) &&
           is_id((struct str){colon + 1, word.n - n - 1}, broker);
}

static bool word_is_allowed(const struct config_def *def, struct str word)
{
    struct str rest = str_of(def->values);
    struct str item;
    int64_t ids[2];

    while (next_alternative(&rest, &item))
        if (str_eq(item, word) ||
            (str_eq_c(item, "partition:broker") && is_replica(word, &ids[0], &ids[1])))
            return true;
    return false;
}

static bool list_is_allowed(const struct config_def *def, struct str list)
{
    struct str item;
    bool has_all = false;
    int32_t n = 0;

    for (; config_list_next(&list, &item); n++) {
        has_all = has_all || str_eq_c(item, "*");
        if (!word_is_allowed(def, item))
            return false;
    }
    return !has_all || n == 1;
}

static bool parse_boolean(struct str text, int64_t *out)
{
    *out = text.n == 4 && strncasecmp(text.p, "true", 4) == 0;
    return *out || (text.n == 5 && strncasecmp(text.p, "false", 5) == 0);
}

static bool parse_whole(struct str text, int64_t low, int64_t high, int64_t *out)
{
    return str_to_i64(text, out) == ERR_NONE && *out >= low && *out <= high;
}

static bool parse_double(struct str text, double *out)
{
    char buffer[64];
    char *end;

    if (text.n <= 0 || (size_t)text.n >= sizeof(buffer))
        return false;
    memcpy(buffer, text.p, (size_t)text.n);
    buffer[text.n] = '\0';
    *out = strtod(buffer, &end);
    return *end == '\0' && *out - *out == 0; /* neither infinite nor NaN */
}

static bool parse(enum config_type type, struct str text, struct config_number *out)
{
    *out = (struct config_number){0, 0};
    switch (type) {
    case CONFIG_TYPE_BOOLEAN: return parse_boolean(text, &out->i);
    case CONFIG_TYPE_INT: return parse_whole(text, INT32_MIN, INT32_MAX, &out->i);
    case CONFIG_TYPE_SHORT: return parse_whole(text, INT16_MIN, INT16_MAX, &out->i);
    case CONFIG_TYPE_LONG: return parse_whole(text, INT64_MIN, INT64_MAX, &out->i);
    case CONFIG_TYPE_DOUBLE: return parse_double(text, &out->f);
    case CONFIG_TYPE_STRING:
    case CONFIG_TYPE_LIST:
    case CONFIG_TYPE_CLASS:
    case CONFIG_TYPE_PASSWORD: return true;
    }
    UNREACHABLE();
}

static bool is_allowed(const struct config_def *def, struct str text,
                       const struct config_number *number)
{
    switch (def->type) {
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_SHORT:
    case CONFIG_TYPE_LONG: return number_is_allowed(def, (double)number->i);
    case CONFIG_TYPE_DOUBLE: return number_is_allowed(def, number->f);
    case CONFIG_TYPE_BOOLEAN: return word_is_allowed(def, STR_LIT("true")) == (number->i != 0);
    case CONFIG_TYPE_LIST: return list_is_allowed(def, text);
    case CONFIG_TYPE_STRING:
    case CONFIG_TYPE_CLASS:
    case CONFIG_TYPE_PASSWORD: return word_is_allowed(def, text);
    }
    UNREACHABLE();
}

static enum err refuse(const struct config_def *def, struct str text, char **message)
{
    if (def->honour == CONFIG_HONOUR_ONLY)
        *message = xasprintf("%s=%.*s is not supported here, and to ignore it would weaken "
                             "security, durability or retention; remove it (allowed: %s)",
                             def->name, STR_ARG(text), def->values ? def->values : "nothing");
    else
        *message = xasprintf("%s=%.*s is out of range; allowed: %s", def->name, STR_ARG(text),
                             def->values);
    return ERR_INVALID_CONFIG;
}

struct str config__trim(struct str s)
{
    while (s.n > 0 && (unsigned char)s.p[0] <= ' ') {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && (unsigned char)s.p[s.n - 1] <= ' ')
        s.n--;
    return s;
}

enum err config__check(enum config_key key, struct str text, struct config_number *out,
                       char **message)
{
    const struct config_def *def = &config__defs[key];
    struct config_number number;

    *message = NULL;
    text = config__trim(text);
    if (text.n > 0 && memchr(text.p, 0, (size_t)text.n)) {
        *message = xasprintf("%s holds a NUL byte; remove it", def->name);
        return ERR_INVALID_CONFIG;
    }
    if (!parse(def->type, text, &number)) {
        *message =
            xasprintf("%s=%.*s is not %s", def->name, STR_ARG(text), type_phrases[def->type]);
        return ERR_INVALID_CONFIG;
    }
    if (def->values ? !is_allowed(def, text, &number)
                    : def->honour == CONFIG_HONOUR_ONLY && text.n > 0)
        return refuse(def, text, message);
    if (out)
        *out = number;
    return ERR_NONE;
}

enum err config__check_size(enum config_key key, struct str text, char **message)
{
    if (text.n <= CONFIG_VALUE_BYTES_MAX)
        return ERR_NONE;
    *message = xasprintf("%s has more than %d bytes; shorten it", config_name(key),
                         CONFIG_VALUE_BYTES_MAX);
    return ERR_INVALID_CONFIG;
}

enum err config__check_client(enum config_key key, struct str text, char **message)
{
    enum err err = config__check_size(key, text, message);

    return err ? err : config__check(key, text, NULL, message);
}

bool config__list_has_replica(struct str list, int32_t partition, int32_t broker)
{
    struct str item;
    int64_t ids[2];

    while (config_list_next(&list, &item))
        if (str_eq_c(item, "*") ||
            (is_replica(item, &ids[0], &ids[1]) && ids[0] == partition && ids[1] == broker))
            return true;
    return false;
}

struct config_number config__number(enum config_key key, const char *text)
{
    struct config_number number = {0, 0};

    if (text && !parse(config__defs[key].type, str_of(text), &number))
        UNREACHABLE();
    return number;
}

enum err config__unknown(struct str name, bool is_topic, char **message)
{
    enum config_key topic_key = is_topic ? CONFIG_NONE : find(name, true);
    enum config_key near = nearest(name, is_topic);
    const char *kind = is_topic ? "topic" : "broker";

    if (topic_key != CONFIG_NONE && config__defs[topic_key].synonym != CONFIG_NONE)
        *message = xasprintf("%.*s is a key of topics; the brokers' default for it is %s",
                             STR_ARG(name), config_name(config__defs[topic_key].synonym));
    else if (near != CONFIG_NONE)
        *message = xasprintf("unknown %s key %.*s; did you mean %s?", kind, STR_ARG(name),
                             config_name(near));
    else
        *message = xasprintf("unknown %s key %.*s; remove it", kind, STR_ARG(name));
    return ERR_INVALID_CONFIG;
}

enum config_key config_find_topic(struct str name)
{
    return find(name, true);
}

enum config_key config_find_broker(struct str name)
{
    return find(name, false);
}

const char *config_name(enum config_key key)
{
    assert(key >= 0 && key < CONFIG_KEY_COUNT);
    return config__defs[key].name;
}

bool config_list_next(struct str *rest, struct str *item)
{
    while (rest->n > 0) {
        int32_t n = 0;

        while (n < rest->n && rest->p[n] != ',')
            n++;
        *item = config__trim((struct str){rest->p, n});
        n = MIN(n + 1, rest->n);
        *rest = (struct str){rest->p + n, rest->n - n};
        if (item->n > 0)
            return true;
    }
    return false;
}
