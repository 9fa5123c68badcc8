/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the whole tree at a start: names first, then every topic's nodes, all reads under way at
 * once. A new tree is laid out instead. A node that cannot be understood ends the start: guessing
 * at a topic's assignment could lose it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/control.h"
#include "keeper/znodes.h"

struct store_loading {
    struct control *control;
    struct store_contents contents;
    struct arena arena;
    struct str new_cluster_id;
    struct store_ops *layout;
    int pending;
    enum err err;
    void (*done)(struct control *c, void *ctx, enum err err, struct store_contents *contents);
    void *ctx;
};

/* One read, and what to do with its result. */
struct reading {
    struct store_loading *loading;
    struct keeper_call call;
    char *path;
    enum err (*use)(struct reading *r);
    struct metadata_topic **topic; /* in contents.topics */
    int64_t **zxids;               /* in contents.state_zxids */
    int32_t index;                 /* of a partition, or a broker id */
};

/* ---- the end ---------------------------------------------------------------------------- */

static void contents_fini(struct store_contents *s)
{
    for (int32_t i = 0; i < s->topic_count; i++) {
        metadata_topic_put(s->topics[i]);
        free(s->state_zxids[i]);
    }
    for (int32_t i = 0; i < s->broker_config_count; i++)
        config_overrides_fini(&s->broker_configs[i].configs);
    free(s->topics);
    free(s->state_zxids);
    free(s->broker_configs);
    free(s->damage);
}

static void loading_end(struct store_loading *l)
{
    l->done(l->control, l->ctx, l->err, &l->contents);
    contents_fini(&l->contents);
    arena_fini(&l->arena);
    free(l);
}

static void give_up(struct store_loading *l, const char *path, enum err err)
{
    if (l->err)
        return;
    l->err = err;
    l->contents.damage = xasprintf("node %s of the metadata store cannot be understood", path);
}

static void read_done(struct keeper_call *call)
{
    struct reading *r = CONTAINER_OF(call, struct reading, call);
    struct store_loading *l = r->loading;
    enum err err = call->err;

    if (!err && !l->err)
        err = r->use(r);
    if (err)
        give_up(l, r->path, err);
    keeper_call_release(call);
    free(r->path);
    free(r);
    if (--l->pending == 0)
        loading_end(l);
}

/* Takes the path. */
static struct reading *reading_new(struct store_loading *l, char *path,
                                   enum err (*use)(struct reading *r))
{
    struct reading *r = xcalloc(1, sizeof(*r));

    r->loading = l;
    r->path = path;
    r->use = use;
    r->call.done = read_done;
    l->pending++;
    return r;
}

static void submit_get(struct reading *r)
{
    keeper_get(r->loading->control->keeper, r->path, NULL, &r->call);
}

static void submit_children(struct reading *r)
{
    keeper_children(r->loading->control->keeper, r->path, NULL, &r->call);
}

/* ---- topics ----------------------------------------------------------------------------- */

static enum err use_state(struct reading *r)
{
    struct metadata_partition p = (*r->topic)->partitions[r->index];
    struct znode_state s;
    enum err err = znode_state_parse(r->call.data, &r->loading->arena, &s);

    if (err)
        return err;
    p.leader = s.leader;
    p.leader_epoch = s.leader_epoch;
    p.partition_epoch = r->call.stat.version;
    p.isr = s.isr;
    metadata_topic_set_partition(*r->topic, r->index, &p);
    (*r->zxids)[r->index] = r->call.stat.modified_zxid;
    return ERR_NONE;
}

static enum err use_topic_config(struct reading *r)
{
    struct config_overrides o = {0};
    enum err err = znode_config_parse(r->call.data, &o);

    if (!err)
        metadata_topic_set_configs(*r->topic, &o);
    config_overrides_fini(&o);
    return err;
}

static enum err use_mark(struct reading *r)
{
    (*r->topic)->is_deleting = true;
    return ERR_NONE;
}

static enum err ignore(struct reading *r)
{
    (void)r;
    return ERR_NONE;
}

static void mark_read(struct keeper_call *call)
{
    struct reading *r = CONTAINER_OF(call, struct reading, call);

    /* No mark is the usual case, and no error. */
    if (call->err == ERR_NOT_FOUND) {
        call->err = ERR_NONE;
        r->use = ignore;
    }
    read_done(call);
}

static void read_parts_of_topic(struct reading *of, struct metadata_topic *topic)
{
    struct store_loading *l = of->loading;
    struct reading *r;

    r = reading_new(l, znode_config_path(ZNODE_ENTITY_TOPICS, topic->name), use_topic_config);
    r->topic = of->topic;
    submit_get(r);
    r = reading_new(l, znode_delete_topic_path(topic->name), use_mark);
    r->topic = of->topic;
    r->call.done = mark_read;
    keeper_exists(l->control->keeper, r->path, NULL, &r->call);
    for (int32_t i = 0; i < topic->partition_count; i++) {
        r = reading_new(l, znode_state_path(topic->name, i), use_state);
        r->topic = of->topic;
        r->zxids = of->zxids;
        r->index = i;
        submit_get(r);
    }
}

