/* SPDX-License-Identifier: Apache-2.0 */
/* The intrusive list. */
#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
    int number;
    struct list node;
};

static void fill(struct list *l, struct item *items, int n)
{
    list_init(l);
    for (int i = 0; i < n; i++) {
        items[i].number = i;
        list_push_back(l, &items[i].node);
    }
}

static void check(struct list *l, const int *expected, int n)
{
    int i = 0;

    LIST_EACH (node, l) {
        assert_true(i < n);
        assert_int_equal(LIST_ENTRY(node, struct item, node)->number, expected[i++]);
    }
    assert_int_equal(i, n);
}

static void nodes_stay_in_order(void **state)
{
    struct list l;
    struct item items[3];
    struct item front = {.number = 9};

    (void)state;
    fill(&l, items, 3);
    list_push_front(&l, &front.node);
    check(&l, (const int[]){9, 0, 1, 2}, 4);
    list_remove(&items[1].node);
    list_insert_before(&front.node, &items[1].node);
    check(&l, (const int[]){1, 9, 0, 2}, 4);
    assert_ptr_equal(LIST_FIRST(&l, struct item, node), &items[1]);
}

static void removing_twice_is_harmless(void **state)
{
    struct list l;
    struct item items[2];

    (void)state;
    fill(&l, items, 2);
    assert_true(list_is_linked(&items[0].node));
    list_remove(&items[0].node);
    list_remove(&items[0].node);
    assert_false(list_is_linked(&items[0].node));
    check(&l, (const int[]){1}, 1);
    assert_ptr_equal(list_pop_front(&l), &items[1].node);
    assert_false(list_is_linked(&items[1].node));
    assert_null(list_pop_front(&l));
    assert_true(list_is_empty(&l));
    assert_null(LIST_FIRST(&l, struct item, node));
}

static void a_loop_may_remove_its_node(void **state)
{
    struct list l;
    struct item items[4];

    (void)state;
    fill(&l, items, 4);
    LIST_EACH_SAFE (node, &l) {
        if (LIST_ENTRY(node, struct item, node)->number % 2)
            list_remove(node);
    }
    check(&l, (const int[]){0, 2}, 2);
}

static void splicing_moves_all_nodes(void **state)
{
    struct list a;
    struct list b;
    struct item first[2];
    struct item second[2];

    (void)state;
    fill(&a, first, 2);
    fill(&b, second, 2);
    list_splice_back(&a, &b);
    check(&a, (const int[]){0, 1, 0, 1}, 4);
    assert_true(list_is_empty(&b));
    list_splice_back(&a, &b);
    check(&a, (const int[]){0, 1, 0, 1}, 4);
    list_splice_back(&b, &a);
    check(&b, (const int[]){0, 1, 0, 1}, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_stay_in_order),
        cmocka_unit_test(removing_twice_is_harmless),
        cmocka_unit_test(a_loop_may_remove_its_node),
        cmocka_unit_test(splicing_moves_all_nodes),
    };

    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
