/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others may see of groups: descriptions, lists, committed offsets. Nothing changes here, and
 * what is shown is committed.
 */
#include <stdlib.h>
#include <strings.h>

#include "group/group_int.h"

#define CLASSIC "classic"

/* ---- Describe --------------------------------------------------------------------------- */

static struct bytes copy_bytes(struct arena *a, const void *p, int32_t n)
{
    struct str s = arena_str(a, (struct str){.p = p, .n = n});

    return (struct bytes){.p = (const uint8_t *)s.p, .n = s.n};
}

static void describe_member(const struct group_member *m, struct arena *arena,
                            struct describe_groups_response_member *to)
{
    bool is_stable = m->group->state == GROUP_STABLE;
    struct bytes metadata = group__metadata_of(m, m->group->protocol);

    wire_init(&describe_groups_response_member_schema, to);
    to->member_id = arena_str(arena, str_of(m->id));
    to->group_instance_id = m->instance_id ? arena_str(arena, str_of(m->instance_id)) : str_null();
    to->client_id = arena_str(arena, str_of(m->client_id));
    to->client_host = arena_str(arena, str_of(m->client_host));
    if (!is_stable)
        return;
    to->member_metadata = copy_bytes(arena, metadata.p, metadata.n);
    to->member_assignment = copy_bytes(arena, m->assignment, m->assignment_n);
}

static void describe_missing(struct str id, int16_t version, struct arena *arena,
                             struct describe_groups_response_group *out)
{
    out->group_state = STR_LIT("Dead");
    if (version < 6)
        return;
    out->error_code = ERR_GROUP_ID_NOT_FOUND;
    out->error_message = arena_printf(arena, "Group %.*s not found.", STR_ARG(id));
}

void groups_describe(const struct groups *g, struct str id, int16_t version, struct arena *arena,
                     struct describe_groups_response_group *out)
{
    const struct group *group = groups__find(g, id);

    wire_init(&describe_groups_response_group_schema, out);
    out->group_id = arena_str(arena, id);
    if (!group) {
        describe_missing(id, version, arena, out);
        return;
    }
    out->group_state = str_of(group__state_name(group));
    out->protocol_type = arena_str(arena, str_or_empty(group->protocol_type));
    if (group->state == GROUP_STABLE)
        out->protocol_data = arena_str(arena, str_or_empty(group->protocol));
    out->members.v = arena_calloc(arena, HASH_COUNT(group->members), sizeof(*out->members.v));
    for (const struct group_member *m = group->members; m; m = m->hh.next)
        describe_member(m, arena, &out->members.v[out->members.n++]);
}

/* ---- List ------------------------------------------------------------------------------- */

static bool passes(const struct str *names, int32_t n, const char *name)
{
    size_t size = strlen(name);

    if (n <= 0)
        return true;
    for (int32_t i = 0; i < n; i++)
        if ((size_t)MAX(names[i].n, 0) == size && strncasecmp(names[i].p, name, size) == 0)
            return true;
    return false;
}

void groups_list(const struct groups *g, const struct group_filter *filter, struct arena *arena,
                 struct list_groups_response_group **out, int32_t *n)
{
    struct list_groups_response_group *v = arena_calloc(arena, HASH_COUNT(g->by_id), sizeof(*v));

    *out = v;
    *n = 0;
    if (!passes(filter->types, filter->type_count, CLASSIC))
        return;
    for (const struct group *group = g->by_id; group; group = group->hh.next) {
        if (!passes(filter->states, filter->state_count, group__state_name(group)))
            continue;
        wire_init(&list_groups_response_group_schema, &v[*n]);
        v[*n].group_id = arena_str(arena, str_of(group->id));
        v[*n].protocol_type = arena_str(arena, str_or_empty(group->protocol_type));
        v[*n].group_state = str_of(group__state_name(group));
        v[*n].group_type = STR_LIT(CLASSIC);
        (*n)++;
    }
}

/* ---- Offsets ---------------------------------------------------------------------------- */

static void fill_offset(const struct group_offset *o, struct arena *arena,
                        struct offset_fetch_response_group_partition *to)
{
    to->committed_offset = o->value.offset;
    to->committed_leader_epoch = o->value.leader_epoch;
    to->metadata = arena_str(arena, o->value.metadata);
}

