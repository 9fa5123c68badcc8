/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of a scenario: a process with a connection to each broker. The script asks between two
 * steps of the world; the question is handed over on the client's loop, as soon as the connection
 * is open, and the script goes on when there is an answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "script.h"

#define TICK_NS MS
#define PATIENCE_MS 20000
#define AGAIN_MS 20
#define TIMEOUT_MS 1500
#define SETTINGS_MAX 6

struct ask {
    struct call call;
    struct list link; /* script->asks, while it is not sent */
    struct script *script;
    int to;
    int16_t api_key;
    int16_t version;
    const void *request; /* borrowed until it is sent */
    void (*take)(struct script *s, const void *response);
    bool is_sent;
    bool is_answered;
    enum err err;
};

/* ---- the process -------------------------------------------------------------------------- */

static void answered(struct call *call, enum err err, void *response)
{
    struct ask *a = CONTAINER_OF(call, struct ask, call);

    a->is_answered = true;
    a->script->err = err;
    if (!err)
        a->take(a->script, response);
    a->err = a->script->err;
}

static struct peer *peer_of(struct script *s, const struct ask *a)
{
    return a->api_key == API_PRODUCE ? &s->writers[a->to - 1] : &s->peers[a->to - 1];
}

static void send_ask(struct script *s, struct ask *a)
{
    list_remove(&a->link);
    a->is_sent = true;
    a->call.done = answered;
    peer_send(peer_of(s, a), &a->call, a->api_key, a->version, a->request, 0);
}

static void tick(struct io_op *op)
{
    struct script *s = CONTAINER_OF(op, struct script, tick.op);

    if (op->err)
        return;
    for (int i = 0; i < NODES; i++)
        if (s->has_restarted[i]) {
            peer_close(&s->peers[i]);
            peer_close(&s->writers[i]);
            s->has_restarted[i] = false;
        }
    LIST_EACH_SAFE (node, &s->asks) {
        struct ask *a = LIST_ENTRY(node, struct ask, link);

        if (peer_of(s, a)->state == PEER_OPEN)
            send_ask(s, a);
    }
    io_timer_set(s->run.client_loop, &s->tick, run_now(&s->run) + TICK_NS);
}

static void nothing(struct peer *peer)
{
    (void)peer;
}

static void connect_to(struct script *s, struct peer *peer, int node)
{
    peer_init(peer, &s->run, nothing, nothing);
    peer->host = s->run.cluster->nodes[node].host;
    peer_start(peer);
}

static void started(void *ctx)
{
    struct script *s = ctx;

    for (int i = 0; i < NODES; i++) {
        connect_to(s, &s->peers[i], i);
        connect_to(s, &s->writers[i], i);
    }
    s->tick.op.done = tick;
    io_timer_set(s->run.client_loop, &s->tick, run_now(&s->run));
}

static void client_main(struct io *io, void *ctx)
{
    struct script *s = ctx;

    s->run.client_io = io;
    s->run.client_loop = io_loop_new(io, "client", started, s);
    io_run(io);
}

void script_client_start(struct script *s)
{
    s->producer_id = -1;
    list_init(&s->asks);
    list_init(&s->run.peers);
    s->run.client_io = sim_process_start(s->run.client_host, NULL, client_main, s);
}

/* ---- asking ------------------------------------------------------------------------------- */

static struct ask *ask_begin(struct script *s, const struct ask *how)
{
    struct ask *a = xmemdup(how, sizeof(*how));

    a->script = s;
    list_push_back(&s->asks, &a->link);
    for (int i = 0; i < PATIENCE_MS && !a->is_sent; i++)
        script_pass(s, 1);
    if (!a->is_sent)
        script_fail(s, "broker %d lets nobody connect", a->to);
    return a;
}

static enum err ask_end(struct script *s, struct ask *a)
{
    enum err err;

    for (int i = 0; i < PATIENCE_MS && !a->is_answered; i++)
        script_pass(s, 1);
    if (!a->is_answered)
        script_fail(s, "broker %d does not answer", a->to);
    err = a->err;
    free(a);
    return err;
}

enum err script_ask(struct script *s, int id, int16_t api_key, int16_t version, const void *request,
                    void (*take)(struct script *s, const void *response))
{
    struct ask how = {
        .to = id, .api_key = api_key, .version = version, .request = request, .take = take};

    return ask_end(s, ask_begin(s, &how));
}

