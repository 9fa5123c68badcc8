/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd (RFC 8878) by libzstd. Several frames one after another are one stream. The library's own
 * bound on the window (128 MiB) is kept: the Java client's highest levels ask for it.
 */
#include <stdlib.h>

#include <zstd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "record/record_int.h"

struct zstd_decoder {
    ZSTD_DCtx *ctx;
    ZSTD_inBuffer in;
    bool at_end; /* a frame has ended, nothing of the next has been read */
};

static void *zstd_new(void)
{
    struct zstd_decoder *z = xcalloc(1, sizeof(*z));

    z->ctx = ZSTD_createDCtx();
    assert(z->ctx);
    return z;
}

static void zstd_free(void *state)
{
    struct zstd_decoder *z = state;

    ZSTD_freeDCtx(z->ctx);
    free(z);
}

static void zstd_start(void *state, struct bytes in)
{
    struct zstd_decoder *z = state;

    ZSTD_DCtx_reset(z->ctx, ZSTD_reset_session_only);
    z->in = (ZSTD_inBuffer){.src = in.p, .size = (size_t)in.n};
    z->at_end = false;
}

static enum err zstd_read(void *state, uint8_t *out, size_t cap, size_t *n)
{
    struct zstd_decoder *z = state;
    ZSTD_outBuffer o = {.dst = out, .size = cap};

    while (o.pos < o.size && !(z->at_end && z->in.pos == z->in.size)) {
        size_t before = o.pos + z->in.pos;
        size_t hint = ZSTD_decompressStream(z->ctx, &o, &z->in);

        /* No progress with room for output: the input is cut off. */
        if (ZSTD_isError(hint) || (hint > 0 && o.pos + z->in.pos == before))
            return ERR_CORRUPT_MESSAGE;
        z->at_end = hint == 0;
    }
    *n = o.pos;
    return ERR_NONE;
}

static void zstd_compress(int level, struct bytes in, struct buf *out)
{
    size_t bound = ZSTD_compressBound((size_t)in.n);
    size_t n;

    level = level == CODEC_LEVEL_DEFAULT ? ZSTD_CLEVEL_DEFAULT : level;
    level = MAX(ZSTD_minCLevel(), MIN(level, ZSTD_maxCLevel()));
    n = ZSTD_compress(buf_reserve(out, bound), bound, in.p, (size_t)in.n, level);
    assert(!ZSTD_isError(n));
    out->n += n;
}

const struct codec_ops codec_zstd = {
    .name = "zstd",
    .decoder_new = zstd_new,
    .decoder_free = zstd_free,
    .decoder_start = zstd_start,
    .decoder_read = zstd_read,
    .compress = zstd_compress,
};
