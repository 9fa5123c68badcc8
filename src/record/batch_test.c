/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers, iteration, building and control records. The golden vectors were laid out by hand from
 * the format: what is built has to equal them byte for byte, and what is read has to give the
 * values back. Damaged batches lie on the heap in their exact size.
 */
#include "base/limits.h"
#include "record/testing.h"

static const char *const golden_two =
    "0000000000000000 00000043 00000000 02 66b01525 0000 00000001 0000018bcfe56800"
    "0000018bcfe56805 ffffffffffffffff ffff ffffffff 00000002"
    "10 00 00 00 02 6b 02 76 00  10 00 0a 02 04 6b32 01 00";
static const char *const golden_empty =
    "000000000000000a 00000031 00000002 02 7295b5e3 0010 00000004 ffffffffffffffff"
    "0000018bcfe56800 00000000000003e8 0003 00000007 00000000";
static const char *const golden_commit =
    "000000000000000f 00000042 00000002 02 59e99e41 0030 00000000 0000018bcfe56800"
    "0000018bcfe56800 00000000000003e8 0003 ffffffff 00000001"
    "20 00 00 00 08 00000001 0c 000000000009 00";
static const char *const golden_abort =
    "000000000000000f 00000042 00000002 02 add74809 0030 00000000 0000018bcfe56800"
    "0000018bcfe56800 00000000000003e8 0003 ffffffff 00000001"
    "20 00 00 00 08 00000000 0c 000000000009 00";
static const char *const golden_tombstone =
    "0000000000000014 0000003c 00000002 02 b06ca6c8 0040 00000000 0000018bd50bc400"
    "0000018bcfe56800 ffffffffffffffff ffff ffffffff 00000001"
    "14 00 ffefb252 00 02 6b 01 00";

static const char *const all_golden[] = {
    golden_two, golden_empty, golden_commit, golden_abort, golden_tombstone,
};

static void assert_is_golden(const struct buf *built, const char *hex)
{
    struct buf golden = {0};

    put_hex(&golden, hex);
    assert_bytes_equal(buf_bytes(built, 0), buf_bytes(&golden, 0));
    buf_fini(&golden);
}

/* ---- Headers. --------------------------------------------------------------------------- */

static void test_golden_headers_parse_and_print_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all_golden); i++) {
        struct buf b = {0};
        struct batch_header h;
        uint8_t again[BATCH_HEADER_BYTES];
        int32_t total;

        put_hex(&b, all_golden[i]);
        assert_int_equal(batch_frame(buf_bytes(&b, 0), &total), ERR_NONE);
        assert_int_equal(total, b.n);
        assert_int_equal(batch_header_parse(buf_bytes(&b, 0), &h), ERR_NONE);
        assert_int_equal(batch_total_bytes(&h), b.n);
        assert_true(batch_crc_ok(buf_bytes(&b, 0)));
        batch_header_put(again, &h);
        assert_memory_equal(again, b.p, BATCH_HEADER_BYTES);
        buf_fini(&b);
    }
}

static void test_header_fields(void **state)
{
    struct buf b = {0};
    struct batch_header h;

    (void)state;
    put_hex(&b, golden_empty);
    assert_int_equal(batch_header_parse(buf_bytes(&b, 0), &h), ERR_NONE);
    assert_int_equal(h.base_offset, 10);
    assert_int_equal(h.leader_epoch, 2);
    assert_int_equal(h.crc, 0x7295b5e3);
    assert_int_equal(batch_last_offset(&h), 14);
    assert_int_equal(h.base_timestamp, -1);
    assert_int_equal(h.max_timestamp, TS);
    assert_int_equal(h.producer_id, 1000);
    assert_int_equal(h.producer_epoch, 3);
    assert_int_equal(h.base_sequence, 7);
    assert_int_equal(batch_last_sequence(&h), 11);
    assert_int_equal(h.record_count, 0);
    assert_true(batch_is_transactional(&h));
    assert_false(batch_is_control(&h));
    assert_int_equal(batch_codec(&h), CODEC_NONE);
    assert_int_equal(batch_timestamp_type(&h), TIMESTAMP_CREATE);
    buf_fini(&b);
}

