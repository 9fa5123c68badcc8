/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control loop: administrative changes one after the other, the image that follows from them,
 * and the partitions' coming and going.
 *
 * A change goes to the keeper first, then to the log directories, then to the shards, and only
 * then is it answered: whatever has been answered survives a crash, and whatever has not is either
 * not there or made complete at the next start.
 */
#include "broker/cluster.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- tasks ------------------------------------------------------------------------------ */

static void run_next(struct control *c)
{
    struct list *node = c->task_runs ? NULL : list_pop_front(&c->tasks);
    struct task *t;

    if (!node)
        return;
    t = LIST_ENTRY(node, struct task, link);
    c->task_runs = true;
    t->run(c, t);
}

void control_enqueue(struct control *c, struct task *t,
                     void (*run)(struct control *, struct task *))
{
    t->run = run;
    list_push_back(&c->tasks, &t->link);
    run_next(c);
}

void control_task_end(struct control *c)
{
    assert(c->task_runs);
    c->task_runs = false;
    run_next(c);
}

/* ---- publishing ------------------------------------------------------------------------- */

struct publication {
    struct control *control;
    struct config *replaced; /* freed when no shard looks at it any more */
    void (*done)(struct control *c, void *ctx);
    void *ctx;
};

static void published(struct shard_broadcast *b)
{
    struct publication *p = b->ctx;

    config_free(p->replaced);
    p->done(p->control, p->ctx);
    free(p);
}

void control_set_image(struct control *c, struct metadata_delta *delta)
{
    struct metadata_image *next = metadata_apply(c->image, delta);

    metadata_delta_fini(delta);
    metadata_image_put(c->image);
    c->image = next;
}

void control_publish(struct control *c, struct metadata_delta *delta, struct config *config,
                     void (*done)(struct control *c, void *ctx), void *ctx)
{
    struct publication *p = xcalloc(1, sizeof(*p));

    control_set_image(c, delta);
    p->control = c;
    p->done = done;
    p->ctx = ctx;
    if (config) {
        p->replaced = c->config;
        c->config = config;
    }
    shard_broadcast(c, SHARD_IMAGE, NULL, published, p);
}

struct topic_config control_topic_config(const struct control *c, const struct config_overrides *o)
{
    struct topic_config config;

    topic_config_resolve(c->config, o, &config);
    return config;
}

/* ---- partitions that come --------------------------------------------------------------- */

struct addition {
    struct control *control;
    struct partition_spec spec;
    struct partition *partition;
    struct io_job job;
    struct io_msg msg;
    enum err err;
    void (*done)(struct control *c, void *ctx, enum err err);
    void *ctx;
};

static void addition_end(struct addition *a, enum err err)
{
    a->done(a->control, a->ctx, err);
    free(a);
}

static void found_by_all(struct shard_broadcast *b)
{
    addition_end(b->ctx, ERR_NONE);
}

static void opened(struct io_msg *msg)
{
    struct addition *a = CONTAINER_OF(msg, struct addition, msg);
    struct control *c = a->control;

    HASH_ADD(of_control, c->partitions, key, sizeof(a->partition->key), a->partition);
    c->partition_count++;
    shard_broadcast(c, SHARD_ADD_PARTITION, a->partition, found_by_all, a);
}

static void open_at_owner(struct io_msg *msg)
{
    struct addition *a = CONTAINER_OF(msg, struct addition, msg);

    partition_open(a->partition, a->spec.loaded, a->spec.state);
    a->msg.fn = opened;
    io_post(a->control->loop, &a->msg);
}

static void open_partition(struct addition *a)
{
    const struct partition_spec *s = &a->spec;

    a->partition = partition_new(a->control->broker, s->topic, s->topic_id, s->index);
    a->partition->dir = s->dir;
    a->msg.fn = open_at_owner;
    io_post(a->partition->owner->loop, &a->msg);
}

