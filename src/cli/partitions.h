/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_PARTITIONS_H
#define SL_CLI_PARTITIONS_H

#include "cli/tool.h"
#include "client/admin.h"

/*
 * What the commands about leaders and replicas have in common: partitions by name, lists of broker
 * ids, and looking into Metadata. Strings are borrowed from the arguments.
 */

/* Structs that begin with a struct admin_partition, for qsort and bsearch: by topic, then number.
 */
int partition_compare(const void *a, const void *b);
/* TOPIC or TOPIC:N; the partition is -1 then, for all. False after having said what is wrong. */
bool partition_parse(struct tool *t, const char *text, struct admin_partition *out);
/*
 * The topics of `count` structs of `size` that begin with a struct admin_partition, each once.
 * Returns how many; `names` has room for all.
 */
int32_t partition_topics(const void *structs, int32_t count, size_t size, struct str *names);

/* The answer to admin_describe_topics with everything in order; it is the operation's memory. */
struct metadata_response *topics_sort(struct admin_op *op);
/* NULL: there is none. */
const struct metadata_response_topic *topics_find(const struct metadata_response *sorted,
                                                  struct str name);
const struct metadata_response_partition *topics_find_partition(
    const struct metadata_response *sorted, struct str name, int32_t partition);
/* Ends the tool with what is wrong if the partition is not there; `where` may be empty. */
bool topics_check_partition(struct tool *t, const struct metadata_response *sorted,
                            const struct admin_partition *p, const char *where);

/*
 * tool_check for what only brokers of a cluster serve: elections and reassignments. Of those, only
 * the request as a whole is looked at: their results have errors that are none.
 */
bool moves_check(struct tool *t, const struct admin_op *op, const char *verb);

/* "1,2,3" in the arena, "-" for none. */
const char *ids_text(struct arena *arena, const int32_t *ids, int32_t count);
struct json_t *ids_json(const int32_t *ids, int32_t count);
/* "17 bytes", "1.5 MiB" */
const char *bytes_text(struct arena *arena, int64_t bytes);
bool ids_have(const int32_t *ids, int32_t count, int32_t id);

#endif
