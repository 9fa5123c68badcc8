# SPDX-License-Identifier: Apache-2.0
"""The protocol itself: versions, names, broken frames; and what a broker says of itself."""
import struct

from cases import MISSING, TIMEOUT_MS
from cases_data import init

UNKNOWN_KEYS = (1000, -1, 4, 58)


def reheaded(key=None, version=None):
    """Return a change of a frame that overrules its key or version."""
    def mangle(frame):
        old_key, old_version = struct.unpack_from(">hh", frame)
        return struct.pack(">hh", old_key if key is None else key,
                           old_version if version is None else version) + frame[4:]
    return mangle


def cut(count):
    return lambda frame: frame[:len(frame) - count]


def extended(tail):
    return lambda frame: frame + tail


def add_versions(cases):
    for version in (0, 1, 2, 3, 4):
        cases.add("names", "ApiVersions", version, software("strandline", "1.0"))
    for version in (6, 99, 0x7FFF):
        cases.add(f"version {version}", "ApiVersions", 3, software("a", "1"),
                  mangle=reheaded(version=version))
    cases.add("version -1", "ApiVersions", 0, {}, mangle=reheaded(version=-1))
    for name, number in (("", "1"), ("a", ""), ("-a", "1"), ("a-", "1"), ("a b", "1"), ("a", "1 2"),
                         ("a.b-c.9", "1.2-3"), ("ä", "1"), ("a_b", "1"), ("a", "1_2"), ("a\n", "1"),
                         ("x" * 300, "1")):
        cases.add(f"name {name[:9]!r} {number!r}", "ApiVersions", 3, software(name, number))
    for api, versions in cases.ranges.items():
        if api == "ApiVersions":
            continue
        for version in (versions.stop, versions.start - 1, 99):
            cases.add(f"version {version}", api, versions.start, {},
                      mangle=reheaded(version=version))
    for key in UNKNOWN_KEYS:
        cases.add(f"key {key}", "Metadata", 1, {"topics": []}, mangle=reheaded(key=key))


def software(name, version):
    return {"client_software_name": name, "client_software_version": version}


