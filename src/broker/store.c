/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper holds of this cluster: topics with their assignments and states, configurations,
 * marks of deletions, blocks of producer ids, in the nodes and the JSON of Apache Kafka 3.9.
 * Changes are collected into one multi, so that they happen whole or not at all.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"
#include "broker/control.h"
#include "keeper/znodes.h"

/* ---- collecting operations -------------------------------------------------------------- */

struct store_ops *store_ops_new(void)
{
    struct store_ops *ops = xcalloc(1, sizeof(*ops));

    arena_init(&ops->arena, 0);
    ops->controller_epoch = 1;
    return ops;
}

void store_ops_free(struct store_ops *ops)
{
    arena_fini(&ops->arena);
    free(ops->v);
    free(ops);
}

/* Takes path and text; a NULL text is no data. */
static void add_op(struct store_ops *ops, enum keeper_op_kind kind, char *path, char *text)
{
    struct keeper_op *op;

    if (ops->n == ops->cap) {
        ops->cap = ops->cap ? 2 * ops->cap : 8;
        ops->v = xreallocarray(ops->v, (size_t)ops->cap, sizeof(*ops->v));
    }
    op = &ops->v[ops->n++];
    *op = (struct keeper_op){.kind = kind, .version = -1};
    op->path = arena_str(&ops->arena, str_of(path)).p;
    if (text) {
        struct str copy = arena_str(&ops->arena, str_of(text));

        op->data = (struct bytes){.p = (const uint8_t *)copy.p, .n = copy.n};
    } else {
        op->data = bytes_null();
    }
    free(path);
    free(text);
}

static char *topic_json(const struct metadata_topic *topic)
{
    size_t n = (size_t)topic->partition_count;
    struct metadata_ids *lists = xcalloc(3 * n, sizeof(*lists));
    struct znode_topic z = {.id = topic->id,
                            .partition_count = topic->partition_count,
                            .replicas = lists,
                            .adding = lists + n,
                            .removing = lists + 2 * n};
    char *json;

    for (size_t i = 0; i < n; i++) {
        z.replicas[i] = topic->partitions[i].replicas;
        z.adding[i] = topic->partitions[i].adding;
        z.removing[i] = topic->partitions[i].removing;
    }
    json = znode_topic_json(&z);
    free(lists);
    return json;
}

static char *state_json(const struct store_ops *ops, const struct metadata_partition *p)
{
    struct znode_state s = {.leader = p->leader,
                            .leader_epoch = p->leader_epoch,
                            .controller_epoch = ops->controller_epoch,
                            .isr = p->isr};

    return znode_state_json(&s);
}

static void add_partition_nodes(struct store_ops *ops, const struct metadata_topic *topic,
                                int32_t from)
{
    for (int32_t i = from; i < topic->partition_count; i++) {
        add_op(ops, KEEPER_CREATE, znode_partition_path(topic->name, i), NULL);
        add_op(ops, KEEPER_CREATE, znode_state_path(topic->name, i),
               state_json(ops, &topic->partitions[i]));
    }
}

void store_add_topic(struct store_ops *ops, const struct metadata_topic *topic)
{
    add_op(ops, KEEPER_CREATE, znode_config_path(ZNODE_ENTITY_TOPICS, topic->name),
           znode_config_json(&topic->configs));
    add_op(ops, KEEPER_CREATE, znode_topic_path(topic->name), topic_json(topic));
    add_op(ops, KEEPER_CREATE, znode_partitions_path(topic->name), NULL);
    add_partition_nodes(ops, topic, 0);
}

void store_set_assignments(struct store_ops *ops, const struct metadata_topic *topic)
{
    add_op(ops, KEEPER_SET, znode_topic_path(topic->name), topic_json(topic));
}

void store_grow_topic(struct store_ops *ops, const struct metadata_topic *topic, int32_t before)
{
    store_set_assignments(ops, topic);
    add_partition_nodes(ops, topic, before);
}

