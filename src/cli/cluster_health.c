/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is not well in a cluster, from as few questions as will do. Metadata has the replicas and
 * which are in sync; where all are, nothing can be under-replicated or below its minimum, as
 * brokers never ask for more than there are replicas, and nothing moves, because a move is over
 * when its target is in sync.
 *
 * Otherwise the controller is asked what moves: a replica that is on its way is not missing. And
 * the topics that lack some are asked for min.insync.replicas. Neither answer is worth waiting for:
 * a cluster that is not well may have no controller, and this is the command that shows it.
 */
#include <stdlib.h>

#include "cli/cluster_int.h"

#define ASIDE_TIMEOUT_MS 2000

/* ---- Judgements. */

bool cluster__is_in_sync(const struct cluster_partition *x, int32_t broker)
{
    return ids_have(x->p->isr_nodes.v, x->p->isr_nodes.n, broker);
}

bool cluster__is_offline(const struct cluster_partition *x)
{
    return x->p->leader_id < 0;
}

bool cluster__is_under_replicated(const struct cluster_partition *x)
{
    for (int32_t i = 0; i < x->p->replica_nodes.n; i++)
        if (!cluster__is_in_sync(x, x->p->replica_nodes.v[i]) &&
            !ids_have(x->adding, x->adding_count, x->p->replica_nodes.v[i]))
            return true;
    return false;
}

bool cluster__is_under_min_isr(const struct cluster_partition *x)
{
    return MAX(x->p->isr_nodes.n, 0) < MIN(x->min_isr, x->p->replica_nodes.n);
}

struct cluster_partition *cluster__partition(const struct cluster_tool *s, struct str topic,
                                             int32_t partition)
{
    struct admin_partition key = {topic, partition};

    return s->partition_count > 0 ? bsearch(&key, s->partitions, (size_t)s->partition_count,
                                            sizeof(*s->partitions), partition_compare)
                                  : NULL;
}

/* ---- min.insync.replicas. */

static void take_min_isr(struct cluster_tool *s, const struct describe_configs_response_result *r)
{
    int64_t value;

    if (r->configs.n != 1 || str_to_i64(r->configs.v[0].value, &value))
        return;
    for (int32_t i = 0; i < s->partition_count; i++)
        if (str_eq(s->partitions[i].at.topic, r->resource_name))
            s->partitions[i].min_isr = (int32_t)value;
}

static void configs_described(struct admin_op *op)
{
    struct cluster_tool *s = CONTAINER_OF(op, struct cluster_tool, configs);
    const struct describe_configs_response *r = op->response;

    s->knows_min_isr = !op->err;
    for (int32_t i = 0; !op->err && i < r->results.n; i++) {
        s->knows_min_isr = s->knows_min_isr && !r->results.v[i].error_code;
        take_min_isr(s, &r->results.v[i]);
    }
    s->judged(s);
}

static void ask_min_isr(struct cluster_tool *s)
{
    struct str *names = arena_calloc(&s->arena, (size_t)s->partition_count + 1, sizeof(*names));
    int32_t n = 0;

    for (int32_t i = 0; i < s->partition_count; i++) {
        const struct cluster_partition *x = &s->partitions[i];

        if (x->p->isr_nodes.n < x->p->replica_nodes.n &&
            (n == 0 || !str_eq(names[n - 1], x->at.topic)))
            names[n++] = x->at.topic;
    }
    s->configs.timeout_ms = MIN(s->tool.timeout_ms, ASIDE_TIMEOUT_MS);
    s->configs.done = configs_described;
    admin_describe_topics_config(s->tool.client, &s->configs, names, n,
                                 STR_LIT("min.insync.replicas"));
}

/* ---- What moves. */

static void take_moves(struct cluster_tool *s,
                       const struct list_partition_reassignments_response_topic *topic)
{
    for (int32_t i = 0; i < topic->partitions.n; i++) {
        const struct list_partition_reassignments_response_partition *p = &topic->partitions.v[i];
        struct cluster_partition *x = cluster__partition(s, topic->name, p->partition_index);

        if (!x)
            continue;
        x->is_moving = true;
        x->adding = p->adding_replicas.v;
        x->adding_count = p->adding_replicas.n;
    }
}

/* A broker that does not serve that does not move anything. */
static void moves_listed(struct admin_op *op)
{
    struct cluster_tool *s = CONTAINER_OF(op, struct cluster_tool, moves);
    const struct list_partition_reassignments_response *r = op->response;

    s->knows_moves = !op->err || op->err == ERR_UNSUPPORTED_VERSION;
    for (int32_t t = 0; !op->err && t < r->topics.n; t++)
        take_moves(s, &r->topics.v[t]);
    ask_min_isr(s);
}

static void ask_moves(struct cluster_tool *s)
{
    const struct describe_cluster_response *r = s->cluster.response;

    s->moves.timeout_ms = MIN(s->tool.timeout_ms, ASIDE_TIMEOUT_MS);
    s->moves.done = moves_listed;
    if (r->controller_id >= 0)
        admin_list_reassignments(s->tool.client, &s->moves);
    else
        ask_min_isr(s);
}

/* ---- Partitions. */

static int32_t count_partitions(const struct metadata_response *r)
{
    int32_t n = 0;

    for (int32_t t = 0; t < r->topics.n; t++)
        n += MAX(r->topics.v[t].partitions.n, 0);
    return n;
}

void cluster__judge(struct cluster_tool *s)
{
    const struct metadata_response *r = topics_sort(&s->topics);
    bool is_well = true;

    s->partitions =
        arena_calloc(&s->arena, (size_t)count_partitions(r) + 1, sizeof(*s->partitions));
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t i = 0; i < r->topics.v[t].partitions.n; i++) {
            const struct metadata_response_partition *p = &r->topics.v[t].partitions.v[i];

            s->partitions[s->partition_count++] = (struct cluster_partition){
                .at = {r->topics.v[t].name, p->partition_index},
                .p = p,
            };
            is_well = is_well && p->isr_nodes.n >= p->replica_nodes.n;
        }
    s->knows_moves = s->knows_min_isr = is_well;
    if (is_well)
        s->judged(s);
    else
        ask_moves(s);
}
