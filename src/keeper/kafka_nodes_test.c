/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Apache Kafka 3.9 keeps in ZooKeeper, read and written again byte for byte.
 *
 * With arguments, "host:port/chroot" of a ZooKeeper and the name of a file, the whole tree is read
 * through the keeper and also written to the file, a line for each node: its path, a tab, its data
 * ("-" for null). Without, the lines of tests/golden/znodes/kafka-3.9.txt, which came about like
 * that, are read. A node of which nothing is known has to be empty, so that none is forgotten.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "keeper/keeper.h"
#include "keeper/znodes.h"

#define GOLDEN "tests/golden/znodes/kafka-3.9.txt"

/* ---- Each kind of node, read and written. */

typedef char *(*again_fn)(struct bytes data, struct arena *a);

static char *controller_again(struct bytes data, struct arena *a)
{
    char *text = str_dup((struct str){.p = (const char *)data.p, .n = data.n});
    const char *time = strstr(text, "\"timestamp\":\"");
    int32_t id;

    (void)a;
    assert_non_null(time);
    int64_t ms = strtoll(time + strlen("\"timestamp\":\""), NULL, 10);

    free(text);
    return znode_controller_parse(data, &id) ? NULL : znode_controller_json(id, ms);
}

static char *epoch_again(struct bytes data, struct arena *a)
{
    int32_t epoch;

    (void)a;
    return znode_epoch_parse(data, &epoch) ? NULL : znode_epoch_text(epoch);
}

static char *cluster_id_again(struct bytes data, struct arena *a)
{
    struct str id;

    return znode_cluster_id_parse(data, a, &id) ? NULL : znode_cluster_id_json(id);
}

static char *producer_ids_again(struct bytes data, struct arena *a)
{
    struct znode_producer_ids ids;

    (void)a;
    return znode_producer_ids_parse(data, &ids) ? NULL : znode_producer_ids_json(&ids);
}

static char *feature_again(struct bytes data, struct arena *a)
{
    (void)data;
    (void)a;
    return znode_feature_json();
}

static char *broker_again(struct bytes data, struct arena *a)
{
    struct znode_broker b;

    return znode_broker_parse(data, a, &b) ? NULL : znode_broker_json(&b);
}

static char *topic_again(struct bytes data, struct arena *a)
{
    struct znode_topic t;

    return znode_topic_parse(data, a, &t) ? NULL : znode_topic_json(&t);
}

static char *state_again(struct bytes data, struct arena *a)
{
    struct znode_state s;

    return znode_state_parse(data, a, &s) ? NULL : znode_state_json(&s);
}

static char *config_again(struct bytes data, struct arena *a)
{
    struct config_overrides o = {0};
    char *text = znode_config_parse(data, &o) ? NULL : znode_config_json(&o);

    (void)a;
    config_overrides_fini(&o);
    return text;
}

static char *config_change_again(struct bytes data, struct arena *a)
{
    struct str entity;

    if (znode_config_change_parse(data, a, &entity))
        return NULL;
    char *name = str_dup(entity);
    char *text = znode_config_change_json(name);

    free(name);
    return text;
}

/* By the path; a star is one name. The first that fits. */
struct kind {
    const char *pattern;
    again_fn again;
    int count;
};

static const struct kind all_kinds[] = {
    {"/controller", controller_again, 0},
    {"/controller_epoch", epoch_again, 0},
    {"/cluster/id", cluster_id_again, 0},
    {"/latest_producer_id_block", producer_ids_again, 0},
    {"/feature", feature_again, 0},
    {"/brokers/ids/*", broker_again, 0},
    {"/brokers/topics/*/partitions/*/state", state_again, 0},
    {"/brokers/topics/*", topic_again, 0},
    {"/config/changes/*", config_change_again, 0},
    {"/config/*/*", config_again, 0},
    {"/config/users/*/clients/*", config_again, 0},
};

static bool fits(const char *pattern, const char *path)
{
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*pattern != *path++)
                return false;
            continue;
        }
        path += strcspn(path, "/");
    }
    return *path == '\0';
}

struct tally {
    struct kind kinds[ARRAY_LEN(all_kinds)];
    int empty;
    int wrong;
};

static void tally_begin(struct tally *t)
{
    *t = (struct tally){0};
    memcpy(t->kinds, all_kinds, sizeof(all_kinds));
}

static struct kind *kind_of(struct tally *t, const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(t->kinds); i++)
        if (fits(t->kinds[i].pattern, path))
            return &t->kinds[i];
    return NULL;
}

static void complain(struct tally *t, const char *path, struct bytes data, const char *ours)
{
    fprintf(stderr, "%s\n  Kafka %.*s\n  ours  %s\n", path, data.n, (const char *)data.p,
            ours ? ours : "not understood");
    t->wrong++;
}

/* Kafka writes the keys of a configuration in the order of a hash table, ours are sorted. */
static bool is_same(const char *ours, struct bytes data, bool in_any_order)
{
    if (!ours)
        return false;
    if (!in_any_order)
        return strlen(ours) == (size_t)data.n && memcmp(ours, data.p, (size_t)data.n) == 0;
    json_t *a = json_loads(ours, 0, NULL);
    json_t *b = json_loadb((const char *)data.p, (size_t)data.n, 0, NULL);
    bool is_equal = a && json_equal(a, b);

    json_decref(a);
    json_decref(b);
    return is_equal;
}

