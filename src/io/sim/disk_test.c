/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that forget. Each test runs one small scenario under many seeds and looks at the set of
 * outcomes: what must not happen never does, and what may happen does sometimes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "io/io.h"
#include "io/sim/sim.h"

#define SEEDS 200

struct disk {
    struct sim_world *world;
    struct sim_host *host;
    struct io *io;
};

static struct disk disk_new(uint64_t seed, const struct sim_options *options)
{
    struct disk d = {.world = sim_world_new(seed, options)};

    d.host = sim_host_new(d.world, "disk");
    d.io = sim_process_start(d.host, NULL, NULL, NULL);
    return d;
}

static void disk_free(struct disk *d)
{
    io_free(d->io);
    sim_world_free(d->world);
}

/* The process has no memory of its own to abandon, so that this needs no child. */
static void restart_after(struct disk *d, enum sim_crash how)
{
    if (how == SIM_POWER_CUT)
        sim_host_power_cut(d->host);
    else
        sim_process_kill(d->io);
    d->io = sim_process_start(d->host, NULL, NULL, NULL);
}

static void ok(enum err err)
{
    assert_int_equal(err, ERR_NONE);
}

static struct io_file *open_file(struct disk *d, const char *path)
{
    struct io_file *f;

    ok(io_file_open(d->io, path, IO_OPEN_WRITE | IO_OPEN_CREATE, &f));
    return f;
}

static enum err write_fill(struct io_file *f, char c, size_t n, int64_t pos)
{
    char bytes[4096];
    struct iovec iov = {.iov_base = bytes, .iov_len = n};

    assert_true(n <= sizeof(bytes));
    memset(bytes, c, n);
    return io_file_write(f, &iov, 1, pos);
}

static void make_synced(struct disk *d, const char *path, char c, size_t n)
{
    struct io_file *f = open_file(d, path);

    ok(write_fill(f, c, n, 0));
    ok(io_file_sync(f));
    ok(io_dir_sync(d->io, "/"));
    io_file_unref(f);
}

static bool exists(struct disk *d, const char *path)
{
    struct io_stat st;

    return io_path_stat(d->io, path, &st) == ERR_NONE;
}

static char *content(struct disk *d, const char *path, size_t *n)
{
    char *text;

    ok(io_file_read_all(d->io, path, 1 << 20, &text, n));
    return text;
}

/* How many of n bytes at p are c. */
static size_t count(const char *p, size_t n, char c)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += p[i] == c;
    return found;
}

/* ---- what stays ------------------------------------------------------------------------- */

static void what_was_synced_survives_every_power_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        size_t n;
        char *text;

        make_synced(&d, "/a", 'x', 2000);
        restart_after(&d, SIM_POWER_CUT);
        text = content(&d, "/a", &n);
        assert_int_equal(n, 2000);
        assert_int_equal(count(text, n, 'x'), 2000);
        free(text);
        disk_free(&d);
    }
}

static void a_kill_loses_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        struct io_file *f = open_file(&d, "/a");
        size_t n;
        char *text;

        ok(write_fill(f, 'x', 2000, 0));
        io_file_unref(f);
        restart_after(&d, SIM_KILL);
        text = content(&d, "/a", &n);
        assert_int_equal(count(text, n, 'x'), 2000);
        free(text);
        disk_free(&d);
    }
}

/* ---- what goes -------------------------------------------------------------------------- */

static void an_unsynced_write_is_kept_lost_or_torn_by_sector(void **state)
{
    int kept = 0;
    int lost = 0;
    int torn = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        struct io_file *f;
        size_t n;
        size_t news;
        char *text;

        make_synced(&d, "/a", 'o', 2048);
        f = open_file(&d, "/a");
        ok(write_fill(f, 'n', 1536, 256));
        io_file_unref(f);
        restart_after(&d, SIM_POWER_CUT);
        text = content(&d, "/a", &n);
        assert_int_equal(n, 2048);
        news = count(text, n, 'n');
        assert_int_equal(count(text, n, 'o') + news, 2048);
        for (size_t at = 512; at < 1536; at += 512)
            assert_true(count(text + at, 512, 'n') % 512 == 0);
        assert_int_equal(count(text, 256, 'o'), 256);
        kept += news == 1536;
        lost += news == 0;
        torn += news > 0 && news < 1536;
        free(text);
        disk_free(&d);
    }
    assert_true(kept > SEEDS / 8 && lost > SEEDS / 8 && torn > SEEDS / 20);
}

