/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every codec forth and back, in pieces of every size; both framings of snappy; streams that are
 * cut off, changed, followed by garbage or far too large; one decompressor for all of them.
 */
#include <lz4frame.h>
#include <snappy-c.h>

#include "record/testing.h"

static struct decompressor *d;

static int setup(void **state)
{
    (void)state;
    d = decompressor_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    decompressor_free(d);
    return 0;
}

static void fill_text(struct buf *b, size_t n, uint64_t seed)
{
    struct rng rng = rng_seeded(seed);

    for (size_t i = 0; i < n; i++)
        *buf_extend(b, 1) = (uint8_t)(rng_below(&rng, 4) ? 'x' : rng_u64(&rng));
}

/* Decompresses all of `in`, `piece` bytes at a time. */
static enum err read_all(enum codec codec, struct bytes in, size_t piece, int64_t limit,
                         struct buf *out)
{
    size_t n;
    enum err err;

    decompressor_start(d, codec, in, limit);
    do {
        uint8_t *p = xmalloc(piece);

        err = decompressor_read(d, p, piece, &n);
        if (!err)
            buf_append(out, p, n);
        free(p);
    } while (!err && n > 0);
    return err;
}

static void check_round_trip(enum codec codec, int level, size_t n, size_t piece)
{
    struct buf in = {0}, packed = {0}, out = {0};

    fill_text(&in, n, n);
    codec_compress(codec, level, buf_bytes(&in, 0), &packed);
    if (n > 1000 && codec != CODEC_NONE && level == CODEC_LEVEL_DEFAULT)
        assert_true(packed.n < n);
    assert_int_equal(read_all(codec, buf_bytes(&packed, 0), piece, (int64_t)n, &out), ERR_NONE);
    assert_bytes_equal(buf_bytes(&in, 0), buf_bytes(&out, 0));
    buf_fini(&in);
    buf_fini(&packed);
    buf_fini(&out);
}

static void test_round_trips(void **state)
{
    static const size_t sizes[] = {0, 1, 61, 4096, 32768, 65536, 65537, 300000};

    (void)state;
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            check_round_trip((enum codec)codec, CODEC_LEVEL_DEFAULT, sizes[i], 1 << 20);
            check_round_trip((enum codec)codec, CODEC_LEVEL_DEFAULT, sizes[i], 4097);
        }
        check_round_trip((enum codec)codec, CODEC_LEVEL_DEFAULT, 5000, 1);
    }
}

static void test_levels_are_clamped(void **state)
{
    (void)state;
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        check_round_trip((enum codec)codec, -1000000000, 5000, 5000);
        check_round_trip((enum codec)codec, 0, 5000, 5000);
        check_round_trip((enum codec)codec, 9, 5000, 5000);
        check_round_trip((enum codec)codec, 1000, 5000, 5000);
    }
}

static void test_higher_level_compresses_better(void **state)
{
    struct buf in = {0}, low = {0}, high = {0};

    (void)state;
    fill_text(&in, 200000, 3);
    codec_compress(CODEC_GZIP, 1, buf_bytes(&in, 0), &low);
    codec_compress(CODEC_GZIP, 9, buf_bytes(&in, 0), &high);
    assert_true(high.n < low.n);
    buf_reset(&low);
    buf_reset(&high);
    codec_compress(CODEC_ZSTD, 1, buf_bytes(&in, 0), &low);
    codec_compress(CODEC_ZSTD, 19, buf_bytes(&in, 0), &high);
    assert_true(high.n < low.n);
    buf_fini(&in);
    buf_fini(&low);
    buf_fini(&high);
}

static void test_names(void **state)
{
    enum codec codec;

    (void)state;
    for (int i = 0; i < CODEC_COUNT; i++) {
        assert_true(codec_from_name(str_of(codec_name((enum codec)i)), &codec));
        assert_int_equal(codec, i);
    }
    assert_true(codec_from_name(STR_LIT("lz4"), &codec));
    assert_int_equal(codec, CODEC_LZ4);
    assert_false(codec_from_name(STR_LIT("brotli"), &codec));
}

