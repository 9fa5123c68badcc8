/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start: what the keeper knows and what the log directories hold become one image.
 *
 *   keeper -> topics;  directories -> logs (recovered by jobs, in parallel)
 *   a topic without a directory: its log is made (creation was interrupted, or the disk replaced)
 *   a directory without a topic: adopted (adopt.c), or else renamed to "-stray"
 *   a topic that is marked: its deletion is carried out, once everything serves
 *
 * A stop that comes while logs are recovered does not wait for them: what their files are is for
 * the next start to find out.
 *
 * After an unclean stop a partition that is not flushed on every acknowledgement may have lost
 * records that were seen; its leader epoch goes up, so that readers can find out (KIP-320).
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/cluster.h"

#define PROGRESS_NS 1000000000

/* One partition to be loaded or made. */
struct load_item {
    struct list link;
    struct load *load;
    struct io_job job;
    struct metadata_topic *topic; /* a reference; NULL: to be set aside */
    char *name;                   /* of the topic, owned */
    struct uuid topic_id; /* as the directory says, may be zero; not of what is to be made */
    int32_t index;
    int dir; /* -1: no directory has it */
    struct log_loaded *loaded;
    struct log_load_report report;
    enum err err;
};

struct load {
    struct control *control;
    void (*done)(struct control *c);
    bool is_new_keeper;
    struct list items;
    int32_t total;
    int32_t pending;
    int32_t loaded;
    struct io_timer progress;
    struct broker_ready ready;
    char *address;
    char *why; /* it could not start */
};

/* ---- the end ---------------------------------------------------------------------------- */

static char *ready_address(const struct broker *b)
{
    const struct listener *l = &b->listeners[0];
    const char *host = l->advertised_host ? l->advertised_host : l->host;

    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    return xasprintf(strchr(host, ':') ? "[%s]:%u" : "%s:%u", *host ? host : "0.0.0.0",
                     l->advertised_port ? l->advertised_port : l->port);
}

static void free_items(struct load *l)
{
    struct list *node;

    while ((node = list_pop_front(&l->items))) {
        struct load_item *item = LIST_ENTRY(node, struct load_item, link);

        log_loaded_free(item->loaded);
        metadata_topic_put(item->topic);
        free(item->report.damage);
        free(item->name);
        free(item);
    }
}

static void listening(struct shard_broadcast *b)
{
    struct load *l = b->ctx;
    struct control *c = l->control;

    io_cancel(&l->progress.op);
    l->address = ready_address(c->broker);
    l->ready.address = l->address;
    l->ready.start_ns = c->broker->start_ns;
    l->ready.topics = c->image->topic_count;
    l->ready.partitions = c->partition_count;
    l->ready.was_clean = true;
    for (int i = 0; i < c->broker->dir_count; i++)
        l->ready.was_clean = l->ready.was_clean &&
                             (c->broker->found[i].clean || c->broker->found[i].is_new);
    c->broker->args.ready(c->broker->args.ctx, &l->ready);
    free_items(l);
    if (!l->ready.was_clean)
        alloc_trim(); /* Recovery reads with many threads, which keep what they had. */
    if (!c->cluster)
        topics_resume_deletions(c);
    l->done(c);
    control_task_end(c);
}

static void partition_added(struct control *c, void *ctx, enum err err)
{
    struct load *l = ctx;

    /* Its directory has failed: the others serve, this one answers that it does not exist. */
    if (err)
        trace_error("partition.unavailable", "error=%s", err_name(err));
    if (--l->pending == 0)
        shard_broadcast(c, SHARD_LISTEN, NULL, listening, l);
}

