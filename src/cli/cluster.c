/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline cluster`: what a cluster is made of. One question to any broker for the brokers, one
 * for the topics, and with --api-versions one to each broker, because each has its own.
 */
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"
#include "cli/tool.h"
#include "client/admin.h"

static const char help[] =
    "usage: strandline cluster [--api-versions]\n"
    "\n"
    "Shows the cluster's id, its controller and brokers, and how many topics and partitions it "
    "has.\n"
    "\n"
    "  --api-versions   also the features and the versions of every API, of each broker\n"
    "  --json           results as JSON\n" TOOL_OPTIONS_HELP;

struct cluster_tool {
    struct tool tool;
    struct admin_op cluster;
    struct admin_op topics;
    struct admin_op versions;
    bool shows_versions;
    int32_t at; /* the broker that is asked for its versions */
    json_t *json;
};

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
    tool_end(&s->tool, EXIT_SUCCESS);
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

static json_t *json_of_brokers(const struct describe_cluster_response *r)
{
    json_t *brokers = json_array();

    for (int32_t i = 0; i < r->brokers.n; i++) {
        const struct describe_cluster_response_broker *b = &r->brokers.v[i];

        json_array_append_new(brokers,
                              json_pack("{s:i, s:o, s:i, s:o}", "broker", (int)b->broker_id, "host",
                                        tool_json_of(b->host), "port", (int)b->port, "rack",
                                        tool_json_of(b->rack)));
    }
    return brokers;
}

static void print_cluster(const struct describe_cluster_response *r, int topics, int partitions)
{
    printf("cluster %.*s  controller %d  brokers %d  topics %d  partitions %d\n",
           STR_ARG(r->cluster_id), r->controller_id, r->brokers.n, topics, partitions);
    for (int32_t i = 0; i < r->brokers.n; i++) {
        const struct describe_cluster_response_broker *b = &r->brokers.v[i];

        printf("  broker %d  address %.*s:%d", b->broker_id, STR_ARG(b->host), b->port);
        if (b->rack.n > 0)
            printf("  rack %.*s", STR_ARG(b->rack));
        printf("\n");
    }
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
    const struct metadata_response *r = op->response;
    int partitions = 0;

    if (!tool_check(&s->tool, op, "describe topic"))
        return;
    for (int32_t i = 0; i < r->topics.n; i++)
        partitions += MAX(r->topics.v[i].partitions.n, 0);
    if (cluster->brokers.n > 0)
        qsort(cluster->brokers.v, (size_t)cluster->brokers.n, sizeof(*cluster->brokers.v), by_id);
    if (s->tool.is_json)
        s->json = json_pack("{s:o, s:i, s:o, s:i, s:i}", "cluster_id",
                            tool_json_of(cluster->cluster_id), "controller",
                            (int)cluster->controller_id, "brokers", json_of_brokers(cluster),
                            "topics", (int)MAX(r->topics.n, 0), "partitions", partitions);
    else
        print_cluster(cluster, MAX(r->topics.n, 0), partitions);
    ask_versions(s);
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

#define OPTION_API_VERSIONS 1

static const struct option options[] = {
    {"api-versions", no_argument, NULL, OPTION_API_VERSIONS},
    TOOL_OPTIONS,
};

static void stopping(struct tool *t)
{
    struct cluster_tool *s = cluster_of(t);

    admin_op_fini(&s->cluster);
    admin_op_fini(&s->topics);
    admin_op_fini(&s->versions);
}

int cluster_run(int argc, char **argv)
{
    struct cluster_tool s = {.tool = tool_default("cluster", help, start)};
    int status;
    int o;

    s.tool.stopping = stopping;
    while ((o = tool_getopt(&s.tool, argc, argv, options)) >= 0)
        s.shows_versions = true;
    if (o == TOOL_STOP)
        return s.tool.status;
    if (optind < argc)
        return tool_usage(&s.tool, "it takes no names, but there is '%s'", argv[optind]);
    s.cluster.timeout_ms = s.topics.timeout_ms = s.versions.timeout_ms = s.tool.timeout_ms;
    status = tool_run(&s.tool);
    json_decref(s.json);
    return status;
}
