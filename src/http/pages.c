/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From method and path to a page.
 *
 * Health asks whether a restart would help: a broker without a log directory or without its keeper
 * is on its way out, and says so until it is gone. Readiness asks whether clients should come: not
 * during recovery and not while it stops. Both say in words what their status means.
 */
#include <string.h>

#include "base/assert.h"
#include "http/http_int.h"

#define TYPE_TEXT "text/plain; charset=utf-8"
#define TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"

static const char index_text[] = "strandline\n"
                                 "\n"
                                 "/healthz  200 while the broker can do its work\n"
                                 "/readyz   200 while clients are served\n"
                                 "/metrics  for Prometheus\n";

enum page_kind page_find(const char *method, const char *path)
{
    static const struct {
        const char *path;
        enum page_kind kind;
    } pages[] = {
        {"/", PAGE_INDEX},
        {"/healthz", PAGE_HEALTH},
        {"/readyz", PAGE_READY},
        {"/metrics", PAGE_METRICS},
    };

    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        if (strcmp(path, pages[i].path) != 0)
            continue;
        if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
            return pages[i].kind;
        return PAGE_NOT_ALLOWED;
    }
    return PAGE_NOT_FOUND;
}

static void say(struct page *out, int status, const char *text)
{
    out->status = status;
    out->type = TYPE_TEXT;
    buf_append(&out->body, text, strlen(text));
}

static bool has_working_dir(const struct figures *f)
{
    for (int i = 0; i < f->dir_count; i++)
        if (!f->dirs[i].has_failed)
            return true;
    return false;
}

static void say_health(struct page *out, const struct figures *f)
{
    if (!has_working_dir(f))
        say(out, 503, "every log directory has failed\n");
    else if (f->phase == FIGURES_STOPPING && f->stop_err)
        say(out, 503, "stopping after a failure\n");
    else
        say(out, 200, "ok\n");
}

static void say_readiness(struct page *out, const struct figures *f)
{
    switch (f->phase) {
    case FIGURES_STARTING: say(out, 503, "starting: logs are being recovered\n"); return;
    case FIGURES_SERVING: say(out, 200, "ok\n"); return;
    case FIGURES_STOPPING: say(out, 503, "stopping\n"); return;
    }
    UNREACHABLE();
}

void page_make(enum page_kind kind, const struct page_source *source, struct page *out)
{
    *out = (struct page){.status = 200};
    switch (kind) {
    case PAGE_INDEX: say(out, 200, index_text); return;
    case PAGE_HEALTH: say_health(out, source->figures); return;
    case PAGE_READY: say_readiness(out, source->figures); return;
    case PAGE_METRICS:
        out->type = TYPE_METRICS;
        metrics_print(source, &out->body);
        return;
    case PAGE_NOT_FOUND: say(out, 404, "not found; / lists what there is\n"); return;
    case PAGE_NOT_ALLOWED: say(out, 405, "only GET and HEAD\n"); return;
    }
    UNREACHABLE();
}
