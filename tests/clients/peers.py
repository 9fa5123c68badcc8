# SPDX-License-Identifier: Apache-2.0
"""How each client program is started. Names are those of `tests/tools/fetch-peers`."""
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("STRANDLINE_PEERS")
                     or pathlib.Path.home() / ".cache" / "strandline-peers")
TIMEOUT_S = 180

# What a client can express; it can what it says nothing of.
CAN = ["idempotence", "timestamps", "acks", "null_headers", "header_order", "writes"]

ALL = ["kcat", "librdkafka", "librdkafka-new", "java", "franz-go", "kafka-python",
       "kafka-python-old", "kafkajs", "java-console"]


class PeerError(Exception):
    """A client that could not be run, or that failed; the text says which and why."""


def java(path_of, classes, main):
    path = (CACHE / path_of / "cp.txt").read_text(encoding="utf-8")
    return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
            f"{path}:{classes}", main]


def command(name):
    if name == "kcat":
        return ["python3", str(HERE / "kcat" / "client.py")]
    if name.startswith("kafka-python"):
        return [str(CACHE / name / "bin" / "python"), str(HERE / "kafka-python" / "client.py")]
    if name == "kafkajs":
        return ["node", str(HERE / "kafkajs" / "client.js")]
    if name == "java":
        return java("java", CACHE / "java" / "classes", "Client")
    if name == "java-console":
        return java("kafka", CACHE / "java-console", "Console")
    return [str(CACHE / name.removesuffix("-new") / "client")]


def run(name, *args):
    """Run a client to its end and return its standard output."""
    env = {**os.environ, "NODE_PATH": str(CACHE / "kafkajs" / "node_modules")}
    if name == "librdkafka-new":
        env["LD_LIBRARY_PATH"] = str(CACHE / name)
    try:
        done = subprocess.run([*command(name), *map(str, args)], env=env, capture_output=True,
                              text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise PeerError(f"{name} {args[0]}: not done within {TIMEOUT_S} s") from None
    if done.returncode:
        raise PeerError(f"{name} {args[0]}: exit {done.returncode}: {done.stderr.strip()[-800:]}")
    return done.stdout


def about(name):
    """Return {label, codecs} and what it can of CAN as the client says it."""
    first, *rest = run(name, "version").splitlines()
    said = dict(line.split(" ", 1) for line in rest)
    yes = {key: said.get(key, "yes") == "yes" for key in CAN}
    return {"label": first, "codecs": said["codecs"].split(), **yes}
