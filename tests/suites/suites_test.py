#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of what decides: whether a verdict fails the run, is forgiven, or is named."""
import pathlib
import socket
import tempfile
import types
import unittest

import brokers
import results
import suite


class Verdicts(unittest.TestCase):
    def row(self, ours, kafka, reasons=None, brokers=1):
        with tempfile.TemporaryDirectory() as folder:
            one = suite.Suite(pathlib.Path(folder), brokers)
        one.reasons = reasons or {}
        return results.Row(one, suite.read_verdicts(ours), suite.read_verdicts(kafka), (1, None))

    def bad(self, *args):
        return [name for name, _, _ in self.row(*args).bad]

    def test_what_kafka_passes_has_to_pass(self):
        self.assertEqual(self.bad(["PASS a"], ["PASS a"]), [])
        self.assertEqual(self.bad(["FAIL a # lost"], ["PASS a"]), ["a"])
        self.assertEqual(self.bad(["SKIP a"], ["PASS a"]), ["a"])
        self.assertEqual(self.bad(["PASS b"], ["PASS a", "PASS b"]), ["a"])

    def test_what_kafka_does_not_know_has_to_pass(self):
        self.assertEqual(self.bad(["FAIL a", "SKIP b"], []), ["a", "b"])

    def test_what_only_a_cluster_is_asked_may_skip_itself(self):
        self.assertEqual(self.bad(["FAIL a", "SKIP b", "SKIP c"], ["PASS c"], None, 3), ["a", "c"])

    def test_what_skips_itself_with_kafka_may_not_fail(self):
        self.assertEqual(self.bad(["FAIL a", "SKIP b"], ["SKIP a", "SKIP b"]), ["a"])

    def test_what_kafka_fails_is_named(self):
        row = self.row(["FAIL a"], ["FAIL a"])
        self.assertEqual(row.bad, [])
        self.assertIn("fails with Apache Kafka too: a", row.story())

    def test_a_reason_forgives(self):
        row = self.row(["FAIL a/1", "PASS b"], ["PASS a/1", "PASS b"], {"why": ["a/*", "c"]})
        self.assertEqual(row.bad, [])
        self.assertIn("excepted, why: 1", row.story())
        self.assertIn("excepted, but there is no such test: c", row.story())

    def test_a_reason_that_nothing_needs_is_named(self):
        row = self.row(["PASS a"], ["PASS a"], {"why": ["a"]})
        self.assertIn("excepted, but it passes: a", row.story())

    def test_an_unsteady_test_may_do_both(self):
        for verdict in ("PASS", "FAIL"):
            row = self.row([f"{verdict} a"], ["PASS a"], {"unsteady, why": ["a"]})
            self.assertEqual(row.bad, [])
            self.assertNotIn("but", row.story())

    def test_the_end_of_the_broker_counts(self):
        self.assertEqual(self.bad(["PASS a", "FAIL the broker ends well # 1"], ["PASS a"]),
                         ["the broker ends well"])


class Patterns(unittest.TestCase):
    def test_a_star_is_all_that_is_special(self):
        self.assertTrue(suite.matches("a[1].b", "a[1]*"))
        self.assertFalse(suite.matches("a1.b", "a[1]*"))
        self.assertFalse(suite.matches("aXb", "a.b"))


class Files(unittest.TestCase):
    def test_reasons_have_names_below_them(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "excepted.txt"
            path.write_text("# text\n\nleft out, why:\n    a b\n    c*\nwhat:\n    d\n",
                            encoding="utf-8")
            self.assertEqual(suite.read_excepted(path),
                             {"left out, why": ["a b", "c*"], "what": ["d"]})

    def test_a_suite_may_want_more_brokers(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertEqual(suite.Suite(folder).brokers, 1)
            (folder / "brokers").write_text("# why\n5\n", encoding="utf-8")
            self.assertEqual(suite.Suite(folder).brokers, 5)
            self.assertEqual(suite.Suite(folder, 7).brokers, 7)

    def test_left_out_is_said_by_broker(self):
        one = types.SimpleNamespace(reasons={"left out, x": ["a"], "not run, y": ["b"], "z": ["c"]})
        self.assertEqual(suite.Suite.left_out(one, "ours"), ["a", "b"])
        self.assertEqual(suite.Suite.left_out(one, "kafka"), ["a"])


class Orders(unittest.TestCase):
    def order(self, path, line):
        with socket.socket(socket.AF_UNIX) as orders:
            orders.connect(path)
            orders.sendall(f"{line}\n".encode())
            return orders.makefile(encoding="utf-8").read()

    def test_a_test_stops_and_starts_a_broker(self):
        calls = []
        two = types.SimpleNamespace(stop=lambda: calls.append("stop"), log=lambda: "said",
                                    again=lambda: calls.append("again"))
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/orders"
            with brokers.taking_orders(path, {2: two}):
                answers = [self.order(path, f"{word} 2") for word in ("stop", "logs", "start")]
        self.assertEqual(answers, ["ok", "said", "ok"])
        self.assertEqual(calls, ["stop", "again"])


if __name__ == "__main__":
    unittest.main()
