/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of what was promised, and the judge of what is read. The rules, in words:
 *
 *  - what is known to be at an offset stays there, unchanged, and is nowhere else;
 *  - what was definitely refused is not there;
 *  - every offset from the first one read on holds a batch: offsets are dense;
 *  - batches of a stream (one producer, one partition) stand in the order of sending, and a stream
 *    with idempotence leaves none out;
 *  - the start and the end of a log never go back.
 *
 * A topic of which an answer is missing (was it made? is it deleted?) is left alone, since an old
 * request may still be on its way to the broker.
 */
#include "history.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "run.h"

#define VALUE_FILLER_MAX 70000 /* more than a shard decompresses by itself */
#define VALUE_FILLER_USUAL 700
#define LARGE_ONCE_IN 64
#define KEY_BYTES 12

/* ---- topics ----------------------------------------------------------------------------- */

struct topic *history_add_topic(struct history *h, const char *name)
{
    struct topic *t;

    if (h->topic_count == TOPICS_MAX)
        return NULL;
    t = &h->topics[h->topic_count++];
    snprintf(t->name, sizeof(t->name), "%s", name);
    return t;
}

struct topic *history_pick_topic(struct run *run)
{
    struct history *h = &run->history;
    int there[TOPICS_MAX];
    uint32_t n = 0;

    for (int i = 0; i < h->topic_count; i++)
        if (h->topics[i].state == TOPIC_THERE)
            there[n++] = i;
    return n > 0 ? &h->topics[there[run_choose_by(run, BY_PRODUCERS, n)]] : NULL;
}

int history_topic_index(const struct history *h, const struct topic *t)
{
    return (int)(t - h->topics);
}

/* ---- batches ---------------------------------------------------------------------------- */

static int32_t add_batch(struct history *h)
{
    if (h->batch_count == h->batch_cap) {
        h->batch_cap = h->batch_cap ? 2 * h->batch_cap : 1024;
        h->batches = xreallocarray(h->batches, (size_t)h->batch_cap, sizeof(*h->batches));
    }
    h->batches[h->batch_count] = (struct sent_batch){.base = -1};
    return h->batch_count++;
}

/* Key and value of a record, from its batch's number and its place alone. */
static int32_t fill_value(uint8_t *value, int32_t number, int place)
{
    struct rng rng = rng_seeded((uint64_t)number << 8 | (uint64_t)place);
    int32_t filler = (int32_t)rng_below(&rng, VALUE_FILLER_USUAL);
    uint8_t c = (uint8_t)rng_u64(&rng);
    bool is_large = number % LARGE_ONCE_IN == 0 && place == 0;

    put_i32(value, number);
    put_i32(value + 4, place);
    if (is_large)
        filler = VALUE_FILLER_MAX;
    /* Large ones do not compress. */
    for (int32_t i = 0; i < filler; i++)
        value[8 + i] = is_large ? (uint8_t)rng_u64(&rng) : (uint8_t)(c + (i >> 5));
    return 8 + filler;
}

int32_t history_make_batch(struct run *run, struct topic *t, int32_t partition,
                           const struct batch_spec *spec, int count, struct buf *out)
{
    int32_t number = add_batch(&run->history);
    struct sent_batch *b = &run->history.batches[number];
    uint8_t value[8 + VALUE_FILLER_MAX];
    struct batch_builder builder;
    size_t before = out->n;

    b->topic = (int16_t)history_topic_index(&run->history, t);
    b->partition = (int8_t)partition;
    b->count = (int8_t)count;
    b->ms = io_wall_ms(run->client_io);
    batch_builder_init(&builder, spec);
    for (int i = 0; i < count; i++) {
        struct record r = {
            .timestamp = b->ms,
            .key = bytes_null(),
            .value = {.p = value, .n = fill_value(value, number, i)},
        };
        enum err err = batch_builder_append(&builder, &r);

        assert(!err);
    }
    batch_builder_finish(&builder, out);
    b->bytes = (int32_t)(out->n - before);
    batch_builder_fini(&builder);
    return number;
}

