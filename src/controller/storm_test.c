/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded storms: brokers come, go and come back, stop in order, are suspect, leaders propose
 * in-sync sets, people ask for elections and move partitions; and after every plan
 *  - a leader is alive and in sync, or there is none because no member of the set is alive;
 *  - in-sync sets are never empty, and parts of the assignment;
 *  - epochs go up with every change of leader, and never down; no clean election leaves the set;
 *  - who is to be added or removed is a replica, and never both;
 *  - what a broker is told, whenever it is told, makes its image agree with the controller's, and
 *    it is told to delete just those replicas that it had in it and has no more.
 * In the end everybody is alive and in sync, and no partition is on the move any more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "controller/controller.h"

#define BROKERS 4
#define TOPICS 3
#define PARTITIONS 4
#define REPLICAS 3
#define SEEDS 300
#define STEPS 120

struct storm {
    struct rng rng;
    struct metadata_image *now;
    struct metadata_image *told[BROKERS]; /* what each broker has; NULL: it is dead */
    int64_t next_epoch;
    bool is_unclean;
    int next_topic;
};

static int pick(struct storm *s, int n)
{
    return (int)rng_below(&s->rng, (uint64_t)n);
}

static bool may_be_unclean(void *ctx, const struct metadata_topic *topic)
{
    (void)topic;
    return ((struct storm *)ctx)->is_unclean;
}

/* And not about to stop. */
static bool is_alive(const struct metadata_image *image, int32_t id)
{
    const struct metadata_broker *b = metadata_find_broker(image, id);

    return b && !b->is_fenced;
}

static void check_within(const struct metadata_ids *ids, const struct metadata_ids *all)
{
    for (int32_t i = 0; i < ids->count; i++) {
        struct metadata_ids those_before = {.ids = ids->ids, .count = i};

        assert_true(metadata_ids_have(all, ids->ids[i]));
        assert_false(metadata_ids_have(&those_before, ids->ids[i]));
    }
}

static void check_partition(const struct metadata_image *image, const struct metadata_partition *p)
{
    assert_true(p->isr.count > 0);
    assert_true(p->replicas.count > p->removing.count);
    check_within(&p->replicas, &p->replicas);
    check_within(&p->isr, &p->replicas);
    check_within(&p->adding, &p->replicas);
    check_within(&p->removing, &p->replicas);
    for (int32_t i = 0; i < p->removing.count; i++)
        assert_false(metadata_ids_have(&p->adding, p->removing.ids[i]));
    if (p->leader >= 0) {
        assert_non_null(metadata_find_broker(image, p->leader));
        assert_true(metadata_ids_have(&p->isr, p->leader));
        return;
    }
    for (int32_t i = 0; i < p->isr.count; i++)
        assert_false(is_alive(image, p->isr.ids[i]));
}

static void check_change(const struct storm *s, const struct metadata_image *image,
                         const struct metadata_partition *before,
                         const struct metadata_partition *now)
{
    assert_true(now->leader_epoch >= before->leader_epoch);
    assert_true(now->partition_epoch >= before->partition_epoch);
    if (now->leader != before->leader) {
        assert_true(now->leader_epoch > before->leader_epoch);
        assert_true(now->leader < 0 || is_alive(image, now->leader));
    }
    if (now->leader >= 0 && !s->is_unclean)
        assert_true(metadata_ids_have(&before->isr, now->leader));
}

/* Applies a plan and looks at what has become of everything. */
static void apply(struct storm *s, struct metadata_delta *plan)
{
    struct metadata_image *next = metadata_apply(s->now, plan);

    for (int32_t t = 0; t < next->topic_count; t++) {
        const struct metadata_topic *before = metadata_find_topic(s->now, next->topics[t]->name);

        for (int32_t i = 0; i < next->topics[t]->partition_count; i++) {
            check_partition(next, &next->topics[t]->partitions[i]);
            if (before)
                check_change(s, next, &before->partitions[i], &next->topics[t]->partitions[i]);
        }
    }
    metadata_delta_fini(plan);
    metadata_image_put(s->now);
    s->now = next;
}

/* ---- what happens ----------------------------------------------------------------------- */

