#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Groups of real clients against a running broker.

    groups.py work BOOTSTRAP     each client: two members share a topic, one is killed, the other
                                 takes over and leaves; then one group of many kinds of clients
    groups.py again BOOTSTRAP    with a broker that was killed meanwhile: a new member reads what
                                 is new and nothing else

A record counts as read when some member printed it; reading it twice is allowed while members are
killed (at least once), and not otherwise. Where the groups have got to is written to GROUPS.json in
the working directory, for the second part.
"""
import json
import pathlib
import subprocess
import sys
import time

import members

PARTITIONS = 3
RECORDS = 90  # of each load
WAIT_S = 60
STATE = pathlib.Path("GROUPS.json")


class Topic:
    """A topic and the end of each of its partitions."""

    def __init__(self, bootstrap, name, ends=None):
        self.bootstrap, self.name = bootstrap, name
        self.ends = ends or [0] * PARTITIONS

    def produce(self, count):
        for partition in range(PARTITIONS):
            lines = "".join(f"{i}\n" for i in range(count // PARTITIONS))
            subprocess.run(["kcat", "-P", "-q", "-b", self.bootstrap, "-t", self.name, "-p",
                            str(partition), "-X", "acks=all"], input=lines, text=True, check=True)
            self.ends[partition] += count // PARTITIONS

    def records(self, begins=(0,) * PARTITIONS):
        return {(p, o) for p in range(PARTITIONS) for o in range(begins[p], self.ends[p])}


def wait(what, is_done, running):
    deadline = time.monotonic() + WAIT_S
    while not is_done():
        for member in running:
            if member.process.poll() is not None:
                sys.exit(f"{member.name} ended: {''.join(member.errors)}")
        if time.monotonic() > deadline:
            notes = "".join(line for m in running for line in [f"{m.name}:\n", *m.errors])
            sys.exit(f"{what}: not within {WAIT_S} s\n{notes}")
        time.sleep(0.05)


def seen_by(*running):
    return {record for member in running for record in member.seen}


def share(topic, running):
    """Produce until every member has read something that came after all had joined."""
    while not all(member.seen for member in running):
        before = [len(member.seen) for member in running]
        topic.produce(PARTITIONS)
        wait("records are read", lambda: topic.records() <= seen_by(*running), running)
        if before == [len(member.seen) for member in running]:
            sys.exit("nobody read what was produced")


def two_members(bootstrap, name):
    topic = Topic(bootstrap, f"groups-{name}")
    topic.produce(RECORDS)
    first = members.Member(name, bootstrap, topic.name, topic.name)
    wait(f"{name} reads", lambda: topic.records() <= seen_by(first), [first])
    second = members.Member(name, bootstrap, topic.name, topic.name)
    share(topic, [first, second])
    second.kill()
    killed_at = time.monotonic()
    topic.produce(RECORDS)
    wait(f"{name} takes over", lambda: topic.records() <= seen_by(first, second), [first])
    took_s = time.monotonic() - killed_at
    first.stop()
    print(f"{name}: {len(topic.records())} records, takeover {took_s:.1f} s", flush=True)
    return topic


def many_kinds(bootstrap):
    kinds = [name for name in members.ALL if name != "kafkajs"][:PARTITIONS]
    topic = Topic(bootstrap, "groups-mixed")
    topic.produce(RECORDS)
    running = [members.Member(name, bootstrap, topic.name, topic.name) for name in kinds]
    share(topic, running)
    topic.produce(RECORDS)
    wait("all kinds read", lambda: topic.records() <= seen_by(*running), running)
    for member in running:
        member.stop()
    print(f"{', '.join(kinds)} in one group: {len(topic.records())} records", flush=True)
    return topic


def work(bootstrap):
    topics = [two_members(bootstrap, name) for name in members.ALL]
    topics.append(many_kinds(bootstrap))
    STATE.write_text(json.dumps({topic.name: topic.ends for topic in topics}), encoding="ascii")


def again(bootstrap):
    for name, ends in json.loads(STATE.read_text(encoding="ascii")).items():
        topic = Topic(bootstrap, name, list(ends))
        topic.produce(RECORDS)
        kind = name.removeprefix("groups-")
        member = members.Member("kcat" if kind == "mixed" else kind, bootstrap, name, name)
        wait(f"{name} goes on", lambda: topic.records(ends) <= seen_by(member), [member])
        member.stop()
        twice = seen_by(member) - topic.records(ends)
        if twice or len(member.seen) != len(set(member.seen)):
            sys.exit(f"{name}: read again after it was committed: {sorted(twice)[:5]}")
        print(f"{name}: went on at {ends}", flush=True)


if __name__ == "__main__":
    {"work": work, "again": again}[sys.argv[1]](sys.argv[2])
