/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rule of the produce path with its exact code and in its order, on batches that are right
 * but for one thing; and rebuilding. Each test takes the good batch, breaks it, seals it again.
 */
#include "base/arena.h"
#include "base/limits.h"
#include "record/testing.h"

static struct decompressor *d;
static struct arena arena;
static struct batch_rules rules;
static struct batch_verdict verdict;

static int setup(void **state)
{
    (void)state;
    d = decompressor_new();
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    decompressor_free(d);
    arena_fini(&arena);
    return 0;
}

static int reset_rules(void **state)
{
    (void)state;
    arena_reset(&arena);
    rules = (struct batch_rules){
        .from_client = true,
        .produce_version = 9,
        .max_message_bytes = 1 << 20,
        .segment_bytes = 1 << 30,
        .before_max_ms = INT64_MAX,
        .after_max_ms = 3600000,
        .now_ms = TS + 1000,
        .target_codec = -1,
    };
    return 0;
}

/* Validates an exact-size copy on the heap. */
static enum err validate(struct bytes records)
{
    struct bytes copy = heap_copy(records);
    enum err err = batch_validate(copy, &rules, d, &arena, &verdict);

    assert_int_equal(verdict.err, err);
    assert_int_equal(str_is_null(verdict.message), err == ERR_NONE);
    verdict.batch.p = NULL;
    free((void *)copy.p);
    return err;
}

/* Three records at TS, TS + 1 and TS + 2. */
static struct buf good_batch(enum codec codec)
{
    struct batch_spec spec = batch_spec_default();
    struct buf b = {0};

    spec.codec = codec;
    put_batch(&b, &spec, 3, 50, 1);
    return b;
}

/* The verdict on the good batch after one change of a header field and a new CRC. */
static enum err verdict_with(int at, int size, int64_t value)
{
    struct buf b = good_batch(CODEC_NONE);
    enum err err;

    for (int i = 0; i < size; i++)
        b.p[at + i] = (uint8_t)((uint64_t)value >> 8 * (size - 1 - i));
    record__batch_seal(b.p, b.n);
    err = validate(buf_bytes(&b, 0));
    buf_fini(&b);
    return err;
}

/* A batch around records given as hex. */
static enum err verdict_on_records(enum codec codec, int count, const char *hex)
{
    struct batch_header h = {
        .leader_epoch = -1,
        .magic = BATCH_MAGIC,
        .attributes = (int16_t)codec,
        .last_offset_delta = count - 1,
        .base_timestamp = TS,
        .max_timestamp = TS,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
        .record_count = count,
    };
    struct buf b = {0}, records = {0};
    enum err err;

    put_hex(&records, hex);
    buf_extend(&b, BATCH_HEADER_BYTES);
    codec_compress(codec, CODEC_LEVEL_DEFAULT, buf_bytes(&records, 0), &b);
    h.length = (int32_t)(b.n - BATCH_OVERHEAD_BYTES);
    batch_header_put(b.p, &h);
    record__batch_seal(b.p, b.n);
    err = validate(buf_bytes(&b, 0));
    buf_fini(&b);
    buf_fini(&records);
    return err;
}

/* ---- What is right. --------------------------------------------------------------------- */

static void test_good_batches_pass_untouched(void **state)
{
    (void)state;
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        struct buf b = good_batch((enum codec)codec);

        assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
        assert_int_equal(verdict.batch.n, b.n);
        assert_int_equal(verdict.header.record_count, 3);
        assert_int_equal(verdict.max_timestamp, TS + 2);
        assert_int_equal(verdict.offset_of_max_timestamp, 2);
        assert_false(verdict.needs_max_timestamp);
        assert_false(verdict.needs_rebuild);
        assert_int_equal(verdict.record_error_count, 0);
        buf_fini(&b);
    }
}

static void test_sequences_may_wrap_inside_a_batch(void **state)
{
    (void)state;
    assert_int_equal(verdict_with(AT_BASE_SEQUENCE, 4, INT32_MAX - 1), ERR_NONE);
    assert_int_equal(batch_last_sequence(&verdict.header), 0);
}

