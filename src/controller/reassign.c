/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions that move to other brokers (KIP-455). Three lists say where one is: `replicas`, which
 * are the target and behind it whatever else it had; `adding`, which it did not have; `removing`,
 * which it will not have. The target is therefore the replicas without those to be removed, and
 * what it had is the replicas without those to be added.
 *
 * A move ends when the whole target is in sync, and not before: then the in-sync set is the target,
 * and every one of its members has every committed record. Who leaves an in-sync set earlier,
 * because a move is cancelled or gets another target, leaves others in it; where it would not, that
 * is refused.
 */
#include "base/attr.h"
#include "controller/controller_int.h"

/* Each array of a message has a type of its own. */
#define LEND_IDS(field, from) ((field).v = (from).ids, (field).n = (from).count)

struct request {
    const struct metadata_image *image;
    struct arena *arena;
    struct controller__named named;
    struct metadata_delta *plan;
    bool may_change_count; /* of replicas */
};

/* ---- lists ------------------------------------------------------------------------------ */

/* Those of `from` that are in `list`, or that are not. */
static struct metadata_ids choose(struct arena *arena, const struct metadata_ids *from,
                                  const struct metadata_ids *list, bool is_in)
{
    struct metadata_ids out = {
        .ids = arena_calloc(arena, (size_t)from->count + 1, sizeof(*out.ids))};

    for (int32_t i = 0; i < from->count; i++)
        if (metadata_ids_have(list, from->ids[i]) == is_in)
            out.ids[out.count++] = from->ids[i];
    return out;
}

static struct metadata_ids join(struct arena *arena, const struct metadata_ids *a,
                                const struct metadata_ids *b)
{
    struct metadata_ids out = {
        .ids = arena_calloc(arena, (size_t)a->count + (size_t)b->count + 1, sizeof(*out.ids)),
        .count = a->count + b->count,
    };

    for (int32_t i = 0; i < out.count; i++)
        out.ids[i] = i < a->count ? a->ids[i] : b->ids[i - a->count];
    return out;
}

static bool same(const struct metadata_ids *a, const struct metadata_ids *b)
{
    if (a->count != b->count)
        return false;
    for (int32_t i = 0; i < a->count; i++)
        if (a->ids[i] != b->ids[i])
            return false;
    return true;
}

static bool same_assignment(const struct metadata_partition *a, const struct metadata_partition *b)
{
    return same(&a->replicas, &b->replicas) && same(&a->adding, &b->adding) &&
           same(&a->removing, &b->removing);
}

static bool is_moving(const struct metadata_partition *p)
{
    return p->adding.count > 0 || p->removing.count > 0;
}

/* ---- a move ----------------------------------------------------------------------------- */

/* A leader that is no replica any more, or is dead, is followed by one that is in sync. */
static void keep_leader(const struct metadata_image *image, struct metadata_partition *next)
{
    if (!metadata_ids_have(&next->isr, next->leader) || !metadata_is_alive(image, next->leader))
        next->leader = controller__first_alive(image, &next->replicas, &next->isr);
}

/* False: it is not over. */
static bool finish(const struct metadata_image *image, struct arena *arena,
                   struct metadata_partition *next)
{
    struct metadata_ids target = choose(arena, &next->replicas, &next->removing, false);

    if (choose(arena, &target, &next->isr, false).count > 0 ||
        controller__first_alive(image, &target, NULL) < 0)
        return false;
    next->replicas = target;
    next->isr = choose(arena, &next->isr, &target, true);
    next->adding = next->removing = (struct metadata_ids){NULL, 0};
    keep_leader(image, next);
    return true;
}

static void plan_move(const struct metadata_topic *topic, int32_t index,
                      struct metadata_partition *next, struct metadata_delta *plan)
{
    next->leader_epoch++;
    next->partition_epoch++;
    next->dirs = NULL; /* They are in the order of the replicas. */
    metadata_delta_set_partition(plan, topic->name, index, next);
}

/* False: nobody who would remain is in sync. */
static bool begin(const struct request *r, const struct metadata_topic *topic, int32_t index,
                  const struct metadata_ids *target)
{
    const struct metadata_partition *p = &topic->partitions[index];
    struct metadata_ids origin = choose(r->arena, &p->replicas, &p->adding, false);
    struct metadata_partition next = *p;

    next.adding = choose(r->arena, target, &origin, false);
    next.removing = choose(r->arena, &origin, target, false);
    next.replicas = join(r->arena, target, &next.removing);
    next.isr = choose(r->arena, &p->isr, &next.replicas, true);
    if (next.isr.count == 0)
        return false;
    if (same_assignment(p, &next))
        return true;
    keep_leader(r->image, &next);
    finish(r->image, r->arena, &next);
    plan_move(topic, index, &next, r->plan);
    return true;
}

