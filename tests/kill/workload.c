/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes records and keeps what was acknowledged.
 *
 *   workload [OPTION]... BOOTSTRAP ACKS TOPIC:PARTITIONS:MODE...
 *
 *   -p N   producers for each mode (2), each with a codec of its own
 *   -r N   records a second and producer (0: as fast as it goes)
 *   -n N   records of each producer (0: until SIGTERM)
 *   -b N   largest record (100000); most are small
 *   -s N   seed (1)
 *   -f N   number of the first producer (0), for a second run into the same topics
 *   -w N   seconds that a record may take (120)
 *   -d S   what librdkafka logs ("debug"); the end of it is printed where a record is given up
 *
 * Every acknowledgement is appended to the file ACKS (struct ack) as soon as the client is told, so
 * that the file never claims what the broker has not said. The program never gives up a record: it
 * ends well only if all were acknowledged, and prints how many.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "peer.h"
#include "record.h"

#define TICK_MS 10
#define TICKS_PER_SECOND (1000 / TICK_MS)

static const char *const codecs[] = {"none", "lz4", "snappy", "zstd", "gzip"};

struct options {
    const char *bootstrap;
    struct topic *topics;
    int producers;
    int64_t rate;
    int64_t count;
    int64_t bytes_max;
    uint64_t seed;
    int64_t first;
    int64_t wait_s;
    const char *debug; /* NULL: nothing */
};

struct producer {
    const struct options *options;
    FILE *acks;
    rd_kafka_t *client;
    struct rng rng;
    uint32_t number;
    int is_idempotent;
    uint64_t **seqs; /* by topic and partition */
    uint8_t *bytes;
    int64_t produced;
    int64_t acked;
    pthread_t thread;
};

static atomic_bool stopping;

static void stop(int signal)
{
    (void)signal;
    atomic_store(&stopping, true);
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    struct producer *p = opaque;
    struct ack ack;

    (void)client;
    if (message->err)
        fail_of(rd_kafka_topic_name(message->rkt), message->partition,
                "producer %u: a record of partition %d was given up: %s", p->number,
                message->partition, rd_kafka_err2str(message->err));
    memcpy(&ack.id, message->_private, sizeof(ack.id));
    ack.offset = message->offset;
    free(message->_private);
    if (fwrite(&ack, sizeof(ack), 1, p->acks) != 1)
        fail("cannot write the acknowledgements");
    p->acked++;
}

/* Most records are small, one in ten is larger, one in two hundred is as large as it may be. */
static size_t pick_size(struct producer *p)
{
    uint64_t max = (uint64_t)p->options->bytes_max;
    uint64_t kind = rng_below(&p->rng, 200);
    uint64_t most = kind == 0 ? max : kind < 20 ? max / 20 : max / 200;

    return RECORD_BYTES_MIN + rng_below(&p->rng, most + 1);
}

static const struct topic *pick_topic(struct producer *p)
{
    const struct topic *topics = p->options->topics;
    int candidates = 0;

    for (const struct topic *t = topics; t->name; t++)
        candidates += t->is_idempotent == p->is_idempotent;
    candidates = 1 + (int)rng_below(&p->rng, (uint64_t)candidates);
    while (candidates -= topics->is_idempotent == p->is_idempotent)
        topics++;
    return topics;
}