static void test_start_of_another_batch_behind_is_cut_off(void **state)
{
    struct buf b = good_batch(CODEC_NONE);
    size_t one = b.n;

    (void)state;
    for (size_t n = 1; n < one; n++) {
        struct buf two = {0};

        buf_append(&two, b.p, one);
        buf_append(&two, b.p, n);
        assert_int_equal(validate(buf_bytes(&two, 0)), ERR_NONE);
        assert_int_equal(verdict.batch.n, one);
        buf_fini(&two);
    }
    buf_fini(&b);
}

/* ---- 1: the request. -------------------------------------------------------------------- */

static void test_incomplete_batch_is_no_batch(void **state)
{
    struct buf b = good_batch(CODEC_NONE);

    (void)state;
    assert_int_equal(batch_validate(bytes_null(), &rules, d, &arena, &verdict), ERR_INVALID_RECORD);
    for (int32_t n = 0; n < (int32_t)b.n; n++)
        assert_int_equal(validate((struct bytes){.p = b.p, .n = n}), ERR_INVALID_RECORD);
    buf_fini(&b);
}

static void test_framing(void **state)
{
    (void)state;
    assert_int_equal(verdict_with(AT_LENGTH, 4, 13), ERR_CORRUPT_MESSAGE);
    assert_int_equal(verdict_with(AT_MAGIC, 1, 3), ERR_CORRUPT_MESSAGE);
    assert_int_equal(verdict_with(AT_MAGIC, 1, 1), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_MAGIC, 1, 0), ERR_INVALID_RECORD);
}

static void test_two_batches(void **state)
{
    struct buf b = good_batch(CODEC_NONE);
    size_t one = b.n;

    (void)state;
    buf_reserve(&b, one);
    buf_append(&b, b.p, one);
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_INVALID_RECORD);
    memset(b.p + one, 0, one);
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_CORRUPT_MESSAGE);
    buf_fini(&b);
}

static void test_zstd_needs_version_7(void **state)
{
    struct buf b = good_batch(CODEC_ZSTD);

    (void)state;
    rules.produce_version = 6;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_UNSUPPORTED_COMPRESSION_TYPE);
    /* Before the base offset is looked at. */
    put_i64(b.p, 5);
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_UNSUPPORTED_COMPRESSION_TYPE);
    put_i64(b.p, 0);
    rules.produce_version = 7;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    buf_fini(&b);
}

/* ---- 2: bytes. -------------------------------------------------------------------------- */

static void test_base_offset_comes_before_size_and_crc(void **state)
{
    struct buf b = good_batch(CODEC_NONE);

    (void)state;
    put_i64(b.p, 1);
    b.p[b.n - 1] ^= 1;
    rules.max_message_bytes = 10;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_INVALID_RECORD);
    put_i64(b.p, 0);
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_MESSAGE_TOO_LARGE);
    rules.max_message_bytes = (int32_t)b.n;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_CORRUPT_MESSAGE);
    b.p[b.n - 1] ^= 1;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    rules.max_message_bytes--;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_MESSAGE_TOO_LARGE);
    buf_fini(&b);
}

static void test_every_changed_byte_is_noticed(void **state)
{
    struct buf b = good_batch(CODEC_LZ4);

    (void)state;
    for (size_t i = AT_CRC; i < b.n; i++) {
        b.p[i] ^= 4;
        assert_int_equal(validate(buf_bytes(&b, 0)), ERR_CORRUPT_MESSAGE);
        b.p[i] ^= 4;
    }
    buf_fini(&b);
}

/* ---- 3: header. ------------------------------------------------------------------------- */

static void test_header_rules(void **state)
{
    (void)state;
    assert_int_equal(verdict_with(AT_RECORD_COUNT, 4, 0), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_RECORD_COUNT, 4, -1), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_RECORD_COUNT, 4, 2), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_LAST_OFFSET_DELTA, 4, 3), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_LAST_OFFSET_DELTA, 4, -1), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_LAST_OFFSET_DELTA, 4, INT32_MAX), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_ATTRIBUTES, 2, BATCH_CONTROL), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_ATTRIBUTES, 2, BATCH_DELETE_HORIZON), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_ATTRIBUTES, 2, BATCH_TRANSACTIONAL), ERR_NONE);
    assert_int_equal(verdict_with(AT_ATTRIBUTES, 2, 5), ERR_UNSUPPORTED_COMPRESSION_TYPE);
    assert_int_equal(verdict_with(AT_PRODUCER_ID, 8, 0), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_BASE_SEQUENCE, 4, 0), ERR_NONE);
}