void controller_plan_reassignments(const struct metadata_image *image, struct metadata_delta *plan)
{
    struct arena arena;

    arena_init(&arena, 0);
    for (int32_t t = 0; t < image->topic_count; t++)
        for (int32_t i = 0; i < image->topics[t]->partition_count; i++) {
            struct metadata_partition next = image->topics[t]->partitions[i];

            if (is_moving(&next) && finish(image, &arena, &next))
                plan_move(image->topics[t], i, &next, plan);
        }
    arena_fini(&arena);
}

bool controller_changes_assignment(const struct metadata_image *before,
                                   const struct metadata_change *change)
{
    const struct metadata_topic *topic;
    const struct metadata_partition *p;

    if (change->kind != METADATA_PARTITION)
        return false;
    topic = metadata_find_topic(before, change->name);
    p = topic ? metadata_find_partition(topic, change->index) : NULL;
    return p && !same_assignment(p, &change->partition);
}

/* ---- AlterPartitionReassignments -------------------------------------------------------- */

static enum err refuse(enum err err, struct str *message, struct str why)
{
    *message = why;
    return err;
}

static enum err check_ids(const struct request *r, const struct metadata_ids *target,
                          struct str *message)
{
    for (int32_t i = 0; i < target->count; i++) {
        struct metadata_ids those_before = {.ids = target->ids, .count = i};

        if (target->ids[i] < 0)
            return refuse(ERR_INVALID_REPLICA_ASSIGNMENT, message,
                          arena_printf(r->arena, "%d is not the id of a broker", target->ids[i]));
        if (metadata_ids_have(&those_before, target->ids[i]))
            return refuse(ERR_INVALID_REPLICA_ASSIGNMENT, message,
                          arena_printf(r->arena, "broker %d is named twice", target->ids[i]));
    }
    return ERR_NONE;
}

/* Who has a replica may be dead, who is to get one may not. */
static enum err check_target(const struct request *r, const struct metadata_partition *p,
                             const struct metadata_ids *target, struct str *message)
{
    struct metadata_ids origin = choose(r->arena, &p->replicas, &p->adding, false);
    int32_t present = p->replicas.count - p->removing.count;
    enum err err = ERR_NONE;

    if (target->count > origin.count + r->image->broker_count)
        return refuse(ERR_INVALID_REPLICA_ASSIGNMENT, message,
                      STR_LIT("there are more replicas than brokers"));
    err = check_ids(r, target, message);
    if (err)
        return err;
    if (target->count == 0)
        return refuse(ERR_INVALID_REPLICA_ASSIGNMENT, message,
                      STR_LIT("a partition needs at least one replica"));
    if (!r->may_change_count && target->count != present)
        return refuse(ERR_INVALID_REPLICATION_FACTOR, message,
                      arena_printf(r->arena,
                                   "the partition has %d replicas and should have %d, but the "
                                   "request does not allow to change their number",
                                   present, target->count));
    for (int32_t i = 0; i < target->count; i++)
        if (!metadata_ids_have(&origin, target->ids[i]) &&
            !metadata_is_alive(r->image, target->ids[i]))
            return refuse(ERR_INVALID_REPLICA_ASSIGNMENT, message,
                          arena_printf(r->arena, "broker %d is not alive", target->ids[i]));
    return ERR_NONE;
}

static enum err reassign(struct request *r, const struct metadata_topic *topic,
                         const struct alter_partition_reassignments_request_partition *in,
                         struct str *message)
{
    const struct metadata_partition *p = metadata_find_partition(topic, in->partition_index);
    struct metadata_ids target = {.ids = in->replicas.v, .count = in->replicas.n};
    enum err err = ERR_NONE;

    if (!p)
        return ERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (!controller__name_it(&r->named, topic, in->partition_index))
        return refuse(ERR_INVALID_REQUEST, message, STR_LIT("the partition is named twice"));
    if (target.count < 0 && !is_moving(p))
        return ERR_NO_REASSIGNMENT_IN_PROGRESS;
    if (target.count < 0)
        target = choose(r->arena, &p->replicas, &p->adding, false);
    else
        err = check_target(r, p, &target, message);
    if (err)
        return err;
    if (!begin(r, topic, in->partition_index, &target))
        return refuse(ERR_INVALID_REPLICA_ASSIGNMENT, message,
                      STR_LIT("none of the replicas that would remain is in sync"));
    return ERR_NONE;
}

static void reassign_topic(struct request *r,
                           const struct alter_partition_reassignments_request_topic *in,
                           struct alter_partition_reassignments_response_topic *out)
{
    const struct metadata_topic *topic = metadata_find_topic(r->image, in->name);
    int32_t n = in->partitions.n;

