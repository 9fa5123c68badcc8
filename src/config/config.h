/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CONFIG_CONFIG_H
#define SL_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/err.h"

struct arena;

/*
 * Configuration under Kafka's names: the broker's own values in four layers, the topics' values
 * that override them, and what DescribeConfigs and the Alter requests need to know about both.
 * keys.def is the single list of keys. The module is pure: the caller reads files and environment.
 *
 * A struct config is built by one thread. Once it is published to others it does not change any
 * more: a dynamic change makes a copy (config_copy), changes that and publishes it.
 *
 * Functions that can refuse a user's text return an error and set *message to one line for people
 * (what, where, what to do), owned by the caller; *message is NULL on success.
 */
enum config_key {
    CONFIG_NONE = -1,
#define KEY(id, name, type, initial, values, synonym, scope, honour, help) CONFIG_##id,
#include "config/keys.def"
#undef KEY
    CONFIG_KEY_COUNT,
};

/* Numbers of the protocol (DescribeConfigs). */
enum config_type {
    CONFIG_TYPE_BOOLEAN = 1,
    CONFIG_TYPE_STRING = 2,
    CONFIG_TYPE_INT = 3,
    CONFIG_TYPE_SHORT = 4,
    CONFIG_TYPE_LONG = 5,
    CONFIG_TYPE_DOUBLE = 6,
    CONFIG_TYPE_LIST = 7, /* comma-separated, blanks around items do not count */
    CONFIG_TYPE_CLASS = 8,
    CONFIG_TYPE_PASSWORD = 9, /* never printed */
};

/* Numbers of the protocol; a smaller one wins. Files, environment and --set are all static. */
enum config_source {
    CONFIG_SOURCE_TOPIC = 1,
    CONFIG_SOURCE_DYNAMIC_BROKER = 2,  /* this broker's own, changed at run time */
    CONFIG_SOURCE_DYNAMIC_DEFAULT = 3, /* of all brokers, changed at run time */
    CONFIG_SOURCE_STATIC = 4,
    CONFIG_SOURCE_DEFAULT = 5,
};

/* Which values a key has, and what may change them at run time. */
enum config_scope {
    CONFIG_SCOPE_STATIC = 0,  /* a broker's; restart to change */
    CONFIG_SCOPE_BROKER = 1,  /* a broker's; dynamic for each broker by itself */
    CONFIG_SCOPE_CLUSTER = 2, /* a broker's; dynamic for one broker or for all */
    CONFIG_SCOPE_TOPIC = 3,   /* a topic's; some keys of topics and brokers share their name */
};

enum config_op {
    CONFIG_OP_SET = 0,
    CONFIG_OP_DELETE = 1,
    CONFIG_OP_APPEND = 2,   /* lists only */
    CONFIG_OP_SUBTRACT = 3, /* lists only */
};

/* ---- Overrides: the name-value pairs that a topic or a dynamic layer holds. */

struct config_pair {
    char *name;
    char *value;
};

/* Owns its strings; sorted by name, each name once. {0} is empty. One thread at a time. */
struct config_overrides {
    struct config_pair *pairs;
    int32_t count;
};

void config_overrides_fini(struct config_overrides *o);
/* `to` must be empty or uninitialised. */
void config_overrides_copy(struct config_overrides *to, const struct config_overrides *from);
/* The value, borrowed from `o`; NULL when the name is not there. */
const char *config_overrides_get(const struct config_overrides *o, struct str name);
/* Copies both; replaces an older value. No checks: those are topic_config_check's. */
void config_overrides_put(struct config_overrides *o, struct str name, struct str value);
void config_overrides_remove(struct config_overrides *o, struct str name);

/* ---- Keys. */

/* Among the keys of topics or of brokers; CONFIG_NONE when no such key exists. */
enum config_key config_find_topic(struct str name);
enum config_key config_find_broker(struct str name);
const char *config_name(enum config_key key);

/* ---- The broker's values. */

struct config;

/* Every key has its default. Freed by config_free. */
struct config *config_new(void);
struct config *config_copy(const struct config *c);
void config_free(struct config *c);

/*
 * The static layer. Each call overrides what earlier ones set; the program calls them in this
 * order. ERR_INVALID_CONFIG: an unknown key (the message suggests the nearest), a value outside
 * type or range, or one that is refused because ignoring it would weaken security, durability or
 * retention. Nothing is undone: the program is expected to stop.
 */
