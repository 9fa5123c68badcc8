/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topics that come into being because somebody asked for them (metadata of a topic that is not
 * there, the first consumer group): the controller makes them, so a broker that is not the
 * controller asks it to. Whoever asked is answered from the image then, and asks again if the topic
 * has not arrived there.
 */
#include "broker/cluster.h"

#include <stdlib.h>

#include "base/alloc.h"

#define FORWARD_MS 5000

struct forward {
    struct request *request;
    struct create_topics_request *question; /* in the arena of the request */
    struct client_call call;
};

static void answered(struct client_call *call)
{
    struct forward *f = CONTAINER_OF(call, struct forward, call);

    if (call->err)
        trace_warn("topic.not_made", "error=%s", err_name(call->err));
    request_return(f->request);
    client_call_fini(call);
    free(f);
}

void forward_creation(struct control *c, struct request *r, const struct metadata_topic *const *v,
                      int32_t n)
{
    struct forward *f = xcalloc(1, sizeof(*f));
    struct create_topics_request *q = request_alloc(r, sizeof(*q));

    wire_init(&create_topics_request_schema, q);
    q->timeout_ms = FORWARD_MS;
    q->topics.v = request_array(r, &create_topics_request_topic_schema, n);
    for (int32_t i = 0; i < n; i++) {
        struct create_topics_request_topic *t = &q->topics.v[q->topics.n++];
        const struct config_overrides *o = &v[i]->configs;

        t->name = arena_str(&r->arena, v[i]->name);
        t->num_partitions = v[i]->partition_count;
        t->replication_factor = (int16_t)v[i]->partitions[0].replicas.count;
        t->configs.n = o->count;
        t->configs.v = request_array(r, &create_topics_request_config_schema, o->count);
        for (int32_t k = 0; k < o->count; k++) {
            t->configs.v[k].name = arena_str(&r->arena, str_of(o->pairs[k].name));
            t->configs.v[k].value = arena_str(&r->arena, str_of(o->pairs[k].value));
        }
    }
    f->request = r;
    f->call.done = answered;
    f->call.api_key = API_CREATE_TOPICS;
    f->call.target = c->image->controller_id;
    f->call.timeout_ms = FORWARD_MS;
    f->call.request = q;
    client_call(c->cluster->peers, &f->call);
}
