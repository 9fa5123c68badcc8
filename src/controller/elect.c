/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who leads. The in-sync set is what makes an election safe: each of its members has every
 * committed record. So a broker that goes is taken out of a set only while another member remains;
 * the last ones stay, dead as they are, because only they may lead again.
 *
 * When all members of a set go at once all of them stay: whichever returns first may lead.
 *
 * A broker that wants to stop, and one that is suspect, give up their places while they live. That
 * is safe for what is acknowledged whatever they know of it: every member that remains has it all
 * (I1), and who still leads in the epoch before counts on the whole set of that time, in which the
 * next leader is (I10). They leave the sets and not only the leaderships, since nothing could be
 * acknowledged before the last one of a set has it too.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/planted.h"
#include "controller/controller_int.h"

/* What is decided about one partition. */
struct election {
    const struct metadata_image *image;  /* who is alive */
    const struct metadata_image *before; /* NULL: `since` tells */
    int64_t since;   /* lives that began later are not those that the state names */
    int32_t leaving; /* a broker that is to give up its places; -1 */
    struct metadata_partition next;
    int32_t *isr; /* next.isr.ids; owned */
};

/* Gone, or back in another life. */
static bool is_lost(const struct election *e, int32_t id)
{
    const struct metadata_broker *now = metadata_find_broker(e->image, id);
    const struct metadata_broker *then = e->before ? metadata_find_broker(e->before, id) : NULL;

    if (!now || now->is_fenced)
        return true;
    return e->before ? then && then->epoch != now->epoch : now->epoch > e->since;
}

static void election_begin(struct election *e, const struct metadata_image *before,
                           const struct metadata_image *image, const struct metadata_partition *p)
{
    *e = (struct election){.image = image, .before = before, .leaving = -1, .next = *p};
    e->isr = xcalloc((size_t)p->replicas.count + 1, sizeof(*e->isr));
    e->next.isr.ids = e->isr;
    e->next.isr.count = 0;
}

static void isr_keep(struct election *e, const struct metadata_ids *isr,
                     bool (*is_out)(const struct election *e, int32_t id))
{
    for (int32_t i = 0; i < isr->count && e->next.isr.count < e->next.replicas.count; i++)
        if (!is_out || !is_out(e, isr->ids[i]))
            e->isr[e->next.isr.count++] = isr->ids[i];
    if (e->next.isr.count == 0 && is_out && !PLANTED(EMPTY_THE_ISR))
        isr_keep(e, isr, NULL);
}

static int32_t first_in_sync(const struct election *e)
{
    return controller__first_alive(e->image, &e->next.replicas, &e->next.isr);
}

static void choose_leader(struct election *e, bool is_unclean)
{
    e->next.leader = first_in_sync(e);
    if (e->next.leader >= 0 || (!is_unclean && !PLANTED(ELECT_ANYBODY)))
        return;
    e->next.leader = controller__first_alive(e->image, &e->next.replicas, NULL);
    if (e->next.leader < 0)
        return;
    e->isr[0] = e->next.leader;
    e->next.isr.count = 1;
}

static bool same_ids(const struct metadata_ids *a, const struct metadata_ids *b)
{
    if (a->count != b->count)
        return false;
    for (int32_t i = 0; i < a->count; i++)
        if (a->ids[i] != b->ids[i])
            return false;
    return true;
}

static void election_end(struct election *e, const struct metadata_topic *topic, int32_t index,
                         bool must_raise, struct metadata_delta *plan)
{
    const struct metadata_partition *p = &topic->partitions[index];

    if (must_raise || e->next.leader != p->leader || !same_ids(&e->next.isr, &p->isr)) {
        e->next.leader_epoch += !(PLANTED(MOVE_IN_SAME_EPOCH) && e->leaving >= 0);
        e->next.partition_epoch++;
        metadata_delta_set_partition(plan, topic->name, index, &e->next);
    }
    free(e->isr);
}

static void hold_election(struct election *e, const struct controller_rules *rules,
                          const struct metadata_topic *topic, int32_t index,
                          struct metadata_delta *plan)
{
    const struct metadata_partition *p = &topic->partitions[index];
    bool leader_is_lost;

