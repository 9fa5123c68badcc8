/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of keys is consistent; the layers of a broker's values override each other in order;
 * what cannot be honoured is refused or named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/config_int.h"

static int begin(void **state)
{
    *state = config_new();
    return 0;
}

static int end(void **state)
{
    config_free(*state);
    return 0;
}

static void load(struct config *c, const char *text)
{
    char *message;

    assert_int_equal(config_load_properties(c, str_of(text), "f", &message), ERR_NONE);
    assert_null(message);
}

/* The file is refused with exactly this line. */
static void check_refused(struct config *c, const char *text, const char *expected)
{
    char *message;

    assert_int_equal(config_load_properties(c, str_of(text), "f", &message), ERR_INVALID_CONFIG);
    assert_string_equal(message, expected);
    free(message);
}

static void check_str(struct config *c, enum config_key key, const char *expected)
{
    struct str s = config_str(c, key);

    assert_false(str_is_null(s));
    assert_string_equal(s.p, expected);
}

/* ---- The table. */

static void every_default_is_a_value_of_its_key(void **state)
{
    (void)state;
    for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
        char *message = NULL;

        if (config__defs[key].initial)
            assert_int_equal(config__check(key, str_of(config__defs[key].initial), NULL, &message),
                             ERR_NONE);
        free(message);
    }
}

static void a_topic_key_has_the_default_of_its_broker_key(void **state)
{
    struct config *c = *state;

    for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
        const struct config_def *def = &config__defs[key];

        if (def->scope != CONFIG_SCOPE_TOPIC || def->synonym == CONFIG_NONE)
            continue;
        assert_int_equal(c->numbers[key].i, c->numbers[def->synonym].i);
        assert_true(c->numbers[key].f == c->numbers[def->synonym].f);
        assert_int_equal(def->type, config__defs[def->synonym].type);
        if (def->initial && config__defs[def->synonym].initial)
            assert_string_equal(def->initial, config__defs[def->synonym].initial);
    }
}

static void a_synonym_is_a_later_broker_key(void **state)
{
    (void)state;
    for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
        enum config_key synonym = config__defs[key].synonym;

        if (synonym == CONFIG_NONE)
            continue;
        assert_true((int)synonym > key);
        assert_int_not_equal(config__defs[synonym].scope, CONFIG_SCOPE_TOPIC);
    }
}

static void every_key_is_found_by_its_name(void **state)
{
    (void)state;
    for (int key = 0; key < CONFIG_KEY_COUNT; key++) {
        struct str name = str_of(config_name(key));
        bool is_topic = config__defs[key].scope == CONFIG_SCOPE_TOPIC;

        assert_int_equal(is_topic ? config_find_topic(name) : config_find_broker(name), key);
    }
    assert_int_equal(config_find_topic(STR_LIT("num.partitions")), CONFIG_NONE);
    assert_int_equal(config_find_broker(STR_LIT("num.partition")), CONFIG_NONE);
}

static void what_differs_from_kafka_is_what_the_table_says(void **state)
{
    struct config *c = *state;

    assert_true(config_bool(c, CONFIG_FLUSH_ON_ACK));
    check_str(c, CONFIG_LISTENERS, "PLAINTEXT://localhost:9092");
    check_str(c, CONFIG_LOG_DIRS, "strandline-data");
    assert_int_equal(config_i32(c, CONFIG_NODE_ID), 1);
    assert_int_equal(config_i64(c, CONFIG_QUEUED_MAX_REQUEST_BYTES), 268435456);
}

/* ---- Files. */

static void a_file_sets_values(void **state)
{
    struct config *c = *state;

    load(c, "num.partitions = 3 \nlog.dirs=/a, /b\nauto.create.topics.enable=FALSE\n");
    assert_int_equal(config_i32(c, CONFIG_NUM_PARTITIONS), 3);
    check_str(c, CONFIG_LOG_DIRS, "/a, /b");
    assert_false(config_bool(c, CONFIG_AUTO_CREATE_TOPICS_ENABLE));
    assert_int_equal(config_source_of(c, CONFIG_NUM_PARTITIONS), CONFIG_SOURCE_STATIC);
    assert_int_equal(config_source_of(c, CONFIG_LOG_SEGMENT_BYTES), CONFIG_SOURCE_DEFAULT);
}

static void a_file_of_apache_kafka_loads(void **state)
{
    struct config *c = *state;
    char *message;

    load(c, "process.roles=broker,controller\nnode.id=1\n"
            "controller.quorum.bootstrap.servers=localhost:9093\n"
            "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
            "inter.broker.listener.name=PLAINTEXT\n"
            "advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n"
            "controller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL\n"
            "num.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\n"
            "socket.receive.buffer.bytes=102400\nsocket.request.max.bytes=104857600\n"
            "log.dirs=/tmp/kraft-combined-logs\nnum.partitions=1\n"
            "num.recovery.threads.per.data.dir=2\noffsets.topic.replication.factor=1\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
            "log.retention.hours=168\nlog.segment.bytes=1073741824\n"
            "log.retention.check.interval.ms=300000\n");
    assert_int_equal(config_validate(c, &message), ERR_NONE);
    assert_null(message);
}