static void fetch_one(const struct groups *g, const struct group *group, struct str id,
                      struct str topic, bool require_stable, struct arena *arena,
                      struct offset_fetch_response_group_partition *to)
{
    const struct group_offset *o = group ? group__find_offset(group, topic, to->partition_index)
                                         : NULL;

    to->committed_offset = -1;
    to->committed_leader_epoch = -1;
    to->metadata = STR_LIT("");
    if (require_stable && groups__is_unstable(g, id, topic, to->partition_index))
        to->error_code = ERR_UNSTABLE_OFFSET_COMMIT;
    else if (o)
        fill_offset(o, arena, to);
}

static void fetch_named(const struct groups *g, const struct group *group,
                        const struct offset_fetch_request_group *in, bool require_stable,
                        struct arena *arena, struct offset_fetch_response_group *out)
{
    out->topics.n = in->topics.n;
    out->topics.v = arena_calloc(arena, (size_t)in->topics.n, sizeof(*out->topics.v));
    for (int32_t t = 0; t < in->topics.n; t++) {
        const struct offset_fetch_request_group_topic *from = &in->topics.v[t];
        struct offset_fetch_response_group_topic *to = &out->topics.v[t];

        to->name = arena_str(arena, from->name);
        to->partitions.n = MAX(from->partition_indexes.n, 0);
        to->partitions.v = arena_calloc(arena, (size_t)to->partitions.n, sizeof(*to->partitions.v));
        for (int32_t i = 0; i < to->partitions.n; i++) {
            to->partitions.v[i].partition_index = from->partition_indexes.v[i];
            fetch_one(g, group, in->group_id, to->name, require_stable, arena,
                      &to->partitions.v[i]);
        }
    }
}

static int by_key(const void *a, const void *b)
{
    const struct group_offset *x = *(const struct group_offset *const *)a;
    const struct group_offset *y = *(const struct group_offset *const *)b;
    int order = str_cmp(group_offset__topic(x), group_offset__topic(y));
    int32_t px = group_offset__partition(x);
    int32_t py = group_offset__partition(y);

    return order ? order : (px > py) - (px < py);
}

/* All offsets, sorted by topic and partition; their number is that of the table. */
static const struct group_offset **sorted(const struct group *group, struct arena *arena)
{
    size_t n = HASH_COUNT(group->offsets);
    const struct group_offset **v = arena_calloc(arena, n, sizeof(struct group_offset *));
    size_t i = 0;

    for (const struct group_offset *o = group->offsets; o; o = o->hh.next)
        v[i++] = o;
    if (n > 1)
        qsort(v, n, sizeof(struct group_offset *), by_key);
    return v;
}

static void fetch_all(const struct groups *g, const struct group *group, bool require_stable,
                      struct arena *arena, struct offset_fetch_response_group *out)
{
    int32_t n = (int32_t)HASH_COUNT(group->offsets);
    const struct group_offset **all = sorted(group, arena);
    struct offset_fetch_response_group_partition *parts =
        arena_calloc(arena, (size_t)n, sizeof(*parts));
    struct offset_fetch_response_group_topic *to = NULL;

    out->topics.v = arena_calloc(arena, (size_t)n, sizeof(*out->topics.v));
    for (int32_t i = 0; i < n; i++) {
        struct str topic = group_offset__topic(all[i]);

        if (!to || !str_eq(to->name, topic)) {
            to = &out->topics.v[out->topics.n++];
            to->name = arena_str(arena, topic);
            to->partitions.v = &parts[i];
        }
        parts[i].partition_index = group_offset__partition(all[i]);
        fetch_one(g, group, str_of(group->id), topic, require_stable, arena, &parts[i]);
        to->partitions.n++;
    }
}

void groups_fetch(const struct groups *g, const struct offset_fetch_request_group *in,
                  bool require_stable, struct arena *arena, struct offset_fetch_response_group *out)
{
    const struct group *group = groups__find(g, in->group_id);

    wire_init(&offset_fetch_response_group_schema, out);
    out->group_id = arena_str(arena, in->group_id);
    if (in->topics.n >= 0)
        fetch_named(g, group, in, require_stable, arena, out);
    else if (group)
        fetch_all(g, group, require_stable, arena, out);
}
