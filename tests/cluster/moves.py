#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas that move and leaders that are chosen, at the word of Apache Kafka's own tools.

    moves.py PROGRAM ZOOKEEPER WORKDIR KAFKA-TOOL

Three brokers. A topic with two replicas moves to other brokers while an idempotent producer writes
with acks=all: its records are read at their offsets afterwards, and who has lost a replica has no
directory of it any more. A move whose new broker stands still is listed, outlives a controller, is
cancelled, and succeeds when it is asked for again. After a restart the preferred replicas lead.
"""
import json
import os
import re
import signal
import subprocess
import sys

import faults
from faults import Cluster, PARTITIONS, Writer, check_history, read_all, wait_for

TOOLS = "org.apache.kafka.tools."
MOVED = {0: [3, 1], 1: [3, 2], 2: [2, 3], 3: [1, 3]}
BEGIN = {0: [1, 2], 1: [2, 1], 2: [1, 2], 3: [2, 1]}


class Tools:
    """Apache Kafka's tools against the cluster."""

    def __init__(self, cluster, kafka):
        self.cluster = cluster
        self.kafka = kafka
        self.plan = os.path.join(cluster.work, "plan.json")
        self.server = cluster.bootstrap()

    def run(self, name, *args):
        done = subprocess.run(
            [self.kafka, "tool", "kafka-3.9", TOOLS + name, "--bootstrap-server",
             self.server, *args], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def reassign(self, topic, assignment, *args):
        with open(self.plan, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "partitions": [
                {"topic": topic, "partition": p, "replicas": ids}
                for p, ids in assignment.items()]}, file)
        return self.run("reassign.ReassignPartitionsCommand", "--reassignment-json-file",
                        self.plan, *args)

    def moves(self):
        return self.run("reassign.ReassignPartitionsCommand", "--list")


def expect(text, pattern):
    assert re.search(pattern, text), f"no /{pattern}/ in:\n{text}"


def assignment(cluster, topic):
    return {p["partition"]: p["replicas"] for p in cluster.partitions(topic)}


def are_in_sync(cluster, topic):
    return all(sorted(p["isr"]) == sorted(p["replicas"]) and p["leader"] in p["replicas"]
               for p in cluster.partitions(topic))


def create(cluster, tools, topic, lists):
    text = tools.run("TopicCommand", "--create", "--topic", topic, "--replica-assignment",
                     ",".join(":".join(map(str, ids)) for ids in lists.values()))
    expect(text, "Created topic")
    wait_for(lambda: assignment(cluster, topic) == lists, "the assignment that was asked for")


def has_directory(cluster, broker, topic, partition):
    return os.path.isdir(os.path.join(cluster.brokers[broker - 1].dir, f"{topic}-{partition}"))


def check_directories(cluster, topic, lists):
    for partition, ids in lists.items():
        for broker in (1, 2, 3):
            wait_for(lambda b=broker, p=partition, want=broker in ids:
                     has_directory(cluster, b, topic, p) == want,
                     f"the directory of {topic}-{partition} at broker {broker}")


def partitions_move(cluster, tools):
    """While a producer writes."""
    topic = "moving"
    create(cluster, tools, topic, BEGIN)
    writer = Writer(cluster, topic)
    writer.start()
    wait_for(lambda: len(writer.acked), "acknowledgements", lambda n: n > faults.ACKS_MIN)
    text = tools.reassign(topic, MOVED, "--execute")
    expect(text, "Successfully started partition reassignments")
    wait_for(lambda: assignment(cluster, topic) == MOVED and are_in_sync(cluster, topic),
             "the end of the moves")
    seen = len(writer.acked)
    wait_for(lambda: len(writer.acked) - seen, "acknowledgements behind the moves",
             lambda n: n > faults.ACKS_MIN)
    writer.ending.set()
    writer.join(150)
    assert not writer.failed, f"the producer had errors: {writer.failed[0]!r}"
    check_history(writer, read_all(cluster, topic))
    check_directories(cluster, topic, MOVED)
    text = tools.reassign(topic, MOVED, "--verify", "--preserve-throttles")
    for partition in range(PARTITIONS):
        expect(text, f"Reassignment of partition {topic}-{partition} is completed")
    return f"{len(writer.acked)} records"


def a_move_is_cancelled(cluster, tools):
    """Its new broker stands still, and the controller that began it stops."""
    topic = "stuck"
    controller = cluster.controller()
    source, target = (n for n in (1, 2, 3) if n != controller)
    create(cluster, tools, topic, {0: [source]})
    tools.server = cluster.brokers[source - 1].address()  # It runs all the time.
    cluster.brokers[target - 1].send(signal.SIGSTOP)
    expect(tools.reassign(topic, {0: [target]}, "--execute"), "Successfully started")
    listed = rf"{topic}-0: replicas: {target},{source}\. adding: {target}\. removing: {source}\."
    expect(tools.moves(), listed)
    cluster.brokers[controller - 1].stop()
    wait_for(cluster.controller, "another controller", lambda n: n == source)
    expect(tools.moves(), listed)
    expect(tools.reassign(topic, {0: [target]}, "--cancel", "--preserve-throttles"),
           "Successfully cancelled")
    expect(tools.moves(), "No partition reassignments found")
    assert assignment(cluster, topic) == {0: [source]}
    cluster.brokers[target - 1].send(signal.SIGCONT)
    cluster.brokers[controller - 1].start()
    check_directories(cluster, topic, {0: [source]})
    expect(tools.reassign(topic, {0: [target]}, "--execute"), "Successfully started")
    wait_for(lambda: assignment(cluster, topic) == {0: [target]} and are_in_sync(cluster, topic),
             "the end of the move")
    check_directories(cluster, topic, {0: [target]})
    return f"from broker {source} to {target}"


def preferred_replicas_lead(cluster, tools):
    """Broker 3 has just been away."""
    topic = "moving"
    cluster.brokers[2].stop()
    cluster.brokers[2].start()
    wait_for(lambda: are_in_sync(cluster, topic), "whole in-sync sets")
    assert any(p["leader"] != p["replicas"][0] for p in cluster.partitions(topic))
    text = tools.run("LeaderElectionCommand", "--election-type", "preferred",
                     "--all-topic-partitions")
    expect(text, "Successfully completed leader election")
    wait_for(lambda: all(p["leader"] == p["replicas"][0] for p in cluster.partitions(topic)),
             "the preferred leaders")
    text = tools.run("LeaderElectionCommand", "--election-type", "preferred", "--topic", topic,
                     "--partition", "0")
    expect(text, "Valid replica already elected for partitions")
    return "broker 3 leads again"


def main():
    program, zookeeper, work, kafka = sys.argv[1:]
    faults.SESSION_MS = 30000  # A broker that stands still stays a member.
    cluster = Cluster(program, zookeeper, work)
    tools = Tools(cluster, kafka)
    scenarios = (partitions_move, a_move_is_cancelled, preferred_replicas_lead)
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
                broker.send(signal.SIGCONT)
                broker.kill()
    print(f"{passed} passed, {len(scenarios) - passed} failed")
    sys.exit(passed < len(scenarios))


if __name__ == "__main__":
    main()
