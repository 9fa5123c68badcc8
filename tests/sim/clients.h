/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_CLIENTS_H
#define SL_TESTS_SIM_CLIENTS_H

#include "peer.h"
#include "run.h"

/*
 * The actors of the clients' process, each with a connection of its own. They choose what to do
 * next by run_choose, and tell the history what they were told.
 */
struct actor;

struct producer;
struct producer *producer_new(struct run *run, int index);
void producer_free(struct producer *p);
/* Every tick of the clients' clock: does what is due. */
void producer_tick(struct producer *p);
/* Nothing is in flight or waits to be sent again. */
bool producer_is_idle(const struct producer *p);

struct consumer;
/* A verifier reads every partition from its start and does not linger. */
struct consumer *consumer_new(struct run *run, int index, bool is_verifier);
void consumer_free(struct consumer *c);
void consumer_tick(struct consumer *c);
/* Begins anew, at the first offset of every partition. */
void consumer_restart(struct consumer *c);
/* It has read every partition to its end. */
bool consumer_is_done(const struct consumer *c);
/* Makes a violation of what it has not read. */
void consumer_complain(const struct consumer *c);

struct admin;
struct admin *admin_new(struct run *run);
void admin_free(struct admin *a);
void admin_tick(struct admin *a);
/* No change is under way, and what there is has been compared since the broker's last start. */
bool admin_is_settled(const struct admin *a);

struct clients {
    struct run *run;
    struct io_timer tick;
    struct admin *admin;
    struct producer *producers[PRODUCERS_MAX];
    struct consumer *consumers[CONSUMERS_MAX];
    struct consumer *verifier;
    bool verifies;
};

#endif
