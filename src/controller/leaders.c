/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elections that nobody's death calls for: because somebody asks (ElectLeaders, KIP-183 and
 * KIP-460), or because the first replicas of the assignments lead too few of their partitions.
 *
 * To the preferred replica leadership goes only if it is in sync and alive; nothing else changes.
 * An unclean election is for partitions that have no leader: it takes a member of the in-sync set
 * if one is alive, and otherwise gives up what only the others have.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/attr.h"
#include "controller/controller_int.h"

#define TYPE_PREFERRED 0
#define TYPE_UNCLEAN 1

struct request {
    const struct metadata_image *image;
    int8_t type;
    struct arena *arena;
    struct controller__named named;
    struct metadata_delta *plan;
};

static void plan_leader(const struct metadata_topic *topic, int32_t index,
                        struct metadata_partition *next, struct metadata_delta *plan)
{
    next->leader_epoch++;
    next->partition_epoch++;
    metadata_delta_set_partition(plan, topic->name, index, next);
}

static enum err elect_preferred(const struct metadata_image *image,
                                const struct metadata_topic *topic, int32_t index,
                                struct metadata_delta *plan)
{
    struct metadata_partition next = topic->partitions[index];
    struct metadata_ids preferred = {.ids = next.replicas.ids,
                                     .count = MIN(next.replicas.count, 1)};
    int32_t leader = controller__first_alive(image, &preferred, &next.isr);

    if (preferred.count > 0 && next.leader == preferred.ids[0])
        return ERR_ELECTION_NOT_NEEDED;
    if (leader < 0)
        return ERR_PREFERRED_LEADER_NOT_AVAILABLE;
    next.leader = leader;
    plan_leader(topic, index, &next, plan);
    return ERR_NONE;
}

static enum err elect_unclean(const struct metadata_image *image,
                              const struct metadata_topic *topic, int32_t index,
                              struct metadata_delta *plan)
{
    struct metadata_partition next = topic->partitions[index];

    if (next.leader >= 0 && metadata_is_alive(image, next.leader))
        return ERR_ELECTION_NOT_NEEDED;
    next.leader = controller__first_alive(image, &next.replicas, &next.isr);
    if (next.leader < 0) {
        next.leader = controller__first_alive(image, &next.replicas, NULL);
        next.isr = (struct metadata_ids){.ids = &next.leader, .count = 1};
    }
    if (next.leader < 0)
        return ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE;
    plan_leader(topic, index, &next, plan);
    return ERR_NONE;
}

/* ---- on request ------------------------------------------------------------------------- */

static enum err elect(struct request *r, const struct metadata_topic *topic, int32_t index)
{
    if (!topic || !metadata_find_partition(topic, index))
        return ERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (topic->is_deleting)
        return ERR_INVALID_TOPIC_EXCEPTION;
    if (!controller__name_it(&r->named, topic, index))
        return ERR_ELECTION_NOT_NEEDED; /* It has just been held. */
    if (r->type == TYPE_UNCLEAN)
        return elect_unclean(r->image, topic, index, r->plan);
    return elect_preferred(r->image, topic, index, r->plan);
}

static struct elect_leaders_response_topic *answer_topic(struct request *r,
                                                         struct elect_leaders_response *out,
                                                         struct str name, int32_t partitions)
{
    struct elect_leaders_response_topic *to =
        &out->replica_election_results.v[out->replica_election_results.n++];

    wire_init(&elect_leaders_response_topic_schema, to);
    to->topic = arena_str(r->arena, name); /* It may outlive the image. */
    to->partition_result.v =
        arena_calloc(r->arena, (size_t)MAX(partitions, 1), sizeof(*to->partition_result.v));
    return to;
}

static void answer(struct elect_leaders_response_topic *to, int32_t index, enum err err)
{
    struct elect_leaders_response_partition *result =
        &to->partition_result.v[to->partition_result.n++];

    wire_init(&elect_leaders_response_partition_schema, result);
    result->partition_id = index;
    result->error_code = err_wire(err);
    result->error_message = err ? str_of(err_text(err)) : str_null();
}

static void elect_named(struct request *r, const struct elect_leaders_request_topic *in,
                        struct elect_leaders_response *out)
{
    const struct metadata_topic *topic = metadata_find_topic(r->image, in->topic);
    int32_t n = in->partitions.n;
    struct elect_leaders_response_topic *to = answer_topic(r, out, in->topic, n);

