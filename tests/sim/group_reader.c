/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a member does with its partitions: asks where the group has got to, reads on from there,
 * processes, commits. What it has read counts as processed at once and is committed some time
 * later, so whoever comes after it reads some records twice and none not at all.
 *
 * Records are judged like those of any reader (history.c).
 */
#include <stdlib.h>

#include "base/assert.h"
#include "group_member.h"

#define FETCH_WAIT_MS 30
#define FETCH_PAUSE_MS 60
#define COMMIT_PAUSE_MS 150
#define COMMITS_MAX 3

/* ---- holdings ----------------------------------------------------------------------------- */

static struct holding *find(struct member *m, struct claim at)
{
    for (int i = 0; i < m->holding_count; i++)
        if (m->holdings[i].at.topic == at.topic && m->holdings[i].at.partition == at.partition)
            return &m->holdings[i];
    return NULL;
}

static void drop(struct member *m, int i)
{
    order_fini(&m->holdings[i].order);
    m->holdings[i] = m->holdings[--m->holding_count];
    m->stamp++;
}

void reader_drop(struct member *m)
{
    while (m->holding_count > 0)
        drop(m, m->holding_count - 1);
}

bool reader_take(struct member *m, const struct claims *claims)
{
    bool has_lost = false;

    for (int i = m->holding_count - 1; i >= 0; i--)
        if (!claims_have(claims, m->holdings[i].at)) {
            drop(m, i);
            has_lost = true;
        }
    for (int i = 0; i < claims->n; i++)
        if (!find(m, claims->v[i])) {
            assert(m->holding_count < CLAIMS_MAX);
            m->holdings[m->holding_count++] = (struct holding){.at = claims->v[i]};
            m->stamp++;
        }
    return has_lost;
}

bool reader_has_unknown(const struct member *m)
{
    for (int i = 0; i < m->holding_count; i++)
        if (!m->holdings[i].is_known)
            return true;
    return false;
}

void reader_claims(const struct member *m, struct claims *out)
{
    for (int i = 0; i < m->holding_count; i++)
        claims_add(out, m->holdings[i].at);
}

/* ---- where to begin ------------------------------------------------------------------------ */

static void begin_at(struct member *m, struct claim at, int64_t offset)
{
    struct holding *h = find(m, at);

    if (!h || h->is_known)
        return;
    h->is_known = true;
    h->next = MAX(offset, 0);
    h->committed = offset;
    order_reset(&h->order, h->next == 0);
    m->stamp++;
}

static void asked(struct call *call, enum err err, void *response)
{
    struct member *m = CONTAINER_OF(call, struct member, step_call);
    int64_t offsets[CLAIMS_MAX];

    m->is_stepping = false;
    if (m->step_process != m->process || m->state != MEMBER_ASKING)
        return;
    if (!err)
        err = offsets_take(m->run, call, m->group, response, &m->asked, offsets);
    if (err) {
        member_retry(m);
        return;
    }
    for (int i = 0; i < m->asked.n; i++)
        begin_at(m, m->asked.v[i], offsets[i]);
    m->state = MEMBER_READING;
}

void reader_ask(struct member *m)
{
    m->asked.n = 0;
    for (int i = 0; i < m->holding_count; i++)
        if (!m->holdings[i].is_known)
            claims_add(&m->asked, m->holdings[i].at);
    m->step_call.done = asked;
    m->is_stepping = true;
    m->step_process = m->process;
    m->step_life = m->run->life;
    offsets_ask(m->run, &m->coord, &m->step_call, m->edition->offsets, m->group, &m->asked);
}

/* ---- committing ---------------------------------------------------------------------------- */

static void committed(struct commit_call *cc, enum err err)
{
    struct member *m = cc->owner;

    m->commits--;
    for (int i = 0; i < cc->claims.n && !err; i++) {
        struct holding *h = find(m, cc->claims.v[i]);

        if (h && h->is_known)
            h->committed = MAX(h->committed, cc->offsets[i]);
    }
    if (err == ERR_ILLEGAL_GENERATION || err == ERR_UNKNOWN_MEMBER_ID ||
        err == ERR_FENCED_INSTANCE_ID || err == ERR_REBALANCE_IN_PROGRESS ||
        err == ERR_GROUP_ID_NOT_FOUND)
        if (m->state == MEMBER_READING && cc->generation == m->generation &&
            cc->call.sent_ns >= m->member_ns)
            member_refused(m, &cc->call, err);
}

