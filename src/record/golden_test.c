/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that we did not make: written by real clients and brokers, kept as hex text under
 * tests/golden. The files of `batches` hold nothing but batches; in the frames of requests and
 * responses they are found by their checksum, at whatever position they stand.
 *
 * Each has to parse, iterate and validate; its records, built again without a codec, have to come
 * out byte for byte as the peer wrote them; and a rebuild in each codec keeps every record. Beside
 * most files of `batches` lies a listing of the records that the peer was given:
 *
 *     offset timestamp key value headers     all in hex behind an x; null; - for no headers
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"
#include "record/testing.h"

#define FILE_BYTES_MAX (4 * 1024 * 1024)
/* Fewer in the frames would mean that this test looks at nothing. */
#define FRAME_BATCHES_MIN 20

/* The lines of a file that are no comments, NUL behind them. False: there is no such file. */
static bool read_lines(const char *folder, const char *name, struct buf *out)
{
    char *line = xmalloc(FILE_BYTES_MAX);
    char path[1024];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "r");
    while (file && fgets(line, FILE_BYTES_MAX, file)) {
        if (line[0] != '#')
            buf_append(out, line, strlen(line));
    }
    if (file)
        fclose(file);
    buf_append(out, "", 1);
    free(line);
    return file != NULL;
}

static struct buf read_hex_file(const char *folder, const char *name)
{
    struct buf text = {0}, b = {0};

    assert_true(read_lines(folder, name, &text));
    put_hex(&b, (const char *)text.p);
    buf_fini(&text);
    return b;
}

/* ---- What must hold of one batch. ------------------------------------------------------- */

/* The records part of a batch without its codec. */
static void put_plain_records(struct buf *out, struct bytes batch, const struct batch_header *h)
{
    struct decompressor *d = decompressor_new();
    struct bytes in = {.p = batch.p + AT_RECORDS, .n = batch.n - AT_RECORDS};
    size_t n = 0;

    decompressor_start(d, h->record_count ? batch_codec(h) : CODEC_NONE, in, 1 << 28);
    do {
        assert_int_equal(decompressor_read(d, buf_reserve(out, 4096), 4096, &n), ERR_NONE);
        out->n += n;
    } while (n > 0);
    decompressor_free(d);
}

/* Reads every record and builds the batch again, uncompressed. */
static void put_built_again(struct buf *out, struct bytes batch)
{
    struct record_iter it;
    struct batch_builder b;
    struct batch_spec spec;
    struct record r;
    enum err err;

    record_iter_init(&it);
    assert_int_equal(record_iter_batch(&it, batch), ERR_NONE);
    spec = batch_spec_of(&it.header);
    spec.codec = CODEC_NONE;
    batch_builder_init(&b, &spec);
    while (!(err = record_iter_next(&it, &r)))
        assert_int_equal(batch_builder_append_at(&b, &r), ERR_NONE);
    assert_int_equal(err, ERR_EOF);
    batch_builder_finish(&b, out);
    batch_builder_fini(&b);
    record_iter_fini(&it);
}

static void check_built_again(struct bytes batch, const struct batch_header *h)
{
    struct buf plain = {0}, again = {0};

    put_plain_records(&plain, batch, h);
    put_built_again(&again, batch);
    assert_bytes_equal(buf_bytes(&plain, 0), buf_bytes(&again, AT_RECORDS));
    if (batch_codec(h) == CODEC_NONE)
        assert_bytes_equal(buf_bytes(&again, 0), batch);
    buf_fini(&plain);
    buf_fini(&again);
}

static void check_verdict(struct bytes batch)
{
    struct batch_rules rules = {
        .max_message_bytes = INT32_MAX,
        .segment_bytes = INT32_MAX,
        .before_max_ms = INT64_MAX,
        .after_max_ms = INT64_MAX,
        .target_codec = -1,
    };
    struct decompressor *d = decompressor_new();
    struct batch_verdict verdict;
    struct arena arena;

    arena_init(&arena, 0);
    assert_int_equal(batch_validate(batch, &rules, d, &arena, &verdict), ERR_NONE);
    assert_false(verdict.needs_max_timestamp);
    arena_fini(&arena);
    decompressor_free(d);
}

static void check_rebuilt(struct bytes batch, const struct batch_header *h)
{
    struct buf plain = {0}, packed = {0}, unpacked = {0};

    put_built_again(&plain, batch);
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        buf_reset(&packed);
        buf_reset(&unpacked);
        assert_int_equal(batch_rebuild(batch, (enum codec)codec, CODEC_LEVEL_DEFAULT,
                                       TIMESTAMP_CREATE, h->max_timestamp, &packed),
                         ERR_NONE);
        put_built_again(&unpacked, buf_bytes(&packed, 0));
        assert_bytes_equal(buf_bytes(&unpacked, AT_RECORDS), buf_bytes(&plain, AT_RECORDS));
    }
    buf_fini(&plain);
    buf_fini(&packed);
    buf_fini(&unpacked);
}