def sample(api):
    """Return a small valid request that changes nothing."""
    return {
        "DescribeConfigs": {"resources": [{"resource_type": 2, "resource_name": "data",
                                           "configuration_keys": ["segment.ms"]}]},
        "Metadata": {"topics": [{"name": "data", "topic_id": bytes(16)}]},
        "InitProducerId": init(),
        "DescribeLogDirs": {"topics": [{"topic": "data", "partitions": [0]}]},
        "DescribeProducers": {"topics": [{"name": "idem", "partition_indexes": [0]}]},
        "DescribeTopicPartitions": {"topics": [{"name": "data"}], "response_partition_limit": 9,
                                    "cursor": None},
        "ListOffsets": {"replica_id": -1, "topics": [{"name": "data", "partitions": [
            {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]}]},
        "OffsetForLeaderEpoch": {"replica_id": -2, "topics": [{"topic": "data", "partitions": [
            {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}]},
        "DeleteTopics": {"topics": [{"name": MISSING, "topic_id": bytes(16)}],
                         "topic_names": [MISSING], "timeout_ms": TIMEOUT_MS},
        "DescribeCluster": {"endpoint_type": 1},
        "FindCoordinator": {"key": "g", "coordinator_keys": ["g"], "key_type": 7},
        "ApiVersions": software("a", "1"),
        "Produce": {"transactional_id": None, "acks": -1, "timeout_ms": TIMEOUT_MS},
        "Fetch": {"replica_id": -1, "session_epoch": -1, "max_bytes": 1000, "rack_id": ""},
    }.get(api, {})


def add_frames(cases):
    """Frames that end early, go on too long, or count wrongly; of every API, oldest and newest."""
    for api, versions in cases.ranges.items():
        for version in sorted({max(versions.start, 3) if api == "Produce" else versions.start,
                               versions.stop - 1}):
            values = sample(api)
            cases.add("sample", api, version, values)
            cases.add("a byte short", api, version, values, mangle=cut(1))
            cases.add("no body", api, version, values, mangle=headers_only)
            cases.add("bytes behind", api, version, values, mangle=extended(b"\0\0\0"))
        for number in range(3):
            length = cases.random.randrange(2, 12)
            cases.add(f"cut {number} by {length}", api, versions.stop - 1, sample(api),
                      mangle=cut(length))
    flexible = {"topics": [{"name": "data", "topic_id": bytes(16)}]}
    for name, tail in (("unknown tag", b"\1\x63\1x"), ("unknown tags", b"\2\x63\1x\x64\0"),
                       ("tags out of order", b"\2\x64\1x\x63\1x"), ("tag twice", b"\2\x63\0\x63\0"),
                       ("tag too long", b"\1\x63\x7fx"), ("tags too many", b"\x7f"),
                       ("count of tags without an end", b"\xff\xff\xff\xff\xff\xff")):
        cases.add(name, "Metadata", 12, flexible, mangle=replace_tail(tail))
    cases.add("count huge", "Metadata", 1, {"topics": []}, mangle=replace_end(b"\x7f\xff\xff\xff"))
    cases.add("count -2", "Metadata", 1, {"topics": []}, mangle=replace_end(b"\xff\xff\xff\xfe"))
    cases.add("null where none may be", "DescribeProducers", 0, {"topics": []},
              mangle=lambda frame: frame[:-2] + b"\0\0")
    cases.add("empty frame", "ApiVersions", 0, {}, mangle=lambda frame: b"")
    cases.add("half a header", "ApiVersions", 0, {}, mangle=lambda frame: frame[:6])
    cases.add("null client id", "ApiVersions", 0, {}, mangle=lambda frame: frame[:8] + b"\xff\xff")
    cases.add("client id of -2", "ApiVersions", 0, {}, mangle=lambda frame: frame[:8] + b"\xff\xfe")
    cases.add("client id cut", "ApiVersions", 0, {}, mangle=lambda frame: frame[:-3])
    cases.add("boolean of two", "DescribeCluster", 0, {}, mangle=lambda frame: frame[:-2] + b"\2\0")


def headers_only(frame):
    """Return the frame's header alone (of version 1: a flexible one misses its tags too)."""
    return frame[:10 + struct.unpack_from(">h", frame, 8)[0]]


def replace_tail(tail):
    return lambda frame: frame[:-1] + tail


def replace_end(end):
    return lambda frame: frame[:-4] + end


def add_about(cases):
    for version in cases.ranges["DescribeCluster"]:
        for kind in (1, 2, 0, 3) if version else (1,):
            cases.add(f"type {kind}", "DescribeCluster", version, {
                "endpoint_type": kind, "include_cluster_authorized_operations": kind == 1,
                "include_fenced_brokers": True})
    cases.add("no operations", "DescribeCluster", 1, {"endpoint_type": 1})
    api = "DescribeLogDirs"
    cases.each("some", api, {"topics": [
        {"topic": "data", "partitions": [0, 2, 9]}, {"topic": MISSING, "partitions": [0]},
        {"topic": "bad name", "partitions": [0]}]})
    cases.each("all", api, {"topics": None})
    cases.add("none", api, 4, {"topics": []})
    cases.add("no partitions", api, 4, {"topics": [{"topic": "data", "partitions": []}]})
    cases.add("topic twice", api, 4, {"topics": [{"topic": "data", "partitions": [0, 0]},
                                                 {"topic": "data", "partitions": [1]}]})


def add_coordinator(cases):
    """Last: Apache Kafka makes its internal topics when it is asked for a coordinator."""
    api = "FindCoordinator"

    def ask(kind, *keys):
        return lambda version: {"key": keys[0], "key_type": kind, "coordinator_keys": list(keys)}

    cases.each("bad type", api, ask(9, "g"), range(1, 7))
    cases.each("negative type", api, ask(-1, "g"), range(1, 7))
    cases.each("empty transaction", api, ask(1, ""), range(1, 7))
    cases.each("share", api, ask(2, "g:AAAAAAAAAAAAAAAAAAAAAA:0"), range(1, 7))
    cases.each("share, bad key", api, ask(2, "g"), range(6, 7))
    cases.add("no keys", api, 4, {"key_type": 0, "coordinator_keys": []})
    cases.each("group", api, ask(0, "g"))
    cases.each("empty group", api, ask(0, ""))
    cases.each("transaction", api, ask(1, "t"), range(1, 7))
    cases.add("some", api, 4, ask(0, "g", "h", "g")(4))
    cases.each("transactional", "InitProducerId", init(transactional_id="t"))
    cases.add("transactional, timeout zero", "InitProducerId", 4, init("t", 0))
    cases.add("transactional, timeout huge", "InitProducerId", 4, init("t", 0x7FFFFFFF))
    cases.add("create internal", "Metadata", 12, {"allow_auto_topic_creation": True, "topics": [
        {"name": "__consumer_offsets", "topic_id": bytes(16)}]})
