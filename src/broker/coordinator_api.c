/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FindCoordinator. There are no groups or transactions yet, so no coordinator can be found: the
 * answer is an error that clients do not retry. The API is served all the same, because older
 * librdkafka uses LZ4 only with brokers that have it.
 */
#include "broker/broker_int.h"

#define NO_COORDINATOR "this broker serves neither consumer groups nor transactions yet"

void handle_find_coordinator(struct request *r)
{
    const struct find_coordinator_request *in = r->in;
    struct find_coordinator_response *out = r->out;
    int32_t n = MAX(in->coordinator_keys.n, 0);

    out->error_code = ERR_INVALID_REQUEST;
    out->error_message = STR_LIT(NO_COORDINATOR);
    out->node_id = -1;
    out->host = STR_LIT("");
    out->port = -1;
    out->coordinators.n = n;
    out->coordinators.v = request_array(r, &find_coordinator_response_coordinator_schema, n);
    for (int32_t i = 0; i < n; i++) {
        struct find_coordinator_response_coordinator *c = &out->coordinators.v[i];

        c->key = in->coordinator_keys.v[i];
        c->node_id = -1;
        c->host = STR_LIT("");
        c->port = -1;
        c->error_code = ERR_INVALID_REQUEST;
        c->error_message = STR_LIT(NO_COORDINATOR);
    }
    request_reply(r);
}
