/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline cluster`: what a cluster is made of, and whether it is well. One question to any
 * broker for the brokers, one for the topics; if replicas are missing, two more (cluster_health.c).
 * Only with --partitions or --api-versions is each broker asked, because each knows its own.
 */
#include <stdlib.h>

#include "cli/cluster_int.h"
#include "cli/table.h"

static const char help[] =
    "usage: strandline cluster [--partitions [--unhealthy]] [--api-versions]\n"
    "\n"
    "Shows the cluster's id, its controller and brokers, how many topics and partitions it has, "
    "how\n"
    "many partitions each broker leads and has replicas of, and how many partitions are not well:\n"
    "  under-replicated   a replica is not in sync\n"
    "  under-min-isr      fewer are in sync than min.insync.replicas: acks=all is refused\n"
    "  offline            without a leader: neither written nor read\n"
    "  moving             on the way to other brokers ('strandline reassign list')\n"
    "\n"
    "  --partitions     also each partition: leader, leader epoch, replicas, which of them are in\n"
    "                   sync and which are not, where the leader's log ends and how large it is,\n"
    "                   and where each replica's log ends (how many records it is behind)\n"
    "  --unhealthy      of the partitions only those that are not well\n"
    "  --api-versions   also the features and the versions of every API, of each broker\n"
    "  --json           results as JSON\n" TOOL_OPTIONS_HELP;

static struct cluster_tool *cluster_of(struct tool *t)
{
    return CONTAINER_OF(t, struct cluster_tool, tool);
}

static void finish(struct cluster_tool *s)
{
    if (s->tool.is_json) {
        tool_print_json(s->json);
        s->json = NULL;
    }
    tool_end(&s->tool, s->has_failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- Versions. */

static void print_versions(const struct api_versions_response *r)
{
    for (int32_t i = 0; i < r->supported_features.n; i++)
        printf("  feature %.*s  versions %d..%d\n", STR_ARG(r->supported_features.v[i].name),
               r->supported_features.v[i].min_version, r->supported_features.v[i].max_version);
    for (int32_t i = 0; i < r->finalized_features.n; i++)
        printf("  finalized %.*s  level %d\n", STR_ARG(r->finalized_features.v[i].name),
               r->finalized_features.v[i].max_version_level);
    for (int32_t i = 0; i < r->api_keys.n; i++) {
        const struct api_versions_response_api_key *k = &r->api_keys.v[i];
        const struct api *api = api_find(k->api_key);

        printf("  api %d  versions %d..%d  %s\n", k->api_key, k->min_version, k->max_version,
               api ? api->name : "(not known here)");
    }
}

static json_t *json_of_apis(const struct api_versions_response *r)
{
    json_t *apis = json_array();

    for (int32_t i = 0; i < r->api_keys.n; i++) {
        const struct api_versions_response_api_key *k = &r->api_keys.v[i];
        const struct api *api = api_find(k->api_key);

        json_array_append_new(apis, json_pack("{s:i, s:s?, s:i, s:i}", "key", (int)k->api_key,
                                              "name", api ? api->name : NULL, "min",
                                              (int)k->min_version, "max", (int)k->max_version));
    }
    return apis;
}

static void add_versions(json_t *broker, const struct api_versions_response *r)
{
    json_t *supported = json_object();
    json_t *finalized = json_object();

    for (int32_t i = 0; i < r->supported_features.n; i++) {
        const struct api_versions_response_supported_feature *f = &r->supported_features.v[i];

        json_object_setn_new(
            supported, f->name.p, (size_t)f->name.n,
            json_pack("{s:i, s:i}", "min", (int)f->min_version, "max", (int)f->max_version));
    }
    for (int32_t i = 0; i < r->finalized_features.n; i++) {
        const struct api_versions_response_finalized_feature *f = &r->finalized_features.v[i];

        json_object_setn_new(finalized, f->name.p, (size_t)f->name.n,
                             json_integer(f->max_version_level));
    }
    json_object_set_new(broker, "supported_features", supported);
    json_object_set_new(broker, "finalized_features", finalized);
    json_object_set_new(broker, "apis", json_of_apis(r));
}

static void ask_versions(struct cluster_tool *s);

static void versions_described(struct admin_op *op)
{
    struct cluster_tool *s = CONTAINER_OF(op, struct cluster_tool, versions);
    const struct describe_cluster_response *cluster = s->cluster.response;
    const struct api_versions_response *r = op->response;

    if (!tool_check(&s->tool, op, "ask for versions"))
        return;
    if (s->tool.is_json)
        add_versions(json_array_get(json_object_get(s->json, "brokers"), (size_t)s->at), r);
    else
        printf("broker %d\n", cluster->brokers.v[s->at].broker_id);
    if (!s->tool.is_json)
        print_versions(r);
    s->at++;
    ask_versions(s);
}

static void ask_versions(struct cluster_tool *s)
{
    const struct describe_cluster_response *r = s->cluster.response;

    if (!s->shows_versions || s->at >= r->brokers.n) {
        finish(s);
        return;
    }
    s->versions.done = versions_described;
    admin_describe_versions(s->tool.client, &s->versions, r->brokers.v[s->at].broker_id);
}

/* ---- Brokers and topics. */

struct sums {
    int32_t under_replicated;
    int32_t under_min_isr; /* -1: not known, as the next */
    int32_t moving;
    int32_t offline;
};

static struct sums sums_of(const struct cluster_tool *s)
{
    struct sums sums = {0};

    for (int32_t i = 0; i < s->partition_count; i++) {
        const struct cluster_partition *x = &s->partitions[i];

        sums.under_replicated += cluster__is_under_replicated(x);
        sums.under_min_isr += cluster__is_under_min_isr(x);
        sums.moving += x->is_moving;
        sums.offline += cluster__is_offline(x);
    }
    if (!s->knows_min_isr)
        sums.under_min_isr = -1;
    if (!s->knows_moves)
        sums.moving = -1;
    return sums;
}

static int32_t led_by(const struct cluster_tool *s, int32_t broker)
{
    int32_t n = 0;

    for (int32_t i = 0; i < s->partition_count; i++)
        n += s->partitions[i].p->leader_id == broker;
    return n;
}

static int32_t replicas_at(const struct cluster_tool *s, int32_t broker)
{
    int32_t n = 0;

    for (int32_t i = 0; i < s->partition_count; i++)
        n += ids_have(s->partitions[i].p->replica_nodes.v, s->partitions[i].p->replica_nodes.n,
                      broker);
    return n;
}

static bool is_listed(const struct describe_cluster_response *r, int32_t broker)
{
    for (int32_t i = 0; i < r->brokers.n; i++)
        if (r->brokers.v[i].broker_id == broker)
            return true;
    return false;
}

/* Brokers that have replicas and are not there, each once. */
static int32_t absent_brokers(struct cluster_tool *s, int32_t **ids)
{
    const struct describe_cluster_response *r = s->cluster.response;
    int32_t cap = 0;
    int32_t n = 0;

    for (int32_t i = 0; i < s->partition_count; i++)
        cap += MAX(s->partitions[i].p->replica_nodes.n, 0);
    *ids = arena_calloc(&s->arena, (size_t)cap + 1, sizeof(**ids));
    for (int32_t i = 0; i < s->partition_count; i++)
        for (int32_t k = 0; k < s->partitions[i].p->replica_nodes.n; k++) {
            int32_t id = s->partitions[i].p->replica_nodes.v[k];

            if (!is_listed(r, id) && !ids_have(*ids, n, id))
                (*ids)[n++] = id;
        }
    return n;
}

static json_t *number_or_null(int32_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static json_t *json_of_brokers(const struct cluster_tool *s)
{
    const struct describe_cluster_response *r = s->cluster.response;
    json_t *brokers = json_array();

    for (int32_t i = 0; i < r->brokers.n; i++) {
        const struct describe_cluster_response_broker *b = &r->brokers.v[i];

        json_array_append_new(
            brokers, json_pack("{s:i, s:o, s:i, s:o, s:i, s:i}", "broker", (int)b->broker_id,
                               "host", tool_json_of(b->host), "port", (int)b->port, "rack",
                               tool_json_of(b->rack), "leads", (int)led_by(s, b->broker_id),
                               "replicas", (int)replicas_at(s, b->broker_id)));
    }
    return brokers;
}

static json_t *json_of_cluster(struct cluster_tool *s, const struct sums *sums)
{
    const struct describe_cluster_response *cluster = s->cluster.response;
    const struct metadata_response *r = s->topics.response;
    json_t *absent = json_array();
    int32_t *ids;
    int32_t n = absent_brokers(s, &ids);

    for (int32_t i = 0; i < n; i++)
        json_array_append_new(absent, json_pack("{s:i, s:i}", "broker", (int)ids[i], "replicas",
                                                (int)replicas_at(s, ids[i])));
    return json_pack("{s:o, s:i, s:o, s:o, s:i, s:i, s:i, s:o, s:i, s:o}", "cluster_id",
                     tool_json_of(cluster->cluster_id), "controller", (int)cluster->controller_id,
                     "brokers", json_of_brokers(s), "absent", absent, "topics",
                     (int)MAX(r->topics.n, 0), "partitions", (int)s->partition_count,
                     "under_replicated", (int)sums->under_replicated, "under_min_isr",
                     number_or_null(sums->under_min_isr), "offline", (int)sums->offline, "moving",
                     number_or_null(sums->moving));
}

static void print_number(const char *name, int32_t n)
{
    if (n < 0)
        printf("  %s -", name);
    else
        printf("  %s %d", name, n);
}

static void print_brokers(struct cluster_tool *s)
{
    const struct describe_cluster_response *r = s->cluster.response;
    struct table table = {.columns = 5};
    int32_t *ids;
    int32_t n = absent_brokers(s, &ids);

    for (int32_t i = 0; i < r->brokers.n; i++) {
        const struct describe_cluster_response_broker *b = &r->brokers.v[i];

        table_add(&table, "broker %d", b->broker_id);
        table_add(&table, "address %.*s:%d", STR_ARG(b->host), b->port);
        table_add(&table, "%s%.*s", b->rack.n > 0 ? "rack " : "", STR_ARG(b->rack));
        table_add(&table, "leads %d", led_by(s, b->broker_id));
        table_add(&table, "replicas %d", replicas_at(s, b->broker_id));
    }
    for (int32_t i = 0; i < n; i++) {
        table_add(&table, "broker %d", ids[i]);
        table_add(&table, "not there");
        table_add(&table, "%s", "");
        table_add(&table, "leads %d", led_by(s, ids[i]));
        table_add(&table, "replicas %d", replicas_at(s, ids[i]));
    }
    table_print(&table, "  ");
    table_fini(&table);
}

static void print_cluster(struct cluster_tool *s, const struct sums *sums)
{
    const struct describe_cluster_response *cluster = s->cluster.response;
    const struct metadata_response *r = s->topics.response;

    printf("cluster %.*s  controller %d  brokers %d  topics %d  partitions %d\n",
           STR_ARG(cluster->cluster_id), cluster->controller_id, cluster->brokers.n,
           MAX(r->topics.n, 0), s->partition_count);
    print_number("under-replicated", sums->under_replicated);
    print_number("under-min-isr", sums->under_min_isr);
    print_number("offline", sums->offline);
    print_number("moving", sums->moving);
    printf("\n");
    print_brokers(s);
}

static void judged(struct cluster_tool *s)
{
    struct sums sums = sums_of(s);

    if (s->tool.is_json)
        s->json = json_of_cluster(s, &sums);
    else
        print_cluster(s, &sums);
    s->listed = ask_versions;
    if (s->shows_partitions)
        cluster__list_partitions(s);
    else
        ask_versions(s);
}

static int by_id(const void *a, const void *b)
{
    const struct describe_cluster_response_broker *x = a;
    const struct describe_cluster_response_broker *y = b;

    return (x->broker_id > y->broker_id) - (x->broker_id < y->broker_id);
}

static void topics_described(struct admin_op *op)
{
    struct cluster_tool *s = CONTAINER_OF(op, struct cluster_tool, topics);
    const struct describe_cluster_response *cluster = s->cluster.response;

    if (!tool_check(&s->tool, op, "describe topic"))
        return;
    if (cluster->brokers.n > 0)
        qsort(cluster->brokers.v, (size_t)cluster->brokers.n, sizeof(*cluster->brokers.v), by_id);
    s->judged = judged;
    cluster__judge(s);
}

static void cluster_described(struct admin_op *op)
{
    struct cluster_tool *s = CONTAINER_OF(op, struct cluster_tool, cluster);

    if (!tool_check(&s->tool, op, "describe the cluster"))
        return;
    s->topics.done = topics_described;
    admin_describe_topics(s->tool.client, &s->topics, NULL, 0);
}

static void start(struct tool *t)
{
    struct cluster_tool *s = cluster_of(t);

    s->cluster.done = cluster_described;
    admin_describe_cluster(t->client, &s->cluster);
}

/* ---- Arguments. */

enum {
    OPTION_API_VERSIONS = 1,
    OPTION_PARTITIONS,
    OPTION_UNHEALTHY,
};

static const struct option options[] = {
    {"api-versions", no_argument, NULL, OPTION_API_VERSIONS},
    {"partitions", no_argument, NULL, OPTION_PARTITIONS},
    {"unhealthy", no_argument, NULL, OPTION_UNHEALTHY},
    TOOL_OPTIONS,
};

static void take_option(struct cluster_tool *s, int o)
{
    switch (o) {
    case OPTION_API_VERSIONS: s->shows_versions = true; break;
    case OPTION_PARTITIONS: s->shows_partitions = true; break;
    default: s->only_unhealthy = true; break;
    }
}

static void stopping(struct tool *t)
{
    struct cluster_tool *s = cluster_of(t);
    struct admin_op *ops[] = {&s->cluster, &s->topics, &s->moves, &s->configs, &s->versions};

    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        admin_op_fini(ops[i]);
    cluster__free_questions(s);
}

int cluster_run(int argc, char **argv)
{
    struct cluster_tool s = {.tool = tool_default("cluster", help, start)};
    int status;
    int o;

    s.tool.stopping = stopping;
    while ((o = tool_getopt(&s.tool, argc, argv, options)) >= 0)
        take_option(&s, o);
    if (o == TOOL_STOP)
        return s.tool.status;
    if (optind < argc)
        return tool_usage(&s.tool, "it takes no names, but there is '%s'", argv[optind]);
    if (s.only_unhealthy && !s.shows_partitions)
        return tool_usage(&s.tool, "--unhealthy chooses among --partitions; add that");
    s.cluster.timeout_ms = s.topics.timeout_ms = s.versions.timeout_ms = s.tool.timeout_ms;
    status = tool_run(&s.tool);
    arena_fini(&s.arena);
    json_decref(s.json);
    return status;
}