void store_set_partition(struct store_ops *ops, struct str topic, int32_t index,
                         const struct metadata_partition *p)
{
    add_op(ops, KEEPER_SET, znode_state_path(topic, index), state_json(ops, p));
}

void store_change_partition(struct store_ops *ops, struct str topic, int32_t index,
                            const struct metadata_partition *p)
{
    store_set_partition(ops, topic, index, p);
    ops->v[ops->n - 1].version = p->partition_epoch - 1;
}

void store_check_controller(struct store_ops *ops, int32_t version)
{
    add_op(ops, KEEPER_CHECK, xstrdup(ZNODE_CONTROLLER_EPOCH), NULL);
    ops->v[ops->n - 1].version = PLANTED(UNFENCED_DECISIONS) ? -1 : version;
}

void store_set_topic_configs(struct store_ops *ops, struct str name,
                             const struct config_overrides *o)
{
    add_op(ops, KEEPER_SET, znode_config_path(ZNODE_ENTITY_TOPICS, name), znode_config_json(o));
}

void store_set_broker_configs(struct store_ops *ops, int32_t broker_id, bool exists,
                              const struct config_overrides *o)
{
    char text[16];
    struct str name = str_null();

    if (broker_id != METADATA_ALL_BROKERS) {
        snprintf(text, sizeof(text), "%d", broker_id);
        name = str_of(text);
    }
    add_op(ops, exists ? KEEPER_SET : KEEPER_CREATE, znode_config_path(ZNODE_ENTITY_BROKERS, name),
           znode_config_json(o));
}

void store_note_config_change(struct store_ops *ops, enum znode_entity entity, struct str name)
{
    char *what = znode_config_entity(entity, name);

    add_op(ops, KEEPER_CREATE, xstrdup(ZNODE_CONFIG_CHANGE_PREFIX), znode_config_change_json(what));
    ops->v[ops->n - 1].is_sequential = true;
    free(what);
}

void store_remove_config_note(struct store_ops *ops, const char *child)
{
    add_op(ops, KEEPER_DELETE, xasprintf("%s/%s", ZNODE_CONFIG_CHANGES, child), NULL);
}

void store_note_dir_failure(struct store_ops *ops, int32_t broker_id)
{
    add_op(ops, KEEPER_CREATE, xstrdup(ZNODE_LOG_DIR_EVENT_PREFIX),
           znode_log_dir_event_json(broker_id));
    ops->v[ops->n - 1].is_sequential = true;
}

void store_remove_dir_event(struct store_ops *ops, const char *child)
{
    add_op(ops, KEEPER_DELETE, xasprintf("%s/%s", ZNODE_LOG_DIR_EVENTS, child), NULL);
}

void store_mark_deletion(struct store_ops *ops, struct str name)
{
    add_op(ops, KEEPER_CREATE, znode_delete_topic_path(name), NULL);
}

void store_drop_topic(struct store_ops *ops, const struct metadata_topic *topic)
{
    for (int32_t i = 0; i < topic->partition_count; i++) {
        add_op(ops, KEEPER_DELETE, znode_state_path(topic->name, i), NULL);
        add_op(ops, KEEPER_DELETE, znode_partition_path(topic->name, i), NULL);
    }
    add_op(ops, KEEPER_DELETE, znode_partitions_path(topic->name), NULL);
    add_op(ops, KEEPER_DELETE, znode_topic_path(topic->name), NULL);
    add_op(ops, KEEPER_DELETE, znode_config_path(ZNODE_ENTITY_TOPICS, topic->name), NULL);
}

void store_remove_topic(struct store_ops *ops, const struct metadata_topic *topic)
{
    store_drop_topic(ops, topic);
    add_op(ops, KEEPER_DELETE, znode_delete_topic_path(topic->name), NULL);
}

void store_lay_out(struct store_ops *ops, struct str cluster_id)
{
    for (int i = 0; i < znode_persistent_path_count; i++)
        add_op(ops, KEEPER_CREATE, xstrdup(znode_persistent_paths[i]), NULL);
    add_op(ops, KEEPER_CREATE, xstrdup("/cluster"), NULL);
    add_op(ops, KEEPER_CREATE, xstrdup(ZNODE_CLUSTER_ID), znode_cluster_id_json(cluster_id));
}

