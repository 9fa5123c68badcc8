/* SPDX-License-Identifier: Apache-2.0 */
/*
 * InitProducerId (KIP-98) for idempotent producers: every answer is an id that nobody ever had. The
 * keeper hands out blocks of a thousand, so that a restart wastes some ids and repeats none.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "broker/control.h"

struct producer_ids {
    int64_t next;
    int64_t end;         /* of the block in hand */
    struct list waiting; /* struct request by link_waiting: asked while a block is fetched */
    bool is_fetching;
};

struct waiting_request {
    struct list link;
    struct request *request;
};

struct producer_ids *producer_ids_new(void)
{
    struct producer_ids *ids = xcalloc(1, sizeof(*ids));

    list_init(&ids->waiting);
    return ids;
}

void producer_ids_free(struct producer_ids *ids)
{
    free(ids);
}

static void give(struct producer_ids *ids, struct request *r)
{
    struct init_producer_id_response *out = r->out;

    out->producer_id = ids->next++;
    out->producer_epoch = 0;
    request_return(r);
}

static void block_fetched(struct control *c, void *ctx, enum err err, int64_t first, int64_t end)
{
    struct producer_ids *ids = c->producer_ids;
    struct list *node;

    (void)ctx;
    ids->is_fetching = false;
    if (!err) {
        ids->next = first;
        ids->end = end;
    }
    while ((node = list_pop_front(&ids->waiting))) {
        struct waiting_request *w = LIST_ENTRY(node, struct waiting_request, link);
        struct init_producer_id_response *out = w->request->out;

        if (!err && ids->next < ids->end) {
            give(ids, w->request);
        } else {
            out->error_code = ERR_COORDINATOR_NOT_AVAILABLE;
            out->producer_epoch = -1;
            request_return(w->request);
        }
        free(w);
    }
}

static void init_producer_id(struct control *c, struct request *r)
{
    struct producer_ids *ids = c->producer_ids;
    struct waiting_request *w;

    if (ids->next < ids->end) {
        give(ids, r);
        return;
    }
    w = xmalloc(sizeof(*w));
    w->request = r;
    list_push_back(&ids->waiting, &w->link);
    if (!ids->is_fetching) {
        ids->is_fetching = true;
        store_take_producer_ids(c, block_fetched, NULL);
    }
}

void handle_init_producer_id(struct request *r)
{
    const struct init_producer_id_request *in = r->in;
    struct init_producer_id_response *out = r->out;

    /* A transactional producer has no use for an id here; it would only fail later. */
    if (!str_is_null(in->transactional_id) ||
        (in->producer_id == -1) != (in->producer_epoch == -1)) {
        out->error_code = ERR_INVALID_REQUEST;
        out->producer_epoch = -1;
        request_reply(r);
        return;
    }
    request_to_control(r, init_producer_id, request_reply);
}
