/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened in a run: counters by kind, a hash of everything, and on request the text.
 *
 * The hash covers time, kind, host, name and detail of every event and the processes' own trace
 * lines, in order. Two runs with equal hashes did the same, which is how a test shows that a seed
 * is repeatable; the text is what a person compares when they are not. Neither contains a pointer,
 * a thread id or the real time.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim_int.h"

static const char *const event_names[SIM_EVENTS] = {
    [SIM_EV_TIMER] = "timer",       [SIM_EV_SIGNAL] = "signal",
    [SIM_EV_ACCEPT] = "accept",     [SIM_EV_CONNECT] = "connect",
    [SIM_EV_RECV] = "recv",         [SIM_EV_SEND] = "send",
    [SIM_EV_WATCH] = "watch",       [SIM_EV_MESSAGE] = "message",
    [SIM_EV_RETIRE] = "retire",     [SIM_EV_SEGMENT] = "segment",
    [SIM_EV_DIAL] = "dial",         [SIM_EV_THREAD] = "thread",
    [SIM_EV_RESET] = "reset",       [SIM_EV_CUT] = "cut",
    [SIM_EV_EIO] = "eio",           [SIM_EV_STALL] = "stall",
    [SIM_EV_NO_SPACE] = "no_space", [SIM_EV_PAUSE] = "pause",
    [SIM_EV_KILL] = "kill",         [SIM_EV_POWER_CUT] = "power_cut",
    [SIM_EV_LOST] = "lost",         [SIM_EV_TORN] = "torn",
};

static void hash_u64(struct sim_world *w, uint64_t v)
{
    uint64_t z = w->hash ^ v;

    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    w->hash = (z ^ z >> 29) * 0x9e3779b97f4a7c15u;
}

static void hash_text(struct sim_world *w, const char *s)
{
    uint64_t v = 0;

    for (; *s; s++)
        v = v * 131 + (uint8_t)*s;
    hash_u64(w, v);
}

static void printf_like(2, 3) text_add(struct sim_world *w, const char *fmt, ...)
{
    va_list args;
    int n;

    if (!w->opt.keep_text)
        return;
    if (w->text_cap - w->text_size < 2 * TRACE_LINE_BYTES_MAX) {
        w->text_cap = MAX(2 * w->text_cap, (size_t)65536);
        w->text = xrealloc(w->text, w->text_cap);
    }
    va_start(args, fmt);
    n = vsnprintf(w->text + w->text_size, w->text_cap - w->text_size, fmt, args);
    va_end(args);
    assert(n >= 0);
    w->text_size += MIN((size_t)n, w->text_cap - w->text_size - 1);
}

void sim__event(struct sim_world *w, enum sim_event kind, const struct sim_host *h,
                const char *what, int64_t detail)
{
    w->counts[kind]++;
    hash_u64(w, (uint64_t)w->now_ns);
    hash_u64(w, (uint64_t)kind << 32 | (h ? h->index + 1 : 0));
    hash_u64(w, (uint64_t)detail);
    hash_text(w, what);
    text_add(w, "t=%" PRId64 " %s host=%s what=%s n=%" PRId64 "\n", w->now_ns, event_names[kind],
             h ? h->name : "-", what, detail);
}

void sim__trace_line(struct sim_world *w, const struct sim_host *h, const char *line)
{
    hash_u64(w, (uint64_t)w->now_ns);
    hash_text(w, line);
    text_add(w, "t=%" PRId64 " trace host=%s %s\n", w->now_ns, h->name, line);
}

uint64_t sim_event_count(const struct sim_world *w, enum sim_event kind)
{
    assert(kind < SIM_EVENTS);
    return w->counts[kind];
}

uint64_t sim_event_total(const struct sim_world *w)
{
    uint64_t total = 0;

    for (int i = 0; i < SIM_EVENTS; i++)
        total += w->counts[i];
    return total;
}

void sim_print_counts(const struct sim_world *w, FILE *to)
{
    fprintf(to, "events=%" PRIu64, sim_event_total(w));
    for (int i = 0; i < SIM_EVENTS; i++)
        if (w->counts[i] > 0)
            fprintf(to, " %s=%" PRIu64, event_names[i], w->counts[i]);
    fputc('\n', to);
}

uint64_t sim_trace_hash(const struct sim_world *w)
{
    return w->hash;
}

const char *sim_trace(const struct sim_world *w)
{
    return w->text ? w->text : "";
}
