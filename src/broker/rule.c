/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This broker as the controller. It begins by reading everything: what earlier controllers knew is
 * of no use (they may have died in the middle of it). From then on every change is a task: plan,
 * store, apply, announce. Watches are hints; what they hint at is read again.
 *
 * Every write checks the node of the controller's epoch, so that nothing of a rule that has ended
 * without noticing is stored (S12). Whatever shows that the image is not what is stored ends the
 * rule: the next one, here or elsewhere, reads everything again. Meanwhile this broker is one like
 * the others.
 */
#include "broker/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"
#include "keeper/znodes.h"

/* The server takes a megabyte at once. */
#define STATES_A_MULTI 500
#define ASSIGNMENTS_A_MULTI 5000

#define SHORT_NS 1000000000

/* A broker does not lead what it was told to lead. */
struct refusal {
    int32_t broker_id;
    struct uuid topic_id;
    int32_t index;
};

struct rule {
    struct cluster *cluster;
    int32_t epoch;
    int32_t epoch_version;
    int64_t begun_ns;
    struct keeper_watch brokers_watch;
    bool has_taken_over;
    bool is_ending;
    struct refusal *refusals; /* a task waits while there are some; owned */
    int32_t refusal_count;
};

bool control_decides(const struct control *c)
{
    const struct rule *rule = c->cluster ? c->cluster->rule : NULL;

    return !c->cluster || (rule && rule->has_taken_over && !rule->is_ending);
}

/* ---- the end ---------------------------------------------------------------------------- */

struct resignation {
    struct task task;
    bool was_short; /* what ended the rule may end the next one, too: no haste */
};

static void resigned(struct control *c, void *ctx)
{
    struct resignation *s = ctx;

    cluster_tell_peers(c->cluster);
    proposals_note_controller(c->cluster);
    cluster_stand_again(c->cluster, !s->was_short);
    free(s);
    control_task_end(c);
}

/* Behind the tasks that were the rule's: they have found out that it does not decide any more. */
static void resign_run(struct control *c, struct task *t)
{
    struct resignation *s = CONTAINER_OF(t, struct resignation, task);
    struct cluster *k = c->cluster;
    struct metadata_delta nobody = {0};

    s->was_short = io_loop_mono_ns(c->loop) - k->rule->begun_ns < SHORT_NS;
    keeper_unwatch(c->keeper, &k->rule->brokers_watch);
    rule_free(k);
    metadata_delta_set_controller(&nobody, -1, c->image->controller_epoch);
    control_publish(c, &nobody, NULL, resigned, s);
}

static void end_rule(struct cluster *k, const char *why)
{
    struct resignation *s;

    if (!k->rule || k->rule->is_ending)
        return;
    k->rule->is_ending = true;
    trace_warn("controller.resigned", "epoch=%d why=\"%s\"", k->rule->epoch, why);
    announcements_rest(k);
    s = xcalloc(1, sizeof(*s));
    control_enqueue(k->control, &s->task, resign_run);
}

bool rule_is_in_force(const struct cluster *k)
{
    return k->rule && !k->rule->is_ending && k->control->image->controller_epoch == k->rule->epoch;
}

void rule_has_lost_session(struct cluster *k)
{
    end_rule(k, "its session has ended");
}

bool rule_has_ended_by(struct cluster *k, int32_t controller_epoch)
{
    if (!k->rule || controller_epoch <= k->rule->epoch)
        return false;
    end_rule(k, "another controller was elected");
    return true;
}

void rule_free(struct cluster *k)
{
    if (!k->rule)
        return;
    free(k->rule->refusals);
    free(k->rule);
    k->rule = NULL;
}

/* ---- moves ------------------------------------------------------------------------------ */

static void moved(struct control *c, void *ctx, enum err err)
{
    (void)err;
    free(ctx);
    control_task_end(c);
}

static void moves_run(struct control *c, struct task *t)
{
    struct metadata_delta plan = {0};

    if (control_decides(c))
        controller_plan_reassignments(c->image, &plan);
    if (plan.count == 0) {
        moved(c, t, ERR_NONE);
        return;
    }
    trace_info("controller.moves_ended", "partitions=%d", plan.count);
    rule_carry_out(c->cluster, &plan, moved, t);
}

/* In-sync sets or brokers have changed: what this completes ends in a task of its own, planned from
 * what is true then. */
