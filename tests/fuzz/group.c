/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the records of a partition of __consumer_offsets, as a damaged or foreign log may
 * hold them. The input is a row of records: flags (bit 0: no value; bit 1: of a transaction; bit 2:
 * its end, bit 3: by a commit), lengths of key and value (16 bits each), key, value.
 *
 * What must hold: nothing is read or written outside (ASan); what was loaded can be listed,
 * described and fetched; sessions end, offsets expire, and then nothing is left.
 */
#include <stdint.h>

#include "base/assert.h"
#include "group/group.h"

#define RECORD_HEAD_BYTES 5
#define YEAR_MS (366LL * 86400 * 1000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes take(const uint8_t **p, const uint8_t *end, size_t n)
{
    struct bytes b = {.p = *p};

    if (n > (size_t)(end - *p))
        n = (size_t)(end - *p);
    b.n = (int32_t)n;
    *p += n;
    return b;
}

static void replay(struct groups *g, const uint8_t *p, const uint8_t *end)
{
    while (end - p >= RECORD_HEAD_BYTES) {
        uint8_t flags = p[0];
        size_t key_n = get_u16(p + 1);
        size_t value_n = get_u16(p + 3);
        struct bytes key;
        struct bytes value;

        p += RECORD_HEAD_BYTES;
        key = take(&p, end, key_n);
        value = flags & 1 ? bytes_null() : take(&p, end, value_n);
        if (groups_replay(g, flags & 2 ? 1 : -1, key, value))
            continue;
        if (flags & 4)
            groups_replay_marker(g, 1, flags & 8);
    }
}

static void query(const struct groups *g)
{
    struct list_groups_response_group *v;
    struct group_filter all = {0};
    struct arena arena;
    int32_t n;

    arena_init(&arena, 0);
    groups_list(g, &all, &arena, &v, &n);
    assert(n == groups_count(g));
    for (int32_t i = 0; i < n; i++) {
        struct describe_groups_response_group described;
        struct offset_fetch_request_group in = {.group_id = v[i].group_id, .topics = {.n = -1}};
        struct offset_fetch_response_group fetched;

        groups_describe(g, v[i].group_id, 5, &arena, &described);
        assert(str_eq(described.group_state, v[i].group_state));
        groups_fetch(g, &in, true, &arena, &fetched);
        assert(fetched.topics.n >= 0);
    }
    arena_fini(&arena);
}

static void run_step(struct groups *g, struct group_event *e, struct list *writes)
{
    struct group_effects fx;

    groups_step(g, e, &fx);
    assert(list_is_empty(&fx.answers));
    list_splice_back(writes, &fx.writes);
}

/* Long enough that everything ends; writes are committed at once. */
static void pass_time(struct groups *g, struct list *writes)
{
    for (int64_t i = 1; i <= 8; i++) {
        struct group_event e = {
            .kind = GROUP_TICK, .mono_ms = i * YEAR_MS, .wall_ms = INT64_MAX / 2};
        struct list *node;

        run_step(g, &e, writes);
        while ((node = list_pop_front(writes))) {
            e.kind = GROUP_WRITTEN;
            e.write = LIST_ENTRY(node, struct group_write, link);
            run_step(g, &e, writes);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct group_limits limits = {.session_timeout_min_ms = 6000,
                                  .session_timeout_max_ms = 1800000,
                                  .size_max = 100,
                                  .offset_metadata_bytes_max = 4096,
                                  .offset_retention_ms = 604800000,
                                  .offset_check_interval_ms = 600000};
    struct groups *g = groups_new(&limits);
    struct group_effects fx;
    struct list writes;

    list_init(&writes);
    replay(g, data, data + size);
    groups_loaded(g, 1, 1, &fx);
    assert(list_is_empty(&fx.answers));
    list_splice_back(&writes, &fx.writes); /* of sessions that are over already */
    query(g);
    pass_time(g, &writes);
    query(g);
    groups_resign(g, ERR_NOT_COORDINATOR, &fx);
    groups_free(g);
    return 0;
}
