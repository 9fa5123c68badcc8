/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every table must obey, checked for each message, struct, field and version. The rules are
 * functions that return what is wrong, so that they can be shown to find it: the last tests give
 * them tables with one planted mistake each.
 */
#include "wire/kinds_test_int.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "wire/apis.h"
#include "wire/messages.h"

#define DEPTH_MAX 5

static bool is_nullable_kind(enum kind kind)
{
    return kind >= KIND_STR && kind != KIND_ONE;
}

static bool default_fits(const struct field *f)
{
    static const int64_t mins[] = {[KIND_I8] = INT8_MIN,
                                   [KIND_I16] = INT16_MIN,
                                   [KIND_I32] = INT32_MIN,
                                   [KIND_I64] = INT64_MIN};
    static const int64_t maxs[] = {
        [KIND_BOOL] = 1,         [KIND_I8] = INT8_MAX,   [KIND_I16] = INT16_MAX,
        [KIND_U16] = UINT16_MAX, [KIND_I32] = INT32_MAX, [KIND_I64] = INT64_MAX};

    if (f->kind == KIND_F64)
        return true;
    if (schema__kind_is_int(f->kind)) {
        int64_t min = f->kind < ARRAY_LEN(mins) ? mins[f->kind] : 0;

        return f->def >= min && f->def <= maxs[f->kind];
    }
    if (f->def == -1)
        return is_nullable_kind(f->kind) && field__is_nullable(f, f->first);
    return f->def == 0;
}

/* What is wrong with a field of a message of these versions; NULL if nothing is. */
static const char *field_problem(const struct field *f, const struct schema *message)
{
    if (f->first < message->first || f->first > f->last || f->first > message->last)
        return "versions are empty or outside the message's";
    if (f->last != LATEST && f->last >= message->last)
        return "last version is not LATEST though nothing follows";
    if (field__is_tagged(f) && f->first < message->flexible_from)
        return "tag in a version that has no tags";
    if (field__is_tagged(f) && f->kind == KIND_RECORDS)
        return "records in a tag: a hole would move";
    if (f->nullable_from_plus1 && !is_nullable_kind(f->kind))
        return "a kind that cannot be null";
    if (f->nullable_from_plus1 && f->nullable_from_plus1 - 1 > MIN(f->last, message->last))
        return "nullable only after its last version";
    if (f->kind == KIND_MAYBE && f->first < message->flexible_from)
        return "an optional struct before flexible versions";
    if (!default_fits(f))
        return "default does not fit";
    if ((f->child != NULL) != (f->kind == KIND_ONE || f->kind == KIND_MAYBE ||
                               (f->kind == KIND_ARRAY && f->element == KIND_ONE)))
        return "child without need, or none";
    return NULL;
}

/* What is wrong between a field and those that stand before it in its table. */
static const char *order_problem(const struct field *fields, const struct field *f)
{
    for (const struct field *g = fields; g < f; g++) {
        if (strcmp(g->name, f->name) == 0)
            return "name twice";
        if (g->offset >= f->offset)
            return "offsets do not ascend";
        if (field__is_tagged(g) && field__is_tagged(f) && g->tag_plus1 >= f->tag_plus1)
            return "tags do not ascend";
    }
    return NULL;
}

/* The least bytes that a value takes on the wire. */
static size_t min_bytes(enum kind kind, const struct schema *child, int16_t version, bool flexible)
{
    static const size_t fixed[] = {
        [KIND_BOOL] = 1, [KIND_I8] = 1,  [KIND_I16] = 2,   [KIND_U16] = 2,  [KIND_I32] = 4,
        [KIND_I64] = 8,  [KIND_F64] = 8, [KIND_UUID] = 16, [KIND_MAYBE] = 1};
    size_t sum = flexible; /* the number of tags */

    if (kind == KIND_STR && !flexible)
        return 2;
    if (kind == KIND_STR || kind == KIND_BYTES || kind == KIND_RECORDS || kind == KIND_ARRAY)
        return flexible ? 1 : 4;
    if (kind != KIND_ONE)
        return fixed[kind];
    for (const struct field *f = child->fields(); f->kind; f++)
        if (field__is_in(f, version) && !field__is_tagged(f))
            sum += min_bytes(f->kind, f->child, version, flexible);
    return sum;
}

/* Bytes of memory per byte on the wire for the elements of an array; 0: none on the wire. */
static double amplification(const struct field *f, const struct schema *message, int16_t version)
{
    bool flexible = schema__is_flexible(message, version);
    size_t wire = min_bytes(f->element, f->child, version, flexible);

    return wire ? (double)schema__kind_size(f->element, f->child) / (double)wire : 0;
}

static const char *array_problem(const struct field *f, const struct schema *message, double *worst)
{
    int16_t last = MIN(f->last, message->last);

    for (int16_t version = f->first; version <= last; version++) {
        double factor = amplification(f, message, version);

        if (factor == 0)
            return "elements that take no bytes";
        if (factor > DECODE_AMPLIFICATION_MAX)
            return "elements that take too much memory for their bytes";
        *worst = MAX(*worst, factor);
    }
    return NULL;
}