static void continue_moves(struct control *c)
{
    struct metadata_delta plan = {0};

    controller_plan_reassignments(c->image, &plan);
    if (plan.count > 0 && !c->stopping)
        control_enqueue(c, xcalloc(1, sizeof(struct task)), moves_run);
    metadata_delta_fini(&plan);
}

/* ---- refusals --------------------------------------------------------------------------- */

static void refusals_run(struct control *c, struct task *t)
{
    struct rule *rule = c->cluster->rule;
    struct metadata_delta plan = {0};

    for (int32_t i = 0; i < rule->refusal_count && control_decides(c); i++) {
        const struct refusal *q = &rule->refusals[i];
        const struct metadata_topic *topic = metadata_find_topic_id(c->image, q->topic_id);

        if (topic && !topic->is_deleting)
            controller_plan_refusal(c->image, q->broker_id, topic, q->index, &plan);
    }
    rule->refusal_count = 0;
    if (plan.count == 0) {
        moved(c, t, ERR_NONE);
        return;
    }
    trace_error("controller.leaderships_refused", "partitions=%d", plan.count);
    rule_carry_out(c->cluster, &plan, moved, t);
}

static bool is_noted(const struct rule *rule, const struct refusal *q)
{
    for (int32_t i = 0; i < rule->refusal_count; i++)
        if (rule->refusals[i].broker_id == q->broker_id && rule->refusals[i].index == q->index &&
            uuid_eq(rule->refusals[i].topic_id, q->topic_id))
            return true;
    return false;
}

void rule_refused(struct cluster *k, int32_t broker_id, struct uuid topic_id, int32_t index)
{
    struct refusal q = {.broker_id = broker_id, .topic_id = topic_id, .index = index};
    struct rule *rule = k->rule;

    if (!rule || rule->is_ending || k->control->stopping || is_noted(rule, &q))
        return;
    rule->refusals =
        xreallocarray(rule->refusals, (size_t)rule->refusal_count + 1, sizeof(*rule->refusals));
    rule->refusals[rule->refusal_count++] = q;
    if (rule->refusal_count == 1)
        control_enqueue(k->control, xcalloc(1, sizeof(struct task)), refusals_run);
}

static void refuse_if_led(struct cluster *k, struct uuid topic_id, int32_t index)
{
    const struct control *c = k->control;
    const struct metadata_topic *topic = metadata_find_topic_id(c->image, topic_id);
    const struct metadata_partition *p = topic ? metadata_find_partition(topic, index) : NULL;

    if (p && p->leader == c->broker->node_id)
        rule_refused(k, c->broker->node_id, topic_id, index);
}

/* What this broker was given by itself, and has lost, or has in a directory that has failed. */
void rule_refuse_own(struct cluster *k)
{
    struct partition *p;
    struct partition *next;

    for (int32_t i = 0; i < k->lost_count; i++)
        if (lost_has(k, k->lost[i].topic_id, k->lost[i].index))
            refuse_if_led(k, k->lost[i].topic_id, k->lost[i].index);
    if (k->dirs_failed == 0)
        return;
    HASH_ITER (of_control, k->control->partitions, p, next) {
        if (dir_failures_have(k, p->topic_id, p->index))
            refuse_if_led(k, p->topic_id, p->index);
    }
}

/* ---- storing ---------------------------------------------------------------------------- */

struct carrying {
    struct cluster *cluster;
    struct metadata_delta plan;
    int32_t stored;              /* changes of the plan */
    int32_t assigned;            /* changes whose assignments are stored, if they have any */
    struct metadata_image *next; /* where it leads, to store assignments; a reference, or NULL */
    void (*done)(struct control *c, void *ctx, enum err err);
    void *ctx;
};

static void carrying_end(struct carrying *y, enum err err)
{
    struct control *c = y->cluster->control;

    metadata_delta_fini(&y->plan);
    metadata_image_put(y->next);
    y->done(c, y->ctx, err);
    free(y);
}

static void reconciled(struct control *c, void *ctx)
{
    struct carrying *y = ctx;

    announce(c->cluster);
    continue_moves(c);
    rule_refuse_own(c->cluster);
    carrying_end(y, ERR_NONE);
}

static void applied(struct control *c, void *ctx)
{
    cluster_tell_peers(c->cluster);
    cluster_reconcile(c, true, reconciled, ctx);
}

static void store_next(struct carrying *y);

