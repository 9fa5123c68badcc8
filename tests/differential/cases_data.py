# SPDX-License-Identifier: Apache-2.0
"""Records: written, right or wrong in every rule, and read with every bound."""

import record_batch as batches
from record_batch import batch, record
from cases import MISSING, TIMEOUT_MS, Seen
from compare import NO_ID


def named(field, version, from_version, name):
    """Return a topic's name field: its id from that version on."""
    if version < from_version:
        return {field: name}
    return {"topic_id": NO_ID if name == MISSING else Seen(f"topic_id {name}")}


def produce(version, name, parts, acks=-1, **values):
    """Build a request; `parts` is a list of (partition, records), or the records of partition 0."""
    if not isinstance(parts, list):
        parts = [(0, parts)]
    return {"transactional_id": None, "acks": acks, "timeout_ms": TIMEOUT_MS, **values, "topics": [{
        **named("name", version, 13, name),
        "partitions": [{"index": index, "records": data} for index, data in parts]}]}


def three(now, **fields):
    rows = [record(i, b"k%d" % i, b"v%d" % i, [(b"h", b"x"), (b"n", None)], i) for i in range(3)]
    return batch(rows, now, **{"max_timestamp": now + 2, **fields})


# One of the brokers refuses or rewrites these: kept apart, so that later offsets are the same.
STORED_OTHERWISE = (
    "deltas with a gap inside", "deltas twice the same", "deltas from one", "delta negative",
    "append time", "delete horizon",
)


def wrong_batches(now):
    """Every rule of a batch's header, broken alone."""
    one = [record(0)]
    good = batch(one, now)
    yield "no records", b""
    yield "short", good[:60]
    yield "cut", good[:-1]
    yield "trailing byte", good + b"\0"
    yield "two batches", good + good
    yield "crc", batch(one, now, crc_error=1)
    yield "bytes of zero", bytes(80)
    yield "length negative", batch(one, now, length=-1)
    yield "length small", batch(one, now, length=10)
    yield "length huge", batch(one, now, length=0x7FFFFFFF)
    for magic in (0, 1, 3, -1):
        yield f"magic {magic}", batch(one, now, magic=magic)
    yield "message set 0", batches.old_message(0, now)
    yield "message set 1", batches.old_message(1, now)
    yield "base offset", batch(one, now, base_offset=77)
    yield "base offset negative", batch(one, now, base_offset=-5)
    yield "leader epoch", batch(one, now, leader_epoch=9)
    yield "count zero", batch([], now)
    yield "count zero with records", batch(one, now, count=0)
    yield "count negative", batch(one, now, count=-1)
    yield "count too great", batch(one, now, count=2)
    yield "count too small", batch([record(0), record(1)], now, count=1, last_delta=0)
    yield "last delta too great", batch(one, now, last_delta=4)
    yield "last delta too small", batch([record(0), record(1)], now, last_delta=0)
    yield "last delta negative", batch(one, now, last_delta=-1)
    yield "deltas with a gap", batch([record(0), record(2)], now, last_delta=2)
    yield "deltas with a gap inside", batch([record(0), record(2)], now)
    yield "deltas twice the same", batch([record(0), record(0)], now)
    yield "deltas from one", batch([record(1)], now, last_delta=0)
    yield "delta negative", batch([record(-1)], now)


def wrong_records(now):
    """Every rule of attributes, codecs and records, broken alone."""
    one = [record(0)]
    yield "control", batch(one, now, attributes=batches.CONTROL)
    yield "transactional", batch(one, now, attributes=batches.TRANSACTIONAL)
    yield "delete horizon", batch(one, now, attributes=batches.DELETE_HORIZON)
    yield "append time", batch(one, now, attributes=batches.APPEND_TIME)
    yield "unknown attribute", batch(one, now, attributes=0x80)
    for codec in (5, 6, 7):
        yield f"codec {codec}", batch(one, now, attributes=codec)
    for codec in (1, 2, 3, 4):
        yield f"garbage of codec {codec}", batch(one, now, attributes=codec, payload=b"garbage!")
        yield f"nothing of codec {codec}", batch(one, now, attributes=codec, payload=b"")
    yield "record length too small", batch([record(0, length=3)], now)
    yield "record length too great", batch([record(0, length=300)], now)
    yield "record length zero", batch([record(0, length=0)], now)
    yield "record length negative", batch([record(0, length=-1)], now)
    yield "record with a tail", batch([record(0, tail=b"x")], now)
    yield "bytes behind the records", batch([record(0), b"zz"], now, count=1, last_delta=0)
    yield "header without a key", batch([record(0, headers=[(None, b"x")])], now)
    yield "header key empty", batch([record(0, headers=[(b"", b"x")])], now)
    yield "header key not UTF-8", batch([record(0, headers=[(b"\xff\xfe", b"x")])], now)
    yield "headers too many", batch([b"\x0e\0\0\0\1\1\x7e\0"], now, count=1, last_delta=0)
    yield "headers negative", batch([b"\x0c\0\0\0\1\1\1"], now, count=1, last_delta=0)
    yield "key length negative", batch([b"\x0c\0\0\0\5\1\0"], now, count=1, last_delta=0)
    yield "null key and value", batch([record(0, None, None)], now)


