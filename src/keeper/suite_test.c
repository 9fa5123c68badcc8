/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of keeper.h, asked of every implementation. A test is a list of phases: each phase
 * submits calls, and the next one begins when all of them have completed. Every result and every
 * event leaves a line in the fixture's log, so that order is checked by comparing text. The last
 * phase is followed by keeper_close, in every test.
 *
 * With an argument, "host:port" of a ZooKeeper, its implementation is asked alone: each test has a
 * chroot of its own there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "keeper/keeper.h"

#define PROBES_MAX 512
#define WATCHES_MAX 8
#define LOG_BYTES 16384

static const char *zookeeper_servers; /* of the command line */

struct fixture;
typedef void (*phase_fn)(struct fixture *f);

struct implementation {
    const char *name;
    /* Opens a session on f->loop, before io_run or on the loop. */
    struct keeper *(*open)(struct fixture *f, void *ctx);
    void (*expire)(struct fixture *f, struct keeper *k);
    void (*forget)(struct fixture *f); /* after io_run */
    void (*end)(struct fixture *f);    /* of the test */
};

/* Of the states of a session. */
struct teller {
    const char *name;
    struct fixture *f;
};

struct probe {
    struct keeper_call call;
    struct fixture *f;
    char label[64];
    struct keeper_op ops[4];
    bool is_done;
};

struct watcher {
    struct keeper_watch watch;
    struct fixture *f;
    char label[32];
};

struct fixture {
    const struct implementation *impl;
    struct io *io;
    struct io_loop *loop;
    struct keeper *keeper;
    struct keeper *other; /* a second session, where that is possible */
    struct teller tellers[2];
    struct keeper_memory *memory;
    char dir[64];
    char place[128]; /* ZooKeeper's, with the chroot */
    bool is_closed;
    const phase_fn *phases;
    struct io_msg next;
    int pending;
    bool is_submitting; /* a call of keeper.h is on the stack */
    char log[LOG_BYTES];
    size_t log_size;
    struct probe probes[PROBES_MAX];
    int probe_count;
    struct watcher watchers[WATCHES_MAX];
    int watcher_count;
    /* What later phases compare with. */
    struct probe *p[8];
    int64_t zxid;
    int32_t number;
};

/* ---- The log. */

static void note(struct fixture *f, const char *fmt, ...) printf_like(2, 3);

static void note(struct fixture *f, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(f->log + f->log_size, LOG_BYTES - f->log_size, fmt, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < LOG_BYTES - f->log_size);
    f->log_size += (size_t)n;
}

#define assert_log(f, text)                                                                        \
    do {                                                                                           \
        assert_string_equal((f)->log, text);                                                       \
        (f)->log_size = 0;                                                                         \
        (f)->log[0] = '\0';                                                                        \
    } while (0)

static void state_changed(void *ctx, enum keeper_state state)
{
    static const char *const names[] = {"connecting", "connected", "expired", "closed", "failed"};
    struct teller *teller = ctx;

    assert_false(teller->f->is_submitting);
    note(teller->f, "%s is %s\n", teller->name, names[state]);
}

static const struct keeper_events events = {.state_changed = state_changed};

static void watch_fired(struct keeper_watch *w, enum keeper_event_kind kind)
{
    static const char *const names[] = {"created", "deleted", "changed", "children"};
    struct watcher *watcher = CONTAINER_OF(w, struct watcher, watch);

    assert_false(watcher->f->is_submitting);
    note(watcher->f, "event %s %s\n", watcher->label, names[kind]);
}

static struct keeper_watch *watcher_new(struct fixture *f, const char *label)
{
    struct watcher *w = &f->watchers[f->watcher_count++];

    assert_true(f->watcher_count <= WATCHES_MAX);
    *w = (struct watcher){.watch.fired = watch_fired, .f = f};
    snprintf(w->label, sizeof(w->label), "%s", label);
    return &w->watch;
}

/* ---- Calls. */

static void probe_done(struct keeper_call *call)
{
    struct probe *p = CONTAINER_OF(call, struct probe, call);

    assert_false(p->f->is_submitting);
    assert_false(p->is_done);
    p->is_done = true;
    note(p->f, "%s %s\n", p->label, err_name(call->err));
    if (--p->f->pending == 0)
        io_post(p->f->loop, &p->f->next);
}

static struct probe *probe_new(struct fixture *f, const char *verb, const char *path)
{
    struct probe *p = &f->probes[f->probe_count++];

    assert_true(f->probe_count <= PROBES_MAX);
    *p = (struct probe){.call.done = probe_done, .f = f};
    snprintf(p->label, sizeof(p->label), "%s %s", verb, path);
    f->pending++;
    return p;
}

typedef void (*read_fn)(struct keeper *, const char *, struct keeper_watch *, struct keeper_call *);

static struct probe *read_as(struct fixture *f, read_fn fn, const char *verb, const char *path,
                             struct keeper_watch *w)
{
    struct probe *p = probe_new(f, verb, path);

    f->is_submitting = true;
    fn(f->keeper, path, w, &p->call);
    f->is_submitting = false;
    return p;
}

static struct probe *get(struct fixture *f, const char *path, struct keeper_watch *w)
{
    return read_as(f, keeper_get, "get", path, w);
}

