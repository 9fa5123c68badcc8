/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files part of the conformance suite: what a file system does while nothing fails. The tests
 * call before io_run, which is one of the places where blocking is allowed.
 */
#include "io/conformance_test.h"

#include <stdlib.h>
#include <string.h>

/* ---- files ------------------------------------------------------------------------------- */

/* A path in the directory; valid until the next but three. */
static const char *in_dir(const char *name)
{
    static char path[4][512];
    static int next;
    char *p = path[next++ % 4];

    snprintf(p, sizeof(path[0]), "%s/%s", conformance_dir(), name);
    return p;
}

static struct io_file *open_file(struct fixture *f, const char *name, unsigned flags)
{
    struct io_file *file;

    assert_int_equal(io_file_open(f->io, in_dir(name), flags, &file), ERR_NONE);
    return file;
}

static void write_text(struct io_file *file, const char *text, int64_t pos)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};

    assert_int_equal(io_file_write(file, &iov, 1, pos), ERR_NONE);
}

static void check_text(struct io_file *file, const char *text)
{
    char got[256] = {0};
    size_t n;

    assert_int_equal(io_file_read(file, got, sizeof(got), 0, &n), ERR_NONE);
    assert_int_equal(n, strlen(text));
    assert_string_equal(got, text);
}

static int64_t size_of(struct io_file *file)
{
    struct io_stat st;

    assert_int_equal(io_file_stat(file, &st), ERR_NONE);
    assert_false(st.is_dir);
    return st.size;
}

static void files_are_opened_as_the_flags_say(void **state)
{
    struct fixture *f = *state;
    struct io_file *file;

    assert_int_equal(io_file_open(f->io, in_dir("a"), IO_OPEN_READ, &file), ERR_NOT_FOUND);
    assert_null(file);
    file = open_file(f, "a", IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_EXCL);
    write_text(file, "hello", 0);
    io_file_unref(file);
    assert_int_equal(
        io_file_open(f->io, in_dir("a"), IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_EXCL, &file),
        ERR_EXISTS);
    file = open_file(f, "a", IO_OPEN_READ);
    check_text(file, "hello");
    io_file_unref(file);
    file = open_file(f, "a", IO_OPEN_WRITE | IO_OPEN_TRUNC);
    assert_int_equal(size_of(file), 0);
    io_file_unref(file);
    io_file_unref(NULL);
}

static void a_file_lives_until_its_last_reference(void **state)
{
    struct io_file *file = open_file(*state, "a", IO_OPEN_WRITE | IO_OPEN_CREATE);

    assert_ptr_equal(io_file_ref(file), file);
    io_file_unref(file);
    write_text(file, "still", 0);
    check_text(file, "still");
    io_file_unref(file);
}

static void reads_and_writes_are_positioned(void **state)
{
    struct io_file *file = open_file(*state, "a", IO_OPEN_WRITE | IO_OPEN_CREATE);
    struct iovec iov[3] = {
        {.iov_base = (void *)"one", .iov_len = 3},
        {.iov_base = (void *)"", .iov_len = 0},
        {.iov_base = (void *)"two", .iov_len = 3},
    };
    char got[8];
    size_t n;

    assert_int_equal(io_file_write(file, iov, 3, 0), ERR_NONE);
    write_text(file, "X", 3);
    check_text(file, "oneXwo");
    assert_int_equal(io_file_sync(file), ERR_NONE);
    assert_int_equal(io_file_read(file, got, 3, 2, &n), ERR_NONE);
    assert_int_equal(n, 3);
    assert_memory_equal(got, "eXw", 3);
    assert_int_equal(io_file_read(file, got, 8, 4, &n), ERR_NONE);
    assert_int_equal(n, 2);
    assert_int_equal(io_file_read(file, got, 8, 100, &n), ERR_NONE);
    assert_int_equal(n, 0);
    write_text(file, "!", 8);
    assert_int_equal(io_file_read(file, got, 3, 6, &n), ERR_NONE);
    assert_memory_equal(got, "\0\0!", 3);
    io_file_unref(file);
}

static void truncating_cuts_and_grows_with_zeros(void **state)
{
    struct io_file *file = open_file(*state, "a", IO_OPEN_WRITE | IO_OPEN_CREATE);
    char got[4];
    size_t n;

    write_text(file, "abcdef", 0);
    assert_int_equal(io_file_truncate(file, 2), ERR_NONE);
    check_text(file, "ab");
    assert_int_equal(io_file_truncate(file, 4), ERR_NONE);
    assert_int_equal(io_file_read(file, got, 4, 0, &n), ERR_NONE);
    assert_int_equal(n, 4);
    assert_memory_equal(got, "ab\0\0", 4);
    io_file_unref(file);
}

