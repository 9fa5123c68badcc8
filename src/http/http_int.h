/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_HTTP_HTTP_INT_H
#define SL_HTTP_HTTP_INT_H

#include "base/buf.h"
#include "broker/figures.h"
#include "http/http.h"

/* What the files of the port share. Pages are values: any thread. */

enum page_kind {
    PAGE_INDEX = 0,
    PAGE_HEALTH = 1,
    PAGE_READY = 2,
    PAGE_METRICS = 3,
    PAGE_NOT_FOUND = 4,
    PAGE_NOT_ALLOWED = 5,
};

enum page_kind page_find(const char *method, const char *path);

/* What pages are made of. */
struct page_source {
    const struct figures *figures;
    struct io_usage usage;
    const char *version;
    int64_t now_ms; /* wall clock */
};

struct page {
    int status;
    const char *type; /* of the content */
    struct buf body;  /* owned by whoever has the page */
};

/* `source` is for health, readiness and metrics; the others may have NULL. */
void page_make(enum page_kind kind, const struct page_source *source, struct page *out);

void metrics_print(const struct page_source *source, struct buf *to);

#endif
