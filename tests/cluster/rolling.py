#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three brokers are stopped and started one after the other, twice round, under unmodified clients.

    rolling.py PROGRAM ZOOKEEPER WORKDIR KAFKA-TOOL

A producer of each kind (tests/clients, `write`), idempotent and with acks=all as it is by itself,
writes numbered records to one topic with three replicas and min.insync.replicas=2; a consumer of
each kind reads all of it as the only member of its group, and commits. Nobody hears of an error
that the client does not deal with: it would end. What each producer wrote is there once, in its
order, at the offsets that it was told; each consumer had every record, in order; no committed
position went back, and the last ones are the ends. How long a producer waited is printed and
bounded, and sessions are long: who waits for one to end is found.

With BROKER=kafka the brokers are Apache Kafka 3.9, to compare the times.
"""
import collections
import contextlib
import glob
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import faults
from faults import Cluster, check_logs, check_writer, read_all, wait_for
from waiting import Late

CLIENTS = pathlib.Path(__file__).resolve().parents[1] / "clients"
sys.path[:0] = [str(CLIENTS), str(CLIENTS / "groups")]
import crowd  # noqa: E402
import members  # noqa: E402
import peers  # noqa: E402

KINDS = {"java": "java-library", "librdkafka": "librdkafka", "franz-go": "franz-go"}
TOPIC = "rolling"
PARTITIONS = 6
RATE = 200  # records a second, of each producer
SESSION_MS = 30000
GAP_S = 15  # a partition without an acknowledgement: half a session, and what clients wait at most
AWAY_S = (0, 3)  # how long a broker is away, in each round
GOES_ON = 20  # records of every client and partition between one stop and the next


class Adopted:
    """A process that another program has started, as if we had."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        stat = pathlib.Path(f"/proc/{self.pid}/stat")
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return 0 if stat.read_text().rsplit(") ", 1)[1][0] == "Z" else None
        return 0

    def wait(self, seconds=faults.STOP_S):
        try:
            return faults.wait_for(self.poll, "the end of Apache Kafka", lambda _: True, seconds)
        except Late:
            raise subprocess.TimeoutExpired("kafka", seconds) from None

    def send_signal(self, signo):
        os.kill(self.pid, signo)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class KafkaBroker(faults.Broker):
    """The same, of Apache Kafka."""

    tool = None

    def __init__(self, cluster, number):
        super().__init__(cluster, number)
        self.dir += "/data"

    def run(self, *args):
        subprocess.run([self.tool, *args], check=True)

    def start(self):
        home = os.path.dirname(self.dir)
        if os.path.exists(home):
            self.run("again", home)
        else:
            self.run("start", "kafka-3.9", home, str(self.port), f"broker.id={self.number}",
                     f"zookeeper.connect={self.cluster.zookeeper}/kafka",
                     f"zookeeper.session.timeout.ms={SESSION_MS}",
                     "group.initial.rebalance.delay.ms=0", "offsets.topic.replication.factor=3",
                     "offsets.topic.num.partitions=50", "controlled.shutdown.enable=true")
        self.process = Adopted(int(pathlib.Path(home, "pid").read_text(encoding="ascii")))


