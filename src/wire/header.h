/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_WIRE_HEADER_H
#define SL_WIRE_HEADER_H

#include "wire/apis.h"
#include "wire/codec.h"

/*
 * What precedes the body of every message. A frame is a 32-bit size and that many bytes: a header
 * and a body. The form of the header follows from key and version. Pure, any thread.
 */
#define FRAME_SIZE_BYTES 4

struct request_header {
    int16_t api_key;
    int16_t api_version;
    int32_t correlation_id; /* any value; comes back with the response */
    struct str client_id;   /* slice of the frame; null if the client sent none */
    const struct api *api;  /* NULL if we do not know the key at all */
};

/*
 * Decodes the header of a frame (without its size); *body_at is where the body starts.
 * ERR_UNSUPPORTED_VERSION for a key or a version that we do not serve: key, version and
 * correlation id are valid then, so that ApiVersions can be answered in version 0. body_at is 0
 * unless the schema knows the version, which is enough to look at an old frame.
 * ERR_MALFORMED: not even that could be read, the connection is of no use.
 */
must_use enum err wire_request_header_decode(struct bytes frame, struct request_header *out,
                                             size_t *body_at);

/* Appends the header of a request; the key must be one of ours (asserted). Borrows client_id. */
void wire_request_header_encode(const struct request_header *header, struct wire_out *out);

/* Appends the header of the response to a request of this key and version. */
void wire_response_header_encode(int16_t api_key, int16_t api_version, int32_t correlation_id,
                                 struct wire_out *out);

/* ERR_MALFORMED. The key must be one of ours (asserted). */
must_use enum err wire_response_header_decode(struct bytes frame, int16_t api_key,
                                              int16_t api_version, int32_t *correlation_id,
                                              size_t *body_at);

/*
 * The size in front of a frame: begin reserves it in an empty output, end writes it once header
 * and body are there. The size counts the holes of the output.
 */
void wire_frame_begin(struct wire_out *out);
void wire_frame_end(struct wire_out *out);

#endif