static bool has_died(const struct metadata_image *before, const struct metadata_image *now,
                     int32_t id)
{
    const struct metadata_broker *then = metadata_find_broker(before, id);
    const struct metadata_broker *b = metadata_find_broker(now, id);

    return then && (!b || b->epoch != then->epoch);
}

/* A life that has ended leads no more (S24), and is in no set that has somebody else (S25). */
static void check_lives(const struct metadata_image *before, const struct metadata_image *now,
                        const struct metadata_partition *then, const struct metadata_partition *p)
{
    int32_t alive = 0;

    if (then->leader >= 0 && has_died(before, now, then->leader))
        assert_true(p->leader_epoch > then->leader_epoch);
    for (int32_t i = 0; i < then->isr.count; i++)
        alive += is_alive(now, then->isr.ids[i]) && !has_died(before, now, then->isr.ids[i]);
    for (int32_t i = 0; alive > 0 && i < p->isr.count; i++)
        assert_false(has_died(before, now, p->isr.ids[i]));
}

static void brokers_change(struct storm *s, struct metadata_delta *change)
{
    struct controller_rules rules = {.is_unclean = may_be_unclean, .ctx = s};
    struct metadata_image *next = metadata_apply(s->now, change);
    struct metadata_delta plan = {0};
    struct metadata_image *before = s->now;

    s->is_unclean = pick(s, 10) == 0;
    controller_plan_brokers(before, next, &rules, &plan);
    metadata_delta_fini(change);
    s->now = next;
    apply(s, &plan);
    for (int32_t t = 0; t < s->now->topic_count; t++)
        for (int32_t i = 0; i < s->now->topics[t]->partition_count; i++)
            check_lives(before, s->now, &before->topics[t]->partitions[i],
                        &s->now->topics[t]->partitions[i]);
    metadata_image_put(before);
    s->is_unclean = false;
}

static struct metadata_broker *new_broker(struct storm *s, int32_t id)
{
    struct metadata_broker *b = metadata_broker_new(id, s->next_epoch++, str_null());

    metadata_broker_add_endpoint(b, STR_LIT("PLAINTEXT"), STR_LIT("127.0.0.1"), 9000 + id);
    return b;
}

static void forget(struct storm *s, int32_t id)
{
    metadata_image_put(s->told[id]);
    s->told[id] = NULL;
}

static void come_or_go(struct storm *s, int32_t id)
{
    struct metadata_delta change = {0};
    bool was_there = metadata_find_broker(s->now, id) != NULL;

    forget(s, id);
    if (was_there && pick(s, 2)) {
        metadata_delta_remove_broker(&change, id);
    } else { /* it comes, or it has come back before anybody noticed */
        metadata_delta_put_broker(&change, new_broker(s, id));
        s->told[id] = metadata_image_new();
    }
    brokers_change(s, &change);
}

/* Who gives up its places, or is suspect, keeps only what nobody else could have. */
static void check_given_up(const struct storm *s, int32_t id, int32_t left)
{
    int32_t leads = 0;

    for (int32_t t = 0; t < s->now->topic_count; t++)
        for (int32_t i = 0; i < s->now->topics[t]->partition_count; i++) {
            const struct metadata_partition *p = &s->now->topics[t]->partitions[i];

            leads += p->leader == id && p->replicas.count > 1;
            for (int32_t m = 0; p->leader == id && m < p->isr.count; m++)
                assert_true(p->isr.ids[m] == id || !is_alive(s->now, p->isr.ids[m]));
            if (p->leader >= 0 && p->leader != id)
                assert_false(metadata_ids_have(&p->isr, id));
        }
    assert_true(left < 0 || leads == left);
}

static void fence(struct storm *s, int32_t id, struct metadata_delta *plan)
{
    const struct metadata_broker *b = metadata_find_broker(s->now, id);
    struct metadata_broker *fenced = metadata_broker_new(id, b->epoch, str_null());

    metadata_broker_add_endpoint(fenced, b->endpoints[0].listener, b->endpoints[0].host,
                                 b->endpoints[0].port);
    fenced->is_fenced = true;
    metadata_delta_put_broker(plan, fenced);
}

