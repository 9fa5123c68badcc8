#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every client writes with every codec, every client reads what every client wrote.

    matrix.py BOOTSTRAP [--clients NAME,...] [--codecs NAME,...] [--seed N]

For each writer and codec there is a topic. The writer creates it, produces the data set once
without and once with idempotence (if it has that), and its acknowledged offsets are compared with
the order of the records. The codec and the producer id are read from the headers of the stored
batches. Then each reader prints all topics from the first to the last offset, and each line must
be the written one, byte for byte. The table shows for each reader, writer and codec how many
records agreed; anything else is named, and the exit status is 1.
"""
import argparse
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools" / "capture"))

import batches  # noqa: E402 (the path is set above)
import dataset  # noqa: E402
import peers  # noqa: E402

CODECS = batches.CODECS
# Clients send a batch as it is when compression would not make it smaller. That happens to a batch
# of two tiny records on a busy machine, whatever the linger.
TINY_BATCH_BYTES = 256


class Matrix:
    def __init__(self, args):
        self.bootstrap, self.codecs = args.bootstrap, args.codecs.split(",")
        self.names = args.clients.split(",")
        self.stamp = int(time.time() * 1000)
        self.about, self.written, self.failures = {}, {}, []
        self.directory = tempfile.TemporaryDirectory()
        self.lines = {null: dataset.lines(args.seed, self.stamp, null) for null in (False, True)}
        for null, lines in self.lines.items():
            self.file(null).write_text("\n".join(lines) + "\n", encoding="ascii")

    def file(self, null_headers):
        return pathlib.Path(self.directory.name) / f"records-{null_headers}"

    def fail(self, what):
        print("FAILED", what, flush=True)
        self.failures.append(what)

    def meet(self):
        for name in self.names:
            try:
                self.about[name] = peers.about(name)
                print(f"{name}: {self.about[name]['label']}")
            except (peers.PeerError, OSError) as error:
                self.fail(f"{name} cannot be run: {error}")

    def topic(self, writer, codec):
        return f"clients-{writer}-{codec}-{self.stamp}"

    def writers(self):
        return [name for name, about in self.about.items() if about["writes"]]

    def write_all(self):
        for writer in self.writers():
            about = self.about[writer]
            for codec in self.codecs:
                if codec in about["codecs"]:
                    try:
                        self.write(writer, codec)
                    except (peers.PeerError, AssertionError, OSError) as error:
                        self.fail(f"write {writer} {codec}: {error}")

    def write(self, writer, codec):
        topic, rounds, null = self.topic(writer, codec), [], self.about[writer]["null_headers"]
        peers.run(writer, "create", self.bootstrap, topic, dataset.PARTITIONS)
        for idempotent in ["false", "true"][: 1 + self.about[writer]["idempotence"]]:
            rounds.append(peers.run(writer, "produce", self.bootstrap, topic, codec, idempotent,
                                    self.file(null)))
        expected = dataset.as_read(self.lines[null] * len(rounds))
        self.written[writer, codec] = expected
        if self.about[writer]["acks"]:
            self.check_acks(rounds, expected)
        self.check_batches(topic, codec, expected, len(rounds))

    def check_acks(self, rounds, expected):
        acked = {partition: [] for partition in expected}
        for line in "".join(rounds).splitlines():
            partition, offset = map(int, line.split())
            acked[partition].append(offset)
        for partition, lines in expected.items():
            assert acked[partition] == list(range(len(lines))), \
                f"partition {partition}: acknowledged offsets are not 0..{len(lines) - 1} in order"

    def check_batches(self, topic, codec, expected, rounds):
        for partition, lines in expected.items():
            found = batches.stored(self.bootstrap, topic, partition)
            codecs = {batch.codec for batch in found
                      if batch.codec != "none" or len(batch.data) > TINY_BATCH_BYTES}
            assert codecs == {codec}, f"partition {partition}: stored with {codecs}"
            counts = [batch.record_count for batch in found]
            assert sum(counts) == len(lines), f"partition {partition}: {sum(counts)} records stored"
            for batch in found:
                is_first_round = batch.base_offset < len(lines) // rounds
                assert (batch.producer_id < 0) == is_first_round, \
                    f"partition {partition}: producer id {batch.producer_id} at {batch.base_offset}"

    def read_all(self):
        """Return {(reader, writer, codec): number of equal records}."""
        table = {}
        for reader in self.about:
            topics = {self.topic(*pair): pair for pair in self.written}
            if not topics:
                return table
            try:
                shown = self.by_topic(peers.run(reader, "consume", self.bootstrap, *topics))
            except peers.PeerError as error:
                self.fail(f"read {error}")
                continue
            for topic, pair in topics.items():
                table[reader, *pair] = self.compare(reader, pair, shown.get(topic, []))
        return table

    @staticmethod
    def by_topic(output):
        found, lines = {}, []
        for line in output.splitlines():
            if line.startswith("topic "):
                lines = found.setdefault(line[6:], [])
            else:
                lines.append(line)
        return found

    def compare(self, reader, pair, lines):
        """Return how many records are as written; name the first one that is not."""
        got = {partition: [] for partition in range(dataset.PARTITIONS)}
        for line in lines:
            got[int(line.split(" ", 1)[0])].append(line)
        equal, timed = 0, self.about[pair[0]]["timestamps"]
        ordered = all(self.about[name]["header_order"] for name in (reader, pair[0]))
        for partition, expected in self.written[pair].items():
            for want, have in zip(expected, got[partition]):
                if self.trim(want, timed, ordered) != self.trim(have, timed, ordered):
                    self.fail(f"{reader} read {pair[0]} {pair[1]}: wrote {want[:200]}, "
                              f"read {have[:200]}")
                    break
                equal += 1
            if len(expected) != len(got[partition]):
                self.fail(f"{reader} read {pair[0]} {pair[1]} partition {partition}: "
                          f"{len(got[partition])} of {len(expected)} records")
        return equal

    @staticmethod
    def trim(line, timed, ordered):
        """A writer that cannot set timestamps has them ignored. Where the order of headers is lost,
        only those of one name are in order."""
        part = line.split(" ")
        if not ordered:
            part[-1] = sorted(part[-1].split(","), key=lambda header: header.split("=")[0])
        return part if timed else part[:2] + part[3:]

    def print_table(self, table):
        print(f"\n{'reader':17} {'writer':17} " + " ".join(f"{c:>7}" for c in self.codecs))
        for reader in self.about:
            for writer in self.writers():
                cells = [table.get((reader, writer, codec), "-") for codec in self.codecs]
                print(f"{reader:17} {writer:17} " + " ".join(f"{c:>7}" for c in cells))

    def run(self):
        self.meet()
        self.write_all()
        table = self.read_all()
        self.print_table(table)
        readers_only = len(self.about) - len(self.writers())
        cells = len(self.names) * (len(self.names) - readers_only) * len(self.codecs)
        good = sum(1 for key, equal in table.items()
                   if equal == sum(map(len, self.written[key[1:]].values())))
        print(f"\nclients: {good} passed, {max(cells - good, len(self.failures))} failed")
        for what in self.failures:
            print("  " + what)
        return 1 if self.failures or good != cells else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("--clients", default=",".join(peers.ALL))
    parser.add_argument("--codecs", default=",".join(CODECS))
    parser.add_argument("--seed", type=int, default=7)
    return Matrix(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
