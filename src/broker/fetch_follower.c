/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is different about a follower's fetch: before it reads, the owner of every partition hears
 * where the follower stands (replica.h), which may commit records, and says whether the follower
 * may read on from there or has to truncate first, and whether it can be made to wait (KIP-73).
 */
#include "base/attr.h"
#include "broker/fetch.h"

struct telling {
    void (*done)(struct request *r);
    int32_t follower;
    int64_t incarnation;
    struct visit *visit;
};

int32_t fetch_follower(const struct request *r)
{
    const struct fetch_request *in = r->in;

    return r->header.api_version >= 15 ? in->replica_state.replica_id : in->replica_id;
}

static void tell_at_owner(struct visit_item *item)
{
    struct fetch_part *part = item->out;
    const struct telling *t = item->in;
    struct replica_fetch fetch = {
        .from = t->follower,
        .incarnation = t->incarnation,
        .leader_epoch = part->leader_epoch,
        .offset = part->offset,
        .acked = part->durable_offset < 0 ? part->offset : MIN(part->durable_offset, part->offset),
        .log_start = part->log_start,
        .last_epoch = part->last_epoch,
    };
    struct replica_effects fx;
    enum err err = replicate_fetch(item->partition, &fetch, &fx);

    part->diverging_epoch = fx.diverging_epoch;
    part->diverging_end = fx.diverging_end;
    part->is_throttled = item->partition->throttle.of_leader;
    part->may_wait = part->is_throttled && !fx.is_awaited;
    visit_item_done(item, err);
}

static void all_told(struct request *r, struct visit *v)
{
    const struct telling *t = v->items[0].in;

    for (int i = 0; i < v->count; i++) {
        struct fetch_part *part = v->items[i].out;

        part->follower_err = v->items[i].err;
        if (part->follower_err)
            part->is_throttled = part->may_wait = false;
    }
    t->done(r);
}

void fetch_tell_leaders(struct request *r, struct fetch_session *session,
                        void (*done)(struct request *r))
{
    const struct fetch_request *in = r->in;
    struct telling *t = request_alloc(r, sizeof(*t));

    if (session->part_count == 0) {
        done(r);
        return;
    }
    t->done = done;
    t->follower = fetch_follower(r);
    t->incarnation = r->header.api_version >= 15 ? in->replica_state.replica_epoch : -1;
    visit_start(fetch_visit(r, session, tell_at_owner, all_told, t));
}
