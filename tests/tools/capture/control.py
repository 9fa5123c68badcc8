#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What has to happen in a cluster so that its brokers have much to say to each other.

    control.py STEP PORT --out FRAMES.jsonl [--heard FRAMES.jsonl...]

Broker i of three listens on PORT + i; `capture-control` starts and stops them between the steps.
Requests that no broker makes (old versions, admin calls) are recorded here; the rest is recorded
by the proxies between the brokers. No step returns before the cluster has settled, because the
order of what is recorded should not depend on the machine.
"""
import argparse
import json
import sys
import time

from probe import NO_TOPIC, TIMEOUT_MS, Broker, batch
from schemas import decode_request

BROKERS = (1, 2, 3)
CONTROLLER = 3  # started first and never stopped
RECORDS = 5
UNCLEAN = {"name": "unclean.leader.election.enable", "value": "true"}
TOPICS = {
    "golden": {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]},
    "moved": {0: [1, 3]},
    "unclean": {0: [1, 2]},
}


class Cluster:
    def __init__(self, port, peer, out, heard):
        self.port, self.peer, self.out, self.heard = port, peer, out, heard
        self.brokers = {}

    def ask(self, broker, api, version, values, recorded=False):
        if broker not in self.brokers:
            address = f"127.0.0.1:{self.port + broker}"
            self.brokers[broker] = Broker(address, self.peer, self.out)
        return self.brokers[broker].ask(api, version, values, recorded=recorded)

    def partitions(self, topic, broker=CONTROLLER):
        """Return what a broker knows of a topic, {} if it knows nothing."""
        answer = self.ask(broker, "Metadata", 9, {"topics": [{"name": topic}]})
        return {p["partition_index"]: p for p in answer["topics"][0]["partitions"]}

    def wait(self, what, is_so):
        for _ in range(1200):
            if is_so():
                return
            time.sleep(0.05)
        sys.exit(f"control.py: waited in vain for: {what}")

    def wait_for_isr(self, topic, isr):
        """Until every partition has a leader, and these brokers (None: all) as its ISR."""
        def is_so():
            found = self.partitions(topic)
            return found and all(
                p["leader_id"] >= 0 and set(p["isr_nodes"]) == set(isr or p["replica_nodes"])
                for p in found.values())
        self.wait(f"{topic}: ISR {isr or 'of all'}", is_so)

    def produce(self, topic, partition, leader, count):
        for i in range(count):
            data = batch([(b"key", b"value %d" % i, [])], int(time.time() * 1000))
            values = {
                "transactional_id": None, "acks": 1, "timeout_ms": TIMEOUT_MS,
                "topics": [{"name": topic, "partitions": [{"index": partition, "records": data}]}]}
            self.wait(f"{topic}: a leader that knows", lambda: not self.ask(
                leader, "Produce", 7, values)["responses"][0]["partitions"][0]["error_code"])


def setup(cluster):
    """Topics with records."""
    made = cluster.ask(CONTROLLER, "CreateTopics", 4, {"timeout_ms": TIMEOUT_MS, "topics": [
        {"name": name, "num_partitions": -1, "replication_factor": -1,
         "assignments": [{"partition_index": p, "broker_ids": ids} for p, ids in where.items()],
         "configs": [UNCLEAN] if name == "unclean" else []} for name, where in TOPICS.items()]})
    assert not any(t["error_code"] for t in made["topics"]), made
    for topic, where in TOPICS.items():
        cluster.wait_for_isr(topic, None)
        for partition, ids in where.items():
            cluster.produce(topic, partition, ids[0], 2)


def reassign(cluster, replicas):
    return cluster.ask(CONTROLLER, "AlterPartitionReassignments", 0, {
        "timeout_ms": TIMEOUT_MS, "topics": [
            {"name": "moved", "partitions": [{"partition_index": 0, "replicas": replicas}]},
            {"name": NO_TOPIC, "partitions": [{"partition_index": 7, "replicas": [1]}]}]},
        recorded=True)


def list_reassignments(cluster, topics):
    return cluster.ask(CONTROLLER, "ListPartitionReassignments", 0,
                       {"timeout_ms": TIMEOUT_MS, "topics": topics}, recorded=True)["topics"]


def move(cluster):
    """A reassignment that waits for a paused broker, is cancelled, and is asked for again."""
    reassign(cluster, [1, 2])
    cluster.wait("a reassignment", lambda: list_reassignments(cluster, None))
    reassign(cluster, None)
    cluster.wait("its end", lambda: not list_reassignments(
        cluster, [{"name": "moved", "partition_indexes": [0]}]))
    reassign(cluster, [1, 2])


def moved(cluster):
    """The paused broker runs again."""
    cluster.wait("the move", lambda: sorted(cluster.partitions("moved")[0]["isr_nodes"]) == [1, 2])
    cluster.wait("its end", lambda: not list_reassignments(cluster, None))


def alone(cluster):
    """Broker 2 is down: records that it will never have."""
    cluster.wait_for_isr("unclean", [1])
    cluster.produce("unclean", 0, 1, RECORDS)


def unclean(cluster):
    """Broker 2 is back while 1 is down: an unclean leader, whose log goes its own way."""
    cluster.wait("an unclean leader", lambda: cluster.partitions("unclean")[0]["leader_id"] == 2)
    cluster.produce("unclean", 0, 2, RECORDS - 2)


def diverged(cluster):
    """Broker 1 is back: its log has to be cut."""
    for topic in TOPICS:
        cluster.wait_for_isr(topic, None)


def admin(cluster):
    """Elections, producer ids, a topic's deletion."""
    some = [{"topic": "golden", "partitions": [0, 1]}, {"topic": NO_TOPIC, "partitions": [0]}]
    for version in (0, 1, 2):
        for topics in (some, None):
            cluster.ask(CONTROLLER, "ElectLeaders", version, {
                "topic_partitions": topics, "timeout_ms": TIMEOUT_MS}, recorded=True)
    cluster.ask(CONTROLLER, "ElectLeaders", 2, {
        "election_type": 1, "topic_partitions": some, "timeout_ms": TIMEOUT_MS}, recorded=True)
    for broker in BROKERS:
        cluster.wait("a producer id", lambda: cluster.ask(broker, "InitProducerId", 0, {
            "transactional_id": None, "transaction_timeout_ms": 60_000})["error_code"] == 0)
    cluster.ask(CONTROLLER, "DeleteTopics", 3,
                {"topic_names": ["moved"], "timeout_ms": TIMEOUT_MS})
    for broker in BROKERS:
        cluster.wait("a deletion", lambda: not cluster.partitions("moved", broker))


