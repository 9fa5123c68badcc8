/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AlterPartition, both ends. Leaders here propose in-sync sets: their proposals gather on the
 * control loop and go to the controller in one request, one at a time; where the controller is this
 * broker they become a task at once. As the controller: the task plans, stores, and answers with
 * what is stored.
 */
#include "broker/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- as the controller ------------------------------------------------------------------- */

/* One partition of a request, or of a proposal from here. */
struct alteration {
    struct uuid topic_id;
    int32_t index;
    struct controller_proposal proposal;
    enum err err;
    struct metadata_partition next;
};

struct alterations {
    struct task task;
    struct cluster *cluster;
    struct arena arena;
    struct alteration *v;
    int32_t n;
    void (*done)(struct alterations *as, enum err err);
    void *ctx;
};

static struct alterations *alterations_new(struct cluster *k, int32_t n,
                                           void (*done)(struct alterations *as, enum err err),
                                           void *ctx)
{
    struct alterations *as = xcalloc(1, sizeof(*as));

    as->cluster = k;
    as->v = xcalloc((size_t)MAX(n, 1), sizeof(*as->v));
    as->done = done;
    as->ctx = ctx;
    arena_init(&as->arena, 0);
    return as;
}

static void altered(struct control *c, void *ctx, enum err err)
{
    struct alterations *as = ctx;

    as->done(as, err);
    arena_fini(&as->arena);
    free(as->v);
    free(as);
    control_task_end(c);
}

static void plan_one(const struct control *c, struct alterations *as, struct alteration *a,
                     struct metadata_delta *plan)
{
    const struct metadata_topic *topic = metadata_find_topic_id(c->image, a->topic_id);
    const struct metadata_partition *p =
        topic && !topic->is_deleting ? metadata_find_partition(topic, a->index) : NULL;

    a->err = p ? controller_alter(c->image, p, &a->proposal, &as->arena, &a->next)
               : ERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (!a->err && a->next.partition_epoch != p->partition_epoch)
        metadata_delta_set_partition(plan, topic->name, a->index, &a->next);
}

static void alter_run(struct control *c, struct task *t)
{
    struct alterations *as = CONTAINER_OF(t, struct alterations, task);
    struct metadata_delta plan = {0};

    if (!control_decides(c)) {
        altered(c, as, ERR_NOT_CONTROLLER);
        return;
    }
    for (int32_t i = 0; i < as->n; i++)
        plan_one(c, as, &as->v[i], &plan);
    if (plan.count > 0)
        rule_carry_out(as->cluster, &plan, altered, as);
    else
        altered(c, as, ERR_NONE);
}

/* ---- the request -------------------------------------------------------------------------- */

#define LEND_IDS(field, from) ((field).v = (from).ids, (field).n = (from).count)

static void fill_answer(struct request *r, const struct alterations *as)
{
    const struct alter_partition_request *in = r->in;
    struct alter_partition_response *out = r->out;
    const struct alteration *a = as->v;

    out->topics.n = in->topics.n;
    out->topics.v = request_array(r, &alter_partition_response_topic_schema, in->topics.n);
    for (int32_t t = 0; t < in->topics.n; t++) {
        int32_t n = in->topics.v[t].partitions.n;
        struct alter_partition_response_topic *to = &out->topics.v[t];

        to->topic_id = in->topics.v[t].topic_id;
        to->partitions.n = n;
        to->partitions.v = request_array(r, &alter_partition_response_partition_schema, n);
        for (int32_t i = 0; i < n; i++, a++) {
            struct alter_partition_response_partition *p = &to->partitions.v[i];
            struct metadata_ids isr = {.count = a->err ? 0 : a->next.isr.count};

            isr.ids = request_alloc(r, (size_t)isr.count * sizeof(int32_t) + 1);
            if (isr.count > 0)
                memcpy(isr.ids, a->next.isr.ids, (size_t)isr.count * sizeof(int32_t));
            p->partition_index = a->index;
            p->error_code = err_wire(a->err);
            p->leader_id = a->next.leader;
            p->leader_epoch = a->next.leader_epoch;
            p->partition_epoch = a->next.partition_epoch;
            LEND_IDS(p->isr, isr);
        }
    }
}