void reader_commit(struct member *m, int32_t generation)
{
    struct claims claims = {.n = 0};
    int64_t offsets[CLAIMS_MAX];
    struct commit_spec spec = {.group = m->group,
                               .generation = generation,
                               .member = m->id,
                               .instance = m->instance,
                               .claims = &claims,
                               .offsets = offsets};

    for (int i = 0; i < m->holding_count; i++) {
        const struct holding *h = &m->holdings[i];

        if (!h->is_known || h->next <= h->committed || h->next == 0)
            continue;
        offsets[claims.n] = h->next;
        claims_add(&claims, h->at);
    }
    if (claims.n == 0 || m->commits >= COMMITS_MAX)
        return;
    m->commits++;
    offsets_commit(m->run, &m->coord, m->edition->commit, &spec, m, committed,
                   m->is_stepping ? PARKED_NS : 0);
}

/* ---- records ------------------------------------------------------------------------------- */

static void take_partition(struct member *m, struct holding *h,
                           const struct fetch_response_partition *r)
{
    struct topic *t = &m->run->history.topics[h->at.topic];
    int64_t before = h->next;

    if (r->error_code != 0) {
        if (r->error_code == ERR_OFFSET_OUT_OF_RANGE ||
            m->fetch_call.sent_ns >= m->run->calm_since_ns)
            violate(m->run, "%s, %s-%d: fetch at %lld failed with %s",
                    told_of(m->run, m->group)->id, t->name, h->at.partition, (long long)before,
                    err_name((enum err)r->error_code));
        return;
    }
    h->next = history_read(m->run, t, h->at.partition, before, r->records.b, &h->order);
    if (!run_is_over(m->run) && h->next > before)
        group_processed(m->run, m->group, h->at, before, h->next);
}

static struct holding *find_by_name(struct member *m, struct str topic, int32_t partition)
{
    for (int i = 0; i < m->holding_count; i++)
        if (m->holdings[i].at.partition == partition &&
            str_eq_c(topic, m->run->history.topics[m->holdings[i].at.topic].name))
            return &m->holdings[i];
    return NULL;
}

static void fetched(struct call *call, enum err err, void *response)
{
    struct member *m = CONTAINER_OF(call, struct member, fetch_call);
    const struct fetch_response *r = response;

    m->is_fetching = false;
    if (err || m->fetch_stamp != m->stamp || run_now(m->run) < m->paused_until_ns)
        return;
    for (int32_t t = 0; t < r->responses.n; t++)
        for (int32_t i = 0; i < r->responses.v[t].partitions.n && !run_is_over(m->run); i++) {
            const struct fetch_response_partition *p = &r->responses.v[t].partitions.v[i];
            struct holding *h = find_by_name(m, r->responses.v[t].topic, p->partition_index);

            if (h)
                take_partition(m, h, p);
            else
                violate(m->run, "a fetch was answered for a partition that nobody asked for");
        }
}

static void fetch(struct member *m)
{
    struct fetch_request request;
    struct fetch_request_topic topics[CLAIMS_MAX];
    struct fetch_request_partition parts[CLAIMS_MAX];

    wire_init(&fetch_request_schema, &request);
    for (int i = 0; i < m->holding_count; i++) {
        const struct holding *h = &m->holdings[i];
        int32_t n = request.topics.n;

        if (!h->is_known)
            continue;
        wire_init(&fetch_request_topic_schema, &topics[n]);
        wire_init(&fetch_request_partition_schema, &parts[n]);
        topics[n].topic = str_of(m->run->history.topics[h->at.topic].name);
        topics[n].partitions.v = &parts[n];
        topics[n].partitions.n = 1;
        parts[n].partition = h->at.partition;
        parts[n].fetch_offset = h->next;
        parts[n].partition_max_bytes = 65536;
        request.topics.n++;
    }
    if (request.topics.n == 0)
        return;
    request.topics.v = topics;
    request.replica_id = -1;
    request.max_wait_ms = FETCH_WAIT_MS;
    request.min_bytes = 1;
    request.max_bytes = 1 << 20;
    m->is_fetching = true;
    m->fetch_stamp = m->stamp;
    m->fetch_call.done = fetched;
    peer_send(&m->data, &m->fetch_call, API_FETCH, m->edition->fetch, &request, FETCH_WAIT_MS * MS);
}

/* ---- life ---------------------------------------------------------------------------------- */

void reader_tick(struct member *m)
{
    int64_t now = run_now(m->run);

    if (m->data.state == PEER_OPEN && !m->is_fetching && now >= m->fetch_ns) {
        m->fetch_ns = now + (int64_t)run_choose(m->run, FETCH_PAUSE_MS) * MS;
        fetch(m);
    }
    if (m->coord.state == PEER_OPEN && m->state == MEMBER_READING && now >= m->commit_ns) {
        m->commit_ns = now + (int64_t)run_choose(m->run, COMMIT_PAUSE_MS) * MS;
        reader_commit(m, m->generation);
    }
}

void reader_init(struct member *m)
{
    m->stamp = 1;
}

void reader_fini(struct member *m)
{
    reader_drop(m);
}
