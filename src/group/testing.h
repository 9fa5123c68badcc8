/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_GROUP_TESTING_H
#define SL_GROUP_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "group/cursor_int.h"
#include "group/group_int.h"

/*
 * Transcripts: a test is a text in which lines that begin with "> " are what happens, and the
 * others are what the groups answer to it. check_transcript runs the first and compares the whole.
 *
 *   > after MS                     time passes, in one step
 *   > until MS                     likewise, but every deadline on the way is met
 *   > hold | > written | > failed ERROR   writes wait from now on; the oldest one is reported
 *   > restart                      a new coordinator loads what was committed
 *   > topic-gone TOPIC
 *   > NAME join GROUP [v= member= instance= session= rebalance= type= client=] PROTOCOL=METADATA...
 *   > NAME sync GROUP member= gen= [v= instance= type= protocol=] MEMBER=ASSIGNMENT...
 *   > NAME beat GROUP member= gen= [instance=]
 *   > NAME leave GROUP [v=] [MEMBER | instance=]...
 *   > NAME commit GROUP [v= member= gen= instance= retention=] TOPIC/PARTITION=OFFSET[:METADATA]...
 *   > NAME offset-delete GROUP TOPIC/PARTITION...
 *   > NAME delete GROUP
 *   > fetch GROUP [TOPIC/PARTITION...]    > describe GROUP [v=]    > list [STATE...]
 *
 * NAME is whatever the test calls the request. Member ids that the groups make are written m1, m2
 * ... in the order in which they are first seen. Metadata of type "consumer" is a list of topics.
 */

#define SCRIPT_CALLS_MAX 256
#define SCRIPT_IDS_MAX 64
#define SCRIPT_WORDS_MAX 48

struct script_call {
    struct group_request q;
    struct arena arena;
    char name[32];
    union {
        struct join_group_request join;
        struct sync_group_request sync;
        struct heartbeat_request beat;
        struct leave_group_request leave;
        struct offset_commit_request commit;
        struct offset_delete_request offset_delete;
        struct str delete;
    } in;
    union {
        struct join_group_response join;
        struct sync_group_response sync;
        struct heartbeat_response beat;
        struct leave_group_response leave;
        struct offset_commit_response commit;
        struct offset_delete_response offset_delete;
        struct delete_groups_response_result delete;
    } out;
};

struct script_record {
    struct bytes key;
    struct bytes value;
};

struct script {
    struct group_limits limits;
    struct groups *g;
    int64_t mono_ms;
    int64_t wall_ms;
    int64_t wake_ms;
    uint64_t random;
    bool hold;
    struct list writes;
    struct arena arena; /* words, log, ids */
    struct script_record *log;
    int32_t log_n;
    char *ids[SCRIPT_IDS_MAX];
    int id_n;
    struct script_call *calls[SCRIPT_CALLS_MAX];
    int call_n;
    char *words[SCRIPT_WORDS_MAX];
    int word_n;
    struct buf text;
};

/* ---- Text ------------------------------------------------------------------------------- */

static void say(struct script *s, const char *fmt, ...) printf_like(2, 3);
static void say(struct script *s, const char *fmt, ...)
{
    char line[4096];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    assert_in_range(n, 0, (int)sizeof(line) - 1);
    buf_append(&s->text, line, (size_t)n);
}

static bool is_made_id(struct str id)
{
    return id.n > 36 && id.p[id.n - 37] == '-' && id.p[id.n - 28] == '-';
}

/* The short name of a member id. */
static const char *short_id(struct script *s, struct str id)
{
    static char text[64];
    int i = 0;

    if (id.n <= 0)
        return "-";
    if (!is_made_id(id)) {
        snprintf(text, sizeof(text), "%.*s", STR_ARG(id));
        return text;
    }
    while (i < s->id_n && !str_eq_c(id, s->ids[i]))
        i++;
    if (i == s->id_n) {
        assert_true(s->id_n < SCRIPT_IDS_MAX);
        s->ids[s->id_n++] = (char *)(uintptr_t)arena_str(&s->arena, id).p;
    }
    snprintf(text, sizeof(text), "m%d", i + 1);
    return text;
}