static void add_item(struct load *l, struct load_item *item)
{
    struct control *c = l->control;
    const struct metadata_topic *topic = metadata_find_topic_id(c->image, item->topic->id);
    struct partition_spec spec = {
        .topic = item->topic->name.p,
        .topic_id = item->topic->id,
        .index = item->index,
        .state = &topic->partitions[item->index],
        .config = control_topic_config(c, &item->topic->configs),
        .loaded = item->loaded,
        .dir = item->dir,
    };

    if (item->err) {
        trace_error("partition.load_failed", "topic=%s partition=%d error=%s", item->name,
                    item->index, err_name(item->err));
        if (c->cluster)
            lost_note(c->cluster, item->topic->id, item->index);
        return;
    }
    if (item->dir >= 0 && !item->loaded)
        return;
    l->pending++;
    item->loaded = NULL; /* Taken. */
    control_add_partition(c, &spec, partition_added, l);
}

static void image_published(struct control *c, void *ctx)
{
    struct load *l = ctx;

    l->pending = 1;
    LIST_EACH (node, &l->items) {
        struct load_item *item = LIST_ENTRY(node, struct load_item, link);

        if (item->topic)
            add_item(l, item);
        else if (item->err && c->cluster) /* It is where it was. */
            lost_note(c->cluster, item->topic_id, item->index);
    }
    partition_added(l->control, l, ERR_NONE);
}

static void load_fail(struct load *l, enum err err, const char *why)
{
    l->why = xstrdup(why);
    control_stop(l->control, err, l->why);
    control_task_end(l->control);
}

/* ---- epochs and adopted topics ---------------------------------------------------------- */

static void publish_image(struct control *c, void *ctx, enum err err)
{
    struct load *l = ctx;
    struct metadata_delta delta = {0};

    if (err) {
        load_fail(l, err, "the metadata store could not be written");
        return;
    }
    control_publish(c, &delta, NULL, image_published, l);
}

/*
 * The next leader epoch for what may have lost a tail that somebody saw. Epochs never go back in a
 * log: where its history is ahead of the keeper, another broker has led. It may have lost what it
 * acknowledged; and after a clean stop clients may know a later epoch than the log, because KRaft
 * counts the leader's going too, and clients take no older one.
 */
static void raise_epoch(struct load *l, struct load_item *item, struct store_ops *ops,
                        struct metadata_delta *delta)
{
    struct control *c = l->control;
    struct metadata_topic *topic = metadata_find_topic_id(c->image, item->topic->id);
    struct metadata_partition next = topic->partitions[item->index];
    struct topic_config config = control_topic_config(c, &topic->configs);
    bool was_clean = item->dir < 0 || c->broker->found[item->dir].clean;
    bool is_ahead = item->loaded && item->report.latest_epoch > next.leader_epoch;
    bool is_whole = was_clean || (config.flush_on_ack && item->report.bytes_cut == 0);
    bool is_adopted = next.leader_epoch < 0;

    if (is_whole && !is_ahead && !is_adopted)
        return;
    if (is_ahead)
        next.leader_epoch = item->report.latest_epoch;
    next.leader_epoch++;
    next.partition_epoch++;
    store_set_partition(ops, topic->name, item->index, &next);
    metadata_delta_set_partition(delta, topic->name, item->index, &next);
}

/* In a cluster the controller does, for every life that has ended. */
static void raise_epochs(struct load *l)
{
    struct control *c = l->control;
    struct store_ops *ops = store_ops_new();
    struct metadata_delta delta = {0};

    LIST_EACH (node, &l->items) {
        struct load_item *item = LIST_ENTRY(node, struct load_item, link);

        if (item->topic && !item->err && !c->cluster)
            raise_epoch(l, item, ops, &delta);
    }
    control_set_image(c, &delta);
    store_commit(c, ops, publish_image, l);
}

/* ---- logs ------------------------------------------------------------------------------- */

static void items_done(struct load *l)
{
    struct control *c = l->control;
    char *lack = descriptors_lack(c->broker, 0);

    if (c->stopping) {
        io_cancel(&l->progress.op);
        free_items(l);
        control_task_end(c);
    } else if (lack) {
        io_cancel(&l->progress.op);
        load_fail(l, ERR_LIMIT, lack);
    } else {
        raise_epochs(l);
    }
    free(lack);
}