static void part_stored(struct control *c, void *ctx, enum err err)
{
    struct carrying *y = ctx;

    (void)c;
    if (!err || PLANTED(DECIDE_UNSTORED)) {
        store_next(y);
        return;
    }
    /* Also where it is not known whether it was stored. */
    end_rule(y->cluster, "a decision could not be stored");
    carrying_end(y, err);
}

static struct store_ops *fenced_ops(const struct rule *rule)
{
    struct store_ops *ops = store_ops_new();

    ops->controller_epoch = rule->epoch;
    store_check_controller(ops, rule->epoch_version);
    return ops;
}

/* How many of the next changes are added. */
static int32_t add_states(struct carrying *y, struct store_ops *ops)
{
    int32_t n = 0;

    while (y->stored < y->plan.count && n < STATES_A_MULTI) {
        const struct metadata_change *change = &y->plan.changes[y->stored++];

        if (change->kind != METADATA_PARTITION)
            continue;
        store_change_partition(ops, change->name, change->index, &change->partition);
        n++;
    }
    return n;
}

/* Behind all states: a state names nobody whom the assignment of before does not name too. */
static int32_t add_assignments(struct carrying *y, struct store_ops *ops)
{
    const struct metadata_image *now = y->cluster->control->image;
    const struct metadata_topic *last = NULL;
    int32_t n = 0;

    while (y->assigned < y->plan.count && n < ASSIGNMENTS_A_MULTI) {
        const struct metadata_change *change = &y->plan.changes[y->assigned++];

        /* A topic's changes lie side by side. */
        if (!controller_changes_assignment(now, change) ||
            (last && str_eq(last->name, change->name)))
            continue;
        if (!y->next)
            y->next = metadata_apply(now, &y->plan);
        last = metadata_find_topic(y->next, change->name);
        store_set_assignments(ops, last);
        n += last->partition_count;
    }
    return n;
}

static void store_next(struct carrying *y)
{
    struct store_ops *ops = fenced_ops(y->cluster->rule);

    if (add_states(y, ops) > 0 || add_assignments(y, ops) > 0) {
        store_commit(y->cluster->control, ops, part_stored, y);
        return;
    }
    store_ops_free(ops);
    control_publish(y->cluster->control, &y->plan, NULL, applied, y);
}

void rule_carry_out(struct cluster *k, struct metadata_delta *takes,
                    void (*done)(struct control *c, void *ctx, enum err err), void *ctx)
{
    struct carrying *y = xcalloc(1, sizeof(*y));

    y->cluster = k;
    y->plan = *takes;
    *takes = (struct metadata_delta){0};
    y->done = done;
    y->ctx = ctx;
    store_next(y);
}

/* ---- who is registered ------------------------------------------------------------------- */

/* Reads all registrations; a task of its own, or part of taking over. */
struct roll_call {
    struct task task;
    struct cluster *cluster;
    struct keeper_call call;
    struct metadata_delta found;
    int pending;
    enum err err;
    void (*done)(struct roll_call *q);
    void *ctx;
};

struct one_registration {
    struct roll_call *roll;
    int32_t id;
    char *path;
    struct keeper_call call;
};

static struct metadata_broker *broker_of(const struct znode_broker *z, int32_t id, int64_t epoch)
{
    struct metadata_broker *b = metadata_broker_new(id, epoch, z->rack);

    for (int32_t i = 0; i < z->endpoint_count; i++)
        metadata_broker_add_endpoint(b, z->endpoints[i].listener, z->endpoints[i].host,
                                     z->endpoints[i].port);
    return b;
}

static void roll_call_end(struct roll_call *q)
{
    if (--q->pending == 0)
        q->done(q);
}

static void registration_read(struct keeper_call *call)
{
    struct one_registration *one = CONTAINER_OF(call, struct one_registration, call);
    struct roll_call *q = one->roll;
    struct znode_broker z;
    struct arena arena;
    enum err err = call->err;

    arena_init(&arena, 0);
    if (err && err != ERR_NOT_FOUND) /* it has just gone */
        q->err = err;
    if (!err)
        err = znode_broker_parse(call->data, &arena, &z);
    if (!err)
        metadata_delta_put_broker(&q->found, broker_of(&z, one->id, call->stat.created_zxid));
    else if (err != ERR_NOT_FOUND)
        trace_error("controller.registration", "broker=%d error=%s", one->id, err_name(err));
    arena_fini(&arena);
    keeper_call_release(call);
    free(one->path);
    free(one);
    roll_call_end(q);
}