static void produce_one(struct producer *p)
{
    const struct topic *topic = pick_topic(p);
    int number = (int)(topic - p->options->topics);
    int partition = (int)rng_below(&p->rng, (uint64_t)topic->partitions);
    size_t n = pick_size(p);
    struct record_id id = {.seq = p->seqs[number][partition]++,
                           .producer = p->number,
                           .topic = (uint16_t)number,
                           .partition = (uint16_t)partition};
    rd_kafka_resp_err_t err;

    record_make(p->bytes, n, &id);
    void *opaque = xmemdup(&id, sizeof(id));
    do {
        err = rd_kafka_producev(p->client, RD_KAFKA_V_TOPIC(topic->name),
                                RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE(p->bytes, n),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE(opaque),
                                RD_KAFKA_V_END);
        rd_kafka_poll(p->client, err ? 10 : 0);
    } while (err == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    check(err, "produce");
    p->produced++;
}

static bool has_more(const struct producer *p)
{
    int64_t count = p->options->count;

    return !atomic_load(&stopping) && (count == 0 || p->produced < count);
}

static void pace(struct producer *p)
{
    struct timespec tick = {.tv_nsec = TICK_MS * 1000000};

    rd_kafka_poll(p->client, 0);
    fflush(p->acks);
    if (p->options->rate > 0)
        nanosleep(&tick, NULL);
}

static void *run(void *arg)
{
    struct producer *p = arg;
    int64_t burst = p->options->rate > 0 ? p->options->rate / TICKS_PER_SECOND + 1 : 1000;

    while (has_more(p)) {
        for (int64_t i = 0; i < burst && has_more(p); i++)
            produce_one(p);
        pace(p);
    }
    check(rd_kafka_flush(p->client, (int)p->options->wait_s * 1000), "flush");
    fflush(p->acks);
    rd_kafka_destroy(p->client);
    return NULL;
}

static void init(struct producer *p, const struct options *o, FILE *acks, int index, int idempotent)
{
    char wait_ms[32];
    const struct setting settings[] = {
        {"compression.codec", codecs[index % 5]},
        {"enable.idempotence", idempotent ? "true" : "false"},
        {"acks", idempotent ? "all" : "1"},
        {"max.in.flight", idempotent ? "5" : "1"},
        {"linger.ms", "2"},
        {"queue.buffering.max.kbytes", "16384"},
        {"retry.backoff.ms", "20"},
        {"message.send.max.retries", "10000000"},
        {"message.timeout.ms", wait_ms},
        {"topic.metadata.refresh.interval.ms", "1000"},
        {"topic.metadata.propagation.max.ms", wait_ms},
        {o->debug ? "debug" : NULL, o->debug},
        {NULL, NULL},
    };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    snprintf(wait_ms, sizeof(wait_ms), "%lld", (long long)o->wait_s * 1000);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_opaque(conf, p);
    p->options = o;
    p->acks = acks;
    p->number = (uint32_t)(o->first + index);
    p->is_idempotent = idempotent;
    p->rng = rng_seeded(o->seed << 16 ^ p->number);
    p->bytes = xmalloc((size_t)o->bytes_max + RECORD_BYTES_MIN);
    p->seqs = xcalloc(64, sizeof(*p->seqs));
    for (int t = 0; o->topics[t].name; t++)
        p->seqs[t] = xcalloc((size_t)o->topics[t].partitions, sizeof(**p->seqs));
    p->client = connect_as(RD_KAFKA_PRODUCER, conf, o->bootstrap, settings);
}

static bool has_mode(const struct topic *topics, int is_idempotent)
{
    for (; topics->name; topics++)
        if (topics->is_idempotent == is_idempotent)
            return true;
    return false;
}

static int start_all(const struct options *o, struct producer *producers, FILE *acks)
{
    int n = 0;

    for (int idempotent = 1; idempotent >= 0; idempotent--)
        for (int i = 0; i < o->producers && has_mode(o->topics, idempotent); i++, n++)
            init(&producers[n], o, acks, n, idempotent);
    for (int i = 0; i < n; i++)
        pthread_create(&producers[i].thread, NULL, run, &producers[i]);
    return n;
}

static void parse(struct options *o, int argc, char **argv)
{
    int c;

    while ((c = getopt(argc, argv, "p:r:n:b:s:f:w:d:")) != -1) {
        switch (c) {
        case 'p': o->producers = (int)number(optarg, 1); break;
        case 'r': o->rate = number(optarg, 0); break;
        case 'n': o->count = number(optarg, 0); break;
        case 'b': o->bytes_max = number(optarg, 0); break;
        case 's': o->seed = (uint64_t)number(optarg, 0); break;
        case 'f': o->first = number(optarg, 0); break;
        case 'w': o->wait_s = number(optarg, 1); break;
        case 'd': o->debug = optarg; break;
        default: fail("see the comment in tests/kill/workload.c");
        }
    }
    if (argc - optind < 3)
        fail("usage: workload [OPTION]... BOOTSTRAP ACKS TOPIC:PARTITIONS:MODE...");
    o->bootstrap = argv[optind];
    o->topics = topics_parse(argv + optind + 2, argc - optind - 2);
}

int main(int argc, char **argv)
{
    struct options o = {.producers = 2, .bytes_max = 100000, .seed = 1, .wait_s = 120};
    struct sigaction on_term = {.sa_handler = stop};
    int64_t produced = 0;
    int64_t acked = 0;

    parse(&o, argc, argv);
    FILE *acks = fopen(argv[optind + 1], "ab");
    if (!acks)
        fail("cannot write %s", argv[optind + 1]);
    sigaction(SIGTERM, &on_term, NULL);
    struct producer *producers = xcalloc(2 * (size_t)o.producers, sizeof(*producers));
    int n = start_all(&o, producers, acks);
    for (int i = 0; i < n; i++) {
        pthread_join(producers[i].thread, NULL);
        produced += producers[i].produced;
        acked += producers[i].acked;
    }
    if (fclose(acks))
        fail("cannot write the acknowledgements");
    printf("produced %lld, acknowledged %lld\n", (long long)produced, (long long)acked);
    return produced != acked;
}
