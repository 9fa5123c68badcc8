#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ask a broker every captured API in every version that it offers, and record both directions.

    probe.py BOOTSTRAP --peer "Apache Kafka 4.4.0" --out FRAMES.jsonl [--broker-id 1]

Clients only send the newest version that they share with the broker, so the rest has to be made by
hand. The requests are small and meet existing and missing topics, so that most error fields are
seen too. Each answer is decoded with `schemas.py` before it is recorded; one that leaves bytes
over stops the probe, because then either the table or the capture is wrong.
"""
import argparse
import json
import socket
import struct
import time
import uuid
import zlib

import crc32c
from names import API_KEYS, API_NAMES
from schemas import decode_request, decode_response, encode_request, uvarint

NO_TOPIC = "golden-missing"
PROBE = "strandline-probe 1"
MEMBER_ID_REQUIRED = 79
TIMEOUT_MS = 10_000


class Broker:
    """One connection, one request at a time; every pair of frames goes to the record."""

    def __init__(self, address, peer, out):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.peer, self.out, self.correlation = peer, out, 0

    def receive(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("closed by the broker")
            data += part
        return data

    def ask(self, api, version, values, no_answer=False, recorded=True):
        self.correlation += 1
        frame = encode_request(
            api, API_KEYS[api], version, self.correlation, "golden-probe", values
        )
        decode_request(api, version, frame)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        if recorded:
            self.record(api, version, "request", frame)
        if no_answer:
            return None
        answer = self.receive(struct.unpack(">i", self.receive(4))[0])
        correlation, decoded = decode_response(api, version, answer)
        assert correlation == self.correlation, "answer to another request"
        if recorded:
            self.record(api, version, "response", answer)
        return decoded

    def record(self, api, version, direction, frame):
        peer = PROBE if direction == "request" else self.peer
        self.out.write(json.dumps({
            "peer": peer, "asked_by": PROBE, "api": api, "version": version,
            "direction": direction, "frame": frame.hex(),
        }) + "\n")


def zigzag(value):
    return uvarint((value << 1) ^ (value >> 63))


def record(delta, key, value, headers):
    def sized(data):
        return zigzag(-1) if data is None else zigzag(len(data)) + data

    body = b"\0" + zigzag(delta) + zigzag(delta) + sized(key) + sized(value)
    body += zigzag(len(headers)) + b"".join(sized(k) + sized(v) for k, v in headers)
    return zigzag(len(body)) + body


def batch(records, timestamp, producer=(-1, -1, -1)):
    """Build an uncompressed batch of (key, value, headers)."""
    body = b"".join(record(i, *r) for i, r in enumerate(records))
    last = len(records) - 1
    tail = struct.pack(">hiqqqhii", 0, last, timestamp, timestamp + last, *producer, len(records))
    tail += body
    head = struct.pack(">ibI", -1, 2, crc32c.crc32c(tail))
    return struct.pack(">qi", 0, len(head) + len(tail)) + head + tail


def message(magic, key, value, timestamp):
    """Build a message set of one message in one of the two old formats."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", timestamp) if magic else b"")
    for data in (key, value):
        body += struct.pack(">i", len(data)) + data
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def subscription(topic):
    """Return a consumer's subscription of one topic: version 0, without user data."""
    return struct.pack(">hih", 0, 1, len(topic)) + topic.encode() + struct.pack(">i", -1)


def strange_id(topic):
    """Return a topic id that no broker has."""
    return uuid.uuid5(uuid.NAMESPACE_DNS, topic).bytes