static void a_mistake_is_told_with_its_place(void **state)
{
    struct config *c = *state;

    check_refused(c, "\nnum.partitions=three",
                  "f:2: num.partitions=three is not a whole number of 32 bits");
    check_refused(c, "num.partitions=0", "f:1: num.partitions=0 is out of range; allowed: 1..");
    check_refused(c, "num.partitions=4294967297",
                  "f:1: num.partitions=4294967297 is not a whole number of 32 bits");
    check_refused(c, "delete.topic.enable=yes",
                  "f:1: delete.topic.enable=yes is not true or false");
    check_refused(c, "log.cleaner.min.cleanable.ratio=1.5",
                  "f:1: log.cleaner.min.cleanable.ratio=1.5 is out of range; allowed: 0..1");
    check_refused(c, "log.cleaner.min.cleanable.ratio=nan",
                  "f:1: log.cleaner.min.cleanable.ratio=nan is not a number");
    check_refused(c, "log.message.timestamp.type=Create",
                  "f:1: log.message.timestamp.type=Create is out of range; allowed: "
                  "CreateTime|LogAppendTime");
    check_refused(c, "replica.selector.class=org.example.Nearest",
                  "f:1: replica.selector.class=org.example.Nearest is out of range; allowed: "
                  "org.apache.kafka.common.replica.RackAwareReplicaSelector|"
                  "org.apache.kafka.common.replica.LeaderSelector");
    check_refused(c, "# x\na=\\u1",
                  "f:2: NUL byte, or \\u without the four hexadecimal digits of "
                  "a character; correct or remove it");
}

static void an_unknown_key_gets_the_nearest_one(void **state)
{
    struct config *c = *state;

    check_refused(c, "num.partition=1",
                  "f:1: unknown broker key num.partition; did you mean num.partitions?");
    check_refused(c, "adverised.listener=1",
                  "f:1: unknown broker key adverised.listener; did you mean "
                  "advertised.listeners?");
    check_refused(c, "log.cleanup.policy=delete,shrink",
                  "f:1: log.cleanup.policy=delete,shrink is out of range; allowed: "
                  "delete|compact");
    check_refused(c, "retention.ms=1",
                  "f:1: retention.ms is a key of topics; the brokers' default "
                  "for it is log.retention.ms");
    check_refused(c, "colour=blue", "f:1: unknown broker key colour; remove it");
}

static void what_would_weaken_a_promise_is_refused(void **state)
{
    struct config *c = *state;

#define REASON                                                                                     \
    " is not supported here, and to ignore it would weaken security, durability or retention; "    \
    "remove it (allowed: "
    check_refused(c, "authorizer.class.name=org.x.Y",
                  "f:1: authorizer.class.name=org.x.Y" REASON "nothing)");
    check_refused(c, "remote.log.storage.system.enable=true",
                  "f:1: remote.log.storage.system.enable=true" REASON "false)");
    check_refused(c, "security.inter.broker.protocol=SSL",
                  "f:1: security.inter.broker.protocol=SSL" REASON "PLAINTEXT)");
#undef REASON
    load(c, "authorizer.class.name=\nlog.cleanup.policy=delete\n"
            "remote.log.storage.system.enable=False\n");
}

static void what_has_no_effect_is_named_in_one_line(void **state)
{
    struct config *c = *state;
    char *line = config_warning(c);

    assert_null(line);
    load(c, "num.partitions=2\nnum.io.threads=8\nlog.cleaner.threads=2\n"
            "inter.broker.protocol.version=3.9\nlistener.name.x.ssl.keystore.location=/k\n");
    line = config_warning(c);
    assert_string_equal(line, "set, but without an effect here: num.io.threads, "
                              "log.cleaner.threads, inter.broker.protocol.version, "
                              "listener.name.x.ssl.keystore.location");
    free(line);
}

static void hours_and_minutes_become_milliseconds(void **state)
{
    struct config *c = *state;

    assert_int_equal(config_i64(c, CONFIG_LOG_RETENTION_MS), 604800000);
    load(c, "log.retention.hours=2\nlog.roll.hours=3\n");
    assert_int_equal(config_i64(c, CONFIG_LOG_RETENTION_MS), 7200000);
    assert_int_equal(config_i64(c, CONFIG_TOPIC_RETENTION_MS), 7200000);
    assert_int_equal(config_i64(c, CONFIG_LOG_ROLL_MS), 10800000);
    load(c, "log.retention.minutes=5\n");
    assert_int_equal(config_i64(c, CONFIG_LOG_RETENTION_MS), 300000);
    load(c, "log.retention.minutes=-1\n");
    assert_int_equal(config_i64(c, CONFIG_LOG_RETENTION_MS), -1);
    load(c, "log.retention.ms=17\n");
    assert_int_equal(config_i64(c, CONFIG_LOG_RETENTION_MS), 17);
}

