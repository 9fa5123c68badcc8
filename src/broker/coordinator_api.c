/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FindCoordinator: this broker, as soon as there is a topic for groups. The first one who asks
 * makes it come into being, and is answered when it can be written to.
 *
 * There are no transactions yet, so a coordinator of one cannot be found: the answer is an error
 * that clients do not retry.
 */
#include "broker/coordinator.h"

#define NO_COORDINATOR "this broker serves neither transactions nor share groups yet"

enum key_type {
    KEY_GROUP = 0,
    KEY_TRANSACTION = 1,
    KEY_SHARE = 2,
};

static void fill_one(struct request *r, struct str key,
                     struct find_coordinator_response_coordinator *c)
{
    const struct find_coordinator_request *in = r->in;
    const struct metadata_broker *b;

    c->key = key;
    c->node_id = -1;
    c->host = STR_LIT("");
    c->port = -1;
    if (in->key_type != KEY_GROUP) {
        c->error_code = ERR_INVALID_REQUEST;
        c->error_message = STR_LIT(NO_COORDINATOR);
        return;
    }
    b = coordinator_broker(r->shard, key);
    if (!b || !request_broker_address(r, b, &c->host, &c->port)) {
        c->error_code = ERR_COORDINATOR_NOT_AVAILABLE;
        c->error_message = str_of(err_text(ERR_COORDINATOR_NOT_AVAILABLE));
        return;
    }
    c->node_id = b->id;
}

static void answer(struct request *r)
{
    const struct find_coordinator_request *in = r->in;
    struct find_coordinator_response *out = r->out;
    int32_t n = MAX(in->coordinator_keys.n, 0);
    struct find_coordinator_response_coordinator *first =
        request_array(r, &find_coordinator_response_coordinator_schema, 1);

    out->coordinators.n = n;
    out->coordinators.v = request_array(r, &find_coordinator_response_coordinator_schema, n);
    for (int32_t i = 0; i < n; i++)
        fill_one(r, in->coordinator_keys.v[i], &out->coordinators.v[i]);
    if (r->header.api_version < 4) {
        fill_one(r, in->key, first);
        out->error_code = first->error_code;
        /* Kafka says so where all is well. */
        out->error_message = first->error_code ? first->error_message : STR_LIT("NONE");
        out->node_id = first->node_id;
        out->host = first->host;
        out->port = first->port;
    }
    request_reply(r);
}

void handle_find_coordinator(struct request *r)
{
    const struct find_coordinator_request *in = r->in;

    if (in->key_type != KEY_GROUP || metadata_find_topic(r->shard->image, str_of(GROUP_TOPIC)))
        answer(r);
    else
        request_to_control(r, topics_create_group_topic, answer);
}
