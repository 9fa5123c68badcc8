#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Let Apache Kafka's own dump tool read a data directory, and refuse everything but praise.

    dump_check.py DATADIR TOPIC [--segments-min N] [--records N] [--compacted]

Each kind of file is dumped: logs with deep iteration, indexes against their logs, the sanity check
that Kafka runs at start, producer snapshots and transaction indexes. Every line that the tool
prints must be one that it prints for sound files; any other line is shown and fails. Then the
amounts are compared, so that a tool that read nothing does not count as a tool that found nothing.

Kafka 4.4's tool says of every segment that does not start at 0 that "-1 is followed by" its base
offset, also of Kafka's own; that one line is let pass, and only with the right number. Of a
compacted log it names every hole; with --compacted those pass whose numbers rise.
"""
import argparse
import pathlib
import re
import subprocess
import sys

TOOL = [str(pathlib.Path(__file__).resolve().parent / "kafka"), "tool", "kafka",
        "org.apache.kafka.tools.DumpLogSegments"]
FILES_PER_RUN = 200
INDEX_INTERVAL_BYTES = 4096

SOUND = {
    "log": [r"Dumping \S+", r"Log starting offset: \d+", r"baseOffset: .* isvalid: true",
            r"\| offset: \d+ .*"],
    "index": [r"Dumping \S+", r"offset: \d+ position: \d+", r"\S+ is empty\."],
    "timeindex": [r"Dumping \S+", r"timestamp: -?\d+ offset: \d+", r"\S+ is empty\."],
    "txnindex": [r"Dumping \S+", r"version: \d+ producerId: .*"],
    "snapshot": [r"Dumping \S+", r"producerId: \d+ producerEpoch: .*"],
    "sane": [r"Dumping \S+", r"\S+ passed sanity check\.", r"\S+ is empty\."],
}


class Check:
    def __init__(self, directory, topic, is_compacted):
        self.directory, self.topic = directory, topic
        self.is_compacted = is_compacted
        self.complaints, self.counts = [], {}

    def files(self, kind):
        return sorted(self.directory.glob(f"{self.topic}-*/*.{kind}"))

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def complain(self, what):
        self.complaints.append(what)

    def dump(self, kind, files, *options):
        """Dump files and look at every line; `kind` names what the tool may print."""
        for at in range(0, len(files), FILES_PER_RUN):
            some = ",".join(map(str, files[at:at + FILES_PER_RUN]))
            done = subprocess.run([*TOOL, *options, "--files", some], capture_output=True,
                                  text=True, errors="replace", check=False)
            if done.returncode:
                self.complain(f"the tool ended with {done.returncode}")
            for line in done.stdout.splitlines():
                self.look(kind, line)
            self.look_at_errors(done.stderr.splitlines())

    def look(self, kind, line):
        if not line.strip():
            return
        if not any(re.fullmatch(pattern, line) for pattern in SOUND[kind]):
            self.complain(line)
        if kind == "log" and line.startswith("| offset"):
            self.count("records")
        self.count(kind + " lines")

    def look_at_errors(self, lines):
        base = None
        for line in lines:
            if self.is_compacted and self.is_hole(line):
                continue
            if match := re.fullmatch(r"Non-consecutive offsets in .*/(\d{20})\.log", line):
                base = int(match.group(1))
            elif base is None or line != f"  -1 is followed by {base}":
                self.complain(line)
            else:
                base = None

    @staticmethod
    def is_hole(line):
        match = re.fullmatch(r"  (-?\d+) is followed by (\d+)", line)
        return match and int(match.group(1)) < int(match.group(2))

    def look_at_closed_indexes(self):
        """A closed segment of some size without an index entry would still be 'sound'."""
        for partition in {path.parent for path in self.files("log")}:
            for log in sorted(partition.glob("*.log"))[:-1]:
                index = log.with_suffix(".index")
                if log.stat().st_size > 4 * INDEX_INTERVAL_BYTES and not index.stat().st_size:
                    self.complain(f"{index}: no entry for {log.stat().st_size} bytes")

    def run(self):
        self.dump("log", self.files("log"), "--deep-iteration")
        for kind in ("index", "timeindex", "txnindex", "snapshot"):
            self.dump(kind, self.files(kind))
        self.dump("sane", self.files("index") + self.files("timeindex"), "--index-sanity-check")
        self.look_at_closed_indexes()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("topic")
    parser.add_argument("--segments-min", type=int, default=1)
    parser.add_argument("--records", type=int)
    parser.add_argument("--compacted", action="store_true")
    args = parser.parse_args()
    check = Check(args.directory, args.topic, args.compacted)
    check.run()
    segments, records = len(check.files("log")), check.counts.get("records", 0)
    if segments < args.segments_min:
        check.complain(f"only {segments} segments, wanted {args.segments_min}")
    if args.records is not None and records != args.records:
        check.complain(f"{records} records, wanted {args.records}")
    for kind in ("index lines", "timeindex lines", "snapshot lines"):
        if not check.counts.get(kind):
            check.complain(f"no {kind}")
    print(f"{segments} segments;", ", ".join(f"{n} {what}" for what, n in check.counts.items()))
    for what in check.complaints[:40]:
        print("FAILED", what)
    return 1 if check.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
