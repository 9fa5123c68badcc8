/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topic values: what is in force, what is refused, what an alteration does, what describe says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/limits.h"
#include "config/config_int.h"

struct fixture {
    struct config *c;
    struct config_overrides o;
    struct arena a;
};

static int begin(void **state)
{
    static struct fixture f;

    f = (struct fixture){.c = config_new()};
    arena_init(&f.a, 0);
    *state = &f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    arena_fini(&f->a);
    config_overrides_fini(&f->o);
    config_free(f->c);
    return 0;
}

static void load(struct fixture *f, const char *text)
{
    char *message;

    assert_int_equal(config_load_properties(f->c, str_of(text), "f", &message), ERR_NONE);
}

static void put(struct fixture *f, const char *name, const char *value)
{
    config_overrides_put(&f->o, str_of(name), str_of(value));
}

static struct topic_config resolve(struct fixture *f)
{
    struct topic_config t;

    topic_config_resolve(f->c, &f->o, &t);
    return t;
}

/* ---- In force. */

static void without_overrides_the_defaults_hold(void **state)
{
    struct topic_config t = resolve(*state);

    assert_int_equal(t.cleanup_policy, TOPIC_CLEANUP_DELETE);
    assert_int_equal(t.retention_ms, 604800000);
    assert_int_equal(t.retention_bytes, -1);
    assert_int_equal(t.local_retention_ms, -2);
    assert_int_equal(t.local_retention_bytes, -2);
    assert_int_equal(t.segment_bytes, 1 << 30);
    assert_int_equal(t.segment_ms, 604800000);
    assert_int_equal(t.segment_jitter_ms, 0);
    assert_int_equal(t.segment_index_bytes, 10485760);
    assert_int_equal(t.index_interval_bytes, 4096);
    assert_int_equal(t.max_message_bytes, 1048588);
    assert_int_equal(t.max_decompressed_message_bytes, 512 << 20);
    assert_int_equal(t.min_insync_replicas, 1);
    assert_false(t.unclean_leader_election);
    assert_int_equal(t.compression, TOPIC_COMPRESSION_PRODUCER);
    assert_int_equal(t.gzip_level, -1);
    assert_int_equal(t.lz4_level, 9);
    assert_int_equal(t.zstd_level, 3);
    assert_int_equal(t.timestamp_type, TOPIC_TIMESTAMP_CREATE);
    assert_int_equal(t.timestamp_before_max_ms, INT64_MAX);
    assert_int_equal(t.timestamp_after_max_ms, 3600000);
    assert_true(t.min_cleanable_dirty_ratio == 0.5);
    assert_int_equal(t.delete_retention_ms, 86400000);
    assert_int_equal(t.min_compaction_lag_ms, 0);
    assert_int_equal(t.max_compaction_lag_ms, INT64_MAX);
    assert_true(t.flush_on_ack);
    assert_int_equal(t.flush_messages, INT64_MAX);
    assert_int_equal(t.flush_ms, INT64_MAX);
    assert_int_equal(t.file_delete_delay_ms, 60000);
    assert_false(t.preallocate);
}

static void the_broker_gives_what_the_topic_does_not_say(void **state)
{
    struct fixture *f = *state;
    struct topic_config t;

    load(f, "log.retention.hours=1\nmessage.max.bytes=5000\nflush.on.ack=false\n"
            "log.flush.scheduler.interval.ms=9\ncompression.type=zstd\nlog.preallocate=true\n");
    put(f, "max.message.bytes", "6000");
    put(f, "message.timestamp.type", "LogAppendTime");
    t = resolve(f);
    assert_int_equal(t.retention_ms, 3600000);
    assert_int_equal(t.max_message_bytes, 6000);
    assert_false(t.flush_on_ack);
    assert_int_equal(t.flush_ms, 9);
    assert_int_equal(t.compression, TOPIC_COMPRESSION_ZSTD);
    assert_int_equal(t.timestamp_type, TOPIC_TIMESTAMP_LOG_APPEND);
    assert_true(t.preallocate);
    put(f, "flush.on.ack", "true");
    put(f, "compression.type", "uncompressed");
    t = resolve(f);
    assert_true(t.flush_on_ack);
    assert_int_equal(t.compression, TOPIC_COMPRESSION_NONE);
}

static void a_bad_stored_override_is_left_out(void **state)
{
    struct fixture *f = *state;
    struct topic_config t;

    load(f, "log.retention.ms=77\n");
    put(f, "retention.ms", "soon");
    put(f, "compression.type", "brotli");
    put(f, "cleanup.policy", "shrink");
    put(f, "no.such.key", "1");
    t = resolve(f);
    assert_int_equal(t.retention_ms, 77);
    assert_int_equal(t.compression, TOPIC_COMPRESSION_PRODUCER);
    assert_int_equal(t.cleanup_policy, TOPIC_CLEANUP_DELETE);
}

