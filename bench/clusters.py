# SPDX-License-Identifier: Apache-2.0
"""What the benches of clusters share: ZooKeeper, a cluster of each kind, and a median.

The clusters are those of tests/cluster, so that a bench and a test mean the same by what happens
to a broker.
"""
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = pathlib.Path(os.environ.get("STRANDLINE_PEERS",
                                    os.path.expanduser("~/.cache/strandline-peers")))
ZOOKEEPER = ROOT / "tests/tools/zookeeper"

subprocess.run([ROOT / "tests/tools/fetch-peers", "kafka-3.9", "kafka-python"], check=True)
sys.path += map(str, PEERS.glob("kafka-python/lib/python3*/site-packages"))
sys.path[:0] = [str(ROOT / "tests/cluster")]
import faults  # noqa: E402 (the path is set above)
import rolling  # noqa: E402

rolling.KafkaBroker.tool = ROOT / "tests/tools/kafka"


@contextlib.contextmanager
def zookeeper():
    """A server of its own; its address, and a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="strandline-bench.") as work:
        home = f"{work}/zookeeper"
        os.makedirs(home)
        subprocess.run([ZOOKEEPER, "start", home, str(faults.free_port())], check=True)
        try:
            yield subprocess.check_output([ZOOKEEPER, "servers", home], text=True).strip(), work
        finally:
            subprocess.run([ZOOKEEPER, "stop", home], check=True)


def session_ms(value):
    """Of every broker that is started from now on."""
    faults.SESSION_MS = rolling.SESSION_MS = value


def cluster(build, address, work, kind=faults.Broker, count=3, **settings):
    """Brokers that do not run yet."""
    os.makedirs(work)
    made = faults.Cluster(f"{build}/strandline", address, work, kind, count)
    made.settings = {key.replace("_", "."): value for key, value in settings.items()}
    return made


def kafka_cluster(build, address, work):
    return cluster(build, address, work, rolling.KafkaBroker)


def progress(text=""):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def median(values):
    return statistics.median(values) if values else float("nan")
