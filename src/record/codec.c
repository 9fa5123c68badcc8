/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of codecs and the streaming decompressor in front of it.
 *
 * Each codec lives in a file of its own, which is the only one that knows its library, and exports
 * a struct codec_ops. The decompressor makes a codec's state when it is first needed and keeps it:
 * the contexts of zstd and lz4 cost far more to make than a small batch costs to decompress.
 *
 * The limit on the output is enforced here and once for all: a decoder is never asked for more
 * than one byte beyond it, so a bomb costs no more than the limit, whatever its codec.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "record/record_int.h"

struct decompressor {
    void *states[CODEC_COUNT]; /* owned; NULL until first used */
    enum codec codec;          /* of the current input */
    int64_t left;              /* bytes of output still allowed */
};

static const struct codec_ops *const codecs[CODEC_COUNT] = {
    [CODEC_NONE] = &codec_none, [CODEC_GZIP] = &codec_gzip, [CODEC_SNAPPY] = &codec_snappy,
    [CODEC_LZ4] = &codec_lz4,   [CODEC_ZSTD] = &codec_zstd,
};

/* ---- No codec: the input itself. -------------------------------------------------------- */

static void *none_new(void)
{
    return xcalloc(1, sizeof(struct bytes));
}

static void none_start(void *state, struct bytes in)
{
    *(struct bytes *)state = in;
}

static enum err none_read(void *state, uint8_t *out, size_t cap, size_t *n)
{
    struct bytes *left = state;

    *n = MIN(cap, (size_t)left->n);
    if (*n == 0)
        return ERR_NONE;
    memcpy(out, left->p, *n);
    left->p += *n;
    left->n -= (int32_t)*n;
    return ERR_NONE;
}

static void none_compress(int level, struct bytes in, struct buf *out)
{
    (void)level;
    buf_append(out, in.p, (size_t)in.n);
}

const struct codec_ops codec_none = {
    .name = "none",
    .decoder_new = none_new,
    .decoder_free = free,
    .decoder_start = none_start,
    .decoder_read = none_read,
    .compress = none_compress,
};

/* ---- The table. ------------------------------------------------------------------------- */

const char *codec_name(enum codec codec)
{
    assert((unsigned)codec < CODEC_COUNT);
    return codecs[codec]->name;
}

bool codec_from_name(struct str name, enum codec *out)
{
    *out = CODEC_NONE;
    for (int i = 0; i < CODEC_COUNT; i++) {
        if (str_eq_c(name, codecs[i]->name)) {
            *out = (enum codec)i;
            return true;
        }
    }
    return false;
}

void codec_compress(enum codec codec, int level, struct bytes in, struct buf *out)
{
    assert((unsigned)codec < CODEC_COUNT);
    assert(in.n >= 0);
    codecs[codec]->compress(level, in, out);
}

struct decompressor *decompressor_new(void)
{
    return xcalloc(1, sizeof(struct decompressor));
}

void decompressor_free(struct decompressor *d)
{
    if (!d)
        return;
    for (int i = 0; i < CODEC_COUNT; i++) {
        if (d->states[i])
            codecs[i]->decoder_free(d->states[i]);
    }
    free(d);
}

void decompressor_start(struct decompressor *d, enum codec codec, struct bytes in, int64_t limit)
{
    assert((unsigned)codec < CODEC_COUNT);
    assert(in.n >= 0);
    assert(limit >= 0);
    if (!d->states[codec])
        d->states[codec] = codecs[codec]->decoder_new();
    d->codec = codec;
    d->left = limit;
    codecs[codec]->decoder_start(d->states[codec], in);
}

enum err decompressor_read(struct decompressor *d, uint8_t *out, size_t cap, size_t *n)
{
    enum err err;

    *n = 0;
    assert(cap > 0);
    assert(d->states[d->codec]);
    err = codecs[d->codec]->decoder_read(d->states[d->codec], out,
                                         (size_t)MIN((int64_t)cap, d->left + 1), n);
    if (err)
        return err;
    assert(*n <= cap);
    if ((int64_t)*n > d->left)
        return ERR_LIMIT;
    d->left -= (int64_t)*n;
    return ERR_NONE;
}