/* The other way round. */
static struct str long_id(struct script *s, const char *name)
{
    char *end;
    long i = name[0] == 'm' ? strtol(name + 1, &end, 10) : 0;

    if (i < 1 || i > s->id_n || *end)
        return str_of(name);
    return str_of(s->ids[i - 1]);
}

/* Of type "consumer" the topics, else the bytes. */
static void say_metadata(struct script *s, struct bytes b)
{
    struct cursor c = cursor_of(b);
    int32_t n;

    if (b.n < 6 || b.p[0] != 0) {
        say(s, "%.*s", (int)MAX(b.n, 0), (const char *)b.p);
        return;
    }
    (void)cursor_i16(&c);
    n = cursor_i32(&c);
    for (int32_t i = 0; i < n; i++) {
        struct str topic = cursor_str(&c);

        say(s, "%s%.*s", i ? "," : "", STR_ARG(topic));
    }
}

static struct bytes metadata_of_text(struct script *s, const char *type, const char *text)
{
    struct buf out = {0};
    struct str copy;
    int32_t n = 0;

    if (strcmp(type, "consumer") != 0)
        return (struct bytes){.p = (const uint8_t *)text, .n = (int32_t)strlen(text)};
    put_i16(buf_extend(&out, 2), 0);
    buf_extend(&out, 4);
    while (*text) {
        size_t size = strcspn(text, ",");

        put_i16(buf_extend(&out, 2), (int16_t)size);
        buf_append(&out, text, size);
        text += size + (text[size] == ',');
        n++;
    }
    put_i32(out.p + 2, n);
    put_i32(buf_extend(&out, 4), -1);
    copy = arena_str(&s->arena, (struct str){.p = (const char *)out.p, .n = (int32_t)out.n});
    buf_fini(&out);
    return (struct bytes){.p = (const uint8_t *)copy.p, .n = copy.n};
}

static const char *error_text(int16_t code)
{
    return err_name(err_from_wire(code));
}

/* ---- What the groups say ----------------------------------------------------------------- */

static void say_join(struct script *s, const struct join_group_response *out)
{
    say(s, "member=%s", short_id(s, out->member_id));
    if (out->error_code)
        return;
    say(s, " generation=%d protocol=%.*s", out->generation_id, STR_ARG(out->protocol_name));
    say(s, " leader=%s", short_id(s, out->leader));
    if (out->skip_assignment)
        say(s, " skip");
    for (int32_t i = 0; i < out->members.n; i++) {
        const struct join_group_response_member *m = &out->members.v[i];

        say(s, " %s", short_id(s, m->member_id));
        if (!str_is_null(m->group_instance_id))
            say(s, "(%.*s)", STR_ARG(m->group_instance_id));
        say(s, ":");
        say_metadata(s, m->metadata);
    }
}

static void say_partitions(struct script *s, const struct offset_commit_response *out)
{
    for (int32_t t = 0; t < out->topics.n; t++)
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++)
            say(s, " %.*s/%d=%s", STR_ARG(out->topics.v[t].name),
                out->topics.v[t].partitions.v[i].partition_index,
                error_text(out->topics.v[t].partitions.v[i].error_code));
}

static void say_deleted(struct script *s, const struct offset_delete_response *out)
{
    for (int32_t t = 0; t < out->topics.n; t++)
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++)
            say(s, " %.*s/%d=%s", STR_ARG(out->topics.v[t].name),
                out->topics.v[t].partitions.v[i].partition_index,
                error_text(out->topics.v[t].partitions.v[i].error_code));
}

static void say_left(struct script *s, const struct leave_group_response *out)
{
    for (int32_t i = 0; i < out->members.n; i++) {
        say(s, " %s", short_id(s, out->members.v[i].member_id));
        if (!str_is_null(out->members.v[i].group_instance_id))
            say(s, "(%.*s)", STR_ARG(out->members.v[i].group_instance_id));
        say(s, "=%s", error_text(out->members.v[i].error_code));
    }
}

