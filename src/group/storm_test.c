/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded storms: members, administrators and the disk do what they like, and at every moment
 *  - a request is answered once, and none is left when the coordinator has resigned;
 *  - what is fetched is what was committed last, also after a restart from the records alone;
 *  - in one generation there is one leader, one assignment, and no two members share a part of it;
 *  - generations of a coordinator's life go up.
 *
 * Each leader assigns to each member a token that nobody else ever gets; whoever hears of a token
 * writes down who has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "group/group_int.h"

#define GROUPS 2
#define ACTORS 6 /* per group */
#define PARTITIONS 3
#define GENERATIONS 4096
#define SEEDS 20
#define STEPS 10000

struct call {
    struct group_request q;
    struct arena arena;
    struct actor *actor;
    bool answered;
    int64_t committed[PARTITIONS]; /* -1: not in the request */
    union {
        struct join_group_request join;
        struct sync_group_request sync;
        struct heartbeat_request beat;
        struct leave_group_request leave;
        struct offset_commit_request commit;
        struct str delete;
    } in;
    union {
        struct join_group_response join;
        struct sync_group_response sync;
        struct heartbeat_response beat;
        struct leave_group_response leave;
        struct offset_commit_response commit;
        struct delete_groups_response_result delete;
    } out;
};

struct actor {
    int group;
    char id[128];     /* "": none yet */
    char instance[8]; /* "": dynamic */
    int32_t generation;
    bool is_leader;
    char members[ACTORS * 4][128];
    int member_count;
    int parked; /* requests that are not answered */
};

struct model {
    int64_t offsets[PARTITIONS];  /* -1: none */
    int32_t generation;           /* the highest that was answered in this life */
    char leader[GENERATIONS][64]; /* by generation, of this life */
    uint64_t nonce[GENERATIONS];  /* of the assignment that was handed out; 0: none yet */
};

struct storm {
    struct rng rng;
    struct groups *g;
    struct group_limits limits;
    int64_t now_ms;
    uint64_t nonce;
    struct actor actors[GROUPS * ACTORS];
    struct model models[GROUPS];
    struct list writes;
    struct call **calls;
    int call_count;
    struct bytes *log; /* keys and values in turn */
    int log_count;
    int joined;
    int synced;
    int committed;
    int restarted;
};

static const char *const group_names[GROUPS] = {"g0", "g1"};

static uint64_t pick(struct storm *s, uint64_t n)
{
    return rng_below(&s->rng, n);
}

static void copy_text(char *to, size_t cap, struct str from)
{
    snprintf(to, cap, "%.*s", STR_ARG(from));
}

/* Generations begin anew: another coordinator, or another group of the same name. */
static void model_reset(struct model *m, bool is_deleted)
{
    m->generation = 0;
    memset(m->leader, 0, sizeof(m->leader));
    memset(m->nonce, 0, sizeof(m->nonce));
    if (is_deleted)
        memset(m->offsets, 0xff, sizeof(m->offsets));
}

/* ---- Answers ---------------------------------------------------------------------------- */

static void joined(struct storm *s, struct call *c)
{
    const struct join_group_response *out = &c->out.join;
    struct actor *a = c->actor;
    struct model *m = &s->models[a->group];

    if (out->error_code == ERR_MEMBER_ID_REQUIRED)
        copy_text(a->id, sizeof(a->id), out->member_id);
    else if (out->error_code)
        a->id[0] = '\0';
    if (out->error_code)
        return;
    s->joined++;
    copy_text(a->id, sizeof(a->id), out->member_id);
    a->generation = out->generation_id;
    assert_in_range(a->generation, 1, GENERATIONS - 1);
    assert_true(a->generation >= m->generation);
    m->generation = a->generation;
    a->is_leader = out->members.n > 0 && !out->skip_assignment;
    if (a->is_leader) {
        assert_true(str_eq(out->leader, out->member_id));
        if (m->leader[a->generation][0])
            assert_true(str_eq_c(str_of(a->id), m->leader[a->generation]));
        copy_text(m->leader[a->generation], sizeof(m->leader[0]), out->leader);
    }
    a->member_count = 0;
    for (int32_t i = 0; i < out->members.n && i < ACTORS * 4; i++)
        copy_text(a->members[a->member_count++], sizeof(a->members[0]),
                  out->members.v[i].member_id);
}

