# SPDX-License-Identifier: Apache-2.0
"""Configuration: described, changed whole and by key, with every key and many a wrong value."""
from cases import MISSING, TIMEOUT_MS
from cases_topics import topic

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC_KEYS = (
    "cleanup.policy", "compression.gzip.level", "compression.lz4.level", "compression.type",
    "compression.zstd.level", "delete.retention.ms", "file.delete.delay.ms", "flush.messages",
    "flush.ms", "follower.replication.throttled.replicas", "index.interval.bytes",
    "leader.replication.throttled.replicas", "local.retention.bytes", "local.retention.ms",
    "max.compaction.lag.ms", "max.message.bytes", "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms", "message.timestamp.type", "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms", "min.insync.replicas", "preallocate", "remote.storage.enable",
    "retention.bytes", "retention.ms", "segment.bytes", "segment.index.bytes",
    "segment.jitter.ms", "segment.ms", "unclean.leader.election.enable",
)
VALUES = ("", " ", "-1", "-2", "0", "1", "7", "1.5", "abc", "true", "TRUE", "delete", "*", "0:1",
          "2147483648", "9223372036854775807", "9223372036854775808", "zstd", "CreateTime", "5e3",
          " 5 ", "+5", "0x10", "1,2")
BROKER_KEYS = (
    "log.retention.ms", "log.retention.hours", "num.partitions", "message.max.bytes",
    "background.threads", "num.io.threads", "log.cleaner.threads", "auto.create.topics.enable",
    "compression.type", "log.segment.bytes", "max.connections", "max.connections.per.ip",
    "unclean.leader.election.enable", "ssl.key.password", "min.insync.replicas",
    "log.flush.interval.messages", "node.id", "process.roles", "no.such.key",
    "log.message.timestamp.type",
)


def resource(kind, name, keys=None):
    return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}


def add_describe(cases):
    api = "DescribeConfigs"

    def ask(*resources, synonyms=False, documentation=False):
        return {"resources": list(resources), "include_synonyms": synonyms,
                "include_documentation": documentation}

    some = ["retention.ms", "cleanup.policy", "no.such.key", "retention.ms"]
    cases.each("all of a topic", api, ask(resource(TOPIC, "data"), synonyms=True))
    cases.each("some", api, ask(resource(TOPIC, "data", some), resource(TOPIC, MISSING, some),
                                resource(TOPIC, "bad name", some), resource(TOPIC, "")))
    cases.each("of a broker", api, ask(resource(BROKER, "1", list(BROKER_KEYS)), synonyms=True))
    cases.each("default of brokers", api, ask(resource(BROKER, ""), synonyms=True))

    def new(name, *resources, **options):
        cases.add(name, api, 4, ask(*resources, **options))

    new("overridden", resource(TOPIC, "small"), resource(TOPIC, "stamped"), synonyms=True)
    new("documented", resource(TOPIC, "data"), documentation=True)
    new("no keys", resource(TOPIC, "data", []))
    new("all of a broker", resource(BROKER, "1"))
    new("another broker", resource(BROKER, "9"))
    new("no number", resource(BROKER, "one"))
    new("negative broker", resource(BROKER, "-1"))
    new("twice", resource(TOPIC, "data", ["retention.ms"]), resource(TOPIC, "data", ["segment.ms"]))
    new("nothing")
    for kind in (0, 1, 3, 99, -1):
        new(f"type {kind}", resource(kind, "data"))
    new("logger", resource(LOGGER, "1", ["no.such.logger"]))
    new("logger of another", resource(LOGGER, "9"))
    new("logger without a name", resource(LOGGER, ""))
    new("client metrics", resource(CLIENT_METRICS, "m"))
    new("client metrics without a name", resource(CLIENT_METRICS, ""))
    new("group", resource(GROUP, "g", ["consumer.session.timeout.ms"]))
    new("group without a name", resource(GROUP, ""))


def add_values(cases):
    """Every key of a topic with many values: a topic that is not made for each."""
    for key in TOPIC_KEYS:
        cases.add(f"values of {key}", "CreateTopics", 7, {
            "timeout_ms": TIMEOUT_MS, "validate_only": True, "topics": [
                topic(f"v{number}", configs=[(key, value)])
                for number, value in enumerate(VALUES)]})


def add_rules(cases):
    """Rules between keys, of creation and of a change."""
    pairs = (
        (("min.compaction.lag.ms", "9"), ("max.compaction.lag.ms", "5")),
        (("local.retention.ms", "9"), ("retention.ms", "5")),
        (("local.retention.bytes", "9"), ("retention.bytes", "5")),
        (("segment.jitter.ms", "9"), ("segment.ms", "5")),
        (("remote.storage.enable", "true"), ("cleanup.policy", "delete")),
    )
    for number, pair in enumerate(pairs):
        cases.add(f"rule {number}", "CreateTopics", 7, {
            "timeout_ms": TIMEOUT_MS, "validate_only": True,
            "topics": [topic("ruled", configs=list(pair))]})


