/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of reassignments: the JSON of Apache Kafka's kafka-reassign-partitions, in and out.
 *
 *     {"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}
 *
 * A file is judged as far as that is possible without the cluster, before anybody is asked. Keys
 * that we do not know are left alone, as Kafka leaves them; of log_dirs, which its tool writes,
 * only "any" can be followed. What is printed has a line for each partition, so that it can be
 * edited with any tool for lines.
 */
#include "cli/reassign_int.h"

#include <stdlib.h>

#include "base/alloc.h"

#define CURE                                                                                       \
    "'strandline reassign start TOPIC --brokers 1,2,3 --dry-run' prints a plan to begin with"

struct move *reassign__add_move(struct reassign *s, struct admin_partition at, struct ids to)
{
    if (s->move_count == s->move_cap) {
        s->move_cap = MAX(2 * s->move_cap, 64);
        s->moves = xreallocarray(s->moves, (size_t)s->move_cap, sizeof(*s->moves));
    }
    s->moves[s->move_count] = (struct move){
        .at = at,
        .place = s->move_count,
        .to = to,
        .message = str_null(),
    };
    return &s->moves[s->move_count++];
}

const char *reassign__place(struct reassign *s, const struct move *m)
{
    if (!s->plan_path)
        return "";
    /* With its end, to be a string. */
    return arena_printf(&s->arena, "%s: partitions[%d]: %c", s->plan_path, m->place, '\0').p;
}

/* ---- In. */

static bool wrong(struct reassign *s, const char *fmt, ...) printf_like(2, 3);

static bool wrong(struct reassign *s, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "strandline reassign: %s: ", s->plan_path);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    s->tool.status = EXIT_FAILURE;
    return false;
}

static bool is_id(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= INT32_MAX;
}

static bool take_replicas(struct reassign *s, const json_t *entry, size_t place, struct ids *out)
{
    const json_t *list = json_object_get(entry, "replicas");
    size_t n = json_array_size(list);
    int32_t *v = arena_calloc(&s->arena, n + 1, sizeof(*v));

    *out = (struct ids){v, (int32_t)n};
    if (n == 0)
        return wrong(s,
                     "partitions[%zu]: 'replicas' has to be a list of at least one broker id, "
                     "like [1,2,3]",
                     place);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);

        if (!is_id(id))
            return wrong(s, "partitions[%zu]: replicas[%zu] is not the id of a broker", place, i);
        v[i] = (int32_t)json_integer_value(id);
        if (ids_have(v, (int32_t)i, v[i]))
            return wrong(s, "partitions[%zu]: broker %d is there twice in 'replicas'", place, v[i]);
    }
    return true;
}

static bool check_log_dirs(struct reassign *s, const json_t *entry, size_t place)
{
    const json_t *list = json_object_get(entry, "log_dirs");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *dir = json_string_value(json_array_get(list, i));

        if (!dir || strcmp(dir, "any") != 0)
            return wrong(s,
                         "partitions[%zu]: log_dirs[%zu] names a directory, and brokers choose "
                         "theirs themselves; write \"any\", or leave log_dirs out",
                         place, i);
    }
    return true;
}

static bool take_entry(struct reassign *s, const json_t *entry, size_t place)
{
    const json_t *topic = json_object_get(entry, "topic");
    const json_t *partition = json_object_get(entry, "partition");
    struct ids to;

    if (!json_is_object(entry))
        return wrong(s, "partitions[%zu] is not an object; " CURE, place);
    if (!json_is_string(topic) || json_string_length(topic) == 0)
        return wrong(s, "partitions[%zu]: 'topic' has to be the name of a topic", place);
    if (!is_id(partition))
        return wrong(s, "partitions[%zu]: 'partition' has to be a number from 0 on", place);
    if (!take_replicas(s, entry, place, &to) || !check_log_dirs(s, entry, place))
        return false;
    reassign__add_move(s,
                       (struct admin_partition){
                           .topic = {json_string_value(topic), (int32_t)json_string_length(topic)},
                           .partition = (int32_t)json_integer_value(partition),
                       },
                       to);
    return true;
}

static bool check_repeated(struct reassign *s)
{
    for (int32_t i = 1; i < s->move_count; i++) {
        const struct move *a = &s->moves[i - 1];
        const struct move *b = &s->moves[i];

        if (partition_compare(a, b) == 0)
            return wrong(s, "partitions[%d] and partitions[%d] are both %.*s-%d; leave one out",
                         MIN(a->place, b->place), MAX(a->place, b->place), STR_ARG(a->at.topic),
                         a->at.partition);
    }
    return true;
}

static bool take_plan(struct reassign *s)
{
    const json_t *version = json_object_get(s->plan, "version");
    const json_t *partitions = json_object_get(s->plan, "partitions");

    if (version && (!json_is_integer(version) || json_integer_value(version) != 1))
        return wrong(s, "'version' has to be 1, which is the only one that there is");
    if (!json_is_array(partitions))
        return wrong(s, "there is no list 'partitions'; " CURE);
    if (json_array_size(partitions) == 0)
        return wrong(s, "the list 'partitions' is empty; " CURE);
    for (size_t i = 0; i < json_array_size(partitions); i++)
        if (!take_entry(s, json_array_get(partitions, i), i))
            return false;
    qsort(s->moves, (size_t)s->move_count, sizeof(*s->moves), partition_compare);
    return check_repeated(s);
}

bool reassign__load_plan(struct reassign *s)
{
    json_error_t error;

    s->plan = json_load_file(s->plan_path, JSON_REJECT_DUPLICATES, &error);
    if (s->plan)
        return take_plan(s);
    if (json_error_code(&error) == json_error_cannot_open_file)
        return wrong(s, "cannot be read; is it there?");
    return wrong(s, "line %d, column %d: %s; " CURE, error.line, error.column, error.text);
}

/* ---- Out. */

void reassign__print_plan(const struct reassign *s, bool is_now)
{
    printf("{\"version\":1,\"partitions\":[\n");
    for (int32_t i = 0; i < s->move_count; i++) {
        const struct move *m = &s->moves[i];
        const struct ids *ids = is_now ? &m->from : &m->to;

        printf("  {\"topic\":\"%.*s\",\"partition\":%d,\"replicas\":[", STR_ARG(m->at.topic),
               m->at.partition);
        for (int32_t k = 0; k < ids->n; k++)
            printf("%s%d", k ? "," : "", ids->v[k]);
        printf("]}%s\n", i + 1 < s->move_count ? "," : "");
    }
    printf("]}\n");
}

json_t *reassign__json_of_plan(const struct reassign *s, bool is_now)
{
    json_t *partitions = json_array();

    for (int32_t i = 0; i < s->move_count; i++) {
        const struct move *m = &s->moves[i];
        const struct ids *ids = is_now ? &m->from : &m->to;

        json_array_append_new(partitions,
                              json_pack("{s:o, s:i, s:o}", "topic", tool_json_of(m->at.topic),
                                        "partition", (int)m->at.partition, "replicas",
                                        ids_json(ids->v, ids->n)));
    }
    return json_pack("{s:i, s:o}", "version", 1, "partitions", partitions);
}