static void test_last_sequence_wraps_to_zero(void **state)
{
    struct batch_header h = {.base_sequence = INT32_MAX, .last_offset_delta = 0};

    (void)state;
    assert_int_equal(batch_last_sequence(&h), INT32_MAX);
    h.last_offset_delta = 1;
    assert_int_equal(batch_last_sequence(&h), 0);
    h.base_sequence = INT32_MAX - 2;
    h.last_offset_delta = 9;
    assert_int_equal(batch_last_sequence(&h), 6);
    h.base_sequence = -1;
    assert_int_equal(batch_last_sequence(&h), -1);
}

/* A golden batch with one field changed. */
static enum err frame_with(int at, int size, int64_t value, int32_t n, int32_t *total)
{
    struct buf b = {0};
    enum err err;

    put_hex(&b, golden_two);
    if (size == 1)
        b.p[at] = (uint8_t)value;
    else
        put_i32(b.p + at, (int32_t)value);
    err = batch_frame((struct bytes){.p = b.p, .n = n}, total);
    buf_fini(&b);
    return err;
}

static void test_frames_that_are_none(void **state)
{
    uint8_t zeros[BATCH_FRAME_BYTES] = {0};
    int32_t total;

    (void)state;
    assert_int_equal(frame_with(AT_MAGIC, 1, 2, 16, &total), ERR_AGAIN);
    assert_int_equal(frame_with(AT_MAGIC, 1, 2, 17, &total), ERR_NONE);
    assert_int_equal(total, 79);
    assert_int_equal(batch_frame((struct bytes){.p = zeros, .n = 17}, &total), ERR_CORRUPT_MESSAGE);
    assert_int_equal(frame_with(AT_LENGTH, 4, 48, 79, &total), ERR_CORRUPT_MESSAGE);
    assert_int_equal(frame_with(AT_LENGTH, 4, 49, 79, &total), ERR_NONE);
    assert_int_equal(frame_with(AT_LENGTH, 4, -1, 79, &total), ERR_CORRUPT_MESSAGE);
    assert_int_equal(frame_with(AT_LENGTH, 4, INT32_MAX, 79, &total), ERR_CORRUPT_MESSAGE);
    assert_int_equal(frame_with(AT_MAGIC, 1, 3, 79, &total), ERR_CORRUPT_MESSAGE);
    assert_int_equal(frame_with(AT_MAGIC, 1, 0xff, 79, &total), ERR_CORRUPT_MESSAGE);
    assert_int_equal(frame_with(AT_MAGIC, 1, 1, 79, &total), ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT);
    assert_int_equal(total, 79);
}

static void test_headers_out_of_range_are_corrupt(void **state)
{
    static const struct {
        int at, size;
        uint64_t value;
    } bad[] = {
        {AT_LENGTH, 4, 48},
        {AT_MAGIC, 1, 1},
        {AT_LAST_OFFSET_DELTA, 4, 0xffffffff},
        {AT_RECORD_COUNT, 4, 0x80000000},
        {AT_BASE_OFFSET, 8, UINT64_MAX},
        {AT_BASE_OFFSET, 8, INT64_MAX},
    };
    struct batch_header h;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct buf b = {0};

        put_hex(&b, golden_two);
        for (int byte = 0; byte < bad[i].size; byte++)
            b.p[bad[i].at + byte] = (uint8_t)(bad[i].value >> 8 * (bad[i].size - 1 - byte));
        assert_int_equal(batch_header_parse(buf_bytes(&b, 0), &h), ERR_CORRUPT_MESSAGE);
        buf_fini(&b);
    }
}

static void test_stamp_leaves_the_crc_alone(void **state)
{
    struct buf b = {0};
    struct batch_header h;

    (void)state;
    put_hex(&b, golden_two);
    batch_stamp(b.p, 123456789012, 17);
    assert_true(batch_crc_ok(buf_bytes(&b, 0)));
    assert_int_equal(batch_header_parse(buf_bytes(&b, 0), &h), ERR_NONE);
    assert_int_equal(h.base_offset, 123456789012);
    assert_int_equal(h.leader_epoch, 17);
    buf_fini(&b);
}

