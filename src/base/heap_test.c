/* SPDX-License-Identifier: Apache-2.0 */
/* The heap against the plainest model: an array that is searched. */
#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "base/rng.h"

#define NODES 64

struct model {
    struct heap heap;
    struct heap_node node[NODES];
    bool is_in[NODES];
};

static struct heap_node *smallest(struct model *m)
{
    struct heap_node *best = NULL;

    for (int i = 0; i < NODES; i++) {
        struct heap_node *n = &m->node[i];

        if (m->is_in[i] &&
            (!best || n->key < best->key || (n->key == best->key && n->seq < best->seq)))
            best = n;
    }
    return best;
}

static void it_agrees_with_a_search_at_every_step(void **state)
{
    struct model m = {0};
    struct rng rng = rng_seeded(1);

    (void)state;
    heap_init(&m.heap);
    for (int step = 0; step < 20000; step++) {
        uint64_t i = rng_below(&rng, NODES);

        if (m.is_in[i])
            heap_remove(&m.heap, &m.node[i]);
        else
            heap_push(&m.heap, &m.node[i], (int64_t)rng_below(&rng, 16) - 8);
        m.is_in[i] = !m.is_in[i];
        assert_int_equal(m.node[i].pos != 0, m.is_in[i]);
        assert_ptr_equal(heap_min(&m.heap), smallest(&m));
    }
    heap_fini(&m.heap);
}

static void equal_keys_leave_in_order_of_insertion(void **state)
{
    struct heap h;
    struct heap_node node[NODES] = {0};

    (void)state;
    heap_init(&h);
    assert_null(heap_min(&h));
    for (int i = 0; i < NODES; i++)
        heap_push(&h, &node[i], 7);
    for (int i = 0; i < NODES; i++) {
        assert_ptr_equal(heap_min(&h), &node[i]);
        heap_remove(&h, &node[i]);
        heap_remove(&h, &node[i]);
    }
    assert_null(heap_min(&h));
    heap_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_agrees_with_a_search_at_every_step),
        cmocka_unit_test(equal_keys_leave_in_order_of_insertion),
    };

    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
