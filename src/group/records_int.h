/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_GROUP_RECORDS_INT_H
#define SL_GROUP_RECORDS_INT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

/*
 * The records of __consumer_offsets in Apache Kafka's formats. Encoders append to a buffer; parsers
 * borrow from what they are given and never trust it.
 */

enum group_record_type {
    GROUP_RECORD_OFFSET = 0, /* key versions 0 and 1 */
    GROUP_RECORD_GROUP = 2,
    GROUP_RECORD_OTHER = -1, /* a type that this program does not know: passed over */
};

struct group_record_key {
    enum group_record_type type;
    struct str group;
    struct str topic;  /* of an offset */
    int32_t partition; /* likewise */
};

struct offset_value {
    int64_t offset;
    int32_t leader_epoch; /* -1: not known */
    struct str metadata;
    int64_t commit_ms;
    int64_t expire_ms; /* -1: by offsets.retention.minutes */
};

struct group_value_member {
    struct str id;
    struct str instance_id; /* null: dynamic */
    struct str client_id;
    struct str client_host;
    int32_t rebalance_timeout_ms;
    int32_t session_timeout_ms;
    struct bytes subscription;
    struct bytes assignment;
};

struct group_value {
    struct str protocol_type;
    int32_t generation;
    struct str protocol; /* null: none */
    struct str leader;   /* likewise */
    int64_t state_ms;    /* since when it is what it is; -1: not known */
    struct group_value_member *members;
    int32_t member_count;
};

void record__put_offset_key(struct buf *out, struct str group, struct str topic, int32_t partition);
void record__put_offset_value(struct buf *out, const struct offset_value *v);
void record__put_group_key(struct buf *out, struct str group);
/* The members follow, each by record__put_member, as many as were announced. */
void record__put_group_value(struct buf *out, const struct group_value *v);
void record__put_member(struct buf *out, const struct group_value_member *m);

/* ERR_CORRUPT: cut off. */
must_use enum err record__parse_key(struct bytes key, struct group_record_key *out);
/* ERR_CORRUPT; ERR_BAD_VERSION: newer than this program. */
must_use enum err record__parse_offset(struct bytes value, struct offset_value *out);
must_use enum err record__parse_group(struct bytes value, struct arena *arena,
                                      struct group_value *out);

#endif
