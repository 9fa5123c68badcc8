/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes as text: what we write is compared with the text itself, so that a changed key or type
 * shows; what Kafka's versions write is read; each damaged form of it is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/assert.h"
#include "keeper/znodes.h"

static struct arena arena;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

static struct bytes bytes_of(const char *s)
{
    return (struct bytes){.p = (const uint8_t *)s, .n = (int32_t)strlen(s)};
}

/* Takes the text. */
static void assert_text(char *text, const char *expected)
{
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void assert_str(struct str s, const char *expected)
{
    assert_int_equal(s.n, strlen(expected));
    assert_memory_equal(s.p, expected, strlen(expected));
}

static void assert_ids(struct metadata_ids ids, int32_t count, int32_t first)
{
    assert_int_equal(ids.count, count);
    if (count > 0)
        assert_int_equal(ids.ids[0], first);
}

/* ---- Paths. */

static void paths_are_kafkas(void **state)
{
    (void)state;
    assert_text(znode_broker_path(3), "/brokers/ids/3");
    assert_text(znode_topic_path(STR_LIT("t.1")), "/brokers/topics/t.1");
    assert_text(znode_partitions_path(STR_LIT("t")), "/brokers/topics/t/partitions");
    assert_text(znode_partition_path(STR_LIT("t"), 7), "/brokers/topics/t/partitions/7");
    assert_text(znode_state_path(STR_LIT("t"), 7), "/brokers/topics/t/partitions/7/state");
    assert_text(znode_delete_topic_path(STR_LIT("t")), "/admin/delete_topics/t");
    assert_text(znode_config_path(ZNODE_ENTITY_TOPICS, STR_LIT("a_b-c.d")),
                "/config/topics/a_b-c.d");
    assert_text(znode_config_path(ZNODE_ENTITY_BROKERS, str_null()), "/config/brokers/<default>");
    assert_text(znode_config_path(ZNODE_ENTITY_USERS, STR_LIT("CN=a b/*")),
                "/config/users/CN%3Da%20b%2F%2A");
    assert_text(znode_config_path(ZNODE_ENTITY_CLIENTS, STR_LIT("<default>")),
                "/config/clients/%3Cdefault%3E");
    assert_text(znode_config_entity(ZNODE_ENTITY_BROKERS, STR_LIT("1")), "brokers/1");
}

static void every_persistent_path_comes_after_its_parent(void **state)
{
    (void)state;
    for (int i = 0; i < znode_persistent_path_count; i++) {
        const char *path = znode_persistent_paths[i];
        size_t parent = (size_t)(strrchr(path, '/') - path);
        bool found = parent == 0;

        for (int j = 0; j < i; j++)
            found |= strlen(znode_persistent_paths[j]) == parent &&
                     strncmp(znode_persistent_paths[j], path, parent) == 0;
        assert_true(found);
    }
}

static void names_of_entities_come_back(void **state)
{
    static const char *const bad[] = {"%", "%4", "a%4", "%G0", "%0g"};
    struct str name;

    (void)state;
    assert_int_equal(znode_entity_name(STR_LIT("CN%3Da%20b%2F%2a+c"), &arena, &name), ERR_NONE);
    assert_str(name, "CN=a b/* c");
    assert_int_equal(znode_entity_name(STR_LIT("<default>"), &arena, &name), ERR_NONE);
    assert_true(str_is_null(name));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(znode_entity_name(str_of(bad[i]), &arena, &name), ERR_MALFORMED);
}

static void the_number_of_a_sequential_node_is_read(void **state)
{
    int32_t n;

    (void)state;
    assert_int_equal(znode_sequence(STR_LIT("config_change_0000000042"), &n), ERR_NONE);
    assert_int_equal(n, 42);
    assert_int_equal(znode_sequence(STR_LIT("2147483647"), &n), ERR_NONE);
    assert_int_equal(n, INT32_MAX);
    assert_int_equal(znode_sequence(STR_LIT("2147483648"), &n), ERR_MALFORMED);
    assert_int_equal(znode_sequence(STR_LIT("000000042"), &n), ERR_MALFORMED);
    assert_int_equal(znode_sequence(STR_LIT("change_000000x042"), &n), ERR_MALFORMED);
}

/* ---- Small nodes. */

static void small_nodes_are_written_and_read(void **state)
{
    struct znode_producer_ids ids = {.broker_id = 1, .first = 1000, .last = 1999};
    int32_t n;
    struct str id;

    (void)state;
    assert_text(znode_controller_json(1, 1700000000000),
                "{\"version\":2,\"brokerid\":1,\"timestamp\":\"1700000000000\","
                "\"kraftControllerEpoch\":-1}");
    assert_int_equal(
        znode_controller_parse(bytes_of("{\"version\":1,\"brokerid\":7,\"timestamp\":\"1\"}"), &n),
        ERR_NONE);
    assert_int_equal(n, 7);
    assert_text(znode_epoch_text(12), "12");
    assert_int_equal(znode_epoch_parse(bytes_of("12"), &n), ERR_NONE);
    assert_int_equal(n, 12);
    assert_text(znode_cluster_id_json(STR_LIT("MkU3OEVBNTcwNTJENDM2Qg")),
                "{\"version\":\"1\",\"id\":\"MkU3OEVBNTcwNTJENDM2Qg\"}");
    assert_int_equal(znode_cluster_id_parse(bytes_of("{\"id\":\"x\"}"), &arena, &id), ERR_NONE);
    assert_str(id, "x");
    assert_text(znode_producer_ids_json(&ids), "{\"version\":1,\"broker\":1,\"block_start\":"
                                               "\"1000\",\"block_end\":\"1999\"}");
    assert_text(znode_log_dir_event_json(2), "{\"version\":1,\"broker\":2,\"event\":1}");
    assert_int_equal(znode_log_dir_event_parse(bytes_of("{\"broker\":2}"), &n), ERR_NONE);
    assert_int_equal(n, 2);
    assert_text(znode_feature_json(), "{\"features\":{},\"version\":2,\"status\":1}");
}

static void a_block_of_producer_ids_begins_as_nothing(void **state)
{
    struct znode_producer_ids ids;

    (void)state;
    assert_int_equal(znode_producer_ids_parse(bytes_null(), &ids), ERR_NONE);
    assert_int_equal(ids.broker_id, -1);
    assert_int_equal(ids.last, -1);
    assert_int_equal(
        znode_producer_ids_parse(
            bytes_of("{\"broker\":3,\"block_start\":\"0\",\"block_end\":\"999\"}"), &ids),
        ERR_NONE);
    assert_int_equal(ids.broker_id, 3);
    assert_int_equal(ids.last, 999);
}

static void small_nodes_that_are_damaged_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "x",
        "{",
        "[]",
        "1",
        "{}",
        "{\"brokerid\":\"1\",\"broker\":1.5,\"id\":1,\"block_start\":0,\"block_end\":9}",
        "{\"brokerid\":2147483648,\"broker\":-2147483649}",
        "{\"broker\":1,\"block_start\":\"\",\"block_end\":\"9\"}x",
    };
    struct znode_producer_ids ids;
    int32_t n;
    struct str id;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct bytes data = bytes_of(bad[i]);

        assert_int_equal(znode_controller_parse(data, &n), ERR_MALFORMED);
        assert_int_equal(znode_cluster_id_parse(data, &arena, &id), ERR_MALFORMED);
        assert_int_equal(znode_log_dir_event_parse(data, &n), ERR_MALFORMED);
        if (data.n > 0)
            assert_int_equal(znode_producer_ids_parse(data, &ids), ERR_MALFORMED);
    }
    assert_int_equal(znode_epoch_parse(bytes_of("1x"), &n), ERR_MALFORMED);
    assert_int_equal(znode_epoch_parse(bytes_of("2147483648"), &n), ERR_MALFORMED);
    assert_int_equal(znode_epoch_parse(bytes_null(), &n), ERR_MALFORMED);
}

