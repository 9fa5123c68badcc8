/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: a frame as a peer sends it, through header, body, printer and back.
 *
 * The first byte says what follows. Zero: a request, whose header names key and version. Else a
 * response, whose key and version the reader has to know already: the byte minus one is the key of
 * the API, a second byte the version.
 *
 * What must hold: nothing is read outside the input (ASan); the arena pays no more than the
 * promised multiple of the input; what was decoded can be printed and encoded; and encoding is a
 * fixed point: its bytes decode, and encode to themselves.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/limits.h"
#include "wire/header.h"
#include "wire/messages.h"
#include "wire/print.h"

#define MESSAGE_BYTES_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Encodes what `in` decodes to; false if it does not decode. */
static bool pass_through(const struct schema *schema, int16_t version, struct bytes in,
                         struct wire_out *out)
{
    max_align_t msg[MESSAGE_BYTES_MAX / sizeof(max_align_t)];
    struct arena arena;
    char line[256];
    size_t used;
    enum err err;

    assert(schema_size(schema) <= sizeof(msg));
    arena_init(&arena, 0);
    err = wire_decode(schema, version, in, &arena, msg, &used);
    assert(arena.used <= (size_t)in.n * DECODE_AMPLIFICATION_MAX);
    assert(used <= (size_t)in.n);
    if (!err) {
        wire_print(schema, version, msg, line, sizeof(line));
        wire_encode(schema, version, msg, out);
        assert(out->err == ERR_NONE);
    }
    arena_fini(&arena);
    return !err;
}

static void check_body(const struct schema *schema, int16_t version, struct bytes body)
{
    struct wire_out first = {0}, second = {0};

    if (pass_through(schema, version, body, &first)) {
        struct bytes again = {.p = first.p, .n = (int32_t)first.n};
        bool is_decoded = pass_through(schema, version, again, &second);

        assert(is_decoded);
        assert(second.n == first.n);
        assert(first.n == 0 || memcmp(first.p, second.p, first.n) == 0);
    }
    wire_out_fini(&first);
    wire_out_fini(&second);
}

static struct bytes body_of(struct bytes frame, size_t body_at)
{
    return (struct bytes){.p = frame.p + body_at, .n = frame.n - (int32_t)body_at};
}

static void check_request(struct bytes frame)
{
    struct wire_out out = {0};
    struct request_header header;
    size_t body_at;
    enum err err = wire_request_header_decode(frame, &header, &body_at);

    assert(body_at <= (size_t)frame.n);
    /* Versions that we know and do not serve are worth a look as well. */
    if (body_at == 0)
        return;
    assert(err == ERR_NONE || err == ERR_UNSUPPORTED_VERSION);
    wire_request_header_encode(&header, &out);
    assert(out.err == ERR_NONE);
    wire_out_fini(&out);
    check_body(header.api->request, header.api_version, body_of(frame, body_at));
}

static void check_response(const struct api *api, int16_t version, struct bytes frame)
{
    int32_t correlation_id;
    size_t body_at;

    if (wire_response_header_decode(frame, api->key, version, &correlation_id, &body_at))
        return;
    check_body(api->response, version, body_of(frame, body_at));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > INT32_MAX)
        return 0;
    if (data[0] == 0)
        check_request((struct bytes){.p = data + 1, .n = (int32_t)size - 1});
    else if (api_find((int16_t)(data[0] - 1)))
        check_response(api_find((int16_t)(data[0] - 1)), data[1],
                       (struct bytes){.p = data + 2, .n = (int32_t)size - 2});
    return 0;
}
