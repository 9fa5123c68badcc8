/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `strandline groups` finds out about one group, one question after another: the group, what
 * it has committed, the leaders of those partitions, and from each leader the ends of the logs.
 *
 * Partitions become rows wherever they are met: assigned, committed, selected. The rows are sorted
 * then, and those of the same partition become one. The operations keep their answers, so rows may
 * point into them.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/groups_int.h"

/* ---- Rows. */

static int by_partition(const void *a, const void *b)
{
    const struct group_row *x = a;
    const struct group_row *y = b;
    int c = str_cmp(x->topic, y->topic);

    return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}

static struct group_row *add_row(struct groups *s, struct str topic, int32_t partition)
{
    if (s->row_count == s->row_cap) {
        s->row_cap = MAX(2 * s->row_cap, 64);
        s->rows = xrealloc(s->rows, (size_t)s->row_cap * sizeof(*s->rows));
    }
    s->rows[s->row_count] = (struct group_row){
        .topic = topic,
        .partition = partition,
        .committed = -1,
        .metadata = str_null(),
        .member = -1,
        .leader = -1,
        .err = ERR_UNKNOWN_TOPIC_OR_PARTITION,
        .at = {-1, -1, -1},
    };
    return &s->rows[s->row_count++];
}

static bool is_selected(const struct groups *s, const struct group_row *row)
{
    for (int32_t i = 0; i < s->selection_count; i++)
        if (str_eq(s->selections[i].topic, row->topic) &&
            (s->selections[i].partition < 0 || s->selections[i].partition == row->partition))
            return true;
    return s->selection_count == 0;
}

static void merge_row(struct group_row *into, const struct group_row *row)
{
    if (row->committed >= 0) {
        into->committed = row->committed;
        into->metadata = row->metadata;
    }
    if (row->member >= 0)
        into->member = row->member;
}

static void tidy_rows(struct groups *s)
{
    int32_t n = 0;

    if (s->row_count > 0)
        qsort(s->rows, (size_t)s->row_count, sizeof(*s->rows), by_partition);
    for (int32_t i = 0; i < s->row_count; i++) {
        if (!is_selected(s, &s->rows[i]))
            continue;
        if (n > 0 && by_partition(&s->rows[n - 1], &s->rows[i]) == 0)
            merge_row(&s->rows[n - 1], &s->rows[i]);
        else
            s->rows[n++] = s->rows[i];
    }
    s->row_count = n;
}

static struct group_row *find_row(const struct groups *s, struct str topic, int32_t partition)
{
    struct group_row key = {.topic = topic, .partition = partition};

    return s->row_count ? bsearch(&key, s->rows, (size_t)s->row_count, sizeof(key), by_partition)
                        : NULL;
}

/* ---- Assignments: version, topics with partitions, and bytes that only the members know. */

static bool take_i16(struct bytes *in, int32_t *out)
{
    if (in->n < 2)
        return false;
    *out = get_i16(in->p);
    in->p += 2;
    in->n -= 2;
    return true;
}

static bool take_i32(struct bytes *in, int32_t *out)
{
    if (in->n < 4)
        return false;
    *out = get_i32(in->p);
    in->p += 4;
    in->n -= 4;
    return true;
}

static bool take_str(struct bytes *in, struct str *out)
{
    int32_t n;

    if (!take_i16(in, &n) || n < 0 || n > in->n)
        return false;
    *out = (struct str){(const char *)in->p, n};
    in->p += n;
    in->n -= n;
    return true;
}

/* What cannot be read is left out. */
static void add_assignment(struct groups *s, int32_t member, struct bytes in)
{
    struct str topic;
    int32_t version;
    int32_t topics;
    int32_t partitions;
    int32_t partition;

    if (!take_i16(&in, &version) || !take_i32(&in, &topics))
        return;
    for (; topics > 0 && take_str(&in, &topic) && take_i32(&in, &partitions); topics--)
        for (; partitions > 0 && take_i32(&in, &partition); partitions--)
            add_row(s, topic, partition)->member = member;
}

const struct describe_groups_response_group *groups__group(const struct groups *s)
{
    const struct describe_groups_response *r = s->group.response;
    const struct describe_groups_response_group *g = r->groups.n == 1 ? &r->groups.v[0] : NULL;

    return g && !g->error_code && !str_eq_c(g->group_state, "Dead") ? g : NULL;
}

/* ---- The ends of the logs, one leader after another. */

static void ask_ends(struct groups *s);

static void take_ends(struct groups *s, const struct list_offsets_response *r)
{
    for (int32_t i = 0; i < r->topics.n; i++) {
        const struct list_offsets_response_topic *topic = &r->topics.v[i];

        for (int32_t k = 0; k < topic->partitions.n; k++) {
            const struct list_offsets_response_partition *p = &topic->partitions.v[k];
            struct group_row *row = find_row(s, topic->name, p->partition_index);

            if (!row || row->times_asked == 0)
                continue;
            row->at[row->times_asked - 1] = p->offset;
            if (p->error_code)
                row->err = err_from_wire(p->error_code);
        }
    }
}

static void ends_listed(struct admin_op *op)
{
    struct groups *s = CONTAINER_OF(op, struct groups, offsets);

    if (op->err) {
        tool_check(&s->tool, op, "list offsets");
        return;
    }
    take_ends(s, op->response);
    ask_ends(s);
}

static bool is_due(const struct groups *s, const struct group_row *row)
{
    return !row->err && row->leader >= 0 && row->times_asked < s->time_count;
}

