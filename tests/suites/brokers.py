# SPDX-License-Identifier: Apache-2.0
"""A broker for one run of a suite: ours or Apache Kafka, with the same settings, in a new folder.
Or a cluster, on a ZooKeeper, of ours or of the last Apache Kafka that knows one.

$STRANDLINE names our program. Everything that a broker leaves is removed when it stops.
"""
import contextlib
import os
import pathlib
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
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
# And what only a Kafka that is alone has: everybody may do everything, until an ACL is stored.
KAFKA_ONLY = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


class BrokerError(Exception):
    """A broker that did not start; the text says why."""


def free_port():
    """A port that is free, and the next one too, below those that the kernel gives to clients, and
    most likely below those that sarama has (29091 to 29095)."""
    for port in range(20000 + os.getpid() % 4500 * 2, 32000, 2):
        try:
            for one in (port, port + 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", one))
        except OSError:
            continue
        return port
    raise BrokerError("no free port")


class Broker:
    """Used with `with`; stopped at its end at the latest.

    In the settings {port} and {next} stand for its ports, and {node} for its id.
    """

    def __init__(self, kind, settings):
        self.kind, self.settings = kind, {**COMMON, **settings}
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="strandline-suites."))
        self.process, self.bootstrap, self.running, self.command = None, None, False, None

    def __enter__(self):
        try:
            port = free_port()
            self.bootstrap = f"127.0.0.1:{port}"
            places = {"port": port, "next": port + 1, "node": self.settings.get("node.id", 1)}
            self.settings = {"advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
                             **{key: str(value).format(**places)
                                for key, value in self.settings.items()}}
            (self._start_kafka if self.kind == "kafka" else self._start_ours)(port)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def _start_kafka(self, port):
        node = self.settings.get("node.id", 1)
        if "zookeeper.connect" in self.settings:
            peer, heap, keys = "kafka-3.9", "256m", {"broker.id": node, **self.settings}
        else:
            peer, heap = "kafka", "512m"
            keys = {**self.settings, **KAFKA_ONLY,
                    "controller.quorum.voters": f"{node}@127.0.0.1:{port + 1}"}
        self.running = True
        self._run_kafka("start", peer, self.dir, str(port),
                        *(f"{key}={value}" for key, value in keys.items()), heap=heap)

    def _run_kafka(self, *args, heap="256m"):
        env = {"HEAP": heap, **os.environ}
        if subprocess.run([KAFKA, *args], env=env, check=False).returncode:
            raise BrokerError("no Apache Kafka")

    def _start_ours(self, port):
        program = os.environ.get("STRANDLINE", ROOT / "build/strandline")
        if not os.access(program, os.X_OK):
            raise BrokerError(f"there is no {program}; build it or set STRANDLINE")
        keys = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", **self.settings,
                "log.dirs": self.dir / "data"}
        sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
        self.command = [program, "serve", *sets]
        self._launch()

    def _launch(self):
        with open(self.dir / "out", "w", encoding="utf-8") as out, \
                open(self.dir / "err", "a", encoding="utf-8") as err:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=err)
        self.running = True
        self._wait_ready()

    def again(self):
        """Start it again, with its data, if it does not run."""
        if self.running:
            return
        if self.kind == "kafka":
            self.running = True
            self._run_kafka("again", self.dir)
        else:
            self._launch()

    def log(self):
        """What it has said up to now."""
        return self._text("log" if self.kind == "kafka" else "err")

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


class Orders(socketserver.StreamRequestHandler):
    """A test's wish, one line: `start N`, `stop N` or `logs N`. It is answered with what to say of
    it, `ok` if there is nothing."""

    def handle(self):
        word, number = self.rfile.readline().decode().split()
        broker = self.server.members[int(number)]
        try:
            answer = {"start": broker.again, "stop": broker.stop, "logs": broker.log}[word]()
        except BrokerError as error:
            answer = str(error)
        self.wfile.write((answer or "ok").encode())


@contextlib.contextmanager
def taking_orders(path, members):
    """A socket at that path takes orders for the members, {id: broker}."""
    with socketserver.ThreadingUnixStreamServer(path, Orders) as server:
        server.members = members
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


class Cluster:
    """Some brokers, used like one. Their ids count up from that of the settings.

    `orders` names a socket for a test that wants to stop one of them (Orders).
    """

    def __init__(self, kind, count, settings):
        self.kind, self.count = kind, count
        self.settings = {"offsets.topic.replication.factor": "3", **settings}
        self.members, self.bootstrap, self.orders = [], None, None
        self.rest = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            zookeeper = stack.enter_context(Zookeeper())
            first = int(self.settings.get("node.id", 1))
            for node in range(first, first + self.count):
                self.members.append(stack.enter_context(Broker(self.kind, {
                    **self.settings, "node.id": node, "zookeeper.connect": zookeeper.servers})))
            self.bootstrap = ",".join(member.bootstrap for member in self.members)
            self.orders = f"{zookeeper.dir}/orders"
            stack.enter_context(taking_orders(self.orders, dict(enumerate(self.members, first))))
            self.rest = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.rest.close()

    def stop(self):
        """Stop them cleanly and return what was wrong with an end, or None."""
        return next(filter(None, [member.stop() for member in self.members]), None)
