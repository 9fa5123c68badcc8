/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broker of a cluster notes in its log directories for its next life.
 *
 *   keeper-session   in the first one: the number of its session with the keeper. Whoever holds the
 *                    directory's lock knows that the process before is gone, whatever its session
 *                    still says: the nodes that it has left are in nobody's way. Without the file,
 *                    or with an old one, a start waits until the session has ended.
 *   cluster-since    in each: by which registration the broker joined the cluster with these
 *                    directories, and how many they are (lost.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/cluster.h"

#define SESSION_NAME "keeper-session"
#define SINCE_NAME "cluster-since"
#define BYTES_MAX 64

/* Two numbers, of which the second may be missing. */
static enum err parse(struct str text, int64_t *first, int64_t *second)
{
    const char *space = text.n > 0 ? memchr(text.p, ' ', (size_t)text.n) : NULL;
    int32_t n = space ? (int32_t)(space - text.p) : text.n;
    enum err err = str_to_i64((struct str){.p = text.p, .n = n}, first);

    if (!err && space)
        err = str_to_i64((struct str){.p = space + 1, .n = text.n - n - 1}, second);
    return err;
}

static enum err read_note(const struct broker *b, int dir, const char *name, int64_t *first,
                          int64_t *second)
{
    char *path = xasprintf("%s/%s", log_dir_path(b->dirs[dir]), name);
    char *text = NULL;
    size_t n;
    enum err err = io_file_read_all(b->io, path, BYTES_MAX, &text, &n);

    if (!err)
        err = parse((struct str){.p = text, .n = (int32_t)n}, first, second);
    free(text);
    free(path);
    return err;
}

static void write_note(const struct broker *b, int dir, const char *name, char *text)
{
    char *path = xasprintf("%s/%s", log_dir_path(b->dirs[dir]), name);
    struct bytes content = {.p = (const uint8_t *)text, .n = (int32_t)strlen(text)};
    enum err err = io_file_replace(b->io, path, content);

    if (err)
        trace_error("cluster.not_noted", "path=%s error=%s", path, err_name(err));
    free(text);
    free(path);
}

enum err notes_read(struct cluster *k, char **message)
{
    const struct broker *b = k->control->broker;
    int64_t none;

    if (read_note(b, 0, SESSION_NAME, &k->past_session, &none))
        k->past_session = 0;
    k->since = -1;
    for (int i = 0; i < b->dir_count; i++) {
        int64_t since = -1;
        int64_t dirs = INT64_MAX;
        enum err err = read_note(b, i, SINCE_NAME, &since, &dirs);

        if (err == ERR_IO || err == ERR_ACCESS) {
            *message = xasprintf("%s/%s: cannot read it, and without it this disk would be taken "
                                 "for another one (%s)",
                                 log_dir_path(b->dirs[i]), SINCE_NAME, err_text(err));
            return err;
        }
        /* One that is not configured any more is as good as gone. */
        if (err || dirs > b->dir_count)
            k->has_changed_dirs = true;
        k->since = MAX(k->since, since);
    }
    return ERR_NONE;
}

static void run(struct io_job *job)
{
    const struct cluster *k = CONTAINER_OF(job, struct cluster, notes_job);
    const struct broker *b = k->control->broker;

    write_note(b, 0, SESSION_NAME, xasprintf("%lld", (long long)k->session));
    for (int i = 0; i < b->dir_count && k->has_changed_dirs; i++)
        write_note(b, i, SINCE_NAME, xasprintf("%lld %d", (long long)k->since, b->dir_count));
}

static void done(struct io_job *job)
{
    struct cluster *k = CONTAINER_OF(job, struct cluster, notes_job);

    k->is_noting = false;
    if (k->closed)
        cluster_part_closed(k);
    else if (k->must_note)
        notes_write(k);
}

void notes_write(struct cluster *k)
{
    k->must_note = k->is_noting;
    if (k->is_noting || k->closed)
        return;
    k->is_noting = true;
    if (k->has_changed_dirs && k->session == 0)
        k->since = k->broker_epoch;
    k->session = keeper_session_id(k->control->keeper);
    k->notes_job.run = run;
    k->notes_job.done = done;
    io_job_submit(k->control->loop, &k->notes_job);
}
