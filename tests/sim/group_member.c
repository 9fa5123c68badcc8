/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member of a group: finds the coordinator, joins, syncs, beats, and meets its fate: it leaves,
 * vanishes, or is paused and believes that nothing has happened. A process that has vanished may
 * come back for a moment, with its old id: its ghost is not to be accepted once the group has gone
 * on.
 *
 *   AWAY -> FINDING -> JOINING -> SYNCING -> ASKING -> READING
 *             ^  ^        ^------------------------------/ rebalance, thrown out, topics
 *             |  \-------- no answer
 *             \----------- the next process
 *
 * Answers change the state, and the tick speaks: so a member that is paused hears everything and
 * says nothing.
 *
 * While nothing is wrong with the world a member that shows life in time may not be thrown out.
 */
#include "group_member.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

#define RETRY_MS_MAX 100
#define SESSION_MS_MIN 300
#define SESSION_MS_SPAN 700
#define STATIC_SESSION_MS 1500 /* longer: it is to come back within it */
#define REBALANCE_MS_MIN 800
#define REBALANCE_MS_SPAN 300
#define AWAY_MS_MAX 1500
#define PAUSE_MS_MAX 2000
#define FATE_MS_MIN 200
#define FATE_MS_SPAN 2500
#define SLACK_NS (100 * MS)

static const struct edition editions[] = {
    {.find = 0, .join = 1, .sync = 0, .beat = 0, .leave = 0, .commit = 2, .offsets = 1, .fetch = 4},
    {.find = 1, .join = 3, .sync = 1, .beat = 1, .leave = 1, .commit = 4, .offsets = 3, .fetch = 7},
    {.find = 2, .join = 4, .sync = 2, .beat = 2, .leave = 2, .commit = 6, .offsets = 5, .fetch = 9},
    {.find = 3,
     .join = 5,
     .sync = 3,
     .beat = 3,
     .leave = 3,
     .commit = 7,
     .offsets = 6,
     .fetch = 11},
    {.find = 4,
     .join = 7,
     .sync = 5,
     .beat = 4,
     .leave = 4,
     .commit = 8,
     .offsets = 8,
     .fetch = 12},
    {.find = 6,
     .join = 9,
     .sync = 5,
     .beat = 4,
     .leave = 5,
     .commit = 9,
     .offsets = 9,
     .fetch = 12},
};

#define EDITIONS ((uint32_t)(sizeof(editions) / sizeof(editions[0])))
#define FIRST_WITH_INSTANCES 3

static struct group_told *told(const struct member *m)
{
    return told_of(m->run, m->group);
}

static void disturb(struct member *m)
{
    told(m)->disturbed_ns = run_now(m->run);
}

static struct str instance_of(const struct member *m)
{
    return m->instance[0] ? str_of(m->instance) : str_null();
}

/* What is told about it: the same as long as it is the same member to the group. */
static const char *owner_of(const struct member *m)
{
    return m->instance[0] ? m->instance : m->id;
}

void member_describe(const struct member *m, char *text, size_t n)
{
    static const char *const states[] = {"away",    "finding", "joining",
                                         "syncing", "asking",  "reading"};

    snprintf(text, n, "%s member %d (%s) is %s in generation %d", told(m)->id, m->index,
             m->id[0] ? m->id : "no id", states[m->state], m->generation);
}

/* ---- being refused ------------------------------------------------------------------------- */

/*
 * How long it may be silent. A static member is not forgotten by the rebalances that it misses: it
 * has its session, and as long as the generation after it waits for those who have not synced.
 */
static int64_t grace_ns(const struct member *m, enum err err)
{
    int64_t session = m->session_ms * MS;

    /* It was away while a generation began, and is still expected to sync in time. */
    if (m->instance[0] && m->state == MEMBER_SYNCING && m->paused_until_ns > 0 &&
        m->member_ns - m->paused_until_ns < SECOND)
        return -1;
    if (m->paused_until_ns < m->member_ns)
        return session;
    if (m->instance[0] == '\0' || err == ERR_ILLEGAL_GENERATION || m->owed_sync)
        return -1;
    return MIN(session, 2 * REBALANCE_MS_MIN * MS);
}

