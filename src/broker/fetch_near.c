/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers that should rather read at a follower in their own rack (KIP-392): where
 * replica.selector.class asks for it, the owner of every partition that is led here is asked for
 * such a follower before anything is read. A consumer in this broker's rack is not sent away.
 */
#include "broker/fetch.h"

struct asking {
    void (*done)(struct request *r);
    struct str rack;
};

bool fetch_goes_by_racks(const struct config *c)
{
    return str_eq(config_str(c, CONFIG_REPLICA_SELECTOR_CLASS),
                  STR_LIT("org.apache.kafka.common.replica.RackAwareReplicaSelector"));
}

bool fetch_may_be_sent_near(const struct request *r)
{
    const struct fetch_request *in = r->in;
    const struct config *c = r->shard->config;

    return in->rack_id.n > 0 && !str_eq(in->rack_id, config_str(c, CONFIG_BROKER_RACK)) &&
           fetch_goes_by_racks(c);
}

static void ask_at_owner(struct visit_item *item)
{
    struct fetch_part *part = item->out;
    const struct asking *a = item->in;
    const struct partition *p = item->partition;

    part->near = replica_near(&p->replica, p->owner->image, a->rack, part->offset);
    visit_item_done(item, ERR_NONE);
}

/* Not to where the consumer's listener does not reach. */
static void all_asked(struct request *r, struct visit *v)
{
    const struct asking *a = v->items[0].in;

    for (int i = 0; i < v->count; i++) {
        struct fetch_part *part = v->items[i].out;
        const struct metadata_broker *b =
            part->near >= 0 ? metadata_find_broker(r->shard->image, part->near) : NULL;
        struct str host;
        int32_t port;

        if (!b || !request_broker_address(r, b, &host, &port))
            part->near = -1;
    }
    a->done(r);
}

void fetch_ask_near(struct request *r, struct fetch_session *session,
                    void (*done)(struct request *r))
{
    const struct fetch_request *in = r->in;
    struct asking *a = request_alloc(r, sizeof(*a));

    if (session->part_count == 0) {
        done(r);
        return;
    }
    a->done = done;
    a->rack = in->rack_id;
    visit_start(fetch_visit(r, session, ask_at_owner, all_asked, a));
}
