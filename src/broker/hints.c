/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who leads what this broker was wrongly asked for (KIP-951). A client that is told so turns there
 * at once, and does not wait for its backoff and an answer with metadata first.
 */
#include "broker/broker_int.h"

static void add_broker(struct hints *h, const struct metadata_broker *b)
{
    size_t most = (size_t)h->request->shard->image->broker_count;

    if (!h->brokers)
        h->brokers = request_alloc(h->request, most * sizeof(struct metadata_broker *));
    for (int32_t i = 0; i < h->count; i++)
        if (h->brokers[i] == b)
            return;
    h->brokers[h->count++] = b;
}

bool hints_find(struct hints *h, struct str name, struct uuid topic_id, int32_t index,
                int32_t *leader, int32_t *leader_epoch)
{
    struct request *r = h->request;
    const struct metadata_image *image = r->shard->image;
    const struct metadata_topic *topic = metadata_find_topic_either(image, name, topic_id);
    const struct metadata_partition *p = topic ? metadata_find_partition(topic, index) : NULL;
    const struct metadata_broker *b = p ? metadata_find_broker(image, p->leader) : NULL;
    struct str host;
    int32_t port;

    if (!b || b->is_fenced || b->id == r->shard->broker->node_id ||
        !request_broker_address(r, b, &host, &port))
        return false;
    add_broker(h, b);
    *leader = p->leader;
    *leader_epoch = p->leader_epoch;
    return true;
}
