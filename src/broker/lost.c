/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replica whose disk was replaced must not lead: it is in the in-sync set of what it has lost,
 * and everybody would cut their logs to its empty one. Each log directory notes in a file by which
 * registration its broker joined the cluster with these directories, and how many they were. A
 * partition that is older, and has no log here, was lost with another one. While it counts as in
 * sync no log is made for it: if it is told to lead it refuses, and the controller elects another
 * one of the set, or nobody; if it is told to follow it does not, and its leader takes it out of
 * the set. Then it is a follower like any other that begins with nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/cluster.h"
#include "keeper/znodes.h"

#define FILE_NAME "cluster-since"
#define BYTES_MAX 64

/* ---- how old the directories are --------------------------------------------------------- */

/* "EPOCH DIRECTORIES" */
static enum err parse_since(struct str text, int64_t *since, int64_t *dirs)
{
    const char *space = text.n > 0 ? memchr(text.p, ' ', (size_t)text.n) : NULL;
    struct str first = {.p = text.p, .n = space ? (int32_t)(space - text.p) : 0};
    enum err err = space ? str_to_i64(first, since) : ERR_CORRUPT;

    if (!err)
        err = str_to_i64((struct str){.p = space + 1, .n = text.n - first.n - 1}, dirs);
    return err;
}

static enum err read_since(const struct broker *b, int dir, int64_t *since, int64_t *dirs)
{
    char *path = xasprintf("%s/" FILE_NAME, log_dir_path(b->dirs[dir]));
    char *text = NULL;
    size_t n;
    enum err err = io_file_read_all(b->io, path, BYTES_MAX, &text, &n);

    if (!err)
        err = parse_since((struct str){.p = text, .n = (int32_t)n}, since, dirs);
    free(text);
    free(path);
    return err;
}

static void write_since(const struct broker *b, int dir, int64_t since)
{
    char *path = xasprintf("%s/" FILE_NAME, log_dir_path(b->dirs[dir]));
    char *text = xasprintf("%lld %d", (long long)since, b->dir_count);
    struct bytes content = {.p = (const uint8_t *)text, .n = (int32_t)strlen(text)};
    enum err err = io_file_replace(b->io, path, content);

    if (err)
        trace_error("cluster.since_not_noted", "path=%s error=%s", path, err_name(err));
    free(text);
    free(path);
}

static void run(struct io_job *job)
{
    struct cluster *k = CONTAINER_OF(job, struct cluster, since_job);
    const struct broker *b = k->control->broker;

    for (int i = 0; i < b->dir_count; i++)
        write_since(b, i, k->broker_epoch);
}

static void done(struct io_job *job)
{
    (void)job;
}

void lost_begin(struct cluster *k)
{
    const struct broker *b = k->control->broker;

    k->since = -1;
    for (int i = 0; i < b->dir_count; i++) {
        int64_t since = -1;
        int64_t dirs = 0;

        /* One that is not configured any more is as good as gone. */
        if (read_since(b, i, &since, &dirs) || dirs > b->dir_count)
            k->has_changed_dirs = true;
        k->since = MAX(k->since, since);
    }
}

void lost_note_registration(struct cluster *k)
{
    if (!k->has_changed_dirs)
        return;
    k->since = k->broker_epoch;
    k->since_job.run = run;
    k->since_job.done = done;
    io_job_submit(k->control->loop, &k->since_job);
}

/* ---- what is lost -------------------------------------------------------------------------- */

struct lost_check {
    struct cluster *cluster;
    struct uuid topic_id;
    int32_t index;
    char *path;
    struct keeper_call call;
    void (*then)(void *ctx, bool is_lost);
    void *ctx;
};

bool lost_has(const struct cluster *k, struct uuid topic_id, int32_t index)
{
    for (int32_t i = 0; i < k->lost_count; i++)
        if (uuid_eq(k->lost[i].topic_id, topic_id) && k->lost[i].index == index)
            return !control_find_partition(k->control, topic_id, index);
    return false;
}

static void note(struct cluster *k, struct uuid topic_id, int32_t index)
{
    if (lost_has(k, topic_id, index))
        return;
    k->lost = xreallocarray(k->lost, (size_t)k->lost_count + 1, sizeof(*k->lost));
    k->lost[k->lost_count++] = (struct lost_replica){.topic_id = topic_id, .index = index};
}

static void checked(struct keeper_call *call)
{
    struct lost_check *q = CONTAINER_OF(call, struct lost_check, call);
    struct cluster *k = q->cluster;
    bool is_lost = call->err || call->stat.created_zxid < k->since;

    if (is_lost) {
        trace_error(
            "partition.lost",
            "topic=%s partition=%d note=\"its log was on a disk that is not there any more; "
            "somebody else has to lead, and it begins anew when it is out of the in-sync "
            "set\"",
            q->path, q->index);
        note(k, q->topic_id, q->index);
    }
    keeper_call_release(call);
    q->then(q->ctx, is_lost);
    free(q->path);
    free(q);
}

void lost_check(struct cluster *k, const struct metadata_topic *topic, int32_t index,
                void (*then)(void *ctx, bool is_lost), void *ctx)
{
    struct lost_check *q = xcalloc(1, sizeof(*q));

    q->cluster = k;
    q->topic_id = topic->id;
    q->index = index;
    q->path = znode_state_path(topic->name, index);
    q->then = then;
    q->ctx = ctx;
    q->call.done = checked;
    keeper_get(k->control->keeper, q->path, NULL, &q->call);
}