    for (int32_t i = 0; i < n; i++)
        answer(to, in->partitions.v[i], elect(r, topic, in->partitions.v[i]));
}

/* Who asks for all is told what has been done, and what was needed and could not be. */
static void elect_topic(struct request *r, const struct metadata_topic *topic,
                        struct elect_leaders_response *out)
{
    struct elect_leaders_response_topic *to =
        answer_topic(r, out, topic->name, topic->partition_count);

    for (int32_t i = 0; i < topic->partition_count; i++) {
        enum err err = elect(r, topic, i);

        if (err != ERR_ELECTION_NOT_NEEDED)
            answer(to, i, err);
    }
    if (to->partition_result.n == 0)
        out->replica_election_results.n--;
}

void controller_elect(const struct metadata_image *image, const struct elect_leaders_request *in,
                      struct arena *arena, struct elect_leaders_response *out,
                      struct metadata_delta *plan)
{
    struct request r = {.image = image, .type = in->election_type, .arena = arena, .plan = plan};
    bool is_all = in->topic_partitions.n < 0;
    int32_t topics = is_all ? image->topic_count : in->topic_partitions.n;

    out->replica_election_results.n = 0;
    if (r.type != TYPE_PREFERRED && r.type != TYPE_UNCLEAN) {
        out->error_code = err_wire(ERR_INVALID_REQUEST);
        return;
    }
    controller__named_init(&r.named, image, arena);
    out->replica_election_results.v =
        arena_calloc(arena, (size_t)MAX(topics, 1), sizeof(*out->replica_election_results.v));
    for (int32_t i = 0; i < topics; i++) {
        if (!is_all)
            elect_named(&r, &in->topic_partitions.v[i], out);
        else if (!image->topics[i]->is_deleting)
            elect_topic(&r, image->topics[i], out);
    }
}

/* ---- out of balance --------------------------------------------------------------------- */

/* Of the partitions that prefer a broker. */
struct balance {
    int64_t prefer;
    int64_t elsewhere; /* led by another one, or by nobody */
};

static int32_t preferred_of(const struct metadata_topic *topic, int32_t index)
{
    const struct metadata_partition *p = &topic->partitions[index];

    return topic->is_deleting || p->replicas.count == 0 ? -1 : p->replicas.ids[0];
}

/* Its place among the image's brokers; -1: it is not there. */
static int32_t place_of_broker(const struct metadata_image *image, int32_t id)
{
    for (int32_t i = 0; i < image->broker_count; i++)
        if (image->brokers[i]->id == id)
            return i;
    return -1;
}

static void weigh(const struct metadata_image *image, const struct metadata_topic *topic,
                  struct balance *balances)
{
    for (int32_t i = 0; i < topic->partition_count; i++) {
        int32_t id = preferred_of(topic, i);
        int32_t place = place_of_broker(image, id);

        if (place < 0)
            continue;
        balances[place].prefer++;
        balances[place].elsewhere += topic->partitions[i].leader != id;
    }
}

static void return_leaders(const struct metadata_image *image, const struct metadata_topic *topic,
                           const bool *may_lead_more, struct metadata_delta *plan)
{
    for (int32_t i = 0; i < topic->partition_count; i++) {
        const struct metadata_partition *p = &topic->partitions[i];
        int32_t place = place_of_broker(image, preferred_of(topic, i));
        enum err err;

        if (place < 0 || !may_lead_more[place] || p->adding.count > 0 || p->removing.count > 0)
            continue;
        err = elect_preferred(image, topic, i, plan);
        (void)err; /* Another time. */
    }
}

void controller_plan_rebalance(const struct metadata_image *image, int32_t percentage,
                               struct metadata_delta *plan)
{
    struct balance *balances = xcalloc((size_t)image->broker_count + 1, sizeof(*balances));
    bool *may_lead_more = xcalloc((size_t)image->broker_count + 1, sizeof(*may_lead_more));

    for (int32_t t = 0; t < image->topic_count; t++)
        weigh(image, image->topics[t], balances);
    for (int32_t i = 0; i < image->broker_count; i++)
        may_lead_more[i] = balances[i].elsewhere * 100 > balances[i].prefer * percentage;
    for (int32_t t = 0; t < image->topic_count; t++)
        return_leaders(image, image->topics[t], may_lead_more, plan);
    free(may_lead_more);
    free(balances);
}
