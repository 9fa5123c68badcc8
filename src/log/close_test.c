/* SPDX-License-Identifier: Apache-2.0 */
/* How a log ends: closed or deleted. */
#include "log/life_test.h"

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

static void is_truncated(struct fixture *f)
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
    live(f, is_truncated);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_close_waits_for_a_truncation),
        TEST(a_deleted_log_is_gone),
        TEST(a_close_does_not_wait_for_flush_ms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
