/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OffsetFetch and OffsetCommit of simulated consumers, in all versions, and what their answers
 * mean. Each partition of a commit has a number, which is its metadata; whatever is read is judged
 * (group_history.c), and whatever was answered is remembered.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "group.h"

#define METADATA_BYTES 24

/* ---- reading: requests -------------------------------------------------------------------- */

struct ask {
    struct offset_fetch_request request;
    struct offset_fetch_request_group group;
    struct offset_fetch_request_topic topics[CLAIMS_MAX];
    struct offset_fetch_request_group_topic group_topics[CLAIMS_MAX];
    int32_t indexes[CLAIMS_MAX];
};

static void ask_for(const struct run *run, struct ask *a, const struct claims *claims)
{
    for (int i = 0; i < claims->n; i++) {
        struct str name = str_of(run->history.topics[claims->v[i].topic].name);

        a->indexes[i] = claims->v[i].partition;
        wire_init(&offset_fetch_request_topic_schema, &a->topics[i]);
        wire_init(&offset_fetch_request_group_topic_schema, &a->group_topics[i]);
        a->topics[i].name = a->group_topics[i].name = name;
        a->topics[i].partition_indexes.v = a->group_topics[i].partition_indexes.v = &a->indexes[i];
        a->topics[i].partition_indexes.n = a->group_topics[i].partition_indexes.n = 1;
    }
}

void offsets_ask(struct run *run, struct peer *peer, struct call *c, int16_t version, int group,
                 const struct claims *claims)
{
    struct ask a;

    wire_init(&offset_fetch_request_schema, &a.request);
    wire_init(&offset_fetch_request_group_schema, &a.group);
    if (claims)
        ask_for(run, &a, claims);
    a.request.group_id = a.group.group_id = str_of(told_of(run, group)->id);
    a.request.topics.v = a.topics;
    a.group.topics.v = a.group_topics;
    a.request.topics.n = a.group.topics.n = claims ? claims->n : -1;
    a.request.groups.v = &a.group;
    a.request.groups.n = 1;
    a.request.require_stable = run_once_in(run, 2);
    peer_send(peer, c, API_OFFSET_FETCH, version, &a.request, 0);
}

/* ---- reading: answers --------------------------------------------------------------------- */

/* One partition of an answer, whatever its version. */
struct read {
    struct str topic;
    int32_t partition;
    int64_t offset;
    struct str metadata;
    enum err err;
};

static int find_topic(const struct run *run, struct str name)
{
    for (int i = 0; i < run->history.topic_count; i++)
        if (str_eq_c(name, run->history.topics[i].name))
            return i;
    return -1;
}

static enum err take_one(struct run *run, const struct call *c, int group, const struct read *r,
                         const struct claims *claims, int64_t *out)
{
    struct claim at = {.topic = (int16_t)find_topic(run, r->topic),
                       .partition = (int16_t)r->partition};

    if (r->err)
        return r->err;
    if (at.topic < 0 || at.partition < 0 || at.partition >= TOPIC_PARTITIONS_MAX) {
        violate(run, "an offset of a partition that nobody has committed");
        return ERR_NONE;
    }
    offset_read(run, group, at, r->offset, r->metadata, c->sent_ns);
    for (int i = 0; claims && i < claims->n; i++)
        if (claims->v[i].topic == at.topic && claims->v[i].partition == at.partition)
            out[i] = r->offset;
    return ERR_NONE;
}

static enum err take_single(struct run *run, const struct call *c, int group,
                            const struct offset_fetch_response *r, const struct claims *claims,
                            int64_t *out)
{
    enum err err = (enum err)r->error_code;

    for (int32_t t = 0; t < r->topics.n && !err; t++)
        for (int32_t i = 0; i < r->topics.v[t].partitions.n && !err; i++) {
            const struct offset_fetch_response_partition *p = &r->topics.v[t].partitions.v[i];
            struct read read = {.topic = r->topics.v[t].name,
                                .partition = p->partition_index,
                                .offset = p->committed_offset,
                                .metadata = p->metadata,
                                .err = (enum err)p->error_code};

            err = take_one(run, c, group, &read, claims, out);
        }
    return err;
}

static enum err take_group(struct run *run, const struct call *c, int group,
                           const struct offset_fetch_response_group *r, const struct claims *claims,
                           int64_t *out)
{
    enum err err = (enum err)r->error_code;

    for (int32_t t = 0; t < r->topics.n && !err; t++)
        for (int32_t i = 0; i < r->topics.v[t].partitions.n && !err; i++) {
            const struct offset_fetch_response_group_partition *p = &r->topics.v[t].partitions.v[i];
            struct read read = {.topic = r->topics.v[t].name,
                                .partition = p->partition_index,
                                .offset = p->committed_offset,
                                .metadata = p->metadata,
                                .err = (enum err)p->error_code};

            err = take_one(run, c, group, &read, claims, out);
        }
    return err;
}