static void give_up(struct storm *s, int32_t id)
{
    struct metadata_delta plan = {0};
    int32_t left = -1;

    if (pick(s, 2)) {
        left = controller_plan_shutdown(s->now, id, &plan);
        fence(s, id, &plan);
    } else {
        controller_plan_suspect(s->now, id, &plan);
    }
    apply(s, &plan);
    check_given_up(s, id, left);
}

/* The leader proposes some of the replicas, or all. */
static void propose(struct storm *s, const struct metadata_topic *topic, int32_t index, bool all)
{
    const struct metadata_partition *p = &topic->partitions[index];
    struct alter_partition_request_broker isr[BROKERS];
    struct controller_proposal q = {.from = p->leader,
                                    .leader_epoch = p->leader_epoch,
                                    .partition_epoch = p->partition_epoch,
                                    .isr = isr};
    struct metadata_delta plan = {0};
    struct metadata_partition next;
    struct arena arena;

    for (int32_t i = 0; i < p->replicas.count; i++) {
        const struct metadata_broker *b = metadata_find_broker(s->now, p->replicas.ids[i]);

        if (p->replicas.ids[i] == p->leader || all || pick(s, 2))
            isr[q.count++] = (struct alter_partition_request_broker){
                .broker_id = p->replicas.ids[i], .broker_epoch = b ? b->epoch : -1};
    }
    arena_init(&arena, 0);
    if (p->leader >= 0 && controller_alter(s->now, p, &q, &arena, &next) == ERR_NONE &&
        next.partition_epoch != p->partition_epoch)
        metadata_delta_set_partition(&plan, topic->name, index, &next);
    apply(s, &plan);
    arena_fini(&arena);
}

static const struct metadata_topic *pick_topic(struct storm *s)
{
    return s->now->topics[pick(s, s->now->topic_count)];
}

static void propose_some(struct storm *s)
{
    const struct metadata_topic *topic = pick_topic(s);

    propose(s, topic, pick(s, topic->partition_count), false);
}

static void ask_for_leaders(struct storm *s)
{
    struct elect_leaders_request in;
    struct elect_leaders_response out;
    struct metadata_delta plan = {0};
    struct arena arena;

    wire_init(&elect_leaders_request_schema, &in);
    wire_init(&elect_leaders_response_schema, &out);
    arena_init(&arena, 0);
    in.election_type = (int8_t)(pick(s, 10) == 0);
    in.topic_partitions.n = -1;
    s->is_unclean = in.election_type == 1;
    if (pick(s, 2))
        controller_plan_rebalance(s->now, pick(s, 100), &plan);
    else
        controller_elect(s->now, &in, &arena, &out, &plan);
    apply(s, &plan);
    s->is_unclean = false;
    arena_fini(&arena);
}

/* Any brokers, alive or not, or the end of a move. */
static void move(struct storm *s)
{
    const struct metadata_topic *topic = pick_topic(s);
    int32_t target[REPLICAS];
    int32_t first = pick(s, BROKERS);
    struct alter_partition_reassignments_request in;
    struct alter_partition_reassignments_request_partition p = {
        .partition_index = pick(s, topic->partition_count)};
    struct alter_partition_reassignments_request_topic t = {.name = topic->name};
    struct alter_partition_reassignments_response out;
    struct metadata_delta plan = {0};
    struct arena arena;

    wire_init(&alter_partition_reassignments_request_schema, &in);
    wire_init(&alter_partition_reassignments_response_schema, &out);
    arena_init(&arena, 0);
    p.replicas.n = pick(s, 4) ? 1 + pick(s, REPLICAS) : -1;
    p.replicas.v = target;
    for (int32_t i = 0; i < REPLICAS; i++)
        target[i] = (first + i) % BROKERS;
    t.partitions.v = &p;
    in.topics.v = &t;
    in.topics.n = t.partitions.n = 1;
    controller_reassign(s->now, &in, &arena, &out, &plan);
    apply(s, &plan);
    arena_fini(&arena);
}

static void end_moves(struct storm *s)
{
    struct metadata_delta plan = {0};

    controller_plan_reassignments(s->now, &plan);
    apply(s, &plan);
}

