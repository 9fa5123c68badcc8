/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper that this broker uses, and its session there. Alone: the tree in a file. In a cluster:
 * ZooKeeper, where a session may end while the broker lives; then it goes on serving what it has
 * been told, opens another session, and registers again as another life of itself (cluster.c). The
 * one before is closed meanwhile: calls that it still has complete with ERR_CANCELLED.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "broker/cluster.h"

#define KEEPER_FILE "strandline-keeper.db"

struct past_keeper {
    struct list link; /* broker->past_keepers */
    struct keeper *keeper;
};

static void keeper_changed(void *ctx, enum keeper_state state);

static const struct keeper_events events = {.state_changed = keeper_changed};

static enum err open_sqlite(struct broker *b, const struct config *c, char **message)
{
    struct str dir = config_str(c, CONFIG_METADATA_LOG_DIR);
    char *path = dir.n > 0 ? xasprintf("%.*s/%s", STR_ARG(dir), KEEPER_FILE)
                           : xasprintf("%s/%s", log_dir_path(b->dirs[0]), KEEPER_FILE);
    enum err err =
        keeper_sqlite_open(b->io, path, b->control->loop, &events, b, &b->keeper, message);

    free(path);
    return err;
}

static enum err open_zookeeper(struct broker *b, const struct config *c, char **message)
{
    char *connect = str_dup(config_str(c, CONFIG_ZOOKEEPER_CONNECT));
    struct keeper_zookeeper_args args = {
        .connect = connect,
        .session_timeout_ms = config_i32(c, CONFIG_ZOOKEEPER_SESSION_TIMEOUT_MS),
        .in_flight_max = config_i32(c, CONFIG_ZOOKEEPER_MAX_IN_FLIGHT_REQUESTS),
    };
    enum err err =
        keeper_zookeeper_open(b->io, &args, b->control->loop, &events, b, &b->keeper, message);

    free(connect);
    return err;
}

static enum err open_keeper(struct broker *b, const struct config *c, char **message)
{
    enum err err = ERR_NONE;

    b->keeper = NULL;
    if (!b->is_in_cluster)
        err = open_sqlite(b, c, message);
    else if (b->args.open_keeper)
        b->keeper = b->args.open_keeper(b->args.ctx, b->control->loop, &events, b);
    else
        err = open_zookeeper(b, c, message);
    b->control->keeper = b->keeper;
    return err;
}

enum err keeper_session_open(struct broker *b, const struct config *c, char **message)
{
    enum err err;

    list_init(&b->past_keepers);
    b->is_in_cluster = b->args.open_keeper || config_str(c, CONFIG_ZOOKEEPER_CONNECT).n > 0;
    err = open_keeper(b, c, message);
    if (!err && b->is_in_cluster) {
        b->control->cluster = cluster_new(b->control);
        err = notes_read(b->control->cluster, message);
    }
    return err;
}

/* ---- another one ------------------------------------------------------------------------- */

static void past_closed(void *ctx)
{
    struct past_keeper *past = ctx;

    list_remove(&past->link);
    free(past);
}

static void renew(struct broker *b)
{
    struct past_keeper *past = xcalloc(1, sizeof(*past));
    char *message = NULL;

    past->keeper = b->keeper;
    list_push_back(&b->past_keepers, &past->link);
    if (open_keeper(b, b->control->config, &message)) {
        trace_error("keeper.not_opened", "message=\"%s\"", message ? message : "");
        free(message);
        b->keeper = b->control->keeper = past->keeper;
        past_closed(past);
        control_stop(b->control, ERR_KAFKA_STORAGE_ERROR,
                     "its session with ZooKeeper has ended, and none could be begun");
        return;
    }
    if (b->control->is_serving) /* else it has not registered yet */
        cluster_session_ended(b->control->cluster, keeper_session_id(past->keeper));
    keeper_close(past->keeper, past_closed, past);
}

/* Without its store the broker cannot say what is true: it stops. */
static void keeper_changed(void *ctx, enum keeper_state state)
{
    struct broker *b = ctx;

    if (state == KEEPER_CLOSED) /* one of the past */
        return;
    if (b->control->cluster)
        b->control->cluster->is_connected = state == KEEPER_CONNECTED;
    if (b->control->cluster && state == KEEPER_CONNECTED)
        lease_connected(b->control->cluster);
    if (state == KEEPER_EXPIRED && !b->control->stopping)
        renew(b);
    else if (state == KEEPER_FAILED)
        control_stop(b->control, ERR_KAFKA_STORAGE_ERROR, "the metadata store has failed");
}

void keeper_session_free(struct broker *b)
{
    struct list *node;

    if (!b->keeper) /* it was never opened */
        return;
    keeper_free(b->keeper);
    while ((node = list_pop_front(&b->past_keepers))) {
        struct past_keeper *past = LIST_ENTRY(node, struct past_keeper, link);

        keeper_free(past->keeper);
        free(past);
    }
}