static void size_and_data_of_an_append_are_lost_separately(void **state)
{
    int zeros = 0;
    int shorter = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        struct io_file *f;
        size_t n;
        char *text;

        make_synced(&d, "/a", 'o', 512);
        f = open_file(&d, "/a");
        ok(write_fill(f, 'n', 512, 512));
        ok(write_fill(f, 'n', 512, 1024));
        io_file_unref(f);
        restart_after(&d, SIM_POWER_CUT);
        text = content(&d, "/a", &n);
        assert_true(n == 512 || n == 1024 || n == 1536);
        assert_int_equal(count(text, 512, 'o'), 512);
        zeros += count(text + 512, n - 512, '\0') > 0;
        shorter += n < 1536;
        free(text);
        disk_free(&d);
    }
    assert_true(zeros > SEEDS / 20 && shorter > SEEDS / 8);
}

static void a_truncation_may_come_undone_but_never_shows_what_was_cut_later(void **state)
{
    int undone = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        struct io_file *f;
        size_t n;
        char *text;

        make_synced(&d, "/a", 'o', 1024);
        f = open_file(&d, "/a");
        ok(io_file_truncate(f, 512));
        ok(io_file_truncate(f, 2048));
        io_file_unref(f);
        restart_after(&d, SIM_POWER_CUT);
        text = content(&d, "/a", &n);
        assert_true(n == 512 || n == 1024 || n == 2048);
        assert_int_equal(count(text, n, 'o'), n == 1024 ? 1024 : 512);
        undone += n == 1024;
        free(text);
        disk_free(&d);
    }
    assert_true(undone > 10 && undone < SEEDS - 10);
}

/* ---- names ------------------------------------------------------------------------------ */

static void a_synced_file_whose_name_was_not_synced_may_be_gone(void **state)
{
    int gone = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        struct io_file *f = open_file(&d, "/a");

        ok(write_fill(f, 'x', 10, 0));
        ok(io_file_sync(f));
        io_file_unref(f);
        restart_after(&d, SIM_POWER_CUT);
        gone += !exists(&d, "/a");
        disk_free(&d);
    }
    assert_true(gone > SEEDS / 8 && gone < SEEDS - SEEDS / 8);
}

static void names_of_a_directory_are_lost_from_the_end(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        const char *const names[] = {"/c", "/a", "/b"};
        bool before = true;

        for (int i = 0; i < 3; i++)
            io_file_unref(open_file(&d, names[i]));
        restart_after(&d, SIM_POWER_CUT);
        for (int i = 0; i < 3; i++) {
            assert_true(before || !exists(&d, names[i]));
            before = exists(&d, names[i]);
        }
        disk_free(&d);
    }
}

static void a_replaced_file_has_the_old_or_the_new_content(void **state)
{
    int old = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        size_t n;
        char *text;

        make_synced(&d, "/a", 'o', 100);
        make_synced(&d, "/a.tmp", 'n', 100);
        ok(io_path_rename(d.io, "/a.tmp", "/a"));
        restart_after(&d, SIM_POWER_CUT);
        text = content(&d, "/a", &n);
        assert_true(count(text, n, 'o') == 100 || count(text, n, 'n') == 100);
        old += count(text, n, 'o') == 100;
        assert_int_equal(exists(&d, "/a.tmp"), text[0] == 'o');
        free(text);
        disk_free(&d);
    }
    assert_true(old > 10 && old < SEEDS - 10);
}

