/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit, first stage.
 *
 * Shards submit operations to one lane. The lane takes what has gathered and cuts it into commits:
 * a run of appends, at most JOURNAL_COMMIT_BYTES_MAX, ended by the first operation of another kind,
 * which runs alone. A commit is made in four steps:
 *
 *   1. gather: each append joins the list of its log, or is refused for lack of space. The free
 *      space is asked for once per commit, before the first byte;
 *   2. write: for each log in the order of first appearance all data, neighbours joined into one
 *      pwritev, and then all index entries, so that an index never points past its data;
 *   3. logs of which nobody asked for a sync complete here;
 *   4. the others are synced, one fdatasync each, and complete.
 *
 * Completions travel in one message per loop and step. Because a roll ends a commit, the appends of
 * one log in one commit share their files, and the list of a log needs no table.
 *
 * Invariants: a log's operations complete in the order of submission; an append completes without
 * error only if every append of its log before it did, since the last truncation; once `failed` is
 * set nothing is written.
 */
#include "journal/journal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/planted.h"

/* A test that includes this file may plant a mistake here and look whether it is found. */
#ifndef JOURNAL_ACKS_EARLY
#define JOURNAL_ACKS_EARLY false
#endif

#define RUN_IOV_MAX 64
/* One write takes no more than the batch that passes this. Of a larger write the kernel makes pages
 * of many megabytes, from memory that was not touched lately: that costs three times the CPU. */
#define RUN_BYTES_ENOUGH 1000000
#define MIB ((int64_t)1024 * 1024)
/* Space behind the data is reserved by the quarter of what a file has, from and up to these. */
#define RESERVE_FROM_BYTES MIB
#define RESERVE_BYTES_MAX (64 * MIB)

/* Operations that are complete, by the loop that is to hear of it. */
struct outbox {
    struct io_loop *loop;
    struct journal_op *first;
    struct journal_op *last;
};

struct journal {
    struct io *io;
    char *path;
    struct io_lane *lane;
    atomic_bool failed;
    atomic_bool has_space;
    _Atomic int64_t commits;
    _Atomic int64_t ops;
    _Atomic int64_t bytes;
    _Atomic int64_t syncs;
    struct latency sync_time; /* the lane writes */
    /* The lane's own. */
    int64_t room; /* bytes that the volume had for us when the commit was gathered */
    struct journal_log *dirty_first; /* logs of this commit, in order of first appearance */
    struct journal_log *dirty_last;
    struct outbox *out;
    size_t out_count;
    size_t out_cap;
};

/* Neighbouring writes to one file, not yet carried out. */
struct run {
    struct io_file *file;
    int64_t pos;
    int64_t n;
    int iov_count;
    struct iovec iov[RUN_IOV_MAX];
};

/* ---- Completion ------------------------------------------------------------------------- */

static void deliver(struct io_msg *msg)
{
    struct journal_op *op = CONTAINER_OF(msg, struct journal_op, _msg);

    while (op) {
        struct journal_op *next = op->_next; /* the owner may free op in done */
        op->done(op);
        op = next;
    }
}

static struct outbox *outbox_for(struct journal *j, struct io_loop *loop)
{
    for (size_t i = 0; i < j->out_count; i++) {
        if (j->out[i].loop == loop)
            return &j->out[i];
    }
    if (j->out_count == j->out_cap) {
        j->out_cap = j->out_cap ? 2 * j->out_cap : 4;
        j->out = xreallocarray(j->out, j->out_cap, sizeof(*j->out));
    }
    j->out[j->out_count] = (struct outbox){.loop = loop};
    return &j->out[j->out_count++];
}

static void complete(struct journal *j, struct journal_op *op, enum err err)
{
    struct outbox *o = outbox_for(j, op->loop);

    op->err = err;
    op->_next = NULL;
    if (o->last)
        o->last->_next = op;
    else
        o->first = op;
    o->last = op;
}

static void post_completions(struct journal *j)
{
    for (size_t i = 0; i < j->out_count; i++) {
        struct journal_op *first = j->out[i].first;
        first->_msg.fn = deliver;
        io_post(j->out[i].loop, &first->_msg);
    }
    j->out_count = 0;
}

