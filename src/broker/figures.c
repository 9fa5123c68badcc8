/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker counts, and the copy of it that metrics and health are made of.
 *
 * Each shard counts in memory of its own (struct shard_counts), each partition's owner in the
 * partition, the lane of a directory in its journal: one writer each, so that counting is an
 * addition and no more. The control loop reads them where they are and adds up. What partitions
 * have comes from their published views, which any loop may read; a partition that is being
 * removed is passed over, since its view may be gone.
 *
 * Times are those of the shard's turns: what begins and ends within one turn took no time.
 */
#include "broker/control.h"

#include <stdlib.h>
#include <string.h>

/* ---- counting --------------------------------------------------------------------------- */

static struct api_counts *api_counts_of(const struct request *r)
{
    return &r->shard->counts->apis[r->api - api_at(0)];
}

static void count_code(void *ctx, int16_t code)
{
    struct api_counts *counts = ctx;

    if (code >= -1 && code < FIGURES_ERRORS - 1)
        counter_add(&counts->errors[code + 1], 1);
}

void count_error(struct request *r, enum err err)
{
    count_code(api_counts_of(r), err_wire(err));
}

void count_reply(struct request *r)
{
    struct api_counts *counts = api_counts_of(r);

    latency_note(&counts->local, shard_now_ns(r->shard) - r->started_ns - r->waited_ns);
    if (r->api->key != API_PRODUCE && r->api->key != API_FETCH)
        wire_each_error(r->api->response, r->out, count_code, counts);
}

void count_sent(const struct request *r)
{
    if (r->api && r->state == REQUEST_REPLIED && !r->close_after)
        latency_note(&api_counts_of(r)->total, shard_now_ns(r->shard) - r->arrived_ns);
}

/* ---- reading: requests and connections ---------------------------------------------------- */

static void read_api(const struct broker *b, int index, struct figures_api *to)
{
    to->name = api_at(index)->name;
    for (int i = 0; i < b->shard_count; i++) {
        const struct api_counts *from = &b->shards[i].counts->apis[index];

        latency_add_to(&from->total, &to->total);
        latency_add_to(&from->local, &to->local);
        for (int k = 0; k < FIGURES_ERRORS; k++)
            to->errors[k] += counter_read(&from->errors[k]);
    }
}

static void read_listener(const struct broker *b, int index, struct figures_listener *to)
{
    to->name = b->listeners[index].name;
    for (int i = 0; i < b->shard_count; i++) {
        const struct listener_counts *from = &b->shards[i].counts->listeners[index];

        /* In this order, so that no more seem closed than were opened. */
        to->closed += counter_read(&from->closed);
        to->opened += counter_read(&from->opened);
    }
}

static void add_traffic(struct figures_traffic *to, const struct traffic_counts *from)
{
    to->messages_in += counter_read(&from->messages_in);
    to->bytes_in += counter_read(&from->bytes_in);
    to->bytes_out += counter_read(&from->bytes_out);
}

static void read_shards(const struct broker *b, struct arena *arena, struct figures *out)
{
    out->api_count = API_COUNT;
    out->apis = arena_calloc(arena, API_COUNT, sizeof(*out->apis));
    for (int i = 0; i < API_COUNT; i++)
        read_api(b, i, &out->apis[i]);
    out->listener_count = b->listener_count;
    out->listeners = arena_calloc(arena, (size_t)b->listener_count, sizeof(*out->listeners));
    for (int i = 0; i < b->listener_count; i++)
        read_listener(b, i, &out->listeners[i]);
    for (int i = 0; i < b->shard_count; i++) {
        const struct shard_counts *from = b->shards[i].counts;

        add_traffic(&out->traffic, &from->traffic);
        out->produce_parts += counter_read(&from->produce_parts);
        out->produce_parts_failed += counter_read(&from->produce_parts_failed);
        out->fetch_parts += counter_read(&from->fetch_parts);
        out->fetch_parts_failed += counter_read(&from->fetch_parts_failed);
        out->throttled_out += counter_read(&from->throttled_bytes[THROTTLE_LEADER]);
        out->throttled_in += counter_read(&from->throttled_bytes[THROTTLE_FOLLOWER]);
    }
}

/* ---- reading: directories and partitions -------------------------------------------------- */

static void read_dirs(const struct broker *b, struct arena *arena, struct figures *out)
{
    out->dir_count = b->dir_count;
    out->dirs = arena_calloc(arena, (size_t)b->dir_count, sizeof(*out->dirs));
    for (int i = 0; i < b->dir_count; i++) {
        struct figures_dir *to = &out->dirs[i];

        to->path = log_dir_path(b->dirs[i]);
        to->has_failed = log_dir_has_failed(b->dirs[i]);
        to->has_space = log_dir_has_space(b->dirs[i]);
        log_dir_stats(b->dirs[i], &to->journal, &to->sync);
    }
}