static void say_answer(struct script *s, struct script_call *c)
{
    say(s, "%s ", c->name);
    switch (c->q.op) {
    case GROUP_JOIN:
        if (c->out.join.error_code)
            say(s, "%s ", error_text(c->out.join.error_code));
        say_join(s, &c->out.join);
        break;
    case GROUP_SYNC:
        say(s, "%s", error_text(c->out.sync.error_code));
        if (!c->out.sync.error_code)
            say(s, " assignment=%.*s", (int)c->out.sync.assignment.n,
                (const char *)c->out.sync.assignment.p);
        break;
    case GROUP_HEARTBEAT: say(s, "%s", error_text(c->out.beat.error_code)); break;
    case GROUP_LEAVE:
        say(s, "%s", error_text(c->out.leave.error_code));
        say_left(s, &c->out.leave);
        break;
    case GROUP_COMMIT:
        say(s, "committed");
        say_partitions(s, &c->out.commit);
        break;
    case GROUP_OFFSET_DELETE:
        say(s, "%s", error_text(c->out.offset_delete.error_code));
        say_deleted(s, &c->out.offset_delete);
        break;
    case GROUP_DELETE: say(s, "%s", error_text(c->out.delete.error_code)); break;
    }
    say(s, "\n");
}

static void say_group_value(struct script *s, struct bytes value)
{
    struct group_value v;
    struct arena arena;

    arena_init(&arena, 0);
    assert_int_equal(record__parse_group(value, &arena, &v), ERR_NONE);
    say(s, "generation=%d type=%.*s", v.generation, STR_ARG(v.protocol_type));
    if (!str_is_null(v.protocol))
        say(s, " protocol=%.*s leader=%s", STR_ARG(v.protocol), short_id(s, v.leader));
    for (int32_t i = 0; i < v.member_count; i++) {
        say(s, " %s", short_id(s, v.members[i].id));
        if (!str_is_null(v.members[i].instance_id))
            say(s, "(%.*s)", STR_ARG(v.members[i].instance_id));
        say(s, "=%.*s", (int)MAX(v.members[i].assignment.n, 0),
            (const char *)v.members[i].assignment.p);
    }
    arena_fini(&arena);
}

static void say_record(struct script *s, struct bytes key, struct bytes value)
{
    struct group_record_key k;
    struct offset_value v;

    assert_int_equal(record__parse_key(key, &k), ERR_NONE);
    say(s, "  %.*s", STR_ARG(k.group));
    if (k.type == GROUP_RECORD_OFFSET)
        say(s, " %.*s/%d", STR_ARG(k.topic), k.partition);
    if (value.n < 0) {
        say(s, " gone\n");
        return;
    }
    say(s, " ");
    if (k.type == GROUP_RECORD_OFFSET) {
        assert_int_equal(record__parse_offset(value, &v), ERR_NONE);
        say(s, "%lld", (long long)v.offset);
    } else {
        say_group_value(s, value);
    }
    say(s, "\n");
}

static void say_write(struct script *s, const struct group_write *w)
{
    say(s, "write:\n");
    for (int32_t i = 0; i < w->count; i++) {
        struct bytes key;
        struct bytes value;

        group_write_record(w, i, &key, &value);
        say_record(s, key, value);
    }
}

/* ---- Steps ------------------------------------------------------------------------------ */

static struct bytes script_copy(struct script *s, struct bytes b)
{
    struct str c = arena_str(&s->arena, (struct str){.p = (const char *)b.p, .n = b.n});

    return (struct bytes){.p = (const uint8_t *)c.p, .n = c.n};
}

static void log_write(struct script *s, const struct group_write *w)
{
    s->log = xreallocarray(s->log, (size_t)(s->log_n + w->count), sizeof(*s->log));
    for (int32_t i = 0; i < w->count; i++) {
        struct bytes key;
        struct bytes value;

        group_write_record(w, i, &key, &value);
        s->log[s->log_n].key = script_copy(s, key);
        s->log[s->log_n++].value = script_copy(s, value);
    }
}

static void take(struct script *s, struct group_effects *fx)
{
    struct list *node;

    s->wake_ms = fx->wake_ms;
    while ((node = list_pop_front(&fx->answers)))
        say_answer(
            s, CONTAINER_OF(LIST_ENTRY(node, struct group_request, link), struct script_call, q));
    while ((node = list_pop_front(&fx->writes))) {
        say_write(s, LIST_ENTRY(node, struct group_write, link));
        list_push_back(&s->writes, node);
    }
}

