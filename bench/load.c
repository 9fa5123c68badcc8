/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load for any broker that speaks the Kafka protocol, through librdkafka, so that both sides of a
 * comparison meet the same client. One line of JSON says what came of it.
 *
 *   load produce PID BOOTSTRAP TOPIC RECORDS BYTES [KEY=VALUE]...
 *   load consume PID BOOTSTRAP TOPIC RECORDS [KEY=VALUE]...
 *   load latency PID BOOTSTRAP TOPIC RATE SECONDS BYTES [KEY=VALUE]...
 *
 * produce sends as fast as the client can; consume reads all partitions from their beginning.
 * latency is an open loop: records are due at fixed times, and the clock of a record starts when it
 * was due, so that a broker which stands still is charged for all that should have come meanwhile.
 *
 * PID is the broker's: its CPU time is read before and after (0: not asked). KEY=VALUE are settings
 * of librdkafka. Exit status 1: something was refused, or did not come in time.
 */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"

#define PATIENCE_US 120000000
#define FLUSH_MS 60000
#define METADATA_MS 30000
#define CONSUME_AT_ONCE 1000
#define RUN_RECORDS 1000 /* for one partition, before the next has its turn */

struct load {
    pid_t pid;
    const char *bootstrap;
    const char *topic;
    rd_kafka_t *client;
    rd_kafka_topic_t *handle;
    int partitions;
    char *payload;
    size_t size;
    /* counted by delivery reports */
    int64_t acked;
    int64_t failed;
    int64_t *latency_us; /* of each acknowledged record; NULL: not wanted */
    /* at the beginning */
    int64_t began_us;
    double broker_s;
    double client_s;
};

static _Noreturn printf_like(1, 2) void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static int64_t number(const char *text)
{
    char *end;
    long long n = strtoll(text, &end, 10);

    if (*end != '\0' || end == text || n < 0)
        die("'%s' is not a number", text);
    return n;
}

/* ---- clocks ----------------------------------------------------------------------------- */

static double clock_s(clockid_t clock)
{
    struct timespec t;

    return clock_gettime(clock, &t) ? 0 : (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* CPU seconds of another process, all threads. */
static double process_s(pid_t pid)
{
    clockid_t clock;

    return pid == 0 || clock_getcpuclockid(pid, &clock) ? 0 : clock_s(clock);
}

static void begin(struct load *l)
{
    l->acked = l->failed = 0;
    l->broker_s = process_s(l->pid);
    l->client_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    l->began_us = now_us();
}

/* ---- the client ------------------------------------------------------------------------- */

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *m, void *ctx)
{
    struct load *l = ctx;

    (void)client;
    if (m->err) {
        if (l->failed++ == 0)
            fprintf(stderr, "the first refusal: %s\n", rd_kafka_err2str(m->err));
        return;
    }
    if (l->latency_us)
        l->latency_us[l->acked] = now_us() - (int64_t)(intptr_t)m->_private;
    l->acked++;
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char why[512];

    if (rd_kafka_conf_set(conf, key, value, why, sizeof(why)) != RD_KAFKA_CONF_OK)
        die("%s", why);
}

static void set_all(rd_kafka_conf_t *conf, char **settings)
{
    for (; *settings; settings++) {
        char *value = strchr(*settings, '=');

        if (!value)
            die("'%s' is not KEY=VALUE", *settings);
        *value++ = '\0';
        set(conf, *settings, value);
    }
}

/* The partitions that have a leader. */
static int count_led(const struct rd_kafka_metadata_topic *t)
{
    int n = 0;

    for (int i = 0; i < t->partition_cnt; i++)
        n += t->partitions[i].leader >= 0;
    return n;
}

/* A topic that was just created may not be known yet: a broker learns of it behind the answer. */
static void find_topic(struct load *l)
{
    int64_t deadline_us = now_us() + METADATA_MS * 1000;
    const struct rd_kafka_metadata *metadata;
    int led = 0;

    l->handle = rd_kafka_topic_new(l->client, l->topic, NULL);
    while (l->partitions == 0 || led < l->partitions) {
        if (now_us() > deadline_us)
            die("there is no topic %s", l->topic);
        if (rd_kafka_metadata(l->client, 0, l->handle, &metadata, METADATA_MS))
            die("no metadata from %s", l->bootstrap);
        l->partitions = metadata->topics[0].partition_cnt;
        led = count_led(&metadata->topics[0]);
        rd_kafka_metadata_destroy(metadata);
        rd_kafka_poll(l->client, 20);
    }
}

static void connect_client(struct load *l, rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char why[512];

    set(conf, "bootstrap.servers", l->bootstrap);
    rd_kafka_conf_set_opaque(conf, l);
    l->client = rd_kafka_new(type, conf, why, sizeof(why));
    if (!l->client)
        die("%s", why);
    find_topic(l);
}

static void fill_payload(struct load *l, size_t size)
{
    l->size = size;
    l->payload = malloc(size);
    for (size_t i = 0; i < size; i++)
        l->payload[i] = (char)('a' + (i * 7 + i / 13) % 26);
}

static bool send_record(struct load *l, int partition, int64_t due_us)
{
    return rd_kafka_produce(l->handle, partition, RD_KAFKA_MSG_F_COPY, l->payload, l->size, NULL, 0,
                            (void *)(intptr_t)due_us) == 0;
}

/* Connections are made and topics looked up before the clock starts. */
static void warm_up(struct load *l)
{
    send_record(l, 0, now_us());
    rd_kafka_flush(l->client, FLUSH_MS);
    if (l->acked != 1)
        die("the first record was not acknowledged");
}

static void open_producer(struct load *l, size_t size, char **settings)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    set(conf, "acks", "all");
    set(conf, "queue.buffering.max.messages", "1000000");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    set_all(conf, settings);
    connect_client(l, RD_KAFKA_PRODUCER, conf);
    fill_payload(l, size);
    warm_up(l);
}

