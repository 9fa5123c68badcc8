/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline reassign`: replicas that move to other brokers (KIP-455): the arguments, what is
 * moving, and how that is cancelled. Starting has files of its own.
 *
 * The controller lists what is moving. A partition that moves has for its replicas the target and
 * behind it what is to be removed; without those that are added these are what it had.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/reassign_int.h"
#include "cli/table.h"

static const char help[] =
    "usage: strandline reassign list [TOPIC...]\n"
    "       strandline reassign start TOPIC:PARTITION --replicas ID,... [OPTION...]\n"
    "       strandline reassign start TOPIC... --brokers ID,... [--replication-factor N]\n"
    "                                          [OPTION...]\n"
    "       strandline reassign start --plan FILE [OPTION...]\n"
    "       strandline reassign cancel TOPIC[:PARTITION]...\n"
    "       strandline reassign cancel --all\n"
    "\n"
    "start moves partitions to other brokers while they are written and read. It prints the way\n"
    "back first, as a plan. What has begun goes on by itself; list shows it until it is over.\n"
    "\n"
    "  --replicas ID,...        the brokers of this partition, the preferred leader first\n"
    "  --brokers ID,...         spread the topics over these brokers, leaders evenly\n"
    "  --replication-factor N   replicas of each partition, with --brokers [as many as it has]\n"
    "  --plan FILE              a plan in the JSON of kafka-reassign-partitions\n"
    "  --throttle BYTES         no broker sends or fetches more than this in a second for what\n"
    "                           moves; who is in sync is not slowed. It holds until it is taken\n"
    "                           off: at the end of --wait, also of a later one with the same "
    "plan,\n"
    "                           by cancel when nothing else moves, or by Kafka's tool (--verify)\n"
    "  --dry-run                change nothing, print the plan, to be edited and given to --plan\n"
    "  --wait                   until all has moved, with a line on how far that is\n"
    "  --all                    cancel all that is moving\n"
    "  --json                   results as JSON\n" TOOL_OPTIONS_HELP;

/* ---- What is moving. */

static void take_topic(struct reassign *s,
                       const struct list_partition_reassignments_response_topic *topic)
{
    for (int32_t i = 0; i < topic->partitions.n; i++) {
        const struct list_partition_reassignments_response_partition *p = &topic->partitions.v[i];

        s->ongoing[s->ongoing_count++] = (struct ongoing){
            .at = {topic->name, p->partition_index},
            .replicas = {p->replicas.v, p->replicas.n},
            .adding = {p->adding_replicas.v, p->adding_replicas.n},
            .removing = {p->removing_replicas.v, p->removing_replicas.n},
        };
    }
}

void reassign__take_list(struct reassign *s)
{
    const struct list_partition_reassignments_response *r = s->list.err ? NULL : s->list.response;
    size_t n = 0;

    for (int32_t t = 0; r && t < r->topics.n; t++)
        n += (size_t)MAX(r->topics.v[t].partitions.n, 0);
    free(s->ongoing);
    s->ongoing = xcalloc(n + 1, sizeof(*s->ongoing));
    s->ongoing_count = 0;
    for (int32_t t = 0; r && t < r->topics.n; t++)
        take_topic(s, &r->topics.v[t]);
    qsort(s->ongoing, n, sizeof(*s->ongoing), partition_compare);
}

const struct ongoing *reassign__ongoing(const struct reassign *s, const struct admin_partition *p)
{
    return s->ongoing_count > 0 ? bsearch(p, s->ongoing, (size_t)s->ongoing_count,
                                          sizeof(*s->ongoing), partition_compare)
                                : NULL;
}

struct ids reassign__without(struct arena *arena, struct ids from, struct ids without)
{
    int32_t *v = arena_calloc(arena, (size_t)MAX(from.n, 0) + 1, sizeof(*v));
    int32_t n = 0;

    for (int32_t i = 0; i < from.n; i++)
        if (!ids_have(without.v, without.n, from.v[i]))
            v[n++] = from.v[i];
    return (struct ids){v, n};
}

bool reassign__same_ids(struct ids a, struct ids b)
{
    if (a.n != b.n)
        return false;
    for (int32_t i = 0; i < a.n; i++)
        if (a.v[i] != b.v[i])
            return false;
    return true;
}

/* ---- list. */

static bool is_named(const struct reassign *s, const struct ongoing *o)
{
    for (int32_t i = 0; i < s->named_count; i++)
        if (str_eq(s->named[i].topic, o->at.topic) &&
            (s->named[i].partition < 0 || s->named[i].partition == o->at.partition))
            return true;
    return s->named_count == 0;
}

static void add_ongoing(struct reassign *s, struct table *table, const struct ongoing *o)
{
    table_add(table, "%.*s-%d", STR_ARG(o->at.topic), o->at.partition);
    table_add(table, "replicas %s", ids_text(&s->arena, o->replicas.v, o->replicas.n));
    table_add(table, "adding %s", ids_text(&s->arena, o->adding.v, o->adding.n));
    table_add(table, "removing %s", ids_text(&s->arena, o->removing.v, o->removing.n));
}

static json_t *json_of_ongoing(const struct ongoing *o)
{
    return json_pack("{s:o, s:i, s:o, s:o, s:o}", "topic", tool_json_of(o->at.topic), "partition",
                     (int)o->at.partition, "replicas", ids_json(o->replicas.v, o->replicas.n),
                     "adding", ids_json(o->adding.v, o->adding.n), "removing",
                     ids_json(o->removing.v, o->removing.n));
}

static void listed(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, list);
    struct table table = {.columns = 4};
    json_t *array;
    int32_t n = 0;

    if (!moves_check(&s->tool, op, "list what is moving"))
        return;
    array = json_array();
    reassign__take_list(s);
    for (int32_t i = 0; i < s->ongoing_count; i++) {
        if (!is_named(s, &s->ongoing[i]))
            continue;
        n++;
        add_ongoing(s, &table, &s->ongoing[i]);
        json_array_append_new(array, json_of_ongoing(&s->ongoing[i]));
    }
    if (s->tool.is_json) {
        tool_print_json(array);
    } else {
        table_print(&table, "");
        printf("%d partition%s moving\n", n, n == 1 ? "" : "s");
        json_decref(array);
    }
    table_fini(&table);
    tool_end(&s->tool, EXIT_SUCCESS);
}

/* They are there, though none may be moving. */
static void topics_described(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, topics);

    if (!tool_check(&s->tool, op, "list what is moving of topic"))
        return;
    s->list.done = listed;
    admin_list_reassignments(s->tool.client, &s->list);
}

static void start_list(struct tool *t)
{
    struct reassign *s = reassign_of(t);

    s->list.done = listed;
    s->topics.done = topics_described;
    if (s->name_count > 0)
        admin_describe_topics(t->client, &s->topics, s->names, s->name_count);
    else
        admin_list_reassignments(t->client, &s->list);
}

/* ---- cancel. */

static json_t *print_cancelled(struct reassign *s, struct table *table, struct str topic,
                               const struct alter_partition_reassignments_response_partition *p)
{
    struct admin_partition at = {topic, p->partition_index};
    const struct ongoing *o = reassign__ongoing(s, &at);
    struct ids back = {NULL, 0};
    enum err err = err_from_wire(p->error_code);

    if (o)
        back = reassign__without(&s->arena, o->replicas, o->adding);
    table_add(table, "%.*s-%d", STR_ARG(topic), p->partition_index);
    table_add(table, "%s", err ? "failed" : "cancelled");
    table_add(table, "%s%s", err ? "" : "back to ", err ? "" : ids_text(&s->arena, back.v, back.n));
    if (err)
        tool_warn_err(&s->tool, err, p->error_message, "cannot cancel the move of %.*s-%d",
                      STR_ARG(topic), p->partition_index);
    return json_pack("{s:o, s:i, s:s, s:o, s:s?, s:o}", "topic", tool_json_of(topic), "partition",
                     (int)p->partition_index, "result", err ? "failed" : "cancelled", "replicas",
                     ids_json(back.v, back.n), "error", err ? err_name(err) : NULL, "message",
                     err ? tool_json_of(p->error_message) : json_null());
}

static void cancelled(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, alter);
    const struct alter_partition_reassignments_response *r = op->response;
    struct table table = {.columns = 3};
    json_t *array;
    int32_t cancelled_count = 0;
    bool has_failed = false;

    if (!moves_check(&s->tool, op, "cancel moves"))
        return;
    array = json_array();
    for (int32_t t = 0; t < r->responses.n; t++)
        for (int32_t i = 0; i < r->responses.v[t].partitions.n; i++) {
            json_array_append_new(array, print_cancelled(s, &table, r->responses.v[t].name,
                                                         &r->responses.v[t].partitions.v[i]));
            has_failed = has_failed || r->responses.v[t].partitions.v[i].error_code;
            cancelled_count += !r->responses.v[t].partitions.v[i].error_code;
        }
    if (s->tool.is_json) {
        tool_print_json(array);
    } else {
        table_print(&table, "");
        json_decref(array);
    }
    table_fini(&table);
    reassign__end(s, has_failed ? EXIT_FAILURE : EXIT_SUCCESS, s->ongoing_count - cancelled_count);
}

/* Nothing is cancelled if one of those that are named is not moving. */
static bool check_named(struct reassign *s)
{
    for (int32_t i = 0; i < s->named_count; i++) {
        const struct admin_partition *p = &s->named[i];
        bool is_found = false;

        for (int32_t k = 0; k < s->ongoing_count && !is_found; k++)
            is_found = str_eq(s->ongoing[k].at.topic, p->topic) &&
                       (p->partition < 0 || p->partition == s->ongoing[k].at.partition);
        if (is_found)
            continue;
        if (p->partition < 0)
            tool_fail(&s->tool,
                      "no partition of %.*s is moving; 'strandline reassign list' shows "
                      "what is",
                      STR_ARG(p->topic));
        else
            tool_fail(&s->tool, "%.*s-%d is not moving; 'strandline reassign list' shows what is",
                      STR_ARG(p->topic), p->partition);
        return false;
    }
    return true;
}

static void take_ongoing_topics(struct reassign *s)
{
    free(s->names);
    s->names = xcalloc((size_t)s->ongoing_count + 1, sizeof(*s->names));
    s->name_count = partition_topics(s->ongoing, s->ongoing_count, sizeof(*s->ongoing), s->names);
    for (int32_t i = 0; i < s->name_count; i++)
        s->names[i] = arena_str(&s->arena, s->names[i]);
}

static void listed_to_cancel(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, list);
    struct admin_move *v;
    int32_t n = 0;

    if (!moves_check(&s->tool, op, "list what is moving"))
        return;
    reassign__take_list(s);
    if (!check_named(s))
        return;
    if (s->is_all)
        take_ongoing_topics(s);
    v = xcalloc((size_t)s->ongoing_count + 1, sizeof(*v));
    for (int32_t i = 0; i < s->ongoing_count; i++)
        if (is_named(s, &s->ongoing[i]))
            v[n++] = (struct admin_move){
                .topic = s->ongoing[i].at.topic,
                .partition = s->ongoing[i].at.partition,
            };
    s->alter.done = cancelled;
    if (n > 0)
        admin_alter_reassignments(s->tool.client, &s->alter, v, n);
    else
        listed(op); /* Which says that there is nothing. */
    free(v);
}

static void start_cancel(struct tool *t)
{
    struct reassign *s = reassign_of(t);

    s->list.done = listed_to_cancel;
    admin_list_reassignments(t->client, &s->list);
}

/* ---- Arguments. */

enum {
    OPTION_REPLICAS = 1,
    OPTION_BROKERS,
    OPTION_REPLICATION,
    OPTION_PLAN,
    OPTION_THROTTLE,
    OPTION_DRY_RUN,
    OPTION_WAIT,
    OPTION_ALL,
};

static const struct option options[] = {
    {"replicas", required_argument, NULL, OPTION_REPLICAS},
    {"brokers", required_argument, NULL, OPTION_BROKERS},
    {"replication-factor", required_argument, NULL, OPTION_REPLICATION},
    {"plan", required_argument, NULL, OPTION_PLAN},
    {"throttle", required_argument, NULL, OPTION_THROTTLE},
    {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
    {"wait", no_argument, NULL, OPTION_WAIT},
    {"all", no_argument, NULL, OPTION_ALL},
    TOOL_OPTIONS,
};

static bool take_ids(struct reassign *s, const char *option, const char *text, struct ids *out)
{
    int32_t *v = arena_calloc(&s->arena, strlen(text) + 1, sizeof(*v));
    int64_t id;

    *out = (struct ids){v, 0};
    for (const char *p = text;; p++) {
        struct str number = {p, (int32_t)strcspn(p, ",")};

        if (str_to_i64(number, &id) || id < 0 || id > INT32_MAX) {
            s->tool.status =
                tool_usage(&s->tool, "%s is '%s', but has to be a list of broker ids, like 1,2,3",
                           option, text);
            return false;
        }
        if (ids_have(v, out->n, (int32_t)id)) {
            s->tool.status =
                tool_usage(&s->tool, "broker %d is there twice in %s %s", (int)id, option, text);
            return false;
        }
        v[out->n++] = (int32_t)id;
        p += number.n;
        if (!*p)
            return true;
    }
}

static bool take_option(struct reassign *s, int o)
{
    int64_t n;

    switch (o) {
    case OPTION_REPLICAS: return take_ids(s, "--replicas", optarg, &s->replicas);
    case OPTION_BROKERS: return take_ids(s, "--brokers", optarg, &s->brokers);
    case OPTION_REPLICATION:
        if (!tool_number(&s->tool, "--replication-factor", optarg, 1, INT16_MAX, &n))
            return false;
        s->replication_factor = (int32_t)n;
        return true;
    case OPTION_THROTTLE:
        return tool_number(&s->tool, "--throttle", optarg, 1, INT64_MAX, &s->throttle);
    case OPTION_PLAN: s->plan_path = optarg; return true;
    case OPTION_DRY_RUN: s->is_dry_run = true; return true;
    case OPTION_WAIT: s->waits = true; return true;
    default: s->is_all = true; return true;
    }
}

static bool has_start_options(const struct reassign *s)
{
    return s->replicas.n > 0 || s->brokers.n > 0 || s->replication_factor || s->plan_path ||
           s->throttle || s->is_dry_run || s->waits;
}

static int check_list(struct reassign *s)
{
    if (has_start_options(s) || s->is_all)
        return tool_usage(&s->tool, "list takes no options of its own");
    for (int32_t i = 0; i < s->named_count; i++)
        if (s->named[i].partition >= 0)
            return tool_usage(&s->tool, "list takes names of topics, without a partition");
    s->tool.start = start_list;
    return 0;
}

static int check_cancel(struct reassign *s)
{
    if (has_start_options(s))
        return tool_usage(&s->tool, "cancel takes no option of its own but --all");
    if (s->is_all == (s->named_count > 0))
        return tool_usage(&s->tool, "say what to cancel: either TOPIC[:PARTITION] or --all");
    s->tool.start = start_cancel;
    return 0;
}

/* --replicas and --brokers with what they are for. */
static int check_names(const struct reassign *s)
{
    if (s->replicas.n > 0 && (s->named_count != 1 || s->named[0].partition < 0))
        return tool_usage(&s->tool, "--replicas is for one partition: TOPIC:PARTITION; a whole "
                                    "topic is spread over --brokers");
    if (s->brokers.n > 0 && s->named_count == 0)
        return tool_usage(&s->tool, "say which topics are spread over --brokers");
    for (int32_t i = 0; s->brokers.n > 0 && i < s->named_count; i++)
        if (s->named[i].partition >= 0)
            return tool_usage(&s->tool, "--brokers is for whole topics; --replicas moves one "
                                        "partition");
    if (s->replication_factor > s->brokers.n)
        return tool_usage(&s->tool, "--replication-factor %d needs as many --brokers, not %d",
                          s->replication_factor, s->brokers.n);
    return 0;
}

static int check_start(struct reassign *s)
{
    int ways = (s->replicas.n > 0) + (s->brokers.n > 0) + (s->plan_path != NULL);
    int status;

    if (s->is_all)
        return tool_usage(&s->tool, "only cancel takes --all");
    if (ways != 1)
        return tool_usage(&s->tool, "say where to in one way: --replicas, --brokers or --plan");
    if (s->plan_path && s->named_count > 0)
        return tool_usage(&s->tool, "the plan names the partitions; leave the names out");
    status = check_names(s);
    if (status)
        return status;
    s->tool.start = reassign__start_moves;
    if (s->plan_path)
        return reassign__load_plan(s) ? 0 : EXIT_FAILURE;
    if (s->replicas.n > 0)
        reassign__add_move(s, s->named[0], s->replicas);
    return 0;
}

/* Those of the arguments, or of the plan. */
static void take_topics(struct reassign *s)
{
    s->names = xcalloc((size_t)(s->named_count + s->move_count) + 1, sizeof(*s->names));
    if (s->plan_path)
        s->name_count = partition_topics(s->moves, s->move_count, sizeof(*s->moves), s->names);
    else
        s->name_count = partition_topics(s->named, s->named_count, sizeof(*s->named), s->names);
}

/* 0: go on; else the exit status, with the error printed. */
static int check_arguments(struct reassign *s, int argc, char **argv)
{
    const char *verb = optind < argc ? argv[optind] : "";
    int status;

    s->named = xcalloc((size_t)argc, sizeof(*s->named));
    for (int i = optind + 1; i < argc; i++)
        if (!partition_parse(&s->tool, argv[i], &s->named[s->named_count++]))
            return EXIT_USAGE;
    if (strcmp(verb, "list") == 0)
        status = check_list(s);
    else if (strcmp(verb, "start") == 0)
        status = check_start(s);
    else if (strcmp(verb, "cancel") == 0)
        status = check_cancel(s);
    else
        status = tool_usage(&s->tool, "say what to do: list, start or cancel");
    if (!status)
        take_topics(s);
    return status;
}

static void stopping(struct tool *t)
{
    struct reassign *s = reassign_of(t);
    struct admin_op *ops[] = {&s->cluster, &s->topics, &s->list, &s->alter, &s->dirs, &s->config};

    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        admin_op_fini(ops[i]);
    if (t->client)
        client_alarm_clear(t->client, &s->alarm);
}

static void free_all(struct reassign *s)
{
    arena_fini(&s->arena);
    json_decref(s->plan);
    free(s->names);
    free(s->named);
    free(s->moves);
    free(s->ongoing);
    free(s->asked);
    free(s->steps);
}

int reassign_run(int argc, char **argv)
{
    struct reassign s = {.tool = tool_default("reassign", help, NULL)};
    int status;
    int o;

    s.tool.stopping = stopping;
    while ((o = tool_getopt(&s.tool, argc, argv, options)) >= 0 && take_option(&s, o))
        continue;
    status = o == -1 ? check_arguments(&s, argc, argv) : s.tool.status;
    s.cluster.timeout_ms = s.topics.timeout_ms = s.list.timeout_ms = s.alter.timeout_ms =
        s.dirs.timeout_ms = s.config.timeout_ms = s.tool.timeout_ms;
    if (o == -1 && !status)
        status = tool_run(&s.tool);
    free_all(&s);
    return status;
}
