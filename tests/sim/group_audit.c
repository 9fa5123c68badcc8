/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The auditor: asks for the offsets of all groups all the time, in any version, by name or for all
 * that there are, from the first moment that a new broker answers. Now and then it commits by hand,
 * for the group that has no members: forwards and backwards.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "group.h"

#define PAUSE_MS_MAX 40
#define OFFSET_MAX 1000

struct auditor {
    struct run *run;
    struct peer peer;
    struct call call;
    bool asks;
    int group; /* that it asks for */
    struct claims asked;
    int commits; /* in flight */
    int64_t next_ns;
};

static struct claims all_claims(const struct run *run)
{
    struct claims all = {.n = 0};

    for (int t = 0; t < run->history.topic_count; t++)
        for (int i = 0; run->history.topics[t].state == TOPIC_THERE &&
                        i < run->history.topics[t].partitions && all.n < CLAIMS_MAX;
             i++)
            claims_add(&all, (struct claim){.topic = (int16_t)t, .partition = (int16_t)i});
    return all;
}

static void told(struct call *call, enum err err, void *response)
{
    struct auditor *a = CONTAINER_OF(call, struct auditor, call);
    int64_t offsets[CLAIMS_MAX];

    a->asks = false;
    if (err)
        return;
    err =
        offsets_take(a->run, call, a->group, response, a->asked.n > 0 ? &a->asked : NULL, offsets);
    if (err && err != ERR_COORDINATOR_LOAD_IN_PROGRESS && err != ERR_COORDINATOR_NOT_AVAILABLE &&
        err != ERR_NOT_COORDINATOR)
        violate(a->run, "reading offsets of %s failed with %s", told_of(a->run, a->group)->id,
                err_name(err));
}

static void ask(struct auditor *a)
{
    int16_t version = (int16_t)(1 + run_choose(a->run, 9));
    bool all = version >= 2 && run_once_in(a->run, 3);

    a->group = (int)run_choose(a->run, (uint32_t)a->run->groups->group_count);
    a->asked = all ? (struct claims){.n = 0} : all_claims(a->run);
    if (!all && a->asked.n == 0)
        return;
    a->asks = true;
    a->call.done = told;
    offsets_ask(a->run, &a->peer, &a->call, version, a->group, all ? NULL : &a->asked);
}

static void committed(struct commit_call *cc, enum err err)
{
    struct auditor *a = cc->owner;

    (void)err;
    a->commits--;
}

static void commit(struct auditor *a)
{
    struct claims all = all_claims(a->run);
    struct claims one = {.n = 0};
    int64_t offset = (int64_t)run_choose(a->run, OFFSET_MAX);
    struct commit_spec spec = {.group = a->run->groups->group_count - 1,
                               .generation = -1,
                               .member = "",
                               .instance = "",
                               .claims = &one,
                               .offsets = &offset};

    if (all.n == 0)
        return;
    claims_add(&one, all.v[run_choose(a->run, (uint32_t)all.n)]);
    a->commits++;
    offsets_commit(a->run, &a->peer, (int16_t)(2 + run_choose(a->run, 8)), &spec, a, committed, 0);
}

void auditor_tick(struct auditor *a)
{
    int64_t now = run_now(a->run);

    if (a->peer.state != PEER_OPEN || now < a->next_ns)
        return;
    a->next_ns = now + (int64_t)run_choose(a->run, PAUSE_MS_MAX) * MS;
    if (!a->asks)
        ask(a);
    if (a->commits < 2 && run_once_in(a->run, 3))
        commit(a);
}

static void opened(struct peer *peer)
{
    CONTAINER_OF(peer, struct auditor, peer)->next_ns = 0;
}

static void closed(struct peer *peer)
{
    (void)peer;
}

struct auditor *auditor_new(struct run *run)
{
    struct auditor *a = xcalloc(1, sizeof(*a));

    a->run = run;
    peer_init(&a->peer, run, opened, closed);
    peer_start(&a->peer);
    return a;
}

void auditor_free(struct auditor *a)
{
    peer_cancel(&a->peer);
    peer_fini(&a->peer);
    free(a);
}
