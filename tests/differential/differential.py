#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ask Apache Kafka and the broker under test the same, in the same order, and compare the answers.

    differential.py KAFKA OURS [--accepted FILE] [--only WORD] [--show] [--suggest]

Both begin without topics. Every request goes to both before the next one. Answers are decoded with
the tables in tests/tools/capture, which were written apart from the broker's own, and compared
field by field; what one broker chose by itself (ids, ports, the clock) is given a common name
first. A difference fails the run unless `accepted.txt` has it, and so does a line of that list
which nothing needs any more.
"""
import argparse
import os
import sys

from peer import Peer

import cases_config
import cases_data
import cases_groups
import cases_protocol
import cases_topics
from cases import Cases, resolve
from compare import Accepted, Normaliser, differences, text
from schemas import decode_response

HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = (
    cases_topics.add_create, cases_topics.add_metadata, cases_data.add_produce,
    cases_data.add_idempotent, cases_data.add_init, cases_data.add_fetch, cases_data.add_sessions,
    cases_data.add_offsets, cases_topics.add_partitions, cases_topics.add_describe,
    cases_protocol.add_about, cases_config.add_describe, cases_config.add_values,
    cases_config.add_rules, cases_config.add_alter, cases_config.add_incremental,
    cases_groups.add_groups,
    cases_protocol.add_versions, cases_protocol.add_frames, cases_topics.add_delete,
    cases_protocol.add_coordinator,
)


def decoded(case, answer):
    """Return an answer as a dict. ApiVersions answers a version that it lacks in version 0."""
    version = case.version
    if case.api == "ApiVersions" and answer[4:6] == b"\0\x23":
        version = 0
    return decode_response(case.api, version, answer)[1]


def outcome(case, peer):
    """Carry out one case on one broker and return what came of it, as a dict."""
    values = case.values
    values = values.with_ids(peer) if hasattr(values, "with_ids") else resolve(values, peer)
    frame = peer.frame(case.api, case.version, values)
    if case.mangle:
        frame = case.mangle(frame)
    if case.silent:
        peer.send_silently(frame)
        answer = peer.exchange(peer.frame("ApiVersions", 0, {}))
        return {"connection": "open" if isinstance(answer, bytes) else answer}
    answer = peer.exchange(frame)
    if not isinstance(answer, bytes):
        return {"connection": answer}
    values = decoded(case, answer)
    if case.save:
        case.save(peer, values)
    if case.changes:
        peer.settle()
    return {"connection": "open", **values}


class Report:
    """Counts by API, and prints what fails."""

    def __init__(self, accepted, show, suggest):
        self.accepted, self.show, self.suggest = accepted, show, suggest
        self.rows, self.passed, self.failed = {}, 0, 0

    def case(self, case, found):
        bad = [each for each in found if not self.accepted.has(case.name, each)]
        row = self.rows.setdefault(case.api, [0, 0, 0, 0])
        row[0] += 1
        row[1] += not found
        row[2] += bool(found) and not bad
        row[3] += bool(bad)
        self.count(not bad)
        for path, theirs, ours in found if self.show else bad:
            words = (case.name, path, text(theirs), text(ours))
            mark = "DIFFERS" if (path, theirs, ours) in bad else "accepted"
            print(" | ".join(words) if self.suggest else
                  f"{mark} {words[0]}: {words[1]}: Kafka {words[2]}, ours {words[3]}")

    def count(self, is_right):
        self.passed += bool(is_right)
        self.failed += not is_right

    def end(self, whole):
        for number, _, _, line in self.accepted.unused() if whole else ():
            self.count(False)
            print(f"UNUSED accepted.txt:{number}: this difference is gone: {line}")
        print(f"{'API':26}{'requests':>9}{'same':>7}{'accepted':>10}{'differ':>8}")
        for api, row in sorted(self.rows.items()):
            print(f"{api:26}{row[0]:9}{row[1]:7}{row[2]:10}{row[3]:8}")
        total = [sum(column) for column in zip(*self.rows.values())]
        print(f"{'total':26}{total[0]:9}{total[1]:7}{total[2]:10}{total[3]:8}")
        print(f"{self.passed} passed, {self.failed} failed")
        return self.failed == 0


def served(ours, offered):
    """Return the versions that both serve (the range itself is a case of ApiVersions)."""
    return {api: range(max(versions.start, ours.ranges[api].start),
                       min(versions.stop, ours.ranges[api].stop))
            for api, versions in offered.items() if api in ours.ranges}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kafka")
    parser.add_argument("ours")
    parser.add_argument("--accepted", default=os.path.join(HERE, "accepted.txt"))
    parser.add_argument("--only", default="", help="report only cases whose name has this word")
    parser.add_argument("--show", action="store_true", help="print accepted differences too")
    parser.add_argument("--suggest", action="store_true", help="print lines for the list")
    args = parser.parse_args()
    kafka, ours = Peer("kafka", args.kafka, True), Peer("ours", args.ours, False)
    for peer in (kafka, ours):
        peer.begin()
    cases = Cases(served(ours, kafka.ranges))
    for add in FAMILIES:
        add(cases)
    report = Report(Accepted(args.accepted), args.show, args.suggest)
    plain = Normaliser(kafka, cases.now), Normaliser(ours, cases.now)
    for case in cases.all:
        theirs, mine = (normaliser.value(outcome(case, normaliser.peer)) for normaliser in plain)
        if args.only in case.name:
            report.case(case, list(differences(mine, theirs)))
    return 0 if report.end(not args.only) else 1


if __name__ == "__main__":
    sys.exit(main())