static void check_batch(struct bytes batch)
{
    struct bytes copy = heap_copy(batch);
    struct batch_header h;
    bool is_dense, is_fresh;

    assert_int_equal(batch_header_parse(copy, &h), ERR_NONE);
    is_dense = h.record_count == h.last_offset_delta + 1;
    is_fresh = batch_timestamp_type(&h) == TIMESTAMP_CREATE && h.record_count > 0;
    /* Under log append time the producer's timestamps are gone for every reader. */
    if (batch_timestamp_type(&h) == TIMESTAMP_CREATE)
        check_built_again(copy, &h);
    if (is_fresh)
        check_verdict(copy);
    if (is_fresh && is_dense && !(h.attributes & BATCH_DELETE_HORIZON))
        check_rebuilt(copy, &h);
    free((void *)copy.p);
}

/* ---- Listings. -------------------------------------------------------------------------- */

static void list_bytes(struct buf *out, const void *p, int32_t n)
{
    if (n < 0)
        buf_append(out, "null", 4);
    else
        buf_append(out, "x", 1);
    for (int32_t i = 0; i < n; i++) {
        snprintf((char *)buf_reserve(out, 3), 3, "%02x", ((const uint8_t *)p)[i]);
        out->n += 2;
    }
}

static void list_headers(struct buf *out, const struct record *r)
{
    struct bytes left = r->headers;
    struct bytes value;
    struct str key;

    if (r->header_count == 0)
        buf_append(out, "-", 1);
    for (int32_t i = 0; i < r->header_count; i++) {
        assert_true(record_headers_next(&left, &key, &value));
        if (i > 0)
            buf_append(out, ",", 1);
        list_bytes(out, key.p, key.n);
        buf_append(out, "=", 1);
        list_bytes(out, value.p, value.n);
    }
    assert_false(record_headers_next(&left, &key, &value));
}

static void list_batch(struct buf *out, struct record_iter *it, struct bytes batch)
{
    struct record r;
    enum err err = record_iter_batch(it, batch);

    while (!err && !(err = record_iter_next(it, &r))) {
        out->n += (size_t)snprintf((char *)buf_reserve(out, 64), 64, "%lld %lld ",
                                   (long long)r.offset, (long long)r.timestamp);
        list_bytes(out, r.key.p, r.key.n);
        buf_append(out, " ", 1);
        list_bytes(out, r.value.p, r.value.n);
        buf_append(out, " ", 1);
        list_headers(out, &r);
        buf_append(out, "\n", 1);
    }
    assert_int_equal(err, ERR_EOF);
}

/* Compares with the listing beside x.hex, x.txt; false when there is none. */
static bool check_listing(const char *folder, const char *name, struct bytes batches)
{
    struct buf want = {0}, got = {0};
    struct record_iter it;
    char text[300];
    bool exists;
    int32_t total;

    snprintf(text, sizeof(text), "%.*s.txt", (int)strlen(name) - 4, name);
    exists = read_lines(folder, text, &want);
    record_iter_init(&it);
    while (exists && batch_frame(batches, &total) == ERR_NONE) {
        list_batch(&got, &it, (struct bytes){.p = batches.p, .n = total});
        batches.p += total;
        batches.n -= total;
    }
    record_iter_fini(&it);
    buf_append(&got, "", 1);
    if (exists)
        assert_string_equal((char *)got.p, (char *)want.p);
    buf_fini(&want);
    buf_fini(&got);
    return exists;
}

/* ---- Finding them. ---------------------------------------------------------------------- */

/* Bytes of the batch that starts here; 0 when none does. */
static int32_t batch_at(struct bytes in)
{
    int32_t total;

    if (batch_frame(in, &total) || total > in.n)
        return 0;
    return batch_crc_ok((struct bytes){.p = in.p, .n = total}) ? total : 0;
}

/* Checks all batches in `in` and returns how many; *left: bytes that belong to none. */
static int check_all(const char *name, struct bytes in, int32_t *left)
{
    int count = 0;

    *left = 0;
    while (in.n > 0) {
        int32_t total = batch_at(in);

        if (total > 0) {
            print_message("%s: batch of %d bytes\n", name, total);
            check_batch((struct bytes){.p = in.p, .n = total});
            count++;
        }
        *left += total == 0;
        in.p += MAX(total, 1);
        in.n -= MAX(total, 1);
    }
    return count;
}

struct tally {
    int files, batches, other_bytes, listings;
};

/* Checks all files of a folder. */
static struct tally check_folder(const char *folder)
{
    struct dirent **names;
    struct tally t = {0};
    int n = scandir(folder, &names, NULL, alphasort);

    assert_true(n >= 0);
    for (int i = 0; i < n; i++) {
        if (strstr(names[i]->d_name, ".hex")) {
            struct buf b = read_hex_file(folder, names[i]->d_name);
            int32_t left;

            t.files++;
            t.batches += check_all(names[i]->d_name, buf_bytes(&b, 0), &left);
            t.other_bytes += left;
            t.listings += check_listing(folder, names[i]->d_name, buf_bytes(&b, 0));
            buf_fini(&b);
        }
        free(names[i]);
    }
    free(names);
    return t;
}

static void test_files_of_batches(void **state)
{
    struct tally t = check_folder("tests/golden/batches");

    (void)state;
    assert_true(t.files > 0);
    assert_true(t.batches >= t.files);
    assert_int_equal(t.other_bytes, 0);
    assert_true(t.listings > 0);
}

static void test_batches_in_frames(void **state)
{
    (void)state;
    assert_true(check_folder("tests/golden/frames").batches >= FRAME_BATCHES_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_batches),
        cmocka_unit_test(test_batches_in_frames),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