/* The first thing that is wrong in a struct and all below it; *where is its field. */
static const char *schema_problem(const struct schema *s, const struct schema *message, int depth,
                                  const char **where, double *worst)
{
    const char *problem = depth > DEPTH_MAX ? "too deep" : NULL;

    for (const struct field *f = s->fields(); f->kind && !problem; f++) {
        *where = f->name;
        problem = field_problem(f, message);
        if (!problem)
            problem = order_problem(s->fields(), f);
        if (!problem && f->kind == KIND_ARRAY)
            problem = array_problem(f, message, worst);
        if (!problem && f->child)
            problem = schema_problem(f->child, message, depth + 1, where, worst);
    }
    return problem;
}

static void check_message(const struct schema *s, double *worst)
{
    const char *where = "";
    const char *problem = schema_problem(s, s, 1, &where, worst);

    if (problem)
        fail_msg("%s: %s: %s", s->name, where, problem);
}

static void every_table_obeys_the_rules(void **state)
{
    double worst = 0;

    (void)state;
    for (int i = 0; i < API_KNOWN_COUNT; i++) {
        check_message(api_at(i)->request, &worst);
        check_message(api_at(i)->response, &worst);
    }
    check_message(&kinds_schema, &worst);
    /* Every struct str in an array of strings costs this at least, so less means a wrong sum. */
    assert_true(worst >= sizeof(struct str));
    print_message("worst amplification: %.1f of %d\n", worst, DECODE_AMPLIFICATION_MAX);
}

static void the_list_of_apis_agrees_with_the_schemas(void **state)
{
    (void)state;
    for (int i = 0; i < API_KNOWN_COUNT; i++) {
        const struct api *api = api_at(i);

        assert_ptr_equal(api_find(api->key), api);
        assert_true(i == 0 || i == API_COUNT || api_at(i - 1)->key < api->key);
        assert_int_equal(api->min <= api->max, i < API_COUNT);
        assert_int_equal(schema_first(api->request), schema_first(api->response));
        assert_int_equal(schema_last(api->request), schema_last(api->response));
        assert_true(schema_first(api->request) <= api->min);
        assert_true(schema_last(api->request) >= api->max);
        assert_int_equal(schema_flexible_from(api->request), api->flexible_from);
        assert_int_equal(schema_flexible_from(api->response), api->flexible_from);
        assert_memory_equal(schema_name(api->request), api->name, strlen(api->name));
        assert_string_equal(schema_name(api->request) + strlen(api->name), "_request");
        assert_string_equal(schema_name(api->response) + strlen(api->name), "_response");
    }
}

static void keys_that_we_do_not_know_are_not_found(void **state)
{
    (void)state;
    for (int key = INT16_MIN; key <= INT16_MAX; key++) {
        const struct api *api = api_find((int16_t)key);

        assert_true(!api || api->key == key);
    }
    assert_null(api_find(-1));
    assert_null(api_find(17));
    assert_null(api_find(76));
    assert_ptr_equal(api_find(API_FETCH), api_at(API_INDEX_FETCH));
    assert_ptr_equal(api_find(API_UPDATE_METADATA), api_at(API_INDEX_UPDATE_METADATA));
}

static void init_sets_the_defaults_of_the_protocol(void **state)
{
    struct fetch_request fetch;
    struct fetch_response_partition partition;
    struct metadata_request metadata;
    struct metadata_response metadata_out;
    struct api_versions_response versions;
    struct list_offsets_response_partition list;
    struct offset_for_leader_epoch_request epoch;
    struct leader_and_isr_request isr;
    struct stop_replica_request_partition stop;
    struct alter_partition_request_broker broker;
    struct kinds kinds;

    (void)state;
    memset(&fetch, 0xee, sizeof(fetch));
    wire_init(&fetch_request_schema, &fetch);
    assert_int_equal(fetch.replica_id, -1);
    assert_int_equal(fetch.replica_state.replica_id, -1);
    assert_int_equal(fetch.max_bytes, INT32_MAX);
    assert_int_equal(fetch.session_epoch, -1);
    assert_int_equal(fetch.cluster_id.n, -1);
    assert_int_equal(fetch.rack_id.n, 0);
    assert_int_equal(fetch.topics.n, 0);
    assert_null(fetch.topics.v);
    wire_init(&fetch_response_partition_schema, &partition);
    assert_int_equal(partition.diverging_epoch.end_offset, -1);
    assert_int_equal(partition.records.b.n, 0);
    wire_init(&metadata_request_schema, &metadata);
    assert_true(metadata.allow_auto_topic_creation);
    wire_init(&metadata_response_schema, &metadata_out);
    assert_int_equal(metadata_out.controller_id, -1);
    assert_int_equal(metadata_out.cluster_authorized_operations, INT32_MIN);
    wire_init(&api_versions_response_schema, &versions);
    assert_int_equal(versions.finalized_features_epoch, -1);
    wire_init(&list_offsets_response_partition_schema, &list);
    assert_int_equal(list.timestamp, -1);
    assert_int_equal(list.offset, -1);
    assert_int_equal(list.leader_epoch, -1);
    wire_init(&offset_for_leader_epoch_request_schema, &epoch);
    assert_int_equal(epoch.replica_id, -2);
    wire_init(&leader_and_isr_request_schema, &isr);
    assert_int_equal(isr.broker_epoch, -1);
    wire_init(&stop_replica_request_partition_schema, &stop);
    assert_int_equal(stop.leader_epoch, -1);
    wire_init(&alter_partition_request_broker_schema, &broker);
    assert_int_equal(broker.broker_epoch, -1);
    wire_init(&kinds_schema, &kinds);
    assert_int_equal(kinds.u16, 65535);
    assert_true(kinds.i64 == INT64_MIN);
    assert_true(kinds.f64 == 1.0);
    assert_null(kinds.maybe);
}