static void names_read(struct keeper_call *call)
{
    struct roll_call *q = CONTAINER_OF(call, struct roll_call, call);

    q->err = call->err;
    for (int i = 0; !q->err && i < call->children_count; i++) {
        struct one_registration *one = xcalloc(1, sizeof(*one));
        int64_t id = -1;

        if (str_to_i64(str_of(call->children[i]), &id) || id < 0 || id > INT32_MAX) {
            free(one);
            continue;
        }
        one->roll = q;
        one->id = (int32_t)id;
        one->path = znode_broker_path(one->id);
        one->call.done = registration_read;
        q->pending++;
        keeper_get(q->cluster->control->keeper, one->path, NULL, &one->call);
    }
    keeper_call_release(call);
    roll_call_end(q);
}

static void brokers_changed(struct keeper_watch *w, enum keeper_event_kind kind);

static void call_the_roll(struct roll_call *q)
{
    struct rule *rule = q->cluster->rule;

    q->pending = 1;
    q->call.done = names_read;
    keeper_unwatch(q->cluster->control->keeper, &rule->brokers_watch);
    rule->brokers_watch.fired = brokers_changed;
    keeper_children(q->cluster->control->keeper, ZNODE_BROKER_IDS, &rule->brokers_watch, &q->call);
}

/* The image's brokers that are not among those found leave; adds to what was found. */
static void note_absent(struct metadata_delta *found, const struct metadata_image *image)
{
    int32_t n = found->count;

    for (int32_t i = 0; i < image->broker_count; i++) {
        bool is_there = false;

        for (int32_t k = 0; k < n; k++)
            is_there |= found->changes[k].broker->id == image->brokers[i]->id;
        if (!is_there)
            metadata_delta_remove_broker(found, image->brokers[i]->id);
    }
}

/* A registration that has not changed keeps its object, by which images are compared. */
static void drop_known(struct metadata_delta *found, const struct metadata_image *image)
{
    struct metadata_delta news = {0};

    for (int32_t i = 0; i < found->count; i++) {
        const struct metadata_change *change = &found->changes[i];
        const struct metadata_broker *known = change->kind == METADATA_BROKER
                                                  ? metadata_find_broker(image, change->broker->id)
                                                  : NULL;

        if (change->kind == METADATA_BROKER_REMOVED)
            metadata_delta_remove_broker(&news, change->id);
        else if (!known || known->epoch != change->broker->epoch)
            metadata_delta_put_broker(&news, metadata_broker_get(change->broker));
    }
    metadata_delta_fini(found);
    *found = news;
}

/* ---- brokers that come and go ------------------------------------------------------------ */

static bool is_unclean(void *ctx, const struct metadata_topic *topic)
{
    struct control *c = ctx;

    return control_topic_config(c, &topic->configs).unclean_leader_election;
}

static void roll_task_end(struct control *c, void *ctx, enum err err)
{
    struct roll_call *q = ctx;

    (void)err;
    free(q);
    control_task_end(c);
}

/* Adds the changes of `more` to `plan`, which is applied first. */
static void append_plan(struct metadata_delta *plan, struct metadata_delta *more)
{
    for (int32_t i = 0; i < more->count; i++)
        metadata_delta_set_partition(plan, more->changes[i].name, more->changes[i].index,
                                     &more->changes[i].partition);
    metadata_delta_fini(more);
}

static void roll_called(struct roll_call *q)
{
    struct control *c = q->cluster->control;
    struct controller_rules rules = {.is_unclean = is_unclean, .ctx = c};
    struct metadata_delta plan = {0};
    struct metadata_image *next;

    if (q->err || q->cluster->rule->is_ending) {
        metadata_delta_fini(&q->found);
        roll_task_end(c, q, q->err);
        return;
    }
    note_absent(&q->found, c->image);
    drop_known(&q->found, c->image);
    if (q->found.count == 0) {
        roll_task_end(c, q, ERR_NONE);
        return;
    }
    next = metadata_apply(c->image, &q->found);
    controller_plan_brokers(c->image, next, &rules, &plan);
    metadata_image_put(next);
    trace_info("controller.brokers_changed", "changes=%d partitions=%d", q->found.count,
               plan.count);
    append_plan(&q->found, &plan);
    rule_carry_out(q->cluster, &q->found, roll_task_end, q);
}

