/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of __consumer_offsets.
 *
 * The first two bytes of a key say what the record is about, the first two of a value how it is
 * laid out. We write what every Kafka since 2.3 reads: key 1 with value 3 for an offset (value 1
 * when a client asked for an expiry of its own, which later layouts have no room for), key 2 with
 * value 3 for a group. We read all versions there are, the flexible ones of Kafka 4 too. A record
 * without value removes what its key names.
 */
#include "group/records_int.h"

#include "group/cursor_int.h"

#define OFFSET_KEY_VERSION 1
#define GROUP_KEY_VERSION 2
#define OFFSET_VALUE_VERSION 3
#define OFFSET_VALUE_VERSION_WITH_EXPIRY 1
#define GROUP_VALUE_VERSION 3
#define VALUE_VERSION_FLEXIBLE 4 /* of both values */
#define MEMBER_BYTES_MIN 6       /* of an encoded member in the shortest version */

/* ---- writing ---------------------------------------------------------------------------- */

static void put_short(struct buf *out, int16_t v)
{
    put_i16(buf_extend(out, 2), v);
}

static void put_int(struct buf *out, int32_t v)
{
    put_i32(buf_extend(out, 4), v);
}

static void put_long(struct buf *out, int64_t v)
{
    put_i64(buf_extend(out, 8), v);
}

static void put_str(struct buf *out, struct str s)
{
    put_short(out, (int16_t)s.n);
    if (s.n > 0)
        buf_append(out, s.p, (size_t)s.n);
}

static void put_bytes(struct buf *out, struct bytes b)
{
    put_int(out, b.n);
    if (b.n > 0)
        buf_append(out, b.p, (size_t)b.n);
}

void record__put_offset_key(struct buf *out, struct str group, struct str topic, int32_t partition)
{
    put_short(out, OFFSET_KEY_VERSION);
    put_str(out, group);
    put_str(out, topic);
    put_int(out, partition);
}

void record__put_offset_value(struct buf *out, const struct offset_value *v)
{
    bool has_expiry = v->expire_ms >= 0;

    put_short(out, has_expiry ? OFFSET_VALUE_VERSION_WITH_EXPIRY : OFFSET_VALUE_VERSION);
    put_long(out, v->offset);
    if (!has_expiry)
        put_int(out, v->leader_epoch);
    put_str(out, v->metadata);
    put_long(out, v->commit_ms);
    if (has_expiry)
        put_long(out, v->expire_ms);
}

void record__put_group_key(struct buf *out, struct str group)
{
    put_short(out, GROUP_KEY_VERSION);
    put_str(out, group);
}

void record__put_group_value(struct buf *out, const struct group_value *v)
{
    put_short(out, GROUP_VALUE_VERSION);
    put_str(out, v->protocol_type);
    put_int(out, v->generation);
    put_str(out, v->protocol);
    put_str(out, v->leader);
    put_long(out, v->state_ms);
    put_int(out, v->member_count);
}

void record__put_member(struct buf *out, const struct group_value_member *m)
{
    put_str(out, m->id);
    put_str(out, m->instance_id);
    put_str(out, m->client_id);
    put_str(out, m->client_host);
    put_int(out, m->rebalance_timeout_ms);
    put_int(out, m->session_timeout_ms);
    put_bytes(out, m->subscription);
    put_bytes(out, m->assignment);
}

/* ---- reading ---------------------------------------------------------------------------- */

enum err record__parse_key(struct bytes key, struct group_record_key *out)
{
    struct cursor c = cursor_of(key);
    int16_t version = cursor_i16(&c);

    *out = (struct group_record_key){.type = GROUP_RECORD_OTHER};
    if (c.bad || version < 0)
        return ERR_CORRUPT;
    if (version > GROUP_KEY_VERSION)
        return ERR_NONE;
    out->type = version == GROUP_KEY_VERSION ? GROUP_RECORD_GROUP : GROUP_RECORD_OFFSET;
    out->group = cursor_str(&c);
    if (out->type == GROUP_RECORD_OFFSET) {
        out->topic = cursor_str(&c);
        out->partition = cursor_i32(&c);
    }
    if (c.bad || out->group.n < 0 || out->topic.n < 0)
        return ERR_CORRUPT;
    return ERR_NONE;
}

static enum err begin_value(struct cursor *c, int16_t *version)
{
    *version = cursor_i16(c);
    if (c->bad || *version < 0)
        return ERR_CORRUPT;
    c->compact = *version >= VALUE_VERSION_FLEXIBLE;
    return *version > VALUE_VERSION_FLEXIBLE ? ERR_BAD_VERSION : ERR_NONE;
}

enum err record__parse_offset(struct bytes value, struct offset_value *out)
{
    struct cursor c = cursor_of(value);
    int16_t version;
    enum err err = begin_value(&c, &version);

    *out = (struct offset_value){.leader_epoch = -1, .expire_ms = -1};
    if (err)
        return err;
    out->offset = cursor_i64(&c);
    if (version >= 3)
        out->leader_epoch = cursor_i32(&c);
    out->metadata = cursor_str(&c);
    out->commit_ms = cursor_i64(&c);
    if (version == OFFSET_VALUE_VERSION_WITH_EXPIRY)
        out->expire_ms = cursor_i64(&c);
    cursor_skip_tags(&c);
    return c.bad || out->metadata.n < 0 ? ERR_CORRUPT : ERR_NONE;
}

static void parse_member(struct cursor *c, int16_t version, struct group_value_member *m)
{
    m->id = cursor_str(c);
    m->instance_id = version >= 3 ? cursor_str(c) : str_null();
    m->client_id = cursor_str(c);
    m->client_host = cursor_str(c);
    m->rebalance_timeout_ms = version >= 1 ? cursor_i32(c) : -1;
    m->session_timeout_ms = cursor_i32(c);
    if (version == 0)
        m->rebalance_timeout_ms = m->session_timeout_ms;
    m->subscription = cursor_bytes(c);
    m->assignment = cursor_bytes(c);
    cursor_skip_tags(c);
    c->bad = c->bad || m->id.n < 0;
}

enum err record__parse_group(struct bytes value, struct arena *arena, struct group_value *out)
{
    struct cursor c = cursor_of(value);
    int16_t version;
    enum err err = begin_value(&c, &version);
    int64_t count;

    *out = (struct group_value){.protocol = str_null(), .leader = str_null(), .state_ms = -1};
    if (err)
        return err;
    out->protocol_type = cursor_str(&c);
    out->generation = cursor_i32(&c);
    out->protocol = cursor_str(&c);
    out->leader = cursor_str(&c);
    if (version >= 2)
        out->state_ms = cursor_i64(&c);
    count = cursor_length(&c, false);
    if (c.bad || count < 0 || count > (c.end - c.p) / MEMBER_BYTES_MIN)
        return ERR_CORRUPT;
    out->members = arena_calloc(arena, (size_t)count, sizeof(*out->members));
    out->member_count = (int32_t)count;
    for (int32_t i = 0; i < out->member_count; i++)
        parse_member(&c, version, &out->members[i]);
    cursor_skip_tags(&c);
    return c.bad ? ERR_CORRUPT : ERR_NONE;
}
