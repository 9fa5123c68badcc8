/* SPDX-License-Identifier: Apache-2.0 */
/* How a log ends: closed, deleted, and what a close leaves alone. */
#include "log/life_test.h"

#include <fcntl.h>
#include <sys/stat.h>

static void note_truncated(void *ctx, enum err err)
{
    struct fixture *f = ctx;

    assert_int_equal(err, ERR_NONE);
    f->answer[0] = log_end_offset(f->log);
}

static void truncate_and_close(struct fixture *f)
{
    if (f->stage++ > 0)
        return;
    append_many(f, 30);
    log_truncate(f->log, 20, note_truncated, f);
    close_log(f);
}

/* The end that the life before has noted. */
static void ends_there(struct fixture *f)
{
    assert_true(f->found.clean);
    assert_int_equal(log_end_offset(f->log), f->answer[0]);
    close_log(f);
}

static void a_close_waits_for_a_truncation(void **state)
{
    struct fixture *f = *state;

    live(f, truncate_and_close);
    assert_int_equal(f->err, ERR_NONE);
    assert_in_range(f->answer[0], 18, 20);
    live(f, ends_there);
}

static void delete_it(struct fixture *f)
{
    if (f->stage++ == 0) {
        append_many(f, 3);
        log_delete(f->log, on_closed, f);
    }
}

static void is_deleted(struct fixture *f)
{
    assert_int_equal(log_end_offset(f->log), 0);
    close_log(f);
}

static void a_deleted_log_is_gone(void **state)
{
    struct fixture *f = *state;

    live(f, delete_it);
    assert_int_equal(f->err, ERR_NONE);
    live(f, is_deleted);
}

static void append_and_close(struct fixture *f)
{
    if (f->stage++ > 0)
        return;
    append_many(f, 3);
    close_log(f);
}

static void a_close_does_not_wait_for_flush_ms(void **state)
{
    struct fixture *f = *state;

    f->config.flush_on_ack = false;
    f->config.flush_ms = 3600 * 1000;
    live(f, append_and_close);
    assert_int_equal(f->err, ERR_NONE);
}

/* ---- A log that rests ------------------------------------------------------------------- */

#define MARKED_S 1000000000

static char *snapshot_path(const struct fixture *f, const char *suffix)
{
    char *dir = xasprintf("%s/t-3", f->path);
    char *path = offset_path(dir, f->answer[0], suffix);

    free(dir);
    return path;
}

/* What is written again has another time afterwards. */
static void mark(const struct fixture *f, const char *suffix)
{
    struct timespec times[2] = {{.tv_sec = MARKED_S}, {.tv_sec = MARKED_S}};
    char *path = snapshot_path(f, suffix);

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

static bool is_marked(const struct fixture *f, const char *suffix)
{
    char *path = snapshot_path(f, suffix);
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    free(path);
    return st.st_mtim.tv_sec == MARKED_S;
}

static void write_some_and_close(struct fixture *f)
{
    if (f->stage++ == 0) {
        append_many(f, 30);
        f->answer[0] = log_end_offset(f->log);
    } else if (all_acked(f)) {
        close_log(f);
    }
}

static void a_log_that_rests_is_left_as_it_is(void **state)
{
    struct fixture *f = *state;

    f->producer_id = 7;
    live(f, write_some_and_close);
    mark(f, SNAPSHOT_SUFFIX);
    mark(f, PRODUCERS_SUFFIX);
    live(f, ends_there);
    assert_true(is_marked(f, SNAPSHOT_SUFFIX));
    assert_true(is_marked(f, PRODUCERS_SUFFIX));
    live(f, ends_there);
}

/* To the same end. */
static void cut_and_write_again(struct fixture *f)
{
    if (f->stage++ == 0) {
        log_truncate(f->log, 20, on_done, f);
    } else if (f->stage == 2) {
        while (log_end_offset(f->log) < f->answer[0])
            append(f, (struct wanted_batch){.count = 1, .timestamp = T0});
    } else if (all_acked(f)) {
        close_log(f);
    }
}

static void another_history_has_other_snapshots(void **state)
{
    struct fixture *f = *state;

    live(f, write_some_and_close);
    mark(f, SNAPSHOT_SUFFIX);
    mark(f, PRODUCERS_SUFFIX);
    live(f, cut_and_write_again);
    assert_false(is_marked(f, SNAPSHOT_SUFFIX));
    assert_false(is_marked(f, PRODUCERS_SUFFIX));
    live(f, ends_there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_close_waits_for_a_truncation),      TEST(a_deleted_log_is_gone),
        TEST(a_close_does_not_wait_for_flush_ms),  TEST(a_log_that_rests_is_left_as_it_is),
        TEST(another_history_has_other_snapshots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
