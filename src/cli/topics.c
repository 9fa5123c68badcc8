/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline topics`: create, list, describe, alter (more partitions), delete. One request each;
 * describing needs a second one for the configuration that differs from the default.
 */
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"
#include "cli/partitions.h"

static const char help[] =
    "usage: strandline topics create NAME [--partitions N] [--replication-factor N]\n"
    "                                     [--config KEY=VALUE]... [--if-not-exists]\n"
    "       strandline topics list [--internal]\n"
    "       strandline topics describe [NAME...]\n"
    "       strandline topics alter NAME --partitions N\n"
    "       strandline topics delete NAME...\n"
    "\n"
    "  --partitions N           partitions in all [the broker's num.partitions]\n"
    "  --replication-factor N   copies of each [the broker's default.replication.factor]\n"
    "  --config KEY=VALUE       a topic configuration, for instance retention.ms=86400000\n"
    "  --if-not-exists          a topic that exists is no error\n"
    "  --internal               list the brokers' own topics too\n"
    "  --json                   results as JSON\n" TOOL_OPTIONS_HELP;

#define CONFIGS_MAX 256

struct topics {
    struct tool tool;
    struct admin_op op;
    struct admin_op configs;
    int32_t at; /* of describe: the topic whose configuration is asked for */
    struct admin_new_topic topic;
    struct admin_config config_list[CONFIGS_MAX];
    bool if_not_exists;
    bool has_internal;
    struct str *names;
    int32_t name_count;
    json_t *json; /* of describe: the array so far */
};

static struct topics *topics_of(struct tool *t)
{
    return CONTAINER_OF(t, struct topics, tool);
}

/* ---- create, alter, delete. */

static void created(struct admin_op *op)
{
    struct topics *s = CONTAINER_OF(op, struct topics, op);

    if (s->if_not_exists && op->result_count == 1 &&
        op->results[0].err == ERR_TOPIC_ALREADY_EXISTS) {
        tool_end(&s->tool, EXIT_SUCCESS);
        return;
    }
    if (!tool_check(&s->tool, op, "create topic"))
        return;
    printf("created %.*s\n", STR_ARG(s->topic.name));
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void start_create(struct tool *t)
{
    struct topics *s = topics_of(t);

    s->op.done = created;
    s->topic.name = s->names[0];
    admin_create_topic(t->client, &s->op, &s->topic);
}

static void altered(struct admin_op *op)
{
    struct topics *s = CONTAINER_OF(op, struct topics, op);

    if (!tool_check(&s->tool, op, "alter topic"))
        return;
    printf("%.*s has %d partitions\n", STR_ARG(s->names[0]), s->topic.partitions);
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void start_alter(struct tool *t)
{
    struct topics *s = topics_of(t);

    s->op.done = altered;
    admin_create_partitions(t->client, &s->op, s->names[0], s->topic.partitions);
}

static void deleted(struct admin_op *op)
{
    struct topics *s = CONTAINER_OF(op, struct topics, op);

    if (!tool_check(&s->tool, op, "delete topic"))
        return;
    for (int32_t i = 0; i < s->name_count; i++)
        printf("deleted %.*s\n", STR_ARG(s->names[i]));
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void start_delete(struct tool *t)
{
    struct topics *s = topics_of(t);

    s->op.done = deleted;
    admin_delete_topics(t->client, &s->op, s->names, s->name_count);
}

/* ---- list. */

static void listed(struct admin_op *op)
{
    struct topics *s = CONTAINER_OF(op, struct topics, op);
    json_t *names = json_array();
    const struct metadata_response *r;

    if (!tool_check(&s->tool, op, "list topics")) {
        json_decref(names);
        return;
    }
    r = topics_sort(op);
    for (int32_t i = 0; i < r->topics.n; i++) {
        const struct metadata_response_topic *topic = &r->topics.v[i];

        if (topic->is_internal && !s->has_internal)
            continue;
        json_array_append_new(names, tool_json_of(topic->name));
        if (!s->tool.is_json)
            printf("%.*s\n", STR_ARG(topic->name));
    }
    if (s->tool.is_json)
        tool_print_json(names);
    else
        json_decref(names);
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void start_list(struct tool *t)
{
    struct topics *s = topics_of(t);

    s->op.done = listed;
    admin_describe_topics(t->client, &s->op, NULL, 0);
}

/* ---- describe. */

static json_t *json_of_topic(const struct metadata_response_topic *topic)
{
    json_t *partitions = json_array();
    char id[UUID_TEXT_BYTES];

    for (int32_t i = 0; i < topic->partitions.n; i++) {
        const struct metadata_response_partition *p = &topic->partitions.v[i];

        json_array_append_new(partitions,
                              json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "partition",
                                        (int)p->partition_index, "leader", (int)p->leader_id,
                                        "leader_epoch", (int)p->leader_epoch, "replicas",
                                        ids_json(p->replica_nodes.v, p->replica_nodes.n), "isr",
                                        ids_json(p->isr_nodes.v, p->isr_nodes.n), "offline",
                                        ids_json(p->offline_replicas.v, p->offline_replicas.n)));
    }
    uuid_to_text(topic->topic_id, id);
    return json_pack("{s:o, s:s, s:b, s:o, s:o}", "topic", tool_json_of(topic->name), "topic_id",
                     id, "is_internal", (int)topic->is_internal, "partitions", partitions,
                     "configs", json_object());
}

static void print_ids(const char *name, const int32_t *v, int32_t n)
{
    printf("  %s ", name);
    for (int32_t i = 0; i < n; i++)
        printf("%s%d", i ? "," : "", v[i]);
    if (n <= 0)
        printf("-");
}

static void print_topic(const struct metadata_response_topic *topic, const char *configs)
{
    char id[UUID_TEXT_BYTES];
    int32_t replicas = topic->partitions.n > 0 ? topic->partitions.v[0].replica_nodes.n : 0;

    uuid_to_text(topic->topic_id, id);
    printf("topic %.*s  id %s  partitions %d  replication-factor %d%s%s\n", STR_ARG(topic->name),
           id, topic->partitions.n, replicas, *configs ? "  configs " : "", configs);
    for (int32_t i = 0; i < topic->partitions.n; i++) {
        const struct metadata_response_partition *p = &topic->partitions.v[i];

        printf("  partition %d  leader %d  epoch %d", p->partition_index, p->leader_id,
               p->leader_epoch);
        print_ids("replicas", p->replica_nodes.v, p->replica_nodes.n);
        print_ids("isr", p->isr_nodes.v, p->isr_nodes.n);
        if (p->offline_replicas.n > 0)
            print_ids("offline", p->offline_replicas.v, p->offline_replicas.n);
        printf("\n");
    }
}

#define CONFIG_SOURCE_TOPIC 1

static void add_configs(const struct describe_configs_response_result *r, json_t *object,
                        char **text)
{
    *text = xstrdup("");
    for (int32_t i = 0; i < r->configs.n; i++) {
        const struct describe_configs_response_config *c = &r->configs.v[i];
        char *longer;

        if (c->config_source != CONFIG_SOURCE_TOPIC)
            continue;
        json_object_setn_new(object, c->name.p, (size_t)c->name.n, tool_json_of(c->value));
        longer = xasprintf("%s%s%.*s=%.*s", *text, **text ? "," : "", STR_ARG(c->name),
                           STR_ARG(c->value));
        free(*text);
        *text = longer;
    }
}

static void describe_next(struct topics *s);

static void configs_described(struct admin_op *op)
{
    struct topics *s = CONTAINER_OF(op, struct topics, configs);
    const struct metadata_response *r = s->op.response;
    const struct describe_configs_response *configs = op->response;
    json_t *topic;
    char *text;

    if (!tool_check(&s->tool, op, "describe the configuration of topic"))
        return;
    topic = json_of_topic(&r->topics.v[s->at]);
    if (configs->results.n != 1) {
        json_decref(topic);
        tool_fail_err(&s->tool, ERR_MALFORMED, str_null(), "cannot describe topics");
        return;
    }
    add_configs(&configs->results.v[0], json_object_get(topic, "configs"), &text);
    if (!s->tool.is_json)
        print_topic(&r->topics.v[s->at], text);
    json_array_append_new(s->json, topic);
    free(text);
    s->at++;
    describe_next(s);
}

static void describe_next(struct topics *s)
{
    const struct metadata_response *r = s->op.response;

    if (s->at < r->topics.n) {
        s->configs.done = configs_described;
        admin_describe_configs(s->tool.client, &s->configs, ADMIN_TOPIC, r->topics.v[s->at].name);
        return;
    }
    if (s->tool.is_json) {
        tool_print_json(s->json);
        s->json = NULL;
    }
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void described(struct admin_op *op)
{
    struct topics *s = CONTAINER_OF(op, struct topics, op);

    if (!tool_check(&s->tool, op, "describe topic"))
        return;
    topics_sort(op);
    s->json = json_array();
    describe_next(s);
}

static void start_describe(struct tool *t)
{
    struct topics *s = topics_of(t);

    s->op.done = described;
    admin_describe_topics(t->client, &s->op, s->name_count ? s->names : NULL, s->name_count);
}

/* ---- Arguments. */

enum {
    OPTION_PARTITIONS = 1,
    OPTION_REPLICATION,
    OPTION_CONFIG,
    OPTION_IF_NOT_EXISTS,
    OPTION_INTERNAL
};

static const struct option options[] = {
    {"partitions", required_argument, NULL, OPTION_PARTITIONS},
    {"replication-factor", required_argument, NULL, OPTION_REPLICATION},
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"if-not-exists", no_argument, NULL, OPTION_IF_NOT_EXISTS},
    {"internal", no_argument, NULL, OPTION_INTERNAL},
    TOOL_OPTIONS,
};

static bool take_option(struct topics *s, int o)
{
    struct admin_config *config = &s->config_list[s->topic.config_count];
    int64_t n;

    switch (o) {
    case OPTION_PARTITIONS:
        if (!tool_number(&s->tool, "--partitions", optarg, 1, INT32_MAX, &n))
            return false;
        s->topic.partitions = (int32_t)n;
        return true;
    case OPTION_REPLICATION:
        if (!tool_number(&s->tool, "--replication-factor", optarg, 1, INT16_MAX, &n))
            return false;
        s->topic.replication_factor = (int16_t)n;
        return true;
    case OPTION_CONFIG:
        if (s->topic.config_count == CONFIGS_MAX ||
            !tool_key_value(&s->tool, optarg, &config->name, &config->value))
            return false;
        s->topic.config_count++;
        return true;
    case OPTION_IF_NOT_EXISTS: s->if_not_exists = true; return true;
    default: s->has_internal = true; return true;
    }
}

/* What each verb does and how many names it takes. */
static const struct verb {
    const char *name;
    void (*start)(struct tool *t);
    int names_min;
    int names_max;
} verbs[] = {
    {"create", start_create, 1, 1},
    {"list", start_list, 0, 0},
    {"describe", start_describe, 0, INT32_MAX},
    {"alter", start_alter, 1, 1},
    {"delete", start_delete, 1, INT32_MAX},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* 0: go on; else the exit status, with the usage error printed. */
static int check_arguments(struct topics *s, int argc, char **argv)
{
    const struct verb *verb = optind < argc ? find_verb(argv[optind]) : NULL;

    if (!verb)
        return tool_usage(&s->tool, "say what to do: create, list, describe, alter or delete");
    s->tool.start = verb->start;
    s->name_count = argc - optind - 1;
    if (s->name_count < verb->names_min || s->name_count > verb->names_max)
        return tool_usage(&s->tool, "'%s' takes %s", verb->name,
                          verb->names_max == 0   ? "no names"
                          : verb->names_max == 1 ? "the name of one topic"
                                                 : "names of topics");
    if (verb->start == start_alter && s->topic.partitions < 0)
        return tool_usage(&s->tool, "alter changes the number of partitions: add --partitions N");
    s->names = xcalloc((size_t)s->name_count + 1, sizeof(*s->names));
    for (int i = 0; i < s->name_count; i++)
        s->names[i] = str_of(argv[optind + 1 + i]);
    return 0;
}

static void stopping(struct tool *t)
{
    struct topics *s = topics_of(t);

    admin_op_fini(&s->op);
    admin_op_fini(&s->configs);
}

int topics_run(int argc, char **argv)
{
    struct topics s = {
        .tool = tool_default("topics", help, NULL),
        .topic = {.partitions = -1, .replication_factor = -1},
    };
    int o;
    int status;

    s.topic.configs = s.config_list;
    s.tool.stopping = stopping;
    while ((o = tool_getopt(&s.tool, argc, argv, options)) != -1)
        if (o == TOOL_STOP || !take_option(&s, o))
            return s.tool.status ? s.tool.status : o == TOOL_STOP ? 0 : EXIT_USAGE;
    status = check_arguments(&s, argc, argv);
    s.op.timeout_ms = s.configs.timeout_ms = s.tool.timeout_ms;
    if (!status)
        status = tool_run(&s.tool);
    free(s.names);
    json_decref(s.json);
    return status;
}