/* ---- Environment and command line. */

static void the_environment_overrides_the_file(void **state)
{
    struct config *c = *state;
    static const char *const env[] = {
        "PATH=/bin",
        "KAFKA_NUM_PARTITIONS=7",
        "KAFKA_LOG_DIRS=/x",
        "KAFKA_HEAP_OPTS=1",
        "KAFKA_PORT=tcp://1:9092",
        "KAFKA_",
        "KAFKA_SSL_KEYSTORE_TYPE=PEM",
        NULL,
    };
    char *message;
    char *line;

    load(c, "num.partitions=3\nlog.dirs=/y\n");
    assert_int_equal(config_load_environment(c, env, &message), ERR_NONE);
    assert_int_equal(config_i32(c, CONFIG_NUM_PARTITIONS), 7);
    check_str(c, CONFIG_LOG_DIRS, "/x");
    line = config_warning(c);
    assert_string_equal(line, "set, but without an effect here: ssl.keystore.type");
    free(line);
}

static void underscores_in_variables_have_three_meanings(void **state)
{
    struct config *c = *state;
    static const char *const env[] = {"KAFKA_LISTENER_NAME_A___B__C_SSL_CLIENT_AUTH=none", NULL};
    char *message;

    assert_int_equal(config_load_environment(c, env, &message), ERR_NONE);
    assert_int_equal(c->ignored.count, 1);
    assert_string_equal(c->ignored.pairs[0].name, "listener.name.a-b_c.ssl.client.auth");
}

static void a_bad_variable_is_an_error_and_an_unknown_one_is_named(void **state)
{
    struct config *c = *state;
    static const char *const bad[] = {"KAFKA_NUM_PARTITIONS=x", NULL};
    static const char *const unknown[] = {"KAFKA_NUM_PARTITION=3", NULL};
    char *message;

    assert_int_equal(config_load_environment(c, bad, &message), ERR_INVALID_CONFIG);
    assert_string_equal(message, "environment variable KAFKA_NUM_PARTITIONS: num.partitions=x is "
                                 "not a whole number of 32 bits");
    free(message);
    assert_int_equal(config_load_environment(c, unknown, &message), ERR_NONE);
    message = config_warning(c);
    assert_string_equal(message, "set, but without an effect here: KAFKA_NUM_PARTITION");
    free(message);
}

static void the_command_line_overrides_both(void **state)
{
    struct config *c = *state;
    char *message;

    load(c, "num.partitions=3\n");
    assert_int_equal(config_load_setting(c, STR_LIT("num.partitions=9"), &message), ERR_NONE);
    assert_int_equal(config_i32(c, CONFIG_NUM_PARTITIONS), 9);
    assert_int_equal(config_load_setting(c, STR_LIT("broker.rack=a=b"), &message), ERR_NONE);
    check_str(c, CONFIG_BROKER_RACK, "a=b");
    assert_int_equal(config_load_setting(c, STR_LIT("num.partitions"), &message),
                     ERR_INVALID_CONFIG);
    assert_string_equal(message, "--set num.partitions: no '='; write --set key=value");
    free(message);
    assert_int_equal(config_load_setting(c, STR_LIT("num.shard=1"), &message), ERR_INVALID_CONFIG);
    assert_string_equal(message, "--set: unknown broker key num.shard; did you mean num.shards?");
    free(message);
}

/* ---- Dynamic layers. */

static void put(struct config_overrides *o, const char *name, const char *value)
{
    config_overrides_put(o, str_of(name), str_of(value));
}

static void dynamic_layers_override_the_static_one(void **state)
{
    struct config *c = *state;
    struct config_overrides all = {0};
    struct config_overrides one = {0};

    load(c, "log.retention.ms=10\n");
    put(&all, "log.retention.ms", "20");
    put(&one, "log.retention.ms", "30");
    config_set_dynamic(c, CONFIG_SOURCE_DYNAMIC_DEFAULT, &all);
    assert_int_equal(config_i64(c, CONFIG_LOG_RETENTION_MS), 20);
    config_set_dynamic(c, CONFIG_SOURCE_DYNAMIC_BROKER, &one);
    assert_int_equal(config_i64(c, CONFIG_LOG_RETENTION_MS), 30);
    assert_int_equal(config_source_of(c, CONFIG_LOG_RETENTION_MS), CONFIG_SOURCE_DYNAMIC_BROKER);
    config_overrides_fini(&one);
    config_set_dynamic(c, CONFIG_SOURCE_DYNAMIC_BROKER, &one);
    assert_int_equal(config_i64(c, CONFIG_LOG_RETENTION_MS), 20);
    config_overrides_fini(&all);
}