static void reserving_does_not_change_the_size(void **state)
{
    struct io_file *file = open_file(*state, "a", IO_OPEN_WRITE | IO_OPEN_CREATE);

    write_text(file, "abc", 0);
    assert_int_equal(io_file_reserve(file, 3, 1 << 20), ERR_NONE);
    assert_int_equal(size_of(file), 3);
    check_text(file, "abc");
    io_file_unref(file);
}

static void the_time_of_a_file_can_be_set(void **state)
{
    struct io_file *file = open_file(*state, "a", IO_OPEN_WRITE | IO_OPEN_CREATE);
    struct io_stat st;

    assert_int_equal(io_file_set_mtime(file, 1234567890123), ERR_NONE);
    assert_int_equal(io_file_stat(file, &st), ERR_NONE);
    assert_int_equal(st.mtime_ms, 1234567890123);
    io_file_unref(file);
}

static void make_file(struct fixture *f, const char *name, const char *text)
{
    struct io_file *file = open_file(f, name, IO_OPEN_WRITE | IO_OPEN_CREATE);

    write_text(file, text, 0);
    io_file_unref(file);
}

static void check_file(struct fixture *f, const char *name, const char *text)
{
    struct io_file *file = open_file(f, name, IO_OPEN_READ);

    check_text(file, text);
    io_file_unref(file);
}

static void names_are_renamed_linked_and_unlinked(void **state)
{
    struct fixture *f = *state;
    struct io_stat st;

    make_file(f, "a", "A");
    make_file(f, "b", "B");
    assert_int_equal(io_path_rename(f->io, in_dir("a"), in_dir("b")), ERR_NONE);
    check_file(f, "b", "A");
    assert_int_equal(io_path_stat(f->io, in_dir("a"), &st), ERR_NOT_FOUND);
    assert_int_equal(io_path_rename(f->io, in_dir("a"), in_dir("c")), ERR_NOT_FOUND);
    assert_int_equal(io_path_link(f->io, in_dir("b"), in_dir("c")), ERR_NONE);
    assert_int_equal(io_path_link(f->io, in_dir("b"), in_dir("c")), ERR_EXISTS);
    assert_int_equal(io_path_unlink(f->io, in_dir("b")), ERR_NONE);
    assert_int_equal(io_path_unlink(f->io, in_dir("b")), ERR_NOT_FOUND);
    check_file(f, "c", "A");
    assert_int_equal(io_path_stat(f->io, in_dir("c"), &st), ERR_NONE);
    assert_int_equal(st.size, 1);
    assert_false(st.is_dir);
}

/* The handle leads to the file and not to its name. */
static void an_open_file_survives_its_name(void **state)
{
    struct fixture *f = *state;
    struct io_file *file;

    make_file(f, "a", "text");
    file = open_file(f, "a", IO_OPEN_READ);
    assert_int_equal(io_path_unlink(f->io, in_dir("a")), ERR_NONE);
    check_text(file, "text");
    io_file_unref(file);
}

static void directories_are_made_listed_and_removed(void **state)
{
    struct fixture *f = *state;
    struct io_names names;
    struct io_stat st;

    assert_int_equal(io_dir_make(f->io, in_dir("d")), ERR_NONE);
    assert_int_equal(io_dir_make(f->io, in_dir("d")), ERR_EXISTS);
    assert_int_equal(io_dir_make(f->io, in_dir("x/y")), ERR_NOT_FOUND);
    make_file(f, "d/b", "");
    make_file(f, "d/B", "");
    make_file(f, "d/a", "");
    assert_int_equal(io_dir_sync(f->io, in_dir("d")), ERR_NONE);
    assert_int_equal(io_dir_list(f->io, in_dir("d"), &names), ERR_NONE);
    assert_int_equal(names.n, 3);
    assert_string_equal(names.v[0], "B");
    assert_string_equal(names.v[1], "a");
    assert_string_equal(names.v[2], "b");
    io_names_free(&names);
    assert_int_equal(names.n, 0);
    assert_int_equal(io_path_stat(f->io, in_dir("d"), &st), ERR_NONE);
    assert_true(st.is_dir);
    assert_int_equal(io_dir_remove(f->io, in_dir("d")), ERR_NOT_EMPTY);
    assert_int_equal(io_path_rename(f->io, in_dir("d"), in_dir("e")), ERR_NONE);
    for (const char *name = "abB"; *name; name++) {
        char path[] = {'e', '/', *name, '\0'};

        assert_int_equal(io_path_unlink(f->io, in_dir(path)), ERR_NONE);
    }
    assert_int_equal(io_dir_list(f->io, in_dir("e"), &names), ERR_NONE);
    assert_int_equal(names.n, 0);
    io_names_free(&names);
    assert_int_equal(io_dir_remove(f->io, in_dir("e")), ERR_NONE);
    assert_int_equal(io_dir_list(f->io, in_dir("e"), &names), ERR_NOT_FOUND);
}