static void a_rename_between_directories_is_atomic(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);

        ok(io_dir_make(d.io, "/d"));
        ok(io_dir_make(d.io, "/e"));
        io_file_unref(open_file(&d, "/d/a"));
        ok(io_dir_sync(d.io, "/"));
        if (seed % 2 == 0)
            ok(io_dir_sync(d.io, "/d"));
        io_file_unref(open_file(&d, "/d/other"));
        ok(io_path_rename(d.io, "/d/a", "/e/a"));
        if (seed % 2)
            ok(io_dir_sync(d.io, "/e"));
        io_file_unref(open_file(&d, "/e/later"));
        restart_after(&d, SIM_POWER_CUT);
        assert_int_equal(exists(&d, "/d/a") + exists(&d, "/e/a"), 1);
        assert_true(IMPLIES(seed % 2, exists(&d, "/e/a")));
        assert_true(IMPLIES(exists(&d, "/e/a"), exists(&d, "/d/other")));
        assert_true(IMPLIES(exists(&d, "/e/later"), exists(&d, "/e/a")));
        disk_free(&d);
    }
}

/* ---- faults ----------------------------------------------------------------------------- */

static void after_a_failed_sync_the_next_one_succeeds_and_the_data_is_gone(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        struct io_file *f;
        size_t n;
        char *text;

        make_synced(&d, "/a", 'o', 512);
        f = open_file(&d, "/a");
        ok(write_fill(f, 'n', 512, 0));
        sim_disk_fail_nth(d.host, SIM_CALL_SYNC, 1);
        assert_int_equal(io_file_sync(f), ERR_IO);
        ok(io_file_sync(f));
        io_file_unref(f);
        text = content(&d, "/a", &n);
        assert_int_equal(count(text, n, 'n'), 512); /* So the cache says. */
        free(text);
        restart_after(&d, SIM_POWER_CUT);
        text = content(&d, "/a", &n);
        assert_int_equal(count(text, n, 'o'), 512);
        free(text);
        disk_free(&d);
    }
}

static void the_nth_call_fails_and_no_other(void **state)
{
    struct disk d = disk_new(1, NULL);
    struct io_file *f = open_file(&d, "/a");

    (void)state;
    sim_disk_fail_nth(d.host, SIM_CALL_WRITE, 3);
    for (int i = 1; i <= 5; i++)
        assert_int_equal(write_fill(f, 'x', 10, 0), i == 3 ? ERR_IO : ERR_NONE);
    assert_int_equal(sim_event_count(d.world, SIM_EV_EIO), 1);
    io_file_unref(f);
    disk_free(&d);
}

static void a_failed_write_may_have_been_done_in_part(void **state)
{
    int sizes[3] = {0};

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk d = disk_new(seed, NULL);
        struct io_file *f = open_file(&d, "/a");
        struct io_stat st;

        sim_disk_fail_nth(d.host, SIM_CALL_WRITE, 1);
        assert_int_equal(write_fill(f, 'x', 100, 0), ERR_IO);
        ok(io_file_stat(f, &st));
        assert_true(st.size % 50 == 0 && st.size <= 100);
        sizes[st.size / 50]++;
        io_file_unref(f);
        disk_free(&d);
    }
    assert_true(sizes[0] > 20 && sizes[1] > 20 && sizes[2] > 20);
}

static void the_cache_may_miss_or_give_less(void **state)
{
    struct sim_options options = {.disk_short_ppm = 1000000};
    struct disk d = disk_new(1, &options);
    char bytes[1000];
    struct io_file *f;
    size_t got;

    (void)state;
    make_synced(&d, "/a", 'x', 1000);
    f = open_file(&d, "/a");
    ok(io_read_cached(f, bytes, sizeof(bytes), 0, &got));
    assert_in_range(got, 1, 999);
    assert_int_equal(count(bytes, got, 'x'), got);
    sim_world_options(d.world)->disk_uncached_ppm = 1000000;
    assert_int_equal(io_read_cached(f, bytes, sizeof(bytes), 0, &got), ERR_AGAIN);
    assert_int_equal(got, 0);
    io_file_unref(f);
    disk_free(&d);
}

