#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three real brokers on three machines, and everything that may happen to them.

    soak.py PROGRAM [CELL...] [--choice] [--seconds N] [--runs N] [--seed N] [--state FILE]
            [--keep DIR]

A cell is a workload and a fault, as W1xF9 (workloads.py, faults.py); without any: the matrix, of
which --choice takes eight cells, once each. In a run the fault goes on for so many seconds; then
everything is healed, and what was promised is held against what is there:

 - who wrote got every record acknowledged, and each is at its offset, unchanged, once, in order;
 - what a reader was shown is still there, and it never went back;
 - the in-sync sets are whole again, and the logs of the three brokers are the same bytes;
 - no process has ended by a signal that nobody sent.

A run with fewer than a hundred acknowledgements, or in which the fault did not bite, is invalid: it
is repeated, and after three times it fails. With --state the results are appended to FILE, and what
it has of the same program is not run again: it stops and goes on at any time.
"""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile

import faults
import net
import workloads
import world as worlds
from waiting import Late, log_bytes, wait_for

ACKS_MIN = 100
TRIES = 3
OFTEN = {"W1xF1", "W1xF5", "W1xF6", "W1xF9"}
RUNS, RUNS_OFTEN = 3, 20
CHOICE = ["W1xF1", "W1xF5", "W2xF6", "W1xF7", "W2xF9", "W1xF10", "W3xF4", "W7xF16"]
MATRIX = [f"{w}x{f}" for f in faults.FAULTS for w in workloads.WORKLOADS]


# ---- one run


def differing(world, topic):
    """Partitions whose logs are not the same bytes at all brokers."""
    return [p for p in range(workloads.PARTITIONS)
            if len({hashlib.sha256(log_bytes(f"{b.place}/data", topic, p)).digest() for b in world.brokers}) > 1]


def misfortunes(world, topic, fault, load, seconds):
    """Let it happen; return how often it has bitten."""
    bites = 0
    for _ in fault(world, topic, faults.Clock(seconds)):
        bites += 1
        load.check()
    return bites


def watch(world, topic, fault, load, seconds):
    """The fault, the healing, and the end of the workload, which checks what it was told."""
    wait_for(load.count, "the first acknowledgements", lambda n: n > ACKS_MIN)
    before = load.count()
    world.healed_s.clear()
    bites = misfortunes(world, topic, fault, load, seconds)
    acks = load.count() - before
    world.heal()
    faults.whole(world, topic)
    after = load.count()
    wait_for(load.count, "acknowledgements afterwards", lambda n: n > after + ACKS_MIN)
    load.check()
    load.end()
    return {"acks": load.count(), "during": acks, "bites": bites,
            "healed_s": round(max(world.healed_s), 1)}


def aftermath(world, topic, load):
    """What the cluster and its records look like when something has failed, and all is healed."""
    for broker in world.brokers:  # a fault may be in the middle of it
        if not broker.is_alive():
            broker.start()
    with contextlib.suppress(worlds.Violation, Late):
        world.heal()
        faults.whole(world, topic)
    _, partitions = world.run(world.program, "cluster", "--partitions", "--bootstrap-server",
                              world.bootstrap)
    return f"{partitions}{load.after_failure()}"


def run(world, cell, number, seconds):
    """One run of a cell; returns what is to be said of it."""
    work, fault = cell.split("x")
    topic = f"{work}-{fault}-{number}".lower()
    wait_for(lambda: world.tell("topics", "create", topic, "--partitions",
                                str(workloads.PARTITIONS), "--replication-factor", "3",
                                "--if-not-exists", "--config", "min.insync.replicas=2"),
             "the topic")
    wait_for(lambda: world.is_whole(topic, workloads.PARTITIONS), "whole in-sync sets")
    load = workloads.WORKLOADS[work](world, topic)
    try:
        found = watch(world, topic, faults.FAULTS[fault], load, seconds)
    except (worlds.Violation, Late) as why:
        raise worlds.Violation(f"{why}\n{aftermath(world, topic, load)}") from None
    finally:
        load.stop()
    wait_for(lambda: differing(world, topic), "equal logs", lambda v: v == [], 20)
    for broker in world.brokers:
        broker.check_end()
    world.tell("topics", "delete", topic)
    if found["during"] < ACKS_MIN or not found["bites"]:
        raise worlds.Invalid(f"{found['during']} acknowledgements, {found['bites']} bites")
    return found


# ---- many runs


class State:
    """What was run of this program, a line each."""

    def __init__(self, path, program):
        self.path = path
        self.program = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()[:12]
        self.done = {}
        if path and os.path.exists(path):
            for line in pathlib.Path(path).read_text(encoding="ascii").splitlines():
                entry = json.loads(line)
                if entry["program"] == self.program and entry["result"] == "ok":
                    self.done[entry["cell"]] = self.done.get(entry["cell"], 0) + 1

    def add(self, cell, result, **more):
        if result == "ok":
            self.done[cell] = self.done.get(cell, 0) + 1
        if self.path:
            with open(self.path, "a", encoding="ascii") as file:
                file.write(json.dumps({"program": self.program, "cell": cell, "result": result,
                                       **more}) + "\n")


def planned(args, state):
    """The cells that are left to run, each cell's first run before any second one."""
    cells = args.cells or (CHOICE if args.choice else MATRIX)
    wanted = {c: args.runs or (1 if args.choice else RUNS_OFTEN if c in OFTEN else RUNS)
              for c in cells}
    left = [(n, c) for c in cells for n in range(state.done.get(c, 0), wanted[c])]
    return [c for _, c in sorted(left, key=lambda nc: nc[0])]


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run_until_valid(world, cell, number, args, state):
    """Returns whether it has passed."""
    for attempt in range(TRIES):
        try:
            found = run(world, cell, f"{number}-{attempt}", args.seconds)
        except worlds.Invalid as why:
            print(f"     {cell}: does not count: {why}", flush=True)
            state.add(cell, "invalid", why=str(why))
            world.heal()
            continue
        except (worlds.Violation, Late, RuntimeError) as why:
            progress("")
            print(f"FAIL {cell}: {why}", flush=True)
            state.add(cell, "failed", why=str(why))
            return False
        progress("")
        what = faults.FAULTS[cell.split("x")[1]].__doc__.splitlines()[0].split(": ")[1]
        print(f"ok   {cell}: {what} It bit {found['bites']} times; {found['acks']} acknowledged, "
              f"{found['during']} of them meanwhile; whole again after {found['healed_s']} s at "
              f"most", flush=True)
        state.add(cell, "ok", **found)
        return True
    print(f"FAIL {cell}: it never bit", flush=True)
    return False