/* `text` is a file in the syntax of Java's properties; `file` is its name, for messages. */
must_use enum err config_load_properties(struct config *c, struct str text, const char *file,
                                         char **message);
/* `env` as in environ(7): KAFKA_LOG_DIRS is log.dirs; ___ is -, __ is _, _ is a dot. */
must_use enum err config_load_environment(struct config *c, const char *const *env, char **message);
/* One key=value of the command line. */
must_use enum err config_load_setting(struct config *c, struct str setting, char **message);
/* Rules between keys; call it once after loading. ERR_INVALID_CONFIG. */
must_use enum err config_validate(const struct config *c, char **message);
/* One line that names all keys that are set without an effect; NULL: none. Owned by the caller. */
char *config_warning(const struct config *c);

/* Effective values of broker keys. The type must fit the key (asserted); strings are borrowed. */
bool config_bool(const struct config *c, enum config_key key);
int64_t config_i64(const struct config *c, enum config_key key); /* int, short, long */
int32_t config_i32(const struct config *c, enum config_key key); /* int, short */
double config_f64(const struct config *c, enum config_key key);
struct str config_str(const struct config *c, enum config_key key); /* any type; may be null */
enum config_source config_source_of(const struct config *c, enum config_key key);

/*
 * The next item of a comma-separated list, blanks cut: starts with *rest = the whole list, returns
 * false at the end. Empty items are skipped.
 */
bool config_list_next(struct str *rest, struct str *item);

/* Numbers of Kafka's security protocols. Only PLAINTEXT passes config_validate so far. */
enum config_protocol {
    CONFIG_PROTOCOL_PLAINTEXT = 0,
    CONFIG_PROTOCOL_SSL = 1,
    CONFIG_PROTOCOL_SASL_PLAINTEXT = 2,
    CONFIG_PROTOCOL_SASL_SSL = 3,
};

/* One entry of `listeners` or `advertised.listeners`, borrowed from the config. */
struct config_listener {
    struct str name; /* PLAINTEXT, or a name of listener.security.protocol.map */
    struct str host; /* empty: all addresses; IPv6 without brackets */
    int32_t port;    /* 0: any free one */
    enum config_protocol protocol;
};

/*
 * The entries of `key` without those for controllers alone (controller.listener.names). Returns
 * their number, the array is in the arena. Of a config that config_validate accepted.
 */
int32_t config_listeners(const struct config *c, enum config_key key, struct arena *a,
                         struct config_listener **out);

/*
 * http.address, of a config that config_validate accepted: false when there is none. `host` is
 * borrowed, empty for all addresses, IPv6 without brackets; port 0: any free one.
 */
bool config_http_address(const struct config *c, struct str *host, uint16_t *port);

/*
 * Replaces one dynamic layer (CONFIG_SOURCE_DYNAMIC_BROKER or _DEFAULT) by the pairs; those that
 * do not check are left out (they were checked when they were made, perhaps by another version).
 */
void config_set_dynamic(struct config *c, enum config_source layer,
                        const struct config_overrides *o);

/* ---- A topic's values. */

#define TOPIC_CLEANUP_DELETE 1u
#define TOPIC_CLEANUP_COMPACT 2u

enum topic_timestamp_type {
    TOPIC_TIMESTAMP_CREATE = 0,
    TOPIC_TIMESTAMP_LOG_APPEND = 1,
};

/* compression.type: as the producer sent it, or the codec numbers of record batches. */
enum topic_compression {
    TOPIC_COMPRESSION_PRODUCER = -1,
    TOPIC_COMPRESSION_NONE = 0,
    TOPIC_COMPRESSION_GZIP = 1,
    TOPIC_COMPRESSION_SNAPPY = 2,
    TOPIC_COMPRESSION_LZ4 = 3,
    TOPIC_COMPRESSION_ZSTD = 4,
};