static void test_max_timestamp_sets_type_and_crc(void **state)
{
    struct buf b = {0};
    struct batch_header h;

    (void)state;
    put_hex(&b, golden_two);
    batch_set_max_timestamp(b.p, b.n, TIMESTAMP_LOG_APPEND, TS + 99);
    assert_true(batch_crc_ok(buf_bytes(&b, 0)));
    assert_int_equal(batch_header_parse(buf_bytes(&b, 0), &h), ERR_NONE);
    assert_int_equal(batch_timestamp_type(&h), TIMESTAMP_LOG_APPEND);
    assert_int_equal(h.max_timestamp, TS + 99);
    batch_set_max_timestamp(b.p, b.n, TIMESTAMP_CREATE, TS + 5);
    assert_is_golden(&b, golden_two);
    buf_fini(&b);
}

static void test_crc_covers_every_byte_from_the_attributes_on(void **state)
{
    struct buf b = {0};

    (void)state;
    put_hex(&b, golden_two);
    for (size_t i = 0; i < b.n; i++) {
        b.p[i] ^= 1;
        assert_int_equal(batch_crc_ok(buf_bytes(&b, 0)), i < AT_CRC);
        b.p[i] ^= 1;
    }
    /* Right sums over less than a header do not count. */
    for (int32_t n = 0; n < BATCH_HEADER_BYTES; n++) {
        put_u32(b.p + AT_CRC, crc32c(b.p + AT_ATTRIBUTES, (size_t)MAX(n - AT_ATTRIBUTES, 0)));
        assert_false(batch_crc_ok((struct bytes){.p = b.p, .n = n}));
    }
    buf_fini(&b);
}

/* ---- Building. -------------------------------------------------------------------------- */

static void test_built_batches_equal_the_golden_ones(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    struct buf out = {0};
    struct record first = record_of("k", "v", TS);
    struct record second = record_of("k2", NULL, TS + 5);

    (void)state;
    spec.leader_epoch = 0;
    batch_builder_init(&b, &spec);
    assert_int_equal(batch_builder_append(&b, &first), ERR_NONE);
    assert_int_equal(batch_builder_append(&b, &second), ERR_NONE);
    assert_int_equal(batch_builder_bytes(&b), 79);
    batch_builder_finish(&b, &out);
    assert_is_golden(&out, golden_two);
    batch_builder_fini(&b);
    buf_fini(&out);
}

static void test_emptied_batch(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    struct buf out = {0};

    (void)state;
    spec.codec = CODEC_ZSTD;
    spec.base_offset = 10;
    spec.leader_epoch = 2;
    spec.last_offset_delta = 4;
    spec.max_timestamp = TS;
    spec.producer_id = 1000;
    spec.producer_epoch = 3;
    spec.base_sequence = 7;
    spec.is_transactional = true;
    batch_builder_init(&b, &spec);
    batch_builder_finish(&b, &out);
    assert_is_golden(&out, golden_empty);
    batch_builder_fini(&b);
    buf_fini(&out);
}

static void test_control_batches(void **state)
{
    struct control_spec spec = {
        .type = CONTROL_COMMIT,
        .coordinator_epoch = 9,
        .producer_id = 1000,
        .producer_epoch = 3,
        .base_offset = 15,
        .leader_epoch = 2,
        .timestamp_ms = TS,
    };
    struct buf out = {0};

    (void)state;
    batch_build_control(&spec, &out);
    assert_is_golden(&out, golden_commit);
    buf_reset(&out);
    spec.type = CONTROL_ABORT;
    batch_build_control(&spec, &out);
    assert_is_golden(&out, golden_abort);
    buf_fini(&out);
}

static void test_delete_horizon_is_the_base_of_timestamps(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct record r = record_of("k", NULL, TS);
    struct batch_builder b;
    struct buf out = {0};

    (void)state;
    spec.base_offset = r.offset = 20;
    spec.leader_epoch = 2;
    spec.delete_horizon_ms = TS + 86400000;
    batch_builder_init(&b, &spec);
    assert_int_equal(batch_builder_append_at(&b, &r), ERR_NONE);
    batch_builder_finish(&b, &out);
    assert_is_golden(&out, golden_tombstone);
    batch_builder_fini(&b);
    buf_fini(&out);
}

