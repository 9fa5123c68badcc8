/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_FETCHER_H
#define SL_BROKER_FETCHER_H

#include "broker/broker_int.h"

/*
 * What a follower asks of its leaders, and who asks: fetcher.c, and replicate.c for what the
 * answers mean. Everything runs on the shard that owns the partition.
 */

struct fetcher;

/* The partition goes into the next fetch from its leader, with its present epoch. */
void fetcher_want(struct partition *p, int64_t offset);
/* Not any more; a request that is out goes on, and its answer will be stale. */
void fetcher_forget(struct partition *p);
void fetcher_wake(struct fetcher *f);

/* The shard has a new image: the addresses of its peers. `before` may be NULL. */
void fetchers_take_image(struct shard *s, const struct metadata_image *before);
/* No more requests; shard_conn_gone when the last connection to a peer has ended. */
void fetchers_stop(struct shard *s);
void fetchers_free(struct shard *s);

/* replicate.c: the leader's answer, or an error instead of one; `records` are borrowed. */
void replicate_fetched(struct partition *p, struct replica_fetched *fetched, struct bytes records);
/* Of the last record, -1 when there is none: what a fetch says. */
int32_t replicate_last_epoch(const struct partition *p);

#endif
