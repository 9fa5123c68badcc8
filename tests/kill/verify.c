/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads everything back, from the first offset of each partition to its end, and holds it against
 * what was acknowledged.
 *
 *   verify [-t] [-r N] [-s SEED] BOOTSTRAP ACKS TOPIC:PARTITIONS:MODE...
 *
 *   -t     retention is at work: a partition may start behind 0
 *   -r N   afterwards start reading at N random offsets
 *
 * What has to hold for each partition:
 *   - offsets are dense, from the log start to the end (the log start is 0 without -t);
 *   - every record is as its producer made it, and in the partition that it was made for;
 *   - each producer's records are there in order, 0, 1, 2, ... without a gap, and only once (in
 *     mode `one` a batch may be there again, since its producer has no numbers for it);
 *   - each acknowledged record is at the acknowledged offset, or below a log start that is not 0.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "peer.h"
#include "record.h"

#define TIMEOUT_MS 30000
#define PROBLEMS_SHOWN 20
#define READ_AT_RANDOM 20
#define PRODUCERS_MAX 64

/* One producer's records of one partition, by sequence number. */
struct column {
    int64_t *acked; /* the acknowledged offset; -1: unknown offset, -2: not acknowledged */
    int64_t *found; /* where it was first read, -1: not yet */
    uint64_t count;
    uint64_t cap;
    uint64_t next; /* the sequence number that has to come now */
    bool has_begun;
};

struct partition {
    const struct topic *topic;
    int topic_number;
    int index;
    int64_t start;
    int64_t end;
    struct column columns[PRODUCERS_MAX];
};

struct verifier {
    rd_kafka_t *client;
    struct partition *partitions;
    int partition_count;
    bool is_retained; /* log starts may be above 0 */
    int64_t records;
    int64_t acked;
    int64_t retired; /* acknowledged, and below the log start now */
    int64_t again;   /* repeated, where that is allowed */
    int64_t problems;
};

static void problem(struct verifier *v, const struct partition *p, const char *kind, int64_t offset,
                    const struct record_id *id)
{
    if (v->problems++ >= PROBLEMS_SHOWN)
        return;
    printf("%s: %s-%d offset %lld", kind, p->topic->name, p->index, (long long)offset);
    if (id)
        printf(" (producer %u, record %llu)", id->producer, (unsigned long long)id->seq);
    printf("\n");
}

/* ---- what was acknowledged ---- */

static void column_reach(struct column *c, uint64_t seq)
{
    if (seq >= c->cap) {
        c->cap = seq * 2 + 1024;
        c->acked = xreallocarray(c->acked, c->cap, sizeof(*c->acked));
        c->found = xreallocarray(c->found, c->cap, sizeof(*c->found));
    }
    for (; c->count <= seq; c->count++) {
        c->acked[c->count] = -2;
        c->found[c->count] = -1;
    }
}

static struct partition *partition_of(struct verifier *v, int topic, int index)
{
    for (int i = 0; i < v->partition_count; i++)
        if (v->partitions[i].topic_number == topic && v->partitions[i].index == index)
            return &v->partitions[i];
    return NULL;
}

static void load_acks(struct verifier *v, const char *path)
{
    FILE *file = fopen(path, "rb");
    struct ack ack;

    if (!file)
        fail("cannot read %s", path);
    while (fread(&ack, sizeof(ack), 1, file) == 1) {
        struct partition *p = partition_of(v, ack.id.topic, ack.id.partition);

        if (!p || ack.id.producer >= PRODUCERS_MAX)
            fail("%s: an acknowledgement of a topic that was not named", path);
        struct column *c = &p->columns[ack.id.producer];
        column_reach(c, ack.id.seq);
        c->acked[ack.id.seq] = ack.offset;
        v->acked++;
    }
    fclose(file);
}

