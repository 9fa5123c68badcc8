# SPDX-License-Identifier: Apache-2.0
"""Topics: made, grown, listed, described and deleted, in every way that is right or wrong."""
from cases import MISSING, TIMEOUT_MS, Seen
from compare import NO_ID

BAD_NAMES = ("", ".", "..", "white space", "slash/", "co:lon", "umläut", "x" * 249, "x" * 250)


def topic(name, partitions=1, replication=1, configs=None, assignments=None):
    return {
        "name": name, "num_partitions": partitions, "replication_factor": replication,
        "assignments": [{"partition_index": index, "broker_ids": brokers}
                        for index, brokers in assignments or []],
        "configs": [{"name": key, "value": value} for key, value in configs or []],
    }


def create(*topics, validate_only=False):
    return {"topics": list(topics), "timeout_ms": TIMEOUT_MS, "validate_only": validate_only}


def save_ids(peer, answer):
    for made in answer["topics"]:
        if not made["error_code"] and any(made["topic_id"]):
            peer.seen[f"topic_id {made['name']}"] = made["topic_id"]


def add_create(cases):
    """The topics that other families use, then all that is refused."""
    def new(name, values, **options):
        cases.add(name, "CreateTopics", 7, values, **options)

    new("setup", create(
        topic("data", 3), topic("idem"), topic("ids", 2), topic("begun"), topic("empty"),
        topic("wrong"), topic("doubled"),
        topic("stamped", configs=[("message.timestamp.type", "LogAppendTime")]),
        topic("compacted", configs=[("cleanup.policy", "compact")]),
        topic("small", configs=[("max.message.bytes", "300")]),
        topic("zstd", configs=[("compression.type", "zstd")]),
        topic("gzip", configs=[("compression.type", "gzip")]),
        topic("strict", configs=[("message.timestamp.before.max.ms", "1000"),
                                 ("message.timestamp.after.max.ms", "1000")])), save=save_ids)
    cases.each("plain", "CreateTopics", lambda version: create(topic(f"plain-{version}", 2)))
    cases.each("validate only", "CreateTopics", create(
        topic("never", 3), topic("data"), topic("bad name"), validate_only=True))
    cases.each("defaults", "CreateTopics", lambda v: create(topic(f"default-{v}", -1, -1)))
    cases.each("assigned", "CreateTopics", lambda version: create(
        topic(f"assigned-{version}", -1, -1, assignments=[(0, [1]), (1, [1])])))
    cases.each("refused", "CreateTopics", create(
        topic("data"), topic("zero", 0), topic("few", -2), topic("wide", 1, 9), topic("none", 1, 0),
        topic("under", 1, -2), topic("key", configs=[("no.such.key", "1")])))
    for number, name in enumerate(BAD_NAMES):
        new(f"name {number}", create(topic(name)))
    new("names that collide", create(topic("a.b")))
    new("colliding name", create(topic("a_b")))
    new("colliding name in one request", create(topic("c.d"), topic("c_d")))
    new("twice in one request", create(topic("twice"), topic("twice"), topic("once")))
    new("no topics", create())
    new("too many partitions", create(topic("many", 2_000_000)))
    new("somewhat too many partitions", create(topic("many", 10_001)))
    new("negative timeout", {"topics": [topic("hasty")], "timeout_ms": -1, "validate_only": True})
    new("internal name", create(topic("__consumer_offsets"), validate_only=True))
    assignments = {
        "unknown broker": [(0, [7])], "duplicate broker": [(0, [1, 1])], "no broker": [(0, [])],
        "gap": [(0, [1]), (2, [1])], "from one": [(1, [1])], "negative partition": [(-1, [1])],
        "duplicate partition": [(0, [1]), (0, [1])], "uneven": [(0, [1]), (1, [1, 7])],
        "negative broker": [(0, [-1])],
    }
    for name, assignment in assignments.items():
        new(f"assignment {name}", create(topic("placed", -1, -1, assignments=assignment)))
    new("assignment and count", create(topic("placed", 1, -1, assignments=[(0, [1])])))
    new("assignment and factor", create(topic("placed", -1, 1, assignments=[(0, [1])])))
    new("configs", create(topic("conf", configs=[("retention.ms", "1000"),
                                                 ("cleanup.policy", "delete")])))
    new("both policies", create(topic("c0", configs=[("cleanup.policy", "compact,delete")]),
                                validate_only=True))
    for key, value in (("retention.ms", None), ("retention.ms", ""), ("cleanup.policy", "never"),
                       ("cleanup.policy", ""), ("", "1"), ("Retention.ms", "1"),
                       ("min.insync.replicas", "3"), ("follower.replication.throttled.replicas",
                                                      "0:1"), ("log.retention.ms", "1")):
        new(f"config {key}={value}", create(topic("c1", configs=[(key, value)]),
                                            validate_only=True))
    new("config twice", create(topic("c2", configs=[("retention.ms", "1"), ("retention.ms", "2")]),
                               validate_only=True))


