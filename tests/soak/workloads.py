# SPDX-License-Identifier: Apache-2.0
"""Who writes and reads while faults happen, and what it makes of the answers.

W1   two idempotent producers with acks=all, eight partitions, two thousand records a second
W2   W1, and two readers of all partitions
W3   W1, and a group of three whose members come and go; what is processed is committed
W7   W2, and somebody who makes, changes and deletes topics all the time
"""
import collections
import os
import re
import struct
import subprocess
import threading
import time

from world import BROKERS, Invalid, Violation, wait_for

PARTITIONS = 8
RATE = 1000  # a second, of each of two producers
ACK = struct.Struct("<QIHHq")  # struct ack of tests/kill: seq, producer, topic, partition, offset
FLUSH_S = 120
# librdkafka 2.0.2: when the connection to an old leader breaks, what follows a batch may be sent to
# the new one before the batch itself. It is out of order, then, and the producer gives up.
SKIPPED = re.compile(r"sequence desynchronization.* base seq (\d+), "
                     r".*last partition error _TRANSPORT .*base seq \d+\.\.(\d+),")


def read_acks(path):
    with open(path, "rb") as file:
        data = file.read()
    return list(ACK.iter_unpack(data[:len(data) // ACK.size * ACK.size]))


class Program:
    """One of the programs of tests/kill, as a client."""

    def __init__(self, world, name, *args):
        self.name = name
        self.out = os.path.join(world.work, f"{name}.{time.monotonic_ns()}.out")
        with open(self.out, "wb") as out:
            self.process = subprocess.Popen(
                world.clients.command(f"{world.tools}/kill/{name}", *args), stdout=out, stderr=out)

    def said(self):
        with open(self.out, "rb") as file:
            return "\n     ".join(file.read().decode(errors="replace").splitlines()[-30:])

    def fail(self, what):
        skipped = SKIPPED.search(self.said())
        if skipped and int(skipped[1]) == int(skipped[2]) + 1:
            raise Invalid("the client has left out a batch")
        raise Violation(f"{self.name} {what}: {self.said()}")

    def check(self):
        """It still runs."""
        if self.process.poll() is not None:
            self.fail("has ended")

    def end(self):
        self.process.terminate()
        try:
            code = self.process.wait(FLUSH_S + 10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Violation(f"{self.name} did not end") from None
        if code:
            self.fail(f"ended with {code}")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Writers:
    """W1."""

    def __init__(self, world, topic):
        self.world = world
        self.topic = topic
        self.mode = f"{topic}:{PARTITIONS}:all"
        self.acks = os.path.join(world.work, f"{topic}.acks")
        self.program = Program(world, "workload", "-p", "2", "-r", str(RATE), "-b", "8000", "-w",
                               str(FLUSH_S), "-d", "eos,msg,topic", world.bootstrap, self.acks, self.mode)

    def check(self):
        self.program.check()

    def count(self):
        return os.path.getsize(self.acks) // ACK.size if os.path.exists(self.acks) else 0

    def end(self):
        """Nothing is wrong any more: everything that was promised has to be there."""
        self.program.end()
        self.verify(self.acks)

    def after_failure(self):
        """What is to be said of the records, whatever else has failed."""
        try:
            self.verify(self.acks)
        except Violation as why:
            return f"records are wrong: {why}"
        return "all that was acknowledged is there"

    def stop(self):
        """However it went: nothing of it runs any more."""
        self.program.kill()

    def verify(self, path):
        """Everything that the file says of records has to be so."""
        status, text = self.world.run(f"{self.world.tools}/kill/verify", self.world.bootstrap, path,
                                      self.mode, timeout=FLUSH_S)
        if status:
            raise Violation(f"{os.path.basename(path)}: {' | '.join(text.splitlines())}")


class Readers(Writers):
    """W2."""

    def __init__(self, world, topic):
        super().__init__(world, topic)
        self.seen = [os.path.join(world.work, f"{topic}.seen{i}") for i in range(2)]
        self.readers = [Program(world, "follow", world.bootstrap, path, self.mode)
                        for path in self.seen]

    def check(self):
        super().check()
        for reader in self.readers:
            reader.check()

    def stop(self):
        super().stop()
        for reader in self.readers:
            reader.kill()

    def end(self):
        super().end()
        for path in self.seen:
            wait_for(lambda p=path: len(read_acks(p)), "what the readers saw",
                     lambda n: n >= self.count())
        for reader in self.readers:
            reader.end()
        for path in self.seen:
            self.verify(path)


class Members(Writers):
    """W3."""

    def __init__(self, world, topic):
        super().__init__(world, topic)
        self.files = []
        self.members = []
        self.committed = collections.Counter()
        self.wrong = None
        self.ending = threading.Event()
        for _ in range(3):
            self.join_one()
        self.thread = threading.Thread(target=self.come_and_go, daemon=True)
        self.thread.start()

    def join_one(self):
        self.files.append(os.path.join(self.world.work, f"{self.topic}.member{len(self.files)}"))
        self.members.append(Program(self.world, "follow", "-g", self.topic, self.world.bootstrap,
                                    self.files[-1], self.mode))

    def offsets(self):
        groups = self.world.ask("groups", "describe", self.topic) or []
        return {p["partition"]: p for g in groups for p in g.get("partitions", [])}

    def look(self):
        """Commits never go back."""
        for partition, at in self.offsets().items():
            offset = at["offset"]
            if offset is None:
                continue
            if offset < self.committed[partition]:
                self.wrong = (f"partition {partition}: committed {self.committed[partition]}, "
                              f"and then {offset}")
            self.committed[partition] = max(self.committed[partition], offset)

    def come_and_go(self):
        last = time.monotonic()
        while not self.ending.wait(0.5):
            self.look()
            if time.monotonic() - last < 4:
                continue
            last = time.monotonic()
            member = self.members.pop(0)
            if self.world.random.randrange(2):
                member.kill()
            else:
                member.process.terminate()
            self.join_one()

    def check(self):
        super().check()
        for member in self.members:
            member.check()
        self.check_wrong()

    def stop(self):
        self.ending.set()
        self.thread.join()
        super().stop()
        for member in self.members:
            member.kill()

    def processed(self):
        return {ack[:4] for path in self.files for ack in read_acks(path)}

    def end(self):
        self.ending.set()
        self.thread.join()
        super().end()
        written = {ack[:4] for ack in read_acks(self.acks)}
        wait_for(lambda: len(written - self.processed()), "records that nobody has processed",
                 lambda n: n == 0)
        for member in self.members:
            member.end()
        for path in self.files:
            self.verify(path)
        self.look()
        self.check_wrong()

    def check_wrong(self):
        if self.wrong:
            raise Violation(self.wrong)


class Churn(Readers):
    """W7."""

    def __init__(self, world, topic):
        super().__init__(world, topic)
        self.is_there = {}  # name -> whether, as far as it is known; None: it is not
        self.done = collections.Counter()
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def change(self, name, will_be, *args):
        done = self.world.tell(*args)
        self.done[args[1] if done else f"{args[1]} failed"] += 1
        if will_be is not None:
            self.is_there[name] = will_be if done else None

    def work(self):
        number = 0
        while not self.ending.is_set():
            name = f"{self.topic}-churn{number % 5}"
            number += 1
            self.change(name, True, "topics", "create", name, "--partitions", "2",
                        "--replication-factor", str(BROKERS))
            self.change(name, None, "configs", "alter", "--topic", name, "--set",
                        f"retention.ms={100000 + number}")
            self.change(name, None, "topics", "alter", name, "--partitions", "4")
            if self.world.random.randrange(3):
                self.change(name, False, "topics", "delete", name)

    def stop(self):
        self.ending.set()
        self.thread.join()
        super().stop()

    def end(self):
        self.ending.set()
        self.thread.join()
        super().end()
        for name, expected in self.is_there.items():
            if expected is not None:
                wait_for(lambda: self.world.ask("topics", "list"), f"whether {name} is there",
                         lambda names, n=name, e=expected: (n in names) == e)
        if not self.done["create"] or not self.done["delete"]:
            raise Violation(f"no topic could be made or deleted: {dict(self.done)}")
        for name, expected in self.is_there.items():
            if expected is not False:
                self.world.tell("topics", "delete", name)


WORKLOADS = {"W1": Writers, "W2": Readers, "W3": Members, "W7": Churn}
