#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas that move no faster than they may (KIP-73), and nobody else who is slower for it.

    throttles.py PROGRAM ZOOKEEPER WORKDIR KAFKA-TOOL

Three brokers. What a new replica has on its disk is looked at all the time: at no moment may it be
more than the rate allows until then, and one piece. That is a bound from below on the time, which
no noise can break. It holds for a move by Apache Kafka's tool, for one by ours, and with each side
of the throttle alone. Then a rate of next to nothing: the new replica stands still, records with
acks=all are acknowledged by those in sync as before, and when the throttle is gone the move ends.
"""
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import faults
from faults import Cluster, PARTITIONS, Writer, check_history, free_port, read_all, wait_for
from moves import Tools, are_in_sync, assignment, cli, cli_json, create, expect

RATE = 2_000_000
RECORDS = 3000  # of each partition
RECORD_BYTES = 1000
FETCH_BYTES = 262144
SAMPLES = 3  # of a second: what was sent before is forgotten soon
PIECE = PARTITIONS * FETCH_BYTES + 1_048_576  # the first one may be a whole batch
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
FROM = {p: [1, 2] for p in range(PARTITIONS)}
TO = {p: [1, 3] for p in range(PARTITIONS)}
GAP_MAX_S = 10  # without a rule, it would be the time until a sample is forgotten: 100 s


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


def fill(cluster, topic, tools):
    create(cluster, tools, topic, FROM)
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


def check_lists(cluster, topic):
    """Who sends is who was there, and who fetches is who is new."""
    sources, targets = settings_of(cluster, LISTS, "--topic", topic)
    assert sorted(sources.split(",")) == [f"{p}:{b}" for p in range(PARTITIONS) for b in (1, 2)]
    assert sorted(targets.split(",")) == [f"{p}:3" for p in range(PARTITIONS)]
    for broker in "123":
        rates = settings_of(cluster, RATES, "--broker", broker)
        assert rates == [str(RATE)] * 2, f"broker {broker}: {rates}"


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
    fill(cluster, topic, tools)
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
        fill(cluster, topic, tools)
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


def main():
    program, zookeeper, work, kafka = sys.argv[1:]
    Cluster.settings = {"replica.fetch.max.bytes": FETCH_BYTES, "replication.quota.window.num": SAMPLES}
    cluster = Cluster(program, zookeeper, work)
    tools = Tools(cluster, kafka)
    scenarios = (kafkas_tool, one_side_alone("leader"), one_side_alone("follower"))
    passed = 0
    for broker in cluster.brokers:
        broker.start()
    try:
        wait_for(lambda: len((cluster.ask("cluster") or {}).get("brokers", [])), "three brokers",
                 lambda n: n == 3)
        for scenario in scenarios:
            print(f"ok   {scenario.__name__}: {scenario(cluster, tools)}", flush=True)
            passed += 1
    except AssertionError as error:
        print(f"FAIL {scenarios[passed].__name__}: {error}", flush=True)
    finally:
        for broker in cluster.brokers:
            if broker.process.poll() is None:
                broker.kill()
    print(f"{passed} passed, {len(scenarios) - passed} failed")
    sys.exit(passed < len(scenarios))


if __name__ == "__main__":
    main()