static void run_event(struct script *s, struct group_event *e)
{
    struct group_effects fx;

    e->mono_ms = s->mono_ms;
    e->wall_ms = s->wall_ms;
    e->random[0] = s->random;
    e->random[1] = s->random++;
    groups_step(s->g, e, &fx);
    take(s, &fx);
}

static void report(struct script *s, enum err err)
{
    struct group_write *w = LIST_FIRST(&s->writes, struct group_write, link);
    struct group_event e = {.kind = GROUP_WRITTEN, .write = w, .err = err};

    assert_non_null(w);
    list_remove(&w->link);
    if (!err)
        log_write(s, w);
    run_event(s, &e);
}

static void settle(struct script *s)
{
    while (!s->hold && !list_is_empty(&s->writes))
        report(s, ERR_NONE);
}

static void pass(struct script *s, int64_t ms)
{
    struct group_event e = {.kind = GROUP_TICK};

    s->mono_ms += ms;
    s->wall_ms += ms;
    run_event(s, &e);
    settle(s);
}

static void pass_until(struct script *s, int64_t ms)
{
    int64_t end = s->mono_ms + ms;

    while (s->wake_ms <= end) {
        int64_t before = s->mono_ms;

        pass(s, s->wake_ms - s->mono_ms);
        if (s->mono_ms > before)
            say(s, "(at %lld)\n", (long long)s->mono_ms);
    }
    pass(s, end - s->mono_ms);
}

static void stop(struct script *s)
{
    struct group_effects fx;
    struct list *node;

    groups_resign(s->g, ERR_NOT_COORDINATOR, &fx);
    while ((node = list_pop_front(&fx.answers)))
        say_answer(
            s, CONTAINER_OF(LIST_ENTRY(node, struct group_request, link), struct script_call, q));
    while ((node = list_pop_front(&s->writes))) {
        list_init(&fx.answers);
        group_write_drop(s->g, LIST_ENTRY(node, struct group_write, link), ERR_NOT_COORDINATOR,
                         &fx);
        while ((node = list_pop_front(&fx.answers)))
            say_answer(s, CONTAINER_OF(LIST_ENTRY(node, struct group_request, link),
                                       struct script_call, q));
    }
    groups_free(s->g);
}

static void start(struct script *s)
{
    struct group_effects fx;

    s->g = groups_new(&s->limits);
    for (int32_t i = 0; i < s->log_n; i++)
        assert_int_equal(groups_replay(s->g, -1, s->log[i].key, s->log[i].value), ERR_NONE);
    groups_loaded(s->g, s->mono_ms, s->wall_ms, &fx);
    take(s, &fx);
}

/* ---- Commands --------------------------------------------------------------------------- */