static void what_may_not_be_dynamic_is_left_out(void **state)
{
    struct config *c = *state;
    struct config_overrides o = {0};

    put(&o, "num.partitions", "5");                     /* static */
    put(&o, "leader.replication.throttled.rate", "77"); /* of single brokers */
    put(&o, "log.segment.bytes", "12");                 /* out of range */
    put(&o, "no.such.key", "1");
    put(&o, "message.max.bytes", "1000");
    config_set_dynamic(c, CONFIG_SOURCE_DYNAMIC_DEFAULT, &o);
    assert_int_equal(config_i32(c, CONFIG_NUM_PARTITIONS), 1);
    assert_int_equal(config_i64(c, CONFIG_LEADER_REPLICATION_THROTTLED_RATE), INT64_MAX);
    assert_int_equal(config_i32(c, CONFIG_LOG_SEGMENT_BYTES), 1073741824);
    assert_int_equal(config_i32(c, CONFIG_MESSAGE_MAX_BYTES), 1000);
    config_set_dynamic(c, CONFIG_SOURCE_DYNAMIC_BROKER, &o);
    assert_int_equal(config_i64(c, CONFIG_LEADER_REPLICATION_THROTTLED_RATE), 77);
    config_overrides_fini(&o);
}

static void a_copy_is_independent(void **state)
{
    struct config *c = *state;
    struct config *copy;

    load(c, "num.partitions=3\nlistener.name.x.y=1\n");
    copy = config_copy(c);
    load(c, "num.partitions=4\n");
    assert_int_equal(config_i32(copy, CONFIG_NUM_PARTITIONS), 3);
    assert_int_equal(copy->ignored.count, 1);
    config_free(copy);
}

/* ---- Overrides. */

static void overrides_are_sorted_and_unique(void **state)
{
    struct config_overrides o = {0};

    (void)state;
    put(&o, "b", "1");
    put(&o, "c", "2");
    put(&o, "a", "3");
    put(&o, "b", "4");
    assert_int_equal(o.count, 3);
    assert_string_equal(o.pairs[0].name, "a");
    assert_string_equal(o.pairs[1].name, "b");
    assert_string_equal(o.pairs[2].name, "c");
    assert_string_equal(config_overrides_get(&o, STR_LIT("b")), "4");
    assert_null(config_overrides_get(&o, STR_LIT("d")));
    config_overrides_remove(&o, STR_LIT("a"));
    config_overrides_remove(&o, STR_LIT("d"));
    assert_int_equal(o.count, 2);
    assert_string_equal(config_overrides_get(&o, STR_LIT("c")), "2");
    config_overrides_fini(&o);
}

static void list_items_are_cut_at_commas_and_trimmed(void **state)
{
    struct str rest = STR_LIT(" a ,, b,c ,");
    struct str item;

    (void)state;
    assert_true(config_list_next(&rest, &item));
    assert_true(str_eq_c(item, "a"));
    assert_true(config_list_next(&rest, &item));
    assert_true(str_eq_c(item, "b"));
    assert_true(config_list_next(&rest, &item));
    assert_true(str_eq_c(item, "c"));
    assert_false(config_list_next(&rest, &item));
    rest = str_null();
    assert_false(config_list_next(&rest, &item));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_default_is_a_value_of_its_key),
        TEST(a_topic_key_has_the_default_of_its_broker_key),
        TEST(a_synonym_is_a_later_broker_key),
        TEST(every_key_is_found_by_its_name),
        TEST(what_differs_from_kafka_is_what_the_table_says),
        TEST(a_file_sets_values),
        TEST(a_file_of_apache_kafka_loads),
        TEST(a_mistake_is_told_with_its_place),
        TEST(an_unknown_key_gets_the_nearest_one),
        TEST(what_would_weaken_a_promise_is_refused),
        TEST(what_has_no_effect_is_named_in_one_line),
        TEST(hours_and_minutes_become_milliseconds),
        TEST(the_environment_overrides_the_file),
        TEST(underscores_in_variables_have_three_meanings),
        TEST(a_bad_variable_is_an_error_and_an_unknown_one_is_named),
        TEST(the_command_line_overrides_both),
        TEST(dynamic_layers_override_the_static_one),
        TEST(what_may_not_be_dynamic_is_left_out),
        TEST(a_copy_is_independent),
        TEST(overrides_are_sorted_and_unique),
        TEST(list_items_are_cut_at_commas_and_trimmed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