static int64_t time_asked(const struct groups *s, int time)
{
    return time == GROUP_LATEST ? ADMIN_LATEST : time == GROUP_EARLIEST ? ADMIN_EARLIEST : s->value;
}

static void ask_ends(struct groups *s)
{
    struct admin_offset *v = xcalloc((size_t)s->row_count + 1, sizeof(*v));
    int32_t leader = -1;
    int time = 0;
    int32_t count = 0;

    for (int32_t i = 0; i < s->row_count; i++) {
        struct group_row *row = &s->rows[i];

        if (!is_due(s, row))
            continue;
        if (count == 0) {
            leader = row->leader;
            time = row->times_asked;
        }
        if (row->leader != leader || row->times_asked != time)
            continue;
        v[count++] = (struct admin_offset){
            .topic = row->topic,
            .partition = row->partition,
            .offset = time_asked(s, time),
        };
        row->times_asked++;
    }
    s->offsets.done = ends_listed;
    if (count > 0)
        admin_list_offsets(s->tool.client, &s->offsets, leader, v, count);
    free(v);
    if (count == 0)
        s->looked(s);
}

/* ---- Topics. */

static void add_selected(struct groups *s, const struct metadata_response_topic *topic)
{
    for (int32_t i = 0; i < s->selection_count; i++) {
        const struct group_selection *x = &s->selections[i];

        if (!str_eq(x->topic, topic->name))
            continue;
        if (x->partition >= 0 || topic->partitions.n <= 0)
            add_row(s, x->topic, MAX(x->partition, 0));
        for (int32_t k = 0; x->partition < 0 && k < topic->partitions.n; k++)
            add_row(s, x->topic, topic->partitions.v[k].partition_index);
    }
}

static void take_leaders(struct groups *s, const struct metadata_response_topic *topic)
{
    for (int32_t i = 0; i < topic->partitions.n; i++) {
        const struct metadata_response_partition *p = &topic->partitions.v[i];
        struct group_row *row = find_row(s, topic->name, p->partition_index);

        if (!row)
            continue;
        row->leader = p->leader_id;
        row->err = p->leader_id < 0 ? ERR_LEADER_NOT_AVAILABLE : ERR_NONE;
    }
}

static void topics_described(struct admin_op *op)
{
    struct groups *s = CONTAINER_OF(op, struct groups, topics);
    const struct metadata_response *r = op->response;

    if (op->err) {
        tool_check(&s->tool, op, "describe topics");
        return;
    }
    for (int32_t i = 0; s->adds_selected && i < r->topics.n; i++)
        add_selected(s, &r->topics.v[i]);
    tidy_rows(s);
    for (int32_t i = 0; i < r->topics.n; i++)
        take_leaders(s, &r->topics.v[i]);
    ask_ends(s);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void ask_topics(struct groups *s)
{
    int32_t all = s->row_count + s->selection_count;
    struct str *names = xcalloc((size_t)all + 1, sizeof(*names));
    int32_t n = 0;

    for (int32_t i = 0; i < s->row_count; i++)
        names[i] = s->rows[i].topic;
    for (int32_t i = 0; i < s->selection_count; i++)
        names[s->row_count + i] = s->selections[i].topic;
    qsort(names, (size_t)all, sizeof(*names), by_name);
    for (int32_t i = 0; i < all; i++)
        if (n == 0 || !str_eq(names[n - 1], names[i]))
            names[n++] = names[i];
    s->topics.done = topics_described;
    if (n > 0)
        admin_describe_topics(s->tool.client, &s->topics, names, n);
    free(names);
    if (n == 0)
        s->looked(s);
}

/* ---- The group. */

static void offsets_fetched(struct admin_op *op)
{
    struct groups *s = CONTAINER_OF(op, struct groups, committed);
    const struct offset_fetch_response *r = op->response;

    if (op->err) {
        tool_fail_err(&s->tool, op->err, str_null(), "cannot fetch the offsets of group %.*s",
                      STR_ARG(s->names[s->at]));
        return;
    }
    for (int32_t i = 0; i < r->topics.n; i++) {
        const struct offset_fetch_response_topic *topic = &r->topics.v[i];

        for (int32_t k = 0; k < topic->partitions.n; k++) {
            const struct offset_fetch_response_partition *p = &topic->partitions.v[k];
            struct group_row *row = add_row(s, topic->name, p->partition_index);

            row->committed = p->committed_offset;
            row->metadata = p->metadata;
        }
    }
    tidy_rows(s);
    if (s->time_count)
        ask_topics(s);
    else
        s->looked(s);
}

static void group_described(struct admin_op *op)
{
    struct groups *s = CONTAINER_OF(op, struct groups, group);
    const struct describe_groups_response_group *g;
    bool is_unknown = !op->err && op->result_count == 1 &&
                      op->results[0].err == ERR_GROUP_ID_NOT_FOUND;

    if (!is_unknown && !tool_check(&s->tool, op, "describe group"))
        return;
    g = groups__group(s);
    for (int32_t i = 0; g && i < g->members.n; i++)
        add_assignment(s, i, g->members.v[i].member_assignment);
    s->committed.done = offsets_fetched;
    admin_fetch_offsets(s->tool.client, &s->committed, s->names[s->at]);
}

void groups__look(struct groups *s)
{
    s->row_count = 0;
    s->group.done = group_described;
    admin_describe_group(s->tool.client, &s->group, s->names[s->at]);
}