class Probe:
    def __init__(self, broker, topic, broker_id):
        self.broker, self.topic, self.broker_id = broker, topic, broker_id
        self.now = int(time.time() * 1000)
        offered = broker.ask("ApiVersions", 0, {})["api_keys"]
        self.ranges = {
            API_NAMES[a["api_key"]]: range(a["min_version"], a["max_version"] + 1)
            for a in offered if a["api_key"] in API_NAMES
        }
        self.topic_id = bytes(16)

    def all_versions(self, api, *cases):
        """Send each case (a dict, or a function of the version) in every version."""
        for version in self.ranges.get(api, ()):
            for case in cases:
                self.broker.ask(api, version, case(version) if callable(case) else case)

    def setup(self):
        made = self.broker.ask("CreateTopics", 7, {
            "topics": [{"name": self.topic, "num_partitions": 2, "replication_factor": 1}],
            "timeout_ms": TIMEOUT_MS,
        })
        self.topic_id = made["topics"][0]["topic_id"]
        assert made["topics"][0]["error_code"] == 0, made
        self.wait_for_leader()

    def wait_until(self, api, version, values, is_ready):
        """Ask until the answer is good; how often depends on the broker, so none is recorded."""
        for _ in range(100):
            if is_ready(self.broker.ask(api, version, values, recorded=False)):
                return
            time.sleep(0.05)
        raise TimeoutError(f"{api} was never ready")

    def wait_for_leader(self):
        partitions = [{"partition_index": p, "timestamp": -1} for p in (0, 1)]
        self.wait_until(
            "ListOffsets", 3,
            {"replica_id": -1, "topics": [{"name": self.topic, "partitions": partitions}]},
            lambda answer: not any(p["error_code"] for p in answer["topics"][0]["partitions"]))
        self.wait_until("InitProducerId", 0,
                        {"transactional_id": None, "transaction_timeout_ms": 60_000},
                        lambda answer: answer["error_code"] == 0)

    def named(self, version, name_field, from_version, topic=None):
        """Return the topic's field: its id from the given version on, else its name."""
        if version >= from_version:
            return {"topic_id": self.topic_id if topic is None else strange_id(topic)}
        return {name_field: topic or self.topic}

    def produce(self):
        rows = [(b"k%d" % i, b"value %d" % i, [(b"h", b"x"), (b"none", None)]) for i in range(3)]

        def records(version):
            if version < 3:
                return message(1 if version == 2 else 0, b"k", b"old", self.now)
            return batch(rows, self.now)

        def case(partition, topic=None, acks=-1):
            return lambda version: {
                "acks": acks, "timeout_ms": TIMEOUT_MS,
                **({"transactional_id": None} if version >= 3 else {}),
                "topics": [{
                    **self.named(version, "name", 13, topic),
                    "partitions": [{"index": partition, "records": records(version)}],
                }],
            }

        offered = self.ranges["Produce"]
        if offered.start == 0 and offered.stop > 12:
            self.ranges["Produce"] = range(3, offered.stop)  # 4.x offers 0-2 and refuses them
        self.all_versions("Produce", case(0), case(0, NO_TOPIC))
        self.broker.ask("Produce", 7, case(1, acks=0)(7), no_answer=True)
        self.broker.ask("Produce", 8, {"transactional_id": None, "acks": 1, "timeout_ms": 1000,
                                       "topics": [{"name": self.topic, "partitions": [{
                                           "index": 0, "records": b"\0" * 70}]}]})

    def fetch(self):
        def case(offset, topic=None, wait_ms=0, session=(0, -1)):
            def make(version):
                values = {
                    "max_wait_ms": wait_ms, "min_bytes": 1,
                    "topics": [{
                        **self.named(version, "topic", 13, topic),
                        "partitions": [{
                            "partition": 0, "fetch_offset": offset, "partition_max_bytes": 512,
                            **({"current_leader_epoch": -1} if version >= 9 else {}),
                            **({"last_fetched_epoch": -1} if version >= 12 else {}),
                            **({"log_start_offset": -1} if version >= 5 else {}),
                        }],
                    }],
                }
                if version <= 14:
                    values["replica_id"] = -1
                if version >= 3:
                    values["max_bytes"] = 1 << 20
                if version >= 7:
                    values["session_id"], values["session_epoch"] = session
                return values
            return make

        self.all_versions("Fetch", case(0), case(10_000_000), case(0, NO_TOPIC))
        for version in (7, 12, self.ranges["Fetch"].stop - 1):
            opened = self.broker.ask("Fetch", version, case(0, session=(0, 0))(version))
            again = {**case(0)(version), "topics": [], "session_id": opened["session_id"],
                     "session_epoch": 1, "max_wait_ms": 10}
            self.broker.ask("Fetch", version, again)

    def list_offsets(self):
        def case(timestamps):
            def make(version):
                epoch = {"current_leader_epoch": -1} if version >= 4 else {}
                count = {"max_num_offsets": 10} if version == 0 else {}
                return {
                    "replica_id": -1,
                    "topics": [
                        {"name": self.topic, "partitions": [
                            {"partition_index": 0, "timestamp": stamp, **epoch, **count}]}
                        for stamp in timestamps(version)],
                    **({"timeout_ms": TIMEOUT_MS} if version >= 10 else {}),
                }
            return make

        def special(version):
            return -3 if version >= 7 else -2

        self.all_versions("ListOffsets", case(lambda v: [-1]), case(lambda v: [special(v)]),
                          case(lambda v: [self.now + 1]))

    def metadata(self):
        def case(names):
            def make(version):
                if names is None:
                    return {"topics": None if version >= 1 else []}
                return {
                    "topics": [{"name": name} for name in names],
                    **({"allow_auto_topic_creation": False} if version >= 4 else {}),
                }
            return make

        self.all_versions("Metadata", case([self.topic]), case(None))
        for version in self.ranges["Metadata"]:
            if version >= 4:  # older versions would create it
                self.broker.ask("Metadata", version, case([NO_TOPIC])(version))
        for version in self.ranges["Metadata"]:
            if version >= 12:
                self.broker.ask("Metadata", version, {"topics": [
                    {"topic_id": self.topic_id, "name": None},
                    {"topic_id": strange_id(NO_TOPIC), "name": None}],
                    "include_topic_authorized_operations": True})

    def coordinator(self):
        def case(key, key_type):
            return lambda version: {
                **({"key": key} if version <= 3 else {"coordinator_keys": [key]}),
                **({"key_type": key_type} if version >= 1 else {}),
            }

        self.all_versions("FindCoordinator", case("golden-group", 0), case("golden-txn", 1))

    def join(self, group, version, member, instance):
        """Join until a generation begins; returns the last answer."""
        values = {
            "group_id": group, "session_timeout_ms": 30_000, "member_id": member,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": subscription(self.topic)}],
            **({"rebalance_timeout_ms": 60_000} if version >= 1 else {}),
            **({"group_instance_id": instance} if version >= 5 else {}),
            **({"reason": None} if version >= 8 else {}),
        }
        answer = self.broker.ask("JoinGroup", version, values)
        if answer["error_code"] != MEMBER_ID_REQUIRED:
            return answer
        return self.broker.ask("JoinGroup", version, {**values, "member_id": answer["member_id"]})

    def sync(self, group, version, joined, instance):
        assignment = {"member_id": joined["member_id"], "assignment": subscription(self.topic)}
        self.broker.ask("SyncGroup", version, {
            "group_id": group, "generation_id": joined["generation_id"],
            "member_id": joined["member_id"], "assignments": [assignment],
            **({"group_instance_id": instance} if version >= 3 else {}),
            **({"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}),
        })

    def heartbeats(self, group, joined):
        for generation in (joined["generation_id"], joined["generation_id"] + 1):
            self.all_versions("Heartbeat", lambda version: {
                "group_id": group, "generation_id": generation, "member_id": joined["member_id"],
                **({"group_instance_id": None} if version >= 3 else {})})

    def commits(self, group, joined):
        def partition(version, index, metadata):
            return {"partition_index": index, "committed_offset": 2 + index,
                    "committed_metadata": metadata,
                    **({"commit_timestamp": self.now} if version == 1 else {}),
                    **({"committed_leader_epoch": 0} if version >= 6 else {})}

        def case(as_member, topic=None):
            return lambda version: {
                "group_id": group,
                **({"generation_id": joined["generation_id"] if as_member else 77,
                    "member_id": joined["member_id"]} if version >= 1 else {}),
                **({"group_instance_id": None} if version >= 7 else {}),
                **({"retention_time_ms": -1} if 2 <= version <= 4 else {}),
                "topics": [{**self.named(version, "name", 10, topic), "partitions": [
                    partition(version, 0, "noted \u00e9"), partition(version, 1, None)]}]}

        self.all_versions("OffsetCommit", case(True), case(False), case(True, NO_TOPIC))

    def fetched_offsets(self, group):
        def case(everything):
            def make(version):
                def topics(field):
                    return None if everything and version >= 2 else [
                        {**self.named(version, "name", 10), field: [0, 1, 9]}]

                if version <= 7:
                    return {"group_id": group, "topics": topics("partition_indexes"),
                            **({"require_stable": True} if version >= 7 else {})}
                member = {"member_id": None, "member_epoch": -1} if version >= 9 else {}
                return {"groups": [
                    {"group_id": name, "topics": topics("partition_indexes"), **member}
                    for name in (group, "golden-no-group")]}
            return make

        self.all_versions("OffsetFetch", case(False), case(True))

    def one_group(self, version):
        """A member's life in one version of JoinGroup and the nearest of the others."""
        group = f"golden-group-{version}"
        instance = "golden-instance" if version >= 6 else None
        synced = min(version, self.ranges["SyncGroup"].stop - 1)
        joined = self.join(group, version, "", instance)
        self.sync(group, synced, joined, instance)
        if version >= 5:  # a member that nobody knows
            self.join(group, version, "stranger", None)
        if instance:  # comes back as another process
            self.join(group, version, "", instance)

    def groups(self):
        for version in self.ranges["JoinGroup"]:
            self.one_group(version)
        group = "golden-group"
        joined = self.join(group, 4, "", None)
        self.sync(group, 2, joined, None)
        self.sync(group, 5, {**joined, "generation_id": 99}, None)
        self.heartbeats(group, joined)
        self.commits(group, joined)
        self.fetched_offsets(group)
        names = [group, "golden-group-6", "golden-no-group"]
        self.all_versions("DescribeGroups", lambda version: {
            "groups": names, **({"include_authorized_operations": True} if version >= 3 else {})})
        self.all_versions("ListGroups", {}, lambda version: {} if version < 4 else {
            "states_filter": ["Stable", "Empty"],
            **({"types_filter": ["classic"]} if version >= 5 else {})})
        self.broker.ask("OffsetDelete", 0, {"group_id": group, "topics": [
            {"name": name, "partitions": [{"partition_index": 0}]}
            for name in (self.topic, NO_TOPIC)]})
        self.broker.ask("OffsetDelete", 0, {"group_id": "golden-no-group", "topics": []})
        self.all_versions("LeaveGroup", lambda version: {"group_id": group, **(
            {"member_id": joined["member_id"]} if version < 3 else {"members": [
                {"member_id": joined["member_id"], "group_instance_id": None,
                 **({"reason": None} if version >= 5 else {})},
                {"member_id": "", "group_instance_id": "golden-nobody",
                 **({"reason": "removed"} if version >= 5 else {})}]})})
        self.all_versions("DeleteGroups",
                          lambda version: {"groups_names": [group, "golden-group-6"]})

    def topics(self):
        def create(version):
            return {
                "timeout_ms": TIMEOUT_MS,
                "topics": [
                    {"name": f"golden-made-{version}", "num_partitions": 1, "replication_factor": 1,
                     "configs": [{"name": "retention.ms", "value": "3600000"},
                                 {"name": "max.message.bytes", "value": "2000000"}]},
                    {"name": f"golden-placed-{version}", "num_partitions": -1,
                     "replication_factor": -1,
                     "assignments": [{"partition_index": 0, "broker_ids": [self.broker_id]}]}],
            }

        def refused(version):
            return {
                "timeout_ms": TIMEOUT_MS,
                "topics": [{"name": self.topic, "num_partitions": 1, "replication_factor": 1},
                           {"name": "golden bad name", "num_partitions": 1, "replication_factor": 1},
                           {"name": "golden-zero", "num_partitions": 0, "replication_factor": 1},
                           {"name": "golden-wide", "num_partitions": 1, "replication_factor": 9},
                           {"name": "golden-config", "num_partitions": 1, "replication_factor": 1,
                            "configs": [{"name": "no.such.key", "value": "1"}]}],
            }

        def delete(version):
            names = [f"golden-made-{version}", f"golden-placed-{version}", NO_TOPIC]
            if version >= 6:
                return {"topics": [{"name": name} for name in names], "timeout_ms": TIMEOUT_MS}
            return {"topic_names": names, "timeout_ms": TIMEOUT_MS}

        def validate_only(version):
            return {**create(version), "topics": [
                {"name": "golden-only-checked", "num_partitions": 3, "replication_factor": 1}],
                **({"validate_only": True} if version >= 1 else {})}

        self.all_versions("CreateTopics", create, refused)
        self.broker.ask("CreateTopics", 7, validate_only(7))
        self.all_versions("DeleteTopics", delete)
        self.all_versions("CreatePartitions", lambda version: {
            "timeout_ms": TIMEOUT_MS,
            "topics": [{"name": self.topic, "count": 3 + version, "assignments": None},
                       {"name": NO_TOPIC, "count": 4, "assignments": [{"broker_ids": [1]}]}]})
        time.sleep(0.3)

    def configs(self):
        both = [{"resource_type": 2, "resource_name": self.topic},
                {"resource_type": 2, "resource_name": NO_TOPIC}]
        some = ["retention.ms", "cleanup.policy", "max.message.bytes", "compression.type"]
        broker = {"resource_type": 4, "resource_name": str(self.broker_id),
                  "configuration_keys": ["log.retention.ms", "num.io.threads", "ssl.key.password"]}

        def describe(version):
            return {
                "resources": [{**r, "configuration_keys": some} for r in both] + [broker],
                **({"include_synonyms": True} if version >= 1 else {}),
                **({"include_documentation": True} if version >= 3 else {}),
            }

        def describe_all(version):
            return {"resources": [{**both[0], "configuration_keys": None}]}

        def alter(version):
            keys = [{"name": "retention.ms", "value": str(3_600_000 + version)}]
            return {"resources": [{**both[0], "configs": keys}, {**both[1], "configs": keys}]}

        def alter_badly(version):
            return {"resources": [{**both[0], "configs": [
                {"name": "retention.ms", "value": "soon"}]}]}

        def alter_some(version):
            edits = [{"name": "max.message.bytes", "config_operation": 0, "value": "2000000"},
                     {"name": "retention.ms", "config_operation": 1, "value": None}]
            return {"resources": [{**both[0], "configs": edits}, {**both[1], "configs": edits}]}

        def alter_some_badly(version):
            return {"resources": [{**both[0], "configs": [
                {"name": "max.message.bytes", "config_operation": 0, "value": "many"}]}]}

        self.all_versions("AlterConfigs", alter, alter_badly)
        self.all_versions("IncrementalAlterConfigs", alter_some, alter_some_badly)
        self.all_versions("DescribeConfigs", describe, describe_all)

    def the_rest(self):
        self.all_versions("DeleteRecords", {
            "timeout_ms": TIMEOUT_MS,
            "topics": [{"name": self.topic, "partitions": [
                {"partition_index": 0, "offset": 2}, {"partition_index": 1, "offset": 99}]},
                       {"name": NO_TOPIC, "partitions": [{"partition_index": 0, "offset": -1}]}]})
        self.all_versions("InitProducerId", lambda version: {
            "transactional_id": None, "transaction_timeout_ms": 60_000,
            **({"producer_id": -1, "producer_epoch": -1} if version >= 3 else {})})
        self.all_versions("OffsetForLeaderEpoch", lambda version: {
            **({"replica_id": -2} if version >= 3 else {}),
            "topics": [{"topic": name, "partitions": [
                {"partition": 0, "leader_epoch": 0,
                 **({"current_leader_epoch": -1} if version >= 2 else {})},
                {"partition": 77, "leader_epoch": 5,
                 **({"current_leader_epoch": 9} if version >= 2 else {})}]}
                for name in (self.topic, NO_TOPIC)]})
        self.all_versions("DescribeLogDirs", {
            "topics": [{"topic": self.topic, "partitions": [0, 1]}]}, {"topics": None})
        self.all_versions("DescribeCluster", lambda version: {
            "include_cluster_authorized_operations": version == 1,
            **({"endpoint_type": 1} if version >= 1 else {})})
        self.all_versions("DescribeProducers", {
            "topics": [{"name": name, "partition_indexes": [0]} for name in (self.topic, NO_TOPIC)]})
        self.all_versions(
            "DescribeTopicPartitions",
            {"topics": [{"name": self.topic}, {"name": NO_TOPIC}], "response_partition_limit": 2000,
             "cursor": None},
            {"topics": [{"name": self.topic}], "response_partition_limit": 1, "cursor": None},
            {"topics": [{"name": self.topic}], "response_partition_limit": 1,
             "cursor": {"topic_name": self.topic, "partition_index": 1}})
        self.all_versions("ApiVersions", lambda version: {} if version < 3 else {
            "client_software_name": "strandline-probe", "client_software_version": "1",
            **({"cluster_id": None, "node_id": -1} if version >= 5 else {})})
        self.broker.ask("ApiVersions", 3, {"client_software_name": "-bad-",
                                           "client_software_version": ""})

    def idempotent_produce(self):
        made = self.broker.ask("InitProducerId", 4, {
            "transactional_id": None, "transaction_timeout_ms": 60_000, "producer_id": -1,
            "producer_epoch": -1})
        for sequence, epoch in ((0, 0), (0, 0), (7, 0)):  # new, duplicate, out of order
            data = batch([(None, b"once", [])], self.now, (made["producer_id"], epoch, sequence))
            self.broker.ask("Produce", 9, {
                "transactional_id": None, "acks": -1, "timeout_ms": TIMEOUT_MS,
                "topics": [{"name": self.topic,
                            "partitions": [{"index": 0, "records": data}]}]})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("--peer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--topic", default="golden")
    parser.add_argument("--broker-id", type=int, default=1)
    args = parser.parse_args()
    with open(args.out, "a", encoding="ascii") as out:
        probe = Probe(Broker(args.bootstrap, args.peer, out), args.topic, args.broker_id)
        probe.setup()
        for step in (probe.produce, probe.idempotent_produce, probe.fetch, probe.list_offsets,
                     probe.metadata, probe.coordinator, probe.groups, probe.topics,
                     probe.configs, probe.the_rest):
            step()
        for api, versions in sorted(probe.ranges.items()):
            print(f"{api} {versions.start}-{versions.stop - 1}")


if __name__ == "__main__":
    main()