static void test_a_producer_needs_an_epoch(void **state)
{
    struct buf b = good_batch(CODEC_NONE);

    (void)state;
    put_i64(b.p + AT_PRODUCER_ID, 7);
    put_i32(b.p + AT_BASE_SEQUENCE, 0);
    record__batch_seal(b.p, b.n);
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_INVALID_PRODUCER_EPOCH);
    put_i16(b.p + AT_PRODUCER_EPOCH, 0);
    record__batch_seal(b.p, b.n);
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    buf_fini(&b);
}

static void test_coordinators_may_write_control_batches(void **state)
{
    struct control_spec spec = {.type = CONTROL_COMMIT, .producer_id = 7, .timestamp_ms = TS};
    struct buf b = {0};

    (void)state;
    batch_build_control(&spec, &b);
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_INVALID_RECORD);
    rules.from_client = false;
    rules.target_codec = CODEC_GZIP;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    assert_false(verdict.needs_rebuild);
    put_i64(b.p, 1000);
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    rules.produce_version = 0;
    assert_int_equal(verdict_with(AT_LAST_OFFSET_DELTA, 4, -1), ERR_INVALID_RECORD);
    assert_int_equal(verdict_with(AT_RECORD_COUNT, 4, -1), ERR_INVALID_RECORD);
    buf_fini(&b);
}

static void test_coordinators_need_no_produce_version(void **state)
{
    struct buf b = good_batch(CODEC_ZSTD);

    (void)state;
    rules.from_client = false;
    rules.produce_version = 0;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    buf_fini(&b);
}

/* ---- 4: records. ------------------------------------------------------------------------ */

static void test_structure_rules(void **state)
{
    static const struct {
        int count;
        const char *records;
        enum err err;
    } cases[] = {
        /*  length attr time delta key value headers */
        {1, "0c 00 00 00 01 01 00", ERR_NONE},
        {1, "10 00 00 00 02 6b 02 76 00", ERR_NONE},
        {1, "14 00 00 00 01 01 02 02 68 01 00", ERR_INVALID_RECORD}, /* one byte left inside */
        {1, "12 00 00 00 01 01 02 02 68 01", ERR_NONE},
        {1, "12 00 00 00 01 01 02 01 02 68", ERR_INVALID_RECORD},    /* header key is null */
        {1, "0c 00 00 00 01 01 01", ERR_INVALID_RECORD},             /* header count -1 */
        {1, "0c 00 00 00 01 01 04", ERR_INVALID_RECORD},             /* two headers missing */
        {1, "0c 00 00 00 01 01 fe ff ff ff 0f", ERR_INVALID_RECORD}, /* 2^31 - 1 headers */
        {1, "0a 00 00 00 01 01 00", ERR_INVALID_RECORD},             /* length too short */
        {1, "0e 00 00 00 01 01 00", ERR_INVALID_RECORD},             /* length too long */
        {1, "0e 00 00 00 01 01 00 00", ERR_INVALID_RECORD},          /* bytes behind fields */
        {1, "0c 00 00 00 01 01 00 00", ERR_INVALID_RECORD},          /* bytes behind records */
        {2, "0c 00 00 00 01 01 00", ERR_INVALID_RECORD},             /* one record missing */
        {2, "0c 00 00 00 01 01 00 0c 00 00 02 01 01 00", ERR_NONE},
        {1, "0c 00 00 00 01 01 00 0c 00 00 02 01 01 00", ERR_INVALID_RECORD},
        /* A byte too many in the first record, which would do as the length of the second. */
        {2, "0e 00 00 00 01 01 00 0c 00 00 02 01 01 00", ERR_INVALID_RECORD},
        /* A count of headers in three bytes, at the very end of a record. */
        {2, "10 00 00 00 01 01 80 80 00 0c 00 00 02 01 01 00", ERR_NONE},
        {1, "01 00 00 00 01 01 00", ERR_INVALID_RECORD},             /* negative length */
        {1, "0c 00 00 00 7e 01 00", ERR_INVALID_RECORD},             /* key beyond the record */
        {1, "fe ff ff ff 0f 00 00 00 01 01 00", ERR_INVALID_RECORD}, /* 2 GiB record */
        {1, "80 80 80 80 80 01", ERR_INVALID_RECORD},                /* number of six bytes */
        {1, "", ERR_INVALID_RECORD},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int codec = 0; codec < CODEC_COUNT; codec++) {
            enum err err = verdict_on_records((enum codec)codec, cases[i].count, cases[i].records);

            if (err != cases[i].err)
                fail_msg("case %zu, codec %d: %s", i, codec, err_name(err));
        }
    }
}