static struct probe *children(struct fixture *f, const char *path, struct keeper_watch *w)
{
    return read_as(f, keeper_children, "children", path, w);
}

static struct probe *exists(struct fixture *f, const char *path, struct keeper_watch *w)
{
    return read_as(f, keeper_exists, "exists", path, w);
}

static struct bytes bytes_of(const char *s)
{
    return (struct bytes){.p = (const uint8_t *)s, .n = (int32_t)strlen(s)};
}

static struct keeper_op op(enum keeper_op_kind kind, const char *path, const char *data)
{
    return (struct keeper_op){.kind = kind, .path = path, .data = bytes_of(data), .version = -1};
}

static struct probe *multi_on(struct fixture *f, struct keeper *k, const char *verb,
                              const struct keeper_op *ops, int n)
{
    struct probe *p = probe_new(f, verb, ops[0].path);

    assert_true(n <= 4);
    memcpy(p->ops, ops, (size_t)n * sizeof(*ops));
    f->is_submitting = true;
    keeper_multi(k, p->ops, n, &p->call);
    f->is_submitting = false;
    return p;
}

static struct probe *multi(struct fixture *f, const struct keeper_op *ops, int n)
{
    return multi_on(f, f->keeper, "multi", ops, n);
}

static struct probe *create(struct fixture *f, const char *path, const char *data)
{
    struct keeper_op o = op(KEEPER_CREATE, path, data);

    return multi_on(f, f->keeper, "create", &o, 1);
}

static struct probe *set(struct fixture *f, const char *path, const char *data, int32_t version)
{
    struct keeper_op o = op(KEEPER_SET, path, data);

    o.version = version;
    return multi_on(f, f->keeper, "set", &o, 1);
}

static struct probe *delete (struct fixture *f, const char *path, int32_t version)
{
    struct keeper_op o = op(KEEPER_DELETE, path, "");

    o.version = version;
    return multi_on(f, f->keeper, "delete", &o, 1);
}

static struct probe *sequential(struct fixture *f, const char *path, bool is_ephemeral)
{
    struct keeper_op o = op(KEEPER_CREATE, path, "");

    o.is_sequential = true;
    o.is_ephemeral = is_ephemeral;
    return multi_on(f, f->keeper, "sequential", &o, 1);
}

static struct probe *ephemeral_on(struct fixture *f, struct keeper *k, const char *path)
{
    struct keeper_op o = op(KEEPER_CREATE, path, "");

    o.is_ephemeral = true;
    return multi_on(f, k, "ephemeral", &o, 1);
}

static void assert_data(const struct probe *p, const char *text)
{
    assert_int_equal(p->call.data.n, strlen(text));
    assert_memory_equal(p->call.data.p, text, strlen(text));
}

/* ---- Running phases. */

static void closed(void *ctx)
{
    struct fixture *f = ctx;

    assert_false(f->is_submitting);
    note(f, "closed\n");
    f->is_closed = true;
    io_stop(f->io);
}

static void other_closed(void *ctx)
{
    struct fixture *f = ctx;

    f->other = NULL;
    keeper_close(f->keeper, closed, f);
}

static void close_all(struct fixture *f)
{
    f->is_submitting = true;
    if (f->other)
        keeper_close(f->other, other_closed, f);
    else
        keeper_close(f->keeper, closed, f);
    f->is_submitting = false;
}

static void next_phase(struct io_msg *msg)
{
    struct fixture *f = CONTAINER_OF(msg, struct fixture, next);
    phase_fn phase = *f->phases++;

    if (!phase) {
        close_all(f);
        return;
    }
    phase(f);
    if (f->pending == 0 && f->keeper)
        io_post(f->loop, &f->next);
}

static void started(void *ctx)
{
    struct fixture *f = ctx;

    io_post(f->loop, &f->next);
}

/* One life of a process: every phase, then the end. The log stays. */
static void run(struct fixture *f, const phase_fn *phases)
{
    f->phases = phases;
    f->next.fn = next_phase;
    f->pending = 0;
    f->is_closed = false;
    f->io = io_new(&(struct io_options){.trace_level = TRACE_WARN});
    f->loop = io_loop_new(f->io, "control", started, f);
    f->tellers[0] = (struct teller){.name = "session", .f = f};
    f->keeper = f->impl->open(f, &f->tellers[0]);
    f->probe_count = 0;
    f->watcher_count = 0;
    io_run(f->io);
    f->impl->forget(f);
    for (int i = 0; i < f->watcher_count; i++)
        assert_null(f->watchers[i].watch._keeper); /* they are the test's again */
    for (int i = 0; i < f->probe_count; i++)
        keeper_call_release(&f->probes[i].call);
    io_free(f->io);
}

#define RUN(f, ...) run(f, (const phase_fn[]){__VA_ARGS__, NULL})

/* ---- Reading and writing. */

static void submit_basics(struct fixture *f)
{
    create(f, "/a", "one");
    f->p[0] = get(f, "/a", NULL);
    f->p[1] = set(f, "/a", "two", 0);
    f->p[2] = get(f, "/a", NULL);
    f->p[3] = exists(f, "/a", NULL);
    delete (f, "/a", 1);
    get(f, "/a", NULL);
}

