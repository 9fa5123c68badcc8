/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline leaders`: who leads, and elections. Listing is one question, since Metadata has the
 * leader and the preferred one, which is the first replica.
 *
 * An election begins with the same question: a topic without --partition stands for its partitions,
 * what is not there is said before anything is changed, and who was elected is the preferred
 * replica that we know. Asked for all, the controller names only those that needed an election;
 * the others lead already.
 */
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"
#include "cli/partitions.h"
#include "cli/table.h"

static const char help[] =
    "usage: strandline leaders list [TOPIC...] [--not-preferred]\n"
    "       strandline leaders elect [--topic TOPIC [--partition N]...]...\n"
    "       strandline leaders elect --unclean --topic TOPIC [--partition N]...\n"
    "\n"
    "list shows for each partition the leader, its epoch, and the preferred leader, which is the\n"
    "first of the replicas. elect makes preferred replicas leaders again, of all partitions or of\n"
    "those that are named; one that is not in sync is not elected.\n"
    "\n"
    "  --not-preferred   only partitions that another replica leads, or none\n"
    "  --topic TOPIC     elect the leaders of this topic; may be repeated\n"
    "  --partition N     only of this partition of the --topic before it; may be repeated\n"
    "  --unclean         for partitions without a leader: any replica that is alive, in sync or "
    "not.\n"
    "                    RECORDS ARE LOST that only the others have\n"
    "  --json            results as JSON\n" TOOL_OPTIONS_HELP;

struct leaders {
    struct tool tool;
    struct admin_op topics;
    struct admin_op election;
    struct arena arena;
    struct str *names; /* of topics, each once; none: all */
    int32_t name_count;
    struct admin_partition *asked; /* as given, -1 for all of a topic; then one by one, sorted */
    int32_t asked_count;
    bool only_not_preferred;
    bool is_unclean;
};

static struct leaders *leaders_of(struct tool *t)
{
    return CONTAINER_OF(t, struct leaders, tool);
}

static int32_t preferred_of(const struct metadata_response_partition *p)
{
    return p && p->replica_nodes.n > 0 ? p->replica_nodes.v[0] : -1;
}

static void ask_topics(struct leaders *s, void (*done)(struct admin_op *op))
{
    s->topics.done = done;
    admin_describe_topics(s->tool.client, &s->topics, s->name_count ? s->names : NULL,
                          s->name_count);
}

/* ---- list. */

struct sums {
    int32_t partitions;
    int32_t not_preferred;
    int32_t without;
};

static const char *state_of(const struct metadata_response_partition *p)
{
    return p->leader_id < 0 ? "no leader" : p->leader_id == preferred_of(p) ? "same" : "differs";
}

static void add_line(struct table *table, struct str topic,
                     const struct metadata_response_partition *p)
{
    table_add(table, "%.*s-%d", STR_ARG(topic), p->partition_index);
    table_add(table, p->leader_id < 0 ? "leader -" : "leader %d", p->leader_id);
    table_add(table, "epoch %d", p->leader_epoch);
    table_add(table, "preferred %d", preferred_of(p));
    table_add(table, "%s", state_of(p));
}

static json_t *json_of_partition(struct str topic, const struct metadata_response_partition *p)
{
    return json_pack("{s:o, s:i, s:i, s:i, s:i, s:b}", "topic", tool_json_of(topic), "partition",
                     (int)p->partition_index, "leader", (int)p->leader_id, "leader_epoch",
                     (int)p->leader_epoch, "preferred", (int)preferred_of(p), "is_preferred",
                     p->leader_id >= 0 && p->leader_id == preferred_of(p));
}

/* Those that are shown go into the table and the array. */
static struct sums add_partitions(const struct leaders *s, const struct metadata_response *r,
                                  struct table *table, json_t *array)
{
    struct sums sums = {0};

    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t i = 0; i < r->topics.v[t].partitions.n; i++) {
            const struct metadata_response_partition *p = &r->topics.v[t].partitions.v[i];
            bool is_preferred = p->leader_id >= 0 && p->leader_id == preferred_of(p);

            sums.partitions++;
            sums.not_preferred += !is_preferred;
            sums.without += p->leader_id < 0;
            if (s->only_not_preferred && is_preferred)
                continue;
            add_line(table, r->topics.v[t].name, p);
            json_array_append_new(array, json_of_partition(r->topics.v[t].name, p));
        }
    return sums;
}

static int32_t led_by(const struct metadata_response *r, int32_t broker)
{
    int32_t n = 0;

    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t i = 0; i < r->topics.v[t].partitions.n; i++)
            n += r->topics.v[t].partitions.v[i].leader_id == broker;
    return n;
}

static int by_node(const void *a, const void *b)
{
    const struct metadata_response_broker *x = a;
    const struct metadata_response_broker *y = b;

    return (x->node_id > y->node_id) - (x->node_id < y->node_id);
}

static void print_sums(const struct metadata_response *r, const struct sums *sums)
{
    printf("partitions %d  not preferred %d  no leader %d  led by", sums->partitions,
           sums->not_preferred, sums->without);
    for (int32_t i = 0; i < r->brokers.n; i++)
        printf("%s broker %d: %d", i ? "," : "", r->brokers.v[i].node_id,
               led_by(r, r->brokers.v[i].node_id));
    printf("\n");
}

static json_t *json_of_brokers(const struct metadata_response *r)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < r->brokers.n; i++)
        json_array_append_new(array, json_pack("{s:i, s:i}", "broker", (int)r->brokers.v[i].node_id,
                                               "leads", (int)led_by(r, r->brokers.v[i].node_id)));
    return array;
}

static void listed(struct admin_op *op)
{
    struct leaders *s = CONTAINER_OF(op, struct leaders, topics);
    struct table table = {.columns = 5};
    json_t *partitions = json_array();
    const struct metadata_response *r;
    struct sums sums;

    if (!tool_check(&s->tool, op, "list the leaders of topic")) {
        json_decref(partitions);
        return;
    }
    r = topics_sort(op);
    if (r->brokers.n > 0)
        qsort(r->brokers.v, (size_t)r->brokers.n, sizeof(*r->brokers.v), by_node);
    sums = add_partitions(s, r, &table, partitions);
    if (s->tool.is_json) {
        tool_print_json(json_pack("{s:o, s:o, s:i, s:i, s:i}", "partitions", partitions, "brokers",
                                  json_of_brokers(r), "count", (int)sums.partitions,
                                  "not_preferred", (int)sums.not_preferred, "offline",
                                  (int)sums.without));
    } else {
        table_print(&table, "");
        print_sums(r, &sums);
        json_decref(partitions);
    }
    table_fini(&table);
    tool_end(&s->tool, EXIT_SUCCESS);
}

static void start_list(struct tool *t)
{
    ask_topics(leaders_of(t), listed);
}

/* ---- elect. */

/* What became of a partition. */
struct outcome {
    struct admin_partition at; /* first, for sorting */
    enum err err;
    struct str message;
};

static struct outcome *outcomes_of(struct leaders *s, int32_t *count)
{
    const struct elect_leaders_response *r = s->election.response;
    struct outcome *v = arena_calloc(&s->arena, (size_t)s->election.result_count + 1, sizeof(*v));

    *count = 0;
    for (int32_t t = 0; t < r->replica_election_results.n; t++) {
        const struct elect_leaders_response_topic *topic = &r->replica_election_results.v[t];

        for (int32_t i = 0; i < topic->partition_result.n; i++)
            v[(*count)++] = (struct outcome){
                .at = {topic->topic, topic->partition_result.v[i].partition_id},
                .err = err_from_wire(topic->partition_result.v[i].error_code),
                .message = topic->partition_result.v[i].error_message,
            };
    }
    if (*count > 0)
        qsort(v, (size_t)*count, sizeof(*v), partition_compare);
    return v;
}

static const char *result_of(const struct outcome *o)
{
    return !o->err ? "elected" : o->err == ERR_ELECTION_NOT_NEEDED ? "already" : "failed";
}

static void print_outcome(const struct leaders *s, struct table *table, const struct outcome *o)
{
    int32_t preferred =
        preferred_of(topics_find_partition(s->topics.response, o->at.topic, o->at.partition));

    table_add(table, "%.*s-%d", STR_ARG(o->at.topic), o->at.partition);
    table_add(table, "%s", result_of(o));
    if (!o->err && !s->is_unclean)
        table_add(table, "leader %d", preferred);
    else
        table_add(table, "%s", "");
}

static json_t *json_of_outcome(const struct outcome *o)
{
    bool has_failed = o->err && o->err != ERR_ELECTION_NOT_NEEDED;

    return json_pack("{s:o, s:i, s:s, s:s?, s:o}", "topic", tool_json_of(o->at.topic), "partition",
                     (int)o->at.partition, "result", result_of(o), "error",
                     has_failed ? err_name(o->err) : NULL, "message",
                     has_failed ? tool_json_of(o->message) : json_null());
}

static int32_t partitions_in(const struct metadata_response *r)
{
    int32_t n = 0;

    for (int32_t t = 0; t < r->topics.n; t++)
        n += MAX(r->topics.v[t].partitions.n, 0);
    return n;
}

static void print_outcomes(struct leaders *s, const struct outcome *v, int32_t count)
{
    struct table table = {.columns = 3};
    json_t *array = json_array();
    int32_t asked = s->asked_count ? s->asked_count : partitions_in(s->topics.response);
    int32_t elected = 0;
    int32_t failed = 0;

    for (int32_t i = 0; i < count; i++) {
        bool has_failed = v[i].err && v[i].err != ERR_ELECTION_NOT_NEEDED;

        elected += !v[i].err;
        failed += has_failed;
        print_outcome(s, &table, &v[i]);
        json_array_append_new(array, json_of_outcome(&v[i]));
        if (has_failed)
            tool_warn_err(&s->tool, v[i].err, v[i].message, "cannot elect a leader of %.*s-%d",
                          STR_ARG(v[i].at.topic), v[i].at.partition);
    }
    if (s->tool.is_json) {
        tool_print_json(json_pack("{s:o, s:i, s:i, s:i}", "partitions", array, "elected",
                                  (int)elected, "already", (int)(asked - elected - failed),
                                  "failed", (int)failed));
    } else {
        table_print(&table, "");
        json_decref(array);
        printf("elected %d  already %d  failed %d\n", elected, asked - elected - failed, failed);
    }
    table_fini(&table);
    tool_end(&s->tool, failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void elected(struct admin_op *op)
{
    struct leaders *s = CONTAINER_OF(op, struct leaders, election);
    const struct outcome *v;
    int32_t count;

    if (!moves_check(&s->tool, op, "elect leaders"))
        return;
    v = outcomes_of(s, &count);
    print_outcomes(s, v, count);
}

static void add_asked(struct leaders *s, struct admin_partition p)
{
    s->asked = xreallocarray(s->asked, (size_t)s->asked_count + 1, sizeof(*s->asked));
    s->asked[s->asked_count++] = p;
}

/* Topics become their partitions, and each partition stands there once. */
static void spread(struct leaders *s, const struct metadata_response *r)
{
    struct admin_partition *given = s->asked;
    int32_t given_count = s->asked_count;
    int32_t n = 0;

    s->asked = NULL;
    s->asked_count = 0;
    for (int32_t i = 0; i < given_count; i++) {
        const struct metadata_response_topic *topic = topics_find(r, given[i].topic);

        if (given[i].partition >= 0)
            add_asked(s, given[i]);
        for (int32_t k = 0; given[i].partition < 0 && topic && k < topic->partitions.n; k++)
            add_asked(s, (struct admin_partition){given[i].topic,
                                                  topic->partitions.v[k].partition_index});
    }
    free(given);
    if (s->asked_count > 0)
        qsort(s->asked, (size_t)s->asked_count, sizeof(*s->asked), partition_compare);
    for (int32_t i = 0; i < s->asked_count; i++)
        if (n == 0 || partition_compare(&s->asked[n - 1], &s->asked[i]) != 0)
            s->asked[n++] = s->asked[i];
    s->asked_count = n;
}

static void topics_described(struct admin_op *op)
{
    struct leaders *s = CONTAINER_OF(op, struct leaders, topics);
    const struct metadata_response *r;

    if (!tool_check(&s->tool, op, "elect leaders of topic"))
        return;
    r = topics_sort(op);
    spread(s, r);
    for (int32_t i = 0; i < s->asked_count; i++)
        if (!topics_check_partition(&s->tool, r, &s->asked[i], ""))
            return;
    s->election.done = elected;
    admin_elect_leaders(s->tool.client, &s->election,
                        s->is_unclean ? ADMIN_UNCLEAN : ADMIN_PREFERRED,
                        s->name_count ? s->asked : NULL, s->asked_count);
}

static void start_elect(struct tool *t)
{
    ask_topics(leaders_of(t), topics_described);
}

/* ---- Arguments. */

enum {
    OPTION_NOT_PREFERRED = 1,
    OPTION_TOPIC,
    OPTION_PARTITION,
    OPTION_UNCLEAN,
};

static const struct option options[] = {
    {"not-preferred", no_argument, NULL, OPTION_NOT_PREFERRED},
    {"topic", required_argument, NULL, OPTION_TOPIC},
    {"partition", required_argument, NULL, OPTION_PARTITION},
    {"unclean", no_argument, NULL, OPTION_UNCLEAN},
    TOOL_OPTIONS,
};

/* The first one takes the place of "all of the topic". */
static bool take_partition(struct leaders *s, const char *text)
{
    struct admin_partition *last = s->asked_count ? &s->asked[s->asked_count - 1] : NULL;
    int64_t n;

    if (!last) {
        s->tool.status = tool_usage(&s->tool, "--partition %s needs a --topic before it", text);
        return false;
    }
    if (!tool_number(&s->tool, "--partition", text, 0, INT32_MAX, &n))
        return false;
    if (last->partition < 0)
        last->partition = (int32_t)n;
    else
        add_asked(s, (struct admin_partition){last->topic, (int32_t)n});
    return true;
}

static bool take_option(struct leaders *s, int o)
{
    switch (o) {
    case OPTION_NOT_PREFERRED: s->only_not_preferred = true; return true;
    case OPTION_UNCLEAN: s->is_unclean = true; return true;
    case OPTION_PARTITION: return take_partition(s, optarg);
    default: add_asked(s, (struct admin_partition){str_of(optarg), -1}); return true;
    }
}

/* Of a command that lists. 0: go on. */
static int check_list(struct leaders *s, int argc, char **argv)
{
    if (s->asked_count > 0 || s->is_unclean)
        return tool_usage(&s->tool, "only elect takes --topic, --partition and --unclean");
    s->tool.start = start_list;
    s->names = xcalloc((size_t)argc, sizeof(*s->names));
    for (int i = optind + 1; i < argc; i++)
        s->names[s->name_count++] = str_of(argv[i]);
    return 0;
}

static int check_elect(struct leaders *s, int argc, char **argv)
{
    if (optind + 1 < argc)
        return tool_usage(&s->tool, "elect takes no names, but there is '%s'; write --topic %s",
                          argv[optind + 1], argv[optind + 1]);
    if (s->only_not_preferred)
        return tool_usage(&s->tool, "only list takes --not-preferred");
    if (s->is_unclean && s->asked_count == 0)
        return tool_usage(&s->tool, "an unclean election may lose records, so it is only for "
                                    "partitions that are named: add --topic");
    s->tool.start = start_elect;
    s->names = xcalloc((size_t)s->asked_count + 1, sizeof(*s->names));
    s->name_count = partition_topics(s->asked, s->asked_count, sizeof(*s->asked), s->names);
    return 0;
}

static int check_arguments(struct leaders *s, int argc, char **argv)
{
    const char *verb = optind < argc ? argv[optind] : "";

    if (strcmp(verb, "list") == 0)
        return check_list(s, argc, argv);
    if (strcmp(verb, "elect") == 0)
        return check_elect(s, argc, argv);
    return tool_usage(&s->tool, "say what to do: list or elect");
}

static void stopping(struct tool *t)
{
    struct leaders *s = leaders_of(t);

    admin_op_fini(&s->topics);
    admin_op_fini(&s->election);
}

int leaders_run(int argc, char **argv)
{
    struct leaders s = {.tool = tool_default("leaders", help, NULL)};
    int status;
    int o;

    s.tool.stopping = stopping;
    while ((o = tool_getopt(&s.tool, argc, argv, options)) >= 0 && take_option(&s, o))
        continue;
    status = o == -1 ? check_arguments(&s, argc, argv) : s.tool.status;
    s.topics.timeout_ms = s.election.timeout_ms = s.tool.timeout_ms;
    if (o == -1 && !status)
        status = tool_run(&s.tool);
    arena_fini(&s.arena);
    free(s.names);
    free(s.asked);
    return status;
}