/* The same in a record that is larger than the window of decompression. */
static void test_large_records_are_checked_too(void **state)
{
    (void)state;
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        struct batch_spec spec = batch_spec_default();
        struct buf b = {0};

        rules.max_message_bytes = INT32_MAX;
        spec.codec = (enum codec)codec;
        put_batch(&b, &spec, 3, 200000, 1);
        assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
        assert_int_equal(verdict.max_timestamp, TS + 2);
        put_i32(b.p + AT_RECORD_COUNT, 2);
        put_i32(b.p + AT_LAST_OFFSET_DELTA, 1);
        record__batch_seal(b.p, b.n);
        assert_int_equal(validate(buf_bytes(&b, 0)), ERR_INVALID_RECORD);
        buf_fini(&b);
    }
}

/*
 * A record with a value of `value_bytes` in a compressed batch: its length is off by `wrong`, and
 * `extra` bytes follow it.
 */
static enum err verdict_on_large_record(int32_t value_bytes, int32_t wrong, size_t extra)
{
    int32_t body = 1 + 1 + 1 + 1 + varint_size(value_bytes) + value_bytes + 1;
    struct batch_header h = {.magic = BATCH_MAGIC, .record_count = 1, .attributes = CODEC_GZIP};
    struct buf record = {0}, b = {0};
    size_t rest = (size_t)value_bytes + 1 + extra;
    enum err err;

    record.n = (size_t)varint_put(buf_reserve(&record, VARINT_BYTES_MAX), body + wrong);
    put_hex(&record, "00 00 00 01");
    record.n += (size_t)varint_put(buf_reserve(&record, VARINT_BYTES_MAX), value_bytes);
    memset(buf_extend(&record, rest), 0, rest);
    buf_extend(&b, BATCH_HEADER_BYTES);
    codec_compress(CODEC_GZIP, CODEC_LEVEL_DEFAULT, buf_bytes(&record, 0), &b);
    h.length = (int32_t)(b.n - BATCH_OVERHEAD_BYTES);
    h.producer_id = -1;
    batch_header_put(b.p, &h);
    record__batch_seal(b.p, b.n);
    err = validate(buf_bytes(&b, 0));
    buf_fini(&record);
    buf_fini(&b);
    return err;
}

static void test_large_record_with_wrong_length(void **state)
{
    (void)state;
    assert_int_equal(verdict_on_large_record(100000, 0, 0), ERR_NONE);
    assert_int_equal(verdict_on_large_record(100000, 1, 0), ERR_INVALID_RECORD);
    assert_int_equal(verdict_on_large_record(100000, -1, 0), ERR_INVALID_RECORD);
    assert_int_equal(verdict_on_large_record(100000, -50000, 0), ERR_INVALID_RECORD);
}

/* Sizes around the window's: what is left over may be just behind what has been decompressed. */
static void test_bytes_left_behind_a_window(void **state)
{
    (void)state;
    for (int32_t value_bytes = 32700; value_bytes < 32800; value_bytes++) {
        assert_int_equal(verdict_on_large_record(value_bytes, 0, 0), ERR_NONE);
        assert_int_equal(verdict_on_large_record(value_bytes, 0, 1), ERR_INVALID_RECORD);
    }
}