def heard_requests(cluster, api, at_least):
    """Yield the decoded requests of an API that the proxies have heard."""
    for path in cluster.heard:
        for text in open(path, encoding="ascii"):
            line = json.loads(text)
            if (line["api"], line["direction"]) == (api, "request") and \
                    line["version"] >= at_least:
                yield decode_request(api, line["version"], bytes.fromhex(line["frame"]))[1]


def versions(cluster):
    """What these brokers do not send to each other, in versions that they understand."""
    state, topic_id, epochs = None, None, {}
    for request in heard_requests(cluster, "AlterPartition", 0):
        epochs[request["broker_id"]] = request["broker_epoch"]
    for request in heard_requests(cluster, "UpdateMetadata", 7):
        for topic in request["topic_states"]:
            if topic["topic_name"] == "golden" and topic["partition_states"]:
                state, topic_id = topic["partition_states"][-1], topic["topic_id"]
    for version in range(4):
        for partition_epoch in (state["zk_version"], 0):
            alter_partition(cluster, version, epochs, topic_id,
                            {**state, "zk_version": partition_epoch})
    offsets_for_epochs(cluster)
    fetch_with_our_tag(cluster, topic_id)


def alter_partition(cluster, version, epochs, topic_id, state):
    """Ask for the ISR that there is (and, with an old epoch, for another one)."""
    sender = next(iter(epochs))
    isr = state["isr"] if state["zk_version"] else [state["leader"]]
    partition = {
        "partition_index": state["partition_index"], "leader_epoch": state["leader_epoch"],
        "partition_epoch": state["zk_version"],
        **({"new_isr": isr} if version < 3 else
           {"new_isr_with_epochs": [{"broker_id": i, "broker_epoch": -1} for i in isr]})}
    topic = {"topic_name": "golden"} if version < 2 else {"topic_id": topic_id}
    cluster.ask(CONTROLLER, "AlterPartition", version, {
        "broker_id": sender, "broker_epoch": epochs[sender],
        "topics": [{**topic, "partitions": [partition]}]}, recorded=True)


def offsets_for_epochs(cluster):
    """As a follower asks; one that can cut its log by Fetch does not."""
    leader = cluster.partitions("unclean")[0]["leader_id"]
    for version in range(5):
        cluster.ask(leader, "OffsetForLeaderEpoch", version, {
            **({"replica_id": 1} if version >= 3 else {}),
            "topics": [{"topic": "unclean", "partitions": [
                {"partition": 0, "leader_epoch": epoch,
                 **({"current_leader_epoch": -1} if version >= 2 else {})}
                for epoch in (0, 1)]}]}, recorded=True)


def fetch_with_our_tag(cluster, topic_id):
    """A tag that Kafka does not know: it has to skip it."""
    leader = cluster.partitions("golden")[0]["leader_id"]
    for version in (12, 15, 17):
        topic = {"topic": "golden"} if version < 13 else {"topic_id": topic_id}
        answer = cluster.ask(leader, "Fetch", version, {
            **({"replica_id": -1} if version < 15 else {}), "max_wait_ms": 0, "min_bytes": 1,
            "max_bytes": 1 << 20, "session_epoch": -1, "topics": [{**topic, "partitions": [{
                "partition": 0, "fetch_offset": 1, "partition_max_bytes": 512,
                "current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1,
                "durable_offset": 0}]}]}, recorded=True)
        partition = answer["responses"][0]["partitions"][0]
        assert partition["error_code"] == 0 and partition["records"], answer


STEPS = {step.__name__: step
         for step in (setup, move, moved, alone, unclean, diverged, admin, versions)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("port", type=int)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--heard", nargs="*", default=[])
    args = parser.parse_args()
    with open(args.out, "a", encoding="ascii") as out:
        STEPS[args.step](Cluster(args.port, args.peer, out, args.heard))


if __name__ == "__main__":
    main()
