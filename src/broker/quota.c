/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples are a ring in the order of their beginnings. Every question is answered as of the
 * last look, which has forgotten what is too old; when a quota will allow again follows from the
 * same rule, applied to a time to come: the rate falls as time goes on, and falls at once where a
 * sample is forgotten.
 */
#include "broker/quota.h"

#include "base/assert.h"
#include "base/limits.h"

void quota_init(struct quota *q, int32_t samples, int64_t window_ns)
{
    assert(samples > 0 && window_ns > 0);
    *q = (struct quota){.window_ns = window_ns, .samples_max = MIN(samples, QUOTA_SAMPLES_MAX)};
}

static int32_t at(const struct quota *q, int32_t i)
{
    return (q->first + i) % q->samples_max;
}

static int64_t forgotten_at(const struct quota *q, int32_t i)
{
    return q->samples[at(q, i)].start_ns + q->samples_max * q->window_ns;
}

static int64_t bytes_from(const struct quota *q, int32_t i)
{
    int64_t bytes = 0;

    for (; i < q->count; i++)
        bytes += q->samples[at(q, i)].bytes;
    return bytes;
}

/* Of the samples from this one on, at that time. */
static double rate_at(const struct quota *q, int32_t i, int64_t now_ns)
{
    int64_t ns = now_ns - q->samples[at(q, i)].start_ns;

    return (double)bytes_from(q, i) * 1e9 / (double)MAX(ns, q->window_ns);
}

static void forget_old(struct quota *q, int64_t now_ns)
{
    while (q->count > 0 && forgotten_at(q, 0) <= now_ns) {
        q->first = at(q, 1);
        q->count--;
    }
}

static void add(struct quota *q, int64_t bytes, int64_t now_ns)
{
    int32_t last = at(q, q->count - 1);

    if (q->count == 0 || now_ns - q->samples[last].start_ns >= q->window_ns) {
        /* Each began a window behind the one before, so the oldest has made room. */
        assert(q->count < q->samples_max);
        last = at(q, q->count++);
        q->samples[last].start_ns = now_ns;
        q->samples[last].bytes = 0;
    }
    q->samples[last].bytes += bytes;
}

void quota_look(struct quota *q, int64_t total, int64_t now_ns)
{
    int64_t bytes = total - q->total;
    bool is_recent = now_ns - q->looked_ns < q->samples_max * q->window_ns;

    assert(bytes >= 0 && now_ns >= q->looked_ns);
    q->total = total;
    q->looked_ns = now_ns;
    forget_old(q, now_ns);
    if (bytes > 0 && is_recent)
        add(q, bytes, now_ns);
}

double quota_rate(const struct quota *q)
{
    return q->count > 0 ? rate_at(q, 0, q->looked_ns) : 0;
}

bool quota_is_exceeded(const struct quota *q, int64_t limit)
{
    return limit != QUOTA_UNLIMITED && quota_rate(q) > (double)limit;
}

int64_t quota_allows_at(const struct quota *q, int64_t limit)
{
    int64_t ns = q->looked_ns;

    if (!quota_is_exceeded(q, limit))
        return ns;
    for (int32_t i = 0; i < q->count; i++) {
        /* While the samples from this one on are what there is. */
        int64_t start_ns = q->samples[at(q, i)].start_ns;
        double paid = (double)bytes_from(q, i) * 1e9; /* when the limit times the time is that */

        if (rate_at(q, i, ns) <= (double)limit)
            return ns;
        if (paid < (double)limit * (double)(forgotten_at(q, i) - start_ns))
            return start_ns + (int64_t)(paid / (double)limit) + 1;
        ns = forgotten_at(q, i);
    }
    return ns;
}