static void test_undecompressable_is_a_server_error(void **state)
{
    (void)state;
    for (int codec = CODEC_GZIP; codec < CODEC_COUNT; codec++)
        assert_int_equal(verdict_with(AT_ATTRIBUTES, 2, codec), ERR_UNKNOWN_SERVER_ERROR);
}

static void test_bomb_is_too_large(void **state)
{
    struct batch_header h = {.magic = BATCH_MAGIC, .record_count = 1, .attributes = CODEC_ZSTD};
    struct buf zeros = {0}, b = {0};
    size_t n = 64 << 20;

    (void)state;
    /* One record of 2^31 - 1 bytes: frames of 64 MiB of zeros one after another. */
    put_hex(&zeros, "fe ff ff ff 0f 00 00 00 01 f0 ff ff ff 0f");
    buf_extend(&b, BATCH_HEADER_BYTES);
    codec_compress(CODEC_ZSTD, CODEC_LEVEL_DEFAULT, buf_bytes(&zeros, 0), &b);
    memset(buf_extend(&zeros, n), 0, n);
    for (size_t i = 0; i <= DECOMPRESSED_BYTES_MAX / n; i++)
        codec_compress(CODEC_ZSTD, CODEC_LEVEL_DEFAULT, buf_bytes(&zeros, zeros.n - n), &b);
    h.length = (int32_t)(b.n - BATCH_OVERHEAD_BYTES);
    h.producer_id = h.base_sequence = -1;
    batch_header_put(b.p, &h);
    record__batch_seal(b.p, b.n);
    assert_true(b.n < 100000);
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_MESSAGE_TOO_LARGE);
    buf_fini(&zeros);
    buf_fini(&b);
}

/* Two records without a key among four. */
#define MIXED_KEYS                                                                                 \
    "0c 00 00 00 01 01 00  0e 00 00 02 02 6b 01 00  0c 00 00 04 01 01 00  0e 00 00 06 02 6b 01 00"

static void test_compacted_topics_need_keys(void **state)
{
    (void)state;
    assert_int_equal(verdict_on_records(CODEC_LZ4, 4, MIXED_KEYS), ERR_NONE);
    rules.is_compacted = true;
    assert_int_equal(verdict_on_records(CODEC_LZ4, 4, MIXED_KEYS), ERR_INVALID_RECORD);
    assert_int_equal(verdict.record_error_count, 2);
    assert_int_equal(verdict.record_errors[0].index, 0);
    assert_int_equal(verdict.record_errors[1].index, 2);
    assert_true(verdict.record_errors[1].message.n > 0);
}

static void test_structure_error_hides_record_errors(void **state)
{
    (void)state;
    rules.is_compacted = true;
    assert_int_equal(verdict_on_records(CODEC_NONE, 2, "0c 00 00 00 01 01 00 0e"),
                     ERR_INVALID_RECORD);
    assert_int_equal(verdict.record_error_count, 0);
    assert_null(verdict.record_errors);
}

static void test_timestamp_range_is_inclusive(void **state)
{
    struct buf b = good_batch(CODEC_SNAPPY);

    (void)state;
    rules.before_max_ms = 1000;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    rules.before_max_ms = 998;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_INVALID_TIMESTAMP);
    assert_int_equal(verdict.record_error_count, 2);
    assert_int_equal(verdict.record_errors[0].index, 0);
    assert_int_equal(verdict.record_errors[1].index, 1);
    rules.before_max_ms = INT64_MAX;
    rules.now_ms = TS;
    rules.after_max_ms = 2;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    rules.after_max_ms = 1;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_INVALID_TIMESTAMP);
    assert_int_equal(verdict.record_error_count, 1);
    assert_int_equal(verdict.record_errors[0].index, 2);
    rules.timestamp_type = TIMESTAMP_LOG_APPEND;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    buf_fini(&b);
}

static void test_timestamps_at_the_ends_of_the_range_do_not_overflow(void **state)
{
    (void)state;
    assert_int_equal(verdict_with(AT_BASE_TIMESTAMP, 8, INT64_MIN), ERR_NONE);
    assert_int_equal(verdict.max_timestamp, -1);
    rules.before_max_ms = INT64_MAX - 1;
    assert_int_equal(verdict_with(AT_BASE_TIMESTAMP, 8, INT64_MIN), ERR_INVALID_TIMESTAMP);
    assert_int_equal(verdict_with(AT_BASE_TIMESTAMP, 8, INT64_MAX - 2), ERR_INVALID_TIMESTAMP);
}

