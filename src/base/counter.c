/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of latencies. The bounds are 1, 2.5 and 5 times powers of ten, from 50 microseconds to 10
 * seconds: what a request to memory takes and what nobody waits for. They are searched from
 * the shortest on, because most of what is measured is short.
 */
#include "base/counter.h"

#include "base/assert.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)

static const int64_t bounds[LATENCY_CLASSES] = {
    50 * US, 100 * US, 250 * US, 500 * US, 1 * MS,    2500 * US, 5 * MS,    10 * MS,    25 * MS,
    50 * MS, 100 * MS, 250 * MS, 500 * MS, 1000 * MS, 2500 * MS, 5000 * MS, 10000 * MS, INT64_MAX,
};

int64_t latency_bound_ns(int i)
{
    assert(i >= 0 && i < LATENCY_CLASSES);
    return bounds[i];
}

void latency_note(struct latency *l, int64_t ns)
{
    int i = 0;

    if (ns < 0)
        ns = 0;
    while (ns > bounds[i])
        i++;
    counter_add(&l->_classes[i], 1);
    counter_add(&l->_sum_ns, ns);
}

void latency_add_to(const struct latency *l, struct latency_figures *to)
{
    for (int i = 0; i < LATENCY_CLASSES; i++) {
        int64_t n = counter_read(&l->_classes[i]);

        to->classes[i] += n;
        to->count += n;
    }
    to->sum_ns += counter_read(&l->_sum_ns);
}