/* A token is "nonce member". A static member's successor inherits the token of its place. */
static void synced(struct storm *s, struct call *c)
{
    const struct sync_group_response *out = &c->out.sync;
    struct actor *a = c->actor;
    struct model *m = &s->models[a->group];
    char text[256];
    char *owner;
    uint64_t nonce;

    if (out->error_code)
        return;
    assert_true(out->assignment.n > 0);
    s->synced++;
    snprintf(text, sizeof(text), "%.*s", (int)out->assignment.n, (const char *)out->assignment.p);
    nonce = strtoull(text, &owner, 10);
    if (m->nonce[c->in.sync.generation_id])
        assert_int_equal(m->nonce[c->in.sync.generation_id], nonce);
    m->nonce[c->in.sync.generation_id] = nonce;
    if (!a->instance[0])
        assert_true(str_eq_c(c->in.sync.member_id, owner + 1));
}

static void committed(struct storm *s, struct call *c)
{
    const struct offset_commit_response *out = &c->out.commit;

    for (int p = 0; p < PARTITIONS; p++)
        if (c->committed[p] >= 0 && out->topics.v[0].partitions.v[p].error_code == ERR_NONE) {
            assert_int_equal(s->models[c->actor->group].offsets[p], c->committed[p]);
            s->committed++;
        }
}

static void answered(struct storm *s, struct group_request *q)
{
    struct call *c = CONTAINER_OF(q, struct call, q);

    assert_false(c->answered);
    c->answered = true;
    c->actor->parked--;
    switch (q->op) {
    case GROUP_JOIN: joined(s, c); break;
    case GROUP_SYNC: synced(s, c); break;
    case GROUP_COMMIT: committed(s, c); break;
    case GROUP_DELETE:
    case GROUP_HEARTBEAT:
    case GROUP_LEAVE:
    case GROUP_OFFSET_DELETE: break;
    }
}

static void take(struct storm *s, struct group_effects *fx)
{
    struct list *node;

    while ((node = list_pop_front(&fx->answers)))
        answered(s, LIST_ENTRY(node, struct group_request, link));
    list_splice_back(&s->writes, &fx->writes);
}

static void step(struct storm *s, struct group_event *e)
{
    struct group_effects fx;

    e->mono_ms = s->now_ms;
    e->wall_ms = s->now_ms;
    e->random[0] = rng_u64(&s->rng);
    e->random[1] = rng_u64(&s->rng);
    groups_step(s->g, e, &fx);
    take(s, &fx);
}

/* ---- Requests --------------------------------------------------------------------------- */

static struct call *new_call(struct storm *s, struct actor *a, enum group_op op, int16_t version)
{
    struct call *c = xcalloc(1, sizeof(*c));

    c->actor = a;
    arena_init(&c->arena, 0);
    c->q = (struct group_request){.op = op,
                                  .version = version,
                                  .client_id = STR_LIT("c"),
                                  .client_host = STR_LIT("/h"),
                                  .in = &c->in,
                                  .out = &c->out,
                                  .arena = &c->arena};
    s->calls = xreallocarray(s->calls, (size_t)s->call_count + 1, sizeof(struct call *));
    s->calls[s->call_count++] = c;
    a->parked++;
    return c;
}

static void send(struct storm *s, struct call *c)
{
    struct group_event e = {.kind = GROUP_REQUEST, .request = &c->q};

    step(s, &e);
}

static struct str kept(struct call *c, const char *text)
{
    return arena_str(&c->arena, str_of(text));
}

static struct str instance_of(struct call *c)
{
    return c->actor->instance[0] ? kept(c, c->actor->instance) : str_null();
}

