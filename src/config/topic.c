/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topic's values: its overrides over what the broker says, as one plain struct that the log and
 * the request handlers read without knowing where anything came from.
 *
 * Overrides come from clients, who are told what is wrong, and later from the keeper, where a bad
 * one (another version's, another program's) must not keep a partition from opening: there the
 * broker's value holds instead.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "config/config_int.h"

struct view {
    const struct config *c;
    const struct config_overrides *o;
};

/* The override of the key, if it is there and checks; NULL otherwise. */
static const char *override_of(const struct view *v, enum config_key key,
                               struct config_number *number)
{
    const char *text = config_overrides_get(v->o, str_of(config_name(key)));
    char *message = NULL;

    if (text && config__check(key, str_of(text), number, &message))
        text = NULL;
    free(message);
    return text;
}

static struct config_number number_of(const struct view *v, enum config_key key)
{
    struct config_number number;

    return override_of(v, key, &number) ? number : v->c->numbers[key];
}

static int64_t i64_of(const struct view *v, enum config_key key)
{
    return number_of(v, key).i;
}

static int32_t i32_of(const struct view *v, enum config_key key)
{
    assert(config__defs[key].type == CONFIG_TYPE_INT);
    return (int32_t)number_of(v, key).i;
}

static bool bool_of(const struct view *v, enum config_key key)
{
    assert(config__defs[key].type == CONFIG_TYPE_BOOLEAN);
    return number_of(v, key).i != 0;
}

static struct str text_of(const struct view *v, enum config_key key)
{
    struct config_number number;
    const char *text = override_of(v, key, &number);

    return text ? config__trim(str_of(text)) : config_str(v->c, key);
}

static unsigned cleanup_policy_of(const struct view *v)
{
    struct str rest = text_of(v, CONFIG_TOPIC_CLEANUP_POLICY);
    struct str item;
    unsigned bits = 0;

    while (config_list_next(&rest, &item))
        bits |= str_eq_c(item, "compact") ? TOPIC_CLEANUP_COMPACT : TOPIC_CLEANUP_DELETE;
    return bits;
}

static enum topic_compression compression_of(const struct view *v)
{
    static const char *const names[] = {"uncompressed", "gzip", "snappy", "lz4", "zstd"};
    struct str text = text_of(v, CONFIG_TOPIC_COMPRESSION_TYPE);

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(text, names[i]))
            return (enum topic_compression)i;
    return TOPIC_COMPRESSION_PRODUCER;
}

static enum topic_timestamp_type timestamp_type_of(const struct view *v)
{
    return str_eq_c(text_of(v, CONFIG_TOPIC_MESSAGE_TIMESTAMP_TYPE), "LogAppendTime")
               ? TOPIC_TIMESTAMP_LOG_APPEND
               : TOPIC_TIMESTAMP_CREATE;
}

static int32_t segment_bytes_of(const struct view *v)
{
    int32_t internal = i32_of(v, CONFIG_TOPIC_INTERNAL_SEGMENT_BYTES);

    return internal > 0 ? internal : i32_of(v, CONFIG_TOPIC_SEGMENT_BYTES);
}

void topic_config_resolve(const struct config *c, const struct config_overrides *o,
                          struct topic_config *out)
{
    const struct view view = {c, o};
    const struct view *v = &view;

