/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_PROBE_H
#define SL_BROKER_PROBE_H

#include "client/client.h"
#include "wire/messages.h"

/*
 * Asks another broker now and then whether it is there (ApiVersions). One that refuses the
 * connection is *suspect*: its process is gone, and its session with the keeper will say so seconds
 * later. A machine that is silent is not: nobody knows what it does. What a suspicion leads to is
 * fenced by epochs, so a wrong one costs time and nothing else. Control loop.
 */
struct probe {
    struct client *peers;
    int32_t target;   /* broker id; -1: nobody is asked */
    bool has_refused; /* and has not answered since */
    /* Each time. */
    void (*refused)(struct probe *p, bool is_first);
    struct client_call call;
    struct api_versions_request question;
    struct client_alarm alarm;
};

void probe_init(struct probe *p, struct client *peers,
                void (*refused)(struct probe *p, bool is_first));
/* The same one again changes nothing. */
void probe_set_target(struct probe *p, int32_t target);
/* What another call to the target has met: ERR_NONE, ERR_REFUSED; others say nothing. */
void probe_note(struct probe *p, enum err err);
/* No more questions: its memory is the caller's again. Before the client is closed. */
void probe_stop(struct probe *p);

#endif