void script_expect(struct script *s, enum err err, enum err expected, const char *what)
{
    if (err != expected)
        script_fail(s, "%s: %s, and not %s", what, err_name(err), err_name(expected));
}

static void look(struct script *s, int id);

/* Asks the controller, whoever that is; until there is one. */
static void ask_controller(struct script *s, int16_t api_key, int16_t version, const void *request,
                           void (*take)(struct script *s, const void *response))
{
    enum err err = ERR_NOT_CONTROLLER;

    for (int ms = 0; ms < PATIENCE_MS; ms += AGAIN_MS) {
        int id = NODES;

        while (id > 1 && !(node_lives(script_node(s, id)) && script_node(s, id)->is_ready))
            id--;
        look(s, id);
        if (s->controller > 0 && node_lives(script_node(s, s->controller)))
            err = script_ask(s, s->controller, api_key, version, request, take);
        if (!err)
            return;
        script_pass(s, AGAIN_MS);
    }
    script_fail(s, "the controller is asked in vain: %s", err_name(err));
}

/* ---- the topic ---------------------------------------------------------------------------- */

static void take_created(struct script *s, const void *response)
{
    const struct create_topics_response *r = response;

    s->err = (enum err)r->topics.v[0].error_code;
    s->topic_id = r->topics.v[0].topic_id;
}

/* "a=b c=d" */
static int32_t parse_settings(char *text, struct create_topics_request_config *out)
{
    int32_t n = 0;
    char *rest;

    for (char *at = strtok_r(text, " ", &rest); at; at = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(at, '=');

        assert(n < SETTINGS_MAX);
        *equals = '\0';
        wire_init(&create_topics_request_config_schema, &out[n]);
        out[n].name = str_of(at);
        out[n++].value = str_of(equals + 1);
    }
    return n;
}

static int32_t parse_ids(const char *text, int32_t *out)
{
    int32_t n = 0;

    for (; *text; text += *text == ',')
        out[n++] = (int32_t)strtol(text, (char **)&text, 10);
    return n;
}

/* Of several with this name the last one is meant. */
static void note_topic(struct script *s)
{
    struct topic *t = history_add_topic(&s->run.history, "t");

    t->partitions = 1;
    t->state = TOPIC_THERE;
}

/* " 1,2,3", in ascending order. */
static int put_ids(char *to, size_t size, const int32_t *v, int32_t n)
{
    int used = 0;

    for (int32_t id = 1; id <= NODES; id++)
        for (int32_t i = 0; i < n; i++)
            if (v[i] == id)
                used += snprintf(to + used, size - (size_t)used, used == 0 ? " %d" : ",%d", id);
    return used;
}

static void note_replicas(struct script *s, const int32_t *v, int32_t n)
{
    snprintf(s->whole, sizeof(s->whole), "isr");
    put_ids(s->whole + 3, sizeof(s->whole) - 3, v, n);
}

void script_make_topic(struct script *s, const char *replicas, const char *settings)
{
    struct create_topics_request request;
    struct create_topics_request_topic topic;
    struct create_topics_request_assignment assignment;
    struct create_topics_request_config configs[SETTINGS_MAX];
    char *text = str_dup(str_of(settings));
    int32_t ids[NODES];

    wire_init(&create_topics_request_schema, &request);
    wire_init(&create_topics_request_topic_schema, &topic);
    wire_init(&create_topics_request_assignment_schema, &assignment);
    assignment.broker_ids.v = ids;
    assignment.broker_ids.n = parse_ids(replicas, ids);
    topic.name = STR_LIT("t");
    topic.num_partitions = topic.replication_factor = -1;
    topic.assignments.v = &assignment;
    topic.assignments.n = 1;
    topic.configs.v = configs;
    topic.configs.n = parse_settings(text, configs);
    request.topics.v = &topic;
    request.topics.n = 1;
    request.timeout_ms = TIMEOUT_MS;
    tell(&s->run, "a topic is made with replicas %s and %s", replicas, settings);
    ask_controller(s, API_CREATE_TOPICS, 7, &request, take_created);
    free(text);
    note_topic(s);
    note_replicas(s, ids, assignment.broker_ids.n);
}

