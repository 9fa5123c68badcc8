/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that the SQLite keeper must not believe. Each test makes a good file with a few nodes,
 * damages it, and opens it again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/assert.h"
#include "keeper/keeper.h"

struct fixture {
    char dir[64];
    char path[96];
    struct io *io;
    struct keeper *keeper;
    struct keeper_call call;
    struct keeper_op ops[2];
};

static enum err open_keeper(struct fixture *f, void (*start)(void *ctx), char **message)
{
    f->io = io_new(&(struct io_options){.trace_level = TRACE_WARN});
    struct io_loop *loop = io_loop_new(f->io, "control", start, f);

    return keeper_sqlite_open(f->io, f->path, loop, NULL, NULL, &f->keeper, message);
}

static void done(struct keeper_call *call)
{
    struct fixture *f = CONTAINER_OF(call, struct fixture, call);

    assert_int_equal(call->err, ERR_NONE);
    keeper_call_release(call);
    io_stop(f->io);
}

static void create_nodes(void *ctx)
{
    struct fixture *f = ctx;

    f->call.done = done;
    f->ops[0] = (struct keeper_op){.kind = KEEPER_CREATE, .path = "/a", .data = bytes_null()};
    f->ops[1] = (struct keeper_op){.kind = KEEPER_CREATE, .path = "/a/b", .data = bytes_null()};
    keeper_multi(f->keeper, f->ops, 2, &f->call);
}

static void make_file(struct fixture *f)
{
    char *message;

    assert_int_equal(open_keeper(f, create_nodes, &message), ERR_NONE);
    io_run(f->io);
    keeper_free(f->keeper);
    io_free(f->io);
}

static int begin(void **state)
{
    static struct fixture f;

    f = (struct fixture){.dir = "/tmp/keeper_test.XXXXXX"};
    assert_non_null(mkdtemp(f.dir));
    snprintf(f.path, sizeof(f.path), "%s/keeper.db", f.dir);
    make_file(&f);
    *state = &f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(rmdir(f->dir), 0);
    return 0;
}

static void damage(struct fixture *f, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void assert_refused(struct fixture *f, enum err expected)
{
    char *message;
    enum err err = open_keeper(f, NULL, &message);

    assert_int_equal(err, expected);
    assert_null(f->keeper);
    assert_non_null(strstr(message, f->path));
    assert_non_null(strstr(message, err_text(expected)));
    free(message);
    io_free(f->io);
    unlink(f->path);
    char log[112];

    snprintf(log, sizeof(log), "%s-wal", f->path);
    unlink(log);
    make_file(f);
}

static void rows_that_cannot_be_are_refused(void **state)
{
    static const char *const bad[] = {
        "INSERT INTO node VALUES('/x/y',NULL,0,0,1,1)", /* no parent */
        "INSERT INTO node VALUES('x',NULL,0,0,1,1)",
        "INSERT INTO node VALUES('/a/',NULL,0,0,1,1)",
        "INSERT INTO node VALUES('/a/c',NULL,0,0,1,1)", /* more children than were created */
        "UPDATE node SET child_creates=-1 WHERE path='/a'",
        "UPDATE node SET version=-1 WHERE path='/a'",
        "UPDATE node SET data=zeroblob(1048577) WHERE path='/a'",
        "DELETE FROM node WHERE path='/a'",
        "PRAGMA application_id=1",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        damage(*state, bad[i]);
        assert_refused(*state, ERR_CORRUPT);
    }
}

static void a_newer_format_is_refused(void **state)
{
    damage(*state, "PRAGMA user_version=2");
    assert_refused(*state, ERR_UNSUPPORTED);
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(p, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    struct fixture *f = *state;
    char text[4096];

    memset(text, 'x', sizeof(text));
    write_file(f->path, text, sizeof(text));
    assert_refused(f, ERR_CORRUPT);
    write_file(f->path, "", 0);
    assert_refused(f, ERR_CORRUPT);
}

static void a_missing_directory_is_named(void **state)
{
    struct fixture f = {.path = "/tmp/keeper_test.missing/keeper.db"};
    char *message;

    (void)state;
    assert_int_equal(open_keeper(&f, NULL, &message), ERR_NOT_FOUND);
    assert_non_null(strstr(message, f.path));
    free(message);
    io_free(f.io);
}

static size_t read_file(const char *path, uint8_t *p, size_t max)
{
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    size_t n = fread(p, 1, max, file);

    assert_int_equal(fclose(file), 0);
    assert_in_range(n, 1, max - 1);
    return n;
}

/* A file that was removed by hand leaves its log behind: it must not get into the new one. */
static void a_log_without_its_file_is_not_believed(void **state)
{
    static uint8_t bytes[1 << 20];
    struct fixture *f = *state;
    char log[112], *message;

    snprintf(log, sizeof(log), "%s-wal", f->path);
    unlink(f->path);
    assert_int_equal(open_keeper(f, create_nodes, &message), ERR_NONE);
    io_run(f->io);
    size_t n = read_file(log, bytes, sizeof(bytes));

    keeper_free(f->keeper);
    io_free(f->io);
    unlink(f->path);
    write_file(log, bytes, n);
    make_file(f); /* or the nodes are there already */
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_that_cannot_be_are_refused),        TEST(a_newer_format_is_refused),
        TEST(a_file_that_is_no_database_is_refused),  TEST(a_missing_directory_is_named),
        TEST(a_log_without_its_file_is_not_believed),
    };

    return cmocka_run_group_tests_name("keeper: files", tests, NULL, NULL);
}