/* ---- results ---------------------------------------------------------------------------- */

static void print_costs(const struct load *l, int64_t records, int64_t bytes, int64_t ended_us)
{
    double seconds = (double)(ended_us - l->began_us) / 1e6;
    double broker = process_s(l->pid) - l->broker_s;
    double gb = (double)bytes / 1e9;

    printf("\"records\": %" PRId64 ", \"failed\": %" PRId64 ", \"seconds\": %.3f, "
           "\"mb_s\": %.1f, \"records_s\": %.0f, \"cpu_s_gb\": %.4f, \"us_record\": %.4f, "
           "\"client_cpu_s\": %.2f}\n",
           records, l->failed, seconds, gb * 1e3 / seconds, (double)records / seconds,
           gb > 0 ? broker / gb : 0, records > 0 ? broker * 1e6 / (double)records : 0,
           clock_s(CLOCK_PROCESS_CPUTIME_ID) - l->client_s);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static double at_ms(const struct load *l, double share)
{
    return l->acked ? (double)l->latency_us[(int64_t)((double)(l->acked - 1) * share)] / 1e3 : -1;
}

/* ---- produce ---------------------------------------------------------------------------- */

static void send_patiently(struct load *l, int partition)
{
    while (!send_record(l, partition, 0)) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            die("%s", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(l->client, 5);
    }
}

static int produce(struct load *l, char **argv)
{
    int64_t records = number(argv[0]);

    open_producer(l, (size_t)number(argv[1]), argv + 2);
    begin(l);
    for (int64_t i = 0; i < records; i++) {
        send_patiently(l, (int)(i / RUN_RECORDS % l->partitions));
        if (i % RUN_RECORDS == 0)
            rd_kafka_poll(l->client, 0);
    }
    while (l->acked + l->failed < records && now_us() - l->began_us < PATIENCE_US)
        rd_kafka_poll(l->client, 10);
    printf("{\"mode\": \"produce\", ");
    print_costs(l, l->acked, l->acked * (int64_t)l->size, now_us());
    return l->acked < records;
}

/* ---- consume ---------------------------------------------------------------------------- */

static void assign_all(struct load *l)
{
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(l->partitions);

    for (int i = 0; i < l->partitions; i++)
        rd_kafka_topic_partition_list_add(all, l->topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(l->client, all);
    rd_kafka_topic_partition_list_destroy(all);
}

static void take(rd_kafka_message_t **messages, ssize_t n, int64_t *records, int64_t *bytes)
{
    for (ssize_t i = 0; i < n; i++) {
        if (!messages[i]->err) {
            *records += 1;
            *bytes += (int64_t)messages[i]->len;
        }
        rd_kafka_message_destroy(messages[i]);
    }
}

static int consume(struct load *l, char **argv)
{
    int64_t wanted = number(argv[0]);
    int64_t records = 0;
    int64_t bytes = 0;
    rd_kafka_message_t *messages[CONSUME_AT_ONCE];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_queue_t *queue;

    set(conf, "group.id", "load");
    set(conf, "enable.auto.commit", "false");
    set(conf, "queued.min.messages", "10000000");
    set(conf, "queued.max.messages.kbytes", "2097151");
    set_all(conf, argv + 1);
    connect_client(l, RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(l->client);
    queue = rd_kafka_queue_get_consumer(l->client);
    begin(l);
    assign_all(l);
    while (records < wanted && now_us() - l->began_us < PATIENCE_US)
        take(messages, rd_kafka_consume_batch_queue(queue, 500, messages, CONSUME_AT_ONCE),
             &records, &bytes);
    printf("{\"mode\": \"consume\", ");
    print_costs(l, records, bytes, now_us());
    return records < wanted;
}

/* ---- latency ---------------------------------------------------------------------------- */

static atomic_bool poller_ends;

/* Delivery reports are taken the moment they come, not when the next record is due. */
static void *poll_reports(void *client)
{
    while (!atomic_load(&poller_ends))
        rd_kafka_poll(client, 20);
    return NULL;
}

static void sleep_until(int64_t due_us)
{
    struct timespec due = {.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

static int64_t send_on_time(struct load *l, int64_t records, int64_t rate)
{
    int64_t unsent = 0;

    for (int64_t i = 0; i < records; i++) {
        int64_t due = l->began_us + i * 1000000 / rate;

        if (due > now_us())
            sleep_until(due);
        unsent += !send_record(l, (int)(i % l->partitions), due);
    }
    return unsent;
}

static int latency(struct load *l, char **argv)
{
    int64_t rate = number(argv[0]);
    int64_t records = rate * number(argv[1]);
    int64_t unsent;
    int64_t ended;
    pthread_t poller;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    set(conf, "acks", "all");
    set(conf, "linger.ms", "0");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    set_all(conf, argv + 3);
    connect_client(l, RD_KAFKA_PRODUCER, conf);
    fill_payload(l, (size_t)number(argv[2]));
    warm_up(l);
    l->latency_us = calloc((size_t)records + 1, sizeof(*l->latency_us));
    begin(l);
    pthread_create(&poller, NULL, poll_reports, l->client);
    unsent = send_on_time(l, records, rate);
    /* Not rd_kafka_flush: it would take reports on this thread too. */
    while (rd_kafka_outq_len(l->client) > 0 && now_us() - l->began_us < PATIENCE_US)
        sleep_until(now_us() + 2000);
    ended = now_us();
    atomic_store(&poller_ends, true);
    pthread_join(poller, NULL);
    l->failed += unsent;
    qsort(l->latency_us, (size_t)l->acked, sizeof(*l->latency_us), compare);
    printf("{\"mode\": \"latency\", \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f, "
           "\"max_ms\": %.3f, ",
           at_ms(l, 0.5), at_ms(l, 0.99), at_ms(l, 0.999), at_ms(l, 1));
    print_costs(l, l->acked, l->acked * (int64_t)l->size, ended);
    return l->acked < records;
}

/* ---- the program ------------------------------------------------------------------------ */

static const struct command {
    const char *name;
    int args; /* at least, behind the topic */
    int (*run)(struct load *l, char **argv);
} commands[] = {{"produce", 2, produce}, {"consume", 1, consume}, {"latency", 3, latency}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc >= 5 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct command *c = &commands[i];
        struct load l = {.bootstrap = argv[3], .topic = argv[4]};

        if (strcmp(argv[1], c->name) != 0 || argc < 5 + c->args)
            continue;
        l.pid = (pid_t)number(argv[2]);
        return c->run(&l, argv + 5);
    }
    fprintf(stderr, "usage: load produce|consume|latency PID BOOTSTRAP TOPIC ..., see load.c\n");
    return 2;
}