void script_topic(struct script *s, const char *replicas, const char *settings)
{
    int32_t ids[NODES];
    int32_t n = parse_ids(replicas, ids);

    script_make_topic(s, replicas, settings);
    for (int32_t i = 0; i < n; i++)
        script_await(s, ids[i], s->whole);
}

static void take_deleted(struct script *s, const void *response)
{
    const struct delete_topics_response *r = response;

    s->err = (enum err)r->responses.v[0].error_code;
}

void script_delete_topic(struct script *s)
{
    struct delete_topics_request request;
    struct str name = STR_LIT("t");
    struct history *h = &s->run.history;

    wire_init(&delete_topics_request_schema, &request);
    request.topic_names.v = &name;
    request.topic_names.n = 1;
    request.timeout_ms = TIMEOUT_MS;
    tell(&s->run, "the topic is deleted");
    ask_controller(s, API_DELETE_TOPICS, 5, &request, take_deleted);
    h->topics[h->topic_count - 1].state = TOPIC_GONE;
    script_forget(s, 0);
}

static void take_state(struct script *s, const void *response)
{
    const struct metadata_response *r = response;
    const struct metadata_response_partition *p;
    int n;

    s->controller = r->controller_id;
    snprintf(s->text, sizeof(s->text), "nothing of it");
    if (r->topics.v[0].partitions.n == 0)
        return;
    p = &r->topics.v[0].partitions.v[0];
    n = snprintf(s->text, sizeof(s->text), "isr");
    n += put_ids(s->text + n, sizeof(s->text) - (size_t)n, p->isr_nodes.v, p->isr_nodes.n);
    snprintf(s->text + n, sizeof(s->text) - (size_t)n, " leader %d epoch %d", p->leader_id,
             p->leader_epoch);
    s->epoch = p->leader_epoch;
    s->leader = p->leader_id;
}

static void look(struct script *s, int id)
{
    struct metadata_request request;
    struct metadata_request_topic topic;

    wire_init(&metadata_request_schema, &request);
    wire_init(&metadata_request_topic_schema, &topic);
    topic.name = STR_LIT("t");
    request.topics.v = &topic;
    request.topics.n = 1;
    request.allow_auto_topic_creation = false;
    snprintf(s->text, sizeof(s->text), "nothing");
    (void)script_ask(s, id, API_METADATA, 12, &request, take_state);
}

static bool begins_with(const char *text, const char *expected)
{
    size_t n = strlen(expected);

    return strncmp(text, expected, n) == 0 && (text[n] == '\0' || text[n] == ' ');
}

void script_await(struct script *s, int id, const char *state)
{
    char found[SCRIPT_TEXT_MAX] = "";

    for (int ms = 0; ms < PATIENCE_MS; ms += AGAIN_MS) {
        look(s, id);
        if (begins_with(s->text, state)) {
            tell(&s->run, "broker %d says %s", id, s->text);
            return;
        }
        snprintf(found, sizeof(found), "%s", s->text);
        script_pass(s, AGAIN_MS);
    }
    script_fail(s, "broker %d says \"%s\", and not \"%s\"", id, found, state);
}

static void take_elected(struct script *s, const void *response)
{
    const struct elect_leaders_response *r = response;

    s->err = (enum err)r->error_code;
    if (!s->err && r->replica_election_results.n > 0)
        s->err = (enum err)r->replica_election_results.v[0].partition_result.v[0].error_code;
}

void script_elect_unclean(struct script *s)
{
    struct elect_leaders_request request;
    struct elect_leaders_request_topic topic;
    int32_t index = 0;

    wire_init(&elect_leaders_request_schema, &request);
    wire_init(&elect_leaders_request_topic_schema, &topic);
    topic.topic = STR_LIT("t");
    topic.partitions.v = &index;
    topic.partitions.n = 1;
    request.election_type = 1;
    request.topic_partitions.v = &topic;
    request.topic_partitions.n = 1;
    request.timeout_ms = TIMEOUT_MS;
    tell(&s->run, "an unclean election is asked for");
    ask_controller(s, API_ELECT_LEADERS, 2, &request, take_elected);
}

/* ---- writing ------------------------------------------------------------------------------ */

