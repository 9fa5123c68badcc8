/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetch sessions (KIP-227): a client names its partitions once and afterwards only what changes;
 * the answer has only partitions with news. A session lives on the shard of its connection; one
 * that comes back on another shard is told that its session is unknown and starts anew, which is
 * always a legal answer. Its id tells which shard made it, so that ids are unique.
 *
 * A full cache gives up the session that has been silent longest, if that is more than two
 * minutes; otherwise newcomers are served without a session.
 */
#include "broker/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/planted.h"

#define EVICTION_NS 120000000000

struct fetch_cache {
    struct fetch_session *by_id;
    struct list used; /* least recently used first */
    int32_t count;
    int32_t slots;
};

struct fetch_cache *fetch_cache_new(int32_t slots)
{
    struct fetch_cache *cache = xcalloc(1, sizeof(*cache));

    cache->slots = slots;
    list_init(&cache->used);
    return cache;
}

static void remove_part(struct fetch_session *session, struct fetch_part *part)
{
    HASH_DELETE(hh, session->by_key, part);
    list_remove(&part->link);
    session->part_count--;
    if (part->range.file)
        io_file_unref(part->range.file);
    free(part->name);
    free(part);
}

void fetch_session_free(struct fetch_session *session)
{
    LIST_EACH_SAFE (node, &session->parts)
        remove_part(session, LIST_ENTRY(node, struct fetch_part, link));
    free(session);
}

static void remove_session(struct fetch_cache *cache, struct fetch_session *session)
{
    HASH_DELETE(hh, cache->by_id, session);
    list_remove(&session->link);
    cache->count--;
    session->id = 0;
    if (!session->is_busy)
        fetch_session_free(session);
}

void fetch_cache_free(struct fetch_cache *cache)
{
    if (!cache)
        return;
    LIST_EACH_SAFE (node, &cache->used)
        remove_session(cache, LIST_ENTRY(node, struct fetch_session, link));
    free(cache);
}

/* ---- parts ------------------------------------------------------------------------------ */

static uint64_t hash_name(struct str name)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

    for (int32_t i = 0; i < name.n; i++)
        h = (h ^ (uint8_t)name.p[i]) * 0x100000001b3u;
    return h ? h : 1;
}

static struct fetch_part *find_part(struct fetch_session *session, struct str name,
                                    struct uuid topic_id, int32_t index, struct fetch_part *key_out)
{
    struct fetch_part *part = NULL;

    memset(&key_out->key, 0, sizeof(key_out->key));
    key_out->key.index = index;
    if (session->goes_by_ids)
        key_out->key.topic_id = topic_id;
    else
        key_out->key.name_hash = hash_name(name);
    HASH_FIND(hh, session->by_key, &key_out->key, sizeof(key_out->key), part);
    return part;
}

static void put_part(struct fetch_session *session, const struct fetch_request_topic *topic,
                     const struct fetch_request_partition *from)
{
    struct fetch_part key;
    struct fetch_part *part =
        find_part(session, topic->topic, topic->topic_id, from->partition, &key);

    if (!part && PLANTED(SESSION_FORGETS_PARTITION) && session->part_count == 2)
        return;
    if (!part) {
        part = xcalloc(1, sizeof(*part));
        part->key = key.key;
        part->name = session->goes_by_ids ? NULL : str_dup(topic->topic);
        part->index = from->partition;
        part->sent_high_watermark = -1;
        part->sent_log_start = -1;
        part->diverging_epoch = -1;
        part->diverging_end = -1;
        part->near = -1;
        HASH_ADD(hh, session->by_key, key, sizeof(part->key), part);
        list_push_back(&session->parts, &part->link);
        session->part_count++;
    }
    part->leader_epoch = from->current_leader_epoch;
    part->offset = from->fetch_offset;
    part->max_bytes = from->partition_max_bytes;
    part->last_epoch = from->last_fetched_epoch;
    part->durable_offset = from->durable_offset;
    part->log_start = from->log_start_offset;
    part->watermark = from->high_watermark;
}

static void take_parts(struct fetch_session *session, const struct fetch_request *in)
{
    for (int32_t t = 0; t < in->topics.n; t++)
        for (int32_t i = 0; i < in->topics.v[t].partitions.n; i++)
            put_part(session, &in->topics.v[t], &in->topics.v[t].partitions.v[i]);
}