static void test_no_timestamp_is_exempt(void **state)
{
    (void)state;
    rules.before_max_ms = 0;
    rules.after_max_ms = 0;
    assert_int_equal(verdict_on_records(CODEC_NONE, 1, "16 00 81a0abfef962 00 01 01 00"), ERR_NONE);
    assert_int_equal(verdict.max_timestamp, -1);
    assert_int_equal(verdict.offset_of_max_timestamp, -1);
}

static void test_timestamp_errors_win_over_missing_keys(void **state)
{
    (void)state;
    rules.is_compacted = true;
    rules.before_max_ms = 10;
    assert_int_equal(verdict_on_records(CODEC_NONE, 4, MIXED_KEYS), ERR_INVALID_TIMESTAMP);
    assert_int_equal(verdict.record_error_count, 4);
}

static void test_clients_must_not_claim_log_append_time(void **state)
{
    (void)state;
    assert_int_equal(verdict_with(AT_ATTRIBUTES, 2, BATCH_LOG_APPEND_TIME), ERR_INVALID_TIMESTAMP);
    rules.timestamp_type = TIMESTAMP_LOG_APPEND;
    assert_int_equal(verdict_with(AT_ATTRIBUTES, 2, BATCH_LOG_APPEND_TIME), ERR_INVALID_TIMESTAMP);
    assert_int_equal(verdict.record_error_count, 3);
}

static void test_listed_record_errors_are_bounded(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct buf b = {0};

    (void)state;
    put_batch(&b, &spec, 5000, 0, 1);
    rules.before_max_ms = 0;
    rules.now_ms = TS + 100000;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_INVALID_TIMESTAMP);
    assert_int_equal(verdict.record_error_count, 5000);
    assert_int_equal(verdict.record_errors[BATCH_RECORD_ERRORS_MAX - 1].index,
                     BATCH_RECORD_ERRORS_MAX - 1);
    assert_true(arena.used < 64 * 1024);
    buf_fini(&b);
}

static void test_full_arena_costs_only_the_messages(void **state)
{
    struct buf b = good_batch(CODEC_NONE);
    struct arena small;

    (void)state;
    arena_init(&small, 8);
    rules.before_max_ms = 0;
    assert_int_equal(batch_validate(buf_bytes(&b, 0), &rules, d, &small, &verdict),
                     ERR_INVALID_TIMESTAMP);
    assert_int_equal(verdict.record_error_count, 3);
    assert_null(verdict.record_errors);
    arena_fini(&small);
    buf_fini(&b);
}

/* ---- What is to be changed before the append. ------------------------------------------- */

static void test_wrong_max_timestamp_is_set_right(void **state)
{
    (void)state;
    assert_int_equal(verdict_with(AT_MAX_TIMESTAMP, 8, 5), ERR_NONE);
    assert_true(verdict.needs_max_timestamp);
    assert_int_equal(verdict.max_timestamp, TS + 2);
    assert_false(verdict.needs_rebuild);
}

static void test_log_append_time_is_the_brokers(void **state)
{
    struct buf b = good_batch(CODEC_GZIP);

    (void)state;
    rules.timestamp_type = TIMESTAMP_LOG_APPEND;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    assert_true(verdict.needs_max_timestamp);
    assert_int_equal(verdict.max_timestamp, rules.now_ms);
    assert_int_equal(verdict.offset_of_max_timestamp, 0);
    buf_fini(&b);
}

static void test_gaps_in_offsets_ask_for_a_rebuild(void **state)
{
    (void)state;
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        assert_int_equal(
            verdict_on_records((enum codec)codec, 2, "0c 00 00 00 01 01 00 0c 00 00 00 01 01 00"),
            ERR_NONE);
        assert_true(verdict.needs_rebuild);
    }
}