static void test_size_limit_is_exact_and_spares_the_first_record(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct record first = record_of("k", "v", TS);
    struct record second = record_of("k2", NULL, TS + 5);
    struct batch_builder b;
    struct buf out = {0};

    (void)state;
    spec.bytes_max = 78;
    batch_builder_init(&b, &spec);
    assert_int_equal(batch_builder_append(&b, &first), ERR_NONE);
    assert_int_equal(batch_builder_append(&b, &second), ERR_LIMIT);
    assert_int_equal(batch_builder_bytes(&b), 70);
    b.spec.bytes_max = 79;
    assert_int_equal(batch_builder_append(&b, &second), ERR_NONE);
    b.spec.bytes_max = 1;
    batch_builder_finish(&b, &out);
    assert_int_equal(out.n, 79);
    assert_int_equal(batch_builder_append(&b, &first), ERR_NONE);
    batch_builder_fini(&b);
    buf_fini(&out);
}

static void test_offsets_of_a_compacted_batch(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct record r = record_of("k", "v", TS);
    struct batch_builder b;
    struct record_iter it;
    struct buf out = {0};

    (void)state;
    spec.base_offset = 100;
    spec.last_offset_delta = 50;
    batch_builder_init(&b, &spec);
    r.offset = 99;
    assert_int_equal(batch_builder_append_at(&b, &r), ERR_INVALID_RECORD);
    r.offset = 103;
    assert_int_equal(batch_builder_append_at(&b, &r), ERR_NONE);
    assert_int_equal(batch_builder_append_at(&b, &r), ERR_INVALID_RECORD);
    r.offset = INT64_MIN;
    assert_int_equal(batch_builder_append_at(&b, &r), ERR_INVALID_RECORD);
    r.offset = 100 + (1ll << 31);
    assert_int_equal(batch_builder_append_at(&b, &r), ERR_INVALID_RECORD);
    r.offset = 140;
    assert_int_equal(batch_builder_append_at(&b, &r), ERR_NONE);
    batch_builder_finish(&b, &out);
    record_iter_init(&it);
    assert_int_equal(record_iter_batch(&it, buf_bytes(&out, 0)), ERR_NONE);
    assert_int_equal(batch_last_offset(&it.header), 150);
    assert_int_equal(record_iter_next(&it, &r), ERR_NONE);
    assert_int_equal(r.offset, 103);
    assert_int_equal(record_iter_next(&it, &r), ERR_NONE);
    assert_int_equal(r.offset, 140);
    assert_int_equal(record_iter_next(&it, &r), ERR_EOF);
    record_iter_fini(&it);
    batch_builder_fini(&b);
    buf_fini(&out);
}

/* ---- Iterating. ------------------------------------------------------------------------- */

static void test_iterated_golden_batch(void **state)
{
    struct record_iter it;
    struct record r;
    struct buf b = {0};

    (void)state;
    put_hex(&b, golden_two);
    batch_stamp(b.p, 1000, 1);
    record_iter_init(&it);
    assert_int_equal(record_iter_batch(&it, buf_bytes(&b, 0)), ERR_NONE);
    assert_int_equal(record_iter_next(&it, &r), ERR_NONE);
    assert_int_equal(r.offset, 1000);
    assert_int_equal(r.timestamp, TS);
    assert_bytes_equal(r.key, bytes_of("k"));
    assert_bytes_equal(r.value, bytes_of("v"));
    assert_int_equal(r.header_count, 0);
    assert_int_equal(record_iter_next(&it, &r), ERR_NONE);
    assert_int_equal(r.offset, 1001);
    assert_int_equal(r.timestamp, TS + 5);
    assert_bytes_equal(r.key, bytes_of("k2"));
    assert_int_equal(r.value.n, -1);
    assert_int_equal(record_iter_next(&it, &r), ERR_EOF);
    assert_int_equal(record_iter_next(&it, &r), ERR_EOF);
    record_iter_fini(&it);
    buf_fini(&b);
}

