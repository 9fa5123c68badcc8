/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small files of a log directory, entry by entry. The parsers are those by which the broker
 * itself reads them, so what is shown here is what it would see; that a file is checked whole
 * before anything is told is their doing too.
 */
#include "log/inspect.h"

#include "log/files_int.h"
#include "log/producers_int.h"

enum err inspect_checkpoint(struct str text, inspect_checkpoint_fn fn, void *ctx)
{
    struct checkpoint c = {0};
    enum err err = checkpoint_parse(text, &c);

    for (size_t i = 0; !err && i < c.n; i++)
        fn(ctx, c.v[i].topic, c.v[i].partition, c.v[i].offset);
    checkpoint_fini(&c);
    return err;
}

enum err inspect_epochs(struct str text, inspect_epoch_fn fn, void *ctx)
{
    struct epochs e = {0};
    enum err err = epochs_parse(text, &e);

    for (size_t i = 0; !err && i < e.n; i++)
        fn(ctx, e.v[i].epoch, e.v[i].start);
    epochs_fini(&e);
    return err;
}

struct teller {
    inspect_producer_fn fn;
    void *ctx;
};

static void tell_producer(void *ctx, int64_t id, const struct producer_state *s)
{
    static const struct producer_batch none = {.last_sequence = -1, .last_offset = -1};
    const struct teller *t = ctx;

    for (int32_t i = 0; i < MAX(s->batch_count, 1); i++) {
        const struct producer_batch *b = s->batch_count ? &s->batches[i] : &none;
        struct inspect_producer p = {
            .producer_id = id,
            .epoch = s->epoch,
            .coordinator_epoch = s->coordinator_epoch,
            .last_timestamp = s->last_timestamp,
            .txn_first_offset = s->txn_first_offset,
            .last_sequence = b->last_sequence,
            .first_offset = b->last_offset - b->offset_delta,
            .last_offset = b->last_offset,
        };

        t->fn(t->ctx, &p);
    }
}

enum err inspect_producers(struct bytes content, bool is_ours, int64_t *offset,
                           inspect_producer_fn fn, void *ctx)
{
    struct teller t = {.fn = fn, .ctx = ctx};
    struct producers ps;
    enum err err;

    *offset = -1;
    producers_init(&ps);
    err = is_ours ? snapshot_parse(content, offset, &ps) : snapshot_parse_kafka(content, &ps);
    if (!err)
        producers_each_durable(&ps, tell_producer, &t);
    producers_fini(&ps);
    return err;
}