def add_partitions(cases):
    def grow(name, count, assignments=None):
        return {"name": name, "count": count, "assignments": assignments}

    def request(*topics, validate_only=False):
        return {"topics": list(topics), "timeout_ms": TIMEOUT_MS, "validate_only": validate_only}

    def new(name, values):
        cases.add(name, "CreatePartitions", 3, values)

    api = "CreatePartitions"
    cases.each("grow", api, lambda version: request(grow("plain-2", 3 + version)))
    cases.each("refused", api, request(
        grow("plain-3", 2), grow("plain-4", 1), grow("plain-5", 0), grow("plain-6", -1),
        grow(MISSING, 5)))
    new("validate only", request(grow("plain-3", 9), grow("plain-4", 1), validate_only=True))
    new("twice", request(grow("plain-3", 4), grow("plain-3", 5), grow("plain-4", 3)))
    new("assigned", request(grow("plain-5", 3, [{"broker_ids": [1]}])))
    new("too few assignments", request(grow("plain-5", 6, [{"broker_ids": [1]}])))
    new("too many assignments", request(grow("plain-5", 4, [{"broker_ids": [1]}] * 3)))
    new("unknown broker", request(grow("plain-5", 4, [{"broker_ids": [7]}])))
    new("duplicate broker", request(grow("plain-5", 4, [{"broker_ids": [1, 1]}])))
    new("no broker", request(grow("plain-5", 4, [{"broker_ids": []}])))
    new("no assignments", request(grow("plain-5", 4, [])))
    new("too many", request(grow("plain-6", 2_000_000)))
    new("bad name", request(grow("bad name", 2), grow("", 2)))
    new("nothing", request())


def by_name(name):
    return {"name": name, "topic_id": bytes(16)}


def by_id(name):
    return {"name": None, "topic_id": Seen(f"topic_id {name}") if name else NO_ID}


def add_metadata(cases):
    def ask(*topics, create_missing=False, operations=False):
        return {"topics": list(topics), "allow_auto_topic_creation": create_missing,
                "include_cluster_authorized_operations": operations,
                "include_topic_authorized_operations": operations}

    def every(version):
        return {**ask(), "topics": None if version >= 1 else []}

    api = "Metadata"
    cases.each("one", api, ask(by_name("data")))
    cases.each("all", api, every)
    cases.each("none", api, ask(), versions=range(1, 14))
    cases.each("operations", api, ask(by_name("data"), operations=True), versions=range(8, 14))
    cases.each("refused", api, ask(by_name(MISSING), by_name("bad name"), by_name("")),
               versions=range(4, 14))
    cases.each("by id", api, ask(by_id("data"), by_id(None)), versions=range(10, 14))
    cases.add("id and name", api, 12, ask({**by_id("data"), "name": "data"}))
    cases.each("id and empty name", api, ask({**by_id("data"), "name": ""},
                                             {**by_id(None), "name": ""}), versions=range(12, 14))
    cases.add("id and other name", api, 12, ask({**by_id("data"), "name": "idem"}))
    cases.add("no id and no name", api, 12, ask({"name": None, "topic_id": bytes(16)}))
    cases.add("names and ids", api, 12, ask(by_id("data"), by_name("idem"), by_name(MISSING)))
    cases.add("twice", api, 12, ask(by_name("data"), by_name("data"), by_name(MISSING),
                                    by_name(MISSING)))
    cases.add("long name", api, 12, ask(by_name("x" * 250)))
    cases.add("collides", api, 12, ask(by_name("a_b")))
    cases.add("bad name to create", api, 12, ask(by_name("bad name"), create_missing=True))


def add_describe(cases):
    api = "DescribeTopicPartitions"

    def ask(names, limit=2000, cursor=None):
        return {"topics": [{"name": name} for name in names], "response_partition_limit": limit,
                "cursor": cursor and {"topic_name": cursor[0], "partition_index": cursor[1]}}

    some = ["idem", "data", "ids"]
    for name, values in {
            "all": ask([]), "some": ask(some), "limited": ask(some, 2), "limit one": ask(some, 1),
            "limit zero": ask(some, 0), "limit negative": ask(some, -1),
            "limit meets a topic's end": ask(some, 3),
            "limit of the whole": ask(some, 6),
            "cursor": ask(some, 2, ("data", 1)), "cursor at a start": ask(some, 2, ("ids", 0)),
            "cursor past the end": ask(some, 2, ("data", 9)),
            "cursor negative": ask(some, 2, ("data", -1)),
            "cursor of a missing topic": ask(some, 2, ("gone", 0)),
            "cursor behind all": ask(some, 2, ("zzz", 0)),
            "cursor and all": ask([], 2, ("data", 2)),
            "missing": ask([MISSING, "data", "bad name", ""]), "limited and missing":
            ask(["data", MISSING, "aaa"], 3), "twice": ask(["data", "data"]),
    }.items():
        cases.add(name, api, 0, values)


def add_delete(cases):
    api = "DeleteTopics"

    def delete(version, *names):
        if version >= 6:
            return {"topics": [by_name(name) for name in names], "timeout_ms": TIMEOUT_MS}
        return {"topic_names": list(names), "timeout_ms": TIMEOUT_MS}

    cases.each("one", api, lambda version: delete(version, f"assigned-{version + 1}"))
    cases.each("refused", api, lambda version: delete(version, MISSING, "bad name", ""))
    cases.each("twice in one request", api, lambda version: delete(
        version, f"default-{version + 1}", f"default-{version + 1}", "plain-7"),
        versions=range(1, 7))

    def new(name, *topics):
        cases.add(name, api, 6, {"topics": list(topics), "timeout_ms": TIMEOUT_MS})

    new("nothing")
    new("by id", by_id("empty"))
    new("by id again", by_id("empty"))
    new("unknown id", by_id(None))
    new("no name and no id", {"name": None, "topic_id": bytes(16)})
    new("name and id", {**by_id("zstd"), "name": "zstd"})
    new("name and its id apart", by_name("gzip"), by_id("gzip"))
    new("id twice", by_id("strict"), by_id("strict"))
    cases.add("made again", "CreateTopics", 7, create(topic("gzip")), save=save_ids)
    cases.add("made again", "Metadata", 12, {"topics": [by_name("gzip")]})
