/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IncrementalAlterConfigs: one operation on a set of overrides.
 *
 * Append and subtract work on lists as sets that keep their order: they start from the override,
 * or from the key's default where there is none, as Kafka does. The outcome is checked as a whole
 * before it is stored, so an operation has either all of its effect or none.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "config/config_int.h"

static bool list_has(struct str list, struct str word)
{
    struct str item;

    while (config_list_next(&list, &item))
        if (str_eq(item, word))
            return true;
    return false;
}

/* Adds to `out`, which has room, the items of `from` that are not in `except`, each once. */
static void add_items(char *out, int32_t *n, struct str from, struct str except)
{
    struct str item;

    while (config_list_next(&from, &item)) {
        if (list_has((struct str){out, *n}, item) || list_has(except, item))
            continue;
        if (*n > 0)
            out[(*n)++] = ',';
        memcpy(out + *n, item.p, (size_t)item.n);
        *n += item.n;
    }
}

static enum err store(struct config_overrides *o, enum config_key key, struct str value,
                      char **message)
{
    enum err err = config__check_client(key, value, message);

    if (!err)
        config_overrides_put(o, str_of(config_name(key)), config__trim(value));
    return err;
}

static enum err merge(struct config_overrides *o, enum config_op op, enum config_key key,
                      struct str items, char **message)
{
    const char *override = config_overrides_get(o, str_of(config_name(key)));
    struct str old = str_of(override ? override : config__defs[key].initial);
    bool is_subtract = op == CONFIG_OP_SUBTRACT;
    enum err err = config__check_size(key, items, message);
    char *list;
    int32_t n = 0;

    if (err)
        return err;
    list = xmalloc((size_t)MAX(old.n, 0) + (size_t)items.n + 2);
    add_items(list, &n, old, is_subtract ? items : STR_LIT(""));
    if (!is_subtract)
        add_items(list, &n, items, STR_LIT(""));
    err = store(o, key, (struct str){list, n}, message);
    free(list);
    return err;
}

static enum err alter(struct config_overrides *o, enum config_op op, enum config_key key,
                      struct str value, char **message)
{
    const char *name = config_name(key);

    if (op == CONFIG_OP_DELETE) {
        config_overrides_remove(o, str_of(name));
        return ERR_NONE;
    }
    if (str_is_null(value)) {
        *message = xasprintf("%s has no value; delete it to return to the default", name);
        return ERR_INVALID_REQUEST;
    }
    if (op == CONFIG_OP_SET)
        return store(o, key, value, message);
    if (config__defs[key].type != CONFIG_TYPE_LIST) {
        *message = xasprintf("%s is not a list: it can be set or deleted, nothing else", name);
        return ERR_INVALID_CONFIG;
    }
    return merge(o, op, key, value, message);
}

static bool is_known_op(enum config_op op, char **message)
{
    if (op >= CONFIG_OP_SET && op <= CONFIG_OP_SUBTRACT)
        return true;
    *message = xasprintf("unknown operation %d", (int)op);
    return false;
}

enum err config_alter_topic(struct config_overrides *o, enum config_op op, struct str name,
                            struct str value, char **message)
{
    enum config_key key = config_find_topic(name);

    *message = NULL;
    if (!is_known_op(op, message))
        return ERR_INVALID_REQUEST;
    if (key != CONFIG_NONE && config__defs[key].honour != CONFIG_HONOUR_GONE)
        return alter(o, op, key, value, message);
    /* What another version or program left behind must be removable. */
    if (op != CONFIG_OP_DELETE || !config_overrides_get(o, name))
        return config__unknown(name, true, message);
    config_overrides_remove(o, name);
    return ERR_NONE;
}

/* Why the key cannot stand in the layer; NULL: it can. */
static char *why_not_dynamic(enum config_source layer, enum config_key key)
{
    enum config_scope scope = config__defs[key].scope;

    if (scope == CONFIG_SCOPE_STATIC)
        return xasprintf("%s cannot be changed at run time; set it in the broker's file and "
                         "restart",
                         config_name(key));
    if (scope == CONFIG_SCOPE_BROKER && layer == CONFIG_SOURCE_DYNAMIC_DEFAULT)
        return xasprintf("%s can only be changed for each broker by its id", config_name(key));
    return NULL;
}

enum err config_alter_broker(struct config_overrides *o, enum config_source layer,
                             enum config_op op, struct str name, struct str value, char **message)
{
    enum config_key key = config_find_broker(name);
    enum err err = ERR_NONE;

    assert(layer == CONFIG_SOURCE_DYNAMIC_BROKER || layer == CONFIG_SOURCE_DYNAMIC_DEFAULT);
    *message = NULL;
    if (!is_known_op(op, message))
        return ERR_INVALID_REQUEST;
    if (key == CONFIG_NONE && op == CONFIG_OP_DELETE && config_overrides_get(o, name))
        config_overrides_remove(o, name);
    else if (key == CONFIG_NONE)
        err = config__unknown(name, false, message);
    else if ((*message = why_not_dynamic(layer, key)) == NULL)
        err = alter(o, op, key, value, message);
    return err || *message ? ERR_INVALID_REQUEST : ERR_NONE;
}
