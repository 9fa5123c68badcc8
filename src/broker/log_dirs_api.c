/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DescribeLogDirs (KIP-113, KIP-827): sizes of partitions by directory, asked of their owners, and
 * the space of each volume, asked of the kernel by a job.
 */
#include "broker/broker_int.h"

struct dirs_query {
    struct io_job job;
    struct request *request;
    struct visit *visit;
    struct io_space *space; /* by directory */
};

static void size_at_owner(struct visit_item *item)
{
    item->offset = log_size_bytes(item->partition->log);
    item->epoch = item->partition->dir;
    visit_item_done(item, ERR_NONE);
}

static bool same_topic(const struct visit_item *a, const struct visit_item *b)
{
    return str_eq(*(const struct str *)a->in, *(const struct str *)b->in);
}

/* Items of one topic in a row, from this one on. Each topic gets room for no more than these: room
 * for all would be the square of what was asked. */
static int count_same_topic(const struct visit *v, int first)
{
    int n = 0;

    while (first + n < v->count && same_topic(&v->items[first + n], &v->items[first]))
        n++;
    return n;
}

/* Items come sorted by topic: neighbours of one topic share an entry. */
static void fill_dir(struct request *r, const struct visit *v, int dir,
                     struct describe_log_dirs_response_result *out)
{
    struct describe_log_dirs_response_topic *topic = NULL;

    out->topics.v = request_array(r, &describe_log_dirs_response_topic_schema, v->count);
    for (int i = 0; i < v->count; i++) {
        const struct visit_item *item = &v->items[i];
        const struct str *name = item->in;
        const int32_t *index = item->out;
        struct describe_log_dirs_response_partition *p;

        if (i > 0 && !same_topic(item - 1, item))
            topic = NULL;
        if (item->err || item->epoch != dir)
            continue;
        if (!topic) {
            topic = &out->topics.v[out->topics.n++];
            topic->name = *name;
            topic->partitions.v = request_array(r, &describe_log_dirs_response_partition_schema,
                                                count_same_topic(v, i));
        }
        p = &topic->partitions.v[topic->partitions.n++];
        p->partition_index = *index;
        p->partition_size = item->offset;
    }
}

static void space_known(struct io_job *job)
{
    struct dirs_query *q = CONTAINER_OF(job, struct dirs_query, job);
    struct request *r = q->request;
    struct broker *b = r->shard->broker;
    struct describe_log_dirs_response *out = r->out;

    out->results.n = b->dir_count;
    out->results.v = request_array(r, &describe_log_dirs_response_result_schema, b->dir_count);
    for (int i = 0; i < b->dir_count; i++) {
        struct describe_log_dirs_response_result *to = &out->results.v[i];

        to->log_dir = str_of(log_dir_path(b->dirs[i]));
        if (log_dir_has_failed(b->dirs[i])) {
            to->error_code = ERR_KAFKA_STORAGE_ERROR;
            continue;
        }
        to->total_bytes = q->space[i].total;
        to->usable_bytes = q->space[i].available;
        fill_dir(r, q->visit, i, to);
    }
    request_reply(r);
}

static void ask_space(struct io_job *job)
{
    struct dirs_query *q = CONTAINER_OF(job, struct dirs_query, job);
    struct broker *b = q->request->shard->broker;

    for (int i = 0; i < b->dir_count; i++)
        if (io_fs_space(b->io, log_dir_path(b->dirs[i]), &q->space[i]))
            q->space[i] = (struct io_space){.total = -1, .available = -1};
}

static void sizes_known(struct request *r, struct visit *v)
{
    struct dirs_query *q = request_alloc(r, sizeof(*q));

    q->request = r;
    q->visit = v;
    q->space = request_alloc(r, (size_t)r->shard->broker->dir_count * sizeof(*q->space));
    q->job.run = ask_space;
    q->job.done = space_known;
    io_job_submit(r->shard->loop, &q->job);
}

static void add_item(struct request *r, struct visit_item *item, struct str name, int32_t index)
{
    struct str *name_kept = request_alloc(r, sizeof(*name_kept));
    int32_t *index_kept = request_alloc(r, sizeof(*index_kept));

    *name_kept = arena_str(&r->arena, name);
    *index_kept = index;
    item->in = name_kept;
    item->out = index_kept;
    visit_find(item, name, index);
}

static struct visit *visit_all(struct request *r)
{
    const struct metadata_image *image = r->shard->image;
    struct visit *v =
        visit_new(r, (int)metadata_partition_total(image), size_at_owner, sizes_known);
    int at = 0;

    for (int32_t t = 0; t < image->topic_count; t++)
        for (int32_t i = 0; i < image->topics[t]->partition_count; i++)
            add_item(r, &v->items[at++], image->topics[t]->name, i);
    return v;
}

/* NULL: the request is aborted. */
static struct visit *visit_named(struct request *r)
{
    const struct describe_log_dirs_request *in = r->in;
    struct visit *v;
    int64_t n = 0;
    int at = 0;

    for (int32_t t = 0; t < in->topics.n; t++)
        n += MAX(in->topics.v[t].partitions.n, 0);
    if (!request_allows_partitions(r, n))
        return NULL;
    v = visit_new(r, (int)n, size_at_owner, sizes_known);
    for (int32_t t = 0; t < in->topics.n; t++)
        for (int32_t i = 0; i < in->topics.v[t].partitions.n; i++)
            add_item(r, &v->items[at++], in->topics.v[t].topic, in->topics.v[t].partitions.v[i]);
    return v;
}

void handle_describe_log_dirs(struct request *r)
{
    const struct describe_log_dirs_request *in = r->in;
    struct visit *v = in->topics.n < 0 ? visit_all(r) : visit_named(r);

    if (v)
        visit_start(v);
}