static void check_basics(struct fixture *f)
{
    assert_log(f, "session is connected\ncreate /a NONE\nget /a NONE\nset /a NONE\nget /a NONE\n"
                  "exists /a NONE\ndelete /a NONE\nget /a NOT_FOUND\n");
    assert_data(f->p[0], "one");
    assert_int_equal(f->p[0]->call.stat.version, 0);
    assert_int_equal(f->p[0]->call.stat.ephemeral_owner, 0);
    assert_true(f->p[0]->call.stat.created_zxid > 0);
    assert_int_equal(f->p[0]->call.stat.created_zxid, f->p[0]->call.stat.modified_zxid);
    assert_data(f->p[2], "two");
    assert_int_equal(f->p[2]->call.stat.version, 1);
    assert_int_equal(f->p[1]->ops[0].stat.version, 1);
    assert_int_equal(f->p[1]->ops[0].stat.modified_zxid, f->p[2]->call.stat.modified_zxid);
    assert_true(f->p[2]->call.stat.modified_zxid > f->p[0]->call.stat.modified_zxid);
    assert_int_equal(f->p[3]->call.data.n, -1);
    assert_int_equal(f->p[3]->call.stat.version, 1);
}

static void a_read_sees_the_writes_before_it_and_none_behind_it(void **state)
{
    RUN(*state, submit_basics, check_basics);
    assert_log((struct fixture *)*state, "session is closed\nclosed\n");
}

static void submit_null_and_empty(struct fixture *f)
{
    struct keeper_op o = op(KEEPER_CREATE, "/null", "");

    o.data = bytes_null();
    multi(f, &o, 1);
    create(f, "/empty", "");
    f->p[0] = get(f, "/null", NULL);
    f->p[1] = get(f, "/empty", NULL);
}

static void check_null_and_empty(struct fixture *f)
{
    assert_int_equal(f->p[0]->call.data.n, -1);
    assert_int_equal(f->p[1]->call.data.n, 0);
}

static void null_data_is_not_empty_data(void **state)
{
    RUN(*state, submit_null_and_empty, check_null_and_empty);
}

static void submit_children(struct fixture *f)
{
    create(f, "/p", "");
    f->p[0] = children(f, "/p", NULL);
    create(f, "/p/b", "");
    create(f, "/p/a", "");
    create(f, "/p/b/x", "");
    create(f, "/p/B", "");
    f->p[1] = children(f, "/p", NULL);
    delete (f, "/p/a", -1);
    f->p[2] = children(f, "/p", NULL);
    f->p[3] = children(f, "/q", NULL);
    f->p[4] = children(f, "/", NULL);
}

static void check_children(struct fixture *f)
{
    assert_int_equal(f->p[0]->call.children_count, 0);
    assert_int_equal(f->p[1]->call.children_count, 3);
    assert_string_equal(f->p[1]->call.children[0], "B");
    assert_string_equal(f->p[1]->call.children[1], "a");
    assert_string_equal(f->p[1]->call.children[2], "b");
    assert_int_equal(f->p[1]->call.stat.children_count, 3);
    assert_int_equal(f->p[1]->call.stat.children_version, 3);
    assert_int_equal(f->p[2]->call.children_count, 2);
    assert_int_equal(f->p[2]->call.stat.children_version, 4);
    assert_int_equal(f->p[2]->call.stat.version, 0);
    assert_int_equal(f->p[3]->call.err, ERR_NOT_FOUND);
    bool is_listed = false;
    for (int i = 0; i < f->p[4]->call.children_count; i++)
        is_listed |= strcmp(f->p[4]->call.children[i], "p") == 0;
    assert_true(is_listed);
}

static void children_are_sorted_by_bytes_and_counted(void **state)
{
    RUN(*state, submit_children, check_children);
}

static void submit_refusals(struct fixture *f)
{
    create(f, "/a", "");
    create(f, "/a", "");
    create(f, "/no/child", "");
    create(f, "/a/b", "");
    set(f, "/a", "", 1);
    set(f, "/no", "", -1);
    delete (f, "/a", -1);
    delete (f, "/a/b", 3);
    delete (f, "/no", -1);
    delete (f, "/", -1);
    create(f, "/", "");
}

static void check_refusals(struct fixture *f)
{
    assert_log(f, "session is connected\n"
                  "create /a NONE\ncreate /a EXISTS\ncreate /no/child NOT_FOUND\n"
                  "create /a/b NONE\nset /a BAD_VERSION\nset /no NOT_FOUND\ndelete /a NOT_EMPTY\n"
                  "delete /a/b BAD_VERSION\ndelete /no NOT_FOUND\ndelete / INVALID_ARG\n"
                  "create / EXISTS\n");
}

static void what_cannot_be_done_says_why(void **state)
{
    RUN(*state, submit_refusals, check_refusals);
}

static void submit_bad_paths(struct fixture *f)
{
    static const char *const bad[] = {"",   "a",     "/a/",  "//",   "/a//b",
                                      "/.", "/a/..", "/a\n", "/\x7f"};
    static char too_long[KEEPER_PATH_BYTES_MAX + 2];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        get(f, bad[i], NULL);
        children(f, bad[i], NULL);
        exists(f, bad[i], watcher_new(f, "bad"));
        f->watcher_count = 0;
        create(f, bad[i], "");
    }
    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[0] = '/';
    get(f, too_long, NULL);
}

static void check_bad_paths(struct fixture *f)
{
    for (int i = 0; i < f->probe_count; i++)
        assert_int_equal(f->probes[i].call.err, ERR_INVALID_ARG);
}

