/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that we did not make: written by real clients and brokers, kept as hex text under
 * tests/golden. The files of `batches` hold nothing but batches; in the frames of requests and
 * responses they are found by their checksum, at whatever position they stand.
 *
 * Each has to parse, iterate and validate; its records, built again without a codec, have to come
 * out byte for byte as the peer wrote them; and a rebuild in each codec keeps every record.
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

static struct buf read_hex_file(const char *folder, const char *name)
{
    char *text = xmalloc(FILE_BYTES_MAX);
    struct buf b = {0};
    char path[1024];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(text, FILE_BYTES_MAX, file)) {
        if (text[0] != '#')
            put_hex(&b, text);
    }
    fclose(file);
    free(text);
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
    /* Under log append time the deltas stay the producer's: only the header says otherwise. */
    b.base_timestamp = it.header.base_timestamp;
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
    bool is_dense;

    assert_int_equal(batch_header_parse(copy, &h), ERR_NONE);
    is_dense = h.record_count == h.last_offset_delta + 1;
    check_built_again(copy, &h);
    if (batch_timestamp_type(&h) == TIMESTAMP_CREATE && h.record_count > 0) {
        check_verdict(copy);
        if (is_dense && !(h.attributes & BATCH_DELETE_HORIZON))
            check_rebuilt(copy, &h);
    }
    free((void *)copy.p);
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

/* All files of a folder; `only`: they must hold nothing but batches. */
static int check_folder(const char *folder, bool only)
{
    struct dirent **names;
    int n = scandir(folder, &names, NULL, alphasort);
    int count = 0;

    assert_true(n >= 0);
    for (int i = 0; i < n; i++) {
        if (strstr(names[i]->d_name, ".hex")) {
            struct buf b = read_hex_file(folder, names[i]->d_name);
            int32_t left;
            int found = check_all(names[i]->d_name, buf_bytes(&b, 0), &left);

            if (only && (found == 0 || left > 0))
                fail_msg("%s: %d batches, %d other bytes", names[i]->d_name, found, left);
            count += found;
            buf_fini(&b);
        }
        free(names[i]);
    }
    free(names);
    return count;
}

static void test_batches_in_frames(void **state)
{
    (void)state;
    assert_true(check_folder("tests/golden/frames", false) >= FRAME_BATCHES_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_in_frames),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
