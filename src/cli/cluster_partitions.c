/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline cluster --partitions`: each partition with its replicas, and of each replica where
 * its log ends and how far that is behind the leader's.
 *
 * Every broker is asked at the same time: where the logs of its replicas end, in the way of a
 * replica that only looks, which is not told the high watermark and need not ask the leader; and
 * how large they are. DescribeLogDirs alone would not do: its offset_lag is measured against the
 * high watermark that the broker itself knows of, which is never above the end of its log.
 *
 * While records are written the answers are of slightly different moments. A broker that does not
 * answer leaves its places open, and the exit status says so.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/cluster_int.h"
#include "cli/table.h"

static bool is_shown(const struct cluster_tool *s, const struct cluster_partition *x)
{
    return !s->only_unhealthy || cluster__is_offline(x) || cluster__is_under_replicated(x) ||
           cluster__is_under_min_isr(x);
}

static struct cluster_log *log_at(const struct cluster_partition *x, int32_t broker)
{
    for (int32_t i = 0; i < x->p->replica_nodes.n; i++)
        if (x->p->replica_nodes.v[i] == broker)
            return &x->logs[i];
    return NULL;
}

/* Where the leader's log ends; -1: not known. */
static int64_t end_of(const struct cluster_partition *x)
{
    const struct cluster_log *log = log_at(x, x->p->leader_id);

    return log ? log->end : -1;
}

/* -1: not known. */
static int64_t lag_of(const struct cluster_partition *x, const struct cluster_log *log)
{
    int64_t end = end_of(x);

    return end < 0 || log->end < 0 ? -1 : MAX(end - log->end, 0);
}

/* ---- As text. */

#define END_TEXT_MAX 64 /* of one replica: an id, two offsets, and what stands between them */

/* "1:500 2:480(-20) 3:?" */
static const char *ends_text(struct cluster_tool *s, const struct cluster_partition *x)
{
    size_t size = (size_t)MAX(x->p->replica_nodes.n, 0) * END_TEXT_MAX + 1;
    char *text = arena_calloc(&s->arena, size, 1);
    int n = 0;

    for (int32_t i = 0; i < x->p->replica_nodes.n; i++) {
        const struct cluster_log *log = &x->logs[i];
        int64_t lag = lag_of(x, log);

        n += snprintf(text + n, size - (size_t)n, "%s%d:", i ? " " : "", log->broker);
        if (log->end < 0)
            n += snprintf(text + n, size - (size_t)n, "?");
        else
            n += snprintf(text + n, size - (size_t)n, "%lld", (long long)log->end);
        if (lag > 0)
            n += snprintf(text + n, size - (size_t)n, "(-%lld)", (long long)lag);
    }
    return text;
}

static const char *out_of_sync_text(struct cluster_tool *s, const struct cluster_partition *x)
{
    int32_t *ids = arena_calloc(&s->arena, (size_t)MAX(x->p->replica_nodes.n, 0) + 1, sizeof(*ids));
    int32_t n = 0;

    for (int32_t i = 0; i < x->p->replica_nodes.n; i++)
        if (!cluster__is_in_sync(x, x->p->replica_nodes.v[i]))
            ids[n++] = x->p->replica_nodes.v[i];
    return ids_text(&s->arena, ids, n);
}

/* "under-replicated,moving"; empty if all is well */
static const char *state_text(struct cluster_tool *s, const struct cluster_partition *x)
{
    const struct {
        bool is_so;
        const char *word;
    } states[] = {
        {cluster__is_offline(x), "offline"},
        {cluster__is_under_replicated(x), "under-replicated"},
        {cluster__is_under_min_isr(x), "under-min-isr"},
        {x->is_moving, "moving"},
    };
    size_t size = 64;
    char *text = arena_calloc(&s->arena, size, 1);
    int n = 0;

    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (states[i].is_so)
            n += snprintf(text + n, size - (size_t)n, "%s%s", n ? "," : "", states[i].word);
    return text;
}

static void add_line(struct cluster_tool *s, struct table *table, const struct cluster_partition *x)
{
    const struct metadata_response_partition *p = x->p;
    const struct cluster_log *leaders = log_at(x, p->leader_id);
    bool has_size = leaders && leaders->size >= 0;

    table_add(table, "%.*s-%d", STR_ARG(x->at.topic), x->at.partition);
    table_add(table, p->leader_id < 0 ? "leader -" : "leader %d", p->leader_id);
    table_add(table, "epoch %d", p->leader_epoch);
    table_add(table, "replicas %s", ids_text(&s->arena, p->replica_nodes.v, p->replica_nodes.n));
    table_add(table, "in sync %s", ids_text(&s->arena, p->isr_nodes.v, p->isr_nodes.n));
    table_add(table, "out of sync %s", out_of_sync_text(s, x));
    table_add(table, end_of(x) < 0 ? "end -" : "end %lld", (long long)end_of(x));
    table_add(table, "size %s", has_size ? bytes_text(&s->arena, leaders->size) : "-");
    table_add(table, "ends %s", ends_text(s, x));
    table_add(table, "%s", state_text(s, x));
}

/* ---- As JSON. */

static json_t *number_or_null(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static json_t *json_of_logs(const struct cluster_partition *x)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < x->p->replica_nodes.n; i++) {
        const struct cluster_log *log = &x->logs[i];

        json_array_append_new(
            array, json_pack("{s:i, s:b, s:o, s:o, s:o, s:o, s:s?}", "broker", (int)log->broker,
                             "in_sync", (int)cluster__is_in_sync(x, log->broker), "end",
                             number_or_null(log->end), "lag", number_or_null(lag_of(x, log)),
                             "size", number_or_null(log->size), "log_dir", tool_json_of(log->dir),
                             "error", log->err ? err_name(log->err) : NULL));
    }
    return array;
}

static json_t *json_of_partition(const struct cluster_tool *s, const struct cluster_partition *x)
{
    const struct metadata_response_partition *p = x->p;
    json_t *out_of_sync = json_array();

    for (int32_t i = 0; i < p->replica_nodes.n; i++)
        if (!cluster__is_in_sync(x, p->replica_nodes.v[i]))
            json_array_append_new(out_of_sync, json_integer(p->replica_nodes.v[i]));
    return json_pack("{s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:b}", "topic",
                     tool_json_of(x->at.topic), "partition", (int)x->at.partition, "leader",
                     (int)p->leader_id, "leader_epoch", (int)p->leader_epoch, "replicas",
                     ids_json(p->replica_nodes.v, p->replica_nodes.n), "isr",
                     ids_json(p->isr_nodes.v, p->isr_nodes.n), "out_of_sync", out_of_sync, "end",
                     number_or_null(end_of(x)), "logs", json_of_logs(x), "offline",
                     (int)cluster__is_offline(x), "under_replicated",
                     (int)cluster__is_under_replicated(x), "under_min_isr",
                     s->knows_min_isr ? json_boolean(cluster__is_under_min_isr(x)) : json_null(),
                     "moving", (int)x->is_moving);
}

static void print(struct cluster_tool *s)
{
    struct table table = {.columns = 10};
    json_t *array = json_array();

    for (int32_t i = 0; i < s->partition_count; i++) {
        if (!is_shown(s, &s->partitions[i]))
            continue;
        if (s->tool.is_json)
            json_array_append_new(array, json_of_partition(s, &s->partitions[i]));
        else
            add_line(s, &table, &s->partitions[i]);
    }
    if (s->tool.is_json) {
        json_object_set_new(s->json, "partition_list", array);
    } else {
        table_print(&table, "");
        json_decref(array);
    }
    table_fini(&table);
}

/* ---- Questions. */

static void answered(struct cluster_tool *s)
{
    if (--s->pending > 0)
        return;
    print(s);
    s->listed(s);
}

static void take_end(struct cluster_question *q, struct str topic,
                     const struct list_offsets_response_partition *p)
{
    struct cluster_partition *x = cluster__partition(q->tool, topic, p->partition_index);
    struct cluster_log *log = x && x->logs ? log_at(x, q->broker) : NULL;

    if (!log)
        return;
    log->err = err_from_wire(p->error_code);
    log->end = log->err ? -1 : p->offset;
}

static void ends_listed(struct admin_op *op)
{
    struct cluster_question *q = CONTAINER_OF(op, struct cluster_question, ends);
    const struct list_offsets_response *r = op->response;

    if (op->err) {
        q->tool->has_failed = true;
        tool_warn_err(&q->tool->tool, op->err, str_null(), "cannot ask broker %d for its logs",
                      q->broker);
    }
    for (int32_t t = 0; !op->err && t < r->topics.n; t++)
        for (int32_t i = 0; i < r->topics.v[t].partitions.n; i++)
            take_end(q, r->topics.v[t].name, &r->topics.v[t].partitions.v[i]);
    answered(q->tool);
}

static void take_sizes(struct cluster_question *q,
                       const struct describe_log_dirs_response_result *dir)
{
    for (int32_t t = 0; t < dir->topics.n; t++)
        for (int32_t i = 0; i < dir->topics.v[t].partitions.n; i++) {
            const struct describe_log_dirs_response_partition *p =
                &dir->topics.v[t].partitions.v[i];
            struct cluster_partition *x =
                cluster__partition(q->tool, dir->topics.v[t].name, p->partition_index);
            struct cluster_log *log = x && x->logs ? log_at(x, q->broker) : NULL;

            if (!log || p->is_future_key)
                continue;
            log->size = p->partition_size;
            log->dir = dir->log_dir;
        }
}

/* Without a line of its own: who does not answer has not answered the other question either. */
static void dirs_described(struct admin_op *op)
{
    struct cluster_question *q = CONTAINER_OF(op, struct cluster_question, dirs);
    const struct describe_log_dirs_response *r = op->response;

    for (int32_t d = 0; !op->err && d < r->results.n; d++)
        take_sizes(q, &r->results.v[d]);
    q->tool->has_failed = q->tool->has_failed || op->err;
    answered(q->tool);
}

static void ask_broker(struct cluster_question *q, struct admin_offset *offsets,
                       struct admin_partition *names)
{
    struct cluster_tool *s = q->tool;
    int32_t n = 0;

    for (int32_t i = 0; i < s->partition_count; i++) {
        const struct cluster_partition *x = &s->partitions[i];

        if (!x->logs || !log_at(x, q->broker))
            continue;
        names[n] = x->at;
        offsets[n++] = (struct admin_offset){
            .topic = x->at.topic,
            .partition = x->at.partition,
            .offset = ADMIN_LATEST,
        };
    }
    if (n == 0)
        return;
    q->ends.timeout_ms = q->dirs.timeout_ms = s->tool.timeout_ms;
    q->ends.done = ends_listed;
    q->dirs.done = dirs_described;
    s->pending += 2;
    admin_list_replica_offsets(s->tool.client, &q->ends, q->broker, offsets, n);
    admin_describe_log_dirs(s->tool.client, &q->dirs, q->broker, names, n);
}

static void add_logs(struct cluster_tool *s, struct cluster_partition *x)
{
    int32_t n = MAX(x->p->replica_nodes.n, 0);

    x->logs = arena_calloc(&s->arena, (size_t)n + 1, sizeof(*x->logs));
    for (int32_t i = 0; i < n; i++)
        x->logs[i] = (struct cluster_log){
            .broker = x->p->replica_nodes.v[i],
            .end = -1,
            .size = -1,
            .dir = str_null(),
            .err = ERR_BROKER_NOT_AVAILABLE,
        };
}

void cluster__list_partitions(struct cluster_tool *s)
{
    const struct describe_cluster_response *r = s->cluster.response;
    struct admin_offset *offsets = xcalloc((size_t)s->partition_count + 1, sizeof(*offsets));
    struct admin_partition *names = xcalloc((size_t)s->partition_count + 1, sizeof(*names));

    for (int32_t i = 0; i < s->partition_count; i++)
        if (is_shown(s, &s->partitions[i]))
            add_logs(s, &s->partitions[i]);
    s->question_count = MAX(r->brokers.n, 0);
    s->questions = xcalloc((size_t)s->question_count + 1, sizeof(*s->questions));
    s->pending = 1; /* This function itself. */
    for (int32_t i = 0; i < s->question_count; i++) {
        s->questions[i].tool = s;
        s->questions[i].broker = r->brokers.v[i].broker_id;
        ask_broker(&s->questions[i], offsets, names);
    }
    free(offsets);
    free(names);
    answered(s);
}

void cluster__free_questions(struct cluster_tool *s)
{
    for (int32_t i = 0; i < s->question_count; i++) {
        admin_op_fini(&s->questions[i].ends);
        admin_op_fini(&s->questions[i].dirs);
    }
    free(s->questions);
}
