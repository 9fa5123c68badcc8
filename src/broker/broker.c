/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker's beginning and end: what may block happens here, before the loops run and after they
 * have ended. Whatever can be wrong with the surroundings (a directory that is in use or cannot be
 * written, a port that is taken) is found before anything is served, and said in one line.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/control.h"

/* ---- log directories -------------------------------------------------------------------- */

static struct str dirs_setting(const struct config *c)
{
    struct str dirs = config_str(c, CONFIG_LOG_DIRS);

    return dirs.n > 0 ? dirs : config_str(c, CONFIG_LOG_DIR);
}

/* -1 unless somebody chose one: then the directories' own counts. */
static int32_t node_id_setting(const struct config *c)
{
    return config_source_of(c, CONFIG_NODE_ID) == CONFIG_SOURCE_DEFAULT
               ? -1
               : config_i32(c, CONFIG_NODE_ID);
}

static enum err open_dir(struct broker *b, struct str path, struct log_dir_identity *identity,
                         char **message)
{
    char *name = str_dup(path);
    struct log_dir_found *found;
    enum err err;

    b->dirs = xreallocarray(b->dirs, (size_t)b->dir_count + 1, sizeof(*b->dirs));
    b->found = xreallocarray(b->found, (size_t)b->dir_count + 1, sizeof(*b->found));
    found = &b->found[b->dir_count];
    err = log_dir_open(b->io, name, identity, &b->dirs[b->dir_count], found, message);
    free(name);
    if (err)
        return err;
    b->dir_count++;
    if (identity->node_id < 0)
        identity->node_id = found->node_id;
    if (str_is_null(identity->cluster_id))
        identity->cluster_id = str_of(found->cluster_id);
    /* Directories that are new belong to the same broker as the first one. */
    identity->node_id_new = identity->node_id;
    identity->cluster_id_new = identity->cluster_id;
    return ERR_NONE;
}

static enum err check_descriptors(struct broker *b, char **message)
{
    int64_t partitions = 0;

    for (int i = 0; i < b->dir_count; i++)
        partitions += (int64_t)b->found[i].n;
    *message = descriptors_lack(b, partitions);
    return *message ? ERR_LIMIT : ERR_NONE;
}

static void new_cluster_id(struct broker *b)
{
    uint64_t r[2];

    io_random(b->io, r, sizeof(r));
    uuid_to_text(uuid_from_random(r[0], r[1]), b->cluster_id_new);
}

static enum err open_dirs(struct broker *b, const struct config *c, char **message)
{
    struct log_dir_identity identity = {.cluster_id = str_null(), .node_id = node_id_setting(c)};
    struct str rest = dirs_setting(c);
    struct str path;

    new_cluster_id(b);
    identity.cluster_id_new = str_of(b->cluster_id_new);
    identity.node_id_new = config_i32(c, CONFIG_NODE_ID);
    while (config_list_next(&rest, &path)) {
        enum err err = open_dir(b, path, &identity, message);

        if (err)
            return err;
    }
    b->node_id = identity.node_id;
    b->cluster_id = identity.cluster_id;
    return ERR_NONE;
}

/* ---- listeners -------------------------------------------------------------------------- */

static enum err bind_address(struct broker *b, struct listener *l, const char *host, char **message)
{
    enum err err = io_listen(b->io, host, l->port, l->backlog, &l->io[l->io_count]);

    if (!err) {
        l->port = io_listener_port(l->io[l->io_count++]);
        return ERR_NONE;
    }
    if (err == ERR_ADDR_IN_USE)
        *message = xasprintf("cannot listen on %s:%u: the port is in use; stop the other program "
                             "or choose another port in 'listeners'",
                             host, l->port);
    else
        *message = xasprintf("cannot listen on %s:%u: %s", host, l->port, err_text(err));
    return err;
}

/* "localhost" is both loopback addresses; without IPv6 the first one will do. */
static enum err bind_listener(struct broker *b, struct listener *l, char **message)
{
    enum err err;
    char *ignored = NULL;

    if (!*l->host) {
        /* Both families on one socket where there is IPv6. */
        err = bind_address(b, l, "::", &ignored);
        if (!err || err == ERR_ADDR_IN_USE) {
            *message = ignored;
            return err;
        }
        free(ignored);
        return bind_address(b, l, "0.0.0.0", message);
    }
    if (strcmp(l->host, "localhost") != 0)
        return bind_address(b, l, l->host, message);
    err = bind_address(b, l, "127.0.0.1", message);
    if (err)
        return err;
    err = bind_address(b, l, "::1", &ignored);
    if (err == ERR_ADDR_IN_USE) {
        *message = ignored;
        return err;
    }
    free(ignored);
    return ERR_NONE;
}

