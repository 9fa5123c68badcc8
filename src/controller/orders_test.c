/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Kafka's controller said to its brokers (tests/golden/control), said again: a frame is
 * obeyed, and orders for the image that comes of it must be the frame, field by field. Kafka does
 * not sort, so both sides are sorted first. What we say otherwise, and why:
 *  - the type of a request: Kafka's controllers on ZooKeeper leave it 0, ours tell whether it is
 *    everything, so that a receiver finds what it should not have;
 *  - the version of an order, by which one that is late is known;
 *  - leader_recovery_state: nobody acts on it (KIP-704), and our images do not have it;
 *  - offline_replicas: for Kafka those of a broker that is about to stop are offline already.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "wire/header.h"
#include "wire/print.h"

#define FRAME_BYTES_MAX 4096
#define TEXT_MAX 16384

struct frame {
    uint8_t bytes[FRAME_BYTES_MAX];
    struct arena arena;
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes tests/golden/control/<name>.hex into msg, which the frame keeps alive. */
static void read_frame(struct frame *f, const char *name, const struct schema *schema, void *msg)
{
    char path[128];
    char line[256];
    int32_t digits = 0;
    struct bytes all = {.p = f->bytes};
    struct bytes body;
    struct request_header header;
    size_t at = 0;
    size_t used;
    enum err err;
    FILE *file;

    snprintf(path, sizeof(path), "tests/golden/control/%s.hex", name);
    file = fopen(path, "r");
    if (!file)
        fail_msg("%s: run from the top of the source tree", path);
    memset(f->bytes, 0, sizeof(f->bytes));
    while (fgets(line, sizeof(line), file))
        for (const char *c = line; line[0] != '#' && hex_digit(*c) >= 0; c++, digits++)
            f->bytes[digits / 2] |= (uint8_t)(hex_digit(*c) << (digits % 2 ? 0 : 4));
    fclose(file);
    all.n = digits / 2;
    err = wire_request_header_decode(all, &header, &at);
    assert_true(err == ERR_NONE || err == ERR_UNSUPPORTED_VERSION);
    assert_true(at > 0);
    body = (struct bytes){.p = all.p + at, .n = all.n - (int32_t)at};
    arena_init(&f->arena, 0);
    assert_int_equal(wire_decode(schema, header.api_version, body, &f->arena, msg, &used),
                     ERR_NONE);
    assert_int_equal(used, body.n);
}

static void check_same(const struct schema *schema, int16_t version, const void *kafka,
                       const void *ours)
{
    static char a[TEXT_MAX];
    static char b[TEXT_MAX];

    assert_in_range(wire_print(schema, version, kafka, a, sizeof(a)), 1, sizeof(a) - 1);
    assert_in_range(wire_print(schema, version, ours, b, sizeof(b)), 1, sizeof(b) - 1);
    assert_string_equal(b, a);
}

static void take(struct metadata_image **image, struct metadata_delta *plan)
{
    struct metadata_image *next = metadata_apply(*image, plan);

    metadata_delta_fini(plan);
    metadata_image_put(*image);
    *image = next;
}

/* ---- UpdateMetadata --------------------------------------------------------------------- */

static int compare_state_topics(const void *a, const void *b)
{
    return str_cmp(((const struct update_metadata_request_topic *)a)->topic_name,
                   ((const struct update_metadata_request_topic *)b)->topic_name);
}

static int compare_states(const void *a, const void *b)
{
    return ((const struct update_metadata_request_partition *)a)->partition_index -
           ((const struct update_metadata_request_partition *)b)->partition_index;
}

static int compare_brokers(const void *a, const void *b)
{
    return ((const struct update_metadata_request_broker *)a)->id -
           ((const struct update_metadata_request_broker *)b)->id;
}

static void sort(void *v, int32_t n, size_t size, int (*compare)(const void *a, const void *b))
{
    if (n > 1)
        qsort(v, (size_t)n, size, compare);
}

static void sort_states(struct update_metadata_request *q)
{
    sort(q->live_brokers.v, q->live_brokers.n, sizeof(*q->live_brokers.v), compare_brokers);
    sort(q->topic_states.v, q->topic_states.n, sizeof(*q->topic_states.v), compare_state_topics);
    for (int32_t t = 0; t < q->topic_states.n; t++)
        sort(q->topic_states.v[t].partition_states.v, q->topic_states.v[t].partition_states.n,
             sizeof(*q->topic_states.v[t].partition_states.v), compare_states);
}

/* An image that has been told some partitions only has others without epochs, which nobody has
 * told: they are no part of the comparison. */
static void drop_unknown_states(struct update_metadata_request *q)
{
    for (int32_t t = 0; t < q->topic_states.n; t++) {
        struct update_metadata_request_topic *topic = &q->topic_states.v[t];
        int32_t n = 0;

        for (int32_t i = 0; i < topic->partition_states.n; i++)
            if (topic->partition_states.v[i].leader_epoch >= 0)
                topic->partition_states.v[n++] = topic->partition_states.v[i];
        topic->partition_states.n = n;
    }
}

static void give_leaders(struct update_metadata_request *q, int32_t leader)
{
    for (int32_t t = 0; t < q->topic_states.n; t++)
        for (int32_t i = 0; i < q->topic_states.v[t].partition_states.n; i++)
            if (q->topic_states.v[t].partition_states.v[i].leader == -2 || leader == -2)
                q->topic_states.v[t].partition_states.v[i].leader = leader;
}

static bool is_registered(const struct update_metadata_request *q, int32_t id)
{
    for (int32_t i = 0; i < q->live_brokers.n; i++)
        if (q->live_brokers.v[i].id == id)
            return true;
    return false;
}

static void forget_stopping(const struct update_metadata_request *q,
                            struct update_metadata_request_partition *s)
{
    int32_t n = 0;

