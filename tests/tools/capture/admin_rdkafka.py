#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls librdkafka's admin APIs, so that a proxy can record what it sends.

    admin_rdkafka.py BOOTSTRAP TOPIC     run by the Python of a confluent-kafka installation

Old versions of the wheel lack some calls; those are left out.
"""
import sys

from confluent_kafka import Consumer, Producer, TopicPartition, admin


def settle(futures):
    for future in futures.values():
        try:
            future.result(20)
        except Exception as error:  # an error answer is worth as much as a good one
            print("answer:", error, file=sys.stderr)


def change(client, topic):
    wanted = [admin.NewTopic(topic, 2, 1, config={"retention.ms": "3600000"})]
    settle(client.create_topics(wanted))
    settle(client.create_topics(wanted))
    settle(client.create_partitions([admin.NewPartitions(topic, 3)]))
    resource = admin.ConfigResource(admin.RESOURCE_TOPIC, topic)
    settle(client.describe_configs([resource]))
    settle(client.alter_configs([admin.ConfigResource(
        admin.RESOURCE_TOPIC, topic, set_config={"retention.ms": "7200000"})]))
    if hasattr(admin, "ConfigEntry") and hasattr(client, "incremental_alter_configs"):
        entry = admin.ConfigEntry("max.message.bytes", "2000000",
                                  incremental_operation=admin.AlterConfigOpType.SET)
        settle(client.incremental_alter_configs([admin.ConfigResource(
            admin.RESOURCE_TOPIC, topic, incremental_configs=[entry])]))


def look(bootstrap, client, topic):
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce(topic, b"value", b"key", partition=0)
    producer.flush(20)
    client.list_topics(topic, timeout=20)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "golden-group"})
    consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
    consumer.offsets_for_times([TopicPartition(topic, 0, 1)], timeout=20)
    consumer.close()
    if hasattr(client, "list_offsets"):
        settle(client.list_offsets({TopicPartition(topic, 0): admin.OffsetSpec.max_timestamp()}))
        settle(client.delete_records([TopicPartition(topic, 0, 1)]))
        client.describe_cluster(include_authorized_operations=True).result(20)


def main():
    bootstrap, topic = sys.argv[1:]
    client = admin.AdminClient({"bootstrap.servers": bootstrap})
    change(client, topic)
    look(bootstrap, client, topic)
    settle(client.delete_topics([topic, "golden-missing"]))


if __name__ == "__main__":
    main()
