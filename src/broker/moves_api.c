/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments: what people ask the
 * controller to do with replicas. Each change is a task: planned from the image that the one before
 * has left, carried out, answered. A broker that is not the controller says so; a client then looks
 * for it.
 *
 * An answered reassignment has begun, no more: the list says when it has ended.
 */
#include "broker/cluster.h"

#include <stdlib.h>

#include "base/alloc.h"

/* ---- a request that becomes a plan --------------------------------------------------------- */

struct asking {
    struct task task;
    struct request *request;
    /* Fills in the response; the plan is what it asks for. */
    void (*plan)(struct control *c, struct request *r, struct metadata_delta *plan);
    /* What is said instead when nothing has been done. */
    void (*refuse)(struct request *r, enum err err);
};

static void carried_out(struct control *c, void *ctx, enum err err)
{
    struct asking *a = ctx;

    if (err)
        a->refuse(a->request, err);
    request_return(a->request);
    free(a);
    control_task_end(c);
}

static void asking_run(struct control *c, struct task *t)
{
    struct asking *a = CONTAINER_OF(t, struct asking, task);
    struct metadata_delta plan = {0};

    if (!control_decides(c)) {
        carried_out(c, a, ERR_NOT_CONTROLLER);
        return;
    }
    a->plan(c, a->request, &plan);
    if (plan.count > 0)
        rule_carry_out(c->cluster, &plan, carried_out, a);
    else
        carried_out(c, a, ERR_NONE);
}

static void ask(struct control *c, struct request *r,
                void (*plan)(struct control *c, struct request *r, struct metadata_delta *plan),
                void (*refuse)(struct request *r, enum err err))
{
    struct asking *a = xcalloc(1, sizeof(*a));

    a->request = r;
    a->plan = plan;
    a->refuse = refuse;
    control_enqueue(c, &a->task, asking_run);
}

/* ---- ElectLeaders -------------------------------------------------------------------------- */

static void plan_elections(struct control *c, struct request *r, struct metadata_delta *plan)
{
    const struct elect_leaders_request *in = r->in;

    controller_elect(c->image, in, &r->arena, r->out, plan);
    trace_info("controller.elections_asked", "type=%d elected=%d", in->election_type, plan->count);
}

static void refuse_topic(struct request *r, const struct elect_leaders_request_topic *in,
                         struct elect_leaders_response_topic *out, enum err err)
{
    out->topic = in->topic;
    out->partition_result.n = in->partitions.n;
    out->partition_result.v =
        request_array(r, &elect_leaders_response_partition_schema, in->partitions.n);
    for (int32_t i = 0; i < in->partitions.n; i++) {
        out->partition_result.v[i].partition_id = in->partitions.v[i];
        out->partition_result.v[i].error_code = err_wire(err);
        out->partition_result.v[i].error_message = str_of(err_text(err));
    }
}

/* Version 0 has no error of the whole request, so each partition has it. */
static void refuse_elections(struct request *r, enum err err)
{
    const struct elect_leaders_request *in = r->in;
    struct elect_leaders_response *out = r->out;
    int32_t n = MAX(in->topic_partitions.n, 0);

    out->error_code = err_wire(err);
    out->replica_election_results.n = n;
    out->replica_election_results.v = request_array(r, &elect_leaders_response_topic_schema, n);
    for (int32_t i = 0; i < n; i++)
        refuse_topic(r, &in->topic_partitions.v[i], &out->replica_election_results.v[i], err);
}

static void elect_leaders(struct control *c, struct request *r)
{
    ask(c, r, plan_elections, refuse_elections);
}

void handle_elect_leaders(struct request *r)
{
    request_to_control(r, elect_leaders, request_reply);
}

/* ---- AlterPartitionReassignments ------------------------------------------------------------- */

static void plan_moves(struct control *c, struct request *r, struct metadata_delta *plan)
{
    controller_reassign(c->image, r->in, &r->arena, r->out, plan);
    trace_info("controller.moves_asked", "changed=%d", plan->count);
}

static void refuse_moves(struct request *r, enum err err)
{
    struct alter_partition_reassignments_response *out = r->out;

    out->error_code = err_wire(err);
    out->error_message = str_of(err_text(err));
    out->responses.n = 0;
}

static void alter_moves(struct control *c, struct request *r)
{
    ask(c, r, plan_moves, refuse_moves);
}

void handle_alter_partition_reassignments(struct request *r)
{
    request_to_control(r, alter_moves, request_reply);
}

/* ---- ListPartitionReassignments -------------------------------------------------------------- */

static void list_moves(struct control *c, struct request *r)
{
    struct list_partition_reassignments_response *out = r->out;

    if (control_decides(c)) {
        controller_list_reassignments(c->image, r->in, &r->arena, out);
    } else {
        out->error_code = err_wire(ERR_NOT_CONTROLLER);
        out->error_message = str_of(err_text(ERR_NOT_CONTROLLER));
    }
    request_return(r);
}

void handle_list_partition_reassignments(struct request *r)
{
    request_to_control(r, list_moves, request_reply);
}
