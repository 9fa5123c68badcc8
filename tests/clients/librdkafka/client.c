/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdkafka behind the common command line of the clients (see ../README.md).
 *
 * The program uses only what Debian's 2.0.2 offers, so the same binary runs with that library and,
 * through LD_LIBRARY_PATH, with the newest one. Reading goes through the modern consumer by
 * assignment; it wants a group id even so, but never joins or commits. kcat covers the older
 * per-partition interface.
 *
 * Any failure prints one line and ends the program: a test client has nothing to rescue.
 */
#include <librdkafka/rdkafka.h>

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_MS = 30000, LINE_BYTES_MAX = 1 << 20 };

struct field {
    unsigned char *data; /* NULL if the field is null */
    size_t size;
};

struct setting {
    const char *key;
    const char *value;
};

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("librdkafka: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static void check(rd_kafka_resp_err_t err, const char *what)
{
    if (err)
        fail("%s: %s", what, rd_kafka_err2str(err));
}

static struct field parse(const char *text)
{
    if (strcmp(text, "null") == 0)
        return (struct field){0};
    size_t size = strlen(text + 1) / 2;
    unsigned char *data = malloc(size + 1);
    if (!data)
        fail("out of memory");
    for (size_t i = 0; i < size; i++)
        sscanf(text + 1 + 2 * i, "%2hhx", &data[i]);
    return (struct field){data, size};
}

static void show(const void *data, size_t size)
{
    if (!data) {
        fputs("null", stdout);
        return;
    }
    putchar('x');
    for (size_t i = 0; i < size; i++)
        printf("%02x", ((const unsigned char *)data)[i]);
}

static rd_kafka_conf_t *configuration(const struct setting *settings)
{
    char why[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (; settings->key; settings++) {
        if (rd_kafka_conf_set(conf, settings->key, settings->value, why, sizeof(why)))
            fail("%s", why);
    }
    return conf;
}

static rd_kafka_t *connect_with(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char why[512];
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof(why));
    if (!client)
        fail("%s", why);
    return client;
}

static rd_kafka_t *connect_as(rd_kafka_type_t type, const struct setting *settings,
                              void (*on_delivery)(rd_kafka_t *, const rd_kafka_message_t *, void *))
{
    rd_kafka_conf_t *conf = configuration(settings);
    if (on_delivery)
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    return connect_with(type, conf);
}

static void version(void)
{
    printf("librdkafka %s\n", rd_kafka_version_str());
    puts("codecs none gzip snappy lz4 zstd\nidempotence yes\ntimestamps yes");
    puts("acks yes\nnull_headers yes");
}

static void create(const char *bootstrap, const char *topic, int partitions)
{
    struct setting settings[] = {{"bootstrap.servers", bootstrap}, {NULL, NULL}};
    rd_kafka_t *client = connect_as(RD_KAFKA_PRODUCER, settings, NULL);
    char why[512];
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, partitions, 1, why, sizeof(why));
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_CreateTopics(client, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
    if (!event)
        fail("no answer to CreateTopics");
    check(rd_kafka_event_error(event), "CreateTopics");
    size_t count = 0;
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    if (count != 1)
        fail("CreateTopics answered %zu topics", count);
    check(rd_kafka_topic_result_error(results[0]), topic);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(wanted);
    rd_kafka_destroy(client);
}

/* Deliveries of one partition are reported in the order in which its records were produced. */
static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    (void)client;
    (void)opaque;
    check(message->err, "delivery");
    printf("%d %lld\n", message->partition, (long long)message->offset);
}

static rd_kafka_headers_t *parse_headers(char *text)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(4);
    char *rest = NULL;
    for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(one, '=');
        *equals = '\0';
        struct field name = parse(one);
        struct field value = parse(equals + 1);
        check(rd_kafka_header_add(headers, (char *)name.data, (ssize_t)name.size, value.data,
                                  (ssize_t)value.size),
              "header");
        free(name.data);
        free(value.data);
    }
    return headers;
}

