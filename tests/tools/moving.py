#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `tests/check/45-kafka-dirs.sh` asks of a broker before and after its directory changes hands.

    moving.py fill BOOTSTRAP          topics of every kind that a directory can hold
    moving.py snap BOOTSTRAP FILE     all that a reader can know of every partition, but of `flow`
    moving.py same OLD NEW TOPIC...   compare two snapshots, but for these topics; --but-epochs
    moving.py flow BOOTSTRAP FILE     number records with one idempotent producer until FILE.stop is
                                      there; FILE then holds how many were acknowledged
    moving.py group BOOTSTRAP         a consumer group has the offset that `fill` committed
    moving.py goes FILE               wait until it has been acknowledged more
    moving.py flown BOOTSTRAP FILE    each of them is there once, in order
    moving.py alter BOOTSTRAP TOPIC KEY=VALUE
    moving.py start BOOTSTRAP TOPIC   wait until the log start of partition 0 is above 0
    moving.py write BOOTSTRAP TOPIC   a few records more; --new: make the topic first

A snapshot is taken from the wire: log start, high watermark, last stable offset, the bytes of each
stored batch, aborted transactions, epochs with their ends, and the state of producers. The broker
patches nothing in a stored batch, so equal bytes mean equal records, offsets and epochs.
"""
import hashlib
import json
import os
import pathlib
import socket
import struct
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

sys.path.insert(0, str(pathlib.Path(__file__).parent / "capture"))
from names import API_KEYS  # noqa: E402
from schemas import decode_response, encode_request  # noqa: E402

DAY_MS = 24 * 3600 * 1000
OLD_MS = int(time.time() * 1000) - 45 * DAY_MS
SEGMENT = {"segment.bytes": "1048576"}  # the least that Kafka 4 takes
FLOW = "flow"
EPOCHS = range(40)
HEADER = struct.Struct(">qiibIHi")  # base offset, length, epoch, magic, crc, attributes, last delta


# ---- Writing --------------------------------------------------------------------------------

def producer(bootstrap, **settings):
    return Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 2,
                     "batch.size": 16384, "reconnect.backoff.max.ms": 300,
                     **{k.replace("_", "."): v for k, v in settings.items()}})


def failed(err, _message):
    if err:
        raise SystemExit(f"a record was refused: {err}")


def write(p, topic, count, size=1000, partition=0, keys=0, **settings):
    for i in range(count):
        key = b"key-%d" % (i % keys) if keys else None
        value = (b"%s %d " % (topic.encode(), i)).ljust(size, b"%x" % (i % 16))
        p.produce(topic, value, key, partition, on_delivery=failed, **settings)
        p.poll(0)
    if p.flush(60):
        raise SystemExit(f"{topic}: not all records were acknowledged")


def create(bootstrap, topics):
    admin = AdminClient({"bootstrap.servers": bootstrap})  # Its answers end with it.
    for future in admin.create_topics(topics).values():
        future.result(30)


def create_all(bootstrap):
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", **SEGMENT}
    keep = {"retention.ms": "-1", **SEGMENT}
    topics = [
        NewTopic("kept", 2, 1, config=keep),
        NewTopic("aged", 1, 1, config=keep),
        NewTopic("limited", 1, 1, config=keep),
        NewTopic("txns", 1, 1, config=SEGMENT),
        NewTopic("trimmed", 1, 1), NewTopic("empty", 3, 1), NewTopic("doomed", 2, 1),
        NewTopic("compacted", 1, 1, config=compact), NewTopic(FLOW, 1, 1, config=SEGMENT),
    ]
    create(bootstrap, topics)


def transactions(bootstrap):
    p = producer(bootstrap, transactional_id="moving")
    p.init_transactions(60)
    for i in range(24):
        p.begin_transaction()
        write(p, "txns", 100)
        if i % 3 == 1:
            p.abort_transaction(60)
        else:
            p.commit_transaction(60)


def open_transaction(bootstrap):
    """Left open: the caller must not end the process by the usual way."""
    p = producer(bootstrap, transactional_id="moving-open", transaction_timeout_ms=800_000)
    p.init_transactions(60)
    p.begin_transaction()
    write(p, "txns", 10)
    return p


def commit_offsets(bootstrap):
    c = Consumer({"bootstrap.servers": bootstrap, "group.id": "movers",
                  "enable.auto.commit": False})
    for i in range(1, 50):
        c.commit(offsets=[TopicPartition("kept", 0, i)], asynchronous=False)
    c.close()


def group(bootstrap):
    c = Consumer({"bootstrap.servers": bootstrap, "group.id": "movers",
                  "enable.auto.commit": False})
    found = c.committed([TopicPartition("kept", 0)], timeout=20)[0]
    c.close()
    if found.error or found.offset != 49:
        raise SystemExit(f"the group is at {found}")


def wait_for_compaction(bootstrap):
    wire = Wire(bootstrap)
    for _ in range(300):
        batches, _ = wire.read("compacted", 0, 0)
        if sum(b["last"] - b["base"] + 1 for b in batches) < 4000 - 900:
            return
        time.sleep(0.2)
    raise SystemExit("nothing was compacted within a minute")


def fill(bootstrap):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    create_all(bootstrap)
    plain = producer(bootstrap)
    write(plain, "doomed", 100)
    write(plain, "kept", 2500, timestamp=OLD_MS)
    write(producer(bootstrap, compression_type="lz4"), "kept", 3000, partition=1, timestamp=OLD_MS)
    write(plain, "aged", 2500, timestamp=OLD_MS)
    write(plain, "limited", 2500, timestamp=OLD_MS)
    write(plain, "compacted", 4000, keys=10)
    write(plain, "trimmed", 1000, size=100)
    admin.delete_records([TopicPartition("trimmed", 0, 707)])[TopicPartition("trimmed", 0)].result(30)
    transactions(bootstrap)
    commit_offsets(bootstrap)
    open_transaction(bootstrap)
    write(producer(bootstrap, enable_idempotence=True), "txns", 20)
    wait_for_compaction(bootstrap)
    admin.delete_topics(["doomed"])["doomed"].result(30)
    sys.stdout.flush()
    os._exit(0)  # A producer that is closed would end its transaction.


def flow(bootstrap, path):
    count, acked, said = 0, 0, 0

    def delivered(err, message):
        nonlocal acked
        failed(err, message)
        acked += 1

    # One batch under way: Kafka's recovery after a kill remembers one of each producer, also of
    # Kafka's own, and calls a repetition of the one before it out of order.
    p = producer(bootstrap, enable_idempotence=True, message_timeout_ms=0, max_in_flight=1)
    while not os.path.exists(path + ".stop"):
        p.produce(FLOW, b"%d" % count, partition=0, on_delivery=delivered)
        p.poll(0.005)
        count += 1
        if acked > said:
            said = acked
            pathlib.Path(path + ".acked").write_text(str(acked))
    if p.flush(60):
        raise SystemExit("flow: not all records were acknowledged")
    pathlib.Path(path).write_text(str(count))


def goes(path):
    """More by two windows of what may be under way: some of it was sent just now."""
    before = None
    for _ in range(300):
        text = os.path.exists(path + ".acked") and pathlib.Path(path + ".acked").read_text()
        if text:
            before = before if before is not None else int(text)
            if int(text) > before + 20:
                return
        time.sleep(0.1)
    raise SystemExit("nothing was acknowledged within half a minute")


def alter(bootstrap, topic, setting):
    name, value = setting.split("=", 1)
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


# ---- Reading --------------------------------------------------------------------------------

class Wire:
    """One connection that speaks by the captured tables."""

    def __init__(self, bootstrap):
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.correlation = 0

    def receive(self, size):
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("closed by the broker")
            data += part
        return bytes(data)

    def ask(self, api, version, **values):
        self.correlation += 1
        frame = encode_request(api, API_KEYS[api], version, self.correlation, "moving", values)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        answer = self.receive(struct.unpack(">i", self.receive(4))[0])
        return decode_response(api, version, answer)[1]

    def topics(self):
        found = self.ask("Metadata", 9, topics=None)["topics"]
        return {t["name"]: sorted(p["partition_index"] for p in t["partitions"])
                for t in found if t["name"] != FLOW}

    def offset(self, topic, partition, timestamp, isolation):
        answer = self.ask("ListOffsets", 5, replica_id=-1, isolation_level=isolation, topics=[{
            "name": topic, "partitions": [{"partition_index": partition, "timestamp": timestamp,
                                           "current_leader_epoch": -1}]}])
        found = answer["topics"][0]["partitions"][0]
        if found["error_code"]:
            raise SystemExit(f"{topic}-{partition}: ListOffsets answers {found['error_code']}")
        return found["offset"]

    def fetch(self, topic, partition, offset, isolation):
        answer = self.ask(
            "Fetch", 11, replica_id=-1, max_wait_ms=100, min_bytes=1, max_bytes=50_000_000,
            isolation_level=isolation, session_id=0, session_epoch=-1, topics=[{
                "topic": topic, "partitions": [{
                    "partition": partition, "current_leader_epoch": -1, "fetch_offset": offset,
                    "log_start_offset": -1, "partition_max_bytes": 4_000_000}]}],
            forgotten=[], rack_id="")
        found = answer["responses"][0]["partitions"][0]
        if found["error_code"]:
            raise SystemExit(f"{topic}-{partition}: Fetch at {offset} answers {found['error_code']}")
        return found

    def read(self, topic, partition, isolation):
        """All batches from the log start on, and the aborted transactions that came with them."""
        batches, aborted = [], set()
        at = self.offset(topic, partition, -2, 0)
        end = self.offset(topic, partition, -1, isolation)
        while at < end:
            found = self.fetch(topic, partition, at, isolation)
            got = list(split(found["records"] or b""))
            for a in found["aborted_transactions"] or []:
                aborted.add((a["producer_id"], a["first_offset"]))
            if not got:
                break  # Compaction may have left nothing before the end.
            batches += got
            at = got[-1]["last"] + 1
        return batches, sorted(aborted)

    def producers(self, topic, partition):
        answer = self.ask("DescribeProducers", 0, topics=[
            {"name": topic, "partition_indexes": [partition]}])
        found = answer["topics"][0]["partitions"][0]["active_producers"]
        return sorted([p["producer_id"], p["producer_epoch"], p["last_sequence"],
                       p["coordinator_epoch"], p["current_txn_start_offset"]] for p in found)

    def epochs(self, topic, partition):
        answer = self.ask("OffsetForLeaderEpoch", 3, replica_id=-1, topics=[{
            "topic": topic, "partitions": [{"partition": partition, "current_leader_epoch": -1,
                                            "leader_epoch": e} for e in EPOCHS]}])
        return [[p["leader_epoch"], p["end_offset"]] for p in answer["topics"][0]["partitions"]]


def split(records):
    while len(records) >= HEADER.size:
        base, length, epoch, _, _, attributes, delta = HEADER.unpack_from(records)
        if len(records) < 12 + length:
            return
        yield {"base": base, "last": base + delta, "epoch": epoch,
               "bytes": hashlib.sha256(records[:12 + length]).hexdigest()[:16]}
        records = records[12 + length:]


def wait_for_start(bootstrap, topic):
    wire = Wire(bootstrap)
    for _ in range(150):
        if wire.offset(topic, 0, -2, 0) > 0:
            return
        time.sleep(0.2)
    raise SystemExit(f"{topic}: nothing was deleted within half a minute")


def snap_partition(wire, topic, partition):
    batches, _ = wire.read(topic, partition, 0)
    committed, aborted = wire.read(topic, partition, 1)
    return {
        "log start": wire.offset(topic, partition, -2, 0),
        "high watermark": wire.offset(topic, partition, -1, 0),
        "last stable offset": wire.offset(topic, partition, -1, 1),
        "batches": batches, "committed": len(committed), "aborted": aborted,
        "producers": wire.producers(topic, partition),
        "epochs": wire.epochs(topic, partition),
    }


def snap(bootstrap, path):
    wire = Wire(bootstrap)
    found = {f"{t}-{p}": snap_partition(wire, t, p) for t, v in wire.topics().items() for p in v}
    pathlib.Path(path).write_text(json.dumps(found))
    print(f"{len(found)} partitions, {sum(len(p['batches']) for p in found.values())} batches,",
          f"{sum(len(p['aborted']) for p in found.values())} aborted transactions,",
          f"{sum(len(p['producers']) for p in found.values())} producers")


# ---- Comparing ------------------------------------------------------------------------------

def known_epochs(p):
    """Up to the newest one, whose end is the log's."""
    epochs = [e for e in p["epochs"] if e[0] >= 0]
    latest = max((e for e, _ in epochs), default=-1)
    return {e: end for e, end in epochs if e < latest}, latest