/* Completes all appends of a log in this commit; those that were refused keep their own error. */
static void complete_log(struct journal *j, struct journal_log *log, enum err err)
{
    struct journal_op *op = log->_first;

    log->_first = log->_last = NULL;
    while (op) {
        struct journal_op *next = op->_next;
        op->more = next != NULL;
        complete(j, op, op->err ? op->err : err);
        op = next;
    }
}

void journal_fail(struct journal *j, enum err err)
{
    if (!atomic_exchange(&j->failed, true))
        trace_error("journal.failed", "dir=%s error=%s", j->path, err_name(err));
}

bool journal_has_failed(const struct journal *j)
{
    return atomic_load(&j->failed);
}

/* ---- Space ------------------------------------------------------------------------------ */

static int64_t reserve_bytes(int64_t total)
{
    return MIN(MAX(total / 50, 256 * MIB), total / 10);
}

/* Bytes that appends may take, or less than none; updates what journal_has_space says. */
static int64_t room_bytes(struct journal *j)
{
    struct io_space space;

    if (io_fs_space(j->io, j->path, &space) != ERR_NONE)
        return INT64_MAX; /* An unknown is no lack: a write that does not fit says so itself. */
    int64_t room = space.available - reserve_bytes(space.total);
    bool has_space = room > 0;
    if (atomic_exchange(&j->has_space, has_space) != has_space)
        trace_warn(has_space ? "journal.space_again" : "journal.space_low", "dir=%s available=%lld",
                   j->path, (long long)space.available);
    return room;
}

bool journal_has_space(const struct journal *j)
{
    return atomic_load_explicit(&j->has_space, memory_order_relaxed);
}

int64_t journal_check_space(struct journal *j)
{
    return room_bytes(j);
}

/* ---- Gather ----------------------------------------------------------------------------- */

static struct journal_op *op_of(struct io_msg *msg)
{
    return CONTAINER_OF(msg, struct journal_op, _msg);
}

static int64_t op_bytes(const struct journal_op *op)
{
    int64_t n = (int64_t)op->data.n;

    for (int i = 0; i < op->side_count; i++)
        n += (int64_t)op->side[i].n;
    return n;
}

static void log_add(struct journal *j, struct journal_log *log, struct journal_op *op)
{
    op->_next = NULL;
    if (log->_last) {
        assert(log->_last->data.file == op->data.file);
        log->_last->_next = op;
        log->_last = op;
        return;
    }
    log->_first = log->_last = op;
    log->_next = NULL;
    if (j->dirty_last)
        j->dirty_last->_next = log;
    else
        j->dirty_first = log;
    j->dirty_last = log;
}

static void look_for_room(struct journal *j)
{
    int64_t room = room_bytes(j);

    j->room = MAX(room, 0);
}

/* Takes the appends of one commit off the chain. What is refused stays in its place in the list of
 * its log, marked with its error, so that completions keep their order. */
static void gather(struct journal *j, struct io_msg **chain)
{
    int64_t bytes = 0;

    j->room = -1;
    while (*chain && op_of(*chain)->kind == JOURNAL_APPEND) {
        struct journal_op *op = op_of(*chain);
        int64_t n = op_bytes(op);
        if (bytes > 0 && bytes + n > JOURNAL_COMMIT_BYTES_MAX)
            return;
        io_msg_take(chain);
        if (j->room < 0)
            look_for_room(j);
        if (n > j->room - bytes) {
            op->log->refusing = true;
            /* Until the next look nobody else need try in vain. */
            atomic_store(&j->has_space, false);
        }
        if (op->log->refusing)
            op->err = ERR_NO_SPACE;
        else
            bytes += n;
        log_add(j, op->log, op);
    }
}

/* ---- Write ------------------------------------------------------------------------------ */

static enum err run_flush(struct journal *j, struct run *r)
{
    enum err err = ERR_NONE;

    if (r->iov_count > 0)
        err = io_file_write(r->file, r->iov, r->iov_count, r->pos);
    if (!err)
        atomic_fetch_add_explicit(&j->bytes, r->n, memory_order_relaxed);
    r->n = 0;
    r->iov_count = 0;
    return err;
}

static enum err run_add(struct journal *j, struct run *r, const struct journal_write *w)
{
    enum err err = ERR_NONE;

