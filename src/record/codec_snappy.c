/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snappy by libsnappy, which knows blocks but no stream. Two forms are on the wire:
 *
 *   raw       one block for everything, as librdkafka sends it
 *   framed    snappy-java's: 16 bytes of head (magic, version 1, compatible 1), then any number of
 *             (length i32, block), in practice of 32 KiB each; this is what we write
 *
 * A block is decompressed into memory of our own and handed out from there. The length that a block
 * claims is checked against what its bytes can hold before anything is allocated: a copy of at most
 * 64 bytes takes three, so 22 times is beyond what any block can reach.
 */
#include <snappy-c.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "record/record_int.h"

#define FRAMED_HEAD_BYTES 16
#define FRAMED_MAGIC_BYTES 8
#define FRAMED_BLOCK_BYTES (32 * 1024)
#define EXPANSION_MAX 22
/* A larger block's memory is given back before the next input. */
#define KEPT_BYTES_MAX (1024 * 1024)

static const uint8_t framed_head[FRAMED_HEAD_BYTES] = {
    0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1,
};

struct snappy_decoder {
    struct bytes in; /* blocks that are still to come */
    bool is_framed;
    bool is_bad;      /* a frame of a version that we cannot read */
    struct buf block; /* the current block, decompressed */
    size_t given;     /* bytes of it that have been read */
};

static void *snappy_new(void)
{
    return xcalloc(1, sizeof(struct snappy_decoder));
}

static void snappy_free(void *state)
{
    struct snappy_decoder *s = state;

    buf_fini(&s->block);
    free(s);
}

static void snappy_start(void *state, struct bytes in)
{
    struct snappy_decoder *s = state;

    if (s->block.cap > KEPT_BYTES_MAX)
        buf_fini(&s->block);
    buf_reset(&s->block);
    s->given = 0;
    s->in = in;
    s->is_framed = in.n >= FRAMED_HEAD_BYTES && !memcmp(in.p, framed_head, FRAMED_MAGIC_BYTES);
    /* The head ends with the oldest version that can read what follows. */
    s->is_bad = s->is_framed && get_i32(in.p + FRAMED_HEAD_BYTES - 4) > 1;
    if (s->is_framed) {
        s->in.p += FRAMED_HEAD_BYTES;
        s->in.n -= FRAMED_HEAD_BYTES;
    }
}

/* Cuts the next block off the input. False: the input ends inside it. */
static bool snappy_cut(struct snappy_decoder *s, struct bytes *block)
{
    *block = s->in;
    if (s->is_framed) {
        if (s->in.n < 4)
            return false;
        block->n = get_i32(s->in.p);
        block->p += 4;
        if (block->n < 0 || block->n > s->in.n - 4)
            return false;
    }
    s->in.n -= (int32_t)(block->p - s->in.p) + block->n;
    s->in.p = block->p + block->n;
    return true;
}

/* Decompresses the next block. False: damaged. */
static bool snappy_next(struct snappy_decoder *s)
{
    struct bytes block;
    size_t n;

    if (s->is_bad || !snappy_cut(s, &block))
        return false;
    if (snappy_uncompressed_length((const char *)block.p, (size_t)block.n, &n) != SNAPPY_OK)
        return false;
    if (n > (size_t)block.n * EXPANSION_MAX)
        return false;
    buf_reset(&s->block);
    s->given = 0;
    if (snappy_uncompress((const char *)block.p, (size_t)block.n, (char *)buf_reserve(&s->block, n),
                          &n) != SNAPPY_OK)
        return false;
    s->block.n = n;
    return true;
}

static enum err snappy_read(void *state, uint8_t *out, size_t cap, size_t *n)
{
    struct snappy_decoder *s = state;
    size_t ready;

    while (s->given == s->block.n && s->in.n > 0) {
        if (!snappy_next(s))
            return ERR_CORRUPT_MESSAGE;
    }
    ready = MIN(cap, s->block.n - s->given);
    if (ready > 0)
        memcpy(out, s->block.p + s->given, ready);
    s->given += ready;
    *n = ready;
    return ERR_NONE;
}

static void compress_block(struct bytes in, struct buf *out)
{
    size_t n = snappy_max_compressed_length((size_t)in.n);
    uint8_t *p = buf_reserve(out, 4 + n);
    snappy_status rc = snappy_compress((const char *)in.p, (size_t)in.n, (char *)p + 4, &n);

    assert(rc == SNAPPY_OK);
    put_i32(p, (int32_t)n);
    out->n += 4 + n;
}

static void snappy_compress_framed(int level, struct bytes in, struct buf *out)
{
    (void)level;
    buf_append(out, framed_head, sizeof(framed_head));
    while (in.n > 0) {
        struct bytes block = {.p = in.p, .n = MIN(in.n, FRAMED_BLOCK_BYTES)};

        compress_block(block, out);
        in.p += block.n;
        in.n -= block.n;
    }
}

const struct codec_ops codec_snappy = {
    .name = "snappy",
    .decoder_new = snappy_new,
    .decoder_free = snappy_free,
    .decoder_start = snappy_start,
    .decoder_read = snappy_read,
    .compress = snappy_compress_framed,
};
