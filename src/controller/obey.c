/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller's requests, received: each becomes a delta against the image that the broker has.
 * The two epochs fence: a request of an earlier controller, or to an earlier life of this broker,
 * changes nothing (S10). Of a partition the newest state wins, by leader epoch and then by
 * partition epoch, in whatever order requests arrive.
 */
#include "controller/controller.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/attr.h"
#include "base/planted.h"

#define LEADER_DELETED (-2)

static enum err check_epochs(const struct metadata_image *image, int64_t life,
                             int32_t controller_epoch, int64_t broker_epoch)
{
    if (controller_epoch < image->controller_epoch && !PLANTED(OBEY_OLD_CONTROLLER))
        return ERR_STALE_CONTROLLER_EPOCH;
    return broker_epoch >= 0 && broker_epoch != life ? ERR_STALE_BROKER_EPOCH : ERR_NONE;
}

enum err controller_hear(struct controller_heard *h, int32_t controller_epoch, int64_t version)
{
    bool is_late = controller_epoch == h->controller_epoch && version >= 0 && version < h->version;
    bool is_old = controller_epoch < h->controller_epoch;

    if ((is_late && !PLANTED(OBEY_LATE_ORDERS)) || (is_old && !PLANTED(OBEY_OLD_CONTROLLER)))
        return ERR_STALE_CONTROLLER_EPOCH;
    h->controller_epoch = controller_epoch;
    h->version = version;
    return ERR_NONE;
}

/* Each array of a message has a type of its own. */
#define BORROW_IDS(field)                                                                          \
    {                                                                                              \
        .ids = (field).v, .count = MAX((field).n, 0)                                               \
    }

/* UpdateMetadata, which comes first, does not say what is on the move. */
static bool says_more(const struct metadata_partition *known, const struct metadata_partition *told)
{
    return told->partition_epoch == known->partition_epoch &&
           told->adding.count + told->removing.count > known->adding.count + known->removing.count;
}

static bool is_newer(const struct metadata_partition *known, const struct metadata_partition *told)
{
    if (!known || told->leader_epoch != known->leader_epoch)
        return !known || told->leader_epoch > known->leader_epoch;
    return told->partition_epoch > known->partition_epoch || says_more(known, told);
}

/* ---- topics ----------------------------------------------------------------------------- */

/* A topic under construction: new ones become one change, known ones a change a partition. */
struct merge {
    const struct metadata_topic *known; /* NULL: new, or another one of the same name */
    struct metadata_topic *made;
    struct metadata_delta *plan;
    struct str name;
};

static void merge_begin(struct merge *m, const struct metadata_image *image, struct str name,
                        struct uuid id, int32_t count, struct metadata_delta *plan)
{
    const struct metadata_topic *known = metadata_find_topic(image, name);

    *m = (struct merge){.plan = plan, .name = name};
    if (known && uuid_eq(known->id, id))
        m->known = known;
    else
        m->made = metadata_topic_new(name, id, count);
}

/* ERR_STALE_CONTROLLER_EPOCH: something newer is known. */
static enum err merge_partition(struct merge *m, int32_t index, const struct metadata_partition *p)
{
    const struct metadata_partition *known = m->known ? metadata_find_partition(m->known, index)
                                                      : NULL;

    if (index < 0)
        return ERR_INVALID_REQUEST;
    if (m->made)
        metadata_topic_set_partition(m->made, index, p);
    else if (is_newer(known, p))
        metadata_delta_set_partition(m->plan, m->name, index, p);
    else if (p->leader_epoch < known->leader_epoch)
        return ERR_STALE_CONTROLLER_EPOCH;
    return ERR_NONE;
}

static void merge_end(struct merge *m)
{
    if (m->made)
        metadata_delta_put_topic(m->plan, m->made);
}

/* ---- LeaderAndIsr ----------------------------------------------------------------------- */

static enum err obey_role(struct merge *m, const struct leader_and_isr_request_partition *s)
{
    struct metadata_partition p = {
        .leader = s->leader,
        .leader_epoch = s->leader_epoch,
        .partition_epoch = s->partition_epoch,
        .replicas = BORROW_IDS(s->replicas),
        .isr = BORROW_IDS(s->isr),
        .adding = BORROW_IDS(s->adding_replicas),
        .removing = BORROW_IDS(s->removing_replicas),
    };

    return merge_partition(m, s->partition_index, &p);
}

static void obey_roles_of(const struct metadata_image *image,
                          const struct leader_and_isr_request_topic *in, struct arena *arena,
                          struct leader_and_isr_response_topic *out, struct metadata_delta *plan)
{
    struct merge m;
    int32_t n = in->partition_states.n;

    wire_init(&leader_and_isr_response_topic_schema, out);
    out->topic_id = in->topic_id;
    out->partition_errors.n = n;
    out->partition_errors.v =
        arena_calloc(arena, (size_t)MAX(n, 1), sizeof(*out->partition_errors.v));
    merge_begin(&m, image, in->topic_name, in->topic_id, 0, plan);
    for (int32_t i = 0; i < n; i++) {
        const struct leader_and_isr_request_partition *s = &in->partition_states.v[i];
        struct leader_and_isr_response_partition *to = &out->partition_errors.v[i];

        wire_init(&leader_and_isr_response_partition_schema, to);
        to->topic_name = in->topic_name;
        to->partition_index = s->partition_index;
        to->error_code = err_wire(obey_role(&m, s));
    }
    merge_end(&m);
}