static void roll_run(struct control *c, struct task *t)
{
    struct roll_call *q = CONTAINER_OF(t, struct roll_call, task);

    if (!control_decides(c)) {
        roll_task_end(c, q, ERR_NOT_CONTROLLER);
        return;
    }
    q->done = roll_called;
    call_the_roll(q);
}

static void brokers_changed(struct keeper_watch *w, enum keeper_event_kind kind)
{
    struct rule *rule = CONTAINER_OF(w, struct rule, brokers_watch);
    struct roll_call *q;

    (void)kind;
    if (rule->cluster->control->stopping)
        return;
    q = xcalloc(1, sizeof(*q));
    q->cluster = rule->cluster;
    control_enqueue(rule->cluster->control, &q->task, roll_run);
}

/* ---- taking over ------------------------------------------------------------------------ */

struct takeover {
    struct task task;
    struct cluster *cluster;
    struct roll_call roll;
};

static void taken_over(struct control *c, void *ctx, enum err err)
{
    struct takeover *t = ctx;

    t->cluster->rule->has_taken_over = !err;
    if (!err) {
        trace_info("controller.took_over", "epoch=%d brokers=%d topics=%d", t->cluster->rule->epoch,
                   c->image->broker_count, c->image->topic_count);
        lease_begin(t->cluster);
        dir_failures_watch(t->cluster);
        topics_resume_deletions(c);
    }
    free(t);
    control_task_end(c);
}

/* What is stored, as changes of the image that this broker has been told. */
static void take_contents(const struct control *c, const struct store_contents *contents,
                          struct metadata_delta *plan)
{
    for (int32_t i = 0; i < c->image->topic_count; i++)
        metadata_delta_remove_topic(plan, c->image->topics[i]->name);
    for (int32_t i = 0; i < contents->topic_count; i++)
        metadata_delta_put_topic(plan, metadata_topic_get(contents->topics[i]));
}

/* By the order of the image, which is that of names. */
static const int64_t **sorted_zxids(const struct metadata_image *image,
                                    const struct store_contents *contents)
{
    const int64_t **v = xcalloc((size_t)image->topic_count + 1, sizeof(*v));

    for (int32_t t = 0; t < image->topic_count; t++)
        for (int32_t i = 0; i < contents->topic_count; i++)
            if (contents->topics[i] == image->topics[t])
                v[t] = contents->state_zxids[i];
    return v;
}

static void contents_read(struct control *c, void *ctx, enum err err,
                          struct store_contents *contents)
{
    struct takeover *t = ctx;
    struct controller_rules rules = {.is_unclean = is_unclean, .ctx = c};
    struct metadata_delta plan = t->roll.found;
    struct metadata_delta elections = {0};
    struct metadata_image *next;
    const int64_t **zxids;

    if (!err && t->cluster->rule->is_ending)
        err = ERR_NOT_CONTROLLER;
    if (err) {
        metadata_delta_fini(&plan);
        end_rule(t->cluster, "what is stored could not be read");
        taken_over(c, t, err);
        return;
    }
    metadata_delta_set_controller(&plan, c->broker->node_id, t->cluster->rule->epoch);
    take_contents(c, contents, &plan);
    next = metadata_apply(c->image, &plan);
    zxids = sorted_zxids(next, contents);
    controller_plan_takeover(next, zxids, &rules, &elections);
    free(zxids);
    metadata_image_put(next);
    append_plan(&plan, &elections);
    rule_carry_out(t->cluster, &plan, taken_over, t);
}

static void roll_called_first(struct roll_call *q)
{
    struct takeover *t = CONTAINER_OF(q, struct takeover, roll);
    struct control *c = t->cluster->control;

    if (q->err) {
        contents_read(c, t, q->err, NULL);
        return;
    }
    note_absent(&q->found, c->image);
    drop_known(&q->found, c->image);
    store_load(c, c->broker->cluster_id, contents_read, t);
}

static void takeover_run(struct control *c, struct task *task)
{
    struct takeover *t = CONTAINER_OF(task, struct takeover, task);

    (void)c;
    t->roll.cluster = t->cluster;
    t->roll.done = roll_called_first;
    call_the_roll(&t->roll);
}

