/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_GROUPS_INT_H
#define SL_CLI_GROUPS_INT_H

#include <jansson.h>

#include "cli/tool.h"
#include "client/admin.h"

/* What the files of `strandline groups` share: the arguments, and what is known of one group. */

#define SELECTIONS_MAX 1024

/* --topic NAME or --topic NAME:0,1 */
struct group_selection {
    struct str topic;
    int32_t partition; /* -1: all */
};

enum group_time {
    GROUP_LATEST = 0,
    GROUP_EARLIEST,
    GROUP_AT, /* the time of --timestamp or --duration */
    GROUP_TIMES
};

/* A partition that a group has to do with. Strings are those of the operations. */
struct group_row {
    struct str topic;
    int32_t partition;
    int64_t committed;   /* -1: nothing */
    struct str metadata; /* of the commit */
    int32_t member;      /* who reads it, an index into the group's members; -1: nobody */
    int32_t leader;      /* -1: none */
    enum err err;        /* of the partition: the next field says nothing */
    int64_t at[GROUP_TIMES];
    int times_asked;
};

enum group_reset {
    RESET_NONE = 0,
    RESET_EARLIEST,
    RESET_LATEST,
    RESET_OFFSET,
    RESET_SHIFT,
    RESET_TIMESTAMP,
    RESET_DURATION,
};

struct groups {
    struct tool tool;
    struct admin_op op; /* listing, deleting, committing */
    struct admin_op cluster;
    struct admin_op group;
    struct admin_op committed;
    struct admin_op topics;
    struct admin_op offsets;
    struct arena arena; /* of names that were listed */
    struct str *names;
    int32_t name_count;
    int32_t at; /* the name or the broker that it is about now */
    struct group_selection selections[SELECTIONS_MAX];
    int32_t selection_count;
    enum group_reset reset;
    int64_t value; /* of the reset: offset, shift, ms */
    bool executes;
    struct group_row *rows; /* sorted */
    int32_t row_count;
    int32_t row_cap;
    bool adds_selected; /* partitions become rows because they were selected */
    int time_count;     /* how many of enum group_time are looked up; 0: nor are the leaders */
    void (*looked)(struct groups *s);
    void (*all_listed)(struct groups *s);
    json_t *listed; /* groups, as they came */
    json_t *json;   /* the result so far */
};

static inline struct groups *groups_of(struct tool *t)
{
    return CONTAINER_OF(t, struct groups, tool);
}

/* groups.c: the names of all groups, sorted, into s->names; then `then`. */
void groups__list(struct groups *s, void (*then)(struct groups *s));

/*
 * groups_look.c: asks for the group s->names[s->at], its offsets, and the ends of the partitions;
 * then s->looked. A group that nobody knows has no members and no offsets.
 */
void groups__look(struct groups *s);
/* NULL: nobody knows the group. */
const struct describe_groups_response_group *groups__group(const struct groups *s);

void groups__start_describe(struct tool *t);
void groups__start_reset(struct tool *t);

#endif
