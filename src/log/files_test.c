/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "log/files_int.h"

/* ---- Names ------------------------------------------------------------------------------ */

static void check_dir(const char *name, const char *topic, int partition)
{
    char *t;
    int32_t p;

    assert_true(partition_dir_parse(name, &t, &p));
    assert_string_equal(t, topic);
    assert_int_equal(p, partition);
    free(t);
}

static void a_partition_directory_splits_at_its_last_dash(void **state)
{
    (void)state;
    check_dir("orders-0", "orders", 0);
    check_dir("a-b.c-12", "a-b.c", 12);
    check_dir("__consumer_offsets-49", "__consumer_offsets", 49);
}

static void foreign_names_are_no_partitions(void **state)
{
    static const char *const names[] = {"lost+found",
                                        "orders",
                                        "orders-",
                                        "orders-x",
                                        "-0",
                                        "orders-99999999999",
                                        "..-0",
                                        "orders-0.0123456789abcdef0123456789abcdef-delete",
                                        "orders-0.0123456789abcdef0123456789abcdef-stray"};
    char *t;
    int32_t p;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_false(partition_dir_parse(names[i], &t, &p));
    assert_false(partition_dir_parse("orders-07", &t, &p)); /* "orders-7" has that number. */
    assert_true(partition_dir_is_doomed(names[7]));
    assert_false(partition_dir_is_doomed(names[8]));
    assert_false(partition_dir_is_doomed("my-delete"));
}

static void a_doomed_name_fits_into_a_directory(void **state)
{
    char topic[250];
    char *name;

    (void)state;
    memset(topic, 'x', 249);
    topic[249] = '\0';
    name = partition_dir_doomed_name(topic, 12345, uuid_from_random(1, 2));
    assert_int_equal(strlen(name), 255);
    assert_true(partition_dir_is_doomed(name));
    free(name);
}

static void offset_names_have_twenty_digits(void **state)
{
    char *path = offset_path("/d", 12345, ".log");
    int64_t offset;

    (void)state;
    assert_string_equal(path, "/d/00000000000000012345.log");
    free(path);
    assert_true(offset_name_parse("00000000000000012345.log", ".log", &offset));
    assert_int_equal(offset, 12345);
    assert_false(offset_name_parse("00000000000000012345.log.swap", ".log", &offset));
    assert_false(offset_name_parse("12345.log", ".log", &offset));
    assert_false(offset_name_parse("99999999999999999999.log", ".log", &offset));
    assert_true(offset_name_parse("00000000000000012345.log.swap", ".log.swap", &offset));
}

/* ---- Checkpoints ------------------------------------------------------------------------ */

static void a_checkpoint_is_read_back(void **state)
{
    struct checkpoint c = {.v = NULL};
    struct checkpoint again;
    struct buf out;

    (void)state;
    buf_init(&out);
    assert_true(checkpoint_put(&c, "b", 0, 7));
    assert_true(checkpoint_put(&c, "a", 10, 5));
    assert_true(checkpoint_put(&c, "a", 2, 6));
    assert_false(checkpoint_put(&c, "a", 2, 6));
    assert_true(checkpoint_put(&c, "a", 2, 8));
    checkpoint_format(&c, &out);
    assert_int_equal(out.n, strlen("0\n3\na 2 8\na 10 5\nb 0 7\n"));
    assert_memory_equal(out.p, "0\n3\na 2 8\na 10 5\nb 0 7\n", out.n);
    assert_int_equal(
        checkpoint_parse((struct str){.p = (char *)out.p, .n = (int32_t)out.n}, &again), ERR_NONE);
    assert_int_equal(checkpoint_get(&again, "a", 10, -1), 5);
    assert_int_equal(checkpoint_get(&again, "a", 3, -1), -1);
    assert_true(checkpoint_remove(&again, "a", 10));
    assert_false(checkpoint_remove(&again, "a", 10));
    checkpoint_fini(&c);
    checkpoint_fini(&again);
    buf_fini(&out);
}

static enum err parse_checkpoint(const char *text)
{
    struct checkpoint c;
    enum err err = checkpoint_parse(str_of(text), &c);

    checkpoint_fini(&c);
    return err;
}