static void check_acks(struct verifier *v, const struct partition *p, uint32_t producer)
{
    const struct column *c = &p->columns[producer];

    for (uint64_t seq = 0; seq < c->count; seq++) {
        struct record_id id = {.seq = seq, .producer = producer};

        if (c->acked[seq] == -2)
            continue;
        if (p->start > 0 && c->acked[seq] < p->start && c->found[seq] < 0)
            v->retired++;
        else if (c->found[seq] < 0)
            problem(v, p, "lost", c->acked[seq], &id);
        else if (c->acked[seq] >= 0 && c->acked[seq] != c->found[seq])
            problem(v, p, "moved", c->acked[seq], &id);
    }
}

/* ---- what is there ---- */

static void take_record(struct verifier *v, struct partition *p, const struct record_id *id,
                        int64_t offset)
{
    struct column *c = &p->columns[id->producer];

    column_reach(c, id->seq);
    if (!c->has_begun && p->start > 0)
        c->next = id->seq;
    c->has_begun = true;
    if (id->seq > c->next)
        problem(v, p, "gap", offset, id);
    else if (id->seq < c->next && p->topic->is_idempotent)
        problem(v, p, "doubled", offset, id);
    else if (id->seq < c->next)
        v->again++;
    if (id->seq >= c->next)
        c->next = id->seq + 1;
    /* Of a repeated batch only the copy that was acknowledged has a place to be. */
    if (c->found[id->seq] < 0 || c->acked[id->seq] == offset)
        c->found[id->seq] = offset;
}

static void take(struct verifier *v, struct partition *p, const rd_kafka_message_t *m)
{
    struct record_id id;

    v->records++;
    if (!record_parse(m->payload, m->len, &id) || id.producer >= PRODUCERS_MAX)
        problem(v, p, "changed", m->offset, NULL);
    else if (id.topic != p->topic_number || id.partition != p->index)
        problem(v, p, "misplaced", m->offset, &id);
    else
        take_record(v, p, &id, m->offset);
}

static void assign(struct verifier *v, const struct partition *p, int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

    rd_kafka_topic_partition_list_add(list, p->topic->name, p->index)->offset = offset;
    check(rd_kafka_assign(v->client, list), "assign");
    rd_kafka_topic_partition_list_destroy(list);
}

/* The next record of what is assigned, or NULL if none comes. */
static rd_kafka_message_t *next_record(struct verifier *v, const struct partition *p)
{
    rd_kafka_message_t *m = rd_kafka_consumer_poll(v->client, TIMEOUT_MS);

    /* An error without a topic is about the group, which nobody here joins. */
    while (m && m->err && !m->rkt) {
        rd_kafka_message_destroy(m);
        m = rd_kafka_consumer_poll(v->client, TIMEOUT_MS);
    }
    if (m && m->err)
        fail("%s-%d: %s", p->topic->name, p->index, rd_kafka_message_errstr(m));
    return m;
}

/* Reads [from, to) of a partition. */
static void read_range(struct verifier *v, struct partition *p, int64_t from, int64_t to,
                       void (*each)(struct verifier *, struct partition *,
                                    const rd_kafka_message_t *))
{
    assign(v, p, from);
    for (int64_t expected = from; expected < to;) {
        rd_kafka_message_t *m = next_record(v, p);

        if (!m) {
            problem(v, p, "not readable", expected, NULL);
            return;
        }
        if (m->offset != expected)
            problem(v, p, m->offset > expected ? "skipped" : "went back", expected, NULL);
        each(v, p, m);
        expected = m->offset + 1;
        rd_kafka_message_destroy(m);
    }
}

static void find_range(struct verifier *v, struct partition *p)
{
    check(rd_kafka_query_watermark_offsets(v->client, p->topic->name, p->index, &p->start, &p->end,
                                           TIMEOUT_MS),
          "ListOffsets");
    if (p->start > 0 && !v->is_retained)
        problem(v, p, "log start is not 0", p->start, NULL);
}

static bool is_at(const struct partition *p, const struct record_id *id, int64_t offset)
{
    const struct column *c = &p->columns[id->producer];

    return id->seq < c->count && (c->found[id->seq] == offset || !p->topic->is_idempotent);
}

