/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline configs`: reads and changes the configuration of topics and brokers. A broker's own
 * settings are asked from that broker; the defaults of all brokers have an empty name.
 */
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"
#include "cli/tool.h"
#include "client/admin.h"

static const char help[] =
    "usage: strandline configs describe (--topic NAME | --broker ID | --brokers) [--all]\n"
    "       strandline configs alter    (--topic NAME | --broker ID | --brokers)\n"
    "                                   [--set KEY=VALUE]... [--delete KEY]...\n"
    "                                   [--append KEY=VALUE]... [--subtract KEY=VALUE]...\n"
    "\n"
    "  --topic NAME        a topic\n"
    "  --broker ID         one broker\n"
    "  --brokers           what holds for all brokers unless one has its own\n"
    "  --all               show every key and where its value comes from, not only what was set\n"
    "  --set KEY=VALUE     set a key\n"
    "  --delete KEY        back to the default\n"
    "  --append KEY=VALUE  add to a list; --subtract takes away\n"
    "  --json              results as JSON, by name; 'serve --import' reads those of "
    "topics\n" TOOL_OPTIONS_HELP;

#define CHANGES_MAX 256

enum change {
    CHANGE_SET = 0,
    CHANGE_DELETE = 1,
    CHANGE_APPEND = 2,
    CHANGE_SUBTRACT = 3,
};

struct configs {
    struct tool tool;
    struct admin_op op;
    enum admin_resource type; /* 0: not said */
    struct str name;
    bool shows_all;
    struct admin_config changes[CHANGES_MAX];
    int32_t change_count;
};

static struct configs *configs_of(struct tool *t)
{
    return CONTAINER_OF(t, struct configs, tool);
}

/* ---- describe. */

enum source {
    SOURCE_TOPIC = 1,
    SOURCE_BROKER = 2,
    SOURCE_ALL_BROKERS = 3,
    SOURCE_FILE = 4,
    SOURCE_DEFAULT = 5,
};

static const char *source_name(int8_t source)
{
    switch (source) {
    case SOURCE_TOPIC: return "topic";
    case SOURCE_BROKER: return "broker";
    case SOURCE_ALL_BROKERS: return "all brokers";
    case SOURCE_FILE: return "file";
    case SOURCE_DEFAULT: return "default";
    default: return "other";
    }
}

/* Whether somebody has set it for this very resource. */
static bool is_set(const struct configs *s, const struct describe_configs_response_config *c)
{
    if (s->type == ADMIN_TOPIC)
        return c->config_source == SOURCE_TOPIC;
    return c->config_source == SOURCE_BROKER || c->config_source == SOURCE_ALL_BROKERS ||
           (s->name.n > 0 && c->config_source == SOURCE_FILE);
}

static json_t *json_of_config(const struct describe_configs_response_config *c)
{
    json_t *value = str_is_null(c->value) ? json_null()
                                          : json_stringn(c->value.p, (size_t)c->value.n);

    return json_pack("{s:o, s:s, s:b, s:b}", "value", value, "source",
                     source_name(c->config_source), "read_only", (int)c->read_only, "sensitive",
                     (int)c->is_sensitive);
}

static void print_config(const struct configs *s, const struct describe_configs_response_config *c)
{
    if (c->is_sensitive)
        printf("%.*s=(hidden)", STR_ARG(c->name));
    else
        printf("%.*s=%.*s", STR_ARG(c->name), STR_ARG(c->value));
    if (s->shows_all)
        printf("  (%s%s)", source_name(c->config_source), c->read_only ? ", read-only" : "");
    printf("\n");
}

static int by_name(const void *a, const void *b)
{
    const struct describe_configs_response_config *x = a;
    const struct describe_configs_response_config *y = b;

    return str_cmp(x->name, y->name);
}

static void described(struct admin_op *op)
{
    struct configs *s = CONTAINER_OF(op, struct configs, op);
    const struct describe_configs_response *r = op->response;
    const struct describe_configs_response_result *result;
    json_t *json;

    if (!tool_check(&s->tool, op, "describe the configuration of"))
        return;
    if (r->results.n != 1) {
        tool_fail_err(&s->tool, ERR_MALFORMED, str_null(), "cannot describe the configuration");
        return;
    }
    result = &r->results.v[0];
    if (result->configs.n > 0)
        qsort(result->configs.v, (size_t)result->configs.n, sizeof(*result->configs.v), by_name);
    json = json_object();
    for (int32_t i = 0; i < result->configs.n; i++) {
        const struct describe_configs_response_config *c = &result->configs.v[i];

        if (!s->shows_all && !is_set(s, c))
            continue;
        json_object_setn_new(json, c->name.p, (size_t)c->name.n, json_of_config(c));
        if (!s->tool.is_json)
            print_config(s, c);
    }
    if (s->tool.is_json)
        tool_print_json(json_pack("{s%:o}", s->name.p, (int)s->name.n, json));
    else
        json_decref(json);
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void start_describe(struct tool *t)
{
    struct configs *s = configs_of(t);

    s->op.done = described;
    admin_describe_configs(t->client, &s->op, s->type, s->name);
}

/* ---- alter. */

static void altered(struct admin_op *op)
{
    struct configs *s = CONTAINER_OF(op, struct configs, op);

    if (!tool_check(&s->tool, op, "change the configuration of"))
        return;
    printf("changed %d keys\n", s->change_count);
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void start_alter(struct tool *t)
{
    struct configs *s = configs_of(t);

    s->op.done = altered;
    admin_alter_configs(t->client, &s->op, s->type, s->name, s->changes, s->change_count);
}

/* ---- Arguments. */

enum {
    OPTION_TOPIC = 1,
    OPTION_BROKER,
    OPTION_BROKERS,
    OPTION_ALL,
    OPTION_CHANGE, /* and the change on top */
};

static const struct option options[] = {
    {"topic", required_argument, NULL, OPTION_TOPIC},
    {"broker", required_argument, NULL, OPTION_BROKER},
    {"brokers", no_argument, NULL, OPTION_BROKERS},
    {"all", no_argument, NULL, OPTION_ALL},
    {"set", required_argument, NULL, OPTION_CHANGE + CHANGE_SET},
    {"delete", required_argument, NULL, OPTION_CHANGE + CHANGE_DELETE},
    {"append", required_argument, NULL, OPTION_CHANGE + CHANGE_APPEND},
    {"subtract", required_argument, NULL, OPTION_CHANGE + CHANGE_SUBTRACT},
    TOOL_OPTIONS,
};

static bool take_change(struct configs *s, int8_t change, const char *text)
{
    struct admin_config *c = &s->changes[s->change_count];

    if (s->change_count == CHANGES_MAX) {
        s->tool.status = tool_usage(&s->tool, "more than %d changes", CHANGES_MAX);
        return false;
    }
    c->operation = change;
    if (change == CHANGE_DELETE) {
        c->name = str_of(text);
        c->value = str_null();
    } else if (!tool_key_value(&s->tool, text, &c->name, &c->value)) {
        return false;
    }
    s->change_count++;
    return true;
}

static bool take_option(struct configs *s, int o)
{
    int64_t id;

    switch (o) {
    case OPTION_TOPIC:
        s->type = ADMIN_TOPIC;
        s->name = str_of(optarg);
        return true;
    case OPTION_BROKER:
        s->type = ADMIN_BROKER;
        s->name = str_of(optarg);
        return tool_number(&s->tool, "--broker", optarg, 0, INT32_MAX, &id);
    case OPTION_BROKERS:
        s->type = ADMIN_BROKER;
        s->name = STR_LIT("");
        return true;
    case OPTION_ALL: s->shows_all = true; return true;
    default: return take_change(s, (int8_t)(o - OPTION_CHANGE), optarg);
    }
}

static int check_arguments(struct configs *s, int argc, char **argv)
{
    const char *verb = argc - optind == 1 ? argv[optind] : "";

    if (strcmp(verb, "describe") == 0)
        s->tool.start = start_describe;
    else if (strcmp(verb, "alter") == 0)
        s->tool.start = start_alter;
    else
        return tool_usage(&s->tool, "say what to do: describe or alter");
    if (!s->type)
        return tool_usage(&s->tool, "say whose: --topic NAME, --broker ID or --brokers");
    if ((s->tool.start == start_alter) != (s->change_count > 0))
        return tool_usage(&s->tool, "alter takes changes (--set KEY=VALUE), describe takes none");
    return 0;
}

static void stopping(struct tool *t)
{
    admin_op_fini(&configs_of(t)->op);
}

int configs_run(int argc, char **argv)
{
    struct configs *s = xcalloc(1, sizeof(*s));
    int status;
    int o;

    s->tool = tool_default("configs", help, NULL);
    s->tool.stopping = stopping;
    while ((o = tool_getopt(&s->tool, argc, argv, options)) >= 0 && take_option(s, o))
        continue;
    status = o == -1 ? check_arguments(s, argc, argv) : s->tool.status;
    s->op.timeout_ms = s->tool.timeout_ms;
    if (o == -1 && !status)
        status = tool_run(&s->tool);
    free(s);
    return status;
}