static void test_raw_snappy_block(void **state)
{
    struct buf in = {0}, packed = {0}, out = {0};
    size_t n;

    (void)state;
    fill_text(&in, 100000, 4);
    n = snappy_max_compressed_length(in.n);
    assert_int_equal(snappy_compress((char *)in.p, in.n, (char *)buf_reserve(&packed, n), &n), 0);
    packed.n = n;
    assert_int_equal(read_all(CODEC_SNAPPY, buf_bytes(&packed, 0), 1000, 100000, &out), ERR_NONE);
    assert_bytes_equal(buf_bytes(&in, 0), buf_bytes(&out, 0));
    buf_fini(&in);
    buf_fini(&packed);
    buf_fini(&out);
}

static void test_snappy_frame_has_java_head(void **state)
{
    struct buf packed = {0}, head = {0};

    (void)state;
    codec_compress(CODEC_SNAPPY, CODEC_LEVEL_DEFAULT, bytes_of("hello"), &packed);
    /* Block of 7: length 5, a literal of 5 bytes. */
    put_hex(&head, "82534e41505059 00 00000001 00000001 00000007 05 10 68656c6c6f");
    assert_bytes_equal(buf_bytes(&packed, 0), buf_bytes(&head, 0));
    buf_fini(&packed);
    buf_fini(&head);
}

static void test_snappy_lies_are_refused(void **state)
{
    static const char *const lies[] = {
        "ffffffff07 00 61",                                    /* claims 2 GiB in two bytes */
        "82534e41505059 00 00000001 00000002 00000003 010061", /* needs a reader of version 2 */
        "82534e41505059 00 00000001 00000001 7fffffff 0061",   /* block longer than the input */
        "82534e41505059 00 00000001 00000001 ffffffff 0061",   /* negative block */
        "82534e41505059 00 00000001 00000001 0000",            /* cut in a length */
        "05 10 68656c6c",                                      /* literal cut off */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct buf in = {0}, out = {0};
        struct bytes copy;

        put_hex(&in, lies[i]);
        copy = heap_copy(buf_bytes(&in, 0));
        assert_int_equal(read_all(CODEC_SNAPPY, copy, 100, 1 << 20, &out), ERR_CORRUPT_MESSAGE);
        free((void *)copy.p);
        buf_fini(&in);
        buf_fini(&out);
    }
}

/* The library links blocks only when there are two, so more than 64 KiB. */
static void test_linked_lz4_blocks_are_refused(void **state)
{
    LZ4F_preferences_t prefs = {.frameInfo = {.blockMode = LZ4F_blockLinked}};
    struct buf in = {0}, packed = {0}, out = {0};
    size_t bound, n;

    (void)state;
    fill_text(&in, 100000, 8);
    bound = LZ4F_compressFrameBound(in.n, &prefs);
    n = LZ4F_compressFrame(buf_reserve(&packed, bound), bound, in.p, in.n, &prefs);
    assert_false(LZ4F_isError(n));
    packed.n = n;
    assert_int_equal(read_all(CODEC_LZ4, buf_bytes(&packed, 0), 1000, 1 << 20, &out),
                     ERR_CORRUPT_MESSAGE);
    buf_fini(&in);
    buf_fini(&packed);
    buf_fini(&out);
}

static void test_gzip_and_zstd_streams_may_have_several_parts(void **state)
{
    static const enum codec codecs[] = {CODEC_GZIP, CODEC_ZSTD};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(codecs); i++) {
        struct buf packed = {0}, out = {0};

        codec_compress(codecs[i], CODEC_LEVEL_DEFAULT, bytes_of("one"), &packed);
        codec_compress(codecs[i], CODEC_LEVEL_DEFAULT, bytes_of("two"), &packed);
        assert_int_equal(read_all(codecs[i], buf_bytes(&packed, 0), 2, 100, &out), ERR_NONE);
        assert_bytes_equal(buf_bytes(&out, 0), bytes_of("onetwo"));
        buf_fini(&packed);
        buf_fini(&out);
    }
}