static void request_altered(struct alterations *as, enum err err)
{
    struct request *r = as->ctx;
    struct alter_partition_response *out = r->out;

    out->error_code = err_wire(err);
    if (!err)
        fill_answer(r, as);
    request_return(r);
}

static enum err check_sender(const struct control *c, const struct alter_partition_request *in)
{
    const struct metadata_broker *b = metadata_find_broker(c->image, in->broker_id);

    if (!c->cluster->rule)
        return ERR_NOT_CONTROLLER;
    return b && (in->broker_epoch < 0 || in->broker_epoch == b->epoch) ? ERR_NONE
                                                                       : ERR_STALE_BROKER_EPOCH;
}

static void alter_partition(struct control *c, struct request *r)
{
    const struct alter_partition_request *in = r->in;
    struct alter_partition_response *out = r->out;
    struct alterations *as;
    int32_t n = 0;

    out->error_code = err_wire(check_sender(c, in));
    if (out->error_code) {
        request_return(r);
        return;
    }
    for (int32_t t = 0; t < in->topics.n; t++)
        n += in->topics.v[t].partitions.n;
    as = alterations_new(c->cluster, n, request_altered, r);
    for (int32_t t = 0; t < in->topics.n; t++)
        for (int32_t i = 0; i < in->topics.v[t].partitions.n; i++) {
            const struct alter_partition_request_partition *p = &in->topics.v[t].partitions.v[i];

            as->v[as->n++] = (struct alteration){
                .topic_id = in->topics.v[t].topic_id,
                .index = p->partition_index,
                .proposal = {.from = in->broker_id,
                             .leader_epoch = p->leader_epoch,
                             .partition_epoch = p->partition_epoch,
                             .count = p->new_isr_with_epochs.n,
                             .isr = p->new_isr_with_epochs.v},
            };
        }
    control_enqueue(c, &as->task, alter_run);
}

void handle_alter_partition(struct request *r)
{
    request_to_control(r, alter_partition, request_reply);
}

/* ---- proposals from here ------------------------------------------------------------------ */

struct isr_batch {
    struct cluster *cluster;
    struct list changes;
    struct arena arena;
    struct client_call call;
};

static void propose_next(struct cluster *k);

static void batch_free(struct isr_batch *b)
{
    b->cluster->batch = NULL;
    client_call_fini(&b->call);
    arena_fini(&b->arena);
    free(b);
}

static void change_home(struct io_msg *msg)
{
    struct isr_change *g = CONTAINER_OF(msg, struct isr_change, msg);

    replicate_altered(g->partition, &g->answer);
    partition_unref(g->partition);
    free(g->answer.isr.ids);
    free(g->isr);
    free(g);
}

static void answer_change(struct isr_change *g, enum err err)
{
    g->answer.asked_leader_epoch = g->leader_epoch;
    g->answer.asked_partition_epoch = g->partition_epoch;
    g->answer.err = err;
    g->msg.fn = change_home;
    io_post(g->partition->owner->loop, &g->msg);
}

static void keep_isr(struct isr_change *g, const int32_t *ids, int32_t n)
{
    g->answer.isr.ids = xmemdup(ids, (size_t)n * sizeof(*ids));
    g->answer.isr.count = n;
}

static void changes_altered_here(struct alterations *as, enum err err)
{
    struct isr_batch *b = as->ctx;
    struct cluster *k = b->cluster;
    struct list *node;
    int32_t i = 0;

    while ((node = list_pop_front(&b->changes))) {
        struct isr_change *g = LIST_ENTRY(node, struct isr_change, link);
        const struct alteration *a = &as->v[i++];

        if (!err && !a->err) {
            g->answer.leader_epoch = a->next.leader_epoch;
            g->answer.partition_epoch = a->next.partition_epoch;
            keep_isr(g, a->next.isr.ids, a->next.isr.count);
        }
        answer_change(g, err ? err : a->err);
    }
    batch_free(b);
    propose_next(k);
}