static bool is_option(const char *key)
{
    static const char *const keys[] = {"v",    "member", "instance", "session",   "rebalance",
                                       "type", "client", "gen",      "retention", "protocol"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* The value of an option; a fallback where it is not given. */
static const char *option(struct script *s, const char *key, const char *fallback)
{
    size_t n = strlen(key);

    for (int i = 0; i < s->word_n; i++)
        if (strncmp(s->words[i], key, n) == 0 && s->words[i][n] == '=')
            return s->words[i] + n + 1;
    return fallback;
}

static int32_t number(struct script *s, const char *key, int32_t fallback)
{
    const char *text = option(s, key, NULL);

    return text ? (int32_t)strtol(text, NULL, 10) : fallback;
}

/* The words behind the group that are no options, cut at '='; *at starts at 0. */
static bool next_pair(struct script *s, int *at, char **key, char **value)
{
    for (; *at < s->word_n; (*at)++) {
        char *word = (char *)(uintptr_t)arena_str(&s->arena, str_of(s->words[*at])).p;
        char *equal = strchr(word, '=');

        if (equal)
            *equal = '\0';
        if (equal && is_option(word))
            continue;
        (*at)++;
        *key = word;
        *value = equal ? equal + 1 : NULL;
        return true;
    }
    return false;
}

static void in_join(struct script *s, struct script_call *c, struct str group)
{
    struct join_group_request *in = &c->in.join;
    const char *type = option(s, "type", "consumer");
    char *key;
    char *value;

    wire_init(&join_group_request_schema, in);
    wire_init(&join_group_response_schema, &c->out);
    in->group_id = group;
    in->session_timeout_ms = number(s, "session", 10000);
    in->rebalance_timeout_ms = c->q.version >= 1 ? number(s, "rebalance", 60000) : -1;
    in->member_id = long_id(s, option(s, "member", ""));
    in->group_instance_id = str_of(option(s, "instance", NULL));
    in->protocol_type = str_of(type);
    in->protocols.v = arena_calloc(&s->arena, SCRIPT_WORDS_MAX, sizeof(*in->protocols.v));
    for (int at = 0; next_pair(s, &at, &key, &value); in->protocols.n++) {
        in->protocols.v[in->protocols.n].name = str_of(key);
        in->protocols.v[in->protocols.n].metadata = metadata_of_text(s, type, value);
    }
}

static void in_sync(struct script *s, struct script_call *c, struct str group)
{
    struct sync_group_request *in = &c->in.sync;
    char *key;
    char *value;

    wire_init(&sync_group_request_schema, in);
    wire_init(&sync_group_response_schema, &c->out);
    in->group_id = group;
    in->generation_id = number(s, "gen", 0);
    in->member_id = long_id(s, option(s, "member", ""));
    in->group_instance_id = str_of(option(s, "instance", NULL));
    in->protocol_type = str_of(option(s, "type", NULL));
    in->protocol_name = str_of(option(s, "protocol", NULL));
    in->assignments.v = arena_calloc(&s->arena, SCRIPT_WORDS_MAX, sizeof(*in->assignments.v));
    for (int at = 0; next_pair(s, &at, &key, &value); in->assignments.n++) {
        in->assignments.v[in->assignments.n].member_id = long_id(s, key);
        in->assignments.v[in->assignments.n].assignment =
            (struct bytes){.p = (const uint8_t *)value, .n = (int32_t)strlen(value)};
    }
}

static void in_beat(struct script *s, struct script_call *c, struct str group)
{
    struct heartbeat_request *in = &c->in.beat;

    wire_init(&heartbeat_request_schema, in);
    wire_init(&heartbeat_response_schema, &c->out);
    in->group_id = group;
    in->generation_id = number(s, "gen", 0);
    in->member_id = long_id(s, option(s, "member", ""));
    in->group_instance_id = str_of(option(s, "instance", NULL));
}

static void in_leave(struct script *s, struct script_call *c, struct str group)
{
    struct leave_group_request *in = &c->in.leave;
    const char *instance = option(s, "instance", NULL);
    char *key = NULL;
    char *value;

    wire_init(&leave_group_request_schema, in);
    wire_init(&leave_group_response_schema, &c->out);
    in->group_id = group;
    in->members.v = arena_calloc(&s->arena, SCRIPT_WORDS_MAX, sizeof(*in->members.v));
    for (int at = 0; next_pair(s, &at, &key, &value); in->members.n++) {
        in->members.v[in->members.n].member_id = long_id(s, key);
        in->members.v[in->members.n].group_instance_id = str_null();
    }
    if (instance) {
        in->members.v[in->members.n].member_id = STR_LIT("");
        in->members.v[in->members.n++].group_instance_id = str_of(instance);
    }
    if (c->q.version < 3)
        in->member_id = long_id(s, key);
}

/* "topic/3": the topic, cut, and the partition. */
static int32_t cut_partition(char *word)
{
    char *slash = strrchr(word, '/');

    assert_non_null(slash);
    *slash = '\0';
    return (int32_t)strtol(slash + 1, NULL, 10);
}

static void in_commit(struct script *s, struct script_call *c, struct str group)
{
    struct offset_commit_request *in = &c->in.commit;
    struct offset_commit_response *out = &c->out.commit;
    char *key;
    char *value;

    wire_init(&offset_commit_request_schema, in);
    wire_init(&offset_commit_response_schema, out);
    in->group_id = group;
    in->generation_id = number(s, "gen", -1);
    in->member_id = long_id(s, option(s, "member", ""));
    in->group_instance_id = str_of(option(s, "instance", NULL));
    in->retention_time_ms = number(s, "retention", -1);
    in->topics.v = arena_calloc(&s->arena, SCRIPT_WORDS_MAX, sizeof(*in->topics.v));
    out->topics.v = arena_calloc(&s->arena, SCRIPT_WORDS_MAX, sizeof(*out->topics.v));
    for (int at = 0; next_pair(s, &at, &key, &value); in->topics.n++, out->topics.n++) {
        struct offset_commit_request_topic *t = &in->topics.v[in->topics.n];
        struct offset_commit_response_topic *o = &out->topics.v[out->topics.n];
        char *colon = strchr(value, ':');

        t->partitions.v = arena_calloc(&s->arena, 1, sizeof(*t->partitions.v));
        o->partitions.v = arena_calloc(&s->arena, 1, sizeof(*o->partitions.v));
        wire_init(&offset_commit_request_partition_schema, t->partitions.v);
        t->partitions.n = o->partitions.n = 1;
        t->partitions.v->partition_index = cut_partition(key);
        t->partitions.v->committed_offset = strtoll(value, NULL, 10);
        t->partitions.v->committed_metadata = str_of(colon ? colon + 1 : NULL);
        o->partitions.v->partition_index = t->partitions.v->partition_index;
        if (strcmp(key, "nowhere") == 0)
            o->partitions.v->error_code = ERR_UNKNOWN_TOPIC_OR_PARTITION;
        t->name = o->name = str_of(key);
    }
}

static void in_offset_delete(struct script *s, struct script_call *c, struct str group)
{
    struct offset_delete_request *in = &c->in.offset_delete;
    struct offset_delete_response *out = &c->out.offset_delete;
    char *key;
    char *value;

    wire_init(&offset_delete_request_schema, in);
    wire_init(&offset_delete_response_schema, out);
    in->group_id = group;
    in->topics.v = arena_calloc(&s->arena, SCRIPT_WORDS_MAX, sizeof(*in->topics.v));
    out->topics.v = arena_calloc(&s->arena, SCRIPT_WORDS_MAX, sizeof(*out->topics.v));
    for (int at = 0; next_pair(s, &at, &key, &value); in->topics.n++, out->topics.n++) {
        struct offset_delete_request_topic *t = &in->topics.v[in->topics.n];
        struct offset_delete_response_topic *o = &out->topics.v[out->topics.n];

        t->partitions.v = arena_calloc(&s->arena, 1, sizeof(*t->partitions.v));
        o->partitions.v = arena_calloc(&s->arena, 1, sizeof(*o->partitions.v));
        t->partitions.n = o->partitions.n = 1;
        t->partitions.v->partition_index = cut_partition(key);
        o->partitions.v->partition_index = t->partitions.v->partition_index;
        t->name = o->name = str_of(key);
    }
}

static void run_request(struct script *s, const char *name, const char *op, struct str group)
{
    struct script_call *c = xcalloc(1, sizeof(*c));
    struct group_event e = {.kind = GROUP_REQUEST, .request = &c->q};

    assert_true(s->call_n < SCRIPT_CALLS_MAX);
    s->calls[s->call_n++] = c;
    arena_init(&c->arena, 0);
    snprintf(c->name, sizeof(c->name), "%s", name);
    c->q.version = (int16_t)number(s, "v", 5);
    c->q.client_id = str_of(option(s, "client", "c"));
    c->q.client_host = STR_LIT("/127.0.0.1");
    c->q.in = &c->in;
    c->q.out = &c->out;
    c->q.arena = &c->arena;
    if (strcmp(op, "join") == 0) {
        c->q.op = GROUP_JOIN;
        in_join(s, c, group);
    } else if (strcmp(op, "sync") == 0) {
        c->q.op = GROUP_SYNC;
        in_sync(s, c, group);
    } else if (strcmp(op, "beat") == 0) {
        c->q.op = GROUP_HEARTBEAT;
        in_beat(s, c, group);
    } else if (strcmp(op, "leave") == 0) {
        c->q.op = GROUP_LEAVE;
        in_leave(s, c, group);
    } else if (strcmp(op, "commit") == 0) {
        c->q.op = GROUP_COMMIT;
        in_commit(s, c, group);
    } else if (strcmp(op, "offset-delete") == 0) {
        c->q.op = GROUP_OFFSET_DELETE;
        in_offset_delete(s, c, group);
    } else {
        assert_string_equal(op, "delete");
        c->q.op = GROUP_DELETE;
        c->in.delete = group;
        wire_init(&delete_groups_response_result_schema, &c->out);
    }
    run_event(s, &e);
    settle(s);
}

static void run_fetch(struct script *s, struct str group)
{
    struct offset_fetch_request_group in = {.group_id = group, .topics = {.n = -1}};
    struct offset_fetch_response_group out;
    char *key;
    char *value;

    for (int at = 0; next_pair(s, &at, &key, &value);) {
        if (in.topics.n < 0) {
            in.topics.v = arena_calloc(&s->arena, SCRIPT_WORDS_MAX, sizeof(*in.topics.v));
            in.topics.n = 0;
        }
        in.topics.v[in.topics.n].partition_indexes.v = arena_calloc(&s->arena, 1, 4);
        in.topics.v[in.topics.n].partition_indexes.v[0] = cut_partition(key);
        in.topics.v[in.topics.n].partition_indexes.n = 1;
        in.topics.v[in.topics.n++].name = str_of(key);
    }
    groups_fetch(s->g, &in, true, &s->arena, &out);
    say(s, "offsets");
    for (int32_t t = 0; t < out.topics.n; t++)
        for (int32_t i = 0; i < out.topics.v[t].partitions.n; i++) {
            const struct offset_fetch_response_group_partition *p =
                &out.topics.v[t].partitions.v[i];

            say(s, " %.*s/%d=%lld:%.*s", STR_ARG(out.topics.v[t].name), p->partition_index,
                (long long)p->committed_offset, STR_ARG(p->metadata));
            if (p->error_code)
                say(s, "(%s)", error_text(p->error_code));
        }
    say(s, "\n");
}

static void run_describe(struct script *s, struct str group)
{
    struct describe_groups_response_group out;

    groups_describe(s->g, group, (int16_t)number(s, "v", 5), &s->arena, &out);
    say(s, "%s state=%.*s type=%.*s protocol=%.*s", error_text(out.error_code),
        STR_ARG(out.group_state), STR_ARG(out.protocol_type), STR_ARG(out.protocol_data));
    for (int32_t i = 0; i < out.members.n; i++) {
        const struct describe_groups_response_member *m = &out.members.v[i];

        say(s, " %s", short_id(s, m->member_id));
        if (!str_is_null(m->group_instance_id))
            say(s, "(%.*s)", STR_ARG(m->group_instance_id));
        say(s, "@%.*s%.*s:", STR_ARG(m->client_id), STR_ARG(m->client_host));
        say_metadata(s, m->member_metadata);
        say(s, "=%.*s", (int)m->member_assignment.n, (const char *)m->member_assignment.p);
    }
    say(s, "\n");
}

static void run_list(struct script *s, int first)
{
    struct str states[SCRIPT_WORDS_MAX];
    struct group_filter filter = {.states = states};
    struct list_groups_response_group *v;
    int32_t n;

    for (int i = first; i < s->word_n; i++)
        states[filter.state_count++] = str_of(s->words[i]);
    groups_list(s->g, &filter, &s->arena, &v, &n);
    say(s, "groups");
    for (int32_t i = 0; i < n; i++)
        say(s, " %.*s:%.*s:%.*s", STR_ARG(v[i].group_id), STR_ARG(v[i].protocol_type),
            STR_ARG(v[i].group_state));
    say(s, "\n");
}

static enum err err_of_name(const char *name)
{
#define ERR(symbol, number_, retriable, wire, text)                                                \
    if (strcmp(name, #symbol) == 0)                                                                \
        return ERR_##symbol;
#include "base/err.def"
#undef ERR
    fail_msg("no error %s", name);
    return ERR_NONE;
}

static void split(struct script *s, struct str line)
{
    char *p = (char *)(uintptr_t)arena_str(&s->arena, line).p;

    s->word_n = 0;
    for (p += strspn(p, " "); *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");

        assert_true(s->word_n < SCRIPT_WORDS_MAX);
        s->words[s->word_n++] = p;
        p += n;
        if (*p)
            *p++ = '\0';
    }
}

/* Leaves the words from `first` on for the options. */
static void shift(struct script *s, int first)
{
    memmove(s->words, s->words + first, (size_t)(s->word_n - first) * sizeof(s->words[0]));
    s->word_n -= first;
}

static void run_line(struct script *s, struct str line)
{
    const char *verb;
    const char *arg;
    char *op;

    split(s, line);
    verb = s->words[0];
    arg = s->word_n > 1 ? s->words[1] : "";
    if (strcmp(verb, "after") == 0) {
        pass(s, strtoll(arg, NULL, 10));
    } else if (strcmp(verb, "until") == 0) {
        pass_until(s, strtoll(arg, NULL, 10));
    } else if (strcmp(verb, "hold") == 0) {
        s->hold = true;
    } else if (strcmp(verb, "written") == 0) {
        report(s, ERR_NONE);
    } else if (strcmp(verb, "failed") == 0) {
        report(s, err_of_name(arg));
        settle(s);
    } else if (strcmp(verb, "restart") == 0) {
        stop(s);
        start(s);
        settle(s);
    } else if (strcmp(verb, "topic-gone") == 0) {
        struct group_event e = {.kind = GROUP_TOPIC_GONE, .topic = str_of(arg)};

        run_event(s, &e);
        settle(s);
    } else if (strcmp(verb, "list") == 0) {
        run_list(s, 1);
    } else if (strcmp(verb, "fetch") == 0 || strcmp(verb, "describe") == 0) {
        shift(s, 2);
        if (verb[0] == 'f')
            run_fetch(s, str_of(arg));
        else
            run_describe(s, str_of(arg));
    } else {
        op = s->words[1];
        arg = s->word_n > 2 ? s->words[2] : "";
        if (strcmp(arg, "-") == 0)
            arg = "";
        shift(s, 3);
        run_request(s, verb, op, str_of(arg));
    }
}

/* ---- A whole transcript ------------------------------------------------------------------ */

static void run_transcript(struct script *s, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");

        if (strncmp(text, "> ", 2) == 0) {
            buf_append(&s->text, text, n);
            say(s, "\n");
            run_line(s, (struct str){.p = text + 2, .n = (int32_t)n - 2});
        }
        text += n + (text[n] == '\n');
    }
}

static void check_transcript_with(const struct group_limits *limits, const char *text)
{
    struct script s = {.limits = *limits, .mono_ms = 1000, .wall_ms = 1700000000000};

    arena_init(&s.arena, 0);
    list_init(&s.writes);
    start(&s);
    run_transcript(&s, text);
    say(&s, "%c", '\0');
    assert_string_equal((const char *)s.text.p, text);
    stop(&s);
    for (int i = 0; i < s.call_n; i++) {
        arena_fini(&s.calls[i]->arena);
        free(s.calls[i]);
    }
    free(s.log);
    buf_fini(&s.text);
    arena_fini(&s.arena);
}

/* Kafka's defaults, but for a group that may have three members, and small metadata. */
static const struct group_limits default_limits = {
    .session_timeout_min_ms = 6000,
    .session_timeout_max_ms = 1800000,
    .size_max = 3,
    .initial_rebalance_delay_ms = 3000,
    .offset_metadata_bytes_max = 16,
    .write_timeout_ms = 5000,
    .offset_retention_ms = 604800000,
    .offset_check_interval_ms = 600000,
};

static inline void check_transcript(const char *text)
{
    check_transcript_with(&default_limits, text);
}

/* The first member does not wait for others. */
static inline void check_at_once(const char *text)
{
    struct group_limits limits = default_limits;

    limits.initial_rebalance_delay_ms = 0;
    check_transcript_with(&limits, text);
}

/* Likewise, and offsets are kept for 1000 s. */
static inline void check_soon_expired(const char *text)
{
    struct group_limits limits = default_limits;

    limits.initial_rebalance_delay_ms = 0;
    limits.offset_retention_ms = 1000000;
    check_transcript_with(&limits, text);
}

#endif