    for (int32_t i = 0; i < s->offline_replicas.n; i++)
        if (!is_registered(q, s->offline_replicas.v[i]))
            s->offline_replicas.v[n++] = s->offline_replicas.v[i];
    s->offline_replicas.n = n;
}

static void forget_all_stopping(struct update_metadata_request *q)
{
    for (int32_t t = 0; t < q->topic_states.n; t++)
        for (int32_t i = 0; i < q->topic_states.v[t].partition_states.n; i++)
            forget_stopping(q, &q->topic_states.v[t].partition_states.v[i]);
}

/* A deletion is told to a broker that has been told of the topic; the rest to one that is new. */
static void say_states_again(const char *name, bool is_deletion)
{
    struct metadata_image *before = metadata_image_new();
    struct metadata_image *now;
    struct metadata_delta plan = {0};
    struct update_metadata_request q;
    struct controller_orders o;
    struct arena arena;
    struct frame f;

    read_frame(&f, name, &update_metadata_request_schema, &q);
    arena_init(&arena, 0);
    if (is_deletion) {
        give_leaders(&q, 1);
        assert_int_equal(controller_obey_states(before, q.broker_epoch, &q, &plan), ERR_NONE);
        take(&before, &plan);
        give_leaders(&q, -2);
    }
    now = metadata_image_get(before);
    assert_int_equal(controller_obey_states(now, q.broker_epoch, &q, &plan), ERR_NONE);
    take(&now, &plan);
    controller_orders(before, now, 1, STR_LIT("PLAINTEXT"), &arena, &o);
    assert_non_null(o.states);
    assert_int_equal(o.states->type, is_deletion ? 1 : 2);
    o.states->type = q.type;
    assert_int_equal(o.states->order_version, now->version);
    o.states->order_version = -1;
    o.states->broker_epoch = q.broker_epoch; /* not of this image */
    drop_unknown_states(o.states);
    forget_all_stopping(&q);
    sort_states(&q);
    check_same(&update_metadata_request_schema, 8, &q, o.states);
    metadata_image_put(now);
    metadata_image_put(before);
    arena_fini(&arena);
    arena_fini(&f.arena);
}

static void states_are_said_as_kafka_says_them(void **state)
{
    (void)state;
    say_states_again("UpdateMetadata-v8-request-1", false);
    say_states_again("UpdateMetadata-v8-request-2", true);
    say_states_again("UpdateMetadata-v8-request-3", false); /* replicas that are offline */
    say_states_again("UpdateMetadata-v8-request-4", false); /* brokers alone */
}

/* ---- LeaderAndIsr ----------------------------------------------------------------------- */

static int compare_role_topics(const void *a, const void *b)
{
    return str_cmp(((const struct leader_and_isr_request_topic *)a)->topic_name,
                   ((const struct leader_and_isr_request_topic *)b)->topic_name);
}

static int compare_roles(const void *a, const void *b)
{
    return ((const struct leader_and_isr_request_partition *)a)->partition_index -
           ((const struct leader_and_isr_request_partition *)b)->partition_index;
}

static void sort_roles(struct leader_and_isr_request *q)
{
    sort(q->topic_states.v, q->topic_states.n, sizeof(*q->topic_states.v), compare_role_topics);
    for (int32_t t = 0; t < q->topic_states.n; t++)
        sort(q->topic_states.v[t].partition_states.v, q->topic_states.v[t].partition_states.n,
             sizeof(*q->topic_states.v[t].partition_states.v), compare_roles);
}

static void forget_recovery(struct leader_and_isr_request *q)
{
    for (int32_t t = 0; t < q->topic_states.n; t++)
        for (int32_t i = 0; i < q->topic_states.v[t].partition_states.n; i++)
            q->topic_states.v[t].partition_states.v[i].leader_recovery_state = 0;
}

/* The cluster of the frames: three brokers, of which `to` is the receiver. */
static struct metadata_image *cluster_of(const struct leader_and_isr_request *q, int32_t to)
{
    struct metadata_image *image = metadata_image_new();
    struct metadata_delta plan = {0};