static void test_other_codec_asks_for_a_rebuild_and_defers_the_segment_size(void **state)
{
    struct buf b = good_batch(CODEC_GZIP);

    (void)state;
    rules.target_codec = CODEC_GZIP;
    rules.segment_bytes = (int32_t)b.n;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    assert_false(verdict.needs_rebuild);
    rules.segment_bytes--;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_RECORD_LIST_TOO_LARGE);
    rules.target_codec = CODEC_ZSTD;
    assert_int_equal(validate(buf_bytes(&b, 0)), ERR_NONE);
    assert_true(verdict.needs_rebuild);
    assert_int_equal(batch_check_size((int64_t)b.n, &rules), ERR_RECORD_LIST_TOO_LARGE);
    assert_int_equal(batch_check_size(rules.max_message_bytes + 1, &rules), ERR_MESSAGE_TOO_LARGE);
    assert_int_equal(batch_check_size((int64_t)b.n - 1, &rules), ERR_NONE);
    buf_fini(&b);
}

/* ---- Rebuilding. ------------------------------------------------------------------------ */

static void assert_same_records(struct bytes a, struct bytes b)
{
    struct record_iter ia, ib;
    struct record ra, rb;
    enum err err;

    record_iter_init(&ia);
    record_iter_init(&ib);
    assert_int_equal(record_iter_batch(&ia, a), ERR_NONE);
    assert_int_equal(record_iter_batch(&ib, b), ERR_NONE);
    while (!(err = record_iter_next(&ia, &ra))) {
        assert_int_equal(record_iter_next(&ib, &rb), ERR_NONE);
        assert_int_equal(ra.timestamp, rb.timestamp);
        assert_bytes_equal(ra.key, rb.key);
        assert_bytes_equal(ra.value, rb.value);
        assert_bytes_equal(ra.headers, rb.headers);
    }
    assert_int_equal(err, ERR_EOF);
    assert_int_equal(record_iter_next(&ib, &rb), ERR_EOF);
    record_iter_fini(&ia);
    record_iter_fini(&ib);
}

static void test_rebuild_from_every_codec_to_every_codec(void **state)
{
    (void)state;
    for (int from = 0; from < CODEC_COUNT; from++) {
        for (int to = 0; to < CODEC_COUNT; to++) {
            struct buf b = good_batch((enum codec)from), out = {0};

            assert_int_equal(batch_rebuild(buf_bytes(&b, 0), (enum codec)to, CODEC_LEVEL_DEFAULT,
                                           TIMESTAMP_CREATE, TS, &out),
                             ERR_NONE);
            rules.target_codec = to;
            assert_int_equal(validate(buf_bytes(&out, 0)), ERR_NONE);
            assert_false(verdict.needs_rebuild);
            assert_false(verdict.needs_max_timestamp);
            assert_same_records(buf_bytes(&b, 0), buf_bytes(&out, 0));
            buf_fini(&b);
            buf_fini(&out);
        }
    }
}

static void test_rebuild_keeps_the_producer_and_sets_the_time(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct buf b = {0}, out = {0};
    struct batch_header h;

    (void)state;
    spec.producer_id = 12345;
    spec.producer_epoch = 6;
    spec.base_sequence = INT32_MAX - 1;
    spec.is_transactional = true;
    put_batch(&b, &spec, 10, 20, 2);
    assert_int_equal(batch_rebuild(buf_bytes(&b, 0), CODEC_LZ4, CODEC_LEVEL_DEFAULT,
                                   TIMESTAMP_LOG_APPEND, TS + 777, &out),
                     ERR_NONE);
    assert_int_equal(batch_header_parse(buf_bytes(&out, 0), &h), ERR_NONE);
    assert_int_equal(h.producer_id, 12345);
    assert_int_equal(h.producer_epoch, 6);
    assert_int_equal(batch_last_sequence(&h), 7);
    assert_true(batch_is_transactional(&h));
    assert_int_equal(batch_timestamp_type(&h), TIMESTAMP_LOG_APPEND);
    assert_int_equal(h.max_timestamp, TS + 777);
    assert_int_equal(h.record_count, 10);
    assert_int_equal(h.last_offset_delta, 9);
    buf_fini(&b);
    buf_fini(&out);
}