static void create_topic(struct storm *s)
{
    struct controller_new_partitions how = {
        .count = PARTITIONS, .replication_factor = REPLICAS, .random = rng_u64(&s->rng)};
    char name[16];
    struct uuid id;
    struct metadata_delta plan = {0};
    struct metadata_topic *topic;
    struct arena arena;
    struct str message;

    snprintf(name, sizeof(name), "t%d", s->next_topic++);
    id = uuid_from_random((uint64_t)s->next_topic, 7);
    topic = metadata_topic_new(str_of(name), id, 0);
    arena_init(&arena, 0);
    if (controller_make_partitions(s->now, &how, &arena, topic, &message) == ERR_NONE)
        metadata_delta_put_topic(&plan, topic);
    else
        metadata_topic_put(topic);
    apply(s, &plan);
    arena_fini(&arena);
}

static void delete_topic(struct storm *s)
{
    struct metadata_delta plan = {0};

    metadata_delta_remove_topic(&plan, s->now->topics[pick(s, s->now->topic_count)]->name);
    apply(s, &plan);
}

/* ---- telling ---------------------------------------------------------------------------- */

static void take(struct metadata_image **image, struct metadata_delta *plan)
{
    struct metadata_image *next = metadata_apply(*image, plan);

    metadata_delta_fini(plan);
    metadata_image_put(*image);
    *image = next;
}

static bool hosts(const struct metadata_topic *topic, int32_t index, int32_t id)
{
    const struct metadata_partition *p = topic ? metadata_find_partition(topic, index) : NULL;

    return p && metadata_ids_have(&p->replicas, id);
}

/* Told is who had a replica, in the image that it has, and has it no more. */
static void check_stops(const struct storm *s, const struct metadata_image *has, int32_t id,
                        const struct stop_replica_request *stops)
{
    int32_t expected = 0;
    int32_t told = 0;

    for (int32_t t = 0; t < has->topic_count; t++) {
        const struct metadata_topic *now = metadata_find_topic_id(s->now, has->topics[t]->id);

        for (int32_t i = 0; i < has->topics[t]->partition_count; i++)
            expected += hosts(has->topics[t], i, id) && !hosts(now, i, id);
    }
    for (int32_t t = 0; stops && t < stops->topic_states.n; t++) {
        const struct stop_replica_request_topic_state *topic = &stops->topic_states.v[t];

        for (int32_t i = 0; i < topic->partition_states.n; i++)
            told += topic->partition_states.v[i].delete_partition;
    }
    assert_int_equal(told, expected);
}

/* The broker knows its own. */
static int64_t life_of(const struct storm *s, int32_t id)
{
    const struct metadata_broker *b = metadata_find_broker(s->now, id);

    return b ? b->epoch : -1;
}

/* The requests as the broker gets them; the image that it has then. */
static void tell(struct storm *s, int32_t id)
{
    struct metadata_image **has = &s->told[id];
    struct metadata_delta plan = {0};
    struct leader_and_isr_response answer;
    struct controller_orders o;
    struct arena arena;

    arena_init(&arena, 0);
    controller_orders(*has, s->now, id, STR_LIT("PLAINTEXT"), &arena, &o);
    check_stops(s, *has, id, o.stops);
    if (o.states) {
        assert_int_equal(controller_obey_states(*has, life_of(s, id), o.states, &plan), ERR_NONE);
        take(has, &plan);
    }
    if (o.roles) {
        wire_init(&leader_and_isr_response_schema, &answer);
        assert_int_equal(
            controller_obey_roles(*has, life_of(s, id), o.roles, &arena, &answer, &plan), ERR_NONE);
        take(has, &plan);
    }
    if (o.stops)
        assert_int_equal(controller_obey_stops(*has, life_of(s, id), o.stops), ERR_NONE);
    arena_fini(&arena);
}

/* Who hosts it also knows what is on the move. */
static void check_told_partition(const struct metadata_partition *told,
                                 const struct metadata_partition *p, int32_t id)
{
    assert_int_equal(told->leader, p->leader);
    assert_int_equal(told->leader_epoch, p->leader_epoch);
    assert_int_equal(told->partition_epoch, p->partition_epoch);
    assert_int_equal(told->isr.count, p->isr.count);
    assert_int_equal(told->replicas.count, p->replicas.count);
    if (!metadata_ids_have(&p->replicas, id))
        return;
    assert_int_equal(told->adding.count, p->adding.count);
    assert_int_equal(told->removing.count, p->removing.count);
}

