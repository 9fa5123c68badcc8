/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "journal/journal.h"

#define OPS 40

struct fixture;

struct test_op {
    struct journal_op op;
    struct fixture *f;
    char text[16];
    int id;
};

struct fixture {
    char path[64];
    struct io *io;
    struct io_loop *loop;
    struct journal *journal;
    struct journal_log logs[2];
    struct io_file *files[2];
    struct io_file *index;
    struct test_op ops[OPS];
    int submitted;
    int done;
    int order[OPS]; /* ids as they completed */
    void (*begin)(struct fixture *f);
    enum err apply_err;
    int applied_after; /* operations of the log that were written when apply ran */
    struct journal_stats stats;
    struct latency_figures sync_time;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    snprintf(f->path, sizeof(f->path), "/tmp/strandline-journal-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char *command = xasprintf("rm -rf %s", f->path);

    assert_int_equal(system(command), 0);
    free(command);
    free(f);
    return 0;
}

static struct io_file *open_file(struct fixture *f, const char *name)
{
    char *path = xasprintf("%s/%s", f->path, name);
    struct io_file *file;

    assert_int_equal(io_file_open(f->io, path, IO_OPEN_WRITE | IO_OPEN_CREATE, &file), ERR_NONE);
    free(path);
    return file;
}

static void start(void *ctx)
{
    struct fixture *f = ctx;

    f->begin(f);
}

static void run(struct fixture *f, void (*begin)(struct fixture *f))
{
    struct io_options options = {.trace_level = TRACE_ERROR};

    f->io = io_new(&options);
    f->begin = begin;
    f->files[0] = open_file(f, "a");
    f->files[1] = open_file(f, "b");
    f->index = open_file(f, "i");
    f->journal = journal_new(f->io, f->path);
    f->loop = io_loop_new(f->io, "control", start, f);
    io_run(f->io);
    journal_stats_read(f->journal, &f->stats);
    journal_sync_figures(f->journal, &f->sync_time);
    journal_free(f->journal);
}

static void end(struct fixture *f)
{
    io_file_unref(f->files[0]);
    io_file_unref(f->files[1]);
    io_file_unref(f->index);
    io_free(f->io);
}

static void op_done(struct journal_op *op)
{
    struct test_op *t = CONTAINER_OF(op, struct test_op, op);
    struct fixture *f = t->f;

    f->order[f->done++] = t->id;
    if (f->done == f->submitted)
        io_stop(f->io);
}

static struct test_op *new_op(struct fixture *f, enum journal_kind kind, int log)
{
    struct test_op *t = &f->ops[f->submitted];

    t->f = f;
    t->id = f->submitted++;
    t->op = (struct journal_op){
        .kind = kind,
        .log = &f->logs[log],
        .loop = f->loop,
        .done = op_done,
    };
    return t;
}

static void append_at(struct fixture *f, int log, int64_t pos, bool sync)
{
    struct test_op *t = new_op(f, JOURNAL_APPEND, log);

    snprintf(t->text, sizeof(t->text), "%04d", t->id);
    t->op.sync = sync;
    t->op.data = (struct journal_write){.file = &f->files[log], .pos = pos, .p = t->text, .n = 4};
    journal_submit(f->journal, &t->op);
}

static enum err apply(struct journal_op *op, struct io *io)
{
    struct fixture *f = CONTAINER_OF(op, struct test_op, op)->f;
    struct io_stat st;

    (void)io;
    assert_int_equal(io_file_stat(f->files[0], &st), ERR_NONE);
    f->applied_after = (int)(st.size / 4);
    return f->apply_err;
}

static void change(struct fixture *f, enum journal_kind kind, int log)
{
    struct test_op *t = new_op(f, kind, log);

    t->op.apply = apply;
    journal_submit(f->journal, &t->op);
}

/* ---- Tests ------------------------------------------------------------------------------ */

static void submit_many(struct fixture *f)
{
    for (int i = 0; i < 10; i++) {
        append_at(f, 0, 4 * i, true);
        append_at(f, 1, 4 * i, false);
    }
}

static void appends_are_written_in_place_and_complete_in_order(void **state)
{
    struct fixture *f = *state;
    char text[64] = {0};
    size_t n;
    int last[2] = {-1, -1};

    run(f, submit_many);
    assert_int_equal(f->done, 20);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(f->ops[f->order[i]].op.err, ERR_NONE);
        assert_true(f->order[i] > last[f->order[i] % 2]);
        last[f->order[i] % 2] = f->order[i];
    }
    assert_int_equal(io_file_read(f->files[0], text, 63, 0, &n), ERR_NONE);
    assert_string_equal(text, "0000000200040006000800100012001400160018");
    assert_int_equal(f->stats.ops, 20);
    assert_int_equal(f->stats.bytes, 80);
    /* One file asks for syncs; what had gathered shared them. */
    assert_in_range(f->stats.syncs, 1, 10);
    assert_int_equal(f->sync_time.count, f->stats.syncs);
    assert_true(f->sync_time.sum_ns > 0);
    end(f);
}