/* ---- Brokers. */

static void a_broker_is_written_as_version_5(void **state)
{
    struct znode_endpoint endpoints[] = {
        {STR_LIT("SECURE"), STR_LIT("SSL"), STR_LIT("h"), 9093},
        {STR_LIT("IN"), STR_LIT("PLAINTEXT"), STR_LIT("::1"), 9092},
    };
    struct znode_broker b = {.endpoint_count = 2,
                             .endpoints = endpoints,
                             .rack = STR_LIT("r"),
                             .jmx_port = -1,
                             .timestamp_ms = 1700000000000};

    (void)state;
    assert_text(znode_broker_json(&b),
                "{\"features\":{},\"listener_security_protocol_map\":{\"SECURE\":\"SSL\","
                "\"IN\":\"PLAINTEXT\"},\"endpoints\":[\"SECURE://h:9093\",\"IN://[::1]:9092\"],"
                "\"jmx_port\":-1,\"port\":9092,\"host\":\"::1\",\"version\":5,"
                "\"timestamp\":\"1700000000000\",\"rack\":\"r\"}");
    b.endpoint_count = 1;
    b.rack = str_null();
    assert_text(znode_broker_json(&b),
                "{\"features\":{},\"listener_security_protocol_map\":{\"SECURE\":\"SSL\"},"
                "\"endpoints\":[\"SECURE://h:9093\"],\"jmx_port\":-1,\"port\":-1,\"host\":null,"
                "\"version\":5,\"timestamp\":\"1700000000000\"}");
}

