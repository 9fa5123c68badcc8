/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeleteTopics: a mark in the keeper, then nobody sees the topic any more, then its directories go
 * and with them the nodes. After the mark there is no way back: a broker that starts with a mark
 * carries the deletion out.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/planted.h"
#include "broker/control.h"

struct deletion {
    struct metadata_topic *topic; /* a reference; NULL: nothing to delete */
    struct str name;
    struct uuid id;
    enum err err;
};

struct deletions {
    struct task task;
    struct control *control;
    struct request *request; /* NULL: one that a start found unfinished */
    int pending;
    int32_t count;
    struct deletion items[];
};

static void deletions_end(struct deletions *ds)
{
    struct control *c = ds->control;
    struct request *r = ds->request;

    if (r) {
        struct delete_topics_response *out = r->out;

        out->responses.n = ds->count;
        out->responses.v = request_array(r, &delete_topics_response_topic_schema, ds->count);
        for (int32_t i = 0; i < ds->count; i++) {
            struct delete_topics_response_topic *to = &out->responses.v[i];

            to->name = arena_str(&r->arena, ds->items[i].name);
            to->topic_id = ds->items[i].id;
            to->error_code = err_wire(ds->items[i].err);
            if (ds->items[i].err)
                to->error_message = str_of(err_text(ds->items[i].err));
        }
        request_return(r);
    }
    for (int32_t i = 0; i < ds->count; i++)
        metadata_topic_put(ds->items[i].topic);
    free(ds);
    control_task_end(c);
}

static void nodes_removed(struct control *c, void *ctx, enum err err)
{
    /* The mark is still there then: the next start tries again. */
    if (err) {
        trace_error("topic.delete_incomplete", "error=%s", err_name(err));
        control_commit_failed(c);
    }
    deletions_end(ctx);
}

static void remove_nodes(struct deletions *ds)
{
    struct store_ops *ops = store_ops_new();

    control_fence(ds->control, ops);
    for (int32_t i = 0; i < ds->count; i++)
        if (ds->items[i].topic && !PLANTED(DELETE_NOT_STORED))
            store_remove_topic(ops, ds->items[i].topic);
    store_commit(ds->control, ops, nodes_removed, ds);
}

static void partition_deleted(struct control *c, void *ctx, enum err err)
{
    struct deletions *ds = ctx;

    (void)c;
    if (err)
        trace_error("partition.delete_failed", "error=%s", err_name(err));
    if (--ds->pending == 0)
        remove_nodes(ds);
}

static void unpublished(struct control *c, void *ctx)
{
    struct deletions *ds = ctx;

    control_announce(c);
    ds->pending = 1;
    for (int32_t i = 0; i < ds->count; i++) {
        const struct metadata_topic *topic = ds->items[i].topic;

        for (int32_t p = 0; topic && p < topic->partition_count; p++) {
            struct partition *partition = control_find_partition(c, topic->id, p);

            if (!partition)
                continue;
            ds->pending++;
            control_remove_partition(c, partition, true, partition_deleted, ds);
        }
    }
    if (--ds->pending == 0)
        remove_nodes(ds);
}

static void marked(struct control *c, void *ctx, enum err err)
{
    struct deletions *ds = ctx;
    struct metadata_delta delta = {0};

    for (int32_t i = 0; i < ds->count; i++) {
        struct deletion *d = &ds->items[i];

        if (!d->topic)
            continue;
        if (err) {
            d->err = control_commit_error(c);
            metadata_topic_put(d->topic);
            d->topic = NULL;
            continue;
        }
        trace_info("topic.deleted", "topic=%.*s", STR_ARG(d->topic->name));
        metadata_delta_remove_topic(&delta, d->topic->name);
    }
    if (err) {
        control_commit_failed(c);
        deletions_end(ds);
    } else {
        control_publish(c, &delta, NULL, unpublished, ds);
    }
}

