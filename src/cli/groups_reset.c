/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline groups reset-offsets`: computes for each partition where a group shall go on, shows
 * it, and with --execute commits it. The group must have no members, because they would go on
 * where they are and commit over it.
 *
 * A new offset lies within the log: what would be outside becomes the nearest end, and a time that
 * no record has reached is the end of the log.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/groups_int.h"

static int64_t target_of(const struct groups *s, const struct group_row *row)
{
    int64_t start = row->at[GROUP_EARLIEST];
    int64_t end = row->at[GROUP_LATEST];
    int64_t to = end;

    switch (s->reset) {
    case RESET_NONE:
    case RESET_LATEST: break;
    case RESET_EARLIEST: to = start; break;
    case RESET_OFFSET: to = s->value; break;
    case RESET_SHIFT:
        if (__builtin_add_overflow(row->committed, s->value, &to))
            to = s->value < 0 ? start : end;
        break;
    case RESET_TIMESTAMP:
    case RESET_DURATION: to = row->at[GROUP_AT] >= 0 ? row->at[GROUP_AT] : end; break;
    }
    return MIN(MAX(to, start), end);
}

static void print_targets(const struct groups *s)
{
    for (int32_t i = 0; i < s->row_count; i++) {
        const struct group_row *row = &s->rows[i];

        printf("%.*s-%d", STR_ARG(row->topic), row->partition);
        if (row->committed >= 0)
            printf("  from %lld", (long long)row->committed);
        else
            printf("  from -");
        printf("  to %lld\n", (long long)target_of(s, row));
    }
    if (!s->executes)
        printf("dry run, nothing was changed; --execute does it\n");
}

static void print_json(const struct groups *s)
{
    json_t *partitions = json_array();

    for (int32_t i = 0; i < s->row_count; i++) {
        const struct group_row *row = &s->rows[i];

        json_array_append_new(
            partitions, json_pack("{s:o, s:i, s:o, s:I}", "topic", tool_json_of(row->topic),
                                  "partition", (int)row->partition, "from",
                                  row->committed >= 0 ? json_integer(row->committed) : json_null(),
                                  "to", (json_int_t)target_of(s, row)));
    }
    tool_print_json(json_pack("{s:o, s:b, s:o}", "group", tool_json_of(s->names[0]), "executed",
                              (int)s->executes, "partitions", partitions));
}

static void finish(struct groups *s)
{
    if (s->tool.is_json)
        print_json(s);
    else
        print_targets(s);
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void committed(struct admin_op *op)
{
    struct groups *s = CONTAINER_OF(op, struct groups, op);

    if (tool_check(&s->tool, op, "reset the offset of partition"))
        finish(s);
}

static void commit(struct groups *s)
{
    struct admin_offset *v = xcalloc((size_t)s->row_count + 1, sizeof(*v));

    for (int32_t i = 0; i < s->row_count; i++)
        v[i] = (struct admin_offset){
            .topic = s->rows[i].topic,
            .partition = s->rows[i].partition,
            .offset = target_of(s, &s->rows[i]),
            .leader_epoch = -1,
        };
    s->op.done = committed;
    admin_commit_offsets(s->tool.client, &s->op, s->names[0], v, s->row_count);
    free(v);
}

/* All or nothing: one partition that cannot be reset stops it before anything is changed. */
static bool can_reset(struct groups *s, const struct group_row *row)
{
    if (row->err)
        tool_fail_err(&s->tool, row->err, str_null(),
                      "cannot reset the offset of partition %.*s-%d", STR_ARG(row->topic),
                      row->partition);
    else if (s->reset == RESET_SHIFT && row->committed < 0)
        tool_fail(&s->tool,
                  "group %.*s has no offset of partition %.*s-%d that could be shifted; "
                  "leave the partition out or use --offset",
                  STR_ARG(s->names[0]), STR_ARG(row->topic), row->partition);
    return !s->tool.has_ended;
}

static void looked(struct groups *s)
{
    const struct describe_groups_response_group *g = groups__group(s);

    if (g && !str_eq_c(g->group_state, "Empty")) {
        tool_fail_err(&s->tool, ERR_NON_EMPTY_GROUP, str_null(), "cannot reset group %.*s",
                      STR_ARG(s->names[0]));
        return;
    }
    if (s->row_count == 0) {
        tool_fail(&s->tool, "group %.*s has no offsets; --topic says what it shall read",
                  STR_ARG(s->names[0]));
        return;
    }
    for (int32_t i = 0; i < s->row_count; i++)
        if (!can_reset(s, &s->rows[i]))
            return;
    if (s->executes)
        commit(s);
    else
        finish(s);
}

void groups__start_reset(struct tool *t)
{
    struct groups *s = groups_of(t);
    bool has_time = s->reset == RESET_TIMESTAMP || s->reset == RESET_DURATION;

    if (s->reset == RESET_DURATION)
        s->value = MAX(io_wall_ms(t->io) - s->value, 0);
    s->looked = looked;
    s->adds_selected = true;
    s->time_count = has_time ? GROUP_AT + 1 : GROUP_EARLIEST + 1;
    groups__look(s);
}
