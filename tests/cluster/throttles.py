#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas that move no faster than they may (KIP-73), and nobody else who is slower for it.

    throttles.py PROGRAM ZOOKEEPER WORKDIR KAFKA-TOOL

Three brokers. What a new replica has on its disk is looked at all the time: at no moment may it be
more than the rate allows until then, and one piece. That is a bound from below on the time, which
no noise can break. It holds for a move by Apache Kafka's tool, and with each side of the throttle
alone. Then our tool, with a rate of next to nothing: the new replica stands still, records with
acks=all are acknowledged by those in sync as before, and with a higher rate the move ends.
"""
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from kafka.admin import KafkaAdminClient, NewTopic

import faults
from faults import Cluster, PARTITIONS, Writer, wait_for
from moves import Tools, are_in_sync, assignment, cli, cli_json, expect, has_directory

RATE = 2_500_000
RECORDS = 2500  # of each partition
RECORD_BYTES = 1000
FETCH_BYTES = 262144
SAMPLES = 2  # of a second: what was sent before is forgotten soon
PIECE = PARTITIONS * FETCH_BYTES + 1_048_576  # the first one may be a whole batch
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
FROM = {p: [1, 2] for p in range(PARTITIONS)}
TO = {p: [1, 3] for p in range(PARTITIONS)}


def held(cluster, broker, topic):
    """Bytes of the records that a broker has."""
    size = 0
    for partition in range(PARTITIONS):
        path = os.path.join(cluster.brokers[broker - 1].dir, f"{topic}-{partition}")
        try:
            size += sum(os.stat(os.path.join(path, name)).st_size for name in os.listdir(path)
                        if name.endswith(".log"))
        except FileNotFoundError:
            pass
    return size


def create(cluster, topic):
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap())
    admin.create_topics([NewTopic(topic, -1, -1, replica_assignments=FROM)])
    admin.close()
    wait_for(lambda: assignment(cluster, topic) == FROM, "the assignment that was asked for")


def fill(cluster, topic):
    create(cluster, topic)
    path = os.path.join(cluster.work, "records")
    with open(path, "w", encoding="utf-8") as file:
        for number in range(RECORDS):
            print(f"{number:0{RECORD_BYTES}d}", file=file)
    for partition in range(PARTITIONS):
        cli(cluster, "produce", topic, "--partition", str(partition), "--file", path)
    assert held(cluster, 1, topic) > PARTITIONS * RECORDS * RECORD_BYTES
    wait_for(lambda: are_in_sync(cluster, topic), "whole in-sync sets")


def settings_of(cluster, keys, *whose):
    found = next(iter(cli_json(cluster, "configs", "describe", *whose).values()))
    return [found[key]["value"] if key in found else None for key in keys]


def check_lists(cluster, topic, rate=RATE):
    """Who sends is who was there, and who fetches is who is new."""
    sources, targets = settings_of(cluster, LISTS, "--topic", topic)
    assert sorted(sources.split(",")) == [f"{p}:{b}" for p in range(PARTITIONS) for b in (1, 2)]
    assert sorted(targets.split(",")) == [f"{p}:3" for p in range(PARTITIONS)]
    for broker in "123":
        rates = settings_of(cluster, RATES, "--broker", broker)
        assert rates == [str(rate)] * 2, f"broker {broker}: {rates}"


def check_gone(cluster, topic):
    assert settings_of(cluster, LISTS, "--topic", topic) == [None, None]
    for broker in "123":
        assert settings_of(cluster, RATES, "--broker", broker) == [None, None]


def watch(cluster, topic, start):
    """From before the move starts to its end; returns what `start` does, and the figures."""
    # The first bytes on the disk would be too late: they have been sent before.
    time.sleep(SAMPLES)  # or it could have what the one before has left over
    with ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        started = pool.submit(start)
        asked = begun
        over = False
        while not over:
            if started.done() and time.monotonic() > asked + 0.3:
                started.result()
                over = assignment(cluster, topic) == TO and are_in_sync(cluster, topic)
                asked = time.monotonic()
            size = held(cluster, 3, topic)
            seconds = max(time.monotonic() - begun, 1)
            assert size <= seconds * RATE + PIECE, f"{size} bytes after {seconds:.2f} s"
            time.sleep(0.02)
    assert size > PARTITIONS * RECORDS * RECORD_BYTES, size
    return started.result(), f"{size / 1e6:.1f} MB in {seconds:.1f} s"


def kafkas_tool(cluster, tools):
    topic = "kafkas"
    fill(cluster, topic)
    text, result = watch(cluster, topic, lambda: tools.reassign(topic, TO, "--execute",
                                                                "--throttle", str(RATE)))
    expect(text, "Successfully started partition reassignments")
    check_lists(cluster, topic)
    expect(tools.reassign(topic, TO, "--verify"), "Clearing topic-level throttles")
    check_gone(cluster, topic)
    return result


def write_plan(tools, topic):
    with open(tools.plan, "w", encoding="utf-8") as file:
        json.dump({"version": 1, "partitions": [
            {"topic": topic, "partition": p, "replicas": ids} for p, ids in TO.items()]}, file)


def one_side_alone(side):
    def scenario(cluster, tools):
        topic = f"of-{side}"
        fill(cluster, topic)
        cli(cluster, "configs", "alter", "--topic", topic, "--set",
            f"{side}.replication.throttled.replicas=*")
        for broker in "123":
            cli(cluster, "configs", "alter", "--broker", broker, "--set",
                f"{side}.replication.throttled.rate={RATE}")
        write_plan(tools, topic)
        result = watch(cluster, topic,
                       lambda: cli(cluster, "reassign", "start", "--plan", tools.plan))[1]
        for broker in "123":
            cli(cluster, "configs", "alter", "--broker", broker, "--delete",
                f"{side}.replication.throttled.rate")
        return result
    scenario.__name__ = f"the_{side}_alone"
    return scenario


def restart(cluster, samples):
    Cluster.settings["replication.quota.window.num"] = samples
    for broker in cluster.brokers:
        broker.kill()
    for broker in cluster.brokers:
        broker.start()
    cluster.await_all()


def acks_while_it_stands_still(cluster, topic, writer):
    """Of records that those in sync have, though they are throttled too, by the lists."""
    wait_for(lambda: all(has_directory(cluster, 3, topic, p) for p in TO), "the new replicas")
    time.sleep(1)
    size = held(cluster, 3, topic)
    begun = time.monotonic()
    wait_for(lambda: writer.acks_from(begun), "acknowledgements", lambda n: n > faults.ACKS_MIN)
    assert held(cluster, 3, topic) == size < PARTITIONS * RECORDS * RECORD_BYTES / 2, size
    for partition in cluster.partitions(topic):
        assert sorted(partition["isr"]) == [1, 2], partition
    return writer.acks_from(begun)


def who_is_in_sync_is_not_slowed(cluster, tools):
    """At a rate of next to nothing, for as long as nothing is forgotten."""
    topic = "still"
    restart(cluster, 100)
    fill(cluster, topic)
    writer = Writer(cluster, topic)
    writer.start()
    write_plan(tools, topic)
    start = ("reassign", "start", "--plan", tools.plan, "--throttle")
    expect(cli(cluster, *start, "1000"), "(?m)^the throttle stays until")
    check_lists(cluster, topic, 1000)
    cli(cluster, "configs", "alter", "--topic", topic, "--set", f"{LISTS[1]}=*")
    acks = acks_while_it_stands_still(cluster, topic, writer)
    expect(cli(cluster, "reassign", "cancel", topic), "(?m)^the throttle is off$")
    check_gone(cluster, topic)
    wait_for(lambda: assignment(cluster, topic) == FROM, "the assignment before")
    cli(cluster, *start, "1000")
    cli(cluster, "configs", "alter", "--topic", topic, "--delete", LISTS[0])
    wait_for(lambda: all(has_directory(cluster, 3, topic, p) for p in TO), "the new replicas")
    time.sleep(1)  # Now they are held where they are fetched, for what came before.
    cli(cluster, *start, "1000000000")
    wait_for(lambda: assignment(cluster, topic) == TO and are_in_sync(cluster, topic),
             "the end of the move")  # Before anything is forgotten.
    expect(cli(cluster, *start, "1", "--wait"),
           "(?m)^0 of 4 partitions moving\nthe throttle is off$")
    check_gone(cluster, topic)
    writer.ending.set()
    writer.join(150)
    assert not writer.failed, f"the producer had errors: {writer.failed[0]!r}"
    return f"{acks} records acknowledged meanwhile"


def main():
    program, zookeeper, work, kafka = sys.argv[1:]
    Cluster.settings = {"replica.fetch.max.bytes": FETCH_BYTES, "replication.quota.window.num": SAMPLES}
    cluster = Cluster(program, zookeeper, work)
    tools = Tools(cluster, kafka)
    scenarios = (kafkas_tool, one_side_alone("leader"), one_side_alone("follower"),
                 who_is_in_sync_is_not_slowed)
    passed = 0
    try:
        with cluster.running():
            for scenario in scenarios:
                begun = time.monotonic()
                result = scenario(cluster, tools)
                print(f"ok   {scenario.__name__}: {result} ({time.monotonic() - begun:.0f} s)",
                      flush=True)
                passed += 1
    except AssertionError as error:
        print(f"FAIL {scenarios[passed].__name__}: {error}", flush=True)
    print(f"{passed} passed, {len(scenarios) - passed} failed")
    sys.exit(passed < len(scenarios))


if __name__ == "__main__":
    main()