static void an_empty_cleanup_policy_keeps_everything(void **state)
{
    struct fixture *f = *state;

    put(f, "cleanup.policy", "");
    assert_int_equal(resolve(f).cleanup_policy, 0);
}

static void tests_may_have_tiny_segments(void **state)
{
    struct fixture *f = *state;

    put(f, "segment.bytes", "2000000");
    assert_int_equal(resolve(f).segment_bytes, 2000000);
    put(f, "internal.segment.bytes", "1000");
    assert_int_equal(resolve(f).segment_bytes, 1000);
    config_overrides_fini(&f->o);
    load(f, "internal.log.segment.bytes=500\n");
    assert_int_equal(resolve(f).segment_bytes, 500);
}

static void an_adopted_log_is_marked_by_an_override(void **state)
{
    struct fixture *f = *state;

    assert_false(resolve(f).is_adopted);
    put(f, "adopted", "true");
    assert_true(resolve(f).is_adopted);
}

/* ---- Checks. */

static void check(const char *name, const char *value, const char *expected)
{
    char *message;
    enum err err = topic_config_check(str_of(name), str_of(value), &message);

    assert_int_equal(err, expected ? ERR_INVALID_CONFIG : ERR_NONE);
    if (expected)
        assert_string_equal(message, expected);
    free(message);
}

static void values_are_checked(void **state)
{
    (void)state;
    check("retention.ms", "-1", NULL);
    check("retention.ms", "-2", "retention.ms=-2 is out of range; allowed: -1..");
    check("segment.bytes", "1048576", NULL);
    check("segment.bytes", "1048575", "segment.bytes=1048575 is out of range; allowed: 1048576..");
    check("internal.segment.bytes", "14", NULL);
    check("compression.gzip.level", "-1", NULL);
    check("compression.gzip.level", "9", NULL);
    check("compression.gzip.level", "0",
          "compression.gzip.level=0 is out of range; allowed: -1|1..9");
    check("min.cleanable.dirty.ratio", "0.75", NULL);
    check("cleanup.policy", "delete", NULL);
    check("cleanup.policy", "delete,compact", NULL);
    check("cleanup.policy", "shrink",
          "cleanup.policy=shrink is out of range; allowed: delete|compact");
    check("remote.storage.enable", "true",
          "remote.storage.enable=true is not supported here, and to ignore it would weaken "
          "security, durability or retention; remove it (allowed: false)");
    check("retention", "1", "unknown topic key retention; did you mean retention.ms?");
    check("num.partitions", "1", "unknown topic key num.partitions; remove it");
    check("message.format.version", "3.0", "unknown topic key message.format.version; remove it");
}

static void rules_between_values_are_checked(void **state)
{
    struct fixture *f = *state;
    char *message;

    put(f, "min.compaction.lag.ms", "10");
    put(f, "max.compaction.lag.ms", "10");
    assert_int_equal(topic_config_check_all(f->c, &f->o, &message), ERR_NONE);
    put(f, "max.compaction.lag.ms", "9");
    assert_int_equal(topic_config_check_all(f->c, &f->o, &message), ERR_INVALID_CONFIG);
    assert_string_equal(message, "min.compaction.lag.ms=10 is more than max.compaction.lag.ms=9");
    free(message);
    put(f, "max.compaction.lag.ms", "x");
    assert_int_equal(topic_config_check_all(f->c, &f->o, &message), ERR_INVALID_CONFIG);
    free(message);
}

/* ---- Alterations. */

static enum err alter(struct fixture *f, enum config_op op, const char *name, const char *value)
{
    char *message;
    enum err err = config_alter_topic(&f->o, op, str_of(name), str_of(value), &message);

    assert_int_equal(err != ERR_NONE, message != NULL);
    free(message);
    return err;
}

static void check_override(struct fixture *f, const char *name, const char *expected)
{
    const char *value = config_overrides_get(&f->o, str_of(name));

    if (!expected) {
        assert_null(value);
        return;
    }
    assert_non_null(value);
    assert_string_equal(value, expected);
}