    if (r->iov_count == RUN_IOV_MAX || r->n >= RUN_BYTES_ENOUGH || r->file != *w->file ||
        r->pos + r->n != w->pos)
        err = run_flush(j, r);
    if (err)
        return err;
    if (r->iov_count == 0) {
        r->file = *w->file;
        r->pos = w->pos;
    }
    r->iov[r->iov_count++] = (struct iovec){.iov_base = (void *)(uintptr_t)w->p, .iov_len = w->n};
    r->n += (int64_t)w->n;
    return ERR_NONE;
}

/* The end of the data that the log has in this commit. */
static int64_t data_end(const struct journal_log *log)
{
    int64_t end = 0;

    for (const struct journal_op *op = log->_first; op && !op->err; op = op->_next)
        end = op->data.pos + (int64_t)op->data.n;
    return end;
}

/* Blocks that the file system has assigned in one piece cost it a third of the CPU of blocks that
 * each write and each sync have to ask for. No more than a help: what fails here is not missed. */
static void reserve_ahead(struct journal *j, struct journal_log *log)
{
    int64_t end = data_end(log);
    int64_t ahead = MIN(end / 4, RESERVE_BYTES_MAX);
    int64_t from = MAX(log->_reserved, log->_first->data.pos);

    if (end <= log->_reserved || end < RESERVE_FROM_BYTES || ahead > j->room / 16)
        return;
    log->_reserved = end + ahead;
    if (io_file_reserve(*log->_first->data.file, from, log->_reserved - from) != ERR_NONE)
        trace_debug("journal.not_reserved", "dir=%s bytes=%lld", j->path, (long long)ahead);
}

static enum err write_data(struct journal *j, struct journal_log *log)
{
    struct run run = {.file = NULL};

    reserve_ahead(j, log);
    for (struct journal_op *op = log->_first; op && !op->err; op = op->_next) {
        enum err err = run_add(j, &run, &op->data);
        if (err)
            return err;
    }
    return run_flush(j, &run);
}

/* The run that collects for this file: its own, else one that is not in use. */
static struct run *side_run(struct run *runs, const struct io_file *file)
{
    for (int i = 0; i < JOURNAL_SIDE_WRITES_MAX; i++) {
        if (!runs[i].file || runs[i].file == file)
            return &runs[i];
    }
    UNREACHABLE();
}

static enum err write_sides(struct journal *j, struct journal_log *log)
{
    struct run runs[JOURNAL_SIDE_WRITES_MAX] = {{.file = NULL}};
    enum err err = ERR_NONE;

    for (struct journal_op *op = log->_first; op && !op->err; op = op->_next) {
        for (int i = 0; !err && i < op->side_count; i++)
            err = run_add(j, side_run(runs, *op->side[i].file), &op->side[i]);
    }
    for (int i = 0; !err && i < JOURNAL_SIDE_WRITES_MAX; i++)
        err = run_flush(j, &runs[i]);
    return err;
}

static enum err write_log(struct journal *j, struct journal_log *log)
{
    enum err err;

    if (journal_has_failed(j))
        return ERR_FAILED_DIR;
    if (log->_first->err)
        return log->_first->err; /* All were refused. */
    err = write_data(j, log);
    if (!err)
        err = write_sides(j, log);
    if (err == ERR_NO_SPACE) {
        log->refusing = true;
        /* Index entries stay: the owner cuts them with JOURNAL_TRUNCATE. */
        enum err undo_err = io_file_truncate(*log->_first->data.file, log->_first->data.pos);
        if (undo_err)
            err = undo_err;
    }
    if (err && err != ERR_NO_SPACE)
        journal_fail(j, err);
    return err;
}

/* ---- Commit ----------------------------------------------------------------------------- */

static bool wants_sync(const struct journal_log *log)
{
    for (const struct journal_op *op = log->_first; op && !op->err; op = op->_next) {
        if (op->sync)
            return !JOURNAL_ACKS_EARLY && !PLANTED(ACK_BEFORE_SYNC);
    }
    return false;
}

static enum err sync_log(struct journal *j, struct journal_log *log)
{
    int64_t begun_ns = io_mono_ns(j->io);
    enum err err;

    if (journal_has_failed(j))
        return ERR_FAILED_DIR;
    err = io_file_sync(*log->_first->data.file);
    latency_note(&j->sync_time, io_mono_ns(j->io) - begun_ns);
    atomic_fetch_add_explicit(&j->syncs, 1, memory_order_relaxed);
    if (PLANTED(TRUST_FAILED_SYNC))
        err = ERR_NONE;
    if (err)
        journal_fail(j, err);
    return err;
}