static void check_thrown_out(struct member *m, const struct call *c, enum err err)
{
    char text[200];

    if (m->member_ns < m->run->calm_since_ns || c->sent_ns < m->member_ns ||
        m->member_life != m->run->life)
        return;
    if (c->sent_ns - m->alive_ns > grace_ns(m, err) - SLACK_NS)
        return;
    member_describe(m, text, sizeof(text));
    violate(m->run, "%s: its %s got %s %lld ms after a sign of life, and nothing is wrong", text,
            c->api->name, err_name(err), (long long)((c->sent_ns - m->alive_ns) / MS));
}

static void forget_identity(struct member *m)
{
    m->id[0] = '\0';
    m->generation = -1;
}

void member_retry(struct member *m)
{
    m->step_ns = run_now(m->run) + (1 + (int64_t)run_choose(m->run, RETRY_MS_MAX)) * MS;
}

static bool is_transient(enum err err)
{
    return err == ERR_COORDINATOR_LOAD_IN_PROGRESS || err == ERR_COORDINATOR_NOT_AVAILABLE ||
           err == ERR_NOT_COORDINATOR || err == ERR_UNKNOWN_SERVER_ERROR;
}

void member_refused(struct member *m, const struct call *c, enum err err)
{
    tell(m->run, "%s member %d, generation %d: %s got %s", told(m)->id, m->index, m->generation,
         c->api->name, err_name(err));
    switch (err) {
    case ERR_REBALANCE_IN_PROGRESS: m->state = MEMBER_JOINING; return;
    case ERR_UNKNOWN_MEMBER_ID:
    case ERR_GROUP_ID_NOT_FOUND:
    case ERR_FENCED_INSTANCE_ID:
    case ERR_ILLEGAL_GENERATION:
        check_thrown_out(m, c, err);
        /* Some have not understood yet that it is over. */
        if (m->coord.state == PEER_OPEN && m->generation >= 0 && run_once_in(m->run, 2))
            reader_commit(m, m->generation);
        reader_drop(m);
        if (err != ERR_ILLEGAL_GENERATION)
            forget_identity(m);
        m->state = MEMBER_JOINING;
        return;
    default: break;
    }
    if (!is_transient(err))
        violate(m->run, "%s member %d: %s failed with %s", told(m)->id, m->index, c->api->name,
                err_name(err));
    m->run->counts.told_to_wait += err == ERR_COORDINATOR_LOAD_IN_PROGRESS;
    member_retry(m);
}

static void send_step(struct member *m, int16_t key, int16_t version, const void *request,
                      void (*done)(struct call *c, enum err err, void *response), int64_t wait_ns)
{
    m->step_call.done = done;
    m->is_stepping = true;
    m->step_process = m->process;
    m->step_life = m->run->life;
    peer_send(&m->coord, &m->step_call, key, version, request, wait_ns);
}

/* False when the answer is not for this process, or there is none. */
static bool is_heard(struct member *m, enum err err)
{
    m->is_stepping = false;
    if (m->step_process != m->process)
        return false;
    if (err) {
        m->state = MEMBER_FINDING;
        member_retry(m);
    }
    return !err;
}

/* ---- finding the coordinator --------------------------------------------------------------- */

static void found(struct call *call, enum err err, void *response)
{
    struct member *m = CONTAINER_OF(call, struct member, step_call);
    const struct find_coordinator_response *r = response;

    if (!is_heard(m, err))
        return;
    err = (enum err)(call->version >= 4 && r->coordinators.n == 1 ? r->coordinators.v[0].error_code
                                                                  : r->error_code);
    if (err)
        member_refused(m, call, err);
    else
        m->state = MEMBER_JOINING;
}

static void find(struct member *m)
{
    struct find_coordinator_request request;
    struct str id = str_of(told(m)->id);

    wire_init(&find_coordinator_request_schema, &request);
    request.key = id;
    request.coordinator_keys.v = &id;
    request.coordinator_keys.n = 1;
    send_step(m, API_FIND_COORDINATOR, m->edition->find, &request, found, 0);
}

/* ---- joining ------------------------------------------------------------------------------- */

static enum assignor assignor_of(struct str name)
{
    for (int a = ASSIGN_RANGE; a <= ASSIGN_COOPERATIVE; a++)
        if (str_eq_c(name, assignor_name((enum assignor)a)))
            return (enum assignor)a;
    return ASSIGN_RANGE;
}

