/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the contents of the keeper's nodes, which any broker or tool may have written.
 *
 * The first byte chooses the node; the rest is its content.
 *
 * What must hold: nothing is read outside the input (ASan); a text of our own can be made of what
 * was accepted; and that is a fixed point: it is accepted, and the same text is made of it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "keeper/znodes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parses a node's content and makes a text of what it says; NULL when it is refused. */
typedef char *(*pass_fn)(struct bytes in, struct arena *a);

static char *checked(char *text)
{
    assert(text);
    return text;
}

static char *pass_controller(struct bytes in, struct arena *a)
{
    int32_t id;

    (void)a;
    return znode_controller_parse(in, &id) ? NULL : checked(znode_controller_json(id, 0));
}

static char *pass_epoch(struct bytes in, struct arena *a)
{
    int32_t epoch;

    (void)a;
    return znode_epoch_parse(in, &epoch) ? NULL : checked(znode_epoch_text(epoch));
}

static char *pass_cluster_id(struct bytes in, struct arena *a)
{
    struct str id;

    return znode_cluster_id_parse(in, a, &id) ? NULL : checked(znode_cluster_id_json(id));
}

static char *pass_producer_ids(struct bytes in, struct arena *a)
{
    struct znode_producer_ids ids;

    (void)a;
    return znode_producer_ids_parse(in, &ids) ? NULL : checked(znode_producer_ids_json(&ids));
}

static char *pass_broker(struct bytes in, struct arena *a)
{
    struct znode_broker b;

    return znode_broker_parse(in, a, &b) ? NULL : checked(znode_broker_json(&b));
}

static char *pass_topic(struct bytes in, struct arena *a)
{
    struct znode_topic t;

    return znode_topic_parse(in, a, &t) ? NULL : checked(znode_topic_json(&t));
}

static char *pass_state(struct bytes in, struct arena *a)
{
    struct znode_state s;

    return znode_state_parse(in, a, &s) ? NULL : checked(znode_state_json(&s));
}

static char *pass_config(struct bytes in, struct arena *a)
{
    struct config_overrides o;
    enum err err = znode_config_parse(in, &o);
    char *text = err ? NULL : checked(znode_config_json(&o));

    (void)a;
    config_overrides_fini(&o);
    return text;
}

static char *pass_config_change(struct bytes in, struct arena *a)
{
    struct str entity;
    char *name, *text;

    if (znode_config_change_parse(in, a, &entity))
        return NULL;
    name = str_dup(entity);
    text = checked(znode_config_change_json(name));
    free(name);
    return text;
}

static char *pass_partitions(struct bytes in, struct arena *a)
{
    struct znode_partitions list;

    if (znode_partitions_parse(in, false, a, &list))
        return NULL;
    return checked(znode_partitions_json(&list, false));
}

static char *pass_reassignment(struct bytes in, struct arena *a)
{
    struct znode_partitions list;

    if (znode_partitions_parse(in, true, a, &list))
        return NULL;
    return checked(znode_partitions_json(&list, true));
}

static char *pass_log_dir_event(struct bytes in, struct arena *a)
{
    int32_t id;

    (void)a;
    return znode_log_dir_event_parse(in, &id) ? NULL : checked(znode_log_dir_event_json(id));
}

static char *pass_entity_name(struct bytes in, struct arena *a)
{
    struct str name;
    char *path, *text;

    if (znode_entity_name((struct str){.p = (const char *)in.p, .n = in.n}, a, &name))
        return NULL;
    path = znode_config_entity(ZNODE_ENTITY_USERS, name);
    text = xstrdup(strchr(path, '/') + 1);
    free(path);
    return text;
}

static char *pass_sequence(struct bytes in, struct arena *a)
{
    int32_t sequence;

    (void)a;
    if (znode_sequence((struct str){.p = (const char *)in.p, .n = in.n}, &sequence))
        return NULL;
    assert(sequence >= 0);
    return xasprintf("%010d", sequence);
}

static const pass_fn passes[] = {
    pass_controller, pass_epoch,        pass_cluster_id,  pass_producer_ids,  pass_broker,
    pass_topic,      pass_state,        pass_config,      pass_partitions,    pass_config_change,
    pass_sequence,   pass_reassignment, pass_entity_name, pass_log_dir_event,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *first, *second;
    struct arena a;
    pass_fn pass;
    uint8_t *copy;

    if (size < 1 || size > 65536)
        return 0;
    arena_init(&a, 0);
    pass = passes[data[0] % ARRAY_LEN(passes)];
    copy = xmemdup(data + 1, size - 1);
    first = pass((struct bytes){.p = copy, .n = (int32_t)size - 1}, &a);
    if (first) {
        second = pass((struct bytes){.p = (uint8_t *)first, .n = (int32_t)strlen(first)}, &a);
        assert(second && strcmp(first, second) == 0);
        free(second);
    }
    free(first);
    free(copy);
    arena_fini(&a);
    return 0;
}
