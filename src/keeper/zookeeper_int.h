/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_ZOOKEEPER_INT_H
#define SL_KEEPER_ZOOKEEPER_INT_H

#include "keeper/keeper.h"

/* Where the servers are: a connect string, as Apache Kafka writes it in zookeeper.connect. */
struct zookeeper_place {
    char *servers; /* "host:port,host:port"; owned, as the next one is */
    char *chroot;  /* "/a/b"; "" for the root */
};

/*
 * Takes a connect string apart: "host[:port],...[/chroot]", port 2181 where there is none, IPv6
 * addresses in brackets. ERR_INVALID_ARG with a message of the caller's that says why.
 */
must_use enum err zookeeper__place_parse(const char *text, struct zookeeper_place *out,
                                         char **message);
void zookeeper__place_free(struct zookeeper_place *place);

/*
 * Looks the servers' names up: "address:port,address:port", the caller's; NULL when none has an
 * address. Blocking: a job.
 */
char *zookeeper__resolve(const char *servers);

/*
 * Tests: the session's id and password, with which another handle may take the session over and
 * close it. While connected, on the loop.
 */
void zookeeper__session(const struct keeper *k, int64_t *id, char password[static 16]);

#endif
