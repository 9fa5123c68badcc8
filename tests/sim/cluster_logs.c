/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When all brokers of a cluster have stopped cleanly, the replicas of a partition are the same
 * bytes: of the logs that are there, whole ones, none may differ. Segments may begin elsewhere.
 * Of topics that were deleted nothing is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster.h"

#define LOG_BYTES_MAX ((size_t)64 << 20)

static const char *const log_dirs[] = {"/data", "/more"};

static bool read_dir(struct io *io, const char *dir, struct buf *out)
{
    struct io_names names;

    if (io_dir_list(io, dir, &names))
        return false;
    for (size_t i = 0; i < names.n; i++) {
        size_t n = strlen(names.v[i]);
        char path[256];
        char *text;
        size_t size;
        enum err err;

        if (n < 4 || strcmp(names.v[i] + n - 4, ".log") != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, names.v[i]);
        err = io_file_read_all(io, path, LOG_BYTES_MAX, &text, &size);
        assert(!err);
        buf_append(out, text, size);
        free(text);
    }
    io_names_free(&names);
    return true;
}

bool log_read_whole(struct io *io, const char *topic, int32_t partition, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(log_dirs); i++) {
        char dir[64];

        snprintf(dir, sizeof(dir), "%s/%s-%d", log_dirs[i], topic, partition);
        if (read_dir(io, dir, out))
            return true;
    }
    return false;
}

static void compare(struct run *run, const struct topic *t, int32_t partition,
                    struct io *const ios[NODES])
{
    struct buf first = {0};
    int first_id = 0;

    for (int i = 0; i < NODES; i++) {
        struct buf log = {0};

        if (!log_read_whole(ios[i], t->name, partition, &log))
            continue;
        run->counts.logs_compared++;
        if (first_id == 0) {
            first = log;
            first_id = i + 1;
            continue;
        }
        if (log.n != first.n || (log.n > 0 && memcmp(log.p, first.p, log.n) != 0))
            violate(run, "%s-%d has %zu bytes at broker %d and %zu at broker %d, or others",
                    t->name, partition, first.n, first_id, log.n, i + 1);
        buf_fini(&log);
    }
    buf_fini(&first);
}

/* Nothing is left of a topic that was deleted. */
static void look_for_leftovers(struct run *run, const struct topic *t, struct io *const ios[NODES])
{
    for (int i = 0; i < NODES; i++)
        for (int32_t k = 0; k < t->partitions; k++) {
            struct buf log = {0};

            if (log_read_whole(ios[i], t->name, k, &log))
                violate(run, "%s was deleted, and broker %d has a log of its partition %d", t->name,
                        i + 1, k);
            buf_fini(&log);
        }
}

static bool is_made_again(const struct history *h, const struct topic *t)
{
    for (const struct topic *next = t + 1; next < h->topics + h->topic_count; next++)
        if (strcmp(next->name, t->name) == 0)
            return true;
    return false;
}

void logs_compare(struct run *run)
{
    struct io *ios[NODES];

    for (int i = 0; i < NODES; i++)
        ios[i] = sim_process_start(run->cluster->nodes[i].host, NULL, NULL, NULL);
    for (int i = 0; i < run->history.topic_count; i++) {
        const struct topic *t = &run->history.topics[i];

        for (int32_t k = 0; t->state == TOPIC_THERE && k < t->partitions; k++)
            compare(run, t, k, ios);
        if (t->state == TOPIC_GONE && !is_made_again(&run->history, t))
            look_for_leftovers(run, t, ios);
    }
    for (int i = 0; i < NODES; i++)
        io_free(ios[i]);
}
