/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of topics. A name becomes part of a directory's name and of metric names: the first rules
 * out whatever a file system could misread, the second is why '.' and '_' count as one.
 */
#include "base/limits.h"
#include "metadata/metadata.h"

static bool is_legal(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static char as_metric(char c)
{
    return c == '.' ? '_' : c;
}

static bool collides(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (int32_t i = 0; i < a.n; i++)
        if (as_metric(a.p[i]) != as_metric(b.p[i]))
            return false;
    return !str_eq(a, b);
}

static const char *fault_of(struct str name)
{
    if (name.n <= 0)
        return "a topic name must not be empty";
    if (name.n > TOPIC_NAME_BYTES_MAX)
        return "a topic name has at most 249 characters";
    if (str_eq_c(name, ".") || str_eq_c(name, ".."))
        return "a topic name must not be '.' or '..'";
    for (int32_t i = 0; i < name.n; i++)
        if (!is_legal(name.p[i]))
            return "a topic name may hold ASCII letters, digits, '.', '_' and '-' only";
    return NULL;
}

enum err metadata_topic_name_check(struct str name, const char **reason)
{
    *reason = fault_of(name);
    return *reason ? ERR_INVALID_TOPIC_EXCEPTION : ERR_NONE;
}

struct metadata_topic *metadata_find_collision(const struct metadata_image *image, struct str name)
{
    for (int32_t i = 0; i < image->topic_count; i++)
        if (collides(image->topics[i]->name, name))
            return image->topics[i];
    return NULL;
}

bool metadata_topic_name_is_internal(struct str name)
{
    return str_eq_c(name, "__consumer_offsets") || str_eq_c(name, "__transaction_state") ||
           str_eq_c(name, "__share_group_state");
}
