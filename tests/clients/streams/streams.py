#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kafka Streams and Kafka Connect against a running broker, as their jars are.

    streams.py words BOOTSTRAP    word count: stopped and started, with and without its state, which
                                  it then reads from its changelog; exact while nothing is killed,
                                  and never too low behind a kill -9
    streams.py files BOOTSTRAP    Connect in one process copies a file to a topic and the topic to a
                                  file; stopped and started, killed and started

Both are at least once. Files and states are made in the working directory.
"""
import collections
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from peers import CACHE  # noqa: E402

SEED = 1_876
WORDS = [f"word{i}" for i in range(200)]
LINES = 3000
WAIT_S = 60
STOP_S = 30


def java(log, peer, *args):
    path = (CACHE / peer / "cp.txt").read_text(encoding="utf-8")
    return subprocess.Popen(
        ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
         "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
         f"{path}:{CACHE / peer / 'classes'}", *args],
        stdout=log, stderr=subprocess.STDOUT)


class Process:
    """A running program of Kafka's; what it prints is in a file."""

    def __init__(self, name, peer, *args):
        self.name, self.path = name, pathlib.Path(f"{name}.log")
        with open(self.path, "ab") as log:
            self.process = java(log, peer, *args)

    def wait(self, what, is_done):
        """Wait, look now and then, and return the seconds that it took."""
        start = time.monotonic()
        while not is_done():
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended: {self.path.read_text()[-2000:]}")
            if time.monotonic() - start > WAIT_S:
                self.process.kill()
                sys.exit(f"{what}: not within {WAIT_S} s\n{self.path.read_text()[-2000:]}")
            time.sleep(0.1)
        return time.monotonic() - start

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_S)

    def kill(self):
        self.process.kill()
        self.process.wait()


def kcat(bootstrap, *args, text=None):
    return subprocess.run(["kcat", "-b", bootstrap, "-q", *args], input=text, text=True, check=True,
                          capture_output=True).stdout


class Words:
    """The input and the output of the word count."""

    def __init__(self, bootstrap):
        self.bootstrap, self.random = bootstrap, random.Random(SEED)
        self.expected = collections.Counter()
        for topic in ("words-in", "words-out"):
            kcat(bootstrap, "-L", "-t", topic)  # made when it is asked for

    def produce(self):
        lines = [" ".join(self.random.choices(WORDS, k=8)) for _ in range(LINES)]
        self.expected.update(word for line in lines for word in line.split())
        kcat(self.bootstrap, "-P", "-t", "words-in", "-X", "acks=all", text="\n".join(lines) + "\n")

    def counted(self):
        """Return the last count of each word."""
        lines = kcat(self.bootstrap, "-C", "-e", "-t", "words-out", "-f", "%k %s\n").splitlines()
        return {word: int(count) for word, count in map(str.split, lines)}

    def is_exact(self):
        return self.counted() == self.expected

    def is_enough(self):
        counted = self.counted()
        return all(counted.get(word, 0) >= n for word, n in self.expected.items())


def repartitioned(bootstrap):
    """Return how many records are left in the topic between the two halves of the topology."""
    left = 0
    for partition in range(3):
        args = ["-Q", *(word for at in (-2, -1) for word in (
            "-t", f"words-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition:{partition}:{at}"))]
        low, high = (int(line.split()[-1]) for line in kcat(bootstrap, *args).splitlines())
        left += high - low
    return left


def words(bootstrap):
    topics = Words(bootstrap)

    def start(state):
        return Process("words", "streams", "WordCount", bootstrap, state, "words-in", "words-out")

    topics.produce()
    app = start("state-1")
    print(f"counted in {app.wait('the first count', topics.is_exact):.1f} s", flush=True)
    topics.produce()
    app.wait("the second count", topics.is_exact)
    app.stop()
    topics.produce()
    app = start("state-1")
    print(f"went on in {app.wait('going on', topics.is_exact):.1f} s", flush=True)
    app.stop()
    app = start("state-2")
    topics.produce()
    print(f"restored in {app.wait('its state again', topics.is_exact):.1f} s", flush=True)
    app.wait("what is done to be purged", lambda: repartitioned(bootstrap) == 0)
    topics.produce()
    app.kill()
    app = start("state-2")
    print(f"after kill -9 in {app.wait('all again', topics.is_enough):.1f} s", flush=True)
    app.stop()
    print(f"{sum(topics.expected.values())} words, {len(topics.expected)} different")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def write(path, **keys):
    pathlib.Path(path).write_text(
        "".join(f"{key.replace('_', '.')}={value}\n" for key, value in keys.items()),
        encoding="utf-8")


def configure(bootstrap):
    converter = "org.apache.kafka.connect.storage.StringConverter"
    write("worker.properties", bootstrap_servers=bootstrap, key_converter=converter,
          value_converter=converter, offset_storage_file_filename="connect.offsets",
          offset_flush_interval_ms=200, listeners=f"http://127.0.0.1:{free_port()}",
          plugin_discovery="service_load", consumer_session_timeout_ms=6000)
    write("source.properties", name="source", tasks_max=1, file="from.txt", topic="files",
          connector_class="org.apache.kafka.connect.file.FileStreamSourceConnector")
    write("sink.properties", name="sink", tasks_max=1, file="to.txt", topics="files",
          connector_class="org.apache.kafka.connect.file.FileStreamSinkConnector")


class Files:
    """The file that is read and the one that is written."""

    def __init__(self):
        self.lines = []
        pathlib.Path("from.txt").touch()
        pathlib.Path("to.txt").touch()

    def append(self):
        more = [f"line {i}" for i in range(len(self.lines), len(self.lines) + LINES)]
        self.lines += more
        with open("from.txt", "a", encoding="utf-8") as file:
            file.write("\n".join(more) + "\n")

    @staticmethod
    def copied():
        return pathlib.Path("to.txt").read_text(encoding="utf-8").splitlines()

    def is_exact(self):
        return sorted(self.copied()) == sorted(self.lines)  # partitions have no common order

    def is_whole(self):
        return set(self.copied()) == set(self.lines)


def files(bootstrap):
    configure(bootstrap)
    topic = Files()

    def start():
        return Process("connect", "connect", "org.apache.kafka.connect.cli.ConnectStandalone",
                       "worker.properties", "source.properties", "sink.properties")

    topic.append()
    worker = start()
    print(f"copied in {worker.wait('the first copy', topic.is_exact):.1f} s", flush=True)
    topic.append()
    worker.wait("the second copy", topic.is_exact)
    worker.stop()
    topic.append()
    worker = start()
    print(f"went on in {worker.wait('going on', topic.is_exact):.1f} s", flush=True)
    topic.append()
    worker.kill()
    worker = start()
    print(f"after kill -9 in {worker.wait('all again', topic.is_whole):.1f} s", flush=True)
    worker.stop()
    print(f"{len(topic.lines)} lines, {len(topic.copied()) - len(topic.lines)} twice")


if __name__ == "__main__":
    {"words": words, "files": files}[sys.argv[1]](sys.argv[2])
