#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three brokers and what happens to them, under a producer that wants acks=all.

    faults.py PROGRAM ZOOKEEPER WORKDIR [SCENARIO...]

Each scenario has a topic of its own (four partitions, three replicas, min.insync.replicas=2), a
producer that is idempotent, and a fault in the middle. When everything is healed: the in-sync sets
are whole, what was acknowledged is read at its offset, nothing twice, each producer's records in
their order, and the three logs are the same bytes. The longest time that a partition was without
an acknowledgement is printed. A run in which the fault did not bite does not count: it fails.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import OffsetOutOfRangeError

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "differential"), os.path.join(TESTS, "clients", "produce")]
from peer import Peer  # noqa: E402
from refused import NOT_LEADER, OUT_OF_ORDER, PATIENCE_S, produce, produce_as  # noqa: E402
from record_batch import batch, record  # noqa: E402
from waiting import HEAL_S, log_bytes, wait_for  # noqa: E402

SESSION_MS = 4000
OFFSETS_PARTITIONS = 50  # offsets.topic.num.partitions
NOT_COORDINATOR = 16
PARTITIONS = 4
STOP_S = 30
ACKS_MIN = 100  # during a scenario, or it says nothing


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Broker:
    """A broker's process, and what has happened to it in this scenario."""

    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.port = free_port()
        self.dir = os.path.join(cluster.work, f"b{number}")
        self.process = None
        self.story = []
        self.hit_s = None  # when the last thing happened

    def address(self):
        return f"127.0.0.1:{self.port}"

    def settings(self):
        return {
            "node.id": self.number,
            "listeners": f"PLAINTEXT://{self.address()}",
            "default.replication.factor": 3,
            "broker.rack": f"rack{self.number % 2}",
            "log.dirs": self.dir,
            "zookeeper.connect": self.cluster.zookeeper,
            "zookeeper.session.timeout.ms": SESSION_MS,
            "replica.lag.time.max.ms": 3000,
            "group.initial.rebalance.delay.ms": 0,
        }

    def start(self):
        out = open(f"{self.dir}.log", "ab")
        self.process = subprocess.Popen(
            [self.cluster.program, "serve",
             *sum((["--set", f"{key}={value}"] for key, value in
                   {**self.settings(), **self.cluster.settings}.items()), [])],
            stdout=out, stderr=out)

    def send(self, signo):
        self.note(signal.Signals(signo).name)
        self.process.send_signal(signo)

    def stand_still(self):
        """When it returns no thread of it runs any more."""
        self.send(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        wait_for(lambda: {t.joinpath("stat").read_text().rsplit(") ", 1)[1][0]
                          for t in tasks.iterdir()}, "a stopped process", lambda v: v == {"T"})

    def note(self, what):
        """The controller is another case: nobody notices but its peers."""
        rules = (self.cluster.ask("cluster") or {}).get("controller", -1) == self.number
        self.hit_s = time.monotonic()
        self.story.append(f"{what} {self.number}{' (controller)' if rules else ''}")

    def kill(self):
        self.note("kill")
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.note("stop")
        self.process.terminate()
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"broker {self.number} did not stop in {STOP_S} s") from None
        if code != 0:
            raise AssertionError(f"broker {self.number} ended with {code}")


