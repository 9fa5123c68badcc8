/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by workload, verify and topic. A test program has nothing to rescue: whatever goes wrong
 * prints one line and ends it.
 */
#include "peer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

_Noreturn void fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("failed: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
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
