/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overrides: a small sorted array of owned name-value pairs. Topics have a handful, so binary
 * search and memmove are all it takes, and the order makes images, stored JSON and answers the
 * same each time.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "config/config.h"

/* The first place whose name is not smaller. */
static int32_t place_of(const struct config_overrides *o, struct str name, bool *is_there)
{
    int32_t low = 0;
    int32_t high = o->count;

    *is_there = false;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = str_cmp(str_of(o->pairs[middle].name), name);

        if (order == 0)
            *is_there = true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void config_overrides_fini(struct config_overrides *o)
{
    for (int32_t i = 0; i < o->count; i++) {
        free(o->pairs[i].name);
        free(o->pairs[i].value);
    }
    free(o->pairs);
    *o = (struct config_overrides){NULL, 0};
}

void config_overrides_copy(struct config_overrides *to, const struct config_overrides *from)
{
    *to = (struct config_overrides){NULL, from->count};
    if (from->count == 0)
        return;
    to->pairs = xcalloc((size_t)from->count, sizeof(*to->pairs));
    for (int32_t i = 0; i < from->count; i++) {
        to->pairs[i].name = xstrdup(from->pairs[i].name);
        to->pairs[i].value = xstrdup(from->pairs[i].value);
    }
}

const char *config_overrides_get(const struct config_overrides *o, struct str name)
{
    bool is_there;
    int32_t i = place_of(o, name, &is_there);

    return is_there ? o->pairs[i].value : NULL;
}

void config_overrides_put(struct config_overrides *o, struct str name, struct str value)
{
    bool is_there;
    int32_t i = place_of(o, name, &is_there);

    assert(name.n >= 0);
    assert(value.n >= 0);
    if (is_there) {
        free(o->pairs[i].value);
    } else {
        o->pairs = xreallocarray(o->pairs, (size_t)o->count + 1, sizeof(*o->pairs));
        memmove(&o->pairs[i + 1], &o->pairs[i], (size_t)(o->count - i) * sizeof(*o->pairs));
        o->pairs[i].name = str_dup(name);
        o->count++;
    }
    o->pairs[i].value = str_dup(value);
}

void config_overrides_remove(struct config_overrides *o, struct str name)
{
    bool is_there;
    int32_t i = place_of(o, name, &is_there);

    if (!is_there)
        return;
    free(o->pairs[i].name);
    free(o->pairs[i].value);
    o->count--;
    memmove(&o->pairs[i], &o->pairs[i + 1], (size_t)(o->count - i) * sizeof(*o->pairs));
}