static void a_full_disk_takes_what_fits_and_frees_what_is_removed(void **state)
{
    struct sim_options options = {.disk_bytes = 6000};
    struct disk d = disk_new(1, &options);
    struct io_file *f = open_file(&d, "/a");
    struct io_space space;
    struct io_stat st;

    (void)state;
    ok(io_file_reserve(f, 0, 3000));
    ok(io_fs_space(d.io, "/", &space));
    assert_int_equal(space.total, 6000);
    assert_int_equal(space.available, 3000);
    ok(write_fill(f, 'x', 4096, 0));
    assert_int_equal(write_fill(f, 'x', 4096, 4096), ERR_NO_SPACE);
    ok(io_file_stat(f, &st));
    assert_int_equal(st.size, 6000);
    ok(write_fill(f, 'y', 4096, 1000)); /* Nothing new is needed. */
    assert_int_equal(io_file_reserve(f, 6000, 1), ERR_NO_SPACE);
    ok(io_path_unlink(d.io, "/a"));
    io_file_unref(f);
    ok(io_dir_sync(d.io, "/"));
    ok(io_fs_space(d.io, "/", &space));
    assert_int_equal(space.available, 6000);
    disk_free(&d);
}

static void damage_is_on_the_device(void **state)
{
    struct disk d = disk_new(1, NULL);
    size_t n;
    char *text;

    (void)state;
    make_synced(&d, "/a", 'x', 100);
    ok(sim_disk_damage(d.host, "/a", 50, 1));
    assert_int_equal(sim_disk_damage(d.host, "/a", 100, 1), ERR_LIMIT);
    assert_int_equal(sim_disk_damage(d.host, "/b", 0, 1), ERR_NOT_FOUND);
    restart_after(&d, SIM_POWER_CUT);
    text = content(&d, "/a", &n);
    assert_int_equal(count(text, n, 'x'), 99);
    assert_int_equal(text[50], 'y');
    free(text);
    disk_free(&d);
}

static int kill_with_a_lock(void *arg, void *result)
{
    struct disk d = disk_new(1, NULL);
    struct io_lock *lock;

    (void)arg;
    (void)result;
    ok(io_lock_take(d.io, "/.lock", &lock));
    restart_after(&d, SIM_KILL);
    return io_lock_take(d.io, "/.lock", &lock) != ERR_NONE;
}

static void a_lock_excludes_other_processes_and_dies_with_its_own(void **state)
{
    struct disk d = disk_new(1, NULL);
    struct io *other = sim_process_start(d.host, NULL, NULL, NULL);
    struct io_lock *lock;
    struct io_lock *again;

    (void)state;
    ok(io_lock_take(d.io, "/.lock", &lock));
    assert_int_equal(io_lock_take(other, "/.lock", &again), ERR_LOCKED);
    io_lock_release(lock);
    assert_false(exists(&d, "/.lock"));
    ok(io_lock_take(other, "/.lock", &again));
    io_lock_release(again);
    io_free(other);
    disk_free(&d);
    assert_int_equal(sim_in_child(kill_with_a_lock, NULL, NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_synced_survives_every_power_cut),
        cmocka_unit_test(a_kill_loses_nothing),
        cmocka_unit_test(an_unsynced_write_is_kept_lost_or_torn_by_sector),
        cmocka_unit_test(size_and_data_of_an_append_are_lost_separately),
        cmocka_unit_test(a_truncation_may_come_undone_but_never_shows_what_was_cut_later),
        cmocka_unit_test(a_synced_file_whose_name_was_not_synced_may_be_gone),
        cmocka_unit_test(names_of_a_directory_are_lost_from_the_end),
        cmocka_unit_test(a_replaced_file_has_the_old_or_the_new_content),
        cmocka_unit_test(a_rename_between_directories_is_atomic),
        cmocka_unit_test(after_a_failed_sync_the_next_one_succeeds_and_the_data_is_gone),
        cmocka_unit_test(the_nth_call_fails_and_no_other),
        cmocka_unit_test(a_failed_write_may_have_been_done_in_part),
        cmocka_unit_test(the_cache_may_miss_or_give_less),
        cmocka_unit_test(a_full_disk_takes_what_fits_and_frees_what_is_removed),
        cmocka_unit_test(damage_is_on_the_device),
        cmocka_unit_test(a_lock_excludes_other_processes_and_dies_with_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