static void grow(struct part *p, int64_t end)
{
    int64_t cap = p->at_cap ? p->at_cap : 256;

    while (cap < end)
        cap *= 2;
    if (cap == p->at_cap)
        return;
    p->at = xreallocarray(p->at, (size_t)cap, sizeof(*p->at));
    memset(p->at + p->at_cap, 0, (size_t)(cap - p->at_cap) * sizeof(*p->at));
    p->at_cap = cap;
}

/* Batch `number` is at `base`: nothing else may be there, and it may be nowhere else. */
static void know(struct run *run, struct topic *t, int32_t partition, int32_t number, int64_t base,
                 const char *how)
{
    struct sent_batch *b = &run->history.batches[number];
    bool is_own = b->topic == history_topic_index(&run->history, t);
    struct part *p = &t->parts[partition];

    grow(p, base + b->count);
    for (int64_t o = base; o < base + b->count; o++) {
        if (p->at[o] != 0 && p->at[o] != number + 1) {
            violate(run, "%s-%d (%s): offset %lld %s batch %d, but batch %d was known to be there",
                    t->name, partition, t->is_durable ? "durable" : "page cache", (long long)o, how,
                    number, p->at[o] - 1);
            return;
        }
        p->at[o] = number + 1;
    }
    if (is_own && b->base >= 0 && b->base != base)
        violate(run, "%s-%d: batch %d is at offset %lld and at offset %lld", t->name, partition,
                number, (long long)b->base, (long long)base);
    if (is_own)
        b->base = base;
    p->end = MAX(p->end, base + b->count);
}

static struct topic *topic_of(struct run *run, int32_t number)
{
    return &run->history.topics[run->history.batches[number].topic];
}

void history_acked(struct run *run, int32_t number, int64_t base)
{
    struct sent_batch *b = &run->history.batches[number];
    struct topic *t = topic_of(run, number);
    struct part *p = &t->parts[b->partition];

    /* The answer may speak of a topic that has been deleted, or made again, meanwhile. */
    if (t->state != TOPIC_THERE) {
        history_unknown(run, number);
        return;
    }
    if (b->fate == FATE_ACKED || b->fate == FATE_REFUSED)
        violate(run, "batch %d was answered twice", number);
    b->fate = FATE_ACKED;
    run->counts.acks++;
    if (base < 0) {
        violate(run, "batch %d was acknowledged at offset %lld", number, (long long)base);
        return;
    }
    know(run, t, b->partition, number, base, "was given to");
    if (base + b->count > p->acked_end) {
        p->acked_end = base + b->count;
        p->acked_ns = run_now(run);
    }
}

void history_refused(struct run *run, int32_t number)
{
    struct sent_batch *b = &run->history.batches[number];

    if (topic_of(run, number)->state != TOPIC_THERE) {
        history_unknown(run, number);
        return;
    }
    if (b->base >= 0)
        violate(run, "batch %d was refused, and it is at offset %lld", number, (long long)b->base);
    b->fate = FATE_REFUSED;
    run->counts.refused++;
}

void history_unknown(struct run *run, int32_t number)
{
    run->history.batches[number].fate = FATE_UNKNOWN;
    run->counts.unknown++;
}

/* ---- reading ---------------------------------------------------------------------------- */

void order_fini(struct order *o)
{
    free(o->last);
    *o = (struct order){0};
}

void order_reset(struct order *o, bool from_zero)
{
    if (o->cap > 0)
        memset(o->last, 0, (size_t)o->cap * sizeof(*o->last));
    o->from_zero = from_zero;
}

static void check_order(struct run *run, const struct topic *t, int32_t partition, int32_t number,
                        struct order *o)
{
    const struct sent_batch *b = &run->history.batches[number];
    int32_t last;

    if (b->stream >= o->cap) {
        int32_t cap = MAX(2 * o->cap, b->stream + 64);

        o->last = xreallocarray(o->last, (size_t)cap, sizeof(*o->last));
        memset(o->last + o->cap, 0, (size_t)(cap - o->cap) * sizeof(*o->last));
        o->cap = cap;
    }
    last = o->last[b->stream] - 1;
    o->last[b->stream] = b->order + 1;
    if (last >= b->order)
        violate(run, "%s-%d: batch %d (%d of its stream) stands behind number %d", t->name,
                partition, number, b->order, last);
    if (b->is_gapless && !t->has_lost && b->order != last + 1 && (last >= 0 || o->from_zero))
        violate(run, "%s-%d: batch %d (%d of its stream) follows number %d", t->name, partition,
                number, b->order, last);
}

