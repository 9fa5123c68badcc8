#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a group's first member has its first record, where nobody else is waited for.

    first_record.py BOOTSTRAP

By bare requests (JoinGroup with and without an id, SyncGroup, OffsetFetch, Fetch), and with kcat
from the start of its process. The figures are for people; the bound only says that no timer is
waited for, and leaves room for a machine that is busy with something else.
"""
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "differential"))
from cases_groups import join, subscription, sync  # noqa: E402
from peer import Peer  # noqa: E402

TOPIC = "first-record"
TIMES = 20
BOUND_S = 1.0  # of the median


def read_once(peer, group):
    """Join a new group and return the seconds until a record is there."""
    offer = [("range", subscription(TOPIC))]
    begun = time.monotonic()
    member = peer.ask("JoinGroup", 5, join(group, "", offer))["member_id"]
    joined = peer.ask("JoinGroup", 5, join(group, member, offer))
    synced = peer.ask("SyncGroup", 3, sync(group, member, joined["generation_id"]))
    assert not joined["error_code"] and not synced["error_code"], (joined, synced)
    peer.ask("OffsetFetch", 7, {"group_id": group, "require_stable": True, "topics": [
        {"name": TOPIC, "partition_indexes": [0]}]})
    answer = peer.ask("Fetch", 11, {
        "replica_id": -1, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, "rack_id": "",
        "session_epoch": -1, "forgotten": [], "topics": [{"topic": TOPIC, "partitions": [
            {"partition": 0, "current_leader_epoch": -1, "partition_max_bytes": 1 << 20}]}]})
    assert answer["responses"][0]["partitions"][0]["records"], answer
    return time.monotonic() - begun


def read_with_kcat(bootstrap, group):
    begun = time.monotonic()
    with subprocess.Popen(
            ["kcat", "-b", bootstrap, "-G", group, "-u", "-q", "-X", "auto.offset.reset=earliest",
             TOPIC], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as kcat:
        assert kcat.stdout.readline() == "here\n"
        took_s = time.monotonic() - begun
        kcat.kill()
    return took_s


def report(what, seconds):
    median = statistics.median(seconds)
    print(f"first record {what}: {min(seconds) * 1000:.0f} to {max(seconds) * 1000:.0f} ms, "
          f"median {median * 1000:.0f}")
    if median > BOUND_S:
        sys.exit(f"first record {what}: median above {BOUND_S} s")


def main(bootstrap):
    subprocess.run(["kcat", "-P", "-q", "-b", bootstrap, "-t", TOPIC, "-p", "0"], input="here\n",
                   text=True, check=True)
    peer = Peer("broker", bootstrap, False)
    peer.ask("FindCoordinator", 1, {"key": "first", "key_type": 0})
    report("after JoinGroup", [read_once(peer, f"first-{i}") for i in range(TIMES)])
    report("after kcat's start", [read_with_kcat(bootstrap, f"kcat-{i}") for i in range(TIMES)])


if __name__ == "__main__":
    main(sys.argv[1])