static void create_log(struct io_job *job)
{
    struct addition *a = CONTAINER_OF(job, struct addition, job);
    struct broker *b = a->control->broker;
    struct log_load_args args = {
        .io = b->io,
        .topic = a->spec.topic,
        .partition = a->spec.index,
        .topic_id = a->spec.topic_id,
        .config = a->spec.config,
        .now_ms = io_wall_ms(b->io),
        .job = job,
    };

    if (a->spec.dir < 0) {
        a->err = ERR_FAILED_DIR; /* None is left. */
        return;
    }
    args.dir = b->dirs[a->spec.dir];
    a->err = log_create(&args, &a->spec.loaded);
}

static void log_created(struct io_job *job)
{
    struct addition *a = CONTAINER_OF(job, struct addition, job);
    int dir = a->spec.dir;

    if (a->err) {
        trace_error("partition.create_failed", "topic=%s partition=%d dir=%s error=%s",
                    a->spec.topic, a->spec.index,
                    dir < 0 ? "none" : log_dir_path(a->control->broker->dirs[dir]),
                    err_name(a->err));
        if (dir >= 0)
            a->control->dir_partitions[dir]--;
        addition_end(a, a->err);
        return;
    }
    open_partition(a);
}

/* The working directory with the fewest partitions; -1 when none works. */
static int choose_dir(struct control *c)
{
    int best = -1;

    for (int i = 0; i < c->broker->dir_count; i++) {
        if (log_dir_has_failed(c->broker->dirs[i]))
            continue;
        if (best < 0 || c->dir_partitions[i] < c->dir_partitions[best])
            best = i;
    }
    return best;
}

void control_add_partition(struct control *c, const struct partition_spec *spec,
                           void (*done)(struct control *c, void *ctx, enum err err), void *ctx)
{
    struct addition *a = xcalloc(1, sizeof(*a));

    a->control = c;
    a->spec = *spec;
    a->done = done;
    a->ctx = ctx;
    if (!spec->loaded)
        a->spec.dir = choose_dir(c);
    /* A job even without a directory: `done` must not run inside this call. */
    a->job.run = create_log;
    a->job.done = log_created;
    if (a->spec.dir >= 0)
        c->dir_partitions[a->spec.dir]++;
    if (a->spec.loaded)
        open_partition(a);
    else
        io_job_submit(c->loop, &a->job);
}

struct partition *control_find_partition(struct control *c, struct uuid topic_id, int32_t index)
{
    struct partition_key key = {.topic_id = topic_id, .index = index};
    struct partition *p;

    HASH_FIND(of_control, c->partitions, &key, sizeof(key), p);
    return p;
}

/* ---- partitions that go ----------------------------------------------------------------- */

struct removal {
    struct control *control;
    struct partition *partition;
    bool delete_files;
    struct io_msg msg;
    enum err err;
    void (*done)(struct control *c, void *ctx, enum err err);
    void *ctx;
};

static void removed(struct io_msg *msg)
{
    struct removal *m = CONTAINER_OF(msg, struct removal, msg);
    struct control *c = m->control;

    c->dir_partitions[m->partition->dir]--;
    c->partition_count--;
    HASH_DELETE(of_control, c->partitions, m->partition);
    if (m->err && c->cluster && m->delete_files)
        lost_note(c->cluster, m->partition->topic_id, m->partition->index); /* It is there yet. */
    partition_unref(m->partition);
    m->done(c, m->ctx, m->err);
    free(m);
}

static void log_closed(struct partition *p, enum err err)
{
    struct removal *m = p->closed_ctx;

    m->err = err;
    m->msg.fn = removed;
    io_post(m->control->loop, &m->msg);
}

static void shut_at_owner(struct io_msg *msg)
{
    struct removal *m = CONTAINER_OF(msg, struct removal, msg);
    struct partition *p = m->partition;

    p->closed = log_closed;
    p->closed_ctx = m;
    partition_shut(p, m->delete_files);
}