static int by_topic_and_index(const void *a, const void *b)
{
    const struct partition *const *pa = a;
    const struct partition *const *pb = b;
    int order = strcmp((*pa)->topic, (*pb)->topic);

    return order ? order : ((*pa)->index > (*pb)->index) - ((*pa)->index < (*pb)->index);
}

/* Those that stay, sorted. */
static struct partition **sorted_partitions(const struct control *c, struct arena *arena,
                                            int32_t *n)
{
    struct partition **v =
        arena_calloc(arena, (size_t)c->partition_count, sizeof(struct partition *));
    struct partition *p;
    struct partition *next;

    *n = 0;
    HASH_ITER (of_control, c->partitions, p, next) {
        if (!p->is_leaving)
            v[(*n)++] = p;
    }
    qsort(v, (size_t)*n, sizeof(struct partition *), by_topic_and_index);
    return v;
}

static void read_partition(const struct partition *p, struct figures_partition *to)
{
    struct log_bounds bounds;

    log_view_bounds(p->view, &bounds);
    log_view_size(p->view, &to->bytes, &to->segments);
    to->topic = p->topic;
    to->index = p->index;
    to->log_start = bounds.log_start;
    to->high_watermark = bounds.high_watermark;
    to->end = bounds.end;
}

static void add_to_topic(const struct partition *p, struct figures *out)
{
    struct figures_topic *t = out->topics + out->topic_count - 1;

    if (out->topic_count == 0 || strcmp(t->name, p->topic) != 0) {
        t = &out->topics[out->topic_count++];
        t->name = p->topic;
    }
    t->partition_count++;
    for (int i = 0; i < p->broker->shard_count; i++)
        add_traffic(&t->traffic, &p->traffic[i]);
}

static void read_partitions(const struct control *c, int32_t partitions_max, struct arena *arena,
                            struct figures *out)
{
    struct partition **v = sorted_partitions(c, arena, &out->partition_count);
    int32_t most = MIN(out->partition_count, partitions_max);

    out->topics = arena_calloc(arena, (size_t)out->partition_count, sizeof(*out->topics));
    out->partitions = arena_calloc(arena, (size_t)most, sizeof(*out->partitions));
    for (int32_t i = 0; i < out->partition_count; i++) {
        bool is_offline = log_dir_has_failed(c->broker->dirs[v[i]->dir]);

        add_to_topic(v[i], out);
        out->partitions_offline += is_offline;
        out->group_count += counter_read(&v[i]->group_count);
        out->offset_count += counter_read(&v[i]->offset_count);
        if (!is_offline && out->partitions_given < most)
            read_partition(v[i], &out->partitions[out->partitions_given++]);
    }
}

/* ---- the cluster --------------------------------------------------------------------------- */

static void read_led(const struct metadata_partition *p, int32_t min_insync, struct figures *out)
{
    out->partitions_led++;
    out->partitions_lagging += p->isr.count < p->replicas.count;
    out->partitions_below_min += p->isr.count < MIN(min_insync, p->replicas.count);
}

/* As the image has it: on the control loop nobody disturbs that. */
static void read_cluster(const struct control *c, struct figures *out)
{
    const struct metadata_image *image = c->image;
    int32_t partitions = 0;
    int32_t leaderless = out->partitions_offline;

    for (int32_t t = 0; t < image->topic_count; t++) {
        const struct metadata_topic *topic = image->topics[t];
        int32_t min_insync = control_topic_config(c, &topic->configs).min_insync_replicas;

        partitions += topic->partition_count;
        for (int32_t i = 0; i < topic->partition_count; i++) {
            leaderless += topic->partitions[i].leader < 0;
            if (topic->partitions[i].leader == c->broker->node_id)
                read_led(&topic->partitions[i], min_insync, out);
        }
    }
    out->partitions_led = MAX(out->partitions_led - out->partitions_offline, 0);
    out->is_controller = c->is_serving && !c->stopping && control_decides(c);
    if (!out->is_controller)
        return;
    out->cluster_topics = image->topic_count;
    out->cluster_partitions = partitions;
    out->cluster_leaderless = leaderless;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static enum figures_phase phase_of(const struct control *c)
{
    if (c->stopping)
        return FIGURES_STOPPING;
    return c->is_serving ? FIGURES_SERVING : FIGURES_STARTING;
}

void broker_figures_read(struct broker *b, int32_t partitions_max, struct arena *arena,
                         struct figures *out)
{
    const struct control *c = b->control;

    *out = (struct figures){
        .phase = phase_of(c),
        .stop_err = c->stop_err,
        .node_id = b->node_id,
        .cluster_id = arena_printf(arena, "%.*s", STR_ARG(b->cluster_id)).p,
        .cleaner = c->cleaned,
        .request_bytes = atomic_load_explicit(&b->budget.used, memory_order_relaxed),
    };
    read_shards(b, arena, out);
    read_dirs(b, arena, out);
    if (partitions_max < 0)
        return;
    read_partitions(c, partitions_max, arena, out);
    read_cluster(c, out);
}
