/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_LIMITS_H
#define SL_BASE_LIMITS_H

#include "base/assert.h"

/*
 * Every fixed bound of the program in one place. What a user may change is a configuration key
 * (config/keys.def); what is here follows from the protocol, the file format or our own design.
 */

/* Protocol. */
#define TOPIC_NAME_BYTES_MAX 249
#define FRAME_BYTES_MAX (100 * 1024 * 1024) /* default of socket.request.max.bytes */
#define RESPONSE_BYTES_MAX 99000000         /* librdkafka refuses 100,000,000 and more */
#define CONFIG_VALUE_BYTES_MAX (16 * 1024)  /* of one value that a client sets */
#define BATCH_HEADER_BYTES 61
#define BATCH_LENGTH_AT 8
#define BATCH_OVERHEAD_BYTES 12 /* base offset and length */

/* A decoded message may cost this many bytes of arena for each byte on the wire. */
#define DECODE_AMPLIFICATION_MAX 24

/* Connections: requests in flight before reading stops. Enough of them, and enough bytes, that the
 * next commit gathers while one is synced, also from one producer of small records or of batches of
 * a megabyte. */
#define CONN_REQUESTS_MAX 256
#define CONN_REQUESTS_FAIR 16      /* while the shard has more than plenty */
#define SHARD_REQUESTS_PLENTY 4096 /* some 4 KiB each */
#define CONN_REQUEST_BYTES_MAX (8 * 1024 * 1024)

/* Partitions that one request may name: each costs us a hundred times its bytes on the wire. */
#define REQUEST_PARTITIONS_MAX 100000

/* Log. */
#define PRODUCER_BATCHES_KEPT 5
#define JOURNAL_COMMIT_BYTES_MAX (8 * 1024 * 1024)
#define FETCH_SLICE_BYTES_MAX (256 * 1024)

/* Groups: what members may make the coordinator keep. Kafka's bounds are frames and records. */
#define GROUP_PROTOCOLS_MAX 32               /* that one member offers */
#define GROUP_MEMBER_BYTES_MAX (1024 * 1024) /* of a member's protocols */
#define GROUP_BYTES_MAX (64 * 1024 * 1024)   /* of all members' of a group */
#define GROUP_PENDING_MAX 10000              /* ids given out and not yet used */
#define GROUP_INSTANCE_ID_BYTES_MAX 1024
#define GROUP_NEW_MEMBER_JOIN_MS (5 * 60 * 1000) /* a new member's first Join, parked */

/* Decompression: a client batch may expand to this many bytes at the most. */
#define DECOMPRESSED_BYTES_MAX (512 * 1024 * 1024)

static_assert(RESPONSE_BYTES_MAX < 100000000, "librdkafka's receive.message.max.bytes");

#endif