def differences(old, new, may_grow, but_epochs):
    if may_grow:
        new = dict(new, batches=new["batches"][:len(old["batches"])])
    fields = ["log start", "batches"] + ([] if may_grow else
             ["high watermark", "last stable offset", "committed", "aborted", "producers"])
    for field in fields:
        if old[field] != new[field]:
            yield f"{field}: {str(old[field])[:300]} became {str(new[field])[:300]}"
    (before, latest), (after, newest) = known_epochs(old), known_epochs(new)
    if but_epochs:
        return
    if newest < latest or any(after.get(e) != end for e, end in before.items()):
        yield f"epochs: {before} and {latest} became {after} and {newest}"


def same(old, new, *but):
    old, new = ({name: p for name, p in json.loads(pathlib.Path(path).read_text()).items()
                 if name.rsplit("-", 1)[0] not in but} for path in (old, new))
    found = [f"{name}: it is gone" for name in old if name not in new]
    found += [f"{name}: it was not there" for name in new if name not in old]
    for name in sorted(set(old) & set(new)):
        is_internal = name.startswith("__")  # Kafka itself writes there.
        found += [f"{name}: {what}" for what in
                  differences(old[name], new[name], is_internal, "--but-epochs" in but)]
    print("\n".join(found) or f"{len(old)} partitions are the same")
    return 1 if found else 0


