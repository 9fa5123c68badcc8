/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_REASSIGN_INT_H
#define SL_CLI_REASSIGN_INT_H

#include <jansson.h>

#include "cli/partitions.h"

/* What the files of `strandline reassign` share: the arguments, the plan, what is moving now. */

struct ids {
    const int32_t *v; /* broker ids, the preferred leader first */
    int32_t n;
};

/* A partition of the plan. */
struct move {
    struct admin_partition at; /* first, for sorting */
    int32_t place;             /* in the list of the plan's file */
    struct ids from;           /* the replicas that it has, without those that it is only to get */
    struct ids to;
    bool is_there; /* has them already and is not moving */
    enum err err;  /* of starting */
    struct str message;
    /* of waiting */
    int32_t adding; /* how many of `to` it did not have when it was last looked at */
    int64_t size;   /* bytes of the largest replica that it had */
    int64_t held;   /* by the replicas that are added */
};

/* A partition that moves, as the controller has listed it; borrows from s->list. */
struct ongoing {
    struct admin_partition at; /* first, for sorting */
    struct ids replicas;       /* the target, and what is to be removed */
    struct ids adding;
    struct ids removing;
};

struct reassign {
    struct tool tool;
    struct admin_op cluster;
    struct admin_op topics;
    struct admin_op list;
    struct admin_op alter;
    struct admin_op dirs;
    struct admin_op config;
    struct arena arena;
    /* arguments */
    struct admin_partition *named;
    int32_t named_count;
    struct str *names; /* of the topics that are asked for, each once */
    int32_t name_count;
    struct ids replicas; /* --replicas */
    struct ids brokers;  /* --brokers */
    int32_t replication_factor;
    const char *plan_path;
    json_t *plan;     /* what the file says; moves borrow from it */
    int64_t throttle; /* --throttle, bytes a second; 0: none was asked for */
    bool is_dry_run;
    bool waits;
    bool is_all;
    /* the plan, sorted, each partition once */
    struct move *moves;
    int32_t move_count;
    int32_t move_cap;
    /* what is moving now, sorted */
    struct ongoing *ongoing;
    int32_t ongoing_count;
    /* waiting */
    struct client_alarm alarm;
    int32_t *asked; /* brokers that say how far they are */
    int32_t asked_count;
    int32_t asked_at;
    int32_t round;
    int32_t late; /* rounds in which nothing moved and Metadata was still old */
    int64_t progress_ns;
    bool has_progress; /* an unfinished line on the terminal */
    /* throttling */
    struct throttle_step *steps; /* what is to be changed, one after the other */
    int32_t step_count;
    int32_t step_at;
    void (*throttled)(struct reassign *s); /* all of it has been */
    int end_status;
};

static inline struct reassign *reassign_of(struct tool *t)
{
    return CONTAINER_OF(t, struct reassign, tool);
}

/* ---- reassign.c ---- */

/* Takes s->list's answer into s->ongoing. */
void reassign__take_list(struct reassign *s);
/* NULL: it is not moving. */
const struct ongoing *reassign__ongoing(const struct reassign *s, const struct admin_partition *p);
/* Those of `from` that are not in `without`. */
struct ids reassign__without(struct arena *arena, struct ids from, struct ids without);
bool reassign__same_ids(struct ids a, struct ids b);

/* ---- reassign_plan.c ---- */

/* Reads s->plan_path into moves. False after having said what is wrong with it. */
bool reassign__load_plan(struct reassign *s);
/* Where a move was asked for: "plan.json: partitions[2] (orders-0): ", or nothing. */
const char *reassign__place(struct reassign *s, const struct move *m);
struct move *reassign__add_move(struct reassign *s, struct admin_partition at, struct ids to);
/* The moves as Kafka's tools read them: where to, or what they have now. */
void reassign__print_plan(const struct reassign *s, bool is_now);
json_t *reassign__json_of_plan(const struct reassign *s, bool is_now);

/* ---- reassign_start.c, reassign_wait.c ---- */

void reassign__start_moves(struct tool *t);
/* Until all moves that have begun are over; ends the tool, with `status` if all is well. */
void reassign__wait(struct reassign *s);

/* ---- reassign_throttle.c ---- */

/* Sets the throttle for what the moves and s->ongoing need; ends the tool if that fails. */
void reassign__throttle(struct reassign *s, void (*then)(struct reassign *s));
/* Ends the tool; if nothing moves any more, with the throttle of s->names taken off. */
void reassign__end(struct reassign *s, int status, int32_t moving);

#endif