enum err controller_obey_roles(const struct metadata_image *image, int64_t life,
                               const struct leader_and_isr_request *in, struct arena *arena,
                               struct leader_and_isr_response *out, struct metadata_delta *plan)
{
    enum err err = check_epochs(image, life, in->controller_epoch, in->broker_epoch);

    if (err)
        return err;
    out->topics.n = in->topic_states.n;
    out->topics.v = arena_calloc(arena, (size_t)MAX(in->topic_states.n, 1), sizeof(*out->topics.v));
    for (int32_t i = 0; i < in->topic_states.n; i++)
        obey_roles_of(image, &in->topic_states.v[i], arena, &out->topics.v[i], plan);
    if (in->controller_epoch > image->controller_epoch)
        metadata_delta_set_controller(plan, in->controller_id, in->controller_epoch);
    return ERR_NONE;
}

/* ---- UpdateMetadata --------------------------------------------------------------------- */

static bool same_broker(const struct metadata_broker *b,
                        const struct update_metadata_request_broker *in)
{
    if (b->epoch != in->epoch || !str_eq(b->rack, in->rack) || b->endpoint_count != in->endpoints.n)
        return false;
    for (int32_t i = 0; i < b->endpoint_count; i++) {
        const struct metadata_endpoint *e = &b->endpoints[i];
        const struct update_metadata_request_endpoint *told = &in->endpoints.v[i];

        if (e->port != told->port || !str_eq(e->host, told->host) ||
            !str_eq(e->listener, told->listener))
            return false;
    }
    return true;
}

static bool is_told(const struct update_metadata_request *in, int32_t id)
{
    for (int32_t i = 0; i < in->live_brokers.n; i++)
        if (in->live_brokers.v[i].id == id)
            return true;
    return false;
}

static void obey_brokers(const struct metadata_image *image,
                         const struct update_metadata_request *in, struct metadata_delta *plan)
{
    for (int32_t i = 0; i < image->broker_count; i++)
        if (!is_told(in, image->brokers[i]->id))
            metadata_delta_remove_broker(plan, image->brokers[i]->id);
    for (int32_t i = 0; i < in->live_brokers.n; i++) {
        const struct update_metadata_request_broker *told = &in->live_brokers.v[i];
        const struct metadata_broker *known = metadata_find_broker(image, told->id);
        struct metadata_broker *b;

        if (known && same_broker(known, told))
            continue;
        b = metadata_broker_new(told->id, told->epoch, told->rack);
        for (int32_t e = 0; e < told->endpoints.n; e++)
            metadata_broker_add_endpoint(b, told->endpoints.v[e].listener,
                                         told->endpoints.v[e].host, told->endpoints.v[e].port);
        metadata_delta_put_broker(plan, b);
    }
}

static bool is_deletion(const struct update_metadata_request_topic *in)
{
    return in->partition_states.n > 0 && in->partition_states.v[0].leader == LEADER_DELETED;
}

static void obey_states_of(const struct metadata_image *image,
                           const struct update_metadata_request_topic *in,
                           struct metadata_delta *plan)
{
    const struct metadata_topic *known = metadata_find_topic(image, in->topic_name);
    struct merge m;

    if (is_deletion(in)) {
        if (known && uuid_eq(known->id, in->topic_id))
            metadata_delta_remove_topic(plan, in->topic_name);
        return;
    }
    merge_begin(&m, image, in->topic_name, in->topic_id, 0, plan);
    for (int32_t i = 0; i < in->partition_states.n; i++) {
        const struct update_metadata_request_partition *s = &in->partition_states.v[i];
        struct metadata_partition p = {
            .leader = s->leader,
            .leader_epoch = s->leader_epoch,
            .partition_epoch = s->zk_version,
            .replicas = BORROW_IDS(s->replicas),
            .isr = BORROW_IDS(s->isr),
        };
        enum err stale = merge_partition(&m, s->partition_index, &p);

        (void)stale; /* LeaderAndIsr has been faster. */
    }
    merge_end(&m);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Topics that were deleted while nobody could tell this broker. Those of another id are replaced.
 */
static void forget_untold(const struct metadata_image *image,
                          const struct update_metadata_request *in, struct metadata_delta *plan)
{
    size_t n = (size_t)MAX(in->topic_states.n, 0);
    struct str *told = xcalloc(n + 1, sizeof(*told));

    for (size_t i = 0; i < n; i++)
        told[i] = in->topic_states.v[i].topic_name;
    qsort(told, n, sizeof(*told), by_name);
    for (int32_t i = 0; i < image->topic_count; i++)
        if (!bsearch(&image->topics[i]->name, told, n, sizeof(*told), by_name))
            metadata_delta_remove_topic(plan, image->topics[i]->name);
    free(told);
}

enum err controller_obey_states(const struct metadata_image *image, int64_t life,
                                const struct update_metadata_request *in,
                                struct metadata_delta *plan)
{
    enum err err = check_epochs(image, life, in->controller_epoch, in->broker_epoch);

    if (err)
        return err;
    metadata_delta_set_controller(plan, in->controller_id, in->controller_epoch);
    obey_brokers(image, in, plan);
    if (in->type == CONTROLLER_ORDERS_ALL)
        forget_untold(image, in, plan);
    for (int32_t i = 0; i < in->topic_states.n; i++)
        obey_states_of(image, &in->topic_states.v[i], plan);
    return ERR_NONE;
}

enum err controller_obey_stops(const struct metadata_image *image, int64_t life,
                               const struct stop_replica_request *in)
{
    return check_epochs(image, life, in->controller_epoch, in->broker_epoch);
}
