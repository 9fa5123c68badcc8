#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas that move and leaders that are chosen, at the word of Apache Kafka's own tools.

    moves.py PROGRAM ZOOKEEPER WORKDIR KAFKA-TOOL

Three brokers. A topic with two replicas moves to other brokers while an idempotent producer writes
with acks=all: its records are read at their offsets afterwards, and who has lost a replica has no
directory of it any more. A move whose new broker stands still is listed, outlives a controller, is
cancelled, and succeeds when it is asked for again. After a restart the preferred replicas lead.
Then the same at the word of our own tool, whose results are held against the cluster's.
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


# ---- our own tool: strandline reassign, leaders ------------------------------------------------

def cli(cluster, *args, at=None, code=0):
    """Its results; if it is to fail, with what it says on standard error."""
    done = subprocess.run(
        [cluster.program, *args, "--bootstrap-server", at or cluster.bootstrap()],
        capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def cli_json(cluster, *args, **how):
    return json.loads(cli(cluster, *args, "--json", **how))


def a_topic_goes_there_and_back(cluster, tools):
    """Spread over brokers, with a dry run first; back with what was printed before the change."""
    topic = "moving"
    spread = {0: [2, 3], 1: [3, 1], 2: [1, 2], 3: [2, 3]}
    there = ("reassign", "start", topic, "--brokers", "2,3,1")
    plan = json.loads(cli(cluster, *there, "--dry-run"))
    assert {p["partition"]: p["replicas"] for p in plan["partitions"]} == spread, plan
    assert assignment(cluster, topic) == MOVED, "a dry run has moved something"
    text = cli(cluster, *there, "--wait")
    expect(text, r"(?m)^moving-0 +from 3,1 +to 2,3 +started$")
    expect(text, r"(?m)^4 of 4 partitions have moved$")
    assert assignment(cluster, topic) == spread
    assert are_in_sync(cluster, topic)
    with open(tools.plan, "w", encoding="utf-8") as file:
        file.write(text[text.index("{"):text.rindex("}") + 1])
    expect(cli(cluster, "reassign", "start", "--plan", tools.plan, "--wait"),
           r"(?m)^4 of 4 partitions have moved$")
    assert assignment(cluster, topic) == MOVED
    expect(cli(cluster, "reassign", "start", "--plan", tools.plan),
           r"(?m)^moving-3 +from 1,3 +to 1,3 +already there\n0 of 4 partitions moving$")
    check_directories(cluster, topic, MOVED)
    return "there and back"


def a_move_is_taken_back(cluster, tools):
    """Its new broker stands still; who waits for it hears that it was cancelled."""
    topic = "back"
    controller = cluster.controller()
    source, target = (n for n in (1, 2, 3) if n != controller)
    at = cluster.brokers[source - 1].address()
    create(cluster, tools, topic, {0: [source], 1: [source]})
    cluster.brokers[target - 1].send(signal.SIGSTOP)
    waiter = subprocess.Popen(
        [cluster.program, "reassign", "start", f"{topic}:1", "--replicas", f"{target},{source}",
         "--wait", "--bootstrap-server", at],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    cli(cluster, "reassign", "start", f"{topic}:0", "--replicas", str(target), at=at)
    now = wait_for(lambda: cli_json(cluster, "reassign", "list", topic, at=at), "two moves",
                   lambda v: len(v) == 2)
    assert now == [
        {"topic": topic, "partition": 0, "replicas": [target, source], "adding": [target],
         "removing": [source]},
        {"topic": topic, "partition": 1, "replicas": [target, source], "adding": [target],
         "removing": []}], now
    expect(cli(cluster, "reassign", "list", "moving", at=at), "^0 partitions moving$")
    text = cli(cluster, "cluster", "--partitions", "--timeout-ms", "500", at=at, code=1)
    expect(text, "offline 0  moving 2\n")
    expect(text, rf"(?m)^{topic}-0 .* out of sync {target} .* ends {target}:\? {source}:0 +moving$")
    expect(text, f"cannot ask broker {target} for its logs")
    expect(cli(cluster, "reassign", "cancel", f"{topic}:0", at=at),
           rf"^{topic}-0  cancelled  back to {source}$")
    expect(cli(cluster, "reassign", "cancel", f"{topic}:0", at=at, code=1), "-0 is not moving")
    expect(cli(cluster, "reassign", "cancel", "--all", at=at), f"^{topic}-1  cancelled")
    text, error = waiter.communicate(timeout=20)
    assert waiter.returncode == 1, text + error
    expect(error, f"{topic}-1 is not where it should be")
    expect(cli(cluster, "reassign", "list", at=at), "^0 partitions moving$")
    assert assignment(cluster, topic) == {0: [source], 1: [source]}
    cluster.brokers[target - 1].send(signal.SIGCONT)
    return f"broker {target} stood still"


def check_what_is_not_well(cluster, at):
    """Broker 3 is down, and the topic "moving" wants two replicas in sync."""
    seen = wait_for(lambda: cli_json(cluster, "cluster", "--partitions", "--unhealthy", at=at),
                    "partitions that are not well", lambda v: v["under_min_isr"] == 4)
    listed = {(p["topic"], p["partition"]): p for p in seen["partition_list"]}
    unclean, moving = listed["unclean", 0], listed["moving", 0]
    assert [b["broker"] for b in seen["absent"]] == [3], seen["absent"]
    assert seen["offline"] == sum(p["leader"] < 0 for p in listed.values()) > 0, seen
    assert seen["under_replicated"] == sum(
        bool(p["out_of_sync"]) for p in listed.values()) > 4, seen
    assert unclean["offline"] and unclean["end"] is None and unclean["isr"] == [3], unclean
    assert moving["isr"] == [1] and moving["out_of_sync"] == [3], moving
    assert moving["end"] == moving["logs"][1]["end"] > faults.ACKS_MIN, moving
    assert moving["logs"][0]["error"] == "BROKER_NOT_AVAILABLE", moving
    text = cli(cluster, "cluster", "--partitions", "--unhealthy", at=at)
    expect(text, r"(?m)^  broker 3  not there +leads 0  replicas [1-9]")
    expect(text, r"(?m)^unclean-0 +leader - .* end - .* offline,under-replicated$")
    expect(text, r"(?m)^moving-0 .* ends 3:\? 1:\d+ +under-replicated,under-min-isr$")


def check_ends_of_logs(cluster, tools, at):
    """Below the minimum nothing is committed, but the log has it."""
    def end():
        return next(p["end"] for p in cli_json(cluster, "cluster", "--partitions", at=at)[
            "partition_list"] if (p["topic"], p["partition"]) == ("moving", 0))

    before = end()
    with open(tools.plan, "w", encoding="utf-8") as file:
        file.write("not committed\n")
    cli(cluster, "produce", "moving", "--partition", "0", "--acks", "1", "--file", tools.plan,
        at=at)
    assert end() == before + 1, f"{before}, and with a record more {end()}"


def leaders_are_elected(cluster, tools):
    """Preferred ones behind a restart; an unclean one when nobody in sync is there."""
    topic = "unclean"
    create(cluster, tools, topic, {0: [2, 3]})
    cli(cluster, "configs", "alter", "--topic", "moving", "--set", "min.insync.replicas=2")
    cluster.brokers[1].stop()  # In the set remains broker 3, which has all of it.
    cluster.brokers[2].stop()
    cluster.brokers[1].start()
    at = cluster.brokers[0].address()
    wait_for(lambda: cli_json(cluster, "cluster", at=at), "broker 2",
             lambda v: len(v["brokers"]) == 2)
    wait_for(lambda: cli(cluster, "leaders", "list", topic, at=at), "nobody who leads",
             lambda text: re.search(r"leader - .*no leader\n", text))
    check_what_is_not_well(cluster, at)
    check_ends_of_logs(cluster, tools, at)
    expect(cli(cluster, "leaders", "elect", "--topic", topic, at=at, code=1),
           r"unclean-0: .*PREFERRED_LEADER_NOT_AVAILABLE")
    expect(cli(cluster, "leaders", "elect", "--unclean", "--topic", topic, at=at),
           r"^unclean-0  elected\nelected 1  already 0  failed 0\n$")
    wait_for(lambda: cli(cluster, "leaders", "list", topic, at=at), "broker 2 as leader",
             lambda text: re.search("leader 2 .* same", text))
    cluster.brokers[2].start()
    wait_for(lambda: are_in_sync(cluster, "moving") and are_in_sync(cluster, topic),
             "whole in-sync sets")
    well = cli_json(cluster, "cluster", "--partitions", "--unhealthy")
    assert not (well["under_replicated"] or well["under_min_isr"] or well["offline"]), well
    assert well["absent"] == well["partition_list"] == [], well
    wait_for(lambda: cli_json(cluster, "cluster", "--partitions")["partition_list"],
             "replicas that say where their logs end, and end together",
             lambda v: all(log["lag"] == 0 and log["end"] == p["end"] for p in v
                           for log in p["logs"]), 10)
    before = cli_json(cluster, "leaders", "list", "--not-preferred")
    assert before["not_preferred"] == len(before["partitions"]) > 0, before
    text = cli(cluster, "leaders", "elect", "--topic", "moving", "--partition", "0",
               "--partition", "3")
    expect(text, r"(?m)^moving-0 +(elected  leader 3|already)$")
    assert cli_json(cluster, "leaders", "elect")["failed"] == 0
    wait_for(lambda: cli_json(cluster, "leaders", "list"), "the preferred leaders",
             lambda v: v["not_preferred"] == 0)
    return f"{before['not_preferred']} led elsewhere"


def main():
    program, zookeeper, work, kafka = sys.argv[1:]
    faults.SESSION_MS = 30000  # A broker that stands still stays a member.
    cluster = Cluster(program, zookeeper, work)
    tools = Tools(cluster, kafka)
    scenarios = (partitions_move, a_move_is_cancelled, preferred_replicas_lead,
                 a_topic_goes_there_and_back, a_move_is_taken_back, leaders_are_elected)
    passed = 0
    try:
        with cluster.running():
            for scenario in scenarios:
                print(f"ok   {scenario.__name__}: {scenario(cluster, tools)}", flush=True)
                passed += 1
    except AssertionError as error:
        print(f"FAIL {scenarios[passed].__name__}: {error}", flush=True)
    print(f"{passed} passed, {len(scenarios) - passed} failed")
    sys.exit(passed < len(scenarios))


if __name__ == "__main__":
    main()