static void produce_line(rd_kafka_t *client, const char *topic, char *line)
{
    char *rest = NULL;
    int partition = atoi(strtok_r(line, " ", &rest));
    long long timestamp = atoll(strtok_r(NULL, " ", &rest));
    struct field key = parse(strtok_r(NULL, " ", &rest));
    struct field value = parse(strtok_r(NULL, " ", &rest));
    char *headers = strtok_r(NULL, " \n", &rest);
    rd_kafka_headers_t *parsed = parse_headers(strcmp(headers, "-") ? headers : headers + 1);
    check(rd_kafka_producev(client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                            RD_KAFKA_V_TIMESTAMP(timestamp), RD_KAFKA_V_KEY(key.data, key.size),
                            RD_KAFKA_V_VALUE(value.data, value.size), RD_KAFKA_V_HEADERS(parsed),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
          "produce");
    free(key.data);
    free(value.data);
}

static void produce(const char *bootstrap, const char *topic, const char *codec,
                    const char *idempotent, const char *path)
{
    struct setting settings[] = {{"bootstrap.servers", bootstrap},
                                 {"compression.codec", codec},
                                 {"enable.idempotence", idempotent},
                                 {"acks", "all"},
                                 {"linger.ms", "50"},
                                 {NULL, NULL}};
    rd_kafka_t *client = connect_as(RD_KAFKA_PRODUCER, settings, on_delivery);
    FILE *file = fopen(path, "r");
    char *line = malloc(LINE_BYTES_MAX);
    if (!file || !line)
        fail("cannot read %s", path);
    while (fgets(line, LINE_BYTES_MAX, file))
        produce_line(client, topic, line);
    fclose(file);
    free(line);
    check(rd_kafka_flush(client, TIMEOUT_MS), "flush");
    rd_kafka_destroy(client);
}

static void print_headers(const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers = NULL;
    if (rd_kafka_message_headers(message, &headers)) {
        putchar('-');
        return;
    }
    const char *name;
    const void *value;
    size_t size;
    for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++) {
        if (i)
            putchar(',');
        show(name, strlen(name));
        putchar('=');
        show(value, size);
    }
}

static void print_message(const rd_kafka_message_t *message)
{
    printf("%d %lld %lld ", message->partition, (long long)message->offset,
           (long long)rd_kafka_message_timestamp(message, NULL));
    show(message->key, message->key_len);
    putchar(' ');
    show(message->payload, message->len);
    putchar(' ');
    print_headers(message);
    putchar('\n');
}

/*
 * Read until every partition has said that its end is reached. An error that belongs to no
 * partition is news and not a failure: librdkafka goes on by itself, as its manual says. It tells
 * once if no group coordinator can be found, though reading by assignment needs none.
 */
static void read_assigned(rd_kafka_t *client, int partitions)
{
    int ended = 0;
    while (ended < partitions) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, TIMEOUT_MS);
        if (!message)
            fail("nothing to read for %d ms", TIMEOUT_MS);
        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
            ended++;
        else if (message->err && message->rkt)
            fail("consume: %s", rd_kafka_message_errstr(message));
        else if (message->err)
            fprintf(stderr, "librdkafka: %s\n", rd_kafka_message_errstr(message));
        else
            print_message(message);
        rd_kafka_message_destroy(message);
    }
}

static int partition_count(rd_kafka_t *client, const char *topic)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    check(rd_kafka_metadata(client, 0, handle, &metadata, TIMEOUT_MS), "metadata");
    check(metadata->topics[0].err, topic);
    int count = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(handle);
    return count;
}

static void consume(const char *bootstrap, char **topics)
{
    struct setting settings[] = {{"bootstrap.servers", bootstrap}, {"group.id", "unused"},
                                 {"enable.auto.commit", "false"},  {"enable.partition.eof", "true"},
                                 {"check.crcs", "true"},           {"auto.offset.reset", "error"},
                                 {"fetch.wait.max.ms", "20"},      {NULL, NULL}};
    rd_kafka_t *client = connect_as(RD_KAFKA_CONSUMER, settings, NULL);
    rd_kafka_poll_set_consumer(client);
    for (; *topics; topics++) {
        printf("topic %s\n", *topics);
        int count = partition_count(client, *topics);
        rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(count);
        for (int i = 0; i < count; i++)
            rd_kafka_topic_partition_list_add(parts, *topics, i)->offset =
                RD_KAFKA_OFFSET_BEGINNING;
        check(rd_kafka_assign(client, parts), "assign");
        rd_kafka_topic_partition_list_destroy(parts);
        read_assigned(client, count);
    }
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
}

/* ---- A member of a group; see ../groups/members.py -------------------------------------- */

static volatile sig_atomic_t has_to_leave;

static void leave(int signo)
{
    (void)signo;
    has_to_leave = 1;
}