static void check_instances(struct member *m, const struct join_group_response *r)
{
    for (int32_t i = 0; i < r->members.n; i++)
        for (int32_t k = 0; k < i; k++)
            if (!str_is_null(r->members.v[i].group_instance_id) &&
                str_eq(r->members.v[i].group_instance_id, r->members.v[k].group_instance_id))
                violate(m->run, "%s, generation %d: %.*s is there twice", told(m)->id,
                        r->generation_id, STR_ARG(r->members.v[i].group_instance_id));
}

/* As the leader of its generation. */
static void make_plan(struct member *m, const struct join_group_response *r)
{
    struct subscriber v[MEMBERS_MAX * 2];
    int n = 0;

    check_instances(m, r);
    for (int32_t i = 0; i < r->members.n && n < MEMBERS_MAX * 2; i++, n++) {
        v[n] = (struct subscriber){.id = r->members.v[i].member_id};
        if (!subscription_parse(m->run, r->members.v[i].metadata, &v[n]))
            violate(m->run, "%s: a subscription is not what was sent", told(m)->id);
    }
    assign(m->run, m->assignor, v, n);
    m->plan.n = n;
    for (int i = 0; i < n; i++) {
        snprintf(m->plan.ids[i], ID_BYTES, "%.*s", STR_ARG(v[i].id));
        m->plan.claims[i] = v[i].assigned;
    }
}

static void has_joined(struct member *m, const struct call *call,
                       const struct join_group_response *r)
{
    bool was_unknown = m->id[0] == '\0';

    /* In a generation that it has missed, others may have read what it still holds. */
    if (r->generation_id > m->generation + 1) {
        m->has_claimed_too_much = m->holding_count > 0;
        reader_drop(m);
    }
    m->generation = r->generation_id;
    m->assignor = assignor_of(r->protocol_name);
    snprintf(m->id, sizeof(m->id), "%.*s", STR_ARG(r->member_id));
    m->member_ns = run_now(m->run);
    m->member_life = m->step_life;
    m->alive_ns = MAX(m->alive_ns, m->member_ns - SLACK_NS / 2);
    if (was_unknown && m->instance[0]) {
        m->rejoined_ns = m->member_ns;
        m->rejoined_life = m->step_life;
        m->is_haunted = run_once_in(m->run, 2);
        /* It may have got its place again, and with it an assignment from before a topic came. */
        if (m->topics != m->topics_before)
            m->topics = 0;
        /* Or one that lacks what the life before was to give up, and will not. */
        m->has_claimed_too_much |= told(m)->is_cooperative;
    }
    m->plan.n = 0;
    generation_told(m->run, m->group, m->generation, call->sent_ns, m->step_life);
    if (str_eq(r->leader, r->member_id) && !r->skip_assignment)
        make_plan(m, r);
    m->state = MEMBER_SYNCING;
}

static void joined(struct call *call, enum err err, void *response)
{
    struct member *m = CONTAINER_OF(call, struct member, step_call);
    const struct join_group_response *r = response;

    if (!is_heard(m, err))
        return;
    err = (enum err)r->error_code;
    tell(m->run, "%s member %d: Join got %s, generation %d, id %.*s", told(m)->id, m->index,
         err_name(err), r->generation_id, STR_ARG(r->member_id));
    if (err == ERR_MEMBER_ID_REQUIRED)
        snprintf(m->id, sizeof(m->id), "%.*s", STR_ARG(r->member_id));
    else if (err)
        member_refused(m, call, err);
    else
        has_joined(m, call, r);
}

/* What it brings: two assignors in any order, or one. */
static int32_t choose_assignors(struct member *m, enum assignor *v)
{
    const struct group_told *t = told(m);

    v[0] = t->is_cooperative ? ASSIGN_COOPERATIVE : ASSIGN_RANGE;
    if (!t->has_choice || t->is_cooperative)
        return 1;
    v[m->index % 2] = ASSIGN_RANGE;
    v[1 - m->index % 2] = ASSIGN_ROUND_ROBIN;
    return 2;
}