static void a_bad_path_is_refused_everywhere(void **state)
{
    RUN(*state, submit_bad_paths, check_bad_paths);
}

static void submit_big(struct fixture *f)
{
    static uint8_t big[KEEPER_DATA_BYTES_MAX + 1];
    struct keeper_op o = op(KEEPER_CREATE, "/big", "");

    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (uint8_t)(i * 31 >> 3);
    o.data = (struct bytes){.p = big, .n = KEEPER_DATA_BYTES_MAX};
    multi(f, &o, 1);
    f->p[0] = get(f, "/big", NULL);
    o.kind = KEEPER_SET;
    o.data.n++;
    f->p[1] = multi(f, &o, 1);
    f->p[2] = get(f, "/big", NULL);
}

static void check_big(struct fixture *f)
{
    assert_int_equal(f->p[0]->call.data.n, KEEPER_DATA_BYTES_MAX);
    assert_memory_equal(f->p[0]->call.data.p, f->p[1]->ops[0].data.p, KEEPER_DATA_BYTES_MAX);
    assert_int_equal(f->p[1]->call.err, ERR_LIMIT);
    assert_int_equal(f->p[2]->call.stat.version, 0);
}

static void data_may_be_a_mebibyte_and_no_more(void **state)
{
    RUN(*state, submit_big, check_big);
}

/* ---- Multi. */

static void submit_multi(struct fixture *f)
{
    struct keeper_op good[] = {op(KEEPER_CREATE, "/m", "1"), op(KEEPER_CREATE, "/m/a", "2"),
                               op(KEEPER_SET, "/m", "3"), op(KEEPER_CHECK, "/m", "")};

    good[3].version = 1;
    f->p[0] = multi(f, good, 4);
    f->p[1] = get(f, "/m", NULL);
    f->p[2] = get(f, "/m/a", NULL);
}