static enum err use_topic(struct reading *r)
{
    struct znode_topic z;
    enum err err = znode_topic_parse(r->call.data, &r->loading->arena, &z);
    struct str name = str_of(strrchr(r->path, '/') + 1);

    if (err)
        return err;
    *r->topic = metadata_topic_new(name, z.id, z.partition_count);
    *r->zxids = xcalloc((size_t)MAX(z.partition_count, 1), sizeof(**r->zxids));
    for (int32_t i = 0; i < z.partition_count; i++) {
        struct metadata_partition p = {.leader = -1,
                                       .leader_epoch = -1,
                                       .replicas = z.replicas[i],
                                       .adding = z.adding[i],
                                       .removing = z.removing[i]};

        metadata_topic_set_partition(*r->topic, i, &p);
    }
    read_parts_of_topic(r, *r->topic);
    return ERR_NONE;
}

static enum err use_topic_names(struct reading *r)
{
    struct store_loading *l = r->loading;
    int n = r->call.children_count;

    l->contents.topics = xcalloc((size_t)n, sizeof(struct metadata_topic *));
    l->contents.state_zxids = xcalloc((size_t)n, sizeof(int64_t *));
    l->contents.topic_count = n;
    for (int i = 0; i < n; i++) {
        struct reading *t =
            reading_new(l, znode_topic_path(str_of(r->call.children[i])), use_topic);

        t->topic = &l->contents.topics[i];
        t->zxids = &l->contents.state_zxids[i];
        submit_get(t);
    }
    return ERR_NONE;
}

/* ---- brokers' configurations ------------------------------------------------------------ */

static enum err use_broker_config(struct reading *r)
{
    struct metadata_broker_config *b = &r->loading->contents.broker_configs[r->index];

    return znode_config_parse(r->call.data, &b->configs);
}

static enum err use_broker_names(struct reading *r)
{
    struct store_loading *l = r->loading;
    int n = r->call.children_count;

    l->contents.broker_configs = xcalloc((size_t)n, sizeof(struct metadata_broker_config));
    l->contents.broker_config_count = n;
    for (int i = 0; i < n; i++) {
        struct str name;
        int64_t id = METADATA_ALL_BROKERS;
        enum err err = znode_entity_name(str_of(r->call.children[i]), &l->arena, &name);
        struct reading *b;

        if (!err && !str_is_null(name))
            err = str_to_i64(name, &id);
        if (err)
            return err;
        l->contents.broker_configs[i].broker_id = (int32_t)id;
        b = reading_new(l, znode_config_path(ZNODE_ENTITY_BROKERS, name), use_broker_config);
        b->index = i;
        submit_get(b);
    }
    return ERR_NONE;
}

static enum err use_cluster_id(struct reading *r)
{
    struct store_loading *l = r->loading;

    return znode_cluster_id_parse(r->call.data, &l->arena, &l->contents.cluster_id);
}

static void read_all(struct store_loading *l)
{
    submit_get(reading_new(l, xstrdup(ZNODE_CLUSTER_ID), use_cluster_id));
    submit_children(reading_new(l, xstrdup(ZNODE_TOPICS), use_topic_names));
    submit_children(reading_new(l, xstrdup("/config/brokers"), use_broker_names));
}

/* ---- a new tree ------------------------------------------------------------------------- */

static void laid_out(struct control *c, void *ctx, enum err err)
{
    struct store_loading *l = ctx;

    (void)c;
    /* Another broker of the cluster has been faster. */
    if (err && err != ERR_EXISTS) {
        give_up(l, "/", err);
        loading_end(l);
        return;
    }
    read_all(l);
}

static void lay_out(struct store_loading *l)
{
    struct store_ops *ops = store_ops_new();

    l->contents.is_new = true;
    store_lay_out(ops, l->new_cluster_id);
    store_commit(l->control, ops, laid_out, l);
}

static void layout_known(struct keeper_call *call)
{
    struct reading *r = CONTAINER_OF(call, struct reading, call);
    struct store_loading *l = r->loading;
    enum err err = call->err;

    keeper_call_release(call);
    free(r->path);
    free(r);
    l->pending--;
    if (err == ERR_NOT_FOUND) {
        lay_out(l);
    } else if (err) {
        give_up(l, ZNODE_CLUSTER_ID, err);
        loading_end(l);
    } else {
        read_all(l);
    }
}

void store_load(struct control *c, struct str cluster_id,
                void (*done)(struct control *c, void *ctx, enum err err,
                             struct store_contents *contents),
                void *ctx)
{
    struct store_loading *l = xcalloc(1, sizeof(*l));
    struct reading *r;

    l->control = c;
    l->new_cluster_id = cluster_id;
    l->contents.cluster_id = str_null();
    l->done = done;
    l->ctx = ctx;
    arena_init(&l->arena, 0);
    r = reading_new(l, xstrdup(ZNODE_CLUSTER_ID), ignore);
    r->call.done = layout_known;
    keeper_exists(c->keeper, r->path, NULL, &r->call);
}