static void test_log_append_time_is_the_time_of_all_records(void **state)
{
    struct record_iter it;
    struct record r;
    struct buf b = {0};

    (void)state;
    put_hex(&b, golden_two);
    batch_set_max_timestamp(b.p, b.n, TIMESTAMP_LOG_APPEND, 77);
    record_iter_init(&it);
    assert_int_equal(record_iter_batch(&it, buf_bytes(&b, 0)), ERR_NONE);
    assert_int_equal(record_iter_next(&it, &r), ERR_NONE);
    assert_int_equal(r.timestamp, 77);
    record_iter_fini(&it);
    buf_fini(&b);
}

/* Tombstone and control record through iterator and marker parser. */
static void test_markers_are_read_back(void **state)
{
    struct record_iter it;
    struct record r;
    struct control_marker m;
    struct buf b = {0};

    (void)state;
    put_hex(&b, golden_abort);
    record_iter_init(&it);
    assert_int_equal(record_iter_batch(&it, buf_bytes(&b, 0)), ERR_NONE);
    assert_true(batch_is_control(&it.header));
    assert_int_equal(record_iter_next(&it, &r), ERR_NONE);
    assert_int_equal(control_marker_parse(&r, &m), ERR_NONE);
    assert_int_equal(m.type, CONTROL_ABORT);
    assert_int_equal(m.coordinator_epoch, 9);
    r.value.n = 5;
    assert_int_equal(control_marker_parse(&r, &m), ERR_INVALID_RECORD);
    r.value = (struct bytes){.p = (const uint8_t *)"\xff\xff\0\0\0\1", .n = 6};
    assert_int_equal(control_marker_parse(&r, &m), ERR_INVALID_RECORD);
    r.value = (struct bytes){.p = (const uint8_t *)"\0\7\0\0\0\1", .n = 6};
    assert_int_equal(control_marker_parse(&r, &m), ERR_NONE);
    r.key.n = 3;
    assert_int_equal(control_marker_parse(&r, &m), ERR_INVALID_RECORD);
    r.key = (struct bytes){.p = (const uint8_t *)"\xff\xff\0\1", .n = 4};
    assert_int_equal(control_marker_parse(&r, &m), ERR_INVALID_RECORD);
    r.key = (struct bytes){.p = (const uint8_t *)"\0\0\0\x63", .n = 4};
    assert_int_equal(control_marker_parse(&r, &m), ERR_NONE);
    assert_int_equal(m.type, 0x63);
    assert_int_equal(m.coordinator_epoch, -1);
    record_iter_fini(&it);
    buf_fini(&b);
}

static void test_record_headers(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    struct record_iter it;
    struct record r = record_of("k", "v", TS);
    struct buf headers = {0}, out = {0};
    struct str key;
    struct bytes value;

    (void)state;
    record_header_put(&headers, STR_LIT("trace"), bytes_of("abc"));
    record_header_put(&headers, STR_LIT("empty"), bytes_of(""));
    record_header_put(&headers, STR_LIT(""), bytes_null());
    r.headers = buf_bytes(&headers, 0);
    r.header_count = 3;
    spec.codec = CODEC_GZIP;
    batch_builder_init(&b, &spec);
    assert_int_equal(batch_builder_append(&b, &r), ERR_NONE);
    batch_builder_finish(&b, &out);
    record_iter_init(&it);
    assert_int_equal(record_iter_batch(&it, buf_bytes(&out, 0)), ERR_NONE);
    assert_int_equal(record_iter_next(&it, &r), ERR_NONE);
    assert_int_equal(r.header_count, 3);
    assert_true(record_headers_next(&r.headers, &key, &value));
    assert_true(str_eq_c(key, "trace"));
    assert_bytes_equal(value, bytes_of("abc"));
    assert_true(record_headers_next(&r.headers, &key, &value));
    assert_true(str_eq_c(key, "empty"));
    assert_int_equal(value.n, 0);
    assert_true(record_headers_next(&r.headers, &key, &value));
    assert_int_equal(key.n, 0);
    assert_int_equal(value.n, -1);
    assert_false(record_headers_next(&r.headers, &key, &value));
    record_iter_fini(&it);
    batch_builder_fini(&b);
    buf_fini(&headers);
    buf_fini(&out);
}

