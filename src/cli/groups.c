/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline groups`: the arguments, and what needs no knowledge of offsets: list, delete. A
 * broker knows only the groups that it coordinates, so listing asks every broker, and all else
 * asks the one that coordinates the group.
 *
 * Describing and resetting have files of their own; delete-offsets looks the group up as they do,
 * so that "--topic t" means the partitions of t that the group has an offset of.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/groups_int.h"

static const char help[] =
    "usage: strandline groups list\n"
    "       strandline groups describe [GROUP...]\n"
    "       strandline groups reset-offsets GROUP [--topic TOPIC[:N,...]]... WHERE [--execute]\n"
    "       strandline groups delete GROUP...\n"
    "       strandline groups delete-offsets GROUP --topic TOPIC[:N,...]...\n"
    "\n"
    "  --topic TOPIC[:N,...]   a topic, or some of its partitions; may be repeated "
    "[reset-offsets:\n"
    "                          every partition that the group has an offset of]\n"
    "  --execute               do it; without it reset-offsets shows what it would do\n"
    "  --json                  results as JSON\n"
    "\n"
    "WHERE a group goes on, one of:\n"
    "  --offset earliest       where the log begins\n"
    "  --offset latest         where it ends\n"
    "  --offset N              that offset\n"
    "  --shift N               N records on, or back with a negative N\n"
    "  --timestamp MS          the first record that is not older (ms since 1970)\n"
    "  --duration N(s|m|h|d)   the first record that is not older than so long ago\n"
    "An offset outside of the log becomes the nearest end of it.\n"
    "\n" TOOL_OPTIONS_HELP;

/* ---- list. */

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* What listing gathers, broker by broker; `names` grow, and own their bytes until the end. */
static void add_names(struct groups *s, const struct list_groups_response *r)
{
    s->names =
        xrealloc(s->names, (size_t)(s->name_count + MAX(r->groups.n, 0) + 1) * sizeof(*s->names));
    for (int32_t i = 0; i < r->groups.n; i++) {
        const struct list_groups_response_group *g = &r->groups.v[i];

        s->names[s->name_count++] = arena_str(&s->arena, g->group_id);
        json_array_append_new(s->listed,
                              json_pack("{s:o, s:o, s:o, s:o}", "group", tool_json_of(g->group_id),
                                        "state", tool_json_of(g->group_state), "type",
                                        tool_json_of(g->group_type), "protocol_type",
                                        tool_json_of(g->protocol_type)));
    }
}

static void list_next(struct groups *s);

static void broker_listed(struct admin_op *op)
{
    struct groups *s = CONTAINER_OF(op, struct groups, op);

    if (!tool_check(&s->tool, op, "list groups"))
        return;
    add_names(s, op->response);
    s->at++;
    list_next(s);
}

static void list_next(struct groups *s)
{
    const struct describe_cluster_response *r = s->cluster.response;

    if (s->at < r->brokers.n) {
        s->op.done = broker_listed;
        admin_list_groups(s->tool.client, &s->op, r->brokers.v[s->at].broker_id);
        return;
    }
    if (s->name_count > 0)
        qsort(s->names, (size_t)s->name_count, sizeof(*s->names), by_name);
    s->all_listed(s);
}

static void cluster_described(struct admin_op *op)
{
    struct groups *s = CONTAINER_OF(op, struct groups, cluster);

    if (tool_check(&s->tool, op, "list the brokers"))
        list_next(s);
}

void groups__list(struct groups *s, void (*then)(struct groups *s))
{
    s->listed = json_array();
    s->all_listed = then;
    s->cluster.done = cluster_described;
    admin_describe_cluster(s->tool.client, &s->cluster);
}

static int by_group(const void *a, const void *b)
{
    json_t *const *x = a;
    json_t *const *y = b;

    return strcmp(json_string_value(json_object_get(*x, "group")),
                  json_string_value(json_object_get(*y, "group")));
}

/* In the order of the names. */
static json_t *sorted(const json_t *array)
{
    size_t n = json_array_size(array);
    json_t **v = xcalloc(n + 1, sizeof(json_t *));
    json_t *out = json_array();

    for (size_t i = 0; i < n; i++)
        v[i] = json_array_get(array, i);
    qsort(v, n, sizeof(json_t *), by_group);
    for (size_t i = 0; i < n; i++)
        json_array_append(out, v[i]);
    free(v);
    return out;
}

static void print_list(struct groups *s)
{
    if (s->tool.is_json)
        tool_print_json(sorted(s->listed));
    else
        for (int32_t i = 0; i < s->name_count; i++)
            printf("%.*s\n", STR_ARG(s->names[i]));
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void start_list(struct tool *t)
{
    groups__list(groups_of(t), print_list);
}

/* ---- delete. */

static void delete_next(struct groups *s);

static void deleted(struct admin_op *op)
{
    struct groups *s = CONTAINER_OF(op, struct groups, op);

    if (!tool_check(&s->tool, op, "delete group"))
        return;
    if (s->tool.is_json)
        json_array_append_new(s->json, tool_json_of(s->names[s->at]));
    else
        printf("deleted %.*s\n", STR_ARG(s->names[s->at]));
    s->at++;
    delete_next(s);
}

static void delete_next(struct groups *s)
{
    if (s->at < s->name_count) {
        s->op.done = deleted;
        admin_delete_group(s->tool.client, &s->op, s->names[s->at]);
        return;
    }
    if (s->tool.is_json) {
        tool_print_json(s->json);
        s->json = NULL;
    }
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void start_delete(struct tool *t)
{
    struct groups *s = groups_of(t);

    s->json = json_array();
    delete_next(s);
}

/* ---- delete-offsets. */

static void offsets_deleted(struct admin_op *op)
{
    struct groups *s = CONTAINER_OF(op, struct groups, op);
    json_t *gone = json_array();

    if (!tool_check(&s->tool, op, op->err ? "delete offsets" : "delete the offset of partition")) {
        json_decref(gone);
        return;
    }
    for (int32_t i = 0; i < op->result_count; i++) {
        json_array_append_new(gone, tool_json_of(op->results[i].name));
        if (!s->tool.is_json)
            printf("deleted the offset of %.*s\n", STR_ARG(op->results[i].name));
    }
    if (s->tool.is_json)
        tool_print_json(gone);
    else
        json_decref(gone);
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void looked(struct groups *s)
{
    struct admin_offset *v = xcalloc((size_t)s->row_count + 1, sizeof(*v));
    int32_t n = 0;

    for (int32_t i = 0; i < s->row_count; i++)
        if (s->rows[i].committed >= 0)
            v[n++] = (struct admin_offset){
                .topic = s->rows[i].topic,
                .partition = s->rows[i].partition,
            };
    s->op.done = offsets_deleted;
    if (n > 0)
        admin_delete_offsets(s->tool.client, &s->op, s->names[0], v, n);
    else
        tool_fail(&s->tool,
                  "group %.*s has no such offsets; 'strandline groups describe' shows them",
                  STR_ARG(s->names[0]));
    free(v);
}

static void start_delete_offsets(struct tool *t)
{
    struct groups *s = groups_of(t);

    s->looked = looked;
    groups__look(s);
}

/* ---- Arguments. */

enum {
    OPTION_TOPIC = 1,
    OPTION_OFFSET,
    OPTION_SHIFT,
    OPTION_TIMESTAMP,
    OPTION_DURATION,
    OPTION_EXECUTE,
};

static const struct option options[] = {
    {"topic", required_argument, NULL, OPTION_TOPIC},
    {"offset", required_argument, NULL, OPTION_OFFSET},
    {"shift", required_argument, NULL, OPTION_SHIFT},
    {"timestamp", required_argument, NULL, OPTION_TIMESTAMP},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"execute", no_argument, NULL, OPTION_EXECUTE},
    TOOL_OPTIONS,
};

static bool add_selection(struct groups *s, struct str topic, int64_t partition)
{
    if (s->selection_count == SELECTIONS_MAX) {
        s->tool.status = tool_usage(&s->tool, "more than %d partitions", SELECTIONS_MAX);
        return false;
    }
    s->selections[s->selection_count++] =
        (struct group_selection){.topic = topic, .partition = (int32_t)partition};
    return true;
}

static bool take_topic(struct groups *s, const char *text)
{
    const char *colon = strchr(text, ':');
    struct str topic = {text, colon ? (int32_t)(colon - text) : (int32_t)strlen(text)};
    int64_t partition;

    if (!colon)
        return add_selection(s, topic, -1);
    for (const char *p = colon; p; p = strchr(p + 1, ',')) {
        struct str number = {p + 1, (int32_t)strcspn(p + 1, ",")};

        if (str_to_i64(number, &partition) || partition < 0 || partition > INT32_MAX) {
            s->tool.status = tool_usage(&s->tool, "'%s' is not of the form TOPIC:0,1", text);
            return false;
        }
        if (!add_selection(s, topic, partition))
            return false;
    }
    return true;
}

static bool take_offset(struct groups *s, const char *text)
{
    bool is_earliest = strcmp(text, "earliest") == 0;

    if (is_earliest || strcmp(text, "latest") == 0) {
        s->reset = is_earliest ? RESET_EARLIEST : RESET_LATEST;
        return true;
    }
    s->reset = RESET_OFFSET;
    return tool_number(&s->tool, "--offset", text, 0, INT64_MAX, &s->value);
}

static bool take_duration(struct groups *s, const char *text)
{
    static const char units[] = "smhd";
    static const int64_t unit_ms[] = {1000, 60000, 3600000, 86400000};
    size_t n = strlen(text);
    const char *unit = n > 1 ? strchr(units, text[n - 1]) : NULL;
    int64_t value;

    s->reset = RESET_DURATION;
    if (unit && !str_to_i64((struct str){text, (int32_t)n - 1}, &value) && value >= 0 &&
        !__builtin_mul_overflow(value, unit_ms[unit - units], &s->value))
        return true;
    s->tool.status =
        tool_usage(&s->tool, "--duration is '%s', but has to be like 90s, 5m, 2h or 7d", text);
    return false;
}

static bool take_where(struct groups *s, int o)
{
    if (s->reset) {
        s->tool.status = tool_usage(&s->tool, "say once where the group goes on");
        return false;
    }
    switch (o) {
    case OPTION_OFFSET: return take_offset(s, optarg);
    case OPTION_DURATION: return take_duration(s, optarg);
    case OPTION_SHIFT:
        s->reset = RESET_SHIFT;
        return tool_number(&s->tool, "--shift", optarg, INT64_MIN, INT64_MAX, &s->value);
    default:
        s->reset = RESET_TIMESTAMP;
        return tool_number(&s->tool, "--timestamp", optarg, 0, INT64_MAX, &s->value);
    }
}

static bool take_option(struct groups *s, int o)
{
    if (o == OPTION_TOPIC)
        return take_topic(s, optarg);
    if (o != OPTION_EXECUTE)
        return take_where(s, o);
    s->executes = true;
    return true;
}

/* What each verb does and how many groups it takes. */
static const struct verb {
    const char *name;
    void (*start)(struct tool *t);
    int names_min;
    int names_max;
} verbs[] = {
    {"list", start_list, 0, 0},
    {"describe", groups__start_describe, 0, INT32_MAX},
    {"reset-offsets", groups__start_reset, 1, 1},
    {"delete", start_delete, 1, INT32_MAX},
    {"delete-offsets", start_delete_offsets, 1, 1},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* Options that a verb does not know would be left out in silence otherwise. 0: go on. */
static int check_options(const struct groups *s)
{
    bool resets = s->tool.start == groups__start_reset;

    if (resets && !s->reset)
        return tool_usage(&s->tool, "say where: --offset, --shift, --timestamp or --duration");
    if (!resets && (s->reset || s->executes))
        return tool_usage(&s->tool, "only reset-offsets takes a place and --execute");
    if (s->tool.start == start_delete_offsets && s->selection_count == 0)
        return tool_usage(&s->tool, "say which offsets: --topic TOPIC or --topic TOPIC:0,1");
    if (!resets && s->tool.start != start_delete_offsets && s->selection_count > 0)
        return tool_usage(&s->tool, "only reset-offsets and delete-offsets take --topic");
    return 0;
}

/* 0: go on; else the exit status, with the usage error printed. */
static int check_arguments(struct groups *s, int argc, char **argv)
{
    const struct verb *verb = optind < argc ? find_verb(argv[optind]) : NULL;

    if (!verb)
        return tool_usage(&s->tool, "say what to do: list, describe, reset-offsets, delete or "
                                    "delete-offsets");
    s->tool.start = verb->start;
    s->name_count = argc - optind - 1;
    if (s->name_count < verb->names_min || s->name_count > verb->names_max)
        return tool_usage(&s->tool, "'%s' takes %s", verb->name,
                          verb->names_max == 0   ? "no names"
                          : verb->names_max == 1 ? "the name of one group"
                                                 : "names of groups");
    s->names = xcalloc((size_t)s->name_count + 1, sizeof(*s->names));
    for (int i = 0; i < s->name_count; i++)
        s->names[i] = str_of(argv[optind + 1 + i]);
    return check_options(s);
}

static void stopping(struct tool *t)
{
    struct groups *s = groups_of(t);
    struct admin_op *ops[] = {&s->op,        &s->cluster, &s->group,
                              &s->committed, &s->topics,  &s->offsets};

    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        admin_op_fini(ops[i]);
}

static void free_all(struct groups *s)
{
    json_decref(s->json);
    json_decref(s->listed);
    arena_fini(&s->arena);
    free(s->names);
    free(s->rows);
    free(s);
}

int groups_run(int argc, char **argv)
{
    struct groups *s = xcalloc(1, sizeof(*s));
    int status;
    int o;

    s->tool = tool_default("groups", help, NULL);
    s->tool.stopping = stopping;
    while ((o = tool_getopt(&s->tool, argc, argv, options)) >= 0 && take_option(s, o))
        continue;
    status = o == -1 ? check_arguments(s, argc, argv) : s->tool.status;
    s->op.timeout_ms = s->cluster.timeout_ms = s->group.timeout_ms = s->committed.timeout_ms =
        s->topics.timeout_ms = s->offsets.timeout_ms = s->tool.timeout_ms;
    if (o == -1 && !status)
        status = tool_run(&s->tool);
    free_all(s);
    return status;
}
