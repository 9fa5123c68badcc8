/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader epochs of one log (KIP-101, KIP-279, KIP-320): for each epoch the first offset that
 * was written under it. Replicas compare these histories to find where their logs part, so the
 * history is data and not a cache: an epoch that was lost cannot be found again if nothing was
 * written under it.
 *
 * Entries ascend strictly in both fields. The file may hold more than the log does (it is replaced
 * before the batches of a new epoch are acknowledged, and trimmed afterwards), never less; loading
 * trims both ends.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/files_int.h"

void epochs_fini(struct epochs *e)
{
    free(e->v);
    *e = (struct epochs){.v = NULL};
}

int32_t epochs_latest(const struct epochs *e)
{
    return e->n > 0 ? e->v[e->n - 1].epoch : -1;
}

bool epochs_assign(struct epochs *e, int32_t epoch, int64_t start)
{
    size_t n = e->n;

    assert(epoch >= 0 && start >= 0);
    if (n > 0 && e->v[n - 1].epoch == epoch && e->v[n - 1].start <= start)
        return false;
    while (n > 0 && (e->v[n - 1].epoch >= epoch || e->v[n - 1].start >= start))
        n--;
    if (n == e->cap) {
        e->cap = e->cap ? 2 * e->cap : 4;
        e->v = xreallocarray(e->v, e->cap, sizeof(*e->v));
    }
    e->v[n] = (struct epoch_entry){.epoch = epoch, .start = start};
    e->n = n + 1;
    return true;
}

/* The number of entries whose epoch is at most `epoch`. */
static size_t count_up_to(const struct epochs *e, int32_t epoch)
{
    size_t n = e->n;

    while (n > 0 && e->v[n - 1].epoch > epoch)
        n--;
    return n;
}

void epochs_end(const struct epochs *e, int32_t epoch, int64_t log_end, int32_t *found,
                int64_t *end)
{
    size_t n = count_up_to(e, epoch);

    *found = -1;
    *end = -1;
    if (epoch < 0 || e->n == 0 || epoch > epochs_latest(e))
        return;
    if (n == 0) {
        /* All that is known is later: the asker's epoch ends where the first of these begins. */
        *found = epoch;
        *end = e->v[0].start;
        return;
    }
    *found = e->v[n - 1].epoch;
    *end = n == e->n ? log_end : e->v[n].start;
}

int32_t epochs_at(const struct epochs *e, int64_t offset)
{
    size_t n = e->n;

    while (n > 0 && e->v[n - 1].start > offset)
        n--;
    return n > 0 ? e->v[n - 1].epoch : -1;
}

bool epochs_truncate_end(struct epochs *e, int64_t offset)
{
    size_t before = e->n;

    while (e->n > 0 && e->v[e->n - 1].start >= offset)
        e->n--;
    return e->n != before;
}

bool epochs_truncate_start(struct epochs *e, int64_t offset)
{
    size_t gone = 0;

    while (gone < e->n && e->v[gone].start < offset)
        gone++;
    if (gone == 0)
        return false;
    gone--;
    memmove(&e->v[0], &e->v[gone], (e->n - gone) * sizeof(*e->v));
    e->n -= gone;
    e->v[0].start = offset;
    if (e->n > 1 && e->v[1].start == offset) {
        memmove(&e->v[0], &e->v[1], (e->n - 1) * sizeof(*e->v));
        e->n--;
    }
    return true;
}

static enum err parse_entry(void *ctx, struct str line)
{
    struct epochs *e = ctx;
    struct str first, second, more;
    int64_t epoch, start;

    if (!text_next_word(&line, &first) || !text_next_word(&line, &second) ||
        text_next_word(&line, &more))
        return ERR_CORRUPT;
    if (str_to_i64(first, &epoch) || str_to_i64(second, &start) || epoch < 0 || epoch > INT32_MAX ||
        start < 0)
        return ERR_CORRUPT;
    epochs_assign(e, (int32_t)epoch, start);
    return ERR_NONE;
}

enum err epochs_parse(struct str text, struct epochs *e)
{
    enum err err;

    *e = (struct epochs){.v = NULL};
    err = text_parse_entries(text, parse_entry, e);
    if (err)
        epochs_fini(e);
    return err;
}

void epochs_format(const struct epochs *e, struct buf *out)
{
    char line[64];
    int n = snprintf(line, sizeof(line), "%d\n%zu\n", TEXT_ENTRIES_VERSION, e->n);

    buf_reset(out);
    buf_append(out, line, (size_t)n);
    for (size_t i = 0; i < e->n; i++) {
        n = snprintf(line, sizeof(line), "%d %lld\n", e->v[i].epoch, (long long)e->v[i].start);
        buf_append(out, line, (size_t)n);
    }
}