static void set_and_delete_change_one_override(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(alter(f, CONFIG_OP_SET, "retention.ms", " 5 "), ERR_NONE);
    check_override(f, "retention.ms", "5");
    assert_int_equal(alter(f, CONFIG_OP_SET, "retention.ms", "x"), ERR_INVALID_CONFIG);
    check_override(f, "retention.ms", "5");
    assert_int_equal(alter(f, CONFIG_OP_SET, "retention.ms", NULL), ERR_INVALID_REQUEST);
    assert_int_equal(alter(f, CONFIG_OP_DELETE, "retention.ms", NULL), ERR_NONE);
    check_override(f, "retention.ms", NULL);
    assert_int_equal(alter(f, CONFIG_OP_DELETE, "retention.ms", NULL), ERR_NONE);
    assert_int_equal(alter(f, CONFIG_OP_SET, "retention.mss", "1"), ERR_INVALID_CONFIG);
    assert_int_equal(alter(f, (enum config_op)9, "retention.ms", "1"), ERR_INVALID_REQUEST);
}

static void append_and_subtract_treat_lists_as_sets(void **state)
{
    struct fixture *f = *state;
    const char *name = "leader.replication.throttled.replicas";

    assert_int_equal(alter(f, CONFIG_OP_APPEND, name, "0:1,0:2"), ERR_NONE);
    check_override(f, name, "0:1,0:2");
    assert_int_equal(alter(f, CONFIG_OP_APPEND, name, "0:2, 1:1,1:1"), ERR_NONE);
    check_override(f, name, "0:1,0:2,1:1");
    assert_int_equal(alter(f, CONFIG_OP_SUBTRACT, name, "0:2,9:9"), ERR_NONE);
    check_override(f, name, "0:1,1:1");
    assert_int_equal(alter(f, CONFIG_OP_APPEND, "cleanup.policy", "delete"), ERR_NONE);
    check_override(f, "cleanup.policy", "delete");
    assert_int_equal(alter(f, CONFIG_OP_APPEND, "cleanup.policy", "shrink"), ERR_INVALID_CONFIG);
    assert_int_equal(alter(f, CONFIG_OP_APPEND, "cleanup.policy", "compact"), ERR_NONE);
    check_override(f, "cleanup.policy", "delete,compact");
    assert_int_equal(alter(f, CONFIG_OP_SUBTRACT, "cleanup.policy", "compact"), ERR_NONE);
    check_override(f, "cleanup.policy", "delete");
    assert_int_equal(alter(f, CONFIG_OP_SUBTRACT, "cleanup.policy", "delete"), ERR_NONE);
    check_override(f, "cleanup.policy", "");
    assert_int_equal(alter(f, CONFIG_OP_APPEND, "retention.ms", "1"), ERR_INVALID_CONFIG);
}

static void a_value_of_a_client_has_a_bounded_size(void **state)
{
    struct fixture *f = *state;
    const char *name = "leader.replication.throttled.replicas";
    char value[CONFIG_VALUE_BYTES_MAX + 2] = {0};

    for (int i = 0; i < CONFIG_VALUE_BYTES_MAX / 8; i++)
        snprintf(value + 8 * i, 9, "%05d:1,", i);
    value[CONFIG_VALUE_BYTES_MAX - 1] = '1'; /* In the place of the last comma. */
    assert_int_equal(alter(f, CONFIG_OP_SET, name, value), ERR_NONE);
    assert_int_equal(alter(f, CONFIG_OP_APPEND, name, "2:2"), ERR_INVALID_CONFIG);
    check_override(f, name, value);
    value[CONFIG_VALUE_BYTES_MAX] = '1';
    assert_int_equal(alter(f, CONFIG_OP_SET, name, value), ERR_INVALID_CONFIG);
    assert_int_equal(alter(f, CONFIG_OP_SUBTRACT, name, value), ERR_INVALID_CONFIG);
    check(name, value,
          "leader.replication.throttled.replicas has more than 16384 bytes; shorten it");
}

static void throttled_replicas_are_pairs_of_numbers_or_all(void **state)
{
    struct fixture *f = *state;
    const char *name = "follower.replication.throttled.replicas";
    static const char *const good[] = {"", "*", " * ", "0:1", "0:1, 12:2147483647,", "007:1"};
    static const char *const bad[] = {"none", "0",    "0:",  ":1",   "0:1:2",        "0:-1",
                                      "+1:1", "1: 1", "**",  "*,*",  "0:2147483648", "0:1,*",
                                      "a:1",  ":",    "0-1", "0:1;", "0:1,b"};

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        check(name, good[i], NULL);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(alter(f, CONFIG_OP_SET, name, bad[i]), ERR_INVALID_CONFIG);
    check(name, "0:x",
          "follower.replication.throttled.replicas=0:x is out of range; allowed: "
          "*|partition:broker");
}

