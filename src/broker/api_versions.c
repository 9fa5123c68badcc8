/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ApiVersions (KIP-35, KIP-511): what we serve, straight from the table that dispatches. It is the
 * first request of nearly every client, and the one whose rules have exceptions: an unknown
 * version is answered in version 0 with error 35 and the versions of ApiVersions itself, and the
 * connection stays open. Tagged fields with default values are left out, since librdkafka 2.0.2
 * cannot read a response that carries them all.
 */
#include "broker/broker_int.h"

#include <stdio.h>
#include <string.h>

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* KIP-511: letters, digits, '-' and '.', the first and the last a letter or a digit. */
static bool is_software_name(struct str s)
{
    if (s.n <= 0 || !is_alnum(s.p[0]) || !is_alnum(s.p[s.n - 1]))
        return false;
    for (int32_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '.')
            return false;
    return true;
}

static void add_keys(struct request *r, int first, int count)
{
    struct api_versions_response *out = r->out;

    out->api_keys.v = request_array(r, &api_versions_response_api_key_schema, count);
    for (int i = 0; i < count; i++) {
        const struct api *api = api_at(first + i);
        struct api_versions_response_api_key *key = &out->api_keys.v[out->api_keys.n];

        if (!request_is_served(r, api))
            continue;
        key->api_key = api->key;
        key->min_version = api->min;
        key->max_version = api->max;
        out->api_keys.n++;
    }
}

void api_versions_unsupported(struct request *r)
{
    struct api_versions_response *out;

    r->header.api_version = 0;
    r->api = api_find(API_API_VERSIONS);
    r->out = request_alloc(r, sizeof(*out));
    wire_init(r->api->response, r->out);
    out = r->out;
    out->error_code = ERR_UNSUPPORTED_VERSION;
    add_keys(r, API_INDEX_API_VERSIONS, 1);
    request_reply(r);
}

void handle_api_versions(struct request *r)
{
    const struct api_versions_request *in = r->in;
    struct api_versions_response *out = r->out;

    if (r->header.api_version >= 3) {
        if (!is_software_name(in->client_software_name) ||
            !is_software_name(in->client_software_version)) {
            out->error_code = ERR_INVALID_REQUEST;
            request_reply(r);
            return;
        }
        snprintf(r->conn->client_software, sizeof(r->conn->client_software), "%.*s %.*s",
                 STR_ARG(in->client_software_name), STR_ARG(in->client_software_version));
    }
    add_keys(r, 0, API_COUNT);
    request_reply(r);
}
