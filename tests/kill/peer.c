/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by workload, verify and topic. A test program has nothing to rescue: whatever goes wrong
 * prints one line and ends it.
 */
#include "peer.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

#define LINES_KEPT 20000
#define LINES_TOLD 25
#define LINE_MAX_BYTES 400

/* What clients have logged, the last lines of it. */
static struct {
    pthread_mutex_t lock;
    char (*lines)[LINE_MAX_BYTES];
    size_t count; /* ever */
} logged = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_line(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
    struct timespec now;

    (void)level;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&logged.lock);
    if (!logged.lines)
        logged.lines = xcalloc(LINES_KEPT, sizeof(*logged.lines));
    snprintf(logged.lines[logged.count++ % LINES_KEPT], LINE_MAX_BYTES, "%02lld.%03ld %s %s %s",
             (long long)now.tv_sec % 60, now.tv_nsec / 1000000, rd_kafka_name(client), facility,
             text);
    pthread_mutex_unlock(&logged.lock);
}

static void print_lines_with(const char *what)
{
    size_t from = logged.count;
    int found = 0;

    while (from > 0 && logged.count - from < LINES_KEPT && found < LINES_TOLD)
        found += strstr(logged.lines[--from % LINES_KEPT], what) != NULL;
    for (; from < logged.count; from++)
        if (strstr(logged.lines[from % LINES_KEPT], what))
            fprintf(stderr, "%s\n", logged.lines[from % LINES_KEPT]);
}

_Noreturn static void end(const char *format, va_list args)
{
    fputs("failed: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    exit(1);
}

_Noreturn void fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    end(format, args);
}

_Noreturn void fail_of(const char *topic, int32_t partition, const char *format, ...)
{
    char what[300];
    va_list args;

    snprintf(what, sizeof(what), "%s [%d]", topic, partition);
    pthread_mutex_lock(&logged.lock);
    print_lines_with(what);
    va_start(args, format);
    end(format, args);
}

void check(rd_kafka_resp_err_t err, const char *what)
{
    if (err)
        fail("%s: %s", what, rd_kafka_err2str(err));
}

/* Lost connections are what these tests are about: librdkafka need not tell of them. */
static void ignore_error(rd_kafka_t *client, int err, const char *reason, void *opaque)
{
    char why[512];
    rd_kafka_resp_err_t fatal = RD_KAFKA_RESP_ERR_NO_ERROR;

    (void)reason;
    (void)opaque;
    if (err == RD_KAFKA_RESP_ERR__FATAL)
        fatal = rd_kafka_fatal_error(client, why, sizeof(why));
    if (fatal)
        fail("%s: %s", rd_kafka_err2name(fatal), why);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char why[512];

    if (rd_kafka_conf_set(conf, key, value, why, sizeof(why)))
        fail("%s", why);
}

rd_kafka_t *connect_as(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *bootstrap,
                       const struct setting *settings)
{
    char why[512];
    rd_kafka_t *client;

    conf = conf ? conf : rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "reconnect.backoff.ms", "20");
    set(conf, "reconnect.backoff.max.ms", "200");
    set(conf, "log_level", "2");
    rd_kafka_conf_set_error_cb(conf, ignore_error);
    rd_kafka_conf_set_log_cb(conf, keep_line);
    for (; settings->key; settings++)
        set(conf, settings->key, settings->value);
    client = rd_kafka_new(type, conf, why, sizeof(why));
    if (!client)
        fail("%s", why);
    return client;
}

struct topic *topics_parse(char **words, int count)
{
    struct topic *topics = xcalloc((size_t)count + 1, sizeof(*topics));

    for (int i = 0; i < count; i++) {
        char *rest = NULL;
        char *name = strtok_r(words[i], ":", &rest);
        char *partitions = strtok_r(NULL, ":", &rest);
        char *mode = strtok_r(NULL, ":", &rest);

        if (!name || !partitions || !mode || (strcmp(mode, "all") && strcmp(mode, "one")))
            fail("a topic is written NAME:PARTITIONS:all or NAME:PARTITIONS:one");
        topics[i].name = name;
        topics[i].partitions = (int)number(partitions, 1);
        topics[i].is_idempotent = strcmp(mode, "all") == 0;
    }
    return topics;
}

int64_t number(const char *text, int64_t min)
{
    char *end;
    int64_t n = strtoll(text, &end, 10);

    if (*text == '\0' || *end != '\0' || n < min)
        fail("'%s' is no number of at least %lld", text, (long long)min);
    return n;
}