static void send_join(struct member *m, struct bytes subscription)
{
    struct join_group_request request;
    struct join_group_request_protocol protocols[2];
    enum assignor assignors[2];

    wire_init(&join_group_request_schema, &request);
    request.group_id = str_of(told(m)->id);
    request.session_timeout_ms = m->session_ms;
    request.rebalance_timeout_ms = m->rebalance_ms;
    request.member_id = str_of(m->id);
    request.group_instance_id = instance_of(m);
    request.protocol_type = STR_LIT("consumer");
    request.protocols.n = choose_assignors(m, assignors);
    request.protocols.v = protocols;
    for (int32_t i = 0; i < request.protocols.n; i++) {
        wire_init(&join_group_request_protocol_schema, &protocols[i]);
        protocols[i].name = str_of(assignor_name(assignors[i]));
        protocols[i].metadata = subscription;
    }
    send_step(m, API_JOIN_GROUP, m->edition->join, &request, joined, PARKED_NS);
}

static void join(struct member *m)
{
    bool is_cooperative = told(m)->is_cooperative;
    struct claims owned = {.n = 0};
    struct buf bytes = {0};

    if (!is_cooperative && m->holding_count > 0) {
        if (run_choose(m->run, 4) != 0)
            reader_commit(m, m->generation);
        reader_drop(m);
    }
    if (m->id[0] == '\0')
        m->topics_before = m->topics;
    m->topics = topics_there(m->run);
    m->has_claimed_too_much = false;
    reader_claims(m, &owned);
    subscription_put(m->run, m->topics, &owned, is_cooperative ? m->generation : -1, &bytes);
    send_join(m, buf_bytes(&bytes, 0));
    buf_fini(&bytes);
}

/* ---- syncing ------------------------------------------------------------------------------- */

static void take_assignment(struct member *m, struct bytes assignment)
{
    struct claims claims = {.n = 0};

    if (!assignment_parse(m->run, assignment, &claims))
        violate(m->run, "%s: an assignment is not what was sent", told(m)->id);
    assignment_told(m->run, m->group, m->generation, owner_of(m), &claims);
    if (told(m)->is_cooperative && run_choose(m->run, 4) != 0)
        reader_commit(m, m->generation);
    if (reader_take(m, &claims) || m->has_claimed_too_much) {
        m->state = MEMBER_JOINING; /* somebody else is to have it */
        return;
    }
    m->state = reader_has_unknown(m) ? MEMBER_ASKING : MEMBER_READING;
}

static void synced(struct call *call, enum err err, void *response)
{
    struct member *m = CONTAINER_OF(call, struct member, step_call);
    const struct sync_group_response *r = response;

    if (!is_heard(m, err))
        return;
    err = (enum err)r->error_code;
    tell(m->run, "%s member %d: Sync of generation %d got %s", told(m)->id, m->index, m->generation,
         err_name(err));
    if (err) {
        member_refused(m, call, err);
        return;
    }
    m->member_ns = run_now(m->run);
    m->alive_ns = MAX(m->alive_ns, m->member_ns - SLACK_NS / 2);
    m->held_until_ns = call->sent_ns + m->session_ms * MS;
    m->heard_life = m->step_life;
    take_assignment(m, r->assignment);
}

static void send_sync(struct member *m)
{
    struct sync_group_request request;
    struct sync_group_request_assignment assignments[MEMBERS_MAX * 2];
    struct buf bytes[MEMBERS_MAX * 2] = {0};

    wire_init(&sync_group_request_schema, &request);
    for (int i = 0; i < m->plan.n; i++) {
        wire_init(&sync_group_request_assignment_schema, &assignments[i]);
        assignment_put(m->run, &m->plan.claims[i], &bytes[i]);
        assignments[i].member_id = str_of(m->plan.ids[i]);
        assignments[i].assignment = buf_bytes(&bytes[i], 0);
    }
    request.group_id = str_of(told(m)->id);
    request.generation_id = m->generation;
    request.member_id = str_of(m->id);
    request.group_instance_id = instance_of(m);
    request.assignments.v = assignments;
    request.assignments.n = m->plan.n;
    send_step(m, API_SYNC_GROUP, m->edition->sync, &request, synced, PARKED_NS);
    for (int i = 0; i < m->plan.n; i++)
        buf_fini(&bytes[i]);
}

/* ---- heartbeats ---------------------------------------------------------------------------- */

static void send_beat(struct member *m, struct call *call, const char *id, int32_t generation)
{
    struct heartbeat_request request;

    wire_init(&heartbeat_request_schema, &request);
    request.group_id = str_of(told(m)->id);
    request.generation_id = generation;
    request.member_id = str_of(id);
    request.group_instance_id = instance_of(m);
    peer_send(&m->coord, call, API_HEARTBEAT, m->edition->beat, &request,
              m->is_stepping ? PARKED_NS : 0);
}

