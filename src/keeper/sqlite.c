/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree in an SQLite file, for one broker. The whole tree is in memory; the file has one row for
 * each persistent node, read once at open. A multi is checked and applied in memory on the loop,
 * and the rows that it changed go to the lane as a commit. The lane writes all the commits that
 * are waiting in one transaction: that is group commit, without a timer. The session tells a
 * result, and everything behind it, only when its commit is durable.
 *
 * Ephemeral nodes live as long as the process, so they are never stored; what their parent
 * remembers of them (how many children it ever had) is.
 *
 * The file is in WAL mode: one sync a commit, where a rollback journal needs three or four. A new
 * file is built under another name without syncs, then synced once and renamed, so a crash leaves
 * none or a whole one, and the first start is quick.
 *
 * The lane checkpoints by itself, behind the results, because SQLite's automatic checkpoint hides
 * its errors. The first error of any kind ends the keeper. An error at COMMIT may come after the
 * bytes were written: those multis end with ERR_UNKNOWN. Nothing is tried again; the next process
 * writes what it finds in the log once more before it believes it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/trace.h"
#include "keeper/session_int.h"
#include "keeper/sqlite_int.h"

#define FORMAT_VERSION 1
#define APPLICATION_ID 0x5374726c /* "Strl": what the file is, for file(1) and for us */
#define CHECKPOINT_FRAMES 256     /* 1 MiB of log */
#define SETTLE_BYTES 65536

enum statement {
    STATEMENT_BEGIN = 0,
    STATEMENT_COMMIT = 1,
    STATEMENT_PUT = 2,
    STATEMENT_DELETE = 3,
    STATEMENT_ZXID = 4,
    STATEMENTS,
};

static const char *const statement_sql[STATEMENTS] = {
    [STATEMENT_BEGIN] = "BEGIN",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_PUT] = "INSERT OR REPLACE INTO node VALUES(?,?,?,?,?,?)",
    [STATEMENT_DELETE] = "DELETE FROM node WHERE path=?",
    [STATEMENT_ZXID] = "UPDATE tree SET zxid=?",
};

static const char setup_sql[] = "PRAGMA locking_mode=EXCLUSIVE;"
                                "PRAGMA temp_store=MEMORY;"
                                "PRAGMA synchronous=FULL;";

/* Nothing is synced here: the finished file is, once. */
static const char create_sql[] =
    "PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA temp_store=MEMORY;"
    "PRAGMA synchronous=OFF;"
    "PRAGMA journal_mode=WAL;"
    "BEGIN;"
    "CREATE TABLE tree(zxid INTEGER NOT NULL);"
    "CREATE TABLE node(path TEXT PRIMARY KEY NOT NULL, data BLOB, child_creates INTEGER NOT NULL,"
    " version INTEGER NOT NULL, created_zxid INTEGER NOT NULL, modified_zxid INTEGER NOT NULL"
    ") WITHOUT ROWID;"
    "INSERT INTO tree VALUES(0);";

struct row {
    char *path;             /* owned */
    bool is_gone;           /* the record says nothing */
    struct tree_record rec; /* owns its data */
};

/* Made by the loop, read by the lane, freed by the loop. */
struct commit {
    struct io_msg msg;
    struct list node; /* in sqlite_keeper.commits */
    struct sqlite_keeper *keeper;
    uint64_t number; /* of session.submitted */
    int64_t zxid;
    enum err err; /* for this one and those before it that the loop still has */
    int row_count;
    struct row rows[];
};

struct sqlite_keeper {
    struct session session;
    struct tree tree;
    struct list commits; /* submitted and not known to be durable, in order */
    struct io *io;
    struct io_lane *lane;
    /* The lane's, from its beginning to its end. */
    struct sqlite_vfs *vfs;
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    int wal_frames;
    bool has_failed;
};

static struct sqlite_keeper *sqlite_keeper_of(struct keeper *k)
{
    return CONTAINER_OF(k, struct sqlite_keeper, session.keeper);
}

/* ---- The lane: commits. */

static enum err err_of(const struct sqlite_keeper *k, int code)
{
    enum err err = sqlite_vfs_err(k->vfs);

    code &= 0xff; /* without what SQLite adds to say more */
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE)
        return ERR_NONE;
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return ERR_CORRUPT;
    return err ? err : ERR_IO;
}