class Cluster:
    settings = {}  # of every broker, beside its own

    def __init__(self, program, zookeeper, work, kind=Broker, count=3):
        self.program = program
        self.zookeeper = zookeeper
        self.work = work
        self.brokers = [kind(self, n) for n in range(1, count + 1)]

    def await_all(self):
        """All brokers are registered."""
        wait_for(lambda: len((self.ask("cluster") or {}).get("brokers", [])), "all brokers",
                 lambda n: n == len(self.brokers))

    @contextlib.contextmanager
    def running(self):
        """From when all brokers are registered until none of their processes is left."""
        try:
            for broker in self.brokers:
                broker.start()
            self.await_all()
            yield
        finally:
            for broker in self.brokers:
                if broker.process and broker.process.poll() is None:
                    broker.process.send_signal(signal.SIGCONT)
                    broker.process.kill()
                    broker.process.wait()

    def bootstrap(self):
        return ",".join(b.address() for b in self.brokers)

    def ask(self, *args):
        """One after the other: who stands still accepts connections and says nothing."""
        for broker in self.brokers:
            done = subprocess.run([self.program, *args, "--json", "--bootstrap-server",
                                   broker.address(), "--timeout-ms", "1000"],
                                  capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout:
                return json.loads(done.stdout)
        return None

    def tell(self, *args):
        for _ in range(30):
            done = subprocess.run([self.program, *args, "--bootstrap-server", self.bootstrap()],
                                  capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
            time.sleep(0.5)
        raise AssertionError(f"{args}: {done.stderr}")

    def controller(self):
        return wait_for(lambda: (self.ask("cluster") or {}).get("controller", -1), "a controller",
                        lambda n: n > 0)

    def partitions(self, topic):
        answer = self.ask("topics", "describe", topic)
        topics = answer if isinstance(answer, list) else (answer or {}).get("topics", [answer])
        return topics[0]["partitions"] if topics and topics[0] else []

    def is_whole(self, topic, count):
        found = self.partitions(topic)
        return len(found) == count and all(
            len(p["isr"]) == 3 and p["leader"] > 0 for p in found)


class Writer(threading.Thread):
    """Sends numbered records; keeps what was acknowledged, and when."""

    def __init__(self, cluster, topic):
        super().__init__(daemon=True)
        self.cluster = cluster
        self.topic = topic
        self.acked = {}  # value -> (partition, offset)
        self.failed = []
        self.times = {p: [] for p in range(PARTITIONS)}
        self.sent = 0
        self.ending = threading.Event()

    def acknowledged(self, value):
        def done(meta):
            self.acked[value] = (meta.partition, meta.offset)
            self.times[meta.partition].append(time.monotonic())
        return done

    def run(self):
        producer = KafkaProducer(
            bootstrap_servers=self.cluster.bootstrap(), acks="all", enable_idempotence=True,
            linger_ms=2, request_timeout_ms=1000, delivery_timeout_ms=120000,
            reconnect_backoff_ms=20, reconnect_backoff_max_ms=200, retry_backoff_ms=20,
            metadata_max_age_ms=1000)
        while not self.ending.is_set():
            value = b"%d" % self.sent
            try:
                producer.send(self.topic, value=value, partition=self.sent % PARTITIONS) \
                    .add_callback(self.acknowledged(value)).add_errback(self.failed.append)
            except Exception as error:  # pylint: disable=broad-except
                self.failed.append(error)
            self.sent += 1
            time.sleep(0.001)
        producer.flush(120)
        producer.close()

    def longest_gap(self):
        """Of any partition: seconds, the partition, and when it began."""
        return max((b - a, p, a) for p, times in self.times.items()
                   for a, b in zip(times, times[1:]))

    def acks_from(self, when):
        return sum(t >= when for times in self.times.values() for t in times)


def read_all(cluster, topic):
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap(), auto_offset_reset="earliest",
                             enable_auto_commit=False)
    parts = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    consumer.assign(parts)
    consumer.seek_to_beginning(*parts)
    ends = consumer.end_offsets(parts)
    found = {p: [] for p in range(PARTITIONS)}
    stop = time.monotonic() + HEAL_S
    while any(consumer.position(p) < ends[p] for p in parts):
        if time.monotonic() > stop:
            raise AssertionError(f"not everything could be read: {ends}")
        for part, records in consumer.poll(timeout_ms=500).items():
            found[part.partition] += [(r.offset, r.value) for r in records]
    consumer.close()
    return found


def check_history(writer, found):
    for records in found.values():
        assert [offset for offset, _ in records] == list(range(len(records))), "offsets have gaps"
    check_writer(writer, found)


def check_writer(writer, found):
    """Of what is found nothing is another writer's."""
    at = {}
    for partition, records in found.items():
        values = [int(value) for _, value in records]
        assert values == sorted(set(values)), f"partition {partition}: order or duplicates"
        at.update({value: (partition, offset) for offset, value in records})
    lost = [v for v in writer.acked if v not in at]
    moved = [v for v in writer.acked if v in at and at[v] != writer.acked[v]]
    assert not lost, f"{len(lost)} acknowledged records are lost, first {lost[:5]}"
    assert not moved, f"{len(moved)} are not at their offset, first {moved[:5]}"


def check_logs(cluster, topic):
    for partition in range(PARTITIONS):
        one = log_bytes(cluster.brokers[0].dir, topic, partition)
        for broker in cluster.brokers[1:]:
            other = log_bytes(broker.dir, topic, partition)
            assert one == other, f"{topic}-{partition}: brokers 1 and {broker.number} differ"


# ---- faults: each returns when it is over, and every broker runs again -------------------------

def leader_of(cluster, topic):
    return wait_for(lambda: cluster.partitions(topic), "a leader",
                    lambda v: len(v) > 0 and v[0]["leader"] > 0)[0]["leader"]


def leaders(cluster, topic):
    return [p["leader"] for p in cluster.partitions(topic)]


def leader_is_killed(cluster, topic):
    """One that is not the controller, which has to notice."""
    ruler = cluster.controller()
    number = next(n for n in leaders(cluster, topic) if n != ruler)
    broker = cluster.brokers[number - 1]
    broker.kill()
    wait_for(lambda: leaders(cluster, topic), "other leaders", lambda v: v and number not in v)
    time.sleep(2)
    broker.start()


def controller_is_killed(cluster, topic):
    del topic
    broker = cluster.brokers[cluster.controller() - 1]
    broker.kill()
    wait_for(cluster.controller, "another controller", lambda n: n != broker.number)
    time.sleep(1)
    broker.start()


def offline_by_metadata(cluster, broker, topic):
    """Replicas of the first partition that another broker says are not there."""
    peer = Peer("a client", cluster.brokers[broker.number % 3].address(), False)
    found = peer.ask("Metadata", 5, {"topics": [{"name": topic}],
                                     "allow_auto_topic_creation": False})["topics"][0]
    return found["partitions"][0]["offline_replicas"]


def follower_is_killed(cluster, topic):
    broker = cluster.brokers[leader_of(cluster, topic) % 3]
    assert offline_by_metadata(cluster, broker, topic) == []
    broker.kill()
    wait_for(lambda: offline_by_metadata(cluster, broker, topic), "an offline replica",
             lambda ids: ids == [broker.number])
    time.sleep(5)
    broker.start()


def leads_by_metadata(peer, topic, may_make=False):
    """Leaders, as an old client asks for them; a broker that stands still makes it wait."""
    found = peer.ask("Metadata", 4, {"topics": [{"name": topic}],
                                     "allow_auto_topic_creation": may_make})["topics"][0]
    return {p["partition_index"]: p["leader_id"] for p in found["partitions"]}


def leader_stands_still(cluster, topic):
    broker = cluster.brokers[leader_of(cluster, topic) - 1]
    peer = Peer("a client", broker.address(), False)
    assert leads_by_metadata(peer, topic)[0] == broker.number
    broker.stand_still()
    told = []
    asker = threading.Thread(target=lambda: told.append(leads_by_metadata(peer, topic)))
    asker.start()
    wait_for(lambda: leader_of(cluster, topic), "another leader", lambda n: n != broker.number)
    time.sleep(2)
    # It finds that its session has ended, and begins another one.
    broker.send(signal.SIGCONT)
    asker.join()
    assert told[0][0] != broker.number, "it tells what was true before it stood still"


def controller_stands_still(cluster, topic):
    """It wakes as the controller, and finds that it is not."""
    del topic
    broker = cluster.brokers[cluster.controller() - 1]
    broker.stand_still()
    wait_for(cluster.controller, "another controller", lambda n: n not in (-1, broker.number))
    time.sleep(1)
    broker.send(signal.SIGCONT)


def all_are_killed(cluster, topic):
    del topic
    for broker in cluster.brokers:
        broker.kill()
    for broker in cluster.brokers:
        broker.start()


def rolling_restart(cluster, topic):
    for broker in cluster.brokers:
        broker.stop()
        broker.start()
        wait_for(lambda: cluster.is_whole(topic, PARTITIONS), "whole in-sync sets")


SCENARIOS = {f.__name__: f for f in (rolling_restart, follower_is_killed, leader_is_killed,
                                     controller_is_killed, leader_stands_still,
                                     controller_stands_still, all_are_killed)}


def under_a_producer(cluster, topic, fault):
    """Let it happen while a new topic is written, from before it until all is well again; the
    writer, which has ended, and when the fault began and was healed."""
    cluster.tell("topics", "create", topic, "--partitions", str(PARTITIONS),
                 "--replication-factor", "3", "--config", "min.insync.replicas=2")
    wait_for(lambda: cluster.is_whole(topic, PARTITIONS), "whole in-sync sets")
    writer = Writer(cluster, topic)
    writer.start()
    wait_for(lambda: len(writer.acked), "the first acknowledgements", lambda n: n > ACKS_MIN)
    for broker in cluster.brokers:
        broker.story = []
    begin = time.monotonic()
    fault(cluster, topic)
    wait_for(lambda: cluster.is_whole(topic, PARTITIONS), "whole in-sync sets")
    healed = time.monotonic()
    wait_for(lambda: writer.acks_from(healed), "acknowledgements behind it",
             lambda n: n > ACKS_MIN)
    writer.ending.set()
    writer.join(150)
    return writer, begin, healed


def run(cluster, name):
    topic = name.replace("_", "-") + str(time.monotonic_ns() % 1000000)
    writer, begin, healed = under_a_producer(cluster, topic, SCENARIOS[name])
    assert not writer.failed, f"the producer had {len(writer.failed)} errors: {writer.failed[0]!r}"
    assert len(writer.acked) == writer.sent, f"{writer.sent - len(writer.acked)} without an answer"
    check_history(writer, read_all(cluster, topic))
    wait_for(lambda: cluster.is_whole(topic, PARTITIONS), "whole in-sync sets")
    check_logs(cluster, topic)
    gap, partition, since = writer.longest_gap()
    story = ", ".join(what for broker in cluster.brokers for what in broker.story)
    print(f"ok   {name}: {len(writer.acked)} records, longest time without an acknowledgement "
          f"{gap:.2f} s (partition {partition}, from {since - begin:.1f} s on), whole again after "
          f"{healed - begin:.1f} s; {story}", flush=True)


def configurations_reach_everybody(cluster):
    """Changed at one broker, in force at all."""
    cluster.tell("topics", "create", "configured", "--partitions", "1",
                 "--replication-factor", "3")
    for broker in cluster.brokers:
        value = str(1000000 + broker.number)
        done = subprocess.run([cluster.program, "configs", "alter", "--topic", "configured", "--set",
                               f"retention.ms={value}", "--bootstrap-server", broker.address()],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for other in cluster.brokers:
            def described(at=other):
                return subprocess.run(
                    [cluster.program, "configs", "describe", "--topic", "configured",
                     "--bootstrap-server", at.address()],
                    capture_output=True, text=True, check=False).stdout
            wait_for(described, f"retention.ms of broker {broker.number} at {other.number}",
                     lambda text, v=value: v in text, 10)
    print("ok   configurations_reach_everybody", flush=True)


def racks_are_known(cluster):
    """Brokers say where they stand, and two replicas are in two racks (1 and 3 share one)."""
    racks = {b["broker"]: b["rack"] for b in cluster.ask("cluster")["brokers"]}
    assert racks == {1: "rack1", 2: "rack0", 3: "rack1"}, racks
    cluster.tell("topics", "create", "racks", "--partitions", "6", "--replication-factor", "2")
    for partition in cluster.partitions("racks"):
        assert len({racks[n] for n in partition["replicas"]}) == 2, partition
    print("ok   racks_are_known", flush=True)


def replicas_are_elsewhere(cluster):
    """Who has none sends clients to look for them; one that is nowhere is unknown."""
    for index, partition in enumerate(cluster.partitions("racks") + [{"replicas": []}]):
        for broker in cluster.brokers:
            if broker.number in partition["replicas"]:
                continue
            peer = Peer(f"broker {broker.number}", broker.address(), False)
            for api, version in (("ListOffsets", 7), ("Fetch", 11), ("Produce", 7)):
                said = ask_partition(peer, api, version, index)
                assert said == (6 if partition["replicas"] else 3), \
                    f"{api} of {index} at broker {broker.number}: error {said}"
    print("ok   replicas_are_elsewhere", flush=True)


def ask_partition(peer, api, version, index):
    """An error code."""
    asked = {
        "ListOffsets": {"replica_id": -1, "isolation_level": 0, "topics": [
            {"name": "racks", "partitions": [{"partition_index": index, "timestamp": -1,
                                              "current_leader_epoch": -1}]}]},
        "Fetch": {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20,
                  "rack_id": "", "session_epoch": -1, "forgotten": [], "topics": [
                      {"topic": "racks", "partitions": [
                          {"partition": index, "current_leader_epoch": -1,
                           "partition_max_bytes": 1 << 20}]}]},
        "Produce": {"transactional_id": None, "acks": -1, "timeout_ms": 10000, "topics": [
            {"name": "racks", "partitions": [
                {"index": index, "records": batch([record(0)], int(time.time() * 1000))}]}]}}
    said = peer.ask(api, version, asked[api])
    return said["topics" if api == "ListOffsets" else "responses"][0]["partitions"][0]["error_code"]


def topics_have_replicas_without_being_told(cluster):
    """Of default.replication.factor, made by an administrator or because somebody asks."""
    cluster.tell("topics", "create", "made")
    peer = Peer("a client", cluster.brokers[1].address(), False)
    wait_for(lambda: leads_by_metadata(peer, "asked-for", True), "a topic that was asked for")
    for topic in ("made", "asked-for"):
        replicas = cluster.partitions(topic)[0]["replicas"]
        assert len(replicas) == 3, f"{topic}: {replicas}"
    print("ok   topics_have_replicas_without_being_told", flush=True)


def topics_are_everywhere_when_made(cluster):
    """Whoever is asked next knows of it, and who leads."""
    for i in range(20):
        cluster.tell("topics", "create", f"new{i}", "--partitions", "3", "--replication-factor",
                     "3")
        for broker in cluster.brokers:
            done = subprocess.run([cluster.program, "topics", "describe", f"new{i}", "--json",
                                   "--bootstrap-server", broker.address()],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"topic {i} at broker {broker.number}: {done.stderr}"
            leads = [p["leader"] for p in json.loads(done.stdout)[0]["partitions"]]
            assert min(leads) > 0, f"topic {i} at broker {broker.number} is led by {leads}"
    print("ok   topics_are_everywhere_when_made", flush=True)


def offsets_behind_the_end_are_refused(cluster):
    """Whoever leads is sure of it by now, whatever has happened to its sessions."""
    cluster.tell("topics", "create", "short", "--partitions", "3", "--replication-factor", "3")
    wait_for(lambda: len(cluster.partitions("short")) == 3, "a topic")
    for partition in range(3):
        consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap(), auto_offset_reset="none",
                                 enable_auto_commit=False)
        part = TopicPartition("short", partition)
        consumer.assign([part])
        consumer.seek(part, 1000)
        try:
            consumer.poll(timeout_ms=10000)
            raise AssertionError(f"an offset behind the end of {part} was not refused")
        except OffsetOutOfRangeError:
            consumer.close()
    print("ok   offsets_behind_the_end_are_refused", flush=True)


def gaps_may_be_filled_from_elsewhere(cluster):
    """What a batch leaves out may have been refused by who led before, and come a moment later."""
    cluster.tell("topics", "create", "gaps", "--partitions", "1", "--replication-factor", "3")
    peer = Peer("a client", cluster.brokers[leader_of(cluster, "gaps") - 1].address(), False)
    number = peer.ask("InitProducerId", 1, {
        "transactional_id": None, "transaction_timeout_ms": -1})["producer_id"]
    for seconds, sequence, wanted in (
            (0, 0, 0), (0, 2, NOT_LEADER), (0, 1, 0), (0, 2, 0),
            (PATIENCE_S, 7, NOT_LEADER),  # another gap has its own time
            (PATIENCE_S, 7, OUT_OF_ORDER)):
        time.sleep(seconds)
        got = produce(peer, "gaps", number, sequence)
        assert got == wanted, f"batch {sequence}: error {got} instead of {wanted}"
    print("ok   gaps_may_be_filled_from_elsewhere", flush=True)


def assert_names(leader, answer, part):
    assert part["error_code"] == NOT_LEADER, part
    assert part["current_leader"]["leader_id"] == leader.number, part
    nodes = [(n["node_id"], n["port"]) for n in answer["node_endpoints"]]
    assert nodes == [(leader.number, leader.port)], nodes


def who_does_not_lead_says_who_does(cluster):
    """Newer clients go there at once (KIP-951)."""
    cluster.tell("topics", "create", "hints", "--partitions", "1", "--replication-factor", "3")
    leader = cluster.brokers[leader_of(cluster, "hints") - 1]
    for broker in cluster.brokers:
        if broker is leader:
            continue
        peer = Peer("a client", broker.address(), False)
        answer = produce_as(peer, 10, "hints", -1, -1)
        assert_names(leader, answer, answer["responses"][0]["partitions"][0])
        topic = peer.ask("Metadata", 12, {"topics": [{"topic_id": bytes(16), "name": "hints"}],
                                          "allow_auto_topic_creation": False})["topics"][0]
        answer = peer.ask("Fetch", 16, {
            "max_wait_ms": 0, "max_bytes": 1 << 20, "session_epoch": -1, "rack_id": "",
            "topics": [{"topic_id": topic["topic_id"], "partitions": [
                {"partition": 0, "current_leader_epoch": -1, "partition_max_bytes": 1 << 20}]}]})
        assert_names(leader, answer, answer["responses"][0]["partitions"][0])
    print("ok   who_does_not_lead_says_who_does", flush=True)


def fetched_parts(broker):
    """Partitions in all answers to fetches."""
    said = pathlib.Path(f"{broker.dir}.log").read_text()
    url = re.findall(r"ready.* (http://\S+)", said)[-1]
    text = urllib.request.urlopen(f"{url}/metrics", timeout=10).read().decode()
    return int(re.search(r"^kafka_server_brokertopicmetrics_totalfetchrequests_total (\d+)", text,
                         re.MULTILINE)[1])


def partitions_that_rest_cost_nothing(cluster):
    """Followers do not name all of them again for each record of one."""
    count, records = 300, 200
    cluster.tell("topics", "create", "resting", "--partitions", str(count),
                 "--replication-factor", "3")
    wait_for(lambda: [p for p in cluster.partitions("resting") if len(p["isr"]) == 3],
             "whole in-sync sets", lambda whole: len(whole) == count)
    leader = cluster.brokers[leader_of(cluster, "resting") - 1]
    peer = Peer("a client", leader.address(), False)
    produce(peer, "resting", -1, -1)
    before = fetched_parts(leader)
    for _ in range(records):
        assert produce(peer, "resting", -1, -1) == 0
    named = fetched_parts(leader) - before
    assert named < records * 20, f"{records} records, and {named} partitions in fetches"
    print("ok   partitions_that_rest_cost_nothing", flush=True)


def offset_error(peer, group):
    return peer.ask("OffsetFetch", 5, {"group_id": group, "topics": None})["error_code"]


def coordinator_of(cluster, group):
    number = wait_for(lambda: Peer("a client", cluster.brokers[0].address(), False).ask(
        "FindCoordinator", 3, {"key": group})["node_id"], "a coordinator", lambda n: n > 0)
    return cluster.brokers[number - 1]


def commit_error(peer, group):
    answer = peer.ask("OffsetCommit", 7, {
        "group_id": group, "generation_id": -1, "member_id": "", "group_instance_id": None,
        "topics": [{"name": "short", "partitions": [
            {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1,
             "committed_metadata": ""}]}]})
    return answer["topics"][0]["partitions"][0]["error_code"]


def a_commit_that_waits_does_not_hold_a_stop(cluster):
    """Of an offset, and its followers do not come; nor does a controller that moves it."""
    group = next(name for name in map("waits{}".format, range(1000))
                 if coordinator_of(cluster, name).number != cluster.controller())
    coordinator = coordinator_of(cluster, group)
    peer = Peer("a client", coordinator.address(), False)
    wait_for(lambda: commit_error(peer, group), "a committed offset", lambda e: e == 0)
    others = [b for b in cluster.brokers if b is not coordinator]
    for broker in others:
        broker.stand_still()
    told = []
    asker = threading.Thread(target=lambda: told.append(commit_error(peer, group)))
    asker.start()
    asker.join(1)
    assert not told, f"the commit was answered with {told[0]}"
    coordinator.stop()
    asker.join()
    for broker in others:
        broker.send(signal.SIGCONT)
    coordinator.start()
    cluster.await_all()
    print("ok   a_commit_that_waits_does_not_hold_a_stop", flush=True)


def a_coordinator_that_hears_nobody_is_none(cluster):
    """Its followers are as good as its session: without both, others may coordinate its groups."""
    # Alone in sync it would stay sure of itself, and rightly.
    wait_for(lambda: cluster.is_whole("__consumer_offsets", OFFSETS_PARTITIONS),
             "whole in-sync sets")
    coordinator = coordinator_of(cluster, "heard")
    peer = Peer("a client", coordinator.address(), False)
    wait_for(lambda: offset_error(peer, "heard"), "the offsets of a group", lambda e: e == 0)
    zookeeper = int(pathlib.Path(cluster.work, "zookeeper", "1", "pid").read_text())
    os.kill(zookeeper, signal.SIGSTOP)
    time.sleep(SESSION_MS / 1000)
    assert offset_error(peer, "heard") == 0, "its followers fetch, and it does not answer"
    others = [b for b in cluster.brokers if b is not coordinator]
    for broker in others:
        broker.stand_still()
    wait_for(lambda: offset_error(peer, "heard"), "doubts", lambda e: e == NOT_COORDINATOR, 5)
    for broker in others:
        broker.send(signal.SIGCONT)
    os.kill(zookeeper, signal.SIGCONT)
    wait_for(lambda: [offset_error(Peer("a client", b.address(), False), "heard")
                      for b in cluster.brokers], "a coordinator", lambda errors: 0 in errors)
    print("ok   a_coordinator_that_hears_nobody_is_none", flush=True)


def main():
    program, zookeeper, work, *names = sys.argv[1:]
    cluster = Cluster(program, zookeeper, work)
    cluster.settings = {"http.address": "127.0.0.1:0"}
    failed = 0
    names = names or list(SCENARIOS)
    with cluster.running():
        configurations_reach_everybody(cluster)
        topics_have_replicas_without_being_told(cluster)
        topics_are_everywhere_when_made(cluster)
        racks_are_known(cluster)
        who_does_not_lead_says_who_does(cluster)
        replicas_are_elsewhere(cluster)
        for name in names:
            try:
                run(cluster, name)
            except AssertionError as error:
                failed += 1
                print(f"FAIL {name}: {error}", flush=True)
                break
        else:
            offsets_behind_the_end_are_refused(cluster)
            gaps_may_be_filled_from_elsewhere(cluster)
            partitions_that_rest_cost_nothing(cluster)
            a_commit_that_waits_does_not_hold_a_stop(cluster)
            a_coordinator_that_hears_nobody_is_none(cluster)
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(failed)


if __name__ == "__main__":
    main()