static void advertise(struct broker *b, const struct config *c, struct arena *arena)
{
    struct config_listener *v;
    int32_t n = config_listeners(c, CONFIG_ADVERTISED_LISTENERS, arena, &v);

    for (int32_t i = 0; i < n; i++)
        for (int k = 0; k < b->listener_count; k++)
            if (str_eq_c(v[i].name, b->listeners[k].name)) {
                b->listeners[k].advertised_host = str_dup(v[i].host);
                b->listeners[k].advertised_port = (uint16_t)v[i].port;
            }
}

static enum err open_listeners(struct broker *b, const struct config *c, char **message)
{
    struct arena arena;
    struct config_listener *v;
    enum err err = ERR_NONE;
    int32_t n;

    arena_init(&arena, 0);
    n = config_listeners(c, CONFIG_LISTENERS, &arena, &v);
    for (int32_t i = 0; i < n && !err; i++) {
        struct listener *l;

        if (b->listener_count == LISTENERS_MAX) {
            *message = xasprintf("'listeners' has more than %d entries", LISTENERS_MAX);
            err = ERR_LIMIT;
            break;
        }
        l = &b->listeners[b->listener_count++];
        l->broker = b;
        l->name = str_dup(v[i].name);
        l->host = str_dup(v[i].host);
        l->port = (uint16_t)v[i].port;
        l->backlog = config_i32(c, CONFIG_SOCKET_LISTEN_BACKLOG_SIZE);
        err = bind_listener(b, l, message);
    }
    advertise(b, c, &arena);
    arena_fini(&arena);
    return err;
}

/* ---- loops ------------------------------------------------------------------------------ */

static void control_begins(void *ctx)
{
    struct broker *b = ctx;

    control_start(b->control);
}

static void shard_begins(void *ctx)
{
    struct shard *s = ctx;
    int32_t slots = config_i32(s->config, CONFIG_MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS);

    s->fetch_cache = fetch_cache_new(MAX(slots / s->broker->shard_count, 1));
    throttle_init(s);
}

static void make_loops(struct broker *b, struct config *config)
{
    b->shard_count = config_i32(config, CONFIG_NUM_SHARDS);
    b->shards = xcalloc((size_t)b->shard_count, sizeof(*b->shards));
    b->control->loop = io_loop_new(b->io, "control", control_begins, b);
    for (int i = 0; i < b->shard_count; i++) {
        struct shard *s = &b->shards[i];
        char name[24];

        snprintf(name, sizeof(name), "shard-%d", i);
        shard_init(s, b, i);
        s->config = config;
        s->image = metadata_image_new();
        s->loop = io_loop_new(b->io, name, shard_begins, s);
    }
}

/* ---- life ------------------------------------------------------------------------------- */

enum err broker_open(const struct broker_args *args, struct broker **out, char **message)
{
    struct broker *b = xcalloc(1, sizeof(*b));
    enum err err;

    *out = NULL;
    *message = NULL;
    b->io = args->io;
    b->args = *args;
    b->start_ns = io_mono_ns(b->io);
    b->budget.limit = config_i64(args->config, CONFIG_QUEUED_MAX_REQUEST_BYTES);
    err = args->import.p ? import_parse(args->import, args->import_file, &b->import, message)
                         : ERR_NONE;
    if (!err)
        err = open_dirs(b, args->config, message);
    if (!err)
        err = check_descriptors(b, message);
    b->control = control_new(b, args->config);
    make_loops(b, args->config);
    if (!err)
        err = keeper_session_open(b, args->config, message);
    if (!err)
        err = open_listeners(b, args->config, message);
    if (err) {
        broker_close(b);
        return err;
    }
    *out = b;
    return ERR_NONE;
}

void broker_stop(struct broker *b)
{
    control_stop(b->control, ERR_NONE, "asked to stop");
}

struct io_loop *broker_control_loop(struct broker *b)
{
    return b->control->loop;
}

void broker_close_listeners(struct broker *b)
{
    for (int i = 0; i < b->listener_count; i++) {
        struct listener *l = &b->listeners[i];

        while (l->io_count > 0)
            io_listener_close(l->io[--l->io_count]);
    }
}

static void free_listener(struct listener *l)
{
    free(l->name);
    free(l->host);
    free(l->advertised_host);
}

void broker_close(struct broker *b)
{
    for (int i = 0; i < b->shard_count; i++)
        shard_fini(&b->shards[i]);
    broker_close_listeners(b);
    for (int i = 0; i < b->listener_count; i++)
        free_listener(&b->listeners[i]);
    keeper_session_free(b);
    for (int i = 0; i < b->dir_count; i++) {
        log_dir_close(b->dirs[i]);
        log_dir_found_free(&b->found[i]);
    }
    control_free(b->control);
    import_fini(&b->import);
    io_budget_trim(&b->budget);
    free(b->shards);
    free(b->dirs);
    free(b->found);
    free(b);
}