static void brokers_of_every_version_are_read(void **state)
{
    struct znode_broker b;

    (void)state;
    assert_int_equal(
        znode_broker_parse(
            bytes_of("{\"version\":5,\"jmx_port\":9999,\"timestamp\":\"17\",\"rack\":\"r1\","
                     "\"endpoints\":[\"IN://[fe80::1]:1\",\"OUT://:2\"],"
                     "\"listener_security_protocol_map\":{\"OUT\":\"SASL_SSL\",\"IN\":\"SSL\"}}"),
            &arena, &b),
        ERR_NONE);
    assert_int_equal(b.endpoint_count, 2);
    assert_str(b.endpoints[0].listener, "IN");
    assert_str(b.endpoints[0].protocol, "SSL");
    assert_str(b.endpoints[0].host, "fe80::1");
    assert_int_equal(b.endpoints[0].port, 1);
    assert_str(b.endpoints[1].protocol, "SASL_SSL");
    assert_str(b.endpoints[1].host, "");
    assert_str(b.rack, "r1");
    assert_int_equal(b.jmx_port, 9999);
    assert_int_equal(b.timestamp_ms, 17);
    assert_int_equal(
        znode_broker_parse(
            bytes_of("{\"version\":3,\"jmx_port\":-1,\"endpoints\":[\"SSL://h:1\"]}"), &arena, &b),
        ERR_NONE);
    assert_str(b.endpoints[0].protocol, "SSL");
    assert_true(str_is_null(b.rack));
    assert_int_equal(
        znode_broker_parse(bytes_of("{\"version\":1,\"jmx_port\":-1,\"host\":\"h\",\"port\":5}"),
                           &arena, &b),
        ERR_NONE);
    assert_str(b.endpoints[0].listener, "PLAINTEXT");
    assert_int_equal(b.endpoints[0].port, 5);
}

static void damaged_brokers_are_refused(void **state)
{
    static const char *const bad[] = {
        "{\"version\":5,\"endpoints\":[]}",
        "{\"version\":5,\"jmx_port\":-1}",
        "{\"version\":5,\"jmx_port\":-1,\"endpoints\":[1]}",
        "{\"version\":5,\"jmx_port\":-1,\"endpoints\":[\"\"]}",
        "{\"version\":5,\"jmx_port\":-1,\"endpoints\":[\"://h:1\"]}",
        "{\"version\":5,\"jmx_port\":-1,\"endpoints\":[\"A://h\"]}",
        "{\"version\":5,\"jmx_port\":-1,\"endpoints\":[\"A://h:\"]}",
        "{\"version\":5,\"jmx_port\":-1,\"endpoints\":[\"A://h:1x\"]}",
        "{\"version\":5,\"jmx_port\":-1,\"endpoints\":[\"SSL://[[]]:1\"]}",
        "{\"version\":5,\"jmx_port\":-1,\"endpoints\":[\"SSL://[h:1\"]}",
        "{\"version\":5,\"jmx_port\":-1,\"endpoints\":[\"A://h:4294967297\"]}",
        ("{\"version\":5,\"jmx_port\":-1,\"endpoints\":[\"A://h:1\"],"
         "\"listener_security_protocol_map\":{\"B\":\"SSL\"}}"),
        "{\"version\":1,\"jmx_port\":-1,\"host\":null,\"port\":1}",
        "{\"version\":1,\"jmx_port\":-1,\"host\":\"]h\",\"port\":1}",
        "{\"version\":1,\"jmx_port\":-1,\"host\":\"h\"}",
    };
    struct znode_broker b;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(znode_broker_parse(bytes_of(bad[i]), &arena, &b), ERR_MALFORMED);
}

/* ---- Topics. */

