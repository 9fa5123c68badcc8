/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log directory that fails while its broker goes on with others (KIP-112). The broker leaves a
 * sequential node that names it, as Apache Kafka's do, and refuses to lead what is in there as
 * often as it is told to. The controller watches these nodes: it tells the broker everything once
 * more, elects others for what that one refuses (rule.c), and removes the node. Whoever takes over
 * as the controller tells everybody everything anyway.
 *
 * A replica there neither appends nor fetches any more: its leader takes it out of the in-sync set
 * when its time is over.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "broker/cluster.h"
#include "keeper/znodes.h"

bool dir_failures_have(const struct cluster *k, struct uuid topic_id, int32_t index)
{
    const struct partition *p = control_find_partition(k->control, topic_id, index);

    return p && log_dir_has_failed(p->broker->dirs[p->dir]);
}

/* ---- the broker ------------------------------------------------------------------------- */

static void noted(struct control *c, void *ctx, enum err err)
{
    (void)ctx;
    /* Whoever registers again is told everything again, and refuses. */
    if (err && err != ERR_CANCELLED && !c->stopping)
        trace_error("broker.dir_failure_not_told",
                    "error=%s note=\"what this broker leads in a log directory that has failed "
                    "stays without a leader until it, or the controller, starts again\"",
                    err_name(err));
}

void dir_failures_note(struct cluster *k)
{
    struct control *c = k->control;
    struct store_ops *ops;
    int failed = 0;

    for (int i = 0; i < c->broker->dir_count; i++)
        failed += log_dir_has_failed(c->broker->dirs[i]);
    if (failed == k->dirs_failed)
        return;
    k->dirs_failed = failed;
    ops = store_ops_new();
    store_note_dir_failure(ops, c->broker->node_id);
    store_commit(c, ops, noted, NULL);
}

/* ---- the controller --------------------------------------------------------------------- */

struct dir_event {
    struct cluster *cluster;
    char *child;
    char *path;
    struct keeper_call call;
};

static void event_removed(struct control *c, void *ctx, enum err err)
{
    (void)c;
    (void)ctx;
    (void)err; /* Another controller has removed it, or the next one will. */
}

static void take_event(struct cluster *k, int32_t broker_id, const char *child)
{
    struct store_ops *ops = store_ops_new();

    trace_warn("controller.dir_failed", "broker=%d", broker_id);
    announce_again(k, broker_id);
    store_remove_dir_event(ops, child);
    store_commit(k->control, ops, event_removed, NULL);
}

static void event_read(struct keeper_call *call)
{
    struct dir_event *e = CONTAINER_OF(call, struct dir_event, call);
    int32_t broker_id;
    enum err err = call->err;

    if (!err)
        err = znode_log_dir_event_parse(call->data, &broker_id);
    keeper_call_release(call);
    if (!err && control_decides(e->cluster->control))
        take_event(e->cluster, broker_id, e->child);
    free(e->path);
    free(e->child);
    free(e);
}

static void read_event(struct cluster *k, const char *child)
{
    struct dir_event *e = xcalloc(1, sizeof(*e));

    e->cluster = k;
    e->child = xstrdup(child);
    e->path = xasprintf("%s/%s", ZNODE_LOG_DIR_EVENTS, child);
    e->call.done = event_read;
    keeper_get(k->control->keeper, e->path, NULL, &e->call);
}

static void events_changed(struct keeper_watch *w, enum keeper_event_kind kind)
{
    (void)kind;
    dir_failures_watch(CONTAINER_OF(w, struct cluster, dirs_watch));
}

static void events_listed(struct keeper_call *call)
{
    struct cluster *k = CONTAINER_OF(call, struct cluster, dirs_call);

    k->is_listing_dirs = false;
    for (int i = 0; !call->err && i < call->children_count; i++)
        read_event(k, call->children[i]);
    keeper_call_release(call);
    if (k->must_list_dirs)
        dir_failures_watch(k);
}

void dir_failures_watch(struct cluster *k)
{
    k->must_list_dirs = k->is_listing_dirs;
    if (k->is_listing_dirs || !control_decides(k->control) || k->control->stopping)
        return;
    k->is_listing_dirs = true;
    keeper_unwatch(k->control->keeper, &k->dirs_watch);
    k->dirs_watch.fired = events_changed;
    k->dirs_call.done = events_listed;
    keeper_children(k->control->keeper, ZNODE_LOG_DIR_EVENTS, &k->dirs_watch, &k->dirs_call);
}