/* Runs a statement that has its values, and takes them out again. */
static enum err run(struct sqlite_keeper *k, enum statement which)
{
    sqlite3_stmt *statement = k->statements[which];
    int code = sqlite3_step(statement);

    if (code != SQLITE_DONE)
        trace_error("keeper.sqlite_failed", "statement=\"%s\" code=%d error=\"%s\"",
                    statement_sql[which], sqlite3_extended_errcode(k->db), sqlite3_errmsg(k->db));
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return err_of(k, code);
}

/* Binding fails only for lack of memory or by our own mistake; the statement then fails too. */
static enum err put_row(struct sqlite_keeper *k, const struct row *row)
{
    sqlite3_stmt *s = k->statements[row->is_gone ? STATEMENT_DELETE : STATEMENT_PUT];

    sqlite3_bind_text(s, 1, row->path, -1, SQLITE_STATIC);
    if (row->is_gone)
        return run(k, STATEMENT_DELETE);
    if (row->rec.data.n == 0)
        sqlite3_bind_zeroblob(s, 2, 0); /* a null pointer would be NULL */
    else if (row->rec.data.n > 0)
        sqlite3_bind_blob(s, 2, row->rec.data.p, row->rec.data.n, SQLITE_STATIC);
    sqlite3_bind_int(s, 3, row->rec.child_creates);
    sqlite3_bind_int(s, 4, row->rec.version);
    sqlite3_bind_int64(s, 5, row->rec.created_zxid);
    sqlite3_bind_int64(s, 6, row->rec.modified_zxid);
    return run(k, STATEMENT_PUT);
}

static enum err put_commit(struct sqlite_keeper *k, const struct commit *c)
{
    for (int i = 0; i < c->row_count; i++) {
        enum err err = put_row(k, &c->rows[i]);

        if (err)
            return err;
    }
    sqlite3_bind_int64(k->statements[STATEMENT_ZXID], 1, c->zxid);
    return run(k, STATEMENT_ZXID);
}

static struct commit *commit_of(struct io_msg *msg)
{
    return CONTAINER_OF(msg, struct commit, msg);
}

/* Writes the chain as one transaction; *last is its last commit. */
static enum err put_chain(struct sqlite_keeper *k, struct io_msg *chain, struct commit **last)
{
    enum err err = k->has_failed ? ERR_IO : run(k, STATEMENT_BEGIN);
    struct io_msg *msg;

    while ((msg = io_msg_take(&chain))) {
        *last = commit_of(msg);
        if (!err)
            err = put_commit(k, *last);
    }
    if (err)
        return ERR_IO;
    return run(k, STATEMENT_COMMIT) ? ERR_UNKNOWN : ERR_NONE;
}