/* All but who is about to stop. */
static void check_told_brokers(const struct storm *s, const struct metadata_image *image,
                               int32_t id)
{
    int32_t n = 0;

    for (int32_t i = 0; i < s->now->broker_count; i++) {
        const struct metadata_broker *b = s->now->brokers[i];

        if (b->is_fenced && b->id != id)
            continue;
        assert_int_equal(image->brokers[n]->id, b->id);
        assert_int_equal(image->brokers[n++]->epoch, b->epoch);
    }
    assert_int_equal(image->broker_count, n);
}

static void check_told(const struct storm *s, const struct metadata_image *image, int32_t id)
{
    assert_int_equal(image->topic_count, s->now->topic_count);
    assert_int_equal(image->controller_epoch, s->now->controller_epoch);
    check_told_brokers(s, image, id);
    for (int32_t t = 0; t < image->topic_count; t++) {
        const struct metadata_topic *a = image->topics[t];
        const struct metadata_topic *b = s->now->topics[t];

        assert_true(uuid_eq(a->id, b->id));
        assert_int_equal(a->partition_count, b->partition_count);
        for (int32_t i = 0; i < a->partition_count; i++)
            check_told_partition(&a->partitions[i], &b->partitions[i], id);
    }
}

/* ---- storms ----------------------------------------------------------------------------- */

static void happen_to_topics(struct storm *s, int what)
{
    if (s->now->topic_count == 0)
        return;
    switch (what) {
    case 0:
        if (pick(s, 4) == 0)
            delete_topic(s);
        break;
    case 1:
    case 2: propose_some(s); break;
    case 3: ask_for_leaders(s); break;
    default: move(s);
    }
}

static void happen(struct storm *s)
{
    int32_t id = pick(s, BROKERS);

    switch (pick(s, 10)) {
    case 0: come_or_go(s, id); break;
    case 1:
        if (is_alive(s->now, id))
            give_up(s, id);
        break;
    case 2:
        if (s->now->topic_count < TOPICS)
            create_topic(s);
        break;
    case 3: end_moves(s); break;
    case 4:
    case 5:
        if (s->told[id]) {
            tell(s, id);
            check_told(s, s->told[id], id);
        }
        break;
    default: happen_to_topics(s, pick(s, 5));
    }
}

/* Everybody comes back, and is in sync before long. */
static void calm(struct storm *s)
{
    struct metadata_delta change = {0};

    for (int32_t id = 0; id < BROKERS; id++)
        if (!is_alive(s->now, id)) {
            metadata_delta_put_broker(&change, new_broker(s, id));
            forget(s, id);
            s->told[id] = metadata_image_new();
        }
    brokers_change(s, &change);
    for (int32_t t = 0; t < s->now->topic_count; t++)
        for (int32_t i = 0; i < s->now->topics[t]->partition_count; i++)
            propose(s, s->now->topics[t], i, true);
    end_moves(s);
    for (int32_t t = 0; t < s->now->topic_count; t++)
        for (int32_t i = 0; i < s->now->topics[t]->partition_count; i++) {
            const struct metadata_partition *p = &s->now->topics[t]->partitions[i];

            assert_true(p->leader >= 0);
            assert_int_equal(p->adding.count + p->removing.count, 0);
            assert_int_equal(p->isr.count, p->replicas.count);
        }
}

static void storm_run(uint64_t seed)
{
    struct storm s = {.rng = rng_seeded(seed), .next_epoch = 1};
    struct metadata_delta first = {0};

    s.now = metadata_image_new();
    metadata_delta_set_controller(&first, 0, 1);
    apply(&s, &first);
    for (int i = 0; i < STEPS; i++)
        happen(&s);
    calm(&s);
    for (int32_t id = 0; id < BROKERS; id++) {
        tell(&s, id);
        check_told(&s, s.told[id], id);
        forget(&s, id);
    }
    metadata_image_put(s.now);
}

