# SPDX-License-Identifier: Apache-2.0
"""A broker for one run of a suite: ours or Apache Kafka, with the same settings, in a new folder.
Or a cluster of ours.

$STRANDLINE names our program. Everything that a broker leaves is removed when it stops.
"""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KAFKA = ROOT / "tests/tools/kafka"
ZOOKEEPER = ROOT / "tests/tools/zookeeper"
READY_S = 20
STOP_S = 30
# What all suites want; a key that we do not know yet is one that only Kafka has a feature for.
COMMON = {
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
# And what only Kafka has: everybody may do everything, until an ACL is stored.
KAFKA_ONLY = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


class BrokerError(Exception):
    """A broker that did not start; the text says why."""


def free_port():
    """A port that is free, and the next one too, below those that the kernel gives to clients."""
    for port in range(20000 + os.getpid() % 5000 * 2, 32000, 2):
        try:
            for one in (port, port + 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", one))
        except OSError:
            continue
        return port
    raise BrokerError("no free port")


class Broker:
    """Used with `with`; stopped at its end at the latest."""

    def __init__(self, kind, settings):
        self.kind, self.settings = kind, {**COMMON, **settings}
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="strandline-suites."))
        self.process, self.bootstrap, self.running = None, None, False

    def __enter__(self):
        try:
            port = free_port()
            self.bootstrap = f"127.0.0.1:{port}"
            self.settings["advertised.listeners"] = f"PLAINTEXT://{self.bootstrap}"
            (self._start_kafka if self.kind == "kafka" else self._start_ours)(port)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def _start_kafka(self, port):
        voter = f"{self.settings.get('node.id', 1)}@127.0.0.1:{port + 1}"
        self.settings["controller.quorum.voters"] = voter
        keys = [f"{key}={value}" for key, value in {**self.settings, **KAFKA_ONLY}.items()]
        self.running = True
        env = {"HEAP": "512m", **os.environ}
        if subprocess.run([KAFKA, "start", "kafka", self.dir, str(port), *keys], env=env,
                          check=False).returncode:
            raise BrokerError("no Apache Kafka")

    def _start_ours(self, port):
        program = os.environ.get("STRANDLINE", ROOT / "build/strandline")
        if not os.access(program, os.X_OK):
            raise BrokerError(f"there is no {program}; build it or set STRANDLINE")
        keys = {**self.settings, "log.dirs": self.dir / "data",
                "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
        with open(self.dir / "out", "w", encoding="utf-8") as out, \
                open(self.dir / "err", "w", encoding="utf-8") as err:
            self.process = subprocess.Popen([program, "serve", *sets], stdout=out, stderr=err)
        self.running = True
        self._wait_ready()

    def _wait_ready(self):
        for _ in range(READY_S * 20):
            if " ready " in self._text("out"):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise BrokerError(f"our broker did not start: {self._text('err')[-800:]}")

    def _text(self, name):
        return (self.dir / name).read_text(encoding="utf-8")

    def stop(self):
        """Stop it cleanly and return what was wrong with its end, or None."""
        if not self.running:
            return None
        self.running = False
        if self.kind == "kafka":
            subprocess.run([KAFKA, "stop", self.dir], check=False)
            return None
        self.process.terminate()
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"not stopped within {STOP_S} s"
        return f"ended with {status}: {self._text('err')[-800:]}" if status else None


class Zookeeper:
    """Used with `with`; its connect string is `servers`."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="strandline-suites.")
        self.servers = None

    def __enter__(self):
        port = free_port()
        if subprocess.run([ZOOKEEPER, "start", self.dir, str(port)], check=False).returncode:
            self.__exit__()
            raise BrokerError("no ZooKeeper")
        self.servers = f"127.0.0.1:{port}"
        return self

    def __exit__(self, *_):
        subprocess.run([ZOOKEEPER, "stop", self.dir], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


class Cluster:
    """Some brokers of ours, used like one. Their ids count up from that of the settings."""

    kind = "ours"

    def __init__(self, count, settings):
        self.count, self.settings = count, {"offsets.topic.replication.factor": "3", **settings}
        self.members, self.bootstrap, self.rest = [], None, contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            zookeeper = stack.enter_context(Zookeeper())
            first = int(self.settings.get("node.id", 1))
            for node in range(first, first + self.count):
                self.members.append(stack.enter_context(Broker("ours", {
                    **self.settings, "node.id": node, "zookeeper.connect": zookeeper.servers})))
            self.bootstrap = ",".join(member.bootstrap for member in self.members)
            self.rest = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.rest.close()

    def stop(self):
        """Stop them cleanly and return what was wrong with an end, or None."""
        return next(filter(None, [member.stop() for member in self.members]), None)
