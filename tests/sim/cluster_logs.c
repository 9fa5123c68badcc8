/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When all brokers of a cluster have stopped cleanly, the replicas of a partition are the same
 * bytes: of the logs that are there, whole ones, none may differ. Segments may begin elsewhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster.h"

#define LOG_BYTES_MAX ((size_t)64 << 20)

/* All segments behind each other; false when there is no such log. */
static bool read_log(struct io *io, const char *dir, struct buf *out)
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

static void compare(struct run *run, const struct topic *t, int32_t partition,
                    struct io *const ios[NODES])
{
    struct buf first = {0};
    int first_id = 0;
    char dir[64];

    snprintf(dir, sizeof(dir), "/data/%s-%d", t->name, partition);
    for (int i = 0; i < NODES; i++) {
        struct buf log = {0};

        if (!read_log(ios[i], dir, &log))
            continue;
        run->counts.logs_compared++;
        if (first_id == 0) {
            first = log;
            first_id = i + 1;
            continue;
        }
        if (log.n != first.n || memcmp(log.p, first.p, log.n) != 0)
            violate(run, "%s-%d has %zu bytes at broker %d and %zu at broker %d, or others",
                    t->name, partition, first.n, first_id, log.n, i + 1);
        buf_fini(&log);
    }
    buf_fini(&first);
}

void logs_compare(struct run *run)
{
    struct io *ios[NODES];

    for (int i = 0; i < NODES; i++)
        ios[i] = sim_process_start(run->cluster->nodes[i].host, NULL, NULL, NULL);
    for (int i = 0; i < run->history.topic_count; i++)
        for (int32_t k = 0; k < run->history.topics[i].partitions; k++)
            if (run->history.topics[i].state == TOPIC_THERE)
                compare(run, &run->history.topics[i], k, ios);
    for (int i = 0; i < NODES; i++)
        io_free(ios[i]);
}