static void checkpoint(struct sqlite_keeper *k)
{
    if (k->has_failed || k->wal_frames < CHECKPOINT_FRAMES)
        return;
    int code = sqlite3_wal_checkpoint_v2(k->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    k->wal_frames = 0;
    if (code == SQLITE_OK)
        return;
    k->has_failed = true;
    trace_error("keeper.checkpoint_failed", "code=%d error=\"%s\"", sqlite3_extended_errcode(k->db),
                sqlite3_errmsg(k->db));
}

/* Runs on the lane. */
static void lane_run(void *ctx, struct io_msg *chain)
{
    struct sqlite_keeper *k = ctx;
    struct commit *last = NULL;
    enum err err = put_chain(k, chain, &last);

    assert(last);
    k->has_failed |= err != ERR_NONE;
    last->err = err;
    io_post(k->session.keeper.loop, &last->msg);
    checkpoint(k);
}

static int note_frames(void *ctx, sqlite3 *db, const char *name, int frames)
{
    struct sqlite_keeper *k = ctx;

    (void)db;
    (void)name;
    k->wal_frames = frames;
    return SQLITE_OK;
}

/* ---- The loop. */

static void commit_free(struct commit *c)
{
    for (int i = 0; i < c->row_count; i++) {
        free(c->rows[i].path);
        tree_data_free(c->rows[i].rec.data);
    }
    free(c);
}

static void commits_free(struct sqlite_keeper *k, uint64_t last)
{
    struct commit *c;

    while ((c = LIST_FIRST(&k->commits, struct commit, node)) && c->number <= last) {
        list_remove(&c->node);
        commit_free(c);
    }
}

static void commit_done(struct io_msg *msg)
{
    struct commit *c = commit_of(msg);
    struct sqlite_keeper *k = c->keeper;
    uint64_t number = c->number;
    enum err err = c->err;

    commits_free(k, number);
    if (number <= k->session.durable) /* it has failed before */
        return;
    if (err)
        session_fail(&k->session, number, err);
    else
        session_durable(&k->session, number);
}

static void add_row(struct commit *c, const struct tree_node *node, char *path)
{
    struct row *row = &c->rows[c->row_count++];

    row->path = path;
    row->is_gone = !node || node->owner != 0;
    row->rec = row->is_gone ? (struct tree_record){.data = bytes_null()} : node->rec;
    row->rec.data = tree_data_copy(row->rec.data);
}

static char *parent_path(const char *path)
{
    size_t n = (size_t)(strrchr(path, '/') - path);

    return n ? xstrndup(path, n) : xstrdup("/");
}

/* What the operations have left behind of their nodes; of parents only the counter is stored. */
static struct commit *commit_new(struct sqlite_keeper *k, const struct keeper_op *ops, int op_count)
{
    struct commit *c = xcalloc(1, sizeof(*c) + 2 * (size_t)op_count * sizeof(struct row));

    c->msg.fn = commit_done;
    c->keeper = k;
    c->zxid = k->tree.zxid;
    for (int i = 0; i < op_count; i++) {
        const char *path = ops[i].created_path ? ops[i].created_path : ops[i].path;

        if (ops[i].kind == KEEPER_CHECK)
            continue;
        add_row(c, tree_find(&k->tree, path), xstrdup(path));
        if (ops[i].kind == KEEPER_CREATE)
            add_row(c, tree_find_parent(&k->tree, path), parent_path(path));
    }
    return c;
}

static void sqlite_multi(struct keeper *keeper, struct keeper_op *ops, int op_count,
                         struct keeper_call *call)
{
    struct sqlite_keeper *k = sqlite_keeper_of(keeper);
    struct list fired;
    bool has_changed = session_multi(&k->session, ops, op_count, call, &fired);

    if (has_changed) {
        struct commit *c = commit_new(k, ops, op_count);

        c->number = ++k->session.submitted;
        list_push_back(&k->commits, &c->node);
        io_lane_submit(k->lane, &c->msg);
    }
    session_multi_end(&k->session, call, has_changed, &fired);
}

static void sqlite_close(struct keeper *k, void (*done)(void *ctx), void *ctx)
{
    session_close(&sqlite_keeper_of(k)->session, done, ctx);
}

/* The memory goes with keeper_free. */
static void sqlite_gone(struct session *s)
{
    (void)s;
}

static void sqlite_free(struct sqlite_keeper *k)
{
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(k->statements[i]);
    int code = sqlite3_close(k->db); /* a checkpoint that fails leaves the log: nothing is lost */

    assert(code != SQLITE_BUSY);
    sqlite_vfs_free(k->vfs);
    tree_fini(&k->tree);
    free(k);
}

static void sqlite_release(struct keeper *keeper)
{
    struct sqlite_keeper *k = sqlite_keeper_of(keeper);

    io_lane_free(k->lane);
    session_fini(&k->session);
    commits_free(k, UINT64_MAX);
    sqlite_free(k);
}

static const struct keeper_vtable sqlite_vtable = {
    .read = session_read,
    .multi = sqlite_multi,
    .unwatch = session_unwatch,
    .close = sqlite_close,
    .release = sqlite_release,
};

/* ---- Opening. */

static enum err open_db(struct sqlite_keeper *k, const char *path, int flags)
{
    int code = sqlite3_open_v2(path, &k->db, flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                               sqlite_vfs_name(k->vfs));

    return err_of(k, code);
}

static enum err exec(struct sqlite_keeper *k, const char *sql)
{
    return err_of(k, sqlite3_exec(k->db, sql, NULL, NULL, NULL));
}

static enum err publish(struct sqlite_keeper *k, const char *from, const char *to)
{
    struct io_file *f;
    enum err err = io_file_open(k->io, from, IO_OPEN_WRITE, &f);

    if (err)
        return err;
    err = io_file_sync(f);
    io_file_unref(f);
    if (!err)
        err = io_path_rename(k->io, from, to);
    if (err)
        return err;
    char *dir = parent_path(to);

    err = io_dir_sync(k->io, dir);
    free(dir);
    return err;
}

static enum err remove_with_suffix(struct io *io, const char *path, const char *suffix)
{
    char *name = xasprintf("%s%s", path, suffix);
    enum err err = io_path_unlink(io, name);

    free(name);
    return err == ERR_NOT_FOUND ? ERR_NONE : err;
}

/* A log that was left behind belongs to another file: SQLite would believe it. */
static enum err remove_leftovers(struct sqlite_keeper *k, const char *path)
{
    static const char *const suffixes[] = {"-wal", "-journal", ".new", ".new-wal", ".new-journal"};
    enum err err = ERR_NONE;

    for (size_t i = 0; i < ARRAY_LEN(suffixes) && !err; i++)
        err = remove_with_suffix(k->io, path, suffixes[i]);
    return err;
}

static enum err fill_new(struct sqlite_keeper *k)
{
    char *sql = xasprintf("%sPRAGMA application_id=%d;PRAGMA user_version=%d;COMMIT;", create_sql,
                          APPLICATION_ID, FORMAT_VERSION);
    enum err err = exec(k, sql);

    free(sql);
    return err;
}

/* Closing moves the content from the log to the file, and is silent about failures. */
static enum err close_new(struct sqlite_keeper *k)
{
    int code = sqlite3_close(k->db);

    assert(code == SQLITE_OK);
    k->db = NULL;
    return sqlite_vfs_err(k->vfs);
}

static enum err create(struct sqlite_keeper *k, const char *path)
{
    enum err err = remove_leftovers(k, path);

    if (err)
        return err;
    char *name = xasprintf("%s.new", path);

    err = open_db(k, name, SQLITE_OPEN_CREATE);
    if (!err)
        err = fill_new(k);
    if (!err)
        err = close_new(k);
    if (!err)
        err = publish(k, name, path);
    free(name);
    return err;
}

static enum err rewrite(struct io_file *f)
{
    uint8_t *bytes = xmalloc(SETTLE_BYTES);
    size_t got = SETTLE_BYTES;
    enum err err = ERR_NONE;

    for (int64_t pos = 0; !err && got == SETTLE_BYTES; pos += SETTLE_BYTES) {
        err = io_file_read(f, bytes, SETTLE_BYTES, pos, &got);
        struct iovec iov = {.iov_base = bytes, .iov_len = got};

        if (!err && got > 0)
            err = io_file_write(f, &iov, 1, pos);
    }
    free(bytes);
    return err ? err : io_file_sync(f);
}

/*
 * If the last process died before a sync, or behind a failed one, the page cache shows a log that
 * is not on the device, and of the second no later sync would tell. What is to be read, and told
 * to others, is written once more first.
 */
static enum err settle_log(struct sqlite_keeper *k, const char *path)
{
    char *name = xasprintf("%s-wal", path);
    struct io_file *f;
    enum err err = io_file_open(k->io, name, IO_OPEN_WRITE, &f);

    free(name);
    if (err)
        return err == ERR_NOT_FOUND ? ERR_NONE : err;
    err = rewrite(f);
    io_file_unref(f);
    return err;
}

/* Calls `each` with every row. */
static enum err query(struct sqlite_keeper *k, const char *sql,
                      enum err (*each)(struct sqlite_keeper *k, sqlite3_stmt *row))
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(k->db, sql, -1, &statement, NULL);
    enum err err = ERR_NONE;

    while (code == SQLITE_OK || (code == SQLITE_ROW && !err)) {
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
            err = each(k, statement);
    }
    sqlite3_finalize(statement);
    return err ? err : err_of(k, code);
}

