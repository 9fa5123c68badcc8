/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline reassign --throttle`: what moves takes no more than so many bytes a second (KIP-73).
 * Each broker that takes part gets that rate, for what it sends and for what it fetches; each topic
 * gets two lists: the replicas that a partition has, which send, and those that it is to get, which
 * fetch. Kafka's tool sets the same four keys, so either takes off what the other has set.
 *
 * The throttle is there before the first partition moves. When nothing moves any more in the whole
 * cluster, or what was left has been cancelled, it is taken off: from the topics that were named,
 * if they have lists, and then from all brokers.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/reassign_int.h"

#define SOURCE_TOPIC 1 /* of DescribeConfigs: set for this topic */

static const struct str lists[] = {STR_LIT("leader.replication.throttled.replicas"),
                                   STR_LIT("follower.replication.throttled.replicas")};
static const struct str rates[] = {STR_LIT("leader.replication.throttled.rate"),
                                   STR_LIT("follower.replication.throttled.rate")};

/* The two keys of one broker or topic; their values, or null to delete them. */
struct throttle_step {
    enum admin_resource type;
    struct str name;
    struct str values[2];
};

static void add_step(struct reassign *s, struct throttle_step step)
{
    s->steps = xreallocarray(s->steps, (size_t)s->step_count + 1, sizeof(*s->steps));
    s->steps[s->step_count++] = step;
}

/* ---- One request after the other. */

static void next_step(struct reassign *s);

static void step_done(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, config);
    bool is_broker = s->steps[s->step_at].type == ADMIN_BROKER;
    const char *verb = is_broker ? "change the throttle of broker" : "change the throttle of topic";

    if (!tool_check(&s->tool, op, verb))
        return;
    s->step_at++;
    next_step(s);
}

static void next_step(struct reassign *s)
{
    const struct throttle_step *step;
    struct admin_config changes[2];

    if (s->step_at == s->step_count) {
        s->step_count = s->step_at = 0;
        s->throttled(s);
        return;
    }
    step = &s->steps[s->step_at];
    for (int i = 0; i < 2; i++)
        changes[i] = (struct admin_config){.name = step->type == ADMIN_BROKER ? rates[i] : lists[i],
                                           .value = step->values[i],
                                           .operation = str_is_null(step->values[i])};
    s->config.done = step_done;
    admin_alter_configs(s->tool.client, &s->config, step->type, step->name, changes, 2);
}

/* ---- On. */

static void list_replicas(struct buf *to, int32_t partition, struct ids brokers)
{
    char text[32];

    for (int32_t i = 0; i < brokers.n; i++) {
        int n =
            snprintf(text, sizeof(text), "%s%d:%d", to->n > 0 ? "," : "", partition, brokers.v[i]);

        buf_append(to, text, (size_t)n);
    }
}

/* What is moving already keeps its throttle, unless the plan has it move elsewhere. */
static void list_ongoing(struct reassign *s, struct str topic, struct buf *sources,
                         struct buf *targets)
{
    for (int32_t i = 0; i < s->ongoing_count; i++) {
        const struct ongoing *o = &s->ongoing[i];

        if (!str_eq(o->at.topic, topic) ||
            bsearch(&o->at, s->moves, (size_t)s->move_count, sizeof(*s->moves), partition_compare))
            continue;
        list_replicas(sources, o->at.partition,
                      reassign__without(&s->arena, o->replicas, o->adding));
        list_replicas(targets, o->at.partition, o->adding);
    }
}

static struct str take_text(struct reassign *s, struct buf *b)
{
    struct bytes text = buf_bytes(b, 0);
    struct str copy = arena_str(&s->arena, (struct str){(const char *)text.p, text.n});

    buf_fini(b);
    return text.n > 0 ? copy : STR_LIT("");
}

static void add_topic(struct reassign *s, struct str topic)
{
    struct buf sources = {0};
    struct buf targets = {0};
    struct throttle_step step = {.type = ADMIN_TOPIC, .name = topic};

    for (int32_t i = 0; i < s->move_count; i++) {
        const struct move *m = &s->moves[i];

        if (m->is_there || !str_eq(m->at.topic, topic))
            continue;
        list_replicas(&sources, m->at.partition, m->from);
        list_replicas(&targets, m->at.partition, reassign__without(&s->arena, m->to, m->from));
    }
    list_ongoing(s, topic, &sources, &targets);
    step.values[0] = take_text(s, &sources);
    step.values[1] = take_text(s, &targets);
    if (step.values[1].n > 0)
        add_step(s, step);
}

static void add_brokers(struct reassign *s, struct ids brokers, struct str rate)
{
    for (int32_t i = 0; i < brokers.n; i++) {
        struct str name = arena_printf(&s->arena, "%d", brokers.v[i]);
        bool is_there = false;

        for (int32_t k = 0; k < s->step_count && !is_there; k++)
            is_there = s->steps[k].type == ADMIN_BROKER && str_eq(s->steps[k].name, name);
        if (!is_there)
            add_step(s, (struct throttle_step){
                            .type = ADMIN_BROKER, .name = name, .values = {rate, rate}});
    }
}

void reassign__throttle(struct reassign *s, void (*then)(struct reassign *s))
{
    struct str rate = arena_printf(&s->arena, "%lld", (long long)s->throttle);

    s->throttled = then;
    for (int32_t i = 0; i < s->move_count; i++) {
        if (s->moves[i].is_there)
            continue;
        add_brokers(s, s->moves[i].from, rate);
        add_brokers(s, s->moves[i].to, rate);
    }
    for (int32_t i = 0; i < s->name_count; i++)
        add_topic(s, s->names[i]);
    next_step(s);
}

/* ---- Off. */

static void taken_off(struct reassign *s)
{
    if (!s->tool.is_json)
        printf("the throttle is off\n");
    tool_end(&s->tool, s->end_status);
}

static void brokers_described(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, cluster);
    const struct describe_cluster_response *r = op->response;

    if (!tool_check(&s->tool, op, "take the throttle off the brokers"))
        return;
    for (int32_t i = 0; i < r->brokers.n; i++)
        add_brokers(s, (struct ids){&r->brokers.v[i].broker_id, 1}, str_null());
    s->throttled = taken_off;
    next_step(s);
}

/* Topics that have a list of who fetches: both lists go. */
static void lists_described(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, config);
    const struct describe_configs_response *r = op->response;

    if (!tool_check(&s->tool, op, "look for a throttle of topic"))
        return;
    for (int32_t i = 0; i < r->results.n; i++) {
        const struct describe_configs_response_result *t = &r->results.v[i];

        if (t->configs.n == 1 && t->configs.v[0].config_source == SOURCE_TOPIC)
            add_step(s, (struct throttle_step){.type = ADMIN_TOPIC,
                                               .name = arena_str(&s->arena, t->resource_name),
                                               .values = {str_null(), str_null()}});
    }
    if (s->step_count == 0) {
        tool_end(&s->tool, s->end_status);
        return;
    }
    s->cluster.done = brokers_described;
    admin_describe_cluster(s->tool.client, &s->cluster);
}

void reassign__end(struct reassign *s, int status, int32_t moving)
{
    fflush(stdout);
    s->end_status = status;
    if (moving > 0 || s->name_count == 0) {
        if (s->throttle > 0)
            fprintf(stderr,
                    "strandline reassign: %d partitions still move, so the throttle stays; "
                    "the same command takes it off when they have arrived\n",
                    moving);
        tool_end(&s->tool, status);
        return;
    }
    s->config.done = lists_described;
    admin_describe_topics_config(s->tool.client, &s->config, s->names, s->name_count, lists[1]);
}