static void submit_around_a_roll(struct fixture *f)
{
    append_at(f, 0, 0, true);
    append_at(f, 0, 4, false);
    change(f, JOURNAL_ROLL, 0);
    append_at(f, 0, 8, true);
}

static void a_change_runs_between_the_appends_around_it(void **state)
{
    struct fixture *f = *state;

    run(f, submit_around_a_roll);
    assert_int_equal(f->applied_after, 2);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(f->order[i], i);
        assert_int_equal(f->ops[i].op.err, ERR_NONE);
    }
    assert_in_range(f->stats.commits, 2, 3);
    end(f);
}

static void submit_without_space(struct fixture *f)
{
    f->apply_err = ERR_NO_SPACE;
    change(f, JOURNAL_ROLL, 0);
    append_at(f, 0, 0, true);
    append_at(f, 1, 0, true);
}

static void submit_a_cut(struct fixture *f)
{
    change(f, JOURNAL_TRUNCATE, 0);
    append_at(f, 0, 0, true);
}

static void lack_of_space_is_the_logs_alone_until_it_truncates(void **state)
{
    struct fixture *f = *state;

    run(f, submit_without_space);
    assert_int_equal(f->ops[0].op.err, ERR_NO_SPACE);
    assert_int_equal(f->ops[1].op.err, ERR_NO_SPACE);
    assert_int_equal(f->ops[2].op.err, ERR_NONE);
    end(f);
    f->apply_err = ERR_NONE;
    f->submitted = f->done = 0;
    run(f, submit_a_cut); /* The lane's part of the log says still that it refuses. */
    assert_int_equal(f->ops[0].op.err, ERR_NONE);
    assert_int_equal(f->ops[1].op.err, ERR_NONE);
    end(f);
}

static void submit_a_failure(struct fixture *f)
{
    f->apply_err = ERR_IO;
    append_at(f, 0, 0, true);
    change(f, JOURNAL_EPOCH, 0);
    append_at(f, 0, 4, true);
    append_at(f, 1, 0, false);
    change(f, JOURNAL_DROP, 1);
}

static void the_first_error_fails_the_directory(void **state)
{
    struct fixture *f = *state;

    run(f, submit_a_failure);
    assert_int_equal(f->ops[0].op.err, ERR_NONE);
    assert_int_equal(f->ops[1].op.err, ERR_IO);
    for (int i = 2; i < 5; i++)
        assert_int_equal(f->ops[i].op.err, ERR_FAILED_DIR);
    end(f);
}

static void submit_with_index(struct fixture *f)
{
    for (int i = 0; i < 3; i++) {
        struct test_op *t = new_op(f, JOURNAL_APPEND, 0);
        snprintf(t->text, sizeof(t->text), "data:%d", i);
        t->op.data =
            (struct journal_write){.file = &f->files[0], .pos = 4 * i, .p = t->text, .n = 4};
        t->op.side[0] =
            (struct journal_write){.file = &f->index, .pos = 2 * i, .p = t->text + 4, .n = 2};
        t->op.side_count = 1;
        journal_submit(f->journal, &t->op);
    }
}

static void index_entries_go_with_their_data(void **state)
{
    struct fixture *f = *state;
    char text[16] = {0};
    size_t n;

    run(f, submit_with_index);
    assert_int_equal(io_file_read(f->index, text, 15, 0, &n), ERR_NONE);
    assert_string_equal(text, ":0:1:2");
    assert_int_equal(f->stats.syncs, 0);
    end(f);
}

static char large[2 * 1024 * 1024];

static void submit_large(struct fixture *f)
{
    struct test_op *t = new_op(f, JOURNAL_APPEND, 0);

    t->op.data = (struct journal_write){.file = &f->files[0], .p = large, .n = sizeof(large)};
    journal_submit(f->journal, &t->op);
}

static void space_is_reserved_behind_the_data(void **state)
{
    struct fixture *f = *state;
    char *path = xasprintf("%s/a", f->path);
    struct stat st;

    run(f, submit_large);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, sizeof(large));
    if (io_file_reserve(f->files[1], 0, 1) == ERR_NONE)
        assert_true(st.st_blocks * 512 >= (int64_t)sizeof(large) * 5 / 4);
    free(path);
    end(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(appends_are_written_in_place_and_complete_in_order),
        TEST(a_change_runs_between_the_appends_around_it),
        TEST(lack_of_space_is_the_logs_alone_until_it_truncates),
        TEST(the_first_error_fails_the_directory),
        TEST(index_entries_go_with_their_data),
        TEST(space_is_reserved_behind_the_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