static void beat_accepted(struct member *m, const struct call *call)
{
    generation_accepted(m->run, m->group, m->beat_generation, call->sent_ns, m->beat_life,
                        "heartbeat");
    m->run->counts.beats++;
    m->alive_ns = MAX(m->alive_ns, call->sent_ns);
    m->held_until_ns = MAX(m->held_until_ns, call->sent_ns + m->session_ms * MS);
    m->heard_life = m->beat_life;
}

static void beaten(struct call *call, enum err err, void *response)
{
    struct member *m = CONTAINER_OF(call, struct member, beat_call);
    const struct heartbeat_response *r = response;

    m->is_beating = false;
    if (err || m->beat_process != m->process)
        return;
    err = (enum err)r->error_code;
    if (err == ERR_REBALANCE_IN_PROGRESS)
        m->alive_ns = MAX(m->alive_ns, call->sent_ns);
    if (!err)
        beat_accepted(m, call);
    else if (m->beat_generation == m->generation && call->sent_ns >= m->member_ns &&
             m->state >= MEMBER_ASKING)
        member_refused(m, call, err);
}

/* Now and then with the generation before, as if it had not heard of this one. */
static void beat(struct member *m)
{
    bool is_late = m->generation > 1 && run_once_in(m->run, 16);

    m->beat_ns = run_now(m->run) + (is_late ? 0 : m->session_ms * MS / 4);
    m->beat_generation = m->generation - is_late;
    m->beat_life = m->run->life;
    m->beat_process = m->process;
    m->beat_call.done = beaten;
    m->is_beating = true;
    send_beat(m, &m->beat_call, m->id, m->beat_generation);
}

/* ---- ghosts -------------------------------------------------------------------------------- */

static void leave_ghost(struct member *m)
{
    struct ghost *g = &m->ghost;

    *g = (struct ghost){.is_there = m->id[0] != '\0' && m->generation >= 0,
                        .generation = m->generation,
                        .since_ns = run_now(m->run)};
    snprintf(g->id, sizeof(g->id), "%s", m->id);
    if (m->holding_count > 0 && m->holdings[0].is_known && m->holdings[0].next > 0) {
        claims_add(&g->claims, m->holdings[0].at);
        g->next = m->holdings[0].next;
    }
}

static void check_ghost(struct member *m, int64_t sent_ns, int life, const char *what)
{
    const struct ghost *g = &m->ghost;

    disturb(m);
    if (g->has_left && g->left_life == life && g->left_ns < sent_ns)
        violate(m->run, "%s member %d has left, and its %s is accepted", told(m)->id, m->index,
                what);
    if (m->instance[0] && m->rejoined_life == life && m->rejoined_ns < sent_ns &&
        m->rejoined_ns > g->since_ns)
        violate(m->run, "%s member %d was replaced, and the %s of the one before is accepted",
                told(m)->id, m->index, what);
}

static void ghost_beaten(struct call *call, enum err err, void *response)
{
    struct member *m = CONTAINER_OF(call, struct member, ghost_call);
    const struct heartbeat_response *r = response;

    m->is_haunting = false;
    if (err)
        return;
    m->run->counts.ghosts++;
    disturb(m);
    if (r->error_code != 0)
        return;
    generation_accepted(m->run, m->group, m->haunt_generation, call->sent_ns, m->haunt_life,
                        "heartbeat");
    check_ghost(m, call->sent_ns, m->haunt_life, "heartbeat");
}

static void ghost_committed(struct commit_call *cc, enum err err)
{
    struct member *m = cc->owner;

    m->is_haunting = false;
    if (err == ERR_RESET)
        return;
    m->run->counts.ghosts++;
    disturb(m);
    if (!err)
        check_ghost(m, cc->call.sent_ns, cc->life, "commit");
}

static void haunt(struct member *m)
{
    struct ghost *g = &m->ghost;
    struct commit_spec spec = {.group = m->group,
                               .generation = g->generation,
                               .member = g->id,
                               .instance = m->instance,
                               .claims = &g->claims,
                               .offsets = &g->next};

    if (!g->is_there || m->is_haunting || m->coord.state != PEER_OPEN)
        return;
    m->is_haunting = true;
    m->haunt_life = m->run->life;
    m->haunt_generation = g->generation;
    if (g->claims.n > 0 && run_once_in(m->run, 2)) {
        offsets_commit(m->run, &m->coord, m->edition->commit, &spec, m, ghost_committed,
                       m->is_stepping ? PARKED_NS : 0);
        return;
    }
    m->ghost_call.done = ghost_beaten;
    send_beat(m, &m->ghost_call, g->id, g->generation);
}