static void forgotten_by_all(struct shard_broadcast *b)
{
    struct removal *m = b->ctx;

    m->msg.fn = shut_at_owner;
    io_post(m->partition->owner->loop, &m->msg);
}

void control_remove_partition(struct control *c, struct partition *p, bool delete_files,
                              void (*done)(struct control *c, void *ctx, enum err err), void *ctx)
{
    struct removal *m = xcalloc(1, sizeof(*m));

    p->is_leaving = true;
    m->control = c;
    m->partition = p;
    m->delete_files = delete_files;
    m->done = done;
    m->ctx = ctx;
    shard_broadcast(c, SHARD_REMOVE_PARTITION, p, forgotten_by_all, m);
}

/* ---- periodic work ---------------------------------------------------------------------- */

#define RETENTION_SEGMENTS_A_TURN 16

static void retain_at_owner(struct io_msg *msg)
{
    struct partition *p = CONTAINER_OF(msg, struct partition, retention_msg);
    int64_t now_ms = shard_now_ms(p->owner);
    int64_t expiration_ms = config_i64(p->owner->config, CONFIG_PRODUCER_ID_EXPIRATION_MS);

    if (p->log && !p->refusing) {
        /* Bounded work per turn: what is left over goes on in the next one. */
        if (log_apply_retention(p->log, now_ms, RETENTION_SEGMENTS_A_TURN) ==
            RETENTION_SEGMENTS_A_TURN) {
            io_post(p->owner->loop, msg);
            return;
        }
        log_expire_producers(p->log, now_ms, expiration_ms);
        fetch_wake_partition(p);
    }
    atomic_store_explicit(&p->retention_runs, false, memory_order_release);
    partition_unref(p);
}

static void arm_retention(struct control *c)
{
    int64_t ms = config_i64(c->config, CONFIG_LOG_RETENTION_CHECK_INTERVAL_MS);

    io_timer_set(c->loop, &c->retention_timer, io_loop_mono_ns(c->loop) + ms * 1000000);
}

static void retention_due(struct io_op *op)
{
    struct control *c = CONTAINER_OF(op, struct control, retention_timer.op);
    struct partition *p;
    struct partition *next;

    if (op->err || c->stopping)
        return;
    HASH_ITER (of_control, c->partitions, p, next) {
        if (atomic_exchange_explicit(&p->retention_runs, true, memory_order_acquire))
            continue;
        partition_ref(p);
        p->retention_msg.fn = retain_at_owner;
        io_post(p->owner->loop, &p->retention_msg);
    }
    arm_retention(c);
}

/* ---- stopping --------------------------------------------------------------------------- */

static void stopped(void *ctx)
{
    struct control *c = ctx;

    c->broker->args.stopped(c->broker->args.ctx, c->stop_err, c->stop_why);
    io_stop(c->broker->io);
}

static void stop_end(struct control *c)
{
    if (c->cluster)
        cluster_close(c, stopped, c);
    else
        stopped(c);
}

static void partition_closed(struct control *c, void *ctx, enum err err)
{
    (void)ctx;
    (void)err; /* A log that did not close keeps its directory from being marked clean. */
    if (--c->closing == 0)
        stop_end(c);
}

/* Behind the changes that the last requests have asked for. */
static void close_run(struct control *c, struct task *t)
{
    struct partition *p;
    struct partition *next;

    free(t);
    c->closing = c->partition_count;
    if (c->closing == 0)
        stop_end(c);
    HASH_ITER (of_control, c->partitions, p, next)
        control_remove_partition(c, p, false, partition_closed, NULL);
}

/* No shard has a connection any more, and with them the last requests have gone. */
static void shards_stopped(struct shard_broadcast *b)
{
    control_enqueue(b->ctx, xcalloc(1, sizeof(struct task)), close_run);
}

/* Who asks whether this broker is there hears from now on that it is not. */
static void shards_are_deaf(struct shard_broadcast *b)
{
    struct control *c = b->ctx;

    broker_close_listeners(c->broker);
    shard_broadcast(c, SHARD_STOP, NULL, shards_stopped, c);
}