void rule_begin(struct cluster *k, int32_t epoch, int32_t epoch_version)
{
    struct takeover *t = xcalloc(1, sizeof(*t));

    assert(!k->rule);
    trace_info("controller.elected", "epoch=%d", epoch);
    k->rule = xcalloc(1, sizeof(*k->rule));
    k->rule->cluster = k;
    k->rule->epoch = epoch;
    k->rule->epoch_version = epoch_version;
    k->rule->begun_ns = io_loop_mono_ns(k->control->loop);
    k->ruled = epoch;
    t->cluster = k;
    control_enqueue(k->control, &t->task, takeover_run);
}

/* ---- a broker that wants to stop --------------------------------------------------------- */

struct leaving {
    struct task task;
    struct cluster *cluster;
    int32_t broker_id;
    void (*done)(struct control *c, void *ctx, enum err err);
    void *ctx;
};

static void left(struct control *c, void *ctx, enum err err)
{
    struct leaving *l = ctx;

    l->done(c, l->ctx, err);
    free(l);
    control_task_end(c);
}

/* Nobody lets it in again, or elects it, before its next life. */
static void fence_broker(const struct control *c, int32_t id, struct metadata_delta *plan)
{
    const struct metadata_broker *b = metadata_find_broker(c->image, id);
    struct metadata_broker *fenced;

    if (!b || b->is_fenced)
        return;
    fenced = metadata_broker_new(b->id, b->epoch, b->rack);
    for (int32_t i = 0; i < b->endpoint_count; i++)
        metadata_broker_add_endpoint(fenced, b->endpoints[i].listener, b->endpoints[i].host,
                                     b->endpoints[i].port);
    fenced->is_fenced = true;
    metadata_delta_put_broker(plan, fenced);
}

static void leave_run(struct control *c, struct task *t)
{
    struct leaving *l = CONTAINER_OF(t, struct leaving, task);
    struct metadata_delta plan = {0};
    int32_t left_behind;

    if (!control_decides(c)) {
        left(c, l, ERR_NOT_CONTROLLER);
        return;
    }
    left_behind = controller_plan_shutdown(c->image, l->broker_id, &plan);
    fence_broker(c, l->broker_id, &plan);
    trace_info("controller.broker_leaves", "broker=%d moved=%d left=%d", l->broker_id, plan.count,
               left_behind);
    rule_carry_out(l->cluster, &plan, left, l);
}

void rule_let_go(struct cluster *k, int32_t broker_id,
                 void (*done)(struct control *c, void *ctx, enum err err), void *ctx)
{
    struct leaving *l = xcalloc(1, sizeof(*l));

    l->cluster = k;
    l->broker_id = broker_id;
    l->done = done;
    l->ctx = ctx;
    control_enqueue(k->control, &l->task, leave_run);
}

static void suspected(struct control *c, void *ctx, enum err err)
{
    (void)err;
    free(ctx);
    control_task_end(c);
}

static void suspect_run(struct control *c, struct task *t)
{
    struct leaving *l = CONTAINER_OF(t, struct leaving, task);
    struct metadata_delta plan = {0};

    if (!control_decides(c)) {
        suspected(c, l, ERR_NOT_CONTROLLER);
        return;
    }
    controller_plan_suspect(c->image, l->broker_id, &plan);
    if (plan.count == 0) {
        suspected(c, l, ERR_NONE);
        return;
    }
    trace_warn("controller.suspect_moved", "broker=%d partitions=%d", l->broker_id, plan.count);
    rule_carry_out(l->cluster, &plan, suspected, l);
}

void rule_suspect(struct cluster *k, int32_t broker_id)
{
    struct leaving *l;

    if (k->control->stopping)
        return;
    l = xcalloc(1, sizeof(*l));
    l->cluster = k;
    l->broker_id = broker_id;
    control_enqueue(k->control, &l->task, suspect_run);
}

void control_commit_failed(struct control *c)
{
    if (c->cluster)
        end_rule(c->cluster, "a change of topics could not be stored");
}

enum err control_commit_error(const struct control *c)
{
    return c->cluster ? ERR_NOT_CONTROLLER : ERR_UNKNOWN_SERVER_ERROR;
}

void control_fence(const struct control *c, struct store_ops *ops)
{
    if (!c->cluster)
        return;
    ops->controller_epoch = c->cluster->rule->epoch;
    store_check_controller(ops, c->cluster->rule->epoch_version);
}

int control_fence_ops(const struct control *c)
{
    return c->cluster ? 1 : 0;
}

void control_announce(struct control *c)
{
    if (c->cluster)
        announce(c->cluster);
}
