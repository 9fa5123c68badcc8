#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Consumers that read at a follower in their rack (KIP-392), while a producer writes.

    racks.py PROGRAM ZOOKEEPER WORKDIR

Three brokers, each in a rack of its own; kcat and Java's console consumer stand in the rack of one
follower, which is killed and comes back. Each reads every record once, in its order: first there
(the brokers' metrics tell), then at the leader, then there again.

A follower's fetch would wait at its leader for longer than this check has patience for one record.
So one that is read behind a silence shows that the leader tells its followers what is committed.
"""
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request

import faults
from faults import Broker, Cluster, wait_for
from kafka import KafkaProducer
from peers import CACHE, java

TOPIC = "near"
RECORDS = 1500  # of 1000 bytes, before anything happens, and again behind each change
PAUSES = 5
PAUSE_S = 0.4
FETCH_WAIT_MS = 20000


class RackBroker(Broker):
    def __init__(self, cluster, number):
        super().__init__(cluster, number)
        self.http = faults.free_port()

    def rack(self):
        return "abc"[self.number - 1]

    def settings(self):
        return {
            **super().settings(),
            "broker.rack": self.rack(),
            "replica.selector.class":
                "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "replica.fetch.wait.max.ms": FETCH_WAIT_MS,
            "replica.lag.time.max.ms": 2 * FETCH_WAIT_MS,
            "http.address": f"127.0.0.1:{self.http}",
        }

    def bytes_out(self):
        """Of the topic, in this life; followers' fetches count, too."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        name = f'kafka_server_brokertopicmetrics_bytesout_total{{topic="{TOPIC}"}}'
        found = re.search(re.escape(name) + r" (\d+)", text)
        return int(found[1]) if found else 0


class Reader:
    """A client's process; its lines are an offset, a blank and the record's number."""

    def __init__(self, name, command, **env):
        self.name = name
        self.found = []
        self.seen_s = {}  # when a record was read
        self.process = subprocess.Popen(command, env={**os.environ, **env}, text=True, bufsize=1,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        for line in self.process.stdout:
            record = re.match(r"(?:Offset:)?(\d+)\s+(\d+) \.", line)
            if not record:
                continue  # The console consumer's warnings.
            offset, value = map(int, record.groups())
            self.found.append((offset, value))
            self.seen_s[value] = time.monotonic()

    def stop(self):
        self.process.kill()
        self.process.wait()

    def check(self, count):
        assert self.found == [(n, n) for n in range(count)], (
            f"{self.name} has read {len(self.found)} records of {count}; first difference at "
            f"{next((i for i, f in enumerate(self.found) if f != (i, i)), None)}")


def kcat(bootstrap, rack):
    """With the newest librdkafka: 2.0.2 stays for minutes with a follower that is gone."""
    return Reader("kcat",
                  ["kcat", "-C", "-q", "-u", "-b", bootstrap, "-t", TOPIC, "-o", "beginning",
                   "-X", f"client.rack={rack}", "-X", "reconnect.backoff.max.ms=500",
                   "-f", "%o %s\\n"], LD_LIBRARY_PATH=str(CACHE / "librdkafka-new"))


def console(bootstrap, rack):
    return Reader("the console consumer", [
        *java("kafka", CACHE / "kafka", "org.apache.kafka.tools.consumer.ConsoleConsumer"),
        "--bootstrap-server", bootstrap, "--topic", TOPIC, "--partition", "0", "--offset",
        "earliest", "--command-property", f"client.rack={rack}", "--formatter-property",
        "print.offset=true"])


class Producer:
    def __init__(self, bootstrap):
        self.kafka = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=2,
                                   enable_idempotence=True)
        self.sent = 0

    def write(self, count):
        for _ in range(count):
            last = self.kafka.send(TOPIC, b"%d " % self.sent + b"." * 1000)
            self.sent += 1
        last.get(60)
        self.kafka.flush(60)
        return count * 1000


def all_have_read(readers, producer, what):
    wait_for(lambda: [len(r.found) for r in readers], f"{producer.sent} records at all ({what})",
             lambda counts: min(counts) >= producer.sent, 30)


def records_are_read_at_the_follower(producer, readers, leader, near, other):
    size = producer.write(RECORDS)
    all_have_read(readers, producer, "at the follower")
    outs = {b.number: b.bytes_out() for b in (leader, near, other)}
    assert outs[near.number] >= len(readers) * size, f"bytes out by broker: {outs}"
    # Two followers have fetched it.
    assert outs[leader.number] < 2.5 * size and outs[other.number] == 0, f"bytes out: {outs}"
    print(f"ok   records_are_read_at_the_follower: {size} bytes of records for {len(readers)} "
          f"readers; bytes out by broker {outs}, led by {leader.number}", flush=True)


def news_come_without_the_next_record(producer, readers):
    late = []
    for _ in range(PAUSES):
        time.sleep(PAUSE_S)
        producer.write(1)
        acked_s = time.monotonic()
        all_have_read(readers, producer, "a single one")
        late += [r.seen_s[producer.sent - 1] - acked_s for r in readers]
    assert max(late) < FETCH_WAIT_MS / 4000, f"seconds behind the acknowledgement: {late}"
    print(f"ok   news_come_without_the_next_record: {max(late) * 1000:.0f} ms behind the "
          "acknowledgement at most", flush=True)


def the_leader_serves_when_the_follower_is_killed(producer, readers, leader, near):
    near.process.kill()
    near.process.wait()
    before = leader.bytes_out()
    begin = time.monotonic()
    size = producer.write(RECORDS)
    all_have_read(readers, producer, "at the leader")
    gone = time.monotonic() - begin
    outs = leader.bytes_out() - before
    assert outs >= (len(readers) + 1) * size, f"the leader has sent {outs} bytes"
    print(f"ok   the_leader_serves_when_the_follower_is_killed: {outs} bytes out there for "
          f"{size}, all read {gone:.1f} s behind the kill", flush=True)


def it_serves_again_when_it_is_back(cluster, producer, readers, near):
    near.start()
    wait_for(lambda: cluster.partitions(TOPIC), "a whole in-sync set",
             lambda p: len(p) == 1 and len(p[0]["isr"]) == 3)
    producer.write(100)
    all_have_read(readers, producer, "while it is back")
    size = producer.write(RECORDS)
    all_have_read(readers, producer, "at the follower that is back")
    outs = near.bytes_out()
    assert outs >= len(readers) * size, f"the follower has sent {outs} bytes"
    print(f"ok   it_serves_again_when_it_is_back: {outs} bytes out there for {size}", flush=True)


def run(cluster):
    cluster.tell("topics", "create", TOPIC, "--partitions", "1", "--replication-factor", "3",
                 "--config", "min.insync.replicas=2")
    number = wait_for(lambda: cluster.partitions(TOPIC), "a whole in-sync set",
                      lambda p: len(p) == 1 and len(p[0]["isr"]) == 3 and p[0]["leader"] > 0
                      )[0]["leader"]
    leader, near, other = (cluster.brokers[(number - 1 + i) % 3] for i in range(3))
    # The others' addresses: who is killed is not asked for metadata.
    bootstrap = f"{leader.address()},{other.address()}"
    producer = Producer(bootstrap)
    producer.write(1)
    readers = [kcat(bootstrap, near.rack()), console(bootstrap, near.rack())]
    try:
        all_have_read(readers, producer, "the first one")
        records_are_read_at_the_follower(producer, readers, leader, near, other)
        news_come_without_the_next_record(producer, readers)
        the_leader_serves_when_the_follower_is_killed(producer, readers, leader, near)
        it_serves_again_when_it_is_back(cluster, producer, readers, near)
        for reader in readers:
            reader.check(producer.sent)
    finally:
        for reader in readers:
            reader.stop()
    print(f"ok   nothing is missed or read twice: {producer.sent} records each", flush=True)


def main():
    cluster = Cluster(*sys.argv[1:], kind=RackBroker)
    failed = 0
    try:
        with cluster.running():
            run(cluster)
    except AssertionError as error:
        failed = 1
        print(f"FAIL {error}", flush=True)
    print(f"{5 - 5 * failed} passed, {failed} failed")
    sys.exit(failed)


if __name__ == "__main__":
    main()