static void every_plan_is_safe_and_is_told(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        storm_run(seed);
}

/* ---- fences ----------------------------------------------------------------------------- */

static void orders_of_the_past_change_nothing(void **state)
{
    struct metadata_image *none = metadata_image_new();
    struct metadata_delta d = {0};
    struct metadata_delta plan = {0};
    struct metadata_image *image;
    struct update_metadata_request q;

    (void)state;
    metadata_delta_set_controller(&d, 2, 5);
    metadata_delta_put_broker(&d, metadata_broker_new(1, 77, str_null()));
    image = metadata_apply(none, &d);
    metadata_delta_fini(&d);
    wire_init(&update_metadata_request_schema, &q);
    q.controller_epoch = 4;
    assert_int_equal(controller_obey_states(image, 77, &q, &plan), ERR_STALE_CONTROLLER_EPOCH);
    q.controller_epoch = 5;
    q.broker_epoch = 76;
    assert_int_equal(controller_obey_states(image, 77, &q, &plan), ERR_STALE_BROKER_EPOCH);
    assert_int_equal(plan.count, 0);
    metadata_image_put(image);
    metadata_image_put(none);
}

static enum err alter(struct metadata_partition *p, struct controller_proposal q)
{
    struct metadata_image *none = metadata_image_new();
    struct metadata_delta d = {0};
    struct metadata_image *image;
    struct metadata_broker *fenced = metadata_broker_new(3, 13, str_null());
    struct metadata_partition next;
    struct arena arena;
    enum err err;

    fenced->is_fenced = true;
    metadata_delta_put_broker(&d, fenced);
    metadata_delta_put_broker(&d, metadata_broker_new(1, 11, str_null()));
    metadata_delta_put_broker(&d, metadata_broker_new(2, 12, str_null()));
    image = metadata_apply(none, &d);
    arena_init(&arena, 0);
    err = controller_alter(image, p, &q, &arena, &next);
    arena_fini(&arena);
    metadata_delta_fini(&d);
    metadata_image_put(image);
    metadata_image_put(none);
    return err;
}

static int32_t proposal_ids[] = {1, 2, 3, 4};

/* Led by 1, which is alone in sync, in epoch 5; 3 is about to stop, 4 is not registered. */
static const struct metadata_partition proposed_of = {.leader = 1,
                                                      .leader_epoch = 5,
                                                      .partition_epoch = 9,
                                                      .replicas = {proposal_ids, 4},
                                                      .isr = {proposal_ids, 1}};
static const struct alter_partition_request_broker proposed_isr[] = {{1, 11}, {2, 12}, {3, 13}};

/* Leader 1 proposes the first `count` of them. */
static struct controller_proposal proposal(int32_t count)
{
    return (struct controller_proposal){
        .from = 1, .leader_epoch = 5, .partition_epoch = 9, .count = count, .isr = proposed_isr};
}

static void proposals_are_checked(void **state)
{
    struct metadata_partition p = proposed_of;
    struct alter_partition_request_broker twice[] = {{1, 11}, {1, 11}};
    struct controller_proposal q = proposal(2);

    (void)state;
    assert_int_equal(alter(&p, q), ERR_NONE);
    q.from = 2;
    assert_int_equal(alter(&p, q), ERR_FENCED_LEADER_EPOCH);
    q.from = 1;
    q.isr = twice;
    assert_int_equal(alter(&p, q), ERR_INVALID_REQUEST);
}

static void s11_a_proposal_of_an_older_state_is_refused_unless_it_is_the_present_one(void **state)
{
    struct metadata_partition p = proposed_of;
    struct controller_proposal q = proposal(2);

    (void)state;
    q.partition_epoch = 8;
    assert_int_equal(alter(&p, q), ERR_INVALID_UPDATE_VERSION);
    q.count = 1; /* what is stored already: the answer was lost (KAFKA-14144) */
    assert_int_equal(alter(&p, q), ERR_NONE);
}

