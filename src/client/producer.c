/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The producer's front: settings, memory, taking records, flushing.
 *
 * A record is copied into the last batch of its partition (accumulator.c); batches leave with
 * requests (sender.c). buffer.memory counts keys, values, headers and a fixed part for each record
 * from producer_send to the callback, and is the only bound on what gathers: a producer that is
 * full refuses, and tells when half of its memory is free, so that a fast writer and a slow broker
 * do not wake each other for every record.
 */
#include "client/producer_int.h"

#include <stdlib.h>

#include "base/assert.h"

static void refreshed(struct client_watcher *w, enum err err)
{
    (void)err;
    producer__pump(CONTAINER_OF(w, struct producer, watcher));
}

static void rang(struct client_alarm *alarm)
{
    producer__pump(CONTAINER_OF(alarm, struct producer, alarm));
}

struct producer_config producer_config_default(void)
{
    return (struct producer_config){
        .acks = PRODUCER_ACKS_ALL,
        .enable_idempotence = true,
        .compression_type = CODEC_NONE,
        .compression_level = CODEC_LEVEL_DEFAULT,
        .batch_size = 16384,
        .linger_ms = 5,
        .buffer_memory = 33554432,
        .max_request_size = 1048576,
        .max_in_flight_requests_per_connection = 5,
        .retries = INT32_MAX,
        .request_timeout_ms = 30000,
        .delivery_timeout_ms = 120000,
    };
}

struct producer_record producer_record_default(void)
{
    return (struct producer_record){
        .partition = -1,
        .key = bytes_null(),
        .value = bytes_null(),
        .timestamp = -1,
    };
}

static enum err check_config(const struct producer_config *c)
{
    if (c->acks < -1 || c->acks > 1 || c->batch_size < 0 || c->linger_ms < 0 ||
        c->buffer_memory <= 0 || c->max_request_size <= 0 ||
        c->max_in_flight_requests_per_connection <= 0 || c->retries < 0 ||
        c->request_timeout_ms <= 0 || c->delivery_timeout_ms <= 0 ||
        (unsigned)c->compression_type >= CODEC_COUNT)
        return ERR_LIMIT;
    if (c->enable_idempotence && (c->acks != PRODUCER_ACKS_ALL || c->retries == 0))
        return ERR_INVALID_ARG;
    if ((int64_t)c->linger_ms + c->request_timeout_ms > c->delivery_timeout_ms)
        return ERR_INVALID_ARG;
    return ERR_NONE;
}

enum err producer_open(struct client *client, const struct producer_config *config,
                       struct producer **out)
{
    enum err err = check_config(config);
    struct producer *p;
    uint64_t seed;

    *out = NULL;
    if (err)
        return err;
    p = xcalloc(1, sizeof(*p));
    p->client = client;
    p->config = *config;
    p->producer_id = -1;
    p->watcher.refreshed = refreshed;
    p->alarm.ring = rang;
    list_init(&p->calls);
    io_random(io_loop_io(client_loop(client)), &seed, sizeof(seed));
    p->rng = rng_seeded(seed);
    client_watcher_add(client, &p->watcher);
    *out = p;
    return ERR_NONE;
}

/* The pump runs soon, but never inside a call of the user. */
static void wake(struct producer *p)
{
    p->is_woken = true;
    client_alarm_set(p->client, &p->alarm, 0);
}

/* A copy of everything the record points to, in one piece of memory behind the struct. */
static void keep_homeless(struct topic_state *t, const struct producer_record *record,
                          const struct receipt *receipt, int64_t deadline_ns)
{
    int64_t bytes = producer__memory_of(record);
    struct producer_header *headers;
    struct homeless *h =
        xmalloc(sizeof(*h) + (size_t)record->header_count * sizeof(*headers) + (size_t)bytes);
    uint8_t *at;

    headers = (struct producer_header *)(void *)(h + 1);
    at = (uint8_t *)(headers + record->header_count);
    *h = (struct homeless){
        .record = *record, .receipt = *receipt, .memory = bytes, .deadline_ns = deadline_ns};
    h->record.topic = str_of(t->name);
    h->record.headers = headers;
#define KEEP(slice)                                                                                \
    do {                                                                                           \
        if ((slice).n > 0)                                                                         \
            memcpy(at, (slice).p, (size_t)(slice).n);                                              \
        (slice).p = (void *)at;                                                                    \
        at += MAX((slice).n, 0);                                                                   \
    } while (0)
    KEEP(h->record.key);
    KEEP(h->record.value);
    for (int32_t i = 0; i < record->header_count; i++) {
        headers[i] = record->headers[i];
        KEEP(headers[i].key);
        KEEP(headers[i].value);
    }
#undef KEEP
    list_push_back(&t->homeless, &h->node);
}

enum err producer_send(struct producer *p, const struct producer_record *record,
                       producer_done_fn done, void *ctx)
{
    int64_t memory = producer__memory_of(record);
    struct io *io = io_loop_io(client_loop(p->client));
    struct receipt receipt = {.done = done, .ctx = ctx, .timestamp = record->timestamp};
    int64_t deadline_ns = io_mono_ns(io) + (int64_t)p->config.delivery_timeout_ms * NS_PER_MS;
    struct topic_state *t;
    enum err err = ERR_NONE;

    if (record->topic.n <= 0 || record->partition < -1)
        return ERR_INVALID_ARG;
    if (memory > p->config.max_request_size || memory > p->config.buffer_memory)
        return ERR_MESSAGE_TOO_LARGE;
    if (p->memory + memory > p->config.buffer_memory) {
        p->was_refused = true;
        wake(p);
        return ERR_AGAIN;
    }
    if (receipt.timestamp < 0)
        receipt.timestamp = io_wall_ms(io);
    p->memory += memory;
    p->records++;
    t = producer__topic(p, record->topic);
    if (!list_is_empty(&t->homeless) || producer__partition_count(t, &err) == 0)
        keep_homeless(t, record, &receipt, deadline_ns);
    else
        producer__place(t, record, &receipt, deadline_ns);
    wake(p);
    return ERR_NONE;
}

void producer_on_room(struct producer *p, void (*room)(void *ctx), void *ctx)
{
    p->room = room;
    p->room_ctx = ctx;
}

void producer_flush(struct producer *p, void (*flushed)(void *ctx), void *ctx)
{
    p->is_flushing = true;
    p->flushed = flushed;
    p->flushed_ctx = ctx;
    wake(p);
}

int64_t producer_pending_records(const struct producer *p)
{
    return p->records;
}

int64_t producer_pending_bytes(const struct producer *p)
{
    return p->memory;
}

void producer_close(struct producer *p)
{
    struct topic_state *t;

    if (!p)
        return;
    client_watcher_remove(&p->watcher);
    client_alarm_clear(p->client, &p->alarm);
    producer__drop_calls(p);
    client_call_fini(&p->id_call);
    free(p->id_request);
    t = p->topics;
    HASH_CLEAR(hh, p->topics);
    while (t) {
        struct topic_state *next = t->hh.next;

        producer__drop_topic(t);
        t = next;
    }
    assert(p->records == 0 && p->memory == 0);
    free(p);
}