def entry(kind, name, *configs):
    return {"resource_type": kind, "resource_name": name, "configs": [
        {"name": key, "value": value} for key, value in configs]}


def seen_then(cases, name, *resources):
    cases.add(f"after {name}", "DescribeConfigs", 4, {
        "resources": [resource(*each) for each in resources], "include_synonyms": True})


def add_alter(cases):
    api = "AlterConfigs"
    data = [(TOPIC, "ids", ["retention.ms", "segment.ms", "max.message.bytes"])]

    def ask(*entries, validate_only=False):
        return {"resources": list(entries), "validate_only": validate_only}

    cases.each("set", api, lambda version: ask(entry(
        TOPIC, "ids", ("retention.ms", str(100_000 + version)), ("segment.ms", "200000"))))
    seen_then(cases, "altering", *data)
    cases.each("refused", api, ask(
        entry(TOPIC, "ids", ("retention.ms", "soon")), entry(TOPIC, MISSING, ("segment.ms", "5")),
        entry(TOPIC, "bad name", ("segment.ms", "5")), entry(TOPIC, "", ("segment.ms", "5")),
        entry(TOPIC, "data", ("no.such.key", "1"))))

    def new(name, *entries, **options):
        cases.add(name, api, 2, ask(*entries, **options))

    new("validate only", entry(TOPIC, "ids", ("segment.ms", "7")),
        entry(TOPIC, "data", ("segment.ms", "-7")), validate_only=True)
    new("null", entry(TOPIC, "ids", ("segment.ms", None)))
    new("key twice", entry(TOPIC, "ids", ("segment.ms", "8"), ("segment.ms", "9")))
    seen_then(cases, "refusals", *data)
    new("replaced", entry(TOPIC, "ids", ("max.message.bytes", "900000")))
    seen_then(cases, "replacing", *data)
    new("emptied", entry(TOPIC, "ids"))
    seen_then(cases, "emptying", *data)
    new("nothing")
    for kind in (0, 1, 3, 99):
        new(f"type {kind}", entry(kind, "ids", ("segment.ms", "8")))
    new("broker, validate only", entry(BROKER, "1", ("log.retention.ms", "5000000")),
        validate_only=True)
    new("broker static", entry(BROKER, "1", ("node.id", "4")), validate_only=True)
    new("broker unknown", entry(BROKER, "9", ("log.retention.ms", "50")), validate_only=True)
    new("broker no number", entry(BROKER, "x", ("log.retention.ms", "50")), validate_only=True)
    new("logger", entry(LOGGER, "1", ("root", "INFO")), validate_only=True)


def edit(kind, name, *configs):
    return {"resource_type": kind, "resource_name": name, "configs": [
        {"name": key, "config_operation": op, "value": value} for key, op, value in configs]}