static void send_join(struct storm *s, struct actor *a)
{
    struct call *c = new_call(s, a, GROUP_JOIN, (int16_t)(3 + pick(s, 7)));
    struct join_group_request *in = &c->in.join;
    bool forgets = pick(s, 10) == 0; /* a process that begins anew */

    wire_init(&join_group_request_schema, in);
    wire_init(&join_group_response_schema, &c->out);
    in->group_id = str_of(group_names[a->group]);
    in->session_timeout_ms = 6000 + (int32_t)pick(s, 20000);
    in->rebalance_timeout_ms = 5000 + (int32_t)pick(s, 20000);
    in->member_id = forgets ? STR_LIT("") : kept(c, a->id);
    in->group_instance_id = instance_of(c);
    in->protocol_type = STR_LIT("consumer");
    in->protocols.n = 1 + (int32_t)pick(s, 2);
    in->protocols.v = arena_calloc(&c->arena, 2, sizeof(*in->protocols.v));
    in->protocols.v[0].name = STR_LIT("range");
    in->protocols.v[1].name = STR_LIT("rr");
    in->protocols.v[0].metadata = (struct bytes){.p = (const uint8_t *)"x", .n = (int)pick(s, 2)};
    send(s, c);
}

static void send_sync(struct storm *s, struct actor *a)
{
    struct call *c = new_call(s, a, GROUP_SYNC, 5);
    struct sync_group_request *in = &c->in.sync;
    uint64_t nonce = ++s->nonce;

    wire_init(&sync_group_request_schema, in);
    wire_init(&sync_group_response_schema, &c->out);
    in->group_id = str_of(group_names[a->group]);
    in->generation_id = a->generation;
    in->member_id = kept(c, a->id);
    in->group_instance_id = instance_of(c);
    in->assignments.n = a->is_leader ? a->member_count : 0;
    in->assignments.v = arena_calloc(&c->arena, ACTORS * 4, sizeof(*in->assignments.v));
    for (int32_t i = 0; i < in->assignments.n; i++) {
        struct str token =
            arena_printf(&c->arena, "%llu %s", (unsigned long long)nonce, a->members[i]);

        in->assignments.v[i].member_id = kept(c, a->members[i]);
        in->assignments.v[i].assignment =
            (struct bytes){.p = (const uint8_t *)token.p, .n = token.n};
    }
    send(s, c);
}

static void send_beat(struct storm *s, struct actor *a)
{
    struct call *c = new_call(s, a, GROUP_HEARTBEAT, 4);

    wire_init(&heartbeat_request_schema, &c->in);
    wire_init(&heartbeat_response_schema, &c->out);
    c->in.beat.group_id = str_of(group_names[a->group]);
    c->in.beat.generation_id = a->generation;
    c->in.beat.member_id = kept(c, a->id);
    c->in.beat.group_instance_id = instance_of(c);
    send(s, c);
}

static void send_leave(struct storm *s, struct actor *a)
{
    struct call *c = new_call(s, a, GROUP_LEAVE, 2);

    wire_init(&leave_group_request_schema, &c->in);
    wire_init(&leave_group_response_schema, &c->out);
    c->in.leave.group_id = str_of(group_names[a->group]);
    c->in.leave.member_id = kept(c, a->id);
    send(s, c);
}

