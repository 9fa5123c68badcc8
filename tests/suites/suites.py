#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run other projects' own tests against the broker and against Apache Kafka, and compare.

    suites.py [SUITE...] [--choice] [--ours] [--brokers N] [--record] [--logs DIR]

Each folder beside this file is a suite (README.md). Every suite gets a new broker. A test fails
the run if Apache Kafka passes it and we do not, unless the suite's excepted.txt gives a reason; an
excepted test that passes is named. --choice runs the quick part of each suite that has one, and
--ours takes Kafka's verdicts from kafka.txt instead of running it. --record writes that file.
With --brokers 3 ours are a cluster, and every test has to pass as it does with one. A suite that
wants a cluster gets it from both.
"""
import argparse
import pathlib
import signal
import sys
import time

import brokers
import results
import suite

HERE = pathlib.Path(__file__).resolve().parent
ALL = ["franz-go", "kafka-python", "librdkafka", "node-rdkafka", "rust-rdkafka", "kafka-clients",
       "sarama"]


def run_against(kind, one, args):
    """Run a suite against a new broker of that kind; return its results and the seconds."""
    log = args.logs / f"{one.name}.{kind}.log"
    start = time.monotonic()
    with (brokers.Broker(kind, one.settings()) if one.brokers == 1 else
          brokers.Cluster(kind, one.brokers, one.settings())) as broker:
        verdicts = one.run(broker, log, args.choice)
        why = broker.stop()
    if why:
        verdicts["the broker ends well"] = ("FAIL", why)
    return verdicts, round(time.monotonic() - start)


def run_suite(one, args):
    """Run a suite against both brokers and return its row."""
    one.get()
    recorded = one.recorded()
    if args.ours:
        kafka, kafka_s = recorded, None
    else:
        kafka, kafka_s = run_against("kafka", one, args)
    ours, ours_s = run_against("ours", one, args)
    if args.record:
        one.record(kafka)
    return results.Row(one, ours, kafka, (ours_s, kafka_s),
                       one.is_chosen if args.choice else None)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=" ".join(ALL))
    parser.add_argument("--choice", action="store_true", help="only the quick part of each suite")
    parser.add_argument("--ours", action="store_true", help="Kafka's verdicts are from kafka.txt")
    parser.add_argument("--brokers", type=int, default=1, metavar="N",
                        help="as many of ours, on a ZooKeeper; with --ours")
    parser.add_argument("--record", action="store_true", help="write Kafka's verdicts to kafka.txt")
    parser.add_argument("--logs", type=pathlib.Path, default=HERE.parents[1] / "build/suites",
                        help="where what the suites print is kept (build/suites)")
    args = parser.parse_args()
    unknown = set(args.suites) - set(ALL)
    if unknown:
        parser.error(f"no such suite: {' '.join(sorted(unknown))}; there are: {' '.join(ALL)}")
    if args.brokers > 1 and not args.ours:
        parser.error("--brokers wants --ours: Apache Kafka is one broker here")
    if args.record and (args.ours or args.choice):
        parser.error("--record wants a whole run against Apache Kafka")
    return args


def main():
    args = arguments()
    args.logs.mkdir(parents=True, exist_ok=True)
    # Whoever ends us ends the brokers, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("suites: terminated"))
    rows = []
    for name in args.suites or ALL:
        one = suite.Suite(HERE / name, args.brokers)
        if args.choice and not one.has_choice():
            continue
        print(f"{name}: running", file=sys.stderr, flush=True)
        try:
            rows.append(run_suite(one, args))
        except (brokers.BrokerError, suite.SuiteError) as error:
            sys.exit(f"suites: {error}")
        print(rows[-1].story(), end="", flush=True)
    print(results.table(rows))
    passed = sum(len(row.passed) for row in rows)
    failed = sum(len(row.bad) for row in rows)
    for row in rows:  # Once more, at the end of a log that is cut in the middle.
        print(row.failures(), end="")
    if failed:
        print(f"what the tests printed is in {args.logs}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
