/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations that another broker has changed. Whoever changes one leaves a sequential node that
 * names it (Apache Kafka's /config/changes); every broker watches them, reads what is named and
 * publishes it, as a task. A repetition does no harm, so the notes that are there at a start are
 * read too: the change may be younger than what was loaded.
 */
#include "broker/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "keeper/znodes.h"

#define NOTES_KEPT 500 /* behind them the controller removes the oldest */
#define TOPICS_PREFIX "topics/"
#define BROKERS_PREFIX "brokers/"

/* One note, and then what it names. */
struct config_note {
    struct task task;
    struct cluster *cluster;
    char *path;   /* of the note, then of the configuration */
    char *entity; /* as the note names it */
    struct keeper_call call;
    struct config_overrides overrides;
};

static void note_free(struct config_note *n)
{
    config_overrides_fini(&n->overrides);
    free(n->path);
    free(n->entity);
    free(n);
}

/* ---- in force --------------------------------------------------------------------------- */

static void note_published(struct control *c, void *ctx)
{
    note_free(ctx);
    control_task_end(c);
}

static bool skip_prefix(const char **text, const char *prefix)
{
    size_t n = strlen(prefix);
    bool is_there = strncmp(*text, prefix, n) == 0;

    *text += is_there ? n : 0;
    return is_there;
}

/* NULL: this broker's own does not change. */
static struct config *changed_config(const struct control *c, int32_t broker_id,
                                     const struct config_overrides *o)
{
    struct config *next;

    if (broker_id != METADATA_ALL_BROKERS && broker_id != c->broker->node_id)
        return NULL;
    next = config_copy(c->config);
    config_set_dynamic(next,
                       broker_id == METADATA_ALL_BROKERS ? CONFIG_SOURCE_DYNAMIC_DEFAULT
                                                         : CONFIG_SOURCE_DYNAMIC_BROKER,
                       o);
    return next;
}

static void note_run(struct control *c, struct task *t)
{
    struct config_note *n = CONTAINER_OF(t, struct config_note, task);
    struct metadata_delta delta = {0};
    struct config *config = NULL;
    const char *name = n->entity;
    int64_t id = METADATA_ALL_BROKERS;

    if (skip_prefix(&name, TOPICS_PREFIX)) {
        metadata_delta_set_topic_configs(&delta, str_of(name), &n->overrides);
    } else if (skip_prefix(&name, BROKERS_PREFIX) &&
               (strcmp(name, "<default>") == 0 || !str_to_i64(str_of(name), &id))) {
        metadata_delta_set_broker_configs(&delta, (int32_t)id, &n->overrides);
        config = changed_config(c, (int32_t)id, &n->overrides);
    }
    trace_info("config.changed_elsewhere", "entity=%s", n->entity);
    control_publish(c, &delta, config, note_published, n);
}

/* ---- reading ---------------------------------------------------------------------------- */

static void entity_read(struct keeper_call *call)
{
    struct config_note *n = CONTAINER_OF(call, struct config_note, call);
    enum err err = call->err;

    if (!err)
        err = znode_config_parse(call->data, &n->overrides);
    keeper_call_release(call);
    if (err) { /* It has gone meanwhile. */
        note_free(n);
        return;
    }
    control_enqueue(n->cluster->control, &n->task, note_run);
}

static void note_read(struct keeper_call *call)
{
    struct config_note *n = CONTAINER_OF(call, struct config_note, call);
    struct str entity;
    struct arena arena;
    enum err err = call->err;

    arena_init(&arena, 0);
    if (!err)
        err = znode_config_change_parse(call->data, &arena, &entity);
    if (!err)
        n->entity = str_dup(entity);
    arena_fini(&arena);
    keeper_call_release(call);
    if (err) {
        note_free(n);
        return;
    }
    free(n->path);
    n->path = xasprintf("/config/%s", n->entity);
    n->call.done = entity_read;
    keeper_get(n->cluster->control->keeper, n->path, NULL, &n->call);
}

static void read_note(struct cluster *k, const char *child)
{
    struct config_note *n = xcalloc(1, sizeof(*n));

    n->cluster = k;
    n->path = xasprintf("%s/%s", ZNODE_CONFIG_CHANGES, child);
    n->call.done = note_read;
    keeper_get(k->control->keeper, n->path, NULL, &n->call);
}

static void old_removed(struct control *c, void *ctx, enum err err)
{
    (void)c;
    (void)ctx;
    (void)err; /* Next time. */
}

static void remove_old(struct cluster *k, const struct keeper_call *call)
{
    struct store_ops *ops;

    if (!k->rule || call->children_count <= NOTES_KEPT)
        return;
    ops = store_ops_new();
    for (int i = 0; i < call->children_count - NOTES_KEPT; i++)
        store_remove_config_note(ops, call->children[i]);
    store_commit(k->control, ops, old_removed, NULL);
}

static void notes_changed(struct keeper_watch *w, enum keeper_event_kind kind)
{
    struct cluster *k = CONTAINER_OF(w, struct cluster, notes_watch);

    (void)kind;
    config_changes_watch(k);
}

static void notes_listed(struct keeper_call *call)
{
    struct cluster *k = CONTAINER_OF(call, struct cluster, notes_call);

    k->is_listing = false;
    for (int i = 0; !call->err && i < call->children_count; i++) {
        int32_t sequence;

        if (znode_sequence(str_of(call->children[i]), &sequence) || sequence <= k->last_note)
            continue;
        k->last_note = sequence;
        read_note(k, call->children[i]);
    }
    if (!call->err)
        remove_old(k, call);
    keeper_call_release(call);
    if (k->must_list)
        config_changes_watch(k);
}

void config_changes_watch(struct cluster *k)
{
    k->must_list = k->is_listing;
    if (k->is_listing || k->control->stopping)
        return;
    k->is_listing = true;
    keeper_unwatch(k->control->keeper, &k->notes_watch);
    k->notes_watch.fired = notes_changed;
    k->notes_call.done = notes_listed;
    keeper_children(k->control->keeper, ZNODE_CONFIG_CHANGES, &k->notes_watch, &k->notes_call);
}