static void topics_are_written_as_version_3_and_read(void **state)
{
    int32_t ids[] = {2, 3};
    struct metadata_ids replicas[] = {{ids, 2}, {ids, 1}};
    struct metadata_ids adding[] = {{NULL, 0}, {ids + 1, 1}};
    struct znode_topic t = {.partition_count = 2, .replicas = replicas};
    const char *text = "{\"partitions\":{\"0\":[2,3],\"1\":[2]},"
                       "\"topic_id\":\"AAECAwQFBgcICQoLDA0ODw\",\"adding_replicas\":{\"1\":[3]},"
                       "\"removing_replicas\":{},\"version\":3}";

    (void)state;
    assert_text(znode_topic_json(&t),
                "{\"partitions\":{\"0\":[2,3],\"1\":[2]},\"adding_replicas\":{},"
                "\"removing_replicas\":{},\"version\":3}");
    for (uint8_t i = 0; i < 16; i++)
        t.id.b[i] = i;
    t.adding = adding;
    assert_text(znode_topic_json(&t), text);
    struct znode_topic read;

    assert_int_equal(znode_topic_parse(bytes_of(text), &arena, &read), ERR_NONE);
    assert_int_equal(read.partition_count, 2);
    assert_true(uuid_eq(read.id, t.id));
    assert_ids(read.replicas[0], 2, 2);
    assert_ids(read.replicas[1], 1, 2);
    assert_ids(read.adding[0], 0, 0);
    assert_ids(read.adding[1], 1, 3);
    assert_ids(read.removing[1], 0, 0);
    assert_int_equal(
        znode_topic_parse(bytes_of("{\"version\":1,\"partitions\":{\"0\":[1]}}"), &arena, &read),
        ERR_NONE);
    assert_true(uuid_is_zero(read.id));
}

static void damaged_topics_are_refused(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"partitions\":[]}",
        "{\"partitions\":{\"1\":[1]}}",
        "{\"partitions\":{\"0\":[1],\"00\":[1]}}",
        "{\"partitions\":{\"x\":[1]}}",
        "{\"partitions\":{\"-1\":[1]}}",
        "{\"partitions\":{\"0\":1}}",
        "{\"partitions\":{\"0\":[\"1\"]}}",
        "{\"partitions\":{\"0\":[4294967296]}}",
        "{\"partitions\":{\"0\":[1]},\"adding_replicas\":{\"1\":[1]}}",
        "{\"partitions\":{\"0\":[1]},\"removing_replicas\":[]}",
        "{\"partitions\":{\"0\":[1]},\"topic_id\":\"short\"}",
        "{\"partitions\":{\"0\":[1]},\"topic_id\":1}",
    };
    struct znode_topic t;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_not_equal(znode_topic_parse(bytes_of(bad[i]), &arena, &t), ERR_NONE);
}

static void states_are_written_and_read(void **state)
{
    static const char *const bad[] = {
        "{\"leader\":1,\"leader_epoch\":0,\"controller_epoch\":1}",
        "{\"leader\":1,\"leader_epoch\":0,\"isr\":[]}",
        "{\"leader\":1,\"controller_epoch\":1,\"isr\":[]}",
        "{\"leader_epoch\":0,\"controller_epoch\":1,\"isr\":[]}",
        ("{\"leader\":1,\"leader_epoch\":0,\"controller_epoch\":1,\"isr\":[],"
         "\"leader_recovery_state\":\"1\"}"),
    };
    int32_t ids[] = {1, 2};
    struct znode_state s = {.leader = 1, .leader_epoch = 4, .controller_epoch = 9, .isr = {ids, 2}};
    struct znode_state read;

    (void)state;
    assert_text(znode_state_json(&s), "{\"controller_epoch\":9,\"leader\":1,\"version\":1,"
                                      "\"leader_epoch\":4,\"isr\":[1,2]}");
    s.is_recovering = true;
    char *text = znode_state_json(&s);

    assert_int_equal(znode_state_parse(bytes_of(text), &arena, &read), ERR_NONE);
    free(text);
    assert_int_equal(read.leader, 1);
    assert_int_equal(read.leader_epoch, 4);
    assert_int_equal(read.controller_epoch, 9);
    assert_ids(read.isr, 2, 1);
    assert_true(read.is_recovering);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(znode_state_parse(bytes_of(bad[i]), &arena, &read), ERR_MALFORMED);
}

/* ---- Configuration and lists. */