static void propose_here(struct isr_batch *b)
{
    struct cluster *k = b->cluster;
    int32_t n = 0;
    struct alterations *as;

    LIST_EACH (node, &b->changes)
        n++;
    as = alterations_new(k, n, changes_altered_here, b);
    LIST_EACH (node, &b->changes) {
        const struct isr_change *g = LIST_ENTRY(node, struct isr_change, link);

        as->v[as->n++] = (struct alteration){
            .topic_id = g->partition->topic_id,
            .index = g->partition->index,
            .proposal = {.from = k->control->broker->node_id,
                         .leader_epoch = g->leader_epoch,
                         .partition_epoch = g->partition_epoch,
                         .count = g->count,
                         .isr = g->isr},
        };
    }
    control_enqueue(k->control, &as->task, alter_run);
}

static const struct alter_partition_response_partition *find_answer(
    const struct alter_partition_response *r, const struct partition *p)
{
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t i = 0; i < r->topics.v[t].partitions.n; i++)
            if (uuid_eq(r->topics.v[t].topic_id, p->topic_id) &&
                r->topics.v[t].partitions.v[i].partition_index == p->index)
                return &r->topics.v[t].partitions.v[i];
    return NULL;
}

static void take_answer(struct isr_change *g, const struct alter_partition_response *r,
                        enum err err)
{
    const struct alter_partition_response_partition *a = err ? NULL : find_answer(r, g->partition);

    if (!err)
        err = a ? err_from_wire(a->error_code) : ERR_UNKNOWN_SERVER_ERROR;
    if (!err) {
        g->answer.leader_epoch = a->leader_epoch;
        g->answer.partition_epoch = a->partition_epoch;
        keep_isr(g, a->isr.v, a->isr.n);
    }
    answer_change(g, err);
}

static void proposed(struct client_call *call)
{
    struct isr_batch *b = CONTAINER_OF(call, struct isr_batch, call);
    struct cluster *k = b->cluster;
    const struct alter_partition_response *r = call->response;
    enum err err = call->err ? call->err : err_from_wire(r->error_code);
    struct list *node;

    while ((node = list_pop_front(&b->changes)))
        take_answer(LIST_ENTRY(node, struct isr_change, link), r, err);
    batch_free(b);
    propose_next(k);
}

static void fill_request(struct isr_batch *b, struct alter_partition_request *q)
{
    size_t n = 0;

    LIST_EACH (node, &b->changes)
        n++;
    wire_init(&alter_partition_request_schema, q);
    q->broker_id = b->cluster->control->broker->node_id;
    q->broker_epoch = b->cluster->broker_epoch;
    q->topics.v = arena_calloc(&b->arena, n, sizeof(*q->topics.v));
    LIST_EACH (node, &b->changes) {
        const struct isr_change *g = LIST_ENTRY(node, struct isr_change, link);
        struct alter_partition_request_topic *t = &q->topics.v[q->topics.n++];

        wire_init(&alter_partition_request_topic_schema, t);
        t->topic_id = g->partition->topic_id;
        t->partitions.n = 1;
        t->partitions.v = arena_calloc(&b->arena, 1, sizeof(*t->partitions.v));
        wire_init(&alter_partition_request_partition_schema, t->partitions.v);
        t->partitions.v->partition_index = g->partition->index;
        t->partitions.v->leader_epoch = g->leader_epoch;
        t->partitions.v->partition_epoch = g->partition_epoch;
        t->partitions.v->new_isr_with_epochs.v = g->isr;
        t->partitions.v->new_isr_with_epochs.n = g->count;
    }
}