static void take_id(struct script *s, const void *response)
{
    const struct init_producer_id_response *r = response;

    s->err = (enum err)r->error_code;
    s->producer_id = r->producer_id;
    s->sequence = 0;
}

void script_be_idempotent(struct script *s, int id)
{
    struct init_producer_id_request request;

    wire_init(&init_producer_id_request_schema, &request);
    request.transactional_id = str_null();
    script_expect(s, script_ask(s, id, API_INIT_PRODUCER_ID, 4, &request, take_id), ERR_NONE,
                  "asking for a producer's id");
}

static void make_batch(struct script *s, const char *value, int32_t sequence, struct buf *out)
{
    struct batch_spec spec = batch_spec_default();
    struct batch_builder builder;
    struct record r = {
        .timestamp = io_wall_ms(s->run.client_io),
        .key = bytes_null(),
        .value = {.p = (const uint8_t *)value, .n = (int32_t)strlen(value)},
    };
    enum err err;

    if (s->producer_id >= 0) {
        spec.producer_id = s->producer_id;
        spec.producer_epoch = 0;
        spec.base_sequence = sequence;
    }
    batch_builder_init(&builder, &spec);
    err = batch_builder_append(&builder, &r);
    assert(!err);
    batch_builder_finish(&builder, out);
    batch_builder_fini(&builder);
}

static void take_produced(struct script *s, const void *response)
{
    const struct produce_response *r = response;

    s->err = (enum err)r->responses.v[0].partitions.v[0].error_code;
}

static struct ask *begin_produce(struct script *s, int id, int16_t acks, const char *value,
                                 int32_t sequence)
{
    struct produce_request_partition partition;
    struct produce_request_topic topic;
    struct produce_request request;
    struct ask how = {
        .to = id, .api_key = API_PRODUCE, .version = 9, .request = &request, .take = take_produced};
    struct buf batch = {0};
    struct ask *a;

    make_batch(s, value, sequence, &batch);
    wire_init(&produce_request_schema, &request);
    wire_init(&produce_request_topic_schema, &topic);
    wire_init(&produce_request_partition_schema, &partition);
    partition.records.b = buf_bytes(&batch, 0);
    topic.name = STR_LIT("t");
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    request.acks = acks;
    request.timeout_ms = TIMEOUT_MS;
    request.topics.v = &topic;
    request.topics.n = 1;
    how.call.has_no_answer = acks == NONE;
    a = ask_begin(s, &how);
    a->is_answered |= acks == NONE;
    buf_fini(&batch);
    return a;
}

struct ask *script_begin_write(struct script *s, int id, int16_t acks, const char *value)
{
    return begin_produce(s, id, acks, value, s->sequence++);
}

void script_end_write(struct script *s, struct ask *ask, enum err expected)
{
    int id = ask->to;
    enum err err = ask_end(s, ask);

    tell(&s->run, "a write at broker %d: %s", id, err_name(err));
    script_expect(s, err, expected, "a write");
}

void script_write(struct script *s, int id, int16_t acks, const char *value, enum err expected)
{
    script_end_write(s, script_begin_write(s, id, acks, value), expected);
}

void script_write_again(struct script *s, int id, const char *value, enum err expected)
{
    assert(s->producer_id >= 0);
    script_end_write(s, begin_produce(s, id, ALL, value, s->sequence - 1), expected);
}

void script_write_anywhere(struct script *s, const char *value)
{
    int32_t sequence = s->sequence++;

    for (int ms = 0; ms < PATIENCE_MS; ms += AGAIN_MS) {
        for (int id = 1; id <= NODES; id++)
            if (node_lives(script_node(s, id)) && script_node(s, id)->is_ready &&
                !ask_end(s, begin_produce(s, id, ALL, value, sequence)))
                return;
        script_pass(s, AGAIN_MS);
    }
    script_fail(s, "nobody takes %s", value);
}

bool script_is_answered(const struct ask *ask)
{
    return ask->is_answered;
}

/* ---- reading ------------------------------------------------------------------------------ */

void script_forget(struct script *s, int64_t offset)
{
    for (int64_t i = offset; i < SCRIPT_OFFSETS_MAX; i++)
        s->seen[i][0] = '\0';
}