static void configurations_are_written_and_read(void **state)
{
    static const char *const bad[] = {"", "{}", "{\"config\":[]}", "{\"config\":{\"a\":1}}"};
    struct config_overrides o = {0};

    (void)state;
    assert_text(znode_config_json(&o), "{\"version\":1,\"config\":{}}");
    config_overrides_put(&o, STR_LIT("retention.ms"), STR_LIT("\"5\""));
    assert_text(znode_config_json(&o),
                "{\"version\":1,\"config\":{\"retention.ms\":\"\\\"5\\\"\"}}");
    config_overrides_put(&o, STR_LIT("x"), STR_LIT("\xff"));
    assert_null(znode_config_json(&o));
    config_overrides_fini(&o);
    assert_int_equal(znode_config_parse(bytes_null(), &o), ERR_NONE);
    assert_int_equal(o.count, 0);
    assert_int_equal(znode_config_parse(bytes_of("{\"config\":{\"b\":\"2\",\"a\":\"1\"}}"), &o),
                     ERR_NONE);
    assert_int_equal(o.count, 2);
    assert_string_equal(config_overrides_get(&o, STR_LIT("b")), "2");
    config_overrides_fini(&o);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(znode_config_parse(bytes_of(bad[i]), &o), ERR_MALFORMED);
        config_overrides_fini(&o);
    }
}

static void config_changes_of_both_versions_are_read(void **state)
{
    struct str entity;

    (void)state;
    assert_text(znode_config_change_json("topics/foo"),
                "{\"version\":2,\"entity_path\":\"topics/foo\"}");
    assert_int_equal(znode_config_change_parse(
                         bytes_of("{\"version\":2,\"entity_path\":\"users/a\"}"), &arena, &entity),
                     ERR_NONE);
    assert_str(entity, "users/a");
    assert_int_equal(
        znode_config_change_parse(
            bytes_of("{\"version\":1,\"entity_type\":\"topics\",\"entity_name\":\"t\"}"), &arena,
            &entity),
        ERR_NONE);
    assert_str(entity, "topics/t");
    assert_int_equal(
        znode_config_change_parse(bytes_of("{\"entity_type\":\"topics\"}"), &arena, &entity),
        ERR_MALFORMED);
}

static void lists_of_partitions_are_written_and_read(void **state)
{
    int32_t ids[] = {1, 2};
    struct znode_partition v[] = {{STR_LIT("t"), 0, {ids, 2}}, {STR_LIT("u"), 3, {ids, 1}}};
    struct znode_partitions list = {.count = 2, .v = v}, read;

    (void)state;
    assert_text(znode_partitions_json(&list, false),
                "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0},"
                "{\"topic\":\"u\",\"partition\":3}]}");
    char *text = znode_partitions_json(&list, true);

    assert_string_equal(text, "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,"
                              "\"replicas\":[1,2]},{\"topic\":\"u\",\"partition\":3,"
                              "\"replicas\":[1]}]}");
    assert_int_equal(znode_partitions_parse(bytes_of(text), true, &arena, &read), ERR_NONE);
    free(text);
    assert_int_equal(read.count, 2);
    assert_str(read.v[1].topic, "u");
    assert_int_equal(read.v[1].partition, 3);
    assert_ids(read.v[0].replicas, 2, 1);
    assert_int_equal(znode_partitions_parse(bytes_of("{\"partitions\":[{\"topic\":\"t\"}]}"), false,
                                            &arena, &read),
                     ERR_MALFORMED);
    assert_int_equal(
        znode_partitions_parse(bytes_of("{\"partitions\":[{\"topic\":\"t\",\"partition\":0}]}"),
                               true, &arena, &read),
        ERR_MALFORMED);
    assert_int_equal(znode_partitions_parse(bytes_of("{\"partitions\":{}}"), false, &arena, &read),
                     ERR_MALFORMED);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths_are_kafkas),
        TEST(every_persistent_path_comes_after_its_parent),
        TEST(names_of_entities_come_back),
        TEST(the_number_of_a_sequential_node_is_read),
        TEST(small_nodes_are_written_and_read),
        TEST(a_block_of_producer_ids_begins_as_nothing),
        TEST(small_nodes_that_are_damaged_are_refused),
        TEST(a_broker_is_written_as_version_5),
        TEST(brokers_of_every_version_are_read),
        TEST(damaged_brokers_are_refused),
        TEST(topics_are_written_as_version_3_and_read),
        TEST(damaged_topics_are_refused),
        TEST(states_are_written_and_read),
        TEST(configurations_are_written_and_read),
        TEST(config_changes_of_both_versions_are_read),
        TEST(lists_of_partitions_are_written_and_read),
    };

    return cmocka_run_group_tests_name("znodes", tests, NULL, NULL);
}
