/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AlterPartition: a leader proposes another in-sync set. It counts if the leader leads in the epoch
 * that is stored and has seen the state that is stored; a new member has to be alive, in the
 * life in which the leader saw it catch up, and not about to stop (S13, S14).
 *
 * A proposal that is what is stored already has been carried out: the leader did not hear so.
 */
#include "controller/controller.h"

#include "base/planted.h"

static bool proposes(const struct controller_proposal *q, int32_t id)
{
    for (int32_t i = 0; i < q->count; i++)
        if (q->isr[i].broker_id == id)
            return true;
    return false;
}

static bool is_proposed_twice(const struct controller_proposal *q, int32_t at)
{
    for (int32_t i = 0; i < at; i++)
        if (q->isr[i].broker_id == q->isr[at].broker_id)
            return true;
    return false;
}

static bool is_well_formed(const struct metadata_partition *p, const struct controller_proposal *q)
{
    for (int32_t i = 0; i < q->count; i++)
        if (is_proposed_twice(q, i) || !metadata_ids_have(&p->replicas, q->isr[i].broker_id))
            return false;
    return q->count > 0 && proposes(q, p->leader);
}

static bool is_eligible(const struct metadata_image *image,
                        const struct alter_partition_request_broker *member)
{
    const struct metadata_broker *b = metadata_find_broker(image, member->broker_id);

    return b && !b->is_fenced &&
           (member->broker_epoch < 0 || b->epoch < 0 || member->broker_epoch == b->epoch);
}

static bool is_present(const struct metadata_partition *p, const struct controller_proposal *q)
{
    if (q->count != p->isr.count)
        return false;
    for (int32_t i = 0; i < q->count; i++)
        if (!metadata_ids_have(&p->isr, q->isr[i].broker_id))
            return false;
    return true;
}

static enum err check(const struct metadata_image *image, const struct metadata_partition *p,
                      const struct controller_proposal *q)
{
    if (q->leader_epoch > p->leader_epoch || q->partition_epoch > p->partition_epoch)
        return ERR_NOT_CONTROLLER;
    if (q->leader_epoch < p->leader_epoch || q->from != p->leader)
        return ERR_FENCED_LEADER_EPOCH;
    if (!is_well_formed(p, q))
        return ERR_INVALID_REQUEST;
    if (is_present(p, q))
        return ERR_NONE;
    if (q->partition_epoch < p->partition_epoch && !PLANTED(ALTER_WITHOUT_EPOCH))
        return ERR_INVALID_UPDATE_VERSION;
    for (int32_t i = 0; i < q->count; i++)
        if (!metadata_ids_have(&p->isr, q->isr[i].broker_id) && !is_eligible(image, &q->isr[i]))
            return ERR_INELIGIBLE_REPLICA;
    return ERR_NONE;
}

enum err controller_alter(const struct metadata_image *image, const struct metadata_partition *p,
                          const struct controller_proposal *q, struct arena *arena,
                          struct metadata_partition *next)
{
    enum err err = check(image, p, q);
    int32_t *isr;
    int32_t n = 0;

    *next = *p;
    if (err || is_present(p, q))
        return err;
    isr = arena_calloc(arena, (size_t)q->count, sizeof(*isr));
    for (int32_t i = 0; i < p->isr.count; i++)
        if (proposes(q, p->isr.ids[i]))
            isr[n++] = p->isr.ids[i];
    for (int32_t i = 0; i < q->count; i++)
        if (!metadata_ids_have(&p->isr, q->isr[i].broker_id))
            isr[n++] = q->isr[i].broker_id;
    next->isr = (struct metadata_ids){.ids = isr, .count = n};
    next->partition_epoch++;
    return ERR_NONE;
}