/* Walks a batch of `count` records and compares with what put_batch wrote. */
static void check_walk(struct record_iter *it, struct bytes batch, int count, int value_bytes)
{
    struct record r;

    assert_int_equal(record_iter_batch(it, batch), ERR_NONE);
    for (int i = 0; i < count; i++) {
        char key[24];

        snprintf(key, sizeof(key), "key-%d", i);
        assert_int_equal(record_iter_next(it, &r), ERR_NONE);
        assert_int_equal(r.offset, i);
        assert_int_equal(r.timestamp, TS + i);
        assert_bytes_equal(r.key, bytes_of(key));
        assert_int_equal(r.value.n, value_bytes);
    }
    assert_int_equal(record_iter_next(it, &r), ERR_EOF);
}

static void test_bytes_that_are_no_headers(void **state)
{
    static const char *const bad[] = {"0461",     "0261", "0261 0461",
                                      "01 02 61", "02",   "808080808001"};
    struct str key;
    struct bytes value;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct buf b = {0};
        struct bytes headers, left;

        put_hex(&b, bad[i]);
        left = headers = heap_copy(buf_bytes(&b, 0));
        assert_false(record_headers_next(&left, &key, &value));
        free((void *)headers.p);
        buf_fini(&b);
    }
}

static void test_emptied_batch_of_a_codec_has_no_records(void **state)
{
    struct record_iter it;
    struct record r;
    struct buf b = {0};

    (void)state;
    put_hex(&b, golden_empty);
    put_i16(b.p + AT_ATTRIBUTES, CODEC_ZSTD);
    record_iter_init(&it);
    assert_int_equal(record_iter_batch(&it, buf_bytes(&b, 0)), ERR_NONE);
    assert_int_equal(record_iter_next(&it, &r), ERR_EOF);
    record_iter_fini(&it);
    buf_fini(&b);
}

static void test_max_timestamp_is_not_the_last_one(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct record first = record_of("k", "v", TS + 9);
    struct record second = record_of("k", "v", TS);
    struct batch_builder b;
    struct batch_header h;
    struct buf out = {0};

    (void)state;
    batch_builder_init(&b, &spec);
    assert_int_equal(batch_builder_append(&b, &first), ERR_NONE);
    assert_int_equal(batch_builder_append(&b, &second), ERR_NONE);
    batch_builder_finish(&b, &out);
    assert_int_equal(batch_header_parse(buf_bytes(&out, 0), &h), ERR_NONE);
    assert_int_equal(h.base_timestamp, TS + 9);
    assert_int_equal(h.max_timestamp, TS + 9);
    batch_builder_fini(&b);
    buf_fini(&out);
}

/* Many small records, records around the size of the window, and far beyond it. */
static void test_all_codecs_and_sizes(void **state)
{
    static const int sizes[][2] = {{1, 0}, {5000, 10}, {40, 32700}, {5, 32768}, {3, 3000000}};
    struct record_iter it;

    (void)state;
    record_iter_init(&it);
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            struct batch_spec spec = batch_spec_default();
            struct buf out = {0};

            spec.codec = (enum codec)codec;
            put_batch(&out, &spec, sizes[i][0], sizes[i][1], i);
            assert_true(batch_crc_ok(buf_bytes(&out, 0)));
            check_walk(&it, buf_bytes(&out, 0), sizes[i][0], sizes[i][1]);
            buf_fini(&out);
        }
    }
    record_iter_fini(&it);
}

/* ---- Damage. ---------------------------------------------------------------------------- */

/* Reads everything that can be read; the first error. */
static enum err walk(struct bytes batch)
{
    struct record_iter it;
    struct record r;
    enum err err;

    record_iter_init(&it);
    err = record_iter_batch(&it, batch);
    while (!err)
        err = record_iter_next(&it, &r);
    record_iter_fini(&it);
    return err;
}