static void a_checkpoint_that_does_not_add_up_is_refused(void **state)
{
    (void)state;
    assert_int_equal(parse_checkpoint(""), ERR_NONE);
    assert_int_equal(parse_checkpoint("0\n"), ERR_NONE);
    assert_int_equal(parse_checkpoint("0\n1\na  3\t5\n"), ERR_NONE);
    assert_int_equal(parse_checkpoint("1\n0\n"), ERR_BAD_VERSION);
    assert_int_equal(parse_checkpoint("0\n2\na 3 5\n"), ERR_CORRUPT);
    assert_int_equal(parse_checkpoint("0\n1\na 3\n"), ERR_CORRUPT);
    assert_int_equal(parse_checkpoint("0\n1\na 3 x\n"), ERR_CORRUPT);
    assert_int_equal(parse_checkpoint("0\n1\na 3 5 6\n"), ERR_CORRUPT);
    assert_int_equal(parse_checkpoint("0\n1\na 3 -5\n"), ERR_CORRUPT);
    assert_int_equal(parse_checkpoint("0\n1\na/b 3 5\n"), ERR_CORRUPT);
}

/* ---- Epochs ----------------------------------------------------------------------------- */

static void check_end(const struct epochs *e, int32_t asked, int32_t epoch, int64_t offset)
{
    int32_t found;
    int64_t end;

    epochs_end(e, asked, 100, &found, &end);
    assert_int_equal(found, epoch);
    assert_int_equal(end, offset);
}

static void an_epoch_ends_where_the_next_begins(void **state)
{
    struct epochs e = {.v = NULL};

    (void)state;
    check_end(&e, 0, -1, -1);
    assert_true(epochs_assign(&e, 2, 10));
    assert_true(epochs_assign(&e, 5, 30));
    assert_false(epochs_assign(&e, 5, 30));
    assert_true(epochs_assign(&e, 7, 60));
    check_end(&e, 7, 7, 100);
    check_end(&e, 8, -1, -1);
    check_end(&e, 6, 5, 60);
    check_end(&e, 5, 5, 60);
    check_end(&e, 4, 2, 30);
    check_end(&e, 1, 1, 10);
    check_end(&e, -1, -1, -1);
    assert_int_equal(epochs_at(&e, 9), -1);
    assert_int_equal(epochs_at(&e, 30), 5);
    assert_int_equal(epochs_at(&e, 99), 7);
    epochs_fini(&e);
}

static void a_new_epoch_displaces_what_cannot_be(void **state)
{
    struct epochs e = {.v = NULL};

    (void)state;
    epochs_assign(&e, 0, 0);
    epochs_assign(&e, 3, 10);
    epochs_assign(&e, 4, 20);
    epochs_assign(&e, 5, 10); /* starts where 3 did: 3 and 4 hold nothing */
    assert_int_equal(e.n, 2);
    assert_int_equal(e.v[1].epoch, 5);
    epochs_fini(&e);
}

static void epochs_are_trimmed_at_both_ends(void **state)
{
    struct epochs e = {.v = NULL};

    (void)state;
    for (int32_t i = 0; i < 5; i++)
        epochs_assign(&e, i, 10 * i);
    assert_true(epochs_truncate_end(&e, 40));
    assert_int_equal(epochs_latest(&e), 3);
    assert_false(epochs_truncate_end(&e, 40));
    assert_true(epochs_truncate_start(&e, 15));
    assert_int_equal(e.n, 3);
    assert_int_equal(e.v[0].epoch, 1);
    assert_int_equal(e.v[0].start, 15);
    assert_true(epochs_truncate_start(&e, 30));
    assert_int_equal(e.n, 1);
    assert_int_equal(e.v[0].epoch, 3);
    assert_false(epochs_truncate_start(&e, 30));
    epochs_fini(&e);
}

static void epochs_are_read_back(void **state)
{
    struct epochs e = {.v = NULL};
    struct epochs again;
    struct buf out;

    (void)state;
    buf_init(&out);
    epochs_assign(&e, 0, 0);
    epochs_assign(&e, 12, 345);
    epochs_format(&e, &out);
    assert_memory_equal(out.p, "0\n2\n0 0\n12 345\n", out.n);
    assert_int_equal(epochs_parse((struct str){.p = (char *)out.p, .n = (int32_t)out.n}, &again),
                     ERR_NONE);
    assert_int_equal(again.n, 2);
    epochs_fini(&again);
    assert_int_equal(epochs_parse(str_of(""), &again), ERR_NONE);
    assert_int_equal(epochs_parse(str_of("0\n1\n0 0 0\n"), &again), ERR_CORRUPT);
    assert_int_equal(epochs_parse(str_of("0\n2\n0 0\n"), &again), ERR_CORRUPT);
    epochs_fini(&e);
    buf_fini(&out);
}

/* ---- Identity --------------------------------------------------------------------------- */

