/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline reassign start`: brokers, topics and what moves already are asked for, the plan is
 * made and held against them, the present assignment is printed, and then the controller is asked
 * once for all. Nothing is changed when one partition of the plan is wrong. A throttle is set
 * before.
 *
 * A topic is spread over brokers by turning their list by one for each partition: each broker is
 * the preferred leader of as many partitions as the others, give or take one.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/reassign_int.h"
#include "cli/table.h"

/* ---- The results. */

static int32_t count_moving(const struct reassign *s)
{
    int32_t n = 0;

    for (int32_t i = 0; i < s->move_count; i++)
        n += !s->moves[i].err && !s->moves[i].is_there;
    return n;
}

static int32_t count_failed(const struct reassign *s)
{
    int32_t n = 0;

    for (int32_t i = 0; i < s->move_count; i++)
        n += s->moves[i].err != ERR_NONE;
    return n;
}

static const char *result_of(const struct move *m)
{
    return m->is_there ? "already there" : m->err ? "failed" : "started";
}

static void print_results(struct reassign *s)
{
    struct table table = {.columns = 4};
    int32_t moving = count_moving(s);

    for (int32_t i = 0; i < s->move_count; i++) {
        const struct move *m = &s->moves[i];

        table_add(&table, "%.*s-%d", STR_ARG(m->at.topic), m->at.partition);
        table_add(&table, "from %s", ids_text(&s->arena, m->from.v, m->from.n));
        table_add(&table, "to %s", ids_text(&s->arena, m->to.v, m->to.n));
        table_add(&table, "%s", result_of(m));
    }
    table_print(&table, "");
    table_fini(&table);
    printf("%d of %d partitions moving%s\n", moving, s->move_count,
           moving && !s->waits ? "; 'strandline reassign list' shows those that still are" : "");
    if (moving && !s->waits && s->throttle)
        printf("the throttle stays until the same command with --wait takes it off\n");
}

static json_t *json_of_move(const struct move *m)
{
    return json_pack("{s:o, s:i, s:o, s:o, s:s, s:s?, s:o}", "topic", tool_json_of(m->at.topic),
                     "partition", (int)m->at.partition, "from", ids_json(m->from.v, m->from.n),
                     "to", ids_json(m->to.v, m->to.n), "result", result_of(m), "error",
                     m->err ? err_name(m->err) : NULL, "message", tool_json_of(m->message));
}

static void print_json(const struct reassign *s)
{
    json_t *partitions = json_array();

    for (int32_t i = 0; i < s->move_count; i++)
        json_array_append_new(partitions, json_of_move(&s->moves[i]));
    tool_print_json(json_pack("{s:o, s:o, s:o}", "before", reassign__json_of_plan(s, true), "plan",
                              reassign__json_of_plan(s, false), "partitions", partitions));
}

static void finish(struct reassign *s)
{
    for (int32_t i = 0; i < s->move_count; i++)
        if (s->moves[i].err)
            tool_warn_err(&s->tool, s->moves[i].err, s->moves[i].message, "cannot move %.*s-%d",
                          STR_ARG(s->moves[i].at.topic), s->moves[i].at.partition);
    if (s->tool.is_json)
        print_json(s);
    else
        print_results(s);
    fflush(stdout); /* Waiting may take long. */
    if (s->waits && count_moving(s) > 0)
        reassign__wait(s);
    else if (s->waits)
        reassign__end(s, count_failed(s) ? EXIT_FAILURE : EXIT_SUCCESS, s->ongoing_count);
    else
        tool_end(&s->tool, count_failed(s) ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void take_results(struct reassign *s)
{
    const struct alter_partition_reassignments_response *r = s->alter.response;

    for (int32_t t = 0; t < r->responses.n; t++)
        for (int32_t i = 0; i < r->responses.v[t].partitions.n; i++) {
            const struct alter_partition_reassignments_response_partition *p =
                &r->responses.v[t].partitions.v[i];
            struct admin_partition key = {r->responses.v[t].name, p->partition_index};
            struct move *m =
                bsearch(&key, s->moves, (size_t)s->move_count, sizeof(*m), partition_compare);

            if (!m)
                continue;
            m->err = err_from_wire(p->error_code);
            m->message = m->err ? p->error_message : str_null();
        }
}

static void altered(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, alter);

    if (!moves_check(&s->tool, op, "move partitions"))
        return;
    take_results(s);
    finish(s);
}

/* ---- The plan against the cluster. */

static bool check_brokers(struct reassign *s, const struct move *m)
{
    const struct describe_cluster_response *r = s->cluster.response;
    int32_t *alive = arena_calloc(&s->arena, (size_t)MAX(r->brokers.n, 0) + 1, sizeof(*alive));

    for (int32_t i = 0; i < r->brokers.n; i++)
        alive[i] = r->brokers.v[i].broker_id;
    for (int32_t i = 0; i < m->to.n; i++) {
        if (ids_have(alive, r->brokers.n, m->to.v[i]) || ids_have(m->from.v, m->from.n, m->to.v[i]))
            continue;
        tool_fail(&s->tool,
                  "%s%.*s-%d cannot move to broker %d, which is not there: the cluster has "
                  "brokers %s; start it, or name another",
                  reassign__place(s, m), STR_ARG(m->at.topic), m->at.partition, m->to.v[i],
                  ids_text(&s->arena, alive, r->brokers.n));
        return false;
    }
    return true;
}

/* What it has: the replicas without those that it is only to get. */
static void look_at(struct reassign *s, struct move *m)
{
    const struct metadata_response_partition *p =
        topics_find_partition(s->topics.response, m->at.topic, m->at.partition);
    const struct ongoing *now = reassign__ongoing(s, &m->at);
    struct ids all = {p->replica_nodes.v, p->replica_nodes.n};
    struct ids none = {NULL, 0};

    m->from = reassign__without(&s->arena, now ? now->replicas : all, now ? now->adding : none);
}

/* The brokers' list, turned. False after having said what is wrong. */
static bool choose(struct reassign *s, struct move *m, int32_t turn)
{
    int32_t n = s->replication_factor ? s->replication_factor : m->from.n;
    int32_t *to = arena_calloc(&s->arena, (size_t)s->brokers.n, sizeof(*to));

    if (n > s->brokers.n) {
        tool_fail(&s->tool,
                  "%.*s-%d has %d replicas, and --brokers names %d; name more, or add "
                  "--replication-factor %d",
                  STR_ARG(m->at.topic), m->at.partition, n, s->brokers.n, s->brokers.n);
        return false;
    }
    for (int32_t i = 0; i < n; i++)
        to[i] = s->brokers.v[(turn + i) % s->brokers.n];
    m->to = (struct ids){to, n};
    return true;
}

static bool complete(struct reassign *s)
{
    for (int32_t i = 0; i < s->move_count; i++) {
        struct move *m = &s->moves[i];

        look_at(s, m);
        if (s->brokers.n > 0 && !choose(s, m, i))
            return false;
        if (!check_brokers(s, m))
            return false;
        m->is_there = !reassign__ongoing(s, &m->at) && reassign__same_ids(m->from, m->to);
    }
    return true;
}

static void submit(struct reassign *s)
{
    struct admin_move *v = xcalloc((size_t)s->move_count + 1, sizeof(*v));
    int32_t n = 0;

    for (int32_t i = 0; i < s->move_count; i++)
        if (!s->moves[i].is_there)
            v[n++] = (struct admin_move){
                .topic = s->moves[i].at.topic,
                .partition = s->moves[i].at.partition,
                .replicas = s->moves[i].to.v,
                .replica_count = s->moves[i].to.n,
            };
    s->alter.done = altered;
    if (n > 0)
        admin_alter_reassignments(s->tool.client, &s->alter, v, n);
    free(v);
    if (n == 0)
        finish(s);
}

static void listed(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, list);

    /* Who does not serve that has nothing that moves; a plan can be made all the same. */
    if (op->err != ERR_UNSUPPORTED_VERSION && !moves_check(&s->tool, op, "list what is moving"))
        return;
    reassign__take_list(s);
    if (!complete(s))
        return;
    if (s->is_dry_run) {
        reassign__print_plan(s, false);
        tool_end(&s->tool, EXIT_SUCCESS);
        return;
    }
    if (!s->tool.is_json && count_moving(s) > 0) {
        printf("the way back, for 'strandline reassign start --plan FILE':\n");
        reassign__print_plan(s, true);
        fflush(stdout);
    }
    if (s->throttle > 0 && count_moving(s) > 0)
        reassign__throttle(s, submit);
    else
        submit(s);
}

/* ---- Questions. */

static void add_whole_topics(struct reassign *s, const struct metadata_response *r)
{
    for (int32_t t = 0; t < r->topics.n; t++) {
        const struct metadata_response_topic *topic = &r->topics.v[t];
        struct admin_partition at = {arena_str(&s->arena, topic->name), 0};

        for (int32_t i = 0; i < topic->partitions.n; i++) {
            at.partition = topic->partitions.v[i].partition_index;
            reassign__add_move(s, at, (struct ids){NULL, 0});
        }
    }
}

static void topics_described(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, topics);
    const struct metadata_response *r;

    if (!tool_check(&s->tool, op, "move topic"))
        return;
    r = topics_sort(op);
    if (s->brokers.n > 0)
        add_whole_topics(s, r);
    for (int32_t i = 0; i < s->move_count; i++)
        if (!topics_check_partition(&s->tool, r, &s->moves[i].at, reassign__place(s, &s->moves[i])))
            return;
    s->list.done = listed;
    admin_list_reassignments(s->tool.client, &s->list);
}

static void cluster_described(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, cluster);

    if (!tool_check(&s->tool, op, "describe the cluster"))
        return;
    s->topics.done = topics_described;
    admin_describe_topics(s->tool.client, &s->topics, s->names, s->name_count);
}

void reassign__start_moves(struct tool *t)
{
    struct reassign *s = reassign_of(t);

    s->cluster.done = cluster_described;
    admin_describe_cluster(t->client, &s->cluster);
}