static void test_every_truncation_is_an_error(void **state)
{
    (void)state;
    for (int codec = CODEC_GZIP; codec < CODEC_COUNT; codec++) {
        struct buf in = {0}, packed = {0}, out = {0};

        fill_text(&in, 3000, 5);
        codec_compress((enum codec)codec, CODEC_LEVEL_DEFAULT, buf_bytes(&in, 0), &packed);
        for (int32_t n = codec == CODEC_SNAPPY ? 17 : 0; n < (int32_t)packed.n; n++) {
            struct bytes cut = heap_copy((struct bytes){.p = packed.p, .n = n});

            buf_reset(&out);
            assert_int_equal(read_all((enum codec)codec, cut, 500, 3000, &out),
                             ERR_CORRUPT_MESSAGE);
            free((void *)cut.p);
        }
        buf_fini(&in);
        buf_fini(&packed);
        buf_fini(&out);
    }
}

static void test_garbage_behind_the_end_is_an_error(void **state)
{
    (void)state;
    for (int codec = CODEC_GZIP; codec < CODEC_COUNT; codec++) {
        struct buf packed = {0}, out = {0};

        codec_compress((enum codec)codec, CODEC_LEVEL_DEFAULT, bytes_of("hello"), &packed);
        buf_append(&packed, "garbage", 7);
        assert_int_equal(read_all((enum codec)codec, buf_bytes(&packed, 0), 100, 100, &out),
                         ERR_CORRUPT_MESSAGE);
        buf_fini(&packed);
        buf_fini(&out);
    }
}

/* Whatever a flipped byte leads to, it ends, within the limit and within memory. */
static void test_flipped_bytes_never_do_harm(void **state)
{
    struct rng rng = rng_seeded(6);

    (void)state;
    for (int codec = CODEC_GZIP; codec < CODEC_COUNT; codec++) {
        struct buf in = {0}, packed = {0}, out = {0};

        fill_text(&in, 500, 7);
        codec_compress((enum codec)codec, CODEC_LEVEL_DEFAULT, buf_bytes(&in, 0), &packed);
        for (size_t i = 0; i < packed.n; i++) {
            struct bytes copy = heap_copy(buf_bytes(&packed, 0));
            enum err err;

            ((uint8_t *)copy.p)[i] ^= (uint8_t)(1 + rng_below(&rng, 255));
            buf_reset(&out);
            err = read_all((enum codec)codec, copy, 100, 10000, &out);
            assert_true(err == ERR_NONE || err == ERR_CORRUPT_MESSAGE || err == ERR_LIMIT);
            assert_true(out.n <= 10000);
            free((void *)copy.p);
        }
        buf_fini(&in);
        buf_fini(&packed);
        buf_fini(&out);
    }
}

static void test_bombs_stop_at_the_limit(void **state)
{
    struct buf zeros = {0};

    (void)state;
    memset(buf_extend(&zeros, 16 << 20), 0, 16 << 20);
    for (int codec = CODEC_GZIP; codec < CODEC_COUNT; codec++) {
        struct buf packed = {0}, out = {0};

        codec_compress((enum codec)codec, CODEC_LEVEL_DEFAULT, buf_bytes(&zeros, 0), &packed);
        assert_int_equal(
            read_all((enum codec)codec, buf_bytes(&packed, 0), 4096, (16 << 20) - 1, &out),
            ERR_LIMIT);
        buf_reset(&out);
        assert_int_equal(read_all((enum codec)codec, buf_bytes(&packed, 0), 4096, 16 << 20, &out),
                         ERR_NONE);
        assert_int_equal(out.n, 16 << 20);
        buf_fini(&packed);
        buf_fini(&out);
    }
    buf_fini(&zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_levels_are_clamped),
        cmocka_unit_test(test_higher_level_compresses_better),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_raw_snappy_block),
        cmocka_unit_test(test_snappy_frame_has_java_head),
        cmocka_unit_test(test_snappy_lies_are_refused),
        cmocka_unit_test(test_linked_lz4_blocks_are_refused),
        cmocka_unit_test(test_gzip_and_zstd_streams_may_have_several_parts),
        cmocka_unit_test(test_every_truncation_is_an_error),
        cmocka_unit_test(test_garbage_behind_the_end_is_an_error),
        cmocka_unit_test(test_flipped_bytes_never_do_harm),
        cmocka_unit_test(test_bombs_stop_at_the_limit),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
