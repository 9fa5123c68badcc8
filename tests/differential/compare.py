# SPDX-License-Identifier: Apache-2.0
"""Answers made comparable, their differences, and the list of those that are accepted."""
import fnmatch
import re

import record_batch as batches

# What identifies an element of an array: elements are compared with their namesakes, and the order
# is a difference of its own.
KEYS = ("name", "topic", "topic_name", "resource_name", "group_id", "member_id", "key",
        "partition_index", "partition", "index", "api_key", "node_id", "broker_id", "batch_index",
        "topic_id", "base_offset", "producer_id")
# Different in any two brokers, and no promise: only whether there is a value is compared.
VOLATILE = {
    "host", "port", "cluster_id", "log_dir", "total_bytes", "usable_bytes", "last_timestamp",
    "finalized_features_epoch", "log_append_time_ms", "controller_id",
}
WORDS = ("error_message", "message", "documentation")
IGNORED = {"throttle_time_ms"}
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NO_ID = bytes(range(16))  # a topic id that no broker has
UNSET = (None, "", b"", -1, 0, bytes(16))


class Normaliser:
    """Rewrites one broker's answers: what the broker chose gets a name that both share."""

    def __init__(self, peer, now):
        self.peer, self.now = peer, now
        self.names = {("topic_id", NO_ID): "topic_id of nothing"}

    def name_of(self, kind, value):
        """Return a name for an id: the topic that it was assigned to, else its order of birth."""
        for name, known in self.peer.seen.items():
            if known == value and name.startswith(kind):
                return name
        count = sum(known == kind for known, _ in self.names)
        return self.names.setdefault((kind, value), f"{kind} #{count}")

    def learn(self, element):
        """Remember whose id it is that stands beside a name."""
        if element.get("topic_id") not in UNSET and element.get("name"):
            self.names.setdefault(("topic_id", element["topic_id"]), f"topic_id {element['name']}")

    def field(self, name, value):
        if name in IGNORED:
            return None
        if name in VOLATILE and not isinstance(value, (list, dict)):
            return value if value in UNSET else "(some)"
        if name in ("member_id", "leader") and value:
            return re.sub(UUID, lambda match: self.name_of("member", match[0]), value)
        if name == "timestamp":
            return self.clock(value)
        if name == "producer_id":
            return value if value == -1 else self.name_of(name, value)
        if name in ("topic_id", "session_id"):
            return value if value in UNSET else self.name_of(name, value)
        if name == "records" and value:
            return [self.batch(found) for found in batches.parse(value)]
        return self.value(value)

    def clock(self, value):
        """Return a timestamp that a request had, but not one that the broker's clock gave."""
        return "(the broker's)" if self.now + 1000 < value < self.now + 600_000 else value

    def batch(self, fields):
        if fields["producer_id"] >= 0:
            fields["crc"] = "(some)"
        if fields["attributes"] & batches.APPEND_TIME:
            fields["crc"] = fields["max_timestamp"] = "(some)"
        return self.value(fields)

    def value(self, value):
        if isinstance(value, dict):
            self.learn(value)
            return {name: self.field(name, inner) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(inner) for inner in value]
        return value


def label(element, counts):
    """Return what to call an element of an array of structs."""
    word = next((text(element[key]) for key in KEYS if element.get(key) is not None), "-")
    counts[word] = counts.get(word, 0) + 1
    return word if counts[word] == 1 else f"{word}~{counts[word]}"


def labelled(array):
    counts = {}
    return {label(element, counts): element for element in array}


def differences(ours, theirs, path=""):
    """Yield (path, theirs, ours) for all that differs in two normalised answers."""
    if not path and ours["connection"] != theirs["connection"]:
        yield "connection", theirs["connection"], ours["connection"]
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        yield from of_fields(ours, theirs, path + "." if path else "")
    elif isinstance(ours, list) and isinstance(theirs, list) and all(
            isinstance(element, dict) for element in ours + theirs):
        ours, theirs = labelled(ours), labelled(theirs)
        if list(ours) != list(theirs) and set(ours) == set(theirs):
            yield f"{path}[order]", ",".join(theirs), ",".join(ours)
        yield from of_elements(ours, theirs, path)
    elif ours != theirs:
        yield path, theirs, ours


def of_fields(ours, theirs, prefix):
    """Compare two structs; where their errors differ, nothing else is worth comparing."""
    if ours.get("error_code") != theirs.get("error_code"):
        yield prefix + "error_code", theirs.get("error_code"), ours.get("error_code")
        return
    for name in sorted(set(ours) | set(theirs)):
        mine, other = ours.get(name, "(absent)"), theirs.get(name, "(absent)")
        if name in WORDS and mine and other:
            name += "(wording)"
        yield from differences(mine, other, prefix + name)


def of_elements(ours, theirs, path):
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        yield from differences(ours.get(name, "(absent)"), theirs.get(name, "(absent)"),
                               f"{path}[{name}]")


def text(value):
    """Return a value as one short word for the report and for the list."""
    if isinstance(value, bytes):
        value = value.hex()
    if isinstance(value, (dict, list)):
        value = "(element)" if value else "(empty)"
    return re.sub(r"\s+", " ", str(value))[:100] if value != "" else '""'


class Accepted:
    """The list: `case | path | Kafka's value | our value | reason`, the first four as patterns."""

    def __init__(self, path):
        self.rules = []
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and not line.startswith("#"):
                    parts = [part.strip() for part in line.split(" | ")]
                    assert len(parts) == 5 and parts[4], f"{path}:{number}: no rule with a reason"
                    patterns = [self.pattern(part) for part in parts[:4]]
                    self.rules.append([number, patterns, 0, line.strip()])

    @staticmethod
    def pattern(part):
        """`*` stands for anything; all else, brackets too, for itself."""
        return re.compile(fnmatch.translate(part.replace("[", "[[]")))

    def has(self, case, difference):
        words = [case, difference[0], text(difference[1]), text(difference[2])]
        for rule in self.rules:
            if all(pattern.match(word) for pattern, word in zip(rule[1], words)):
                rule[2] += 1
                return True
        return False

    def unused(self):
        return [rule for rule in self.rules if not rule[2]]
