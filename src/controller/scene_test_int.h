/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CONTROLLER_SCENE_TEST_INT_H
#define SL_CONTROLLER_SCENE_TEST_INT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"

/*
 * A cluster as text, for tests. A partition is
 *
 *     a-0 leader 1 (5,9) replicas 1,2,3 isr 1,2 adding 3 removing 2
 *
 * with its leader epoch and its partition epoch; lists that are empty are left out at the end, and
 * "isr -" is an empty one.
 */
#define SCENE_IDS_MAX 8

struct scene {
    struct metadata_image *image;
    struct metadata_delta plan;
    struct arena arena;
};

static inline void scene_apply(struct scene *s)
{
    struct metadata_image *next = metadata_apply(s->image, &s->plan);

    metadata_delta_fini(&s->plan);
    metadata_image_put(s->image);
    s->image = next;
}

static inline struct metadata_ids scene_ids(int32_t *v, const char *text)
{
    struct metadata_ids ids = {.ids = v, .count = 0};
    char *end = NULL;

    while (*text >= '0' && *text <= '9' && ids.count < SCENE_IDS_MAX) {
        v[ids.count++] = (int32_t)strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return ids;
}

/* Registers live brokers: "1,2,3". */
static inline void scene_brokers(struct scene *s, const char *text)
{
    int32_t v[SCENE_IDS_MAX];
    struct metadata_ids ids = scene_ids(v, text);

    for (int32_t i = 0; i < ids.count; i++)
        metadata_delta_put_broker(&s->plan, metadata_broker_new(v[i], 10 + v[i], str_null()));
    scene_apply(s);
}

static inline void scene_begin(struct scene *s, const char *brokers)
{
    *s = (struct scene){.image = metadata_image_new()};
    arena_init(&s->arena, 0);
    metadata_delta_set_controller(&s->plan, 1, 1);
    scene_brokers(s, brokers);
}

static inline void scene_end(struct scene *s)
{
    metadata_delta_fini(&s->plan);
    metadata_image_put(s->image);
    arena_fini(&s->arena);
}

static inline void scene_goes(struct scene *s, int32_t broker)
{
    metadata_delta_remove_broker(&s->plan, broker);
    scene_apply(s);
}

static inline void scene_set(struct scene *s, const char *name, int32_t index,
                             const struct metadata_partition *p)
{
    struct uuid id = uuid_from_random((uint64_t)name[0], 1);

    if (!metadata_find_topic(s->image, str_of(name)))
        metadata_delta_put_topic(&s->plan, metadata_topic_new(str_of(name), id, 0));
    metadata_delta_set_partition(&s->plan, str_of(name), index, p);
    scene_apply(s);
}

/* Partitions of a topic are given in order. */
static inline void scene_partition(struct scene *s, const char *text)
{
    struct metadata_partition p = {.leader = -1};
    char name[16];
    char lists[4][32] = {"", "", "", ""};
    int32_t ids[4][SCENE_IDS_MAX];
    int32_t index;

    assert_true(sscanf(text,
                       "%15[a-z]-%d leader %d (%d,%d) replicas %31s isr %31s adding %31s"
                       " removing %31s",
                       name, &index, &p.leader, &p.leader_epoch, &p.partition_epoch, lists[0],
                       lists[1], lists[2], lists[3]) >= 7);
    p.replicas = scene_ids(ids[0], lists[0]);
    p.isr = scene_ids(ids[1], lists[1]);
    p.adding = scene_ids(ids[2], lists[2]);
    p.removing = scene_ids(ids[3], lists[3]);
    scene_set(s, name, index, &p);
}

static inline int scene_put_ids(char *to, size_t size, const char *what,
                                const struct metadata_ids *ids)
{
    int n = snprintf(to, size, " %s %s", what, ids->count == 0 ? "-" : "");

    for (int32_t i = 0; i < ids->count; i++)
        n += snprintf(to + n, size - (size_t)n, i > 0 ? ",%d" : "%d", ids->ids[i]);
    return n;
}

/* What the partition that begins the text is now. */
static inline void scene_is(const struct scene *s, const char *expected)
{
    const char *dash = strchr(expected, '-');
    struct str name = {.p = expected, .n = (int32_t)(dash - expected)};
    const struct metadata_topic *topic = metadata_find_topic(s->image, name);
    int32_t index = (int32_t)strtol(dash + 1, NULL, 10);
    const struct metadata_partition *p = topic ? metadata_find_partition(topic, index) : NULL;
    char text[256];
    int n;

    assert_non_null(p);
    n = snprintf(text, sizeof(text), "%.*s-%d leader %d (%d,%d)", STR_ARG(name), index, p->leader,
                 p->leader_epoch, p->partition_epoch);
    n += scene_put_ids(text + n, sizeof(text) - (size_t)n, "replicas", &p->replicas);
    n += scene_put_ids(text + n, sizeof(text) - (size_t)n, "isr", &p->isr);
    if (p->adding.count > 0)
        n += scene_put_ids(text + n, sizeof(text) - (size_t)n, "adding", &p->adding);
    if (p->removing.count > 0)
        scene_put_ids(text + n, sizeof(text) - (size_t)n, "removing", &p->removing);
    assert_string_equal(text, expected);
}

#endif
