#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fifty members of five kinds in one group that come and go while twenty partitions are written.

    crowd.py churn BOOTSTRAP SECONDS   members are killed (-9), leave, stand still for longer than
                                       their session lasts, and come back; in the end all is quiet,
                                       and every record was read by somebody
    crowd.py history DUMP              what the coordinator has written, as Kafka's dump tool tells
                                       it: commits never go back, no assignment names a partition
                                       twice

In one generation a partition has one owner, by what the members themselves say.
"""
import collections
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

import members

SEED = 1_350
MEMBERS = 50
PARTITIONS = 20
RECORDS_S = 200  # written in a second, to all partitions together
PAUSE_S = 4  # between two rounds
ROUND = 4  # members that come or go in a round, at most
DOWN_MAX = 15  # members that are away at once, at most
WORK_MS = 300  # between reading and committing: who stands still has often read and not committed
QUIET_S = 180
GROUP = TOPIC = "crowd"


class Writer(threading.Thread):
    """Writes until it is stopped; then everything is acknowledged."""

    def __init__(self, bootstrap):
        super().__init__(daemon=True)
        self.stops = threading.Event()
        self.count = 0
        self.kcat = subprocess.Popen(
            ["kcat", "-P", "-q", "-b", bootstrap, "-t", TOPIC, "-K:", "-X", "acks=all"],
            stdin=subprocess.PIPE, text=True)

    def run(self):
        while not self.stops.wait(0.1):
            for _ in range(RECORDS_S // 10):
                self.kcat.stdin.write(f"{self.count}:{self.count}\n")
                self.count += 1
            self.kcat.stdin.flush()

    def end(self):
        self.stops.set()
        self.join()
        self.kcat.stdin.close()
        if self.kcat.wait(60):
            sys.exit("not everything was written")


class Crowd:
    """The members that run, those that are away, and all that ever were."""

    def __init__(self, bootstrap):
        self.bootstrap, self.random = bootstrap, random.Random(SEED)
        self.running = [self.start(i) for i in range(MEMBERS)]
        self.past, self.away, self.paused = [], [], []
        self.counts = collections.Counter()

    def start(self, slot):
        kind = members.OWNERS[slot % len(members.OWNERS)]
        # There are more members than partitions: by their names all kinds are among the owners.
        member = members.Member(kind, self.bootstrap, GROUP, TOPIC, WORK_MS, f"member-{slot:02}")
        member.slot = slot
        return member

    def go(self, member):
        how = self.random.choice(["killed", "left", "paused"])
        self.counts[how] += 1
        self.running.remove(member)
        if how == "paused":
            self.paused.append(member)
            member.process.send_signal(signal.SIGSTOP)
            return
        self.past.append(member)
        self.away.append(member.slot)
        if how == "killed":
            member.kill()
        else:
            member.leave()

    def absent(self):
        return len(self.away) + len(self.paused)

    def come_back(self):
        self.counts["came back"] += 1
        which = self.random.randrange(self.absent())
        if which < len(self.away):
            self.running.append(self.start(self.away.pop(which)))
            return
        member = self.paused.pop(which - len(self.away))
        member.process.send_signal(signal.SIGCONT)
        self.running.append(member)

    def round(self):
        for _ in range(self.random.randint(1, ROUND)):
            if self.absent() and (self.absent() >= DOWN_MAX or self.random.random() < 0.4):
                self.come_back()
            else:
                self.go(self.random.choice(self.running))

    def has_all_kinds(self):
        return {m.name for m in self.running if m.seen} == set(members.OWNERS)

    def check_alive(self):
        for member in self.running:
            if member.process.poll() is not None:
                sys.exit(f"{member.name} ended: {''.join(member.errors)}")

    def everybody(self):
        return self.past + self.paused + self.running

    def seen(self):
        return collections.Counter(record for m in self.everybody() for record in m.seen)

    def owners(self):
        """Return the members that say that they own a partition, by generation and partition."""
        owners = collections.defaultdict(set)
        for member in self.everybody():
            for generation, partitions in list(member.owned):
                for partition in partitions:
                    owners[generation, partition].add(f"{member.name} {id(member)}")
        return owners

    def stop(self):
        for member in self.running:
            member.leave()
        for member in self.everybody():
            member.process.wait(members.STOP_S)


def ends(bootstrap):
    args = [word for p in range(PARTITIONS) for word in ("-t", f"{TOPIC}:{p}:-1")]
    out = subprocess.run(["kcat", "-Q", "-b", bootstrap, *args], check=True, capture_output=True,
                         text=True).stdout
    found = re.findall(r"\[(\d+)\] offset (\d+)", out)
    assert len(found) == PARTITIONS, out
    return {int(partition): int(offset) for partition, offset in found}


def check_owners(crowd):
    owners = crowd.owners()
    for (generation, partition), who in owners.items():
        if len(who) > 1:
            sys.exit(f"generation {generation}: partition {partition} has {sorted(who)}")
    kinds = collections.Counter(name.split()[0] for who in owners.values() for name in who)
    if missing := set(members.OWNERS) - set(kinds):
        sys.exit(f"never an owner: {missing}")
    generations = {generation for generation, _ in owners}
    print(f"{len(generations)} generations with {len(owners)} owners: "
          + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))


def wait_for(what, crowd, is_done, limit_s=QUIET_S):
    begun = time.monotonic()
    while not is_done():
        crowd.check_alive()
        if time.monotonic() - begun > limit_s:
            crowd.stop()
            sys.exit(f"{what}: not within {limit_s} s")
        time.sleep(0.2)
    return time.monotonic() - begun


def churn(bootstrap, seconds):
    writer, crowd = Writer(bootstrap), Crowd(bootstrap)
    try:
        work(bootstrap, int(seconds), writer, crowd)
    finally:
        writer.kcat.kill()
        for member in crowd.everybody():
            member.kill()


def work(bootstrap, seconds, writer, crowd):
    writer.start()
    took_s = wait_for("all kinds are there", crowd, crowd.has_all_kinds)
    print(f"{MEMBERS} members started, all kinds there after {took_s:.1f} s", flush=True)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        crowd.round()
        time.sleep(PAUSE_S)
        crowd.check_alive()
    while crowd.absent():
        crowd.come_back()
    writer.end()
    everything = {(p, o) for p, end in ends(bootstrap).items() for o in range(end)}
    assert len(everything) == writer.count, f"{writer.count} written, {len(everything)} there"
    took_s = wait_for("everything is read", crowd, lambda: everything <= set(crowd.seen()))
    crowd.stop()
    check_owners(crowd)
    seen = crowd.seen()
    print(f"{MEMBERS} members: " + ", ".join(f"{n} {what}" for what, n in crowd.counts.items()))
    print(f"{len(everything)} records, all read {took_s:.1f} s after the last; "
          f"{seen.total() - len(everything)} times one again")


def partitions_of(member):
    assigned = (member["assignment"] or {}).get("assignedPartitions", [])
    return [partition for topic in assigned for partition in topic["partitions"]]


class History:
    """What is wrong in the records of a group, one after the other."""

    def __init__(self, partitions):
        self.partitions, self.offsets, self.generation = partitions, {}, 0
        self.commits = self.assignments = 0

    def commit(self, key, value):
        self.commits += 1
        where = key["topic"], key["partition"]
        if value["offset"] < self.offsets.get(where, 0):
            sys.exit(f"{where}: {value['offset']} behind {self.offsets[where]}")
        self.offsets[where] = value["offset"]

    def assignment(self, value):
        self.assignments += 1
        if value["generation"] < self.generation:
            sys.exit(f"generation {value['generation']} behind {self.generation}")
        self.generation = value["generation"]
        owned = sorted(p for member in value["members"] for p in partitions_of(member))
        if value["members"] and owned != list(range(self.partitions)):
            sys.exit(f"generation {self.generation}: {owned}")


def read_history(text, group, partitions):
    """Of what Kafka's dump tool says: the records of a group, checked."""
    checked = History(partitions)
    for line in text.splitlines():
        found = re.search(r"key: (\{.*?\}\}) payload: (.*)$", line)
        if not found or found[2] == "<null>":
            continue
        key, value = json.loads(found[1]), json.loads(found[2])
        if key["data"]["group"] != group:
            continue
        if key["type"] == "1":
            checked.commit(key["data"], value["data"])
        elif key["type"] == "2":
            checked.assignment(value["data"])
    if not checked.commits or not checked.assignments:
        sys.exit(f"nothing of group {group} is there")
    return checked


def history(path):
    checked = read_history(pathlib.Path(path).read_text(encoding="utf-8"), GROUP, PARTITIONS)
    print(f"{checked.commits} commits that do not go back, "
          f"{checked.assignments} generations stored")


if __name__ == "__main__":
    {"churn": churn, "history": history}[sys.argv[1]](*sys.argv[2:])