static void check_throttle(struct fixture *f, int partition, int broker, bool leads, bool follows)
{
    struct topic_throttle t = topic_throttle_of(&f->o, partition, broker);

    assert_int_equal(t.of_leader, leads);
    assert_int_equal(t.of_follower, follows);
}

static void a_replica_is_throttled_where_the_topic_lists_it(void **state)
{
    struct fixture *f = *state;

    check_throttle(f, 0, 1, false, false);
    put(f, "leader.replication.throttled.replicas", "0:1, 10:1,3:2");
    put(f, "follower.replication.throttled.replicas", "0:2");
    check_throttle(f, 0, 1, true, false);
    check_throttle(f, 1, 1, false, false);
    check_throttle(f, 10, 1, true, false);
    check_throttle(f, 0, 2, false, true);
    check_throttle(f, 3, 2, true, false);
    check_throttle(f, 3, 1, false, false);
    put(f, "follower.replication.throttled.replicas", "*");
    check_throttle(f, 77, 9, false, true);
    check_throttle(f, 0, 1, true, true);
}

static void what_is_unknown_can_still_be_deleted(void **state)
{
    struct fixture *f = *state;

    put(f, "of.another.version", "1");
    assert_int_equal(alter(f, CONFIG_OP_SET, "of.another.version", "2"), ERR_INVALID_CONFIG);
    assert_int_equal(alter(f, CONFIG_OP_DELETE, "of.another.version", NULL), ERR_NONE);
    check_override(f, "of.another.version", NULL);
    assert_int_equal(alter(f, CONFIG_OP_DELETE, "of.another.version", NULL), ERR_INVALID_CONFIG);
}

static void check_broker(struct fixture *f, enum config_source layer, const char *name,
                         const char *value, const char *expected)
{
    char *message;
    enum err err =
        config_alter_broker(&f->o, layer, CONFIG_OP_SET, str_of(name), str_of(value), &message);

    assert_int_equal(err, expected ? ERR_INVALID_REQUEST : ERR_NONE);
    if (expected)
        assert_string_equal(message, expected);
    else
        assert_null(message);
    free(message);
}

static void brokers_change_dynamic_keys_only(void **state)
{
    struct fixture *f = *state;
    enum config_source all = CONFIG_SOURCE_DYNAMIC_DEFAULT;

    check_broker(f, all, "log.retention.ms", "9", NULL);
    check_override(f, "log.retention.ms", "9");
    check_broker(f, all, "num.partitions", "2",
                 "num.partitions cannot be changed at run time; set it in the broker's file and "
                 "restart");
    check_broker(f, all, "leader.replication.throttled.rate", "2",
                 "leader.replication.throttled.rate can only be changed for each broker by its id");
    check_broker(f, CONFIG_SOURCE_DYNAMIC_BROKER, "leader.replication.throttled.rate", "2", NULL);
    check_broker(f, all, "log.retention.ms", "x",
                 "log.retention.ms=x is not a whole number of 64 bits");
    check_broker(f, all, "log.retentoin.ms", "1",
                 "unknown broker key log.retentoin.ms; did you mean log.retention.ms?");
    check_override(f, "log.retention.ms", "9");
}

/* ---- Describe. */