def keep(world, directory):
    if directory:
        # Brokers still run: what goes away meanwhile is not there.
        with contextlib.suppress(shutil.Error):
            shutil.copytree(world.work, directory, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("shadow"))
        print(f"logs and data are in {directory}", flush=True)
    for broker in world.brokers:
        print(f"     broker {broker.number}: {broker.last_words()}", flush=True)


def soak(args):
    state = State(args.state, args.program)
    cells = planned(args, state)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="strandline-soak.") as work:
        world = worlds.World(args.program, work, args.seed)
        for broker in world.brokers:
            broker.start()
        try:
            for i, cell in enumerate(cells):
                progress(f"{cell}, {i + 1} of {len(cells)}, {failed} failed")
                if run_until_valid(world, cell, i, args, state):
                    passed += 1
                    continue
                failed += 1
                keep(world, args.keep)
                break  # what is broken breaks what follows
        finally:
            world.close()
    print(f"{passed} passed, {failed} failed")
    return failed > 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("cells", nargs="*", metavar="CELL", help="as W1xF9; all of the matrix")
    parser.add_argument("--choice", action="store_true", help="eight cells, once each")
    parser.add_argument("--seconds", type=float, default=30, help="of the fault in a run (30)")
    parser.add_argument("--runs", type=int, help="of each cell (3, some 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", help="a file of results, by which it goes on")
    parser.add_argument("--keep", help="a directory for what a failed run leaves")
    args = parser.parse_args()
    unknown = set(args.cells) - set(MATRIX)
    if unknown:
        parser.error(f"no such cell: {' '.join(sorted(unknown))}; there are {' '.join(MATRIX)}")
    return args


def main():
    args = arguments()
    net.enter()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("soak: terminated"))
    sys.exit(soak(args))


if __name__ == "__main__":
    main()