static void send_commit(struct storm *s, struct actor *a)
{
    struct call *c = new_call(s, a, GROUP_COMMIT, 8);
    struct offset_commit_request *in = &c->in.commit;
    struct offset_commit_response *out = &c->out.commit;

    wire_init(&offset_commit_request_schema, in);
    wire_init(&offset_commit_response_schema, out);
    in->group_id = str_of(group_names[a->group]);
    in->generation_id = pick(s, 8) ? a->generation : -1;
    in->member_id = in->generation_id < 0 ? STR_LIT("") : kept(c, a->id);
    in->group_instance_id = in->generation_id < 0 ? str_null() : instance_of(c);
    in->topics.n = out->topics.n = 1;
    in->topics.v = arena_calloc(&c->arena, 1, sizeof(*in->topics.v));
    out->topics.v = arena_calloc(&c->arena, 1, sizeof(*out->topics.v));
    in->topics.v->name = out->topics.v->name = STR_LIT("t");
    in->topics.v->partitions.n = out->topics.v->partitions.n = PARTITIONS;
    in->topics.v->partitions.v =
        arena_calloc(&c->arena, PARTITIONS, sizeof(*in->topics.v->partitions.v));
    out->topics.v->partitions.v =
        arena_calloc(&c->arena, PARTITIONS, sizeof(*out->topics.v->partitions.v));
    for (int p = 0; p < PARTITIONS; p++) {
        wire_init(&offset_commit_request_partition_schema, &in->topics.v->partitions.v[p]);
        in->topics.v->partitions.v[p].partition_index = p;
        c->committed[p] = pick(s, 2) ? (int64_t)pick(s, 1000000) : -1;
        in->topics.v->partitions.v[p].committed_offset = c->committed[p];
        if (c->committed[p] < 0)
            out->topics.v->partitions.v[p].error_code = ERR_UNKNOWN_TOPIC_OR_PARTITION;
    }
    send(s, c);
}

static void send_delete(struct storm *s, struct actor *a)
{
    struct call *c = new_call(s, a, GROUP_DELETE, 0);

    c->in.delete = str_of(group_names[a->group]);
    send(s, c);
}

/* ---- The world -------------------------------------------------------------------------- */

static struct bytes owned(struct bytes b)
{
    return b.n < 0 ? b : (struct bytes){.p = xmemdup(b.p, (size_t)MAX(b.n, 1)), .n = b.n};
}

/* Also of a write that nobody waits for any more. */
static void apply(struct storm *s, struct bytes key, struct bytes value)
{
    struct group_record_key k;
    struct offset_value v = {.offset = -1};
    struct model *m;

    assert_int_equal(record__parse_key(key, &k), ERR_NONE);
    m = &s->models[str_eq_c(k.group, group_names[0]) ? 0 : 1];
    if (k.type == GROUP_RECORD_GROUP && value.n < 0)
        model_reset(m, true);
    if (k.type != GROUP_RECORD_OFFSET)
        return;
    if (value.n >= 0)
        assert_int_equal(record__parse_offset(value, &v), ERR_NONE);
    m->offsets[k.partition] = v.offset;
}

static void report_write(struct storm *s)
{
    struct group_write *w = LIST_FIRST(&s->writes, struct group_write, link);
    struct group_event e = {.kind = GROUP_WRITTEN, .write = w};

    if (!w)
        return;
    list_remove(&w->link);
    e.err = pick(s, 20) ? ERR_NONE : ERR_KAFKA_STORAGE_ERROR;
    for (int32_t i = 0; i < w->count && !e.err; i++) {
        struct bytes key;
        struct bytes value;

        group_write_record(w, i, &key, &value);
        s->log = xreallocarray(s->log, (size_t)s->log_count + 2, sizeof(*s->log));
        s->log[s->log_count++] = owned(key);
        s->log[s->log_count++] = owned(value);
        apply(s, key, value);
    }
    step(s, &e);
}

static void check_offsets(struct storm *s)
{
    for (int i = 0; i < GROUPS; i++) {
        struct offset_fetch_request_group in = {.group_id = str_of(group_names[i]),
                                                .topics = {.n = -1}};
        struct offset_fetch_response_group out;
        int64_t seen[PARTITIONS] = {-1, -1, -1};
        struct arena arena;

        arena_init(&arena, 0);
        groups_fetch(s->g, &in, true, &arena, &out);
        for (int32_t k = 0; out.topics.n > 0 && k < out.topics.v[0].partitions.n; k++)
            seen[out.topics.v[0].partitions.v[k].partition_index] =
                out.topics.v[0].partitions.v[k].committed_offset;
        arena_fini(&arena);
        assert_memory_equal(seen, s->models[i].offsets, sizeof(seen));
    }
}