/* Another controller has elected meanwhile, and the leader has heard of it. */
static void s12_a_controller_that_knows_less_than_the_leader_is_none(void **state)
{
    struct metadata_partition p = proposed_of;
    struct controller_proposal q = proposal(2);

    (void)state;
    q.partition_epoch = 10;
    assert_int_equal(alter(&p, q), ERR_NOT_CONTROLLER);
    q.leader_epoch = 6;
    assert_int_equal(alter(&p, q), ERR_NOT_CONTROLLER);
    q.partition_epoch = 9;
    assert_int_equal(alter(&p, q), ERR_NOT_CONTROLLER);
}

static void s13_who_is_about_to_stop_does_not_get_back_in_sync(void **state)
{
    struct metadata_partition p = proposed_of;

    (void)state;
    assert_int_equal(alter(&p, proposal(3)), ERR_INELIGIBLE_REPLICA);
}

static void s14_who_was_seen_in_another_life_does_not_get_in_sync(void **state)
{
    struct metadata_partition p = proposed_of;
    struct alter_partition_request_broker isr[] = {{1, 11}, {2, 10}};
    struct controller_proposal q = proposal(2);

    (void)state;
    q.isr = isr;
    assert_int_equal(alter(&p, q), ERR_INELIGIBLE_REPLICA);
    isr[1] = (struct alter_partition_request_broker){4, 14}; /* not there at all */
    assert_int_equal(alter(&p, q), ERR_INELIGIBLE_REPLICA);
    isr[1] = proposed_isr[1];
    assert_int_equal(alter(&p, q), ERR_NONE);
}

/* What the controller would send to broker 1 in its life 11 reaches the life after that. */
static void s10_orders_for_a_former_life_are_not_obeyed(void **state)
{
    struct metadata_image *none = metadata_image_new();
    struct metadata_image *image;
    struct metadata_image *later;
    struct metadata_delta plan = {0};
    struct metadata_topic *topic = metadata_topic_new(STR_LIT("t"), uuid_from_random(1, 2), 0);
    struct leader_and_isr_response answer;
    struct controller_orders o;
    struct arena arena;

    (void)state;
    arena_init(&arena, 0);
    metadata_delta_set_controller(&plan, 2, 5);
    metadata_delta_put_broker(&plan, metadata_broker_new(1, 11, str_null()));
    image = metadata_apply(none, &plan);
    metadata_delta_fini(&plan);
    metadata_delta_put_topic(&plan, topic);
    metadata_delta_set_partition(&plan, STR_LIT("t"), 0, &proposed_of);
    later = metadata_apply(image, &plan);
    metadata_delta_fini(&plan);
    wire_init(&leader_and_isr_response_schema, &answer);
    controller_orders(image, later, 1, STR_LIT("PLAINTEXT"), &arena, &o);
    assert_int_equal(controller_obey_roles(image, 12, o.roles, &arena, &answer, &plan),
                     ERR_STALE_BROKER_EPOCH);
    assert_int_equal(controller_obey_states(image, 12, o.states, &plan), ERR_STALE_BROKER_EPOCH);
    assert_int_equal(plan.count, 0);
    assert_int_equal(controller_obey_roles(image, 11, o.roles, &arena, &answer, &plan), ERR_NONE);
    assert_true(plan.count > 0);
    metadata_delta_fini(&plan);
    controller_orders(later, image, 1, STR_LIT("PLAINTEXT"), &arena, &o);
    assert_int_equal(controller_obey_stops(later, 12, o.stops), ERR_STALE_BROKER_EPOCH);
    assert_int_equal(controller_obey_stops(later, 11, o.stops), ERR_NONE);
    metadata_image_put(later);
    metadata_image_put(image);
    metadata_image_put(none);
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_is_safe_and_is_told),
        cmocka_unit_test(orders_of_the_past_change_nothing),
        cmocka_unit_test(s10_orders_for_a_former_life_are_not_obeyed),
        cmocka_unit_test(proposals_are_checked),
        cmocka_unit_test(s11_a_proposal_of_an_older_state_is_refused_unless_it_is_the_present_one),
        cmocka_unit_test(s12_a_controller_that_knows_less_than_the_leader_is_none),
        cmocka_unit_test(s13_who_is_about_to_stop_does_not_get_back_in_sync),
        cmocka_unit_test(s14_who_was_seen_in_another_life_does_not_get_in_sync),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
