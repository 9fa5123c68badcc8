/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_HTTP_HTTP_H
#define SL_HTTP_HTTP_H

#include "base/bytes.h"
#include "base/err.h"
#include "io/io.h"

/*
 * The HTTP port of a broker: health, readiness, metrics. It runs on the broker's control loop and
 * has no thread of its own.
 */
struct http;
struct broker;

struct http_args {
    struct io *io;
    struct broker *broker;  /* open; outlives the port */
    const char *version;    /* of the program; borrowed */
    struct str host;        /* numeric or "localhost"; empty: all addresses */
    uint16_t port;          /* 0: any free one */
    int32_t partitions_max; /* of which there are metrics */
};

/* Listens at once, before io_run, and answers once it runs. On failure `message` (owned by the
 * caller) says what, where and what to do: ERR_ADDR_IN_USE, ERR_NOT_FOUND (the host, or the
 * library), ERR_IO. */
must_use enum err http_open(const struct http_args *args, struct http **out, char **message);
/* "http://127.0.0.1:9464" */
const char *http_url(const struct http *h);
/* After io_run; harmless with NULL. */
void http_close(struct http *h);

#endif