/* One table that the rules must refuse: its first field is given, an I32 follows. */
static struct field planted[3];

static const struct field *planted_fields(void)
{
    return planted;
}

static const struct field *no_fields(void)
{
    static const struct field fields[] = {{.kind = KIND_END}};

    return fields;
}

static const struct schema empty_schema = {.name = "empty", .fields = no_fields, .size = 1};
static const struct schema planted_schema = {
    .name = "planted", .fields = planted_fields, .size = 64, .last = 3, .flexible_from = 2};

static const char *problem_of(struct field first)
{
    const char *where;
    double worst = 0;

    first.name = "first";
    planted[0] = first;
    planted[1] = (struct field){.name = "second", .kind = KIND_I32, .offset = 16, .last = LATEST};
    return schema_problem(&planted_schema, &planted_schema, 1, &where, &worst);
}

static void the_rules_find_planted_mistakes(void **state)
{
    static const struct schema wide = {.name = "wide", .fields = planted_fields, .size = 4096};
    const struct field bad[] = {
        {.kind = KIND_I32, .first = 2, .last = 1},
        {.kind = KIND_I32, .first = 4, .last = LATEST},
        {.kind = KIND_I32, .last = 3},
        {.kind = KIND_I32, .first = 1, .last = LATEST, TAG(0)},
        {.kind = KIND_RECORDS, .first = 2, .last = LATEST, TAG(0)},
        {.kind = KIND_I32, .last = LATEST, NULLABLE(0)},
        {.kind = KIND_STR, .last = 1, NULLABLE(2)},
        {.kind = KIND_MAYBE, .last = LATEST, .child = &empty_schema, NULLABLE(0)},
        {.kind = KIND_I8, .last = LATEST, DEF(128)},
        {.kind = KIND_U16, .last = LATEST, DEF(-1)},
        {.kind = KIND_BOOL, .last = LATEST, DEF(2)},
        {.kind = KIND_STR, .last = LATEST, DEF_NULL},
        {.kind = KIND_STR, .last = LATEST, NULLABLE(1), DEF_NULL},
        {.kind = KIND_UUID, .last = LATEST, DEF(1)},
        {.kind = KIND_ONE, .last = LATEST},
        {.kind = KIND_I32, .last = LATEST, .child = &empty_schema},
        {.kind = KIND_I32, .last = LATEST, .offset = 16},
        {.kind = KIND_ARRAY, .last = LATEST, .element = KIND_ONE, .child = &empty_schema},
        {.kind = KIND_ARRAY, .last = LATEST, .element = KIND_ONE, .child = &wide},
        {.kind = KIND_ONE, .last = LATEST, .child = &planted_schema},
    };

    (void)state;
    assert_null(problem_of((struct field){.kind = KIND_I32, .last = LATEST}));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (!problem_of(bad[i]))
            fail_msg("planted mistake %zu was not found", i);
}

static void the_rules_find_doubled_names_and_tags(void **state)
{
    const char *where;
    double worst = 0;

    (void)state;
    problem_of((struct field){.kind = KIND_I32, .last = LATEST});
    planted[1].name = "first";
    assert_non_null(schema_problem(&planted_schema, &planted_schema, 1, &where, &worst));
    problem_of((struct field){.kind = KIND_I32, .first = 2, .last = LATEST, TAG(1)});
    planted[1].first = 2;
    planted[1].tag_plus1 = 1 + 1;
    assert_non_null(schema_problem(&planted_schema, &planted_schema, 1, &where, &worst));
    planted[1].tag_plus1 = 2 + 1;
    assert_null(schema_problem(&planted_schema, &planted_schema, 1, &where, &worst));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_obeys_the_rules),
        cmocka_unit_test(the_list_of_apis_agrees_with_the_schemas),
        cmocka_unit_test(keys_that_we_do_not_know_are_not_found),
        cmocka_unit_test(init_sets_the_defaults_of_the_protocol),
        cmocka_unit_test(the_rules_find_planted_mistakes),
        cmocka_unit_test(the_rules_find_doubled_names_and_tags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