    isr_keep(e, &p->isr, is_lost);
    leader_is_lost = p->leader >= 0 && is_lost(e, p->leader);
    if (p->leader < 0 || leader_is_lost)
        choose_leader(e, rules->is_unclean(rules->ctx, topic));
    /* The same leader in its next life: the epoch that it led has ended all the same (S24). */
    election_end(e, topic, index, leader_is_lost && !PLANTED(SAME_EPOCH_FOR_NEXT_LIFE), plan);
}

void controller_plan_brokers(const struct metadata_image *before, const struct metadata_image *now,
                             const struct controller_rules *rules, struct metadata_delta *plan)
{
    struct election e;

    for (int32_t t = 0; t < now->topic_count; t++)
        for (int32_t i = 0; i < now->topics[t]->partition_count; i++) {
            election_begin(&e, before, now, &now->topics[t]->partitions[i]);
            hold_election(&e, rules, now->topics[t], i, plan);
        }
}

void controller_plan_takeover(const struct metadata_image *image, const int64_t *const *zxids,
                              const struct controller_rules *rules, struct metadata_delta *plan)
{
    struct election e;

    for (int32_t t = 0; t < image->topic_count; t++)
        for (int32_t i = 0; i < image->topics[t]->partition_count; i++) {
            election_begin(&e, NULL, image, &image->topics[t]->partitions[i]);
            e.since = zxids[t][i];
            hold_election(&e, rules, image->topics[t], i, plan);
        }
}

/* ---- a broker that gives up its places --------------------------------------------------- */

static bool is_leaving(const struct election *e, int32_t id)
{
    return id == e->leaving;
}

/* Whether it still leads, though there are others who could. */
static bool plan_leaving(const struct metadata_image *image, int32_t id,
                         const struct metadata_topic *topic, int32_t index,
                         struct metadata_delta *plan)
{
    const struct metadata_partition *p = &topic->partitions[index];
    struct election e;

    if (!metadata_ids_have(&p->isr, id))
        return false;
    election_begin(&e, image, image, p);
    e.leaving = id;
    isr_keep(&e, &p->isr, is_leaving);
    if (p->leader == id)
        e.next.leader = first_in_sync(&e);
    if (e.next.leader < 0 || e.next.leader == id) {
        /* Nobody else: it stays until it is gone. */
        free(e.isr);
        return p->leader == id && p->replicas.count > 1;
    }
    election_end(&e, topic, index, false, plan);
    return false;
}

void controller_plan_refusal(const struct metadata_image *image, int32_t broker_id,
                             const struct metadata_topic *topic, int32_t index,
                             struct metadata_delta *plan)
{
    const struct metadata_partition *p = metadata_find_partition(topic, index);
    struct election e;

    if (!p || p->leader != broker_id)
        return;
    election_begin(&e, image, image, p);
    e.leaving = broker_id;
    isr_keep(&e, &p->isr, is_leaving);
    e.next.leader = first_in_sync(&e);
    if (e.next.leader == broker_id)
        e.next.leader = -1;
    election_end(&e, topic, index, true, plan);
}

static int32_t plan_leaving_all(const struct metadata_image *image, int32_t id,
                                struct metadata_delta *plan)
{
    int32_t left = 0;

    for (int32_t t = 0; t < image->topic_count; t++)
        for (int32_t i = 0; i < image->topics[t]->partition_count; i++)
            left += plan_leaving(image, id, image->topics[t], i, plan);
    return left;
}

int32_t controller_plan_shutdown(const struct metadata_image *image, int32_t broker_id,
                                 struct metadata_delta *plan)
{
    return plan_leaving_all(image, broker_id, plan);
}

void controller_plan_suspect(const struct metadata_image *image, int32_t broker_id,
                             struct metadata_delta *plan)
{
    plan_leaving_all(image, broker_id, plan);
}

bool controller_first_state(const struct metadata_image *image, struct metadata_partition *p)
{
    int32_t n = 0;

    for (int32_t i = 0; i < p->replicas.count; i++)
        if (metadata_is_alive(image, p->replicas.ids[i]))
            p->isr.ids[n++] = p->replicas.ids[i];
    p->isr.count = n;
    p->leader = n > 0 ? p->isr.ids[0] : -1;
    p->leader_epoch = 0;
    p->partition_epoch = 0;
    return n > 0;
}