static void resign(struct storm *s)
{
    struct group_effects fx;
    struct list *node;

    groups_resign(s->g, ERR_NOT_COORDINATOR, &fx);
    take(s, &fx);
    while ((node = list_pop_front(&s->writes))) {
        list_init(&fx.answers);
        list_init(&fx.writes);
        group_write_drop(s->g, LIST_ENTRY(node, struct group_write, link), ERR_NOT_COORDINATOR,
                         &fx);
        take(s, &fx);
    }
    groups_free(s->g);
    for (int i = 0; i < s->call_count; i++) {
        assert_true(s->calls[i]->answered);
        arena_fini(&s->calls[i]->arena);
        free(s->calls[i]);
    }
    s->call_count = 0;
}

static void restart(struct storm *s)
{
    struct group_effects fx;

    resign(s);
    s->restarted++;
    s->g = groups_new(&s->limits);
    for (int i = 0; i < s->log_count; i += 2)
        assert_int_equal(groups_replay(s->g, -1, s->log[i], s->log[i + 1]), ERR_NONE);
    groups_loaded(s->g, s->now_ms, s->now_ms, &fx);
    for (int i = 0; i < GROUPS; i++)
        model_reset(&s->models[i], false);
    take(s, &fx);
}

static void pass_time(struct storm *s)
{
    struct group_event e = {.kind = GROUP_TICK};

    s->now_ms += (int64_t)pick(s, pick(s, 20) ? 500 : 20000);
    step(s, &e);
}

static void act(struct storm *s)
{
    struct actor *a = &s->actors[pick(s, GROUPS * ACTORS)];
    uint64_t what = pick(s, 1000);

    if (what < 120)
        report_write(s);
    else if (what < 250)
        pass_time(s);
    else if (what < 252)
        restart(s);
    else if (what < 262)
        send_delete(s, a);
    else if (what < 400)
        send_commit(s, a);
    else if (what < 460)
        send_beat(s, a);
    else if (what < 470)
        send_leave(s, a);
    else if (what < 720 || !a->id[0])
        send_join(s, a);
    else
        send_sync(s, a);
}

struct totals {
    int joined;
    int synced;
    int committed;
    int restarted;
};

static void run_storm(uint64_t seed, int32_t delay_ms, struct totals *t)
{
    struct storm *s = xcalloc(1, sizeof(*s));

    s->rng = rng_seeded(seed);
    s->limits = (struct group_limits){.session_timeout_min_ms = 6000,
                                      .session_timeout_max_ms = 60000,
                                      .size_max = ACTORS - 1,
                                      .initial_rebalance_delay_ms = delay_ms,
                                      .offset_metadata_bytes_max = 100,
                                      .write_timeout_ms = 5000,
                                      .offset_retention_ms = INT64_MAX / 4,
                                      .offset_check_interval_ms = 60000};
    s->g = groups_new(&s->limits);
    s->now_ms = 1;
    list_init(&s->writes);
    for (int i = 0; i < GROUPS * ACTORS; i++) {
        s->actors[i].group = i % GROUPS;
        if (i % 3 == 0)
            snprintf(s->actors[i].instance, sizeof(s->actors[i].instance), "i%d", i);
    }
    for (int i = 0; i < GROUPS; i++)
        model_reset(&s->models[i], true);
    for (int i = 0; i < STEPS; i++) {
        act(s);
        check_offsets(s);
    }
    t->joined += s->joined;
    t->synced += s->synced;
    t->committed += s->committed;
    t->restarted += s->restarted;
    resign(s);
    for (int i = 0; i < s->log_count; i++)
        free((void *)(uintptr_t)s->log[i].p);
    free(s->log);
    free(s->calls);
    free(s);
}

static void storms_break_nothing(void **state)
{
    struct totals t = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_storm(seed, seed % 2 ? 0 : 3000, &t);
    /* A storm in which nothing succeeds shows nothing. */
    assert_in_range(t.joined, 100 * SEEDS, INT32_MAX);
    assert_in_range(t.synced, 20 * SEEDS, INT32_MAX);
    assert_in_range(t.committed, 50 * SEEDS, INT32_MAX);
    assert_in_range(t.restarted, 5 * SEEDS, INT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storms_break_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
