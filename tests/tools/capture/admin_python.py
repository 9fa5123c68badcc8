#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls kafka-python's admin APIs, so that a proxy can record what it sends.

    admin_python.py BOOTSTRAP TOPIC     run by the Python of either kafka-python installation

The two generations differ in their signatures; a call that one lacks, or takes otherwise, is named
and left out.
"""
import sys

import kafka
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic

IS_OLD = kafka.__version__.startswith("2.0")


def attempt(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:  # an error answer is worth as much as a good one
        print("answer:", repr(error)[:200], file=sys.stderr)


def main():
    bootstrap, topic = sys.argv[1:]
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    part = TopicPartition(topic, 0)
    resource = ConfigResource(ConfigResourceType.TOPIC, topic,
                              configs={"retention.ms": "3600000"})
    attempt(client.create_topics, [NewTopic(topic, 2, 1)])
    attempt(client.create_topics, [NewTopic(topic, 2, 1)])
    grow = NewPartitions(3) if IS_OLD else 3
    attempt(client.create_partitions, {topic: grow})
    attempt(client.describe_configs, [ConfigResource(ConfigResourceType.TOPIC, topic)])
    attempt(client.alter_configs, [resource])
    attempt(client.describe_topics, [topic])
    attempt(client.describe_cluster)
    for name in ("describe_log_dirs",):
        if hasattr(client, name):
            attempt(getattr(client, name))
    if hasattr(client, "delete_records"):
        attempt(client.delete_records, {part: 0})
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    attempt(consumer.beginning_offsets, [part])
    attempt(consumer.offsets_for_times, {part: 1})
    consumer.close()
    attempt(client.delete_topics, [topic])
    attempt(client.delete_topics, ["golden-missing"])
    client.close()


if __name__ == "__main__":
    main()