    for (int32_t id = 1; id <= 3; id++) {
        struct metadata_broker *b =
            metadata_broker_new(id, id == to ? q->broker_epoch : 1, str_null());

        metadata_broker_add_endpoint(b, STR_LIT("PLAINTEXT"), STR_LIT("127.0.0.1"), 25100 + id);
        metadata_delta_put_broker(&plan, b);
    }
    take(&image, &plan);
    return image;
}

/* The topics as they were before their partitions began to move. */
static void put_unmoved(struct metadata_delta *plan, const struct leader_and_isr_request *q)
{
    int32_t ids[3];

    for (int32_t t = 0; t < q->topic_states.n; t++) {
        const struct leader_and_isr_request_topic *topic = &q->topic_states.v[t];
        const struct leader_and_isr_request_partition *s = &topic->partition_states.v[0];
        struct metadata_ids adding = {s->adding_replicas.v, s->adding_replicas.n};
        struct metadata_partition p = {.leader = s->leader, .replicas = {ids, 0}};

        for (int32_t i = 0; i < s->replicas.n; i++)
            if (!metadata_ids_have(&adding, s->replicas.v[i]))
                ids[p.replicas.count++] = s->replicas.v[i];
        metadata_delta_put_topic(plan, metadata_topic_new(topic->topic_name, topic->topic_id, 0));
        metadata_delta_set_partition(plan, topic->topic_name, s->partition_index, &p);
    }
}

/* Told to a broker that is new, or to one that knew the topics but had no replica of them. */
static void say_roles_again(const char *name, int32_t to, bool was_there)
{
    struct metadata_image *before = metadata_image_new();
    struct metadata_image *now;
    struct metadata_delta plan = {0};
    struct leader_and_isr_request q;
    struct leader_and_isr_response answer;
    struct controller_orders o;
    struct arena arena;
    struct frame f;

    read_frame(&f, name, &leader_and_isr_request_schema, &q);
    arena_init(&arena, 0);
    wire_init(&leader_and_isr_response_schema, &answer);
    now = cluster_of(&q, to);
    if (was_there) {
        put_unmoved(&plan, &q);
        take(&now, &plan);
        metadata_image_put(before);
        before = metadata_image_get(now);
    }
    assert_int_equal(controller_obey_roles(now, q.broker_epoch, &q, &arena, &answer, &plan),
                     ERR_NONE);
    take(&now, &plan);
    controller_orders(before, now, to, STR_LIT("PLAINTEXT"), &arena, &o);
    assert_non_null(o.roles);
    assert_int_equal(o.roles->type, was_there ? 1 : 2);
    o.roles->type = q.type;
    assert_int_equal(o.roles->order_version, now->version);
    o.roles->order_version = -1;
    forget_recovery(&q);
    sort_roles(&q);
    check_same(&leader_and_isr_request_schema, 7, &q, o.roles);
    metadata_image_put(now);
    metadata_image_put(before);
    arena_fini(&arena);
    arena_fini(&f.arena);
}

static void roles_are_said_as_kafka_says_them(void **state)
{
    (void)state;
    say_roles_again("LeaderAndIsr-v7-request-1", 2, false); /* an unclean election */
    say_roles_again("LeaderAndIsr-v7-request-2", 2, true);  /* a reassignment */
    say_roles_again("LeaderAndIsr-v7-request-3", 2, false); /* a new topic */
}

/* ---- StopReplica ------------------------------------------------------------------------ */

/* A topic that is deleted: the partition's epoch is given up with it. */
static void stops_are_said_as_kafka_says_them(void **state)
{
    struct metadata_image *before = metadata_image_new();
    struct metadata_image *now;
    struct metadata_delta plan = {0};
    struct stop_replica_request q;
    struct controller_orders o;
    struct arena arena;
    struct frame f;
    int32_t self = 2;
    struct metadata_partition p = {.leader = 2, .replicas = {&self, 1}, .isr = {&self, 1}};
    struct str name;

    (void)state;
    read_frame(&f, "StopReplica-v4-request-2", &stop_replica_request_schema, &q);
    arena_init(&arena, 0);
    name = q.topic_states.v[0].topic_name;
    metadata_delta_set_controller(&plan, q.controller_id, q.controller_epoch);
    metadata_delta_put_broker(&plan, metadata_broker_new(self, q.broker_epoch, str_null()));
    metadata_delta_put_topic(&plan, metadata_topic_new(name, uuid_from_random(1, 2), 0));
    metadata_delta_set_partition(&plan, name, 0, &p);
    take(&before, &plan);
    metadata_delta_remove_topic(&plan, name);
    now = metadata_image_get(before);
    take(&now, &plan);
    controller_orders(before, now, self, STR_LIT("PLAINTEXT"), &arena, &o);
    assert_non_null(o.stops);
    assert_int_equal(o.stops->order_version, now->version);
    o.stops->order_version = -1;
    check_same(&stop_replica_request_schema, 4, &q, o.stops);
    metadata_image_put(now);
    metadata_image_put(before);
    arena_fini(&arena);
    arena_fini(&f.arena);
}

static void a_late_order_is_not_obeyed(void **state)
{
    struct controller_heard heard = {0};

    (void)state;
    assert_int_equal(controller_hear(&heard, 3, 7), ERR_NONE);
    assert_int_equal(controller_hear(&heard, 3, 7), ERR_NONE); /* of the same round */
    assert_int_equal(controller_hear(&heard, 3, 6), ERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(controller_hear(&heard, 4, 1), ERR_NONE); /* another controller counts anew */
    assert_int_equal(controller_hear(&heard, 4, -1), ERR_NONE);
}

static void all_that_there_is_does_not_name_what_is_gone(void **state)
{
    struct metadata_image *image = metadata_image_new();
    struct update_metadata_request q;
    struct metadata_delta plan = {0};

    (void)state;
    metadata_delta_set_controller(&plan, 1, 3);
    metadata_delta_put_topic(&plan, metadata_topic_new(STR_LIT("gone"), uuid_from_random(1, 2), 1));
    take(&image, &plan);
    wire_init(&update_metadata_request_schema, &q);
    q.controller_id = 1;
    q.controller_epoch = 3;
    q.type = CONTROLLER_ORDERS_SOME;
    assert_int_equal(controller_obey_states(image, -1, &q, &plan), ERR_NONE);
    take(&image, &plan);
    assert_int_equal(image->topic_count, 1);
    q.type = CONTROLLER_ORDERS_ALL;
    assert_int_equal(controller_obey_states(image, -1, &q, &plan), ERR_NONE);
    take(&image, &plan);
    assert_int_equal(image->topic_count, 0);
    metadata_image_put(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_said_as_kafka_says_them),
        cmocka_unit_test(roles_are_said_as_kafka_says_them),
        cmocka_unit_test(stops_are_said_as_kafka_says_them),
        cmocka_unit_test(a_late_order_is_not_obeyed),
        cmocka_unit_test(all_that_there_is_does_not_name_what_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
