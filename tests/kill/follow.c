/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads records while they are written, and keeps what it saw.
 *
 *   follow [-g GROUP] BOOTSTRAP SEEN TOPIC:PARTITIONS:MODE...
 *
 *   -g GROUP   as a member of this group, which commits what it has processed; without it all
 *              partitions from their first offset
 *
 * Every record is appended to the file SEEN in the form of an acknowledgement (struct ack): what a
 * reader was shown has to stay where it was as much as what a producer was told, so `verify` reads
 * both. Alone it also insists on dense offsets, and on no answer that an offset is out of range.
 * A member writes a record down before it commits. Ends at SIGTERM, and prints how many it saw.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "peer.h"
#include "record.h"

#define POLL_MS 100
#define COMMIT_EVERY 50

struct follower {
    rd_kafka_t *client;
    const char *group; /* NULL: alone */
    struct topic *topics;
    int64_t **next; /* by topic and partition; -1: not begun */
    FILE *seen;
    int64_t count;
    int64_t uncommitted;
};

static atomic_bool stopping;

static void stop(int signal)
{
    (void)signal;
    atomic_store(&stopping, true);
}

static void assign_all(struct follower *f)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);

    for (const struct topic *t = f->topics; t->name; t++)
        for (int i = 0; i < t->partitions; i++)
            rd_kafka_topic_partition_list_add(list, t->name, i)->offset = 0;
    check(rd_kafka_assign(f->client, list), "assign");
    rd_kafka_topic_partition_list_destroy(list);
}

static void subscribe(struct follower *f)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);

    for (const struct topic *t = f->topics; t->name; t++)
        rd_kafka_topic_partition_list_add(list, t->name, RD_KAFKA_PARTITION_UA);
    check(rd_kafka_subscribe(f->client, list), "subscribe");
    rd_kafka_topic_partition_list_destroy(list);
}

/* A commit that fails is repeated with the next one; who lost the partition may not commit it. */
static void commit(struct follower *f)
{
    if (fflush(f->seen))
        fail("cannot write what was seen");
    if (f->group && f->uncommitted > 0)
        rd_kafka_commit(f->client, NULL, 0);
    f->uncommitted = 0;
}

static void check_order(struct follower *f, const struct record_id *id, int64_t offset)
{
    int64_t *next = &f->next[id->topic][id->partition];

    if (offset != *next)
        fail("%s-%u: offset %lld where %lld has to come", f->topics[id->topic].name, id->partition,
             (long long)offset, (long long)*next);
    *next = offset + 1;
}

static void take(struct follower *f, const rd_kafka_message_t *m)
{
    struct ack seen = {.offset = m->offset};

    if (!record_parse(m->payload, m->len, &seen.id))
        fail("offset %lld of partition %d: not as it was written", (long long)m->offset,
             m->partition);
    if (!f->group)
        check_order(f, &seen.id, m->offset);
    if (fwrite(&seen, sizeof(seen), 1, f->seen) != 1)
        fail("cannot write what was seen");
    f->count++;
    if (++f->uncommitted >= COMMIT_EVERY)
        commit(f);
}

/* What the client gets over by itself; other errors are final. */
static bool is_passing(rd_kafka_resp_err_t err)
{
    return err == RD_KAFKA_RESP_ERR__TRANSPORT || err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
           err == RD_KAFKA_RESP_ERR__RESOLVE || err == RD_KAFKA_RESP_ERR__TIMED_OUT ||
           err == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED ||
           err == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
           err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
}

static void step(struct follower *f)
{
    rd_kafka_message_t *m = rd_kafka_consumer_poll(f->client, POLL_MS);

    if (!m) {
        commit(f);
        return;
    }
    if (m->err && !is_passing(m->err))
        fail("partition %d: %s", m->partition, rd_kafka_message_errstr(m));
    if (!m->err)
        take(f, m);
    rd_kafka_message_destroy(m);
}

static void init(struct follower *f, const char *bootstrap)
{
    const struct setting settings[] = {
        {"group.id", f->group ? f->group : "follow"},
        {"enable.auto.commit", "false"},
        {"check.crcs", "true"},
        {"auto.offset.reset", f->group ? "earliest" : "error"},
        {"session.timeout.ms", "6000"},
        {"fetch.wait.max.ms", "50"},
        {"reconnect.backoff.max.ms", "500"},
        {"topic.metadata.refresh.interval.ms", "1000"},
        {NULL, NULL},
    };
    int n = 0;

    f->client = connect_as(RD_KAFKA_CONSUMER, NULL, bootstrap, settings);
    rd_kafka_poll_set_consumer(f->client);
    while (f->topics[n].name)
        n++;
    f->next = xcalloc((size_t)n, sizeof(*f->next));
    for (int i = 0; i < n; i++)
        f->next[i] = xcalloc((size_t)f->topics[i].partitions, sizeof(**f->next));
    if (f->group)
        subscribe(f);
    else
        assign_all(f);
}

int main(int argc, char **argv)
{
    struct sigaction on_term = {.sa_handler = stop};
    struct follower f = {0};
    int c;

    while ((c = getopt(argc, argv, "g:")) != -1) {
        if (c != 'g')
            fail("see the comment in tests/kill/follow.c");
        f.group = optarg;
    }
    if (argc - optind < 3)
        fail("usage: follow [-g GROUP] BOOTSTRAP SEEN TOPIC:PARTITIONS:MODE...");
    f.topics = topics_parse(argv + optind + 2, argc - optind - 2);
    f.seen = fopen(argv[optind + 1], "ab");
    if (!f.seen)
        fail("cannot write %s", argv[optind + 1]);
    sigaction(SIGTERM, &on_term, NULL);
    init(&f, argv[optind]);
    while (!atomic_load(&stopping))
        step(&f);
    commit(&f);
    rd_kafka_consumer_close(f.client);
    rd_kafka_destroy(f.client);
    printf("saw %lld\n", (long long)f.count);
    return 0;
}