def flown(bootstrap, path):
    count, consumer, at = int(pathlib.Path(path).read_text()), Consumer({
        "bootstrap.servers": bootstrap, "group.id": "flown", "enable.auto.commit": False}), 0
    consumer.assign([TopicPartition(FLOW, 0, 0)])
    while at < count:
        message = consumer.poll(20)
        if message is None:
            raise SystemExit(f"flow: only {at} of {count} records")
        if message.error():
            continue  # There may be no coordinator of groups, and none is needed.
        if message.value() != b"%d" % at:
            raise SystemExit(f"flow: record {at} is {message.value()} at {message.offset()}")
        at += 1
    more = consumer.poll(2)
    if more is not None and not more.error():
        raise SystemExit(f"flow: more than {count} records")
    consumer.close()
    print(f"flow: {count} records, each once and in order")


def main(command, *args):
    if command == "same":
        return same(*args)
    if command == "start":
        wait_for_start(*args)
    elif command == "goes":
        goes(*args)
    elif command == "write":
        if "--new" in args:
            create(args[0], [NewTopic(args[1], 1, 1)])
        write(producer(args[0], enable_idempotence=True), args[1], 50)
    else:
        {"group": group, "fill": fill, "snap": snap, "flow": flow, "flown": flown, "alter": alter}[command](*args)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
