/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words to the supervisor. A start is as long as recovery is, which depends on how the last life
 * ended: so each report of progress asks for more time than passes until the next one, and a
 * broker that makes no progress any more is still given up.
 */
#include "cli/notify.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

/* Reports of progress come each second. */
#define MORE_TIME_US 60000000

void notify_init(struct notify *n, struct io *io, const char *socket)
{
    *n = (struct notify){.io = io, .socket = socket};
}

/* Takes the text. */
static void tell(const struct notify *n, char *text)
{
    /* Whoever does not listen does not matter to those who are served. */
    if (n->socket && io_notify(n->io, n->socket, str_of(text)))
        trace_debug("supervisor.deaf", "socket=%s", n->socket);
    free(text);
}

void notify_progress(const struct notify *n, int64_t bytes, int32_t loaded, int32_t total)
{
    tell(n, xasprintf("EXTEND_TIMEOUT_USEC=%d\n"
                      "STATUS=recovering: %d of %d partitions, %lld MiB scanned",
                      MORE_TIME_US, loaded, total, (long long)(bytes >> 20)));
}

void notify_ready(const struct notify *n, const char *address)
{
    tell(n, xasprintf("READY=1\nSTATUS=serving on %s", address));
}

void notify_stopping(const struct notify *n, const char *why)
{
    tell(n, xasprintf("STOPPING=1\nSTATUS=stopping: %s", why));
}
