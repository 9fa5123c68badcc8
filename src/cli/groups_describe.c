/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline groups describe`: for each group its state, its members, and of each partition what
 * was committed, where the log ends, and the lag: what lies between. A partition without a commit
 * or without a leader has no lag, and counts nothing in the sum.
 */
#include <stdlib.h>

#include "cli/groups_int.h"

static bool has_lag(const struct group_row *row)
{
    return !row->err && row->committed >= 0 && row->at[GROUP_LATEST] >= 0;
}

static int64_t lag_of(const struct group_row *row)
{
    return MAX(row->at[GROUP_LATEST] - row->committed, 0);
}

static int64_t total_lag(const struct groups *s)
{
    int64_t lag = 0;

    for (int32_t i = 0; i < s->row_count; i++)
        lag += has_lag(&s->rows[i]) ? lag_of(&s->rows[i]) : 0;
    return lag;
}

/* ---- As text. */

static void print_number(const char *name, bool is_known, int64_t n)
{
    if (is_known)
        printf("  %s %lld", name, (long long)n);
    else
        printf("  %s -", name);
}

static void print_row(const struct describe_groups_response_group *g, const struct group_row *row)
{
    printf("  partition %.*s-%d", STR_ARG(row->topic), row->partition);
    print_number("offset", row->committed >= 0, row->committed);
    print_number("end", !row->err && row->at[GROUP_LATEST] >= 0, row->at[GROUP_LATEST]);
    print_number("lag", has_lag(row), lag_of(row));
    if (row->member >= 0)
        printf("  member %.*s", STR_ARG(g->members.v[row->member].member_id));
    if (row->err)
        printf("  (%s)", err_name(row->err));
    printf("\n");
}

static int partitions_of(const struct groups *s, int32_t member)
{
    int n = 0;

    for (int32_t i = 0; i < s->row_count; i++)
        n += s->rows[i].member == member;
    return n;
}

static void print_group(const struct groups *s, const struct describe_groups_response_group *g)
{
    struct str protocol = g->protocol_data.n > 0 ? g->protocol_data : STR_LIT("-");

    printf("group %.*s  state %.*s  protocol %.*s  coordinator %d  members %d  lag %lld\n",
           STR_ARG(g->group_id), STR_ARG(g->group_state), STR_ARG(protocol), s->group.node_id,
           g->members.n, (long long)total_lag(s));
    for (int32_t i = 0; i < g->members.n; i++) {
        const struct describe_groups_response_member *m = &g->members.v[i];

        printf("  member %.*s  client %.*s  host %.*s", STR_ARG(m->member_id),
               STR_ARG(m->client_id), STR_ARG(m->client_host));
        if (m->group_instance_id.n > 0)
            printf("  instance %.*s", STR_ARG(m->group_instance_id));
        printf("  partitions %d\n", partitions_of(s, i));
    }
    for (int32_t i = 0; i < s->row_count; i++)
        print_row(g, &s->rows[i]);
}

/* ---- As JSON. */

static json_t *json_of_number(bool is_known, int64_t n)
{
    return is_known ? json_integer(n) : json_null();
}

static json_t *json_of_row(const struct describe_groups_response_group *g,
                           const struct group_row *row)
{
    bool has_end = !row->err && row->at[GROUP_LATEST] >= 0;

    return json_pack(
        "{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:s?}", "topic", tool_json_of(row->topic), "partition",
        (int)row->partition, "offset", json_of_number(row->committed >= 0, row->committed), "end",
        json_of_number(has_end, row->at[GROUP_LATEST]), "lag",
        json_of_number(has_lag(row), lag_of(row)), "metadata", tool_json_of(row->metadata),
        "member",
        row->member >= 0 ? tool_json_of(g->members.v[row->member].member_id) : json_null(), "error",
        row->err ? err_name(row->err) : NULL);
}

static json_t *json_of_members(const struct describe_groups_response_group *g)
{
    json_t *members = json_array();

    for (int32_t i = 0; i < g->members.n; i++) {
        const struct describe_groups_response_member *m = &g->members.v[i];

        json_array_append_new(members, json_pack("{s:o, s:o, s:o, s:o}", "member_id",
                                                 tool_json_of(m->member_id), "group_instance_id",
                                                 tool_json_of(m->group_instance_id), "client_id",
                                                 tool_json_of(m->client_id), "client_host",
                                                 tool_json_of(m->client_host)));
    }
    return members;
}

static json_t *json_of_group(const struct groups *s, const struct describe_groups_response_group *g)
{
    json_t *partitions = json_array();

    for (int32_t i = 0; i < s->row_count; i++)
        json_array_append_new(partitions, json_of_row(g, &s->rows[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:i, s:I, s:o, s:o}", "group", tool_json_of(g->group_id),
                     "state", tool_json_of(g->group_state), "protocol_type",
                     tool_json_of(g->protocol_type), "protocol", tool_json_of(g->protocol_data),
                     "coordinator", (int)s->group.node_id, "lag", (json_int_t)total_lag(s),
                     "members", json_of_members(g), "partitions", partitions);
}

/* ---- One group after another. */

static void describe_next(struct groups *s)
{
    if (s->at < s->name_count) {
        groups__look(s);
        return;
    }
    if (s->tool.is_json) {
        tool_print_json(s->json);
        s->json = NULL;
    }
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void looked(struct groups *s)
{
    const struct describe_groups_response_group *g = groups__group(s);

    if (!g) {
        tool_fail_err(&s->tool, ERR_GROUP_ID_NOT_FOUND, str_null(), "cannot describe group %.*s",
                      STR_ARG(s->names[s->at]));
        return;
    }
    if (s->tool.is_json)
        json_array_append_new(s->json, json_of_group(s, g));
    else
        print_group(s, g);
    s->at++;
    describe_next(s);
}

static void listed(struct groups *s)
{
    s->at = 0;
    describe_next(s);
}

void groups__start_describe(struct tool *t)
{
    struct groups *s = groups_of(t);

    s->json = json_array();
    s->looked = looked;
    s->time_count = GROUP_LATEST + 1;
    if (s->name_count > 0)
        listed(s);
    else
        groups__list(s, listed);
}
