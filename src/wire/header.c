/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of requests and responses. They are older than the schemas and irregular in four ways,
 * which is why they are written by hand: the client id keeps its 16-bit length even where
 * everything else is compact; the header's form depends on the version of the body; the response
 * to ApiVersions always has the oldest header, because a client that reads it does not yet know
 * what the broker speaks (KIP-511); and the first version of ControlledShutdown is older than the
 * client id and has none.
 */
#include "wire/header.h"

#include "base/assert.h"

#define REQUEST_FIXED_BYTES 8 /* key, version, correlation id */

static bool is_flexible(const struct api *api, int16_t version)
{
    return version >= api->flexible_from;
}

static bool schema_has(const struct api *api, int16_t version)
{
    return version >= schema_first(api->request) && version <= schema_last(api->request);
}

static bool has_client_id(int16_t api_key, int16_t version)
{
    return api_key != API_CONTROLLED_SHUTDOWN || version > 0;
}

/* Skips tagged fields: none is defined for headers. Returns where they end, NULL if malformed. */
static const uint8_t *skip_tags(const uint8_t *p, const uint8_t *end)
{
    uint32_t count, tag, size;
    int64_t before = -1;
    int n = uvarint_get(p, end, &count);

    if (n == 0)
        return NULL;
    p += n;
    for (uint32_t i = 0; i < count; i++) {
        n = uvarint_get(p, end, &tag);
        if (n == 0 || tag <= before)
            return NULL;
        before = tag;
        p += n;
        n = uvarint_get(p, end, &size);
        if (n == 0 || size > (size_t)(end - p) - (size_t)n)
            return NULL;
        p += n + (int64_t)size;
    }
    return p;
}

static const uint8_t *take_client_id(const uint8_t *p, const uint8_t *end, struct str *out)
{
    int16_t n;

    if (end - p < 2)
        return NULL;
    n = get_i16(p);
    p += 2;
    if (n < -1 || n > end - p)
        return NULL;
    *out = n < 0 ? str_null() : (struct str){.p = (const char *)p, .n = n};
    return p + MAX(n, 0);
}

enum err wire_request_header_decode(struct bytes frame, struct request_header *out, size_t *body_at)
{
    const uint8_t *p = frame.p;
    const uint8_t *end = frame.p + MAX(frame.n, 0);

    *body_at = 0;
    *out = (struct request_header){.client_id = str_null()};
    if (frame.n < REQUEST_FIXED_BYTES)
        return ERR_MALFORMED;
    out->api_key = get_i16(p);
    out->api_version = get_i16(p + 2);
    out->correlation_id = get_i32(p + 4);
    out->api = api_find(out->api_key);
    if (!out->api || !schema_has(out->api, out->api_version))
        return ERR_UNSUPPORTED_VERSION;
    p += REQUEST_FIXED_BYTES;
    if (has_client_id(out->api_key, out->api_version))
        p = take_client_id(p, end, &out->client_id);
    if (p && is_flexible(out->api, out->api_version))
        p = skip_tags(p, end);
    if (!p)
        return ERR_MALFORMED;
    *body_at = (size_t)(p - frame.p);
    if (out->api_version < out->api->min || out->api_version > out->api->max)
        return ERR_UNSUPPORTED_VERSION;
    return ERR_NONE;
}

void wire_request_header_encode(const struct request_header *header, struct wire_out *out)
{
    const struct api *api = api_find(header->api_key);
    uint8_t fixed[REQUEST_FIXED_BYTES + 2];
    struct str id = header->client_id;
    bool has_id = has_client_id(header->api_key, header->api_version);

    assert(api != NULL);
    assert(id.n <= INT16_MAX);
    put_i16(fixed, header->api_key);
    put_i16(fixed + 2, header->api_version);
    put_i32(fixed + 4, header->correlation_id);
    put_i16(fixed + 8, (int16_t)id.n);
    wire_out_put(out, fixed, has_id ? sizeof(fixed) : REQUEST_FIXED_BYTES);
    if (has_id)
        wire_out_put(out, id.p, (size_t)MAX(id.n, 0));
    if (is_flexible(api, header->api_version))
        wire_out_put(out, "", 1); /* no tags */
}

static bool response_has_tags(int16_t api_key, int16_t api_version)
{
    const struct api *api = api_find(api_key);

    assert(api != NULL);
    return api_key != API_API_VERSIONS && is_flexible(api, api_version);
}

void wire_response_header_encode(int16_t api_key, int16_t api_version, int32_t correlation_id,
                                 struct wire_out *out)
{
    uint8_t id[4];

    put_i32(id, correlation_id);
    wire_out_put(out, id, sizeof(id));
    if (response_has_tags(api_key, api_version))
        wire_out_put(out, "", 1);
}

enum err wire_response_header_decode(struct bytes frame, int16_t api_key, int16_t api_version,
                                     int32_t *correlation_id, size_t *body_at)
{
    const uint8_t *p = frame.p;

    *correlation_id = 0;
    *body_at = 0;
    if (frame.n < 4)
        return ERR_MALFORMED;
    *correlation_id = get_i32(p);
    p += 4;
    if (response_has_tags(api_key, api_version))
        p = skip_tags(p, frame.p + frame.n);
    if (!p)
        return ERR_MALFORMED;
    *body_at = (size_t)(p - frame.p);
    return ERR_NONE;
}

void wire_frame_begin(struct wire_out *out)
{
    assert(out->n == 0);
    wire_out_extend(out, FRAME_SIZE_BYTES);
}

void wire_frame_end(struct wire_out *out)
{
    uint64_t size = wire_out_size(out) - FRAME_SIZE_BYTES;

    if (!out->err)
        put_u32(out->p, (uint32_t)size);
}