/* The batch that a record belongs to; -1 after a violation. */
static int32_t check_record(struct run *run, const struct record *r, int place)
{
    uint8_t expected[8 + VALUE_FILLER_MAX];
    int32_t number = r->value.n >= 8 ? get_i32(r->value.p) : -1;

    if (number < 0 || number >= run->history.batch_count ||
        fill_value(expected, number, place) != r->value.n ||
        memcmp(expected, r->value.p, (size_t)r->value.n) != 0) {
        violate(run, "the record at offset %lld is not what was sent", (long long)r->offset);
        return -1;
    }
    return number;
}

static int32_t check_records(struct run *run, struct bytes batch, int *count)
{
    struct record_iter it;
    struct record r;
    int32_t number = -1;
    enum err err;

    *count = 0;
    record_iter_init(&it);
    err = record_iter_batch(&it, batch);
    while (!err && !(err = record_iter_next(&it, &r))) {
        int32_t n = check_record(run, &r, *count);

        if (n < 0 || (*count > 0 && n != number)) {
            violate(run, "records of two batches are mixed at offset %lld", (long long)r.offset);
            break;
        }
        number = n;
        ++*count;
    }
    record_iter_fini(&it);
    if (err != ERR_EOF)
        violate(run, "a stored batch cannot be read: %s", err_name(err));
    return number;
}

static void read_batch(struct run *run, struct topic *t, int32_t partition, struct bytes batch,
                       const struct batch_header *h, struct order *order)
{
    const struct sent_batch *b;
    int count;
    int32_t number = check_records(run, batch, &count);

    if (run_is_over(run))
        return;
    b = &run->history.batches[number];
    if (strcmp(run->history.topics[b->topic].name, t->name) != 0 || b->partition != partition)
        violate(run, "batch %d was sent to %s-%d and stands in %s-%d", number,
                run->history.topics[b->topic].name, b->partition, t->name, partition);
    if (count != b->count)
        violate(run, "%s-%d: batch %d has %d records of %d", t->name, partition, number, count,
                b->count);
    if (b->fate == FATE_REFUSED)
        violate(run, "%s-%d: batch %d was refused and stands at offset %lld", t->name, partition,
                number, (long long)h->base_offset);
    if (run_is_over(run))
        return;
    know(run, t, partition, number, h->base_offset, "holds");
    if (b->topic == history_topic_index(&run->history, t))
        check_order(run, t, partition, number, order);
    run->counts.batches_read++;
    run->counts.records_read += count;
}

int64_t history_read(struct run *run, struct topic *t, int32_t partition, int64_t offset,
                     struct bytes records, struct order *order)
{
    int64_t next = offset;

    while (!run_is_over(run) && records.n >= BATCH_HEADER_BYTES) {
        struct batch_header h;
        struct bytes batch = records;
        int32_t total;
        enum err err = batch_frame(records, &total);

        if (!err)
            err = batch_header_parse(records, &h);
        if (err) {
            violate(run, "%s-%d: what was fetched at %lld is no batch", t->name, partition,
                    (long long)next);
            break;
        }
        if (total > records.n)
            break; /* cut off by the limit of the fetch */
        batch.n = total;
        if (!batch_crc_ok(batch))
            violate(run, "%s-%d: the batch at %lld is damaged", t->name, partition,
                    (long long)h.base_offset);
        /* The first one may begin below what was asked for; a page cache may have lost segments. */
        bool is_next = h.base_offset == next || (next == offset && h.base_offset < next) ||
                       (t->has_lost && h.base_offset > next);
        if (!is_next || batch_last_offset(&h) < next)
            violate(run, "%s-%d: offset %lld was due and %lld to %lld came", t->name, partition,
                    (long long)next, (long long)h.base_offset, (long long)batch_last_offset(&h));
        if (h.base_offset >= next && !run_is_over(run))
            read_batch(run, t, partition, batch, &h, order);
        next = batch_last_offset(&h) + 1;
        records.p += total;
        records.n -= total;
    }
    return next;
}