def wrong_times(now):
    one = [record(0)]
    day = 86_400_000
    yield "old", batch(one, now - 3650 * day)
    yield "no timestamp", batch(one, -1)
    yield "negative", batch(one, -2)
    yield "zero", batch(one, 0)
    yield "in 30 minutes", batch(one, now + day // 48)
    yield "in two hours", batch(one, now + day // 12)
    yield "last in two hours", batch([record(0), record(1, timestamp_delta=day // 12)], now,
                                     max_timestamp=now + day // 12)
    yield "max too great", batch(one, now, max_timestamp=now + 5)
    yield "max too small", batch([record(0), record(1, timestamp_delta=9)], now)
    yield "max negative", batch(one, now, max_timestamp=-1)
    yield "delta negative", batch([record(0, timestamp_delta=-100)], now)


def packed(cases, codec, **fields):
    rows = [record(0), record(1, b"z", b"y" * 30)]
    return batch(rows, cases.now, codec, **fields)


def add_produce(cases):
    api, now = "Produce", cases.now
    versions = range(3, cases.ranges[api].stop)
    cases.each("three", api, lambda v: produce(v, "data", three(now)), versions)
    cases.each("acks one", api, lambda v: produce(v, "data", three(now), acks=1), versions)
    cases.each("missing topic", api, lambda v: produce(v, MISSING, three(now)), versions)
    cases.each("missing partition", api, lambda v: produce(
        v, "data", [(0, three(now)), (9, three(now)), (-1, three(now))]), versions)
    cases.each("acks two", api, lambda v: produce(v, "data", three(now), acks=2), versions)
    cases.each("bad crc", api, lambda v: produce(v, "data", [
        (1, three(now)), (0, three(now, crc_error=1))]), versions)
    cases.each("header without a key", api, lambda v: produce(v, "data", batch(
        [record(0), record(1, headers=[(None, b"x")])], now)), versions)
    cases.each("no topics", api, lambda v: {"transactional_id": None, "acks": -1,
                                            "timeout_ms": TIMEOUT_MS, "topics": []}, versions)
    cases.each("refused version", api, {"acks": -1, "timeout_ms": TIMEOUT_MS, "topics": [
        {"name": "data", "partitions": [{"index": 0, "records": batches.old_message(0, now)}]}]},
        range(0, 3))

    def new(name, *arguments, version=12, **values):
        cases.add(name, api, version, produce(version, *arguments, **values))

    for name, data in [*wrong_batches(now), *wrong_records(now)]:
        new(f"batch: {name}", "doubled" if name in STORED_OTHERWISE else "wrong", data)
    for name, data in wrong_times(now):
        new(f"time: {name}", "wrong", data)
        new(f"stamped: {name}", "stamped", data)
    new("time: strict, now", "strict", batch([record(0)], now))
    new("time: strict, far back", "strict", batch([record(0)], now - 600_000))
    new("time: strict, ahead", "strict", batch([record(0)], now + 600_000))
    for codec in (batches.GZIP, batches.SNAPPY, batches.ZSTD):
        new(f"codec {codec}", "data", packed(cases, codec))
        new(f"codec {codec} stamped", "stamped", packed(cases, codec))
        new(f"codec {codec} into gzip", "gzip", packed(cases, codec))
        new(f"codec {codec} into zstd", "zstd", packed(cases, codec))
        new(f"codec {codec} count", "data", packed(cases, codec, count=3, last_delta=2))
        new(f"codec {codec} offsets", "doubled", batch([record(0), record(5)], now, codec))
        new(f"codec {codec} null header", "data", batch(
            [record(0, headers=[(None, b"")])], now, codec))
        new(f"codec {codec} keyless", "compacted", batch([record(0, None)], now, codec))
        new(f"codec {codec} times", "data", batch([record(0, timestamp_delta=-5)], now, codec))
    new("codec 4 before version 7", "data", packed(cases, batches.ZSTD), version=6)
    new("zstd topic before version 7", "zstd", three(now), version=6)
    new("acks 5", "data", three(now), acks=5)
    new("acks -2", "data", three(now), acks=-2)
    new("timeout negative", "data", three(now), timeout_ms=-1)
    new("timeout zero", "data", three(now), timeout_ms=0)
    new("keyless into compacted", "compacted", batch([record(0, None), record(1)], now))
    new("keyed into compacted", "compacted", batch([record(0), record(1, b"k", None)], now))
    new("too large", "small", batch([record(0, b"k", b"x" * 400)], now))
    new("too large, compressed fits", "small", batch([record(0, b"k", b"x" * 400)], now,
                                                     batches.GZIP))
    new("just fits", "small", batch([record(0, b"k", b"x" * 200)], now))
    new("bad topic name", "bad name", three(now))
    new("empty topic name", "", three(now))
    new("one partition twice", "doubled", [(0, three(now)), (0, three(now))])
    new("one topic, no partition", "data", [])
    new("null transactional id and transactional batch", "wrong", three(now, attributes=16,
        producer_id=5, producer_epoch=0, base_sequence=0))
    two = produce(12, "doubled", three(now))
    two["topics"] += two["topics"]
    cases.add("one topic twice", api, 12, two)
    cases.add("zero id", api, 13, {**produce(13, "data", three(now)), "topics": [
        {"topic_id": bytes(16), "partitions": [{"index": 0, "records": three(now)}]}]})
    for name, topic, data in (("", "data", three(now)), (", missing", MISSING, three(now)),
                              (", bad crc", "data", three(now, crc_error=1))):
        cases.add(f"acks zero{name}", api, 12, produce(12, topic, data, acks=0), silent=True)


def add_idempotent(cases):
    """The rules of sequences, step by step on one partition."""
    def save(name):
        def keep(peer, answer):
            peer.seen[f"producer_id {name}"] = answer["producer_id"]
        return keep

    for name in ("a", "b"):
        cases.add(f"producer {name}", "InitProducerId", 4, init(), save=save(name))

    def send(name, epoch, sequence, count=1, producer="a", topic="idem", **fields):
        rows = [record(i) for i in range(count)]
        cases.add(f"idempotent: {name}", "Produce", 12, Idempotent(
            topic, rows, cases.now, producer, {"producer_epoch": epoch, "base_sequence": sequence,
                                               **fields}))

    send("first of another", 0, 0, producer="b")
    send("first", 0, 0)
    for sequence in range(1, 7):
        send(f"sequence {sequence}", 0, sequence)
    for sequence in (6, 2, 1, 0):
        send(f"sequence {sequence} again", 0, sequence)
    send("other length", 0, 6, count=2)
    send("gap", 0, 9)
    send("overlap", 0, 5, count=3)
    send("three", 0, 7, count=3)
    send("three again", 0, 7, count=3)
    send("part of three", 0, 8, count=2)
    send("higher epoch, gap", 1, 3)
    send("higher epoch", 1, 0)
    send("lower epoch", 0, 10)
    send("duplicate of lower epoch", 0, 7, count=3)
    send("no sequence", 1, -1)
    send("no epoch", -1, 1)
    send("epoch, no id", 0, 0, producer=None)
    send("id of nobody", 0, 0, producer="nobody")
    send("last sequence", 2, 0x7FFFFFFF, producer="a")
    send("sequence negative", 1, -5)
    send("epoch negative", -3, 1)
    send("idempotent control", 1, 1, attributes=batches.CONTROL)
    send("idempotent transactional", 1, 1, attributes=batches.TRANSACTIONAL)
    send("second batch of one", 1, 1)
    send("into another topic", 1, 0, topic="ids")
    send("into another topic, again", 1, 1, topic="ids")
    send("new, not from 0 on", 1, 40, topic="begun")
    cases.add("idempotent: transactional id", "Produce", 12, {
        **produce(12, "idem", three(cases.now, attributes=16, producer_id=1, producer_epoch=0,
                                    base_sequence=0)), "transactional_id": "nobody's"})
    for topic, parts in (("idem", [0]), ("data", [0, 1, 9]), (MISSING, [0]), ("bad name", [0])):
        cases.add(f"of {topic}", "DescribeProducers", 0, {
            "topics": [{"name": topic, "partition_indexes": parts}]})
    cases.add("nothing", "DescribeProducers", 0, {"topics": []})
    cases.add("no partitions", "DescribeProducers", 0, {
        "topics": [{"name": "idem", "partition_indexes": []}]})
    cases.add("twice", "DescribeProducers", 0, {
        "topics": [{"name": "idem", "partition_indexes": [0, 0, -1]}]})


class Idempotent(dict):
    """A produce request of one batch whose producer id is known only when it is sent."""

    def __init__(self, topic, rows, now, producer, fields):
        super().__init__(produce(12, topic, b""))
        self.rows, self.now, self.producer, self.fields = rows, now, producer, fields

    def with_ids(self, peer):
        known = {None: -1, "nobody": 987_654}
        producer = known.get(self.producer, peer.seen.get(f"producer_id {self.producer}"))
        data = batch(self.rows, self.now, producer_id=producer, **self.fields)
        values = {**self, "topics": [dict(self["topics"][0])]}
        values["topics"][0]["partitions"] = [{"index": 0, "records": data}]
        return values


def init(transactional_id=None, timeout=60_000, producer=-1, epoch=-1):
    return {"transactional_id": transactional_id, "transaction_timeout_ms": timeout,
            "producer_id": producer, "producer_epoch": epoch}


def add_init(cases):
    api = "InitProducerId"
    cases.each("idempotent", api, init())

    def new(name, **values):
        cases.add(name, api, 4, init(**values))

    new("timeout zero", timeout=0)
    new("timeout negative", timeout=-1)
    new("of a known producer", producer=Seen("producer_id a"), epoch=1)
    new("of an unknown producer", producer=987_654, epoch=3)
    new("id without an epoch", producer=Seen("producer_id a"))
    new("epoch without an id", epoch=3)
    new("id of -2", producer=-2, epoch=-2)
    new("empty transactional id", transactional_id="")


def fetch(version, name, parts, **values):
    """Build a request; `parts` is a list of dicts of a partition's fields that are not usual."""
    usual = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0,
             "last_fetched_epoch": -1, "log_start_offset": -1, "partition_max_bytes": 1 << 20}
    return {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 22,
            "session_id": 0, "session_epoch": -1, "isolation_level": 0, "rack_id": "",
            **values, "topics": [{**named("topic", version, 13, name),
                                  "partitions": [{**usual, **part} for part in parts]}]}


def add_fetch(cases):
    api = "Fetch"

    def every(name, topic, parts, versions=None, **values):
        cases.each(name, api, lambda v: fetch(v, topic, parts, **values), versions)

    every("start", "data", [{"partition_max_bytes": 1000}])
    every("all partitions", "data", [{"partition": part} for part in range(3)], (4, 12, 18))
    every("beyond the end", "data", [{"fetch_offset": 10_000_000}])
    every("missing", MISSING, [{}])
    every("partitions that are not", "data", [{"partition": 9}, {"partition": -1}])
    every("epochs", "data", [{"current_leader_epoch": 0}, {"partition": 1,
                              "current_leader_epoch": 5}], range(9, 19))

    def new(name, topic, parts, version=18, **values):
        cases.add(name, api, version, fetch(version, topic, parts, **values))

    for offset in (-1, -2, 1, 2, 4, 5):
        new(f"offset {offset}", "data", [{"fetch_offset": offset, "partition_max_bytes": 500}])
    new("read committed", "data", [{"partition": 1}], isolation_level=1)
    new("isolation 2", "data", [{"partition": 1}], isolation_level=2)
    new("waits", "ids", [{"partition": 1}], max_wait_ms=20)
    new("negative wait", "ids", [{"partition": 1}], max_wait_ms=-1)
    new("negative min bytes", "data", [{"partition": 1}], min_bytes=-1)
    new("max bytes zero", "data", [{"partition": 1}], max_bytes=0)
    new("max bytes negative", "data", [{"partition": 1}], max_bytes=-1)
    new("max bytes one", "data", [{"partition": 1}, {"partition": 2}], max_bytes=1)
    new("partition bytes zero", "data", [{"partition_max_bytes": 0}])
    new("partition bytes negative", "data", [{"partition_max_bytes": -1}])
    new("partition bytes one", "data", [{"partition_max_bytes": 1},
                                        {"partition": 1, "partition_max_bytes": 1}])
    new("partition twice", "data", [{"partition": 1}, {"partition": 1}])
    new("no partitions", "data", [])
    cases.add("no topics", api, 18, {**fetch(18, "data", []), "topics": []})
    cases.add("a follower of nothing", api, 12, {**fetch(12, "data", []), "topics": [],
                                                 "replica_id": 7})
    new("last epoch", "data", [{"last_fetched_epoch": 0, "fetch_offset": 2}])
    new("last epoch ahead", "data", [{"last_fetched_epoch": 7, "fetch_offset": 2}])
    new("log start offset", "data", [{"log_start_offset": 5}])
    new("follower", "data", [{}], version=12, replica_id=1)
    new("follower unknown", "data", [{}], version=12, replica_id=9)
    new("debugger", "data", [{"partition": 1}], version=12, replica_id=-2)
    new("replica -3", "data", [{"partition": 1}], version=12, replica_id=-3)
    new("follower with a state", "data", [{}], replica_state={"replica_id": 9,
                                                              "replica_epoch": 3})
    new("cluster id", "data", [{"partition": 1}], version=12, cluster_id="another")
    new("zero id", "zero id", [{}])
    new("stamped", "stamped", [{}])
    new("idempotent batches", "idem", [{}])
    new("bad name", "bad name", [{}], version=12)
    new("rack", "data", [{"partition": 1}], rack_id="somewhere")
    for topic in ("gzip", "zstd", "compacted", "small", "strict", "wrong"):
        new(f"of {topic}", topic, [{}])
    new("zstd for old clients", "zstd", [{}], version=9)


def add_sessions(cases):
    def save(name):
        def keep(peer, answer):
            peer.seen[f"session_id {name}"] = answer["session_id"]
        return keep

    for version, prefix in ((11, "names"), (13, "ids")):
        def new(name, parts, session, epoch, topic="ids", forgotten=(), version=version,
                prefix=prefix, **options):
            values = fetch(version, topic, parts, session_id=session, session_epoch=epoch)
            if not parts:
                values["topics"] = []
            values["forgotten"] = [{**named("topic", version, 13, topic), "partitions": [part]}
                                   for part in forgotten]
            cases.add(f"session by {prefix}: {name}", "Fetch", version, values, **options)

        mine = Seen(f"session_id {prefix}")
        both = [{}, {"partition": 1}]
        new("opened", both, 0, 0, save=save(prefix))
        new("nothing new", [], mine, 1)
        new("epoch too high", [], mine, 9)
        new("epoch again", [], mine, 1)
        cases.add(f"session by {prefix}: records", "Produce", 12, produce(
            12, "ids", [(1, three(cases.now))]))
        new("records", [], mine, 2)
        new("same again", [], mine, 3)
        new("moved", [{"partition": 1, "fetch_offset": 3 if version == 11 else 6}], mine, 4)
        new("another partition", [{"partition": 7}], mine, 5)
        new("error again", [], mine, 6)
        new("forget", [], mine, 7, forgotten=[7])
        new("forget what is not there", [], mine, 8, forgotten=[5])
        new("other way of naming", [{}], mine, 9, version=24 - version)
        new("after another way of naming", [], mine, 9)
        new("unknown", [], 123, 1)
        new("unknown to close", [], 123, -1)
        new("replaced", both, mine, 0, save=save(prefix))
        new("closed", both, mine, -1)
        new("after the close", [], mine, 1)
        new("epoch below", both, 0, -2)
        new("id zero, epoch one", both, 0, 1)
        new("opened empty", [], 0, 0)
        new("opened for missing", [{}], 0, 0, topic=MISSING)


def add_offsets(cases):
    """ListOffsets, OffsetForLeaderEpoch and DeleteRecords; the last moves the log's start."""
    api, now = "ListOffsets", cases.now

    def ask(topic, *parts, **values):
        usual = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
        return {"replica_id": -1, "isolation_level": 0, "timeout_ms": TIMEOUT_MS, **values,
                "topics": [{"name": topic, "partitions": [{**usual, **part} for part in parts]}]}

    for timestamp in range(-7, 0):
        cases.each(f"timestamp {timestamp}", api, ask("data", {"timestamp": timestamp}))
    cases.each("by time", api, ask("data", {"partition_index": 1, "timestamp": now + 1},
                                   {"partition_index": 2, "timestamp": now + 3}))
    cases.each("refused", api, ask("data", {"partition_index": 9}, {"partition_index": -1},
                                   {"current_leader_epoch": 5}))
    cases.each("missing", api, ask(MISSING, {}), range(1, 12, 3))
    for name, timestamp in {"zero": 0, "before": now - 10**9, "now": now, "2 ms later": now + 2,
                            "far ahead": now + 10**9, "last": 2**63 - 1, "first": -2**63}.items():
        cases.add(f"data at {name}", api, 11, ask("data", {"timestamp": timestamp}))
    for topic in ("stamped", "idem", "empty", "compacted"):
        for timestamp in (-1, -2, -3, now + 1):
            cases.add(f"{topic} at {min(timestamp, 1)}", api, 11,
                      ask(topic, {"timestamp": timestamp}))
    cases.add("twice", api, 11, ask("data", {}, {"timestamp": -2}, {"partition_index": 1}))
    cases.add("committed", api, 11, ask("data", {}, isolation_level=1))
    cases.add("isolation 2", api, 11, ask("data", {}, isolation_level=2))
    cases.add("debugger", api, 11, ask("data", {}, replica_id=-2))
    cases.add("follower", api, 11, ask("data", {}, replica_id=9))
    cases.add("epoch zero", api, 11, ask("data", {"current_leader_epoch": 0}))
    cases.add("bad name", api, 11, ask("bad name", {}))
    add_epochs(cases)
    add_delete_records(cases)
    for timestamp in (-1, -2, -3, -4, now + 1):
        cases.add(f"after deletion, {min(timestamp, 1)}", api, 11,
                  ask("data", {"partition_index": 1, "timestamp": timestamp}))
    cases.add("below the start", "Fetch", 18, fetch(18, "data", [{"partition": 1}]))


def add_epochs(cases):
    def ask(topic, *parts, replica=-2):
        usual = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
        return {"replica_id": replica, "topics": [
            {"topic": topic, "partitions": [{**usual, **part} for part in parts]}]}

    api = "OffsetForLeaderEpoch"
    cases.each("some", api, ask("data", {}, {"partition": 1, "leader_epoch": 7},
                                {"partition": 2, "leader_epoch": -1}, {"partition": 9}))
    cases.each("current epochs", api, ask("data", {"current_leader_epoch": 0},
                                          {"partition": 1, "current_leader_epoch": 4}))
    cases.each("missing", api, ask(MISSING, {}))
    cases.add("empty log", api, 4, ask("empty", {}))
    cases.add("consumer", api, 4, ask("data", {}, replica=-1))
    cases.add("follower", api, 4, ask("data", {}, replica=9))
    cases.add("twice", api, 4, ask("data", {}, {}))
    cases.add("bad name", api, 4, ask("bad name", {}))


def add_delete_records(cases):
    def ask(topic, *parts):
        return {"timeout_ms": TIMEOUT_MS, "topics": [{"name": topic, "partitions": [
            {"partition_index": part, "offset": offset} for part, offset in parts]}]}

    api = "DeleteRecords"
    cases.each("some", api, lambda version: ask("data", (1, version + 1), (2, 0), (9, 0), (-1, 0)))
    cases.each("missing", api, ask(MISSING, (0, -1)))
    cases.each("bounds", api, ask("data", (0, 10_000_000), (1, -2), (2, 1)))
    cases.add("back", api, 2, ask("data", (1, 1)))
    cases.add("inside a batch", api, 2, ask("data", (1, 4)))
    cases.add("to the end", api, 2, ask("stamped", (0, -1)))
    cases.add("to the end again", api, 2, ask("stamped", (0, -1)))
    cases.add("compacted", api, 2, ask("compacted", (0, -1)))
    cases.add("empty log", api, 2, ask("empty", (0, -1)))
    cases.add("twice", api, 2, ask("data", (2, 1), (2, 2)))
    cases.add("nothing", api, 2, {"timeout_ms": TIMEOUT_MS, "topics": []})
    cases.add("bad name", api, 2, ask("bad name", (0, 0)))
