/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_QUOTA_H
#define SL_BROKER_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

/*
 * A rate over a sliding time, and whether it is above what is allowed: KIP-73's quotas, with the
 * meaning of Kafka's SimpleRate. Pure: times (monotonic, never going back) are arguments.
 *
 * What is counted comes as a total that only grows, so that whoever counts need not know of quotas,
 * and several can be added up. Bytes count from the look that finds them. They are kept in samples:
 * the first bytes behind the end of a sample open the next one, and a sample that began as many
 * windows ago as there are samples is forgotten. The rate is what all samples hold over the time
 * since the oldest began, which counts as a window at least.
 *
 * The quota is looked at before something is sent and told afterwards: what is sent in one piece
 * may be more than a second's worth and is paid for by waiting, so that the mean is kept as long
 * as one piece takes less than all windows together.
 */
#define QUOTA_SAMPLES_MAX 100

struct quota {
    int64_t window_ns;
    int32_t samples_max;
    int64_t total;     /* as of the last look */
    int64_t looked_ns; /* when that was */
    int32_t first;     /* the oldest sample, in the ring */
    int32_t count;
    struct {
        int64_t start_ns;
        int64_t bytes;
    } samples[QUOTA_SAMPLES_MAX];
};

#define QUOTA_UNLIMITED INT64_MAX

/* At most QUOTA_SAMPLES_MAX samples are kept. */
void quota_init(struct quota *q, int32_t samples, int64_t window_ns);
/*
 * A look at the total, which need not have been looked at for long: what came since is taken as of
 * now, unless the last look is older than all samples. Then nobody knows, and it is left out.
 */
void quota_look(struct quota *q, int64_t total, int64_t now_ns);
/* Bytes a second, as of the last look. */
double quota_rate(const struct quota *q);
/* As of the last look: the rate is above `limit` bytes a second. */
bool quota_is_exceeded(const struct quota *q, int64_t limit);
/* From when on it is not, if nothing comes; the time of the last look if it is not now. */
int64_t quota_allows_at(const struct quota *q, int64_t limit);

#endif