void history_bounds(struct run *run, struct topic *t, int32_t partition, int64_t log_start,
                    int64_t end)
{
    struct part *p = &t->parts[partition];

    if (log_start > p->start) {
        run->counts.retained += log_start - p->start;
        if (!t->has_ever_had_retention && t->retention_is_certain && !t->has_lost)
            violate(run, "%s-%d (%s) begins at %lld, and nothing may delete", t->name, partition,
                    t->is_durable ? "durable" : "page cache", (long long)log_start);
        p->start = log_start;
    }
    if (end < log_start)
        violate(run, "%s-%d begins at %lld and ends at %lld", t->name, partition,
                (long long)log_start, (long long)end);
}

static const struct sent_batch *known_at(const struct run *run, const struct part *p,
                                         int64_t offset)
{
    return offset < p->at_cap && p->at[offset] > 0 ? &run->history.batches[p->at[offset] - 1]
                                                   : NULL;
}

/* Retention may have taken what came earlier. */
static void check_earlier(struct run *run, const struct topic *t, int32_t partition,
                          const struct time_question *q)
{
    const struct part *p = &t->parts[partition];
    int64_t end = q->offset < 0 ? q->acked_end : MIN(q->offset, q->acked_end);

    for (int64_t o = 0; o < end && !t->has_ever_had_retention; o++) {
        const struct sent_batch *b = known_at(run, p, o);

        if (b && b->ms >= q->ms)
            violate(run,
                    "%s-%d: asked for time %lld and told offset %lld, but offset %lld is of %lld",
                    t->name, partition, (long long)q->ms, (long long)q->offset, (long long)o,
                    (long long)b->ms);
    }
}

void history_time(struct run *run, const struct topic *t, int32_t partition,
                  const struct time_question *q)
{
    const struct sent_batch *b;

    run->counts.times_asked++;
    check_earlier(run, t, partition, q);
    if (q->offset < 0)
        return;
    b = known_at(run, &t->parts[partition], q->offset);
    if (q->found_ms < q->ms || (b && b->ms != q->found_ms))
        violate(run, "%s-%d: asked for time %lld and told offset %lld of %lld, which is of %lld",
                t->name, partition, (long long)q->ms, (long long)q->offset, (long long)q->found_ms,
                (long long)(b ? b->ms : -1));
}

void history_verified(struct run *run, struct topic *t, int32_t partition, int64_t log_start,
                      int64_t end)
{
    struct part *p = &t->parts[partition];

    if (end < p->end)
        violate(run, "%s-%d ends at %lld, but offset %lld (batch %d) was known to be there",
                t->name, partition, (long long)end, (long long)p->end - 1, p->at[p->end - 1] - 1);
    (void)log_start;
}

static void forget(struct run *run, struct topic *t, int at)
{
    struct history *h = &run->history;

    t->has_lost = true;
    for (int i = 0; i < t->partitions; i++) {
        struct part *p = &t->parts[i];

        if (p->at_cap > 0)
            memset(p->at, 0, (size_t)p->at_cap * sizeof(*p->at));
        p->end = p->acked_end = p->start = 0;
    }
    for (int32_t i = 0; i < h->batch_count; i++)
        if (h->batches[i].topic == at) {
            h->batches[i].base = -1;
            if (h->batches[i].fate == FATE_ACKED)
                h->batches[i].fate = FATE_UNKNOWN;
        }
}

void history_power_cut(struct run *run)
{
    struct history *h = &run->history;

    for (int i = 0; i < h->topic_count; i++)
        if (h->topics[i].state == TOPIC_THERE && !h->topics[i].is_durable)
            forget(run, &h->topics[i], i);
}

void history_fini(struct history *h)
{
    for (int i = 0; i < h->topic_count; i++)
        for (int k = 0; k < TOPIC_PARTITIONS_MAX; k++)
            free(h->topics[i].parts[k].at);
    free(h->batches);
}
