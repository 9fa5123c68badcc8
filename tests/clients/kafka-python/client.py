#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kafka-python behind the common command line of the clients (see ../README.md).

One program for both generations: 2.0.2, which guesses the broker's version from its ApiVersions
answer and speaks old fixed versions, and 3.x, which negotiates.
"""
import os
import signal
import sys
import time

import kafka
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import CommitFailedError

IS_OLD = kafka.__version__.startswith("2.0")


def parse(field):
    return None if field == "null" else bytes.fromhex(field[1:])


def show(data):
    return "null" if data is None else "x" + bytes(data).hex()


def version():
    print("kafka-python", kafka.__version__)
    print("codecs none gzip snappy lz4 zstd")
    print("idempotence", "no" if IS_OLD else "yes")
    print("timestamps yes")
    print("acks yes")
    print("null_headers no")


def create(bootstrap, topic, partitions):
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, int(partitions), 1)], timeout_ms=10_000)
    admin.close()


def producer_for(bootstrap, codec, idempotent):
    extra = {} if IS_OLD else {"enable_idempotence": idempotent == "true"}
    return KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", linger_ms=50, batch_size=400_000, retries=5,
        compression_type=None if codec == "none" else codec, **extra)


def produce(bootstrap, topic, codec, idempotent, path):
    producer = producer_for(bootstrap, codec, idempotent)
    sent = []
    with open(path, encoding="ascii") as file:
        for line in file:
            partition, timestamp, key, value, headers = line.split()
            pairs = [] if headers == "-" else [h.split("=") for h in headers.split(",")]
            sent.append(producer.send(
                topic, partition=int(partition), timestamp_ms=int(timestamp), key=parse(key),
                value=parse(value), headers=[(parse(n).decode(), parse(v)) for n, v in pairs]))
    producer.flush(60)
    for future in sent:
        acked = future.get(10)
        print(acked.partition, acked.offset)
    producer.close()


def print_record(record):
    headers = ",".join(f"{show(n.encode())}={show(v)}" for n, v in record.headers) or "-"
    print(record.partition, record.offset, record.timestamp, show(record.key), show(record.value),
          headers)


def consume(bootstrap, *topics):
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, check_crcs=True,
                             auto_offset_reset="earliest", enable_auto_commit=False)
    for topic in topics:
        print("topic", topic)
        parts = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))]
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        ends = consumer.end_offsets(parts)
        while any(consumer.position(p) < ends[p] for p in parts):
            for batch in consumer.poll(timeout_ms=5000).values():
                for record in batch:
                    print_record(record)
    consumer.close()


class Owned(ConsumerRebalanceListener):
    """Prints what this member owns, and in which generation."""

    def __init__(self, consumer):
        self.consumer, self.assigned = consumer, []
        self.coordinator = consumer._coordinator  # there is no other way to the number

    def on_partitions_assigned(self, assigned):
        self.assigned = list(assigned)
        print("generation", self.coordinator.generation().generation_id,
              *sorted(p.partition for p in assigned), flush=True)

    def on_partitions_revoked(self, revoked):
        pass

    def seek_to_committed(self):
        """Return whether there was something to do; what was read before is read again.

        The library keeps the position in a partition that the member lost for a time and owns
        again, and would commit it behind what others have committed meanwhile.
        """
        assigned, self.assigned = self.assigned, []
        for partition in assigned:
            offset = self.consumer.committed(partition)
            if offset is None:
                self.consumer.seek_to_beginning(partition)
            else:
                self.consumer.seek(partition, offset)
        return bool(assigned)


def member(bootstrap, group, topic):
    """Consume in a group until SIGTERM; see ../groups/members.py."""
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest",
        client_id=os.environ.get("CLIENT_ID", "member"), enable_auto_commit=False,
        session_timeout_ms=6000, heartbeat_interval_ms=1000,
        partition_assignment_strategy=[RangePartitionAssignor])
    owned = Owned(consumer)
    consumer.subscribe([topic], listener=owned)
    while not stop:
        records = [r for batch in consumer.poll(timeout_ms=200).values() for r in batch]
        if owned.seek_to_committed():
            continue
        for record in records:
            print(record.partition, record.offset, flush=True)
        if records:
            time.sleep(int(os.environ.get("WORK_MS", "0")) / 1000)
            try:
                consumer.commit()
            except CommitFailedError as error:  # the group rebalances: somebody reads them again
                print(error, file=sys.stderr)
    consumer.close(autocommit=False)


if __name__ == "__main__":
    {"version": version, "create": create, "produce": produce, "consume": consume,
     "member": member}[sys.argv[1]](*sys.argv[2:])