/* What is in force for one topic: its overrides over the broker's values. Plain data, no owner. */
struct topic_config {
    unsigned cleanup_policy;       /* TOPIC_CLEANUP_ bits; 0: keep everything */
    int64_t retention_ms;          /* -1: no limit */
    int64_t retention_bytes;       /* of one partition; -1: no limit */
    int64_t local_retention_ms;    /* -2: as retention_ms */
    int64_t local_retention_bytes; /* -2: as retention_bytes */
    int32_t segment_bytes;
    int64_t segment_ms;
    int64_t segment_jitter_ms;
    int32_t segment_index_bytes; /* of each index file */
    int32_t index_interval_bytes;
    int32_t max_message_bytes;              /* of a batch with its 12 bytes of overhead */
    int32_t max_decompressed_message_bytes; /* of the records of a compressed batch */
    int32_t min_insync_replicas;
    bool unclean_leader_election;
    enum topic_compression compression;
    int32_t gzip_level; /* -1: the codec's default */
    int32_t lz4_level;
    int32_t zstd_level;
    enum topic_timestamp_type timestamp_type;
    int64_t timestamp_before_max_ms; /* how far a timestamp may lie in the past; INT64_MAX: any */
    int64_t timestamp_after_max_ms;  /* and in the future */
    double min_cleanable_dirty_ratio;
    int64_t delete_retention_ms;
    int64_t min_compaction_lag_ms;
    int64_t max_compaction_lag_ms;
    bool flush_on_ack;      /* an acknowledgement means on the device */
    int64_t flush_messages; /* INT64_MAX: never because of a count */
    int64_t flush_ms;       /* INT64_MAX: never because of time */
    int64_t file_delete_delay_ms;
    bool preallocate;
    bool is_adopted; /* another broker wrote the log: compaction may have left offsets out */
};

/* Overrides that do not check are left out, so that a bad stored value cannot stop a broker. */
void topic_config_resolve(const struct config *c, const struct config_overrides *o,
                          struct topic_config *out);

/*
 * Which of its duties this broker has to throttle for a partition (KIP-73): sending, by
 * leader.replication.throttled.replicas, and fetching, by follower.replication.throttled.replicas.
 */
struct topic_throttle {
    bool of_leader;
    bool of_follower;
};

struct topic_throttle topic_throttle_of(const struct config_overrides *o, int32_t partition,
                                        int32_t broker);

/* One pair. ERR_INVALID_CONFIG, as for every topic function below. */
must_use enum err topic_config_check(struct str name, struct str value, char **message);
/* All pairs, and the rules between them: for CreateTopics and after a series of alterations. */
must_use enum err topic_config_check_all(const struct config *c, const struct config_overrides *o,
                                         char **message);

/*
 * One operation of IncrementalAlterConfigs; `o` is unchanged on error. Append and subtract start
 * from the override, else from the key's default, and keep each item once. ERR_INVALID_REQUEST:
 * null value for anything but delete. Deleting what is not there is no error.
 */
must_use enum err config_alter_topic(struct config_overrides *o, enum config_op op, struct str name,
                                     struct str value, char **message);
/* The same for a dynamic layer of brokers; a refusal is ERR_INVALID_REQUEST, as in Kafka. */
must_use enum err config_alter_broker(struct config_overrides *o, enum config_source layer,
                                      enum config_op op, struct str name, struct str value,
                                      char **message);

/* ---- Describe. */

struct config_synonym {
    const char *name;
    const char *value; /* NULL: null or sensitive */
    enum config_source source;
};

/* What DescribeConfigs says about a key. */
struct config_entry {
    enum config_key key;
    const char *name;
    const char *value; /* effective; NULL: null or sensitive */
    enum config_source source;
    enum config_type type;
    bool is_read_only;
    bool is_sensitive;
    const char *documentation;
    const struct config_synonym *synonyms; /* the effective one first, as Kafka orders them */
    int32_t synonym_count;
};

/*
 * All keys in the order of keys.def; returns their number. The array is in the arena (which has no
 * limit, or room), the strings are borrowed from the config, the overrides or the arena.
 */
int32_t config_describe_topic(const struct config *c, const struct config_overrides *o,
                              struct arena *a, struct config_entry **out);
int32_t config_describe_broker(const struct config *c, struct arena *a, struct config_entry **out);
/* Only what the dynamic layer of all brokers sets: the broker resource with an empty name. */
int32_t config_describe_defaults(const struct config *c, struct arena *a,
                                 struct config_entry **out);

#endif
