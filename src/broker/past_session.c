/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of the session with the keeper that the process before this one had, in a file of the
 * first log directory. Whoever holds the directory's lock knows that that process is gone, whatever
 * its session still says: the nodes that it has left are in nobody's way. Without the file, or with
 * an old one, a start waits until the session has ended.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "broker/cluster.h"

#define FILE_NAME "keeper-session"
#define BYTES_MAX 64

static char *path_of(const struct broker *b)
{
    return xasprintf("%s/" FILE_NAME, log_dir_path(b->dirs[0]));
}

int64_t past_session_read(const struct broker *b)
{
    char *path = path_of(b);
    char *text = NULL;
    size_t n;
    int64_t session = 0;

    if (!io_file_read_all(b->io, path, BYTES_MAX, &text, &n)) {
        if (str_to_i64((struct str){.p = text, .n = (int32_t)n}, &session))
            session = 0;
        free(text);
    }
    free(path);
    return session;
}

static void run(struct io_job *job)
{
    struct cluster *k = CONTAINER_OF(job, struct cluster, session_job);
    const struct broker *b = k->control->broker;
    char *path = path_of(b);
    char *text = xasprintf("%lld", (long long)k->session);
    struct bytes content = {.p = (const uint8_t *)text, .n = (int32_t)strlen(text)};
    enum err err = io_file_replace(b->io, path, content);

    /* The next start has to wait, that is all. */
    if (err)
        trace_warn("cluster.session_not_noted", "path=%s error=%s", path, err_name(err));
    free(text);
    free(path);
}

static void done(struct io_job *job)
{
    (void)job;
}

void past_session_note(struct cluster *k, int64_t session)
{
    k->session = session;
    k->session_job.run = run;
    k->session_job.done = done;
    io_job_submit(k->control->loop, &k->session_job);
}