static void find_topic(struct deletions *ds, struct deletion *d)
{
    struct control *c = ds->control;
    bool by_name = !str_is_null(d->name);
    struct metadata_topic *topic = by_name ? metadata_find_topic(c->image, d->name)
                                           : metadata_find_topic_id(c->image, d->id);

    if (d->err)
        return;
    if (by_name != uuid_is_zero(d->id)) /* both, or neither */
        d->err = ERR_INVALID_REQUEST;
    else if (!topic)
        d->err = by_name ? ERR_UNKNOWN_TOPIC_OR_PARTITION : ERR_UNKNOWN_TOPIC_ID;
    if (d->err)
        return;
    d->topic = metadata_topic_get(topic);
    d->name = topic->name;
    d->id = topic->id;
}

static void refuse(struct deletion *d)
{
    metadata_topic_put(d->topic);
    d->topic = NULL;
    d->err = ERR_INVALID_REQUEST;
}

/* A topic that is named twice, or by its name and its id, is not deleted. */
static void refuse_repeated(struct deletions *ds, int32_t at)
{
    struct metadata_topic *topic = ds->items[at].topic;
    bool again = false;

    for (int32_t i = at + 1; i < ds->count && topic; i++)
        if (ds->items[i].topic == topic) {
            refuse(&ds->items[i]);
            again = true;
        }
    if (again)
        refuse(&ds->items[at]);
}

static void refuse_all(struct deletions *ds, enum err err)
{
    for (int32_t i = 0; i < ds->count; i++)
        ds->items[i].err = err;
    deletions_end(ds);
}

static void deletions_run(struct control *c, struct task *t)
{
    struct deletions *ds = CONTAINER_OF(t, struct deletions, task);
    struct store_ops *ops = store_ops_new();
    bool any = false;

    if (!control_decides(c)) {
        store_ops_free(ops);
        refuse_all(ds, ERR_NOT_CONTROLLER);
        return;
    }
    control_fence(c, ops);
    for (int32_t i = 0; i < ds->count; i++)
        find_topic(ds, &ds->items[i]);
    for (int32_t i = 0; i < ds->count; i++) {
        refuse_repeated(ds, i);
        any = any || ds->items[i].topic;
        if (ds->items[i].topic && !ds->items[i].topic->is_deleting && !PLANTED(DELETE_NOT_STORED))
            store_mark_deletion(ops, ds->items[i].topic->name);
    }
    if (ops->n > control_fence_ops(c)) {
        store_commit(c, ops, marked, ds);
        return;
    }
    store_ops_free(ops);
    if (any)
        marked(c, ds, ERR_NONE);
    else
        deletions_end(ds);
}

static struct deletions *deletions_new(struct control *c, struct request *r, int32_t count)
{
    struct deletions *ds = xcalloc(1, sizeof(*ds) + (size_t)count * sizeof(ds->items[0]));

    ds->control = c;
    ds->request = r;
    ds->count = count;
    return ds;
}

void topics_resume_deletions(struct control *c)
{
    for (int32_t i = 0; i < c->image->topic_count; i++) {
        struct deletions *ds;

        if (!c->image->topics[i]->is_deleting)
            continue;
        ds = deletions_new(c, NULL, 1);
        ds->items[0].name = str_null();
        ds->items[0].id = c->image->topics[i]->id;
        control_enqueue(c, &ds->task, deletions_run);
    }
}

static enum err deletion_disabled(const struct control *c, const struct request *r)
{
    if (config_bool(c->config, CONFIG_DELETE_TOPIC_ENABLE))
        return ERR_NONE;
    return r->header.api_version < 3 ? ERR_INVALID_REQUEST : ERR_TOPIC_DELETION_DISABLED;
}

static void delete_topics(struct control *c, struct request *r)
{
    const struct delete_topics_request *in = r->in;
    bool has_ids = r->header.api_version >= 6;
    int32_t n = MAX(has_ids ? in->topics.n : in->topic_names.n, 0);
    struct deletions *ds = deletions_new(c, r, n);

    for (int32_t i = 0; i < n; i++) {
        ds->items[i].name = has_ids ? in->topics.v[i].name : in->topic_names.v[i];
        ds->items[i].id = has_ids ? in->topics.v[i].topic_id : uuid_zero();
        ds->items[i].err = deletion_disabled(c, r);
    }
    control_enqueue(c, &ds->task, deletions_run);
}

void handle_delete_topics(struct request *r)
{
    request_to_control(r, delete_topics, request_reply);
}