static int64_t count_ops(const struct journal *j)
{
    int64_t n = 0;

    for (const struct journal_log *log = j->dirty_first; log; log = log->_next) {
        for (const struct journal_op *op = log->_first; op; op = op->_next)
            n++;
    }
    return n;
}

/* Writes every log; those that ask for no sync are complete, the others stay on the list. */
static void write_step(struct journal *j)
{
    struct journal_log *log = j->dirty_first;

    j->dirty_first = j->dirty_last = NULL;
    while (log) {
        struct journal_log *next = log->_next;
        enum err err = write_log(j, log);
        log->_next = NULL;
        if (err || !wants_sync(log)) {
            complete_log(j, log, err);
        } else {
            if (j->dirty_last)
                j->dirty_last->_next = log;
            else
                j->dirty_first = log;
            j->dirty_last = log;
        }
        log = next;
    }
}

static void commit(struct journal *j)
{
    if (!j->dirty_first)
        return;
    atomic_fetch_add_explicit(&j->commits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&j->ops, count_ops(j), memory_order_relaxed);
    write_step(j);
    post_completions(j);
    while (j->dirty_first) {
        struct journal_log *log = j->dirty_first;
        j->dirty_first = log->_next;
        complete_log(j, log, sync_log(j, log));
    }
    j->dirty_last = NULL;
    post_completions(j);
}

/* Runs an operation that is no append. */
static void run_change(struct journal *j, struct journal_op *op)
{
    enum err err = ERR_NONE;

    if (op->kind == JOURNAL_TRUNCATE)
        op->log->refusing = false;
    if (op->kind == JOURNAL_TRUNCATE || op->kind == JOURNAL_ROLL)
        op->log->_reserved = 0;
    if (journal_has_failed(j))
        err = ERR_FAILED_DIR;
    else if (op->kind == JOURNAL_ROLL && op->log->refusing)
        err = ERR_NO_SPACE;
    else
        err = op->apply(op, j->io);
    if (err == ERR_NO_SPACE && (op->kind == JOURNAL_ROLL || op->kind == JOURNAL_EPOCH))
        op->log->refusing = true;
    else if (err == ERR_NO_SPACE && op->kind == JOURNAL_LOG_START)
        trace_warn("journal.no_space", "dir=%s", j->path);
    else if (err && err != ERR_FAILED_DIR)
        journal_fail(j, err);
    complete(j, op, err);
    post_completions(j);
}

static void run_lane(void *ctx, struct io_msg *chain)
{
    struct journal *j = ctx;

    while (chain) {
        gather(j, &chain);
        commit(j);
        if (chain && op_of(chain)->kind != JOURNAL_APPEND)
            run_change(j, op_of(io_msg_take(&chain)));
    }
}

/* ---- Public ----------------------------------------------------------------------------- */

struct journal *journal_new(struct io *io, const char *dir_path)
{
    struct journal *j = xcalloc(1, sizeof(*j));

    j->io = io;
    j->path = xstrdup(dir_path);
    atomic_init(&j->failed, false);
    atomic_init(&j->has_space, true);
    j->lane = io_lane_new(io, "journal", run_lane, j);
    return j;
}

void journal_free(struct journal *j)
{
    io_lane_free(j->lane);
    free(j->out);
    free(j->path);
    free(j);
}

void journal_submit(struct journal *j, struct journal_op *op)
{
    assert(op->done && op->loop);
    assert((op->kind == JOURNAL_APPEND) == (op->apply == NULL));
    assert(op->side_count >= 0 && op->side_count <= JOURNAL_SIDE_WRITES_MAX);
    op->err = ERR_NONE;
    op->more = false;
    io_lane_submit(j->lane, &op->_msg);
}

void journal_stats_read(const struct journal *j, struct journal_stats *out)
{
    out->commits = atomic_load_explicit(&j->commits, memory_order_relaxed);
    out->ops = atomic_load_explicit(&j->ops, memory_order_relaxed);
    out->bytes = atomic_load_explicit(&j->bytes, memory_order_relaxed);
    out->syncs = atomic_load_explicit(&j->syncs, memory_order_relaxed);
}

void journal_sync_figures(const struct journal *j, struct latency_figures *to)
{
    latency_add_to(&j->sync_time, to);
}
