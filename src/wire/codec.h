/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_WIRE_CODEC_H
#define SL_WIRE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

/*
 * Messages of the Kafka protocol to and from bytes. A message is one plain struct, the union of
 * all its versions (wire/messages.h); its schema is a constant (`produce_request_schema`). A field
 * that a version lacks gets its default when decoded and is left out when encoded. Pure: any
 * thread, nothing is shared.
 */
struct schema;

/*
 * Record batches. Decoded: a slice of the input in b. To encode bytes that are not in memory as
 * one piece, set ext: only their length is written, and the output notes a hole (struct wire_out).
 */
struct records {
    struct bytes b;
    void *ext;        /* the encoder's caller knows what it is; NULL: use b */
    int64_t ext_size; /* bytes; only with ext */
};

/* Sets every field of msg to its default; strings and arrays become empty or null. */
void wire_init(const struct schema *schema, void *msg);

/*
 * Decodes one message from the start of `in` into out, a struct of the schema's type. Strings and
 * bytes are slices of `in`, arrays lie in the arena: both must outlive the message. Counts are
 * checked against the bytes that are left before memory is taken, and the arena pays at most
 * DECODE_AMPLIFICATION_MAX bytes for each byte of `in`. Tags that we do not know are skipped.
 * *used is the size of the message; bytes behind it are the caller's business.
 * ERR_MALFORMED; ERR_LIMIT (memory); ERR_UNSUPPORTED_VERSION (not in the schema). On error *used
 * is 0 and out holds values that are safe to look at but mean nothing.
 */
must_use enum err wire_decode(const struct schema *schema, int16_t version, struct bytes in,
                              struct arena *arena, void *out, size_t *used);

/* Bytes that belong at position `at` of the output's memory but are kept elsewhere. */
struct wire_hole {
    size_t at;
    void *ext;
    int64_t ext_size;
};

/*
 * A growing output. Errors stick: later writes do nothing, and the first error is in err.
 * Zero-initialised is empty. The encoded bytes are p[0..n) with the holes filled in.
 */
struct wire_out {
    uint8_t *p; /* owned */
    size_t n;
    size_t cap;
    enum err err;
    struct wire_hole *holes; /* owned, ascending by at */
    size_t holes_n;
    size_t holes_cap;
};

void wire_out_fini(struct wire_out *out);
/* Empty again, without its error; keeps the memory. */
void wire_out_reset(struct wire_out *out);
/* Bytes of the output with every hole filled. */
uint64_t wire_out_size(const struct wire_out *out);
/* Appends n bytes that the caller fills at once; NULL after an error. */
uint8_t *wire_out_extend(struct wire_out *out, size_t n);
void wire_out_put(struct wire_out *out, const void *p, size_t n);

/*
 * Appends a message. Borrows msg and all that it points to; exts of records are noted and never
 * looked at. out->err becomes ERR_INVALID_ARG for a null where the version has none or a length
 * that does not fit, ERR_LIMIT beyond RESPONSE_BYTES_MAX (holes included), and
 * ERR_UNSUPPORTED_VERSION for a version that is not in the schema.
 */
void wire_encode(const struct schema *schema, int16_t version, const void *msg,
                 struct wire_out *out);

/* Calls fn for every error of a response: its fields error_code, at any depth, that are not 0. */
void wire_each_error(const struct schema *schema, const void *msg,
                     void (*fn)(void *ctx, int16_t code), void *ctx);

/* Versions of a message that its schema describes, both inclusive, and the first flexible one. */
int16_t schema_first(const struct schema *schema);
int16_t schema_last(const struct schema *schema);
int16_t schema_flexible_from(const struct schema *schema);
/* The message's name, as in its struct. */
const char *schema_name(const struct schema *schema);
/* sizeof of its struct. */
size_t schema_size(const struct schema *schema);

#endif