/* The serialised form is the only way to the number: a tag of seven bytes stands before it. */
static int generation(rd_kafka_t *client)
{
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(client);
    void *bytes = NULL;
    size_t size = 0;
    int id = -1;
    if (!group || rd_kafka_consumer_group_metadata_write(group, &bytes, &size))
        fail("no metadata of the group");
    if (size < 11 || memcmp(bytes, "CGMDv2:", 7) != 0)
        fail("metadata of the group has another form");
    memcpy(&id, (char *)bytes + 7, sizeof(id));
    free(bytes);
    rd_kafka_consumer_group_metadata_destroy(group);
    return id;
}

static void rebalanced(rd_kafka_t *client, rd_kafka_resp_err_t err,
                       rd_kafka_topic_partition_list_t *parts, void *opaque)
{
    (void)opaque;
    if (err != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        rd_kafka_assign(client, NULL);
        return;
    }
    printf("generation %d", generation(client));
    for (int i = 0; i < parts->cnt; i++)
        printf(" %d", parts->elems[i].partition);
    putchar('\n');
    check(rd_kafka_assign(client, parts), "assign");
}

/* A commit that the group refuses is read again by whoever has the partition then. */
static void take_records(rd_kafka_t *client, int work_ms)
{
    rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 100);
    int count = 0;
    for (; message; message = rd_kafka_consumer_poll(client, 0)) {
        if (!message->err)
            printf("%d %lld\n", message->partition, (long long)message->offset);
        count += !message->err;
        rd_kafka_message_destroy(message);
        if (count == 100)
            break;
    }
    if (count == 0)
        return;
    usleep((useconds_t)work_ms * 1000);
    rd_kafka_commit(client, NULL, 0);
}

static void member(const char *bootstrap, const char *group, const char *topic)
{
    const char *id = getenv("CLIENT_ID");
    struct setting settings[] = {{"bootstrap.servers", bootstrap},
                                 {"group.id", group},
                                 {"client.id", id ? id : "member"},
                                 {"enable.auto.commit", "false"},
                                 {"auto.offset.reset", "earliest"},
                                 {"session.timeout.ms", "6000"},
                                 {"heartbeat.interval.ms", "1000"},
                                 {"partition.assignment.strategy", "range"},
                                 {NULL, NULL}};
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    const char *work = getenv("WORK_MS");
    rd_kafka_conf_t *conf = configuration(settings);
    rd_kafka_conf_set_rebalance_cb(conf, rebalanced);
    rd_kafka_t *client = connect_with(RD_KAFKA_CONSUMER, conf);
    signal(SIGTERM, leave);
    setvbuf(stdout, NULL, _IOLBF, 0);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
    check(rd_kafka_subscribe(client, topics), "subscribe");
    rd_kafka_topic_partition_list_destroy(topics);
    while (!has_to_leave)
        take_records(client, work ? atoi(work) : 0);
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
}

/* ---- A writer of lines; see ../README.md ------------------------------------------------ */

static void on_written(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    (void)client;
    (void)opaque;
    check(message->err, "delivery");
    printf("%d %lld %.*s\n", message->partition, (long long)message->offset, (int)message->len,
           (char *)message->payload);
}

/* It hears of acknowledgements between two lines, so these have to come steadily. */
static void write_lines(const char *bootstrap, const char *topic)
{
    struct setting settings[] = {
        {"bootstrap.servers", bootstrap}, {"enable.idempotence", "true"}, {NULL, NULL}};
    rd_kafka_t *client = connect_as(RD_KAFKA_PRODUCER, settings, on_written);
    char line[256];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof(line), stdin)) {
        char *value = NULL;
        int partition = (int)strtol(line, &value, 10);
        value += strspn(value, " ");
        check(rd_kafka_producev(client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                                RD_KAFKA_V_VALUE(value, strcspn(value, "\n")),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
              "produce");
        rd_kafka_poll(client, 0);
    }
    check(rd_kafka_flush(client, TIMEOUT_MS), "flush");
    rd_kafka_destroy(client);
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "version") == 0)
        version();
    else if (strcmp(command, "create") == 0 && argc == 5)
        create(argv[2], argv[3], atoi(argv[4]));
    else if (strcmp(command, "produce") == 0 && argc == 7)
        produce(argv[2], argv[3], argv[4], argv[5], argv[6]);
    else if (strcmp(command, "consume") == 0 && argc > 3)
        consume(argv[2], argv + 3);
    else if (strcmp(command, "member") == 0 && argc == 5)
        member(argv[2], argv[3], argv[4]);
    else if (strcmp(command, "write") == 0 && argc == 4)
        write_lines(argv[2], argv[3]);
    else
        fail("usage: see tests/clients/README.md");
    return 0;
}
