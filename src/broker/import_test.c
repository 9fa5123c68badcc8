/* SPDX-License-Identifier: Apache-2.0 */
/* What Kafka's tools and ours print about topics is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "broker/import_int.h"

static struct import parse(const char *text)
{
    struct import im;
    char *message;

    assert_int_equal(import_parse(str_of(text), "f", &im, &message), ERR_NONE);
    assert_null(message);
    return im;
}

static void expect(const struct import *im, const char *topic, const char *key, const char *value)
{
    const struct config_overrides *o = import_find(im, str_of(topic));
    const char *found;

    assert_non_null(o);
    found = config_overrides_get(o, str_of(key));
    if (value)
        assert_string_equal(found, value);
    else
        assert_null(found);
}

static void what_kafka_configs_prints_is_read(void **state)
{
    struct import im =
        parse("[2026-01-01 00:00:00,000] WARN something (org.apache.Else)\n"
              "Dynamic configs for topic a.b are:\n"
              "  retention.ms=-1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=-1}\n"
              "  cleanup.policy=compact,delete sensitive=false "
              "synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
              "DEFAULT_CONFIG:log.cleanup.policy=delete}\r\n"
              "Dynamic configs for topic none are:\n"
              "All configs for topic all are:\n"
              "  segment.bytes=1 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=1}\n"
              "  flush.ms=9 sensitive=false synonyms={}\n"
              "  retention.bytes=7 sensitive=false "
              "synonyms={STATIC_BROKER_CONFIG:log.retention.bytes=7}");

    (void)state;
    assert_int_equal(im.count, 3);
    expect(&im, "a.b", "retention.ms", "-1");
    expect(&im, "a.b", "cleanup.policy", "compact,delete");
    assert_int_equal(import_find(&im, STR_LIT("none"))->count, 0);
    expect(&im, "all", "segment.bytes", NULL);
    expect(&im, "all", "flush.ms", NULL);
    expect(&im, "all", "retention.bytes", "7");
    assert_null(import_find(&im, STR_LIT("a")));
    import_fini(&im);
}

static void what_kafka_topics_prints_is_read(void **state)
{
    struct import im = parse(
        "Topic: one\tTopicId: FvVpmku1RbK5R3dhJVZ47g\tPartitionCount: 2\tReplicationFactor: 1\t"
        "Configs: retention.ms=5,cleanup.policy=compact,delete,segment.bytes=9\n"
        "\tTopic: one\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
        "Topic: two\tTopicId: C2ZwgAoLQT6KCAEBN3xCmQ\tPartitionCount: 1\tConfigs: \n");

    (void)state;
    assert_int_equal(im.count, 2);
    expect(&im, "one", "retention.ms", "5");
    expect(&im, "one", "cleanup.policy", "compact,delete");
    expect(&im, "one", "segment.bytes", "9");
    assert_int_equal(import_find(&im, STR_LIT("two"))->count, 0);
    import_fini(&im);
}

static void json_is_read(void **state)
{
    struct import im =
        parse("{\"t\": {\"retention.ms\": {\"value\": \"-1\", \"source\": \"topic\"},"
              " \"segment.ms\": {\"value\": \"3\", \"source\": \"default\"},"
              " \"flush.ms\": {\"value\": null, \"source\": \"topic\"}, \"segment.bytes\": \"8\"},"
              " \"u\": {}}\n{\"v\": {\"retention.ms\": \"4\"}}\n");

    (void)state;
    assert_int_equal(im.count, 3);
    expect(&im, "t", "retention.ms", "-1");
    expect(&im, "t", "segment.ms", NULL);
    expect(&im, "t", "flush.ms", NULL);
    expect(&im, "t", "segment.bytes", "8");
    expect(&im, "v", "retention.ms", "4");
    import_fini(&im);
}

static void a_file_without_topics_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "{}",
                                        "retention.ms=-1\n",
                                        "{\"retention.ms\": \"-1\"}",
                                        "  a=b sensitive=false synonyms={X:a=b}\n",
                                        "Topic: cut",
                                        "{\"t\": {}} {",
                                        "Dynamic configs for topic  are:"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct import im;
        char *message;

        assert_int_equal(import_parse(str_of(texts[i]), "some.file", &im, &message),
                         ERR_INVALID_CONFIG);
        assert_non_null(strstr(message, "some.file says nothing of any topic"));
        free(message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_kafka_configs_prints_is_read),
        cmocka_unit_test(what_kafka_topics_prints_is_read),
        cmocka_unit_test(json_is_read),
        cmocka_unit_test(a_file_without_topics_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