static void test_rebuild_closes_the_gaps_of_offsets(void **state)
{
    struct batch_spec spec = batch_spec_default();
    struct record r = record_of("k", "v", TS);
    struct batch_builder b;
    struct buf in = {0}, out = {0};
    struct batch_header h;

    (void)state;
    spec.base_offset = 40;
    spec.last_offset_delta = 50;
    batch_builder_init(&b, &spec);
    r.offset = 45;
    assert_int_equal(batch_builder_append_at(&b, &r), ERR_NONE);
    r.offset = 47;
    assert_int_equal(batch_builder_append_at(&b, &r), ERR_NONE);
    batch_builder_finish(&b, &in);
    assert_int_equal(batch_rebuild(buf_bytes(&in, 0), CODEC_NONE, 0, TIMESTAMP_CREATE, 0, &out),
                     ERR_NONE);
    assert_int_equal(batch_header_parse(buf_bytes(&out, 0), &h), ERR_NONE);
    assert_int_equal(h.base_offset, 40);
    assert_int_equal(h.last_offset_delta, 1);
    /* Without records there is nothing to rebuild. */
    buf_reset(&in);
    batch_builder_finish(&b, &in);
    assert_int_equal(batch_rebuild(buf_bytes(&in, 0), CODEC_NONE, 0, TIMESTAMP_CREATE, 0, &out),
                     ERR_INVALID_RECORD);
    batch_builder_fini(&b);
    buf_fini(&in);
    buf_fini(&out);
}

static void test_rebuild_of_damage_fails_and_writes_nothing(void **state)
{
    struct buf b = good_batch(CODEC_GZIP), out = {0};

    (void)state;
    b.p[b.n - 9] ^= 1;
    assert_int_equal(batch_rebuild(buf_bytes(&b, 0), CODEC_NONE, CODEC_LEVEL_DEFAULT,
                                   TIMESTAMP_CREATE, TS, &out),
                     ERR_CORRUPT_MESSAGE);
    assert_int_equal(out.n, 0);
    buf_fini(&b);
    buf_fini(&out);
}

#define TEST(f) cmocka_unit_test_setup(f, reset_rules)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_good_batches_pass_untouched),
        TEST(test_sequences_may_wrap_inside_a_batch),
        TEST(test_start_of_another_batch_behind_is_cut_off),
        TEST(test_incomplete_batch_is_no_batch),
        TEST(test_framing),
        TEST(test_two_batches),
        TEST(test_zstd_needs_version_7),
        TEST(test_base_offset_comes_before_size_and_crc),
        TEST(test_every_changed_byte_is_noticed),
        TEST(test_header_rules),
        TEST(test_a_producer_needs_an_epoch),
        TEST(test_coordinators_may_write_control_batches),
        TEST(test_coordinators_need_no_produce_version),
        TEST(test_structure_rules),
        TEST(test_large_records_are_checked_too),
        TEST(test_large_record_with_wrong_length),
        TEST(test_bytes_left_behind_a_window),
        TEST(test_undecompressable_is_a_server_error),
        TEST(test_bomb_is_too_large),
        TEST(test_compacted_topics_need_keys),
        TEST(test_structure_error_hides_record_errors),
        TEST(test_timestamp_range_is_inclusive),
        TEST(test_timestamps_at_the_ends_of_the_range_do_not_overflow),
        TEST(test_no_timestamp_is_exempt),
        TEST(test_timestamp_errors_win_over_missing_keys),
        TEST(test_clients_must_not_claim_log_append_time),
        TEST(test_listed_record_errors_are_bounded),
        TEST(test_full_arena_costs_only_the_messages),
        TEST(test_wrong_max_timestamp_is_set_right),
        TEST(test_log_append_time_is_the_brokers),
        TEST(test_gaps_in_offsets_ask_for_a_rebuild),
        TEST(test_other_codec_asks_for_a_rebuild_and_defers_the_segment_size),
        TEST(test_rebuild_from_every_codec_to_every_codec),
        TEST(test_rebuild_keeps_the_producer_and_sets_the_time),
        TEST(test_rebuild_closes_the_gaps_of_offsets),
        TEST(test_rebuild_of_damage_fails_and_writes_nothing),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