    wire_init(&alter_partition_reassignments_response_topic_schema, out);
    out->name = in->name;
    out->partitions.n = n;
    out->partitions.v = arena_calloc(r->arena, (size_t)MAX(n, 1), sizeof(*out->partitions.v));
    for (int32_t i = 0; i < n; i++) {
        struct alter_partition_reassignments_response_partition *to = &out->partitions.v[i];
        struct str message = str_null();
        enum err err = ERR_UNKNOWN_TOPIC_OR_PARTITION;

        if (topic && !topic->is_deleting)
            err = reassign(r, topic, &in->partitions.v[i], &message);
        wire_init(&alter_partition_reassignments_response_partition_schema, to);
        to->partition_index = in->partitions.v[i].partition_index;
        to->error_code = err_wire(err);
        to->error_message = err && str_is_null(message) ? str_of(err_text(err)) : message;
    }
}

void controller_reassign(const struct metadata_image *image,
                         const struct alter_partition_reassignments_request *in,
                         struct arena *arena, struct alter_partition_reassignments_response *out,
                         struct metadata_delta *plan)
{
    struct request r = {.image = image,
                        .arena = arena,
                        .plan = plan,
                        .may_change_count = in->allow_replication_factor_change};

    controller__named_init(&r.named, image, arena);
    out->allow_replication_factor_change = in->allow_replication_factor_change;
    out->responses.n = in->topics.n;
    out->responses.v = arena_calloc(arena, (size_t)MAX(in->topics.n, 1), sizeof(*out->responses.v));
    for (int32_t i = 0; i < in->topics.n; i++)
        reassign_topic(&r, &in->topics.v[i], &out->responses.v[i]);
}

/* ---- ListPartitionReassignments --------------------------------------------------------- */

/* The answer may outlive the image. */
static struct metadata_ids copy(struct arena *arena, const struct metadata_ids *ids)
{
    return choose(arena, ids, ids, true);
}

static void list_partition(struct arena *arena, const struct metadata_topic *topic, int32_t index,
                           struct list_partition_reassignments_response_topic *out)
{
    const struct metadata_partition *p = metadata_find_partition(topic, index);
    struct list_partition_reassignments_response_partition *to;
    struct metadata_ids replicas;
    struct metadata_ids adding;
    struct metadata_ids removing;

    if (!p || !is_moving(p))
        return;
    replicas = copy(arena, &p->replicas);
    adding = copy(arena, &p->adding);
    removing = copy(arena, &p->removing);
    to = &out->partitions.v[out->partitions.n++];
    wire_init(&list_partition_reassignments_response_partition_schema, to);
    to->partition_index = index;
    LEND_IDS(to->replicas, replicas);
    LEND_IDS(to->adding_replicas, adding);
    LEND_IDS(to->removing_replicas, removing);
}

/* Its partitions, or those of the list. Topics on which nothing moves are not in the answer. */
static void list_topic(struct arena *arena, const struct metadata_topic *topic,
                       const struct metadata_ids *indexes,
                       struct list_partition_reassignments_response *out)
{
    struct list_partition_reassignments_response_topic *to = &out->topics.v[out->topics.n];
    int32_t n = indexes ? indexes->count : topic->partition_count;

    wire_init(&list_partition_reassignments_response_topic_schema, to);
    to->name = arena_str(arena, topic->name);
    to->partitions.v = arena_calloc(arena, (size_t)MAX(n, 1), sizeof(*to->partitions.v));
    for (int32_t i = 0; i < n; i++)
        list_partition(arena, topic, indexes ? indexes->ids[i] : i, to);
    out->topics.n += to->partitions.n > 0;
}

void controller_list_reassignments(const struct metadata_image *image,
                                   const struct list_partition_reassignments_request *in,
                                   struct arena *arena,
                                   struct list_partition_reassignments_response *out)
{
    bool is_all = in->topics.n < 0;
    int32_t n = is_all ? image->topic_count : in->topics.n;

    out->topics.n = 0;
    out->topics.v = arena_calloc(arena, (size_t)MAX(n, 1), sizeof(*out->topics.v));
    for (int32_t i = 0; i < n; i++) {
        const struct metadata_topic *topic =
            is_all ? image->topics[i] : metadata_find_topic(image, in->topics.v[i].name);
        struct metadata_ids indexes = {0};

        if (!is_all)
            indexes = (struct metadata_ids){.ids = in->topics.v[i].partition_indexes.v,
                                            .count = in->topics.v[i].partition_indexes.n};
        if (topic && !topic->is_deleting)
            list_topic(arena, topic, is_all ? NULL : &indexes, out);
    }
}