enum err offsets_take(struct run *run, const struct call *c, int group, const void *response,
                      const struct claims *claims, int64_t *out)
{
    const struct offset_fetch_response *r = response;
    enum err err;

    for (int i = 0; claims && i < claims->n; i++)
        out[i] = -2;
    if (c->version >= 8 && r->groups.n != 1)
        violate(run, "an answer about one group has %d", r->groups.n);
    if (run_is_over(run))
        return ERR_MALFORMED;
    if (c->version < 8)
        err = take_single(run, c, group, r, claims, out);
    else
        err = take_group(run, c, group, &r->groups.v[0], claims, out);
    for (int i = 0; claims && i < claims->n && !err; i++)
        if (out[i] == -2)
            violate(run, "a partition that was asked for is not in the answer");
    if (err == ERR_COORDINATOR_LOAD_IN_PROGRESS)
        run->counts.told_to_wait++;
    return err;
}

/* ---- committing --------------------------------------------------------------------------- */

/* Whatever happens then, this commit will not be there. */
static bool is_refusal(enum err err)
{
    return err == ERR_ILLEGAL_GENERATION || err == ERR_UNKNOWN_MEMBER_ID ||
           err == ERR_FENCED_INSTANCE_ID || err == ERR_REBALANCE_IN_PROGRESS ||
           err == ERR_UNKNOWN_TOPIC_OR_PARTITION || err == ERR_GROUP_ID_NOT_FOUND;
}

static bool is_transient(enum err err)
{
    return err == ERR_COORDINATOR_LOAD_IN_PROGRESS || err == ERR_COORDINATOR_NOT_AVAILABLE ||
           err == ERR_NOT_COORDINATOR || err == ERR_UNKNOWN_SERVER_ERROR;
}

static enum err take_answer(struct commit_call *cc, int i, enum err err)
{
    struct run *run = cc->run;

    if (!err) {
        if (cc->generation >= 0)
            generation_accepted(run, cc->group, cc->generation, cc->call.sent_ns, cc->life,
                                "commit");
        commit_acked(run, cc->numbers[i]);
    } else if (is_refusal(err)) {
        commit_refused(run, cc->numbers[i]);
    } else if (!is_transient(err)) {
        violate(run, "%s: a commit failed with %s", told_of(run, cc->group)->id, err_name(err));
    }
    return err;
}

static void committed(struct call *call, enum err err, void *response)
{
    struct commit_call *cc = CONTAINER_OF(call, struct commit_call, call);
    const struct offset_commit_response *r = response;
    enum err first = ERR_NONE;

    if (!err && r->topics.n != cc->claims.n) {
        violate(cc->run, "a commit was answered without all its partitions");
        err = ERR_MALFORMED;
    }
    for (int i = 0; i < cc->claims.n && !err; i++) {
        enum err e = take_answer(cc, i, (enum err)r->topics.v[i].partitions.v[0].error_code);

        first = first ? first : e;
    }
    cc->answered(cc, err ? ERR_RESET : first);
    free(cc);
}

static void fill(struct commit_call *cc, const struct commit_spec *spec)
{
    cc->group = spec->group;
    cc->generation = spec->generation;
    cc->life = cc->run->life;
    cc->claims = *spec->claims;
    for (int i = 0; i < spec->claims->n; i++) {
        cc->offsets[i] = spec->offsets[i];
        cc->numbers[i] = commit_sent(cc->run, spec->group, spec->claims->v[i], spec->offsets[i]);
    }
    cc->call.done = committed;
}

void offsets_commit(struct run *run, struct peer *peer, int16_t version,
                    const struct commit_spec *spec, void *owner,
                    void (*answered)(struct commit_call *c, enum err err), int64_t wait_ns)
{
    struct commit_call *cc = xcalloc(1, sizeof(*cc));
    struct offset_commit_request request;
    struct offset_commit_request_topic topics[CLAIMS_MAX];
    struct offset_commit_request_partition parts[CLAIMS_MAX];
    char metadata[CLAIMS_MAX][METADATA_BYTES];

    cc->run = run;
    cc->owner = owner;
    cc->answered = answered;
    fill(cc, spec);
    wire_init(&offset_commit_request_schema, &request);
    for (int i = 0; i < cc->claims.n; i++) {
        snprintf(metadata[i], METADATA_BYTES, "commit %d", cc->numbers[i]);
        wire_init(&offset_commit_request_topic_schema, &topics[i]);
        wire_init(&offset_commit_request_partition_schema, &parts[i]);
        topics[i].name = str_of(run->history.topics[cc->claims.v[i].topic].name);
        topics[i].partitions.v = &parts[i];
        topics[i].partitions.n = 1;
        parts[i].partition_index = cc->claims.v[i].partition;
        parts[i].committed_offset = cc->offsets[i];
        parts[i].committed_metadata = str_of(metadata[i]);
    }
    request.group_id = str_of(told_of(run, spec->group)->id);
    request.generation_id = spec->generation;
    request.member_id = str_of(spec->member);
    request.group_instance_id = spec->instance[0] ? str_of(spec->instance) : str_null();
    request.topics.v = topics;
    request.topics.n = cc->claims.n;
    peer_send(peer, &cc->call, API_OFFSET_COMMIT, version, &request, wait_ns);
}
