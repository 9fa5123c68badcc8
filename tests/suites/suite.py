# SPDX-License-Identifier: Apache-2.0
"""One suite: a folder with `run`, and what is known of its tests (README.md).

Names of tests are taken as the suite prints them; a pattern may have `*`.
"""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FETCH = ROOT / "tests/tools/fetch-peers"
VERDICTS = ("PASS", "FAIL", "SKIP")
# How the reasons begin of tests that are run with neither broker, or only with Apache Kafka, or
# only with a cluster, and of those that sometimes fail for a reason of their own.
NEITHER, NOT_OURS, CLUSTER, UNSTEADY = "left out, ", "not run, ", "of clusters, ", "unsteady, "


class SuiteError(Exception):
    """A suite that cannot be had or run; the text says why."""


def lines_of(path):
    """The lines of a file without comments and empty ones; none if there is no file."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.rstrip() for line in lines if line.strip() and not line.startswith("#")]


def matches(name, pattern):
    """Whether a name is what the pattern says; `*` stands for anything, all else for itself."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


def read_excepted(path):
    """{reason: [pattern...]}: a reason is a line that ends with a colon, patterns are indented."""
    reasons, names = {}, None
    for line in lines_of(path):
        if not line.startswith(" "):
            names = reasons.setdefault(line.rstrip(":"), [])
        else:
            names.append(line.strip())
    return reasons


def read_verdicts(lines):
    """{name: (verdict, detail)} from lines `PASS name` or `FAIL name # detail`."""
    verdicts = {}
    for line in lines:
        verdict, _, rest = line.partition(" ")
        name, _, detail = rest.partition(" # ")
        if verdict in VERDICTS and name:
            verdicts[name.strip()] = (verdict, detail.strip())
    return verdicts


class Suite:
    """The folder of a suite."""

    def __init__(self, folder, brokers=1):
        self.folder, self.name = folder, folder.name
        brokers = self.brokers = max([brokers, *map(int, lines_of(folder / "brokers"))])
        self.reasons = read_excepted(folder / "excepted.txt")
        if brokers > 1:
            self.reasons = {reason: names for reason, names in self.reasons.items()
                            if not reason.startswith(CLUSTER)}
        self.chosen = lines_of(folder / "choice.txt")

    def get(self):
        """Bring the suite into the cache of the peers."""
        if subprocess.run([FETCH, f"{self.name}-tests"], check=False).returncode:
            raise SuiteError(f"{self.name} cannot be had")

    def version(self):
        return subprocess.run([self.folder / "run", "version"], check=True, text=True,
                              capture_output=True).stdout.strip()

    def settings(self):
        """The broker's keys that this suite wants."""
        return dict(line.split("=", 1) for line in lines_of(self.folder / "settings"))

    def has_choice(self):
        return bool(self.chosen)

    def is_chosen(self, name):
        return any(matches(name, pattern) for pattern in self.chosen)

    def left_out(self, kind):
        """Patterns of the tests that are not run with a broker of that kind."""
        prefixes = (NEITHER, CLUSTER) + ((NOT_OURS,) if kind == "ours" else ())
        return [name for reason, names in self.reasons.items() for name in names
                if reason.startswith(prefixes)]

    def run(self, broker, log, choice):
        """Run the tests; what they print goes to the log. Return the verdicts."""
        env = {**os.environ, "LEFT_OUT": "\n".join(self.left_out(broker.kind)),
               "CHOICE": "\n".join(self.chosen) if choice else "",
               "BROKERS": str(self.brokers), "ORDERS": getattr(broker, "orders", "")}
        with open(log, "w", encoding="utf-8") as err:
            done = subprocess.run([self.folder / "run", "tests", broker.bootstrap], env=env, stderr=err,
                                  stdout=subprocess.PIPE, text=True, check=False)
        verdicts = read_verdicts(done.stdout.splitlines())
        if not verdicts:
            raise SuiteError(f"{self.name} ran no test, see {log}")
        return verdicts

    def stale(self, names):
        """Patterns of exceptions that none of the names matches."""
        return [pattern for reason, patterns in self.reasons.items() for pattern in patterns
                if not reason.startswith((NEITHER, CLUSTER)) and not any(matches(name, pattern)
                                                                for name in names)]

    def reason(self, name):
        """Why a test need not pass, or None."""
        for reason, patterns in self.reasons.items():
            if any(matches(name, pattern) for pattern in patterns):
                return reason
        return None

    def recorded(self):
        """Apache Kafka's verdicts as they were recorded."""
        return read_verdicts(lines_of(self.folder / "kafka.txt"))

    def record(self, verdicts):
        peer = "kafka" if self.brokers == 1 else "kafka-3.9"
        version = subprocess.run([ROOT / "tests/tools/kafka", "version", peer], check=True,
                                 text=True, capture_output=True).stdout.strip()
        lines = [f"# {self.version()} on Apache Kafka {version}; written by --record."]
        lines += [f"{verdict} {name}" for name, (verdict, _) in sorted(verdicts.items())]
        (self.folder / "kafka.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
