/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether another broker is there: a small question every 150 ms over the connection that orders
 * and proposals use too. The kernel of a machine whose process is gone answers for it, at once.
 */
#include "broker/probe.h"

#include "io/io.h"
#include "wire/apis.h"

#define ASK_NS 150000000

static void ask(struct probe *p);

static void due(struct client_alarm *alarm)
{
    ask(CONTAINER_OF(alarm, struct probe, alarm));
}

static void ask_in(struct probe *p, int64_t ns)
{
    client_alarm_set(p->peers, &p->alarm, io_loop_mono_ns(client_loop(p->peers)) + ns);
}

void probe_note(struct probe *p, enum err err)
{
    bool is_first = !p->has_refused;

    if (!err)
        p->has_refused = false;
    if (err != ERR_REFUSED)
        return;
    p->has_refused = true;
    p->refused(p, is_first);
}

static void answered(struct client_call *call)
{
    struct probe *p = CONTAINER_OF(call, struct probe, call);

    /* A connection that broke is tried again at once: who is gone refuses it. */
    ask_in(p, call->err == ERR_NETWORK_EXCEPTION ? 0 : ASK_NS);
    probe_note(p, call->err);
}

static void ask(struct probe *p)
{
    p->call.target = p->target;
    client_call(p->peers, &p->call);
}

void probe_init(struct probe *p, struct client *peers,
                void (*refused)(struct probe *p, bool is_first))
{
    *p = (struct probe){.peers = peers, .target = -1, .refused = refused};
    p->alarm.ring = due;
    p->call.done = answered;
    p->call.api_key = API_API_VERSIONS;
    p->call.request = &p->question;
    wire_init(&api_versions_request_schema, &p->question);
    p->question.client_software_name = STR_LIT("strandline");
    p->question.client_software_version = STR_LIT("0");
}

void probe_set_target(struct probe *p, int32_t target)
{
    if (p->target == target)
        return;
    client_cancel(&p->call);
    client_alarm_clear(p->peers, &p->alarm);
    p->target = target;
    p->has_refused = false;
    if (target >= 0)
        ask_in(p, 0);
}

void probe_stop(struct probe *p)
{
    client_call_fini(&p->call);
    client_alarm_clear(p->peers, &p->alarm);
}
