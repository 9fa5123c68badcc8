/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip (RFC 1952) by zlib. Several members one after another are one stream, as in the RFC; what
 * follows a member and is no member is damage.
 */
#include <stdlib.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "record/record_int.h"

/* The largest window, and 16 for "a gzip header, not zlib's own". */
#define GZIP_WINDOW_BITS (MAX_WBITS + 16)
#define GZIP_MEMORY_LEVEL 8

struct gzip_decoder {
    z_stream z;
    bool at_end; /* a member has ended, nothing of the next has been read */
};

static void *gzip_new(void)
{
    struct gzip_decoder *g = xcalloc(1, sizeof(*g));
    int rc = inflateInit2(&g->z, GZIP_WINDOW_BITS);

    assert(rc == Z_OK);
    return g;
}

static void gzip_free(void *state)
{
    struct gzip_decoder *g = state;

    inflateEnd(&g->z);
    free(g);
}

static void gzip_start(void *state, struct bytes in)
{
    struct gzip_decoder *g = state;
    int rc = inflateReset(&g->z);

    assert(rc == Z_OK);
    g->z.next_in = (Bytef *)(uintptr_t)in.p;
    g->z.avail_in = (uInt)in.n;
    g->at_end = false;
}

/* One call of the library. False: the stream is damaged. */
static bool gzip_inflate(struct gzip_decoder *g)
{
    int rc;

    if (g->at_end && inflateReset(&g->z) != Z_OK)
        return false;
    rc = inflate(&g->z, Z_NO_FLUSH);
    g->at_end = rc == Z_STREAM_END;
    return rc == Z_OK || rc == Z_STREAM_END;
}

static enum err gzip_read(void *state, uint8_t *out, size_t cap, size_t *n)
{
    struct gzip_decoder *g = state;

    cap = MIN(cap, (size_t)INT32_MAX);
    g->z.next_out = out;
    g->z.avail_out = (uInt)cap;
    while (g->z.avail_out > 0 && !(g->at_end && g->z.avail_in == 0)) {
        /* Input that ends inside a member shows as Z_BUF_ERROR: no progress is possible. */
        if (!gzip_inflate(g))
            return ERR_CORRUPT_MESSAGE;
    }
    *n = cap - g->z.avail_out;
    return ERR_NONE;
}

static void gzip_compress(int level, struct bytes in, struct buf *out)
{
    z_stream z = {0};
    size_t bound;
    int rc;

    /* Kafka knows -1, the default, and 1 to 9 (KIP-390): never 0, which only stores. */
    if (level == CODEC_LEVEL_DEFAULT)
        level = Z_DEFAULT_COMPRESSION;
    if (level != Z_DEFAULT_COMPRESSION)
        level = MAX(Z_BEST_SPEED, MIN(level, Z_BEST_COMPRESSION));
    rc = deflateInit2(&z, level, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
                      Z_DEFAULT_STRATEGY);
    assert(rc == Z_OK);
    bound = deflateBound(&z, (uLong)in.n);
    z.next_in = (Bytef *)(uintptr_t)in.p;
    z.avail_in = (uInt)in.n;
    z.next_out = buf_reserve(out, bound);
    z.avail_out = (uInt)bound;
    rc = deflate(&z, Z_FINISH);
    assert(rc == Z_STREAM_END);
    out->n += bound - z.avail_out;
    deflateEnd(&z);
}

const struct codec_ops codec_gzip = {
    .name = "gzip",
    .decoder_new = gzip_new,
    .decoder_free = gzip_free,
    .decoder_start = gzip_start,
    .decoder_read = gzip_read,
    .compress = gzip_compress,
};