class Writer(threading.Thread):
    """Sends numbered records; keeps what was acknowledged and when, and what the client said."""

    def __init__(self, cluster, kind):
        super().__init__(daemon=True)
        self.name = self.kind = kind
        self.acked = {}  # number -> (partition, offset)
        self.times = {p: [] for p in range(PARTITIONS)}
        self.sent = 0
        self.ending = threading.Event()
        self.errors = []
        command = peers.command(kind)
        if kind == "java":  # With the logger of Kafka's tools, which says what is tried again.
            command = peers.java("kafka", peers.CACHE / "java" / "classes", "Client")
            logger = f"file:{peers.CACHE}/kafka/log4j2.properties"
            command.insert(1, f"-Dlog4j2.configurationFile={logger}")
        self.process = subprocess.Popen(
            [*command, "write", cluster.bootstrap(), TOPIC], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.readers = [threading.Thread(target=self.read, args=(stream,), daemon=True)
                        for stream in (self.process.stdout, self.process.stderr)]

    def read(self, stream):
        for line in stream:
            ack = re.fullmatch(rf"(\d+) (\d+) {self.kind} (\d+)\n", line)
            if ack:
                partition, offset, number = map(int, ack.groups())
                self.acked[number] = partition, offset
                self.times[partition].append(time.monotonic())
            else:
                self.errors.append(line)

    def run(self):
        for reader in self.readers:
            reader.start()
        begin = time.monotonic()
        while not self.ending.is_set() and self.process.poll() is None:
            for number in range(self.sent, int((time.monotonic() - begin) * RATE)):
                self.process.stdin.write(f"{number % PARTITIONS} {self.kind} {number}\n")
                self.sent = number + 1
            self.process.stdin.flush()
            time.sleep(0.01)

    def end(self):
        self.ending.set()
        self.join()
        self.process.stdin.close()
        code = self.process.wait(faults.HEAL_S)
        for reader in self.readers:
            reader.join()
        acks = sum(map(len, self.times.values()))
        assert code == 0, f"{self.kind}: the producer ended with {code}: {self.errors[-3:]}"
        assert acks == len(self.acked) == self.sent, f"{self.kind}: {acks} answers to {self.sent}"

    def counts(self):
        return {p: len(times) for p, times in self.times.items()}

    def longest_gap(self):
        """Of any partition: seconds."""
        return max(b - a for times in self.times.values() for a, b in zip(times, times[1:]))

    def troubles(self):
        """How often it said what, in the words that clients have for it."""
        words = r"\b(?:[A-Z]{2,}(?:_[A-Z]+)+|[Dd]isconnected|refused|EOF)\b"
        found = collections.Counter(word for line in self.errors
                                    for word in re.findall(words, line)[:1])
        return ", ".join(f"{n} {word}" for word, n in found.most_common()) or "nothing"


class Reader(members.Member):
    def counts(self):
        return collections.Counter(partition for partition, _ in list(self.seen))

    def check(self, ends):
        """Everything came in order, whatever came again; return how much that was."""
        nexts = collections.Counter()
        for partition, offset in self.seen:
            assert offset <= nexts[partition], \
                f"{self.name}: partition {partition} goes from {nexts[partition]} to {offset}"
            nexts[partition] = max(nexts[partition], offset + 1)
        assert nexts == ends, f"{self.name} has read {nexts} of {ends}"
        return len(self.seen) - sum(ends.values())


def go_on(clients):
    """Every client gets further in every partition."""
    def counts():
        for client in clients:
            assert client.process.poll() is None, f"{client.name} ended: {client.errors[-3:]}"
        return [client.counts() for client in clients]

    before = counts()
    wait_for(lambda: min(now.get(p, 0) - was.get(p, 0) for now, was in zip(counts(), before)
                         for p in range(PARTITIONS)), "records of every client",
             lambda n: n >= GOES_ON)


def roll(cluster, clients, away_s):
    """Each broker comes back to the partitions that it led: each stop takes leaders away."""
    for broker in cluster.brokers:
        led = faults.leaders(cluster, TOPIC).count(broker.number)
        assert led, f"broker {broker.number} leads nothing"
        begin = time.monotonic()
        broker.stop()
        stopped = time.monotonic()
        time.sleep(away_s)
        begun = time.monotonic()
        broker.start()
        wait_for(lambda: cluster.is_whole(TOPIC, PARTITIONS), "whole in-sync sets")
        whole = time.monotonic()
        cluster.tell("leaders", "elect")
        go_on(clients)
        print(f"     broker {broker.number} led {led}, stopped in {stopped - begin:.2f} s, was in "
              f"sync {whole - begun:.2f} s after its start; every client had gone on "
              f"{time.monotonic() - whole:.2f} s later", flush=True)


def work(cluster, writers, readers):
    go_on(writers + readers)
    for away_s in AWAY_S:
        roll(cluster, writers + readers, away_s)
    for writer in writers:
        writer.end()
    total = sum(writer.sent for writer in writers)
    for reader in readers:
        wait_for(lambda r=reader: len(set(r.seen)), f"what {reader.name} has read",
                 lambda n: n >= total)
        reader.stop()
        # Java's runtime has it that who is told to end has not ended well.
        assert reader.process.returncode in (0, 143), f"{reader.name}: {reader.errors[-3:]}"


def check_records(writers, found):
    """Return the ends."""
    for records in found.values():
        assert [offset for offset, _ in records] == list(range(len(records))), "offsets have gaps"
    for writer in writers:
        mark = writer.kind.encode() + b" "
        check_writer(writer, {p: [(offset, int(value[len(mark):])) for offset, value in records
                                  if value.startswith(mark)] for p, records in found.items()})
    ends = {p: len(records) for p, records in found.items()}
    sent = sum(writer.sent for writer in writers)
    assert sum(ends.values()) == sent, f"{sent} records were written, and there are {ends}"
    return ends


def check_commits(broker, tool, ends):
    """By its log, when it has stopped; return how many there were."""
    logs = glob.glob(f"{broker.dir}/__consumer_offsets-*/*.log")
    said = subprocess.run([tool, "tool", "kafka", "org.apache.kafka.tools.DumpLogSegments",
                           "--offsets-decoder", "--files", ",".join(logs)],
                          capture_output=True, text=True, check=True).stdout
    count = 0
    for group in KINDS:
        checked = crowd.read_history(said, group, PARTITIONS)
        last = {partition: offset for (_, partition), offset in checked.offsets.items()}
        assert last == ends, f"{group} has committed {last} of {ends}"
        count += checked.commits
    return count


def check(cluster, writers, readers, tool):
    ends = check_records(writers, read_all(cluster, TOPIC))
    for writer, reader in zip(writers, readers):
        print(f"     {writer.kind}: {writer.sent} records, at most {writer.longest_gap():.2f} s "
              f"without an acknowledgement of a partition; its producer said {writer.troubles()}; "
              f"its consumer read {reader.check(ends)} again in {len(reader.owned)} generations",
              flush=True)
        assert writer.longest_gap() < GAP_S, "that is too long"
    wait_for(lambda: cluster.is_whole(TOPIC, PARTITIONS), "whole in-sync sets")
    check_logs(cluster, TOPIC)
    for broker in cluster.brokers:
        broker.stop()
    commits = check_commits(cluster.brokers[0], tool, ends)
    print(f"ok   {sum(ends.values())} records once and in order, {commits} commits that did not go "
          "back", flush=True)


def main():
    program, zookeeper, home, tool = sys.argv[1:]
    faults.SESSION_MS, faults.PARTITIONS = SESSION_MS, PARTITIONS
    cluster = Cluster(program, zookeeper, home)
    if os.environ.get("BROKER") == "kafka":
        KafkaBroker.tool = tool
        cluster.brokers = [KafkaBroker(cluster, n) for n in (1, 2, 3)]
    clients = []
    for broker in cluster.brokers:
        broker.start()
    try:
        cluster.await_all()
        cluster.tell("topics", "create", TOPIC, "--partitions", str(PARTITIONS),
                     "--replication-factor", "3", "--config", "min.insync.replicas=2")
        wait_for(lambda: cluster.is_whole(TOPIC, PARTITIONS), "whole in-sync sets")
        writers = [Writer(cluster, kind) for kind in KINDS]
        clients += writers
        readers = [Reader(name, cluster.bootstrap(), kind, TOPIC) for kind, name in KINDS.items()]
        clients += readers
        for writer in writers:
            writer.start()
        work(cluster, writers, readers)
        check(cluster, writers, readers, tool)
    except AssertionError as error:
        sys.exit(f"FAIL {error}")
    finally:
        for client in clients:
            client.process.kill()
        for broker in cluster.brokers:
            if not broker.process or broker.process.poll() is None:
                broker.kill()


if __name__ == "__main__":
    main()