static void take_again(struct verifier *v, struct partition *p, const rd_kafka_message_t *m)
{
    struct record_id id;

    if (!record_parse(m->payload, m->len, &id) || id.producer >= PRODUCERS_MAX)
        problem(v, p, "changed", m->offset, NULL);
    else if (!is_at(p, &id, m->offset))
        problem(v, p, "another record than before", m->offset, &id);
}

static void read_at_random(struct verifier *v, int64_t times, struct rng *rng)
{
    for (int64_t i = 0; i < times; i++) {
        struct partition *p = &v->partitions[rng_below(rng, (uint64_t)v->partition_count)];

        if (p->start == p->end)
            continue;
        int64_t from = p->start + (int64_t)rng_below(rng, (uint64_t)(p->end - p->start));
        int64_t to = from + READ_AT_RANDOM < p->end ? from + READ_AT_RANDOM : p->end;
        read_range(v, p, from, to, take_again);
    }
}

/* ---- the whole ---- */

static void add_partitions(struct verifier *v, const struct topic *topics)
{
    int n = 0;

    for (const struct topic *t = topics; t->name; t++)
        n += t->partitions;
    v->partitions = xcalloc((size_t)n, sizeof(*v->partitions));
    for (const struct topic *t = topics; t->name; t++) {
        for (int i = 0; i < t->partitions; i++) {
            struct partition *p = &v->partitions[v->partition_count++];

            *p = (struct partition){.topic = t, .topic_number = (int)(t - topics), .index = i};
        }
    }
}

static void verify(struct verifier *v, const char *acks)
{
    /* First the file: what is in it was acknowledged before the end of the log is asked for. */
    load_acks(v, acks);
    for (int i = 0; i < v->partition_count; i++) {
        struct partition *p = &v->partitions[i];

        find_range(v, p);
        read_range(v, p, p->start, p->end, take);
        for (uint32_t producer = 0; producer < PRODUCERS_MAX; producer++)
            check_acks(v, p, producer);
    }
}

static rd_kafka_t *connect_consumer(const char *bootstrap)
{
    static const struct setting settings[] = {
        {"group.id", "verify"},         {"enable.auto.commit", "false"}, {"check.crcs", "true"},
        {"auto.offset.reset", "error"}, {"fetch.wait.max.ms", "50"},     {NULL, NULL},
    };
    rd_kafka_t *client = connect_as(RD_KAFKA_CONSUMER, NULL, bootstrap, settings);

    rd_kafka_poll_set_consumer(client);
    return client;
}

int main(int argc, char **argv)
{
    struct verifier v = {0};
    int64_t random_reads = 0;
    uint64_t seed = 1;
    int c;

    while ((c = getopt(argc, argv, "tr:s:")) != -1) {
        switch (c) {
        case 't': v.is_retained = true; break;
        case 'r': random_reads = number(optarg, 0); break;
        case 's': seed = (uint64_t)number(optarg, 0); break;
        default: fail("see the comment in tests/kill/verify.c");
        }
    }
    if (argc - optind < 3)
        fail("usage: verify [-t] [-r N] [-s SEED] BOOTSTRAP ACKS TOPIC:PARTITIONS:MODE...");
    add_partitions(&v, topics_parse(argv + optind + 2, argc - optind - 2));
    v.client = connect_consumer(argv[optind]);
    verify(&v, argv[optind + 1]);
    struct rng rng = rng_seeded(seed);
    read_at_random(&v, random_reads, &rng);
    rd_kafka_consumer_close(v.client);
    rd_kafka_destroy(v.client);
    printf("read %lld records, %lld acknowledged, %lld of them retired, %lld repeated, "
           "%lld problems\n",
           (long long)v.records, (long long)v.acked, (long long)v.retired, (long long)v.again,
           (long long)v.problems);
    return v.problems > 0;
}