    *out = (struct topic_config){
        .cleanup_policy = cleanup_policy_of(v),
        .retention_ms = i64_of(v, CONFIG_TOPIC_RETENTION_MS),
        .retention_bytes = i64_of(v, CONFIG_TOPIC_RETENTION_BYTES),
        .local_retention_ms = i64_of(v, CONFIG_TOPIC_LOCAL_RETENTION_MS),
        .local_retention_bytes = i64_of(v, CONFIG_TOPIC_LOCAL_RETENTION_BYTES),
        .segment_bytes = segment_bytes_of(v),
        .segment_ms = i64_of(v, CONFIG_TOPIC_SEGMENT_MS),
        .segment_jitter_ms = i64_of(v, CONFIG_TOPIC_SEGMENT_JITTER_MS),
        .segment_index_bytes = i32_of(v, CONFIG_TOPIC_SEGMENT_INDEX_BYTES),
        .index_interval_bytes = i32_of(v, CONFIG_TOPIC_INDEX_INTERVAL_BYTES),
        .max_message_bytes = i32_of(v, CONFIG_TOPIC_MAX_MESSAGE_BYTES),
        .max_decompressed_message_bytes = i32_of(v, CONFIG_TOPIC_MAX_DECOMPRESSED_MESSAGE_BYTES),
        .min_insync_replicas = i32_of(v, CONFIG_TOPIC_MIN_INSYNC_REPLICAS),
        .unclean_leader_election = bool_of(v, CONFIG_TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE),
        .compression = compression_of(v),
        .gzip_level = i32_of(v, CONFIG_TOPIC_COMPRESSION_GZIP_LEVEL),
        .lz4_level = i32_of(v, CONFIG_TOPIC_COMPRESSION_LZ4_LEVEL),
        .zstd_level = i32_of(v, CONFIG_TOPIC_COMPRESSION_ZSTD_LEVEL),
        .timestamp_type = timestamp_type_of(v),
        .timestamp_before_max_ms = i64_of(v, CONFIG_TOPIC_MESSAGE_TIMESTAMP_BEFORE_MAX_MS),
        .timestamp_after_max_ms = i64_of(v, CONFIG_TOPIC_MESSAGE_TIMESTAMP_AFTER_MAX_MS),
        .min_cleanable_dirty_ratio = number_of(v, CONFIG_TOPIC_MIN_CLEANABLE_DIRTY_RATIO).f,
        .delete_retention_ms = i64_of(v, CONFIG_TOPIC_DELETE_RETENTION_MS),
        .min_compaction_lag_ms = i64_of(v, CONFIG_TOPIC_MIN_COMPACTION_LAG_MS),
        .max_compaction_lag_ms = i64_of(v, CONFIG_TOPIC_MAX_COMPACTION_LAG_MS),
        .flush_on_ack = bool_of(v, CONFIG_TOPIC_FLUSH_ON_ACK),
        .flush_messages = i64_of(v, CONFIG_TOPIC_FLUSH_MESSAGES),
        .flush_ms = i64_of(v, CONFIG_TOPIC_FLUSH_MS),
        .file_delete_delay_ms = i64_of(v, CONFIG_TOPIC_FILE_DELETE_DELAY_MS),
        .preallocate = bool_of(v, CONFIG_TOPIC_PREALLOCATE),
        .is_adopted = bool_of(v, CONFIG_TOPIC_ADOPTED),
    };
}

static bool is_listed(const struct config_overrides *o, enum config_key list, int32_t partition,
                      int32_t broker)
{
    const char *text = config_overrides_get(o, str_of(config_name(list)));

    return text && config__list_has_replica(str_of(text), partition, broker);
}

struct topic_throttle topic_throttle_of(const struct config_overrides *o, int32_t partition,
                                        int32_t broker)
{
    return (struct topic_throttle){
        .of_leader =
            is_listed(o, CONFIG_TOPIC_LEADER_REPLICATION_THROTTLED_REPLICAS, partition, broker),
        .of_follower =
            is_listed(o, CONFIG_TOPIC_FOLLOWER_REPLICATION_THROTTLED_REPLICAS, partition, broker),
    };
}

enum err topic_config_check(struct str name, struct str value, char **message)
{
    enum config_key key = config_find_topic(name);

    *message = NULL;
    if (key == CONFIG_NONE || config__defs[key].honour == CONFIG_HONOUR_GONE)
        return config__unknown(name, true, message);
    return config__check_client(key, value, message);
}

enum err topic_config_check_all(const struct config *c, const struct config_overrides *o,
                                char **message)
{
    struct topic_config t;

    *message = NULL;
    for (int32_t i = 0; i < o->count; i++) {
        enum err err =
            topic_config_check(str_of(o->pairs[i].name), str_of(o->pairs[i].value), message);

        if (err)
            return err;
    }
    topic_config_resolve(c, o, &t);
    if (t.min_compaction_lag_ms <= t.max_compaction_lag_ms)
        return ERR_NONE;
    *message = xasprintf("min.compaction.lag.ms=%lld is more than max.compaction.lag.ms=%lld",
                         (long long)t.min_compaction_lag_ms, (long long)t.max_compaction_lag_ms);
    return ERR_INVALID_CONFIG;
}