static void see(struct script *s, const struct record *r)
{
    char *seen;
    size_t used = strlen(s->text);

    assert(r->offset < SCRIPT_OFFSETS_MAX);
    seen = s->seen[r->offset];
    if (seen[0] && str_cmp(str_of(seen), (struct str){(const char *)r->value.p, r->value.n}) != 0)
        script_fail(s, "offset %lld was %s and is %.*s", (long long)r->offset, seen, r->value.n,
                    (const char *)r->value.p);
    snprintf(seen, SCRIPT_VALUE_MAX, "%.*s", r->value.n, (const char *)r->value.p);
    snprintf(s->text + used, sizeof(s->text) - used, used ? " %s" : "%s", seen);
    s->next = r->offset + 1;
}

static void take_fetched(struct script *s, const void *response)
{
    const struct fetch_response *r = response;
    const struct fetch_response_partition *p;

    s->err = (enum err)r->error_code;
    s->session = r->session_id;
    if (s->err || r->responses.n == 0)
        return;
    p = &r->responses.v[0].partitions.v[0];
    s->err = (enum err)p->error_code;
    if (!s->err)
        script_each_record(p->records.b, s->next, see, s);
    if (s->next > MAX(p->high_watermark, 0) && p->records.b.n > 0)
        script_fail(s, "read up to %lld, and the high watermark is %lld", (long long)s->next,
                    (long long)p->high_watermark);
}

struct how_to_fetch {
    int16_t version;
    struct uuid topic_id; /* from version 13 on */
    int64_t offset;
    int32_t epoch; /* of the leader, as the consumer believes; -1: it does not say */
    int32_t session;
    int32_t session_epoch;
    const char *rack; /* where the consumer stands; NULL: it does not say */
    int32_t wait_ms;
};

static struct ask *begin_fetch(struct script *s, int id, const struct how_to_fetch *how)
{
    struct fetch_request request;
    struct fetch_request_topic topic;
    struct fetch_request_partition partition;

    wire_init(&fetch_request_schema, &request);
    wire_init(&fetch_request_topic_schema, &topic);
    wire_init(&fetch_request_partition_schema, &partition);
    partition.fetch_offset = s->next = how->offset;
    partition.current_leader_epoch = how->epoch;
    partition.partition_max_bytes = 1 << 20;
    topic.topic = STR_LIT("t");
    topic.topic_id = how->topic_id;
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    request.max_bytes = 1 << 20;
    request.session_id = how->session;
    request.session_epoch = how->session_epoch;
    request.topics.v = &topic;
    request.topics.n = 1;
    request.min_bytes = how->wait_ms > 0;
    request.max_wait_ms = how->wait_ms;
    if (how->rack)
        request.rack_id = str_of(how->rack);
    s->text[0] = '\0';
    return ask_begin(s, &(struct ask){.to = id,
                                      .api_key = API_FETCH,
                                      .version = how->version,
                                      .request = &request,
                                      .take = take_fetched});
}

static enum err fetch(struct script *s, int id, const struct how_to_fetch *how)
{
    return ask_end(s, begin_fetch(s, id, how));
}

static enum err fetch_at(struct script *s, int id, int64_t offset, int32_t epoch)
{
    return fetch(s, id,
                 &(struct how_to_fetch){
                     .version = 12, .offset = offset, .epoch = epoch, .session_epoch = -1});
}

void script_fetch(struct script *s, int id, int64_t offset, int32_t epoch, enum err expected)
{
    script_expect(s, fetch_at(s, id, offset, epoch), expected, "a fetch");
}

void script_fetch_id(struct script *s, int id, struct uuid topic_id, enum err expected)
{
    struct how_to_fetch how = {
        .version = 13, .topic_id = topic_id, .epoch = -1, .session_epoch = -1};

    script_expect(s, fetch(s, id, &how), expected, "a fetch by the topic's id");
}

void script_fetch_near(struct script *s, int id, int64_t offset, int32_t epoch, enum err expected)
{
    struct how_to_fetch how = {
        .version = 11, .offset = offset, .epoch = epoch, .session_epoch = -1, .rack = "here"};

    script_expect(s, fetch(s, id, &how), expected, "a fetch by a consumer that has a rack");
}