static void forget_parts(struct fetch_session *session, const struct fetch_request *in)
{
    for (int32_t t = 0; t < in->forgotten_topics_data.n; t++) {
        const struct fetch_request_forgotten_topic *topic = &in->forgotten_topics_data.v[t];

        for (int32_t i = 0; i < topic->partitions.n; i++) {
            struct fetch_part key;
            struct fetch_part *part =
                find_part(session, topic->topic, topic->topic_id, topic->partitions.v[i], &key);

            if (part)
                remove_part(session, part);
        }
    }
}

/* ---- sessions --------------------------------------------------------------------------- */

static struct fetch_session *session_new(const struct request *r)
{
    struct fetch_session *session = xcalloc(1, sizeof(*session));

    session->goes_by_ids = r->header.api_version >= 13;
    session->is_busy = true;
    list_init(&session->link);
    list_init(&session->parts);
    return session;
}

static bool make_room(struct shard *s, struct fetch_cache *cache)
{
    struct fetch_session *oldest = LIST_FIRST(&cache->used, struct fetch_session, link);

    if (cache->count < cache->slots)
        return true;
    if (!oldest || shard_now_ns(s) - oldest->used_ns < EVICTION_NS)
        return false;
    remove_session(cache, oldest);
    return true;
}

static int32_t new_id(struct shard *s, const struct fetch_cache *cache)
{
    struct fetch_session *taken;
    uint32_t id;

    do {
        uint32_t shards = (uint32_t)s->broker->shard_count;

        io_random(s->broker->io, &id, sizeof(id));
        id = (id >> 2) / shards * shards + (uint32_t)s->index;
        HASH_FIND(hh, cache->by_id, &id, sizeof(id), taken);
    } while (id == 0 || taken);
    return (int32_t)id;
}

/* Gives the session an id if there is room; it stays private otherwise. */
static void keep_session(struct shard *s, struct fetch_session *session)
{
    struct fetch_cache *cache = s->fetch_cache;

    if (session->part_count == 0 || !make_room(s, cache))
        return;
    session->id = new_id(s, cache);
    session->epoch = 1;
    session->used_ns = shard_now_ns(s);
    HASH_ADD(hh, cache->by_id, id, sizeof(session->id), session);
    list_push_back(&cache->used, &session->link);
    cache->count++;
}

static struct fetch_session *find_session(struct shard *s, int32_t id)
{
    struct fetch_session *session = NULL;

    HASH_FIND(hh, s->fetch_cache->by_id, &id, sizeof(id), session);
    return session;
}

static enum err resolve_full(struct request *r, struct fetch_session **out)
{
    const struct fetch_request *in = r->in;
    struct shard *s = r->shard;
    struct fetch_session *old = find_session(s, in->session_id);

    if (old)
        remove_session(s->fetch_cache, old);
    *out = session_new(r);
    take_parts(*out, in);
    if (in->session_epoch == FETCH_SESSION_EPOCH_FIRST && r->header.api_version >= 7)
        keep_session(s, *out);
    return ERR_NONE;
}

static enum err resolve_incremental(struct request *r, struct fetch_session **out)
{
    const struct fetch_request *in = r->in;
    struct shard *s = r->shard;
    struct fetch_session *session = find_session(s, in->session_id);

    if (!session)
        return ERR_FETCH_SESSION_ID_NOT_FOUND;
    if (session->epoch != in->session_epoch || session->is_busy)
        return ERR_INVALID_FETCH_SESSION_EPOCH;
    if (session->goes_by_ids != (r->header.api_version >= 13))
        return ERR_FETCH_SESSION_TOPIC_ID_ERROR;
    session->epoch = session->epoch == INT32_MAX ? 1 : session->epoch + 1;
    session->is_busy = true;
    session->used_ns = shard_now_ns(s);
    list_remove(&session->link);
    list_push_back(&s->fetch_cache->used, &session->link);
    take_parts(session, in);
    forget_parts(session, in);
    if (session->part_count == 0)
        remove_session(s->fetch_cache, session);
    *out = session;
    return ERR_NONE;
}

enum err fetch_session_resolve(struct request *r, struct fetch_session **out, bool *is_incremental)
{
    const struct fetch_request *in = r->in;

    *out = NULL;
    *is_incremental = in->session_epoch > 0 && r->header.api_version >= 7;
    return *is_incremental ? resolve_incremental(r, out) : resolve_full(r, out);
}

void fetch_session_done(struct shard *s, struct fetch_session *session)
{
    (void)s;
    session->is_busy = false;
    if (session->id == 0)
        fetch_session_free(session);
}
