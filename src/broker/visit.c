/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Visits: what ListOffsets, DeleteRecords and their like have in common. A request names many
 * partitions, each belongs to some shard, and the answer is complete when all owners have said
 * their part.
 */
#include "broker/broker_int.h"

struct visit *visit_new(struct request *r, int count, void (*at_owner)(struct visit_item *item),
                        void (*done)(struct request *r, struct visit *v))
{
    struct visit *v = request_alloc(r, sizeof(*v) + (size_t)count * sizeof(v->items[0]));

    v->request = r;
    v->at_owner = at_owner;
    v->done = done;
    v->count = count;
    for (int i = 0; i < count; i++)
        v->items[i].visit = v;
    return v;
}

void visit_find(struct visit_item *item, struct str topic, int32_t index)
{
    struct shard *s = item->visit->request->shard;
    struct partition *p = slot_partition(shard_find_topic(s, topic), index);

    if (p)
        item->partition = partition_ref(p);
    else
        item->err = shard_absent_error(metadata_find_topic(s->image, topic), index);
}

static void item_home(struct io_msg *msg)
{
    struct visit_item *item = CONTAINER_OF(msg, struct visit_item, msg);
    struct visit *v = item->visit;

    partition_unref(item->partition);
    item->partition = NULL;
    if (--v->pending == 0)
        v->done(v->request, v);
}

static void item_at_owner(struct io_msg *msg)
{
    struct visit_item *item = CONTAINER_OF(msg, struct visit_item, msg);
    const struct partition *p = item->partition;

    if (p && (p->refusing || !p->log))
        item->err = ERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (item->err)
        visit_item_done(item, item->err);
    else
        item->visit->at_owner(item);
}

void visit_item_done(struct visit_item *item, enum err err)
{
    item->err = err;
    item->msg.fn = item_home;
    io_post(item->visit->request->shard->loop, &item->msg);
}

void visit_start(struct visit *v)
{
    struct shard *home = v->request->shard;

    v->pending = v->count;
    if (v->count == 0) {
        v->done(v->request, v);
        return;
    }
    for (int i = 0; i < v->count; i++) {
        struct visit_item *item = &v->items[i];
        struct shard *owner = item->partition ? item->partition->owner : home;

        item->msg.fn = item_at_owner;
        io_post(owner->loop, &item->msg);
    }
}
