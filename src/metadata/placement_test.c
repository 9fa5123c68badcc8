/* SPDX-License-Identifier: Apache-2.0 */
/* Where replicas go: the known pattern, its continuation, and that the load is even. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metadata/metadata.h"

static const int32_t brokers[] = {0, 1, 2, 3, 4};

static struct metadata_placement five(int32_t partitions, int32_t replication_factor)
{
    return (struct metadata_placement){
        .brokers = brokers,
        .broker_count = 5,
        .partitions = partitions,
        .replication_factor = replication_factor,
    };
}

static void place(const struct metadata_placement *p, int32_t *out)
{
    assert_int_equal(metadata_place_replicas(p, out), ERR_NONE);
}

/* The example in the documentation of Kafka's rule: 5 brokers, 10 partitions, 3 replicas. */
static void leaders_go_round_and_followers_shift(void **state)
{
    static const int32_t expected[10][3] = {
        {0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 0}, {4, 0, 1},
        {0, 2, 3}, {1, 3, 4}, {2, 4, 0}, {3, 0, 1}, {4, 1, 2},
    };
    struct metadata_placement p = five(10, 3);
    int32_t out[30];

    (void)state;
    place(&p, out);
    assert_memory_equal(out, expected, sizeof(out));
}

static void start_and_shift_move_the_pattern(void **state)
{
    struct metadata_placement p = five(2, 2);
    int32_t out[4];

    (void)state;
    p.start = 4;
    p.shift = 2;
    place(&p, out);
    assert_int_equal(out[0], 4);
    assert_int_equal(out[1], 2);
    assert_int_equal(out[2], 0);
    assert_int_equal(out[3], 3);
    p.start = INT32_MAX;
    p.shift = INT32_MAX;
    place(&p, out);
    assert_int_equal(out[0], 2);
}

static void added_partitions_go_on_from_their_index(void **state)
{
    struct metadata_placement p = five(1, 2);
    int32_t out[2];

    (void)state;
    p.first_partition = 7;
    p.start = 1;
    place(&p, out);
    assert_int_equal(out[0], 3);
    assert_int_equal(out[1], 4);
}

static void one_broker_holds_everything(void **state)
{
    struct metadata_placement p = five(3, 1);
    int32_t out[3];

    (void)state;
    p.broker_count = 1;
    p.brokers = brokers + 4;
    place(&p, out);
    for (int i = 0; i < 3; i++)
        assert_int_equal(out[i], 4);
}

static void no_broker_holds_a_partition_twice_and_the_load_is_even(void **state)
{
    struct metadata_placement p = five(20, 5);
    int32_t out[100];
    int leads[5] = {0};

    (void)state;
    p.start = 3;
    p.shift = 1;
    place(&p, out);
    for (int i = 0; i < 20; i++) {
        int seen = 0;

        for (int j = 0; j < 5; j++)
            seen |= 1 << out[i * 5 + j];
        assert_int_equal(seen, 31);
        leads[out[i * 5]]++;
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(leads[i], 4);
}

/* ---- racks ------------------------------------------------------------------------------ */

static const int32_t six[] = {0, 1, 2, 3, 4, 5};

/* The example in the documentation of Kafka's rule: 6 brokers in 3 racks, 3 replicas. */
static void replicas_are_spread_over_racks(void **state)
{
    const struct str racks[] = {STR_LIT("rack1"), STR_LIT("rack3"), STR_LIT("rack3"),
                                STR_LIT("rack2"), STR_LIT("rack2"), STR_LIT("rack1")};
    static const int32_t expected[7][3] = {
        {0, 3, 1}, {3, 1, 5}, {1, 5, 4}, {5, 4, 2}, {4, 2, 0}, {2, 0, 3}, {0, 4, 2},
    };
    struct metadata_placement p = {.brokers = six,
                                   .broker_count = 6,
                                   .racks = racks,
                                   .partitions = 7,
                                   .replication_factor = 3};
    int32_t out[21];

    (void)state;
    place(&p, out);
    assert_memory_equal(out, expected, sizeof(out));
}

/* A rack without a replica comes before a second one anywhere, also where racks are unequal. */
static void no_rack_has_two_replicas_while_another_has_none(void **state)
{
    const struct str racks[] = {STR_LIT("b"), STR_LIT("a"), STR_LIT("b"),
                                STR_LIT("b"), STR_LIT("c"), STR_LIT("b")};
    static const int rack_of[] = {1, 0, 1, 1, 2, 1};
    struct metadata_placement p = {.brokers = six, .broker_count = 6, .racks = racks};

    (void)state;
    p.partitions = 36;
    p.start = 4;
    p.shift = 3;
    for (p.replication_factor = 1; p.replication_factor <= 6; p.replication_factor++) {
        int32_t out[36 * 6];

        place(&p, out);
        for (int i = 0; i < p.partitions; i++) {
            int brokers_seen = 0;
            int racks_seen = 0;

            for (int j = 0; j < p.replication_factor; j++) {
                brokers_seen |= 1 << out[i * p.replication_factor + j];
                racks_seen |= 1 << rack_of[out[i * p.replication_factor + j]];
            }
            assert_int_equal(__builtin_popcount((unsigned)brokers_seen), p.replication_factor);
            assert_int_equal(__builtin_popcount((unsigned)racks_seen),
                             p.replication_factor < 3 ? p.replication_factor : 3);
        }
    }
}

static void a_broker_in_each_rack_is_as_without_racks(void **state)
{
    const struct str racks[] = {STR_LIT("a"), STR_LIT("b"), STR_LIT("c"), STR_LIT("d"),
                                STR_LIT("e")};
    struct metadata_placement p = five(5, 3);
    int32_t with[15];
    int32_t without[15];

    (void)state;
    place(&p, without);
    p.racks = racks;
    place(&p, with);
    assert_memory_equal(with, without, sizeof(with));
    p.broker_count = p.replication_factor = 1;
    place(&p, with);
    assert_int_equal(with[4], 0);
}

static void what_cannot_be_placed_is_refused(void **state)
{
    struct metadata_placement p = five(1, 6);
    int32_t out[8];

    (void)state;
    assert_int_equal(metadata_place_replicas(&p, out), ERR_INVALID_REPLICATION_FACTOR);
    p.replication_factor = 0;
    assert_int_equal(metadata_place_replicas(&p, out), ERR_INVALID_REPLICATION_FACTOR);
    p = five(0, 1);
    assert_int_equal(metadata_place_replicas(&p, out), ERR_INVALID_PARTITIONS);
    p = five(1, 1);
    p.first_partition = INT32_MAX;
    assert_int_equal(metadata_place_replicas(&p, out), ERR_INVALID_PARTITIONS);
    p = five(1, 1);
    p.start = -1;
    assert_int_equal(metadata_place_replicas(&p, out), ERR_INVALID_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaders_go_round_and_followers_shift),
        cmocka_unit_test(start_and_shift_move_the_pattern),
        cmocka_unit_test(added_partitions_go_on_from_their_index),
        cmocka_unit_test(one_broker_holds_everything),
        cmocka_unit_test(no_broker_holds_a_partition_twice_and_the_load_is_even),
        cmocka_unit_test(replicas_are_spread_over_racks),
        cmocka_unit_test(no_rack_has_two_replicas_while_another_has_none),
        cmocka_unit_test(a_broker_in_each_rack_is_as_without_racks),
        cmocka_unit_test(what_cannot_be_placed_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