static void item_done(struct io_job *job)
{
    struct load_item *item = CONTAINER_OF(job, struct load_item, job);
    struct load *l = item->load;

    l->loaded++;
    l->ready.bytes_scanned += item->report.bytes_scanned;
    l->ready.bytes_cut += item->report.bytes_cut;
    if (item->loaded)
        l->control->producer_id_least =
            MAX(l->control->producer_id_least, item->report.producer_id_max + 1);
    if (item->report.damage) {
        l->ready.damaged++;
        trace_error("partition.damaged", "topic=%s partition=%d what=\"%s\"", item->name,
                    item->index, item->report.damage);
    }
    if (--l->pending == 0)
        items_done(l);
}

static void run_item(struct io_job *job)
{
    struct load_item *item = CONTAINER_OF(job, struct load_item, job);
    struct broker *b = item->load->control->broker;
    struct log_load_args args = {
        .io = b->io,
        .dir = b->dirs[item->dir],
        .topic = item->name,
        .partition = item->index,
        .now_ms = io_wall_ms(b->io),
        .job = job,
    };

    if (atomic_load_explicit(&job->cancel, memory_order_relaxed)) {
        item->err = ERR_CANCELLED;
        return;
    }
    if (!item->topic) {
        item->err = log_dir_set_aside(b->dirs[item->dir], item->name, item->index);
        return;
    }
    args.topic_id = item->topic->id;
    args.config = control_topic_config(item->load->control, &item->topic->configs);
    item->err = log_load(&args, &item->loaded, &item->report);
}

static void submit_item(struct load_item *item)
{
    item->job.run = run_item;
    item->job.done = item_done;
    io_job_submit(item->load->control->loop, &item->job);
}

static void stray_forgotten(void *ctx, enum err err)
{
    struct load_item *item = ctx;

    item->err = err;
    if (err)
        item_done(&item->job); /* It stays where it is, and is tried again at the next start. */
    else
        submit_item(item);
}

static void progress_due(struct io_op *op)
{
    struct load *l = CONTAINER_OF(op, struct load, progress.op);
    struct broker *b = l->control->broker;
    int64_t bytes = 0;

    if (op->err)
        return;
    LIST_EACH (node, &l->items)
        bytes += atomic_load_explicit(&LIST_ENTRY(node, struct load_item, link)->job.progress,
                                      memory_order_relaxed);
    b->args.progress(b->args.ctx, bytes, l->loaded, l->total);
    io_timer_set(l->control->loop, &l->progress, io_loop_mono_ns(l->control->loop) + PROGRESS_NS);
}

static void submit_items(struct load *l)
{
    l->pending = 1;
    LIST_EACH (node, &l->items) {
        struct load_item *item = LIST_ENTRY(node, struct load_item, link);

        if (item->dir < 0)
            continue;
        l->total++;
        l->pending++;
        l->control->dir_partitions[item->dir] += item->topic != NULL;
        if (item->topic)
            submit_item(item);
        else
            log_dir_forget(l->control->broker->dirs[item->dir], item->name, item->index,
                           stray_forgotten, item);
    }
    l->progress.op.done = progress_due;
    if (l->total > 0)
        io_timer_set(l->control->loop, &l->progress,
                     io_loop_mono_ns(l->control->loop) + PROGRESS_NS);
    if (--l->pending == 0)
        items_done(l);
}

void load_cancel(struct load *l)
{
    LIST_EACH (node, &l->items)
        atomic_store_explicit(&LIST_ENTRY(node, struct load_item, link)->job.cancel, true,
                              memory_order_relaxed);
}

/* ---- keeper and directories become items ------------------------------------------------ */

static struct load_item *new_item(struct load *l, struct metadata_topic *topic, const char *name,
                                  int32_t index, int dir)
{
    struct load_item *item = xcalloc(1, sizeof(*item));

    item->load = l;
    item->topic = topic ? metadata_topic_get(topic) : NULL;
    item->name = xstrdup(name);
    item->index = index;
    item->dir = dir;
    list_push_back(&l->items, &item->link);
    return item;
}