static void a_small_file_is_replaced_and_read_whole(void **state)
{
    struct fixture *f = *state;
    struct io_stat st;
    char *text;
    size_t n;

    for (const char *content = "content"; *content; content += 3) {
        struct str s = str_of(content);

        assert_int_equal(
            io_file_replace(f->io, in_dir("a"), (struct bytes){(const uint8_t *)s.p, s.n}),
            ERR_NONE);
        assert_int_equal(io_file_read_all(f->io, in_dir("a"), 100, &text, &n), ERR_NONE);
        assert_int_equal(n, s.n);
        assert_string_equal(text, content);
        free(text);
        assert_int_equal(io_path_stat(f->io, in_dir("a.tmp"), &st), ERR_NOT_FOUND);
        if (s.n < 3)
            break;
    }
    assert_int_equal(io_file_replace(f->io, in_dir("a"), (struct bytes){NULL, 0}), ERR_NONE);
    assert_int_equal(io_file_read_all(f->io, in_dir("a"), 0, &text, &n), ERR_NONE);
    assert_int_equal(n, 0);
    free(text);
    make_file(f, "a", "four");
    assert_int_equal(io_file_read_all(f->io, in_dir("a"), 3, &text, &n), ERR_LIMIT);
    assert_null(text);
    assert_int_equal(io_file_read_all(f->io, in_dir("b"), 3, &text, &n), ERR_NOT_FOUND);
}

static void a_lock_excludes_others_until_it_is_released(void **state)
{
    struct fixture *f = *state;
    struct io_lock *lock;
    struct io_lock *second;
    struct io_stat st;

    assert_int_equal(io_lock_take(f->io, in_dir(".lock"), &lock), ERR_NONE);
    assert_int_equal(io_lock_take(f->io, in_dir(".lock"), &second), ERR_LOCKED);
    assert_null(second);
    /* The failed attempt must not have taken the lock away. */
    assert_int_equal(io_lock_take(f->io, in_dir(".lock"), &second), ERR_LOCKED);
    io_lock_release(lock);
    assert_int_equal(io_path_stat(f->io, in_dir(".lock"), &st), ERR_NOT_FOUND);
    assert_int_equal(io_lock_take(f->io, in_dir(".lock"), &lock), ERR_NONE);
    io_lock_release(lock);
}

static void a_file_system_has_space(void **state)
{
    struct fixture *f = *state;
    struct io_space space;

    assert_int_equal(io_fs_space(f->io, conformance_dir(), &space), ERR_NONE);
    assert_true(space.total > 0);
    assert_true(space.available > 0 && space.available <= space.total);
    assert_int_equal(io_fs_space(f->io, in_dir("none"), &space), ERR_NOT_FOUND);
}

struct cached_test {
    struct fixture *f;
    struct io_file *file;
};

static void start_cached(void *ctx)
{
    struct cached_test *test = ctx;
    char got[16];
    size_t n;
    enum err err = io_read_cached(test->file, got, sizeof(got), 2, &n);

    /* "Not here, ask the disk" is an honest answer at any time. */
    assert_true(err == ERR_NONE || err == ERR_AGAIN);
    if (!err) {
        assert_true(n > 0 && n <= 4);
        assert_memory_equal(got, "cdef", n);
        assert_int_equal(io_read_cached(test->file, got, sizeof(got), 6, &n), ERR_NONE);
    }
    assert_int_equal(n, 0);
    io_stop(test->f->io);
}

static void a_loop_reads_what_the_cache_holds(void **state)
{
    struct cached_test test = {.f = *state};

    make_file(test.f, "a", "abcdef");
    test.file = open_file(test.f, "a", IO_OPEN_READ);
    run(test.f, start_cached, &test);
    io_file_unref(test.file);
}

int conformance_files(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_opened_as_the_flags_say),
        TEST(a_file_lives_until_its_last_reference),
        TEST(reads_and_writes_are_positioned),
        TEST(truncating_cuts_and_grows_with_zeros),
        TEST(reserving_does_not_change_the_size),
        TEST(the_time_of_a_file_can_be_set),
        TEST(names_are_renamed_linked_and_unlinked),
        TEST(an_open_file_survives_its_name),
        TEST(directories_are_made_listed_and_removed),
        TEST(a_small_file_is_replaced_and_read_whole),
        TEST(a_lock_excludes_others_until_it_is_released),
        TEST(a_file_system_has_space),
        TEST(a_loop_reads_what_the_cache_holds),
    };

    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