struct ask *script_begin_fetch_near(struct script *s, int id, int64_t offset)
{
    return begin_fetch(s, id,
                       &(struct how_to_fetch){.version = 12,
                                              .offset = offset,
                                              .epoch = -1,
                                              .session_epoch = -1,
                                              .rack = "here",
                                              .wait_ms = PATIENCE_MS / 2});
}

void script_end_fetch(struct script *s, struct ask *ask, const char *values, enum err expected)
{
    int64_t before = run_now(&s->run);

    script_expect(s, ask_end(s, ask), expected, "a fetch that waits");
    if (!expected && strcmp(s->text, values) != 0)
        script_fail(s, "a fetch that waits reads \"%s\", and not \"%s\"", s->text, values);
    if (run_now(&s->run) > before + PATIENCE_MS / 4 * MS)
        script_fail(s, "a fetch that waits is not woken");
}

int32_t script_open_session(struct script *s, int id, const char *values)
{
    script_expect(s, fetch(s, id, &(struct how_to_fetch){.version = 12, .epoch = -1}), ERR_NONE,
                  "a fetch for a session");
    if (strcmp(s->text, values) != 0)
        script_fail(s, "a new session reads \"%s\", and not \"%s\"", s->text, values);
    return s->session;
}

void script_go_on_in_session(struct script *s, int id, int32_t session, enum err expected)
{
    struct how_to_fetch how = {.version = 12, .epoch = -1, .session = session, .session_epoch = 1};

    script_expect(s, fetch(s, id, &how), expected, "a fetch in a session");
}

/* All there is, in s->text. */
static enum err read_all(struct script *s, int id)
{
    char found[SCRIPT_TEXT_MAX] = "";
    enum err err;

    s->next = 0;
    do {
        size_t used = strlen(found);

        err = fetch_at(s, id, s->next, -1);
        snprintf(found + used, sizeof(found) - used, used && s->text[0] ? " %s" : "%s", s->text);
    } while (!err && s->text[0]);
    snprintf(s->text, sizeof(s->text), "%s", found);
    return err;
}

void script_reads(struct script *s, int id, const char *values)
{
    char found[SCRIPT_TEXT_MAX] = "";
    enum err err = ERR_NONE;

    for (int ms = 0; ms < PATIENCE_MS; ms += AGAIN_MS) {
        err = read_all(s, id);
        snprintf(found, sizeof(found), "%s", s->text);
        if (!err && strcmp(found, values) == 0) {
            tell(&s->run, "a consumer reads at broker %d: %s", id, found);
            return;
        }
        if (!err && found[0] && !begins_with(values, found))
            break;
        script_pass(s, AGAIN_MS);
    }
    script_fail(s, "a consumer reads \"%s\" at broker %d (%s), and not \"%s\"", found, id,
                err_name(err), values);
}

static void take_epoch_end(struct script *s, const void *response)
{
    const struct offset_for_leader_epoch_response *r = response;
    const struct offset_for_leader_epoch_response_partition *p = &r->topics.v[0].partitions.v[0];

    s->err = (enum err)p->error_code;
    snprintf(s->text, sizeof(s->text), "epoch %d ends at %lld", p->leader_epoch,
             (long long)p->end_offset);
}

void script_epoch_end(struct script *s, int id, int32_t epoch, const char *expected)
{
    struct offset_for_leader_epoch_request request;
    struct offset_for_leader_epoch_request_topic topic;
    struct offset_for_leader_epoch_request_partition partition;

    wire_init(&offset_for_leader_epoch_request_schema, &request);
    wire_init(&offset_for_leader_epoch_request_topic_schema, &topic);
    wire_init(&offset_for_leader_epoch_request_partition_schema, &partition);
    partition.leader_epoch = epoch;
    topic.topic = STR_LIT("t");
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    request.replica_id = -1;
    request.topics.v = &topic;
    request.topics.n = 1;
    for (int ms = 0; ms < PATIENCE_MS; ms += AGAIN_MS) {
        enum err err = script_ask(s, id, API_OFFSET_FOR_LEADER_EPOCH, 4, &request, take_epoch_end);

        if (!is_of_leadership(err))
            break;
        script_pass(s, AGAIN_MS);
    }
    if (strcmp(s->text, expected) != 0)
        script_fail(s, "broker %d says \"%s\", and not \"%s\"", id, s->text, expected);
}