static void meta_properties_of_java_are_understood(void **state)
{
    static const char text[] = "#\n#Sat Oct 26 12:00:00 UTC 2024\ncluster.id=abc\\=\\=\n"
                               "version=1\n node.id : 7\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n";
    struct meta_properties m;
    char id[UUID_TEXT_BYTES];

    (void)state;
    assert_int_equal(meta_properties_parse(str_of(text), &m), ERR_NONE);
    assert_string_equal(m.cluster_id, "abc==");
    assert_int_equal(m.node_id, 7);
    uuid_to_text(m.directory_id, id);
    assert_string_equal(id, "AAECAwQFBgcICQoLDA0ODw");
    meta_properties_fini(&m);
    assert_int_equal(meta_properties_parse(str_of("version=2\n"), &m), ERR_BAD_VERSION);
    assert_int_equal(meta_properties_parse(str_of("node.id=x\n"), &m), ERR_CORRUPT);
    assert_int_equal(meta_properties_parse(str_of("cluster.id=a\rb\n"), &m), ERR_CORRUPT);
    assert_int_equal(meta_properties_parse(str_of("broker.id=3\n"), &m), ERR_NONE);
    assert_int_equal(m.node_id, 3);
    meta_properties_fini(&m);
}

static void meta_properties_are_read_back(void **state)
{
    struct meta_properties m = {.cluster_id = xstrdup("a:b=c#\\"), .node_id = 4};
    struct meta_properties again;
    struct buf out;

    (void)state;
    buf_init(&out);
    m.directory_id = uuid_from_random(3, 4);
    meta_properties_format(&m, &out);
    assert_int_equal(
        meta_properties_parse((struct str){.p = (char *)out.p, .n = (int32_t)out.n}, &again),
        ERR_NONE);
    assert_string_equal(again.cluster_id, m.cluster_id);
    assert_int_equal(again.node_id, 4);
    assert_true(uuid_eq(again.directory_id, m.directory_id));
    meta_properties_fini(&m);
    meta_properties_fini(&again);
    buf_fini(&out);
}

static void meta_properties_keep_their_version(void **state)
{
    struct meta_properties m;
    struct buf out;

    (void)state;
    buf_init(&out);
    assert_int_equal(meta_properties_parse(str_of("broker.id=3\ncluster.id=c\n"), &m), ERR_NONE);
    m.directory_id = uuid_from_random(3, 4);
    meta_properties_format(&m, &out);
    buf_append(&out, "", 1);
    assert_non_null(strstr((char *)out.p, "version=0\nbroker.id=3\n"));
    meta_properties_fini(&m);
    assert_int_equal(meta_properties_parse(str_of("version=1\nnode.id=3\ncluster.id=c\n"), &m),
                     ERR_NONE);
    meta_properties_format(&m, &out);
    buf_append(&out, "", 1);
    assert_non_null(strstr((char *)out.p, "version=1\nnode.id=3\n"));
    meta_properties_fini(&m);
    buf_fini(&out);
}

static void partition_metadata_has_no_last_newline(void **state)
{
    struct uuid id;
    struct buf out;

    (void)state;
    buf_init(&out);
    assert_int_equal(
        partition_metadata_parse(str_of("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"), &id),
        ERR_NONE);
    partition_metadata_format(id, &out);
    assert_int_equal(out.n, strlen("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"));
    assert_memory_equal(out.p, "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw", out.n);
    assert_int_equal(partition_metadata_parse(str_of(""), &id), ERR_CORRUPT);
    assert_int_equal(
        partition_metadata_parse(str_of("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"), &id),
        ERR_CORRUPT);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_directory_splits_at_its_last_dash),
        cmocka_unit_test(foreign_names_are_no_partitions),
        cmocka_unit_test(a_doomed_name_fits_into_a_directory),
        cmocka_unit_test(offset_names_have_twenty_digits),
        cmocka_unit_test(a_checkpoint_is_read_back),
        cmocka_unit_test(a_checkpoint_that_does_not_add_up_is_refused),
        cmocka_unit_test(an_epoch_ends_where_the_next_begins),
        cmocka_unit_test(a_new_epoch_displaces_what_cannot_be),
        cmocka_unit_test(epochs_are_trimmed_at_both_ends),
        cmocka_unit_test(epochs_are_read_back),
        cmocka_unit_test(meta_properties_of_java_are_understood),
        cmocka_unit_test(meta_properties_are_read_back),
        cmocka_unit_test(meta_properties_keep_their_version),
        cmocka_unit_test(partition_metadata_has_no_last_newline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
