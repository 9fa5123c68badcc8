/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_NOTIFY_H
#define SL_CLI_NOTIFY_H

#include "io/io.h"

/*
 * What the supervisor is told: sd_notify(3)'s protocol, to the socket that NOTIFY_SOCKET names.
 * Without one, nothing is told; that it cannot be told is no error. Control loop.
 */
struct notify {
    struct io *io;
    const char *socket; /* NULL: nobody asked; borrowed */
};

void notify_init(struct notify *n, struct io *io, const char *socket);
/* Recovery goes on: the start may take some time more. */
void notify_progress(const struct notify *n, int64_t bytes, int32_t loaded, int32_t total);
void notify_ready(const struct notify *n, const char *address);
/* The end has begun: logs are being closed. */
void notify_stopping(const struct notify *n, const char *why);

#endif
