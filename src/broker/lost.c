/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replica whose disk was replaced must not lead: it is in the in-sync set of what it has lost,
 * and everybody would cut their logs to its empty one. The broker knows since which registration it
 * has these directories (notes.c). A partition that is older, and has no log here, was lost with
 * another one. While it counts as in sync no log is made for it: if it is told to lead it refuses,
 * and the controller elects another one of the set, or nobody; if it is told to follow it does not,
 * and its leader takes it out of the set. Then it is a follower like any other that begins with
 * nothing.
 *
 * A log that is there and cannot be used (it could not be loaded, made or deleted) counts as lost
 * too, and none begins in its place as long as this process lives, in sync or not: beside it, in
 * another directory, an empty one would count for the full one, and the next start would find two.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "broker/cluster.h"
#include "keeper/znodes.h"

struct lost_check {
    struct cluster *cluster;
    struct uuid topic_id;
    int32_t index;
    char *path;
    struct keeper_call call;
    void (*then)(void *ctx, bool is_lost);
    void *ctx;
};

static struct lost_replica *find(const struct cluster *k, struct uuid topic_id, int32_t index)
{
    for (int32_t i = 0; i < k->lost_count; i++)
        if (uuid_eq(k->lost[i].topic_id, topic_id) && k->lost[i].index == index)
            return &k->lost[i];
    return NULL;
}

bool lost_has(const struct cluster *k, struct uuid topic_id, int32_t index)
{
    return find(k, topic_id, index) && !control_find_partition(k->control, topic_id, index);
}

bool lost_is_there(const struct cluster *k, struct uuid topic_id, int32_t index)
{
    const struct lost_replica *r = find(k, topic_id, index);

    return r && r->is_there;
}

static struct lost_replica *add(struct cluster *k, struct uuid topic_id, int32_t index)
{
    struct lost_replica *r = find(k, topic_id, index);

    if (r)
        return r;
    k->lost = xreallocarray(k->lost, (size_t)k->lost_count + 1, sizeof(*k->lost));
    r = &k->lost[k->lost_count++];
    *r = (struct lost_replica){.topic_id = topic_id, .index = index};
    return r;
}

void lost_note(struct cluster *k, struct uuid topic_id, int32_t index)
{
    add(k, topic_id, index)->is_there = true;
}

static void checked(struct keeper_call *call)
{
    struct lost_check *q = CONTAINER_OF(call, struct lost_check, call);
    struct cluster *k = q->cluster;

    /* The session has ended: the next one knows. */
    if (call->err == ERR_CANCELLED && !k->control->stopping) {
        keeper_get(k->control->keeper, q->path, NULL, &q->call);
        return;
    }
    bool is_lost = call->err || call->stat.created_zxid < k->since;

    if (is_lost) {
        trace_error(
            "partition.lost",
            "state=%s note=\"its log was on a disk that is not there any more; somebody else "
            "has to lead, and it begins anew when it is out of the in-sync set; if nobody "
            "else is in sync, stop this broker before an unclean election\"",
            q->path);
        add(k, q->topic_id, q->index);
    }
    keeper_call_release(call);
    q->then(q->ctx, is_lost);
    free(q->path);
    free(q);
}

void lost_check(struct cluster *k, const struct metadata_topic *topic, int32_t index,
                void (*then)(void *ctx, bool is_lost), void *ctx)
{
    struct lost_check *q = xcalloc(1, sizeof(*q));

    q->cluster = k;
    q->topic_id = topic->id;
    q->index = index;
    q->path = znode_state_path(topic->name, index);
    q->then = then;
    q->ctx = ctx;
    q->call.done = checked;
    keeper_get(k->control->keeper, q->path, NULL, &q->call);
}