static void propose_there(struct isr_batch *b)
{
    struct alter_partition_request *q = arena_alloc(&b->arena, sizeof(*q));

    fill_request(b, q);
    b->call.done = proposed;
    b->call.api_key = API_ALTER_PARTITION;
    b->call.target = b->cluster->control->image->controller_id;
    b->call.request = q;
    client_call(b->cluster->peers, &b->call);
}

/* They wait no more. */
static void take_proposals(struct cluster *k, struct list *out)
{
    LIST_EACH (node, &k->proposals)
        LIST_ENTRY(node, struct isr_change, link)->partition->proposal = NULL;
    list_init(out);
    list_splice_back(out, &k->proposals);
}

static void refuse_all(struct cluster *k, enum err err)
{
    struct list refused;
    struct list *node;

    take_proposals(k, &refused);
    while ((node = list_pop_front(&refused)))
        answer_change(LIST_ENTRY(node, struct isr_change, link), err);
}

static void propose_next(struct cluster *k)
{
    const struct control *c = k->control;
    struct isr_batch *b;

    if (k->batch || list_is_empty(&k->proposals))
        return;
    if (!k->rule && c->image->controller_id < 0) {
        refuse_all(k, ERR_NOT_CONTROLLER);
        return;
    }
    b = xcalloc(1, sizeof(*b));
    b->cluster = k;
    arena_init(&b->arena, 0);
    take_proposals(k, &b->changes);
    k->batch = b;
    if (k->rule)
        propose_here(b);
    else
        propose_there(b);
}

void proposals_note_controller(struct cluster *k)
{
    struct isr_batch *b = k->batch;
    struct list *node;

    if (!b || !client_call_is_pending(&b->call) ||
        b->call.target == k->control->image->controller_id)
        return;
    client_cancel(&b->call);
    while ((node = list_pop_front(&b->changes)))
        answer_change(LIST_ENTRY(node, struct isr_change, link), ERR_NETWORK_EXCEPTION);
    batch_free(b);
    propose_next(k);
}

static void change_at_control(struct io_msg *msg)
{
    struct isr_change *g = CONTAINER_OF(msg, struct isr_change, msg);
    struct partition *p = g->partition;
    struct cluster *k = p->broker->control->cluster;

    /* A partition is named once in a request, since answers are found by its name: a proposal of an
     * earlier epoch, which has waited here, would have the next one's. */
    if (p->proposal) {
        list_remove(&p->proposal->link);
        answer_change(p->proposal, ERR_NETWORK_EXCEPTION);
    }
    p->proposal = g;
    list_push_back(&k->proposals, &g->link);
    propose_next(k);
}

void propose_isr(struct partition *p)
{
    struct isr_change *g = xcalloc(1, sizeof(*g));
    size_t n = (size_t)p->replica.member_count;
    const struct replica_member **members = xcalloc(n, sizeof(*members));

    g->partition = partition_ref(p);
    g->leader_epoch = p->replica.leader_epoch;
    g->partition_epoch = p->replica.partition_epoch;
    g->count = replica_proposal(&p->replica, members);
    g->isr = xcalloc(n, sizeof(*g->isr));
    for (int32_t i = 0; i < g->count; i++) {
        wire_init(&alter_partition_request_broker_schema, &g->isr[i]);
        g->isr[i].broker_id = members[i]->id;
        g->isr[i].broker_epoch = members[i]->proposed_as;
    }
    free(members);
    g->msg.fn = change_at_control;
    io_post(control_loop(p->broker), &g->msg);
}

void proposals_free(struct cluster *k)
{
    struct list *node;

    if (k->batch) {
        list_splice_back(&k->proposals, &k->batch->changes);
        arena_fini(&k->batch->arena);
        free(k->batch);
    }
    while ((node = list_pop_front(&k->proposals))) {
        struct isr_change *g = LIST_ENTRY(node, struct isr_change, link);

        partition_unref(g->partition);
        free(g->isr);
        free(g);
    }
}