/* Behind the running change, so that nothing is left half done. */
static void stop_run(struct control *c, struct task *t)
{
    free(t);
    io_cancel(&c->retention_timer.op);
    cleaner_stop(c);
    shard_broadcast(c, SHARD_DEAF, NULL, shards_are_deaf, c);
    control_task_end(c);
}

static void stop_begin(struct control *c)
{
    control_enqueue(c, xcalloc(1, sizeof(struct task)), stop_run);
}

void control_stop(struct control *c, enum err err, const char *why)
{
    if (c->stopping)
        return;
    c->stopping = true;
    c->stop_err = err;
    c->stop_why = why;
    trace_info("broker.stopping", "why=\"%s\"", why);
    if (c->broker->args.stopping)
        c->broker->args.stopping(c->broker->args.ctx, why);
    if (c->load)
        load_cancel(c->load);
    if (c->cluster)
        lease_end(c->cluster);
    if (c->cluster && c->is_serving && !err)
        cluster_leave(c, stop_begin);
    else
        stop_begin(c);
}

struct dir_failure {
    struct io_msg msg;
    struct broker *broker;
};

static void dir_failed(struct io_msg *msg)
{
    struct dir_failure *f = CONTAINER_OF(msg, struct dir_failure, msg);
    struct broker *b = f->broker;
    int working = 0;

    free(f);
    for (int i = 0; i < b->dir_count; i++)
        working += !log_dir_has_failed(b->dirs[i]);
    if (working == 0)
        control_stop(b->control, ERR_KAFKA_STORAGE_ERROR, "every log directory has failed");
    else if (b->control->cluster)
        dir_failures_note(b->control->cluster);
}

void control_dir_failed(struct broker *b)
{
    struct dir_failure *f = xmalloc(sizeof(*f));

    f->msg.fn = dir_failed;
    f->broker = b;
    io_post(b->control->loop, &f->msg);
}

static void signalled(struct io_op *op)
{
    struct control *c = CONTAINER_OF(op, struct control, signal.op);

    if (op->err)
        return;
    control_stop(c, ERR_NONE, c->signal.signo == SIGINT ? "SIGINT" : "SIGTERM");
}

/* ---- life ------------------------------------------------------------------------------- */

struct broker *control_broker(struct control *c)
{
    return c->broker;
}

struct io_loop *control_loop(const struct broker *b)
{
    return b->control->loop;
}

struct metadata_image *control_image(struct control *c)
{
    return c->image;
}

const struct config *control_config(struct control *c)
{
    return c->config;
}

static void loaded(struct control *c)
{
    c->is_serving = true;
    arm_retention(c);
    cleaner_start(c);
    if (c->cluster)
        cluster_start(c);
}

void control_start(struct control *c)
{
    for (int i = 0; i < c->broker->dir_count; i++)
        log_dir_start(c->broker->dirs[i], c->loop);
    c->signal.op.done = signalled;
    io_signal_wait(c->loop, &c->signal);
    c->retention_timer.op.done = retention_due;
    load_start(c, loaded);
}

struct control *control_new(struct broker *b, struct config *config)
{
    struct control *c = xcalloc(1, sizeof(*c));

    c->broker = b;
    c->config = config;
    c->image = metadata_image_new();
    c->dir_partitions = xcalloc((size_t)b->dir_count, sizeof(*c->dir_partitions));
    c->producer_ids = producer_ids_new();
    c->producer_id_least = PRODUCER_ID_FIRST;
    list_init(&c->tasks);
    return c;
}

void control_free(struct control *c)
{
    metadata_image_put(c->image);
    config_free(c->config);
    producer_ids_free(c->producer_ids);
    free(c->dir_partitions);
    cleaner_free(c);
    load_free(c->load);
    cluster_free(c->cluster);
    free(c);
}
