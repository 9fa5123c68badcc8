/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the consumers of a group have subscribed to. Their subscriptions are opaque to a coordinator
 * but for one purpose: offsets of topics that are in use are neither expired nor deleted. Only the
 * list of topics at the front is read, which all versions of the format share. Where it cannot be
 * read the group counts as subscribed to everything.
 */
#include <stdlib.h>

#include "group/cursor_int.h"
#include "group/group_int.h"

#define TOPIC_BYTES_MIN 2 /* of an encoded name */

static bool is_consumers(const struct group *group)
{
    return group->protocol_type && str_eq_c(STR_LIT("consumer"), group->protocol_type);
}

/* The subscription under the chosen protocol, or the first one while none is chosen. */
static struct bytes subscription_of(const struct group_member *m)
{
    struct bytes b = group__metadata_of(m, m->group->protocol);

    return b.n == 0 && m->protocol_count > 0 ? m->protocols[0].metadata : b;
}

static int64_t begin_topics(struct cursor *c, int32_t *count)
{
    (void)cursor_i16(c); /* version */
    *count = cursor_i32(c);
    return !c->bad && *count >= 0 && *count <= (c->end - c->p) / TOPIC_BYTES_MIN;
}

static int by_bytes(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void sort_once(struct group_topics *t)
{
    int32_t n = 0;

    if (t->n == 0)
        return;
    qsort(t->v, (size_t)t->n, sizeof(*t->v), by_bytes);
    for (int32_t i = 0; i < t->n; i++)
        if (n == 0 || !str_eq(t->v[n - 1], t->v[i]))
            t->v[n++] = t->v[i];
    t->n = n;
}

/* The announced number of topics of all members; -1: not understood. */
static int64_t count_topics(const struct group *group)
{
    int64_t total = 0;

    for (const struct group_member *m = group->members; m; m = m->hh.next) {
        struct cursor c = cursor_of(subscription_of(m));
        int32_t count;

        if (!begin_topics(&c, &count))
            return -1;
        total += count;
    }
    return total;
}

bool group__subscriptions(const struct group *group, struct arena *arena, struct group_topics *out)
{
    int64_t total = is_consumers(group) ? count_topics(group) : -1;

    *out = (struct group_topics){0};
    if (total < 0)
        return false;
    out->v = arena_calloc(arena, (size_t)MAX(total, 1), sizeof(*out->v));
    for (const struct group_member *m = group->members; m; m = m->hh.next) {
        struct cursor c = cursor_of(subscription_of(m));
        int32_t count;

        (void)begin_topics(&c, &count);
        for (int32_t i = 0; i < count; i++)
            out->v[out->n++] = cursor_str(&c);
        if (c.bad)
            return false;
    }
    sort_once(out);
    return true;
}

bool group_topics__have(const struct group_topics *topics, struct str topic)
{
    return topics->n > 0 &&
           bsearch(&topic, topics->v, (size_t)topics->n, sizeof(*topics->v), by_bytes) != NULL;
}