static const struct config_entry *entry(const struct config_entry *entries, int32_t n,
                                        const char *name)
{
    for (int32_t i = 0; i < n; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

/* "value source name=value:source ..." */
static void check_entry(struct fixture *f, const struct config_entry *e, const char *expected)
{
    struct str s;

    assert_non_null(e);
    s = arena_printf(&f->a, "%s %d", e->value ? e->value : "null", e->source);
    for (int32_t i = 0; i < e->synonym_count; i++)
        s = arena_printf(&f->a, "%.*s %s=%s:%d", STR_ARG(s), e->synonyms[i].name,
                         e->synonyms[i].value ? e->synonyms[i].value : "null",
                         e->synonyms[i].source);
    assert_string_equal(s.p, expected);
}

static const struct config_entry *describe_topic(struct fixture *f, const char *name)
{
    struct config_entry *entries;
    int32_t n = config_describe_topic(f->c, &f->o, &f->a, &entries);

    return entry(entries, n, name);
}

static const struct config_entry *describe_broker(struct fixture *f, const char *name)
{
    struct config_entry *entries;
    int32_t n = config_describe_broker(f->c, &f->a, &entries);

    return entry(entries, n, name);
}

static void a_topic_is_described_with_sources_and_synonyms(void **state)
{
    struct fixture *f = *state;
    struct config_overrides dynamic = {0};
    const struct config_entry *e;

    check_entry(f, describe_topic(f, "retention.ms"), "604800000 5");
    check_entry(f, describe_topic(f, "segment.bytes"),
                "1073741824 5 log.segment.bytes=1073741824:5");
    check_entry(f, describe_topic(f, "leader.replication.throttled.replicas"), " 5");
    load(f, "log.segment.bytes=2000000\nlog.retention.hours=2\n");
    check_entry(f, describe_topic(f, "retention.ms"), "7200000 4 log.retention.hours=2:4");
    load(f, "log.retention.ms=3\n");
    config_overrides_put(&dynamic, STR_LIT("log.retention.ms"), STR_LIT("4"));
    config_set_dynamic(f->c, CONFIG_SOURCE_DYNAMIC_DEFAULT, &dynamic);
    put(f, "retention.ms", "5");
    put(f, "segment.bytes", "3000000");
    check_entry(f, describe_topic(f, "retention.ms"),
                "5 1 retention.ms=5:1 log.retention.ms=4:3 log.retention.ms=3:4 "
                "log.retention.hours=2:4 log.retention.hours=168:5");
    e = describe_topic(f, "segment.bytes");
    check_entry(f, e,
                "3000000 1 segment.bytes=3000000:1 log.segment.bytes=2000000:4 "
                "log.segment.bytes=1073741824:5");
    assert_int_equal(e->type, CONFIG_TYPE_INT);
    assert_false(e->is_read_only);
    assert_false(e->is_sensitive);
    assert_string_equal(e->documentation,
                        "A segment is closed before it becomes larger than this.");
    config_overrides_fini(&dynamic);
}

static void hidden_and_removed_keys_are_not_described(void **state)
{
    struct fixture *f = *state;

    assert_null(describe_topic(f, "internal.segment.bytes"));
    assert_null(describe_topic(f, "message.format.version"));
    assert_null(describe_topic(f, "num.partitions"));
    assert_null(describe_broker(f, "internal.log.segment.bytes"));
    put(f, "internal.segment.bytes", "100");
    check_entry(f, describe_topic(f, "internal.segment.bytes"),
                "100 1 internal.segment.bytes=100:1");
}

static void a_broker_is_described_without_its_secrets(void **state)
{
    struct fixture *f = *state;
    const struct config_entry *e;

    load(f, "ssl.key.password=hush\nnum.partitions=4\n");
    e = describe_broker(f, "ssl.key.password");
    check_entry(f, e, "null 4 ssl.key.password=null:4");
    assert_true(e->is_sensitive);
    assert_int_equal(e->type, CONFIG_TYPE_PASSWORD);
    e = describe_broker(f, "num.partitions");
    check_entry(f, e, "4 4 num.partitions=4:4 num.partitions=1:5");
    assert_true(e->is_read_only);
    e = describe_broker(f, "log.retention.ms");
    check_entry(f, e, "null 5");
    assert_false(e->is_read_only);
    check_entry(f, describe_broker(f, "log.retention.hours"), "168 5 log.retention.hours=168:5");
}

static void the_default_of_all_brokers_shows_its_own_layer_only(void **state)
{
    struct fixture *f = *state;
    struct config_entry *entries;

    assert_int_equal(config_describe_defaults(f->c, &f->a, &entries), 0);
    put(f, "message.max.bytes", "7");
    config_set_dynamic(f->c, CONFIG_SOURCE_DYNAMIC_DEFAULT, &f->o);
    assert_int_equal(config_describe_defaults(f->c, &f->a, &entries), 1);
    check_entry(f, &entries[0], "7 3 message.max.bytes=7:3");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_overrides_the_defaults_hold),
        TEST(the_broker_gives_what_the_topic_does_not_say),
        TEST(a_bad_stored_override_is_left_out),
        TEST(an_empty_cleanup_policy_keeps_everything),
        TEST(tests_may_have_tiny_segments),
        TEST(an_adopted_log_is_marked_by_an_override),
        TEST(values_are_checked),
        TEST(rules_between_values_are_checked),
        TEST(set_and_delete_change_one_override),
        TEST(append_and_subtract_treat_lists_as_sets),
        TEST(a_value_of_a_client_has_a_bounded_size),
        TEST(throttled_replicas_are_pairs_of_numbers_or_all),
        TEST(a_replica_is_throttled_where_the_topic_lists_it),
        TEST(what_is_unknown_can_still_be_deleted),
        TEST(brokers_change_dynamic_keys_only),
        TEST(a_topic_is_described_with_sources_and_synonyms),
        TEST(hidden_and_removed_keys_are_not_described),
        TEST(a_broker_is_described_without_its_secrets),
        TEST(the_default_of_all_brokers_shows_its_own_layer_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