static void compare(struct tally *t, const char *path, struct bytes data)
{
    struct kind *kind = kind_of(t, path);
    struct arena a;
    char *ours;

    if (data.n <= 0) {
        t->empty++;
        return;
    }
    arena_init(&a, 0);
    ours = kind ? kind->again(data, &a) : NULL;
    if (kind)
        kind->count++;
    if (!is_same(ours, data, kind && kind->again == config_again))
        complain(t, path, data, ours);
    free(ours);
    arena_fini(&a);
}

/* Every kind has to have been there. */
static void tally_check(const struct tally *t)
{
    for (size_t i = 0; i < ARRAY_LEN(t->kinds); i++) {
        printf("%4d %s\n", t->kinds[i].count, t->kinds[i].pattern);
        if (t->kinds[i].count == 0)
            fprintf(stderr, "no node %s\n", t->kinds[i].pattern);
        assert_true(t->kinds[i].count > 0);
    }
    printf("%4d without data\n", t->empty);
    assert_int_equal(t->wrong, 0);
}

/* ---- The golden file. */

static void golden_nodes_are_written_as_kafka_has_written_them(void **state)
{
    FILE *file = fopen(GOLDEN, "r");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    struct tally t;

    (void)state;
    assert_non_null(file);
    tally_begin(&t);
    while ((n = getline(&line, &cap, file)) > 0) {
        char *tab = strchr(line, '\t');

        if (*line == '#')
            continue;
        assert_non_null(tab);
        line[n - 1] = '\0';
        *tab = '\0';
        bool is_null = strcmp(tab + 1, "-") == 0;

        compare(&t, line,
                is_null
                    ? bytes_null()
                    : (struct bytes){.p = (const uint8_t *)tab + 1, .n = (int32_t)strlen(tab + 1)});
    }
    free(line);
    fclose(file);
    tally_check(&t);
}

/* ---- The tree of a cluster. */

struct walk {
    struct io *io;
    struct io_loop *loop;
    struct keeper *keeper;
    struct tally tally;
    FILE *out;
    int pending;
};

struct visit {
    struct walk *walk;
    struct keeper_call get;
    struct keeper_call children;
    char *path;
    int pending;
};

static void walk_closed(void *ctx)
{
    io_stop(((struct walk *)ctx)->io);
}

static void visit_end(struct visit *v)
{
    struct walk *w = v->walk;

    if (--v->pending > 0)
        return;
    keeper_call_release(&v->get);
    keeper_call_release(&v->children);
    free(v->path);
    free(v);
    if (--w->pending == 0)
        keeper_close(w->keeper, walk_closed, w);
}

static void got(struct keeper_call *call)
{
    struct visit *v = CONTAINER_OF(call, struct visit, get);

    assert_int_equal(call->err, ERR_NONE);
    compare(&v->walk->tally, v->path, call->data);
    fprintf(v->walk->out, "%s\t%.*s\n", v->path, call->data.n < 0 ? 1 : call->data.n,
            call->data.n < 0 ? "-" : (const char *)call->data.p);
    visit_end(v);
}

static void visit(struct walk *w, char *path);

static void got_children(struct keeper_call *call)
{
    struct visit *v = CONTAINER_OF(call, struct visit, children);
    bool is_root = strcmp(v->path, "/") == 0;

    assert_int_equal(call->err, ERR_NONE);
    for (int i = 0; i < call->children_count; i++)
        visit(v->walk, xasprintf("%s/%s", is_root ? "" : v->path, call->children[i]));
    visit_end(v);
}

/* Takes the path. */
static void visit(struct walk *w, char *path)
{
    struct visit *v = xcalloc(1, sizeof(*v));

    *v = (struct visit){
        .walk = w, .get.done = got, .children.done = got_children, .path = path, .pending = 2};
    w->pending++;
    keeper_get(w->keeper, path, NULL, &v->get);
    keeper_children(w->keeper, path, NULL, &v->children);
}

static void walk_begins(void *ctx)
{
    visit(ctx, xstrdup("/"));
}

static const char *connect_string, *file_name; /* of the command line */

static void every_node_of_a_cluster_is_written_as_kafka_has_written_it(void **state)
{
    struct walk w = {.out = fopen(file_name, "w")};
    struct keeper_zookeeper_args args = {
        .connect = connect_string, .session_timeout_ms = 10000, .in_flight_max = 10};
    char *message;

    (void)state;
    assert_non_null(w.out);
    tally_begin(&w.tally);
    w.io = io_new(&(struct io_options){.trace_level = TRACE_WARN});
    w.loop = io_loop_new(w.io, "control", walk_begins, &w);
    assert_int_equal(keeper_zookeeper_open(w.io, &args, w.loop, NULL, NULL, &w.keeper, &message),
                     ERR_NONE);
    io_run(w.io);
    io_free(w.io);
    fclose(w.out);
    tally_check(&w.tally);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest golden[] = {
        cmocka_unit_test(golden_nodes_are_written_as_kafka_has_written_them),
    };
    const struct CMUnitTest live[] = {
        cmocka_unit_test(every_node_of_a_cluster_is_written_as_kafka_has_written_it),
    };

    if (argc < 3)
        return cmocka_run_group_tests_name("nodes of Kafka 3.9", golden, NULL, NULL);
    connect_string = argv[1];
    file_name = argv[2];
    return cmocka_run_group_tests_name("nodes of a cluster", live, NULL, NULL);
}