static void test_every_truncation_is_an_error(void **state)
{
    (void)state;
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        struct batch_spec spec = batch_spec_default();
        struct buf out = {0};

        spec.codec = (enum codec)codec;
        put_batch(&out, &spec, 5, 20, 1);
        for (int32_t n = 0; n < (int32_t)out.n; n++) {
            struct bytes cut = heap_copy((struct bytes){.p = out.p, .n = n});

            assert_int_not_equal(walk(cut), ERR_EOF);
            if (n >= BATCH_HEADER_BYTES) {
                put_i32((uint8_t *)cut.p + AT_LENGTH, n - BATCH_OVERHEAD_BYTES);
                assert_int_not_equal(walk(cut), ERR_EOF);
            }
            free((void *)cut.p);
        }
        buf_fini(&out);
    }
}

static void test_changed_bytes_never_do_harm(void **state)
{
    struct rng rng = rng_seeded(8);

    (void)state;
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        struct batch_spec spec = batch_spec_default();
        struct buf out = {0};

        spec.codec = (enum codec)codec;
        put_batch(&out, &spec, 4, 30, 2);
        for (int i = 0; i < 4000; i++) {
            struct bytes copy = heap_copy(buf_bytes(&out, 0));

            for (int j = 0; j <= i % 3; j++)
                ((uint8_t *)copy.p)[rng_below(&rng, (uint64_t)copy.n)] = (uint8_t)rng_u64(&rng);
            assert_int_not_equal(walk(copy), ERR_NONE);
            free((void *)copy.p);
        }
        buf_fini(&out);
    }
}

static void test_count_and_bytes_have_to_agree(void **state)
{
    struct buf b = {0};

    (void)state;
    put_hex(&b, golden_two);
    put_i32(b.p + AT_RECORD_COUNT, 1);
    assert_int_equal(walk(buf_bytes(&b, 0)), ERR_INVALID_RECORD);
    put_i32(b.p + AT_RECORD_COUNT, 3);
    assert_int_equal(walk(buf_bytes(&b, 0)), ERR_INVALID_RECORD);
    put_i32(b.p + AT_LENGTH, (int32_t)b.n - BATCH_OVERHEAD_BYTES - 1);
    assert_int_equal(walk(buf_bytes(&b, 0)), ERR_CORRUPT_MESSAGE);
    put_i32(b.p + AT_LENGTH, (int32_t)b.n - BATCH_OVERHEAD_BYTES);
    put_i16(b.p + AT_ATTRIBUTES, 7);
    assert_int_equal(walk(buf_bytes(&b, 0)), ERR_UNSUPPORTED_COMPRESSION_TYPE);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_headers_parse_and_print_back),
        cmocka_unit_test(test_header_fields),
        cmocka_unit_test(test_last_sequence_wraps_to_zero),
        cmocka_unit_test(test_frames_that_are_none),
        cmocka_unit_test(test_headers_out_of_range_are_corrupt),
        cmocka_unit_test(test_stamp_leaves_the_crc_alone),
        cmocka_unit_test(test_max_timestamp_sets_type_and_crc),
        cmocka_unit_test(test_crc_covers_every_byte_from_the_attributes_on),
        cmocka_unit_test(test_built_batches_equal_the_golden_ones),
        cmocka_unit_test(test_emptied_batch),
        cmocka_unit_test(test_control_batches),
        cmocka_unit_test(test_delete_horizon_is_the_base_of_timestamps),
        cmocka_unit_test(test_size_limit_is_exact_and_spares_the_first_record),
        cmocka_unit_test(test_offsets_of_a_compacted_batch),
        cmocka_unit_test(test_iterated_golden_batch),
        cmocka_unit_test(test_log_append_time_is_the_time_of_all_records),
        cmocka_unit_test(test_markers_are_read_back),
        cmocka_unit_test(test_record_headers),
        cmocka_unit_test(test_bytes_that_are_no_headers),
        cmocka_unit_test(test_emptied_batch_of_a_codec_has_no_records),
        cmocka_unit_test(test_max_timestamp_is_not_the_last_one),
        cmocka_unit_test(test_all_codecs_and_sizes),
        cmocka_unit_test(test_every_truncation_is_an_error),
        cmocka_unit_test(test_changed_bytes_never_do_harm),
        cmocka_unit_test(test_count_and_bytes_have_to_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