def add_incremental(cases):
    api = "IncrementalAlterConfigs"
    keys = [(TOPIC, "data", ["retention.ms", "segment.ms", "cleanup.policy",
                             "leader.replication.throttled.replicas"])]
    throttled = "leader.replication.throttled.replicas"

    def ask(*entries, validate_only=False):
        return {"resources": list(entries), "validate_only": validate_only}

    cases.each("set", api, lambda version: ask(edit(
        TOPIC, "data", ("retention.ms", SET, str(86_400_000_000 + version)),
        (throttled, SET, "0:1"))))
    cases.each("append", api, lambda version: ask(edit(
        TOPIC, "data", (throttled, APPEND, f"{version}:1,2:{version}"))))
    seen_then(cases, "appending", *keys)
    cases.each("subtract", api, ask(edit(TOPIC, "data", (throttled, SUBTRACT, "0:1"))))
    seen_then(cases, "subtracting", *keys)
    cases.each("delete", api, ask(edit(TOPIC, "data", (throttled, DELETE, None))))
    seen_then(cases, "deleting", *keys)
    cases.each("refused", api, ask(
        edit(TOPIC, "data", ("segment.ms", SET, "soon")),
        edit(TOPIC, MISSING, ("segment.ms", SET, "5")),
        edit(TOPIC, "bad name", ("segment.ms", SET, "5")),
        edit(TOPIC, "", ("segment.ms", SET, "5")),
        edit(TOPIC, "ids", ("no.such.key", SET, "1"))))

    def new(name, *entries, **options):
        cases.add(name, api, 1, ask(*entries, **options))

    new("one of two refused", edit(TOPIC, "data", ("segment.ms", SET, "60000"),
                                   ("retention.ms", SET, "soon")))
    seen_then(cases, "one refusal", *keys)
    new("validate only", edit(TOPIC, "data", ("segment.ms", SET, "60000")), validate_only=True)
    new("append to a number", edit(TOPIC, "data", ("segment.ms", APPEND, "5")))
    new("subtract from a number", edit(TOPIC, "data", ("segment.ms", SUBTRACT, "5")))
    new("append what is there", edit(TOPIC, "data", ("cleanup.policy", APPEND, "delete")))
    new("subtract what is not there", edit(TOPIC, "data", (throttled, SUBTRACT, "8:8")))
    new("subtract all", edit(TOPIC, "data", ("cleanup.policy", SUBTRACT, "delete")))
    new("append null", edit(TOPIC, "data", (throttled, APPEND, None)))
    new("append nothing", edit(TOPIC, "data", (throttled, APPEND, "")))
    new("set null", edit(TOPIC, "data", ("segment.ms", SET, None)))
    new("set nothing", edit(TOPIC, "data", ("segment.ms", SET, "")))
    new("delete with a value", edit(TOPIC, "data", ("segment.ms", DELETE, "5")))
    new("delete what is not set", edit(TOPIC, "data", ("flush.ms", DELETE, None)))
    new("delete an unknown key", edit(TOPIC, "data", ("no.such.key", DELETE, None)))
    new("no keys", edit(TOPIC, "data"))
    for op in (4, -1, 100):
        new(f"operation {op}", edit(TOPIC, "data", ("segment.ms", op, "5000")))
    new("key twice", edit(TOPIC, "data", ("segment.ms", SET, "8"), ("segment.ms", SET, "9")))
    new("set and delete", edit(TOPIC, "data", ("segment.ms", SET, "8"),
                               ("segment.ms", DELETE, None)))
    new("resource twice", edit(TOPIC, "data", ("segment.ms", SET, "8")),
        edit(TOPIC, "data", ("flush.ms", SET, "9")))
    new("nothing")
    seen_then(cases, "all", *keys)
    for kind in (0, 1, 3, 99):
        new(f"type {kind}", edit(kind, "data", ("segment.ms", SET, "8")))
    add_brokers(cases, ask)


def add_brokers(cases, ask):
    api = "IncrementalAlterConfigs"
    broker = [(BROKER, "1", ["log.retention.ms", "message.max.bytes"]), (BROKER, "")]

    def new(name, *entries, **options):
        cases.add(f"broker: {name}", api, 1, ask(*entries, **options))

    new("set", edit(BROKER, "1", ("log.retention.ms", SET, "700000000")))
    new("set for all", edit(BROKER, "", ("log.retention.ms", SET, "800000000"),
                            ("message.max.bytes", SET, "2000000")))
    seen_then(cases, "setting brokers", *broker, (TOPIC, "idem", ["retention.ms",
                                                                  "max.message.bytes"]))
    new("delete", edit(BROKER, "1", ("log.retention.ms", DELETE, None)))
    new("delete for all", edit(BROKER, "", ("log.retention.ms", DELETE, None),
                               ("message.max.bytes", DELETE, None)))
    seen_then(cases, "unsetting brokers", *broker)
    for key, value in (("node.id", "4"), ("log.dirs", "/x"), ("no.such.key", "1"),
                       ("log.retention.ms", "soon"), ("log.retention.ms", "-5"),
                       ("num.io.threads", "0"), ("num.partitions", "3"), ("segment.ms", "1"),
                       ("max.connections.per.ip", "-1"), ("auto.create.topics.enable", "false"),
                       ("log.message.timestamp.type", "Never"), ("broker.id", "3"),
                       ("min.insync.replicas", "0"), ("log.segment.bytes", "5")):
        new(f"{key}={value}", edit(BROKER, "1", (key, SET, value)), validate_only=True)
    new("for all, max.connections.per.ip", edit(BROKER, "", (
        "max.connections.per.ip", SET, "500")), validate_only=True)
    new("for all, a listener's own", edit(BROKER, "", (
        "ssl.keystore.location", SET, "/x")), validate_only=True)
    new("another", edit(BROKER, "9", ("log.retention.ms", SET, "5")), validate_only=True)
    new("no number", edit(BROKER, "x", ("log.retention.ms", SET, "5")), validate_only=True)
    new("logger", edit(LOGGER, "1", ("root", SET, "LOUD")), validate_only=True)
    new("logger of another", edit(LOGGER, "9", ("root", SET, "INFO")), validate_only=True)
    new("metrics", edit(CLIENT_METRICS, "m", ("interval.ms", SET, "x")), validate_only=True)
    new("group", edit(GROUP, "g", ("consumer.session.timeout.ms", SET, "x")), validate_only=True)
