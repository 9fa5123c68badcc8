/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_COUNTER_H
#define SL_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Numbers that one thread writes and any thread may read: how often something happened, how much
 * there is of it, how long it took. Writing costs what a plain variable costs: there is one writer,
 * so nothing is read, modified and written in one piece. Readers see each number as it was a
 * moment ago; numbers that belong together may be from different moments. Zero-initialised.
 */
struct counter {
    _Atomic int64_t _value;
};

/* Any thread. */
static inline int64_t counter_read(const struct counter *c)
{
    return atomic_load_explicit(&c->_value, memory_order_relaxed);
}

/* The writer. */
static inline void counter_set(struct counter *c, int64_t value)
{
    atomic_store_explicit(&c->_value, value, memory_order_relaxed);
}

/* The writer. */
static inline void counter_add(struct counter *c, int64_t n)
{
    counter_set(c, counter_read(c) + n);
}

/*
 * How long things took, by classes. Class i holds what took at most latency_bound_ns(i), and more
 * than the class before; the last one has no bound.
 */
#define LATENCY_CLASSES 18

struct latency {
    struct counter _classes[LATENCY_CLASSES];
    struct counter _sum_ns;
};

/* A copy that is plain data. */
struct latency_figures {
    int64_t classes[LATENCY_CLASSES];
    int64_t count; /* of all classes */
    int64_t sum_ns;
};

/* Nanoseconds; INT64_MAX for the last class. */
int64_t latency_bound_ns(int i);
/* The writer. A negative time counts as 0. */
void latency_note(struct latency *l, int64_t ns);
/* Any thread: adds what was noted to the figures. */
void latency_add_to(const struct latency *l, struct latency_figures *to);

#endif