static void check_multi(struct fixture *f)
{
    assert_int_equal(f->p[0]->call.err, ERR_NONE);
    assert_int_equal(f->p[0]->call.failed_op, -1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(f->p[0]->ops[i].err, ERR_NONE);
    assert_int_equal(f->p[0]->ops[0].stat.version, 0);
    assert_int_equal(f->p[0]->ops[2].stat.version, 1);
    assert_int_equal(f->p[0]->ops[3].stat.version, 1);
    assert_data(f->p[1], "3");
    assert_int_equal(f->p[1]->call.stat.modified_zxid, f->p[2]->call.stat.created_zxid);
}

static void a_multi_sees_its_own_operations_and_has_one_zxid(void **state)
{
    RUN(*state, submit_multi, check_multi);
}

/* Fails at its last operation, after one of each kind. */
static void submit_failing_multi(struct fixture *f)
{
    struct keeper_op ops[] = {op(KEEPER_SET, "/m", "new"), op(KEEPER_DELETE, "/m/a", ""),
                              op(KEEPER_CREATE, "/m/b", "x"), op(KEEPER_CHECK, "/m", "")};

    create(f, "/m", "old");
    create(f, "/m/a", "child");
    children(f, "/m", watcher_new(f, "children of m"));
    get(f, "/m", watcher_new(f, "m"));
    get(f, "/m/a", watcher_new(f, "a"));
    exists(f, "/m/b", watcher_new(f, "b"));
    f->p[0] = children(f, "/m", NULL);
    ops[3].version = 7;
    f->p[1] = multi(f, ops, 4);
    f->p[2] = children(f, "/m", NULL);
    f->p[3] = get(f, "/m", NULL);
    f->p[4] = get(f, "/m/a", NULL);
    exists(f, "/m/b", NULL);
}

static void check_failing_multi(struct fixture *f)
{
    assert_log(f, "session is connected\ncreate /m NONE\ncreate /m/a NONE\nchildren /m NONE\n"
                  "get /m NONE\nget /m/a NONE\nexists /m/b NOT_FOUND\nchildren /m NONE\n"
                  "multi /m BAD_VERSION\nchildren /m NONE\nget /m NONE\nget /m/a NONE\n"
                  "exists /m/b NOT_FOUND\n");
    assert_int_equal(f->p[1]->call.failed_op, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(f->p[1]->ops[i].err, ERR_CANCELLED);
    assert_int_equal(f->p[1]->ops[3].err, ERR_BAD_VERSION);
    assert_int_equal(f->p[2]->call.stat.children_version, f->p[0]->call.stat.children_version);
    assert_int_equal(f->p[2]->call.children_count, 1);
    assert_string_equal(f->p[2]->call.children[0], "a");
    assert_data(f->p[3], "old");
    assert_int_equal(f->p[3]->call.stat.version, 0);
    assert_int_equal(f->p[3]->call.stat.modified_zxid, f->p[3]->call.stat.created_zxid);
    assert_data(f->p[4], "child");
}

/* The watches are still there: the multi that did not happen has not used them up. */
static void submit_after_failing_multi(struct fixture *f)
{
    struct keeper_op ops[] = {op(KEEPER_SET, "/m", "new"), op(KEEPER_DELETE, "/m/a", ""),
                              op(KEEPER_CREATE, "/m/b", "x")};

    multi(f, ops, 3);
}

static void check_after_failing_multi(struct fixture *f)
{
    assert_log(f, "event m changed\nevent a deleted\nevent children of m children\n"
                  "event b created\nmulti /m NONE\n");
}

static void a_multi_that_fails_changes_nothing_and_names_the_operation(void **state)
{
    RUN(*state, submit_failing_multi, check_failing_multi, submit_after_failing_multi,
        check_after_failing_multi);
}

static void submit_replace(struct fixture *f)
{
    struct keeper_op ops[] = {op(KEEPER_DELETE, "/r", ""), op(KEEPER_CREATE, "/r", "new"),
                              op(KEEPER_CREATE, "/t", ""), op(KEEPER_DELETE, "/t", "")};

    create(f, "/r", "old");
    get(f, "/r", watcher_new(f, "r"));
    multi(f, ops, 4);
    f->p[0] = get(f, "/r", NULL);
    exists(f, "/t", NULL);
}

static void check_replace(struct fixture *f)
{
    assert_log(f, "session is connected\ncreate /r NONE\nget /r NONE\nevent r deleted\n"
                  "multi /r NONE\nget /r NONE\nexists /t NOT_FOUND\n");
    assert_data(f->p[0], "new");
    assert_int_equal(f->p[0]->call.stat.version, 0);
}

static void a_multi_may_delete_and_create_the_same_node(void **state)
{
    RUN(*state, submit_replace, check_replace);
}

/* ---- Sequential and ephemeral nodes. */

static void submit_sequential(struct fixture *f)
{
    create(f, "/s", "");
    create(f, "/t", "");
    f->p[0] = sequential(f, "/s/n_", false);
    f->p[1] = sequential(f, "/s/n_", false);
    sequential(f, "/no/n_", false);
    delete (f, "/s/n_0000000001", -1);
    f->p[2] = sequential(f, "/s/other_", true);
    f->p[3] = sequential(f, "/t/n_", false);
    children(f, "/s", NULL);
}

static void check_sequential(struct fixture *f)
{
    assert_log(f, "session is connected\ncreate /s NONE\ncreate /t NONE\nsequential /s/n_ NONE\n"
                  "sequential /s/n_ NONE\nsequential /no/n_ NOT_FOUND\n"
                  "delete /s/n_0000000001 NONE\nsequential /s/other_ NONE\n"
                  "sequential /t/n_ NONE\nchildren /s NONE\n");
    assert_string_equal(f->p[0]->ops[0].created_path, "/s/n_0000000000");
    assert_string_equal(f->p[1]->ops[0].created_path, "/s/n_0000000001");
    assert_string_equal(f->p[2]->ops[0].created_path, "/s/other_0000000002");
    assert_string_equal(f->p[3]->ops[0].created_path, "/t/n_0000000000");
}

static void sequence_numbers_belong_to_the_parent_and_are_never_used_again(void **state)
{
    RUN(*state, submit_sequential, check_sequential);
}

static void submit_ephemeral(struct fixture *f)
{
    ephemeral_on(f, f->keeper, "/e");
    f->p[0] = get(f, "/e", NULL);
    create(f, "/e/child", "");
}

static void check_ephemeral(struct fixture *f)
{
    assert_log(f, "session is connected\nephemeral /e NONE\nget /e NONE\n"
                  "create /e/child INVALID_ARG\n");
    assert_true(f->p[0]->call.stat.ephemeral_owner != 0);
    assert_int_equal(f->p[0]->call.stat.ephemeral_owner, keeper_session_id(f->keeper));
}

static void submit_look_for_ephemeral(struct fixture *f)
{
    exists(f, "/e", NULL);
}

static void an_ephemeral_node_goes_with_its_session(void **state)
{
    struct fixture *f = *state;

    RUN(f, submit_ephemeral, check_ephemeral);
    assert_log(f, "session is closed\nclosed\n");
    RUN(f, submit_look_for_ephemeral);
    assert_log(f, "session is connected\nexists /e NOT_FOUND\nsession is closed\nclosed\n");
}

/* ---- Watches. */

static void submit_watches(struct fixture *f)
{
    create(f, "/w", "");
    get(f, "/w", watcher_new(f, "data"));
    children(f, "/w", watcher_new(f, "children"));
    exists(f, "/w/x", watcher_new(f, "x"));
    set(f, "/w", "1", -1);
    set(f, "/w", "2", -1);
    create(f, "/w/x", "");
    create(f, "/w/y", "");
    get(f, "/w", NULL);
}

static void check_watches(struct fixture *f)
{
    assert_log(f, "session is connected\ncreate /w NONE\nget /w NONE\nchildren /w NONE\n"
                  "exists /w/x NOT_FOUND\nevent data changed\nset /w NONE\nset /w NONE\n"
                  "event x created\nevent children children\ncreate /w/x NONE\n"
                  "create /w/y NONE\nget /w NONE\n");
}

static void a_watch_fires_once_and_before_any_later_result(void **state)
{
    RUN(*state, submit_watches, check_watches);
}

static void submit_deletes(struct fixture *f)
{
    create(f, "/w", "");
    create(f, "/w/x", "");
    children(f, "/w", watcher_new(f, "children of w"));
    children(f, "/w/x", watcher_new(f, "children of x"));
    exists(f, "/w/x", watcher_new(f, "x"));
    delete (f, "/w/x", -1);
    get(f, "/w/x", watcher_new(f, "never armed"));
    create(f, "/w/x", "");
}

static void check_deletes(struct fixture *f)
{
    assert_log(f, "session is connected\ncreate /w NONE\ncreate /w/x NONE\nchildren /w NONE\n"
                  "children /w/x NONE\nexists /w/x NONE\nevent x deleted\n"
                  "event children of x deleted\nevent children of w children\n"
                  "delete /w/x NONE\nget /w/x NOT_FOUND\ncreate /w/x NONE\n");
}

static void a_deleted_node_tells_all_its_watches_and_its_parents(void **state)
{
    RUN(*state, submit_deletes, check_deletes);
}

static void submit_unwatch(struct fixture *f)
{
    struct keeper_watch *idle = watcher_new(f, "idle");
    struct keeper_watch *data = watcher_new(f, "data");
    struct keeper_watch *absent = watcher_new(f, "absent");
    struct keeper_watch *fired = watcher_new(f, "fired but not told");

    create(f, "/u", "");
    get(f, "/u", data);
    exists(f, "/v", absent);
    children(f, "/u", fired);
    create(f, "/u/x", "");
    keeper_unwatch(f->keeper, idle);
    keeper_unwatch(f->keeper, data);
    keeper_unwatch(f->keeper, absent);
    keeper_unwatch(f->keeper, fired);
    keeper_unwatch(f->keeper, fired);
    set(f, "/u", "", -1);
    create(f, "/v", "");
    get(f, "/u", data); /* it may be armed again */
    set(f, "/u", "", -1);
}

static void check_unwatch(struct fixture *f)
{
    assert_log(f, "session is connected\ncreate /u NONE\nget /u NONE\nexists /v NOT_FOUND\n"
                  "children /u NONE\ncreate /u/x NONE\nset /u NONE\ncreate /v NONE\nget /u NONE\n"
                  "event data changed\nset /u NONE\n");
}

static void nothing_is_told_after_unwatch(void **state)
{
    RUN(*state, submit_unwatch, check_unwatch);
}

/* ---- Ends. */

static void submit_and_close(struct fixture *f)
{
    create(f, "/c", "");
    f->p[0] = get(f, "/c", watcher_new(f, "c"));
    set(f, "/c", "", -1);
    f->p[1] = sequential(f, "/n_", false);
    exists(f, "/d", watcher_new(f, "d"));
    close_all(f);
    f->pending = INT16_MAX; /* no next phase */
}

static void close_cancels_what_was_not_told(void **state)
{
    struct fixture *f = *state;

    RUN(f, submit_and_close);
    char *at = strstr(f->log, "create /c");

    assert_non_null(at); /* before it perhaps "connected": the next turn of the loop tells it */
    assert_string_equal(at, "create /c CANCELLED\nget /c CANCELLED\nset /c CANCELLED\n"
                            "sequential /n_ CANCELLED\nexists /d CANCELLED\n"
                            "session is closed\nclosed\n");
    assert_int_equal(f->p[0]->call.data.n, -1);
}

static void submit_many(struct fixture *f)
{
    create(f, "/many", "");
    for (int i = 0; i < 200; i++) {
        set(f, "/many", "x", i);
        get(f, "/many", NULL);
    }
    f->p[0] = get(f, "/many", NULL);
}

static void check_many(struct fixture *f)
{
    for (int i = 0; i < f->probe_count; i++)
        assert_int_equal(f->probes[i].call.err, ERR_NONE);
    for (int i = 0; i < 200; i++)
        assert_int_equal(f->probes[2 + 2 * i].call.stat.version, i + 1);
    f->log_size = 0;
}

static void many_calls_at_once_keep_their_order(void **state)
{
    RUN(*state, submit_many, check_many);
}

/* ---- Several sessions. */

static void open_other(struct fixture *f)
{
    f->tellers[1] = (struct teller){.name = "other", .f = f};
    f->other = f->impl->open(f, &f->tellers[1]);
    assert_true(keeper_session_id(f->other) != keeper_session_id(f->keeper));
    ephemeral_on(f, f->other, "/e");
    exists(f, "/e", watcher_new(f, "e"));
}

static void end_other(struct fixture *f)
{
    assert_log(f, "session is connected\nother is connected\nephemeral /e NONE\nexists /e NONE\n");
    f->impl->expire(f, f->other);
    get(f, "/e", NULL);
    ephemeral_on(f, f->other, "/late");
}

static void check_other(struct fixture *f)
{
    assert_log(f,
               "event e deleted\nget /e NOT_FOUND\nother is expired\nephemeral /late CANCELLED\n");
}

static void expiry_takes_ephemeral_nodes_and_tells_others(void **state)
{
    struct fixture *f = *state;

    RUN(f, open_other, end_other, check_other);
    assert_log(f, "other is closed\nsession is closed\nclosed\n");
}

/* ---- Lost connections of the keeper in memory; ZooKeeper's are in zookeeper_test.c. */

static void submit_and_lose_answers(struct fixture *f)
{
    create(f, "/a", "");
    get(f, "/a", watcher_new(f, "a"));
    f->p[0] = sequential(f, "/a/n_", false);
    keeper_memory_lose_answers(f->keeper);
    f->p[1] = get(f, "/a", NULL);
    set(f, "/a", "", 0);
}

static void check_lost_answers(struct fixture *f)
{
    assert_log(f, "session is connected\ncreate /a UNKNOWN\nget /a NONE\nsequential /a/n_ UNKNOWN\n"
                  "session is connecting\nsession is connected\nget /a NONE\n"
                  "event a changed\nset /a NONE\n");
    assert_int_equal(f->p[1]->call.stat.children_count, 1); /* it has happened */
}

static void submit_and_lose_a_request(struct fixture *f)
{
    keeper_memory_lose_request(f->keeper);
    delete (f, "/a/n_0000000000", -1);
    f->p[1] = get(f, "/a", NULL);
}

static void check_lost_request(struct fixture *f)
{
    assert_log(f, "delete /a/n_0000000000 UNKNOWN\nsession is connecting\n"
                  "session is connected\nget /a NONE\n");
    assert_int_equal(f->p[1]->call.stat.children_count, 1);
}

static void what_is_lost_with_the_connection_is_unknown(void **state)
{
    RUN(*state, submit_and_lose_answers, check_lost_answers, submit_and_lose_a_request,
        check_lost_request);
}

static void cut_off_and_expire(struct fixture *f)
{
    f->log_size = 0;
    keeper_memory_cut_off(f->other);
    ephemeral_on(f, f->other, "/late");
    get(f, "/late", NULL);
    f->impl->expire(f, f->other);
    get(f, "/e", NULL);
    keeper_memory_reach(f->other);
}

static void check_cut_off(struct fixture *f)
{
    assert_log(f, "get /late NOT_FOUND\nevent e deleted\nget /e NOT_FOUND\n"
                  "ephemeral /late UNKNOWN\nother is expired\n");
}

static void who_is_cut_off_changes_nothing_and_hears_of_its_end_later(void **state)
{
    RUN(*state, open_other, cut_off_and_expire, check_cut_off);
}

/* ---- What outlives the process. */

static void submit_first_life(struct fixture *f)
{
    struct keeper_op null = op(KEEPER_CREATE, "/kept/null", "");

    null.data = bytes_null();
    create(f, "/kept", "data");
    set(f, "/kept", "newer", -1);
    create(f, "/kept/gone", "");
    delete (f, "/kept/gone", -1);
    multi(f, &null, 1);
    create(f, "/kept/empty", "");
    f->p[0] = sequential(f, "/kept/n_", true);
    f->p[1] = get(f, "/kept", NULL);
}

static void check_first_life(struct fixture *f)
{
    assert_string_equal(f->p[0]->ops[0].created_path, "/kept/n_0000000003");
    f->zxid = f->p[0]->ops[0].stat.created_zxid;
    f->number = f->p[1]->call.stat.children_version;
    f->log_size = 0;
}

static void submit_second_life(struct fixture *f)
{
    f->p[0] = get(f, "/kept", NULL);
    f->p[1] = children(f, "/kept", NULL);
    f->p[2] = get(f, "/kept/null", NULL);
    f->p[3] = get(f, "/kept/empty", NULL);
    f->p[4] = sequential(f, "/kept/n_", false);
}

static void check_second_life(struct fixture *f)
{
    assert_log(f, "session is connected\nget /kept NONE\nchildren /kept NONE\n"
                  "get /kept/null NONE\nget /kept/empty NONE\nsequential /kept/n_ NONE\n");
    assert_data(f->p[0], "newer");
    assert_int_equal(f->p[0]->call.stat.version, 1);
    assert_int_equal(f->p[1]->call.children_count, 2);
    assert_string_equal(f->p[1]->call.children[0], "empty");
    assert_true(f->p[1]->call.stat.children_version > f->number);
    assert_int_equal(f->p[2]->call.data.n, -1);
    assert_int_equal(f->p[3]->call.data.n, 0);
    assert_string_equal(f->p[4]->ops[0].created_path, "/kept/n_0000000004");
    assert_true(f->p[4]->ops[0].stat.created_zxid > f->zxid);
}

static void everything_but_ephemeral_nodes_outlives_the_process(void **state)
{
    RUN(*state, submit_first_life, check_first_life);
    ((struct fixture *)*state)->log_size = 0;
    RUN(*state, submit_second_life, check_second_life);
}

static void stop_at_once(struct fixture *f)
{
    submit_first_life(f);
    sequential(f, "/n_", false);
    exists(f, "/x", watcher_new(f, "x"));
    f->pending = INT16_MAX;
    io_stop(f->io);
}

static void submit_look_for_kept(struct fixture *f)
{
    f->p[0] = get(f, "/kept", NULL);
}

static void check_kept(struct fixture *f)
{
    assert_data(f->p[0], "newer");
}

static void a_stop_without_close_still_commits_what_was_submitted(void **state)
{
    RUN(*state, stop_at_once);
    RUN(*state, submit_look_for_kept, check_kept);
}

/* ---- Implementations. */

static struct keeper *memory_open(struct fixture *f, void *ctx)
{
    if (!f->memory)
        f->memory = keeper_memory_new();
    return keeper_memory_open(f->memory, f->loop, &events, ctx);
}

static void memory_forget(struct fixture *f)
{
    f->keeper = f->other = NULL;
}

static void memory_end(struct fixture *f)
{
    keeper_memory_free(f->memory);
}

static void memory_expire(struct fixture *f, struct keeper *k)
{
    (void)f;
    keeper_memory_expire(k);
}

static const struct implementation memory = {.name = "memory",
                                             .open = memory_open,
                                             .expire = memory_expire,
                                             .forget = memory_forget,
                                             .end = memory_end};

static struct keeper *sqlite_open(struct fixture *f, void *ctx)
{
    char path[96], *message;
    struct keeper *k;

    if (!f->dir[0]) {
        snprintf(f->dir, sizeof(f->dir), "/tmp/keeper_test.XXXXXX");
        assert_non_null(mkdtemp(f->dir));
    }
    snprintf(path, sizeof(path), "%s/keeper.db", f->dir);
    enum err err = keeper_sqlite_open(f->io, path, f->loop, &events, ctx, &k, &message);

    if (err)
        fail_msg("%s", message);
    return k;
}

static void sqlite_forget(struct fixture *f)
{
    keeper_free(f->keeper);
    f->keeper = NULL;
}

/* A clean end leaves one file. */
static void sqlite_end(struct fixture *f)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/keeper.db", f->dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(f->dir), 0);
}

static const struct implementation sqlite = {
    .name = "sqlite", .open = sqlite_open, .forget = sqlite_forget, .end = sqlite_end};

/* A session that is new each time, in the same chroot for all of one test. */
static struct keeper *zookeeper_open(struct fixture *f, void *ctx)
{
    struct keeper_zookeeper_args args = {
        .connect = f->place, .session_timeout_ms = 10000, .in_flight_max = 10};
    char *message;
    struct keeper *k;
    uint32_t random;

    if (!f->place[0]) {
        io_random(f->io, &random, sizeof(random));
        snprintf(f->place, sizeof(f->place), "%s/suite-%08x/root", zookeeper_servers, random);
    }
    enum err err = keeper_zookeeper_open(f->io, &args, f->loop, &events, ctx, &k, &message);

    if (err)
        fail_msg("%s", message);
    return k;
}

static void zookeeper_forget(struct fixture *f)
{
    if (!f->is_closed)
        keeper_free(f->keeper);
    f->keeper = f->other = NULL;
}

static void zookeeper_end(struct fixture *f)
{
    (void)f; /* the server goes, with all that is in it */
}

static const struct implementation zookeeper = {
    .name = "zookeeper", .open = zookeeper_open, .forget = zookeeper_forget, .end = zookeeper_end};

static int begin(const struct implementation *impl, void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->impl = impl;
    *state = f;
    return 0;
}

static int begin_memory(void **state)
{
    return begin(&memory, state);
}

static int begin_sqlite(void **state)
{
    return begin(&sqlite, state);
}

static int begin_zookeeper(void **state)
{
    return begin(&zookeeper, state);
}

static int end(void **state)
{
    struct fixture *f = *state;

    f->impl->end(f);
    free(f);
    return 0;
}

#define TEST(impl, fn)                                                                             \
    {                                                                                              \
#impl ": " #fn, fn, begin_##impl, end, NULL                                                \
    }
#define TESTS_OF_ALL(impl)                                                                         \
    TEST(impl, a_read_sees_the_writes_before_it_and_none_behind_it),                               \
        TEST(impl, null_data_is_not_empty_data),                                                   \
        TEST(impl, children_are_sorted_by_bytes_and_counted),                                      \
        TEST(impl, what_cannot_be_done_says_why), TEST(impl, a_bad_path_is_refused_everywhere),    \
        TEST(impl, data_may_be_a_mebibyte_and_no_more),                                            \
        TEST(impl, a_multi_sees_its_own_operations_and_has_one_zxid),                              \
        TEST(impl, a_multi_that_fails_changes_nothing_and_names_the_operation),                    \
        TEST(impl, a_multi_may_delete_and_create_the_same_node),                                   \
        TEST(impl, sequence_numbers_belong_to_the_parent_and_are_never_used_again),                \
        TEST(impl, an_ephemeral_node_goes_with_its_session),                                       \
        TEST(impl, a_watch_fires_once_and_before_any_later_result),                                \
        TEST(impl, a_deleted_node_tells_all_its_watches_and_its_parents),                          \
        TEST(impl, nothing_is_told_after_unwatch), TEST(impl, close_cancels_what_was_not_told),    \
        TEST(impl, many_calls_at_once_keep_their_order)

int main(int argc, char **argv)
{
    const struct CMUnitTest of_zookeeper[] = {
        TESTS_OF_ALL(zookeeper),
        TEST(zookeeper, everything_but_ephemeral_nodes_outlives_the_process),
    };
    const struct CMUnitTest tests[] = {
        TESTS_OF_ALL(memory),
        TEST(memory, expiry_takes_ephemeral_nodes_and_tells_others),
        TEST(memory, what_is_lost_with_the_connection_is_unknown),
        TEST(memory, who_is_cut_off_changes_nothing_and_hears_of_its_end_later),
        TESTS_OF_ALL(sqlite),
        TEST(sqlite, everything_but_ephemeral_nodes_outlives_the_process),
        TEST(sqlite, a_stop_without_close_still_commits_what_was_submitted),
    };

    if (argc == 1)
        return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
    zookeeper_servers = argv[1];
    return cmocka_run_group_tests_name("keeper on ZooKeeper", of_zookeeper, NULL, NULL);
}