/* ---- fates --------------------------------------------------------------------------------- */

static void end_process(struct member *m)
{
    m->process++;
    m->state = MEMBER_AWAY;
    m->wake_ns = run_now(m->run) + (int64_t)run_choose(m->run, AWAY_MS_MAX) * MS;
    reader_drop(m);
    forget_identity(m);
    disturb(m);
}

static void vanish(struct member *m)
{
    tell(m->run, "%s member %d vanishes", told(m)->id, m->index);
    m->run->counts.vanished++;
    leave_ghost(m);
    end_process(m);
    peer_close(&m->coord);
    peer_close(&m->data);
}

static void has_left(struct call *call, enum err err, void *response)
{
    struct member *m = CONTAINER_OF(call, struct member, leave_call);
    const struct leave_group_response *r = response;

    m->is_leaving = false;
    if (err)
        return;
    err = (enum err)r->error_code;
    if (!err && call->version >= 3)
        err = (enum err)(r->members.n == 1 ? r->members.v[0].error_code : ERR_UNKNOWN_SERVER_ERROR);
    if (err)
        return;
    m->run->counts.leaves++;
    m->ghost.has_left = true;
    m->ghost.left_ns = run_now(m->run);
    m->ghost.left_life = m->leave_life;
}

static void leave(struct member *m)
{
    struct leave_group_request request;
    struct leave_group_request_member who;

    if (m->is_leaving || m->is_stepping || m->coord.state != PEER_OPEN || m->id[0] == '\0')
        return;
    tell(m->run, "%s member %d leaves", told(m)->id, m->index);
    if (run_once_in(m->run, 2) && m->generation >= 0)
        reader_commit(m, m->generation);
    wire_init(&leave_group_request_schema, &request);
    wire_init(&leave_group_request_member_schema, &who);
    request.group_id = str_of(told(m)->id);
    request.member_id = who.member_id = str_of(m->id);
    who.group_instance_id = instance_of(m);
    request.members.v = &who;
    request.members.n = 1;
    leave_ghost(m);
    m->leave_call.done = has_left;
    m->is_leaving = true;
    m->leave_life = m->run->life;
    peer_send(&m->coord, &m->leave_call, API_LEAVE_GROUP, m->edition->leave, &request, 0);
    m->held_until_ns = 0;
    end_process(m);
}

/* Another one goes, so that there is a rebalance without this one. */
static void have_rebalance(struct member *m)
{
    struct group_world *w = m->run->groups;

    for (int i = 0; i < w->member_count; i++)
        if (w->members[i] != m && w->members[i]->group == m->group &&
            w->members[i]->state == MEMBER_READING) {
            leave(w->members[i]);
            return;
        }
}

/* A static member mostly misses one rebalance, and is back within its session. */
static int64_t choose_pause_ms(struct member *m)
{
    if (m->instance[0] == '\0' || run_once_in(m->run, 3))
        return run_choose(m->run, PAUSE_MS_MAX);
    have_rebalance(m);
    return REBALANCE_MS_MIN + REBALANCE_MS_SPAN +
           run_choose(m->run, REBALANCE_MS_MIN - REBALANCE_MS_SPAN);
}

static void pause_it(struct member *m)
{
    m->owed_sync = m->state < MEMBER_ASKING;
    m->paused_until_ns = run_now(m->run) + choose_pause_ms(m) * MS;
    m->run->counts.pauses++;
    tell(m->run, "%s member %d is paused", told(m)->id, m->index);
}

static void commit_late(struct member *m)
{
    if (m->state == MEMBER_READING && m->generation > 1 && m->coord.state == PEER_OPEN)
        reader_commit(m, m->generation - 1);
}

static void meet_fate(struct member *m)
{
    m->fate_ns = run_now(m->run) + (FATE_MS_MIN + (int64_t)run_choose(m->run, FATE_MS_SPAN)) * MS;
    if (m->run->no_producing)
        return;
    switch (run_choose(m->run, 12)) {
    case 0: vanish(m); break;
    case 1: leave(m); break;
    case 2: pause_it(m); break;
    case 3:
    case 4:
    case 5: haunt(m); break;
    case 6: commit_late(m); break;
    default: break;
    }
}

