/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The LZ4 frame format by liblz4.
 *
 * Kafka's own reader knows only frames of independent blocks, so that is what is written, and a
 * frame of linked blocks is refused: it would be stored and no Java consumer could read it.
 * One frame is one stream; bytes behind it are damage.
 */
#include <stdlib.h>

#include <lz4frame.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "record/record_int.h"

/* The fifth byte of a frame describes it; this bit says that its blocks are independent. */
#define LZ4_FLAGS_AT 4
#define LZ4_FLAG_INDEPENDENT 0x20

/* Kafka's scale of levels (KIP-390): its default, 9, means the fast compressor. */
#define LZ4_KAFKA_LEVEL_DEFAULT 9
#define LZ4_LEVEL_MAX 17

struct lz4_decoder {
    LZ4F_dctx *ctx;
    struct bytes in; /* what is left of the input */
    bool at_end;     /* the frame is complete */
    bool is_linked;
};

static void *lz4_new(void)
{
    struct lz4_decoder *l = xcalloc(1, sizeof(*l));
    size_t rc = LZ4F_createDecompressionContext(&l->ctx, LZ4F_VERSION);

    assert(!LZ4F_isError(rc));
    return l;
}

static void lz4_free(void *state)
{
    struct lz4_decoder *l = state;

    LZ4F_freeDecompressionContext(l->ctx);
    free(l);
}

static void lz4_start(void *state, struct bytes in)
{
    struct lz4_decoder *l = state;

    LZ4F_resetDecompressionContext(l->ctx);
    l->in = in;
    l->at_end = false;
    l->is_linked = in.n > LZ4_FLAGS_AT && !(in.p[LZ4_FLAGS_AT] & LZ4_FLAG_INDEPENDENT);
}

/* One call of the library; *n bytes of output. False: the stream is damaged or cut off. */
static bool lz4_step(struct lz4_decoder *l, uint8_t *out, size_t cap, size_t *n)
{
    size_t used = (size_t)l->in.n;
    size_t hint;

    *n = cap;
    hint = LZ4F_decompress(l->ctx, out, n, l->in.p, &used, NULL);
    if (LZ4F_isError(hint) || (hint > 0 && used == 0 && *n == 0))
        return false;
    l->at_end = hint == 0;
    l->in.p += used;
    l->in.n -= (int32_t)used;
    return true;
}

static enum err lz4_read(void *state, uint8_t *out, size_t cap, size_t *n)
{
    struct lz4_decoder *l = state;
    size_t got;

    if (l->is_linked)
        return ERR_CORRUPT_MESSAGE;
    for (*n = 0; *n < cap && !l->at_end; *n += got) {
        if (!lz4_step(l, out + *n, cap - *n, &got))
            return ERR_CORRUPT_MESSAGE;
    }
    return l->at_end && l->in.n > 0 ? ERR_CORRUPT_MESSAGE : ERR_NONE;
}

static void lz4_compress(int level, struct bytes in, struct buf *out)
{
    LZ4F_preferences_t prefs = {
        .frameInfo = {.blockSizeID = LZ4F_max64KB, .blockMode = LZ4F_blockIndependent},
    };
    size_t bound = LZ4F_compressFrameBound((size_t)in.n, &prefs);
    size_t n;

    if (level != CODEC_LEVEL_DEFAULT && level != LZ4_KAFKA_LEVEL_DEFAULT)
        prefs.compressionLevel = MAX(0, MIN(level, LZ4_LEVEL_MAX));
    n = LZ4F_compressFrame(buf_reserve(out, bound), bound, in.p, (size_t)in.n, &prefs);
    assert(!LZ4F_isError(n));
    out->n += n;
}

const struct codec_ops codec_lz4 = {
    .name = "lz4",
    .decoder_new = lz4_new,
    .decoder_free = lz4_free,
    .decoder_start = lz4_start,
    .decoder_read = lz4_read,
    .compress = lz4_compress,
};
