#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare what two brokers answered to the same probe, field by field.

    compare_probes.py THEIRS.jsonl OURS.jsonl

Both files come from `capture/probe.py`. Answers are paired by API, version and place, decoded, and
freed of what must differ (ids, clocks, addresses, texts). `ALLOWED` names the differences that are
meant, with the reason; one that is not there is printed with the versions in which it shows and
fails, and so does an entry there that no longer shows.
"""
import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "capture"))

import batches  # noqa: E402 (the path is set above)
from names import API_NAMES  # noqa: E402
from probe import NO_TOPIC, strange_id  # noqa: E402
from schemas import decode_response  # noqa: E402

# Fields whose values belong to one broker and moment. Their presence is still compared.
VOLATILE = {
    "topic_id", "host", "port", "cluster_id", "controller_id", "node_id", "log_dir", "timestamp",
    "last_timestamp", "producer_id", "session_id", "partition_size", "total_bytes", "usable_bytes",
    "log_append_time_ms", "leader_epoch", "finalized_features_epoch", "documentation",
}
# What tells the items of a list apart, so that their order does not matter.
LABELS = ["name", "topic", "topic_id", "resource_name", "partition_index", "partition", "index", "api_key"]
MISSING_ID = strange_id(NO_TOPIC)
TEXTS = {"error_message", "message"}

# Differences that are meant: API, part of the path, theirs, ours (`*` for any), and the reason.
# One whose reason starts with OPEN is not meant, but known: it may go away without notice here.
ALLOWED = [
    ("ApiVersions", "_features", "*", "*", "we have no KRaft features to declare"),
    ("ApiVersions", "api_keys[18].max_version", "5", "4", "OPEN KIP-1242 is not served"),
    ("ApiVersions", "answer", "True", "False", "OPEN KIP-1242 is not served"),
    ("*", "error_message", "None", "text", "we say what happened where Kafka says nothing"),
    ("CreateTopics", "configs[flush.on.ack]", "absent", "*", "a key of ours"),
    ("DescribeConfigs", "configs[flush.on.ack]", "absent", "*", "a key of ours"),
    ("*", "[max.decompressed.message.bytes].value", "2147483639", "536870912",
     "a lower bound against decompression bombs"),
    ("*", "[min.insync.replicas].config_source", "3", "5", "Kafka's dynamic default (KIP-966)"),
    ("CreateTopics", "[golden-only-checked].topic_id", "some", "none",
     "a topic that is only checked gets no id"),
    ("DescribeCluster", "cluster_authorized_operations", "8096", "16312",
     "OPEN names operations that a cluster does not have"),
    ("DescribeConfigs", "[ssl.key.password].read_only", "False", "True",
     "no key of a listener can be changed while it runs"),
    ("DescribeLogDirs", "topics[__", "*", "absent", "no groups and no transactions yet"),
    ("DescribeTopicPartitions", "[golden-missing].topic_authorized_operations", "3576",
     "-2147483648", "operations of a topic that is not there are not given"),
    ("Fetch", "aborted_transactions", "[]", "None", "null in a partition with an error"),
    ("FindCoordinator", "error_code", "15", "42", "no groups and no transactions yet"),
    ("Produce", "log_append_time_ms", "some", "none",
     "Kafka gives a duplicate's create time as its append time"),
    ("Produce", "log_start_offset", "0", "-1", "not given with an error"),
]


def plain(name, value):
    """Return a value without what must differ between brokers."""
    if name == "records":
        return [(b.base_offset, b.last_offset_delta, b.attributes, b.record_count,
                 b.producer_id >= 0) for b in batches.split(value or b"")]
    if name in TEXTS:
        return "text" if value else None
    if name in VOLATILE and not isinstance(value, list):
        is_none = value in (None, -1, 0, "", bytes(16))
        return "none" if is_none else "some"
    return value


def flatten(value, path, name, out):
    """Put each leaf into out under its path; list items go by their name or place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            flatten(inner, f"{path}.{key}" if path else key, key, out)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for place, item in enumerate(value):
            label = next((item[k] for k in LABELS if item.get(k) is not None), place)
            if isinstance(label, bytes):
                label = "missing" if label == MISSING_ID else "golden"
            if name == "api_keys" and label not in API_NAMES:
                continue
            flatten(item, f"{path}[{label}]", name, out)
    else:
        out[path] = plain(name, value)


def answers(path):
    """Return {(api, version, place): flat answer}."""
    found, places = {}, collections.Counter()
    for text in open(path, encoding="ascii"):
        line = json.loads(text)
        if line["direction"] != "response":
            continue
        name = line["api"], line["version"]
        _, decoded = decode_response(*name, bytes.fromhex(line["frame"]))
        flat = {}
        flatten(decoded, "", "", flat)
        found[*name, places[name]] = flat
        places[name] += 1
    return found


def differences(theirs, ours):
    """Return {(api, path, theirs, ours): [versions]}."""
    found = collections.defaultdict(list)
    for key in sorted(theirs.keys() | ours.keys()):
        api, version, _ = key
        if key not in theirs or key not in ours:
            found[api, "answer", str(key in theirs), str(key in ours)].append(version)
            continue
        for path in sorted(theirs[key].keys() | ours[key].keys()):
            pair = theirs[key].get(path, "absent"), ours[key].get(path, "absent")
            if pair[0] != pair[1]:
                found[api, path, *map(str, pair)].append(version)
    return found


def covers(entry, difference):
    api, path, theirs, ours, _ = entry
    return (api in ("*", difference[0]) and path in difference[1]
            and theirs in ("*", difference[2]) and ours in ("*", difference[3]))


def main():
    theirs, ours = map(answers, sys.argv[1:])
    found, bad, used = differences(theirs, ours), 0, set()
    for difference, versions in found.items():
        entry = next((e for e in ALLOWED if covers(e, difference)), None)
        used.add(entry)
        if not entry:
            bad += 1
            api, path, theirs_value, ours_value = difference
            print(f"DIFFERS {api} v{min(versions)}-{max(versions)} {path}: "
                  f"theirs {theirs_value}, ours {ours_value}")
    for entry in set(ALLOWED) - used:
        bad += not entry[-1].startswith("OPEN")
        print("NO LONGER DIFFERS", *entry)
    print(f"{len(theirs)} answers compared; {len(found)} differences, {bad} not meant")
    return 1 if bad or not theirs else 0


if __name__ == "__main__":
    sys.exit(main())