/* ---- life ---------------------------------------------------------------------------------- */

static void come(struct member *m)
{
    uint32_t first = m->instance[0] ? FIRST_WITH_INSTANCES : 0;

    m->edition = &editions[first + run_choose(m->run, EDITIONS - first)];
    m->state = MEMBER_FINDING;
    m->step_ns = 0;
    m->paused_until_ns = -1;
    disturb(m);
}

static void step(struct member *m)
{
    switch (m->state) {
    case MEMBER_FINDING: find(m); break;
    case MEMBER_JOINING: join(m); break;
    case MEMBER_SYNCING: send_sync(m); break;
    case MEMBER_ASKING: reader_ask(m); break;
    case MEMBER_READING:
        if (m->topics != topics_there(m->run))
            m->state = MEMBER_JOINING;
        break;
    case MEMBER_AWAY: break;
    }
}

static void speak(struct member *m)
{
    int64_t now = run_now(m->run);

    if (!m->is_stepping && now >= m->step_ns)
        step(m);
    if (m->state >= MEMBER_ASKING && !m->is_beating && now >= m->beat_ns)
        beat(m);
    if (m->is_haunted)
        haunt(m);
    m->is_haunted = false;
}

void member_tick(struct member *m)
{
    int64_t now = run_now(m->run);

    if (m->state == MEMBER_AWAY) {
        if (now >= m->wake_ns || m->run->no_producing)
            come(m);
        return;
    }
    if (now < m->paused_until_ns) {
        disturb(m);
        return;
    }
    if (now >= m->fate_ns)
        meet_fate(m);
    if (m->state == MEMBER_AWAY || now < m->paused_until_ns)
        return;
    if (m->coord.state == PEER_OPEN)
        speak(m);
    if (m->state == MEMBER_READING || told(m)->is_cooperative)
        reader_tick(m);
}

static void opened(struct peer *peer)
{
    (void)peer;
}

static void coord_closed(struct peer *peer)
{
    disturb(CONTAINER_OF(peer, struct member, coord));
}

static void data_closed(struct peer *peer)
{
    (void)peer;
}

struct member *member_new(struct run *run, int group, int index)
{
    struct member *m = xcalloc(1, sizeof(*m));

    m->run = run;
    m->group = group;
    m->index = index;
    m->session_ms = SESSION_MS_MIN + (int32_t)run_choose(run, SESSION_MS_SPAN);
    m->rebalance_ms = REBALANCE_MS_MIN + (int32_t)run_choose(run, REBALANCE_MS_SPAN);
    if (run_choose(run, 3) == 2) {
        snprintf(m->instance, sizeof(m->instance), "instance-%d", index);
        m->session_ms += STATIC_SESSION_MS;
    }
    m->wake_ns = run_now(run) + (int64_t)run_choose(run, AWAY_MS_MAX) * MS;
    m->generation = -1;
    m->paused_until_ns = -1;
    reader_init(m);
    peer_init(&m->coord, run, opened, coord_closed);
    peer_init(&m->data, run, opened, data_closed);
    peer_start(&m->coord);
    peer_start(&m->data);
    return m;
}

void member_free(struct member *m)
{
    m->process++;
    peer_cancel(&m->coord);
    peer_cancel(&m->data);
    reader_fini(m);
    peer_fini(&m->coord);
    peer_fini(&m->data);
    free(m);
}

bool member_is_away(const struct member *m)
{
    return m->state == MEMBER_AWAY;
}

bool member_is_reading(const struct member *m, int32_t generation)
{
    return m->state == MEMBER_READING && m->generation == generation &&
           m->heard_life == m->run->life;
}

int64_t member_held_until(const struct member *m)
{
    return m->held_until_ns;
}

void member_add_claims(const struct member *m, struct claims *out)
{
    struct claims own = {.n = 0};

    if (m->state == MEMBER_READING)
        reader_claims(m, &own);
    for (int i = 0; i < own.n; i++)
        if (!claims_have(out, own.v[i]))
            claims_add(out, own.v[i]);
}

int member_group(const struct member *m)
{
    return m->group;
}