static enum err check_application(struct sqlite_keeper *k, sqlite3_stmt *row)
{
    (void)k;
    return sqlite3_column_int(row, 0) == APPLICATION_ID ? ERR_NONE : ERR_CORRUPT;
}

static enum err check_version(struct sqlite_keeper *k, sqlite3_stmt *row)
{
    (void)k;
    return sqlite3_column_int(row, 0) == FORMAT_VERSION ? ERR_NONE : ERR_UNSUPPORTED;
}

static enum err check_mode(struct sqlite_keeper *k, sqlite3_stmt *row)
{
    (void)k;
    return str_eq_c(str_of((const char *)sqlite3_column_text(row, 0)), "wal") ? ERR_NONE
                                                                              : ERR_CORRUPT;
}

static enum err load_zxid(struct sqlite_keeper *k, sqlite3_stmt *row)
{
    k->tree.zxid = MAX(k->tree.zxid, sqlite3_column_int64(row, 0));
    return ERR_NONE;
}

static enum err load_node(struct sqlite_keeper *k, sqlite3_stmt *row)
{
    const char *path = (const char *)sqlite3_column_text(row, 0);
    bool is_null = sqlite3_column_type(row, 1) == SQLITE_NULL;
    struct tree_record rec = {
        .data = {.p = sqlite3_column_blob(row, 1),
                 .n = is_null ? -1 : sqlite3_column_bytes(row, 1)},
        .child_creates = sqlite3_column_int(row, 2),
        .version = sqlite3_column_int(row, 3),
        .created_zxid = sqlite3_column_int64(row, 4),
        .modified_zxid = sqlite3_column_int64(row, 5),
    };

