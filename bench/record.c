/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to check a produced batch, beside the least that could be done with its bytes:
 *
 *   memcpy     copying the batch once
 *   crc        its checksum alone
 *   validate   everything that a leader checks (checksum, header, each record)
 *   iterate    every record with key and value, as compaction and consumers need it
 *   rebuild    iterate, build and compress again (only with the argument "rebuild")
 *
 * Each figure is the best of several rounds; the ratios travel between machines, the figures do
 * not. GB/s are of the batch as it stands in the frame, ns of one record.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/rng.h"
#include "record/record.h"

#define ROUNDS 5
#define ROUND_NS 40000000.0

struct world {
    struct bytes batch;
    int32_t count;
    struct decompressor *d;
    struct record_iter it;
    struct arena arena;
    struct buf out;
    uint64_t sink; /* keeps results alive */
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void op_memcpy(struct world *w)
{
    buf_reset(&w->out);
    buf_append(&w->out, w->batch.p, (size_t)w->batch.n);
    w->sink += w->out.p[w->out.n / 2];
}

static void op_crc(struct world *w)
{
    w->sink += batch_crc_ok(w->batch);
}

static void op_validate(struct world *w)
{
    static const struct batch_rules rules = {
        .from_client = true,
        .produce_version = 12,
        .max_message_bytes = INT32_MAX,
        .segment_bytes = INT32_MAX,
        .before_max_ms = INT64_MAX,
        .after_max_ms = 3600000,
        .now_ms = 1700000000000,
        .target_codec = -1,
    };
    struct batch_verdict verdict;
    enum err err = batch_validate(w->batch, &rules, w->d, &w->arena, &verdict);

    assert(!err);
    w->sink += (uint64_t)verdict.max_timestamp;
}

static void op_iterate(struct world *w)
{
    struct record r;
    enum err err = record_iter_batch(&w->it, w->batch);

    while (!err) {
        err = record_iter_next(&w->it, &r);
        w->sink += (uint64_t)r.key.n;
    }
    assert(err == ERR_EOF);
}

static void op_rebuild(struct world *w)
{
    enum err err;

    buf_reset(&w->out);
    err = batch_rebuild(w->batch, (enum codec)(w->batch.p[22] & BATCH_CODEC_MASK),
                        CODEC_LEVEL_DEFAULT, TIMESTAMP_CREATE, 0, &w->out);
    assert(!err);
}

/* Nanoseconds for one call. */
static double measure(struct world *w, void (*op)(struct world *))
{
    double best = 1e18;
    int calls = 1;

    for (int round = 0; round < ROUNDS;) {
        double start = now_ns();
        double ns;

        for (int i = 0; i < calls; i++)
            op(w);
        ns = now_ns() - start;
        if (ns < ROUND_NS) {
            calls *= 2;
            continue;
        }
        best = MIN(best, ns / calls);
        round++;
    }
    return best;
}

static void fill_batch(struct buf *out, enum codec codec, int count, int value_bytes)
{
    static const char words[] = "order customer amount currency shipped pending 0123456789 ";
    struct batch_spec spec = batch_spec_default();
    struct batch_builder b;
    struct rng rng = rng_seeded(1);
    struct buf value = {0};

    spec.codec = codec;
    batch_builder_init(&b, &spec);
    for (int i = 0; i < count; i++) {
        char key[24];
        struct record r = {.timestamp = 1700000000000 + i / 10};
        enum err err;

        buf_reset(&value);
        while (value.n < (size_t)value_bytes)
            buf_append(&value, words + rng_below(&rng, sizeof(words) - 8), 7);
        r.key = (struct bytes){(uint8_t *)key, snprintf(key, sizeof(key), "key-%06d", i)};
        r.value = (struct bytes){value.p, value_bytes};
        err = batch_builder_append(&b, &r);
        assert(!err);
    }
    batch_builder_finish(&b, out);
    batch_builder_fini(&b);
    buf_fini(&value);
}

static void run(enum codec codec, int count, int value_bytes, bool with_rebuild)
{
    struct world w = {.count = count, .d = decompressor_new()};
    struct buf batch = {0};
    double copy, crc, validate, iterate;

    fill_batch(&batch, codec, count, value_bytes);
    w.batch = buf_bytes(&batch, 0);
    arena_init(&w.arena, 0);
    record_iter_init(&w.it);
    copy = measure(&w, op_memcpy);
    crc = measure(&w, op_crc);
    validate = measure(&w, op_validate);
    iterate = measure(&w, op_iterate);
    printf("%-7s %6d x %5d %8d B  memcpy %6.2f GB/s  crc %6.2f  validate %6.2f  = %5.1f crc"
           " = %5.1f memcpy  %7.1f ns/record  iterate %7.1f ns/record",
           codec_name(codec), count, value_bytes, w.batch.n, w.batch.n / copy, w.batch.n / crc,
           w.batch.n / validate, validate / crc, validate / copy, validate / count,
           iterate / count);
    if (with_rebuild)
        printf("  rebuild %7.1f ns/record", measure(&w, op_rebuild) / count);
    printf("\n");
    record_iter_fini(&w.it);
    arena_fini(&w.arena);
    decompressor_free(w.d);
    buf_fini(&w.out);
    buf_fini(&batch);
}

int main(int argc, char **argv)
{
    static const int shapes[][2] = {{1, 100}, {1, 1000}, {100, 100}, {1000, 10}, {1000, 1000}};
    bool with_rebuild = argc > 1 && strcmp(argv[1], "rebuild") == 0;

    for (int codec = 0; codec < CODEC_COUNT; codec++)
        for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
            run((enum codec)codec, shapes[i][0], shapes[i][1], with_rebuild);
    return 0;
}
