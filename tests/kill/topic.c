/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topics for the scripts of tests/check.
 *
 *   topic create BOOTSTRAP TOPIC PARTITIONS [KEY=VALUE]...
 *   topic delete BOOTSTRAP TOPIC
 *   topic offsets BOOTSTRAP TOPIC PARTITIONS     a line "partition first end" for each partition
 */
#include <string.h>

#include "peer.h"

#define TIMEOUT_MS 30000

static const struct setting no_settings[] = {{NULL, NULL}};

static rd_kafka_event_t *wait_for(rd_kafka_queue_t *queue, const char *what)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);

    if (!event)
        fail("no answer to %s", what);
    check(rd_kafka_event_error(event), what);
    return event;
}

static void check_results(const rd_kafka_topic_result_t **results, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(rd_kafka_topic_result_error(results[i]), rd_kafka_topic_result_name(results[i]));
}

static void create(rd_kafka_t *client, rd_kafka_queue_t *queue, char **argv)
{
    char why[512];
    size_t count = 0;
    rd_kafka_event_t *event;
    rd_kafka_NewTopic_t *wanted =
        rd_kafka_NewTopic_new(argv[0], (int)number(argv[1], 1), 1, why, sizeof(why));

    if (!wanted)
        fail("%s", why);
    for (char **config = argv + 2; *config; config++) {
        char *value = strchr(*config, '=');

        if (!value)
            fail("'%s' is not KEY=VALUE", *config);
        *value++ = '\0';
        check(rd_kafka_NewTopic_set_config(wanted, *config, value), *config);
    }
    rd_kafka_CreateTopics(client, &wanted, 1, NULL, queue);
    event = wait_for(queue, "CreateTopics");
    check_results(
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count),
        count);
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(wanted);
}

static void remove_topic(rd_kafka_t *client, rd_kafka_queue_t *queue, const char *name)
{
    size_t count = 0;
    rd_kafka_event_t *event;
    rd_kafka_DeleteTopic_t *unwanted = rd_kafka_DeleteTopic_new(name);

    rd_kafka_DeleteTopics(client, &unwanted, 1, NULL, queue);
    event = wait_for(queue, "DeleteTopics");
    check_results(
        rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count),
        count);
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy(unwanted);
}

static void print_offsets(rd_kafka_t *client, const char *name, int partitions)
{
    for (int i = 0; i < partitions; i++) {
        int64_t first, end;

        check(rd_kafka_query_watermark_offsets(client, name, i, &first, &end, TIMEOUT_MS),
              "ListOffsets");
        printf("%d %lld %lld\n", i, (long long)first, (long long)end);
    }
}

int main(int argc, char **argv)
{
    const char *command = argc > 3 ? argv[1] : "";
    rd_kafka_t *client;
    rd_kafka_queue_t *queue;

    if (argc < 4)
        fail("usage: topic create|delete|offsets BOOTSTRAP TOPIC ...");
    client = connect_as(RD_KAFKA_PRODUCER, NULL, argv[2], no_settings);
    queue = rd_kafka_queue_new(client);
    if (strcmp(command, "create") == 0 && argc > 4)
        create(client, queue, argv + 3);
    else if (strcmp(command, "delete") == 0)
        remove_topic(client, queue, argv[3]);
    else if (strcmp(command, "offsets") == 0 && argc == 5)
        print_offsets(client, argv[3], (int)number(argv[4], 1));
    else
        fail("there is no command '%s'", command);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(client);
    return 0;
}