    return path ? tree_load(&k->tree, path, &rec) : ERR_CORRUPT;
}

static enum err load(struct sqlite_keeper *k)
{
    enum err err = exec(k, setup_sql);

    if (!err)
        err = query(k, "PRAGMA application_id", check_application);
    if (!err)
        err = query(k, "PRAGMA user_version", check_version);
    if (!err)
        err = query(k, "PRAGMA journal_mode=WAL", check_mode);
    if (!err)
        err = query(k, "SELECT zxid FROM tree", load_zxid);
    if (!err) /* By path: parents come before their children. */
        err = query(k, "SELECT * FROM node ORDER BY path", load_node);
    return err;
}

static enum err prepare(struct sqlite_keeper *k)
{
    int code = SQLITE_OK;

    for (int i = 0; i < STATEMENTS && code == SQLITE_OK; i++)
        code = sqlite3_prepare_v3(k->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                  &k->statements[i], NULL);
    sqlite3_wal_hook(k->db, note_frames, k); /* in place of the automatic checkpoint */
    return err_of(k, code);
}

static enum err open_all(struct sqlite_keeper *k, const char *path)
{
    struct io_stat st;
    enum err err = io_path_stat(k->io, path, &st);

    if (err == ERR_NOT_FOUND)
        err = create(k, path);
    if (!err)
        err = settle_log(k, path);
    if (!err)
        err = open_db(k, path, 0);
    if (!err)
        err = load(k);
    if (!err)
        err = prepare(k);
    return err;
}

static int64_t random_session_id(struct io *io)
{
    uint64_t id;

    io_random(io, &id, sizeof(id));
    return (int64_t)(id >> 1 | 1);
}

static struct sqlite_keeper *sqlite_new(struct io *io)
{
    struct sqlite_keeper *k = xcalloc(1, sizeof(*k));

    k->io = io;
    k->vfs = sqlite_vfs_new(io);
    list_init(&k->commits);
    tree_init(&k->tree);
    session_init(&k->session, &sqlite_vtable, &k->tree, random_session_id(io));
    k->session.gone = sqlite_gone;
    return k;
}

enum err keeper_sqlite_open(struct io *io, const char *path, struct io_loop *loop,
                            const struct keeper_events *events, void *ctx, struct keeper **out,
                            char **message)
{
    struct sqlite_keeper *k = sqlite_new(io);
    enum err err = open_all(k, path);

    *out = NULL;
    *message = NULL;
    if (err) {
        bool has_reason = k->db && sqlite3_errcode(k->db) != SQLITE_OK;

        *message = xasprintf("%s: %s%s%s", path, err_text(err), has_reason ? ": " : "",
                             has_reason ? sqlite3_errmsg(k->db) : "");
        sqlite_free(k);
        return err;
    }
    k->lane = io_lane_new(io, "keeper", lane_run, k);
    session_begin(&k->session, loop, events, ctx);
    *out = &k->session.keeper;
    return ERR_NONE;
}
