# SPDX-License-Identifier: Apache-2.0
"""What a case is: one request, the same for both brokers but for the ids that they chose."""
import random
import time
from dataclasses import dataclass

SEED = 20_240
TIMEOUT_MS = 30_000
MISSING = "missing"
CHANGES = {"CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs",
           "IncrementalAlterConfigs"}


@dataclass
class Seen:
    """Stands in a request for what the broker assigned under this name."""
    name: str


@dataclass
class Case:
    name: str
    api: str
    version: int
    values: dict
    save: object = None  # function of (peer, answer): puts what later cases need into peer.seen
    silent: bool = False  # no answer is due; an ApiVersions request tells if the connection lives
    mangle: object = None  # function of the encoded frame that returns what is sent instead

    @property
    def changes(self):
        return self.api in CHANGES


class Cases:
    """The list in the making. `now` is one moment for both brokers."""

    def __init__(self, ranges):
        self.ranges, self.all = ranges, []
        self.now = int(time.time() * 1000)
        self.random = random.Random(SEED)

    def add(self, name, api, version, values, **options):
        label = f"{api}/{version}/{name}"
        assert all(label != case.name for case in self.all), f"two cases are called {label}"
        self.all.append(Case(label, api, version, values, **options))

    def each(self, name, api, make, versions=None, **options):
        """Add a case for every version; `make` is a dict or a function of the version."""
        for version in self.ranges[api] if versions is None else versions:
            self.add(name, api, version, make(version) if callable(make) else make, **options)

    def newest(self, api):
        return self.ranges[api].stop - 1


def resolve(values, peer):
    """Return values with every `Seen` replaced by what this broker assigned."""
    if isinstance(values, Seen):
        kind = values.name.split()[0]
        return peer.seen.get(values.name, {"topic_id": bytes(16), "member_id": ""}.get(kind, 0))
    if isinstance(values, dict):
        return {name: resolve(inner, peer) for name, inner in values.items()}
    if isinstance(values, list):
        return [resolve(inner, peer) for inner in values]
    return values