/* ---- committing ------------------------------------------------------------------------- */

static void commit_end(struct store_ops *ops, enum err err)
{
    ops->done(ops->control, ops->ctx, err);
    keeper_call_release(&ops->call);
    store_ops_free(ops);
}

static void committed(struct keeper_call *call)
{
    struct store_ops *ops = CONTAINER_OF(call, struct store_ops, call);

    if (call->err)
        trace_error("store.commit_failed", "error=%s path=%s", err_name(call->err),
                    call->failed_op >= 0 ? ops->v[call->failed_op].path : "?");
    commit_end(ops, call->err);
}

static void nothing_to_commit(struct io_msg *msg)
{
    commit_end(CONTAINER_OF(msg, struct store_ops, msg), ERR_NONE);
}

void store_commit(struct control *c, struct store_ops *ops,
                  void (*done)(struct control *c, void *ctx, enum err err), void *ctx)
{
    ops->control = c;
    ops->done = done;
    ops->ctx = ctx;
    if (ops->n == 0) {
        ops->msg.fn = nothing_to_commit;
        io_post(c->loop, &ops->msg);
        return;
    }
    ops->call.done = committed;
    keeper_multi(c->keeper, ops->v, ops->n, &ops->call);
}

/* ---- producer ids ----------------------------------------------------------------------- */

#define PRODUCER_ID_BLOCK 1000

struct id_block {
    struct control *control;
    struct keeper_call call;
    struct keeper_op op;
    struct znode_producer_ids ids;
    char *text;
    void (*done)(struct control *c, void *ctx, enum err err, int64_t first, int64_t end);
    void *ctx;
};

static void block_end(struct id_block *b, enum err err)
{
    if (err)
        trace_error("store.producer_ids_failed", "error=%s", err_name(err));
    b->done(b->control, b->ctx, err, b->ids.first, b->ids.last + 1);
    keeper_call_release(&b->call);
    free(b->text);
    free(b);
}

static void block_taken(struct keeper_call *call)
{
    block_end(CONTAINER_OF(call, struct id_block, call), call->err);
}

static void block_read(struct keeper_call *call)
{
    struct id_block *b = CONTAINER_OF(call, struct id_block, call);
    enum err err = call->err;
    int32_t version = call->stat.version;

    if (!err)
        err = znode_producer_ids_parse(call->data, &b->ids);
    if (err) {
        block_end(b, err);
        return;
    }
    b->ids.broker_id = b->control->broker->node_id;
    /* An adopted directory knows ids that this keeper never gave. */
    b->ids.first = MAX(b->ids.last + 1, b->control->producer_id_least);
    b->ids.last = b->ids.first + PRODUCER_ID_BLOCK - 1;
    b->text = znode_producer_ids_json(&b->ids);
    keeper_call_release(call);
    b->op = (struct keeper_op){
        .kind = KEEPER_SET,
        .path = ZNODE_PRODUCER_ID_BLOCK,
        .data = {.p = (const uint8_t *)b->text, .n = (int32_t)strlen(b->text)},
        .version = version,
    };
    call->done = block_taken;
    if (PLANTED(REPEAT_PRODUCER_IDS))
        b->op.kind = KEEPER_CHECK;
    keeper_multi(b->control->keeper, &b->op, 1, call);
}

void store_take_producer_ids(struct control *c,
                             void (*done)(struct control *c, void *ctx, enum err err, int64_t first,
                                          int64_t end),
                             void *ctx)
{
    struct id_block *b = xcalloc(1, sizeof(*b));

    b->control = c;
    b->done = done;
    b->ctx = ctx;
    b->call.done = block_read;
    keeper_get(c->keeper, ZNODE_PRODUCER_ID_BLOCK, NULL, &b->call);
}