/* In a cluster a partition may have moved to other brokers meanwhile. */
static bool is_assigned_here(const struct control *c, const struct metadata_topic *topic,
                             int32_t index)
{
    return !c->cluster || metadata_ids_have(&topic->partitions[index].replicas, c->broker->node_id);
}

/* The directory belongs to the topic of this name, and to this incarnation of it. */
static struct metadata_topic *owner_of(struct control *c, const struct log_partition_name *found)
{
    struct metadata_topic *topic = metadata_find_topic(c->image, str_of(found->topic));

    if (!topic || found->partition >= topic->partition_count)
        return NULL;
    if (!uuid_is_zero(found->topic_id) && !uuid_eq(found->topic_id, topic->id))
        return NULL;
    return is_assigned_here(c, topic, found->partition) ? topic : NULL;
}

static void add_found(struct load *l)
{
    struct control *c = l->control;

    for (int d = 0; d < c->broker->dir_count; d++) {
        const struct log_dir_found *found = &c->broker->found[d];

        for (size_t i = 0; i < found->n; i++) {
            struct metadata_topic *topic = owner_of(c, &found->v[i]);

            if (!topic)
                trace_warn("partition.stray",
                           "dir=%s topic=%s partition=%d note=\"renamed; to take it over, give it "
                           "its name back and start with --import\"",
                           log_dir_path(c->broker->dirs[d]), found->v[i].topic,
                           found->v[i].partition);
            new_item(l, topic, found->v[i].topic, found->v[i].partition, d)->topic_id =
                found->v[i].topic_id;
        }
    }
}

