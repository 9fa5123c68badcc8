# SPDX-License-Identifier: Apache-2.0
"""Members of consumer groups: unmodified clients that join, read, commit, and leave at SIGTERM.

Each is a process that prints a line for every record: partition and offset. Its session times out
after 6 s, it starts at the beginning where nothing is committed, and it offers the range assignor.
All but kcat and Java's console consumer also print, when they are assigned partitions,
`generation N PARTITION...`, and all of those but kafkajs let WORK_MS pass between reading and
committing. Their client id is CLIENT_ID: by it a member's id begins, and by that the range assignor
orders them.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = HERE.parent
sys.path.insert(0, str(CLIENTS))
import peers  # noqa: E402
from peers import CACHE  # noqa: E402

STOP_S = 30

# The same clients by their libraries; they say what they own.
OWNERS = ["java-library", "librdkafka", "franz-go", "kafka-python", "kafkajs"]
ALL = ["kcat", "java", "franz-go", "kafka-python", "kafka-python-old", "kafkajs"]


def command(name, bootstrap, group, topic):
    if name == "kcat":
        return ["kcat", "-b", bootstrap, "-G", group, "-u", "-q", "-f", "%p %o\\n",
                "-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=1000",
                "-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=200",
                "-X", "fetch.wait.max.ms=50", "-X", "partition.assignment.strategy=range", topic]
    if name == "java":
        options = {
            "group.id": group, "session.timeout.ms": 6000, "heartbeat.interval.ms": 1000,
            "auto.offset.reset": "earliest", "auto.commit.interval.ms": 200,
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"}
        properties = [x for k, v in options.items() for x in ("--command-property", f"{k}={v}")]
        path = (CACHE / "kafka" / "cp.txt").read_text(encoding="utf-8")
        return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                f"-Dlog4j2.configurationFile=file:{CACHE}/kafka/log4j2.properties", "-cp", path,
                "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap,
                "--topic", topic, *properties, "--formatter-property", "print.partition=true",
                "--formatter-property", "print.offset=true",
                "--formatter-property", "print.value=false"]
    if name == "java-library":
        return [*peers.command("java"), "member", bootstrap, group, topic]
    if name.startswith("kafka-python"):
        return [str(CACHE / name / "bin" / "python"), str(CLIENTS / "kafka-python" / "client.py"),
                "member", bootstrap, group, topic]
    if name == "kafkajs":
        return ["node", str(CLIENTS / "kafkajs" / "member.js"), bootstrap, group, topic]
    return [str(CACHE / name / "client"), "member", bootstrap, group, topic]


class Member:
    """A running member, and the set of (partition, offset) that it has read."""

    def __init__(self, name, bootstrap, group, topic, work_ms=0, client_id="member"):
        env = {**os.environ, "NODE_PATH": str(CACHE / "kafkajs" / "node_modules"),
               "WORK_MS": str(work_ms), "CLIENT_ID": client_id}
        self.name, self.seen, self.owned, self.errors = name, [], [], []
        self.process = subprocess.Popen(
            command(name, bootstrap, group, topic), env=env, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        for stream, take in ((self.process.stdout, self.take), (self.process.stderr, self.note)):
            threading.Thread(target=self.read, args=(stream, take), daemon=True).start()

    def read(self, stream, take):
        for line in stream:
            take(line)

    def take(self, line):
        numbers = [int(number) for number in re.findall(r"\d+", line)]
        if line.startswith("generation"):
            self.owned.append((numbers[0], numbers[1:]))
        else:
            self.seen.append((numbers[0], numbers[1]))

    def note(self, line):
        self.errors = [*self.errors[-20:], line]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def leave(self):
        """Let it leave the group; it commits what it has read."""
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        self.leave()
        self.process.wait(STOP_S)