static int by_partition(const void *a, const void *b)
{
    const struct load_item *x = *(struct load_item *const *)a;
    const struct load_item *y = *(struct load_item *const *)b;
    int order = str_cmp(x->topic->name, y->topic->name);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* The items that belong to topics, in the order of the image. */
static struct load_item **sorted_items(struct load *l, size_t *n)
{
    struct load_item **v;

    *n = 0;
    LIST_EACH (node, &l->items)
        *n += LIST_ENTRY(node, struct load_item, link)->topic != NULL;
    v = xcalloc(*n + 1, sizeof(struct load_item *));
    *n = 0;
    LIST_EACH (node, &l->items) {
        struct load_item *item = LIST_ENTRY(node, struct load_item, link);

        if (item->topic)
            v[(*n)++] = item;
    }
    qsort(v, *n, sizeof(struct load_item *), by_partition);
    return v;
}

/* Two directories hold the same partition: nobody can say which one is right. */
static const struct load_item *find_twin(struct load_item *const *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (by_partition(&v[i - 1], &v[i]) == 0)
            return v[i];
    return NULL;
}

/* Adds what no directory has; false when a partition is in two of them. */
static bool add_missing(struct load *l)
{
    struct control *c = l->control;
    size_t n;
    size_t at = 0;
    struct load_item **v = sorted_items(l, &n);
    const struct load_item *twin = find_twin(v, n);

    for (int32_t t = 0; t < c->image->topic_count && !twin; t++) {
        struct metadata_topic *topic = c->image->topics[t];

        for (int32_t i = 0; i < topic->partition_count; i++) {
            if (at < n && v[at]->topic == topic && v[at]->index == i)
                at++;
            else if (!topic->is_deleting && !c->cluster) /* there, the controller orders it */
                new_item(l, topic, topic->name.p, i, -1);
        }
    }
    if (twin)
        trace_error("partition.twice", "topic=%s partition=%d dir=%s", twin->name, twin->index,
                    log_dir_path(c->broker->dirs[twin->dir]));
    free(v);
    return !twin;
}

/* ---- the beginning ---------------------------------------------------------------------- */

static struct metadata_broker *this_broker(const struct broker *b)
{
    struct metadata_broker *self =
        metadata_broker_new(b->node_id, 0, config_str(b->control->config, CONFIG_BROKER_RACK));

    for (int i = 0; i < b->listener_count; i++) {
        const struct listener *l = &b->listeners[i];
        const char *host = l->advertised_host ? l->advertised_host : l->host;

        metadata_broker_add_endpoint(self, str_of(l->name), str_of(host),
                                     l->advertised_port ? l->advertised_port : l->port);
    }
    return self;
}

static void adopted_stored(struct control *c, void *ctx, enum err err)
{
    struct load *l = ctx;

    (void)c;

    if (err) {
        load_fail(l, err, "the metadata store could not be written");
        return;
    }
    adopt_say(c->image);
    add_found(l);
    if (add_missing(l))
        submit_items(l);
    else
        load_fail(l, ERR_INVALID_ARG, "a partition is in two log directories: remove one of them");
}

static void take_broker_configs(struct control *c, const struct store_contents *contents,
                                struct metadata_delta *delta)
{
    for (int32_t i = 0; i < contents->broker_config_count; i++) {
        const struct metadata_broker_config *b = &contents->broker_configs[i];

        metadata_delta_set_broker_configs(delta, b->broker_id, &b->configs);
        if (b->broker_id == METADATA_ALL_BROKERS)
            config_set_dynamic(c->config, CONFIG_SOURCE_DYNAMIC_DEFAULT, &b->configs);
        else if (b->broker_id == c->broker->node_id)
            config_set_dynamic(c->config, CONFIG_SOURCE_DYNAMIC_BROKER, &b->configs);
    }
}

/* Until the controller says so, nobody knows who leads: what is stored may be old. */
static void forget_states(struct metadata_topic *topic)
{
    for (int32_t i = 0; i < topic->partition_count; i++) {
        struct metadata_partition p = topic->partitions[i];

        p.leader = p.leader_epoch = p.partition_epoch = -1;
        p.isr.count = 0;
        metadata_topic_set_partition(topic, i, &p);
    }
}

static void take_topics(struct control *c, const struct store_contents *contents,
                        struct metadata_delta *delta)
{
    for (int32_t i = 0; i < contents->topic_count; i++) {
        if (c->cluster)
            forget_states(contents->topics[i]);
        metadata_delta_put_topic(delta, metadata_topic_get(contents->topics[i]));
    }
}

static void store_loaded(struct control *c, void *ctx, enum err err,
                         struct store_contents *contents)
{
    struct load *l = ctx;
    struct metadata_delta delta = {0};
    struct store_ops *ops;

    if ((err == ERR_CANCELLED || err == ERR_UNKNOWN) && !c->stopping) {
        /* The connection or the session has ended: there is another one, or there will be. */
        store_load(c, c->broker->cluster_id, store_loaded, l);
        return;
    }
    if (err) {
        load_fail(l, err, contents->damage);
        return;
    }
    ops = store_ops_new();
    metadata_delta_set_cluster(&delta, contents->cluster_id);
    if (!c->cluster) {
        metadata_delta_set_controller(&delta, c->broker->node_id, 1);
        metadata_delta_put_broker(&delta, this_broker(c->broker));
    }
    take_broker_configs(c, contents, &delta);
    take_topics(c, contents, &delta);
    if (!c->cluster)
        adopt_directories(c, contents, ops, &delta);
    control_set_image(c, &delta);
    store_commit(c, ops, adopted_stored, l);
}

static void load_run(struct control *c, struct task *t)
{
    struct load *l = c->load;

    free(t);
    store_load(c, c->broker->cluster_id, store_loaded, l);
}

void load_start(struct control *c, void (*done)(struct control *c))
{
    struct load *l = xcalloc(1, sizeof(*l));

    l->control = c;
    l->done = done;
    list_init(&l->items);
    c->load = l;
    /* A task, so that changes and a stop wait until it has ended. */
    control_enqueue(c, xcalloc(1, sizeof(struct task)), load_run);
}

void load_free(struct load *l)
{
    if (!l)
        return;
    free_items(l);
    free(l->address);
    free(l->why);
    free(l);
}
